"""Lossless JSON for recorded values: plain JSON where JSON says it all, and tags for the rest.

Base layer. Equal values give equal bytes, under sorted keys too: a mapping whose keys are not in
sorted order says its order. What stands in a document twice is written once and referred to
afterwards, rows with the same keys are written as columns, and nothing is nested deeper than a
fixed number of levels, however deep the value is. `Untagger` reads it back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import partial
from itertools import count, repeat
from operator import eq, is_, itemgetter
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, FrozenList
from runbook_nb._json import WireReport, plain_scalar
from runbook_nb._tags import (
    DEEPEST,
    LONG,
    MOST_PARTS,
    SAFE_INTEGER,
    Sizes,
    base64_text,
    escaped,
    float_text,
    int_text,
    is_clean,
    is_nan,
    scalar_tag,
    text_tag,
)
from runbook_nb._text import clip
from runbook_nb._untagged import Untagger
from runbook_nb.errors import CycleError, JsonError


class Refusal(Exception):
    """A value that cannot be carried: what it is, and the steps to it, innermost first."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.steps: list[str] = []

    @property
    def path(self) -> str:
        """The path to the value (``[3].frame``); empty at the top."""
        return "".join(reversed(self.steps))


#: Gives the tag and the content of a value of another layer; None for what it does not know.
Foreign = Callable[[Any], "tuple[str, Any] | None"]

_PLAIN: Final[frozenset[Any]] = frozenset({type(None), bool, int, str})
_SCALARS: Final[frozenset[Any]] = frozenset({*_PLAIN, float})
_MAPPINGS: Final[frozenset[Any]] = frozenset({FrozenDict, dict})
#: From so many values on they are looked at together first.
_MANY: Final = 8
_CONTAINERS: Final[frozenset[Any]] = frozenset(
    {FrozenDict, FrozenList, dict, list, tuple, frozenset, set}
)


class Tagger:
    """Writes the values of one document.

    Parameters
    ----------
    foreign : callable, optional
        Knows values of other layers: gives ``(tag, content)``, where the content is written like
        any list, or stands as it is when it is a plain scalar.
    report : WireReport, optional
        Counts what had to be made something plainer: members of enumerations (their value), named
        tuples (tuples), subclasses of plain types.
    strict : bool
        Whether what cannot be carried is refused; else its type name stands for it, counted.
    refer : bool
        Whether what stands in the document twice is written once.

    Examples
    --------
    >>> from datetime import date
    >>> tagger = Tagger()
    >>> row = FrozenDict(id="a", at=date(2026, 1, 2))
    >>> tagger.write(row)
    {'$map': ['id', 'a', 'at', {'$date': '2026-01-02'}]}
    >>> tagger.write((row, {"k": row}))
    {'$tuple': [{'$ref': 0}, {'k': {'$ref': 0}}]}
    """

    def __init__(
        self,
        foreign: Foreign | None = None,
        report: WireReport | None = None,
        *,
        strict: bool = True,
        refer: bool = True,
    ) -> None:
        self._foreign = foreign
        self.report = report if report is not None else WireReport()
        self._strict = strict
        self._refer = refer
        self._bare = Tagger(foreign, self.report, strict=strict, refer=False) if refer else self
        #: What was written so far, by identity, long texts and bytes by content -> its number.
        self._met: dict[int, int] = {}
        #: Rows of tables not among them yet, with the number of their first: whoever asks for
        #: what is known puts them there, and of rows that hold plain data nobody may ever ask.
        self._waiting: list[tuple[Sequence[Any], int]] = []
        self._texts: dict[str, int] = {}
        self._blobs: dict[bytes, int] = {}
        #: Everything with a number; holding it keeps its identity its own.
        self._kept: list[Any] = []
        self._sizes = Sizes(self._parts)
        self._referred = False

    def write(self, value: Any) -> Any:
        """Write one value.

        Raises
        ------
        Refusal
            It cannot be carried, with the path to what cannot.
        CycleError
            It contains itself.
        """
        return self._write(value, 0)

    def apart(self, value: Any) -> Any:
        """Write one value that may refer to what was written before, and check it.

        Nothing written later refers to it, so that it can be read without others written so.
        """
        mark, _ = len(self._kept), self._known
        self._referred = False
        try:
            written = self._write(value, 0)
            self.check()
        finally:
            self._sizes.forget(self._kept[mark:], mark)
            del self._kept[mark:]
            tables: tuple[dict[Any, int], ...] = (self._known, self._texts, self._blobs)
            for table in tables:
                while table and next(reversed(table.values())) >= mark:
                    table.popitem()
        return written

    def bare(self, value: Any) -> Any:
        """Write one value that neither refers to others nor is referred to."""
        return self._bare._write(value, 0)

    def column(self, values: Sequence[Any]) -> Any:
        """Write several values that are not a list of anybody's, briefly where they are alike."""
        return self._column(values, 0)

    def rows_of(
        self,
        keys: Sequence[str],
        columns: Sequence[Sequence[Any]],
        held: Mapping[int, Any] | None = None,
    ) -> Any:
        """Write a list of rows that is kept as columns; None where they are not so written.

        It is what `write` would give for the rows, of which none is made. Whatever is written
        later can refer to those alone that somebody holds: ``held`` has them by their places.
        """
        size = len(columns[0]) if columns else 0
        if size < 2 or not all(map(_is_plain_key, keys)) or len(set(keys)) < len(keys):
            return None
        held = held or {}
        if held and not self._known.keys().isdisjoint(map(id, held.values())):
            return None
        written = self._table(keys, columns, 1)
        if self._refer:
            start = len(self._kept)
            self._kept.extend(repeat(None, size + 1))  # the rows, and the list of them
            for place, row in held.items():
                self._kept[start + place] = row
                self._met.setdefault(id(row), start + place)
        return written

    def check(self) -> None:
        """Refuse a document one value of which is too large with all it refers to spelt out."""
        if self._referred and self._sizes.too_large(self._kept):
            raise Refusal(f"a value with more than {MOST_PARTS:,} parts when it is spelt out")

    @property
    def _known(self) -> dict[int, int]:
        if self._waiting:
            for rows, number in self._waiting:
                places = dict(zip(map(id, rows), count(number), strict=False))
                if len(places) == len(rows) and self._met.keys().isdisjoint(places):
                    self._met.update(places)
                    continue
                # Of a row that is there twice the first counts.
                for place, row in enumerate(rows, number):
                    self._met.setdefault(id(row), place)
            self._waiting.clear()
        return self._met

    # -- one value

    def _write(self, value: Any, depth: int) -> Any:
        cls = value.__class__
        if value is None or cls is bool:
            return value
        if cls is str:
            return self._text(value)
        if cls is int:
            return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else {"$int": int_text(value)}
        if cls is float:
            return (
                value if math.isfinite(value) else self._scalar(value, "$float", float_text(value))
            )
        if cls in _CONTAINERS:
            return self._container(value, depth)
        return self._other(value, depth)

    def _text(self, value: str) -> Any:
        if self._refer and len(value) >= LONG:
            if value in self._texts:
                return {"$ref": self._texts[value]}
            self._texts[value] = self._keep(value)
        return text_tag(value)

    def _bytes(self, value: bytes) -> Any:
        if self._refer and len(value) >= LONG:
            if value in self._blobs:
                return {"$ref": self._blobs[value]}
            self._blobs[value] = self._keep(value)
        return {"$bytes": base64_text(value)}

    def _scalar(self, value: Any, tag: str, text: str) -> dict[str, Any]:
        # NaN differs from any other NaN but is equal to itself, wherever values are compared.
        if self._refer and is_nan(tag, text):
            number = self._known.get(id(value))
            if number is not None:
                return {"$ref": number}
            self._remember(value)
        return {tag: text}

    def _ref(self, number: int) -> dict[str, int]:
        self._referred = True
        return {"$ref": number}

    def _keep(self, value: Any) -> int:
        self._kept.append(value)
        return len(self._kept) - 1

    def _container(self, value: Any, depth: int) -> Any:
        if not value:
            return self._body(value, depth)
        number = self._known.get(id(value))
        if number is not None:
            return self._ref(number)
        if depth >= DEEPEST:
            return self._deep(value)
        written = self._body(value, depth + 1)
        self._remember(value)
        return written

    def _remember(self, value: Any) -> None:
        if self._waiting:
            self._waiting.append(((value,), self._keep(value)))
        elif self._refer:
            self._met.setdefault(id(value), self._keep(value))

    def _body(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list):
            return self._rows(value, depth)
        if isinstance(value, tuple):
            return {"$tuple": self._each(value, depth)}
        return self._set(value)

    def _each(self, values: Iterable[Any], depth: int) -> list[Any]:
        out: list[Any] = []
        try:
            for item in values:
                out.append(self._write(item, depth))
        except Refusal as refusal:
            refusal.steps.append(f"[{len(out)}]")
            raise
        return out

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        key: Any = None
        try:
            if _in_order(value):
                size = len(value)
                plain: dict[str, Any] = {}
                for key, item in value.items():
                    plain[escaped(size, key)] = self._write(item, depth)
                return plain
            flat: list[Any] = []
            for key, item in value.items():
                flat.append(key if _is_plain_key(key) else self._bare._write(key, 0))
                flat.append(self._write(item, depth))
            _check_distinct(flat[::2])
        except Refusal as refusal:
            refusal.steps.append(f".{clip(key, 60)}" if isinstance(key, str) else f"[{key!r}]")
            raise
        return {"$map": flat}

    def _set(self, value: Set[Any]) -> Any:
        written = sorted((self._bare._write(item, 0) for item in value), key=_sort_text)
        _check_distinct(written)
        return {"$set": written}

    def _column(self, values: Sequence[Any], depth: int, *, spelt: bool = False) -> Any:
        """Write a column: a value that stands everywhere once, what is known as differences."""
        if len(values) > 1 and not spelt and _is_constant(values):
            try:
                return {"$same": self._write(values[0], depth + 1)}
            except Refusal as refusal:
                refusal.steps.append("[0]")
                raise
        first: Any = values[0] if values else None
        if first.__class__ in _CONTAINERS:
            numbers = [self._known.get(id(value), -1) for value in values]
            if -1 not in numbers:
                self._referred = True
                before = [0, *numbers[:-1]]
                return {"$refs": [now - last for now, last in zip(numbers, before, strict=True)]}
        return self._rows(values, depth)

    def _rows(self, values: Sequence[Any], depth: int) -> Any:
        keys = () if depth > DEEPEST else self._common_keys(values)
        if not keys:
            plain = self._plain(values) if len(values) >= _MANY else None
            return self._each(values, depth) if plain is None else plain
        columns = [list(map(itemgetter(key), values)) for key in keys]
        written = self._table(keys, columns, depth)
        if self._refer:
            self._waiting.append((values, len(self._kept)))
            self._kept.extend(values)
        return written

    def _table(self, keys: Sequence[str], columns: Sequence[Sequence[Any]], depth: int) -> Any:
        # One column at least says how many rows there are.
        spelt = all(map(_is_constant, columns))
        written: list[Any] = [list(keys)]
        for key, column in zip(keys, columns, strict=True):
            try:
                first = len(written) == 1
                written.append(self._column(column, depth + 1, spelt=spelt and first))
            except Refusal as refusal:
                # The step inside is the row's.
                refusal.steps.insert(-1, f".{clip(key, 60)}")
                raise
        return {"$table": written}

    def _plain(self, values: Sequence[Any]) -> list[Any] | None:
        """Give values that are written as they are; None when one of them may not be."""
        kinds = set(map(type, values))
        if not kinds <= _SCALARS:
            return None
        if str in kinds:
            texts: list[str] = _of_class(values, str, kinds)
            if self._refer and max(map(len, texts)) >= LONG:
                return None
            if not is_clean("".join(texts)):
                return None
        if int in kinds:
            numbers: list[int] = _of_class(values, int, kinds)
            if min(numbers) < -SAFE_INTEGER or max(numbers) > SAFE_INTEGER:
                return None
        if float in kinds and not all(map(math.isfinite, _of_class(values, float, kinds))):
            return None
        return list(values)

    def _common_keys(self, values: Sequence[Any]) -> tuple[str, ...]:
        """Give the keys that all of several mappings have in the same order; none when unlike."""
        if len(values) < 2 or values[0].__class__ not in (FrozenDict, dict):
            return ()
        keys = tuple(values[0])
        if not keys or not all(map(_is_plain_key, keys)):
            return ()
        # Whatever is unlike the first is most often the next or the last.
        for row in (values[1], values[-1]):
            if row.__class__ not in _MAPPINGS or tuple(row) != keys:
                return ()
        alike = _MAPPINGS.issuperset(map(type, values)) and all(
            map(keys.__eq__, map(tuple, values))
        )
        known = self._known if alike else {}
        if not alike or (known and not known.keys().isdisjoint(map(id, values))):
            return ()
        return keys

    # -- what lies too deep

    def _deep(self, value: Any) -> Any:
        """Write what lies too deep from the inside out, each part as references to its parts."""
        if not self._refer:
            raise Refusal("a key or a member of a set nested too deeply")
        entries: list[Any] = []
        stack = [(value, iter(self._parts(value)))]
        open_ones = {id(value)}
        while stack:
            node, parts = stack[-1]
            for part in parts:
                if not self._has_parts(part) or id(part) in self._known:
                    continue
                if id(part) in open_ones:
                    raise CycleError("a value contains itself, so it cannot be written as JSON")
                open_ones.add(id(part))
                stack.append((part, iter(self._parts(part))))
                break
            else:
                stack.pop()
                open_ones.discard(id(node))
                try:
                    entries.append(self._write(node, 0))
                except Refusal as refusal:
                    around = [one for one, _ in stack]
                    refusal.steps += _steps_to(node, around)
                    raise
        return {"$deep": entries}

    def _has_parts(self, value: Any) -> bool:
        if isinstance(value, Mapping | list | tuple):
            return bool(value)
        return self._foreign is not None and isinstance(_content(self._foreign, value), list)

    def _parts(self, value: Any) -> Iterable[Any]:
        """Give what lies directly in a value and may have parts itself."""
        content = None if self._foreign is None else _content(self._foreign, value)
        if isinstance(content, list):
            return content
        if isinstance(value, Mapping):
            return value.values()
        return value if isinstance(value, list | tuple) else ()

    # -- everything but plain data

    def _other(self, value: Any, depth: int) -> Any:
        found = None if self._foreign is None else self._foreign(value)
        if found is not None:
            return self._other_layer(value, *found, depth)
        if isinstance(value, Enum):
            self.report.replace(value)
            return self._write(value.value, depth)
        plain = plain_scalar(value)
        if plain is not value:
            return self._write(plain, depth)
        if isinstance(value, bytes):
            return self._bytes(bytes(value))
        if isinstance(value, Mapping | list | tuple | Set):
            self.report.replace(value)
            return self._container(value, depth)
        try:
            written = scalar_tag(value, self.report)
        except Exception:  # whatever a foreign zone or number does
            written = None
        if written is not None:
            if len(written) == 1:
                return self._write(written[0], depth)
            return self._scalar(value, *written)
        if not self._strict:
            return self._text(self.report.replace(value))
        raise Refusal(f"a {type(value).__name__}, which no JSON carries")

    def _other_layer(self, value: Any, tag: str, content: Any, depth: int) -> Any:
        if not tag:
            return self._write(content, depth)
        if not isinstance(content, list):
            return {tag: content}
        number = self._known.get(id(value))
        if number is not None:
            return self._ref(number)
        if depth >= DEEPEST:
            return self._deep(value)
        written = {tag: self._each(content, depth + 1)}
        self._remember(value)
        return written


def _steps_to(value: Any, around: list[Any]) -> Iterator[str]:
    """Give the steps to a value from what lies around it, innermost first."""
    for outer in reversed(around):
        pairs: Iterable[tuple[Any, Any]] = ()
        if isinstance(outer, Mapping):
            pairs = outer.items()
        elif isinstance(outer, list | tuple):
            pairs = enumerate(outer)
        for key, part in pairs:
            if part is value:
                yield f".{clip(key, 60)}" if isinstance(key, str) else f"[{key!r}]"
                break
        value = outer


def _content(foreign: Foreign, value: Any) -> Any:
    found = foreign(value)
    return None if found is None else found[1]


def _of_class(values: Sequence[Any], cls: type, kinds: set[type]) -> Any:
    """Give the values of one exact class, out of values of several."""
    return values if len(kinds) == 1 else [one for one in values if one.__class__ is cls]


def _is_plain_key(key: Any) -> bool:
    return key.__class__ is str and is_clean(key)


def _is_constant(values: Sequence[Any]) -> bool:
    """Say whether one and the same value, or one equal plain scalar, stands in every place."""
    first, last = values[0], values[-1]
    if first.__class__ not in _PLAIN:
        return last is first and all(map(partial(is_, first), values))
    # Columns that vary do so at a few places that are looked at first.
    for one in (last, *values[:: max(len(values) // 8, 1)]):
        if one.__class__ is not first.__class__ or one != first:
            return False
    return set(map(type, values)) == {first.__class__} and all(map(partial(eq, first), values))


def _in_order(value: Mapping[Any, Any]) -> bool:
    """Say whether a mapping is what a reader of sorted JSON would make of it."""
    last = None
    for key in value:
        if not _is_plain_key(key) or (last is not None and key <= last):
            return False
        last = key
    return True


def _sort_text(written: Any) -> str:
    return json.dumps(written, sort_keys=True)


def _check_distinct(written: Sequence[Any]) -> None:
    """Refuse keys or members that would be one and the same; NaN is never the same."""
    texts = [_sort_text(one) for one in written]  # the text "1" is not the number
    if len(set(texts)) < len(texts) and not any("NaN" in text for text in texts):
        raise Refusal("a mapping or a set of which two keys or members are written alike")


def write(value: Any, report: WireReport | None = None) -> Any:
    """Write one value as JSON values.

    Raises
    ------
    JsonError
        It cannot be carried; ``where`` is the path to what cannot, the message names its type.
    CycleError
        It contains itself.

    Examples
    --------
    >>> from decimal import Decimal
    >>> write(FrozenDict(id="a", seen=frozenset({1}), share=Decimal("0.10")))
    {'id': 'a', 'seen': {'$set': [1]}, 'share': {'$decimal': '0.10'}}
    """
    tagger = Tagger(report=report)
    try:
        written = tagger.write(value)
        tagger.check()
    except Refusal as refusal:
        raise JsonError(
            f"JSON cannot carry {refusal.what} at {refusal.path.lstrip('.') or 'the top'}",
            where=refusal.path.lstrip(".") or None,
            fix="keep plain data: texts, numbers, dates, lists, mappings",
        ) from None
    return written


def read(data: Any) -> Any:
    """Read what `write` wrote; the value is frozen.

    Raises
    ------
    TagError
        It is not a written value.

    Examples
    --------
    >>> read({"$map": ["id", "a", 1, {"$float": "NaN"}]})
    {'id': 'a', 1: nan}
    """
    reader = Untagger()
    value = reader.read(data)
    reader.check()
    return value
