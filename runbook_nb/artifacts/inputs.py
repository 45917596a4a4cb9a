"""What is handed in to file a walk or a recording of a run. Pure: nothing is stored here."""

from __future__ import annotations

from typing import Any, Final

from runbook_nb._text import did_you_mean
from runbook_nb.artifacts.parcel import invalid, json_text, read_origin
from runbook_nb.errors import ArtifactError

#: Kind of a filed walk.
CHART_WALK_ARTIFACT_KIND: Final = "recording/chart-walk"
#: Kind of a filed recording of a whole run.
RECORDING_ARTIFACT_KIND: Final = "recording/run"
#: Kind of a filed walk that is whole: every row, in columns, packed or as an Arrow stream.
CHART_WALK_COLUMNS_ARTIFACT_KIND: Final = "recording/chart-walk-columns"
#: How the first two are written.
JSON_MEDIA_TYPE: Final = "application/json"
#: How a whole walk is written, by its form.
COLUMNS_MEDIA_TYPES: Final = {
    "columns": "application/zlib",
    "arrow": "application/vnd.apache.arrow.stream",
}

_SPELLINGS = {"toolName": "tool_name", "toolCallId": "tool_call_id", "runId": "run_id"}


def chart_walk_put_input(
    rows: Any,
    *,
    tool_name: str | None = None,
    tool_call_id: str | None = None,
    run_id: str | None = None,
    label: str | None = None,
    **wire: str | None,
) -> dict[str, Any]:
    """Give what files a walk.

    Parameters
    ----------
    rows : list or tuple
        The rows, as JSON values.
    tool_name, tool_call_id, run_id : str, optional
        Who ran it; also accepted as ``toolName``, ``toolCallId`` and ``runId``.
    label : str, optional
        A name for people; ``<tool_name> walk`` or ``chart walk`` without one.

    Raises
    ------
    ArtifactError
        ``unserializable_recording``: there are no rows, or JSON cannot carry them.

    Examples
    --------
    >>> chart_walk_put_input([{"step": 0}], tool_name="triage", tool_call_id="c1")
    {'kind': 'recording/chart-walk', 'mediaType': 'application/json', 'data': '[{"step":0}]', \
'label': 'triage walk', 'origin': {'toolCallId': 'c1'}}
    """
    given = {"tool_name": tool_name, "tool_call_id": tool_call_id, "run_id": run_id}
    named = _named(given, wire, "toolName", "toolCallId", "runId")
    if not isinstance(rows, list | tuple):
        raise _unserializable("the walk", f"its rows are a list, not a {type(rows).__name__}")
    fallback = f"{named['tool_name']} walk" if named["tool_name"] else "chart walk"
    return _put_input(CHART_WALK_ARTIFACT_KIND, "the walk", rows, label or fallback, named)


def chart_walk_columns_put_input(
    data: bytes,
    *,
    form: str = "columns",
    tool_name: str | None = None,
    tool_call_id: str | None = None,
    run_id: str | None = None,
    label: str | None = None,
    **wire: str | None,
) -> dict[str, Any]:
    """Give what files a whole walk, as `write_walk` wrote it.

    Parameters
    ----------
    data : bytes
        What was written.
    form : {"columns", "arrow"}
        In which form.
    tool_name, tool_call_id, run_id : str, optional
        Who ran it; also accepted as ``toolName``, ``toolCallId`` and ``runId``.
    label : str, optional
        A name for people; ``<tool_name> walk, whole`` or ``chart walk, whole`` without one.

    Raises
    ------
    ArtifactError
        ``invalid_artifact``: there are no bytes, or the form is none.

    Examples
    --------
    >>> chart_walk_columns_put_input(b"x", tool_name="triage")["mediaType"]
    'application/zlib'
    """
    given = {"tool_name": tool_name, "tool_call_id": tool_call_id, "run_id": run_id}
    named = _named(given, wire, "toolName", "toolCallId", "runId")
    if not isinstance(data, bytes):
        raise invalid(
            f"a whole walk is bytes, not a {type(data).__name__}",
            "data",
            "give what write_walk(run.walk) gave",
        )
    if form not in COLUMNS_MEDIA_TYPES:
        raise invalid(
            f"form is {form!r}",
            "form",
            did_you_mean(str(form), COLUMNS_MEDIA_TYPES) or "write 'columns' or 'arrow'",
        )
    fallback = f"{named['tool_name']} walk" if named["tool_name"] else "chart walk"
    put = {
        "kind": CHART_WALK_COLUMNS_ARTIFACT_KIND,
        "mediaType": COLUMNS_MEDIA_TYPES[form],
        "data": data,
        "label": label or f"{fallback}, whole",
    }
    return _with_origin(put, named)


def recording_put_input(
    recording: Any,
    *,
    run_id: str | None = None,
    tool_call_id: str | None = None,
    label: str | None = None,
    **wire: str | None,
) -> dict[str, Any]:
    """Give what files the recording of a whole run.

    Parameters
    ----------
    recording : mapping
        The recording, as a JSON value.
    run_id, tool_call_id : str, optional
        Which run and call it is of; also accepted as ``runId`` and ``toolCallId``.
    label : str, optional
        A name for people; ``run <run_id>`` or ``run recording`` without one.

    Raises
    ------
    ArtifactError
        ``unserializable_recording``: there is nothing, or JSON cannot carry it.

    Examples
    --------
    >>> recording_put_input({"events": []}, run_id="r1")["label"]
    'run r1'
    """
    given = {"tool_call_id": tool_call_id, "run_id": run_id}
    named = _named(given, wire, "toolCallId", "runId")
    if recording is None:
        raise _unserializable("the recording", "there is nothing to record")
    fallback = f"run {named['run_id']}" if named["run_id"] else "run recording"
    return _put_input(RECORDING_ARTIFACT_KIND, "the recording", recording, label or fallback, named)


def _named(
    given: dict[str, str | None], wire: dict[str, str | None], *accepted: str
) -> dict[str, str | None]:
    for spelling, value in wire.items():
        if spelling not in accepted:
            fix = did_you_mean(spelling, [*given, "label"])
            raise invalid(f"there is no argument {spelling!r}", spelling, fix)
        name = _SPELLINGS[spelling]
        if given[name] is not None and value is not None:
            raise invalid(f"{name} is given twice, in two spellings", name)
        given[name] = value if value is not None else given[name]
    return given


def _put_input(
    kind: str, what: str, data: Any, label: str, named: dict[str, str | None]
) -> dict[str, Any]:
    try:
        text = json_text(data, deep=True)
    except ArtifactError as error:
        raise _unserializable(what, error.message) from error
    put = {"kind": kind, "mediaType": JSON_MEDIA_TYPE, "data": text, "label": label}
    return _with_origin(put, named)


def _with_origin(put: dict[str, Any], named: dict[str, str | None]) -> dict[str, Any]:
    ids = {"runId": named["run_id"] or None, "toolCallId": named["tool_call_id"] or None}
    origin = read_origin(ids)
    return put if origin is None else {**put, "origin": dict(origin)}


def _unserializable(what: str, why: str) -> ArtifactError:
    return ArtifactError(
        f"{what} cannot be written as JSON: {why}",
        code="unserializable_recording",
        where="data",
    )
