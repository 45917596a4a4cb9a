"""Texts as plain values beside the places they stand at, and values as YAML that reads back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._parsed import Bounds, Malformed, read, write_yaml

BOUNDS = Bounds(characters=10_000, depth=12, repeats=100, what="playbook")


def yaml_value(text, bounds=BOUNDS):
    return read(text, "yaml", bounds).value


def malformed(text, kind="yaml", bounds=BOUNDS):
    with pytest.raises(Malformed) as error:
        read(text, kind, bounds)
    return error.value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("yaml", "id: x\nsteps:\n  - id: a\n    hints: [h, k]\n"),
        ("json", '{"id": "x",\n"steps":\n [{"id": "a",\n "hints": ["h", "k"]}]}'),
    ],
)
def test_every_place_has_its_line_and_column(kind, text):
    found = read(text, kind, BOUNDS)
    for where, sign in (("steps[0].id", "id"), ("steps[0].hints", "hints")):
        line = text.splitlines()[found.lines[where] - 1]
        assert line[found.columns[where] - 1 :].lstrip('"').startswith(sign)
    second = text.splitlines()[found.lines["steps[0].hints[1]"] - 1]
    assert second[found.columns["steps[0].hints[1]"] - 1 :].lstrip('"').startswith("k")


def test_a_place_nobody_wrote_has_the_line_of_what_is_around_it():
    found = read("id: x\nsteps:\n  - id: a\n", "yaml", BOUNDS)
    assert (found.line_of("steps[0].hints[4].x"), found.column_of("steps[0].hints")) == (3, 5)
    assert found.line_of("nothing") == found.line_of(None) == 1, "that of the whole"


def test_an_alias_repeats_a_value_that_nobody_shares():
    value = yaml_value("a: &one {k: [1]}\nb: *one\n")
    assert value == {"a": {"k": [1]}, "b": {"k": [1]}}
    value["a"]["k"].append(2)
    assert value["b"] == {"k": [1]}


def test_a_merge_key_gives_way_to_what_is_written_beside_it():
    text = "- &s {id: a, n: 1}\n- &t {n: 2, m: 3}\n- {<<: *s, id: b}\n- {id: c, <<: [*s, *t]}\n"
    assert yaml_value(text)[2:] == [{"id": "b", "n": 1}, {"id": "c", "n": 1, "m": 3}]
    assert yaml_value('{"<<": 1}') == {"<<": 1}, "in quotes it is a key like any other"
    assert "a mapping" in malformed("a: {<<: 3}").message


def test_aliases_cannot_repeat_without_end():
    bomb = "a: &a [x, x, x, x]\n"
    for one, two in zip("abcdef", "bcdefg", strict=True):
        bomb += f"{two}: &{two} [*{one}, *{one}, *{one}, *{one}]\n"
    assert malformed(bomb).code == "too_large"
    assert "has no value before it" in malformed("a: &a [*a]").message
    assert "has no value before it" in malformed("a: *b").message


def test_a_repeated_value_counts_with_the_depth_it_stands_at():
    deep = "a: &a [[[[[[[[1]]]]]]]]\nb: [[[[[*a]]]]]\n"
    assert malformed(deep).code == "too_deep"


def test_anchors_are_refused_where_nothing_may_repeat():
    strict = Bounds(characters=99, depth=9, repeats=0, what="rule set")
    assert malformed("a: &x 1", bounds=strict).fix == "write the value out"
    assert yaml_value("<<: 1", strict) == {"<<": 1}, "a merge key is of YAML 1.1 alone"


@pytest.mark.parametrize(
    ("text", "kind", "code", "mark"),
    [
        ("", "yaml", "empty", None),
        (" ", "json", "empty", None),
        ("a: 1\na: 2", "yaml", "duplicate_key", (2, 1)),
        ('{"a": 1,\n "a": 2}', "json", "duplicate_key", (2, 2)),
        ("a: 1\n--- \nb: 2", "yaml", "syntax", (2, 1)),
        ("a:\n  b: !!python/name:os.system 1", "yaml", "syntax", (2, 6)),
        ("a: [1", "yaml", "syntax", (1, 6)),
        ('{"a": tru}', "json", "syntax", (1, 7)),
        ("a: \x01", "yaml", "syntax", (1, 4)),
        ("x" * 10_001, "yaml", "too_large", None),
        ("[" * 14 + "]" * 14, "json", "too_deep", (1, 14)),
        ("[" * 14 + "]" * 14, "yaml", "too_deep", (1, 14)),
    ],
)
def test_what_is_malformed_is_told_with_its_place(text, kind, code, mark):
    error = malformed(text, kind)
    assert error.code == code
    if mark is not None:
        assert (error.line, error.column) == mark


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


BROKEN = st.text(st.sampled_from(list("ab \t#:-|>'\"\n\r\x85\u2028\ufeff\\\u202e")), max_size=12)


@given(st.lists(BROKEN, max_size=3))
def test_texts_of_several_lines_read_back_the_same(texts):
    for blocks in (False, True):
        written = write_yaml({"texts": texts, "last": "\n".join(texts)}, blocks=blocks)
        assert read(written, "yaml", BOUNDS).value["texts"] == texts


def test_lines_stand_below_each_other_where_that_is_asked_for():
    assert write_yaml({"a": "one\n\ntwo"}, blocks=True) == "a: |-\n  one\n\n  two\n"
    assert write_yaml({"a": "one\n\ntwo"}) == 'a: "one\\n\\ntwo"\n'


def test_bidirectional_overrides_are_written_as_escapes():
    document = {"to\u202e": ["C:\\\u2066", "one\n\u202etwo", "\u202e"]}
    written = write_yaml(document, blocks=True)
    assert written.isascii()
    assert yaml_value(written) == document


@given(PLAIN)
def test_what_is_written_reads_back_the_same(value):
    document = {"value": value}
    wide = Bounds(characters=100_000, depth=40, repeats=5, what="document")
    assert read(write_yaml(document), "yaml", wide).value == document
    assert read(write_yaml(document, blocks=True), "yaml", wide).value == document
    assert read(json.dumps(document), "json", wide).value == document
