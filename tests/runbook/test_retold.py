"""The walk of a copy is told again only where the dossier tells all of it, and then as it was."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import ANSWERS, answer, changed, written

import runbook_nb as rb
from runbook_nb.record.outline import walk_flow
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.retold import retold_flow

#: What a dossier does not tell: failures after a decision, charts in branches, questions.
UNTOLD = {"gaps", "nested", "resumed", "functions"}


def retold(document):
    return retold_flow(Ground(rb.Envelope.from_dict(document)))


@pytest.mark.parametrize("name", sorted(set(ANSWERS) - UNTOLD))
def test_the_walk_of_a_run_that_went_straight_through_is_told_as_it_was(name):
    envelope = answer(name)
    assert retold(written(envelope)) == walk_flow(envelope.run.walk)


@pytest.mark.parametrize("name", sorted(UNTOLD))
def test_of_any_other_run_nothing_is_guessed(name):
    assert retold(written(answer(name))) is None


def test_without_a_dossier_there_is_nothing_to_tell_it_from():
    envelope = answer("short way")
    assert retold({name: envelope[name] for name in ("af_coverage", "result")}) is None


def test_where_the_steps_do_not_add_up_something_else_happened():
    document = written(answer("short way"))
    place = ("result", "walk", "steps_executed")
    assert retold(document) is not None
    assert retold(changed(document, place, 24)) is None


def test_a_copy_that_holds_a_part_tells_no_walk():
    document = written(answer("short way"))
    del document["dossier"]["subjects"][4]
    assert retold(document) is None
