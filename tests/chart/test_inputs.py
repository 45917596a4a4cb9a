"""The input of a run is held to the declared schema before anything runs."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import ChartError

SCHEMA = {
    "type": "object",
    "properties": {
        "days": {"type": "integer", "minimum": 0},
        "token": {"type": "string", "pattern": "^tok-"},
        "hosts": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["days"],
    "additionalProperties": False,
}


def chart(schema, ran=None):
    return flow_chart(
        "c", lambda s: (ran or []).append(1) or dict(s.args), id="a", input_schema=schema
    ).build()


def refused(schema, args, **more):
    ran = []
    with pytest.raises(ChartError) as caught:
        chart(schema, ran).run_sync(args, **more)
    assert ran == []
    assert caught.value.code == "invalid_input"
    return [str(problem) for problem in caught.value.problems]


def test_input_that_fits_runs():
    assert chart(SCHEMA).run_sync({"days": 3, "hosts": ["a"]}).result == {"days": 3, "hosts": ["a"]}


def test_every_fault_is_named_before_anything_runs():
    assert refused(SCHEMA, {"days": -1, "hosts": ["a", 2], "dyas": 1}) == [
        "days: must be at least 0, and is -1",
        "hosts[1]: must be string, not integer",
        "dyas: is not among the names that can be given; did you mean 'days'?",
    ]
    assert refused(SCHEMA, None) == ["days: is required"]


def test_a_chart_without_a_schema_takes_any_mapping_with_text_names():
    assert chart(None).run_sync({"x": 1}).result == {"x": 1}
    assert chart(None).run_sync().result == {}
    for bad in ([1], "text", 5):
        with pytest.raises(ChartError, match="mapping of names"):
            chart(None).run_sync(bad)
    with pytest.raises(ChartError, match="names are texts; write '1'"):
        chart(None).run_sync({1: 2})


def test_what_the_policy_hides_is_not_told_in_a_refusal():
    said = refused(SCHEMA, {"days": 1, "token": "hunter-2-hunter"}, redact={"keys": ["token"]})
    assert said == ["token: does not fit what is declared for it"]
    echoed = refused(
        {"type": "object", "properties": {"a": {"enum": ["x"]}}},
        {"a": "hunter-2-hunter", "token": "hunter-2-hunter"},
        redact={"keys": ["token"]},
    )
    assert "hunter" not in echoed[0]
    assert "[REDACTED]" in echoed[0]


class Disk(BaseModel):
    size: int


class Input(BaseModel):
    days: int = Field(7, ge=0)
    disks: list[Disk] = []


def test_a_model_class_validates_through_itself_and_fills_in_defaults():
    run = chart(Input).run_sync({"disks": [{"size": "3"}]})
    assert run.result == {"days": 7, "disks": [{"size": 3}]}
    assert run.args == run.result
    assert chart(Input).run_sync().result == {"days": 7, "disks": []}
    assert chart(Input).run_sync(Input(days=1)).result["days"] == 1


def test_every_fault_a_model_finds_is_named_with_its_path():
    assert refused(Input, {"days": -1, "disks": [{"size": "x"}, {}]}) == [
        "days: Input should be greater than or equal to 0",
        "disks[0].size: Input should be a valid integer, unable to parse string as an integer",
        "disks[1].size: Field required",
    ]


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (5, "input_schema"),
        ({"type": "array"}, "input_schema"),
        (
            {"type": "object", "properties": {"n": {"type": "int"}}},
            "input_schema.properties.n.type",
        ),
    ],
)
def test_a_schema_that_is_none_is_found_when_the_chart_is_built(schema, where):
    with pytest.raises(ChartError) as caught:
        chart(schema)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_the_schema_of_a_chart_is_not_the_authors_to_change_any_more():
    mine = {"type": "object", "properties": {"n": {"type": "integer"}}}
    built = chart(mine)
    mine["properties"]["n"]["type"] = "string"
    assert built.run_sync({"n": 1}).status == "ok"
    with pytest.raises(ChartError):
        built.run_sync({"n": "x"})
