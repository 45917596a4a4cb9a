"""Redaction: one policy over everything that leaves a run.

Record layer. A `Redact` says what must not be seen; a `Redactor` is that policy made ready for
one run, knowing the secret texts met in it. Stages compute on real values; every served view
passes here. A scrubbed value is shown as `PLACEHOLDER`, so a reader sees that there was one.
When in doubt more is hidden, not less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from runbook_nb._frozen import ATOMS, FrozenDict, FrozenList, Immutable
from runbook_nb._text import did_you_mean
from runbook_nb.errors import DefinitionError

#: What stands for a scrubbed value, in every view.
PLACEHOLDER: Final = "[REDACTED]"

#: Secret texts of at least this many characters are scrubbed wherever they reappear. Shorter
#: ones would blot out ordinary words.
MIN_SECRET: Final = 6

_STEP = re.compile(r"[^.\[\]]+|\[\*\]|\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redact(Immutable):
    """What must not be seen in anything that leaves a run.

    Attributes
    ----------
    keys : tuple of str
        Names whose value is hidden, as a state key, an input, or a key of any nested mapping.
    patterns : tuple of str
        Regular expressions searched for in such names.
    fields : mapping of str to tuple of str
        For a state key, dotted paths inside its value.
    paths : tuple of str
        Paths from the top, with ``[*]`` for every item of a list (``rows[*].token``).
    values : tuple of str
        Literal secrets, hidden wherever they occur in a text.
    emits : tuple of str
        Regular expressions over event names whose payload is hidden.

    Examples
    --------
    >>> policy = Redact(keys=("apiKey",), paths=("rows[*].token",))
    >>> Redactor(policy).served({"apiKey": "s3cr3t-42", "rows": [{"id": 1, "token": "t-9"}]})
    {'apiKey': '[REDACTED]', 'rows': [{'id': 1, 'token': '[REDACTED]'}]}
    """

    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] | None = None
    paths: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    emits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("keys", "patterns", "paths", "values", "emits"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        fields = {
            str(key): _texts(f"fields[{key!r}]", paths)
            for key, paths in (self.fields or {}).items()
        }
        object.__setattr__(self, "fields", FrozenDict(fields))
        for name in ("patterns", "emits"):
            for pattern in getattr(self, name):
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise DefinitionError(
                        f"{pattern!r} is no regular expression: {error}", where=f"redact.{name}"
                    ) from None
        for path in self.paths:
            if "".join(_STEP.findall(path)) != path.replace(".", ""):
                raise DefinitionError(
                    f"{path!r} is no path",
                    where="redact.paths",
                    fix="write keys joined by dots, with [*] for every item of a list",
                )


_NAMES = ("keys", "patterns", "fields", "paths", "values", "emits")


def _texts(name: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DefinitionError(
            f"redact {name} is {given!r}, not a list of texts", where=f"redact.{name}"
        )
    texts = tuple(given)
    if any(not isinstance(text, str) or not text for text in texts):
        raise DefinitionError(
            f"redact {name} holds something that is not a non-empty text", where=f"redact.{name}"
        )
    return texts


def as_redact(given: Redact | Mapping[str, Any] | None) -> Redact | None:
    """Read a policy given as itself, as a mapping with the same names, or not at all.

    Raises
    ------
    DefinitionError
        An unknown name: a misspelt policy would hide nothing.
    """
    if given is None or isinstance(given, Redact):
        return given
    if not isinstance(given, Mapping):
        raise DefinitionError(
            f"redact is {type(given).__name__}, not a policy",
            where="redact",
            fix='write rb.Redact(keys=["name"])',
        )
    for name in given:
        if name not in _NAMES:
            raise DefinitionError(
                f"redact has no part {name!r}",
                where="redact",
                fix=did_you_mean(str(name), _NAMES) or f"its parts are {', '.join(_NAMES)}",
            )
    return Redact(**given)


class Redactor:
    """A policy made ready for one run.

    With no policy everything passes unchanged.
    """

    __slots__ = ("_emits", "_keys", "_paths", "_patterns", "_secrets", "active")

    def __init__(self, policy: Redact | None, secrets: Iterable[str] = ()) -> None:
        self.active = policy is not None
        policy = policy or Redact()
        self._keys = frozenset(policy.keys)
        self._patterns = tuple(re.compile(pattern) for pattern in policy.patterns)
        self._emits = tuple(re.compile(pattern) for pattern in policy.emits)
        paths = [_steps(path) for path in policy.paths]
        for key, inner in (policy.fields or {}).items():
            paths.extend((key, *_steps(path)) for path in inner)
            # A field may also be spelt as one literal key that holds dots.
            paths.extend((key, path) for path in inner if "." in path)
        self._paths = tuple(paths)
        found = {*policy.values, *secrets}
        self._secrets = tuple(sorted(found, key=lambda text: (-len(text), text)))

    def knowing(self, secrets: Iterable[str]) -> Redactor:
        """Give the same policy, made to know more secret texts.

        Examples
        --------
        >>> Redactor(Redact(keys=("token",))).knowing({"t0p-s3cret"}).text("with t0p-s3cret")
        'with [REDACTED]'
        """
        more = object.__new__(Redactor)
        for name in self.__slots__:
            setattr(more, name, getattr(self, name))
        found = {*self._secrets, *secrets}
        more._secrets = tuple(sorted(found, key=lambda text: (-len(text), text)))
        return more

    # -- asking ----------------------------------------------------------------------------

    def hides_key(self, key: str) -> bool:
        """Say whether the value under a name is hidden."""
        if not self.active:
            return False
        if key in self._keys or any(pattern.search(key) for pattern in self._patterns):
            return True
        return "." in key and self._hides_path(key)

    def _hides_path(self, dotted: str) -> bool:
        # A rule may read "conn.password": it is hidden when any of its parts is, or its path is.
        parts = tuple(dotted.split("."))
        if any(self.hides_key(part) for part in parts):
            return True
        return any(_matches(path, parts[: len(path)]) for path in self._paths)

    def hides_emit(self, name: str) -> bool:
        """Say whether the payload of an event is hidden."""
        return any(pattern.search(name) for pattern in self._emits) or self.hides_key(name)

    # -- scrubbing -------------------------------------------------------------------------

    def scrub(self, value: Any) -> Any:
        """Hide named keys at any depth and secret texts anywhere in a value."""
        return self._served(value, ()) if self.active else value

    def served(self, state: Mapping[str, Any]) -> Any:
        """Give the served form of a whole state or input, where paths apply from the top."""
        if not self.active:
            return state
        return self._served(state, self._paths)

    def value(self, key: str, value: Any) -> Any:
        """Give the served form of the value of one state key."""
        if not self.active:
            return value
        return self.served(FrozenDict({key: value}))[key]

    def text(self, text: str) -> str:
        """Hide secret texts inside a text."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, PLACEHOLDER)
        return text

    def _served(self, value: Any, paths: Sequence[tuple[str, ...]]) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if value.__class__ in ATOMS:
            return value
        if isinstance(value, Mapping):
            return FrozenDict(
                {
                    self.text(key) if isinstance(key, str) else key: self._entry(
                        str(key), item, paths
                    )
                    for key, item in value.items()
                }
            )
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            items = [
                self._entry(f"[{index}]", item, paths, in_list=True)
                for index, item in enumerate(value)
            ]
            return tuple(items) if type(value) is tuple else FrozenList(items)
        if isinstance(value, set | frozenset):
            return frozenset(self._served(item, ()) for item in value)
        return self._served_object(value, paths)

    def _served_object(self, value: Any, paths: Sequence[tuple[str, ...]]) -> Any:
        # A frame, a slot, a dataclass: what can say itself as data is scrubbed as data, anything
        # else cannot be looked into and is hidden whole.
        from runbook_nb._json import plain_scalar

        plain = plain_scalar(value)
        if plain is not value or isinstance(value, int | float):
            return self._served(plain, paths) if plain is not value else value
        to_dict = getattr(value, "to_dict", None)
        if callable(to_dict):
            try:
                data = to_dict("records") if hasattr(value, "columns") else to_dict()
            except Exception:  # whatever a foreign object does, nothing of it may leak
                return PLACEHOLDER
            return self._served(data, paths)
        return PLACEHOLDER

    def _entry(
        self, key: str, item: Any, paths: Sequence[tuple[str, ...]], in_list: bool = False
    ) -> Any:
        if not in_list and (
            key in self._keys or any(pattern.search(key) for pattern in self._patterns)
        ):
            return PLACEHOLDER
        following = []
        for path in paths:
            if path[0] == key or (in_list and path[0] == "[*]"):
                if len(path) == 1:
                    return PLACEHOLDER
                following.append(path[1:])
        return self._served(item, following)

    # -- learning --------------------------------------------------------------------------

    def secrets_in(self, value: Any, paths: Sequence[tuple[str, ...]] | None = None) -> set[str]:
        """Collect the secret texts of a state or input: those under a hidden name or path."""
        found: set[str] = set()
        if self.active:
            self._learn(value, self._paths if paths is None else paths, False, found)
        return found

    def _learn(
        self, value: Any, paths: Sequence[tuple[str, ...]], hidden: bool, found: set[str]
    ) -> None:
        if isinstance(value, str):
            if hidden and len(value) >= MIN_SECRET:
                found.add(value)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                word = str(key)
                now = hidden or word in self._keys or any(p.search(word) for p in self._patterns)
                self._learn_entry(word, item, paths, now, found)
        elif isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
            for index, item in enumerate(value):
                self._learn_entry(f"[{index}]", item, paths, hidden, found)
        elif value.__class__ not in ATOMS and callable(getattr(value, "to_dict", None)):
            try:
                data = value.to_dict("records") if hasattr(value, "columns") else value.to_dict()
            except Exception:  # such an object is hidden whole when served
                return
            self._learn(data, paths, hidden, found)

    def _learn_entry(
        self,
        key: str,
        item: Any,
        paths: Sequence[tuple[str, ...]],
        hidden: bool,
        found: set[str],
    ) -> None:
        following = []
        for path in paths:
            if path[0] == key or (key.startswith("[") and path[0] == "[*]"):
                hidden = hidden or len(path) == 1
                following.append(path[1:])
        self._learn(item, [path for path in following if path], hidden, found)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(_STEP.findall(path))


def _matches(path: Sequence[str], parts: Sequence[str]) -> bool:
    return len(path) == len(parts) and all(
        step in (part, f"[{part}]") or (step == "[*]" and part.isdigit())
        for step, part in zip(path, parts, strict=True)
    )
