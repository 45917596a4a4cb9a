"""Charts as data: every kind of stage in every other, drawn at random, and how to run them.

`charts` draws a `ChartSpec`; `build` makes the chart for the engine, in a `World` that says how its
functions run (at once, async, in threads) and what becomes of their questions. `eager_charts` walks
the same data and writes down what must come of it.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import RunSignal

#: What deciders by rules judge by, and what selectors do.
SIZES = rb.RuleSet(
    "size", "v1", [rb.Rule({"n": {"gt": 1}}, "big", label="more than one")], default="small"
)
CHECKS = [rb.Rule({"n": {"gt": 0}}, "a"), rb.Rule({"n": {"gt": 1}}, "b", label="many")]
WORDS = ("big", "small", "declined")
LETTERS = "abc"

Op = tuple[str, str, Any]


class Absent(RunSignal):
    """Ends a run from inside, as when there is nothing to do."""

    run_status = "absent"


# -- the data ----------------------------------------------------------------------------------


class _Drawn:
    """Shows itself without what is as usual."""

    def __repr__(self) -> str:
        parts = [
            f"{part.name}={value!r}"
            for part in fields(self)  # type: ignore[arg-type]
            if (value := getattr(self, part.name)) != part.default
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, repr=False)
class Work(_Drawn):
    """A stage of one function: what it does to the state, what it asks, how it ends.

    ``fault`` is met where the item's last number is ``at``, everywhere when that is None. The first
    ``fails`` attempts of each execution fail; ``tries`` is how many there may be.
    """

    ops: tuple[Op, ...] = ()
    result: Any = None
    fault: str | None = None
    at: int | None = None
    asks: int = 0
    form: str = "stage"
    tries: int = 1
    fails: int = 0


@dataclass(frozen=True, repr=False)
class Decider(_Drawn):
    """Picks one branch by ``rules``, by a ``decision`` its judge returns, or by a ``word``.

    With ``rounds`` it goes back to ``target`` that often before it goes on.
    """

    by: str
    judge: Work
    branches: tuple[Work | Mount, ...]
    rounds: int = 0
    target: str = "self"


@dataclass(frozen=True, repr=False)
class Fork(_Drawn):
    """Runs children side by side: all of them, or those selected by rules or a judge."""

    children: tuple[Work | Mount, ...]
    by: str | None = None
    judge: Work = Work()
    named: tuple[str, ...] = ()
    into: bool = False
    merge: str | None = None
    fail_fast: bool = False


@dataclass(frozen=True, repr=False)
class Mount(_Drawn):
    """Runs a chart in a state of its own."""

    chart: ChartSpec
    inputs: str = "mapping"
    outputs: str | None = None
    array_merge: str = "concat"
    propagate: bool = False
    lazy: bool = False


@dataclass(frozen=True, repr=False)
class Fan(_Drawn):
    """Runs a chart per item; with ``rows`` it judges a row per item instead."""

    items: int
    cap: int
    branch: ChartSpec
    judge: Work = Work()
    fail_fast: bool = False
    factory: bool = False
    factory_fault: str | None = None
    rows: bool = False


StageSpec = Work | Decider | Fork | Mount | Fan


@dataclass(frozen=True, repr=False)
class ChartSpec(_Drawn):
    """A chart: a first stage that names the item, a gate when it loops, and the stages drawn."""

    stages: tuple[StageSpec, ...]
    passes: int = 0


#: What the ids of a stage begin with, by its kind; names are the same in capitals.
_KINDS: dict[type, str] = {Work: "s", Decider: "d", Fork: "f", Mount: "m", Fan: "x"}


def id_of(stage: StageSpec, place: int) -> str:
    """Name a stage by its kind and place."""
    return f"{_KINDS[type(stage)]}{place}"


def words_of(stage: StageSpec) -> tuple[str, ...]:
    """Give the words that lead to a stage's branches, in the order they are declared."""
    if isinstance(stage, Fork):
        return tuple(LETTERS[: len(stage.children)])
    if isinstance(stage, Decider):
        return (*WORDS, "again") if stage.rounds else WORDS
    return ()


def branch_ids(spec: ChartSpec) -> dict[tuple[int, str], str]:
    """Give the id of each branch: its word, with its owner's id in front where that is taken."""
    taken = {"start", "gate", *(id_of(stage, place) for place, stage in enumerate(spec.stages))}
    ids: dict[tuple[int, str], str] = {}
    for place, stage in enumerate(spec.stages):
        for word in words_of(stage):
            ids[place, word] = word if word not in taken else f"{id_of(stage, place)}.{word}"
            taken.add(ids[place, word])
    return ids


def row_of(item: str, number: int) -> dict[str, Any]:
    """Give the row of an item that is judged; every other one has its keys in another order."""
    row = {"item": item, "n": number}
    return row if number % 2 else {"n": number, "item": item}


def is_met(spec: Work, item: str) -> bool:
    """Say whether a stage's fault is met where the item is this one."""
    return spec.fault is not None and (spec.at is None or item.endswith(f".{spec.at}"))


def answer_to(reason: str) -> int:
    """Answer a question: the same one always gets the same answer."""
    return zlib.crc32(reason.encode()) % 5


def kinds_in(spec: Any) -> Counter[str]:
    """Count the kinds of stages in a chart, however deep, and the faults of their functions."""
    found: Counter[str] = Counter()
    if isinstance(spec, ChartSpec):
        for stage in spec.stages:
            found += kinds_in(stage)
        return found
    found[type(spec).__name__] += 1
    if isinstance(spec, Work):
        found["ask"] += spec.asks
        found[spec.fault or "fine"] += 1
    for name in ("judge", "chart", "branch"):
        if hasattr(spec, name):
            found += kinds_in(getattr(spec, name))
    for inner in (*getattr(spec, "branches", ()), *getattr(spec, "children", ())):
        found += kinds_in(inner)
    found["fail_fast"] += bool(getattr(spec, "fail_fast", False))
    found["rows"] += bool(getattr(spec, "rows", False))
    return found


# -- drawing -----------------------------------------------------------------------------------

KEYS = st.sampled_from(["n", "a", "b"])
VALUES = st.sampled_from([0, 1, 2, "x", None, True])
RESULTS = st.sampled_from([None, None, 7, "done", {"n": 2, "list": [3]}])

#: Faults of one stage alone, and those that end the run wherever they are met.
ORDINARY = ("error", "stop")
ENDING = ("signal", "cancel", "keyboard")


def ops(keys: st.SearchStrategy[str] = KEYS) -> st.SearchStrategy[Op]:
    """Draw one thing done to the state."""
    return st.one_of(
        st.tuples(st.just("write"), keys, VALUES),
        st.tuples(st.just("read"), st.one_of(keys, st.just("list")), st.none()),
        st.tuples(st.just("append"), st.just("list"), VALUES),
        st.tuples(st.just("merge"), st.just("map"), st.dictionaries(st.sampled_from("xy"), VALUES)),
        st.tuples(st.just("delete"), keys, st.none()),
        st.tuples(st.just("emit"), st.just("event"), VALUES),
    )


@dataclass(frozen=True)
class Draw:
    """What may be in the charts that are drawn."""

    faults: tuple[str, ...] = ()
    asks: int = 0
    retries: bool = True
    fail_fast: bool = True
    depth: int = 2
    #: Of how many stages one does what may go wrong or asks.
    rarely: int = 8

    def chance(self, some: Any, nothing: Any = None) -> st.SearchStrategy[Any]:
        """Draw something now and then."""
        if some is None:
            return st.just(nothing)
        return st.sampled_from(range(self.rarely)).flatmap(
            lambda n: some if n == self.rarely - 1 else st.just(nothing)
        )

    def work(self, *, keys: Any = KEYS, forms: bool = True, retries: bool = True) -> Any:
        """Draw a stage of one function."""
        fault = self.chance(st.sampled_from(self.faults) if self.faults else None)
        tries = self.chance(st.integers(2, 3) if retries and self.retries else None, 1)
        return st.builds(
            Work,
            ops=st.lists(ops(keys), max_size=3).map(tuple),
            result=RESULTS,
            fault=fault,
            at=st.one_of(st.none(), st.integers(0, 2)),
            asks=self.chance(st.integers(1, self.asks) if self.asks else None, 0),
            form=st.sampled_from(["stage", "stage", "stream", "pausable"] if forms else ["stage"]),
            tries=tries,
            fails=st.integers(0, 2),
        ).map(lambda work: work if work.tries > 1 else replace(work, fails=0))

    def judge(self) -> Any:
        """Draw what a judge does before it judges."""
        return self.work(forms=False)

    def charts(self, depth: int | None = None) -> st.SearchStrategy[ChartSpec]:
        """Draw a chart."""
        depth = self.depth if depth is None else depth
        kinds = [self.work(), self.work(), self.deciders(depth), self.forks(depth)]
        if depth:
            kinds += [self.mounts(depth), self.fans(depth)]
        stages = st.lists(st.one_of(kinds), min_size=1, max_size=3).map(tuple)
        return st.builds(ChartSpec, stages, self.chance(st.integers(1, 2), 0))

    def parts(self, depth: int, **more: Any) -> Any:
        """Draw what a branch or a child may be."""
        work = self.work(**more)
        return st.one_of(work, work, self.mounts(depth)) if depth else work

    def deciders(self, depth: int) -> st.SearchStrategy[Decider]:
        """Draw a decider."""

        def sound(decider: Decider) -> Decider:
            return decider if decider.by == "word" else replace(decider, rounds=0)

        count = len(WORDS) + 1
        return st.builds(
            Decider,
            st.sampled_from(["rules", "decision", "word"]),
            self.judge(),
            st.lists(self.parts(depth), min_size=count, max_size=count).map(tuple),
            st.sampled_from([0, 0, 1, 2]),
            st.sampled_from(["self", "start"]),
        ).map(sound)

    def forks(self, depth: int) -> st.SearchStrategy[Fork]:
        """Draw a fork or a selector."""
        children = st.tuples(
            *[self.parts(depth, keys=st.sampled_from([letter, letter, "a"])) for letter in LETTERS]
        )
        return st.builds(
            Fork,
            children,
            st.sampled_from([None, None, "rules", "selection", "words", "set"]),
            self.judge(),
            st.lists(st.sampled_from(LETTERS), max_size=3).map(tuple),
            st.booleans(),
            st.sampled_from([None, None, "keys", "keys", "function"]),
            st.booleans() if self.fail_fast and self.faults else st.just(False),
        )

    def mounts(self, depth: int) -> st.SearchStrategy[Mount]:
        """Draw a chart mounted in another."""
        return st.builds(
            Mount,
            st.deferred(lambda: self.charts(depth - 1)),
            st.sampled_from(["mapping", "function", "function"]),
            st.sampled_from([None, "mapping", "function"]),
            st.sampled_from(["concat", "replace"]),
            st.booleans(),
            st.booleans(),
        )

    def fans(self, depth: int) -> st.SearchStrategy[Fan]:
        """Draw a fan-out."""
        fault = st.sampled_from([f for f in self.faults if f != "stop"] or [None])

        def sound(fan: Fan) -> Fan:
            if not fan.rows:
                return fan
            plain = ChartSpec((Work(),))
            return replace(fan, branch=plain, fail_fast=False, factory=False, factory_fault=None)

        return st.builds(
            Fan,
            st.integers(0, 3),
            st.integers(1, 4),
            st.deferred(lambda: self.charts(depth - 1)),
            self.work(forms=False, retries=False),
            st.booleans() if self.fail_fast and self.faults else st.just(False),
            st.booleans(),
            self.chance(fault if self.faults else None),
            st.sampled_from([False, False, True]),
        ).map(sound)


@st.composite
def _copied(draw: st.DrawFn, drawn: st.SearchStrategy[ChartSpec]) -> ChartSpec:
    # Of what it made itself hypothesis tells part by part how, which takes it minutes.
    return deepcopy(draw(drawn))


def charts(
    faults: tuple[str, ...] = (),
    *,
    asks: int = 0,
    retries: bool = True,
    fail_fast: bool = True,
    depth: int = 2,
) -> st.SearchStrategy[ChartSpec]:
    """Draw a chart.

    Parameters
    ----------
    faults : tuple of str
        What its functions may do wrong: any of `ORDINARY` and `ENDING`.
    asks : int
        How many questions one function may ask.
    retries, fail_fast : bool
        Whether stages are tried again, and whether a failed branch may end the run.
    depth : int
        How many charts lie in one another.
    """
    return _copied(Draw(faults, asks, retries, fail_fast, depth).charts())


# -- the engine's chart ------------------------------------------------------------------------


@dataclass
class World:
    """How the functions of a chart run, and what they leave: calls counted, questions asked.

    Attributes
    ----------
    form : {"sync", "async", "thread"}
        What the functions are.
    turns : tuple of int
        How often each async call lets others go first, in turn.
    told : bool
        Whether questions are answered at once instead of asked.
    """

    form: str = "sync"
    turns: tuple[int, ...] = (1,)
    told: bool = False
    stop: Stop = field(default_factory=Stop)
    #: Executions of each function, by its stage's key in the structure.
    calls: Counter[str] = field(default_factory=Counter)
    #: Where each stage is in its attempts.
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    made: int = 0
    #: What stages were handed when they read, and how it looked then.
    handed: list[tuple[Any, Any]] = field(default_factory=list)

    def formed(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Give a function in the form of this world."""
        if self.form != "async":
            return fn

        async def later(*args: Any) -> Any:
            self.made += 1
            for _ in range(self.turns[self.made % len(self.turns)]):
                await asyncio.sleep(0)
            return fn(*args)

        return later

    @property
    def blocking(self) -> bool:
        """Whether stages run in threads."""
        return self.form == "thread"

    def ask(self, scope: Any, reason: str) -> int:
        """Ask, or know the answer."""
        answer: int = answer_to(reason) if self.told else interrupt(scope, reason)
        return answer


def item_of(scope: Any) -> str:
    """Give the item a stage works on, by a look that leaves no trace."""
    return str(scope._data.get("item", "?"))


def do_ops(scope: Any, done: tuple[Op, ...], handed: list[tuple[Any, Any]]) -> None:
    """Do what a stage does to the state; note what it was handed, and how that looked."""
    for kind, key, value in done:
        if kind == "write":
            scope[key] = value
        elif kind == "read":
            found = scope.get(key)
            handed.append((found, deepcopy(found)))
        elif kind == "append":
            scope.append(key, value)
        elif kind == "merge":
            scope.merge(key, value)
        elif kind == "emit":
            scope.emit(key, value)
        elif key in scope._data:  # a look that leaves no trace: deleting what is not there fails
            scope.delete(key)


def do_fault(scope: Any, kind: str | None) -> None:
    """End as a stage ends that goes wrong."""
    if kind == "error":
        raise RuntimeError("boom")
    if kind == "stop":
        scope.stop("enough")
    elif kind == "signal":
        raise Absent("nothing there")
    elif kind == "cancel":
        raise asyncio.CancelledError
    elif kind == "keyboard":
        raise KeyboardInterrupt


class Functions:
    """The functions of one stage, the structure key of which is ``key``."""

    def __init__(self, spec: Work, key: str, world: World) -> None:
        self.spec = spec
        self.key = key
        self.world = world

    def begin(self, scope: Any) -> None:
        """Count the execution, do the work, and fail as often as the stage is to be tried again."""
        spec, world = self.spec, self.world
        each = (self.key, item_of(scope))
        attempt = world.attempts[each]
        world.calls[self.key] += attempt == 0
        do_ops(scope, spec.ops, world.handed)
        if spec.form == "stream":
            for token in ("on", "ly"):
                scope.stream(token)
        if attempt < spec.fails:
            last = attempt + 1 >= spec.tries
            world.attempts[each] = 0 if last else attempt + 1
            raise ValueError("again")
        world.attempts[each] = 0

    def finish(self, scope: Any, first: int) -> Any:
        """Ask what is left to ask, and end."""
        for number in range(first, self.spec.asks):
            scope.append("said", self.world.ask(scope, self.question(scope, number)))
        item = item_of(scope)
        do_fault(scope, self.spec.fault if is_met(self.spec, item) else None)
        return self.spec.result

    def question(self, scope: Any, number: int) -> str:
        """Give the words of a question."""
        return f"{self.key} {item_of(scope)} {number}?"

    def whole(self, scope: Any) -> Any:
        """Do all of it in one function."""
        self.begin(scope)
        return self.finish(scope, 0)

    def execute(self, scope: Any) -> Any:
        """Do the first half of a pausable stage."""
        self.begin(scope)
        if self.spec.asks:
            return self.question(scope, 0)
        self.finish(scope, 0)
        return None

    def resume(self, scope: Any, answer: Any) -> Any:
        """Do the second half."""
        self.world.calls[self.key] += 1
        scope.append("said", answer)
        return self.finish(scope, 1)

    def told(self, scope: Any) -> Any:
        """Do both halves of a pausable stage, the answer known."""
        question = self.execute(scope)
        return None if question is None else self.resume_told(scope, question)

    def resume_told(self, scope: Any, question: str) -> Any:
        """Do the second half where the first has just ended."""
        scope.append("said", answer_to(question))
        return self.finish(scope, 1)


def build(spec: ChartSpec, world: World, name: str = "c", path: str = "") -> Any:
    """Make the chart of a spec; ``path`` is what its structure keys begin with."""
    return _Building(spec, world, name, path).chart()


class _Building:
    def __init__(self, spec: ChartSpec, world: World, name: str, path: str) -> None:
        self.spec = spec
        self.world = world
        self.name = name
        self.path = path
        self.ids = branch_ids(spec)
        self.builder = flow_chart(
            name, world.formed(self.start), id="start", blocking=world.blocking
        )

    def start(self, scope: Any) -> None:
        self.world.calls[f"{self.path}start"] += 1
        if "item" not in scope._data:
            scope["item"] = scope.args.get("item", "r")

    def gate(self, scope: Any) -> None:
        self.world.calls[f"{self.path}gate"] += 1
        scope["passes"] = scope.get("passes", 0) + 1
        if scope._data["passes"] > self.spec.passes:
            scope.stop("round enough")

    def chart(self) -> Any:
        builder, world, spec = self.builder, self.world, self.spec
        if spec.passes:
            builder.add_function(
                "GATE", world.formed(self.gate), id="gate", blocking=world.blocking
            )
        for place, stage in enumerate(spec.stages):
            stage_id = id_of(stage, place)
            if isinstance(stage, Work):
                self.work(stage, stage_id)
            elif isinstance(stage, Decider):
                self.decider(stage, stage_id, place)
            elif isinstance(stage, Fork):
                self.fork(stage, stage_id, place)
            elif isinstance(stage, Mount):
                facts = self.mount(stage, stage_id)
                builder.add_subchart(stage_id.upper(), facts.pop("fn"), id=stage_id, **facts)
            else:
                self.fan(stage, stage_id)
        if spec.passes:
            builder.loop_to("gate")
        return builder.build()

    # -- one stage -------------------------------------------------------------------------

    def facts(self, spec: Work) -> dict[str, Any]:
        retry = Retry(spec.tries, on=(ValueError,)) if spec.tries > 1 else None
        return {"retry": retry, "blocking": self.world.blocking}

    def functions(self, spec: Work, stage_id: str) -> Functions:
        return Functions(spec, f"{self.path}{stage_id}", self.world)

    def work(self, spec: Work, stage_id: str) -> None:
        does, formed = self.functions(spec, stage_id), self.world.formed
        name, facts = stage_id.upper(), self.facts(spec)
        if spec.form == "stream":
            self.builder.add_streaming(name, formed(does.whole), id=stage_id, **facts)
        elif spec.form == "pausable" and not self.world.told:
            self.builder.add_pausable(
                name, formed(does.execute), formed(does.resume), id=stage_id, **facts
            )
        else:
            fn = does.told if spec.form == "pausable" else does.whole
            self.builder.add_function(name, formed(fn), id=stage_id, **facts)

    def branch(self, owner: Any, spec: Work | Mount, word: str, place: int, **more: Any) -> None:
        branch_id = self.ids[place, word]
        if isinstance(spec, Mount):
            owner.branch(word, **self.mount(spec, branch_id), **more)
            return
        does, facts = self.functions(spec, branch_id), {**self.facts(spec), **more}
        formed = self.world.formed
        if spec.form == "stream":
            owner.branch(word, formed(does.whole), stream=f"stream of {word}", **facts)
        elif spec.form == "pausable" and not self.world.told:
            owner.branch(word, formed(does.execute), resume=formed(does.resume), **facts)
        else:
            fn = does.told if spec.form == "pausable" else does.whole
            owner.branch(word, formed(fn), **facts)

    def decider(self, spec: Decider, stage_id: str, place: int) -> None:
        does = self.functions(spec.judge, stage_id)

        def judge(scope: Any) -> Any:
            does.whole(scope)
            if spec.by == "decision":
                return rb.decide(scope, SIZES)
            if spec.rounds:
                rounds = scope.get(f"rounds{place}", 0)
                if rounds < spec.rounds:
                    scope[f"rounds{place}"] = rounds + 1
                    return "again"
            n = scope._data.get("n")
            return "big" if isinstance(n, int) and n > 1 else "small"

        by: dict[str, Any] = {"rules": SIZES}
        if spec.by != "rules":
            by = {"judge": self.world.formed(judge), **self.facts(spec.judge)}
        owner = self.builder.add_decider(stage_id.upper(), id=stage_id, **by)
        target = {"self": stage_id, "start": "start"}[spec.target]
        for word, branch in zip(words_of(spec), spec.branches, strict=False):
            more = {"loop_to": target} if word == "again" else {}
            self.branch(owner, branch, word, place, **more)
        owner.end()

    def fork(self, spec: Fork, stage_id: str, place: int) -> None:
        facts: dict[str, Any] = {"fail_fast": spec.fail_fast, "max_concurrency": 2}
        if spec.into:
            facts["into"] = f"out_{stage_id}"
        if spec.merge is not None:
            facts["merge"] = "keys" if spec.merge == "keys" else self.world.formed(merge_slots)
        name = stage_id.upper()
        if spec.by is None:
            owner = self.builder.add_fork(name, id=stage_id, **facts)
        elif spec.by == "rules":
            owner = self.builder.add_selector(name, id=stage_id, rules=CHECKS, **facts)
        else:
            does = self.functions(spec.judge, stage_id)

            def judge(scope: Any) -> Any:
                does.whole(scope)
                if spec.by == "selection":
                    return rb.select(scope, CHECKS)
                return set(spec.named) if spec.by == "set" else list(spec.named)

            facts |= {"judge": self.world.formed(judge), **self.facts(spec.judge)}
            owner = self.builder.add_selector(name, id=stage_id, **facts)
        for word, child in zip(LETTERS, spec.children, strict=True):
            self.branch(owner, child, word, place)
        owner.end()

    def mount(self, spec: Mount, stage_id: str) -> dict[str, Any]:
        formed = self.world.formed
        inner = build(spec.chart, self.world, f"{self.name}.{stage_id}", f"{self.path}{stage_id}/")

        def inputs(scope: Any) -> dict[str, Any]:
            return {"item": scope["item"], "n": scope.get("n")}

        def outputs(result: Any, scope: Any) -> dict[str, Any]:
            scope.get("n")
            got = sorted(result) if isinstance(result, dict) else result
            return {f"got_{stage_id}": got, "list": ["out"], "map": {"via": stage_id}}

        named = {f"got_{stage_id}": "n", f"also_{stage_id}": "item"}
        return {
            "fn": (lambda: inner) if spec.lazy else inner,
            "lazy": spec.lazy,
            "inputs": {"item": "item", "n": "n"} if spec.inputs == "mapping" else formed(inputs),
            "outputs": {None: None, "mapping": named, "function": formed(outputs)}[spec.outputs],
            "array_merge": spec.array_merge,
            "propagate_stop": spec.propagate,
        }

    def fan(self, spec: Fan, stage_id: str) -> None:
        inner = build(spec.branch, self.world, f"{self.name}.{stage_id}", f"{self.path}{stage_id}/")
        does = self.functions(spec.judge, stage_id)

        def items(scope: Any) -> list[str]:
            does.whole(scope)
            return [f"{item_of(scope)}.{number}" for number in range(spec.items)]

        if spec.rows:
            self.builder.add_judge_each(
                stage_id.upper(),
                id=stage_id,
                items=self.world.formed(
                    lambda scope: [row_of(one, place) for place, one in enumerate(items(scope))]
                ),
                rules=SIZES,
                into=f"out_{stage_id}",
                subject="item",
                max_branches=spec.cap,
            )
            return

        def factory(item: str, index: int) -> Any:
            if index == 0:
                do_fault(None, spec.factory_fault)
            return inner

        self.builder.add_parallel_for_each(
            stage_id.upper(),
            id=stage_id,
            items=self.world.formed(items),
            branch=factory if spec.factory else inner,
            max_branches=spec.cap,
            into=f"out_{stage_id}",
            fail_fast=spec.fail_fast,
            max_concurrency=2,
        )


def merge_slots(scope: Any, slots: Any) -> None:
    """Put the children of a fork together: how many ended well, and which."""
    scope["merged"] = [slot.item for slot in slots if slot.status == "ok"]


# -- running -----------------------------------------------------------------------------------


def ended(made: Any) -> Any:
    """Give the run that something makes, whichever way it ends."""
    try:
        return made()
    except BaseException as error:
        run = getattr(error, "run", None)
        if run is None:
            raise
        return run


def run_chart(spec: ChartSpec, world: World | None = None, **options: Any) -> Any:
    """Run a chart once, up to its first question; give the run whichever way it ended."""
    world = World() if world is None else world
    chart = build(spec, world)
    return ended(lambda: asyncio.run(chart.run(**options)))


def run_through(spec: ChartSpec, worlds: Callable[[], World] = World) -> tuple[Any, int]:
    """Run a chart to its end, each question answered in another chart and world.

    The checkpoint goes through text each time. Gives the last run and how often it paused.
    """
    run, pauses = run_chart(spec, worlds()), 0
    while run.status == "paused":
        pauses += 1
        checkpoint = json.loads(json.dumps(run.checkpoint))
        chart = build(spec, worlds())
        answer = answer_to(run.pause["reason"])
        run = ended(lambda c=chart, k=checkpoint, a=answer: asyncio.run(c.resume(k, a)))
    return run, pauses
