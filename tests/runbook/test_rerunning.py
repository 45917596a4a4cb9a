"""Running a cell again: what is defined again takes the place of what was there, and never errs."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.rules import versions

#: Three cells of a notebook; each is run as often as its author likes.
RULES = """
posture = rb.RuleSet("age", "v1", [rb.Rule({{"days": {{"gt": {days}}}}}, "old")], "fresh")
"""
TOOL = """
@rb.tool(description="Hosts with the age of their last backup.")
def inventory():
    return rb.coverage({{"rows": [{{"host": "a", "days": {age}}}]}}, checked=["the inventory"])
"""
RUNBOOK = """
def procedure(tools):
    async def load(scope):
        scope["rows"] = (await tools.call("inventory", {{}}))["result"]["rows"]

    return (
        rb.flow_chart("ages", load, id="load")
        .add_judge_each("Judge", id="each", items=lambda s: s["rows"], rules=posture,
                        max_branches=9, into="out", subject="host")
        .add_function("Collect", lambda s: s.set("verdicts", s["out"].verdict_rows("days")),
                      id="collect")
        .build()
    )

ages = rb.runbook_as_tool(name="ages", description="{text}", procedure=procedure,
                          result_kind="verdict/age", rules=posture,
                          verdicts={{"decider": "Verdict"}}, composed_of=["inventory"])
"""
BOX = "box = rb.Toolbox([inventory, ages])"
ADD = "box.add(inventory)\nbox.add(ages)"


@pytest.fixture
def run_cell():
    """Run cells as a kernel does: in one namespace."""
    namespace = {"rb": rb}

    def run_cell(*cells):
        for cell in cells:
            exec(compile(cell, "<cell>", "exec"), namespace)  # noqa: S102 - that is what a cell is
        return namespace

    return run_cell


def verdicts(box):
    return [row["verdict"] for row in box.call_sync("ages", {}).verdicts]


def test_every_cell_may_be_run_again(run_cell):
    cells = [RULES.format(days=7), TOOL.format(age=9), RUNBOOK.format(text="first"), BOX]
    held = run_cell(*cells)
    assert verdicts(held["box"]) == ["old"]
    held = run_cell(*cells)
    assert verdicts(held["box"]) == ["old"]


def test_a_tool_added_again_takes_the_place_of_its_namesake(run_cell):
    run_cell(RULES.format(days=7), TOOL.format(age=9), RUNBOOK.format(text="first"), BOX)
    held = run_cell(TOOL.format(age=2), ADD)
    assert verdicts(held["box"]) == ["fresh"]
    assert [tool.name for tool in held["box"]].count("inventory") == 1


def test_a_runbook_added_again_takes_the_place_of_its_namesake(run_cell):
    run_cell(RULES.format(days=7), TOOL.format(age=9), RUNBOOK.format(text="first"), BOX)
    held = run_cell(RULES.format(days=14), RUNBOOK.format(text="second"), ADD)
    assert verdicts(held["box"]) == ["fresh"]
    assert held["box"]["ages"].description == "second"


def test_rules_changed_under_their_version_are_spoken_where_two_answers_meet(run_cell):
    held = run_cell(RULES.format(days=7), TOOL.format(age=9), RUNBOOK.format(text="first"), BOX)
    first = held["box"].call_sync("ages", {})
    held = run_cell(RULES.format(days=14), RUNBOOK.format(text="first"), ADD)
    second = held["box"].call_sync("ages", {})
    assert first.compare(second).notes == ("both sides are judged under age v1, content differs",)
    assert second.compare(second).notes == ()


def test_rules_changed_under_the_runbook_are_spoken_by_its_answer(run_cell):
    run_cell(RULES.format(days=7), TOOL.format(age=9), RUNBOOK.format(text="first"), BOX)
    # The procedure looks the name up when it runs; the stamp is what was declared.
    held = run_cell(RULES.format(days=14))
    ledger = held["box"].call_sync("ages", {}).ledger
    assert any(
        "whether the stamp age v1 fits" in item.what and "of other content" in item.what
        for item in ledger.not_checked
    )


def aged(days, version="v1", name="health-signal"):
    return rb.RuleSet(name, version, [rb.Rule({"days": {"gt": days}}, "old")], "fresh")


def judged(rules, **more):
    rows = [{"host": "a", "days": 9}, {"host": "b", "days": 2}]
    return rb.triage(rows, rules, subject="host", source="two rows", **more)


SPOKEN = (
    "judged under health-signal v1, content differs from what judged before; write version 'v2'"
)


def test_other_content_under_a_version_that_judged_before_is_spoken():
    first = judged(aged(7))
    second = judged(aged(14))
    assert SPOKEN not in str(first)
    assert SPOKEN in " ".join(str(second).split())
    html = second._repr_mimebundle_()[0]["text/html"]
    assert "content differs from what judged before" in html
    assert "content differs" not in str(second.to_dict())
    copy = rb.Envelope.from_dict(second.to_dict(dossier=True))
    assert str(copy) == str(second)


def test_running_a_cell_again_says_what_it_said():
    for _ in range(2):
        assert "content differs" not in str(judged(aged(7)))
        assert "content differs" in str(judged(aged(14)))
    assert "content differs" not in str(judged(aged(14, "v2")))
    assert "content differs" not in str(judged(aged(14, name="other")))


def test_a_version_that_stands_for_two_contents_is_spoken_of_when_judging_again():
    envelope = judged(aged(7))
    again = envelope.rejudge(aged(14))
    assert "Judged under health-signal v1, content differs." in str(again)
    assert "content differs" in again._repr_mimebundle_()[0]["text/html"]
    assert "content differs" not in str(envelope.rejudge(aged(7)))
    assert "content differs" not in str(envelope.rejudge(aged(14, "v2")))


def test_a_hidden_name_of_rules_stays_hidden_when_it_is_spoken():
    hide = {"values": ["health-signal"]}
    judged(aged(7), redact=hide)
    second = str(judged(aged(14), redact=hide))
    assert "content differs" in second
    assert "health-signal" not in second


def test_so_many_versions_are_remembered_and_no_more(monkeypatch):
    monkeypatch.setattr(versions, "MOST_VERSIONS", 2)
    told = [versions.judged_otherwise(aged(days, version)) for version in "abc" for days in (7, 14)]
    assert told == [False, True, False, True, False, False]
