"""The texts by which a value is told, and what foreign objects say of themselves."""

from __future__ import annotations

import uuid
from collections import namedtuple
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb.record.told import as_data, entries_of, texts_in, told


class Word(Enum):
    ONE = "one"
    NUMBER = 4711


class Text(str, Enum):  # noqa: UP042 - the older spelling is met too
    ONE = "one"


class Loud:
    def __str__(self):
        return "loud-and-clear"


class Silent:
    pass


class Raising:
    def __str__(self):
        raise RuntimeError


@dataclass
class Card:
    pin: str
    n: int = 1


class Modelled:
    def model_dump(self):
        return {"pin": "a"}


class Broken:
    def to_dict(self):
        raise RuntimeError


Pair = namedtuple("Pair", "a b")
ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("pin", ("pin",)),
        (Text.ONE, ("one",)),
        (Word.ONE, ("one",)),
        (Word.NUMBER, ("4711",)),
        (None, ()),
        (True, ()),
        (4711, ("4711",)),
        (1.5, ("1.5",)),
        (Decimal("0.10"), ("0.10",)),
        (b"pin", ("pin",)),
        (bytearray(b"pin"), ("pin",)),
        (b"\xff\xfe", ()),
        (date(1984, 3, 7), ("1984-03-07",)),
        (
            datetime.fromisoformat("1984-03-07T01:02"),
            ("1984-03-07T01:02:00", "1984-03-07 01:02:00"),
        ),
        (time(1, 2), ("01:02:00",)),
        (timedelta(hours=26), ("P1DT2H", "1 day, 2:00:00")),
        (complex(1, 2), ("(1+2j)",)),
        (np.float64(1.5), ("1.5",)),
        (np.str_("pin"), ("pin",)),
        (pd.Timestamp("1984-03-07"), ("1984-03-07T00:00:00", "1984-03-07 00:00:00")),
        (ID, (str(ID),)),
        (PurePosixPath("/a/b"), ("/a/b",)),
        (Loud(), ("loud-and-clear",)),
        (Silent(), ()),
        (Raising(), ()),
    ],
)
def test_a_single_value_is_told_by_its_texts(value, texts):
    assert told(value) == texts


def test_named_parts_are_those_of_mappings_and_named_tuples():
    assert list(entries_of({"a": 1})) == [("a", 1)]
    assert list(entries_of(Pair(1, 2))) == [("a", 1), ("b", 2)]
    assert entries_of((1, 2)) is None
    assert entries_of("a") is None


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (rb.Rule({"a": {"gt": 1}}, "x"), None),
        (Card("p"), {"pin": "p", "n": 1}),
        (Modelled(), {"pin": "a"}),
        (Broken(), None),
        (Card, None),
        (object(), None),
    ],
)
def test_objects_say_themselves_as_data_or_say_nothing(value, data):
    found = as_data(value)
    if isinstance(value, rb.Rule):
        assert found[0]["then"] == "x"
    else:
        assert found == (None if data is None else (data,))


def test_a_frame_is_its_records():
    assert as_data(pd.DataFrame({"a": [1, 2]})) == ([{"a": 1}, {"a": 2}],)


def test_every_text_in_a_value_is_found_names_included():
    value = {"a": [1, ("b", {"c"})], "d": Card("pin"), 5: Pair("x", None), "e": b"raw"}
    assert set(texts_in(value)) == {"a", "1", "b", "c", "d", "pin", "n", "5", "x", "e", "raw"} | {
        "b"
    }
