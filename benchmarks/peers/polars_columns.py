"""polars: a comparison per rule over columns.

Without recording: a word per row. With: a column per compared value and per result, which is the
evidence. Either way there is no walk, no ids, no text of conditions.
"""

from __future__ import annotations

from typing import Any

import polars as pl

VERSION = f"polars {pl.__version__}"


def _judged(rows: list[dict[str, Any]], keep: bool) -> list[dict[str, Any]]:
    frame = pl.DataFrame(rows)
    unknown, older = pl.col("age_known") == False, pl.col("age_days") > 7  # noqa: E712
    word = (
        pl.when(unknown)
        .then(pl.lit("declined"))
        .when(older)
        .then(pl.lit("unprotected"))
        .otherwise(pl.lit("protected"))
        .alias("verdict")
    )
    more = (unknown.alias("r0"), older.alias("r1")) if keep else ()
    return frame.with_columns(word, *more).select("subject", "verdict").to_dicts()


MODES = {
    "verdicts": lambda rows: _judged(rows, False),
    "evidence columns": lambda rows: _judged(rows, True),
}
