"""The last touches to a chart's stages before it is checked, and the branch that declines.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from runbook_nb._frozen import freeze
from runbook_nb.chart.contract import output_problems
from runbook_nb.chart.inputs import input_problems
from runbook_nb.chart.model import (
    DECLINED,
    Branch,
    Chart,
    DeciderStage,
    ForkStage,
    FunctionStage,
    Stage,
    SubchartStage,
    branches_of,
)
from runbook_nb.chart.validate import check_chart
from runbook_nb.errors import ChartError, Problem

#: Ends the id of the fork that charts side by side make together.
_FORK: Final = ".fork"


def finished_chart(chart: Chart, found: Sequence[Problem] = ()) -> Chart:
    """Check a chart as a whole and give it as it runs.

    Parameters
    ----------
    chart : Chart
        As declared.
    found : sequence of Problem
        What was found wrong with it already.

    Raises
    ------
    ChartError
        With every problem, each naming the stage it concerns.
    """
    stages = with_unique_branch_ids(with_declined(chart.stages))
    problems = [*found, *check_chart(chart.name, stages, chart.loop_to)]
    problems += input_problems(chart.input_schema)
    problems += output_problems(chart.output_schema, chart.output)
    if problems:
        raise ChartError(f"chart {chart.name!r} cannot be built", problems=problems)
    return replace(
        chart,
        stages=tuple(stages),
        input_schema=kept_schema(chart.input_schema),
        output_schema=kept_schema(chart.output_schema),
    )


def beside(stages: Sequence[Stage], stage: SubchartStage) -> list[Stage]:
    """Add a mounted chart that runs side by side with those just before it that do so too."""
    branch = Branch(route=stage.id, stage=stage)
    last = stages[-1] if stages else None
    if isinstance(last, ForkStage) and _is_made(last):
        name = f"{last.name}, {stage.name}"
        return [*stages[:-1], replace(last, branches=(*last.branches, branch), name=name)]
    fork_id = f"{stage.id}{_FORK}"
    fork = ForkStage(id=fork_id, name=str(stage.name), branches=(branch,), merge="keys")
    return [*stages, fork]


def _is_made(fork: ForkStage) -> bool:
    """Say whether a fork was made here, and not by the author."""
    return (
        fork.merge == "keys"
        and all(isinstance(branch.stage, SubchartStage) for branch in fork.branches)
        and fork.id == f"{fork.branches[0].id}{_FORK}"
    )


def second_loop(first: str, id: Any) -> Problem:
    """Make the problem of a chart that is to go back twice."""
    return Problem(
        message=f"the chart already goes back to {first!r}",
        where=repr(id),
        fix="let a decider's branches go back to different stages",
    )


def rule_set_of(rules: Any) -> Any:
    """Give the rule set a selector was given; a list of rules is one without a name."""
    if not isinstance(rules, list | tuple):
        return rules
    from runbook_nb.rules import RuleSet

    return RuleSet.bare(rules)


def kept_schema(schema: Any) -> Any:
    """Freeze a JSON Schema; anything else that validates is kept as it is."""
    return freeze(schema) if isinstance(schema, Mapping) else schema


def declined_branch(id: str = DECLINED) -> Branch:
    """Make the branch for subjects that reach no classification: it runs and writes nothing."""
    stage = FunctionStage(id=id, name="Declined", fn=_decline)
    return Branch(route=DECLINED, stage=stage, added=True)


def _decline(scope: Mapping[str, Any]) -> None:
    """Do nothing: the decision itself is the record."""


def with_declined(stages: Sequence[Stage]) -> list[Stage]:
    """Add a ``declined`` branch to deciders whose rules may decline and that have none."""

    def complete(stage: Stage) -> Stage:
        if not isinstance(stage, DeciderStage) or stage.rules is None:
            return stage
        routes = {branch.route for branch in stage.branches}
        reachable = getattr(stage.rules, "branches", ())
        if DECLINED in routes or DECLINED not in reachable:
            return stage
        return replace(stage, branches=(*stage.branches, declined_branch()))

    return [complete(stage) for stage in stages]


def with_unique_branch_ids(stages: Sequence[Stage]) -> list[Stage]:
    """Give the stages of branches ids of their own."""
    # Two deciders may both route to "yes". The word stays the word; the stage behind it gets the
    # decider's id in front where the bare word is taken, so that every row names one stage.
    taken = {stage.id for stage in stages}

    def claim(stage: DeciderStage | ForkStage) -> Stage:
        branches = []
        for branch in branches_of(stage):
            free = branch.id if branch.id not in taken else f"{stage.id}.{branch.id}"
            taken.add(free)
            branches.append(replace(branch, stage=replace(branch.stage, id=free)))
        return replace(stage, branches=tuple(branches))

    return [
        claim(stage) if isinstance(stage, DeciderStage | ForkStage) else stage for stage in stages
    ]
