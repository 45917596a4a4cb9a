"""Documents are executed in a clean kernel, and change only when a change is meant."""

import os
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from runbook_nb.errors import LoadError
from runbook_nb.testing import MOMENT, notebooks
from runbook_nb.testing.notebooks import CellFailed, refresh


@pytest.fixture
def write(tmp_path):
    """Write a notebook of code cells that has never been run."""

    def write(*sources, name="one.ipynb"):
        cells = [new_markdown_cell("# Title"), *map(new_code_cell, sources)]
        nbformat.write(new_notebook(cells=cells), tmp_path / name)
        return tmp_path / name

    return write


def outputs(path):
    return [
        output
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", ())
    ]


def change(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_a_new_document_is_executed_and_saved(write):
    path = write("print('a')", "1 + 1")
    done = refresh(path)
    assert (done.changed, done.differences, done.saved) == (True, (), True)
    assert outputs(path)[0].text == "a\n"
    assert outputs(path)[1].data == {"text/plain": "2"}


def test_executed_again_it_keeps_its_bytes(write):
    path = write("1 + 1")
    refresh(path)
    before = path.read_bytes()
    done = refresh(path)
    assert (done.changed, done.saved) == (False, True)
    assert path.read_bytes() == before


def test_line_ends_of_another_system_are_a_change(write):
    path = write("1 + 1")
    refresh(path)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"\n", b"\r\n"))
    assert refresh(path).changed
    assert path.read_bytes() == before


def test_an_output_that_says_something_else_is_refused_with_the_difference(write):
    path = write("1 + 1", "'same'")
    refresh(path)
    change(path, '"2"', '"3"')
    before = path.read_bytes()
    done = refresh(path)
    assert not done.saved
    assert done.differences == ("cell 2 (1 + 1), text/plain:\n  -3\n  +2",)
    assert path.read_bytes() == before


def test_a_change_that_is_meant_is_taken(write):
    path = write("1 + 1")
    refresh(path)
    change(path, '"2"', '"3"')
    done = refresh(path, accept=True)
    assert done.differences
    assert done.saved
    assert outputs(path)[0].data["text/plain"] == "2"


def test_a_cell_that_was_edited_may_show_something_else(write):
    path = write("1 + 1")
    refresh(path)
    change(path, "1 + 1", "1 + 2")
    done = refresh(path)
    assert (done.differences, done.saved) == ((), True)
    assert outputs(path)[0].data["text/plain"] == "3"


def test_what_an_edit_does_to_the_cells_after_it_is_told(write):
    path = write("a = 1", "a")
    refresh(path)
    change(path, "a = 1", "a = 2")
    assert refresh(path).differences == ("cell 3 (a), text/plain:\n  -1\n  +2",)


def owned(path, number=1):
    """Tag a cell as one that shows the machine's own."""
    document = nbformat.read(path, as_version=4)
    document.cells[number].metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(document, path)


def test_what_is_the_machines_own_stays_as_it_was_stored(write):
    path = write("1 + 1", "'same'")
    owned(path)
    refresh(path)
    change(path, '"2"', '"3"')  # as if it had been run elsewhere
    before = path.read_bytes()
    done = refresh(path)
    assert (done.changed, done.differences) == (False, ())
    assert path.read_bytes() == before


def test_what_is_the_machines_own_is_taken_where_it_is_asked_for_or_the_cell_is_new(write):
    path = write("1 + 1")
    owned(path)
    assert refresh(path).saved
    assert outputs(path)[0].data == {"text/plain": "2"}
    change(path, '"2"', '"3"')
    assert refresh(path, accept=True).saved
    assert outputs(path)[0].data == {"text/plain": "2"}


def test_a_cell_of_the_machines_own_may_not_fail(write):
    path = write("1 / 0")
    owned(path)
    with pytest.raises(CellFailed, match="ZeroDivisionError"):
        refresh(path)


def test_a_form_that_is_gone_or_new_is_told(write):
    path = write("1 + 1")
    refresh(path)
    change(path, "text/plain", "text/html")
    gone, new = refresh(path).differences
    assert gone.endswith("text/html:\n  is gone")
    assert new.endswith("text/plain:\n  is new")


def test_a_long_difference_is_cut_where_it_begins_and_says_how_much_is_shown(write):
    path = write("print('\\n'.join(map(str, range(40))))", "'x' * 300 + 'end'")
    refresh(path)
    text = path.read_text().replace("xend", "yend")
    for number in range(40):
        text = text.replace(f'"{number}\\n"', f'"{number}!\\n"')
    path.write_text(text)
    lines, long = refresh(path).differences
    assert lines.endswith("… 12 of 80 lines shown")
    assert "-…" in long
    assert "yend'" in long
    assert all(len(line) < 120 for line in long.splitlines())


def test_without_saving_the_file_stays_and_the_change_is_said(write):
    path = write("1 + 1")
    before = path.read_bytes()
    done = refresh(path, save=False)
    assert (done.changed, done.saved) == (True, False)
    assert path.read_bytes() == before


def test_the_kernel_is_this_python_with_its_clock_held_still(write):
    path = write(
        "import sys; sys.executable", "import runbook_nb as rb; rb.settings.clock().isoformat()"
    )
    refresh(path)
    assert [o.data["text/plain"] for o in outputs(path)] == [
        repr(sys.executable),
        repr(MOMENT.isoformat()),
    ]


def test_the_kernel_works_in_the_folder_of_the_document(write, tmp_path):
    path = write("import os; os.getcwd()")
    refresh(path)
    assert outputs(path)[0].data["text/plain"] == repr(os.path.realpath(tmp_path))


def test_the_users_ipython_profile_plays_no_part(write, tmp_path, monkeypatch):
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "mine.py").write_text("mine = 1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    path = write("'mine' in globals()")
    refresh(path)
    assert outputs(path)[0].data["text/plain"] == "False"


def test_a_cell_that_raises_is_named_and_nothing_is_written(write):
    path = write("1 + 1", "# divide\n1 / 0")
    before = path.read_bytes()
    with pytest.raises(CellFailed, match=r"cell 3 \(# divide\) raised ZeroDivisionError: division"):
        refresh(path)
    assert path.read_bytes() == before


def test_a_cell_that_is_meant_to_raise_may(write):
    path = write("1 / 0")
    document = nbformat.read(path, as_version=4)
    document.cells[1].metadata.tags = ["raises-exception"]
    nbformat.write(document, path)
    refresh(path)
    assert outputs(path)[0].ename == "ZeroDivisionError"
    assert not refresh(path).changed


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cells": 1}', "\x00"])
def test_a_file_that_is_no_notebook_is_refused_by_name(tmp_path, content):
    path = tmp_path / "broken.ipynb"
    path.write_text(content)
    with pytest.raises(LoadError, match=r"broken\.ipynb cannot be read as a notebook"):
        refresh(path)


def test_a_missing_package_is_named_with_the_line_that_installs_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    with pytest.raises(LoadError, match="pip install nbclient ipykernel") as caught:
        refresh(write("1"))
    assert caught.value.code == "missing_package"


def test_pictures_are_left_out_of_the_comparison_as_nbval_leaves_them_out(monkeypatch):
    monkeypatch.setattr(notebooks, "patterns", lambda: [(__import__("re").compile("p+"), "P")])
    assert notebooks.sanitized("a ppp b p") == "a P b P"
