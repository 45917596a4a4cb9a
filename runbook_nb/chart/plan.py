"""A chart made ready for one log: each stage with the codes it appends, looked up once.

Chart layer. One plan serves every branch that runs the same chart. Charts that a factory makes
per item each get a plan, but the codes are interned by what they say, so equal charts share
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runbook_nb.chart.model import Branch, Chart, DeciderStage, FanOutStage, FunctionStage, Stage
from runbook_nb.errors import ChartError
from runbook_nb.record.log import Code, Log, StageRef


class _KeyCodes(dict[str, int]):
    """Codes of one kind in one stage, by key; a key met for the first time is interned."""

    __slots__ = ("_kind", "_log", "_ref")

    def __init__(self, log: Log, ref: StageRef, kind: str) -> None:
        super().__init__()
        self._log, self._ref, self._kind = log, ref, kind

    def __missing__(self, key: Any) -> int:
        _check_key(key, self._ref)
        found = self[key] = self._log.number(Code(self._kind, self._ref, key))
        return found


def _check_key(key: Any, ref: StageRef) -> None:
    if not isinstance(key, str):
        raise ChartError(
            f"stage {ref.name!r} used {key!r} as a state key or event name; those are texts",
            where=ref.id,
        )


class StagePlan:
    """One stage ready to run."""

    __slots__ = (
        "_log",
        "branches",
        "chart",
        "decisions",
        "default",
        "fn",
        "has_functions",
        "judged",
        "read_codes",
        "ref",
        "stage",
        "stage_code",
        "write_codes",
    )

    def __init__(self, stage: Stage, log: Log, chart: Chart) -> None:
        self.stage = stage
        self.chart = chart
        self._log = log
        kind = _KINDS.get(type(stage), "stage")
        self.ref = StageRef(stage.id, stage.name, kind)
        self.stage_code = log.number(Code("stage", self.ref))
        self.read_codes = _KeyCodes(log, self.ref, "read")
        self.write_codes = _KeyCodes(log, self.ref, "write")
        self.fn = stage.fn if isinstance(stage, FunctionStage) else None
        #: Decision path -> the codes a decision by it appends: its reads, then itself.
        self.decisions: dict[Any, tuple[int, ...]] = {}
        self.judged: dict[Any, int] = {}
        self.branches: dict[str, StagePlan] = {}
        self.default: str | None = None
        self.has_functions = False
        if isinstance(stage, DeciderStage):
            self.branches = {b.route: StagePlan(b, log, chart) for b in stage.branches}
            self.default = stage.default
            rules = () if stage.rules is None else stage.rules.rules
            self.has_functions = any(not rule.is_filter for rule in rules)

    def code(self, kind: str, key: str | None = None) -> int:
        """Intern a code of this stage."""
        if key is not None:
            _check_key(key, self.ref)
        return self._log.number(Code(kind, self.ref, key))

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
            code = Code("decision", self.ref, None, self._log.same_path(path))
            found = self.judged[path] = self._log.number(code)
        return found

    def add_branch(self, branch: Branch) -> StagePlan:
        """Add a branch that the chart did not declare, for this run."""
        plan = self.branches[branch.route] = StagePlan(branch, self._log, self.chart)
        return plan


_KINDS: dict[type, str] = {DeciderStage: "decider", FanOutStage: "fan_out", Branch: "branch"}


def plan_chart(chart: Chart, log: Log) -> Sequence[StagePlan]:
    """Make a chart ready for a log.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> plan = plan_chart(flow_chart("c", print, id="a").build(), Log())
    >>> plan[0].ref
    StageRef(id='a', name='c', kind='stage')
    """
    return tuple(StagePlan(stage, log, chart) for stage in chart.stages)
