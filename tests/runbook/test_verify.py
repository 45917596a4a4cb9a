"""An answer is checked against everything but itself, and no change of it stays unnoticed.

The law: change one leaf of what is carried, and a claim about it is contradicted, unless all claims
about it could not be checked before. An untouched answer never has a contradicted claim.
"""

import contextlib
import json
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from forging import (
    ANSWERS,
    POSTURE,
    ROWS,
    answer,
    changed,
    judging,
    leaves,
    long_way,
    missed,
    others,
    triaged,
    verified,
    written,
)

import runbook_nb as rb
from runbook_nb.record.verification import VERIFICATION_FORMAT
from runbook_nb.runbook.payload import envelope_payload

#: Small enough for every leaf to be changed.
SMALL = ("alone", "nothing to judge", "one row")


@cache
def copied(name, form="dict"):
    """Give an answer as it is carried, and how it is checked untouched."""
    envelope = live(name)[0]
    if form == "dict":
        document = written(envelope)
    elif form == "wire":
        document = json.loads(envelope.to_json())
    else:
        most = None if form == "payload" else 6_500
        document = json.loads(json.dumps(envelope_payload(envelope, most)))["envelope"]
    return document, verified(document)


@cache
def live(name):
    envelope = answer(name)
    return envelope, envelope.verify()


# --- untouched ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_an_untouched_answer_has_no_contradicted_claim(name):
    _, checked = live(name)
    assert [claim.sentence for claim in checked.contradicted] == []
    for form in ("dict", "wire", "payload", "capped"):
        _, checked = copied(name, form)
        assert [claim.sentence for claim in checked.contradicted] == [], form


@pytest.mark.parametrize("name", ANSWERS)
def test_each_claim_names_its_basis_or_why_there_is_none(name):
    for checked in (live(name)[1], copied(name)[1], copied(name, "wire")[1]):
        for claim in checked:
            assert bool(claim.basis) is not bool(claim.because), claim
        assert len({claim.id for claim in checked if claim.count == 1}) == sum(
            claim.count == 1 for claim in checked
        )


@pytest.mark.parametrize("name", ANSWERS)
def test_every_leaf_that_is_carried_is_what_some_claim_is_about(name):
    document, checked = copied(name)
    bare = [
        place
        for place, _ in leaves(document)
        if place != ("dossier", "format") and not checked.covering(*place)
    ]
    assert bare == []


# --- the law -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_whatever_leaf_of_a_small_answer_is_changed_is_found_out(name):
    document, before = copied(name)
    wrong = []
    for place, value in leaves(document):
        if place != ("dossier", "format"):
            for other in others(value)[:2]:
                wrong.append(missed(before, place, verified(changed(document, place, other))))
    assert [one for one in wrong if one] == []


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_leaf_that_is_changed_is_found_out_or_could_not_be_checked(data):
    name = data.draw(st.sampled_from(sorted(ANSWERS)))
    form = data.draw(st.sampled_from(["dict", "payload", "capped"]))
    document, before = copied(name, form)
    places = [one for one in leaves(document) if one[0] != ("dossier", "format")]
    place, value = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from(others(value)))
    if form != "capped" or "dossier" in document:
        assert missed(before, place, verified(changed(document, place, other))) is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_without_a_dossier_the_wire_is_held_against_itself_alone(data):
    name = data.draw(st.sampled_from(sorted(ANSWERS)))
    document, before = copied(name, "wire")
    place, value = data.draw(st.sampled_from(list(leaves(document))))
    after = verified(changed(document, place, data.draw(st.sampled_from(others(value)))))
    covering = before.covering(*place)
    assert covering
    if after is not None and after.ok:
        assert {claim.status for claim in covering} == {"cannot be checked"}


@pytest.mark.parametrize("key", ["rows", "subjects"])
def test_an_entry_that_was_taken_out_is_found_out(key):
    document, _ = copied("long way")
    document = json.loads(json.dumps(document))
    del document["dossier"][key][1]
    assert not verified(document).ok


def test_a_gap_that_was_taken_out_of_the_ledger_is_found_out():
    document = json.loads(json.dumps(copied("gaps")[0]))
    gaps = document["af_coverage"]["not_checked"]
    at = next(n for n, item in enumerate(gaps) if "whose branch failed" in item["what"])
    del gaps[at]
    ids = [claim.id for claim in verified(document).contradicted]
    assert "ledger.not_checked[missing]" in ids
    assert "ledger.sentence" in ids


def test_subjects_without_a_name_are_told_by_their_number_in_the_ledger():
    rows = [{"known": True, "days": 13, "tier": "a"}, {"host": None, "days": 13, "tier": "a"}]
    envelope = long_way([*ROWS[:1], *rows], collect=lambda scope: None)
    assert "item 1, item 2" in str(envelope.ledger.not_checked)
    for checked in (envelope.verify(), verified(written(envelope))):
        assert [claim.sentence for claim in checked.contradicted] == []


def test_rows_that_changed_places_are_found_out():
    document = json.loads(json.dumps(copied("short way")[0]))
    rows = document["result"]["verdicts"]
    rows[0], rows[1] = rows[1], rows[0]
    assert "row[host=web-1]" in [claim.id for claim in verified(document).contradicted]


# --- single claims -----------------------------------------------------------------------------


def contradicted(document):
    return {claim.id: claim for claim in verified(document).contradicted}


def test_a_changed_verdict_names_what_the_rules_give():
    place = ("dossier", "rows", 0, "verdict")
    claim = contradicted(changed(copied("short way")[0], place, "old"))["row.verdict[host=web-1]"]
    assert (claim.expected, claim.found) == ("fresh", "old")


def test_values_that_would_have_been_judged_otherwise_contradict_the_verdict():
    place = ("dossier", "subjects", 2, "decision", "values", 1)
    claim = contradicted(changed(copied("short way")[0], place, 3))["verdict[host=web-3]"]
    assert claim.expected == "fresh by default, outcomes [0, 0, 1, 0]"
    assert claim.found == "old by rule 2, outcomes [0, 1, 1]"


def test_a_limit_that_was_moved_contradicts_digest_and_verdicts():
    place = ("dossier", "rule_sets", 0, "content", "rules", 1, "when", "days", "gt")
    found = contradicted(changed(copied("short way")[0], place, 1))
    assert "rules[health-signal v1].digest" in found
    assert "verdict[host=web-1]" in found


def test_a_stamp_that_did_not_judge_is_contradicted_though_it_is_spoken_of():
    envelope = long_way(ROWS, rules={"name": "health-signal", "version": "v9"})
    assert "whether the stamp" in envelope.ledger.not_checked[-1].what
    for checked in (envelope.verify(), verified(written(envelope))):
        assert [claim.id for claim in checked.contradicted] == ["rules.stamp"]


def test_a_word_of_the_authors_own_for_a_branch_is_no_contradiction():
    checked = copied("renamed")[1]
    assert checked["row.verdict[host=web-1]"].status == "cannot be checked"
    assert "a word of its own" in checked["row.verdict[host=web-1]"].because
    place = ("dossier", "rows", 2, "verdict")
    found = contradicted(changed(copied("renamed")[0], place, "nothing to do"))
    assert "row.verdict[host=web-3]" in found


def test_a_row_that_shows_another_number_than_was_compared_is_found_out():
    def rounded(scope):
        scope["verdicts"] = [
            {"host": s.item["host"], "verdict": s.value["verdict"], "days": 7}
            for s in scope["results"]
        ]

    rows = [{"host": "a", "known": True, "days": 7.4, "tier": "a"}]
    found = {claim.id: claim for claim in long_way(rows, collect=rounded).verify().contradicted}
    assert list(found) == ["facts[days]"]
    assert found["facts[days]"].found == "7.4 for host=a"


def test_an_empty_text_that_its_row_shows_as_nothing_is_no_contradiction():
    rules = rb.RuleSet("p", "1", [rb.Rule({"problem": {"ne": ""}}, "bad")], rb.Default("good"))
    document = written(triaged([{"host": "a", "problem": ""}], rules))
    document["dossier"]["rows"][0]["problem"] = document["result"]["verdicts"][0]["problem"] = None
    checked = rb.Envelope.from_dict(document).verify()
    assert checked["facts[problem]"].because == "the rows show them in another form"


def test_a_column_in_another_form_than_what_was_compared_is_no_contradiction():
    def told(scope):
        scope["verdicts"] = [
            {"host": s.item["host"], "verdict": s.value["verdict"], "days": "three days"}
            for s in scope["results"]
        ]

    rows = [{"host": "a", "known": True, "days": 3, "tier": "a"}]
    checked = long_way(rows, collect=told).verify()
    assert checked.ok
    assert checked["facts[days]"].because == "the rows show them in another form"


def test_hidden_values_cannot_be_checked_and_say_so():
    checked = copied("hidden")[1]
    assert checked["facts[days]"].because == "hidden"
    assert "hidden" in checked["rules[health-signal v1].digest"].because
    assert checked["verdict[host=web-2]"].status == "confirmed"
    assert checked["verdict[host=web-1]"].because == "hidden: rule 2 needs days, which is hidden"


def test_functions_are_not_run_to_check_an_answer():
    ran = []

    def old(facts):
        ran.append(facts)
        return facts["days"] > 7

    rules = rb.RuleSet("f", "1", [rb.Rule(old, then="old")], rb.Default("fresh"))
    envelope = long_way(ROWS[:1], branch=judging(rules), rules=rules)
    times = len(ran)
    checked = envelope.verify()
    assert len(ran) == times
    assert "is a function" in checked["verdict[host=web-1]"].because
    assert checked["row.verdict[host=web-1]"].status == "confirmed"


def test_what_a_capped_copy_does_not_carry_is_named():
    document, checked = copied("capped rows", "capped")
    many = len(document["dossier"]["subjects"])
    assert 0 < many < 15
    assert any(f"{many} of 15 subjects carried" in claim.because for claim in checked.unchecked)
    assert checked["counts.rows_total"].status == "confirmed"


# --- what is at hand beside it -----------------------------------------------------------------


def boxed(**more):
    box = rb.Toolbox([])
    return box, triaged(toolbox=box, **more)


def test_a_ticket_is_redeemed_and_held_against_the_counters():
    box, envelope = boxed()
    copy = rb.Envelope.from_dict(written(envelope))
    assert "no store is at hand" in copy.verify()["ticket.walk"].because
    checked = copy.verify(artifacts=box)
    assert checked["ticket.walk.rows"].basis == "what the store holds"
    assert checked["provenance.toolCallId"].status == "confirmed"
    assert any(claim.id == "structure.name" for claim in checked.confirmed)
    forged = rb.Envelope.from_dict(changed(written(envelope), ("result", "walk", "rows"), 3))
    ids = [claim.id for claim in forged.verify(artifacts=box).contradicted]
    assert "ticket.walk.rows" in ids


def test_a_live_answer_is_held_against_its_record_and_the_walk_that_was_filed():
    _, envelope = boxed()
    checked = envelope.verify()
    assert checked["ticket.walk.digest"].basis == "the record"
    assert checked["walk.steps_executed"].basis == "the record"
    assert checked.ok


def test_rules_from_elsewhere_are_held_against_those_that_judged():
    copy = rb.Envelope.from_dict(copied("short way")[0])
    assert copy.verify(rules=POSTURE)["rules.given[health-signal v1]"].status == "confirmed"
    other = rb.RuleSet.from_dict({**POSTURE.to_dict(), "default": "fresh"})
    claim = copy.verify(rules=other)["rules.given[health-signal v1]"]
    assert (claim.status, claim.expected) == ("contradicted", other.digest)
    third = rb.RuleSet("third", "1", [rb.Rule({"a": {"gt": 1}}, "x")], "y")
    checked = copy.verify(rules=[third.to_dict(), POSTURE])
    claim = checked["rules.given[third 1]"]
    assert (claim.status, claim.found, claim.expected) == (
        "contradicted",
        "health-signal v1",
        "third 1",
    )
    assert [one.id for one in checked.contradicted] == ["rules.given[third 1]"]


def test_rules_of_another_version_are_not_those_that_judged():
    copy = rb.Envelope.from_dict(copied("short way")[0])
    later = rb.RuleSet.from_dict({**POSTURE.to_dict(), "version": "v2"})
    claim = copy.verify(rules=later)["rules.given[health-signal v2]"]
    assert (claim.status, claim.found) == ("contradicted", "health-signal v1")


def test_an_answer_that_carries_no_rules_cannot_be_checked_by_any():
    bare = rb.Envelope.from_dict(answer("short way").to_dict())
    claim = bare.verify(rules=POSTURE)["rules.given[health-signal v1]"]
    assert claim.because == "the rules that judged are none that is carried"


def test_what_is_no_rule_set_cannot_be_checked_by():
    with pytest.raises(rb.errors.DefinitionError, match="are rule sets, not int"):
        answer("one row").verify(rules=[3])


@pytest.mark.parametrize("name", ANSWERS)
def test_an_untouched_recording_contradicts_neither_its_answer_nor_itself(name):
    copy = rb.Envelope.from_dict(copied(name)[0])
    checked = copy.verify(recording=json.loads(recorded(name)))
    assert [claim.sentence for claim in checked.contradicted] == []
    for part in ("sharedState", "executionTree", "commitLog", "narrative", "structure", "name"):
        assert checked[f"record.told[{part}]"].status == "confirmed", part
    hidden = "record.told[redactedPaths]" in [claim.id for claim in checked.unchecked]
    assert hidden == (name == "hidden")


@cache
def recorded(name):
    return live(name)[0].recording().to_json()


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_one_leaf_of_a_recording_is_found_out(data):
    name = data.draw(st.sampled_from(["one row", "alone", "gaps", "nested", "hidden"]))
    document, copy = json.loads(recorded(name)), rb.Envelope.from_dict(copied(name)[0])
    place, value = data.draw(st.sampled_from(list(leaves(document))))
    if place[-1] == "id" and value == "runbook_nb":
        return  # without its record it is one of somebody else's, of which little can be checked
    forged = changed(document, place, data.draw(st.sampled_from(others(value))))
    with contextlib.suppress(rb.errors.LoadError):  # or it cannot be read at all
        assert not copy.verify(recording=forged).ok, (name, place)


def test_what_a_recording_says_otherwise_is_named():
    document = json.loads(recorded("one row"))
    told = document["snapshot"]["sharedState"]["verdicts"][0]
    assert told["verdict"] == "old"
    told["verdict"] = "fresh"
    checked = rb.Envelope.from_dict(copied("one row")[0]).verify(recording=document)
    [claim] = checked.contradicted
    assert claim.id == "record.told[sharedState]"
    assert claim.difference == (
        "it differs from its record at verdicts[host=web-4].verdict: fresh, there old"
    )
    assert claim.basis == "the record inside the recording given, written again"


def test_a_recording_is_held_against_itself_where_the_answer_carries_no_dossier():
    bare, document = rb.Envelope.from_dict(live("one row")[0].to_dict()), recorded("one row")
    assert bare.verify(recording=json.loads(document))["record.told[commitLog]"].status == (
        "confirmed"
    )
    forged = document.replace('"web-4"', '"web-5"', 1)
    assert not bare.verify(recording=json.loads(forged)).ok


def test_of_a_recording_without_its_record_what_it_says_cannot_be_checked():
    document = json.loads(recorded("one row"))
    document["snapshot"]["recorders"].pop()
    checked = rb.Envelope.from_dict(copied("one row")[0]).verify(recording=document)
    assert checked["record.told"].because == "it carries no record to hold it against"


@pytest.mark.parametrize("name", ["gaps", "long way", "nested"])
def test_a_recording_bears_out_what_a_copy_carries(name):
    envelope = answer(name)
    recording = json.loads(envelope.recording().to_json())
    document = written(envelope)
    copy = rb.Envelope.from_dict(document)
    checked = copy.verify(recording=recording)
    assert checked.ok, [claim.sentence for claim in checked.contradicted]
    assert checked["record.structure"].basis == "the recording given"
    assert checked["record.counts"].status == "confirmed"
    place = ("dossier", "structure", "nodes", 0, "name")
    forged = rb.Envelope.from_dict(changed(document, place, "another"))
    assert forged.verify().ok
    assert not forged.verify(recording=recording).ok


def test_a_recording_contradicts_values_that_nothing_else_could():
    envelope = answer("long way")  # its rows call the column otherwise
    place = ("dossier", "subjects", 2, "decision", "values", 1)
    forged = rb.Envelope.from_dict(changed(written(envelope), place, 13))
    assert forged.verify().ok
    checked = forged.verify(recording=envelope.recording())
    assert [claim.id for claim in checked.contradicted] == ["record.subject[host=web-3]"]


def test_a_recording_that_was_filed_is_found():
    envelope = long_way(ROWS, walk={"recording": True})
    copy = rb.Envelope.from_dict(written(envelope), envelope.artifacts)
    checked = copy.verify()
    assert checked.ok, [claim.sentence for claim in checked.contradicted]
    assert checked["record.structure"].basis == "the recording that was filed"


# --- how it is told ----------------------------------------------------------------------------


def test_a_verification_counts_its_claims_and_puts_contradictions_first():
    place = ("result", "rows_total")
    checked = verified(changed(copied("short way")[0], place, 6))
    counts = checked.counts
    assert list(counts) == ["contradicted", "confirmed", "cannot be checked"]
    assert sum(counts.values()) == len(checked) == len(list(checked))
    assert checked.sentence == (
        f"{len(checked)} claims: {counts['confirmed']} confirmed, "
        f"{counts['contradicted']} contradicted, {counts['cannot be checked']} cannot be checked"
    )
    statuses = [claim.status for claim in checked]
    assert statuses == sorted(statuses, key=list(counts).index)
    assert str(checked).splitlines()[0].startswith("Verification triage · ")


def test_a_verification_is_written_as_json_markdown_and_a_frame():
    checked = copied("short way")[1]
    told = json.loads(checked.to_json())
    assert told == json.loads(json.dumps(checked.to_dict()))
    assert told["format"] == VERIFICATION_FORMAT
    assert told["sentence"] == checked.sentence
    assert len(told["claims"]) == len(checked)
    frame = checked.to_frame()
    assert list(frame["status"]) == [claim.status for claim in checked]
    markdown = checked.to_markdown()
    assert "counts.rows_total" in markdown
    assert "Nothing is contradicted." in markdown


def test_a_claim_is_asked_for_by_its_id():
    checked = copied("short way")[1]
    assert checked["counts.rows_total"].claimed == "5 rows in all"
    with pytest.raises(rb.errors.NoSuchPart, match=r"did you mean 'counts\.rows_total'"):
        checked["counts.rows_totl"]


def test_what_follows_no_form_is_contradicted_and_never_raises():
    document = copied("short way")[0]
    for place, value in [
        (("dossier", "fan_outs", 0, "counts", "by_branch"), 3),
        (("dossier", "decider"), 0),
        (("dossier", "stamp"), [1, 2]),
        (("dossier", "units"), 5),
        (("af_coverage", "checked"), {"a": 1}),
        (("result", "walk", "shown"), "many"),
        (("result", "table"), None),
        (("dossier", "telling"), [None]),
    ]:
        checked = verified(changed(document, place, value))
        assert checked is None or not checked.ok, place


# --- many --------------------------------------------------------------------------------------


def test_of_many_subjects_there_is_one_claim_per_kind(calls_of):
    def copy(many):
        rows = [{"host": f"h{n}", "known": True, "days": n % 40, "tier": "a"} for n in range(many)]
        document = json.loads(triaged(rows).to_json(dossier=True))
        return rb.Envelope.from_dict(document)

    few, many = copy(300), copy(3_000)
    checked = many.verify()
    assert checked.ok
    assert len(checked) < 70
    assert checked["verdict"].count == 3_000
    assert "2,990 more" in checked["verdict"].claimed
    assert len(checked) == len(few.verify())
    each = (calls_of(many.verify) - calls_of(few.verify)) / 2_700
    assert each < 110  # calls for one more subject


def test_of_many_forged_rows_the_first_are_named_with_what_differs():
    rows = [{"host": f"h{n}", "known": True, "days": n % 40, "tier": "a"} for n in range(100)]
    document = json.loads(triaged(rows).to_json(dossier=True))
    for row in document["dossier"]["rows"][60:90]:
        row["verdict"] = "declined"
    claim = {c.id: c for c in verified(document).contradicted}["row.verdict"]
    assert claim.count == 30
    assert len(claim.found) == 10
    assert claim.found["host=h60"] == "declined"
