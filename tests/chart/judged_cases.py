"""Rules and rows drawn at random, the chart that judges them, and its twin that runs each row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.judging import judged_chart
from runbook_nb.errors import RuleError
from runbook_nb.rules.columns import rows_of
from runbook_nb.rules.model import Outside

KEYS = ["age", "site", "a.b", "verdict", "Größe"]

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from([2**63, -(2**70), float("nan"), float("inf"), 1.5, -0.0]),
    st.sampled_from(["", "x", "é", "secret-word", "10", "line\nbreak"]),
    st.sampled_from(
        [
            date(2026, 1, 2),
            datetime(2026, 1, 2, 3),  # noqa: DTZ001 - one without a zone
            datetime(2026, 1, 2, 3, tzinfo=UTC),
            datetime(2026, 1, 2, 5, tzinfo=timezone(timedelta(hours=2))),
            timedelta(days=3),
        ]
    ),
)
NESTED = st.one_of(ATOMS, st.lists(ATOMS, max_size=2), st.dictionaries(st.just("b"), ATOMS))

ROWS = st.lists(
    st.dictionaries(st.sampled_from([*KEYS, "a", "host"]), NESTED, max_size=5), max_size=9
) | st.lists(
    st.fixed_dictionaries({"host": st.sampled_from(["h1", "h2", "h3"]), "age": ATOMS}), max_size=9
)

OPS = st.one_of(
    st.builds(lambda op, n: {op: n}, st.sampled_from(["gt", "lt", "gte"]), st.integers(-2, 8)),
    st.builds(lambda value: {"eq": value}, st.sampled_from([1, "x", True, "secret-word"])),
    st.builds(lambda values: {"in": values}, st.just([1, 2, "x", "é"])),
    st.just({"is_null": True}),
    st.just({"exists": True}),
    st.builds(lambda low, high: {"gte": low, "lt": high}, st.integers(0, 3), st.integers(4, 9)),
)
WHENS = st.dictionaries(st.sampled_from(KEYS), OPS, min_size=1, max_size=2)
WORDS = st.sampled_from(["old", "new", "declined", "odd word"])


def _odd(facts: Any) -> bool:
    """Tell odd ages; fails where there is none."""
    return bool(facts["age"] % 2)


RULES = st.builds(
    lambda rules, default, unreadable, outside, fn: (rules, default, unreadable, outside, fn),
    st.lists(st.tuples(WHENS, WORDS, st.sampled_from([None, "why"])), min_size=1, max_size=3),
    st.sampled_from([None, "fine", "old"]),
    st.sampled_from(["skip", "raise", "declined", {"branch": "unknown", "label": "no value"}]),
    st.none() | WHENS,
    st.sampled_from([False, False, False, True]),
)


def rule_set(parts: Any) -> rb.RuleSet | None:
    """Make the rule set; None where the parts make none."""
    rules, default, unreadable, outside, fn = parts
    made = [rb.Rule(when, then, label=label) for when, then, label in rules]
    if fn:
        made.insert(len(made) // 2, rb.Rule(_odd, "odd"))
    ground = [] if outside is None else [Outside(outside, what="some", why="unknown")]
    on = rb.Unreadable(unreadable) if unreadable == "declined" else unreadable
    try:
        return rb.RuleSet("drawn", "v1", made, default, on, ground)
    except RuleError:
        return None


POLICIES = st.sampled_from(
    [
        None,
        rb.Redact(keys=("age",)),
        rb.Redact(keys=("site", "a")),
        rb.Redact(keys=("item",)),
        rb.Redact(patterns=("secret.*",)),
        rb.Redact(paths=("out.*.item.host",)),
        rb.Redact(keys=("verdict",)),
    ]
)


@dataclass
class Case:
    """A stage that judges, in a chart with one before and one behind it."""

    rules: rb.RuleSet
    rows: Any
    cap: int = 1000
    subject: str | None = "host"
    into: str = "out"

    def _chart(self, add: Any) -> Any:
        def count(scope: Any) -> None:
            slots = scope[self.into]
            scope["ok"] = [slot.index for slot in slots if slot.status == "ok"]
            scope["said"] = [slot.sentence for slot in slots]
            scope["first"] = slots[0].item if len(slots) else None
            scope["picked"] = [slot.item.get("age") for slot in slots][:2]

        builder = add(flow_chart("case", lambda s: s.set("began", 1), id="begin"))
        return builder.add_function("Count", count, id="count").build()

    def judged(self) -> Any:
        """Give the chart that judges by columns."""
        return self._chart(
            lambda chart: chart.add_judge_each(
                "Judge",
                id="judge",
                items=lambda scope: self.rows,
                rules=self.rules,
                into=self.into,
                subject=self.subject,
                max_branches=self.cap,
            )
        )

    def twin(self) -> Any:
        """Give the chart that runs each row."""
        return self._chart(
            lambda chart: chart.add_parallel_for_each(
                "Judge",
                id="judge",
                items=lambda scope: rows_of(self.rows),
                branch=judged_chart(self.rules),
                into=self.into,
                subject=self.subject,
                max_branches=self.cap,
            )
        )


def shown(value: Any) -> str:
    """Write a value so that equal texts mean equal values, NaN and classes of numbers included."""
    return repr(value)


def told(run: Any) -> dict[str, Any]:
    """Give all that a run tells, view by view."""
    walk = run.walk
    return {
        "status": run.status,
        "rows": [row.to_dict() for row in walk],
        "pages": [row.text for row in walk.page(max(len(walk) // 2, 0), 7)],
        "length": (len(walk), run.steps_executed),
        "structure": run.structure.to_dict(),
        "decisions": shown([(d, d.decision.sentence, d.subject) for d in walk.iter_decisions()]),
        "evidence": shown([d.decision.to_dict() for d in walk.iter_decisions()]),
        "paths": shown([[(ref, path) for ref, path in pair] for pair in walk.decision_paths()]),
        "slots": shown([slot.to_dict() for slot in run.slots("judge")]),
        "state": shown(run.state),
        "counts": [one.to_dict() for one in run.fan_outs],
        "commits": shown(list(run.commits)),
        "whole": shown(list(run.commits.whole())),
        "view": shown(walk.view()),
        "run": shown(run.view()),
        "picture": json.dumps(shown(walk.flowchart().mermaid)),
        "recording": run.recording().to_json(),
        "redaction": shown(run.redaction),
        "frame": walk.to_frame().to_csv(),
    }
