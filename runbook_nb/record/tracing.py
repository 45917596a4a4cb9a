"""Tracing a value back through the record: what each step read, and why it ran.

Record layer. The trace goes breadth first and meets every step once, so it costs no more than the
part of the run that led to the value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING, did_you_mean, listed
from runbook_nb.errors import PathError
from runbook_nb.record.lookup import Steps, follow, must_follow, path_of, path_text
from runbook_nb.record.queries import clamped
from runbook_nb.record.replay import value_of_held
from runbook_nb.record.sources import PublishedSource, RecordedSource, Source
from runbook_nb.record.trace_targets import End, Link, Target
from runbook_nb.record.why import Why, WhyEdge, WhyNode, WhySource

if TYPE_CHECKING:
    from runbook_nb.record.commits import CommitLog

#: State keys named in an error before the rest is left out.
_NAMED: Final = 8

#: Later than any code there is.
ALWAYS: Final = 2**62


def trace(log: CommitLog, path: str, at: int | None = None) -> Why:
    """Trace a value of a log's state back to where its reads end."""
    source = log.raw_source
    line = source.timeline
    key, steps = path_of(path, line.keys)
    time = ALWAYS if at is None else source.end(clamped(source, at))
    held = line.at(key, time)
    if held is MISSING and line.version(key, time) < 0:
        raise _no_key(source, key, time)
    if held is MISSING and steps:
        raise PathError(
            f"{key!r} was deleted, so there is nothing inside it",
            where=path,
            fix=f"ask why({key!r}), or for a time before that with at=",
        )
    if follow(held, steps) is MISSING and held is not MISSING:
        # Said of what may be seen.
        must_follow(source.redactor.value(key, value_of_held(held)), key, steps)
        raise PathError(f"{path!r} leads nowhere", where=path)
    from runbook_nb.record.trace_bundles import BundleTracer
    from runbook_nb.record.trace_run import RunTracer

    tracer: Tracer
    if isinstance(source, RecordedSource) and log.raw_run is not None:
        tracer = RunTracer(log.raw_run, source)
    elif isinstance(source, PublishedSource):
        tracer = BundleTracer(source)
    else:
        raise TypeError(f"a {type(source).__name__} cannot be traced")
    tracer.go(tracer.start(key, steps, time))
    value = tracer.shown(key, held, steps)
    return Why(
        name=log.name,
        path=source.redactor.text(path_text(key, steps)),
        value=None if value is MISSING else value,
        nodes=tuple(tracer.nodes),
        edges=tuple(tracer.edges),
        sources=tuple(tracer.sources),
    )


def _no_key(source: Source, key: str, time: int) -> PathError:
    text = source.redactor.text
    there = [text(one) for one in source.timeline.state(time)]
    names = f"{listed(there[:_NAMED])}{' and more' if len(there) > _NAMED else ''}"
    return PathError(
        f"nobody has written {text(key)!r}",
        where=text(key),
        fix=did_you_mean(key, there) or (f"the state has {names}" if there else None),
    )


class Tracer:
    """Goes from target to target, each once, nearest first."""

    def __init__(self, source: Source) -> None:
        self.redactor = source.redactor
        #: Takes secret texts out of a name.
        self.text: Callable[[str], str] = (
            source.redactor.text if source.redactor.knows_secrets else str
        )
        self.nodes: list[WhyNode] = []
        self.edges: list[WhyEdge] = []
        self.sources: list[WhySource] = []
        self._known: dict[Any, str] = {}
        self._ends: dict[str, WhySource] = {}
        self._waiting: deque[tuple[str, int, Target]] = deque()
        self._served: dict[Any, Any] = {}

    def start(self, key: str, steps: Steps, time: int) -> Target:
        """Give the target of a key at a time."""
        raise NotImplementedError

    def mark(self, target: Target) -> Any:
        """Give what tells a target from others."""
        raise NotImplementedError

    def node(self, name: str, depth: int, target: Target) -> WhyNode:
        """Make the node of a target."""
        raise NotImplementedError

    def links(self, target: Target) -> Iterator[Link]:
        """Yield what a target rests on."""
        raise NotImplementedError

    def go(self, target: Target) -> None:
        """Trace a target."""
        self._meet(target, 0)
        while self._waiting:
            name, depth, here = self._waiting.popleft()
            met: dict[WhyEdge, None] = {}
            for link in self.links(here):
                origin = self._meet(link.target, depth + 1)
                if origin != name:
                    met[WhyEdge(name, origin, link.kind, self.text(link.key))] = None
            for edge in met:
                self.edges.append(edge)
                if edge.origin in self._ends:
                    self._ends[edge.origin].times += 1

    def _meet(self, target: Target, depth: int) -> str:
        if isinstance(target, End):
            return self._end(target)
        mark = self.mark(target)
        found = self._known.get(mark)
        if found is None:
            found = self._known[mark] = f"n{len(self.nodes)}"
            self.nodes.append(self.node(found, depth, target))
            self._waiting.append((found, depth, target))
        return found

    def _end(self, end: End) -> str:
        mark = (end.kind, end.place, end.stage, end.mark)
        found = self._known.get(mark)
        if found is None:
            text = self.text
            found = self._known[mark] = f"s{len(self.sources)}"
            source = WhySource(found, end.kind, text(end.place), text(end.stage), end.value)
            self.sources.append(source)
            self._ends[found] = source
        return found

    def shown(self, key: str, held: Any, steps: Steps, mark: Any = None) -> Any:
        """Give what stands at a path of a key's value, served."""
        if held is MISSING:
            return MISSING
        if not self.redactor.active:
            return value_of_held(follow(held, steps))
        found: Any = MISSING if mark is None else self._served.get(mark, MISSING)
        if found is MISSING:
            found = self.redactor.value(key, value_of_held(held))
            if mark is not None:
                self._served[mark] = found
        for place in range(len(steps)):
            if isinstance(found, str):  # what stands for a hidden value stands for all inside it
                return found
            found = follow(found, steps[place : place + 1])
        return found
