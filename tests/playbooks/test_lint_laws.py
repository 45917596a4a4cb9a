"""What lint says is what holding calls to the playbook comes to."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.model import Playbook, PlaybookStep
from runbook_nb.playbooks.skills import Skill

TOOLS = ("scan", "pay", "note")
SKILLS = {
    "any": Skill("any", "x"),
    "none": Skill("none", "x", allowed_tools=[]),
    "scans": Skill("scans", "x", allowed_tools=["scan", "note"], max_tool_calls=3),
    "pays": Skill("pays", "x", allowed_tools=["pay(*)"], min_tool_calls=2),
}
#: What lint calls what the enforcer refuses when it is made.
REFUSED = {
    "duplicate_id",
    "unresolved_skill",
    "open_step",
    "requires_later_step",
    "cap_below_one",
    "floor_above_cap",
    "probe_never_matches",
    "bad_check",
}
#: Every call that is driven below shows what these steps ask for.
HELD = {"evidence": "hold"}
POLICIES = st.sampled_from(
    ["safe", "compat", {"on_cap": "fail"}, {"optional": "blocking"}, HELD, {"empty_step": "reject"}]
)


def steps(ids, *, odd):
    """Give steps; odd ones may be such that no plan is made of them."""
    unknown = ["gone"] if odd else []
    return st.builds(
        lambda **fields: PlaybookStep(description="", **fields),
        id=ids,
        expected_tools=st.lists(st.sampled_from([*TOOLS, "gone"]), max_size=3),
        uses=st.lists(st.sampled_from([*SKILLS, *unknown]), max_size=2),
        required=st.booleans(),
        min_tool_calls=st.none() | st.integers(0, 3),
        max_tool_calls=st.none() | st.integers(0 if odd else 1, 4),
        kind=st.sampled_from([None, None, None, "manual"]),
        requires=st.lists(st.sampled_from("abcd"), max_size=1) if odd else st.just([]),
        required_probes=st.sampled_from([[], [{"name": "p", "match": " " if odd else "x=y"}]]),
        checks=st.sampled_from([[], [{"name": "c", "op": "eqq"}]] if odd else [[]]),
    )


def books(*, odd):
    if odd:
        listed = st.lists(steps(st.sampled_from("abcd"), odd=True), max_size=3)
    else:
        listed = st.integers(1, 4).flatmap(
            lambda n: st.tuples(*(steps(st.just("abcd"[place]), odd=False) for place in range(n)))
        )
    return listed.map(lambda found: Playbook(id="p", name="P", steps=list(found)))


steady = settings(deadline=None, derandomize=True, max_examples=100)


def made(book, policy):
    return PlaybookEnforcer.from_playbook(book, skills=SKILLS, policy=policy)


def refused_for(book, policy):
    """Give the steps for which no plan is made of a playbook; None when one is."""
    try:
        made(book, policy)
    except PlaybookDefinitionError as error:
        return {one.where.split("]")[0] for one in error.problems}
    return None


@steady
@given(books(odd=True), POLICIES)
def test_what_no_plan_is_made_of_is_an_error_and_under_safe_the_other_way_round(book, policy):
    lint = book.lint(skills=SKILLS, policy=policy)
    errors = {one.where.split("]")[0] for one in lint.errors if one.code in REFUSED}
    refused = refused_for(book, policy)
    if refused is not None:
        # Of ids that are shared the enforcer names the first step, lint each one behind it.
        assert lint.of("duplicate_id") or errors >= refused
        assert errors
    else:
        told = {one.code for one in lint.errors if one.code in REFUSED}
        # Under compat, what cannot be met is still an error, though a plan is made of it.
        lax = {"floor_above_cap", "open_step", "probe_never_matches"}
        by_person = {one.step_id for one in lint.of("probe_never_matches")}
        persons = {one.id for one in book.steps if one.kind}
        assert not told - (lax if policy == "compat" else set()) or (
            told == {"probe_never_matches"} and by_person <= persons
        )


def driven(enforcer):
    """Take every step by the calls it asks for, a person closing what persons close."""
    for _ in range(60):
        step = enforcer.current_step
        if step is None:
            break
        record = enforcer.plan.get_step_execution(step.id)
        called = record.tool_calls if record else []
        wanted = [tool for tool in step.expected_tools if tool not in called and tool in TOOLS]
        tried = [*wanted, *(tool for tool in step.expected_tools if tool in TOOLS), *TOOLS]
        pointer = enforcer.plan.current_step_index
        for tool in tried:
            call = enforcer.admit(tool, {"x": "y"})
            if call.allowed:
                enforcer.settle(call, "ok")
                break
        else:
            if not is_for_person(enforcer, step):
                break
            enforcer.complete(step.id, by="ana")
            continue
        if is_for_person(enforcer, step) and enforcer.plan.current_step_index == pointer:
            enforcer.complete(step.id, by="ana")
    return enforcer.plan


def is_for_person(enforcer, step):
    empty = not step.expected_tools and step.max_tool_calls is None
    return step.kind is not None or (empty and enforcer.policy.empty_step == "manual")


@steady
@given(books(odd=False), POLICIES)
def test_without_an_error_calls_bring_a_plan_to_its_end(book, policy):
    lint = book.lint(tools=TOOLS, skills=SKILLS, policy=policy)
    stops = {"unknown_tool", "impossible_tool", "unreachable_step", "open_step"}
    if lint.errors or stops & set(lint.codes):
        return
    assert driven(made(book, policy)).completed


@steady
@given(books(odd=False), POLICIES)
def test_a_step_that_is_said_to_be_unreachable_is_not_reached(book, policy):
    found = book.lint(tools=TOOLS, skills=SKILLS, policy=policy).of("unreachable_step")
    if not found:
        return
    if refused_for(book, policy) is not None:
        return
    place = next(n for n, step in enumerate(book.steps) if step.id == found[0].step_id)
    assert driven(made(book, policy)).current_step_index < place
