"""What happened, compared: rows, commits, structure, streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replay_base import Comparing
from replay_commits import Change, Commits, change_differences, our_changes
from replay_graph import graph_differences, our_graph, recorded_graph
from replay_rows import Row, differences, in_lanes
from replay_seen import plain_value
from replay_shape import key_of


class Happened(Comparing):
    """Compares what a run recorded of its stages."""

    def on_narrative(self, recorded: Any) -> None:
        """Compare the rows."""
        self.told("narrative", f"{len(recorded)} rows")
        if self.run is None:
            if recorded:
                self.differ("narrative", "nothing has run")
            return
        expected, silent = self.expected.rows(self.replay)
        found = [row for row in self.seen.rows if self._compared(row, silent)]
        if self._fresh():
            self.departs("a-resumed-record-is-whole")
            if not expected:  # nothing was attached to the executor that went on
                return
            found = self._tail(found)
        for row in expected:
            row.facts = {name: self._scrubbed(value) for name, value in row.facts.items()}
        found = list(self._without_holders(found, expected))
        if self.shape.fails_fast and self.replay.error is not None:
            expected, found = self._cut_short(expected, found)
        self.differ("narrative", differences(expected, found, self.shape))

    def _without_holders(self, found: list[Row], expected: list[Row]) -> Iterator[Row]:
        """Leave out that a stage failed because what it holds did, which upstream does not tell."""
        told = {row.runtime_id for row in expected if row.type == "error"}
        failed: list[str] = []
        for row in found:
            if row.type == "error" and row.runtime_id not in told:
                stage = self.shape.at(row.place)
                owned = {s.key for s in self.shape.walk() if s.owner == key_of(row.place)}
                inside = [
                    one
                    for one in failed
                    if key_of(one).startswith(f"{key_of(row.place)}/") or key_of(one) in owned
                ]
                if stage is not None and inside:
                    self.departs("what-holds-a-failure-says-so")
                    continue
            if row.type == "error":
                failed.append(row.place)
            yield row

    def _cut_short(self, expected: list[Row], found: list[Row]) -> tuple[list[Row], list[Row]]:
        """Hold siblings of a branch that failed the run to as far as they came."""
        theirs, mine = in_lanes(expected, self.shape), in_lanes(found, self.shape)
        for lane in [*mine]:
            if lane not in theirs and self.shape.owner(lane) in self.shape.fails_fast:
                self.departs("failing-fast-ends-siblings")
                del mine[lane]
        for lane in theirs:
            if self.shape.owner(lane) not in self.shape.fails_fast:
                continue
            if any(row.type == "error" for row in theirs[lane]):
                continue
            self.departs("failing-fast-ends-siblings")
            came = [row for row in mine.get(lane, []) if not _ending(row)]
            mine[lane], theirs[lane] = came, theirs[lane][: len(came)]
        for row in (row for rows in theirs.values() for row in rows if row.type == "fork"):
            twin = next((r for r in found if r.type == "fork" and r.place == row.place), None)
            if key_of(row.place) in self.shape.fails_fast and twin is not None:
                row.facts["children"] = row.facts["children"][: len(twin.facts["children"])]
        return [r for rows in theirs.values() for r in rows], [
            r for rows in mine.values() for r in rows
        ]

    def _compared(self, row: Row, silent: set[str]) -> bool:
        """Say whether a row is told by both sides."""
        if row.type == "streamed":
            self.departs("a-stream-leaves-a-row")
            return False
        if row.type == "route":
            return False
        if row.facts.get("kind") == "ended":
            self.departs("an-ending-between-stages-has-a-row")
            return False
        inside = row.type in ("step", "emit", "retry") and row.facts.get("op") != "received"
        return not (inside and row.runtime_id in silent)

    def _tail(self, found: list[Row]) -> list[Row]:
        """Give what came after the last answer."""
        last = max((i for i, row in enumerate(found) if row.type == "resume"), default=0)
        return found[last:]

    def on_commits(self, recorded: Any) -> None:
        """Compare what each executed step changed."""
        self.told("commits", f"{len(recorded)} commits")
        self._commits(recorded)

    def on_commit_index(self, recorded: Any) -> None:
        """Compare which keys each executed step changed."""
        self.told("commit_index", f"{len(recorded)} commits")
        if "commits" not in self.observed:
            self._commits(recorded)

    def _commits(self, recorded: Any) -> None:
        if self.run is None:
            if recorded:
                self.differ("commits", "nothing has run")
            return
        expected = Commits(self.expected).changes()
        dials = self.expected.run.get("dials") or {}
        changes = our_changes(
            self.run,
            dials.get("commitValues", "full"),
            provenance=dials.get("writeProvenance") == "reads-prefix",
        )
        found = [one for one in changes if self._own_level(one)]
        if self._fresh():
            self.departs("a-resumed-record-is-whole")
            found = found[len(found) - len(expected) :]
        if self.shape.fails_fast and self.replay.error is not None:
            began = {one.place for one in found}
            expected = [one for one in expected if one.place in began or not self._beside(one)]
        self.differ("commits", change_differences(expected, found, self.shape.lane))

    def _beside(self, one: Change) -> bool:
        lane = self.shape.lane(one.place)
        fast = bool(lane) and self.shape.owner(lane) in self.shape.fails_fast
        return fast and self.departs("failing-fast-ends-siblings")

    def _own_level(self, one: Change) -> bool:
        lane = self.shape.lane(one.place)
        inner = one.place != lane if lane else "/" in one.place
        return "~" not in one.place and not inner

    def on_structure(self, recorded: Any) -> None:
        """Compare the built structure, node by node and edge by edge."""
        self.told("structure", "nodes and edges")
        expected = recorded_graph(recorded, self.shape, self.departs)
        self.differ(
            "structure", graph_differences(expected, our_graph(self.replay.chart.structure))
        )

    def on_holes(self, recorded: Any) -> None:
        """Compare how long lists are, and where they hold nothing."""
        self.told("holes", "lengths and gaps")
        state = plain_value(self.run.raw[1])
        for key, told in recorded.items():
            found = state.get(key)
            gaps = [place for place, one in enumerate(found or ()) if one is None]
            if len(found or ()) != told["length"] or gaps != told["missing"]:
                self.differ("holes", f"{key}: {told} is {len(found or ())}, {gaps}")

    def on_error_events(self, recorded: Any) -> None:
        """Compare how many errors are on the record."""
        self.told("error_events", "count")
        found = sum(row.type == "error" for row in self.seen.rows)
        if found != recorded:
            self.differ("error_events", f"{recorded} is {found}")

    def on_stream(self, recorded: Any) -> None:
        """Compare what the listener of streams heard."""
        self.told("stream", f"{len(recorded)} events")
        found = [list(self._heard(event)) for event in self.replay.events]
        if found != recorded:
            self.differ("stream", f"{recorded} is {found}")

    def _heard(self, event: Any) -> tuple[str, ...]:
        if event.kind == "start":
            return ("start", self._stream(event.stream))
        return (event.kind, self._stream(event.stream), event.text)

    def _stream(self, stream: str) -> str:
        # Without an id of its own a stream is called by its stage: by name there, by id here.
        stage = next(
            (
                s
                for s in self.shape.walk()
                if s.kind == "streaming" and s.step["id"] == stream and not s.step.get("streamId")
            ),
            None,
        )
        if stage is None or stage.name == stream:
            return stream
        self.departs("a-stream-is-called-by-its-stage-id")
        return stage.name


def _ending(row: Row) -> bool:
    left = row.type == "subflow" and row.facts["direction"] == "exit"
    return left or row.type == "error"
