"""Entries of a skill's list that bound arguments: ``Bash(git:*)``, ``Read(src/**)``.

An entry is a tool's name, in which ``*`` stands for any characters, and may be followed by a
bound in brackets on the call's *subject*: the text of its arguments that says what it acts on.

==================  ==========================================================================
``Bash``            any call of the tool
``Bash(*)``         the same
``Bash(git:*)``     the subject is ``git``, or begins with ``git`` and white space
``Read(src/**)``    the subject fits the glob; ``**`` crosses folders, ``*`` and ``?`` do not
``Bash(make)``      the subject is exactly this
==================  ==========================================================================

A bound that cannot be judged is not met: when no argument is the subject, when a shell could find
a second command in it, and when a path climbs out with ``..``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, Literal

from runbook_nb._text import MISSING, visible
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError

#: Arguments that say what a call acts on, and whether a shell reads them.
SUBJECTS: Final[dict[str, bool]] = {
    "command": True,
    "cmd": True,
    "script": True,
    "file_path": False,
    "notebook_path": False,
    "path": False,
    "url": False,
    "uri": False,
    "pattern": False,
    "query": False,
    "skill": False,
}

#: What a bound says of the subject.
Bound = Literal["any", "prefix", "glob", "exact"]

_SHAPE: Final = re.compile(r"([^()\s]+)(?:\((.*)\))?", re.DOTALL)
_OPERATORS: Final = frozenset("();<>|&")
_TELLING: Final = _OPERATORS | frozenset("\"'\\")
# `$'` and `$"` quote by rules of their own, which differ from one shell to the next.
_MORE_COMMANDS: Final = re.compile(r"[`\n\r\0]|\$[('\"]")

#: Longest subject that is held against a bound, in characters.
MAX_SUBJECT: Final = 10_000


@frozen(kw_only=False)
class ToolPattern:
    """One entry, read.

    Attributes
    ----------
    tool : str
        The name, ``*`` for any characters.
    bound : str
        ``any``, ``prefix``, ``glob`` or ``exact``.
    text : str
        What is asked of the subject.

    Examples
    --------
    >>> parse_pattern("Bash(git:*)")
    ToolPattern(tool='Bash', bound='prefix', text='git')
    """

    tool: str
    bound: Bound = "any"
    text: str = ""

    def names(self, tool: str) -> bool:
        """Say whether the entry is about this tool."""
        return tool == self.tool or ("*" in self.tool and fnmatchcase(tool, self.tool))

    def holds(self, arguments: Any) -> bool:
        """Say whether the bound is met by these arguments."""
        if self.bound == "any":
            return True
        subject, shell = subject_of(arguments)
        if subject is None or len(subject) > MAX_SUBJECT:
            return False
        if self.bound == "exact":
            return subject == self.text
        if self.bound == "glob":
            fits = _fits(self.text, subject)
        else:
            rest = subject.removeprefix(self.text)
            fits = rest != subject and (not rest or _ends_word(self.text, rest))
        return fits and not (shell and _runs_more(subject))


@lru_cache(maxsize=1024)
def parse_pattern(entry: str) -> ToolPattern:
    """Read one entry of a skill's list.

    Raises
    ------
    DefinitionError
        It is neither a name nor a name with a bound (``bad_tool_pattern``).

    Examples
    --------
    >>> parse_pattern("Read(src/**)"), parse_pattern("scan")
    (ToolPattern(tool='Read', bound='glob', text='src/**'),
     ToolPattern(tool='scan', bound='any', text=''))
    """
    found = _SHAPE.fullmatch(entry.strip())
    if found is None or found[2] == "":
        raise _refusal(entry, "write a tool's name, or a name with a bound such as 'Bash(git:*)'")
    tool, text = found[1], found[2]
    if text is None or text == "*":
        return ToolPattern(tool)
    if text.endswith(":*"):
        prefix = text.removesuffix(":*")
        if not prefix or "*" in prefix:
            raise _refusal(entry, "write the beginning of the command before ':*', without '*'")
        return ToolPattern(tool, "prefix", prefix)
    if re.match(r"\w+:(?!//)", text):
        raise _refusal(entry, "of what stands before a colon only 'beginning:*' is understood")
    return ToolPattern(tool, "glob" if set(text) & set("*?") else "exact", text)


def _refusal(entry: str, fix: str) -> DefinitionError:
    return DefinitionError(
        f"{visible(entry)!r} is not a bound that is understood",
        code="bad_tool_pattern",
        where="allowed_tools",
        fix=fix,
    )


def permits(entries: Iterable[str], tool: str, arguments: Any = MISSING) -> bool:
    """Say whether one of the entries allows a call; left-out arguments count as fitting.

    Entries that are not understood allow nothing.

    Examples
    --------
    >>> permits(["Bash(git:*)"], "Bash", {"command": "git log"})
    True
    >>> permits(["Bash(git:*)"], "Bash", {"command": "git log; rm -rf /"})
    False
    """
    for entry in entries:
        try:
            pattern = parse_pattern(entry)
        except DefinitionError:  # told where the skill was read, and by lint
            continue
        if pattern.names(tool) and (arguments is MISSING or pattern.holds(arguments)):
            return True
    return False


def subject_of(arguments: Any) -> tuple[str | None, bool]:
    """Give the text that says what a call acts on, and whether a shell may read it.

    That is the arguments themselves when they are text, else the one argument that has a known
    name (`SUBJECTS`), else the only one that is text. None when there is no such one.

    Examples
    --------
    >>> subject_of({"command": "git log", "description": "history"})
    ('git log', True)
    >>> subject_of({"a": "x", "b": "y"})
    (None, True)
    """
    if isinstance(arguments, str):
        return arguments, True
    if not isinstance(arguments, Mapping):
        return None, True
    known = [key for key in arguments if key in SUBJECTS]
    if known:
        value = arguments[known[0]]
        one = len(known) == 1 and isinstance(value, str)
        return (value, SUBJECTS[known[0]]) if one else (None, True)
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return (texts[0], True) if len(texts) == 1 else (None, True)


def _ends_word(prefix: str, rest: str) -> bool:
    return rest[0] in " \t" or not (prefix[-1].isalnum() or prefix[-1] in "_-.")


def _runs_more(command: str) -> bool:
    """Say whether a shell could find a second command, or a redirection, in this one."""
    if _MORE_COMMANDS.search(command):
        return True
    if _TELLING.isdisjoint(command):
        return False  # nothing in it means anything to a shell
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.commenters = ""  # within a word, no shell takes `#` for a comment
    try:
        return any(set(word) <= _OPERATORS for word in words if word)
    except ValueError:  # a quotation that never ends
        return True


def _fits(glob: str, path: str) -> bool:
    """Match folder by folder; ``**`` takes any number of them. Never more steps than both hold."""
    parts = re.split(r"[/\\]", path)
    reached = {0}  # how many parts of the path may be taken by the pieces so far
    for piece in glob.split("/"):
        if piece == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {n + 1 for n in reached if n < len(parts) and fnmatchcase(parts[n], piece)}
    return len(parts) in reached and ".." not in parts
