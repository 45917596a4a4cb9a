from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import weakref

import pytest

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.errors import DefinitionError, RunCancelled, ToolRefused
from runbook_nb.tools import Tool, ToolContext, define_tool, tool


@tool
async def ages(cluster: str, days: int = 7) -> list:
    """Ages of backups.

    Longer text.

    Parameters
    ----------
    cluster : str
        Where to look.
    """
    return [cluster, days]


class TestDecorating:
    def test_bare_takes_name_and_description_from_the_function(self):
        assert (ages.name, ages.description) == ("ages", "Ages of backups.")
        assert ages.schema.name == "ages"
        assert ages.schema.description == "Ages of backups."
        assert ages.schema.input_schema["required"] == ["cluster"]

    def test_with_arguments_they_win(self):
        @tool(name="other", description="Another.", result_kind="k", composed_of=["ages"])
        def f() -> None:
            "Ignored."

        assert (f.name, f.description, f.result_kind) == ("other", "Another.", "k")
        assert f.composed_of == ["ages"]

    def test_a_given_schema_wins_over_the_signature(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

        @tool(input_schema=schema)
        def f(a: str) -> str:
            return a

        assert f.input_schema == schema

    def test_the_function_can_still_be_called(self):
        assert asyncio.run(ages("a", days=2)) == ["a", 2]

        @tool
        def double(x: int) -> int:
            "Twice."
            return x * 2

        assert double(4) == 8
        assert double.function(4) == 8
        assert inspect.unwrap(double.function) is double.function

    def test_methods_and_callable_objects_become_tools_too(self):
        class Store:
            def __init__(self) -> None:
                self.rows = [1]

            def count(self, extra: int = 0) -> int:
                "Count rows."
                return len(self.rows) + extra

            def __call__(self, x: str) -> str:
                return x

        assert tool(Store().count).execute_sync({"extra": 2}) == 3
        assert tool(name="call", description="d")(Store()).execute_sync({"x": "a"}) == "a"

    def test_a_partial_needs_a_name(self):
        def f(a: int, b: int) -> list[int]:
            "d"
            return [a, b]

        bound = functools.partial(f, b=2)
        with pytest.raises(DefinitionError, match="give name="):
            tool(bound)
        assert tool(name="part")(bound).execute_sync({"a": 1}) == [1, 2]

    def test_what_is_no_function_is_refused(self):
        for given in (3, "ages", Tool):
            with pytest.raises(DefinitionError, match="decorate a function"):
                tool(given)
        with pytest.raises(DefinitionError, match="is a tool already"):
            tool(ages)
        with pytest.raises(DefinitionError, match="execute"):
            tool(name="f", execute=print)(lambda: 1)

    def test_an_unknown_option_is_refused_when_decorating(self):
        with pytest.raises(DefinitionError, match="did you mean 'description'"):

            @tool(descripton="d")
            def f() -> None:
                pass

    def test_running_the_defining_cell_again_makes_a_new_tool(self):
        made = []
        for days in (7, 7, 14):

            @tool
            def stale(limit: int = days) -> int:
                "Stale."
                return limit

            made.append(stale)
        assert [one.execute_sync({}) for one in made] == [7, 7, 14]


class TestExecuting:
    def test_sync_and_async_bodies(self):
        assert asyncio.run(ages.execute({"cluster": "a"})) == ["a", 7]
        assert ages.execute_sync({"cluster": "a", "days": 1}) == ["a", 1]
        assert define_tool(name="s", execute=lambda args: 1).execute_sync() == 1

    def test_a_sync_body_may_return_something_to_await(self):
        async def later(args):
            return args["a"]

        made = define_tool(name="s", execute=lambda args, ctx: later(args))
        assert made.execute_sync({"a": 3}) == 3

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            (lambda: "none", "none"),
            (lambda args: args, {"a": 1}),
            (lambda args, ctx: (args, ctx.call_id), ({"a": 1}, "tc-1")),
            (lambda args, ctx=None: ctx.call_id, "tc-1"),
            (lambda args, kept=5: kept, 5),
            (lambda *both: len(both), 2),
        ],
    )
    def test_a_defined_body_takes_what_it_asks_for(self, body, expected):
        made = define_tool(name="s", execute=body)
        assert made.execute_sync({"a": 1}, ToolContext(call_id="tc-1")) == expected

    def test_the_context_reaches_the_annotated_parameter(self):
        @tool
        def who(x: int, ctx: ToolContext) -> list:
            "d"
            return [x, ctx.call_id, ctx.has_artifacts, ctx.tools]

        ctx = ToolContext(call_id="tc-1")
        assert who.execute_sync({"x": 1}, ctx) == [1, "tc-1", False, None]

    def test_without_a_context_one_is_made(self):
        @tool
        def who(ctx: ToolContext) -> str:
            "d"
            return ctx.call_id

        assert who.execute_sync().startswith("call_")

    def test_the_body_gets_a_mapping_of_its_own(self):
        def body(args):
            args["b"] = 2
            return args

        given = {"a": 1}
        assert define_tool(name="s", execute=body).execute_sync(given) == {"a": 1, "b": 2}
        assert given == {"a": 1}

    def test_arguments_that_are_no_mapping_are_refused(self):
        with pytest.raises(ToolRefused) as caught:
            ages.execute_sync(["a"])
        assert caught.value.code == "invalid_arguments"

    def test_the_raw_door_still_refuses_arguments_the_function_cannot_take(self):
        for args in ({}, {"cluster": "a", "zz": 1}):
            with pytest.raises(ToolRefused) as caught:
                ages.execute_sync(args)
            assert caught.value.code == "invalid_arguments"

    def test_an_error_of_the_body_is_not_taken_for_bad_arguments(self):
        @tool
        def broken(x: int) -> int:
            "d"
            return x + "1"  # type: ignore[operator]

        with pytest.raises(TypeError, match="unsupported operand"):
            broken.execute_sync({"x": 1})

    def test_a_stop_that_is_set_keeps_the_body_from_starting(self):
        ran = []

        @tool
        def late() -> None:
            "d"
            ran.append(1)

        stop = Stop()
        stop.set("window closed")
        with pytest.raises(RunCancelled, match="window closed"):
            late.execute_sync({}, ToolContext(signal=stop))
        assert ran == []

    def test_a_call_that_is_stopped_does_not_wait_for_a_blocking_body(self):
        stop, go_on, threads = Stop(), threading.Event(), []

        @tool(blocking=True)
        def source():
            """Take long."""
            threads.append(threading.current_thread())
            stop.set("enough")
            go_on.wait(10)

        def procedure(tools):
            async def look(scope):
                await tools.call("source", {})

            return rb.flow_chart("c", look, id="look").build()

        runbook = rb.runbook_as_tool(
            name="r", description="d", procedure=procedure, result_kind="report/x"
        )
        with pytest.raises(RunCancelled):
            rb.Toolbox([source, runbook]).call_sync("r", signal=stop)
        (thread,) = threads
        assert thread.is_alive()
        assert thread.daemon
        go_on.set()
        thread.join(10)

    def test_a_blocking_body_runs_in_another_thread_with_the_callers_context(self):
        @tool(blocking=True)
        def where() -> int:
            "d"
            return threading.get_ident()

        @tool
        def here() -> int:
            "d"
            return threading.get_ident()

        async def main():
            return await where.execute(), await here.execute(), threading.get_ident()

        there, inline, loop = asyncio.run(main())
        assert there != loop
        assert inline == loop

    def test_a_blocking_body_that_hangs_is_not_waited_for(self):
        """It is left behind in its thread; the call ends as soon as it is told to."""
        entered, released, left = threading.Event(), threading.Event(), threading.Event()

        @tool(blocking=True)
        def hangs() -> None:
            "d"
            entered.set()
            released.wait(60)
            left.set()

        async def main():
            task = asyncio.ensure_future(hangs.execute())
            while not entered.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        try:
            asyncio.run(main())
            assert not left.is_set()
        finally:
            released.set()

    def test_what_a_blocking_body_raises_is_raised(self):
        @tool(blocking=True)
        def fails() -> None:
            "d"
            raise LookupError("no such region")

        with pytest.raises(LookupError, match="no such region"):
            fails.execute_sync()

    def test_execute_sync_works_inside_a_running_loop(self):
        async def main():
            return ages.execute_sync({"cluster": "a"})

        assert asyncio.run(main()) == ["a", 7]


class TestBeingATool:
    def test_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            ages.name = "other"

    def test_is_equal_only_to_itself_and_may_be_referred_to_weakly(self):
        one, two = (define_tool(name="s", execute=lambda args: 1) for _ in range(2))
        assert one != two
        assert len({one, two}) == 2
        assert weakref.ref(one)() is one

    def test_carries_what_its_maker_keeps_with_it(self):
        async def resume(checkpoint, answer, ctx):
            return answer

        made = define_tool(
            name="s", execute=lambda args: 1, resume=resume, carried={"structure": "s"}
        )
        assert made.resume is resume
        assert made.carried["structure"] == "s"

    def test_names_what_it_does_not_check(self):
        schema = {"type": "object", "properties": {"a": {"format": "email"}}}
        made = define_tool(name="s", execute=lambda args: 1, input_schema=schema)
        assert made.unchecked == ["properties.a.format=email"]
        assert "not checked of its schema: properties.a.format=email" in str(made)


class TestShowing:
    def test_says_arguments_and_declarations(self):
        made = define_tool(
            name="triage",
            description="Judges backups.",
            execute=lambda args: 1,
            input_schema={
                "type": "object",
                "properties": {
                    "d": {"type": "string", "description": "Rows."},
                    "m": {"enum": ["a", "b"]},
                    "o": {"$ref": "#/$defs/Window"},
                    "u": True,
                },
                "required": ["d"],
                "$defs": {"Window": {"type": "object"}},
            },
            wants={"d": "dataset/rows"},
            needs={"credential": "pager"},
            check_in="always",
            composed_of=["inv", "ages"],
            arguments_from=["inv"],
            result_kind="verdict/x",
            result_class="triage",
            gates=False,
            owner={"kind": "team", "id": "ops"},
        )
        text = str(made)
        for said in (
            "Judges backups.",
            "string, required: Rows.",
            "one of 2 values",
            "Window",
            "any value",
            "d: dataset/rows",
            "pager",
            "always",
            "inv and ages",
            "verdict/x",
            "team ops",
        ):
            assert said in text
        assert repr(made) == "<Tool triage · Judges backups.>"

    def test_a_bare_tool_says_that_nothing_is_described(self):
        made = define_tool(name="s", execute=lambda args: 1)
        assert "no description" in str(made)
        assert "takes no declared arguments" in str(made)

    def test_hostile_text_is_shown_as_text(self):
        made = define_tool(name="s", description="\x1b[31m<img src=x>", execute=lambda args: 1)
        assert "\x1b" not in str(made)
        assert "\x1b" not in repr(made)
