"""A log as plain JSON, and back: what a checkpoint and a recording hold.

Record layer. Codes, shapes and rule sets are written once; the values of like branches stand in
columns, so a subject costs its values and little else. Nothing is pickled, nothing is turned into
text in silence: a value that cannot be carried is refused by name, or counted where the caller
asked for that. Reading trusts nothing (see `read_log`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from runbook_nb._json import WireReport
from runbook_nb._tagged import Refusal, Tagger
from runbook_nb._text import MISSING, visible
from runbook_nb.errors import CheckpointError, CycleError
from runbook_nb.record.columns import Column, fan_columns, root_columns
from runbook_nb.record.log import Code, FanOut, Log, StageRef
from runbook_nb.record.restored import LOG_FORMAT, read_log, read_log_with
from runbook_nb.record.rulebook import HiddenKeys, Rulebook, hider_of
from runbook_nb.record.served import AS_RECORDED, Values, served_by
from runbook_nb.record.slots import Slot, Slots
from runbook_nb.rules.decision import Hider
from runbook_nb.rules.evaluate import Decision, FunctionRecord, Selection
from runbook_nb.rules.ruleset import RuleSet

__all__ = [
    "AS_RECORDED",
    "LOG_FORMAT",
    "HiddenKeys",
    "Values",
    "hider_of",
    "read_log",
    "read_log_with",
    "served_by",
    "write_log",
]

_FIX: Final = "keep plain data in the state: texts, numbers, dates, lists, mappings"


def write_log(
    log: Log,
    values: Values = AS_RECORDED,
    *,
    beside: Mapping[str, Any] | None = None,
    report: WireReport | None = None,
    strict: bool = True,
) -> dict[str, Any]:
    """Write a log as JSON values.

    Parameters
    ----------
    log : Log
        What happened.
    values : Values
        What becomes of every value and name: by default they are written as recorded; with
        `served_by` as a policy lets them be seen.
    beside : mapping, optional
        More frozen values to write in the same document (a state, an input). What they share with
        the log is referred to, and slots of its fan-outs cost nothing.
    report : WireReport, optional
        Counts the values that were made plainer (a member of an enumeration is its value), and
        those that were replaced.
    strict : bool
        Whether a value that cannot be carried is refused. Else its type name stands for it.

    Returns
    -------
    dict
        Plain JSON; the same bytes for equal logs, whether its keys are sorted or not.

    Raises
    ------
    CheckpointError
        A value cannot be carried; ``where`` says in which stage, under which key and path.
    CycleError
        A value contains itself.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> data = write_log(run.log)
    >>> data["root"]["values"], read_log(data).root.values
    ([[1]], [1])
    """
    return _Writer(log, values, report, strict).document(beside or {})


class _Writer:
    """One log on its way into JSON."""

    def __init__(self, log: Log, values: Values, report: WireReport | None, strict: bool) -> None:
        self.log = log
        self.values = values
        self.hide: Hider | None = values.hide
        self.book = Rulebook(values.text)
        self.tagger = Tagger(self.foreign, report, strict=strict)
        self.fans: list[FanOut] = []
        self.numbers: dict[int, int] = {}
        self.stages: dict[StageRef, int] = {}
        self.shapes: dict[int, int] = {}

    def document(self, beside: Mapping[str, Any]) -> dict[str, Any]:
        log = self.log
        self.find_fan_outs()
        codes = [self.code(code) for code in log.codes]
        root = {"codes": list(log.root.codes), "values": self.root_values()}
        fans = [self.fan_out(fan) for fan in self.fans]
        more = {name: self.beside(name, value) for name, value in beside.items()}
        self.guarded("the log", self.tagger.check)
        sets, functions = self.book.written()
        written: dict[str, Any] = {
            "format": LOG_FORMAT,
            "stages": [self.stage(ref) for ref in self.stages],
            "functions": functions,
            "rules": sets,
            "codes": codes,
            "shapes": [list(log.shapes[number].codes) for number in self.shapes],
            "root": root,
            "fan_outs": fans,
        }
        if more:
            # In order: what comes later may refer to what comes before.
            written["beside"] = [[name, value] for name, value in more.items()]
        return written

    # -- the parts

    def find_fan_outs(self) -> None:
        """Give every fan-out its number, in the order in which a reader meets them."""
        root = self.log.root
        self.number_fans(root_columns(self.log, root.codes), root.values)
        for fan in self.fans:  # grows while it is walked
            self.number_fans(fan_columns(self.log, fan), fan.values)

    def number_fans(self, columns: Iterator[Column], values: Sequence[Any]) -> None:
        for column in columns:
            if column.code.kind == "fan_out":
                for place in column.places:
                    self.numbers[id(values[place])] = len(self.fans)
                    self.fans.append(values[place])

    def stage_number(self, ref: StageRef) -> int:
        return self.stages.setdefault(ref, len(self.stages))

    def stage(self, ref: StageRef) -> list[Any]:
        text = self.name
        parts = [text(ref.id), text(ref.name), ref.kind]
        path = getattr(ref, "path", "")
        return [*parts, text(path)] if path else parts

    def name(self, text: str) -> Any:
        return self.tagger.bare(self.values.text(text))

    def code(self, code: Code) -> list[Any]:
        key = None if code.key is None else self.name(code.key)
        written = [code.kind, self.stage_number(code.stage)]
        if code.path is not None:
            return [*written, key, self.book.path(code.path, self.hide)]
        return written if key is None else [*written, key]

    def root_values(self) -> list[Any]:
        root = self.log.root
        columns = root_columns(self.log, root.codes)
        return [self.column(column, root.values, branch=False) for column in columns]

    def column(self, column: Column, values: Sequence[Any], *, branch: bool) -> Any:
        code, part, places = column
        if code.kind == "fan_out":
            return self.numbers[id(values[places[0]])]
        held: list[Any] = [values[place] for place in places]
        path, hide = code.path, self.hide
        if path is not None:
            if hide is not None:
                held = [self.book.value(path, part, value, hide) for value in held]
        elif self.values is not AS_RECORDED:
            served = self.values.value
            held = [served(code, value, branch=branch) for value in held]
        return self.guarded(_place(code, part), lambda: self.tagger.rows(held))

    def fan_out(self, fan: FanOut) -> dict[str, Any]:
        columns = fan_columns(self.log, fan)
        name = self.name
        shapes = [
            -1 if number < 0 else self.shapes.setdefault(number, len(self.shapes))
            for number in fan.shapes
        ]
        items: Any = fan.items
        if self.values is not AS_RECORDED:
            items = [self.values.item(fan, item) for item in items]
        where = f"the items of {visible(fan.stage.name)!r}"
        written: dict[str, Any] = {
            "stage": self.stage_number(fan.stage),
            "execution": fan.execution,
            "into": None if fan.into is None else name(fan.into),  # type: ignore[redundant-expr]
            "subject": None if fan.subject is None else name(fan.subject),
            "cap": fan.cap,
            "items": self.guarded(where, lambda: self.tagger.write(items)),
            "statuses": _runs(fan.statuses),
            "shapes": _runs(shapes),
            "values": [self.column(column, fan.values, branch=True) for column in columns],
        }
        form, bases = getattr(fan, "form", "fan_out"), getattr(fan, "bases", None)
        if form != "fan_out":
            written["form"] = form
        if bases is not None:
            written["bases"] = _runs(bases)
        if fan.notes:
            written["notes"] = [[index, name(fan.notes[index])] for index in sorted(fan.notes)]
        return written

    def beside(self, name: str, value: Any) -> Any:
        served = self.values.beside(name, value)
        return self.guarded(name, lambda: self.tagger.write(served))

    # -- values

    def foreign(self, value: Any) -> tuple[str, Any] | None:
        """Write values of the record's and the rules' own classes."""
        if value is MISSING:
            return "$missing", True
        if isinstance(value, Slots):
            number = self.numbers.get(id(value.fan_out))
            if number is not None and self.values.by_reference(value):
                return "$slots", number
            return "", list(value)  # of another run, or with more hidden than the log hides
        if isinstance(value, Slot):
            parts = (value.index, value.item, value.status, value.value)
            return "$slot", [*parts, value.reason, value.sentence, value.branch]
        if isinstance(value, FunctionRecord):
            pairs = [part for pair in value.inputs for part in pair]
            return "$called", [value.returned, value.error, value.error_type, *pairs]
        if isinstance(value, Decision | Selection):
            hide = _acting(value.hide)
            number, outcomes, *rest = self.book.path(value.path, hide)
            held = self.book.values(value.path, value.values, hide)
            tag = "$selection" if isinstance(value, Selection) else "$decision"
            return tag, [number, outcomes, bool(rest), *held]
        if isinstance(value, RuleSet):
            return "$rules", self.book.number(value)
        return None

    def guarded(self, where: str, write: Any) -> Any:
        """Write, and say where it was that something cannot be carried."""
        try:
            return write()
        except Refusal as refusal:
            place = f"{where}{refusal.path}" if refusal.path else where
            raise CheckpointError(f"{place} holds {refusal.what}", where=place, fix=_FIX) from None
        except CycleError as error:
            raise CycleError(error.message, where=where) from None


def _acting(hide: Any) -> Any:
    """Give what hides something; None for no policy, and where it was hidden before."""
    if isinstance(hide, HiddenKeys) or not getattr(hide, "active", True):
        return None
    return hide


def _place(code: Code, part: int) -> str:
    what = f"key {visible(code.key)!r}" if code.key is not None else f"its {code.kind}"
    return f"stage {visible(code.stage.name)!r} ({visible(code.stage.id)}), {what}"


def _runs(numbers: Any) -> list[int]:
    """Write numbers as runs: each number, and how often it stands there."""
    return [part for number, run in groupby(numbers) for part in (number, len(list(run)))]
