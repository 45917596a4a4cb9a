"""Why a way was taken, and what would have led down it: causes with the values they met.

Record layer. The words themselves come from `runbook_nb.rules.wording`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from runbook_nb._text import MISSING, number_text
from runbook_nb.record.redact import Redactor
from runbook_nb.rules.decision import Condition, Decision, Selection
from runbook_nb.rules.plan import DecisionPath, Tried
from runbook_nb.rules.wording import (
    REDACTED,
    condition_text,
    limit_text,
    op_words,
    value_text,
    when_text,
)

#: Words a range lists before it only counts them.
RANGE_WORDS = 3

#: Exact classes of which no value of one but a number equals one of another.
_TOLD_APART: Final = frozenset({int, float, str, bool, type(None), type(MISSING)})


class ValueRange:
    """The values one condition met: the smallest and largest number, or the distinct others."""

    __slots__ = ("high", "low", "words")

    def __init__(self) -> None:
        self.low: Any = None
        self.high: Any = None
        self.words: dict[str, None] = {}

    def __repr__(self) -> str:
        return f"<ValueRange {self.text}>"

    def add(self, value: Any) -> None:
        """Take one value in."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.low = value if self.low is None or value < self.low else self.low
            self.high = value if self.high is None or value > self.high else self.high
        elif len(self.words) <= RANGE_WORDS:
            self.words[value_text(value)] = None

    def add_all(self, values: Sequence[Any]) -> None:
        """Take many values in: what `add` makes of them, one after the other."""
        types = set(map(type, values))
        if types <= {int, float}:
            known = () if self.low is None else (self.low,)
            self.low = min(chain(known, values), default=None)
            known = () if self.high is None else (self.high,)
            self.high = max(chain(known, values), default=None)
            return
        if types & {int, float} and types <= _TOLD_APART:
            self.add_all([value for value in values if value.__class__ in (int, float)])
            values = [value for value in values if value.__class__ not in (int, float)]
            types -= {int, float}
        # What is alike counts once, however often it was met.
        alike = types <= _TOLD_APART
        for value in dict.fromkeys(values) if alike else values:
            if alike and len(self.words) > RANGE_WORDS:
                break
            self.add(value)

    @property
    def text(self) -> str:
        """``8…44`` for numbers, up to three words for the rest."""
        parts = []
        if self.low is not None:
            low, high = number_text(self.low), number_text(self.high)
            parts.append(low if low == high else f"{low}…{high}")
        words = list(self.words)
        if len(words) > RANGE_WORDS:
            parts.append("several values")
        else:
            parts += words
        return ", ".join(parts)


@dataclass(slots=True, eq=False, repr=False)
class Cause:
    """One way a branch came to be taken, or selected.

    That is a rule, the default, an unreadable value, or ground outside the rules.

    Attributes
    ----------
    rules : RuleSet
        The rules that judged.
    via : str
        As of a `DecisionPath`; of a selection always ``rule``.
    rule_index, outside_index : int or None
        The rule that was true or could not be read; the entry of the ground outside.
    unreadable : dict or None
        The condition that could not be read, as of a `DecisionPath`.
    times : int
        How often it came about.
    conditions : list
        The deciding conditions, each with the values it met.
    unread : Condition or None
        The condition that could not be read.
    label : str or None
        The author's sentence.
    text : str
        The deciding rule as it read the first time.
    declared : str
        The deciding rule as the author wrote it, without values.
    """

    rules: Any
    via: str
    rule_index: int | None = None
    outside_index: int | None = None
    unreadable: Mapping[str, Any] | None = None
    times: int = 0
    conditions: list[tuple[Condition, ValueRange]] = field(default_factory=list)
    unread: Condition | None = None
    label: str | None = None
    text: str = ""
    declared: str = ""

    def is_of(self, path: DecisionPath) -> bool:
        """Tell whether a decision came about this way."""
        return (
            self.via == path.via
            and self.rule_index == path.rule_index
            and self.outside_index == path.outside_index
            and self.unreadable == path.unreadable
            and bool(self.rules == path.rules)
        )

    @property
    def word(self) -> str:
        """``rule 2``, ``default``, ``unreadable`` or ``outside``."""
        return f"rule {(self.rule_index or 0) + 1}" if self.via == "rule" else self.via

    @property
    def condition(self) -> str:
        """The deciding conditions with the values they met: ``age_days 8…44 > 7``."""
        return " and ".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The deciding conditions one by one, each with the values it met."""
        if self.via == "default":
            return ("no rule fired",)
        if self.conditions:
            return tuple(_met(c, values) for c, values in self.conditions)
        # A function is told with what it read, which is true of one subject alone.
        return (self.declared if self.times > 1 and self.declared else self.text,)


def cause_of(shown: Decision) -> Cause:
    """Begin to count the ways a decision came about with a first one."""
    path = shown.path
    cause = Cause(
        path.rules,
        path.via,
        rule_index=path.rule_index,
        outside_index=path.outside_index,
        unreadable=path.unreadable,
        label=shown.label,
        text=shown.cause,
        unread=unread_condition(shown),
    )
    if path.via == "rule" and shown.rule is not None:
        cause.declared = when_text(shown.rule.when)
    if path.via in ("rule", "outside") and shown.deciding is not None:
        cause.conditions = [(c, ValueRange()) for c in shown.conditions_of(shown.deciding)]
    return cause


def selected_by(shown: Selection, tried: Tried) -> Cause:
    """Begin to count how often a rule selected its branch."""
    rule = shown.rules.rules[tried.position]
    return Cause(
        shown.rules,
        "rule",
        rule_index=tried.position,
        label=None if rule.label is None else str(shown.scrub(rule.label)),
        text=shown.text_of(tried),
        declared=when_text(rule.when),
        conditions=[(c, ValueRange()) for c in shown.conditions_of(tried)],
    )


def unread_condition(decision: Decision) -> Condition | None:
    """Give the condition that could not be read, where that decided."""
    deciding = decision.deciding
    if deciding is None or decision.via != "unreadable":
        return None
    return next((c for c in decision.conditions_of(deciding) if c.result is None), None)


def _met(condition: Condition, values: ValueRange) -> str:
    if condition.redacted or condition.op in ("eq", "exists", "missing", "is_null"):
        return condition.text
    limit = limit_text(condition.op, condition.threshold, condition.unit)
    words = op_words(condition.op, condition.threshold)
    return f"{condition.key} {values.text} {words} {limit}"


class Declared(NamedTuple):
    """What the rules say of one branch: a rule or the default, its conditions, its sentence."""

    word: str
    conditions: tuple[str, ...]
    label: str | None
    #: Place of the rule; None for the default.
    rule: int | None


def declared_ways(rules: Any, branch: str | None, redactor: Redactor) -> Iterator[Declared]:
    """Yield the ways a rule set can send somebody to a branch, as declared, in rule order.

    Limits of hidden keys are hidden.
    """
    for place, rule in enumerate(rules.rules):
        if rule.then == branch:
            conditions = tuple(declared_conditions(rule, redactor))
            yield Declared(f"rule {place + 1}", conditions, _text(rule.label, redactor), place)
    default = rules.default
    if default is not None and default.branch == branch:
        yield Declared("default", (), _text(default.label, redactor), None)


def declared_conditions(rule: Any, redactor: Redactor) -> Iterator[str]:
    """Yield the conditions of a rule as declared, or the name of its function."""
    if not isinstance(rule.when, Mapping):
        yield when_text(rule.when, rule.unit_of)
        return
    for key, ops in rule.when.items():
        for op, threshold in ops.items():
            limit = REDACTED if redactor.hides_key(key) else redactor.scrub(threshold)
            yield condition_text(key, op, limit, rule.unit_of(key))


def _text(label: Any, redactor: Redactor) -> str | None:
    return None if label is None else str(redactor.scrub(label))
