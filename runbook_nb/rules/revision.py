"""Two versions of a rule set side by side, without anything they judged.

What the change does to an answer is a comparison of answers; this is what can be said before one
is there: which rules differ, in what, and whether any verdict can depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import clip, visible
from runbook_nb._view import Badge, Card, Cell, Column, Data, Prose, Section, Table, verdict_role
from runbook_nb.errors import DefinitionError
from runbook_nb.rules.changes import RuleChange, differing, rule_changes
from runbook_nb.rules.ruleset import RuleSet


class Revision(Sequence[RuleChange], Renderable, Immutable):
    """What became of each part of a rule set; made by `RuleSet.compare`.

    It is a sequence of `RuleChange`: ground outside, rules in the order they have now, those that
    are gone, the unreadable branch, the default.

    Attributes
    ----------
    before, after : RuleSet

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> old = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> new = RuleSet("age", "v2", [Rule({"days": {"gt": 14}}, "old")], "fresh")
    >>> print(old.compare(new))
    Rules age v1 -> v2 · 1 of 2 differ
      1        days > 7  days > 14  limit raised, 7 -> 14
      default  fresh     fresh      same
    """

    __slots__ = ("_changes", "after", "before")

    def __init__(self, before: RuleSet, after: RuleSet) -> None:
        if not isinstance(after, RuleSet):
            raise DefinitionError(
                f"{clip(visible(repr(after)), 80)} is no rule set",
                where="other",
                fix="give a RuleSet; RuleSet.load(path) reads one",
            )
        self.before = before
        self.after = after
        self._changes = rule_changes(before, after)

    @property
    def differing(self) -> tuple[RuleChange, ...]:
        """Those that differ."""
        return differing(self._changes)

    @property
    def decides(self) -> bool:
        """Whether a verdict can depend on it: labels and units are only said."""
        return any(change.decides for change in self._changes)

    @overload
    def __getitem__(self, index: int) -> RuleChange: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RuleChange, ...]: ...
    def __getitem__(self, index: int | slice) -> RuleChange | tuple[RuleChange, ...]:
        return self._changes[index]

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[RuleChange]:
        return iter(self._changes)

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON values."""
        sides = {"before": self.before, "after": self.after}
        told = {
            name: {"name": rules.name, "version": rules.version, "digest": rules.digest}
            for name, rules in sides.items()
        }
        return {**told, "changes": [change.to_dict() for change in self._changes]}

    def to_json(self, *, indent: int | None = None) -> str:
        """Give it as JSON, for a ticket or another program."""
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def view(self) -> Card:
        """Show the rules side by side, and in what they differ."""
        lead: tuple[Section, ...] = ()
        if self.differing and self.before.title == self.after.title:
            said = f"Both are {visible(self.before.title)}, content differs."
            lead = (Section(label="", parts=(Prose(text=said, tone="warning"),)),)
        table = changes_section(
            self._changes, self._heads(), branch=self._branch, told=_told, absent="none"
        )
        return Card(
            kind="Rules",
            name=self._name(),
            headline=self._headline(),
            sections=(*lead, table),
        )

    def _heads(self) -> tuple[str, str]:
        old, new = visible(self.before.version), visible(self.after.version)
        return (old, new) if old != new else ("before", "after")

    def _name(self) -> str:
        old, new = visible(self.before.title), visible(self.after.title)
        if self.before.name == self.after.name and self.before.version != self.after.version:
            new = visible(self.after.version)
        return f"{old} -> {new}"

    def _headline(self) -> str:
        shown = shown_changes(self._changes)
        differ = len(differing(shown))
        if not differ:
            return "nothing differs"
        said = f"{differ} of {len(shown)} differ"
        return said if self.decides else f"{said}, no verdict depends on it"

    def _branch(self, text: str) -> Cell:
        words = tuple(dict.fromkeys((*self.before.branches, *self.after.branches)))
        if text not in words:
            return Data(value=text)
        return Badge(word=visible(text), role=verdict_role(text, words))


def _told(change: RuleChange) -> str:
    if change.kind != "changed":
        return change.kind
    words = "; ".join(field.words for field in change.fields)
    return words if change.decides else f"{words} (no verdict depends on it)"


def shown_changes(changes: Sequence[RuleChange]) -> tuple[RuleChange, ...]:
    """Leave out what leads to ``declined``, where nothing of it differs."""
    return tuple(change for change in changes if change.part != "unreadable" or not change.is_same)


def changes_section(
    changes: Sequence[RuleChange],
    heads: tuple[str, str],
    *,
    branch: Callable[[str], Cell],
    told: Callable[[RuleChange], str],
    absent: Cell = None,
    in_text: bool = True,
) -> Section:
    """Show rules side by side.

    Parameters
    ----------
    changes : sequence of RuleChange
    heads : tuple of str
        What the two sides are called.
    branch : callable
        Draws the branch of the default or the unreadable.
    told : callable
        Says of a change what it is.
    absent : Cell
        Stands on the side where a part is not.
    in_text : bool
        Whether plain text has it, too.
    """
    shown = shown_changes(changes)
    differ = len(differing(shown))

    def side(change: RuleChange, text: str | None) -> Cell:
        if text is None:
            return absent
        if change.part in ("default", "unreadable"):
            return branch(text)
        return Data(value=text, tone="code")

    rows = tuple(
        (
            _place(change),
            side(change, change.old_text),
            side(change, change.new_text),
            Badge(word="same", role="quiet") if change.is_same else told(change),
        )
        for change in shown
    )
    table = Table(
        columns=(
            Column(head="rule"),
            *(Column(head=Data(value=head)) for head in heads),
            Column(head="what changed"),
        ),
        rows=rows,
        total=len(rows),
        whole=True,
    )
    note = f"{differ} of {len(shown)} differ" if differ else "all the same"
    return Section(label="Rules", parts=(table,), note=note, in_text=in_text)


def _place(change: RuleChange) -> Cell:
    if change.part in ("default", "unreadable"):
        return change.part
    place = change.old if change.new is None else change.new
    number = str((place or 0) + 1)
    return number if change.part == "rule" else f"outside {number}"
