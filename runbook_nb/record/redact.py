"""Redaction: one policy over everything that leaves a run.

Record layer. A `Redact` says what must not be seen; a `Redactor` is that policy made ready for
one run, knowing the secret texts met in it. Stages compute on real values; every served view
passes here. A scrubbed value is shown as `PLACEHOLDER`, so a reader sees that there was one.
When in doubt more is hidden, not less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any

from runbook_nb._frozen import ATOMS, FrozenDict, FrozenList, Immutable
from runbook_nb._json import plain_scalar
from runbook_nb._text import did_you_mean, number_text
from runbook_nb.errors import DefinitionError
from runbook_nb.record.forms import OUR_NAMES, OUR_WORDS
from runbook_nb.record.secrets import MIN_SECRET, PLACEHOLDER, Secrets
from runbook_nb.rules.decision import Decision, Selection

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
        Paths from the top, with ``[*]`` for every item of a list (``rows[*].token``). What lies
        behind a ``[*]`` is hidden from the top too, where a fan-out branch loads its item.
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
    values: tuple[str, ...] = field(default=(), repr=False)
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


#: A path through a value, or what is left of one.
Path = tuple[str, ...]


class Redactor:
    """A policy made ready for one run.

    With no policy everything passes unchanged. What cannot be looked into is hidden whole.
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
        for path in list(paths):
            # A branch has its item under ``item``, and often loads it into its state.
            for place, step in enumerate(path):
                if step == "[*]" and path[place + 1 :]:
                    paths += [path[place + 1 :], ("item", *path[place + 1 :])]
        self._paths: tuple[Path, ...] = tuple(dict.fromkeys(paths))
        self._secrets = Secrets((*policy.values, *secrets))

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
        more._secrets = self._secrets.with_more(secrets)
        return more

    # -- asking ----------------------------------------------------------------------------

    @property
    def knows_secrets(self) -> bool:
        """Whether there is any secret text to look for."""
        return bool(self._secrets)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path of the policy, as steps."""
        return self._paths

    def hides_key(self, key: str) -> bool:
        """Say whether the value under a name is hidden, whole or in part."""
        if not self.active:
            return False
        if self._named(key) or any(path[0] == key for path in self._paths):
            return True
        return "." in key and self._hides_path(key)

    def _named(self, key: str) -> bool:
        return key in self._keys or any(pattern.search(key) for pattern in self._patterns)

    def _hides_path(self, dotted: str) -> bool:
        # A rule may read "conn.password": it is hidden when any of its parts is, or its path is.
        parts = tuple(dotted.split("."))
        if any(self._named(part) for part in parts):
            return True
        return any(_matches(path[: len(parts)], parts[: len(path)]) for path in self._paths)

    def hides_emit(self, name: str) -> bool:
        """Say whether the payload of an event is hidden."""
        return any(pattern.search(name) for pattern in self._emits) or self.hides_key(name)

    # -- scrubbing -------------------------------------------------------------------------

    def scrub(self, value: Any) -> Any:
        """Hide named keys at any depth and secret texts anywhere in a value."""
        return self._whole(value, ()) if self.active else value

    def served(self, state: Mapping[str, Any]) -> Any:
        """Give the served form of a whole state or input, where paths apply from the top."""
        return self._whole(state, self._paths) if self.active else state

    def value(self, key: str, value: Any) -> Any:
        """Give the served form of the value of one state key."""
        if not self.active:
            return value
        return self.under(key, value, self._paths)

    def under(self, key: str, value: Any, paths: Sequence[Path] = (), top: bool = False) -> Any:
        """Give the served form of what stands under a key, where paths go on from there.

        With ``top`` the paths of the policy apply inside it from their beginning too.
        """
        if self._named(key):
            return PLACEHOLDER
        following = list(self._paths) if top else []
        for path in paths:
            if path[0] == key:
                if len(path) == 1:
                    return PLACEHOLDER
                following.append(path[1:])
        return self._whole(value, following)

    def text(self, text: str) -> str:
        """Hide secret texts inside a text."""
        return self._secrets.hide(text) if self._secrets else text

    def texts(self, value: Any) -> Any:
        """Hide secret texts in plain data in a written form of ours.

        The names of the form stay, and the words that say what something is: a secret that is
        spelt like one of them must not make the form unreadable.
        """
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return FrozenDict(
                {
                    key if key in OUR_NAMES else self.texts(key): item
                    if key in OUR_WORDS and isinstance(item, str)
                    else self.texts(item)
                    for key, item in value.items()
                }
            )
        if isinstance(value, list | tuple):
            items = map(self.texts, value)
            return tuple(items) if isinstance(value, tuple) else FrozenList(items)
        return value

    def _whole(self, value: Any, paths: Sequence[Path]) -> Any:
        try:
            return self._served(value, paths)
        except RecursionError:  # too deep to be looked through
            return PLACEHOLDER

    def _served(self, value: Any, paths: Sequence[Path]) -> Any:
        if isinstance(value, str):
            # A member of an enumeration stays one unless it holds a secret.
            plain = str(value.value) if isinstance(value, Enum) else value
            scrubbed = self.text(plain)
            return value if scrubbed == plain else scrubbed
        if isinstance(value, bytes | bytearray):
            return PLACEHOLDER if self._secrets.are_in_bytes(bytes(value)) else value
        if value.__class__ in ATOMS:
            return PLACEHOLDER if self._is_secret_number(value) else value
        if isinstance(value, Mapping):
            return self._mapping(value, paths)
        serve = getattr(value, "served_by", None)
        if isinstance(value, Immutable) and callable(serve):
            return serve(self, paths)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = zip(value._fields, value, strict=True)
            return type(value)(*(self._entry(name, item, paths) for name, item in parts))
        if isinstance(value, Sequence):
            items = [self._item(index, item, paths) for index, item in enumerate(value)]
            return tuple(items) if type(value) is tuple else FrozenList(items)
        if isinstance(value, set | frozenset):
            return frozenset(_hashable(self._served(item, ())) for item in value)
        return self._object(value, paths)

    def _is_secret_number(self, value: Any) -> bool:
        # A number is told by its digits: one that is a secret is hidden as the text would be.
        return (
            bool(self._secrets)
            and isinstance(value, int | float | Decimal)
            and not isinstance(value, bool)
            and number_text(value) in self._secrets
        )

    def _mapping(self, value: Mapping[Any, Any], paths: Sequence[Path]) -> FrozenDict:
        return FrozenDict(
            {
                key if key in OUR_NAMES else _hashable(self._served(key, ())): self._entry(
                    str(key), item, paths
                )
                for key, item in value.items()
            }
        )

    def _object(self, value: Any, paths: Sequence[Path]) -> Any:
        # What can say itself as data is scrubbed as data; what cannot be looked into is hidden.
        if isinstance(value, Decision | Selection):
            return type(value)(value.path, value.values, self)
        if isinstance(value, Enum):
            inner = self._served(value.value, ())
            return value if inner == value.value else inner
        plain = plain_scalar(value)
        if plain is not value:
            return self._served(plain, paths)
        if isinstance(value, int | float):
            return value
        data = _as_data(value)
        name = getattr(value, "name", None)
        if data is None or (isinstance(name, str) and self._named(name)):
            return PLACEHOLDER
        return self._served(data[0], paths)

    def _entry(self, key: str, item: Any, paths: Sequence[Path]) -> Any:
        if self._named(key):
            return PLACEHOLDER
        return self._further(item, (path[1:] for path in paths if path[0] == key))

    def _item(self, index: int, item: Any, paths: Sequence[Path]) -> Any:
        here = ("[*]", f"[{index}]")
        return self._further(item, (path[1:] for path in paths if path[0] in here))

    def _further(self, item: Any, paths: Iterable[Path]) -> Any:
        following = list(paths)
        return self._served(item, following) if all(following) else PLACEHOLDER

    # -- learning --------------------------------------------------------------------------

    def secrets_in(
        self, value: Any, paths: Sequence[Path] | None = None, *, any_item: bool = False
    ) -> set[str]:
        """Collect the secret texts of a state or input: those under a hidden name or path.

        With ``any_item`` a numbered path means every item of its list.
        """
        found: set[str] = set()
        if self.active:
            with suppress(RecursionError):  # such a value is hidden whole when served
                following = self._paths if paths is None else paths
                found.update(self._learnt(value, following, False, any_item))
        return found

    def _learnt(
        self, value: Any, paths: Sequence[Path], hidden: bool, any_item: bool
    ) -> Iterator[str]:
        if isinstance(value, str | bytes | bytearray) or value.__class__ in ATOMS:
            told = _told(value) if hidden else ""
            if len(told) >= MIN_SECRET:
                yield told
            return
        entries = _entries(value)
        if entries is not None:
            for key, item in entries:
                word = str(key)
                now, rest = _followed(paths, word)
                yield from self._learnt(item, rest, hidden or now or self._named(word), any_item)
        elif isinstance(value, Immutable) and hasattr(value, "served_by"):
            # Slots: what they hold was recorded when it came about; only a name hides more.
            if hidden or paths:
                yield from self._learnt([one.to_dict() for one in value], paths, hidden, any_item)  # type: ignore[attr-defined]
        elif isinstance(value, Sequence | set | frozenset):
            for index, item in enumerate(value):
                here = [p for p in paths if p[0] in ("[*]", f"[{index}]") or any_item]
                now = any(len(path) == 1 for path in here)
                rest = [path[1:] for path in here if len(path) > 1]
                yield from self._learnt(item, rest, hidden or now, any_item)
        else:
            data = _as_data(value)
            if data is not None:
                yield from self._learnt(data[0], paths, hidden, any_item)


def _told(value: Any) -> str:
    """Give the text by which a secret is told: its own, or the digits of a number."""
    if isinstance(value, str):
        return str(value.value) if isinstance(value, Enum) else value
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return number_text(value)
    return ""


def _entries(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Give the named parts of a mapping or a named tuple; None for anything else."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    return None


def _as_data(value: Any) -> tuple[Any] | None:
    """Have an object say itself as data; None when it cannot, whatever a foreign object does."""
    to_dict = getattr(value, "to_dict", None)
    if not callable(to_dict):
        return None
    try:
        return (to_dict("records") if hasattr(value, "columns") else to_dict(),)
    except Exception:
        return None


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return PLACEHOLDER
    return value


def _followed(paths: Sequence[Path], word: str) -> tuple[bool, list[Path]]:
    here = [path for path in paths if path[0] == word]
    return any(len(path) == 1 for path in here), [path[1:] for path in here if len(path) > 1]


def _steps(path: str) -> Path:
    return tuple(_STEP.findall(path))


def _matches(path: Sequence[str], parts: Sequence[str]) -> bool:
    return len(path) == len(parts) and all(
        step in (part, f"[{part}]") or (step == "[*]" and part.isdigit())
        for step, part in zip(path, parts, strict=True)
    )


__all__ = ["MIN_SECRET", "PLACEHOLDER", "Redact", "Redactor", "as_redact"]
