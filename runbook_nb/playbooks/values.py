"""What is kept of the arguments, results and errors of calls: redacted, and plain data.

A record must not change when its owner changes a value, must be writable as JSON, and must not
hold what the policy hides. What JSON has no form for is kept as text, or by the name of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._json import to_wire
from runbook_nb._text import clip
from runbook_nb.record.redact import Redact, Redactor, as_redact

#: Longest error text that is kept, in characters.
MAX_ERROR: Final = 500

#: Stands for a value that cannot be written at all.
UNWRITABLE: Final = "<a value that cannot be written>"

#: Classes whose values are plain data as they are; of floats only the finite ones, so not here.
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_TEXT: Final = frozenset({str})


class Kept:
    """Makes of values what a record keeps of them.

    Parameters
    ----------
    redact : Redact, mapping or None
        What must not be seen. What stands under a hidden name is hidden wherever it comes up
        again.

    Examples
    --------
    >>> kept = Kept({"keys": ["token"]})
    >>> kept.arguments({"token": "t0p-s3cret", "q": "auth"})
    {'token': '[REDACTED]', 'q': 'auth'}
    >>> kept.error("refused t0p-s3cret")
    'refused [REDACTED]'
    """

    __slots__ = ("_redactor",)

    def __init__(self, redact: Redact | Mapping[str, Any] | None) -> None:
        self._redactor = Redactor(as_redact(redact))

    @property
    def hides(self) -> bool:
        """Whether anything is to be hidden."""
        return bool(self._redactor.active)

    def arguments(self, given: Any) -> Any:
        """Give what is kept of the arguments of a call."""
        if self._redactor.active:
            return self._hidden(given, "arguments")
        if given.__class__ is dict and _PLAIN.issuperset(map(type, given.values())):
            texts = [*given, *[one for one in given.values() if one.__class__ is str]]
            if _TEXT.issuperset(map(type, given)) and "".join(texts).isascii():
                return FrozenDict(given)
        return None if given is None else _plain(given)

    @staticmethod
    def is_exact(given: Any, kept: Any) -> bool:
        """Say whether what is kept is what was given: nothing hidden, nothing turned into text.

        Examples
        --------
        >>> from datetime import date
        >>> day = date(2026, 1, 2)
        >>> Kept.is_exact({"a": 1}, {"a": 1}), Kept.is_exact({"at": day}, {"at": "2026-01-02"})
        (True, False)
        """
        try:
            return given is kept or bool(given == kept)
        except Exception:  # a foreign comparison may fail, or give more than yes or no
            return False

    def result(self, given: Any) -> Any:
        """Give what is kept of the result of a call."""
        if self._redactor.active:
            return self._hidden(given, "result")
        return None if given is None else _plain(given)

    def error(self, given: Any) -> str | None:
        """Give what is kept of what a call failed with."""
        if given is None:
            return None
        text = str(_plain(given)) if not isinstance(given, BaseException) else _told(given)
        return clip(self._redactor.text(text), MAX_ERROR)

    def text(self, given: str) -> str:
        """Give a text without the secrets that are known."""
        return self._redactor.text(given)

    def _hidden(self, given: Any, name: str) -> Any:
        plain = _plain(given)
        lesson = self._redactor.lesson()
        paths = self._redactor.paths
        lesson.take(plain, paths)
        self._redactor = self._redactor.taught(lesson) if lesson.texts else self._redactor
        if isinstance(plain, dict):
            return _plain(self._redactor.served(plain))
        return _plain(self._redactor.value(name, plain))


def snapshot(value: Any, depth: int = 50) -> Any:
    """Copy what holds values, so that whoever gave it cannot change it; the values are the same.

    Examples
    --------
    >>> given = {"hosts": ["web-1"]}
    >>> kept = snapshot(given)
    >>> given["hosts"].append("web-2")
    >>> kept
    {'hosts': ['web-1']}
    """
    if depth <= 0:
        return value
    if isinstance(value, dict):
        return {key: snapshot(one, depth - 1) for key, one in value.items()}
    if isinstance(value, list | set) or type(value) is tuple:
        return type(value)(snapshot(one, depth - 1) for one in value)
    return value


def _plain(value: Any) -> Any:
    try:
        return freeze(to_wire(value))
    except (
        Exception
    ):  # a cycle, a depth, a method of somebody else's: no ground to lose a call over
        return UNWRITABLE


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a foreign `__str__` may fail
        return type(error).__name__
