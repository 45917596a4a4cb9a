"""Plain functions held to a playbook."""

from __future__ import annotations

import asyncio
import functools
import inspect

import pytest

from runbook_nb.errors import PlaybookDefinitionError, ToolRefused
from runbook_nb.playbooks import (
    Playbook,
    PlaybookEnforcer,
    PlaybookEnforcerHook,
    PlaybookStep,
    guard,
)


def book(*tools, **more):
    step = PlaybookStep(id="look", description="Look.", expected_tools=[*tools, "last"], **more)
    return Playbook(id="ir", name="Incident response", steps=[step])


def held_over(*tools, **more):
    return PlaybookEnforcerHook(book(*tools, **more))


def calls_of(hook):
    return [(one.tool, one.arguments, one.outcome) for one in hook.enforcer.calls]


def test_a_call_is_judged_made_and_settled():
    hook = held_over("search")

    @guard(hook)
    def search(query, limit=10):
        """Search."""
        return [query, limit]

    assert search("x", limit=3) == ["x", 3]
    assert search("y") == ["y", 10]
    assert calls_of(hook) == [
        ("search", {"query": "x", "limit": 3}, "ok"),
        ("search", {"query": "y"}, "ok"),
    ]
    assert search.__doc__ == "Search."
    assert inspect.signature(search) == inspect.signature(search.__wrapped__)


def test_a_refused_call_raises_and_never_enters_the_body():
    hook, entered = held_over("search", hints=["Look first"]), []

    @guard(hook)
    def pay(amount):
        entered.append(amount)

    with pytest.raises(ToolRefused, match="search") as refused:
        pay(10)
    error = refused.value
    assert (error.code, error.where) == ("unexpected_tool", "pay")
    assert error.facts["step_id"] == "look"
    assert error.facts["outcome"] == "refused"
    assert "Look first" in error.facts["hints"]
    assert entered == []


def test_a_refused_call_gives_its_text_where_asked():
    hook = held_over("search")

    @guard(hook, on_refusal="return")
    def pay(amount):
        raise AssertionError("entered")

    assert pay(10).startswith("PlaybookEnforcer blocked: ")
    assert calls_of(hook) == [("pay", {"amount": 10}, "refused")]


def test_an_error_is_that_of_the_call():
    hook = held_over("search")

    @guard(hook)
    def search():
        raise KeyError("down")

    with pytest.raises(KeyError, match="down"):
        search()
    assert calls_of(hook) == [("search", {}, "error")]


def test_coroutine_functions_are_held_and_stay_so():
    hook = held_over("search")

    @guard(hook)
    async def search(query):
        await asyncio.sleep(0)
        return query

    @guard(hook, on_refusal="return")
    async def pay():
        raise AssertionError("entered")

    @guard(hook)
    async def refuse():
        raise AssertionError("entered")

    assert inspect.iscoroutinefunction(search)
    assert asyncio.run(search("x")) == "x"
    assert asyncio.run(pay()).startswith("PlaybookEnforcer blocked: ")
    with pytest.raises(ToolRefused):
        asyncio.run(refuse())
    assert [outcome for _, _, outcome in calls_of(hook)] == ["ok", "refused", "refused"]


def test_a_wrapper_around_a_coroutine_function_is_settled_when_it_has_run():
    hook = held_over("search")

    async def search(query):
        await asyncio.sleep(0)
        if query == "bad":
            raise ValueError(query)
        return [one.outcome for one in hook.enforcer.calls]

    @guard(hook, name="search")
    @functools.wraps(search)
    def wrapped(query):
        return search(query)

    async def go():
        running = await wrapped("x")
        with pytest.raises(ValueError, match="bad"):
            await wrapped("bad")
        return running

    assert asyncio.run(go()) == [None]
    assert [outcome for _, _, outcome in calls_of(hook)] == ["ok", "error"]


def test_a_cancelled_call_is_cancelled():
    hook = held_over("search")

    @guard(hook)
    async def search():
        await asyncio.sleep(60)

    async def go():
        task = asyncio.create_task(search())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert calls_of(hook) == [("search", {}, "cancelled")]


def test_methods_leave_out_what_they_are_called_on():
    hook = held_over("search", "find", "made", "fixed")

    class Siem:
        @guard(hook)
        def search(self, query):
            return (self, query)

        @classmethod
        @guard(hook)
        def made(cls, size):
            return (cls, size)

        @staticmethod
        @guard(hook)
        def fixed(size):
            return size

        @guard(hook, name="find")
        @staticmethod
        def found(size):
            return size

    siem = Siem()
    assert siem.search("x") == (siem, "x")
    assert Siem.made(3) == (Siem, 3)
    assert (siem.fixed(4), Siem.found(5)) == (4, 5)
    assert [arguments for _, arguments, _ in calls_of(hook)] == [
        {"query": "x"},
        {"size": 3},
        {"size": 4},
        {"size": 5},
    ]


def test_a_parameter_called_self_of_a_plain_function_is_an_argument():
    hook = held_over("search")

    @guard(hook)
    def search(self, other):
        return self

    assert search(1, other=2) == 1
    assert calls_of(hook)[0][1] == {"self": 1, "other": 2}


def test_arguments_are_named_however_they_are_given():
    hook = held_over("search")

    @guard(hook)
    def search(first, /, *rest, flag=False, **named):
        return first

    search(1, 2, 3, flag=True, host="web-01")
    assert calls_of(hook)[0][1] == {"first": 1, "rest": (2, 3), "flag": True, "host": "web-01"} or (
        calls_of(hook)[0][1] == {"first": 1, "rest": [2, 3], "flag": True, "host": "web-01"}
    )


def test_arguments_that_do_not_fit_are_the_functions_own_error_and_no_call():
    hook = held_over("search")

    @guard(hook)
    def search(query):
        return query

    with pytest.raises(TypeError):
        search(1, 2)
    assert calls_of(hook) == []


def test_nested_calls_name_their_parent():
    hook = held_over("search", "fetch")

    @guard(hook)
    def fetch(page):
        return page

    @guard(hook)
    def search():
        return [fetch(1), fetch(2)]

    search()
    outer, *inner = hook.enforcer.calls
    assert outer.parent is None
    assert [one.parent for one in inner] == [outer.call_id] * 2


def test_what_is_held_may_be_an_enforcer_or_a_playbook():
    enforcer = PlaybookEnforcer.from_playbook(book("search"))

    @guard(enforcer, name="search")
    def one():
        return 1

    assert one() == 1
    assert enforcer.plan.total_tool_calls == 1

    @guard(book())
    def last():
        return 2

    assert last() == 2
    with pytest.raises(ToolRefused) as refused:
        last()
    assert refused.value.code == "playbook_complete"


def later():
    yield 1


async def much_later():
    yield 1


@pytest.mark.parametrize(
    ("given", "code"),
    [(later, "runs_later"), (much_later, "runs_later"), (17, "not_a_function")],
)
def test_what_cannot_be_held_is_refused_at_once(given, code):
    with pytest.raises(PlaybookDefinitionError) as refused:
        guard(held_over())(given)
    assert refused.value.code == code
    assert refused.value.fix


def test_what_guard_is_given_is_checked():
    with pytest.raises(PlaybookDefinitionError, match="a str") as refused:
        guard("bad")
    assert refused.value.code == "bad_plan"
    with pytest.raises(PlaybookDefinitionError, match="raise"):
        guard(held_over(), on_refusal="raises")


def test_a_keyword_of_the_name_of_a_positional_parameter_stands_beside_it():
    hook = held_over("isolate")

    @guard(hook)
    def isolate(host, /, **more):
        return host

    isolate("prod", host="test")
    assert calls_of(hook) == [("isolate", {"host": "prod", "more": {"host": "test"}}, "ok")]
