"""Parts of a published recording, whatever stands in their place.

Record layer. Each of these takes what a file holds and gives what is asked for, or the emptiest
thing there is: a part that is missing is no reason to refuse the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from runbook_nb.record.log import StageRef
from runbook_nb.record.structure import StructureNode

#: Under which names the engine notes that a stage failed.
ERRORS: Final = ("stageExecutionError", "deciderError", "selectorError", "inputMapperError")


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Give a mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Give a list, or an empty one."""
    return value if isinstance(value, list) else []


def whole_of(value: Any) -> int:
    """Give a whole number from 0, or 0."""
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if fits else 0


def index_of(child: Any, place: int) -> int:
    """Give the item a generated branch is of, which its id ends in."""
    tail = str(mapping_of(child).get("id")).rpartition("~")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 10 else place


def commits_by_execution(found: Any) -> dict[str, list[Mapping[str, Any]]]:
    """Sort a commit log by execution; what is no commit is passed over."""
    sorted_ones: dict[str, list[Mapping[str, Any]]] = {}
    for commit in list_of(found):
        if isinstance(commit, Mapping) and isinstance(commit.get("runtimeStageId"), str):
            sorted_ones.setdefault(commit["runtimeStageId"], []).append(commit)
    return sorted_ones


def loops_of(node: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield where a stage went back to, and for which time."""
    target = mapping_of(node.get("logs")).get("dynamicNextTarget")
    for message in list_of(node.get("flowMessages")):
        if isinstance(message, Mapping) and message.get("type") == "loop":
            yield (
                str(target or message.get("targetStage")),
                max(whole_of(message.get("iteration")), 1),
            )


_NAMED: Final = re.compile(r"([A-Za-z_$][\w$.]*): (.*)", re.DOTALL)


def described(message: str) -> dict[str, str]:
    """Take an error's name off its message, where there is one."""
    found = _NAMED.fullmatch(message)
    if found is None:
        return {"type": "Error", "message": message}
    return {"type": found[1], "message": found[2]}


def observed_kind(node: Mapping[str, Any]) -> str:
    """Name the kind of an executed stage that the structure does not know, by what it left."""
    logs = mapping_of(node.get("logs"))
    if "parallelForEach" in logs:
        return "fan_out"
    if isinstance(node.get("subflowId"), str):
        return "subchart"
    if "selectedChildIds" in logs:
        return "selector"
    kinds = {m.get("type") for m in list_of(node.get("flowMessages")) if isinstance(m, Mapping)}
    if "branch" in kinds or node.get("isDecider"):
        return "decider"
    if "children" in kinds or node.get("isFork") or len(list_of(node.get("children"))) > 1:
        return "fork"
    return "decider" if node.get("children") else "stage"


def observed_node(
    key: str, ref: StageRef, node: Mapping[str, Any], decider: str | None
) -> StructureNode:
    """Make the node of a stage that ran and is not in the structure."""
    kind: Any = ref.kind if decider is None else "branch"
    described = node.get("description")
    return StructureNode(
        key=key,
        id=ref.id,
        name=ref.name,
        kind=kind,
        branch=None if decider is None else ref.id,
        decider=decider,
        description=described if isinstance(described, str) else None,
        added=True,
        detail={} if ref.kind in ("stage", "branch") or decider is None else {"form": ref.kind},
    )
