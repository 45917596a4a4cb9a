"""What of a call is searched for probes, in the plain form and in the one that folds."""

from __future__ import annotations

import json
from datetime import date
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import DefinitionError
from runbook_nb.playbooks.evidence import (
    MAX_TEXT,
    UNWRITABLE,
    call_text,
    folded,
    is_blank,
    matched_probes,
)


def probe(match, name="p"):
    return SimpleNamespace(name=name, match=match)


def matches(match, tool="t", arguments=None, form="v1"):
    return matched_probes([probe(match)], tool, arguments, form) == ["p"]


class Raising:
    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


# --- the plain form ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (None, "tool"),
        ({}, "tool {}"),
        ("", "tool "),
        ("Raw\nText", "tool raw\ntext"),
        ({"a": "É\n"}, 'tool {"a": "\\u00c9\\n"}'.lower()),
        ({"a": float("nan")}, 'tool {"a": nan}'),
        ({"b": 1, "a": [True, None]}, 'tool {"b": 1, "a": [true, null]}'),
        ({"d": date(2026, 1, 2)}, 'tool {"d": "2026-01-02"}'),
        ({("a", 1): 2}, "tool {('a', 1): 2}"),
        (b"BY", "tool \"b'by'\""),
    ],
)
def test_the_plain_form_is_name_space_and_escaped_json_in_lower_case(arguments, text):
    assert call_text("Tool", arguments) == text


def test_what_holds_itself_is_written_as_python_shows_it():
    ring = {"key": "VALUE"}
    ring["self"] = ring
    assert call_text("t", ring) == "t {'key': 'value', 'self': {...}}"


@given(NESTED.filter(lambda value: value is not None and not isinstance(value, str)))
def test_the_plain_form_is_what_the_json_module_writes(arguments):
    assert call_text("T", arguments) == f"T {json.dumps(arguments)}".lower()


# --- the form that folds ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "arguments"),
    [
        ("index=auth", {"index": "auth"}),
        ("INDEX=Auth", {"query": {"index": "auth"}}),
        ("query.index=auth", {"query": {"index": "auth"}}),
        ("hosts=web-2", {"hosts": ["web-1", "web-2"]}),
        ("zürich", {"city": "ZÜRICH"}),
        ("STRASSE", {"at": "straße"}),
        ("cafe\u0301", {"at": "CAFÉ"}),
        ("日本", {"q": "日本"}),
        ('say "no"', {"q": 'say "no"'}),
        ("two\nlines", {"q": "two\nlines"}),
        ("count=3", {"count": 3}),
        ("dry=true", {"dry": True}),
        ("none=null", {"none": None}),
        ("index=auth", {("a", "tuple"): 1, "index": "auth"}),
        ('"index": "auth"', {"index": "auth"}),
    ],
)
def test_the_folding_form_finds_what_people_mean(match, arguments):
    assert matches(match, arguments=arguments, form="v2")


@pytest.mark.parametrize(
    ("match", "arguments"),
    [
        ("index=auth", {"index": "web"}),
        ("index=auth", {"indexes": "auth"}),
        ("\\u00fc", {"city": "Zürich"}),
        (" ", {"a": 1}),
        ("\t\n", "a\t\nb"),
    ],
)
def test_the_folding_form_does_not_find_what_is_not_there(match, arguments):
    assert not matches(match, arguments=arguments, form="v2")


def test_a_blank_probe_is_satisfied_by_any_arguments_in_the_plain_form_only():
    assert matches(" ", arguments={})
    assert not matches(" ", arguments={}, form="v2")
    assert is_blank("\u00a0\n")
    assert not is_blank("x")


ASCII = st.text(st.characters(min_codepoint=35, max_codepoint=126, exclude_characters="\\"))


@given(st.dictionaries(ASCII, ASCII | st.integers() | st.booleans(), max_size=4), st.data())
def test_what_the_plain_form_finds_of_plain_text_the_folding_one_finds_too(arguments, data):
    text = call_text("tool", arguments)
    start = data.draw(st.integers(0, len(text) - 1))
    wanted = text[start : data.draw(st.integers(start + 1, len(text)))]
    if not is_blank(wanted):
        assert matches(wanted, "tool", arguments)
        assert matches(wanted, "tool", arguments, form="v2")


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert folded(folded(text)) == folded(text)
    assert folded(text.upper().lower()) is not None


# --- what cannot be written -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["v1", "v2"])
def test_a_value_whose_text_fails_is_a_placeholder_and_the_rest_still_counts(form):
    arguments = {"query": "index=auth", "handle": Raising()}
    assert matches("index=auth", arguments=arguments, form=form)
    assert not matches("no text", arguments=arguments, form=form)
    assert call_text("t", Raising(), form) in (f't "{UNWRITABLE}"', 't "\\ufffd"')


@pytest.mark.parametrize("form", ["v1", "v2"])
def test_arguments_that_nest_without_end_are_no_error(form):
    deep = {"first": "seen"}
    for _ in range(5000):
        deep = {"first": "seen", "in": deep}
    text = call_text("t", deep, form)
    assert text.startswith("t ")
    assert ("first=seen" in text) is (form == "v2")


def test_the_folding_form_is_bounded():
    arguments = {"a": "x" * MAX_TEXT, "b": ["y" * MAX_TEXT] * 3}
    assert len(call_text("t", arguments, "v2")) == MAX_TEXT


def test_an_unknown_form_is_refused_with_the_near_one():
    with pytest.raises(DefinitionError, match="'v1'") as caught:
        call_text("t", {}, "v1 ")
    assert caught.value.code == "bad_probe_text"


# --- several probes ---------------------------------------------------------------------------


def test_names_come_in_declared_order_and_once():
    probes = [probe("b", "two"), probe("a", "one"), probe("a", "two"), probe("z", "gone")]
    assert matched_probes(probes, "ab") == ["two", "one"]
    assert matched_probes([], "ab") == []
