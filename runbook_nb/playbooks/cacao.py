"""What both directions between playbooks and CACAO documents (v2.0) go by: names, ids, times.

A CACAO document is a graph of steps as JSON. What it has no word for (expected tools, evidence,
bounds, hints) is written under one extension of ours, so that a playbook comes back as it was.
Ids are derived from those of the playbook and its steps: exporting it twice gives equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid5

from runbook_nb._json import canonical
from runbook_nb.errors import PlaybookDefinitionError

#: The version of CACAO that is read and written.
SPEC_VERSION: Final = "cacao-2.0"

#: What ids are derived under. The namespace that CACAO reserves is for ids made by its own rule.
NAMESPACE: Final = UUID("6f3d91b7-04a9-5c42-b402-b3afac372cd5")

#: The extension that carries what CACAO has no word for, and the version of its content.
EXTENSION: Final = f"extension-definition--{uuid5(NAMESPACE, 'extension/1')}"
EXTENSION_VERSION: Final = "1.0.0"

#: Stands for whoever publishes a document, where nobody was named.
PLACEHOLDER_IDENTITY: Final = f"identity--{uuid5(NAMESPACE, 'placeholder')}"

#: The kinds of step there are.
STEP_TYPES: Final = (
    "start",
    "end",
    "action",
    "playbook-action",
    "parallel",
    "if-condition",
    "while-condition",
    "switch-condition",
)

#: Where a step says what follows it; branches are named by their word or place.
FOLLOWING: Final = ("on_completion", "on_success")
LINKS: Final = (*FOLLOWING, "on_failure", "on_true", "on_false", "cases", "next_steps")

_UUID: Final = (
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-5][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
)
_IDENTIFIER: Final = re.compile(rf"([a-z][a-z0-9-]+[a-z0-9])--{_UUID}\Z")
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-(0[1-9]|1[012])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?Z\Z"
)


def kind_of(identifier: Any) -> str | None:
    """Give what an id says it names (``"action"``); None for what is no id.

    Examples
    --------
    >>> kind_of("action--5b3afdee-8d9e-45cd-9b88-12ed2c70aa0a"), kind_of("action--1")
    ('action', None)
    """
    found = _IDENTIFIER.match(identifier) if isinstance(identifier, str) else None
    return found[1] if found else None


def is_timestamp(text: Any) -> bool:
    """Say whether a text is a time as CACAO writes it.

    Examples
    --------
    >>> is_timestamp("2026-11-29T01:02:03.000Z"), is_timestamp("2026-11-29")
    (True, False)
    """
    return isinstance(text, str) and _TIMESTAMP.match(text) is not None


def identifier(kind: str, *names: Any) -> str:
    """Derive the id of an object from what names it.

    Examples
    --------
    >>> identifier("action", "ir", "detect") == identifier("action", "ir", "detect")
    True
    """
    return f"{kind}--{uuid5(NAMESPACE, canonical([kind, *names]))}"


def timestamp(moment: datetime | str, name: str) -> str:
    """Write a time to the millisecond, in UTC.

    Raises
    ------
    PlaybookDefinitionError
        It has no time zone, or the text is no such time.

    Examples
    --------
    >>> timestamp(datetime(2026, 11, 29, tzinfo=UTC), "created")
    '2026-11-29T00:00:00.000Z'
    """
    if isinstance(moment, str):
        if is_timestamp(moment):
            return moment
    elif moment.tzinfo is not None:
        text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    raise PlaybookDefinitionError(
        f"{name} is no time in UTC: {moment!r}",
        code="bad_time",
        where=name,
        fix="give a datetime with a time zone, or a text like '2026-11-29T01:02:03.000Z'",
    )


def links_of(step: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield where a step says what follows (``"cases.high"``), with the id that stands there.

    Examples
    --------
    >>> list(links_of({"type": "parallel", "next_steps": ["a", "b"], "on_completion": "c"}))
    [('on_completion', 'c'), ('next_steps[0]', 'a'), ('next_steps[1]', 'b')]
    """
    for name in LINKS:
        found = step.get(name)
        if name == "cases" and isinstance(found, Mapping):
            yield from ((f"{name}.{case}", target) for case, target in found.items())
        elif name == "next_steps" and isinstance(found, list):
            yield from ((f"{name}[{n}]", target) for n, target in enumerate(found))
        elif name in step:
            yield name, found


def branches_of(step: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give the branches of a step: where each is named, and the id of its first step."""
    return [(where, target) for where, target in links_of(step) if where not in _SEQUENCE]


_SEQUENCE: Final = (*FOLLOWING, "on_failure")


def next_of(step: Mapping[str, Any]) -> str | None:
    """Give the id of what follows a step that went well, once its branches are done."""
    found: str | None = step.get("on_completion", step.get("on_success"))
    return found
