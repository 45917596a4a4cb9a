"""Reading what Debian keeps on a machine: installed packages, and who still supports them.

Examples layer. It reads files and judges nothing. Three sources that may each be missing: the
status file of dpkg, the lists of ``debian-security-support``, the dates of ``distro-info-data``.
Versions are compared by dpkg itself; where there is no dpkg, a comparison has no answer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from csv import DictReader
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard

from runbook_nb.errors import LoadError

#: Where Debian keeps what is read here.
STATUS: Final = Path("/var/lib/dpkg/status")
SUPPORT: Final = Path("/usr/share/debian-security-support")
RELEASES: Final = Path("/usr/share/distro-info/debian.csv")
RELEASE: Final = Path("/etc/debian_version")

#: Seconds that dpkg may take for a comparison.
PATIENCE: Final = 10.0

_SOURCE: Final = re.compile(r"(\S+)(?: \(\S+\))?")


class Entry(NamedTuple):
    """A line of a support list: which sources, the last version and day if any, and why."""

    pattern: re.Pattern[str]
    last_version: str | None
    ends: date | None
    reason: str


class Support(NamedTuple):
    """The two lists of ``debian-security-support`` for a release."""

    limited: tuple[Entry, ...]
    ended: tuple[Entry, ...]


def installed_packages(status: str | Path) -> list[dict[str, Any]]:
    """Read the packages that are properly installed.

    Returns
    -------
    list of dict
        ``package`` (with its architecture where a name is there twice), ``version``, ``source``,
        ``problem`` (what the entry lacks; mostly empty).

    Raises
    ------
    LoadError
        The file cannot be read.
    """
    text = _read(Path(status), "run it on Debian, or give the status file of a Debian machine")
    found: list[dict[str, Any]] = []
    for fields in _stanzas(text):
        if fields.get("status", "").split()[-1:] != ["installed"]:
            continue
        name, version = fields.get("package", ""), fields.get("version", "")
        source = _SOURCE.fullmatch(fields.get("source", name))
        lost = [word for word, value in (("name", name), ("version", version)) if not value]
        found.append(
            {
                "package": name or f"entry {len(found) + 1}",
                "version": version or None,
                "source": source[1] if source else name,
                "problem": f"its entry has no {' and no '.join(lost)}" if lost else "",
                "_architecture": fields.get("architecture", ""),
            }
        )
    return _told_apart(found)


def _read(path: Path, fix: str) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LoadError(
            f"the source is missing: {str(path)!r} cannot be read: {error.strerror}",
            code="source_missing",
            where=str(path),
            fix=fix,
        ) from error


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    for block in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            if line[:1].isspace():  # goes on with the field before, which nobody asks for here
                continue
            name, colon, value = line.partition(":")
            if colon:
                fields[name.lower()] = value.strip()
        if fields:
            yield fields


def _told_apart(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    times = Counter(row["package"] for row in rows)
    for row in rows:
        architecture = row.pop("_architecture")
        if times[row["package"]] > 1 and architecture:
            row["package"] = f"{row['package']}:{architecture}"
    return rows


def read_support(folder: str | Path, release: str) -> Support:
    """Read the support lists for a release of Debian, as ``12``.

    Raises
    ------
    LoadError
        A list is not there (``source_missing``), or a line of it cannot be read.
    """
    folder = Path(folder)
    return Support(
        tuple(_entries(folder / "security-support-limited", 1)),
        tuple(_entries(folder / f"security-support-ended.deb{release}", 3)),
    )


def _entries(path: Path, columns: int) -> Iterator[Entry]:
    lines = _read(path, "apt-get install debian-security-support").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, columns)
        try:
            yield Entry(
                re.compile(words[0]),
                words[1] if columns == 3 else None,
                date.fromisoformat(words[2]) if columns == 3 else None,
                words[columns].strip() if len(words) > columns else "",
            )
        except (IndexError, ValueError, re.error) as error:
            raise LoadError(
                f"line {number} of {path.name!r} cannot be read: {error}",
                where=f"{path}, line {number}",
                fix="a line has a source, for ended support its last version and day, and a reason",
            ) from error


def entry_for(source: str, entries: Sequence[Entry]) -> Entry | None:
    """Find the first entry whose pattern is the whole name of a source package.

    Examples
    --------
    >>> golang = Entry(re.compile("golang.*"), None, None, "static linking")
    >>> entry_for("golang-1.19", [golang]) is golang, entry_for("my-golang", [golang])
    (True, None)
    """
    return next((entry for entry in entries if entry.pattern.fullmatch(source)), None)


def read_release(path: str | Path = RELEASE) -> str | None:
    """Read which release of Debian this is, as ``12``; None where it is no stable release.

    Raises
    ------
    LoadError
        The file cannot be read: this is no Debian.
    """
    text = _read(Path(path), "run it on Debian, or say which release the status file is of").strip()
    number = text.partition(".")[0]
    return number if number.isdigit() else None


def release_support(path: str | Path, release: str, day: date) -> tuple[str | None, str]:
    """Say who supports a release of Debian on a day.

    Returns
    -------
    state : {"regular", "lts", "extended", "none"} or None
        None where the dates do not tell.
    words : str
        What the state rests on.

    Raises
    ------
    LoadError
        The file is not there.
    """
    rows = DictReader(_read(Path(path), "apt-get install distro-info-data").splitlines())
    row = next((row for row in rows if row.get("version") == release), None)
    if row is None:
        return None, f"{Path(path).name} has no Debian {release}"
    return support_on(row, day)


def support_on(row: Mapping[str, str | None], day: date) -> tuple[str | None, str]:
    """Say who supports a release on a day, by its dates; a date is the last day of its kind.

    Examples
    --------
    >>> row = {"release": "2023-06-10", "eol": "2026-07-11", "eol-lts": "2028-06-30"}
    >>> support_on(row, date(2026, 11, 29))
    ('lts', 'long-term support until 2028-06-30')
    >>> support_on({"release": None}, date(2026, 11, 29))[0] is None
    True
    """
    try:
        dates = {name: date.fromisoformat(text) for name, text in row.items() if _dated(text)}
    except ValueError as error:
        return None, f"its dates cannot be read: {error}"
    if "release" not in dates or dates["release"] > day:
        return None, "it is not released yet"
    if "eol" not in dates:
        return None, "the end of its support has no date"
    for name, state, words in (
        ("eol", "regular", "regular support"),
        ("eol-lts", "lts", "long-term support"),
        ("eol-elts", "extended", "extended support"),
    ):
        if name in dates and day <= dates[name]:
            return state, f"{words} until {dates[name]}"
    return "none", f"its support ended, the last of it on {max(dates.values())}"


def _dated(text: str | None) -> TypeGuard[str]:
    return isinstance(text, str) and bool(re.match(r"\d{4}-", text))


@lru_cache(maxsize=4096)
def is_past(version: str, last: str) -> bool | None:
    """Say whether a version is later than another, as dpkg orders them; None without dpkg."""
    program = shutil.which("dpkg")
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - no shell; versions are arguments, never options
            [program, "--compare-versions", version, "gt", last],
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # 2 is a version that dpkg cannot read; it warns of others, and still orders them.
    return {0: True, 1: False}.get(done.returncode)


def support_rows(
    packages: Sequence[Mapping[str, Any]],
    day: date,
    support: Support | None,
    release: str | None,
    compare: Callable[[str, str], bool | None] | None = None,
) -> list[dict[str, Any]]:
    """Put beside each package what the lists and dates say of it.

    Parameters
    ----------
    packages : sequence of mappings
        As `installed_packages` gives them.
    day : date
        The day to judge at.
    support : Support or None
        The lists; None where they are missing.
    release : str or None
        Who supports the release, as `release_support` says; None where that is not known.
    compare : callable
        Whether the first version is later than the second, None where nobody can say; `is_past`
        by default.

    Returns
    -------
    list of dict
        Beside the package: ``limited``, ``support_ended``, ``support_ends`` (truth values, None
        without the lists), ``past_last_version``, ``last_version``, ``ends``, ``reason``,
        ``release_support``.
    """
    later = is_past if compare is None else compare
    rows = []
    for package in packages:
        row: dict[str, Any] = dict(package)
        row |= dict.fromkeys(("limited", "support_ended", "support_ends", "past_last_version"))
        row |= {"last_version": None, "ends": None, "reason": None, "release_support": release}
        if support is not None:
            limits = entry_for(row["source"], support.limited)
            end = entry_for(row["source"], support.ended)
            row["limited"] = limits is not None
            row["support_ended"] = end is not None and end.ends is not None and end.ends <= day
            row["support_ends"] = end is not None and not row["support_ended"]
            if end is not None:
                row |= {"last_version": end.last_version, "ends": end.ends}
                if row["version"] and end.last_version and not row["problem"]:
                    row["past_last_version"] = later(row["version"], end.last_version)
                words = "ended" if row["support_ended"] else "ends"
                row["reason"] = f"{words} on {end.ends}: {end.reason}".removesuffix(": ")
            elif limits is not None:
                row["reason"] = limits.reason
        rows.append(row)
    return rows
