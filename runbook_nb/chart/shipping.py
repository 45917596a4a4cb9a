"""What travels to the workers of a fan-out and back: the author's code there, plain data back.

Chart layer. Functions travel by cloudpickle, closures and lambdas by value, to the author's own
workers and nowhere else; what comes back is read from those workers alone, and nothing pickled
is ever read from a file, a store or a message. What was sent and comes back is the sender's own
object again: rule sets, so that equal functions stay the same functions, and slots of earlier
fan-outs. An error that ends a run travels whole, with what it came from.
"""

from __future__ import annotations

import io
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from runbook_nb._frozen import FrozenDict
from runbook_nb.chart.model import (
    Chart,
    DeciderStage,
    FanOutStage,
    ForkStage,
    FunctionStage,
    PausableStage,
    SelectorStage,
    Stage,
    SubchartStage,
    branches_of,
)
from runbook_nb.errors import EngineError, RunSignal, describe_error
from runbook_nb.record.log import Tables
from runbook_nb.record.slots import Slot, Slots
from runbook_nb.rules.ruleset import RuleSet

#: What the pickle now being read refers to instead of holding it; of this thread.
_at_hand = threading.local()


class Table:
    """What is referred to by its place instead of being sent along.

    Attributes
    ----------
    rules, slots : list
        Rule sets and slots, by their places.
    log : Tables or None
        The tables of the log that fan-outs belong to.
    """

    def __init__(
        self, rules: Sequence[RuleSet] = (), slots: Sequence[Slots] = (), log: Tables | None = None
    ) -> None:
        self.rules = list(rules)
        self.slots = list(slots)
        self.log = log
        self._places: dict[int, int] = {}
        for among in (self.rules, self.slots):
            self._places.update((id(one), place) for place, one in enumerate(among))

    def place(self, one: Any, among: list[Any], *, add: bool = False) -> int | None:
        """Give the place of an object; with ``add`` it gets one."""
        place = self._places.get(id(one))
        if place is None and add:
            place = self._places[id(one)] = len(among)
            among.append(one)
        return place

    def __add__(self, other: Table) -> Table:
        return Table((*self.rules, *other.rules), (*self.slots, *other.slots), self.log)


class SentSlots(Slots):
    """Slots of a fan-out that ran elsewhere: each of them, without the record behind them."""

    __slots__ = ("_sent",)

    def __init__(self, sent: Sequence[Slot]) -> None:
        self._sent = tuple(sent)
        self._redactor = None
        self._paths = ()

    def _slot(self, index: int) -> Slot:
        return self._sent[index]

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._sent)

    def __len__(self) -> int:
        return len(self._sent)

    def __reduce__(self) -> tuple[Any, ...]:
        return SentSlots, (self._sent,)

    def __repr__(self) -> str:
        return f"<Slots: {len(self)} items>"


def _rules(place: int) -> RuleSet:
    found: RuleSet = _at_hand.table.rules[place]
    return found


def _slots(place: int) -> Slots:
    found: Slots = _at_hand.table.slots[place]
    return found


def _log() -> Any:
    return _at_hand.table.log


def _linked(error: BaseException, state: Any) -> None:
    """Give an error that travelled what it holds, and what it came from."""
    held, cause, context, suppress = state
    if held is not None:
        error.__setstate__(held)
    error.__cause__, error.__context__ = cause, context
    error.__suppress_context__ = suppress


def _error_parts(error: BaseException) -> tuple[Any, ...]:
    made: Any = error.__reduce_ex__(4)
    held = made[2] if len(made) > 2 else None
    state = (held, error.__cause__, error.__context__, error.__suppress_context__)
    return made[0], made[1], state, None, None, _linked


def dumps(value: Any, table: Table, *, leaving: bool = False) -> bytes:
    """Pickle something, with references to what is in a table.

    Parameters
    ----------
    value : object
    table : Table
    leaving : bool
        Whether it goes to a worker. Rule sets and slots that are met then get a place in the
        table; on the way back those alone that have one are referred to, and slots of what ran
        there come with the record behind them.
    """
    into = io.BytesIO()
    sender = _sender()(into, protocol=5)
    sender.table, sender.leaving = table, leaving
    sender.dump(value)
    return into.getvalue()


@cache
def _sender() -> Any:
    import cloudpickle

    class Sender(cloudpickle.Pickler):  # type: ignore[misc, name-defined, unused-ignore]
        table: Table
        leaving: bool

        def reducer_override(self, one: Any) -> Any:
            table = self.table
            if isinstance(one, BaseException):
                return _error_parts(one)
            if one.__class__ is RuleSet:
                place = table.place(one, table.rules, add=self.leaving)
                return NotImplemented if place is None else (_rules, (place,))
            if isinstance(one, Slots):
                place = table.place(one, table.slots, add=self.leaving)
                if place is not None:
                    return _slots, (place,)
                return NotImplemented if isinstance(one, SentSlots) else (Slots, (one.fan_out,))
            if one.__class__ is Tables and not self.leaving:
                return _log, ()
            return super().reducer_override(one)

    return Sender


def loads(data: bytes, table: Table) -> Any:
    """Read what `dumps` made in a worker of this run, or for one."""
    import pickle

    before = getattr(_at_hand, "table", None)
    _at_hand.table = table
    try:
        return pickle.loads(data)  # noqa: S301 - from the author's own workers, see above
    finally:
        _at_hand.table = before


def packed(value: Any, table: Table) -> bytes:
    """Pickle something with all that it refers to, for a process that has nothing of it.

    The table is filled with what was met: what comes back refers to it.
    """
    body = dumps(value, table, leaving=True)
    nothing = Table()
    slots = [list(one) for one in table.slots]
    return dumps((dumps(table.rules, nothing), dumps(slots, Table(table.rules)), body), nothing)


def unpacked(data: bytes) -> tuple[Any, Table]:
    """Read what `packed` made; give it and the table of what came along."""
    rules, slots, body = loads(data, Table())
    table = Table(loads(rules, Table()))
    table = Table(table.rules, [SentSlots(one) for one in loads(slots, table)])
    return loads(body, table), table


# -- what stays behind -------------------------------------------------------------------------


def _elsewhere(*_: Any) -> None:
    """Stand for a function that stayed where it was called."""


def drawing_of(chart: Chart) -> Chart:
    """Give a chart without its functions: what a structure is made of.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("c", lambda scope: 1, id="a").build()
    >>> drawing_of(chart).structure == chart.structure
    True
    """
    stages = tuple(_drawn(stage) for stage in chart.stages)
    return replace(chart, stages=stages, input_schema=None, output_schema=None, output=None)


def _drawn(stage: Stage) -> Stage:
    gone: dict[str, Any] = {}
    if stage.retry is not None:
        gone["retry"] = replace(stage.retry, backoff=0.0, on=(Exception,))
    if isinstance(stage, FunctionStage):
        gone["fn"] = _elsewhere
    if isinstance(stage, PausableStage):
        gone["resume"] = _elsewhere
    if isinstance(stage, DeciderStage | SelectorStage):
        gone["judge"] = None
    if isinstance(stage, DeciderStage | ForkStage):
        gone["branches"] = tuple(
            replace(branch, stage=_drawn(branch.stage)) for branch in branches_of(stage)
        )
    if isinstance(stage, ForkStage) and callable(stage.merge):
        gone["merge"] = _elsewhere
    if isinstance(stage, SubchartStage):
        inner = stage.chart
        gone["chart"] = drawing_of(inner) if isinstance(inner, Chart) else _elsewhere
        for name in ("inputs", "outputs"):
            if callable(getattr(stage, name)):
                gone[name] = _elsewhere
    if isinstance(stage, FanOutStage):
        branch = stage.branch
        gone["items"] = _elsewhere
        gone["branch"] = drawing_of(branch) if isinstance(branch, Chart) else _elsewhere
    return replace(stage, **gone)


def without_items(stage: FanOutStage) -> FanOutStage:
    """Give a fan-out without what made its items: that ran already."""
    return replace(stage, items=_elsewhere, retry=None)


# -- errors ------------------------------------------------------------------------------------


class _Signalled(RunSignal):
    """Stands for a signal that could not come back as it was."""

    def __init__(self, message: str, run_status: str) -> None:
        super().__init__(message)
        self.run_status = run_status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.run_status)


def error_that_travels(error: BaseException, table: Table) -> BaseException:
    """Give an error that comes back as it is, or one that says what it was.

    It bears the worker's traceback as a note: frames do not travel.
    """
    lines = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"raised by a worker:\n{lines}")
        loads(dumps(error, table), table)
    except Exception:
        words = error_line(error)
        if isinstance(error, RunSignal):
            return _Signalled(words, str(error.run_status))
        return EngineError(
            f"{words} (the error itself cannot come back from the worker)",
            code="cannot_come_back",
        )
    return error


def error_line(error: BaseException) -> str:
    """Say an error in one line."""
    told = describe_error(error)
    return f"{told['type']}: {told['message']}"


def why_not(work: Callable[[], Any]) -> str | None:
    """Say in one line why some work cannot be done; None when it can."""
    try:
        work()
    except RecursionError:
        return "it is nested too deeply to be pickled"
    except Exception as error:
        return error_line(error)
    return None


def what_stays(chart: Any) -> str:
    """Name the part of a chart that cannot be pickled, and why."""
    if not isinstance(chart, Chart):
        return f"its factory: {why_not(partial(packed, chart, Table()))}"
    for stage in chart.stages:
        reason = why_not(partial(dumps, stage, Table(), leaving=True))
        if reason is not None:
            return f"stage {stage.name!r}: {reason}"
    return f"chart {chart.name!r}: {why_not(partial(packed, chart, Table()))}"


def plain_options(options: Mapping[str, Any]) -> FrozenDict:
    """Give options of a run as they travel: those that cannot are left to the worker's own."""
    return FrozenDict(
        {
            name: value
            for name, value in options.items()
            if why_not(partial(dumps, value, Table())) is None
        }
    )
