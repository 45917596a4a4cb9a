"""Branches judged by columns answer whatever branches filed one by one answer."""

from __future__ import annotations

import gc
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._frozen import FrozenDict
from runbook_nb._text import MISSING
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.judging import judged_chart
from runbook_nb.errors import RunbookError
from runbook_nb.record.columns import fan_columns
from runbook_nb.record.judged import Ahead, Alike, JudgedFan
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, Log
from runbook_nb.rules.columns import rows_of
from runbook_nb.rules.held import CHUNK

RULES = [
    rb.RuleSet("plain", "v1", [rb.Rule({"a": {"gt": 3}}, "high")], default="low"),
    rb.RuleSet("strict", "v1", [rb.Rule({"a": {"gt": 3}}, "high")], "low", unreadable="raise"),
    rb.RuleSet("open", "v1", [rb.Rule({"a": {"gt": 3}}, "high")]),
    rb.RuleSet(
        "two",
        "v1",
        [rb.Rule({"a": {"gt": 3}, "b.c": {"eq": 1}}, "high"), rb.Rule({"a": {"lt": 0}}, "below")],
        default="low",
        unreadable="skip",
    ),
]
CELLS = st.sampled_from([-1, 0, 5, None, "x", 2.5, float("nan"), FrozenDict(c=1)])
ROWS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "id", "b.c"]), CELLS), max_size=8)

TRIED = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def fans(rules, rows, cap=99):
    """Give the branches in both forms, of runs that may have failed."""
    charts = (
        flow_chart("c").add_judge_each(
            "J", id="j", items=lambda s: rows, rules=rules, subject="id", max_branches=cap
        ),
        flow_chart("c").add_parallel_for_each(
            "J",
            id="j",
            items=lambda s: rows_of(rows),
            branch=judged_chart(rules),
            into="o",
            subject="id",
            max_branches=cap,
        ),
    )
    found = []
    for chart in charts:
        try:
            run = chart.build().run_sync()
        except RunbookError as error:
            run = error.run
        found.append(next(run.log.fan_outs()))
    return found


def codes_of(fan, number):
    """Say what a number of a shape means in its log."""
    return (
        None if number < 0 else tuple(map(fan.log.codes.__getitem__, fan.log.shapes[number].codes))
    )


def answers(fan):
    """Give all that can be asked, with shapes as the codes they are of."""
    size = range(len(fan))

    def named(given):
        return [(codes_of(fan, k[0] if isinstance(k, tuple) else k), v) for k, v in given.items()]

    parts = []
    for index in size:
        values, offset = fan.part(index)
        shape = fan.shape(index)
        width = 0 if shape is None else fan.log.width_of(shape.codes)
        parts.append(repr(tuple(values[offset : offset + width])))
    columns = [
        (column.code, column.part, column.at, list(column.places), repr(list(column.held_in(fan))))
        for column in fan_columns(fan.log, fan)
    ]
    return {
        "parts": parts,
        "columns": columns,
        "shapes": [codes_of(fan, number) for number in fan.shape_numbers()],
        "begun": [(index, codes_of(fan, shape.number)) for index, shape in fan.begun()],
        "begun_count": fan.begun_count,
        "counts": named(fan.shape_counts()),
        "ends": named(fan.shape_ends()),
        "of": [(k, list(v)) for k, v in named(fan.of_shapes())],
        "alike": [(k, list(v)) for k, v in named(fan.alike())],
        "alike_counts": named(fan.alike_counts()),
        "statuses": [list(fan.status_numbers()), [fan.status(index) for index in size]],
        "numbers": [fan.status_number(index) for index in size],
        "status_counts": [fan.status_count(status) for status in (NOT_REACHED, OK, FAILED)],
        "ended": [list(fan.ended_as(*s)) for s in ((OK,), (FAILED, NOT_REACHED), (OK, FAILED))],
        "values": fan.value_count,
        "subjects": repr([fan.subject_of(index) for index in size]),
        "items": repr([fan.item(index) for index in size]),
        "reopened": repr([fan.reopen(index).values for index in size]),
        "notes": fan.notes,
    }


@given(st.sampled_from(RULES), ROWS, st.integers(1, 9))
@TRIED
def test_whatever_is_asked_the_answer_is_that_of_branches_filed_one_by_one(rules, rows, cap):
    judged, twin = fans(rules, rows, cap)
    assert isinstance(judged, JudgedFan) or not rows
    one, other = answers(judged), answers(twin)
    for name, value in one.items():
        assert value == other[name], name


@given(st.sampled_from(RULES), ROWS, st.lists(st.integers(0, 7), max_size=12))
@TRIED
def test_looking_here_and_there_finds_the_same_as_looking_in_order(rules, rows, order):
    judged, twin = fans(rules, rows)
    for index in (index for index in order if index < len(rows)):
        shape = judged.shape(index)
        (values, start), (others, at) = judged.part(index), twin.part(index)
        width = judged.log.width_of(shape.codes)
        assert repr(tuple(values[start : start + width])) == repr(tuple(others[at : at + width]))
        assert repr(judged.item(index)) == repr(twin.item(index))


def test_many_rows_are_read_in_parts_that_join():
    rows = [{"a": index % 9, "id": index} for index in range(2 * CHUNK + 10)]
    judged, twin = fans(RULES[0], rows, cap=99_999)
    assert answers(judged) == answers(twin)


def test_a_row_is_one_object_as_long_as_somebody_has_it():
    judged, _ = fans(RULES[0], [{"a": 1, "b": [1]}, {"a": 5, "b": [2]}])
    row = judged.item(1)
    assert all(judged.item(1) is row for _ in range(3))
    assert [judged.item(index) for index in range(2)][1] is row
    assert row["b"] is judged.part(1)[0][1]  # and what it holds is what was written
    del row
    gc.collect()
    assert judged.item(1) == {"a": 5, "b": [2]}


def test_errors_alike_are_objects_of_their_own():
    judged, _ = fans(RULES[2], [{"a": 1}, {"a": 2}])
    errors = [judged.part(index)[0][-1] for index in range(2)]
    assert errors[0] == errors[1]
    assert errors[0] is not errors[1]
    assert errors[0]["type"] == "ChartError"


def test_what_refuses_tells_of_each_value():
    judged, _ = fans(RULES[1], [{"a": None}, {}, {"a": 5}, {"a": "x"}])
    assert len(judged.kinds) == 3  # those that have the key and refuse are of one kind
    messages = [judged.part(index)[0][-1]["message"] for index in (0, 1, 3)]
    assert "a is null" in messages[0]
    assert "a is missing" in messages[1]
    assert messages[2] not in messages[:2]


def test_the_branches_travel_and_move_to_another_log():
    judged, _ = fans(RULES[3], [{"a": 5, "b": {"c": 1}}, {"a": -1}, {"a": None}])
    before = answers(judged)
    state = judged.__getstate__()
    log = state.pop("log")  # stays where it is; see what ships branches
    again = JudgedFan.__new__(JudgedFan)
    again.__setstate__({"log": log, **pickle.loads(pickle.dumps(state))})  # noqa: S301
    assert answers(again) == before
    log = Log()
    log.shape_number((log.number(judged.log.codes[0]),))
    numbers = [
        log.shape_number(tuple(log.number(judged.log.codes[code]) for code in shape.codes))
        for shape in judged.log.shapes
    ]
    assert numbers[0] == 1
    judged.move(log, numbers)
    assert answers(judged) == before


def test_nothing_is_put_into_branches_that_are_views():
    judged, _ = fans(RULES[0], [{"a": 1}])
    for refused in (lambda: judged.refile([], []), lambda: judged.put(0, [0])):
        with pytest.raises(NotImplementedError):
            refused()
    assert judged.column(0, []) == []


def test_a_subject_that_is_not_there_is_none():
    judged, _ = fans(RULES[0], [{"a": 1}, {"a": 2, "id": "x"}])
    assert [judged.subject_of(index) for index in range(2)] == [None, "x"]
    assert judged.items.column("id")[0] is MISSING


@given(st.lists(st.integers(0, 3), max_size=30), st.sets(st.integers(0, 3), min_size=1))
def test_branches_that_are_alike_are_listed_and_counted(numbers, kinds):
    some = Alike(bytes(numbers), tuple(kinds & set(numbers)))
    listed = [index for index, number in enumerate(numbers) if number in kinds]
    assert list(some) == listed
    assert len(some) == len(listed)
    assert some[1:3] == listed[1:3]
    if listed:
        assert [some[place] for place in range(len(listed))] == listed
        assert (some[0], some[-1]) == (listed[0], listed[-1])
    else:
        with pytest.raises(IndexError):
            some[0]


@given(st.lists(st.integers(0, 40), max_size=60))
def test_what_is_made_ahead_is_what_was_asked_for(places):
    made = []

    def make(some):
        made.append(some)
        return [place * 10 for place in some]

    ahead = Ahead()
    for place in places:
        assert ahead.get(place, 41, make) in (None, place * 10)
    assert all(some.stop <= 41 for some in made)
