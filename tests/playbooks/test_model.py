"""What comes from files and code: validation, laxity, dumps, and the keys that are ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from held_plans import book, step
from pydantic import ValidationError

from runbook_nb.playbooks import (
    EnforcementResult,
    EnforcementViolation,
    Playbook,
    PlaybookPlan,
    PlaybookStep,
    RequiredProbe,
    StepExecution,
    StepStatus,
)
from runbook_nb.testing.fixed import MOMENT, reproducible

STEP_KEYS = [
    *("id", "description", "expected_tools", "hints", "required", "validation", "uses"),
    *("required_probes", "min_tool_calls", "max_tool_calls", "timeout_seconds", "metadata"),
]
BOOK_KEYS = [
    *("id", "name", "description", "version", "steps", "strict_sequence", "allow_extra_tools"),
    *("max_iterations", "metadata", "tags"),
]


def test_the_words_of_a_status_are_the_published_ones():
    assert [one.value for one in StepStatus] == [
        *("pending", "in_progress", "completed", "skipped", "failed")
    ]


def test_a_step_dumps_exactly_the_published_keys():
    assert list(step("a", "scan").model_dump()) == STEP_KEYS
    assert list(book(step("a")).model_dump()) == BOOK_KEYS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("checks", [{"name": "auth", "path": "index", "op": "exists"}]),
        ("kind", "manual"),
        ("kind", "approval"),
        ("requires", ["scan"]),
        ("x-owner", "ana"),
    ],
)
def test_a_key_of_ours_is_dumped_where_it_is_used_and_read_back(key, value):
    one = PlaybookStep(id="a", description="d", **{key: value})
    dumped = one.model_dump()
    assert list(dumped) == [*STEP_KEYS, key]
    assert dumped[key] == value
    assert PlaybookStep(**json.loads(one.model_dump_json())) == one
    assert one != step("a")


def test_a_key_that_nobody_knows_is_dropped_and_one_with_x_is_kept():
    one = PlaybookStep(id="a", description="d", goal="g", **{"x-team": "soc"})
    assert one.extensions == {"x-team": "soc"}
    assert not hasattr(one, "goal")
    whole = Playbook(id="p", name="n", owner="o", **{"x-team": "soc"})
    assert whole.extensions == {"x-team": "soc"}
    assert step("a").extensions == {}


def test_an_unknown_kind_of_step_is_refused():
    with pytest.raises(ValidationError, match="manual"):
        PlaybookStep(id="a", description="d", kind="automatic")


@pytest.mark.parametrize("field", ["id", "description"])
@pytest.mark.parametrize("value", [7, 1.0, True, None])
def test_text_is_never_made_of_something_else(field, value):
    with pytest.raises(ValidationError):
        PlaybookStep(**{"id": "a", "description": "d", field: value})


@pytest.mark.parametrize(("given", "read"), [(2.0, 2), ("3", 3), (True, 1)])
def test_whole_numbers_are_read_leniently(given, read):
    assert step("a", max_tool_calls=given).max_tool_calls == read


@pytest.mark.parametrize("given", [2.5, "many"])
def test_what_is_no_whole_number_is_refused(given):
    with pytest.raises(ValidationError):
        step("a", max_tool_calls=given)


@pytest.mark.parametrize(
    ("given", "read"), [(0, False), ("Yes", True), ("off", False), ("T", True)]
)
def test_the_usual_words_are_booleans(given, read):
    assert step("a", required=given).required is read


def test_a_floor_has_a_bound_and_a_cap_has_none():
    with pytest.raises(ValidationError):
        step("a", min_tool_calls=-1)
    assert step("a", max_tool_calls=-3).max_tool_calls == -3


def test_a_probe_must_look_for_something_and_has_no_other_keys():
    assert RequiredProbe(name="", match=" ").match == " "
    with pytest.raises(ValidationError):
        RequiredProbe(name="a", match="")
    with pytest.raises(ValidationError, match="Extra"):
        RequiredProbe(name="a", match="b", op="eq")


def test_a_playbook_and_its_steps_are_frozen_and_a_probe_is_not():
    with pytest.raises(ValidationError):
        book().name = "other"
    with pytest.raises(ValidationError):
        step("a").id = "b"
    probe = RequiredProbe(name="a", match="b")
    probe.match = "c"
    assert probe.match == "c"


def test_defaults_are_not_shared():
    first, second = step("a"), step("b")
    first.hints.append("x")
    assert second.hints == []


def test_a_step_is_found_by_its_first_occurrence():
    whole = book(step("a", "x"), step("a", "y"))
    assert whole.get_step("a").expected_tools == ["x"]
    assert (whole.get_step_index("a"), whole.get_step("b"), whole.get_step_index("b")) == (
        *(0, None, None),
    )


def test_coverage_is_of_distinct_names():
    probes = [RequiredProbe(name=name, match="x") for name in ("a", "b", "a")]
    record = StepExecution(step_id="s", matched_probes=["a", "other"])
    assert record.probe_coverage(probes) == 0.5
    assert record.unmatched_probes(probes) == ["b"]
    assert StepExecution(step_id="s").probe_coverage([]) == 1.0


def test_a_plan_tells_what_is_done_and_what_is_not():
    plan = PlaybookPlan(playbook=book(step("a"), step("b"), step("c", required=False)))
    plan.step_executions["b"] = StepExecution(step_id="b", status="completed")
    plan.step_executions["c"] = StepExecution(step_id="c", status="skipped")
    assert (plan.progress, plan.completed_steps, plan.pending_steps) == (1 / 3, ["b"], ["a", "c"])
    assert plan.unresolved_required_steps() == ["a"]
    assert plan.is_step_complete("b")
    assert not plan.is_step_complete("c")
    assert plan.get_step_execution("a") is None


def test_a_plan_of_no_steps_is_done_and_has_no_step():
    plan = PlaybookPlan(playbook=book())
    assert (plan.progress, plan.current_step, plan.completed) == (1.0, None, False)


@pytest.mark.parametrize("pointer", [-1, 1, 99])
def test_a_pointer_out_of_range_is_at_no_step(pointer):
    plan = PlaybookPlan(playbook=book(step("a")), current_step_index=pointer)
    assert plan.current_step is None


def test_times_come_from_the_clock_of_the_settings():
    with reproducible():
        assert PlaybookPlan(playbook=book()).started_at == MOMENT
        assert EnforcementViolation(violation_type="x", message="m").timestamp == MOMENT


def test_everything_is_read_back_from_json():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    plan = PlaybookPlan(playbook=book(step("a", "scan")), started_at=at)
    plan.step_executions["a"] = StepExecution(step_id="a", started_at=at, tool_calls=["scan"])
    assert PlaybookPlan.model_validate_json(plan.model_dump_json()) == plan
    assert len(plan.model_dump()) == 8
    assert len(plan.step_executions["a"].model_dump()) == 9
    violation = EnforcementViolation(violation_type="x", message="m", timestamp=at)
    result = EnforcementResult(allowed=False, violation=violation, current_step=step("a"))
    assert len(violation.model_dump()) == 6
    assert EnforcementResult.model_validate_json(result.model_dump_json()) == result
