"""Recorded values as JSON and back: nothing is lost, nothing is written twice, nothing is trusted."""

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
from runbook_nb._tagged import Tagger, read, write
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
            same(k, l) and same(v, w) for (k, v), (l, w) in pairs
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
    written = [tagger.rows(values), *(tagger.write(value) for value in values)]
    tagger.check()
    written = json.loads(canonical(written))
    rows, *again = reader.rows(written[0]), *(reader.read(one) for one in written[1:])
    reader.check()
    assert same(FrozenList(rows), FrozenList(values))
    assert same(FrozenList(again), FrozenList(values))
    twice = Tagger()
    assert [twice.rows(rows), *(twice.write(value) for value in again)] == written
