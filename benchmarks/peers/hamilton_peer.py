"""Hamilton: functions as nodes, run per row between a Parallelizable and a Collect.

Without recording: the user's evidence is with each verdict. With: a hook hears of every node that
ran, its inputs and its result, and keeps a row of it. The rules and their evidence are the user's.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from hamilton import ad_hoc_utils, driver
from hamilton.execution import executors
from hamilton.htypes import Collect, Parallelizable
from hamilton.lifecycle.api import NodeExecutionHook

from peers.rules import judge

VERSION = f"hamilton {version('apache-hamilton')}"
Row = dict[str, Any]


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


class Rows(NodeExecutionHook):
    def __init__(self) -> None:
        self.kept: list[Row] = []

    def run_before_node_execution(self, **known: Any) -> None:
        pass

    def run_after_node_execution(
        self, *, node_name: str, node_kwargs: Row, result: Any, task_id: Any = None, **known: Any
    ) -> None:
        self.kept.append({"node": node_name, "task": task_id, "in": node_kwargs, "out": result})


MODULE = ad_hoc_utils.create_temporary_module(item, loaded, decided, verdict, verdicts)


def _run(rows: list[Row], *hooks: Any) -> list[Row]:
    builder = (
        driver.Builder()
        .enable_dynamic_execution(allow_experimental_mode=True)
        .with_modules(MODULE)
        .with_remote_executor(executors.SynchronousLocalTaskExecutor())
    )
    if hooks:
        builder = builder.with_adapters(*hooks)
    return builder.build().execute(["verdicts"], inputs={"rows": rows})["verdicts"]


def _heard(rows: list[Row]) -> list[Row]:
    hook = Rows()
    made = _run(rows, hook)
    if len(hook.kept) < 3 * len(rows):
        raise AssertionError(f"the hook heard of {len(hook.kept)} nodes only")
    return made


MODES = {"no hook": _run, "hook per node": _heard}
