"""Importing the package, and the first cell of a notebook: goals 19 and 20."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from time import perf_counter

from goal import Figure, Plan, goal
from measure import HERE

#: What a bare import must leave alone, and what may be measured in the first cell.
LEFT_ALONE = (
    *("asyncio", "numpy", "pandas", "IPython", "graphviz", "pydantic", "jinja2", "pyarrow"),
    *("cloudpickle", "distributed", "anywidget", "ipywidgets", "nbformat", "rich", "tqdm"),
    *("typer", "yaml"),
)

FIRST_CELL = """
import runbook_nb as rb
rows = [{"subject": f"cluster-{i}", "age_days": i % 40, "age_known": i % 23 > 0}
        for i in range(50)]
posture = rb.RuleSet("health-signal", "v1", rules=[
    rb.Rule({"age_known": {"eq": False}}, then="declined", label="cannot be read"),
    rb.Rule({"age_days": {"gt": 7}}, then="unprotected", label="older than 7 days"),
], default=rb.Default("protected", label="within 7 days"))
envelope = rb.triage(rows, posture, subject="subject", source="rows, 50")
shown = envelope._repr_mimebundle_()
"""

PROGRAMS = {
    "bare": "",
    "json": "import json",
    "import": "import runbook_nb",
    "first cell": FIRST_CELL,
    "first cell, no picture": "import runbook_nb as rb\nrb.settings.layout = 'none'\n" + FIRST_CELL,
    "asyncio": "import asyncio, json, dataclasses",
}
COUNT = "\nimport sys; loaded = sorted(sys.modules); import json; print(json.dumps(loaded))"


def run(program: str, cache: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", program],
        env=env | {"PYTHONPYCACHEPREFIX": cache},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def timed(programs: dict[str, str], rounds: int) -> tuple[dict[str, list[float]], dict[str, set]]:
    """Run every program in processes of its own, in turn, with byte code at hand."""
    with tempfile.TemporaryDirectory() as cache:
        loaded = {
            name: set(json.loads(run(program + COUNT, cache).splitlines()[-1]))
            for name, program in programs.items()
        }
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(rounds):
            for name, program in programs.items():
                start = perf_counter()
                run(program, cache)
                times[name].append(perf_counter() - start)
    return times, loaded


def over(times: dict[str, list[float]], name: str, reference: str = "bare") -> float:
    """Give the median of what a program takes longer than the reference of its round, in ms."""
    pairs = zip(times[name], times[reference], strict=True)
    return statistics.median(one - other for one, other in pairs) * 1e3


@goal(19, "import runbook_nb over a bare interpreter", "stdlib json, in the same rounds")
def importing(plan: Plan) -> Iterator[Figure]:
    programs = {name: PROGRAMS[name] for name in ("bare", "json", "asyncio", "import")}
    times, loaded = timed(programs, plan.rounds(21))
    own = loaded["import"] - loaded["bare"]
    heavy = [name for name in LEFT_ALONE if name in own]
    yield Figure(f"packages to leave alone{': ' if heavy else ''}{', '.join(heavy)}", len(heavy),
                 "packages", 0, 0)  # fmt: skip
    yield Figure("modules", len(own), "modules", 120)
    yield Figure("import", over(times, "import"), "ms", 80, 20)
    yield Figure("stdlib json", over(times, "json"), "ms")
    yield Figure("asyncio, json, dataclasses", over(times, "asyncio"), "ms")


@goal(20, "first cell: import, build, run, show, N = 50, cold", "pydantic-graph about 120 ms")
def first_cell(plan: Plan) -> Iterator[Figure]:
    names = ("bare", "import", "first cell", "first cell, no picture")
    times, loaded = timed({name: PROGRAMS[name] for name in names}, plan.rounds(21))
    yield Figure("first cell", over(times, "first cell"), "ms", 200, 60)
    yield Figure("the same without a picture", over(times, "first cell, no picture"), "ms")
    yield Figure("modules", len(loaded["first cell"] - loaded["bare"]), "modules")
