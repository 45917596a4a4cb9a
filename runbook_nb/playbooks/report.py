"""What a run under a playbook comes to: one verdict, and everything it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from runbook_nb._display import Renderable
from runbook_nb._value import frozen
from runbook_nb.playbooks.begun import skills_from
from runbook_nb.playbooks.closing import stuck_reason
from runbook_nb.playbooks.eventkinds import Event
from runbook_nb.playbooks.events import replay
from runbook_nb.playbooks.keeper import Keeper
from runbook_nb.playbooks.model import StepExecution, StepStatus
from runbook_nb.playbooks.state import STANDING
from runbook_nb.playbooks.terms import StepTerms, Terms
from runbook_nb.playbooks.unmet import unmet_evidence
from runbook_nb.playbooks.values import Kept

if TYPE_CHECKING:
    from runbook_nb._view import Card
    from runbook_nb.playbooks.state import Call


@frozen(repr=False)
class PlaybookReport(Renderable):
    """What a run under a playbook comes to.

    Attributes
    ----------
    verdict : {"pass", "pass_with_deviations", "incomplete", "declined"}
        ``declined`` when a person declined to approve a required step, ``incomplete`` when one is
        not done, ``pass`` when nothing went against the playbook.
    unresolved : tuple of str
        Required steps that are not done: not completed, or completed without successful calls of
        their tools.
    unmatched : mapping of str to tuple of str
        By step, the probes and checks that no call met.
    refused : tuple of Call
        The calls that were not let through.
    stuck : str or None
        Why no call could bring the run on.
    deviations : tuple of str
        The types of all that went against the playbook, in order, refusals too.
    score : float
        The mean share of probes per step; see `PlaybookEnforcer.adherence_score`.
    asking : int
        How many steps ask for evidence; the score says nothing where none does.
    steps : tuple of (str, str)
        Each step with where it stands, in order.
    declined : mapping of str to (str, str)
        By step, who declined to approve it, and what was said.
    running : tuple of str
        Calls of which nobody has told the end.
    policy : str
        The rules it was held to, in a few words.
    playbook, key : str or None
        The playbook's name, and the run.

    Examples
    --------
    >>> PlaybookReport(verdict="pass", score=1.0).passed
    True
    """

    verdict: str
    unresolved: tuple[str, ...] = ()
    unmatched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused: tuple[Call, ...] = ()
    stuck: str | None = None
    deviations: tuple[str, ...] = ()
    score: float = 1.0
    steps: tuple[tuple[str, str], ...] = ()
    running: tuple[str, ...] = ()
    declined: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    policy: str = "safe"
    playbook: str | None = None
    key: str | None = None
    asking: int = 0

    @property
    def passed(self) -> bool:
        """Whether every required step is done."""
        return self.verdict not in ("incomplete", "declined")

    def view(self) -> Card:
        """Show the verdict with all it stands on; the score never stands alone."""
        from runbook_nb.playbooks.rulecards import report_card

        return report_card(self)


def report_of(keeper: Keeper) -> PlaybookReport:
    """Say what a run has come to by now.

    Parameters
    ----------
    keeper : Keeper
        The plan and its terms.
    """
    terms, state = keeper.terms, keeper.state
    unresolved = tuple(one.id for one in unresolved_steps(keeper))
    refused = tuple(call for call in state.calls.values() if call.outcome == "refused")
    deviations = [call.violation or "" for call in refused if call.step_id is None]
    for facts in state.steps.values():
        deviations += [*facts.refused.elements(), *facts.violations]
    if state.record:  # in the order in which they happened
        deviations = [one.violation_type for one in state.violations]
    deviations = [one for one in deviations if one not in STANDING]
    unmatched = {one.id: names for one in terms.steps if (names := _unmatched(keeper, one))}
    declined = {
        one.id: facts.declined[:2]
        for one in terms.steps
        if (facts := state.facts_of(one.id)).declined is not None
    }
    verdict = "pass_with_deviations" if deviations else "pass"
    if unresolved:
        verdict = "incomplete" if declined.keys().isdisjoint(unresolved) else "declined"
    return PlaybookReport(
        verdict=verdict,
        unresolved=unresolved,
        unmatched=unmatched,
        refused=refused,
        stuck=stuck_reason(terms, state),
        deviations=tuple(deviations),
        score=score_of(keeper),
        asking=sum(1 for one in terms.steps if one.probes),
        steps=tuple((one.id, _status(keeper, one)) for one in terms.steps),
        running=tuple(call.call_id for call in state.calls.values() if call.outcome is None),
        declined=declined,
        policy=state.policy.label,
        playbook=terms.playbook.name,
        key=state.key,
    )


def served_report(report: PlaybookReport, text: Callable[[str], str]) -> PlaybookReport:
    """Give a report under names as a policy lets them be seen.

    Parameters
    ----------
    report : PlaybookReport
    text : callable
        Takes the secrets out of a text.
    """
    return replace(
        report,
        unresolved=tuple(map(text, report.unresolved)),
        unmatched={text(k): tuple(map(text, names)) for k, names in report.unmatched.items()},
        refused=tuple(replace(call, tool=text(call.tool)) for call in report.refused),
        stuck=None if report.stuck is None else text(report.stuck),
        steps=tuple((text(step), status) for step, status in report.steps),
        declined={text(step): said for step, said in report.declined.items()},
        playbook=None if report.playbook is None else text(report.playbook),
    )


def report_on(events: Iterable[Event]) -> PlaybookReport:
    """Say what a run has come to, judged from its events alone."""
    state = replay(events)
    terms = Terms(state.playbook, skills_from(state.skills), state.policy)
    return report_of(Keeper(terms, state, Kept(None)))


def unresolved_steps(keeper: Keeper) -> list[StepTerms]:
    """Give the required steps that are not done, in order."""
    return [
        one
        for one in keeper.terms.steps
        if one.step.required
        and (not keeper.state.plan.is_step_complete(one.id) or keeper.lacks_tools(one))
    ]


def _status(keeper: Keeper, one: StepTerms) -> str:
    record = keeper.state.plan.step_executions.get(one.id)
    if record is None:
        return "pending"
    declined = record.status is StepStatus.FAILED and keeper.state.facts_of(one.id).declined
    return "declined" if declined else record.status.value


def _unmatched(keeper: Keeper, one: StepTerms) -> tuple[str, ...]:
    record = keeper.state.plan.step_executions.get(one.id)
    if not one.step.required and (record is None or record.status is StepStatus.SKIPPED):
        return ()
    return tuple(unmet_evidence(one, keeper.state))


def score_of(keeper: Keeper, scope: str | None = None, count: Iterable[str] | None = None) -> float:
    """Give the mean share of evidence over some steps; 1.0 where there are none.

    A step that was not reached has left none of what it asks for: it counts as 0.

    Parameters
    ----------
    keeper : Keeper
        The plan and its terms.
    scope : {"reached", "required", "all"}, optional
        The steps; the policy's otherwise.
    count : iterable of str, optional
        Only records of these statuses count.
    """
    plan, by_id = keeper.state.plan, keeper.terms.by_id
    wanted = None if count is None else {StepStatus(word) for word in count}
    word = scope or keeper.state.policy.score_scope
    if word == "reached":
        ids = list(plan.step_executions)
    else:
        asked = [one for one in keeper.terms.steps if word == "all" or one.step.required]
        ids = list(dict.fromkeys(one.id for one in asked))
    shares = []
    for step_id in ids:
        record = plan.step_executions.get(step_id)
        if wanted is not None and (record is None or record.status not in wanted):
            continue
        shares.append(_share(by_id.get(step_id), record))
    return sum(shares) / len(shares) if shares else 1.0


def _share(one: StepTerms | None, record: StepExecution | None) -> float:
    if record is None:
        return 0.0
    return 1.0 if one is None or not one.probes else record.probe_coverage(one.probes)
