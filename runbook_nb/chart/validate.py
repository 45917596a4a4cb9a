"""What makes a chart buildable: every check of ``build``, all problems reported together.

Chart layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runbook_nb._text import did_you_mean, listed, meant
from runbook_nb.chart.model import (
    MAX_NESTING,
    Branch,
    Chart,
    DeciderStage,
    FanOutStage,
    ForkStage,
    FunctionStage,
    JudgeEachStage,
    PausableStage,
    Retry,
    SelectorStage,
    Stage,
    StreamingStage,
    SubchartStage,
    branches_of,
    inner_chart,
)
from runbook_nb.errors import Problem

#: Characters that separate the parts of a runtime id, so an id may not hold them.
RESERVED = "/#~"

_GENERATOR, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x100, 0x200

_DEEP = "hand items on to a chart of their own instead of nesting another one"
_BRANCHLESS = 'add .branch("word", function) before .end()'

_ID = re.compile(rf"[^\s{RESERVED}]([^{RESERVED}\n\r\t]*[^\s{RESERVED}])?")


def check_chart(name: str, stages: Sequence[Stage], loop_to: Any = None) -> list[Problem]:
    """Find everything that keeps a chart from being built.

    Examples
    --------
    >>> from runbook_nb.chart.model import FunctionStage
    >>> [str(p) for p in check_chart("c", [FunctionStage(id="a/b", name="A", fn=print)])]
    ["'a/b': an id may not be blank, padded, or hold any of / # ~; write a short word: id='load'"]
    """
    problems = list(_check_name(name))
    if not stages:
        problems.append(
            Problem(
                message="a chart needs at least one stage",
                where="stages",
                fix="give flow_chart the first one, or add it",
            )
        )
    seen: dict[str, str] = {}
    earlier: list[str] = []
    for stage in stages:
        problems.extend(_check_stage(stage, seen))
        earlier.append(str(stage.id))
        if isinstance(stage, DeciderStage):
            problems.extend(_check_decider(stage, seen))
        elif isinstance(stage, ForkStage):
            problems.extend(_check_fork(stage, seen))
        elif isinstance(stage, FanOutStage):
            problems.extend(_check_fan_out(stage))
        for branch in branches_of(stage):
            if branch.loop_to is not None:
                problems.extend(_check_loop(branch.loop_to, repr(branch.id), earlier))
    if loop_to is not None:
        problems.extend(_check_loop(loop_to, f"loop_to({loop_to!r})", earlier))
    return problems


def _check_loop(target: Any, where: str, earlier: Sequence[str]) -> Iterator[Problem]:
    if target not in earlier:
        yield Problem(
            message=f"goes back to {target!r}, which is no stage of the chart before it",
            where=where,
            fix=did_you_mean(str(target), earlier) or f"its stages are {listed(list(earlier))}",
        )


def is_text(value: Any) -> bool:
    """Say whether something is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def yields(fn: Any) -> bool:
    """Say whether calling a function only makes a generator.

    Examples
    --------
    >>> def rows(scope):
    ...     yield 1
    >>> yields(rows), yields(print)
    (True, False)
    """
    flags = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    awaitable = flags & _ITERABLE_COROUTINE
    return bool(flags & _ASYNC_GENERATOR) or (bool(flags & _GENERATOR) and not awaitable)


def nesting(chart: Chart) -> int:
    """Count how deep charts nest in a chart, those known at build only.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> nesting(flow_chart("c", print, id="a").build())
    0
    """
    stages = [
        one
        for stage in chart.stages
        for one in (stage, *(branch.stage for branch in branches_of(stage)))
    ]
    inner = [chart for chart in map(inner_chart, stages) if chart is not None]
    holds = any(isinstance(stage, FanOutStage | SubchartStage) for stage in stages)
    return max((1 + nesting(chart) for chart in inner), default=int(holds))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def is_id(value: Any) -> bool:
    """Say whether a value can be the id of a stage or a branch."""
    return is_text(value) and _ID.fullmatch(value) is not None


def _check_name(name: Any) -> Iterator[Problem]:
    if not is_text(name):
        yield Problem(
            message=f"a chart needs a name, not {name!r}",
            where="name",
            fix='write flow_chart("what it is for", …)',
        )


def _check_stage(stage: Stage, seen: dict[str, str]) -> Iterator[Problem]:
    where = repr(stage.id)
    if not is_id(stage.id):
        yield Problem(
            message=f"an id may not be blank, padded, or hold any of {' '.join(RESERVED)}",
            where=where,
            fix="write a short word: id='load'",
        )
    elif stage.id in seen:
        yield Problem(
            message=f"two stages have this id ({seen[stage.id]!r} and {stage.name!r})",
            where=where,
            fix="give each stage an id of its own",
        )
    else:
        seen[stage.id] = stage.name
    if not is_text(stage.name):
        yield Problem(
            message=f"a stage needs a name, not {stage.name!r}",
            where=where,
            fix="name it as a reader should see it",
        )
    fn: Any = stage.fn if isinstance(stage, FunctionStage) else None
    if isinstance(stage, FunctionStage) and not callable(fn):
        yield Problem(
            message=f"the stage's function is {fn!r}, which cannot be called",
            where=where,
            fix="pass the function itself, not what it returns",
        )
    elif yields(fn):
        yield Problem(
            message="the stage's function is a generator: its body would never run",
            where=where,
            fix="return a value instead of yielding",
        )
    if isinstance(stage, PausableStage):
        yield from _check_function(
            stage.resume, "resume", where, "it takes the scope and the answer"
        )
    if isinstance(stage, StreamingStage) and not is_text(stage.stream):
        yield Problem(
            message=f"stream is {stage.stream!r}, not a text",
            where=where,
            fix="give the stream an id, or leave it out",
        )
    if isinstance(stage, SubchartStage):
        yield from _check_subchart(stage, where)
    retry: Any = stage.retry
    if retry is not None and not isinstance(retry, Retry):
        yield Problem(message=f"retry is {retry!r}", where=where, fix="write rb.Retry(attempts=3)")
    description: Any = stage.description
    if description is not None and not isinstance(description, str):
        yield Problem(
            message=f"the description is {description!r}, not a text",
            where=where,
            fix="say in a sentence what it does, or leave it out",
        )
    yield from _check_tags(stage, where)


def _check_function(fn: Any, name: str, where: str, fix: str) -> Iterator[Problem]:
    if not callable(fn):
        yield Problem(message=f"{name} is {fn!r}, which cannot be called", where=where, fix=fix)
    elif yields(fn):
        yield Problem(
            message=f"{name} is a generator: its body would never run",
            where=where,
            fix="return a value instead of yielding",
        )


def _check_subchart(stage: SubchartStage, where: str) -> Iterator[Problem]:
    chart: Any = stage.chart
    if stage.lazy:
        if not callable(chart) or isinstance(chart, Chart):
            yield Problem(
                message=f"a lazy chart is a function that gives it, not {type(chart).__name__}",
                where=where,
                fix="write lambda: chart, or leave out lazy",
            )
    elif not isinstance(chart, Chart):
        fix = "call .build() on it" if hasattr(chart, "build") else "pass a built chart"
        yield Problem(
            message=f"the chart is {type(chart).__name__}, not a built chart", where=where, fix=fix
        )
    elif nesting(chart) >= MAX_NESTING:
        yield Problem(
            message=f"its charts nest {nesting(chart)} deep; the most is {MAX_NESTING}",
            where=where,
            fix=_DEEP,
        )
    for name in ("inputs", "outputs"):
        mapping = getattr(stage, name)
        if mapping is None:
            continue
        if callable(mapping):
            yield from _check_function(mapping, name, where, "")
        elif not isinstance(mapping, Mapping) or not all(
            is_text(key) and is_text(value) for key, value in mapping.items()
        ):
            yield Problem(
                message=f"{name} is {mapping!r}, neither a function nor a mapping of names",
                where=where,
                fix='write {"inner name": "key here"} for inputs, the other way for outputs',
            )
    if stage.array_merge not in ("concat", "replace"):
        yield Problem(
            message=f"array_merge is {stage.array_merge!r}, neither 'concat' nor 'replace'",
            where=where,
            fix="leave it out to put lists behind those that are there",
        )
    if stage.retry is not None:
        yield Problem(
            message="a chart is not tried again as a whole",
            where=where,
            fix="give retry to the stages inside",
        )
    if stage.blocking:
        yield Problem(
            message="a chart is not blocking as a whole",
            where=where,
            fix="give blocking to the stages inside",
        )


def _check_branches(
    branches: Sequence[Branch], where: str, seen: dict[str, str]
) -> Iterator[Problem]:
    routes: set[str] = set()
    for branch in branches:
        if branch.route in routes:
            yield Problem(
                message=f"branch {branch.route!r} is declared twice",
                where=where,
                fix="give each branch a word of its own",
            )
        routes.add(branch.route)
        yield from _check_stage(branch.stage, seen)


def _check_fork(stage: ForkStage, seen: dict[str, str]) -> Iterator[Problem]:
    where = repr(stage.id)
    if isinstance(stage, SelectorStage):
        yield from _check_judge(stage, where, "rb.select(…)")
    word = "selector" if isinstance(stage, SelectorStage) else "fork"
    if not stage.branches:
        yield Problem(message=f"a {word} needs at least one branch", where=where, fix=_BRANCHLESS)
    yield from _check_branches(stage.branches, where, seen)
    routes = {branch.route for branch in stage.branches}
    if isinstance(stage, SelectorStage):
        yield from _check_targets(stage, routes, where)
    if stage.into is not None and not is_text(stage.into):
        yield Problem(
            message=f"into is {stage.into!r}, not a state key",
            where=where,
            fix="name the key the slots go to: into='results'",
        )
    merge = stage.merge
    if merge is not None and merge != "keys" and not callable(merge):
        yield Problem(
            message=f"merge is {merge!r}, neither 'keys' nor a function",
            where=where,
            fix="write merge='keys', or merge=function(scope, slots)",
        )
    elif callable(merge):
        yield from _check_function(merge, "merge", where, "")
    if not _is_count(stage.max_concurrency):
        yield Problem(
            message=f"max_concurrency is {stage.max_concurrency!r}, not a whole number from 1",
            where=where,
            fix="say how many may wait at once, or leave it out",
        )


def _check_judge(stage: Any, where: str, what: str) -> Iterator[Problem]:
    judge: Any = stage.judge
    word = "selector" if isinstance(stage, SelectorStage) else "decider"
    if (stage.rules is None) == (judge is None):
        yield Problem(
            message=f"a {word} judges by exactly one of rules= and judge=",
            where=where,
            fix=f"give the rule set, or a function of the scope that returns {what}",
        )
    elif judge is not None and not callable(judge):
        yield Problem(
            message=f"judge is {judge!r}, which cannot be called",
            where=where,
            fix="a RuleSet goes in as rules=",
        )
    elif yields(judge):
        yield Problem(
            message="judge is a generator: its body would never run",
            where=where,
            fix="return the decision instead of yielding",
        )


def _check_tags(stage: Stage, where: str) -> Iterator[Problem]:
    tags = stage.tags
    if any(not is_text(tag) or "~" in tag for tag in tags):
        yield Problem(
            message=f"tags are non-blank texts without ~, not {list(tags)!r}",
            where=where,
            fix='write tags=["slow", "network"]',
        )
    elif len(set(tags)) != len(tags):
        yield Problem(
            message=f"a tag is given twice in {list(tags)!r}", where=where, fix="give it once"
        )


def _check_decider(stage: DeciderStage, seen: dict[str, str]) -> Iterator[Problem]:
    where = repr(stage.id)
    yield from _check_judge(stage, where, "rb.decide(…)")
    declared = [branch for branch in stage.branches if not branch.added]
    if not declared:
        yield Problem(message="a decider needs at least one branch", where=where, fix=_BRANCHLESS)
    yield from _check_branches(stage.branches, where, seen)
    routes = {branch.route for branch in stage.branches}
    if stage.default is not None and stage.default not in routes:
        yield Problem(
            message=f"the default {stage.default!r} is no branch of this decider",
            where=where,
            fix=did_you_mean(str(stage.default), routes) or f"it has {listed(sorted(routes))}",
        )
    yield from _check_targets(stage, routes, where)


def _check_targets(
    stage: DeciderStage | SelectorStage, routes: set[str], where: str
) -> Iterator[Problem]:
    if stage.rules is None:
        return
    branches = getattr(stage.rules, "branches", None)
    if branches is None:
        yield Problem(
            message=f"rules is {type(stage.rules).__name__}, not a RuleSet",
            where=where,
            fix='write rules=rb.RuleSet("name", "v1", rules=[…], default=…)',
        )
        return
    word = "decider"
    whose = "a rule" if stage.rules.is_bare else f"rule set {stage.rules.name!r}"
    if isinstance(stage, SelectorStage):
        # What cannot be read selects nothing, and there is no default.
        word, branches = "selector", tuple(dict.fromkeys(r.then for r in stage.rules.rules))
    for target in branches:
        if target not in routes:
            yield Problem(
                message=f"{whose} routes to {target!r}, which is no branch of this {word}",
                where=where,
                fix=_branch_fix(target, routes, branches),
            )


def _branch_fix(target: str, routes: set[str], branches: Iterable[str]) -> str:
    """Say how a rule and a chart come together; which of the two is misspelt nobody here knows."""
    near = meant(target, routes.difference(branches))
    if near is not None:
        return f"the chart's branch is {near!r}: make them the same"
    return did_you_mean(target, routes) or f'add .branch("{target}", …)'


def _check_fan_out(stage: FanOutStage) -> Iterator[Problem]:
    where = repr(stage.id)
    items: Any = stage.items
    branch: Any = stage.branch
    if not callable(items):
        yield Problem(
            message=f"items is {type(items).__name__}, which cannot be called",
            where=where,
            fix="write items=lambda scope: scope[…]",
        )
    elif yields(items):
        yield Problem(
            message="items is a generator", where=where, fix="return a list instead of yielding"
        )
    judges = isinstance(stage, JudgeEachStage)  # what is wrong with its rules is known already
    if not isinstance(branch, Chart) and not callable(branch) and not judges:
        fix = "call .build() on it" if hasattr(branch, "build") else "pass a built chart"
        yield Problem(
            message=f"branch is {type(branch).__name__}, neither a built chart nor a function",
            where=where,
            fix=fix,
        )
    if isinstance(branch, Chart) and nesting(branch) >= MAX_NESTING:
        yield Problem(
            message=f"its branch nests charts {nesting(branch)} deep; the most is {MAX_NESTING}",
            where=where,
            fix=_DEEP,
        )
    for name in ("max_branches", "max_concurrency"):
        value = getattr(stage, name)
        if not _is_count(value):
            yield Problem(
                message=f"{name} is {value!r}, not a whole number from 1",
                where=where,
                fix=f"write {name}=50",
            )
    if not is_text(stage.into) and not (judges and stage.into is None):
        yield Problem(
            message=f"into is {stage.into!r}, not a state key",
            where=where,
            fix="name the key the slots go to: into='results'",
        )
    if stage.subject is not None and not is_text(stage.subject):
        yield Problem(
            message=f"subject is {stage.subject!r}, not a key of the items",
            where=where,
            fix="name the key of an item that says who it is, or leave it out",
        )
