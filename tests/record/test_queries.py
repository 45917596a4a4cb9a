"""Questions to commit logs: those recorded of the upstream engine, and what else they answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import DefinitionError, LoadError
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.commits import CommitLog

HERE = Path(__file__).parents[1] / "oracle" / "data"
CASES = Path(os.environ.get("RUNBOOK_NB_ORACLE") or HERE) / "chart" / "trace_queries.json"


# -- the recorded questions --------------------------------------------------------------------


def compare(kind: str, actual: Any, limit: Any) -> bool:
    return {"gte": actual >= limit, "gt": actual > limit, "eq": actual == limit}[kind]


def do(scope: Any, op: dict[str, Any]) -> None:
    kind, key = op["op"], op.get("key")
    if kind == "set":
        scope[key] = op["value"]
    elif kind == "get":
        scope.get(key)
    elif kind == "append":
        scope[key] = [*scope.get(key, []), op["value"]]
    elif kind == "push":
        scope.append(key, op["value"])
    elif kind == "add":
        scope[key] = scope.get(key, 0) + op["n"]
    elif kind == "update":
        scope.merge(key, op["value"])
    elif kind == "delete":
        scope.delete(key)
    elif kind == "copy":
        scope[op["to"]] = scope.get(op["from"])
    elif kind == "break_if":
        if compare(op["cmp"], scope.get(key), op["value"]):
            scope.stop()
    else:
        pytest.skip(f"no reading of {kind} here")


def stage(ops: list[dict[str, Any]]) -> Any:
    def fn(scope: Any) -> None:
        for op in ops:
            do(scope, op)

    return fn


def program(case: dict[str, Any]) -> Any:
    start = case["program"]["start"]
    builder = flow_chart("c", stage(start["ops"]), id=start["id"], stage_name=start["name"])
    for step in case["program"]["steps"]:
        if step["add"] == "function":
            builder.add_function(step["name"], stage(step["ops"]), id=step["id"])
        elif step["add"] == "loop_to":
            builder.loop_to(step["target"])
        else:
            pytest.skip(f"no reading of {step['add']} here")
    return builder.build()


def ask(log: CommitLog, query: list[Any]) -> Any:
    name, *args = query
    if name in ("find_commit", "find_last_writer"):
        found = log.first(*args) if name == "find_commit" else log.last_writer(*args)
        return MISSING if found is None else found
    if name == "find_commits":
        return [commit.runtime_stage_id for commit in log.of(*args)]
    if name == "commit_index_of":
        return log.index_of(*args)
    if name == "commit_value_at":
        return log.value_at(*args, default=MISSING)
    if name == "state_at":
        return log.state_at(*args).to_dict()
    if name == "array_births":
        return log.births(*args).to_dict()
    if name == "commit_stops":
        return [stop.to_dict() for stop in log.stops()]
    if name == "causal_chain":
        return [node.to_dict() for node in log.causes(step=args[0]).nodes]
    if name == "slice_for_key":
        found = log.causes(key=args[0])
        return {
            "missing": MISSING if found.missing is None else found.missing,
            "root": MISSING if found.root is None else found.root,
            "nodes": [node.id for node in found.nodes],
        }
    return pytest.skip(f"no reading of the question {name} here")


def told(name: str, found: Any) -> Any:
    if found is MISSING or name not in ("find_commit", "find_last_writer"):
        return found
    if name == "find_commit":
        return found.runtime_stage_id
    return {"runtimeStageId": found.runtime_stage_id, "idx": found.index}


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if value.get("$js") == "undefined":
            return MISSING
        return {key: decode(item) for key, item in value.items()}
    return value


def same(name: str, found: Any, wanted: Any) -> bool:
    if name == "array_births":
        # Upstream gives the third pass of a loop a frame name of its own.
        for births in (found, wanted):
            births["births"] = [
                {**birth, "stageName": birth["stageName"].split(".")[0]}
                for birth in births["births"]
            ]
    return deep_equal(found, wanted)


def cases() -> list[dict[str, Any]]:
    return json.loads(CASES.read_text("utf-8"))["cases"] if CASES.exists() else []


@pytest.mark.parametrize("read_back", [False, True], ids=["run", "read back"])
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_every_recorded_question_is_answered_as_recorded(case, read_back):
    log = program(case).run_sync().commits
    if read_back:
        written = json.loads(json.dumps(log.encoded("full", provenance=True)))
        log = CommitLog.from_published(written, {}, "full")
    for row in case["queries"]:
        name = row["query"][0]
        found = told(name, ask(log, row["query"]))
        assert same(name, found, decode(row["result"])), row["query"]


# -- more questions ----------------------------------------------------------------------------


def steps(*fns: Any, state: Any = None) -> CommitLog:
    builder = flow_chart("c", fns[0], id="s0")
    for place, fn in enumerate(fns[1:], 1):
        builder.add_function(f"S{place}", fn, id=f"s{place}")
    return builder.build().run_sync(state=state).commits


def test_the_state_given_to_a_run_is_its_base():
    log = steps(lambda s: s.set("out", s["seeded"]), state={"seeded": 7, "gone": 1})
    assert log.state_at(-1).state == {"seeded": 7, "gone": 1}
    assert log.state_at(0).to_dict() == {
        "state": {"seeded": 7, "gone": 1, "out": 7},
        "basis": "initial+log",
        "redacted": False,
        "redactedPaths": [],
        "throughCommitIdx": 0,
    }
    assert log.last_writer("seeded") is None
    assert log.value_at(-1, "seeded") == 7


def test_indices_before_the_base_are_refused_and_those_past_the_end_mean_it():
    log = steps(lambda s: s.set("a", 1), lambda s: s.set("a", 2))
    assert log.state_at(5).through == 1
    assert log.value_at(9, "a") == 2
    for question in (lambda: log.state_at(-2), lambda: log.value_at(-2, "a")):
        with pytest.raises(IndexError, match="there is no commit -2"):
            question()


def test_a_missing_value_is_what_was_asked_for_instead():
    log = steps(lambda s: s.set("a", None))
    assert log.value_at(0, "a", "default") is None
    assert log.value_at(0, "b", "default") == "default"


def test_the_last_writer_is_the_last_that_changed_something():
    log = steps(
        lambda s: s.set("a", 1),
        lambda s: s.set("a", 1),
        lambda s: (s.set("a", 5), s.set("a", 1)),
        lambda s: s.set("a", 2),
        lambda s: s.delete("a"),
    )
    found = [log.last_writer("a", before) for before in range(6)]
    assert [None if c is None else c.index for c in found] == [None, 0, 0, 0, 3, 4]
    assert log.last_writer("a", -3) is None
    assert log.last_writer("a", 99).index == 4
    assert log.first("s1", "a") is None
    assert [c.index for c in log.of("s3", "a")] == [3]
    assert log.first("nobody") is None


def test_keys_stand_in_the_order_they_came():
    log = steps(
        lambda s: s.update({"a": 1, "b": 2}),
        lambda s: (s.delete("a"), s.set("c", 3), s.set("a", 4)),
        state={"z": 0},
    )
    assert list(log.state_at(0).state) == ["z", "a", "b"]
    assert list(log.state_at(1).state) == ["z", "b", "c", "a"]


def test_items_are_born_where_the_list_up_to_them_last_changed():
    log = steps(
        lambda s: s.append("l", "a"),
        lambda s: (s.append("l", "b"), s.append("l", "c")),
        lambda s: s.set("l", ["a", "X", "c", "d"]),
        lambda s: s.append("l", "e"),
        lambda s: s.set("l", "text"),
        lambda s: s.set("l", ["a"]),
    )

    def births(index):
        return [(b.commit_index, b.verb, b.basis, b.value) for b in log.births("l", index).births]

    assert births(1) == [
        (0, "append", "recorded", "a"),
        (1, "append", "recorded", "b"),
        (1, "append", "recorded", "c"),
    ]
    assert births(3) == [
        (0, "append", "recorded", "a"),
        (2, "set", "prefix-inference", "X"),
        (2, "set", "prefix-inference", "c"),
        (2, "set", "prefix-inference", "d"),
        (3, "append", "recorded", "e"),
    ]
    assert births(4) == []
    assert births(5) == [(5, "set", "prefix-inference", "a")]
    assert log.births("nothing").to_dict() == {
        "key": "nothing",
        "atIdx": 5,
        "length": 0,
        "births": [],
    }


def test_items_of_the_first_state_were_there_before_any_commit():
    log = steps(lambda s: s.append("l", 2), state={"l": [1]})
    first, second = log.births("l").births
    assert (first.commit_index, first.runtime_stage_id, first.stage) == (-1, "", "")
    assert (second.commit_index, second.runtime_stage_id) == (0, "s0#0")
    assert len(log.births("l", -1)) == 1


def test_what_a_stage_read_of_its_own_writing_is_no_cause():
    def work(scope):
        scope["x"] = 1
        scope["y"] = scope["x"]
        scope["z"] = scope["a"]

    log = steps(lambda s: s.update({"a": 1, "x": 0}), work)
    (node, _) = log.causes(step="s1#1").nodes
    assert (node.parents, node.keys_written) == (("s0#0",), ("x", "y", "z"))
    assert log.causes(step="s1#1").nodes[1].linked_by == "a"
    assert log.causes(step="nobody#9").to_dict() == {
        "root": None,
        "nodes": [],
        "missing": "no-such-step",
    }
    assert log.causes(key="never").missing == "never-written"
    assert len(log.causes(key="z")) == 2


def test_ids_of_executions_are_found_and_stops_lead_along_them():
    log = steps(lambda s: None, lambda s: None)
    assert [log.index_of(f"s{n}#{n}") for n in range(3)] == [0, 1, -1]
    assert [(s.kind, s.id, s.commit_index) for s in log.stops()] == [
        ("start", "", -1),
        ("commit", "s0#0", 0),
        ("commit", "s1#1", 1),
        ("end", "", 1),
    ]


# -- logs that others wrote --------------------------------------------------------------------

#: As footprintjs writes it: a delete of a full log is a set to nothing, paths are joined.
FOREIGN = [
    {
        "idx": 0,
        "stage": "Seed",
        "stageId": "seed",
        "runtimeStageId": "seed#0",
        "overwrite": {"a": {"b": 1}, "t": [1]},
        "updates": {},
        "redactedPaths": [],
        "trace": [{"path": "a", "verb": "set"}, {"path": "t", "verb": "set"}],
        "tags": ["audit"],
        "untrackedSources": ["args"],
    },
    {
        "idx": 1,
        "stage": "Work",
        "stageId": "work",
        "runtimeStageId": "work#1",
        "overwrite": {"a": {"c": "REDACTED"}, "t": [2, 3]},
        "updates": {"a": {"d": [1]}},
        "redactedPaths": ["a\x1fc"],
        "trace": [
            {"path": "a\x1fc", "verb": "set", "readKeys": ["t"]},
            {"path": "a", "verb": "merge", "readKeys": ["t"]},
            {"path": "t", "verb": "append", "readKeys": ["t", "a"]},
            {"path": "gone", "verb": "set", "readKeys": []},
            {"path": "odd", "verb": "conjure"},
        ],
    },
    {
        "runtimeStageId": "end#2",
        "overwrite": {},
        "updates": {},
        "redactedPaths": [],
        "trace": [{"path": "t", "verb": "delete"}],
    },
]


def test_a_foreign_log_answers_the_same_questions():
    log = CommitLog.from_published(FOREIGN, {"gone": 5}, "delta", name="theirs")
    assert [c.runtime_stage_id for c in log] == ["seed#0", "work#1", "end#2"]
    assert (log[0].tags, log[0].sources, log[1].reads) == (("audit",), ("args",), ("t", "a"))
    assert (log[2].stage_id, log[2].stage) == ("end", "end")
    assert log[1].trace == (("a", "set"), ("t", "append"), ("gone", "delete"))
    assert log.state_at(1).to_dict() == {
        "state": {"a": {"b": 1, "c": "REDACTED", "d": [1]}, "t": [1, 2, 3]},
        "basis": "initial+log",
        "redacted": True,
        "redactedPaths": [["a", "c"]],
        "throughCommitIdx": 1,
        "skipped": 1,
    }
    assert log.state_at(0).redacted is False
    assert log.state_at(-1).state == {"gone": 5}
    assert "t" not in log.state_at(2).state
    assert [b.commit_index for b in log.births("t", 1).births] == [0, 1, 1]
    assert log.causes(step="work#1").nodes[1].id == "seed#0"
    assert log.last_writer("gone").index == 1
    assert repr(log) == "<Commits theirs · 3 commits>"
    assert len(log.whole()) == 3
    assert log.whole().logs == (log,)


def test_a_log_without_its_first_state_says_so():
    log = CommitLog.from_published(FOREIGN)
    assert log.state_at(0).basis == "log"


def test_what_was_read_cannot_be_changed_behind_the_log():
    mine = json.loads(json.dumps(FOREIGN))
    log = CommitLog.from_published(mine, {})
    mine[0]["overwrite"]["a"]["b"] = 99
    mine[0]["trace"].clear()
    assert log.value_at(0, "a") == {"b": 1}
    assert log[0].trace == (("a", "set"), ("t", "set"))


@pytest.mark.parametrize(
    ("bundles", "where"),
    [
        (["text"], "commitLog[0]"),
        ([FOREIGN[0], None], "commitLog[1]"),
        ([{"trace": [{"verb": "set"}]}], "commitLog[0].trace[0]"),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(bundles, where):
    with pytest.raises(LoadError) as caught:
        CommitLog.from_published(bundles)
    assert caught.value.where == where


def test_an_unknown_encoding_of_a_log_is_refused():
    with pytest.raises(DefinitionError, match="no encoding 'summary'"):
        CommitLog.from_published(FOREIGN, {}, "summary")


def test_a_foreign_log_can_be_written_in_the_other_encoding():
    log = CommitLog.from_published(FOREIGN, {"gone": 5}, "delta")
    again = CommitLog.from_published(log.encoded("full"), {"gone": 5})
    for index in range(-1, 3):
        assert deep_equal(again.state_at(index).state, log.state_at(index).state)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(), inner)),
    max_leaves=6,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "path": st.one_of(
                st.sampled_from(["a", "b", "a\x1fb"]),
                st.lists(st.sampled_from("ab"), min_size=1, max_size=3),
            ),
            "verb": st.sampled_from(["set", "merge", "append", "delete", "other"]),
        }
    ),
    max_size=4,
)
BUNDLES = st.lists(
    st.fixed_dictionaries(
        {
            "runtimeStageId": st.sampled_from(["x#0", "y#1", ""]),
            "overwrite": st.dictionaries(st.sampled_from("ab"), JSON, max_size=2),
            "updates": st.dictionaries(st.sampled_from("ab"), JSON, max_size=2),
            "trace": ROWS,
        }
    ),
    max_size=4,
)


@given(BUNDLES, st.dictionaries(st.sampled_from("ab"), JSON, max_size=2))
def test_any_bundles_give_the_states_that_applying_them_one_by_one_gives(bundles, base):
    from runbook_nb.record.bundles import apply_bundle

    log = CommitLog.from_published(bundles, base)
    state = dict(base)
    for index, bundle in enumerate(bundles):
        state = apply_bundle(state, bundle)
        assert deep_equal(log.state_at(index).state, state)
        for key in "ab":
            log.births(key, index)
            assert deep_equal(log.value_at(index, key, MISSING), state.get(key, MISSING))
    log.encoded("delta")
