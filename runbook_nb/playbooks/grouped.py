"""Grouped files: ``step_groups`` made into one list of steps, the phases kept beside it.

There are two readings. The published one does as the format's first reader did, collisions of
ids and lost headings included. The other numbers what collides, keeps every heading, what the
groups were called and all that has no place of its own, and says where each step was written.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from runbook_nb._value import frozen
from runbook_nb.playbooks.problems import PlaybookWarning

#: What a group may hold.
GROUP_KEYS: Final = ("id", "title", "goal", "steps")

#: What the steps and the head of a grouped file may hold beside what those of any other may.
STEP_KEYS: Final = ("goal", "title", "guidance", "priority", "product", "service_type")
HEAD_KEYS: Final = (
    "step_groups",
    "title",
    "summary",
    "playbook_id",
    "completion",
    "decision_policy",
    "mode",
    "product",
    "service_type",
)

_CARRIED_BY_STEP: Final = ("priority", "product", "service_type")
_CARRIED_BY_HEAD: Final = ("completion", "decision_policy", "mode", "product", "service_type")


@frozen
class Flat:
    """A grouped file as one that has ``steps``, and where each of these was written."""

    document: dict[str, Any]
    places: tuple[str, ...]


def is_grouped(document: Mapping[str, Any]) -> bool:
    """Say whether a file has groups in place of steps.

    Examples
    --------
    >>> is_grouped({"step_groups": []}), is_grouped({"step_groups": [], "steps": []})
    (True, False)
    """
    return "steps" not in document and isinstance(document.get("step_groups"), list)


def flatten_published(document: Mapping[str, Any]) -> dict[str, Any]:
    r"""Flatten as the first reader of the format did; metadata that is there is changed in place.

    Examples
    --------
    >>> group = {"id": "g", "goal": "Look.", "steps": [{"id": "a", "goal": "Count."}]}
    >>> flat = flatten_published({"id": "x", "title": "X", "step_groups": [group]})
    >>> flat["name"], flat["steps"]
    ('X', [{'id': 'a', 'description': 'Look.\n\nCount.'}])
    """
    steps: list[dict[str, Any]] = []
    taken: set[Any] = set()
    for group in document["step_groups"]:
        if not isinstance(group, Mapping):
            continue
        for place, given in enumerate(_listed(group.get("steps"))):
            if not isinstance(given, Mapping):
                continue
            step = dict(given)
            step["id"] = _published_id(step.get("id"), group.get("id"), len(steps), taken)
            taken.add(step["id"])
            _describe(step, group if place == 0 else {})
            guidance = step.pop("guidance", None)
            _use_skills(step, guidance)
            _carry(step, _CARRIED_BY_STEP)
            steps.append(step)
    head = {key: value for key, value in document.items() if key != "step_groups"}
    _name(head)
    _carry(head, _CARRIED_BY_HEAD)
    return {**head, "steps": steps}


def _published_id(own: Any, group: Any, collected: int, taken: set[Any]) -> Any:
    if own and own not in taken:
        return own
    return f"{group}.{own or ''}" if group else f"step-{collected}"


def flatten(document: Mapping[str, Any]) -> Flat:
    """Flatten so that no id collides and nothing is lost; what is no group or step is told.

    Each step's metadata says under ``group`` which phase it is of.

    Examples
    --------
    >>> group = {"id": "g", "title": "Look", "steps": [{"id": "a"}, {"id": "a"}, {"id": "a"}]}
    >>> flat = flatten({"id": "x", "name": "X", "step_groups": [group]})
    >>> [step["id"] for step in flat.document["steps"]], flat.places[2]
    (['a', 'g.a', 'g.a-2'], 'step_groups[0].steps[2]')
    >>> flat.document["steps"][0]["metadata"]
    {'group': {'id': 'g', 'title': 'Look'}}
    """
    steps: list[dict[str, Any]] = []
    places: list[str] = []
    taken: set[str] = set()
    groups = _mappings(document["step_groups"], "step_groups")
    for number, (group_place, group) in enumerate(groups, 1):
        heading = group
        phase = _phase(group, number)
        inside = f"{group_place}.steps"
        for place, given in _mappings(_listed(group.get("steps")), inside):
            step = dict(given)
            step["id"] = _free_id(step.get("id"), group.get("id"), len(steps), taken)
            if isinstance(step["id"], str):
                taken.add(step["id"])
            _describe(step, heading)
            heading = {}
            guidance = step.pop("guidance", None)
            left = _use_skills(step, guidance)
            _carry(step, _CARRIED_BY_STEP)
            _keep(step, {"group": phase, **({"guidance": left} if left else {})})
            steps.append(step)
            places.append(place)
    head = {key: value for key, value in document.items() if key != "step_groups"}
    unused = _name(head)
    _carry(head, _CARRIED_BY_HEAD)
    _keep(head, unused)
    return Flat(document={**head, "steps": steps}, places=tuple(places))


def _mappings(entries: list[Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for n, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            yield f"{where}[{n}]", entry
        else:
            what = "nothing" if entry is None else f"a value of type {type(entry).__name__}"
            noun = "step" if where.endswith("steps") else "group of steps"
            warnings.warn(
                f"{where}[{n}] holds {what}, no {noun}: it was passed over",
                PlaybookWarning,
                stacklevel=6,
            )


def _phase(group: Mapping[str, Any], number: int) -> dict[str, Any]:
    title = group.get("title") or group.get("goal")
    phase = {"id": group.get("id") or f"group-{number}", **({"title": title} if title else {})}
    extra = {key: value for key, value in group.items() if key not in GROUP_KEYS}
    return {**phase, **extra}


def _free_id(own: Any, group: Any, collected: int, taken: set[str]) -> Any:
    """Give an id nobody has: the step's own, else with its group's, else with a number too."""
    if own is not None and own != "" and not isinstance(own, str):
        return own  # told as what it is when fields are checked
    if own and own not in taken:
        return own
    base = f"{group}.{own}" if group and own else f"{group}.step" if group else f"step-{collected}"
    n, free = 1, base if own or not group else f"{base}-1"
    while free in taken:
        n += 1
        free = f"{base}-{n}"
    return free


def _describe(step: dict[str, Any], heading: Mapping[str, Any]) -> None:
    goal, title = step.pop("goal", None), step.pop("title", None)
    text = goal or title or step.get("description")
    head = heading.get("goal") or heading.get("title")
    if isinstance(head, str) and isinstance(text or "", str) and head not in (text or ""):
        text = f"{head}\n\n{text}" if text else head
    if text:
        step["description"] = text


def _use_skills(step: dict[str, Any], guidance: Any) -> Any:
    """Make the skills a step is guided by its own, and give what else the guidance says."""
    if not isinstance(guidance, Mapping):
        return guidance
    refs = guidance.get("skill_refs")
    if not isinstance(refs, list) or "uses" in step:
        return dict(guidance)
    step["uses"] = [str(ref) for ref in refs if ref]
    return {key: value for key, value in guidance.items() if key != "skill_refs"}


def _carry(into: dict[str, Any], keys: tuple[str, ...]) -> None:
    carried = {key: into.pop(key) for key in keys if key in into}
    if carried:
        _keep(into, carried)


def _keep(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    if not more:
        return
    held = into.get("metadata")
    if held is None:
        into["metadata"] = dict(more)
    elif isinstance(held, dict):
        held.update(more)


def _name(head: dict[str, Any]) -> dict[str, Any]:
    """Name a playbook as its file does, and give what was said besides."""
    said: dict[str, Any] = {
        key: head.pop(key) for key in ("title", "playbook_id", "summary") if key in head
    }
    if not head.get("name"):
        names: dict[str, Any] = {**said, "id": head.get("id")}
        used = next((key for key in ("title", "playbook_id", "id") if names.get(key)), None)
        if used is not None:
            head["name"] = names[used]
            said.pop(used, None)
    if not head.get("description") and said.get("summary"):
        head["description"] = said.pop("summary")
    return {key: value for key, value in said.items() if value}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
