"""The verdict rows of a large run as a DataFrame with types: built by column, not by row.

Bridge layer. What stands in a row stands in the frame, each column in the type its values have in
Python: whole numbers stay whole where some are missing, names never become numbers. What decided
is read off the record by kind of branch, the compared values column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._json import to_wire
from runbook_nb._text import MISSING
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.tallies import mapped
from runbook_nb.rules.dataframes import typed_array
from runbook_nb.rules.held import Held, Vector
from runbook_nb.runbook.wire_rows import WireRows, is_columnar

if TYPE_CHECKING:
    import pandas as pd

    from runbook_nb.runbook.envelope import Envelope

#: From so many rows on a frame has types unless told otherwise.
LARGE: Final = 10_000

#: The largest whole number a column of them holds.
_MOST: Final = 2**63 - 1


def typed_to_frame(envelope: Envelope) -> pd.DataFrame:
    """Give the verdict rows with what decided them, in typed columns; see `Envelope.to_frame`."""
    import pandas as pd

    held: dict[str, Any] = {}
    rows = envelope.verdicts.rows
    order = list(envelope.verdicts.counts())
    for name, column, places in _columns_of(envelope, rows):
        held[name] = words_of(column, order) if name == "verdict" else typed(column, places)
    for name, values in _decided(envelope):
        # The author's own column of that name stays his.
        held[name if name not in held else f"{name} (record)"] = values
    return pd.DataFrame(held, copy=False)


def _columns_of(
    envelope: Envelope, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Sequence[Any], Sequence[int] | None]]:
    """Yield each column with the places of it that are the rows; None for all of them."""
    if _hides(envelope) or not isinstance(rows, WireRows) or not is_columnar(rows.source):
        for name in dict.fromkeys(key for row in rows for key in row):
            yield name, [row.get(name) for row in rows], None
        return
    items = envelope.dossier.items if envelope.carries_dossier else None
    columns = envelope.dossier.item_columns if items is not None else None
    for name in rows.source.names:
        if columns is not None and name != "verdict":
            yield name, columns.held(name), items
        else:
            column = rows.column(name)
            yield name, [] if column is None else column, None


def _hides(envelope: Envelope) -> bool:
    """Say whether a policy may hide something: then what is shown is taken from served rows."""
    return envelope.carries_dossier and envelope.dossier.redactor.active


def words_of(column: Sequence[Any], order: Sequence[str] = ()) -> Any:
    """Give a column of few words as a categorical.

    Examples
    --------
    >>> words_of(["b", "a", "b"], ["a", "b"]).codes.tolist()
    [1, 0, 1]
    """
    import pandas as pd

    plain = list(column)
    words = dict.fromkeys((*order, *plain))
    words.pop(None, None)
    numbers: dict[Any, int] = {word: place for place, word in enumerate(words)}
    numbers[None] = -1
    codes = list(map(numbers.__getitem__, plain))
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(words), dtype=object))


def numbered(numbers: Sequence[int], words: Sequence[str | None]) -> Any:
    r"""Give a column of words by their numbers as a categorical.

    Examples
    --------
    >>> list(numbered(b"\x01\x00\x01", ["a", None]))
    [nan, 'a', nan]
    """
    import pandas as pd

    known = [word for word in dict.fromkeys(words) if word is not None]
    table = {n: -1 if word is None else known.index(word) for n, word in enumerate(words)}
    return pd.Categorical.from_codes(
        list(mapped(numbers, table)), categories=pd.Index(known, dtype=object)
    )


def typed(column: Sequence[Any], places: Sequence[int] | None = None) -> Any:
    """Give a column, or some places of it, in the type of its values.

    Where they have several, or one that pandas has no form for, they are objects, in their form
    for JSON.

    Examples
    --------
    >>> typed([1, None]).dtype.name, typed([1.5, 2.0]).dtype.name, typed(["a", None]).dtype.name
    ('Int64', 'float64', 'object')
    """
    import pandas as pd

    vector = column.vector() if isinstance(column, Held) else None
    if vector is not None and not vector.days and vector.data.dtype.kind in "biufM":
        return _of_vector(vector, places)
    if isinstance(column, Held):
        plain = column.whole() if places is None else column.many(places)
    else:
        plain = list(column) if places is None else list(map(column.__getitem__, places))
    types = set(map(type, plain)) - {type(MISSING)}
    if type(MISSING) in set(map(type, plain)):
        plain = [None if value is MISSING else value for value in plain]
        types |= {type(None)}
    nulls = type(None) in types
    kinds = types - {type(None)}
    if kinds == {int} and all(-_MOST <= end <= _MOST for end in _ends(plain, nulls)):
        return pd.array(plain, dtype="Int64") if nulls else pd.Series(plain, dtype="int64")
    if kinds == {float}:
        return pd.array(plain, dtype="Float64") if nulls else pd.Series(plain, dtype="float64")
    if kinds == {bool}:
        return pd.array(plain, dtype="boolean") if nulls else pd.Series(plain, dtype="bool")
    if kinds == {datetime} and len({_zone(value) for value in plain if value is not None}) == 1:
        try:
            return pd.Series(pd.to_datetime(plain))
        except (ValueError, OverflowError):  # a year that pandas has no form for
            pass
    if not kinds <= {str, date}:
        plain = [to_wire(value) for value in plain]
    elif date in kinds:
        plain = [to_wire(value) if value.__class__ is date else value for value in plain]
    return pd.Series(plain, dtype=object)


def _of_vector(vector: Any, places: Sequence[int] | None) -> Any:
    import numpy as np
    import pandas as pd

    data, nulls = vector.data, vector.nulls
    if places is not None and not isinstance(places, range):
        where = np.asarray(places)
        data, nulls = data[where], None if nulls is None else nulls[where]
        nulls = nulls if nulls is not None and nulls.any() else None
    if data.dtype.kind == "u" and data.dtype.itemsize < 8:
        data = data.astype("int64")
    if nulls is None and data.dtype.kind != "M":
        return pd.Series(data.copy())  # a type that knows no nulls, as there is none
    return typed_array(Vector(data.copy(), nulls, vector.zone))


def _ends(values: Sequence[Any], nulls: bool) -> tuple[int, int]:
    known = [value for value in values if value is not None] if nulls else values
    return min(known), max(known)


def _zone(value: Any) -> Any:
    return None if value.tzinfo is None else str(value.tzinfo)


def _decided(envelope: Envelope) -> Iterator[tuple[str, Any]]:
    """Yield the rule that decided each row, what became of its subject, the compared values."""
    from runbook_nb.runbook.explain import facts_of_rows, rule_word

    many = range(len(envelope.verdicts))
    if not envelope.carries_dossier:
        nothing = words_of([None] * len(many))
        yield from (("rule", nothing), ("status", nothing))
        return
    rows = envelope.verdicts.rows
    known = isinstance(rows, WireRows) and is_columnar(rows.source)
    taken = frozenset(rows.source.names if known else (key for row in rows for key in row))  # type: ignore[attr-defined]
    found = envelope.dossier.kinds_of_rows()
    if found is None:
        facts = [one for one, _ in facts_of_rows(envelope, many)]
        yield "rule", words_of(list(map(rule_word, facts)))
        yield "status", words_of([None if one is None else one.status for one in facts])
        return
    numbers, kinds = found
    redactor = envelope.dossier.redactor
    yield "rule", numbered(numbers, [rule_word(kind.first) for kind in kinds])
    yield "status", numbered(numbers, [kind.first.status for kind in kinds])
    keys = dict.fromkeys(key for kind in kinds for key, hides in kind.compared if not hides)
    hidden = {key for kind in kinds for key, hides in kind.compared if hides}
    for key in (*keys, *(hidden - keys.keys())):
        if key in taken:
            continue
        if key in hidden:
            yield key, numbered(bytes(len(many)), [PLACEHOLDER])
            continue
        values: list[Any] = [None] * len(many)
        for kind in kinds:
            place = next((at for at, (one, _) in enumerate(kind.compared) if one == key), None)
            if place is not None:
                read = kind.column(place)
                if redactor.active:
                    read = [redactor.value(key, value) for value in read]
                for row, value in zip(kind.rows, read, strict=True):
                    values[row] = value
        yield key, typed(values)
