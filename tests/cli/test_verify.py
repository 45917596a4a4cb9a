"""The command checks answers in files, and its exit status says what it found."""

import json

import pytest

import runbook_nb as rb
from runbook_nb.cli.main import CONTRADICTED, NO_ANSWER, NOT_CARRIED, main
from runbook_nb.testing import reproducible

RULES = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))


@pytest.fixture
def call(capsys, monkeypatch):
    """Run the command; gives status, what it printed, and what it complained of."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["verify", *map(str, arguments)])
        out = capsys.readouterr()
        return left.value.code or 0, out.out, out.err

    return call


@pytest.fixture
def files(tmp_path):
    """An answer as a notebook, the same with one digit changed, and a notebook without one."""
    with reproducible():
        envelope = rb.triage(
            [{"host": "a", "days": 9}, {"host": "b", "days": 2}],
            RULES,
            subject="host",
            source="two rows",
        )
        good = envelope.to_notebook(tmp_path / "good.ipynb")
    forged = tmp_path / "forged.ipynb"
    text, told = good.read_text("utf-8"), "days 9 &gt; 7"
    *before, explained = text.rpartition(">Path<")  # the path of one row says it, too
    forged.write_text("".join(before).replace(told, "days 8 &gt; 7") + explained, "utf-8")
    empty = tmp_path / "empty.ipynb"
    empty.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "utf-8")
    return {"good": good, "forged": forged, "empty": empty, "none": tmp_path / "none.ipynb"}


def test_where_nothing_is_contradicted_the_status_is_0(call, files):
    status, out, _ = call(files["good"])
    assert status == 0
    assert "good.ipynb: triage in output 1 of cell 2" in out
    assert ", 0 contradicted, " in out
    assert "because it is declared by the author or a tool" in out
    assert "counts.rows_total" not in out  # what is confirmed is only counted
    assert out.splitlines()[-1] == "nothing is contradicted"


def test_nothing_runs_on_at_the_width_of_a_terminal(call, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call(files["forged"], "--all")
    assert max(map(len, out.splitlines())) <= 80
    words = [line for line in out.splitlines() if line.startswith("cannot be checked, because")]
    assert words
    assert len(words) == len(set(words))  # a reason is told once, above all it holds for


def test_the_last_line_is_about_all_files_and_not_there_where_none_was_checked(call, files):
    _, out, _ = call(files["forged"], files["good"], files["empty"])
    assert out.splitlines()[-1] == "2 claims are contradicted"
    _, out, _ = call(files["empty"])
    assert "nothing is contradicted" not in out


def test_what_is_wrong_in_itself_is_said_in_one_line(call, files):
    text = files["good"].read_text("utf-8")
    files["forged"].write_text(text.replace('\\"days\\":9', '\\"days\\":8', 1), "utf-8")
    status, out, _ = call(files["forged"])
    assert status == CONTRADICTED
    [told] = [one for one in out.split("\n\n") if one.startswith("contradicted  form.metadata")]
    assert "was changed after it was written; it differs from the copy in its HTML at" in told
    assert "expected" not in told
    assert out.splitlines()[-1] == "1 claim is contradicted"


def test_one_flipped_digit_is_contradicted_and_named(call, files):
    status, out, _ = call(files["forged"])
    assert status == CONTRADICTED == 1
    paragraphs = out.split("\n\n")
    [told] = [one for one in paragraphs if "output[2].text/html.Verdicts" in one]
    lines = told.splitlines()
    assert lines[0] == "contradicted  output[2].text/html.Verdicts"
    assert [line.split()[0] for line in lines[1:]] == [
        "claimed",
        "found",
        "expected",
        "by",
        "where",
    ]
    assert "days 8 > 7" in lines[2]
    assert "days 9 > 7" in lines[3]
    assert lines[5] == "  where     output 1 of cell 2"
    assert out.splitlines()[-1] == "2 claims are contradicted"


def test_a_file_without_an_answer_is_not_carried(call, files):
    status, out, _ = call(files["empty"])
    assert status == NOT_CARRIED == 4
    assert "not carried" in out


def test_a_file_that_cannot_be_read_says_so(call, files):
    status, out, err = call(files["none"])
    assert status == NO_ANSWER
    assert "cannot be read" in err
    assert out == ""


def test_of_several_files_the_worst_decides_and_all_are_told_of(call, files):
    status, out, err = call(files["empty"], files["none"], files["forged"], files["good"])
    assert status == CONTRADICTED
    assert [name for name in ("empty", "forged", "good") if f"{name}.ipynb" in out] == [
        "empty",
        "forged",
        "good",
    ]
    assert "none.ipynb" in err
    assert call(files["good"], files["empty"], files["none"])[0] == NO_ANSWER
    assert call(files["good"], files["empty"])[0] == NOT_CARRIED


def test_all_claims_are_listed_when_asked_for(call, files):
    _, out, _ = call(files["good"], "--all")
    assert "counts.rows_total" in out
    assert "by the dossier's own count of its rows" in out


def test_json_is_written_when_asked_for(call, files):
    status, out, err = call(files["forged"], files["empty"], files["none"], "--json")
    assert status == CONTRADICTED
    forged, empty, none = json.loads(out)
    assert (forged["status"], empty["status"], none["status"]) == (
        "contradicted",
        "not carried",
        "unreadable",
    )
    [answer] = forged["answers"]
    wrong = [claim["id"] for claim in answer["claims"] if claim["status"] == "contradicted"]
    assert "output[2].text/html.Verdicts" in wrong
    assert err


def test_rules_from_elsewhere_are_asked_for(call, files, tmp_path):
    rules = RULES.save(tmp_path / "age.yaml")
    status, out, _ = call(files["good"], "--rules", rules, "--all")
    assert status == 0
    assert "rules.given[age v1]" in out
    other = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 8}}, "old")], rb.Default("fresh"))
    status, out, _ = call(files["good"], "--rules", other.save(tmp_path / "other.yaml"))
    assert status == CONTRADICTED
    assert "rules.given[age v1]" in out


def test_rules_that_did_not_judge_are_contradicted_whatever_they_are_called(call, files, tmp_path):
    for number, (name, version) in enumerate([("age", "v2"), ("other", "v1")]):
        rules = rb.RuleSet.from_dict({**RULES.to_dict(), "name": name, "version": version})
        asked = rules.save(tmp_path / f"{number}.yaml")
        status, out, _ = call(files["good"], "--rules", asked)
        assert status == CONTRADICTED
        [told] = [one for one in out.split("\n\n") if one.startswith("contradicted  rules.given")]
        assert told.splitlines()[0] == f"contradicted  rules.given[{name} {version}]"
        assert told.splitlines()[2:4] == ["  found     age v1", f"  expected  {name} {version}"]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_tickets_are_redeemed_in_a_store(call, kind, tmp_path):
    place = tmp_path / "kept"
    store = rb.FileArtifacts(place) if kind == "folder" else rb.SqliteArtifacts(place)
    box = rb.Toolbox([], artifacts=store, session=rb.Session("s1"))
    rows = [{"host": "a", "days": 9}, {"host": "b", "days": 2}]
    envelope = rb.triage(rows, RULES, subject="host", source="two rows", toolbox=box)
    file = tmp_path / "a.json"
    file.write_text(envelope.to_json(dossier=True), "utf-8")
    _, out, _ = call(file)
    assert "no store is at hand" in out
    status, out, _ = call(file, "--store", place, "--session", "s1", "--all")
    assert status == 0
    assert "ticket.walk.rows: " in out
    assert "no store is at hand" not in out
    _, out, _ = call(file, "--store", place)
    assert "the store does not hold it" in out
    if kind == "folder":
        [payload] = [one for one in (place / "payloads").rglob("art_*") if one.is_file()]
        payload.write_bytes(payload.read_bytes()[:-1] + b"x")
        status, out, _ = call(file, "--store", place, "--session", "s1")
        assert status == CONTRADICTED
        assert "contradicted  ticket.walk" in out
        assert "the walk in the store is not what was filed" in out


def test_where_there_is_no_store_none_is_made(call, files, tmp_path):
    status, _, err = call(files["good"], "--store", tmp_path / "none")
    assert status == NO_ANSWER
    assert "there is no store at" in err
    assert not (tmp_path / "none").exists()


def test_a_recording_from_elsewhere_is_asked_for(call, files, tmp_path):
    with reproducible():
        envelope = rb.triage(
            [{"host": "a", "days": 9}, {"host": "b", "days": 2}],
            RULES,
            subject="host",
            source="two rows",
        )
    recording = tmp_path / "run.json"
    recording.write_text(envelope.recording().to_json(), encoding="utf-8")
    status, out, _ = call(files["good"], "--recording", recording, "--all")
    assert status == 0
    assert "record.structure" in out
