"""What differs between two versions of a rule set, rule by rule and field by field."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from runbook_nb._frozen import Immutable
from runbook_nb._json import encode, to_wire
from runbook_nb._text import visible
from runbook_nb._value import frozen
from runbook_nb.rules.kinds import kind_of, same
from runbook_nb.rules.model import Default, Outside, Rule, Unreadable
from runbook_nb.rules.ruleset import RuleSet, qualified_name
from runbook_nb.rules.wording import (
    condition_text,
    limit_text,
    op_words,
    value_text,
    when_text,
)
from runbook_nb.rules.written import write_when

#: What part of a rule set a change is about.
Part = Literal["rule", "default", "unreadable", "outside"]

#: The operators whose limit can be raised or lowered.
ORDERING: Final = ("gt", "gte", "lt", "lte")

#: The fields that are only spoken.
_SPOKEN: Final = ("label", "unit", "what", "why")

#: So many elements of a list are named when some come in or go.
_NAMED: Final = 3


@frozen(kw_only=False)
class FieldChange(Immutable):
    """One field that differs.

    Attributes
    ----------
    field : str
        ``limit``, ``operator``, ``condition``, ``function``, ``verdict``, ``label``, ``unit``,
        ``position``, ``what`` or ``why``.
    key : str or None
        The key of the condition it is about.
    old, new : object
        What it was and is; None where there was or is nothing.
    words : str
        The same in words.
    """

    field: str
    key: str | None
    old: Any
    new: Any
    words: str

    def to_dict(self) -> dict[str, Any]:
        """Give the change as JSON values."""
        return {
            "field": self.field,
            "key": self.key,
            "old": to_wire(self.old),
            "new": to_wire(self.new),
            "words": self.words,
        }


@frozen(kw_only=False)
class RuleChange(Immutable):
    """What became of one rule, of the default, of the unreadable branch or of ground outside.

    Attributes
    ----------
    part : {"rule", "default", "unreadable", "outside"}
    kind : {"same", "changed", "added", "removed"}
    old, new : int or None
        Its place before and after, from 0; None where it is not, and for a part without places.
    fields : tuple of FieldChange
        What differs, when it is in both.
    old_text, new_text : str or None
        Its conditions, or the branch, as written before and after.
    """

    part: Part
    kind: Literal["same", "changed", "added", "removed"]
    old: int | None
    new: int | None
    fields: tuple[FieldChange, ...] = ()
    old_text: str | None = None
    new_text: str | None = None

    @property
    def name(self) -> str:
        """What it is called: ``rule 3``, after its place now, or before when it is gone."""
        if self.part not in ("rule", "outside"):
            return self.part
        place = self.old if self.new is None else self.new
        return f"{self.part} {(place or 0) + 1}"

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return self.kind == "same"

    @property
    def decides(self) -> bool:
        """Whether it can change a verdict: a sentence or a unit that differs cannot."""
        if self.kind != "changed":
            return not self.is_same
        return any(field.field not in _SPOKEN for field in self.fields)

    @property
    def words(self) -> str:
        """Say what differs: ``rule 3 limit raised, 7 -> 14``."""
        if self.kind != "changed":
            return f"{self.name} {self.kind}"
        return f"{self.name} {'; '.join(field.words for field in self.fields)}"

    @property
    def cause(self) -> str:
        """Say what of it can change a verdict, leaving out what is only spoken."""
        if self.kind != "changed":
            return self.words
        told = [field.words for field in self.fields if field.field not in _SPOKEN]
        return f"{self.name} {'; '.join(told)}"

    @property
    def short(self) -> str:
        """Say which fields differ: ``limit, label``."""
        if self.kind != "changed":
            return self.kind
        return ", ".join(dict.fromkeys(field.field for field in self.fields))

    def to_dict(self) -> dict[str, Any]:
        """Give the change as JSON values; places are counted from 1, as sentences do."""
        return {
            "part": self.part,
            "kind": self.kind,
            "old": None if self.old is None else self.old + 1,
            "new": None if self.new is None else self.new + 1,
            "fields": [field.to_dict() for field in self.fields],
            "old_text": self.old_text,
            "new_text": self.new_text,
            "words": self.words,
        }


def rule_changes(before: RuleSet, after: RuleSet) -> tuple[RuleChange, ...]:
    """Compare two rule sets; rules in the order they have now, those that are gone at the end.

    Rules belong together when they say the same; else when they lead to the same branch under
    the same keys and operators; else when they share keys. Then come what leads to ``declined``,
    and the default.

    Examples
    --------
    >>> old = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, "old")], "new")
    >>> new = RuleSet("r", "2", [Rule({"age": {"gt": 14}}, "old")], "new")
    >>> [change.words for change in rule_changes(old, new)]
    ['rule 1 limit raised, 7 -> 14', 'unreadable same', 'default same']
    """
    return (
        *_in_order(before.outside, after.outside, "outside", _OUTSIDE_TIES, _outside_fields),
        *_in_order(before.rules, after.rules, "rule", _RULE_TIES, _rule_fields),
        _branch_change("unreadable", before.unreadable, after.unreadable),
        _branch_change("default", before.default, after.default),
    )


def differing(changes: Sequence[RuleChange]) -> tuple[RuleChange, ...]:
    """Give those that differ."""
    return tuple(change for change in changes if not change.is_same)


# --- which belongs to which --------------------------------------------------------------------


def _when_key(rule: Rule) -> Any:
    return encode(write_when(rule.when)) if isinstance(rule.when, Mapping) else rule.when


def _shape(rule: Rule) -> Any:
    when = rule.when
    if not isinstance(when, Mapping):
        return qualified_name(when)
    return tuple((key, *ops) for key, ops in when.items())


def _keys(rule: Rule) -> Any:
    return tuple(sorted(rule.when)) if isinstance(rule.when, Mapping) else None


def _first_key(rule: Rule) -> Any:
    return next(iter(rule.when)) if isinstance(rule.when, Mapping) else None


def _unit_key(rule: Rule) -> str:
    return encode(dict(rule.unit) if isinstance(rule.unit, Mapping) else rule.unit)


#: From the closest tie to the loosest.
_RULE_TIES: Final[tuple[Callable[[Rule], Any], ...]] = (
    lambda rule: (_when_key(rule), rule.then, rule.label, _unit_key(rule)),
    lambda rule: (_when_key(rule), rule.then),
    lambda rule: (_shape(rule), rule.then),
    lambda rule: (_keys(rule), rule.then),
    _when_key,
    _shape,
    _keys,
    lambda rule: (_first_key(rule), rule.then),
)
_OUTSIDE_TIES: Final[tuple[Callable[[Outside], Any], ...]] = (
    lambda entry: (encode(write_when(entry.where)), entry.what, entry.why),
    lambda entry: encode(write_when(entry.where)),
    lambda entry: entry.what,
)


def _in_order(
    old: Sequence[Any],
    new: Sequence[Any],
    part: Part,
    ties: Sequence[Callable[[Any], Any]],
    fields: Callable[[Any, Any], Iterator[FieldChange]],
) -> Iterator[RuleChange]:
    of_new = _matched(old, new, ties)
    moved = _moved([of_new[place] for place in sorted(of_new)])
    for place, entry in enumerate(new):
        was = of_new.get(place)
        text = _text(entry)
        if was is None:
            yield RuleChange(part, "added", None, place, new_text=text)
            continue
        found = [*fields(old[was], entry)]
        if was in moved:
            words = f"moved, {was + 1} -> {place + 1}"
            found.append(FieldChange("position", None, was + 1, place + 1, words))
        kind: Any = "changed" if found else "same"
        yield RuleChange(part, kind, was, place, tuple(found), _text(old[was]), text)
    for was in sorted(set(range(len(old))) - set(of_new.values())):
        yield RuleChange(part, "removed", was, None, old_text=_text(old[was]))


def _matched(
    old: Sequence[Any], new: Sequence[Any], ties: Sequence[Callable[[Any], Any]]
) -> dict[int, int]:
    """Pair entries, each with one at most: place in the new ones -> place in the old ones."""
    found: dict[int, int] = {}
    left = dict(enumerate(old))
    for tie in ties:
        waiting: dict[Any, list[int]] = {}
        for was, entry in left.items():
            waiting.setdefault(tie(entry), []).append(was)
        for place, entry in enumerate(new):
            if place in found:
                continue
            same_tie = waiting.get(tie(entry))
            if same_tie and tie(entry) is not None:
                # Of several, the one that stands where it stood.
                was = min(same_tie, key=lambda each: (abs(each - place), each))
                same_tie.remove(was)
                del left[was]
                found[place] = was
    return found


def _moved(olds: Sequence[int]) -> set[int]:
    """Give the places that are out of order: all but a longest run of rising ones."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for old in olds:
        at = bisect_left(tails, old)
        before[old] = ends[at - 1] if at else None
        tails[at : at + 1] = [old]
        ends[at : at + 1] = [old]
    kept: set[int] = set()
    last: int | None = ends[-1] if ends else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return set(olds) - kept


# --- what differs ------------------------------------------------------------------------------


def _text(entry: Any) -> str:
    if isinstance(entry, Outside):
        return when_text(entry.where)
    return when_text(entry.when, entry.unit_of)


def _rule_fields(old: Rule, new: Rule) -> Iterator[FieldChange]:
    yield from _when_fields(old.when, new.when, old.unit_of, new.unit_of)
    if old.then != new.then:
        yield _plain("verdict", old.then, new.then, "leads to")
    if old.label != new.label:
        yield _plain("label", old.label, new.label)
    if _unit_key(old) != _unit_key(new):
        yield FieldChange("unit", None, old.unit, new.unit, "unit changed")


def _outside_fields(old: Outside, new: Outside) -> Iterator[FieldChange]:
    yield from _when_fields(old.where, new.where, lambda key: None, lambda key: None)
    for name in ("what", "why"):
        if getattr(old, name) != getattr(new, name):
            yield _plain(name, getattr(old, name), getattr(new, name))


def _plain(field: str, old: Any, new: Any, verb: str = "") -> FieldChange:
    if field in ("label", "what", "why"):  # a sentence is not quoted inside another
        words = f"{field} {'added' if old is None else 'removed' if new is None else 'changed'}"
    else:
        words = f"{verb or field} {visible(str(new))}, was {visible(str(old))}"
    return FieldChange(field, None, old, new, words)


def _when_fields(
    old: Any,
    new: Any,
    old_unit: Callable[[str], str | None],
    new_unit: Callable[[str], str | None],
) -> Iterator[FieldChange]:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        if old is not new:
            words = f"{when_text(old)} -> {when_text(new)}"
            was, now = (None if isinstance(w, Mapping) else qualified_name(w) for w in (old, new))
            yield FieldChange("function", None, was, now, words)
        return
    for key in dict.fromkeys((*old, *new)):
        yield from _key_fields(
            key, old.get(key, {}), new.get(key, {}), old_unit(key), new_unit(key)
        )


def _key_fields(
    key: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    old_unit: str | None,
    new_unit: str | None,
) -> Iterator[FieldChange]:
    gone = [op for op in old if op not in new]
    come = [op for op in new if op not in old]
    if len(gone) == len(come) == 1:  # one comparison became another
        (was,), (now,) = gone, come
        words = f"{condition_text(key, was, old[was])} -> {op_words(now, new[now])}"
        limit = limit_text(now, new[now])
        yield FieldChange("operator", key, was, now, f"{words} {limit}".rstrip())
        if not _alike(old[was], new[now]):
            yield FieldChange("limit", key, old[was], new[now], _limit_words(now, old[was], limit))
        gone, come = [], []
    for op in gone:
        text = condition_text(key, op, old[op], old_unit)
        yield FieldChange("condition", key, text, None, f"without {text}")
    for op in come:
        text = condition_text(key, op, new[op], new_unit)
        yield FieldChange("condition", key, None, text, f"with {text}")
    for op in new:
        if op in old and not _alike(old[op], new[op]):
            yield FieldChange("limit", key, old[op], new[op], _limit_change(op, old[op], new[op]))


def _alike(left: Any, right: Any) -> bool:
    return kind_of(left) == kind_of(right) and same(left, right)


def _limit_words(op: str, old: Any, limit: str) -> str:
    return f"limit {value_text(old)} -> {limit}"


def _limit_change(op: str, old: Any, new: Any) -> str:
    if op in ("in", "not_in"):
        return _list_change(old, new)
    texts = f"{limit_text(op, old)} -> {limit_text(op, new)}"
    if op in ORDERING and kind_of(old) == kind_of(new):
        try:
            return f"limit {'raised' if new > old else 'lowered'}, {texts}"
        except (TypeError, ArithmeticError):  # a Decimal beside a float may refuse
            pass
    return f"limit changed, {texts}"


def _list_change(old: Sequence[Any], new: Sequence[Any]) -> str:
    come = [value for value in new if not any(_alike(value, one) for one in old)]
    gone = [value for value in old if not any(_alike(value, one) for one in new)]
    said = [_named("with", come), _named("without", gone)]
    return "list " + (" and ".join(filter(None, said)) or "in another order")


def _named(word: str, values: Sequence[Any]) -> str:
    if not values:
        return ""
    if len(values) > _NAMED:
        return f"{word} {len(values)} values"
    return f"{word} {', '.join(map(value_text, values))}"


def _branch_change(part: Part, old: Any, new: Any) -> RuleChange:
    texts = _branch_text(old), _branch_text(new)
    if isinstance(old, Default | Unreadable) and isinstance(new, Default | Unreadable):
        found = []
        if old.branch != new.branch:
            found.append(_plain("verdict", old.branch, new.branch, "leads to"))
        if old.label != new.label:
            found.append(_plain("label", old.label, new.label))
        kind: Any = "changed" if found else "same"
        return RuleChange(part, kind, None, None, tuple(found), *texts)
    if old == new:
        return RuleChange(part, "same", None, None, (), *texts)
    if part == "default":
        return RuleChange(part, "added" if old is None else "removed", None, None, (), *texts)
    words = f"now {texts[1]}, was {texts[0]}"
    change = FieldChange("verdict", None, texts[0], texts[1], words)
    return RuleChange(part, "changed", None, None, (change,), *texts)


def _branch_text(branch: Any) -> str | None:
    if branch is None:
        return None
    if isinstance(branch, Default | Unreadable):
        return branch.branch
    return {"skip": "not true", "raise": "an error"}.get(branch, str(branch))


__all__ = ["FieldChange", "RuleChange", "differing", "rule_changes"]
