"""The stages that do something for each of many: fan-outs, and the judging of rows.

Chart layer. Part of the builder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from runbook_nb.chart.branches import tags_of
from runbook_nb.chart.model import Chart, FanOutStage, Stage
from runbook_nb.errors import Problem

if TYPE_CHECKING:
    from runbook_nb.chart.builder import FlowChartBuilder
    from runbook_nb.rules import RuleSet

#: How many rows are judged unless a stage says otherwise.
MAX_ROWS: Final = 1_000_000


class EachBuilder:
    """Adds stages that run a chart per item."""

    _problems: list[Problem]

    def _add(self, stage: Stage) -> FlowChartBuilder:
        raise NotImplementedError

    def add_parallel_for_each(
        self,
        name: str,
        *,
        id: str,
        items: Callable[[Any], Any],
        branch: Chart | Callable[[Any, int], Chart],
        max_branches: int,
        into: str,
        max_concurrency: int = 16,
        subject: str | None = None,
        fail_fast: bool = False,
        description: str | None = None,
        tags: Iterable[str] = (),
    ) -> FlowChartBuilder:
        """Add a fan-out: one branch chart per item, at most ``max_branches`` of them.

        Parameters
        ----------
        items : callable
            Takes the scope and gives the list of items.
        branch : Chart or callable
            The chart each item runs through, built once; or ``(item, index) -> Chart``. Inside,
            the item is ``scope.args["item"]``.
        max_branches : int
            How many items are judged; the rest are ``not_reached`` and said to be.
        into : str
            State key that gets one `Slot` per item, in item order.
        max_concurrency : int
            How many branches with async stages run at once.
        subject : str, optional
            Key of an item that names its subject.
        fail_fast : bool
            Let the first failed branch fail the run; otherwise a failed branch is a failed slot.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> each = flow_chart("square", lambda s: s.args["item"] ** 2, id="square").build()
        >>> chart = (flow_chart("squares", lambda s: s.set("ns", [1, 2, 3]), id="ns")
        ...     .add_parallel_for_each("Each", id="each", items=lambda s: s["ns"], branch=each,
        ...                            max_branches=2, into="out")
        ...     .build())
        >>> [(slot.value, slot.status) for slot in chart.run_sync().slots("each")]
        [(1, 'ok'), (4, 'ok'), (None, 'not_reached')]
        """
        return self._add(
            FanOutStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                items=items,
                branch=branch,
                max_branches=max_branches,
                into=into,
                max_concurrency=max_concurrency,
                subject=subject,
                fail_fast=fail_fast,
            )
        )

    def add_judge_each(
        self,
        name: str,
        *,
        id: str,
        items: Callable[[Any], Any],
        rules: RuleSet,
        into: str | None = None,
        subject: str | None = None,
        max_branches: int = MAX_ROWS,
        decider: str = "Verdict",
        description: str | None = None,
        tags: Iterable[str] = (),
    ) -> FlowChartBuilder:
        """Add a fan-out that judges each row by a rule set, for many rows at once.

        What it records is what `add_parallel_for_each` records for the same rows with a branch
        that takes a row, judges it and writes its verdict under ``"verdict"``: each row has its
        walk, its evidence and its slot. But rows are judged column by column, so that a million
        of them take about as long as a loop over them would.

        Parameters
        ----------
        items : callable
            Takes the scope and gives the rows: a DataFrame, a mapping of equally long columns, a
            list of mappings, an Arrow table. In a frame any NA is null; a column that is not
            there is missing.
        rules : RuleSet
            What judges each row; its branches are the verdicts. A rule that is a function has
            the rows run one by one.
        into : str, optional
            State key that gets one `Slot` per row, in their order. `Run.slots` has them anyway.
        subject : str, optional
            Column that names a row's subject.
        max_branches : int
            How many rows are judged; the rest are ``not_reached`` and said to be.
        decider : str
            The name of the decider in each row's branch.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], default="fresh")
        >>> chart = (flow_chart("backups")
        ...     .add_judge_each("Judge", id="judge", rules=rules, subject="host",
        ...                     items=lambda s: {"host": ["a", "b"], "days": [2, 30]})
        ...     .build())
        >>> slots = chart.run_sync().slots("judge")
        >>> slots[1].value["verdict"], slots[1].sentence
        ('old', 'old by rule 1 of age v1: days 30 > 7')
        """
        from runbook_nb.chart.judging import judge_each_stage

        stage, problems = judge_each_stage(
            id=id,
            name=name,
            items=items,
            rules=rules,
            into=into,
            subject=subject,
            max_branches=max_branches,
            decider=decider,
            description=description,
            tags=tags,
        )
        self._problems += problems
        return self._add(stage)
