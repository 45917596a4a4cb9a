"""The published reading beyond what is recorded: order of checks, and what is never read."""

from __future__ import annotations

import pytest

from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks import published


def code(call, *args):
    with pytest.raises(PlaybookLoadError) as error:
        call(*args)
    return error.value.code


def test_existence_comes_before_the_ending_and_the_ending_before_reading(tmp_path):
    assert code(published.load_file, tmp_path / "no.txt") == "not_found"
    (tmp_path / "x.txt").write_bytes(b"\xff")
    assert code(published.load_file, tmp_path / "x.txt") == "unsupported_suffix"
    (tmp_path / "x.yaml").write_bytes(b"\xff")
    assert code(published.load_file, tmp_path / "x.yaml") == "read_failed"


def test_old_yaml_has_its_types():
    text = "id: x\nname: n\nmetadata: {on: 1.5, day: 2026-01-02, time: 1:30}\n"
    metadata = published.load_text(text.replace("on:", "'on':"), "yaml").metadata
    assert str(metadata["day"]) == "2026-01-02"
    assert metadata["time"] == 90
    assert code(published.load_text, "id: no\nname: n\n", "yaml") == "validation"


def test_repeated_keys_overwrite():
    assert published.load_text("id: a\nname: n\nid: b\n", "yaml").id == "b"
    assert published.load_text('{"id": "a", "name": "n", "id": "b"}', "json").id == "b"


def test_objects_of_python_are_not_made():
    text = "id: !!python/object/apply:os.getcwd []\nname: n\n"
    assert code(published.load_text, text, "yaml") == "bad_yaml"


def test_a_date_there_is_not_is_no_crash(tmp_path):
    (tmp_path / "d.yaml").write_text("id: 2026-13-45\nname: n\n")
    assert code(published.load_file, tmp_path / "d.yaml") == "read_failed"


def test_what_is_no_mapping_is_raised_as_python_raises_it(tmp_path):
    for document in ([1], None, "text"):
        with pytest.raises(AttributeError):
            published.load_document(document)
    (tmp_path / "l.yaml").write_text("- 1\n")
    assert code(published.load_file, tmp_path / "l.yaml") == "read_failed"


def test_an_empty_text_is_the_folder_one_is_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code(published.load_any, "") == "unsupported_suffix"
    assert code(published.load_any, None) == "not_found"
    assert code(published.load_any, "a\0b") == "not_found"


def told(document):
    """Give how a document is refused: the code, and each problem with its place."""
    with pytest.raises(PlaybookLoadError) as error:
        published.load_document(document)
    return error.value.code, [(one.code, one.where) for one in error.value.problems]


def book(*steps, **more):
    return {"id": "x", "name": "n", "steps": [*steps], **more}


def step(**more):
    return {"id": "a", "description": "d", **more}


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ({}, [("missing_field", "id"), ("missing_field", "name")]),
        (book() | {"steps": None}, [("steps_not_list", "steps")]),
        (book() | {"steps": ()}, [("steps_not_list", "steps")]),
        (book(None, "a"), [("step_not_mapping", "steps[0]"), ("step_not_mapping", "steps[1]")]),
        (book(step(hints=None)), [("step_field_not_list", "steps[0].hints")]),
        (book(step(hints=("h",))), [("step_field_not_list", "steps[0].hints")]),
        (book(step(), step(), step()), [("duplicate_step_id", f"steps[{n}].id") for n in (1, 2)]),
        (book(step(id=7), step(id=7)), [("duplicate_step_id", "steps[1].id")]),
    ],
)
def test_all_that_has_not_the_shape_is_told_together(document, problems):
    assert told(document) == ("structure", problems)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (book(step(id=0), step(id=0)), ("string_type", "steps[0].id")),  # falsy: not compared
        (book(step(max_tool_calls=2.5)), ("int_from_float", "steps[0].max_tool_calls")),
        (book(step(min_tool_calls=-1)), ("greater_than_equal", "steps[0].min_tool_calls")),
        (book(step(required="maybe")), ("bool_parsing", "steps[0].required")),
        (book(step(required=None)), ("bool_type", "steps[0].required")),
        (book(step(validation=None)), ("dict_type", "steps[0].validation")),
        (book(step(required_probes=["m"])), ("model_type", "steps[0].required_probes[0]")),
        (book(version=1.0), ("string_type", "version")),
        (book(tags=["a", 1]), ("string_type", "tags[1]")),
    ],
)
def test_what_a_field_cannot_hold_is_told_after_the_shape(document, problem):
    code, problems = told(document)
    assert code == "validation"
    assert problems[0] == problem


def test_an_id_that_cannot_be_compared_escapes():
    with pytest.raises(TypeError):
        published.load_document(book(step(id=["a"])))


def test_words_and_truths_become_what_the_field_asks_for():
    read = published.load_document(
        book(step(required="Off", min_tool_calls=True, max_tool_calls="3"), allow_extra_tools="YES")
    )
    assert read.allow_extra_tools is True
    one = read.steps[0]
    assert (one.required, one.min_tool_calls, one.max_tool_calls) == (False, 1, 3)


@pytest.mark.parametrize("word", ["no", "on", "1.0", "012", "1:30", "2026-01-02", "0x1F", "~"])
def test_what_old_yaml_takes_for_a_value_is_no_id(word):
    assert code(published.load_text, f"id: {word}\nname: n\n", "yaml") == "validation"


A, B = {"id": "a", "description": "d"}, {"description": "e"}


@pytest.mark.parametrize(
    ("groups", "ids"),
    [
        ([{"id": "g", "steps": [A, A]}], ["a", "g.a"]),
        ([{"steps": [A, A]}], ["a", "step-1"]),
        (
            [{"steps": [B, B]}, {"id": "", "steps": [{**B, "id": ""}]}],
            ["step-0", "step-1", "step-2"],
        ),
        ([{"id": "g", "steps": [B]}], ["g."]),
        (["junk", None, {"id": "g", "steps": [A, 7]}, {"id": "h"}], ["a"]),
        ([{"id": "g", "steps": [A, A, A]}], None),
        ([{"id": "g", "steps": [B, B]}], None),
        ([{"steps": [{**A, "id": "step-1"}, B]}], None),
    ],
)
def test_ids_of_grouped_steps_as_published(groups, ids):
    document = {"id": "x", "name": "n", "step_groups": groups}
    if ids is None:
        assert told(document)[1][0][0] == "duplicate_step_id"
    else:
        assert [one.id for one in published.load_document(document).steps] == ids


def test_the_heading_of_a_group_is_lost_behind_junk_and_not_said_twice():
    groups = [
        {"id": "g", "goal": "Look.", "steps": ["junk", {"id": "a", "title": "Count."}]},
        {"id": "h", "title": "Ask.", "steps": [{"id": "b", "goal": "Ask. Now."}]},
        {"id": "i", "title": "Act.", "steps": [{"id": "c", "goal": "", "description": "Do."}]},
    ]
    read = published.load_document({"id": "x", "step_groups": groups})
    assert read.name == "x"
    assert [one.description for one in read.steps] == ["Count.", "Ask. Now.", "Act.\n\nDo."]
