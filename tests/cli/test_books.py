"""Listing runbooks and running one: what is printed where, and what the command exits with."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb import Envelope
from runbook_nb.examples import certificates, shipped

AS_OF = "as_of=2026-11-29"
BOOK = ("run", "certificates", "--arg", AS_OF)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of somebody's own beside the caller."""

    def write(body):
        (tmp_path / "mine.py").write_text(f"import runbook_nb as rb\n\n{body}")
        monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
        sys.modules.pop("mine", None)

    yield write
    sys.modules.pop("mine", None)


RUNBOOK = """
def procedure(tools):
    def load(scope):
        {body}
    return rb.flow_chart("ages", load, id="load").build()

box = rb.Toolbox([rb.runbook_as_tool(
    name="ages", description="How old.", procedure=procedure, result_kind="verdict/age",
    rules={{"name": "age", "version": "v1"}})])
"""

OWN_WORDS = """
def procedure(tools):
    def load(scope):
        scope.set("verdicts", [{"host": "a", "verdict": "calm"}])
    return rb.flow_chart("ages", load, id="load").build()

box = rb.Toolbox([rb.runbook_as_tool(
    name="ages", description="How old.", procedure=procedure, result_kind="verdict/age",
    rules={"name": "age", "version": "v1"},
    verdicts=rb.Verdicts(decider="nobody", rank=("page", "calm")))])
"""


# --- list --------------------------------------------------------------------------------------


def test_every_installed_runbook_is_listed_with_what_it_is_for(call):
    status, out, err = call("list")
    assert (status, err) == (0, "")
    for book in shipped():
        assert any(line.split()[:1] == [book.name] for line in out.splitlines())


def test_the_list_is_json_when_asked(call):
    status, out, _ = call("list", "--json")
    told = json.loads(out)
    assert (status, told["format"]) == (0, "runbook_nb/runbooks/1")
    first = told["runbooks"][0]
    assert (first["name"], first["package"], first["error"]) == ("certificates", "runbook-nb", None)
    assert [tool["name"] for tool in first["tools"]] == ["root_certificates"]
    assert first["tools"][0]["input_schema"]["properties"]["as_of"]["type"] == "string"


def test_a_named_one_shows_what_it_asks_for(call):
    status, out, _ = call("list", "certificates")
    assert status == 0
    assert "as_of  string: The date to judge at" in out


def test_one_that_is_broken_is_listed_as_broken_and_hides_no_other(call, own):
    own("raise OSError('no such share')")
    status, out, err = call("list", "mine:box", "certificates")
    assert status == 3
    assert "Tool root_certificates" in out
    assert "mine:box: 'mine' cannot be imported: OSError: no such share" in err


def test_a_name_that_is_not_there_is_wrong_usage(call):
    status, out, err = call("list", "certificate")
    assert (status, out) == (2, "")
    assert "did you mean 'certificates'" in err


# --- run ---------------------------------------------------------------------------------------


def test_an_answer_is_printed_as_text_and_nothing_else_is(call):
    status, out, err = call(*BOOK)
    assert (status, err) == (0, "")
    assert out == f"{certificates.run('2026-11-29')}\n"


def test_it_is_json_with_its_evidence_when_asked(call):
    status, out, err = call(*BOOK, "--json")
    assert (status, err) == (0, "")
    copy = Envelope.from_dict(json.loads(out))
    assert copy.why("ACCVRAIZ1").sentence.startswith("note by rule 9")


def test_what_was_written_is_said_on_the_other_stream(call):
    status, out, err = call(*BOOK, "--json", "--out", "there/a.ipynb", "--out", "a.csv")
    assert status == 0
    json.loads(out)
    assert [line.split(" (")[0] for line in err.splitlines()] == [
        "wrote there/a.ipynb",
        "wrote a.csv",
    ]
    assert Envelope.from_notebook("there/a.ipynb").verdicts.counts()["watch"] == 5


def test_progress_keeps_to_the_stream_of_errors(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "runbook_nb", *BOOK, "--json"],
        cwd=tmp_path,
        env={**os.environ, "RUNBOOK_NB_PROGRESS": "terminal"},
        check=True,
        capture_output=True,
    )
    assert Envelope.from_dict(json.loads(done.stdout)).tool == "root_certificates"


def test_arguments_come_from_a_file_and_the_line_wins(call):
    Path("args.json").write_text('{"as_of": "2030-01-01"}')
    assert call("run", "certificates", "--args", "args.json", "--arg", AS_OF) == call(*BOOK)


def test_arguments_come_from_standard_input(call, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO('{"as_of": "2026-11-29"}'))
    assert call("run", "certificates", "--args", "-") == call(*BOOK)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--arg", "as_off=2026-11-29"], "did you mean 'as_of'?; see runbook-nb list certificates"),
        (["--arg", "as_of=7"], "as_of"),
        (["--arg", "as_of"], "write it as name=value"),
        (["--args", "absent.json"], "--args: FileNotFoundError"),
        (["--args", "list.json"], "--args: it holds no JSON object"),
        (["--args", "broken.json"], "--args: JSONDecodeError"),
        (["--args", "twice.json"], "--args: ValueError: the key 'as_of' is there twice"),
        (["--out", "a.xlsx"], "'a.xlsx' does not say what to write"),
        (["--tool", "root_certificate"], "did you mean 'root_certificates'"),
        (["--to", "paper"], "--to"),
    ],
)
def test_wrong_usage_is_one_line_and_runs_nothing(call, monkeypatch, arguments, words):
    Path("list.json").write_text("[]")
    Path("broken.json").write_text("{")
    Path("twice.json").write_text('{"as_of": "2030-01-01", "as_of": "2031-01-01"}')
    ran = []
    monkeypatch.setattr("runbook_nb.runbook.bridge.run_call", lambda *_: ran.append(1))
    status, out, err = call("run", "certificates", *arguments)
    assert (status, out, ran) == (2, "", [])
    assert err.count("\n") == 1
    assert words in err


def test_a_verdict_that_must_not_be_there_is_status_1(call):
    status, _, err = call(*BOOK, "--fail-on", "watch", "--fail-on", "remove")
    assert (status, err) == (1, "runbook-nb: 5 of 117 rows: watch\n")
    assert call(*BOOK, "--fail-on", "remove", "--fail-on", "declined")[0] == 0


def test_a_verdict_that_no_rule_gives_is_never_taken_for_one_that_was_not_met(call):
    status, _, err = call(*BOOK, "--fail-on", "remvoe")
    assert status == 1
    assert (
        err == "runbook-nb: no row can be 'remvoe' by what this runbook declares; did you mean "
        "'remove'?\n"
    )


def test_words_that_a_ranking_declares_may_be_asked_for(call, own):
    own(OWN_WORDS)
    assert call("run", "mine:box", "--fail-on", "page")[0] == 0
    assert call("run", "mine:box", "--fail-on", "calm")[0] == 1
    status, _, err = call("run", "mine:box", "--fail-on", "paeg")
    assert (status, err.count("did you mean 'page'?")) == (1, 1)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_that_fails_shows_how_far_it_came_beside_the_answer_there_is_not(call, own, form):
    own(RUNBOOK.format(body="raise OSError('no such share')"))
    status, out, err = call("run", "mine:box", "--to", form)
    assert (status, out) == (3, "")
    assert err.startswith("Run ages failed at load")
    assert err.endswith("runbook-nb: OSError: no such share\n")
    assert "Traceback" not in err


def test_arguments_refused_within_a_run_are_a_run_that_failed(call, own):
    own(
        "@rb.tool\ndef inner(n: int) -> list:\n    'Inner.'\n    return []\n\n"
        + RUNBOOK.format(body="return scope.tools.call('inner', dict(n='x'))")
        .replace("def load", "async def load")
        .replace("return scope.tools", "return await tools")
        .replace("Toolbox([", "Toolbox([inner, ")
    )
    status, out, err = call("run", "mine:box")
    assert (status, out) == (3, "")
    assert err.startswith("Run ages failed at load")
    assert "tool 'inner' cannot take these arguments: n: must be integer" in err


def test_a_module_that_leaves_is_no_answer(call, own):
    own("raise SystemExit(0)")
    status, out, err = call("run", "mine:box")
    assert (status, out) == (2, "")
    assert "'mine' cannot be imported: SystemExit: 0" in err
    own("def box():\n    raise SystemExit")
    status, _, err = call("list", "certificates", "mine:box")
    assert (status, err.count("made no toolbox: SystemExit")) == (3, 1)


def test_nothing_found_is_status_3_and_said(call, own):
    own(
        "@rb.tool\ndef ages():\n    'Ages.'\n"
        "    return rb.absent('ages of hosts', checked=['the inventory'])\n\n"
        "box = rb.Toolbox([ages])\n"
    )
    status, out, err = call("run", "mine:box", "--tool", "ages")
    assert (status, out) == (3, "")
    assert "nothing found for: ages of hosts" in err
    status, out, _ = call("run", "mine:box", "--tool", "ages", "--json")
    assert status == 3
    assert json.loads(out) == rb.absent("ages of hosts", checked=["the inventory"])


def test_a_tool_that_is_no_runbook_gives_its_value(call, own):
    own(
        "@rb.tool\ndef ages(days: int = 7):\n    'Ages.'\n    return {'days': days}\n\n"
        "box = rb.Toolbox([ages])\n"
    )
    status, out, err = call("run", "mine:box", "--tool", "ages", "--arg", "days=9")
    assert (status, json.loads(out), err) == (0, {"days": 9}, "")


def test_what_is_no_answer_cannot_be_written_or_judged(call, own, tmp_path):
    own("@rb.tool\ndef ages(days: int = 7):\n    'Ages.'\n    return {'days': days}\n")
    for more in (("--out", "a.json"), ("--fail-on", "old"), ("--to", "html")):
        status, out, err = call("run", "mine:ages", "--tool", "ages", *more)
        assert (status, out) == (3, "")
        assert f"'ages' gave no answer of a runbook, so {more[0]} has nothing to go by" in err
    assert not (tmp_path / "a.json").exists()


def test_where_there_is_no_runbook_its_tools_are_what_is_meant(call, own):
    own("@rb.tool\ndef ages(days: int = 7):\n    'Ages.'\n    return {'days': days}\n")
    assert call("list", "mine:ages") == (
        0,
        "Tool ages · Ages.\nArguments (1)\n  days  integer\n",
        "",
    )
    assert json.loads(call("run", "mine:ages", "--arg", "days=9")[1]) == {"days": 9}


def test_an_input_that_is_nearly_declared_is_refused_also_where_any_may_be_given(call, own):
    own(
        "def procedure(tools):\n"
        "    return rb.flow_chart('ages', lambda scope: None, id='load').build()\n\n"
        "schema = {'type': 'object', 'properties': {'prefix': {'type': 'string'}}}\n"
        "box = rb.Toolbox([rb.runbook_as_tool(name='ages', description='How old.',\n"
        "    procedure=procedure, result_kind='verdict/age', input_schema=schema,\n"
        "    rules={'name': 'age', 'version': 'v1'})])\n"
    )
    status, out, err = call("run", "mine:box", "--arg", "prefx=web")
    assert (status, out) == (2, "")
    assert "'ages' declares no input 'prefx'; did you mean 'prefix'?" in err
    assert call("run", "mine:box", "--arg", "region=eu")[0] == 0


def test_the_file_of_the_page_runs_as_the_page_shows(call):
    page = (Path(__file__).parents[2] / "docs/howto/use-the-command-line.md").read_text()
    (source,) = re.findall(r"```\{code-block\} python\n:caption: hosts.py\n\n(.*?)```", page, re.S)
    (command, shown) = re.search(r"\$ runbook-nb (run hosts:.*?)\n(.*?)```", page, re.S).groups()
    Path("hosts.py").write_text(source)
    status, out, err = call(*command.split())
    sys.modules.pop("hosts", None)
    assert (status, out + err) == (1, shown)


def test_an_argument_that_is_given_twice_is_not_guessed(call):
    status, out, err = call(*BOOK, "--arg", "as_of=2020-01-01")
    assert (status, out) == (2, "")
    assert "'as_of' is given twice" in err


def test_a_file_that_cannot_be_written_is_named_as_it_was_asked_for(call, tmp_path):
    (tmp_path / "file").write_text("")
    status, out, err = call(*BOOK, "--out", "file/answer.json")
    assert status == 3
    assert out.startswith("Envelope")
    assert "'file/answer.json' cannot be written: " in err
