"""A playbook held over plain functions: calling one is a tool call of the plan.

Playbooks layer. What a person calls in a notebook, and what a script calls, is held to the same
plan as the calls of a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, cast

from runbook_nb._sync import is_awaitable
from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.hook import PlaybookEnforcerHook, as_hook
from runbook_nb.playbooks.options import checked_word
from runbook_nb.playbooks.tickets import Ticket

P = ParamSpec("P")
R = TypeVar("R")

#: What a refused call does.
ON_REFUSAL: Final = ("raise", "return")


def guard(
    plan: Any, *, name: str | None = None, on_refusal: str = "raise"
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Hold the calls of a function to a playbook.

    A call is judged before the body is entered and settled when it ends: an error it raises is
    the error of the call. Calls of guarded functions inside the body belong to the same plan and
    name this one as their parent.

    Parameters
    ----------
    plan : PlaybookEnforcerHook, PlaybookEnforcer or Playbook
        What the calls are held to. With a hook they belong to the run entered by
        ``with hook.run(…):``, else to the plan of calls outside any run.
    name : str, optional
        The tool the function is; by default its own name.
    on_refusal : {"raise", "return"}
        Whether a refused call raises, or gives the refusal's text in the place of a result, as a
        model is told.

    Returns
    -------
    callable
        A decorator, for functions and coroutine functions, methods too. It goes inside
        ``@staticmethod`` and ``@classmethod``, or outside.

    Raises
    ------
    PlaybookDefinitionError
        The plan is none, or the function one whose body runs later (a generator).

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookStep
    >>> steps = [
    ...     PlaybookStep(id="look", description="Look.", expected_tools=["search"]),
    ...     PlaybookStep(id="act", description="Act.", expected_tools=["isolate"]),
    ... ]
    >>> hook = PlaybookEnforcerHook(Playbook(id="ir", name="Response", steps=steps))
    >>> @guard(hook)
    ... def search(query):
    ...     return ["web-01"]
    >>> @guard(hook, on_refusal="return")
    ... def isolate(host):
    ...     return f"{host} is off the network"
    >>> isolate("web-01").startswith("PlaybookEnforcer blocked: ")
    True
    >>> search("failed logins"), isolate("web-01")
    (['web-01'], 'web-01 is off the network')
    """
    hook = as_hook(plan)
    returns = checked_word("on_refusal", on_refusal, ON_REFUSAL) == "return"

    def hold(function: Callable[P, R]) -> Callable[P, R]:
        if isinstance(function, staticmethod | classmethod):
            inner = guard(hook, name=name, on_refusal=on_refusal)(function.__func__)
            return cast(Callable[P, R], type(function)(inner))
        return _held(hook, function, name, returns=returns)

    return hold


def _held(
    hook: PlaybookEnforcerHook, function: Callable[P, R], name: str | None, *, returns: bool
) -> Callable[P, R]:
    _refuse_later(function)
    tool = name or function.__name__
    arguments_of = _reader(function)

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def judged_later(*args: P.args, **kwargs: P.kwargs) -> Any:
            ticket = hook.admit(tool, arguments_of(args, kwargs))
            if returns and ticket.refusal is not None:
                return ticket.refusal.text
            return await _awaited(ticket, lambda: function(*args, **kwargs))

        return cast(Callable[P, R], judged_later)

    @wraps(function)
    def judged(*args: P.args, **kwargs: P.kwargs) -> Any:
        ticket = hook.admit(tool, arguments_of(args, kwargs))
        if returns and ticket.refusal is not None:
            return ticket.refusal.text
        with ticket.running(ends=False):
            result = function(*args, **kwargs)
        if is_awaitable(result):  # a wrapper around a coroutine function: nothing has run yet
            return _awaited(ticket, lambda: result)
        ticket.settle("ok", result=result)
        return result

    return judged


async def _awaited(ticket: Ticket, begin: Callable[[], Any]) -> Any:
    with ticket.running():
        result = await begin()
        ticket.settle("ok", result=result)
    return result


def _reader(function: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Give what names the arguments of a call as its author named them.

    Those left to their defaults are not among them: they are not what was called for. The receiver
    of a method is none of them either.
    """
    signature = inspect.signature(function)
    kinds = {one.name: one.kind for one in signature.parameters.values()}
    receiver = _receiver(function, list(kinds))
    named = next((n for n, kind in kinds.items() if kind is inspect.Parameter.VAR_KEYWORD), None)

    def arguments_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(signature.bind(*args, **kwargs).arguments)  # raises as the call would
        if receiver is not None:
            found.pop(receiver, None)
        if named is not None:
            more = found.pop(named, {})
            # A name that is a positional parameter's too must not stand in the place of that one.
            found.update({named: more} if found.keys() & more.keys() else more)
        return found

    return arguments_of


def _receiver(function: Callable[..., Any], names: list[str]) -> str | None:
    """Give the name under which a method takes what it is called on."""
    outer = function.__qualname__.rpartition(".")[0]
    in_class = bool(outer) and not outer.endswith("<locals>")
    return names[0] if in_class and names and names[0] in ("self", "cls") else None


def _refuse_later(function: Any) -> None:
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise PlaybookDefinitionError(
            f"guard cannot hold {function!r}",
            code="not_a_function",
            where="guard",
            fix="decorate a function or a method",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise PlaybookDefinitionError(
            f"guard cannot hold {function.__qualname__!r}: the body of a generator runs after the "
            "call has ended",
            code="runs_later",
            where=function.__qualname__,
            fix="return a list, or guard the function that reads it",
        )
