"""What a step's skills bind, ask for and leave open."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from runbook_nb.playbooks.skills import (
    Skill,
    allowed_tools_for,
    effective_probes,
    effort_of,
    is_outside,
    skills_of,
    unresolved_skills,
)
from runbook_nb.tools import Toolbox, tool


def step(*uses, probes=(), floor=None, cap=None):
    return SimpleNamespace(
        uses=list(uses), required_probes=list(probes), min_tool_calls=floor, max_tool_calls=cap
    )


def probe(name, match="x"):
    return SimpleNamespace(name=name, match=match)


def skill(**fields):
    return Skill("named-otherwise", "Use when needed.", **fields)


def test_a_skill_has_the_published_fields_and_defaults():
    bare = Skill("a", "b")
    assert vars(bare) == {
        "name": "a",
        "description": "b",
        "instructions": "",
        "path": None,
        "allowed_tools": None,
        "required_probes": [],
        "min_tool_calls": None,
        "max_tool_calls": None,
        "metadata": {},
        "license": None,
        "compatibility": None,
        "tools": [],
    }
    assert Skill("a", "b") == bare
    assert bare.metadata is not Skill("a", "b").metadata


def test_a_skill_brings_its_tools_to_a_toolbox():
    @tool(description="Looks.")
    def look():
        return {"result": 1}

    box = Toolbox([], skills=[skill(tools=[look])])
    assert box.call_sync("look", {}) == {"result": 1}


# --- finding them -----------------------------------------------------------------------------


def test_skills_are_found_by_key_in_the_order_of_uses_and_once():
    first, second = skill(), skill()
    known = {"a": first, "b": second, "named-otherwise": skill()}
    assert skills_of(step("b", "a", "b", "gone"), known) == [second, first]
    assert unresolved_skills(step("b", "gone", "gone", "lost"), known) == ["gone", "lost"]


@pytest.mark.parametrize("known", [None, {}, {"a": None}])
def test_without_a_skill_nothing_is_bound_and_the_name_is_unresolved(known):
    one = step("a")
    assert skills_of(one, known) == []
    assert unresolved_skills(one, known) == ["a"]
    assert effective_probes(one, known) == []
    assert allowed_tools_for(one, known) is None


# --- probes -----------------------------------------------------------------------------------


def test_of_probes_with_one_name_the_step_s_own_comes_first_then_the_order_of_uses():
    known = {
        "a": skill(required_probes=[probe("p", "a"), probe("q", "a")]),
        "b": skill(required_probes=[probe("q", "b"), probe("r", "b")]),
    }
    own = [probe("p", "own"), probe("p", "own again")]
    found = effective_probes(step("b", "a", probes=own), known)
    assert [(one.name, one.match) for one in found] == [("p", "own"), ("q", "b"), ("r", "b")]


def test_any_object_serves_that_has_what_is_asked_for():
    found = effective_probes(step("a", "b"), {"a": object(), "b": SimpleNamespace(name="b")})
    assert found == []
    assert allowed_tools_for(step("a"), {"a": SimpleNamespace(allowed_tools=("t",))}) == {"t"}


# --- lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "unbound", "deny"),
    [
        ([None], None, None),
        ([[]], None, set()),
        ([["a"], None], {"a"}, {"a"}),
        ([["a"], []], {"a"}, {"a"}),
        ([["a", "b"], ["b", "c"]], {"a", "b", "c"}, {"a", "b", "c"}),
        ([None, []], None, set()),
    ],
)
def test_the_bound_is_the_union_of_what_is_declared(lists, unbound, deny):
    known = {str(n): skill(allowed_tools=one) for n, one in enumerate(lists)}
    asked = step(*known)
    assert allowed_tools_for(asked, known) == unbound
    assert allowed_tools_for(asked, known, empty_skill_list="deny") == deny


def test_a_call_is_outside_only_where_something_is_bound():
    assert not is_outside(None, "anything")
    assert is_outside(set(), "anything")
    assert not is_outside({"scan"}, "scan")
    assert is_outside({"scan"}, "Scan")


def test_a_pattern_is_a_name_when_taken_literally_and_a_bound_when_understood():
    entries = {"Bash(git:*)", "Read"}
    call = {"cmd": "git log"}
    assert is_outside(entries, "Bash", call)
    assert not is_outside(entries, "Bash(git:*)", {})
    assert not is_outside(entries, "Bash", call, skill_patterns="understood")
    assert is_outside(entries, "Bash(git:*)", {}, skill_patterns="understood")
    assert is_outside(entries, "Bash", {"cmd": "rm x"}, skill_patterns="understood")
    assert is_outside(entries, "Bash", None, skill_patterns="understood")
    assert not is_outside(entries, "Bash", skill_patterns="understood")


# --- effort -----------------------------------------------------------------------------------


def test_effort_is_the_step_s_own_then_the_strictest_of_its_skills():
    known = {
        "a": skill(min_tool_calls=2, max_tool_calls=9),
        "b": skill(min_tool_calls=4, max_tool_calls=6),
        "c": skill(),
    }
    assert effort_of(step("a", "b", "c"), known) == (None, None)
    assert effort_of(step("a", "b", "c"), known, inherit=True) == (4, 6)
    assert effort_of(step("a", floor=0), known, inherit=True) == (0, 9)
    assert effort_of(step("a", cap=1), known, inherit=True) == (2, 1)
    assert effort_of(step("c"), known, inherit=True) == (None, None)
