"""The result of running a procedure: how it ended and every view of what was recorded.

Record layer. Views are served: what a redaction policy names is scrubbed in all of them. The
objects behind them (``raw_state``, the log) are for the engine and are never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import FrozenDict, handed_out
from runbook_nb._text import counted, did_you_mean
from runbook_nb._view import Card
from runbook_nb.errors import NoSuchFanOut
from runbook_nb.record.counts import FanOutCounts, count_fan_out
from runbook_nb.record.log import WIDTHS, Event, FanOut, Log, Track
from runbook_nb.record.redact import Redact, Redactor
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.structure import Structure
from runbook_nb.record.walk import RecordedDecision, Walk

if TYPE_CHECKING:
    from runbook_nb.record.checkpoint import Resumed
    from runbook_nb.record.commits import Commit
    from runbook_nb.record.recording import Recording
    from runbook_nb.record.slots import Slots

#: Every status a run can end with.
RUN_STATUSES: Final = ("ok", "absent", "failed", "cancelled", "limited", "paused")


class Run(Renderable):
    """One finished, stopped or paused run.

    Attributes
    ----------
    status : str
        One of `RUN_STATUSES`; ``ok`` also after ``scope.stop``.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> run = flow_chart("tiny", lambda s: s.set("n", 1), id="only").build().run_sync()
    >>> run.status, run.state, run.walk.steps_executed
    ('ok', {'n': 1}, 1)
    """

    def __init__(
        self,
        *,
        name: str,
        status: str,
        args: FrozenDict,
        log: Log,
        raw_state: dict[str, Any],
        raw_result: Any,
        structure: Structure,
        policy: Redact | None = None,
        error: FrozenDict | None = None,
        pause: FrozenDict | None = None,
        ended_at: FrozenDict | None = None,
        initial: FrozenDict | None = None,
        resumable: Resumed | None = None,
    ) -> None:
        self.status = status
        self.policy = policy
        self._name = name
        self._structure = structure
        self._args = args
        self._log = log
        self._state = FrozenDict(raw_state)
        self._result = raw_result
        self._error = error
        self._pause = pause
        self._ended_at = ended_at
        self._initial = FrozenDict() if initial is None else initial
        self._resumable = resumable

    # -- served views ----------------------------------------------------------------------

    @cached_property
    def redactor(self) -> Redactor:
        """The run's policy, knowing every secret text the run met under a hidden name."""
        plain = Redactor(self.policy)
        if not plain.active:
            return plain
        secrets = plain.secrets_in(self._args)
        for state, any_item in self._states():
            secrets |= plain.secrets_in(state, any_item=any_item)
        return Redactor(self.policy, secrets)

    def _states(self) -> Iterator[tuple[Any, bool]]:
        """Every value that was ever written, emitted, given or asked, under its key, every item.

        With each: whether it is one item of a list that stands for all of them.
        """
        yield self._initial, False
        for key, value in self._log.taken_back:
            yield {key: value}, False
        yield self._state, False
        for loose in (self._result, self._pause):
            if loose is not None:
                yield loose, False
        tracks: list[Track | FanOut] = [self._log.root]
        while tracks:
            track = tracks.pop()
            if isinstance(track, Track):
                yield from self._values_in(track.codes, track.values, 0, tracks)
                continue
            for item in track.items:
                yield FrozenDict(item=item), False
                if isinstance(item, Mapping):
                    yield item, False
            for index, shape in track.begun():
                yield from self._values_in(shape.codes, track.values, track.offsets[index], tracks)

    def _values_in(
        self, codes: Any, values: Any, offset: int, tracks: list[Track | FanOut]
    ) -> Iterator[tuple[Any, bool]]:
        for event in self._log.events(codes):
            kind, key = event.code.kind, event.code.key
            value: Any = None if event.code.path is not None else _value_at(values, offset, event)
            if kind == "fan_out":
                tracks.append(value)
            elif kind == "enter":
                yield value, False
            elif kind in ("write", "update", "emit"):
                yield {key: value}, False
            elif kind == "append":
                yield {key: (value,)}, True
            elif kind in ("result", "choice", "choices", "pause", "resume", "streamed"):
                yield value, False

    @property
    def name(self) -> str:
        """The procedure's name."""
        return self.redactor.text(self._name)

    @property
    def structure(self) -> Structure:
        """What could have happened, with the branch charts the run met, served."""
        if not self.redactor.knows_secrets:
            return self._structure
        written = self._structure.to_dict()
        served = self.redactor.texts(written)
        return self._structure if served == written else Structure.from_dict(served)

    @cached_property
    def args(self) -> Any:
        """The run's input, served."""
        return self.redactor.served(self._args)

    @cached_property
    def state(self) -> Any:
        """The final state, served."""
        state = FrozenDict({key: handed_out(value) for key, value in self._state.items()})
        return self.redactor.served(state)

    @cached_property
    def initial(self) -> Any:
        """The state the first stage found, served."""
        return self.redactor.served(self._initial)

    @property
    def result(self) -> Any:
        """What the last stage returned, served."""
        if isinstance(self._result, Mapping):
            return self.redactor.served(self._result)
        return self.redactor.scrub(self._result)

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The error that ended the run, as name, message, code and causes; None when none did."""
        return None if self._error is None else self.redactor.texts(self._error)

    @property
    def pause(self) -> Mapping[str, Any] | None:
        """What a paused run asked, as ``reason`` and ``expects``, served; None unless paused."""
        return None if self._pause is None else self.redactor.scrub(self._pause)

    @property
    def ended_at(self) -> Mapping[str, Any] | None:
        """Where a run that did not end ``ok`` ended.

        As ``stage``, ``stage_id`` and ``runtime_stage_id``, served; the last is None where the
        run ended before the stage began. None when no stage can be named.
        """
        return None if self._ended_at is None else self.redactor.texts(self._ended_at)

    @cached_property
    def walk(self) -> Walk:
        """The recorded rows."""
        return Walk(self._log, name=self.name, structure=self.structure, redactor=self.redactor)

    @property
    def steps_executed(self) -> int:
        """How many stage executions there were."""
        return self.walk.steps_executed

    @property
    def decisions(self) -> list[RecordedDecision]:
        """Every decision made by rules, with its evidence and place."""
        return self.walk.decisions

    @property
    def commits(self) -> list[Commit]:
        """The net change of each executed stage of the root chart."""
        from runbook_nb.record.commits import commits_of

        root = self._log.root
        return list(commits_of(self._log, root.codes, root.values, self.redactor))

    @cached_property
    def fan_outs(self) -> tuple[FanOutCounts, ...]:
        """How the items of every fan-out of the root chart ended, in the order they ran."""
        return tuple(count_fan_out(fan) for fan in self._log.fan_outs())

    def slots(self, stage_id: str) -> Slots:
        """Give the slots of a fan-out by its stage id; the last execution of it.

        Raises
        ------
        LookupError
            No fan-out of that id ran.
        """
        from runbook_nb.record.slots import Slots

        ran = {fan.stage.id: fan for fan in self._log.fan_outs()}
        if stage_id not in ran:
            raise NoSuchFanOut(
                f"no fan-out {stage_id!r} ran in {self.name!r}",
                where=stage_id,
                fix=did_you_mean(stage_id, ran),
            )
        return Slots(ran[stage_id], self.redactor)

    def rule_sets(self) -> list[Any]:
        """Every rule set that judged in this run, each once, in order of first judging."""
        first, _ = self.walk.decision_paths()
        return list(dict.fromkeys(path.rules for _, path in first))

    # -- leaving the process ---------------------------------------------------------------

    @property
    def checkpoint(self) -> dict[str, Any] | None:
        """What a paused run waits for, as plain JSON with real values; None unless paused.

        A checkpoint is not a served view: it holds the state as it is.
        """
        if self._pause is None or self._resumable is None:
            return None
        from runbook_nb.record.checkpoint import make_checkpoint

        return make_checkpoint(self, self._resumable)

    def recording(self) -> Recording:
        """Give the run as the published ``{snapshot, events, structure}``, served."""
        from runbook_nb.record.recording import Recording

        return Recording.of(self)

    def view(self) -> Card:
        """Show how the run ended, then its walk."""
        from runbook_nb.record.outline import run_card

        return run_card(self)

    # -- for the layers above --------------------------------------------------------------

    @property
    def log(self) -> Log:
        """The log itself; not served, for those who build served views of it."""
        return self._log

    @property
    def raw(self) -> tuple[FrozenDict, FrozenDict, Any]:
        """Input, final state and result as they are; not served."""
        return self._args, self._state, self._result

    @property
    def raw_initial(self) -> FrozenDict:
        """The state the first stage found, as it is; not served."""
        return self._initial

    @property
    def raw_ended_at(self) -> FrozenDict | None:
        """Where the run ended, as it is; not served."""
        return self._ended_at

    @property
    def raw_pause(self) -> FrozenDict | None:
        """What a paused run asked, as it is; not served."""
        return self._pause

    def branch_shapes(self, fan: FanOut) -> Iterator[tuple[int, Any]]:
        """Yield index and facts of each branch that began."""
        for index, shape in fan.begun():
            yield index, facts_of(self._log, shape)

    def summary(self) -> str:
        """Say how far the run came."""
        steps = counted(self.steps_executed, "step")
        return f"{self.status}, {steps}"


def _value_at(values: Any, offset: int, event: Event) -> Any:
    return values[offset + event.at] if WIDTHS[event.code.kind] else None
