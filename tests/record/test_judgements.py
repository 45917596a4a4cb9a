"""The decisions of a run in groups are the decisions one after the other."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_cases import ROWS, RULES, Case, rule_set

import runbook_nb as rb
from runbook_nb.errors import RunbookError
from runbook_nb.record.judgements import judgements_in

tried = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

AGE = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], "fresh")


def run_of(chart):
    try:
        return chart.run_sync()
    except RunbookError as error:
        return error.run


def in_groups(run):
    """Give branch and read values of each decision, by group."""
    groups = []
    for group in judgements_in(run.walk):
        groups.append((group.path.branch, len(group.path.codes), len(group.where)))
    return groups


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10))
@tried
def test_every_decision_is_in_one_group_in_either_form(rules, rows, cap):
    case = Case(rules, rows, cap)
    runs = run_of(case.judged()), run_of(case.twin())
    assert in_groups(runs[0]) == in_groups(runs[1])
    for run in runs:
        told = [one.decision.branch for one in run.walk.iter_decisions()]
        counted = [branch for branch, _, many in in_groups(run) for _ in range(many)]
        assert sorted(map(str, counted)) == sorted(map(str, told))


def test_groups_stand_in_the_order_of_their_first_decision():
    run = Case(AGE, [{"age": 1}, {"age": 9}, {"age": 2}], 9).judged().run_sync()
    groups = list(judgements_in(run.walk))
    assert [group.path.branch for group in groups] == ["fresh", "old"]
    assert [list(group.where) for group in groups] == [[0, 2], [1]]
    assert [list(group.column(0)) for group in groups] == [[1, 2], [9]]


def test_decisions_of_fan_outs_within_fan_outs_are_counted_one_by_one():
    inner = (
        rb.flow_chart("inner", lambda s: s.set("n", 1), id="n")
        .add_judge_each(
            "J", id="j", items=lambda s: [{"age": 9}, {"age": 1}], rules=AGE, into="in",
            max_branches=9,
        )
        .build()
    )  # fmt: skip
    run = (
        rb.flow_chart("outer", lambda s: s.set("xs", [1, 2, 3]), id="xs")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["xs"], branch=inner, max_branches=9, into="out"
        )
        .build()
        .run_sync()
    )
    assert sorted(group.path.branch for group in judgements_in(run.walk)) == [
        *["fresh"] * 3,
        *["old"] * 3,
    ]


def test_a_run_without_decisions_has_no_group():
    run = rb.flow_chart("c", lambda s: s.set("n", 1), id="n").build().run_sync()
    assert list(judgements_in(run.walk)) == []
