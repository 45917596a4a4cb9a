"""numpy: a comparison per rule over columns.

Without recording: a word per row. With: a column per compared value and per result, which is the
evidence, kept as arrays. Either way there is no walk, no ids, no text of conditions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

VERSION = f"numpy {np.__version__}"
WORDS = np.array(["protected", "unprotected", "declined"])


def _judged(rows: list[dict[str, Any]], keep: bool) -> list[dict[str, Any]]:
    known = np.array([row["age_known"] for row in rows])
    age = np.array([row["age_days"] for row in rows])
    unknown, older = ~known, age > 7
    code = np.where(unknown, 2, older.astype(np.int8)).astype(np.int8)
    kept = {"known": known, "age": age, "r0": unknown, "r1": older, "code": code} if keep else None
    words = WORDS[code].tolist()
    del kept
    return [
        {"subject": row["subject"], "verdict": word} for row, word in zip(rows, words, strict=True)
    ]


MODES = {
    "verdicts": lambda rows: _judged(rows, False),
    "evidence columns": lambda rows: _judged(rows, True),
}
