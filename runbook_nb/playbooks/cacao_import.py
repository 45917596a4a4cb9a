"""CACAO documents (v2.0) as playbooks, with what a playbook cannot say told beside it.

A document is a graph; a playbook is a line. What is no line is laid out as one, and said so. What
a document says and a playbook does not is kept under ``metadata["cacao"]``. Nothing in a document
is ever run, fetched or followed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from runbook_nb._json import encode
from runbook_nb._text import clip, counted, listed, visible
from runbook_nb._value import frozen
from runbook_nb.errors import (
    JsonError,
    LoadError,
    PlaybookDefinitionError,
    PlaybookLoadError,
    Problem,
)
from runbook_nb.playbooks.cacao import (
    EXTENSION,
    EXTENSION_VERSION,
    FOLLOWING,
    LINKS,
    PLACEHOLDER_IDENTITY,
    branches_of,
    identifier,
    kind_of,
    links_of,
    next_of,
)
from runbook_nb.playbooks.cacao_check import decoded, problems_of, reachable
from runbook_nb.playbooks.cacao_export import action_of, actions_of, frame_of, milliseconds
from runbook_nb.playbooks.cacao_losses import CacaoLoss, CacaoLosses, Effect
from runbook_nb.rules.loader import parse

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook, PlaybookStep

#: What names the tools that do a command: a mapping by a step's id or name or by the text or type
#: of a command, or a function of the command and its step.
ToolFor = Mapping[str, "str | Iterable[str]"] | Callable[..., "str | Iterable[str] | None"]

#: How deep conditions, loops and parallel parts may lie in one another.
MAX_NESTING: Final = 50

#: Longest hint that is made of a command, and longest id that is made of a name.
_HINT: Final = 1_000
_ID: Final = 60

_STEPS: Final = ("action", "playbook-action")
_OPTIONAL: Final = ("if-condition", "while-condition", "switch-condition")
_FACTS: Final = ("id", "created_by", "created", "modified")

#: What is said elsewhere: in the playbook itself, or by the ids of what follows.
_READ: Final = frozenset({"type", "name", "description", "timeout", "step_extensions", *FOLLOWING})
_READ_OF_BOOK: Final = frozenset(
    {"type", "spec_version", "name", "description", "labels", "workflow", "workflow_start"}
    | {"playbook_extensions", *_FACTS}
)

_BRANCHES: Final = "its condition is not judged; the steps of its branches are optional"
_MEANT: Final[Mapping[str, str]] = {
    "if-condition": _BRANCHES,
    "switch-condition": _BRANCHES,
    "while-condition": "its condition is not judged; the steps of its body stand once and are "
    "optional",
    "parallel": "what may be done at once stands in an order",
    "playbook-action": "the other playbook is not read; a person says when it is done",
    "on_failure": "what follows a failure is not followed",
    "workflow_exception": "what follows a failure is not followed",
    "delay": "nobody waits",
    "owner": "nobody is held to it",
    "agent": "nobody is addressed",
    "targets": "nobody is addressed",
    "step_variables": "no variable is filled in",
    "playbook_variables": "no variable is filled in",
    "in_args": "no variable is filled in",
    "out_args": "no variable is filled in",
    "signatures": "they are of the document, not of the playbook",
    "markings": "no handling is applied",
    "revoked": "it is not looked at",
    "valid_from": "it is not looked at",
    "valid_until": "it is not looked at",
}


@frozen
class _Branch:
    """Where a step lies: in one branch of a step that has several."""

    key: str
    type: str
    name: str
    branch: str
    condition: str | None

    def to_dict(self) -> dict[str, Any]:
        told = {"type": self.type, "id": self.key, "branch": self.branch}
        if self.name:
            told["name"] = self.name
        return told if self.condition is None else {**told, "condition": self.condition}


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
    held, path = _read(document)
    problems = problems_of(held)
    if problems:
        _refuse("the CACAO document cannot be read", problems, path)
    return _Reading(held, lossy=lossy, tool_for=tool_for, path=path).made()


class _Reading:
    """One document on its way to a playbook."""

    def __init__(
        self, document: dict[str, Any], *, lossy: bool, tool_for: ToolFor | None, path: Any
    ) -> None:
        self._document = document
        self._workflow: dict[str, Any] = document["workflow"]
        self._path = path
        self._lossy = lossy
        self._tools = _Tools(tool_for)
        self._steps: list[PlaybookStep] = []
        self._around: list[tuple[_Branch, ...]] = []
        self._seen: set[str] = set()
        self._ids: set[str] = set()
        #: Steps of the document that are none of the playbook, whole.
        self._beside: dict[str, Any] = {}
        self._found: dict[tuple[Effect, str, str], list[str]] = {}
        told = _told(document.get("playbook_extensions"))
        self._is_ours = "playbook_id" in told
        self._told = told
        self._agent = identifier("group", told.get("playbook_id"))

    def made(self) -> tuple[Playbook, CacaoLosses]:
        start = self._document["workflow_start"]
        self._refuse_loops(start)
        self._follow(start, (), frozenset())
        self._leave_out()
        at_once = self._all_at_once()
        if at_once is not None:
            self._found.pop(("changed", "parallel", _MEANT["parallel"]))
        playbook = self._book(strict=at_once is None)
        losses = CacaoLosses(
            playbook=playbook.name,
            steps=len(playbook.steps),
            source={name: self._document[name] for name in _FACTS},
            items=tuple(self._losses()),
        )
        return playbook, losses

    # --- the line that is made of the graph ------------------------------------------------

    def _follow(
        self, first: str | None, around: tuple[_Branch, ...], stops: frozenset[str | None]
    ) -> None:
        key = first
        while key is not None and key not in stops:
            step = self._workflow[key]
            kind = step["type"]
            if kind == "end":
                self._seen.add(key)
                self._keep_whole(key, step, {"type"})
                return
            if key in self._seen:
                self._lose("changed", "join", self._name(key), "it is come to by several ways")
                return
            self._seen.add(key)
            if kind == "start":
                self._keep_whole(key, step, {"type", *FOLLOWING})
            elif kind in _STEPS:
                self._add(key, step, around)
            else:
                key = self._spread(key, step, around, stops)
                continue
            key = next_of(step)

    def _spread(
        self,
        key: str,
        step: Mapping[str, Any],
        around: tuple[_Branch, ...],
        stops: frozenset[str | None],
    ) -> str | None:
        """Lay out the branches of a step one after the other, and give what follows them."""
        if len(around) == MAX_NESTING:
            where = f"workflow[{key!r}]"
            message = f"branches lie in one another deeper than {MAX_NESTING} levels"
            fix = "take parts out into playbooks of their own"
            _refuse("", [Problem(message=message, where=where, fix=fix)], self._path)
        kind = step["type"]
        self._lose("changed", kind, self._name(key), _MEANT[kind])
        self._beside[key] = step
        heads = branches_of(step)
        after = next_of(step) or self._meeting([head for _, head in heads])
        for where, head in heads:
            branch = _Branch(
                key=key,
                type=kind,
                name=step.get("name", ""),
                branch=where,
                condition=step.get("condition", step.get("switch")),
            )
            self._follow(head, (*around, branch), stops | {after, key})
        return after

    def _meeting(self, heads: Sequence[str]) -> str | None:
        """Find the step at which all branches come together again, where there is one."""
        ways = [reachable(head, self._workflow) for head in heads]
        common = {
            key for key in set.intersection(*ways) if self._workflow[key]["type"] != "end"
        }
        return next((key for key in common if common <= reachable(key, self._workflow)), None)

    def _add(self, key: str, step: Mapping[str, Any], around: tuple[_Branch, ...]) -> None:
        told = _told(step.get("step_extensions"))
        if told.get("placeholder") is True and step["type"] == "action":
            return
        fields = {name: value for name, value in told.items() if name != "more"}
        foreign = "step_id" not in told
        fields["id"] = self._own_id(step, key) if foreign else fields.pop("step_id")
        fields["description"] = _description(step, foreign=foreign)
        fields.update(_seconds(step, told))
        if foreign:
            fields.update(self._how(key, step))
        if any(one.type in _OPTIONAL for one in around):
            fields["required"] = False
        made, unknown = self._step(key, fields, told.get("more"))
        usual = {} if foreign else action_of(made, self._agent)
        rest = {
            name: value
            for name, value in step.items()
            if (name not in _READ or (name == "name" and not foreign))
            and usual.get(name, _Reading) != value
        }
        others = {k: v for k, v in step.get("step_extensions", {}).items() if k != EXTENSION}
        rest.update({"step_extensions": others} if others else {})
        rest.update(unknown)
        for name in rest:
            if name != "commands":
                self._lose("kept", name, self._name(key))
        if step["type"] != "action":
            self._lose("changed", step["type"], self._name(key), _MEANT[step["type"]])
            rest["type"] = step["type"]
        if around:
            rest["within"] = [one.to_dict() for one in around]
        if rest or foreign:
            rest = {"id": key, **rest}
            metadata = {**made.metadata, "cacao": rest}
            made = made.model_copy(update={"metadata": metadata})
        self._ids.add(made.id)
        self._steps.append(made)
        self._around.append(around)

    def _step(
        self, key: str, fields: Mapping[str, Any], more: Any
    ) -> tuple[PlaybookStep, dict[str, Any]]:
        from runbook_nb.playbooks.model import PlaybookStep

        known = PlaybookStep.model_fields
        extra = more if isinstance(more, Mapping) else {}
        unknown = {name: value for name, value in fields.items() if name not in known}
        unknown.update({name: it for name, it in extra.items() if not name.startswith("x-")})
        given = {name: value for name, value in {**fields, **extra}.items() if name not in unknown}
        return self._validated(PlaybookStep, given, f"workflow[{key!r}]"), unknown

    def _how(self, key: str, step: Mapping[str, Any]) -> dict[str, Any]:
        """Say who closes a step that says nothing of tools, and what they are to do."""
        if step["type"] == "playbook-action":
            return {"kind": "manual", "hints": [f"work through the playbook {step['playbook_id']}"]}
        commands = step["commands"]
        tools = self._tools.of(key, step)
        told: dict[str, Any] = {"hints": [*dict.fromkeys(map(_hint, commands))]}
        if tools:
            return {**told, "expected_tools": tools}
        for kind in dict.fromkeys(command["type"] for command in commands):
            if kind != "manual":
                note = "no tool is named for it; a person says when it is done"
                self._lose("changed", f"{kind} command", self._name(key), note)
        return {**told, "kind": "manual"}

    # --- what is no step ---------------------------------------------------------------------

    def _refuse_loops(self, start: str) -> None:
        reached = reachable(start, self._workflow)
        loops = [
            key
            for key, step in self._workflow.items()
            if key in reached and step["type"] == "while-condition"
        ]
        if loops and not self._lossy:
            problems = [
                Problem(
                    message=f"{self._name(key)!r} is gone through again and again",
                    where=f"workflow[{key!r}]",
                )
                for key in loops
            ]
            fix = "pass lossy=True to have the steps of its body once, as optional ones"
            _refuse("a playbook has no loops", problems, self._path, code="has_loops", fix=fix)

    def _leave_out(self) -> None:
        first = [self._document["workflow_start"], self._document.get("workflow_exception")]
        ways = [reachable(key, self._workflow, failing=True) for key in first if key is not None]
        failing = set().union(*ways)
        for key, step in self._workflow.items():
            if key in self._seen or step == {"type": "end"}:
                continue
            self._beside[key] = step
            note = "it is come to on a failure only" if key in failing else "nothing leads to it"
            self._lose("left_out", step["type"], self._name(key), note)

    def _keep_whole(self, key: str, step: Mapping[str, Any], usual: set[str]) -> None:
        if set(step) - usual:
            self._beside[key] = step
            self._lose("kept", step["type"], self._name(key))

    def _all_at_once(self) -> str | None:
        """Give the parallel step of which each branch is one step, where there is nothing else."""
        if self._is_ours or len(self._around) < 2 or any(len(one) != 1 for one in self._around):
            return None
        found = {(one[0].key, one[0].type) for one in self._around}
        places = {one[0].branch for one in self._around}
        key, kind = found.pop()
        if found or kind != "parallel" or len(places) != len(self._around):
            return None
        return key

    # --- the playbook --------------------------------------------------------------------------

    def _book(self, *, strict: bool) -> Playbook:
        from runbook_nb.playbooks.model import Playbook

        document, told = self._document, self._told
        beyond = ("more", "playbook_id", "created_by_placeholder")
        fields = {name: value for name, value in told.items() if name not in beyond}
        extra = told.get("more")
        extra = dict(extra) if isinstance(extra, Mapping) else {}
        unknown = {n: it for n, it in fields.items() if n not in Playbook.model_fields}
        unknown.update({n: it for n, it in extra.items() if not n.startswith("x-")})
        if not self._is_ours:
            fields = {"version": document["modified"], "strict_sequence": strict}
        given = {name: it for name, it in {**fields, **extra}.items() if name not in unknown}
        given["id"] = told.get("playbook_id", document["id"])
        given["name"] = document["name"]
        given["description"] = document.get("description", "")
        given["tags"] = document.get("labels", [])
        given["steps"] = [step.model_dump() for step in self._steps]
        made: Playbook = self._validated(Playbook, given, "playbook")
        rest = {**self._rest(made), **unknown}
        for name in rest:
            self._lose("kept", name)
        if self._beside:
            rest["workflow"] = self._beside
        if not self._is_ours:
            rest = {**{name: document[name] for name in _FACTS}, **rest}
        if not rest:
            return made
        return made.model_copy(update={"metadata": {**made.metadata, "cacao": rest}})

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
        others = {k: v for k, v in document.get("playbook_extensions", {}).items() if k != EXTENSION}
        return {**rest, "playbook_extensions": others} if others else rest

    def _validated(self, model: Any, given: Mapping[str, Any], place: str) -> Any:
        from pydantic import ValidationError

        try:
            return model.model_validate(given)
        except ValidationError as error:
            problems = [
                Problem(
                    message=one["msg"],
                    where=".".join([place, "step_extensions", *map(str, one["loc"])]),
                )
                for one in error.errors(include_url=False)
            ]
            _refuse("the extension of the document holds what is no field", problems, self._path)

    def _own_id(self, step: Mapping[str, Any], key: str) -> str:
        """Make an id of a name, which people read; of nothing else than the id without one."""
        word = re.sub(r"[^a-z0-9_]+", "-", step.get("name", "").lower()).strip("-")[:_ID].strip("-")
        made, n = word or key, 1
        while made in self._ids:
            n += 1
            made = f"{word or key}-{n}"
        return made

    # --- the report ------------------------------------------------------------------------------

    def _name(self, key: str) -> str:
        return self._workflow[key].get("name") or key

    def _lose(self, effect: Effect, what: str, place: str = "", note: str | None = None) -> None:
        said = _MEANT.get(what, "it is kept and has no effect") if note is None else note
        places = self._found.setdefault((effect, what, said), [])
        places += [place] if place else []

    def _losses(self) -> Iterable[CacaoLoss]:
        unused = self._tools.unused()
        if unused:
            note = f"it names no step or command: {listed(map(repr, unused))}"
            self._lose("kept", "tool_for", "", visible(clip(note, 200)))
        for effect in ("changed", "left_out", "kept"):
            for (found, what, note), places in self._found.items():
                if found == effect:
                    yield CacaoLoss(effect=found, what=what, places=tuple(places), note=note)


class _Tools:
    """Names the tools of commands as a caller said, and knows which of its words were of use."""

    def __init__(self, given: ToolFor | None) -> None:
        if given is not None and not isinstance(given, Mapping) and not callable(given):
            raise PlaybookDefinitionError(
                f"tool_for is {type(given).__name__}",
                code="bad_tool_for",
                where="tool_for",
                fix="give a mapping of step or command to tool, or a function of a command",
            )
        self._given = given
        self._used: set[str] = set()

    def of(self, key: str, step: Mapping[str, Any]) -> list[str]:
        """Give the tools of an action, each once."""
        if isinstance(self._given, Mapping):
            named = self._found(key) or self._found(step.get("name"))
            if named:
                return named
        found = [tool for command in step["commands"] for tool in self._of_command(command, step)]
        return [*dict.fromkeys(found)]

    def _of_command(self, command: Mapping[str, Any], step: Mapping[str, Any]) -> list[str]:
        if self._given is None:
            return []
        if isinstance(self._given, Mapping):
            return self._found(command.get("command")) or self._found(command["type"])
        return _names(self._given(command, step))

    def _found(self, word: Any) -> list[str]:
        if not isinstance(self._given, Mapping) or word not in self._given:
            return []
        self._used.add(word)
        return _names(self._given[word])

    def unused(self) -> list[str]:
        """Give the words that named nothing in the document."""
        given = self._given if isinstance(self._given, Mapping) else ()
        return [word for word in given if word not in self._used]


def _names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else [*(given or ())]
    for name in names:
        if not isinstance(name, str):
            raise PlaybookDefinitionError(
                f"tool_for gave {name!r}, which is no name of a tool",
                code="bad_tool_for",
                where="tool_for",
                fix="give a text, several, or None",
            )
    return names


def _told(extensions: Any) -> dict[str, Any]:
    """Give what our extension says; of a later version it is not understood."""
    held = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    return dict(held) if isinstance(held, Mapping) else {}


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


def _hint(command: Mapping[str, Any]) -> str:
    """Say what a command is, in words for whoever is to do it."""
    kind, text = command["type"], command.get("command")
    if text is None:
        text = _decoded_text(kind, command["command_b64"])
    if command.get("description"):
        text = f"{command['description']}: {text}" if text else command["description"]
    return clip(text if kind == "manual" else f"{kind}: {text}", _HINT)


def _decoded_text(kind: str, written: str) -> str:
    held = decoded(written) or b""
    try:
        text = held.decode("utf-8")
        cells = json.loads(text)["cells"] if kind == "jupyter" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return counted(len(held), "byte") if kind == "jupyter" else held.decode("utf-8", "replace")
    return text if cells is None else f"notebook of {counted(len(cells), 'cell')}"


def _read(document: Any) -> tuple[dict[str, Any], Any]:
    """Give plain copies of the values of a document, and the file they came from."""
    path, text = None, document
    if isinstance(document, os.PathLike) or (
        isinstance(document, str) and not document.lstrip("\ufeff \t\r\n").startswith("{")
    ):
        path = document
        try:
            text = Path(document).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PlaybookLoadError(
                f"{os.fspath(path)!r} cannot be read: {reason}", path=path, code="cannot_read"
            ) from error
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        if isinstance(text, str):
            held = parse(text.lstrip("\ufeff"), "json").value
        else:
            held = json.loads(encode(text)) if isinstance(text, Mapping) else text
    except (LoadError, JsonError, UnicodeDecodeError) as error:
        message = f"the CACAO document cannot be read: {error}"
        raise PlaybookLoadError(message, path=path, errors=[str(error)], code="bad_json") from error
    if not isinstance(held, dict):
        kind = type(held).__name__
        raise PlaybookLoadError(
            f"a CACAO document is a mapping, and this is {kind}", path=path, code="not_a_mapping"
        )
    return held, path


def _refuse(
    message: str,
    problems: Sequence[Problem],
    path: Any,
    code: str = "bad_cacao",
    fix: str | None = None,
) -> NoReturn:
    raise PlaybookLoadError(
        message or "the CACAO document cannot be read",
        path=path,
        errors=[str(one) for one in problems],
        code=code,
        fix=fix,
        problems=problems,
    )
