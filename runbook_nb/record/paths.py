"""Paths through values: ``rows[*].conn.token``, and what follows from one step.

Record layer. One law for hiding, for learning and for counting. A step is a name, ``[*]`` or a
number; a name that meets a list goes on into every item, and a name may be spelt with dots in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

#: One step of a written path.
STEP: Final = r"[^.\[\]]+|\[\*\]|\[\d+\]"

#: A path through a value, or what is left of one.
Path = tuple[str, ...]

#: Any item of a list.
ANY: Final = "[*]"


def steps_of(path: str) -> Path:
    """Read a written path.

    Examples
    --------
    >>> steps_of("rows[*].conn.token"), steps_of("rows.0.token")
    (('rows', '[*]', 'conn', 'token'), ('rows', '0', 'token'))
    """
    return tuple(re.findall(STEP, path))


def followed(paths: Iterable[Path], name: str) -> tuple[bool, list[Path]]:
    """Go one step, by a name: say whether any path ends here, and what is left of the others.

    Examples
    --------
    >>> followed([("a", "b"), ("a", "[*]", "c"), ("d",)], "a")
    (False, [('b',), ('[*]', 'c')])
    >>> followed([("a", "b"), ("a",)], "a.b")
    (True, [])
    """
    ends, left = False, []
    for path in paths:
        if path[0] == name:
            rest = path[1:]
        elif "." in name and (length := _spelt_with_dots(path, name)):
            rest = path[length:]
        else:
            continue
        if rest:
            left.append(rest)
        else:
            ends = True
    return ends, left


def _spelt_with_dots(path: Path, name: str) -> int:
    """Give how many steps of a path one name with dots in it stands for; 0 when it does not.

    Rules read ``rows.0.token`` and ``conn.token.length``; the latter is inside what is hidden.
    """
    at = 0
    for part in name.split("."):
        if at == len(path):
            return at
        step = path[at]
        if step in (part, f"[{part}]") or (step == ANY and part.isdigit()):
            at += 1
        elif not part.isdigit() or _is_number(step):
            return 0
    return at


def item_paths(
    paths: Iterable[Path], index: int, *, any_item: bool = False
) -> tuple[bool, list[Path]]:
    """Go one step, into an item of a list.

    Parameters
    ----------
    paths : iterable of tuple
    index : int
        Place of the item.
    any_item : bool
        Whether the item stands for all of its list, so that any number means it.

    Examples
    --------
    >>> item_paths([("[*]", "a"), ("[3]", "b"), ("3", "c"), ("name",)], 3)
    (False, [('a',), ('b',), ('c',), ('name',)])
    """
    ends, left = False, []
    here = (ANY, f"[{index}]", str(index))
    for path in paths:
        step = path[0]
        if step in here or (any_item and _is_number(step)):
            if len(path) == 1:
                ends = True
            else:
                left.append(path[1:])
        elif not _is_number(step):
            left.append(path)  # a name: it is looked for in the item
    return ends, left


def _is_number(step: str) -> bool:
    return step.isdigit() or (step[0] == "[" and step != ANY)


def leads_to(path: Path, parts: Sequence[str]) -> bool:
    """Say whether what stands at some names is hidden by a path, or holds what is.

    Examples
    --------
    >>> leads_to(("rows", "[*]", "token"), ("rows", "0", "token"))
    True
    >>> leads_to(("rows", "token"), ("rows", "0", "token")), leads_to(("a", "b"), ("a",))
    (True, True)
    """
    if not path or not parts:
        return True
    step, part = path[0], parts[0]
    if step in (part, f"[{part}]") or (step == ANY and part.isdigit()):
        return leads_to(path[1:], parts[1:])
    return part.isdigit() and not _is_number(step) and leads_to(path, parts[1:])


def spread(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Give paths with those added that lead to the same values from inside a branch.

    A branch has its item under ``item``, and often loads it into its state.

    Examples
    --------
    >>> spread([("rows", "[*]", "token")])
    (('rows', '[*]', 'token'), ('token',), ('item', 'token'))
    """
    found: list[Path] = []
    for path in paths:
        found.append(path)
        for place, step in enumerate(path):
            rest = path[place + 1 :]
            if step == ANY and rest:
                found += in_branch(rest)
    return tuple(dict.fromkeys(found))


def in_branch(path: Path) -> tuple[Path, Path]:
    """Give where a branch has what a path leads to from its item.

    Examples
    --------
    >>> in_branch(("token",))
    (('token',), ('item', 'token'))
    """
    return path, ("item", *path)


def into_items(paths: Iterable[Path]) -> list[Path]:
    """Give the paths that go on into every item of a list by a name, not by a number.

    Examples
    --------
    >>> into_items([("[*]", "a"), ("3", "b"), ("token",)])
    [('token',)]
    """
    return [path for path in paths if path[0] != ANY and not _is_number(path[0])]
