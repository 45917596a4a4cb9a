"""Burr: a state machine per subject (load, decide, a verdict), mapped over the rows.

Without recording: the user's evidence stays in the state and nothing else is kept. With the local
tracker: every step's state before and after, as files, three per subject. With the SQLite
persister: the state after every step, a row each. The rules and their evidence are the user's.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from burr.core import ApplicationBuilder, ApplicationContext, GraphBuilder, State, action, expr
from burr.core.parallelism import MapStates, RunnableGraph
from burr.core.persistence import SQLitePersister
from burr.tracking import LocalTrackingClient

from peers.rules import judge

VERSION = f"burr {version('apache-burr')}"
WORDS = ("declined", "unprotected", "protected")


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
        *(("decide", word, expr(f"word == '{word}'")) for word in WORDS),
    )
    .build()
)


class Each(MapStates):
    def action(self, state: State, inputs: dict[str, Any]) -> RunnableGraph:
        return RunnableGraph(graph=GRAPH, entrypoint="load", halt_after=list(WORDS))

    def states(
        self, state: State, context: ApplicationContext, inputs: dict[str, Any]
    ) -> Generator[State, None, None]:
        for item in state["rows"]:
            # A state of its own: as the documentation has it, every child carries all rows.
            yield State({"item": item})

    def reduce(self, state: State, states: Generator[State, None, None]) -> State:
        verdicts = [{"subject": s["subject"], "verdict": s["verdict"]} for s in states]
        return state.update(verdicts=verdicts)

    @property
    def reads(self) -> list[str]:
        return ["rows"]

    @property
    def writes(self) -> list[str]:
        return ["verdicts"]


def _run(rows: list[dict[str, Any]], more: Any = None) -> list[dict[str, Any]]:
    builder = (
        ApplicationBuilder()
        .with_actions(each=Each())
        .with_transitions()
        .with_state(rows=rows)
        .with_entrypoint("each")
    )
    if more is not None:
        builder = more(builder)
    _, _, state = builder.build().run(halt_after=["each"])
    return state["verdicts"]


def _tracked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    folder = tempfile.mkdtemp()
    try:
        return _run(rows, lambda b: b.with_tracker(LocalTrackingClient("triage", folder)))
    finally:
        shutil.rmtree(folder)


def _persisted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    folder = tempfile.mkdtemp()
    path = str(Path(folder) / "state.db")
    persister = SQLitePersister(path, connect_kwargs={"check_same_thread": False})
    persister.initialize()
    try:
        return _run(
            rows,
            lambda b: b.with_state_persister(persister).with_identifiers(app_id="triage"),
        )
    finally:
        shutil.rmtree(folder)


MODES = {"no tracker": _run, "tracker": _tracked, "sqlite": _persisted}
