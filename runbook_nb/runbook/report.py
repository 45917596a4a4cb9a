"""Admitting the procedure's own report fields, and saying which ones were refused.

Bridge layer. The answer's spine cannot be overwritten by what a procedure says of itself: a
reserved name is discarded and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from runbook_nb._json import WireReport, to_wire, wire_key
from runbook_nb._text import counted
from runbook_nb.runbook.verdicts import PROJECTION_KEYS

#: Reserved in every answer.
SPINE_KEYS: Final = ("af_coverage", "report_note", "af_provenance", "rule_version", "walk")


def reserved_names(verdict_kind: bool) -> frozenset[str]:
    """Name what a report may not spell in an answer of this kind.

    Examples
    --------
    >>> "table" in reserved_names(True), "table" in reserved_names(False)
    (True, False)
    """
    return frozenset(SPINE_KEYS + (PROJECTION_KEYS if verdict_kind else ()))


def admit_report(
    report: Any, reserved: Iterable[str], wire: WireReport | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Split a report into the fields admitted and the names refused, both in its own order.

    Examples
    --------
    >>> admit_report({"walk": 1, "stale_after_days": 7}, {"walk"})
    ({'stale_after_days': 7}, ['walk'])
    """
    if not isinstance(report, Mapping):
        return {}, []
    names = frozenset(reserved)
    admitted: dict[str, Any] = {}
    refused: list[str] = []
    for key, value in report.items():
        name = wire_key(key, wire)
        if name in names:
            refused.append(name)
        else:
            admitted[name] = fit(value, wire)
    return admitted, refused


def fit(value: Any, wire: WireReport | None = None) -> Any:
    """Make a value fit for the answer, whatever it does when it is looked at.

    Examples
    --------
    >>> loop = []; loop.append(loop)
    >>> fit(loop), fit({1, 2})
    ('<list>', [1, 2])
    """
    report = WireReport() if wire is None else wire
    try:
        return to_wire(value, report)
    except Exception:  # the run happened: a value that cannot be carried must not cost the answer
        return report.replace(value)


def refusal_note(refused: Iterable[str]) -> str | None:
    """Say which report fields were refused; None when none was.

    Examples
    --------
    >>> refusal_note(["walk"])[:52]
    "The procedure's report spelt 1 reserved name: `walk`"
    """
    names = list(refused)
    if not names:
        return None
    listed = ", ".join(f"`{name.replace('`', chr(39))}`" for name in names)
    return (
        f"The procedure's report spelt {counted(len(names), 'reserved name')}: {listed}. What "
        "stands under such a name in this answer is what the runbook itself put there, never the "
        "report's value; where it put nothing, the name is absent. All other report fields are as "
        "the procedure wrote them."
    )


def names_refused(note: str) -> list[str]:
    """Read the names off a note that says which were refused.

    Examples
    --------
    >>> names_refused(refusal_note(["walk", "table"]))
    ['walk', 'table']
    """
    return re.findall(r"`([^`]*)`", note)
