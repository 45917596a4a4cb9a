from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace

import pytest

from runbook_nb._frozen import freeze
from runbook_nb._stop import Stop
from runbook_nb.artifacts import ArtifactScope, InMemoryArtifacts
from runbook_nb.coverage import absent, coverage, read_coverage_result
from runbook_nb.errors import ArtifactError, DefinitionError, Paused, RunCancelled, ToolRefused
from runbook_nb.tools import (
    CarriesTools,
    RunbookAbsenceSignal,
    Session,
    Toolbox,
    ToolContext,
    recording_dispatch,
    tool,
)

NOTHING = absent("jobs", checked=["the queue"])
WANTS = {
    "input_schema": {"type": "object", "properties": {"d": {"type": "string"}}},
    "wants": {"d": "dataset/rows"},
}


@dataclass
class Skill:
    name: str
    tools: list


def _refusal(box, name, args=None, **more) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        box.call_sync(name, args, **more)
    return caught.value


class TestBuilding:
    def test_two_tools_of_one_name_are_refused_naming_it(self, make):
        with pytest.raises(DefinitionError) as caught:
            Toolbox([make("a"), make("b"), make("a")])
        assert "two tools have the name 'a' (tools)" in str(caught.value)
        assert "toolbox.add" in str(caught.value)

    def test_the_same_tool_twice_in_one_list_is_refused_too(self, make):
        one = make("a")
        with pytest.raises(DefinitionError, match="two tools"):
            Toolbox([one, one])

    def test_a_skill_may_carry_a_registered_tool_but_not_another_of_its_name(self, make):
        one = make("a")
        assert len(Toolbox([one], skills=[Skill("s", [one, make("b")])])) == 2
        with pytest.raises(DefinitionError) as caught:
            Toolbox([one], skills=[Skill("s", [make("a")])])
        assert "tools and skill 's'" in str(caught.value)

    def test_a_skill_is_anything_with_a_name_and_tools(self, make):
        skill = Skill("s", [make("a")])
        assert isinstance(skill, CarriesTools)
        assert "a" in Toolbox(skills=[skill])

    def test_what_is_no_tool_is_refused_with_the_way_to_make_one(self, make):
        def plain() -> None:
            pass

        with pytest.raises(DefinitionError, match=r"plain is not a tool; decorate .*@rb\.tool"):
            Toolbox([plain])
        with pytest.raises(DefinitionError, match="3 is not a tool"):
            Toolbox([3])
        with pytest.raises(DefinitionError, match="put it in a list"):
            Toolbox(make("a"))

    @pytest.mark.parametrize(
        "more",
        [
            {"session": "c"},
            {"artifacts": "memory"},
            {"artifacts": InMemoryArtifacts},
            {"consent": "yes"},
            {"permit": True},
            {"credentials": {}},
            {"observer": []},
            {"providers": ["x"]},
            {"middleware": [None]},
        ],
        ids=str,
    )
    def test_an_option_of_the_wrong_kind_is_refused_by_name(self, more):
        with pytest.raises(DefinitionError) as caught:
            Toolbox(**more)
        assert caught.value.where == next(iter(more))

    def test_an_async_observer_is_refused(self):
        async def observer(event):
            pass

        with pytest.raises(DefinitionError, match="plain function"):
            Toolbox(observer=observer)

    def test_is_a_collection_of_its_tools(self, make):
        a, b = make("a"), make("b")
        box = Toolbox([a, b])
        assert (len(box), list(box), box.tools, box["a"]) == (2, [a, b], (a, b), a)
        assert "a" in box
        assert "c" not in box
        with pytest.raises(ToolRefused, match="no tool 'c'"):
            box["c"]


class TestIngredients:
    def test_a_renamed_ingredient_fails_the_build_naming_both(self, make):
        with pytest.raises(DefinitionError) as caught:
            Toolbox([make("inventory_v2"), make("triage", composed_of=["inventory"])])
        assert "composedOf ingredient 'inventory'" in str(caught.value)
        assert "triage" in str(caught.value)
        assert "did you mean 'inventory_v2'?" in str(caught.value)

    def test_the_order_of_registration_does_not_matter(self, make):
        triage, renamed = make("triage", composed_of=["renamed"]), make("renamed")
        assert len(Toolbox([triage, renamed])) == 2
        assert len(Toolbox([renamed, triage])) == 2

    def test_a_skill_may_carry_the_ingredient(self, make):
        triage = make("triage", composed_of=["inv"])
        assert len(Toolbox([triage], skills=[Skill("s", [make("inv")])])) == 2

    def test_a_tool_carried_by_a_skill_is_checked_too(self, make):
        skill = Skill("s", [make("triage", composed_of=["inv"])])
        with pytest.raises(DefinitionError, match="composedOf ingredient 'inv'"):
            Toolbox(skills=[skill])

    def test_with_a_provider_an_unknown_ingredient_is_a_warning(self, make):
        triage = make("triage", composed_of=["inv"])
        with pytest.warns(UserWarning, match="composedOf ingredient 'inv'") as caught:
            Toolbox([triage], providers=[list])
        assert "triage" in str(caught[0].message)
        assert caught[0].filename == __file__

    def test_every_missing_ingredient_is_said_at_once(self, make):
        with pytest.raises(DefinitionError) as caught:
            Toolbox([make("a", composed_of=["x", "y"]), make("b", composed_of=["z"])])
        assert [p.where for p in caught.value.problems] == ["a", "a", "b"]

    @pytest.mark.parametrize(
        ("declared", "said"),
        [
            ({"gates": True}, "may pause"),
            ({"check_in": "always"}, "asks a person"),
            (WANTS, "wants artifacts"),
        ],
    )
    def test_an_ingredient_that_an_inner_call_refuses_is_warned_about(self, make, declared, said):
        tools = [make("triage", composed_of=["inv"]), make("inv", **declared)]
        with pytest.warns(UserWarning, match=f"'inv' .*{said}"):
            Toolbox(tools)

    def test_an_ingredient_that_says_it_never_pauses_is_fine(self, make):
        Toolbox([make("triage", composed_of=["inv"]), make("inv", gates=False)])

    def test_wanting_artifacts_without_a_store_is_refused(self, make):
        with pytest.raises(DefinitionError, match="no store"):
            Toolbox([make("t", **WANTS)], artifacts=None)
        Toolbox([make("t", **WANTS)])


class TestAdding:
    def test_replaces_a_name_so_that_a_cell_can_run_again(self, make):
        box = Toolbox([make("a", lambda args: 1)])
        assert box.add(make("a", lambda args: 2)) is box
        box.add(make("b", lambda args: 3))
        assert (box.call_sync("a"), box.call_sync("b"), len(box)) == (2, 3, 2)

    def test_the_last_of_three_definitions_wins_and_nothing_doubles(self):
        box = Toolbox()
        for days in (7, 7, 14):

            @tool
            def stale(limit: int = days) -> int:
                "Stale."
                return limit

            box.add(stale)
        assert len(box) == 1
        assert box.call_sync("stale") == 14

    def test_checks_ingredients_again_and_changes_nothing_when_they_fail(self, make):
        box = Toolbox([make("inv"), make("triage", composed_of=["inv"])])
        before = box["triage"]
        with pytest.raises(DefinitionError, match="ingredient 'invent'"):
            box.add(make("triage", composed_of=["invent"]))
        assert box["triage"] is before
        with pytest.raises(DefinitionError, match="is not a tool"):
            box.add(lambda: 1)

    def test_warns_once_of_the_same_doubt(self, make, recwarn):
        with pytest.warns(UserWarning, match="may pause"):
            box = Toolbox([make("triage", composed_of=["inv"]), make("inv", gates=True)])
        box.add(make("other"))
        assert len(recwarn) == 0


class TestCalling:
    def test_gives_what_the_body_returned_as_it_is(self, make, inventory):
        for value in ({"a": 1}, None, [1], "text"):
            box = Toolbox([make("t", lambda args, v=value: v)])
            assert box.call_sync("t") is value
        assert Toolbox([inventory]).call_sync("inventory")["result"]["rows"]

    def test_an_absence_stays_the_absence(self, make):
        assert Toolbox([make("t", lambda args: NOTHING)]).call_sync("t") is NOTHING

    def test_an_unknown_name_is_refused_with_the_near_one(self, make):
        box = Toolbox([make("inventory"), make("other")])
        error = _refusal(box, "inventry")
        assert (error.code, error.facts) == ("unknown_tool", {"tool": "inventry"})
        assert "did you mean 'inventory'?" in str(error)
        assert "the tools are inventory and other" in str(_refusal(box, "zzz"))
        assert "the toolbox is empty" in str(_refusal(Toolbox(), "zzz"))
        assert _refusal(box, None).code == "unknown_tool"

    def test_arguments_are_judged_before_the_body(self, make):
        ran = []
        schema = {
            "type": "object",
            "properties": {"days": {"type": "integer"}},
            "required": ["days"],
        }
        box = Toolbox([make("t", ran.append, input_schema=schema)])
        error = _refusal(box, "t", {"days": "7"})
        assert error.code == "invalid_arguments"
        assert error.facts == {"tool": "t", "arguments": ["days"], "problems": 1}
        assert "days: must be integer, not string" in str(error)
        assert _refusal(box, "t", [1]).code == "invalid_arguments"
        assert ran == []

    def test_a_refusal_of_very_many_faults_says_how_many_it_shows(self, make):
        rows = {"type": "array", "items": {"type": "integer"}}
        schema = {"type": "object", "properties": {"rows": rows}}
        error = _refusal(Toolbox([make("t", input_schema=schema)]), "t", {"rows": ["x"] * 50})
        assert "20 of 50 problems are shown" in str(error)
        assert error.facts["problems"] == 50

    def test_the_context_names_call_session_and_store(self, make, counted_ids):
        def look(args, ctx):
            return [ctx.call_id, ctx.session.conversation, ctx.has_artifacts]

        box = Toolbox([make("t", look)], session=Session("c"))
        assert box.call_sync("t") == ["call_0000000001", "c", True]
        assert box.call_sync("t", call_id="tc-9")[0] == "tc-9"
        assert Toolbox([make("t", look)], artifacts=None).call_sync("t")[2] is False

    def test_a_blank_call_id_is_refused(self, make):
        with pytest.raises(DefinitionError, match="call id"):
            Toolbox([make("t")]).call_sync("t", call_id=" ")

    def test_the_stop_reaches_the_body(self, make):
        seen, stop = [], Stop()
        Toolbox([make("t", lambda args, ctx: seen.append(ctx.signal))]).call_sync("t", signal=stop)
        assert seen[0] is stop

    def test_a_function_is_not_started_when_the_stop_is_set(self):
        @tool
        def t() -> int:
            "d"
            return 1

        stop = Stop()
        stop.set()
        with pytest.raises(RunCancelled):
            Toolbox([t]).call_sync("t", signal=stop)

    def test_an_error_of_the_body_leaves_unchanged(self, make):
        error = KeyError("x")

        def broken(args):
            raise error

        with pytest.raises(KeyError) as caught:
            Toolbox([make("t", broken)]).call_sync("t")
        assert caught.value is error

    def test_the_callers_arguments_are_never_changed(self, make):
        given = {"a": 1}
        Toolbox([make("t", lambda args: args.clear())]).call_sync("t", given)
        assert given == {"a": 1}

    def test_the_last_run_is_kept_finished_or_not(self, make):
        def procedure(args, ctx):
            ctx.run_sink("the run")
            raise ValueError("stage failed")

        box = Toolbox([make("t", procedure)])
        assert box.last_run is None
        with pytest.raises(ValueError, match="stage failed"):
            box.call_sync("t")
        assert box.last_run == "the run"

    def test_the_run_of_an_inner_procedure_is_not_the_boxs(self, make):
        async def outer(args, ctx):
            ctx.run_sink("outer")
            await ctx.tools.call("inner", {})

        inner = make("inner", lambda args, ctx: ctx.run_sink("inner"))
        box = Toolbox([make("t", outer), inner])
        box.call_sync("t")
        assert box.last_run == "outer"


class TestInside:
    def test_a_body_calls_other_tools_through_its_context(self, make):
        async def outer(args, ctx):
            assert ctx.tools.has("inner")
            return [await ctx.tools.call("inner", {}), await ctx.tools.call("inner", {})]

        box = Toolbox([make("outer", outer), make("inner", lambda args, ctx: ctx.call_id)])
        assert box.call_sync("outer", call_id="tc-1") == ["tc-1#inner-1", "tc-1#inner-2"]

    def test_tools_of_skills_are_seen_inside_and_those_of_providers_are_not(self, make):
        async def outer(args, ctx):
            assert not ctx.tools.has("provided")
            return await ctx.tools.call(args["name"], {})

        box = Toolbox(
            [make("outer", outer)],
            skills=[Skill("s", [make("carried", lambda args: "carried")])],
            providers=[lambda: [make("provided", lambda args: "provided")]],
        )
        assert box.call_sync("outer", {"name": "carried"}) == "carried"
        assert box.call_sync("provided") == "provided"
        error = _refusal(box, "outer", {"name": "provided"})
        assert "provider" in str(error)

    def test_an_inner_call_has_no_tools_and_no_store(self, make):
        async def outer(args, ctx):
            return await ctx.tools.call("inner", {})

        async def inner(args, ctx):
            recorded = recording_dispatch(ctx.tools, "inner")
            with pytest.raises(ToolRefused, match="no tool dispatch"):
                await recorded.tools.call("outer", {})
            return ctx.has_artifacts

        assert Toolbox([make("outer", outer), make("inner", inner)]).call_sync("outer") is False

    def test_permit_and_middleware_are_for_top_level_calls(self, make):
        seen = []

        def permit(tool, args):
            seen.append(tool.name)
            return True

        async def outer(args, ctx):
            return await ctx.tools.call("inner", {})

        box = Toolbox([make("outer", outer), make("inner")], permit=permit)
        box.call_sync("outer")
        assert seen == ["outer"]

    def test_middleware_with_a_method_inner_stands_around_inner_calls(self, make):
        class Around:
            def __init__(self, name):
                self.name = name

            async def __call__(self, call, following):
                seen.append((self.name, call.tool.name, call.call_id, call.parent))
                return await following(call)

            async def inner(self, call, following):
                seen.append((self.name, call.tool.name, call.call_id, call.parent))
                return [self.name, await following(replace(call, args={"n": call.args["n"] + 1}))]

        async def plain(call, following):
            seen.append(("plain", call.tool.name, call.call_id, call.parent))
            return await following(call)

        async def outer(args, ctx):
            return await ctx.tools.call("inner", {"n": 1})

        seen = []
        box = Toolbox(
            [make("outer", outer), make("inner", lambda args, ctx: (args["n"], ctx.call_id))],
            middleware=[Around("a"), plain, Around("b")],
        )
        assert box.call_sync("outer", call_id="tc") == ["a", ["b", (3, "tc#inner-1")]]
        assert seen == [
            ("a", "outer", "tc", None),
            ("plain", "outer", "tc", None),
            ("b", "outer", "tc", None),
            ("a", "inner", "tc#inner-1", "tc"),
            ("b", "inner", "tc#inner-1", "tc"),
        ]

    def test_what_it_passes_on_to_an_inner_call_is_checked_again(self, make):
        class Around:
            async def __call__(self, call, following):
                return await following(call)

            async def inner(self, call, following):
                return await following(replace(call, args={"n": "three"}))

        async def outer(args, ctx):
            return await ctx.tools.call("inner", {"n": 3})

        number = {"type": "object", "properties": {"n": {"type": "integer"}}}
        inner = make("inner", lambda args: args["n"], input_schema=number)
        box = Toolbox([make("outer", outer), inner], middleware=[Around()])
        error = _refusal(box, "outer")
        assert error.code == "invalid_arguments"

    def test_an_inner_absence_ends_a_recorded_run(self, make):
        async def outer(args, ctx):
            recorded = recording_dispatch(ctx.tools, "outer")
            with pytest.raises(RunbookAbsenceSignal):
                await recorded.tools.call("inner", {})
            return recorded.remembered.absence

        box = Toolbox([make("outer", outer), make("inner", lambda args: NOTHING)])
        assert box.call_sync("outer") is NOTHING


class TestProviders:
    def test_are_asked_at_each_call_and_may_be_async(self, make):
        asked = []

        async def provider():
            asked.append(1)
            return [make("late", lambda args: len(asked))]

        box = Toolbox([make("a")], providers=[provider])
        assert (box.call_sync("late"), box.call_sync("late")) == (1, 2)
        assert "late" not in box
        box.call_sync("a")
        assert len(asked) == 2  # a known name asks nobody

    def test_a_registered_tool_wins_over_a_provided_one(self, make):
        box = Toolbox(
            [make("a", lambda args: "ours")], providers=[lambda: [make("a", lambda args: "theirs")]]
        )
        assert box.call_sync("a") == "ours"
        assert len(asyncio.run(box.available())) == 1

    def test_a_failing_provider_is_a_refusal_that_names_it(self):
        def broken():
            raise OSError("registry down")

        error = _refusal(Toolbox(providers=[broken]), "x")
        assert error.code == "provider_failed"
        assert "broken" in str(error)
        assert "registry down" in str(error)

    def test_what_is_delivered_must_be_tools(self):
        assert _refusal(Toolbox(providers=[lambda: [print]]), "x").code == "provider_failed"

    def test_a_provided_tool_that_wants_without_a_store_is_refused_when_called(self, make):
        box = Toolbox(providers=[lambda: [make("t", **WANTS)]], artifacts=None)
        error = _refusal(box, "t", {"d": "art_" + "a" * 22})
        assert error.code == "no_artifact_store"
        assert "'t'" in str(error)


class TestOrderOfTheGates:
    def _box(self, make, heard, **more):
        def say(word, answer=True):
            def gate(*_):
                heard.append(word)
                return answer

            return gate

        async def middleware(call, following):
            heard.append("middleware in")
            result = await following(call)
            heard.append("middleware out")
            return result

        def body(args, ctx):
            heard.append(("body", ctx.credential, sorted(ctx.wanted)))
            return "done"

        def check(args, ctx):
            heard.append("check-in")
            return True

        schema = {
            "type": "object",
            "properties": {"d": {"type": "string"}, "n": {"type": "integer"}},
        }
        gated = make(
            "t",
            body,
            input_schema=schema,
            wants={"d": "dataset/rows"},
            needs={"credential": "pager"},
            check_in=check,
        )
        issued = {"status": "issued", "credential": "tok"}
        options = {
            "permit": say("permit"),
            "consent": say("consent"),
            "credentials": say("credential", issued),
            "middleware": [middleware],
            **more,
        }
        box = Toolbox([gated], **options)
        rows = {"kind": "dataset/rows", "mediaType": "application/json", "data": [1]}
        return box, box.artifacts.put_sync(rows).meta.ref

    def test_is_permission_middleware_arguments_consent_references_credential_body(self, make):
        heard = []
        box, ref = self._box(make, heard)
        assert box.call_sync("t", {"d": ref}) == "done"
        assert heard == [
            "permit",
            "middleware in",
            "check-in",
            "consent",
            "credential",
            ("body", "tok", ["d"]),
            "middleware out",
        ]

    @pytest.mark.parametrize(
        ("more", "args", "code", "reached"),
        [
            ({"permit": lambda t, a: False}, {"n": "x"}, "not_permitted", []),
            ({}, {"n": "x"}, "invalid_arguments", ["permit", "middleware in"]),
            (
                {"consent": lambda t, a: False},
                {"d": "art_" + "a" * 22},
                "consent_declined",
                ["permit", "middleware in", "check-in"],
            ),
            (
                {"credentials": lambda need: {"status": "denied"}},
                {"d": "art_" + "a" * 22},
                "unusable_reference",
                ["permit", "middleware in", "check-in", "consent"],
            ),
            (
                {"credentials": lambda need: {"status": "denied"}},
                {},
                "credential_not_issued",
                ["permit", "middleware in", "check-in", "consent"],
            ),
        ],
    )
    def test_a_closed_gate_keeps_every_later_one_from_being_asked(
        self, make, more, args, code, reached
    ):
        heard = []
        box, _ = self._box(make, heard, **more)
        assert _refusal(box, "t", args).code == code
        assert heard == reached


class TestMiddleware:
    def test_the_first_is_outermost_and_results_pass_back_in_reverse(self, make):
        def wrap(word):
            async def middleware(call, following):
                return [word, await following(call), word]

            return middleware

        box = Toolbox([make("t", lambda args: "x")], middleware=[wrap("a"), wrap("b")])
        assert box.call_sync("t") == ["a", ["b", "x", "b"], "a"]

    def test_may_be_plain_and_may_leave_the_call_out(self, make):
        box = Toolbox([make("t", lambda args: args)], middleware=[lambda call, go: go()])
        assert box.call_sync("t", {"a": 1}) == {"a": 1}

    def test_may_change_arguments_which_are_then_judged(self, make):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

        def change(value):
            return lambda call, go: go(replace(call, args={"a": value}))

        tools = [make("t", lambda args: args["a"], input_schema=schema)]
        assert Toolbox(tools, middleware=[change(2)]).call_sync("t", {"a": 1}) == 2
        assert _refusal(Toolbox(tools, middleware=[change("x")]), "t").code == "invalid_arguments"

    def test_cannot_change_the_tool_that_was_permitted(self, make):
        safe, other = make("safe", lambda args: "safe"), make("other", lambda args: "other")

        def swap(call, go):
            return go(replace(call, tool=other, call_id="forged"))

        box = Toolbox([safe, other], middleware=[swap])
        assert box.call_sync("safe") == "safe"

    def test_may_answer_in_the_tools_place_and_its_ground_counts(self, make):
        kept = coverage({"v": 1}, checked=["the cache"])
        ran = []
        box = Toolbox([make("t", lambda args: ran.append(1))], middleware=[lambda call, go: kept])
        assert box.call_sync("t") is kept
        assert ran == []
        assert box.declared[0]["declared"][0]["checked"] == [{"what": "the cache"}]

    def test_cannot_lose_the_ground_a_tool_declared(self, make, inventory):
        async def strip(call, go):
            return (await go())["result"]

        box = Toolbox([inventory], middleware=[strip])
        assert "af_coverage" not in box.call_sync("inventory")
        assert box.declared_count == 1

    def test_what_it_passes_on_must_be_the_call(self, make):
        box = Toolbox([make("t")], middleware=[lambda call, go: go({"a": 1})])
        with pytest.raises(DefinitionError, match="pass on the call"):
            box.call_sync("t")
        box = Toolbox([make("t")], middleware=[lambda call, go: go(replace(call, args=[1]))])
        assert _refusal(box, "t").code == "invalid_arguments"


class TestTelling:
    def _told(self, make, value, **more):
        heard = []
        box = Toolbox([make("t", lambda args: value, **more)], observer=heard.append)
        box.call_sync("t", call_id="tc-1")
        return box, heard

    def test_a_ledger_is_told_and_kept(self, make):
        box, heard = self._told(make, coverage({"v": 1}, checked=["a"]))
        assert [event["type"] for event in heard] == ["tools.coverage_declared"]
        assert heard[0]["tool"] == "t"
        assert heard[0]["call_id"] == "tc-1"
        assert heard[0]["declared"] == [{"kind": "ledger", "checked": [{"what": "a"}]}]
        assert box.declared[0]["status"] is None

    def test_an_absence_is_told_and_kept(self, make):
        box, heard = self._told(make, NOTHING)
        assert [event["type"] for event in heard] == ["tools.absent"]
        assert heard[0]["declared"][0]["kind"] == "absence"
        assert heard[0]["declared"][0]["looked_for"] == "jobs"
        assert box.declared[0]["status"] == "absent"

    def test_an_absence_inside_a_ledger_is_told_as_both(self, make):
        _, heard = self._told(make, coverage(NOTHING, not_checked=["x"]))
        assert [event["type"] for event in heard] == ["tools.coverage_declared", "tools.absent"]

    @pytest.mark.parametrize(
        "value", [coverage({"v": 1}, checked=["a"]), NOTHING, coverage(NOTHING, not_checked=["x"])]
    )
    def test_what_cannot_change_is_read_when_somebody_asks(self, make, value, monkeypatch):
        told, _ = self._told(make, value)
        kept = freeze(value)
        box = Toolbox([make("t", lambda args: kept)])
        reads = []

        def read(part):
            reads.append(1)
            return read_coverage_result(part)

        monkeypatch.setattr("runbook_nb.tools.toolbox.read_coverage_result", read)
        box.call_sync("t", call_id="tc-1")
        assert (box.declared_count, reads) == (1, [])
        assert box.declared == told.declared
        assert reads == [1]

    def test_what_can_change_is_read_at_once(self, make):
        value = {"af_coverage": {"checked": ["a"]}, "result": None}
        box = Toolbox([make("t", lambda args: value)])
        box.call_sync("t")
        value["af_coverage"]["checked"].append("b")
        assert box.declared[0]["declared"][0]["checked"] == [{"what": "a"}]

    def test_an_ordinary_answer_tells_nothing(self, make):
        box, heard = self._told(make, {"af_absent": 1})
        assert heard == []
        assert box.declared == ()

    def test_keywords_nobody_checks_are_told_at_every_call(self, make):
        schema = {"type": "object", "properties": {"a": {"format": "email"}}}
        _, heard = self._told(make, 1, input_schema=schema)
        assert heard == [
            {
                "type": "tools.arguments_unchecked",
                "tool": "t",
                "call_id": "tc-1",
                "keywords": ["properties.a.format=email"],
            }
        ]

    def test_an_input_that_looks_misspelt_is_told(self, make):
        heard = []
        schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
        box = Toolbox([make("t", input_schema=schema)], observer=heard.append)
        box.call_sync("t", {"limit": 5, "region": "eu"})
        assert heard == []
        box.call_sync("t", {"lmit": 5})
        assert [event["misspelt"] for event in heard] == [{"lmit": "limit"}]

    def test_a_signature_takes_no_other_names(self):
        @tool
        def ages(limit: int = 5):
            """Read ages."""
            return [limit]

        assert ages.input_schema["additionalProperties"] is False
        with pytest.raises(ToolRefused, match=r"lmit: is not among.*did you mean 'limit'\?"):
            Toolbox([ages]).call_sync("ages", {"lmit": 5})

    def test_progress_is_told_with_the_call_it_belongs_to(self, make):
        heard = []

        async def outer(args, ctx):
            ctx.progress("half")
            await ctx.tools.call("inner", {})

        inner = make("inner", lambda args, ctx: ctx.progress(1))
        box = Toolbox([make("t", outer), inner], observer=heard.append)
        box.call_sync("t", call_id="tc-1")
        assert [(e["tool"], e["call_id"], e["value"]) for e in heard] == [
            ("t", "tc-1", "half"),
            ("inner", "tc-1#inner-1", 1),
        ]

    def test_what_happens_to_artifacts_is_told_without_the_payload(self, make):
        heard = []

        def body(args, ctx):
            ctx.artifacts.put_sync({"kind": "k", "mediaType": "m", "data": "s3cr3t"})

        Toolbox([make("t", body)], observer=heard.append).call_sync("t")
        assert [event["type"] for event in heard] == ["artifacts.minted"]
        assert "s3cr3t" not in str(heard)

    def test_a_failing_observer_never_reaches_a_call_and_is_shown(self, make):
        def broken(event):
            raise ValueError("observer")

        box = Toolbox([make("t", lambda args: NOTHING)], observer=broken)
        assert box.call_sync("t") is NOTHING
        assert "the observer failed 1 time" in str(box)

    def test_what_is_kept_is_bounded_and_counted(self, make, monkeypatch):
        monkeypatch.setattr("runbook_nb.tools.toolbox.MAX_DECLARED", 2)
        box = Toolbox([make("t", lambda args: NOTHING)])
        for n in range(3):
            box.call_sync("t", call_id=f"tc-{n}")
        assert [entry["call_id"] for entry in box.declared] == ["tc-1", "tc-2"]
        assert box.declared_count == 3


class TestArtifacts:
    ROW = ("k", "text/plain", "x")

    def _put(self, artifacts):
        kind, media, data = self.ROW
        filed = artifacts.put_sync({"kind": kind, "mediaType": media, "data": data})
        return filed.meta

    def test_are_in_memory_unless_told_and_bound_to_the_session(self, make):
        store = InMemoryArtifacts()
        box = Toolbox(artifacts=store, session=Session("c", tenant="t"))
        ref = self._put(box.artifacts).ref
        assert store.get_sync(ArtifactScope("c", "t"), ref).data == "x"
        assert store.get_sync(ArtifactScope("c"), ref) is None
        assert Toolbox().artifacts.list_sync().artifacts == ()

    def test_none_means_no_store(self):
        with pytest.raises(ArtifactError, match="no artifact store"):
            self._put(Toolbox(artifacts=None).artifacts)

    def test_what_a_body_files_carries_the_id_of_its_call(self, make):
        box = Toolbox([make("t", lambda args, ctx: self._put(ctx.artifacts))])
        assert box.call_sync("t", call_id="tc-1").origin == {"toolCallId": "tc-1"}
        assert self._put(box.artifacts).origin is None


class TestResuming:
    def _paused(self, make, heard=None):
        def body(args, ctx):
            raise Paused("needs an answer", checkpoint={"at": 1})

        async def resume(checkpoint, answer, ctx):
            return [checkpoint["at"], answer, ctx.call_id, ctx.credential, ctx.has_artifacts]

        return make("t", body, resume=resume, gates=True)

    def test_goes_on_with_the_answer(self, make):
        box = Toolbox([self._paused(make)])
        with pytest.raises(Paused) as caught:
            box.call_sync("t")
        resumed = box.resume_sync(caught.value.checkpoint, "yes", tool="t", call_id="tc-2")
        assert resumed == [1, "yes", "tc-2", None, True]

    def test_is_refused_where_the_tool_has_no_way(self, make):
        with pytest.raises(ToolRefused) as caught:
            Toolbox([make("t")]).resume_sync({}, "yes", tool="t")
        assert caught.value.code == "not_resumable"

    def test_is_refused_without_a_checkpoint_instead_of_starting_again(self, make):
        ran = []
        tool = make("t", ran.append, resume=lambda checkpoint, answer, ctx: ran.append(answer))
        with pytest.raises(ToolRefused, match="nothing to resume"):
            Toolbox([tool]).resume_sync(None, "yes", tool="t")
        assert ran == []

    def test_permission_and_middleware_apply(self, make):
        def permit(tool, args):
            return args != {"answer": "no"}

        def middleware(call, go):
            assert call.checkpoint == {"at": 1}
            return go(replace(call, args={"answer": call.args["answer"].upper()}))

        box = Toolbox([self._paused(make)], permit=permit, middleware=[middleware])
        assert box.resume_sync({"at": 1}, "yes", tool="t")[1] == "YES"
        with pytest.raises(ToolRefused) as caught:
            box.resume_sync({"at": 1}, "no", tool="t")
        assert caught.value.code == "not_permitted"

    def test_ground_declared_on_resuming_is_kept(self, make):
        tool = make("t", lambda args: 1, resume=lambda checkpoint, answer, ctx: NOTHING)
        box = Toolbox([tool])
        assert box.resume_sync({"at": 1}, tool="t") is NOTHING
        assert box.declared_count == 1


class TestTheSyncDoor:
    def test_inside_a_running_loop(self, make):
        box = Toolbox([make("t", lambda args: 1)])

        async def main():
            return box.call_sync("t"), await box.call("t")

        assert asyncio.run(main()) == (1, 1)

    def test_inside_the_body_of_another_tool(self, make):
        def outer(args):
            return [box.call_sync("inner"), box.call_sync("deeper")]

        box = Toolbox(
            [
                make("outer", outer),
                make("deeper", lambda args: box.call_sync("inner")),
                make("inner", lambda args: "x"),
            ]
        )
        assert box.call_sync("outer") == ["x", "x"]

    def test_from_several_threads_at_once(self, make):
        async def body(args):
            await asyncio.sleep(0)
            return args["n"]

        box = Toolbox([make("t", body)])
        found = []
        threads = [
            threading.Thread(target=lambda n=n: found.append(box.call_sync("t", {"n": n})))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == list(range(8))

    def test_from_a_blocking_body(self, make):
        @tool(blocking=True)
        def outer(ctx: ToolContext) -> int:
            "d"
            return box.call_sync("inner")

        box = Toolbox([outer, make("inner", lambda args: 5)])
        assert box.call_sync("outer") == 5


class TestShowing:
    def test_lists_tools_with_kinds_ingredients_and_gates(self, make):
        gated = make(
            "triage",
            composed_of=["inv"],
            result_kind="verdict/x",
            check_in="always",
            needs={"credential": "x"},
            gates=True,
            **WANTS,
        )
        box = Toolbox([make("inv"), gated], session=Session("incident-7"), providers=[list])
        text = str(box)
        for said in (
            "2 tools",
            "verdict/x",
            "consent, artifacts, credential, may pause",
            "session incident-7",
            "artifacts attached",
            "1 provider",
        ):
            assert said in text
        assert repr(box) == "<Toolbox · 2 tools>"

    def test_an_empty_box_says_so(self):
        text = str(Toolbox(artifacts=None))
        assert "no tools" in text
        assert "no artifact store" in text

    def test_says_how_many_it_shows(self, make):
        from runbook_nb.settings import settings

        box = Toolbox([make(f"t{n}") for n in range(5)])
        with settings(max_table_rows=2):
            table = box.view().sections[0].parts[0]
        assert (len(table.rows), table.total) == (2, 5)
