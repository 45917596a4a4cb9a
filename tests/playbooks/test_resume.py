"""Taking a plan up again from its journal: the same plan, what was open named, none forgotten."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from journals import KINDS, Clock, at

from runbook_nb.errors import JournalError, PlaybookError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.journal_jsonl import JsonlJournal
from runbook_nb.playbooks.journal_sqlite import SqliteJournal
from runbook_nb.playbooks.model import Playbook
from runbook_nb.playbooks.skills import Skill
from runbook_nb.settings import settings
from runbook_nb.testing.store_crashes import _forked

BOOK = Playbook(
    id="ir",
    name="Incident response",
    steps=[
        {
            "id": "detect",
            "description": "Look.",
            "expected_tools": ["query_siem"],
            "uses": ["siem"],
        },
        {
            "id": "contain",
            "description": "Stop it.",
            "expected_tools": ["isolate_host"],
            "max_tool_calls": 1,
        },
    ],
)
SKILLS = {"siem": Skill("siem", "Logs.", allowed_tools=["query_siem"])}


@pytest.fixture(params=list(KINDS))
def place(request, tmp_path):
    """Give what makes a journal of one place; the one before lets go, as its kernel died."""
    made = []

    def one():
        for journal in made:
            journal.close()
        made.append(KINDS[request.param](tmp_path))
        return made[-1]

    yield one
    for journal in made:
        journal.close()


@pytest.fixture
def clock():
    with settings(clock=Clock()) as options:
        yield options


def left_in(journal):
    """Begin a run, and leave it while a call is under way."""
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=journal)
    run.admit("isolate_host")
    run.settle(run.admit("query_siem", {"index": "auth"}))
    run.admit("isolate_host", {"host": "web-1"}, call_id="dangerous")
    return run


@pytest.fixture
def left(place, clock):
    """A run that its kernel left while a call was under way; gives what was seen of it."""
    return left_in(place())


@pytest.fixture
def lines(tmp_path, clock):
    """Give the file of lines of such a run."""
    with JsonlJournal(tmp_path / "ir.jsonl") as journal:
        left_in(journal)
    return tmp_path / "ir.jsonl"


def code_of(work):
    with pytest.raises(PlaybookError) as caught:
        work()
    assert caught.value.fix
    return caught.value.code


def test_the_plan_the_violations_and_the_skills_are_what_they_were(left, place):
    again = PlaybookEnforcer.resume(place())
    assert again.plan == left.plan
    assert again.violations == left.violations
    assert again.policy == left.policy
    assert again.terms.steps == left.terms.steps
    assert again.effective_probes(BOOK.steps[0]) == left.effective_probes(BOOK.steps[0])
    assert again.adherence_score() == left.adherence_score()
    assert again.events[: len(left.events)] == left.events


def test_calls_of_which_nobody_told_the_end_are_open_and_named(left, place):
    again = PlaybookEnforcer.resume(place())
    resumed = again.events[-1]
    assert (resumed.kind, resumed.open, resumed.after) == ("resumed", ("dangerous",), 6)
    assert [call.call_id for call in again.calls if call.outcome is None] == ["dangerous"]
    assert again.report().running == ("dangerous",)


def test_an_open_call_keeps_its_place_and_the_plan_says_what_it_waits_for(left, place):
    again = PlaybookEnforcer.resume(place())
    assert not again.admit("isolate_host", {"host": "web-1"}).allowed
    assert "waits for what came of 'dangerous'" in again.stuck_reason
    assert "settle it" in again.stuck_reason


def test_whoever_finds_out_what_came_of_an_open_call_tells_it(left, place):
    again = PlaybookEnforcer.resume(place())
    assert again.settle("dangerous", "ok").closed
    assert not again.is_stuck
    assert again.finish().verdict == "pass_with_deviations"


def test_an_open_call_that_never_happened_can_be_made_again(left, place):
    again = PlaybookEnforcer.resume(place())
    again.settle("dangerous", "cancelled")
    assert not again.is_stuck
    assert again.admit("isolate_host", {"host": "web-1"}).allowed


def test_it_goes_on_in_the_same_journal_any_number_of_times(left, place):
    for turn in range(3):
        again = PlaybookEnforcer.resume(place())
        assert again.events[-1].kind == "resumed"
        assert len(again.events) == len(left.events) + turn + 1
    again.settle("dangerous")
    checked = place().verify()
    assert checked.ok, [claim.sentence for claim in checked.contradicted]
    assert sum(claim.id.startswith("resumption") for claim in checked) == 3


def test_what_was_done_is_on_the_disk_before_it_is_answered(left, place, tmp_path):
    journal = place()
    again = PlaybookEnforcer.resume(journal)
    again.settle("dangerous")
    assert journal.read().lines[-1].event == again.events[-1]


def test_a_call_that_cannot_be_written_is_not_let_through(tmp_path, monkeypatch):
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=JsonlJournal(tmp_path / "j"))

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = []
    with pytest.raises(JournalError) as caught:
        ran.append(run.admit("query_siem"))
    assert caught.value.code == "journal_unavailable"
    assert not ran
    monkeypatch.undo()
    assert code_of(lambda: run.admit("query_siem")) == "journal_unavailable"
    again = PlaybookEnforcer.resume(JsonlJournal(tmp_path / "j"))
    assert again.calls == ()


def test_an_end_that_was_broken_off_is_told_and_gone(lines):
    lines.write_bytes(lines.read_bytes()[:-20])
    again = PlaybookEnforcer.resume(JsonlJournal(lines))
    resumed = again.events[-1]
    assert resumed.open == ()
    assert resumed.torn.startswith("line 6 breaks off after")
    assert [call.call_id for call in again.calls if call.outcome is None] == []
    checked = JsonlJournal(lines).verify()
    assert checked.ok
    assert checked["asked.torn"].status == "cannot be checked"


def test_a_journal_that_holds_no_plan_is_refused(place):
    assert code_of(lambda: PlaybookEnforcer.resume(place())) == "journal_empty"


def test_a_journal_that_was_changed_is_refused(lines):
    lines.write_bytes(lines.read_bytes().replace(b"web-1", b"web-2"))
    assert code_of(lambda: PlaybookEnforcer.resume(JsonlJournal(lines))) == "journal_damaged"


def test_a_plan_that_somebody_still_keeps_in_a_file_of_lines_is_not_taken_up(lines):
    first = PlaybookEnforcer.resume(JsonlJournal(lines))
    assert code_of(lambda: PlaybookEnforcer.resume(JsonlJournal(lines))) == "journal_in_use"
    first.settle("dangerous")


def test_of_two_that_keep_a_plan_in_a_database_the_one_behind_is_refused(tmp_path, clock):
    path = tmp_path / "runs.sqlite"
    first = left_in(SqliteJournal(path, "run-1"))
    other = PlaybookEnforcer.resume(SqliteJournal(path, "run-1"))
    assert code_of(lambda: first.settle("dangerous")) == "journal_in_use"
    other.settle("dangerous")


def test_skills_may_be_given_again_if_they_are_what_they_were(left, place):
    again = PlaybookEnforcer.resume(place(), skills=SKILLS)
    assert again.skills["siem"] is SKILLS["siem"]
    other = {"siem": Skill("siem", "Logs.", allowed_tools=["query_siem", "pay"])}
    assert code_of(lambda: PlaybookEnforcer.resume(place(), skills=other)) == "skill_changed"


def test_what_was_hidden_stays_hidden(place, clock):
    hide = {"keys": ["token"]}
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=place(), redact=hide)
    run.admit("query_siem", {"token": "t0p-s3cret", "index": "auth"})
    assert code_of(lambda: PlaybookEnforcer.resume(place())) == "redaction_missing"
    again = PlaybookEnforcer.resume(place(), redact=hide)
    again.settle("call-2", arguments={"token": "an0ther-one"})
    text = "".join(line.text for line in place().read().lines)
    assert "s3cret" not in text
    assert "an0ther" not in text
    assert text.count("[REDACTED]") == 2


def test_the_key_of_a_journal_is_that_of_its_run(tmp_path, clock):
    with SqliteJournal(tmp_path / "runs.sqlite", "run-7") as journal:
        run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS, journal=journal)
        assert run.key == "run-7"
        assert PlaybookEnforcer.resume(journal).key == "run-7"
        named = PlaybookEnforcer.from_playbook(
            BOOK, skills=SKILLS, journal=journal.of("run-8"), key="mine"
        )
        assert named.key == "mine"


def test_a_dump_leaves_running_calls_open_too(clock):
    run = PlaybookEnforcer.from_playbook(BOOK, skills=SKILLS)
    run.admit("query_siem", call_id="c1")
    again = PlaybookEnforcer.load(run.dump())
    assert again.events[-1].open == ("c1",)
    assert again.settle("c1").closed


def test_events_of_one_thing_that_was_asked_have_one_time(left):
    times = {}
    for event in left.events:
        times.setdefault(event.at, []).append(event.kind)
    assert list(times.values()) == [
        ["begun"],
        ["refused"],
        ["admitted"],
        ["settled", "closed"],
        ["admitted"],
    ]
    assert min(times) == at(0)


# --- an agent that is killed ---------------------------------------------------------------------


def work(make, tell):
    """Call one tool after another, telling before and after each runs."""
    journal = make()
    run = (
        PlaybookEnforcer.resume(journal)
        if len(journal)
        else PlaybookEnforcer.from_playbook(
            {
                "id": "long",
                "name": "Long",
                "steps": [
                    {
                        "id": "s",
                        "description": "d",
                        "expected_tools": ["t"],
                        "min_tool_calls": 10_000,
                    }
                ],
            },
            journal=journal,
        )
    )
    for _ in range(200):
        call = run.admit("t")
        tell(f"runs {call.call_id}")  # the effect: whatever happens now, the journal knows of it
        run.settle(call)
        tell(f"settled {call.call_id}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("kind", list(KINDS))
def test_nothing_runs_of_which_the_journal_does_not_know(kind, tmp_path):
    seen, done = set(), set()
    for number in range(8):
        with _forked(lambda tell: work(lambda: KINDS[kind](tmp_path), tell)) as (child, words):
            for _ in range(1 + 3 * number):
                word = next(words)
                assert not word.startswith("failed"), word
                what, _, name = word.partition(" ")
                (seen if what == "runs" else done).add(name)
            os.kill(child, signal.SIGKILL)
            for word in words:
                what, _, name = word.partition(" ")
                (seen if what == "runs" else done).add(name)
        with KINDS[kind](tmp_path) as journal:
            again = PlaybookEnforcer.resume(journal)
            calls = {call.call_id: call.outcome for call in again.calls}
            assert seen <= calls.keys()
            assert done <= {name for name, outcome in calls.items() if outcome == "ok"}
            assert set(again.events[-1].open) == {n for n, word in calls.items() if word is None}
            assert journal.verify(head=journal.head).ok
