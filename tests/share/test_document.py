"""Notebook files: one canonical form, valid for the strictest reader."""

import json
import warnings

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from runbook_nb.errors import DocumentError
from runbook_nb.share.document import canonical, check, written

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def shown(text="3 rows", **more):
    return new_output("execute_result", data={"text/plain": text, **more}, execution_count=1)


def ids(document):
    return [cell.id for cell in canonical(document).cells]


# --- ids ---------------------------------------------------------------------------------------


def test_the_id_of_a_cell_says_what_is_in_it_and_not_where_it_stands():
    one = ids(new_notebook(cells=[new_code_cell("1"), new_code_cell("2")]))
    other = ids(
        new_notebook(cells=[new_markdown_cell("new"), new_code_cell("1"), new_code_cell("2")])
    )
    assert other[1:] == one


def test_equal_cells_get_ids_of_their_own():
    found = ids(new_notebook(cells=[new_code_cell("1") for _ in range(3)]))
    assert len(set(found)) == 3
    assert found[1] == f"{found[0]}-2"


def test_a_heading_and_code_of_one_text_are_told_apart():
    assert len(set(ids(new_notebook(cells=[new_code_cell("1"), new_markdown_cell("1")])))) == 2


def test_an_output_does_not_change_the_id():
    one, other = (new_code_cell("1", outputs=[shown(text)], execution_count=1) for text in "ab")
    assert ids(new_notebook(cells=[one])) == ids(new_notebook(cells=[other]))


# --- what is left out --------------------------------------------------------------------------


def test_when_and_with_what_it_ran_is_left_out():
    cell = new_code_cell(
        "1", metadata={"execution": {"iopub.execute_input": "2026"}, "tags": ["a"]}
    )
    document = new_notebook(
        cells=[cell],
        metadata={
            "kernelspec": {"name": "my-env", "display_name": "mine", "language": "python"},
            "language_info": {"name": "python", "version": "3.11.7"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {}},
            "title": "Backups",
        },
    )
    made = canonical(document)
    assert made.cells[0].metadata == {"tags": ["a"]}
    assert made.metadata.title == "Backups"
    assert made.metadata.kernelspec.name == "python3"
    text = written(made)
    for word in ("3.11.7", "my-env", "widget-state", "2026"):
        assert word not in text


def test_the_notebook_given_stays_as_it_was():
    document = new_notebook(cells=[new_code_cell("1", metadata={"execution": {"at": "2026"}})])
    before = json.dumps(document)
    canonical(document)
    assert json.dumps(document) == before


def test_pieces_of_one_stream_are_joined():
    pieces = [
        new_output("stream", name=n, text=t)
        for n, t in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"))
    ]
    (cell,) = canonical(new_notebook(cells=[new_code_cell("1", outputs=pieces)])).cells
    assert [(o.name, o.text) for o in cell.outputs] == [("stdout", "ab"), ("stderr", "c")]


def test_a_traceback_names_no_folder_of_the_machine():
    error = new_output("error", ename="KeyError", evalue="'a'", traceback=["/home/me/x.py"])
    text = written(canonical(new_notebook(cells=[new_code_cell("1", outputs=[error])])))
    assert "/home/me" not in text
    assert "KeyError: 'a'" in text


def test_a_widget_gives_way_to_the_static_view_beside_it():
    widget = "application/vnd.jupyter.widget-view+json"
    output = shown(**{widget: {"model_id": "1234"}, "text/html": "<b>3</b>"})
    (cell,) = canonical(new_notebook(cells=[new_code_cell("1", outputs=[output])])).cells
    assert set(cell.outputs[0].data) == {"text/plain", "text/html"}


def test_a_widget_alone_stays_because_nothing_else_would_be_left():
    widget = "application/vnd.jupyter.widget-view+json"
    output = new_output("display_data", data={widget: {"model_id": "1234"}})
    (cell,) = canonical(new_notebook(cells=[new_code_cell("1", outputs=[output])])).cells
    assert set(cell.outputs[0].data) == {widget}


def test_a_cell_that_never_had_an_output_gets_an_empty_list():
    document = new_notebook(cells=[new_code_cell("1")])
    del document.cells[0]["outputs"], document.cells[0]["execution_count"]
    (made,) = canonical(document).cells
    assert (made.outputs, made.execution_count) == ([], None)


# --- bytes -------------------------------------------------------------------------------------


def test_the_form_is_reached_in_one_step_and_kept():
    document = new_notebook(
        cells=[new_code_cell("1\n2", outputs=[shown("a\nb")], execution_count=1)]
    )
    text = written(canonical(document))
    again = nbformat.reads(text, as_version=4)
    assert written(canonical(again)) == text


def test_keys_are_sorted_lines_are_lines_and_the_last_one_ends():
    text = written(canonical(new_notebook(cells=[new_markdown_cell("a\nb")])))
    assert text.endswith("\n}\n")
    assert "\r" not in text
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert data["cells"][0]["source"] == ["a\n", "b"]


@given(st.lists(st.tuples(st.booleans(), TEXT, TEXT), max_size=4))
def test_whatever_the_text_the_file_is_valid_and_reads_back(cells):
    made = [
        new_code_cell(source, outputs=[shown(text)], execution_count=1)
        if code
        else new_markdown_cell(source)
        for code, source, text in cells
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        document = nbformat.reads(written(canonical(new_notebook(cells=made))), as_version=4)
        nbformat.validate(document)
    assert [cell.source for cell in document.cells] == [source for _, source, _ in cells]
    assert len({cell.id for cell in document.cells}) == len(cells)


# --- F3: what a reader would refuse is not written ---------------------------------------------


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.cells[0].pop("id"),
        lambda d: d.cells[1].update(id=d.cells[0].id),
        lambda d: d.cells[0].update(id="not an id!"),
        lambda d: d.cells[0].update(extra=1),
        lambda d: d.update(extra=1),
        lambda d: d.cells[0].update(cell_type="picture"),
    ],
)
def test_f3_what_gives_a_warning_today_is_an_error_here(spoil):
    document = canonical(new_notebook(cells=[new_code_cell("1"), new_code_cell("2")]))
    check(document)
    spoil(document)
    with pytest.raises(DocumentError, match="not a valid notebook"):
        written(document)
