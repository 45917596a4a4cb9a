"""The lines of a journal: one event each, sealed, and bound to the line before.

A line is compact JSON that reads and writes back to the same bytes; the keys of arguments keep
their order, which the evidence of a call depends on::

    {"check":…,"event":{…},"prev":…}

``check`` is the digest of the line without it, so that no line can be changed by itself; ``prev``
is the digest of the whole line before, so that none can be taken out, put in or moved. The first
line has ``schema``, ``writer`` and no ``prev``. Events that happened together carry ``more``, the
number of those that follow: they count when all are there. Whatever is read is read as if somebody
else had written it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from runbook_nb._deep import read_json
from runbook_nb._ids import digest
from runbook_nb._json import encode
from runbook_nb._text import clip, counted, visible
from runbook_nb._value import frozen
from runbook_nb._version import __version__
from runbook_nb.errors import CycleError, JournalError, JsonError, RunbookError
from runbook_nb.playbooks.events import Event, from_dict
from runbook_nb.record.verification import MALFORMED

#: The form of a journal's lines.
SCHEMA: Final = "runbook_nb/playbook-journal/1"

#: What every line begins with: the end of a file that does not go on so was not broken off.
_LEAD: Final = b'{"check":"sha-256:'
_NEEDED: Final = frozenset({"check", "event", "prev"})
_FIRST: Final = frozenset({"schema", "writer"})
_MAY: Final = _NEEDED | _FIRST | {"more"}

#: What writes the lines, as the first of them says: sentences are those of a version.
WRITER: Final = f"runbook_nb {__version__}"

#: Said of what was broken off.
UNDONE: Final = "what it held was never acknowledged"


@frozen
class Line:
    """A line that can be read.

    Attributes
    ----------
    number : int
        Its place, from 1; it is also the sequence number of its event.
    text : str
        The line, without its end.
    event : Event
        What it holds.
    more : int
        How many of the events that happened together follow it.
    writer : str
        What wrote the journal; of the first line alone.
    """

    number: int
    text: str
    event: Event
    more: int = 0
    writer: str = ""

    @property
    def digest(self) -> str:
        """The digest of the line, which the next one names."""
        return digest(self.text)


@frozen
class Fault:
    """Something wrong with a line.

    Attributes
    ----------
    line : int
        The line, from 1.
    code : {"form", "check", "chain", "order", "schema", "event", "group"}
        What it is about.
    said : str
        What is wrong.
    """

    line: int
    code: str
    said: str


@frozen
class Reading:
    """What was found in a journal.

    Attributes
    ----------
    lines : tuple of Line
        The lines that can be read and that count.
    faults : tuple of Fault
        What is wrong with others, and with how they stand.
    torn : str
        What was broken off at the end, in words; empty where nothing was.
    size : int
        Bytes of a file up to where its next line goes.
    unended : bool
        Whether the last line lacks nothing but its end.
    writer : str
        What wrote it, by its own word.

    Examples
    --------
    >>> read_bytes(b"").head is None
    True
    """

    lines: tuple[Line, ...] = ()
    faults: tuple[Fault, ...] = ()
    torn: str = ""
    size: int = 0
    unended: bool = False
    writer: str = ""

    @property
    def head(self) -> str | None:
        """The digest of the last line; None where there is no line."""
        return self.lines[-1].digest if self.lines else None

    def events(self, name: str) -> tuple[Event, ...]:
        """Give the events, where nothing is wrong.

        Parameters
        ----------
        name : str
            What the journal is called.

        Raises
        ------
        JournalError
            ``journal_damaged`` or ``journal_empty``.
        """
        self.refuse_faults(name)
        if not self.lines:
            raise JournalError(
                f"the journal {visible(name)!r} holds no event",
                code="journal_empty",
                where=name,
                fix="give the path of a journal that an enforcer has written to",
            )
        return tuple(line.event for line in self.lines)

    def refuse_faults(self, name: str) -> None:
        """Raise where anything is wrong but that the end was broken off."""
        if not self.faults:
            return
        first, others = self.faults[0], len(self.faults) - 1
        more = f", and {counted(others, 'more fault')}" if others else ""
        raise JournalError(
            f"the journal {visible(name)!r} cannot be trusted: "
            f"line {first.line:,} {first.said}{more}",
            code="journal_damaged",
            where=f"line {first.line}",
            fix="leave it as it is, see all that is wrong with runbook-nb verify, "
            "and begin a new journal",
        )


def write_lines(events: Sequence[Event], head: str | None) -> list[str]:
    """Write events that happen together, one line each, without their ends.

    Parameters
    ----------
    events : sequence of Event
        What happened.
    head : str or None
        The digest of the line they come after; None for the first.

    Raises
    ------
    JournalError
        ``journal_cannot_carry``: there is something in them that JSON does not have.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from runbook_nb.playbooks.events import Reset
    >>> (line,) = write_lines([Reset(seq=2, at=datetime(2026, 1, 1, tzinfo=UTC))], "sha-256:00")
    >>> line[:18], line.count("sha-256:")
    ('{"check":"sha-256:', 2)
    """
    texts: list[str] = []
    for number, event in enumerate(events, 1):
        rest: dict[str, Any] = {"prev": head}
        if number < len(events):
            rest["more"] = len(events) - number
        if head is None:
            rest.update(schema=SCHEMA, writer=WRITER)
        try:
            text = encode({"event": event.to_dict(), **rest})
        except (JsonError, CycleError, RecursionError) as error:
            why = getattr(error, "message", "it is nested too deeply")
            raise JournalError(
                f"the event {event.seq} ({event.kind}), with its arguments, cannot be written: "
                f"{why}",
                code="journal_cannot_carry",
                where=f"event {event.seq}",
                fix="call the tool with arguments that JSON can carry, or hide them by redact=",
            ) from error
        text = sealed(text)
        texts.append(text)
        head = digest(text)
    return texts


def sealed(text: str) -> str:
    """Put the check of a line into it.

    Examples
    --------
    >>> sealed('{"event":1}')[:26], sealed('{"event":1}')[-11:]
    ('{"check":"sha-256:f5864847', ',"event":1}')
    """
    return f'{{"check":"{digest(text)}",{text[1:]}'


def read_bytes(data: bytes) -> Reading:
    """Read a file of lines: all of it, whatever is wrong with it.

    A last line that was broken off is no fault; it is told as such and does not count.
    """
    whole, ended, tail = data.rpartition(b"\n")
    texts = whole.split(b"\n") if ended else []
    size, torn, unended = len(data) - len(tail), "", False
    if tail:
        unended = _body_of(tail) is not None
        if unended:
            texts.append(tail)
            size = len(data)
        elif _is_beginning(tail):
            torn = (
                f"line {len(texts) + 1:,} breaks off after {counted(len(tail), 'byte')}; {UNDONE}"
            )
        else:
            texts.append(tail)
    return read_texts(texts, torn=torn, size=size, unended=unended)


def has_lines(data: bytes) -> bool:
    """Say whether anything in a file was ever a line of a journal.

    Examples
    --------
    >>> has_lines(b'{"host":"a"}'), has_lines(b'{"check":"sha-256:00')
    (False, True)
    """
    return any(line.startswith(_LEAD) for line in data.split(b"\n"))


def _is_beginning(tail: bytes) -> bool:
    """Say whether a line may have begun so; a lost disk block reads as zeros."""
    said = tail.rstrip(b"\0")
    return said.startswith(_LEAD) or _LEAD.startswith(said)


def read_texts(
    texts: Iterable[bytes], *, torn: str = "", size: int = 0, unended: bool = False
) -> Reading:
    """Read lines, each held against the one before it."""
    lines: list[Line] = []
    faults: list[Fault] = []
    before: bytes | None = None
    lengths: list[int] = []
    writer = ""
    left = 0
    for number, data in enumerate(texts, 1):
        line = _read(number, data, before, left, faults)
        if line is not None:
            lines.append(line)
            writer = line.writer or writer
        left = 0 if line is None else line.more
        before = data
        lengths.append(len(data) + 1)
    if left and not faults:
        last = lines[-1]
        first = next(
            place
            for place in range(len(lines), 0, -1)
            if place == 1 or lines[place - 2].more != lines[place - 1].more + 1
        )
        there = len(lines) - first + 1
        torn = (
            f"{counted(there, 'event')} of {there + last.more} that belong together stand at its "
            f"end, from line {first:,}{', and ' + torn.partition(';')[0] if torn else ''}; {UNDONE}"
        )
        size -= sum(lengths[first - 1 :]) - (1 if unended else 0)
        del lines[first - 1 :]
        unended = False
    return Reading(
        lines=tuple(lines),
        faults=tuple(faults),
        torn=torn,
        size=size,
        unended=unended,
        writer=writer,
    )


def _body_of(data: bytes) -> dict[str, Any] | None:
    """Give what a line says, if it is written as lines are."""
    try:
        text = data.decode()
        body = read_json(text)
        if not isinstance(body, dict) or encode(body) != text:
            return None
    except (ValueError, RunbookError):
        return None
    return body if _NEEDED <= body.keys() <= _MAY else None


def _read(
    number: int, data: bytes, before: bytes | None, left: int, faults: list[Fault]
) -> Line | None:
    """Read one line, and say what is wrong with it and with where it stands."""

    def wrong(code: str, said: str) -> None:
        faults.append(Fault(line=number, code=code, said=said))

    body = _body_of(data)
    if body is None:
        wrong("form", "is not written as the lines of a journal are")
        return None
    text = data.decode()
    if text != sealed("{" + text.partition(",")[2]):
        wrong("check", "was changed: it is not what its own check was taken of")
    if body["prev"] != (None if before is None else digest(before.decode("utf-8", "replace"))):
        wrong(
            "chain",
            "does not begin a journal" if before is None else "does not follow the line before it",
        )
    schema = body.get("schema")
    wrote = body.get("writer", "")
    if (number == 1 and schema != SCHEMA) or (number > 1 and _FIRST & body.keys()):
        known = f"has the form {clip(visible(str(schema)), 60)!r}, and this reads {SCHEMA!r}"
        wrong("schema", known if number == 1 else "says again which form the journal has")
    elif number == 1 and not isinstance(wrote, str):
        wrong("schema", "does not say what wrote it")
    more = body.get("more", 0)
    if type(more) is not int or (more < 1 and "more" in body) or (left and more != left - 1):
        wrong("group", "does not belong to the events that happened together with it")
        more = 0
    told = body["event"]
    try:
        if not isinstance(told, Mapping):
            raise TypeError("it is no event")
        event = from_dict(told)
        if encode(event.to_dict()) != encode(told):
            raise ValueError("it is not how that event is written")
    except MALFORMED as error:
        wrong("event", f"holds no event: {clip(visible(str(error)), 200)}")
        return None
    if event.seq != number:
        wrong("order", f"holds event {event.seq}")
    if (event.kind == "begun") != (number == 1):
        wrong("order", "begins a plan anew" if number > 1 else "does not begin a plan")
    return Line(number=number, text=text, event=event, more=more, writer=str(wrote))
