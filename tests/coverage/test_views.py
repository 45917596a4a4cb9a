"""What an absence looks like, in one line and in full."""

import pytest

from runbook_nb._display import through
from runbook_nb._view import Badge, Data, Facts
from runbook_nb.coverage import Item, absence_view, absent, coverage
from runbook_nb.errors import DefinitionError

ABSENCE = absent(
    "backup jobs of tenant acme",
    checked=[Item("the backup inventory", "0 of 312 jobs carry this tenant")],
    not_checked=["archived tenants"],
    try_instead_tool={"tool": "tenant_list", "why": "tenant names are listed there"},
)


def text_of(value, name="backup_inventory"):
    return through("text", absence_view(value, name))


def runs(view):
    return view.sections[0].parts[0].text


def test_the_text_is_one_line_that_stands_alone():
    assert text_of(ABSENCE) == (
        "Absent backup_inventory · nothing found for: backup jobs of tenant acme · try tenant_list"
    )


def test_a_suggestion_in_words_is_shown_when_no_tool_is_named():
    assert text_of(absent("x", checked=["a"], try_instead="ask for the tenant")).endswith(
        "nothing found for: x · try ask for the tenant"
    )
    assert text_of(absent("x", checked=["a"])).endswith("nothing found for: x")


def test_the_full_view_says_that_it_is_no_verdict_and_asking_again_is_useless():
    card = absence_view(ABSENCE, "backup_inventory")
    assert Badge(word="not a verdict", role="absent") in card.heading
    said = runs(card)
    assert Data(value="tenant_list") in said
    words = "".join(run for run in said if isinstance(run, str))
    assert "backup jobs of tenant acme" in words
    assert "no verdict" in words
    assert "asking again returns the same" in words
    assert "tenant names are listed there" in words


def test_the_full_view_shows_the_ledger():
    ledger = absence_view(ABSENCE, "backup_inventory").sections[1]
    assert ledger.note == "1 checked · 1 not checked · 0 cannot cover"
    assert [part.total for part in ledger.parts if isinstance(part, Facts)] == [1, 1, 0]


def test_a_ledger_around_an_absence_shows_both_boundaries():
    view = absence_view(coverage(ABSENCE, not_checked=["tapes"]), "backup_inventory")
    assert view.sections[1].note == "1 checked · 2 not checked · 0 cannot cover"
    assert "acme" in view.headline


@pytest.mark.parametrize("value", [{}, {"af_absent": 1}, None, "x", coverage(1, checked=["a"])])
def test_only_an_absence_can_be_shown_as_one(value):
    with pytest.raises(DefinitionError) as caught:
        absence_view(value, "backup_inventory")
    assert caught.value.code == "not_an_absence"
    assert "backup_inventory" in str(caught.value)


def test_a_long_or_hostile_absence_stays_on_one_short_line():
    hostile = "\x1b[31m\u202e\n" + "long " * 60
    value = {
        "af_absent": True,
        "checked": ["a"],
        "looked_for": hostile,
        "try_instead_tool": {"tool": hostile, "why": 5},
    }
    text = text_of(value, "inv\x1bentory")
    assert len(text.splitlines()[0]) <= 100
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_foreign_absence_without_a_question_says_so():
    view = absence_view({"af_absent": True, "checked": ["a"], "try_instead_tool": "t"}, "inv")
    assert view.headline == "nothing found for: not stated"
