"""A journal in a file of lines, for one plan."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._files import release_file, sync_folder, take_file
from runbook_nb.artifacts.durable import path_of
from runbook_nb.playbooks.journal import PlaybookJournal
from runbook_nb.playbooks.journal_lines import Reading, read_bytes

if TYPE_CHECKING:
    from runbook_nb.playbooks.events import Event

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
#: Who may read is the caller's umask to say.
_MODE: Final = 0o666


class JsonlJournal(PlaybookJournal):
    """Keeps the events of one plan in a file: one line of JSON for each, bound to the one before.

    What `append` has written is on the disk when it returns: it survives the end of the process
    and a crash of the machine. A line that was broken off by either was never acknowledged: it is
    told, does not count, and is cut off when the plan is taken up again. Anything else that is
    wrong with the file is refused, and nothing is written to it.

    Parameters
    ----------
    path : str or path
        The file; made when the first event is written.

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from runbook_nb.playbooks.events import Begun, Reset
    >>> from runbook_nb.playbooks.model import Playbook
    >>> at, book = datetime(2026, 1, 1, tzinfo=UTC), Playbook(id="ir", name="Incident response")
    >>> folder = tempfile.TemporaryDirectory()
    >>> with JsonlJournal(f"{folder.name}/ir.jsonl") as journal:
    ...     journal.append([Begun(seq=1, at=at, playbook=book, digest="", policy={}, skills={})])
    ...     journal.append([Reset(seq=2, at=at)])
    >>> again = JsonlJournal(f"{folder.name}/ir.jsonl")
    >>> [event.kind for event in again.events()], again.head == journal.head
    (['begun', 'reset'], True)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(str(path))
        with self._told():
            self.path = path_of(path)
        self.name = self.path.name
        self._file: int | None = None
        self._size = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self.path),))

    def _begin(self, first: Event) -> tuple[int, str | None]:
        new = not self.path.exists()
        if new:
            self._follow([first], 0)
        file = os.open(self.path, _FLAGS, _MODE)
        try:
            if not take_file(file):
                raise self._cannot("another writes to it", "journal_in_use")
            found = self._read()
            found.refuse_faults(self.name)
            self._follow([first], len(found.lines))  # before anything is cut off
            if found.torn:
                os.ftruncate(file, found.size)
                os.fsync(file)
            if found.unended:
                os.write(file, b"\n")
            if new:
                sync_folder(self.path.parent)
        except BaseException:
            os.close(file)
            raise
        self._file, self._size = file, found.size + found.unended
        return len(found.lines), found.head

    def _write(self, texts: Sequence[str], count: int, head: str | None) -> None:
        assert self._file is not None  # noqa: S101 - taken by `_begin`
        data = "".join(f"{text}\n" for text in texts).encode()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except BaseException as error:
            # What of it is on the disk cannot be known before the file is read again.
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            why = f"writing to it was broken off ({type(error).__name__})"
            self._refused = why, "journal_unavailable"
            self._let_go()
            raise
        self._size += len(data)

    def _read(self) -> Reading:
        try:
            return read_bytes(self.path.read_bytes())
        except FileNotFoundError:
            return Reading()

    def _let_go(self) -> None:
        super()._let_go()
        file, self._file = self._file, None
        if file is not None:
            release_file(file)
            os.close(file)

    def _forget(self) -> None:
        # Only closed: to say that it is free would take it from the parent.
        super()._forget()
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
