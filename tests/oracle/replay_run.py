"""A recorded case run through our API: the chart, the runs of its phases, how it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import replay_program
from replay_expected import ABORTED
from replay_ops import Player
from replay_program import NoWord, throwing
from replay_shape import Shape
from replay_values import HarnessFailure, decode, plain, read

import runbook_nb as rb
from runbook_nb.errors import ChartError, RunbookError

#: Every option of a run the harness knows.
OPTIONS = {
    "input",
    "env",
    "maxDepth",
    "maxIterations",
    "timeoutMs",
    "abortAfterMs",
    "initialContext",
    "defaultValues",
    "redact",
    "dials",
    "throwingRecorder",
    "resume",
}


@dataclass
class Replay:
    """What became of one case.

    Attributes
    ----------
    refused : Exception or None
        Why the chart was not built.
    chart : Chart or None
    runs : list of Run
        One per phase: the first run, then one per resume.
    error : Exception or None
        What left the last phase.
    events : list
        What the listener of streams heard.
    options : mapping
        The run's options as ours, but for the signal.
    """

    case: Mapping[str, Any]
    refused: BaseException | None = None
    chart: Any = None
    runs: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    events: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    #: Ids of the update ops that were written as unions.
    unions: set[int] = field(default_factory=set)

    @property
    def run(self) -> Any:
        """The last run, finished or not; None when nothing began."""
        return self.runs[-1] if self.runs else None


def replay(case: Mapping[str, Any], *, answered: bool = False) -> Replay:
    """Build and run a case; ``answered`` gives the answers before anything is asked."""
    options = case.get("run") or {}
    unknown = set(options) - OPTIONS
    if unknown:
        raise HarnessFailure(f"no run options {sorted(unknown)} in the harness")
    asked = options.get("resume") or []
    player = Player(
        plain(decode(options.get("env"))) or {},
        appends=(options.get("dials") or {}).get("commitValues") == "delta",
        answers=[read(one.get("input")) for one in asked] if answered else None,
    )
    found = Replay(case, unions=player.unions)
    try:
        found.chart = replay_program.build(case["program"], player)
    except (ChartError, NoWord) as error:
        found.refused = error
        return found
    if case.get("build_only"):
        return found
    try:
        found.options = run_options(options)
    except ChartError as error:
        found.error = error
        return found
    asyncio.run(_go(found, options, [] if answered else asked))
    if player.failures:
        raise player.failures[0]
    return found


async def _go(found: Replay, options: Mapping[str, Any], asked: list[Any]) -> None:
    more = dict(found.options)
    state = more.pop("state", None)
    more["on_stream"] = throwing("heard") if "throwingRecorder" in options else found.events.append
    forget = _abort(options, more)
    try:
        run = await found.chart.run(
            plain(decode(options.get("input"))), **more, **({"state": state} if state else {})
        )
    except Exception as error:
        _ended(found, error)
        return
    finally:
        forget()
    found.runs.append(run)
    for one in asked:
        if found.run.status != "paused":
            return
        shape = Shape(found.case["program"])
        checkpoint = damaged(found.run.checkpoint, one.get("patch") or {}, shape)
        chart = found.chart
        if one.get("mode") == "fresh":
            checkpoint = json.loads(json.dumps(checkpoint))
            chart = replay_program.build(found.case["program"], Player(_env(options)))
        elif one.get("mode") != "same":
            raise HarnessFailure(f"no way to resume {one.get('mode')!r} in the harness")
        try:
            found.runs.append(await chart.resume(checkpoint, read(one.get("input")), **more))
        except Exception as error:
            _ended(found, error)
            return


def _env(options: Mapping[str, Any]) -> Any:
    return plain(decode(options.get("env"))) or {}


def _ended(found: Replay, error: BaseException) -> None:
    run = getattr(error, "run", None)
    if run is None and not isinstance(error, RunbookError):
        raise error  # of the harness: nothing of the product left a run without telling of it
    found.error = error
    if run is not None:
        found.runs.append(run)


def _abort(options: Mapping[str, Any], more: dict[str, Any]) -> Any:
    if "abortAfterMs" not in options:
        return lambda: None
    signal = more["signal"] = rb.Stop()
    if not options["abortAfterMs"]:
        signal.set(ABORTED)
        return lambda: None
    loop = asyncio.get_running_loop()
    return loop.call_later(options["abortAfterMs"] / 1000, signal.set, ABORTED).cancel


def run_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give recorded run options as arguments of `Chart.run`."""
    found: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for ours, theirs in (("depth", "maxDepth"), ("loops", "maxIterations")):
        if theirs in options:
            limits[ours] = read(options[theirs])
    if "timeoutMs" in options:
        limits["seconds"] = options["timeoutMs"] / 1000
    if limits:
        found["limits"] = rb.Limits(**limits)
    if options.get("redact"):
        found["redact"] = policy_of(options["redact"])
    state = {**(options.get("defaultValues") or {}), **(options.get("initialContext") or {})}
    if state:
        found["state"] = plain(decode(state))
    return found


def policy_of(redact: Mapping[str, Any]) -> Any:
    """Give a recorded policy as ours."""
    names = {"keys": "keys", "patterns": "patterns", "fields": "fields", "emitPatterns": "emits"}
    unknown = set(redact) - set(names)
    if unknown:
        raise HarnessFailure(f"no redaction options {sorted(unknown)} in the harness")
    return rb.Redact(**{names[name]: read(value) for name, value in redact.items()})


def damaged(checkpoint: Any, patch: Mapping[str, Any], shape: Shape) -> Any:
    """Give a checkpoint with the damage a case describes, done to what ours goes on from."""
    if not patch:
        return checkpoint
    out = json.loads(json.dumps(checkpoint))
    for name, value in patch.items():
        told = read(value)
        if name in ("sharedState", "subflowStates", "executionTree", "executionCount"):
            out["record"] = told  # the record holds every state, and the count of its steps
        elif name == "pausedStageId":
            stage = shape.stages.get(told) if isinstance(told, str) else None
            known = stage is not None and stage.position is not None
            levels = out["place"]["levels"]
            levels[-1] = [stage.position if known and stage else NOWHERE, None]
            if not isinstance(told, str) or not told.strip():
                out["place"]["levels"] = told
        elif name == "subflowPath":
            listed = isinstance(told, list)
            levels = out["place"]["levels"]
            out["place"]["levels"] = [*([NOWHERE, None] for _ in told), *levels] if listed else told
        elif name == "pauseData":
            out["place"]["question"] = told
        elif name == "visitCounts":
            out["place"]["loops"] = told
        else:
            raise HarnessFailure(f"no checkpoint part {name!r} in the harness")
    return out


#: The position of a stage that is not there.
NOWHERE = 999
