"""Better behaviours of redaction: one policy over everything that leaves a run."""

from __future__ import annotations

import json

from judging import Judged, better
from replay_seen import plain_value


def served(case: Judged) -> str:
    """Give everything a run serves, as one text."""
    run = case.run
    return json.dumps(
        [
            plain_value(run.state),
            plain_value(run.result),
            run.walk.to_dicts(),
            [commit.to_dict() for commit in run.commits],
            run.recording().to_dict(),
            [decision.decision.evidence for decision in run.walk.decisions],
        ],
        default=str,
    )


def assert_hidden(case: Judged) -> None:
    """Hold that the probe is in no view, while the state itself is real."""
    probe = case.case["leak_probe"]
    assert probe not in served(case)
    assert probe in json.dumps(plain_value(case.run.raw[1:]), default=str)


@better("Z004")
def a_secret_written_as_one_is_hidden_without_a_policy(case: Judged) -> None:
    assert_hidden(case)
    assert case.run.state["pw"] == "[REDACTED]"
    assert case.state["pw"] == case.case["program"]["steps"][0]["ops"][0]["value"]


@better("Z006")
def thresholds_are_hidden_too(case: Judged) -> None:
    assert_hidden(case)
    (row,) = case.rows("condition")
    (condition,) = row.facts["evidence"]["rules"][0]["conditions"]
    assert condition["threshold"] == condition["actualSummary"] == "[REDACTED]"
    assert condition["redacted"] is True
    assert case.state["went"] == "x"


@better("Z007")
def a_seeded_secret_is_hidden_in_evidence(case: Judged) -> None:
    assert_hidden(case)
    (row,) = case.rows("condition")
    (condition,) = row.facts["evidence"]["rules"][0]["conditions"]
    assert condition["actualSummary"] == "[REDACTED]"


@better("Z010")
def a_copy_of_a_secret_is_hidden(case: Judged) -> None:
    assert_hidden(case)
    assert plain_value(case.run.state) == {"pw": "[REDACTED]", "other": "[REDACTED]"}


@better("Z013")
def the_input_of_a_run_is_hidden(case: Judged) -> None:
    assert_hidden(case)
    assert plain_value(case.run.state) == {"got": "[REDACTED]"}


@better("Z015")
def records_in_lists_are_hidden(case: Judged) -> None:
    assert_hidden(case)


@better("Z019")
def what_is_emitted_under_a_hidden_name_is_hidden(case: Judged) -> None:
    assert_hidden(case)


@better("H027")
def fields_reach_into_lists_of_records(case: Judged) -> None:
    assert_hidden(case)
    assert plain_value(case.run.state) == {"rows": [{"id": "a", "token": "[REDACTED]"}]}
