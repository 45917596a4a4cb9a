"""What evidence a step still asks for: the probes, checks and validation that no call has met.

Everything here reads the terms and the state of a plan and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from runbook_nb.playbooks.model import RequiredProbe, StepExecution
from runbook_nb.playbooks.state import Call, PlanState
from runbook_nb.playbooks.terms import StepTerms

if TYPE_CHECKING:
    from runbook_nb.playbooks.checks import CheckOutcome


def unmatched_probes(terms: StepTerms, record: StepExecution | None) -> list[str]:
    """Name the probes of a step that no call has met, as declared."""
    if not terms.probes:
        return []
    probes: Iterable[RequiredProbe] = terms.probes
    return (record or StepExecution(step_id=terms.id)).unmatched_probes(probes)


def failing_checks(terms: StepTerms, state: PlanState) -> list[CheckOutcome]:
    """Give what came of the checks of a step, and of its validation, that do not hold."""
    return [one for one, _ in _failing(terms, state)]


def unmet_evidence(terms: StepTerms, state: PlanState) -> list[str]:
    """Name the evidence of a step that is not there, as declared: probes, checks, validation.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookPlan, PlaybookStep
    >>> from runbook_nb.playbooks.policy import EnforcementPolicy
    >>> from runbook_nb.playbooks.terms import Terms
    >>> probes = [{"name": "sign-ins", "match": "index=auth"}]
    >>> step = PlaybookStep(id="look", description="Look.", required_probes=probes)
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> state = PlanState(PlaybookPlan(playbook=book), EnforcementPolicy())
    >>> unmet_evidence(Terms(book, {}, state.policy).steps[0], state)
    ['sign-ins']
    """
    return [name for name, _ in asked_evidence(terms, state)]


def asked_evidence(terms: StepTerms, state: PlanState) -> Iterator[tuple[str, str]]:
    """Give the evidence a step still asks for: what it is called, and what it is.

    Parameters
    ----------
    terms : StepTerms
        The step.
    state : PlanState
        The plan.
    """
    if terms.probes:
        unmatched = unmatched_probes(terms, state.plan.step_executions.get(terms.id))
        told = {probe.name: probe.description for probe in reversed(terms.probes)}
        yield from ((name, told[name] or "") for name in unmatched)
    yield from ((one.name, text) for one, text in _failing(terms, state))


def is_past_showing(terms: StepTerms, state: PlanState) -> bool:
    """Say whether a step is held for a validation that no call can meet any more.

    A cap would close it all the same.
    """
    if state.policy.evidence != "hold" or terms.cap is not None:
        return False
    if terms.checks is None or terms.checks.validation is None:
        return False
    from runbook_nb.playbooks.checks import is_lost

    calls, how = _how(terms, state)
    return is_lost(terms.checks.validation, calls, **how)


def calls_of(state: PlanState, step_id: str) -> list[Call]:
    """Give the calls filed under a step, in order."""
    facts = state.steps.get(step_id)
    return [] if facts is None else [state.calls[one] for one in facts.calls if one in state.calls]


def _how(terms: StepTerms, state: PlanState) -> tuple[list[Call], dict[str, Any]]:
    facts = state.steps.get(terms.id)
    met = () if facts is None else facts.checks
    return calls_of(state, terms.id), {"met": met, "evidence_from": state.policy.evidence_from}


def _failing(terms: StepTerms, state: PlanState) -> Iterator[tuple[CheckOutcome, str]]:
    """Give each check that does not hold, with what it asks for in words."""
    if terms.checks is None:
        return
    from runbook_nb.playbooks.checks import evaluate_checks, evaluate_validation

    calls, how = _how(terms, state)
    checks = terms.checks.checks
    for check, came in zip(checks, evaluate_checks(checks, calls, **how), strict=True):
        if not came.is_met:
            yield came, check.text
    if terms.checks.validation is not None:
        came = evaluate_validation(terms.checks.validation, calls, **how)
        if not came.is_met:
            yield came, came.reason
