"""Charts as data: the stages of a procedure in the order they run, and the limits of a run.

Chart layer. A `Chart` is immutable and may be run by many at once; it is made by
`runbook_nb.chart.builder.flow_chart` and knows nothing of any run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import Immutable
from runbook_nb._sync import asks_for_loop, run_sync
from runbook_nb._text import counted
from runbook_nb._value import frozen
from runbook_nb._view import Card
from runbook_nb.chart.limits import Limits as Limits  # noqa: PLC0414 - named here too
from runbook_nb.chart.limits import Retry as Retry  # noqa: PLC0414 - likewise
from runbook_nb.record.structure import Structure

if TYPE_CHECKING:
    from runbook_nb._stop import Stop
    from runbook_nb.chart.streaming import StreamEvent
    from runbook_nb.record.log import Known
    from runbook_nb.record.redact import Redact
    from runbook_nb.record.run import Run
    from runbook_nb.render.flowchart import Flowchart
    from runbook_nb.rules import RuleSet
    from runbook_nb.widgets.explorer import Explorer

#: Branch for subjects that reach no classification.
DECLINED: Final = "declined"

#: Fan-outs inside branches of fan-outs, at most: a run and its views follow them level by level.
MAX_NESTING: Final = 50

#: A stage's function: takes the scope, returns a value or an awaitable.
StageFunction = Callable[..., Any]


@frozen
class Stage:
    """What every kind of stage has: an id, a name, the author's words, how it is tried."""

    id: str
    name: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    retry: Retry | None = None
    blocking: bool = False


@frozen
class FunctionStage(Stage):
    """A stage that runs one function."""

    fn: StageFunction


@frozen
class StreamingStage(FunctionStage):
    """A stage that may give its text piece by piece, by ``scope.stream``."""

    stream: str


@frozen
class PausableStage(FunctionStage):
    """A stage that may end in a question: its function's value, unless that is None.

    The answer goes to ``resume``, in an execution of its own.
    """

    resume: StageFunction


@frozen
class SubchartStage(Stage):
    """A stage that runs another chart in a state of its own.

    ``chart`` is a function that gives the chart where ``lazy``. ``inputs`` and ``outputs`` are
    functions, or mappings of names to names.
    """

    chart: Chart | Callable[[], Chart]
    lazy: bool = False
    inputs: Any = None
    outputs: Any = None
    array_merge: str = "concat"
    propagate_stop: bool = False


@frozen
class Branch:
    """One way out of a decider or selector, or one child of a fork.

    ``route`` is the word that leads to it, ``loop_to`` the stage a decider's branch goes back to.
    """

    route: str
    stage: Stage
    loop_to: str | None = None
    added: bool = False

    @property
    def id(self) -> str:
        """The id of its stage."""
        return self.stage.id

    @property
    def name(self) -> str:
        """The name of its stage."""
        return self.stage.name

    @property
    def description(self) -> str | None:
        """The author's words."""
        return self.stage.description


@frozen
class DeciderStage(Stage):
    """A stage that picks one branch: by a rule set, or by what its function returns."""

    rules: RuleSet | None = None
    judge: StageFunction | None = None
    branches: tuple[Branch, ...] = ()
    default: str | None = None


@frozen
class ForkStage(Stage):
    """A stage that runs all its branches at once, each on a view of its own of the state."""

    branches: tuple[Branch, ...] = ()
    into: str | None = None
    merge: Any = None
    fail_fast: bool = False
    max_concurrency: int = 16


@frozen
class SelectorStage(ForkStage):
    """A fork that runs those branches only that its rules, or its function, select."""

    rules: RuleSet | None = None
    judge: StageFunction | None = None


@frozen
class FanOutStage(Stage):
    """A stage that runs one branch chart per item, at most ``max_branches`` of them."""

    items: Callable[[Any], Any]
    branch: Chart | Callable[[Any, int], Chart]
    max_branches: int
    into: str
    max_concurrency: int = 16
    subject: str | None = None
    fail_fast: bool = False


@frozen
class JudgeEachStage(FanOutStage):
    """A fan-out whose items are rows, each judged by one rule set in a chart of its own.

    What runs it may judge the rows by columns.
    """

    rules: RuleSet


@dataclass(frozen=True, eq=False, repr=False)
class Chart(Immutable, Renderable):
    """A built procedure.

    Attributes
    ----------
    name : str
        The chart's name.
    stages : tuple of Stage
        In the order they run; the branches of a decider belong to it.
    description : str or None
        The author's words.
    input_schema : object or None
        JSON Schema of the run's input, or a pydantic model class.
    output_schema : object or None
        Likewise, of what the run gives.
    output : callable or None
        Makes what the run gives out of the final state.
    loop_to : str or None
        The stage that the run goes back to when the last stage has ended.
    """

    name: str
    stages: tuple[Stage, ...]
    description: str | None = None
    input_schema: Any = field(default=None)
    output_schema: Any = field(default=None)
    output: Callable[[Mapping[str, Any]], Any] | None = None
    loop_to: str | None = None

    @cached_property
    def structure(self) -> Structure:
        """The graph of the chart, the charts inside it included."""
        from runbook_nb.chart.layout import structure_of

        return structure_of(self)

    @cached_property
    def _known(self) -> Known:
        """What runs of the chart share of their records' form; nothing of what they recorded."""
        from runbook_nb.record.log import Known

        return Known()

    @cached_property
    def _forms(self) -> dict[str, Any]:
        """By the path of the mounts around it: what every plan of the chart says (`ChartForm`)."""
        return {}

    @cached_property
    def _declined_ids(self) -> Mapping[str, str]:
        """The id that a ``declined`` branch gets at each decider that declares none."""
        deciders = [stage for stage in self.stages if isinstance(stage, DeciderStage)]
        taken = {stage.id for stage in self.stages}
        taken |= {branch.id for stage in self.stages for branch in branches_of(stage)}
        ids: dict[str, str] = {}
        for stage in deciders:
            if all(branch.route != DECLINED for branch in stage.branches):
                free = DECLINED if DECLINED not in taken else f"{stage.id}.{DECLINED}"
                while free in taken:
                    free += "."
                taken.add(free)
                ids[stage.id] = free
        return ids

    @asks_for_loop
    async def run(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        state: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        redact: Redact | Mapping[str, Any] | None = None,
        signal: Stop | None = None,
        on_stream: Callable[[StreamEvent], Any] | None = None,
        engine: Any = None,
    ) -> Run:
        """Run the chart once.

        Parameters
        ----------
        args : mapping, optional
            The input, held to ``input_schema`` and frozen; stages read it from ``scope.args``.
            With a pydantic model class it is what the model made of it.
        state : mapping, optional
            The state the first stage finds.
        limits : Limits, optional
            What the run may use.
        redact : Redact, optional
            What must not be seen in anything that leaves the run.
        signal : Stop, optional
            Ends the run from outside when set.
        on_stream : callable, optional
            Hears each `StreamEvent`, as it happens and unredacted. What it raises is logged.
        engine : str, Executor or Client, optional
            Where the branches of fan-outs run: ``"inline"``, one after another in place, unless
            given; ``"threads"``; ``"processes"``; any ``concurrent.futures`` executor; the client
            of a dask cluster. The record is the same everywhere.

        Returns
        -------
        Run
            With status ``ok``, or ``paused`` when a stage asked a question.

        Raises
        ------
        Exception
            What a stage raised, unchanged, with the run so far as ``error.run``.
        LimitReached, RunCancelled
            A limit or the signal ended the run; ``error.run`` likewise.
        ChartError
            The input does not fit; nothing has run.

        Examples
        --------
        >>> import asyncio
        >>> from runbook_nb.chart.builder import flow_chart
        >>> chart = flow_chart("hello", lambda s: s.args["who"].upper(), id="greet").build()
        >>> asyncio.run(chart.run({"who": "ops"})).result
        'OPS'
        """
        from runbook_nb.chart.executor import execute

        return await execute(
            self,
            args,
            state=state,
            limits=limits,
            redact=redact,
            signal=signal,
            on_stream=on_stream,
            engine=engine,
        )

    def run_sync(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        state: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        redact: Redact | Mapping[str, Any] | None = None,
        signal: Stop | None = None,
        on_stream: Callable[[StreamEvent], Any] | None = None,
        engine: Any = None,
    ) -> Run:
        """Run the chart from synchronous code, also inside a running event loop; see `run`."""
        return run_sync(
            lambda: self.run(
                args,
                state=state,
                limits=limits,
                redact=redact,
                signal=signal,
                on_stream=on_stream,
                engine=engine,
            )
        )

    @asks_for_loop
    async def resume(
        self,
        checkpoint: Mapping[str, Any],
        answer: Any = None,
        *,
        limits: Limits | None = None,
        redact: Redact | Mapping[str, Any] | None = None,
        signal: Stop | None = None,
        on_stream: Callable[[StreamEvent], Any] | None = None,
        engine: Any = None,
    ) -> Run:
        """Go on with a run that paused, in this process or another.

        Parameters
        ----------
        checkpoint : mapping
            ``run.checkpoint`` of the paused run, also after a trip through JSON.
        answer : object
            The answer to its question, as plain data.
        limits, redact, signal, on_stream, engine
            As for `run`; a checkpoint carries none of them.

        Returns
        -------
        Run
            Of both parts: its walk begins where the first run began.

        Raises
        ------
        CheckpointError
            The checkpoint is damaged, or is of another chart; nothing has run.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> from runbook_nb.chart.scope import interrupt
        >>> chart = flow_chart("gate", lambda s: interrupt(s, "restart?"), id="ask").build()
        >>> run = chart.run_sync()
        >>> run.status, chart.resume_sync(run.checkpoint, "yes").result
        ('paused', 'yes')
        """
        from runbook_nb.chart.executor import go_on

        return await go_on(
            self,
            checkpoint,
            answer,
            limits=limits,
            redact=redact,
            signal=signal,
            on_stream=on_stream,
            engine=engine,
        )

    def resume_sync(
        self,
        checkpoint: Mapping[str, Any],
        answer: Any = None,
        *,
        limits: Limits | None = None,
        redact: Redact | Mapping[str, Any] | None = None,
        signal: Stop | None = None,
        on_stream: Callable[[StreamEvent], Any] | None = None,
        engine: Any = None,
    ) -> Run:
        """Go on with a paused run from synchronous code; see `resume`."""
        return run_sync(
            lambda: self.resume(
                checkpoint,
                answer,
                limits=limits,
                redact=redact,
                signal=signal,
                on_stream=on_stream,
                engine=engine,
            )
        )

    def describe(self) -> str:
        """Say in words what the chart does, stage by stage, for a reader or a model."""
        from runbook_nb.chart.describe import describe_chart

        return describe_chart(self)

    def tool_description(self) -> dict[str, Any]:
        r"""Give what a model is told of the chart as a tool: ``{name, description, inputSchema}``.

        The name is made of the id of the first stage, the description is `describe`. Each call
        gives a copy of its own, as plain JSON.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> tool = flow_chart("Backups", print, id="read backups").build().tool_description()
        >>> tool["name"], tool["description"]
        ('read_backups', 'Backups\n1. Backups')
        """
        from runbook_nb.chart.contract import tool_description

        return tool_description(self)

    def openapi(
        self,
        *,
        title: str | None = None,
        version: str = "1.0.0",
        description: str | None = None,
        path: str | None = None,
    ) -> dict[str, Any]:
        """Give the chart as an OpenAPI 3.1 document with one path, as plain JSON.

        The request is what ``input_schema`` declares, the answer what ``output_schema`` does;
        errors are described as those of this package are. Serving it is the caller's.

        Parameters
        ----------
        title : str, optional
            By default the chart's name.
        version : str
            The version of what is described.
        description : str, optional
            What it is for; by default the chart's own description. It is text, not Markdown.
        path : str, optional
            By default made of the id of the first stage.

        Raises
        ------
        DefinitionError
            An option cannot stand in such a document.
        ChartError
            A model of the contract has no JSON Schema.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> document = flow_chart("Backups", print, id="read backups").build().openapi()
        >>> document["openapi"], list(document["paths"])
        ('3.1.0', ['/read-backups'])
        """
        from runbook_nb.chart.openapi import openapi

        return openapi(self, title=title, version=version, description=description, path=path)

    def mermaid(self) -> str:
        """Draw the chart as Mermaid text, for Markdown that draws it.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> print(flow_chart("tiny", print, id="a", stage_name="Say").build().mermaid())
        flowchart TB
          n1("Say")
        """
        return self.flowchart().mermaid

    def flowchart(self) -> Flowchart:
        """Draw the chart, rules beside the edges; has ``.svg``, ``.dot`` and ``.mermaid``."""
        chart: Flowchart = through("flowchart", self.view())
        return chart

    def explore(self) -> Explorer:
        """Go through what could happen, node by node; a widget."""
        explorer: Explorer = through("explore", self)
        return explorer

    def view(self) -> Card:
        """Show the chart: its structure under its own name."""
        from runbook_nb.chart.layout import rules_by_key

        inner = self.structure.view(dict(rules_by_key(self, "")))
        return Card(
            kind="Chart",
            name=self.name,
            headline=counted(len(self.stages), "stage"),
            sections=inner.sections,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            Chart,
            (
                self.name,
                self.stages,
                self.description,
                self.input_schema,
                self.output_schema,
                self.output,
                self.loop_to,
            ),
        )


def branches_of(stage: Stage) -> tuple[Branch, ...]:
    """Give the branches of a decider, a selector or a fork; nothing for other stages."""
    return stage.branches if isinstance(stage, DeciderStage | ForkStage) else ()


def rules_of(stage: Stage) -> RuleSet | None:
    """Give the rule set a decider or selector declares."""
    return stage.rules if isinstance(stage, DeciderStage | SelectorStage) else None


def inner_chart(stage: Stage) -> Chart | None:
    """Give the chart inside a stage, where it is known before a run."""
    inner: Any = None
    if isinstance(stage, SubchartStage):
        inner = stage.chart
    elif isinstance(stage, FanOutStage):
        inner = stage.branch
    return inner if isinstance(inner, Chart) else None
