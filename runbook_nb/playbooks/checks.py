"""Checks: evidence as conditions on what calls were given and what they gave.

A check asks whether *some* call of a step meets one condition. Its answer has three values: met,
unmet, or unreadable, when no call meets it and of one it could not be told. What a condition
means is the law of rules (`runbook_nb.rules`); nothing is evaluated as code. Reasons name fields
and limits, which the author wrote, and never a value that was found, which may be a secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Final, Literal, Protocol

from runbook_nb._frozen import FrozenDict, Immutable
from runbook_nb._text import MISSING, clip, counted, visible
from runbook_nb._value import frozen
from runbook_nb.playbooks.paths import value_at
from runbook_nb.rules.kinds import ERROR, RESULTS, STATUSES
from runbook_nb.rules.operators import PRESENCE, compile_condition
from runbook_nb.rules.wording import REDACTED, condition_text, needed_words

#: Where a check looks.
Source = Literal["arguments", "result", "call"]

#: What a check comes to.
Outcome = Literal["met", "unmet", "unreadable"]

SOURCES: Final[tuple[Source, ...]] = ("arguments", "result", "call")

#: What there is to look at of a call itself.
CALL_FIELDS: Final = ("call_id", "tool", "outcome", "error", "arguments", "result")


class CheckedCall(Protocol):
    """What is asked of a recorded call; ``result`` is `MISSING` where it was not kept."""

    @property
    def call_id(self) -> str: ...  # noqa: D102
    @property
    def tool(self) -> str: ...  # noqa: D102
    @property
    def outcome(self) -> str | None: ...  # noqa: D102
    @property
    def error(self) -> str | None: ...  # noqa: D102
    @property
    def arguments(self) -> Any: ...  # noqa: D102
    @property
    def result(self) -> Any: ...  # noqa: D102
    @property
    def succeeded(self) -> bool: ...  # noqa: D102


@frozen
class Check(Immutable):
    """One condition on calls.

    Attributes
    ----------
    name : str
        What the evidence is called.
    key : str
        What tells it from all others of its step.
    tool : str or None
        The tool whose calls are looked at; None for all.
    source : str
        ``arguments``, ``result`` or ``call``.
    path : str
        Where in the source; empty for all of it.
    steps : tuple of str
        The path, read.
    op : str
        The operator, by its name among rules.
    value : object
        Its limit.

    Examples
    --------
    >>> check = Check(name="auth logs", key="auth logs", tool="query_siem", op="eq", value="auth",
    ...               path="index", steps=("index",))
    >>> check.text
    'query_siem with arguments.index = "auth"'
    """

    name: str
    key: str
    tool: str | None = None
    source: Source = "arguments"
    path: str = ""
    steps: tuple[str, ...] = ()
    op: str = "exists"
    value: Any = True
    test: Callable[[Any], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "test", compile_condition(self.op, self.value))

    @property
    def place(self) -> str:
        """Where it looks: ``arguments.index``."""
        if not self.path:
            return self.source
        return f"{self.source}{'' if self.path.startswith('[') else '.'}{visible(self.path)}"

    @property
    def text(self) -> str:
        """What it asks for."""
        of = f"{clip(visible(self.tool), 60)} with " if self.tool is not None else ""
        return f"{of}{condition_text(self.place, self.op, self.value)}"

    def is_about(self, call: CheckedCall, evidence_from: str = "successful") -> bool:
        """Say whether it looks at this call."""
        if self.tool is not None and call.tool != self.tool:
            return False
        return call.succeeded or evidence_from == "attempted" or self.source == "call"

    def judge(self, call: CheckedCall) -> int:
        """Judge one call, with an outcome code of rules."""
        found = value_at(_whole(call, self.source), self.steps)
        if isinstance(found, str) and found == REDACTED and self.op not in PRESENCE:
            return ERROR  # what is hidden cannot be judged again
        return self.test(found)

    def unreadable_words(self, code: int) -> str:
        """Say why it could not be judged."""
        status = STATUSES[code]
        if status == "type_mismatch":
            return f"{self.place} is not {needed_words(self.op, self.value)}"
        if status == "rule_error":
            return f"{self.place} is hidden, or could not be read"
        return f"{self.place} is {'NaN' if status == 'nan' else status}"


def _whole(call: CheckedCall, source: Source) -> Any:
    if source == "call":
        return {name: getattr(call, name, MISSING) for name in CALL_FIELDS}
    return call.arguments if source == "arguments" else call.result


@frozen
class CheckOutcome(Immutable):
    """What a check, or a whole validation, came to.

    Attributes
    ----------
    name : str
        What was checked.
    outcome : str
        ``met``, ``unmet`` or ``unreadable``.
    reason : str
        Why, in words.
    call_id : str or None
        The call that met it.

    Examples
    --------
    >>> CheckOutcome(name="auth logs", outcome="met", reason="by call-1", call_id="call-1").is_met
    True
    """

    name: str
    outcome: Outcome
    reason: str
    call_id: str | None = None

    @property
    def is_met(self) -> bool:
        """Whether it is met."""
        return self.outcome == "met"


@frozen
class Validation(Immutable):
    """What has to hold of all calls of a step together.

    Attributes
    ----------
    all_of, any_of : tuple of (Check or Validation), or None
        What has to hold together, and of what one has to.
    none_of : Check, Validation or None
        What must not hold.
    min_success : int
        How many calls have to succeed.
    calls : FrozenDict
        How many successful calls of each tool there have to be.

    Examples
    --------
    >>> Validation(min_success=2).min_success
    2
    """

    all_of: tuple[Check | Validation, ...] = ()
    any_of: tuple[Check | Validation, ...] = ()
    none_of: Check | Validation | None = None
    min_success: int = 0
    calls: FrozenDict = FrozenDict()

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks in it, however deep, in the order they are written."""
        parts = (*self.all_of, *self.any_of, *(() if self.none_of is None else (self.none_of,)))
        return tuple(
            check
            for part in parts
            for check in ((part,) if isinstance(part, Check) else part.checks)
        )


@frozen
class StepChecks(Immutable):
    """The checks and the validation of one step.

    Attributes
    ----------
    checks : tuple of Check
        Evidence it asks for.
    validation : Validation or None
        What has to hold when it closes.
    """

    checks: tuple[Check, ...] = ()
    validation: Validation | None = None

    @property
    def all(self) -> tuple[Check, ...]:
        """Every check, those of the validation too."""
        return self.checks + (self.validation.checks if self.validation else ())

    @property
    def reads_results(self) -> bool:
        """Whether one of them looks at what calls gave."""
        return any(
            check.source == "result"
            or (check.source == "call" and check.steps[:1] in ((), ("result",)))
            for check in self.all
        )

    def met_by(self, call: CheckedCall, evidence_from: str = "successful") -> tuple[str, ...]:
        """Name the checks that one call meets, by their keys, those of the validation too."""
        return tuple(
            check.key
            for check in self.all
            if check.is_about(call, evidence_from) and RESULTS[check.judge(call)]
        )


def evaluate_checks(
    checks: Iterable[Check],
    calls: Sequence[CheckedCall],
    *,
    met: Iterable[str] = (),
    evidence_from: str = "successful",
) -> tuple[CheckOutcome, ...]:
    """Say of each check what it comes to over the calls of a step.

    Parameters
    ----------
    checks : iterable of Check
        What is asked for.
    calls : sequence of CheckedCall
        The calls filed under the step.
    met : iterable of str, optional
        Keys of checks that were met when the calls ended; a record may hide what met them.
    evidence_from : str, optional
        ``"successful"`` or ``"attempted"``: whether calls that failed are looked at. A check of
        the ``call`` itself looks at all.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> call = SimpleNamespace(call_id="call-1", tool="query_siem", arguments={"index": "web"},
    ...                        result=None, outcome="ok", error=None, succeeded=True)
    >>> check = Check(name="auth logs", key="auth logs", path="index", steps=("index",),
    ...               op="eq", value="auth")
    >>> [(one.outcome, one.reason) for one in evaluate_checks([check], [call])]
    [('unmet', '1 call, none with arguments.index = "auth"')]
    """
    known = frozenset(met)
    return tuple([_outcome(check, calls, known, evidence_from) for check in checks])


def _outcome(
    check: Check, calls: Sequence[CheckedCall], known: frozenset[str], evidence_from: str
) -> CheckOutcome:
    about = [call for call in calls if check.is_about(call, evidence_from)]
    codes = [check.judge(call) for call in about]
    for call, code in zip(about, codes, strict=True):
        if RESULTS[code]:
            return CheckOutcome(
                name=check.name,
                outcome="met",
                reason=f"{check.text}, by {visible(call.call_id)}",
                call_id=call.call_id,
            )
    if check.key in known:
        return CheckOutcome(name=check.name, outcome="met", reason=f"{check.text}, when it ran")
    of = "" if check.tool is None else f" of {clip(visible(check.tool), 60)}"
    made = "successful call" if evidence_from == "successful" and check.source != "call" else "call"
    if not about:
        return CheckOutcome(name=check.name, outcome="unmet", reason=f"no {made}{of}")
    asked = condition_text(check.place, check.op, check.value)
    unreadable = [code for code in codes if RESULTS[code] is None]
    if unreadable:
        why = check.unreadable_words(unreadable[0])
        reason = f"{counted(len(about), 'call')}{of}: {why}, needed for {asked}"
        return CheckOutcome(name=check.name, outcome="unreadable", reason=reason)
    reason = f"{counted(len(about), 'call')}{of}, none with {asked}"
    return CheckOutcome(name=check.name, outcome="unmet", reason=reason)


def evaluate_validation(
    validation: Validation,
    calls: Sequence[CheckedCall],
    *,
    met: Iterable[str] = (),
    evidence_from: str = "successful",
) -> CheckOutcome:
    """Say what a validation comes to over the calls of a step.

    Together with something unmet, what is unreadable is unmet; otherwise it makes the whole
    unreadable, unless one of several that suffices is met.

    Examples
    --------
    >>> evaluate_validation(Validation(min_success=1), []).reason
    '0 of 1 successful call'
    """
    known = frozenset(met)

    def judge(part: Check | Validation) -> CheckOutcome:
        if isinstance(part, Check):
            return _outcome(part, calls, known, evidence_from)
        return evaluate_validation(part, calls, met=known, evidence_from=evidence_from)

    parts = [judge(part) for part in validation.all_of]
    if validation.any_of:
        parts.append(_one_of([judge(part) for part in validation.any_of]))
    if validation.none_of is not None:
        parts.append(_turned(judge(validation.none_of)))
    parts += _counts(validation, calls)
    failing = [part for part in parts if part.outcome == "unmet"]
    failing = failing or [part for part in parts if part.outcome == "unreadable"]
    outcome: Outcome = failing[0].outcome if failing else "met"
    reason = "; ".join(part.reason for part in (failing or parts))
    return CheckOutcome(name="validation", outcome=outcome, reason=reason)


def is_lost(
    part: Check | Validation,
    calls: Sequence[CheckedCall],
    *,
    met: Iterable[str] = (),
    evidence_from: str = "successful",
) -> bool:
    """Say whether no further call can make it met: what must not hold was shown.

    Examples
    --------
    >>> is_lost(Validation(min_success=1), [])
    False
    """
    if isinstance(part, Check):
        return False
    how: dict[str, Any] = {"met": met, "evidence_from": evidence_from}
    return (
        any(is_lost(one, calls, **how) for one in part.all_of)
        or (bool(part.any_of) and all(is_lost(one, calls, **how) for one in part.any_of))
        or (part.none_of is not None and _stays(part.none_of, calls, how))
    )


def _stays(part: Check | Validation, calls: Sequence[CheckedCall], how: dict[str, Any]) -> bool:
    """Say whether no further call can make it unmet."""
    if isinstance(part, Check):
        return evaluate_checks([part], calls, **how)[0].outcome != "unmet"
    return (
        all(_stays(one, calls, how) for one in part.all_of)
        and (not part.any_of or any(_stays(one, calls, how) for one in part.any_of))
        and (part.none_of is None or is_lost(part.none_of, calls, **how))
        and all(one.is_met for one in _counts(part, calls))
    )


def _one_of(parts: list[CheckOutcome]) -> CheckOutcome:
    for wanted in ("met", "unreadable"):
        for part in parts:
            if part.outcome == wanted:
                return part
    reason = f"none of these: {'; '.join(part.reason for part in parts)}"
    return CheckOutcome(name="any", outcome="unmet", reason=reason)


def _turned(part: CheckOutcome) -> CheckOutcome:
    turned: dict[Outcome, Outcome] = {"met": "unmet", "unmet": "met", "unreadable": "unreadable"}
    return CheckOutcome(name="not", outcome=turned[part.outcome], reason=f"not: {part.reason}")


def _counts(validation: Validation, calls: Sequence[CheckedCall]) -> list[CheckOutcome]:
    made = Counter(call.tool for call in calls if call.succeeded)
    asked = [("", sum(made.values()), validation.min_success)] if validation.min_success else []
    asked += [
        (f" of {clip(visible(tool), 60)}", made[tool], least)
        for tool, least in validation.calls.items()
    ]
    return [
        CheckOutcome(
            name="calls",
            outcome="met" if there >= least else "unmet",
            reason=f"{there} of {counted(least, 'successful call')}{of}",
        )
        for of, there, least in asked
    ]
