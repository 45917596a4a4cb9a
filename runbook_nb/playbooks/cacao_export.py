"""Playbooks as CACAO documents (v2.0).

A chain: ``start``, an ``action`` for each step, ``end``. The same playbook, made by the same and
at the same time, gives the same document.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._deep import depth_of
from runbook_nb._json import canonical, encode
from runbook_nb._text import did_you_mean, listed
from runbook_nb.errors import JsonError, PlaybookDefinitionError
from runbook_nb.playbooks.cacao import (
    EXTENSION,
    EXTENSION_VERSION,
    PLACEHOLDER_IDENTITY,
    SPEC_VERSION,
    identifier,
    kind_of,
    timestamp,
)
from runbook_nb.playbooks.sources import BOUNDS
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook, PlaybookStep

#: Fields of a playbook and of a step that stand in the document itself.
_OF_PLAYBOOK: Final = ("id", "name", "description", "steps", "tags")
_OF_STEP: Final = ("id", "description")

_EXTENSION_TEXT: Final = (
    "On a step: step_id (its native id) and the fields expected_tools, hints, required, "
    "validation, uses, required_probes, min_tool_calls, max_tool_calls, timeout_seconds, metadata, "
    "checks, kind and requires of a runbook_nb playbook step; placeholder is true on an action "
    "that stands for no step. On a playbook: playbook_id and the fields version, strict_sequence, "
    "allow_extra_tools, max_iterations and metadata; created_by_placeholder is true where nobody "
    "was named. In both, more holds keys that begin with x-. What is left out has its default."
)

#: Said by the one action of a playbook that has no step; CACAO asks for at least one.
_NOTHING: Final = "Nothing is to be done."


def to_cacao(
    playbook: Playbook,
    *,
    created_by: str | None = None,
    created: datetime | str | None = None,
    modified: datetime | str | None = None,
    notebooks: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give a playbook as a CACAO document.

    Parameters
    ----------
    playbook : Playbook
    created_by : str, optional
        The STIX identity of whoever publishes it (``"identity--<uuid>"``). Without it a
        placeholder stands there, and the document says that it is one.
    created, modified : datetime or str, optional
        When; now unless told, and as ``created``.
    notebooks : mapping of str to (mapping or str), optional
        The notebook that does a step, by the id of the step: its JSON, as values or as text. It
        is carried whole as a command of the type ``jupyter``.

    Returns
    -------
    dict
        For ``json.dumps``; ids in it are derived from those of the playbook and its steps.

    Raises
    ------
    PlaybookDefinitionError
        An identity or time is none, a notebook is for no step, or JSON cannot carry a value.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> steps = [PlaybookStep(id="detect", description="Look.", expected_tools=["query_siem"])]
    >>> book = Playbook(id="ir", name="Incident response", steps=steps)
    >>> document = to_cacao(book, created="2026-11-29T00:00:00.000Z")
    >>> [step["type"] for step in document["workflow"].values()]
    ['start', 'action', 'end']
    """
    author = PLACEHOLDER_IDENTITY if created_by is None else created_by
    if kind_of(author) != "identity":
        raise PlaybookDefinitionError(
            f"created_by is no STIX identity: {author!r}",
            code="bad_identity",
            where="created_by",
            fix="write it as 'identity--<uuid>', or leave it out for a marked placeholder",
        )
    begun = timestamp(settings.clock() if created is None else created, "created")
    changed = begun if modified is None else timestamp(modified, "modified")
    if changed < begun:
        raise PlaybookDefinitionError(
            f"modified ({changed}) is before created ({begun})", code="bad_time", where="modified"
        )
    given = {**(notebooks or {})}
    _refuse_unknown(given, playbook)
    actions = actions_of(playbook, given)
    made = {
        **frame_of(playbook, actions, placeholder=author == PLACEHOLDER_IDENTITY),
        "created_by": author,
        "created": begun,
        "modified": changed,
        "workflow": _chained(playbook, actions),
    }
    document: dict[str, Any] = _as_json({name: made[name] for name in _ORDER if name in made})
    if depth_of(document, BOUNDS.depth) > BOUNDS.depth:
        raise PlaybookDefinitionError(
            f"the document would be nested deeper than {BOUNDS.depth} levels, and not read back",
            code="too_deep",
            where=playbook.id,
            fix="hold metadata in fewer levels",
        )
    return document


#: In which order a document is read best: what it is, then what it does, then what it refers to.
_ORDER: Final = (
    "type",
    "spec_version",
    "id",
    "name",
    "description",
    "playbook_processing_summary",
    "created_by",
    "created",
    "modified",
    "derived_from",
    "labels",
    "workflow_start",
    "workflow",
    "agent_definitions",
    "extension_definitions",
    "playbook_extensions",
)


def frame_of(
    playbook: Playbook, actions: Sequence[Mapping[str, Any]], *, placeholder: bool
) -> dict[str, Any]:
    """Give what a document says of a playbook beside its steps, and who made it when."""
    commands = [command for action in actions for command in action["commands"]]
    summary = {
        "manual_playbook": all(command["type"] == "manual" for command in commands),
        "temporal_logic": any("timeout" in action for action in actions),
        "extensions": True,
    }
    told = {
        "playbook_id": playbook.id,
        **_beyond(playbook, _OF_PLAYBOOK),
        **({"created_by_placeholder": True} if placeholder else {}),
    }
    made: dict[str, Any] = {
        "type": "playbook",
        "spec_version": SPEC_VERSION,
        "id": identifier("playbook", playbook.id),
        "name": playbook.name,
        "description": playbook.description,
        "playbook_processing_summary": summary,
        "workflow_start": identifier("start", playbook.id),
        "agent_definitions": {
            _agent(playbook): {"type": "group", "name": "Whoever works through the playbook"}
        },
        "extension_definitions": {EXTENSION: _extension_definition()},
        "playbook_extensions": {EXTENSION: told},
    }
    if playbook.tags:
        made["labels"] = playbook.tags
    origin = playbook.metadata.get("cacao")
    before = origin.get("id") if isinstance(origin, Mapping) else None
    if kind_of(before) == "playbook" and before != made["id"]:
        made["derived_from"] = [str(before)]
    return made


def actions_of(playbook: Playbook, notebooks: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the action of each step, in order, without what follows it."""
    agent = _agent(playbook)
    if not playbook.steps:
        return [
            {
                "type": "action",
                "name": _NOTHING,
                "commands": [{"type": "manual", "command": _NOTHING}],
                "agent": agent,
                "step_extensions": {EXTENSION: {"placeholder": True}},
            }
        ]
    return [action_of(step, agent, notebooks.get(step.id)) for step in playbook.steps]


def action_of(step: PlaybookStep, agent: str, notebook: Any = None) -> dict[str, Any]:
    """Give the action of a step, without what follows it."""
    commands: list[dict[str, Any]] = [
        {"type": "manual", "description": "Call this tool.", "command": tool}
        for tool in dict.fromkeys(step.expected_tools)
    ]
    if notebook is not None:
        commands.append({"type": "jupyter", "command_b64": _notebook(notebook, step.id)})
    made = {
        "type": "action",
        "name": step.id,
        "description": step.description,
        "commands": commands or [{"type": "manual", "command": step.description}],
        "agent": agent,
        "step_extensions": {EXTENSION: {"step_id": step.id, **_beyond(step, _OF_STEP)}},
    }
    time = milliseconds(step.timeout_seconds)
    return made if time is None else {**made, "timeout": time}


def milliseconds(seconds: float | None) -> int | None:
    """Give a time as CACAO counts it; None for what it cannot say.

    Examples
    --------
    >>> milliseconds(1.5), milliseconds(-1.0), milliseconds(None)
    (1500, None, None)
    """
    if seconds is None or seconds < 0 or not math.isfinite(seconds * 1000):
        return None
    return round(seconds * 1000)


def _beyond(model: Playbook | PlaybookStep, carried: Sequence[str]) -> dict[str, Any]:
    """Give the fields that the document has no word for and that are not as by default."""
    fields = type(model).model_fields
    told: dict[str, Any] = {}
    for name, value in model.model_dump().items():
        if name not in fields:
            told.setdefault("more", {})[name] = value
        elif name not in carried and value != fields[name].get_default():
            told[name] = value
    return told


def _chained(playbook: Playbook, actions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    start, end = (identifier(kind, playbook.id) for kind in ("start", "end"))
    times: Counter[str] = Counter()
    keys = []
    for step in playbook.steps:  # one id may name several steps
        again = times[step.id]
        times[step.id] += 1
        keys.append(identifier("action", playbook.id, step.id, *([again] if again else [])))
    keys = keys or [identifier("action", playbook.id)]
    workflow: dict[str, Any] = {start: {"type": "start", "on_completion": keys[0]}}
    for key, action, after in zip(keys, actions, [*keys[1:], end], strict=True):
        workflow[key] = {**action, "on_completion": after}
    return {**workflow, end: {"type": "end"}}


def _agent(playbook: Playbook) -> str:
    return identifier("group", playbook.id)


def _extension_definition() -> dict[str, Any]:
    return {
        "type": "extension-definition",
        "name": "runbook_nb playbook",
        "description": "What a runbook_nb playbook says and CACAO has no word for.",
        "created_by": identifier("identity", "runbook_nb"),
        "schema": _EXTENSION_TEXT,
        "version": EXTENSION_VERSION,
    }


def _notebook(given: Any, step_id: str) -> str:
    try:
        held = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        held = None
    if not isinstance(held, Mapping) or not isinstance(held.get("cells"), list):
        raise PlaybookDefinitionError(
            f"what is given for the step {step_id!r} is no notebook",
            code="bad_notebook",
            where=f"notebooks[{step_id!r}]",
            fix="give the JSON of a notebook, which has a list of cells",
        )
    return base64.b64encode(canonical(_as_json(held)).encode()).decode()


def _refuse_unknown(notebooks: Mapping[str, Any], playbook: Playbook) -> None:
    known = [step.id for step in playbook.steps]
    for name in notebooks:
        if name not in known:
            raise PlaybookDefinitionError(
                f"a notebook is given for {name!r}, which is no step of {playbook.id!r}",
                code="unknown_step",
                where=f"notebooks[{name!r}]",
                fix=did_you_mean(str(name), known) or f"its steps are {listed(map(repr, known))}",
            )


def _as_json(value: Any) -> Any:
    """Give plain copies, refusing what would come back as something else."""
    try:
        plain = json.loads(encode(value))
    except JsonError as error:
        raise PlaybookDefinitionError(
            str(error), code="not_json", fix="write dates and the like as text"
        ) from None
    if plain != value:
        raise PlaybookDefinitionError(
            "a value would come back from JSON as another",
            code="not_json",
            fix="use lists in metadata, not tuples",
        )
    return plain
