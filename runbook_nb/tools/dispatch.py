"""How a procedure's stages call other tools, and the log of what came back.

Tools layer. `InnerDispatch` is what a toolbox hands to a top-level call; `recording_dispatch`
wraps it for one run of a procedure, keeps a record of every call in the order the calls were
started, and turns an absence nobody asked to survive into a signal that ends the run.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NoReturn, Protocol, runtime_checkable

from runbook_nb._frozen import FrozenDict, freeze
from runbook_nb._json import to_wire
from runbook_nb._stop import Stop
from runbook_nb._text import MISSING, counted, did_you_mean
from runbook_nb._value import frozen, inner
from runbook_nb.artifacts import NoArtifacts
from runbook_nb.chart.standing import standing
from runbook_nb.coverage import Ledger, fold_declared, read_coverage_result
from runbook_nb.coverage.provenance import stamp_of
from runbook_nb.errors import (
    CheckpointError,
    DefinitionError,
    EngineError,
    RunbookError,
    RunSignal,
    ToolRefused,
    causes_of,
)
from runbook_nb.tools.context import Session, ToolContext
from runbook_nb.tools.gates import Credentials, check_arguments, issue_credential
from runbook_nb.tools.middleware import Middleware, ToolCall, pass_through
from runbook_nb.tools.tool import Tool, as_arguments

#: When a call started: its number, or that of the fan-out, the branch, and its number in that.
Moment = tuple[int, ...]

#: How many links of a cause chain `absence_signal_of` follows.
SIGNAL_HOPS: Final = 8

_MARK: Final = "is_runbook_absence"


@runtime_checkable
class ToolDispatch(Protocol):
    """The door to other tools that a call's context may hold."""

    def has(self, name: str) -> bool:
        """Say whether a tool can be called here."""
        ...

    async def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        signal: Stop | None = None,
        allow_absent: bool = False,
    ) -> Any:
        """Call a tool and give what it returned."""
        ...


class InnerDispatch:
    """Calls the tools of a catalogue on behalf of one outer call.

    Refuses, in this order: an unknown name, a tool that needs a person's consent, a tool that
    wants artifacts, arguments that do not fit. None of these uses up an inner call id. An inner
    call has no store and no door to further tools.

    Parameters
    ----------
    catalogue : mapping
        The tools by name, as they were when the outer call began.
    credentials : callable or None
        Issues what tools need.
    call_id, session, signal, progress, engine
        Those of the outer call; ``progress(call_id, tool, value)``.
    around : sequence of callable
        The middleware around each inner call, the first outermost.
    """

    def __init__(
        self,
        catalogue: Mapping[str, Tool],
        *,
        call_id: str,
        session: Session,
        credentials: Credentials | None = None,
        signal: Stop | None = None,
        progress: Callable[[str, str, Any], None] = lambda call_id, tool, value: None,
        engine: Any = None,
        around: Sequence[Middleware] = (),
    ) -> None:
        self._catalogue = dict(catalogue)
        self._call_id = call_id
        self._session = session
        self._credentials = credentials
        self._signal = signal
        self._progress = progress
        self._engine = engine
        self._around = around
        self._numbers = itertools.count(1)  # drawing from it is atomic

    def __reduce__(self) -> tuple[Any, ...]:
        return _Away, ()

    def __repr__(self) -> str:
        return f"<InnerDispatch to {counted(len(self._catalogue), 'tool')}>"

    def has(self, name: str) -> bool:
        """Say whether the catalogue holds a tool; those a provider delivers are not in it."""
        return name in self._catalogue

    def schema_of(self, name: str) -> Mapping[str, Any]:
        """Give the input schema of a tool; an empty one of a tool it does not hold."""
        tool = self._catalogue.get(name)
        return FrozenDict() if tool is None else tool.input_schema

    async def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        signal: Stop | None = None,
        allow_absent: bool = False,
    ) -> Any:
        """Call a tool; its answer comes back exactly as it was returned.

        Raises
        ------
        ToolRefused
            The call may not be made from inside another; the body was not entered.
        """
        tool = self._allowed(name)
        given = as_arguments(args, name)
        check_arguments(tool, given)
        call = ToolCall(
            tool=tool,
            args=given,
            call_id=f"{self._call_id}#inner-{next(self._numbers)}",
            session=self._session,
            signal=self._signal if signal is None else signal,
            parent=self._call_id,
        )
        return await pass_through(self._around, call, self._enter)

    async def _enter(self, call: ToolCall) -> Any:
        tool, call_id = call.tool, call.call_id
        if self._around:  # it may have passed on others
            check_arguments(tool, call.args)
        credential = await issue_credential(tool, self._credentials)
        ctx = ToolContext(
            call_id=call_id,
            session=self._session,
            artifacts=NoArtifacts(),
            signal=call.signal,
            credential=credential,
            engine=self._engine,
            progress=lambda value: self._progress(call_id, tool.name, value),
        )
        return await tool.execute(call.args, ctx)

    def _allowed(self, name: Any) -> Tool:
        tool = self._catalogue.get(name) if isinstance(name, str) else None
        if tool is None:
            near = did_you_mean(name, self._catalogue) if isinstance(name, str) else None
            _refuse_inner(
                name,
                "unknown_tool",
                "is not known here; tools a provider delivers cannot be called from inside a call",
                near or "register it, or let a skill carry it",
            )
        if tool.check_in is not None:
            _refuse_inner(
                name,
                "inner_check_in",
                "asks a person first; an inner call cannot pause for the answer, and would skip "
                "the consent the tool declares",
                "call it on its own",
            )
        if tool.wants:
            _refuse_inner(
                name,
                "inner_wants",
                "wants artifacts; references are not resolved for an inner call",
                "call it on its own, or give an inner tool the data itself",
            )
        return tool


def _refuse_inner(name: Any, code: str, why: str, fix: str) -> NoReturn:
    raise ToolRefused(
        f"inner tool {name!r} {why}", code=code, where=str(name), fix=fix, facts={"tool": name}
    )


@frozen
class InnerCallRecord:
    """One call a procedure made to another tool.

    Attributes
    ----------
    tool : str
        Which tool.
    outcome : {"ok", "absent", "error"}
        How it ended.
    result : object
        What it returned; `MISSING` after an error.
    args : mapping
        What it was given.
    """

    tool: str
    outcome: Literal["ok", "absent", "error"]
    result: Any = MISSING
    args: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


class RunbookAbsenceSignal(RunSignal):
    """Ends a run whose inner tool found nothing, so that nothing is concluded from it.

    Attributes
    ----------
    absence : mapping
        The answer as the inner tool returned it, any ledger around it included.
    tool : str
        Which tool returned it.
    """

    run_status = "absent"
    is_runbook_absence = True

    def __init__(self, absence: Any, tool: str) -> None:
        super().__init__(f"tool {tool!r} found nothing, so the run ends with its answer")
        self.absence = absence
        self.tool = tool

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.absence, self.tool))


def absence_signal_of(error: BaseException) -> RunbookAbsenceSignal | None:
    """Find the absence that ended a run, in an error or what it came from.

    Recognised by its marker, not its class, at most eight links deep.

    Examples
    --------
    >>> signal = RunbookAbsenceSignal({"af_absent": True}, "inventory")
    >>> wrapped = ValueError("stage failed"); wrapped.__cause__ = signal
    >>> absence_signal_of(wrapped) is signal, absence_signal_of(KeyError("x")) is None
    (True, True)
    """
    for one in causes_of(error, SIGNAL_HOPS):
        if _marked(one):
            return one  # type: ignore[return-value]
    return None


def _marked(error: BaseException) -> bool:
    try:
        return getattr(error, _MARK, None) is True and hasattr(error, "absence")
    except Exception:  # a foreign error's attributes may raise
        return False


@dataclass(slots=True, kw_only=True)
class RecordedDispatch:
    """One run's door to other tools, and what went through it.

    Attributes
    ----------
    tools : ToolDispatch
        Given to the procedure.
    """

    tools: ToolDispatch
    # Keyed by the order of starting; a counter and a dict are safe to share between threads.
    _ended: dict[Moment, InnerCallRecord] = field(default_factory=dict)
    _signals: dict[Moment, RunbookAbsenceSignal] = field(default_factory=dict)
    # What each answer declared as it came: the procedure holds the same object, and may change it.
    _heard: dict[Moment, tuple[Ledger, Any]] = field(default_factory=dict)

    @property
    def records(self) -> list[InnerCallRecord]:
        """The calls that have ended, in the order they were started."""
        return [self._ended[place] for place in sorted(self._ended)]

    @property
    def remembered(self) -> RunbookAbsenceSignal | None:
        """The absence of the earliest-started call that was not asked to survive one.

        It is kept here because author code may catch the signal, and a best-effort branch does.
        """
        return self._signals[min(self._signals)] if self._signals else None


def declared_by(recorded: RecordedDispatch) -> Ledger:
    """Fold what the answers declared when they came, in the order the calls were started."""
    heard = recorded._heard
    return Ledger().merge(*(heard[place][0] for place in sorted(heard)))


def stamp_carried(recorded: RecordedDispatch) -> Mapping[str, Any]:
    """Give the stamp to carry, as it came: that of the first call whose answer has one."""
    stamps = (recorded._heard[place][1] for place in sorted(recorded._heard))
    return next((stamp for stamp in stamps if stamp is not None), FrozenDict())


@inner(kw_only=False)
class EarlierCall:
    """A call made before a procedure paused: how it ended, what it gave, what that declared."""

    record: InnerCallRecord
    declared: Ledger
    stamp: Any


def written_calls(recorded: RecordedDispatch | None) -> list[dict[str, Any]]:
    """Write the calls made so far as JSON, for the checkpoint of a procedure that pauses.

    What JSON cannot carry of a result is replaced by its type's name: nothing computes with it
    any more, it is searched for secrets.
    """
    if recorded is None:
        return []
    written = []
    for place in sorted(recorded._ended):
        record = recorded._ended[place]
        call: dict[str, Any] = {"tool": record.tool, "outcome": record.outcome}
        if record.result is not MISSING:
            call["result"] = to_wire(record.result)
        if place in recorded._heard:
            ledger, stamp = recorded._heard[place]
            call["declared"] = ledger.to_dict()
            call["stamp"] = to_wire(stamp)
        written.append(call)
    return written


def read_calls(checkpoint: Any, tool: str) -> list[EarlierCall]:
    """Read the calls out of the checkpoint of a tool.

    Raises
    ------
    CheckpointError
        It is no checkpoint, or is of another tool.
    """
    if not isinstance(checkpoint, Mapping):
        raise CheckpointError(
            f"a checkpoint is a mapping, not {type(checkpoint).__name__}",
            code="bad_checkpoint",
            where="checkpoint",
        )
    if checkpoint.get("tool") != tool:
        raise CheckpointError(
            f"the checkpoint is of tool {checkpoint.get('tool')!r}, not of {tool!r}",
            code="other_tool",
            where="tool",
            fix="resume the tool that paused",
        )
    calls = checkpoint.get("calls", [])
    if not isinstance(calls, list):
        raise _bad_calls(f"they are {type(calls).__name__}, not a list")
    return [_read_call(call) for call in calls]


def _read_call(call: Any) -> EarlierCall:
    if (
        not isinstance(call, Mapping)
        or not isinstance(call.get("tool"), str)
        or call.get("outcome") not in ("ok", "absent", "error")
    ):
        raise _bad_calls("one of them is no call")
    stamp = call.get("stamp")
    return EarlierCall(
        InnerCallRecord(
            tool=call["tool"],
            outcome=call["outcome"],
            result=freeze(call["result"], "result") if "result" in call else MISSING,
        ),
        Ledger.from_dict(call.get("declared")),
        freeze(stamp, "stamp") if isinstance(stamp, Mapping) else None,
    )


def _bad_calls(why: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint's calls cannot be read: {why}",
        code="bad_checkpoint",
        where="calls",
        fix="pass error.checkpoint as it was given, or as it came out of JSON",
    )


def recording_dispatch(
    delivered: ToolDispatch | None, name: str, earlier: Sequence[EarlierCall] = ()
) -> RecordedDispatch:
    """Wrap a call's door to other tools for one run of a procedure.

    Parameters
    ----------
    delivered : ToolDispatch or None
        What the context held.
    name : str
        The procedure's tool, for messages.
    earlier : sequence of EarlierCall
        The calls made before it paused, where it goes on.

    Returns
    -------
    RecordedDispatch
        Its ``tools`` raise `RunbookAbsenceSignal` when a tool found nothing, unless the call says
        ``allow_absent=True``.

    Examples
    --------
    >>> recording_dispatch(None, "triage").tools.has("inventory")
    False
    """
    recorded = RecordedDispatch(tools=_Undelivered(name))
    for place, call in enumerate(earlier):
        recorded._ended[place,] = call.record
        recorded._heard[place,] = (call.declared, call.stamp)
    if delivered is None:
        return recorded
    # What it records into is not what holds it, which would keep itself alive.
    return replace(recorded, tools=_Recorder(delivered, recorded))


class _Recorder:
    """Passes calls on and records them."""

    def __init__(self, delivered: ToolDispatch, into: RecordedDispatch) -> None:
        self._delivered = delivered
        self._into = into
        self._places = itertools.count(len(into._ended))
        self._fans: dict[object, int] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Away, ()

    def __repr__(self) -> str:
        return f"<recording {self._delivered!r}>"

    def _moment(self) -> Moment:
        """Say when a call starts; of branches on workers, as if they ran in their order."""
        here = standing.get()
        if here is None:
            return (next(self._places),)
        with self._lock:
            if here.fan not in self._fans:
                self._fans[here.fan] = next(self._places)
        return self._fans[here.fan], here.index, next(here.numbers)

    def has(self, name: str) -> bool:
        return self._delivered.has(name)

    async def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        signal: Stop | None = None,
        allow_absent: bool = False,
    ) -> Any:
        place, ended = self._moment(), self._into._ended
        given = {} if args is None else args
        try:
            result = await self._delivered.call(name, given, signal=signal)
        except BaseException:
            ended[place] = InnerCallRecord(tool=name, outcome="error", args=given)
            raise
        reading = read_coverage_result(result)
        self._into._heard[place] = (fold_declared([result]), _kept_stamp(result))
        if reading is None or reading.status != "absent":
            ended[place] = InnerCallRecord(tool=name, outcome="ok", result=result, args=given)
            return result
        ended[place] = InnerCallRecord(tool=name, outcome="absent", result=result, args=given)
        if allow_absent is True:
            return result
        self._into._signals[place] = RunbookAbsenceSignal(result, name)
        raise self._into._signals[place]


class _Away:
    """Stands for the door to other tools in a process that it does not lead out of."""

    def has(self, name: str) -> bool:
        raise _needs_dispatch(name)

    async def call(self, name: str, *_: Any, **__: Any) -> NoReturn:
        raise _needs_dispatch(name)


def _needs_dispatch(name: str) -> EngineError:
    here = standing.get()
    error = EngineError(
        f"the branch needs the dispatch of its run, for tool {name!r}, and ran in another process "
        "(needs_dispatch)",
        code="needs_dispatch",
        where=name,
        fix="run it with engine='threads', or call the tool before the fan-out",
    )
    if here is not None:
        here.refuse(f"EngineError: {error}")
    return error


def _kept_stamp(result: Any) -> Any:
    carried = stamp_of(result)
    try:
        return freeze(carried, "af_provenance")
    except RunbookError:  # what cannot be copied is told by its type when the answer is written
        return dict(carried or {})


class _Undelivered:
    """Stands where no door to other tools was delivered."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<no tools delivered to {self._name!r}>"

    def has(self, name: str) -> bool:
        return False

    async def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        signal: Stop | None = None,
        allow_absent: bool = False,
    ) -> Any:
        raise ToolRefused(
            f"runbook {self._name!r} called {name!r}, but no tool dispatch was delivered to it",
            code="no_dispatch",
            where=self._name,
            fix=(
                "register both in a Toolbox and call the runbook through it, or put a dispatch on "
                "the context (ToolContext(tools=...))"
            ),
            facts={"runbook": self._name, "tool": name},
        )


class _Probe:
    """Stands in while a procedure is built once to see what it declares."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<stand-in for the tools of {self._name!r}>"

    def has(self, name: str) -> bool:
        return False

    # Not a coroutine function: one that nobody awaits would hide the misuse.
    def call(self, name: str, *_: Any, **__: Any) -> NoReturn:
        raise DefinitionError(
            f"the procedure of runbook {self._name!r} called {name!r} while it was being built; "
            "tools can be called only at execute time",
            code="called_while_building",
            where=self._name,
            fix="call tools inside stage functions",
        )


def probe_dispatch(name: str) -> ToolDispatch:
    """Give the stand-in a procedure is built with when its runbook is defined.

    Examples
    --------
    >>> probe_dispatch("triage").call("inventory", {})
    Traceback (most recent call last):
        ...
    runbook_nb.errors.DefinitionError: the procedure of runbook 'triage' called 'inventory' ...
    """
    return _Probe(name)
