"""Taking rows and frames as `Columns`: recognised without importing what they come from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from runbook_nb._frozen import ATOMS, FrozenDict, classes_of
from runbook_nb._rows import columns_of
from runbook_nb._text import MISSING, visible
from runbook_nb.errors import RuleError
from runbook_nb.rules.columns import Columns, smallest
from runbook_nb.rules.facts import snapshot
from runbook_nb.rules.held import (
    ArrayColumn,
    ArrowColumn,
    Held,
    PlainColumn,
)

#: More layouts than this, and the rows are kept as they are: they share too little.
MAX_LAYOUTS: Final = 256

_KEPT: Final = ATOMS | {type(MISSING)}


def take(source: Any) -> Columns:
    """Take what `as_columns` takes."""
    if isinstance(source, Columns):
        return source
    if source.__class__ is list:
        return _take_rows(source)
    module = type(source).__module__.partition(".")[0]
    if (module == "pandas" and type(source).__name__ == "DataFrame") or _is_frame(source):
        from runbook_nb.rules.dataframes import take_pandas

        return take_pandas(source)
    if module == "pyarrow" and hasattr(source, "schema") and hasattr(source, "column"):
        return _take_arrow(source)
    if module == "polars" and hasattr(source, "get_columns"):
        return _take_polars(source)
    if isinstance(source, Mapping):
        return _take_mapping(source)
    if isinstance(source, list | tuple):
        return _take_rows(source)
    raise RuleError(
        f"rows cannot be read from {type(source).__name__!r}",
        where="frame",
        fix="pass list(rows), which can be counted and looked at again"
        if isinstance(source, Iterator)
        else "pass a DataFrame, a mapping of columns, a list of mappings, or an Arrow table",
        code="bad_frame",
    )


def _is_frame(source: Any) -> bool:
    """Say whether it is of a class made from pandas' frame (that of geopandas, for one)."""
    pandas = sys.modules.get("pandas")
    frame = getattr(pandas, "DataFrame", None)
    return frame is not None and isinstance(source, frame)


def names_of(labels: Sequence[Any]) -> tuple[str, ...]:
    """Name columns by text, whatever named them."""
    names = tuple(map(str, labels))
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise RuleError(
            f"the frame has two columns written {visible(twice)!r}, of which only one would be "
            "read",
            where="frame",
            fix="rename or drop one of them",
            code="bad_frame",
        )
    return names


# --- frames ------------------------------------------------------------------------------------


def _take_arrow(table: Any) -> Columns:
    names = names_of(table.schema.names)
    held = {name: arrow_column(table.column(place)) for place, name in enumerate(names)}
    return Columns(held, table.num_rows, names=names)


def arrow_column(data: Any) -> Held:
    """Hold an Arrow array."""
    import pyarrow as pa

    if pa.types.is_string_view(data.type):  # of which Arrow's own functions know little
        data = data.cast(pa.large_string())
    return ArrowColumn(data)


def _take_polars(frame: Any) -> Columns:
    names = names_of(frame.columns)
    held = {
        name: PlainColumn.of_cells(each.to_list())
        for name, each in zip(names, frame.get_columns(), strict=True)
    }
    return Columns(held, frame.height, names=names)


def _take_mapping(source: Mapping[Any, Any]) -> Columns:
    names = names_of(list(source))
    held = {}
    for name, column in zip(names, source.values(), strict=True):
        held[name] = _given_column(name, column)
    lengths = {name: len(column) for name, column in held.items()}
    if len(set(lengths.values())) > 1:
        first, length = next(iter(lengths.items()))
        other = next(name for name in names if lengths[name] != length)
        raise RuleError(
            f"the columns are not equally long: {visible(first)!r} has {length} values, "
            f"{visible(other)!r} {lengths[other]}",
            where="frame",
            fix="give every column one value per row, None where there is none",
            code="bad_frame",
        )
    return Columns(held, next(iter(lengths.values()), 0), names=names)


def _given_column(name: str, column: Any) -> Held:
    module = type(column).__module__.partition(".")[0]
    if module == "numpy" and getattr(column, "ndim", 1) == 1 and hasattr(column, "dtype"):
        import numpy as np

        if isinstance(column, np.ma.MaskedArray):
            return PlainColumn.of_cells([None if v is np.ma.masked else v for v in column.tolist()])
        if column.dtype.kind in "biufmM" and column.dtype.itemsize <= 8:
            return ArrayColumn(np.array(column))
        return PlainColumn.of_cells(list(column) if column.dtype.kind == "V" else column.tolist())
    if module == "pandas" and getattr(column, "ndim", 0) == 1:
        from runbook_nb.rules.dataframes import column_of

        return column_of(column)
    if module == "pyarrow" and hasattr(column, "to_pylist") and hasattr(column, "type"):
        return arrow_column(column)
    if module == "polars" and hasattr(column, "to_list"):
        return PlainColumn.of_cells(column.to_list())
    if isinstance(column, Held):
        return column
    if isinstance(column, Sequence) and not isinstance(column, str | bytes | bytearray):
        return PlainColumn.of_cells(list(column))
    raise RuleError(
        f"column {visible(name)!r} is {type(column).__name__!r}, not one value per row",
        where="frame",
        fix="give each column a list or an array; for one row write [row]",
        code="bad_frame",
    )


# --- rows --------------------------------------------------------------------------------------


def _take_rows(rows: Sequence[Any]) -> Columns:
    if not rows:
        return Columns({}, 0)
    first = rows[0]
    names = tuple(first) if isinstance(first, Mapping) else ()
    if names and set(map(type, names)) == {str}:
        try:
            alike = columns_of(rows, names)
        except (TypeError, LookupError):  # a list of the names, say, that has nothing under them
            alike = None
        if alike is not None:
            held: dict[str, Held] = {
                name: _cells(cells) for name, cells in zip(names, alike, strict=True)
            }
            return Columns(held, len(rows), names=names)
    if not set(map(type, rows)) <= {dict, FrozenDict}:
        rows = _mappings(rows)
    return _mixed(rows)


def _mappings(rows: Sequence[Any]) -> list[Any]:
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise RuleError(
                f"row {place} is {type(row).__name__}, not a mapping of columns to values",
                where=f"rows[{place}]",
                fix="pass a list with one mapping per subject",
                code="bad_frame",
            )
    return [row if type(row) is dict else dict(row) for row in rows]


def _cells(cells: list[Any]) -> PlainColumn:
    """Hold the values of rows: they stay what they are, what could change as a snapshot."""
    classes = classes_of(cells)
    if classes <= _KEPT:
        return PlainColumn(cells, classes)
    return PlainColumn([v if type(v) in _KEPT else snapshot(v) for v in cells])


def _mixed(rows: Sequence[Any]) -> Columns:
    """Take rows of several layouts: each layout is told once."""
    known: dict[tuple[Any, ...], int] = {}
    raw_numbers = [known.setdefault(layout, len(known)) for layout in map(tuple, rows)]
    layouts = tuple(_named(layout, raw_numbers.index(n)) for n, layout in enumerate(known))
    distinct = {layout: n for n, layout in enumerate(dict.fromkeys(layouts))}
    numbers = raw_numbers
    if len(distinct) < len(layouts):  # 1 and "1" name the same column
        numbers = [distinct[layouts[n]] for n in raw_numbers]
    names = tuple(dict.fromkeys(name for layout in distinct for name in layout))
    kept = smallest(numbers, len(distinct) - 1)
    cells = sum(map(len, rows))
    if len(distinct) > MAX_LAYOUTS or len(names) * len(rows) > 4 * cells + 64 * len(rows):
        frozen = [
            FrozenDict(zip(layouts[n], map(_kept, row.values()), strict=True))
            for n, row in zip(raw_numbers, rows, strict=True)
        ]
        return Columns({}, len(rows), tuple(distinct), kept, rows=frozen, names=names)
    columns: dict[str, list[Any]] = {name: [MISSING] * len(rows) for name in names}
    for place, (n, row) in enumerate(zip(raw_numbers, rows, strict=True)):
        for name, value in zip(layouts[n], row.values(), strict=True):
            columns[name][place] = value
    held = {name: _cells(values) for name, values in columns.items()}
    single = len(distinct) == 1
    return Columns(held, len(rows), tuple(distinct), None if single else kept, names=names)


def _kept(value: Any) -> Any:
    return value if type(value) in _KEPT else snapshot(value)


def _named(layout: tuple[Any, ...], place: int) -> tuple[str, ...]:
    names = tuple(map(str, layout))
    if len(set(names)) < len(names):
        raise RuleError(
            f"row {place} has two columns that are written alike, of which only one would be read",
            where=f"rows[{place}]",
            fix="rename or drop one of them",
            code="bad_frame",
        )
    return names


__all__ = ["arrow_column", "names_of", "take"]
