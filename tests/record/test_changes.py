"""Published commits, folded into what they changed: held to the rules of the published form."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._frozen import deep_merge
from runbook_nb._text import MISSING
from runbook_nb.errors import LoadError
from runbook_nb.record.bundles import SEPARATOR, apply_bundle
from runbook_nb.record.changes import fold
from runbook_nb.record.masked import Masked


def bundle(*rows, hidden=()):
    """A commit of rows: path, verb, value."""
    made = {"trace": [], "overwrite": {}, "updates": {}, "redactedPaths": list(hidden)}
    for path, verb, *value in rows:
        made["trace"].append({"path": path, "verb": verb})
        home = made["updates" if verb == "merge" else "overwrite"]
        *around, last = path.split(SEPARATOR)
        for segment in around:
            home = home.setdefault(segment, {})
        if value:
            home[last] = value[0]
    return made


def told(state, *rows, **options):
    changes = fold(state, bundle(*rows, **options))
    return [(change.key, change.value, change.partial) for change in changes]


def test_what_is_set_and_deleted():
    state = {"a": 1, "b": 2}
    assert told(state, ("a", "set", 3), ("b", "delete"), ("c", "set", None)) == [
        ("a", 3, None),
        ("b", MISSING, None),
        ("c", None, None),
    ]
    assert state == {"a": 3, "c": None}


def test_set_to_nothing_is_deleted():
    state = {"a": 1}
    assert told(state, ("a", "set")) == [("a", MISSING, None)]
    assert state == {}


def test_a_key_touched_twice_has_changed_once():
    assert told({}, ("a", "set", 1), ("b", "set", 2), ("a", "set", 1)) == [
        ("a", 1, None),
        ("b", 2, None),
    ]


def test_a_list_that_grew():
    state = {"xs": [1]}
    assert told(state, ("xs", "append", [2, 3])) == [("xs", [1, 2, 3], None)]


def test_inside_a_value():
    state = {"who": {"name": "Ada", "tags": ["x"]}}
    path = SEPARATOR.join(("who", "name"))
    assert told(state, (path, "set", "Bea")) == [("who", {"name": "Bea", "tags": ["x"]}, None)]


def test_values_are_never_changed_in_place():
    before = {"who": {"name": "Ada"}, "xs": [1]}
    state = copy.copy(before)
    kept = copy.deepcopy(before)
    fold(state, bundle(("who", "merge", {"age": 3}), ("xs", "append", [2])))
    assert before == kept


def test_a_merge_is_told_as_one_where_ours_comes_to_the_same():
    state = {"who": {"name": "Ada"}}
    assert told(state, ("who", "merge", {"age": 36})) == [
        ("who", {"name": "Ada", "age": 36}, {"age": 36})
    ]
    assert told({}, ("who", "merge", {"age": 36})) == [("who", {"age": 36}, {"age": 36})]


@pytest.mark.parametrize(
    ("old", "partial", "new"),
    [
        ({"xs": [1]}, {"xs": [2]}, {"xs": [1, 2]}),
        ({"xs": [1]}, {"xs": []}, {"xs": []}),
        ([1], [1, 2], [1, 2]),
        (5, {}, 5),
    ],
)
def test_a_merge_that_ours_would_do_otherwise_is_told_by_its_outcome(old, partial, new):
    ((_, value, found),) = told({"k": old}, ("k", "merge", partial))
    assert value == new
    assert found is None or deep_merge(old, found) == new


def test_a_merge_among_other_changes_is_told_by_the_outcome():
    rows = (("k", "set", {"a": 1}), ("k", "merge", {"b": 2}))
    assert told({}, *rows) == [("k", {"a": 1, "b": 2}, None)]


def test_within_a_path_what_lies_there_is_of_interest_alone():
    inside = SEPARATOR.join(("runs", "0"))
    made = bundle((f"{inside}{SEPARATOR}n", "set", 1), ("other", "set", 2), (inside, "set", {}))
    made["overwrite"]["runs"] = {"0": {"n": 1}}
    state = {}
    assert [(c.key, c.value) for c in fold(state, made, ("runs", "0"))] == [("n", 1)]
    assert state == {"n": 1}


def test_a_commit_without_an_order_is_read_key_by_key():
    made = {"overwrite": {"a": 1}, "updates": {"b": {"x": 1}}}
    assert [(c.key, c.value, c.partial) for c in fold({}, made)] == [
        ("a", 1, None),
        ("b", {"x": 1}, {"x": 1}),
    ]
    assert fold({}, {}) == []


def test_what_is_hidden_is_marked_and_nothing_else():
    ssn = SEPARATOR.join(("patient", "ssn"))
    second = SEPARATOR.join(("rows", "1", "key"))
    state = {}
    fold(
        state,
        bundle(
            ("token", "set", "REDACTED"),
            ("patient", "set", {"name": "REDACTED", "ssn": "REDACTED"}),
            ("rows", "set", [{"key": "a"}, {"key": "REDACTED"}]),
            hidden=["token", ssn, second, "nowhere", SEPARATOR.join(("rows", "9", "key"))],
        ),
    )
    assert state["token"].__class__ is Masked
    assert state["patient"]["ssn"].__class__ is Masked
    assert state["patient"]["name"].__class__ is str
    assert [row["key"].__class__ for row in state["rows"]] == [str, Masked]


def test_a_hidden_value_over_a_hidden_one_is_a_change():
    state = {}
    fold(state, bundle(("token", "set", "REDACTED"), hidden=["token"]))
    first = state["token"]
    fold(state, bundle(("token", "set", "REDACTED"), hidden=["token"]))
    assert state["token"] != first
    assert state["token"] == "REDACTED"


@pytest.mark.parametrize(
    "odd",
    [
        {"trace": 3},
        {"trace": [3]},
        {"trace": [{"verb": "set"}]},
        {"trace": [], "overwrite": 3},
    ],
)
def test_what_is_no_commit_is_refused_with_its_place(odd):
    with pytest.raises(LoadError) as refused:
        fold({}, {"runtimeStageId": "a#0", **odd})
    assert refused.value.code == "bad_recording"
    assert refused.value.where.startswith("commitLog, a#0")
    assert refused.value.fix


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
PATHS = st.lists(KEYS, min_size=1, max_size=2).map(SEPARATOR.join)
ROWS = st.lists(
    st.tuples(KEYS, st.sampled_from(["set", "merge", "append"]), VALUES)
    | st.tuples(PATHS, st.just("delete")),
    max_size=5,
)


@given(st.dictionaries(KEYS, VALUES), ROWS)
def test_folding_leads_where_the_published_rules_lead(state, rows):
    made = bundle(*rows)
    after = apply_bundle(state, made)
    before, now = copy.deepcopy(state), dict(state)
    changes = fold(now, made)
    assert now == after
    assert state == before
    assert [c.key for c in changes] == list(
        dict.fromkeys(row["path"].split(SEPARATOR)[0] for row in made["trace"])
    )
    for change in changes:
        assert change.value == after.get(change.key, MISSING)
        if change.partial is not None:
            assert deep_merge(state.get(change.key), change.partial) == change.value
