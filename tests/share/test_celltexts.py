"""The texts a notebook was written with are held against its answer; an author's own are named."""

import json
import re
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runbook"))

from forging import ANSWERS, answer

import runbook_nb as rb
from runbook_nb.render.bundle import bundle_of
from runbook_nb.share.celltexts import claim_cells
from runbook_nb.share.notebook import EXPLAINING
from runbook_nb.share.verify import verify_file


@cache
def live(name):
    return answer(name)


@pytest.fixture
def written(tmp_path):
    return live("short way").to_notebook(tmp_path / "answer.ipynb")


def one(path):
    [checked] = verify_file(path)
    return checked


def with_text(path, number, change):
    """Change the text of a cell of a notebook."""
    document = json.loads(path.read_text("utf-8"))
    cell = document["cells"][number]
    before = "".join(cell["source"])
    cell["source"] = change(before)
    assert cell["source"] != before
    path.write_text(json.dumps(document), encoding="utf-8")
    return one(path)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_texts_it_was_written_with_are_drawn_anew(name, tmp_path):
    checked = one(live(name).to_notebook(tmp_path / "a.ipynb"))
    assert checked["cell[1]"].status == "confirmed"
    assert "cells" not in [claim.id for claim in checked]


@pytest.mark.parametrize("name", ["short way", "hidden", "functions"])
def test_a_notebook_that_was_made_safe_keeps_its_texts(name, tmp_path):
    file = live(name).to_notebook(tmp_path / "a.ipynb")
    shared = rb.share_notebook(file, tmp_path / "b.ipynb", values=["web-3", "undeclared"]).written
    assert one(shared)["cell[1]"].status == "confirmed"


@pytest.mark.parametrize("more", [{"redact": {"keys": ("verdict",)}}, {"values": ["fresh", "old"]}])
def test_words_that_were_hidden_later_are_no_contradiction(written, tmp_path, more):
    shared = rb.share_notebook(written, tmp_path / "b.ipynb", **more).written
    assert one(shared)["cell[1]"].status == "confirmed"  # it was written anew from what is left
    document = json.loads(shared.read_text("utf-8"))
    text = "".join(document["cells"][0]["source"])
    document["cells"][0]["source"] = re.sub(r"(\d \\\[REDACTED\\\])", r"\1, 9 old", text, count=1)
    shared.write_text(json.dumps(document), encoding="utf-8")
    assert one(shared)["cell[1]"].because == "hidden"
    checked = with_text(shared, 0, lambda text: text.replace("Rules — ", "Rules — not "))
    assert checked["cell[1]"].status == "contradicted"


@pytest.mark.parametrize(
    ("old", "new"),
    [("5 rows", "3 rows"), ("checked 1", "checked 9"), ("Rules — ", "Rules — not "), ("no ", "a ")],
)
def test_a_word_that_is_changed_is_found_out(written, old, new):
    checked = with_text(written, 0, lambda text: text.replace(old, new, 1))
    [claim] = checked.contradicted
    assert claim.id == "cell[1]"
    assert new in claim.found
    assert new not in claim.expected
    assert checked.covering("cells", 0, "source") == (claim,)


def test_a_line_that_was_put_in_or_taken_out_is_found_out(written):
    [claim] = with_text(written, 0, lambda text: f"{text}\n\nApproved.").contradicted
    assert (claim.id, claim.found, claim.expected) == ("cell[1]", "", None)
    [claim] = with_text(written, 0, lambda text: text[: text.rindex("\n\nThis")]).contradicted
    assert claim.found is None


def test_the_text_above_the_explanation_is_held_too(written):
    assert one(written)["cell[3]"].status == "confirmed"
    [claim] = with_text(written, 2, lambda text: text.replace("first", "worst")).contradicted
    assert claim.id == "cell[3]"
    assert claim.expected == EXPLAINING


def test_an_earlier_version_that_wrote_it_is_no_difference(written):
    text = written.read_text("utf-8").replace(rb.__version__, "0.0.9")
    written.write_text(text, encoding="utf-8")
    assert one(written)["cell[1]"].status == "confirmed"


def test_what_an_author_puts_in_is_named_and_not_held_against_anything(written):
    document = nbformat.read(written, as_version=4)
    document.cells.insert(0, nbformat.v4.new_markdown_cell("My own words."))
    document.cells.append(nbformat.v4.new_raw_cell("And more."))
    nbformat.write(document, written)
    checked = one(written)
    assert checked.ok
    assert checked["cells"].claimed == "not looked at: the text of cells 1 and 6"
    assert checked["cells"].because == "it is the author's own text"
    assert checked["cell[2]"].status == "confirmed"


def test_of_a_notebook_that_was_not_written_by_the_package_no_text_is_looked_at(tmp_path):
    new = nbformat.v4
    output = new.new_output("display_data", data=bundle_of(live("one row"))[0])
    cells = [new.new_markdown_cell("1"), new.new_code_cell("x", outputs=[output])]
    cells += [new.new_markdown_cell(" "), new.new_markdown_cell(EXPLAINING)]
    nbformat.write(new.new_notebook(cells=cells), tmp_path / "a.ipynb")
    checked = one(tmp_path / "a.ipynb")
    assert checked["cells"].claimed == "not looked at: the text of cells 1 and 4"
    assert checked["cells"].count == 2
    assert not [claim for claim in checked if claim.id.startswith("cell[")]


@pytest.mark.parametrize(
    "document", [[], {}, {"cells": 3}, {"cells": [1, {"cell_type": "markdown", "source": 3}]}]
)
def test_what_is_no_notebook_has_no_texts(document):
    from runbook_nb.record.claims import Claims

    claims = Claims()
    claim_cells(document, (), claims)
    assert claims.made == []
