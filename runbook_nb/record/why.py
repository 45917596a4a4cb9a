"""Why a value is what it is: the reads that led to it, step by step back to where they end.

Record layer. What is told is what was recorded: a stage's reads before its write, the decisions
that led to a stage, what was handed into and out of branches and mounted charts. What a stage got
from a tool or from its own code leaves no read, and that is said instead of guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._text import MISSING, show, summarize, visible
from runbook_nb._value import frozen
from runbook_nb._view import Card
from runbook_nb.rules.decision import Decision, Selection

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.record.commits import CommitLog

#: What a node tells of its step: that it wrote, decided, selected, handed an item to a branch,
#: handed something into a mounted chart, returned something, or sent the run back.
WHATS: Final = ("write", "delete", "decision", "selection", "item", "input", "result", "loop")

#: How one thing led to another.
LINKS: Final = {
    "read": "read",
    "kept": "built on what was there",
    "decided": "ran because of the decision",
    "selected": "ran because it was selected",
    "looped": "ran again because the run went back",
    "item": "was given the item",
    "input": "looked at its input",
    "branch": "collected from a branch",
    "output": "mapped out of a mounted chart",
    "merged": "merged from a branch",
    "answer": "got the answer",
    "own": "brought it along",
}

#: Where a slice ends, in words.
ENDS: Final = {
    "args": "the run's input",
    "initial": "the state the run began with",
    "answer": "an answer from outside",
    "absent": "nobody had written it",
    "own": "the stage's own: what a tool or its code gave left no read",
    "unrecorded": "what the stage read was not recorded",
}


class WhyNode(Immutable):
    """A step execution that had a part in the value.

    Attributes
    ----------
    id : str
        How edges call it.
    what : str
        One of `WHATS`.
    runtime_stage_id, stage_id, stage : str
        The execution.
    log, commit : str, int
        The commit that holds what it did: path of the log, and place in it.
    node : str
        The key of the stage in the structure.
    kind : str
        The kind of the stage.
    key, place : str
        The state key, and the path inside it that matters; empty for what is no write.
    depth : int
        How many links away from the value asked about.
    decision : Decision, Selection or None
        The evidence, served.
    """

    __slots__ = (
        "_value",
        "commit",
        "decision",
        "depth",
        "id",
        "key",
        "kind",
        "log",
        "node",
        "place",
        "runtime_stage_id",
        "stage",
        "stage_id",
        "what",
    )

    def __init__(self, value: Callable[[], Any], **facts: Any) -> None:
        self._value = value
        for name in self.__slots__[1:]:
            setattr(self, name, facts[name])

    id: str
    what: str
    runtime_stage_id: str
    stage_id: str
    stage: str
    log: str
    commit: int
    node: str
    kind: str
    key: str
    place: str
    depth: int
    decision: Decision | Selection | None

    @property
    def value(self) -> Any:
        """What it wrote, chose or handed on, served; None where a key was deleted."""
        found = self._value()
        return None if found is MISSING else found

    @property
    def summary(self) -> str:
        """The value in at most 80 characters; empty where it is not on the record."""
        if self.what == "delete":
            return "deleted"
        found = self._value()
        return "" if found is MISSING else summarize(found)

    @property
    def sentence(self) -> str:
        """What the step did, in one sentence."""
        if self.decision is not None:
            return self.decision.sentence
        said = self.summary
        if self.what in ("decision", "selection"):
            return f"chose {show(self.value)}" if isinstance(self.value, str) else f"chose {said}"
        words = {
            "write": f"{self.place} = {said}",
            "delete": f"deleted {self.place}",
            "item": f"handed on {self.place} = {said}",
            "input": f"mapped in {self.place} = {said}",
            "result": f"returned {said}" if said else "returned something",
            "loop": "went back",
        }
        return visible(words[self.what])

    def to_dict(self) -> dict[str, Any]:
        """Give the node as JSON values, empty facts left out."""
        out: dict[str, Any] = {
            "id": self.id,
            "what": self.what,
            "runtimeStageId": self.runtime_stage_id,
            "stageId": self.stage_id,
            "stage": self.stage,
            "node": self.node,
            "log": self.log,
            "commitIdx": self.commit,
            "depth": self.depth,
        }
        if self.key:
            out["key"] = self.key
            out["path"] = self.place
        if self.summary:
            out["summary"] = self.summary
        if self.decision is not None:
            out["decision"] = self.decision.to_dict()
        return out

    def __repr__(self) -> str:
        return f"<WhyNode {self.runtime_stage_id}: {self.sentence}>"


class WhyEdge(NamedTuple):
    """That one thing led to another.

    Attributes
    ----------
    reader : str
        The node that rests on it.
    origin : str
        The node, or the source, it rests on.
    kind : str
        One of `LINKS`.
    key : str
        The path it was read by, the branch it came from; empty where there is no such word.
    """

    reader: str
    origin: str
    kind: str
    key: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give the edge as JSON values."""
        out = {"reader": self.reader, "origin": self.origin, "kind": self.kind}
        return {**out, "key": self.key} if self.key else out


class WhySource(Immutable):
    """A place where the slice ends.

    Attributes
    ----------
    id : str
        How edges call it.
    kind : str
        One of `ENDS`.
    place : str
        The path inside the input or the first state, or the key nobody had written; for ``own``
        and ``unrecorded`` the key of the stage in the structure.
    stage : str
        The stage, for what is its own, or whose question was answered.
    times : int
        How many nodes end there.
    """

    __slots__ = ("_value", "id", "kind", "place", "stage", "times")

    def __init__(
        self, id: str, kind: str, place: str, stage: str, value: Callable[[], Any]
    ) -> None:
        self.id = id
        self.kind = kind
        self.place = place
        self.stage = stage
        self.times = 0
        self._value = value

    @property
    def value(self) -> Any:
        """What stands there, served; None where nobody can know."""
        found = self._value()
        return None if found is MISSING else found

    @property
    def sentence(self) -> str:
        """What it is, in words."""
        words = ENDS[self.kind]
        if self.kind in ("own", "unrecorded"):
            return f"{visible(self.stage)}: {words}"
        if self.kind == "answer":
            return f"{words}: {summarize(self.value)}"
        if self.kind == "absent":
            return f"{visible(self.place)}: {words}"
        return f"{words}, {visible(self.place)}" if self.place else words

    def to_dict(self) -> dict[str, Any]:
        """Give the source as JSON values, empty facts left out."""
        out: dict[str, Any] = {"id": self.id, "kind": self.kind, "times": self.times}
        if self.place:
            out["path"] = self.place
        if self.stage:
            out["stage"] = self.stage
        if self.kind in ("args", "initial", "answer"):
            out["summary"] = summarize(self.value)
        return out

    def __repr__(self) -> str:
        return f"<WhySource {self.sentence}>"


@frozen(repr=False)
class Why(Sequence[WhyNode], Immutable, Renderable):
    """The steps that led to a value, nearest first.

    It is a sequence of `WhyNode`.

    Attributes
    ----------
    name : str
        The procedure's name.
    path : str
        The value asked about.
    value : object
        What it is, served.
    nodes : tuple of WhyNode
        The steps; the first wrote the value. None where it was there before the first step.
    edges : tuple of WhyEdge
        What each rests on.
    sources : tuple of WhySource
        Where that ends.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = (flow_chart("c", lambda s: s.set("n", s.args["n"]), id="a")
    ...     .add_function("B", lambda s: s.set("double", s["n"] * 2), id="b").build())
    >>> why = chart.run_sync({"n": 2}).why("double")
    >>> [node.sentence for node in why], [source.sentence for source in why.sources]
    (['double = 4', 'n = 2'], ["the run's input, n"])
    """

    name: str
    path: str
    value: Any
    nodes: tuple[WhyNode, ...]
    edges: tuple[WhyEdge, ...]
    sources: tuple[WhySource, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, index: int) -> WhyNode: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[WhyNode]: ...
    def __getitem__(self, index: int | slice) -> WhyNode | Sequence[WhyNode]:
        return self.nodes[index]

    def __iter__(self) -> Iterator[WhyNode]:
        return iter(self.nodes)

    def behind(self, node: WhyNode | str) -> list[tuple[WhyEdge, WhyNode | WhySource]]:
        """Give what a node rests on, with how."""
        asked = node if isinstance(node, str) else node.id
        found: dict[str, WhyNode | WhySource] = {one.id: one for one in self.nodes}
        found.update((one.id, one) for one in self.sources)
        return [(edge, found[edge.origin]) for edge in self.edges if edge.reader == asked]

    def to_dict(self) -> dict[str, Any]:
        """Give the slice as JSON values."""
        return {
            "path": self.path,
            "value": to_wire(self.value),
            "nodes": [node.to_dict() for node in self.nodes],
            "edges": [edge.to_dict() for edge in self.edges],
            "sources": [source.to_dict() for source in self.sources],
        }

    def to_frame(self) -> pd.DataFrame:
        """Give one row per step."""
        import pandas as pd

        columns = ("depth", "runtimeStageId", "stage", "what", "path", "summary", "because")
        because: dict[str, list[str]] = {}
        for edge in self.edges:
            because.setdefault(edge.reader, []).append(f"{edge.kind} {edge.key}".strip())
        return pd.DataFrame(
            [
                (
                    node.depth,
                    node.runtime_stage_id,
                    node.stage,
                    node.what,
                    node.place or None,
                    node.summary,
                    ", ".join(because.get(node.id, ())),
                )
                for node in self.nodes
            ],
            columns=list(columns),
        )

    def view(self) -> Card:
        """Show the steps as a list and as a small graph, like ones once."""
        from runbook_nb.record.why_card import why_card

        return why_card(self)


def why_of(log: CommitLog, path: str, *, at: int | None = None) -> Why:
    """Trace a value of a commit log's state back; see `CommitLog.why`."""
    from runbook_nb.record.tracing import trace

    return trace(log, path, at)
