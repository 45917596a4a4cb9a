"""The fluent builder: `flow_chart` starts a chart, ``add_*`` extends it, ``build`` checks it.

Chart layer. Everything wrong with a chart is found at ``build`` and reported together, each with
the id it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import freeze
from runbook_nb.chart.inputs import input_problems
from runbook_nb.chart.model import (
    DECLINED,
    Branch,
    Chart,
    DeciderStage,
    FanOutStage,
    FunctionStage,
    Retry,
    Stage,
    StageFunction,
)
from runbook_nb.chart.validate import check_chart
from runbook_nb.errors import ChartError

if TYPE_CHECKING:
    from runbook_nb.rules import RuleSet


def flow_chart(
    name: str,
    fn: StageFunction,
    *,
    id: str,
    stage_name: str | None = None,
    description: str | None = None,
    input_schema: Any = None,
    retry: Retry | None = None,
    tags: Iterable[str] = (),
    blocking: bool = False,
) -> FlowChartBuilder:
    """Start a chart with its first stage.

    Parameters
    ----------
    name : str
        The chart's name, and the first stage's unless ``stage_name`` is given.
    fn : callable
        The first stage: takes the `Scope`; sync or async.
    id : str
        The first stage's id.
    stage_name, description : str, optional
        The first stage's display name; what the chart is for.
    input_schema : mapping, pydantic model or object with a ``parse`` method, optional
        What the run's input must look like.
    retry : Retry, optional
    tags : iterable of str
    blocking : bool
        Moves a sync stage to a thread, so that it does not hold up the event loop.

    Returns
    -------
    FlowChartBuilder

    Examples
    --------
    >>> chart = (flow_chart("sum", lambda s: s.set("n", 1), id="one")
    ...     .add_function("Double", lambda s: s.set("n", s["n"] * 2), id="double")
    ...     .build())
    >>> chart.run_sync().state
    {'n': 2}
    """
    first = FunctionStage(
        id=id,
        name=stage_name if stage_name is not None else name,
        description=description,
        tags=_tags(tags),
        retry=retry,
        blocking=blocking,
        fn=fn,
    )
    return FlowChartBuilder(name, first, description=description, input_schema=input_schema)


class FlowChartBuilder:
    """Collects the stages of one chart; made by `flow_chart`."""

    def __init__(
        self, name: str, first: Stage, *, description: str | None = None, input_schema: Any = None
    ) -> None:
        self._name = name
        self._description = description
        self._input_schema = input_schema
        self._stages: list[Stage] = [first]

    def add_function(
        self,
        name: str,
        fn: StageFunction,
        *,
        id: str,
        description: str | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> FlowChartBuilder:
        """Add a stage that runs one function of the scope.

        Examples
        --------
        >>> flow_chart("a", print, id="a").add_function("B", print, id="b").build().structure
        <Structure a · 2 nodes>
        """
        self._stages.append(
            FunctionStage(
                id=id,
                name=name,
                description=description,
                tags=_tags(tags),
                retry=retry,
                blocking=blocking,
                fn=fn,
            )
        )
        return self

    def add_decider(
        self,
        name: str,
        judge: StageFunction | None = None,
        *,
        id: str,
        rules: RuleSet | None = None,
        description: str | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> DeciderBuilder:
        """Add a stage that picks one branch.

        Parameters
        ----------
        judge : callable, optional
            Takes the scope and returns a `Decision` (from `decide`) or a branch id. Returning
            the decision keeps its evidence.
        rules : RuleSet, optional
            Judged against the state instead of a function; its targets are checked at `build`.

        Returns
        -------
        DeciderBuilder
            Takes ``.branch(…)``, ``.default(…)`` and ``.end()``.

        Examples
        --------
        >>> chart = (flow_chart("pick", lambda s: s.set("n", 3), id="n")
        ...     .add_decider("Size", lambda s: "big" if s["n"] > 2 else "small", id="size")
        ...         .branch("big", lambda s: s.set("word", "big"))
        ...         .branch("small", lambda s: s.set("word", "small"))
        ...         .end().build())
        >>> chart.run_sync().state["word"]
        'big'
        """
        return DeciderBuilder(
            self,
            DeciderStage(
                id=id,
                name=name,
                description=description,
                tags=_tags(tags),
                retry=retry,
                blocking=blocking,
                rules=rules,
                judge=judge,
            ),
        )

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
        >>> each = flow_chart("square", lambda s: s.args["item"] ** 2, id="square").build()
        >>> chart = (flow_chart("squares", lambda s: s.set("ns", [1, 2, 3]), id="ns")
        ...     .add_parallel_for_each("Each", id="each", items=lambda s: s["ns"], branch=each,
        ...                            max_branches=2, into="out")
        ...     .build())
        >>> [(slot.value, slot.status) for slot in chart.run_sync().slots("each")]
        [(1, 'ok'), (4, 'ok'), (None, 'not_reached')]
        """
        self._stages.append(
            FanOutStage(
                id=id,
                name=name,
                description=description,
                tags=_tags(tags),
                items=items,
                branch=branch,
                max_branches=max_branches,
                into=into,
                max_concurrency=max_concurrency,
                subject=subject,
                fail_fast=fail_fast,
            )
        )
        return self

    def build(self) -> Chart:
        """Check the chart as a whole and give it.

        Raises
        ------
        ChartError
            With every problem found, each naming the stage it concerns.
        """
        stages = _with_declined(self._stages)
        stages = _with_unique_branch_ids(stages)
        problems = check_chart(self._name, stages)
        problems += input_problems(self._input_schema)
        if problems:
            raise ChartError(f"chart {self._name!r} cannot be built", problems=problems)
        return Chart(
            name=self._name,
            stages=tuple(stages),
            description=self._description,
            input_schema=freeze(self._input_schema)
            if isinstance(self._input_schema, Mapping)
            else self._input_schema,
        )


class DeciderBuilder:
    """Collects the branches of one decider; made by `FlowChartBuilder.add_decider`."""

    def __init__(self, owner: FlowChartBuilder, stage: DeciderStage) -> None:
        self._owner = owner
        self._stage = stage
        self._branches: list[Branch] = []

    def branch(
        self,
        id: str,
        fn: StageFunction,
        *,
        name: str | None = None,
        description: str | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> DeciderBuilder:
        """Add the branch that ``id`` routes to, as one stage.

        A description, when given, is the branch's declared meaning.
        """
        self._branches.append(
            Branch(
                id=id,
                route=id,
                name=name if name is not None else id,
                description=description,
                tags=_tags(tags),
                retry=retry,
                blocking=blocking,
                fn=fn,
            )
        )
        return self

    def default(self, id: str) -> DeciderBuilder:
        """Name the branch taken when the judge's word is none of the branches, or no rule fired.

        A decision that names an undeclared branch is an error of the rules and is not rerouted.
        """
        self._stage = replace(self._stage, default=id)
        return self

    def end(self) -> FlowChartBuilder:
        """Close the list of branches and go back to the chart."""
        self._owner._stages.append(replace(self._stage, branches=tuple(self._branches)))
        return self._owner


def _tags(tags: Any) -> tuple[Any, ...]:
    # One text is one tag, not a tag per letter; anything else is found at build.
    return tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else (tags,)


def declined_branch(id: str = DECLINED) -> Branch:
    """Make the branch for subjects that reach no classification: it runs and writes nothing."""
    return Branch(id=id, route=DECLINED, name="Declined", fn=_decline, added=True)


def _decline(scope: Mapping[str, Any]) -> None:
    """Do nothing: the decision itself is the record."""


def _with_declined(stages: list[Stage]) -> list[Stage]:
    def complete(stage: Stage) -> Stage:
        if not isinstance(stage, DeciderStage) or stage.rules is None:
            return stage
        routes = {branch.route for branch in stage.branches}
        reachable = getattr(stage.rules, "branches", ())
        if DECLINED in routes or DECLINED not in reachable:
            return stage
        return replace(stage, branches=(*stage.branches, declined_branch()))

    return [complete(stage) for stage in stages]


def _with_unique_branch_ids(stages: list[Stage]) -> list[Stage]:
    # Two deciders may both route to "yes". The word stays the word; the stage behind it gets the
    # decider's id in front where the bare word is taken, so that every row names one stage.
    taken = {stage.id for stage in stages}

    def claim(stage: DeciderStage) -> DeciderStage:
        branches = []
        for branch in stage.branches:
            free = branch.id if branch.id not in taken else f"{stage.id}.{branch.id}"
            taken.add(free)
            branches.append(replace(branch, id=free))
        return replace(stage, branches=tuple(branches))

    return [claim(stage) if isinstance(stage, DeciderStage) else stage for stage in stages]
