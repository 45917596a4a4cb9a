"""What has to hold of a CACAO document before it is read, all of it told at once.

Its form is checked as far as reading it depends on it: ids, references, one start, an end that is
reached, no circle but that of a loop. Whatever else stands in a document is kept as it is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from runbook_nb._parsed import Parsed
from runbook_nb._text import at, counted, did_you_mean, listed
from runbook_nb.playbooks.cacao import (
    EXTENSION,
    EXTENSION_VERSION,
    FOLLOWING,
    SPEC_VERSION,
    STEP_TYPES,
    is_timestamp,
    kind_of,
    links_of,
    next_of,
)
from runbook_nb.playbooks.problems import FileProblem, told

_REQUIRED: Final = ("id", "name", "created_by", "created", "modified", "workflow_start", "workflow")

#: What each kind of step cannot do without, and what that has to be.
_NEEDED: Final[Mapping[str, Mapping[str, type]]] = {
    "action": {"commands": list, "agent": str},
    "playbook-action": {"playbook_id": str},
    "parallel": {"next_steps": list},
    "if-condition": {"condition": str, "on_true": str},
    "while-condition": {"condition": str, "on_true": str},
    "switch-condition": {"switch": str, "cases": dict},
}
_WORDS: Final[Mapping[type, str]] = {str: "a text", list: "a list", dict: "a mapping"}

#: Where a document lists what steps refer to.
_LISTS: Final = {"agent": "agent_definitions", "targets": "target_definitions"}


def problems_of(document: Mapping[str, Any], parsed: Parsed | None = None) -> list[FileProblem]:
    """Find what is wrong with a document; nothing where it can be read.

    Parameters
    ----------
    document : mapping
    parsed : Parsed, optional
        Where its values stand in the text they were read from.

    Examples
    --------
    >>> [str(one) for one in problems_of({"type": "bundle"})]
    ["type: it is 'bundle', so this is no playbook; a CACAO playbook has the type 'playbook'"]
    """
    text = parsed or Parsed()
    return [
        replace(one, line=text.line_of(one.where), column=text.column_of(one.where))
        for one in _problems(document)
    ]


def _problems(document: Mapping[str, Any]) -> list[FileProblem]:
    kind = document.get("type")
    if kind != "playbook":
        fix = "a CACAO playbook has the type 'playbook'"
        return [_bad("not_a_playbook", "type", f"it is {told(kind)}, so this is no playbook", fix)]
    version = document.get("spec_version")
    if version != SPEC_VERSION:
        return [
            _bad(
                "other_version",
                "spec_version",
                f"it is written in {told(version)}",
                f"only {SPEC_VERSION!r} is read; convert it first",
            )
        ]
    found = [*_of_document(document)]
    workflow = document.get("workflow")
    if not isinstance(workflow, Mapping):
        return found
    for key, step in workflow.items():
        found += _of_step(key, step, document)
    # What leads where can be told only once every step is one.
    return found or [*_of_graph(document, workflow)]


def _of_document(document: Mapping[str, Any]) -> Iterator[FileProblem]:
    for name in _REQUIRED:
        if name not in document:
            fix = did_you_mean(name, [key for key in document if key not in _REQUIRED])
            yield _bad("missing", name, "it is missing", fix)
    yield from _wrong(document, "", {"name": str, "description": str, "workflow": dict})
    yield from _wrong(document, "", {"labels": list, "agent_definitions": dict})
    yield from _wrong(document, "", {"extension_definitions": dict, "playbook_extensions": dict})
    labels = document.get("labels")
    if isinstance(labels, list) and not all(isinstance(label, str) for label in labels):
        yield _bad("wrong_type", "labels", "it holds what is no text")
    for name, kind in (("id", "playbook"), ("created_by", "identity")):
        if name in document:
            yield from _no_id(document[name], name, kind)
    for name in ("created", "modified"):
        if name in document and not is_timestamp(document[name]):
            yield _bad(
                "bad_time",
                name,
                f"{told(document[name])} is no time",
                "write it in UTC, like '2026-11-29T01:02:03.000Z'",
            )
    yield from _extensions(document.get("playbook_extensions"), "playbook_extensions", document)
    yield from _of_extension(document.get("extension_definitions"))
    if isinstance(document.get("workflow"), Mapping):
        yield from _of_beginnings(document, document["workflow"])


def _of_beginnings(
    document: Mapping[str, Any], workflow: Mapping[str, Any]
) -> Iterator[FileProblem]:
    starts = [key for key, step in workflow.items() if _type(step) == "start"]
    if len(starts) != 1:
        yield _bad(
            "several_starts",
            "workflow",
            f"it has {counted(len(starts), 'start step')}",
            "a playbook has one; branches begin with the step they lead to",
        )
    for name in ("workflow_start", "workflow_exception"):
        target = document.get(name)
        if name in document and kind_of(target) is None:
            yield from _no_id(target, name, "action")
        elif name in document and target not in workflow:
            yield _unknown(name, target)
        elif name == "workflow_start" and starts and target not in starts:
            yield _bad("bad_id", name, f"{told(target)} is no start", f"it is {starts[0]!r}")


def _of_extension(definitions: Any) -> Iterator[FileProblem]:
    """Refuse what our extension says in a later form, which would be misread."""
    ours = definitions.get(EXTENSION) if isinstance(definitions, Mapping) else None
    version = ours.get("version") if isinstance(ours, Mapping) else EXTENSION_VERSION
    if str(version).partition(".")[0] != EXTENSION_VERSION.partition(".")[0]:
        place = at(at("extension_definitions", EXTENSION), "version")
        fix = "read it with a newer runbook_nb"
        yield _bad("other_version", place, f"it is version {told(version)} of what is read", fix)


def _of_step(key: Any, step: Any, document: Mapping[str, Any]) -> Iterator[FileProblem]:
    place = at("workflow", key)
    if not isinstance(step, Mapping):
        yield _bad("wrong_type", place, "it is no mapping")
        return
    kind = step.get("type")
    if kind not in STEP_TYPES:
        fix = did_you_mean(str(kind), STEP_TYPES) or f"use {listed(STEP_TYPES, 'or')}"
        yield _bad("unknown_step_type", f"{place}.type", f"there is no step {told(kind)}", fix)
        return
    yield from _no_id(key, place, kind)
    texts = {"name": str, "description": str, "step_extensions": dict}
    yield from _wrong(step, f"{place}.", texts)
    needed = _NEEDED.get(kind, {})
    for name in needed:
        if name not in step:
            near = did_you_mean(name, [one for one in step if one not in needed])
            yield _bad("missing", place, f"{kind} has no {name!r}", near)
    yield from _wrong(step, f"{place}.", needed)
    for name in ("delay", "timeout"):
        value = step.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield _bad(
                "bad_time",
                f"{place}.{name}",
                f"{told(value)} is no time",
                "write milliseconds as a whole number",
            )
    yield from _of_links(kind, step, place, document["workflow"])
    yield from _of_references(step, place, document)
    if kind == "playbook-action" and isinstance(step.get("playbook_id"), str):
        yield from _no_id(step["playbook_id"], f"{place}.playbook_id", "playbook")
    commands = step.get("commands")
    if kind == "action" and isinstance(commands, list):
        yield from _of_commands(commands, place)


def _of_links(
    kind: str, step: Mapping[str, Any], place: str, workflow: Mapping[str, Any]
) -> Iterator[FileProblem]:
    if "on_completion" in step and ("on_success" in step or "on_failure" in step):
        yield _bad(
            "conflict",
            place,
            "it has on_completion beside on_success or on_failure",
            "use on_completion alone, or the two others",
        )
    beyond = {"start": ("on_success", "on_failure"), "end": (*FOLLOWING, "on_failure")}
    for name in beyond.get(kind, ()):
        if name in step:
            yield _bad("missing", place, f"{kind} has no {name!r}")
    for where, target in links_of(step):
        if not isinstance(target, str) or kind_of(target) is None:
            yield from _no_id(target, f"{place}.{where}", "action")
        elif target not in workflow:
            yield _unknown(f"{place}.{where}", target)
        elif _type(workflow[target]) == "start":
            yield _bad("circle", f"{place}.{where}", "it leads back to the start")
    empty = {"parallel": "next_steps", "switch-condition": "cases"}.get(kind, "")
    if empty and step.get(empty) in ([], {}):
        yield _bad("no_branch", f"{place}.{empty}", f"{kind} leads nowhere")
    open_ended = kind in ("start", "action", "playbook-action", "while-condition") or (
        kind == "if-condition" and "on_false" not in step
    )
    if open_ended and next_of(step) is None:
        yield _bad(
            "no_end",
            place,
            "it does not say what follows it",
            "name that, or an end step, as on_completion",
        )


def _of_references(
    step: Mapping[str, Any], place: str, document: Mapping[str, Any]
) -> Iterator[FileProblem]:
    for name, home in _LISTS.items():
        named = step.get(name, [])
        known = document.get(home)
        for target in named if isinstance(named, list) else [named]:
            if kind_of(target) is None:
                yield from _no_id(target, f"{place}.{name}", "group")
            elif not isinstance(known, Mapping) or target not in known:
                yield _bad(
                    "unknown_reference", f"{place}.{name}", f"{home} does not hold {told(target)}"
                )
    yield from _extensions(step.get("step_extensions"), f"{place}.step_extensions", document)


def _extensions(given: Any, place: str, document: Mapping[str, Any]) -> Iterator[FileProblem]:
    known = document.get("extension_definitions")
    for key, held in given.items() if isinstance(given, Mapping) else ():
        if not isinstance(known, Mapping) or key not in known:
            yield _bad(
                "unknown_reference", place, f"extension_definitions does not hold {told(key)}"
            )
        if not isinstance(held, Mapping):
            yield _bad("wrong_type", place, f"what {told(key)} says is no mapping")


def _of_commands(commands: Sequence[Any], place: str) -> Iterator[FileProblem]:
    if not commands:
        yield _bad("no_command", f"{place}.commands", "action has no command")
    for n, command in enumerate(commands):
        where = f"{place}.commands[{n}]"
        if not isinstance(command, Mapping) or not isinstance(command.get("type"), str):
            yield _bad("no_command", where, "it is no command, which has a type")
            continue
        yield from _wrong(command, f"{where}.", {"command": str, "description": str})
        if "command" not in command and "command_b64" not in command:
            yield _bad("no_command", where, f"{told(command['type'])} says no command")
        for name in ("command_b64", "content_b64"):
            if name in command and decoded(command[name]) is None:
                yield _bad("bad_base64", f"{where}.{name}", "it is no base64")


def decoded(text: Any) -> bytes | None:
    """Read base64; None for what is none.

    Examples
    --------
    >>> decoded("aGk="), decoded("hi")
    (b'hi', None)
    """
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        return None


def _of_graph(document: Mapping[str, Any], workflow: Mapping[str, Any]) -> Iterator[FileProblem]:
    circle = _circle(workflow)
    if circle is not None:
        yield _bad(
            "circle",
            at("workflow", circle[1]),
            f"{_named(circle[1], workflow)} leads back to {_named(circle[0], workflow)}",
            "only the body of a while-condition may be gone through again",
        )
        return
    reached = reachable(document["workflow_start"], workflow)
    if not any(_type(workflow[key]) == "end" for key in reached):
        yield _bad(
            "no_end",
            "workflow_start",
            "no end step can be reached from the start",
            "let the last step lead to one by on_completion",
        )


def reachable(first: str, workflow: Mapping[str, Any], *, failing: bool = False) -> set[str]:
    """Give the ids of the steps that can be come to from one, on failures too where asked.

    Examples
    --------
    >>> sorted(reachable("a", {"a": {"on_success": "b", "on_failure": "c"}, "b": {}, "c": {}}))
    ['a', 'b']
    """
    found, coming = {first}, [first]
    while coming:
        for where, target in links_of(workflow[coming.pop()]):
            if target not in found and (failing or where != "on_failure"):
                found.add(target)
                coming.append(target)
    return found


def _circle(workflow: Mapping[str, Any]) -> tuple[str, str] | None:
    """Find a step that is come to again from what follows it, and the step that leads there."""
    done: set[str] = set()
    for first in workflow:
        if first in done:
            continue
        #: From the first on: each step that is being followed, what it leads to still, and by
        #: which of its links the next one was come to.
        path: list[tuple[str, Iterator[tuple[str, str]]]] = [(first, links_of(workflow[first]))]
        by: dict[str, str] = {first: ""}
        while path:
            key, coming = path[-1]
            where, target = next(coming, ("", ""))
            if not where:
                path.pop()
                done.add(key)
                del by[key]
                continue
            by[key] = where
            if target in by:
                loops = _type(workflow[target]) == "while-condition" and by[target] == "on_true"
                if not loops:
                    return target, key
            elif target not in done:
                by[target] = ""
                path.append((target, links_of(workflow[target])))
    return None


def _wrong(held: Mapping[str, Any], place: str, asked: Mapping[str, type]) -> Iterator[FileProblem]:
    for name, kind in asked.items():
        if name in held and not isinstance(held[name], kind):
            yield _bad("wrong_type", f"{place}{name}", f"it is not {_WORDS[kind]}")


def _no_id(value: Any, where: str, kind: str) -> Iterator[FileProblem]:
    found = kind_of(value)
    if found is None:
        fix = f"an id reads '{kind}--<uuid>'"
        yield _bad("bad_id", where, f"{told(value)} is no id", fix)
    elif found != kind:
        yield _bad("bad_id", where, f"{told(value)} is the id of no {kind}")


def _unknown(where: str, target: Any) -> FileProblem:
    return _bad("unknown_reference", where, f"the workflow does not hold {told(target)}")


def _type(step: Any) -> Any:
    return step.get("type") if isinstance(step, Mapping) else None


def _named(key: str, workflow: Mapping[str, Any]) -> str:
    name = workflow[key].get("name")
    return told(name) if name else f"the {workflow[key]['type']} {key}"


def _bad(code: str, where: str, message: str, fix: str | None = None) -> FileProblem:
    return FileProblem(code=code, where=where, message=message, fix=fix)
