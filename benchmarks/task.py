"""The task, the same for everybody, and what it costs without this package.

Rows ``{subject, age_days, age_known}`` are there. Per subject: *load* takes the row (3 writes),
*posture* decides by two rules and a default with the evidence of each condition, a branch writes
the verdict (1 write). Then the verdict rows are collected, and an envelope is written as JSON: 50
rows, a table in Markdown, meanings, counters.

References
----------
``bare_loop``          a verdict word per row, and nothing else
``bare_envelope``      verdict rows and an envelope, no trace
``with_evidence``      the same, and a tuple per condition that was tried
``written_walk``       the same, and the whole walk by hand: a dict per stage, write and decision,
                       each with the id of its step; a decision with its evidence in the published
                       shape: the rules that were tried, and what each condition compared
``written_walk``, flat  the same, with a row of its own per condition instead of evidence inside the
                       decision: fewer containers, and so cheaper to make and for the collector
"""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]
Rows = list[Row]

SHOWN = 50
MEANINGS = {
    "declined": "the age cannot be read",
    "unprotected": "older than 7 days",
    "protected": "within 7 days",
}
RULES = (
    ("age_known", "eq", False, "declined", MEANINGS["declined"]),
    ("age_days", "gt", 7, "unprotected", MEANINGS["unprotected"]),
)


def rows_of(n: int) -> Rows:
    return [
        {"subject": f"cluster-{i}", "age_days": i % 40, "age_known": i % 23 > 0} for i in range(n)
    ]


def columns_of(n: int) -> dict[str, list[Any]]:
    return {
        "subject": [f"cluster-{i}" for i in range(n)],
        "age_days": [i % 40 for i in range(n)],
        "age_known": [i % 23 > 0 for i in range(n)],
    }


def envelope_of(verdicts: Rows, counts: dict[str, int]) -> str:
    shown = verdicts[:SHOWN]
    table = ["| subject | verdict |", "| --- | --- |"]
    table += [f"| {row['subject']} | {row['verdict']} |" for row in shown]
    return json.dumps(
        {
            "verdicts": shown,
            "verdictTable": "\n".join(table),
            "meanings": {word: MEANINGS[word] for word in counts},
            "counters": {"rowsTotal": len(verdicts), "rowsShown": len(shown), **counts},
            "rules": {"name": "health-signal", "version": "v1"},
        }
    )


def counted(verdicts: Rows) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in verdicts:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    return counts


def bare_loop(rows: Rows) -> list[str]:
    words: list[str] = []
    for row in rows:
        if row["age_known"] is False:
            words.append("declined")
        elif row["age_days"] > 7:
            words.append("unprotected")
        else:
            words.append("protected")
    return words


def bare_envelope(rows: Rows) -> str:
    verdicts = [
        {"subject": row["subject"], "verdict": word}
        for row, word in zip(rows, bare_loop(rows), strict=True)
    ]
    return envelope_of(verdicts, counted(verdicts))


def with_evidence(rows: Rows) -> tuple[str, list[Any]]:
    verdicts: Rows = []
    evidence: list[Any] = []
    for row in rows:
        known, age = row["age_known"], row["age_days"]
        if known is False:
            word = "declined"
            evidence.append((("age_known", "eq", False, known, True),))
        else:
            older = age > 7
            word = "unprotected" if older else "protected"
            evidence.append(
                (("age_known", "eq", False, known, False), ("age_days", "gt", 7, age, older))
            )
        verdicts.append({"subject": row["subject"], "verdict": word})
    return envelope_of(verdicts, counted(verdicts)), evidence


def written_walk(
    rows: Rows, stages: int = 0, conditions: int = 0, *, flat: bool = False
) -> tuple[str, Rows]:
    """Write the whole walk by hand.

    ``stages`` more stages read a key and write one; ``conditions`` more rules, tried first, hold
    for nobody. ``flat`` writes a row per condition, and no evidence into the decision.
    """
    verdicts: Rows = []
    walk: Rows = []
    add = walk.append
    rules = (*(("age_days", "gt", 2000 - n, "never", "never") for n in range(conditions)), *RULES)
    for i, row in enumerate(rows):
        state: Row = {}
        load = f"each~{i}/load#0"
        add({"type": "stage", "id": load, "stage": "load", "label": None})
        for key, value in row.items():
            state[key] = value
            add({"type": "write", "id": load, "key": key, "value": value})
        for n in range(stages):
            step = f"each~{i}/more{n}#{n + 1}"
            add({"type": "stage", "id": step, "stage": f"more{n}", "label": None})
            read = state["age_days"]
            add({"type": "read", "id": step, "key": "age_days"})
            key = f"more{n}"
            state[key] = read
            add({"type": "write", "id": step, "key": key, "value": read})
        posture = f"each~{i}/posture#{stages + 1}"
        add({"type": "stage", "id": posture, "stage": "posture", "label": None})
        word, label = "protected", MEANINGS["protected"]
        tried: Rows = []
        for number, (key, op, limit, then, said) in enumerate(rules):
            actual = state[key]
            result = actual == limit if op == "eq" else actual > limit
            if flat:
                add(
                    {
                        "type": "condition",
                        "id": posture,
                        "rule": number,
                        "key": key,
                        "op": op,
                        "threshold": limit,
                        "actual": actual,
                        "result": result,
                    }
                )
            else:
                tried.append(
                    {
                        "type": "filter",
                        "ruleIndex": number,
                        "branch": then,
                        "label": said,
                        "matched": result,
                        "conditions": [
                            {
                                "key": key,
                                "op": op,
                                "threshold": limit,
                                "actual": actual,
                                "result": result,
                            }
                        ],
                    }
                )
            if result:
                word, label = then, said
                break
        decision: Row = {"type": "decision", "id": posture, "branch": word, "label": label}
        if not flat:
            decision["evidence"] = {"rules": tried, "chosen": word, "default": "protected"}
        add(decision)
        branch = f"each~{i}/{word}#{stages + 2}"
        add({"type": "stage", "id": branch, "stage": word, "label": None})
        state["verdict"] = word
        add({"type": "write", "id": branch, "key": "verdict", "value": word})
        verdicts.append({"subject": state["subject"], "verdict": word})
    return envelope_of(verdicts, counted(verdicts)), walk
