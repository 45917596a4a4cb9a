"""Burr: a state machine per subject (load, decide, a verdict), mapped over the rows.

Mapped as its documentation has it, by a ``MapStates`` whose action is a graph: every subject is an
application of its own, run in Burr's pool of threads. A child is given its row, not the whole state
of its parent, which every child would carry and write down.

Without recording: the user's evidence is in the state and nothing else is kept. With: the local
tracker keeps every step's state before and after in files, three per subject; the SQLite persister
the state after every step, a row each; the persister in memory the same in a dict. Beside: the
user's own loop over applications, which no action of Burr's knows of. The rules and their evidence
are the user's.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from burr.core import ApplicationBuilder, ApplicationContext, GraphBuilder, State, action, when
from burr.core.parallelism import MapStates, RunnableGraph
from burr.core.persistence import InMemoryPersister, SQLitePersister
from burr.tracking import LocalTrackingClient

from peers.rules import WORDS, Row, Rows, judge

VERSION = f"burr {version('apache-burr')}"


@action(reads=["item"], writes=["subject", "age_days", "age_known"])
def load(state: State) -> State:
    return state.update(**state["item"])


@action(reads=["age_days", "age_known"], writes=["word", "evidence"])
def decide(state: State) -> State:
    word, evidence = judge({"age_known": state["age_known"], "age_days": state["age_days"]})
    return state.update(word=word, evidence=evidence)


def _verdict(word: str) -> Any:
    @action(reads=[], writes=["verdict"])
    def verdict(state: State) -> State:
        return state.update(verdict=word)

    return verdict


GRAPH = (
    GraphBuilder()
    .with_actions(load=load, decide=decide, **{word: _verdict(word) for word in WORDS})
    .with_transitions(
        ("load", "decide"),
        *(("decide", word, when(word=word)) for word in WORDS),
    )
    .build()
)
SUBJECT = RunnableGraph(graph=GRAPH, entrypoint="load", halt_after=list(WORDS))


def row_of(state: State) -> Row:
    return {"subject": state["subject"], "verdict": state["verdict"]}


class Each(MapStates):
    def action(self, state: State, inputs: dict[str, Any]) -> RunnableGraph:
        return SUBJECT

    def states(
        self, state: State, context: ApplicationContext, inputs: dict[str, Any]
    ) -> Generator[State, None, None]:
        for item in state["rows"]:
            yield State({"item": item})

    def reduce(self, state: State, states: Generator[State, None, None]) -> State:
        return state.update(verdicts=[row_of(one) for one in states])

    @property
    def reads(self) -> list[str]:
        return ["rows"]

    @property
    def writes(self) -> list[str]:
        return ["verdicts"]


WHOLE = GraphBuilder().with_actions(each=Each()).with_transitions().build()
Builder = Callable[[ApplicationBuilder], ApplicationBuilder]


def _run(rows: Rows, more: Builder = lambda builder: builder) -> Rows:
    builder = ApplicationBuilder().with_graph(WHOLE).with_state(rows=rows).with_entrypoint("each")
    _, _, state = more(builder).build().run(halt_after=["each"])
    return state["verdicts"]


def _looped(rows: Rows) -> Rows:
    verdicts = []
    for item in rows:
        builder = ApplicationBuilder().with_graph(GRAPH).with_entrypoint("load")
        _, _, state = builder.with_state(item=item).build().run(halt_after=list(WORDS))
        verdicts.append(row_of(state))
    return verdicts


def _tracked(rows: Rows) -> Rows:
    folder = tempfile.mkdtemp()
    try:
        return _run(rows, lambda b: b.with_tracker(LocalTrackingClient("triage", folder)))
    finally:
        shutil.rmtree(folder)


def _saved(rows: Rows, saver: Any) -> Rows:
    return _run(rows, lambda b: b.with_state_persister(saver).with_identifiers(app_id="triage"))


def _persisted(rows: Rows) -> Rows:
    folder = tempfile.mkdtemp()
    path = str(Path(folder) / "state.db")
    # Every child has a connection of its own; on a busy machine the lock is long in coming.
    patient = {"check_same_thread": False, "timeout": 60}
    persister = SQLitePersister(path, connect_kwargs=patient)
    persister.initialize()
    try:
        return _saved(rows, persister)
    finally:
        shutil.rmtree(folder)


MODES = {
    "no tracker": _run,
    "no tracker, one's own loop": _looped,
    "tracker": _tracked,
    "sqlite": _persisted,
    "states in memory": lambda rows: _saved(rows, InMemoryPersister()),
}
