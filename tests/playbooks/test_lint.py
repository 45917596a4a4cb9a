"""Lint: each thing that can be wrong, under the policy that makes it so, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.lint import tool_names
from runbook_nb.playbooks.model import Playbook, PlaybookStep
from runbook_nb.playbooks.skills import Skill


def step(name="one", tools=("scan",), **fields):
    return PlaybookStep(id=name, description="", expected_tools=list(tools), **fields)


def book(*steps, **fields):
    return Playbook(id="p", name="Payout", steps=list(steps), **fields)


def lint(*steps, tools=None, skills=None, policy=None, **fields):
    return book(*steps, **fields).lint(tools, skills, policy)


def told(*steps, **how):
    return [(one.code, one.severity, one.where) for one in lint(*steps, **how)]


def only(*steps, **how):
    (found,) = lint(*steps, **how)
    return found


def skill(**fields):
    return Skill("k", "x", **fields)


def probe(match, name="p"):
    return {"name": name, "match": match}


GOOD = [step(), step("two", ["pay", "scan"], required_probes=[probe("index")], max_tool_calls=3)]


# --- nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["safe", "compat"])
def test_of_a_sound_playbook_nothing_is_found(policy):
    found = lint(*GOOD, tools=["scan", "pay"], skills={}, policy=policy)
    assert found.findings == ()
    assert found.ok
    assert found.not_checked == ()
    found.raise_errors()
    assert "nothing was found" in str(found)


def test_what_nobody_told_is_said_to_be_unchecked_and_not_taken_for_sound():
    found = lint(step(uses=["k"]))
    assert found.ok
    assert [line.split(" (")[0] for line in found.not_checked] == [
        "whether the tools exist",
        "what the skills allow and ask for",
    ]
    assert "Not checked" in str(found)
    assert lint(step(tools=(), kind="manual")).not_checked == ()


# --- tools ------------------------------------------------------------------------------------


def test_a_tool_that_does_not_exist_is_told_with_the_near_one():
    found = only(step(tools=["scna", "scna"]), tools=["scan"])
    assert (found.code, found.severity, found.where) == (
        "unknown_tool",
        "error",
        "steps[0].expected_tools[0]",
    )
    assert found.fix == "did you mean 'scan'?"
    assert found.step_id == "one"


def test_a_tool_that_no_skill_of_the_step_allows_is_impossible():
    skills = {"k": skill(allowed_tools=["look"]), "free": skill()}
    found = only(step(uses=["k", "free"]), skills=skills)
    assert (found.code, found.severity) == ("impossible_tool", "error")
    assert "'look'" in found.message
    assert told(step(uses=["k"]), skills=skills, allow_extra_tools=True) == []
    assert told(step(uses=["k"]), skills=skills, policy={"skills_mean": "advisory"}) == []
    assert told(step(tools=["look"], uses=["k"]), skills=skills) == []


@pytest.mark.parametrize(
    ("empty", "codes"),
    [("unbound", ["empty_skill_list"]), ("deny", ["impossible_tool", "empty_skill_list"])],
)
def test_an_empty_list_binds_as_the_policy_has_it(empty, codes):
    found = lint(
        step(uses=["k"]), skills={"k": skill(allowed_tools=[])}, policy={"empty_skill_list": empty}
    )
    assert list(found.codes) == codes


def test_a_bound_on_arguments_allows_the_tool_where_it_is_understood():
    skills = {"k": skill(allowed_tools=["Bash(git:*)"])}
    asked = step(tools=["Bash"], uses=["k"])
    assert told(asked, skills=skills) == []
    literal = told(asked, skills=skills, policy={"skill_patterns": "literal"})
    assert [code for code, *_ in literal] == ["impossible_tool", "bad_tool_pattern"]


def test_tools_of_checks_and_of_skills_have_to_exist_too():
    check = {"name": "c", "tool": "gone", "op": "exists"}
    found = told(
        step(
            uses=["k"],
            checks=[check],
            validation={"all": [check], "calls": {"gone": 1}},
        ),
        tools=["scan"],
        skills={"k": skill(allowed_tools=["scan", "gone", "sc*"])},
    )
    assert found == [
        ("unknown_tool", "error", "steps[0].checks[0].tool"),
        ("unknown_tool", "error", "steps[0].validation.all[0].tool"),
        ("unknown_tool", "error", "steps[0].validation.calls.gone"),
        ("unknown_tool", "warning", "skills.k.allowed_tools[1]"),
    ]


# --- steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "severity"), [("safe", "warning"), ("compat", "error"), ("reject", "error")]
)
def test_a_step_without_tools_and_cap_is_open(policy, severity):
    held = {"empty_step": "reject"} if policy == "reject" else policy
    assert told(step(tools=()), policy=held) == [("open_step", severity, "steps[0]")]
    assert told(step(tools=(), max_tool_calls=2), policy=held) == []
    assert told(step(tools=(), kind="manual"), policy=held) == []


@pytest.mark.parametrize(("policy", "severity"), [("safe", "error"), ("compat", "warning")])
def test_ids_are_words_of_their_own(policy, severity):
    found = told(step("a"), step(" "), step("a"), step("a"), policy=policy)
    assert found == [
        ("blank_id", "warning", "steps[1].id"),
        ("duplicate_id", severity, "steps[2].id"),
        ("duplicate_id", severity, "steps[3].id"),
    ]


def test_a_skill_that_nobody_gave_is_told_with_the_near_one():
    found = only(step(uses=["refund", "refund"]), skills={"refunds": skill()})
    assert (found.code, found.severity, found.where) == (
        "unresolved_skill",
        "error",
        "steps[0].uses[0]",
    )
    assert found.fix == "did you mean 'refunds'?"
    assert told(step(uses=["x"]), skills={}, policy="compat")[0][1] == "warning"


@pytest.mark.parametrize(
    ("fields", "policy", "codes"),
    [
        ({"max_tool_calls": 0}, "safe", {"cap_below_one": "error"}),
        ({"max_tool_calls": -1}, "compat", {"cap_below_one": "warning"}),
        ({"min_tool_calls": 3, "max_tool_calls": 2}, "safe", {"floor_above_cap": "error"}),
        ({"min_tool_calls": 2, "max_tool_calls": 2}, "safe", {}),
        ({"min_tool_calls": 2}, "compat", {"floor_never_met": "warning"}),
        ({"min_tool_calls": 2}, "safe", {}),
        ({"min_tool_calls": 1}, "compat", {}),
        ({"tools": ["a", "b"], "max_tool_calls": 1}, "compat", {"cap_below_tools": "error"}),
        ({"tools": ["a", "b"], "max_tool_calls": 1}, "safe", {"cap_below_tools": "warning"}),
        ({"tools": ["a", "a"], "max_tool_calls": 1}, "compat", {}),
        ({"timeout_seconds": 0}, "safe", {"bad_timeout": "error"}),
        ({"timeout_seconds": 5}, "safe", {}),
        ({"timeout_seconds": 5}, "compat", {"not_acted_on": "warning"}),
        ({"required": False}, "compat", {"optional_blocks": "warning"}),
        ({"required": False}, "safe", {}),
    ],
)
def test_numbers_of_a_step(fields, policy, codes):
    found = lint(step(**fields), policy=policy)
    assert {one.code: one.severity for one in found} == codes


def test_effort_of_skills_counts_where_it_is_inherited():
    skills = {"k": skill(min_tool_calls=3, max_tool_calls=2)}
    assert list(lint(step(uses=["k"]), skills=skills).codes) == ["floor_above_cap"]
    held = lint(step(uses=["k"]), skills=skills, policy={"inherit_effort": False})
    assert list(held.codes) == ["not_acted_on"]


def test_what_has_to_be_done_first_stands_before():
    steps = [step("a"), step("b", requires=["a", "b", "c", "pay", "scna"]), step("c")]
    assert told(step("a", required=False), step("b", requires=["a"])) == [
        ("requires_optional_step", "warning", "steps[1].requires[0]"),
    ]
    assert told(*steps) == [
        ("requires_later_step", "error", "steps[1].requires[1]"),
        ("requires_later_step", "error", "steps[1].requires[2]"),
    ]
    found = lint(*steps, tools=["scan", "pay"]).of("unknown_requirement")
    assert [(one.where, one.fix) for one in found] == [
        ("steps[1].requires[4]", "did you mean 'scan'?")
    ]


# --- probes and checks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "plain", "folding"),
    [
        ("index", [], []),
        (" ", ["probe_always_matches"], ["probe_never_matches"]),
        ("index=auth", ["probe_never_matches"], []),
        ("zürich", ["probe_never_matches"], []),
        ("z\\u00fcrich", [], ["probe_never_matches"]),
        ('"q":"auth"', ["probe_never_matches"], ["probe_never_matches"]),
        ('"q": "auth", "n": 1', [], []),
    ],
)
def test_a_probe_that_proves_nothing_is_told_by_the_form_it_is_searched_in(match, plain, folding):
    for policy, codes in (("compat", plain), ("safe", folding)):
        assert list(lint(step(required_probes=[probe(match)]), policy=policy).codes) == codes
        given = {"k": skill(required_probes=[SimpleNamespace(name="p", match=match)])}
        found = lint(step(uses=["k"]), skills=given, policy=policy)
        assert [(one.code, one.where) for one in found] == [
            (code, "skills.k.required_probes[0].match") for code in codes
        ]


def test_a_second_probe_of_a_name_is_never_asked_for():
    found = only(step(required_probes=[probe("a"), probe("b")]))
    assert (found.code, found.where) == ("duplicate_probe", "steps[0].required_probes[1]")


def test_a_probe_of_a_step_that_a_person_closes_never_matches():
    found = only(step(tools=(), kind="approval", required_probes=[probe("a")]))
    assert (found.code, found.severity) == ("probe_never_matches", "error")


def test_checks_that_cannot_be_read_are_told_with_their_places():
    bad = step(checks=[{"name": "c", "op": "eqq", "value": 1}], validation={"alll": []})
    assert told(bad) == [
        ("bad_check", "error", "steps[0].checks[0].op"),
        ("bad_check", "error", "steps[0].validation.alll"),
    ]
    codes = [(code, severity) for code, severity, _ in told(bad, policy="compat")]
    assert codes == [("bad_check", "warning")] * 2 + [("not_acted_on", "warning")] * 2


# --- the whole --------------------------------------------------------------------------------


def test_a_playbook_without_steps_is_never_completed():
    assert told() == [("no_steps", "warning", "steps")]


def test_a_budget_has_to_do_for_the_required_steps():
    steps = [step(tools=["a", "b"]), step("two", min_tool_calls=3), step("x", required=False)]
    assert told(*steps, max_iterations=4) == [("budget_below_steps", "error", "max_iterations")]
    assert told(*steps, max_iterations=5) == []


def test_what_a_policy_does_not_act_on_is_told():
    found = told(step(), max_iterations=9, strict_sequence=False, policy="compat")
    assert [where for *_, where in found] == ["max_iterations", "strict_sequence"]
    assert told(step(), max_iterations=9, strict_sequence=False) == []


@pytest.mark.parametrize(
    ("first", "policy", "severity"),
    [
        ({"tools": ["gone"]}, "safe", "warning"),
        ({"tools": ["gone"]}, "compat", "error"),
        ({"tools": ["scan", "gone"], "max_tool_calls": 2}, "compat", None),
        ({"tools": ["scan", "gone"], "max_tool_calls": 2}, "safe", "warning"),
        ({"tools": ["gone"], "max_tool_calls": 2}, "compat", "error"),
        ({"tools": ()}, "compat", "error"),
        ({"tools": ()}, "safe", None),
        ({"tools": ["gone"], "required": False}, "safe", None),
        ({"tools": ["gone"], "required": False}, "compat", "error"),
        ({"tools": ["gone"], "kind": "manual"}, "compat", None),
        ({"tools": ["gone"]}, {"on_stuck": "close"}, None),
        ({"tools": ["scan", "pay"], "max_tool_calls": 1}, "safe", None),
        ({"tools": ["scan", "pay"], "max_tool_calls": 1}, {"on_cap": "fail"}, "warning"),
    ],
)
def test_steps_behind_one_that_no_call_closes_are_told_once(first, policy, severity):
    steps = [step("a", **first), step("b", ["scan"]), step("c", ["gone"]), step("d", ["scan"])]
    found = lint(*steps, tools=["scan", "pay"], policy=policy).of("unreachable_step")
    behind = [one for one in found if one.step_id == "b"]
    if severity is None:
        assert not behind
    else:
        assert [(one.severity, one.where) for one in found] == [(severity, "steps[1]")]
        assert "'a'" in found[0].message
        assert "2 steps" in found[0].message


def test_steps_in_any_order_do_not_stand_behind_each_other():
    steps = [step("a", ["gone"]), step("b")]
    loose = lint(*steps, tools=["scan"], strict_sequence=False)
    assert not loose.of("unreachable_step")
    assert lint(*steps, tools=["scan"], strict_sequence=False, policy="compat").of(
        "unreachable_step"
    )


# --- what is given back -----------------------------------------------------------------------


def test_findings_come_by_the_order_of_the_steps_and_are_the_same_every_time():
    steps = [step("a", ["x"]), step("a", ["y"], max_tool_calls=0), step("c", uses=["k"])]
    given = {"k": skill(allowed_tools=["z", "y", "x"])}
    found = lint(*steps, tools={"x", "q"}, skills=given)
    assert found == lint(*steps, tools={"q", "x"}, skills=dict(given))
    places = [one.where.split(".")[0] for one in found]
    assert places == sorted(places, key=lambda where: (where == "skills", where))
    assert json.loads(json.dumps(found.to_dict()))["findings"][0] == found.findings[0].to_dict()
    assert sum(found.codes.values()) == len(found) == len(found.errors) + len(found.warnings)


def test_errors_are_refused_together_and_warnings_are_not():
    lint(step(tools=())).raise_errors()
    with pytest.raises(PlaybookDefinitionError) as caught:
        lint(step("a", max_tool_calls=0), step("a")).raise_errors()
    assert caught.value.code == "lint_errors"
    assert len(caught.value.problems) == 2
    assert "write 1 or more" in str(caught.value)


def test_the_card_shows_errors_first_with_what_to_write():
    found = lint(step(tools=()), step("two", max_tool_calls=0))
    text = str(found)
    assert text.index("cap_below_one") < text.index("open_step")
    assert "1 error" in text
    assert "1 warning" in text
    assert "policy safe" in text
    assert "write 1 or more" in text


def test_names_from_outside_are_shown_with_nothing_hidden_in_them():
    word = "pay\x1b[31m\u202e<img src=x onerror=1>"
    found = lint(step(word, [word], uses=[word]), tools=["scan"], skills={})
    for one in found:
        assert "\x1b" not in one.message
    assert "<img" not in found.view().name or "<img src" not in found.to_markdown()


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (["a", "b"], {"a", "b"}),
        ({"a": 1}, {"a"}),
        ([len], {"len"}),
        ([], set()),
        (None, None),
    ],
)
def test_tools_are_given_in_any_form(tools, names):
    assert tool_names(tools) == names


def test_a_toolbox_says_which_tools_exist():
    @rb.tool(description="Looks.")
    def scan():
        return {"result": 1}

    assert told(step(), tools=rb.Toolbox([scan])) == []


@pytest.mark.parametrize("tools", ["scan", 7, [7]])
def test_what_names_no_tools_is_refused(tools):
    with pytest.raises(PlaybookDefinitionError) as caught:
        tool_names(tools)
    assert caught.value.code == "bad_tools"


WORDS = st.sampled_from(["a", "b", "scan", "k", ""])
STEPS = st.builds(
    lambda **fields: PlaybookStep(description="", **fields),
    id=WORDS,
    expected_tools=st.lists(WORDS, max_size=3),
    uses=st.lists(WORDS, max_size=2),
    required=st.booleans(),
    min_tool_calls=st.none() | st.integers(0, 4),
    max_tool_calls=st.none() | st.integers(-1, 4),
    timeout_seconds=st.none() | st.floats(),
    kind=st.sampled_from([None, "manual"]),
    requires=st.lists(WORDS, max_size=2),
    validation=st.dictionaries(WORDS, st.integers(), max_size=1),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=4), st.sampled_from(["safe", "compat"]), st.booleans())
def test_whatever_is_declared_is_looked_through_and_shown(steps, policy, known):
    given_ = {"k": skill(allowed_tools=["scan"], min_tool_calls=2)} if known else None
    found = lint(*steps, tools=["scan"] if known else None, skills=given_, policy=policy)
    assert all(one.message and one.fix and one.where for one in found)
    assert str(found)
    assert found.ok is not bool(found.errors)


# --- what is told of it -----------------------------------------------------------------------

TREE = Path(__file__).parents[2]


def test_every_code_stands_on_the_page_and_no_other():
    page = (TREE / "docs" / "howto" / "check-a-playbook.md").read_text("utf-8")
    table = page.split("## What is found\n")[1].split("\n## ")[0]
    told_there = {
        code
        for line in table.splitlines()
        if line.startswith("| `")
        for code in re.findall(r"`([a-z_]+)`", line.split("|")[1])
    }
    found = set()
    for name in ("faults", "stepfaults", "skillfaults", "ground", "limits"):
        source = (TREE / "runbook_nb" / "playbooks" / f"{name}.py").read_text("utf-8")
        found |= set(re.findall(r'(?:\.found\(\s*|code=|LimitFault\(\s*)"([a-z_]+)"', source))
        found |= set(re.findall(r'"(probe_\w+)"', source))
    assert found == told_there
