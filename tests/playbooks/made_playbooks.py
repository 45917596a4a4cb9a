"""Playbooks of every sort, for laws that hold of all of them."""

from hypothesis import strategies as st

from runbook_nb.playbooks import Playbook

words = st.text("abcé ()\n\"'<&=_-", max_size=8)
names = st.text("abc-_.", min_size=1, max_size=4)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | words
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
mappings = st.dictionaries(words, values, max_size=3)
counts = st.none() | st.integers(-2, 9)
extensions = st.dictionaries(names.map("x-{}".format), values, max_size=2)
probes = st.fixed_dictionaries(
    {"name": words, "match": words.filter(bool)}, optional={"description": words}
)
steps = st.builds(
    lambda fields, more: {**fields, **more},
    st.fixed_dictionaries(
        {"id": names, "description": words},
        optional={
            "expected_tools": st.lists(words, max_size=3),
            "hints": st.lists(words, max_size=2),
            "required": st.booleans(),
            "validation": mappings,
            "uses": st.lists(words, max_size=2),
            "required_probes": st.lists(probes, max_size=2),
            "min_tool_calls": st.none() | st.integers(0, 5),
            "max_tool_calls": counts,
            "timeout_seconds": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "metadata": mappings,
            "checks": st.lists(mappings, max_size=2),
            "kind": st.sampled_from([None, "manual", "approval"]),
            "requires": st.lists(words, max_size=2),
        },
    ),
    extensions,
)
playbooks = st.builds(
    lambda fields, more: Playbook(**fields, **more),
    st.fixed_dictionaries(
        {"id": words, "name": words, "steps": st.lists(steps, max_size=4)},
        optional={
            "description": words,
            "version": words,
            "strict_sequence": st.booleans(),
            "allow_extra_tools": st.booleans(),
            "max_iterations": counts,
            "metadata": mappings,
            "tags": st.lists(words, max_size=3),
        },
    ),
    extensions,
)
