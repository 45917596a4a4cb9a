"""What a chart takes and gives is held to what it declares, and a chart is told as a tool."""

from __future__ import annotations

import asyncio
import copy
import json
from datetime import date
from types import SimpleNamespace

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, computed_field

from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.contract import (
    FALLBACK_NAME,
    MAX_TOOL_NAME,
    check_output,
    json_schema_of,
    output_problems,
    parser_of,
    tool_name_of,
)
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import ChartError, FrozenError
from runbook_nb.runbook.flowchart import flowchart_as_tool
from runbook_nb.tools import Toolbox

ROWS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "host": {"type": "string", "minLength": 1},
            "verdict": {"enum": ["busy", "calm"]},
            "at": {"type": "string", "format": "date"},
            "count": {"type": "integer"},
        },
        "required": ["host", "verdict"],
        "additionalProperties": False,
    },
}
STATE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def chart(write, **more):
    return flow_chart("hosts", write, id="look", **more).build()


def rows(*given):
    """Make a chart that gives these rows, held to `ROWS`."""
    return chart(
        lambda s: s.set("rows", list(given)), output_schema=ROWS, output=lambda state: state["rows"]
    )


def refused(built, *args, **more):
    """Run a chart whose output does not fit; give the error."""
    with pytest.raises(ChartError) as caught:
        built.run_sync(*args, **more)
    assert caught.value.code == "invalid_output"
    return caught.value


def faults(error):
    return [str(problem) for problem in error.problems]


# --- what a run gives --------------------------------------------------------------------------


def test_without_a_contract_a_run_gives_its_state():
    run = chart(lambda s: s.set("n", 1)).run_sync()
    assert run.output == run.state == {"n": 1}


def test_an_output_is_made_of_the_final_state():
    built = (
        flow_chart("sum", lambda s: s.set("n", 1), id="a", output=lambda state: {"sum": state["n"]})
        .add_function("More", lambda s: s.set("n", s["n"] + 1), id="b")
        .build()
    )
    run = built.run_sync()
    assert run.output == {"sum": 2}
    assert run.state == {"n": 2}


def test_an_output_that_fits_is_what_the_run_gives():
    run = rows({"host": "web-1", "verdict": "busy", "at": "2026-01-02", "count": 3}).run_sync()
    assert run.output == [{"host": "web-1", "verdict": "busy", "at": "2026-01-02", "count": 3}]
    assert chart(lambda s: s.set("n", 1), output_schema=STATE).run_sync().output == {"n": 1}


def test_values_that_json_does_not_have_are_judged_as_they_are_written():
    assert rows({"host": "a", "verdict": "calm", "at": date(2026, 1, 2), "count": 3.0}).run_sync()


def test_every_fault_of_an_output_is_named_deep_inside_too():
    error = refused(
        rows({"host": "", "verdict": "buzy", "at": "2026-13-01"}, {"verdict": "calm", "count": 1.5})
    )
    assert faults(error) == [
        "[0].host: must have at least 1 character, and has 0",
        '[0].verdict: must be "busy" or "calm", and is "buzy"; did you mean \'busy\'?',
        '[0].at: must be a date, and is "2026-13-01"',
        "[1].host: is required",
        "[1].count: must be integer, not number",
    ]
    assert str(error).startswith("chart 'hosts' gave an output that does not fit its schema: 5")


def test_a_state_is_held_to_the_schema_where_nothing_is_made_of_it():
    assert faults(refused(chart(lambda s: s.set("n", "1"), output_schema=STATE))) == [
        "n: must be integer, not string"
    ]
    assert faults(refused(chart(lambda s: None, output_schema=STATE))) == ["n: is required"]


def test_what_an_output_gives_cannot_be_changed_later():
    kept = [{"host": "a", "verdict": "calm"}]
    run = chart(lambda s: None, output=lambda state: kept).run_sync()
    kept[0]["host"] = "b"
    assert run.output == [{"host": "a", "verdict": "calm"}]
    with pytest.raises(FrozenError):
        run.output.append(1)


def test_an_output_reads_the_state_and_does_not_write_it():
    with pytest.raises(FrozenError):
        chart(lambda s: s.set("n", 1), output=lambda state: state.update(n=2)).run_sync()


# --- a run whose output does not fit -----------------------------------------------------------


def test_the_run_is_failed_and_holds_everything_that_happened():
    error = refused(rows({"host": "a"}))
    run = error.run
    assert run.status == "failed"
    assert run.output is None
    assert run.state == {"rows": [{"host": "a"}]}
    assert run.error["code"] == "invalid_output"
    assert run.steps_executed == 1
    assert [row.type for row in run.walk][-1] == "error"
    assert "does not fit" in list(run.walk)[-1].text
    assert "does not fit" in str(run)


def test_no_stage_is_blamed_for_it():
    error = refused(rows({"host": "a"}))
    last = list(error.run.walk)[-1]
    assert last.runtime_stage_id is None
    assert last.text.startswith("Ended after stage hosts: ")
    assert [commit.status for commit in error.run.commits] == ["ok"]
    assert error.run.ended_at["runtime_stage_id"] is None
    assert error.__notes__ == [
        "raised after stage 'hosts' of chart 'hosts'; error.run holds what happened"
    ]


def test_what_makes_the_output_may_fail_and_its_error_leaves_as_it_is():
    built = chart(lambda s: s.set("n", 0), output=lambda state: 1 / state["n"])
    with pytest.raises(ZeroDivisionError) as caught:
        built.run_sync()
    run = caught.value.run
    assert run.status == "failed"
    assert run.error["type"] == "ZeroDivisionError"
    assert [row.type for row in run.walk][-1] == "error"


def test_what_makes_the_output_is_no_coroutine():
    async def later(state):
        return state

    with pytest.raises(ChartError, match="async") as caught:
        chart(lambda s: None, output=later).run_sync()
    assert caught.value.code == "bad_output"
    assert caught.value.run.status == "failed"


def test_a_run_that_stops_early_is_held_to_the_schema_as_well():
    built = (
        flow_chart("c", lambda s: s.stop("enough"), id="a", output_schema=STATE)
        .add_function("B", lambda s: s.set("n", 1), id="b")
        .build()
    )
    assert faults(refused(built)) == ["n: is required"]


def test_a_run_that_pauses_gives_nothing_yet():
    built = chart(lambda s: interrupt(s, "go on?"), output_schema=STATE)
    run = built.run_sync()
    assert run.status == "paused"
    assert run.output is None


def test_an_error_of_a_stage_is_not_hidden_by_a_missing_output():
    with pytest.raises(KeyError):
        chart(lambda s: {}["gone"], output_schema=STATE).run_sync()


def test_async_charts_keep_their_contract_too():
    async def look(scope):
        await asyncio.sleep(0)
        scope["n"] = "1"

    with pytest.raises(ChartError) as caught:
        asyncio.run(chart(look, output_schema=STATE).run())
    assert caught.value.code == "invalid_output"


# --- what must not be seen ---------------------------------------------------------------------


def test_the_output_is_served_by_the_policy_of_the_run():
    def write(scope):
        scope["token"] = "hunter-2-hunter"
        scope["host"] = "a"

    built = chart(write, output=lambda s: {"token": s["token"], "line": f"host a, {s['token']}"})
    run = built.run_sync(redact={"keys": ["token"]})
    assert run.output == {"token": "[REDACTED]", "line": "host a, [REDACTED]"}


def test_a_secret_that_only_the_output_holds_is_hidden_wherever_it_shows():
    built = chart(
        lambda s: s.set("line", "see hunter-2-hunter"),
        output=lambda s: {"token": "hunter-2-hunter"},
    )
    run = built.run_sync(redact={"keys": ["token"]})
    assert run.output == {"token": "[REDACTED]"}
    assert "hunter" not in json.dumps(run.state)


def test_what_the_policy_hides_is_not_told_of_an_output_that_does_not_fit():
    schema = {
        "type": "object",
        "properties": {"token": {"pattern": "^tok-"}, "line": {"enum": ["x"]}},
    }
    error = refused(
        chart(
            lambda s: s.update({"token": "hunter-2-hunter", "line": "hunter-2-hunter"}),
            output_schema=schema,
        ),
        redact={"keys": ["token"]},
    )
    assert "hunter" not in str(error)
    assert "hunter" not in str(error.run)
    assert "hunter" not in json.dumps(error.run.error)
    assert faults(error) == [
        "token: does not fit what is declared for it",
        'line: must be "x", and is "[REDACTED]"',
    ]


# --- models and validators ---------------------------------------------------------------------


class Row(BaseModel):
    host: str
    days: int = Field(7, ge=0)


def test_a_model_gives_the_output_as_it_validated_it():
    run = chart(lambda s: s.update({"host": "a", "days": "3"}), output_schema=Row).run_sync()
    assert run.output == {"host": "a", "days": 3}
    run = chart(lambda s: None, output_schema=Row, output=lambda s: Row(host="b")).run_sync()
    assert run.output == {"host": "b", "days": 7}
    run = chart(lambda s: s.set("host", "c"), output_schema=Aged).run_sync()
    assert run.output == {"host": "c", "days": 7, "age": "7 days"}
    assert faults(refused(chart(lambda s: s.set("days", -1), output_schema=Row))) == [
        "host: Field required",
        "days: Input should be greater than or equal to 0",
    ]


def test_a_type_adapter_takes_what_no_object_is():
    built = chart(
        lambda s: s.set("rows", ({"host": "a"},)),
        output_schema=TypeAdapter(list[Row]),
        output=lambda s: [Row(**row) for row in s["rows"]],
    )
    assert [row.host for row in built.run_sync().output] == ["a"]


class Aged(Row):
    @computed_field
    @property
    def age(self) -> str:
        return f"{self.days} days"


class Lines:
    """A validator of another making."""

    def parse(self, value):
        if "lines" not in value:
            raise ValueError("no lines")
        return [line.strip() for line in value["lines"]]


def test_any_object_that_parses_is_a_validator():
    built = chart(lambda s: s.set("lines", [" a "]), output_schema=Lines())
    assert built.run_sync().output == ["a"]
    assert faults(refused(chart(lambda s: None, output_schema=Lines()))) == ["no lines"]


def test_errors_of_a_validator_that_are_of_another_form_are_told_as_text():
    class Odd(ValueError):
        def errors(self):
            return {"host": ["missing"]}

    class Strict:
        def parse(self, value):
            raise Odd("host is missing")

    assert faults(refused(chart(lambda s: None, output_schema=Strict()))) == ["host is missing"]


def test_a_mapping_is_a_schema_whatever_it_is_called():
    assert parser_of({"parse": 1}) is None
    assert parser_of(Row) is not None
    assert parser_of(object()) is None


# --- what is declared --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "where"),
    [
        ({"output_schema": 5}, "output_schema"),
        ({"output_schema": {"type": "rows"}}, "output_schema.type"),
        ({"output_schema": {"items": 1}}, "output_schema.items"),
        ({"output": "rows"}, "output"),
    ],
)
def test_what_is_wrong_with_a_contract_is_found_when_the_chart_is_built(declared, where):
    with pytest.raises(ChartError) as caught:
        chart(print, **declared)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_an_output_may_be_of_any_type_an_input_is_an_object():
    assert list(output_problems({"type": "array"}, None)) == []
    assert list(output_problems({}, None)) == []
    with pytest.raises(ChartError):
        chart(print, input_schema={"type": "array"})


def test_the_schema_of_a_chart_is_not_the_authors_to_change_any_more():
    mine = copy.deepcopy(STATE)
    built = chart(lambda s: s.set("n", 1), output_schema=mine)
    mine["properties"]["n"]["type"] = "string"
    assert built.run_sync().output == {"n": 1}


# --- input: the rules that were measured elsewhere ---------------------------------------------


def test_a_whole_number_is_an_integer_and_nested_parts_are_checked():
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "o": {"type": "object", "required": ["x"]},
            "e": {"enum": ["a"]},
        },
    }
    built = chart(lambda s: None, input_schema=schema)
    assert built.run_sync({"n": 3}).status == "ok"
    with pytest.raises(ChartError) as caught:
        built.run_sync({"n": 3.5, "o": {}, "e": "zzz"})
    assert [problem.where for problem in caught.value.problems] == ["n", "o.x", "e"]


def test_an_input_that_is_not_given_is_checked_as_well():
    with pytest.raises(ChartError) as caught:
        chart(print, input_schema={"type": "object", "required": ["id"]}).run_sync()
    assert caught.value.code == "invalid_input"
    assert faults(caught.value) == ["id: is required"]


# --- the law -----------------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from("abc"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["host", "verdict", "count", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
_row = st.fixed_dictionaries(
    {},
    optional={
        "host": st.sampled_from(["", "a"]) | _json,
        "verdict": st.sampled_from(["busy", "calm", "x"]),
        "count": st.integers(-2, 2) | st.floats(-2, 2),
        "x": _json,
    },
)


@given(_json | st.lists(_row, max_size=3))
def test_a_run_gives_exactly_what_the_reference_accepts(value):
    built = SimpleNamespace(name="c", output_schema=ROWS, output=lambda state: value)
    if jsonschema.Draft202012Validator(ROWS).is_valid(value):
        assert check_output(built, {}) == value
        return
    with pytest.raises(ChartError) as caught:
        check_output(built, {})
    assert caught.value.code == "invalid_output"
    assert caught.value.problems


# --- as a tool ---------------------------------------------------------------------------------


def test_a_chart_is_told_as_a_tool():
    built = (
        flow_chart("Seed", print, id="seed", description="Starts it.", input_schema=STATE)
        .add_function("End", print, id="end", description="Ends it.")
        .build()
    )
    tool = built.tool_description()
    assert list(tool) == ["name", "description", "inputSchema"]
    assert tool["name"] == "seed"
    assert tool["description"] == built.describe()
    for word in ("Seed", "Starts it", "End", "Ends it"):
        assert word in tool["description"]
    assert tool["inputSchema"] == STATE


def test_a_chart_that_declares_no_input_takes_none():
    assert chart(print).tool_description()["inputSchema"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert chart(print, input_schema=Lines()).tool_description()["inputSchema"] == {
        "type": "object"
    }
    assert chart(print, input_schema=Row).tool_description()["inputSchema"]["required"] == ["host"]


def test_a_description_is_the_askers_own_to_change():
    built = chart(print, input_schema=STATE)
    first = built.tool_description()
    first["inputSchema"]["properties"].clear()
    assert built.tool_description()["inputSchema"] == STATE
    json.dumps(first)


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("seed", "seed"),
        ("My Flow α!", "My_Flow"),
        ("a.b-c_d", "a.b-c_d"),
        ("__a__", "a"),
        ("αβ", FALLBACK_NAME),
        ("!", FALLBACK_NAME),
        ("n" * 300, "n" * MAX_TOOL_NAME),
    ],
)
def test_a_name_holds_only_what_names_may_hold(id, name):
    built = SimpleNamespace(stages=[SimpleNamespace(id=id)])
    assert tool_name_of(built) == name


@given(st.text(max_size=200))
def test_every_id_makes_a_name(id):
    name = tool_name_of(SimpleNamespace(stages=[SimpleNamespace(id=id)]))
    assert 1 <= len(name) <= MAX_TOOL_NAME
    assert all(c.isascii() and (c.isalnum() or c in "_.-") for c in name)
    assert name == name.strip("_")


def test_a_schema_of_a_model_says_what_it_takes_or_what_it_gives():
    assert "age" not in json_schema_of(Aged, "validation")["properties"]
    assert "age" in json_schema_of(Aged, "serialization")["properties"]
    assert json_schema_of(None) is None
    assert json_schema_of(Lines()) is None


# --- as a tool that runs -----------------------------------------------------------------------


def test_a_flowchart_tool_answers_with_the_output_a_chart_declares():
    built = chart(
        lambda s: s.update({"n": 1, "noise": 2}),
        output_schema=STATE,
        output=lambda s: {"n": s["n"]},
    )
    box = Toolbox([flowchart_as_tool(name="look", description="Looks.", flowchart=built)])
    assert box.call_sync("look", {}) == '{"n":1}'
    plain = flowchart_as_tool(
        name="plain", description="Looks.", flowchart=chart(lambda s: s.set("n", 1))
    )
    assert plain.execute_sync() == '{"n":1}'


def test_a_chart_keeps_its_contract_when_it_is_sent_to_another_process():
    built = chart(print, input_schema=STATE, output_schema=STATE, output=len)
    made, arguments = built.__reduce__()
    again = made(*arguments)
    assert again.output_schema == STATE
    assert again.output is len
