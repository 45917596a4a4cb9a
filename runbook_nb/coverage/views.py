"""What an absence looks like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runbook_nb._text import clip, visible
from runbook_nb._view import Badge, Card, Data, Prose, Run, Section
from runbook_nb.coverage.fold import fold_declared
from runbook_nb.coverage.read import read_absence
from runbook_nb.errors import DefinitionError


def absence_view(value: Mapping[str, Any], name: str) -> Card:
    """Say what an absence looks like: what was looked for, where, and what to try instead.

    Parameters
    ----------
    value : mapping
        The absence, or a ledger around one.
    name : str
        The tool that answered.

    Raises
    ------
    DefinitionError
        The value is no absence.

    Examples
    --------
    >>> from runbook_nb.coverage.declare import absent
    >>> view = absence_view(absent("jobs of acme", checked=["the inventory"],
    ...                            try_instead_tool={"tool": "tenant_list"}), "backup_inventory")
    >>> view.headline
    'nothing found for: jobs of acme · try tenant_list'
    """
    absence = read_absence(value)
    if absence is None and isinstance(value, Mapping):
        absence = read_absence(value.get("result"))
    if absence is None:
        raise DefinitionError(
            f"what {name!r} returned is no absence",
            where=name,
            fix="ask read_absence first",
            code="not_an_absence",
        )
    looked_for = _text(absence.get("looked_for"))
    tool, why = _suggested_tool(absence)
    words = _text(absence.get("try_instead"))
    headline = f"nothing found for: {clip(looked_for or 'not stated', 50)}"
    if tool or words:
        headline += f" · try {clip(tool or words, 30)}"
    said: list[Run] = ["Looked for: ", looked_for or "not stated"]
    said += [". This is no verdict, and asking again returns the same."]
    if tool:
        said += [" Try instead: ", Data(value=tool), f", {why}" if why else "", "."]
    if words:
        said += [" Suggested: ", words]
    # Plain text says all of it in the headline.
    sentence = Section(label="", parts=(Prose(text=tuple(r for r in said if r)),), in_text=False)
    return Card(
        kind="Absent",
        name=visible(name),
        headline=headline,
        sections=(sentence, fold_declared([value]).section()),
        heading=("Nothing found", Badge(word="not a verdict", role="absent")),
    )


def _suggested_tool(absence: Mapping[str, Any]) -> tuple[str, str]:
    named = absence.get("try_instead_tool")
    if not isinstance(named, Mapping):
        return "", ""
    return _text(named.get("tool")), _text(named.get("why"))


def _text(value: Any) -> str:
    return visible(value.strip()) if isinstance(value, str) else ""
