"""Going on after a pause: where a run stands, said as data, and stood up again from data.

Chart layer. A stage that asked in its middle runs again from its top, so what it had written is
taken back when it asks; what it read and emitted stays on the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import FrozenDict
from runbook_nb.chart.model import PausableStage, SubchartStage
from runbook_nb.chart.plan import ChartPlan, StagePlan
from runbook_nb.chart.scope import Frame, InterruptSignal, question_part
from runbook_nb.errors import CheckpointError
from runbook_nb.record.log import Log
from runbook_nb.record.shapes import STATE_CODES, replayed, replayed_levels

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution
    from runbook_nb.chart.straight import Begun
    from runbook_nb.record.pauses import Place


class Level:
    """One chart of those that lie around the present stage in one track.

    Attributes
    ----------
    plan, frame : ChartPlan, Frame
    at : int
        The present stage.
    route : str or None
        The branch taken there, where it is a decider.
    taken : StagePlan
        The stage or branch that is running, or ran last.
    asks : bool
        Whether it ended in a question.
    answering : callable or None
        What runs it with the answer to that question.
    """

    __slots__ = ("answering", "asks", "at", "frame", "plan", "route", "taken")

    taken: StagePlan

    def __init__(self, plan: ChartPlan, frame: Frame) -> None:
        self.plan = plan
        self.frame = frame
        self.at = 0
        self.route: str | None = None
        self.asks = False
        self.answering: Callable[..., Any] | None = None

    def stand(self, begun: Begun) -> Begun | None:
        """Stand where a branch was handed over; give that, where a stage has begun."""
        self.at, self.route = begun.at, begun.route
        if begun.taken is None:
            return None
        self.taken = begun.taken
        return begun


def question_of(value: Any, plan: StagePlan) -> InterruptSignal:
    """Make a question out of what a pausable stage gave.

    A text is the question; of a mapping, ``reason`` and ``expects`` are told apart.
    """
    data = question_part(value, "data")
    if isinstance(data, str) and data.strip():
        return InterruptSignal(data, None, data)
    reason = data.get("reason") if isinstance(data, Mapping) else None
    expects = data.get("expects") if isinstance(data, Mapping) else None
    asked = reason if isinstance(reason, str) else f"stage {plan.ref.name!r} waits for an answer"
    return InterruptSignal(asked, expects, data)


def place_of(levels: Sequence[Level], signal: InterruptSignal) -> Place:
    """Say where a track goes on that a question ends."""
    last = levels[-1]
    frame = last.frame
    kind = "ask"
    answers = frame.answers or ()
    if signal.pending is not None:
        kind = "branches"
    elif last.asks:
        kind, answers = "question", ()
    elif last.answering is not None:
        kind, answers = "question", last.answering.answers  # type: ignore[attr-defined]
    from runbook_nb.record.pauses import Place

    return Place(
        levels=tuple((level.at, level.route) for level in levels),
        kind=kind,
        answers=tuple(answers),
        loops=tuple(FrozenDict(level.frame.loops or {}) for level in levels),
        pending=dict(signal.pending or {}),
        question=signal.question,
    )


class Answering:
    """Runs the second half of a pausable stage with the answer to its question."""

    def __init__(self, fn: Callable[..., Any], answers: tuple[Any, ...]) -> None:
        self.fn = fn
        #: The answer to the question the stage ended in, then those to what it asked since.
        self.answers = answers

    def __call__(self, scope: Any) -> Any:
        """Run it."""
        return self.fn(scope, self.answers[0]["answer"])


def reenter(
    execution: Execution, level: Level, outer: list[Level], place: Place, answer: Any
) -> Level:
    """Stand where a paused track stood: its charts, their states, the answers for its stage.

    Raises
    ------
    CheckpointError
        There is no such place in the chart.
    """
    from runbook_nb.chart.mounts import chart_of, inner_frame

    track, own = level.frame.track, level.plan.stages[0].ref.path
    states = replayed_levels(execution.log, track.codes, track.values, own, level.frame.base)
    for depth, (at, route) in enumerate(place.levels):
        level.taken = _stage_at(level.plan, at, route)
        level.at, level.route = at, route
        level.frame.loops = dict(place.loops[depth]) if depth < len(place.loops) else None
        if depth == len(place.levels) - 1:
            break
        plan, frame = level.taken, level.frame
        stage = plan.stage
        if not isinstance(stage, SubchartStage):
            raise _damaged(f"stage {plan.ref.name!r} mounts no chart")
        key = f"{frame.path}{stage.id}"
        inner = plan.inner(lambda stage=stage, key=key: chart_of(execution, stage, key))
        state, args, _ = states.get(f"{plan.ref.key}/") or ({}, None, set())
        outer.append(level)
        level = Level(inner, inner_frame(frame, plan, state, FrozenDict(args or {})))
    if place.kind != "branches":
        _check_asked(execution.log, level)
    # An answer goes with its question: a stage that asks something else the next time, or in
    # another order, must not be given it for that.
    given = FrozenDict(question=place.question["reason"], answer=answer)
    if place.kind == "question":
        stage = level.taken.stage
        if not isinstance(stage, PausableStage):
            raise _damaged(f"stage {stage.name!r} is not pausable")
        answers = (*place.answers, given)
        level.answering = Answering(stage.resume, answers)
        level.frame.answers = answers[1:] or None
    elif place.kind == "ask":
        level.frame.answers = (*place.answers, given)
    return level


def _stage_at(plan: ChartPlan, at: int, route: str | None) -> StagePlan:
    if not 0 <= at < len(plan.stages):
        raise _damaged(f"chart {plan.chart.name!r} has no stage number {at}")
    stage = plan.stages[at]
    if route is None:
        return stage
    if route not in stage.branches:
        raise _damaged(f"stage {stage.ref.name!r} has no branch {route!r}")
    return stage.branches[route]


def _check_asked(log: Log, level: Level) -> None:
    """See that the stage that gets the answer is the one that asked.

    The structure of a run does not tell: a chart may be made while running, by other code now.
    """
    ref = level.taken.ref
    asked = next(
        (
            code.stage
            for code in (log.codes[number] for number in reversed(level.frame.track.codes))
            if code.kind == "pause"
        ),
        None,
    )
    if asked is None or (asked.key, asked.kind) != (ref.key, ref.kind):
        raise _damaged(
            f"the question was asked by {'no stage' if asked is None else repr(asked.key)}, "
            f"and stage {ref.key!r} stands there"
        )


def _damaged(why: str) -> CheckpointError:
    return misplaced(f"the checkpoint names a place that is not there: {why}")


def misplaced(message: str) -> CheckpointError:
    """Make the error of a checkpoint that does not fit the chart it is to go on in."""
    return CheckpointError(
        message,
        code="bad_checkpoint",
        where="place",
        fix="resume with the checkpoint of a run of this very chart",
    )


def undo(log: Log, frame: Frame, path: str, start: int) -> None:
    """Take back what a stage wrote before it asked; what it read and emitted stays recorded."""
    track = frame.track
    log.take_back(track, start, STATE_CODES)
    state, _ = replayed(log, track.codes, track.values, path, frame.base)
    frame.growing.clear()
    frame.state.clear()
    frame.state.update(state)
    if frame.inherited is not None:
        frame.inherited = set(frame.base or ()) - {
            event.code.key
            for event in log.events(track.codes)
            if event.code.kind in STATE_CODES and event.code.stage.path == path
        }
