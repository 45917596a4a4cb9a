"""Questions asked of recorded commit logs, asked of ours."""

from __future__ import annotations

from typing import Any

import pytest
import replay_run
from replay_laws import broken_laws
from replay_seen import plain_value
from replay_shape import Shape
from replay_values import HarnessFailure, read, same


def departs(name):
    """Name the declared departure that explains a difference."""
    return name


def last_writer(log: Any, key: str, before: int | None = None) -> Any:
    found = log.last_writer(key) if before is None else log.last_writer(key, before)
    if found is None:
        return None
    return {"runtimeStageId": found.runtime_stage_id, "idx": found.index}


def first_commit(log: Any, stage: str, key: str | None = None) -> Any:
    found = log.first(stage, key)
    return None if found is None else found.runtime_stage_id


def all_commits(log: Any, stage: str, key: str | None = None) -> Any:
    return [commit.runtime_stage_id for commit in log.of(stage, key)]


def index_of(log: Any, runtime_stage_id: str) -> Any:
    return log.index_of(runtime_stage_id)


def state_at(log: Any, index: int) -> Any:
    return log.state_at(index).to_dict()


def value_at(log: Any, index: int, key: str) -> Any:
    return log.value_at(index, key)


def causal_chain(log: Any, step: str) -> Any:
    return log.causes(step=step).to_dict()["nodes"]


def slice_for_key(log: Any, key: str) -> Any:
    found = log.causes(key=key)
    return {
        "missing": found.missing,
        "root": found.root,
        "nodes": [node.id for node in found.nodes],
    }


def births(log: Any, key: str, index: int | None = None) -> Any:
    return log.births(key, index).to_dict()


def stops(log: Any) -> Any:
    return [stop.to_dict() for stop in log.stops()]


QUESTIONS = {
    "find_last_writer": last_writer,
    "find_commit": first_commit,
    "find_commits": all_commits,
    "commit_index_of": index_of,
    "state_at": state_at,
    "commit_value_at": value_at,
    "causal_chain": causal_chain,
    "slice_for_key": slice_for_key,
    "array_births": births,
    "commit_stops": stops,
}


def expected(recorded: Any, shape: Shape) -> Any:
    """Give a recorded answer as it is expected of us."""
    value = read(recorded)
    if isinstance(value, dict) and "missing" in recorded and "missing" not in value:
        value |= {"missing": None}
    if isinstance(value, dict) and "root" in recorded and "root" not in value:
        value |= {"root": None}
    for birth in value.get("births", ()) if isinstance(value, dict) else ():
        stage = shape.at(birth["stageId"])
        if stage is not None and birth["stageName"] != stage.name:
            assert departs("a-pass-has-the-name-of-its-stage")
            birth["stageName"] = stage.name
    return value


@pytest.mark.programs("trace_queries")
def test_a_question_of_a_commit_log_has_the_recorded_answer(case, outcome):
    case = {"observed": {}, **case}
    found = replay_run.replay(case)
    log, shape = found.run.commits, Shape(case["program"])
    wrong = []
    for asked in case["queries"]:
        name, *given = asked["query"]
        question = QUESTIONS.get(name)
        if question is None:
            raise HarnessFailure(f"no question {name!r} in the harness")
        answer = plain_value(question(log, *given))
        if not same(expected(asked["result"], shape), answer):
            wrong.append((asked["query"], answer, asked["result"]))
    assert wrong == []
    assert case["queries"]
    outcome(case, "equal")


@pytest.mark.programs("trace_queries")
def test_a_program_that_is_asked_keeps_the_general_laws(case):
    assert broken_laws(replay_run.replay({"observed": {}, **case})) == []
