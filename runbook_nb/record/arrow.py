"""A walk's document as an Arrow stream: its columns typed, the rest as JSON in the schema.

Record layer. The stream holds one batch of one row, in which every field is the list of one
column: columns differ in length, and any reader of Arrow can take them apart. pyarrow is imported
when it is asked for, and nothing it reads is trusted: what is packed, nested or not ours is
refused before it is looked at.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, Final

from runbook_nb._deep import read_json
from runbook_nb._text import visible
from runbook_nb.errors import LoadError, RunbookError

#: What such a stream begins with.
ARROW_SIGN: Final = b"\xff\xff\xff\xff"

#: Under which name the document stands in the metadata of the schema.
_DOCUMENT: Final = b"runbook_nb.walk"

#: Fewer values stay where they are.
_FEWEST: Final = 16

_FIX: Final = "give what write_walk wrote, unchanged"


def arrow() -> Any:
    """Give pyarrow.

    Raises
    ------
    RunbookError
        It is not installed, with the line that installs it.
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise RunbookError(
            "an Arrow file needs pyarrow, which is not installed",
            code="not_installed",
            where="form",
            fix="pip install 'runbook-nb[arrow]', or write form='columns'",
        ) from None
    return pyarrow


def _places(document: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield where columns may stand: what holds each, under which key, and its name."""
    log = document.get("log") if isinstance(document, dict) else None
    fans = log.get("fan_outs") if isinstance(log, dict) else None
    for number, fan in enumerate(fans if isinstance(fans, list) else ()):
        if not isinstance(fan, dict):
            continue
        yield fan, "items", f"{number}.items"
        items = fan.get("items")
        table = items.get("$table") if isinstance(items, dict) else None
        if isinstance(table, list) and table and isinstance(table[0], list):
            for place in range(1, len(table)):
                name = table[0][place - 1] if place <= len(table[0]) else place
                yield table, place, f"{number}.items.{name}"
        values = fan.get("values")
        for place in range(len(values) if isinstance(values, list) else 0):
            yield values, place, f"{number}.values.{place}"


def write_arrow(document: dict[str, Any]) -> bytes:
    """Write a document as an Arrow stream.

    The same document gives the same bytes. Its columns are taken out of it on the way.

    Raises
    ------
    RunbookError
        pyarrow is not installed.
    """
    pa = arrow()
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    fields, arrays = [], []
    for holder, key, name in _places(document):
        column = holder[key]
        kinds = set(map(type, column)) if isinstance(column, list) else set()
        kind = kinds - {type(None)}
        if len(kind) != 1 or len(column) < _FEWEST or not kind <= types.keys():
            continue
        made = types[kind.pop()]
        values = pa.array(column, made)
        if isinstance(values, pa.ChunkedArray):  # texts of more than 2 GiB
            made = pa.large_string()
            values = pa.array(column, made)
        ends = pa.array([0, len(column)], pa.int64())
        arrays.append(pa.LargeListArray.from_arrays(ends, values))
        fields.append(pa.field(name, pa.large_list(made)))
        holder[key] = {"$arrow": len(arrays) - 1}
    told = json.dumps(document, allow_nan=False, separators=(",", ":"))
    schema = pa.schema(fields, metadata={_DOCUMENT: told.encode("ascii")})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if arrays:
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def read_arrow(data: bytes) -> Any:
    """Read the document of an Arrow stream, its columns back in their places.

    What it holds is not larger than the stream itself: packed buffers are refused.

    Raises
    ------
    LoadError
        It is damaged, or of another make.
    RunbookError
        pyarrow is not installed.
    """
    pa = arrow()
    try:
        schema, batch = _read(pa, data)
        told = (schema.metadata or {}).get(_DOCUMENT)
        if told is None:
            raise _bad("it holds no walk")
        document = read_json(told.decode("utf-8"))
        columns = [] if batch is None else [_values(pa, column) for column in batch.columns]
    except LoadError:
        raise
    except (pa.ArrowException, ValueError, TypeError, OSError, struct.error, RecursionError) as e:
        raise _bad(visible(str(e))[:200]) from None
    taken: set[int] = set()
    for holder, key, _ in _places(document):
        mark = holder.get(key) if isinstance(holder, dict) else holder[key]
        if not isinstance(mark, dict) or mark.keys() != {"$arrow"}:
            continue
        number = mark["$arrow"]
        if type(number) is not int or not 0 <= number < len(columns) or number in taken:
            raise _bad("a column is not there, or asked for twice")
        taken.add(number)
        holder[key] = columns[number]
    return document


def _read(pa: Any, data: bytes) -> tuple[Any, Any]:
    """Read schema and batch: one of each at most, with nothing packed in it."""
    source = pa.py_buffer(data)
    messages = list(pa.ipc.MessageReader.open_stream(source))
    kinds = [message.type for message in messages]
    if kinds not in (["schema"], ["schema", "record batch"]):
        raise _bad("it is more than a schema and one batch")
    schema = pa.ipc.read_schema(messages[0])
    allowed = {pa.large_list(t) for t in (pa.string(), pa.large_string(), pa.int64(), pa.float64())}
    allowed.add(pa.large_list(pa.bool_()))
    if any(field.type not in allowed for field in schema):
        raise _bad("a column is of a type no walk has")
    if len(messages) == 1:
        return schema, None
    if _is_packed(messages[1].metadata.to_pybytes()):
        raise _bad("its buffers are packed")
    batch = pa.ipc.read_record_batch(messages[1], schema)
    batch.validate(full=True)
    if batch.num_rows != 1:
        raise _bad("its batch is not of one row")
    return schema, batch


def _is_packed(message: bytes) -> bool:
    """Say whether the buffers of a batch are compressed, from the message that describes it."""
    root = struct.unpack_from("<I", message, 0)[0]
    header = _field(message, root, 2)
    if not header:
        raise _bad("its batch is described by nothing")
    batch = header + struct.unpack_from("<I", message, header)[0]
    return bool(_field(message, batch, 3))


def _field(message: bytes, table: int, number: int) -> int:
    """Give where a field of a flat buffer's table stands; 0 where it is left out."""
    index = table - struct.unpack_from("<i", message, table)[0]
    size = struct.unpack_from("<H", message, index)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", message, index + at)[0] if at < size else 0
    return table + offset if offset else 0


def _values(pa: Any, column: Any) -> list[Any]:
    if column.null_count:
        raise _bad("a column is missing")
    values = column.flatten()
    numeric = pa.types.is_int64(values.type) or pa.types.is_float64(values.type)
    found: list[Any] = (
        values.to_numpy().tolist() if numeric and not values.null_count else values.to_pylist()
    )
    return found


def _bad(what: str) -> LoadError:
    return LoadError(
        f"no walk: the Arrow stream cannot be read: {what}",
        code="not_a_walk",
        where="the walk",
        fix=_FIX,
    )


__all__ = ["ARROW_SIGN", "arrow", "read_arrow", "write_arrow"]
