"""What a procedure went on without: failed sources, nameless subjects, time that ran out."""

from __future__ import annotations

import time

import pytest

import runbook_nb as rb

POSTURE = rb.RuleSet(
    "health-signal",
    "v1",
    [rb.Rule({"age_days": {"gt": 7}}, "unprotected", label="older than 7 days")],
    rb.Default("protected", label="within 7 days"),
)
ROWS = [{"cluster": "a", "age_days": 2}, {"cluster": "b", "age_days": 30}]


def runbook(first, **options):
    def procedure(tools):
        async def begin(scope):
            await first(scope, tools)

        return rb.flow_chart("p", begin, id="begin").build()

    return rb.runbook_as_tool(name="survivor", description="d", procedure=procedure, **options)


def not_checked(envelope):
    return [item.what for item in envelope.ledger.not_checked]


class TestFailedSources:
    @staticmethod
    def answer(catching=True):
        @rb.tool
        def advisories():
            """Known advisories."""
            raise ConnectionError("feed down")

        async def first(scope, tools):
            for _ in range(2):
                try:
                    await tools.call("advisories")
                except ConnectionError:
                    if not catching:
                        raise
            scope["report"] = {"advisories": 0}

        return rb.Toolbox([advisories, runbook(first, composed_of=["advisories"])])

    def test_a_failure_that_was_caught_is_ground_not_checked(self):
        envelope = self.answer().call_sync("survivor")
        (said,) = not_checked(envelope)
        assert "advisories" in said
        assert "2 calls" in said
        assert "1 not-checked item(s) declared" in envelope.ledger.sentence

    def test_a_failure_that_was_not_caught_leaves_as_it_is(self):
        with pytest.raises(ConnectionError, match="feed down"):
            self.answer(catching=False).call_sync("survivor")


class TestNamelessSubjects:
    def test_a_row_without_a_name_is_judged_and_spoken_of(self):
        rows = [*ROWS, {"cluster": None, "age_days": 1}]
        envelope = rb.triage(rows, POSTURE, subject="cluster", source="3 rows")
        assert len(envelope.verdicts) == 3
        assert any("have no name" in said for said in not_checked(envelope))

    def test_rows_with_names_are_not(self):
        envelope = rb.triage(ROWS, POSTURE, subject="cluster", source="2 rows")
        assert not_checked(envelope) == []


class TestRank:
    def test_a_word_that_is_no_verdict_is_refused_with_the_near_one(self):
        with pytest.raises(rb.errors.DefinitionError, match="did you mean 'unprotected'"):
            rb.triage(ROWS, POSTURE, subject="cluster", source="s", rank=["unprotekted"])


class TestLimits:
    @pytest.mark.parametrize("limits", [rb.Limits(seconds=0.01), {"seconds": 0.01}])
    def test_a_runbook_that_runs_too_long_gives_no_answer(self, limits):
        async def first(scope, tools):
            time.sleep(0.02)
            scope["a"] = 1

        def procedure(tools):
            async def begin(scope):
                await first(scope, tools)

            chart = rb.flow_chart("p", begin, id="begin")
            return chart.add_function("Next", lambda scope: None, id="next").build()

        tool = rb.runbook_as_tool(name="slow", description="d", procedure=procedure, limits=limits)
        box = rb.Toolbox([tool])
        with pytest.raises(rb.errors.LimitReached, match="'p' ran longer"):
            box.call_sync("slow")
        assert box.last_run.status == "limited"

    def test_an_unknown_limit_is_refused_when_declared(self):
        async def first(scope, tools):
            """Do nothing."""

        with pytest.raises(rb.errors.DefinitionError, match="did you mean 'seconds'"):
            runbook(first, limits={"second": 1})


class TestDeciderPasses:
    def test_rows_no_decider_stands_behind_are_not_said_to_be_judged(self):
        async def first(scope, tools):
            scope["verdicts"] = [{"subject": "a", "verdict": "fine"}]

        box = rb.Toolbox([runbook(first, result_kind="verdict/x")])
        said = box.call_sync("survivor").ledger.checked[-1].why
        assert said == "1 row(s) written by the procedure, 0 decider passes"

    def test_rows_behind_which_a_decider_stands_are(self):
        envelope = rb.triage(ROWS, POSTURE, subject="cluster", source="2 rows")
        assert envelope.ledger.checked[-1].why == "2 row(s), one decider pass per row"
