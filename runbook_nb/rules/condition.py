"""What one judged condition, and one judged function, was: as evidence and sentences have it."""

from __future__ import annotations

from typing import Any

from runbook_nb._frozen import Immutable
from runbook_nb._text import MISSING, visible
from runbook_nb._value import frozen
from runbook_nb.rules.operators import PRESENCE, PUBLISHED
from runbook_nb.rules.wording import (
    REDACTED,
    condition_text,
    limit_text,
    op_words,
    summary_of,
    unreadable_text,
    value_text,
)


@frozen(kw_only=False)
class Condition(Immutable):
    """One judged condition.

    Attributes
    ----------
    key, op, threshold : str, str, object
        What was asked.
    actual : object
        The value it was asked of; `MISSING` when there was none.
    result : bool or None
        True, false, or None when it could not be read.
    status : str or None
        Why it could not be read: ``missing``, ``null``, ``nan``, ``type_mismatch``,
        ``rule_error``.
    redacted : bool
        Whether actual and threshold are hidden.
    unit : str or None
        The declared unit of its numbers.

    Examples
    --------
    >>> Condition("age_days", "gt", 7, 30, True, None, False, "days").text
    'age_days 30 > 7 days'
    >>> Condition("age_known", "eq", False, True, False, None, False, None).text
    'age_known = false, was true'
    """

    key: str
    op: str
    threshold: Any
    actual: Any
    result: bool | None
    status: str | None
    redacted: bool
    unit: str | None

    @property
    def actual_summary(self) -> str:
        """The actual value in at most 80 characters, in the recorded words."""
        return REDACTED if self.redacted else summary_of(self.actual)

    @property
    def text(self) -> str:
        """The condition with its value: what held, what did not, what could not be read."""
        if self.result is None:
            return f"{self.unreadable_text}, needed for {self._declared}"
        if self.result is False:
            return f"{self._declared}, was {value_text(self.actual)}"
        key, actual, op, limit = self.apart or ("", "", "", "")
        return f"{visible(key)} {value_text(actual)} {op} {limit}" if op else self._declared

    @property
    def apart(self) -> tuple[str, Any, str, str] | None:
        """The comparison that held, as key, actual, operator and limit.

        None for one that did not hold, and for those whose value is what was asked for.
        """
        if self.result is not True or self.op == "eq" or self.op in PRESENCE:
            return None
        limit = limit_text(self.op, self.threshold, self.unit)
        return self.key, self.actual, op_words(self.op, self.threshold), limit

    @property
    def unreadable_text(self) -> str:
        """Why it could not be read: ``age_days is missing``."""
        return unreadable_text(self.key, self.op, self.threshold, self.actual, self.status)

    @property
    def _declared(self) -> str:
        return condition_text(self.key, self.op, self.threshold, self.unit)

    def to_dict(self) -> dict[str, Any]:
        """Give the condition as published evidence has it, with the raw values."""
        found = {
            "key": self.key,
            "op": PUBLISHED.get(self.op, self.op),
            "threshold": self.threshold,
            "actual": self.actual,
            "actualSummary": self.actual_summary,
            "result": self.result,
            "redacted": self.redacted,
        }
        if self.actual is MISSING:
            del found["actual"]
        if self.status is not None:
            found["status"] = self.status
        if self.unit is not None:
            found["unit"] = self.unit
        return found


@frozen(kw_only=False)
class FunctionResult(Immutable):
    """What a function rule read and gave, as it may be shown.

    Attributes
    ----------
    name : str
        The function, as sentences name it.
    inputs : tuple of (str, object, bool)
        Its reads in order: key, value, whether it is hidden.
    returned : object
        What it returned.
    result : bool or None
        Whether that counts as true; None when it raised.
    error : str or None
        The message, when it raised.
    error_type : str or None
        The name of what it raised.
    """

    name: str
    inputs: tuple[tuple[str, Any, bool], ...]
    returned: Any
    result: bool | None
    error: str | None
    error_type: str | None

    @property
    def text(self) -> str:
        """The rule with what it read: ``is_stale() is true of age_days 30``."""
        read = ", ".join(f"{visible(key)} {value_text(value)}" for key, value, _ in self.inputs)
        of = f" of {read}" if read else ""
        if self.result is None:
            return f"{self.name} raised {self.error_type}: {visible(self.error or '')}"
        return f"{self.name} is {'true' if self.result else 'false'}{of}"
