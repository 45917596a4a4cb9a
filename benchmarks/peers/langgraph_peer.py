"""LangGraph: a subgraph per subject (load, decide, a verdict), sent to by a Send per row.

Without recording: no checkpointer; the user's evidence is in the state. With the saver in memory: a
checkpoint and its writes per step of every subgraph, through ``invoke`` and, with stages that are
coroutines, through ``ainvoke``. The rules and their evidence are the user's.
"""

from __future__ import annotations

import asyncio
import operator
from importlib.metadata import version
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from peers.rules import judge

VERSION = f"langgraph {version('langgraph')}"
WORDS = ("declined", "unprotected", "protected")
Row = dict[str, Any]


class Subject(TypedDict, total=False):
    item: Row
    subject: str
    age_days: int
    age_known: bool
    word: str
    evidence: list[Row]
    verdicts: Annotated[list[Row], operator.add]


class Whole(TypedDict, total=False):
    rows: list[Row]
    verdicts: Annotated[list[Row], operator.add]


class Verdicts(TypedDict):
    verdicts: Annotated[list[Row], operator.add]


def _subgraph(waiting: bool) -> Any:
    def load(state: Subject) -> Subject:
        return state["item"]  # type: ignore[return-value]

    def decide(state: Subject) -> Subject:
        word, evidence = judge(state)
        return {"word": word, "evidence": evidence}

    def verdict(word: str) -> Any:
        def stage(state: Subject) -> Subject:
            return {"verdicts": [{"subject": state["subject"], "verdict": word}]}

        return stage

    def maybe(stage: Any) -> Any:
        if not waiting:
            return stage

        async def later(state: Any) -> Any:
            return stage(state)

        return later

    graph = StateGraph(Subject, output_schema=Verdicts)
    graph.add_node("load", maybe(load))
    graph.add_node("decide", maybe(decide))
    for word in WORDS:
        graph.add_node(word, maybe(verdict(word)))
        graph.add_edge(word, END)
    graph.add_edge(START, "load")
    graph.add_edge("load", "decide")
    graph.add_conditional_edges("decide", lambda state: state["word"], list(WORDS))
    return graph.compile()


def _whole(waiting: bool, saver: bool) -> Any:
    graph = StateGraph(Whole)
    graph.add_node("each", _subgraph(waiting))
    graph.add_conditional_edges(
        START, lambda state: [Send("each", {"item": row}) for row in state["rows"]], ["each"]
    )
    graph.add_edge("each", END)
    return graph.compile(checkpointer=InMemorySaver() if saver else None)


def _run(rows: list[Row], *, saver: bool, waiting: bool = False) -> list[Row]:
    app = _whole(waiting, saver)
    config = {"configurable": {"thread_id": "1"}, "max_concurrency": 16}
    if waiting:
        return asyncio.run(app.ainvoke({"rows": rows}, config))["verdicts"]
    return app.invoke({"rows": rows}, config)["verdicts"]


MODES = {
    "no saver": lambda rows: _run(rows, saver=False),
    "saver in memory": lambda rows: _run(rows, saver=True),
    "saver in memory, async": lambda rows: _run(rows, saver=True, waiting=True),
}
