"""What rules read: the protocol facts must keep, nested keys, and reads that leave a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from runbook_nb._frozen import ATOMS, freeze
from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError


@runtime_checkable
class Facts(Protocol):
    """Anything that can be read like a mapping: a dict, a row, a scope."""

    def __getitem__(self, key: str, /) -> Any:
        """Give the value of a key."""
        ...

    def get(self, key: str, default: Any = None, /) -> Any:
        """Give the value of a key, or the default."""
        ...


def raw_of(scope: Any) -> tuple[Any, Callable[[tuple[str, ...]], Any] | None]:
    """Give the facts to read, and whom to tell the keys that were read, if anybody.

    An object that has ``facts_for_rules()`` says both itself; plain mappings are used as they
    are.

    Raises
    ------
    RuleError
        The object cannot be read like a mapping.
    """
    ask = getattr(scope, "facts_for_rules", None)
    if callable(ask):
        raw, note = ask()
        return raw, note
    if not callable(getattr(scope, "get", None)) or isinstance(scope, type):
        raise RuleError(
            f"rules cannot read {type(scope).__name__!r}",
            fix="give a mapping from key to value: a dict, a row, the scope of a stage",
            code="bad_facts",
        )
    return scope, None


def follow(get: Callable[..., Any], path: tuple[str, ...]) -> Any:
    """Follow a dotted path through mappings and, by digits, lists.

    Examples
    --------
    >>> follow({"disks": [{"free": 3}]}.get, ("disks", "0", "free"))
    3
    """
    value = get(path[0], MISSING)
    for step in path[1:]:
        if isinstance(value, Mapping):
            value = value.get(step, MISSING)
        elif isinstance(value, list | tuple) and step.isascii() and step.isdigit():
            place = int(step) if len(step) < 10 else len(value)
            value = value[place] if place < len(value) else MISSING
        else:
            return MISSING
    return value


def snapshot(value: Any) -> Any:
    """Keep a value as it is now, so that a later change by its owner does not rewrite evidence.

    What cannot be copied is kept by reference: no rule can compare such a value, and its summary
    names its type alone.
    """
    if type(value) in ATOMS or value is MISSING:
        return value
    try:
        return freeze(value)
    except Exception:
        return value


class RecordedFacts(Mapping[str, Any]):
    """The facts as a function rule sees them: read-only, and every read is noted in order."""

    __slots__ = ("_facts", "inputs")

    def __init__(self, facts: Any) -> None:
        self._facts = facts
        #: The reads so far, ``(key, value)``; a key that is not there reads as `MISSING`.
        self.inputs: list[tuple[str, Any]] = []

    def _read(self, key: str) -> Any:
        value = self._facts.get(key, MISSING)
        self.inputs.append((key, snapshot(value)))
        return value

    def __getitem__(self, key: str) -> Any:
        value = self._read(key)
        if value is MISSING:
            raise KeyError(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Give the value of a key, or the default."""
        value = self._read(key)
        return default if value is MISSING else value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._read(key) is not MISSING

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)


class FunctionRecord(NamedTuple):
    """What a function rule read and gave; it stands among a decision's values.

    Attributes
    ----------
    inputs : tuple of (str, object)
        Its reads in order, repeats kept.
    returned : object
        What it returned, as it was.
    error : str or None
        The message, when it raised.
    error_type : str or None
        The name of what it raised.
    """

    inputs: tuple[tuple[str, Any], ...]
    returned: Any = None
    error: str | None = None
    error_type: str | None = None
