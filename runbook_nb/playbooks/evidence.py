"""Evidence of a call: the text a probe is searched in, and which probes it satisfies.

A probe is a piece of text that must occur in what was *asked for*: the tool's name and its
arguments. Results are never searched, for a tool that prints what it was to prove proves nothing.
There are two forms of the text. ``v1`` is the plain one: the name, a space and the arguments as
escaped JSON, in lower case. ``v2`` finds what people mean: letters of any script as they are
written, in any case, and every single value once more as ``key=value``.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, get_args

from runbook_nb._text import did_you_mean, listed
from runbook_nb.errors import DefinitionError

#: How the text of a call is made.
ProbeText = Literal["v1", "v2"]

FORMS: Final[tuple[str, ...]] = get_args(ProbeText)

#: Longest text of the second form that is searched, in characters.
MAX_TEXT: Final = 1_048_576

#: How deep the second form looks into arguments for single values.
MAX_DEPTH: Final = 50

#: Stands for a value that cannot be written; nobody writes it into a probe.
UNWRITABLE: Final = "\ufffd"


class Probe(Protocol):
    """What is asked of a probe: any object with these attributes will do."""

    @property
    def name(self) -> str:
        """What the evidence is called."""
        ...

    @property
    def match(self) -> str:
        """The text that must occur in a call."""
        ...


def call_text(tool: str, arguments: Any = None, form: str = "v1") -> str:
    r"""Give the text of a call in which probes are searched.

    Parameters
    ----------
    tool : str
        The name of the tool.
    arguments : object, optional
        What it was called with. None adds nothing, text is taken as it is, everything else is
        written as JSON; a value that JSON has no form for by its ``str()``, and one whose
        ``str()`` fails by a single placeholder.
    form : str, optional
        ``"v1"`` or ``"v2"``.

    Examples
    --------
    >>> call_text("Query_SIEM", {"index": "Zürich"})
    'query_siem {"index": "z\\u00fcrich"}'
    >>> print(call_text("query_siem", {"index": "Zürich", "span": {"hours": 24}}, form="v2"))
    query_siem {"index": "zürich", "span": {"hours": 24}}
    index=zürich
    span.hours=24
    """
    if form == "v1":
        return _joined(tool, arguments, escaped=True).lower()
    if form != "v2":
        raise DefinitionError(
            f"{form!r} is not a form of evidence text",
            code="bad_probe_text",
            where="probe_text",
            fix=did_you_mean(form, FORMS) or f"use {listed(FORMS, 'or')}",
        )
    text = _joined(tool, arguments, escaped=False)
    if isinstance(arguments, Mapping | list | tuple):
        text = "\n".join([text, *_Leaves(len(text)).of(arguments)])
    return folded(text[:MAX_TEXT])


def matched_probes(
    probes: Iterable[Probe], tool: str, arguments: Any = None, form: str = "v1"
) -> list[str]:
    """Name the probes that a call satisfies, in declared order, each once.

    In the second form a blank ``match`` is satisfied by nothing: it would be by any call.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> auth = SimpleNamespace(name="auth", match="index=AUTH")
    >>> matched_probes([auth], "query_siem", {"index": "auth"})
    []
    >>> matched_probes([auth], "query_siem", {"index": "auth"}, form="v2")
    ['auth']
    """
    wanted = list(probes)
    if not wanted:
        return []
    text = call_text(tool, arguments, form)
    found = (probe.name for probe in wanted if _needle(probe.match, form, text))
    return list(dict.fromkeys(found))


def folded(text: str) -> str:
    """Bring text into the form in which case and composition make no difference.

    Examples
    --------
    >>> folded("STRASSE") == folded("straße"), folded("Cafe\u0301") == folded("CAFÉ")
    (True, True)
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def is_blank(match: str) -> bool:
    r"""Say whether the text of a probe says nothing that a call could prove.

    Examples
    --------
    >>> is_blank("\t "), is_blank("index=auth")
    (True, False)
    """
    return not match.strip()


def _needle(match: str, form: str, text: str) -> bool:
    if form == "v1":
        return match.lower() in text
    return not is_blank(match) and _folded_once(match) in text


_folded_once = lru_cache(maxsize=1024)(folded)


def _joined(tool: str, arguments: Any, *, escaped: bool) -> str:
    if arguments is None:
        return tool
    return f"{tool} {_written(arguments, escaped=escaped)}"


def _written(value: Any, *, escaped: bool) -> str:
    if isinstance(value, str):
        return value
    try:
        return (_ESCAPED if escaped else _AS_WRITTEN).encode(value)
    except Exception:  # keys JSON has no form for, a structure that holds itself or nests too deep
        return text_of(value)


def text_of(value: Any) -> str:
    """Give the text of a value by its ``str()``; a placeholder when that fails.

    Examples
    --------
    >>> text_of(7)
    '7'
    """
    try:
        return str(value)
    except Exception:  # somebody else's method, and no ground to lose a call over
        return UNWRITABLE


_ESCAPED: Final = json.JSONEncoder(default=text_of)
_AS_WRITTEN: Final = json.JSONEncoder(default=text_of, ensure_ascii=False)


class _Leaves:
    """Collects the single values of arguments as lines of ``key=value``, within a budget."""

    def __init__(self, used: int) -> None:
        self._left = MAX_TEXT - used
        self._lines: list[str] = []
        self._around: set[int] = set()

    def of(self, value: Any) -> list[str]:
        self._visit("", value, 0)
        return self._lines

    def _visit(self, key: str, value: Any, depth: int) -> None:
        if self._left <= 0:
            return
        if not isinstance(value, Mapping | list | tuple | Set):
            self._add(key, value)
        elif depth < MAX_DEPTH and id(value) not in self._around:
            self._around.add(id(value))
            if isinstance(value, Mapping):
                for name, item in value.items():
                    within = name if isinstance(name, str) else _written(name, escaped=False)
                    self._visit(f"{key}.{within}" if key else within, item, depth + 1)
            else:  # items go by the name of their list, so that `hosts=web-1` finds one of several
                for item in sorted(value, key=text_of) if isinstance(value, Set) else value:
                    self._visit(key, item, depth + 1)
            self._around.discard(id(value))

    def _add(self, key: str, value: Any) -> None:
        text = str(value) if type(value) is int else _written(value, escaped=False)
        line = f"{key}={text}" if key else text
        self._lines.append(line)
        self._left -= len(line) + 1
