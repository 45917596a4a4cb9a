"""What was done to a notebook so that it can be handed on, told without a single secret.

Sharing layer. Every line says what, where and how often. What could not be looked into is said as
well: a report that keeps silent about it would claim more than was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted
from runbook_nb._value import frozen
from runbook_nb._view import Card, Column, Data, Prose, Section, Table

#: What became of something.
Action = Literal["removed", "replaced", "kept", "not checked"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

#: Said of every notebook.
_LIMITS: Final = (
    "Not looked for: a secret that stands under no name of one, and was not given as a value."
)


@frozen(kw_only=False)
class ShareFinding(Immutable):
    """One thing that was met.

    Attributes
    ----------
    action : {"removed", "replaced", "kept", "not checked"}
        What became of it.
    what : str
        What it is, in words; never a secret.
    place : str
        Where it stood.
    times : int
        How often.
    """

    action: Action
    what: str
    place: str
    times: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Give the finding as JSON values."""
        return {
            "action": self.action,
            "what": self.what,
            "place": self.place,
            "times": self.times,
        }


class Findings:
    """Collects what is met, each thing once for each place."""

    def __init__(self) -> None:
        self._met: dict[tuple[Action, str, str], int] = {}

    def add(self, action: Action, what: str, place: str, times: int = 1) -> None:
        """Take something in."""
        if times:
            key = action, what, place
            self._met[key] = self._met.get(key, 0) + times

    def said(self, hide: Callable[[str], str]) -> Findings:
        """Give the same, with what must not be seen taken out of their words."""
        made = Findings()
        for (action, what, place), times in self._met.items():
            made.add(action, hide(what), hide(place), times)
        return made

    def all(self) -> Iterator[ShareFinding]:
        """Give all of them, what was removed first, each kind in the order it was met."""
        for wanted in ACTIONS:
            for (action, what, place), times in self._met.items():
                if action == wanted:
                    yield ShareFinding(action=action, what=what, place=place, times=times)


@frozen(repr=False)
class SharedNotebook(Immutable, Renderable):
    """What was done to a notebook so that it can be handed on.

    Attributes
    ----------
    name : str
        The file's name.
    written : Path or None
        Where the notebook that can be handed on was written; None when nothing was.
    findings : tuple of ShareFinding
        What was removed, replaced, kept and not checked.
    cells, outputs, answers : int
        How many there are in it; answers are those that can be read back.
    text : str
        The file that can be handed on, as text.
    never : tuple of str
        Names and patterns of the policy that met nothing.

    Examples
    --------
    >>> finding = ShareFinding("removed", "execution timing", "cell 1")
    >>> SharedNotebook(name="a.ipynb", findings=(finding,), cells=1, outputs=0, answers=0)
    <SharedNotebook a.ipynb · 1 removed, 0 replaced, 0 kept, 0 not checked>
    """

    name: str
    findings: tuple[ShareFinding, ...]
    cells: int
    outputs: int
    answers: int
    written: Path | None = None
    text: str = field(default="", repr=False)
    never: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing had to be removed or replaced."""
        return not any(one.action in ("removed", "replaced") for one in self.findings)

    def count(self, action: Action) -> int:
        """Count the things of which so much was made."""
        return sum(one.times for one in self.findings if one.action == action)

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON values."""
        return {
            "name": self.name,
            "written": None if self.written is None else str(self.written),
            "clean": self.clean,
            "counts": {action: self.count(action) for action in ACTIONS},
            "cells": self.cells,
            "outputs": self.outputs,
            "answers": self.answers,
            "findings": [one.to_dict() for one in self.findings],
            "never": list(self.never),
        }

    def view(self) -> Card:
        """Show every finding with its place."""
        counts = ", ".join(f"{self.count(action)} {action}" for action in ACTIONS)
        return Card(
            kind="SharedNotebook",
            name=self.name,
            headline=counts,
            sections=tuple(self._sections()),
            closing=(
                f"{counted(self.cells, 'cell')}, {counted(self.outputs, 'output')}, "
                f"{counted(self.answers, 'answer')} that can be read back",
            ),
            remarks=(_LIMITS,),
        )

    def _sections(self) -> Iterator[Section]:
        grouped: Mapping[Action, list[ShareFinding]] = {action: [] for action in ACTIONS}
        for one in self.findings:
            grouped[one.action].append(one)
        for action, found in grouped.items():
            if not found:
                continue
            table = Table(
                columns=(
                    Column(head="what"),
                    Column(head="where"),
                    Column(head="times", align="right", in_text="labelled"),
                ),
                rows=tuple(
                    (Data(value=one.what), Data(value=one.place), one.times) for one in found
                ),
                total=len(found),
                rest="report.findings",
            )
            yield Section(label=action.capitalize(), parts=(table,))
        if not self.findings:
            prose = Prose(text="Nothing in it had to be removed or replaced.")
            yield Section(label="", parts=(prose,))
        if self.never:
            names = [part for name in self.never for part in (Data(value=name), ",")]
            said = ("Nothing was met by", *names[:-1], ": a misspelt name hides nothing.")
            yield Section(label="", parts=(Prose(text=said, tone="warning"),))
