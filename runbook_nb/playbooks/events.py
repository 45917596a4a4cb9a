"""Events: what can happen to a plan, how it is written and read, and how it happens.

Every change of a plan is one frozen event. The live enforcer decides, makes an event and applies
it; a journal applies the same events again and comes to the same plan without judging anything,
because what was decided, which probes were met and which calls counted is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any, Final

from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.applying import apply, replay
from runbook_nb.playbooks.eventkinds import (
    FIELDS,
    KINDS,
    Admitted,
    Approved,
    Begun,
    Closed,
    Declined,
    Event,
    Failed,
    Finished,
    Refused,
    Reset,
    Resumed,
    Settled,
    Skipped,
    Stuck,
    TimedOut,
    ViolationNoted,
    args_digest,
)
from runbook_nb.playbooks.model import Playbook, PlaybookPlan

__all__ = [
    "KINDS",
    "Admitted",
    "Approved",
    "Begun",
    "Closed",
    "Declined",
    "Event",
    "Failed",
    "Finished",
    "Refused",
    "Reset",
    "Resumed",
    "Settled",
    "Skipped",
    "Stuck",
    "TimedOut",
    "ViolationNoted",
    "apply",
    "args_digest",
    "from_dict",
    "replay",
]

#: By kind, the fields that are tuples, and those that cannot be left out.
_TUPLES: Final = {
    kind: {f.name for f in fields(one) if "tuple" in str(f.type)} for kind, one in KINDS.items()
}
_NEEDED: Final = {
    kind: {f.name for f in fields(one) if f.default is MISSING and f.default_factory is MISSING}
    for kind, one in KINDS.items()
}


def from_dict(told: Mapping[str, Any]) -> Event:
    """Read an event back from what `Event.to_dict` gave.

    Raises
    ------
    PlaybookError
        There is no such kind of event, or it lacks something or has more than it should.

    Examples
    --------
    >>> from datetime import UTC
    >>> event = Approved(seq=4, at=datetime(2026, 1, 1, tzinfo=UTC), step_id="pay", who="ana")
    >>> from_dict(event.to_dict()) == event
    True
    """
    kind = told.get("kind")
    made = KINDS.get(kind) if isinstance(kind, str) else None
    if made is None or not isinstance(kind, str):
        raise PlaybookError(
            f"there is no kind of event {kind!r}",
            code="bad_event",
            where="kind",
            fix=f"the kinds are {', '.join(KINDS)}",
        )
    values = {name: value for name, value in told.items() if name not in ("kind", "args_digest")}
    odd = values.keys() ^ (_NEEDED[kind] | (values.keys() & set(FIELDS[kind])))
    if odd:
        raise PlaybookError(
            f"an event {kind!r} cannot have, or lacks, {', '.join(sorted(odd))}",
            code="bad_event",
            where=str(told.get("seq")),
        )
    try:
        values["at"] = datetime.fromisoformat(values["at"])
        for name in _TUPLES[kind] & values.keys():
            values[name] = tuple(values[name])
        if kind == "begun":
            values["playbook"] = Playbook.model_validate(values["playbook"])
            if values.get("plan") is not None:
                values["plan"] = PlaybookPlan.model_validate(values["plan"])
    except (TypeError, ValueError) as error:
        raise PlaybookError(
            f"an event {kind!r} cannot be read: {error}",
            code="bad_event",
            where=str(told.get("seq")),
        ) from error
    return made(**values)
