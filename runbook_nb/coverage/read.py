"""Recognising a declared boundary on a value a tool returned.

Recognition is strict, since taking an ordinary value for an absence would turn a finding into
nothing; reading what was recognised is lenient, since the call has already happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from runbook_nb._frozen import Immutable
from runbook_nb._value import frozen
from runbook_nb.coverage.ledger import Ledger


def read_absence(value: Any) -> Mapping[str, Any] | None:
    """Give the value back when it is an absence, else None.

    An absence is a mapping whose ``af_absent`` is exactly True and whose ``checked`` is a list
    with something in it.

    Examples
    --------
    >>> read_absence({"af_absent": 1, "checked": [{"what": "a"}]}) is None
    True
    """
    if not isinstance(value, Mapping) or value.get("af_absent") is not True:
        return None
    checked = value.get("checked")
    return value if isinstance(checked, list | tuple) and checked else None


def read_coverage_ledger(value: Any) -> Mapping[str, Any] | None:
    """Give the value back when it carries a ledger, else None.

    Such a value is a mapping whose ``af_coverage`` is a mapping and that has a ``result``, which
    may be None. A runbook's envelope is one.

    Examples
    --------
    >>> read_coverage_ledger({"af_coverage": {}, "result": None})
    {'af_coverage': {}, 'result': None}
    >>> read_coverage_ledger({"af_coverage": {}}) is None
    True
    """
    if not isinstance(value, Mapping) or "result" not in value:
        return None
    return value if isinstance(value.get("af_coverage"), Mapping) else None


@frozen
class Declared(Immutable):
    """One boundary a value declared.

    Attributes
    ----------
    kind : {"absence", "ledger"}
        In which form it was declared.
    ledger : Ledger
        Its three lists.
    looked_for : str or None
        What an absence was looking for.
    """

    kind: Literal["absence", "ledger"]
    ledger: Ledger
    looked_for: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the plain form, for events: ``kind``, ``looked_for`` if any, the lists."""
        named = {} if self.looked_for is None else {"looked_for": self.looked_for}
        return {"kind": self.kind, **named, **self.ledger.lists()}


@frozen
class CoverageReading(Immutable):
    """Everything a value declared about its ground.

    Attributes
    ----------
    status : {"absent"} or None
        ``"absent"`` when the answer, or what the ledger is wrapped around, is an absence.
    declared : tuple of Declared
        The boundaries, outermost first.
    """

    status: Literal["absent"] | None
    declared: tuple[Declared, ...]


def declaring_part(value: Any) -> Mapping[str, Any] | None:
    """Give what a value declares its ground with, without what it found; None for nothing.

    What `read_coverage_result` reads off the part is what it reads off the value.

    Examples
    --------
    >>> declaring_part({"af_coverage": {"checked": ["a"]}, "result": [1, 2]})
    {'af_coverage': {'checked': ['a']}, 'result': None}
    """
    if (absence := read_absence(value)) is not None:
        return absence
    wrapped = read_coverage_ledger(value)
    if wrapped is None:
        return None
    return {"af_coverage": wrapped["af_coverage"], "result": read_absence(wrapped["result"])}


def read_coverage_result(value: Any) -> CoverageReading | None:
    """Read whatever boundary a returned value declares; None when it declares none.

    Examples
    --------
    >>> from runbook_nb.coverage.declare import absent, coverage
    >>> inner = absent("jobs of acme", checked=["the inventory"])
    >>> reading = read_coverage_result(coverage(inner, not_checked=["archived tenants"]))
    >>> reading.status, [declared.kind for declared in reading.declared]
    ('absent', ['ledger', 'absence'])
    """
    absence = read_absence(value)
    if absence is not None:
        return CoverageReading(status="absent", declared=(_declared(absence),))
    wrapped = read_coverage_ledger(value)
    if wrapped is None:
        return None
    ledger = Declared(
        kind="ledger", ledger=Ledger.from_dict(wrapped["af_coverage"]).with_sentence(None)
    )
    inside = read_absence(wrapped["result"])
    if inside is None:
        return CoverageReading(status=None, declared=(ledger,))
    return CoverageReading(status="absent", declared=(ledger, _declared(inside)))


def _declared(absence: Mapping[str, Any]) -> Declared:
    looked_for = absence.get("looked_for")
    return Declared(
        kind="absence",
        ledger=Ledger.from_dict(absence).with_sentence(None),
        looked_for=looked_for if isinstance(looked_for, str) else None,
    )
