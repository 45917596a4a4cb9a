"""A chart made ready for one log: each stage with the codes it appends, looked up once.

Chart layer. One plan serves every branch that runs the same chart. Charts that a factory makes
per item each get a plan, but the codes are interned by what they say, so equal charts share
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runbook_nb.chart.layout import kind_of
from runbook_nb.chart.model import (
    Branch,
    Chart,
    DeciderStage,
    FunctionStage,
    Stage,
    StreamingStage,
    SubchartStage,
    branches_of,
    rules_of,
)
from runbook_nb.errors import ChartError
from runbook_nb.record.log import Log, StageRef, code_of

#: What is done with a stage: its function is called, it decides, it mounts a chart; else 0.
CALLS: Final = 1
DECIDES: Final = 2
MOUNTS: Final = 3

#: How many layouts of mappings written whole a stage keeps the codes of.
_MOST_LAYOUTS: Final = 64

#: At how many places in others a chart keeps its form: some are mounted by ever new names.
_MOST_PLACES: Final = 64

_FORMS: Final = {FunctionStage: CALLS, DeciderStage: DECIDES, SubchartStage: MOUNTS}


class _KeyCodes(dict[str, int]):
    """Codes of one kind in one stage, by key; a key met for the first time is interned."""

    __slots__ = ("_kind", "_log", "_ref")

    def __init__(self, plan: StagePlan, kind: str) -> None:
        self._log, self._ref, self._kind = plan.log, plan.ref, kind

    def __missing__(self, key: Any) -> int:
        if key.__class__ is not str:
            _check_key(key, self._ref)
        found = self[key] = self._log.number(code_of((self._kind, self._ref, key, None)))
        return found


def _check_key(key: Any, ref: StageRef) -> None:
    if not isinstance(key, str):
        raise ChartError(
            f"stage {ref.name!r} used {key!r} as a state key or event name; those are texts",
            where=ref.id,
        )


class StageForm:
    """What is said of one stage whatever log it runs for, worked out once for its chart."""

    __slots__ = (
        "branches",
        "code",
        "default",
        "fn",
        "has_functions",
        "kind",
        "loop_to",
        "plain",
        "ref",
        "stage",
    )

    def __init__(self, stage: Stage, path: str, branch: Branch | None = None) -> None:
        self.stage = stage
        kind = kind_of(stage)
        if branch is not None and kind in _PLAIN:
            kind = "branch"
        self.ref = StageRef(stage.id, stage.name, kind, path)
        self.code = code_of(("stage", self.ref, None, None))
        self.loop_to = None if branch is None else branch.loop_to
        self.kind = _FORMS.get(type(stage), 0)
        self.plain = not (stage.blocking or stage.retry or isinstance(stage, StreamingStage))
        self.fn = stage.fn if isinstance(stage, FunctionStage) else None
        self.branches = {one.route: StageForm(one.stage, path, one) for one in branches_of(stage)}
        self.default = stage.default if isinstance(stage, DeciderStage) else None
        rules = rules_of(stage)
        self.has_functions = rules is not None and any(not r.is_filter for r in rules.rules)


class ChartForm:
    """What is said of a chart whatever log it runs for: its stages, and how they follow."""

    __slots__ = ("loops", "places", "stages")

    def __init__(self, chart: Chart, path: str) -> None:
        self.stages = tuple([StageForm(stage, path) for stage in chart.stages])
        self.places = {form.stage.id: place for place, form in enumerate(self.stages)}
        self.loops = chart.loop_to is not None or any(
            one.loop_to is not None for form in self.stages for one in form.branches.values()
        )


class StagePlan:
    """One stage ready to run, in the chart it belongs to.

    Most stages use little of what a stage can have: see `_LATER`.
    """

    __slots__ = (
        "_inner",
        "args_code",
        "branches",
        "chart",
        "decisions",
        "default",
        "fn",
        "form",
        "has_functions",
        "judged",
        "judging",
        "layouts",
        "log",
        "loop_to",
        "plain",
        "read_codes",
        "ref",
        "stage",
        "stage_code",
        "ways",
        "write_codes",
    )

    #: The code of having looked at the input, and by key those of reading and writing.
    args_code: int
    read_codes: _KeyCodes
    write_codes: _KeyCodes
    #: The keys of a mapping written whole -> the codes of those writes.
    layouts: dict[tuple[Any, ...], tuple[int, ...]]
    #: Decision path -> the codes a decision by it appends: its reads, then itself.
    decisions: dict[Any, tuple[int, ...]]
    judged: dict[Any, int]
    #: Where the decisions of a decider lead, as `straight` keeps them.
    ways: dict[Any, Any]

    def __init__(self, form: StageForm, log: Log, chart: Chart) -> None:
        #: Of the class that its kind says; the engine asks before it uses what only one class has.
        self.stage: Any = form.stage
        self.chart = chart
        self.log = log
        self._inner: ChartPlan | None = None
        self.ref = form.ref
        self.loop_to = form.loop_to
        self.stage_code = log.number(form.code)
        #: What is done with it, as `run_chart` tells stages apart.
        self.form = form.kind
        #: Whether it runs once, here and now, and says nothing meanwhile.
        self.plain = form.plain
        #: The compiled rules of a decider, where `straight` judges by them.
        self.judging: Any = None
        self.fn: Any = form.fn
        self.default = form.default
        self.has_functions = form.has_functions
        self.branches: dict[str, StagePlan] = {
            route: StagePlan(one, log, chart) for route, one in form.branches.items()
        }

    def __getattr__(self, name: str) -> Any:
        # Only what was not set comes here.
        if name not in _LATER:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made = _LATER[name](self)
        setattr(self, name, made)
        return made

    def code(self, kind: str, key: str | None = None) -> int:
        """Intern a code of this stage."""
        if key is not None:
            _check_key(key, self.ref)
        return self.log.number(code_of((kind, self.ref, key, None)))

    def layout_codes(self, keys: tuple[Any, ...]) -> tuple[int, ...] | None:
        """Give the codes of writing these keys, the same as key by key; None where they are not."""
        if not all(key.__class__ is str for key in keys):
            return None
        codes = tuple([self.write_codes[key] for key in keys])
        if len(self.layouts) < _MOST_LAYOUTS:
            self.layouts[keys] = codes
        return codes

    def decision_codes(self, path: Any) -> tuple[int, ...]:
        """Give the codes of a decision that the engine itself made: what it read, then it."""
        found = self.decisions.get(path)
        if found is None:
            reads = [self.read_codes[key] for key in path.keys]
            found = self.decisions[path] = (*reads, self.decision_code(path))
        return found

    def decision_code(self, path: Any) -> int:
        """Give the code of a decision whose reads were recorded when they were made."""
        found = self.judged.get(path)
        if found is None:
            kind = "selection" if self.ref.kind == "selector" else "decision"
            code = code_of((kind, self.ref, None, self.log.same_path(path)))
            found = self.judged[path] = self.log.number(code)
        return found

    def add_branch(self, branch: Branch) -> StagePlan:
        """Add a branch that the chart did not declare, for this run."""
        form = StageForm(branch.stage, self.ref.path, branch)
        plan = StagePlan(form, self.log, self.chart)
        self.branches[branch.route] = plan
        return plan

    def inner(self, make: Any) -> ChartPlan:
        """Give the plan of the chart mounted here; ``make`` gives the chart when first asked."""
        if self._inner is None:
            self._inner = ChartPlan(make(), self.log, f"{self.ref.key}/")
        return self._inner


#: What a stage has from when it is first asked for it: a chart may be made ready for each item.
_LATER: Final[dict[str, Callable[[StagePlan], Any]]] = {
    "args_code": lambda plan: plan.code("args"),
    "read_codes": lambda plan: _KeyCodes(plan, "read"),
    "write_codes": lambda plan: _KeyCodes(plan, "write"),
    **dict.fromkeys(("layouts", "decisions", "judged", "ways"), lambda plan: {}),
}


#: Kinds that a branch's own kind says nothing about.
_PLAIN: Final = ("stage", "streaming", "pausable")


class ChartPlan:
    """A chart ready to run: its stages, where each stands, and where its end leads back to."""

    __slots__ = ("chart", "last", "loop_to", "loops", "places", "stages")

    def __init__(self, chart: Chart, log: Log, path: str = "") -> None:
        form: ChartForm | None = chart._forms.get(path)
        if form is None:
            form = ChartForm(chart, path)
            if len(chart._forms) < _MOST_PLACES:
                chart._forms[path] = form
        self.chart = chart
        self.loop_to = chart.loop_to
        self.stages = tuple([StagePlan(stage, log, chart) for stage in form.stages])
        self.last = len(self.stages) - 1
        self.places = form.places
        self.loops = form.loops


def plan_chart(chart: Chart, log: Log) -> ChartPlan:
    """Make a chart ready for a log.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> plan = plan_chart(flow_chart("c", print, id="a").build(), Log())
    >>> plan.stages[0].ref
    StageRef(id='a', name='c', kind='stage', path='')
    """
    return ChartPlan(chart, log)


def plan_alone(plan: StagePlan) -> ChartPlan:
    """Give one stage as a chart of its own: the child of a fork."""
    alone = ChartPlan.__new__(ChartPlan)
    alone.chart = plan.chart
    alone.loop_to = None
    alone.stages, alone.last = (plan,), 0
    alone.places = {}
    alone.loops = False
    return alone
