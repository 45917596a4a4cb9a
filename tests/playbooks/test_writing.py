"""Writing playbooks: nothing lost, the same bytes each time, read back equal."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import PlaybookDefinitionError, PlaybookLoadError
from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.model import Playbook, PlaybookStep, RequiredProbe
from runbook_nb.playbooks.writing import write_playbook

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
NAME = TEXT.filter(str.strip)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT | st.just(0.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
MAPPING = st.dictionaries(TEXT, VALUE, max_size=2)
OWN = st.dictionaries(TEXT.map("x-{}".format), VALUE, max_size=2)
CHECK = st.fixed_dictionaries(
    {"name": st.sampled_from(["auth", "day"]), "path": st.just("index"), "value": TEXT},
    optional={"tool": st.just("query_siem"), "x-note": VALUE},
).map(lambda check: {**check, "op": "eq"})
NAMES = st.lists(TEXT, max_size=2)


@st.composite
def steps(draw, own_id):
    floor = draw(st.none() | st.integers(0, 3))
    cap = draw(st.none() | st.integers(max(floor or 1, 1), 5))
    probes = st.builds(RequiredProbe, name=TEXT, match=NAME, description=TEXT)
    return PlaybookStep(
        id=own_id,
        description=draw(TEXT),
        expected_tools=draw(NAMES),
        hints=draw(NAMES),
        required=draw(st.booleans()),
        validation=draw(MAPPING),
        uses=draw(NAMES),
        required_probes=draw(st.lists(probes, max_size=2)),
        min_tool_calls=floor,
        max_tool_calls=cap,
        timeout_seconds=draw(st.none() | st.floats(0.001, 1e9)),
        metadata=draw(MAPPING),
        checks=draw(st.lists(CHECK, max_size=2, unique_by=lambda check: check["name"])),
        kind=draw(st.sampled_from([None, "manual", "approval"])),
        requires=draw(NAMES),
        **draw(OWN),
    )


@st.composite
def playbooks(draw):
    ids = draw(st.lists(NAME, max_size=3, unique=True))
    return Playbook(
        id=draw(NAME),
        name=draw(TEXT),
        description=draw(TEXT),
        version=draw(TEXT.filter(lambda text: text != "playbook.v2")),
        steps=[draw(steps(own_id)) for own_id in ids],
        strict_sequence=draw(st.booleans()),
        allow_extra_tools=draw(st.booleans()),
        max_iterations=draw(st.none() | st.integers(1, 9)),
        metadata=draw(MAPPING),
        tags=draw(NAMES),
        **draw(OWN),
    )


@settings(max_examples=60, deadline=None)
@given(playbooks())
def test_what_is_written_reads_back_equal(book):
    document = book.to_dict()
    for written in (document, book.to_json(), book.to_yaml(), book.to_yaml().encode()):
        back = load_playbook(written)
        assert back == book
        assert back.model_dump() == book.model_dump()
        assert list(back.extensions) == list(book.extensions)
        assert [list(one.extensions) for one in back.steps] == [
            list(one.extensions) for one in book.steps
        ]
    assert load_playbook(book.to_yaml()).to_yaml() == book.to_yaml()
    assert json.loads(book.to_json()) == document
    assert load_playbook(book.model_dump(mode="json")) == book, "a dump with its nulls loads too"


@settings(max_examples=30, deadline=None)
@given(playbooks())
def test_the_first_reader_of_the_format_reads_the_same_but_for_own_keys(book):
    read = load_playbook(json.loads(book.to_json()), profile="compat")
    ours = book.model_dump()
    for part, other in zip([ours, *ours["steps"]], [read, *read.steps], strict=True):
        known = other.model_dump()
        known.pop("steps", None)
        assert {key: part[key] for key in known} == known


def test_what_is_not_said_is_not_written():
    book = Playbook(id="ir", name="R", steps=[PlaybookStep(id="a", description="d", hints=["h"])])
    assert book.to_dict() == {
        "id": "ir",
        "name": "R",
        "version": "1.0.0",
        "steps": [{"id": "a", "description": "d", "hints": ["h"]}],
    }


def test_keys_come_in_the_order_of_the_reference():
    step = PlaybookStep(
        **{"x-b": 1, "x-a": 2},
        metadata={"k": 1},
        requires=["b"],
        kind="manual",
        max_tool_calls=2,
        description="d",
        id="a",
    )
    order = ["id", "description", "kind", "max_tool_calls", "requires", "metadata", "x-b", "x-a"]
    assert list(Playbook(id="p", name="n", steps=[step]).to_dict()["steps"][0]) == order


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.json", "A.JSON"])
def test_a_file_is_written_as_its_ending_says(tmp_path, name):
    book = Playbook(id="ir", name="Zürich — 東京", tags=["no", "1e3"])
    path = rb.write_playbook(book, tmp_path / name)
    assert path == tmp_path / name
    assert rb.load_playbook(path) == book
    data = path.read_bytes()
    assert write_playbook(book, str(path)).read_bytes() == data
    assert data.endswith(b"\n")
    assert not data.endswith(b"\n\n")
    assert (data[:1] == b"{") == name.lower().endswith("json")
    assert "Zürich — 東京".encode() in data


def test_an_ending_that_says_nothing_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(PlaybookLoadError) as error:
        write_playbook(Playbook(id="ir", name="n"), tmp_path / "a.txt")
    assert error.value.code == "unsupported_suffix"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"day": date(2026, 1, 2)}, "a date at steps[0].metadata.day"),
        ({"k": {3: 1}}, "the key 3"),
        ({"k": float("nan")}, "nan"),
        ({"k": {1, 2}}, "a set"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_with_its_place(value, said):
    step = PlaybookStep(id="a", description="d", metadata=value)
    with pytest.raises(PlaybookDefinitionError) as error:
        Playbook(id="ir", name="n", steps=[step]).to_yaml()
    assert error.value.code == "cannot_write"
    assert said in str(error.value)


def test_what_nobody_would_read_back_is_not_written():
    deep: list = []
    for _ in range(60):
        deep = [deep]
    with pytest.raises(PlaybookDefinitionError, match="nested deeper than 50"):
        Playbook(id="ir", name="n", metadata={"deep": deep}).to_json()


def test_a_tuple_is_written_as_the_list_it_reads_back_as():
    written = Playbook(id="ir", name="n", metadata={"t": (1, 2)}).to_yaml()
    assert load_playbook(written).metadata == {"t": [1, 2]}
