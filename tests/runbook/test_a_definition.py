"""Cases 1 to 23: what a declaration must be, and what each refusal names."""

from __future__ import annotations

from types import SimpleNamespace

import pydantic
import pytest

import runbook_nb as rb
from runbook_nb.errors import ChartError, DefinitionError
from runbook_nb.runbook import resolve_recording_policy


def refused(match, **options):
    with pytest.raises(DefinitionError, match=match) as caught:
        rb.runbook_as_tool(**options)
    return caught.value


@pytest.fixture
def good(kit):
    return {
        "name": "restart_probe",
        "description": "d",
        "procedure": kit.one_stage(lambda s: None),
    }


def test_case_01_a_minimal_declaration_is_a_tool(good):
    tool = rb.runbook_as_tool(**good)
    assert tool.schema.name == "restart_probe"
    assert tool.input_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize("name", ["", "   ", None, 3])
def test_case_02_a_missing_or_blank_name_is_refused(good, name):
    assert "name" in str(refused("name", **{**good, "name": name}))


@pytest.mark.parametrize("description", ["", "  ", None])
def test_case_03_a_missing_or_blank_description_is_refused_with_the_reason(good, description):
    error = refused("description", **{**good, "description": description})
    assert "restart_probe" in str(error)
    assert "invisible" in str(error)


def test_case_04_a_procedure_that_is_no_factory_is_refused_with_how_to_wrap_it(good):
    chart = good["procedure"](None)
    for given in (None, chart):
        error = refused("procedure", **{**good, "procedure": given})
        assert "callable" in str(error)


def test_case_05_a_factory_that_gives_no_built_chart_is_refused(good):
    refused("built chart", **{**good, "procedure": lambda tools: {}})
    unbuilt = refused(
        "built chart",
        **{**good, "procedure": lambda tools: rb.flow_chart("c", lambda s: None, id="a")},
    )
    assert ".build()" in str(unbuilt)


def test_case_05_an_async_factory_is_refused_as_such(good):
    async def procedure(tools):
        return good["procedure"](tools)

    assert "plain def" in str(refused("built chart", **{**good, "procedure": procedure}))


@pytest.mark.parametrize(
    "rules",
    [
        {"name": "", "version": "v1"},
        {"name": "r", "version": " "},
        {"name": "r", "version": 3},
        {"name": "r"},
        {"name": "r", "version": "1", "verison": "2"},
        "r v1",
    ],
)
def test_case_06_rules_need_a_name_and_a_version_in_text(good, rules):
    refused("rules", **good, rules=rules)


@pytest.mark.parametrize("verdicts", [{"decider": " "}, {}, {"decider": 3}])
def test_case_07_verdicts_need_a_decider(good, verdicts):
    refused(r"verdicts\.decider", **good, verdicts=verdicts)


@pytest.mark.parametrize("rows", [0, -1, 2.5, "10", 5.0, True, None])
def test_case_08_max_rows_is_a_whole_number_from_one(good, rows):
    refused(r"verdicts\.max_rows", **good, verdicts={"decider": "d", "max_rows": rows})


@pytest.mark.parametrize("options", [{"rank": 5}, {"rank": "ab"}, {"rank": [1]}, {"units": ["d"]}])
def test_case_08_rank_and_units_are_refused_by_name(good, options):
    refused(rf"verdicts\.{next(iter(options))}", **good, verdicts={"decider": "d", **options})


@pytest.mark.parametrize("word", ["table", "panel ", "Prose", "", None, [], {}])
def test_case_09_an_unknown_presentation_is_refused_and_never_prose(good, word):
    error = refused("presentation", **good, presentation=word)
    assert "'prose'" in str(error)
    assert "'panel'" in str(error)


@pytest.mark.parametrize("cap", [0, -5, 1.5, True, None])
def test_case_10_the_walk_cap_is_a_whole_number_from_one(good, cap):
    refused(r"walk\.cap", **good, walk={"cap": cap})


@pytest.mark.parametrize("recording", ["yes", [], None, 1])
def test_case_11_the_recording_option_has_three_legal_forms(good, recording):
    error = refused(r"walk\.recording", **good, walk={"recording": recording})
    for form in ("True", "False", "mapping"):
        assert form in str(error)


@pytest.mark.parametrize("size", [0, -1, 1.0, True, None])
def test_case_12_the_ceiling_is_a_whole_number_and_refuses_rather_than_truncates(good, size):
    error = refused(r"walk\.recording\.max_bytes", **good, walk={"recording": {"max_bytes": size}})
    assert "refused, never truncated" in str(error)


def test_case_13_a_limit_without_kept_records_is_refused(good):
    refused("keep_record", **good, keep_record_limit=5)


def test_case_14_a_limit_below_one_is_refused(good):
    for limit in (0, 1.5, True):
        refused("keep_record_limit", **good, keep_record=True, keep_record_limit=limit)
    refused("keep_record", **good, keep_record="yes")


def test_case_15_the_first_thing_wrong_is_named_in_a_fixed_order():
    wrong = {
        "name": "t",
        "description": "d",
        "procedure": lambda tools: {},
        "rules": {},
        "verdicts": {},
        "presentation": "table",
        "walk": {"cap": 0},
        "keep_record_limit": 5,
    }
    order = ["name", "description", "procedure", "rules", "verdicts.decider", "presentation"]
    order += ["walk.cap", "keep_record_limit"]
    for place, where in enumerate(order):
        options = dict(wrong)
        good = {"rules": None, "verdicts": None, "presentation": "prose", "walk": None}
        for fixed in order[:place]:
            key = fixed.partition(".")[0]
            options[key] = wrong[key] if key in ("name", "description") else good.get(key)
        if place > 2:
            options["procedure"] = wrong["procedure"]
        if place < 2:
            options[where] = ""
        elif place == 2:
            options["procedure"] = None
        with pytest.raises(DefinitionError) as caught:
            rb.runbook_as_tool(**options)
        assert caught.value.where == where


def test_case_15_a_blank_name_is_told_before_a_blank_description():
    assert refused("name", name="", description="").where == "name"


def test_case_16_a_factory_that_raises_is_told_as_the_probe_with_its_cause(good):
    def procedure(tools):
        raise ValueError("boom")

    error = refused("probe", **{**good, "procedure": procedure})
    assert "restart_probe" in str(error)
    assert "boom" in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_case_17_calling_a_tool_while_building_is_told_at_once(good):
    def procedure(tools):
        tools.call("x", {})

    error = refused("execute time", **{**good, "procedure": procedure})
    assert "restart_probe" in str(error)
    assert "'x'" in str(error)


def test_case_18_has_answers_no_while_building(good):
    def procedure(tools):
        if tools.has("x"):
            raise AssertionError("it was there")
        return good["procedure"](tools)

    assert rb.runbook_as_tool(**{**good, "procedure": procedure}).name == "restart_probe"


def test_case_19_the_factory_is_called_once_for_the_definition_and_once_for_each_call(good):
    made = []

    def procedure(tools):
        made.append(tools)
        return good["procedure"](tools)

    tool = rb.runbook_as_tool(**{**good, "procedure": procedure})
    tool.execute_sync({})
    tool.execute_sync({})
    assert len(made) == 3


def test_case_19_a_factory_that_gives_something_else_for_a_call_is_told(good):
    made = iter([good["procedure"](None), {}])
    tool = rb.runbook_as_tool(**{**good, "procedure": lambda tools: next(made)})
    with pytest.raises(DefinitionError, match=r"restart_probe.*dict for this call"):
        tool.execute_sync({})


def test_case_20_the_input_schema_is_the_given_one_or_the_charts_when_it_is_plain_data(good):
    declared = {"type": "object", "properties": {"host": {"type": "string"}}}
    given = {"type": "object", "properties": {"x": {"type": "number"}}}

    def procedure(schema):
        return lambda tools: rb.flow_chart("c", lambda s: None, id="a", input_schema=schema).build()

    plain = rb.runbook_as_tool(**{**good, "procedure": procedure(declared)})
    assert plain.schema.input_schema == declared
    both = rb.runbook_as_tool(**{**good, "procedure": procedure(declared)}, input_schema=given)
    assert both.schema.input_schema == given


def test_case_20_a_validator_of_the_procedure_is_not_lifted_and_a_pydantic_model_is(good):
    class Host(pydantic.BaseModel):
        host: str

    class Procedure:
        """Any kind of procedure, with an input schema of its own."""

        name, structure = "p", good["procedure"](None).structure

        def __init__(self, schema):
            self.input_schema = schema

        async def run(self, args=None, *, redact=None, signal=None):
            return await good["procedure"](None).run(args, redact=redact, signal=signal)

    def tool(schema):
        return rb.runbook_as_tool(**{**good, "procedure": lambda tools: Procedure(schema)})

    opaque = tool(SimpleNamespace(parse=lambda value: value))
    assert opaque.schema.input_schema == {"type": "object", "properties": {}}
    assert opaque.execute_sync({})["result"]["walk"]["steps_executed"] == 1
    assert tool(Host).schema.input_schema["properties"]["host"]["type"] == "string"


def test_case_21_declarations_about_the_tool_are_kept_as_given(good):
    tool = rb.runbook_as_tool(
        **good,
        result_class="triage",
        owner={"kind": "custom", "id": "ops"},
        result_ceiling={"max_chars": 50000},
        arguments_from=["inv"],
        composed_of=["inv"],
        result_kind="verdict/x",
        gates=True,
        check_in="always",
        needs={"credential": "vault"},
    )
    assert tool.result_class == "triage"
    assert tool.owner == {"kind": "custom", "id": "ops"}
    assert tool.result_ceiling == {"max_chars": 50000}
    assert tool.arguments_from == ["inv"]
    assert tool.composed_of == ["inv"]
    assert tool.result_kind == "verdict/x"
    assert (tool.gates, tool.check_in, tool.needs["credential"]) == (True, "always", "vault")


def test_case_21_option_bags_may_be_dataclasses(good):
    tool = rb.runbook_as_tool(
        **good,
        rules=rb.RunbookRules("r", "1"),
        verdicts=rb.Verdicts(decider="d"),
        walk=rb.WalkOptions(cap=3, recording=rb.RecordingOptions(max_bytes=9)),
        redact=rb.Redact(keys=["k"]),
    )
    assert tool.execute_sync({})["result"]["rule_version"] == "1"


def test_case_22_the_recording_policy_has_one_reading():
    assert resolve_recording_policy() is None
    assert resolve_recording_policy(False) is None
    default = rb.RecordingOptions(max_bytes=5_000_000)
    assert resolve_recording_policy(True) == default
    assert resolve_recording_policy({}) == default
    given = resolve_recording_policy({"max_bytes": 10, "label": "n"})
    assert given == rb.RecordingOptions(max_bytes=10, label="n")


def test_case_23_the_published_constants():
    assert rb.DEFAULT_WALK_CAP == 500
    assert rb.DEFAULT_MAX_ROWS == 50
    assert rb.DEFAULT_RECORDING_MAX_BYTES == 5_000_000
    assert rb.CHART_WALK_ARTIFACT_KIND == "recording/chart-walk"
    assert rb.RECORDING_ARTIFACT_KIND == "recording/run"
    assert rb.DECLINED_VERDICT == "declined"
    assert rb.WalkOptions().cap == 500


def test_recorders_must_be_callable(good):
    refused("recorders", **good, recorders=[3])
    refused("recorders", **good, recorders=3)


class Days:
    """A validator of no kind the package knows."""

    def parse(self, given):
        if not isinstance(given.get("days"), int):
            raise TypeError(f"days cannot be {given.get('days')!r}")
        return {**given, "seen": True}


def test_a_chart_may_declare_any_validator_which_is_for_the_chart_alone(kit):
    def procedure(tools):
        return rb.flow_chart(
            "c", lambda s: s.set("report", dict(s.args)), id="a", input_schema=Days()
        ).build()

    probe = kit.define(procedure=procedure)
    assert probe.schema.input_schema == {"type": "object", "properties": {}}
    answer = kit.ask(None, {"days": 3}, procedure=procedure)
    assert (answer["result"]["days"], answer["result"]["seen"]) == (3, True)
    with pytest.raises(ChartError, match="days cannot be 'x'"):
        kit.ask(None, {"days": "x"}, procedure=procedure)
