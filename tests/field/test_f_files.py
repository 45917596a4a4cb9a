"""Probes F3, F4 and F5: the notebook file, its validity, and what is left of it without trust."""

from __future__ import annotations

import json
import re
import warnings
from html import unescape

import nbformat
import pytest
from untrusted import sanitized

import runbook_nb as rb

WIDGET = "application/vnd.jupyter.widget-view+json"
SECRET = "zq-7731-kranich"

#: A runbook whose parameter ``who`` is a secret by its schema alone, and that tells of it.
SETUP = """
import runbook_nb as rb

rb.settings.static = False

@rb.tool
def inventory():
    '''Read the inventory.'''
    rows = [{"host": "web-1", "days": 9}, {"host": "web-2", "days": 1}]
    return rb.coverage({"rows": rows}, checked=["the inventory of 2026-01-02"])

rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
each = (
    rb.flow_chart("one", lambda s: s.update(s.args["item"]), id="load")
    .add_decider("Age", rules=rules, id="age")
    .branch("old", lambda s: s.set("verdict", "old"))
    .branch("fresh", lambda s: s.set("verdict", "fresh"))
    .end()
    .build()
)

def procedure(tools):
    async def load(scope):
        if scope.args.get("fail"):
            raise ValueError("cannot log in as " + scope.args["who"])
        scope["note"] = "asked as " + scope.args["who"]
        scope["rows"] = (await tools.call("inventory", {}))["result"]["rows"]

    def collect(scope):
        scope["verdicts"] = [{"host": one.item["host"], **one.value} for one in scope["out"]]
        scope["report"] = {"note": scope["note"], "asked": 1}

    return (
        rb.flow_chart("ages", load, id="load")
        .add_parallel_for_each("Each", id="each", items=lambda s: s["rows"], branch=each,
                               max_branches=9, into="out", subject="host")
        .add_function("Collect", collect, id="collect")
        .build()
    )

ages = rb.runbook_as_tool(
    name="ages", description="Ages.", procedure=procedure, result_kind="verdict/age", rules=rules,
    verdicts={"decider": "Age"}, composed_of=["inventory"],
    input_schema={"type": "object", "required": ["who"], "properties": {
        "who": {"type": "string", "writeOnly": True}, "fail": {"type": "boolean"}}},
)
box = rb.Toolbox([inventory, ages])
"""
CELLS = (
    SETUP,
    f"answer = await box.call('ages', {{'who': '{SECRET}'}})\nanswer",
    "answer.explore()",
    f"form = rb.RunForm(box, 'ages').set(who='{SECRET}')\nform.run()\nform.join()\nform",
    f"print('as', '{SECRET}', flush=True)\nprint({{'password': '{SECRET}'}})",
    f"await box.call('ages', {{'who': '{SECRET}', 'fail': True}})",
    f"import ipywidgets\nipywidgets.VBox([ipywidgets.Password(value='{SECRET}')])",
    "import warnings\nwarnings.warn('old')",
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A notebook run by a kernel and saved as it is: widgets, an error and a secret in it."""
    from runbook_nb.testing.notebooks import execute

    folder = tmp_path_factory.mktemp("saved")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    cells[5].metadata["tags"] = ["raises-exception"]
    cells.append(nbformat.v4.new_markdown_cell(f"Run as `{SECRET}`."))
    document = execute(nbformat.v4.new_notebook(cells=cells), folder)
    path = folder / "mine.ipynb"
    nbformat.write(document, path)
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "widgets kept"])
def shared(request, saved):
    out = saved.with_name(f"shared-{request.param}.ipynb")
    return rb.share_notebook(saved, out, keep_widgets=request.param)


def outputs_of(document):
    return [output for cell in document.cells for output in cell.get("outputs", ())]


def test_the_notebook_that_is_shared_holds_what_the_probes_are_about(saved):
    """Were there no widget, no error and no secret in it, the probes below would prove nothing."""
    text = saved.read_text(encoding="utf-8")
    document = nbformat.reads(text, as_version=4)
    assert text.count(SECRET) > 8
    assert sum(WIDGET in output.get("data", {}) for output in outputs_of(document)) >= 3
    assert [o.ename for o in outputs_of(document) if o.output_type == "error"] == ["ValueError"]
    assert document.metadata.widgets
    assert "ipykernel_" in text


def test_a_secret_given_as_parameter_is_nowhere_in_the_shared_file(shared):
    import base64

    assert SECRET not in shared.text
    for packed in re.findall(r"[A-Za-z0-9+/]{16,}={0,2}", shared.text):
        try:
            unpacked = base64.b64decode(packed)
        except ValueError:
            continue
        assert SECRET.encode() not in unpacked
    assert "kranich" not in shared.text
    assert SECRET not in str(shared)


def test_reopened_trusted_and_without_a_kernel_no_dead_widget_is_left(shared):
    document = nbformat.reads(shared.text, as_version=4)
    whole = document.metadata.get("widgets", {}).get(
        "application/vnd.jupyter.widget-state+json", {"state": {}}
    )
    for output in outputs_of(document):
        view = output.get("data", {}).get(WIDGET)
        assert view is None or view["model_id"] in whole["state"]
        assert view is None or len(output.data) > 1
    for cell in document.cells[2:4]:  # the explorer and the form are still to be read
        assert any("text/html" in output.get("data", {}) for output in cell.outputs)


def test_nothing_tells_of_the_machine_or_the_time(shared, saved):
    assert str(saved.parent) not in shared.text
    assert "ipykernel_" not in shared.text
    assert "site-packages/" not in re.sub(r'"site-packages/|[ (]site-packages/', "", shared.text)
    assert "shell.execute_reply" not in shared.text
    assert "iopub" not in shared.text


def test_f3_it_is_valid_with_todays_warnings_as_errors_and_ids_are_kept(shared, saved):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        document = nbformat.reads(shared.text, as_version=nbformat.NO_CONVERT)
        nbformat.validate(document, relax_add_props=False)
    before = nbformat.read(saved, as_version=nbformat.NO_CONVERT)
    assert [cell.id for cell in document.cells] == [cell.id for cell in before.cells]
    assert document.nbformat_minor == before.nbformat_minor


def test_shared_again_it_is_the_same_file(shared, tmp_path):
    keep = "widgets" in json.loads(shared.text)["metadata"]
    again = rb.share_notebook(shared.written, tmp_path / "again.ipynb", keep_widgets=keep)
    assert again.text == shared.text
    assert again.clean


def test_its_answer_is_read_back_and_is_what_was_answered(shared):
    copy = rb.Envelope.from_notebook(shared.written, which=0)
    assert [(row["host"], row["verdict"]) for row in copy.verdicts] == [
        ("web-1", "old"),
        ("web-2", "fresh"),
    ]
    assert copy.why("web-1").sentence == "old by rule 1 of age v1: days 9 > 7"


def test_f4_untrusted_the_plain_text_has_the_table_and_the_ledger(shared):
    document = nbformat.reads(shared.text, as_version=4)
    text = document.cells[1].outputs[0].data["text/plain"]
    assert "old    web-1" in text
    assert "fresh  web-2" in text
    assert "checked 2 · not checked 0 · cannot cover 0" in text


def test_f4_untrusted_the_walk_has_an_outline_and_a_picture_that_needs_no_trust(shared):
    document = nbformat.reads(shared.text, as_version=4)
    html = document.cells[1].outputs[0].data["text/html"]
    left = sanitized(html)
    assert '<img src="data:image/svg+xml;base64,' in left
    words = unescape(re.sub(r"<[^>]+>", " ", left))
    for step in ("ages", "Each", "Age", "Collect", "web-1"):
        assert step in words


def test_f5_a_card_says_as_of_when_by_which_rules_and_from_how_many_rows(triage):
    """The time is an input that was declared, so that the same call says the same."""
    rules = rb.RuleSet("age", "v7", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    rows = [{"host": "a", "days": 9}, {"host": "b", "days": 1}]
    source = "the inventory as of 2026-01-02, 2 rows"
    envelope = triage(rows, rules, source=source)
    html = unescape(re.sub(r"<[^>]+>", " ", envelope._repr_mimebundle_()[0]["text/html"]))
    assert "age v7" in html
    assert "as of 2026-01-02, 2 rows" in html
    assert "age v7" in str(envelope)
    assert "2 rows" in str(envelope)
    assert source in envelope.to_markdown()
    again = triage(rows, rules, source=source)
    assert again._repr_mimebundle_() == envelope._repr_mimebundle_()
