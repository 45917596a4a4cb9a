"""Cases 128 to 133: absences, errors, pauses, and that one call leaves nothing for the next."""

from __future__ import annotations

import asyncio

import pytest

import runbook_nb as rb
from runbook_nb.errors import Paused, RunCancelled


def test_case_128_an_absence_is_the_answer_untouched_and_nothing_is_filed(call):
    absence = rb.absent(
        "rows", checked=["the store"], try_instead_tool={"tool": "inv"}, not_checked=["tapes"]
    )
    store = rb.InMemoryArtifacts()
    found = call(answer=absence, artifacts=store, walk={"recording": True})
    assert found is absence
    assert found["af_absent"] is True
    assert found["try_instead_tool"] == {"tool": "inv"}
    assert "af_coverage" not in found
    assert len(call.box.artifacts.list_sync().artifacts) == 0


def test_case_129_an_error_leaves_as_it_is_with_the_run_so_far(kit):
    error = RuntimeError("stage blew up")

    def stage(scope):
        scope["seen"] = 1
        raise error

    box = rb.Toolbox([kit.define(stage)])
    with pytest.raises(RuntimeError) as caught:
        box.call_sync("restart_probe")
    assert caught.value is error
    assert error.run.status == "failed"
    assert error.run is box.last_run


def test_case_129_an_error_that_brings_its_own_run_is_no_trouble(kit):
    class Odd(RuntimeError):
        __slots__ = ()

        @property
        def run(self):
            return "a method of its own"

    def stage(scope):
        raise Odd("odd")

    with pytest.raises(Odd):
        rb.Toolbox([kit.define(stage, keep_record=True)]).call_sync("restart_probe")


def test_case_130_a_pause_is_an_error_with_its_checkpoint(kit):
    def stage(scope):
        scope["seen"] = 1
        rb.interrupt(scope, "restart it?", expects={"type": "boolean"})

    runbook = kit.define(stage, keep_record=True)
    box = rb.Toolbox([runbook])
    with pytest.raises(Paused, match=r"runbook_as_tool\(restart_probe\).*restart it\?") as caught:
        box.call_sync("restart_probe", call_id="c1")
    assert "toolbox.resume(error.checkpoint, answer)" in str(caught.value)
    assert caught.value.checkpoint["tool"] == "restart_probe"
    assert caught.value.run.status == "paused"
    assert box.last_run.status == "paused"
    assert rb.inner_runs_of(runbook).get("c1")["outcome"] == "paused"


def test_case_130_the_question_is_told_without_what_the_policy_hides(kit):
    def stage(scope):
        scope["token"] = "t0p-s3cret"
        rb.interrupt(scope, "use t0p-s3cret?")

    box = rb.Toolbox([kit.define(stage, redact={"keys": ["token"]})])
    with pytest.raises(Paused) as caught:
        box.call_sync("restart_probe")
    assert "t0p-s3cret" not in str(caught.value)
    assert caught.value.checkpoint["pause"]["reason"] == "use t0p-s3cret?"


def test_case_131_calls_leave_nothing_for_each_other(kit):
    seen = []

    def stage(scope):
        seen.append(scope.get("mark"))
        scope["mark"] = scope.args["n"]

    box = rb.Toolbox([kit.define(stage)])
    first, second = (box.call_sync("restart_probe", {"n": n}) for n in (1, 2))
    assert seen == [None, None]
    steps = [e["result"]["walk"]["steps_executed"] for e in (first, second)]
    assert steps == [1, 1]


def test_case_132_a_call_asked_to_end_is_cancelled(kit):
    entered = []
    stop = rb.Stop()
    stop.set("enough")
    box = rb.Toolbox([kit.define(entered.append)])
    with pytest.raises(RunCancelled, match="enough"):
        box.call_sync("restart_probe", signal=stop)
    assert entered == []
    assert box.last_run.status == "cancelled"


def test_case_132_cancelling_is_never_an_absence(kit):
    absence = rb.absent("rows", checked=["the store"])
    stop = rb.Stop()

    async def body(scope, tools):
        try:
            await tools.call("inv", {})
        except Exception:
            stop.set("enough")
            await asyncio.sleep(10)

    inv = rb.define_tool(name="inv", description="d", execute=lambda args: absence)
    box = rb.Toolbox([inv, kit.calling(body)])
    with pytest.raises(RunCancelled):
        box.call_sync("asker", signal=stop)


def test_case_133_the_toolbox_calls_the_inner_tool_once_and_tells_of_the_ledger(kit):
    events, calls = [], []

    def rows(args):
        calls.append(args)
        return rb.coverage({"rows": kit.ROWS}, checked=["the seeded inventory"])

    inventory = rb.define_tool(name="backup_inventory", description="d", execute=rows)
    box = rb.Toolbox([inventory, kit.triage()], observer=events.append)
    envelope = box.call_sync("backup_triage", {}, call_id="tc-1")
    assert len(calls) == 1
    [event] = [e for e in events if e["type"] == "tools.coverage_declared"]
    assert (event["tool"], event["call_id"]) == ("backup_triage", "tc-1")
    declared = event["declared"][0]
    assert envelope["af_coverage"]["checked"][0]["what"] in str(declared)


def test_recorders_see_every_run_and_cannot_disturb_it(kit, caplog):
    seen = []

    def broken(run):
        raise RuntimeError("recorder")

    def stage(scope):
        if scope.args.get("fail"):
            raise KeyError("x")

    box = rb.Toolbox([kit.define(stage, recorders=[broken, seen.append])])
    box.call_sync("restart_probe")
    with pytest.raises(KeyError):
        box.call_sync("restart_probe", {"fail": True})
    assert [run.status for run in seen] == ["ok", "failed"]
    assert "a recorder of restart_probe failed" in caplog.text


def test_a_runbook_inside_a_runbook_folds_its_ledger_and_its_stamp_upward(kit):
    """It has neither tools nor a store in there."""

    async def body(scope, tools):
        answer = await tools.call("restart_probe", {})
        scope["report"] = {"inner_note": answer["result"]["walk"]["note"]}

    inner = kit.define(lambda s: s.set("coverage", {"not_checked": ["tapes"]}))
    envelope = rb.Toolbox([inner, kit.calling(body)]).call_sync("asker", call_id="tc-1")
    assert "no artifact store" in envelope["result"]["inner_note"]
    ledger = envelope["af_coverage"]
    assert ledger["checked"][0]["what"] == "the declared procedure 'c' — 1 step(s) recorded"
    assert ledger["not_checked"] == [{"what": "tapes"}]
    assert envelope["result"]["af_provenance"] == {"tool": "asker", "toolCallId": "tc-1"}


def test_the_sync_door_works_inside_a_running_loop(call):
    async def main():
        return call()

    assert asyncio.run(main())["result"]["rows_total"] == 3


def test_the_async_door_gives_the_same_answer(call, kit):
    box = rb.Toolbox([kit.inventory(), kit.triage()], artifacts=None)
    answer = asyncio.run(box.call("backup_triage", {}, call_id="tc-1"))
    assert answer == call(artifacts=None)
