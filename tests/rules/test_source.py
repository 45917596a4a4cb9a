"""Rule sets as Python text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import RuleError
from runbook_nb.rules import Default, Outside, Rule, RuleSet, Unreadable

FIRST, LAST = dt.datetime(2000, 1, 1), dt.datetime(2030, 1, 1)  # noqa: DTZ001 - both kinds are meant
ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-5, minutes=-30))])
LINES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
LIMITS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False),
    LINES,
    st.dates(),
    st.datetimes(FIRST, LAST),
    st.datetimes(FIRST, LAST, timezones=ZONES),
    st.timedeltas(dt.timedelta(-9), dt.timedelta(9)),
)
CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["gt", "gte", "lt", "lte", "eq", "ne"]), LIMITS),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(LIMITS, max_size=3)),
    st.tuples(st.just("eq"), st.dictionaries(LINES, st.integers(), max_size=2)),
    st.tuples(st.sampled_from(["exists", "missing"]), st.booleans()),
    st.tuples(st.just("between"), st.tuples(st.integers(-9, 0), st.integers(1, 9))),
)


@st.composite
def rule_sets(draw):
    label = st.one_of(st.none(), LINES)
    whens = draw(st.lists(st.tuples(LINES, CONDITIONS), min_size=1, max_size=3))
    rules = [
        Rule(
            {f"k{n}.{key}": {op: limit}},
            draw(LINES),
            label=draw(label),
            unit=draw(st.one_of(st.none(), st.just("days"), st.just({f"k{n}.{key}": "s"}))),
        )
        for n, (key, (op, limit)) in enumerate(whens)
    ]
    return RuleSet(
        draw(LINES),
        draw(LINES),
        rules,
        draw(st.one_of(st.none(), st.builds(Default, LINES, label))),
        draw(st.one_of(st.sampled_from(["skip", "raise"]), st.builds(Unreadable, LINES, label))),
        draw(st.lists(st.builds(Outside, st.just({"os": {"eq": "x"}}), LINES, LINES), max_size=1)),
    )


def run(text):
    held = {}
    exec(compile(text, "<cell>", "exec"), held)  # noqa: S102 - a text made here, to see that it runs
    return held


@settings(max_examples=150, deadline=None)
@given(rule_sets())
def test_the_text_builds_an_equal_rule_set(rules):
    built = run(rules.to_python())["rules"]
    assert built == rules
    assert built.digest == rules.digest


def test_the_text_reads_as_its_author_would_have_written_it(posture):
    assert posture.to_python("posture") == (
        "import runbook_nb as rb\n"
        "\n"
        "posture = rb.RuleSet(\n"
        "    'health-signal',\n"
        "    'v1',\n"
        "    rules=[\n"
        "        rb.Rule(\n"
        "            {'age_known': {'eq': False}},\n"
        "            then='declined',\n"
        "            label='the age signal cannot be read',\n"
        "        ),\n"
        "        rb.Rule(\n"
        "            {'age_days': {'gt': 7}},\n"
        "            then='unprotected',\n"
        "            label='last backup older than the 7-day threshold',\n"
        "        ),\n"
        "    ],\n"
        "    default=rb.Default('protected', label='last backup within 7 days'),\n"
        ")\n"
    )


def test_modules_are_imported_where_a_limit_needs_them():
    limits = {"d": {"eq": Decimal("1.10")}, "t": {"gt": dt.date(2026, 1, 2)}}
    text = RuleSet("r", "1", [Rule(limits, "x")]).to_python()
    assert text.startswith("import datetime\nimport decimal\n\nimport runbook_nb as rb\n")
    assert "decimal.Decimal('1.10')" in text
    assert "datetime.date(2026, 1, 2)" in text


def test_a_function_has_no_text_and_says_where_it_is():
    with pytest.raises(RuleError, match=r"rules\[0\]\.when"):
        RuleSet("r", "1", [Rule(lambda facts: True, "x")]).to_python()


def test_what_yaml_and_json_hold_python_holds():
    rules = RuleSet(
        "r",
        "1",
        [Rule({"t": {"gt": dt.timedelta(hours=3)}}, "x")],
        outside=[Outside({"os": {"eq": "x"}}, "hosts on x", "no data")],
    )
    for text in (rules.to_yaml(), rules.to_json()):
        assert run(rb.RuleSet.loads(text).to_python())["rules"] == rules
