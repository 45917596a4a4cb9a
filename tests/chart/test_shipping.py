"""What travels to workers and back: code by value, rule sets and slots as what they were."""

from __future__ import annotations

import types
from typing import Any

import pytest
from drawn_charts import World, build, charts
from hypothesis import given, settings

import runbook_nb as rb
from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import MISSING
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.shipping import (
    SentSlots,
    Table,
    drawing_of,
    dumps,
    error_that_travels,
    loads,
    packed,
    plain_options,
    unpacked,
    what_stays,
)
from runbook_nb.errors import ChartError, EngineError
from runbook_nb.record.log import Log
from runbook_nb.rules.evaluate import judge_facts


def there_and_back(value: Any) -> Any:
    """Send something to a worker, and what arrived there back."""
    sent = Table()
    arrived, table = unpacked(packed(value, sent))
    return loads(dumps(arrived, table), sent)


@pytest.mark.parametrize(
    "value",
    [None, 1, "ä", freeze({"a": [1, {"b": 2}]}), (1, frozenset({2})), MISSING, [float("inf")]],
)
def test_values_come_back_equal_and_frozen_as_they_were(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_what_has_one_object_has_one_object_there():
    assert there_and_back(MISSING) is MISSING
    assert there_and_back(rb) is rb
    assert there_and_back(rb.settings) is rb.settings
    shared = freeze({"a": 1})
    first, second = there_and_back((shared, shared))
    assert first is second


def test_functions_travel_by_value_with_what_they_close_over():
    more = 3
    arrived, _ = unpacked(packed(lambda n: (n + more, rb.__name__), Table()))
    assert isinstance(arrived, types.FunctionType)
    assert arrived(4) == (7, "runbook_nb")


def test_a_rule_set_comes_back_as_itself_with_its_functions():
    rules = rb.RuleSet("r", "v1", [rb.Rule(lambda facts: facts["n"] > 1, "big")], default="small")
    sent = Table()
    arrived, table = unpacked(packed({"rules": rules}, sent))
    assert arrived["rules"] is not rules
    path, values = judge_facts(arrived["rules"], {"n": 2})
    assert path.branch == "big"
    back, values = loads(dumps((path, values), table), sent)
    assert back.rules is rules
    assert back is judge_facts(rules, {"n": 2})[0]


def test_a_rule_set_made_there_comes_back_by_what_it_says():
    sent = Table()
    _, table = unpacked(packed(None, sent))
    made = rb.RuleSet("r", "v1", [rb.Rule({"n": {"gt": 1}}, "big")], default="small")
    path, _ = judge_facts(made, {"n": 2})
    back = loads(dumps(path, table), sent)
    assert (back.rules, back.rules is made) == (made, False)


def slots_of_a_run() -> Any:
    each = flow_chart("b", lambda s: s.args["item"] * 2, id="b").build()
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: [1, 2], branch=each, max_branches=9, into="out"
        )
        .build()
    )
    return chart.run_sync().slots("each")


def test_slots_arrive_as_slots_and_come_back_as_themselves():
    slots = slots_of_a_run()
    sent = Table()
    arrived, table = unpacked(packed(FrozenDict(before=slots), sent))
    assert isinstance(arrived["before"], SentSlots)
    assert arrived["before"] == slots
    assert arrived["before"][1].value == 4
    assert repr(arrived["before"]) == "<Slots: 2 items>"
    assert freeze(arrived["before"]) is arrived["before"]
    assert loads(dumps(arrived, table), sent)["before"] is slots


def test_a_log_does_not_leave():
    with pytest.raises(TypeError, match="pickle"):
        packed(Log(), Table())


# -- charts ------------------------------------------------------------------------------------


@given(charts())
@settings(max_examples=60, deadline=None)
def test_a_chart_without_its_functions_draws_the_same(spec):
    chart = build(spec, World(stop=None))  # type: ignore[arg-type]
    drawn = drawing_of(chart)
    assert drawn.structure == chart.structure
    sent = Table()
    assert loads(dumps(drawn, sent, leaving=True), sent).structure == chart.structure


def test_what_stays_is_named_by_stage_or_as_the_factory():
    import threading

    lock = threading.Lock()
    chart = (
        flow_chart("c", lambda s: 1, id="a", stage_name="Plain")
        .add_function("Guarded", lambda s: lock.locked(), id="b")
        .build()
    )
    assert what_stays(chart).startswith("stage 'Guarded': TypeError: cannot pickle '_thread.lock'")
    assert what_stays(lambda item, index: lock).startswith("its factory: TypeError")


def test_options_that_cannot_travel_are_left_to_the_worker():
    import threading

    lock = threading.Lock()
    kept = plain_options({"max_cell": 7, "clock": lambda: lock, "timer": len})
    assert kept == {"max_cell": 7, "timer": len}


# -- errors ------------------------------------------------------------------------------------


def raised(work: Any) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError


def test_an_error_travels_with_what_it_came_from_and_its_facts():
    def work() -> None:
        try:
            raise KeyError("age")
        except KeyError as error:
            raise ChartError("bad row", code="bad_row", where="row 7", fix="look") from error

    error = error_that_travels(raised(work), Table())
    back = there_and_back(error)
    assert (str(back), back.code, back.where) == ("bad row; look", "bad_row", "row 7")
    assert repr(back.__cause__) == "KeyError('age')"
    assert back.__suppress_context__
    assert "in work" in back.__notes__[0]


def test_errors_that_go_round_in_a_circle_travel():
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first
    back = there_and_back(first)
    assert back.__context__.__context__ is back


def test_groups_travel_whole():
    group = ExceptionGroup("many", [ValueError("a"), KeyError("b")])
    back = there_and_back(error_that_travels(group, Table()))
    assert [repr(one) for one in back.exceptions] == ["ValueError('a')", "KeyError('b')"]


def test_an_error_of_a_class_of_the_notebook_is_of_the_same_class_when_it_is_back():
    class Mine(Exception):
        pass

    assert type(there_and_back(Mine("x"))) is Mine


def test_an_error_that_holds_what_cannot_travel_is_told_by_its_words():
    error = ValueError("bad")
    error.handle = (n for n in ())  # type: ignore[attr-defined]
    back = error_that_travels(error, Table())
    assert isinstance(back, EngineError)
    assert back.code == "cannot_come_back"
    assert "ValueError: bad" in str(back)
