"""A real object of every class that shows itself, made of whatever word a test puts in.

`shown_classes` finds the classes in the package itself, so that one which is added without a
sample is met by a test that fails. Each sample takes the word that stands wherever data can.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import runbook_nb as rb
from runbook_nb._display import Renderable
from runbook_nb._ids import SeededIds
from runbook_nb.artifacts.base import ArtifactScope
from runbook_nb.artifacts.bound import BoundArtifacts, NoArtifacts
from runbook_nb.artifacts.model import ArtifactPage, PutResult, Record, Swept, Ticket
from runbook_nb.chart.progress import Progress, StepProgress
from runbook_nb.playbooks.byhand import StepByHand
from runbook_nb.playbooks.cacao_losses import CacaoLoss, CacaoLosses
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.eventlog import COLUMNS, EventLog
from runbook_nb.playbooks.events import (
    Admitted,
    Approved,
    Begun,
    Closed,
    Refused,
    Settled,
    Stuck,
    ViolationNoted,
    replay,
)
from runbook_nb.playbooks.hook import PlaybookEnforcerHook
from runbook_nb.playbooks.lint import PlaybookLint
from runbook_nb.playbooks.model import EnforcementViolation, Playbook, PlaybookPlan, PlaybookStep
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.report import PlaybookReport
from runbook_nb.playbooks.run import PlaybookRun, run_of
from runbook_nb.record.claims import Claim
from runbook_nb.record.commits import WholeLog
from runbook_nb.record.kept import KeptRecords
from runbook_nb.record.rulebook import ServedRules
from runbook_nb.record.verification import Verification
from runbook_nb.render.flowchart import Flowchart
from runbook_nb.rules.decision import Selection
from runbook_nb.rules.revision import Revision
from runbook_nb.runbook.comparing import Comparison
from runbook_nb.runbook.explanation import Explanation
from runbook_nb.runbook.filed import FiledWalk
from runbook_nb.runbook.rejudging import Rejudged
from runbook_nb.runbook.table import VerdictTable
from runbook_nb.runbook.told import ToldDecision
from runbook_nb.settings import settings
from runbook_nb.share.history import Forgotten, RunEntry, RunHistory
from runbook_nb.share.shared import SharedNotebook, ShareFinding
from runbook_nb.testing.stores import StoreClaim, StoreReport
from runbook_nb.widgets.base import Widget
from runbook_nb.widgets.explorer import Explorer
from runbook_nb.widgets.form import RunForm
from runbook_nb.widgets.formtold import _Absence
from runbook_nb.widgets.playbookform import PlaybookForm
from runbook_nb.widgets.rulelab import RuleLab

#: Where files of stores go; it is emptied with the process.
_FOLDER = TemporaryDirectory()
_NUMBERS = count()

#: A word of the usual kind.
USUAL = "us-east-2/prod/orders"


def frozen() -> Any:
    """Fix the clock and the ids for a block."""
    return settings(clock=lambda: datetime(2026, 11, 29, tzinfo=UTC), ids=SeededIds("shown"))


def modules() -> Iterator[Any]:
    """Give every module of the package."""
    for found in pkgutil.walk_packages(rb.__path__, "runbook_nb."):
        if not found.name.endswith("__main__"):
            yield import_module(found.name)


def shown_classes() -> dict[str, type]:
    """Give every class of the package whose objects show themselves in a cell, by its name.

    What is only inherited from is left out: abstract classes, and private ones with heirs.
    """
    classes = {
        one
        for module in modules()
        for one in vars(module).values()
        if inspect.isclass(one)
        and one.__module__.startswith("runbook_nb")
        and hasattr(one, "_repr_mimebundle_")
    }
    heirs = {parent for one in classes for parent in one.__mro__[1:]}
    return {
        one.__name__: one
        for one in classes - {Renderable, Widget}
        if not inspect.isabstract(one) and not (one.__name__.startswith("_") and one in heirs)
    }


# --- what the samples are made of --------------------------------------------------------------


def rules(word: str, version: str = "v1", days: int = 7) -> Any:
    return rb.RuleSet(
        "health-signal",
        version,
        [
            rb.Rule({"known": {"eq": False}}, then="declined", label=f"unreadable: {word}"),
            rb.Rule({"days": {"gt": days}}, then="unprotected", label=word, unit="days"),
            rb.Rule({"policy": {"eq": word}}, then="exempt", label="by policy"),
        ],
        default=rb.Default("protected", label=f"recent: {word}"),
        outside=[rb.Outside({"tier": {"eq": word}}, what=word, why=word)],
    )


def rows(word: str) -> list[dict[str, Any]]:
    found = [("a", 2, "none"), ("b", 30, "none"), ("c", None, "none"), ("d", 9, word)]
    return [
        {"subject": f"{name} {word}", "days": days, "known": days is not None, "policy": policy}
        for name, days, policy in found
    ]


@cache
def answer(word: str) -> Any:
    return rb.triage(rows(word), rules(word), subject="subject", source=word, name="triage")


@cache
def again(word: str) -> Any:
    return answer(word).rejudge(rules(word, "v2", 14))


def chart(word: str) -> Any:
    branch = (
        rb.flow_chart("subject", lambda s: s.update(s.args["item"]), id="load", stage_name=word)
        .add_decider("Posture", rules=rules(word), id="posture")
        .branch("protected", lambda s: s.set("verdict", "protected"), description=word)
        .branch("unprotected", lambda s: s.set("verdict", word))
        .branch("exempt", lambda s: s.set("verdict", "exempt"))
        .branch("declined", lambda s: s.set("verdict", "declined"))
        .end()
        .build()
    )
    return (
        rb.flow_chart(
            word, lambda s: s.update({"rows": rows(word), "token": f"tk-{word}"}), id="read"
        )
        .add_parallel_for_each(
            f"Each of {word}",
            id="each",
            items=lambda s: s["rows"],
            branch=branch,
            max_branches=9,
            into="results",
            subject="subject",
        )
        .add_function("Total", lambda s: s.set("total", len(s["rows"])), id="total")
        .build()
    )


@cache
def run(word: str) -> Any:
    return chart(word).run_sync(redact={"keys": ["token", "never met"]})


def rule_set_served(word: str) -> Any:
    """Rules as a policy lets them be seen that hides what they compare."""
    run = chart(word).run_sync(redact={"keys": ["policy"]})
    return rb.load_recording(run.recording().to_dict()).rule_sets()[0]


def tool(word: str) -> Any:
    def ages(host: str, days: int = 7) -> dict[str, Any]:
        return {"rows": []}

    return rb.tool(ages, name="ages", description=f"Ages of {word}.")


@cache
def shelf(word: str) -> Any:
    """A store with two artifacts, what filing them gave, and what had to leave."""
    store = rb.InMemoryArtifacts()
    bound = BoundArtifacts(store, ArtifactScope("c1"), {"toolCallId": "t1"})
    for label in ("first", word):
        filed = bound.put_sync(
            {"kind": "note", "mediaType": "text/plain", "data": word, "label": label}
        )
    return SimpleNamespace(
        store=store, bound=bound, filed=filed, record=bound.get_sync(filed.meta.ref)
    )


def kept(word: str) -> Any:
    records = KeptRecords(2)
    for number in range(3):
        records.keep(run(word), tool="ages", call_id=f"call_{number}", session_id="s")
    return records


def sqlite(word: str) -> Any:
    return filled(rb.SqliteArtifacts(Path(_FOLDER.name, f"{next(_NUMBERS)}.db")), word)


def filled(store: Any, word: str) -> Any:
    BoundArtifacts(store, ArtifactScope("c1")).put_sync(
        {"kind": "note", "mediaType": "text/plain", "data": word, "label": word}
    )
    return store


def files(word: str) -> Any:
    return filled(rb.FileArtifacts(Path(_FOLDER.name, f"{next(_NUMBERS)}.db")), word)


def remote(word: str) -> Any:
    return filled(rb.RemoteArtifacts(f"memory://{next(_NUMBERS)}.db"), word)


def shared(word: str) -> Any:
    findings = tuple(
        ShareFinding(action, f"value under the name {word}", f"the source of {word}")
        for action in ("removed", "replaced", "kept", "not checked")
    )
    return SharedNotebook(name=word, findings=findings, cells=3, outputs=2, answers=1)


def kept_runs(word: str) -> Any:
    runs = rb.Runs(Path(_FOLDER.name, f"{next(_NUMBERS)}.db"))
    for _ in range(2):
        runs.add(answer(word), session=word)
    return runs


def journal(word: str, one: Any) -> Any:
    book, at = rb.Playbook(id=word, name=word, version=word), datetime(2026, 11, 29, tzinfo=UTC)
    policy = {"profile": word}
    one.append([Begun(seq=1, at=at, playbook=book, digest=word, policy=policy, skills={})])
    return one


def journal_place() -> Path:
    folder = Path(_FOLDER.name, f"{next(_NUMBERS)}.journals")
    folder.mkdir()
    return folder / "journal"


def store_report(word: str) -> Any:
    outcomes = ("held", "broken", "unchecked")
    claims = [StoreClaim(one, f"law {word}", one, word, word, "") for one in outcomes]
    return StoreReport(store=word, claims=tuple(claims))


def forged(word: str) -> Any:
    """An answer in which somebody changed a row."""
    told = answer(word).to_dict(dossier=True)
    told["result"]["verdicts"][0]["verdict"] = word
    return rb.Envelope.from_dict(told)


def playbook_hook(word: str) -> Any:
    """A hook over runs of every kind: followed, refused, left alone, closed, dropped."""
    steps = [
        PlaybookStep(id=word, description=word, expected_tools=[word]),
        PlaybookStep(id=f"{word} 2", description=word, expected_tools=[f"{word} 2"]),
    ]

    def select(run: Any) -> Any:
        if run.run_id == "closed":
            raise ValueError(word)
        return None if run.run_id == "free" else Playbook(id=word, name=word, steps=steps)

    hook = PlaybookEnforcerHook(select=select, max_runs=4, lint="off")
    for run in ("dropped", word, f"{word} 2", "ended", "released"):
        hook.admit(word, {word: word}, run_id=run).settle()
        hook.admit(f"not {word}", run_id=run)
    hook.admit(f"{word} 2", run_id="ended").settle()
    hook.release("released")
    hook.release(f"{word} 2")
    for run in ("free", "closed"):
        hook.admit(word, run_id=run)
    return hook


def no_store(word: str) -> Any:
    return NoArtifacts(f"no store: {word}")


def playbook(word: str) -> Any:
    steps = [
        PlaybookStep(id=f"{n} {word}", description=word, expected_tools=[word], hints=[word])
        for n in range(2)
    ]
    odd = PlaybookStep(
        id=word, description=word, uses=[word], expected_tools=[f"{word} 2"], max_tool_calls=0
    )
    return Playbook(id=word, name=word, steps=[*steps, odd])


def plan_events(word: str) -> list[Any]:
    """Give the events of a plan in which everything was said that can be."""
    book, at = playbook(word), datetime(2026, 11, 29, tzinfo=UTC)
    first, second, odd = (step.id for step in book.steps)
    told: list[tuple[type, dict[str, Any]]] = [
        (Begun, {"playbook": book, "digest": "", "policy": {"profile": "compat"}, "skills": {}}),
        (Admitted, {"call_id": "c1", "tool": word, "step_id": first, "arguments": {word: word}}),
        (Settled, {"call_id": "c1", "step_id": first, "outcome": "error", "error": word}),
        (Admitted, {"call_id": "c2", "tool": word, "step_id": first, "arguments": word}),
        (Settled, {"call_id": "c2", "step_id": first, "matched": (word,)}),
        (ViolationNoted, {"violation": "odd", "message": word, "step_id": first, "tool": word}),
        (Closed, {"step_id": first, "index": 0, "by": "person", "who": word, "note": word}),
        (Approved, {"step_id": second, "who": word, "note": word}),
        (Refused, {"call_id": "c3", "tool": word, "step_id": second, "violation": "odd"}),
        (Refused, {"call_id": "c4", "tool": f"{word} 4", "step_id": second, "violation": "odd"}),
        (Closed, {"step_id": second, "index": 1, "by": "cap"}),
        (Admitted, {"call_id": "c5", "tool": word, "step_id": odd}),
        (Stuck, {"step_id": odd, "reason": word}),
    ]
    events = []
    for number, (kind, fields) in enumerate(told, 1):
        if kind is Closed:
            fields["pointer"] = fields["index"] + 1
        events.append(kind(seq=number, at=at, **fields))
    return events


def enforced(word: str) -> Any:
    enforcer = PlaybookEnforcer.from_playbook(playbook(word), policy="compat")
    enforcer.settle(enforcer.admit(word, {word: word}), "error", error=word)
    enforcer.admit(f"{word} 7")
    return enforcer


def waiting(word: str) -> Any:
    """Give a plan whose step waits for an approval."""
    step = PlaybookStep(id=word, description=word, kind="approval", hints=[word])
    return PlaybookEnforcer.from_playbook(Playbook(id=word, name=word, steps=[step]))


def by_hand(word: str) -> Any:
    """Give work that was refused, with a note."""
    steps = [
        PlaybookStep(id=f"{word} 1", description=word, expected_tools=[f"{word} 2"], hints=[word]),
        PlaybookStep(id=word, description=word, expected_tools=[word]),
    ]
    book = Playbook(id=word, name=word, steps=steps)
    work = PlaybookEnforcer.from_playbook(book).step(word, by=word, note=word)
    work.ask()
    return work


def made_widget(make: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make a widget without a channel to a front end: the static views are what is looked at."""

    def made(word: str) -> Any:
        with settings(static=True):
            return make(word)

    return made


#: Class -> what makes an object of it.
SAMPLES: dict[type, Callable[[str], Any]] = {
    ArtifactPage: lambda word: shelf(word).bound.list_sync(),
    BoundArtifacts: lambda word: shelf(word).bound,
    CacaoLosses: lambda word: CacaoLosses(
        playbook=word,
        steps=2,
        source={"id": word},
        items=(
            CacaoLoss(effect="changed", what="parallel", places=(word,), note="in an order"),
            CacaoLoss(effect="kept", what=word, places=(word,) * 7, note="it has no effect"),
        ),
    ),
    EventLog: lambda word: EventLog(
        activity="tool",
        cases=1,
        records=tuple({**dict.fromkeys(COLUMNS), "concept:name": word} for _ in range(3)),
    ),
    Comparison: lambda word: answer(word).compare(again(word)),
    Explanation: lambda word: answer(word).why(f"b {word}"),
    Explorer: made_widget(lambda word: answer(word).explore()),
    FiledWalk: lambda word: rb.Envelope.from_dict(answer(word).to_dict()).walk,
    Flowchart: lambda word: answer(word).walk.flowchart(),
    KeptRecords: kept,
    NoArtifacts: no_store,
    type(NoArtifacts()._store): lambda word: no_store(word)._store,
    Progress: lambda word: Progress(
        word,
        "running",
        (StepProgress("read", "completed"), StepProgress(word, "current", 3, 12, 1)),
    ),
    PutResult: lambda word: shelf(word).filed,
    PlaybookEnforcerHook: playbook_hook,
    PlaybookLint: lambda word: playbook(word).lint([word], skills={}),
    EnforcementPolicy: lambda word: EnforcementPolicy("safe", always_allowed=[word]),
    EnforcementViolation: lambda word: EnforcementViolation(
        violation_type="unexpected_tool", step_id=word, tool_name=word, message=word, blocked=True
    ),
    Playbook: playbook,
    PlaybookPlan: lambda word: replay(plan_events(word)).plan,
    PlaybookRun: lambda word: run_of(plan_events(word)),
    PlaybookReport: lambda word: run_of(plan_events(word)).report,
    PlaybookEnforcer: enforced,
    Record: lambda word: shelf(word).record,
    Rejudged: again,
    Selection: lambda word: rb.select({"days": 30, "known": True, "policy": word}, rules(word)),
    ServedRules: rule_set_served,
    Revision: lambda word: rules(word).compare(rules(word, "v2", 14)),
    RuleLab: made_widget(lambda word: RuleLab(answer(word), rules(word, "v2", 14))),
    RunForm: made_widget(lambda word: RunForm(rb.Toolbox([tool(word)]), "ages")),
    PlaybookForm: made_widget(lambda word: PlaybookForm(waiting(word), word)),
    StepByHand: by_hand,
    Swept: lambda word: Swept.of(shelf(word).filed.meta, "capacity"),
    Ticket: lambda word: shelf(word).filed.meta,
    ToldDecision: lambda word: ToldDecision.of(rb.decide({"days": 30, "known": True}, rules(word))),
    VerdictTable: lambda word: answer(word).verdicts,
    Verification: lambda word: answer(word).verify(),
    Claim: lambda word: forged(word).verify().contradicted[0],
    WholeLog: lambda word: run(word).commits.whole(),
    _Absence: lambda word: _Absence(rb.absent(word, checked=[rb.Item(word, why=word)]), "ages"),
    rb.Chart: chart,
    rb.Commit: lambda word: run(word).commits[0],
    rb.CommitLog: lambda word: run(word).commits,
    rb.Decision: lambda word: rb.decide({"days": 30, "known": True}, rules(word)),
    rb.Envelope: answer,
    rb.InMemoryArtifacts: lambda word: shelf(word).store,
    rb.Judged: lambda word: rb.judge_frame(rows(word), rules(word)),
    rb.Ledger: lambda word: answer(word).ledger,
    rb.RecordedRun: lambda word: rb.load_recording(run(word).recording().to_dict()),
    rb.Recording: lambda word: run(word).recording(),
    rb.RedactionReport: lambda word: run(word).redaction,
    rb.RuleSet: rules,
    rb.Run: run,
    rb.FileArtifacts: files,
    rb.RemoteArtifacts: remote,
    rb.SqliteArtifacts: sqlite,
    SharedNotebook: shared,
    StoreReport: store_report,
    rb.JsonlJournal: lambda word: journal(word, rb.JsonlJournal(journal_place())),
    rb.SqliteJournal: lambda word: journal(word, rb.SqliteJournal(journal_place(), word)),
    rb.Runs: kept_runs,
    RunHistory: lambda word: kept_runs(word).history(),
    RunEntry: lambda word: kept_runs(word).entry(1),
    Forgotten: lambda word: kept_runs(word).forget(keep=0),
    rb.Structure: lambda word: run(word).structure,
    rb.Tool: tool,
    rb.Toolbox: lambda word: rb.Toolbox([tool(word)]),
    rb.Walk: lambda word: run(word).walk,
    rb.WalkPage: lambda word: run(word).walk.page(2, 8),
    rb.Why: lambda word: run(word).why("total"),
}
