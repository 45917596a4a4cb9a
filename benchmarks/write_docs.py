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
from goal import BESIDE  # noqa: E402
from run import missed, written  # noqa: E402

RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "benchmarks.md"
STATIC = ROOT / "docs" / "_static"
PEERS = (9, 10, 11)

#: What the goals are about, in the order of the page.
THEMES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("Row by row", (1, 2, 3, 4, 5, 6, 21)),
    ("As columns", (7, 8, 30)),
    ("A million subjects, and memory", (14, 13, 12, 16, 15)),
    ("The record as a file, and a store of files", (17, 18, 28)),
    ("Start", (19, 20)),
    ("Waiting, and more than one process", (22, 23, 29)),
    ("What is shown", (24, 25, 26, 27, 31, 32)),
    ("Playbooks", (33,)),
    ("Against others", PEERS),
)
_ENVELOPE = "What an answer says of its run costs nearly the same at any N, which weighs most here."
_ROWS = (
    "Half is the one loop that judges and files; half are the calls of the stages, about thirty "
    "for a subject, each read and write of theirs recorded."
)
#: What stands between a goal and its gate or its stretch, where profiles tell.
STOPS = {
    1: _ENVELOPE,
    **dict.fromkeys((2, 3, 4, 5, 14), _ROWS),
    7: _ENVELOPE,
    8: _ENVELOPE,
    9: _ENVELOPE,
    10: "A hundredth of the fastest would be less than three microseconds, the answer included.",
    11: "Burr's and LangGraph's stores keep each step; ours keeps the whole walk in memory.",
    12: "Six references of eight bytes, an offset, a shape, a status, and what lists keep spare.",
    13: "What goal 12 counts, and the items by column: three references more.",
    18: "Half of it is `json` and `zlib`; the rest gathers the columns.",
    20: "Nearly all of it is loading the package's modules and declaring their classes.",
    21: _ENVELOPE,
    22: "Workers by hand reach a tenth more: so much are the steps the engine takes for a branch.",
    26: "Every cell is drawn as boxes and text; only to keep the page itself would cost less.",
    27: "A row is an object of eight fields; a third is the collector going over them.",
    28: (
        "Digests and packing take most of what is packed, on both cores. Filed one by one, each is "
        "a transaction of nine pages, on one core; what cannot be packed still gets a digest and a "
        "ticket, which the reference does without."
    ),
    29: "Scheduler, caller and both workers share two cores.",
    33: "A call makes an event, and nothing but events changes a plan.",
}
REACHED = {"stretch": "stretch", "gate": "gate", "MISSED": "**missed**"}

#: Series of the plot of ours: name as noted, name as shown, role, quiet.
OURS = (
    ("written walk", "the walk, written by hand", "declined", True),
    ("written walk, flat", "the same in flat rows", "declined", True),
    ("bare + evidence", "a loop with evidence tuples", "declined", True),
    ("bare loop", "a loop, verdicts only", "declined", True),
    ("row-wise", "row by row, to the envelope", "a", False),
    ("row-wise, chart alone", "row by row, the chart alone", "b", False),
    ("batch, rows in", "as columns, rows in", "d", False),
    ("batch, frame in", "as columns, DataFrame in", "c", False),
)


def tables(told: dict[str, Any]) -> Iterator[str]:
    """Write the goals of each theme and their figures as a table in Markdown."""
    goals = {goal["number"]: goal for goal in told["goals"]}
    known = [number for _, numbers in THEMES for number in numbers]
    more = tuple(number for number in goals if number not in known)
    for title, numbers in (*THEMES, ("More", more)):
        found = [goals[number] for number in numbers if number in goals]
        if found:
            yield f"### {title}\n"
            yield "| goal | figure | measured | gate | stretch | reached |"
            yield "|---|---|--:|--:|--:|---|"
            for goal in found:
                yield from _rows(goal)
            yield ""


def _rows(goal: dict[str, Any]) -> Iterator[str]:
    name = f"**{goal['number']}** {goal['title']}"
    if goal["reference"]:
        name += f" *({goal['reference']})*"
    for figure in goal["figures"]:
        if goal["number"] in PEERS and figure["gate"] is None:
            continue  # among the others, below
        sign = "≥ " if figure["at_least"] else "≤ "
        bounds = (written(figure[bound], "", sign) for bound in ("gate", "stretch"))
        cells = (name, figure["label"], measured(figure), *bounds, REACHED.get(figure["met"], ""))
        yield "| " + " | ".join(cells) + " |"
        name = ""
    for key, word in (("not_measured", "not measured"), ("failed", "went wrong")):
        if key in goal:
            why = goal[key].strip().splitlines()[-1].replace("|", "\\|")
            yield f"| {name} | {word}: {why} | | | | **{word}** |"
            name = ""


def measured(figure: dict[str, Any]) -> str:
    """Write what was measured, with its unit."""
    return written(figure["value"], figure["unit"].replace("us/", "µs/"))


def summary(told: dict[str, Any]) -> Iterator[str]:
    """Say how many goals are met, which are not, by how much, and what stops them."""
    open_ = {goal["number"]: missed(goal) for goal in told["goals"]}
    met = [number for number, why in open_.items() if not why]
    gated = [f for goal in told["goals"] for f in goal["figures"] if f["gate"] is not None]
    aimed = [figure for figure in gated if figure["stretch"] is not None]
    reached = sum(figure["met"] == "stretch" for figure in aimed)
    yield (
        f"{len(met)} of {len(open_)} goals hold every gate; {reached} of the {len(aimed)} figures "
        "that have a stretch reach it."
    )
    for title, chosen in (("A gate is missed", True), ("The gates hold, a stretch is open", False)):
        lines = [
            f"- **{goal['number']}** {goal['title']} - {'; '.join(short)}."
            + (f" {STOPS[goal['number']]}" if goal["number"] in STOPS else "")
            for goal in told["goals"]
            if bool(open_[goal["number"]]) == chosen and (short := short_of(goal))
        ]
        if lines:
            yield f"\n**{title}**\n"
            yield from lines


def short_of(goal: dict[str, Any]) -> list[str]:
    """Say which figures of a goal fall short of a gate or of a stretch, and by how much."""
    found = []
    for figure in goal["figures"]:
        bounds = {"MISSED": ("gate", "stretch"), "gate": ("stretch",)}.get(figure["met"], ())
        sign = "≥ " if figure["at_least"] else "≤ "
        wanted = [f"{b} {written(figure[b], '', sign)}" for b in bounds if figure[b] is not None]
        if wanted:
            found.append(f"{figure['label']}: {measured(figure)} ({', '.join(wanted)})")
    more = (why for why in missed(goal) if why not in {f["label"] for f in goal["figures"]})
    return [*found, *more]


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
#: Our ways in the rounds of the others, and how a ratio to one that is not row-wise is marked.
MINE = {
    "row-wise": "",
    "row-wise, walk in a file": "with the walk in a file",
    "batch, rows in": "as columns",
}
#: What a name says of versions; the table has them, a plot has no room.
VERSIONS = re.compile(r" \d[\w.]*(, node v[\d.]+)?")
THAT = ", times as fast as that"


def peers(told: dict[str, Any]) -> Iterator[str]:
    """Write what everybody took, by number of subjects, and how ours compared at N = 1,000."""
    if not any(goal["number"] in PEERS for goal in told["goals"]):
        yield "Not measured in this run."
        return
    yield from (PICTURE.format(theme=theme, title=OTHERS + ".") for theme in ("light", "dark"))
    for recording, title in ((False, "Without their recording"), (True, "With their recording")):
        points = others(told, recording=recording)
        mine = merged(
            point
            for goal in told["goals"]
            if goal["number"] == (11 if recording else 10)
            for point in goal["series"]
            if point["name"] in MINE
        )
        sizes = sorted({n for kept in (*points.values(), *mine.values()) for n, _ in kept})
        yield f"### {title}\n"
        head = (f"N = {n:,}" for n in sizes)
        yield f"| µs per subject | {' | '.join(head)} | ours, times as fast, N = 1,000 |"
        yield "|---|" + "--:|" * (len(sizes) + 1)
        lines = [(name, kept, "") for name, kept in mine.items()]
        lines += [(name, kept, versus(told, name)) for name, kept in points.items()]
        for name, kept, ratio in sorted(lines, key=lambda line: dict(line[1]).get(1_000, 0.0)):
            found = dict(kept)
            cells = (written(found[n]) if n in found else "not run" for n in sizes)
            shown = f"*this package, {name}*" if name in mine else name.removeprefix(BESIDE)
            held = f"**{shown}**" if name in points and not name.startswith(BESIDE) else shown
            yield f"| {held} | {' | '.join(cells)} | {ratio} |"
        yield ""


def others(told: dict[str, Any], *, recording: bool) -> dict[str, tuple[tuple[int, float], ...]]:
    """Give what others took, with their recording or without; what is told beside says so."""
    return merged(
        point
        for goal in told["goals"]
        if goal["number"] in PEERS
        for point in goal["series"]
        if point["name"] not in MINE
        and recording == (goal["number"] != 10 and not point["name"].endswith("no recorder"))
    )


def versus(told: dict[str, Any], name: str) -> str:
    """Say how many times as fast ours was as another, in each way that it was held to."""
    found, current = [], ""
    for goal in told["goals"]:
        for figure in goal["figures"] if goal["number"] in PEERS else ():
            if figure["unit"] != "x":
                current = figure["label"]
            elif current == name and figure["label"].endswith(THAT):
                kind = figure["label"].removeprefix("ours ").removesuffix(THAT)
                text = written(figure["value"], "x")
                found.append(text if kind == "row-wise" else f"{text} {MINE[kind]}")
    return ", ".join(found)


def plots(told: dict[str, Any]) -> Iterator[tuple[str, list[Series], str]]:
    """Give the plots: file name, series, and what is said of each to who cannot see it."""
    points = points_of(told, peers=False)
    ours = [Series(said, role, points.get(name, ()), quiet) for name, said, role, quiet in OURS]
    yield "speed", ours, "Microseconds per subject by number of subjects, this package and loops"
    held = {
        recording: {
            name: kept
            for name, kept in others(told, recording=recording).items()
            if not name.startswith(BESIDE)
        }
        for recording in (False, True)
    }
    if any(held.values()):
        same_rounds = points_of(told, peers=True)
        series = [
            Series(VERSIONS.sub("", name), "declined", kept, True, dashed=recording)
            for recording, named in held.items()
            for name, kept in named.items()
        ]
        series += [
            Series(said, role, same_rounds.get(name, ()))
            for name, said, role, _ in OURS
            if name in MINE
        ]
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
