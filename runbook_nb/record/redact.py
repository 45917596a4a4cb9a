"""Redaction: one policy over everything that leaves a run.

Record layer. A `Redact` says what must not be seen; a `Redactor` is that policy made ready for
one run, knowing the secret texts met in it. Stages compute on real values; every served view
passes here. A scrubbed value is shown as `PLACEHOLDER`, so a reader sees that there was one.
When in doubt more is hidden, not less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, Final

from runbook_nb._frozen import ATOMS, FrozenDict, FrozenList, Immutable
from runbook_nb._json import plain_scalar
from runbook_nb._text import did_you_mean
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError
from runbook_nb.record.forms import OUR_NAMES, OUR_WORDS
from runbook_nb.record.learning import Carried, Lesson
from runbook_nb.record.paths import STEP, Path, followed, item_paths, leads_to, spread, steps_of
from runbook_nb.record.secrets import MIN_SECRET, PLACEHOLDER, Secrets
from runbook_nb.record.told import as_data, told
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.rules.ruleset import RuleSet


@frozen
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
        Paths from the top, with ``[*]`` for every item of a list (``rows[*].token``) and a number
        for one of them (``rows[0].token``, ``rows.0.token``); a name that meets a list means every
        item of it. What lies behind a ``[*]`` is hidden from the top too, where a fan-out branch
        loads its item.
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
        if self.fields is not None and not isinstance(self.fields, Mapping):
            raise DefinitionError(
                f"redact fields is {self.fields!r}, not a mapping of keys to paths",
                where="redact.fields",
                fix='write {"key": ["path.inside"]}',
            )
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
            _check_path(path, "redact.paths")
        for key, inner in fields.items():
            for path in inner:
                _check_path(path, f"redact.fields[{key!r}]")

    def to_dict(self) -> dict[str, Any]:
        """Give the policy as JSON values, literal secrets included.

        Examples
        --------
        >>> Redact(keys=("token",), fields={"conn": ("pin",)}).to_dict()
        {'keys': ['token'], 'fields': {'conn': ['pin']}}
        """
        written: dict[str, Any] = {}
        for name in _NAMES:
            part = getattr(self, name)
            if part and name == "fields":
                written[name] = {key: list(paths) for key, paths in part.items()}
            elif part:
                written[name] = list(part)
        return written


def joined_policies(first: Redact | None, second: Redact | None) -> Redact | None:
    """Give the policy that hides what either hides.

    Examples
    --------
    >>> joined_policies(Redact(keys=("a",)), Redact(keys=("b", "a"), emits=("x",))).to_dict()
    {'keys': ['a', 'b'], 'emits': ['x']}
    """
    if first is None or second is None:
        return first or second
    parts = {
        name: tuple(dict.fromkeys((*getattr(first, name), *getattr(second, name))))
        for name in _NAMES
        if name != "fields"
    }
    fields: dict[str, tuple[str, ...]] = {}
    for policy in (first, second):
        for key, paths in (policy.fields or {}).items():
            fields[key] = tuple(dict.fromkeys((*fields.get(key, ()), *paths)))
    return Redact(**parts, fields=fields)


def _check_path(path: str, where: str) -> None:
    if not steps_of(path) or "".join(re.findall(STEP, path)) != path.replace(".", ""):
        raise DefinitionError(
            f"{path!r} is no path",
            where=where,
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


#: What there is where there is no policy, or where it names no text.
_HIDES_NOTHING: Final = Redact()
_NO_SECRETS: Final = Secrets(())


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

    With no policy, and no key marked as secret, everything passes unchanged. What cannot be
    looked into is hidden whole.

    Parameters
    ----------
    policy : Redact or None
    secrets : iterable of str
        Secret texts that are known already.
    marked : iterable of str
        Keys that stages marked as secret.
    """

    __slots__ = (
        *("_carried", "_emits", "_keys", "_known", "_paths", "_patterns", "_rules", "_secrets"),
        "active",
    )

    def __init__(
        self, policy: Redact | None, secrets: Iterable[str] = (), *, marked: Iterable[str] = ()
    ) -> None:
        marked = tuple(marked)
        self.active = policy is not None or bool(marked)
        policy = policy or _HIDES_NOTHING
        self._keys = frozenset((*policy.keys, *marked))
        self._patterns = tuple(re.compile(pattern) for pattern in policy.patterns)
        self._emits = tuple(re.compile(pattern) for pattern in policy.emits)
        self._paths = paths_of(policy)
        texts = (*policy.values, *secrets)
        self._secrets = Secrets(texts) if texts else _NO_SECRETS
        self._carried: Carried = {}
        #: Names that patterns were tried on.
        self._known: dict[str, bool] = {}
        #: Rule sets as they may be seen, by id, with themselves.
        self._rules: dict[int, tuple[RuleSet, RuleSet]] = {}

    def knowing(self, secrets: Iterable[str], carried: Carried | None = None) -> Redactor:
        """Give the same policy, made to know more secret texts, and objects that carry secrets.

        Examples
        --------
        >>> Redactor(Redact(keys=("token",))).knowing({"t0p-s3cret"}).text("with t0p-s3cret")
        'with [REDACTED]'
        """
        more = object.__new__(Redactor)
        for name in self.__slots__:
            setattr(more, name, getattr(self, name))
        more._secrets = self._secrets.with_more(secrets)
        more.active = self.active or more._secrets.any
        more._carried = {**self._carried, **(carried or {})}
        more._rules = {}
        return more

    def lesson(self) -> Lesson:
        """Begin to learn what values hold under hidden names; `taught` ends it."""
        return Lesson(self._named, self._paths)

    def taught(self, lesson: Lesson) -> Redactor:
        """Give the same policy, knowing what was learnt."""
        more = self.knowing(lesson.texts, lesson.carried)
        more._paths = lesson.top
        return more

    # -- asking ----------------------------------------------------------------------------

    @property
    def knows_secrets(self) -> bool:
        """Whether there is any secret text to look for."""
        return self._secrets.any

    @property
    def secrets_known(self) -> int:
        """How many different secret texts it looks for."""
        return len(self._secrets)

    @property
    def secret_texts(self) -> frozenset[str]:
        """The secret texts it looks for; never to be shown."""
        return self._secrets.texts

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the policy hides something, from the top of a state or an input."""
        return self._paths

    def hides_key(self, key: str) -> bool:
        """Say whether the value under a name is hidden, whole or in part."""
        if not self.active:
            return False
        if self._named(key) or any(path[0] == key for path in self._paths):
            return True
        return "." in key and self._hides_path(key)

    def names(self, key: str) -> bool:
        """Say whether a name is hidden by itself, whatever it stands in."""
        return self._named(key)

    def _named(self, key: str) -> bool:
        if key in self._keys:
            return True
        if not self.active:
            return False
        if not self._patterns and "." not in key:
            return False
        found = self._known.get(key)
        if found is None:
            # Of a name with dots in it each part is one, too: rules read "conn.token".
            parts = (key, *key.split(".")) if "." in key else (key,)
            found = self._known[key] = any(
                part in self._keys or any(one.search(part) for one in self._patterns)
                for part in parts
            )
        return found

    def _hides_path(self, dotted: str) -> bool:
        parts = tuple(dotted.split("."))
        return any(leads_to(path, parts) for path in self._paths)

    def hides_emit(self, name: str) -> bool:
        """Say whether the payload of an event is hidden."""
        return any(pattern.search(name) for pattern in self._emits) or self.hides_key(name)

    def occurrences(self, text: str) -> int:
        """Count the secret texts in a text."""
        return self._secrets.count(text) if self._secrets else 0

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

    def item(self, key: str, item: Any) -> Any:
        """Give the served form of an item of the list under a key, whichever item it is."""
        if not self.active:
            return item
        ends, following = followed(self._paths, key)
        now, following = item_paths(following, 0, any_item=True)
        return PLACEHOLDER if ends or now or self._named(key) else self._whole(item, following)

    def under(self, key: str, value: Any, paths: Sequence[Path] = (), top: bool = False) -> Any:
        """Give the served form of what stands under a key, where paths go on from there.

        With ``top`` the paths of the policy apply inside it from their beginning too.
        """
        ends, following = followed(paths, key)
        if ends or self._named(key):
            return PLACEHOLDER
        return self._whole(value, [*self._paths, *following] if top else following)

    def text(self, text: str) -> str:
        """Hide secret texts inside a text."""
        return self._secrets.hide(text) if self._secrets.any else text

    def rules(self, rules: RuleSet) -> RuleSet:
        """Give a rule set as it may be shown: limits of hidden keys hidden, its words scrubbed.

        What comes back is for showing and is never judged with.
        """
        if not self.active:
            return rules
        found = self._rules.get(id(rules))
        if found is None:
            found = self._rules[id(rules)] = (rules, rules.served_by(self))
        return found[1]

    def texts(self, value: Any, *, ours: bool = True) -> Any:
        """Hide secret texts in plain data in a written form of ours.

        The names of the form stay, and with ``ours`` the words that say what something is: a
        secret that is spelt like one of them must not make the form unreadable.
        """
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return FrozenDict(
                {
                    key if key in OUR_NAMES else self.texts(key): item
                    if ours and key in OUR_WORDS and isinstance(item, str)
                    else self.texts(item, ours=ours)
                    for key, item in value.items()
                }
            )
        if isinstance(value, list | tuple):
            items = [self.texts(item, ours=ours) for item in value]
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
            return PLACEHOLDER if self._is_secret(value) else value
        if self._carried:
            known = self._carried.get(id(value))
            if known is not None:
                if () in known[1]:
                    return PLACEHOLDER
                paths = [*paths, *known[1]]
        if isinstance(value, Mapping):
            return self._mapping(value, paths)
        serve = getattr(value, "served_by", None)
        if isinstance(value, Immutable) and callable(serve):
            return self.rules(value) if isinstance(value, RuleSet) else serve(self, paths)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = zip(value._fields, value, strict=True)
            return type(value)(*(self._entry(name, item, paths) for name, item in parts))
        if isinstance(value, Sequence):
            items = [self._item(index, item, paths) for index, item in enumerate(value)]
            return tuple(items) if type(value) is tuple else FrozenList(items)
        if isinstance(value, set | frozenset):
            return frozenset(_hashable(self._item(0, item, paths)) for item in value)
        return self._object(value, paths)

    def _is_secret(self, value: Any) -> bool:
        # A number or a date is told by its text: one that is a secret is hidden as that would be.
        return bool(self._secrets) and any(text in self._secrets for text in told(value))

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
            return type(value)(value.path, value.raw_values, self)
        if isinstance(value, Enum):
            inner = self._served(value.value, ())
            return value if inner == value.value else inner
        plain = plain_scalar(value)
        if plain is not value:
            return self._served(plain, paths)
        if isinstance(value, int | float):
            return value
        data = as_data(value)
        name = getattr(value, "name", None)
        if data is None or (isinstance(name, str) and self._named(name)):
            return PLACEHOLDER
        return self._served(data[0], paths)

    def _entry(self, key: str, item: Any, paths: Sequence[Path]) -> Any:
        if self._named(key):
            return PLACEHOLDER
        if not paths:
            return self._served(item, ())
        ends, following = followed(paths, key)
        return PLACEHOLDER if ends else self._served(item, following)

    def _item(self, index: int, item: Any, paths: Sequence[Path]) -> Any:
        if not paths:
            return self._served(item, ())
        ends, following = item_paths(paths, index)
        return PLACEHOLDER if ends else self._served(item, following)

    # -- learning --------------------------------------------------------------------------

    def secrets_in(
        self, value: Any, paths: Sequence[Path] | None = None, *, any_item: bool = False
    ) -> set[str]:
        """Collect the secret texts of a state or input: those under a hidden name or path.

        With ``any_item`` a numbered path means every item of its list.
        """
        lesson = self.lesson()
        if self.active:
            lesson.take(value, self._paths if paths is None else paths, any_item=any_item)
        return lesson.texts


def paths_of(policy: Redact) -> tuple[Path, ...]:
    """Give every path a policy hides, those from inside a branch included."""
    paths = [steps_of(path) for path in policy.paths]
    for key, inner in (policy.fields or {}).items():
        paths.extend((key, *steps_of(path)) for path in inner)
    # A key spelt with dots is a path as well: which of both was meant cannot be told.
    paths.extend(steps_of(key) for key in policy.keys if "." in key)
    return spread(paths)


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return PLACEHOLDER
    return value


__all__ = ["MIN_SECRET", "PLACEHOLDER", "Redact", "Redactor", "as_redact"]


#: Of a run without a policy; nothing is ever kept in it.
HIDES_NOTHING: Final = Redactor(None)
