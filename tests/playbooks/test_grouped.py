"""Grouped files: two readings, of which one loses nothing and lets no id collide."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks.grouped import flatten, flatten_published, is_grouped
from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.problems import PlaybookWarning


def grouped(*groups, **more):
    return {"id": "x", "name": "n", "step_groups": list(groups), **more}


def step(own="a", **more):
    return {"id": own, "description": "d", **more}


def ids(document):
    return [step["id"] for step in flatten(document).document["steps"]]


def test_groups_are_read_only_in_place_of_steps():
    assert is_grouped({"step_groups": []})
    assert not is_grouped({"step_groups": [], "steps": []})
    assert not is_grouped({"step_groups": {}})
    assert not is_grouped({})


def test_steps_come_in_the_order_of_groups_and_know_their_phase():
    one = {"id": "g1", "title": "Look", "steps": [step("a"), step("b")]}
    other = {"goal": "Contain.", "steps": [step("c", metadata={"k": 1})]}
    book = load_playbook(grouped(one, other))
    assert [one.id for one in book.steps] == ["a", "b", "c"]
    assert [one.metadata["group"] for one in book.steps] == [
        {"id": "g1", "title": "Look"},
        {"id": "g1", "title": "Look"},
        {"id": "group-2", "title": "Contain."},
    ]
    assert book.steps[2].metadata["k"] == 1


def test_the_heading_goes_before_the_first_step_that_is_one():
    group = {"id": "g", "goal": "Look.", "steps": [None, "junk", step(goal="Count."), step("b")]}
    with pytest.warns(PlaybookWarning, match=r"steps\[[01]\] holds .*, no step") as told:
        book = load_playbook(grouped(group))
    assert len(told) == 2
    assert [one.description for one in book.steps] == ["Look.\n\nCount.", "d"]
    lost = flatten_published(grouped(group))["steps"]
    assert [one["description"] for one in lost] == ["Count.", "d"]


def test_what_is_no_group_is_told():
    with pytest.warns(PlaybookWarning, match=r"step_groups\[1\] holds a value of type str"):
        book = load_playbook(grouped({"id": "g", "steps": [step()]}, "junk"))
    assert len(book.steps) == 1


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([step("a"), step("a"), step("a")], ["a", "g.a", "g.a-2"]),
        ([step("a"), step("a"), step("g.a"), step("a")], ["a", "g.a", "g.g.a", "g.a-2"]),
        ([{"description": "d"}, {"description": "d"}], ["g.step-1", "g.step-2"]),
        ([{"description": "d"}, step("g.step-2"), step("")], ["g.step-1", "g.step-2", "g.step-3"]),
    ],
)
def test_ids_that_collide_are_numbered(steps, expected):
    assert ids(grouped({"id": "g", "steps": steps})) == expected


def test_without_a_group_id_steps_are_numbered():
    document = grouped({"steps": [{"description": "d"}, step("a"), step("a")]})
    assert ids(document) == ["step-0", "a", "step-2"]
    assert [one["id"] for one in flatten_published(document)["steps"]] == ["step-0", "a", "step-2"]


def test_names_and_descriptions_fall_back():
    def head(**more):
        book = load_playbook({"id": "x", "step_groups": [], **more})
        return book.name, book.description, book.metadata

    assert head(title="T", playbook_id="p", summary="s") == ("T", "s", {"playbook_id": "p"})
    assert head(playbook_id="p") == ("p", "", {})
    assert head() == ("x", "", {})
    said = head(name="N", title="T", description="D", summary="s")
    assert said == ("N", "D", {"title": "T", "summary": "s"})


def test_skills_that_guide_a_step_are_its_own():
    guidance = {"skill_refs": ["k", None, 3], "note": "n"}
    book = load_playbook(grouped({"id": "g", "steps": [step(guidance=guidance)]}))
    assert book.steps[0].uses == ["k", "3"]
    assert book.steps[0].metadata["guidance"] == {"note": "n"}
    kept = step(guidance={"skill_refs": ["k"]}, uses=["own"])
    book = load_playbook(grouped({"id": "g", "steps": [kept]}))
    assert book.steps[0].uses == ["own"]
    assert book.steps[0].metadata["guidance"] == {"skill_refs": ["k"]}


def test_what_has_no_place_of_its_own_is_kept_in_metadata():
    given = grouped(
        {"id": "g", "x-owner": "soc", "steps": [step(priority="high", product="p")]},
        mode="diagnosis",
        metadata={"k": 1},
    )
    before = copy.deepcopy(given)
    book = load_playbook(given)
    assert book.metadata == {"k": 1, "mode": "diagnosis"}
    assert book.steps[0].metadata == {
        "priority": "high",
        "product": "p",
        "group": {"id": "g", "x-owner": "soc"},
    }
    assert given == before


def test_problems_are_told_where_they_were_written():
    text = json.dumps(
        grouped({"id": "g", "stepz": [], "steps": [step(), step("b", hints=3, gaol="x")]}), indent=1
    )
    with pytest.raises(PlaybookLoadError) as error:
        load_playbook(text)
    found = {one.where: (one.code, one.line) for one in error.value.problems}
    lines = text.splitlines()
    assert {key: code for key, (code, _) in found.items()} == {
        "step_groups[0].stepz": "unknown_key",
        "step_groups[0].steps[1].gaol": "unknown_key",
        "step_groups[0].steps[1].hints": "step_field_not_list",
    }
    for where, (_, line) in found.items():
        assert where.rsplit(".", 1)[1] in lines[line - 1]


def test_a_field_of_a_flattened_step_has_its_own_place():
    with pytest.raises(PlaybookLoadError) as error:
        load_playbook(grouped({"id": "g", "steps": [step(uses=3), step("b", max_tool_calls=0)]}))
    assert [one.where for one in error.value.problems] == [
        "step_groups[0].steps[0].uses",
        "step_groups[0].steps[1].max_tool_calls",
    ]
    with pytest.raises(PlaybookLoadError) as error:
        load_playbook(grouped({"id": "g", "steps": [step(), step("b", max_tool_calls=0)]}))
    assert [one.where for one in error.value.problems] == ["step_groups[0].steps[1].max_tool_calls"]


def test_steps_of_a_group_that_are_no_list_are_told():
    with pytest.raises(PlaybookLoadError) as error:
        load_playbook(grouped({"id": "g", "steps": {"a": 1}}))
    assert error.value.problems[0].where == "step_groups[0].steps"


IDS = st.sampled_from(["", "a", "b", "a-2", "g.a", "g.step-1", "step-1"])


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "g", "h"]), st.lists(IDS | st.none(), max_size=4)),
        max_size=4,
    )
)
def test_whatever_ids_are_written_every_step_has_its_own(groups):
    document = {
        "id": "x",
        "step_groups": [
            {"id": group, "steps": [step(own) for own in own_ids]} for group, own_ids in groups
        ],
    }
    book = load_playbook(document)
    found = [one.id for one in book.steps]
    assert len(set(found)) == len(found) == sum(len(own_ids) for _, own_ids in groups)
    assert all(found)
    assert load_playbook(book.to_dict()) == book
