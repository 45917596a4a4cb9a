"""A notebook that was shared holds no secret, is valid, and stays as it is when shared again."""

import json
import re
import stat
import sys
import warnings

import nbformat
import pytest
from anynotebook import (
    PACKERS,
    SECRETS,
    WRITERS,
    comment,
    documents,
    spellings_of,
    texts_in,
)
from forging import answer as answer_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, DocumentError, LoadError
from runbook_nb.record.redact import Redact, Redactor
from runbook_nb.share.document import written
from runbook_nb.share.hydrate import found_in
from runbook_nb.share.learning import Learning
from runbook_nb.share.machine import Machine
from runbook_nb.share.notebook import reading_source
from runbook_nb.share.sharing import made_safe
from runbook_nb.share.verify import verify_file

#: How a kernel names the code of a cell.
CELL = "/tmp/ipykernel_1/2.py"  # noqa: S108
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"


def safe(document, values=(), *, keep=False):
    """Make a document safe; gives the file's text and what was found."""
    learning = Learning(Redactor(Redact(values=tuple(values))))
    learning.texts.update(values)
    made, found = made_safe(nbformat.from_dict(document), learning, Machine(), keep_widgets=keep)
    return written(made), list(found.all())


def valid(text):
    document = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nbformat.validate(document, relax_add_props=False)
    return document


def changes(found):
    return [one for one in found if one.action in ("removed", "replaced")]


planted = st.builds(
    lambda text, write: write(text), st.sampled_from(SECRETS), st.sampled_from([*WRITERS, *PACKERS])
)
laws = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@laws
@given(documents(planted), st.booleans())
def test_no_secret_is_left_and_sharing_again_changes_nothing(document, keep):
    text, _ = safe(document, SECRETS, keep=keep)
    left = "\n".join(texts_in(json.loads(text)))
    for secret in SECRETS:
        for spelt in spellings_of(secret):
            assert spelt not in left
    shared = valid(text)
    assert shared.nbformat_minor == document["nbformat_minor"]
    again, found = safe(shared, SECRETS, keep=keep)
    assert again == text
    assert not changes(found)
    # Nor does whoever knows of no secret find anything to be changed.
    assert safe(shared, keep=keep)[0] == text


#: Ways in which a notebook gives a secret away, with the name it stands under.
GIVEN_AWAY = (
    lambda text: ("code", f"password = {text!r}"),
    lambda text: ("code", f"login(user='ann', api_key={text!r})"),
    lambda text: ("code", f"%time\nrow = {{'token': {text!r}}}"),
    lambda text: (
        "code",
        f"schema = {{'properties': {{'who': {{'writeOnly': True}}}}}}\nwho={text!r}",
    ),
    lambda text: ("code", f"def f(who: SecretStr = {text!r}): ..."),
    lambda text: ("code", f"rb.triage(rows, rules, redact=rb.Redact(values=[{text!r}]))"),
    lambda text: ("json", {"client_secret": text}),
    lambda text: ("json", {"key": "db.password", "op": "eq", "threshold": text}),
    lambda text: ("json", {"model_name": "PasswordModel", "state": {"value": text}}),
    lambda text: ("html", comment({"format": "x/1", "rows": [{"host": 1, "passwd": text}]})),
    lambda text: ("print", f"{{'password': {text!r}}}"),
    lambda text: ("print", json.dumps({"access_key": text})),
)

#: Texts that are no word of the format, no number and no mask.
secrets = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=3, max_size=12
).map(lambda text: f"zq{text}j")


@laws
@given(secrets, st.sampled_from(GIVEN_AWAY), st.sampled_from([*WRITERS, *PACKERS]))
def test_what_stands_under_the_name_of_a_secret_is_hidden_everywhere(secret, give, write):
    kind, told = give(secret)
    outputs = {
        "json": {"output_type": "display_data", "data": {"application/json": told}, "metadata": {}},
        "html": {"output_type": "display_data", "data": {"text/html": told}, "metadata": {}},
        "print": {"output_type": "stream", "name": "stdout", "text": told},
    }
    cells = [
        nbformat.v4.new_markdown_cell(f"it is ~{write(secret)}~"),
        nbformat.v4.new_code_cell(told if kind == "code" else "1"),
    ]
    cells[1]["outputs"] = [outputs[kind]] if kind in outputs else []
    text, found = safe(nbformat.v4.new_notebook(cells=cells))
    left = "\n".join(texts_in(json.loads(text)))
    for spelt in spellings_of(secret):
        assert spelt not in left
    assert changes(found)


# --- what is done to what ----------------------------------------------------------------------


def notebook(*cells, minor=5, **metadata):
    made = nbformat.v4.new_notebook(cells=list(cells), metadata=metadata)
    made.nbformat_minor = minor
    if minor < 5:
        for cell in made.cells:
            cell.pop("id", None)
    return made


def code(source="1", *outputs, **metadata):
    return nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=metadata)


def display(metadata=None, **data):
    data = {kind.replace("_", "/"): held for kind, held in data.items()}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata or {})


def widget(model="m", **data):
    return nbformat.v4.new_output(
        "display_data", data={WIDGET: {"model_id": model}, **data}, metadata={}
    )


def first(text, cell=0):
    return json.loads(text)["cells"][cell]


def test_a_widget_falls_back_to_what_stands_beside_it():
    text, found = safe(notebook(code("w", widget(**{"text/html": "<p>3</p>", "text/plain": "3"}))))
    assert set(first(text)["outputs"][0]["data"]) == {"text/html", "text/plain"}
    assert [one.what for one in changes(found)] == ["widget, for its static view"]


def test_a_widget_whose_static_view_is_an_output_of_its_own_goes():
    still = display(text_html="<p>3</p>", text_plain="Explorer triage · row 3\nmore")
    said = "Explorer, live while its kernel runs: run the cell to use it"
    for rest in ({}, {"text/plain": said}, {"text/plain": "Explorer triage · row 3"}):
        text, _ = safe(notebook(code("w", still, widget(**rest))))
        assert len(first(text)["outputs"]) == 1


def test_a_widget_with_nothing_beside_it_is_said_in_words():
    text, found = safe(notebook(code("w", widget())))
    (output,) = first(text)["outputs"]
    assert output["data"] == {
        "text/plain": ["A widget stood here. It needs a running kernel, and had no static view."]
    } or "A widget stood here" in str(output["data"]["text/plain"])
    assert [one.what for one in changes(found)] == ["widget that had no static view"]


def model(**state):
    return {"model_name": "M", "model_module": "m", "state": state}


def with_state(**models):
    whole = {"state": models, "version_major": 2, "version_minor": 0}
    return notebook(code("w", widget("a", **{"text/plain": "w"})), widgets={STATE: whole})


def test_a_widget_stays_when_asked_and_all_its_state_is_there():
    whole = with_state(a=model(child="IPY_MODEL_b", token="hunter-2x"), b=model(), c=model())
    text, _ = safe(whole, keep=True)
    assert WIDGET in first(text)["outputs"][0]["data"]
    state = json.loads(text)["metadata"]["widgets"][STATE]["state"]
    assert set(state) == {"a", "b"}
    assert state["a"]["state"]["token"] == "[REDACTED]"
    assert "widgets" not in json.loads(safe(whole)[0])["metadata"]


def test_a_widget_whose_state_is_not_all_there_goes_also_when_asked_for():
    for broken in (
        with_state(a=model(child="IPY_MODEL_b")),
        with_state(b=model()),
        with_state(a={"state": {}}),
    ):
        text, _ = safe(broken, keep=True)
        assert WIDGET not in first(text)["outputs"][0]["data"]
        assert "widgets" not in json.loads(text)["metadata"]


def test_timing_and_machine_leave_the_metadata():
    cell = code("1", execution={"shell.execute_reply": "2026-11-29T10:00:00Z"}, tags=["a"])
    cell.metadata["ExecuteTime"] = {"start_time": "2026-11-29T10:00:00Z"}
    cell.metadata["mine"] = {"at": "2026-11-29 10:00:00", "note": "kept", "in": "/home/ann/x"}
    spec = {"name": "python3", "display_name": "Python 3", "argv": ["/home/ann/bin/python"]}
    made = notebook(cell, kernelspec=spec, vscode={"interpreter": {"hash": "1"}}, title="T")
    text, found = safe(made)
    assert first(text)["metadata"] == {"mine": {"note": "kept"}, "tags": ["a"]}
    assert json.loads(text)["metadata"] == {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "title": "T",
    }
    assert {one.action for one in found} == {"removed"}


def test_folders_go_from_outputs_and_tracebacks_and_stay_in_sources():
    error = nbformat.v4.new_output(
        "error", ename="E", evalue="in /opt/app/x.py", traceback=["File \x1b[32m/home/ann/p/x.py"]
    )
    warned = nbformat.v4.new_output("stream", name="stderr", text=f"{CELL}:3: W")
    said = nbformat.v4.new_output("stream", name="stdout", text="read /home/ann/rows.csv, /etc/x")
    text, found = safe(notebook(code("open('/home/ann/rows.csv')", error, warned, said)))
    cell = first(text)
    assert cell["source"] == ["open('/home/ann/rows.csv')"]
    failed, warning, read = cell["outputs"]
    assert failed["evalue"] == "in …/x.py"
    assert failed["traceback"] == ["File \x1b[32m…/x.py"]
    assert warning["text"] == ["<cell>:3: W"]
    assert read["text"] == ["read ~/rows.csv, /etc/x"]
    kept = [one for one in found if one.action == "kept"]
    assert [(one.what, one.place) for one in kept] == [
        ("folder or account of a machine", "the source of cell 1")
    ]


def test_a_secret_cut_in_two_by_how_a_stream_was_sent_is_found():
    parts = [
        nbformat.v4.new_output("stream", name="stdout", text=part) for part in ("hun", "ter-2")
    ]
    text, _ = safe(notebook(code("1", *parts)), ["hunter-2"])
    assert [output["text"] for output in first(text)["outputs"]] == [["[REDACTED]"]]


def test_a_secret_coloured_in_a_traceback_or_a_page_is_found():
    error = nbformat.v4.new_output(
        "error", ename="E", evalue="", traceback=["x \x1b[33mhunter\x1b[39m-\x1b[34m2\x1b[39m y"]
    )
    page = display(text_html="<b>hunter</b>-<i>2</i>")
    text, _ = safe(notebook(code("1", error, page)), ["hunter-2"])
    failed, shown = first(text)["outputs"]
    assert "hunter" not in str(failed)
    assert "".join(shown["data"]["text/html"]) == "<b>[REDACTED]</b><i></i>"


def test_ids_are_kept_and_made_of_content_where_they_are_wanting():
    made = notebook(code("1"), code("2"), code("3"))
    made.cells[0].id = made.cells[1].id = "one"
    del made.cells[2]["id"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text, found = safe(made)
    names = [cell["id"] for cell in json.loads(text)["cells"]]
    assert names[0] == "one"
    assert len(set(names)) == 3
    assert [one.place for one in changes(found)] == ["cell 2", "cell 3"]
    assert names == [cell["id"] for cell in json.loads(safe(made)[0])["cells"]]


@pytest.mark.parametrize("minor", range(6))
def test_it_stays_at_its_own_minor_version(minor):
    text, _ = safe(notebook(code("1"), minor=minor))
    shared = valid(text)
    assert shared.nbformat_minor == minor
    assert ("id" in shared.cells[0]) == (minor == 5)


def test_what_cannot_be_looked_into_is_said():
    pdf = nbformat.v4.new_output(
        "display_data",
        data={"application/pdf": "JVBERi0xLjQKJcOkw7zDtsOfCjIgMCBvYmo=", "text/plain": "x"},
    )
    _, found = safe(notebook(code("1", pdf)))
    assert [(one.action, one.what) for one in found] == [
        ("not checked", "application/pdf, which is packed")
    ]


def test_packed_content_that_holds_a_secret_goes():
    import base64

    held = base64.b64encode(b"%PDF-1.4 (hunter-2) more of it").decode()
    pdf = nbformat.v4.new_output("display_data", data={"application/pdf": held, "text/plain": "x"})
    text, _ = safe(notebook(code("1", pdf)), ["hunter-2"])
    assert set(first(text)["outputs"][0]["data"]) == {"text/plain"}


# --- answers -----------------------------------------------------------------------------------


@pytest.fixture
def share(tmp_path):
    def share(document, **more):
        path = tmp_path / "mine.ipynb"
        nbformat.write(document, path)
        return rb.share_notebook(path, **more)

    return share


def test_an_ordinary_answer_gets_into_the_metadata_and_is_read_back(envelope, share, tmp_path):
    data = envelope._repr_mimebundle_()[0]
    shown = nbformat.v4.new_output("display_data", data=data)
    shared = share(notebook(code("answer", shown)))
    assert shared.answers == 1
    assert [one.carrier for one in found_in(shared.written)] == ["metadata", "comment"]
    copy = rb.Envelope.from_notebook(shared.written)
    assert copy.why("zeta").sentence == envelope.why("zeta").sentence


def test_an_answer_that_was_written_as_a_notebook_keeps_all_it_filed(filed, tmp_path):
    shared = rb.share_notebook(filed.to_notebook(tmp_path / "a.ipynb"))
    copy = rb.Envelope.from_notebook(shared.written)
    assert copy == filed
    assert copy.walk.whole is not None
    assert copy.recording().to_dict() == filed.recording().to_dict()
    assert rb.share_notebook(shared.written, in_place=True).text == shared.text
    told = [one for one in shared.findings if one.what == "moment and call of filing"]
    assert {(one.action, one.place, one.times) for one in told} == {
        ("removed", f"the {name} filed in output 1 of cell 2", 1)
        for name in ("walk", "whole walk", "recording")
    }


def test_an_answer_stays_an_answer_when_something_in_it_is_hidden(answer, share):
    rows = [
        {"host": "a", "days": 9, "token": "hunter-2x"},
        {"host": "b", "days": 1, "token": "hunter-3x"},
    ]
    rules = rb.RuleSet(
        "age",
        "v1",
        [rb.Rule({"days": {"gt": 7}}, "old"), rb.Rule({"token": {"eq": "hunter-9x"}}, "bad")],
        rb.Default("fresh"),
    )
    envelope = rb.triage(rows, rules, subject="host", source="2 rows", columns=["token"])
    shown = nbformat.v4.new_output("display_data", data=envelope._repr_mimebundle_()[0])
    shared = share(notebook(code("answer", shown)))
    left = "\n".join(texts_in(json.loads(shared.text)))
    assert "hunter" not in left
    copy = rb.Envelope.from_notebook(shared.written)
    assert [row["token"] for row in copy.verdicts] == ["[REDACTED]"] * 2
    assert "token [REDACTED] = [REDACTED]" in copy.why("b").view().headline or "[REDACTED]" in str(
        copy.why("b")
    )
    assert [row["verdict"] for row in copy.verdicts] == ["old", "fresh"]


@pytest.fixture
def hiding():
    """An answer whose rules and rows hold secrets, of which one is too short to be looked for."""
    rules = rb.RuleSet(
        "age",
        "v1",
        [rb.Rule({"pin": {"eq": 4711}}, "bad"), rb.Rule({"token": {"eq": "hunter-9x"}}, "odd")],
        rb.Default("fresh"),
    )
    rows = [
        {"host": "a", "pin": 4711, "token": "hunter-2x"},
        {"host": "b", "pin": 1, "token": "hunter-9x"},
    ]
    return rb.triage(
        rows, rules, subject="host", source="2 rows", columns=["pin", "token"], toolbox=rb.Toolbox()
    )


@pytest.mark.parametrize("exported", [False, True])
def test_a_card_is_drawn_anew_where_its_answer_hides_something(hiding, share, tmp_path, exported):
    if exported:
        shared = rb.share_notebook(hiding.to_notebook(tmp_path / "a.ipynb"))
    else:
        data = hiding._repr_mimebundle_()[0]
        shared = share(notebook(code("x", nbformat.v4.new_output("display_data", data=data))))
    left = "\n".join(texts_in(json.loads(shared.text)))
    assert "hunter" not in left
    assert not re.search(r"\b4711\b", left)
    for found in verify_file(shared.written):
        assert not [str(claim) for claim in found.claims if claim.status == "contradicted"]
    assert rb.share_notebook(shared.written, in_place=True).text == shared.text


@pytest.mark.parametrize("exported", [False, True])
def test_where_nothing_is_hidden_all_that_was_confirmed_still_is(
    envelope, share, tmp_path, exported
):
    path = tmp_path / "mine.ipynb"
    if exported:
        envelope.to_notebook(path)
    else:
        data = envelope._repr_mimebundle_()[0]
        shown = nbformat.v4.new_output("display_data", data=data)
        nbformat.write(notebook(code("x", shown)), path)
    before = verify_file(path)
    after = verify_file(rb.share_notebook(path).written)
    for one, other in zip(before, after, strict=True):
        confirmed = {claim.id for claim in one.claims if claim.status == "confirmed"}
        assert confirmed <= {claim.id for claim in other.claims if claim.status == "confirmed"}
        assert not [claim for claim in other.claims if claim.status == "contradicted"]


def test_a_card_that_is_not_known_to_be_that_of_its_answer_is_looked_through_as_text(hiding, share):
    data = hiding._repr_mimebundle_()[0]
    data["text/html"] = data["text/html"].replace("fresh", "edited").replace("odd", "edited")
    shared = share(notebook(code("x", nbformat.v4.new_output("display_data", data=data))))
    assert "edited" in shared.text
    assert "hunter" not in shared.text


def test_a_compared_value_that_stands_under_no_name_is_hidden_by_that_of_its_rule(share):
    rules = rb.RuleSet(
        "r", "v1", [rb.Rule({"pin": {"eq": 99}}, "odd"), rb.Rule({"db.token": {"eq": "k"}}, "bad")]
    )
    rows = [{"host": "a", "pin": 4711, "db": {"token": "q7w"}}]
    envelope = rb.triage(rows, rules, subject="host", source="a row", columns=[])
    shown = nbformat.v4.new_output("display_data", data=envelope._repr_mimebundle_()[0])
    assert envelope.dossier.to_dict()["subjects"][0]["decision"]["values"] == [4711, "q7w"]
    shared = share(notebook(code("answer", shown)))
    copy = rb.Envelope.from_notebook(shared.written)
    (subject,) = copy.dossier.to_dict()["subjects"]
    assert subject["decision"]["values"] == ["[REDACTED]", "[REDACTED]"]
    assert copy.dossier.to_dict()["rule_sets"][0]["hidden"] == ["db.token", "pin"]
    assert "value or subject that a secret's name means" in str(shared)


@pytest.mark.parametrize("columns", [["host"], ["days"]])
def test_a_short_subject_goes_with_the_name_of_its_column(share, tmp_path, columns):
    rules = rb.RuleSet("r", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    rows = [{"host": "db-1", "days": 9}, {"host": "db-2", "days": 1}]
    envelope = rb.triage(rows, rules, subject="host", source="two rows", columns=columns)
    envelope.to_notebook(tmp_path / "a.ipynb")
    shared = rb.share_notebook(tmp_path / "a.ipynb", redact={"keys": ["host"]})
    copy = rb.Envelope.from_notebook(shared.written)
    assert "db-1" not in copy.to_json(dossier=True) + shared.written.read_text()
    subjects = copy.dossier.to_dict()["subjects"]
    assert [one["subject"] for one in subjects] == ["[REDACTED]", "[REDACTED]"]
    assert not any(one.counts["contradicted"] for one in rb.verify_file(shared.written))


@pytest.mark.parametrize("key", ["host", "verdict", "days", "tier"])
@pytest.mark.parametrize("name", ["short way", "long way", "ranked rows", "one side"])
def test_whatever_column_is_hidden_nothing_is_contradicted_afterwards(tmp_path, name, key):
    path = answer_of(name).to_notebook(tmp_path / "a.ipynb")
    shared = rb.share_notebook(path, redact={"keys": [key]})
    for found in rb.verify_file(shared.written):
        assert [claim.sentence for claim in found.contradicted] == []
    assert rb.share_notebook(shared.written, in_place=True).text == shared.text


def test_a_short_word_goes_out_of_the_text_above_its_answer(tmp_path):
    """It is too short to be looked for; that text was written from the answer, and is anew."""
    path = answer_of("short way").to_notebook(tmp_path / "a.ipynb")
    assert "1 fresh, 2 old" in headline(path)
    shared = rb.share_notebook(path, redact={"keys": ["verdict"]})
    assert "(5 \\[REDACTED\\])" in headline(shared.written)
    assert "fresh" not in headline(shared.written)
    assert "text above an answer, written anew" in [one.what for one in shared.findings]


def test_a_text_of_the_authors_own_keeps_a_short_word_and_that_is_said(tmp_path):
    path = answer_of("short way").to_notebook(tmp_path / "a.ipynb")
    document = json.loads(path.read_text("utf-8"))
    document["cells"][0]["source"] = "# web-1 is new"
    path.write_text(json.dumps(document), encoding="utf-8")
    shared = rb.share_notebook(path, redact={"keys": ["host"]})
    assert headline(shared.written) == "# web-1 is new"
    [said] = [one for one in shared.findings if one.what.startswith("hidden value of under 6")]
    assert (said.action, said.times) == ("not checked", 5)
    assert said.what in str(shared)


def headline(path):
    return nbformat.read(path, as_version=4).cells[0].source.split("\n")[0]


def test_evidence_that_cannot_be_read_goes(share):
    wire = {"af_coverage": {}, "result": {}, "dossier": {"subjects": [{"decision": {}}]}}
    held = comment({"format": "runbook_nb/envelope/1", "envelope": wire})
    shared = share(notebook(code("answer", display(text_html=f"<p>x{held}</p>"))))
    assert "payload" not in shared.text
    assert shared.answers == 0


def test_a_damaged_machine_readable_form_goes(share):
    broken = display(text_html="<p>x<!--runbook_nb:payload/1 sha-256:0 aHVudGVyLTI=--></p>")
    shared = share(notebook(code("answer", broken)))
    assert "payload" not in shared.text
    assert "".join(first(shared.text)["outputs"][0]["data"]["text/html"]) == "<p>x</p>"


def test_live_answers_lend_what_their_policies_know(share):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    rows = [{"host": "a", "days": 9, "who": "kranich-77"}]
    envelope = rb.triage(
        rows, rules, subject="host", source="a row", redact=rb.Redact(keys=["who"])
    )
    shared = share(notebook(code("print('kranich-77')")), answers=[envelope])
    assert "kranich" not in shared.text


# --- the file ----------------------------------------------------------------------------------


def test_it_is_written_beside_the_one_it_was_made_of(share, tmp_path):
    shared = share(notebook(code("1")))
    assert shared.written == tmp_path / "mine.shared.ipynb"
    with pytest.raises(DefinitionError, match="is the notebook itself") as refused:
        rb.share_notebook(shared.written)
    assert refused.value.code == "would_overwrite"
    again = rb.share_notebook(shared.written, in_place=True)
    assert again.written == shared.written
    assert shared.written.read_text(encoding="utf-8") == shared.text
    assert shared.text.endswith("}\n")
    assert "\r" not in shared.text
    parsed = json.loads(shared.text)
    assert shared.text == json.dumps(parsed, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def test_checking_writes_nothing(share, tmp_path):
    shared = share(notebook(code("password = 'hunter-2'")), dry=True)
    assert shared.written is None
    assert not shared.clean
    assert [path.name for path in tmp_path.iterdir()] == ["mine.ipynb"]
    assert share(notebook(code("1")), dry=True).clean


def test_a_name_is_a_secret_only_as_long_as_guessing_is_wanted(share):
    made = notebook(code("password = 'hunter-2'; stash = 'eichel-77'"))
    assert "hunter-2" in share(made, guess=False).text
    assert "eichel" not in share(made, redact={"keys": ["stash"]}).text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not JSON"),
        ("[]", "cannot be read as a notebook"),
        ('{"nbformat": 3, "nbformat_minor": 0, "worksheets": []}', "follows nbformat 3.0"),
        ('{"nbformat": 4, "nbformat_minor": 99, "cells": [], "metadata": {}}', "follows nbformat"),
        ('{"nbformat": 4, "nbformat_minor": 4, "cells": 1, "metadata": {}}', "cannot be read"),
        ('{"nbformat": 4, "nbformat_minor": 4, "cells": [{}], "metadata": {}}', "cannot be read"),
        (
            '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": '
            '[{"cell_type": "code", "source": "", "metadata": {}}]}',
            "not a valid notebook",
        ),
        ('{"nbformat": 4, "nbformat_minor": 5, "cells": [1], "metadata": {}}', "cannot be read"),
    ],
)
def test_what_is_no_notebook_of_nbformat_4_is_refused(tmp_path, content, words):
    path = tmp_path / "a.ipynb"
    path.write_text(content)
    with pytest.raises((LoadError, DocumentError), match=words):
        rb.share_notebook(path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.ipynb"]


def test_one_text_is_no_list_of_values(share):
    with pytest.raises(DefinitionError, match="a text, not a list"):
        share(notebook(), values="hunter-2")


def test_a_value_that_is_part_of_the_placeholder_is_said_not_to_be_looked_for(share):
    shared = share(notebook(code("1")), values=["RED"])
    assert [one.action for one in shared.findings] == ["not checked"]
    assert "RED" not in str(shared)


def test_the_report_names_no_secret(share):
    data = {"application/json": {"hunter-2x_token": "abcdef-7", "token": {"hunter-2x": "x-12345"}}}
    made = notebook(code("1", nbformat.v4.new_output("display_data", data=data)))
    shared = share(made, values=["hunter-2x"])
    assert "hunter" not in str(shared)
    assert "hunter" not in json.dumps(shared.to_dict())


# --- the file it is read out of ----------------------------------------------------------------


@pytest.fixture
def answered(tmp_path):
    """Write a notebook that reads its answer back out of its own file."""
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    answer = rb.triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    return answer.to_notebook(tmp_path / "hosts.ipynb")


def read_by(path):
    return nbformat.read(path, as_version=4).cells[1].source


def test_the_cell_that_reads_the_answer_names_the_file_it_is_in(answered):
    shared = rb.share_notebook(answered)
    assert read_by(shared.written) == reading_source("hosts.shared.ipynb")
    [said] = [one for one in shared.findings if "name of the file" in one.what]
    assert (said.action, said.place, said.times) == ("replaced", "the source of cell 2", 1)
    again = rb.share_notebook(shared.written, in_place=True)
    assert again.written == shared.written
    assert again.text == shared.text
    assert again.clean
    [checked] = rb.verify_file(shared.written)
    assert checked.ok


def test_a_name_that_is_given_is_the_one_it_is_read_by(answered, tmp_path):
    (tmp_path / "there").mkdir()
    shared = rb.share_notebook(answered, tmp_path / "there" / "it's.ipynb")
    assert read_by(shared.written) == reading_source("it's.ipynb")


def test_where_nothing_is_written_the_file_keeps_its_name(answered):
    assert "hosts.ipynb" in rb.share_notebook(answered, dry=True).text


@pytest.mark.parametrize("change", ["envelope = 3", "# mine"])
def test_what_an_author_made_of_it_stays(answered, change):
    document = nbformat.read(answered, as_version=4)
    document.cells[1].source += f"\n{change}"
    nbformat.write(document, answered)
    assert "from_notebook('hosts.ipynb')" in read_by(rb.share_notebook(answered).written)


def test_in_an_author_s_own_notebook_another_file_may_be_read(tmp_path):
    cell = nbformat.v4.new_code_cell(reading_source("hosts.ipynb"))
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "mine.ipynb")
    assert "from_notebook('hosts.ipynb')" in rb.share_notebook(tmp_path / "mine.ipynb").text


def test_a_name_that_is_hidden_is_not_told_again(answered):
    assert "hosts" not in rb.share_notebook(answered, values=["hosts"]).text


@pytest.mark.skipif(sys.platform == "win32", reason="files have no mode there")
def test_the_copy_of_a_private_notebook_is_private(tmp_path):
    path = tmp_path / "mine.ipynb"
    nbformat.write(notebook(code("1")), path)
    path.chmod(0o600)
    assert stat.S_IMODE(rb.share_notebook(path).written.stat().st_mode) == 0o600


# --- the form of a runbook ---------------------------------------------------------------------


def form_saved(path):
    """A notebook saved with a form: an ordinary field holds what its runbook's policy hides."""
    from ipywidgets import Widget

    @rb.tool
    def ages(cluster: str, token: str = "", days: int = 7):
        """Read ages."""
        return [cluster, days]

    form = rb.RunForm(rb.Toolbox([ages]), "ages")
    form.set(cluster="prod-eu-77", token="hunter-2x", days=471_100).run()
    assert form.join().status == "finished"
    shown = nbformat.v4.new_output("display_data", data=form._repr_mimebundle_()[0])
    whole = Widget.get_manager_state(drop_defaults=False)  # as a front end saves it
    printed = nbformat.v4.new_output("stream", name="stdout", text="asked prod-eu-77\n")
    made = notebook(
        code("form", shown), code("print(form.result)", printed), widgets={STATE: whole}
    )
    nbformat.write(nbformat.from_dict(json.loads(json.dumps(made, default=str))), path)
    return form


@pytest.mark.parametrize("keep", [False, True])
def test_what_was_typed_into_a_form_is_hidden_in_its_saved_state(tmp_path, keep):
    form = form_saved(tmp_path / "a.ipynb")
    before = (tmp_path / "a.ipynb").read_text("utf-8")
    assert before.count("prod-eu-77") >= 2
    assert form.model_id in before
    policy = {"keys": ["cluster", "days"]}
    shared = rb.share_notebook(tmp_path / "a.ipynb", redact=policy, keep_widgets=keep)
    for secret in ("prod-eu-77", "hunter-2x", "471100"):
        assert not re.search(rf"(?<!\w){secret}(?!\w)", shared.text), secret
    held = json.loads(shared.text)["metadata"].get("widgets")
    assert (held is not None) is keep
    if held is not None:
        entries = held[STATE]["state"][form.model_id]["state"]["entries"]
        assert entries["cluster"] == entries["days"] == "[REDACTED]"
    assert rb.share_notebook(shared.written, in_place=True, keep_widgets=keep).text == shared.text


def test_a_value_too_short_to_be_looked_for_is_counted():
    shown = nbformat.v4.new_output("stream", name="stdout", text="asked q7w")
    text, found = safe(notebook(code("login(password='q7w')", shown)))
    assert "asked q7w" in text
    assert "password='[REDACTED]'" in text
    [said] = [one for one in found if one.action == "not checked"]
    assert said.what == "hidden value of under 6 characters, outside of answers"
