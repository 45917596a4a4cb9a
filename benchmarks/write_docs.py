"""Write the figures of a run into docs/benchmarks.md, and its plots into docs/_static.

    python benchmarks/write_docs.py [FILE]      FILE is what run.py --json wrote

What stands between two markers ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is written here
and never by hand. A page without a marker, or a marker nobody writes, is an error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

from chart import Series, draw, merged  # noqa: E402
from run import missed, written  # noqa: E402

RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"
STATIC = ROOT / "docs" / "_static"
PEERS = (9, 10, 11)

#: Series of the plot of ours: name as noted, name as shown, role, quiet.
OURS = (
    ("written walk", "the walk, written by hand", "declined", True),
    ("bare + evidence", "a loop with evidence tuples", "declined", True),
    ("bare loop", "a loop, verdicts only", "declined", True),
    ("row-wise", "row by row, to the envelope", "a", False),
    ("row-wise, chart alone", "row by row, the chart alone", "b", False),
    ("batch, rows in", "as columns, rows in", "d", False),
    ("batch, frame in", "as columns, DataFrame in", "c", False),
)


def tables(told: dict[str, Any]) -> Iterator[str]:
    """Write every goal and its figures as one table in Markdown."""
    yield "| goal | figure | measured | gate | stretch | met |"
    yield "|---|---|--:|--:|--:|---|"
    for goal in told["goals"]:
        name = f"**{goal['number']}** {goal['title']}"
        if goal["reference"]:
            name += f" *({goal['reference']})*"
        for figure in goal["figures"]:
            sign = "≥ " if figure["at_least"] else "≤ "
            met = {"MISSED": "**missed**"}.get(figure["met"], figure["met"])
            cells = (
                *(name, figure["label"], written(figure["value"], figure["unit"])),
                *(written(figure["gate"], "", sign), written(figure["stretch"], "", sign), met),
            )
            yield "| " + " | ".join(cells) + " |"
            name = ""
        for key, word in (("not_measured", "not measured"), ("failed", "went wrong")):
            if key in goal:
                why = goal[key].strip().splitlines()[-1].replace("|", "\\|")
                yield f"| {name} | {word}: {why} | | | | **{word}** |"
                name = ""


def summary(told: dict[str, Any]) -> Iterator[str]:
    """Say how many goals are met, and which are not and why."""
    open_ = {goal["number"]: missed(goal) for goal in told["goals"]}
    met = [number for number, why in open_.items() if not why]
    gated = [f for goal in told["goals"] for f in goal["figures"] if f["gate"] is not None]
    reached = sum(figure["met"] == "stretch" for figure in gated)
    aimed = sum(figure["stretch"] is not None for figure in gated)
    yield (
        f"{len(met)} of {len(open_)} goals hold every gate; {reached} of {aimed} figures that have "
        "one are within their stretch."
    )
    for number, why in open_.items():
        if why:
            yield f"\n- goal {number}: {'; '.join(why)}"


def where(told: dict[str, Any]) -> Iterator[str]:
    """Say when, where and with which command the figures were made."""
    stamps: dict[str, list[int]] = {}
    for goal in told["goals"]:
        stamp, machine = goal["measured"], goal["measured"]["machine"]
        if stamp["quick"]:
            raise SystemExit(f"goal {goal['number']} is of a quick run; its figures are no result")
        text = (
            f"{stamp['date']}, `{stamp['command']}` at `{stamp['commit']}`; {machine['processor']}"
            f", {machine['cores']} cores, {machine['system']}, Python {machine['python']}"
        )
        stamps.setdefault(text, []).append(goal["number"])
    for text, numbers in stamps.items():
        whole = len(stamps) == 1
        yield f"- {text}" + ("" if whole else f" (goals {', '.join(map(str, numbers))})")


def points_of(told: dict[str, Any], *, peers: bool) -> dict[str, tuple[tuple[int, float], ...]]:
    return merged(
        point
        for goal in told["goals"]
        if (goal["number"] in PEERS) == peers
        for point in goal["series"]
    )


PICTURE = """```{{image}} _static/speed_peers_{theme}.svg
:class: only-{theme}
:alt: {title}
```
"""
OTHERS = "Microseconds per subject by number of subjects, this package and others"


def peers(told: dict[str, Any]) -> Iterator[str]:
    """Write the matrix of peers: microseconds per subject by number of subjects."""
    points = points_of(told, peers=True)
    if not points:
        yield "Not measured in this run."
        return
    yield from (PICTURE.format(theme=theme, title=OTHERS + ".") for theme in ("light", "dark"))
    sizes = sorted({n for kept in points.values() for n, _ in kept})
    yield "| microseconds per subject | " + " | ".join(f"N = {n:,}" for n in sizes) + " |"
    yield "|---|" + "--:|" * len(sizes)
    for name, kept in sorted(points.items(), key=lambda item: item[1][-1][1]):
        found = dict(kept)
        cells = (written(found[n]) if n in found else "not run" for n in sizes)
        ours = name in {"row-wise", "batch, rows in"}
        yield f"| {f'**this package, {name}**' if ours else name} | {' | '.join(cells)} |"


def plots(told: dict[str, Any]) -> Iterator[tuple[str, list[Series], str]]:
    """Give the plots: file name, series, and what is said of each to who cannot see it."""
    points = points_of(told, peers=False)
    ours = [Series(said, role, points.get(name, ()), quiet) for name, said, role, quiet in OURS]
    yield "speed", ours, "Microseconds per subject by number of subjects, this package and loops"
    others = points_of(told, peers=True)
    if others:
        known = {name for name, *_ in OURS}
        series = [
            Series(name, "declined", others[name], True) for name in others if name not in known
        ]
        series += [one for one in ours if one.role in "ad"]
        yield "speed_peers", series, OTHERS


def placed(page: str, name: str, text: str) -> str:
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise SystemExit(f"{PAGE.name} has no place for {name!r}")
    return pattern.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)


def main(arguments: list[str]) -> int:
    told = json.loads(Path(arguments[0] if arguments else RESULTS).read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    for name, lines in (
        ("where", where(told)),
        ("summary", summary(told)),
        ("goals", tables(told)),
        ("peers", peers(told)),
    ):
        page = placed(page, name, "\n".join(lines))
    for name, series, title in plots(told):
        for theme in ("light", "dark"):
            drawn = draw(series, title=title, theme=theme)
            (STATIC / f"{name}_{theme}.svg").write_text(drawn, "utf-8")
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
