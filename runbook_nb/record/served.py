"""What becomes of recorded values when a log is written: they stay, or a policy goes over them.

Record layer. A value is served here as the other views of a run serve it: by the key it stands
under, by the kind of what was recorded, a decision's values by the key of each condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from runbook_nb._frozen import FrozenDict
from runbook_nb.record.contents import CALLS
from runbook_nb.record.log import Code, FanOut
from runbook_nb.record.redact import PLACEHOLDER, Redactor
from runbook_nb.record.slots import Slots
from runbook_nb.rules.hiding import Hider


class Values(Protocol):
    """What `write_log` asks about everything it writes."""

    @property
    def hide(self) -> Hider | None:
        """What hides the values and limits of decisions; None when nothing does."""
        ...

    def text(self, text: str, /) -> str:
        """Give a name or a sentence."""
        ...

    def value(self, code: Code, value: Any, /, *, branch: bool) -> Any:
        """Give the value of a code that is no decision; ``branch``: of a branch's own track."""
        ...

    def item(self, fan: FanOut, item: Any, /) -> Any:
        """Give an item of a fan-out."""
        ...

    def beside(self, name: str, value: Any, /) -> Any:
        """Give a value that goes beside the log."""
        ...

    def by_reference(self, slots: Slots, /) -> bool:
        """Whether slots may be written as a reference to their fan-out."""
        ...


class AsRecorded:
    """Everything as it was recorded: for those who go on from it.

    Examples
    --------
    >>> AS_RECORDED.text("t0p-s3cret")
    't0p-s3cret'
    """

    hide: Hider | None = None

    def text(self, text: str, /) -> str:
        """Give the text."""
        return text

    def value(self, code: Code, value: Any, /, *, branch: bool) -> Any:
        """Give the value."""
        return value

    def item(self, fan: FanOut, item: Any, /) -> Any:
        """Give the item."""
        return item

    def beside(self, name: str, value: Any, /) -> Any:
        """Give the value."""
        return value

    def by_reference(self, slots: Slots, /) -> bool:
        """Slots that nobody served show what the log holds."""
        return slots.redactor is None


AS_RECORDED: Final = AsRecorded()

#: Values in a form of ours, whose own keys stay.
_FORMS: Final = frozenset({"error", "ended", "retry", "streamed"})


class Served:
    """Everything as a policy lets it be seen.

    Parameters
    ----------
    redactor : Redactor
        With the secrets of the run.

    Examples
    --------
    >>> from runbook_nb.record.redact import Redact
    >>> from runbook_nb.record.log import StageRef
    >>> served = Served(Redactor(Redact(keys=("token",))))
    >>> write = Code("write", StageRef("a", "A", "stage"), "token")
    >>> served.value(write, "s3cr3t", branch=False)
    '[REDACTED]'
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.hide: Hider | None = redactor

    def text(self, text: str, /) -> str:
        """Hide secret texts in a name."""
        return self._redactor.text(text)

    def value(self, code: Code, value: Any, /, *, branch: bool) -> Any:
        """Give the value of a code as the views of a run show it."""
        redactor, kind, key = self._redactor, code.kind, code.key or ""
        if kind in ("write", "update"):
            return redactor.value(key, value)
        if kind == "append":
            return redactor.item(key, value)
        if kind == "emit":
            return PLACEHOLDER if redactor.hides_emit(key) else redactor.scrub(value)
        if kind == "result":
            return self._result(value, branch)
        if kind == "enter":
            return redactor.served(value)
        if kind in _FORMS and isinstance(value, Mapping):
            return FrozenDict(
                {name: redactor.texts(part, ours=False) for name, part in value.items()}
            )
        if kind == "pause" and isinstance(value, Mapping):
            return FrozenDict({name: redactor.under(name, part) for name, part in value.items()})
        if kind == "loop":
            return value
        if kind in CALLS and isinstance(value, Mapping):
            return FrozenDict({name: redactor.scrub(part) for name, part in value.items()})
        return redactor.scrub(value)

    def _result(self, value: Any, branch: bool) -> Any:
        if branch:  # it is the value of a slot
            return self._redactor.under("value", value, (), top=True)
        if isinstance(value, Mapping):
            return self._redactor.served(value)
        return self._redactor.scrub(value)

    def item(self, fan: FanOut, item: Any, /) -> Any:
        """Give an item as its slot shows it."""
        redactor = self._redactor
        if not fan.is_fan_out:  # the id of a child
            return self.text(item)
        served = redactor.under("item", item, (), top=True)
        subject = fan.subject
        if (
            isinstance(served, dict)
            and subject is not None
            and served.get(subject) is not None
            and redactor.hides_key(subject)
        ):
            return FrozenDict({**served, subject: PLACEHOLDER})
        return served

    def beside(self, name: str, value: Any, /) -> Any:
        """Give a state or an input as its view shows it."""
        return self._redactor.served(value) if isinstance(value, Mapping) else self.scrub(value)

    def scrub(self, value: Any) -> Any:
        """Hide named keys and secret texts in a value."""
        return self._redactor.scrub(value)

    def by_reference(self, slots: Slots, /) -> bool:
        """Slots show what the served log holds, unless a path of the policy leads into them."""
        return slots.redactor is self._redactor and not slots.paths


def served_by(redactor: Redactor) -> Values:
    """Give what `write_log` takes for a served log; everything as recorded without a policy.

    Examples
    --------
    >>> served_by(Redactor(None)) is AS_RECORDED
    True
    """
    return Served(redactor) if redactor.active else AS_RECORDED
