"""Every error the package raises: one tree, stable codes, a fix in each message.

Base layer. An error says what happened, which name it
concerns (``where``) and what to write instead (``fix``); ``code`` is stable across versions, so
callers may branch on it. Texts of others get into messages, so as text an error shows control
characters as escapes; ``message`` keeps them. Signals that end a run on purpose derive from
`RunSignal`: they are never turned into an empty slot, a failed branch or a success.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from runbook_nb._text import visible
from runbook_nb._value import frozen

#: How many links of a cause chain an error description follows.
MAX_CAUSES = 3

#: Longest message kept of a foreign error, in characters.
MAX_MESSAGE = 500


@frozen
class Problem:
    """One thing wrong with a definition, among possibly several found together.

    Attributes
    ----------
    message : str
        What is wrong.
    where : str or None
        The place, in the reader's terms (``"rules[2].when.age_days"``, ``"line 4"``).
    fix : str or None
        What to write instead.
    """

    message: str
    where: str | None = None
    fix: str | None = None

    @property
    def raw(self) -> str:
        """The text as it was written, for what is filed or redacted before it is shown."""
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}; {self.fix}" if self.fix else text

    def __str__(self) -> str:
        return visible(self.raw)


class RunbookError(Exception):
    """Base of every error the package raises on purpose.

    Parameters
    ----------
    message : str
        What happened, naming the thing it happened to.
    code : str, optional
        Stable identifier; defaults to the class's own.
    where : str, optional
        The name or place concerned.
    fix : str, optional
        What to write instead; appended to the message after a semicolon.
    problems : sequence of Problem, optional
        When several things are wrong they are reported together.

    Examples
    --------
    >>> str(RunbookError("rule set 'r' has no rules", fix="give at least one rule"))
    "rule set 'r' has no rules; give at least one rule"
    """

    code = "runbook_error"

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        where: str | None = None,
        fix: str | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.where = where
        self.fix = fix
        self.problems = tuple(problems)
        #: The run so far, when the error left a run. Set by the executor.
        self.run: Any = None

    @property
    def raw(self) -> str:
        """The text as it was written, for what is filed or redacted before it is shown.

        What is hidden in it is found by what it is, which what can be seen of it may not be.
        """
        told = [getattr(problem, "raw", None) or str(problem) for problem in self.problems]
        return _composed(self._said, told)

    @property
    def _said(self) -> str:
        return f"{self.message}; {self.fix}" if self.fix else self.message

    def __str__(self) -> str:
        text = self._said
        if not text.isprintable():  # lines are the writer's own
            text = "\n".join(map(visible, text.split("\n")))
        return _composed(text, list(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only constructors do not survive the default protocol; a worker process must be
        # able to send its error back whole.
        state = {k: v for k, v in self.__dict__.items() if k != "run"}
        return (_rebuild, (type(self), self.message), state)


def _rebuild(cls: type[RunbookError], message: str) -> RunbookError:
    error = cls.__new__(cls)
    RunbookError.__init__(error, message)
    return error


class DefinitionError(RunbookError, ValueError):
    """A declaration (tool, runbook, option) cannot be accepted."""

    code = "bad_definition"


class ChartError(DefinitionError):
    """A chart cannot be built, or a stage asked for something its chart does not have."""

    code = "bad_chart"


class RuleError(DefinitionError):
    """A rule set cannot be built or judged with."""

    code = "bad_rules"


class LoadError(DefinitionError):
    """A file or text could not be read into a definition."""

    code = "cannot_load"


class PlaybookError(RunbookError):
    """A playbook, its plan or its enforcer cannot do what was asked."""

    code = "playbook_error"


class NoPlan(PlaybookError, LookupError):
    """A plan was asked for where nothing is held to one."""

    code = "no_plan"


class PlaybookDefinitionError(PlaybookError, DefinitionError):
    """A playbook, a policy or what goes with them cannot be accepted as declared."""

    code = "bad_playbook"


class PlaybookLoadError(PlaybookError, LoadError):
    """A playbook could not be read from a file, a text or a mapping.

    Parameters
    ----------
    message : str
        What is wrong.
    path : str or path-like, optional
        The file it was to be read from.
    errors : sequence of str, optional
        One text for each thing that is wrong.
    **more
        ``code``, ``where``, ``fix`` and ``problems``, as for every error.

    Attributes
    ----------
    path : str, path-like or None
        The file, where there is one.
    errors : list of str
        One text for each thing that is wrong.

    Examples
    --------
    >>> error = PlaybookLoadError("no steps can be read", path="ir.yaml", errors=["steps: a text"])
    >>> error.code, str(error.path), error.errors
    ('cannot_load_playbook', 'ir.yaml', ['steps: a text'])
    """

    code = "cannot_load_playbook"

    def __init__(
        self,
        message: str = "",
        path: Any = None,
        errors: Sequence[str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message, **more)
        self.path = path
        self.errors: list[str] = list(errors or ())


class JournalError(PlaybookError):
    """A journal cannot be written to, or what it holds cannot be trusted."""

    code = "journal_error"


class ToolRefused(RunbookError):
    """A tool call was refused before the tool's body ran; ``facts`` says on what ground."""

    code = "tool_refused"

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        where: str | None = None,
        fix: str | None = None,
        problems: Sequence[Problem] = (),
        facts: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, where=where, fix=fix, problems=problems)
        self.facts: dict[str, Any] = dict(facts or {})


class ArtifactError(RunbookError):
    """An artifact could not be filed or read back."""

    code = "artifact_error"


class RunCancelled(RunbookError):
    """The run was stopped from outside; ``run`` holds what happened until then."""

    code = "cancelled"


class LimitReached(RunbookError):
    """A declared limit (time, loops, depth) ended the run; ``run`` holds what happened."""

    code = "limit_reached"


class EngineError(RunbookError):
    """A branch could not be run, or its record not brought back, where it was to run.

    ``code`` says why: ``worker_lost``, ``cannot_be_sent``, ``cannot_come_back``, ``engine_gone``,
    ``dropped``, ``worker_failed``, ``needs_dispatch``.
    """

    code = "engine_failed"


class Paused(RunbookError):
    """A procedure paused for an answer; ``checkpoint`` is the JSON state to resume from."""

    code = "paused"

    def __init__(
        self,
        message: str = "",
        *,
        checkpoint: dict[str, Any] | None = None,
        code: str | None = None,
        where: str | None = None,
        fix: str | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message, code=code, where=where, fix=fix, problems=problems)
        self.checkpoint = checkpoint


class FrozenError(RunbookError, TypeError):
    """Something tried to change a recorded value."""

    code = "frozen_value"


class CycleError(RunbookError, ValueError):
    """A value contains itself, so it can neither be recorded nor written as JSON."""

    code = "cyclic_value"


class JsonError(RunbookError, ValueError):
    """JSON cannot carry a value."""

    code = "not_json"


class UnknownSetting(DefinitionError, AttributeError):
    """There is no option of that name."""

    code = "unknown_setting"


class CheckpointError(RunbookError):
    """A paused run holds something JSON cannot carry."""

    code = "cannot_checkpoint"


class NoSuchFanOut(RunbookError, LookupError):
    """A fan-out was asked for that did not run."""

    code = "no_such_fan_out"


class NoSuchStage(RunbookError, LookupError):
    """No stage of that name holds a chart."""

    code = "no_such_stage"


class PathError(RunbookError, LookupError):
    """A path was asked for that leads nowhere in what was recorded, or that is none."""

    code = "no_such_path"


class MissingKey(ChartError, KeyError):
    """A stage read a state key that nobody wrote."""

    code = "missing_key"


class ScopeClosed(ChartError):
    """A scope was used after its stage had ended."""

    code = "scope_closed"


class NotCarried(RunbookError, LookupError):
    """Something was asked for that this copy of an answer does not hold."""

    code = "not_carried"


class SubjectNotFound(NotCarried):
    """No row or branch, or more than one, belongs to the subject asked for."""

    code = "subject_not_found"

    def __init__(self, message: str = "", fix: str | None = None, **more: Any) -> None:
        super().__init__(message, fix=fix, **more)


class NoSuchPart(RunbookError, KeyError):
    """A part was asked for that an answer does not have under that name."""

    code = "no_such_part"


class DocumentError(RunbookError, ValueError):
    """A notebook cannot be written, because readers would refuse or misread it."""

    code = "bad_notebook"


class RunSignal(Exception):
    """Ends the whole run from wherever it is raised; never becomes a slot or a failed branch.

    ``run_status`` is the status the run ends with.
    """

    run_status = "failed"


#: What ends a run on purpose: no rule, branch or retry may make an ordinary outcome of it.
ENDS_RUN: Final = (RunSignal, RunCancelled, LimitReached, Paused, CheckpointError)


def causes_of(error: BaseException, hops: int) -> Iterator[BaseException]:
    """Walk an error and what it came from: cause, else unsuppressed context, and group members.

    The error itself is hop 0; links more than ``hops`` away are not visited, and no error is
    visited twice.

    Parameters
    ----------
    error : BaseException
        Where to start.
    hops : int
        How many links may be followed from the start.

    Yields
    ------
    BaseException
        The error, then its causes, nearest first.

    Examples
    --------
    >>> inner = KeyError("age"); outer = ValueError("bad row"); outer.__cause__ = inner
    >>> [type(e).__name__ for e in causes_of(outer, 8)]
    ['ValueError', 'KeyError']
    """
    seen: set[int] = set()
    level: list[BaseException] = [error]
    for _ in range(hops + 1):
        following: list[BaseException] = []
        for one in level:
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            if one.__cause__ is not None:
                following.append(one.__cause__)
            elif one.__context__ is not None and not one.__suppress_context__:
                following.append(one.__context__)
            if isinstance(one, BaseExceptionGroup):
                following.extend(one.exceptions)
        level = following


def describe_error(error: BaseException) -> dict[str, Any]:
    """Render an error as name, message, code and bounded causes, and nothing else of it.

    Attributes and tracebacks of foreign errors may hold credentials, so they never travel.

    Parameters
    ----------
    error : BaseException
        Any exception.

    Returns
    -------
    dict
        ``{"type", "message", "code"?, "causes"?}``.

    Examples
    --------
    >>> describe_error(KeyError("age_days"))
    {'type': 'KeyError', 'message': "'age_days'"}
    """
    described: dict[str, Any] = {"type": type(error).__name__, "message": _message_of(error)}
    code = getattr(error, "code", None)
    if isinstance(code, str | int) and not isinstance(code, bool):
        described["code"] = code
    causes = [
        {"type": type(cause).__name__, "message": _message_of(cause)}
        for cause in list(causes_of(error, MAX_CAUSES))[1 : MAX_CAUSES + 1]
    ]
    if causes:
        described["causes"] = causes
    return described


def _composed(text: str, problems: list[str]) -> str:
    """Put what is wrong behind what happened: one in its line, several each in its own."""
    if len(problems) == 1:
        return f"{text}: {problems[0]}" if text else problems[0]
    if problems:
        lines = "\n".join(f"  {n}. {problem}" for n, problem in enumerate(problems, 1))
        return f"{text}: {len(problems)} problems\n{lines}"
    return text


def raw_text(error: BaseException) -> str:
    """Give the text of an error as it was written: what is to be redacted is looked for in it.

    Examples
    --------
    >>> raw_text(RunbookError("no key", fix="write one")), raw_text(ValueError("key"))
    ('no key; write one', 'key')
    """
    return error.raw if isinstance(error, RunbookError) else str(error)


def _message_of(error: BaseException) -> str:
    try:
        text = raw_text(error)
    except Exception as broken:  # a foreign __str__ may fail; the name is still worth showing
        return f"(its message cannot be shown: {type(broken).__name__})"
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
