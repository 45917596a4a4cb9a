"""Recorded values as JSON and back: nothing is lost, written twice or trusted."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections import OrderedDict, namedtuple
from decimal import Decimal
from enum import Enum, IntEnum
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._frozen import FrozenDict, FrozenList, freeze
from runbook_nb._json import WireReport, canonical, encode
from runbook_nb._tagged import Refusal, Tagger, read, write
from runbook_nb._tags import DEEPEST, MOST_LEVELS, SAFE_INTEGER, TagError
from runbook_nb._untagged import Untagger
from runbook_nb.errors import CycleError, JsonError

OFFSETS = st.integers(-86399, 86399).map(lambda s: dt.timezone(dt.timedelta(seconds=s)))
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["", "$date", "$$x", "$", "\ud800", "\ud83d\ude00", "x" * 70, "é" * 64]),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**53, -(2**53), 2**53 - 1, 10**400, -(2**9000)]),
    st.floats(),
    st.sampled_from([-0.0, math.inf, -math.inf, math.nan, 5e-324, 1.0]),
    TEXTS,
    st.binary(max_size=80),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=OFFSETS),
    st.datetimes().map(lambda d: d.replace(fold=1)),
    st.times(),
    st.times(timezones=OFFSETS),
    st.timedeltas(),
    st.decimals(),
    st.sampled_from([Decimal("-0"), Decimal("sNaN12"), Decimal("1E+400"), Decimal("-Infinity")]),
    st.complex_numbers(),
)
HASHABLE = st.recursive(
    SCALARS.filter(lambda value: not (isinstance(value, Decimal) and value.is_snan())),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3)
    ),
    max_leaves=4,
)
FROZEN = st.recursive(
    st.one_of(SCALARS, HASHABLE),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=4),
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.tuples(
            st.lists(TEXTS, min_size=1, max_size=3, unique=True), st.lists(inner, max_size=4)
        ).map(lambda rows: [dict.fromkeys(rows[0], value) for value in rows[1]]),
    ),
    max_leaves=12,
).map(freeze)


def same(left: object, right: object) -> bool:
    """Equal in class, content and order; NaN is NaN, and -0.0 is not 0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=False)
        return len(left) == len(right) and all(
            same(*keys) and same(*items)
            for keys, items in (zip(*both, strict=True) for both in pairs)
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, frozenset):
        return sorted(map(text_of, left)) == sorted(map(text_of, right))
    if isinstance(left, dt.datetime | dt.time):
        return left.isoformat() == right.isoformat() and (
            left.tzinfo is not None or left.fold == right.fold
        )
    return left == right if isinstance(left, str) else repr(left) == repr(right)


def text_of(value: object) -> str:
    return canonical(Tagger(refer=False).write(value))


@settings(deadline=None, max_examples=400)
@given(FROZEN)
def test_what_is_written_reads_back_as_it_was(value):
    written = write(value)
    for through in (canonical, encode):  # sorted keys or not
        again = read(json.loads(through(written)))
        assert same(again, value)
        assert encode(write(again)) == encode(written)


@settings(deadline=None)
@given(st.lists(FROZEN, max_size=5), st.randoms(use_true_random=False))
def test_a_document_of_values_that_share_parts_reads_back_as_it_was(values, chance):
    shared = [
        chance.choice([value, FrozenList([value, *values[:at]])]) for at, value in enumerate(values)
    ]
    values = [*values, *shared, FrozenDict(all=FrozenList(values))]
    tagger, reader = Tagger(), Untagger()
    written = [tagger.column(values), *(tagger.write(value) for value in values)]
    tagger.check()
    written = json.loads(canonical(written))
    rows, *again = (
        reader.column(written[0], len(values)),
        *(reader.read(one) for one in written[1:]),
    )
    reader.check()
    assert same(FrozenList(rows), FrozenList(values))
    assert same(FrozenList(again), FrozenList(values))
    twice = Tagger()
    assert [twice.column(rows), *(twice.write(value) for value in again)] == written


# -- the written form --------------------------------------------------------------------------


class Thing:
    pass


Point = namedtuple("Point", "x y")
PARIS = ZoneInfo("Europe/Paris")


class Level(IntEnum):
    HIGH = 3


class Colour(Enum):
    RED = "red"


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (7.0, 7.0),
        (SAFE_INTEGER, SAFE_INTEGER),
        (SAFE_INTEGER + 1, {"$int": "9007199254740992"}),
        (-(2**2000), {"$int": hex(-(2**2000))}),
        (math.inf, {"$float": "Infinity"}),
        (math.nan, {"$float": "NaN"}),
        ("é", "é"),
        ("\ud800", {"$text": "7aCA"}),
        (b"\x00\x01", {"$bytes": "AAE="}),
        (bytearray(b"\x00"), {"$bytearray": "AA=="}),
        (1 + 2j, {"$complex": "(1+2j)"}),
        (dt.date(2026, 1, 2), {"$date": "2026-01-02"}),
        (dt.datetime(2026, 1, 2, tzinfo=PARIS), {"$datetime": "2026-01-02T00:00:00+01:00"}),
        (
            dt.datetime.fromisoformat("2026-10-25T02:30").replace(fold=1),
            {"$fold": "2026-10-25T02:30:00"},
        ),
        (dt.time(1, 2), {"$time": "01:02:00"}),
        (dt.timedelta(seconds=-1.5), {"$seconds": "-1.5"}),
        (Decimal("0.10"), {"$decimal": "0.10"}),
        ([1, (2,)], [1, {"$tuple": [2]}]),
        ((), {"$tuple": []}),
        (frozenset({2, "a"}), {"$set": ["a", 2]}),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ({"b": 1, "a": 2}, {"$map": ["b", 1, "a", 2]}),
        ({"$date": "x"}, {"$$date": "x"}),
        ({"$$date": "x"}, {"$$$date": "x"}),
        ({"$a": 1, "$b": 2}, {"$a": 1, "$b": 2}),
        ({1: "x", None: "y"}, {"$map": [1, "x", None, "y"]}),
        ({"\ud800": 1}, {"$map": [{"$text": "7aCA"}, 1]}),
        ({(1, dt.date(2026, 1, 2)): 1}, {"$map": [{"$tuple": [1, {"$date": "2026-01-02"}]}, 1]}),
        ([{"b": 1, "a": 2}, {"b": 3, "a": 4}], {"$table": [["b", "a"], [1, 3], [2, 4]]}),
        ([{"a": 1}, {"b": 1}], [{"a": 1}, {"b": 1}]),
        ([{}, {}], [{}, {}]),
        (
            [{"a": {"x": 1}}, {"a": {"x": 2}}],
            {"$table": [["a"], {"$table": [["x"], [1, 2]]}]},
        ),
        (np.float64(1.5), 1.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (pd.NaT, None),
        (pd.Timestamp("2026-01-02", tz="UTC"), {"$datetime": "2026-01-02T00:00:00+00:00"}),
        (pd.Timedelta(hours=1), {"$seconds": "3600"}),
        (np.datetime64("2026-01-02T03:04"), {"$datetime": "2026-01-02T03:04:00"}),
    ],
)
def test_the_written_form_of_each_kind(value, written):
    report = WireReport()
    assert write(freeze(value), report) == written
    assert report.count == 0
    encode(written)
    assert encode(write(read(written))) == encode(written)


@pytest.mark.parametrize(
    ("value", "written", "counted"),
    [
        (Level.HIGH, 3, {"Level": 1}),
        ([Colour.RED, Colour.RED], ["red", "red"], {"Colour": 2}),
        ({Colour.RED: 1}, {"$map": ["red", 1]}, {"Colour": 1}),
        (Point(1, 2), {"$tuple": [1, 2]}, {"Point": 1}),
        (OrderedDict(a=1), {"a": 1}, {"OrderedDict": 1}),
        (Word("x"), "x", {"Word": 1}),
        (pd.Timestamp(1), {"$datetime": "1970-01-01T00:00:00"}, {"Timestamp": 1}),
    ],
)
def test_what_is_made_plainer_is_counted(value, written, counted):
    report = WireReport()
    assert write(value, report) == written
    assert report.replaced == counted


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Thing(), "a Thing, which no JSON carries at the top"),
        ({"rows": [{"a": 1}, {"a": Thing()}]}, "a Thing, which no JSON carries at rows[1].a"),
        ({"b": {"x": (0, [Thing()])}, "a": 0}, "at b.x[1][0]"),
        ([{"a": {"k": 1}}, {"a": {"k": Thing()}}], "at [1].a.k"),
        ({3: Thing()}, "at [3]"),
        ({"f": pd.DataFrame({"a": [1]})}, "a DataFrame, which no JSON carries at f"),
        (np.array([1, 2]), "a ndarray"),
        (np.datetime64("10000-01-01"), "a datetime64"),
        (dt.time(1, tzinfo=PARIS), "a time"),
        (frozenset({Colour.RED, "red"}), "are written alike"),
        ({Colour.RED: 1, "red": 2}, "are written alike"),
    ],
)
def test_what_cannot_be_carried_is_refused_with_its_path_and_type(value, said):
    with pytest.raises(JsonError) as refused:
        write(value)
    assert said in str(refused.value)
    assert refused.value.fix


def test_a_number_and_its_text_are_two_keys():
    assert write({1: "a", "1": "b"}) == {"$map": [1, "a", "1", "b"]}
    assert read({"$map": [1, "a", "1", "b"]}) == {1: "a", "1": "b"}


def test_what_cannot_be_carried_may_be_named_and_counted_instead():
    report = WireReport()
    tagger = Tagger(report=report, strict=False)
    assert tagger.write(FrozenDict(a=Thing(), b=(Thing(), 1))) == {
        "a": "<Thing>",
        "b": {"$tuple": ["<Thing>", 1]},
    }
    assert report.replaced == {"Thing": 2}


# -- once, and no deeper than it must be -------------------------------------------------------


def test_what_stands_twice_is_written_once_and_comes_back_as_one():
    row = freeze({"id": "a", "long": "x" * 100})
    value = FrozenDict(
        a=FrozenList([row, 1]), b=row, c=FrozenList(["x" * 100, b"y" * 64]), d=b"y" * 64
    )
    written = write(value)
    assert encode(written).count("xxxxx") == 20
    again = read(written)
    assert again == value
    assert again["a"][0] is again["b"]


def test_equal_values_that_are_two_stay_two():
    pair = FrozenList([freeze([1]), freeze([1])])
    again = read(write(pair))
    assert write(pair) == [[1], [1]]
    assert again[0] is not again[1]


def test_no_nan_is_the_same_as_another():
    nan, other = float("nan"), Decimal("NaN")
    again = read(write(FrozenList([nan, nan, float("nan"), other, other])))
    assert again[0] is again[1]
    assert again[0] is not again[2]
    assert again[3] is again[4]


def nested(levels: int, wrap) -> object:
    value = wrap("core")
    for _ in range(levels):
        value = wrap(value)
    return value


def levels_of(data: object) -> int:
    level, deepest = [data], 0
    while level:
        deepest += 1
        level = [
            part
            for one in level
            if isinstance(one, list | dict)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
    return deepest


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: FrozenList([inner]),
        lambda inner: FrozenDict(b=1, a=inner),
        lambda inner: (inner,),
        lambda inner: FrozenList([FrozenDict(k=inner), FrozenDict(k=1)]),
    ],
)
@pytest.mark.parametrize("levels", [0, DEEPEST - 1, DEEPEST, 5 * DEEPEST, 3_000])
def test_a_value_of_any_depth_is_written_in_few_levels(wrap, levels):
    value = nested(levels, wrap)
    written = write(value)
    assert levels_of(written) < MOST_LEVELS
    again = read(json.loads(canonical(written)))
    assert encode(write(again)) == encode(written)
    while not isinstance(value, str):
        assert type(value) is type(again)
        assert len(value) == len(again)
        value, again = (
            one["a"]
            if isinstance(one, dict) and "a" in one
            else one.get("k")
            if isinstance(one, dict)
            else one[0]
            for one in (value, again)
        )
    assert again == "core"


def test_rows_that_are_alike_at_any_depth_are_written_in_few_levels():
    def chain(levels: int, core: object) -> object:
        return nested(levels, lambda inner: FrozenDict(k=core if inner == "core" else inner))

    for levels in (1, DEEPEST, 3 * DEEPEST, 2_000):
        value = FrozenList([chain(levels, 1), chain(levels, 2)])
        written = write(value)
        assert levels_of(written) < MOST_LEVELS
        assert encode(write(read(json.loads(canonical(written))))) == encode(written)


def test_the_path_to_what_lies_deep_is_told_whole():
    value = nested(
        60, lambda inner: FrozenList([0, FrozenDict(k=(Thing() if inner == "core" else inner,))])
    )
    with pytest.raises(JsonError) as refused:
        write(value)
    assert refused.value.where == "[1].k[0]" * 61


def doubled(levels: int) -> FrozenList:
    value = freeze(["core", 1])
    for _ in range(levels):
        value = FrozenList([value, value])
    return value


def test_a_value_that_doubles_is_written_once_per_level_and_refused_when_it_explodes():
    written = write(doubled(20))
    assert len(encode(written)) < 1000
    assert read(written) == doubled(20)
    with pytest.raises(JsonError, match="more than 50,000,000 parts"):
        write(doubled(60))
    tagger = Tagger()
    exploding = tagger.write(doubled(60))
    with pytest.raises(TagError, match="more than 50,000,000 parts"):
        read(exploding)
    with pytest.raises(TagError, match="more than 50,000,000 parts"):
        Untagger().apart(exploding)


def test_a_value_that_contains_itself_is_refused():
    own: list = [1]
    own.append({"x": own})
    with pytest.raises(CycleError):
        write(own)
    with pytest.raises(CycleError):
        Tagger().apart([own])


def test_values_written_apart_may_be_read_in_any_order_and_on_their_own():
    shared = freeze({"id": "a", "text": "x" * 80})
    tagger = Tagger()
    base = tagger.write(shared)
    apart = [tagger.apart(FrozenList([shared, FrozenList([n]), "y" * 70])) for n in range(3)]
    with pytest.raises(Refusal):
        tagger.apart(FrozenList([FrozenList([5]), Thing()]))
    late = tagger.write(FrozenList([shared]))
    reader = Untagger()
    assert reader.read(base) == shared
    assert [reader.apart(apart[n])[1][0] for n in (2, 0)] == [2, 0]
    assert reader.apart(apart[1])[2] == "y" * 70
    assert reader.read(late) == [shared]


# -- nothing is trusted ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"$dat": "x"}, "there is no tag '$dat'"),
        ({"$": 1}, "there is no tag"),
        ({"$date": 5}, "is not text"),
        ({"$date": "soon"}, "cannot be read as date"),
        ({"$datetime": "2026-01-02"}, "cannot be read as datetime"),
        ({"$seconds": "1e999999"}, "cannot be read as seconds"),
        ({"$seconds": "1e40"}, "cannot be read as seconds"),
        ({"$int": "1" * 5000}, "cannot be read as int"),
        ({"$int": "0x"}, "cannot be read as int"),
        ({"$float": "1.5"}, "cannot be read as float"),
        ({"$bytes": "???"}, "cannot be read as bytes"),
        ({"$text": "gA=="}, "cannot be read as text"),
        ({"$complex": "one"}, "cannot be read as complex"),
        ({"$fold": "x"}, "cannot be read as fold"),
        ({"$tuple": {}}, "is no list"),
        ({"$set": [1, 1]}, "a member twice"),
        ({"$set": [1, True]}, "a member twice"),
        ({"$set": [[1]]}, "a member of a set cannot be one"),
        ({"$map": [1]}, "a key without a value"),
        ({"$map": ["a", 1, "a", 2]}, "a key twice"),
        ({"$map": [1, 0, {"$decimal": "1.0"}, 0]}, "a key twice"),
        ({"$map": [[], 0]}, "a key of a mapping cannot be one"),
        ({"$map": [{"$decimal": "sNaN"}, 0]}, "a key of a mapping cannot be one"),
        ({"$table": []}, "distinct keys"),
        ({"$table": [["a"]]}, "a column for each"),
        ({"$table": [["a", "a"], [1], [2]]}, "distinct keys"),
        ({"$table": [[1], [1]]}, "is not text"),
        ({"$table": [["a", "b"], [1], [1, 2]]}, "differ in length"),
        ({"$table": [["a"], 5]}, "is no list"),
        ({"$ref": 0}, "refers to nothing before it"),
        ([[1], {"$ref": 1}], "refers to nothing before it"),
        ([[1], {"$ref": -1}], "refers to nothing before it"),
        ([[1], {"$ref": True}], "refers to nothing before it"),
        ({"$deep": []}, "nothing in $deep"),
        ({"$map": [{"$ref": 0}, 1]}, "there is no tag '$ref'"),
        ({1: 2}, "is not text"),
        ((1, 2), "a tuple is no JSON"),
        (Thing(), "a Thing is no JSON"),
        (nested(MOST_LEVELS + 2, lambda inner: [inner]), "nested too deeply"),
        (nested(500, lambda inner: {"$deep": [inner]}), "nested too deeply"),
        (nested(500, lambda inner: {"$table": [["a"], [inner]]}), "nested too deeply"),
        (nested(500, lambda inner: {"$set": [{"$tuple": [inner]}]}), "nested too deeply"),
    ],
)
def test_what_is_no_written_value_is_refused_with_a_fix(data, said):
    with pytest.raises(TagError) as refused:
        read(data)
    assert said in str(refused.value.args[0])
    assert refused.value.fix


@settings(deadline=None, max_examples=300)
@given(
    st.recursive(
        st.one_of(st.none(), st.integers(-2, 5), st.text(max_size=3), st.floats()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(
                st.sampled_from(
                    ["$ref", "$deep", "$table", "$map", "$set", "$tuple", "$date", "$int", "a"]
                ),
                inner,
                max_size=1,
            ),
        ),
        max_leaves=20,
    )
)
def test_any_json_is_read_or_refused(data):
    try:
        value = read(data)
    except TagError:
        return
    assert encode(write(read(write(value)))) == encode(write(value))


def test_a_set_is_written_in_one_order():
    words = [f"w{n}" for n in range(50)]
    random.Random(1).shuffle(words)
    assert write(frozenset(words)) == {"$set": sorted(words)}


# -- columns -----------------------------------------------------------------------------------


def column_of(values: list) -> object:
    tagger, reader = Tagger(), Untagger()
    for value in SHARED:
        assert reader.read(tagger.write(value)) == value
    written = tagger.column(values)
    tagger.check()
    again = reader.column(json.loads(canonical(written)), len(values))
    reader.check()
    assert same(FrozenList(again), FrozenList(values))
    return written


SHARED = [freeze({"id": n}) for n in range(5)]


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([], []),
        ([5], [5]),
        ([5, 5, 5], {"$same": 5}),
        (["a", "a"], {"$same": "a"}),
        ([None, None], {"$same": None}),
        ([True, True], {"$same": True}),
        ([True, 1], [True, 1]),
        ([0.0, -0.0], [0.0, -0.0]),
        ([(), ()], {"$same": {"$tuple": []}}),
        (SHARED[1:4], {"$refs": [1, 1, 1]}),
        ([SHARED[3], SHARED[0]], {"$refs": [3, -3]}),
        ([SHARED[3], SHARED[3]], {"$same": {"$ref": 3}}),
        ([SHARED[3], 1], [{"$ref": 3}, 1]),
        ([freeze([1]), freeze([1])], [[1], [1]]),
        (
            [freeze({"a": 1, "b": n}) for n in range(3)],
            {"$table": [["a", "b"], {"$same": 1}, [0, 1, 2]]},
        ),
        ([freeze({"a": 1, "b": 2})] * 2, {"$same": {"a": 1, "b": 2}}),
        (
            [freeze({"a": 1, "b": 2}) for _ in range(2)],
            {"$table": [["a", "b"], [1, 1], {"$same": 2}]},
        ),
        (
            [freeze({"a": {"x": n, "y": 0}}) for n in range(2)],
            {"$table": [["a"], {"$table": [["x", "y"], [0, 1], {"$same": 0}]}]},
        ),
        (
            [freeze({"a": SHARED[n], "b": n}) for n in range(2)],
            {"$table": [["a", "b"], {"$refs": [0, 1]}, [0, 1]]},
        ),
    ],
)
def test_a_column_is_written_briefly_where_its_values_are_alike(values, written):
    assert column_of(values) == written


@pytest.mark.parametrize(
    ("data", "count", "said"),
    [
        ([1, 2], 3, "2 values, not 3"),
        ({"$table": [["a"], [1]]}, 2, "1 values, not 2"),
        ({"$table": [["a"], {"$same": 1}]}, 2, "differ in length"),
        ({"$refs": [1]}, 1, "refers to nothing before it"),
        ({"$refs": [0, -1]}, 2, "refers to nothing before it"),
        ({"$refs": ["a"]}, 1, "refers to nothing before it"),
        ({"$refs": [True]}, 1, "refers to nothing before it"),
        ({"$refs": 1}, 1, "is no list"),
        ({"$same": 1}, 50_000_001, "more than 50,000,000 places"),
        ({"$same": {"$ref": 5}}, 2, "refers to nothing before it"),
        ({"$other": 1}, 2, "is no list"),
        ("ab", 2, "is no list"),
    ],
)
def test_what_is_no_column_is_refused(data, count, said):
    reader = Untagger()
    assert reader.read(["one to refer to"]) == ["one to refer to"]
    with pytest.raises(TagError) as refused:
        reader.column(data, count)
    assert said in refused.value.args[0]


def test_no_value_is_a_column():
    for data in ({"$same": 1}, {"$refs": [0]}):
        with pytest.raises(TagError, match="there is no tag"):
            read([1, data])


def test_columns_that_multiply_are_counted_together():
    reader = Untagger()
    reader.column({"$same": 1}, 30_000_000)
    with pytest.raises(TagError, match="more than 50,000,000 places"):
        reader.column({"$same": 1}, 30_000_000)
    level: object = [1, 2]
    for _ in range(12):
        level = {"$table": [["n", "a"], list(range(10)), {"$same": level}]}
    with pytest.raises(TagError, match="more than 50,000,000 parts"):
        read(level)
