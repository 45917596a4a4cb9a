"""What was filed, read back through its ticket: the rows of a walk, a recording.

Bridge layer. Where a ticket is missing or cannot be redeemed, that is said and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runbook_nb._deep import read_json
from runbook_nb._display import Renderable, through
from runbook_nb._text import MISSING, counted, show
from runbook_nb._view import Card
from runbook_nb.errors import NotCarried, RunbookError
from runbook_nb.record.projection import COLUMNS, WalkPage, WalkRow, page_bounds

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.record.walk import Walk
    from runbook_nb.widgets.explorer import Explorer


class FiledWalk(Sequence[WalkRow], Renderable):
    """A walk that was filed, read through its tickets when first needed.

    Where the whole walk was filed (``walk={"form": "columns"}``), this is all of it. Else it is
    the capped rows, which name no subjects and hold no edges.

    Attributes
    ----------
    descriptor : mapping
        The counters and the note that travelled with the answer.
    """

    def __init__(self, descriptor: Mapping[str, Any], artifacts: Any) -> None:
        self.descriptor = descriptor
        self._artifacts = artifacts

    @cached_property
    def whole(self) -> Walk | None:
        """The whole walk, where it was filed and its ticket can be redeemed here; None else.

        Raises
        ------
        NotCarried
            The store gave back something else, or what was damaged.
        """
        ref = self.descriptor.get("columns_ref")
        record = None if ref is None or self._artifacts is None else self._artifacts.get_sync(ref)
        if record is None:
            return None
        from runbook_nb.record.walk_file import read_walk

        try:
            return read_walk(record)
        except RunbookError as error:
            raise NotCarried(f"the walk is not carried: {error.message}", fix=error.fix) from error

    @cached_property
    def rows(self) -> Sequence[WalkRow]:
        """The filed rows: all of them, or those within the cap.

        Raises
        ------
        NotCarried
            No ticket, or no store that redeems it.
        """
        if self.whole is not None:
            return self.whole
        data = redeem(self._artifacts, self.descriptor, "ref")
        if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
            raise NotCarried("the walk is not carried: what the store gave back is no list of rows")
        return tuple(WalkRow(**{name: entry.get(name) for name in COLUMNS}) for entry in data)

    @property
    def total(self) -> int:
        """How many rows the walk had when it was recorded."""
        return int(self.descriptor.get("total", 0))

    @property
    def shown(self) -> int:
        """How many of them were filed and can be had here."""
        return len(self.rows)

    @property
    def complete(self) -> bool:
        """Whether these are all of them."""
        return self.shown == self.total

    @property
    def steps_executed(self) -> int:
        """How many stage executions there were."""
        return int(self.descriptor.get("steps_executed", 0))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[WalkRow]:
        return iter(self.rows)

    def page(self, start: int, n: int) -> WalkPage:
        """Give ``n`` of the filed rows from position ``start``; see `Walk.page`.

        The page's ``total`` is that of the rows that can be paged.
        """
        if self.whole is not None:
            return self.whole.page(start, n)
        start, n = page_bounds(start, n)
        return WalkPage(self.rows[start : start + n], start, len(self.rows))

    def of(
        self, subject: Any = MISSING, *, index: int | None = None, stage: str | None = None
    ) -> Walk:
        """Give the walk of one subject alone; see `Walk.of`.

        Raises
        ------
        NotCarried
            Only the capped rows were filed: they name branches, not subjects.
        SubjectNotFound
            No such subject went through a branch, or several did.
        """
        if self.whole is not None:
            return self.whole.of(subject, index=index, stage=stage)
        raise NotCarried(
            f"which branch belonged to {show(subject)} is not carried by the filed rows",
            fix="ask the live envelope, or why() on a copy with its dossier; "
            'walk={"form": "columns"} files the whole walk',
        )

    @property
    def decisions(self) -> list[Any]:
        """Every decision made by rules; see `Walk.decisions`.

        Raises
        ------
        NotCarried
            Only the capped rows were filed: they tell decisions in words.
        """
        if self.whole is not None:
            return self.whole.decisions
        raise NotCarried(
            "decisions are not carried by the filed rows, which tell them in words",
            fix="ask the live envelope, or dossier.subjects() on a copy with its dossier",
        )

    def flowchart(self) -> Any:
        """Draw the walk; see `Walk.flowchart`.

        Raises
        ------
        NotCarried
            Only the capped rows were filed: they hold no edges.
        """
        if self.whole is not None:
            return self.whole.flowchart()
        raise NotCarried(
            "the flowchart is not carried by the filed rows, which hold no edges",
            fix="ask the live envelope, or recording() where one was filed",
        )

    def explore(self) -> Explorer:
        """Go through the filed rows one by one; a widget."""
        explorer: Explorer = through("explore", self)
        return explorer

    def to_frame(self) -> pd.DataFrame:
        """Give the filed rows as a DataFrame with the eight columns."""
        import pandas as pd

        return pd.DataFrame([row.to_dict() for row in self.rows], columns=list(COLUMNS))

    def view(self) -> Card:
        """Show the counters, and the rows when they can be had."""
        shown = self.descriptor.get("shown", 0)
        try:
            self.rows  # noqa: B018 - asking is the question
            carried = f"{counted(len(self.rows), 'row')} filed"
        except NotCarried as missing:
            carried = f"rows not carried: {missing.message}"
        return Card(
            kind="Walk",
            name="",
            headline=f"{self.steps_executed} steps, {shown} of {self.total} rows",
            closing=(carried,),
        )

    __hash__ = None  # type: ignore[assignment]


def redeem(artifacts: Any, descriptor: Mapping[str, Any], key: str) -> Any:
    """Give the JSON behind a ticket of a walk's descriptor.

    Raises
    ------
    NotCarried
        There is no ticket under ``key``, or it cannot be redeemed here.
    """
    ref = descriptor.get(key)
    what = "the walk" if key == "ref" else "the recording"
    if ref is None:
        note = descriptor.get("note" if key == "ref" else "recording_note")
        why = f": {note}" if note else ""
        raise NotCarried(f"{what} has no ticket{why}")
    if artifacts is None:
        raise NotCarried(
            f"{what} is not carried: it was filed, and no store is at hand to redeem its ticket",
            fix="pass artifacts= to Envelope.from_dict",
        )
    record = artifacts.get_sync(ref)
    if record is None:
        raise NotCarried(f"{what} is not carried: the store does not hold its ticket any more")
    try:
        return read_json(record.data)
    except (ValueError, TypeError, RecursionError):
        raise NotCarried(f"{what} is not carried: what the store gave back is no JSON") from None
