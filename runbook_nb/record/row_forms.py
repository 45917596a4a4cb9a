"""Rows of like branches, made from one form per shape: what differs is filled in.

Record layer. Of a thousand branches of one shape every row says the same but for the branch's
number and the values it compared. The form is made by the very words that `narrative` finds for a
single row, with blanks in the place of values, so the two cannot come to differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from runbook_nb._text import show
from runbook_nb.record.log import ROW_TYPES, Event, FanOut
from runbook_nb.record.narrative import condition_words, is_told_of_values, row_words
from runbook_nb.record.projection import RowInMaking, WalkRow
from runbook_nb.record.redact import Redactor
from runbook_nb.record.rulebook import functions_in
from runbook_nb.record.shapes import ShapeFacts
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.rules.evaluate import DecisionPath
from runbook_nb.rules.kinds import STATUSES
from runbook_nb.rules.wording import REDACTED, value_text

#: Texts and numbers up to here are said whole, whatever the law of summaries cuts short.
_SHORT: Final = 77
_PLAIN_INT: Final = 10**15

_BLANK: Final = re.compile("\ue000(\\d+)\ue001")


class _Blank(int):
    """Stands for the value at a place while a form is made: a number with a text of its own."""

    def __str__(self) -> str:
        return f"\ue000{int(self)}\ue001"


#: Gives the text of a row out of the values of a track and where they begin there.
Words = Callable[[Sequence[Any], int], str]


class _Form(NamedTuple):
    """A row without what differs: its words, or what makes them."""

    type: str
    depth: int
    stage: str | None
    stage_id: str
    text: str
    words: Words | None


class _Forms(NamedTuple):
    """Forms of rows in a row that are of one execution, inside the same mounted charts."""

    tail: str | None
    mounts: str
    rows: tuple[_Form, ...]


class RowForms:
    """The forms of a walk's branches.

    Parameters
    ----------
    redactor : Redactor
        One that knows no secret text: names are shown as they are.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, decide
    >>> made = decide({"age": 9}, [Rule({"age": {"gt": 7}}, "old")])
    >>> words = RowForms(Redactor(None)).words_of(made.path)
    >>> words((0, 31), 1)
    'old by rule 1: age 31 > 7 (tried: age 31 > 7)'
    """

    __slots__ = ("_forms", "_redactor", "_words")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._forms: dict[tuple[int, frozenset[str]], tuple[_Forms, ...]] = {}
        self._words: dict[tuple[DecisionPath, int], Words | None] = {}

    def branch(  # noqa: PLR0917 - what a block holds, and where its rows go
        self,
        fan: FanOut,
        index: int,
        prefix: str,
        facts: ShapeFacts,
        step: int,
        rows: list[WalkRow],
        *,
        without: frozenset[str] = frozenset(),
    ) -> None:
        """Add the rows of a branch of a fan-out that has no fan-outs in it, from a step on.

        Those of some types may be left out.
        """
        forms = self._forms.get((id(facts), without))
        if forms is None:
            forms = self._forms[id(facts), without] = self._forms_of(facts, without)
        ref = fan.stage
        values, offset = fan.part(index)
        stem = f"{prefix}{ref.path}"
        outer = stem[:-1] or None
        mount, name = f"{ref.id}~{index}", f"{ref.name} [{index}]"
        place = f"{stem}{mount}"
        inside, named = f"{place}/", f"{place}#{fan.execution}"
        said = name if name.isascii() and name.isprintable() else show(name)
        at = step
        if "subflow" not in without:
            rows.append(_row(at, "subflow", 0, name, mount, named, outer, f"Entered {said}"))
            at += 1
        if "step" not in without:
            rows += (
                _row(at, "step", 1, name, mount, named, outer, "Received item"),
                _row(at + 1, "step", 1, name, mount, named, outer, "Received index"),
            )
            at += 2
        add: Callable[[Any], None] = rows.append
        for tail, mounts, some in forms:
            id_ = None if tail is None else inside + tail  # which rows of one execution share
            subflow = inside + mounts if mounts else place
            # As `_row` does it; millions are made here, so nothing is called for each of them.
            for kind, depth, stage, stage_id, text, words in some:
                made: Any = RowInMaking()
                made.step = at
                made.type = kind
                made.depth = depth
                made.stage = stage
                made.stage_id = stage_id
                made.runtime_stage_id = id_
                made.subflow = subflow
                made.text = text if words is None else words(values, offset)
                made.__class__ = WalkRow
                add(made)
                at += 1
        if "subflow" in without:
            return
        status = fan.status(index).replace("_", " ")
        add(_row(at, "subflow", 0, name, mount, named, outer, f"Left {said}: {status}"))

    def _forms_of(self, facts: ShapeFacts, without: frozenset[str]) -> tuple[_Forms, ...]:
        """Give the forms of a shape's rows, but for those of some types."""
        told = [
            event
            for event in facts.events
            if event.code.kind in ROW_TYPES and ROW_TYPES[event.code.kind][0] not in without
        ]
        return tuple(
            _Forms(*same, tuple(map(self._form, events))) for same, events in groupby(told, _of)
        )

    def _form(self, event: Event) -> _Form:
        code = event.code
        row_type, depth = ROW_TYPES[code.kind]
        words: Words | None = None
        text = ""
        if is_told_of_values(code):
            words = self._words_at(event)
        else:
            text = row_words(event, (), 0, self._redactor)
        stage = None if row_type == "fork" else code.stage.name
        return _Form(row_type, depth, stage, code.stage.id, text, words)

    def _words_at(self, event: Event) -> Words:
        """Give what makes the words of an event, at its place in the values of a branch."""
        path, at = event.code.path, event.at
        found = None if path is None else self.words_of(path, event.code.kind, at)
        if found is None:
            redactor = self._redactor
            return lambda values, offset: row_words(event, values, offset, redactor)
        return found

    def words_of(self, path: DecisionPath, kind: str = "decision", at: int = 0) -> Words | None:
        """Give what makes the words of decisions along a path; None where a form cannot.

        ``at`` is where their values begin among those of a branch.
        """
        if (path, at) not in self._words:
            self._words[path, at] = self._filled(path, kind, at)
        return self._words[path, at]

    def _filled(self, path: DecisionPath, kind: str, at: int) -> Words | None:
        if self._redactor.active or functions_in(path):
            return None  # which words there are may depend on the values
        if any(STATUSES[code] == "type_mismatch" for code in path.codes):
            return None
        made = Decision if kind == "decision" else Selection
        blanks = tuple(map(_Blank, range(len(path.codes))))
        text = condition_words(made(path, blanks))
        parts = _BLANK.split(text)
        if len(parts) // 2 != text.count("\ue000") or len(parts) // 2 != text.count("\ue001"):
            return None  # the rules themselves use the signs of blanks
        words, places = parts[::2], [at + int(place) for place in parts[1::2]]
        first, pairs = words[0], list(zip(places, words[1:], strict=True))

        def filled(values: Sequence[Any], offset: int) -> str:
            text = first
            for place, after in pairs:
                text += _said(values[offset + place]) + after
            return text

        return filled


def _of(event: Event) -> tuple[str | None, str]:
    """Give what the id of an event's execution ends in, and the mounted charts it is in."""
    ref = event.code.stage
    executed = event.execution >= 0 and event.code.kind != "ended"
    return f"{ref.key}#{event.execution}" if executed else None, ref.path[:-1]


def _row(  # noqa: PLR0917 - positions are what makes it fast
    step: int,
    kind: str,
    depth: int,
    stage: str,
    stage_id: str,
    runtime_stage_id: str,
    subflow: str | None,
    text: str,
) -> Any:
    made: Any = RowInMaking()
    made.step = step
    made.type = kind
    made.depth = depth
    made.stage = stage
    made.stage_id = stage_id
    made.runtime_stage_id = runtime_stage_id
    made.subflow = subflow
    made.text = text
    made.__class__ = WalkRow
    return made


def _said(value: Any) -> str:
    """Say a value as sentences do, briefly where it is as plain as most are."""
    cls = value.__class__
    if cls is bool:
        return "true" if value else "false"
    if cls is int and -_PLAIN_INT < value < _PLAIN_INT:
        return str(value)
    if cls is str and len(value) <= _SHORT and value.isascii() and value.isprintable():
        return value if value == REDACTED else f'"{value}"'
    return value_text(value)


__all__ = ["RowForms"]
