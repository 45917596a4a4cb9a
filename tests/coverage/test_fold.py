"""Folding: inner answers, the chart's own state and the bridge, in that order."""

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb._frozen import freeze
from runbook_nb.coverage import (
    ANSWER_BLOCK_ITEMS,
    Item,
    Ledger,
    absent,
    answer_block,
    compose_ledger,
    coverage,
    fold_declared,
    read_declared_coverage,
    with_answer_block,
)

# --- inner -------------------------------------------------------------------------------------


def test_everything_inner_calls_declared_is_folded_in_their_order():
    ledger = fold_declared(
        [
            coverage(1, checked=["b"], cannot_cover=[Item("c", "d")]),
            {"rows": []},
            None,
            absent("x", checked=["a", "b"], not_checked=["n"]),
            freeze(coverage(absent("y", checked=["inner"]), checked=["outer"])),
        ]
    )
    assert [item.what for item in ledger.checked] == ["b", "a", "outer", "inner"]
    assert ledger.not_checked == (Item("n"),)
    assert ledger.cannot_cover == (Item("c", "d"),)
    assert ledger.sentence is None


def test_an_inner_envelope_gives_its_lists_but_not_its_sentence():
    envelope = {
        "af_coverage": Ledger(checked=["deep"], sentence="Ran 'inner'.").to_dict(),
        "result": {"walk": {}},
    }
    ledger = fold_declared(iter([envelope]))
    assert ledger == Ledger(checked=["deep"])


def test_no_results_fold_to_an_empty_ledger():
    assert fold_declared([]) == fold_declared([1, "a", {}]) == Ledger()


def test_folding_does_not_change_what_was_returned():
    result = coverage({"rows": [1]}, checked=["a"])
    before = repr(result)
    fold_declared([result, result])
    assert repr(result) == before


def test_foreign_lists_are_read_leniently():
    foreign = {"af_coverage": {"checked": [" a ", None, {"what": "b", "why": 3}]}, "result": 0}
    assert fold_declared([foreign]).checked == (Item("a"), Item("b"))


# --- the chart's own ---------------------------------------------------------------------------


def test_case_116_the_charts_own_coverage_is_read_leniently():
    ledger = read_declared_coverage(
        {
            "checked": ["  x ", ""],
            "notChecked": [{"what": "y", "why": 5}],
            "cannot_cover": ["z"],
        }
    )
    assert ledger.to_dict() == {
        "checked": [{"what": "x"}],
        "not_checked": [{"what": "y"}],
        "cannot_cover": [{"what": "z"}],
        "note": ledger.to_dict()["note"],
    }


def test_the_published_spelling_wins_even_when_it_is_empty():
    assert read_declared_coverage({"not_checked": [], "notChecked": ["y"]}).not_checked == ()
    assert read_declared_coverage({"not_checked": None, "notChecked": ["y"]}).not_checked == (
        Item("y"),
    )
    assert read_declared_coverage({"cannotCover": ["z"]}).cannot_cover == (Item("z"),)


@pytest.mark.parametrize("value", [None, "all of it", ["a"], 7, {"checked": "a"}, {"checked": {}}])
def test_a_state_value_that_is_no_coverage_is_nothing(value):
    assert read_declared_coverage(value) == Ledger()


def test_a_chart_may_write_a_ledger_and_has_no_say_in_the_sentence():
    ledger = Ledger(checked=["a"], sentence="I say so.")
    assert read_declared_coverage(ledger) == Ledger(checked=["a"])
    assert read_declared_coverage(freeze(ledger.to_dict())) == Ledger(checked=["a"])


# --- all three ---------------------------------------------------------------------------------


def test_the_sources_land_inner_first_then_chart_then_bridge():
    one = Ledger(checked=["i", "same"], not_checked=["n1"], sentence="inner")
    two = Ledger(checked=["c", "same"], not_checked=["n2"], sentence="chart")
    three = Ledger(checked=["b"], not_checked=["n1"], sentence="bridge")
    ledger = compose_ledger(one, two, three)
    assert [item.what for item in ledger.checked] == ["i", "same", "c", "b"]
    assert [item.what for item in ledger.not_checked] == ["n1", "n2"]
    assert ledger.sentence == "bridge"


def test_the_same_ground_with_and_without_why_stays_two_items():
    ledger = compose_ledger(Ledger(checked=["a"]), Ledger(checked=[Item("a", "w")]), Ledger())
    assert len(ledger.checked) == 2


item_lists = st.lists(st.sampled_from("abcdef"), max_size=6)


@trials(deadline=None)
@given(item_lists, item_lists, item_lists)
def test_no_declared_gap_is_lost_on_the_way_up(inner, chart, bridge):
    ledger = compose_ledger(*(Ledger(not_checked=items) for items in (inner, chart, bridge)))
    assert {i.what for i in ledger.not_checked} == {*inner, *chart, *bridge}


# --- the answer block --------------------------------------------------------------------------


def test_nothing_declared_leaves_the_answer_as_it_is():
    for answer in ("", "Two need action. \n\n", "---"):
        assert with_answer_block(answer, []) == answer
        assert with_answer_block(answer, [Ledger(), Ledger(sentence="Ran.")]) == answer
    assert answer_block([]) == ""


def test_the_block_merges_over_the_whole_conversation():
    block = answer_block(
        [
            Ledger(checked=["a"], cannot_cover=[Item("c", "never")]),
            Ledger(checked=["a", "b"], not_checked=["n"]),
        ]
    )
    assert block.split("\n\n") == [
        "**What this answer covers**",
        "Checked:\n- a\n- b",
        "Not checked:\n- n",
        "Cannot cover:\n- c: never",
    ]


def test_a_section_with_nothing_in_it_is_left_out():
    assert answer_block([Ledger(not_checked=["n"])]).split("\n\n")[1:] == ["Not checked:\n- n"]


def test_the_block_stands_under_a_rule_behind_the_stripped_answer():
    text = with_answer_block("Two need action. \n\n", [Ledger(checked=["a"])])
    assert text == "Two need action.\n\n---\n\n**What this answer covers**\n\nChecked:\n- a"


@pytest.mark.parametrize("n", [1, ANSWER_BLOCK_ITEMS, ANSWER_BLOCK_ITEMS + 1, 40])
def test_a_long_section_says_how_many_more_there_are(n):
    assert ANSWER_BLOCK_ITEMS == 12
    lines = answer_block([Ledger(checked=[f"ground {k}" for k in range(n)])]).splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    more = n - ANSWER_BLOCK_ITEMS
    assert len(entries) == min(n, ANSWER_BLOCK_ITEMS) + (more > 0)
    assert (entries[-1] == f"- … and {more} more") == (more > 0)


def test_an_item_cannot_forge_a_section_a_link_or_a_tag():
    hostile = "x\n\nChecked:\n- everything [safe](https://e.example) <b> `c`"
    block = answer_block([Ledger(not_checked=[Item("w", hostile)])])
    assert len(block.splitlines()) == 4
    assert "\nChecked:" not in block
    assert "\\[safe\\](" in block
    assert "\\<b>" in block
