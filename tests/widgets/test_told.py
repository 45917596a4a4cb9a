"""Filed rows beside a dossier: each row is tied to the subject whose branch it is in."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb
from runbook_nb.errors import SubjectNotFound
from runbook_nb.rules import Rule, RuleSet
from runbook_nb.widgets.told import ToldSource

RULES = RuleSet("r", "1", [Rule({"age": {"gt": 7}}, "old")], "new")


def load(scope):
    for key, value in scope.args["item"].items():
        scope.set(key, value)


def judged():
    return (
        rb.flow_chart("one", load, id="load")
        .add_decider("Age", rules=RULES, id="age")
        .branch("old", lambda s: None)
        .branch("new", lambda s: None)
        .branch("declined", lambda s: None)
        .end()
        .build()
    )


def each(name, rows, branch, id="each"):
    return (
        rb.flow_chart(name, lambda s: s.set("rows", rows(s)), id="rows")
        .add_parallel_for_each(
            "Each",
            id=id,
            items=lambda s: s["rows"],
            branch=branch,
            max_branches=9,
            into="out",
            subject="h",
        )
        .build()
    )


def fan(name, *ages):
    rows = [{"h": f"{name}{n}", "age": age} for n, age in enumerate(ages)]
    return each(name, lambda s: rows, judged())


def told(chart):
    """Give what is told from the filed rows beside the dossier of a copy."""
    tool = rb.runbook_as_tool(
        name="r",
        description="d",
        procedure=lambda t: chart,
        result_kind="report/x",
        rules=RULES,
    )
    live = rb.Toolbox([tool]).call_sync("r", {})
    copy = rb.Envelope.from_dict(json.loads(json.dumps(live.to_dict(dossier=True), default=str)))
    rows = list(live.run.walk)
    source = ToldSource(
        "r", "told", structure=copy.dossier.structure, dossier=copy.dossier, rows=rows, steps=1
    )
    return source, [source.at(row.step) for row in rows if row.type == "condition"]


def test_fan_outs_of_one_id_in_two_places_are_told_apart():
    chart = (
        rb.flow_chart("c", lambda s: None, id="s")
        .add_subchart("A", fan("a", 9, 1), id="A")
        .add_subchart("B", fan("b", 1, 99), id="B")
        .add_function("Collect", lambda s: s.set("report", {"ok": 1}), id="collect")
        .build()
    )
    source, seen = told(chart)
    assert [one.subject for one in seen] == ["a0", "a1", "b0", "b1"]
    for one in seen:
        assert one.evidence.words.split(" ")[0] == one.row.text.split(" ")[0]
    assert source.at(source.find("a1")).subject == "a1"


@pytest.mark.parametrize(
    ("never", "twice", "all_told"), [(1, 0, False), (0, 1, False), (9, 9, True)]
)
def test_a_fan_out_one_branch_runs_twice_and_another_never_is_tied_to_no_wrong_subject(
    never, twice, all_told
):
    def begin(scope):
        scope.set("turn", 0)
        if scope.args["item"]["n"] == never:
            scope.stop("nothing to look at")

    def hosts(scope):
        return [{"h": f"s{scope.args['item']['n']}-t{scope['turn']}", "age": 9 * scope["turn"]}]

    def again(scope):
        return "more" if scope.args["item"]["n"] == twice and scope["turn"] < 2 else "done"

    within = (
        rb.flow_chart("site", begin, id="begin")
        .add_parallel_for_each(
            "Hosts", id="host", items=hosts, branch=judged(), max_branches=9, into="o", subject="h"
        )
        .add_function("Count", lambda s: s.set("turn", s["turn"] + 1), id="count")
        .add_decider("Again", again, id="again")
        .branch("more", lambda s: None, loop_to="host")
        .branch("done", lambda s: None)
        .end()
        .build()
    )
    sites = [{"h": f"s{n}", "n": n} for n in range(2)]
    _, seen = told(each("c", lambda s: sites, within, id="site"))
    judging = [one for one in seen if "rule" in one.row.text]
    found = [one.subject for one in judging]
    if all_told:
        assert found == ["s0-t0", "s1-t0"]
    else:
        assert found == ["", ""]


@pytest.mark.parametrize("inner", [(2, 2), (2, 1), (2, 0), (0, 2)])
def test_subjects_of_a_fan_out_in_a_fan_out_are_told_by_all_their_places_or_not_at_all(inner):
    sites = [{"h": f"s{n}", "n": n, "many": many} for n, many in enumerate(inner)]

    def hosts(scope):
        site = scope.args["item"]
        return [{"h": f"s{site['n']}-{i}", "age": 9 * i} for i in range(site["many"])]

    within = each("site", hosts, judged(), id="host")
    chart = (
        rb.flow_chart("c", lambda s: s.set("sites", sites), id="s")
        .add_parallel_for_each(
            "Sites",
            id="site",
            items=lambda s: s["sites"],
            branch=within,
            max_branches=9,
            into="all",
            subject="h",
        )
        .add_function("Collect", lambda s: s.set("report", {"ok": 1}), id="collect")
        .build()
    )
    source, seen = told(chart)
    wanted = [f"s{n}-{i}" for n, many in enumerate(inner) for i in range(many)]
    assert [one.subject for one in seen] in (wanted, [""] * len(wanted))
    for one in seen:
        if one.subject:
            assert one.evidence.words.split(" ")[0] == one.row.text.split(" ")[0]
    if 0 not in inner:
        assert [one.subject for one in seen] == wanted
        assert source.at(source.find("s0-1")).subject == "s0-1"
    with pytest.raises(SubjectNotFound):
        source.find("s7-7")
