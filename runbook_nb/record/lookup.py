"""Paths into recorded values: ``subjects[3].age``, read, written and followed.

Record layer. The first step is a state key, taken as it is spelt where a key of that very name is
known, dots and all. Inside, names lead into mappings, slots and named tuples, positions into
lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING, counted, did_you_mean, listed, show
from runbook_nb.errors import PathError
from runbook_nb.record.replay import Prefix

#: The steps of a path inside a value.
Steps = tuple[str | int, ...]

_STEP: Final = re.compile(
    r"""\[(?P<at>\d+)\] | \[(?P<quote>["'])(?P<quoted>.*?)(?P=quote)\] | \.?(?P<name>[^.\[\]]+)""",
    re.VERBOSE,
)

#: Names said of what is there when a path leads nowhere.
_NAMED: Final = 8


def path_of(text: str, known: Iterable[str] = ()) -> tuple[str, Steps]:
    """Read a path into its state key and the steps inside its value.

    Parameters
    ----------
    text : str
        Names joined by dots, positions in brackets, odd names quoted in brackets.
    known : iterable of str
        State keys there are; the longest that the path begins with is taken literally.

    Raises
    ------
    PathError
        It is no path, or one for many values at once (``[*]``).

    Examples
    --------
    >>> path_of("subjects[3].age"), path_of("a.b.c", ["a.b"])
    (('subjects', (3, 'age')), ('a.b', ('c',)))
    """
    given: Any = text
    if not isinstance(given, str) or not given:
        raise PathError(
            f"{text!r} is no path",
            code="bad_path",
            where="path",
            fix='write a state key, or a place inside one: "rows[3].age"',
        )
    key = ""
    for one in known:
        if len(one) > len(key) and text.startswith(one) and text[len(one) : len(one) + 1] in _ENDS:
            key = one
    if key:
        return key, steps_of(text[len(key) :], text)
    first, *rest = steps_of(text, text)
    if isinstance(first, int):
        raise _no_path(text)
    return first, tuple(rest)


_ENDS: Final = ("", ".", "[")


def steps_of(rest: str, whole: str) -> Steps:
    """Read the steps of a path, or of what is left of one."""
    if "[*]" in rest:
        raise PathError(
            f"{whole!r} asks for every item at once; each has a history of its own",
            code="wildcard_path",
            where=whole,
            fix=f"name one item: {whole.replace('[*]', '[0]')!r}",
        )
    steps: list[str | int] = []
    end = 0
    for found in _STEP.finditer(rest):
        if found.start() != end:
            break
        at, name = found["at"], found["name"]
        steps.append(int(at) if at is not None else found["quoted"] if name is None else name)
        end = found.end()
    if end != len(rest) or (rest == whole and rest.startswith(".")):
        raise _no_path(whole)
    return tuple(steps)


def _no_path(text: str) -> PathError:
    return PathError(
        f"{text!r} is no path",
        code="bad_path",
        where=text,
        fix="write names joined by dots, with positions in brackets: rows[3].age",
    )


def path_text(key: str, steps: Iterable[str | int] = ()) -> str:
    """Write a path.

    Examples
    --------
    >>> path_text("subjects", (3, "age")), path_text("m", ("a b.c",))
    ('subjects[3].age', 'm["a b.c"]')
    """
    text = key
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[^.\[\]]+", step):
            text += f".{step}"
        else:
            text += f'["{step}"]'
    return text


def inside(value: Any, step: str | int) -> Any:
    """Give what one step leads to inside a value; `MISSING` where it leads nowhere."""
    if isinstance(value, Prefix):
        at = step if isinstance(step, int) else -1
        return value.items[at] if 0 <= at < value.length else MISSING
    if isinstance(value, Mapping):
        return value.get(step, MISSING)
    if isinstance(step, int):
        plain = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
        return value[step] if plain and step < len(value) else MISSING
    return getattr(value, step) if step in names_in(value) else MISSING


def follow(value: Any, steps: Iterable[str | int]) -> Any:
    """Give what stands at the end of a path inside a value; `MISSING` where nothing does."""
    for step in steps:
        if value is MISSING:
            break
        value = inside(value, step)
    return value


def names_in(value: Any) -> tuple[str, ...]:
    """Give the names that lead into a value: keys, fields, positions in no case."""
    if isinstance(value, Mapping):
        return tuple(key for key in value if isinstance(key, str))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(value._fields)
    ours: Any = value if isinstance(value, Immutable) else None
    return tuple(one.name for one in fields(ours)) if is_dataclass(ours) else ()


def must_follow(value: Any, key: str, steps: Steps) -> Any:
    """Follow a path that has to lead somewhere.

    Raises
    ------
    PathError
        Naming the step at which it leads nowhere, and what is there instead.
    """
    for place, step in enumerate(steps):
        found = inside(value, step)
        if found is MISSING:
            raise _nowhere(value, key, steps, place)
        value = found
    return value


def _nowhere(value: Any, key: str, steps: Steps, place: int) -> PathError:
    step, before = steps[place], path_text(key, steps[:place])
    names = names_in(value)
    fix: str | None = None
    if value.__class__ is Prefix or isinstance(value, list | tuple) or hasattr(value, "fan_out"):
        length = value.length if value.__class__ is Prefix else len(value)
        there = f"it has {counted(length, 'item')}"
        fix = f"its positions are 0 to {length - 1}" if length else None
    elif names:
        there = f"it has {listed(names[:_NAMED])}{' and more' if len(names) > _NAMED else ''}"
        fix = did_you_mean(str(step), names)
    else:
        there = f"it is {show(value)}" if not isinstance(value, Mapping) else "it is empty"
    told = f"position {step}" if isinstance(step, int) else repr(step)
    return PathError(
        f"there is no {told} in {before!r}: {there}",
        where=path_text(key, steps),
        fix=fix,
    )
