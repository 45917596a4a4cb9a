"""Paths into recorded values: read, written, followed, and what is said when they lead nowhere."""

from collections import namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.errors import PathError
from runbook_nb.record.lookup import (
    follow,
    inside,
    must_follow,
    names_in,
    path_of,
    path_text,
    steps_of,
)
from runbook_nb.record.replay import Prefix
from runbook_nb.record.slots import Slot


@pytest.mark.parametrize(
    ("text", "known", "key", "steps"),
    [
        ("a", (), "a", ()),
        ("a.b[3].c", (), "a", ("b", 3, "c")),
        ("rows[0][1]", (), "rows", (0, 1)),
        ("a.b.c", ("a.b", "a"), "a.b", ("c",)),
        ("a.bc", ("a.b", "a"), "a", ("bc",)),
        ("a.b", ("a.b.c",), "a", ("b",)),
        ("x[y]z.w", ("x[y]z",), "x[y]z", ("w",)),
        ('a["b.c"].d', (), "a", ("b.c", "d")),
        ("a['[0]']", (), "a", ("[0]",)),
        ("a b.c d", (), "a b", ("c d",)),
        ("a[007]", (), "a", (7,)),
    ],
)
def test_paths_are_read_into_key_and_steps(text, known, key, steps):
    assert path_of(text, known) == (key, steps)


@pytest.mark.parametrize(
    "text", ["", ".a", "a.", "a..b", "a[", "a[x]", "a]b", "[0]", "a[-1]", "a[0]b]", 5, None, b"a"]
)
def test_what_is_no_path_is_refused(text):
    with pytest.raises(PathError) as caught:
        path_of(text)
    assert caught.value.code == "bad_path"
    assert caught.value.fix


def test_many_values_at_once_are_refused_with_the_path_of_one():
    with pytest.raises(PathError) as caught:
        path_of("rows[*].age")
    assert (caught.value.code, caught.value.fix) == (
        "wildcard_path",
        "name one item: 'rows[0].age'",
    )
    # A key of that very name is a key.
    assert path_of("rows[*]", ["rows[*]"]) == ("rows[*]", ())


NAMES = st.text(st.characters(exclude_characters='.[]"'), min_size=1, max_size=4)


@given(NAMES, st.lists(st.one_of(st.integers(0, 99), NAMES, st.just("a.b"), st.just("[0]"))))
def test_a_path_that_is_written_is_read_back(key, steps):
    assert path_of(path_text(key, steps), [key]) == (key, tuple(steps))


# -- following ---------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "steps", "found"),
    [
        ({"a": {"b": [1, {"c": 2}]}}, ("a", "b", 1, "c"), 2),
        ({"a": None}, ("a",), None),
        ({"a": None}, ("a", "b"), MISSING),
        ([1], (1,), MISSING),
        ([1], ("0",), MISSING),
        ("text", (0,), MISSING),
        (b"text", (0,), MISSING),
        ((1, 2), (1,), 2),
        (Point(1, 2), ("y",), 2),
        (Point(1, 2), (0,), 1),
        (Point(1, 2), ("z",), MISSING),
        (Slot(0, {"n": 1}, "ok", value={"v": 2}), ("value", "v"), 2),
        (Slot(0, {"n": 1}, "ok"), ("item", "n"), 1),
        (Slot(0, {"n": 1}, "ok"), ("to_dict",), MISSING),
        (Prefix([1, 2, 3], 2), (1,), 2),
        (Prefix([1, 2, 3], 2), (2,), MISSING),
        (Prefix([1, 2, 3], 2), ("a",), MISSING),
        ({1: "one"}, (1,), "one"),
        (MISSING, ("a",), MISSING),
        (5, ("real",), MISSING),
        (object(), ("__class__",), MISSING),
    ],
)
def test_steps_lead_into_what_was_recorded_and_nowhere_else(value, steps, found):
    assert follow(value, steps) is found or follow(value, steps) == found


def test_names_are_those_a_step_can_take():
    assert names_in({"a": 1, 2: 3}) == ("a",)
    assert names_in(Point(1, 2)) == ("x", "y")
    assert names_in(Slot(0, 1, "ok"))[:3] == ("index", "item", "status")
    assert names_in([1]) == names_in(5) == ()
    assert inside(Slot(0, 1, "ok"), "status") == "ok"


@pytest.mark.parametrize(
    ("value", "steps", "said", "fix"),
    [
        ({"age_days": 1}, ("agedays",), "it has age_days", "did you mean 'age_days'?"),
        ({}, ("a",), "it is empty", None),
        ([1, 2], (2,), "it has 2 items", "its positions are 0 to 1"),
        ([], (0,), "it has 0 items", None),
        (Prefix([1], 1), (4,), "it has 1 item", "its positions are 0 to 0"),
        (None, ("a",), "it is —", None),
        ({"a": 5}, ("a", "b"), "no 'b' in 'k.a': it is 5", None),
        ({f"n{n}": n for n in range(20)}, ("x",), "n7 and more", None),
    ],
)
def test_where_a_path_stops_is_said_with_what_is_there(value, steps, said, fix):
    with pytest.raises(PathError) as caught:
        must_follow(value, "k", steps)
    assert said in caught.value.message
    assert caught.value.fix == fix
    assert caught.value.where == path_text("k", steps)


def test_a_path_that_leads_somewhere_is_followed():
    assert must_follow({"a": [1, 2]}, "k", ("a", 1)) == 2
    assert steps_of(".a[0]", "k.a[0]") == ("a", 0)
