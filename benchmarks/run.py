"""Measure the goals of speed and say which are met.

    python benchmarks/run.py                    every goal that needs no peer
    python benchmarks/run.py --only 1,2,8       some of them
    python benchmarks/run.py --peers            those against peers, and the matrix of peers
    python benchmarks/run.py --quick            small sizes: to see that everything runs
    python benchmarks/run.py --json FILE        keep the figures

Every goal is measured in a process of its own, so that none runs in the memory another left; its
references run in that process too, in the same rounds. The exit status is 1 when a gate is missed,
when a goal could not be measured, or when a measurement went wrong; a goal that was not measured is
said and never counts as met. A quick run holds nothing to a gate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from goal import GOALS, Figure, NotMeasured, Plan  # noqa: E402
from measure import machine, table  # noqa: E402

THEMES = (
    *("row_wise", "batch", "memory", "trace", "start", "waiting", "display", "storage"),
    "playbooks",
)
MORE = ("engines", "peers", "flights")
#: Longest that one goal may take, in seconds.
MOST = 900


def load() -> None:
    """Import what measures; each theme registers its goals."""
    from importlib import import_module

    for theme in (*THEMES, *MORE):
        import_module(f"goals.{theme}")


def measured(number: int, *, quick: bool) -> dict[str, Any]:
    """Measure one goal here."""
    goal, plan = GOALS[number], Plan(quick)
    told: dict[str, Any] = {"number": number, "title": goal.title, "reference": goal.reference}
    figures: list[Figure] = []
    start = perf_counter()
    try:
        figures.extend(goal.measure(plan))
    except NotMeasured as why:
        told["not_measured"] = str(why)
    except Exception:
        told["failed"] = traceback.format_exc()
    told["seconds"] = perf_counter() - start
    told["figures"] = [figure.to_dict() for figure in figures]
    told["series"] = plan.series
    return told


def in_child(number: int, *, quick: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, "--here", str(number), *(["--quick"] if quick else [])]
    start = perf_counter()
    try:
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=MOST, check=False)
    except subprocess.TimeoutExpired:
        why = f"it took longer than {MOST} s"
        goal = GOALS[number]
        return {
            **{"number": number, "title": goal.title, "reference": goal.reference},
            **{"figures": [], "series": [], "seconds": MOST, "failed": why},
        }
    if said.returncode == 0 and said.stdout.strip():
        told: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
        return told
    goal = GOALS[number]
    return {
        **{"number": number, "title": goal.title, "reference": goal.reference},
        **{"figures": [], "series": [], "seconds": perf_counter() - start},
        "failed": f"its process ended with {said.returncode}",
    }


def written(value: float | None, unit: str = "", sign: str = "") -> str:
    """Write a figure as people read it: three digits that count."""
    if value is None:
        return ""
    if value == int(value) and abs(value) < 1e15:
        text = f"{int(value):,}"
    elif abs(value) >= 100:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    return f"{sign}{text}" + ("" if not unit else "×" if unit == "x" else f" {unit}")


def lines_of(told: dict[str, Any], *, quick: bool) -> list[list[str]]:
    """Give a goal as rows of the table: goal, figure, gate, stretch, met."""
    name = f"{told['number']:>2}  {told['title']}"
    if told["reference"]:
        name += f"  [{told['reference']}]"
    lines = [[name, "", "", "", "", ""]]
    for figure in told["figures"]:
        sign = "≥ " if figure["at_least"] else "≤ "
        lines.append(
            [
                "",
                figure["label"],
                written(figure["value"], figure["unit"]),
                written(figure["gate"], "", sign),
                written(figure["stretch"], "", sign),
                "" if quick else figure["met"],
            ]
        )
    if "not_measured" in told:
        lines.append(["", f"not measured: {told['not_measured']}", "", "", "", "NOT MEASURED"])
    if "failed" in told:
        last = told["failed"].strip().splitlines()[-1]
        lines.append(["", f"went wrong: {last}", "", "", "", "FAILED"])
    return lines


def show(all_told: list[dict[str, Any]], *, quick: bool) -> None:
    for told in all_told:
        head, *rows = lines_of(told, quick=quick)
        print(f"{head[0]}  ({told['seconds']:.0f} s)")
        if rows:
            table(["   ", "figure", "measured", "gate", "stretch", "met"], rows)
        print(flush=True)


def missed(told: dict[str, Any]) -> list[str]:
    """Say what stands between a goal and being met."""
    found = [f["label"] for f in told["figures"] if f["met"] == "MISSED"]
    found += [f"not measured: {told['not_measured']}"] if "not_measured" in told else []
    found += ["went wrong"] if "failed" in told else []
    if not found and not any(f["gate"] is not None for f in told["figures"]):
        found.append("holds nothing to a gate")
    return found


def commit() -> str:
    said = subprocess.run(
        ["git", "-C", str(HERE), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="numbers of goals: 1,2,8")
    parser.add_argument("--peers", action="store_true", help="the goals against peers")
    parser.add_argument("--quick", action="store_true", help="small sizes, no gates")
    parser.add_argument("--json", metavar="FILE", help="keep the figures, beside those of others")
    parser.add_argument("--here", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    load()
    if asked.here is not None:
        print("\n" + json.dumps(measured(asked.here, quick=asked.quick)))
        return 0
    if asked.only:
        numbers = [int(number) for number in asked.only.split(",")]
        unknown = [number for number in numbers if number not in GOALS]
        if unknown:
            parser.error(f"there is no goal {unknown[0]}; they are {sorted(GOALS)}")
    else:
        numbers = [n for n, goal in sorted(GOALS.items()) if goal.peers == asked.peers]
    where = machine()
    print(", ".join(f"{key} {value}" for key, value in where.items()), "\n", flush=True)
    started, all_told = datetime.now(UTC), []
    for number in numbers:
        told = in_child(number, quick=asked.quick)
        show([told], quick=asked.quick)
        all_told.append(told)
        if asked.json:  # after each, as a long run may be cut short
            keep(
                Path(asked.json),
                [told],
                where=where,
                started=started,
                quick=asked.quick,
                arguments=arguments,
            )
    stops = {told["number"]: missed(told) for told in all_told}
    for number, why in stops.items():
        if why and not asked.quick:
            print(f"goal {number} is not met: {'; '.join(why)}")
    failed = any("failed" in told for told in all_told)
    if asked.quick:
        return int(failed)
    return int(any(stops.values()))


def keep(
    path: Path,
    all_told: list[dict[str, Any]],
    *,
    where: dict[str, Any],
    started: datetime,
    quick: bool,
    arguments: list[str],
) -> None:
    """Write the figures; those of goals not measured now stay as they were in the file."""
    kept: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    goals = {told["number"]: told for told in kept.get("goals", ())}
    stamp = {
        "date": started.strftime("%Y-%m-%d"),
        "machine": where,
        "commit": commit(),
        "quick": quick,
        "command": " ".join(["python benchmarks/run.py", *arguments]),
    }
    for told in all_told:
        goals[told["number"]] = {**told, "measured": stamp}
    kept = {"goals": [goals[number] for number in sorted(goals)]}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
