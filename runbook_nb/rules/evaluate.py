"""Judging facts by rules: first match wins, unreadable values are never guessed at.

The law of one decision: entries of the ground outside come first, then the rules in order. All
conditions of a tried rule are judged and recorded. A rule with a false condition is not true;
else, with an unreadable one, it cannot be read; else it is true. Judging stops at the first rule
that is true or cannot be read.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping, Sequence
from typing import Any, Final

from runbook_nb._sync import loop_for
from runbook_nb._text import MISSING
from runbook_nb.errors import ENDS_RUN, RuleError, describe_error
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.rules.facts import FunctionRecord, RecordedFacts, follow, raw_of, snapshot
from runbook_nb.rules.kinds import ERROR, NO, YES
from runbook_nb.rules.model import Default, OnUnreadable, Rule, Unreadable
from runbook_nb.rules.plan import DecisionPath, FunctionStep, Plan, Step, keys_of, plan_of
from runbook_nb.rules.ruleset import RuleSet

__all__ = [
    "Decision",
    "DecisionPath",
    "FunctionRecord",
    "Selection",
    "decide",
    "judge_facts",
    "judge_facts_async",
    "judge_steps",
    "keys_read",
    "select",
    "select_facts",
    "select_facts_async",
]

#: Yields what has to be awaited; returns the path and its values.
Judging = Generator[Awaitable[Any], Any, tuple[DecisionPath, tuple[Any, ...]]]

#: How many bare rule lists stay compiled.
MAX_BARE_SETS: Final = 64


def judge_facts(
    rules: RuleSet, raw: Mapping[str, Any], facts: Any = None
) -> tuple[DecisionPath, tuple[Any, ...]]:
    """Judge facts, giving the interned path and the values it was decided on.

    Nothing is written down but the values: everything else about the decision is in the path.
    Values are kept by reference; give frozen ones, or use `decide`.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    raw : mapping
        What filters read, without any trace.
    facts : mapping, optional
        What function rules read; ``raw`` unless given.

    Returns
    -------
    path : DecisionPath
        The same object for equal outcomes.
    values : tuple
        Per recorded condition the raw value, `MISSING` when the key is not there; per function
        rule one `FunctionRecord`.

    Raises
    ------
    RuleError
        A function rule is asynchronous, or a value is unreadable under ``unreadable="raise"``.

    Examples
    --------
    >>> rules = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, then="old")], default="new")
    >>> path, values = judge_facts(rules, {"age": 30})
    >>> path.branch, values, path is judge_facts(rules, {"age": 8})[0]
    ('old', (30,), True)
    """
    plan = rules._plan or plan_of(rules)
    values: list[Any] = []
    end = _walk(plan, plan.start, raw.get, values.append)
    if type(end) is DecisionPath and not end.refuses:
        return end, tuple(values)  # the whole of nearly every decision
    return _finished(plan, end, raw, facts, values)


async def judge_facts_async(
    rules: RuleSet, raw: Mapping[str, Any], facts: Any = None
) -> tuple[DecisionPath, tuple[Any, ...]]:
    """Judge facts as `judge_facts` does, awaiting asynchronous function rules.

    Examples
    --------
    >>> import asyncio
    >>> async def old(facts):
    ...     return facts["age"] > 7
    >>> rules = RuleSet("r", "1", [Rule(old, then="old")], default="new")
    >>> path, values = asyncio.run(judge_facts_async(rules, {"age": 30}))
    >>> path.branch, values[0].inputs
    ('old', (('age', 30),))
    """
    return await _judge_async(plan_of(rules), raw, facts)


def select_facts(
    rules: RuleSet, raw: Mapping[str, Any], facts: Any = None
) -> tuple[DecisionPath, tuple[Any, ...]]:
    """Try every rule, as `judge_facts` does for a decision; the path says which were true.

    Examples
    --------
    >>> rules = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x"), Rule({"b": {"eq": 2}}, "y")])
    >>> select_facts(rules, {"a": 5, "b": 2})[0].selected
    (0, 1)
    """
    plan = plan_of(rules, selecting=True)
    values: list[Any] = []
    end = _walk(plan, plan.start, raw.get, values.append)
    return _finished(plan, end, raw, facts, values)


async def select_facts_async(
    rules: RuleSet, raw: Mapping[str, Any], facts: Any = None
) -> tuple[DecisionPath, tuple[Any, ...]]:
    """Try every rule as `select_facts` does, awaiting asynchronous function rules."""
    return await _judge_async(plan_of(rules, selecting=True), raw, facts)


def _finished(
    plan: Plan, end: FunctionStep | DecisionPath, raw: Any, facts: Any, values: list[Any]
) -> tuple[DecisionPath, tuple[Any, ...]]:
    if isinstance(end, FunctionStep):
        judging = _functions(plan, end, raw, raw if facts is None else facts, values)
        try:
            awaitable = next(judging)
        except StopIteration as done:
            end = done.value
        else:
            drop(awaitable)
            judging.close()
            raise RuleError(
                "an asynchronous function rule cannot be awaited here",
                where=plan.title,
                fix="judge in an async stage, or make the rule an ordinary function",
                code="async_rule",
            )
    path: Any = end
    return _accepted(path, values)


def judge_steps(rules: RuleSet, raw: Mapping[str, Any], facts: Any = None) -> Judging:
    """Judge facts as `judge_facts_async` does, leaving the awaiting to the caller.

    Yields what has to be awaited and takes what came of it; nothing when no rule is asynchronous.

    Examples
    --------
    >>> rules = RuleSet("r", "1", [Rule(lambda facts: facts["age"] > 7, "old")], default="new")
    >>> try:
    ...     next(judge_steps(rules, {"age": 30}))
    ... except StopIteration as done:
    ...     done.value[0].branch
    'old'
    """
    return _judging(plan_of(rules), raw, facts)


def select_steps(rules: RuleSet, raw: Mapping[str, Any], facts: Any = None) -> Judging:
    """Try every rule as `select_facts_async` does, leaving the awaiting to the caller.

    Examples
    --------
    >>> rules = RuleSet("r", "1", [Rule(lambda facts: facts["age"] > 7, "old")])
    >>> try:
    ...     next(select_steps(rules, {"age": 30}))
    ... except StopIteration as done:
    ...     done.value[0].selected
    (0,)
    """
    return _judging(plan_of(rules, selecting=True), raw, facts)


def _judging(plan: Plan, raw: Any, facts: Any) -> Judging:
    values: list[Any] = []
    end = _walk(plan, plan.start, raw.get, values.append)
    if isinstance(end, FunctionStep):
        end = yield from _functions(plan, end, raw, raw if facts is None else facts, values)
    return _accepted(end, values)


async def _judge_async(plan: Plan, raw: Any, facts: Any) -> tuple[DecisionPath, tuple[Any, ...]]:
    judging = _judging(plan, raw, facts)
    try:
        awaitable = next(judging)
        while True:
            try:
                await loop_for(awaitable)
                returned = await awaitable
            except Exception as error:
                awaitable = judging.throw(error)
            else:
                awaitable = judging.send(returned)
    except StopIteration as done:
        found: tuple[DecisionPath, tuple[Any, ...]] = done.value
        return found


def _walk(
    plan: Plan, step: Step, get: Callable[..., Any], add: Callable[[Any], None]
) -> FunctionStep | DecisionPath:
    """Judge conditions until a function rule or the end: the one hot loop of this package."""
    missing = MISSING
    while type(step) is tuple:
        key, path, test, following, _, _, _, _ = step  # not *_: that makes a list
        try:
            actual = get(key, missing)
            if actual is missing and path is not None:
                actual = follow(get, path)
            code = test(actual)
        except ENDS_RUN:
            raise
        except Exception:  # the facts themselves could not be read
            actual, code = missing, ERROR
        add(actual)
        step = following[code] or plan.after(step, code)
    end: Any = step
    return end  # type: ignore[no-any-return]


def _functions(
    plan: Plan, step: FunctionStep, raw: Any, facts: Any, values: list[Any]
) -> Generator[Awaitable[Any], Any, DecisionPath]:
    """Judge on from a function rule, yielding what has to be awaited; both judges drive this."""
    following: Step = step
    while isinstance(following, FunctionStep):
        reading = RecordedFacts(facts)
        returned: Any = None
        try:
            returned = following.when(reading)
            if hasattr(returned, "__await__"):
                returned = yield returned
            code = YES if returned else NO
            record = FunctionRecord(tuple(reading.inputs), snapshot(returned))
        except ENDS_RUN:
            raise
        except Exception as error:
            code = ERROR
            said = describe_error(error)
            record = FunctionRecord(
                tuple(reading.inputs), error=said["message"], error_type=said["type"]
            )
        values.append(record)
        following = _walk(plan, plan.after(following, code), raw.get, values.append)
    path: Any = following
    return path  # type: ignore[no-any-return]


def drop(awaitable: Any) -> None:
    """Close what nobody will await."""
    close = getattr(awaitable, "close", None)
    if callable(close):
        close()  # else the coroutine warns that nobody awaited it


def _accepted(path: DecisionPath, values: list[Any]) -> tuple[DecisionPath, tuple[Any, ...]]:
    if path.refuses:
        decision = Decision(path, tuple(values))
        rule = f"rules[{path.rule_index}]"
        title = path.rules.title
        raise RuleError(
            f"a rule could not be read: {decision.cause}",
            where=f"{title}, {rule}" if title else rule,
            fix="make sure the value is there, or declare what unreadable values mean",
            code="unreadable",
        )
    return path, tuple(values)


def keys_read(path: DecisionPath, values: tuple[Any, ...]) -> tuple[str, ...]:
    """Give every key that was read, in order: filters' keys and the reads of function rules."""
    if not any(isinstance(value, FunctionRecord) for value in values):
        return path.keys
    keys: list[str] = []
    for tried in path.tried:
        first = values[tried.start]
        if isinstance(first, FunctionRecord):
            keys += [key for key, _ in first.inputs]
        else:
            keys += keys_of(path.rules, tried)
    return tuple(keys)


def decide(
    scope: Any,
    rules: RuleSet | Sequence[Rule | Mapping[str, Any]],
    default: Default | str | Mapping[str, Any] | None = None,
    *,
    unreadable: OnUnreadable | Mapping[str, Any] | None = None,
) -> Decision:
    """Decide a branch by rules: the first rule that is true, or cannot be read, decides.

    Parameters
    ----------
    scope : mapping
        The facts: the scope of a stage, a row, any mapping.
    rules : RuleSet or sequence of Rule
        A rule set, or a bare list of rules.
    default : Default, str or mapping, optional
        For a bare list: the branch when no rule is true.
    unreadable : Unreadable, mapping, "skip" or "raise", optional
        For a bare list: what happens when a value cannot be read; by default the rule is not
        true and judging goes on.

    Returns
    -------
    Decision
        The branch with its evidence.

    Raises
    ------
    RuleError
        The rules are wrong, or one is asynchronous.

    Examples
    --------
    >>> decision = decide({"age": 30}, [Rule({"age": {"gt": 7}}, then="old")], "new")
    >>> decision.branch, decision.cause
    ('old', 'age 30 > 7')
    """
    chosen = _rule_set(rules, default, unreadable)
    raw, note = raw_of(scope)
    path, values = judge_facts(chosen, raw)
    return Decision(path, _settled(path, values, note))


def select(scope: Any, rules: RuleSet | Sequence[Rule | Mapping[str, Any]]) -> Selection:
    """Select every branch whose rule is true; each branch once, in rule order.

    Every rule is tried. A rule that cannot be read selects nothing and is recorded.

    Examples
    --------
    >>> chosen = select({"a": 5}, [Rule({"a": {"gt": 1}}, "x"), Rule({"b": {"eq": 1}}, "y")])
    >>> chosen.branches, chosen.conditions[1].status
    (('x',), 'missing')
    """
    chosen = _rule_set(rules, None, None)
    raw, note = raw_of(scope)
    path, values = select_facts(chosen, raw)
    return Selection(path, _settled(path, values, note))


def _settled(path: DecisionPath, values: tuple[Any, ...], note: Any) -> tuple[Any, ...]:
    if note is not None:  # a scope keeps frozen values and records what was read
        note(keys_read(path, values))
        return values
    return tuple(v if isinstance(v, FunctionRecord) else snapshot(v) for v in values)


_bare_sets: dict[Hashable, tuple[RuleSet, tuple[Any, ...]]] = {}
_bare_lock = threading.Lock()


def _rule_set(rules: Any, default: Any, unreadable: Any) -> RuleSet:
    if isinstance(rules, RuleSet):
        if default is not None or unreadable is not None:
            word = "default" if default is not None else "unreadable"
            raise RuleError(
                f"rule set {rules.name!r} brings its own {word}",
                fix=f"leave {word}= out here and declare it in the rule set",
            )
        return rules
    on: Any = "skip" if unreadable is None else unreadable
    key = (_content_key(rules), _content_key(default), _content_key(on))
    try:
        found = _bare_sets.get(key)
    except TypeError:  # a value that cannot be a key is refused, or compiled each time
        return RuleSet.bare(rules, default, on)
    if found is None:
        # The rules are kept beside the set: a key may hold their ids, which must stay theirs.
        found = (RuleSet.bare(rules, default, on), tuple(rules))
        with _bare_lock:
            while len(_bare_sets) >= MAX_BARE_SETS:
                del _bare_sets[next(iter(_bare_sets))]
            found = _bare_sets.setdefault(key, found)
    return found[0]


def _content_key(value: Any) -> Hashable:
    """Give what tells one content from another, types included."""
    if isinstance(value, Rule):
        return ("rule", id(value))  # a rule never changes
    if isinstance(value, Default | Unreadable):
        return (type(value), value.branch, value.label)
    if isinstance(value, Mapping):
        return ("map", *((_content_key(k), _content_key(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *map(_content_key, value))
    return (type(value), value)
