"""A card is drawn anew only where it is known to be that of its answer."""

import nbformat
import pytest

import runbook_nb as rb
from runbook_nb.runbook.payload import envelope_payload
from runbook_nb.share.redrawing import drawn_anew, explained_anew


@pytest.fixture
def output(envelope):
    return nbformat.v4.new_output("display_data", data=envelope._repr_mimebundle_()[0])


@pytest.fixture
def other(answer):
    return envelope_payload(answer([{"host": "omega", "days": 30}, {"host": "psi", "days": 2}]))


def test_both_forms_show_the_other_answer(envelope, output, other):
    made = drawn_anew(output, envelope_payload(envelope), other)
    assert set(made) == {"text/plain", "text/html"}
    assert "omega" in made["text/plain"]
    assert "zeta" not in made["text/plain"] + made["text/html"]


def test_a_form_that_is_not_what_the_answer_looks_like_is_left(envelope, output, other):
    output["data"]["text/html"] = output["data"]["text/html"].replace("zeta", "edited")
    before = rb.settings.current
    assert set(drawn_anew(output, envelope_payload(envelope), other)) == {"text/plain"}
    assert rb.settings.current == before


@pytest.mark.parametrize("damaged", [{}, {"envelope": 5}, {"envelope": {"af_coverage": {}}}])
def test_whatever_an_answer_holds_nothing_is_raised(output, damaged):
    assert drawn_anew(output, damaged, damaged) == {}
    assert explained_anew({"text/plain": "Decision x"}, [(damaged, damaged)]) == {}


def test_an_explanation_is_that_of_the_same_row(envelope, other):
    data = envelope.why("alpha")._repr_mimebundle_()[0]
    made = explained_anew(data, [(envelope_payload(envelope), other)])
    assert "psi" in made["text/plain"]
    assert "alpha" not in "".join(made.values())


def test_what_explains_no_row_of_it_is_left(envelope, other, output):
    altered = [(envelope_payload(envelope), other)]
    assert explained_anew({"text/plain": "Decision of somebody else"}, altered) == {}
    assert explained_anew(output["data"], altered) == {}
