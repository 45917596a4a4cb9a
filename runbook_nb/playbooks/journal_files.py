"""Journals as files that somebody was handed: found, opened to be read, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from runbook_nb._text import did_you_mean, listed, visible
from runbook_nb.errors import JournalError, LoadError
from runbook_nb.playbooks.journal import PlaybookJournal
from runbook_nb.playbooks.journal_jsonl import JsonlJournal
from runbook_nb.playbooks.journal_lines import has_lines
from runbook_nb.playbooks.journal_sqlite import SqliteJournal
from runbook_nb.record.verification import Verification

#: How the names of files end that may be journals.
SUFFIXES: Final = frozenset({".jsonl", ".sqlite", ".sqlite3", ".db"})


def is_journal_name(path: Path) -> bool:
    """Say whether a file is looked at as a journal, by its name.

    Examples
    --------
    >>> is_journal_name(Path("ir.jsonl")), is_journal_name(Path("answer.json"))
    (True, False)
    """
    return path.suffix.lower() in SUFFIXES


def verify_journals(
    path: Path, *, head: str | Mapping[str, str] | None = None
) -> tuple[Verification, ...]:
    """Check every plan that a file keeps.

    Parameters
    ----------
    path : Path
        A file of lines, or a database of several plans.
    head : str or mapping, optional
        The digest of the last line, noted elsewhere; of several plans, by key.

    Returns
    -------
    tuple of Verification
        None where a file of lines holds nothing that was ever a line of a journal.

    Raises
    ------
    LoadError
        It cannot be read, is another program's database, or a head is given for no plan of it.
    """
    try:
        if not path.is_file() or not path.stat().st_size:
            # Never opened as a database: that would make one of it.
            said = "is empty" if path.is_file() else "is not there"
            if head is None or not path.is_file() or path.suffix.lower() != ".jsonl":
                raise LoadError(
                    f"{visible(path.name)!r} {said}",
                    where=str(path),
                    fix="give the path of a journal",
                )
        journals = _journals(path)
        heads = _heads(head, journals, path)
        return tuple(
            one.verify(head=heads.get(key))
            for key, one in journals.items()
            if heads or path.suffix.lower() != ".jsonl" or has_lines(path.read_bytes())
        )
    except JournalError as error:
        raise LoadError(error.message, code=error.code, where=error.where, fix=error.fix) from error
    except OSError as error:
        raise LoadError(
            f"{visible(path.name)!r} cannot be read: {error.strerror}",
            where=str(path),
            fix="see that it is there and may be read",
        ) from error


def _journals(path: Path) -> dict[str, PlaybookJournal]:
    if path.suffix.lower() == ".jsonl":
        return {"": JsonlJournal(path)}
    first = SqliteJournal(path)
    return {key: first.of(key) for key in first.keys()}  # noqa: SIM118 - no mapping


def _heads(
    head: str | Mapping[str, str] | None, journals: Mapping[str, PlaybookJournal], path: Path
) -> dict[str, str]:
    """Give the head of each plan for which one was noted."""
    if head is None:
        return {}
    if isinstance(head, str):
        if len(journals) == 1:
            return dict.fromkeys(journals, head)
        raise LoadError(
            f"{visible(path.name)!r} keeps {len(journals)} plans, and one head is given for all",
            where="head",
            fix=f"give it by key: {listed(map(visible, list(journals)[:5]), 'or')}",
        )
    for key in head:
        if key not in journals:
            raise LoadError(
                f"{visible(path.name)!r} keeps no plan {key!r}",
                where="head",
                fix=did_you_mean(str(key), journals) or f"it keeps {listed(journals) or 'none'}",
            )
    return dict(head)
