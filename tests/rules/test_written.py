"""The written form of thresholds: tags, escapes, and what cannot be read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import RuleError
from runbook_nb.rules import Rule, RuleSet
from runbook_nb.rules.kinds import same
from runbook_nb.rules.written import TagError, read, write

NAIVE = dt.datetime.fromisoformat("2026-01-02T03:04:05.000006")

json_like = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=5),
        st.dates(),
        st.datetimes(),
        st.datetimes(timezones=st.just(dt.UTC)),
        st.timedeltas(),
        st.decimals(allow_nan=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["a", "$date", "$$date", "$decimal", "$", "$$"]), inner, max_size=2
        ),
    ),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True)
@given(json_like)
def test_what_is_written_reads_back_the_same(value):
    assert same(read(write(value)), value)
    assert write(read(write(value))) == write(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (NAIVE.date(), {"$date": "2026-01-02"}),
        (NAIVE, {"$datetime": "2026-01-02T03:04:05.000006"}),
        (NAIVE.replace(tzinfo=dt.UTC), {"$datetime": "2026-01-02T03:04:05.000006+00:00"}),
        (Decimal("0.10"), {"$decimal": "0.10"}),
        (float("inf"), {"$decimal": "Infinity"}),
        (float("-inf"), {"$decimal": "-Infinity"}),
        (dt.timedelta(days=1, microseconds=1), {"$seconds": "86400.000001"}),
        (dt.timedelta(seconds=-1.5), {"$seconds": "-1.5"}),
        ({"$date": "2026-01-02"}, {"$$date": "2026-01-02"}),
        ({"$$date": 1}, {"$$$date": 1}),
        ({"$date": 1, "a": 2}, {"$date": 1, "a": 2}),
        ([{"$x": NAIVE.date()}], [{"$$x": {"$date": "2026-01-02"}}]),
        (True, True),
        (7.0, 7.0),
    ],
)
def test_the_written_form_of_each_kind(value, written):
    assert write(value) == written
    assert same(read(written), value)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"$date": "soon"}, "'soon' cannot be read as date"),
        ({"$date": 20260102}, "the value of '$date' is not text"),
        ({"$datetime": "2026-01-02"}, "cannot be read as datetime"),
        ({"$decimal": "a"}, "cannot be read as decimal"),
        ({"$seconds": "1e-9"}, "cannot be read as seconds"),
        ({"$seconds": "1e40"}, "cannot be read as seconds"),
        ({"$seconds": "NaN"}, "cannot be read as seconds"),
        ({"$dat": "2026-01-02"}, "there is no tag '$dat'"),
        ({"$": 1}, "there is no tag '$'"),
    ],
)
def test_a_tag_that_cannot_be_read_is_told(written, said):
    with pytest.raises(TagError) as refused:
        read(written)
    assert said in refused.value.args[0]
    assert refused.value.fix


def test_bad_tags_are_told_together_with_everything_else():
    with pytest.raises(RuleError) as refused:
        RuleSet.from_dict(
            {
                "name": "r",
                "version": "1",
                "rules": [
                    {"when": {"at": {"lt": {"$dat": "2026-01-02"}, "ge": 1}}, "then": "x"},
                    {"when": {"at": {"lt": {"$date": "soon"}}}, "then": ""},
                ],
            }
        )
    assert [str(problem) for problem in refused.value.problems] == [
        "rules[0].when.at.lt: there is no tag '$dat'; did you mean '$date'?",
        "rules[1].when.at.lt: 'soon' cannot be read as date; write it like "
        '{"$date": "2026-12-31"}',
        "rules[0].when.at.ge: is not an operator; did you mean 'gte'?",
        "rules[1].then: is blank; give it words",
    ]


def test_a_threshold_that_looks_like_a_tag_survives_the_round_trip():
    rules = RuleSet("r", "1", [Rule({"k": {"eq": {"$date": "2026-01-02"}}}, "x")])
    again = RuleSet.loads(rules.to_yaml())
    assert again.rules[0].when["k"]["eq"] == {"$date": "2026-01-02"}
    assert again.digest == rules.digest
