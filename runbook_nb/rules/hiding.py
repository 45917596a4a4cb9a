"""What must not be seen in rules and evidence: who says so, and a rule set as it may be shown.

Both sides of a comparison are hidden: the value, and the limit it was compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from runbook_nb._frozen import FrozenDict, Immutable
from runbook_nb.rules.operators import PRESENCE
from runbook_nb.rules.wording import REDACTED

if TYPE_CHECKING:
    from runbook_nb.rules.model import Rule
    from runbook_nb.rules.ruleset import RuleSet


class Hider(Protocol):
    """Says what must not be seen, and takes secret texts out of values."""

    def hides_key(self, key: str, /) -> bool:
        """Whether the value of a key must not be seen."""
        ...

    def scrub(self, value: Any, /) -> Any:
        """Give a value without the secret texts in it."""
        ...


class HiddenKeys(Immutable):
    """Stands for a policy in a copy: knows which keys are hidden, and no secret.

    Examples
    --------
    >>> hide = HiddenKeys(frozenset({"token"}))
    >>> hide.hides_key("token"), hide.scrub("as it was written")
    (True, 'as it was written')
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = keys

    def hides_key(self, key: str, /) -> bool:
        """Whether the value of a key was taken out."""
        return key in self._keys

    def scrub(self, value: Any, /) -> Any:
        """Give the value: secret texts were taken out when it was written."""
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return (HiddenKeys, (self._keys,))


class _Unseen:
    """Stands for a function whose name holds a secret."""

    def __init__(self, name: str, module: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = module

    def __call__(self, facts: Any) -> Any:
        raise TypeError("rules that were made for showing cannot judge")


def hidden_limit(op: str, limit: Any) -> Any:
    """Give what stands in the place of a limit of a hidden key, in the shape its operator takes.

    Examples
    --------
    >>> hidden_limit("between", [1, 5]), hidden_limit("exists", True)
    (['[REDACTED]', '[REDACTED]'], True)
    """
    if op in PRESENCE:
        return limit  # whether a value is asked to be there is no secret, and no limit either
    if op == "between":
        return [REDACTED, REDACTED]
    return [REDACTED] if op in ("in", "not_in") else REDACTED


def shown_rules(rules: RuleSet, hide: Hider) -> RuleSet:
    """Give a rule set as it may be shown; itself when nothing in it is hidden.

    Words are scrubbed and limits of hidden keys replaced. It is for showing: what it would judge
    is not what the set it was made of judges.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("r", "1", [Rule({"pin": {"eq": 4711}, "n": {"gt": 1}}, "x")])
    >>> dict(shown_rules(rules, HiddenKeys(frozenset({"pin"}))).rules[0].when)
    {'pin': {'eq': '[REDACTED]'}, 'n': {'gt': 1}}
    """
    word = _scrubber(hide)
    parts = {
        "name": word(rules.name),
        "version": word(rules.version),
        "rules": tuple(_shown_rule(rule, hide, word) for rule in rules.rules),
        "default": _shown_branch(rules.default, word),
        "unreadable": rules.unreadable
        if isinstance(rules.unreadable, str)
        else _shown_branch(rules.unreadable, word),
        "outside": tuple(
            _changed(
                one, where=_shown_when(one.where, hide), what=word(one.what), why=word(one.why)
            )
            for one in rules.outside
        ),
    }
    if all(_same(getattr(rules, name), part) for name, part in parts.items()):
        return rules
    made: RuleSet = object.__new__(type(rules))
    for one in fields(rules):
        object.__setattr__(made, one.name, parts.get(one.name))
    return made


def _scrubber(hide: Hider) -> Callable[[str], str]:
    def word(text: str) -> str:
        return str(hide.scrub(text))

    return word


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, tuple):
        return all(a is b for a, b in zip(old, new, strict=True))
    return old is new or (isinstance(old, str) and bool(old == new))


def _changed(part: Any, **values: Any) -> Any:
    """Replace fields of a part; give the part itself when nothing differs."""
    if all(getattr(part, name) == value for name, value in values.items()):
        return part
    return replace(part, **values)


def _shown_branch(branch: Any, word: Callable[[str], str]) -> Any:
    if branch is None:
        return None
    label = None if branch.label is None else word(branch.label)
    return _changed(branch, branch=word(branch.branch), label=label)


def _shown_rule(rule: Rule, hide: Hider, word: Callable[[str], str]) -> Rule:
    unit: Any = rule.unit
    if isinstance(unit, Mapping):
        unit = FrozenDict({word(key): word(one) for key, one in unit.items()})
    elif unit is not None:
        unit = word(unit)
    when: Any = rule.when
    when = _shown_when(when, hide) if isinstance(when, Mapping) else _shown_function(when, word)
    label = None if rule.label is None else word(rule.label)
    made: Rule = _changed(rule, when=when, then=word(rule.then), label=label, unit=unit)
    return made


def _shown_when(when: Mapping[str, Mapping[str, Any]], hide: Hider) -> FrozenDict:
    made: dict[str, Any] = {}
    for key, ops in when.items():
        hidden = hide.hides_key(key)
        shown = {
            op: hidden_limit(op, limit) if hidden else scrubbed_limit(op, limit, hide)
            for op, limit in ops.items()
        }
        name = str(hide.scrub(key))
        while name in made:  # keys that differ in a secret alone stay several
            name += "'"
        made[name] = FrozenDict(shown)
    return FrozenDict(made)


def scrubbed_limit(op: str, limit: Any, hide: Hider) -> Any:
    """Give a limit without the secret texts in it.

    Half a pattern, or one end of a range, is a limit no longer: those are hidden whole.
    """
    shown = hide.scrub(limit)
    return hidden_limit(op, limit) if op in ("between", "matches") and shown != limit else shown


def _shown_function(when: Callable[..., Any], word: Callable[[str], str]) -> Callable[..., Any]:
    name = str(getattr(when, "__qualname__", type(when).__qualname__))
    module = str(getattr(when, "__module__", "?"))
    if (word(name), word(module)) == (name, module):
        return when
    return _Unseen(word(name).rpartition(".")[2], word(module))
