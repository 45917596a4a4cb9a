"""`coverage` and `absent`: exact keys in exact order, and refusals that say the fix."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb.coverage import (
    ABSENCE_NOTE,
    COVERAGE_NOTE,
    REFUSAL_MARK,
    Item,
    Ledger,
    absent,
    coverage,
)
from runbook_nb.errors import DefinitionError


def refused(call, *args, **kwargs) -> str:
    with pytest.raises(DefinitionError) as caught:
        call(*args, **kwargs)
    assert str(caught.value).startswith(REFUSAL_MARK)
    return str(caught.value)


# --- coverage ----------------------------------------------------------------------------------


def test_case_24_coverage_holds_only_the_lists_that_say_something():
    assert coverage({"v": 1}, checked=["a"]) == {
        "af_coverage": {"checked": [{"what": "a"}], "note": COVERAGE_NOTE},
        "result": {"v": 1},
    }


@pytest.mark.parametrize(
    "lists", [{}, {"checked": []}, {"checked": [], "not_checked": (), "cannot_cover": None}]
)
def test_case_25_coverage_without_any_ground_is_refused(lists):
    assert "checked=[" in refused(coverage, 1, **lists)


def test_case_26_ground_out_of_reach_needs_a_why():
    message = refused(coverage, 1, cannot_cover=["blind"])
    assert "cannot_cover[0]" in message
    assert "why" in message
    assert "blind" in message


def test_case_27_texts_of_items_are_stripped():
    answer = coverage(1, checked=[{"what": "  a ", "why": " b "}])
    assert answer["af_coverage"]["checked"] == [{"what": "a", "why": "b"}]


def test_case_28_a_blank_why_is_refused():
    refused(coverage, 1, checked=[{"what": "a", "why": ""}])


def test_case_29_a_text_is_not_read_letter_by_letter():
    assert "checked must be a list" in refused(coverage, 1, checked="abc")


def test_coverage_keeps_its_key_order_whatever_the_order_of_arguments():
    answer = coverage(
        1, cannot_cover=[Item("c", "never")], not_checked=["b"], checked=[Item("a", "seen")]
    )
    assert list(answer) == ["af_coverage", "result"]
    assert list(answer["af_coverage"]) == ["checked", "not_checked", "cannot_cover", "note"]
    assert answer["af_coverage"]["cannot_cover"] == [{"what": "c", "why": "never"}]


def test_coverage_hands_the_result_through_untouched():
    rows = [{"age": 2}]
    assert coverage(rows, checked=["a"])["result"] is rows
    assert coverage(None, checked=["a"])["result"] is None


def test_coverage_does_not_alias_what_was_declared():
    item = {"what": "a"}
    answer = coverage(1, checked=[item])
    item["what"] = "changed"
    assert answer["af_coverage"]["checked"] == [{"what": "a"}]


def test_coverage_takes_the_lists_of_a_ledger():
    ledger = Ledger(checked=["a"], not_checked=["b"])
    answer = coverage(1, checked=ledger.checked, not_checked=ledger.not_checked)
    assert answer["af_coverage"]["not_checked"] == [{"what": "b"}]


def test_coverage_keeps_repeated_items_as_they_were_declared():
    assert len(coverage(1, checked=["a", "a"])["af_coverage"]["checked"]) == 2


def test_a_misspelt_list_is_a_type_error_and_not_lost():
    with pytest.raises(TypeError, match="notChecked"):
        coverage(1, checked=["a"], notChecked=["b"])


# --- absent ------------------------------------------------------------------------------------


def test_case_30_an_absence_has_these_keys_in_this_order():
    answer = absent(what="rows", checked=["the store"])
    assert list(answer) == [
        "af_absent",
        "outcome",
        "looked_for",
        "checked",
        "retry_returns_the_same",
        "note",
    ]
    assert answer["af_absent"] is True
    assert answer["retry_returns_the_same"] is True
    assert answer["outcome"] == "nothing_found"
    assert answer["note"] == ABSENCE_NOTE


def test_an_absence_with_everything_keeps_the_order():
    answer = absent(
        " rows ",
        checked=["a"],
        not_checked=["b"],
        cannot_cover=[Item("c", "d")],
        try_instead="  ask for the tenant ",
        try_instead_tool={"tool": " tenants ", "why": " names are there "},
    )
    assert list(answer) == [
        *("af_absent", "outcome", "looked_for", "checked", "not_checked", "cannot_cover"),
        *("retry_returns_the_same", "try_instead", "try_instead_tool", "note"),
    ]
    assert answer["looked_for"] == "rows"
    assert answer["try_instead"] == "ask for the tenant"
    assert answer["try_instead_tool"] == {"tool": "tenants", "why": "names are there"}


@pytest.mark.parametrize("checked", [[], None, ()])
def test_case_31_an_absence_that_looked_nowhere_is_an_error_instead(checked):
    message = refused(absent, what="rows", checked=checked)
    assert "could not look" in message
    assert "error" in message


@pytest.mark.parametrize("what", ["", "  ", None, 5, ["rows"]])
def test_an_absence_says_what_was_looked_for(what):
    assert "what" in refused(absent, what, checked=["a"])


@pytest.mark.parametrize("nothing", ["", "  ", None, False, True, 0, 3.5, [], ["ask"], ("a",)])
def test_case_32_what_suggests_nothing_is_no_suggestion(nothing):
    assert "try_instead" not in absent("rows", checked=["a"], try_instead=nothing)


def test_case_32_a_mapping_as_suggestion_is_pointed_at_the_typed_field():
    message = refused(absent, "rows", checked=["a"], try_instead={"tool": "t"})
    assert "try_instead_tool" in message


def test_case_33_a_suggested_tool_without_why_is_its_name():
    answer = absent("rows", checked=["a"], try_instead_tool={"tool": "inv", "why": None})
    assert answer["try_instead_tool"] == {"tool": "inv"}


@pytest.mark.parametrize(
    "value",
    [
        [{"tool": "inv"}],
        "inv",
        5,
        False,
        {},
        {"tool": ""},
        {"tool": 5},
        {"tool": "a", "why": " "},
        {"tool": "a", "why": 5},
        {"tool": "a", "wy": "b"},
        {"tool": "a", 1: "b"},
    ],
)
def test_case_33_anything_else_as_suggested_tool_is_refused(value):
    assert "try_instead_tool" in refused(absent, "rows", checked=["a"], try_instead_tool=value)


def test_a_slip_in_the_suggested_tool_is_named():
    message = refused(absent, "rows", checked=["a"], try_instead_tool={"tool": "a", "Why": "b"})
    assert "did you mean 'why'?" in message


def test_an_absence_asks_for_a_why_like_coverage_does():
    assert "cannot_cover[0]" in refused(absent, "rows", checked=["a"], cannot_cover=["c"])


# --- the notes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [
        "Only the ground listed under `checked` backs the result",
        "left the ground under `not_checked` unexamined",
        "`cannot_cover` stays out of that tool's reach",
        "asking it again does not help",
        "A clean outcome is no evidence about either of those two lists",
        "Whoever answers from the result must pass these limits on",
    ],
)
def test_the_coverage_note_makes_each_of_its_points(point):
    assert point in COVERAGE_NOTE


@pytest.mark.parametrize(
    "point",
    [
        "carried to its end and matched nothing",
        "a valid answer, not a failure",
        "No value was put in its place",
        "Repeating it with equal arguments is pointless",
        "holds for the ground under `checked` alone",
        "`not_checked` or `cannot_cover` needs another question",
    ],
)
def test_the_absence_note_makes_each_of_its_points(point):
    assert point in ABSENCE_NOTE


@pytest.mark.parametrize("note", [COVERAGE_NOTE, ABSENCE_NOTE])
def test_a_note_is_read_again_later_so_it_never_speaks_of_this_call(note):
    assert "this call" not in note.lower()
    assert not {"now", "currently"} & set(note.lower().split())


@trials(deadline=None)
@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_nothing_of_a_call_is_written_into_the_notes(what, why):
    answer = coverage(what, checked=[Item(what, why)])
    assert answer["af_coverage"]["note"] == COVERAGE_NOTE
    assert absent(what, checked=[Item(what, why)])["note"] == ABSENCE_NOTE


# --- hostile -----------------------------------------------------------------------------------


def test_what_is_returned_is_plain_json():
    hostile = "</style><img onerror=x>\u202e|`\\N"
    answer = absent(hostile, checked=[Item(hostile, hostile)], try_instead=hostile)
    assert json.loads(json.dumps(answer)) == answer


def test_a_result_that_cannot_be_compared_or_copied_passes_through():
    @dataclass
    class Odd:
        def __eq__(self, other):
            raise TypeError("no")

        __hash__ = None

    odd = Odd()
    assert coverage(odd, checked=["a"])["result"] is odd
