"""What every part of a comparison shares: the case, its replay, what was compared, what differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay_expected import Departures, Expected
from replay_run import Replay
from replay_seen import Seen


@dataclass
class Comparison:
    """What comparing one case found.

    Attributes
    ----------
    compared : dict of str to str
        Observed keys compared, and what of them.
    wrong : list of str
    departures : Departures
    """

    replay: Replay
    departures: Departures = field(default_factory=Departures)
    compared: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Comparing:
    """One case, its replay and its recording side by side."""

    def __init__(self, case: Mapping[str, Any], replay: Replay) -> None:
        self.case = case
        self.replay = replay
        self.observed = case["observed"]
        self.found = Comparison(replay)
        self.departs = self.found.departures.departs
        self.expected = Expected(case, self.found.departures)
        self.expected.unions = replay.unions
        self.shape = self.expected.shape
        self._seen: Seen | None = None

    @property
    def run(self) -> Any:
        return self.replay.run

    @property
    def seen(self) -> Seen:
        if self._seen is None:
            self._seen = Seen(self.run, self.replay.chart)
        return self._seen

    def differ(self, key: str, wrong: list[str] | str | None) -> None:
        """Note what differs in one key."""
        for one in [wrong] if isinstance(wrong, str) else wrong or ():
            self.found.wrong.append(f"{key}: {one}")

    def told(self, key: str, what: str) -> None:
        """Note what of a key was compared."""
        self.found.compared[key] = what

    def _fresh(self) -> bool:
        return any(one.get("mode") == "fresh" for one in self.expected.run.get("resume") or ())

    def _scrubbed(self, value: Any) -> Any:
        """Hide a value that is met under a hidden name wherever it stands."""
        probe = self.case.get("leak_probe")
        if not probe or not self.run.redactor.active:
            return value
        if isinstance(value, Mapping):
            return {key: self._scrubbed(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._scrubbed(one) for one in value]
        if isinstance(value, str) and probe in value:
            self.departs("a-secret-is-hidden-wherever-it-stands")
            return value.replace(probe, "[REDACTED]")
        return value


def category_of(recorded: Any) -> str | None:
    """Give the category of a recorded error whose wording is upstream's."""
    if isinstance(recorded, Mapping):
        category = recorded.get("category")
        return None if category is None else str(category)
    return None
