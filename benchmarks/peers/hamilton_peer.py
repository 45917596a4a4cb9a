"""Hamilton: functions as nodes, run per row between a Parallelizable and a Collect.

That is how its documentation runs a graph over a list; the three nodes of a subject are one task of
its scheduler, run in place, which is quicker here than its pools. Hamilton has no branch that is
chosen while it runs: a node writes the verdict that was decided.

Without recording: the user's evidence is with each verdict. With: a hook hears of every node that
ran, its inputs and its result, and keeps a row of it. Beside: its pool of threads, which is what it
takes when nothing is said; the user's own loop, an execution of the subject's graph per row; and
columns, a pandas Series per node, which is what Hamilton is at home with - a verdict and evidence
per column, and no stage of any subject. The rules and their evidence are the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pandas as pd
from hamilton import ad_hoc_utils, driver
from hamilton.execution import executors
from hamilton.htypes import Collect, Parallelizable
from hamilton.lifecycle.api import NodeExecutionHook

from peers.rules import Row, Rows, judge

VERSION = f"hamilton {version('apache-hamilton')}"


def item(rows: list) -> Parallelizable[dict]:
    yield from rows


def loaded(item: dict) -> dict:
    return dict(item)


def decided(loaded: dict) -> dict:
    word, evidence = judge(loaded)
    return {"word": word, "evidence": evidence}


def verdict(loaded: dict, decided: dict) -> dict:
    return {"subject": loaded["subject"], "verdict": decided["word"]}


def verdicts(verdict: Collect[dict]) -> list:
    return list(verdict)


def unknown(age_known: pd.Series) -> pd.Series:
    return age_known.eq(False)


def older(age_days: pd.Series) -> pd.Series:
    return age_days.gt(7)


def word(unknown: pd.Series, older: pd.Series) -> pd.Series:
    said = older.map({True: "unprotected", False: "protected"})
    return said.mask(unknown, "declined")


class Heard(NodeExecutionHook):
    def __init__(self) -> None:
        self.kept: Rows = []

    def run_before_node_execution(self, **known: Any) -> None:
        pass

    def run_after_node_execution(
        self, *, node_name: str, node_kwargs: Row, result: Any, task_id: Any = None, **known: Any
    ) -> None:
        self.kept.append({"node": node_name, "task": task_id, "in": node_kwargs, "out": result})


MAPPED = ad_hoc_utils.create_temporary_module(item, loaded, decided, verdict, verdicts)
HOOK = Heard()


def _driver(*hooks: Any, executor: Any) -> Any:
    builder = (
        driver.Builder()
        .enable_dynamic_execution(allow_experimental_mode=True)
        .with_modules(MAPPED)
        .with_remote_executor(executor)
    )
    return (builder.with_adapters(*hooks) if hooks else builder).build()


def _run(built: Any) -> Callable[[Rows], Rows]:
    return lambda rows: built.execute(["verdicts"], inputs={"rows": rows})["verdicts"]


IN_PLACE = _run(_driver(executor=executors.SynchronousLocalTaskExecutor()))
THREADS = _run(_driver(executor=executors.MultiThreadingExecutor(max_tasks=10)))
HEARD = _run(_driver(HOOK, executor=executors.SynchronousLocalTaskExecutor()))
ALONE = (
    driver.Builder()
    .with_modules(ad_hoc_utils.create_temporary_module(loaded, decided, verdict))
    .build()
)
COLUMNS = (
    driver.Builder()
    .with_modules(ad_hoc_utils.create_temporary_module(unknown, older, word))
    .build()
)


def _heard(rows: Rows) -> Rows:
    HOOK.kept = []
    made = HEARD(rows)
    if len(HOOK.kept) < 3 * len(rows):
        raise AssertionError(f"the hook heard of {len(HOOK.kept)} nodes only")
    return made


def _looped(rows: Rows) -> Rows:
    return [ALONE.execute(["verdict"], inputs={"item": row})["verdict"] for row in rows]


def _columns(rows: Rows) -> Rows:
    frame = pd.DataFrame(rows)
    made = COLUMNS.execute(
        ["unknown", "older", "word"],
        inputs={"age_known": frame["age_known"], "age_days": frame["age_days"]},
    )
    return [
        {"subject": subject, "verdict": verdict}
        for subject, verdict in zip(frame["subject"].tolist(), made["word"].tolist(), strict=True)
    ]


MODES = {
    "no hook": IN_PLACE,
    "no hook, threads": THREADS,
    "no hook, one's own loop": _looped,
    "columns": _columns,
    "hook per node": _heard,
}
