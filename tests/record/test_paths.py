"""Paths through values: how they are written, and what is left of them after a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.record.paths import followed, item_paths, leads_to, spread, steps_of


@pytest.mark.parametrize(
    ("written", "steps"),
    [
        ("token", ("token",)),
        ("conn.pin", ("conn", "pin")),
        ("rows[*].token", ("rows", "[*]", "token")),
        ("rows[3][*].token", ("rows", "[3]", "[*]", "token")),
        ("rows.0.token", ("rows", "0", "token")),
        ("[*].token", ("[*]", "token")),
    ],
)
def test_a_path_is_written_with_dots_and_brackets(written, steps):
    assert steps_of(written) == steps


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        (("a",), "a", (True, [])),
        (("a", "b"), "a", (False, [("b",)])),
        (("a", "b"), "b", (False, [])),
        (("a", "b"), "a.b", (True, [])),
        (("a", "b", "c"), "a.b", (False, [("c",)])),
        (("a",), "a.b", (True, [])),
        (("a", "b"), "a.c", (False, [])),
        (("rows", "[*]", "key"), "rows.0.key", (True, [])),
        (("rows", "[0]", "key"), "rows.0.key", (True, [])),
        (("rows", "[1]", "key"), "rows.0.key", (False, [])),
        (("rows", "key"), "rows.0.key", (True, [])),
        (("rows", "[*]"), "rows.0.key", (True, [])),
        (("a.b", "c"), "a.b", (False, [("c",)])),
    ],
)
def test_a_name_follows_a_path_also_spelt_with_dots(path, name, expected):
    assert followed([path], name) == expected


def test_several_paths_are_followed_at_once():
    paths = [("a",), ("a", "b"), ("a", "[*]", "c"), ("b",)]
    assert followed(paths, "a") == (True, [("b",), ("[*]", "c")])


@pytest.mark.parametrize(
    ("path", "index", "expected"),
    [
        (("[*]",), 5, (True, [])),
        (("[*]", "a"), 5, (False, [("a",)])),
        (("[5]", "a"), 5, (False, [("a",)])),
        (("5", "a"), 5, (False, [("a",)])),
        (("[4]", "a"), 5, (False, [])),
        (("4",), 5, (False, [])),
        (("a", "b"), 5, (False, [("a", "b")])),
    ],
)
def test_an_item_follows_a_wildcard_its_number_or_any_name(path, index, expected):
    assert item_paths([path], index) == expected


def test_an_item_that_stands_for_all_follows_every_number():
    paths = [("[4]", "a"), ("7",), ("[*]", "b")]
    assert item_paths(paths, 0, any_item=True) == (True, [("a",), ("b",)])
    assert item_paths(paths, 0) == (False, [("b",)])


@pytest.mark.parametrize(
    ("path", "names", "leads"),
    [
        (("conn", "pin"), ("conn", "pin"), True),
        (("conn", "pin"), ("conn",), True),
        (("conn",), ("conn", "pin"), True),
        (("conn", "pin"), ("conn", "host"), False),
        (("rows", "[*]", "key"), ("rows", "0", "key"), True),
        (("rows", "[*]", "key"), ("rows", "0", "n"), False),
        (("rows", "[1]", "key"), ("rows", "0", "key"), False),
        (("rows", "key"), ("rows", "0", "key"), True),
        (("rows", "key"), ("rows", "x", "key"), False),
    ],
)
def test_what_a_rule_reads_is_hidden_when_a_path_leads_to_it_or_into_it(path, names, leads):
    assert leads_to(path, names) is leads


def test_what_lies_behind_a_list_is_reached_from_a_branch_too():
    assert spread([("a", "[*]", "b", "[*]", "c")]) == (
        ("a", "[*]", "b", "[*]", "c"),
        ("b", "[*]", "c"),
        ("item", "b", "[*]", "c"),
        ("c",),
        ("item", "c"),
    )
    assert spread([("a", "[*]")]) == (("a", "[*]"),)
    assert spread([("a", "[3]", "b")]) == (("a", "[3]", "b"),)


WORDS = st.sampled_from("abc")


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
def test_one_dotted_name_follows_as_its_parts_do_one_by_one(path, names):
    ends, left = False, [tuple(path)]
    for name in names:
        if ends:
            break
        ends, left = followed(left, name)
    assert followed([tuple(path)], ".".join(names)) == (ends, left)


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
def test_leading_to_is_following_to_the_end_of_either(path, names):
    shorter = min(len(path), len(names))
    assert leads_to(tuple(path), tuple(names)) is (path[:shorter] == names[:shorter])
