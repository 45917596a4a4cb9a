"""What a history of runs shows: its entries, the verdicts over time, and what was let go.

Sharing layer: views only. Everything here is read out of a file, and is shown as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, overload

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import clip, counted, listed, show, visible
from runbook_nb._value import frozen
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Detail,
    Fact,
    Facts,
    Plot,
    Role,
    Section,
    Series,
    Table,
    verdict_role,
)
from runbook_nb.runbook.verdicts import DECLINED_VERDICT
from runbook_nb.settings import settings

if TYPE_CHECKING:
    import pandas as pd

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Columns of a frame that are not verdicts.
_COLUMNS: Final = (
    *("run", "at", "tool", "rules", "version", "rules_digest", "rows", "complete", "session"),
    "source",
)


@frozen(repr=False)
class RunEntry(Renderable, Immutable):
    """One run of a history, without its evidence: `Runs.open` gives that.

    Attributes
    ----------
    id : int
        Its number in the history; never given again.
    at : datetime
        When it was added, by `settings.clock`.
    tool : str
        The runbook that answered.
    rules : str or None
        Name of the rules it declared; None where that is not carried.
    version : str
        Their version.
    rules_digest : str or None
        Digest of what they said.
    verdicts : mapping of str to int, or None
        How many rows have each verdict, in declared order; None where not every row is carried.
    rows : int
        How many verdict rows there are.
    complete : bool
        Whether every row and its evidence are kept.
    session : str or None
        Whose call it was.
    origin : mapping
        What its ground was stamped with (``source``, ``asOf``, …).
    digest : str
        Of the answer as it is on the wire; an answer is kept once.
    bytes : int
        What is kept of it, before compression.
    """

    id: int
    at: datetime
    tool: str
    rules: str | None
    version: str
    rules_digest: str | None
    verdicts: Mapping[str, int] | None
    rows: int
    complete: bool
    session: str | None
    origin: Mapping[str, Any]
    digest: str
    bytes: int

    @property
    def source(self) -> str:
        """What the ground was stamped with, in one line."""
        return "; ".join(f"{name} {show(value)}" for name, value in self.origin.items())

    def to_dict(self) -> dict[str, Any]:
        """Give the entry as JSON values."""
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            "tool": self.tool,
            "rules": self.rules,
            "version": self.version,
            "rulesDigest": self.rules_digest,
            "verdicts": None if self.verdicts is None else dict(self.verdicts),
            "rows": self.rows,
            "complete": self.complete,
            "session": self.session,
            "origin": dict(self.origin),
            "digest": self.digest,
            "bytes": self.bytes,
        }

    def view(self) -> Card:
        """Say what this looks like: which run it is, and where it came from."""
        known: list[tuple[str, Cell]] = [
            ("added", moment(self.at)),
            ("rules digest", Data(value=self.rules_digest)),
            ("session", Data(value=self.session)),
            ("source", Data(value=self.source)),
            ("kept", f"{counted(self.bytes, 'byte')}{'' if self.complete else ', in part'}"),
        ]
        facts = tuple(Fact(term=term, detail=said) for term, said in known)
        return Card(
            kind="Run",
            name=clip(visible(f"{self.id} of {self.tool}"), 60),
            qualifiers=(visible(rules_of(self)),),
            headline=counted(self.rows, "row"),
            badges=badges_of(self),
            sections=(Section(label="", parts=(Facts(label="", items=facts, total=len(facts)),)),),
        )


class RunHistory(Sequence[RunEntry], Renderable):
    """Runs one after another, the oldest first; its display begins with the newest.

    Attributes
    ----------
    tool : str or None
        Whose runs they are; None for those of every tool.
    """

    __slots__ = ("_entries", "tool")

    def __init__(self, entries: Sequence[RunEntry], tool: str | None) -> None:
        self._entries = tuple(entries)
        self.tool = tool

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> RunEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunEntry]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._entries[index]

    def __iter__(self) -> Iterator[RunEntry]:
        return iter(self._entries)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RunHistory):
            return self._entries == other._entries
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def words(self) -> tuple[str, ...]:
        """Every verdict word met, in declared order as the newest run has it."""
        words: dict[str, None] = {}
        for entry in reversed(self._entries):
            words.update(dict.fromkeys(entry.verdicts or ()))
        words.pop(DECLINED_VERDICT, None)
        met = any(DECLINED_VERDICT in (entry.verdicts or ()) for entry in self._entries)
        return (*words, DECLINED_VERDICT) if met else tuple(words)

    def to_frame(self) -> pd.DataFrame:
        """Give the runs as a DataFrame, a column for each verdict word.

        A verdict that is called as another column is, is headed ``verdict …``. Where not every
        row was carried the counts are missing, not zero.
        """
        import pandas as pd

        rows = []
        for one in self._entries:
            rules = (one.id, one.at, one.tool, one.rules, one.version, one.rules_digest)
            rows.append((*rules, one.rows, one.complete, one.session, one.source or None))
        frame = pd.DataFrame(rows, columns=list(_COLUMNS))
        frame["at"] = pd.to_datetime(frame["at"], utc=True)
        for word in self.words:
            head = f"verdict {word}" if word in _COLUMNS else word
            frame[head] = pd.array(
                [None if e.verdicts is None else e.verdicts.get(word, 0) for e in self._entries],
                dtype="Int64",
            )
        return frame

    def plot(self) -> Plot:
        """Give the verdict counts over time, as views draw them."""
        series = tuple(
            Series(
                visible(word),
                _role(word, self.words),
                tuple(
                    None if entry.verdicts is None else entry.verdicts.get(word, 0)
                    for entry in self._entries
                ),
            )
            for word in self.words
        )
        ends = ("", "")
        if self._entries:
            ends = (day(self._entries[0].at), day(self._entries[-1].at))
        return Plot(
            places=tuple(str(entry.id) for entry in self._entries),
            series=series,
            ends=ends,
            summary=self._summary(series),
        )

    def _summary(self, series: Sequence[Series]) -> str:
        told = []
        for one in series:
            held = [value for value in one.values if value is not None]
            if held:
                same = held[0] == held[-1]
                told.append(
                    f"{one.word} {held[0]}" if same else f"{one.word} {held[0]} to {held[-1]}"
                )
        runs = counted(len(self), "run")
        return f"{runs}, from the first to the last: {listed(told)}" if told else runs

    def view(self) -> Card:
        """Show verdict counts over time, then the runs, the newest first."""
        newest = self._entries[::-1]
        words = self.words
        shown = newest[: settings.max_table_rows]
        sections = []
        one_tool = len({entry.tool for entry in self._entries}) == 1
        if len(self) > 1 and words and one_tool:  # what two tools count is not to be compared
            sections.append(Section(label="Verdicts over time", parts=(self.plot(),)))
        columns = [column for column, told in _COLUMNS_SHOWN if told(self)]
        table = Table(
            columns=tuple(columns),
            rows=tuple(
                tuple(_cell(entry, str(one.head), words) for one in columns) for entry in shown
            ),
            total=len(self),
            rest="runs.history().to_frame()",
            empty="no run is kept",
            details=tuple(_changes(shown)),
        )
        sections.append(Section(label="Runs", parts=(table,)))
        span = ""
        if self._entries:
            first, last = day(self._entries[0].at), day(self._entries[-1].at)
            span = first if first == last else f"{first} to {last}"
        return Card(
            kind="Runs",
            name="" if self.tool is None else clip(visible(self.tool), 60),
            qualifiers=(span,) if span else (),
            headline=counted(len(self), "run"),
            sections=tuple(sections),
        )


@frozen(repr=False)
class Forgotten(Renderable, Immutable):
    """What a history let go.

    Attributes
    ----------
    ids : tuple of int
        The numbers of the runs; they are never given again.
    bytes : int
        What was kept of them, before compression.
    left : int
        How many runs are kept still.
    """

    ids: tuple[int, ...]
    bytes: int
    left: int

    def view(self) -> Card:
        """Say what this looks like."""
        closing = [f"{counted(self.left, 'run')} kept"]
        if self.ids:
            closing.insert(0, f"{counted(self.bytes, 'byte')} let go")
        named = [str(one) for one in self.ids[: settings.max_text_rows]]
        more = len(self.ids) - len(named)
        named += [f"{more} more"] if more else []
        return Card(
            kind="Forgotten",
            name="",
            headline=f"{counted(len(self.ids), 'run')}{': ' if named else ''}{listed(named)}",
            closing=tuple(closing),
        )


def rules_of(entry: RunEntry) -> str:
    """Name the rules of a run."""
    if entry.version == "undeclared":
        return "no rules declared"
    return entry.version if entry.rules is None else f"{entry.rules} {entry.version}"


def moment(at: datetime) -> str:
    """Say when something was, to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def day(at: datetime) -> str:
    """Say on which day something was, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def instant(milliseconds: int) -> datetime:
    """Give the moment that lies so many milliseconds behind the epoch."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _role(word: str, words: tuple[str, ...]) -> Role:
    return verdict_role(word, words)


def badges_of(entry: RunEntry, words: tuple[str, ...] = ()) -> tuple[Badge, ...]:
    """Count the verdicts of a run, with the roles they have among ``words``."""
    words = words or tuple(entry.verdicts or ())
    return tuple(
        Badge(word=show(word), role=_role(word, words), count=count)
        for word, count in (entry.verdicts or {}).items()
        if count
    )


def _cell(entry: RunEntry, head: str, words: tuple[str, ...]) -> Cell:
    if head == "verdicts":
        if entry.verdicts is None and entry.rows:
            return "not every row is carried"
        return badges_of(entry, words) or ""
    if head == "rules":
        return Data(value=rules_of(entry), tone="code")
    if head in ("run", "rows"):
        return entry.id if head == "run" else entry.rows
    return moment(entry.at) if head == "added" else Data(value=getattr(entry, head))


def _always(history: RunHistory) -> bool:
    return True


#: The columns of a history, and when they tell something.
_COLUMNS_SHOWN: Final[tuple[tuple[Column, Callable[[RunHistory], bool]], ...]] = (
    (Column(head="run", align="right"), _always),
    (Column(head="added"), _always),
    (Column(head="tool"), lambda history: history.tool is None),
    (Column(head="rules"), _always),
    (Column(head="rows", align="right", in_text="labelled"), _always),
    (Column(head="verdicts"), _always),
    (Column(head="session"), lambda history: any(one.session for one in history)),
    (Column(head="source"), lambda history: any(one.source for one in history)),
)


def _changes(newest: Sequence[RunEntry]) -> Iterator[Detail]:
    """Say under a run that its rules are others than those of the run of its tool before it."""
    for place, entry in enumerate(newest):
        before = next((e for e in newest[place + 1 :] if e.tool == entry.tool), None)
        if before is None or entry.rules_digest == before.rules_digest:
            continue
        if rules_of(entry) != rules_of(before):
            yield Detail(row=place, text=("other rules than run", before.id))
        else:  # what a version says was changed without a word
            yield Detail(row=place, text=("the same version, yet other rules than run", before.id))
