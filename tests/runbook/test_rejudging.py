"""Judging an envelope again on the facts it recorded."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, NotCarried

ROWS = [
    {"host": "a", "days": 9, "tier": 1, "token": "t0p-s3cret"},
    {"host": "b", "days": 2, "tier": 2, "token": "other-s3cret"},
    {"host": "c", "days": None, "tier": 1, "token": "third-s3cret"},
]


def limit(days, version="v1", *more):
    rules = [rb.Rule({"days": {"gt": days}}, "old"), *more]
    return rb.RuleSet("age", version, rules, rb.Default("fresh"))


TIER = rb.Rule({"tier": {"eq": 2}}, "second")


def answer(rules=None, rows=ROWS, **more):
    return rb.triage(rows, rules or limit(7), subject="host", source="three rows", **more)


def verdicts(rejudged):
    return [rejudged.verdict_of(row) for row in range(len(rejudged))]


def test_the_recorded_facts_are_judged_and_no_source_is_called(kit):
    calls = []
    source = rb.define_tool(
        name="backup_inventory",
        description="Rows.",
        execute=lambda args: calls.append(1) or rb.coverage({"rows": kit.ROWS}, checked=["it"]),
    )
    envelope = rb.Toolbox([source, kit.triage()]).call_sync("backup_triage", {})
    assert calls == [1]
    again = envelope.rejudge(kit.posture("v2", 1))
    assert verdicts(again) == ["unprotected", "unprotected", "declined"]
    assert calls == [1]


def test_the_same_rules_give_the_same_verdicts():
    envelope = answer()
    again = envelope.rejudge(limit(7))
    assert verdicts(again) == [row["verdict"] for row in envelope.verdicts]
    assert again.counts() == {"old": 1, "fresh": 1, "declined": 1}


def test_a_live_record_holds_every_fact_of_its_rows():
    again = answer().rejudge(limit(7, "v2", TIER))
    assert verdicts(again) == ["old", "second", "declined"]
    assert again.gaps() == {}


def test_a_copy_holds_the_compared_values_and_guesses_no_other():
    envelope = answer()
    copy = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    assert verdicts(copy.rejudge(limit(1, "v2"))) == ["old", "old", "declined"]
    again = copy.rejudge(limit(7, "v2", TIER))
    assert verdicts(again) == ["old", None, "declined"]
    assert again.gaps() == {"rule 2 needs tier, which was not recorded": 1}
    assert again.rows()[1]["not_judged"] == "rule 2 needs tier, which was not recorded"
    assert "rule 2 needs tier, which was not recorded" in str(again)


def test_a_key_no_subject_has_is_missing_and_not_unrecorded():
    again = answer().rejudge(limit(7, "v2", rb.Rule({"nowhere": {"eq": 1}}, "x")))
    assert verdicts(again) == ["old", "declined", "declined"]
    assert again.gaps() == {}


def test_what_a_policy_hides_cannot_be_judged_and_is_nowhere_to_be_seen():
    secret = rb.Rule({"token": {"starts_with": "t0p"}}, "leaky")
    envelope = answer(redact={"keys": ["token"]})
    again = envelope.rejudge(limit(7, "v2", secret))
    assert verdicts(again) == ["old", None, "declined"]
    assert again.gaps() == {"rule 2 needs token, which is hidden": 1}
    for text in (str(again), repr(again.to_dict()), str(envelope.compare(again))):
        assert "s3cret" not in text
        assert "t0p" not in text
    copy = rb.Envelope.from_dict(
        answer(limit(7, "v1", secret), redact={"keys": ["token"]}).to_dict(dossier=True)
    )
    assert copy.rejudge(limit(7, "v2", secret)).gaps() == {"rule 2 needs token, which is hidden": 1}


def test_a_secret_text_inside_a_value_hides_that_value():
    rows = [{"host": "a", "note": "all well"}, {"host": "b", "note": "with t0p-s3cret inside"}]
    rules = rb.RuleSet("n", "1", [rb.Rule({"note": {"contains": "well"}}, "good")], "bad")
    envelope = answer(rules, rows, redact={"values": ["t0p-s3cret"]})
    asks = rb.RuleSet("n", "2", [rb.Rule({"note": {"contains": "s3c"}}, "leaky")], "tight")
    again = envelope.rejudge(asks)
    assert verdicts(again) == ["tight", None]
    assert again.gaps() == {"rule 1 needs note, which is hidden": 1}


def test_who_was_never_reached_has_no_verdict_now_either():
    again = answer(max_branches=1).rejudge(limit(1, "v2"))
    assert verdicts(again) == ["old", None, None]
    assert again.gaps() == {"past the cap of 1": 2}


def test_who_was_never_reached_counts_for_no_rule():
    again = answer(max_branches=1).rejudge(limit(1, "v2", TIER))
    assert again.counts() == {"old": 1}
    assert again.fired == (1, 0)
    (silent,) = again.silent
    assert silent.words == "never fired: no subject meets it; of 2 it is not known"


def refusing(days, version="v1", *more):
    rules = [rb.Rule({"days": {"gt": days}}, "old"), *more]
    return rb.RuleSet("age", version, rules, rb.Default("fresh"), unreadable="raise")


def spread_out(rows, rules, **more):
    """Judge rows as `triage` does, in branches of a chart of its own."""

    def keep(scope):
        scope.set("verdict", "it")

    branch = (
        rb.flow_chart("Take", lambda s: s.update(s.args["item"]), id="take")
        .add_decider("Age", rules=rules, id="age")
        .branch("old", keep)
        .branch("fresh", keep)
        .branch("declined", keep)
        .end()
        .build()
    )
    chart = (
        rb.flow_chart("c", lambda s: s.set("rows", rows), id="rows")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=branch,
            max_branches=9,
            into="out",
            subject="host",
        )
        .build()
    )
    runbook = rb.runbook_as_tool(
        name="r",
        description="d",
        procedure=lambda tools: chart,
        result_kind="verdict/x",
        rules=rules,
        verdicts={"decider": "Age"},
        **more,
    )
    return rb.Toolbox([runbook]).call_sync("r", {})


@pytest.mark.parametrize(
    "ask", [lambda: answer(refusing(7)), lambda: spread_out(ROWS, refusing(7))]
)
def test_a_subject_the_old_rules_failed_on_is_judged_by_the_new_ones(ask):
    envelope = ask()
    assert [envelope.side.standing(row).kind for row in range(3)] == ["", "", "failed"]
    again = envelope.rejudge(limit(1, "v2", TIER))
    assert verdicts(again) == ["old", "old", "declined"]
    assert again.counts() == {"old": 2, "declined": 1}
    assert again.gaps() == {}
    assert again.fired == (2, 0)
    assert envelope.rejudge(refusing(1, "v2")).gaps() == {"rule 1 could not be read, days": 1}
    by_tier = rb.RuleSet("age", "v3", [rb.Rule({"tier": {"eq": 1}}, "old")], "fresh")
    assert verdicts(envelope.rejudge(by_tier)) == ["old", "fresh", "old"]


def test_a_subject_whose_facts_were_not_recorded_cannot_be_judged_again(call):
    def load(scope):
        if scope.args["item"]["age_days"] == 30:
            raise OSError("the disk is gone")
        scope.update(scope.args["item"])

    for envelope in (call(load=load), answer(refusing(7))):
        copy = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
        again = copy.rejudge(limit(1, "v2"))
        row = next(n for n, _ in enumerate(copy.side.subjects) if copy.side.standing(n).reason)
        assert copy.side.standing(row).kind == "failed"
        assert again.side.standing(row).kind == "not_recorded"
        (reason,) = [said for said in again.gaps() if "its branch failed" in said]
        assert reason.startswith("rule 1 needs days, which was not recorded; its branch failed: ")


def test_branches_of_a_chart_are_judged_on_the_state_their_decider_read(call):
    def load(scope):
        scope.update(scope.args["item"])
        scope.set("doubled", (scope.args["item"]["age_days"] or 0) * 2)

    envelope = call(load=load)
    rules = rb.RuleSet("d", "1", [rb.Rule({"doubled": {"gte": 60}}, "unprotected")], "protected")
    assert verdicts(envelope.rejudge(rules)) == ["protected", "unprotected", "protected"]


def test_what_a_branch_wrote_after_its_decision_is_no_fact_of_it(call):
    envelope = call()
    rules = rb.RuleSet("d", "1", [rb.Rule({"verdict": {"exists": True}}, "x")], "protected")
    assert set(verdicts(envelope.rejudge(rules))) == {"protected"}


def test_changes_of_every_sort_are_replayed_up_to_the_decision(kit, call):
    def load(scope):
        scope.set("tags", [])
        scope.append("tags", "new")
        scope.merge("item", scope.args["item"])
        scope.set("gone", 1)

    def drop(scope):
        scope.delete("gone")

    rules = rb.RuleSet(
        "d",
        "1",
        [rb.Rule({"item.age_days": {"gt": 7}}, "unprotected")],
        "protected",
        unreadable={"branch": "declined"},
    )
    branch = (
        rb.flow_chart("subject", load, id="load")
        .add_function("Drop", drop, id="drop")
        .add_decider("Protection posture", rules=rules, id="posture")
        .branch("protected", kit.word("protected"))
        .branch("unprotected", kit.word("unprotected"))
        .branch("declined", kit.word("declined"))
        .end()
        .build()
    )
    envelope = call(branch=branch, rules=rules)
    again = envelope.rejudge(rules)
    assert verdicts(again) == ["protected", "unprotected", "declined"]
    asks = rb.RuleSet(
        "d",
        "2",
        [
            rb.Rule({"gone": {"exists": True}}, "unprotected"),
            rb.Rule({"tags": {"contains": "new"}}, "protected"),
        ],
        "declined",
    )
    assert verdicts(envelope.rejudge(asks)) == ["protected"] * 3


def test_what_the_deciding_stage_wrote_is_not_sure():
    rules = rb.RuleSet("d", "1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")

    def judge(scope):
        scope.set("days", scope["item"]["days"])
        scope.set("half", (scope["item"]["days"] or 0) / 2)
        return rb.decide(scope, rules)

    branch = (
        rb.flow_chart("one", lambda s: s.set("item", s.args["item"]), id="load")
        .add_decider("Age", judge, id="age")
        .branch("old", lambda s: None)
        .branch("fresh", lambda s: None)
        .branch("declined", lambda s: None)
        .end()
        .build()
    )
    chart = (
        rb.flow_chart("c", lambda s: s.set("rows", ROWS[:2]), id="rows")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=branch,
            max_branches=9,
            into="out",
            subject="host",
        )
        .add_function("Collect", lambda s: s.set("verdicts", s["out"].verdict_rows()), id="collect")
        .build()
    )
    runbook = rb.runbook_as_tool(
        name="r",
        description="d",
        procedure=lambda tools: chart,
        result_kind="verdict/x",
        rules=rules,
        verdicts={"decider": "Age"},
    )
    envelope = rb.Toolbox([runbook]).call_sync("r", {})
    assert verdicts(envelope.rejudge(rules)) == ["old", "fresh"]  # the compared value is sure
    half = rb.RuleSet("d", "2", [rb.Rule({"half": {"gt": 1}}, "old")], "fresh")
    assert envelope.rejudge(half).gaps() == {"rule 1 needs half, which was not recorded": 2}


def test_rules_may_be_a_mapping_and_must_be_rules():
    assert len(answer().rejudge(limit(3, "v2").to_dict())) == 3
    with pytest.raises(DefinitionError, match="judged again by a RuleSet, not int"):
        answer().rejudge(7)


def test_the_wire_form_alone_holds_no_facts():
    copy = rb.Envelope.from_dict(answer().to_dict())
    with pytest.raises(NotCarried, match="recorded facts are not carried"):
        copy.rejudge(limit(3))


def test_rules_that_never_fired_are_told_with_what_took_their_subjects():
    again = answer().rejudge(limit(1, "v2", TIER))
    assert again.fired == (2, 0)
    assert [silent.words for silent in again.silent] == [
        "never fired: rule 1 takes the subject that meets it"
    ]


def test_its_forms_say_the_same():
    again = answer().rejudge(limit(1, "v2"))
    assert repr(again) == "<Rejudged age v2 · 3 subjects (2 old, 1 declined), before age v1>"
    frame = again.to_frame()
    assert list(frame["verdict"]) == ["old", "old", "declined"]
    assert list(frame["decided_by"]) == ["rule 1, > 1", "rule 1, > 1", "rule 1, unreadable"]
    told = again.to_dict()
    assert told["counts"] == {"old": 2, "declined": 1}
    assert [row["subject"] for row in told["subjects"]] == ["a", "b", "c"]
    assert again._repr_mimebundle_()[0]["text/html"] == again._repr_mimebundle_()[0]["text/html"]


VALUES = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(["x", 2.5, True]))
LIMITS = st.tuples(st.sampled_from(["gt", "lte", "eq", "ne"]), st.integers(-9, 9))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.fixed_dictionaries({"a": VALUES}, optional={"b": VALUES}), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from("ab"), LIMITS), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from("ab"), LIMITS), min_size=1, max_size=3),
)
def test_judging_again_is_judging(rows, first, second):
    """Live, the verdicts are those the rules give the rows; a copy gives them, or a gap."""

    def made(version, parts):
        rules = [rb.Rule({key: {op: n}}, f"{op}{n}") for key, (op, n) in parts]
        return rb.RuleSet.from_dict(
            {
                "name": "r",
                "version": version,
                "default": {"branch": "none"},
                "rules": [{"when": dict(r.when), "then": r.then} for r in rules],
            },
            recorded=True,
        )

    old, new = made("1", first), made("2", second)
    named = [{"host": str(n), **row} for n, row in enumerate(rows)]
    envelope = rb.triage(named, old, subject="host", source="rows")
    truth = [rb.decide(row, new).branch for row in named]
    assert verdicts(envelope.rejudge(new)) == truth
    copy = rb.Envelope.from_dict(envelope.to_dict(dossier=True))
    for found, true in zip(verdicts(copy.rejudge(new)), truth, strict=True):
        assert found in (None, true)
    assert verdicts(copy.rejudge(old)) == [row["verdict"] for row in envelope.verdicts]
