"""The commit log: the net change each executed stage made, replayed from the log when asked for.

Record layer. One commit per executed stage, in order, changes or not. A key is in a commit only
when its value differs from the one it had before the stage first touched it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from runbook_nb._frozen import FrozenDict, Immutable
from runbook_nb._text import MISSING
from runbook_nb.record.log import Event, Log, StageRef
from runbook_nb.record.redact import Redactor
from runbook_nb.record.shapes import apply_change, work_out
from runbook_nb.record.walk import runtime_id

#: How each kind of change is called in a commit's trace.
_VERBS = {"write": "set", "update": "merge", "append": "append", "delete": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Immutable):
    """What one executed stage changed.

    Attributes
    ----------
    index : int
        Position in the log of its chart.
    stage, stage_id, runtime_stage_id : str
        The stage and this execution of it.
    status : {"ok", "failed", "paused"}
        How the stage ended.
    values : mapping
        Key -> value after the stage, for keys whose value changed; served (redacted).
    deleted : tuple of str
        Keys that were there before and are not any more.
    trace : tuple of (str, str)
        Every change made, in order: the key and one of set, merge, append, delete.
    redacted : tuple of str
        Keys of ``values`` whose value is hidden, whole or in part.
    """

    index: int
    stage: str
    stage_id: str
    runtime_stage_id: str
    status: str
    values: dict[str, Any] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    trace: tuple[tuple[str, str], ...] = ()
    redacted: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the commit in the published shape of a full commit log."""
        out: dict[str, Any] = {
            "idx": self.index,
            "stage": self.stage,
            "stageId": self.stage_id,
            "runtimeStageId": self.runtime_stage_id,
            "overwrite": {**self.values, **dict.fromkeys(self.deleted)},
            "updates": {},
            "redactedPaths": list(self.redacted),
            "trace": [{"path": key, "verb": verb} for key, verb in self.trace],
        }
        if self.status != "ok":
            out["status"] = self.status
        return out


def commits_of(
    log: Log,
    codes: Sequence[int],
    values: Sequence[Any],
    redactor: Redactor,
    prefix: str = "",
    *,
    offset: int = 0,
) -> Iterator[Commit]:
    """Replay one track, whose values begin at an offset, into its commits."""
    state: dict[str, Any] = {}
    at_stage: list[Event] = []
    index = 0
    for event in work_out(log, codes).events:
        if event.code.kind == "stage" and at_stage:
            yield _commit(index, at_stage, values, offset, state, redactor=redactor, prefix=prefix)
            index, at_stage = index + 1, []
        at_stage.append(event)
    if at_stage and at_stage[0].code.kind == "stage":
        yield _commit(index, at_stage, values, offset, state, redactor=redactor, prefix=prefix)


def _commit(
    index: int,
    events: Sequence[Event],
    values: Sequence[Any],
    offset: int,
    state: dict[str, Any],
    *,
    redactor: Redactor,
    prefix: str,
) -> Commit:
    before: dict[str, Any] = {}
    growing: set[str] = set()
    trace: list[tuple[str, str]] = []
    status = "ok"
    for event in events:
        kind, key = event.code.kind, event.code.key
        if kind in _VERBS and key is not None:
            before.setdefault(key, state.get(key, MISSING))
            value = None if kind == "delete" else values[offset + event.at]
            apply_change(state, event.code, value, growing)
            trace.append((key, _VERBS[kind]))
        elif kind in ("error", "pause"):
            status = "failed" if kind == "error" else "paused"
    changed = {k: state[k] for k, old in before.items() if k in state and not _equal(state[k], old)}
    served = {key: redactor.value(key, value) for key, value in changed.items()}
    text = redactor.text
    ref: StageRef = events[0].code.stage
    return Commit(
        index=index,
        stage=text(ref.name),
        stage_id=text(ref.id),
        runtime_stage_id=text(runtime_id(prefix, ref.id, index)),
        status=status,
        values=FrozenDict({text(key): value for key, value in served.items()}),
        deleted=tuple(
            text(k) for k, old in before.items() if k not in state and old is not MISSING
        ),
        trace=tuple((text(key), verb) for key, verb in trace),
        redacted=tuple(
            text(key)
            for key, value in changed.items()
            if redactor.active and not _equal(served[key], value)
        ),
    )


def _equal(a: Any, b: Any) -> bool:
    """Compare structurally: NaN equals NaN, True is not 1.

    An object that cannot say equals only itself.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) and isnan(a) and isnan(b):
        return True
    try:
        return bool(a == b)
    except Exception:  # arrays and frames do not compare to one truth value
        return False
