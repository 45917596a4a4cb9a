"""Deciders and selectors: judging, recording what was judged, finding the branches it leads to.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import freeze
from runbook_nb._text import did_you_mean, listed, show
from runbook_nb.chart.endings import Steps
from runbook_nb.chart.finishing import declined_branch
from runbook_nb.chart.model import DECLINED, rules_of
from runbook_nb.chart.plan import StagePlan
from runbook_nb.chart.scope import Frame, Scope
from runbook_nb.errors import ChartError
from runbook_nb.record.log import Track
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.rules.evaluate import judge_facts, judge_steps, select_steps

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution
    from runbook_nb.chart.model import DeciderStage, SelectorStage


def decide(execution: Execution, plan: StagePlan, frame: Frame) -> Steps:
    """Judge, record the decision and begin the branch it leads to.

    Gives the branch's word and its plan; (None, the decider's own plan) when it stopped.
    """
    stage: DeciderStage = plan.stage
    track = frame.track
    if stage.rules is None:
        stopped, answer = yield from execution.call(plan, stage.judge, frame)
        if stopped:
            return None, plan
        if isinstance(answer, Decision):
            route, via = answer.path.branch, answer.path.via
            track.codes.append(plan.decision_code(answer.path))
            track.values.extend(answer.values)
        else:
            route, via = _by_word(execution, plan, answer, track), "rule"
    else:
        if plan.has_functions or execution.limits.stage_seconds is not None:
            path, values = yield from _judged(execution, plan, frame, judge_steps)
        else:
            try:
                if frame.begun is not None:  # an interrupt
                    frame.begun.outcome()
                path, values = judge_facts(stage.rules, frame.state)
            except BaseException as error:  # an unreadable value that raises, by declaration
                execution.failed(error, plan, track)
                raise
        track.codes.extend(plan.decision_codes(path))
        track.values.extend(values)
        if frame.growing:  # what was judged is kept with the decision
            frame.growing.difference_update(path.keys)
        route, via = path.branch, path.via
    frame.answers = None
    taken = plan.branches.get(route) if route is not None else None
    if taken is None:
        route, taken = _elsewhere(execution, plan, route, via, frame)
    if execution.watched:
        execution.check(taken, track)
    track.codes.append(taken.stage_code)
    return route, taken


def choose(execution: Execution, plan: StagePlan, frame: Frame) -> Steps:
    """Judge and record a selection; give the branches it leads to, None when stopped.

    They come in the order the branches are declared, each once.
    """
    stage: SelectorStage = plan.stage
    track = frame.track
    if stage.rules is not None:
        path, values = yield from _judged(execution, plan, frame, select_steps)
        track.codes.extend(plan.decision_codes(path))
        track.values.extend(values)
        words: Iterable[Any] = Selection(path, values).branches
    else:
        stopped, answer = yield from execution.call(plan, stage.judge, frame)
        if stopped:
            return None
        if isinstance(answer, Selection):
            track.codes.append(plan.decision_code(answer.path))
            track.values.extend(answer.values)
            words = answer.branches
        else:
            words = _words(execution, plan, answer, track)
    for word in words:
        if word not in plan.branches:
            raise _no_branch(execution, plan, word, track)
    chosen = set(words)
    return [route for route in plan.branches if route in chosen]


def _words(execution: Execution, plan: StagePlan, answer: Any, track: Track) -> Iterable[Any]:
    if isinstance(answer, str):
        answer = [answer]
    elif answer is None:
        answer = []
    try:
        if not isinstance(answer, list | tuple | set | frozenset):
            raise ChartError(
                f"selector {plan.ref.name!r} gave {type(answer).__name__}, not a list of branches",
                where=plan.ref.id,
                code="bad_selection",
                fix="return rb.select(…), a list of branch ids, or one id",
            )
        strange = next((word for word in answer if not isinstance(word, str)), None)
        if strange is not None:
            raise ChartError(
                f"selector {plan.ref.name!r} gave {show(strange)} as a branch; their ids are texts",
                where=plan.ref.id,
                code="bad_selection",
                fix=f"its branches are {listed(list(plan.branches))}",
            )
        order = {route: place for place, route in enumerate(plan.branches)}
        words = list(dict.fromkeys(answer))
        if isinstance(answer, set | frozenset):  # a set has no order of its own
            words.sort(key=lambda word: (order.get(word, len(order)), str(word)))
        kept = freeze(words, "the selector's answer")
    except Exception as error:
        execution.failed(error, plan, track)
        raise
    track.add(plan.code("choices"), kept)
    return words


def _judged(execution: Execution, plan: StagePlan, frame: Frame, in_steps: Any) -> Steps:
    """Judge by rules that may wait, or that are held to a limit of time."""
    rules = rules_of(plan.stage)
    frame.growing.clear()
    scope = Scope(frame, plan)
    try:
        return (yield from execution.in_time(plan, in_steps(rules, frame.state, scope)))
    except BaseException as error:
        execution.failed(error, plan, frame.track)
        raise
    finally:
        scope.close()


def _by_word(execution: Execution, plan: StagePlan, answer: Any, track: Track) -> str:
    word = answer if isinstance(answer, str) and answer in plan.branches else plan.default
    if word is None:
        raise _no_branch(execution, plan, answer, track)
    try:
        kept = freeze(answer, "the decider's answer")
    except Exception as error:
        execution.failed(error, plan, track)
        raise
    track.add(plan.code("choice", word), kept)
    return word


def _elsewhere(
    execution: Execution, plan: StagePlan, route: str | None, via: str, frame: Frame
) -> tuple[str, StagePlan]:
    if route is None and plan.default is not None:
        frame.track.add(plan.code("route", plan.default))
        return plan.default, plan.branches[plan.default]
    if route == DECLINED and via in ("unreadable", "outside"):
        # No branch was declared for what could not be judged; it gets one that writes nothing.
        branch_id = plan.chart._declined_ids[plan.stage.id]
        execution.undeclared[f"{frame.path}{plan.ref.id}", branch_id] = None
        return DECLINED, plan.add_branch(declined_branch(branch_id))
    raise _no_branch(execution, plan, route, frame.track)


def _no_branch(execution: Execution, plan: StagePlan, answer: Any, track: Track) -> ChartError:
    routes = list(plan.branches)
    kind = plan.ref.kind
    if answer is None:
        message = f"{kind} {plan.ref.name!r} named no branch: no rule matched and it has no default"
    else:
        named = repr(answer) if isinstance(answer, str) else show(answer)
        message = f"{kind} {plan.ref.name!r} named {named}, which is none of its branches"
    near = did_you_mean(answer, routes) if isinstance(answer, str) else None
    error = ChartError(
        message,
        code="unknown_branch",
        where=plan.ref.id,
        fix=near or f"its branches are {listed(routes)}",
    )
    execution.failed(error, plan, track)
    return error
