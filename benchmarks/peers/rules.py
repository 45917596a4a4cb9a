"""The rules as a user of another library writes them: a function that keeps its own evidence.

None of the peers has a decision that records what it compared, so the user's function does it, as
one dict per condition that was tried.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Rows = list[Row]

WORDS = ("declined", "unprotected", "protected")


def judge(row: Row) -> tuple[str, Rows]:
    """Give the verdict of a row, and what was compared."""
    known, age = row["age_known"], row["age_days"]
    unknown = known is False
    evidence: Rows = [
        {"key": "age_known", "op": "eq", "threshold": False, "actual": known, "result": unknown}
    ]
    if unknown:
        return "declined", evidence
    older = age > 7
    evidence.append({"key": "age_days", "op": "gt", "threshold": 7, "actual": age, "result": older})
    return ("unprotected" if older else "protected"), evidence
