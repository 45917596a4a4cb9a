from __future__ import annotations

import pytest
from hand_events import NIST, book, probes, step
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.outline import phase_of, step_keys, structure_of
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.skills import Skill
from runbook_nb.record.structure import Structure


def test_steps_are_nodes_in_order_with_what_is_expected_of_them():
    found = structure_of(NIST)
    assert [node.key for node in found.nodes] == [one.id for one in NIST.steps]
    assert {node.kind for node in found.nodes} == {"step"}
    assert [(edge.source, edge.target) for edge in found.edges] == list(
        zip(step_keys(NIST), step_keys(NIST)[1:], strict=False)
    )
    detail = found.node("analysis").detail
    assert (detail["place"], detail["most"], list(detail["probes"])) == (
        2,
        5,
        ["indicator", "whois"],
    )
    assert found.node("notify").detail["optional"] is True
    assert "optional" not in detail
    assert NIST.structure == found


def test_a_structure_reads_back_from_its_json():
    found = structure_of(NIST)
    assert Structure.from_dict(found.to_dict()) == found


@given(st.lists(st.sampled_from(["a", "b", "", "a (2)", "a/b~1#2"]), max_size=8))
def test_every_step_has_a_key_of_its_own(names):
    made = book(*[step(name) for name in names])
    keys = [node.key for node in structure_of(made).nodes]
    assert len(set(keys)) == len(names)


def test_skills_bring_probes_and_unresolved_ones_are_named():
    made = book(step("a", uses=["siem", "gone"], required_probes=probes("own")))
    theirs = {"siem": Skill("siem", "x", required_probes=probes_of("dns"), max_tool_calls=4)}
    plain = structure_of(made).node("a").detail
    assert list(plain["probes"]) == ["own"]
    assert "unresolved" not in plain  # nothing is known of skills
    known = structure_of(made, theirs).node("a").detail
    assert (list(known["probes"]), list(known["unresolved"])) == (["own", "dns"], ["gone"])
    assert "most" not in structure_of(made, theirs, EnforcementPolicy("compat")).node("a").detail
    assert structure_of(made, theirs, EnforcementPolicy("safe")).node("a").detail["most"] == 4


def probes_of(*names):
    from runbook_nb.playbooks.model import RequiredProbe

    return [RequiredProbe(name=name, match=name) for name in names]


def test_the_groups_of_a_file_are_phases():
    made = load_playbook(
        {
            "id": "g",
            "name": "Grouped",
            "step_groups": [
                {"id": "t", "title": "Triage", "steps": [step("a"), step("b")]},
                {"id": "c", "steps": [{"id": "c", "description": "Contain."}]},
            ],
        }
    )
    assert [phase_of(one) for one in made.steps] == ["Triage", "Triage", "c"]
    assert structure_of(made).node("a").detail["phase"] == "Triage"


@pytest.mark.parametrize("kind", ["manual", "approval"])
def test_what_a_person_does_is_told(kind):
    assert structure_of(book(step("a", kind=kind))).node("a").detail["form"] == kind
