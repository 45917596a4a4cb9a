"""The keys of a playbook's file: those that are known, and those that are anybody's own."""

from __future__ import annotations

from typing import Any, Final

#: The keys of a playbook's head, of a step and of a probe, in the order they are written.
HEAD_KEYS: Final = (
    "id",
    "name",
    "description",
    "version",
    "strict_sequence",
    "allow_extra_tools",
    "max_iterations",
    "tags",
    "metadata",
    "steps",
)
STEP_KEYS: Final = (
    "id",
    "description",
    "expected_tools",
    "hints",
    "required",
    "validation",
    "uses",
    "required_probes",
    "min_tool_calls",
    "max_tool_calls",
    "timeout_seconds",
    "metadata",
)
#: What a step may say in this package alone; other readers pass over it.
OWN_STEP_KEYS: Final = ("kind", "requires", "checks")
PROBE_KEYS: Final = ("name", "match", "description")


def is_extension(key: Any) -> bool:
    """Say whether a key is of those that readers keep and leave alone: they begin with ``x-``.

    Examples
    --------
    >>> is_extension("x-owner"), is_extension("owner")
    (True, False)
    """
    return isinstance(key, str) and key.startswith("x-")
