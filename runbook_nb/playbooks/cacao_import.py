"""CACAO documents (v2.0) as playbooks, with what a playbook cannot say told beside it.

A document is a graph; a playbook is a line. What is no line is laid out as one, and said so. What
a document says and a playbook does not is kept under ``metadata["cacao"]``. Nothing in a document
is ever run, fetched or followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import at
from runbook_nb.playbooks.cacao import (
    EXTENSION,
    FOLLOWING,
    PLACEHOLDER_IDENTITY,
    identifier,
)
from runbook_nb.playbooks.cacao_check import problems_of
from runbook_nb.playbooks.cacao_commands import ToolFor, ToolNames, hint_of
from runbook_nb.playbooks.cacao_export import action_of, actions_of, frame_of, milliseconds
from runbook_nb.playbooks.cacao_layout import Branch, Layout
from runbook_nb.playbooks.cacao_losses import CacaoLosses, Lost
from runbook_nb.playbooks.keys import is_extension
from runbook_nb.playbooks.problems import FileProblem, place_of, refused, told
from runbook_nb.playbooks.sources import source_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from runbook_nb.playbooks.model import Playbook, PlaybookStep

_UNREADABLE: Final = "the CACAO document cannot be read"

#: Longest id that is made of a name.
_ID: Final = 60

_FACTS: Final = ("id", "created_by", "created", "modified")

#: What is said elsewhere: in the playbook itself, or by the ids of what follows.
_READ: Final = frozenset({"type", "name", "description", "timeout", "step_extensions", *FOLLOWING})
_READ_OF_BOOK: Final = frozenset(
    {"type", "spec_version", "name", "description", "labels", "workflow", "workflow_start"}
    | {"playbook_extensions", *_FACTS}
)


def from_cacao(
    document: Mapping[str, Any] | str | bytes | os.PathLike[str],
    *,
    lossy: bool = False,
    tool_for: ToolFor | None = None,
) -> tuple[Playbook, CacaoLosses]:
    """Make a playbook of a CACAO document, and say what it does not say any more.

    What `Playbook.to_cacao` wrote comes back as it was. Of other documents each action is a step
    that a person closes, unless ``tool_for`` names tools. The steps of the branches of a condition
    are optional; parallel parts stand in an order; ways that are taken on failure are kept as
    data. Commands become hints and are never run.

    Parameters
    ----------
    document : mapping, str, bytes or path-like
        Its values, its JSON text, or the file it is in (a text that does not begin with ``{`` is
        the name of a file).
    lossy : bool
        Whether a ``while-condition`` is read, whose body then stands once.
    tool_for : mapping or callable, optional
        The tools that do a command: a mapping by the id or name of a step, or by the text or type
        of a command; or ``tool_for(command, step)``. Each gives a name, several, or None.

    Returns
    -------
    tuple of (Playbook, CacaoLosses)

    Raises
    ------
    PlaybookLoadError
        It is no CACAO document of this version, or is not as one has to be; ``problems`` holds
        everything that is wrong. Or it has a loop, and ``lossy`` is not set.

    Examples
    --------
    >>> from runbook_nb.playbooks.cacao_export import to_cacao
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> steps = [PlaybookStep(id="detect", description="Look.", expected_tools=["query_siem"])]
    >>> book = Playbook(id="ir", name="Incident response", steps=steps)
    >>> same, losses = from_cacao(to_cacao(book))
    >>> same == book, losses
    (True, <CacaoLosses Incident response · 1 step · nothing was lost>)
    """
    source = source_of(document)
    parsed = source.parsed()
    held = parsed.value
    if not isinstance(held, dict):
        kind = type(held).__name__
        raise refused(
            f"a CACAO document is a mapping, not {kind}", "not_a_mapping", path=source.path
        )
    problems = problems_of(held, parsed)
    if problems:
        raise refused(_UNREADABLE, "bad_cacao", path=source.path, problems=problems)
    lost = Lost()
    layout = Layout(held, lost)
    if layout.problem is not None:
        raise refused(_UNREADABLE, "bad_cacao", path=source.path, problems=[layout.problem])
    if layout.loops and not lossy:
        fix = "pass lossy=True to have the steps of its body once, as optional ones"
        raise refused(
            "a playbook has no loops",
            "has_loops",
            path=source.path,
            fix=fix,
            problems=layout.loops,
        )
    playbook = _Reading(held, layout, lost, ToolNames(tool_for), source.path).made()
    losses = CacaoLosses(
        playbook=playbook.name,
        steps=len(playbook.steps),
        source={name: held[name] for name in _FACTS},
        items=lost.items,
    )
    return playbook, losses


class _Reading:
    """One document on its way to a playbook."""

    def __init__(
        self, document: dict[str, Any], layout: Layout, lost: Lost, tools: ToolNames, path: Any
    ) -> None:
        self._document = document
        self._layout = layout
        self._lost = lost
        self._tools = tools
        self._path = path
        self._steps: list[PlaybookStep] = []
        self._ids: set[str] = set()
        self._told = _ours(document.get("playbook_extensions"))
        self._is_ours = "playbook_id" in self._told
        self._agent = identifier("group", self._told.get("playbook_id"))

    def made(self) -> Playbook:
        """Give the playbook."""
        for key, around in self._layout.steps:
            self._add(key, self._document["workflow"][key], around)
        for word in self._tools.unused():
            note = f"{told(word)} names no step and no command"
            self._lost.add("kept", "tool_for", "", note)
        return self._book()

    def _add(self, key: str, step: Mapping[str, Any], around: tuple[Branch, ...]) -> None:
        said = _ours(step.get("step_extensions"))
        if said.get("placeholder") is True and step["type"] == "action":
            return
        fields = {name: value for name, value in said.items() if name != "more"}
        foreign = "step_id" not in said
        fields["id"] = self._own_id(step, key) if foreign else fields.pop("step_id")
        fields["description"] = _description(step, foreign=foreign)
        fields.update(_seconds(step, said))
        if foreign:
            fields.update(self._how(key, step))
        if any(one.is_optional for one in around):
            fields["required"] = False
        made, unknown = self._step(key, fields, said.get("more"))
        usual = {} if foreign else action_of(made, self._agent)
        rest = {
            name: value
            for name, value in step.items()
            if (name not in _READ or (name == "name" and not foreign))
            and usual.get(name, _Reading) != value
        }
        others = _others(step.get("step_extensions", {}))
        rest.update({"step_extensions": others} if others else {})
        rest.update(unknown)
        for name in rest:
            if not foreign or name not in ("commands", "playbook_id"):  # hints say those
                self._lost.add("kept", name, self._layout.name(key))
        if step["type"] != "action":
            self._lost.add("changed", step["type"], self._layout.name(key))
            rest["type"] = step["type"]
        if around:
            rest["within"] = [one.to_dict() for one in around]
        if rest or foreign:
            made = _kept(made, {"id": key, **rest})
        self._ids.add(made.id)
        self._steps.append(made)

    def _step(
        self, key: str, fields: Mapping[str, Any], more: Any
    ) -> tuple[PlaybookStep, dict[str, Any]]:
        from runbook_nb.playbooks.model import PlaybookStep

        given, unknown = _sorted_out(fields, more, PlaybookStep)
        place = at(at("workflow", key), "step_extensions")
        return self._validated(PlaybookStep, given, place), unknown

    def _how(self, key: str, step: Mapping[str, Any]) -> dict[str, Any]:
        """Say who closes a step that says nothing of tools, and what they are to do."""
        if step["type"] == "playbook-action":
            return {"kind": "manual", "hints": [f"work through the playbook {step['playbook_id']}"]}
        commands = step["commands"]
        tools = self._tools.of(key, step)
        said: dict[str, Any] = {"hints": [*dict.fromkeys(map(hint_of, commands))]}
        if tools:
            return {**said, "expected_tools": tools}
        for kind in dict.fromkeys(command["type"] for command in commands):
            if kind != "manual":
                note = "no tool is named for it; a person says when it is done"
                self._lost.add("changed", f"{kind} command", self._layout.name(key), note)
        return {**said, "kind": "manual"}

    def _book(self) -> Playbook:
        from runbook_nb.playbooks.model import Playbook

        document, said = self._document, self._told
        beyond = ("more", "playbook_id", "created_by_placeholder")
        fields = {name: value for name, value in said.items() if name not in beyond}
        given, unknown = _sorted_out(fields, said.get("more"), Playbook)
        if not self._is_ours:
            unordered = self._layout.is_unordered
            given = {name: value for name, value in given.items() if is_extension(name)}
            given |= {"version": document["modified"], "strict_sequence": not unordered}
            if unordered:  # which says just what the document does
                self._lost.forget("changed", "parallel")
        given["id"] = said.get("playbook_id", document["id"])
        given["name"] = document["name"]
        given["description"] = document.get("description", "")
        given["tags"] = document.get("labels", [])
        given["steps"] = [step.model_dump() for step in self._steps]
        made: Playbook = self._validated(Playbook, given, "playbook_extensions")
        rest = {**self._rest(made), **unknown}
        for name in rest:
            self._lost.add("kept", name)
        if self._layout.beside:
            rest["workflow"] = self._layout.beside
        if not self._is_ours:
            rest = {**{name: document[name] for name in _FACTS}, **rest}
        if not rest:
            return made
        held: Playbook = _kept(made, rest)
        return held

    def _rest(self, made: Playbook) -> dict[str, Any]:
        """Give what the document says of the whole and the playbook does not."""
        document = self._document
        usual: Mapping[str, Any] = {}
        if self._is_ours:
            author = document["created_by"] == PLACEHOLDER_IDENTITY
            usual = frame_of(made, actions_of(made, {}), placeholder=author)
        rest = {
            name: value
            for name, value in document.items()
            if name not in _READ_OF_BOOK and usual.get(name, _Reading) != value
        }
        if self._is_ours:  # it only sums up what stands in the document
            rest.pop("playbook_processing_summary", None)
        others = _others(document.get("playbook_extensions", {}))
        return {**rest, "playbook_extensions": others} if others else rest

    def _validated(self, model: Any, given: Mapping[str, Any], place: str) -> Any:
        from pydantic import ValidationError

        try:
            return model.model_validate(given)
        except ValidationError as error:
            problems = [
                FileProblem(
                    code="bad_extension",
                    where=f"{place}.{place_of(one['loc'])}",
                    message=one["msg"],
                )
                for one in error.errors(include_url=False)
            ]
            raise refused(_UNREADABLE, "bad_cacao", path=self._path, problems=problems) from None

    def _own_id(self, step: Mapping[str, Any], key: str) -> str:
        """Make an id of a name, which people read; of nothing else than the id without one."""
        word = re.sub(r"[^a-z0-9_]+", "-", step.get("name", "").lower()).strip("-")[:_ID].strip("-")
        made, n = word or key, 1
        while made in self._ids:
            n += 1
            made = f"{word or key}-{n}"
        return made


def _ours(extensions: Any) -> dict[str, Any]:
    """Give what our extension says; of a later version it is not understood."""
    held = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    return dict(held) if isinstance(held, Mapping) else {}


def _others(extensions: Mapping[str, Any]) -> dict[str, Any]:
    """Give what extensions that are not ours say."""
    return {key: value for key, value in extensions.items() if key != EXTENSION}


def _sorted_out(
    fields: Mapping[str, Any], more: Any, model: type[BaseModel]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part what our extension says into what a playbook or step has a place for, and the rest."""
    extra = more if isinstance(more, Mapping) else {}
    unknown = {name: value for name, value in fields.items() if name not in model.model_fields}
    unknown.update({name: value for name, value in extra.items() if not is_extension(name)})
    given = {name: value for name, value in {**fields, **extra}.items() if name not in unknown}
    return given, unknown


def _description(step: Mapping[str, Any], *, foreign: bool) -> str:
    description: str = step.get("description", "")
    name = step.get("name", "")
    if not foreign or not name or name == description:
        return description or (name if foreign else "")
    return f"{name}\n\n{description}" if description else str(name)


def _seconds(step: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Give the time a step may take; exactly as it was, unless the document was changed since."""
    written, exact = step.get("timeout"), told.get("timeout_seconds")
    if isinstance(exact, int | float) and milliseconds(exact) == written:
        return {"timeout_seconds": exact}
    return {"timeout_seconds": None if written is None else written / 1000}


def _kept(made: Any, rest: Mapping[str, Any]) -> Any:
    """Keep what a document says beside what a playbook or step says, and what is kept already."""
    before = made.metadata.get("cacao")
    held = {**(before if isinstance(before, Mapping) else {}), **rest}
    return made.model_copy(update={"metadata": {**made.metadata, "cacao": held}})
