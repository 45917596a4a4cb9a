"""A walk as bytes that can be filed, and back: every row of it, however many there are.

Record layer. What is written is the log behind the rows, value columns and all, served by the
run's policy: a walk read back makes the same rows, row by row, as the walk it was written from.
A file may come from anywhere: it is checked whole, counts are counted again, and what it unpacks
to is held to a limit that is stated.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, get_args

from runbook_nb._deep import read_json
from runbook_nb._json import WireReport, to_wire
from runbook_nb._text import listed, visible
from runbook_nb.errors import DefinitionError, LoadError
from runbook_nb.record.arrow import ARROW_SIGN, read_arrow, write_arrow
from runbook_nb.record.masked import hidden_before, mask_log
from runbook_nb.record.published_read import structure_as_written
from runbook_nb.record.restored import read_log
from runbook_nb.record.run import Run
from runbook_nb.record.served import served_by
from runbook_nb.record.walk import Walk
from runbook_nb.record.written import write_log
from runbook_nb.rules.ruleset import RuleSet

#: Written into every file of a walk.
WALK_FORMAT: Final = "runbook_nb/walk/1"

#: How a walk is written: JSON columns, packed; or an Arrow stream.
WalkForm = Literal["columns", "arrow"]

#: Largest file that is read, and the most it may unpack to, in bytes.
MAX_FILE: Final = 256 * 1024 * 1024
MAX_UNPACKED: Final = 1024 * 1024 * 1024

_FIX: Final = "give what write_walk wrote, unchanged"


def write_walk(
    walk: Walk | Run, form: WalkForm = "columns", *, report: WireReport | None = None
) -> bytes:
    """Write a whole walk as bytes: the rows, the decisions and the structure behind them.

    It is served: what the run's policy hides is not in it. The same walk gives the same bytes.

    Parameters
    ----------
    walk : Walk or Run
        Of a whole run, or the run itself.
    form : {"columns", "arrow"}
        JSON columns, packed with zlib; or an Arrow stream of typed columns, which needs pyarrow
        (``pip install 'runbook-nb[arrow]'``).
    report : WireReport, optional
        Counts the values JSON cannot carry, whose type names stand for them.

    Raises
    ------
    DefinitionError
        The form is none, or the walk is that of one subject alone.
    CheckpointError
        It cannot be written: a value contains itself.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
    >>> read_walk(write_walk(walk)) == walk
    True
    """
    if isinstance(walk, Run):
        walk = walk.walk
    if not isinstance(walk, Walk):
        raise DefinitionError(
            f"{type(walk).__name__} is no walk", where="walk", fix="give run.walk, or the run"
        )
    check_form(form, ("columns", "arrow"), "form")
    if walk.only is not None:
        raise DefinitionError(
            "this is the walk of one subject, and whole walks are written",
            where="walk",
            fix="write run.walk; what is read back has .of(subject)",
        )
    report = WireReport() if report is None else report
    served = served_by(walk.redactor)
    document = {
        "format": WALK_FORMAT,
        "name": walk.redactor.text(walk.name),
        "hidden": walk.redactor.active,
        "rows": len(walk),
        "steps": walk.steps_executed,
        "structure": to_wire(walk.structure.to_dict(), report),
        "log": write_log(walk.log, served, report=report, strict=False, brief=True),
    }
    if form == "arrow":
        return write_arrow(document)
    return zlib.compress(_json(document), 1)


def _json(document: Any) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")


def check_form(form: Any, forms: Iterable[str] = get_args(WalkForm), where: str = "form") -> None:
    """Refuse a form that is none.

    Raises
    ------
    DefinitionError
        With the forms there are.
    """
    known = tuple(forms)
    if not isinstance(form, str) or form not in known:
        raise DefinitionError(
            f"{where} is {form!r}; a walk is written as {listed(map(repr, known))}",
            where=where,
            fix=f"write {where}={known[0]!r}",
        )


def read_walk(
    source: Any,
    *,
    rules: Iterable[RuleSet] = (),
    max_bytes: int = MAX_FILE,
    max_unpacked: int = MAX_UNPACKED,
) -> Walk:
    """Read a walk that `write_walk` wrote.

    Nothing in it is trusted or executed: all of it is checked, and rows and steps are counted
    again.

    Parameters
    ----------
    source : bytes, path or Record
        The bytes; a file of them; or the record a store gave for a ticket.
    rules : iterable of RuleSet, optional
        Live rule sets: one that says the same as a carried one takes its place.
    max_bytes, max_unpacked : int
        A larger file is refused, and so is one that would unpack to more: 256 MiB and 1 GiB
        unless told otherwise.

    Returns
    -------
    Walk
        With the rows of the walk it was written from, ``.page``, ``.of``, ``.decisions``,
        ``.flowchart()``, ``.to_frame()`` and its counters.

    Raises
    ------
    LoadError
        It cannot be read, or is no walk; ``where`` says where.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> walk = read_walk(write_walk(run))
    >>> [row.text for row in walk.page(0, 2)], walk.steps_executed
    (['Ran c', 'Wrote n'], 1)
    """
    data = _bytes_of(source, max_bytes)
    if data.startswith(ARROW_SIGN):
        document: Any = read_arrow(data)
    else:
        document = _parsed(_unpacked(data, max_unpacked))
    return _walk(document, rules)


def _bytes_of(source: Any, most: int) -> bytes:
    held = getattr(source, "data", source) if hasattr(source, "meta") else source
    if isinstance(held, str | PathLike) and held is source:
        path = Path(held)
        try:
            with path.open("rb") as file:
                held = file.read(most + 1)
        except (OSError, ValueError) as error:
            raise LoadError(
                f"the walk cannot be read: {visible(str(error))}",
                code="cannot_read",
                where=visible(str(path)),
                fix="give the path of a file that can be opened",
            ) from error
    if not isinstance(held, bytes | bytearray | memoryview):
        raise _no_walk(f"a {type(held).__name__} holds none", "the walk")
    if len(held) > most:
        raise too_large(f"the file has more than {most} bytes", "max_bytes")
    return bytes(held)


def too_large(what: str, option: str) -> LoadError:
    """Make the error for a file that is larger than may be read."""
    return LoadError(
        f"the walk is too large to be read: {what}",
        code="too_large",
        where="the walk",
        fix=f"raise {option}= if it may be as large as that",
    )


def _unpacked(data: bytes, most: int) -> bytes:
    if data[:1] in (b"{", b" ", b"\n"):  # it was unpacked already
        return data
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, most + 1)
    except zlib.error:
        raise _no_walk(
            "these bytes are neither packed JSON nor an Arrow stream", "the walk"
        ) from None
    if len(text) > most:
        raise too_large(f"it unpacks to more than {most} bytes", "max_unpacked")
    if not unpacking.eof or unpacking.unused_data:
        raise _no_walk("the file was cut short, or goes on after its end", "the walk")
    return text


def _parsed(text: bytes) -> Any:
    try:
        return read_json(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _no_walk(
            f"what is in the file is no JSON: {visible(str(error))}", "the walk"
        ) from None


def _walk(document: Any, rules: Iterable[RuleSet]) -> Walk:
    if not isinstance(document, dict):
        raise _no_walk("it is no mapping", "the walk")
    found = document.get("format")
    if found != WALK_FORMAT:
        told = visible(found[:80]) if isinstance(found, str) else type(found).__name__
        raise LoadError(
            f"this is no walk this version can read: its format is {told!r}",
            code="unknown_format",
            where="format",
            fix=f"its format should be {WALK_FORMAT!r}; a newer version may read it",
        )
    name, hidden = document.get("name"), document.get("hidden")
    if not isinstance(name, str) or type(hidden) is not bool:
        raise _no_walk("name is a text, and hidden true or false", "name")
    log = read_log(document.get("log"), rules)
    if hidden:
        mask_log(log)
    walk = Walk(
        log,
        name=name,
        structure=structure_as_written(document.get("structure"), "structure"),
        redactor=hidden_before(log, hidden=hidden),
    )
    counted = {"rows": len(walk), "steps": walk.steps_executed}
    for part, count in counted.items():
        if type(document.get(part)) is not int or document[part] != count:
            raise _no_walk(f"it has {count} {part}, and says {document.get(part)!r}"[:200], part)
    return walk


def _no_walk(message: str, where: str) -> LoadError:
    return LoadError(f"no walk: {message}", code="not_a_walk", where=where, fix=_FIX)


__all__ = ["MAX_FILE", "MAX_UNPACKED", "WALK_FORMAT", "WalkForm", "read_walk", "write_walk"]
