"""Reading tagged JSON back: nothing that is read is trusted.

Base layer. Whatever is wrong raises `TagError`; nothing is nested or multiplied without bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

from runbook_nb._frozen import ATOMS, FrozenDict, FrozenList
from runbook_nb._rows import FrozenRows
from runbook_nb._tags import (
    LONG,
    MOST_LEVELS,
    MOST_PARTS,
    SCALAR_TAGS,
    TEXT_TAGS,
    Sizes,
    TagError,
    is_nan,
    read_tag,
    unknown_tag,
)
from runbook_nb._text import clip

#: Makes a value of another layer out of the content of its tag, whose parts were read.
ForeignReader = Callable[[Any], Any]

#: What JSON says as it is.
_PLAIN: Final[frozenset[Any]] = frozenset({type(None), bool, int, float, str})


class _Same:
    """A column in which one value stands everywhere."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Untagger:
    """Reads the values of one document, in the order in which they were written.

    Nothing that is read is trusted: whatever is wrong raises `TagError`, and nothing is nested or
    multiplied without bound. What comes back is frozen.

    Parameters
    ----------
    foreign : mapping of str to callable, optional
        Tags of other layers -> what makes the value out of the content. The content is a list of
        values that were read, or a plain scalar. The callable raises `TagError` or `ValueError`.
    refer : bool
        Whether the document may refer to what stands in it before.

    Examples
    --------
    >>> Untagger().read({"$tuple": [{"$date": "2026-01-02"}, {"$$date": 1}]})
    (datetime.date(2026, 1, 2), {'$date': 1})
    """

    def __init__(
        self, foreign: Mapping[str, ForeignReader] | None = None, *, refer: bool = True
    ) -> None:
        self._refer = refer
        self._foreign = dict(foreign or {})
        self._bare = Untagger(foreign, refer=False) if refer else self
        self._kept: list[Any] = []
        #: Tables that were read as columns, with the numbers of their first rows.
        self._tables: list[tuple[int, FrozenRows]] = []
        self._sizes = Sizes(self._parts)
        #: The parts of the values of other layers, by the identity of the value.
        self._contents: dict[int, list[Any]] = {}
        self._referred = False
        #: How many places were filled with a value that is written once for all of them.
        self._places = 0
        self._tags: dict[str, Callable[[Any, int], Any]] = {
            "$tuple": self._tuple,
            "$set": self._set,
            "$map": self._pairs,
            "$table": self._table,
        }
        if refer:
            self._tags |= {"$ref": self._ref, "$deep": self._deep}

    def read(self, data: Any) -> Any:
        """Read one value."""
        return self._read(data, 0)

    def apart(self, data: Any) -> Any:
        """Read what `Tagger.apart` wrote, and check it."""
        mark = len(self._kept)
        self._referred = False
        try:
            value = self._read(data, 0)
            self.check()
        finally:
            self._sizes.forget(self._kept[mark:], mark)
            for one in self._kept[mark:]:
                self._contents.pop(id(one), None)
            del self._kept[mark:]
        return value

    def rows(self, data: Any) -> Any:
        """Read one value; a table of atoms is read as rows that are kept as columns."""
        if data.__class__ is not dict or data.keys() != {"$table"}:
            return self.read(data)
        keys, columns = self._table_columns(data["$table"], 1)
        rows: Any = FrozenRows(len(columns[0]), [(keys, columns)])
        if not all(ATOMS.issuperset(map(type, column)) for column in columns):
            rows = FrozenList(rows.each())
            self._kept.extend(rows)
        else:
            self._tables.append((len(self._kept), rows))
            self._kept.extend(repeat(None, len(rows)))
        return self._keep(rows)

    def bare(self, data: Any) -> Any:
        """Read what `Tagger.bare` wrote."""
        return self._bare._read(data, 0)

    def column(self, data: Any, count: int) -> list[Any]:
        """Read what `Tagger.column` wrote of so many values."""
        found = self._column(data, 0)
        values = self._spread(found, count) if isinstance(found, _Same) else found
        if len(values) != count:
            raise TagError(f"it has {len(values)} values, not {count}", "give one for each place")
        return values

    def check(self) -> None:
        """Refuse a document one value of which is too large with all it refers to spelt out."""
        if self._referred and self._sizes.too_large(self._kept):
            raise TagError(
                f"a value has more than {MOST_PARTS:,} parts when it is spelt out",
                "do not refer to one part that often",
            )

    def _parts(self, value: Any) -> Iterable[Any]:
        if isinstance(value, Mapping):
            return value.values()
        if isinstance(value, list | tuple):
            return value
        return self._contents.get(id(value), ())

    def _read(self, data: Any, depth: int) -> Any:
        cls = data.__class__
        if data is None or cls is bool or cls is int or cls is float:
            return data
        if cls is str:
            return self._long(data)
        if depth > MOST_LEVELS:
            raise TagError("it is nested too deeply", "what lies deeper is written beforehand")
        if cls is list:
            return self._keep(FrozenList(self._all(data, depth + 1)))
        if cls is not dict:
            raise TagError(f"a {cls.__name__} is no JSON", "give what a JSON reader gave")
        if len(data) == 1:
            ((key, content),) = data.items()
            if key.__class__ is str and key.startswith("$"):
                if key.startswith("$$"):
                    data = {key[1:]: content}
                else:
                    return self._tag(key, content, depth + 1)
        if any(key.__class__ is not str for key in data):
            raise TagError("a key of a mapping is not text", "write such a mapping as $map")
        return self._keep(
            FrozenDict({key: self._read(item, depth + 1) for key, item in data.items()})
        )

    def _long(self, value: Any) -> Any:
        if self._refer and len(value) >= LONG:
            self._kept.append(value)
        return value

    def _keep(self, value: Any) -> Any:
        if self._refer and value:
            self._kept.append(value)
        return value

    def _tag(self, tag: str, content: Any, depth: int) -> Any:
        if tag in SCALAR_TAGS:
            value = read_tag(tag, content, SCALAR_TAGS)
            if self._refer and is_nan(tag, content):
                self._kept.append(value)
            return value
        if tag in TEXT_TAGS:
            return self._long(read_tag(tag, content, TEXT_TAGS))
        if tag in self._tags:
            return self._tags[tag](content, depth)
        if tag in self._foreign:
            return self._other_layer(tag, content, depth)
        raise unknown_tag(tag, (*SCALAR_TAGS, *TEXT_TAGS, *self._tags, *self._foreign))

    def _other_layer(self, tag: str, content: Any, depth: int) -> Any:
        parts = self._each(content, tag, depth) if content.__class__ is list else content
        if content.__class__ is dict:
            raise TagError(f"the content of {tag!r} is a mapping", "give a list")
        value = self._foreign[tag](parts)
        if content.__class__ is list and self._refer:
            self._kept.append(value)
            self._contents[id(value)] = parts
        return value

    def _each(self, content: Any, tag: str, depth: int) -> list[Any]:
        return self._all(_listed(content, tag), depth)

    def _all(self, data: list[Any], depth: int) -> list[Any]:
        """Read values; those that are all plain are what they are."""
        kinds = set(map(type, data))
        if kinds <= _PLAIN and (str not in kinds or not self._refer or not _has_long(data, kinds)):
            return data
        return [self._read(item, depth) for item in data]

    def _tuple(self, content: Any, depth: int) -> Any:
        return self._keep(tuple(self._each(content, "$tuple", depth)))

    def _set(self, content: Any, depth: int) -> Any:
        items = [self._bare._read(item, depth) for item in _listed(content, "$set")]
        found = _hashed(lambda: frozenset(items), "a member of a set")
        if len(found) != len(items):
            raise TagError("a set has a member twice", "write each member once")
        return self._keep(found)

    def _pairs(self, content: Any, depth: int) -> Any:
        flat = _listed(content, "$map")
        if len(flat) % 2:
            raise TagError("a mapping has a key without a value", "write keys and values in turn")
        pairs = [
            (
                key if key.__class__ is str else self._bare._read(key, depth),
                self._read(item, depth),
            )
            for key, item in zip(flat[::2], flat[1::2], strict=True)
        ]
        found = _hashed(lambda: FrozenDict(pairs), "a key of a mapping")
        if len(found) != len(pairs):
            raise TagError("a mapping has a key twice", "write each key once")
        return self._keep(found)

    def _table(self, content: Any, depth: int) -> Any:
        return self._keep(FrozenList(self._table_rows(content, depth)))

    def _column(self, data: Any, depth: int) -> list[Any] | _Same:
        if data.__class__ is dict and len(data) == 1:
            ((tag, content),) = data.items()
            if tag == "$table":
                return self._table_rows(content, depth + 1)
            if tag == "$same":
                return _Same(self._read(content, depth + 1))
            if tag == "$refs" and self._refer:
                return self._refs(content)
        return self._all(_listed(data, "a column"), depth + 1)

    def _spread(self, same: _Same, count: int) -> list[Any]:
        """Put one value in so many places: few words may make many of them, so they are counted."""
        self._places += count
        if self._places > MOST_PARTS:
            raise TagError(
                f"one value each stands in more than {MOST_PARTS:,} places", "write fewer of them"
            )
        self._referred = True
        return [same.value] * count

    def _refs(self, content: Any) -> list[Any]:
        number, found = 0, []
        for step in _listed(content, "$refs"):
            number += step if step.__class__ is int else -1 - number
            found.append(self._ref(number, 0))
        return found

    def _table_rows(self, content: Any, depth: int) -> list[Any]:
        keys, columns = self._table_columns(content, depth)
        rows = list(map(FrozenDict, map(zip, repeat(keys), zip(*columns, strict=True))))
        if self._refer:
            self._kept.extend(rows)
        return rows

    def _table_columns(self, content: Any, depth: int) -> tuple[tuple[str, ...], list[list[Any]]]:
        if depth > MOST_LEVELS:
            raise TagError("it is nested too deeply", "what lies deeper is written beforehand")
        parts = _listed(content, "$table")
        keys = _listed(parts[0], "the keys of $table") if parts else []
        if not keys or len(set(map(str, keys))) < len(keys) or len(parts) != len(keys) + 1:
            raise TagError("a table needs distinct keys and a column for each", "give both")
        if any(key.__class__ is not str for key in keys):
            raise TagError("a key of a table is not text", "write such rows one by one")
        read = [self._column(column, depth + 1) for column in parts[1:]]
        sizes = {len(column) for column in read if not isinstance(column, _Same)}
        if len(sizes) != 1:
            raise TagError("the columns of a table differ in length", "give one value per row")
        (size,) = sizes
        columns = [self._spread(one, size) if isinstance(one, _Same) else one for one in read]
        return tuple(keys), columns

    def _ref(self, content: Any, depth: int) -> Any:
        if content.__class__ is not int or not 0 <= content < len(self._kept):
            raise TagError(
                f"{clip(str(content), 20)!r} refers to nothing before it",
                f"there are {len(self._kept)} to refer to here",
            )
        self._referred = True
        found = self._kept[content]
        if found is None:  # a row of a table that was read as columns, which nobody needed yet
            start, rows = self._tables[bisect_right(self._tables, content, key=itemgetter(0)) - 1]
            found = self._kept[content] = rows[content - start]
            self._sizes.take(found)
        return found

    def _deep(self, content: Any, depth: int) -> Any:
        values = self._each(content, "$deep", depth)
        if not values:
            raise TagError("there is nothing in $deep", "its last part is the value")
        return values[-1]


def _has_long(values: list[Any], kinds: set[type]) -> bool:
    """Say whether one of several plain values is a text that may be referred to."""
    texts = values if len(kinds) == 1 else [one for one in values if one.__class__ is str]
    return max(map(len, texts)) >= LONG


def _listed(content: Any, what: str) -> list[Any]:
    if content.__class__ is not list:
        raise TagError(f"the content of {what} is no list", "give a list")
    found: list[Any] = content
    return found


def _hashed(make: Callable[[], Any], what: str) -> Any:
    try:
        return make()
    except TypeError:
        raise TagError(f"{what} cannot be one", "use texts, numbers, dates or tuples") from None
