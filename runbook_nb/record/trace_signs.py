"""What can be told of a value by sight: that it is the very object that was read elsewhere.

Record layer. Recorded values are frozen once and handed out as they are, so a list or a mapping
that is passed on is the object itself, and its content came from there whatever else was read. Of
numbers and texts it tells nothing: the interpreter keeps one of many of them. A log that was
written down and read back has lost it all, and is traced by the keys alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from runbook_nb._text import MISSING
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.lookup import Steps, follow
from runbook_nb.record.replay import Prefix, value_of_held


def is_container(value: Any) -> bool:
    """Say whether a value is a list or a mapping, as recorded ones are."""
    return isinstance(value, dict | list) or value.__class__ is Prefix


def same_object(a: Any, b: Any) -> bool:
    """Say whether two values are one object that can be told from equal ones."""
    return a is b and is_container(a)


def same_items(held: Any, items: Sequence[Any]) -> bool:
    """Say whether two lists hold the same objects, each of which can be told from equal ones."""
    if held.__class__ is Prefix:
        held = value_of_held(held)
    if not isinstance(held, list) or len(held) != len(items):
        return False
    return bool(items) and all(map(same_object, held, items))


def grew_from(before: Any, after: Any) -> bool:
    """Say whether a value holds all of another, and may have been made by adding to it."""
    before, after = value_of_held(before), value_of_held(after)
    if isinstance(before, list) and isinstance(after, list):
        return len(after) > len(before) and all(map(deep_equal, before, after))
    return isinstance(before, dict) and isinstance(after, dict) and before.keys() <= after.keys()


def ways(before: Any, after: Any, given: Any, *, known: bool = False) -> Iterator[tuple[int, bool]]:
    """Say how a value may have come out of a mounted chart.

    Yields where in ``after`` it begins, and whether it was joined to what was there. Where it is
    known to have come out, values need not be equal: what was hidden in a recording never is.
    """
    after, given = value_of_held(after), value_of_held(given)
    before = value_of_held(before)
    if after is given or deep_equal(after, given):
        yield 0, False
        return
    if isinstance(given, list) and isinstance(before, list) and isinstance(after, list):
        joined = len(after) == len(before) + len(given)
        tail = after[len(before) :]
        if joined and given and (known or all(a is b for a, b in zip(tail, given, strict=True))):
            yield len(before), True
            return
    elif (
        isinstance(given, dict)
        and isinstance(before, dict)
        and isinstance(after, dict)
        and given
        and len(after) <= len(before) + len(given)
        and all(key in after for key in given)
    ):
        yield 0, True
        return
    if known:
        yield 0, False


def moved(steps: Steps, start: int) -> Steps | None:
    """Move a path from the joined list into the list that was put behind it."""
    if not start or not steps:
        return steps
    first = steps[0]
    return (first - start, *steps[1:]) if isinstance(first, int) and first >= start else None


def dotted(at: Callable[[str, int], Any], key: str, time: int) -> tuple[str, Steps]:
    """Read a dotted key as rules do: a path into what its first part holds."""
    first, *names = key.split(".")
    held = at(first, time)
    steps: list[str | int] = []
    for name in names:
        is_list = held.__class__ is Prefix or isinstance(held, list | tuple)
        steps.append(int(name) if is_list and name.isascii() and name.isdigit() else name)
        held = follow(held, steps[-1:])
        if held is MISSING:
            return first, ()
    return first, tuple(steps)
