"""The commit log: what each commit says, how it is written, and the laws of charts of all kinds."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._json import encode
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import DefinitionError, PathError
from runbook_nb.record.bundles import apply_bundle, deep_equal
from runbook_nb.record.commits import Commit, CommitLog
from runbook_nb.record.log import Code, Log, StageRef
from runbook_nb.record.replay import Replayed
from runbook_nb.record.shapes import replayed


def run_of(*fns, **more):
    builder = flow_chart("c", fns[0], id="s0")
    for place, fn in enumerate(fns[1:], 1):
        builder.add_function(f"S{place}", fn, id=f"s{place}")
    return builder.build().run_sync(**more)


# -- one commit --------------------------------------------------------------------------------


def busy(scope):
    scope["same"] = 1
    scope["same"] = 2
    scope["same"] = 1
    scope["other"] = float("nan")
    scope.delete("gone")
    scope.append("list", 1)
    scope.merge("map", {"x": 1})


def seed(scope):
    scope.update({"same": 1, "gone": 1, "other": float("nan"), "t": True, "map": {"y": 0}})
    scope["list"] = [0]


def test_a_commit_is_the_net_change_of_one_stage():
    commit = run_of(seed, busy).commits[1]
    assert isinstance(commit, Commit)
    assert commit.values == {"list": [0, 1], "map": {"x": 1, "y": 0}}
    assert commit.deleted == ("gone",)
    assert commit.trace == (("gone", "delete"), ("list", "append"), ("map", "merge"))
    assert [change.added for change in commit.changes] == [None, [1], {"x": 1}]
    assert [change.before for change in commit.changes] == [1, [0], {"y": 0}]
    assert [change.value for change in commit.changes] == [None, [0, 1], {"x": 1, "y": 0}]


def test_a_commit_is_written_whole_or_by_what_a_list_grew_by():
    commit = run_of(seed, busy).commits[1]
    head = {"idx": 1, "stage": "S1", "stageId": "s1", "runtimeStageId": "s1#1"}
    assert commit.to_dict() == {
        **head,
        "overwrite": {"gone": None, "list": [0, 1]},
        "updates": {"map": {"x": 1}},
        "redactedPaths": [],
        "trace": [
            {"path": "gone", "verb": "delete"},
            {"path": "list", "verb": "set"},
            {"path": "map", "verb": "merge"},
        ],
    }
    assert commit.to_dict("delta") == {
        **head,
        "overwrite": {"gone": None, "list": [1]},
        "updates": {"map": {"x": 1}},
        "redactedPaths": [],
        "trace": [
            {"path": "gone", "verb": "delete"},
            {"path": "list", "verb": "append"},
            {"path": "map", "verb": "merge"},
        ],
    }


def test_a_list_written_longer_is_appended_to_under_delta_alone():
    log = run_of(lambda s: s.set("l", [1, {"a": 2}]), lambda s: s.set("l", [*s["l"], 3])).commits
    assert log[1].trace == (("l", "set"),)
    assert log[1].to_dict()["overwrite"] == {"l": [1, {"a": 2}, 3]}
    delta = log[1].to_dict("delta")
    assert (delta["overwrite"], delta["trace"]) == (
        {"l": [3]},
        [{"path": "l", "verb": "append"}],
    )


def test_first_values_and_mixed_changes_are_set():
    def mixed(scope):
        scope.append("new", 1)
        scope.merge("fresh", {"a": 1})
        scope.merge("m", {"a": 2})
        scope["m"] = {"b": 3}
        scope["m2"] = 1
        scope.merge("m2", {"a": 1})

    log = run_of(lambda s: s.set("m", {"a": 1}), mixed).commits
    assert {verb for _, verb in log[1].trace} == {"set"}


def test_a_merge_that_readers_of_the_form_would_do_otherwise_is_written_as_set():
    # The form unites lists; the scope replaces them.
    log = run_of(lambda s: s.set("m", {"l": [1]}), lambda s: s.merge("m", {"l": [2]})).commits
    assert log[1].trace == (("m", "merge"),)
    written = log[1].to_dict()
    assert written["trace"] == [{"path": "m", "verb": "set"}]
    assert written["overwrite"] == {"m": {"l": [2]}}
    assert written["updates"] == {}


def test_two_merges_are_one_row():
    def twice(scope):
        scope.merge("m", {"a": {"x": 1}})
        scope.merge("m", {"a": {"y": 2}, "b": 3})

    log = run_of(lambda s: s.set("m", {"a": {"z": 0}}), twice).commits
    assert log[1].changes[0].added == {"a": {"x": 1, "y": 2}, "b": 3}
    assert log[1].to_dict()["updates"] == {"m": {"a": {"x": 1, "y": 2}, "b": 3}}


def test_a_list_that_grows_over_stages_is_in_each_commit_as_it_was_then():
    log = run_of(*(lambda s, n=n: s.append("xs", n) for n in range(3))).commits
    assert [commit.values["xs"] for commit in log] == [[0], [0, 1], [0, 1, 2]]
    assert [commit.changes[0].added for commit in log] == [None, [1], [2]]


def test_true_is_no_one_and_objects_that_do_not_compare_are_changed():
    import numpy as np

    def first(scope):
        scope["flag"], scope["array"], scope["n"] = 1, np.array([1, 2]), 1

    def second(scope):
        scope["flag"], scope["array"], scope["n"] = True, np.array([1, 2]), 1.0

    assert set(run_of(first, second).commits[1].values) == {"flag", "array"}


def test_what_a_commit_hands_out_cannot_change_the_record():
    import numpy as np

    log = run_of(lambda s: s.set("array", np.array([1, 2]))).commits
    log[0].values["array"][0] = 9
    assert log[0].values["array"].tolist() == [1, 2]
    log.state_at(0).state["array"][0] = 9
    log.value_at(0, "array")[0] = 9
    assert log[0].changes[0].value.tolist() == [1, 2]
    with pytest.raises(FrozenInstanceError):
        log[0].index = 5


def test_reads_sources_tags_and_provenance_are_told_where_there_are_any():
    def work(scope):
        scope.get("a")
        scope["x"] = 1
        scope["b"]
        scope["y"] = scope.args["who"]
        scope["x"] = 2

    chart = (
        flow_chart("c", lambda s: s.update({"a": 1, "b": 2}), id="seed", tags=["first", "audit"])
        .add_function("W", work, id="w")
        .build()
    )
    log = chart.run_sync({"who": "ann"}).commits
    assert (log[0].tags, log[0].reads, log[0].sources) == (("first", "audit"), (), ())
    assert (log[1].tags, log[1].reads, log[1].sources) == ((), ("a", "b"), ("args",))
    first, second = log.encoded(provenance=True)
    assert first["tags"] == ["first", "audit"]
    assert "untrackedSources" not in first
    assert second["untrackedSources"] == ["args"]
    assert second["trace"] == [
        {"path": "x", "verb": "set", "readKeys": ["a"]},
        {"path": "y", "verb": "set", "readKeys": ["a", "b"]},
    ]
    assert list(second) == [
        *("idx", "stage", "stageId", "runtimeStageId", "overwrite", "updates"),
        *("redactedPaths", "untrackedSources", "trace"),
    ]


def test_an_unknown_encoding_is_refused():
    log = run_of(lambda s: None).commits
    for ask in (lambda: log.encoded("fulll"), lambda: log[0].to_dict("tiny")):
        with pytest.raises(DefinitionError, match="no encoding"):
            ask()


# -- every step commits ------------------------------------------------------------------------


def fails(scope):
    scope["b"] = 2
    raise ValueError("boom")


def statuses(log):
    return [(c.runtime_stage_id, c.status) for c in log]


def test_a_failing_stage_commits_what_it_wrote():
    with pytest.raises(ValueError, match="boom") as caught:
        run_of(lambda s: s.set("a", 1), fails, lambda s: None)
    log = caught.value.run.commits
    assert statuses(log) == [("s0#0", "ok"), ("s1#1", "failed")]
    assert log[1].values == {"b": 2}
    assert log.encoded()[1]["status"] == "failed"


def test_a_failed_attempt_leaves_nothing():
    tries = []

    def flaky(scope):
        tries.append(1)
        scope["tmp"] = len(tries)
        scope.get("a")
        if len(tries) < 3:
            raise ValueError("again")

    chart = flow_chart("c", flaky, id="a", retry=rb.Retry(attempts=3)).build()
    log = chart.run_sync().commits
    assert [(c.values, c.reads) for c in log] == [({"tmp": 3}, ("a",))]


def test_deciders_forks_and_mounts_commit_once_each():
    inner = flow_chart("in", lambda s: s.set("w", s["v"]), id="in").build()
    chart = (
        flow_chart("c", lambda s: s.set("a", 5), id="seed")
        .add_decider("D", id="d", judge=lambda s: "x")
        .branch("x", lambda s: s.set("x", 1))
        .end()
        .add_subchart("Sub", inner, id="sub", inputs={"v": "a"}, outputs={"r": "w"})
        .add_fork("Fork", id="fork", merge="keys")
        .branch("c1", lambda s: s.set("one", 1))
        .branch("c2", inner, inputs={"v": "a"})
        .end()
        .add_function("End", lambda s: s.delete("a"), id="end")
        .build()
    )
    run = chart.run_sync()
    assert [(c.runtime_stage_id, c.trace) for c in run.commits] == [
        ("seed#0", (("a", "set"),)),
        ("d#1", ()),
        ("x#2", (("x", "set"),)),
        ("sub#3", (("r", "set"),)),
        ("fork#5", (("one", "set"),)),
        ("end#6", (("a", "delete"),)),
    ]
    assert [(log.path, log.entered, statuses(log)) for log in run.commits.whole().logs] == [
        ("", None, statuses(run.commits)),
        ("sub", "sub#3", [("sub/in#4", "ok")]),
        ("fork~c1", "fork#5", [("c1#0", "ok")]),
        ("fork~c2", "fork#5", [("c2#0", "ok")]),
        ("c2", "c2#0", [("c2/in#1", "ok")]),
    ]
    sub = run.commits.whole().log("sub")
    assert sub.state_at(-1).state == {"v": 5}
    assert sub.state_at(0).state == {"v": 5, "w": 5}
    # A child of a fork begins with what the fork found.
    assert run.commits.whole().log("fork~c1").state_at(-1).state == {"a": 5, "x": 1, "r": 5}


def fan(work=lambda s: s.set("v", s.args["item"]), items=(1, 2)):
    each = flow_chart("e", work, id="load").build()
    return (
        flow_chart("c", lambda s: s.set("xs", list(items)), id="seed")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["xs"], branch=each, max_branches=9, into="out"
        )
        .build()
    )


def test_entering_a_branch_is_a_step_and_commits_nothing():
    whole = fan().run_sync().commits.whole()
    assert [(c.path, c.index, c.runtime_stage_id, c.trace) for c in whole] == [
        ("", 0, "seed#0", (("xs", "set"),)),
        ("", 1, "each#1", (("out", "set"),)),
        ("each~0", -1, "each~0#1", ()),
        ("each~0", 0, "each~0/load#0", (("v", "set"),)),
        ("each~1", -1, "each~1#1", ()),
        ("each~1", 0, "each~1/load#0", (("v", "set"),)),
    ]
    assert len(whole) == len(list(whole)) == 6
    assert whole[2].stage == "Each [0]"
    assert [c.index for c in whole[1:3]] == [1, -1]


def test_a_failed_branch_says_so():
    def work(scope):
        scope["v"] = 1
        raise ValueError("no")

    whole = fan(work).run_sync().commits.whole()
    assert [c.status for c in whole] == ["ok", "ok", "failed", "failed", "failed", "failed"]


def test_what_waits_for_an_answer_is_paused_with_all_around_it():
    def ask(scope):
        scope["kept"] = "no"
        scope["answer"] = interrupt(scope, "sure?")

    inner = flow_chart("in", ask, id="ask").build()
    chart = (
        flow_chart("c", lambda s: s.set("a", 1), id="seed")
        .add_subchart("Sub", inner, id="sub", outputs={"got": "answer"})
        .build()
    )
    run = chart.run_sync()
    assert statuses(run.commits.whole()) == [
        ("seed#0", "ok"),
        ("sub#1", "paused"),
        ("sub/ask#2", "paused"),
    ]
    # What a stage wrote before its question is not kept: it will run again.
    assert run.commits.whole()[2].changes == ()
    done = chart.resume_sync(run.checkpoint, "yes")
    assert statuses(done.commits.whole()) == [
        ("seed#0", "ok"),
        ("sub#1", "ok"),
        ("sub/ask#2", "paused"),
        ("sub/ask#3", "ok"),
    ]
    assert done.commits[1].values == {"got": "yes"}


def test_a_fan_out_with_a_waiting_branch_is_paused():
    run = fan(lambda s: interrupt(s, "sure?") if s.args["item"] == 2 else None).run_sync()
    assert statuses(run.commits) == [("seed#0", "ok"), ("each#1", "paused")]
    done = fan(lambda s: interrupt(s, "sure?") if s.args["item"] == 2 else None).resume_sync(
        run.checkpoint, "yes"
    )
    assert statuses(done.commits) == [("seed#0", "ok"), ("each#1", "ok")]


def test_a_mount_that_failed_inside_failed():
    chart = (
        flow_chart("c", lambda s: None, id="seed")
        .add_subchart("Sub", flow_chart("in", fails, id="in").build(), id="sub")
        .build()
    )
    with pytest.raises(ValueError, match="boom") as caught:
        chart.run_sync()
    assert statuses(caught.value.run.commits.whole()) == [
        ("seed#0", "ok"),
        ("sub#1", "failed"),
        ("sub/in#2", "failed"),
    ]


def test_a_chart_mounted_again_has_a_log_of_its_own():
    inner = flow_chart("in", lambda s: s.set("w", s["n"]), id="in").build()
    rules = rb.RuleSet("r", "1", [rb.Rule({"n": {"lt": 3}}, "again")], default="done")
    chart = (
        flow_chart("c", lambda s: s.set("n", 0), id="seed")
        .add_function("Count", lambda s: s.set("n", s["n"] + 1), id="count")
        .add_subchart("Sub", inner, id="sub", inputs={"n": "n"})
        .add_decider("More", id="more", rules=rules)
        .branch("again", lambda s: None, loop_to="count")
        .branch("done", lambda s: None)
        .end()
        .build()
    )
    whole = chart.run_sync().commits.whole()
    logs = [log for log in whole.logs if log.path == "sub"]
    assert [log.state_at(0).state for log in logs] == [{"n": n, "w": n} for n in (1, 2, 3)]
    assert [log.entered for log in logs] == ["sub#2", "sub#7", "sub#12"]
    assert whole.log("sub").entered == "sub#12"
    assert whole.log("sub", "sub#7").state_at(0).state == {"n": 2, "w": 2}
    with pytest.raises(PathError, match="began"):
        whole.log("sub", "sub#0")
    with pytest.raises(PathError) as caught:
        whole.log("sup")
    assert caught.value.fix == "did you mean 'sub'?"


def test_hand_made_logs_that_leave_things_out_are_read_all_the_same():
    log, a, lost = Log(), StageRef("a", "A", "stage"), StageRef("x", "X", "stage", "gone/")

    def add(kind, ref, key=None, *values):
        log.root.add(log.number(Code(kind, ref, key)), *values)

    add("write", a, "early", 1)  # before any stage began
    add("stage", a)
    add("write", a, "n", 1)
    add("leave", a, "ok")  # nothing was entered
    add("stage", lost)  # nobody entered its chart
    add("write", lost, "m", 2)
    add("loop", a, "nowhere", 1)
    add("ended", a, "before", {})
    track = Replayed(log, log.root.codes, log.root.values)
    assert [track.runtime_id(step) for step in track.steps] == ["a#0", "gone/x#1"]
    assert track.top.timeline.state(99) == {"n": 1}
    assert track.levels[1].timeline.state(99) == {"m": 2}


# -- how logs look -----------------------------------------------------------------------------


def test_a_log_is_a_table_with_one_row_per_commit():
    log = run_of(seed, busy, lambda s: None).commits
    assert repr(log) == "<Commits c · 3 commits>"
    assert str(log) == "\n".join(
        [
            "Commits c · 3 commits",
            "  s0#0  c   set same, set gone, set other +3 more",
            "  s1#1  S1  delete gone, append list, merge map",
            "  s2#2  S2",
        ]
    )
    bundle, _ = log._repr_mimebundle_()
    assert "s1#1" in bundle["text/html"]
    assert "in the order the stages began" in bundle["text/html"]


def test_a_long_log_says_how_much_of_it_is_shown():
    log = run_of(*[lambda s: None] * 60).commits
    assert "10 of 60 rows" in str(log)
    assert "50 more rows: commits.to_frame()" in str(log)
    html = log._repr_mimebundle_()[0]["text/html"]
    assert "50 of 60 shown" in html
    assert "commits.to_frame()" in html


def test_a_whole_log_names_where_each_commit_stands():
    whole = fan().run_sync().commits.whole()
    assert str(whole).splitlines()[:5] == [
        "Commits c · whole run · 6 commits in 3 logs",
        "  seed#0                 c       set xs",
        "  each#1                 Each    set out",
        "  each~0#1       each~0  Each [0]",
        "  each~0/load#0  each~0  e       set v",
    ]


def test_a_commit_shows_its_changes():
    commit = run_of(seed, busy).commits[1]
    assert repr(commit) == "<Commit s1#1 · delete gone, append list, merge map>"
    assert str(commit).splitlines()[1:4] == [
        "  gone  delete  value deleted",
        "  list  append  value (2 items)",
        "  map   merge   value {y, x}",
    ]
    assert "no change" in str(run_of(lambda s: None).commits[0])


def test_a_frame_has_one_row_per_change():
    frame = fan().run_sync().commits.whole().to_frame()
    assert list(frame["runtimeStageId"]) == [
        *("seed#0", "each#1", "each~0#1", "each~0/load#0", "each~1#1", "each~1/load#0")
    ]
    assert list(frame["verb"].fillna("-")) == ["set", "set", "-", "set", "-", "set"]
    assert list(run_of(seed, busy).commits.to_frame()["key"])[-3:] == ["gone", "list", "map"]


def test_hostile_names_are_shown_as_text():
    name = "</td><img src=x onerror=alert(1)>\u202e"
    log = flow_chart("c", lambda s: s.set(name, name), id="a", stage_name=name).build()
    bundle = log.run_sync().commits._repr_mimebundle_()[0]
    assert "<img src=x" not in bundle["text/html"]
    assert "\u202e" not in bundle["text/plain"] + bundle["text/html"]


def test_a_log_compares_by_what_it_says():
    one, other = run_of(seed, busy).commits, run_of(seed, busy).commits
    assert one == other
    assert one == list(other)
    assert one[0:1] == [other[0]]
    assert one != run_of(seed).commits
    assert one != "log"
    assert next(reversed(one)) == one[1] == one[-1]


# -- what a policy hides -----------------------------------------------------------------------


def test_hidden_values_are_hidden_whole_or_in_part_and_their_paths_are_named():
    def write(scope):
        scope["token"] = "abcdefgh"
        scope["rows"] = [{"token": "abcdefgh", "name": "n"}]
        scope["plain"] = 1

    def more(scope):
        scope.append("rows", {"token": "zyxwvuts", "name": "with zyxwvuts"})
        scope.append("token_log", "abcdefgh")

    log = run_of(write, more, redact={"keys": ["token"]}).commits
    assert log[0].redacted == ("token", "rows")
    assert log.encoded()[0]["redactedPaths"] == ["token", "rows\x1f0\x1ftoken"]
    delta = log.encoded("delta")[1]
    hidden = {"token": "[REDACTED]", "name": "with [REDACTED]"}
    assert delta["overwrite"] == {"rows": [hidden], "token_log": ["[REDACTED]"]}
    told = ["rows\x1f1\x1ftoken", "rows\x1f1\x1fname", "token_log\x1f0"]
    assert delta["redactedPaths"] == told
    assert log.encoded()[1]["redactedPaths"] == ["rows\x1f0\x1ftoken", *told]
    assert log[1].changes[0].added == [hidden]
    found = log.state_at(0)
    assert found.redacted
    assert found.redacted_paths == (("token",), ("rows", "0", "token"))


def test_positions_a_policy_names_are_those_of_the_whole_list():
    log = run_of(
        lambda s: s.set("rows", ["open-one", "open-two"]),
        lambda s: s.set("rows", [*s["rows"], "secret-three", "open-four"]),
        redact={"paths": ["rows[2]"]},
    ).commits
    assert log.encoded("delta")[1]["overwrite"] == {"rows": ["[REDACTED]", "open-four"]}


def test_a_list_that_grows_in_a_loop_is_written_in_one_pass_over_it(monkeypatch):
    from runbook_nb.record.redact import Redactor

    seen = []
    scrub = Redactor.scrub
    monkeypatch.setattr(Redactor, "scrub", lambda self, v: (seen.append(1), scrub(self, v))[1])
    log = run_of(*[lambda s: s.append("l", {"name": "n"})] * 40, redact={"keys": ["token"]}).commits
    seen.clear()
    assert len(log.encoded("delta")) == 40
    assert len(seen) < 3 * 40


def test_a_hidden_list_that_grows_stays_hidden_for_every_reader():
    log = run_of(
        lambda s: s.append("pins", "first-secret"),
        lambda s: s.append("pins", "other-secret"),
        redact={"keys": ["pins"]},
    ).commits
    state = {}
    for bundle in log.encoded("delta"):
        state = apply_bundle(state, bundle)
    assert state == {"pins": "[REDACTED]"}


# -- laws over charts of all kinds -------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "n"])
LEAVES = st.one_of(st.integers(0, 3), st.sampled_from(["x", None, True, 1.5]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=5,
)
OPS = st.one_of(
    st.tuples(st.just("write"), KEYS, VALUES),
    st.tuples(st.just("read"), KEYS, st.none()),
    st.tuples(st.just("append"), st.sampled_from(["list", "rows"]), VALUES),
    st.tuples(
        st.just("merge"),
        st.sampled_from(["map", "a"]),
        st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=2),
    ),
    st.tuples(st.just("delete"), st.sampled_from(["a", "b", "list", "map"]), st.none()),
    st.tuples(st.just("grow"), st.sampled_from(["list", "rows"]), VALUES),
)


@dataclass
class Spec:
    """One stage: its kind, what it does, the charts inside."""

    kind: str
    ops: list[tuple[str, str, Any]]
    inner: list[list[Spec]]
    fault: str | None = None
    times: int = 0


def specs(depth: int, faults: tuple[str, ...]) -> st.SearchStrategy[Spec]:
    kinds = ["stage", "stage", "pausable"]
    if depth:
        kinds += ["decider", "fork", "selector", "subchart", "fan_out", "loop"]
    inner = (
        st.deferred(
            lambda: st.lists(charts(depth - 1, faults), min_size=1, max_size=1 + depth // 2)
        )
        if depth
        else st.just([])
    )
    return st.builds(
        Spec,
        st.sampled_from(kinds),
        st.lists(OPS, max_size=3),
        inner,
        st.sampled_from([None] * 6 + list(faults)) if faults else st.none(),
        st.integers(0, 2),
    )


def charts(depth: int, faults: tuple[str, ...] = ()) -> st.SearchStrategy[list[Spec]]:
    return st.lists(specs(depth, faults), min_size=1, max_size=2)


def work(spec: Spec) -> Any:
    def fn(scope: Any, *_: Any) -> Any:
        for kind, key, value in spec.ops:
            held = scope.get(key)
            if kind == "write":
                scope[key] = value
            elif kind == "append" and (held is None or isinstance(held, list)):
                if not (held is None and key in scope):
                    scope.append(key, value)
            elif kind == "merge":
                scope.merge(key, value)
            elif kind == "delete" and key in scope:
                scope.delete(key)
            elif kind == "grow" and isinstance(held, list):
                scope[key] = [*held, value]
        if spec.fault == "error":
            raise ValueError("boom")
        if spec.fault == "stop":
            scope.stop("enough")
        elif spec.fault == "ask":
            interrupt(scope, "go on?")

    return fn


def build(chart: list[Spec], name: str = "c") -> Any:
    builder = flow_chart(name, lambda s: None, id="start")
    for place, spec in enumerate(chart):
        add(builder, spec, f"{name}{place}")
    return builder.build()


def mapped_out(given: Any, scope: Any) -> dict[str, Any]:
    state = given if isinstance(given, dict) else {"a": 7}
    return {key: value for key, value in state.items() if key in ("a", "list", "map")}


def loop_judge(spec: Spec, name: str) -> Any:
    def judge(scope: Any) -> str:
        passes = scope.get("passes", 0)
        scope["passes"] = passes + 1
        return f"{name}again" if passes < spec.times else f"{name}done"

    return judge


def add(builder: Any, spec: Spec, name: str) -> None:
    fn, inner = work(spec), spec.inner
    if spec.kind == "stage":
        builder.add_function(name, fn, id=name)
    elif spec.kind == "pausable":
        asks = spec.fault == "ask"
        quiet = Spec("stage", spec.ops, [], None if asks else spec.fault)
        builder.add_pausable(
            name, lambda s: (work(quiet)(s), "go on?" if asks else None)[1], work(quiet), id=name
        )
    elif spec.kind == "decider":
        made = builder.add_decider(name, judge=lambda s: (fn(s), f"{name}x")[1], id=name)
        made.branch(f"{name}x", build(inner[0], f"{name}i"), inputs=dict).end()
    elif spec.kind in ("fork", "selector"):
        words = [f"{name}b{n}" for n in range(len(inner))]
        if spec.kind == "fork":
            made = builder.add_fork(name, id=name, into=f"{name}out")
        else:
            made = builder.add_selector(
                name, judge=lambda s: (fn(s), words[: spec.times])[1], id=name, into=f"{name}out"
            )
        for word, chart in zip(words, inner, strict=True):
            made.branch(word, build(chart, f"{word}i"), inputs={}, outputs=lambda r, s: {"a": 1})
        made.branch(f"{name}plain", fn).end()
    elif spec.kind == "subchart":
        builder.add_subchart(
            name,
            build(inner[0], f"{name}i"),
            id=name,
            inputs=lambda s: {"a": s.get("a"), "list": [1]},
            outputs=mapped_out,
        )
    elif spec.kind == "fan_out":
        builder.add_parallel_for_each(
            name,
            id=name,
            items=lambda s: (fn(s), [1, {"x": 2}])[1],
            branch=build(inner[0], f"{name}i"),
            max_branches=2,
            into=f"{name}out",
        )
    else:
        builder.add_function(f"{name}head", fn, id=f"{name}head")
        made = builder.add_decider(name, judge=loop_judge(spec, name), id=name)
        made.branch(f"{name}again", fn, loop_to=f"{name}head")
        made.branch(f"{name}done", lambda s: None).end()


def ran(chart: list[Spec], **more: Any) -> Any:
    built = build(chart)
    try:
        run = built.run_sync(limits=Limits(loops=20), **more)
        for _ in range(3):
            if run.status != "paused":
                break
            run = built.resume_sync(run.checkpoint, "yes", limits=Limits(loops=20))
    except Exception as error:
        run = error.run  # type: ignore[attr-defined]
    return run


FAULTS = ("error", "stop", "ask")


@settings(max_examples=80, deadline=None)
@given(charts(2, FAULTS))
def test_there_is_one_commit_per_executed_step_however_the_run_ended(chart):
    run = ran(chart)
    whole = run.commits.whole()
    assert len(whole) == len(list(whole)) == run.steps_executed
    ids = [commit.runtime_stage_id for commit in whole]
    assert len(set(ids)) == len(ids)
    assert sum(map(len, whole.logs)) == sum(commit.index >= 0 for commit in whole)
    executed = {row.runtime_stage_id for row in run.walk if row.runtime_stage_id is not None}
    assert set(ids) == executed


@settings(max_examples=80, deadline=None)
@given(charts(2, FAULTS), st.sampled_from(["full", "delta"]))
def test_replaying_a_written_log_gives_every_state(chart, encoding):
    run = ran(chart)
    for log in run.commits.whole().logs:
        state = dict(log.state_at(-1).state)
        for index, commit in enumerate(log):
            if any(not is_json(value) for value in commit.values.values()):
                bundle = commit.to_dict(encoding)  # slots, which JSON does not carry as they are
            else:
                bundle = json.loads(encode(commit.to_dict(encoding)))
            state = apply_bundle(state, bundle)
            found = log.state_at(index).state
            assert deep_equal(state, found)
        assert deep_equal(state, log.state_at(len(log)).state)
    final = run.commits.state_at(len(run.commits)).state
    assert list(final) == list(run.state)
    assert deep_equal(final, run.state)


def is_json(value: Any) -> bool:
    try:
        encode(value)
    except Exception:
        return False
    return True


@settings(max_examples=40, deadline=None)
@given(charts(2, FAULTS))
def test_states_are_those_a_replay_of_the_log_gives(chart):
    run = ran(chart)
    root = run.log.root
    log = run.commits
    source = log.raw_source
    for index in range(len(log)):
        codes = root.codes[: source.end(index) + 1]
        state, _ = replayed(run.log, codes, root.values, "", run.raw_initial)
        assert deep_equal(log.state_at(index).state, state)
        assert list(log.state_at(index).state) == list(state)
        for key in (*state, "never"):
            assert deep_equal(log.value_at(index, key), state.get(key))


@settings(max_examples=40, deadline=None)
@given(charts(2))
def test_a_branch_ends_in_the_state_its_slot_shows(chart):
    run = ran([Spec("fan_out", [], [[*chart, Spec("stage", [], [])]])])
    for slot in run.slots("c0"):
        assert slot.status == "ok"
        log = run.commits.whole().log(f"c0~{slot.index}")
        assert deep_equal(log.state_at(len(log)).state, slot.value)


@settings(max_examples=30, deadline=None)
@given(charts(2, FAULTS))
def test_a_log_read_back_says_what_the_log_said(chart):
    run = ran(chart)
    for log in run.commits.whole().logs:
        read = CommitLog.from_published(
            log.encoded("delta", provenance=True), log.state_at(-1).state, "delta"
        )
        assert [c.runtime_stage_id for c in read] == [c.runtime_stage_id for c in log]
        assert [sorted(dict(c.trace)) for c in read] == [sorted(dict(c.trace)) for c in log]
        for index in range(-1, len(log)):
            assert deep_equal(read.state_at(index).state, log.state_at(index).state)
        for key in log.state_at(len(log)).state:
            mine, theirs = log.last_writer(key), read.last_writer(key)
            assert (mine is None) == (theirs is None)
            if mine is not None and theirs is not None:
                assert mine.index == theirs.index
