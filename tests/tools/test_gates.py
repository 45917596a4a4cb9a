from __future__ import annotations

import pytest

from runbook_nb.errors import Paused, RunCancelled, ToolRefused
from runbook_nb.tools import Toolbox


def _refusal(box, args=None) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        box.call_sync("t", args)
    return caught.value


async def _later(answer):
    return answer


class TestPermission:
    def test_only_true_is_a_yes(self, make):
        for answer in (False, None, 1, "because", {}, ""):
            box = Toolbox([make()], permit=lambda tool, args, a=answer: a)
            assert _refusal(box).code == "not_permitted"
        assert Toolbox([make()], permit=lambda tool, args: True).call_sync("t")

    def test_may_be_async_and_sees_tool_and_arguments(self, make):
        seen = []

        def permit(tool, args):
            seen.append((tool.name, args))
            return _later(True)

        Toolbox([make()], permit=permit).call_sync("t", {"a": 1})
        assert seen == [("t", {"a": 1})]

    def test_a_text_says_why(self, make):
        error = _refusal(Toolbox([make()], permit=lambda tool, args: "outside office hours"))
        assert str(error) == "the call of 't' is not permitted: outside office hours"
        assert error.facts == {"tool": "t", "reason": "outside office hours"}

    def test_forgetting_to_answer_is_a_no_that_says_so(self, make):
        assert "NoneType, not True" in str(
            _refusal(Toolbox([make()], permit=lambda tool, args: None))
        )

    def test_a_failing_judge_closes_the_gate_and_is_the_cause(self, make):
        def permit(tool, args):
            raise LookupError("no roles")

        error = _refusal(Toolbox([make()], permit=permit))
        assert error.code == "not_permitted"
        assert "LookupError: no roles" in str(error)
        assert isinstance(error.__cause__, LookupError)

    def test_a_judge_cannot_change_the_arguments(self, make):
        def permit(tool, args):
            args.clear()
            return True

        box = Toolbox([make("t", lambda args: args)], permit=permit)
        assert box.call_sync("t", {"a": 1}) == {"a": 1}


class TestConsent:
    def _box(self, make, check_in="always", **more):
        self.ran = []
        return Toolbox([make("t", self.ran.append, check_in=check_in)], **more)

    def test_without_anybody_to_ask_the_call_is_refused(self, make):
        error = _refusal(self._box(make))
        assert error.code == "consent_required"
        assert "consent=" in str(error)
        assert self.ran == []

    def test_a_yes_lets_the_call_through(self, make):
        for consent in (lambda tool, args: True, lambda tool, args: _later(True)):
            box = self._box(make, consent=consent)
            box.call_sync("t")
            assert len(self.ran) == 1

    def test_anything_else_is_a_no(self, make):
        for answer in (False, None, "not now", 1):
            box = self._box(make, consent=lambda tool, args, a=answer: a)
            assert _refusal(box).code == "consent_declined"
            assert self.ran == []

    def test_a_tool_that_asks_for_none_asks_nobody(self, make):
        asked = []
        Toolbox([make()], consent=lambda tool, args: asked.append(1)).call_sync("t")
        assert asked == []

    def test_a_predicate_says_when(self, make):
        seen = []

        def only_production(args, ctx):
            seen.append(ctx.call_id)
            return args.get("cluster") == "production"

        box = self._box(make, only_production)
        box.call_sync("t", {"cluster": "test"}, call_id="tc-1")
        assert len(self.ran) == 1
        assert seen == ["tc-1"]
        assert _refusal(box, {"cluster": "production"}).code == "consent_required"

    def test_a_predicate_may_be_async(self, make):
        self._box(make, lambda args, ctx: _later(False)).call_sync("t")
        assert len(self.ran) == 1

    def test_a_predicate_that_forgets_to_answer_asks(self, make):
        assert _refusal(self._box(make, lambda args, ctx: None)).code == "consent_required"

    def test_a_predicate_that_fails_closes_the_gate(self, make):
        box = self._box(make, lambda args, ctx: args["missing"], consent=lambda tool, args: True)
        error = _refusal(box)
        assert error.code == "consent_required"
        assert "KeyError" in str(error)
        assert self.ran == []

    def test_a_cancellation_or_pause_of_the_asking_stays_what_it_is(self, make):
        for error in (RunCancelled("closed"), Paused("later", checkpoint={"q": 1})):

            def consent(tool, args, e=error):
                raise e

            with pytest.raises(type(error)) as caught:
                self._box(make, consent=consent).call_sync("t")
            assert caught.value is error


class TestCredentials:
    def _box(self, make, provider):
        self.ran = []

        def body(args, ctx):
            self.ran.append(ctx.credential)

        needs = {"credential": "pager", "scopes": ["read"], "mode": "user"}
        return Toolbox([make("t", body, needs=needs)], credentials=provider)

    def test_the_provider_sees_the_declared_need(self, make):
        seen = []

        def provider(need):
            seen.append(need)
            return {"status": "issued", "credential": "tok"}

        self._box(make, provider).call_sync("t")
        assert seen == [{"credential": "pager", "scopes": ["read"], "mode": "user"}]
        assert self.ran == ["tok"]

    def test_an_answer_may_be_an_object(self, make):
        class Issued:
            status = "issued"
            credential = "tok"

        self._box(make, lambda need: Issued()).call_sync("t")
        assert self.ran == ["tok"]

    def test_an_answer_without_the_key_is_handed_over_whole(self, make):
        answer = {"status": "issued", "token": "x"}
        self._box(make, lambda need: answer).call_sync("t")
        assert self.ran == [answer]

    def test_without_a_provider_the_call_is_refused(self, make):
        error = _refusal(self._box(make, None))
        assert error.code == "credential_not_issued"
        assert error.facts["status"] == "no provider"
        assert self.ran == []

    def test_a_failing_provider_is_named_by_class_since_its_words_may_hold_the_secret(self, make):
        def provider(need):
            raise OSError("token s3cr3t-42 rejected")

        error = _refusal(self._box(make, provider))
        assert "OSError" in str(error)
        assert "s3cr3t" not in str(error)
        assert "s3cr3t" not in str(error.facts)

    def test_a_tool_that_needs_nothing_asks_nobody(self, make):
        asked = []
        Toolbox([make()], credentials=asked.append).call_sync("t")
        assert asked == []

    def test_a_long_status_is_shown_cut(self, make):
        error = _refusal(self._box(make, lambda need: {"status": "x" * 5000}))
        assert len(str(error)) < 600
