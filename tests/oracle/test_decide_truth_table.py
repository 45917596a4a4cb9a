"""Every recorded pair of value and threshold, under every operator.

What is expected is worked out here from the recorded row and the declared departures, with a
reading of kinds that shares nothing with the package.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from math import isnan

import pytest

from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError
from runbook_nb.rules import Rule, decide

ORDERINGS = ("gt", "gte", "lt", "lte")
ABSENT = ("missing", "null", "nan")


def departs(name):
    """Name the declared departure that explains a difference."""
    return name


def kind(value):
    for found, classes in (
        ("missing", type(MISSING)),
        ("null", type(None)),
        ("bool", bool),
        ("number", (int, float)),
        ("text", str),
        ("list", list),
        ("map", dict),
        ("date", datetime),
    ):
        if isinstance(value, classes):
            return "nan" if found == "number" and isnan(value) else found
    return "other"


def refused(op, threshold):
    if op in ("in", "notIn"):
        return kind(threshold) != "list" or any(kind(item) in ABSENT for item in threshold)
    if kind(threshold) in ABSENT:
        return True
    return op in ORDERINGS and kind(threshold) in ("bool", "list", "map")


def expected(op, actual, threshold, recorded):
    """Give result and status, and the departure that leads from the recording to them."""
    if refused(op, threshold):
        return "refused", None, departs("refused-when-built")
    mine = kind(actual)
    if mine in ABSENT:
        return None, mine, departs("three-valued")
    if op in ("in", "notIn"):
        alike = [item for item in threshold if kind(item) == mine]
        if threshold and not alike:
            return None, "type_mismatch", departs("three-valued")
        found = any(item == actual for item in alike) == (op == "in")
    elif kind(threshold) != mine:
        return None, "type_mismatch", departs("three-valued")
    else:
        found = (actual == threshold) == (op == "eq") if op in ("eq", "ne") else recorded
    return found, None, None if found is recorded else departs("structural-equality")


def summary(actual, recorded):
    if isinstance(actual, datetime):
        return actual.isoformat(), departs("summaries-of-python-values")
    if isinstance(actual, float) and str(actual) == "-0.0":
        return "-0.0", departs("summaries-of-python-values")
    return recorded, None


def judged(op, actual, threshold):
    facts = {} if actual is MISSING else {"k": actual}
    return decide(facts, [Rule({"k": {op: threshold}}, then="x")]).conditions[0]


@pytest.fixture(scope="module")
def rows(oracle):
    return [
        (op, oracle.decode(actual), oracle.decode(threshold), result, text)
        for op, actual, threshold, result, text in oracle.document("chart/decide_truth_table.json")[
            "rows"
        ]
    ]


def test_every_row_agrees_or_departs_as_declared(rows):
    wrong = []
    for op, actual, threshold, recorded, _ in rows:
        result, status, _ = expected(op, actual, threshold, recorded)
        try:
            found = judged(op, actual, threshold)
            outcome = (found.result, found.status)
        except RuleError:
            outcome = ("refused", None)
        if outcome != (result, status):
            wrong.append((op, actual, threshold, outcome, (result, status)))
    assert wrong == []


def test_every_summary_agrees_or_departs_as_declared(rows):
    wrong = []
    for op, actual, threshold, _, text in rows:
        if not refused(op, threshold):
            found = judged(op, actual, threshold).actual_summary
            if found != summary(actual, text)[0]:
                wrong.append((actual, found, text))
    assert wrong == []


def test_rows_agree_as_they_stand_unless_a_departure_explains_them(rows):
    plain = [row for row in rows if expected(*row[:4])[2] is None]
    assert plain
    assert Counter(judged(*row[:3]).result is row[3] for row in plain).keys() == {True}
