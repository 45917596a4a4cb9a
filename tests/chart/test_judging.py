"""A stage that judges rows records what its twin records, which runs each row as a branch."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from judged_cases import POLICIES, ROWS, RULES, Case, rule_set, told

import runbook_nb as rb
from runbook_nb.errors import RunbookError
from runbook_nb.record.written import read_log, write_log

SLOW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)

AGES = rb.RuleSet(
    "age",
    "v1",
    [rb.Rule({"age": {"gt": 7}}, "old", label="older than a week")],
    rb.Default("fresh", label="within a week"),
)


def both(case: Case, **options: object) -> tuple[dict, dict]:
    """Run the chart and its twin, whatever comes of them; give what each tells."""
    out = []
    for chart in (case.judged(), case.twin()):
        try:
            out.append(told(chart.run_sync(**options)))
        except Exception as error:  # what a stage raised
            out.append({"raised": repr(error), **told(error.run)})
    return out[0], out[1]


def same(case: Case, **options: object) -> None:
    """Hold the chart to its twin, view by view."""
    judged, twin = both(case, **options)
    assert judged.keys() == twin.keys()
    for name, value in judged.items():
        assert value == twin[name], name


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10), POLICIES)
@SLOW
def test_everything_told_is_what_the_twin_tells(rules, rows, cap, policy):
    same(Case(rules, rows, cap), redact=policy)


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10))
@SLOW
def test_the_written_log_is_that_of_the_twin_and_reads_back(rules, rows, cap):
    case = Case(rules, rows, cap)
    logs = []
    for chart in (case.judged(), case.twin()):
        try:
            logs.append(chart.run_sync().log)
        except Exception as error:
            logs.append(error.run.log)
    try:
        written = [write_log(log) for log in logs]
    except RunbookError:
        with pytest.raises(RunbookError):
            write_log(logs[0])
        return
    assert json.dumps(written[0]) == json.dumps(written[1])
    again = read_log(json.loads(json.dumps(written[0])), [rules])
    assert json.dumps(write_log(again)) == json.dumps(written[0])
