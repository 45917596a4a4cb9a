"""The envelope as a mapping, and the attributes that look at it."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import fields

import pytest

import runbook_nb as rb
from runbook_nb.errors import LoadError, NoSuchPart, NotCarried, SubjectNotFound


@pytest.fixture
def wire_only(call):
    return rb.Envelope.from_dict(json.loads(call().to_json()))


def test_it_is_exactly_the_wire_mapping(call):
    envelope = call()
    assert isinstance(envelope, dict)
    assert json.loads(json.dumps(envelope, allow_nan=False)) == envelope == envelope.to_dict()
    assert list(envelope) == ["af_coverage", "result"]
    assert "dossier" not in envelope
    assert list(envelope.to_dict(dossier=True)) == ["af_coverage", "result", "dossier"]


def test_nothing_in_it_can_be_changed(call):
    envelope = call()
    with pytest.raises(TypeError):
        envelope["result"] = {}
    with pytest.raises(TypeError):
        envelope["result"]["verdicts"].append({})
    with pytest.raises(TypeError):
        envelope["result"]["verdicts"][0]["verdict"] = "protected"


def test_what_it_hands_out_cannot_be_changed_either(call):
    envelope = call()
    dossier, tool = envelope.dossier, call.box["backup_triage"]
    handed = [
        *(dossier.fan_outs[0], dossier.fan_outs[0].counts, dossier.sources[0]),
        *(envelope.why("cluster-b").facts, tool, tool.carried["runbook"]),
    ]
    for one in handed:
        with pytest.raises(AttributeError):
            setattr(one, fields(one)[0].name, "another")


def test_copies_are_ordinary_and_pickles_are_envelopes(call):
    envelope = call()
    plain = copy.deepcopy(envelope)
    assert type(plain) is dict
    plain["result"]["rows_total"] = 9
    assert envelope["result"]["rows_total"] == 3
    again = pickle.loads(pickle.dumps(envelope))  # noqa: S301 - our own bytes
    assert again == envelope
    assert str(again) == str(envelope)
    assert again.walk.descriptor == envelope["result"]["walk"]


def test_its_parts(call):
    envelope = call()
    assert envelope.tool == "backup_triage"
    assert envelope.rules == ("health-signal", "v1")
    assert envelope.ledger.counts == ("checked 2", "not checked 2", "cannot cover 1")
    assert envelope.verdicts.counts() == {"protected": 1, "unprotected": 1, "declined": 1}
    assert envelope.meanings["unprotected"] == "older than the 7-day threshold"
    assert envelope.run is call.box.last_run
    frame = envelope.to_frame()
    assert list(frame.columns) == ["subject", "verdict", "age", "decided_by", "rule"]
    assert list(frame["rule"]) == ["default", "2", "1"]
    assert list(frame["decided_by"]) == [
        "default: no rule fired",
        "age_days 30 > 7",
        "age_known = false",
    ]


def test_the_walk_of_a_live_answer_and_of_a_copy(call, wire_only):
    envelope = call()
    assert [row.stage for row in envelope.walk.of("cluster-b") if row.type == "condition"] == [
        "Protection posture"
    ]
    assert len(envelope.walk.page(3, 4)) == 4
    assert len(envelope.walk.decisions) == 3
    filed = rb.Envelope.from_dict(envelope.to_dict(), artifacts=call.box).walk
    assert filed.page(3, 4) == envelope.walk.page(3, 4)
    assert filed[2:4] == tuple(envelope.walk[2:4])
    assert filed.to_frame().equals(envelope.walk.to_frame())
    assert (filed.steps_executed, filed.total) == (15, len(envelope.walk))
    for asked in (lambda: filed.of("cluster-b"), lambda: filed.decisions):
        with pytest.raises(NotCarried):
            asked()
    assert "rows not carried" in str(wire_only.walk)
    with pytest.raises(NotCarried, match="artifacts="):
        len(wire_only.walk)


def test_a_ticket_the_store_gave_up_is_not_carried(call):
    envelope = call(walk={"recording": True})
    other = rb.Toolbox([])
    lost = rb.Envelope.from_dict(envelope.to_dict(), artifacts=other)
    with pytest.raises(NotCarried, match="does not hold its ticket"):
        lost.walk.rows  # noqa: B018 - asking is the question
    with pytest.raises(NotCarried, match="the recording"):
        lost.recording()


def test_what_was_never_filed_says_why(call):
    envelope = rb.Envelope.from_dict(call(artifacts=None).to_dict())
    with pytest.raises(NotCarried, match="no artifact store"):
        envelope.walk.rows  # noqa: B018
    with pytest.raises(NotCarried, match="no ticket"):
        envelope.recording()


def test_why_of_a_row_a_subject_and_neither(call):
    envelope = call()
    assert envelope.why("cluster-b").sentence == (
        "unprotected by rule 2 of health-signal v1: age_days 30 > 7"
    )
    assert envelope.why(row=1).to_dict()["row"]["subject"] == "cluster-b"
    assert envelope.why(row=-1).place == 2
    json.dumps(envelope.why(row=2).to_dict(), allow_nan=False)
    with pytest.raises(NotCarried, match="did you mean 'cluster-b'"):
        envelope.why("cluster-bb")
    with pytest.raises(NotCarried, match="3 of 3 rows"):
        envelope.why(row=7)
    with pytest.raises(NotCarried, match="3 subjects"):
        envelope.why()


def test_why_of_a_subject_without_a_row_says_what_became_of_it(call):
    def load(scope):
        if scope.args["item"]["age_days"] == 30:
            raise KeyError("age")
        scope.update(scope.args["item"])

    envelope = call(load=load, cap=2)
    assert envelope.why("cluster-b").sentence == "failed: KeyError: 'age' in stage 'Load'"
    assert envelope.why("cluster-c").sentence == "not reached: past the cap of 2"
    assert "failed" in str(envelope.why("cluster-b"))
    assert repr(envelope) == (
        "<Envelope backup_triage · health-signal v1 · 3 subjects "
        "(1 protected, 1 failed, 1 not reached)>"
    )


def test_a_row_that_says_otherwise_than_the_record_is_spoken_of(kit, call):
    envelope = call()
    wire = envelope.to_dict(dossier=True)
    for rows in (wire["result"]["verdicts"], wire["dossier"]["rows"]):
        rows[1]["verdict"] = "protected"
    card = rb.Envelope.from_dict(wire).why("cluster-b")
    assert "The row says" in card.to_markdown()
    assert card.decision.branch == "unprotected"


def test_the_configured_decider_explains_a_row_also_where_another_follows(kit):
    posture = rb.RuleSet("posture", "1", [rb.Rule({"n": {"gt": 5}}, "big")], "small")
    ticket = rb.RuleSet("ticket", "1", [rb.Rule({"n": {"gt": 1}}, "yes")], "no")

    def procedure(tools):
        each = (
            rb.flow_chart("one", lambda s: s.set("n", s.args["item"]), id="one")
            .add_decider("Size", rules=posture, id="size")
            .branch("big", kit.word("big"))
            .branch("small", kit.word("small"))
            .end()
            .add_decider("Ticket", rules=ticket, id="ticket")
            .branch("yes", lambda s: None)
            .branch("no", lambda s: None)
            .end()
            .build()
        )

        def collect(scope):
            scope["verdicts"] = [
                {"n": slot.item, "verdict": slot.value["verdict"]} for slot in scope["out"]
            ]

        return (
            rb.flow_chart("c", lambda s: s.set("xs", [1, 9]), id="a")
            .add_parallel_for_each(
                "Each", id="each", items=lambda s: s["xs"], branch=each, max_branches=9, into="out"
            )
            .add_function("Collect", collect, id="z")
            .build()
        )

    for decider in ("Size", "size"):
        envelope = kit.ask(
            None, procedure=procedure, result_kind="verdict/x", verdicts={"decider": decider}
        )
        copy_ = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
        for each in (envelope, copy_):
            assert each.why(9).sentence == "big by rule 1 of posture 1: n 9 > 5"
            assert list(each.to_frame()["decided_by"]) == ["default: no rule fired", "n 9 > 5"]


def test_rules_that_are_functions_are_carried_as_words(call):
    def is_stale(facts):
        return facts["age_days"] is not None and facts["age_days"] > 7

    rules = rb.RuleSet("f", "1", [rb.Rule(is_stale, "unprotected", label="stale")], "protected")
    envelope = call(rules=rules)
    carried = rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    assert str(carried) == str(envelope)
    assert carried.why("cluster-b").sentence == envelope.why("cluster-b").sentence
    assert list(carried.to_frame()["decided_by"]) == list(envelope.to_frame()["decided_by"])
    assert "conditions are not carried" in str(carried.why("cluster-b"))
    assert carried.dossier.to_dict() == envelope.dossier.to_dict()


def test_rules_without_a_name_are_carried_too(kit):
    def judge(scope):
        return rb.decide(scope, [rb.Rule({"n": {"gt": 5}}, "big", label="over five")], "small")

    def procedure(tools):
        each = (
            rb.flow_chart("one", lambda s: s.set("n", s.args["item"]), id="one")
            .add_decider("Size", judge, id="size")
            .branch("big", kit.word("big"))
            .branch("small", kit.word("small"))
            .end()
            .build()
        )

        def collect(scope):
            scope["verdicts"] = [
                {"n": slot.item, "verdict": slot.value["verdict"]} for slot in scope["out"]
            ]

        return (
            rb.flow_chart("c", lambda s: s.set("xs", [1, 9]), id="a")
            .add_parallel_for_each(
                "Each", id="each", items=lambda s: s["xs"], branch=each, max_branches=9, into="out"
            )
            .add_function("Collect", collect, id="z")
            .build()
        )

    envelope = kit.ask(None, procedure=procedure, result_kind="verdict/x")
    carried = rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    assert len(envelope.dossier.sources) == 1
    assert str(carried.why(9)) == str(envelope.why(9))
    assert "big by rule 1: n 9 > 5" in str(carried.why(9))


def test_a_copy_that_holds_some_rows_counts_nothing_as_if_it_held_all(kit):
    rows = [{"subject": f"s{n}", "verdict": "ok"} for n in range(51)]
    envelope = kit.ask(lambda s: s.set("verdicts", rows), result_kind="verdict/x")
    part = rb.Envelope.from_dict(envelope.to_dict())
    assert (len(part.verdicts), part.verdicts.total, part.verdicts.complete) == (50, 51, False)
    assert "51 rows, 50 of 51 rows held here" in repr(part)
    assert "(" not in repr(part)
    assert "held here" in repr(part.verdicts)
    assert "51 rows (51 ok)" in repr(envelope)


def test_a_dossier_cut_to_a_cap_says_so(call):
    envelope = call()
    wire = {**envelope.to_dict(), "dossier": envelope.dossier.to_dict(cap=1)}
    part = rb.Envelope.from_dict(wire)
    assert not part.dossier.complete
    assert part.dossier.subjects_total == 3
    assert len(part.verdicts) == 3
    assert part.why("cluster-a").decision is not None
    assert part.why("cluster-b").sentence == "the decision is not carried by this copy"


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        (lambda w: w.pop("result"), "envelope"),
        (lambda w: w.update(extra=1), "envelope"),
        (lambda w: w["result"].update(verdicts="no"), "result.verdicts"),
        (lambda w: w["result"].update(verdicts=[{"verdict": 3}]), "result.verdicts"),
        (lambda w: w["result"].update(rows_total=1), "result.rows_total"),
        (lambda w: w["result"].pop("rows_total"), "result.rows_total"),
        (lambda w: w["result"].update(walk=[]), "result.walk"),
        (lambda w: w.update(dossier={}), "dossier"),
        (lambda w: w["dossier"].update(subjects=3), "dossier"),
        (lambda w: w["dossier"].update(subjects=["x"]), "dossier"),
        (lambda w: w["dossier"]["subjects"][0]["decision"].update(codes=[]), "dossier"),
        (lambda w: w["dossier"]["subjects"][0]["decision"].update(rules=9), "dossier"),
        (lambda w: w["dossier"]["subjects"][0]["decision"]["values"].append(1), "dossier"),
        (lambda w: w["dossier"].pop("structure"), "dossier"),
        (lambda w: w["dossier"]["rule_sets"][0]["content"].pop("rules"), "dossier"),
    ],
)
def test_a_damaged_copy_is_refused_by_its_part(call, damage, where):
    wire = json.loads(call().to_json(dossier=True))
    damage(wire)
    with pytest.raises(LoadError) as caught:
        rb.Envelope.from_dict(wire)
    assert caught.value.where == where


def test_a_part_that_stands_elsewhere_is_pointed_at(call):
    envelope = call()
    with pytest.raises(KeyError) as caught:
        envelope["verdicts"]
    assert caught.value.code == "no_such_part"
    assert str(caught.value) == (
        'an envelope has no key \'verdicts\'; it stands in envelope["result"]["verdicts"], '
        "and all of it in envelope.verdicts"
    )
    with pytest.raises(NoSuchPart, match=r'stands in envelope\["result"\]\["rows_total"\]'):
        envelope["rows_total"]
    with pytest.raises(NoSuchPart, match="did you mean 'result'"):
        envelope["resul"]
    with pytest.raises(NoSuchPart, match="its keys are 'af_coverage' and 'result'"):
        envelope[7]
    assert envelope.get("verdicts") is None
    assert "verdicts" not in envelope


def test_text_is_not_taken_for_an_answer(call):
    text = call().to_json()
    for given in (text, text.encode()):
        with pytest.raises(LoadError, match=r"give it json\.loads\(text\)"):
            rb.Envelope.from_dict(given)


def test_one_error_stands_for_a_subject_that_is_not_there(call, wire_only):
    envelope = call()
    for ask in (envelope.why, envelope.explore, envelope.dossier.find, wire_only.why):
        with pytest.raises(SubjectNotFound):
            ask("cluster-x")
    assert issubclass(SubjectNotFound, NotCarried)
    with pytest.raises(SubjectNotFound) as caught:
        envelope.why("cluster-x")
    assert caught.value.code == "unknown_subject"


def test_a_number_that_names_no_subject_is_told_how_rows_are_asked_for(call, wire_only):
    for envelope in (call(), wire_only):
        with pytest.raises(SubjectNotFound, match="counted from 0, write row=2"):
            envelope.why(2)
        with pytest.raises(SubjectNotFound) as caught:
            envelope.why(3)
        assert "row=3" not in str(caught.value)
        with pytest.raises(NotCarried, match="row= counts from 0: 'row 1' of a card is row=0"):
            envelope.why(row=3)


def test_what_is_no_mapping_is_refused():
    for value in (None, [], "x", {"af_coverage": {}, "result": 3}):
        with pytest.raises(LoadError):
            rb.Envelope.from_dict(value)


def test_declared_units_head_their_columns_and_are_carried(call):
    verdicts = {"decider": "Protection posture", "units": {"age": "days"}}
    envelope = call(verdicts=verdicts)
    heads = [column.head for column in envelope.view().sections[0].parts[0].columns]
    assert [head.unit for head in heads if not isinstance(head, str)] == [None, "days"]
    copy_ = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    assert str(copy_) == str(envelope)


@pytest.mark.parametrize("stored", ["no json {", "5", "[1, null]", '{"a": 1}'])
def test_what_a_store_gives_back_is_not_carried_when_it_is_no_walk_or_recording(call, stored):
    class Lying:
        def get_sync(self, ref):
            return rb.Record(meta=None, data=stored)

    live = call(walk={"recording": True})
    copied = rb.Envelope.from_dict(live.to_dict(), artifacts=Lying())
    for ask in (lambda: copied.walk.rows, copied.recording, copied.walk.flowchart):
        with pytest.raises(NotCarried, match="not carried"):
            ask()
    assert "not carried" in str(copied.walk)


def test_steps_that_a_copy_does_not_carry_are_not_told_as_none():
    bare = rb.Envelope.from_dict({"af_coverage": {}, "result": {}})
    assert "0 steps" not in str(bare)
    assert "not carried" in str(bare).splitlines()[0]


def test_a_copy_sends_nobody_to_a_frame_for_rows_it_does_not_hold(kit):
    rows = [{"subject": f"h{n}", "verdict": "ok"} for n in range(60)]
    live = kit.ask(lambda s: s.set("verdicts", rows), result_kind="verdict/x")
    copied = rb.Envelope.from_dict(live.to_dict())
    assert "50 more rows: to_frame()\n" in f"{live}\n".replace(" · ", "\n")
    assert "50 more rows: to_frame() holds 50 of 60" in str(copied)
    assert len(copied.to_frame()) == 50
    assert "to_frame() holds 50 of 60" in str(copied.verdicts)
