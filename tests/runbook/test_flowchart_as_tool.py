"""The thin bridge: a chart as a tool that answers with a text."""

from __future__ import annotations

import json
from datetime import date

import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, Paused
from runbook_nb.runbook.flowchart import flowchart_as_tool


def make(fn=lambda s: s.set("n", 3), **more):
    chart = rb.flow_chart("count", fn, id="count").build()
    options = {"name": "count", "description": "Counts.", "flowchart": chart}
    return flowchart_as_tool(**{**options, **more})


def test_the_answer_is_the_final_state_as_json():
    answer = make(lambda s: s.update({"n": 3, "at": date(2026, 1, 2), "é": "ü"})).execute_sync()
    assert answer == '{"n":3,"at":"2026-01-02","é":"ü"}'


def test_a_mapper_makes_the_text_of_the_state():
    assert make(result_mapper=lambda state: f"{state['n']} rows").execute_sync() == "3 rows"

    async def slowly(state):
        return f"{state['n']} rows"

    assert make(result_mapper=slowly).execute_sync() == "3 rows"


def test_a_mapper_that_fails_is_told_in_the_answer():
    answer = make(result_mapper=lambda state: state["m"]).execute_sync()
    assert answer == "[mapper-error: KeyError: 'm']"
    answer = make(result_mapper=lambda state: 3).execute_sync()
    assert answer == "[mapper-error: it gave int, not a text]"


def test_a_policy_hides_in_the_answer_the_mapper_and_the_kept_record():
    def stage(scope):
        scope["token"] = "t0p-s3cret"
        scope["n"] = "with t0p-s3cret"

    def fails(state):
        raise ValueError(str(dict(state)))

    plain = make(stage, redact={"keys": ["token"]}, keep_record=True)
    assert json.loads(plain.execute_sync()) == {"token": "[REDACTED]", "n": "with [REDACTED]"}
    assert "t0p" not in make(stage, redact={"keys": ["token"]}, result_mapper=fails).execute_sync()
    box = rb.Toolbox([plain])
    box.call_sync("count", call_id="c1")
    kept = rb.inner_runs_of(plain).get("c1")
    assert kept["outcome"] == "ok"
    assert "t0p" not in json.dumps(kept, default=list)


def test_errors_leave_as_they_are_and_are_kept():
    def stage(scope):
        raise KeyError("x")

    seen = []
    tool = make(stage, keep_record=True, keep_record_limit=1, recorders=[seen.append])
    box = rb.Toolbox([tool])
    with pytest.raises(KeyError):
        box.call_sync("count", call_id="c1")
    assert rb.inner_runs_of(tool).get("c1")["outcome"] == "error"
    assert [run.status for run in seen] == ["failed"]
    assert box.last_run is seen[0]


def test_a_pause_raises_with_its_checkpoint():
    tool = make(lambda s: rb.interrupt(s, "go on?"))
    with pytest.raises(Paused, match=r"flowchart_as_tool\(count\)") as caught:
        tool.execute_sync()
    assert caught.value.checkpoint is not None


def test_arguments_reach_the_chart_and_each_call_starts_afresh():
    tool = make(lambda s: s.set("n", s.get("n", 0) + s.args["by"]))
    assert [tool.execute_sync({"by": 2}) for _ in range(2)] == ['{"n":2}', '{"n":2}']


def test_the_schema_is_the_charts_unless_given():
    schema = {"type": "object", "properties": {"by": {"type": "number"}}}
    chart = rb.flow_chart("c", lambda s: None, id="a", input_schema=schema).build()
    assert make(flowchart=chart).input_schema == schema
    assert make(input_schema=schema).input_schema == schema


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"name": " "}, "name"),
        ({"description": ""}, "description"),
        ({"flowchart": None}, "flowchart"),
        ({"flowchart": rb.flow_chart("c", lambda s: None, id="a")}, "flowchart"),
        ({"result_mapper": "x"}, "result_mapper"),
        ({"recorders": [1]}, "recorders"),
        ({"keep_record_limit": 3}, "keep_record_limit"),
        ({"keep_record": True, "keep_record_limit": 0}, "keep_record_limit"),
        ({"redact": {"key": ["a"]}}, "redact"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_named(wrong, where):
    with pytest.raises(DefinitionError) as caught:
        make(**wrong)
    assert caught.value.where == where
