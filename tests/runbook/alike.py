"""Rules and rows drawn at random in every form rows are given in, and what an answer tells."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.testing import forms_of, reproducible

sys.path.append(str(Path(__file__).parents[1] / "chart"))

from judged_cases import POLICIES, RULES, rule_set

from runbook_nb.chart.judging import judged_chart
from runbook_nb.rules.columns import rows_of

SUBJECT = "host"
KEYS = ["age", "site", "a.b", "Größe"]

NAMES = st.lists(
    st.sampled_from(["h1", "h2", "é|x", "7", "", "12", 7, 7.0, True, None, date(2026, 1, 2)]),
    min_size=5,
    max_size=5,
)
KINDS = [
    st.integers(-3, 9) | st.none(),
    st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63), 5]) | st.none(),
    st.sampled_from([2**63, 2**64, -(2**70), 10**30, 1, None]),
    st.sampled_from([float("nan"), float("inf"), -0.0, 1.5, 8.0]),
    st.booleans() | st.none(),
    st.sampled_from(["", "x", "é", "secret-word", "10", "line\nbreak", "👍", None]),
    st.sampled_from([date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31), None]),
    st.sampled_from([datetime(2026, 1, 2, 3), datetime(1700, 1, 1), None]),  # noqa: DTZ001
    st.sampled_from(
        [
            datetime(2026, 1, 2, 3, tzinfo=UTC),
            datetime(2026, 1, 2, 5, tzinfo=timezone(timedelta(hours=2))),
            None,
        ]
    ),
    st.sampled_from([timedelta(days=3), timedelta(microseconds=1), None]),
    st.sampled_from([Decimal("7.50"), Decimal("Infinity"), 1, "x", None, 2.5, True]),
    st.sampled_from([(1, "x"), {"b": 5}, {"b": None}, 9, None, 1j, b"raw", float("nan")]),
]


@st.composite
def tables(draw: Any) -> dict[str, list[Any]]:
    """Draw columns of one length, the subject's among them."""
    size = draw(st.integers(0, 5))
    distinct = draw(st.permutations(["h1", "h2", "é|x", "7", "👍"]))
    table = {SUBJECT: (distinct if draw(st.booleans()) else draw(NAMES))[:size]}
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3)):
        kind = draw(st.sampled_from(KINDS))
        table[key] = draw(st.lists(kind, min_size=size, max_size=size))
    return table


def in_pandas(table: dict[str, list[Any]]) -> Any:
    return pd.DataFrame(table)


def in_nullable_pandas(table: dict[str, list[Any]]) -> Any:
    return pd.DataFrame(table).convert_dtypes()


def of_objects(table: dict[str, list[Any]]) -> Any:
    return pd.DataFrame({name: pd.Series(held, dtype=object) for name, held in table.items()})


def in_arrow(table: dict[str, list[Any]]) -> Any:
    """Give an Arrow table; columns that Arrow has no one type for become texts."""
    made = {}
    for name, held in table.items():
        try:
            made[name] = pa.array(held)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            made[name] = pa.array([None if value is None else str(value) for value in held])
    return pa.table(made)


FORMS = {
    "pandas": in_pandas,
    "nullable": in_nullable_pandas,
    "objects": of_objects,
    "arrow": in_arrow,
    "columns": dict,
}

#: Rows as mappings, where names may be missing from some, in any order.
PLAIN = st.lists(
    st.fixed_dictionaries(
        {SUBJECT: st.sampled_from(["h1", "h2", "é|x", 7, "7", None, True])},
        optional={key: st.one_of(*KINDS) for key in KEYS},
    ),
    max_size=5,
)

MADE = RULES.map(rule_set).filter(bool)


@st.composite
def options(draw: Any) -> dict[str, Any]:
    """Draw how an answer is asked for; ``rank`` is cut down to what the rules know later."""
    return {
        "max_rows": draw(st.sampled_from([1, 3, 50])),
        "cap": draw(st.sampled_from([1, 3, 50])),
        "rank": draw(st.lists(st.sampled_from(["declined", "old", "new", "fine"]), unique=True)),
        "columns": draw(st.lists(st.sampled_from([*KEYS, SUBJECT]), max_size=3)),
        "presentation": draw(st.sampled_from(["prose", "panel"])),
        "redact": draw(POLICIES),
    }


def known_to(rules: rb.RuleSet, rows: list[Any], drawn: dict[str, Any]) -> dict[str, Any]:
    """Leave out the verdicts the rules do not have and the columns no row has."""
    there = {key for row in rows for key in row}
    return {
        **drawn,
        "rank": [word for word in drawn["rank"] if word in rules.branches],
        "columns": [name for name in drawn["columns"] if name in there],
    }


def short(rows: Any, rules: rb.RuleSet, drawn: dict[str, Any]) -> Any:
    """Ask `triage`."""
    more = {key: drawn[key] for key in ("max_rows", "rank", "columns", "presentation", "redact")}
    with reproducible():
        return rb.triage(
            rows, rules, subject=SUBJECT, source="rows", max_branches=drawn["cap"], **more
        )


def long(rows: list[Any], rules: rb.RuleSet, drawn: dict[str, Any]) -> Any:
    """Ask a runbook that runs a branch for each row and writes a list of mappings."""
    source = rb.define_tool(
        name="rows",
        description="Hands over the rows: rows",
        execute=lambda args: rb.coverage({"rows": rows}, checked=["rows"]),
    )

    def procedure(tools: Any) -> Any:
        async def load(scope: Any) -> None:
            scope["rows"] = (await tools.call("rows", {}))["result"]["rows"]

        def collect(scope: Any) -> None:
            scope["verdicts"] = [
                {
                    SUBJECT: slot.item[SUBJECT],
                    "verdict": slot.value["verdict"],
                    **{name: slot.item.get(name) for name in drawn["columns"] if name != SUBJECT},
                }
                for slot in scope["results"]
                if slot.status == "ok"
            ]

        return (
            rb.flow_chart("triage", load, id="rows", stage_name="Take the rows")
            .add_parallel_for_each(
                "Judge each row",
                id="each",
                items=lambda scope: scope["rows"],
                branch=judged_chart(rules),
                max_branches=drawn["cap"],
                into="results",
                subject=SUBJECT,
            )
            .add_function("Collect", collect, id="collect")
            .build()
        )

    runbook = rb.runbook_as_tool(
        name="triage",
        description=f"Judges rows by {rules.name} {rules.version}.",
        procedure=procedure,
        result_kind="verdict/triage",
        rules=rules,
        verdicts={"decider": "Verdict", "max_rows": drawn["max_rows"], "rank": drawn["rank"]},
        presentation=drawn["presentation"],
        redact=drawn["redact"],
        composed_of=["rows"],
    )
    with reproducible():
        return rb.Toolbox([source, runbook]).call_sync("triage")


def told(ask: Any, *asked: Any) -> dict[str, Any]:
    """Give all that an answer tells, or the words it was refused in."""
    try:
        answer = ask(*asked)
    except rb.errors.RunbookError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    with reproducible():
        return {
            "json": answer.to_json(dossier=True),
            "bare": answer.to_json(),
            "forms": [form for form in forms_of(answer) if "recording" not in form[0]],
            "text": [str(answer), answer.to_markdown(), str(answer.ledger)],
            "table": [str(answer.verdicts), answer.verdicts.to_frame().to_csv()],
            "counts": [len(answer.verdicts), list(answer.verdicts.counts().items())],
            "frame": answer.to_frame(typed=False).to_csv(),
            "whys": [
                (str(why), why.to_dict())
                for why in (answer.why(row=row) for row in range(len(answer.verdicts)))
            ],
            "run": [repr(answer.run), len(answer.walk)],
        }


__all__ = ["FORMS", "KEYS", "MADE", "PLAIN", "SUBJECT", "known_to", "long", "options", "rows_of",
           "short", "tables", "told"]  # fmt: skip
