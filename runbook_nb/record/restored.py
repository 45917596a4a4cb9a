"""A log read back from JSON: everything is checked, and only a whole log is handed out.

Record layer. A written log may come from a file, a store or a stranger. What does not add up (a
number out of range, a value too many, an outcome its rules cannot have, a fan-out that would lie
inside itself) is refused with its place, so that no view over the log can meet it later.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from runbook_nb._frozen import FrozenDict
from runbook_nb._rows import FrozenRows
from runbook_nb._tags import MOST_PARTS, TagError
from runbook_nb._text import MISSING, clip
from runbook_nb._untagged import Untagger
from runbook_nb.errors import LoadError
from runbook_nb.record.checked import bad_log, check_column, check_records, is_count
from runbook_nb.record.collected import VerdictRows
from runbook_nb.record.columns import Column, fan_columns, root_columns
from runbook_nb.record.log import FORMS, STATUS_WORDS, WIDTHS, Code, FanOut, Log, Shape, StageRef
from runbook_nb.record.rulebook import (
    PathReader,
    read_functions,
    read_rule_sets,
)
from runbook_nb.record.slots import Slot, Slots
from runbook_nb.record.structure import NodeKind
from runbook_nb.rules.evaluate import Decision, FunctionRecord, Selection
from runbook_nb.rules.ruleset import RuleSet

if TYPE_CHECKING:
    from runbook_nb.record.brief import ItemColumns

#: Written into every log.
LOG_FORMAT: Final = "runbook_nb/log/1"

#: Fan-outs inside branches of others, at most; views follow them level by level.
MOST_NESTED: Final = 64

#: Slots that are items of other fan-outs, at most.
MOST_SLOTS: Final = 5_000_000

#: What a stage can be.
KINDS: Final = frozenset(get_args(NodeKind))

_FIX: Final = "read what write_log wrote, unchanged"

_PATH_KINDS: Final = frozenset(kind for kind, width in WIDTHS.items() if width < 0)
_STATE_KINDS: Final = frozenset({"read", "write", "update", "append", "delete"})


def read_log(data: Any, rules: Iterable[RuleSet] = ()) -> Log:
    """Read a log that `write_log` wrote.

    Parameters
    ----------
    data : object
        What a JSON reader gave. It is not trusted.
    rules : iterable of RuleSet, optional
        Live rule sets: one that says the same as a carried one takes its place.

    Returns
    -------
    Log
        Whole and checked; it can be viewed, and appended to.

    Raises
    ------
    LoadError
        Something in it is wrong; ``where`` says what.

    Examples
    --------
    >>> from runbook_nb.record.written import write_log
    >>> read_log(write_log(Log())).codes
    []
    """
    return LogReader(data, rules).log


def read_log_with(data: Any, rules: Iterable[RuleSet] = ()) -> tuple[Log, FrozenDict]:
    """Read a log, and the values that `write_log` wrote beside it.

    Raises
    ------
    LoadError
        Something in it is wrong; ``where`` says what.

    Examples
    --------
    >>> from runbook_nb.record.written import write_log
    >>> read_log_with(write_log(Log(), beside={"answer": (1, 2)}))[1]
    {'answer': (1, 2)}
    """
    reader = LogReader(data, rules)
    beside = data.get("beside", {})
    if not isinstance(beside, dict):
        raise bad_log("is no mapping", "beside")
    found = {name: reader.value(value, f"beside.{name}") for name, value in beside.items()}
    return reader.log, FrozenDict(found)


class LogReader:
    """Reads a log, and values written beside it.

    Parameters
    ----------
    data : object
    rules : iterable of RuleSet, optional
        As for `read_log`.

    Attributes
    ----------
    log : Log
        Whole and checked.

    Raises
    ------
    LoadError
        Something in the log is wrong.

    Examples
    --------
    >>> from runbook_nb.record.written import LogWriter
    >>> reader = LogReader(LogWriter(Log()).log())
    >>> reader.value({"$tuple": [1, 2]}, "answer")
    (1, 2)
    """

    def __init__(self, data: Any, rules: Iterable[RuleSet] = ()) -> None:
        if not isinstance(data, dict) or data.get("format") != LOG_FORMAT:
            raise LoadError(
                "this is no log this version can read",
                where="the log",
                fix=f"its format should be {LOG_FORMAT!r}",
                code="bad_log",
            )
        self.log = Log()
        self._rule_sets: list[RuleSet] = []
        self._paths = PathReader(())
        self._stages: list[StageRef] = []
        self._fans: list[FanOut] = []
        self._placed = 0
        #: How deep each fan-out lies; whose slots are looked at from each; those from here.
        self._depths: list[int] = []
        self._looks: list[Counter[int]] = []
        self._here: Counter[int] = Counter()
        #: The columns of the items of fan-outs, by their identity; values taken out of them.
        self._item_columns: dict[int, ItemColumns] = {}
        self._borrowed = 0
        #: Items that are slots of another fan-out, and how many there have to be.
        self._sizes: list[tuple[Slots, int, str]] = []
        #: Verdict rows of fan-outs that are not read yet, with what they are made of.
        self._verdicts: list[tuple[VerdictRows, FanOut, list[str]]] = []
        self._reader = Untagger(
            {
                "$missing": self._missing,
                "$slots": self._slots,
                "$slot": self._slot,
                "$verdicts": self._verdict_rows,
                "$called": self._called,
                "$decision": lambda parts: self._decision(Decision, parts),
                "$selection": lambda parts: self._decision(Selection, parts),
                "$rules": lambda number: self._rule_sets[_index(number, len(self._rule_sets))],
            }
        )
        try:
            self._read_tables(data, tuple(rules))
            self._read_tracks(data)
        except RecursionError:
            raise bad_log("is nested too deeply", "the log") from None

    def value(self, data: Any, where: str) -> Any:
        """Read a value that was written beside the log.

        Raises
        ------
        LoadError
            It is none.
        """
        found = self._guarded(where, lambda: self._reader.apart(data))
        self._settle_verdicts()
        return found

    def _read_tables(self, data: Mapping[str, Any], live: Sequence[RuleSet]) -> None:
        log = self.log
        functions = read_functions(data.get("functions"))
        self._rule_sets = read_rule_sets(data.get("rules"), functions, live)
        self._paths = PathReader(self._rule_sets)
        self._stages = [
            self._stage(entry, n) for n, entry in enumerate(self._list_of(data, "stages"))
        ]
        for number, entry in enumerate(self._list_of(data, "codes")):
            code = self._code(entry, f"codes[{number}]")
            log._numbers.setdefault(code, number)
            log.codes.append(code)
        for number, entry in enumerate(self._list_of(data, "shapes")):
            codes = self._track(entry, f"shapes[{number}]")
            log.shape_numbers.setdefault(codes, number)
            log.shapes.append(Shape(number, codes))

    def _read_tracks(self, data: Mapping[str, Any]) -> None:
        log, root = self.log, data.get("root")
        if not isinstance(root, dict):
            raise bad_log("is no mapping", "root")
        entries = self._list_of(data, "fan_outs")
        self._fans = [self._shell(entry, n) for n, entry in enumerate(entries)]
        log.root.codes.extend(self._track(root.get("codes"), "root.codes"))
        columns = root_columns(log, log.root.codes)
        read = self._columns(columns, root, "root", -1)
        # Only now is room made for them: every place has its value.
        log.root.values = [None] * sum(len(column.places) for column, _ in read)
        for column, found in read:
            column.put_into(log.root, found)
        for number, entry in enumerate(entries):
            self._fill(self._fans[number], entry, number)
        if self._placed != len(self._fans):
            raise bad_log("holds fan-outs that no track ran", "fan_outs")
        for items, size, where in self._sizes:
            if len(items) != size:
                raise bad_log(f"has {len(items)} items, not {size}", where)
        self._here = Counter()  # whatever is beside the log lies in no fan-out
        self._settle_verdicts()
        self._guarded("the log", self._reader.check)
        self._check_looks()

    # -- tables

    def _stage(self, entry: Any, number: int) -> StageRef:
        where = f"stages[{number}]"
        if not isinstance(entry, list) or not 3 <= len(entry) <= 4:
            raise bad_log("is no written stage", where)
        ref = StageRef(*(self._text(part, where) for part in entry))
        if ref.kind not in KINDS:
            raise bad_log(f"is of the kind {clip(ref.kind, 40)!r}, which there is not", where)
        return ref

    def _code(self, entry: Any, where: str) -> Code:
        if not isinstance(entry, list) or not 2 <= len(entry) <= 4:
            raise bad_log("is no written code", where)
        kind, stage, key, path = (*entry, None, None)[:4]
        if not isinstance(kind, str) or kind not in WIDTHS:
            raise bad_log(f"has the kind {clip(str(kind), 40)!r}, which there is not", where)
        if (path is not None) != (kind in _PATH_KINDS):
            raise bad_log(f"is a {kind} {'with' if path else 'without'} a decision", where)
        if kind in _STATE_KINDS and key is None:
            raise bad_log(f"is a {kind} without a key", where)
        found = None
        if path is not None:
            if not isinstance(path, list) or not 2 <= len(path) <= 3:
                raise bad_log("is no written decision", where)
            found = self.log.same_path(self._paths.read(path[0], path[1], len(path) == 3, where))
        ref = self._stages[_at(stage, len(self._stages), where)]
        return Code(kind, ref, None if key is None else self._text(key, where), found)

    def _track(self, entry: Any, where: str) -> tuple[int, ...]:
        known = len(self.log.codes)
        if not isinstance(entry, list):
            raise bad_log("is no list of codes", where)
        for number in entry:
            if type(number) is not int or not 0 <= number < known:
                raise bad_log("has a code that is not in the table", where)
        return tuple(entry)

    # -- values

    def _columns(
        self, columns: Iterator[Column], entry: Mapping[str, Any], where: str, inside: int
    ) -> list[tuple[Column, Sequence[Any]]]:
        """Give the values of a track, or of the branches of a fan-out, column by column."""
        written = self._list_of(entry, "values", where)
        read: list[tuple[Column, Sequence[Any]]] = []
        for column in columns:
            place = f"{where}.values[{len(read)}]"
            if len(read) == len(written):
                raise bad_log("is not there", place)
            read.append((column, self._column(column, written[len(read)], place, inside)))
        if len(read) < len(written):
            raise bad_log("has more values than its codes record", where)
        return read

    def _column(self, column: Column, data: Any, where: str, inside: int) -> Sequence[Any]:
        if column.code.kind == "fan_out":
            return self._place(data, len(column.places), where, inside)
        count = len(column.places)
        found: Sequence[Any]
        if inside >= 0 and isinstance(data, dict) and data.keys() == {"$item"}:
            found = self._of_items(self._fans[inside], data["$item"], column.places, where)
        else:
            found = self._guarded(where, lambda: self._reader.column(data, count))
        check_column(column, found, where)
        return found

    def _place(self, data: Any, count: int, where: str, inside: int) -> list[FanOut]:
        """Give the fan-outs of a column: those after all that were placed before."""
        if type(data) is not int or data != self._placed or data + count > len(self._fans):
            raise bad_log("is not the next fan-out", where)
        depth = 0 if inside < 0 else self._depths[inside] + 1
        if depth > MOST_NESTED:
            raise bad_log(f"lies inside more than {MOST_NESTED} others", where)
        self._placed += count
        self._depths += [depth] * count
        for number in range(data, self._placed):
            self._here[number] += 1
        return self._fans[data : self._placed]

    def _shell(self, entry: Any, number: int) -> FanOut:
        """Make a fan-out without items and values."""
        where = f"fan_outs[{number}]"
        if not isinstance(entry, dict):
            raise bad_log("is no written fan-out", where)
        cap: Any = entry.get("cap")
        execution: Any = entry.get("execution")
        into, subject = entry.get("into"), entry.get("subject")
        if not is_count(cap) or not (execution == -1 or is_count(execution)):
            raise bad_log("has a cap or an execution that is none", where)
        form = entry.get("form", "fan_out")
        if form not in FORMS:
            raise bad_log("has a form that is none", where)
        return FanOut(
            self.log,
            self._stages[_at(entry.get("stage"), len(self._stages), where)],
            (),
            cap=cap,
            into=None if into is None else self._text(into, where),
            subject=None if subject is None else self._text(subject, where),
            execution=execution,
            form=form,
        )

    def _fill(self, fan: FanOut, entry: Mapping[str, Any], number: int) -> None:
        """Read the items and the branches of a fan-out."""
        where = f"fan_outs[{number}]"
        if number >= self._placed:
            raise bad_log("is run by no track before it", where)
        self._here = Counter()
        items = self._guarded(f"{where}.items", lambda: self._reader.rows(entry.get("items")))
        if not isinstance(items, list | tuple | Slots | FrozenRows):
            raise bad_log("are no list", f"{where}.items")
        size = len(items)
        if isinstance(items, Slots):
            size = self._claimed(items, entry.get("size"), where)
        fan.items = items
        statuses = self._runs(entry.get("statuses"), size, range(len(STATUS_WORDS)), where)
        shapes = self._shapes_of(entry.get("shapes"), size, where)
        fan.refile(statuses, shapes)
        if entry.get("bases") is not None:
            fan.bases = array("q", self._runs(entry["bases"], size, range(2**48), where))
        if not fan.is_fan_out and not all(isinstance(item, str) for item in items):
            raise bad_log("are no ids of children", f"{where}.items")
        self._notes(fan, entry.get("notes", []), where)
        read = self._columns(fan_columns(self.log, fan), entry, where, number)
        fan.fill((column.at, column.places, found) for column, found in read)
        self._looks.append(self._here)

    def _shapes_of(self, entry: Any, size: int, where: str) -> list[int]:
        if not isinstance(entry, str):
            return self._runs(entry, size, range(-1, len(self.log.shapes)), where)
        if len(entry) != size:
            raise bad_log(f"does not say what became of its {size} items", where)
        from runbook_nb.record.brief import read_letters

        return read_letters(entry, len(self.log.shapes), where)

    def _of_items(self, fan: FanOut, key: Any, places: Sequence[int], where: str) -> Sequence[Any]:
        """Give what stands under a key of the items of branches."""
        from runbook_nb.record.brief import ItemColumns

        known = self._item_columns.get(id(fan))
        if known is None:
            known = self._item_columns[id(fan)] = ItemColumns(fan.items)
        column = known.at(key, places) if isinstance(key, str) else None
        if column is None:
            raise bad_log("refers to what not every item has", where)
        self._borrowed += len(places)
        if self._borrowed > MOST_PARTS:
            raise bad_log(f"takes more than {MOST_PARTS:,} values from items", where)
        return column

    def _claimed(self, items: Slots, size: Any, where: str) -> int:
        """Take the number of slots of a fan-out that may be read later; then they are counted."""
        if type(size) is not int or size < 0:
            raise bad_log("does not say how many items there are", where)
        self._sizes.append((items, size, where))
        if sum(claimed for _, claimed, _ in self._sizes) > MOST_SLOTS:
            raise bad_log(f"has more than {MOST_SLOTS:,} slots for items", where)
        return size

    def _notes(self, fan: FanOut, entry: Any, where: str) -> None:
        for note in entry if isinstance(entry, list) else [None]:
            if not isinstance(note, list) or len(note) != 2:
                raise bad_log("has notes that are none", where)
            fan.notes[_at(note[0], len(fan), where)] = self._text(note[1], where)

    def _runs(self, entry: Any, size: int, allowed: range, where: str) -> list[int]:
        found: list[int] = []
        numbers = entry if isinstance(entry, list) else [None]
        for value, times in zip(numbers[::2], numbers[1::2], strict=False):
            if type(value) is not int or type(times) is not int or value not in allowed:
                raise bad_log("has a status or shape that is none", where)
            if not 0 < times <= size - len(found):
                raise bad_log(f"tells of more than its {size} items", where)
            found += [value] * times
        if len(found) != size or len(numbers) % 2:
            raise bad_log(f"does not say what became of its {size} items", where)
        return found

    # -- values of the record's and the rules' own classes

    def _missing(self, content: Any) -> Any:
        if content is not True:
            raise ValueError("what is missing says true")
        return MISSING

    def _slots(self, number: Any) -> Slots:
        fan = self._fans[_index(number, len(self._fans))]
        self._here[number] += 1
        return Slots(fan)

    def _verdict_rows(self, parts: Any) -> VerdictRows:
        if not isinstance(parts, list) or len(parts) < 3:
            raise ValueError("verdict rows have a fan-out, a subject and a verdict")
        number, *names = parts
        fan = self._fans[_index(number, len(self._fans))]
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError("the names of verdict rows are distinct texts")
        self._here[number] += 1
        rows = VerdictRows.__new__(VerdictRows)
        self._verdicts.append((rows, fan, names))
        return rows

    def _settle_verdicts(self) -> None:
        """Make verdict rows, now that their branches are known."""
        for rows, fan, (subject, verdict, *others) in self._verdicts:
            self._borrowed += len(fan)
            if self._borrowed > MOST_PARTS:
                raise bad_log(f"takes more than {MOST_PARTS:,} values from items", "verdict rows")
            VerdictRows.__init__(rows, fan, subject, others, verdict)
        self._verdicts.clear()

    def _slot(self, parts: Any) -> Slot:
        index, item, status, value, *texts = _listed(parts, 7)
        if type(index) is not int or status not in STATUS_WORDS:
            raise ValueError("a slot has a number and a status")
        if any(not isinstance(text, str | None) for text in texts):
            raise ValueError("the words of a slot are texts")
        return Slot(index, item, status, value, *texts)

    def _called(self, parts: Any) -> FunctionRecord:
        if not isinstance(parts, list) or len(parts) < 3 or len(parts) % 2 == 0:
            raise ValueError("the record of a function has a result and what was read")
        returned, error, error_type, *read = parts
        keys = read[::2]
        if not all(isinstance(one, str | None) for one in (error, error_type)) or not all(
            isinstance(key, str) for key in keys
        ):
            raise ValueError("the keys and the error of a function are texts")
        return FunctionRecord(
            tuple(zip(keys, read[1::2], strict=True)), returned, error, error_type
        )

    def _decision(self, cls: Any, parts: Any) -> Decision | Selection:
        if not isinstance(parts, list) or len(parts) < 3:
            raise ValueError("a decision has rules, outcomes and values")
        number, outcomes, selecting, *values = parts
        path = self._paths.read(number, outcomes, selecting, "a decision")
        if len(values) != len(path.codes):
            raise ValueError("a decision has a value for each outcome")
        check_records(path, values, "a decision")
        found: Decision | Selection = cls(path, tuple(values))
        return found

    # -- asking

    def _text(self, data: Any, where: str) -> str:
        found = self._guarded(where, lambda: self._reader.bare(data))
        if not isinstance(found, str):
            raise bad_log("has something that should be a text", where)
        return found

    def _list_of(self, data: Mapping[str, Any], name: str, where: str = "") -> list[Any]:
        found = data.get(name)
        if not isinstance(found, list):
            raise bad_log("is no list", f"{where}.{name}" if where else name)
        return found

    def _read(self, where: str, data: Any) -> Any:
        return self._guarded(where, lambda: self._reader.read(data))

    def _guarded(self, where: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except TagError as error:
            raise LoadError(
                f"the log is damaged: {where}: {error.args[0]}",
                where=where,
                fix=error.fix,
                code="bad_log",
            ) from error
        except RecursionError:
            raise bad_log("is nested too deeply", where) from None
        except ValueError as error:
            if isinstance(error, LoadError):
                raise
            raise bad_log(f"holds what is none: {error}", where) from error

    def _check_looks(self) -> None:
        """Refuse slots that would show themselves, and those that would show too much.

        Slots are made of what their fan-out holds, which may be slots again. In a run they lead
        from later to earlier fan-outs, and to inner ones.
        """
        waiting = [0] * len(self._looks)
        for look in self._looks:
            for number in look:
                waiting[number] += 1
        ready = [number for number, count in enumerate(waiting) if not count]
        order: list[int] = []
        while ready:
            number = ready.pop()
            order.append(number)
            for inner in self._looks[number]:
                waiting[inner] -= 1
                if not waiting[inner]:
                    ready.append(inner)
        if len(order) < len(self._looks):
            raise bad_log("holds slots that would hold themselves", "fan_outs")
        sizes = [0] * len(self._looks)
        for number in reversed(order):
            own = self._fans[number].value_count + len(self._fans[number].items)
            sizes[number] = own + sum(
                times * sizes[inner] for inner, times in self._looks[number].items()
            )
            if sizes[number] > MOST_PARTS:
                raise bad_log(f"shows more than {MOST_PARTS:,} values", f"fan_outs[{number}]")


def _listed(parts: Any, size: int) -> list[Any]:
    if not isinstance(parts, list) or len(parts) != size:
        raise ValueError(f"it has {size} parts")
    return parts


def _index(value: Any, size: int) -> int:
    if type(value) is not int or not 0 <= value < size:
        raise ValueError("it refers to what is not there")
    return value


def _at(value: Any, size: int, where: str) -> int:
    try:
        return _index(value, size)
    except ValueError as error:
        raise bad_log("refers to what is not there", where) from error
