"""A journal in a SQLite file, for as many plans as there are keys."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._ids import digest
from runbook_nb._text import visible
from runbook_nb.artifacts.database import Database, Form
from runbook_nb.artifacts.durable import path_of
from runbook_nb.errors import JournalError
from runbook_nb.playbooks.journal import WHAT, PlaybookJournal
from runbook_nb.playbooks.journal_lines import Fault, Reading, read_texts

if TYPE_CHECKING:
    import sqlite3

    from runbook_nb.playbooks.events import Event

#: Marks the file as one of journals ("rbnJ"), and says which form its tables have. What is
#: admitted must be on the disk before it is run.
FORM: Final = Form(
    application=0x72626E4A,
    version=1,
    schema=(
        "CREATE TABLE plan (id INTEGER PRIMARY KEY, key TEXT NOT NULL)",
        "CREATE UNIQUE INDEX plan_named ON plan (key)",
        "CREATE TABLE line (plan INTEGER NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL, "
        "PRIMARY KEY (plan, number)) WITHOUT ROWID",
    ),
    what=WHAT,
    sure=True,
)
_LAST: Final = (
    "SELECT number, text FROM line JOIN plan ON plan.id = line.plan WHERE key = ? "
    "ORDER BY number DESC LIMIT 1"
)
_ALL: Final = (
    "SELECT number, text FROM line JOIN plan ON plan.id = line.plan WHERE key = ? ORDER BY number"
)


class SqliteJournal(PlaybookJournal):
    """Keeps the events of one plan among others in a file, each plan under its key.

    Several processes may use one file at once, each for plans of its own. Events that happened
    together are one transaction, on the disk when `append` returns, so that nothing is ever broken
    off. Whoever writes to a plan that another has written to since is refused: his is behind.

    Parameters
    ----------
    path : str or path
        The file; made when it is not there.
    key : str
        The plan.

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from runbook_nb.playbooks.events import Begun
    >>> from runbook_nb.playbooks.model import Playbook
    >>> at, book = datetime(2026, 1, 1, tzinfo=UTC), Playbook(id="ir", name="Incident response")
    >>> begun = Begun(seq=1, at=at, playbook=book, digest="", policy={}, skills={})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with SqliteJournal(f"{folder.name}/runs.sqlite", "run-1") as journal:
    ...     journal.append([begun])
    ...     journal.of("run-2").append([begun])
    ...     journal.keys(), len(journal)
    (('run-1', 'run-2'), 1)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], key: str = "plan") -> None:
        super().__init__(str(path))
        with self._told():
            self.path = path_of(path)
            self._database = Database(self.path, FORM)
        self._name(key)

    def _name(self, key: Any) -> None:
        if not isinstance(key, str) or not key:
            raise JournalError(
                f"a plan cannot have the key {key!r:.80}",
                code="bad_key",
                where="key",
                fix="give the name of the run, as a text",
            )
        self.key = key
        self.name = f"{self.path.name}, {key}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self.path), self.key))

    def of(self, key: str) -> SqliteJournal:
        """Give the journal of another plan in this file.

        Parameters
        ----------
        key : str
            The plan.
        """
        other = type(self).__new__(type(self))
        PlaybookJournal.__init__(other, self.name)
        other.path, other._database = self.path, self._database
        other._name(key)
        return other

    def keys(self) -> tuple[str, ...]:
        """Give the keys of all plans in this file, in the order in which they began."""
        with self._told(), self._database.opened() as database:
            found = database.execute("SELECT key FROM plan ORDER BY id").fetchall()
        return tuple(str(key) for (key,) in found)

    def _begin(self, first: Event) -> tuple[int, str | None]:
        found = self._read()
        found.refuse_faults(self.name)
        return len(found.lines), found.head

    def _write(self, texts: Sequence[str], count: int, head: str | None) -> None:
        with self._database.transaction() as database:
            self._refuse_behind(database, count, head)
            if not count:
                database.execute("INSERT INTO plan (key) VALUES (?)", (self.key,))
            database.executemany(
                "INSERT INTO line SELECT id, ?, ? FROM plan WHERE key = ?",
                [(count + n, text, self.key) for n, text in enumerate(texts, 1)],
            )

    def _refuse_behind(self, database: sqlite3.Connection, count: int, head: str | None) -> None:
        """Refuse to write after a line that is not the one this journal wrote or read last."""
        last = database.execute(_LAST, (self.key,)).fetchone()
        there = (0, None) if last is None else (last[0], digest(last[1]))
        if there != (count, head):
            raise JournalError(
                f"another has written to the journal {visible(self.name)!r}: it ends with event "
                f"{there[0]}, and this plan with event {count}",
                code="journal_in_use",
                where=self.name,
                fix="let one enforcer alone keep it; take the plan up again by "
                "PlaybookEnforcer.resume(journal) when the other has ended",
            )

    def _read(self) -> Reading:
        with self._database.opened() as database:
            found = database.execute(_ALL, (self.key,)).fetchall()
        read = read_texts(str(text).encode("utf-8", "surrogatepass") for _, text in found)
        moved = next((n for n, (number, _) in enumerate(found, 1) if number != n), None)
        if moved is None:
            return read
        stands = f"stands under the number {visible(str(found[moved - 1][0]))}"
        return replace(read, faults=(Fault(line=moved, code="order", said=stands), *read.faults))

    def _let_go(self) -> None:
        super()._let_go()
        self._database.close()
