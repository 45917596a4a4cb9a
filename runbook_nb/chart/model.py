"""Charts as data: the stages of a procedure in the order they run, and the limits of a run.

Chart layer. A `Chart` is immutable and may be run by many at once; it is made by
`runbook_nb.chart.builder.flow_chart` and knows nothing of any run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted
from runbook_nb._view import Card
from runbook_nb.errors import ChartError
from runbook_nb.record.structure import Structure, StructureEdge, StructureNode

if TYPE_CHECKING:
    from runbook_nb._stop import Stop
    from runbook_nb.record.redact import Redact
    from runbook_nb.record.run import Run
    from runbook_nb.render.flowchart import Flowchart
    from runbook_nb.rules import RuleSet

#: Branch for subjects that reach no classification.
DECLINED: Final = "declined"

#: Fan-outs inside branches of fan-outs, at most: a run and its views follow them level by level.
MAX_NESTING: Final = 50

#: A stage's function: takes the scope, returns a value or an awaitable.
StageFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a stage is tried, and when again.

    Attributes
    ----------
    attempts : int
        Total number of runs, at least 1.
    backoff : float or callable
        Seconds to wait before the next attempt, or a function of the number of failed attempts.
    on : tuple of exception types, or callable
        Which errors are worth another attempt. Cancellation, limits and pauses never are.

    Examples
    --------
    >>> Retry(3, backoff=0.5, on=(TimeoutError,)).attempts
    3
    """

    attempts: int
    backoff: float | Callable[[int], float] = 0.0
    on: tuple[type[Exception], ...] | Callable[[Exception], bool] = (Exception,)

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise ChartError(
                f"Retry(attempts={self.attempts!r}) is not a whole number from 1",
                where="retry.attempts",
                fix="attempts counts every run of the stage, the first included",
            )
        backoff: Any = self.backoff
        if not callable(backoff) and not (
            isinstance(backoff, int | float) and 0 <= backoff < float("inf")
        ):
            raise ChartError(
                f"Retry(backoff={self.backoff!r}) is neither seconds nor a function",
                where="retry.backoff",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use.

    Limits act between stages, and end an awaited stage in the middle; the error names the stage
    that was running.

    Attributes
    ----------
    seconds : float or None
        For the whole run.
    stage_seconds : float or None
        For one execution of one stage.

    Examples
    --------
    >>> Limits(seconds=30).seconds
    30
    """

    seconds: float | None = None
    stage_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "stage_seconds"):
            value: Any = getattr(self, name)
            if value is not None and not (
                isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            ):
                raise ChartError(
                    f"Limits({name}={value!r}) is not a positive number of seconds", where=name
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What every kind of stage has: an id, a name, the author's words, how it is tried."""

    id: str
    name: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    retry: Retry | None = None
    blocking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionStage(Stage):
    """A stage that runs one function."""

    fn: StageFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(FunctionStage):
    """One way out of a decider: a stage and the word that routes to it."""

    route: str
    added: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderStage(Stage):
    """A stage that picks one branch: by a rule set, or by what its function returns."""

    rules: RuleSet | None = None
    judge: StageFunction | None = None
    branches: tuple[Branch, ...] = ()
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutStage(Stage):
    """A stage that runs one branch chart per item, at most ``max_branches`` of them."""

    items: Callable[[Any], Any]
    branch: Chart | Callable[[Any, int], Chart]
    max_branches: int
    into: str
    max_concurrency: int = 16
    subject: str | None = None
    fail_fast: bool = False


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
    """

    name: str
    stages: tuple[Stage, ...]
    description: str | None = None
    input_schema: Any = field(default=None)

    @cached_property
    def structure(self) -> Structure:
        """The graph of the chart, branch templates included."""
        nodes: list[StructureNode] = []
        edges: list[StructureEdge] = []
        groups: list[tuple[str, tuple[str, ...]]] = []
        add_structure(self, "", nodes, edges, groups)
        return Structure(
            name=self.name, nodes=tuple(nodes), edges=tuple(edges), groups=tuple(groups)
        )

    @cached_property
    def _declined_ids(self) -> Mapping[str, str]:
        """The id that a ``declined`` branch gets at each decider that declares none."""
        deciders = [stage for stage in self.stages if isinstance(stage, DeciderStage)]
        taken = {stage.id for stage in self.stages}
        taken |= {branch.id for stage in deciders for branch in stage.branches}
        ids: dict[str, str] = {}
        for stage in deciders:
            if all(branch.route != DECLINED for branch in stage.branches):
                free = DECLINED if DECLINED not in taken else f"{stage.id}.{DECLINED}"
                while free in taken:
                    free += "."
                taken.add(free)
                ids[stage.id] = free
        return ids

    async def run(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        redact: Redact | Mapping[str, Any] | None = None,
        signal: Stop | None = None,
    ) -> Run:
        """Run the chart once.

        Parameters
        ----------
        args : mapping, optional
            The input, held to ``input_schema`` and frozen; stages read it from ``scope.args``.
            With a pydantic model class it is what the model made of it.
        limits : Limits, optional
            Time the run may take.
        redact : Redact, optional
            What must not be seen in anything that leaves the run.
        signal : Stop, optional
            Ends the run from outside when set.

        Returns
        -------
        Run
            With status ``ok``, or ``paused`` when a stage called `interrupt`.

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

        return await execute(self, args, limits=limits, redact=redact, signal=signal)

    def run_sync(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        redact: Redact | Mapping[str, Any] | None = None,
        signal: Stop | None = None,
    ) -> Run:
        """Run the chart from synchronous code, also inside a running event loop; see `run`."""
        from runbook_nb._sync import run_sync

        return run_sync(lambda: self.run(args, limits=limits, redact=redact, signal=signal))

    def describe(self) -> str:
        """Say in words what the chart does, stage by stage, for a reader or a model."""
        from runbook_nb.chart.describe import describe_chart

        return describe_chart(self)

    def flowchart(self) -> Flowchart:
        """Draw the chart, rules beside the edges; has ``.svg``, ``.dot`` and ``.mermaid``."""
        chart: Flowchart = through("flowchart", self.view())
        return chart

    def view(self) -> Card:
        """Show the chart: its structure under its own name."""
        inner = self.structure.view(dict(rules_by_key(self, "")))
        return Card(
            kind="Chart",
            name=self.name,
            headline=counted(len(self.stages), "stage"),
            sections=inner.sections,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (Chart, (self.name, self.stages, self.description, self.input_schema))


def rules_by_key(chart: Chart, path: str) -> Iterator[tuple[str, RuleSet]]:
    """Yield the rule set of every decider that declares one, by its key in the structure."""
    for stage in chart.stages:
        if isinstance(stage, DeciderStage) and stage.rules is not None:
            yield f"{path}{stage.id}", stage.rules
        elif isinstance(stage, FanOutStage) and isinstance(stage.branch, Chart):
            yield from rules_by_key(stage.branch, f"{path}{stage.id}/")


def add_structure(
    chart: Chart,
    path: str,
    nodes: list[StructureNode],
    edges: list[StructureEdge],
    groups: list[tuple[str, tuple[str, ...]]],
) -> tuple[str, list[str]]:
    """Add a chart's nodes and edges; give the key of its first stage and the keys it ends in."""
    ends: list[str] = []
    first = ""
    for stage in chart.stages:
        key = f"{path}{stage.id}"
        first = first or key
        edges.extend(StructureEdge(source=end, target=key, kind="next") for end in ends)
        if isinstance(stage, DeciderStage):
            ends = _add_decider(stage, key, path, nodes, edges)
        elif isinstance(stage, FanOutStage):
            ends = _add_fan_out(stage, key, nodes, edges, groups)
        else:
            nodes.append(_node(stage, key, "stage"))
            ends = [key]
    return first, ends


def _node(stage: Stage, key: str, kind: Any, **more: Any) -> StructureNode:
    return StructureNode(
        key=key,
        id=stage.id,
        name=stage.name,
        kind=kind,
        description=stage.description,
        tags=stage.tags,
        **more,
    )


def _add_decider(
    stage: DeciderStage,
    key: str,
    path: str,
    nodes: list[StructureNode],
    edges: list[StructureEdge],
) -> list[str]:
    detail = {} if stage.rules is None else {"rules": f"{stage.rules.name} {stage.rules.version}"}
    nodes.append(_node(stage, key, "decider", detail=detail))
    default = default_route(stage)
    ends = []
    for branch in stage.branches:
        branch_key = f"{path}{branch.id}"
        nodes.append(
            _node(
                branch, branch_key, "branch", branch=branch.route, decider=key, added=branch.added
            )
        )
        kind: Any = "default" if branch.route == default else "branch"
        edges.append(StructureEdge(source=key, target=branch_key, kind=kind, label=branch.route))
        ends.append(branch_key)
    return ends


def default_route(stage: DeciderStage) -> str | None:
    """Name the branch a decider takes when nothing else matched: its rule set's, else its own."""
    if stage.rules is not None and stage.rules.default is not None:
        return stage.rules.default.branch
    return stage.default


def _add_fan_out(
    stage: FanOutStage,
    key: str,
    nodes: list[StructureNode],
    edges: list[StructureEdge],
    groups: list[tuple[str, tuple[str, ...]]],
) -> list[str]:
    built = isinstance(stage.branch, Chart)
    nodes.append(
        _node(
            stage,
            key,
            "fan_out",
            detail={
                "into": stage.into,
                "cap": stage.max_branches,
                "max_concurrency": stage.max_concurrency,
                **({"subject": stage.subject} if stage.subject is not None else {}),
                "template": "built" if built else "unknown",
            },
        )
    )
    if not isinstance(stage.branch, Chart):
        return [key]
    inner_nodes: list[StructureNode] = []
    first, ends = add_structure(stage.branch, f"{key}/", inner_nodes, edges, groups)
    nodes.extend(inner_nodes)
    groups.append((key, tuple(node.key for node in inner_nodes)))
    edges.append(StructureEdge(source=key, target=first, kind="fan_out"))
    return ends


def as_items(found: Any, stage: Stage) -> Sequence[Any]:
    """Read what a fan-out's ``items`` gave: a list, a tuple or slots; None is no item.

    Raises
    ------
    ChartError
        Anything else, naming the stage.
    """
    from runbook_nb.record.slots import Slots

    if found is None:
        return ()
    if isinstance(found, list | tuple | Slots):
        return found
    raise ChartError(
        f"items of fan-out {stage.name!r} gave {type(found).__name__}, not a list",
        where=stage.id,
        code="bad_items",
        fix="return a list of items; a DataFrame goes in as frame.to_dict('records')",
    )
