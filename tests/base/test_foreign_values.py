"""Values from elsewhere: what a scalar becomes, what is lost, what is too deep to keep."""

from __future__ import annotations

import numpy as np
import pytest

from runbook_nb._frozen import freeze
from runbook_nb._json import REPEATED, WireReport, plain_scalar, to_wire
from runbook_nb.errors import FrozenError


def test_an_extended_number_is_the_float_it_is_nearest_to():
    assert type(plain_scalar(np.longdouble("1.5"))) is float
    assert to_wire({"age": np.longdouble(9)}) == {"age": 9.0}


def test_an_extended_complex_is_no_number_of_ours():
    report = WireReport()
    assert to_wire(np.clongdouble(1), report) == "<clongdouble>"
    assert report.count == 1


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("10000-01-01"),
        np.timedelta64(10**10, "D"),
        np.array(np.datetime64("10000-01-01")),
    ],
)
def test_a_time_no_datetime_holds_never_becomes_a_bare_number(value):
    assert not isinstance(plain_scalar(value), int)


def test_an_array_of_no_dimension_is_the_scalar_it_holds():
    at = np.array(np.datetime64("2026-01-02T03:04:05", "ns"))
    assert to_wire(at) == "2026-01-02T03:04:05"
    assert plain_scalar(np.array(9)) == 9


def test_keys_that_json_writes_alike_are_counted_and_the_last_stays():
    report = WireReport()
    assert to_wire({1: "a", "1": "b", "x": "c"}, report) == {"1": "b", "x": "c"}
    assert report.replaced == {REPEATED: 1}


def test_what_is_nested_too_deeply_is_refused_by_its_key():
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(FrozenError, match="'rows' is nested too deeply"):
        freeze(deep, "rows")
