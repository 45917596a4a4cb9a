"""Mounted charts: what goes in, what comes out, and how it joins what is there.

Chart layer. A mounted chart has a state of its own, so nothing goes in or out but what is mapped.
What is mapped in is its input and, as ordinary state, what its first stage finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import FrozenDict, FrozenList, freeze, handed_out
from runbook_nb._text import did_you_mean
from runbook_nb.chart.endings import Steps
from runbook_nb.chart.inputs import checked_input
from runbook_nb.chart.model import Chart, SubchartStage
from runbook_nb.chart.plan import StagePlan
from runbook_nb.chart.resume import Level
from runbook_nb.chart.scope import Frame, InterruptSignal, Scope, frozen_args
from runbook_nb.errors import ChartError, LimitReached, MissingKey
from runbook_nb.record.slots import Slots

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution


def enter(execution: Execution, plan: StagePlan, frame: Frame) -> Steps:
    """Map the input of a mounted chart and begin it; give its level."""
    stage: SubchartStage = plan.stage
    track = frame.track
    try:
        if frame.depth >= execution.limits.depth:
            raise LimitReached(
                f"chart {stage.name!r} lies inside {execution.limits.depth} others, "
                "which is the limit",
                code="depth_limit",
                where=stage.id,
                fix="raise Limits(depth=…); a chart that mounts itself needs an end",
            )
        inner = plan.inner(lambda: chart_of(execution, stage, f"{frame.path}{stage.id}"))
        mapped = yield from _mapped_in(execution, plan, stage.inputs, frame)
        args = checked_input(inner.chart, mapped, execution.policy)
    except BaseException as error:
        execution.failed(error, plan, track)
        raise
    track.add(plan.code("enter"), args)
    track.codes.extend(plan.code("received", key) for key in args)
    return Level(inner, inner_frame(frame, plan, dict(args), args))


def inner_frame(frame: Frame, plan: StagePlan, state: dict[str, Any], args: FrozenDict) -> Frame:
    """Make the frame of a mounted chart, which shares its parent's track."""
    inner = Frame(frame.track, state, args, f"{frame.path}{plan.stage.id}/", frame.around)
    inner.base, inner.mounts = args, frame.mounts + 1
    inner.loopy = frame.loopy or plan.inner(lambda: None).loops
    return inner


def chart_of(execution: Execution, stage: SubchartStage, key: str) -> Chart:
    """Give the chart mounted at a stage, made now where it is lazy."""
    made: Any = stage.chart
    if not stage.lazy:
        return made  # type: ignore[no-any-return]
    chart = made()
    if not isinstance(chart, Chart):
        if hasattr(chart, "__await__") and hasattr(chart, "close"):
            chart.close()  # else it warns that nobody awaited it
        raise ChartError(
            f"lazy chart {stage.name!r} gave {type(chart).__name__}, not a built chart",
            where=stage.id,
            code="bad_chart",
            fix="return flow_chart(…)…build() from a plain function",
        )
    from runbook_nb.chart.fanout import layout_of

    execution.templates.setdefault(key, {}).setdefault(layout_of(chart), chart)
    return chart


def _mapped_in(execution: Execution, plan: StagePlan, inputs: Any, frame: Frame) -> Steps:
    if inputs is None:
        return {}
    scope = execution.scope(plan, frame)
    try:
        if isinstance(inputs, Mapping):
            return {name: scope[key] for name, key in inputs.items()}
        mapped = yield from execution.once(plan, inputs, scope)
    except InterruptSignal as error:
        raise _no_question(plan, "input") from error
    finally:
        scope.close()
    return _mapping(mapped, plan, "inputs")


def leave(
    execution: Execution, plan: StagePlan, frames: tuple[Frame, Frame], output: Any, stopped: bool
) -> Steps:
    """End a mounted chart and map its output; give whether it stops its parent, and its value.

    The frames are the parent's and its own.
    """
    stage: SubchartStage = plan.stage
    frame, inner = frames
    track = frame.track
    reason = _reason(execution, track.codes[-1], track.values) if stopped else None
    track.codes.append(plan.code("leave", "stopped" if stopped else "ok"))
    try:
        output = freeze(output, "result")
        state = FrozenDict(inner.state)
        if isinstance(stage.outputs, Mapping):
            mapped = _named_out(plan, stage.outputs, state, stopped)
        else:
            given = output if output is not None else state
            mapped = yield from _mapped_out(execution, plan, stage.outputs, frame, given)
        scope = Scope(frame, plan)
        for key, value in mapped.items():
            new, replace = freeze(value, key), stage.array_merge == "replace"
            scope[key] = joined(frame.state.get(key), new, replace=replace)
        scope.close()
    except BaseException as error:
        execution.failed(error, plan, track)
        raise
    if stopped and stage.propagate_stop:
        track.add(plan.code("stop"), reason)
        return True, output
    return False, output


def _reason(execution: Execution, last: int, values: list[Any]) -> Any:
    return values[-1] if execution.log.codes[last].kind == "stop" else None


def _named_out(
    plan: StagePlan, outputs: Mapping[str, str], state: FrozenDict, stopped: bool
) -> dict[str, Any]:
    """Take out of a mounted chart's final state what is named; all of it, unless it stopped."""
    missing = next((name for name in outputs.values() if name not in state), None)
    if missing is not None and not stopped:
        raise MissingKey(
            f"chart {plan.ref.name!r} ended without {missing!r}, which is to come out of it",
            where=missing,
            fix=did_you_mean(missing, state)
            or "write outputs=lambda result, scope: {…} where a key may be missing",
        )
    return {key: state[name] for key, name in outputs.items() if name in state}


def _mapped_out(
    execution: Execution, plan: StagePlan, outputs: Any, frame: Frame, given: Any
) -> Steps:
    if outputs is None:
        return {}
    scope = execution.scope(plan, frame)
    shown = handed_out(given)
    try:
        mapped = yield from execution.once(plan, lambda scope: outputs(shown, scope), scope)
    except InterruptSignal as error:
        raise _no_question(plan, "output") from error
    finally:
        scope.close()
    return _mapping(mapped, plan, "outputs")


def _mapping(mapped: Any, plan: StagePlan, name: str) -> Mapping[str, Any]:
    if mapped is None:
        return {}
    if not isinstance(mapped, Mapping):
        raise ChartError(
            f"{name} of chart {plan.ref.name!r} gave {type(mapped).__name__}, not a mapping",
            where=plan.ref.id,
            code="bad_mapping",
            fix="return {key: value, …}, or nothing",
        )
    return frozen_args(mapped, name)


def _no_question(plan: StagePlan, which: str) -> ChartError:
    return ChartError(
        f"the {which} mapping of chart {plan.ref.name!r} asked a question",
        where=plan.ref.id,
        code="question_in_mapping",
        fix="ask in a stage of its own, before or after the chart",
    )


def joined(old: Any, new: Any, *, replace: bool = False) -> Any:
    """Join what comes out of a mounted chart with what is there.

    Lists, slots among them, are put behind one another unless ``replace``; mappings are joined
    one level deep, where lists are put behind one another and mappings updated; anything else
    replaces.

    Examples
    --------
    >>> joined([1], [2, 3]), joined([1], [2, 3], replace=True), joined({"a": 1}, {"b": 2})
    ([1, 2, 3], [2, 3], {'a': 1, 'b': 2})
    """
    if isinstance(new, list | Slots) and isinstance(old, list | Slots):
        return new if replace else FrozenList([*old, *new])
    if isinstance(new, dict) and isinstance(old, dict):
        return FrozenDict({**old, **{key: _inner(old.get(key), new[key]) for key in new}})
    return new


def _inner(old: Any, new: Any) -> Any:
    if isinstance(new, list | Slots) and isinstance(old, list | Slots):
        return FrozenList([*old, *new])
    if isinstance(new, dict) and isinstance(old, dict):
        return FrozenDict({**old, **new})
    return new
