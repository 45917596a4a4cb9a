"""The laws of judging, held against a second, naive reading of them over random rules and facts."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from fractions import Fraction
from math import isnan

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError
from runbook_nb.rules import (
    Decision,
    Default,
    Outside,
    Rule,
    RuleSet,
    Unreadable,
    judge_facts,
    path_for,
    select,
)
from runbook_nb.rules.kinds import RESULTS, STATUSES
from runbook_nb.rules.operators import PRESENCE, compile_condition
from runbook_nb.rules.shadows import shadowed

FIRST, LAST = map(dt.datetime.fromisoformat, ("2000-01-01", "2030-01-01"))
ZONES = st.sampled_from(
    [dt.UTC, dt.timezone(dt.timedelta(hours=2)), dt.timezone(dt.timedelta(hours=-5, minutes=-30))]
)

numbers = st.one_of(
    st.integers(-20, 20),
    st.integers(),
    st.sampled_from([10**30, -(10**400), 2**70]),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.sampled_from([Decimal("0.1"), Decimal("7"), 7.0, 0.1, -0.0]),
)
texts = st.one_of(st.text(max_size=4), st.sampled_from(["7", "", "café", "Straße", "👍", "true"]))
dates = st.dates(FIRST.date(), LAST.date())
naive = st.datetimes(FIRST, LAST)
aware = st.datetimes(FIRST, LAST, timezones=ZONES)
spans = st.timedeltas(dt.timedelta(-10), dt.timedelta(10))
scalars = st.one_of(numbers, texts, st.booleans(), dates, naive, aware, spans)
lists = st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", None])), max_size=3)
maps = st.dictionaries(st.sampled_from(["a", "b", "$date"]), st.integers(-3, 3), max_size=2)
nothings = st.sampled_from([MISSING, None, float("nan"), Decimal("NaN"), Decimal("sNaN")])
strangers = st.sampled_from([b"7", {1, 2}, 1j, object()])
values = st.one_of(scalars, lists, maps, nothings, strangers)

ORDERED = st.one_of(numbers, texts, dates, naive, aware, spans)


def _pairs(kind):
    return st.tuples(kind, kind).map(sorted)


conditions = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne"]), st.one_of(scalars, lists, maps)),
    st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), ORDERED),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(st.one_of(scalars, lists), max_size=4)),
    st.tuples(st.sampled_from(["exists", "missing", "is_null"]), st.booleans()),
    st.tuples(st.just("between"), st.one_of(_pairs(numbers), _pairs(texts), _pairs(aware))),
    st.tuples(st.just("contains"), st.one_of(texts.filter(bool), st.integers(-3, 3))),
    st.tuples(st.just("starts_with"), texts.filter(bool)),
)

KEYS = st.sampled_from(["a", "b", "c"])


@st.composite
def filters(draw):
    when = {}
    for key in draw(st.lists(KEYS, min_size=1, max_size=2, unique=True)):
        when[key] = dict(draw(st.lists(conditions, min_size=1, max_size=2)))
    return when


@st.composite
def rule_lists(draw, most=4):
    whens = draw(st.lists(filters(), min_size=1, max_size=most))
    return [
        Rule(when, then=f"branch-{n}", label=f"label {n}" if n % 2 else None)
        for n, when in enumerate(whens)
    ]


@st.composite
def facts(draw):
    found = draw(st.dictionaries(KEYS, values, max_size=3))
    return {key: value for key, value in found.items() if value is not MISSING}


#: No timing, and the same examples in every run.
steady = settings(deadline=None, derandomize=True, max_examples=200)


# --- a second reading --------------------------------------------------------------------------


def kind(value):
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float | Decimal):
        return "nan" if _is_nan(value) else "number"
    if isinstance(value, dt.datetime):
        return "aware" if value.tzinfo else "naive"
    for name, classes in (
        ("date", dt.date),
        ("span", dt.timedelta),
        ("text", str),
        ("list", list),
        ("map", dict),
    ):
        if isinstance(value, classes):
            return name
    return "other"


def _is_nan(value):
    return (
        value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and isnan(value)
    )


def exact(value):
    """Give a number that compares exactly with every other."""
    if isinstance(value, float | Decimal) and value in (float("inf"), float("-inf")):
        return value if isinstance(value, float) else float(value)
    return Fraction(value)


def equal(left, right):
    if kind(left) != kind(right):
        return False
    if kind(left) == "number":
        return exact(left) == exact(right)
    if kind(left) == "list":
        return len(left) == len(right) and all(
            equal(a, b) for a, b in zip(left, right, strict=True)
        )
    if kind(left) == "map":
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right


def less(left, right):
    return exact(left) < exact(right) if kind(left) == "number" else left < right


def second_reading(op, threshold, actual):
    """Give result and status of one condition."""
    mine = kind(actual)
    nothing = mine in ("missing", "null", "nan")
    presence = {"exists": not nothing, "missing": nothing, "is_null": mine in ("null", "nan")}
    if op in presence:
        return presence[op] is threshold, None
    if nothing:
        return None, mine
    mismatch = (None, "type_mismatch")
    if op in ("in", "not_in"):
        if threshold and mine not in map(kind, threshold):
            return mismatch
        return any(equal(actual, item) for item in threshold) is (op == "in"), None
    if op == "contains" and mine == "list":
        if actual and kind(threshold) not in map(kind, actual):
            return mismatch
        return any(equal(threshold, item) for item in actual), None
    other = kind(threshold[0] if op == "between" else threshold)
    if mine != other or (op in ("contains", "starts_with") and mine != "text"):
        return mismatch
    if op == "between":
        return not less(actual, threshold[0]) and not less(threshold[1], actual), None
    answers = {
        "eq": lambda: equal(actual, threshold),
        "ne": lambda: not equal(actual, threshold),
        "gt": lambda: less(threshold, actual),
        "gte": lambda: not less(actual, threshold),
        "lt": lambda: less(actual, threshold),
        "lte": lambda: not less(threshold, actual),
        "contains": lambda: threshold in actual,
        "starts_with": lambda: actual[: len(threshold)] == threshold,
    }
    return answers[op](), None


def fold(results):
    if False in results:
        return False
    return None if None in results else True


def second_decision(rules, default, policy, found):
    """Give branch, way, rule, and the results of every condition of every tried rule."""
    tried = []
    for n, rule in enumerate(rules):
        results = [
            second_reading(op, threshold, found.get(key, MISSING))
            for key, ops in rule.when.items()
            for op, threshold in ops.items()
        ]
        tried.append(results)
        outcome = fold([result for result, _ in results])
        if outcome is True:
            return rule.then, "rule", n, tried
        if outcome is None and policy != "skip":
            return policy.branch, "unreadable", n, tried
    if default is None:
        return None, "none", None, tried
    return default, "default", None, tried


# --- the laws ----------------------------------------------------------------------------------


@steady
@given(conditions, values)
def test_a_condition_is_judged_as_the_law_says(condition, actual):
    op, threshold = condition
    code = compile_condition(op, threshold)(actual)
    assert (RESULTS[code], STATUSES[code]) == second_reading(op, threshold, actual)


@steady
@given(rule_lists(), facts(), st.sampled_from(["other", None]), st.booleans())
def test_a_decision_is_judged_as_the_law_says(rules, found, default, skipping):
    policy = "skip" if skipping else Unreadable("declined", label="unreadable")
    decision = Decision(*judge_facts(RuleSet.bare(rules, default, policy), found))
    branch, via, index, tried = second_decision(rules, default, policy, found)
    assert (decision.branch, decision.via, decision.rule_index) == (branch, via, index)
    assert [(c.result, c.status) for c in decision.conditions] == [
        outcome for results in tried for outcome in results
    ]


@steady
@given(rule_lists(), facts())
def test_every_condition_of_every_tried_rule_is_recorded_with_its_raw_value(rules, found):
    path, values = judge_facts(RuleSet.bare(rules, "other"), found)
    asked = [
        (key, op)
        for tried in path.tried
        for key, ops in rules[tried.position].when.items()
        for op in ops
    ]
    decision = Decision(path, values)
    assert [(c.key, c.op) for c in decision.conditions] == asked
    assert all(
        value is found.get(key, MISSING) for value, (key, _) in zip(values, asked, strict=True)
    )
    assert path.keys == tuple(key for t in path.tried for key in rules[t.position].when)


@steady
@given(rule_lists(), facts())
def test_only_the_last_tried_rule_may_be_true_or_unreadable(rules, found):
    path, _ = judge_facts(RuleSet.bare(rules, "other", Unreadable("declined")), found)
    assert [t.position for t in path.tried] == list(range(len(path.tried)))
    assert all(t.result is False for t in path.tried[:-1])
    assert (path.tried[-1].result is False) is (path.via == "default")


@steady
@given(rule_lists(), facts())
def test_equal_outcomes_are_one_path_and_unequal_ones_are_not(rules, found):
    rule_set = RuleSet.bare(rules, "other")
    path, _ = judge_facts(rule_set, found)
    assert judge_facts(rule_set, dict(found))[0] is path
    assert path_for(rule_set, path.codes) is path
    assert path.width == len(path.codes)


@steady
@given(rule_lists(), facts())
def test_a_selection_tries_every_rule_and_takes_each_true_branch_once(rules, found):
    twice = [*rules, *(Rule(rule.when, rule.then) for rule in rules)]
    chosen = select(found, twice)
    true = [
        rule.then
        for rule in rules
        if fold(
            [
                second_reading(op, threshold, found.get(key, MISSING))[0]
                for key, ops in rule.when.items()
                for op, threshold in ops.items()
            ]
        )
    ]
    assert chosen.branches == tuple(dict.fromkeys(true))
    assert len(chosen.evidence["rules"]) == len(twice)


@steady
@given(rule_lists(), facts())
def test_meanings_come_from_what_ran_in_their_order(rules, found):
    default, policy = Default("other", "no rule fired"), Unreadable("declined", "not readable")
    path, _ = judge_facts(RuleSet.bare(rules, default, policy), found)
    expected = [("other", "no rule fired")]
    expected += [("declined", "not readable")] if path.via == "unreadable" else []
    expected += [
        (rules[t.position].then, rules[t.position].label)
        for t in path.tried
        if rules[t.position].label
    ]
    assert path.meanings == tuple(expected)


@steady
@given(rule_lists(), facts())
def test_evidence_text_and_json_can_be_made_of_any_decision(rules, found):
    decision = Decision(*judge_facts(RuleSet.bare(rules, "other", Unreadable("declined")), found))
    assert decision.evidence["chosen"] == decision.branch
    assert decision.sentence.startswith(decision.branch)
    assert decision.cause in decision.sentence or decision.via == "default"
    assert decision.to_dict()["sentence"] == decision.sentence
    assert decision.view("subject", "row 1").headline == decision.sentence
    assert len(decision.actuals) == len(decision.conditions)
    assert decision == Decision(decision.path, decision.values)


def named(rules, default="other", **more):
    """Build a named set from rules that may overlap; give up on those that do."""
    try:
        return RuleSet("random", "1", rules, default, **more)
    except RuleError as error:
        assume(all("can never fire" not in str(p) for p in error.problems))
        raise


@settings(steady, suppress_health_check=[HealthCheck.filter_too_much])
@given(rule_lists(), st.lists(filters(), max_size=1))
def test_a_rule_set_reads_back_the_same_from_every_written_form(rules, grounds):
    outside = [Outside(where, "that ground", "nobody looks there") for where in grounds]
    rule_set = named(rules, outside=outside)
    copies = [
        RuleSet.from_dict(rule_set.to_dict()),
        RuleSet.loads(rule_set.to_yaml()),
        RuleSet.loads(rule_set.to_json(), "json"),
        pickle.loads(pickle.dumps(rule_set)),  # noqa: S301 - ours, made on the line itself
    ]
    for copy in copies:
        assert copy == rule_set
        assert copy.digest == rule_set.digest
        assert copy.to_dict() == rule_set.to_dict()
        assert copy.branches == rule_set.branches


@settings(steady, suppress_health_check=[HealthCheck.filter_too_much])
@given(rule_lists(most=2), facts())
def test_copies_judge_alike_but_intern_for_themselves(rules, found):
    rule_set = named(rules)
    copy = RuleSet.from_dict(rule_set.to_dict())
    (mine, values), (other, others) = judge_facts(rule_set, found), judge_facts(copy, found)
    assert mine.codes == other.codes
    assert mine is not other
    assert Decision(mine, values) == Decision(other, others)
    again, kept = pickle.loads(pickle.dumps((mine, mine)))  # noqa: S301 - ours
    assert again is kept
    assert again is judge_facts(again.rules, found)[0]


@settings(steady, max_examples=300)
@given(rule_lists(), facts())
def test_a_rule_named_as_shadowed_never_fires(rules, found):
    for _, later in shadowed(rules):
        decision = Decision(
            *judge_facts(RuleSet.bare(rules, "other", Unreadable("declined")), found)
        )
        assert not (decision.via == "rule" and decision.rule_index == later)


narrow = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(st.integers(0, 3), max_size=3)),
    st.tuples(st.sampled_from(["exists", "missing", "is_null"]), st.booleans()),
    st.tuples(st.just("between"), _pairs(st.integers(0, 3))),
)


@settings(steady, max_examples=300)
@given(
    st.lists(st.lists(narrow, min_size=1, max_size=2).map(dict), min_size=2, max_size=3),
    st.sampled_from([MISSING, None, float("nan"), "x", *(n / 2 for n in range(-2, 9))]),
)
def test_over_few_values_a_shadowed_rule_never_fires_either(whens, value):
    rules = [Rule({"k": when}, f"branch-{n}") for n, when in enumerate(whens)]
    found = {} if value is MISSING else {"k": value}
    for _, later in shadowed(rules):
        for policy in ("skip", Unreadable("declined")):
            path, _ = judge_facts(RuleSet.bare(rules, "other", policy), found)
            assert not (path.via == "rule" and path.rule_index == later)


@steady
@given(rule_lists(most=2), facts())
def test_what_is_hidden_is_in_no_output(rules, found):
    class HideAll:
        def hides_key(self, key):
            return True

        def scrub(self, value):
            return value

    path, values_ = judge_facts(RuleSet.bare(rules, "other"), found)
    shown = Decision(path, values_, HideAll())
    for condition in shown.conditions:
        assert condition.actual == "[REDACTED]"
        # Whether a value is asked to be there is said as it is, or the sentence would be wrong.
        assert condition.op in PRESENCE or condition.threshold == "[REDACTED]"
        assert condition.redacted
    assert all(
        c["actualSummary"] == "[REDACTED]" for r in shown.evidence["rules"] for c in r["conditions"]
    )


def test_the_second_reading_is_not_vacuous():
    assert second_reading("gt", 7, 30) == (True, None)
    with pytest.raises(KeyError):
        second_reading("no such operator", 7, 30)
