"""What a stage may do with its scope, what is recorded of it, and that it ends with the stage."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.scope import Scope, interrupt
from runbook_nb.errors import (
    ChartError,
    CycleError,
    FrozenError,
    MissingKey,
    PathError,
    ScopeClosed,
)


def run(*stages, args=None):
    builder = flow_chart("c", stages[0], id="s0")
    for place, stage in enumerate(stages[1:], 1):
        builder.add_function(f"S{place}", stage, id=f"s{place}")
    return builder.build().run_sync(args)


def steps(run):
    return [row.text for row in run.walk if row.type in ("step", "emit")]


def test_reads_and_writes_are_recorded_in_the_order_they_are_made():
    def stage(scope):
        scope["a"] = 1
        scope.set("b", 2)
        scope.update({"c": 3, "d": 4})
        assert scope["a"] == 1
        assert scope.get("zz", 9) == 9
        assert "b" in scope
        scope.append("list", 1)
        scope.merge("map", {"x": 1})
        scope.delete("d")
        del scope["c"]
        scope.emit("done", {"n": 1})

    done = run(stage)
    assert done.state == {"a": 1, "b": 2, "list": [1], "map": {"x": 1}}
    assert steps(done) == [
        "Wrote a",
        "Wrote b",
        "Wrote c",
        "Wrote d",
        "Read a",
        "Read zz",
        "Read b",
        "Appended to list",
        "Merged into map",
        "Deleted d",
        "Deleted c",
        "Emitted done: {n}",
    ]


def test_setters_return_none_and_can_stand_in_a_lambda():
    assert run(lambda s: s.set("n", 1)).result is None


def test_iterating_reads_each_key_it_looks_at():
    def stage(scope):
        scope.update({"a": 1, "b": 2})
        assert list(scope) == ["a", "b"]
        assert len(scope) == 2
        assert dict(scope.items()) == {"a": 1, "b": 2}

    assert steps(run(stage))[2:] == ["Read a", "Read b"]


def test_values_are_snapshots_that_nobody_can_change_behind_the_record():
    rows = [{"age": 1}]

    def write(scope):
        scope["rows"] = rows
        rows[0]["age"] = 99

    def read(scope):
        assert scope["rows"] == [{"age": 1}]
        with pytest.raises(FrozenError):
            scope["rows"][0]["age"] = 2
        with pytest.raises(FrozenError):
            scope["rows"].append({})
        json.dumps(scope["rows"])

    assert run(write, read).status == "ok"


def test_a_list_read_before_an_append_stays_as_it_was():
    def stage(scope):
        scope.append("xs", 1)
        scope.append("xs", 2)
        before = scope["xs"]
        scope.append("xs", 3)
        assert before == [1, 2]
        by_get = scope.get("xs")
        scope.append("xs", 4)
        assert by_get == [1, 2, 3]
        rb.decide(scope, [rb.Rule({"xs": {"exists": True}}, "a")])
        kept.append(scope._data["xs"])
        scope.append("xs", 5)
        assert kept[0] == [1, 2, 3, 4]

    kept = []
    assert run(stage).state == {"xs": [1, 2, 3, 4, 5]}


def test_appending_takes_up_a_list_that_was_written():
    written = [0]

    def stage(scope):
        scope["xs"] = written
        scope.append("xs", 1)
        scope["xs"] = [7]
        scope.append("xs", 8)
        scope.delete("xs")
        scope.append("xs", 9)
        scope.append("xs", 10)

    assert run(stage).state == {"xs": [9, 10]}
    assert written == [0]


def test_merging_goes_deep_and_replaces_what_is_no_mapping():
    def stage(scope):
        scope["a"] = {"x": {"y": 1}, "l": [1]}
        scope.merge("a", {"x": {"z": 2}, "l": [2]})
        scope["b"] = 5
        scope.merge("b", {"x": 1})

    assert run(stage).state == {"a": {"x": {"y": 1, "z": 2}, "l": [2]}, "b": {"x": 1}}


def test_a_key_nobody_wrote_is_an_error_that_names_a_near_one():
    def stage(scope):
        scope["verdict"] = 1
        scope["verdit"]

    with pytest.raises(MissingKey, match="did you mean 'verdict'") as caught:
        run(stage)
    assert isinstance(caught.value, KeyError)
    assert steps(caught.value.run) == ["Wrote verdict", "Read verdit"]
    with pytest.raises(MissingKey, match="deleted 'x'"):
        run(lambda s: s.delete("x"))


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.__setitem__(5, 1),
        lambda s: s.get(5),
        lambda s: s.append(("a",), 1),
        lambda s: s.merge(5, {"x": 1}),
        lambda s: s.emit(5),
    ],
)
def test_keys_and_event_names_are_texts_and_a_refused_one_leaves_nothing(use):
    with pytest.raises(ChartError, match="those are texts") as caught:
        run(use)
    assert caught.value.run.state == {}
    assert steps(caught.value.run) == []


def test_a_key_that_is_no_text_is_simply_not_there():
    assert run(lambda s: 5 in s).result is False


@pytest.mark.parametrize(
    ("use", "fault"),
    [
        (lambda s: s.update([1]), "takes a mapping"),
        (lambda s: s.merge("a", [1]), "takes a mapping"),
        (lambda s: (s.set("a", 1), s.append("a", 2)), "needs a list"),
    ],
)
def test_misuse_says_what_to_write_instead(use, fault):
    with pytest.raises(ChartError, match=fault):
        run(use)


def test_values_that_contain_themselves_or_cannot_be_copied_are_refused_by_key():
    def circle(scope):
        own = []
        own.append(own)
        scope["own"] = own

    with pytest.raises(CycleError, match="'own'"):
        run(circle)
    with pytest.raises(FrozenError, match="'gen'"):
        run(lambda s: s.set("gen", (i for i in ())))


# -- input -------------------------------------------------------------------------------------


def test_the_input_is_apart_from_the_state_and_frozen():
    def stage(scope):
        scope["n"] = scope.args["n"] + 1
        with pytest.raises(FrozenError):
            scope.args["n"] = 5

    assert run(stage, args={"n": 1}).state == {"n": 2}


def test_inside_a_branch_the_input_is_the_item_and_its_place():
    each = flow_chart("e", lambda s: [dict(s.args), dict(s)], id="e").build()
    chart = (
        flow_chart("c", lambda s: s.set("secret", 1), id="s")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: ["a"], branch=each, max_branches=1, into="out"
        )
        .build()
    )
    assert chart.run_sync({"x": 1}).slots("each")[0].value == [{"item": "a", "index": 0}, {}]


# -- ending ------------------------------------------------------------------------------------

USES = [
    lambda s: s["a"],
    lambda s: s.get("a"),
    lambda s: "a" in s,
    list,
    len,
    lambda s: s.set("a", 2),
    lambda s: s.update({"a": 2}),
    lambda s: s.merge("a", {"x": 1}),
    lambda s: s.append("b", 2),
    lambda s: s.delete("a"),
    lambda s: s.emit("e"),
    lambda s: s.stop(),
    lambda s: rb.decide(s, [rb.Rule({"a": {"gt": 1}}, "x")], "y"),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("failed", [False, True])
def test_a_scope_can_no_longer_be_used_when_its_stage_has_ended(use, failed):
    kept = []

    def stage(scope):
        scope["a"] = 1
        scope.append("b", 1)
        kept.append(scope)
        if failed:
            raise ValueError

    if failed:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - any will do
            run(stage)
        done = caught.value.run
    else:
        done = run(stage)
    before = done.walk.to_dicts()
    with pytest.raises(ScopeClosed, match="stage that has ended"):
        use(kept[0])
    assert done.walk.to_dicts() == before
    assert done.state == {"a": 1, "b": [1]}
    assert repr(kept[0]) == "<Scope of 'c', ended>"


def test_the_scope_of_a_failed_attempt_is_closed_too():
    kept = []

    def stage(scope):
        for old in kept:
            with pytest.raises(ScopeClosed):
                old["x"] = 1
        kept.append(scope)
        if len(kept) < 3:
            raise ValueError

    chart = flow_chart("c", stage, id="s", retry=rb.Retry(3)).build()
    assert chart.run_sync().state == {}


def test_stopping_ends_the_chart_after_the_stage_as_a_success():
    def stage(scope):
        scope.stop("enough")
        scope.stop("later reasons do not count")
        scope["after"] = 1
        return 7

    done = run(stage, lambda s: s.set("next", 1))
    assert (done.status, done.state, done.result) == ("ok", {"after": 1}, 7)
    assert [row.text for row in done.walk if row.type == "break"] == ["Stopped here: enough"]


def test_stopping_in_a_branch_ends_that_branch_alone():
    each = (
        flow_chart("e", lambda s: s.stop() if s.args["item"] else None, id="e")
        .add_function("F", lambda s: "went on", id="f")
        .build()
    )
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [0, 1], branch=each, max_branches=2, into="out"
        )
        .build()
    )
    assert [(s.status, s.value) for s in chart.run_sync().slots("each")] == [
        ("ok", "went on"),
        ("ok", {}),
    ]


def test_a_scope_shows_its_keys_and_is_only_equal_to_itself():
    seen = []
    run(lambda s: (s.set("a", 1), seen.append((repr(s), s == {"a": 1}, hash(s) == hash(s)))))
    assert seen == [("<Scope of 'c', keys a>", False, True)]


def test_interrupt_wants_the_scope_first():
    with pytest.raises(ChartError, match="needs the stage's scope first"):
        interrupt("why?", None)  # type: ignore[arg-type]
    assert issubclass(Scope, object)


def test_changing_a_frame_that_was_read_does_not_rewrite_the_record():
    import pandas as pd

    def keep(scope):
        scope["frame"] = pd.DataFrame({"verdict": ["old"]})

    def change(scope):
        for frame in (scope["frame"], scope.get("frame")):
            frame.loc[0, "verdict"] = "fresh"

    chart = flow_chart("c", keep, id="keep").add_function("Change", change, id="change").build()
    run = chart.run_sync()
    served = run.state["frame"]
    served.loc[0, "verdict"] = "fresh"
    assert run.commits[0].values["frame"]["verdict"].tolist() == ["old"]


# -- reading inside ----------------------------------------------------------------------------

PLAN = {"hosts": [{"name": "a", "ports": [22, 80]}, {"name": "b"}], "a.b": 1, "none": None}


def reading(path, *default, plan=PLAN):
    return run(lambda s: s.set("plan", plan), lambda s: s.read(path, *default))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("plan", PLAN),
        ("plan.hosts", PLAN["hosts"]),
        ("plan.hosts[0].name", "a"),
        ("plan.hosts[0].ports[1]", 80),
        ("plan.none", None),
    ],
)
def test_a_path_leads_through_mappings_and_lists(path, found):
    done = reading(path)
    assert done.result == found
    assert steps(done)[1:] == ["Read plan"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("plan.hots", "no 'hots' in 'plan': it has hosts, a.b and none; did you mean 'hosts'?"),
        ("plan.hosts[2]", "no position 2 in 'plan.hosts': it has 2 items"),
        ("plan.hosts[1].ports", "no 'ports' in 'plan.hosts[1]': it has name"),
        ("plan.hosts.name", "no 'name' in 'plan.hosts': it has 2 items"),
        ("plan.none.x", "no 'x' in 'plan.none'"),
        ("plan.hosts[0].name[0]", "no position 0 in 'plan.hosts[0].name'"),
    ],
)
def test_a_part_that_is_not_there_is_an_error_that_says_what_is_or_the_default(path, words):
    with pytest.raises(PathError) as caught:
        reading(path)
    assert words in str(caught.value)
    assert caught.value.where == path
    assert steps(caught.value.run)[1:] == ["Read plan"]
    assert reading(path, "other").result == "other"
    assert reading(path, None).result is None


def test_a_first_key_that_nobody_wrote_is_an_error_like_any_other():
    with pytest.raises(MissingKey, match="did you mean 'plan'"):
        reading("plane.hosts")
    assert reading("plane.hosts", 5).result == 5


@pytest.mark.parametrize("path", ["", ".a", "a..b", "a.", "a[", "a[x]", "[0]", "a[0]b.", "a[-1]"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(PathError, match="is no path"):
        reading(path)


def test_a_key_that_is_spelt_like_a_path_comes_first():
    done = run(lambda s: s.update({"a.b": 1, "a": {"b": 2}}), lambda s: s.read("a.b"))
    assert done.result == 1
    assert steps(done)[2:] == ["Read a.b"]
    assert reading('plan["a.b"]').result == 1


def test_slots_may_be_read_into():
    each = flow_chart("e", lambda s: {"deep": [s.args["item"]]}, id="e").build()
    chart = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: [7, 8], branch=each, max_branches=2, into="out"
        )
        .add_function("Read", lambda s: s.read("out[1].value.deep[0]"), id="read")
        .build()
    )
    assert chart.run_sync().result == 8


# -- the input is read on the record -----------------------------------------------------------


def test_looking_at_the_input_is_recorded_once_per_execution_and_makes_no_row():
    def stage(scope):
        assert scope.args["n"] == scope.args["n"] == 1
        scope["n"] = scope.args["n"]

    done = run(stage, lambda s: None, args={"n": 1})
    kinds = [event.code.kind for event in done.log.events(done.log.root.codes)]
    assert kinds == ["stage", "args", "write", "stage"]
    assert len(done.walk) == 3


def test_each_attempt_and_each_branch_looks_for_itself():
    tries = []

    def stage(scope):
        tries.append(scope.args["n"])
        if len(tries) < 2:
            raise ValueError

    chart = flow_chart("c", stage, id="s", retry=rb.Retry(2)).build()
    done = chart.run_sync({"n": 1})
    kinds = [event.code.kind for event in done.log.events(done.log.root.codes)]
    assert kinds == ["stage", "retry", "args"]


# -- the state a run begins with ---------------------------------------------------------------


def test_a_run_may_begin_with_a_state_that_is_no_input():
    def stage(scope):
        assert dict(scope.args) == {"x": 1}
        scope["n"] = scope["n"] + 1
        scope.append("rows", 3)

    chart = flow_chart("c", stage, id="s").build()
    given = {"n": 1, "rows": [1, 2], "other": {"a": 1}}
    done = chart.run_sync({"x": 1}, state=given)
    assert done.state == {"n": 2, "rows": [1, 2, 3], "other": {"a": 1}}
    assert done.initial == given
    assert given == {"n": 1, "rows": [1, 2], "other": {"a": 1}}
    assert done.commits[0].values == {"n": 2, "rows": [1, 2, 3]}
    assert done.commits.state_at(-1).state == given


def test_what_a_run_begins_with_is_frozen_like_everything_else():
    rows = [{"age": 1}]

    def stage(scope):
        with pytest.raises(FrozenError):
            scope["rows"][0]["age"] = 2
        return scope["rows"]

    chart = flow_chart("c", stage, id="s").build()
    done = chart.run_sync(state={"rows": rows})
    rows[0]["age"] = 99
    assert done.result == [{"age": 1}]


@pytest.mark.parametrize("state", [[1], "x", {1: 2}])
def test_a_state_is_a_mapping_of_names(state):
    with pytest.raises(ChartError, match="the state of a run"):
        flow_chart("c", lambda s: None, id="s").build().run_sync(state=state)
