"""What importing the package costs, and the first cell of a notebook.

Method. Each measurement is a process of its own, started alternately with a bare interpreter and
with the standard library's json, which a reader pays anyway; figures are medians over the rounds,
less the bare interpreter. Byte code is at hand, as an installed package has it. Modules are
counted, since the count is the same on every machine, and packages that must not be imported are
looked for by name. Milliseconds gate nothing.
The exit status is 1 when a package is imported that must not be.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from time import perf_counter

from _measure import machine, table

ROUNDS = 11
LEFT_ALONE = (
    *("IPython", "anywidget", "asyncio", "graphviz", "ipywidgets", "jinja2", "nbformat"),
    *("numpy", "pandas", "pydantic", "rich", "tqdm", "typer", "yaml"),
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
    "bare interpreter": "",
    "json": "import json",
    "asyncio, json, dataclasses": "import asyncio, json, dataclasses",
    "import runbook_nb": "import runbook_nb",
    "every public name": "import runbook_nb as rb; [getattr(rb, n) for n in rb.__all__]",
    "first cell, 50 rows, shown": FIRST_CELL,
    "runbook-nb --version": "from runbook_nb.cli.main import main\ntry: main(['--version'])\n"
    "except SystemExit: pass",
}
COUNT = "\nimport sys; loaded = sorted(sys.modules); import json; print(json.dumps(loaded))"


def run(program: str, cache: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=env | {"PYTHONPYCACHEPREFIX": cache},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def main() -> int:
    with tempfile.TemporaryDirectory() as cache:
        return measured(cache)


def measured(cache: str) -> int:
    print(f"import, {machine()}, {ROUNDS} processes each\n")
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    loaded = {
        name: set(json.loads(run(p + COUNT, cache).splitlines()[-1]))
        for name, p in PROGRAMS.items()
    }
    for _ in range(ROUNDS):
        for name, program in PROGRAMS.items():
            start = perf_counter()
            run(program, cache)
            seconds[name].append(perf_counter() - start)
    bare, base = statistics.median(seconds["bare interpreter"]), loaded["bare interpreter"]
    rows = []
    for name in PROGRAMS:
        own = loaded[name] - base
        found = [word for word in LEFT_ALONE if word in own]
        rows.append(
            [
                name,
                f"{(statistics.median(seconds[name]) - bare) * 1000:.1f}",
                str(len(own)),
                ", ".join(found) or "-",
            ]
        )
    table(["over a bare interpreter", "ms", "modules", "of the packages to leave alone"], rows)
    print(f"  the bare interpreter itself takes {bare * 1000:.1f} ms\n")
    unwanted = [word for word in LEFT_ALONE if word in loaded["import runbook_nb"]]
    if unwanted:
        print(f"  import runbook_nb brings in {', '.join(unwanted)}")
    return 1 if unwanted else 0


if __name__ == "__main__":
    sys.exit(main())
