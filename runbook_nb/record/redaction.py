"""What a policy hid in a run, told without a single value.

Record layer. Counting goes over the same list of contents that the policy learnt from. A part of
a policy that met nothing is said, because a misspelt name hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted, listed
from runbook_nb._value import frozen
from runbook_nb._view import Card, Cell, Column, Data, Prose, Section, Table
from runbook_nb.record.contents import PLACES, Held, contents_of, marked_keys, names_in
from runbook_nb.record.learning import Lesson
from runbook_nb.record.paths import Path, spread, steps_of
from runbook_nb.record.redact import Redact, Redactor
from runbook_nb.record.secrets import Secrets
from runbook_nb.record.told import texts_in

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: The parts of a policy, in the order they are told of, and what each is called.
PARTS: Final = {
    "key": "key",
    "marked": "marked in the run",
    "pattern": "pattern",
    "field": "field",
    "path": "path",
    "emit": "event",
    "value": "literal value",
}


@frozen
class RedactionEntry(Immutable):
    """One part of a policy, and where it hid something.

    Attributes
    ----------
    part : str
        ``key``, ``marked``, ``pattern``, ``field``, ``path``, ``emit`` or ``value``.
    name : str
        What it names; of a literal value only its number in the policy.
    places : mapping
        Place -> how often, for places where it occurred.
    """

    part: str
    name: str
    places: Mapping[str, int]

    @property
    def total(self) -> int:
        """How often it hid something."""
        return sum(self.places.values())

    def to_dict(self) -> dict[str, Any]:
        """Give the entry as JSON values."""
        places = dict(self.places)
        return {"part": self.part, "name": self.name, "places": places, "total": self.total}


@frozen(repr=False)
class RedactionReport(Immutable, Renderable):
    """What was hidden in a run, and where; never what.

    Attributes
    ----------
    procedure : str
        The procedure's name.
    state : {"hidden", "absent", "unredacted"}
        Whether views hide something, have no policy to go by, or were asked not to hide.
    entries : tuple of RedactionEntry
        Every part of the policy, and every key that a stage marked.
    hidden_keys : tuple of str
        Names under which something was hidden, by a key, a mark or a pattern, as first met.
    fields : mapping
        As the policy has them.
    learnt : int
        How many different texts were met under hidden names, or are given as literal values.
    reappeared : mapping
        Place -> how often such a text stood where no name hides it, and was taken out.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("c", lambda s: s.set("token", "tk-48151623"), id="a").build()
    >>> report = chart.run_sync(redact={"keys": ["token", "tokne"]}).redaction
    >>> report.to_dict()["redactedKeys"], [entry.name for entry in report.never]
    (['token'], ['tokne'])
    """

    procedure: str
    state: str
    entries: tuple[RedactionEntry, ...] = ()
    hidden_keys: tuple[str, ...] = ()
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    learnt: int = 0
    reappeared: Mapping[str, int] = field(default_factory=dict)

    @property
    def never(self) -> tuple[RedactionEntry, ...]:
        """Parts of the policy that met nothing."""
        return tuple(entry for entry in self.entries if not entry.total)

    @property
    def total(self) -> int:
        """How many values stood under a hidden name."""
        return sum(entry.total for entry in self.entries if entry.part != "value")

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON values; the first three names are the published ones."""
        return {
            "redactedKeys": list(self.hidden_keys),
            "fieldRedactions": {key: list(paths) for key, paths in self.fields.items()},
            "patterns": self._named("pattern"),
            "paths": self._named("path"),
            "emits": self._named("emit"),
            "marked": self._named("marked"),
            "values": len(self._named("value")),
            "state": self.state,
            "occurrences": [entry.to_dict() for entry in self.entries if entry.total],
            "learnt": self.learnt,
            "reappeared": dict(self.reappeared),
            "never": [{"part": entry.part, "name": entry.name} for entry in self.never],
        }

    def _named(self, part: str) -> list[str]:
        return [entry.name for entry in self.entries if entry.part == part]

    def view(self) -> Card:
        """Show each part of the policy with where it hid something."""
        if self.state != "hidden":
            return Card(kind="Redaction", name=self.procedure, headline=_NOTHING[self.state])
        parts: list[Any] = [_table(self.entries)] if self.entries else []
        parts += [Prose(text=words, tone=tone) for words, tone in self._remarks()]
        return Card(
            kind="Redaction",
            name=self.procedure,
            headline=self._headline(),
            sections=(Section(label="Policy", parts=tuple(parts)),),
        )

    def _headline(self) -> str:
        if not self.entries:
            return "the policy names nothing"
        met = len(self.entries) - len(self.never)
        hidden = f"{counted(self.total, 'value')} hidden" if self.total else "nothing hidden"
        return f"{hidden}, {met} of {counted(len(self.entries), 'part')} of the policy met"

    def _remarks(self) -> Iterator[tuple[Cell, Any]]:
        if self.learnt:
            where = (
                f"they stood {counted(sum(self.reappeared.values()), 'time')} where no name hides "
                f"them, and were taken out: {_where(self.reappeared)}"
                if self.reappeared
                else "they stood nowhere else"
            )
            yield f"{counted(self.learnt, 'secret text')} known; {where}.", "plain"
        if self.never:
            names: list[Any] = []
            for entry in self.never:
                names += [PARTS[entry.part], Data(value=entry.name), ","]
            said = ("Nothing was met by", *names[:-1], ": a misspelt name hides nothing.")
            yield said, "warning"


_NOTHING: Final = {
    "absent": "no policy: nothing is hidden, and nothing was marked as secret",
    "unredacted": "nothing is hidden in this view: it was asked for unredacted",
}


def _table(entries: Sequence[RedactionEntry]) -> Table:
    return Table(
        columns=(
            Column(head="part"),
            Column(head="name"),
            Column(head="hidden", align="right", in_text="labelled"),
            Column(head="where"),
        ),
        rows=tuple(
            (
                PARTS[entry.part],
                Data(value=entry.name),
                entry.total,
                _where(entry.places) or "nowhere",
            )
            for entry in entries
        ),
        total=len(entries),
        whole=True,
        rest="redaction.entries",
    )


def _where(places: Mapping[str, int]) -> str:
    return listed(f"{place} {times}" for place, times in places.items())


# -- counting ------------------------------------------------------------------------------


def report_of(run: Run, *, unredacted: bool = False) -> RedactionReport:
    """Report what the policy of a run hides; see `Run.redaction`."""
    redactor, policy = run.redactor, run.policy or Redact()
    text = redactor.text
    marked = marked_keys(run.log)
    if unredacted or not redactor.active:
        state = "unredacted" if unredacted else "absent"
        return RedactionReport(procedure=run.name, state=state)
    counters = list(_counters(policy, marked))
    copies = _Copies.of(redactor)
    names: dict[str, None] = {}
    literal = [counter for counter in counters if counter.part == "value"]
    named = [counter for counter in counters if counter.part != "value"]
    known = [counter.top for counter in named]
    _count(run, named)
    if known != [counter.top for counter in named]:
        # A name met a list: what branches have of its items counts from the first on.
        for counter in named:
            counter.places.clear()
            counter.names.clear()
        _count(run, named)
    for held in contents_of(run):
        if not held.derived:
            _count_texts(literal, held.place, held.value)
            copies.look(held)
    for word in _declared(run):
        copies.look(Held("names", word, top=False))
        _count_texts(literal, "names", word)
    for counter in counters:
        names.update(counter.names)
    return RedactionReport(
        procedure=run.name,
        state="hidden",
        entries=tuple(
            RedactionEntry(part=one.part, name=text(one.name), places=_ordered(one.places))
            for one in counters
        ),
        hidden_keys=tuple(map(text, names)),
        fields={text(key): tuple(map(text, paths)) for key, paths in (policy.fields or {}).items()},
        learnt=redactor.secrets_known,
        reappeared=_ordered(copies.places),
    )


def _count(run: Run, counters: Sequence[_Counter]) -> None:
    for held in contents_of(run):
        if not held.derived:
            for counter in counters:
                counter.count(held)


def _count_texts(counters: Sequence[_Counter], place: str, value: Any) -> None:
    with suppress(RecursionError):
        for text in texts_in(value) if counters else ():
            for counter in counters:
                counter.count_text(place, text)


def _ordered(places: Mapping[str, int]) -> dict[str, int]:
    return {place: places[place] for place in PLACES if places.get(place)}


def _declared(run: Run) -> Iterator[str]:
    """Yield the words the author declared: of stages, of the structure, of rules."""
    yield from names_in(run.log)
    for node in run.raw_structure.nodes:
        yield from (word for word in (node.description, *node.tags) if word)
    for rules in run.raw_rule_sets():
        yield rules.title
        yield from (rule.label for rule in rules.rules if rule.label)


class _Counter(Lesson):
    """Counts where one part of a policy met something."""

    __slots__ = ("_here", "_secrets", "name", "names", "part", "places")

    def __init__(
        self,
        part: str,
        name: str,
        *,
        named: Callable[[str], bool] = lambda word: False,
        paths: Sequence[Path] = (),
        text: str = "",
    ) -> None:
        super().__init__(named, paths)
        self.part = part
        self.name = name
        self.places: dict[str, int] = {}
        self.names: dict[str, None] = {}
        self._secrets = Secrets((text,) if text else ())
        self._here = ""

    def count(self, held: Held) -> None:
        """Take a value in."""
        self._here = held.place
        if self.part == "emit":
            if held.place == "events" and self._named(next(iter(held.value))):
                self._met(None)
        else:
            self.take(held.value, self.top if held.top else (), any_item=held.any_item)

    def count_text(self, place: str, text: str) -> None:
        """Take a text in that stands under no name."""
        if times := self._secrets.count(text):
            self.places[place] = self.places.get(place, 0) + times

    def _met(self, name: str | None) -> None:
        self.places[self._here] = self.places.get(self._here, 0) + 1
        if name is not None:
            self.names.setdefault(name)

    def _tell(self, value: Any) -> None:
        """Learn nothing: this only counts."""

    def _carry(self, value: Any, paths: Sequence[Path], hidden: bool) -> None:
        """Learn nothing: this only counts."""


def _counters(policy: Redact, marked: Sequence[str]) -> Iterator[_Counter]:
    for part, keys in (("key", policy.keys), ("marked", marked)):
        for key in keys:
            one = Redactor(Redact(keys=(key,)))
            yield _Counter(part, key, named=one.names, paths=one.paths)
    for pattern in policy.patterns:
        yield _Counter("pattern", pattern, named=Redactor(Redact(patterns=(pattern,))).names)
    for key, inner in (policy.fields or {}).items():
        for path in inner:
            yield _Counter("field", f"{key}.{path}", paths=spread([(key, *steps_of(path))]))
    for path in policy.paths:
        yield _Counter("path", path, paths=spread([steps_of(path)]))
    for pattern in policy.emits:
        yield _Counter("emit", pattern, named=Redactor(Redact(emits=(pattern,))).hides_emit)
    for number, value in enumerate(policy.values, 1):
        yield _Counter("value", f"number {number}", text=value)


class _Copies(Redactor):
    """A policy that counts the secret texts it takes out where no name hides them."""

    __slots__ = ("_here", "places")

    places: dict[str, int]
    _here: str

    @classmethod
    def of(cls, redactor: Redactor) -> _Copies:
        """Make one that knows what another knows."""
        made = object.__new__(cls)
        for name in Redactor.__slots__:
            setattr(made, name, getattr(redactor, name))
        made.places = {}
        made._here = ""
        return made

    def look(self, held: Held) -> None:
        """Take a value in."""
        self._here = held.place
        if held.place == "events":
            for name, payload in held.value.items():
                if not self.hides_emit(name):
                    self.under(name, payload)
        else:
            self._whole(held.value, self.paths if held.top else ())

    def text(self, text: str) -> str:
        """Count the secret texts in a text; nobody looks at what comes back."""
        self._add(self.occurrences(text))
        return text

    def _is_secret(self, value: Any) -> bool:
        found = super()._is_secret(value)
        self._add(int(found))
        return found

    def _add(self, times: int) -> None:
        if times:
            self.places[self._here] = self.places.get(self._here, 0) + times
