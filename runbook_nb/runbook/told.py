"""Decisions of which only the words are carried.

Bridge layer.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import clip, visible
from runbook_nb._value import frozen
from runbook_nb._view import Card
from runbook_nb.rules import Decision


@frozen(repr=False)
class ToldDecision(Renderable, Immutable):
    """A decision of which only the words are carried, as when a rule is a function.

    Attributes
    ----------
    branch : str or None
    via : str
        ``rule``, ``default``, ``unreadable``, ``outside`` or ``none``.
    rule_index : int or None
    label, cause, sentence : str
        As the decision itself told them.
    """

    branch: str | None
    via: str
    rule_index: int | None
    label: str | None
    cause: str
    sentence: str

    @classmethod
    def of(cls, decision: Decision | ToldDecision) -> ToldDecision:
        """Take down the words of a decision."""
        return cls(**{one.name: getattr(decision, one.name) for one in fields(cls)})

    def to_dict(self) -> dict[str, Any]:
        """Give the words as JSON values."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def view(self, subject: str | None = None, place: str | None = None) -> Card:
        """Show the words, and that the conditions are not carried."""
        said = clip(visible(self.label), 80) if self.label else ""
        closing = tuple(text for text in (said, place, "the conditions are not carried") if text)
        name = visible(subject or "")
        return Card(kind="Decision", name=name, headline=self.sentence, closing=closing)
