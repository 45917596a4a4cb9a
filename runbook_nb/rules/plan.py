"""A rule set compiled for judging: conditions as tests, outcomes as interned paths.

Judging walks a tree that grows as outcomes are met. A step holds the key to read, its test, and
one next step per outcome code; at the end stands a `DecisionPath`, which holds everything about
the decision that does not depend on the values. Two subjects with the same outcomes share one
path, so a decision costs a read, a test and an index per condition, and creates nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from runbook_nb._frozen import Immutable
from runbook_nb.rules.kinds import CODES, NO, RESULTS, STATUSES, YES
from runbook_nb.rules.model import DECLINED_BRANCH, Unreadable
from runbook_nb.rules.operators import PRESENCE, Test, compile_condition, fast_lane

if TYPE_CHECKING:
    from runbook_nb.rules.ruleset import RuleSet

#: How a decision came about.
Via = Literal["rule", "default", "unreadable", "outside", "none", "select"]


class CompiledCondition(NamedTuple):
    """One condition, ready to judge.

    ``path`` is set for dotted keys: where to look when there is no flat key of that name.
    """

    key: str
    op: str
    threshold: Any
    test: Test
    path: tuple[str, ...] | None


class Tried(NamedTuple):
    """One tried rule, or one tried entry of the ground outside, with the outcomes.

    Attributes
    ----------
    position : int
        Its place among the rules (or among the entries).
    outside : bool
        Whether it is an entry of the ground outside the rules.
    result : bool or None
        True, false, or None when it could not be read.
    codes : tuple of int
        The outcome code of each of its conditions; one for a function rule.
    start : int
        Where its values begin in the decision's values.
    """

    position: int
    outside: bool
    result: bool | None
    codes: tuple[int, ...]
    start: int


class DecisionPath(Immutable):
    """What decisions with equal outcomes have in common; interned, so compare it with ``is``.

    Attributes
    ----------
    rules : RuleSet
        The rules that judged.
    codes : tuple of int
        The outcome code of every recorded condition, in order.
    branch : str or None
        The branch taken; None when nothing was true and there is no default.
    via : str
        ``"rule"``, ``"default"``, ``"unreadable"``, ``"outside"``, ``"none"``, or ``"select"``.
    rule_index : int or None
        The rule that decided: the true one, or the one that could not be read.
    outside_index : int or None
        The entry of the ground outside that matched.
    tried : tuple of Tried
        What was tried, in order.
    selected : tuple of int
        The rules that were true, for a selection.
    keys : tuple of str
        The keys read by filters, in order, once per tried rule.
    compared : tuple of str
        The key of each value that filters recorded, in order.
    meanings : tuple of (str, str)
        What ran says about its branches: default, then unreadable if it fired, then tried rules.
    unreadable : dict or None
        ``{"ruleIndex", "key", "status"}`` of the condition that could not be read.
    refuses : bool
        Whether judging raises instead of deciding.
    plain : bool
        Whether every condition was true or false and nothing more can be said of its values:
        none asks whether a key is there, and no rule that was tried declares a unit. Decisions
        that are all plain come to no note.
    """

    __slots__ = (
        "branch",
        "codes",
        "compared",
        "keys",
        "meanings",
        "outside_index",
        "plain",
        "refuses",
        "rule_index",
        "rules",
        "selected",
        "tried",
        "unreadable",
        "via",
    )

    def __init__(
        self,
        rules: RuleSet,
        codes: tuple[int, ...],
        tried: tuple[Tried, ...],
        via: Via,
        *,
        branch: str | None = None,
        rule_index: int | None = None,
        outside_index: int | None = None,
        unreadable: dict[str, Any] | None = None,
        refuses: bool = False,
    ) -> None:
        self.rules = rules
        self.codes = codes
        self.tried = tried
        self.via = via
        self.branch = branch
        self.rule_index = rule_index
        self.outside_index = outside_index
        self.unreadable = unreadable
        self.refuses = refuses
        self.selected = tuple(t.position for t in tried if t.result is True and not t.outside)
        self.keys = tuple(key for t in tried for key in keys_of(rules, t))
        self.compared = tuple(self._compared())
        self.meanings = tuple(self._meanings())
        self.plain = {YES, NO}.issuperset(codes) and not any(map(self._says_more, tried))

    def _says_more(self, tried: Tried) -> bool:
        when = when_of(self.rules, tried)
        if not isinstance(when, Mapping):  # nothing is said of what a function read
            return False
        declares = not tried.outside and self.rules.rules[tried.position].unit is not None
        return declares or not PRESENCE.isdisjoint(chain.from_iterable(when.values()))

    def _compared(self) -> Iterable[str]:
        for tried in self.tried:
            when = when_of(self.rules, tried)
            for key, ops in when.items() if isinstance(when, Mapping) else ():
                yield from [key] * len(ops)

    @property
    def width(self) -> int:
        """How many values a decision of this path carries."""
        return len(self.codes)

    def _meanings(self) -> Iterable[tuple[str, str]]:
        rules = self.rules
        if rules.default is not None and rules.default.label and self.via != "select":
            yield rules.default.branch, rules.default.label
        on = rules.unreadable
        if self.via == "unreadable" and isinstance(on, Unreadable) and on.label:
            yield on.branch, on.label
        for t in self.tried:
            rule = None if t.outside else rules.rules[t.position]
            if rule is not None and rule.label:
                yield rule.then, rule.label

    def __reduce__(self) -> tuple[Any, ...]:
        return (path_for, (self.rules, self.codes, self.via == "select"))

    def __copy__(self) -> DecisionPath:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DecisionPath:
        return self

    def __repr__(self) -> str:
        return f"<DecisionPath {self.via}: {self.branch}, outcomes {self.codes}>"


def when_of(rules: RuleSet, tried: Tried) -> Any:
    """Give the conditions (or the function) of something that was tried."""
    if tried.outside:
        return rules.outside[tried.position].where
    return rules.rules[tried.position].when


def keys_of(rules: RuleSet, tried: Tried) -> tuple[str, ...]:
    """Give the keys a tried filter read, each once; none for a function rule."""
    when = when_of(rules, tried)
    return tuple(when) if isinstance(when, Mapping) else ()


class FunctionStep:
    """The step that calls a function rule."""

    __slots__ = ("codes", "following", "rule_index", "when")

    def __init__(self, rule_index: int, when: Callable[..., Any], codes: tuple[int, ...]) -> None:
        self.rule_index = rule_index
        self.when = when
        self.codes = codes
        self.following: list[Any] = [None] * CODES


#: ``(key, path, test, following, codes so far, class, compare, limit)``: reads one key and tests
#: it. For values of exactly that class, ``compare(value, limit)`` says the same as the test.
FilterStep: TypeAlias = tuple[
    str,
    "tuple[str, ...] | None",
    Test,
    list[Any],
    tuple[int, ...],
    "type | None",
    "Callable[[Any, Any], bool] | None",
    Any,
]
Step: TypeAlias = FilterStep | FunctionStep | DecisionPath


class _Item(NamedTuple):
    position: int
    outside: bool
    #: The compiled conditions, or the function.
    conditions: tuple[CompiledCondition, ...] | Callable[..., Any]

    @property
    def width(self) -> int:
        return len(self.conditions) if isinstance(self.conditions, tuple) else 1


class Plan:
    """A rule set, compiled.

    Attributes
    ----------
    outside, conditions : tuple
        Per entry of the ground outside, and per rule: its compiled conditions, or the function of
        a function rule.
    has_functions : bool
        Whether any rule is a function.
    start : Step
        Where judging begins.
    """

    __slots__ = ("_items", "_lock", "_rules", "_selecting", "has_functions", "start")

    def __init__(self, rules: RuleSet, *, selecting: bool = False) -> None:
        self._rules = rules
        self._selecting = selecting
        self._lock = threading.Lock()
        self._items = (
            *(_Item(n, True, _compile(entry.where)) for n, entry in enumerate(rules.outside)),
            *(
                _Item(n, False, _compile(r.when) if isinstance(r.when, Mapping) else r.when)
                for n, r in enumerate(rules.rules)
            ),
        )
        self.has_functions = any(callable(item.conditions) for item in self._items)
        self.start = self._step(())

    @property
    def title(self) -> str:
        """The name and version of the rules."""
        return self._rules.title

    @property
    def outside(self) -> tuple[tuple[CompiledCondition, ...], ...]:
        """The compiled conditions of each entry of the ground outside."""
        return tuple(
            item.conditions
            for item in self._items
            if item.outside and isinstance(item.conditions, tuple)
        )

    @property
    def conditions(self) -> tuple[tuple[CompiledCondition, ...] | Callable[..., Any], ...]:
        """The compiled conditions of each rule, or its function."""
        return tuple(item.conditions for item in self._items if not item.outside)

    def after(self, step: FilterStep | FunctionStep, code: int) -> Step:
        """Give the step that follows an outcome, growing the tree when it is met first."""
        if isinstance(step, FunctionStep):
            following, codes = step.following, step.codes
        else:
            following, codes = step[3], step[4]
        with self._lock:  # two threads must not intern one outcome twice
            if following[code] is None:
                following[code] = self._step((*codes, code))
            found: Step = following[code]
        return found

    def path(self, codes: Iterable[int]) -> DecisionPath:
        """Give the interned path of a whole sequence of outcome codes."""
        step: Step = self.start
        for code in codes:
            if isinstance(step, DecisionPath):
                break
            step = self.after(step, code)
        if not isinstance(step, DecisionPath):
            raise ValueError("these outcomes end before the decision")
        return step

    def _step(self, codes: tuple[int, ...]) -> Step:
        """Say what comes after these outcomes: the next condition, a function, or the end."""
        place = 0
        tried: list[Tried] = []
        for item in self._items:
            mine = codes[place : place + item.width]
            if len(mine) < item.width:
                return _open(item, len(mine), codes)
            tried.append(Tried(item.position, item.outside, _fold(mine), mine, place))
            place += item.width
            end = None if self._selecting and not item.outside else self._end(codes, tried)
            if end is not None:
                return end
        return self._last(codes, tuple(tried))

    def _end(self, codes: tuple[int, ...], tried: list[Tried]) -> DecisionPath | None:
        last = tried[-1]
        rules = self._rules
        if last.outside:
            if last.result is not True:
                return None
            return DecisionPath(
                rules,
                codes,
                tuple(tried),
                "outside",
                branch=None if self._selecting else DECLINED_BRANCH,
                outside_index=last.position,
            )
        if last.result is True:
            branch = rules.rules[last.position].then
            return DecisionPath(
                rules, codes, tuple(tried), "rule", branch=branch, rule_index=last.position
            )
        on = rules.unreadable
        if last.result is False or on == "skip":
            return None
        return DecisionPath(
            rules,
            codes,
            tuple(tried),
            "unreadable",
            branch=on.branch if isinstance(on, Unreadable) else None,
            rule_index=last.position,
            unreadable=unreadable_of(rules, last),
            refuses=on == "raise",
        )

    def _last(self, codes: tuple[int, ...], tried: tuple[Tried, ...]) -> DecisionPath:
        default = self._rules.default
        if self._selecting:
            return DecisionPath(self._rules, codes, tried, "select")
        if default is None:
            return DecisionPath(self._rules, codes, tried, "none")
        return DecisionPath(self._rules, codes, tried, "default", branch=default.branch)


def unreadable_of(rules: RuleSet, tried: Tried) -> dict[str, Any]:
    """Say which condition of a rule could not be read, and why: the first of them."""
    place = next(n for n, code in enumerate(tried.codes) if RESULTS[code] is None)
    when = when_of(rules, tried)
    keys = [key for key, ops in when.items() for _ in ops] if isinstance(when, Mapping) else [None]
    return {"ruleIndex": tried.position, "key": keys[place], "status": STATUSES[tried.codes[place]]}


def _compile(when: Mapping[str, Mapping[str, Any]]) -> tuple[CompiledCondition, ...]:
    return tuple(
        CompiledCondition(
            key,
            op,
            threshold,
            compile_condition(op, threshold),
            tuple(key.split(".")) if "." in key else None,
        )
        for key, ops in when.items()
        for op, threshold in ops.items()
    )


def _open(item: _Item, place: int, codes: tuple[int, ...]) -> Step:
    if not isinstance(item.conditions, tuple):
        return FunctionStep(item.position, item.conditions, codes)
    condition = item.conditions[place]
    lane = fast_lane(condition.test)
    return (condition.key, condition.path, condition.test, [None] * CODES, codes, *lane)


def _fold(codes: tuple[int, ...]) -> bool | None:
    """Join conditions: false beats unreadable beats true."""
    if NO in codes:
        return False
    return True if all(code == YES for code in codes) else None


_PLANS_LOCK: Final = threading.Lock()


def plan_of(rules: RuleSet, *, selecting: bool = False) -> Plan:
    """Give the compiled form of a rule set, made when first asked for."""
    slot = "_selecting" if selecting else "_plan"
    plan: Plan | None = getattr(rules, slot)
    if plan is None:
        with _PLANS_LOCK:
            plan = getattr(rules, slot)
            if plan is None:
                plan = Plan(rules, selecting=selecting)
                object.__setattr__(rules, slot, plan)
    return plan


def path_for(rules: RuleSet, codes: Iterable[int], selecting: bool = False) -> DecisionPath:
    """Give the interned path of outcome codes: what a worker sends instead of the path.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, then="x")], default="y")
    >>> path_for(rules, (1,)).branch, path_for(rules, (0,)).branch
    ('x', 'y')
    """
    return plan_of(rules, selecting=selecting).path(codes)
