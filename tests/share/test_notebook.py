"""An answer as a notebook: valid, readable without a kernel, the same every time."""

import json
import re
import subprocess
import sys
import warnings

import nbformat
import pytest

import runbook_nb as rb
from runbook_nb._version import __version__
from runbook_nb.render.embed import read_embedded
from runbook_nb.share.notebook import NOTEBOOK_FORMAT, notebook_text
from runbook_nb.testing.notebooks import execute, read_document

NAMES = [
    "plain.ipynb",
    "with space.ipynb",
    "quo'te\".ipynb",
    "ünïcode-日本.ipynb",
    "back\\slash.ipynb",
    "semi;colon$(x)`y`.ipynb",
    "{braces}.ipynb",
    "-dash.ipynb",
    "new\nline.ipynb",
]


@pytest.fixture(scope="module")
def text(envelope):
    return notebook_text(envelope, "answer.ipynb")


@pytest.fixture(scope="module")
def document(text):
    return json.loads(text)


def joined(text):
    return "".join(text)


def test_f3_it_is_valid_with_todays_warnings_taken_as_errors(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        document = nbformat.reads(text, as_version=4)
        nbformat.validate(document, relax_add_props=False)
    assert (document.nbformat, document.nbformat_minor) == (4, 5)
    ids = [cell.id for cell in document.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{16}(-\d+)?", name) for name in ids)


def test_its_metadata_names_the_kernel_and_the_form_of_the_file(document):
    assert document["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {
            "file_extension": ".py",
            "mimetype": "text/x-python",
            "name": "python",
            "pygments_lexer": "ipython3",
        },
        "runbook_nb": {"format": NOTEBOOK_FORMAT, "generator": f"runbook_nb {__version__}"},
    }
    assert all(cell["metadata"] == {} for cell in document["cells"])


def test_it_is_written_as_notebooks_are_kept_under_version_control(text, document):
    assert text.endswith("}\n")
    assert "\r" not in text
    assert text == json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def test_f4_its_plain_text_alone_is_an_answer(envelope, document):
    """An untrusted notebook may be shown with nothing but its plain text."""
    answer, why = (c["outputs"][0]["data"] for c in document["cells"] if c["cell_type"] == "code")
    assert joined(answer["text/plain"]) == str(envelope)
    assert joined(why["text/plain"]) == str(envelope.why(row=0))


def test_f4_its_html_needs_no_trust(document):
    for cell in document["cells"]:
        for output in cell.get("outputs", ()):
            assert set(output["data"]) == {"text/plain", "text/html"}
            html = joined(output["data"]["text/html"])
            assert "<script" not in html
            assert "<svg" not in html
            assert '<img src="data:image/svg+xml;base64,' in html


def test_it_opens_with_what_it_is_and_what_it_came_from(envelope, document):
    first = joined(document["cells"][0]["source"])
    assert first.startswith("**Envelope triage · age v1 · 2 rows (1 fresh, 1 old)**\n")
    assert f"- Call — `{envelope['result']['af_provenance']['toolCallId']}`" in first
    assert f"- Walk — `{envelope['result']['walk']['ref']}`" in first
    assert "needs no kernel" in first


def test_the_whole_answer_is_in_the_first_output_and_in_no_source(envelope, document):
    cell = document["cells"][1]
    read = read_embedded(joined(cell["outputs"][0]["data"]["text/html"]))
    assert read["envelope"] == envelope.to_dict(dossier=True)
    assert all("runbook_nb:payload" not in joined(cell["source"]) for cell in document["cells"])


def test_it_is_written_twice_with_the_same_bytes(envelope, tmp_path):
    (tmp_path / "other").mkdir()
    one = envelope.to_notebook(tmp_path / "a.ipynb").read_bytes()
    assert envelope.to_notebook(tmp_path / "a.ipynb").read_bytes() == one
    assert envelope.to_notebook(tmp_path / "other" / "a.ipynb").read_bytes() == one


@pytest.mark.parametrize("name", NAMES)
def test_whatever_its_name_the_first_cell_reads_the_file_itself(envelope, tmp_path, name):
    path = envelope.to_notebook(tmp_path / name)
    source = joined(json.loads(path.read_text(encoding="utf-8"))["cells"][1]["source"])
    done = subprocess.run(
        [sys.executable, "-c", f"{source}\nprint(repr(envelope))"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{envelope!r}\n"


def test_run_with_a_kernel_it_shows_the_same_words_and_asks_no_source(envelope, tmp_path):
    path = envelope.to_notebook(tmp_path / "a.ipynb")
    before = read_document(path)
    after = execute(before, tmp_path)
    for one, other in zip(before.cells, after.cells, strict=True):
        if one.cell_type == "code":
            shown, again = (cell.outputs[0].data["text/plain"] for cell in (one, other))
            assert again == shown


def test_an_answer_without_rows_explains_none():
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    empty = rb.triage([], rules, subject="host", source="no rows")
    cells = json.loads(notebook_text(empty, "a.ipynb"))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"]


def test_a_copy_that_holds_no_evidence_explains_no_row_it_cannot_explain(envelope):
    copy = rb.Envelope.from_dict(envelope.to_dict())
    document = json.loads(notebook_text(copy, "a.ipynb"))
    shown = [
        joined(output["data"]["text/plain"])
        for cell in document["cells"]
        for output in cell.get("outputs", ())
    ]
    assert shown[0] == str(copy)
    assert all("not carried" in text for text in shown[1:])


def test_hostile_words_are_words_in_markdown_too(envelope):
    wire = envelope.to_dict()
    hostile = "# x\n![y](https://e.example/z.png)<img src=x onerror=alert(1)>|`"
    wire["result"]["af_provenance"] = {"tool": hostile, "toolCallId": hostile}
    first = joined(
        json.loads(notebook_text(rb.Envelope.from_dict(wire), "a.ipynb"))["cells"][0]["source"]
    )
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").render(first)
    assert "<img" not in html
    assert "<h1" not in html
