"""Reading the file systems and file descriptors of this machine: a row for what can run out.

Examples layer. It measures and judges nothing, and needs no rights. Linux lists its mounts in a
file, macOS by a program. A file system of the network may never answer: each is asked in a thread
of its own, and one that is late becomes a row whose ``problem`` says so.
"""

from __future__ import annotations

import csv
import math
import os
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import linear_regression
from time import monotonic
from typing import Any, Final, NamedTuple

from runbook_nb._text import counted
from runbook_nb.coverage import Item
from runbook_nb.errors import DefinitionError, LoadError
from runbook_nb.examples.procedure import table_rows

#: Seconds after which a file system counts as one that does not answer.
PATIENCE: Final = 5.0

#: Hours of history that a prediction is made of, as the mixin has it.
WINDOW_HOURS: Final = 6.0

#: Hours that samples must span, this one included. Less says nothing about a day; our own limit.
SPAN_HOURS: Final = 1.0

#: File systems that hold no files of anybody: interfaces of the kernel. Asking one may have effects
#: (``autofs`` mounts something), so these are told apart by their kind alone.
PSEUDO: Final = frozenset(
    {
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devfs"),
        *("devpts", "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc"),
        *("procfs", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs"),
    }
)

#: Columns of a history.
HISTORY: Final = ("time", "mount", "free_bytes", "free_files")

_LINUX: Final = Path("/proc/self/mounts")
_DESCRIPTORS: Final = Path("/proc/sys/fs/file-nr")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_BSD_LINE: Final = re.compile(r"(.+?) on (/.*) \(([^(), ]+)((?:, [^()]*)?)\)")


class Mount(NamedTuple):
    """A mount as the system lists it."""

    device: str
    point: str
    kind: str
    read_only: bool


class Usage(NamedTuple):
    """What a file system says of itself; ``free`` is what a user without rights may have."""

    identity: Any
    size: int
    free: int
    files: int
    files_free: int


class Sample(NamedTuple):
    """What was free on a mount at a moment; None where it was not written down."""

    at: datetime
    point: str
    free: int | None
    files_free: int | None


def list_mounts() -> list[Mount]:
    """List the mounts of this machine, in the system's order.

    Raises
    ------
    LoadError
        The system lists them in no way that is known here.
    """
    if _LINUX.exists():
        return list(parse_mounts(_LINUX.read_text(encoding="utf-8", errors="surrogateescape")))
    text = _ask("/sbin/mount")
    if text is None:
        raise LoadError(
            "the mounts of this machine cannot be listed",
            code="source_missing",
            where="mounts",
            fix="it is known how on Linux and macOS; elsewhere give rows: disks.toolbox(rows)",
        )
    return list(parse_bsd_mounts(text))


def _ask(*command: str) -> str | None:
    """Ask a program of the system; None where there is none, or it does not answer."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed paths, no shell, nothing of the caller's
            command, capture_output=True, check=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def parse_mounts(text: str) -> Iterator[Mount]:
    r"""Read a table of mounts as Linux writes it.

    Examples
    --------
    >>> next(parse_mounts(r"/dev/sda1 /srv/a\040b ext4 ro,relatime 0 0")).point
    '/srv/a b'
    """
    for line in text.splitlines():
        words = [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), word) for word in line.split()]
        if len(words) >= 4:
            yield Mount(words[0], words[1], words[2], "ro" in words[3].split(","))


def parse_bsd_mounts(text: str) -> Iterator[Mount]:
    """Read a table of mounts as the ``mount`` of macOS writes it.

    Examples
    --------
    >>> next(parse_bsd_mounts("/dev/disk3s1 on / (apfs, sealed, local, read-only)"))
    Mount(device='/dev/disk3s1', point='/', kind='apfs', read_only=True)
    """
    for line in text.splitlines():
        if found := _BSD_LINE.fullmatch(line):
            yield Mount(found[1], found[2], found[3], "read-only" in found[4].split(", "))


def measure(point: str) -> Usage:
    """Ask the file system mounted there how much of it is free.

    Examples
    --------
    >>> usage = measure("/")
    >>> 0 <= usage.free <= usage.size
    True
    """
    told = os.statvfs(point)
    return Usage(
        Path(point).stat().st_dev,
        told.f_blocks * told.f_frsize,
        told.f_bavail * told.f_frsize,
        told.f_files,
        told.f_ffree,
    )


def resource_rows(
    now: datetime,
    *,
    mounts: Iterable[Mount] | None = None,
    history: Sequence[Sample] = (),
    ask: Callable[[str], Usage] = measure,
    descriptors: Callable[[], tuple[int, int] | None] | None = None,
    patience: float = PATIENCE,
) -> tuple[list[dict[str, Any]], list[Item]]:
    """Measure what can run out: space and files of each file system, and file descriptors.

    Parameters
    ----------
    now : datetime
        The moment, for predictions; with a zone.
    mounts : iterable of Mount, optional
        Those of this machine by default.
    history : sequence of Sample
        Earlier measurements. Those of the last six hours make the predictions.
    ask : callable
        Takes a mount point and gives its `Usage`, or raises OSError.
    descriptors : callable, optional
        Gives how many file descriptors are open, and how many may be.
    patience : float
        Seconds after which a file system counts as one that does not answer.

    Returns
    -------
    rows : list of dict
        ``resource`` (what it is, unique), ``kind`` (space, files, descriptors), ``free_percent``,
        ``used_percent``, ``free_in_4h_percent`` and ``free_in_24h_percent`` (below zero: full by
        then; None without a history), ``problem`` (empty where it could be measured).
    left_out : list of Item
        What was not looked at.
    """
    usages, left_out = _asked(list_mounts() if mounts is None else mounts, ask, patience)
    rows: list[dict[str, Any]] = []
    for point, usage in usages:
        if isinstance(usage, str):
            rows.append(_row(f"{point} space", "space", problem=usage))
        else:
            rows += _usage_rows(point, usage, now, history)
    rows += _descriptor_rows(read_descriptors if descriptors is None else descriptors)
    return rows, [*left_out, *_unpredicted(rows)]


def _asked(
    mounts: Iterable[Mount], ask: Callable[[str], Usage], patience: float
) -> tuple[list[tuple[str, Usage | str]], list[Item]]:
    """Ask each file system that could fill up once; tell what was left out."""
    # Of two mounts on one point the later hides the earlier.
    points = {mount.point: mount for mount in mounts}
    pseudo = [mount for mount in points.values() if mount.kind in PSEUDO]
    closed = [m for m in points.values() if m.kind not in PSEUDO and m.read_only]
    asked = [m for m in points.values() if m.kind not in PSEUDO and not m.read_only]
    answers = ask_all([mount.point for mount in asked], ask, patience)
    usages: list[tuple[str, Usage | str]] = []
    seen: set[Any] = set()
    again = 0
    for mount in sorted(asked, key=lambda mount: (mount.point.count("/"), mount.point)):
        usage = answers[mount.point]
        if isinstance(usage, str):
            usages.append((mount.point, usage))
        elif usage.size == 0:
            pseudo.append(mount)
        elif usage.identity in seen:
            again += 1
        else:
            seen.add(usage.identity)
            usages.append((mount.point, usage))
    return usages, _left_out(pseudo, closed, again)


def ask_all(
    points: Sequence[str], ask: Callable[[str], Usage], patience: float
) -> dict[str, Usage | str]:
    """Ask all file systems at once; for each its answer, or what is wrong with it.

    A thread that hangs in the kernel cannot be ended. It is left behind, and dies with the process.
    """
    answers: dict[str, Usage | str] = {}

    def one(point: str) -> None:
        try:
            answers[point] = ask(point)
        except OSError as error:
            answers[point] = f"it cannot be asked: {error.strerror or error}"

    threads = [threading.Thread(target=one, args=(point,), daemon=True) for point in points]
    for thread in threads:
        thread.start()
    end = monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, end - monotonic()))
    late = f"it did not answer within {patience:g} s"
    return {point: answers.get(point, late) for point in points}


def _row(resource: str, kind: str, **values: Any) -> dict[str, Any]:
    row = {
        "resource": resource,
        "kind": kind,
        "free_percent": None,
        "used_percent": None,
        "free_in_4h_percent": None,
        "free_in_24h_percent": None,
        "problem": "",
    }
    return row | values


def _usage_rows(
    point: str, usage: Usage, now: datetime, history: Sequence[Sample]
) -> Iterator[dict[str, Any]]:
    kinds = [("space", usage.free, usage.size)]
    if usage.files:  # some file systems make files as they go, and count none
        kinds.append(("files", usage.files_free, usage.files))
    for kind, free, size in kinds:
        past = [
            (s.at, s.free if kind == "space" else s.files_free) for s in history if s.point == point
        ]
        samples = [(at, value) for at, value in past if value is not None]
        ahead = {hours: predict([*samples, (now, free)], now, hours) for hours in (4, 24)}
        yield _row(
            f"{point} {kind}",
            kind,
            free_percent=_percent(free, size),
            used_percent=_percent(size - free, size, up=True),
            **{
                f"free_in_{hours}h_percent": None if value is None else _percent(value, size)
                for hours, value in ahead.items()
            },
        )


def _percent(part: float, whole: float, *, up: bool = False) -> float:
    """Give a share with two decimals, rounded to the worse side.

    So that a value short of a limit is never shown as the limit.
    """
    return (math.ceil if up else math.floor)(part * 10_000 / whole) / 100


def predict(samples: Sequence[tuple[datetime, float]], now: datetime, hours: float) -> float | None:
    """Predict a value some hours ahead, on the straight line through the last six hours.

    None where the samples do not span an hour.

    Examples
    --------
    >>> from datetime import timedelta
    >>> now = datetime(2026, 11, 29, tzinfo=UTC)
    >>> predict([(now - timedelta(hours=2), 100.0), (now, 80.0)], now, 4)
    40.0
    """
    ages = [((at - now).total_seconds() / 3600, float(value)) for at, value in samples]
    held = [(age, value) for age, value in ages if -WINDOW_HOURS <= age <= 0]
    if not held or max(held)[0] - min(held)[0] < SPAN_HOURS:
        return None
    line = linear_regression([age for age, _ in held], [value for _, value in held])
    return line.intercept + line.slope * hours


def read_descriptors() -> tuple[int, int] | None:
    """Say how many file descriptors of the machine are open, and how many may be."""
    if _DESCRIPTORS.exists():
        words = _DESCRIPTORS.read_text(encoding="ascii").split()
        return int(words[0]) - int(words[1]), int(words[2])
    told = (_ask("/usr/sbin/sysctl", "-n", "kern.num_files", "kern.maxfiles") or "").split()
    return (int(told[0]), int(told[1])) if len(told) == 2 else None


def _descriptor_rows(
    descriptors: Callable[[], tuple[int, int] | None],
) -> Iterator[dict[str, Any]]:
    name, kind = "file descriptors", "descriptors"
    try:
        told = descriptors()
    except (OSError, ValueError) as error:
        yield _row(name, kind, problem=f"they cannot be counted: {error}")
        return
    if told is None or told[1] <= 0:
        yield _row(name, kind, problem="this system does not say how many there are")
        return
    used, most = told
    yield _row(
        name,
        kind,
        free_percent=_percent(most - used, most),
        used_percent=_percent(used, most, up=True),
    )


def _left_out(pseudo: Sequence[Mount], closed: Sequence[Mount], again: int) -> list[Item]:
    items = []
    if pseudo:
        kinds = ", ".join(sorted(Counter(mount.kind for mount in pseudo)))
        items.append(
            Item(
                f"{counted(len(pseudo), 'mount')} of pseudo file systems ({kinds})",
                why="they are interfaces of the kernel and hold no files that could fill them",
            )
        )
    if closed:
        items.append(
            Item(
                f"{counted(len(closed), 'mount')} that can only be read",
                why="nothing is written there, so however full they are, they do not fill up",
            )
        )
    if again:
        items.append(
            Item(
                f"{counted(again, 'mount')} of file systems that are mounted elsewhere as well",
                why="a file system is looked at once, at its shortest path",
            )
        )
    return items


def _unpredicted(rows: Sequence[Mapping[str, Any]]) -> Iterator[Item]:
    measured = [row for row in rows if not row["problem"] and row["kind"] != "descriptors"]
    blind = [row for row in measured if row["free_in_24h_percent"] is None]
    if blind:
        yield Item(
            f"whether {counted(len(blind), 'resource')} of file systems will be full soon",
            why="there is no history of the last hours to predict it from; each is judged by "
            "what is free now",
        )


def read_samples(rows: Iterable[Mapping[str, Any]], source: str) -> list[Sample]:
    """Read a history: rows with ``time``, ``mount``, ``free_bytes`` and ``free_files``.

    Parameters
    ----------
    rows : iterable of mappings
        A time is a datetime, or ISO text; without a zone it is one of UTC.
    source : str
        What they come from, for messages.

    Raises
    ------
    LoadError
        A row has no time, no mount, or something other than numbers.

    Examples
    --------
    >>> rows = [{"time": "2026-11-29T08:00:00", "mount": "/", "free_bytes": "1024"}]
    >>> read_samples(rows, "a list")[0].free
    1024
    """
    samples = []
    for place, row in enumerate(rows, 1):
        try:
            at = row["time"]
            at = at if isinstance(at, datetime) else datetime.fromisoformat(at)
            free, files = row.get("free_bytes"), row.get("free_files")
            sample = Sample(
                at if at.tzinfo else at.replace(tzinfo=UTC),
                str(row["mount"]),
                None if free is None else int(free),
                None if files is None else int(files),
            )
        except (KeyError, TypeError, ValueError) as error:
            told = f"no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
            raise LoadError(
                f"row {place} of {source} is no measurement: {told}",
                where=source,
                fix="give time (2026-11-29T08:00:00Z), mount (/), free_bytes and free_files",
            ) from error
        samples.append(sample)
    return samples


def load_history(path: str | Path) -> list[Sample]:
    """Read a history from a table of comma-separated values.

    Raises
    ------
    LoadError
        The file cannot be read, or a row of it is no measurement.
    """
    return read_samples(table_rows(path, HISTORY), Path(path).name)


def note_history(
    path: str | Path,
    now: datetime,
    *,
    mounts: Iterable[Mount] | None = None,
    ask: Callable[[str], Usage] = measure,
) -> int:
    """Measure this machine and add it to a history; run once in a while, it makes predictions.

    Returns
    -------
    int
        How many file systems were noted.

    Raises
    ------
    DefinitionError
        The moment has no zone, so that it may be taken for another.
    LoadError
        The file is there and holds something else; it is left as it is.
    """
    if now.tzinfo is None:
        raise DefinitionError(
            f"{now.isoformat()} has no zone", where="now", fix="write datetime.now(UTC)"
        )
    path, noted = Path(path), 0
    if path.exists() and path.stat().st_size:
        load_history(path)
    usages, _ = _asked(list_mounts() if mounts is None else mounts, ask, PATIENCE)
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if file.tell() == 0:
            writer.writerow(HISTORY)
        for point, usage in usages:
            if isinstance(usage, Usage):
                files = usage.files_free if usage.files else ""
                writer.writerow((now.isoformat(), point, usage.free, files))
                noted += 1
    return noted
