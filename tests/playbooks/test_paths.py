"""Paths name one place in arguments and results, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._text import MISSING
from runbook_nb.playbooks.paths import MAX_LENGTH, read_path, value_at

CALL = {"query": {"index": "auth", "hosts": [{"name": "a"}, {"name": "b"}], "x.y": 1, "n": None}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", CALL),
        ("query.index", "auth"),
        ("query.hosts[1].name", "b"),
        ('query["x.y"]', 1),
        ('["query"].index', "auth"),
        ("query.n", None),
        ("query.hosts[2]", MISSING),
        ("query.index.more", MISSING),
        ("query.gone", MISSING),
        ("query[0]", MISSING),
    ],
)
def test_a_path_gives_what_stands_there_or_nothing(path, value):
    assert value_at(CALL, read_path(path)) == value


def test_a_whole_may_be_a_list_or_no_container():
    assert value_at([1, 2], read_path("[1]")) == 2
    assert value_at("text", read_path("a")) is MISSING
    assert value_at(None, ()) is None


@pytest.mark.parametrize(
    "path", [".a", "a.", "a..b", "a[", "a[x]", "a[-1]", "a[*]", "a b", "$.a", "0a", 'a["']
)
def test_what_is_no_path_is_refused_with_the_place(path):
    with pytest.raises(ValueError, match="is not a path from"):
        read_path(path)


def test_paths_are_bounded():
    with pytest.raises(ValueError, match="longer"):
        read_path("a" * (MAX_LENGTH + 1))
    with pytest.raises(ValueError, match="steps"):
        read_path("a" + ".a" * 20)


@given(st.text())
def test_a_text_is_a_path_or_is_refused(text):
    try:
        steps = read_path(text)
    except ValueError:
        return
    assert all(steps)
    assert (not steps) is (text == "")
