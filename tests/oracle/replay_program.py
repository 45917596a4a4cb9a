"""A recorded program as calls of our builder."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from replay_ops import Player, Thrown, as_question, as_value, as_word
from replay_values import HarnessFailure, decode, plain, read

import runbook_nb as rb
from runbook_nb._text import MISSING

#: Steps that change the stage before them, here arguments of that stage.
MODIFIERS = ("retry", "tag")

#: Steps that make the children of one fork.
FORKS = ("fork", "lazy_fork")


class NoWord(Exception):
    """The builder has no word for what a program asks, so that it cannot be asked.

    ``expected`` says whether that is a word our builder is known not to have: anything else the
    signature of the builder does not take may be a mistake of the harness.
    """

    def __init__(self, message: str, *, expected: bool = True) -> None:
        super().__init__(message)
        self.expected = expected


#: Words that stages have which cannot be retried or tagged do not take.
NOT_TAKEN = re.compile(r"missing a required|unexpected keyword argument '(retry|tags)'")


def build(program: Mapping[str, Any], player: Player, *, in_branch: bool = False) -> Any:
    """Build the chart of a program.

    Raises
    ------
    ChartError
        What `build` refuses.
    NoWord
        What the builder does not take at all: the harness has called it by its own signature.
    """
    return _Building(program, player, in_branch).chart()


def fork_id(program: Mapping[str, Any], number: int) -> str:
    """Name the stage of the ``number``-th fork of children; upstream's forks have no id."""
    taken = set(ids_in(program))
    names = (f"fork{n or ''}" for n in range(number, number + len(taken) + 1))
    return next(name for name in names if name not in taken)


def ids_in(program: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the stages of one chart, branches and children too."""
    for stage in (program["start"], *program["steps"]):
        if "id" in stage:
            yield stage["id"]
        for inner in (*(stage.get("branches") or ()), *(stage.get("children") or ())):
            if "id" in inner:
                yield inner["id"]


def groups(program: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the steps of a program as stages: modifiers taken in, fork children gathered.

    Each has ``add`` and ``step``; a fork has ``id`` and ``members``.
    """
    found: list[dict[str, Any]] = []
    forks = 0
    for step in program["steps"]:
        add = step["add"]
        forking = add == "fork" or (add == "subflow" and step.get("mode", "next") in FORKS)
        if add in MODIFIERS:
            if not found:
                found.append({"add": "start", "step": {}, "changes": []})
            found[-1]["changes"].append(step)
        elif add == "contract":
            continue
        elif forking and found and found[-1]["add"] == "fork" and not found[-1]["changes"]:
            found[-1]["members"].append(step)
        else:
            group = {"add": "fork" if forking else add, "step": step, "changes": []}
            if forking:
                group["members"] = [step]
            found.append(group)
    for group in found:
        if group["add"] == "fork":
            mounts = all(step["add"] == "subflow" for step in group["members"])
            if mounts:
                group["id"] = f"{group['members'][0]['id']}.fork"
            else:
                group["id"] = fork_id(program, forks)
                forks += 1
            group["mounts"] = mounts
    return found


class _Building:
    def __init__(self, program: Mapping[str, Any], player: Player, in_branch: bool) -> None:
        self.program = program
        self.player = player
        self.in_branch = in_branch
        self.groups = groups(program)
        self.builder: Any = None

    def chart(self) -> Any:
        self.start()
        for group in self.groups:
            if group["add"] == "start":
                continue
            add = getattr(self, f"add_{group['add']}", None)
            if add is None:
                raise HarnessFailure(f"no step {group['add']!r} in the harness: {group['step']}")
            add(group["step"], group)
        return self.builder.build()

    # -- what every stage has ---------------------------------------------------------------

    def fn(self, stage: Mapping[str, Any], name: str = "ops", told: Any = as_value) -> Any:
        return self.player.stage(stage.get(name), in_branch=self.in_branch, told=told)

    def common(
        self, stage: Mapping[str, Any], changes: Sequence[Any] = (), *, name: bool = False
    ) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if name and "name" in stage:
            more["name"] = stage["name"]
        if stage.get("description") is not None:
            more["description"] = stage["description"]
        retries = [stage["retry"]] if stage.get("retry") is not None else []
        tags = [tuple(stage["tags"])] if stage.get("tags") is not None else []
        retries += [change for change in changes if change["add"] == "retry"]
        tags += [change["names"] for change in changes if change["add"] == "tag"]
        for word, given in (("retry", retries), ("tags", tags)):
            if len(given) > 1:
                raise NoWord(f"{word}= is given twice, which Python itself refuses")
            if given:
                more[word] = retry_of(given[0]) if word == "retry" else tuple(given[0])
        if "tags" in more and not more["tags"]:
            raise NoWord("tags=() says that there are none; nothing can be tagged with no tag")
        return more

    def call(self, method: Any, *args: Any, **options: Any) -> Any:
        """Call the builder, and tell what its signature does not take from what it refuses."""
        try:
            inspect.signature(method).bind(*args, **options)
        except TypeError as error:
            raise NoWord(
                f"{getattr(method, '__name__', method)}: {error}",
                expected=NOT_TAKEN.search(str(error)) is not None,
            ) from None
        return method(*args, **options)

    # -- the first stage --------------------------------------------------------------------

    def start(self) -> None:
        stage = self.program["start"]
        kind = stage.get("kind", "function")
        changes = next((g["changes"] for g in self.groups if g["add"] == "start"), ())
        more = self.common(stage, changes)
        options: dict[str, Any] = {}
        for step in self.program["steps"]:
            if step["add"] == "contract":
                options |= self.contract(step)
        if kind in ("selector", "decider"):
            self.builder = self.call(rb.flow_chart, stage["name"], **options)
            getattr(self, f"add_{kind}")(stage, {"changes": changes})
            return
        if kind == "pausable":
            fn = self.fn(stage, "execute", as_question)
            options["resume"] = self.fn(stage, "resume")
        elif kind in ("function", "streaming"):
            fn = self.fn(stage)
            if kind == "streaming":
                options["stream"] = stage.get("streamId") or stage["name"]
        else:
            raise HarnessFailure(f"no first stage of kind {kind!r} in the harness")
        self.builder = self.call(
            rb.flow_chart, stage["name"], fn, id=stage["id"], **options, **more
        )

    def contract(self, step: Mapping[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for ours, theirs in (("input_schema", "input"), ("output_schema", "output")):
            if step.get(theirs) is not None:
                options[ours] = read(step[theirs])
        if step.get("mapper") is not None:
            options["output"] = mapped(step["mapper"])
        return options

    # -- the steps --------------------------------------------------------------------------

    def add_function(self, step: Any, group: Any) -> None:
        more = self.common(step, group["changes"])
        self.call(self.builder.add_function, step["name"], self.fn(step), id=step["id"], **more)

    def add_same_function(self, step: Any, group: Any) -> None:
        fn = self.fn({"ops": step.get("ops") or []})
        for id in step["ids"]:
            self.call(self.builder.add_function, step["name"], fn, id=id)

    def add_streaming(self, step: Any, group: Any) -> None:
        more = self.common(step, group["changes"])
        if step.get("streamId") is not None:
            more["stream"] = step["streamId"]
        self.call(self.builder.add_streaming, step["name"], self.fn(step), id=step["id"], **more)

    def add_pausable(self, step: Any, group: Any) -> None:
        more = self.common(step, group["changes"])
        self.call(
            self.builder.add_pausable,
            step["name"],
            self.fn(step, "execute", as_question),
            self.fn(step, "resume"),
            id=step["id"],
            **more,
        )

    def add_decider(self, step: Any, group: Any) -> None:
        more = self.common(step, group["changes"])
        choosing = self.call(
            self.builder.add_decider,
            step["name"],
            self.fn(step, told=as_word),
            id=step["id"],
            **more,
        )
        for branch in step.get("branches") or ():
            self.branch(choosing, branch)
        default = decode(step.get("default", {"$js": "undefined"}))
        if default is not MISSING and default is not None:
            choosing.default(default)
        choosing.end()

    def add_selector(self, step: Any, group: Any) -> None:
        more = self.common(step, group["changes"])
        if step.get("failFast"):
            more["fail_fast"] = True
        choosing = self.call(
            self.builder.add_selector, step["name"], self.fn(step), id=step["id"], **more
        )
        for branch in step.get("branches") or ():
            self.branch(choosing, branch)
        choosing.end()

    def branch(self, choosing: Any, branch: Mapping[str, Any]) -> None:
        kind = branch.get("kind", "function")
        more = self.common(branch, name=True)
        if branch.get("loopTo") is not None:
            more["loop_to"] = branch["loopTo"]
        if kind in ("subflow", "lazy"):
            fn = self.inner(branch, lazy=kind == "lazy")
            more |= self.mount(branch, lazy=kind == "lazy")
        elif kind == "pausable":
            fn = self.fn(branch, "execute", as_question)
            more["resume"] = self.fn(branch, "resume")
        elif kind == "function":
            fn = self.fn(branch)
        else:
            raise HarnessFailure(f"no branch of kind {kind!r} in the harness")
        if "id" not in branch:
            raise NoWord("a branch has an id by its position in the call")
        self.call(choosing.branch, branch["id"], fn, **more)

    def add_fork(self, step: Any, group: Any) -> None:
        if group["mounts"]:
            for one in group["members"]:
                self.subchart(one, group["changes"], parallel=True)
            return
        more = self.common({}, group["changes"])
        if any(one.get("failFast") for one in group["members"]):
            more["fail_fast"] = True
        forking = self.call(self.builder.add_fork, "Fork", id=group["id"], **more)
        for one in group["members"]:
            for child in one.get("children") or [{**one, "kind": "subflow"}]:
                self.branch(forking, child)
        forking.end()

    def add_subflow(self, step: Any, group: Any) -> None:
        self.subchart(step, group["changes"])

    def subchart(self, step: Any, changes: Any, **how: Any) -> None:
        lazy = step.get("mode", "next").startswith("lazy")
        more = self.common(step, changes)
        self.call(
            self.builder.add_subchart,
            step.get("name") or step["id"],
            self.inner(step, lazy=lazy),
            id=step["id"],
            **self.mount(step, lazy=lazy),
            **more,
            **how,
        )

    def inner(self, step: Mapping[str, Any], *, lazy: bool) -> Any:
        if lazy:
            return lambda: build(step["chart"], self.player)
        return build(step["chart"], self.player)

    def mount(self, step: Mapping[str, Any], *, lazy: bool) -> dict[str, Any]:
        options = step.get("options") or {}
        unknown = set(options) - OPTIONS
        if unknown:
            raise HarnessFailure(f"no mount options {sorted(unknown)} in the harness")
        more: dict[str, Any] = {"lazy": True} if lazy else {}
        if "inputThrows" in options:
            more["inputs"] = throwing(options["inputThrows"])
        elif options.get("input") is not None:
            more["inputs"] = self.inputs(options["input"])
        if "outputThrows" in options:
            more["outputs"] = throwing(options["outputThrows"])
        elif options.get("output") is not None:
            more["outputs"] = outputs(options["output"])
        if "arrayMerge" in options:
            more["array_merge"] = options["arrayMerge"]
        if options.get("propagateBreak"):
            more["propagate_stop"] = True
        return more

    def inputs(self, pairs: Any) -> Any:
        def give(scope: Any) -> dict[str, Any]:
            found = {}
            for pair in pairs:
                value = decode(pair["value"]) if "value" in pair else self.seen(scope, pair["from"])
                if value is not MISSING:
                    found[pair["to"]] = plain(value)
            return found

        return give

    def seen(self, scope: Any, key: str) -> Any:
        if self.in_branch and key in ("item", "index") and key not in list(scope):
            return scope.args[key]
        return scope.get(key, MISSING)

    def add_for_each(self, step: Any, group: Any) -> None:
        more = self.common(step, group["changes"])
        unknown = set(step) - FOR_EACH
        if unknown:
            raise HarnessFailure(f"no fan-out options {sorted(unknown)} in the harness")
        if not step.get("no_config"):
            more["items"] = self.items(step["items"])
            more["branch"] = self.each(step["branch"])
        for ours, theirs in (("max_branches", "maxBranches"), ("into", "into")):
            if theirs in step:
                more[ours] = read(step[theirs])
        if step.get("failFast"):
            more["fail_fast"] = True
        self.call(self.builder.add_parallel_for_each, step["name"], id=step["id"], **more)

    def items(self, items: Any) -> Any:
        if "value" in items:
            return lambda scope: read(items["value"])

        def give(scope: Any) -> Any:
            found = self.seen(scope, items["from"])
            return None if found is MISSING else found

        return give

    def each(self, branch: Any) -> Any:
        if branch == "not_a_chart":
            return lambda item, index: {"no": "chart"}
        if isinstance(branch, Mapping) and "chart" in branch:
            return build(branch["chart"], self.player, in_branch=True)
        if isinstance(branch, Mapping) and "per_index" in branch:
            charts = [build(one, self.player, in_branch=True) for one in branch["per_index"]]
            return lambda item, index: charts[index]
        raise HarnessFailure(f"no fan-out branch like {branch!r} in the harness")

    def add_loop_to(self, step: Any, group: Any) -> None:
        self.call(self.builder.loop_to, step["target"])

    def add_start_again(self, step: Any, group: Any) -> None:
        if hasattr(self.builder, "start"):
            raise HarnessFailure("the builder has a start of its own now; call it here")
        raise NoWord("flow_chart makes the first stage, and a builder has no second one")


OPTIONS = {
    "input",
    "output",
    "arrayMerge",
    "propagateBreak",
    "convergeAt",
    "inputThrows",
    "outputThrows",
}
FOR_EACH = {
    "add",
    "name",
    "id",
    "items",
    "branch",
    "maxBranches",
    "into",
    "failFast",
    "description",
    "no_config",
    "retry",
    "tags",
}


def throwing(message: str) -> Any:
    """Make a mapper that throws."""

    def throw(*_: Any) -> Any:
        raise Thrown(message)

    return throw


def outputs(pairs: Any) -> Any:
    """Make an output mapper."""

    def give(inner: Any, scope: Any) -> dict[str, Any]:
        found = {}
        for pair in pairs:
            if "value" in pair:
                value = decode(pair["value"])
            else:
                value = inner.get(pair["from"], MISSING) if isinstance(inner, Mapping) else MISSING
            # A mapped nothing sets the key to nothing, where there is one.
            if value is not MISSING:
                found[pair["to"]] = plain(value)
            elif scope is not None and pair["to"] in list(scope):
                found[pair["to"]] = None
        return found

    return give


def mapped(mapper: Any) -> Any:
    """Make the function that shapes what a run gives out of its final state."""
    if isinstance(mapper, list):
        give = outputs(mapper)
        return lambda state: give(state, None)
    if isinstance(mapper, Mapping) and ("output" in mapper or "pairs" in mapper):
        return mapped(mapper.get("output") or mapper["pairs"])
    if isinstance(mapper, Mapping) and {"to", "from"} <= set(mapper):
        return mapped([mapper])
    raise HarnessFailure(f"no output mapper like {mapper!r} in the harness")


def retry_of(policy: Mapping[str, Any]) -> Any:
    """Make our retry of a recorded one."""
    options: dict[str, Any] = {}
    backoff = decode(policy.get("backoffMs", {"$js": "undefined"}))
    if isinstance(backoff, int | float) and not isinstance(backoff, bool):
        finite = isfinite(backoff) and backoff > 0
        options["backoff"] = backoff / 1000 if finite else 0.0
    if "retryOnMessage" in policy:
        options["on"] = lambda error: policy["retryOnMessage"] in str(error)
    if policy.get("retryOnThrows"):
        options["on"] = throwing(str(policy["retryOnThrows"]))
    return rb.Retry(read(policy.get("attempts", {"$js": "undefined"})), **options)
