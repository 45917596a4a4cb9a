from __future__ import annotations

import json

import pytest
from hand_events import NIST, book, probes, step

import runbook_nb as rb
from runbook_nb._view import STEP_ROLES
from runbook_nb.errors import LimitReached, PlaybookDefinitionError, ToolRefused
from runbook_nb.playbooks import PlaybookEnforcer
from runbook_nb.playbooks.account import account_of, joined_account
from runbook_nb.playbooks.procedure import PlaybookProcedure
from runbook_nb.playbooks.run import PlaybookRun
from runbook_nb.playbooks.told import Told
from runbook_nb.record.procedure import is_procedure
from runbook_nb.record.steps import STEP_VERDICTS


def call(enforcer, tool, outcome="ok", **arguments):
    ticket = enforcer.admit(tool, arguments)
    if ticket.allowed:
        error = "TimeoutError: no answer" if outcome == "error" else None
        enforcer.settle(ticket, outcome, error=error)


def halfway(turn):
    """Do what leaves something of every kind undone."""
    enforcer = turn.enforcer
    call(enforcer, "query_siem", index="alert")
    call(enforcer, "enrich_indicator", q="indicator")
    call(enforcer, "delete_mailbox")
    call(enforcer, "isolate_host", "error", host="web-1", token="tk-48151623")
    enforcer.admit("isolate_host", {"host": "web-2"})


def tool_of(drive, playbook=NIST, **more):
    options = {"name": "respond", "description": "Respond to an alert."}
    return rb.runbook_as_tool(
        **options, **more, procedure=lambda tools: playbook.procedure(drive, tools=tools)
    )


@pytest.fixture(scope="module")
def envelope():
    return tool_of(halfway).execute_sync({"alert": 7})


def test_a_playbook_with_a_driver_is_a_procedure():
    made = NIST.procedure(halfway)
    assert is_procedure(made)
    assert (made.name, made.structure) == ("nist-800-61-ir", NIST.structure)
    assert not is_procedure(NIST)


def test_a_turn_under_a_playbook_ends_in_an_envelope(envelope):
    result = envelope["result"]
    assert [(row["step"], row["verdict"]) for row in result["verdicts"]] == [
        ("detection", "completed"),
        ("analysis", "closed short"),
        ("notify", "skipped"),
        ("containment", "not finished"),
        ("recovery", "not reached"),
        ("lessons", "not reached"),
    ]
    assert result["verdict_meanings"] == STEP_VERDICTS
    assert (result["outcome"], result["policy"]) == ("incomplete", "safe")
    assert (result["calls"], result["calls_refused"], result["deviations"]) == (4, 1, 2)
    assert isinstance(envelope.run, PlaybookRun)
    assert envelope.run.raw[0] == {"alert": 7}
    assert envelope.walk.steps_executed == 4


def test_what_was_left_undone_is_not_checked_ground(envelope):
    told = {item.what: item.why for item in envelope.ledger.not_checked}
    assert told["step 'recovery': nobody came to it"] == (
        "no call of restore_host and watch_host succeeded"
    )
    assert "step 'containment': it was begun and is not closed" in told
    assert "step 'analysis': it was closed without all that it asks for" in told
    assert told["evidence 'whois' of step 'analysis'"] == "no call that counts as evidence has it"
    assert told["what 'delete_mailbox' would have done in step 'notify': 1 call refused"] == (
        "not expected in this step"
    )
    assert "what 'isolate_host' would have answered in step 'containment': 1 call failed" in told
    assert "what came of 'isolate_host' in step 'containment': 1 call not settled" in told
    checked = [item.what for item in envelope.ledger.checked]
    assert checked[0] == "step 'detection'"
    assert "step 'analysis'" not in checked


@pytest.mark.parametrize(
    ("kind", "told"),
    [("approval", "it waits for an approval"), ("manual", "it waits for a person to close it")],
)
def test_an_answer_says_that_a_person_is_due(kind, told):
    steps = [step("a", tools=["t"]), step("sign", kind=kind), step("b", tools=["u"])]
    due = book(*steps, step("c", kind=kind))

    def until(*tools):
        def drive(turn):
            for tool in tools:
                call(turn.enforcer, tool)

        return tool_of(drive, due).execute_sync({})

    answer = until("t")
    whats = [item.what for item in answer.ledger.not_checked]
    assert f"step 'sign': {told}" in whats
    assert "step 'c': nobody came to it" in whats
    assert json.loads(answer.to_json())["result"]["waits"] == f"step 'sign': {told}"
    assert answer.verify().ok
    before = until()
    assert "waits" not in json.loads(before.to_json())["result"]
    assert "step 'sign': nobody came to it" in [one.what for one in before.ledger.not_checked]


def test_a_call_refused_early_and_done_later_is_told_as_both():
    def drive(turn):
        for tool in ("u", "v", "t", "u"):
            call(turn.enforcer, tool)
        turn.enforcer.admit("w")
        turn.enforcer.approve("sign", by="ana")
        call(turn.enforcer, "w")

    steps = [step(name, tools=[tool]) for name, tool in (("a", "t"), ("b", "u"))]
    answer = tool_of(drive, book(*steps, step("sign", tools=["w"], kind="approval"))).execute_sync(
        {}
    )
    checked = {item.what: item.why for item in answer.ledger.checked}
    lost = [item.what for item in answer.ledger.not_checked]
    assert checked["'u', refused early in step 'a' (1 call)"] == (
        "it was called with success after that, in step 'b'"
    )
    assert checked["'w', refused early in step 'sign' (1 call)"] == (
        "it was called with success after that, in step 'sign'"
    )
    assert lost == ["what 'v' would have done in step 'a': 1 call refused"]
    assert answer.verify().ok


def test_a_call_refused_after_it_was_done_is_not_told_as_refused_early():
    def drive(turn):
        for tool in ("u", "u", "t"):
            call(turn.enforcer, tool)

    steps = [step(name, tools=[tool]) for name, tool in (("a", "t"), ("b", "u"))]
    answer = tool_of(drive, book(*steps, strict_sequence=False)).execute_sync({})
    assert not [item.what for item in answer.ledger.checked if "refused" in item.what]
    lost = [item.what for item in answer.ledger.not_checked]
    assert lost == ["what 'u' would have done in step 'a': 1 call refused"]


def test_rows_of_a_driver_that_contradict_the_record_are_told_in_the_answer_itself():
    def drive(turn):
        call(turn.enforcer, "t")
        return {
            "verdicts": [
                {"step": "a", "verdict": "completed"},
                {"step": "b", "verdict": "completed"},
                {"step": "c", "verdict": "fine as far as it goes"},
                {"step": "elsewhere", "verdict": "completed"},
                {"verdict": "completed"},
            ]
        }

    steps = [step(name, tools=[tool]) for name, tool in (("a", "t"), ("b", "u"), ("c", "v"))]
    answer = tool_of(drive, book(*steps)).execute_sync({})
    told = {item.what: item.why for item in answer.ledger.not_checked}
    said = [what for what in told if what.startswith("the rows do not match the record: step")]
    assert said == ["the rows do not match the record: step 'b' is told as 'completed'"]
    assert told[said[0]] == "the record has it as 'not reached'; the rows are the driver's own"


def test_a_stuck_step_says_why():
    def drive(turn):
        for _ in range(3):
            call(turn.enforcer, "t", "error")

    made = book(step("a", tools=["t"], max_tool_calls=3))
    answer = rb.runbook_as_tool(
        name="r", description="R.", procedure=lambda tools: made.procedure(drive, policy="compat")
    ).execute_sync({})
    row = answer["result"]["verdicts"][0]
    assert row["verdict"] in ("stuck", "not finished")
    assert answer["result"]["policy"] == "compat"


def test_the_envelope_verifies_and_a_changed_one_does_not(envelope):
    checked = envelope.verify()
    assert checked.ok
    frame = checked.to_frame()
    told = dict(zip(frame.iloc[:, 0], frame.iloc[:, 1], strict=True))
    assert told["row.verdict[step=recovery]"] == "confirmed"
    assert told["ledger.not_checked[0]"] == "confirmed"
    assert told["report[outcome]"] == "confirmed"


@pytest.mark.parametrize("part", ["row", "ledger", "report"])
def test_what_is_changed_is_contradicted_by_the_record(part):
    answer = tool_of(halfway).execute_sync({})
    data = answer.to_dict()
    if part == "row":
        data["result"]["verdicts"][4]["verdict"] = "completed"
    elif part == "ledger":
        del data["af_coverage"]["not_checked"][3]
    else:
        data["result"]["outcome"] = "pass"
    forged = type(answer).live(data, dossier=lambda: answer.dossier, run=answer.run, artifacts=None)
    assert forged.verify().contradicted


def test_the_envelope_travels_and_compares(envelope):
    back = rb.Envelope.from_dict(json.loads(json.dumps(envelope.to_dict())))
    assert back["result"]["verdicts"] == envelope["result"]["verdicts"]
    assert not back.verify().contradicted
    more = tool_of(lambda turn: (halfway(turn), turn.enforcer.report())[0]).execute_sync({})
    assert "no verdict changed" in repr(envelope.compare(more))
    less = tool_of(lambda turn: call(turn.enforcer, "query_siem", index="alert")).execute_sync({})
    assert "of 6 verdicts changed" in repr(envelope.compare(less))


def test_what_the_driver_gives_joins_the_answer():
    answer = tool_of(lambda turn: {"report": {"ticket": "T-1"}, "coverage": {"checked": ["logs"]}})
    answer = answer.execute_sync({})
    assert answer["result"]["ticket"] == "T-1"
    assert answer.ledger.checked[0].what == "logs"
    assert joined_account({"report": {"a": 1}}, 7)["report"] == {"a": 1, "answer": 7}
    rows = joined_account({"verdicts": []}, {"verdicts": [{"verdict": "x"}]})["verdicts"]
    assert rows == [{"verdict": "x"}]


def test_what_was_counted_is_not_for_the_driver_to_say():
    said = {"outcome": "pass", "calls": 99, "policy": "compat", "ticket": "T-1"}
    result = tool_of(lambda turn: {"report": said}).execute_sync({})["result"]
    assert (result["outcome"], result["calls"], result["policy"]) == ("incomplete", 0, "safe")
    assert result["ticket"] == "T-1"


def test_what_was_done_before_a_plan_was_set_back_is_not_checked():
    def drive(turn):
        call(turn.enforcer, "delete_mailbox")
        turn.enforcer.reset()

    answer = tool_of(drive).execute_sync({})
    assert any("set back (1 time)" in item.what for item in answer.ledger.not_checked)
    assert "set back 1 time" in str(answer.run)
    assert not answer.verify().contradicted


def test_a_second_answer_of_one_plan_is_of_what_it_has_come_to_by_then():
    enforcer = PlaybookEnforcer.from_playbook(book(step("a", tools=["scan"])))
    ask = rb.runbook_as_tool(name="ask", description="Ask.", procedure=lambda tools: enforcer)
    assert ask.execute_sync({})["result"]["outcome"] == "incomplete"
    call(enforcer, "scan")
    assert ask.execute_sync({})["result"]["outcome"] == "pass"


def test_a_driver_may_be_async_and_call_other_tools():
    siem = rb.define_tool(name="query_siem", execute=lambda args: {"events": [args["index"]]})

    async def drive(turn):
        found = await turn.call("query_siem", {"index": "alert"})
        with pytest.raises(ToolRefused) as refused:
            await turn.call("rm", {})
        assert refused.value.code == "unexpected_tool"
        return {"report": {"events": found["events"]}}

    respond = tool_of(drive, composed_of=["query_siem", "rm"])
    gone = rb.define_tool(name="rm", execute=lambda args: "gone")
    answer = rb.Toolbox([siem, gone, respond]).call_sync("respond")
    assert answer["result"]["events"] == ["alert"]
    assert answer["result"]["verdicts"][0]["verdict"] == "completed"
    assert answer["result"]["calls_refused"] == 1


def test_without_tools_calling_one_says_what_to_write():
    async def drive(turn):
        await turn.call("query_siem")

    with pytest.raises(PlaybookDefinitionError, match="has no tools to call") as error:
        rb.runbook_as_tool(
            name="r", description="R.", procedure=lambda tools: NIST.procedure(drive)
        ).execute_sync({})
    assert "tools=tools" in str(error.value)


def test_a_driver_that_fails_leaves_the_record_so_far():
    def drive(turn):
        call(turn.enforcer, "query_siem", index="alert")
        raise OSError("the model is gone")

    with pytest.raises(OSError, match="the model is gone") as error:
        tool_of(drive).execute_sync({})
    run = error.value.run
    assert isinstance(run, PlaybookRun)
    assert (run.status, run.error["type"]) == ("failed", "OSError")
    assert run.state["detection"] == "completed"


def test_a_turn_may_take_no_longer_than_its_limit():
    import asyncio

    async def drive(turn):
        await asyncio.sleep(30)

    with pytest.raises(LimitReached) as error:
        tool_of(drive, limits={"seconds": 0.05}).execute_sync({})
    assert error.value.run.status == "limited"


def test_an_enforcer_that_was_driven_answers_too():
    enforcer = PlaybookEnforcer.from_playbook(NIST)
    call(enforcer, "query_siem", index="alert")
    options = {"name": "respond", "description": "Respond."}
    ask = rb.runbook_as_tool(**options, procedure=lambda tools: enforcer)
    first = ask.execute_sync({})
    assert first["result"]["verdicts"][0]["verdict"] == "completed"
    seen = len(enforcer.events)
    again = ask.execute_sync({})
    assert len(enforcer.events) == seen  # a finished one is not finished again
    assert again["result"]["verdicts"] == first["result"]["verdicts"]


def test_what_is_hidden_is_hidden_in_the_answer():
    answer = tool_of(halfway, redact={"keys": ["token"]}, walk={"recording": True})
    answer = answer.execute_sync({})
    everywhere = [json.dumps(answer.to_dict()), str(answer), answer.to_markdown(), str(answer.run)]
    assert not [text for text in everywhere if "tk-48151623" in text]


def test_a_declaration_may_say_itself_what_it_answers():
    kept = tool_of(halfway, result_kind="report/plain").execute_sync({})
    assert "verdicts" not in kept["result"]
    assert kept["result"]["outcome"] == "incomplete"


def test_what_drives_has_to_be_a_function():
    with pytest.raises(PlaybookDefinitionError, match="drive is str"):
        PlaybookProcedure(NIST, "go")  # type: ignore[arg-type]


def test_the_card_shows_steps_as_a_plan_does(envelope):
    card = envelope.view()
    assert [(badge.word, badge.role) for badge in card.badges] == [
        ("completed", "completed"),
        ("closed short", "stuck"),
        ("skipped", "skipped"),
        ("not finished", "active"),
        ("not reached", "not_reached"),
    ]
    assert tuple(STEP_ROLES) == tuple(STEP_VERDICTS)
    table = next(one.parts[0] for one in card.sections if one.label == "Verdicts")
    assert "decided by" not in [column.head for column in table.columns]


def test_the_account_of_a_plan_that_went_well_leaves_nothing_open():
    made = book(step("a", tools=["t"], required_probes=probes("x")))
    enforcer = PlaybookEnforcer.from_playbook(made)
    call(enforcer, "t", q="x")
    account = account_of(Told.of_run(enforcer.run))
    assert account["coverage"]["not_checked"] == []
    assert account["coverage"]["checked"] == [
        {
            "what": "step 'a'",
            "why": "closed by its calls; 1 of 1 call succeeded, 1 of 1 probe matched",
        }
    ]
    assert account == enforcer.run.account
