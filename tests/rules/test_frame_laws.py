"""The law of frames: judged at once or row by row, the decisions are the same, to the sentence.

Random rule sets meet random data in every form a frame comes in. Limits are often drawn from the
values themselves and their neighbours, since it is there that a comparison goes wrong.
"""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError
from runbook_nb.rules import Default, Outside, Rule, RuleSet, Unreadable, decide
from runbook_nb.rules.columns import as_columns, rows_of
from runbook_nb.rules.frame import judge_columns

steady = settings(deadline=None, derandomize=True, max_examples=100)

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
ZONES = [dt.UTC, BERLIN, dt.timezone(dt.timedelta(hours=2)), zoneinfo.ZoneInfo("UTC")]
TWICE = dt.datetime(2020, 10, 25, 2, 30)  # Berlin's clocks show it two times  # noqa: DTZ001

wide = st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 10**30, 0, 7, -1])
whole = st.one_of(st.integers(-9, 9), wide)
floats = st.one_of(
    st.floats(),
    st.sampled_from([7.0, 7.5, -0.0, 2.0**53, 2.0**63, 1e300, 0.1, math.inf, math.nan]),
)
decimals = st.sampled_from(
    [Decimal("7"), Decimal("7.5"), Decimal("0.1"), Decimal(2**53 + 1), Decimal("1e400"),
     Decimal("-1e-400"), Decimal("Infinity"), Decimal("9007199254740993")]
)  # fmt: skip
texts = st.one_of(st.text(max_size=3), st.sampled_from(["", "7", "é", "Straße", "👍", "ab", "abc"]))
days = st.one_of(st.dates(), st.sampled_from([dt.date(2020, 1, 1), dt.date.min, dt.date.max]))
moments = st.one_of(
    st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),  # noqa: DTZ001
    st.sampled_from([TWICE, dt.datetime(1970, 1, 1)]),  # noqa: DTZ001
)
spans = st.timedeltas(dt.timedelta(-9), dt.timedelta(9))


def zoned(zone):
    return st.builds(
        lambda at, fold: at.replace(tzinfo=zone, fold=fold), moments, st.integers(0, 1)
    )


KINDS = {
    "bool": st.booleans(),
    "int": whole,
    "float": floats,
    "number": st.one_of(whole, floats),
    "text": texts,
    "date": days,
    "naive": moments,
    "aware": st.sampled_from(ZONES).flatmap(zoned),
    "span": spans,
    "decimal": decimals,
    "nested": st.one_of(st.lists(st.integers(0, 2), max_size=2), st.just({"x": 1})),
}
anything = st.one_of(*KINDS.values(), st.none())


def _is_nan(value):
    return isinstance(value, float) and math.isnan(value)


@st.composite
def limits(draw, op, near):
    """Draw a limit, now and then one of the values or next to it."""
    pool = [v for v in near if v is not None and v is not MISSING and not _is_nan(v)]
    scalars = st.one_of(*(KINDS[k] for k in KINDS if k != "nested")).filter(
        lambda v: not _is_nan(v)
    )
    one = st.one_of(scalars, st.sampled_from(pool)) if pool else scalars
    if op in ("exists", "missing", "is_null"):
        return draw(st.booleans())
    if op in ("in", "not_in"):
        return draw(st.lists(one, max_size=12))
    if op == "starts_with":
        return draw(texts.filter(bool))
    if op == "contains":
        return draw(st.one_of(texts.filter(bool), st.integers(0, 2)))
    if op == "matches":
        return draw(st.sampled_from(["^a", "b$", "é", "[0-9]"]))
    if op == "between":
        return sorted(draw(st.tuples(one, one)))
    value = draw(one)
    if isinstance(value, int) and not isinstance(value, bool) and draw(st.booleans()):
        return draw(st.sampled_from([value + 0.5, value + 1, float(min(value, 10**300))]))
    return value


OPS = ["eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "exists", "missing", "is_null",
       "between", "contains", "starts_with", "matches"]  # fmt: skip


@st.composite
def rule_sets(draw, columns):
    keys = [*columns, "absent", "a.x"]

    def conditions():
        for _ in range(20):
            key, op = draw(st.sampled_from(keys)), draw(st.sampled_from(OPS))
            near = columns.get(key, [])
            try:
                limit = draw(limits(op, near))
                RuleSet.bare([Rule({key: {op: limit}}, "x")])
            except (RuleError, TypeError):
                continue
            return {key: {op: limit}}
        return {"a": {"exists": True}}

    def when():
        found = {}
        for _ in range(draw(st.integers(1, 2))):
            for key, ops in conditions().items():
                found.setdefault(key, {}).update(ops)
        return found

    rules = [Rule(when(), f"b{n}", label="said") for n in range(draw(st.integers(1, 4)))]
    if draw(st.integers(0, 4)) == 0:
        rules.insert(draw(st.integers(0, 1)), Rule(lambda facts: facts.get("a") == 7, "called"))
    policy = draw(st.sampled_from(["skip", "raise", Unreadable("declined", "unreadable")]))
    default = draw(st.sampled_from([None, "other", Default("other", "no rule")]))
    made = RuleSet.bare(rules, default, policy)
    if draw(st.booleans()):
        try:
            outside = [Outside(when(), "that ground", "nobody looks")]
            made = RuleSet("random", "1", rules, default, policy, outside)
        except RuleError:  # one rule hides another
            pass
    return made


def same_as_row_by_row(source, rules):
    rows = rows_of(source)
    refusal = None
    expected = []
    for n, row in enumerate(rows):
        try:
            expected.append(decide(row, rules))
        except RuleError as error:
            refusal = (n, error)
            break
    if refusal is not None:
        with pytest.raises(RuleError) as refused:
            judge_columns(rules, as_columns(source))
        row, error = refusal
        assert refused.value.code == error.code
        assert refused.value.message == error.message
        assert refused.value.where == f"{error.where}, row {row}"
        return
    judged = judge_columns(rules, as_columns(source))
    for n, other in enumerate(expected):
        mine = judged.decision(n)
        assert mine.path is other.path, (rows[n], mine.conditions, other.conditions)
        assert mine == other
        assert mine.sentence == other.sentence
        assert repr(mine.evidence) == repr(other.evidence)
    assert judged.branches == tuple(made.branch for made in expected)
    assert list(judged.paths) == list(dict.fromkeys(made.path for made in expected))
    assert sum(judged.counts().values()) == len(rows)


def values_of(kind):
    return st.one_of(KINDS[kind], KINDS[kind], KINDS[kind], st.none())


@st.composite
def column_data(draw, kinds=tuple(KINDS), most=6):
    """Draw columns of one kind each, nulls among them, sometimes of several."""
    size = draw(st.integers(0, most))
    found = {}
    for key in draw(st.sampled_from([("a",), ("a", "b")])):
        kind = draw(st.sampled_from(kinds))
        cell = anything if draw(st.integers(0, 6)) == 0 else values_of(kind)
        found[key] = draw(st.lists(cell, min_size=size, max_size=size))
    return found


@steady
@given(st.data())
def test_rows(data):
    columns = data.draw(column_data())
    absent = data.draw(st.sets(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5))))
    size = len(next(iter(columns.values())))
    rows = [
        {key: values[n] for key, values in columns.items() if (key, n) not in absent}
        for n in range(size)
    ]
    same_as_row_by_row(rows, data.draw(rule_sets(columns)))


@steady
@given(st.data())
def test_lists_by_name(data):
    columns = data.draw(column_data())
    same_as_row_by_row(columns, data.draw(rule_sets(columns)))


DTYPES = ["bool", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "M8[ns]", "M8[us]", "M8[s]",
          "M8[D]", "m8[ns]", "m8[s]", "U3"]  # fmt: skip


@st.composite
def arrays(draw, dtype):
    size = draw(st.integers(0, 6))
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        cell = whole.map(lambda v: min(max(v, int(info.min)), int(info.max)))
    elif kind.kind in "Mm":
        bound = 2**40
        cell = st.one_of(st.integers(-bound, bound), st.just(-(2**63)), st.integers(-9, 9))
        return np.array(draw(st.lists(cell, min_size=size, max_size=size)), "i8").view(kind)
    else:
        cell = {"b": st.booleans(), "f": floats, "U": texts}[kind.kind]
    with np.errstate(over="ignore"):
        return np.array(draw(st.lists(cell, min_size=size, max_size=size)), kind)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(steady, max_examples=25)
@given(st.data())
def test_numpy_arrays(dtype, data):
    array = data.draw(arrays(dtype))
    source = {"a": array}
    near = {"a": list(as_columns(source).column("a"))}
    same_as_row_by_row(source, data.draw(rule_sets(near)))


FRAMES = ["bool", "boolean", "int64", "Int64", "UInt64", "Float64", "float64", "str", "string",
          "object", "category", "datetime64[ns]", "datetime64[us, Europe/Berlin]",
          "datetime64[ns, UTC]", "timedelta64[ns]", "int64[pyarrow]", "double[pyarrow]",
          "string[pyarrow]", "bool[pyarrow]", "timestamp[us][pyarrow]",
          "date32[pyarrow]"]  # fmt: skip


@st.composite
def series(draw, dtype):
    size = draw(st.integers(0, 6))
    kinds = {"bool": "bool", "int": "int", "flo": "float", "Flo": "float", "Int": "int",
             "UIn": "int", "str": "text", "obj": None, "cat": "text", "tim": "span",
             "dat": "naive", "dou": "float", "boo": "bool"}  # fmt: skip
    kind = kinds.get(dtype[:3], kinds.get(dtype[:4]))
    if dtype.startswith("timestamp"):
        kind = "naive"
    if dtype.startswith("date32"):
        kind = "date"
    cell = anything if kind is None else KINDS[kind]
    if kind == "int":
        low, high = (0, 2**64 - 1) if dtype == "UInt64" else (-(2**63), 2**63 - 1)
        cell = whole.map(lambda v: min(max(v, low), high))
    if kind == "naive" and "Berlin" in dtype:
        cell = zoned(BERLIN)
    elif kind == "naive" and "UTC" in dtype:
        cell = zoned(dt.UTC)
    if dtype not in ("bool", "int64"):
        cell = st.one_of(cell, cell, cell, st.none())
    values = draw(st.lists(cell, min_size=size, max_size=size))
    return pd.Series(values, dtype=dtype)


@pytest.mark.parametrize("dtype", FRAMES)
@settings(steady, max_examples=25)
@given(st.data())
def test_pandas_frames(dtype, data):
    frame = pd.DataFrame({"a": data.draw(series(dtype))})
    near = {"a": list(as_columns(frame).column("a"))}
    same_as_row_by_row(frame, data.draw(rule_sets(near)))


ARROWS = [pa.bool_(), pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(),
          pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.date32(),
          pa.date64(), pa.timestamp("us"), pa.timestamp("s"), pa.timestamp("ns", "UTC"),
          pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "+02:00"), pa.duration("us"),
          pa.decimal128(38, 4), pa.list_(pa.int64()), pa.struct({"x": pa.int64()}),
          pa.null()]  # fmt: skip


@st.composite
def arrow_values(draw, kind):
    size = draw(st.integers(0, 6))
    if pa.types.is_integer(kind):
        low, high = (-128, 127) if kind.bit_width == 8 else (-(2**63), 2**63 - 1)
        if pa.types.is_unsigned_integer(kind):
            low, high = 0, 2**64 - 1
        cell = whole.map(lambda v: min(max(v, low), high))
    elif pa.types.is_timestamp(kind):
        cell = moments if kind.tz is None else zoned(dt.UTC)
        cell = cell.map(lambda at: at.replace(microsecond=0)) if kind.unit == "s" else cell
    else:
        names = {"bool": "bool", "float": "float", "double": "float", "date32[day]": "date",
                 "date64[ms]": "date", "duration[us]": "span"}  # fmt: skip
        special = {
            "decimal128(38, 4)": st.sampled_from([Decimal("7"), Decimal("7.5"), Decimal("0.1")]),
            "list<item: int64>": st.lists(st.integers(0, 2), max_size=2),
            "struct<x: int64>": st.fixed_dictionaries({"x": st.integers(0, 2)}),
            "null": st.none(),
        }
        cell = special.get(str(kind), KINDS[names.get(str(kind), "text")])
    return pa.array(draw(st.lists(st.one_of(cell, cell, st.none()), min_size=size,
                                  max_size=size)), kind)  # fmt: skip


@pytest.mark.parametrize("kind", ARROWS, ids=str)
@settings(steady, max_examples=25)
@given(st.data())
def test_arrow_tables(kind, data):
    parts = [data.draw(arrow_values(kind)) for _ in range(data.draw(st.integers(1, 2)))]
    source = pa.table({"a": pa.chunked_array(parts, kind)})
    near = {"a": list(as_columns(source).column("a"))}
    same_as_row_by_row(source, data.draw(rule_sets(near)))
