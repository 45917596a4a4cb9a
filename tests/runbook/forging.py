"""Answers of many kinds, and one leaf of them changed at a time, as a forger would."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import host_runbooks
from host_runbooks import inventory_of, runbook_over, word

import runbook_nb as rb
from runbook_nb._ids import SeededIds
from runbook_nb.settings import settings

Place = tuple[Any, ...]

#: What must be found out wherever the dossier is carried.
ALWAYS: list[Place] = [
    ("result", "rows_shown"),
    ("result", "rows_total"),
    ("result", "rows_complete"),
    ("result", "table"),
    ("result", "verdict_meanings"),
    ("result", "walk", "rows"),
    ("result", "walk", "shown"),
    ("result", "walk", "steps_executed"),
    ("af_coverage", "sentence"),
]

POSTURE = rb.RuleSet(
    "health-signal",
    "v1",
    rules=[
        rb.Rule({"known": {"eq": False}}, then="declined", label="the age cannot be read"),
        rb.Rule({"days": {"gt": 7}, "tier": {"in": ["a", "b"]}}, then="old", label="over a week"),
        rb.Rule({"days": {"gt": 30}}, then="old", label="over a month"),
    ],
    default=rb.Default("fresh", label="within a week"),
)

ROWS = [
    {"host": "web-1", "known": True, "days": 2, "tier": "a"},
    {"host": "web-2", "known": False, "days": None, "tier": "c"},
    {"host": "web-3", "known": True, "days": 12, "tier": "b"},
    {"host": "web-4", "known": True, "days": 45, "tier": "c"},
    {"host": "web-5", "known": True, "days": "soon", "tier": "c"},
]


def triaged(rows: Any = ROWS, rules: Any = POSTURE, **more: Any) -> rb.Envelope:
    """Judge rows the short way."""
    return rb.triage(rows, rules, subject="host", source=f"{len(rows)} rows", **more)


def look(scope: Any) -> None:
    scope.update(scope.args["item"])
    if scope["days"] == 13:
        raise ValueError("thirteen")
    if scope["days"] == 14:
        scope.stop("nothing to say")


def judging(rules: Any = POSTURE) -> Any:
    return host_runbooks.judging(rules, look)


def collected(scope: Any) -> None:
    scope["verdicts"] = [
        {"host": slot.item["host"], "verdict": slot.value["verdict"], "age": slot.item["days"]}
        for slot in scope["results"]
        if slot.status == "ok" and "verdict" in slot.value
    ]
    scope["coverage"] = {"not_checked": ["hosts that report to nobody"]}
    scope["report"] = {"limit": 7, "walk": "reserved"}


def long_way(
    rows: Any, *, cap: int = 50, collect: Any = collected, branch: Any = None, **more: Any
) -> rb.Envelope:
    """Judge rows the long way: a tool as source, a fan-out, rows of the author."""
    paused = {"what": "why one is paused", "why": "no record is kept"}
    source = inventory_of(rows, cannot_cover=[paused])
    rules = more.pop("rules", POSTURE)
    tool = runbook_over(branch or judging(), rules, collect=collect, cap=cap, **more)
    return rb.Toolbox([source, tool]).call_sync("hosts", {})


def gaps() -> rb.Envelope:
    days = (2, 12, 13, 14, 45, 13, 1, 2)
    rows = [{"host": f"h{n}", "known": True, "days": d, "tier": "a"} for n, d in enumerate(days)]
    return long_way(rows, cap=6)


def nested() -> rb.Envelope:
    def inner(scope: Any) -> None:
        scope.set("found", scope.args["item"]["found"])

    site = (
        rb.flow_chart("site", inner, id="site")
        .add_parallel_for_each(
            "Per host",
            id="per-host",
            items=lambda s: s["found"],
            branch=judging(),
            max_branches=2,
            into="results",
            subject="host",
        )
        .add_function("Done", lambda s: {"results": s["results"]}, id="done")
        .build()
    )

    def procedure(tools: Any) -> Any:
        def rows(scope: Any) -> None:
            scope["sites"] = [{"name": "s1", "found": ROWS[:2]}, {"name": "s2", "found": ROWS[2:]}]

        def gather(scope: Any) -> None:
            scope["verdicts"] = [
                {"host": slot.item["host"], "verdict": slot.value["verdict"]}
                for site in scope["sites_done"]
                for slot in site.value["results"]
                if slot.status == "ok"
            ]

        return (
            rb.flow_chart("nested", rows, id="rows")
            .add_parallel_for_each(
                "Per site",
                id="per-site",
                items=lambda s: s["sites"],
                branch=site,
                max_branches=5,
                into="sites_done",
                subject="name",
            )
            .add_function("Gather", gather, id="gather")
            .build()
        )

    tool = rb.runbook_as_tool(
        name="sites",
        description="d",
        procedure=procedure,
        result_kind="verdict/age",
        rules=POSTURE,
        verdicts={"decider": "Posture"},
    )
    return rb.Toolbox([tool]).call_sync("sites", {})


def alone() -> rb.Envelope:
    """One decision about the run as a whole."""

    def procedure(tools: Any) -> Any:
        def rows(scope: Any) -> None:
            scope["verdicts"] = [{"what": "all", "verdict": scope["verdict"]}]

        made = rb.flow_chart("alone", lambda s: s.update(ROWS[3]), id="start").add_decider(
            "Posture", rules=POSTURE, id="posture"
        )
        for branch in ("old", "fresh", "declined"):
            made = made.branch(branch, word(branch))
        return made.end().add_function("Rows", rows, id="rows").build()

    tool = rb.runbook_as_tool(
        name="one",
        description="d",
        procedure=procedure,
        result_kind="verdict/age",
        rules=POSTURE,
        verdicts={"decider": "Posture"},
    )
    return rb.Toolbox([tool]).call_sync("one", {})


def resumed() -> rb.Envelope:
    def ask(scope: Any) -> None:
        rb.interrupt(scope, "go on?")

    def procedure(tools: Any) -> Any:
        def rows(scope: Any) -> None:
            scope["rows"] = ROWS[:3]

        return (
            rb.flow_chart("asks", rows, id="rows")
            .add_pausable("Ask", ask, lambda scope, answer: None, id="ask")
            .add_parallel_for_each(
                "Each host",
                id="each",
                items=lambda s: s["rows"],
                branch=judging(),
                max_branches=9,
                into="results",
                subject="host",
            )
            .add_function("Collect", collected, id="collect")
            .build()
        )

    tool = rb.runbook_as_tool(
        name="asks",
        description="d",
        procedure=procedure,
        result_kind="verdict/age",
        rules=POSTURE,
        verdicts={"decider": "Posture"},
    )
    box = rb.Toolbox([tool])
    try:
        box.call_sync("asks", {})
    except rb.errors.Paused as paused:
        return box.resume_sync(paused.checkpoint, True)
    raise AssertionError("it did not pause")


def old(facts: Any) -> bool:
    """A rule that is a function."""
    return facts["days"] > 7


def by_functions() -> rb.Envelope:
    rules = rb.RuleSet(
        "by-function", "1", [rb.Rule(old, then="old", label="o")], rb.Default("fresh")
    )
    return long_way(ROWS[:1], branch=judging(rules), rules=rules)


def renamed(scope: Any) -> None:
    words = {"old": "needs action", "fresh": "nothing to do", "declined": "declined"}
    scope["verdicts"] = [
        {"host": slot.item["host"], "verdict": words[slot.value["verdict"]]}
        for slot in scope["results"]
    ]


OUTSIDE = rb.RuleSet(
    "sizes",
    "2",
    rules=[rb.Rule({"gb": {"between": [1, 5]}}, then="small", unit="GB", label="up to five")],
    default=rb.Default("large"),
    outside=[rb.Outside(where={"os": {"eq": "x"}}, what="hosts on x", why="no data for it")],
    unreadable=rb.Unreadable("large", label="no size means large"),
)
SIZES = [
    {"host": "a", "gb": 2, "os": "y"},
    {"host": "b", "gb": None, "os": "y"},
    {"host": "c", "gb": 9.5, "os": "x"},
    {"host": "d", "gb": 40, "os": "y"},
]

#: Name -> what gives an answer of that kind.
ANSWERS: dict[str, Callable[[], rb.Envelope]] = {
    "short way": triaged,
    "nothing to judge": lambda: triaged([]),
    "one row": lambda: triaged(ROWS[3:4]),
    "capped rows": lambda: triaged(ROWS * 3, max_rows=4),
    "ranked rows": lambda: long_way(
        ROWS, verdicts={"decider": "posture", "rank": ["old"], "units": {"age": "days"}}
    ),
    "hidden": lambda: triaged(ROWS, redact={"keys": ("days",)}),
    "outside": lambda: triaged(SIZES, OUTSIDE, cannot_cover=[{"what": "tapes", "why": "gone"}]),
    "one side": lambda: triaged(
        [{"host": f"h{n}", "gb": 1 + n / 20, "os": "y"} for n in range(12)], OUTSIDE
    ),
    "never there": lambda: triaged([{"host": "a", "size": 3}, {"host": "b", "size": 4}], OUTSIDE),
    "long way": lambda: long_way(ROWS),
    "gaps": gaps,
    "nested": nested,
    "alone": alone,
    "resumed": resumed,
    "functions": by_functions,
    "renamed": lambda: long_way(ROWS, collect=renamed),
    "panel": lambda: long_way(ROWS, presentation="panel"),
    "no rules declared": lambda: long_way(ROWS, rules=None),
}


def answer(name: str) -> rb.Envelope:
    """Give one of the answers, always the same."""
    with settings(
        clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), ids=SeededIds(name), layout="pure"
    ):
        return ANSWERS[name]()


def written(envelope: rb.Envelope) -> dict[str, Any]:
    """Give an answer as a file holds it."""
    return json.loads(json.dumps(envelope.to_dict(dossier=envelope.carries_dossier)))


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every leaf of JSON values with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*place, number))
    else:
        yield place, value


def others(value: Any) -> list[Any]:
    """Give values that a leaf may be changed to, of its own kind."""
    if value is None:
        return [0, "x"]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1, value * 10 + 3]
    middle = len(value) // 2
    return [f"{value}x", f"{value[:middle]}q{value[middle + 1 :]}"]


def changed(document: Any, place: Place, value: Any) -> Any:
    """Give a document with one leaf changed."""
    made = copy.deepcopy(document)
    at = made
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    return made


def missed(before: rb.Verification, place: Place, after: rb.Verification | None) -> str | None:
    """Say what is wrong with how a change was met; None where nothing is.

    Parameters
    ----------
    before : Verification
        Of the answer as it was.
    place : tuple
        Of the leaf that was changed.
    after : Verification or None
        Of the changed answer; None where it could not even be read.
    """
    covering = before.covering(*place)
    if not covering:
        return f"no claim is about {place}"
    if after is None:
        return None
    checkable = any(claim.status != "cannot be checked" for claim in covering)
    if not after.ok:
        about = any(claim.status == "contradicted" for claim in after.covering(*place))
        lost = not after.covering(*place)  # a part that follows no form is one claim, about it all
        return None if about or lost or not checkable else f"{place} is not what is contradicted"
    if any(claim.status != "cannot be checked" for claim in covering):
        return f"{place} was confirmed by {[claim.id for claim in covering]}, and then not missed"
    by_function = any("is a function" in claim.because for claim in covering)
    if any(place[: len(one)] == one for one in ALWAYS) and not by_function:
        return f"{place} is always to be found out"
    return None


def verified(document: Any) -> rb.Verification | None:
    """Check an answer; None where it cannot be read."""
    try:
        return rb.Envelope.from_dict(document).verify()
    except rb.errors.LoadError:
        return None
