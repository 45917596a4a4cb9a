"""Laws that hold of every run, whatever was recorded of upstream.

They are checked of every case, and are all that is checked of a case that nobody has judged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from replay_commits import our_changes
from replay_run import Replay
from replay_seen import Seen, plain_value
from replay_shape import Shape, key_of
from replay_values import same

from runbook_nb.record.overlay import overlay_of

#: Types of the rows of a walk for those of the log that have another name there.
WALK_TYPES = {"streamed": "step"}


def broken_laws(replay: Replay) -> list[str]:
    """Say which laws the runs of a case break."""
    if replay.refused is not None:
        return list(_refused_with_a_place(replay))
    found = list(_structure_hangs_together(replay.chart.structure))
    shape = Shape(replay.case["program"])
    for run in replay.runs:
        seen = Seen(run, replay.chart)
        for law in LAWS:
            found += [f"{law.__name__[1:]}: {one}" for one in law(run, seen, shape)]
    found += list(_no_probe_is_served(replay))
    return found


def _refused_with_a_place(replay: Replay) -> Iterator[str]:
    problems = getattr(replay.refused, "problems", None)
    if problems is not None and not problems and not getattr(replay.refused, "where", None):
        yield f"refused without a place: {replay.refused}"


def _structure_hangs_together(structure: Any) -> Iterator[str]:
    keys = [node.key for node in structure.nodes]
    if len(keys) != len(set(keys)):
        yield f"two nodes have one key: {Counter(keys).most_common(1)}"
    for edge in structure.edges:
        if edge.source not in keys or edge.target not in keys:
            yield f"edge {edge} leads out of the structure"


def _the_walk_tells_the_log(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    rows = [row for row in seen.rows if row.type != "route"]
    told = list(run.walk)
    if len(told) != len(run.walk):
        yield f"{len(told)} rows where {len(run.walk)} are counted"
    if run.policy is not None and run.redactor.knows_secrets:
        return  # ids may be hidden too
    for place in range(max(len(rows), len(told))):
        if place >= len(rows) or place >= len(told):
            yield f"{len(rows)} rows of the log, {len(told)} of the walk"
            return
        mine, row = rows[place], told[place]
        kind = WALK_TYPES.get(mine.type, mine.type)
        alike = kind == row.type and (
            row.runtime_stage_id is None or row.runtime_stage_id == mine.runtime_id
        )
        alike = alike and row.depth == mine.facts["depth"]
        alike = alike and row.stage in (None, mine.facts["stage"])
        if not alike:
            yield f"row {place}: {mine} is told as {row.type} {row.runtime_stage_id}"
            return


def _one_stage_row_per_executed_step(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    rows = [row.runtime_id for row in seen.rows if row.type == "stage"]
    if rows != seen.executed:
        yield f"{rows} is not {seen.executed}"
    twice = [one for one, times in Counter(rows).items() if times > 1]
    if twice:
        yield f"executed twice under one id: {twice}"
    began = sum(len(list(fan.begun())) for fan in seen.fans if fan.form == "fan_out")
    if run.steps_executed != len(rows) + began:
        yield f"{run.steps_executed} steps where {len(rows)} stages and {began} branches ran"


def _one_commit_per_executed_step(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    if run.redactor.knows_secrets:
        return
    commits = Counter(f"{one.place}#{one.n}" for one in _of_steps(run))
    if commits != Counter(seen.executed):
        missing = [one for one in seen.executed if one not in commits]
        twice = [one for one, times in commits.items() if times > 1]
        extra = [one for one in commits if one not in seen.executed]
        yield f"missing {missing}, twice {twice}, of no step {extra}"


def _of_steps(run: Any) -> list[Any]:
    """Give the commits of stages: entering a branch is a step that has one too."""
    return [one for one in our_changes(run) if "~" not in one.place.rpartition("/")[2]]


def _executions_count_from_the_start_of_their_track(
    run: Any, seen: Seen, shape: Shape
) -> Iterator[str]:
    lanes: dict[str, list[int]] = {}
    for one in seen.executed:
        place, _, n = one.rpartition("#")
        lanes.setdefault(shape.lane(place), []).append(int(n))
    for lane, numbers in lanes.items():
        if numbers != list(range(len(numbers))):
            yield f"lane {lane!r} counts {numbers}"


def _commits_hold_what_rows_write(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    for one in our_changes(run):
        written = {key for key, _ in seen.changed.get(f"{one.place}#{one.n}", ())}
        told = set(one.values) | one.deleted
        if not run.redactor.knows_secrets and not told <= written:
            yield f"{one} commits {told - written}, which no row writes"


def _the_state_is_what_was_written(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    held, state = plain_value(seen.views[""]), plain_value(run.raw[1])
    if not same(held, state):
        yield f"{held} replayed is {state}"


def _branches_add_up(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    for fan in seen.fans:
        counts = Counter(fan.status(index) for index in range(len(fan)))
        if set(counts) - {"ok", "failed", "not_reached"} or counts.total() != len(fan.items):
            yield f"{fan.stage.key}: {counts} of {len(fan.items)}"
        # Where a branch failed and failing is fast, siblings are not reached either.
        if run.status == "ok" and fan.form == "fan_out" and not counts["failed"]:
            past = len(fan) - min(fan.cap, len(fan))
            if counts["not_reached"] != past:
                yield f"{fan.stage.key}: {counts['not_reached']} not reached, {past} past the cap"


def _edges_drawn_as_taken_were_taken(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    overlay = overlay_of(run.log, run.redactor)
    if run.redactor.knows_secrets:
        return
    runs = Counter(key_of(one.rpartition("#")[0]) for one in seen.executed)
    if Counter({k: n for k, n in overlay.runs.items() if n}) != runs:
        yield f"counted {dict(overlay.runs)}, ran {dict(runs)}"
    for (source, target), times in overlay.edges.items():
        if times and (source, target) not in seen.transitions:
            yield f"{source} to {target} is drawn as taken {times} times and never was"
        if times > max(runs[target], runs[source]):
            yield f"{source} to {target} was taken {times} times and {target} ran {runs[target]}"
    loops = sum(row.type == "loop" for row in seen.rows)
    if sum(overlay.loops.values()) != loops:
        yield f"{dict(overlay.loops)} loops drawn, {loops} told"


def _every_execution_is_in_the_structure(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    for one in seen.executed:
        place = one.rpartition("#")[0]
        if run.structure.node(key_of(place)) is None:
            yield f"{place} is in no structure"


def _an_ending_is_told(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    types = [row.type for row in seen.rows]
    if run.status in ("failed", "limited", "cancelled") and "error" not in types:
        yield f"the run is {run.status} and no row says why"
    if run.status == "paused":
        if "pause" not in types:
            yield "the run is paused and no row asks"
        checkpoint = run.checkpoint
        if json.loads(json.dumps(checkpoint)) != checkpoint:
            yield "the checkpoint does not survive JSON"


def _the_recording_is_json(run: Any, seen: Seen, shape: Shape) -> Iterator[str]:
    recording = run.recording().to_dict()
    if list(recording) != ["snapshot", "events", "structure"]:
        yield f"a recording of {list(recording)}"
    try:
        json.dumps(recording, allow_nan=False)
    except (TypeError, ValueError) as error:
        yield f"the recording is no JSON: {error}"


def _no_probe_is_served(replay: Replay) -> Iterator[str]:
    probe = replay.case.get("leak_probe")
    run = replay.run
    if not probe or run is None or not run.redactor.active:
        return
    views = {
        "state": plain_value(run.state),
        "result": plain_value(run.result),
        "walk": run.walk.to_dicts(),
        "commits": [one.to_dict() for one in run.commits],
        "recording": run.recording().to_dict(),
    }
    for name, view in views.items():
        if probe in json.dumps(view, default=str):
            yield f"no_probe_is_served: {name} holds the probe"


LAWS = (
    _the_walk_tells_the_log,
    _one_stage_row_per_executed_step,
    _one_commit_per_executed_step,
    _executions_count_from_the_start_of_their_track,
    _commits_hold_what_rows_write,
    _the_state_is_what_was_written,
    _branches_add_up,
    _edges_drawn_as_taken_were_taken,
    _every_execution_is_in_the_structure,
    _an_ending_is_told,
    _the_recording_is_json,
)
