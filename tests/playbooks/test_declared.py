"""What a playbook asks for as rules about an event log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep
from runbook_nb.playbooks.declared import DeclareRule, declare_rules
from runbook_nb.playbooks.eventlog import event_log


def book(*steps, **more):
    made = [PlaybookStep(**{"description": "x", **step}) for step in steps]
    return Playbook(id="ir", name="IR", steps=made, **more)


def step(name, *tools, **more):
    return {"id": name, "expected_tools": list(tools), **more}


def rules(playbook, activity="step"):
    return [str(rule) for rule in declare_rules(playbook, activity=activity)]


LINE = book(step("a", "x", "y"), step("b", "z", required=False), step("c", "w", "x"))


def test_required_steps_exist_and_come_before_what_follows_them():
    assert rules(LINE) == [
        "existence(a)",
        "existence(c)",
        "precedence(a, b)",
        "precedence(a, c)",
    ]


def test_so_do_their_tools_unless_an_earlier_step_has_them_too():
    assert rules(LINE, "tool") == [
        "existence(x)",
        "existence(y)",
        "existence(w)",
        "precedence(x, z)",
        "precedence(y, z)",
        "precedence(x, w)",
        "precedence(y, w)",
    ]


def test_where_no_order_is_asked_for_none_is_said():
    free = LINE.model_copy(update={"strict_sequence": False})
    assert rules(free) == ["existence(a)", "existence(c)"]
    lenient = LINE.model_copy(update={"allow_extra_tools": True})
    assert rules(lenient, "tool") == ["existence(x)", "existence(y)", "existence(w)"]
    assert rules(lenient) == rules(LINE)


def test_what_a_step_requires_comes_before_it_in_any_case():
    free = book(
        step("a", "x"), step("b", "y"), step("c", "z", requires=["a"]), strict_sequence=False
    )
    assert rules(free)[3:] == ["precedence(a, c)"]
    assert rules(free, "tool")[3:] == ["precedence(x, z)"]


def test_nothing_is_said_of_tools_that_a_step_without_any_lets_through():
    given_open = book(step("a"), step("b", "x"), step("c", "y"))
    assert rules(given_open, "tool") == ["existence(x)", "existence(y)"]
    by_hand = book(step("a", kind="manual"), step("b", "x"), step("c", "y"))
    assert "precedence(x, y)" in rules(by_hand, "tool")


def test_of_two_steps_of_one_id_the_first_counts():
    assert rules(book(step("a"), step("b"), step("a"))) == [
        "existence(a)",
        "existence(b)",
        "precedence(a, b)",
    ]


@pytest.mark.parametrize(
    ("template", "trace", "holds"),
    [
        ("existence", ["b", "a"], True),
        ("existence", ["b"], False),
        ("precedence", ["a", "b", "b"], True),
        ("precedence", ["b", "a"], False),
        ("precedence", ["a"], True),
        ("precedence", [], True),
    ],
)
def test_a_rule_holds_of_what_happened_or_not(template, trace, holds):
    activities = ("a",) if template == "existence" else ("a", "b")
    assert DeclareRule(template=template, activities=activities).holds(trace) is holds


def test_there_are_no_rules_about_anything_else():
    with pytest.raises(PlaybookDefinitionError) as caught:
        declare_rules(LINE, activity="step ")
    assert caught.value.code == "unknown_activity"


names = st.sampled_from("vwxyz")
lines = st.lists(
    st.tuples(st.lists(names, min_size=1, max_size=2, unique=True), st.booleans()),
    min_size=1,
    max_size=4,
).map(
    lambda told: book(
        *(step(f"s{n}", *tools, required=needed) for n, (tools, needed) in enumerate(told))
    )
)


@settings(max_examples=100, deadline=None)
@given(lines, st.lists(st.tuples(names, st.sampled_from(["ok", "ok", "error"])), max_size=12))
def test_what_is_held_to_a_playbook_breaks_no_precedence(playbook, calls):
    enforcer = PlaybookEnforcer.from_playbook(playbook)
    for tool, outcome in calls:
        admission = enforcer.admit(tool, {})
        if admission.allowed:
            enforcer.settle(admission, outcome)
    done = enforcer.finish().verdict != "incomplete"
    for activity in ("step", "tool"):
        trace = [
            row["concept:name"]
            for row in event_log(enforcer, activity=activity)
            if row["lifecycle:transition"] == "start"
        ]
        for rule in declare_rules(playbook, activity=activity):
            if rule.template == "precedence" or done:
                assert rule.holds(trace), rule
