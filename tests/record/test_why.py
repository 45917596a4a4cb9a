"""Why a value is what it is: each step that had a part in it, how, and where it ends."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Limits
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import PathError
from runbook_nb.record.commits import CommitLog

POSTURE = rb.RuleSet(
    "health-signal",
    "v1",
    rules=[
        rb.Rule({"age_known": {"eq": False}}, then="declined", label="cannot be read"),
        rb.Rule({"age_days": {"gt": 7}}, then="old", label="older than 7 days"),
    ],
    default=rb.Default("fresh", label="within 7 days"),
)


def load(scope):
    scope.update(scope.args["item"])


def verdict(word):
    return lambda scope: scope.set("verdict", word)


def inventory(scope):
    scope["subjects"] = scope.args["rows"]


def collect(scope):
    scope["verdicts"] = [slot.value["verdict"] for slot in scope["results"]]


def triage(items=lambda scope: scope["subjects"], work=load):
    subject = (
        flow_chart("subject", work, id="load", stage_name="Load")
        .add_decider("Posture", rules=POSTURE, id="posture")
        .branch("fresh", verdict("fresh"))
        .branch("old", verdict("old"))
        .branch("declined", verdict("declined"))
        .end()
        .build()
    )
    return (
        flow_chart("triage", inventory, id="inventory", stage_name="Inventory")
        .add_parallel_for_each(
            "Assess each",
            id="each",
            items=items,
            branch=subject,
            max_branches=50,
            into="results",
            subject="name",
        )
        .add_function("Collect", collect, id="collect")
        .build()
    )


ROWS = [{"name": f"c{n}", "age_days": 10 * n, "age_known": True} for n in range(5)]


def run(**more):
    return triage(**more).run_sync({"rows": ROWS, "unused": "x"})


def links(why):
    """Give every link as (reader, kind, key, origin), in words."""
    names = {node.id: f"{node.runtime_stage_id} {node.place or node.what}" for node in why}
    names |= {
        source.id: f"{source.kind}{f' {source.place}' if source.place else ''}"
        for source in why.sources
    }
    return [(names[e.reader], e.kind, e.key, names[e.origin]) for e in why.edges]


def linear(*fns, args=None, state=None):
    builder = flow_chart("c", fns[0], id="s0")
    for place, fn in enumerate(fns[1:], 1):
        builder.add_function(f"S{place}", fn, id=f"s{place}")
    return builder.build().run_sync(args, state=state)


# -- the story of one verdict ------------------------------------------------------------------


def test_a_verdict_leads_through_its_decision_to_the_row_it_is_of():
    why = run().why("results[3].value.verdict")
    assert (why.path, why.value) == ("results[3].value.verdict", "old")
    assert links(why) == [
        ("each#1 results[3].value.verdict", "branch", "[3]", "each~3/old#2 verdict"),
        ("each~3/old#2 verdict", "own", "", "own each/old"),
        ("each~3/old#2 verdict", "decided", "", "each~3/posture#1 decision"),
        ("each~3/posture#1 decision", "read", "age_known", "each~3/load#0 age_known"),
        ("each~3/posture#1 decision", "read", "age_days", "each~3/load#0 age_days"),
        ("each~3/load#0 age_known", "item", "item.age_known", "each~3#1 item.age_known"),
        ("each~3/load#0 age_days", "item", "item.age_days", "each~3#1 item.age_days"),
        (
            *("each~3#1 item.age_known", "read", "subjects[3].age_known"),
            "inventory#0 subjects[3].age_known",
        ),
        (
            *("each~3#1 item.age_days", "read", "subjects[3].age_days"),
            "inventory#0 subjects[3].age_days",
        ),
        (
            *("inventory#0 subjects[3].age_known", "input", "rows[3].age_known"),
            "args rows[3].age_known",
        ),
        (
            *("inventory#0 subjects[3].age_days", "input", "rows[3].age_days"),
            "args rows[3].age_days",
        ),
    ]


def test_a_decision_comes_with_its_evidence():
    node = next(n for n in run().why("results[3].value.verdict") if n.what == "decision")
    assert node.sentence == "old by rule 2 of health-signal v1: age_days 30 > 7"
    assert [(c.key, c.actual, c.result) for c in node.decision.conditions] == [
        ("age_known", True, False),
        ("age_days", 30, True),
    ]
    assert (node.value, node.summary, node.kind, node.node) == (
        "old",
        '"old"',
        "decider",
        "each/posture",
    )
    assert node.to_dict()["decision"]["branch"] == "old"


def test_nodes_say_where_they_stand_in_the_commit_log():
    made = run()
    for node in made.why("results[3].value.verdict"):
        log = made.commits.whole().log(node.log)
        if node.what == "item":
            assert (node.commit, node.runtime_stage_id) == (-1, "each~3#1")
            continue
        assert log[node.commit].runtime_stage_id == node.runtime_stage_id
        if node.what == "write":
            assert node.key in log[node.commit].values


def test_the_values_of_all_branches_lead_into_all_of_them():
    why = run().why("verdicts[1]")
    branches = {node.runtime_stage_id for node in why if "/" in node.runtime_stage_id}
    assert branches == {
        f"each~{n}/{stage}"
        for n in range(5)
        for stage in ("load#0", "posture#1", "old#2" if n else "fresh#2")
    }
    assert {source.place for source in why.sources if source.kind == "args"} >= {"rows"}


@pytest.mark.parametrize(
    ("path", "reaches"),
    [
        ("results[3].item.name", {"each~3#1", "inventory#0"}),
        ("results[3].index", {"each~3#1", "inventory#0"}),
        ("results[3].branch", {"each~3/posture#1", "each~3/load#0", "inventory#0"}),
        ("results[3].sentence", {"each~3/posture#1", "each~3/load#0", "inventory#0"}),
        ("results[3].status", {"each~3/old#2", "each~3/posture#1", "inventory#0"}),
        ("results[3].value", {"each~3/old#2", "each~3/load#0", "inventory#0"}),
        ("results[3]", {"each~3/old#2", "each~3/posture#1", "inventory#0"}),
    ],
)
def test_every_part_of_a_slot_leads_to_where_it_comes_from(path, reaches):
    found = {node.runtime_stage_id for node in run().why(path)}
    assert found >= reaches | {"each#1"}
    assert not any(name.startswith(("each~0", "each~1", "each~2", "each~4")) for name in found)


def test_an_item_past_the_cap_leads_to_the_list_it_stands_in():
    chart = triage()
    capped = (
        flow_chart("c", inventory, id="inventory")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["subjects"],
            branch=flow_chart("e", load, id="load").build(),
            max_branches=2,
            into="results",
        )
        .build()
    )
    assert chart is not capped
    why = capped.run_sync({"rows": ROWS}).why("results[4].reason")
    assert ("each~4#1 item", "read", "subjects[4]", "inventory#0 subjects[4]") in links(why)


def test_items_that_were_made_of_a_list_lead_to_all_of_it():
    def old_ones(scope):
        return [dict(row) for row in scope["subjects"] if row["age_days"] > 5]

    why = run(items=old_ones).why("results[0].value.age_days")
    assert ("each~0#1 item.age_days", "read", "subjects", "inventory#0 subjects") in links(why)

    def picked(scope):
        return [row for row in scope["subjects"] if row["age_days"] > 5]

    # The row itself was handed on, from another position: what was read is the whole list.
    why = run(items=picked).why("results[0].value.age_days")
    assert ("each~0#1 item.age_days", "read", "subjects", "inventory#0 subjects") in links(why)


def test_what_is_computed_of_an_item_leads_to_the_whole_item():
    def work(scope):
        item = scope.args["item"]
        scope["age_known"] = item["age_days"] is not None
        scope["age_days"] = item["age_days"]

    why = run(work=work).why("results[3].value.verdict")
    assert ("each~3/load#0 age_known", "item", "item", "each~3#1 item") in links(why)
    assert ("each~3#1 item", "read", "subjects[3]", "inventory#0 subjects[3]") in links(why)
    assert ("inventory#0 subjects[3]", "input", "rows[3]", "args rows[3]") in links(why)


def test_a_branch_that_returned_its_value_leads_to_the_stage_that_returned_it():
    def work(scope):
        scope["twice"] = scope.args["item"] * 2
        return {"twice": scope["twice"]}

    chart = (
        flow_chart("c", lambda s: s.set("xs", [1, 2]), id="seed")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["xs"],
            branch=flow_chart("e", work, id="work").build(),
            max_branches=9,
            into="out",
        )
        .build()
    )
    why = chart.run_sync().why("out[1].value.twice")
    assert links(why)[:2] == [
        ("each#1 out[1].value.twice", "branch", "[1]", "each~1/work#0 result"),
        ("each~1/work#0 result", "item", "item", "each~1#1 item"),
    ]
    assert why[1].sentence == "returned {twice}"
    assert why[1].value == {"twice": 4}


# -- the last change at that very path ---------------------------------------------------------


def test_the_step_that_changed_the_value_at_the_path_is_found():
    log = linear(
        lambda s: s.set("cfg", {"a": {"x": 1, "y": 1}, "rows": [1, 2]}),
        lambda s: s.merge("cfg", {"a": {"y": 2}}),
        lambda s: s.set("cfg", {**s["cfg"], "rows": [1, 5]}),
        lambda s: s.set("cfg", dict(s["cfg"])),
    )
    first = {
        path: log.why(path)[0].runtime_stage_id
        for path in ("cfg", "cfg.a", "cfg.a.x", "cfg.a.y", "cfg.rows[0]", "cfg.rows[1]", "cfg.rows")
    }
    assert first == {
        "cfg": "s2#2",
        "cfg.a": "s1#1",
        "cfg.a.x": "s0#0",
        "cfg.a.y": "s1#1",
        "cfg.rows[0]": "s0#0",
        "cfg.rows[1]": "s2#2",
        "cfg.rows": "s2#2",
    }


def test_a_change_taken_back_inside_a_stage_is_none():
    def flip(scope):
        scope["a"] = 2
        scope["a"] = 1

    assert linear(lambda s: s.set("a", 1), flip).why("a")[0].runtime_stage_id == "s0#0"


def test_an_item_of_a_growing_list_leads_to_the_step_that_appended_it():
    made = linear(*(lambda s, n=n: s.append("l", {"n": n}) for n in range(4)))
    assert made.why("l[2].n")[0].runtime_stage_id == "s2#2"
    assert [node.runtime_stage_id for node in made.why("l[2]")] == ["s2#2"]
    # The whole list is built on what was there before.
    assert [node.runtime_stage_id for node in made.why("l")] == ["s3#3", "s2#2", "s1#1", "s0#0"]
    assert links(made.why("l"))[0] == ("s3#3 l", "kept", "l", "s2#2 l")


def test_what_a_merge_left_alone_is_built_on_what_was_there():
    made = linear(lambda s: s.set("m", {"a": 1}), lambda s: s.merge("m", {"b": 2}))
    assert links(made.why("m"))[0] == ("s1#1 m", "kept", "m", "s0#0 m")
    assert [node.runtime_stage_id for node in made.why("m.b")] == ["s1#1"]
    assert [node.runtime_stage_id for node in made.why("m.a")] == ["s0#0"]


def test_only_what_was_read_before_the_write_counts():
    def work(scope):
        scope["early"] = scope["a"]
        scope["late"] = scope["b"]

    made = linear(lambda s: s.update({"a": [1], "b": [2]}), work)
    assert [link[2] for link in links(made.why("early")) if link[1] == "read"] == ["a"]
    assert [link[2] for link in links(made.why("late")) if link[1] == "read"] == ["a", "b"]


def test_what_a_stage_read_of_its_own_writing_leads_to_what_that_was_built_on():
    def work(scope):
        scope["fresh"] = scope["a"]
        scope.append("l", 2)
        scope["x"] = [*scope["l"], *scope["fresh"]]

    made = linear(lambda s: s.update({"a": [1], "l": [0], "fresh": [9]}), work)
    assert links(made.why("x"))[:2] == [
        ("s1#1 x", "read", "a", "s0#0 a"),
        ("s1#1 x", "read", "l", "s0#0 l"),
    ]


def test_a_value_that_was_passed_on_is_followed_at_the_path_asked_about():
    made = linear(
        lambda s: s.set("a", {"x": [1, 2], "y": 5}),
        lambda s: s.set("a", {**s["a"], "y": 6}),
        lambda s: s.set("b", s["a"]),
    )
    assert links(made.why("b.x[0]")) == [
        ("s2#2 b.x[0]", "read", "a.x[0]", "s0#0 a.x[0]"),
        ("s0#0 a.x[0]", "own", "", "own s0"),
    ]


def test_a_time_can_be_asked_for():
    made = linear(
        lambda s: s.set("a", 1), lambda s: s.set("a", s["a"] + 1), lambda s: s.delete("a")
    )
    assert [node.runtime_stage_id for node in made.why("a", at=1)] == ["s1#1", "s0#0"]
    assert made.why("a", at=0).value == 1
    deleted = made.why("a")
    assert (deleted.value, deleted[0].what, deleted[0].sentence) == (None, "delete", "deleted a")
    with pytest.raises(PathError, match="nobody has written 'a'"):
        made.why("a", at=-1)
    with pytest.raises(IndexError):
        made.why("a", at=-2)


# -- where it ends -----------------------------------------------------------------------------


def test_each_end_is_called_by_its_name():
    def work(scope):
        scope.get("never")
        scope["x"] = [scope["seeded"], scope.args["n"]]

    made = linear(work, lambda s: s.set("y", 1), args={"n": 2}, state={"seeded": 7})
    why = made.why("x")
    assert [(s.kind, s.place, s.value, s.sentence) for s in why.sources] == [
        ("absent", "never", None, "never: nobody had written it"),
        ("initial", "seeded", 7, "the state the run began with, seeded"),
        ("args", "n", 2, "the run's input, n"),
    ]
    own = made.why("y").sources[0]
    assert (own.kind, own.stage, own.times) == ("own", "S1", 1)
    assert own.sentence == "S1: the stage's own: what a tool or its code gave left no read"


def test_a_value_no_step_wrote_has_only_a_source():
    why = linear(lambda s: None, state={"a": {"b": 1}}).why("a.b")
    assert (len(why), why.value, why.edges) == (0, 1, ())
    assert [(s.kind, s.place, s.value) for s in why.sources] == [("initial", "a.b", 1)]
    assert str(why).splitlines()[0] == "Why a.b · c · 1, written by no step"


def test_an_answer_is_an_end():
    def ask(scope):
        scope["first"] = interrupt(scope, "one?")
        scope["second"] = interrupt(scope, "two?")

    chart = flow_chart("c", ask, id="ask").build()
    made = chart.run_sync()
    made = chart.resume_sync(made.checkpoint, {"yes": 1})
    made = chart.resume_sync(made.checkpoint, "again")
    why = made.why("second")
    assert [(s.kind, s.value) for s in why.sources] == [("answer", "again"), ("answer", {"yes": 1})]
    assert why.sources[0].sentence == 'an answer from outside: "again"'


def test_the_answer_to_a_pausable_stage_is_an_end():
    chart = (
        flow_chart("c", lambda s: s.set("a", 1), id="seed")
        .add_pausable("Gate", lambda s: "ok?", lambda s, a: s.set("got", [a, s["a"]]), id="gate")
        .build()
    )
    made = chart.run_sync()
    why = chart.resume_sync(made.checkpoint, "yes").why("got")
    assert links(why) == [
        ("gate#2 got", "read", "a", "seed#0 a"),
        ("gate#2 got", "answer", "", "answer"),
        ("seed#0 a", "own", "", "own seed"),
    ]


def test_reads_of_dotted_keys_are_paths_as_rules_read_them():
    rules = rb.RuleSet("r", "1", [rb.Rule({"conn.hosts.1.up": {"eq": True}}, "x")], default="y")
    chart = (
        flow_chart("c", lambda s: s.set("conn", {"hosts": [{}, {"up": False}]}), id="seed")
        .add_function("Up", lambda s: s.set("conn", {"hosts": [{}, {"up": True}]}), id="up")
        .add_decider("D", rules=rules, id="d")
        .branch("x", lambda s: s.set("out", 1))
        .branch("y", lambda s: None)
        .end()
        .build()
    )
    assert ("d#2 decision", "read", "conn.hosts[1].up", "up#1 conn.hosts[1].up") in links(
        chart.run_sync().why("out")
    )


# -- mounted charts, forks, selections ---------------------------------------------------------


def inner(fn=lambda s: s.set("w", [s["v"]])):
    return (
        flow_chart("in", fn, id="in", stage_name="In")
        .add_function("Out", lambda s: s.set("x", [*s["w"], 1]), id="out")
        .build()
    )


def mounted(**more):
    return (
        flow_chart("c", lambda s: s.update({"a": [5], "b": 6, "r": [0]}), id="seed")
        .add_subchart("Sub", inner(), id="sub", **more)
        .add_function("End", lambda s: s.set("e", s["r"]), id="end")
        .build()
        .run_sync()
    )


INTO = ("sub/out#3 x", "read", "w", "sub/in#2 w")


def test_a_mounted_chart_is_gone_through_by_what_is_mapped_in_and_out():
    why = mounted(inputs={"v": "a", "u": "b"}, outputs={"r": "x"}).why("e[1]")
    assert links(why) == [
        ("end#4 e[1]", "read", "r[1]", "sub#1 r[1]"),
        ("sub#1 r[1]", "output", "x[0]", "sub/out#3 x[0]"),
        ("sub/out#3 x[0]", "read", "w", "sub/in#2 w"),
        ("sub/in#2 w", "read", "v", "sub#1 v"),
        ("sub#1 v", "read", "a", "seed#0 a"),
        ("seed#0 a", "own", "", "own seed"),
    ]
    assert next(node for node in why if node.what == "input").sentence == "mapped in v = (1 item)"


def test_what_was_there_before_an_output_was_put_behind_it_counts_too():
    why = mounted(inputs={"v": "a"}, outputs={"r": "x"}).why("r")
    assert ("sub#1 r", "kept", "r", "seed#0 r") in links(why)
    assert ("sub#1 r", "output", "x", "sub/out#3 x") in links(why)
    replaced = mounted(inputs={"v": "a"}, outputs={"r": "x"}, array_merge="replace").why("r")
    assert not [link for link in links(replaced) if link[1] == "kept"]


def test_functions_that_map_lead_to_all_they_may_have_used():
    found = links(
        mounted(
            inputs=lambda s: {"v": s["a"], "u": s["b"]},
            outputs=lambda given, s: {"r": len(given["x"])},
        ).why("r")
    )
    assert {link[3] for link in found if link[0] == "sub#1 r"} >= {
        "sub/out#3 x",
        "sub/in#2 w",
        "sub#1 v",
        "sub#1 u",
    }
    assert ("sub#1 v", "read", "a", "seed#0 a") in found
    passed = mounted(inputs=lambda s: {"v": s["a"]}, outputs=lambda g, s: {"r2": g["x"]})
    assert links(passed.why("r2"))[0] == ("sub#1 r2", "output", "x", "sub/out#3 x")


def test_the_input_of_a_mounted_chart_is_what_was_mapped_in():
    chart = (
        flow_chart("c", lambda s: s.update({"a": [5], "b": 6}), id="seed")
        .add_subchart(
            "Sub",
            flow_chart("in", lambda s: s.set("w", s.args["v"]), id="in").build(),
            id="sub",
            inputs={"v": "a", "u": "b"},
            outputs={"r": "w"},
        )
        .build()
    )
    assert links(chart.run_sync().why("r"))[1:3] == [
        ("sub/in#2 w", "input", "v", "sub#1 v"),
        ("sub#1 v", "read", "a", "seed#0 a"),
    ]


def test_what_a_mounted_chart_returned_leads_to_its_last_stage():
    chart = (
        flow_chart("c", lambda s: s.set("a", 1), id="seed")
        .add_subchart(
            "Sub",
            flow_chart("in", lambda s: {"given": s["v"] + 1}, id="in").build(),
            id="sub",
            inputs={"v": "a"},
            outputs=lambda given, s: {"r": given["given"]},
        )
        .build()
    )
    why = chart.run_sync().why("r")
    assert links(why)[:3] == [
        ("sub#1 r", "output", "", "sub/in#2 result"),
        ("sub#1 r", "output", "v", "sub#1 v"),
        ("sub/in#2 result", "read", "v", "sub#1 v"),
    ]
    assert why[1].sentence == "returned something"


def forked(**more):
    return (
        flow_chart("c", lambda s: s.update({"base": [1], "other": [2]}), id="seed")
        .add_fork("Both", id="both", **more)
        .branch("c1", lambda s: s.set("one", s["base"]))
        .branch("c2", inner(), inputs={"v": "other"}, outputs={"two": "x"})
        .end()
        .add_function("End", lambda s: s.set("e", [s.get("one"), s.get("two")]), id="end")
        .build()
        .run_sync()
    )


def test_a_fork_is_gone_through_by_the_branch_that_wrote_the_key():
    made = forked(merge="keys")
    assert links(made.why("one")) == [
        ("both#1 one", "merged", "c1", "c1#0 one"),
        ("c1#0 one", "read", "base", "seed#0 base"),
        ("seed#0 base", "own", "", "own seed"),
    ]
    assert links(made.why("two"))[:3] == [
        ("both#1 two", "merged", "c2", "c2#0 two"),
        ("c2#0 two", "output", "x", "c2/out#2 x"),
        ("c2/out#2 x", "read", "w", "c2/in#1 w"),
    ]


def test_slots_of_a_fork_lead_into_their_branch():
    made = forked(into="res")
    assert links(made.why("res[0].value.one"))[0] == (
        *("both#1 res[0].value.one", "branch", "c1"),
        "c1#0 one",
    )
    whole = {node.runtime_stage_id for node in made.why("res")}
    assert whole >= {"c1#0", "c2#0", "c2/out#2", "seed#0"}
    assert links(made.why("res[1].item")) == [("both#1 res[1].item", "own", "", "own both")]


def test_a_merge_function_leads_to_all_branches_and_what_it_read():
    made = forked(
        merge=lambda scope, slots: scope.set("sum", [scope["base"], [s.value for s in slots]])
    )
    found = {node.runtime_stage_id for node in made.why("sum")}
    assert found >= {"both#1", "c1#0", "c2#0", "seed#0"}


def test_what_was_selected_leads_to_the_selection():
    rules = rb.RuleSet("sel", "1", [rb.Rule({"n": {"gt": 1}}, "p"), rb.Rule({"m": {"gt": 9}}, "q")])
    made = (
        flow_chart("c", lambda s: s.update({"n": 5, "m": 1}), id="seed")
        .add_selector("Pick", rules=rules, id="pick", merge="keys")
        .branch("p", lambda s: s.set("one", 1))
        .branch("q", lambda s: None)
        .end()
        .build()
        .run_sync()
    )
    why = made.why("one")
    assert ("p#0 one", "selected", "", "pick#1 selection") in links(why)
    assert ("pick#1 selection", "read", "n", "seed#0 n") in links(why)
    node = next(n for n in why if n.what == "selection")
    assert (node.sentence, node.value) == ("selected p: n 5 > 1", ["p"])


def test_words_of_functions_that_decide_are_told_too():
    made = (
        flow_chart("c", lambda s: s.set("n", 5), id="seed")
        .add_decider("D", judge=lambda s: "x" if s["n"] else "y", id="d")
        .branch("x", lambda s: s.set("out", 1))
        .branch("y", lambda s: None)
        .end()
        .add_selector("S", judge=lambda s: ["p"], id="s", merge="keys")
        .branch("p", lambda s: s.set("sel", 1))
        .end()
        .build()
        .run_sync()
    )
    decided = made.why("out")
    assert ("d#1 decision", "read", "n", "seed#0 n") in links(decided)
    assert decided[1].sentence == "chose x"
    selected = made.why("sel")
    assert ("s#3 selection", "own", "", "own s") in links(selected)
    assert next(n for n in selected if n.what == "selection").sentence == "chose (1 item)"


def test_a_decision_around_a_chart_counts_for_every_stage_in_it():
    branch = (
        flow_chart("b", lambda s: s.set("k", 1), id="k")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [1],
            branch=flow_chart("e", lambda s: s.set("v", 1), id="v").build(),
            max_branches=1,
            into="out",
        )
        .build()
    )
    made = (
        flow_chart("c", lambda s: s.set("n", 5), id="seed")
        .add_decider("D", judge=lambda s: "x" if s["n"] else "y", id="d")
        .branch("x", branch, outputs={"out": "out"})
        .end()
        .build()
        .run_sync()
    )
    found = links(made.why("out[0].value.v"))
    assert ("x/each~0/v#0 v", "decided", "", "d#1 decision") in found
    assert ("x#2 out[0].value.v", "decided", "", "d#1 decision") in found


# -- loops -------------------------------------------------------------------------------------


def looped(passes):
    rules = rb.RuleSet("more", "1", [rb.Rule({"n": {"lt": passes}}, "again")], default="done")

    def body(scope):
        scope["n"] = scope["n"] + 1
        scope.append("seen", {"n": scope["n"]})

    return (
        flow_chart("c", lambda s: s.update({"n": 0, "cfg": {"a": 1}}), id="seed")
        .add_function("Body", body, id="body")
        .add_function("Same", lambda s: s.set("cfg", {"a": 1}), id="same")
        .add_decider("More", rules=rules, id="more")
        .branch("again", lambda s: s.get("cfg"), loop_to="body")
        .branch("done", lambda s: s.set("end", s["cfg"]))
        .end()
        .build()
        .run_sync(limits=Limits(loops=passes + 1))
    )


def test_a_pass_of_a_loop_rests_on_the_pass_before_and_on_going_back():
    why = looped(3).why("seen[1].n")
    assert links(why)[:4] == [
        ("body#5 seen[1].n", "read", "n", "body#1 n"),
        ("body#5 seen[1].n", "looped", "", "again#4 loop"),
        ("body#1 n", "read", "n", "seed#0 n"),
        ("again#4 loop", "decided", "", "more#3 decision"),
    ]
    assert [node.sentence for node in why if node.what == "loop"] == ["went back"]


def test_what_follows_a_loop_does_not_rest_on_going_back():
    made = (
        flow_chart("c", lambda s: s.set("n", 0), id="seed")
        .add_function("Body", lambda s: s.set("n", s["n"] + 1), id="body")
        .add_decider("More", judge=lambda s: "again" if s["n"] < 3 else "done", id="more")
        .branch("again", lambda s: None, loop_to="body")
        .branch("done", lambda s: None)
        .end()
        .add_function("After", lambda s: s.set("z", 1), id="after")
        .build()
        .run_sync()
    )
    assert links(made.why("z")) == [("after#9 z", "own", "", "own after")] or (
        [link[1] for link in links(made.why("z"))] == ["own"]
    )


def test_going_back_for_no_reason_but_the_chart_is_told_without_one():
    def count(scope):
        scope["n"] = scope["n"] + 1
        if scope["n"] > 2:
            scope.stop()

    made = (
        flow_chart("c", lambda s: s.set("n", 0), id="seed")
        .add_function("Count", count, id="count")
        .loop_to("count")
        .build()
        .run_sync()
    )
    assert links(made.why("n")) == [
        ("count#3 n", "read", "n", "count#2 n"),
        ("count#3 n", "looped", "", "count#2 loop"),
        ("count#2 n", "read", "n", "count#1 n"),
        ("count#2 n", "looped", "", "count#1 loop"),
        ("count#2 loop", "looped", "", "count#1 loop"),
        ("count#1 n", "read", "n", "seed#0 n"),
        ("seed#0 n", "own", "", "own seed"),
    ]
    assert "—" not in str(made.why("n"))
    assert "—" not in str(linear(lambda s: s.set("x", s.args), args={"a": 1, "b": 2}).why("x"))


def test_a_loop_costs_no_more_than_its_passes():
    made = looped(3000)
    why = made.why("end")
    # What was written the same in every pass was not changed by any.
    assert [link for link in links(why) if link[2] == "cfg"] == [
        (why[0].runtime_stage_id + " end", "read", "cfg", "seed#0 cfg")
    ]
    assert len(why.nodes) < 3 * 3000 + 10
    assert len(why.edges) < 6 * 3000 + 10
    assert len({node.id for node in why}) == len(why)
    whole = made.why("seen")
    assert len(whole.nodes) < 5 * 3000 + 10
    assert len(str(whole).splitlines()) < 25
    assert "3000 times" in str(whole)


def counted_links(monkeypatch, passes):
    from runbook_nb.record.trace_run import RunTracer

    asked = []
    links_of = RunTracer.links

    def counting(self, target):
        found = list(links_of(self, target))
        asked.append(len(found))
        return iter(found)

    monkeypatch.setattr(RunTracer, "links", counting)
    looped(passes).why("seen")
    return len(asked), sum(asked)


def test_every_step_is_asked_once(monkeypatch):
    small, big = counted_links(monkeypatch, 50), counted_links(monkeypatch, 500)
    assert big[0] <= small[0] * 11
    assert big[1] <= small[1] * 11


# -- paths that lead nowhere -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "code", "message", "fix"),
    [
        ("result[3]", "no_such_path", "nobody has written 'result'", "did you mean 'results'?"),
        (
            "results[*].value",
            "wildcard_path",
            "asks for every item at once",
            "name one item: 'results[0].value'",
        ),
        ("results[9]", "no_such_path", "it has 5 items", "its positions are 0 to 4"),
        (
            "results[3].valeu",
            "no_such_path",
            "it has index, item, status",
            "did you mean 'value'?",
        ),
        (
            "subjects[3].agedays",
            "no_such_path",
            "there is no 'agedays' in 'subjects[3]'",
            "did you mean 'age_days'?",
        ),
        ("subjects.name", "no_such_path", "it has 5 items", "its positions are 0 to 4"),
        ("subjects[0].name.x", "no_such_path", "it is c0", None),
        ("", "bad_path", "is no path", None),
        ("[3]", "bad_path", "is no path", None),
        ("a..b", "bad_path", "is no path", None),
        ("subjects[x]", "bad_path", "is no path", None),
        (None, "bad_path", "None is no path", None),
    ],
)
def test_paths_that_lead_nowhere_say_where_they_stop(path, code, message, fix):
    with pytest.raises(PathError) as caught:
        run().why(path)
    assert caught.value.code == code
    assert message in str(caught.value)
    if fix is not None:
        assert caught.value.fix == fix


def test_an_empty_state_and_a_deleted_key_are_told_apart():
    with pytest.raises(PathError) as caught:
        linear(lambda s: None).why("a")
    assert caught.value.fix is None
    made = linear(lambda s: s.set("cfg", {"a": 1}), lambda s: s.delete("cfg"))
    with pytest.raises(PathError, match="'cfg' was deleted"):
        made.why("cfg.a")


def test_keys_with_dots_are_taken_as_they_are_spelt():
    made = linear(lambda s: s.update({"a.b": {"c": 1}, "a": {"b": {"c": 2}}, "x y": [{"k.l": 3}]}))
    assert made.why("a.b.c").value == 1
    assert made.why("a.b").value == {"c": 1}
    assert made.why("a").value == {"b": {"c": 2}}
    assert made.why('x y[0]["k.l"]').value == 3
    assert made.why('x y[0]["k.l"]').path == 'x y[0]["k.l"]'


# -- other logs --------------------------------------------------------------------------------


def test_a_value_of_a_branch_can_be_asked_for_in_its_own_log():
    log = run().commits.whole().log("each~3")
    why = log.why("verdict")
    assert why[0].runtime_stage_id == "each~3/old#2"
    assert "inventory#0" in {node.runtime_stage_id for node in why}


def test_a_log_that_was_written_down_is_traced_by_the_reads_its_rows_tell():
    made = linear(
        lambda s: s.update({"a": [1], "l": [0]}),
        lambda s: s.set("b", s["a"]),
        lambda s: (s.get("b"), s.append("l", 2)),
        lambda s: s.set("n", s.args["n"]),
        lambda s: s.set("own", 1),
        args={"n": 1},
        state={"seed": 1},
    )
    log = CommitLog.from_published(
        made.commits.encoded("delta", provenance=True), {"seed": 1}, "delta", name="theirs"
    )
    assert links(log.why("l")) == [
        ("s2#2 l", "kept", "l", "s0#0 l"),
        ("s2#2 l", "read", "b", "s1#1 b"),
        ("s0#0 l", "own", "", "own s0"),
        ("s1#1 b", "read", "a", "s0#0 a"),
        ("s0#0 a", "own", "", "own s0"),
    ]
    assert links(log.why("n")) == [("s3#3 n", "input", "", "args")]
    assert links(log.why("own")) == [("s4#4 own", "own", "", "own s4")]
    assert [s.kind for s in log.why("seed").sources] == ["initial"]
    bare = CommitLog.from_published(made.commits.encoded(), {"seed": 1})
    assert links(bare.why("b")) == [("s1#1 b", "own", "", "unrecorded s1")]
    assert "what the stage read was not recorded" in str(bare.why("b"))


def test_a_log_written_and_read_back_is_traced_too():
    from runbook_nb.record.written import read_log, write_log

    made = run()
    log = read_log(json.loads(json.dumps(write_log(made.log))), [POSTURE])
    from runbook_nb.record.commits import RunTracks
    from runbook_nb.record.replay import Replayed

    track = Replayed(log, log.root.codes, log.root.values)
    tracks = RunTracks(
        track,
        name="triage",
        args=made.args,
        redactor=made.redactor,
        structure=made.structure,
    )
    why = tracks.log_of(track, track.top).why("results[3].value.verdict")
    steps = {node.runtime_stage_id for node in why}
    assert steps == {node.runtime_stage_id for node in made.why("results[3].value.verdict")}


# -- forms -------------------------------------------------------------------------------------


def test_a_trace_is_a_sequence_with_links_and_plain_forms():
    why = run().why("results[3].value.verdict")
    assert [node.id for node in why] == [f"n{n}" for n in range(len(why))]
    assert why[0] is why.nodes[0]
    assert why[-1:] == why.nodes[-1:]
    (edge, origin) = why.behind(why[0])[0]
    assert (edge.kind, origin.runtime_stage_id) == ("branch", "each~3/old#2")
    assert why.behind(origin.id)[0][1].kind == "own"
    data = json.loads(json.dumps(why.to_dict()))
    assert list(data) == ["path", "value", "nodes", "edges", "sources"]
    assert data["edges"][0] == {"reader": "n0", "origin": "n1", "kind": "branch", "key": "[3]"}
    assert data["nodes"][0]["path"] == "results[3].value.verdict"
    frame = why.to_frame()
    assert list(frame["depth"]) == sorted(frame["depth"])
    assert frame["because"][0] == "branch [3]"
    assert repr(why[0]) == '<WhyNode each#1: results[3].value.verdict = "old">'
    assert repr(why.sources[0]).startswith("<WhySource old: the stage's own")


def test_a_trace_is_told_in_a_few_lines():
    assert str(run().why("results[3].value.verdict")) == "\n".join(
        [
            "Why results[3].value.verdict · triage · old, from 6 steps, 3 sources",
            '  Assess each       results[3].value.verdict = "old"',
            "    collected from [3]",
            '  old               verdict = "old"',
            "    a value of its own, ran because Posture decided",
            "  Posture           old by rule 2 of health-signal v1: age_days 30 > 7",
            "    read age_known, age_days",
            "  Load              age_known = true, age_days = 30",
            "    was given item.age_known, item.age_days",
            "  Assess each [3]   handed on item.age_known = true, item.age_days = 30",
            "    read subjects[3].age_known, subjects[3].age_days",
            "  Inventory         subjects[3].age_known = true, subjects[3].age_days = 30",
            "    took from its input rows[3].age_known, rows[3].age_days",
            "Where it ends (2)",
            "  the stage's own: what a tool or its code gave left no read",
            "    old",
            "  the run's input",
            "    rows[3].age_known and rows[3].age_days",
            "what a tool or a stage's own code gave leaves no read",
        ]
    )


def drawn(why):
    (part,) = next(s for s in why.view().sections if s.label).parts
    return part


def test_a_trace_is_drawn_from_its_ends_down_to_the_value():
    flow = drawn(run().why("results[3].value.verdict"))
    graph = flow.graph
    assert [node.key for node in graph.nodes] == [
        "|own",
        "|args",
        "inventory|write",
        "each|item",
        "each/load|write",
        "each/posture|decision",
        "each/old|write",
        "each|write",
    ]
    assert [(e.source, e.target) for e in graph.edges] == [
        ("|own", "each/old|write"),
        ("|args", "inventory|write"),
        ("inventory|write", "each|item"),
        ("each|item", "each/load|write"),
        ("each/load|write", "each/posture|decision"),
        ("each/posture|decision", "each/old|write"),
        ("each/old|write", "each|write"),
    ]
    keys = {node.key for node in graph.nodes}
    assert {line.key for line in flow.lines} <= keys
    decided = next(e for e in graph.edges if e.source == "each/posture|decision")
    assert [line.kind for line in decided.lines] == ["count", "condition", "label"]


def test_like_steps_are_drawn_once_however_many_there_are():
    flow = drawn(run().why("verdicts"))
    assert len(flow.graph.nodes) == 10
    assert "like steps told once" in flow.notes
    flow = drawn(looped(200).why("seen"))
    assert len(flow.graph.nodes) <= 6


def test_a_trace_shows_itself_in_a_cell_and_twice_the_same():
    why = run().why("results[3].value.verdict")
    first, second = why._repr_mimebundle_()[0], why._repr_mimebundle_()[0]
    assert first == second
    assert "<img" in first["text/html"]
    assert "age_days 30 &gt; 7" in first["text/html"]
    assert why.to_markdown().startswith("**Why")
    assert repr(why) == "<Why results[3].value.verdict · triage · old, from 6 steps, 3 sources>"


def test_hostile_names_and_values_are_shown_as_text():
    word = "</style><img src=x onerror=alert(1)>|\\N\u202e"
    made = (
        flow_chart("c", lambda s: s.set(word, word), id="a", stage_name=word)
        .add_function(word, lambda s: s.set("b", s[word]), id="b")
        .build()
        .run_sync()
    )
    bundle = made.why("b")._repr_mimebundle_()[0]
    assert "<img src=x" not in bundle["text/html"]
    assert "\u202e" not in bundle["text/html"] + bundle["text/plain"]


# -- what a policy hides -----------------------------------------------------------------------


def test_hidden_values_are_hidden_in_every_form():
    def seed(scope):
        scope["rows"] = scope.args["rows"]
        scope["token"] = "tok-secret-1"

    chart = (
        flow_chart("c", seed, id="seed")
        .add_decider(
            "D",
            id="d",
            rules=rb.RuleSet("r", "1", [rb.Rule({"token": {"eq": "tok-secret-1"}}, "x")], "y"),
        )
        .branch("x", lambda s: s.set("out", [s["token"], s["rows"]]))
        .branch("y", lambda s: None)
        .end()
        .build()
    )
    made = chart.run_sync(
        {"rows": [{"pin": "pin-secret-2"}]}, redact={"keys": ["token"], "paths": ["rows[*].pin"]}
    )
    for path in ("out", "rows[0].pin", "rows", "token", "out[0]"):
        why = made.why(path)
        shown = str(
            [why.to_dict(), why.to_frame().to_dict(), str(why), why._repr_mimebundle_()]
            + [node.value for node in why]
            + [source.value for source in why.sources]
        )
        assert "secret-1" not in shown
        assert "secret-2" not in shown
    assert made.why("token").value == "[REDACTED]"
    assert made.why("rows[0].pin").value == "[REDACTED]"
    with pytest.raises(PathError) as caught:
        made.why("token.x")
    assert "secret" not in str(caught.value)


# -- the law of parts --------------------------------------------------------------------------
#
# Every stage writes lists of marks: those of what it read, and one of its own that names it. What
# stands in a value in the end are therefore exactly the stages whose writing went into it, found
# without looking at the record. A trace has to name every one of them.

KEYS = ("a", "b", "c")
READS = st.lists(st.sampled_from([*KEYS, "l", "m", "o"]), max_size=2)
OPS = st.one_of(
    st.tuples(st.just("mix"), st.sampled_from(KEYS), READS),
    st.tuples(st.just("mix"), st.sampled_from(KEYS), READS),
    st.tuples(st.just("copy"), st.sampled_from(KEYS), st.sampled_from(KEYS)),
    st.tuples(st.just("append"), st.just("l"), READS),
    st.tuples(st.just("merge"), st.just("m"), READS),
    st.tuples(st.just("args"), st.sampled_from(KEYS), READS),
    st.tuples(st.just("pass"), st.sampled_from(KEYS), READS),
    st.tuples(st.just("delete"), st.sampled_from(["b", "c"]), READS),
)


def marks(value: Any) -> set[str]:
    """Give the marks in a value, slots looked into."""
    if isinstance(value, str):
        return {value} if ":" in value else set()
    if isinstance(value, dict):
        return {mark for item in value.values() for mark in marks(item)}
    if isinstance(value, list | tuple):
        return {mark for item in value for mark in marks(item)}
    if hasattr(value, "fan_out"):
        return {mark for slot in value for mark in marks(slot.value)}
    return set()


@dataclass
class Part:
    kind: str
    ops: list[tuple[str, str, Any]]
    inner: list[list[Part]] = field(default_factory=list)
    pick: int = 0


def parts(depth: int) -> st.SearchStrategy[list[Part]]:
    kinds = ["stage", "stage"]
    if depth:
        kinds += ["decider", "fork", "merged", "subchart", "functions", "fan_out", "loop", "asks"]
    inner = (
        st.deferred(lambda: st.lists(parts(depth - 1), min_size=1, max_size=2))
        if depth
        else st.just([])
    )
    one = st.builds(
        Part, st.sampled_from(kinds), st.lists(OPS, max_size=3), inner, st.integers(0, 2)
    )
    return st.lists(one, min_size=1, max_size=3)


class Marker:
    """Makes the stages of one chart; each mark names its stage and is given once."""

    def __init__(self) -> None:
        self.given = 0

    def own(self, stage: str) -> str:
        self.given += 1
        return f"{stage}:{self.given}"

    def fn(self, stage: str, ops: list[tuple[str, str, Any]]) -> Any:
        def work(scope: Any) -> None:
            for kind, key, more in ops:
                self.do(scope, stage, kind, key, more)

        return work

    def do(self, scope: Any, stage: str, kind: str, key: str, more: Any) -> None:
        if kind == "copy":
            value = scope.get(more)
            if value is not None:
                scope[key] = value
        elif kind == "pass":
            found = list(scope.args.values())
            if found:
                scope[key] = found[0]
        elif kind == "delete":
            if key in scope:
                scope.delete(key)
        else:
            read = {mark for name in more for mark in marks(scope.get(name))}
            if kind == "args":
                read |= marks(dict(scope.args))
            value = [*sorted(read), self.own(stage)]
            if kind == "append":
                scope.append(key, value)
            elif kind == "merge":
                scope.merge(key, {stage: value})
            else:
                scope[key] = value

    def chart(self, made: list[Part], name: str) -> Any:
        first = [("mix", "a", ["b"]), ("append", "l", ["b"]), ("merge", "m", ["b"])]
        builder = flow_chart(name, self.fn(f"{name}s", first), id=f"{name}s")
        for place, part in enumerate(made):
            self.add(builder, part, f"{name}{place}")
        return builder.build()

    def add(self, builder: Any, part: Part, name: str) -> None:
        fn, inner = self.fn(name, part.ops), part.inner
        if part.kind == "stage":
            builder.add_function(name, fn, id=name)
        elif part.kind == "asks":
            builder.add_function(
                name,
                lambda s: (interrupt(s, "?"), fn(s))[1] if part.pick else fn(s),
                id=name,
            )
        elif part.kind == "decider":
            judge = lambda s: f"{name}x{(len(marks(s.get('a'))) + part.pick) % len(inner)}"  # noqa: E731
            made = builder.add_decider(name, judge=judge, id=name)
            for n, chart in enumerate(inner):
                made.branch(
                    f"{name}x{n}",
                    self.chart(chart, f"{name}i{n}"),
                    inputs={"b": "a"} if part.pick else dict,
                    outputs={"c": "a", "l": "l"},
                )
            made.end()
        elif part.kind in ("fork", "merged"):
            how = {"into": "o"} if part.kind == "fork" else {"merge": merge_all}
            made = builder.add_fork(name, id=name, **how)
            made.branch(f"{name}p", self.fn(f"{name}p", part.ops))
            for n, chart in enumerate(inner):
                made.branch(
                    f"{name}x{n}",
                    self.chart(chart, f"{name}i{n}"),
                    inputs={"b": "a"},
                    outputs={"c": "a"},
                )
            made.end()
        elif part.kind == "subchart":
            builder.add_subchart(
                name,
                self.chart(inner[0], f"{name}i"),
                id=name,
                inputs={"b": "a", "c": "a"},
                outputs={"c": "a", "l": "l", "b": "m"},
                array_merge="replace" if part.pick else "concat",
            )
        elif part.kind == "functions":
            builder.add_subchart(
                name,
                self.chart(inner[0], f"{name}i"),
                id=name,
                inputs=lambda s: {"b": s.get("a"), "c": [s.get("c")]},
                outputs=lambda given, s: {
                    "c": sorted(marks(given)),
                    "a": given["a"] if isinstance(given, dict) else [],
                },
            )
        elif part.kind == "fan_out":
            builder.add_parallel_for_each(
                name,
                id=name,
                items=lambda s: [s.get("a"), *(s.get("l") or [])][:3],
                branch=self.chart(inner[0], f"{name}i"),
                max_branches=2,
                into="o",
            )
        else:
            builder.add_function(f"{name}h", fn, id=f"{name}h")

            def judge(scope: Any) -> str:
                scope[f"n{name}"] = scope.get(f"n{name}", 0) + 1
                return f"{name}again" if scope[f"n{name}"] <= part.pick else f"{name}done"

            made = builder.add_decider(name, judge=judge, id=name)
            made.branch(f"{name}again", self.fn(f"{name}again", part.ops), loop_to=f"{name}h")
            made.branch(f"{name}done", lambda s: None).end()


def merge_all(scope: Any, slots: Any) -> None:
    scope["c"] = sorted(marks(slots) | marks(scope.get("b")))


def played(made: list[Part]) -> Any:
    chart = Marker().chart(made, "c")
    found = chart.run_sync({"in": ["args:0"]}, state={"b": ["state:0"]}, limits=Limits(loops=9))
    while found.status == "paused":
        found = chart.resume_sync(found.checkpoint, "go on", limits=Limits(loops=9))
    return found


def makers(found: Any) -> dict[str, str]:
    """Give, for each mark, the execution that made it."""
    out: dict[str, str] = {}
    for commit in found.commits.whole():
        for change in commit.changes:
            for mark in marks(change.value):
                if mark.split(":")[0] == commit.stage_id:
                    out.setdefault(mark, commit.runtime_stage_id)
    return out


@settings(max_examples=150, deadline=None)
@given(parts(2))
def test_every_stage_whose_writing_went_into_a_value_is_in_its_trace(made):
    found = played(made)
    made_by = makers(found)
    for log in found.commits.whole().logs:
        state = log.state_at(len(log)).state
        for key, value in state.items():
            check(log, key, marks(value), made_by)
            if key == "l" and isinstance(value, list):
                for place, item in enumerate(value):
                    check(log, f"l[{place}]", marks(item), made_by)
            if key == "m":
                for name, item in value.items():
                    check(log, f"m.{name}", marks(item), made_by)
            if key == "o":
                for slot in value:
                    there = slot.value if isinstance(slot.value, dict) else {}
                    for name, item in there.items():
                        check(log, f"o[{slot.index}].value.{name}", marks(item), made_by)


def check(log: CommitLog, path: str, wanted: set[str], made_by: dict[str, str]) -> None:
    why = log.why(path)
    steps = {node.runtime_stage_id for node in why}
    ends = {source.kind for source in why.sources}
    for mark in wanted:
        if mark == "args:0":
            assert "args" in ends
        elif mark == "state:0":
            assert "initial" in ends
        elif mark in made_by:
            assert made_by[mark] in steps, (path, mark)
    sound(why)


def sound(why: Any) -> None:
    """Hold a trace to what every trace is."""
    ids = {one.id for one in (*why.nodes, *why.sources)}
    assert len(ids) == len(why.nodes) + len(why.sources)
    assert {edge.reader for edge in why.edges} == {node.id for node in why}
    assert {edge.origin for edge in why.edges} | {"n0"} >= ids - (
        {"s0"} if not why.nodes else set()
    )
    depths = {node.id: node.depth for node in why}
    for edge in why.edges:
        assert edge.origin in ids
        if edge.origin in depths:
            assert depths[edge.origin] <= depths[edge.reader] + 1
    assert [node.depth for node in why] == sorted(depths.values())
    assert str(why)


SINGLE = st.lists(
    st.tuples(st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=2)),
    min_size=1,
    max_size=8,
)


@given(SINGLE)
def test_of_stages_that_use_all_they_read_no_other_is_in_a_trace(writes):
    marker = Marker()
    builder = flow_chart("c", lambda s: None, id="start")
    for place, (key, reads) in enumerate(writes):
        builder.add_function(
            f"S{place}", marker.fn(f"s{place}", [("mix", key, reads)]), id=f"s{place}"
        )
    found = builder.build().run_sync()
    made_by = makers(found)
    for key, value in found.state.items():
        steps = {node.runtime_stage_id for node in found.why(key)}
        assert steps == {made_by[mark] for mark in marks(value)}


def test_two_traces_of_the_same_run_are_the_same_to_the_byte():
    random.seed(3)
    one, other = run().why("verdicts"), run().why("verdicts")
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert str(one) == str(other)


def test_a_key_is_merged_from_the_branch_that_ended_well():
    def fail(scope):
        scope["k"] = 1
        raise ValueError("no")

    chart = (
        flow_chart("c", lambda scope: None, id="begin")
        .add_fork("Ask", id="ask", merge="keys")
        .branch("bad", fail)
        .branch("good", lambda scope: scope.set("k", 1))
        .end()
        .build()
    )
    told = str(chart.run_sync().why("k"))
    assert "merged from good" in told
    assert "bad" not in told
