"""Documents of other formats, which read as a playbook would lose what they say: told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Keys by which steps of a graph playbook say what an order of steps cannot.
GRAPH_KEYS = ("after", "branches", "allowed_tools", "approval")


def foreign_format(document: Any) -> tuple[str, str] | None:
    """Say which other format a document is of, and what to do with it; None where it is of none.

    Examples
    --------
    >>> foreign_format({"id": "x", "version": "playbook.v2", "step_groups": []})[0]
    'a graph playbook (playbook.v2)'
    >>> foreign_format({"id": "x", "version": "2"}) is None
    True
    """
    if isinstance(document, list):
        plays = [one for one in document if isinstance(one, Mapping) and "hosts" in one]
        if plays:
            return "an Ansible playbook", "write each task as a step, and its tool beside it"
        return None
    if not isinstance(document, Mapping):
        return None
    if document.get("version") == "playbook.v2":
        return (
            "a graph playbook (playbook.v2)",
            "write its steps in order, `allowed_tools` as `expected_tools` and `approval` as "
            "`kind: approval`; branches have no counterpart",
        )
    said = str(document.get("spec_version", ""))
    if said.startswith("cacao") or (document.get("type") == "playbook" and "workflow" in document):
        return (
            "a CACAO playbook",
            "write it as a playbook by `runbook-nb export FILE --to native`, or read it with "
            "runbook_nb.playbooks.from_cacao",
        )
    if "arazzo" in document:
        return (
            "an Arazzo description",
            "write each step of a workflow as a step, and its operationId under expected_tools",
        )
    return None
