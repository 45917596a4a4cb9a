"""Answers are read back out of files as what the files say, and damage is told plainly."""

import base64
import hashlib
import json

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb import Envelope
from runbook_nb.errors import LoadError
from runbook_nb.render.embed import MARK, embed
from runbook_nb.share.hydrate import read_envelope
from runbook_nb.testing import notebooks, reproducible


def notebook(path, *outputs):
    """Save a notebook with one cell per output, as any program would."""
    cells = [
        nbformat.v4.new_code_cell(
            "x", outputs=[nbformat.v4.new_output("display_data", data={"text/html": html})]
        )
        for html in outputs
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def comment(value):
    text = json.dumps(value).encode()
    packed = base64.b64encode(text).decode()
    return f"{MARK}1 sha-256:{hashlib.sha256(text).hexdigest()} {packed}-->"


def refused(path, **more):
    with pytest.raises(LoadError) as caught:
        Envelope.from_notebook(path, **more)
    assert path.name in str(caught.value)
    return caught.value


# --- there and back ----------------------------------------------------------------------------


def test_what_was_written_is_read_back_with_its_evidence(envelope, tmp_path):
    copy = Envelope.from_notebook(envelope.to_notebook(tmp_path / "a.ipynb"))
    assert copy == envelope
    assert copy.verdicts == envelope.verdicts
    assert copy.ledger == envelope.ledger
    assert copy.why("zeta").to_dict() == envelope.why("zeta").to_dict()
    assert [list(row) for row in copy.verdicts] == [list(row) for row in envelope.verdicts]


def test_a_copy_written_again_says_the_same(envelope, tmp_path):
    one = Envelope.from_notebook(envelope.to_notebook(tmp_path / "a.ipynb"))
    two = Envelope.from_notebook(one.to_notebook(tmp_path / "b.ipynb"))
    assert two == one
    assert two.to_json(dossier=True) == one.to_json(dossier=True)


def test_an_answer_of_many_rows_comes_back_whole(many, tmp_path):
    copy = Envelope.from_notebook(many.to_notebook(tmp_path / "a.ipynb"))
    assert len(copy.verdicts) == 1_200
    assert copy.why("host-1199").sentence == many.why("host-1199").sentence


def test_its_tickets_are_redeemed_where_the_store_is_at_hand(tmp_path):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    box = rb.Toolbox()
    envelope = rb.triage(
        [{"host": "a", "days": 9}], rules, subject="host", source="a row", toolbox=box
    )
    path = envelope.to_notebook(tmp_path / "a.ipynb")
    copy = Envelope.from_notebook(path, artifacts=box)
    assert [row.text for row in copy.walk.rows] == [row.text for row in envelope.walk.rows]


def test_what_was_filed_travels_in_the_notebook(filed, tmp_path):
    copy = Envelope.from_notebook(filed.to_notebook(tmp_path / "a.ipynb"))
    assert [row.text for row in copy.walk.rows] == [row.text for row in filed.walk.rows]
    assert copy.walk.whole is not None
    assert copy.recording().to_dict() == filed.recording().to_dict()
    again = Envelope.from_notebook(copy.to_notebook(tmp_path / "b.ipynb"))
    assert again.recording().to_dict() == filed.recording().to_dict()
    other = Envelope.from_notebook(tmp_path / "b.ipynb", artifacts=rb.Toolbox())
    assert other.walk.whole is not None


def test_a_notebook_saved_the_ordinary_way_gives_its_answer_back(tmp_path):
    source = """
import runbook_nb as rb
rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
rb.triage([{"host": "zeta", "days": 9}], rules, subject="host", source="a row")
"""
    path = tmp_path / "mine.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    notebooks.refresh(path)
    copy = Envelope.from_notebook(path)
    assert copy.why("zeta").sentence == "old by rule 1 of age v1: days 9 > 7"
    assert "ref" not in copy["result"]["walk"]


def test_an_output_kept_as_lines_or_as_one_text_is_the_same(envelope, tmp_path):
    path = envelope.to_notebook(tmp_path / "a.ipynb")
    document = json.loads(path.read_text(encoding="utf-8"))
    data = document["cells"][1]["outputs"][0]["data"]
    assert isinstance(data["text/html"], list)
    data["text/html"] = "".join(data["text/html"])
    path.write_text(json.dumps(document), encoding="utf-8")
    assert Envelope.from_notebook(path) == envelope


@pytest.mark.parametrize("name", ["a.html", "a.HTM", "a.json"])
def test_pages_and_plain_json_are_read_as_well(envelope, tmp_path, name):
    path = tmp_path / name
    if name == "a.json":
        path.write_text(envelope.to_json(dossier=True), encoding="utf-8")
    else:
        envelope.to_html(path)
    copy = read_envelope(path)
    assert copy == envelope
    assert copy.why("zeta").sentence == envelope.why("zeta").sentence


def test_another_kind_of_file_is_refused_with_the_kinds_there_are(tmp_path):
    with pytest.raises(LoadError, match=r"notebook \(\.ipynb\), a page \(\.html\)"):
        read_envelope(tmp_path / "a.pickle")


# --- several -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(answer):
    """The outputs of two different answers."""
    return [embed(answer([{"host": host, "days": 9}])) for host in "ab"]


def test_of_several_answers_one_has_to_be_named(shown, tmp_path):
    path = notebook(tmp_path / "a.ipynb", "<p>no answer</p>", *shown)
    error = refused(path)
    assert error.code == "several_answers"
    assert "0: triage in output 1 of cell 2; 1: triage in output 1 of cell 3" in str(error)
    found = [Envelope.from_notebook(path, which=n).verdicts[0]["host"] for n in (0, 1, -1, -2)]
    assert found == ["a", "b", "b", "a"]


def test_a_number_too_high_is_refused_with_the_count(shown, tmp_path):
    path = notebook(tmp_path / "a.ipynb", *shown)
    assert "carries 2 answers, so there is no number 2" in str(refused(path, which=2))


def test_one_answer_shown_twice_is_one_answer(shown, tmp_path):
    path = notebook(tmp_path / "a.ipynb", shown[0], "<p></p>", shown[0])
    assert Envelope.from_notebook(path).verdicts[0]["host"] == "a"


def test_a_long_list_of_answers_is_cut_and_says_so(answer, tmp_path):
    many = [embed(answer([{"host": f"h{n}", "days": 9}])) for n in range(12)]
    assert "10 of 12 listed" in str(refused(notebook(tmp_path / "a.ipynb", *many)))


def test_forms_of_other_things_are_no_answers(shown, tmp_path):
    other = comment({"format": "runbook_nb/something/1"})
    path = notebook(tmp_path / "a.ipynb", other, shown[1])
    assert Envelope.from_notebook(path).verdicts[0]["host"] == "b"
    assert refused(notebook(tmp_path / "b.ipynb", other)).code == "not_carried"


# --- damage ------------------------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path):
    assert "No such file" in str(refused(tmp_path / "gone.ipynb"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[]", "is not a notebook"),
        (b"{}", "is not a notebook"),
        (b'{"worksheets": []}', "brought up to date by opening and saving"),
        (b'{"cells": {}}', "is not a notebook"),
        (b'{"cells": [NaN]}', "JSON has no NaN"),
        (b'{"cells": ' + b"[" * 100_000, "is not JSON"),
        (
            b'{"cells": [1, null, {"outputs": 3}, {"outputs": [1, {"data": 2}]}]}',
            "carries no answer",
        ),
        (b'{"cells": [{"outputs": [{"data": {"text/html": [1, "x"]}}]}]}', "carries no answer"),
    ],
)
def test_a_file_that_is_no_notebook_of_ours_is_told_apart(tmp_path, content, words):
    path = tmp_path / "a.ipynb"
    path.write_bytes(content)
    assert words in str(refused(path))


def test_outputs_that_were_cleared_carry_nothing_and_the_reasons_are_named(envelope, tmp_path):
    path = envelope.to_notebook(tmp_path / "a.ipynb")
    document = nbformat.read(path, as_version=4)
    for cell in document.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nbformat.write(document, path)
    error = refused(path)
    assert error.code == "not_carried"
    assert "cleared or sanitised" in str(error)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("sha-256:", "sha-256:0", 1),
        lambda text: text[:-40] + "A" * 37 + "-->",
        lambda text: text[: len(text) // 2] + "-->",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("payload/1", "payload/9"),
        lambda text: text + text,
        lambda text: f"{MARK}1 sha-256:{'0' * 64} e30=-->",
        lambda text: comment([1]),
    ],
)
def test_a_damaged_answer_is_damaged_and_not_absent(shown, tmp_path, spoil):
    error = refused(notebook(tmp_path / "a.ipynb", spoil(shown[0])))
    assert error.code == "damaged"
    assert "output 1 of cell 1" in str(error)


def test_an_answer_of_a_later_version_is_refused_by_its_form(tmp_path):
    later = comment({"format": "runbook_nb/envelope/2", "envelope": {}})
    error = refused(notebook(tmp_path / "a.ipynb", later))
    assert error.code == "unknown_format"
    assert "it reads runbook_nb/envelope/1" in str(error)


FORGED = [
    None,
    [],
    {},
    {"af_coverage": {"checked": []}, "result": 5},
    {
        "af_coverage": {"checked": [], "not_checked": [], "cannot_cover": [], "note": "x"},
        "result": [],
    },
]


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_answer_is_a_load_error(tmp_path, forged):
    html = comment({"format": "runbook_nb/envelope/1", "envelope": forged})
    assert isinstance(refused(notebook(tmp_path / "a.ipynb", html)), LoadError)


@pytest.mark.parametrize(
    "dossier",
    [
        {},
        [],
        {"format": "runbook_nb/dossier/9"},
        {"format": "runbook_nb/dossier/1"},
        {"format": "runbook_nb/dossier/1", "rows": 5, "subjects": "x"},
    ],
)
def test_forged_evidence_is_a_load_error(envelope, tmp_path, dossier):
    wire = {**envelope.to_dict(), "dossier": dossier}
    html = comment({"format": "runbook_nb/envelope/1", "envelope": wire})
    assert isinstance(refused(notebook(tmp_path / "a.ipynb", html)), LoadError)


def test_an_edited_answer_is_read_as_what_it_now_says(envelope, tmp_path):
    """The digest tells damage; whether to believe the words is asked of the evidence."""
    wire = envelope.to_dict()
    wire["result"]["verdicts"][0]["verdict"] = "fresh"
    html = comment({"format": "runbook_nb/envelope/1", "envelope": wire})
    copy = Envelope.from_notebook(notebook(tmp_path / "a.ipynb", html))
    assert copy.verdicts[0]["verdict"] == "fresh"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cells", "outputs", "data", "text/html", "x"]), inner, max_size=3
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_whatever_json_a_file_holds_it_is_read_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any.ipynb"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(LoadError):
        Envelope.from_notebook(path)


def test_reading_a_file_runs_nothing_in_it(tmp_path, shown):
    path = notebook(tmp_path / "a.ipynb", shown[0])
    document = nbformat.read(path, as_version=4)
    document.cells[0].source = f"open({str(tmp_path / 'ran')!r}, 'w')"
    document.metadata["runbook_nb"] = {"format": "os.system('touch ran')"}
    nbformat.write(document, path)
    with reproducible():
        Envelope.from_notebook(path)
    assert not (tmp_path / "ran").exists()


def test_a_file_too_large_to_be_an_answer_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("runbook_nb.share.hydrate.MAX_FILE", 10)
    path = tmp_path / "a.ipynb"
    path.write_text('{"cells": []}')
    assert "13 bytes, 10 at most" in str(refused(path))
