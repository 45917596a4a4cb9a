"""A history of runs in one file: every answer handed to it, to be looked at and opened again.

Sharing layer. What is kept of an answer is what a file to hand on carries: its wire form and its
dossier, redacted. Nothing is pickled, and nothing read is run.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import FrozenDict
from runbook_nb._ids import digest
from runbook_nb._json import canonical, encode
from runbook_nb._text import clip, counted, did_you_mean, visible
from runbook_nb._view import Card, Column, Data, Section, Table
from runbook_nb.artifacts.base import now_ms
from runbook_nb.artifacts.database import Database, Form
from runbook_nb.artifacts.durable import path_of
from runbook_nb.errors import ArtifactError, DefinitionError, LoadError, NoSuchPart
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.cards import verdict_order
from runbook_nb.runbook.payload import PAYLOAD_FORMAT
from runbook_nb.runbook.verdicts import DECLINED_VERDICT
from runbook_nb.settings import settings
from runbook_nb.share.exported import exported_form, redactor_of
from runbook_nb.share.history import (
    Forgotten,
    RunEntry,
    RunHistory,
    badges_of,
    instant,
    moment,
)

if TYPE_CHECKING:
    import sqlite3

    from runbook_nb.runbook.comparing import Comparison
    from runbook_nb.tools.middleware import ToolCall

#: How much of the evidence is kept, in the file; 0 where there is none.
_PARTLY, _WHOLE = 1, 2
#: Parts of a stamp that say which call it was, and not where the ground came from.
_OWN: Final = ("tool", "toolCallId")

_SCHEMA: Final = (
    "CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL, "
    "at INTEGER NOT NULL, tool TEXT NOT NULL, rules TEXT, version TEXT NOT NULL, "
    "rules_digest TEXT, verdicts TEXT, rows INTEGER NOT NULL, complete INTEGER NOT NULL, "
    "session TEXT, origin TEXT NOT NULL, bytes INTEGER NOT NULL, sum TEXT NOT NULL, "
    "seal TEXT NOT NULL, body BLOB NOT NULL)",
    "CREATE UNIQUE INDEX run_digest ON run (digest)",
    "CREATE INDEX run_of ON run (tool, id)",
)
#: Marks the file as a history of runs ("rbnR"), and says which form its tables have.
FORM: Final = Form(application=0x72626E52, version=1, schema=_SCHEMA, what="history of runs")

#: What is shown of a run without its answer being read; its seal is what that was when added.
_SHOWN: Final = (
    *("at", "tool", "rules", "version", "rules_digest", "verdicts", "rows", "complete"),
    *("session", "origin", "digest"),
)
_ENTRY: Final = f"SELECT id, {', '.join(_SHOWN)}, bytes, seal FROM run"  # noqa: S608 - our own


class Runs(Renderable):
    """Keeps every answer handed to it, and shows what became of the verdicts over time.

    Several threads and processes may use one file at once. What was added is there after the
    process was killed. An answer is kept once, however often it is added.

    Parameters
    ----------
    path : str or path
        The file; made when it is not there.
    artifacts : Toolbox or BoundArtifacts, optional
        Where the tickets of answers are redeemed that are opened again; without it, walks and
        recordings are *not carried*.

    Raises
    ------
    ArtifactError
        ``not_a_store``: the file is something else, of another form, or damaged. ``store_busy``
        and ``store_unavailable``, as of any store.

    Examples
    --------
    >>> import tempfile
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> folder = tempfile.TemporaryDirectory()
    >>> runs = rb.Runs(f"{folder.name}/runs.sqlite")
    >>> for days in (3, 9):
    ...     rows = [{"host": "a", "days": days}, {"host": "b", "days": 9}]
    ...     _ = runs.add(rb.triage(rows, rules, subject="host", source="two rows"))
    >>> [dict(entry.verdicts) for entry in runs.history("triage")]
    [{'fresh': 1, 'old': 1}, {'fresh': 0, 'old': 2}]
    >>> runs[2].why("a").sentence
    'old by rule 1 of age v1: days 9 > 7'
    >>> [flip.subject for flip in runs.compare(1, 2).flips()]
    ['a']
    >>> runs.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, artifacts: Any = None) -> None:
        self.path = path_of(path)
        self._artifacts = artifacts
        self._database = Database(self.path, FORM)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self.path),))

    def close(self) -> None:
        """Let the file go; it is opened again when it is next wanted."""
        self._database.close()

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- keeping ---------------------------------------------------------------------------

    def add(self, envelope: Envelope, *, session: str | None = None) -> RunEntry:
        """Keep an answer, with its dossier where it has one.

        Parameters
        ----------
        envelope : Envelope
        session : str, optional
            Whose call it was.

        Returns
        -------
        RunEntry
            The one there was, when the answer is kept already. A copy with its dossier replaces
            one without, and nothing replaces one that has it.
        """
        if not isinstance(envelope, Envelope):
            raise DefinitionError(
                f"{envelope!r:.80} is no envelope",
                where="envelope",
                fix="give what the runbook answered; an absence or an error is none",
            )
        session = None if session is None else _text(session, "session", "a session")
        read = _read(envelope)
        with self._database.transaction() as database:
            known = database.execute(
                "SELECT id, complete, at, session FROM run WHERE digest = ?", (read["digest"],)
            ).fetchone()
            if known is None:
                row = _sealed({**read, "at": now_ms(settings.current), "session": session})
                marks = ", ".join("?" * len(row))
                made = database.execute(
                    f"INSERT INTO run ({', '.join(row)}) VALUES ({marks})",  # noqa: S608 - ours
                    tuple(row.values()),
                )
                number = made.lastrowid
            else:
                number = known[0]
                if read["complete"] > known[1]:  # never by another that says as much
                    row = _sealed({**read, "at": known[2], "session": known[3]})
                    named = ", ".join(f"{name} = ?" for name in row)
                    database.execute(
                        f"UPDATE run SET {named} WHERE id = ?",  # noqa: S608 - ours
                        (*row.values(), number),
                    )
            return _entry(database, number)

    async def keep(self, call: ToolCall, following: Any) -> Any:
        """Keep whatever a toolbox answers: ``Toolbox(tools, middleware=[runs.keep])``.

        Answers that are no envelope pass by. An answer that cannot be kept is given all the same,
        with a warning.

        Examples
        --------
        >>> import tempfile
        >>> import runbook_nb as rb
        >>> def procedure(tools):
        ...     return rb.flow_chart("look", lambda scope: None, id="look").build()
        >>> tool = rb.runbook_as_tool(name="look", description="Looks.", procedure=procedure)
        >>> folder = tempfile.TemporaryDirectory()
        >>> with rb.Runs(f"{folder.name}/runs.sqlite") as runs:
        ...     box = rb.Toolbox([tool], middleware=[runs.keep], session=rb.Session("incident-7"))
        ...     _ = box.call_sync("look", {})
        ...     [(entry.id, entry.tool, entry.session) for entry in runs]
        [(1, 'look', 'incident-7')]
        >>> folder.cleanup()
        """
        import warnings

        answer = await following(call)
        if isinstance(answer, Envelope):
            try:
                self.add(answer, session=call.session.conversation)
            except ArtifactError as error:
                warnings.warn(
                    f"the answer of {call.tool.name} was not kept: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return answer

    def forget(
        self,
        *,
        tool: str | None = None,
        before: datetime | None = None,
        keep: int | None = None,
        ids: tuple[int, ...] | list[int] | None = None,
    ) -> Forgotten:
        """Let runs go that meet everything that is said; nothing of them is left in the file.

        Parameters
        ----------
        tool : str, optional
            Those of one runbook.
        before : datetime, optional
            Those added before a moment, which has its zone.
        keep : int, optional
            All but so many of the newest of each runbook.
        ids : list of int, optional
            Those with such numbers.

        Raises
        ------
        DefinitionError
            Nothing is said, or what is said cannot be.

        Returns
        -------
        Forgotten
            Which runs went, and how many are left.
        """
        conditions, values = _conditions(tool, before, keep, ids)
        with self._database.transaction() as database:
            gone = database.execute(
                f"SELECT id, bytes FROM run WHERE {conditions} ORDER BY id",  # noqa: S608 - ours
                values,
            ).fetchall()
            database.execute("PRAGMA secure_delete = ON")
            database.executemany("DELETE FROM run WHERE id = ?", [(number,) for number, _ in gone])
            (left,) = database.execute("SELECT count(*) FROM run").fetchone()
        if gone:
            with self._database.opened() as database:
                # What was deleted stands in the log beside the file until that is folded in.
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Forgotten(
            ids=tuple(number for number, _ in gone), bytes=sum(size for _, size in gone), left=left
        )

    # -- asking ----------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._database.opened() as database:
            (count,) = database.execute("SELECT count(*) FROM run").fetchone()
        return int(count)

    def __iter__(self) -> Iterator[RunEntry]:
        return iter(self.history())

    def __contains__(self, number: object) -> bool:
        with self._database.opened() as database:
            return (
                type(number) is int and _row_of(database, "SELECT 1 FROM run", number) is not None
            )

    def __getitem__(self, number: int) -> Envelope:
        """Give the answer of a run again; see `open`."""
        return self.open(number)

    @property
    def tools(self) -> tuple[str, ...]:
        """The runbooks of which runs are kept."""
        with self._database.opened() as database:
            found = database.execute("SELECT DISTINCT tool FROM run ORDER BY tool").fetchall()
        return tuple(tool for (tool,) in found)

    def entry(self, number: int) -> RunEntry:
        """Give what is known of a run without opening it.

        Raises
        ------
        NoSuchPart
            There is no run of that number.
        """
        with self._database.opened() as database:
            if _row_of(database, "SELECT 1 FROM run", number) is None:
                raise self._no_such(database, number)
            return _entry(database, number)

    def open(self, number: int, *, artifacts: Any = None) -> Envelope:
        """Give the answer of a run again, with its dossier.

        Parameters
        ----------
        number : int
            The run's number, as the history shows it.
        artifacts : Toolbox or BoundArtifacts, optional
            Where its tickets are redeemed.

        Raises
        ------
        NoSuchPart
            There is no run of that number.
        ArtifactError
            ``integrity``: what is kept of it is not what was added.
        """
        with self._database.opened() as database:
            found = _row_of(database, "SELECT bytes, sum, body FROM run", number)
            if found is None:
                raise self._no_such(database, number)
        payload = _opened(number, *found)
        at_hand = self._artifacts if artifacts is None else artifacts
        try:
            return Envelope.from_dict(payload["envelope"], at_hand)
        except (LoadError, KeyError, TypeError) as error:
            raise _damaged(number) from error

    def latest(self, tool: str) -> Envelope | None:
        """Give the newest answer of a runbook; None when none is kept."""
        with self._database.opened() as database:
            (number,) = database.execute(
                "SELECT max(id) FROM run WHERE tool = ?", (_tool(tool),)
            ).fetchone()
        return None if number is None else self.open(number)

    def history(self, tool: str | None = None) -> RunHistory:
        """Give the runs of a runbook, or all of them, the oldest first.

        Raises
        ------
        NoSuchPart
            No run of that runbook is kept, and runs of others are.
        """
        with self._database.opened() as database:
            if tool is None:
                found = database.execute(f"{_ENTRY} ORDER BY id").fetchall()
            else:
                found = database.execute(
                    f"{_ENTRY} WHERE tool = ? ORDER BY id", (_tool(tool),)
                ).fetchall()
        if tool is not None and not found and (tools := self.tools):
            raise NoSuchPart(
                f"no run of {visible(clip(tool, 60))!r} is kept",
                where="tool",
                fix=did_you_mean(tool, tools) or f"there are runs of {', '.join(tools[:5])}",
            )
        return RunHistory([_read_entry(row) for row in found], tool)

    def compare(self, before: int, after: int) -> Comparison:
        """Compare two runs: which verdicts flipped, and by which rule and values."""
        return self.open(before).compare(self.open(after))

    def view(self) -> Card:
        """Say what this looks like: how many runs of which runbooks, and how the newest ended."""
        with self._database.opened() as database:
            found = database.execute(
                "SELECT tool, count(*), max(id) FROM run GROUP BY tool ORDER BY max(id) DESC"
            ).fetchall()
            total = sum(count for _, count, _ in found)
            shown = found[: settings.max_table_rows]
            newest = [_entry(database, number) for _, _, number in shown]
        rows = tuple(
            (
                Data(value=entry.tool),
                count,
                entry.id,
                moment(entry.at),
                badges_of(entry) or "",
            )
            for (_, count, _), entry in zip(shown, newest, strict=True)
        )
        table = Table(
            columns=(
                Column(head="tool"),
                Column(head="runs", align="right", in_text="labelled"),
                Column(head="newest", align="right", in_text="labelled"),
                Column(head="added"),
                Column(head="verdicts"),
            ),
            rows=rows,
            total=len(found),
            rest="runs.tools",
            empty="no run is kept",
        )
        return Card(
            kind="Runs",
            name=clip(visible(self.path.name), 50),
            headline=f"{counted(total, 'run')} of {counted(len(found), 'tool')}",
            sections=(Section(label="", parts=(table,)),),
        )

    def _no_such(self, database: sqlite3.Connection, number: Any) -> NoSuchPart:
        first, last = database.execute("SELECT min(id), max(id) FROM run").fetchone()
        return NoSuchPart(
            f"there is no run {number!r:.20} in {visible(self.path.name)!r}",
            where="run",
            fix="none is kept yet" if last is None else f"they are numbered from {first} to {last}",
        )


# -- what stands in a row ------------------------------------------------------------------------


def _read(envelope: Envelope) -> dict[str, Any]:
    """Read what is kept of an answer: facts to ask for, and the whole of it."""
    payload = exported_form(envelope)
    wire = payload["envelope"]
    bare = {key: part for key, part in wire.items() if key != "dossier"}
    result = wire["result"]
    rules, rules_digest = _rules(envelope)
    text = encode(payload)  # in its own order, which is that of columns
    carried = payload.get("carried", {})
    whole = all(held == all_ for held, all_ in carried.values())
    stamp = result.get("af_provenance", {})
    hidden = redactor_of(envelope)
    return {
        "digest": digest(canonical(bare)),
        "tool": str(stamp.get("tool", "")),
        "rules": None if rules is None else hidden.text(rules),
        "version": str(result.get("rule_version", "undeclared")),
        "rules_digest": rules_digest,
        "verdicts": None if (counts := _counts(envelope)) is None else canonical(counts),
        "rows": envelope.verdicts.total,
        "complete": envelope.carries_dossier * (_WHOLE if whole else _PARTLY),
        "origin": canonical({key: stamp[key] for key in stamp if key not in _OWN}),
        "bytes": len(text.encode()),
        "sum": digest(text),
        "body": zlib.compress(text.encode(), 6),
    }


def _sealed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "seal": _seal([row[name] for name in _SHOWN])}


def _seal(shown: Sequence[Any]) -> str:
    return digest(canonical(list(shown)))


def _rules(envelope: Envelope) -> tuple[str | None, str | None]:
    """Give name and digest of the declared rules, where they are carried."""
    name, version = envelope.rules
    if not envelope.carries_dossier:
        return name, None
    for source in envelope.dossier.sources:
        if (source.name, source.version) == (name, version):
            return name, source.digest
    return name, None


def _counts(envelope: Envelope) -> list[list[Any]] | None:
    """Count the verdicts in declared order; not at all where rows are missing."""
    rows = envelope.verdicts
    if not rows.complete:
        return None
    counts = rows.counts()
    words = [word for word in verdict_order(envelope) if word != DECLINED_VERDICT]
    hidden = redactor_of(envelope)
    found = [(word, counts.get(word, 0)) for word in (*words, DECLINED_VERDICT)]
    return [[hidden.text(word), count] for word, count in found if count or word in words]


def _entry(database: sqlite3.Connection, number: Any) -> RunEntry:
    return _read_entry(_row_of(database, _ENTRY, number))


def _row_of(database: sqlite3.Connection, question: str, number: Any) -> Any:
    # What the file cannot hold is no number it has given.
    if type(number) is not int or not 0 <= number < 2**63:
        return None
    return database.execute(f"{question} WHERE id = ?", (number,)).fetchone()


def _read_entry(row: Any) -> RunEntry:
    number, at, tool, rules, version, rules_digest, verdicts, rows, complete = row[:9]
    session, origin, named, size, seal = row[9:]
    try:
        if _seal(row[1:-2]) != seal:
            raise ValueError("other facts")
        counts = None if verdicts is None else FrozenDict(json.loads(verdicts))
        return RunEntry(
            id=number,
            at=instant(at),
            tool=str(tool),
            rules=rules,
            version=str(version),
            rules_digest=rules_digest,
            verdicts=counts,
            rows=int(rows),
            complete=complete == _WHOLE,
            session=session,
            origin=FrozenDict(json.loads(origin)),
            digest=str(named),
            bytes=int(size),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise _damaged(number) from error


def _opened(number: int, size: int, sum_: str, body: Any) -> Mapping[str, Any]:
    try:
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(body, size + 1).decode()  # never more than was added
        if digest(text) != sum_:
            raise ValueError("another text")
        payload = json.loads(text)
        form = payload["format"]
    except (zlib.error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(number) from error
    if form != PAYLOAD_FORMAT:
        raise LoadError(
            f"run {number} has the form {visible(str(form))!r:.60}, which this version does not "
            "know",
            code="unknown_format",
            where=f"run {number}",
            fix=f"it reads {PAYLOAD_FORMAT}",
        )
    found: Mapping[str, Any] = payload
    return found


def _damaged(number: Any) -> ArtifactError:
    return ArtifactError(
        f"what is kept of run {number} is not what was added",
        code="integrity",
        where=f"run {number}",
        fix="forget it; it cannot be trusted",
    )


def _tool(tool: Any) -> str:
    return _text(tool, "tool", "a runbook")


def _text(given: Any, where: str, what: str) -> str:
    """Refuse what the file cannot hold as a text: anything else, or a lone surrogate."""
    if not isinstance(given, str) or given != given.encode("utf-8", "replace").decode():
        raise DefinitionError(f"{what} is named by a text, not {given!r:.60}", where=where)
    return given


def _conditions(tool: str | None, before: Any, keep: int | None, ids: Any) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if tool is not None:
        conditions.append("tool = ?")
        values.append(_tool(tool))
    if before is not None:
        if not isinstance(before, datetime) or before.tzinfo is None:
            raise DefinitionError(
                f"before cannot be {before!r:.60}",
                where="before",
                fix="give a datetime with its zone",
            )
        conditions.append("at < ?")
        values.append(round(before.timestamp() * 1000))
    if keep is not None:
        if type(keep) is not int or keep < 0:
            raise DefinitionError(
                f"keep cannot be {keep!r:.60}", where="keep", fix="give a whole number from 0"
            )
        conditions.append(
            "(SELECT count(*) FROM run AS newer WHERE newer.tool = run.tool AND newer.id > run.id)"
            " >= ?"
        )
        values.append(keep)
    if ids is not None:
        numbers = list(ids)
        if not all(type(one) is int for one in numbers):
            raise DefinitionError(
                f"ids cannot be {ids!r:.60}", where="ids", fix="give numbers of runs"
            )
        conditions.append("id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(numbers))
    if not conditions:
        raise DefinitionError(
            "nothing is said of which runs to forget",
            where="forget",
            fix="say tool=, before=, keep= or ids=",
        )
    return " AND ".join(conditions), values
