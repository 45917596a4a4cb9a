"""What happened under playbooks as an event log for process mining."""

import csv
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep
from runbook_nb.playbooks.eventlog import COLUMNS, EventLog, event_log

BOOK = Playbook(
    id="ir",
    name="Incident response",
    version="3",
    steps=[
        PlaybookStep(id="detect", description="Look.", expected_tools=["siem", "enrich"]),
        PlaybookStep(id="extra", description="More.", expected_tools=["whois"], required=False),
        PlaybookStep(id="contain", description="Act.", expected_tools=["isolate"]),
        PlaybookStep(id="sign", description="Sign it off.", kind="manual"),
    ],
)


def clock():
    at = datetime(2026, 11, 29, tzinfo=UTC)

    def tick():
        nonlocal at
        at += timedelta(seconds=1)
        return at

    return tick


def worked(key="run-7", book=BOOK, calls=("siem", "isolate", "enrich", "isolate"), **how):
    with rb.settings(clock=clock()):
        enforcer = PlaybookEnforcer.from_playbook(book, key=key, **how)
        for tool in calls:
            admission = enforcer.admit(tool, {"secret": "s3cret"})
            if admission.allowed:
                enforcer.settle(admission, "ok", result="s3cret")
        if enforcer.current_step is not None and enforcer.current_step.kind == "manual":
            enforcer.complete("sign", by="ana", note="s3cret")
        enforcer.finish()
        return enforcer


def told(log, *names):
    return [tuple(row[name] for name in names) for row in log]


def test_steps_begin_and_end():
    log = event_log(worked())
    assert told(log, "concept:name", "lifecycle:transition", "outcome", "by", "org:resource") == [
        ("detect", "start", None, None, None),
        ("detect", "complete", "completed", "calls", None),
        ("extra", "autoskip", "skipped", "calls", None),
        ("contain", "start", None, None, None),
        ("contain", "complete", "completed", "calls", None),
        ("sign", "complete", "completed", "person", "ana"),
    ]
    assert {row["case:concept:name"] for row in log} == {"run-7"}
    assert {(row["case:playbook"], row["case:version"], row["case:policy"]) for row in log} == {
        ("ir", "3", "safe")
    }


def test_tools_are_called_and_come_back_or_are_refused():
    log = event_log(worked(), activity="tool")
    assert told(log, "concept:name", "step", "lifecycle:transition", "outcome") == [
        ("siem", "detect", "start", None),
        ("siem", "detect", "complete", "ok"),
        ("isolate", "detect", "withdraw", "refused"),
        ("enrich", "detect", "start", None),
        ("enrich", "detect", "complete", "ok"),
        ("isolate", "contain", "start", None),
        ("isolate", "contain", "complete", "ok"),
    ]
    (refused,) = [row for row in log if row["outcome"] == "refused"]
    assert refused["deviations"] == "unexpected_tool"
    starts = [row["call"] for row in log if row["lifecycle:transition"] == "start"]
    ends = [row["call"] for row in log if row["lifecycle:transition"] == "complete"]
    assert starts == ends
    assert len(set(starts)) == 3


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        ("ok", "complete"),
        ("cached", "complete"),
        ("error", "ate_abort"),
        ("cancelled", "pi_abort"),
    ],
)
def test_each_outcome_has_the_word_of_the_standard(outcome, word):
    enforcer = PlaybookEnforcer.from_playbook(BOOK)
    enforcer.settle(enforcer.admit("siem", {}), outcome)
    last = event_log(enforcer, activity="tool").records[-1]
    assert (last["lifecycle:transition"], last["outcome"]) == (word, outcome)


def test_a_step_that_failed_goes_on_until_it_is_done():
    enforcer = PlaybookEnforcer.from_playbook(BOOK)
    enforcer.settle(enforcer.admit("siem", {}), "ok")
    enforcer.fail_current_step("no answer")
    enforcer.settle(enforcer.admit("enrich", {}), "ok")
    assert [word for (word,) in told(event_log(enforcer), "lifecycle:transition")] == [
        "start",
        "ate_abort",
        "complete",
    ]


def test_a_plan_that_was_set_back_begins_again():
    enforcer = PlaybookEnforcer.from_playbook(BOOK)
    enforcer.settle(enforcer.admit("siem", {}), "ok")
    enforcer.reset()
    enforcer.settle(enforcer.admit("siem", {}), "ok")
    log = event_log(enforcer)
    assert told(log, "concept:name", "lifecycle:transition") == [("detect", "start")] * 2


def test_rows_stand_in_the_order_of_time():
    for activity in ("step", "tool"):
        times = [at for (at,) in told(event_log(worked(), activity=activity), "time:timestamp")]
        assert times == sorted(times)
        assert all(at.tzinfo is not None for at in times)


def test_many_runs_are_many_cases_and_keep_apart():
    log = event_log([worked("a"), worked("b"), worked("a"), worked(None)])
    cases = [*dict.fromkeys(case for (case,) in told(log, "case:concept:name"))]
    assert cases == ["a", "b", "a (2)", "ir-4"]
    assert log.cases == 4
    assert len(log) == 4 * len(event_log(worked()))


def test_events_journals_runs_and_enforcers_say_the_same(tmp_path):
    from runbook_nb.playbooks import JsonlJournal
    from runbook_nb.playbooks.run import run_of

    with JsonlJournal(tmp_path / "run.jsonl") as journal:
        enforcer = worked(journal=journal)
        whole = event_log(enforcer).records
        assert event_log(enforcer.events).records == whole
        assert event_log([enforcer]).records == whole
        assert event_log(journal).records == whole
        assert event_log(run_of(enforcer.events)).records == whole


def test_arguments_results_and_words_are_not_in_it():
    for activity in ("step", "tool"):
        log = event_log(worked(), activity=activity)
        assert "s3cret" not in str([dict(row) for row in log])


def test_a_frame_has_the_columns_that_readers_ask_for():
    frame = event_log([worked("a"), worked("b")]).to_frame()
    assert [*frame.columns] == [*COLUMNS]
    assert isinstance(frame["time:timestamp"].dtype, pd.DatetimeTZDtype)
    assert str(frame["time:timestamp"].dt.tz) == "UTC"
    assert frame["case:concept:name"].nunique() == 2
    counts = frame.groupby("case:concept:name")["concept:name"].nunique()
    assert counts.tolist() == [4, 4]


def test_a_frame_of_nothing_has_them_too():
    frame = event_log([]).to_frame()
    assert [*frame.columns] == [*COLUMNS]
    assert isinstance(frame["time:timestamp"].dtype, pd.DatetimeTZDtype)
    assert len(frame) == 0


def test_what_a_spreadsheet_would_run_is_kept_as_text(tmp_path):
    steps = [PlaybookStep(id="=1+1", description="x", expected_tools=["@SUM(A1)"])]
    enforcer = PlaybookEnforcer.from_playbook(Playbook(id="-x", name="y", steps=steps), key="+k")
    enforcer.settle(enforcer.admit("@SUM(A1)", {}), "ok")
    path = event_log(enforcer, activity="tool").to_csv(tmp_path / "log.csv")
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == [*COLUMNS]
    first = dict(zip(head, rows[0], strict=True))
    assert first["concept:name"] == first["tool"] == "'@SUM(A1)"
    assert first["step"] == "'=1+1"
    assert first["case:concept:name"] == "'+k"
    assert first["case:playbook"] == "'-x"
    assert first["outcome"] == ""
    assert datetime.fromisoformat(first["time:timestamp"]).tzinfo is not None


def test_rows_cannot_be_changed():
    log = event_log(worked())
    with pytest.raises(TypeError):
        log.records[0]["outcome"] = "ok"


def test_it_shows_its_rows():
    text = str(event_log(worked()))
    assert text.startswith("EventLog of steps · 1 run · 6 rows")
    assert "autoskip" in event_log(worked()).to_markdown()
    empty = EventLog(activity="tool", cases=0, records=())
    assert str(empty).splitlines()[0] == "EventLog of tools · 0 runs · 0 rows"


@pytest.mark.parametrize("given", [7, "run", None, {"events": 1}, [7], [[7]], b"x"])
def test_what_has_no_events_is_refused(given):
    with pytest.raises(PlaybookDefinitionError, match="no event log can be made") as caught:
        event_log(given)
    assert caught.value.code == "no_events"


def test_so_is_a_part_of_a_run_and_another_activity():
    with pytest.raises(PlaybookDefinitionError, match="what was begun"):
        event_log(worked().events[1:])
    with pytest.raises(PlaybookDefinitionError, match="did you mean 'tool'") as caught:
        event_log(worked(), activity="tools")
    assert caught.value.code == "unknown_activity"
