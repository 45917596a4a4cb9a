"""A SQLite file of one's own form: several processes use it at once, one transaction at a time.

The file is in write-ahead mode and says of itself what it is. One that is something else, of a
form this version does not know, or damaged, is refused before anything is written to it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import visible
from runbook_nb._value import frozen
from runbook_nb.artifacts import durable
from runbook_nb.artifacts.durable import not_a_store, renew_in_children, unavailable
from runbook_nb.errors import RunbookError

if TYPE_CHECKING:
    import sqlite3

#: Pages that the log beside the file may hold before they are moved into it, which is what waits
#: for the disk.
LOGGED: Final = 4096
#: Kibibytes of pages that a transaction keeps in memory: what is larger is written twice.
CACHE: Final = 16 * 1024


@frozen
class Form:
    """What a file is, and which tables are in it.

    Attributes
    ----------
    application, version : int
        Marks of the file: whose it is, and which form its tables have.
    schema : tuple of str
        The statements that make its tables, as the file has them too.
    what : str
        What it is, in words.
    page : int
        Bytes that are read and written at once in a file that is made anew.
    sure : bool
        Whether a transaction is on the disk before it is said to have happened.
    """

    application: int
    version: int
    schema: tuple[str, ...]
    what: str
    page: int = 4096
    sure: bool = False


class Database:
    """A file of a form, opened when it is first wanted and once in each process.

    Parameters
    ----------
    path : Path
    form : Form
    """

    def __init__(self, path: Path, form: Form) -> None:
        self.path = path
        self.form = form
        self.connection: sqlite3.Connection | None = None
        self._closing: Callable[[], object] = _nothing
        self._process = 0
        self._lock = threading.Lock()
        self._told = _Told(path, form)
        renew_in_children(self)
        with self.opened():
            pass

    def forked(self) -> None:
        """Begin anew in a forked child, where no other thread holds anything."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let the file go; it is opened again when it is next wanted."""
        with self._lock:
            self._closing()
            self.connection, self._closing = None, _nothing

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, to ask a question."""
        with self._lock, self._told:
            yield self._connected()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for a transaction that happens whole or not at all."""
        with self._lock, self._told:
            database = self._connected()
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def _connected(self) -> sqlite3.Connection:
        if self.connection is None or self._process != os.getpid():
            # A connection must not be used by a forked child, nor closed by it.
            self.connection = database = _connect(self.path, self.form)
            self._process = os.getpid()
            self._closing = weakref.finalize(self, _close_in, self._process, database)
        return self.connection


def _connect(path: Path, form: Form) -> sqlite3.Connection:
    import sqlite3

    database = sqlite3.connect(
        path, timeout=durable.BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("PRAGMA trusted_schema = OFF")  # a file's own functions are never run
        _prepare(database, path, form)
        database.execute(f"PRAGMA synchronous = {'FULL' if form.sure else 'NORMAL'}")
        database.execute(f"PRAGMA wal_autocheckpoint = {LOGGED}")
        database.execute(f"PRAGMA cache_size = {-CACHE}")
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: Path, form: Form) -> None:
    """Make the tables of a new file; refuse a file that has others, before anything is written."""
    if _is_empty(database):
        database.execute(f"PRAGMA page_size = {form.page}")
        _write_ahead(database)
        database.execute("BEGIN IMMEDIATE")
        if _is_empty(database):  # unless another process was quicker
            for statement in form.schema:
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {form.application}")
            database.execute(f"PRAGMA user_version = {form.version}")
        database.execute("COMMIT")
    if database.execute("PRAGMA application_id").fetchone() != (form.application,):
        raise _refused(path, form, "it is another program's database")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != form.version:
        raise _refused(
            path, form, f"its tables have form {version}, and this reads form {form.version}"
        )
    # Names that begin so are the database's own to give.
    found = database.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_'"
    )
    if {sql for (sql,) in found} != set(form.schema):
        raise _refused(path, form, f"its tables are not those of a {form.what}")
    _write_ahead(database)


def _write_ahead(database: sqlite3.Connection) -> None:
    import sqlite3
    from time import monotonic, sleep

    # Changing the mode needs the file to itself, and does not wait for that by itself.
    until = monotonic() + durable.BUSY_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or monotonic() > until:
                raise
            sleep(0.01)


def _is_empty(database: sqlite3.Connection) -> bool:
    asked = ("SELECT count(*) FROM sqlite_schema", "PRAGMA application_id")
    return all(database.execute(question).fetchone() == (0,) for question in asked)


class _Told:
    """Says what the database says as an error of this package; made once, entered by each verb."""

    def __init__(self, path: Path, form: Form) -> None:
        self.path, self.form = path, form

    def __enter__(self) -> None:
        """Begin to listen."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        import sqlite3

        if isinstance(error, sqlite3.Error):
            raise self._of(error) from error

    def _of(self, error: sqlite3.Error) -> RunbookError:
        path, what = self.path, self.form.what
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return _refused(path, self.form, visible(str(error)))
        busy = name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
        return unavailable(path.name, str(path), str(error), what, busy=busy)


def _refused(path: Path, form: Form, why: str) -> RunbookError:
    return not_a_store(path.name, str(path), why, form.what)


def _close_in(process: int, database: sqlite3.Connection) -> None:
    if os.getpid() == process:
        database.close()


def _nothing() -> None:
    """Close nothing."""
