"""Laws over random runs: one count everywhere, copies that say the same, secrets in no view."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb

SOME = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = st.sampled_from(["a", "b", "c|d", "é", "x" * 90, "<img>", "`q`", "a\nb"])
VALUES = st.one_of(
    st.none(),
    st.integers(-5, 15),
    st.floats(allow_nan=True, allow_infinity=True, width=16),
    st.sampled_from(["", "7", "s3cr3t-42", "other-secret"]),
    st.booleans(),
    st.dates(),
    st.lists(st.integers(0, 3), max_size=2),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES}, optional={"n": VALUES, "tok": VALUES, "end": st.sampled_from("fsx")}
    ),
    max_size=9,
)


def conditions(key):
    return st.one_of(
        st.sampled_from(["gt", "gte", "lt", "lte", "eq", "ne"]).flatmap(
            lambda op: st.integers(0, 9).map(lambda limit: {key: {op: limit}})
        ),
        st.just({key: {"exists": True}}),
        st.just({key: {"in": [1, 2, "7"]}}),
        st.sampled_from(["7", "s3cr3t-42"]).map(lambda limit: {key: {"eq": limit}}),
    )


@st.composite
def rule_sets(draw):
    whens = draw(
        st.lists(st.sampled_from(["n", "tok"]).flatmap(conditions), min_size=1, max_size=3)
    )
    labels = st.sampled_from([None, "label", "about s3cr3t-42"])
    rules = [
        rb.Rule(when, draw(st.sampled_from(["bad", "odd", "declined"])), label=draw(labels))
        for when in whens
    ]
    unreadable = draw(st.sampled_from([None, "skip"]))
    options = {} if unreadable is None else {"unreadable": unreadable}
    try:
        return rb.RuleSet("r", "1", rules, rb.Default("good", label=draw(labels)), **options)
    except rb.errors.RuleError:  # overlapping rules are refused, rightly
        return rb.RuleSet("r", "1", rules[:1], rb.Default("good"), **options)


POLICIES = st.sampled_from(
    [
        None,
        {"keys": ["tok"]},
        {"keys": ["n"]},
        {"values": ["s3cr3t-42"]},
        {"patterns": ["^t"]},
        {"keys": ["name"]},
    ]
)


def run(rows, rules, cap, policy, max_rows=50):
    """A fan-out whose branches may fail or stop, by what their row says."""

    def load(scope):
        item = scope.args["item"]
        if item.get("end") == "f":
            raise KeyError(item["name"])
        if item.get("end") == "s":
            scope.stop("asked to")
        scope.update(item)

    builder = rb.flow_chart("one", load, id="load").add_decider("Size", rules=rules, id="size")
    for word in rules.branches:
        builder = builder.branch(word, lambda s, word=word: s.set("verdict", word))
    each = builder.end().build()

    def collect(scope):
        scope["verdicts"] = [
            {"name": slot.item["name"], "verdict": slot.value["verdict"], "n": slot.item.get("n")}
            for slot in scope["out"]
            if slot.sentence is not None
        ]

    def procedure(tools):
        return (
            rb.flow_chart("laws", lambda s: s.set("rows", rows), id="a")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: s["rows"],
                branch=each,
                max_branches=cap,
                into="out",
                subject="name",
            )
            .add_function("Collect", collect, id="z")
            .build()
        )

    tool = rb.runbook_as_tool(
        name="laws",
        description="d",
        procedure=procedure,
        result_kind="verdict/x",
        rules=rules,
        verdicts={"decider": "Size", "max_rows": max_rows},
        redact=policy,
        walk={"recording": True},
        keep_record=True,
    )
    box = rb.Toolbox([tool])
    return box, box.call_sync("laws", call_id="c1")


def counted_in(ledger, words):
    """The count of the one gap that is spoken of in these words; 0 when it is not."""
    found = [item["what"] for item in ledger.get("not_checked", ()) if words in item["what"]]
    assert len(found) < 2
    return int(found[0].split()[0]) if found else 0


@SOME
@given(
    rows=ROWS, rules=rule_sets(), cap=st.integers(1, 9), policy=POLICIES, shown=st.integers(1, 9)
)
def test_every_place_that_counts_says_the_same(rows, rules, cap, policy, shown):
    _, envelope = run(rows, rules, cap, policy, shown)
    result, ledger = envelope["result"], envelope["af_coverage"]
    [record] = envelope.run.fan_outs
    total = result["rows_total"]
    declined = envelope.verdicts.counts().get("declined", 0)
    # The record.
    assert record.items == len(rows) == record.ok + record.failed + record.not_reached
    assert total == record.decided == record.ok - record.undecided
    # The rowset.
    assert result["rows_shown"] == len(result["verdicts"]) == min(total, shown)
    assert result["rows_complete"] == (result["rows_shown"] == total)
    assert len(envelope.verdicts) == total
    lines = result["table"].split("\n\n")
    assert lines[0].count("\n| ") == result["rows_shown"]
    assert (len(lines) == 2) == (total > shown >= 1)
    # The ledger.
    assert counted_in(ledger, "NO classification") == declined
    assert counted_in(ledger, "not reached") == record.not_reached
    assert counted_in(ledger, "whose branch failed") == record.failed
    assert counted_in(ledger, "before a decision") == record.undecided
    assert not [i for i in ledger.get("not_checked", ()) if "do not match" in i["what"]]
    # The sentence.
    assert f"; {total} row(s) assessed" in ledger["sentence"]
    assert (f", {declined} declined" in ledger["sentence"]) == (declined > 0)
    gaps = len(ledger.get("not_checked", ()))
    assert (f"; {gaps} not-checked" in ledger["sentence"]) == (gaps > 0)
    # The card.
    card = envelope.view()
    badges = {badge.word: badge.count for badge in card.badges}
    assert sum(badges.values()) == len(rows)
    assert badges.get("failed", 0) == record.failed
    assert badges.get("not reached", 0) == record.not_reached
    assert badges.get("without a row", 0) == record.undecided
    assert badges.get("declined", 0) == declined
    if rows:
        assert f"{len(rows)} {'subject' if len(rows) > total else 'row'}" in str(card.headline)
    # The walk.
    walk = result["walk"]
    assert walk["steps_executed"] == envelope.run.steps_executed == envelope.walk.steps_executed
    assert walk["total"] == len(envelope.walk)


@SOME
@given(rows=ROWS, rules=rule_sets(), cap=st.integers(1, 9), policy=POLICIES)
def test_a_copy_with_its_dossier_says_the_same(rows, rules, cap, policy):
    box, envelope = run(rows, rules, cap, policy)
    written = envelope.to_json(dossier=True)
    copy = rb.Envelope.from_dict(json.loads(written), artifacts=box)
    assert copy == envelope
    assert str(copy) == str(envelope)
    assert repr(copy) == repr(envelope)
    for place in range(len(envelope.verdicts)):
        live, carried = envelope.why(row=place), copy.why(row=place)
        assert str(carried) == str(live)
        assert carried.to_dict() == live.to_dict()
    pairs = zip(envelope.dossier.subjects(), copy.dossier.subjects(), strict=True)
    for live_facts, facts in pairs:
        assert (facts.status, facts.reason) == (live_facts.status, live_facts.reason)
    assert copy.to_frame().equals(envelope.to_frame())
    assert copy.to_json(dossier=True) == written
    assert list(copy.walk.rows) == list(envelope.walk)


@SOME
@given(rows=ROWS, rules=rule_sets(), cap=st.integers(1, 9), policy=POLICIES)
def test_the_wire_is_strict_json_whatever_the_rows_hold(rows, rules, cap, policy):
    _, envelope = run(rows, rules, cap, policy)
    assert json.loads(json.dumps(envelope, allow_nan=False)) == envelope
    json.dumps(envelope.to_dict(dossier=True), allow_nan=False)


SECRET = "s3cr3t-42"


def every_view(box, envelope, tool):
    yield from (str(envelope), repr(envelope), envelope.to_markdown())
    yield from (envelope.to_json(), envelope.to_json(dossier=True), envelope.to_frame().to_csv())
    yield from (str(envelope.verdicts), str(envelope.ledger), envelope.ledger.to_markdown())
    yield from (str(envelope.walk), envelope.walk.to_markdown(), envelope.walk.to_frame().to_csv())
    yield from (str(envelope.run), envelope.run.to_markdown())
    for place in range(len(envelope.verdicts)):
        why = envelope.why(row=place)
        yield from (str(why), why.to_markdown(), json.dumps(why.to_dict()), str(why.walk()))
    for decision in envelope.walk.decisions:
        yield json.dumps(decision.decision.to_dict())
    for ticket in box.artifacts.list_sync().artifacts:
        yield box.artifacts.get_sync(ticket.ref).data
    yield json.dumps(rb.inner_runs_of(tool).get("c1"), default=list)


@pytest.mark.parametrize("policy", [{"values": [SECRET]}, {"keys": ["tok"]}, {"patterns": ["^to"]}])
@pytest.mark.parametrize(
    "place", ["input", "tool", "row", "label", "ledger", "error", "emit", "all"]
)
def test_a_secret_the_policy_names_is_in_no_view(place, policy):
    """Planted where the policy names it, it is hidden wherever else it turns up."""

    def said(where, text=f"seen {SECRET}"):
        return text if place in (where, "all") else "nothing"

    rules = rb.RuleSet(
        "r",
        "1",
        [rb.Rule({"tok": {"eq": SECRET}}, "bad", label=said("label"))],
        rb.Default("good", label=said("label")),
        outside=[rb.Outside({"n": {"gt": 5}}, said("label"), said("ledger"))],
    )
    inner_answer = rb.coverage(
        {
            "af_provenance": {"by": said("tool")},
            "tok": SECRET,
            "rows": [
                {"name": said("row"), "tok": SECRET, "n": 1, "end": "f"},
                {"name": said("row", f"b {SECRET}"), "tok": SECRET, "n": 1, "note": said("row")},
                {"name": "c", "tok": "x", "n": 9},
            ],
        },
        checked=[said("ledger")],
        not_checked=[rb.Item("g", said("ledger"))],
    )

    def load(scope):
        item = scope.args["item"]
        scope.emit("loaded", {"with": said("emit")})
        if item.get("end") == "f":
            raise ValueError(said("error"))
        scope.update(item)

    builder = rb.flow_chart("one", load, id="load").add_decider("Size", rules=rules, id="size")
    for word in rules.branches:
        builder = builder.branch(word, lambda s, word=word: s.set("verdict", word))
    each = builder.end().build()

    def procedure(tools):
        async def inventory(scope):
            answer = await tools.call("inv", {})
            scope["rows"] = answer["result"]["rows"]
            scope["asked"] = scope.args["tok"]

        def collect(scope):
            scope["verdicts"] = [
                {"name": slot.item["name"], **slot.value} for slot in scope["out"] if slot.sentence
            ]
            scope["report"] = {"note": said("input")}
            scope["coverage"] = {"cannot_cover": [{"what": "h", "why": said("input")}]}

        return (
            rb.flow_chart("laws", inventory, id="a")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: s["rows"],
                branch=each,
                max_branches=9,
                into="out",
                subject="name",
            )
            .add_function("Collect", collect, id="z")
            .build()
        )

    inv = rb.define_tool(name="inv", description="d", execute=lambda args: inner_answer)
    tool = rb.runbook_as_tool(
        name="laws",
        description="d",
        procedure=procedure,
        result_kind="verdict/x",
        verdicts={"decider": "Size"},
        redact=policy,
        walk={"recording": True},
        keep_record=True,
    )
    box = rb.Toolbox([inv, tool])
    envelope = box.call_sync("laws", {"tok": SECRET}, call_id="c1")
    assert envelope["result"]["rows_total"] == 2
    for text in every_view(box, envelope, tool):
        assert SECRET not in text
