"""Provenance: the stamp an inner answer carries, and the stamp of the call that passes it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def carried_provenance(results: Iterable[Any]) -> dict[str, Any]:
    """Find the stamp to carry: that of the first result that has one.

    In each result the stamp of its ``result`` payload comes before one at its top level. Stamps
    are never merged, and one that is no mapping is passed over.

    Parameters
    ----------
    results : iterable
        What the inner calls returned, in the order the calls were started.

    Returns
    -------
    dict
        A new dict; empty when no result has a stamp.

    Examples
    --------
    >>> carried_provenance([{"result": {"af_provenance": {"source": "seed"}}}])
    {'source': 'seed'}
    """
    found = (stamp_of(result) for result in results)
    return next((dict(stamp) for stamp in found if stamp is not None), {})


def stamp_of(result: Any) -> Mapping[str, Any] | None:
    """Give the stamp one result carries, as it stands there; None when it has none."""
    if isinstance(result, Mapping):
        for holder in (result.get("result"), result):
            found = holder.get("af_provenance") if isinstance(holder, Mapping) else None
            if isinstance(found, Mapping):
                return found
    return None


def stamp(carried: Mapping[str, Any] | None, tool: str, tool_call_id: str) -> dict[str, Any]:
    """Stamp an answer with the tool and call that gave it, on top of what it carries.

    Carried fields named ``tool`` and ``toolCallId`` are replaced where they stand.

    Examples
    --------
    >>> stamp({"tool": "inventory", "source": "seed"}, "triage", "c1")
    {'tool': 'triage', 'source': 'seed', 'toolCallId': 'c1'}
    """
    return {**(carried or {}), "tool": tool, "toolCallId": tool_call_id}
