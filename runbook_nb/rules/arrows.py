"""Putting a condition to Arrow data: as numbers where it holds numbers, by Arrow where text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runbook_nb.rules.held import ArrowColumn, Vector, canonical, zone_of
from runbook_nb.rules.kinds import MISMATCH, NO, NULL, TEXT, YES, kind_of
from runbook_nb.rules.operators import PRESENCE

#: Days since 1970-01-01 that a date can be.
_DAYS: Final = (-719162, 2932896)

_COMPARED: Final = {
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "gte": "greater_equal",
    "lt": "less",
    "lte": "less_equal",
}


def vector_of(data: Any) -> Vector | None:
    """Give Arrow numbers, truth values and times as numpy has them; None for anything else."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, zone, days = data.type, None, False
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        letter = "M" if pa.types.is_timestamp(kind) else "m"
        view = f"{letter}8[{kind.unit}]"
        zone = zone_of(kind.tz) if letter == "M" and kind.tz is not None else None
        numbers = data.cast(pa.int64())
    elif pa.types.is_date32(kind):
        view, days, numbers = "i4", True, data.cast(pa.int32())
        extent = pc.min_max(numbers).as_py()
        if extent["min"] is not None and not (
            _DAYS[0] <= extent["min"] and extent["max"] <= _DAYS[1]
        ):
            return None
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        view, numbers = "", data
    else:
        return None
    nulls = as_truths(data.is_null()) if data.null_count else None
    if nulls is not None:
        numbers = numbers.fill_null(False if pa.types.is_boolean(kind) else 0)
    found = as_array(numbers)
    if view:
        found = found.view(view)
    if found.dtype.kind == "f":
        nan = np.isnan(found)
        nulls = nan if nulls is None else nulls | nan
    return Vector(found, nulls if nulls is not None and nulls.any() else None, zone, days)


def as_array(data: Any) -> Any:
    """Give Arrow data without nulls as a numpy array, copying only what has to be."""
    combine = getattr(data, "combine_chunks", None)
    if combine is not None:
        data = data.chunk(0) if data.num_chunks == 1 else combine()
    return data.to_numpy(zero_copy_only=False)


def as_truths(data: Any) -> Any:
    """Give Arrow truth values without nulls as a numpy array."""
    return as_array(data)


def codes_by_arrow(op: str, limit: Any, data: Any) -> bytes | None:
    r"""Give the outcome codes of Arrow text; None when it is none, or must be looked at singly.

    Arrow compares text by its bytes, which order and hold each other as its characters do.

    Examples
    --------
    >>> import pyarrow as pa
    >>> codes_by_arrow("starts_with", "a", pa.chunked_array([["ab", None, "b"]]))
    b'\x01\x03\x00'
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(data.type) or pa.types.is_large_string(data.type)):
        return None
    if op in PRESENCE:
        found = data.is_valid() if (op == "exists") is limit else data.is_null()
        return _codes(found, None)
    nulls = as_truths(data.is_null()) if data.null_count else None
    if op == "matches":
        return None
    if op in ("in", "not_in"):
        mine = [element for element in limit if kind_of(element) == TEXT]
        if not mine:
            same = (NO if op == "in" else YES) if not limit else MISMATCH
            return _one(same, len(data), nulls)
        wanted = _spelt(mine)
        if len(wanted) < len(mine):
            return None
        found = pc.is_in(data, value_set=pa.array(wanted, data.type))
        return _codes(found if op == "in" else pc.invert(found), nulls)
    if op == "between":
        if kind_of(limit[0]) != TEXT or len(_spelt(limit)) < 2:
            return None if kind_of(limit[0]) == TEXT else _one(MISMATCH, len(data), nulls)
        low, high = (pa.scalar(str(each), data.type) for each in limit)
        found = pc.and_(pc.greater_equal(data, low), pc.less_equal(data, high))
        return _codes(found, nulls)
    if kind_of(limit) != TEXT:
        return _one(MISMATCH, len(data), nulls)
    if not _spelt([limit]):
        return None
    if op == "starts_with":
        return _codes(pc.starts_with(data, pattern=limit), nulls)
    if op == "contains":
        return _codes(pc.match_substring(data, pattern=limit), nulls)
    return _codes(pc.call_function(_COMPARED[op], [data, pa.scalar(limit, data.type)]), nulls)


def _spelt(texts: Sequence[Any]) -> list[str]:
    """Give the texts that UTF-8 can spell: a lone surrogate cannot be."""
    found = []
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            continue
        found.append(str(text))
    return found


def _codes(found: Any, nulls: Any) -> bytes:
    codes = as_truths(found.fill_null(False) if found.null_count else found).view("u1")
    if nulls is not None:
        codes = codes | (nulls.view("u1") * codes.dtype.type(NULL))
    spelt: bytes = codes.tobytes()
    return spelt


def _one(code: int, size: int, nulls: Any) -> bytes:
    import numpy as np

    codes = np.full(size, code, "u1")
    if nulls is not None:
        codes[nulls] = NULL
    spelt: bytes = codes.tobytes()
    return spelt


def words_of(data: Any) -> tuple[Any, list[Any]] | None:
    """Give which of few values each place holds, and those values; None for nested data."""
    import pyarrow as pa

    kind = data.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return None
    if not pa.types.is_dictionary(kind):
        try:
            data = data.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return None
    if isinstance(data, pa.ChunkedArray):
        data = data.unify_dictionaries().combine_chunks()
        if isinstance(data, pa.ChunkedArray):
            data = data.chunk(0) if data.num_chunks else pa.DictionaryArray.from_arrays([], [])
    places = as_array(data.indices.cast(pa.int64()).fill_null(-1))
    return places, list(map(canonical, ArrowColumn(data.dictionary).whole()))


def codes_by_word(places: Any, words: Sequence[Any], test: Callable[[Any], int]) -> bytes:
    r"""Give outcome codes where few values stand in many places: each value is tested once.

    Examples
    --------
    >>> import numpy as np
    >>> codes_by_word(np.array([0, 1, 0], "i1"), ["a", "b"], {"a": 0, "b": 1, None: 3}.get)
    b'\x00\x01\x00'
    """
    import numpy as np

    codes = np.array([*map(test, words), test(None)], "u1")  # -1, the last, is null
    found: bytes
    if places.dtype.itemsize == 1:
        table = np.zeros(256, "u1")
        table[: len(codes) - 1] = codes[:-1]
        table[255] = codes[-1]
        found = places.tobytes().translate(table.tobytes())
    else:
        found = codes[places].tobytes()
    return found
