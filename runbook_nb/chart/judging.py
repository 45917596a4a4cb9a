"""Judging rows by a rule set, one small chart per row: the chart, and the stage that has it.

Chart layer. `judged_chart` is what one row runs through; a `JudgeEachStage` is a fan-out whose
branches all run it, so that the engine need not (see `runbook_nb.chart.judged_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.chart.branches import tags_of
from runbook_nb.chart.model import Chart, JudgeEachStage
from runbook_nb.chart.validate import RESERVED, is_id, is_text
from runbook_nb.errors import DefinitionError, Problem
from runbook_nb.rules.ruleset import RuleSet

if TYPE_CHECKING:
    from runbook_nb.chart.plan import ChartPlan
    from runbook_nb.rules.plan import DecisionPath

#: The key of a row's state that its answer goes to.
VERDICT: Final = "verdict"


def judged_chart(rules: RuleSet, decider: str = "Verdict") -> Chart:
    """Make the chart one row runs through: take its columns, judge them, keep the verdict.

    Parameters
    ----------
    rules : RuleSet
        What judges the row; its branches are the verdicts.
    decider : str
        The name of the decider.

    Raises
    ------
    DefinitionError
        A verdict is a word no branch can be named by.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], default="fresh")
    >>> chart = judged_chart(rules)
    >>> [stage.id for stage in chart.stages], [b.route for b in chart.stages[1].branches]
    (['take', 'verdict'], ['fresh', 'old', 'declined'])
    """
    from runbook_nb.chart.builder import flow_chart

    def take(scope: Any) -> None:
        scope.update(scope.args["item"])

    def keep(word: str) -> Any:
        return lambda scope: scope.set(VERDICT, word)

    branches = flow_chart("Take one row", take, id="take").add_decider(
        decider, rules=rules, id="verdict"
    )
    for word in rules.branches:
        if not is_id(word):
            raise DefinitionError(
                f"the verdict {word!r} cannot name a branch: it may not be padded, hold a line "
                f"break or a tab, or any of {' '.join(RESERVED)}",
                where="rules",
                fix="spell it without, and keep the words for the label",
            )
        branches = branches.branch(word, keep(word))
    return branches.end().build()


def appended_by(
    chart: ChartPlan, layout: tuple[str, ...], path: DecisionPath
) -> tuple[int, ...] | None:
    """Give the codes that a row with these keys appends where its decision goes this way.

    It says of `judged_chart` what running it would: the row is taken, judged, and the verdict kept.
    None of a row that is not decided, or goes to a branch that the chart does not declare.
    """
    take, decider = chart.stages
    branch = decider.branches.get(path.branch or "")
    if path.refuses or branch is None:
        return None
    args = take.args_code  # before the keys are met, as a branch that runs would meet them
    taken = take.layout_codes(layout)
    if taken is None:
        return None
    return (
        *(take.stage_code, args, *taken),
        *(decider.stage_code, *decider.decision_codes(path)),
        *(branch.stage_code, branch.write_codes[VERDICT]),
    )


def judge_each_stage(
    *,
    id: str,
    name: str,
    items: Callable[[Any], Any],
    rules: Any,
    into: str | None,
    subject: str | None,
    max_branches: int,
    decider: str,
    description: str | None,
    tags: Iterable[str],
) -> tuple[JudgeEachStage, list[Problem]]:
    """Make a stage that judges rows, and say what is wrong with its rules and its decider.

    Examples
    --------
    >>> stage, problems = judge_each_stage(id="j", name="J", items=list, rules=None, into=None,
    ...     subject=None, max_branches=1, decider="Verdict", description=None, tags=())
    >>> print(problems[0])
    'j': rules is NoneType, not a RuleSet; write rules=rb.RuleSet("name", "v1", …)
    """
    branch: Chart | None = None
    problems: list[Problem] = []
    where = repr(id)
    if not isinstance(rules, RuleSet):
        fix = 'write rules=rb.RuleSet("name", "v1", …)'
        message = f"rules is {type(rules).__name__}, not a RuleSet"
        problems.append(Problem(message=message, where=where, fix=fix))
    elif not is_text(decider):
        problems.append(
            Problem(
                message=f"the decider's name is {decider!r}, not a text",
                where=where,
                fix="name it as a reader should see it, or leave it out",
            )
        )
    else:
        try:
            branch = judged_chart(rules, decider)
        except DefinitionError as error:
            found = error.problems or (Problem(message=error.message, where="", fix=error.fix),)
            problems += [Problem(message=one.message, where=where, fix=one.fix) for one in found]
    stage = JudgeEachStage(
        id=id,
        name=name,
        description=description,
        tags=tags_of(tags),
        items=items,
        branch=branch,  # type: ignore[arg-type]
        max_branches=max_branches,
        into=into,  # type: ignore[arg-type]
        subject=subject,
        rules=rules,
    )
    return stage, problems
