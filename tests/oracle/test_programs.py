"""Every recorded chart program, replayed: equal after the declared departures, or judged better."""

from __future__ import annotations

import copy
from pathlib import Path

import judged_charts
import judged_secrets
import judged_stages
import judged_ways
import pytest
import replay_run
from judging import BETTER, Judged
from replay_compare import NOT_COMPARED, compare
from replay_laws import broken_laws
from replay_values import HarnessFailure

#: The files of chart programs; other files have tests of their own.
FAMILIES = (
    "linear",
    "errors",
    "deciders",
    "selectors",
    "forks",
    "fanout",
    "subflows",
    "loops",
    "streaming",
    "pauses",
    "redaction",
    "contracts",
    "build",
    "structures",
    "hazards",
)

#: Files of other shapes, and the tests that replay them.
OTHERS = {
    "api_facts": "test_api_facts",
    "decide_evidence": "test_decide_evidence",
    "decide_truth_table": "test_decide_truth_table",
    "functions": "test_functions",
    "trace_queries": "test_trace_queries",
}

HERE = Path(__file__).parent

JUDGES = (judged_stages, judged_ways, judged_charts, judged_secrets)


@pytest.mark.programs(*FAMILIES)
def test_a_recorded_program_is_replayed(case, outcome, unjudged):
    if case["verdict"] == "keep":
        found = compare(case)
        assert found.wrong == []
        outcome(case, "after departures" if found.departures.used else "equal", found)
    elif case["id"] in BETTER:
        BETTER[case["id"]](Judged(case))
        outcome(case, "judged better")
    else:
        unjudged(case)
        outcome(case, "unjudged")


@pytest.mark.programs(*FAMILIES)
def test_every_program_keeps_the_general_laws(case):
    assert broken_laws(replay_run.replay(case)) == []


@pytest.mark.programs(*FAMILIES)
def test_a_case_to_be_kept_is_compared_in_everything_observed(case):
    if case["verdict"] != "keep":
        return
    wanted = {key for key in case["observed"] if key not in NOT_COMPARED}
    found = compare(case)
    refused = {"build_error", "build"} & set(found.compared)
    assert found.compared or not case["observe"], "nothing was compared"
    assert refused or wanted <= set(found.compared)
    assert (
        found.replay.refused is not None
        or found.replay.runs
        or case.get("build_only")
        or ("error" in found.compared)
    )


#: What is changed in a recording to see that it is looked at, and how often that is tried.
CHANGED = ("state", "narrative", "commits", "commit_index", "structure", "result", "checkpoint")
TRIES = 12


@pytest.mark.programs(*FAMILIES)
def test_a_recording_that_says_otherwise_is_not_equal(case):
    if case["verdict"] != "keep" or "build_error" in case["observed"]:
        return
    found = compare(case)
    for key in CHANGED:
        told = found.compared.get(key, "")
        if key not in case["observed"] or not told or "laws" in told:
            continue
        places = list(leaves(case["observed"][key]))[:TRIES]
        if "failing-fast-ends-siblings" in found.departures.used and key == "state":
            continue  # what the siblings left is compared as far as they came, which is nowhere
        assert not places or any(noticed(changed(case, key, place)) for place in places), key


def noticed(case):
    """Say whether comparing a case finds something wrong, be it that it cannot be read."""
    try:
        return bool(compare(case).wrong)
    except HarnessFailure:
        return True


def leaves(value, way=()):
    """Yield the way to every plain value inside a recorded one that is no mere position."""
    if isinstance(value, dict) and "$js" not in value:
        for key, inner in value.items():
            if key not in ("idx", "keys", "stageNumber", "isFirst", "stepNumber", "stageId"):
                yield from leaves(inner, (*way, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*way, place))
    else:
        yield way


def changed(case, key, way):
    """Give a case with one recorded value changed."""
    case = copy.deepcopy(case)
    at, step = case["observed"], key
    for following in way:
        at, step = at[step], following
    old = at[step]
    at[step] = f"{old} changed" if isinstance(old, str) else [old, "changed"]
    return case


@pytest.mark.programs(*FAMILIES)
def test_a_case_of_one_verdict_is_not_judged_by_another(case):
    assert case["verdict"] in ("keep", "improve", "bug", "quirk")
    if case["verdict"] == "keep":
        assert case["id"] not in BETTER


def test_every_file_is_replayed_by_somebody(oracle):
    files = {path.stem for path in (oracle.folder / "chart").glob("*.json")}
    assert files <= {*FAMILIES, *OTHERS}
    for name in OTHERS.values():
        assert (HERE / f"{name}.py").exists()


def test_every_better_behaviour_is_named_after_itself():
    for id, judge in BETTER.items():
        assert judge.__module__ in {module.__name__ for module in JUDGES}
        assert "_" in judge.__name__
        assert id.lower() not in judge.__name__.lower()
