"""A runbook that asks: it pauses at the tool's boundary and is finished there, with one record."""

from __future__ import annotations

import json

import pytest

import runbook_nb as rb
from runbook_nb.errors import CheckpointError, Paused, ToolRefused

POSTURE = rb.RuleSet(
    "posture",
    "v1",
    rules=[rb.Rule({"age": {"gt": 7}}, then="stale", label="older than 7 days")],
    default=rb.Default("fresh", label="within 7 days"),
)
ROWS = [{"host": "a", "age": 2}, {"host": "b", "age": 30}, {"host": "c", "age": 9}]


class Estate:
    """A runbook whose answer needs a person, made anew as another process would make it."""

    def __init__(self, *, redact=None, asks=True, rules=POSTURE):
        self.calls = 0
        self.redact = redact
        self.asks = asks
        self.rules = rules

    def box(self):
        @rb.tool(description="Hosts with the age of their backup.")
        def hosts():
            self.calls += 1
            return rb.coverage(
                {"rows": ROWS},
                checked=["the inventory"],
                cannot_cover=[rb.Item("tapes", why="kept off site")],
            )

        triage = rb.runbook_as_tool(
            name="triage",
            description="Posture of every host.",
            procedure=self.procedure,
            result_kind="verdict/posture",
            rules=self.rules,
            verdicts=rb.Verdicts(decider="Posture"),
            composed_of=["hosts"],
            redact=self.redact,
        )
        return rb.Toolbox([hosts, triage])

    def procedure(self, tools):
        async def inventory(scope):
            scope["rows"] = (await tools.call("hosts", {}))["result"]["rows"]

        def stale(scope):
            asked = f"is {scope['host']} really stale?"
            scope["sure"] = rb.interrupt(scope, asked) if self.asks else "yes"

        def collect(scope):
            scope["verdicts"] = [
                {"host": slot.item["host"], "verdict": slot.branch, "sure": slot.value.get("sure")}
                for slot in scope["slots"]
            ]

        each = (
            rb.flow_chart("host", lambda s: s.update(s.args["item"]), id="load")
            .add_decider("Posture", rules=self.rules, id="posture")
            .branch("stale", stale)
            .branch("fresh", lambda scope: None)
            .end()
            .build()
        )
        return (
            rb.flow_chart("triage", inventory, id="inventory")
            .add_parallel_for_each(
                "Each host",
                id="each",
                items=lambda scope: scope["rows"],
                branch=each,
                max_branches=9,
                into="slots",
                subject="host",
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )


def paused(box, **options):
    with pytest.raises(Paused) as caught:
        box.call_sync("triage", **options)
    return json.loads(json.dumps(caught.value.checkpoint))


def test_the_answers_finish_the_call_to_a_full_envelope_in_another_process():
    first, second, third = Estate(), Estate(), Estate()
    checkpoint = paused(first.box())
    assert checkpoint["pause"]["reason"] == "is b really stale?"
    with pytest.raises(Paused, match="is c really stale") as caught:
        second.box().resume_sync(checkpoint, "yes")
    envelope = third.box().resume_sync(json.loads(json.dumps(caught.value.checkpoint)), "no")
    assert [tuple(row.values()) for row in envelope["result"]["verdicts"]] == [
        ("a", "fresh", None),
        ("b", "stale", "yes"),
        ("c", "stale", "no"),
    ]
    # What was fetched before the pause is not fetched again, and its coverage still counts.
    assert (first.calls, second.calls, third.calls) == (1, 0, 0)
    assert envelope.ledger.checked[0].what == "the inventory"
    assert [item.what for item in envelope.ledger.cannot_cover] == ["tapes"]


def test_the_walk_covers_both_parts_and_says_so():
    checkpoint = paused(Estate().box())
    box = Estate().box()
    with pytest.raises(Paused) as caught:
        box.resume_sync(checkpoint, "yes")
    envelope = box.resume_sync(caught.value.checkpoint, "no")
    walk = envelope["result"]["walk"]
    assert (walk["walk_segment"], walk["complete"]) == ("full", True)
    rows = [(row.type, row.runtime_stage_id) for row in envelope.walk.rows]
    assert rows[0] == ("stage", "inventory#0")
    assert [row for row in rows if row[0] in ("pause", "resume")] == [
        ("pause", "each~1/stale#2"),
        ("resume", "each~1/stale#3"),
        ("pause", "each~2/stale#2"),
        ("resume", "each~2/stale#3"),
    ]
    record = box.artifacts.get_sync(walk["ref"])
    assert len(json.loads(record.data)) == len(rows) == walk["total"]


def test_verdicts_and_meanings_are_those_of_a_run_that_never_paused():
    straight = Estate(asks=False).box().call_sync("triage")
    box = Estate().box()
    with pytest.raises(Paused) as caught:
        box.resume_sync(paused(box), "yes")
    resumed = box.resume_sync(caught.value.checkpoint, "yes")
    assert resumed["result"]["verdicts"] == straight["result"]["verdicts"]
    assert resumed["result"]["verdict_meanings"] == straight["result"]["verdict_meanings"]
    assert resumed.ledger.not_checked == straight.ledger.not_checked


def test_a_paused_runbook_says_how_far_it_came():
    box = Estate().box()
    paused(box)
    run = box.last_run
    assert run.status == "paused"
    assert "is b really stale?" in str(run)
    assert [slot.status for slot in run.slots("each")] == ["ok", "not_reached", "not_reached"]


def test_secrets_of_the_first_part_stay_hidden_in_the_answer():
    policy = {"keys": ["host"]}
    box = Estate(redact=policy).box()
    with pytest.raises(Paused) as caught:
        box.resume_sync(paused(box), "token-of-the-answer")
    assert "really stale" in str(caught.value)
    envelope = box.resume_sync(caught.value.checkpoint, "no")
    assert {row["host"] for row in envelope["result"]["verdicts"]} == {"[REDACTED]"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tool": "other"}, None),
        ({"format": "runbook_nb/checkpoint/1"}, "bad_checkpoint"),
        ({"structure": "sha-256:0"}, "other_chart"),
        ({"record": {"format": "x"}}, "bad_checkpoint"),
        ({"record": None}, "bad_checkpoint"),
        ({"place": {}}, "bad_checkpoint"),
        ({"calls": 7}, "bad_checkpoint"),
        ({"calls": [{"tool": 7}]}, "bad_checkpoint"),
        ({"undeclared": [["a"]]}, "bad_checkpoint"),
    ],
)
def test_a_damaged_checkpoint_is_refused_before_anything_runs(change, code):
    estate = Estate()
    box = estate.box()
    checkpoint = {**paused(box), **change}
    estate.calls = 0
    with pytest.raises((CheckpointError, ToolRefused)) as caught:
        box.resume_sync(checkpoint, "yes")
    assert code is None or caught.value.code == code
    assert estate.calls == 0


def test_a_checkpoint_of_one_tool_does_not_resume_another():
    box = Estate().box()
    checkpoint = paused(box)
    other = rb.runbook_as_tool(
        name="other",
        description="Another.",
        procedure=lambda tools: rb.flow_chart("o", lambda s: None, id="o").build(),
        result_kind="report/other",
    )
    box.add(other)
    with pytest.raises(CheckpointError) as caught:
        box.resume_sync(checkpoint, "yes", tool="other")
    assert caught.value.code == "other_tool"


def test_a_flowchart_tool_is_resumed_to_its_text():
    chart = rb.flow_chart("ask", lambda s: s.set("said", rb.interrupt(s, "go?")), id="a").build()
    tool = rb.flowchart_as_tool(name="ask", description="Asks.", flowchart=chart)
    box = rb.Toolbox([tool])
    with pytest.raises(Paused) as caught:
        box.call_sync("ask")
    assert box.resume_sync(caught.value.checkpoint, "yes") == '{"said":"yes"}'
