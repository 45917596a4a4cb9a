"""LangGraph: a subgraph per subject (load, decide, a verdict), sent to by a Send per row.

Without recording: no checkpointer; the user's evidence is in the state. With the saver in memory: a
checkpoint and its writes per step of every subgraph, through ``invoke`` and, with stages that are
coroutines, through ``ainvoke``; each run is a thread of its own, forgotten afterwards. Beside: the
subject's graph called with all rows by ``batch``, and coroutines. The rules and their evidence are
the user's.
"""

from __future__ import annotations

import asyncio
import operator
from importlib.metadata import version
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from peers.rules import WORDS, Row, Rows, judge

VERSION = f"langgraph {version('langgraph')}"
AT_ONCE = {"max_concurrency": 16}


class Subject(TypedDict, total=False):
    item: Row
    subject: str
    age_days: int
    age_known: bool
    word: str
    evidence: Rows
    verdicts: Annotated[Rows, operator.add]


class Whole(TypedDict, total=False):
    rows: Rows
    verdicts: Annotated[Rows, operator.add]


class Verdicts(TypedDict):
    verdicts: Annotated[Rows, operator.add]


def _subject(waiting: bool) -> Any:
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


def _whole(subject: Any, saver: Any = None) -> Any:
    graph = StateGraph(Whole)
    graph.add_node("each", subject)
    graph.add_conditional_edges(
        START, lambda state: [Send("each", {"item": row}) for row in state["rows"]], ["each"]
    )
    graph.add_edge("each", END)
    return graph.compile(checkpointer=saver)


SAVER = InMemorySaver()
SUBJECT, WAITING_SUBJECT = _subject(False), _subject(True)
BARE, SAVED = _whole(SUBJECT), _whole(SUBJECT, SAVER)
WAITING, WAITING_SAVED = _whole(WAITING_SUBJECT), _whole(WAITING_SUBJECT, SAVER)


def _run(app: Any, rows: Rows, *, waiting: bool = False) -> Rows:
    config = {"configurable": {"thread_id": "triage"}, **AT_ONCE}
    if waiting:
        return asyncio.run(app.ainvoke({"rows": rows}, config))["verdicts"]
    return app.invoke({"rows": rows}, config)["verdicts"]


def _batch(rows: Rows) -> Rows:
    made = SUBJECT.batch([{"item": row} for row in rows], AT_ONCE)
    return [verdict for one in made for verdict in one["verdicts"]]


def forget() -> None:
    """Drop what the run before has saved; the clock does not run."""
    SAVER.delete_thread("triage")


MODES = {
    "no saver": lambda rows: _run(BARE, rows),
    "no saver, async": lambda rows: _run(WAITING, rows, waiting=True),
    "no saver, batch of the subject's graph": _batch,
    "saver in memory": lambda rows: _run(SAVED, rows),
    "saver in memory, async": lambda rows: _run(WAITING_SAVED, rows, waiting=True),
}
