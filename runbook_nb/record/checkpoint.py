"""What a paused run leaves behind: JSON that says what is asked, and from which it goes on.

Record layer. A checkpoint holds real values and the whole record so far, because the run must be
able to go on from it in another process; it is for the one who answers, never a served view. It
is read as something a stranger may have written: what does not fit is refused before anything
runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict, FrozenList, freeze, thaw
from runbook_nb._ids import digest
from runbook_nb._json import canonical, to_wire
from runbook_nb.errors import CheckpointError, DefinitionError, LoadError
from runbook_nb.record.counts import count_fan_out
from runbook_nb.record.log import Log
from runbook_nb.record.pauses import Place
from runbook_nb.record.redact import Redact, as_redact
from runbook_nb.record.slots import Slots
from runbook_nb.record.structure import Structure

if TYPE_CHECKING:
    from runbook_nb.record.run import Run

#: Written into every checkpoint.
CHECKPOINT_FORMAT: Final = "runbook_nb/checkpoint/2"


class Resumed(NamedTuple):
    """What a run goes on from.

    Attributes
    ----------
    log : Log
    args, initial : FrozenDict
        The run's input, and the state its first stage found.
    place : Place
        Where it stands.
    undeclared : tuple of (str, str)
        Branches taken that the chart did not declare.
    structure : str
        Digest of the chart's structure.
    met : Structure or None
        The structure with what was made while running; None when nothing was.
    policy : Redact or None
        What the views of the run hide; it goes on holding.
    """

    log: Log
    args: FrozenDict
    initial: FrozenDict
    place: Place
    undeclared: tuple[tuple[str, str], ...]
    structure: str
    met: Structure | None = None
    policy: Redact | None = None


def structure_digest(structure: Structure) -> str:
    """Tell charts apart by their stages and edges.

    Examples
    --------
    >>> structure_digest(Structure(name="c", nodes=()))[:8]
    'sha-256:'
    """
    return digest(canonical(structure.to_dict()))


def make_checkpoint(run: Run, resumed: Resumed) -> dict[str, Any]:
    """Make the checkpoint of a paused run.

    Parameters
    ----------
    run : Run
        With status ``paused``.
    resumed : Resumed
        What it goes on from.

    Returns
    -------
    dict
        ``{format, procedure, structure, paused_at, pause, args, state, steps_executed, fan_outs,
        place, undeclared, met, taken_back, record}``, and ``redact`` where there is a policy;
        plain JSON. ``args``, ``state`` and ``fan_outs`` are for the one who answers, with slots
        counted only; the run goes on from the ``record``, which holds every value as it is,
        members of enumerations as their values.

    Raises
    ------
    CheckpointError
        The state, the input or the record holds a value that JSON cannot carry; the message
        names it.
    """
    from runbook_nb.record.written import write_log

    _, state, _ = run.raw
    at = run.raw_ended_at or FrozenDict()
    answers: list[Any] = []
    place = _written_place(resumed.place, answers)
    beside = {"args": resumed.args, "initial": resumed.initial, "answers": FrozenList(answers)}
    hidden = {} if resumed.policy is None else {"redact": resumed.policy.to_dict()}
    return {
        "format": CHECKPOINT_FORMAT,
        "procedure": run.name,
        "structure": resumed.structure,
        "paused_at": {name: at.get(name) for name in ("stage", "stage_id", "runtime_stage_id")},
        "pause": thaw(run.raw_pause),
        "args": to_wire(resumed.args),
        "state": to_wire({key: _told(value) for key, value in state.items()}),
        "steps_executed": run.steps_executed,
        "fan_outs": [counts.to_dict() for counts in run.fan_outs],
        "place": place,
        "undeclared": [list(pair) for pair in resumed.undeclared],
        "met": None if resumed.met is None else resumed.met.to_dict(),
        # Only read for the secrets in it, which texts on the record may quote; in an order that
        # does not tell who was first where branches ran side by side.
        "taken_back": sorted(
            ([key, to_wire(value)] for key, value in resumed.log.taken_back), key=canonical
        ),
        "record": write_log(resumed.log, beside=beside),
        **hidden,
    }


def _told(value: Any) -> Any:
    # Slots are in the record whole, and would fill a checkpoint here a second time.
    if not isinstance(value, Slots):
        return value
    counts = count_fan_out(value.fan_out)
    return {name: getattr(counts, name) for name in ("items", "ok", "failed", "not_reached")}


def _written_place(place: Place, answers: list[Any]) -> dict[str, Any]:
    first = len(answers)
    answers.extend(place.answers)
    return {
        "levels": [[at, route] for at, route in place.levels],
        "kind": place.kind,
        "answers": list(range(first, len(answers))),
        "loops": [dict(counts) for counts in place.loops],
        "question": thaw(place.question),
        "pending": {
            str(index): _written_place(inner, answers) for index, inner in place.pending.items()
        },
    }


def read_checkpoint(
    checkpoint: Any, structure: Structure, name: str, rules: Iterable[Any] = ()
) -> Resumed:
    """Read a checkpoint back, for a chart of a structure and a name.

    Raises
    ------
    CheckpointError
        It is damaged, of another version, or of another chart.
    """
    from runbook_nb.record.written import read_log_with

    if not isinstance(checkpoint, Mapping):
        raise _bad(f"it is {type(checkpoint).__name__}, not a mapping", "checkpoint")
    if checkpoint.get("format") != CHECKPOINT_FORMAT:
        raise _bad(f"its format is {checkpoint.get('format')!r}", "format")
    if checkpoint.get("structure") != structure_digest(structure):
        raise CheckpointError(
            f"the checkpoint is of {checkpoint.get('procedure')!r} as it was when it paused, and "
            f"chart {name!r} has other stages",
            code="other_chart",
            where="structure",
            fix="resume with the chart that paused",
        )
    try:
        log, beside = read_log_with(checkpoint.get("record"), rules)
    except LoadError as error:
        raise _bad(error.message, error.where or "record") from error
    args, initial, answers = (beside.get(name) for name in ("args", "initial", "answers"))
    taken_back = checkpoint.get("taken_back", [])
    if not isinstance(taken_back, list) or not all(map(_is_pair, taken_back)):
        raise _bad("it is no list of keys with values", "taken_back")
    log.taken_back = [(pair[0], freeze(pair[1], "taken_back")) for pair in taken_back]
    for part, value in (("args", args), ("initial", initial)):
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise _bad("it is no mapping of names", part)
    if not isinstance(answers, list):
        raise _bad("they are no list", "answers")
    pairs = checkpoint.get("undeclared", [])
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
        for pair in pairs
    ):
        raise _bad("it is no list of pairs of texts", "undeclared")
    return Resumed(
        log,
        FrozenDict(args or {}),
        FrozenDict(initial or {}),
        _read_place(checkpoint.get("place"), answers, 0),
        tuple((pair[0], pair[1]) for pair in pairs),
        structure_digest(structure),
        _read_structure(checkpoint.get("met"), structure.name),
        _read_policy(checkpoint.get("redact")),
    )


def _read_structure(written: Any, name: str) -> Structure | None:
    if written is None:
        return None
    try:
        met = Structure.from_dict(written)
        fit = all(
            isinstance(word, str)
            for node in met.nodes
            for word in (node.key, node.id, node.name, node.kind)
        )
    except Exception as error:  # whatever a stranger wrote
        raise _bad("it is no structure", "met") from error
    if not fit or met.name != name:
        raise _bad("it is no structure of this chart", "met")
    return met


def _read_policy(written: Any) -> Redact | None:
    try:
        return as_redact(written)
    except DefinitionError as error:
        raise _bad(error.message, "redact") from error


def _read_place(written: Any, given: list[Any], depth: int) -> Place:
    if not isinstance(written, Mapping):
        raise _bad(f"it is {type(written).__name__}, not a mapping", "place")
    levels, kind = written.get("levels"), written.get("kind")
    if depth > 100:
        raise _bad("its branches nest more than 100 deep", "place")
    if not isinstance(levels, list) or not levels or not all(map(_is_level, levels)):
        raise _bad("its levels are no list of [stage, branch]", "place.levels")
    if kind not in ("ask", "question", "branches"):
        raise _bad(f"its kind is {kind!r}", "place.kind")
    answers, loops = written.get("answers", []), written.get("loops", [])
    if not isinstance(answers, list) or not all(
        type(number) is int and 0 <= number < len(given) for number in answers
    ):
        raise _bad("its answers are none of those carried", "place.answers")
    if not isinstance(loops, list) or not all(map(_is_counts, loops)):
        raise _bad("its loops are no list of counts", "place.loops")
    pending = written.get("pending", {})
    if not isinstance(pending, Mapping) or not all(str(key).isdigit() for key in pending):
        raise _bad("its branches are no mapping of numbers", "place.pending")
    if (kind == "branches") != bool(pending):
        raise _bad("it waits for branches and names none, or the other way round", "place.pending")
    asked = written.get("question")
    if not isinstance(asked, Mapping) or set(asked) != {"reason", "expects", "data"}:
        raise _bad("it holds no question", "place.question")
    if not all(map(_is_answer, (given[number] for number in answers))):
        raise _bad("one of its answers goes with no question", "place.answers")
    return Place(
        levels=tuple((level[0], level[1]) for level in levels),
        kind=kind,
        answers=tuple(given[number] for number in answers),
        loops=tuple(FrozenDict(counts) for counts in loops),
        pending={
            int(index): _read_place(inner, given, depth + 1) for index, inner in pending.items()
        },
        question=freeze(asked, "place.question"),
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)


def _is_answer(given: Any) -> bool:
    return isinstance(given, dict) and set(given) == {"question", "answer"}


def _is_level(level: Any) -> bool:
    return (
        isinstance(level, list)
        and len(level) == 2
        and type(level[0]) is int
        and (level[1] is None or isinstance(level[1], str))
    )


def _is_counts(counts: Any) -> bool:
    return isinstance(counts, Mapping) and all(
        isinstance(key, str) and type(count) is int and count >= 0 for key, count in counts.items()
    )


def _bad(why: str, where: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint cannot be read at {where}: {why}",
        code="bad_checkpoint",
        where=where,
        fix="pass run.checkpoint as it was given, or as it came out of JSON",
    )
