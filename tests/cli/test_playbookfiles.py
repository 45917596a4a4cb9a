"""Checking playbooks and skills: told from rules by content, each finding with its line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import runbook_nb as rb

GOOD = """\
id: refund
name: Refund
steps:
- id: triage
  description: Look the order up.
  expected_tools: [lookup_order]
- id: pay
  description: Pay.
  expected_tools: [issue_refund]
"""
TOOLS = """\
import runbook_nb as rb

@rb.tool(description="Looks an order up.")
def lookup_order():
    return {"result": 1}

@rb.tool(description="Pays.")
def issue_refund():
    return {"result": 1}

box = rb.Toolbox([lookup_order, issue_refund])
"""


def put(name, text):
    Path(name).write_text(text, "utf-8")


def lines(out):
    return [line.strip() for line in out.splitlines()]


def test_a_sound_playbook_is_named_and_what_nobody_told_is_said(call):
    put("a.yaml", GOOD)
    status, out, err = call("check", "a.yaml")
    assert (status, err) == (0, "")
    assert lines(out) == [
        "a.yaml: playbook Refund 1.0.0, 2 steps, policy safe",
        "not checked: whether the tools exist (give --tools)",
    ]


def test_playbooks_and_rules_are_told_apart_by_what_they_hold(call):
    put("a.yaml", GOOD)
    put("a.json", json.dumps({"id": "p", "name": "P", "steps": []}))
    put("g.yml", "id: g\nname: G\nstep_groups: []\n")
    rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh").save("b.yaml")
    status, out, _ = call("check", "a.yaml", "a.json", "g.yml", "b.yaml")
    kinds = [
        line.split(": ")[1].split(" ")[0] for line in lines(out) if line[:2] in ("a.", "b.", "g.")
    ]
    assert kinds == ["playbook", "playbook", "playbook", "rules"]
    assert status == 0


def test_findings_carry_their_lines_and_errors_count(call):
    put("tools_of_mine.py", TOOLS)
    put("a.yaml", GOOD.replace("[lookup_order]", "[lookup_ordr]"))
    status, out, _ = call("check", "a.yaml", "--tools", "tools_of_mine:box")
    assert status == 1
    assert lines(out)[1] == (
        "line 6: error unknown_tool: steps[0].expected_tools[0]: there is no tool 'lookup_ordr'; "
        "did you mean 'lookup_order'?"
    )
    assert lines(out)[2].startswith("line 7: warning unreachable_step: steps[1]")


def test_steps_in_groups_carry_the_lines_they_stand_on(call):
    put(
        "g.yaml",
        "id: g\nname: G\nstep_groups:\n- id: one\n  goal: First\n  steps:\n"
        "  - {id: a, description: A., expected_tools: [x]}\n"
        "- id: two\n  goal: Then\n  steps:\n  - {id: b, description: B.}\n",
    )
    status, out, _ = call("check", "g.yaml")
    assert status == 0
    assert lines(out)[1].startswith("line 11: warning open_step: steps[1]: ")


def test_warnings_alone_are_no_fault_and_the_policy_decides_which_is_which(call):
    put("a.yaml", "id: a\nname: A\nsteps:\n- {id: look, description: Look.}\n")
    assert call("check", "a.yaml")[0] == 0
    status, out, _ = call("check", "a.yaml", "--policy", "compat")
    assert status == 1
    assert "error open_step" in out
    assert "policy compat" in out


def test_skills_of_a_folder_are_looked_up(call):
    Path("skills/orders").mkdir(parents=True)
    put("skills/orders/SKILL.md", "---\nname: orders\ndescription: d\nallowed-tools: look\n---\n")
    put("a.yaml", GOOD.replace("  expected_tools: [lookup_order]\n", "  uses: [order]\n"))
    status, out, _ = call("check", "a.yaml", "--skills", "skills")
    assert status == 1
    assert "unresolved_skill" in out
    assert "did you mean 'orders'?" in out


def test_what_cannot_be_read_is_told_as_anywhere_else(call):
    put("a.yaml", GOOD.replace("expected_tools: [lookup_order]", "expected_tool: [lookup_order]"))
    put("b.yaml", GOOD + "  expected_tools: [x]\n")
    put("c.json", json.dumps({"type": "playbook", "spec_version": "cacao-2.0", "workflow": {}}))
    status, out, _ = call("check", "a.yaml", "b.yaml", "c.json")
    assert status == 1
    assert "did you mean 'expected_tools'?" in out
    assert "line 10" in out
    assert "CACAO" in out
    assert out.count(": wrong") == 3


def test_a_cacao_document_is_told_how_it_is_written_as_a_playbook(call):
    put("c.json", json.dumps({"type": "playbook", "spec_version": "cacao-2.0", "workflow": {}}))
    assert "`runbook-nb export FILE --to native`" in call("check", "c.json")[1]


def test_what_is_wrong_is_told_line_by_line_and_then_by_its_code(call):
    steps = [
        "- {id: a, description: d, kind: approve, max_tool_calls: 0}",
        "- {id: ' ', description: d, foo: 1}",
        "- {description: d, foo: 1}",
    ]
    put("wrong.yaml", "\n".join(["id: x", "name: X", "steps:", *steps, ""]))
    out = call("check", "wrong.yaml")[1]
    assert [int(one) for one in re.findall(r"line (\d+)", out)] == [4, 4, 5, 5, 6, 6]
    told = json.loads(call("check", "wrong.yaml", "--json")[1])["files"][0]["problems"]
    places = [(one["line"], one["code"]) for one in told]
    assert places == sorted(places)
    assert len(places) == 6


def test_what_does_not_go_is_told_line_by_line(call):
    tools = "expected_tools: [scan, scan2, scan3], max_tool_calls: 1"
    steps = [f"- {{id: {name}, description: d, {tools}}}" for name in "ab"]
    text = "\n".join(["id: x", "name: X", "steps:", *steps, "max_iterations: 1", ""])
    put("odd.yaml", text)
    told = json.loads(call("check", "odd.yaml", "--policy", "compat", "--json")[1])["files"][0]
    for found in (told["problems"], told.get("warnings", [])):
        lines = [(one["line"] or 0, one["code"]) for one in found]
        assert lines == sorted(lines)
    assert told["problems"]


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_what_holds_neither_is_read_as_before(call, name):
    put(name, "{" if name.endswith("json") else "a: 1\n")
    status, out, _ = call("check", name, "gone.yaml")
    assert status == 1
    assert out.count(": wrong") == out.count(": cannot be read") == 1
    assert "playbook" not in out


def test_a_skill_is_read_strictly(call):
    put("SKILL.md", "---\nname: orders\ndescription: d\nallowed-tool: look\n---\n")
    status, out, _ = call("check", "SKILL.md")
    assert status == 1
    assert "did you mean 'allowed-tools'" in out
    Path("orders").mkdir()
    put("orders/SKILL.md", "---\nname: orders\ndescription: d\nallowed-tools: look, see\n---\n")
    assert call("check", "orders/SKILL.md") == (
        0,
        "orders/SKILL.md: skill orders, allows 2 tools, asks for 0 probes\n",
        "",
    )


def test_warnings_stand_in_the_json_beside_what_is_wrong(call):
    put("a.yaml", "id: a\nname: A\nsteps:\n- {id: look, description: Look.}\n")
    put("b.yaml", "a: 1\n")
    status, out, _ = call("check", "a.yaml", "b.yaml", "--json")
    first, second = json.loads(out)["files"]
    assert status == 1
    assert first["problems"] == []
    assert [(one["code"], one["line"]) for one in first["warnings"]] == [("open_step", 4)]
    assert "warnings" not in second


def test_what_cannot_be_known_without_the_tools_is_said_of_each_requirement(call):
    more = "- {id: tell, description: Tell., expected_tools: [mail], requires: [%s]}\n"
    put("a.yaml", GOOD + more % "zzz, pay, lookup_order")
    put("b.yaml", GOOD + more % "triag")
    status, out, _ = call("check", "a.yaml")
    assert status == 0
    assert lines(out)[1:] == [
        "not checked: whether the tools exist (give --tools)",
        "not checked: whether 'zzz', which steps[2].requires[0] asks for, is a tool (give --tools)",
    ]
    told = json.loads(call("check", "a.yaml", "--json")[1])["files"][0]
    assert "zzz" in told["not_checked"][1]
    status, out, _ = call("check", "b.yaml")
    assert status == 1
    assert "error unknown_requirement: steps[2].requires[0]: 'triag' is neither" in out
    assert "did you mean 'triage'?" in out
    put("tools_of_ours.py", TOOLS)
    assert "zzz" in call("check", "a.yaml", "--tools", "tools_of_ours:box")[1].split("not check")[0]


def test_what_there_is_to_go_by_has_to_be_there(call):
    put("a.yaml", GOOD)
    assert call("check", "a.yaml", "--skills", "gone")[0] == 2
    for name, why in (("gone:box", "'gone' cannot be imported"), ("a,b", "under the name 'a,b'")):
        status, out, told = call("check", "a.yaml", "--tools", name)
        assert (status, out) == (2, "")
        assert why in told
    Path("skills/bad").mkdir(parents=True)
    put("skills/bad/SKILL.md", "nothing")
    status, out, _ = call("check", "a.yaml", "--skills", "skills")
    assert status == 1
    assert "bad: there is no front matter" in out
