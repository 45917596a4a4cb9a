"""One commit: what one executed stage changed, as it is read and as it is written down.

Record layer. A change knows what its key held before and after as the timeline holds it, so a
list that grew in a loop is not copied for every commit; what is handed out is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import FrozenDict, FrozenList, Immutable, handed_out
from runbook_nb._text import MISSING, clip, counted, show, summarize
from runbook_nb._value import frozen
from runbook_nb._view import Card, Cell, Column, Data, Section, Table
from runbook_nb.errors import DefinitionError
from runbook_nb.record.bundles import ENCODINGS, SEPARATOR, deep_equal, deep_merge, differing
from runbook_nb.record.redact import Redactor
from runbook_nb.record.replay import Prefix, value_of_held

#: How each kind of code is called in a commit's trace.
VERB_OF: Final = {"write": "set", "update": "merge", "append": "append", "delete": "delete"}

#: Changes named on one line before the rest is only counted.
_TOLD: Final = 3


def _length(held: Any) -> int:
    """Give the length of a list a timeline holds; -1 for anything else."""
    if held.__class__ is Prefix:
        return int(held.length)
    return len(held) if isinstance(held, list) else -1


def _tail(held: Any, start: int) -> Sequence[Any]:
    items: list[Any] = held.items[start : held.length] if held.__class__ is Prefix else held[start:]
    return items


class Change(Immutable):
    """What one stage did to one key, on the whole.

    Attributes
    ----------
    key : str
        The state key.
    verb : {"set", "merge", "append", "delete"}
        What the stage did: ``merge`` and ``append`` only when it did nothing else to the key.
    reads : tuple of str
        The keys the stage had read before it first touched this one.
    """

    __slots__ = ("_after", "_before", "_hide", "_name", "_partial", "key", "reads", "verb")

    def __init__(
        self,
        key: str,
        verb: str,
        before: Any,
        after: Any,
        *,
        partial: Any = None,
        reads: tuple[str, ...] = (),
        redactor: Redactor,
    ) -> None:
        self._name = key
        self.key = redactor.text(key)
        self.verb = verb
        self.reads = tuple(map(redactor.text, reads))
        self._before = before
        self._after = after
        self._partial = partial
        self._hide = redactor

    @property
    def value(self) -> Any:
        """What the key holds after the stage; None where it is deleted."""
        return None if self.verb == "delete" else self._served(value_of_held(self._after))

    @property
    def before(self) -> Any:
        """What the key held before the stage; None where it was not there."""
        return None if self._before is MISSING else self._served(value_of_held(self._before))

    @property
    def added(self) -> Any:
        """What was merged in, or the items that were appended; None for other changes."""
        if self.verb == "merge":
            return self._served(self._partial)
        return self._added_items() if self.verb == "append" else None

    def _served(self, value: Any) -> Any:
        return self._hide.value(self._name, handed_out(value))

    def _added_items(self) -> Any:
        start = max(_length(self._before), 0)
        if self._hide.hides_key(self._name):
            # A policy may speak of the positions of the whole list.
            whole = self._served(value_of_held(self._after))
            return FrozenList(whole[start:]) if isinstance(whole, list) else whole
        tail = map(handed_out, _tail(self._after, start))
        return FrozenList([self._hide.scrub(item) for item in tail])

    @property
    def hidden(self) -> tuple[tuple[str, ...], ...]:
        """The paths from the state on whose values a policy hides."""
        if not self._hide.active or self.verb == "delete":
            return ()
        raw = value_of_held(self._after)
        return tuple(differing(raw, self._hide.value(self._name, raw), (self.key,)))

    def hidden_in(self, encoding: str) -> Iterator[tuple[str, ...]]:
        """Yield the paths whose values are hidden in what is written of this change."""
        if not self._hide.active or self.verb == "delete":
            return
        if encoding == "delta" and self._only_grew() and not self._hide.hides_key(self._name):
            start = max(_length(self._before), 0)
            for place, item in enumerate(_tail(self._after, start), start):
                yield from differing(item, self._hide.scrub(item), (self.key, str(place)))
        else:
            yield from self.hidden

    def written(self, encoding: str = "full") -> tuple[str, Any]:
        """Give the verb and the value that say this change in the published form.

        A stage's ``merge`` is written as one only where the published rules for it lead to the
        same value, and only ``delta`` knows of appending.
        """
        if self.verb == "delete":
            return "delete", None
        if self.verb == "merge":
            before = value_of_held(self._before)
            if deep_equal(deep_merge(before, self._partial), self._after):
                return "merge", self.added
        if encoding == "delta" and self._only_grew():
            return "append", self._added_items()
        return "set", self.value

    def _only_grew(self) -> bool:
        old, new = _length(self._before), _length(self._after)
        if old < 0 or new <= old:
            return False
        if self.verb == "append":
            return True
        return all(map(deep_equal, _tail(self._before, 0), _tail(self._after, 0)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Change):
            return NotImplemented
        same = (self.key, self.verb, self.reads) == (other.key, other.verb, other.reads)
        return same and deep_equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Change {self.verb} {self.key}>"


@frozen(repr=False)
class Commit(Immutable, Renderable):
    """What one executed stage changed.

    Attributes
    ----------
    index : int
        Position in its log; -1 for the entering of a fan-out's branch, which comes before the
        first commit of the branch's log.
    path : str
        The log it belongs to: empty for the chart itself, else the mounts and branches around it.
    stage, stage_id, runtime_stage_id : str
        The stage and this execution of it.
    status : {"ok", "failed", "paused"}
        How the stage ended.
    changes : tuple of Change
        One per key whose value changed, in the order they were first touched.
    reads : tuple of str
        The keys it read, each once, in order.
    sources : tuple of str
        What it used beside state: ``args`` where it looked at the input.
    tags : tuple of str
        The author's tags for the stage.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> run.commits[0]
    <Commit a#0 · set n>
    """

    index: int
    path: str = ""
    stage: str
    stage_id: str
    runtime_stage_id: str
    status: str
    changes: tuple[Change, ...] = ()
    reads: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, Any]:
        """What each changed key holds after the stage, served; deleted keys are not in it."""
        return FrozenDict({c.key: c.value for c in self.changes if c.verb != "delete"})

    @property
    def deleted(self) -> tuple[str, ...]:
        """The keys that were there before and are not any more."""
        return tuple(change.key for change in self.changes if change.verb == "delete")

    @property
    def trace(self) -> tuple[tuple[str, str], ...]:
        """Each changed key with its verb."""
        return tuple((change.key, change.verb) for change in self.changes)

    @property
    def redacted(self) -> tuple[str, ...]:
        """The changed keys whose value is hidden, whole or in part."""
        return tuple(change.key for change in self.changes if change.hidden)

    def to_dict(self, encoding: str = "full", *, provenance: bool = False) -> dict[str, Any]:
        """Give the commit in the published shape.

        Parameters
        ----------
        encoding : {"full", "delta"}
            With ``delta`` a list that only grew is written as the items it grew by.
        provenance : bool
            Whether each row lists the keys read before it.
        """
        checked_encoding(encoding)
        overwrite: dict[str, Any] = {}
        updates: dict[str, Any] = {}
        trace: list[dict[str, Any]] = []
        for change in self.changes:
            verb, value = change.written(encoding)
            (updates if verb == "merge" else overwrite)[change.key] = value
            row: dict[str, Any] = {"path": change.key, "verb": verb}
            if provenance:
                row["readKeys"] = list(change.reads)
            trace.append(row)
        out: dict[str, Any] = {
            "idx": self.index,
            "stage": self.stage,
            "stageId": self.stage_id,
            "runtimeStageId": self.runtime_stage_id,
            "overwrite": overwrite,
            "updates": updates,
            "redactedPaths": [
                SEPARATOR.join(path) for c in self.changes for path in c.hidden_in(encoding)
            ],
        }
        if self.sources:
            out["untrackedSources"] = list(self.sources)
        if self.tags:
            out["tags"] = list(self.tags)
        out["trace"] = trace
        if self.status != "ok":
            out["status"] = self.status
        return out

    @property
    def words(self) -> str:
        """What it changed, in few words: ``set a, append b +2 more``."""
        told = [f"{change.verb} {show(change.key)}" for change in self.changes[:_TOLD]]
        more = len(self.changes) - _TOLD
        words = ", ".join(told) or "no change"
        return f"{words} +{more} more" if more > 0 else words

    def view(self) -> Card:
        """Show the changes: key, verb, what stands there now."""
        rows = tuple(_row(change) for change in self.changes)
        table = Table(columns=_COLUMNS, rows=rows, total=len(rows), empty="no change")
        facts = [f"read {', '.join(map(show, self.reads))}"] if self.reads else []
        if self.sources:
            facts.append("looked at the input")
        return Card(
            kind="Commit",
            name=self.runtime_stage_id,
            state="" if self.status == "ok" else self.status,
            headline=clip(self.words, 80),
            sections=(Section(label="Changes", parts=(table,)),),
            closing=tuple(clip(fact, 160) for fact in facts),
            heading=(Data(value=self.stage), counted(len(rows), "change")),
        )


_COLUMNS: Final = (
    Column(head="key"),
    Column(head="change"),
    Column(head="value", in_text="labelled"),
)


def _row(change: Change) -> tuple[Cell, ...]:
    value: Cell = "deleted" if change.verb == "delete" else Data(value=summarize(change.value))
    return (Data(value=change.key, tone="code"), change.verb, value)


def checked_encoding(encoding: str) -> str:
    """Give an encoding that there is.

    Raises
    ------
    DefinitionError
        There is no such encoding.
    """
    if encoding not in ENCODINGS:
        raise DefinitionError(
            f"there is no encoding {encoding!r}",
            where="encoding",
            fix=f"it is one of {', '.join(ENCODINGS)}",
        )
    return encoding
