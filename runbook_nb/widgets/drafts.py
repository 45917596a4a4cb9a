"""A rule set being changed by hand: what was typed, what of it is applied, what is wrong with it.

Nothing here draws or judges. A rule that cannot be used stays as it was typed and says why; what
is applied in its place is the last form of it that could be used, if there was one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final

from runbook_nb._text import nearest, visible
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError, RuleError
from runbook_nb.rules import Default, Rule, RuleSet, Unreadable
from runbook_nb.rules.keeping import check_version, versioned
from runbook_nb.rules.model import DECLINED, OnUnreadable
from runbook_nb.rules.operators import PRESENCE
from runbook_nb.rules.versions import next_version

#: The version a draft is judged under.
DRAFT: Final = "draft"

#: Says why the key of a condition cannot be used, with one that can; None when it can.
KeyCheck = Callable[[str], "Wrong | None"]

#: Says why a limit cannot be used, by its key and operator, itself, and the limits that the
#: condition began with, by operator; None when it can.
LimitCheck = Callable[[str, str, Any, Mapping[str, Any]], "Wrong | None"]


@frozen(kw_only=False)
class Wrong:
    """Why a rule is not applied.

    Attributes
    ----------
    what : str
        What is wrong.
    key : str or None
        The key of the condition it is about.
    instead : str or None
        A key that could be meant.
    """

    what: str
    key: str | None = None
    instead: str | None = None


@frozen(kw_only=False)
class DraftRule:
    """One rule of a draft.

    Attributes
    ----------
    id : int
        Which rule it is, wherever it stands.
    rule : Rule
        As it was typed.
    good : Rule or None
        What is applied: the last form of it that could be used.
    wrong : Wrong or None
        Why what was typed is not applied.
    origin : int or None
        Its place in the rules the draft began with, from 0; None for an added one.
    """

    id: int
    rule: Rule
    good: Rule | None
    wrong: Wrong | None = None
    origin: int | None = None


class Draft:
    """The rules being changed.

    Parameters
    ----------
    rules : RuleSet
        What the draft begins with.
    check_key, check_limit : callable
        Judge the keys and the limits that are typed.

    Examples
    --------
    >>> draft = Draft(RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh"))
    >>> draft.set_limit(1, "days", "gt", 14)
    >>> draft.applied.rules[0].when["days"]["gt"], draft.keep("v2").title
    (14, 'age v2')
    """

    def __init__(
        self,
        rules: RuleSet,
        check_key: KeyCheck = lambda key: None,
        check_limit: LimitCheck = lambda key, op, limit, old: None,
    ) -> None:
        self.base = rules
        self._check_key = check_key
        self._check_limit = check_limit
        self._kept: list[RuleSet] = [rules]
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.rules = [DraftRule(n, r, r, None, n) for n, r in enumerate(self.base.rules)]
        self.default = self.base.default
        self.unreadable = self.base.unreadable
        self.outside = self.base.outside
        self._next = len(self.rules)

    # -- what it comes to ------------------------------------------------------------------------

    @property
    def applied(self) -> RuleSet:
        """The rules that can be used, as a rule set under the version ``draft``.

        A rule that can never fire is left in: that it never fires is what a draft shows.
        """
        rules = [each.good for each in self.rules if each.good is not None]
        return self._made(DRAFT, rules)

    def places(self) -> dict[int, int]:
        """Give the place in `applied` of each rule that is applied, by its id."""
        good = (each.id for each in self.rules if each.good is not None)
        return {id_: place for place, id_ in enumerate(good)}

    @property
    def wrong(self) -> tuple[DraftRule, ...]:
        """The rules that are not applied as they were typed."""
        return tuple(each for each in self.rules if each.wrong is not None)

    @property
    def is_changed(self) -> bool:
        """Whether anything differs from what it began with."""
        base = self.base
        typed = [each.rule for each in self.rules]
        around = (self.default, self.unreadable, self.outside)
        return typed != list(base.rules) or around != (base.default, base.unreadable, base.outside)

    @property
    def next_version(self) -> str:
        """A version that is not taken."""
        taken = {one.version for one in self._kept}
        version = next_version(self.base.version)
        while version in taken:
            version = next_version(version)
        return version

    @property
    def kept(self) -> RuleSet | None:
        """The last set that was kept; None when none was."""
        return self._kept[-1] if len(self._kept) > 1 else None

    def check_applied(self) -> None:
        """Refuse a draft of which a rule is not applied as it was typed.

        Raises
        ------
        RuleError
            ``not_applied``: with the first such rule.
        """
        if self.wrong:
            number, first = self.number_of(self.wrong[0].id), self.wrong[0]
            said = first.wrong.what if first.wrong is not None else ""
            raise RuleError(
                f"rule {number} is not applied: {said}",
                where=f"rules[{number - 1}]",
                code="not_applied",
                fix="correct it or remove it, then keep the draft",
            )

    def keep(self, version: str, write: Callable[[RuleSet], object] = lambda made: None) -> RuleSet:
        """Give the draft as a rule set under a version of its own.

        Parameters
        ----------
        version : str
        write : callable, optional
            Writes the set; where it raises, the version is not taken.

        Raises
        ------
        RuleError
            A rule is not applied, can never fire, or the version is that of other content.
        """
        self.check_applied()
        made = versioned(self._made(version, [each.rule for each in self.rules]), version)
        check_version(made, self._kept)
        write(made)
        if made not in self._kept:
            self._kept.append(made)
        return made

    def _made(self, version: str, rules: Sequence[Rule]) -> RuleSet:
        base = self.base
        if base.is_bare or not rules:
            return RuleSet.bare(rules, self.default, self.unreadable)
        return RuleSet.drafted(
            base.name, version, rules, self.default, self.unreadable, self.outside
        )

    # -- changing it -----------------------------------------------------------------------------

    def set_limit(self, rule: int, key: str, op: str, value: Any) -> None:
        """Change the limit of a condition; rules are numbered from 1."""
        place, each = self._at(rule)
        when = self._when(each, key, op)
        when[key][op] = value
        self._type(place, replace(each.rule, when=when))

    def set_operator(self, rule: int, key: str, op: str, new: str) -> None:
        """Change the operator of a condition; the limit is taken along where it fits."""
        place, each = self._at(rule)
        when = self._when(each, key, op)
        limit = fitted(op, new, when[key][op])
        when[key] = {new if o == op else o: limit if o == op else v for o, v in when[key].items()}
        self._type(place, replace(each.rule, when=when))

    def set_key(self, rule: int, key: str, new: str) -> None:
        """Change the key that conditions read."""
        place, each = self._at(rule)
        when = self._when(each, key)
        if new != key and new in when:
            raise DefinitionError(
                f"rule {rule} has conditions on {visible(new)!r} already", where="key"
            )
        renamed = {new if k == key else k: ops for k, ops in when.items()}
        unit = each.rule.unit
        if isinstance(unit, Mapping):
            unit = {new if k == key else k: v for k, v in unit.items()}
        self._type(place, replace(each.rule, when=renamed, unit=unit))

    def set_verdict(self, rule: int, branch: str) -> None:
        """Change where a rule leads to."""
        place, each = self._at(rule)
        self._type(place, replace(each.rule, then=branch))

    def set_label(self, rule: int, label: str | None) -> None:
        """Change the sentence of a rule; an empty one takes it away."""
        place, each = self._at(rule)
        self._type(place, replace(each.rule, label=label or None))

    def set_default(self, branch: str | None = None, label: str | None = None) -> None:
        """Change the branch or the sentence of the default."""
        old = self.default
        if old is None and branch is None:
            raise DefinitionError("there is no default to change", where="default")
        word = branch if branch is not None else old.branch if old is not None else ""
        said = label if label is not None else old.label if old is not None else None
        made = Default(word, label=said or None)
        # Refused as a rule set would, before anything changes.
        self._check_around(made, self.unreadable)
        self.default = made

    def set_unreadable(self, branch: str | None = None, label: str | None = None) -> None:
        """Change what an unreadable value does: a branch, or ``skip``; or its sentence."""
        old = self.unreadable
        if branch == "raise" and old != "raise":
            raise DefinitionError(
                "a lab cannot judge with rules that raise",
                where="unreadable",
                fix="give a branch, or skip, and change it where the rules are declared",
            )
        made: OnUnreadable
        if branch == "skip" or (branch is None and old == "skip"):
            made = "skip"
        elif old == "raise" and branch in (None, "raise"):
            made = "raise"
        else:
            before = old if isinstance(old, Unreadable) else DECLINED
            word = before.branch if branch is None else branch
            made = Unreadable(word, (before.label if label is None else label) or None)
        self._check_around(self.default, made)
        self.unreadable = made

    def set_outside(self, number: int, **changes: Any) -> None:
        """Change what lies outside the rules: ``what``, ``why``, or ``where`` by key and operator.

        Parameters
        ----------
        number : int
            Which ground, from 1.
        **changes
            ``what`` and ``why`` are texts; ``where`` is a key, an operator and the new limit.
        """
        if type(number) is not int or not 1 <= number <= len(self.outside):
            raise DefinitionError(
                f"there is no ground {number!r}: {len(self.outside)} lie outside", where="outside"
            )
        old = self.outside[number - 1]
        if "where" in changes:
            key, op, limit = changes["where"]
            where = {one: dict(ops) for one, ops in old.where.items()}
            if op not in where.get(key, {}):
                raise DefinitionError(
                    f"ground {number} has no condition on {visible(f'{key} {op}')!r}",
                    where="outside",
                )
            wrong = self._check_limit(key, op, limit, where[key])
            if wrong is not None:
                raise DefinitionError(wrong.what, where="outside")
            where[key][op] = limit
            changes = {**changes, "where": where}
        made = [replace(old, **changes) if one is old else one for one in self.outside]
        base = self.base
        checked = RuleSet.drafted(base.name, DRAFT, base.rules, base.default, outside=made)
        self.outside = checked.outside

    def _check_around(self, default: Default | None, unreadable: OnUnreadable) -> None:
        RuleSet.bare([each.good for each in self.rules if each.good], default, unreadable)

    def add(self, when: Mapping[str, Any], then: str, label: str | None = None) -> int:
        """Add a rule behind the others; give its number.

        Its keys have the units they have in rules that are there.
        """
        rule = Rule(when, then, label)
        self.rules.append(DraftRule(self._next, replace(rule, unit=self._units_of(rule)), None))
        self._next += 1
        self._type(len(self.rules) - 1, self.rules[-1].rule)
        return len(self.rules)

    def _units_of(self, rule: Rule) -> str | dict[str, str] | None:
        keys, found = keys_of(rule), dict[str, str]()
        for key, each in product(keys, self.rules):
            own = keys_of(each.rule)
            # A text is the unit of all keys of its rule; which it is meant for is known of one.
            if key in own and (len(own) == 1 or isinstance(each.rule.unit, Mapping)):
                unit = each.rule.unit_of(key)
                if unit is not None:
                    found.setdefault(key, unit)
        return found.get(keys[0]) if len(keys) == 1 else found or None

    def remove(self, rule: int) -> None:
        """Take a rule out."""
        place, each = self._at(rule)
        if not any(one.good is not None for one in self.rules if one is not each):
            raise DefinitionError(
                "the last rule that is applied cannot be removed",
                where="rules",
                fix="change it instead",
            )
        del self.rules[place]

    def move(self, rule: int, to: int) -> None:
        """Move a rule to another number; the default stays the last."""
        place, each = self._at(rule)
        target, _ = self._at(to)
        del self.rules[place]
        self.rules.insert(target, each)

    def number_of(self, id_: int) -> int:
        """Give the number of a rule by its id, from 1."""
        return next(n for n, each in enumerate(self.rules, 1) if each.id == id_)

    def mark(self, rule: int, wrong: Wrong) -> None:
        """Say of a rule that what was typed cannot be used."""
        place, each = self._at(rule)
        self.rules[place] = replace(each, wrong=wrong)

    def _at(self, rule: int) -> tuple[int, DraftRule]:
        if type(rule) is not int or not 1 <= rule <= len(self.rules):
            raise DefinitionError(
                f"there is no rule {rule!r}; they are numbered from 1 to {len(self.rules)}",
                where="rule",
            )
        return rule - 1, self.rules[rule - 1]

    def _when(self, each: DraftRule, key: str, op: str | None = None) -> dict[str, dict[str, Any]]:
        """Give the conditions of a rule, to be changed."""
        when = each.rule.when
        if not isinstance(when, Mapping):
            raise DefinitionError("the rule is a function, which has no limits", where="rule")
        found = {k: dict(ops) for k, ops in when.items()}
        if key not in found or (op is not None and op not in found[key]):
            asked = visible(key if key not in found else f"{key} {op}")
            near = nearest(key, found)
            raise DefinitionError(
                f"rule {self.number_of(each.id)} has no condition on {asked!r}",
                where="key",
                fix=f"its keys are {', '.join(map(visible, found))}"
                if near is None
                else f"did you mean {visible(near)!r}?",
            )
        return found

    def _type(self, place: int, rule: Rule) -> None:
        """Take what was typed for a rule, and apply it where it can be used."""
        each = self.rules[place]
        wrong = self._wrong(each, rule)
        good = each.good if wrong is not None else rule
        self.rules[place] = replace(each, rule=rule, good=good, wrong=wrong)

    def _wrong(self, each: DraftRule, rule: Rule) -> Wrong | None:
        old = self.base.rules[each.origin].when if each.origin is not None else {}
        if isinstance(rule.when, Mapping):
            for key in rule.when:
                # What the rules began with judged the answer, whatever may be said of its keys.
                if not isinstance(old, Mapping) or key not in old:
                    found = self._check_key(key)
                    if found is not None:
                        return found
        try:
            RuleSet.bare([rule])
        except RuleError as error:
            problem = error.problems[0] if error.problems else None
            said = error.message if problem is None else _said(problem)
            return Wrong(said, next(iter(rule.when), None) if rule.is_filter else None)  # type: ignore[arg-type]
        return self._wrong_limit(rule.when, old if isinstance(old, Mapping) else {})

    def _wrong_limit(self, when: Any, old: Mapping[str, Any]) -> Wrong | None:
        """Find the first limit that cannot be used; those the rules began with may stay."""
        for key, ops in when.items() if isinstance(when, Mapping) else ():
            before = old.get(key, {})
            for op, limit in ops.items():
                if op in PRESENCE or (op in before and before[op] == limit):
                    continue
                found = self._check_limit(key, op, limit, before)
                if found is not None:
                    return found
        return None


def keys_of(rule: Rule) -> list[str]:
    """Give the keys a rule reads; none where it is a function.

    Examples
    --------
    >>> keys_of(Rule({"days": {"gt": 7}, "tier": {"eq": 1}}, "old"))
    ['days', 'tier']
    """
    return list(rule.when) if isinstance(rule.when, Mapping) else []


def _said(problem: Any) -> str:
    return f"{problem.message}; {problem.fix}" if problem.fix else str(problem.message)


def fitted(old: str, new: str, limit: Any) -> Any:
    """Give a limit in the form another operator takes.

    Examples
    --------
    >>> fitted("gt", "in", 7), fitted("in", "eq", [7, 9]), fitted("gt", "between", 7)
    ([7], 7, [7, 7])
    """
    if new in PRESENCE:
        return limit if old in PRESENCE else True
    if old in PRESENCE:
        limit = ""
    many = list(limit) if isinstance(limit, list | tuple) else [limit]
    if new in ("in", "not_in"):
        return many
    if new == "between":
        return [many[0], many[-1]] if many else [0, 0]
    return (many[0] if many else "") if old in ("in", "not_in", "between") else limit


__all__ = ["DRAFT", "Draft", "DraftRule", "Wrong", "fitted", "keys_of"]
