"""Commands of a CACAO document: as hints, and as tools where a caller names them; never run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from runbook_nb._text import clip, counted
from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.cacao_check import decoded

#: What names the tools that do a command: a mapping by a step's id or name or by the text or type
#: of a command, or a function of the command and its step.
ToolFor = Mapping[str, "str | Iterable[str]"] | Callable[..., "str | Iterable[str] | None"]

#: Longest hint that is made of a command.
_HINT: Final = 1_000


class ToolNames:
    """Names the tools of commands as a caller said, and knows which of its words were of use.

    Examples
    --------
    >>> names = ToolNames({"bash": "shell", "Look": "siem"})
    >>> names.of("action--1", {"commands": [{"type": "bash", "command": "ls"}]}), names.unused()
    (['shell'], ['Look'])
    """

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
    if given is None or isinstance(given, str):
        return [given] if given else []
    names = [*given] if isinstance(given, Iterable) else [given]
    for name in names:
        if not isinstance(name, str):
            raise PlaybookDefinitionError(
                f"tool_for gave {name!r}, which is no name of a tool",
                code="bad_tool_for",
                where="tool_for",
                fix="give a text, several, or None",
            )
    return names


def hint_of(command: Mapping[str, Any]) -> str:
    """Say what a command is, in words for whoever is to do it.

    Examples
    --------
    >>> hint_of({"type": "http-api", "command": "GET /mail HTTP/1.1"})
    'http-api: GET /mail HTTP/1.1'
    """
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
