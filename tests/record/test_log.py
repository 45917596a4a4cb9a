"""The log: interned codes and shapes, and the facts and states they are read back as."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.log import (
    MOST_KNOWN,
    ROW_TYPES,
    WIDTHS,
    Code,
    FanOut,
    Known,
    Log,
    StageRef,
    Track,
)
from runbook_nb.record.shapes import apply_change, facts_of, state_after, work_out

REF = StageRef("a", "A", "stage")


def test_a_code_is_interned_once_and_a_shape_too():
    log = Log()
    assert log.number(Code("read", REF, "k")) == log.number(Code("read", REF, "k")) == 0
    assert log.number(Code("read", REF, "j")) == 1
    assert log.shape_number((0, 1)) == log.shape_number((0, 1)) == 0
    assert log.shape_number((1,)) == 1
    assert len(log.codes) == len(log.shapes) == 2


def test_many_threads_intern_one_code_once():
    log, found = Log(), []
    gate = threading.Barrier(8)

    def work():
        gate.wait()
        found.extend(log.number(Code("read", REF, f"k{n}")) for n in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.codes) == 50
    assert sorted(found) == sorted(list(range(50)) * 8)


def test_a_number_is_found_only_when_all_that_goes_with_it_stands():
    met = []

    class Asked(Known):
        def take(self, number, code):
            met.append((log._numbers.get(code), log.codes[number]))  # what another thread finds
            return super().take(number, code)

    log, code = Log(Asked()), Code("read", REF, "k")
    assert log.number(code) == log.number(code) == 0
    assert met == [(None, code)]


def test_every_kind_has_a_width_and_rows_or_a_reason_not_to():
    assert set(ROW_TYPES) | {"args", "fan_out", "result", "route", "secret"} == set(WIDTHS)


def test_events_know_where_their_values_are_and_which_execution_they_belong_to():
    log, track = Log(), Track()
    for code, *values in (
        (Code("stage", REF),),
        (Code("write", REF, "x"), 1),
        (Code("read", REF, "x"),),
        (Code("stage", REF),),
        (Code("append", REF, "l"), 2),
        (Code("error", REF), {"type": "E", "message": "m"}),
    ):
        track.add(log.number(code), *values)
    events = list(log.events(track.codes))
    assert [(e.code.kind, e.at, e.execution) for e in events] == [
        ("stage", 0, 0),
        ("write", 0, 0),
        ("read", 1, 0),
        ("stage", 1, 1),
        ("append", 1, 1),
        ("error", 2, 1),
    ]
    facts = work_out(log, track.codes)
    assert (facts.executions, facts.rows) == (2, 6)
    assert facts.error.at == 2
    assert facts.plain_writes is None
    assert state_after(facts, track.values) == {"x": 1, "l": [2]}
    assert log.executed(track) == 2


def test_facts_of_a_shape_are_worked_out_once():
    log = Log()
    number = log.shape_number((log.number(Code("stage", REF)),))
    assert facts_of(log, log.shapes[number]) is facts_of(log, log.shapes[number])


def test_a_fan_out_keeps_branches_by_item_whatever_order_they_end_in():
    log = Log()
    fan = FanOut(log, REF, ["a", "b", "c"], cap=2, into="o", subject=None)
    write = log.number(Code("write", REF, "x"))
    for index in (1, 0):
        track = Track()
        track.add(write, index * 10)
        fan.close(index, track, index, "late" if index else None)
    assert [fan.status(i) for i in range(3)] == ["not_reached", "ok", "not_reached"]
    assert [fan.values[fan.offsets[i]] for i in range(2)] == [0, 10]
    assert [index for index, _ in fan.begun()] == [0, 1]
    assert fan.shape(2) is None
    assert fan.notes == {1: "late"}
    assert len(log.shapes) == 1


@pytest.mark.parametrize(
    ("item", "key", "subject"),
    [
        ({"name": "x"}, "name", "x"),
        ({"name": "x"}, "other", None),
        ({"name": "x"}, None, None),
        ("x", None, "x"),
        (3, "name", 3),
        ([1], None, None),
        (None, None, None),
    ],
)
def test_what_names_an_item(item, key, subject):
    fan = FanOut(Log(), REF, [item], cap=1, into="o", subject=key)
    assert fan.subject_of(0) == subject


def test_replay_without_copies_gives_what_replay_with_copies_gives():
    changes = [
        (Code("append", REF, "l"), 1),
        (Code("append", REF, "l"), 2),
        (Code("write", REF, "l"), (9,)),
        (Code("append", REF, "l"), 3),
        (Code("append", REF, "l"), 4),
        (Code("update", REF, "m"), {"x": 1}),
        (Code("delete", REF, "gone"), None),
    ]
    slow, fast, growing = {}, {}, set()
    for code, value in changes:
        apply_change(slow, code, value)
        apply_change(fast, code, value, growing)
        assert slow == fast
    before = fast["l"]
    growing.clear()
    apply_change(fast, Code("append", REF, "l"), 5, growing)
    assert before == [9, 3, 4]


def test_paths_of_equal_rules_are_taken_for_one_and_others_are_not():
    def path(threshold, fn=None):
        when = fn or {"n": {"gt": threshold}}
        rules = rb.RuleSet("r", "1", [rb.Rule(when, "a")], default="a")
        return rb.decide({"n": 3}, rules).path

    log = Log()
    first = path(1)
    assert log.same_path(first) is first
    assert log.same_path(path(1)) is first
    other = path(2)
    assert log.same_path(other) is other
    assert log.same_path(path(2)) is other

    def one(facts):
        return True

    def make():
        def one(facts):
            return True

        return one

    assert log.same_path(path(0, one)) is log.same_path(path(0, one))
    assert log.same_path(path(0, make())) is not log.same_path(path(0, make()))


def test_paths_of_rules_that_ask_in_another_order_are_not_taken_for_one():
    def path(*keys):
        when = {key: {"gt": 1} for key in keys}
        rules = rb.RuleSet("r", "1", [rb.Rule(when, "x")], default="y")
        return rb.decide({"a": 0, "b": 0}, rules).path

    log = Log()
    first, other = path("a", "b"), path("b", "a")
    assert first.rules.digest == other.rules.digest
    assert log.same_path(first) is first
    # The first outcome of each is that of another key.
    assert log.same_path(other) is other


def test_like_branches_cost_a_number_each():
    each = flow_chart("e", lambda s: s.set("n", s.args["item"] > 3), id="e").build()
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E",
            id="each",
            items=lambda s: list(range(100)),
            branch=each,
            max_branches=100,
            into="o",
        )
        .build()
    )
    run = chart.run_sync()
    (fan,) = run.log.fan_outs()
    assert len(run.log.shapes) == 1
    assert len(fan.values) == 100
    assert all(value.__class__ is bool for value in fan.values)


SIZES = rb.RuleSet("size", "v1", [rb.Rule({"n": {"gt": 1}}, "big")], "small", unreadable="skip")


def judging():
    """Make a chart whose records differ in form with the items it is given."""

    def load(scope):
        for key, value in scope.args["item"].items():
            scope[key] = value

    one = flow_chart("one", load, id="load").add_decider("Size", id="size", rules=SIZES)
    one = one.branch("big", lambda s: s.get("n")).branch("small", lambda s: None).end().build()
    return (
        flow_chart("c", lambda s: s.update(s.args["start"]), id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s.args["items"],
            branch=one,
            max_branches=9,
            into="out",
        )
        .build()
    )


ITEMS = st.lists(
    st.dictionaries(st.sampled_from("nmk"), st.sampled_from([0, 1, 2, None, "x"]), max_size=3),
    max_size=4,
)
INPUTS = st.fixed_dictionaries(
    {"start": st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)), "items": ITEMS}
)


@given(st.lists(INPUTS, min_size=2, max_size=4))
@settings(deadline=None)
def test_what_runs_of_a_chart_share_changes_no_record(inputs):
    chart = judging()
    for args in inputs:
        run, alone = chart.run_sync(args), judging().run_sync(args)
        assert rb.write_walk(run.walk) == rb.write_walk(alone.walk)
        assert run.log.codes == alone.log.codes
        assert [row.to_dict() for row in run.walk] == [row.to_dict() for row in alone.walk]
        for shape in run.log.shapes:
            assert facts_of(run.log, shape) == work_out(alone.log, shape.codes)


def test_a_run_that_meets_something_else_leaves_what_is_known():
    chart = judging()
    one, two = {"start": {"a": 1}, "items": []}, {"start": {"b": 1}, "items": [{"n": 3}]}
    first, again = chart.run_sync(one), chart.run_sync(one)
    assert first.log.known is again.log.known is chart._known
    assert first.walk.raw_own.facts is again.walk.raw_own.facts
    known = list(chart._known.codes)
    other = chart.run_sync(two)
    assert other.log.known is None
    assert chart._known.codes == known == first.log.codes
    assert all(code.key != "b" for code in known)


def test_so_many_codes_are_known_and_no_more():
    chart = flow_chart("c", lambda s: s.update(s.args), id="a").build()
    for _ in range(2):
        run = chart.run_sync({f"k{n}": n for n in range(2 * MOST_KNOWN)})
        assert len(run.walk) == 2 * MOST_KNOWN + 1
    assert len(chart._known.codes) == MOST_KNOWN
    assert run.log.known is None


def test_threads_that_run_one_chart_at_once_agree_or_part():
    chart = judging()
    inputs = [{"start": {"a": 1}, "items": [{"n": n % 3}, {"m": 1}]} for n in range(12)]
    alone = [judging().run_sync(args) for args in inputs]
    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(chart.run_sync, inputs))
    assert [rb.write_walk(one.walk) for one in runs] == [rb.write_walk(one.walk) for one in alone]
    assert [list(one.walk) for one in runs] == [list(one.walk) for one in alone]


def test_what_a_chart_knows_stays_where_it_is():
    chart = judging()
    chart.run_sync({"start": {}, "items": [{"n": 1}]})
    assert copy.copy(chart)._known.codes == []
