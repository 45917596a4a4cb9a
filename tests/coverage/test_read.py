"""Recognisers: exact identity laws, and one funnel that reads every declared boundary."""

from collections import UserDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb._frozen import freeze
from runbook_nb.coverage import (
    Item,
    absent,
    coverage,
    declaring_part,
    read_absence,
    read_coverage_ledger,
    read_coverage_result,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["af_absent", "af_coverage", "checked", "result", "what"]), inner
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("wrong", [1, "true", 1.0, None, False, [True]])
def test_case_34_only_true_itself_marks_an_absence(wrong):
    assert read_absence({"af_absent": wrong, "checked": [{"what": "a"}]}) is None


@pytest.mark.parametrize("checked", [[], (), None, "the store", {"what": "a"}, {"a"}, 3])
def test_case_34_an_absence_needs_something_in_its_checked_list(checked):
    assert read_absence({"af_absent": True, "checked": checked}) is None
    assert read_absence({"af_absent": True}) is None


def test_case_34_an_absence_is_given_back_as_it_is():
    value = {"af_absent": True, "checked": [{"what": "a"}]}
    assert read_absence(value) is value


def test_case_35_a_ledger_is_two_keys_and_nothing_less():
    value = {"af_coverage": {}, "result": None}
    assert read_coverage_ledger(value) is value
    assert read_coverage_ledger({"af_coverage": {}}) is None
    assert read_coverage_ledger({"result": 1}) is None


@pytest.mark.parametrize("block", [[], None, "checked", True, [("checked", [])]])
def test_case_35_a_coverage_block_is_a_mapping(block):
    assert read_coverage_ledger({"af_coverage": block, "result": 1}) is None


@pytest.mark.parametrize("kind", [dict, freeze, MappingProxyType, UserDict])
def test_any_mapping_is_recognised(kind):
    absence = kind(absent("x", checked=["a"]))
    wrapped = kind(coverage(absence, checked=["b"]))
    assert read_absence(absence) is absence
    assert read_coverage_ledger(wrapped) is wrapped
    assert read_coverage_result(wrapped).status == "absent"


@pytest.mark.parametrize("value", [None, "af_absent", 5, [], ["af_absent"], object(), {"rows": []}])
def test_ordinary_values_declare_nothing(value):
    assert read_absence(value) is None
    assert read_coverage_ledger(value) is None
    assert read_coverage_result(value) is None


def test_an_absence_reads_as_one_declared_fact():
    reading = read_coverage_result(absent("rows", checked=["a"], not_checked=["b"]))
    assert reading.status == "absent"
    (fact,) = reading.declared
    assert (fact.kind, fact.looked_for) == ("absence", "rows")
    assert fact.ledger.checked == (Item("a"),)
    assert fact.ledger.not_checked == (Item("b"),)
    assert fact.to_dict() == {
        "kind": "absence",
        "looked_for": "rows",
        "checked": [{"what": "a"}],
        "not_checked": [{"what": "b"}],
    }


def test_a_ledger_reads_as_one_declared_fact_without_a_status():
    reading = read_coverage_result(coverage({"rows": 1}, cannot_cover=[Item("c", "d")]))
    assert reading.status is None
    (fact,) = reading.declared
    assert fact.to_dict() == {"kind": "ledger", "cannot_cover": [{"what": "c", "why": "d"}]}


def test_an_absence_inside_a_ledger_adds_to_it_and_makes_the_status():
    reading = read_coverage_result(coverage(absent("x", checked=["a"]), not_checked=["b"]))
    assert reading.status == "absent"
    assert [fact.kind for fact in reading.declared] == ["ledger", "absence"]


def test_an_absence_wins_over_a_ledger_on_one_mapping():
    both = {**absent("x", checked=["a"]), **coverage(1, checked=["b"])}
    reading = read_coverage_result(both)
    assert [fact.kind for fact in reading.declared] == ["absence"]


def test_the_sentence_of_an_inner_envelope_stays_behind():
    value = {"af_coverage": {"checked": ["a"], "sentence": "Ran 'inner'."}, "result": {}}
    assert read_coverage_result(value).declared[0].ledger.sentence is None


def test_a_recognised_value_with_unreadable_items_is_still_recognised():
    reading = read_coverage_result({"af_absent": True, "checked": [None, 7], "looked_for": 3})
    assert reading.status == "absent"
    assert reading.declared[0].ledger.is_empty
    assert reading.declared[0].looked_for is None


@trials(deadline=None)
@given(json_values)
def test_reading_never_fails_and_agrees_with_the_recognisers(value):
    reading = read_coverage_result(value)
    recognised = read_absence(value) is not None or read_coverage_ledger(value) is not None
    assert (reading is not None) == recognised
    if reading is not None:
        kinds = [fact.kind for fact in reading.declared]
        assert (reading.status == "absent") == ("absence" in kinds)


@trials(deadline=None)
@given(json_values)
def test_the_declaring_part_says_all_that_the_value_declares(value):
    part = declaring_part(value)
    assert read_coverage_result(part) == read_coverage_result(value)
    assert part is None or part is value or part.keys() == {"af_coverage", "result"}
