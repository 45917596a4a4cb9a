"""How far a running run has come, for whoever wants to look; the run itself tells nobody.

Chart layer. What a run appends to its record says where it is, so it is looked at from outside,
as often as the one who looks likes, from any thread. Nothing is told per stage or per branch, and
a run nobody looks at does no work for it. Who looks is `runbook_nb.chart.onlookers`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from runbook_nb._display import Renderable
from runbook_nb._text import counted
from runbook_nb._value import frozen
from runbook_nb._view import Badge, Card, Cell, Column, Data, Role, Section, Table
from runbook_nb.record.log import FAILED, OK, FanOut

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution
    from runbook_nb.record.log import StageRef

#: Stages a view shows; around the present one, where there are more.
MAX_SHOWN: Final = 12

StepState = Literal["completed", "current", "pending", "skipped"]

_ENDED: Final = {
    "running": "running",
    "ok": "finished",
    "failed": "failed",
    "cancelled": "stopped",
    "limited": "stopped at a limit",
    "paused": "waiting for an answer",
    "absent": "finished, nothing found",
}


@frozen(kw_only=False)
class StepProgress:
    """How far one stage of a chart has come.

    Attributes
    ----------
    name : str
    state : {"completed", "current", "pending", "skipped"}
    done, total : int or None
        Branches that ended and branches there are, in a stage that has any.
    failed : int
        How many of those that ended have failed.
    """

    name: str
    state: StepState
    done: int | None = None
    total: int | None = None
    failed: int = 0


@frozen(kw_only=False, repr=False)
class Progress(Renderable):
    """How far a run has come.

    Attributes
    ----------
    name : str
        The chart.
    status : str
        ``"running"``, or how the run ended.
    steps : tuple of StepProgress
        The chart's own stages, in order.
    inside : str or None
        The stage that runs now, where it lies inside the present one.
    """

    name: str
    status: str
    steps: tuple[StepProgress, ...]
    inside: str | None = None

    @property
    def at(self) -> int:
        """The place of the present stage, or of the last that ran; -1 before the first."""
        ran = [n for n, step in enumerate(self.steps) if step.state in ("current", "completed")]
        now = [n for n, step in enumerate(self.steps) if step.state == "current"]
        return now[0] if now else max(ran, default=-1)

    @property
    def said(self) -> str:
        """The same in one line.

        Examples
        --------
        >>> steps = StepProgress("load", "completed"), StepProgress("each", "current", 3, 12)
        >>> Progress("ages", "running", steps).said
        'stage 2 of 2, each, 3 of 12'
        """
        if self.at < 0:
            return f"{counted(len(self.steps), 'stage')} to come"
        step, stages = self.steps[self.at], counted(len(self.steps), "stage")
        if self.status in ("ok", "absent"):
            step = max(self.steps, key=lambda one: one.total or 0)
            parts = [stages, *([f"{_branches(step)} in {step.name}"] if step.total else [])]
            return ", ".join(parts)
        parts = [f"stage {self.at + 1} of {len(self.steps)}", step.name]
        if step.total is not None:
            parts.append(_branches(step))
        elif self.inside is not None and self.status == "running":
            parts.append(f"in {self.inside}")
        return ", ".join(parts)

    @property
    def steps_shown(self) -> tuple[StepProgress, ...]:
        """The stages a view shows: all, or those around the present one."""
        first = max(0, min(self.at - MAX_SHOWN // 2, len(self.steps) - MAX_SHOWN))
        return self.steps[first : first + MAX_SHOWN]

    def view(self) -> Card:
        """Show the stages, those around the present one where there are many."""
        table = Table(
            columns=(Column(head=""), Column(head="stage"), Column(head="branches")),
            rows=tuple(_row(step) for step in self.steps_shown),
            total=len(self.steps),
            whole=True,
        )
        return Card(
            kind="Run",
            name=self.name,
            state=_ENDED.get(self.status, self.status),
            headline=self.said,
            heading=self.said[:1].upper() + self.said[1:],
            sections=(Section(label="", parts=(table,), in_text=False),),
        )


def _branches(step: StepProgress) -> str:
    said = f"{step.done} of {step.total}"
    return f"{said}, {step.failed} failed" if step.failed else said


_ROLES: Final[dict[StepState, Role]] = {
    "completed": "completed",
    "current": "current",
    "pending": "pending",
    "skipped": "skipped",
}


def _row(step: StepProgress) -> tuple[Cell, ...]:
    word = "running" if step.state == "current" else step.state
    branches: Cell = ""
    if step.total is not None:
        branches = f"{step.done} of {step.total}"
        if step.failed:
            branches = (branches, Badge(word="failed", role="failed", count=step.failed))
    return Badge(word=word, role=_ROLES[step.state]), Data(value=step.name), branches


class Look:
    """Looks at one run; may be called at any time and from any thread.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> from runbook_nb.chart.onlookers import observing
    >>> seen = []
    >>> def load(scope):
    ...     seen.append(look[0]().said)
    >>> look = []
    >>> with observing(lambda found: look.append(found) or (lambda status: None)):
    ...     run = flow_chart("ages", load, id="load").build().run_sync()
    >>> seen
    ['stage 1 of 1, ages']
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        chart = execution.chart
        self._text: Callable[[str], str] = str
        if execution.policy is not None:
            from runbook_nb.record.redact import Redactor

            self._text = Redactor(execution.policy).text
        self._names = [self._text(stage.name) for stage in chart.stages]
        self._places = {stage.id: place for place, stage in enumerate(chart.stages)}
        #: The chart's own stages that ran, and the last branches of those that had any.
        self._visited: set[int] = set()
        self._fans: dict[int, FanOut] = {}
        #: How many codes and values were read.
        self._read = (0, 0)
        #: The place of the present stage, and the stage that ran last at any depth.
        self._at = -1
        self._last: StageRef | None = None
        self._kept = Progress(self._text(chart.name), "running", self._steps(False))

    def __call__(self, status: str = "running") -> Progress:
        """Give how far it has come; with a status, how far it came."""
        try:
            self._read_on()
            steps = self._steps(status in ("ok", "absent"))
        except Exception:  # it was changed just as it was looked at: a moment ago is as good
            return Progress(self._kept.name, status, self._kept.steps, self._kept.inside)
        last = self._last
        inside = None
        if last is not None and last.key not in self._places:
            inside = self._text(last.name)
        self._kept = Progress(self._kept.name, status, steps, inside)
        return self._kept

    def _read_on(self) -> None:
        """Read what was recorded since."""
        log = self._execution.log
        codes, values, known = log.root.codes, log.root.values, log.codes
        ends = len(codes), len(values)
        # Of a stage that asked some codes are taken back.
        first, value = (min(pair) for pair in zip(self._read, ends, strict=True))
        for code in codes[first : ends[0]]:
            kind, ref = known[code][:2]
            if kind == "stage":
                self._last = ref
                place = self._places.get(ref.key)
                if place is not None:
                    self._visited.add(place)
                    self._at = place
        for found in values[value : ends[1]]:
            if isinstance(found, FanOut) and found.stage.key in self._places:
                self._fans[self._places[found.stage.key]] = found
        self._read = ends

    def _steps(self, ended: bool) -> tuple[StepProgress, ...]:
        return tuple(
            self._step(place, name, self._fans.get(place), ended)
            for place, name in enumerate(self._names)
        )

    def _step(self, place: int, name: str, fan: FanOut | None, ended: bool) -> StepProgress:
        state: StepState = "pending"
        if place in self._visited and (ended or place < self._at):
            state = "completed"
        elif place < self._at or ended:
            state = "skipped"
        elif place == self._at:
            state = "current"
        if fan is None:
            return StepProgress(name, state)
        failed = fan.status_count(FAILED)
        done = fan.status_count(OK) + failed
        return StepProgress(name, state, done, min(len(fan), fan.cap), failed)
