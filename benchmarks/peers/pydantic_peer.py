"""pydantic-graph: a graph that maps over the rows (load, decide, a verdict) and joins.

It has no recorder for such graphs. Without recording: the user's evidence is kept with each
verdict. With: the user's own steps append what happened to a list, the walk kept by hand.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pydantic_graph import GraphBuilder, StepContext, TypeExpression, reduce_list_append

from peers.rules import judge

VERSION = f"pydantic-graph {version('pydantic-graph')}"
Row = dict[str, Any]


@dataclass
class Kept:
    walk: list[Row] | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


def _graph() -> Any:
    g = GraphBuilder(state_type=Kept, input_type=list[Row], output_type=list[Row])

    def note(state: Kept, stage: str, row: Row, **more: Any) -> None:
        if state.walk is not None:
            state.walk.append({"stage": stage, "subject": row["subject"], **more})

    @g.step
    async def rows(ctx: StepContext[Kept, None, list[Row]]) -> list[Row]:
        return ctx.inputs

    @g.step
    async def load(ctx: StepContext[Kept, None, Row]) -> Row:
        note(ctx.state, "load", ctx.inputs, wrote=ctx.inputs)
        return dict(ctx.inputs)

    @g.step
    async def decide(ctx: StepContext[Kept, None, Row]) -> Row:
        word, evidence = judge(ctx.inputs)
        ctx.state.evidence[ctx.inputs["subject"]] = evidence
        note(ctx.state, "decide", ctx.inputs, evidence=evidence, branch=word)
        return {**ctx.inputs, "word": word}

    @g.step
    async def verdict(ctx: StepContext[Kept, None, Row]) -> Row:
        row = ctx.inputs
        note(ctx.state, row["word"], row, wrote={"verdict": row["word"]})
        return {"subject": row["subject"], "verdict": row["word"]}

    collect = g.join(reduce_list_append, initial_factory=list[Row])
    g.add(
        g.edge_from(g.start_node).to(rows),
        g.edge_from(rows).map().to(load),
        g.edge_from(load).to(decide),
        g.edge_from(decide).to(verdict),
        g.edge_from(verdict).to(collect),
        g.edge_from(collect).to(g.end_node),
    )
    return g.build()


_ = TypeExpression
GRAPH = _graph()


def _run(rows: list[Row], kept: Kept) -> list[Row]:
    return asyncio.run(GRAPH.run(state=kept, inputs=rows))


MODES = {
    "no walk": lambda rows: _run(rows, Kept()),
    "walk kept by hand": lambda rows: _run(rows, Kept(walk=[])),
}
