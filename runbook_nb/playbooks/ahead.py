"""Looking ahead in a batch: the plan as it would be if the calls before had succeeded."""

from __future__ import annotations

from typing import Any

from runbook_nb.playbooks.judging import Judgement, judge
from runbook_nb.playbooks.keeper import Keeper


class Ahead:
    """A batch as it would be if its calls succeeded."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._fork: Keeper | None = None
        #: The calls let through so far that the copy has not seen succeed.
        self.waiting: list[str] = []

    def admitted(self, name: str, tool: str, arguments: Any) -> None:
        """Take in a call that was let through."""
        self.waiting.append(name)
        if self._fork is not None:
            self._fork.admit(name, tool, arguments)

    def judge(self, name: str, tool: str, arguments: Any) -> Judgement:
        """Judge a call as if those before it had succeeded; one let through counts as made."""
        if self._fork is None:
            self._fork = self._keeper.fork()
        fork = self._fork
        for one in self.waiting:
            if fork.state.calls[one].outcome is None:
                fork.settle(one)
        found = judge(fork.terms, fork.state, tool, arguments)
        if found.allowed and found.violation is None:
            fork.admit(name, tool, arguments)
        return found
