"""A branch of a fork that failed is said in the ledger: the run goes on without it."""

from __future__ import annotations

import pytest

import runbook_nb as rb


def envelope_of(*, fail_fast=False, loops=0, redact=None):
    def look(scope):
        scope["token"] = "hunter-2-token"
        raise ValueError("no route to hunter-2-token")

    def again(scope):
        scope["n"] = scope.get("n", 0) + 1
        return "again" if scope["n"] <= loops else "done"

    def procedure(tools):
        return (
            rb.flow_chart("t", lambda scope: None, id="start")
            .add_fork("Look twice", id="fork", fail_fast=fail_fast)
            .branch("here", lambda scope: 1)
            .branch("there", look)
            .end()
            .add_decider("Again?", again, id="again?")
            .branch("again", lambda scope: None, loop_to="fork")
            .branch("done", lambda scope: scope.set("report", {"n": 1}))
            .end()
            .build()
        )

    runbook = rb.runbook_as_tool(
        name="look",
        description="Looks.",
        procedure=procedure,
        result_kind="report/look",
        redact=redact,
    )
    return rb.Toolbox([runbook]).call_sync("look")


def gaps(envelope):
    return [(item.what, item.why) for item in envelope.ledger.not_checked]


def test_a_failed_branch_is_ground_not_checked_with_its_reason():
    assert gaps(envelope_of()) == [
        (
            "what branch there of Look twice would have found: it failed",
            "ValueError: no route to hunter-2-token in stage 'there'",
        )
    ]


def test_several_failures_of_one_branch_are_one_entry_with_their_number():
    ((what, _),) = gaps(envelope_of(loops=2))
    assert what.endswith("it failed, 3 times")


def test_the_reason_is_served():
    ((_, why),) = gaps(envelope_of(redact={"keys": ["token"]}))
    assert why == "ValueError: no route to [REDACTED] in stage 'there'"


def test_with_fail_fast_there_is_no_answer_at_all():
    with pytest.raises(ValueError, match="no route"):
        envelope_of(fail_fast=True)
