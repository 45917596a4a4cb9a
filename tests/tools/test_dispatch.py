from __future__ import annotations

import asyncio
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb._text import MISSING
from runbook_nb.coverage import absent, coverage
from runbook_nb.errors import ArtifactError, DefinitionError, RunSignal, ToolRefused
from runbook_nb.tools import (
    InnerCallRecord,
    InnerDispatch,
    RunbookAbsenceSignal,
    Session,
    ToolDispatch,
    absence_signal_of,
    define_tool,
    probe_dispatch,
    recording_dispatch,
)

NOTHING = absent("jobs", checked=["the queue"])


def _inner(*tools, **more):
    return InnerDispatch(
        {tool.name: tool for tool in tools}, call_id="tc-outer", session=Session("c"), **more
    )


def _call(dispatch, name, args=None, **more):
    return asyncio.run(dispatch.call(name, {} if args is None else args, **more))


def _refusal(dispatch, name, args=None) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        _call(dispatch, name, args)
    return caught.value


class TestInnerDispatch:
    def test_knows_the_catalogue_and_nothing_else(self, make):
        dispatch = _inner(make("inv"))
        assert isinstance(dispatch, ToolDispatch)
        assert dispatch.has("inv")
        assert not dispatch.has("other")

    def test_an_unknown_name_is_refused_naming_it_and_what_cannot_be_seen(self, make):
        error = _refusal(_inner(make("inventory")), "inventry")
        assert error.code == "unknown_tool"
        assert "'inventry'" in str(error)
        assert "provider" in str(error)
        assert "did you mean 'inventory'?" in str(error)

    def test_a_tool_that_asks_a_person_is_refused_and_its_body_never_runs(self, make):
        ran = []
        tool = make("inv", lambda args: ran.append(1), check_in="always")
        error = _refusal(_inner(tool), "inv")
        assert error.code == "inner_check_in"
        assert "'inv'" in str(error)
        assert "cannot pause" in str(error)
        assert "consent" in str(error)
        assert ran == []

    def test_a_tool_that_wants_artifacts_is_refused_by_name(self, make):
        ran = []
        schema = {"type": "object", "properties": {"d": {"type": "string"}}}
        tool = make("inv", lambda args: ran.append(1), input_schema=schema, wants={"d": "k"})
        error = _refusal(_inner(tool), "inv")
        assert error.code == "inner_wants"
        assert "'inv'" in str(error)
        assert "not resolved" in str(error)
        assert ran == []

    def test_consent_is_judged_before_wanted_artifacts_and_those_before_arguments(self, make):
        schema = {
            "type": "object",
            "properties": {"d": {"type": "string"}},
            "required": ["d"],
        }
        both = make("a", input_schema=schema, wants={"d": "k"}, check_in="always")
        wants = make("b", input_schema=schema, wants={"d": "k"})
        plain = make("c", input_schema=schema)
        dispatch = _inner(both, wants, plain)
        assert [_refusal(dispatch, name).code for name in "abc"] == [
            "inner_check_in",
            "inner_wants",
            "invalid_arguments",
        ]

    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            ({"status": "consent-required"}, "consent-required"),
            ({}, "no status"),
            ("token", "no status"),
            (None, "no status"),
            ({"status": True}, "no status"),
        ],
    )
    def test_any_status_but_issued_refuses_naming_tool_credential_and_status(
        self, make, answer, status
    ):
        ran = []
        tool = make("inv", lambda args: ran.append(1), needs={"credential": "pager"})
        error = _refusal(_inner(tool, credentials=lambda need: answer), "inv")
        assert error.code == "credential_not_issued"
        assert error.facts == {"tool": "inv", "credential": "pager", "status": status}
        assert all(said in str(error) for said in ("'inv'", "'pager'", status))
        assert ran == []

    def test_an_issued_credential_reaches_the_body(self, make):
        async def provider(need):
            return {"status": "issued", "credential": f"{need['credential']}-token"}

        tool = make("inv", lambda args, ctx: ctx.credential, needs={"credential": "pager"})
        assert _call(_inner(tool, credentials=provider), "inv") == "pager-token"

    def test_the_inner_context_has_no_store_and_no_other_tools(self, make):
        def look(args, ctx):
            with pytest.raises(ArtifactError):
                ctx.artifacts.put_sync({"kind": "k", "mediaType": "m", "data": "x"})
            return [ctx.call_id, ctx.has_artifacts, ctx.tools, ctx.session.conversation]

        dispatch = _inner(make("inv", look))
        assert _call(dispatch, "inv") == ["tc-outer#inner-1", False, None, "c"]
        assert _call(dispatch, "inv")[0] == "tc-outer#inner-2"

    def test_refused_calls_use_up_no_number(self, make):
        dispatch = _inner(make("ok", lambda args, ctx: ctx.call_id), make("no", check_in="always"))
        for name in ("unknown", "no"):
            _refusal(dispatch, name)
        assert _call(dispatch, "ok") == "tc-outer#inner-1"

    def test_the_outer_stop_reaches_the_body_unless_the_call_brings_its_own(self, make):
        outer, own = Stop(), Stop()
        seen = []
        dispatch = _inner(make("inv", lambda args, ctx: seen.append(ctx.signal)), signal=outer)
        _call(dispatch, "inv")
        _call(dispatch, "inv", signal=own)
        assert seen[0] is outer
        assert seen[1] is own

    def test_progress_goes_on_under_the_inner_id(self, make):
        heard = []
        tool = make("inv", lambda args, ctx: ctx.progress(5))
        _call(_inner(tool, progress=lambda *told: heard.append(told)), "inv")
        assert heard == [("tc-outer#inner-1", "inv", 5)]

    def test_the_answer_comes_back_exactly_as_it_was_returned(self, make):
        ledger = coverage({"v": 1}, checked=["a"])
        for value in (NOTHING, ledger, None, {"a": 1}):
            assert _call(_inner(make("inv", lambda args, v=value: v)), "inv") is value

    def test_the_catalogue_is_that_of_the_beginning_of_the_outer_call(self, make):
        catalogue = {"a": make("a")}
        dispatch = InnerDispatch(catalogue, call_id="tc", session=Session("c"))
        catalogue["b"] = make("b")
        assert not dispatch.has("b")


class _Fake:
    """A delivered dispatch made of plain answers."""

    def __init__(self, **answers):
        self.answers = answers
        self.seen = []

    def has(self, name):
        return name in self.answers

    async def call(self, name, args=None, *, signal=None, allow_absent=False):
        self.seen.append((name, args, signal))
        answer = self.answers[name]
        if callable(answer):
            answer = answer(args)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        return answer


class TestRecordingDispatch:
    def test_without_a_delivered_dispatch_a_call_is_refused_and_nothing_recorded(self):
        recorded = recording_dispatch(None, "triage")
        assert not recorded.tools.has("inv")
        error = _refusal(recorded.tools, "inv")
        assert error.code == "no_dispatch"
        for said in ("'triage'", "'inv'", "no tool dispatch was delivered", "Toolbox", "context"):
            assert said in str(error)
        assert recorded.records == []
        assert recorded.remembered is None

    def test_asking_what_is_there_is_not_recorded(self):
        recorded = recording_dispatch(_Fake(inv=1), "triage")
        assert recorded.tools.has("inv")
        assert not recorded.tools.has("x")
        assert recorded.records == []

    def test_a_result_comes_back_as_the_same_object_and_is_recorded(self):
        answer = {"a": 1}
        recorded = recording_dispatch(_Fake(inv=answer), "triage")
        assert _call(recorded.tools, "inv", {"x": 1}) is answer
        assert recorded.records == [InnerCallRecord(tool="inv", outcome="ok", result=answer)]
        assert recorded.records[0].result is answer

    def test_arguments_and_stop_are_passed_on(self):
        fake, stop = _Fake(inv=1), Stop()
        recorded = recording_dispatch(fake, "triage")
        _call(recorded.tools, "inv", {"x": 1}, signal=stop)
        asyncio.run(recorded.tools.call("inv"))
        assert fake.seen == [("inv", {"x": 1}, stop), ("inv", {}, None)]

    def test_an_error_is_raised_unchanged_and_recorded_without_a_result(self):
        error = ValueError("boom")
        recorded = recording_dispatch(_Fake(inv=error), "triage")
        with pytest.raises(ValueError, match="boom") as caught:
            _call(recorded.tools, "inv")
        assert caught.value is error
        assert recorded.records == [InnerCallRecord(tool="inv", outcome="error")]
        assert recorded.records[0].result is MISSING

    def test_a_cancelled_call_is_recorded_as_an_error(self):
        async def forever():
            await asyncio.Event().wait()

        recorded = recording_dispatch(_Fake(inv=lambda args: forever()), "triage")

        async def main():
            task = asyncio.ensure_future(recorded.tools.call("inv", {}))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert recorded.records == []
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert [record.outcome for record in recorded.records] == ["error"]

    def test_an_absence_ends_the_run_with_a_signal(self):
        recorded = recording_dispatch(_Fake(inv=NOTHING), "triage")
        with pytest.raises(RunbookAbsenceSignal) as caught:
            _call(recorded.tools, "inv")
        assert caught.value.absence is NOTHING
        assert caught.value.tool == "inv"
        assert recorded.records == [InnerCallRecord(tool="inv", outcome="absent", result=NOTHING)]
        assert recorded.remembered is caught.value

    def test_an_absence_that_may_be_survived_comes_back_and_is_not_remembered(self):
        recorded = recording_dispatch(_Fake(inv=NOTHING), "triage")
        assert _call(recorded.tools, "inv", allow_absent=True) is NOTHING
        assert [record.outcome for record in recorded.records] == ["absent"]
        assert recorded.remembered is None

    @pytest.mark.parametrize("given", [1, "true", "yes", object(), [1]])
    def test_only_true_itself_lets_an_absence_be_survived(self, given):
        recorded = recording_dispatch(_Fake(inv=NOTHING), "triage")
        with pytest.raises(RunbookAbsenceSignal):
            _call(recorded.tools, "inv", allow_absent=given)

    def test_an_absence_inside_a_ledger_ends_the_run_with_the_ledger_kept(self):
        wrapped = coverage(NOTHING, not_checked=["the archive"])
        recorded = recording_dispatch(_Fake(inv=wrapped), "triage")
        with pytest.raises(RunbookAbsenceSignal) as caught:
            _call(recorded.tools, "inv")
        assert caught.value.absence is wrapped
        assert recorded.records[0].result is wrapped

    def test_what_only_looks_like_an_absence_is_a_result(self):
        for value in ({"af_absent": 1, "checked": ["a"]}, {"af_absent": True, "checked": []}):
            recorded = recording_dispatch(_Fake(inv=value), "triage")
            assert _call(recorded.tools, "inv") is value
            assert recorded.records[0].outcome == "ok"

    def test_an_absence_caught_by_the_author_is_still_remembered(self):
        recorded = recording_dispatch(_Fake(inv=NOTHING, other=1), "triage")

        async def stage():
            try:
                await recorded.tools.call("inv", {})
            except Exception:
                return await recorded.tools.call("other", {})

        assert asyncio.run(stage()) == 1
        assert recorded.remembered is not None
        assert recorded.remembered.absence is NOTHING

    def test_records_and_the_remembered_absence_follow_the_order_of_starting(self):
        other = absent("hosts", checked=["the register"])

        async def main():
            gates = {name: asyncio.Event() for name in "abc"}

            async def wait(name, value):
                await gates[name].wait()
                return value

            fake = _Fake(
                a=lambda args: wait("a", NOTHING),
                b=lambda args: wait("b", other),
                c=lambda args: wait("c", 3),
            )
            recorded = recording_dispatch(fake, "triage")
            tasks = [asyncio.ensure_future(recorded.tools.call(name, {})) for name in "abc"]
            for name in "cba":  # they end in the opposite order
                await asyncio.sleep(0)
                gates[name].set()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await asyncio.gather(*tasks, return_exceptions=True)
            return recorded

        recorded = asyncio.run(main())
        assert [record.tool for record in recorded.records] == ["a", "b", "c"]
        assert recorded.remembered.absence is NOTHING

    @given(st.permutations(range(5)))
    def test_whatever_the_timing_the_record_is_the_same(self, order):
        async def main():
            gates = [asyncio.Event() for _ in range(5)]

            async def wait(at):
                await gates[at].wait()
                return at

            fake = _Fake(inv=lambda args: wait(args["at"]))
            recorded = recording_dispatch(fake, "r")
            calls = [recorded.tools.call("inv", {"at": at}) for at in range(5)]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0)
            for at in order:
                gates[at].set()
                await tasks[at]
            return [record.result for record in recorded.records]

        assert asyncio.run(main()) == [0, 1, 2, 3, 4]

    def test_two_runs_share_nothing(self):
        fake = _Fake(inv=NOTHING)
        first, second = (recording_dispatch(fake, "r") for _ in range(2))
        with pytest.raises(RunbookAbsenceSignal):
            _call(first.tools, "inv")
        assert second.records == []
        assert second.remembered is None

    def test_wraps_what_a_toolbox_delivers(self, make):
        recorded = recording_dispatch(_inner(make("inv", lambda args, ctx: ctx.call_id)), "r")
        assert _call(recorded.tools, "inv") == "tc-outer#inner-1"


class TestTheSignal:
    def test_ends_a_run_as_absent(self):
        signal = RunbookAbsenceSignal(NOTHING, "inv")
        assert isinstance(signal, RunSignal)
        assert signal.run_status == "absent"
        assert "'inv'" in str(signal)

    def test_survives_being_sent_to_another_process(self):
        again = pickle.loads(pickle.dumps(RunbookAbsenceSignal({"af_absent": True}, "inv")))  # noqa: S301
        assert (again.absence, again.tool) == ({"af_absent": True}, "inv")
        assert absence_signal_of(again) is again

    def _wrapped(self, signal, times):
        error: BaseException = signal
        for n in range(times):
            outer = ValueError(f"layer {n}")
            outer.__cause__ = error
            error = outer
        return error

    def test_is_found_through_causes_eight_links_deep_and_no_deeper(self):
        signal = RunbookAbsenceSignal(NOTHING, "inv")
        assert absence_signal_of(signal) is signal
        assert absence_signal_of(self._wrapped(signal, 3)) is signal
        assert absence_signal_of(self._wrapped(signal, 8)) is signal
        assert absence_signal_of(self._wrapped(signal, 9)) is None

    def test_is_found_in_a_group_and_in_an_unsuppressed_context(self):
        signal = RunbookAbsenceSignal(NOTHING, "inv")
        assert absence_signal_of(ExceptionGroup("g", [KeyError("x"), signal])) is signal
        handling, instead = KeyError("while handling"), KeyError("instead")
        handling.__context__ = instead.__context__ = signal
        instead.__suppress_context__ = True
        assert absence_signal_of(handling) is signal
        assert absence_signal_of(instead) is None

    def test_is_known_by_its_marker_not_by_its_class(self):
        class Foreign(Exception):
            is_runbook_absence = True
            absence = NOTHING

        class Truthy(Exception):
            is_runbook_absence = 1
            absence = NOTHING

        class Hostile(Exception):
            @property
            def is_runbook_absence(self):
                raise RuntimeError("no")

        foreign = Foreign()
        assert absence_signal_of(foreign) is foreign
        assert absence_signal_of(Truthy()) is None
        assert absence_signal_of(Hostile()) is None
        assert absence_signal_of(KeyError("x")) is None


class TestTheProbe:
    def test_has_nothing_and_raises_at_once_when_called(self):
        probe = probe_dispatch("triage")
        assert not probe.has("inv")
        with pytest.raises(DefinitionError) as caught:
            probe.call("inv", {})
        for said in ("'triage'", "'inv'", "execute time", "stage functions"):
            assert said in str(caught.value)

    def test_raises_whatever_it_is_called_with(self):
        with pytest.raises(DefinitionError):
            probe_dispatch("triage").call("inv", {}, signal=None, allow_absent=True)


def test_a_hand_built_dispatch_is_as_good_as_ours():
    class Hand:
        def has(self, name):
            return True

        async def call(self, name, args=None, *, signal=None, allow_absent=False):
            return await define_tool(name="x", execute=lambda args: args).execute(args)

    assert isinstance(Hand(), ToolDispatch)
    recorded = recording_dispatch(Hand(), "r")
    assert _call(recorded.tools, "anything", {"a": 1}) == {"a": 1}


def test_the_doors_to_other_tools_print_without_an_address():
    seen = []

    async def look(ctx: rb.ToolContext):
        seen.append(ctx.tools)

    rb.Toolbox([rb.tool(look, name="look", description="Looks.")]).call_sync("look", {})
    assert repr(seen[0]) == "<InnerDispatch to 1 tool>"
    assert repr(rb.probe_dispatch("triage")) == "<stand-in for the tools of 'triage'>"
    made = rb.recording_dispatch(rb.probe_dispatch("triage"), "triage")
    assert repr(made.tools) == "<recording <stand-in for the tools of 'triage'>>"
    assert " at 0x" not in repr(rb.recording_dispatch(None, "triage").tools)
