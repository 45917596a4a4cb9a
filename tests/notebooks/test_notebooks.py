"""The notebooks of the project: executed, readable everywhere, and the same on every machine."""

import base64
import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from runbook_nb import Envelope, verify_file
from runbook_nb.render.embed import MARK, read_embedded
from runbook_nb.render.layouts import ENGINES
from runbook_nb.share.document import canonical, written
from runbook_nb.testing import sanitize_file
from runbook_nb.testing.notebooks import patterns, refresh

FOLDER = Path(__file__).parents[2] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
LOADED = (
    []
    if list(entry_points(group="pytest11", name="runbook_nb"))
    else ["-p", "runbook_nb.testing.plugin"]
)
each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)

#: How many cells show the reader's own machine: those alone are run and not compared.
OWN = {"13_my_environment": 2}

#: What differs from run to run or from machine to machine has no place in a stored output.
VOLATILE = {
    "a reference": r"art_[A-Za-z0-9]{22}",
    "a call id": r"call_[A-Za-z0-9]{6,}",
    "an address": r"0x[0-9a-f]{6,}",
    "a time of day": r"\d\d:\d\d:\d\d|\dT\d\d:",
    "a folder of this machine": r"/(?:tmp|home|root|work|Users|usr)/",
    "a uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-",
}


def read(path):
    return nbformat.read(path, as_version=4)


def outputs(path):
    return [output for cell in read(path).cells for output in cell.get("outputs", ())]


def texts(path):
    """Yield every text a reader of the file can come by, what is encoded in it decoded."""
    for output in outputs(path):
        if "text" in output:
            yield output.text
        for text in output.get("data", {}).values():
            yield re.sub(r"[A-Za-z0-9+/=]{200,}", "", text)
            for picture in re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text):
                yield base64.b64decode(picture).decode()
            if MARK in text:
                yield json.dumps(read_embedded(text), ensure_ascii=False)


def test_there_are_notebooks():
    assert [path.stem for path in PATHS][:2] == ["00_first_run", "01_certificates"]


# --- the files ---------------------------------------------------------------------------------


@each
def test_f3_the_file_is_valid_and_in_canonical_form(path):
    assert written(canonical(read(path))) == path.read_text(encoding="utf-8")


@each
def test_every_cell_was_run_in_order_and_none_failed(path):
    code = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(path) if output.output_type == "error"]


@each
def test_no_cell_is_left_out_of_the_comparison_that_is_the_same_on_every_machine(path):
    cells = read(path).cells
    tagged = [cell for cell in cells if cell.metadata.get("tags")]
    assert all(cell.metadata["tags"] == ["nbval-ignore-output"] for cell in tagged)
    assert len(tagged) == OWN.get(path.stem, 0)
    assert not [cell for cell in cells if "NBVAL" in cell.source.upper()]


def test_a_document_about_the_readers_machine_says_so_and_asserts_what_holds_everywhere():
    for name in OWN:
        cells = read(FOLDER / f"{name}.ipynb").cells
        assert "marked ✱" in cells[0].source
        last = next(n for n, cell in enumerate(cells) if cell.metadata.get("tags"))
        after = [cell.source for cell in cells[last + 1 :] if cell.cell_type == "code"]
        assert sum(source.count("\nassert ") for source in after) >= 5


@each
def test_it_explains_itself_between_the_cells(path):
    document = read(path)
    assert document.cells[0].cell_type == "markdown"
    assert document.cells[0].source.startswith("# ")
    assert sum(cell.cell_type == "markdown" for cell in document.cells) >= 8


# --- what the outputs hold ---------------------------------------------------------------------


@each
def test_g1_no_output_holds_what_differs_from_run_to_run(path):
    found = [
        f"{name}: {match[0]}"
        for text in texts(path)
        for name, pattern in VOLATILE.items()
        for match in re.finditer(pattern, text)
    ]
    assert found == []


@each
def test_f4_every_output_has_a_plain_text_and_no_output_needs_trust(path):
    for output in outputs(path):
        data = output.get("data")
        if data is None:
            continue
        assert set(data) <= {"text/plain", "text/html"}
        assert data["text/plain"].strip()
        html = data.get("text/html", "")
        assert not re.search(r"<(?:script|svg|iframe|object|embed|form)\b", html)
        assert not re.search(r"\s(?:on\w+|href|srcset)=", re.sub(r'alt="[^"]*"', "", html))
        assert all(
            src.startswith("data:image/svg+xml;base64,")
            for src in re.findall(r'src="([^"]*)"', html)
        )


@each
def test_every_flowchart_says_in_words_what_it_shows(path):
    pictures = [
        picture
        for output in outputs(path)
        for picture in re.findall(r"<img [^>]*>", output.get("data", {}).get("text/html", ""))
    ]
    assert pictures
    assert all(re.search(r'alt="[^"]{20,}"', picture) for picture in pictures)


def test_f5_an_answer_states_its_date_its_rules_its_source_and_how_many():
    envelope = next(
        output.data["text/html"]
        for output in outputs(FOLDER / "01_certificates.ipynb")
        if "Envelope root_certificates" in output.get("data", {}).get("text/plain", "")
    )
    words = " ".join(re.sub(r"<[^>]*>", " ", envelope).split())
    for said in (
        "as_of 2026-11-29",
        "rules root-attention v1",
        "certifi 2026.10.19, 117 certificates",
        "117 subjects",
    ):
        assert said in words


def test_the_answers_can_be_read_back_out_of_the_files():
    first = Envelope.from_notebook(FOLDER / "00_first_run.ipynb", which=1)
    assert first.why("cluster-b").sentence.endswith("age_days 30 > 7 days")
    certificates = Envelope.from_notebook(FOLDER / "01_certificates.ipynb", which=0)
    assert certificates.verdicts.counts() == {"watch": 5, "note": 3, "keep": 109}


# --- the stories of those who write, read, teach and check ------------------------------------


#: A file is read where large ones are not shown.
MAX_STORY = 300_000
STORIES = (
    "04_iterate_rules",
    "05_explore",
    "06_playbooks",
    "07_incident_by_hand",
    "10_on_call",
    "11_cannot_say",
    "12_late_flights",
    "13_my_environment",
    "14_patch_deadlines",
    "15_hand_to_an_agent",
    "90_share",
)
story = pytest.mark.parametrize("name", STORIES)


def cards(name, begins):
    """Give the HTML cards of a notebook whose text begins so, as words."""
    return [
        " ".join(re.sub(r"<style>.*?</style>|<[^>]*>", " ", output.data["text/html"]).split())
        for output in outputs(FOLDER / f"{name}.ipynb")
        if output.get("data", {}).get("text/plain", "").startswith(begins)
    ]


@each
def test_no_file_holds_a_widget_or_its_state(path):
    document = read(path)
    assert "widgets" not in document.metadata
    assert "model_id" not in path.read_text(encoding="utf-8")


@story
def test_a_story_is_small_enough_to_be_previewed(name):
    assert len((FOLDER / f"{name}.ipynb").read_bytes()) <= MAX_STORY


@story
def test_a_story_ends_with_an_exercise_whose_answer_is_asserted(name):
    *_, exercise, words, answer = read(FOLDER / f"{name}.ipynb").cells
    assert exercise.source.startswith("## Your turn\n")
    assert words.source.startswith("### An answer\n")
    assert answer.cell_type == "code"
    assert re.search(r"^assert ", answer.source, re.MULTILINE)


@story
def test_a_cell_of_a_story_has_one_idea_and_words_before_it(name):
    cells = read(FOLDER / f"{name}.ipynb").cells
    assert cells[1].cell_type == "code"
    assert sum(a.cell_type == b.cell_type == "code" for a, b in pairwise(cells)) <= len(cells) // 8
    assert all(len(cell.source) <= 700 for cell in cells if cell.cell_type == "markdown")


def test_without_a_kernel_the_lab_shows_what_changes_and_why():
    (card,) = cards("04_iterate_rules", "RuleLab")
    for said in (
        "1 verdict changes",
        "LGA 2013-12-10",
        "rule 1 limit raised, 25 -&gt; 26",
        "On the edge",
    ):
        assert said in card, card


def test_without_a_kernel_an_explorer_shows_verdicts_ledger_and_walk():
    (card,) = cards("05_explore", "Explorer")
    for said in ("117 subjects", "certifi 2026.10.19, 117 certificates", "Walk"):
        assert said in card, card


def test_without_a_kernel_a_form_shows_its_fields_and_its_answer():
    (card,) = cards("05_explore", "RunForm")
    for said in ("as_of", "2026-11-29", "D-TRUST Root Class 3 CA 2 2009"):
        assert said in card, card


def test_the_first_line_at_night_counts_what_could_not_be_judged():
    (form,) = cards("10_on_call", "RunForm")
    assert "1 field, 1 problem" in form
    (card,) = cards("10_on_call", "Envelope")
    for said in ("eu-1", "1 critical", "1 declined", "mon-2: backup-1, backup-2"):
        assert said in card, card


def test_the_answer_of_the_night_is_read_back_out_of_its_notebook():
    answer = Envelope.from_notebook(FOLDER / "10_on_call.ipynb", which=0)
    assert answer.verdicts.counts() == {"critical": 1, "warning": 2, "declined": 1, "ok": 7}


def test_under_a_playbook_nothing_is_paid_that_was_not_approved():
    told = list(texts(FOLDER / "06_playbooks.ipynb"))
    assert any("waiting for an approval at step 3 of 5" in text for text in told)
    (report,) = cards("06_playbooks", "Report")
    for said in ("Completed, with deviations", "refused 4 times"):
        assert said in report, report
    answer = Envelope.from_notebook(FOLDER / "06_playbooks.ipynb", which=0)
    assert "step 'approve': nobody came to it" in [one.what for one in answer.ledger.not_checked]


def test_a_person_is_refused_stuck_and_goes_on_and_the_report_says_so():
    refused = cards("07_incident_by_hand", "Step containment · refused, not run")
    assert len(refused) == 1
    plans = cards("07_incident_by_hand", "Plan")
    assert "Stuck at step 4 of 6" in plans[-1], plans[-1]
    (again,) = cards("07_incident_by_hand", "Step detection · closed already")
    assert "not run again" in again
    (form,) = cards("07_incident_by_hand", "PlaybookForm")
    assert "waits for an approval" in form
    (report,) = cards("07_incident_by_hand", "Report")
    assert "Incomplete" in report


@each
def test_nothing_that_a_notebook_shows_is_contradicted_by_the_answers_it_carries(path):
    found = verify_file(path)
    assert [claim.sentence for one in found for claim in one.contradicted] == []


def test_the_answer_that_was_handed_on_is_confirmed_in_the_notebook_that_tells_of_it():
    path = FOLDER / "90_share.ipynb"
    found = verify_file(path)
    assert found
    assert all(one.ok for one in found), [c.sentence for one in found for c in one.contradicted]


def test_a_question_below_all_data_is_declined_and_named():
    answer = Envelope.from_notebook(FOLDER / "11_cannot_say.ipynb", which=0)
    assert answer.tool == "launch_question"
    assert answer.why("31 °F").verdict == "declined"
    assert "no data in this range" in answer.why("31 °F").sentence


def test_every_flight_is_in_one_of_four_counts_and_a_cap_is_told():
    capped, whole, *_ = (" ".join(card.split()) for card in cards("12_late_flights", "Envelope"))
    assert "792 not reached" in capped, capped[:600]
    for said in ("336 776 subjects", "247 246 on-time", "8 255 never-departed", "80 100 late"):
        assert said in whole, whole[:600]


# --- running them again ------------------------------------------------------------------------


@pytest.mark.skipif(not ENGINES["pure"].available(), reason="graphviz-pure is not here")
@each
def test_run_again_they_give_the_same_bytes(path):
    done = refresh(path, save=False)
    assert done.differences == ()
    assert not done.changed


#: What is run under each engine besides the one of the documents: all of them where nothing is
#: drawn, and of those that draw the ones with every kind of drawing.
UNDER = {
    "none": [FOLDER],
    "dot": [FOLDER / f"{name}.ipynb" for name in ("00_first_run", "02_flow", "05_explore")],
}


def strictly(layout):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LOADED]
    command += ["--nbval", "--nbval-current-env", *map(str, UNDER[layout])]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RUNBOOK_NB_")}
    environment["RUNBOOK_NB_LAYOUT"] = layout
    return subprocess.run(
        command, cwd=FOLDER.parent, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("layout", UNDER)
def test_g1_nbval_passes_strictly_whatever_draws_the_flowcharts(layout):
    if layout != "none" and not ENGINES[layout].available():
        pytest.skip(f"{layout} is not here")
    done = strictly(layout)
    assert done.returncode == 0, done.stdout[-4000:]
    assert re.search(r"^\d+ passed", done.stdout.splitlines()[-1])


def test_g1_one_pattern_and_no_more_is_left_out_of_comparisons():
    (pattern,) = patterns()
    assert pattern[1] == "<figure/>"
    comments = [line for line in sanitize_file().read_text().splitlines() if line.startswith("#")]
    assert len(comments) >= 3  # each pattern gives its reason


def test_the_pattern_touches_our_own_figures_only():
    ((pattern, instead),) = patterns()
    foreign = '<figure><img src="data:image/svg+xml;base64,AAAA"></figure>'
    assert pattern.sub(instead, foreign) == foreign
    ours = next(
        output.data["text/html"]
        for output in outputs(PATHS[0])
        if "<figure" in output.get("data", {}).get("text/html", "")
    )
    left = pattern.sub(instead, ours)
    assert "<img" not in left
    assert left.count("<figure/>") == ours.count("<figure ")
    assert len(left) > 3_000  # and all the rest is compared
