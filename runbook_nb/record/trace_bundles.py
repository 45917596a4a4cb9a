"""Tracing through a commit log that was written down: its rows say what was read, or not.

Record layer. Such a log knows of no decision and of nothing outside its own chart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runbook_nb._text import MISSING
from runbook_nb.record.lookup import Steps, path_text
from runbook_nb.record.sources import PublishedSource
from runbook_nb.record.trace_targets import Bundled, End, Link, Target, nothing
from runbook_nb.record.tracing import Tracer
from runbook_nb.record.why import WhyNode


class BundleTracer(Tracer):
    """Traces through a commit log that was written down: whatever its rows say."""

    def __init__(self, source: PublishedSource) -> None:
        super().__init__(source)
        self.source = source

    def start(self, key: str, steps: Steps, time: int) -> Target:
        """Give the target of a key at a time."""
        return self.resolve(key, steps, time)

    def mark(self, target: Target) -> Any:
        """Give what tells a target from others."""
        assert isinstance(target, Bundled)  # noqa: S101 - of bundles
        return target[:3]

    def resolve(self, key: str, steps: Steps, time: int) -> Target:
        """Give who brought about what a key held at a time, at a path inside it."""
        line = self.source.timeline
        origin = self.source.origins.origin(key, steps, line.version(key, time))
        if origin >= 0:
            return Bundled(line.time(key, origin), key, steps, origin)
        held, place = line.first(key), path_text(key, steps)
        if held is MISSING:
            return End("absent", place, "", nothing)
        return End("initial", place, "", lambda: self.shown(key, held, steps))

    def node(self, name: str, depth: int, target: Target) -> WhyNode:
        """Make the node of a target."""
        assert isinstance(target, Bundled)  # noqa: S101 - of bundles
        source, (index, key, steps, version) = self.source, target
        held = source.timeline.held(key, version)
        return WhyNode(
            lambda: self.shown(key, held, steps),
            id=name,
            what="delete" if held is MISSING else "write",
            runtime_stage_id=source.runtime_id(index),
            stage_id=source.stage_id(index),
            stage=source.stage(index),
            log=source.path,
            commit=index,
            node=source.stage_id(index),
            kind="stage",
            key=key,
            place=path_text(key, steps),
            depth=depth,
            decision=None,
        )

    def links(self, target: Target) -> Iterator[Link]:
        """Yield what a target rests on."""
        assert isinstance(target, Bundled)  # noqa: S101 - of bundles
        source, (index, key, steps, version) = self.source, target
        some = False
        if source.verbs(index, key) & {"append", "merge"} and not steps and version:
            some = True
            yield Link("kept", key, self.resolve(key, (), index - 1))
        for name in source.read_keys(index):
            some = True
            yield Link("read", name, self.resolve(name, (), index - 1))
        if "args" in source.commit(index).sources:
            some = True
            yield Link("input", "", End("args", "", "", nothing))
        if not some:
            kind = "own" if source.knows_reads(index) else "unrecorded"
            end = End(kind, source.stage_id(index), source.stage(index), nothing)
            yield Link("own", "", end)
