"""Journals: every event of a plan, on the disk before it happens.

What is admitted is written first and run then, so that after a kernel died nothing ran of which
the journal does not know. `PlaybookEnforcer.resume` goes on from one; `verify` judges it again.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from runbook_nb._display import Renderable
from runbook_nb._ids import digest
from runbook_nb._text import clip, counted, visible
from runbook_nb._view import Card, Column, Data, Fact, Facts, Prose, Section, Table
from runbook_nb.artifacts.durable import renew_in_children
from runbook_nb.errors import ArtifactError, JournalError
from runbook_nb.playbooks.journal_lines import Reading, write_lines

if TYPE_CHECKING:
    from runbook_nb.playbooks.events import Event
    from runbook_nb.record.verification import Verification

#: What a journal is called in errors about the place it lies in.
WHAT: Final = "journal of playbooks"

#: What a store says of its place, said of a journal.
_CODES: Final = {"not_a_store": "not_a_journal", "store_busy": "journal_in_use"}

#: Faults that a view names.
_FAULTS: Final = 5


class PlaybookJournal(Renderable, ABC):
    """Keeps the events of one plan, each on the disk before what it tells of is done.

    Give one to `PlaybookEnforcer.from_playbook`, and one of the same place to
    `PlaybookEnforcer.resume` after the process has died. Only one writes at a time: another is
    refused, in this process and in any.

    Attributes
    ----------
    name : str
        What it is called.
    head : str or None
        The digest of its last line; None where it holds none. Whoever notes it elsewhere can tell
        later whether the end was cut off.

    Examples
    --------
    >>> import tempfile
    >>> import runbook_nb.playbooks as pb
    >>> step = {"id": "look", "description": "Look.", "expected_tools": ["scan"]}
    >>> book = {"id": "ir", "name": "Response", "steps": [step]}
    >>> folder = tempfile.TemporaryDirectory()
    >>> with pb.JsonlJournal(f"{folder.name}/ir.jsonl") as journal:
    ...     enforcer = pb.PlaybookEnforcer.from_playbook(book, journal=journal)
    ...     allowed = enforcer.admit("scan").allowed
    >>> [event.kind for event in journal.events()]
    ['begun', 'admitted']
    >>> folder.cleanup()
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.RLock()
        #: How many events it holds and the digest of the last; None until it is known.
        self._end: tuple[int, str | None] | None = None
        #: Why nothing more is written by this object, and the code of that.
        self._refused: tuple[str, str] | None = None
        renew_in_children(self)

    # -- writing ---------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> None:
        """Write events that happened together: all of them or none, on the disk when it returns.

        Raises
        ------
        JournalError
            ``journal_in_use``: another writes it. ``journal_not_empty``: a plan begins, and it
            holds one. ``journal_behind``: it does not end with the event before these.
            ``journal_damaged``, ``journal_cannot_carry``, ``journal_unavailable``.
        """
        if not events:
            return
        with self._lock, self._told():
            if self._refused is not None:
                raise self._cannot(*self._refused)
            if self._end is None:
                self._end = self._begin(events[0])
            count, head = self._end
            self._follow(events, count)
            texts = write_lines(events, head)
            self._write(texts, count, head)
            self._end = count + len(texts), digest(texts[-1])

    def _follow(self, events: Sequence[Event], count: int) -> None:
        first = events[0]
        if first.kind == "begun" and count:
            raise JournalError(
                f"the journal {visible(self.name)!r} holds a plan of "
                f"{counted(count, 'event')} already",
                code="journal_not_empty",
                where=self.name,
                fix="go on with PlaybookEnforcer.resume(journal), or give another path or key",
            )
        if [event.seq for event in events] != list(range(count + 1, count + 1 + len(events))):
            raise JournalError(
                f"the journal {visible(self.name)!r} ends with event {count}, "
                f"and event {first.seq} cannot follow it",
                code="journal_behind",
                where=self.name,
                fix="another plan is kept in it: take it up by PlaybookEnforcer.resume(journal)",
            )

    def _cannot(self, why: str, code: str = "journal_unavailable") -> JournalError:
        fix = (
            "close the other, or wait until its process has ended"
            if code == "journal_in_use"
            else "see that its folder can be written to and has room, then go on with "
            "PlaybookEnforcer.resume of a journal opened anew"
        )
        return JournalError(
            f"the journal {visible(self.name)!r} cannot be written: {visible(why)}",
            code=code,
            where=self.name,
            fix=fix,
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the place says as an error about the journal."""
        try:
            yield
        except ArtifactError as error:
            raise JournalError(
                error.message,
                code=_CODES.get(error.code, "journal_unavailable"),
                where=error.where,
                fix=error.fix,
            ) from error
        except OSError as error:
            raise self._cannot(error.strerror or type(error).__name__) from error

    # -- reading ---------------------------------------------------------------------------

    def read(self) -> Reading:
        """Read all of it, whatever is wrong with it; changes nothing.

        Raises
        ------
        JournalError
            ``journal_unavailable`` or ``not_a_journal``: it cannot be read at all.
        """
        with self._lock, self._told():
            return self._read()

    def events(self) -> tuple[Event, ...]:
        """Give the events that are kept.

        Raises
        ------
        JournalError
            ``journal_empty``, or ``journal_damaged``: something in it was changed.
        """
        return self.read().events(self.name)

    @property
    def head(self) -> str | None:
        """The digest of the last line; None where there is none."""
        with self._lock:
            return self.read().head if self._end is None else self._end[1]

    @property
    def torn(self) -> str:
        """What was broken off at its end, in words; empty where nothing was."""
        return self.read().torn

    def __bool__(self) -> bool:
        return True  # an empty one is a journal, too

    def __len__(self) -> int:
        with self._lock:
            return len(self.read().lines) if self._end is None else self._end[0]

    def verify(self, *, head: str | None = None) -> Verification:
        """Check every claim of the journal: that it is whole, and each decision judged again.

        Parameters
        ----------
        head : str, optional
            The digest of the last line, noted elsewhere: the end cannot have been cut off then.
        """
        from runbook_nb.playbooks.journal_claims import verify_reading

        return verify_reading(self.read(), self.name, head=head)

    # -- its place -------------------------------------------------------------------------

    def close(self) -> None:
        """Let the place go, so that another may write; what is kept stays."""
        with self._lock:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def forked(self) -> None:
        """Let go in a forked child: the plan is its parent's."""
        self._lock = threading.RLock()
        if self._end is not None:
            why = "it is kept by the process that this one was forked from"
            self._refused = why, "journal_in_use"
        self._forget()

    def view(self) -> Card:
        """Say what is kept."""
        return journal_card(self.name, self.read())

    @abstractmethod
    def _begin(self, first: Event) -> tuple[int, str | None]:
        """Take the place for oneself, and say how many events it holds, and its head."""

    @abstractmethod
    def _write(self, texts: Sequence[str], count: int, head: str | None) -> None:
        """Write lines after those there are, all or none."""

    @abstractmethod
    def _read(self) -> Reading:
        """Read what is there."""

    def _let_go(self) -> None:
        """Let the place go."""
        self._end = None

    def _forget(self) -> None:
        """Drop what a forked child must not use."""
        self._end = None


def journal_card(name: str, found: Reading) -> Card:
    """Show what was found in a journal: how many events of each kind, and what is wrong."""
    counts = Counter(line.event.kind for line in found.lines)
    begun: Any = found.lines[0].event if found.lines else None
    lead: list[Prose] = []
    if begun is not None and begun.kind == "begun":
        book = begun.playbook
        profile = begun.policy.get("profile")
        lead = [
            Prose(text=visible(f"{book.name} {book.version}, held to the policy {profile}")),
        ]
    table = Table(
        columns=(Column(head="event"), Column(head="count", align="right")),
        rows=tuple((Data(value=kind, tone="code"), count) for kind, count in counts.items()),
        total=len(counts),
        empty="nothing has happened yet",
    )
    # Among facts, where a word as long as a digest is broken and no page is wider for it.
    items = (Fact(term="head", detail=Data(value=found.head)),) if found.head else ()
    head = [Facts(label="", items=items, total=1)] if items else []
    closing = []
    if found.torn:
        closing.append(f"Broken off: {found.torn}.")
    closing += [f"Line {fault.line:,} {fault.said}." for fault in found.faults[:_FAULTS]]
    more = len(found.faults) - _FAULTS
    if more > 0:
        closing.append(f"{counted(more, 'more fault')}.")
    return Card(
        kind="Journal",
        name=clip(visible(name), 60),
        headline=counted(len(found.lines), "event"),
        sections=(Section(label="", parts=(*lead, table, *head)),),
        closing=tuple(closing),
    )
