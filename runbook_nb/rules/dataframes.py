"""The one corner where pandas is known: taking its frames and series, giving typed ones back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from runbook_nb._text import MISSING
from runbook_nb.errors import RuleError
from runbook_nb.rules.columns import Columns
from runbook_nb.rules.held import (
    ArrayColumn,
    ArrowColumn,
    CategoryColumn,
    Held,
    PlainColumn,
    SeriesColumn,
    Vector,
)
from runbook_nb.rules.intake import names_of


def take_pandas(frame: Any) -> Columns:
    """Take a DataFrame as `Columns`; a million rows of it in no time."""
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise RuleError(
            f"the columns of the frame have {frame.columns.nlevels} levels; rules read one name",
            where="frame",
            fix='join the levels: frame.columns = frame.columns.map(" ".join)',
            code="bad_frame",
        )
    names = names_of(list(frame.columns))
    kept = _shared_copy(frame)
    held = {name: series_column(kept.iloc[:, place]) for place, name in enumerate(names)}
    return Columns(held, len(kept), names=names, labels=kept.index)


def _shared_copy(owned: Any) -> Any:
    """Copy a frame or a series: from pandas 3 on, nothing is copied before somebody writes."""
    import pandas as pd

    return owned.copy(deep=int(pd.__version__.partition(".")[0]) < 3)


def series_column(series: Any) -> Held:
    """Hold a pandas series that nobody else can change."""
    import numpy as np
    import pandas as pd

    kind = series.dtype
    if isinstance(kind, np.dtype):
        if kind.kind in "biufmM" and kind.itemsize <= 8:
            return ArrayColumn(series.to_numpy(), owner=series)
        if kind.kind == "O" and _holds_what_can_change(series):
            return _cells_of(series)
        return SeriesColumn(series, _cells_of)
    if isinstance(kind, pd.CategoricalDtype):
        words = PlainColumn.of_cells(kind.categories.tolist())
        return CategoryColumn(series.cat.codes.to_numpy(), words)
    if hasattr(series.array, "__arrow_array__") and _stored_in_arrow(kind):
        return ArrowColumn(_arrow_of(series))
    if isinstance(kind, pd.DatetimeTZDtype):
        utc = np.asarray(series.array, dtype=f"M8[{kind.unit}]")
        return ArrayColumn(utc, zone=kind.tz, owner=series)
    if kind.kind in "biuf" and isinstance(getattr(kind, "numpy_dtype", None), np.dtype):
        return SeriesColumn(series, _numbers_of)
    return SeriesColumn(series, _cells_of)


def _holds_what_can_change(series: Any) -> bool:
    import pandas as pd

    found = pd.api.types.infer_dtype(series, skipna=True)
    return found.startswith("mixed") or found in ("unknown-array", "complex")


def _cells_of(series: Any) -> Held:
    return PlainColumn.of_cells(series.tolist())


def _numbers_of(series: Any) -> Held:
    plain = series.dtype.numpy_dtype
    nulls = series.isna().to_numpy()
    data = series.to_numpy(dtype=plain, na_value=plain.type(0))
    return ArrayColumn(data, nulls if nulls.any() else None)


def _stored_in_arrow(kind: Any) -> bool:
    return hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", None) == "pyarrow"


def _arrow_of(series: Any) -> Any:
    import pyarrow as pa

    found = series.array.__arrow_array__()
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def column_of(values: Any) -> Held:
    """Hold a series, an index or an array of pandas as it is now."""
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    return series_column(_shared_copy(series))


def stamp_of(value: Any, zone: Any) -> Any:
    """Give the pandas Timestamp of an instant no datetime can hold; itself where there is none."""
    try:
        import pandas as pd

        stamp = pd.Timestamp(value)
        return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(zone)
    except (ImportError, ValueError, OverflowError):
        return value


def span_of(value: Any) -> Any:
    """Give the pandas Timedelta of a span no timedelta can hold; itself where there is none."""
    try:
        import pandas as pd

        return pd.Timedelta(value)
    except (ImportError, ValueError, OverflowError):
        return value


# --- giving them back --------------------------------------------------------------------------


def typed_series(column: Held, index: Any = None) -> Any:
    """Give a column as a pandas series of a nullable type; whole numbers never become floats.

    Examples
    --------
    >>> typed_series(PlainColumn([2**60 + 1, None])).dtype
    Int64Dtype()
    """
    import pandas as pd

    column = column.made() if isinstance(column, SeriesColumn) else column
    vector = column.vector()
    if vector is None and isinstance(column, ArrowColumn):
        from runbook_nb.rules.arrows import vector_of

        vector = vector_of(column.arrow())
    if vector is not None and not vector.days:
        return pd.Series(typed_array(vector), index=index)
    if isinstance(column, CategoryColumn):
        try:
            return pd.Series(
                pd.Categorical.from_codes(column.codes, pd.Index(column.words.whole())), index=index
            )
        except (TypeError, ValueError):  # values that cannot be categories
            pass
    values = [None if value is MISSING else value for value in column.whole()]
    typed = _typed_values(values)
    # Objects stay objects: pandas would make texts of them, and not every text can be spelt.
    held: Any = object if typed.dtype == object else typed.dtype
    return pd.Series(typed, index=index, dtype=held)


def typed_array(vector: Vector) -> Any:
    """Give a vector as a pandas array of a nullable type.

    Examples
    --------
    >>> import numpy as np
    >>> typed_array(Vector(np.array([7, 0]), np.array([False, True]))).tolist()
    [7, <NA>]
    """
    import numpy as np
    import pandas as pd

    data, nulls, zone, _ = vector
    letter = data.dtype.kind
    if letter in "mM":
        if nulls is not None:
            data = data.copy()
            data[nulls] = np.datetime64("NaT") if letter == "M" else np.timedelta64("NaT")
        series = pd.Series(data)
        if zone is not None:
            series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
        return series.array
    mask = np.zeros(len(data), bool) if nulls is None else np.array(nulls)
    if letter == "b":
        return pd.arrays.BooleanArray(data.copy(), mask)
    if letter == "f":
        wide = data.astype("f4") if data.dtype == "f2" else data.copy()
        return pd.arrays.FloatingArray(wide, mask)
    return pd.arrays.IntegerArray(data.copy(), mask)


def _typed_values(values: Sequence[Any]) -> Any:
    import pandas

    pd: Any = pandas  # whose declared types know fewer values than it takes

    classes = {type(value) for value in values} - {type(None)}
    names = {bool: ("boolean",), int: ("Int64", "UInt64"), float: ("Float64",), str: ("string",)}
    only = classes.pop() if len(classes) == 1 else None
    for name in names.get(only, ()) if only is not None else ():
        try:
            return pd.array(list(values), dtype=name)
        except (OverflowError, ValueError, TypeError):  # wider than 64 bits
            continue
    try:
        if only is datetime and len({v.tzinfo for v in values if v is not None}) == 1:
            return pd.Series(pd.DatetimeIndex(values)).array
        if only is timedelta:
            return pd.Series(pd.TimedeltaIndex(values)).array
    except (OverflowError, ValueError, TypeError):  # a time that pandas cannot hold
        pass
    held = pd.Series([None] * len(values), dtype=object)
    for place, value in enumerate(values):
        held.iat[place] = value
    return held.array
