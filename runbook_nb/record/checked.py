"""What recorded values must be, wherever they are read from: no view over a log meets others.

Record layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from runbook_nb._tags import SAFE_INTEGER
from runbook_nb.errors import LoadError
from runbook_nb.record.columns import Column
from runbook_nb.record.rulebook import functions_in
from runbook_nb.rules.evaluate import DecisionPath, FunctionRecord

_FIX: Final = "read what write_log wrote, unchanged"


def bad_log(what: str, where: str) -> LoadError:
    """Make the error for a log that is damaged."""
    return LoadError(f"the log is damaged: {where} {what}", where=where, fix=_FIX, code="bad_log")


def check_column(column: Column, values: Sequence[Any], where: str) -> None:
    """Refuse values that what recorded them cannot have recorded."""
    code, part = column.code, column.part
    if code.path is not None:
        called = part in functions_in(code.path)
        if any(issubclass(kind, FunctionRecord) is not called for kind in set(map(type, values))):
            raise bad_log("has a value of another kind of rule", where)
        return
    fits = _FITS.get(code.kind)
    if fits is not None and not all(map(fits, values)):
        raise bad_log(f"has a value no {code.kind} has", where)


def check_records(path: DecisionPath, values: Sequence[Any], where: str) -> None:
    """Refuse a decision whose function rules have no record, or others have one."""
    called = functions_in(path)
    for place, value in enumerate(values):
        if isinstance(value, FunctionRecord) is not (place in called):
            raise bad_log("has a value of another kind of rule", where)


def is_count(value: Any) -> bool:
    """Say whether something is a number of things; one that long texts are made of is none."""
    return type(value) is int and 0 <= value <= SAFE_INTEGER


def _is_error(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("type"), str)
        and isinstance(value.get("message"), str)
    )


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    "error": _is_error,
    "ended": _is_error,
    "retry": lambda value: (
        isinstance(value, Mapping)
        and is_count(value.get("attempt"))
        and is_count(value.get("attempts"))
        and _is_error(value.get("error"))
    ),
    "pause": lambda value: isinstance(value, Mapping) and {"reason", "expects"} <= value.keys(),
    "enter": lambda value: isinstance(value, Mapping) and all(isinstance(k, str) for k in value),
    "streamed": lambda value: (
        isinstance(value, Mapping)
        and {"stream", "complete"} <= value.keys()
        and is_count(value.get("tokens"))
    ),
    "loop": is_count,
    "settled": lambda value: isinstance(value, Mapping) and isinstance(value.get("outcome"), str),
    "refused": lambda value: isinstance(value, Mapping) and isinstance(value.get("type"), str),
    **dict.fromkeys(
        ("admitted", "deviation", "approved", "closed", "skipped", "given_up", "stuck"),
        lambda value: isinstance(value, Mapping),
    ),
    "choices": lambda value: isinstance(value, list | tuple),
}
