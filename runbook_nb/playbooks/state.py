"""The whole state of one plan: the published records, and the facts beside them.

A state is changed by `events.apply` and by nothing else, so that what is kept of a run, replayed,
gives the same state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from runbook_nb.playbooks.eventkinds import args_digest
from runbook_nb.playbooks.model import EnforcementViolation, Playbook, PlaybookPlan
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.record.steps import SUCCEEDED

#: What is noted of how a plan stands, and has words of its own: no deviation from the playbook.
STANDING: Final = ("step_stuck", "unresolved_step")


@dataclass(slots=True)
class Call:
    """What is known of one call.

    Attributes
    ----------
    call_id, tool : str
        What it is called, and what was called.
    step_id : str or None
        The step it is filed under; while it runs, the one it was admitted under.
    outcome : str or None
        ``ok``, ``error``, ``cached``, ``retried``, ``cancelled`` or ``refused``; None while it
        runs.
    started, ended : datetime or None
        When it was admitted (or refused) and when it was settled.
    admitted_under : str or None
        The step that it was judged under.
    index : int or None
        The place of that step in the playbook.
    arguments, result : object
        What it was called with and, where a check reads it, what it gave; redacted.
    error : str or None
        What it failed with.
    parent, batch : str or None
        The call inside which it was made, and the reply it came in.
    housekeeping : bool
        Whether it belongs to no step: a tool that is always allowed.
    judged : bool
        Whether it was judged before it was made; a call that was only recorded was not.
    counted : bool
        Whether it counts as a call of its step.
    violation : str or None
        The type of what it went against.
    matched : tuple of str
        The probes that were first met by it.
    checks : tuple of str
        The checks it met.
    early_for : str or None
        The later step whose tool it called before its time.
    seq : int
        The event that admitted or refused it.
    exact : bool
        Whether its arguments are kept as they were given.

    Examples
    --------
    >>> Call(call_id="call-1", tool="query_siem", step_id="detect").outcome is None
    True
    """

    call_id: str
    tool: str
    step_id: str | None = None
    outcome: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    admitted_under: str | None = None
    index: int | None = None
    arguments: Any = None
    result: Any = None
    error: str | None = None
    parent: str | None = None
    batch: str | None = None
    housekeeping: bool = False
    judged: bool = True
    counted: bool = False
    violation: str | None = None
    matched: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    early_for: str | None = None
    seq: int = 0
    exact: bool = True

    @property
    def succeeded(self) -> bool:
        """Whether it was made and came to something."""
        return self.outcome in SUCCEEDED


@dataclass(slots=True)
class StepFacts:
    """What is known of a step beside its published record.

    Attributes
    ----------
    step_id : str
        The step.
    calls : list of str
        The ids of the calls filed under it, in order.
    running : dict of str to str
        The calls admitted under it that have not ended: ids, and their tools.
    succeeded, attempted : Counter
        How often each tool was called with success, and at all.
    counted : int
        Calls that count towards its floor and cap under the policy.
    refused : Counter
        How many calls were refused under it, by the type of violation.
    first_result_at : datetime or None
        When its first call ended.
    closed_by, who, note : str or None
        ``calls``, ``cap``, ``host`` or ``person``; the person; what was said.
    skipped_because : str or None
        Why it was passed over.
    approvals : list of (str, str, datetime)
        Who approved it, with which note, when.
    declined : (str, str, datetime) or None
        Who declined to approve it, with which note, when.
    violations : list of str
        The types of what went against it without refusing a call, in order.
    checks : list of str
        The checks met so far, in the order in which they first were.
    timed_out_at : datetime or None
        When it was found to take too long.
    stuck : str or None
        Why no call can close it any more.
    early : list of str
        Calls that would satisfy it, made before it was current.

    Examples
    --------
    >>> StepFacts("detect").counted
    0
    """

    step_id: str
    calls: list[str] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    succeeded: Counter[str] = field(default_factory=Counter)
    attempted: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    first_result_at: datetime | None = None
    closed_by: str | None = None
    who: str | None = None
    note: str | None = None
    skipped_because: str | None = None
    approvals: list[tuple[str, str, datetime]] = field(default_factory=list)
    declined: tuple[str, str, datetime] | None = None
    violations: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    timed_out_at: datetime | None = None
    stuck: str | None = None
    early: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Noted:
    """A violation with what tells which call it was: the published form holds neither.

    Attributes
    ----------
    violation : EnforcementViolation
        What was noted.
    seq : int
        The event it came with.
    call_id : str or None
        The call.
    arguments : object
        What it was called with, redacted.

    Examples
    --------
    >>> Noted(EnforcementViolation(violation_type="unexpected_tool", message="not now"), 3).seq
    3
    """

    violation: EnforcementViolation
    seq: int
    call_id: str | None = None
    arguments: Any = None

    @property
    def args_digest(self) -> str | None:
        """A digest of what it was called with."""
        return args_digest(self.arguments)


@dataclass(slots=True)
class PlanState:
    """Everything that is known of one plan.

    Attributes
    ----------
    plan : PlaybookPlan
        The published plan.
    policy : EnforcementPolicy
        The rules it is held to.
    key : str or None
        The run it belongs to.
    block, record : bool
        Whether violations block calls, and whether they are noted.
    skills : mapping
        The skills it was made with, as they were written into its first event.
    steps : dict of str to StepFacts
        The facts of steps, by id.
    calls : dict of str to Call
        The calls, refused ones too, by id and in order.
    noted : list of Noted
        The violations.
    closed : set of int
        The places of steps that were closed or skipped.
    left : set of str
        Calls that were running when the plan was left, and of which nobody has told since.
    seq : int
        The sequence number of the last event.
    verdict : str or None
        What finishing gave.

    Examples
    --------
    >>> book = Playbook(id="ir", name="Incident response")
    >>> PlanState(PlaybookPlan(playbook=book), EnforcementPolicy()).violations
    []
    """

    plan: PlaybookPlan
    policy: EnforcementPolicy
    key: str | None = None
    block: bool = True
    record: bool = True
    skills: Mapping[str, Any] = field(default_factory=dict)
    steps: dict[str, StepFacts] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    noted: list[Noted] = field(default_factory=list)
    closed: set[int] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    seq: int = 0
    verdict: str | None = None

    @property
    def playbook(self) -> Playbook:
        """What is being followed."""
        return self.plan.playbook

    @property
    def violations(self) -> list[EnforcementViolation]:
        """The violations noted so far, in order; a copy."""
        return [one.violation for one in self.noted]

    def facts_of(self, step_id: str) -> StepFacts:
        """Give the facts of a step; empty ones, kept nowhere, where nothing happened to it."""
        return self.steps.get(step_id) or StepFacts(step_id)

    def touched(self, step_id: str) -> StepFacts:
        """Give the facts of a step that something happens to; for `events.apply` alone."""
        facts = self.steps.get(step_id)
        if facts is None:
            facts = self.steps[step_id] = StepFacts(step_id)
        return facts
