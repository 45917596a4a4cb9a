"""What is expected of us: a recorded observation, led here departure by departure.

Every transformation is named after the departure it carries out (``departures.toml``) and is
applied by rule to whatever case it concerns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from replay_evidence import depart_evidence
from replay_rows import Row, moved, recorded_rows, split
from replay_shape import Shape, key_of
from replay_values import ANYTHING, decode, plain

from runbook_nb._text import MISSING, summarize

PLACEHOLDER = "[REDACTED]"

#: What an aborted run says upstream; here it is the reason of the signal.
ABORTED = "user abort"


#: Ops that write nothing.
READERS = {"get", "delete", "del_path", "break_if", "emit", "debug", "metric", "eval", "error_info"}


class Departures:
    """Which departures a case went through."""

    def __init__(self) -> None:
        self.used: dict[str, None] = {}

    def departs(self, name: str) -> bool:
        """Note that a declared departure explains a difference."""
        self.used[name] = None
        return True


class Expected:
    """The recorded observation of one case, as it is expected of us."""

    def __init__(self, case: Mapping[str, Any], departures: Departures) -> None:
        self.case = case
        self.observed = case["observed"]
        self.shape = Shape(case["program"])
        self.departs = departures.departs
        self.run = case.get("run") or {}
        self.unions: set[int] = set()
        self._updates: dict[tuple[str, str], int] = {}
        self._tags = {
            tag
            for tag in ("date", "set", "map", "-0", "bigint")
            if f'"$js": "{tag}"' in json.dumps(case["program"])
        }
        self._said_otherwise()

    def _said_otherwise(self) -> None:
        """Note what the harness says in other words than upstream, because our scope has none."""
        ops = {op.get("op") for stage in self.shape.walk() for op in stage.ops}
        options = {
            option for stage in self.shape.walk() for option in (stage.step.get("options") or ())
        }
        departs = self.departs
        for stage in self.shape.walk():
            given = [op.get("value") for op in stage.ops if op.get("op") == "return"]
            if stage.kind == "decider" and any(
                isinstance(one, bool | int | float) for one in given
            ):
                departs("a-word-is-a-text")
            if stage.kind not in ("streaming",) and any(op["op"] == "stream" for op in stage.ops):
                departs("only-a-streaming-stage-streams")
        if "env_to" in ops or "env" in self.run:
            departs("env-is-a-variable")
        if ops & {"debug", "log", "metric", "error_info", "eval"}:
            departs("notes-are-events")
        if self.run.get("dials"):
            departs("one-record-for-all-dials")
        if "throwingRecorder" in self.run:
            departs("listeners-instead-of-recorders")
        if "convergeAt" in options:
            departs("drawing-needs-no-hints")
        if ops & {"set_path", "del_path", "push", "batch_push"}:
            departs("explicit-scope")

    # -- values -----------------------------------------------------------------------------

    def value(self, recorded: Any) -> Any:
        """Read a recorded value as ours."""
        decoded = decode(recorded)
        if _holds_nothing(decoded):
            self.departs("nothing-is-absent")
        return self.slots(self.placeholders(plain(decoded)))

    def placeholders(self, value: Any) -> Any:
        """Give a value with our word for what is hidden."""
        if not self.run.get("redact"):
            return value
        if value == "REDACTED":
            self.departs("one-placeholder")
            return PLACEHOLDER
        if isinstance(value, Mapping):
            return {key: self.placeholders(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.placeholders(one) for one in value]
        return value

    def slots(self, value: Any) -> Any:
        """Take item and index out of what a branch of a fan-out left."""
        if isinstance(value, Mapping):
            return {key: self.slots(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.slots(self._slot(one, place)) for place, one in enumerate(value)]
        return value

    def _slot(self, value: Any, place: int) -> Any:
        fans = self.shape.fan_outs
        if fans and isinstance(value, Mapping) and "item" in value and value.get("index") == place:
            self.departs("item-comes-by-args")
            return {key: one for key, one in value.items() if key not in ("item", "index")}
        return value

    def state(self) -> Any:
        """The final state, and what each fork child left in a view of its own."""
        if "state" not in self.observed:
            return None, {}
        state = self._own_keys(self.value(self.observed["state"]))
        views = {}
        if self.shape.beside and isinstance(state, Mapping) and "runs" in state:
            self.departs("own-view-instead-of-runs")
            views = state["runs"]
            state = {key: one for key, one in state.items() if key != "runs"}
        return state, views

    def _lists(self, row: Row, facts: dict[str, Any]) -> bool:
        """Say whether a row tells a list of keys that has the stage's own in it here."""
        stage = self.shape.at(row.place)
        ops = () if stage is None else stage.ops
        into = [
            op.get("to")
            for place, op in enumerate(ops)
            if op["op"] == "keys" and any(one["op"] not in READERS for one in ops[:place])
        ]
        listed = facts.get("op") != "read" and facts["key"] in into
        return listed and self.departs("a-stage-lists-its-own-writes")

    def _own_keys(self, state: Any) -> Any:
        """List among the keys of a state those the listing stage had written itself."""
        for stage in self.shape.walk() if isinstance(state, Mapping) else ():
            written: list[str] = []
            for op in stage.ops:
                into = op.get("to", op.get("key"))
                if op.get("op") == "keys" and isinstance(state.get(into), list):
                    new = [key for key in written if key not in state[into]]
                    if new:
                        self.departs("a-stage-lists-its-own-writes")
                        state = {**state, into: [*state[into], *new]}
                if op.get("op") not in READERS and into is not None:
                    written.append(into)
        return state

    def result(self) -> Any:
        """What the run gave; a bundle of children as their slots."""
        found = self.observed.get("result", {"$js": "undefined"})
        value = decode(found)
        if value is MISSING:
            self.departs("nothing-is-absent")
            return None
        if isinstance(value, Mapping) and value and all(map(_is_bundle, value.items())):
            self.departs("slots-instead-of-bundles")
            return {
                key: ("failed", None) if one["isError"] else ("ok", plain(one["result"]))
                for key, one in value.items()
            }
        return self.value(found)

    # -- rows -------------------------------------------------------------------------------

    def rows(self, replay: Any = None) -> tuple[list[Row], set[str]]:
        """The rows of the walk, and the executions whose steps upstream does not tell."""
        if replay is not None:
            self.unions = replay.unions
        rows = recorded_rows(self.observed["narrative"])
        rows = list(self._attempts(rows))
        rows = list(self._breaks_of_mounts(rows))
        named = [entry.get("stageName") for entry in self.observed["narrative"]]
        if any(name and "/" in name for name in named):
            self.departs("names-have-no-path")
        if any(row.type == "stage" for row in rows):
            self.departs("positions-are-not-told-twice")
        told: list[_Told] = [_Told(row, row.runtime_id) for row in rows]
        told = list(self._default_ids(told))
        told = list(self._steps_as_ours(told))
        told = list(self._own_stages(told))
        told = list(self._empty_fan_outs(told))
        silent = {one.was for one in told if one.added}
        for one in told:
            if one.row.type == "error" and one.row.facts["message"] == ABORTED:
                self.departs("a-cancelled-stage-says-so")
                one.row.facts["message"] = ANYTHING
        numbered = self._renumbered(told)
        names = {one.was: one.row.runtime_id for one in told if one.row.type == "stage"}
        return numbered, {names[was] for was in silent if was in names}

    def _attempts(self, rows: list[Row]) -> Iterator[Row]:
        """Leave of a failed attempt its retry row."""
        last = {row.runtime_id: i for i, row in enumerate(rows) if row.type == "retry"}
        for place, row in enumerate(rows):
            inside = row.type in ("step", "emit", "condition", "selector")
            if inside and place < last.get(row.runtime_id, -1):
                self.departs("a-failed-attempt-leaves-one-row")
            else:
                yield row

    def _breaks_of_mounts(self, rows: list[Row]) -> Iterator[Row]:
        """Tell that a mount stops its parent after it was left."""
        waiting: list[Row] = []
        mounts = {row.runtime_id for row in rows if row.type == "subflow"}
        for row in rows:
            if row.type == "break" and row.runtime_id in mounts:
                self.departs("a-mount-is-left-before-it-stops-its-parent")
                waiting.append(row)
                continue
            yield row
            left = row.type == "subflow" and row.facts["direction"] == "exit"
            if left and waiting and waiting[-1].runtime_id == row.runtime_id:
                yield waiting.pop()
        yield from waiting

    def stays_secret(self, key: str) -> bool:
        """Say whether a key is written as a secret and deleted, which unmarks it upstream."""
        ops = [op for stage in self.shape.walk() for op in stage.ops if op.get("key") == key]
        return {"secret", "delete"} <= {op["op"] for op in ops} and self.departs(
            "once-secret-stays-secret"
        )

    def interrupts(self, place: str) -> bool:
        """Say whether the stage of a place asks in its middle, and is answered."""
        stage = self.shape.at(place)
        ops = () if stage is None else stage.ops
        return bool(self.run.get("resume")) and any(op.get("op") == "interrupt" for op in ops)

    def _default_ids(self, told: list[_Told]) -> Iterator[_Told]:
        decider = ""
        for one in told:
            row = one.row
            if row.type == "condition":
                decider = row.place
            path, _, last = row.place.rpartition("/")
            if last == "default" and self.shape.at(row.place) is None:
                default = self.shape.defaults.get(key_of(decider))
                if default is not None:
                    self.departs("default-branch-has-its-own-id")
                    here = default.rpartition("/")[2]
                    row = moved(row, place=f"{path}/{here}" if path else here)
            yield _Told(row, one.was)

    def _steps_as_ours(self, told: list[_Told]) -> Iterator[_Told]:
        mounts = {one.was for one in told if one.row.type == "subflow"}
        present: set[tuple[str, str]] = set()
        for one in told:
            row = one.row
            if row.type in ("condition", "selector") and "evidence" in row.facts:
                yield _Told(moved(row, facts=self._evidence(row.facts)), one.was)
                continue
            if row.type == "subflow":
                yield _Told(moved(row, facts=self._carried(row)), one.was)
                continue
            if row.type != "step":
                yield one
                continue
            yield from self._step(one, mounts, present)

    def _evidence(self, facts: dict[str, Any]) -> dict[str, Any]:
        evidence = self.placeholders(facts["evidence"])
        return {**facts, "evidence": depart_evidence(evidence, self.departs)}

    def _carried(self, row: Row) -> dict[str, Any]:
        values = row.facts["values"]
        if values is ANYTHING or not isinstance(values, Mapping):
            return row.facts
        if _holds_nothing(values):
            self.departs("nothing-is-absent")
        carried = self.slots(self.placeholders(plain(values)))
        if row.facts["direction"] == "exit" and "~" in row.place.rpartition("/")[2]:
            self.departs("item-comes-by-args")
            carried = {k: v for k, v in carried.items() if k not in ("item", "index")}
        return {**row.facts, "values": carried}

    def _step(self, one: _Told, mounts: set[str], present: set[tuple[str, str]]) -> Iterator[_Told]:
        row, facts = one.row, one.row.facts
        odd = self._odd(facts["summary"]) is ANYTHING or self._lists(row, facts)
        if odd or self.stays_secret(facts["key"]):
            facts = {**facts, "summary": ANYTHING}
            row = moved(row, facts=facts)
            one = _Told(row, one.was)
        if self.interrupts(row.place):
            self.departs("an-interrupted-stage-begins-anew")
            facts = {**facts, "summary": ANYTHING}
            row = moved(row, facts=facts)
            one = _Told(row, one.was)
        key, level = facts["key"], row.place.rpartition("/")[0]
        stage = self.shape.at(row.place)
        if one.was in mounts:
            yield _Told(moved(row, facts={**facts, "op": "received"}), one.was)
            if "~" not in row.place.rpartition("/")[2]:
                present.add((row.place, key))
            return
        if facts["op"] == "read":
            inside = key_of(level) in self.shape.fan_outs
            if inside and key in ("item", "index") and (level, key) not in present:
                self.departs("item-comes-by-args")
                return
            yield one
            return
        yield from self._asked(one, stage)
        if facts["operation"] == "delete" or one.row.facts["summary"] == "undefined":
            if (level, key) in present:
                present.discard((level, key))
                facts = {**facts, "operation": "delete", "summary": "undefined"}
                yield _Told(moved(row, facts=facts), one.was)
            else:
                self.departs("nothing-is-absent")
            return
        present.add((level, key))
        if facts["operation"] == "update" and self._united(one, key, stage):
            self.departs("merging-is-of-mappings")
            read = {"op": "read", "key": key, "summary": ANYTHING, "depth": 1}
            yield _Told(moved(row, facts=read), one.was)
            facts = {**facts, "operation": "set", "summary": ANYTHING}
            row = moved(row, facts=facts)
        yield _Told(row, one.was)

    def _united(self, one: _Told, key: str, stage: Any) -> bool:
        """Say whether the update of a row was written as a union of lists."""
        ops = [op for op in (() if stage is None else stage.ops) if op.get("op") == "update"]
        mine = [op for op in ops if op.get("key") == key]
        place = self._updates.get((one.was, key), 0)
        self._updates[one.was, key] = place + 1
        if place < len(mine):
            return id(mine[place]) in self.unions
        return _is_list(one.row.facts["summary"])

    def _odd(self, summary: Any) -> Any:
        """Leave a summary open that the host language makes of a value of its own."""
        if (summary == "{}" and self._tags & {"date", "set", "map"}) or (
            summary == "0" and "-0" in self._tags
        ):
            self.departs("summaries-of-python-values")
            return ANYTHING
        return summary

    def _asked(self, one: _Told, stage: Any) -> Iterator[_Told]:
        # `has` reads: ours is on the record, right before what it found is written.
        for op in () if stage is None else stage.ops:
            if op.get("op") == "has" and op.get("to") == one.row.facts["key"]:
                self.departs("asking-is-reading")
                facts = {"op": "read", "key": op["key"], "summary": ANYTHING}
                yield _Told(moved(one.row, facts=facts), one.was)

    def _own_stages(self, told: list[_Told]) -> Iterator[_Told]:
        staged = {one.was for one in told if one.row.type == "stage"}
        forks = {fork.hung_on: fork for fork in self.shape.forks}
        for one in told:
            row = one.row
            fork = forks.get(key_of(row.place)) if row.type == "fork" else None
            if fork is not None and self.shape.at(row.place).kind != "selector":
                self.departs("a-fork-is-a-stage")
                path = row.place.rpartition("/")[0]
                place = f"{path}/{fork.key.rpartition('/')[2]}" if path else fork.key
                was = f"fork after {one.was}"
                yield _Told(Row("stage", place, None, {}), was, added=True)
                yield _Told(moved(row, place=place), was)
                continue
            generated = "~" in row.place.rpartition("/")[2]
            begins = row.type in ("error", "pause", "fork", "selector", "subflow")
            if begins and one.was not in staged and not generated:
                self.departs("every-step-has-a-row")
                staged.add(one.was)
                facts = self._stage_facts(row.place)
                yield _Told(Row("stage", row.place, None, facts), one.was, added=True)
            yield one

    def _empty_fan_outs(self, told: list[_Told]) -> Iterator[_Told]:
        """Add the stage of a fan-out that had no branch, where it stands between two others."""
        chains: dict[str, list[Any]] = {}
        for stage in self.shape.walk():
            if stage.position is not None:
                chains.setdefault(stage.chart, []).append(stage)
        seen: dict[str, int] = {}
        ended = False
        for one in told:
            row = one.row
            stage = self.shape.at(row.place)
            if row.type == "stage" and stage is not None and stage.owner is None:
                yield from self._skipped(chains, seen, row.place, stage.position)
            ended = ended or row.type in ("break", "error", "pause")
            yield one
        if told and not ended and "error" not in self.observed:
            last = len(chains.get("", ()))
            yield from self._skipped(chains, seen, "", last)

    def _skipped(
        self, chains: Any, seen: dict[str, int], place: str, position: int | None
    ) -> Iterator[_Told]:
        path = place.rpartition("/")[0]
        level = f"{path}/" if path else ""
        chain = sorted(chains.get(key_of(level), ()), key=lambda stage: stage.position)
        before = seen.get(level, -1)
        for stage in chain:
            here = before < stage.position < (position or 0)
            if here and stage.kind == "for_each":
                self.departs("every-step-has-a-row")
                at = f"{level}{stage.step['id']}"
                facts = self._stage_facts(at)
                yield _Told(Row("stage", at, None, facts), f"{at} with nothing", added=True)
        if position is not None:
            seen[level] = position

    def _stage_facts(self, place: str) -> dict[str, Any]:
        stage = self.shape.at(place)
        if stage is None:
            return {}
        return {"name": stage.name, "description": stage.step.get("description")}

    def _renumbered(self, told: list[_Told]) -> list[Row]:
        counts: dict[str, int] = {}
        numbers: dict[str, int] = {}
        fans: dict[str, int] = {}
        for one in told:
            row = one.row
            if row.type == "stage":
                lane = self.shape.lane(row.place)
                numbers[one.was] = counts.get(lane, 0)
                counts[lane] = numbers[one.was] + 1
                fans[row.place] = numbers[one.was]
            generated = row.place.rpartition("~")
            if generated[1] and generated[2].isdigit():
                row.n = fans.get(generated[0])
            elif one.was in numbers:
                row.n = numbers[one.was]
            elif row.type == "resume":
                row.n = None
            if row.n != split(one.was)[1] and row.type != "resume":
                self.departs("executions-are-counted-by-track")
        return [one.row for one in told]


class _Told:
    """A row on its way to ours: what execution upstream said it was of, whether it is added."""

    __slots__ = ("added", "row", "was")

    def __init__(self, row: Row, was: str, *, added: bool = False) -> None:
        self.row = row
        self.was = was
        self.added = added


def _is_list(summary: Any) -> bool:
    return isinstance(summary, str) and (summary == "[]" or summary.endswith(("items)", "item)")))


def _holds_nothing(value: Any) -> bool:
    if value is MISSING:
        return True
    if isinstance(value, Mapping):
        return any(map(_holds_nothing, value.values()))
    return isinstance(value, list) and any(map(_holds_nothing, value))


def _is_bundle(pair: tuple[str, Any]) -> bool:
    key, value = pair
    return (
        isinstance(value, Mapping)
        and set(value) == {"id", "result", "isError"}
        and value["id"] == key
    )


__all__ = ["Departures", "Expected", "summarize"]
