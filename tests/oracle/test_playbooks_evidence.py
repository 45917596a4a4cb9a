"""Recorded probes and skill files, as they were recorded and as the safe profile reads them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from playbook_values import decode, folder

from runbook_nb.playbooks.evidence import is_blank, matched_probes


def recorded(kind):
    """Give the cases of one kind; another folder of recordings need not have any."""
    paths = sorted(folder().glob("*.json"))
    cases = [json.loads(path.read_text("utf-8")) for path in paths]
    return [pytest.param(case, id=case["id"]) for case in cases if case["kind"] == kind]


def judged(query, form):
    probes = [SimpleNamespace(name=match, match=match) for match in query["matches"]]
    found = matched_probes(probes, query["tool"], decode(query["args"]), form)
    return {match: match in found for match in query["matches"]}


@pytest.mark.parametrize("case", recorded("probe"))
def test_a_probe_matches_as_recorded(case, outcome):
    for query, expected in zip(case["input"]["queries"], case["expect"]["matched"], strict=True):
        assert judged(query, "v1") == expected
    outcome({"family": "playbooks probe compat", **case}, "matched")


def texts_in(value):
    """Give every text of some arguments as it is written, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_in(part)]
    if isinstance(value, list | tuple | set):
        return [text for item in value for text in texts_in(item)]
    return []


@pytest.mark.parametrize("case", recorded("probe"))
def test_under_the_safe_form_texts_are_found_as_they_are_written(case, outcome):
    """What was found still is, but for escapes and blanks; so is a text of any script (row Q23)."""
    for query, expected in zip(case["input"]["queries"], case["expect"]["matched"], strict=True):
        found, arguments = judged(query, "v2"), decode(query["args"])
        holds_itself = "$circular" in json.dumps(query["args"])
        texts = [query["tool"]] if holds_itself else [query["tool"], *texts_in(arguments)]
        for match, before in expected.items():
            if is_blank(match):
                assert not found[match]
            elif before and "\\" not in match:
                assert found[match]
            if not is_blank(match) and any(match in text for text in texts):
                assert found[match]
    outcome({"family": "playbooks probe safe", **case}, "matched")


SAFE = {
    # Q23: letters of any script are searched as they are written, escapes never are.
    "probetext-05": [
        {"índice": True, "\\u00cdndice": False, "ndice": True},
        {"índice": True, "ÍNDICE": True},
        {"TËST": True},
        {"日本": True, "\\u65e5\\u672c": False},
    ],
}


@pytest.mark.parametrize("case", recorded("probe"))
def test_what_a_quirk_of_probes_becomes_is_asserted(case, outcome, unjudged):
    if case["quirk"] is None:
        return
    if case["id"] not in SAFE:
        unjudged(case)
        return
    found = [judged(query, "v2") for query in case["input"]["queries"]]
    assert found == SAFE[case["id"]]
    outcome({"family": "playbooks probe safe", **case}, "improved")
