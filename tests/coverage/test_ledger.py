"""The ledger: never an item twice, wire keys in order, three lists and a sentence on show."""

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb._display import through
from runbook_nb._frozen import freeze
from runbook_nb._json import to_wire
from runbook_nb._view import Facts, Prose
from runbook_nb.coverage import COVERAGE_NOTE, Item, Ledger, coverage
from runbook_nb.coverage.ledger import gap_line
from runbook_nb.errors import DefinitionError

words = st.text(st.sampled_from("abc \n|"), min_size=1, max_size=4).filter(str.strip)
item_lists = st.lists(st.builds(Item, words, st.none() | words), max_size=5)
ledgers = st.builds(
    Ledger,
    checked=item_lists,
    not_checked=item_lists,
    cannot_cover=item_lists,
    sentence=st.none() | words,
)


def lists_of(ledger):
    return ledger.checked, ledger.not_checked, ledger.cannot_cover


def test_a_ledger_takes_texts_mappings_and_items():
    ledger = Ledger(checked=["a", {"what": "b"}], not_checked=(Item("c"),))
    assert lists_of(ledger) == ((Item("a"), Item("b")), (Item("c"),), ())


def test_a_ledger_never_holds_an_item_twice():
    assert Ledger(checked=["a", " a ", {"what": "a"}, Item("a", "w")]).checked == (
        Item("a"),
        Item("a", "w"),
    )


def test_a_ledger_may_hold_ground_out_of_reach_without_a_why():
    assert Ledger(cannot_cover=["z"]).cannot_cover == (Item("z"),)


def test_a_ledger_refuses_a_text_as_list_and_names_the_list():
    with pytest.raises(DefinitionError, match="not_checked must be a list"):
        Ledger(not_checked="abc")


def test_a_ledger_cannot_be_changed_and_is_kept_by_reference_in_a_record():
    ledger = Ledger(checked=["a"])
    with pytest.raises(AttributeError):
        ledger.checked = ()
    assert freeze({"coverage": ledger})["coverage"] is ledger


def test_equal_ledgers_are_equal_and_hash_alike():
    assert Ledger(checked=["a"]) == Ledger(checked=[Item("a")])
    assert hash(Ledger(checked=["a"])) == hash(Ledger(checked=[Item("a")]))
    assert Ledger(checked=["a"]) != Ledger(not_checked=["a"])


def test_a_ledger_can_be_sent_to_a_worker_and_copied():
    ledger = Ledger(checked=["a"], sentence="Ran.")
    assert pickle.loads(pickle.dumps(ledger)) == copy.deepcopy(ledger) == ledger  # noqa: S301


def test_case_119_wire_keys_come_in_order_and_empty_lists_are_left_out():
    full = Ledger(checked=["a"], not_checked=["b"], cannot_cover=["c"], sentence="Ran.")
    assert list(full.to_dict()) == ["checked", "not_checked", "cannot_cover", "note", "sentence"]
    assert list(Ledger(checked=["a"], sentence="Ran.").to_dict()) == ["checked", "note", "sentence"]
    assert Ledger().to_dict() == {"note": COVERAGE_NOTE}


def test_the_wire_form_is_plain_json_and_is_what_answers_are_written_with():
    ledger = Ledger(checked=[Item("a", "b")], sentence="Ran.")
    assert json.loads(json.dumps(ledger.to_dict())) == ledger.to_dict()
    assert to_wire({"coverage": ledger}) == {"coverage": ledger.to_dict()}


@trials(deadline=None)
@given(ledgers)
def test_a_ledger_reads_back_from_its_own_wire_form(ledger):
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger
    assert Ledger.from_dict(ledger) is ledger


def test_a_ledger_reads_the_block_that_coverage_writes():
    block = coverage(1, checked=["a"], cannot_cover=[Item("b", "c")])["af_coverage"]
    assert Ledger.from_dict(block) == Ledger(checked=["a"], cannot_cover=[Item("b", "c")])


@pytest.mark.parametrize("value", [None, [], "checked", 5, object(), {"checked": "abc"}])
def test_reading_what_is_no_ledger_gives_an_empty_one(value):
    assert Ledger.from_dict(value) == Ledger()


@pytest.mark.parametrize("sentence", [None, 5, "", "  ", ["Ran."]])
def test_a_sentence_that_says_nothing_is_none(sentence):
    assert Ledger.from_dict({"sentence": sentence}).sentence is None


@trials(deadline=None)
@given(ledgers, ledgers, ledgers)
def test_merging_is_associative_and_idempotent(one, two, three):
    assert one.merge(two).merge(three) == one.merge(two, three)
    assert one.merge(one) == one == one.merge() == one.merge(Ledger())
    assert set(one.merge(two).checked) == {*one.checked, *two.checked}


def test_merging_keeps_the_first_sentence():
    assert Ledger(sentence="One.").merge(Ledger(sentence="Two.")).sentence == "One."
    assert Ledger().merge(Ledger(sentence="Two.")).sentence is None


def test_adding_gives_a_new_ledger_and_leaves_the_old_one():
    old = Ledger(checked=["a"], sentence="Ran.")
    new = old.add(checked=["a", "b"], not_checked=["c"], cannot_cover=[Item("d", "e")])
    assert lists_of(old) == ((Item("a"),), (), ())
    assert lists_of(new) == ((Item("a"), Item("b")), (Item("c"),), (Item("d", "e"),))
    assert new.sentence == "Ran."


def test_a_sentence_can_be_set_afterwards():
    ledger = Ledger(checked=["a"])
    assert ledger.with_sentence("Ran.").sentence == "Ran."
    assert ledger.with_sentence("Ran.").checked == ledger.checked


# --- views -------------------------------------------------------------------------------------

LEDGER = Ledger(
    checked=["the inventory", "the procedure"],
    not_checked=[Item("archived tenants", "closed")],
    cannot_cover=[Item("why a job was paused", "no change record is kept")],
    sentence="Ran 'triage'.",
)


def test_the_text_line_is_the_three_counts():
    assert repr(LEDGER) == "<Ledger · checked 2 · not checked 1 · cannot cover 1>"
    assert " · ".join(LEDGER.counts) == "checked 2 · not checked 1 · cannot cover 1"


def test_the_view_has_the_sentence_and_three_lists_with_true_counts():
    (section,) = LEDGER.view().sections
    sentence, *lists = section.parts
    assert sentence == Prose(text="Ran 'triage'.", tone="dim")
    assert [(facts.style, facts.label, facts.total) for facts in lists] == [
        ("checked", "Checked", 2),
        ("not_checked", "Not checked", 1),
        ("cannot_cover", "Cannot cover", 1),
    ]
    assert all(isinstance(facts, Facts) and facts.total == len(facts.items) for facts in lists)
    assert (lists[1].items[0].term, lists[1].items[0].detail) == ("archived tenants", "closed")
    assert lists[0].items[0].detail is None


def test_the_section_counts_in_words_and_stays_out_of_text_unless_asked():
    section = LEDGER.section()
    assert (section.label, section.note) == (
        "Coverage",
        "2 checked · 1 not checked · 1 cannot cover",
    )
    assert not section.in_text
    assert LEDGER.section(in_text=True).in_text


def test_an_empty_list_is_shown_as_none_declared():
    text = str(Ledger(checked=["a"]))
    assert "Not checked (0)" in text
    assert "none declared" in text


def test_an_empty_ledger_says_so_in_a_plain_sentence():
    text = str(Ledger())
    assert "no coverage is declared" in text
    assert "checked 0" not in text
    assert Ledger().is_empty
    assert isinstance(Ledger().section().parts[0], Prose)
    assert not Ledger(not_checked=["a"]).is_empty


def test_without_a_sentence_there_is_no_empty_paragraph():
    parts = Ledger(checked=["a"]).section().parts
    assert all(isinstance(part, Facts) for part in parts)


def test_a_gap_is_a_line_that_is_cut_visibly_and_shows_no_control_character():
    assert gap_line("a", 0) == "not checked: a"
    assert gap_line("a" * 99, 1) == f"not checked: {'a' * 69}…; and 1 more"
    assert gap_line("a\nb", 0) == "not checked: a\\nb"


def test_the_remark_names_the_first_gap_and_counts_the_rest():
    assert Ledger(checked=["a"]).remark is None
    assert Ledger(not_checked=["a"]).remark == "not checked: a"
    assert Ledger(not_checked=["a", "b", "c"]).remark == "not checked: a; and 2 more"
    assert len(Ledger(not_checked=["x" * 500]).remark) < 100


def test_the_view_shows_hostile_words_as_what_they_are():
    hostile = "a\x1b[31m\u202e\nb<img onerror=x>"
    ledger = Ledger(checked=[Item(hostile, hostile)], not_checked=[hostile], sentence=hostile)
    for shown in (str(ledger), through("markdown", ledger.view()), ledger.remark):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "\\x1b[31m\\u202e\\nb" in str(ledger)
    assert ledger.checked[0].what == hostile


def test_the_same_ledger_always_gives_the_same_text():
    again = Ledger.from_dict(LEDGER.to_dict())
    assert str(again) == str(LEDGER)
    assert str(LEDGER).splitlines() == [
        "Ledger · checked 2 · not checked 1 · cannot cover 1",
        "  Ran 'triage'.",
        "Checked (2)",
        "  the inventory",
        "  the procedure",
        "Not checked (1)",
        "  archived tenants  closed",
        "Cannot cover (1)",
        "  why a job was paused  no change record is kept",
    ]


def test_a_ledger_that_is_read_holds_no_item_twice():
    said = {"checked": ["a", {"what": "a"}, "b"], "sentence": " "}
    read = Ledger.from_dict(said)
    assert read == Ledger(checked=["a", "b"])
    assert hash(read) == hash(Ledger(checked=["a", "b"]))
    other = read.with_sentence("Ran.")
    assert (other, other.with_sentence(None)) == (Ledger(checked=["a", "b"], sentence="Ran."), read)
    assert other.with_sentence("Ran.") is other
