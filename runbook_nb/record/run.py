"""The result of running a procedure: how it ended and every view of what was recorded.

Record layer. Views are served: what a redaction policy names is scrubbed in all of them. The
objects behind them (``raw_state``, the log) are for the engine and are never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import FrozenDict, handed_out
from runbook_nb._text import MISSING, counted, did_you_mean
from runbook_nb._view import Card
from runbook_nb.errors import NoSuchFanOut
from runbook_nb.record.contents import contents_of, marked_keys
from runbook_nb.record.counts import FanOutCounts, count_fan_out
from runbook_nb.record.log import FanOut, Log
from runbook_nb.record.redact import HIDES_NOTHING, Redact, Redactor
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.structure import Structure
from runbook_nb.record.walk import RecordedDecision, Walk

if TYPE_CHECKING:
    from runbook_nb.record.checkpoint import Resumed
    from runbook_nb.record.commits import CommitLog
    from runbook_nb.record.learning import Lesson
    from runbook_nb.record.recording import Recording
    from runbook_nb.record.redaction import RedactionReport
    from runbook_nb.record.slots import Slots
    from runbook_nb.record.why import Why
    from runbook_nb.widgets.explorer import Explorer

#: Views that are kept once they were made.
_SERVED: Final = (
    *("args", "initial", "state", "output", "walk", "commits", "fan_outs", "redaction"),
)

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
        raw_output: Any = MISSING,
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
        self._output = raw_output
        self._error = error
        self._pause = pause
        self._ended_at = ended_at
        self._initial = FrozenDict() if initial is None else initial
        self._resumable = resumable
        self._unredacted = False

    # -- served views ----------------------------------------------------------------------

    @cached_property
    def redactor(self) -> Redactor:
        """The run's policy, knowing every secret the run met under a hidden name."""
        marked = marked_keys(self._log)
        if self.policy is None and not marked:
            return HIDES_NOTHING
        plain = Redactor(self.policy, marked=marked)
        if not plain.active:
            return plain
        lesson = plain.lesson()
        for held in contents_of(self):
            paths = lesson.top if held.top else ()
            lesson.take(held.value, paths, any_item=held.any_item)
        return plain.taught(lesson)

    @cached_property
    def redaction(self) -> RedactionReport:
        """What is hidden in the views of this run and where it was met; never what it is.

        It names parts of the policy that met nothing, and says so where there is no policy.
        """
        from runbook_nb.record.redaction import report_of

        return report_of(self, unredacted=self._unredacted)

    def unredacted(self) -> Run:
        """Give this run with nothing hidden, for those who may see everything.

        It is the only way to views that hide nothing, and says so wherever it is shown. A run
        without policy and marked keys comes back as it is.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> chart = flow_chart("c", lambda s: s.set("token", "tk-48151623"), id="a").build()
        >>> run = chart.run_sync(redact={"keys": ["token"]})
        >>> run.state, run.unredacted().state
        ({'token': '[REDACTED]'}, {'token': 'tk-48151623'})
        """
        if not self.redactor.active:
            return self
        made = object.__new__(type(self))
        made.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name not in _SERVED}
        )
        made.policy = None
        made._unredacted = True
        made.redactor = Redactor(None)
        return made

    @property
    def is_unredacted(self) -> bool:
        """Whether this is a view that was asked to hide nothing."""
        return self._unredacted

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

    @cached_property
    def output(self) -> Any:
        """What the run gives, served: what its chart makes of the final state, else the state.

        None unless the run ended ``ok``.
        """
        if self.status != "ok":
            return None
        if self._output is MISSING:
            return self.state
        if isinstance(self._output, Mapping):
            given = {key: handed_out(value) for key, value in self._output.items()}
            return self.redactor.served(FrozenDict(given))
        return self.redactor.scrub(handed_out(self._output))

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The error that ended the run, as name, message, code and causes; None when none did."""
        return None if self._error is None else self.redactor.texts(self._error, ours=False)

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

    @cached_property
    def commits(self) -> CommitLog:
        """The net change of each executed stage of the chart, and the questions put to that.

        ``commits.whole()`` has mounted charts and branches too.
        """
        from runbook_nb.record.commits import log_of_run

        return log_of_run(self)

    def why(self, path: str, *, at: int | None = None) -> Why:
        """Say which reads led to a value of the state: ``run.why("subjects[3].age")``.

        Parameters
        ----------
        path : str
            A state key, or a place inside what it holds.
        at : int, optional
            The commit after which the value is looked at; the last one unless given.

        Raises
        ------
        PathError
            The path leads nowhere, or asks for many values at once.
        """
        return self.commits.why(path, at=at)

    @cached_property
    def fan_outs(self) -> tuple[FanOutCounts, ...]:
        """How the items of every fan-out of the root chart ended, in the order they ran."""
        return tuple(count_fan_out(fan).served_by(self.redactor) for fan in self._log.fan_outs())

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
            known = map(self.redactor.text, ran)
            raise NoSuchFanOut(
                f"no fan-out {stage_id!r} ran in {self.name!r}",
                where=stage_id,
                fix=did_you_mean(stage_id, known),
            )
        return Slots(ran[stage_id], self.redactor)

    @property
    def account(self) -> Mapping[str, Any] | None:
        """What an answer made of this run has to say, worked out anew from the record, served.

        Under ``verdicts``, ``report`` and ``coverage``, as such an answer is read from a state.
        None where nothing but the procedure itself can say it.
        """
        return None

    def rule_sets(self) -> list[Any]:
        """Every rule set that judged in this run, each once, in order of first judging; served."""
        return [self.redactor.rules(rules) for rules in self.raw_rule_sets()]

    def explore(self, subject: Any = None) -> Explorer:
        """Go through the walk row by row, beside its flowchart; a widget.

        Parameters
        ----------
        subject : object, optional
            Whose decision to begin at; by default that of the first subject.
        """
        explorer: Explorer = through("explore", self, subject)
        return explorer

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

    def _head(self) -> Card:
        from runbook_nb.record.outline import run_head

        return run_head(self)

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
    def raw_output(self) -> Any:
        """What the chart's contract gives, as it is; MISSING where it declares none. Not served."""
        return self._output

    @property
    def raw_ended_at(self) -> FrozenDict | None:
        """Where the run ended, as it is; not served."""
        return self._ended_at

    @property
    def raw_pause(self) -> FrozenDict | None:
        """What a paused run asked, as it is; not served."""
        return self._pause

    def learn(self, lesson: Lesson) -> None:
        """Make more secrets known to every view of the run, those asked for before included."""
        self.redactor = self.redactor.taught(lesson)
        for name in _SERVED:
            self.__dict__.pop(name, None)

    @property
    def raw_structure(self) -> Structure:
        """The structure as the author declared it; not served."""
        return self._structure

    def raw_rule_sets(self) -> list[Any]:
        """Give the rule sets that judged as they are; not served."""
        return list(self._judges)

    @cached_property
    def _judges(self) -> tuple[Any, ...]:
        first, _ = self.walk.decision_paths()
        # Nearly always it is one set, which need not be compared with itself.
        sets = {id(path.rules): path.rules for _, path in first}
        return tuple(dict.fromkeys(sets.values()))

    def branch_shapes(self, fan: FanOut) -> Iterator[tuple[int, Any]]:
        """Yield index and facts of each branch that began."""
        for index, shape in fan.begun():
            yield index, facts_of(self._log, shape)

    def summary(self) -> str:
        """Say how far the run came."""
        steps = counted(self.steps_executed, "step")
        return f"{self.status}, {steps}"
