"""What a fan-out hands on: one slot per item, in item order, made when looked at.

Record layer. A slot never hides what became of its item: ``ok`` with a value, ``failed`` or
``not_reached`` with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from runbook_nb._frozen import FrozenDict, FrozenList, Immutable, MadeOnDemand
from runbook_nb._text import MISSING, visible
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, FanOut, Shape
from runbook_nb.record.paths import item_paths
from runbook_nb.record.secrets import PLACEHOLDER
from runbook_nb.record.shapes import facts_of, state_after
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.evaluate import Decision

if TYPE_CHECKING:
    from runbook_nb.record.redact import Redactor


class _Later(Immutable):
    """What a slot says only when asked: its sentence, made from the record it was taken from."""

    __slots__ = ("_fan",)

    def __getattr__(self, name: str) -> Any:
        # Only what was not set comes here.
        if name == "reason":
            told: str | None = None
        elif name == "sentence":
            decision = decision_of(self._fan, self.index)
            told = None if decision is None else decision.sentence
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, told)
        return told


@frozen(kw_only=False)
class Slot(_Later):
    """What became of one item of a fan-out.

    Attributes
    ----------
    index : int
        Position of the item.
    item : object
        The item itself, frozen.
    status : {"ok", "failed", "not_reached"}
        Never anything else, whatever ended the run.
    value : object
        The branch's output, else its final state; None unless ``ok``.
    reason : str or None
        Why there is no value.
    sentence : str or None
        The evidence sentence of the branch's last decision.
    branch : str or None
        The way that decision took: for a branch that ends in one, its verdict.
    """

    index: int
    item: Any
    status: str
    value: Any = None
    reason: str | None = None
    sentence: str | None = None
    branch: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the slot as a mapping, empty facts left out."""
        out = {"index": self.index, "item": self.item, "status": self.status}
        for name in ("value", "reason", "sentence", "branch"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        return out


#: Make and fill a slot without `Slot.__init__`, which takes four times as long.
_new_slot: Final = Slot.__new__
_set_fan, _set_index, _set_item, _set_status, _set_value, _set_branch = (
    vars(owner)[name].__set__
    for owner, name in (
        (_Later, "_fan"),
        *((Slot, name) for name in ("index", "item", "status", "value", "branch")),
    )
)


class Slots(MadeOnDemand[Slot]):
    """The slots of one fan-out, as a sequence that cannot be changed.

    With a redactor each slot is served: what its policy hides is not in it.
    """

    __slots__ = ("_paths", "_redactor", "fan_out")

    def __init__(
        self, fan_out: FanOut, redactor: Redactor | None = None, paths: Sequence[Any] = ()
    ) -> None:
        self.fan_out = fan_out
        self._redactor = redactor if redactor is not None and redactor.active else None
        self._paths = paths

    @property
    def redactor(self) -> Redactor | None:
        """The policy they are served by; None when there is none."""
        return self._redactor

    @property
    def paths(self) -> Sequence[Any]:
        """The paths of the policy that go on from the list of them."""
        return self._paths

    def served_by(self, redactor: Redactor, paths: Sequence[Any]) -> Slots:
        """Give the same slots, served; ``paths`` go on from the list of them."""
        return Slots(self.fan_out, redactor, paths)

    def verdict_rows(
        self, *columns: str, subject: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Give one verdict row per item whose branch decided, in item order.

        A row names its subject, its verdict (the way its last decision took) and the columns asked
        for, None where the item has nothing there. Nothing is copied: a row is made when somebody
        looks at it, and an answer knows which item it is about.

        Parameters
        ----------
        *columns : str
            Keys of the items.
        subject : str, optional
            Key of the items that names the subject; the one the fan-out declares by default.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> one = (flow_chart("one", lambda s: s.update(s.args["item"]), id="one")
        ...     .add_decider("Size", lambda s: "big" if s["n"] > 1 else "small", id="size")
        ...     .branch("big", lambda s: None).branch("small", lambda s: None).end().build())
        >>> chart = (flow_chart("c", lambda s: s.set("xs", [{"id": "a", "n": 2}]), id="a")
        ...     .add_parallel_for_each("Each", id="each", items=lambda s: s["xs"], branch=one,
        ...                            max_branches=1, into="out", subject="id").build())
        >>> list(chart.run_sync().slots("each").verdict_rows("n"))
        [{'id': 'a', 'verdict': 'big', 'n': 2}]
        """
        from runbook_nb.record.collected import VerdictRows

        named = self.fan_out.subject if subject is None else subject
        if named is None:
            raise DefinitionError(
                f"the rows of {self.fan_out.stage.name!r} cannot name whom they are about: it "
                "declares no subject key",
                where="subject",
                fix='write .verdict_rows(…, subject="key")',
            )
        rows = VerdictRows(self.fan_out, named, columns)
        if self._redactor is None:
            return rows
        return FrozenList(
            rows.row_of(slot.item, slot.branch)
            for slot in map(self._slot, map(rows.item_of, range(len(rows))))
        )

    def _slot(self, index: int) -> Slot:
        if self._redactor is None:
            return slot_of(self.fan_out, index)
        return served_slot(self.fan_out, index, self._redactor, self._paths)

    def __len__(self) -> int:
        return len(self.fan_out)

    @overload
    def __getitem__(self, index: int) -> Slot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Slot]: ...
    def __getitem__(self, index: int | slice) -> Slot | list[Slot]:
        if isinstance(index, slice):
            return [self._slot(i) for i in range(len(self))[index]]
        try:
            place = range(len(self))[index]
        except IndexError:
            raise IndexError(
                f"there is no slot {index}; the fan-out had {len(self)} items"
            ) from None
        return self._slot(place)

    def __iter__(self) -> Iterator[Slot]:
        if self._redactor is None:
            return slots_of(self.fan_out)
        return (self._slot(i) for i in range(len(self)))

    def __repr__(self) -> str:
        count, name = self.fan_out.status_count, self.fan_out.stage.name
        if self._redactor is not None:
            name = self._redactor.text(name)
        return (
            f"<Slots of {name!r}: {len(self)} items, {count(OK)} ok, "
            f"{count(FAILED)} failed, {count(NOT_REACHED)} not reached>"
        )


def slot_of(fan: FanOut, index: int) -> Slot:
    """Make the slot of one item."""
    if fan.status_number(index) != OK:
        return _without_value(fan, index, fan.item(index))
    read, branch = _reader(fan, fan.shape(index))
    return _made(fan, index, fan.item(index), read(*fan.part(index)), branch)


def slots_of(fan: FanOut) -> Iterator[Slot]:
    """Make the slots of all items, one after another."""
    readers: dict[int, _Reader] = {}
    facts = zip(
        fan.status_numbers(), fan.shape_numbers(), fan.each_item(), fan.parts(), strict=True
    )
    for index, (status, shape, item, part) in enumerate(facts):
        if status != OK:
            yield _without_value(fan, index, item)
            continue
        reader = readers.get(shape)
        if reader is None:
            reader = readers[shape] = _reader(fan, fan.shape(index))
        # As `_made` does: a collecting stage looks at every slot, so the call counts.
        slot = _new_slot(Slot)
        _set_fan(slot, fan)
        _set_index(slot, index)
        _set_item(slot, item)
        _set_status(slot, "ok")
        _set_value(slot, reader[0](*part))
        _set_branch(slot, reader[1])
        yield slot


#: What reads the value of branches of one shape, and the way their decision took.
_Reader = tuple[Callable[[Sequence[Any], int], Any], "str | None"]


def _without_value(fan: FanOut, index: int, item: Any) -> Slot:
    return Slot(index, item, fan.status(index), reason=reason_of(fan, index))


def _made(fan: FanOut, index: int, item: Any, value: Any, branch: str | None) -> Slot:
    slot = _new_slot(Slot)
    _set_fan(slot, fan)
    _set_index(slot, index)
    _set_item(slot, item)
    _set_status(slot, "ok")
    _set_value(slot, value)
    _set_branch(slot, branch)
    return slot


def _reader(fan: FanOut, shape: Shape | None) -> _Reader:
    if shape is None:  # a log that was read may say so
        return (lambda values, offset: None), None
    facts = facts_of(fan.log, shape)
    if facts.result is not None:
        at = facts.result.at
        return (lambda values, offset: values[offset + at]), facts.route
    if facts.plain_writes is None:
        return (lambda values, offset: state_after(facts, values, offset)), facts.route
    places = tuple(facts.plain_writes.items())
    blank = dict.fromkeys(facts.plain_writes)

    def read(values: Sequence[Any], offset: int) -> FrozenDict:
        state = blank.copy()  # filling it is quicker than building it
        for key, at in places:
            state[key] = values[offset + at]
        return FrozenDict(state)

    return read, facts.route


def served_slot(
    fan: FanOut, index: int, redactor: Redactor, paths: Sequence[tuple[str, ...]]
) -> Slot:
    """Make the slot of one item as a policy lets it be seen."""
    slot = slot_of(fan, index)
    ends, here = item_paths(paths, index)
    if ends:
        hidden = None if slot.value is None else PLACEHOLDER
        return Slot(index, PLACEHOLDER, slot.status, value=hidden)
    decision = decision_of(fan, index, redactor) if slot.sentence is not None else None
    return Slot(
        index,
        redactor.under("item", slot.item, here, top=True),
        slot.status,
        value=None if slot.value is None else redactor.under("value", slot.value, here, top=True),
        reason=None if slot.reason is None else redactor.text(slot.reason),
        sentence=None if decision is None else redactor.text(decision.sentence),
        branch=None if slot.branch is None else redactor.text(slot.branch),
    )


def served_subject(redactor: Redactor, fan: FanOut, index: int, column: str | None = None) -> Any:
    """Give what names an item, as a policy lets it be seen; None when nothing does.

    Parameters
    ----------
    redactor : Redactor
    fan : FanOut
    index : int
    column : str, optional
        Key of the item to look under where the fan-out declared no subject key.
    """
    return subject_reader(redactor, fan, column)(index)


def subject_reader(
    redactor: Redactor, fan: FanOut, column: str | None = None
) -> Callable[[int], Any]:
    """Give `served_subject` of one fan-out, for whoever asks for many of its items."""
    key = fan.subject if fan.subject is not None else column
    hidden = redactor.hides_key(str(key))
    item_at, scrub = fan.item, redactor.scrub
    columns = fan.items if isinstance(fan.items, Columns) else None

    def read(index: int) -> Any:
        if columns is not None:  # rows need not be made for that
            (name,) = (None,) if key is None else columns.values(key, (index,))
            if name is None or name is MISSING:
                return None
            return PLACEHOLDER if hidden else scrub(name)
        item = item_at(index)
        keyed = isinstance(item, dict)
        name = item.get(key) if keyed and key is not None else fan.subject_of(index)
        return PLACEHOLDER if hidden and keyed and name is not None else scrub(name)

    return read


def served_subjects(redactor: Redactor, fan: FanOut, column: str | None = None) -> Iterable[Any]:
    """Give `served_subject` of every item; of a column as it stands where nothing is hidden."""
    from runbook_nb.record.collected import without_missing

    key, items = fan.subject if fan.subject is not None else column, fan.items
    if isinstance(items, Columns) and key in items.names and not redactor.active:
        return without_missing(items.held(key))
    return map(subject_reader(redactor, fan, column), range(len(fan)))


def value_of(fan: FanOut, index: int) -> Any:
    """Give a branch's value: what its last stage returned, else its final state."""
    shape = fan.shape(index)
    if shape is None:
        return None
    facts, (values, offset) = facts_of(fan.log, shape), fan.part(index)
    if facts.result is not None:
        return values[offset + facts.result.at]
    return state_after(facts, values, offset)


def route_of(fan: FanOut, index: int) -> str | None:
    """Give the way a branch's last decision took; None when none was made."""
    shape = fan.shape(index)
    return None if shape is None else facts_of(fan.log, shape).route


def decision_of(fan: FanOut, index: int, hide: Any = None) -> Decision | None:
    """Give the last decision of a branch, with its evidence; None when none was made by rules."""
    shape = fan.shape(index)
    if shape is None:
        return None
    event = facts_of(fan.log, shape).decision
    if event is None or event.code.path is None:
        return None
    values, offset = fan.part(index)
    start = offset + event.at
    actuals = tuple(values[start : start + len(event.code.path.codes)])
    return Decision(event.code.path, actuals, hide)


def reason_of(fan: FanOut, index: int) -> str:
    """Say why a branch has no value."""
    note = fan.notes.get(index)
    if note is not None:
        return note
    if fan.status_number(index) == NOT_REACHED:
        if index >= fan.cap:
            return f"past the cap of {fan.cap}"
        return "the run ended before it was reached"
    shape = fan.shape(index)
    event = None if shape is None else facts_of(fan.log, shape).error
    if event is None:
        return "failed, and no error was recorded"
    values, offset = fan.part(index)
    return error_words(values[offset + event.at], event.code.stage.name)


def error_words(described: Any, stage: str | None = None) -> str:
    """Say a recorded error in one line.

    Examples
    --------
    >>> error_words({"type": "KeyError", "message": "'age_days'"}, "load")
    "KeyError: 'age_days' in stage 'load'"
    """
    text = (
        f"{described['type']}: {described['message']}"
        if described["message"]
        else described["type"]
    )
    return visible(text if stage is None else f"{text} in stage {stage!r}")
