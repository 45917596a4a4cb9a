"""A store in a bucket, or in any other place that fsspec can reach.

The files are those of `FileArtifacts`; what differs is how they are written, as an object store
has neither a lock nor a file that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runbook_nb._ids import random_id
from runbook_nb._text import clip, visible
from runbook_nb.artifacts.base import DEFAULT_MAX_BYTES, DEFAULT_MAX_COUNT
from runbook_nb.artifacts.durable import unavailable
from runbook_nb.artifacts.layout import FolderStore
from runbook_nb.errors import ArtifactError, DefinitionError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fsspec import AbstractFileSystem

T = TypeVar("T")

#: Protocols whose files are written bit by bit under their own name, so that they are written
#: under another and renamed; and whose folders stay when they are empty.
_WITH_FOLDERS: Final = frozenset({"file", "local", "ftp", "sftp", "ssh", "smb", "hdfs"})
_EMPTY_FOLDERS: Final = _WITH_FOLDERS | {"memory"}


class RemoteArtifacts(FolderStore):
    """Keeps artifacts wherever fsspec can write: S3, GCS, Azure, SFTP, memory, a mounted folder.

    What holds everywhere: an artifact is there once its ticket is, and its ticket is written last,
    so a put that was cut short is never seen; every payload is checked against its digest when it
    is given; what was damaged is told as by `FileArtifacts`. On an object store a file appears
    when its upload has ended, whole. Where files are written in place (a local or mounted folder,
    SFTP, SMB, HDFS, FTP), they are written under another name and renamed.

    What no object store can promise, and this does not: a lock between processes, and a step made
    of several files. Several processes may write at once and lose nothing of each other, but two
    that write in one scope in the same moment may each see room for a row, so that together they
    exceed its budget until the next put, and may lose one another's note of what was used last,
    so that another row leaves than the least recently used one. A process that is killed leaves at
    most a payload without a ticket, which nobody ever reads and `tidy` removes. Each object store
    says for itself when a listing shows what was just written; S3, GCS and Azure do at once.
    Whether what was acknowledged survives a crash of the machine is for the file system to say,
    too. Where such things matter and there is a disk, take `FileArtifacts` or `SqliteArtifacts`.

    ``put`` takes about six requests and ``get`` four, so this is the dearest of the stores.

    Parameters
    ----------
    place : str or fsspec file system
        A URL such as ``"s3://bucket/walks"``, or a file system, with ``path``.
    path : str
        The folder in a file system that was given itself.
    options : mapping, optional
        What fsspec takes for such a URL (``{"profile": "ops"}``).
    max_bytes, max_count : int
        Budget of one scope, in bytes before compression; the least recently used rows leave when
        it is reached, and ``put`` says which.
    ttl_ms : int, optional
        How long a row is kept at most, in milliseconds.

    Raises
    ------
    DefinitionError
        fsspec, or what it needs for such a URL, is not installed; or the URL is none.
    ArtifactError
        ``not_a_store``: the place holds something else. ``store_unavailable``: it cannot be
        reached, read or written.

    Examples
    --------
    >>> from runbook_nb.artifacts import ArtifactScope
    >>> store, scope = RemoteArtifacts("memory://walks"), ArtifactScope("c1")
    >>> ref = store.put_sync(scope, {"kind": "note", "mediaType": "text/plain",
    ...                              "data": "é"}).meta.ref
    >>> RemoteArtifacts("memory://walks").get_sync(scope, ref).data
    'é'
    >>> store.delete_sync(scope, ref)
    True
    """

    def __init__(
        self,
        place: str | AbstractFileSystem,
        path: str = "",
        *,
        options: Mapping[str, Any] | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_count: int = DEFAULT_MAX_COUNT,
        ttl_ms: int | None = None,
    ) -> None:
        self._given = (place, path, None if options is None else dict(options))
        files = _RemoteFiles(*_reached(place, path, options or {}))
        #: Where it is, without what lets one in.
        self.url = files.where
        super().__init__(files, max_bytes, max_count, ttl_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        kept = self.retention
        dials = {"max_bytes": kept.max_bytes, "max_count": kept.max_count, "ttl_ms": kept.ttl_ms}
        return (_remade, (type(self), *self._given, dials))


def _remade(
    kind: type[RemoteArtifacts], place: Any, path: str, options: Any, dials: Mapping[str, Any]
) -> RemoteArtifacts:
    return kind(place, path, options=options, **dials)


class _RemoteFiles:
    """Files of a place that fsspec reaches."""

    def __init__(self, system: AbstractFileSystem, root: str) -> None:
        protocols = {system.protocol} if isinstance(system.protocol, str) else {*system.protocol}
        self._system = system
        self._root = root.rstrip("/")
        self._renames = bool(protocols & _WITH_FOLDERS)
        self._prunes = bool(protocols & _EMPTY_FOLDERS)
        self.name = self._root.rpartition("/")[2]
        self.where = str(system.unstrip_protocol(self._root))

    def read(self, path: str, most: int | None = None) -> bytes | None:
        # All of it whatever most says: a store that is asked for a part of nothing is in error.
        with self._told():
            try:
                return bytes(self._system.cat_file(self._at(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None
            except IsADirectoryError:
                return b""

    def read_each(self, paths: Sequence[str]) -> Iterable[bytes | None]:
        if not paths:
            return []
        with self._told():  # all at once, where the place can do that
            places = [self._at(path) for path in paths]
            found = self._system.cat(places, on_error="return")
        for said in found.values():
            if isinstance(said, Exception) and not isinstance(said, FileNotFoundError):
                with self._told():
                    raise said
        return [_bytes_or_none(found.get(place)) for place in places]

    def write(self, path: str, data: bytes) -> None:
        with self._told():
            target = self._at(path)
            if not self._renames:
                self._system.pipe_file(target, data)
                return
            draft = self._at(f"drafts/{random_id(22)}")
            self._into(draft, lambda: self._system.pipe_file(draft, data))
            self._into(target, lambda: self._system.mv(draft, target))

    def share(self, path: str, data: bytes) -> None:
        self.write(path, data)

    def append(self, path: str, data: bytes) -> int:
        # No object grows. Each line is kept once, where it came last, so that none grows for ever.
        lines = (self.read(path) or b"").split(b"\n")
        kept = [line for line in lines if line and line not in data]
        whole = b"".join(b"\n" + line for line in kept) + data
        self.write(path, whole)
        return len(whole)

    def remove(self, path: str) -> None:
        with self._told(), suppress(FileNotFoundError):
            self._system.rm_file(self._at(path))

    def names(self, folder: str) -> list[str]:
        place = self._at(folder)
        with self._told():
            try:
                self._system.invalidate_cache(place)
                found = self._system.ls(place, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        names = (str(name).rstrip("/").rpartition("/") for name in found)
        return [name for parent, _, name in names if parent.endswith(place.strip("/"))]

    def prune(self, folder: str) -> None:
        if self._prunes:
            with suppress(OSError):
                self._system.rmdir(self._at(folder))

    def holding(self, key: str) -> AbstractContextManager[None]:
        return nullcontext()

    def doing(self, *task: str) -> AbstractContextManager[None]:
        return nullcontext()

    def undone(self, key: str) -> Iterable[tuple[str, ...]]:
        return ()

    def forget(self, *task: str) -> None:
        """Nothing is noted: who else is at work cannot be known."""

    def noted(self) -> set[str]:
        return set()

    def clear(self) -> int:
        drafts = self.names("drafts")
        for name in drafts:
            self.remove(f"drafts/{name}")
        return len(drafts)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _into(self, target: str, act: Callable[[], T]) -> T:
        """Do what needs the folder of a file, which others may remove while it is empty."""
        for _ in range(100):
            try:
                return act()
            except FileNotFoundError:
                self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
        return act()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the place says as an error of this package; each has errors of its own."""
        try:
            yield
        except ArtifactError:
            raise
        except Exception as error:
            raise unavailable(self.name, self.where, _said(error)) from error


def _said(error: Exception) -> str:
    """Give what an error says without the words of a place, which may hold a secret."""
    return str(getattr(error, "strerror", None) or type(error).__name__)


def _bytes_or_none(said: Any) -> bytes | None:
    return None if said is None or isinstance(said, Exception) else bytes(said)


def _reached(place: Any, path: str, options: Mapping[str, Any]) -> tuple[AbstractFileSystem, str]:
    try:
        from fsspec import AbstractFileSystem
        from fsspec.core import url_to_fs
    except ImportError:
        raise DefinitionError(
            "RemoteArtifacts needs fsspec",
            code="missing_extra",
            where="place",
            fix="pip install 'runbook-nb[remote]', and what fsspec needs for the place",
        ) from None
    if isinstance(place, AbstractFileSystem):
        root = str(place._strip_protocol(path)).rstrip("/") if path else ""
        if not root:
            raise DefinitionError(
                "a file system alone is no place for a store",
                where="path",
                fix="write RemoteArtifacts(fs, 'bucket/folder')",
            )
        return place, root
    if not isinstance(place, str) or "://" not in place:
        raise DefinitionError(
            f"{clip(visible(repr(place)), 80)} is no URL",
            where="place",
            fix="write 's3://bucket/folder', or give a file system of fsspec; a folder of this "
            "machine is better kept by FileArtifacts",
        )
    protocol = place.partition("://")[0]
    try:
        system, root = url_to_fs(f"{place.rstrip('/')}/{path}" if path else place, **options)
    except (ImportError, ValueError, TypeError) as error:
        raise DefinitionError(
            f"fsspec cannot reach {visible(protocol)}:// ({clip(visible(str(error)), 200)})",
            where="place",
            fix="install what it names, or see the options it takes",
        ) from error
    except Exception as error:  # some places are called at once, and each has errors of its own
        # Not the place itself, which may hold what lets one in.
        raise unavailable(protocol, f"{protocol}://", _said(error)) from error
    if not root.strip("/"):
        raise DefinitionError(
            "a whole file system is no place for a store",
            where="place",
            fix="name a folder in it",
        )
    return system, root
