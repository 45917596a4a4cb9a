"""What showing an answer costs: the first cell of a session, then each form of it again.

Method. The first cell is a process of its own with byte code at hand, as an installed package has
it; what is counted is the processor's time inside it, which other work on the machine moves least.
Warm figures are the best of several rounds in one process, also by the processor's time. The
picture is laid out by a program of its own, so for it the time on the clock stands beside. Bytes
are the same on every machine. Milliseconds gate nothing; the exit status is 1 when a size is past
its bound, or when drawing a longer answer takes more elements than a short one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from _measure import machine, table

ROUNDS = 15
SIZES = (50, 1_000, 10_000, 100_000)
MOST_PICTURE = 20 * 1024

FIRST_CELL = """
from time import perf_counter, process_time
began, clock = process_time(), perf_counter()
import runbook_nb as rb
posture = rb.RuleSet("health-signal", "v1", rules=[
    rb.Rule({"age_known": {"eq": False}}, then="declined", label="cannot be read"),
    rb.Rule({"age_days": {"gt": 7}}, then="unprotected", label="older than 7 days"),
], default=rb.Default("protected", label="within 7 days"))
rows = [{"cluster": f"c{i}", "age_days": i, "age_known": i % 5 > 0} for i in range(50)]
imported = process_time()
envelope = rb.triage(rows, posture, subject="cluster", source="rows, 50")
judged = process_time()
envelope._repr_mimebundle_()
shown = process_time()
import json, sys
print(json.dumps({"import and rules": imported - began, "triage": judged - imported,
    "show": shown - judged, "the first cell": shown - began,
    "the first cell, on the clock": perf_counter() - clock, "modules": len(sys.modules)}))
"""


def first_cells() -> dict[str, list[float]]:
    """Run the first cell in processes of their own, the first of which only compiles."""
    with tempfile.TemporaryDirectory() as cache:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = cache
        command = [sys.executable, "-c", FIRST_CELL]
        heard = [
            json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
            for _ in range(ROUNDS + 1)
        ][1:]
    return {name: [one[name] for one in heard] for name in heard[0]}


def best(work: Callable[[], Any], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def picture_of(envelope: Any) -> tuple[list[str], int]:
    """Draw the chart of an answer anew and again; give the figures and its bytes."""
    from runbook_nb.render import svg

    flow = envelope.walk.flowchart().flow
    svg._kept.clear()
    clock, start = perf_counter(), process_time()
    drawing = svg.draw(flow)
    spent, waited = process_time() - start, perf_counter() - clock
    again = best(lambda: svg.draw(flow))
    size = len((drawing.svg or "").encode())
    return [ms(spent), ms(waited), ms(again), f"{size:,}"], size


def main() -> int:
    print(f"display, {machine()}, processor time\n")
    cells = first_cells()
    modules = cells.pop("modules")
    rows = [[name, ms(min(all_)), ms(statistics.median(all_))] for name, all_ in cells.items()]
    table(["cold, 50 rows", "best, ms", "median, ms"], rows)
    print(f"  modules loaded after it: {int(modules[0])}\n")

    import runbook_nb as rb
    from runbook_nb.render.html import render_html
    from runbook_nb.render.text import render_text

    posture = rb.RuleSet(
        "health-signal",
        "v1",
        rules=[
            rb.Rule({"age_known": {"eq": False}}, then="declined", label="cannot be read"),
            rb.Rule({"age_days": {"gt": 7}}, then="unprotected", label="older than 7 days"),
        ],
        default=rb.Default("protected", label="within 7 days"),
    )
    warm, pictures, elements, largest = [], [], [], 0
    for n in SIZES:
        subjects = [
            {"cluster": f"c{i}", "age_days": i % 40, "age_known": i % 5 > 0} for i in range(n)
        ]
        envelope = rb.triage(subjects, posture, subject="cluster", source=f"rows, {n}")
        card = envelope.view()
        rounds = 7 if n <= 1_000 else 3
        figures = [f"N = {n:,}", ms(best(envelope.view, rounds))]
        figures.append(ms(best(lambda card=card: render_text(card))))
        with rb.settings(embed=False, layout="none"):
            html = render_html(card)
            figures.append(ms(best(lambda card=card: render_html(card))))
            elements.append(html.count("</"))
        figures.append(f"{len(html.encode()):,}")
        with rb.settings(layout="none"):
            whole = best(lambda card=card: render_html(card), rounds)
        figures.append(ms(whole))
        warm.append(figures)
        drawn, size = picture_of(envelope)
        largest = max(largest, size)
        pictures.append([f"N = {n:,}", *drawn])
    head = ["warm, ms", "view", "text", "HTML, bare", "its bytes", "HTML with the form carried"]
    table(head, warm)
    head = ["picture of the folded chart, ms", "anew", "on the clock", "again", "bytes"]
    table(head, pictures)
    return int(largest > MOST_PICTURE or max(elements[1:]) > elements[0] + 20)


if __name__ == "__main__":
    sys.exit(main())
