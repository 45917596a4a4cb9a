"""What a tool says about the ground its answer stands on: `coverage` and `absent`.

Both give ordinary dicts whose keys are published, so that a model, a log and another program read
the same thing. The notes inside are constants: nothing from a call is ever written into them, and
they speak of *the call that returned* the value, because they are read again during later calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runbook_nb.coverage.items import Items, known_keys, normalize, refusal, required_text

#: Stands in every coverage block.
COVERAGE_NOTE: Final = (
    "Only the ground listed under `checked` backs the result. The call that returned it left the "
    "ground under `not_checked` unexamined. The ground under `cannot_cover` stays out of that "
    "tool's reach, so asking it again does not help. A clean outcome is no evidence about either "
    "of those two lists. Whoever answers from the result must pass these limits on."
)

#: Stands in every absence.
ABSENCE_NOTE: Final = (
    "The search was carried to its end and matched nothing: a valid answer, not a failure. No "
    "value was put in its place. Repeating it with equal arguments is pointless. The answer holds "
    "for the ground under `checked` alone; ground under `not_checked` or `cannot_cover` needs "
    "another question."
)


def coverage(
    result: Any,
    *,
    checked: Items = None,
    not_checked: Items = None,
    cannot_cover: Items = None,
) -> dict[str, Any]:
    """Wrap a result with the ground it stands on.

    The result is handed through untouched; lists that are empty are left out.

    Parameters
    ----------
    result : object
        What the tool found.
    checked : list of Item, str or mapping, optional
        Ground that was looked at.
    not_checked : list, optional
        Ground that was left out this time.
    cannot_cover : list, optional
        Ground the tool can never look at; each item says why.

    Returns
    -------
    dict
        ``{"af_coverage": {"checked"?, "not_checked"?, "cannot_cover"?, "note"}, "result"}``.

    Raises
    ------
    DefinitionError
        No list has an item, or an item cannot be read; the message names list and index.

    Examples
    --------
    >>> answer = coverage({"rows": 3}, checked=["the backup inventory"])
    >>> answer["af_coverage"]["checked"], answer["result"]
    ([{'what': 'the backup inventory'}], {'rows': 3})
    """
    lists = _lists(checked, not_checked, cannot_cover)
    if not lists:
        raise refusal(
            "coverage() declares no ground at all",
            "coverage",
            "name at least what was looked at: checked=['…']",
        )
    return {"af_coverage": {**lists, "note": COVERAGE_NOTE}, "result": result}


def absent(
    what: str,
    *,
    checked: Items,
    not_checked: Items = None,
    cannot_cover: Items = None,
    try_instead: Any = None,
    try_instead_tool: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Say that a completed search found nothing.

    An absence is an answer. When the tool could not look, that is an error: raise one.

    Parameters
    ----------
    what : str
        What was looked for.
    checked : list of Item, str or mapping
        Where it was looked for; at least one item.
    not_checked, cannot_cover : list, optional
        As in `coverage`.
    try_instead : str, optional
        A suggestion in words. Values that say nothing (blank, None, False, numbers, lists) give
        no suggestion; a mapping is refused, since a tool is named in ``try_instead_tool``.
    try_instead_tool : mapping, optional
        ``{"tool": name, "why"?: reason}``: one tool, whose name is not looked up.

    Returns
    -------
    dict
        ``af_absent``, ``outcome``, ``looked_for``, the lists, ``retry_returns_the_same``, the
        suggestions and ``note``, in this order.

    Raises
    ------
    DefinitionError
        Nothing was looked for or nothing was checked, or an item cannot be read.

    Examples
    --------
    >>> answer = absent("backup jobs of acme", checked=["the backup inventory"])
    >>> answer["af_absent"], answer["outcome"], answer["looked_for"]
    (True, 'nothing_found', 'backup jobs of acme')
    """
    looked_for = required_text(what, "what")
    lists = _lists(checked, not_checked, cannot_cover)
    if "checked" not in lists:
        raise refusal(
            f"absent({looked_for[:60]!r}) checked nothing, so it cannot say that nothing is there",
            "checked",
            "name where it was looked for, or raise an error when the tool could not look",
        )
    answer: dict[str, Any] = {
        "af_absent": True,
        "outcome": "nothing_found",
        "looked_for": looked_for,
        **lists,
        "retry_returns_the_same": True,
    }
    suggestion = _suggestion(try_instead)
    if suggestion:
        answer["try_instead"] = suggestion
    if try_instead_tool is not None:
        answer["try_instead_tool"] = _suggested_tool(try_instead_tool)
    return {**answer, "note": ABSENCE_NOTE}


def _lists(checked: Items, not_checked: Items, cannot_cover: Items) -> dict[str, Any]:
    read = {
        "checked": normalize("checked", checked),
        "not_checked": normalize("not_checked", not_checked),
        "cannot_cover": normalize("cannot_cover", cannot_cover, require_why=True),
    }
    return {name: [item.to_dict() for item in items] for name, items in read.items() if items}


def _suggestion(value: Any) -> str:
    if isinstance(value, Mapping):
        raise refusal(
            "try_instead is a sentence, not a mapping",
            "try_instead",
            "name a tool as try_instead_tool={'tool': '…', 'why': '…'}",
        )
    return value.strip() if isinstance(value, str) else ""


def _suggested_tool(value: Any) -> dict[str, str]:
    where = "try_instead_tool"
    if not isinstance(value, Mapping):
        raise refusal(
            f"{where} names one tool in a mapping, not a {type(value).__name__}",
            where,
            "write try_instead_tool={'tool': '…', 'why': '…'}",
        )
    known_keys(value, ("tool", "why"), where)
    named = {"tool": required_text(value.get("tool"), f"{where}.tool")}
    if value.get("why") is not None:  # writers of JSON send null for what they leave out
        named["why"] = required_text(value["why"], f"{where}.why")
    return named
