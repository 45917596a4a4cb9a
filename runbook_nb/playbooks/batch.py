"""The calls of one reply: how they are given, and judged as if those before had succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.judging import Judgement, judge
from runbook_nb.playbooks.keeper import Keeper

#: A call of a batch: a tool's name, or that and its arguments, or a mapping of both and an id.
BatchCall = str | Sequence[Any] | Mapping[str, Any]


def read_batch(calls: Sequence[BatchCall]) -> list[tuple[str, Any, str | None]]:
    """Read the calls of a batch: tool, arguments and call id of each.

    Examples
    --------
    >>> read_batch(["scan", ("scan", {"q": 1}), {"tool": "scan", "call_id": "c7"}])
    [('scan', None, None), ('scan', {'q': 1}, None), ('scan', None, 'c7')]
    """
    read: list[tuple[str, Any, str | None]] = []
    for place, call in enumerate(calls):
        if isinstance(call, str):
            read.append((call, None, None))
        elif isinstance(call, Mapping) and isinstance(call.get("tool"), str):
            read.append((call["tool"], call.get("arguments"), call.get("call_id")))
        elif isinstance(call, Sequence) and call and isinstance(call[0], str):
            tool, arguments, call_id = (*call, None, None)[:3]
            read.append((tool, arguments, call_id))
        else:
            raise PlaybookError(
                f"call {place} of the batch is {call!r:.80}",
                code="bad_batch",
                where=f"calls[{place}]",
                fix="write a tool's name, (tool, arguments) or {'tool': …, 'arguments': …}",
            )
    return read


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
