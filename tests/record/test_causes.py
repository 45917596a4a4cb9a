"""The range of values a condition met, of many at once and of one after the other."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.record.causes import ValueRange

VALUES = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.sampled_from(["a", "b", "1", "é", "d", "e"]),
    st.sampled_from([None, True, False, MISSING, date(2026, 1, 2), (1, 2)]),
)


@given(st.lists(st.lists(VALUES, max_size=12), max_size=3))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_many_at_once_are_each_after_the_other(groups):
    together, alone = ValueRange(), ValueRange()
    for values in groups:
        together.add_all(values)
        for value in values:
            alone.add(value)
    assert repr((together.low, together.high)) == repr((alone.low, alone.high))
    assert list(together.words) == list(alone.words)
    assert together.text == alone.text


def test_numbers_that_are_missing_here_and_there_are_not_looked_at_one_by_one(calls_of):
    def count(times):
        return calls_of(lambda: ValueRange().add_all([1, None, 2.5, "x"] * times))

    count(1)
    assert count(1_000) <= count(10) + 10
