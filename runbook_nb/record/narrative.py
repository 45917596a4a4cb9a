"""The words of a walk's rows: one sentence per event, made when a row is looked at.

Record layer. Reads and writes name their key and never their value; conditions, events and errors
carry values, so every text here passes the redactor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from runbook_nb._text import counted, show
from runbook_nb.record.log import STEP_KINDS, Code, Event, FanOut
from runbook_nb.record.redact import PLACEHOLDER, Redactor
from runbook_nb.record.slots import error_words
from runbook_nb.rules.decision import Decision, Selection


class Told(str):
    """A sentence of a recording made elsewhere, in place of the facts behind it."""

    __slots__ = ()


def fork_words(fan: FanOut) -> str:
    """Say how a fan-out spread: how many branches, and what was left out."""
    if not fan.is_fan_out:
        names = ", ".join(show(item) for item in fan.items) or "nothing"
        began = fan.begun_count
        words = f"Forked into {names}"
        return words if began == len(fan) else f"{words}; {began} of {len(fan)} began"
    began = fan.begun_count
    words = f"Fanned out: {began} of {len(fan)} items began a branch"
    left = len(fan) - min(fan.cap, len(fan))
    return f"{words}; {left} past the cap of {fan.cap} did not" if left else words


def row_words(event: Event | None, values: Sequence[Any], offset: int, redactor: Redactor) -> str:
    """Say one event in words; values appear only in conditions, events and errors."""
    if event is None:
        return ""
    code = event.code
    key = redactor.text(show(code.key)) if code.key is not None else ""
    value = values[offset + event.at] if code.kind in _WITH_VALUE else None
    if code.kind in _VERBS:
        return f"{_VERBS[code.kind]} {key}"
    if code.kind in ("enter", "leave"):
        name = show(code.stage.name)
        words = f"Entered {name}" if code.kind == "enter" else f"Left {name}: {key}"
        return redactor.text(words)
    if code.kind == "stage":
        verb = "Came to step" if code.stage.kind == "step" else "Ran"
        return redactor.text(f"{verb} {show(code.stage.name)}")
    if code.kind == "ended":
        # The key says when: before a stage, or after the last one.
        words = f"Ended {key} stage {show(code.stage.name)}: {error_words(value)}"
        return redactor.text(words)
    if code.path is not None:
        start = offset + event.at
        actuals = tuple(values[start : start + len(code.path.codes)])
        made = Decision if code.kind == "decision" else Selection
        return redactor.text(condition_words(made(code.path, actuals, redactor)))
    if code.kind == "reset":
        return "Began again: nothing done before counts"
    if code.kind in STEP_KINDS:
        from runbook_nb.record.steps import step_words

        return redactor.text(step_words(code.kind, key, _told_of(value, redactor)))
    return redactor.text(_value_words(code.kind, key, value, redactor))


def _told_of(value: Any, redactor: Redactor) -> dict[str, Any]:
    """Serve what a step's event tells, under the names of its form."""
    return {name: redactor.scrub(part) for name, part in value.items()}


def is_told_of_values(code: Code) -> bool:
    """Say whether the words of a code differ with what was recorded there."""
    return code.path is not None or code.kind in _WITH_VALUE


_WITH_VALUE: Final = frozenset(
    {
        *("emit", "choice", "choices", "stop", "pause", "resume"),
        *("retry", "error", "ended", "loop", "streamed"),
        *STEP_KINDS,
    }
)

_VERBS: Final = {
    "read": "Read",
    "write": "Wrote",
    "update": "Merged into",
    "append": "Appended to",
    "delete": "Deleted",
    "received": "Received",
}


def _value_words(kind: str, key: str, value: Any, redactor: Redactor) -> str:
    if kind == "emit":
        hidden = redactor.hides_emit(key)
        return f"Emitted {key}: {PLACEHOLDER if hidden else show(redactor.scrub(value))}"
    if kind == "choice" and isinstance(value, Told):
        return f"Chose {key}, as told: {show(value)}"
    if kind == "choice":
        answered = "" if value == key else f", for the answer {show(redactor.scrub(value))}"
        return f"Chose {key} without evidence{answered}"
    if kind == "choices":
        named = ", ".join(show(redactor.scrub(one)) for one in value) or "nothing"
        return f"Selected {named} without evidence"
    if kind == "loop":
        return f"Went back to {key}, pass {value + 1}"
    if kind == "resume":
        return f"Went on with the answer {show(redactor.scrub(value))}"
    if kind == "streamed":
        tokens = counted(value["tokens"], "token")
        cut = "" if value["complete"] else ", cut short"
        return f"Streamed {tokens} to {show(value['stream'])}{cut}"
    if kind == "stop":
        return "Stopped here" + (f": {show(value)}" if value else "")
    if kind == "pause":
        return f"Paused: {show(value['reason'])}"
    if kind == "retry":
        return (
            f"Attempt {value['attempt']} of {value['attempts']} failed, "
            f"{error_words(value['error'])}; tried again"
        )
    return f"Failed: {error_words(value)}"


def condition_words(decision: Decision | Selection) -> str:
    """Say a decision in words: what it chose and why, then every condition that was tried."""
    tried = "; ".join(condition.text for condition in decision.conditions)
    return f"{decision.sentence} (tried: {tried})" if tried else decision.sentence
