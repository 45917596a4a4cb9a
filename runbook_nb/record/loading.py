"""The door through which recordings come in: a file, a text, or what a JSON reader gave.

Record layer. A recording may come from anywhere, so nothing in it is trusted: what is damaged,
too large or not a recording at all ends in a `LoadError` that says what and where, and nothing of
it is ever executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from runbook_nb._deep import depth_of, read_json
from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._text import MISSING, visible
from runbook_nb.errors import FrozenError, LoadError
from runbook_nb.record.foreign import rebuild
from runbook_nb.record.log import StageRef
from runbook_nb.record.masked import mask_log, masked
from runbook_nb.record.published_read import bad_part, structure_as_written, structure_of
from runbook_nb.record.recorded import UNTOLD, RecordedRun
from runbook_nb.record.recording import OWN_FORMAT, OWN_ID, Recording
from runbook_nb.record.restored import read_log_with
from runbook_nb.record.run import RUN_STATUSES

#: Largest file that is read, in bytes.
MAX_BYTES: Final = 256 * 1024 * 1024

#: Deepest nesting of a value. The tree and the structure may be as deep as a run is long.
MAX_DEPTH: Final = 100

_FIX: Final = "give a recording as it was written: {snapshot, events, structure}"


def load_recording(source: Any, *, max_bytes: int = MAX_BYTES) -> RecordedRun:
    """Read a recording, made here or by the published engine, as a run to be looked at.

    Parameters
    ----------
    source : path, str, bytes, mapping or Recording
        A file; JSON text; or what a JSON reader gave, ``{snapshot, events, structure}``.
    max_bytes : int
        A larger file or text is refused.

    Returns
    -------
    RecordedRun
        With the views of a run: ``.walk``, ``.structure``, ``.state``, ``.commits``,
        ``.decisions``; ``.to_dict()`` gives back what was read. What the recording does not carry
        is listed in ``.not_carried``, and never guessed.

    Raises
    ------
    LoadError
        It cannot be read, or is no recording; ``where`` says where, ``fix`` what to do.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync()
    >>> copy = load_recording(run.recording())
    >>> copy.walk == run.walk, copy.state
    (True, {'n': 1})
    """
    document = _document(source, max_bytes)
    snapshot = document["snapshot"]
    try:
        _check_depth(snapshot)
        return _read(document, snapshot)
    except RecursionError:
        raise _too_deep("the recording") from None
    except FrozenError as error:
        raise LoadError(error.message, code="bad_recording", where=error.where, fix=_FIX) from None


def _document(source: Any, max_bytes: int) -> Mapping[str, Any]:
    if isinstance(source, Recording):
        return source.to_dict()
    where = "the recording"
    if isinstance(source, bytes | bytearray):
        source = _decoded(bytes(source), max_bytes, where)
    elif isinstance(source, Path) or (isinstance(source, str) and not _is_json(source)):
        where = visible(str(source))
        source = _decoded(_bytes_of(Path(source), max_bytes), max_bytes, where)
    if isinstance(source, str):
        if len(source) > max_bytes:
            raise _too_large(len(source), max_bytes, where)
        source = _parsed(source, where)
    return _recording(source, where)


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _bytes_of(path: Path, max_bytes: int) -> bytes:
    where = visible(str(path))
    try:
        size = path.stat().st_size
        content = b"" if size > max_bytes else _beginning(path, max_bytes)
    except (OSError, ValueError) as error:
        raise LoadError(
            f"the recording cannot be read: {visible(str(error))}",
            code="cannot_read",
            where=where,
            fix="give the path of a file that can be opened",
        ) from error
    if size > max_bytes:
        raise _too_large(size, max_bytes, where)
    return content


def _beginning(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(max_bytes + 1)  # what is no plain file may hold more than it says


def _decoded(content: bytes, max_bytes: int, where: str) -> str:
    if len(content) > max_bytes:
        raise _too_large(len(content), max_bytes, where)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_json(f"the recording is no UTF-8 text: {visible(str(error))}", where) from None


def _not_json(message: str, where: str) -> LoadError:
    return LoadError(
        message,
        code="not_json",
        where=where,
        fix="write it with JSON.stringify, or recording.to_json()",
    )


def _parsed(text: str, where: str) -> Any:
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(f"the recording is no JSON: {visible(str(error))}", where) from None


def _recording(found: Any, where: str) -> Mapping[str, Any]:
    """Find the three parts, or say what was given in their place."""
    if not isinstance(found, Mapping):
        hint = " (a bare commit log, perhaps)" if isinstance(found, list) else ""
        raise _none(f"a {type(found).__name__}{hint} is no recording", where)
    if isinstance(found.get("snapshot"), Mapping):
        return found
    if "executionTree" in found or "commitLog" in found:
        raise _none(
            "this is a snapshot alone",
            where,
            "give {snapshot: it, events: [], structure: the chart's buildTimeStructure}",
        )
    if isinstance(found.get("format"), str):
        told = visible(found["format"][:80])
        raise _none(f"this is of the format {told!r}", where, "unpack it with what packed it")
    raise _none("snapshot is missing, or no mapping", where)


def _none(message: str, where: str, fix: str = _FIX) -> LoadError:
    return LoadError(f"no recording: {message}", code="not_a_recording", where=where, fix=fix)


def _too_large(size: int, most: int, where: str) -> LoadError:
    return LoadError(
        f"the recording has {size} bytes, and at most {most} are read",
        code="too_large",
        where=where,
        fix="raise max_bytes= if it may be as large as that",
    )


def _too_deep(where: str) -> LoadError:
    return LoadError(
        f"a value is nested more than {MAX_DEPTH} levels deep",
        code="too_deep",
        where=where,
        fix="record flatter values",
    )


def _check_depth(snapshot: Mapping[str, Any]) -> None:
    for where, part in _values_of(snapshot):
        if depth_of(part, MAX_DEPTH) > MAX_DEPTH:
            raise _too_deep(where)


def _values_of(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a snapshot that hold values, and not the run's own nesting."""
    for name in ("sharedState", "initialState", "commitLog", "recorders"):
        yield f"snapshot.{name}", snapshot.get(name)
    subflows = snapshot.get("subflowResults")
    for result in subflows.values() if isinstance(subflows, Mapping) else ():
        context = result.get("treeContext") if isinstance(result, Mapping) else None
        if isinstance(context, Mapping):
            for name in ("globalContext", "initialState", "history"):
                yield f"snapshot.subflowResults.{name}", context.get(name)


def _read(document: Mapping[str, Any], snapshot: Mapping[str, Any]) -> RecordedRun:
    own = own_record_in(snapshot)
    if own is None:
        return _published(document, snapshot)
    if "log" not in own and isinstance(own.get("missing"), str):
        why = f"The record itself is not carried: {own['missing']}."
        return _published(document, snapshot, OWN_ID, why)
    return _own(document, own)


def own_record_in(snapshot: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find our own record among what observers kept; None in a recording made elsewhere."""
    recorders = snapshot.get("recorders")
    for row in recorders if isinstance(recorders, list) else ():
        if isinstance(row, Mapping) and row.get("id") == OWN_ID:
            data = row.get("data")
            if isinstance(data, Mapping) and data.get("format") == OWN_FORMAT:
                return data
            raise LoadError(
                "the record inside is of a form this version cannot read",
                code="unknown_format",
                where="snapshot.recorders",
                fix=f"its format should be {OWN_FORMAT!r}; a newer version may read it",
            )
    return None


def _own(document: Mapping[str, Any], own: Mapping[str, Any]) -> RecordedRun:
    where = f"snapshot.recorders, {OWN_ID}"
    log, beside = read_log_with(own.get("log"))
    state, args, initial = (beside.get(name) for name in ("state", "args", "initial"))
    if not all(isinstance(part, FrozenDict) for part in (state, args, initial)):
        raise bad_part("state, args and initial are mappings", where)
    name, status = own.get("name"), own.get("status")
    if not isinstance(name, str) or status not in RUN_STATUSES:
        raise bad_part("name is a text, and status the word for how a run ended", where)
    hidden = own.get("hidden") is True
    if hidden:
        mask_log(log)
    return RecordedRun(
        document,
        name=name,
        status=str(status),
        log=log,
        structure=structure_as_written(own.get("structure"), f"{where}, structure"),
        state=state or {},
        args=args,
        initial=masked(initial) if hidden else initial,
        result=beside.get("result"),
        output=beside.get("output", MISSING),
        hidden=hidden,
        source=OWN_ID,
        error=_told(own, "error", where),
        pause=_told(own, "pause", where),
        ended_at=_told(own, "ended_at", where),
    )


#: What is shown of each of these.
_SHOWN: Final = {
    "error": ("type", "message"),
    "pause": ("reason",),
    "ended_at": ("stage", "stage_id", "runtime_stage_id"),
}


def _told(own: Mapping[str, Any], part: str, where: str) -> FrozenDict | None:
    value = own.get(part)
    if value is None:
        return None
    if not isinstance(value, dict) or not all(name in value for name in _SHOWN[part]):
        raise bad_part(f"{part} has {', '.join(_SHOWN[part])}", where)
    found: FrozenDict = freeze(value, part)
    return found


def _published(
    document: Mapping[str, Any],
    snapshot: Mapping[str, Any],
    source: str = "footprintjs",
    *notes: str,
) -> RecordedRun:
    structure = structure_of(document.get("structure"))
    rebuilt = rebuild(snapshot, structure)
    state = snapshot.get("sharedState")
    initial = snapshot.get("initialState")
    status, ending = rebuilt.status or UNTOLD, rebuilt.ending
    told = None if ending is None else ending[2]
    return RecordedRun(
        document,
        name=structure.name or "",
        status=status,
        log=rebuilt.log,
        structure=rebuilt.structure,
        state=freeze(state if isinstance(state, Mapping) else {}, "sharedState"),
        initial=freeze(initial if isinstance(initial, Mapping) else {}, "initialState"),
        source=source,
        error=told if status == "failed" else None,
        pause=told if status == "paused" else None,
        ended_at=None if ending is None else _place(*ending[:2]),
        not_carried=(*notes, *rebuilt.notes),
        executions=rebuilt.executions,
        hidden=rebuilt.hidden,
    )


def _place(ref: StageRef, execution: str) -> FrozenDict:
    return FrozenDict(stage=ref.name, stage_id=ref.id, runtime_stage_id=execution)
