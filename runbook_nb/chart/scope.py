"""What a stage sees: the state of its chart, read and written explicitly and on the record.

Chart layer. Reading and writing go through one object per executed stage; each is one entry in
the log. Values are frozen when written and handed out as they are, so nothing can change
recorded state behind the log's back. When the stage ends its scope closes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from runbook_nb._frozen import (
    ATOMS,
    KEPT,
    FrozenDict,
    FrozenList,
    deep_merge,
    freeze,
    handed_out,
    thaw,
)
from runbook_nb._json import encode
from runbook_nb._text import MISSING, did_you_mean
from runbook_nb.errors import (
    ChartError,
    CheckpointError,
    JsonError,
    MissingKey,
    RunSignal,
    ScopeClosed,
)

if TYPE_CHECKING:
    from runbook_nb.chart.plan import StagePlan
    from runbook_nb.chart.straight import Begun
    from runbook_nb.chart.streaming import Stream
    from runbook_nb.record.log import FanOut, Track


class InterruptSignal(RunSignal):
    """Raised by `interrupt`: ends the run paused, also where a stage catches it.

    Attributes
    ----------
    reason, expects, data : object
        The question, what an answer should look like, what else was given with it.
    place : object
        Where the run goes on; filled in by the engine on the way out.
    """

    run_status = "paused"

    def __init__(self, reason: str, expects: Any = None, data: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.expects = expects
        self.data = data
        self.place: Any = None
        #: Branches of one fan-out or fork that wait: index -> place inside the branch.
        self.pending: dict[int, Any] | None = None

    @property
    def question(self) -> FrozenDict:
        """What is asked, as it is recorded."""
        return FrozenDict(reason=self.reason, expects=self.expects, data=self.data)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ScopeClosed(
        "this scope belongs to a stage that has ended, so it can no longer be used",
        fix="do the reading and writing before the stage returns",
    )


class _Closed(dict[str, Any]):
    """Stands for what a scope worked on when its stage has ended: every use says so."""

    __getitem__ = __setitem__ = __delitem__ = __contains__ = __iter__ = __len__ = _refuse
    get = pop = append = extend = _refuse


#: Stands for the state, the codes and the values alike.
_CLOSED: Any = _Closed()


class Frame:
    """What the stages of one chart execution share: its track, its state, its input, its place.

    Attributes
    ----------
    track : Track
    state : dict
    args : FrozenDict
    path : str
        The structure key of the stage whose chart it is, ending in a slash, or empty.
    base : mapping or None
        The state it began with; a replay of its track begins there.
    around : tuple of (Frame, FanOut, int) or None
        The frame of the stage whose branch it is, and which.
    inherited : set of str or None
        In the child of a fork, the keys whose value is still the parent's.
    growing : set of str
        Keys whose list the stages made by appending, and which nobody has been handed since: it
        may grow as it is. Whoever takes the whole state elsewhere empties it.
    answers : tuple or None
        Answers for the stage that goes on after a pause.
    begun : Begun or None
        What the function of the present stage came to, where it was called elsewhere.
    loops : dict or None
        How often the chart went back to each stage.
    mounts : int
        How many charts lie around it in its own track.
    loopy : bool
        Whether the chart, or one around it in its own track, may go back at all.
    """

    __slots__ = (
        "answers",
        "args",
        "around",
        "base",
        "begun",
        "growing",
        "inherited",
        "loops",
        "loopy",
        "mounts",
        "path",
        "state",
        "track",
    )

    def __init__(
        self,
        track: Track,
        state: dict[str, Any],
        args: FrozenDict,
        path: str,
        around: tuple[Frame, FanOut, int] | None = None,
    ) -> None:
        self.track = track
        self.state = state
        self.args = args
        self.path = path
        self.around = around
        self.growing: set[str] = set()
        # One is made per branch, so what few of them need is set on those few.
        self.base: Mapping[str, Any] | None = None
        self.inherited: set[str] | None = None
        self.answers: tuple[Any, ...] | None = None
        self.begun: Begun | None = None
        self.loops: dict[str, int] | None = None
        self.mounts = 0
        self.loopy = False

    @property
    def prefix(self) -> str:
        """What the runtime ids of its track begin with."""
        if self.around is None:
            return ""
        frame, fan, index = self.around
        return fan.path(frame.prefix, index)

    @property
    def looping(self) -> bool:
        """Whether it, or a chart around it, may go back at all."""
        return self.loopy or (self.around is not None and self.around[0].looping)

    @property
    def nested(self) -> int:
        """How many tracks lie around it."""
        return 0 if self.around is None else 1 + self.around[0].nested

    @property
    def depth(self) -> int:
        """How many charts lie around it."""
        if self.around is None:
            return self.mounts
        return self.mounts + self.around[0].depth + int(self.around[1].is_fan_out)


class Scope(Mapping[str, Any]):
    """The state of a chart as one stage sees it.

    ``scope["key"]`` reads, ``scope["key"] = value`` writes, ``scope.args`` holds the run's input
    apart from state. Inside a fan-out branch ``scope.args`` is ``{"item": …, "index": …}`` and
    the state is the branch's own. Setters return None.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> def count(scope):
    ...     scope["seen"] = len(scope.args["rows"])
    >>> flow_chart("count", count, id="count").build().run_sync({"rows": [1, 2]}).state
    {'seen': 2}
    """

    __slots__ = (
        "_args",
        "_codes",
        "_data",
        "_growing",
        "_inherited",
        "_looked",
        "_plan",
        "_values",
        "answers",
        "stopped",
        "streaming",
    )

    def __init__(self, frame: Frame, plan: StagePlan) -> None:
        self._data = frame.state
        self._codes = frame.track.codes
        self._values = frame.track.values
        self._plan = plan
        self._growing = frame.growing
        self._args = frame.args
        self._looked = False
        self._inherited = frame.inherited
        #: The reason given to `stop`, in a one-element tuple, or the signal of `interrupt`.
        self.stopped: tuple[str | None] | InterruptSignal | None = None
        #: Answers to the questions that this execution asks next.
        self.answers = frame.answers
        #: Where the tokens of a streaming stage go.
        self.streaming: Stream | None = None

    @property
    def args(self) -> Mapping[str, Any]:
        """The input of the run, frozen; ``{"item", "index"}`` inside a branch of a fan-out.

        Looking at it is on the record, once per stage.
        """
        if not self._looked:
            self._codes.append(self._plan.args_code)
            self._looked = True
        return self._args

    # -- reading ---------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        self._codes.append(self._plan.read_codes[key])
        if self._growing:
            self._growing.discard(key)
        value = self._data.get(key, MISSING)
        if value is MISSING:
            raise MissingKey(
                f"stage {self._plan.ref.name!r} read {key!r}, which nobody has written",
                where=key,
                fix=did_you_mean(str(key), map(str, self._data))
                or 'use scope.get("key", default) where a key may be missing',
            )
        return value if value.__class__ in KEPT else handed_out(value)

    def get(self, key: str, default: Any = None) -> Any:
        """Read a key, or give ``default`` when nobody has written it."""
        self._codes.append(self._plan.read_codes[key])
        if self._growing:
            self._growing.discard(key)
        value = self._data.get(key, MISSING)
        if value is MISSING:
            return default
        return value if value.__class__ in KEPT else handed_out(value)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        self._codes.append(self._plan.read_codes[key])
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._data))

    def __len__(self) -> int:
        return len(self._data)

    def read(self, path: str, default: Any = MISSING) -> Any:
        """Read a value inside another: ``scope.read("plan.hosts[0].name")``.

        The read of the first key is on the record.

        Parameters
        ----------
        path : str
            Names joined by dots, positions of lists in brackets. A key that is itself spelt with
            dots comes first.
        default : object, optional
            What to give where nothing is there; without it that is an error.

        Raises
        ------
        MissingKey, PathError
            Naming the part that is not there, and what is there instead.
        """
        from runbook_nb.record.lookup import follow, must_follow, path_of

        key, steps = path_of(path, self._data)
        if default is MISSING:
            return must_follow(self[key], key, steps)
        found = follow(self.get(key, MISSING), steps)
        return default if found is MISSING else found

    def facts_for_rules(self) -> tuple[dict[str, Any], Callable[[Iterable[str]], None]]:
        """Give rules the raw state to read and a function that records which keys they read."""
        if self._data is _CLOSED:
            _refuse()
        self._growing.clear()
        return self._data, self._note_reads

    def _note_reads(self, keys: Iterable[str]) -> None:
        codes = self._plan.read_codes
        self._codes.extend([codes[key] for key in keys])

    # -- writing ---------------------------------------------------------------------------

    def __setitem__(self, key: str, value: Any) -> None:
        cls = value.__class__
        if cls not in ATOMS:
            value = freeze(value, key)
        code = self._plan.write_codes[key]
        self._codes.append(code)
        self._values.append(value)
        self._data[key] = value
        if self._growing:
            self._growing.discard(key)
        if self._inherited:
            self._inherited.discard(key)

    def set(self, key: str, value: Any, *, secret: bool = False) -> None:
        """Write a key (the same as ``scope[key] = value``, for use inside an expression).

        With ``secret`` what stands under the key is hidden in every view of the run, from its
        beginning to its end, with no policy needed and also once the key is deleted.
        """
        if secret:
            # Marked first: a value that cannot be recorded is told of in an error.
            self._codes.append(self._plan.code("secret", key))
        if value.__class__ in ATOMS and not self._growing and not self._inherited:
            # The same as below, a call less: it is what small stages do.
            self._codes.append(self._plan.write_codes[key])
            self._values.append(value)
            self._data[key] = value
            return
        self[key] = value

    def update(self, values: Mapping[str, Any]) -> None:
        """Write every key of a mapping, in its order.

        Raises
        ------
        ChartError
            When ``values`` is not a mapping.
        """
        cls = values.__class__
        rows = cls is FrozenDict or (cls is dict and ATOMS.issuperset(map(type, values.values())))
        if rows and values and not self._growing and not self._inherited:
            keys = tuple(values)
            codes = self._plan.layouts.get(keys) or self._plan.layout_codes(keys)
            if codes is not None:
                self._codes.extend(codes)
                self._values.extend(values.values())
                self._data.update(values)
                return
        if not isinstance(values, Mapping):
            raise ChartError(
                f"scope.update takes a mapping, not {type(values).__name__}",
                where=self._plan.ref.id,
                fix='write scope["key"] = value for a single value',
            )
        for key, value in values.items():
            self[key] = value

    def merge(self, key: str, partial: Mapping[str, Any]) -> None:
        """Merge a partial mapping into a key: nested mappings key by key, the rest replaced."""
        if not isinstance(partial, Mapping):
            raise ChartError(
                f"scope.merge takes a mapping, not {type(partial).__name__}",
                where=str(key),
                fix='write scope["key"] = value to replace the whole value',
            )
        code = self._plan.code("update", key)
        partial = freeze(partial, key)
        merged = freeze(deep_merge(self._data.get(key), partial), key)
        if self._inherited and key in self._inherited:
            self[key] = merged
            return
        self._codes.append(code)
        self._values.append(partial)
        self._data[key] = merged
        self._growing.discard(key)

    def append(self, key: str, item: Any) -> None:
        """Append an item to a list; a key nobody has written starts as an empty list."""
        code = self._plan.code("append", key)
        item = freeze(item, key)
        old: Any = self._data.get(key, ())
        if old != () and not isinstance(old, list):
            raise ChartError(
                f"scope.append needs a list under {key!r}, not {type(old).__name__}",
                where=key,
                fix="write the key as a list first",
            )
        if self._inherited and key in self._inherited:
            self[key] = FrozenList([*old, item])
            return
        self._codes.append(code)
        self._values.append(item)
        if key in self._growing:
            list.append(self._data[key], item)
        else:
            self._data[key] = FrozenList([*old, item])
            self._growing.add(key)

    def delete(self, key: str) -> None:
        """Remove a key; removing one that is not there is an error."""
        if key not in self._data:
            raise MissingKey(
                f"stage {self._plan.ref.name!r} deleted {key!r}, which nobody has written",
                where=key,
                fix=did_you_mean(str(key), map(str, self._data)),
            )
        self._codes.append(self._plan.code("delete", key))
        del self._data[key]
        self._growing.discard(key)
        if self._inherited:
            self._inherited.discard(key)

    __delitem__ = delete

    # -- the rest --------------------------------------------------------------------------

    def emit(self, name: str, payload: Any = None) -> None:
        """Put an event of the procedure's own on the record."""
        code = self._plan.code("emit", name)
        payload = freeze(payload, name)
        self._codes.append(code)
        self._values.append(payload)

    def stream(self, token: str) -> None:
        """Give a piece of the text of a streaming stage to whoever listens.

        Raises
        ------
        ChartError
            The stage is no streaming one, or the token is no text.
        """
        if self._data is _CLOSED:
            _refuse()
        if self.streaming is None:
            raise ChartError(
                f"stage {self._plan.ref.name!r} streams, and is no streaming stage",
                where=self._plan.ref.id,
                fix="add it with add_streaming",
            )
        if not isinstance(token, str):
            raise ChartError(
                f"a streamed token is a text, not {type(token).__name__}", where=self._plan.ref.id
            )
        self.streaming.token(token)

    def stop(self, reason: str | None = None) -> None:
        """End this chart after the present stage, as a success; the first reason counts.

        In a branch of a fan-out, a fork or a selector only the branch ends.
        """
        if self._data is _CLOSED:
            _refuse()
        if self.stopped is None:
            self.stopped = (None if reason is None else str(reason),)

    def close(self) -> None:
        """Take away what a scope works on: its stage has ended."""
        self._data = self._codes = self._values = _CLOSED

    def __repr__(self) -> str:
        name = self._plan.ref.name
        if self._data is _CLOSED:
            return f"<Scope of {name!r}, ended>"
        return f"<Scope of {name!r}, keys {', '.join(map(str, self._data)) or 'none'}>"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def interrupt(scope: Scope, reason: str, expects: Any = None, data: Any = None) -> Any:
    """Ask a question from outside, and give its answer.

    Where the answer is not known yet the run ends with status ``paused`` and a JSON checkpoint
    that says what is being asked. When it goes on, the stage runs again from its top: what it had
    written before the question was not kept, and this call gives the answer. A stage may ask more
    than once. An answer belongs to the words of its question: where they are others the next time,
    because a count in them changed, say, the new question is asked.

    Parameters
    ----------
    scope : Scope
        The scope of the stage that asks.
    reason : str
        The question.
    expects, data : object, optional
        What an answer should look like; what the one who answers needs to know. Plain JSON data.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> chart = flow_chart("gate", lambda s: interrupt(s, "restart the node?"), id="ask").build()
    >>> run = chart.run_sync()
    >>> run.status, run.checkpoint["pause"]["reason"]
    ('paused', 'restart the node?')
    """
    if not isinstance(scope, Scope):
        raise ChartError(
            f"interrupt needs the stage's scope first, not {type(scope).__name__}",
            fix='write rb.interrupt(scope, "the question")',
        )
    if scope._data is _CLOSED:
        _refuse()
    answers = scope.answers or ()
    for place, given in enumerate(answers):
        if given["question"] == str(reason):
            scope.answers = (*answers[:place], *answers[place + 1 :])
            return given["answer"]
    signal = InterruptSignal(str(reason), question_part(expects, "expects"), None)
    signal.data = question_part(data, "data")
    # Left with the scope too: a stage that catches everything must not swallow the question. The
    # first one is what the run asks, because its answer is what the first call gives.
    if scope.stopped.__class__ is not InterruptSignal:
        scope.stopped = signal
    raise signal


def question_part(value: Any, name: str) -> Any:
    """Freeze a part of a question, which has to go through JSON.

    Raises
    ------
    CheckpointError
        It cannot.
    """
    try:
        encode(thaw(freeze(value, name)))
    except JsonError as error:
        raise CheckpointError(
            f"interrupt was given {name} that JSON cannot carry: {error}",
            where=f"interrupt {name}",
            fix="pass plain texts, numbers, lists and mappings",
        ) from error
    return freeze(value, name)


def frozen_args(args: Mapping[str, Any] | None, what: str = "input") -> FrozenDict:
    """Freeze a run's input, or whatever else is given by name."""
    if args is None:
        return FrozenDict()
    if not isinstance(args, Mapping):
        raise ChartError(
            f"the {what} of a run is a mapping of names to values, not {type(args).__name__}",
            fix='pass {"name": value}',
        )
    names: list[Any] = list(args)
    strange = next((name for name in names if not isinstance(name, str)), None)
    if strange is not None:
        raise ChartError(
            f"the {what} of a run has the name {strange!r}; names are texts",
            fix=f"write {str(strange)!r}",
        )
    return FrozenDict({name: freeze(value, name) for name, value in args.items()})


__all__ = ["InterruptSignal", "MissingKey", "Scope", "ScopeClosed", "interrupt"]
