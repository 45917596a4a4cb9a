"""What the ops of a recorded program do, in the words of our scope.

Each op is one small function of the player, the scope and the op; an op that no function stands
for is a failure of the harness, never of the product. Where our scope has no word for an op, what
an author would write instead is written here, and a departure says so.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from replay_inner import crosses_list, inside, merges_alike, replaced, union
from replay_values import HarnessFailure, decode, plain, read

import runbook_nb as rb
from runbook_nb._text import MISSING
from runbook_nb.errors import ChartError

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda a, b: a in b,
    "notIn": lambda a, b: a not in b,
}


class Thrown(Exception):
    """What a program throws."""


class Done:
    """The value a stage returned, which ends its ops."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Player:
    """One replay of one program: what its stages share beside the state.

    Attributes
    ----------
    env : mapping
        What upstream calls the environment of a run; here, a variable of the procedure.
    appends : bool
        Whether growing a list is written as an append.
    answers : list or None
        Answers given at once, so that no question is ever asked.
    """

    def __init__(
        self,
        env: Mapping[str, Any] | None = None,
        *,
        appends: bool = False,
        answers: list[Any] | None = None,
    ) -> None:
        self.env = dict(env or {})
        self.appends = appends
        self.answers = answers
        #: Updates that were written as unions of lists, by the ids of their ops, with how often.
        self.unions: set[int] = set()
        #: Failures of the harness, which a branch might swallow.
        self.failures: list[HarnessFailure] = []
        self._times: dict[int, int] = {}

    def stage(self, ops: Any, *, in_branch: bool = False, told: Any = None) -> Any:
        """Make the function of a stage; an op list that is none gives no function.

        ``told`` is what an author would make of the value the ops return.
        """
        if ops is None:
            return None
        if told is not None:
            return self._retold(self.stage(ops, in_branch=in_branch), told)
        if any(waits(op) for op in ops):

            async def waiting(scope: Any, *given: Any) -> Any:
                return await _awaited(self._play(scope, ops, given, in_branch))

            return waiting

        def stage(scope: Any, *given: Any) -> Any:
            return _run(self._play(scope, ops, given, in_branch))

        return stage

    def _retold(self, fn: Any, told: Any) -> Any:
        if asyncio.iscoroutinefunction(fn):

            async def waiting(scope: Any, *given: Any) -> Any:
                return told(await fn(scope, *given))

            return waiting
        return lambda scope, *given: told(fn(scope, *given))

    def times(self, op: Mapping[str, Any]) -> int:
        """Count how often an op was met, this time included."""
        self._times[id(op)] = self._times.get(id(op), 0) + 1
        return self._times[id(op)]

    def _play(self, scope: Any, ops: Any, given: Any, in_branch: bool) -> Iterator[Any]:
        view = View(scope, given, in_branch, self)
        for op in ops:
            try:
                play = OPS.get(op.get("op"))
                if play is None:
                    raise HarnessFailure(f"no op {op.get('op')!r} in the harness: {op}")
                found = play(view, op)
            except HarnessFailure as failure:
                self.failures.append(failure)
                raise
            if asyncio.iscoroutine(found):
                found = yield found
            if isinstance(found, Done):
                return found.value
        return None


#: What an author asks who has nothing to ask: upstream asks with null too.
NULL_QUESTION = "null"


class Null:
    """What a stage returns that returns null, which upstream tells from nothing."""


def as_word(value: Any) -> Any:
    """Give a decider's answer as a text, as upstream takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Null):
        return "null"
    return f"{value:g}" if isinstance(value, int | float) else value


def as_value(value: Any) -> Any:
    """Give what a stage returns that asks nothing and decides nothing."""
    return None if isinstance(value, Null) else value


def as_question(value: Any) -> Any:
    """Give what a pausable stage asks."""
    return NULL_QUESTION if isinstance(value, Null) else value


def waits(op: Mapping[str, Any]) -> bool:
    """Say whether an op must be awaited, or holds a rule that must."""
    if op.get("op") in ("sleep", "sleep_by_item", "async"):
        return True
    rules = op.get("rules") or ()
    return any("promise" in (rule.get("fn") or {}).get("test", {}) for rule in rules)


async def _awaited(steps: Iterator[Any]) -> Any:
    try:
        waiting = next(steps)
        while True:
            waiting = steps.send(await waiting)  # type: ignore[attr-defined]
    except StopIteration as done:
        return done.value


def _run(steps: Iterator[Any]) -> Any:
    try:
        next(steps)
    except StopIteration as done:
        return done.value
    raise HarnessFailure("an op waits in a stage that was taken for one that does not")


class View:
    """A scope as the ops use it: what nobody wrote reads as nothing, and nothing is not written."""

    def __init__(self, scope: Any, given: Any, in_branch: bool, player: Player) -> None:
        self.scope = scope
        self.given = given
        self.in_branch = in_branch
        self.player = player

    def get(self, key: str, default: Any = MISSING) -> Any:
        """Read a key; in a branch of a fan-out, item and index come by the args."""
        if self.in_branch and key in ("item", "index") and key not in list(self.scope):
            return self.scope.args[key]
        return self.scope.get(key, default)

    def write(self, key: str, value: Any, **how: Any) -> None:
        """Write a key; what is nothing removes it."""
        if value is MISSING:
            if key in list(self.scope):
                self.scope.delete(key)
        elif how:
            self.scope.set(key, value, **how)
        else:
            self.scope[key] = value


def need(op: Mapping[str, Any], *names: str) -> Any:
    """Give a parameter of an op under the first of its names that it has."""
    for name in names:
        if name in op:
            return decode(op[name])
    raise HarnessFailure(f"op {op.get('op')!r} has none of {names}: {dict(op)}")


def where(op: Mapping[str, Any]) -> list[Any]:
    """Give the path of an op as a list of steps."""
    path = need(op, "path", "key", "from")
    return list(path) if isinstance(path, list) else str(path).split(".")


def holds(view: View, op: Mapping[str, Any]) -> bool:
    """Read a key and compare it, as the ``…_if`` ops do."""
    found = view.get(need(op, "key"))
    compare = COMPARE.get(need(op, "cmp"))
    if compare is None:
        raise HarnessFailure(f"no comparison {op['cmp']!r} in the harness")
    try:
        return bool(compare(found, plain(need(op, "value"))))
    except TypeError:
        return False


# --- writing -----------------------------------------------------------------------------------


def op_set(view: View, op: Any) -> None:
    view.write(need(op, "key"), plain(need(op, "value")))


def op_setv(view: View, op: Any) -> None:
    value = plain(need(op, "value"))
    if value is MISSING:
        view.write(need(op, "key"), value)
    else:
        view.scope.set(need(op, "key"), value)


def op_secret(view: View, op: Any) -> None:
    view.write(need(op, "key"), plain(need(op, "value")), secret=True)


def op_set_range(view: View, op: Any) -> None:
    view.write(need(op, "key"), list(range(need(op, "n"))))


def op_add(view: View, op: Any) -> None:
    key = need(op, "key")
    view.write(key, (view.get(key, 0) or 0) + op.get("n", 1))


def op_append(view: View, op: Any) -> None:
    key = need(op, "key")
    view.write(key, [*(view.get(key, ()) or ()), plain(need(op, "value"))])


def op_push(view: View, op: Any) -> None:
    if view.player.appends:
        view.scope.append(need(op, "key"), plain(need(op, "value")))
    else:
        op_append(view, op)


def op_batch_push(view: View, op: Any) -> None:
    key, values = need(op, "key"), plain(need(op, "values", "value"))
    if view.player.appends:
        for value in values:
            view.scope.append(key, value)
    else:
        view.write(key, [*(view.get(key, ()) or ()), *values])


def op_update(view: View, op: Any) -> None:
    key, partial = need(op, "key"), plain(need(op, "value"))
    held = dict(view.scope.facts_for_rules()[0]).get(key)
    if merges_alike(held, partial):
        view.scope.merge(key, partial)
    else:  # a union of lists is the author's to write
        view.player.unions.add(id(op))
        view.write(key, union(view.get(key), partial))


def op_delete(view: View, op: Any) -> None:
    view.write(need(op, "key"), MISSING)


def op_set_path(view: View, op: Any) -> None:
    root, *steps = where(op)
    value, held = plain(need(op, "value")), view.get(root)
    if all(isinstance(step, str) for step in steps) and not crosses_list(held, steps):
        partial = value
        for step in reversed(steps):
            partial = {step: partial}
        if isinstance(value, Mapping | list) and inside(held, steps) is not MISSING:
            view.write(root, replaced(held, steps, value))
        else:
            view.scope.merge(root, partial)
    else:
        view.write(root, replaced(held, steps, value))


def op_del_path(view: View, op: Any) -> None:
    root, *steps = where(op)
    view.write(root, replaced(view.get(root), steps, MISSING))


# --- reading -----------------------------------------------------------------------------------


def op_get(view: View, op: Any) -> None:
    found = view.get(need(op, "key"))
    if "to" in op:
        view.write(op["to"], found)


def op_copy(view: View, op: Any) -> None:
    view.write(need(op, "to"), view.get(need(op, "from", "key")))


def op_read_path(view: View, op: Any) -> None:
    path = where(op)
    text = str(path[0])
    for step in path[1:]:
        number = isinstance(step, int) or step.isdigit()
        text += f"[{step}]" if number else f".{step}"
    found = view.scope.read(text, None)
    if "to" in op:
        view.write(op["to"], MISSING if found is None else found)


def op_has(view: View, op: Any) -> None:
    view.write(need(op, "to"), need(op, "key") in view.scope)


def op_keys(view: View, op: Any) -> None:
    view.write(need(op, "to"), list(view.scope))


def op_args(view: View, op: Any) -> None:
    found = dict(view.scope.args)
    if "to" in op:
        view.write(op["to"], found)


def op_args_to(view: View, op: Any) -> None:
    view.write(need(op, "to"), view.scope.args.get(need(op, "key"), MISSING))


def op_mutate_args(view: View, op: Any) -> None:
    view.scope.args[need(op, "key")] = need(op, "value")


def op_env_to(view: View, op: Any) -> None:
    view.write(need(op, "to"), view.player.env.get(need(op, "key"), MISSING))


# --- telling -----------------------------------------------------------------------------------


def op_emit(view: View, op: Any) -> None:
    view.scope.emit(need(op, "name", "key"), read(op.get("payload", op.get("value"))))


def _told(name: str, **fixed: Any) -> Callable[[View, Any], None]:
    def tell(view: View, op: Any) -> None:
        key = op.get("key", "messages")
        title = "name" if name in ("metric", "eval") else "key"
        payload = {} if "key" not in op else {title: key}
        view.scope.emit(f"{name}.{key}", {**payload, "value": read(op.get("value")), **fixed})

    return tell


def op_stream(view: View, op: Any) -> None:
    if view.scope.streaming is None:  # upstream gives other stages nothing to stream with
        refused = False
        try:
            view.scope.stream("")
        except ChartError:
            refused = True
        assert refused, "a stage that streams nothing could stream"
        return
    for token in need(op, "tokens", "value"):
        view.scope.stream(token)


# --- ending ------------------------------------------------------------------------------------


def op_break(view: View, op: Any) -> None:
    view.scope.stop(op.get("reason"))


def op_break_if(view: View, op: Any) -> None:
    if holds(view, op):
        view.scope.stop(op.get("reason"))


def op_throw(view: View, op: Any) -> None:
    raise Thrown(op.get("message", "thrown"))


def op_throw_first(view: View, op: Any) -> None:
    if view.player.times(op) <= op.get("n", 1):
        raise Thrown(op.get("message", "thrown"))


def op_throw_if_item(view: View, op: Any) -> None:
    if plain(view.scope.args.get("item")) == read(op["item"]):
        raise Thrown(op.get("message", "thrown"))


def op_interrupt(view: View, op: Any) -> None:
    asked = read(op.get("payload", op.get("reason")))
    if view.player.answers is not None:
        if not view.player.answers:
            raise HarnessFailure("a question more than there are answers")
        answer = view.player.answers.pop(0)
    elif isinstance(asked, Mapping):
        answer = rb.interrupt(view.scope, asked.get("reason", ""), asked.get("expects"))
    else:
        answer = rb.interrupt(view.scope, asked if isinstance(asked, str) else str(asked))
    if "to" in op:
        view.write(op["to"], answer)


def op_return(view: View, op: Any) -> Done:
    value = plain(decode(op.get("value", {"$js": "undefined"})))
    if value is None:
        return Done(Null())
    return Done(None if value is MISSING else value)


def op_return_key(view: View, op: Any) -> Done:
    found = view.get(need(op, "key"))
    return Done(None if found is MISSING else found)


def op_return_if(view: View, op: Any) -> Done | None:
    if not holds(view, op):
        return None
    for name in ("result", "return", "then", "returns", "to", "give"):
        if name in op:
            return Done(read(op[name]))
    return Done(None)


def op_resume_to(view: View, op: Any) -> None:
    view.write(need(op, "to"), view.given[0] if view.given else MISSING)


# --- judging -----------------------------------------------------------------------------------


def op_decide(view: View, op: Any) -> Done:
    return Done(rb.decide(view.scope, rules_of(op), default_of(op)))


def op_decide_to(view: View, op: Any) -> None:
    view.write(need(op, "to"), rb.decide(view.scope, rules_of(op), default_of(op)).branch)


def op_select(view: View, op: Any) -> Done:
    return Done(rb.select(view.scope, rules_of(op)))


def default_of(op: Any) -> Any:
    default = plain(decode(op.get("default", {"$js": "undefined"})))
    return None if default is MISSING else default


def rules_of(op: Any) -> list[rb.Rule]:
    return [
        rb.Rule(
            function_rule(rule["fn"]) if "fn" in rule else decode(rule["when"]),
            rule["then"],
            None if (label := decode(rule.get("label"))) is MISSING else label,
        )
        for rule in op["rules"]
    ]


def function_rule(spec: Any) -> Any:
    """Make the function a recorded rule describes."""
    test = spec["test"]

    def judge(facts: Any) -> Any:
        for key in spec.get("reads", ()):
            facts.get(key)
        if "throw" in test:
            raise Thrown(test["throw"])
        if "cmp" in test:
            key, op, value = test["cmp"]
            return COMPARE[op](facts.get(key), decode(value))
        if "const" not in test:
            raise HarnessFailure(f"no test {test} of a function rule in the harness")
        return decode(test["const"])

    async def waiting(facts: Any) -> Any:
        for key in spec.get("reads", ()):
            facts.get(key)
        return decode(test["promise"])

    return waiting if "promise" in test else judge


# --- waiting -----------------------------------------------------------------------------------


async def op_sleep(view: View, op: Any) -> None:
    await asyncio.sleep(need(op, "ms") / 1000)


async def op_sleep_by_item(view: View, op: Any) -> None:
    ms = need(op, "ms")
    index = view.scope.args.get("index", 0)
    by_item = ms[index] if isinstance(ms, list) else ms.get(str(index), 0)
    await asyncio.sleep(by_item / 1000)


async def op_async(view: View, op: Any) -> None:
    await asyncio.sleep(0)


OPS: dict[str, Callable[[View, Any], Any]] = {
    "set": op_set,
    "setv": op_setv,
    "secret": op_secret,
    "set_path": op_set_path,
    "del_path": op_del_path,
    "get": op_get,
    "read_path": op_read_path,
    "copy": op_copy,
    "copyv": op_copy,
    "has": op_has,
    "keys": op_keys,
    "add": op_add,
    "append": op_append,
    "push": op_push,
    "batch_push": op_batch_push,
    "update": op_update,
    "delete": op_delete,
    "args": op_args,
    "args_to": op_args_to,
    "mutate_args": op_mutate_args,
    "env_to": op_env_to,
    "emit": op_emit,
    "debug": _told("log.debug", level="debug"),
    "log": _told("log.debug", level="debug"),
    "metric": _told("metric"),
    "error_info": _told("log.error", level="error"),
    "eval": _told("eval"),
    "break": op_break,
    "break_if": op_break_if,
    "throw": op_throw,
    "throw_first": op_throw_first,
    "throw_if_item": op_throw_if_item,
    "stream": op_stream,
    "interrupt": op_interrupt,
    "return": op_return,
    "return_key": op_return_key,
    "return_if": op_return_if,
    "decide": op_decide,
    "decide_to": op_decide_to,
    "select": op_select,
    "resume_to": op_resume_to,
    "sleep": op_sleep,
    "sleep_by_item": op_sleep_by_item,
    "async": op_async,
    "set_range": op_set_range,
}
