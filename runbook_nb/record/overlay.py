"""What a run did to its structure: how often each node ran, which way each decision went.

Record layer. The overlay is counted from the log in one pass: per shape what shapes share, per
branch only the compared values. An edge is counted as taken exactly when the transition was
recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._view import State
from runbook_nb.record.causes import Cause, cause_of, selected_by
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, STEP_KINDS, Code, FanOut, Log
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import ShapeFacts, facts_of, work_out
from runbook_nb.record.structure import StructureNode
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.rules.plan import DecisionPath

if TYPE_CHECKING:
    from runbook_nb.record.steps import StepFacts


@dataclass(slots=True, repr=False)
class Spread:
    """How what ran side by side ended, summed over all executions of its stage.

    Attributes
    ----------
    items : int
        The items of a fan-out, the children of a fork, or what a selector selected.
    ok, failed, not_reached : int
        They add up to ``items``.
    past_cap, waiting : int
        Those of ``not_reached`` past the cap, and those that wait for an answer.
    begun : int
        How many began.
    """

    items: int = 0
    ok: int = 0
    failed: int = 0
    not_reached: int = 0
    past_cap: int = 0
    waiting: int = 0
    begun: int = 0

    def add(self, fan: FanOut) -> None:
        """Take in the branches of one execution, less what waits."""
        self.items += len(fan)
        self.ok += fan.status_count(OK)
        self.failed += fan.status_count(FAILED)
        self.not_reached += fan.status_count(NOT_REACHED)
        self.past_cap += len(fan) - min(fan.cap, len(fan))
        self.begun += fan.begun_count


class Overlay:
    """Counts over a structure, by node key.

    Attributes
    ----------
    runs, failed : Counter
        Executions of each node, and how many of them failed.
    asked, answered : Counter
        Questions each node asked, and answers it went on with; each answer begins an execution.
    retried : Counter
        Attempts that failed and were followed by another.
    stops : mapping
        Node that ended its chart on purpose -> [how often, the reason given first].
    streams : mapping
        Streaming node -> [tokens, streams cut short].
    routes : Counter
        (key of a decider, selector or fork, branch) -> how often the branch began.
    chosen : Counter
        (selector key, branch) -> how often it was selected.
    nothing : Counter
        How often a selector selected nothing; each that ran is in it.
    causes : mapping
        (key of a decider or selector, branch) -> the ways it came about, in order of first
        meeting.
    rules : mapping
        Key of a decider or selector -> the rule sets that judged there, in order of judging,
        served.
    selections : mapping
        Selector key -> its first selection with evidence.
    edges : Counter
        (source key, target key) -> recorded transitions.
    back : Counter
        Those of ``edges`` by which the run went back to an earlier stage.
    loops : Counter
        (key of the stage that goes back, target key) -> how often the run went back.
    fan_outs, forks : mapping
        Key of a fan-out, or of a fork or selector -> how its branches ended.
    steps : mapping
        Key of a watched step that was come to -> what was recorded of it.
    set_back : int
        How often all began again; nothing recorded before the last time is counted.
    """

    __slots__ = (
        "answered",
        "asked",
        "back",
        "causes",
        "chosen",
        "edges",
        "failed",
        "fan_outs",
        "forks",
        "loops",
        "nothing",
        "retried",
        "routes",
        "rules",
        "runs",
        "selections",
        "set_back",
        "steps",
        "stops",
        "streams",
    )

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.retried: Counter[str] = Counter()
        self.nothing: Counter[str] = Counter()
        self.stops: dict[str, list[Any]] = {}
        self.streams: dict[str, list[int]] = {}
        self.routes: Counter[tuple[str, str]] = Counter()
        self.chosen: Counter[tuple[str, str]] = Counter()
        self.causes: dict[tuple[str, str], list[Cause]] = {}
        self.rules: dict[str, dict[Any, None]] = {}
        self.selections: dict[str, Selection] = {}
        self.edges: Counter[tuple[str, str]] = Counter()
        self.back: Counter[tuple[str, str]] = Counter()
        self.loops: Counter[tuple[str, str]] = Counter()
        self.fan_outs: dict[str, Spread] = {}
        self.forks: dict[str, Spread] = {}
        self.steps: dict[str, StepFacts] = {}
        self.set_back = 0

    def visits(self, key: str) -> int:
        """Count how often a node was come to: its executions, less those that went on."""
        return self.runs[key] - self.answered[key]

    def waiting(self, key: str) -> int:
        """Count the questions of a node that nobody has answered."""
        return self.asked[key] - self.answered[key]

    def state_of(self, node: StructureNode) -> State:
        """Say what became of a node, as one of the states a graph knows."""
        key, visits = node.key, self.visits(node.key)
        if node.kind == "step":
            return _STEP_STATES[self.step(key).status]
        if not visits:
            return self.state_of_untaken(node)
        if self.failed[key] >= visits:
            return "failed"
        if self.waiting(key) >= visits:
            return "paused"
        # A chart that hands a stop on stopped at a stage inside it.
        mounts = "subchart" in (node.kind, node.detail.get("form"))
        return "stopped" if not mounts and self.stops.get(key, (0,))[0] >= visits else "ran"

    def state_of_untaken(self, node: StructureNode) -> State:
        """Say why a node did not run: ``not_taken`` only where its decider chose another way."""
        owner = node.decider if node.kind == "branch" else None
        if owner is None or self.visits(owner) <= self.failed[owner] + self.waiting(owner):
            return "not_reached"
        # All branches of a fork begin; one that did not was not left aside by anybody.
        forked = owner in self.forks and owner not in self.nothing
        return "not_reached" if forked or self.chosen[owner, node.branch or ""] else "not_taken"

    def step(self, key: str) -> StepFacts:
        """Give what was recorded of a watched step; of one nobody came to, that is nothing."""
        from runbook_nb.record.steps import StepFacts  # of which no chart has a use

        return self.steps.get(key) or StepFacts()

    def begin_again(self) -> None:
        """Forget everything: a plan that was reset is judged by what came after."""
        for part in (*_BY_NODE, *_BY_PAIR, *_FACTS, "causes", "steps"):
            getattr(self, part).clear()
        self.set_back += 1

    def without(self, prefix: str) -> Overlay:
        """Give the counts less those of every node whose key begins like this."""
        left = Overlay()
        for name in _BY_NODE:
            counts: Counter[str] = getattr(left, name)
            counts.update(
                {k: n for k, n in getattr(self, name).items() if not k.startswith(prefix)}
            )
        for name in _BY_PAIR:
            pairs: Counter[tuple[str, str]] = getattr(left, name)
            for pair, times in getattr(self, name).items():
                if not any(key.startswith(prefix) for key in pair):
                    pairs[pair] = times
        for name in _FACTS:
            facts: dict[str, Any] = getattr(left, name)
            facts.update(
                (k, fact) for k, fact in getattr(self, name).items() if not k.startswith(prefix)
            )
        left.causes.update(
            (pair, causes) for pair, causes in self.causes.items() if not pair[0].startswith(prefix)
        )
        return left

    def take(self, other: Overlay) -> None:
        """Take in the counts of nodes that are not in this one."""
        for name in (*_BY_NODE, *_BY_PAIR, *_FACTS, "causes", "steps"):
            getattr(self, name).update(getattr(other, name))

    def served(self, redactor: Redactor) -> Overlay:
        """Give the same counts under keys as a policy lets them be seen."""
        text = redactor.text
        served = Overlay()
        for name in _BY_NODE:
            counts: Counter[str] = getattr(served, name)
            for key, times in getattr(self, name).items():
                counts[text(key)] += times
        for name in _BY_PAIR:
            pairs: Counter[tuple[str, str]] = getattr(served, name)
            for (one, other), times in getattr(self, name).items():
                pairs[text(one), text(other)] += times
        for name in _FACTS:
            facts: dict[str, Any] = getattr(served, name)
            facts.update((text(key), value) for key, value in getattr(self, name).items())
        served.causes.update(
            ((text(key), text(word)), causes) for (key, word), causes in self.causes.items()
        )
        served.steps.update(
            (text(key), facts.served(text, redactor.texts)) for key, facts in self.steps.items()
        )
        return served


#: The state in which a watched step is drawn.
_STEP_STATES: Final[Mapping[str, State]] = {
    "completed": "ran",
    "in progress": "current",
    "stuck": "ran",
    "failed": "failed",
    "declined": "failed",
    "skipped": "not_taken",
    "pending": "not_reached",
}

#: The fields of an `Overlay` that count by node, that count by two words, that hold other facts.
_BY_NODE: Final = ("runs", "failed", "asked", "answered", "retried", "nothing")
_BY_PAIR: Final = ("routes", "chosen", "edges", "back", "loops")
_FACTS: Final = ("stops", "streams", "rules", "selections", "fan_outs", "forks")


def overlay_of(
    log: Log, redactor: Redactor, only: tuple[FanOut, int, str] | None = None
) -> Overlay:
    """Count what a run, or one branch of it, did."""
    overlay = Overlay()
    counter = _Counter(log, redactor, overlay)
    if only is None:
        counter.track(work_out(log, log.root.codes), _Root(log.root.values), "")
    else:
        fan, index, _ = only
        shape = fan.shape(index)
        if shape is not None:
            counter.track(facts_of(log, shape), _Branches(fan, [index]), template_path(only))
    for key, rules in overlay.rules.items():
        overlay.rules[key] = dict.fromkeys(map(redactor.rules, rules))
    return overlay.served(redactor) if redactor.knows_secrets else overlay


def overlay_along(
    log: Log, redactor: Redactor, whole: Overlay, chain: Sequence[tuple[FanOut, int, str]]
) -> Overlay:
    """Give what a run did, and of its fan-outs what one branch alone did.

    Parameters
    ----------
    log : Log
    redactor : Redactor
    whole : Overlay
        What the whole run did, served.
    chain : sequence of (FanOut, int, str)
        The branch, behind those around it.
    """
    told, text = whole, redactor.text
    for fan, index, before in chain:
        inside, shape = template_path((fan, index, before)), fan.shape(index)
        if shape is None:
            break
        head, within = text(f"{_outer(before)}{fan.stage.key}"), text(inside)
        ran = [
            text(f"{inside}{event.code.stage.key}")
            for event in facts_of(log, shape).events
            if event.code.kind == "stage"
        ]
        exits = {
            (source, target): 1
            for source, target in told.edges
            if ran and source == ran[-1] and not target.startswith(within)
        }
        told = told.without(within)
        told.take(overlay_of(log, redactor, (fan, index, before)))
        status = fan.status_number(index)
        told.fan_outs[head] = Spread(
            items=1,
            ok=status == OK,
            failed=status == FAILED,
            not_reached=status == NOT_REACHED,
            begun=1,
        )
        told.edges.update(exits)
        if ran:
            told.edges[head, ran[0]] = 1
    return told


def template_path(only: tuple[FanOut, int, str] | None) -> str:
    """Give what the keys of a branch's nodes begin with; nothing for a whole run.

    Examples
    --------
    >>> template_path(None)
    ''
    """
    if only is None:
        return ""
    fan, _, before = only
    return fan.template(_outer(before))


def _outer(before: str) -> str:
    # Runtime paths number the branches (``outer~3/``), the structure has each of them once.
    outer = [part.rpartition("~")[0] or part for part in before.split("/")[:-1]]
    return "".join(f"{part}/" for part in outer)


#: Kinds of code of which is counted what they tell.
_SAID: Final = STEP_KINDS | {"reset", "stop", "streamed"}

#: Kinds of code that are counted by their node and need no more.
_COUNTED: Final[Mapping[str, str]] = {
    "error": "failed",
    "pause": "asked",
    "resume": "answered",
    "retry": "retried",
}


class _Root(NamedTuple):
    """The root track, counted alone."""

    values: Sequence[Any]
    times: int = 1

    def column(self, at: int) -> Sequence[Any]:
        """Give the value at a place."""
        return [self.values[at]]

    def first(self, at: int, width: int) -> tuple[Any, ...]:
        """Give as many values from a place on."""
        return tuple(self.values[at : at + width])


class _Branches(NamedTuple):
    """Branches of one shape, counted together."""

    fan: FanOut
    indices: Sequence[int]

    @property
    def times(self) -> int:
        """How many they are."""
        return len(self.indices)

    def column(self, at: int) -> Sequence[Any]:
        """Give the value at a place of each."""
        return self.fan.column(at, self.indices)

    def first(self, at: int, width: int) -> tuple[Any, ...]:
        """Give as many values from a place on, of the first of them."""
        values, offset = self.fan.part(self.indices[0])
        return tuple(values[offset + at : offset + at + width])


class _Counter:
    def __init__(self, log: Log, redactor: Redactor, overlay: Overlay) -> None:
        self.log = log
        self.redactor = redactor
        self.overlay = overlay

    def track(self, facts: ShapeFacts, tracks: _Root | _Branches, prefix: str) -> Counter[str]:
        """Count one shape for all the tracks that have it; give the nodes they ended in."""
        overlay, times = self.overlay, tracks.times
        last: Counter[str] = Counter()
        back = False
        for place, event in enumerate(facts.events):
            code = event.code
            key = f"{prefix}{code.stage.key}"
            if code.kind == "stage":
                overlay.runs[key] += times
                for source, count in last.items():
                    overlay.edges[source, key] += count
                    if back:
                        overlay.back[source, key] += count
                last, back = Counter({key: times}), False
            elif code.kind == "fan_out":
                last = self.fan_outs(tracks.column(event.at), key, prefix)
            elif code.kind == "loop":
                overlay.loops[key, f"{prefix}{code.stage.path}{code.key}"] += times
                back = True
            elif code.path is not None:
                route = key, code.path.branch or _rerouted(facts, place)
                judge = self.decision if code.kind == "decision" else self.selection
                judge(route, code.path, tracks, event.at)
            elif code.kind == "choice":
                overlay.routes[key, code.key or ""] += times
            elif code.kind in _SAID:
                again = self.said(code, key, tracks.column(event.at), prefix)
                last = Counter() if again else last
            elif code.kind in _COUNTED:
                getattr(overlay, _COUNTED[code.kind])[key] += times
                if code.kind == "resume":  # the stage that goes on was reached before it paused
                    last = Counter()
            elif code.kind == "leave" and code.key == "failed":
                overlay.failed[key] += times
        return last

    def step(self, key: str, code: Code, told: Mapping[str, Any], prefix: str) -> None:
        """Count what happened in a watched step."""
        from runbook_nb.record.steps import StepFacts

        steps, under = self.overlay.steps, told.get("under")
        steps.setdefault(key, StepFacts()).take(code.kind, code.key or "", told)
        if (early := told.get("early_for")) is not None:
            steps.setdefault(f"{prefix}{early}", StepFacts()).early[code.key or ""] += 1
        if under is not None and (admitted := steps.get(f"{prefix}{under}")) is not None:
            admitted.let_go(code.key or "")

    def told(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """Serve what a step's event tells, but for what a call was given, which is not counted."""
        if not self.redactor.active:
            return value
        return {n: self.redactor.scrub(v) for n, v in value.items() if n != "arguments"}

    def said(self, code: Code, key: str, met: Sequence[Any], prefix: str) -> bool:
        """Count that a stage ended its chart, what it streamed, what a step told; per track.

        Gives whether all begins again, so that nothing led to what follows.
        """
        if code.kind == "reset":
            self.overlay.begin_again()
        elif code.kind in STEP_KINDS:
            for told in met:
                self.step(key, code, self.told(told), prefix)
        elif code.kind == "stop":
            stops = self.overlay.stops.setdefault(key, [0, self.redactor.scrub(met[0])])
            stops[0] += len(met)
        else:
            sums = self.overlay.streams.setdefault(key, [0, 0])
            sums[0] += sum(told["tokens"] for told in met)
            sums[1] += sum(not told["complete"] for told in met)
        return code.kind == "reset"

    def fan_outs(self, fans: Sequence[FanOut], key: str, prefix: str) -> Counter[str]:
        """Count what ran side by side; give the nodes from which the run went on."""
        ends: Counter[str] = Counter()
        for fan in fans:
            # Where no branch came through, what follows comes after the stage itself.
            ends.update(self.fan_out(fan, key, prefix) or {key: 1})
        return ends

    def fan_out(self, fan: FanOut, key: str, prefix: str) -> Counter[str]:
        overlay = self.overlay
        kept = overlay.fan_outs if fan.is_fan_out else overlay.forks
        spread = kept.setdefault(key, Spread())
        spread.add(fan)
        if fan.form == "selection":
            overlay.chosen.update((key, word) for word in fan.items)
            overlay.nothing[key] += not len(fan)
        ends: Counter[str] = Counter()
        for (number, status), indices in fan.alike().items():
            facts = facts_of(self.log, self.log.shapes[number])
            first = next((e.code.stage.key for e in facts.events if e.code.kind == "stage"), None)
            inner = fan.template(prefix)
            if first is not None:
                overlay.edges[key, f"{inner}{first}"] += len(indices)
                if not fan.is_fan_out:
                    overlay.routes[key, fan.items[indices[0]]] += len(indices)
            ended = self.track(facts, _Branches(fan, indices), inner)
            if status == OK:
                ends.update(ended)
            elif status == NOT_REACHED:
                spread.waiting += sum(_waits(facts, *fan.part(index)) for index in indices)
        return ends

    def decision(
        self, route: tuple[str, str], path: DecisionPath, tracks: _Root | _Branches, at: int
    ) -> None:
        overlay = self.overlay
        overlay.routes[route] += tracks.times
        overlay.rules.setdefault(route[0], {})[path.rules] = None
        causes = overlay.causes.setdefault(route, [])
        cause = next((c for c in causes if c.is_of(path)), None)
        if cause is None:
            cause = cause_of(Decision(path, tracks.first(at, path.width), self.redactor))
            causes.append(cause)
        cause.times += tracks.times
        if cause.conditions:
            self.met(cause, tracks, at + path.tried[-1].start)

    def selection(
        self, route: tuple[str, str], path: DecisionPath, tracks: _Root | _Branches, at: int
    ) -> None:
        overlay, key = self.overlay, route[0]
        overlay.rules.setdefault(key, {})[path.rules] = None
        shown = Selection(path, tracks.first(at, path.width), self.redactor)
        overlay.selections.setdefault(key, shown)
        for tried in path.tried:
            if tried.outside or tried.result is not True:
                continue
            selected = key, path.rules.rules[tried.position].then
            causes = overlay.causes.setdefault(selected, [])
            alike = (c for c in causes if c.rule_index == tried.position)
            cause = next((c for c in alike if bool(c.rules == path.rules)), None)
            if cause is None:
                cause = selected_by(shown, tried)
                causes.append(cause)
            cause.times += tracks.times
            self.met(cause, tracks, at + tried.start)

    def met(self, cause: Cause, tracks: _Root | _Branches, at: int) -> None:
        """Take in the values that the deciding conditions met."""
        for place, (condition, met) in enumerate(cause.conditions):
            if not condition.redacted:
                column = tracks.column(at + place)
                if self.redactor.active:
                    column = list(map(self.redactor.scrub, column))
                met.add_all(column)


def _waits(facts: ShapeFacts, values: Sequence[Any], offset: int) -> bool:
    """Tell whether a branch waits for an answer: it, or one inside it, asked last."""
    asked = sum(event.code.kind == "pause" for event in facts.events)
    answered = sum(event.code.kind == "resume" for event in facts.events)
    if asked > answered:
        return True
    for event in facts.fan_outs:
        fan: FanOut = values[offset + event.at]
        for index in fan.ended_as(NOT_REACHED):
            shape = fan.shape(index)
            if shape is not None and _waits(facts_of(fan.log, shape), *fan.part(index)):
                return True
    return False


def _rerouted(facts: ShapeFacts, place: int) -> str:
    """Give the way a decision went that named none: its decider's own default, if any."""
    following = facts.events[place + 1].code if place + 1 < len(facts.events) else None
    return (following.key or "") if following is not None and following.kind == "route" else ""
