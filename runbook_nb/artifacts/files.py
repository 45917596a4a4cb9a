"""A store in a folder: one file per ticket, one per payload, none of which is ever half there.

A file is written beside its place, brought to the disk and put in place in one step, and the
folder that names it is brought to the disk too. One process writes in a scope at a time; what one
was killed at is cleared away by the next that writes there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from runbook_nb._files import release_file, sync_folder, take_file
from runbook_nb.artifacts import durable
from runbook_nb.artifacts.base import DEFAULT_MAX_BYTES, DEFAULT_MAX_COUNT
from runbook_nb.artifacts.durable import not_a_store, path_of, unavailable
from runbook_nb.artifacts.layout import FolderStore

T = TypeVar("T")

#: What a file is called until it is put in its place. Whoever holds the key is alone in there.
_DRAFT: Final = "draft"
#: Seconds between two looks at a key that somebody else holds, at first and at most.
_LOOKS: Final = (0.0005, 0.01)
#: How often a folder is made again that others remove as often for being empty.
_TRIES: Final = 100

# Where a system lacks them there are no links to follow, and no files that keep one waiting.
_PLAIN: Final = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_READ: Final = os.O_RDONLY | _PLAIN
_WRITE: Final = os.O_WRONLY | os.O_CREAT | _PLAIN

#: Who may read is the caller's umask to say.
_MODE: Final = 0o666


class FileArtifacts(FolderStore):
    """Keeps artifacts in a folder of files, each scope within a budget of bytes and rows.

    Several threads and processes may use one folder at once, each through a store of its own.
    What a verb has acknowledged is on the disk: it survives the end of the process and a crash of
    the machine. Equal payloads are one file under several names, where the file system has such;
    a copy of the folder is a store too. A store travels to another process as its path and its
    budget.

    A file that is cut short, changed or somebody else's is never given back: ``get``, ``head`` and
    a parent say ``integrity``, lists leave it out, the display counts it, `faults` names it, and
    ``delete`` takes it away. Tickets are checked when they are read, payloads when they are given.

    Parameters
    ----------
    path : str or path
        The folder; made when it is not there.
    max_bytes, max_count : int
        Budget of one scope, in bytes before compression; the least recently used rows leave when
        it is reached, and ``put`` says which.
    ttl_ms : int, optional
        How long a row is kept at most, in milliseconds.

    Raises
    ------
    ArtifactError
        ``not_a_store``: the folder holds something else, or a form this version does not know.
        ``store_busy``: others kept a scope for half a minute. ``store_unavailable``: it cannot be
        read or written.

    Examples
    --------
    >>> import tempfile
    >>> from runbook_nb.artifacts import ArtifactScope
    >>> folder, scope = tempfile.TemporaryDirectory(), ArtifactScope("c1")
    >>> store = FileArtifacts(f"{folder.name}/walks")
    >>> ref = store.put_sync(scope, {"kind": "note", "mediaType": "text/plain",
    ...                              "data": "é"}).meta.ref
    >>> FileArtifacts(f"{folder.name}/walks").get_sync(scope, ref).data
    'é'
    >>> store.faults()
    ()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_count: int = DEFAULT_MAX_COUNT,
        ttl_ms: int | None = None,
    ) -> None:
        self.path = path_of(path)
        super().__init__(_LocalFiles(self.path), max_bytes, max_count, ttl_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self.retention
        return (type(self), (str(self.path), kept.max_bytes, kept.max_count, kept.ttl_ms))


class _LocalFiles:
    """Files of a folder of this machine, or of one that behaves like it.

    Parameters
    ----------
    root : Path
        The folder; it is made, but not the folders it is in.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = root.name
        self.where = str(root)
        self._draft: Path | None = None
        with self._told():
            if root.exists() and not root.is_dir():
                raise not_a_store(self.name, self.where, "it is not a folder")
            with suppress(FileExistsError):
                root.mkdir()

    def read(self, path: str, most: int | None = None) -> bytes | None:
        with self._told():
            return _read(self.root / path, most)

    def read_each(self, paths: Sequence[str]) -> Iterable[bytes | None]:
        return [self.read(path) for path in paths]

    def write(self, path: str, data: bytes) -> None:
        with self._told():
            draft = self._written(data)
            self._placed(self.root / path, draft.replace)

    def share(self, path: str, data: bytes) -> None:
        target = self.root / path
        with self._told():
            for other in _names(target.parent):
                # Read and compared: a damaged payload must not be handed on.
                with suppress(OSError):
                    if _read(target.with_name(other), len(data) + 1) == data:
                        os.link(target.with_name(other), target)
                        sync_folder(target.parent)
                        return
        self.write(path, data)

    def append(self, path: str, data: bytes) -> int:
        def add(target: Path) -> int:
            file = os.open(target, _WRITE | os.O_APPEND, _MODE)
            try:
                os.write(file, data)
                return os.fstat(file).st_size
            finally:
                os.close(file)

        with self._told():
            return self._placed(self.root / path, add, sure=False)

    def remove(self, path: str) -> None:
        with self._told(), suppress(FileNotFoundError, NotADirectoryError):
            target = self.root / path
            target.unlink()
            sync_folder(target.parent)

    def names(self, folder: str) -> list[str]:
        with self._told():
            return _names(self.root / folder)

    def prune(self, folder: str) -> None:
        with suppress(OSError):  # it is not empty, or another removed it
            (self.root / folder).rmdir()

    @contextmanager
    def holding(self, key: str) -> Iterator[None]:
        shard = key[:2]
        with self._told():
            self._folder(self.root / "locks")
            file = os.open(self.root / "locks" / shard, os.O_RDWR | os.O_CREAT, _MODE)
        try:
            with self._told():
                _hold(file, self)
            try:
                self._draft = self.root / "drafts" / shard
                yield
            finally:
                self._draft = None
                release_file(file)
        finally:
            os.close(file)

    @contextmanager
    def doing(self, *task: str) -> Iterator[None]:
        with self._told():
            note = self._drafts() / ".".join(task)
            os.close(os.open(note, _WRITE, _MODE))
        yield
        self.forget(*task)

    def undone(self, key: str) -> Iterable[tuple[str, ...]]:
        folder = self.root / "drafts" / key[:2]
        with self._told():
            tasks = [tuple(name.split(".")) for name in _names(folder) if name != _DRAFT]
            (folder / _DRAFT).unlink(missing_ok=True)
        return [task for task in tasks if len(task) == 3]

    def forget(self, *task: str) -> None:
        with self._told():
            (self._drafts() / ".".join(task)).unlink(missing_ok=True)

    def noted(self) -> set[str]:
        drafts = self.root / "drafts"
        with self._told():
            notes = [note for shard in _names(drafts) for note in _names(drafts / shard)]
        return {note.rpartition(".")[2] for note in notes}

    def clear(self) -> int:
        return 0  # whoever next holds a key does it

    def _written(self, data: bytes) -> Path:
        draft = self._drafts() / _DRAFT
        file = os.open(draft, _WRITE | os.O_TRUNC, _MODE)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        finally:
            os.close(file)
        return draft

    def _drafts(self) -> Path:
        assert self._draft is not None  # noqa: S101 - nothing is written without a key
        self._folder(self._draft)
        return self._draft

    def _placed(self, target: Path, place: Callable[[Path], T], *, sure: bool = True) -> T:
        """Do what needs the folder of a file, which others may remove while it is empty."""
        for _ in range(_TRIES):
            try:
                done = place(target)
                if sure:
                    sync_folder(target.parent)
                return done
            except FileNotFoundError:
                self._folder(target.parent)
        return place(target)

    def _folder(self, folder: Path) -> None:
        """Make a folder and those it is in, up to the root, which is somebody else's to make."""
        if folder.is_dir():
            return
        if folder.parent != self.root:
            self._folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir()
            sync_folder(folder.parent)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the system says as an error of this package."""
        try:
            yield
        except OSError as error:
            said = error.strerror or type(error).__name__
            raise unavailable(self.name, self.where, said) from error


def _read(path: Path, most: int | None) -> bytes | None:
    try:
        file = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        if path.is_symlink():
            return b""  # what a link leads to was not filed here
        raise
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return b""
        return opened.read(-1 if most is None else most)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone, which is what is asked most
    except (FileNotFoundError, NotADirectoryError):
        return []


def _hold(file: int, files: _LocalFiles) -> None:
    from time import monotonic, sleep

    wait, most = _LOOKS
    until = monotonic() + durable.BUSY_SECONDS
    while not take_file(file):
        if monotonic() > until:
            raise unavailable(files.name, files.where, "another process holds it", busy=True)
        sleep(wait)
        wait = min(2 * wait, most)
