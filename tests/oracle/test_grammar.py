"""The grammar of recorded programs: every op, step and option replays, and the laws hold of any.

More programs of these kinds are recorded elsewhere, so that what stands for an op here must be
there whether a case in this folder uses it or not.
"""

from __future__ import annotations

from typing import Any

import pytest
import replay_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_laws import broken_laws
from replay_ops import OPS
from replay_seen import plain_value
from replay_values import HarnessFailure

#: The ops the grammar names.
GRAMMAR = {
    "set",
    "setv",
    "secret",
    "set_path",
    "del_path",
    "get",
    "read_path",
    "copy",
    "copyv",
    "has",
    "keys",
    "add",
    "append",
    "push",
    "batch_push",
    "update",
    "delete",
    "args",
    "args_to",
    "mutate_args",
    "env_to",
    "emit",
    "debug",
    "log",
    "metric",
    "error_info",
    "eval",
    "break",
    "break_if",
    "throw",
    "throw_first",
    "throw_if_item",
    "stream",
    "interrupt",
    "return",
    "return_key",
    "return_if",
    "decide",
    "decide_to",
    "select",
    "resume_to",
    "sleep",
    "sleep_by_item",
    "async",
    "set_range",
}


def program(*steps: Any, ops: Any = ()) -> dict[str, Any]:
    start = {"name": "Seed", "id": "seed", "ops": list(ops)}
    return {"start": start, "steps": list(steps)}


def case_of(program: Any, **run: Any) -> dict[str, Any]:
    return {"id": "made", "program": program, "run": run, "observed": {}, "observe": []}


def ran(program: Any, **run: Any) -> Any:
    found = replay_run.replay(case_of(program, **run))
    assert found.refused is None, found.refused
    assert broken_laws(found) == []
    return found


def stage(id: str, *ops: Any, **more: Any) -> dict[str, Any]:
    return {"add": "function", "name": id.upper(), "id": id, "ops": list(ops), **more}


def test_every_op_of_the_grammar_has_its_function():
    assert set(OPS) == GRAMMAR


def test_what_the_harness_does_not_know_is_its_own_failure():
    for strange in (
        program(stage("a", {"op": "teleport"})),
        program({"add": "teleport"}),
        program(stage("a", {"op": "set", "value": 1})),
        program(stage("a", {"op": "set", "key": "a", "value": {"$js": "teleport"}})),
        program({"add": "for_each", "name": "E", "id": "e", "items": {"value": []}, "branch": 5}),
    ):
        with pytest.raises(HarnessFailure):
            replay_run.replay(case_of(strange))
    with pytest.raises(HarnessFailure):
        replay_run.replay(case_of(program(), teleport=1))


@pytest.mark.parametrize(
    ("ops", "state"),
    [
        ([{"op": "set", "key": "a", "value": 1}], {"a": 1}),
        ([{"op": "setv", "key": "a", "value": [1]}], {"a": [1]}),
        ([{"op": "secret", "key": "a", "value": "hunter2"}], {"a": "hunter2"}),
        (
            [
                {"op": "set", "key": "a", "value": {"b": {"c": 1, "d": 2}}},
                {"op": "set_path", "path": ["a", "b", "c"], "value": 5},
                {"op": "del_path", "path": ["a", "b", "d"]},
                {"op": "read_path", "path": "a.b.c", "to": "r"},
            ],
            {"a": {"b": {"c": 5}}, "r": 5},
        ),
        (
            [
                {"op": "set", "key": "a", "value": [{"n": 1}, 2]},
                {"op": "set_path", "path": ["a", 0, "n"], "value": 9},
                {"op": "del_path", "path": ["a", 1]},
                {"op": "read_path", "path": ["a", 0, "n"], "to": "r"},
            ],
            {"a": [{"n": 9}], "r": 9},
        ),
        ([{"op": "get", "key": "a"}, {"op": "copy", "from": "a", "to": "b"}], {}),
        (
            [{"op": "set", "key": "a", "value": 1}, {"op": "copyv", "from": "a", "to": "b"}],
            {"a": 1, "b": 1},
        ),
        (
            [{"op": "has", "key": "a", "to": "h"}, {"op": "keys", "to": "k"}],
            {"h": False, "k": ["h"]},
        ),
        ([{"op": "add", "key": "n", "n": 2}, {"op": "add", "key": "n", "n": 3}], {"n": 5}),
        (
            [
                {"op": "append", "key": "t", "value": 1},
                {"op": "push", "key": "t", "value": 2},
                {"op": "batch_push", "key": "t", "values": [3, 4]},
            ],
            {"t": [1, 2, 3, 4]},
        ),
        (
            [
                {"op": "set", "key": "o", "value": {"a": 1, "l": [1]}},
                {"op": "update", "key": "o", "value": {"b": 2}},
                {"op": "update", "key": "o", "value": {"l": [1, 2]}},
                {"op": "update", "key": "t", "value": [1]},
                {"op": "update", "key": "t", "value": [1, 2]},
                {"op": "update", "key": "n", "value": 5},
            ],
            {"o": {"a": 1, "l": [1, 2], "b": 2}, "t": [1, 2], "n": 5},
        ),
        (
            [
                {"op": "set", "key": "a", "value": 1},
                {"op": "delete", "key": "a"},
                {"op": "delete", "key": "b"},
                {"op": "set", "key": "c", "value": {"$js": "undefined"}},
            ],
            {},
        ),
        ([{"op": "args", "to": "all"}, {"op": "args_to", "key": "q", "to": "one"}],
         {"all": {"q": 7}, "one": 7}),
        ([{"op": "env_to", "key": "traceId", "to": "t"}], {"t": "t-1"}),
        (
            [{"op": one, "key": "k", "value": 1} for one in ("debug", "metric", "eval")]
            + [{"op": "log", "value": "x"}, {"op": "error_info", "key": "k", "value": 1}]
            + [{"op": "emit", "name": "e", "payload": {"a": 1}}],
            {},
        ),
        (
            [
                {"op": "break", "reason": "r"},
                {"op": "set", "key": "a", "value": 1},
                {"op": "break_if", "key": "a", "cmp": "eq", "value": 1, "reason": "again"},
            ],
            {"a": 1},
        ),
        (
            [
                {"op": "set_range", "key": "r", "n": 3},
                {"op": "return_if", "key": "r", "cmp": "eq", "value": [0, 1, 2], "result": 4},
                {"op": "set", "key": "never", "value": 1},
            ],
            {"r": [0, 1, 2]},
        ),
        (
            [
                {"op": "set", "key": "a", "value": 3},
                {
                    "op": "decide_to",
                    "rules": [{"when": {"a": {"gt": 2}}, "then": "big"}],
                    "default": "small",
                    "to": "word",
                },
            ],
            {"a": 3, "word": "big"},
        ),
        ([{"op": "sleep", "ms": 1}, {"op": "async"}, {"op": "set", "key": "a", "value": 1}],
         {"a": 1}),
    ],
)  # fmt: skip
def test_an_op_does_what_the_grammar_says(ops, state):
    found = ran(program(ops=ops), input={"q": 7}, env={"traceId": "t-1"})
    assert plain_value(found.run.raw[1]) == state


def test_ops_that_end_a_stage():
    given = ran(
        program(ops=[{"op": "set", "key": "a", "value": 5}, {"op": "return_key", "key": "a"}])
    )
    assert given.run.raw[2] == 5
    thrown = ran(program(ops=[{"op": "throw", "message": "m"}]))
    assert str(thrown.error) == "m"
    frozen = ran(program(ops=[{"op": "mutate_args", "key": "q", "value": 1}]), input={"q": 7})
    assert isinstance(frozen.error, TypeError)
    flaky = [{"op": "throw_first", "n": 1, "message": "m"}, {"op": "set", "key": "a", "value": 1}]
    again = ran(program(stage("f", *flaky), {"add": "retry", "attempts": 2, "backoffMs": 0}))
    assert plain_value(again.run.raw[1]) == {"a": 1}
    declined = ran(program(stage("f", *flaky, retry={"attempts": 2, "retryOnThrows": "no"})))
    assert str(declined.error) == "m"


def test_questions_and_answers():
    gate = {
        "add": "pausable",
        "name": "Gate",
        "id": "gate",
        "execute": [{"op": "return", "value": "why?"}],
        "resume": [{"op": "resume_to", "to": "answer"}],
    }
    ask = stage("ask", {"op": "interrupt", "payload": {"reason": "sure?"}, "to": "sure"})
    for mode in ("same", "fresh"):
        answers = [{"mode": mode, "input": "because"}, {"mode": mode, "input": "yes"}]
        found = ran(program(gate, ask, stage("end")), resume=answers)
        assert plain_value(found.run.raw[1]) == {"answer": "because", "sure": "yes"}
        assert [run.status for run in found.runs] == ["paused", "paused", "ok"]


def test_fan_out_ops_and_options():
    each = {
        "add": "for_each",
        "name": "Each",
        "id": "each",
        "items": {"value": ["a", "bad", "c"]},
        "branch": {
            "chart": program(
                ops=[
                    {"op": "sleep_by_item", "ms": {"0": 2}},
                    {"op": "throw_if_item", "item": "bad", "message": "bad item"},
                    {"op": "copy", "from": "item", "to": "it"},
                ]
            )
        },
        "maxBranches": 5,
        "into": "out",
    }
    found = ran(program(each))
    assert plain_value(found.run.raw[1])["out"] == [{"it": "a"}, None, {"it": "c"}]
    assert str(ran(program({**each, "failFast": True})).error) == "bad item"


def test_a_stream_and_a_contract():
    talk = {
        "add": "streaming",
        "name": "Talk",
        "id": "talk",
        "ops": [{"op": "stream", "tokens": ["a", "b"]}],
    }
    contract = {
        "add": "contract",
        "input": {"type": "object", "properties": {"q": {"type": "number"}}},
        "output": {"type": "object"},
        "mapper": [{"to": "answer", "from": "n"}],
    }
    found = ran(
        program(talk, contract, ops=[{"op": "set", "key": "n", "value": 2}]), input={"q": 1}
    )
    assert [event.kind for event in found.events] == ["start", "token", "token", "end"]
    assert plain_value(found.run.output) == {"answer": 2}


@pytest.mark.parametrize("mode", ["next", "fork", "lazy_next", "lazy_fork"])
def test_every_way_to_mount_a_chart(mode):
    mount = {
        "add": "subflow",
        "mode": mode,
        "id": "sf",
        "name": "Sub",
        "chart": program(ops=[{"op": "args_to", "key": "v", "to": "o"}]),
        "options": {
            "input": [{"to": "v", "from": "a"}, {"to": "w", "value": 4}],
            "output": [{"to": "r", "from": "o"}, {"to": "c", "value": 5}],
            "arrayMerge": "replace",
            "propagateBreak": True,
            "convergeAt": "end",
        },
    }
    found = ran(program(mount, stage("end"), ops=[{"op": "set", "key": "a", "value": 1}]))
    assert plain_value(found.run.raw[1]) == {"a": 1, "r": 1, "c": 5}


@pytest.mark.parametrize("kind", ["selector", "decider", "pausable", "streaming", "function"])
def test_every_kind_of_first_stage(kind):
    start = {"name": "Seed", "id": "seed", "kind": kind, "ops": [{"op": "return", "value": "p"}]}
    if kind in ("selector", "decider"):
        start["branches"] = [{"id": "p", "name": "P", "ops": []}]
    if kind == "pausable":
        start |= {"execute": [], "resume": []}
    found = ran({"start": start, "steps": [stage("end")]})
    assert found.run.status == "ok"


# --- any program -------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "n"])
VALUES = st.sampled_from([0, 1, "t", [1], {"x": 1}, None, True])
OP = st.one_of(
    st.builds(lambda k, v: {"op": "set", "key": k, "value": v}, KEYS, VALUES),
    st.builds(lambda k: {"op": "get", "key": k}, KEYS),
    st.builds(lambda a, b: {"op": "copy", "from": a, "to": b}, KEYS, KEYS),
    st.builds(lambda k: {"op": "delete", "key": k}, KEYS),
    st.builds(lambda k: {"op": "has", "key": k, "to": "h"}, KEYS),
    st.just({"op": "update", "key": "o", "value": {"x": 1}}),
    st.just({"op": "append", "key": "t", "value": 1}),
    st.just({"op": "emit", "name": "e", "payload": 1}),
    st.just({"op": "args_to", "key": "item", "to": "it"}),
)
ENDS = st.one_of(
    st.just([]),
    st.just([]),
    st.just([]),
    st.just([{"op": "break", "reason": "r"}]),
    st.just([{"op": "throw", "message": "m"}]),
    st.just([{"op": "return", "value": 5}]),
    st.just([{"op": "interrupt", "payload": {"reason": "q"}, "to": "ans"}]),
)


@st.composite
def stage_ops(draw):
    return [*draw(st.lists(OP, max_size=3)), *draw(ENDS)]


@st.composite
def programs(draw, depth=2):
    count = iter(range(100))
    steps = []
    for _ in range(draw(st.integers(0, 3))):
        id = f"s{next(count)}"
        kinds = ["function", "decider", "selector", "fork", "pausable", "streaming"]
        kind = draw(st.sampled_from(kinds + ["subflow", "for_each"] * bool(depth)))
        step = {"add": kind, "name": id.upper(), "id": id}
        branches = [f"{id}x", f"{id}y"]
        if kind in ("function", "streaming"):
            step["ops"] = draw(stage_ops())
        elif kind == "pausable":
            step["execute"] = [*draw(st.lists(OP, max_size=2)), {"op": "return", "value": "q"}]
            step["resume"] = [{"op": "resume_to", "to": "ans"}, *draw(st.lists(OP, max_size=2))]
        elif kind == "fork":
            step = {
                "add": "fork",
                "children": [
                    {"id": one, "name": one, "ops": draw(stage_ops())} for one in branches
                ],
                "failFast": draw(st.booleans()),
            }
        elif kind == "decider":
            step["ops"] = [{"op": "return", "value": draw(st.sampled_from([*branches, "no"]))}]
            step["branches"] = [draw(branch_of(one, depth)) for one in branches]
        elif kind == "selector":
            chosen = draw(st.lists(st.sampled_from(branches), unique=True))
            step["ops"] = [{"op": "return", "value": chosen}]
            step["branches"] = [draw(branch_of(one, depth)) for one in branches]
        elif kind == "subflow":
            step["mode"] = draw(st.sampled_from(["next", "fork", "lazy_next", "lazy_fork"]))
            step["chart"] = draw(programs(depth=depth - 1))
            step["options"] = {
                "input": [{"to": "a", "value": 1}],
                "output": [{"to": f"{id}r", "from": "a"}],
                "propagateBreak": draw(st.booleans()),
            }
        else:
            step["items"] = {"value": draw(st.sampled_from([[], [1], [1, 2]]))}
            step["branch"] = {"chart": draw(programs(depth=depth - 1))}
            step |= {"maxBranches": 2, "into": f"{id}out", "failFast": draw(st.booleans())}
        steps.append(step)
    if draw(st.booleans()):
        loop = [{"op": "add", "key": "pass", "n": 1}]
        loop.append({"op": "break_if", "key": "pass", "cmp": "gte", "value": 2})
        steps.insert(0, {"add": "function", "name": "B", "id": "body", "ops": loop})
        steps.append({"add": "loop_to", "target": "body"})
    ops = draw(st.lists(OP, max_size=3))
    return {"start": {"name": "Seed", "id": "seed", "ops": ops}, "steps": steps}


@st.composite
def branch_of(draw, id, depth):
    kind = draw(st.sampled_from(["function", "function", "pausable", "subflow"]))
    branch = {"kind": kind, "id": id, "name": id.upper(), "ops": draw(stage_ops())}
    if kind == "pausable":
        branch["execute"] = [{"op": "return", "value": "q"}]
        branch["resume"] = [{"op": "resume_to", "to": "ans"}]
    if kind == "subflow":
        if not depth:
            return {**branch, "kind": "function"}
        branch["chart"] = draw(programs(depth=depth - 1))
        branch["options"] = {"output": [{"to": f"{id}r", "from": "a"}]}
    return branch


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(programs(), st.lists(st.sampled_from(["same", "fresh"]), max_size=3))
def test_the_laws_hold_of_any_program(made, modes):
    resumes = [{"mode": mode, "input": "yes"} for mode in modes]
    found = replay_run.replay(case_of(made, resume=resumes))
    assert broken_laws(found) == []
