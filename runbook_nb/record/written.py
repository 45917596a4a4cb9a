"""A log as plain JSON, and back: what a checkpoint and a recording hold.

Record layer. Codes, shapes and rule sets are written once; the values of like branches stand in
columns, so a subject costs its values and little else. Nothing is pickled, nothing is turned into
text in silence: a value that cannot be carried is refused by name, or counted where the caller
asked for that. Reading trusts nothing (see `read_log`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import FrozenList, freeze
from runbook_nb._json import WireReport
from runbook_nb._rows import FrozenRows
from runbook_nb._tagged import Refusal, Tagger
from runbook_nb._text import MISSING, visible
from runbook_nb.errors import CheckpointError, CycleError
from runbook_nb.record.collected import VerdictRows
from runbook_nb.record.columns import Column, fan_columns, root_columns
from runbook_nb.record.log import Code, FanOut, Log, StageRef, Track
from runbook_nb.record.restored import LOG_FORMAT, LogReader, read_log, read_log_with
from runbook_nb.record.rulebook import Rulebook, can_be_read
from runbook_nb.record.served import AS_RECORDED, Values, served_by
from runbook_nb.record.slots import Slot, Slots
from runbook_nb.record.tallies import mapped, runs
from runbook_nb.record.tracks import Gathered
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.evaluate import Decision, FunctionRecord, Selection
from runbook_nb.rules.ruleset import RuleSet

if TYPE_CHECKING:
    from runbook_nb.record.brief import ItemColumns

__all__ = [
    "AS_RECORDED",
    "LOG_FORMAT",
    "LogReader",
    "LogWriter",
    "Values",
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
    brief: bool = False,
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
    brief : bool
        Whether what a branch holds of its own item is written as the name it has there.

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
    writer = LogWriter(log, values, report=report, strict=strict, brief=brief)
    written = writer.log()
    if beside:
        written["beside"] = {name: writer.value(value, name) for name, value in beside.items()}
    return written


class LogWriter:
    """Writes a log, and values beside it.

    Parameters
    ----------
    log : Log
    values : Values
    report : WireReport, optional
    strict : bool
    brief : bool
        As for `write_log`.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", [1]), id="a").build().run_sync()
    >>> LogWriter(run.log).value(run.raw[1], "state")
    {'n': {'$ref': 0}}
    """

    def __init__(
        self,
        log: Log,
        values: Values = AS_RECORDED,
        *,
        report: WireReport | None = None,
        strict: bool = True,
        brief: bool = False,
    ) -> None:
        self._log = log
        self._values = values
        self._brief = brief
        self._hide = values.hide
        self._book = Rulebook(values.text)
        self._tagger = Tagger(self._foreign, report, strict=strict)
        self._fans: list[FanOut] = []
        #: How often each shape occurs, by the identity of the fan-out.
        self._counts: dict[int, dict[int, int]] = {}
        self._numbers: dict[int, int] = {}
        self._stages: dict[StageRef, int] = {}
        self._shapes: dict[int, int] = {}
        self._document = self._written()

    def log(self) -> dict[str, Any]:
        """Give the log as JSON values.

        A value written later may bring rule sets into it.
        """
        return dict(self._document)

    def value(self, value: Any, where: str) -> Any:
        """Write a frozen value beside the log; what it shares with the log is referred to.

        Parameters
        ----------
        value : object
        where : str
            What it is, for the message when it cannot be carried.

        Raises
        ------
        CheckpointError
            It cannot be carried, with the path to what cannot.
        """
        served = self._values.beside(where, value)
        return self._guarded(where, lambda: self._tagger.apart(served))

    def _written(self) -> dict[str, Any]:
        log = self._log
        self._find_fan_outs()
        numbers = self._code_numbers()
        codes = [self._code(log.codes[number]) for number in numbers]
        columns = root_columns(log, log.root.codes)
        values = [self._column(column, log.root) for column in columns]
        fans = [self._fan_out(fan) for fan in self._fans]
        self._guarded("the log", self._tagger.check)
        return {
            "format": LOG_FORMAT,
            "stages": [self._stage(ref) for ref in self._stages],
            "functions": self._book.functions,
            "rules": self._book.sets,
            "codes": codes,
            "shapes": [
                [numbers[code] for code in log.shapes[number].codes] for number in self._shapes
            ],
            "root": {"codes": [numbers[code] for code in log.root.codes], "values": values},
            "fan_outs": fans,
        }

    # -- the parts

    def _find_fan_outs(self) -> None:
        """Give every fan-out its number, in the order in which a reader meets them."""
        root = self._log.root
        self._number_fans(root_columns(self._log, root.codes), root)
        for fan in self._fans:  # grows while it is walked
            counts = self._counts[id(fan)] = fan.shape_counts()
            shapes = (self._log.shapes[number] for number in counts)
            if any(self._log.have_fan_outs(shape.codes) for shape in shapes):
                self._number_fans(fan_columns(self._log, fan), fan)

    def _code_numbers(self) -> dict[int, int]:
        """Give each code its number in the order of the walk.

        A run interns them in the order they are first met, which depends on who was first where
        branches run side by side. Of codes that nothing holds any more, those that mark a key as
        secret count still.
        """
        log = self._log
        met = dict.fromkeys(log.root.codes)
        for fan in self._fans:
            for number in self._counts[id(fan)]:
                met.update(dict.fromkeys(log.shapes[number].codes))
        marks = [n for n, code in enumerate(log.codes) if code.kind == "secret" and n not in met]
        marks.sort(key=lambda n: (log.codes[n].stage, log.codes[n].key or ""))
        met.update(dict.fromkeys(marks))
        return {number: place for place, number in enumerate(met)}

    def _number_fans(self, columns: Iterable[Column], track: Track | FanOut) -> None:
        for column in columns:
            if column.code.kind == "fan_out":
                for fan in column.held_in(track):
                    self._numbers[id(fan)] = len(self._fans)
                    self._fans.append(fan)

    def _stage_number(self, ref: StageRef) -> int:
        return self._stages.setdefault(ref, len(self._stages))

    def _stage(self, ref: StageRef) -> list[Any]:
        text = self._name
        parts = [text(ref.id), text(ref.name), ref.kind]
        return [*parts, text(ref.path)] if ref.path else parts

    def _name(self, text: str) -> Any:
        return self._tagger.bare(self._values.text(text))

    def _code(self, code: Code) -> list[Any]:
        key = None if code.key is None else self._name(code.key)
        written = [code.kind, self._stage_number(code.stage)]
        if code.path is not None:
            return [*written, key, self._book.path(code.path, self._hide)]
        return written if key is None else [*written, key]

    def _column(self, column: Column, track: Track | FanOut) -> Any:
        held: Sequence[Any] = column.held_in(track)
        if column.code.kind == "fan_out":
            return self._numbers[id(held[0])]
        return self._written_column(column, self._served(column, held, branch=False))

    def _served(self, column: Column, held: Sequence[Any], *, branch: bool) -> Sequence[Any]:
        code, part, hide = column.code, column.part, self._hide
        if code.path is not None:
            if hide is None:
                return held
            return [self._book.value(code.path, part, value, hide) for value in held]
        if self._values is AS_RECORDED:
            return held
        served = self._values.value
        return [served(code, value, branch=branch) for value in held]

    def _written_column(self, column: Column, held: Sequence[Any]) -> Any:
        place = _place(column.code, column.part)
        return self._guarded(place, lambda: self._tagger.column(held))

    def _branch_columns(
        self, fan: FanOut, of_items: ItemColumns | None, rows: Sequence[Any] | None
    ) -> Iterator[Any]:
        """Write the values of branches, shape by shape.

        What is kept as columns is made anew whenever it is read. Where ``rows`` were made of them,
        the values of branches are those in the rows, as they are where each row ran by itself.
        """
        table: Sequence[Sequence[Any]] | Gathered | None = None
        as_recorded = self._values is AS_RECORDED
        tables = fan.tables()
        for column in fan_columns(self._log, fan):
            code, at, places = column.code, column.at, column.places
            if at == 0:
                shape = fan.shape(places[0])
                width = 0 if shape is None else self._log.width_of(shape.codes)
                table = tables(width, places)
            if of_items is not None and rows is None:
                key = fan.item_key(at, places)
                if key is not None and of_items.column(key) is not None:
                    yield {"$item": key}
                    continue
            if (
                of_items is not None
                and as_recorded
                and isinstance(table, Gathered)
                and code.kind != "fan_out"
            ):
                key = self._key_of(column)
                if of_items.holds_all(key, table, at):
                    yield {"$item": key}
                else:
                    yield self._written_column(column, table[at])
                continue
            held: Sequence[Any]
            item_key = None if rows is None else fan.item_key(at, places)
            if rows is not None and item_key is not None:
                held = [rows[place].get(item_key, MISSING) for place in places]
            else:
                held = column.held_in(fan) if table is None else table[at]
            if code.kind == "fan_out":
                yield self._numbers[id(held[0])]
                continue
            held = self._served(column, held, branch=True)
            if of_items is not None:
                key = self._key_of(column)
                if of_items.holds(key, places, held):
                    yield {"$item": key}
                    continue
            yield self._written_column(column, held)

    def _key_of(self, column: Column) -> str | None:
        path = column.code.path
        return column.code.key if path is None else self._book.keys_of(path)[column.part]

    def _written_items(self, fan: FanOut, items: Any) -> Any:
        where = f"the items of {visible(fan.stage.name)!r}"
        if isinstance(items, Columns):
            if self._brief and len(items.layouts) == 1:
                keys = items.layouts[0]
                columns = [items.column(key)[:] for key in keys]
                written = self._guarded(where, lambda: self._tagger.rows_of(keys, columns))
                if written is not None:
                    return written
            # As rows, which is what a reader looks for; a state may hold one of them.
            items = FrozenList(map(fan.item, range(len(fan))))
        if isinstance(items, FrozenRows):
            table = items.table
            if table is not None:
                rows = self._guarded(where, lambda: self._tagger.rows_of(*table, items.kept))
                if rows is not None:
                    return rows
            items = FrozenList(items.each())
        return self._guarded(where, lambda: self._tagger.write(items))

    def _fan_out(self, fan: FanOut) -> dict[str, Any]:
        name = self._name
        counts, shapes = self._counts[id(fan)], fan.shape_numbers()
        numbers = {number: self._shapes.setdefault(number, len(self._shapes)) for number in counts}
        if sum(counts.values()) < len(shapes):
            numbers[-1] = -1  # some never began
        items: Any = fan.items
        rows: Sequence[Any] | None = None
        if self._values is not AS_RECORDED:
            each = items.each() if isinstance(items, FrozenRows) else items
            if isinstance(items, Columns):
                rows = each = list(items)
            items = [self._values.item(fan, item) for item in each]
        of_items: ItemColumns | None = None
        spelt: str | None = None
        if self._brief:
            from runbook_nb.record.brief import ItemColumns, letters

            of_items = ItemColumns(items) if fan.is_fan_out else None
            spelt = letters(shapes, numbers)
        written: dict[str, Any] = {
            "stage": self._stage_number(fan.stage),
            "execution": fan.execution,
            "into": None if fan.into is None else name(fan.into),
            "subject": None if fan.subject is None else name(fan.subject),
            "cap": fan.cap,
            "items": self._written_items(fan, items),
            "statuses": runs(fan.status_numbers()),
            "shapes": runs(mapped(shapes, numbers)) if spelt is None else spelt,
            "values": list(self._branch_columns(fan, of_items, rows)),
        }
        if isinstance(items, Slots):
            written["size"] = len(items)
        if not fan.is_fan_out:
            written["form"] = fan.form
        if fan.bases is not None:
            written["bases"] = runs(fan.bases)
        if fan.notes:
            written["notes"] = [[index, name(fan.notes[index])] for index in sorted(fan.notes)]
        return written

    # -- values

    def _foreign(self, value: Any) -> tuple[str, Any] | None:
        """Write values of the record's and the rules' own classes."""
        if value is MISSING:
            return "$missing", True
        if isinstance(value, Slots):
            number = self._numbers.get(id(value.fan_out))
            if number is not None and self._values.by_reference(value):
                return "$slots", number
            return "", list(value)  # of another run, or with more hidden than the log hides
        if isinstance(value, Columns):
            return "", FrozenList(value)
        if isinstance(value, VerdictRows):
            number = self._numbers.get(id(value.fan_out))
            declared = value.declared
            if number is not None and self._values is AS_RECORDED and _are_texts(declared):
                return "$verdicts", [number, *declared]
            return "", list(value)
        if isinstance(value, Slot):
            parts = (value.index, value.item, value.status, value.value)
            return "$slot", [*parts, value.reason, value.sentence, value.branch]
        if isinstance(value, FunctionRecord):
            pairs = [part for pair in value.inputs for part in pair]
            return "$called", [value.returned, value.error, value.error_type, *pairs]
        if isinstance(value, Decision | Selection):
            number, outcomes, *rest = self._book.path(value.path, value.hide)
            held = self._book.values(value.path, value.raw_values, value.hide)
            tag = "$selection" if isinstance(value, Selection) else "$decision"
            return tag, [number, outcomes, bool(rest), *held]
        if isinstance(value, RuleSet):
            if self._hide is None or can_be_read(value):
                return "$rules", self._book.number(value)
            return "", freeze(value._document(by_name=True))
        return None

    def _guarded(self, where: str, write: Any) -> Any:
        """Write, and say where it was that something cannot be carried."""
        try:
            return write()
        except Refusal as refusal:
            place = f"{where}{refusal.path}" if refusal.path else where
            raise CheckpointError(f"{place} holds {refusal.what}", where=place, fix=_FIX) from None
        except CycleError as error:
            raise CycleError(error.message, where=where) from None


def _are_texts(names: Iterable[Any]) -> bool:
    return {str}.issuperset(map(type, names))


def _place(code: Code, part: int) -> str:
    what = f"key {visible(code.key)!r}" if code.key is not None else f"its {code.kind}"
    return f"stage {visible(code.stage.name)!r} ({visible(code.stage.id)}), {what}"
