"""Sequences drawn at random, in the format of the recordings."""

from __future__ import annotations

from hypothesis import strategies as st

TOOLS = ["scan", "read", "Read", "ask"]
tool = st.sampled_from(TOOLS)
probe = st.builds(
    lambda name, match: {"name": name, "match": match},
    st.sampled_from(["p", "q"]),
    st.sampled_from(["auth", "scan", "{", " ", "AUTH"]),
)
probes = st.lists(probe, max_size=2)
arguments = st.sampled_from([None, {}, {"index": "auth"}, "auth", ["x", None], {"ä": "Auth"}])


@st.composite
def steps(draw):
    return {
        "id": draw(st.sampled_from(["a", "b", "c", "d"])),
        "description": "",
        "expected_tools": draw(st.lists(tool, max_size=3)),
        "hints": draw(st.lists(st.sampled_from(["h1", "h2"]), max_size=2, unique=True)),
        "required": draw(st.sampled_from([True, True, False])),
        "required_probes": draw(probes),
        "uses": draw(st.lists(st.sampled_from(["s", "t", "none"]), max_size=3)),
        "min_tool_calls": draw(st.none() | st.integers(0, 3)),
        "max_tool_calls": draw(st.none() | st.integers(-1, 3)),
    }


skill = st.fixed_dictionaries(
    {},
    optional={
        "allowed_tools": st.none() | st.lists(tool, max_size=2),
        "required_probes": probes,
        "min_tool_calls": st.integers(0, 3),
        "max_tool_calls": st.integers(0, 3),
    },
)
call = st.fixed_dictionaries(
    {"tool": tool, "args": arguments}, optional={"outcome": st.sampled_from(["ok", "error"])}
)
move = st.one_of(
    call.map(lambda one: {"op": "call", **one}),
    call.map(lambda one: {"op": "call", **one}),
    call.map(lambda one: {"op": "record", "tool": one["tool"], "args": one["args"]}),
    st.lists(call, max_size=4).map(lambda calls: {"op": "batch", "calls": calls}),
    tool.map(lambda one: {"op": "validate", "tool": one}),
    st.sampled_from(
        [
            {"op": "complete"},
            {"op": "complete", "result": "done"},
            {"op": "skip"},
            {"op": "skip", "reason": ""},
            {"op": "skip", "reason": "no need"},
            {"op": "fail", "error": "it broke"},
            {"op": "fail", "error": ""},
            {"op": "reset"},
            {"op": "hints"},
        ]
    ),
)
sequences = st.fixed_dictionaries(
    {
        "playbook": st.fixed_dictionaries(
            {"id": st.just("x"), "name": st.just("y"), "steps": st.lists(steps(), max_size=4)},
            optional={"allow_extra_tools": st.booleans(), "strict_sequence": st.booleans()},
        ),
        "events": st.lists(move, max_size=12),
    },
    optional={
        "skills": st.fixed_dictionaries({}, optional={"s": skill, "t": skill}),
        "block_violations": st.booleans(),
        "record_violations": st.booleans(),
        "driver": st.sampled_from(["hook", "enforcer"]),
    },
)
