"""The fluent builder: `flow_chart` starts a chart, ``add_*`` extends it, ``build`` checks it.

Chart layer. Everything wrong with a chart is found at ``build`` and reported together, each with
the id it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._text import counted, visible
from runbook_nb.chart.branches import BranchesBuilder, made_stage, one_form, tags_of
from runbook_nb.chart.each import EachBuilder
from runbook_nb.chart.finishing import beside, finished_chart, rule_set_of, second_loop
from runbook_nb.chart.model import (
    Chart,
    DeciderStage,
    ForkStage,
    FunctionStage,
    PausableStage,
    Retry,
    SelectorStage,
    Stage,
    StageFunction,
    StreamingStage,
    SubchartStage,
)
from runbook_nb.errors import Problem

if TYPE_CHECKING:
    from runbook_nb.rules import Rule, RuleSet


def flow_chart(
    name: str,
    fn: StageFunction | None = None,
    *,
    id: str | None = None,
    stage_name: str | None = None,
    description: str | None = None,
    input_schema: Any = None,
    output_schema: Any = None,
    output: Callable[[Mapping[str, Any]], Any] | None = None,
    resume: StageFunction | None = None,
    stream: str | None = None,
    retry: Retry | None = None,
    tags: Iterable[str] = (),
    blocking: bool = False,
) -> FlowChartBuilder:
    """Start a chart with its first stage.

    Parameters
    ----------
    name : str
        The chart's name, and the first stage's unless ``stage_name`` is given.
    fn : callable, optional
        The first stage: takes the `Scope`; sync or async. Without it the first stage is the one
        added first, of whatever kind.
    id : str, optional
        The first stage's id; needed with ``fn``.
    stage_name, description : str, optional
        The first stage's display name; what the chart is for.
    input_schema : mapping, pydantic model or object with a ``parse`` method, optional
        What the run's input must look like.
    output_schema : mapping, pydantic model or object with a ``parse`` method, optional
        What the run gives must look like.
    output : callable, optional
        Makes what the run gives, ``run.output``, out of the final state.
    resume : callable, optional
        Makes the first stage pausable; see `FlowChartBuilder.add_pausable`.
    stream : str, optional
        Makes the first stage a streaming one, with this id of its stream.
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
    builder = FlowChartBuilder(
        name,
        description=description,
        input_schema=input_schema,
        output_schema=output_schema,
        output=output,
    )
    builder._problems += one_form(resume, stream, id)
    if fn is not None or id is not None:
        builder._stages.append(
            made_stage(
                fn,
                id="" if id is None else id,
                name=stage_name if stage_name is not None else name,
                description=description,
                resume=resume,
                stream=stream,
                retry=retry,
                tags=tags,
                blocking=blocking,
            )
        )
    return builder


class FlowChartBuilder(EachBuilder):
    """Collects the stages of one chart; made by `flow_chart`."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        input_schema: Any = None,
        output_schema: Any = None,
        output: Callable[[Mapping[str, Any]], Any] | None = None,
    ) -> None:
        self._name = name
        self._description = description
        self._input_schema = input_schema
        self._output_schema = output_schema
        self._output = output
        self._stages: list[Stage] = []
        self._loop_to: str | None = None
        #: What was found wrong while building; reported with the rest.
        self._problems: list[Problem] = []

    def __repr__(self) -> str:
        held = counted(len(self._stages), "stage")
        return f"<FlowChartBuilder {visible(str(self._name))} · {held}; .build() makes the chart>"

    def _add(self, stage: Stage) -> FlowChartBuilder:
        if self._loop_to is not None:
            self._problems.append(
                Problem(
                    message=f"comes after the loop to {self._loop_to!r}, and so would never run",
                    where=repr(stage.id),
                    fix="loop from a branch of a decider, so that the other branch goes on",
                )
            )
        self._stages.append(stage)
        return self

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
        return self._add(
            FunctionStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                retry=retry,
                blocking=blocking,
                fn=fn,
            )
        )

    def add_streaming(
        self,
        name: str,
        fn: StageFunction,
        *,
        id: str,
        stream: str | None = None,
        description: str | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> FlowChartBuilder:
        """Add a stage that may give a text piece by piece, by ``scope.stream(token)``.

        Whoever gave the run ``on_stream=`` hears each piece as it comes; how many there were, and
        the whole text, go on the record when the stage ends.

        Parameters
        ----------
        stream : str, optional
            The id of the stream; the stage's name unless given.

        Examples
        --------
        >>> heard = []
        >>> def say(scope):
        ...     for word in ("on", "ly"):
        ...         scope.stream(word)
        >>> chart = flow_chart("c", print, id="a").add_streaming("Say", say, id="say").build()
        >>> chart = flow_chart("say", say, id="say", stream="said").build()
        >>> chart.run_sync(on_stream=lambda event: heard.append(event.text)).status, heard
        ('ok', ['', 'on', 'ly', 'only'])
        """
        return self._add(
            StreamingStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                retry=retry,
                blocking=blocking,
                fn=fn,
                stream=stream if stream is not None else name,
            )
        )

    def add_pausable(
        self,
        name: str,
        execute: StageFunction,
        resume: StageFunction,
        *,
        id: str,
        description: str | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> FlowChartBuilder:
        """Add a stage of two halves with a question between them.

        Parameters
        ----------
        execute : callable
            Takes the scope. What it returns is the question, and pauses the run; None goes on.
            What it wrote stays.
        resume : callable
            Takes the scope and the answer, in an execution of its own.

        Examples
        --------
        >>> chart = (flow_chart("gate", lambda s: None, id="a")
        ...     .add_pausable("Ask", lambda s: "go on?", lambda s, answer: s.set("said", answer),
        ...                   id="ask")
        ...     .build())
        >>> run = chart.run_sync()
        >>> run.pause["reason"], chart.resume_sync(run.checkpoint, "yes").state
        ('go on?', {'said': 'yes'})
        """
        return self._add(
            PausableStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                retry=retry,
                blocking=blocking,
                fn=execute,
                resume=resume,
            )
        )

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
    ) -> BranchesBuilder:
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
        BranchesBuilder
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
        return BranchesBuilder(
            self,
            DeciderStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                retry=retry,
                blocking=blocking,
                rules=rules,
                judge=judge,
            ),
        )

    def add_selector(
        self,
        name: str,
        judge: StageFunction | None = None,
        *,
        id: str,
        rules: RuleSet | Iterable[Rule] | None = None,
        into: str | None = None,
        merge: Any = None,
        fail_fast: bool = False,
        max_concurrency: int = 16,
        description: str | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> BranchesBuilder:
        """Add a stage that picks any number of branches and runs them side by side.

        Parameters
        ----------
        judge : callable, optional
            Takes the scope and returns a `Selection` (from `select`), a list of branch ids, or
            one id. Returning the selection keeps its evidence.
        rules : RuleSet or list of Rule, optional
            Judged against the state instead of a function; all that are true count. In a rule
            set each rule must be one that could decide alone.
        into, merge, fail_fast, max_concurrency
            As for `add_fork`.

        Examples
        --------
        >>> chart = (flow_chart("pick", lambda s: s.set("n", 3), id="n")
        ...     .add_selector("Checks", lambda s: ["odd"] if s["n"] % 2 else [], id="checks",
        ...                   merge="keys")
        ...         .branch("odd", lambda s: s.set("odd", True))
        ...         .branch("big", lambda s: s.set("big", True))
        ...         .end().build())
        >>> chart.run_sync().state
        {'n': 3, 'odd': True}
        """
        return BranchesBuilder(
            self,
            SelectorStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                retry=retry,
                blocking=blocking,
                rules=rule_set_of(rules),
                judge=judge,
                into=into,
                merge=merge,
                fail_fast=fail_fast,
                max_concurrency=max_concurrency,
            ),
        )

    def add_fork(
        self,
        name: str,
        *,
        id: str,
        into: str | None = None,
        merge: Any = None,
        fail_fast: bool = False,
        max_concurrency: int = 16,
        description: str | None = None,
        tags: Iterable[str] = (),
    ) -> BranchesBuilder:
        """Add a stage that runs all its branches side by side.

        Each branch sees the state as it was when the fork began and writes into a view of its
        own, which no other branch sees. What reaches the chart is said by ``into`` and ``merge``;
        without either, only the run's result can tell.

        Parameters
        ----------
        into : str, optional
            State key that gets one `Slot` per branch, in declared order: ``item`` is its id,
            ``value`` what it returned, else what it wrote.
        merge : "keys" or callable, optional
            ``"keys"`` writes what each branch that ended well wrote into the state, and removes
            what it removed; two branches that changed one key are an error. A function takes the
            scope and the slots.
        fail_fast : bool
            Let the first failed branch fail the run; otherwise a failed branch is a failed slot.
        max_concurrency : int
            How many branches with async stages run at once.

        Examples
        --------
        >>> chart = (flow_chart("look", lambda s: s.set("n", 4), id="n")
        ...     .add_fork("Twice", id="twice", merge="keys")
        ...         .branch("half", lambda s: s.set("half", s["n"] / 2))
        ...         .branch("double", lambda s: s.set("double", s["n"] * 2))
        ...         .end().build())
        >>> chart.run_sync().state
        {'n': 4, 'half': 2.0, 'double': 8}
        """
        return BranchesBuilder(
            self,
            ForkStage(
                id=id,
                name=name,
                description=description,
                tags=tags_of(tags),
                into=into,
                merge=merge,
                fail_fast=fail_fast,
                max_concurrency=max_concurrency,
            ),
        )

    def add_subchart(
        self,
        name: str,
        chart: Chart | Callable[[], Chart],
        *,
        id: str,
        inputs: Any = None,
        outputs: Any = None,
        array_merge: str = "concat",
        propagate_stop: bool = False,
        lazy: bool = False,
        parallel: bool = False,
        description: str | None = None,
        tags: Iterable[str] = (),
    ) -> FlowChartBuilder:
        """Add a stage that runs another chart, in a state of its own.

        Parameters
        ----------
        chart : Chart or callable
            A built chart; with ``lazy`` a function that gives it, called when a run first gets
            there.
        inputs : callable or mapping, optional
            Takes the scope and gives what goes in, or names it: ``{"inner name": "key here"}``.
            The inner chart finds it in ``scope.args`` and as ordinary state.
        outputs : callable or mapping, optional
            Takes what the inner chart returned, else its final state, and the scope, and gives
            what comes out; or names it: ``{"key here": "inner key"}``. Lists are put behind those
            that are there, mappings joined one level deep.
        array_merge : {"concat", "replace"}
            What becomes of lists that are there already.
        propagate_stop : bool
            Whether ``scope.stop`` inside ends this chart too; side by side with others, its own
            branch only.
        parallel : bool
            Charts that follow one another so run side by side, as one fork.

        Examples
        --------
        >>> inner = flow_chart("double", lambda s: s.set("out", s["n"] * 2), id="d").build()
        >>> chart = (flow_chart("outer", lambda s: s.set("a", 4), id="a")
        ...     .add_subchart("Double", inner, id="sub", inputs={"n": "a"}, outputs={"b": "out"})
        ...     .build())
        >>> chart.run_sync().state
        {'a': 4, 'b': 8}
        """
        stage = SubchartStage(
            id=id,
            name=name,
            description=description,
            tags=tags_of(tags),
            chart=chart,
            lazy=lazy,
            inputs=inputs,
            outputs=outputs,
            array_merge=array_merge,
            propagate_stop=propagate_stop,
        )
        if parallel and self._loop_to is None:
            self._stages = beside(self._stages, stage)
            return self
        return self._add(stage)

    def loop_to(self, id: str) -> FlowChartBuilder:
        """Go back to an earlier stage when the last one has ended; nothing can follow.

        The run goes on until a stage says ``scope.stop(…)`` or a decider takes a branch that
        goes elsewhere; at most ``Limits(loops=…)`` times.

        Examples
        --------
        >>> def count(scope):
        ...     scope["n"] = scope.get("n", 0) + 1
        ...     if scope["n"] == 3:
        ...         scope.stop("enough")
        >>> flow_chart("count", count, id="count").loop_to("count").build().run_sync().state
        {'n': 3}
        """
        if self._loop_to is not None:
            self._problems.append(second_loop(self._loop_to, id))
        else:
            self._loop_to = id
        return self

    def build(self) -> Chart:
        """Check the chart as a whole and give it.

        Raises
        ------
        ChartError
            With every problem found, each naming the stage it concerns.
        """
        return finished_chart(
            Chart(
                name=self._name,
                stages=tuple(self._stages),
                description=self._description,
                input_schema=self._input_schema,
                output_schema=self._output_schema,
                output=self._output,
                loop_to=self._loop_to,
            ),
            self._problems,
        )
