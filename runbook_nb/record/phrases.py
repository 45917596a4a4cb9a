"""What is said of a stage: its kind, how often it ran, what it asked, streamed and selected.

Record layer. The picture and the list both say these phrases, so that they tell the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from runbook_nb._text import counted
from runbook_nb._view import Badge, Cell, Data, Role, Run, State
from runbook_nb.record.overlay import Overlay, Spread
from runbook_nb.record.structure import Structure, StructureNode

if TYPE_CHECKING:
    from runbook_nb.record.steps import StepFacts

#: Tags told of one node before the rest is only counted.
MAX_TAGS: Final = 4


#: Kinds that say how often they ran in saying what came of it.
COUNTED: Final = ("fan_out", "fork", "selector")
#: Stands before what is said of a kind of stage, in a picture.
MARKS: Final = {"streaming": "»", "pausable": "?"}


class Teller:
    """Says what there is to say of the nodes of a structure, before a run or after one.

    Parameters
    ----------
    structure : Structure
    overlay : Overlay or None
        What happened; None before a run.
    """

    def __init__(self, structure: Structure, overlay: Overlay | None) -> None:
        self.structure = structure
        self.overlay = overlay

    def state(self, node: StructureNode) -> State:
        """Say what became of a node; what lies in a way nobody took was not taken either."""
        if self.overlay is None:
            return "declared"
        state = self.overlay.state_of(node)
        if state == "not_reached" and self.frames.get(node.key) in self._passed_by:
            return "not_taken"
        # A stage that ran in a loop until it stopped, stopped; of many subjects some may have.
        alone = state == "ran" and self.fan_out_around(node.key) is None
        stops = alone and node.key in self.overlay.stops and self.form(node) != "subchart"
        return "stopped" if stops else state

    @cached_property
    def frames(self) -> dict[str, str]:
        """The stage whose chart each node lies in."""
        return self.structure.frames()

    def fan_out_around(self, key: str) -> str | None:
        """Give the fan-out whose subjects go through a node."""
        return self._subjects.get(self.frames.get(key))

    @cached_property
    def _subjects(self) -> dict[str | None, str | None]:
        """The fan-out around each chart, by the stage that holds the chart."""
        found: dict[str | None, str | None] = {None: None}
        for key, _ in self._wide_first:
            node = self.structure.node(key)
            is_fan = node is not None and node.kind == "fan_out"
            found[key] = key if is_fan else found.get(self.frames.get(key))
        return found

    @cached_property
    def _wide_first(self) -> list[tuple[str, tuple[str, ...]]]:
        """The charts inside others, outer ones first."""
        return sorted(self.structure.groups, key=lambda group: -len(group[1]))

    @cached_property
    def _passed_by(self) -> set[str]:
        """The charts inside branches that were not taken, by the stage that holds each."""
        found: set[str] = set()
        for key, _ in self._wide_first:
            node = self.structure.node(key)
            taken = self.overlay is None or node is None or self.overlay.visits(key) > 0
            if not taken and node is not None and self.overlay is not None:
                passed = self.overlay.state_of_untaken(node) == "not_taken"
                if passed or self.frames.get(key) in found:
                    found.add(key)
        return found

    # -- what a stage is -------------------------------------------------------------------

    def form(self, node: StructureNode) -> str:
        """Give the kind of a node; of a branch, the kind of the stage behind its word."""
        return str(node.detail.get("form", "stage")) if node.kind == "branch" else node.kind

    def kind(self, node: StructureNode) -> Cell:
        """Say what kind of stage it is, and what came of being one; nothing of a plain stage."""
        form = self.form(node)
        if form == "fork":
            return self._fork(node)
        if form == "selector":
            return self._selector(node)
        if form == "subchart":
            return self._chart(node)
        if form == "streaming":
            return self._stream(node)
        return self._question(node, form)

    def _fork(self, node: StructureNode) -> str:
        branches = len(self.structure.branches_of(node.key))
        spread = self._spread(node)
        if spread is None:
            return f"fork, {branches} side by side"
        return f"fork, {self.ended(node, spread)}"

    def _selector(self, node: StructureNode) -> str:
        branches = len(self.structure.branches_of(node.key))
        spread = self._spread(node)
        if spread is None or self.overlay is None:
            rules = node.detail.get("rules")
            return f"selects any or none by {rules}" if rules else "selects any or none"
        visits, nothing = self.overlay.visits(node.key), self.overlay.nothing[node.key]
        if not spread.items:
            return f"nothing selected{self._over(node)}"
        of = f"{spread.items} of {branches}" if visits == 1 else str(spread.items)
        words = [f"{of} selected{self._over(node)}"]
        if nothing:
            words.append(f"nothing {_times(nothing)}")
        return ", ".join([*words, *_rest(spread)])

    def _over(self, node: StructureNode) -> str:
        visits = self.visits(node)
        return f" over {visits} runs" if visits > 1 else ""

    def _chart(self, node: StructureNode) -> str:
        template = node.detail.get("template")
        if template == "unknown":
            return "chart made when run"
        stages = len(self.structure.inside(node.key)) - self._branches_inside[node.key]
        made = ", made when run" if node.detail.get("lazy") else ""
        return f"chart of {counted(stages, 'stage')}{made}"

    @cached_property
    def _branches_inside(self) -> Counter[str | None]:
        frames = self.frames
        return Counter(frames.get(n.key) for n in self.structure.nodes if n.kind == "branch")

    def _stream(self, node: StructureNode) -> Cell:
        streams = None if self.overlay is None else self.overlay.streams.get(node.key)
        if streams is not None:
            cut = f", {_only(streams[1], 'cut short')}" if streams[1] else ""
            return f"streamed {counted(streams[0], 'token')}{cut}"
        stream = node.detail.get("stream")
        if stream is None or stream == node.name:
            return "streams text"
        return ("streams text to", Data(value=stream))

    def _question(self, node: StructureNode, form: str) -> str:
        overlay = self.overlay
        if overlay is None or not overlay.visits(node.key):
            return "may ask" if form == "pausable" else ""
        waiting, answered = overlay.waiting(node.key), overlay.answered[node.key]
        several = overlay.visits(node.key) > 1
        words = []
        if waiting > 0:
            words.append(_waiting(waiting) if several else "waits for an answer")
        if answered:
            words.append(f"{answered} answered" if several else "answered")
        if not words and form == "pausable" and not overlay.failed[node.key]:
            words.append("did not ask")
        return ", ".join(words)

    def fan_out(self, node: StructureNode) -> str:
        """Say how a fan-out ended, item by item; before a run, what it may do."""
        spread = self._spread(node)
        if spread is None:
            words = "one branch per item"
            if node.detail.get("cap") is not None:  # a structure made elsewhere does not tell
                words += f", at most {node.detail['cap']}"
            if node.detail.get("template") == "unknown":
                words += "; one chart per item, built when run"
            return words
        return self.ended(node, spread)

    def ended(self, node: StructureNode, spread: Spread) -> str:
        """Say how what ran side by side ended: ``2 of 3 done, 1 failed``."""
        over = "" if node.kind == "fan_out" else self._over(node)
        done = f"{spread.ok} of {spread.items} done{over}"
        return ", ".join([done, *_rest(spread, node.detail)])

    def _spread(self, node: StructureNode) -> Spread | None:
        if self.overlay is None:
            return None
        kept = self.overlay.fan_outs if node.kind == "fan_out" else self.overlay.forks
        return kept.get(node.key)

    def marked(self, node: StructureNode) -> Cell:
        """Give what `kind` says with the mark that stands before it in a picture."""
        said = self.kind(node)
        waits = self.overlay is not None and self.overlay.waiting(node.key) > 0
        mark = "?" if waits else MARKS.get(self.form(node))
        if not said or mark is None:
            return said
        return (mark, *said) if isinstance(said, tuple) else f"{mark} {said}"

    # -- a watched step ----------------------------------------------------------------------

    @cached_property
    def pointer(self) -> str | None:
        """The first step that is neither done nor passed by; None where none is left."""
        if self.overlay is None:
            return None
        for node in self.structure.nodes:
            if node.kind == "step":
                status = self.overlay.step(node.key).status
                if status not in ("completed", "skipped"):
                    return node.key
        return None

    def step_mark(self, node: StructureNode) -> Cell:
        """Say what became of a step, as it stands under its name in a picture."""
        optional, form = bool(node.detail.get("optional")), node.detail.get("form")
        if self.overlay is None:
            return ", ".join([*(["optional"] if optional else []), *([str(form)] if form else [])])
        by = f", {form}" if form else ""
        facts, here = self.overlay.step(node.key), node.key == self.pointer
        word, status = step_status(facts), facts.status
        if status == "stuck":
            return Badge(word=f"stuck here{by}", role="current")
        if status == "pending":
            words = "optional" if optional else word
            return Badge(word=f"next, {words}{by}" if here else f"{words}{by}", role=_AT[here])
        if status == "in progress":
            return Badge(word=f"{word}{by}", role=_AT[here])
        return Badge(word=f"{word}{by}", role=_ENDED[status])

    def step(self, node: StructureNode) -> Iterator[Cell]:
        """Yield what is said of a step in a list: what became of it, its calls, what was noted."""
        optional = ["optional"] if node.detail.get("optional") else []
        if self.overlay is None:
            yield joined([*optional, self._expected(node)])
            return
        facts = self.overlay.step(node.key)
        yield ", ".join([step_status(facts), *optional])
        if facts.calls:
            yield counted(facts.calls, "call")
        if refused := facts.refused.total():
            yield f"{refused} refused"
        if facts.deviations:
            yield counted(len(facts.deviations), "deviation")

    @staticmethod
    def _expected(node: StructureNode) -> Cell:
        tools = node.detail.get("tools") or ()
        runs: list[Run] = []
        for tool in tools:
            runs += [", " if runs else "expects", Data(value=tool)]
        return tuple(runs) if runs else ""

    # -- what became of it -----------------------------------------------------------------

    def more(self, node: StructureNode, *, listed: bool) -> Iterator[Cell]:
        """Yield what else is to be said: attempts, how often it ran, a stop, where it goes back.

        In a list a plain count of visits reads as itself, and back edges are not to be seen.
        """
        overlay, key = self.overlay, node.key
        if overlay is None:
            attempts = node.detail.get("retry")
            if isinstance(attempts, int) and attempts > 1:
                yield f"up to {attempts} attempts"
            if listed:
                for target in self._back.get(key, ()):
                    yield "then back to", Data(value=target.name)
            return
        if overlay.retried[key]:
            yield counted(overlay.retried[key], "retry", "retries")
        if key in overlay.stops:
            times, reason = overlay.stops[key]
            if self.form(node) == "subchart":
                yield "hands the stop on"
            elif times > 1:
                yield f"stopped here {_times(times)}"
            else:
                yield "stopped here" if reason is None else ("stopped here:", Data(value=reason))
        if listed:
            for target in self._back.get(key, ()):
                if times := overlay.back[key, target.key]:
                    yield f"back {_times(times)} to", Data(value=target.name)

    @cached_property
    def _back(self) -> dict[str, list[StructureNode]]:
        """The nodes that each node leads back to."""
        pairs = [(e.source, e.target) for e in self.structure.edges if e.kind == "loop"]
        if self.overlay is not None:
            pairs = list(dict.fromkeys([*pairs, *self.overlay.back]))
        found: dict[str, list[StructureNode]] = {}
        for source, target in pairs:
            node = self.structure.node(target)
            if node is not None:
                found.setdefault(source, []).append(node)
        return found

    def visits(self, node: StructureNode) -> int:
        """Count how often a node was come to."""
        return 0 if self.overlay is None else self.overlay.visits(node.key)

    @staticmethod
    def tags(node: StructureNode) -> Cell:
        """Say the author's tags."""
        if not node.tags:
            return ""
        more = len(node.tags) - MAX_TAGS
        runs: list[Run] = ["tagged"]
        for place, tag in enumerate(node.tags[:MAX_TAGS]):
            runs += [Data(value=tag)] if not place else [", ", Data(value=tag)]
        return (*runs, f", +{more} more") if more > 0 else tuple(runs)


#: The role of a step that waits, by whether the pointer is at it; and of one that ended.
_AT: Final[Mapping[bool, Role]] = {False: "pending", True: "current"}
_ENDED: Final[Mapping[str, Role]] = {
    "completed": "completed",
    "skipped": "skipped",
    "failed": "failed",
    "declined": "failed",
}


def step_status(facts: StepFacts) -> str:
    """Say what became of a step.

    Examples
    --------
    >>> from runbook_nb.record.steps import StepFacts
    >>> step_status(StepFacts(status="skipped", ended={"by": "calls"}))
    'passed over'
    """
    if facts.passed_over:
        return "passed over"
    if facts.status == "completed" and facts.ended.get("by") == "cap":
        return "closed by cap"
    return facts.status


def joined(phrases: Iterable[Cell]) -> Cell:
    """Join phrases into one cell, with commas between them.

    Examples
    --------
    >>> joined(["ran 2 times", ("stopped here:", Data(value="enough"))])
    ('ran 2 times', ', ', 'stopped here:', Data(value='enough', unit=None, tone='plain'))
    """
    runs: list[Run] = []
    for phrase in phrases:
        if phrase in ("", ()):
            continue
        if runs:
            runs.append(", ")
        runs += phrase if isinstance(phrase, tuple) else (phrase,)
    return runs[0] if len(runs) == 1 else tuple(runs) if runs else ""


def state_words(state: str) -> str:
    """Say a state that is not simply having run."""
    return state.replace("_", " ")


def _rest(spread: Spread, detail: object = None) -> Iterator[str]:
    """Say of what ran side by side what did not end well."""
    if spread.failed:
        yield f"{spread.failed} failed"
    if spread.waiting:
        yield _waiting(spread.waiting)
    missed = spread.not_reached - spread.waiting
    if missed > 0:
        cap = detail.get("cap") if isinstance(detail, Mapping) else None
        past = f": past the cap of {cap} branches" if spread.past_cap == missed and cap else ""
        yield f"{missed} not reached{past}"


def _times(times: int) -> str:
    return counted(times, "time")


def _only(times: int, words: str) -> str:
    return words if times == 1 else f"{times} {words}"


def _waiting(times: int) -> str:
    return f"{times} wait{'s' * (times == 1)} for an answer"
