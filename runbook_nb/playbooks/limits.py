"""Limits of a step that no run could keep: one law for whoever reads, judges or looks through one.

How long an id may be is said here too.

Who asks decides how grave that is, and under which code it is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

#: Longest id of a playbook or a step that is read, and longest name of a step that is drawn.
MAX_ID: Final = 400


def id_fault(value: str) -> tuple[str, str] | None:
    """Say what is wrong with how long an id is, and what to write instead; None where it is fine.

    Examples
    --------
    >>> id_fault("detect") is None, id_fault("x" * 1000)[0]
    (True, 'has 1,000 characters, and may have 400')
    """
    if len(value) <= MAX_ID:
        return None
    return f"has {len(value):,} characters, and may have {MAX_ID}", "say more in the description"


class LimitFault(NamedTuple):
    """A limit of a step that cannot hold.

    Attributes
    ----------
    code : {"cap_below_one", "floor_above_cap"}
        What is wrong.
    field : str
        Which field of the step says so.
    message, fix : str
        What is wrong with that field, and what to write instead.
    """

    code: Literal["cap_below_one", "floor_above_cap"]
    field: str
    message: str
    fix: str


def limit_faults(floor: int | None, cap: int | None) -> Iterator[LimitFault]:
    """Yield what is wrong with how many calls a step takes at least and at most.

    The first is what keeps any call from being made; whoever tells one thing only tells that.

    Examples
    --------
    >>> [fault.code for fault in limit_faults(5, 3)]
    ['floor_above_cap']
    """
    if cap is None:
        return
    if cap < 1:
        yield LimitFault(
            "cap_below_one",
            "max_tool_calls",
            f"is {cap}, and a step takes one call at least",
            "write 1 or more, or leave it out",
        )
    if floor is not None and floor > cap:
        yield LimitFault(
            "floor_above_cap",
            "min_tool_calls",
            f"is {floor}, more than the {cap} calls the step may take",
            f"write {max(cap, 0)} or less, or raise max_tool_calls",
        )
