"""Provenance: one stamp is carried, and the call that passes it on signs on top."""

from types import MappingProxyType

import pytest

from runbook_nb._frozen import freeze
from runbook_nb.coverage import carried_provenance, coverage, stamp


def test_the_first_result_with_a_stamp_gives_it():
    results = [
        {"rows": []},
        coverage({"af_provenance": {"source": "one"}}, checked=["a"]),
        {"af_provenance": {"source": "two"}},
    ]
    assert carried_provenance(results) == {"source": "one"}
    assert carried_provenance(reversed(results)) == {"source": "two"}


def test_the_payload_is_looked_at_before_the_top_level():
    result = {"af_provenance": {"at": "top"}, "result": {"af_provenance": {"at": "payload"}}}
    assert carried_provenance([result]) == {"at": "payload"}
    assert carried_provenance([{**result, "result": [1]}]) == {"at": "top"}


@pytest.mark.parametrize("wrong", [None, "seed", ["source"], 5, True])
def test_a_stamp_that_is_no_mapping_is_passed_over(wrong):
    results = [
        {"result": {"af_provenance": wrong}, "af_provenance": wrong},
        {"af_provenance": {"source": "good"}},
    ]
    assert carried_provenance(results) == {"source": "good"}
    assert carried_provenance(results[:1]) == {}


def test_a_broken_payload_stamp_falls_back_to_the_top_level_of_the_same_result():
    result = {"result": {"af_provenance": "x"}, "af_provenance": {"source": "top"}}
    assert carried_provenance([result, {"af_provenance": {"source": "later"}}]) == {"source": "top"}


@pytest.mark.parametrize("results", [[], [None, 1, "af_provenance", ["af_provenance"]], [{}]])
def test_without_a_stamp_nothing_is_carried(results):
    assert carried_provenance(results) == {}


def test_two_stamps_are_never_merged():
    results = [{"af_provenance": {"a": 1}}, {"af_provenance": {"b": 2}}]
    assert carried_provenance(results) == {"a": 1}


def test_an_empty_stamp_is_a_stamp():
    assert carried_provenance([{"af_provenance": {}}, {"af_provenance": {"b": 2}}]) == {}


@pytest.mark.parametrize("kind", [dict, freeze, MappingProxyType])
def test_any_mapping_carries_and_what_comes_out_is_a_new_dict(kind):
    inner = kind({"source": "seed"})
    carried = carried_provenance([kind({"result": kind({"af_provenance": inner})})])
    assert type(carried) is dict
    carried["tool"] = "x"
    assert dict(inner) == {"source": "seed"}


def test_the_stamp_comes_behind_what_is_carried():
    assert list(stamp({"source": "seed"}, "triage", "c1").items()) == [
        ("source", "seed"),
        ("tool", "triage"),
        ("toolCallId", "c1"),
    ]


def test_carried_fields_of_those_names_are_replaced_where_they_stand():
    carried = {"toolCallId": "old", "source": "seed", "tool": "inventory"}
    assert list(stamp(carried, "triage", "c1").items()) == [
        ("toolCallId", "c1"),
        ("source", "seed"),
        ("tool", "triage"),
    ]
    assert carried["tool"] == "inventory"


@pytest.mark.parametrize("nothing", [None, {}, freeze({})])
def test_with_nothing_carried_the_stamp_is_tool_and_call(nothing):
    assert stamp(nothing, "triage", "c1") == {"tool": "triage", "toolCallId": "c1"}
