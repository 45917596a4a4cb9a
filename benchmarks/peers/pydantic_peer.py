"""pydantic-graph: a graph that maps over the rows (load, decide, a verdict each) and joins.

The rows are mapped by an edge of the graph, as its documentation has it; which verdict's step a
subject goes to is a decision node's to say. What a step gives is what the next one is handed.

It has no recorder for such graphs. Without recording: the user's evidence is kept with each
verdict. With: the user's own steps append what happened to a list, the walk kept by hand. Beside: a
run of the subject's graph per row, in the user's own loop, which no graph knows of.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pydantic_graph import GraphBuilder, StepContext, reduce_list_append

from peers.rules import WORDS, Row, Rows, judge

VERSION = f"pydantic-graph {version('pydantic-graph')}"


@dataclass
class Kept:
    walk: Rows | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


Each = StepContext[Kept, None, dict[str, Any]]


def _note(state: Kept, stage: str, row: Row, **more: Any) -> None:
    if state.walk is not None:
        state.walk.append({"stage": stage, "subject": row["subject"], **more})


def _subject(g: Any, collect: Any) -> Any:
    """Add a subject's steps to a graph, each verdict going on to ``collect``; gives the first."""

    @g.step
    async def load(ctx: Each) -> Row:
        row = dict(ctx.inputs)
        _note(ctx.state, "load", row, wrote=row)
        return row

    @g.step
    async def decide(ctx: Each) -> Row:
        row = ctx.inputs
        word, evidence = judge(row)
        ctx.state.evidence[row["subject"]] = evidence
        _note(ctx.state, "decide", row, evidence=evidence, branch=word)
        return {**row, "word": word}

    def verdict(word: str) -> Any:
        async def stage(ctx: Each) -> Row:
            _note(ctx.state, word, ctx.inputs, wrote={"verdict": word})
            return {"subject": ctx.inputs["subject"], "verdict": word}

        return g.step(stage, node_id=word)

    stages = {word: verdict(word) for word in WORDS}
    decision = g.decision()
    for word, stage in stages.items():
        chosen = g.match(dict, matches=lambda row, word=word: row["word"] == word)
        decision = decision.branch(chosen.to(stage))
    g.add(
        g.edge_from(load).to(decide),
        g.edge_from(decide).to(decision),
        *(g.edge_from(stage).to(collect) for stage in stages.values()),
    )
    return load


def _mapped() -> Any:
    g = GraphBuilder(state_type=Kept, input_type=Rows, output_type=Rows)
    collect = g.join(reduce_list_append, initial_factory=list[Row])
    load = _subject(g, collect)
    g.add(
        g.edge_from(g.start_node).map().to(load),
        g.edge_from(collect).to(g.end_node),
    )
    return g.build()


def _alone() -> Any:
    g = GraphBuilder(state_type=Kept, input_type=Row, output_type=Row)
    g.add(g.edge_from(g.start_node).to(_subject(g, g.end_node)))
    return g.build()


MAPPED, ALONE = _mapped(), _alone()


def _run(rows: Rows, kept: Kept) -> Rows:
    return asyncio.run(MAPPED.run(state=kept, inputs=rows))


def _looped(rows: Rows) -> Rows:
    async def loop() -> Rows:
        kept = Kept()
        return [await ALONE.run(state=kept, inputs=row) for row in rows]

    return asyncio.run(loop())


MODES = {
    "no walk": lambda rows: _run(rows, Kept()),
    "no walk, one's own loop": _looped,
    "walk kept by hand": lambda rows: _run(rows, Kept(walk=[])),
}
