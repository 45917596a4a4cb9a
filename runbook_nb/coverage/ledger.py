"""The ledger: what was checked, what was not, what never can be, and one sentence about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import clip, visible
from runbook_nb._value import frozen
from runbook_nb._view import Card, Fact, Facts, Part, Prose, Section
from runbook_nb.coverage.declare import COVERAGE_NOTE
from runbook_nb.coverage.items import Item, Items, merge_items, normalize, read_items

_Style = Literal["checked", "not_checked", "cannot_cover"]

#: The three lists in wire order, with the words they are shown under.
_SECTIONS: Final[tuple[tuple[_Style, str], ...]] = (
    ("checked", "Checked"),
    ("not_checked", "Not checked"),
    ("cannot_cover", "Cannot cover"),
)

#: Longest piece of an item in a remark of plain text, in characters.
_REMARK_LENGTH: Final = 70


def gap_line(first: str, more: int) -> str:
    """Name one gap in a line of plain text, with how many more there are.

    Examples
    --------
    >>> gap_line("the tapes", 2)
    'not checked: the tapes; and 2 more'
    """
    said = f"not checked: {clip(visible(first), _REMARK_LENGTH)}"
    return said + (f"; and {more} more" if more else "")


@frozen(init=False, repr=False)
class Ledger(Renderable, Immutable):
    """Three lists of items and a sentence; it never changes and never holds an item twice.

    Parameters
    ----------
    checked, not_checked, cannot_cover : list of Item, str or mapping, optional
        The ground. Unlike in `coverage`, an item of ``cannot_cover`` need not say why, since a
        ledger also holds what others declared.
    sentence : str, optional
        What ran and how far it got.

    Examples
    --------
    >>> ledger = Ledger(checked=["the inventory", "the inventory"], sentence="Ran 'triage'.")
    >>> ledger.checked
    (Item(what='the inventory', why=None),)
    """

    checked: tuple[Item, ...]
    not_checked: tuple[Item, ...]
    cannot_cover: tuple[Item, ...]
    sentence: str | None

    def __init__(
        self,
        *,
        checked: Items = None,
        not_checked: Items = None,
        cannot_cover: Items = None,
        sentence: str | None = None,
    ) -> None:
        given = (checked, not_checked, cannot_cover)
        for (name, _), items in zip(_SECTIONS, given, strict=True):
            object.__setattr__(self, name, tuple(dict.fromkeys(normalize(name, items))))
        object.__setattr__(self, "sentence", sentence)

    @classmethod
    def _of(cls, lists: Iterable[tuple[Item, ...]], sentence: str | None) -> Ledger:
        """Make a ledger of lists that were read before and hold no item twice."""
        made = object.__new__(cls)
        for (name, _), items in zip(_SECTIONS, lists, strict=True):
            object.__setattr__(made, name, items)
        object.__setattr__(made, "sentence", sentence)
        return made

    @property
    def is_empty(self) -> bool:
        """Whether no ground is declared at all."""
        return not (self.checked or self.not_checked or self.cannot_cover)

    def add(
        self, *, checked: Items = None, not_checked: Items = None, cannot_cover: Items = None
    ) -> Ledger:
        """Give a ledger with more items behind those of each list.

        Examples
        --------
        >>> Ledger(checked=["a"]).add(not_checked=["b"]).counts
        ('checked 1', 'not checked 1', 'cannot cover 0')
        """
        more = Ledger(checked=checked, not_checked=not_checked, cannot_cover=cannot_cover)
        return self.merge(more)

    def merge(self, *others: Ledger) -> Ledger:
        """Give the ledger of this one's items, then the others'; the sentence stays this one's.

        Examples
        --------
        >>> [i.what for i in Ledger(checked=["a"]).merge(Ledger(checked=["b", "a"])).checked]
        ['a', 'b']
        """
        told = [ledger for ledger in others if not ledger.is_empty]
        if not told:
            return self
        if self.is_empty and len(told) == 1:
            return told[0].with_sentence(self.sentence)
        ledgers = (self, *told)
        return Ledger(
            checked=merge_items(ledger.checked for ledger in ledgers),
            not_checked=merge_items(ledger.not_checked for ledger in ledgers),
            cannot_cover=merge_items(ledger.cannot_cover for ledger in ledgers),
            sentence=self.sentence,
        )

    def with_sentence(self, sentence: str | None) -> Ledger:
        """Give the same ledger under another sentence."""
        if sentence == self.sentence:
            return self
        return self._of((self.checked, self.not_checked, self.cannot_cover), sentence)

    def lists(self) -> dict[str, list[dict[str, str]]]:
        """Give the lists that are not empty, in wire form and order."""
        return {
            name: [item.to_dict() for item in getattr(self, name)]
            for name, _ in _SECTIONS
            if getattr(self, name)
        }

    def to_dict(self) -> dict[str, Any]:
        """Give the wire form: the lists that are not empty, ``note``, and ``sentence`` if any.

        Examples
        --------
        >>> list(Ledger(checked=["a"], cannot_cover=["b"], sentence="Ran.").to_dict())
        ['checked', 'cannot_cover', 'note', 'sentence']
        """
        wire: dict[str, Any] = {**self.lists(), "note": COVERAGE_NOTE}
        return wire if self.sentence is None else {**wire, "sentence": self.sentence}

    @classmethod
    def from_dict(cls, value: Any) -> Ledger:
        """Read a ledger somebody else wrote, keeping what is readable and never raising.

        The lists are read under their wire names and, where one is missing or null, under the
        spellings ``notChecked`` and ``cannotCover``. Anything but a mapping is an empty ledger.

        Examples
        --------
        >>> Ledger.from_dict({"checked": ["a", 7], "notChecked": ["b"]}).counts
        ('checked 1', 'not checked 1', 'cannot cover 0')
        """
        if isinstance(value, Ledger):
            return value
        if value is None or not isinstance(value, Mapping):
            return _EMPTY
        sentence = value.get("sentence")
        lists = (
            value.get("checked"),
            _either(value, "not_checked", "notChecked"),
            _either(value, "cannot_cover", "cannotCover"),
        )
        said = isinstance(sentence, str) and sentence.strip()
        read = (tuple(dict.fromkeys(read_items(items))) for items in lists)
        return cls._of(read, sentence if said else None)

    @property
    def counts(self) -> tuple[str, str, str]:
        """The three counts as they stand on a line of text."""
        checked, not_checked, cannot_cover = (
            f"{label.lower()} {len(getattr(self, name))}" for name, label in _SECTIONS
        )
        return checked, not_checked, cannot_cover

    def section(self, *, in_text: bool = False) -> Section:
        """Give the part of a card that shows this ledger.

        Parameters
        ----------
        in_text : bool
            Whether plain text shows the lists too; an envelope's text has only their counts.
        """
        if self.is_empty:
            return Section(label="Coverage", parts=(Prose(text=_NOTHING),), in_text=in_text)
        parts: list[Part] = []
        if self.sentence is not None:
            parts.append(Prose(text=visible(self.sentence), tone="dim"))
        for name, label in _SECTIONS:
            items: tuple[Item, ...] = getattr(self, name)
            parts.append(
                Facts(
                    label=label,
                    items=tuple(
                        Fact(term=visible(i.what), detail=None if i.why is None else visible(i.why))
                        for i in items
                    ),
                    total=len(items),
                    style=name,
                )
            )
        counts = (f"{len(getattr(self, name))} {label.lower()}" for name, label in _SECTIONS)
        note = " · ".join(counts)
        return Section(label="Coverage", parts=tuple(parts), note=note, in_text=in_text)

    @property
    def remark(self) -> str | None:
        """The first gap in one line of plain text, with how many more there are; None without."""
        gaps = self.not_checked
        return gap_line(gaps[0].what, len(gaps) - 1) if gaps else None

    def view(self) -> Card:
        """Say what this looks like: the counts, the sentence and the three lists."""
        headline = _NOTHING if self.is_empty else " · ".join(self.counts)
        # The counts are the headline; the label need not say them again.
        sections = () if self.is_empty else (replace(self.section(in_text=True), note=""),)
        return Card(kind="Ledger", name="", headline=headline, sections=sections)


#: What declares nothing.
_EMPTY: Final = Ledger()

_NOTHING: Final = "no coverage is declared: nothing says what was looked at"


def _either(value: Mapping[Any, Any], name: str, other: str) -> Any:
    found = value.get(name)
    return value.get(other) if found is None else found
