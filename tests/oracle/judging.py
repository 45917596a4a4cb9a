"""Better behaviours, asserted by name for the cases whose recording is not to be matched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import replay_run
from replay_commits import Change, our_changes
from replay_rows import Row
from replay_seen import Seen, plain_value
from replay_shape import Shape

#: Case id -> what is asserted of it instead of its recording.
BETTER: dict[str, Callable[[Judged], None]] = {}


def better(*ids: str) -> Callable[[Callable[[Judged], None]], Callable[[Judged], None]]:
    """Register a better behaviour for cases, by their ids."""

    def register(judge: Callable[[Judged], None]) -> Callable[[Judged], None]:
        for id in ids:
            held = BETTER.get(id)
            assert held is None or held.__name__ == judge.__name__, f"{id} is judged twice"
            BETTER[id] = judge
        return judge

    return register


class Judged:
    """One replayed case, as better behaviours look at it."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        self.replay = replay_run.replay(case)
        self.shape = Shape(case["program"])

    @property
    def run(self) -> Any:
        """The last run."""
        assert self.replay.refused is None, f"refused: {self.replay.refused}"
        assert self.replay.run is not None, f"nothing has run: {self.replay.error}"
        return self.replay.run

    @property
    def error(self) -> Any:
        """What ended the run, or the refusal to build."""
        return self.replay.error or self.replay.refused

    @cached_property
    def seen(self) -> Seen:
        """The record."""
        return Seen(self.run, self.replay.chart)

    @property
    def state(self) -> Any:
        """The final state, as it is."""
        return plain_value(self.run.raw[1])

    def rows(self, *types: str, of: str | None = None) -> list[Row]:
        """Give the rows of some types, and of one stage."""
        return [
            row
            for row in self.seen.rows
            if (not types or row.type in types) and of in (None, row.place)
        ]

    def writes(self, of: str) -> dict[str, str]:
        """Give what the rows of a stage say it wrote: key -> summary."""
        steps = self.rows("step", of=of)
        return {row.facts["key"]: row.facts["summary"] for row in steps if "operation" in row.facts}

    def reads(self, of: str) -> list[str]:
        """Give the keys the rows of a stage say it read."""
        return [row.facts["key"] for row in self.rows("step", of=of) if row.facts["op"] == "read"]

    def commits(self, of: str) -> list[Change]:
        """Give the commits of a stage."""
        return [one for one in our_changes(self.run) if one.place == of]

    def problems(self) -> list[str]:
        """Give where a refused chart is wrong."""
        assert self.replay.refused is not None, "the chart was built"
        return [f"{one.where}: {one.message}" for one in self.replay.refused.problems]  # type: ignore[attr-defined]
