"""What a run did to its structure: how often each node ran, which way each decision went.

Record layer. The overlay is counted from the log in one pass: per shape what shapes share, per
branch only the compared values. An edge is counted as taken exactly when the transition was
recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runbook_nb._text import number_text
from runbook_nb.record.log import FanOut, Log
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import ShapeFacts, facts_of, work_out
from runbook_nb.record.structure import StructureNode
from runbook_nb.rules.decision import Condition, Decision
from runbook_nb.rules.plan import DecisionPath
from runbook_nb.rules.wording import (
    REDACTED,
    condition_text,
    limit_text,
    op_words,
    value_text,
    when_text,
)

#: Words a range lists before it only counts them.
RANGE_WORDS = 3


@dataclass(slots=True)
class ValueRange:
    """The values one condition met: the smallest and largest number, or the distinct others."""

    low: Any = None
    high: Any = None
    words: dict[str, None] = field(default_factory=dict)

    def add(self, value: Any) -> None:
        """Take one value in."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.low = value if self.low is None or value < self.low else self.low
            self.high = value if self.high is None or value > self.high else self.high
        elif len(self.words) <= RANGE_WORDS:
            self.words[value_text(value)] = None

    @property
    def text(self) -> str:
        """``8…44`` for numbers, up to three words for the rest."""
        parts = []
        if self.low is not None:
            low, high = number_text(self.low), number_text(self.high)
            parts.append(low if low == high else f"{low}…{high}")
        words = list(self.words)
        if len(words) > RANGE_WORDS:
            parts.append("several values")
        else:
            parts += words
        return ", ".join(parts)


@dataclass(slots=True)
class Cause:
    """One way a branch came to be taken.

    That is a rule, the default, an unreadable value, or ground outside the rules.
    """

    path: DecisionPath
    times: int = 0
    conditions: list[tuple[Condition, ValueRange]] = field(default_factory=list)
    unread: Condition | None = None
    label: str | None = None
    text: str = ""
    declared: str = ""

    @property
    def word(self) -> str:
        """``rule 2``, ``default``, ``unreadable`` or ``outside``."""
        if self.path.via == "rule":
            return f"rule {(self.path.rule_index or 0) + 1}"
        return self.path.via

    @property
    def condition(self) -> str:
        """The deciding conditions with the values they met: ``age_days 8…44 > 7``."""
        return " and ".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The deciding conditions one by one, each with the values it met."""
        if self.path.via == "default":
            return ("no rule fired",)
        if self.conditions:
            return tuple(_met(c, values) for c, values in self.conditions)
        # A function is told with what it read, which is true of one subject alone.
        return (self.declared if self.times > 1 and self.declared else self.text,)


def unread_condition(decision: Decision) -> Condition | None:
    """Give the condition that could not be read, where that decided."""
    deciding = decision.deciding
    if deciding is None or decision.via != "unreadable":
        return None
    return next((c for c in decision.conditions_of(deciding) if c.result is None), None)


def _met(condition: Condition, values: ValueRange) -> str:
    if condition.redacted or condition.op in ("eq", "exists", "missing", "is_null"):
        return condition.text
    limit = limit_text(condition.op, condition.threshold, condition.unit)
    words = op_words(condition.op, condition.threshold)
    return f"{condition.key} {values.text} {words} {limit}"


@dataclass(slots=True)
class Overlay:
    """Counts over a structure, by node key.

    Attributes
    ----------
    runs, failed : Counter
        Executions of each node, and how many of them failed.
    routes : mapping
        (decider key, branch) -> how often it was taken.
    causes : mapping
        (decider key, branch) -> the ways it came about, in order of first meeting.
    edges : Counter
        (source key, target key) -> recorded transitions.
    loops : Counter
        (source key, target key) -> how often the run went back.
    fan_outs, forks : mapping
        Key of a fan-out, or of a fork or selector -> [items, ok, failed, not reached, past the
        cap], summed over its executions.
    """

    runs: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    routes: Counter[tuple[str, str]] = field(default_factory=Counter)
    causes: dict[tuple[str, str], list[Cause]] = field(default_factory=dict)
    edges: Counter[tuple[str, str]] = field(default_factory=Counter)
    loops: Counter[tuple[str, str]] = field(default_factory=Counter)
    fan_outs: dict[str, list[int]] = field(default_factory=dict)
    forks: dict[str, list[int]] = field(default_factory=dict)

    def state_of_untaken(self, node: StructureNode) -> str:
        """Say why a node did not run: ``not_taken`` only where its decider chose another way."""
        decider = node.decider if node.kind == "branch" else None
        if decider is not None and self.runs[decider] > self.failed[decider]:
            return "not_taken"
        return "not_reached"

    def served(self, redactor: Redactor) -> Overlay:
        """Give the same counts under keys as a policy lets them be seen."""
        text = redactor.text
        served = Overlay(
            causes={(text(k), text(w)): causes for (k, w), causes in self.causes.items()},
            fan_outs={text(key): sums for key, sums in self.fan_outs.items()},
            forks={text(key): sums for key, sums in self.forks.items()},
        )
        for key, times in self.runs.items():
            served.runs[text(key)] += times
        for key, times in self.failed.items():
            served.failed[text(key)] += times
        for (key, word), times in self.routes.items():
            served.routes[text(key), text(word)] += times
        for (source, target), times in self.edges.items():
            served.edges[text(source), text(target)] += times
        for (source, target), times in self.loops.items():
            served.loops[text(source), text(target)] += times
        return served


def overlay_of(
    log: Log, redactor: Redactor, only: tuple[FanOut, int, str] | None = None
) -> Overlay:
    """Count what a run, or one branch of it, did."""
    overlay = Overlay()
    counter = _Counter(log, redactor, overlay)
    if only is None:
        counter.track(work_out(log, log.root.codes), log.root.values, [0], "")
    else:
        fan, index, _ = only
        shape = fan.shape(index)
        if shape is not None:
            counter.track(
                facts_of(log, shape), fan.values, [fan.offsets[index]], template_path(only)
            )
    return overlay.served(redactor) if redactor.knows_secrets else overlay


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
    # Runtime paths number the branches (``outer~3/``), the structure has each of them once.
    outer = [part.rpartition("~")[0] or part for part in before.split("/")[:-1]]
    return fan.template("".join(f"{part}/" for part in outer))


class _Counter:
    def __init__(self, log: Log, redactor: Redactor, overlay: Overlay) -> None:
        self.log = log
        self.redactor = redactor
        self.overlay = overlay

    def track(
        self, facts: ShapeFacts, values: Sequence[Any], offsets: Sequence[int], prefix: str
    ) -> list[tuple[str, int]]:
        """Count one shape for all the tracks that have it; give the nodes they ended in."""
        overlay, times = self.overlay, len(offsets)
        last: list[tuple[str, int]] = []
        for place, event in enumerate(facts.events):
            code = event.code
            key = f"{prefix}{code.stage.key}"
            if code.kind == "stage":
                overlay.runs[key] += times
                for source, count in last:
                    overlay.edges[source, key] += count
                last = [(key, times)]
            elif code.kind == "resume":  # the stage that goes on was reached before it paused
                last = []
            elif code.kind == "error" or (code.kind == "leave" and code.key == "failed"):
                overlay.failed[key] += times
            elif code.kind == "loop":
                overlay.loops[key, f"{prefix}{code.stage.path}{code.key}"] += times
            elif code.kind == "decision" and code.path is not None:
                word = code.path.branch or _rerouted(facts, place)
                self.decision((key, word), code.path, values, offsets, event.at)
            elif code.kind == "choice":
                overlay.routes[key, code.key or ""] += times
            elif code.kind == "fan_out":
                ends: Counter[str] = Counter()
                for offset in offsets:
                    fan: FanOut = values[offset + event.at]
                    ends.update(dict(self.fan_out(fan, key, prefix)))
                last = list(ends.items()) or last
        return last

    def fan_out(self, fan: FanOut, key: str, prefix: str) -> list[tuple[str, int]]:
        kept = self.overlay.fan_outs if fan.is_fan_out else self.overlay.forks
        sums = kept.setdefault(key, [0, 0, 0, 0, 0])
        statuses = fan.statuses
        for place, n in enumerate(
            (
                len(fan),
                statuses.count(1),
                statuses.count(2),
                statuses.count(0),
                len(fan) - min(fan.cap, len(fan)),
            )
        ):
            sums[place] += n
        ends: Counter[str] = Counter()
        alike: dict[tuple[int, int], list[int]] = {}
        for index, number in enumerate(fan.shapes):
            if number >= 0:
                alike.setdefault((number, statuses[index]), []).append(index)
        for (number, status), indices in alike.items():
            offsets = [fan.offsets[index] for index in indices]
            facts = facts_of(self.log, self.log.shapes[number])
            first = next((e.code.stage.key for e in facts.events if e.code.kind == "stage"), None)
            inner = fan.template(prefix)
            if first is not None:
                self.overlay.edges[key, f"{inner}{first}"] += len(offsets)
                if not fan.is_fan_out:
                    self.overlay.routes[key, fan.items[indices[0]]] += len(offsets)
            ended = self.track(facts, fan.values, offsets, inner)
            if status == 1:
                ends.update(dict(ended))
        return list(ends.items())

    def decision(
        self,
        route: tuple[str, str],
        path: DecisionPath,
        values: Sequence[Any],
        offsets: Sequence[int],
        at: int,
    ) -> None:
        self.overlay.routes[route] += len(offsets)
        causes = self.overlay.causes.setdefault(route, [])
        cause = next((c for c in causes if _alike(c.path, path)), None)
        width = len(path.codes)
        start = offsets[0] + at
        shown = Decision(path, tuple(values[start : start + width]), self.redactor)
        if cause is None:
            cause = Cause(path, label=shown.label, text=shown.cause)
            cause.unread = unread_condition(shown)
            if path.via == "rule" and shown.rule is not None:
                cause.declared = when_text(shown.rule.when)
            causes.append(cause)
            if path.via in ("rule", "outside") and shown.deciding is not None:
                conditions = shown.conditions_of(shown.deciding)
                cause.conditions = [(condition, ValueRange()) for condition in conditions]
        cause.times += len(offsets)
        tried = shown.deciding
        if not cause.conditions or tried is None:
            return
        for place, (condition, met) in enumerate(cause.conditions):
            if condition.redacted:
                continue
            position = at + tried.start + place
            for offset in offsets:
                met.add(self.redactor.scrub(values[offset + position]))


def _rerouted(facts: ShapeFacts, place: int) -> str:
    """Give the way a decision went that named none: its decider's own default, if any."""
    following = facts.events[place + 1].code if place + 1 < len(facts.events) else None
    return (following.key or "") if following is not None and following.kind == "route" else ""


def _alike(a: DecisionPath, b: DecisionPath) -> bool:
    return (
        a.via == b.via
        and a.rule_index == b.rule_index
        and a.outside_index == b.outside_index
        and a.unreadable == b.unreadable
        and a.rules == b.rules
    )


class Declared(NamedTuple):
    """What the rules say of one branch: a rule or the default, its conditions, its sentence."""

    word: str
    conditions: tuple[str, ...]
    label: str | None
    #: Place of the rule; None for the default.
    rule: int | None


def declared_ways(rules: Any, branch: str | None, redactor: Redactor) -> Iterator[Declared]:
    """Yield the ways a rule set can send somebody to a branch, as declared, in rule order.

    Limits of hidden keys are hidden.
    """
    for place, rule in enumerate(rules.rules):
        if rule.then == branch:
            conditions = tuple(declared_conditions(rule, redactor))
            yield Declared(f"rule {place + 1}", conditions, _text(rule.label, redactor), place)
    default = rules.default
    if default is not None and default.branch == branch:
        yield Declared("default", (), _text(default.label, redactor), None)


def declared_conditions(rule: Any, redactor: Redactor) -> Iterator[str]:
    """Yield the conditions of a rule as declared, or the name of its function."""
    if not isinstance(rule.when, Mapping):
        yield when_text(rule.when, rule.unit_of)
        return
    for key, ops in rule.when.items():
        for op, threshold in ops.items():
            limit = REDACTED if redactor.hides_key(key) else redactor.scrub(threshold)
            yield condition_text(key, op, limit, rule.unit_of(key))


def _text(label: Any, redactor: Redactor) -> str | None:
    return None if label is None else str(redactor.scrub(label))
