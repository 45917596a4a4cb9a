"""What can happen to a plan: one frozen class for each kind of event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from datetime import datetime
from typing import Any, ClassVar, Final

from runbook_nb._ids import digest
from runbook_nb._json import canonical, to_wire
from runbook_nb._value import frozen
from runbook_nb.playbooks.model import Playbook, PlaybookPlan


def content_digest(told: Any) -> str:
    """Give the digest of values by what they are in JSON, whatever the order of their keys."""
    return digest(canonical(to_wire(told)))


def args_digest(arguments: Any) -> str | None:
    """Give a digest of what a call was called with, as it was recorded; None for nothing.

    Examples
    --------
    >>> args_digest(None) is None, args_digest({"a": 1, "b": 2}) == args_digest({"b": 2, "a": 1})
    (True, True)
    """
    return None if arguments is None else content_digest(arguments)


@frozen
class Event:
    """What all events have.

    Attributes
    ----------
    seq : int
        Its place among the events of its plan, from 1.
    at : datetime
        When it happened, by the clock of the settings.
    """

    kind: ClassVar[str] = ""

    seq: int
    at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON carries it, with its kind; `from_dict` reads it back."""
        told: dict[str, Any] = {"seq": self.seq, "at": self.at.isoformat(), "kind": self.kind}
        for name in FIELDS[self.kind]:
            value = getattr(self, name)
            told[name] = to_wire(
                value.model_dump() if isinstance(value, Playbook | PlaybookPlan) else value
            )
        if "arguments" in told:
            told["args_digest"] = args_digest(told["arguments"])
        return told


@frozen
class Begun(Event):
    """A plan was made.

    Attributes
    ----------
    playbook : Playbook
        What is to be followed.
    digest : str
        A digest of it.
    policy : mapping
        Every rule of the policy.
    skills : mapping
        Of each skill by its key what acts (``allowed_tools``, ``required_probes``,
        ``min_tool_calls``, ``max_tool_calls``) and its ``digest``.
    block, record : bool
        Whether violations block calls, and whether they are noted.
    key : str or None
        The run.
    hides : bool
        Whether something is hidden in what is kept.
    plan : PlaybookPlan or None
        How far it had come already, where it was handed over and not made.
    """

    kind: ClassVar[str] = "begun"

    playbook: Playbook
    digest: str
    policy: Mapping[str, Any]
    skills: Mapping[str, Any]
    block: bool = True
    record: bool = True
    key: str | None = None
    hides: bool = False
    plan: PlaybookPlan | None = None


@frozen
class Admitted(Event):
    """A call was let through.

    Attributes
    ----------
    call_id, tool : str
        The call, and what was called.
    step_id : str or None
        The step it was judged under.
    index : int or None
        Its place in the playbook.
    arguments : object
        What it was called with, redacted.
    parent, batch : str or None
        The call inside which it was made, and the reply it came in.
    housekeeping : bool
        Whether it belongs to no step.
    judged : bool
        False for a call that was recorded without having been asked for.
    early_for : str or None
        The later step whose tool this is.
    exact : bool
        Whether the arguments are kept as they were given: nothing hidden, all of it plain data.
    """

    kind: ClassVar[str] = "admitted"

    call_id: str
    tool: str
    step_id: str | None = None
    index: int | None = None
    arguments: Any = None
    parent: str | None = None
    batch: str | None = None
    housekeeping: bool = False
    judged: bool = True
    early_for: str | None = None
    exact: bool = True

    @property
    def args_digest(self) -> str | None:
        """A digest of the arguments as they are recorded."""
        return args_digest(self.arguments)


@frozen
class Refused(Event):
    """A call was not let through.

    Attributes
    ----------
    call_id, tool : str
        The call, and what was to be called.
    step_id : str or None
        The step it was judged under.
    arguments : object
        What it was to be called with, redacted.
    parent, batch : str or None
        The call inside which it was to be made, and the reply it came in.
    violation : str
        The type of what it went against.
    message : str
        What was said about it.
    hints : tuple of str
        What was said to help.
    blocked : bool
        What the violation says of itself.
    noted : bool
        Whether it stands among the violations.
    exact : bool
        Whether the arguments are kept as they were given: nothing hidden, all of it plain data.
    """

    kind: ClassVar[str] = "refused"

    call_id: str
    tool: str
    step_id: str | None = None
    arguments: Any = None
    parent: str | None = None
    batch: str | None = None
    violation: str
    message: str = ""
    hints: tuple[str, ...] = ()
    blocked: bool = True
    noted: bool = True
    exact: bool = True

    @property
    def args_digest(self) -> str | None:
        """A digest of the arguments as they are recorded."""
        return args_digest(self.arguments)


@frozen
class Settled(Event):
    """A call ended.

    Attributes
    ----------
    call_id : str
        The call.
    outcome : {"ok", "error", "cached", "retried", "cancelled"}
        What came of it.
    step_id : str or None
        The step it is filed under.
    filed : bool
        Whether it stands among the calls of that step's record.
    again : bool
        Whether it was told to have failed before, and stands there already.
    counted : bool
        Whether it counts towards that step's floor and cap.
    matched : tuple of str
        The probes that were first met by it.
    checks : tuple of str
        The checks it met.
    error : str or None
        What it failed with.
    result : object
        What it gave, redacted, where a check reads it.
    arguments : object
        What it was really called with, where that is not what it was admitted with.
    exact : bool
        Whether result and arguments are kept as they were given: nothing hidden, all plain data.
    """

    kind: ClassVar[str] = "settled"

    call_id: str
    outcome: str = "ok"
    step_id: str | None = None
    filed: bool = True
    again: bool = False
    counted: bool = True
    matched: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    error: str | None = None
    result: Any = None
    arguments: Any = None
    exact: bool = True


@frozen
class ViolationNoted(Event):
    """Something was not as the playbook has it, and was noted without refusing a call.

    Attributes
    ----------
    violation : str
        Its type.
    message : str
        What happened.
    step_id, tool, call_id : str or None
        What it concerns.
    blocked : bool
        What the violation says of itself.
    noted : bool
        Whether it stands among the violations; one that does not is still known to the step.
    """

    kind: ClassVar[str] = "violation"

    violation: str
    message: str
    step_id: str | None = None
    tool: str | None = None
    call_id: str | None = None
    blocked: bool = False
    noted: bool = True


@frozen
class Closed(Event):
    """A step was completed.

    Attributes
    ----------
    step_id : str
        The step.
    index : int
        Its place in the playbook.
    by : {"calls", "cap", "host", "person"}
        What closed it.
    who, note : str or None
        The person, and what was said.
    result : str or None
        What it was closed with.
    violations : tuple of str
        The types of what was noted at it.
    pointer : int
        Where the plan stands now.
    completed : bool
        Whether that was the end of the playbook.
    """

    kind: ClassVar[str] = "closed"

    step_id: str
    index: int
    by: str = "calls"
    who: str | None = None
    note: str | None = None
    result: str | None = None
    violations: tuple[str, ...] = ()
    pointer: int
    completed: bool = False


@frozen
class Skipped(Event):
    """An optional step was passed over.

    Attributes
    ----------
    step_id : str
        The step.
    index : int
        Its place in the playbook.
    reason : str or None
        Why.
    by : {"calls", "host", "person"}
        Who or what passed over it.
    who : str or None
        The person.
    pointer : int
        Where the plan stands now.
    completed : bool
        Whether that was the end of the playbook.
    """

    kind: ClassVar[str] = "skipped"

    step_id: str
    index: int
    reason: str | None = None
    by: str = "host"
    who: str | None = None
    pointer: int
    completed: bool = False


@frozen
class Failed(Event):
    """A step was marked as failed; it stays where it is.

    Attributes
    ----------
    step_id : str
        The step.
    error : str
        What it failed with.
    by : {"cap", "timeout", "host", "person"}
        Who or what marked it.
    who : str or None
        The person.
    """

    kind: ClassVar[str] = "failed"

    step_id: str
    error: str
    by: str = "host"
    who: str | None = None


@frozen
class Approved(Event):
    """A person approved a step.

    Attributes
    ----------
    step_id : str
        The step.
    who, note : str
        The person, and what was said.
    """

    kind: ClassVar[str] = "approved"

    step_id: str
    who: str
    note: str = ""


@frozen
class Declined(Event):
    """A person declined to approve a step: it is failed, and nothing can close it any more.

    Attributes
    ----------
    step_id : str
        The step.
    who, note : str
        The person, and what was said.
    """

    kind: ClassVar[str] = "declined"

    step_id: str
    who: str
    note: str = ""


@frozen
class TimedOut(Event):
    """A step was found to have taken longer than it may.

    Attributes
    ----------
    step_id : str
        The step.
    seconds : float
        How long it had taken.
    allowed : float
        How long it may take.
    """

    kind: ClassVar[str] = "timed_out"

    step_id: str
    seconds: float
    allowed: float


@frozen
class Stuck(Event):
    """No call can close a step any more.

    Attributes
    ----------
    step_id : str
        The step.
    reason : str
        Why, in a sentence.
    """

    kind: ClassVar[str] = "stuck"

    step_id: str
    reason: str


@frozen
class Reset(Event):
    """The plan was set back to its beginning.

    Attributes
    ----------
    who : str or None
        The person; told only where one is named.
    """

    kind: ClassVar[str] = "reset"

    who: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON carries it; a journal in which nobody is named has no such field."""
        told = Event.to_dict(self)  # with slots, no super() without arguments
        return told if self.who is not None else {k: v for k, v in told.items() if k != "who"}


@frozen
class Resumed(Event):
    """The plan was taken up again from what was kept of it.

    Attributes
    ----------
    after : int
        The sequence number of the last event that was kept.
    open : tuple of str
        Calls that were running when it was left. They are open until somebody tells what came of
        them.
    torn : str
        What was broken off at the end of the journal, in words.
    """

    kind: ClassVar[str] = "resumed"

    after: int
    open: tuple[str, ...] = ()
    torn: str = ""


@frozen
class Finished(Event):
    """The run ended.

    Attributes
    ----------
    verdict : {"pass", "pass_with_deviations", "incomplete", "declined"}
        What it comes to.
    unresolved : tuple of str
        Required steps that are not done.
    unmatched : mapping of str to tuple of str
        By step, the probes and checks that were not met.
    """

    kind: ClassVar[str] = "finished"

    verdict: str
    unresolved: tuple[str, ...] = ()
    unmatched: Mapping[str, Any] = field(default_factory=dict)


#: Every kind of event by its word.
KINDS: Final[dict[str, type[Event]]] = {
    one.kind: one
    for one in (
        Begun,
        Admitted,
        Refused,
        Settled,
        ViolationNoted,
        Closed,
        Skipped,
        Failed,
        Approved,
        Declined,
        TimedOut,
        Stuck,
        Reset,
        Resumed,
        Finished,
    )
}

#: By kind, the fields beside ``seq`` and ``at``.
FIELDS: Final = {kind: [f.name for f in fields(one)][2:] for kind, one in KINDS.items()}
