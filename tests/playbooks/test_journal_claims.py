"""Claims over a journal: nothing that was changed is missed, and nothing honest is contradicted."""

import json
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))
sys.path.insert(0, str(Path(__file__).parent))

from forging import changed, leaves, missed
from forging import others as others_of
from journal_samples import (
    BOOK,
    RUNS,
    Memory,
    as_it_is,
    chained,
    document_of,
    lines_of,
    verified,
)
from journals import Clock

from runbook_nb.playbooks import journal_decisions, journal_judged
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.journal_lines import read_bytes
from runbook_nb.settings import settings as options


@cache
def before(name):
    return verified(lines_of(name))


@cache
def document(name):
    return document_of(lines_of(name))


@cache
def places(name):
    return list(leaves(document(name)))


def place_of(name, kind, *inside):
    """Give the place of the first event of a kind, or of something in it."""
    lines = document(name)["lines"]
    number = next(n for n, body in enumerate(lines) if body["event"]["kind"] == kind)
    return ("lines", number, "event", *inside)


def others(value):
    return [one for one in others_of(value) if one != value]


def forged(name, place, value):
    return verified(chained(changed(document(name), place, value)))


# --- what was not touched ------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(RUNS))
def test_an_untouched_journal_has_no_contradicted_claim(name):
    assert as_it_is(document(name)) == chained(document(name)) == lines_of(name)
    checked = before(name)
    assert checked.ok, [claim.sentence for claim in checked.contradicted]
    for claim in checked:
        assert bool(claim.basis) != bool(claim.because)


@pytest.mark.parametrize("name", list(RUNS))
def test_every_leaf_is_what_some_claim_is_about(name):
    assert [place for place, _ in places(name) if not before(name).covering(*place)] == []


def test_each_decision_is_a_claim_of_its_own():
    checked = before("whole")
    for id_ in (
        "admission[o2]",
        "refusal[early]",
        "settlement[o1]",
        "closing[approve]",
        "skip[ask]",
        "failure[look]",
        "approval[approve]",
        "timeout[pay]",
        "violation[approve]",
        "evidence[o2]",
        "resumption[line 8]",
        "counts.calls",
        "counts.refused",
        "replay",
    ):
        assert checked[id_].status == "confirmed", id_


def test_what_people_pass_over_is_judged_again():
    checked = before("past")
    for id_ in ("skip[ask, line 8]", "approval[approve, line 9]", "failure[look]"):
        assert checked[id_].status == "confirmed"
    assert checked["reset[line 3]"].status == "confirmed"
    place = place_of("past", "skipped")
    told = [claim.id for claim in forged("past", (*place, "step_id"), "pay").contradicted]
    assert told  # a required step is never passed over, whoever is named
    one, index = place_of("past", "skipped", "by"), place[1]
    assert document("past")["lines"][index]["event"]["who"] == "ana"
    assert not forged("past", one, "calls").ok


def test_what_is_the_journals_own_word_is_named():
    checked = before("whole")
    said = {claim.id: claim.because for claim in checked.unchecked}
    assert {"asked.calls", "asked.outcomes", "asked.steps", "asked.times", "asked.torn"} <= set(
        said
    )
    assert said["header.policy"] == said["header.choices"] == "nothing independent is carried"


def test_calls_of_which_nobody_told_the_end_are_named():
    told = before("short")["calls.open"]
    assert told.claimed == "what came of o2"
    assert told.status == "cannot be checked"
    assert "calls.open" not in {claim.id for claim in before("whole")}


# --- what was changed ----------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_a_leaf_changed_by_hand_is_always_contradicted(data):
    name = data.draw(st.sampled_from(sorted(RUNS)))
    place, value = data.draw(st.sampled_from(places(name)))
    other = data.draw(st.sampled_from(others(value)))
    after = verified(as_it_is(changed(document(name), place, other)))
    assert not after.ok, place
    assert missed(before(name), place, after) is None


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_a_leaf_changed_with_all_digests_is_contradicted_or_could_not_be_checked(data):
    name = data.draw(st.sampled_from(sorted(RUNS)))
    told = [one for one in places(name) if one[0][-1] not in ("check", "prev")]
    place, value = data.draw(st.sampled_from(told))
    other = data.draw(st.sampled_from(others(value)))
    assert missed(before(name), place, forged(name, place, other)) is None


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_whoever_noted_the_head_misses_no_change_at_all(data):
    name = data.draw(st.sampled_from(sorted(RUNS)))
    told = [one for one in places(name) if one[0][-1] not in ("check", "prev")]
    place, value = data.draw(st.sampled_from(told))
    other = data.draw(st.sampled_from(others(value)))
    head = read_bytes(lines_of(name)).head
    assert verified(lines_of(name), head)["head"].status == "confirmed"
    assert not verified(chained(changed(document(name), place, other)), head).ok


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_lines_taken_out_put_in_or_moved_are_always_contradicted(data):
    name = data.draw(st.sampled_from(sorted(RUNS)))
    lines = lines_of(name).splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines) - 2))  # an end that is cut off leaves no mark
    other = data.draw(st.integers(0, len(lines) - 1).filter(lambda n: n != place))
    act = data.draw(st.sampled_from(("out", "twice", "moved", "swapped")))
    if act == "out":
        del lines[place]
    elif act == "twice":
        lines.insert(other, lines[place])
    elif act == "moved":
        lines.insert(other, lines.pop(place))
    else:
        lines[place], lines[other] = lines[other], lines[place]
    after = verified(b"".join(lines))
    assert not after.ok
    assert {"lines.chain", "lines.order"} & {one.id.partition("[")[0] for one in after.contradicted}


def test_an_end_that_is_cut_off_is_contradicted_by_the_head_alone():
    data = lines_of("whole")
    head = read_bytes(data).head
    lines = data.splitlines(keepends=True)
    for count in range(1, len(lines)):
        cut = b"".join(lines[:count])
        assert verified(cut).ok
        assert not verified(cut, head).ok


def test_a_call_left_out_with_all_digests_taken_anew_is_found_by_the_head_alone():
    head, told = read_bytes(lines_of("short")).head, document("short")
    rest = [body for n, body in enumerate(told["lines"]) if n != 2]
    rest = [{**b, "event": {**b["event"], "seq": n}} for n, b in enumerate(rest, 1)]
    data = chained({"lines": rest})
    said = verified(data)["asked.calls"]
    assert said.status == "cannot be checked"
    assert said.claimed.endswith("and that these are all")
    assert not verified(data, head).ok


@pytest.mark.parametrize(
    ("kind", "inside", "value", "claim"),
    [
        ("begun", ("playbook", "steps", 0, "max_tool_calls"), 9, "header.playbook"),
        ("begun", ("digest",), "sha-256:00", "header.playbook"),
        ("begun", ("skills", "orders", "allowed_tools", 0), "refund", "header.skill[orders]"),
        ("begun", ("policy", "seen"), "sometimes", "header.policy"),
        ("admitted", ("step_id",), "pay", "admission[o1]"),
        ("refused", ("violation",), "max_tool_calls", "refusal[early]"),
        ("refused", ("blocked",), False, "refusal[early]"),
        ("settled", ("counted",), True, "settlement[o1]"),
        ("closed", ("pointer",), 4, "closing[look]"),
        ("closed", ("by",), "cap", "closing[look]"),
        ("skipped", ("index",), 2, "skip[ask]"),
        ("violation", ("violation",), "tools_missing", "violation[approve]"),
        ("timed_out", ("allowed",), 900.0, "timeout[pay]"),
        ("resumed", ("after",), 3, "resumption[line 8]"),
        ("finished", ("verdict",), "pass", "finish[line 25]"),
    ],
)
def test_a_forged_decision_is_contradicted_by_name(kind, inside, value, claim):
    after = forged("whole", place_of("whole", kind, *inside), value)
    assert claim in {one.id for one in after.contradicted}


def test_a_call_that_was_refused_cannot_be_made_one_that_was_let_through():
    told = changed(document("whole"), ("lines", 1, "event"), None)
    told["lines"][1]["event"] = {
        **document("whole")["lines"][4 - 1]["event"],
        "seq": 2,
        "call_id": "early",
        "tool": "refund",
    }
    after = verified(chained(told))
    assert not after.ok


def test_evidence_is_matched_again():
    settled = [b["event"] for b in document("whole")["lines"] if b["event"]["kind"] == "settled"]
    assert settled[1]["matched"] == ["order", "customer"]
    number = settled[1]["seq"] - 1
    after = forged("whole", ("lines", number, "event", "matched", 1), "somebody")
    (told,) = [one for one in after.contradicted if one.id == "evidence[o2]"]
    assert told.basis == "the playbook, its policy and what was asked, judged again"
    assert "matched" in told.difference
    # What was asked is the journal's own word, but not what it proves.
    arguments = ("lines", number, "event", "arguments", "customer")
    body = changed(document("whole"), arguments, "x")["lines"][number]["event"]
    del body["arguments"]["customer"]
    assert body["arguments"] == {"order_id": 7}


def test_evidence_that_hangs_on_what_is_hidden_cannot_be_checked_and_says_so():
    told = before("hidden")["evidence[o2]"]
    assert told.status == "cannot be checked"
    assert told.because == "what the call was given, or gave, is not kept as it was"
    assert before("whole")["evidence[o2]"].status == "confirmed"
    text = lines_of("hidden").decode()
    assert '"customer":"[REDACTED]"' in text
    assert '"exact":false' in text


@pytest.mark.parametrize("count", [1, 300])
def test_what_follows_from_hidden_evidence_is_judged_by_what_the_journal_says_of_it(count):
    probe = {"name": "token", "match": "t0p-s3cret"}
    step = {"id": "s", "description": "d", "expected_tools": ["t"], "required_probes": [probe]}
    steps = [{**step, "id": f"s{n}"} for n in range(count)]
    journal = Memory()
    with options(clock=Clock()):
        run = PlaybookEnforcer.from_playbook(
            {"id": "b", "name": "b", "steps": steps}, journal=journal, redact={"keys": ["token"]}
        )
        for n in range(count):
            run.settle(run.admit("t", {"token": "t0p-s3cret"}, call_id=f"c{n}"))
    assert run.violations == []
    checked = verified(journal.data)
    assert checked.ok
    (evidence,) = [one for one in checked if one.id.startswith("evidence")]
    assert (evidence.status, evidence.count) == ("cannot be checked", count)
    (closing,) = [one for one in checked if one.id.startswith("closing")]
    assert (closing.status, closing.count) == ("confirmed", count)
    # Whoever takes the evidence out has to explain why nothing was noted.
    told = document_of(journal.data)
    told["lines"][2]["event"]["matched"] = []
    (other, *_) = verified(chained(told)).contradicted
    assert other.id.startswith("closing")


def test_what_another_version_said_is_not_held_against_it():
    document_ = changed(document("whole"), ("lines", 0, "writer"), "runbook_nb 0.0.1")
    place = place_of("whole", "refused", "message")
    after = verified(chained(changed(document_, place, "no")))
    assert after.ok
    worded = [one for one in after if one.id.startswith("words")]
    assert {one.because for one in worded} == {
        "it was written by another version, with other words"
    }
    assert not forged("whole", place, "no").ok


def test_a_header_that_nothing_can_be_held_to_is_contradicted_and_does_not_raise():
    book = ("lines", 0, "event", "playbook", "steps")
    steps = document("whole")["lines"][0]["event"]["playbook"]["steps"]
    after = verified(chained(changed(document("whole"), book, [steps[0], steps[0]])))
    assert "header.playbook" in {one.id for one in after.contradicted}
    assert any(one.id == "decisions" for one in after.contradicted)


def test_events_that_cannot_have_happened_are_named():
    after = forged("whole", place_of("whole", "settled", "call_id"), "nobody")
    assert "nobody" in after["replay"].difference
    assert after["decisions"].status == "cannot be checked"


def test_a_clock_that_went_back_is_told():
    place = ("lines", 4, "event", "at")
    after = forged("whole", place, "2020-01-01T00:00:00+00:00")
    assert after["asked.times"].because == "the clock went back at line 5"


def test_lines_that_were_changed_are_not_judged_any_further():
    data = lines_of("whole").replace(b'"call_id":"o1"', b'"call_id":"o9"', 1)
    after = verified(data)
    assert after["decisions"].because == "its lines were changed"
    assert [one.id for one in after.contradicted] == ["lines.check[4]", "lines.chain[5]"]


def test_many_forged_decisions_are_told_together_and_the_rest_is_left(monkeypatch):
    journal = Memory()
    with options(clock=Clock()):
        run = PlaybookEnforcer.from_playbook(
            BOOK, skills={"orders": None}, policy="compat", journal=journal
        )
        for _ in range(60):
            run.admit("nothing")
    told = document_of(journal.data)
    for body in told["lines"][1:]:
        body["event"]["violation"] = "max_tool_calls"
    for module in (journal_judged, journal_decisions):
        monkeypatch.setattr(module, "MOST", 40)
    after = verified(chained(told))
    (one,) = [claim for claim in after.contradicted if claim.id == "refusal"]
    assert one.count == 40
    (rest,) = [claim for claim in after.unchecked if claim.id.startswith("refusal")]
    assert rest.count == 20
    assert rest.because == journal_decisions._STOPPED


def test_judging_again_costs_in_proportion_to_the_events(calls_of):
    def data(count):
        journal = Memory()
        with options(clock=Clock()):
            step = {"id": "s", "description": "d", "expected_tools": ["find_order"]}
            book = {"id": "b", "name": "b", "steps": [step]}
            run = PlaybookEnforcer.from_playbook(book, journal=journal)
            for _ in range(count):
                run.settle(run.admit("find_order", {"order_id": 1}), "error")
                run.admit("nothing")
        return journal.data

    small, large = data(20), data(80)
    verified(small)
    one, four = calls_of(lambda: verified(small)), calls_of(lambda: verified(large))
    assert four < 5 * one


def test_a_verification_of_a_journal_is_written_like_any_other():
    told = json.loads(before("whole").to_json())
    assert told["format"] == "runbook_nb/verification/1"
    assert told["name"] == "Refund escalation in forged.jsonl"
    (chain,) = [one for one in told["claims"] if one["id"] == "lines.chain"]
    assert chain["covers"] == ["lines[*].prev"]
