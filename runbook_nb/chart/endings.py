"""What ends a run, and the one place where the engine waits.

Chart layer. The engine is written as generators that yield what must be awaited; `drive` awaits
it. Cancellation is kept here: a stage that swallows it, or makes an error of its own out of it,
does not keep the run going.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._sync import breath, loop_for, running_task
from runbook_nb.errors import (
    ENDS_RUN,
    CheckpointError,
    LimitReached,
    Paused,
    RunCancelled,
    RunSignal,
)

if TYPE_CHECKING:
    from asyncio import Task

#: What the engine's generators yield: something to await, or None to let others run.
Steps = Generator[Any, Any, Any]

_START: Final = object()

#: Why a branch that waits for an answer has no value yet.
PAUSED_NOTE: Final = "the run paused while it ran"

#: What Python says of a coroutine that raised what would read as its end.
STRAY: Final = "coroutine raised StopIteration"


def ending_of(error: BaseException) -> BaseException | None:
    """Give what makes an error end the whole run: the error itself, or a member of its group.

    None for an ordinary error, which may end as a failed branch or be tried again.

    Examples
    --------
    >>> ending_of(ValueError("bad row")) is None
    True
    >>> ending_of(ExceptionGroup("in a task group", [ValueError(), RunCancelled("stopped")]))
    RunCancelled('stopped')
    """
    if isinstance(error, BaseExceptionGroup):
        found = (ending_of(member) for member in error.exceptions)
        return next((ending for ending in found if ending is not None), None)
    return error if not isinstance(error, Exception) or isinstance(error, ENDS_RUN) else None


def status_of(error: BaseException) -> str:
    """Name the status a run ends with when this error leaves it.

    Examples
    --------
    >>> status_of(LimitReached("too long")), status_of(KeyError("k"))
    ('limited', 'failed')
    """
    ending = ending_of(error)
    if ending is None or isinstance(ending, CheckpointError):
        return "failed"
    if isinstance(ending, RunSignal):
        return ending.run_status
    if isinstance(ending, LimitReached):
        return "limited"
    return "paused" if isinstance(ending, Paused) else "cancelled"


def why_not_reached(ending: BaseException) -> str:
    """Say why a branch has no answer when this ended the run while it ran.

    Examples
    --------
    >>> why_not_reached(LimitReached("too long"))
    'a limit ended the run while it ran'
    """
    if isinstance(ending, LimitReached):
        return "a limit ended the run while it ran"
    if isinstance(ending, CheckpointError):
        return "a question that cannot be written ended the run while it ran"
    if status_of(ending) == "paused":
        return PAUSED_NOTE
    if isinstance(ending, RunSignal) and not isinstance(ending, RunCancelled):
        return "a signal ended the run while it ran"
    return "the run was stopped while it ran"


def stray_stop(error: BaseException) -> StopIteration | None:
    """Give the StopIteration a stage raised; of a coroutine or a thread another error comes.

    Examples
    --------
    >>> stray_stop(StopIteration(1)), stray_stop(RuntimeError(STRAY))
    (StopIteration(1), None)
    """
    if isinstance(error, StopIteration):
        return error
    cause = error.__cause__
    if isinstance(cause, StopIteration) and type(error) is RuntimeError and str(error) == STRAY:
        return cause
    return None


async def drive(steps: Steps, awaitable: Any = _START, task: Task[Any] | None = None) -> Any:
    """Run an engine generator to its end, awaiting what it yields.

    Parameters
    ----------
    steps : generator
        Given what each awaitable came to, or thrown what it raised.
    awaitable : optional
        What a generator that was begun elsewhere waits for.
    task : Task or None
        The task this runs in, where who begins it knows.
    """
    task = task or running_task()
    asked = 0 if task is None else task.cancelling()
    raised: BaseException | None = None
    try:
        if awaitable is _START:
            awaitable = next(steps)
        while True:
            value, raised = None, None
            try:
                if awaitable is None:
                    await breath()
                else:
                    if task is None:  # else a loop runs this
                        await loop_for(awaitable)
                    value = await awaitable
            except BaseException as error:  # whatever it is, the stage that waits must see it
                raised = error
            task = task or running_task()  # there may be one only since then
            stopped = task is not None and task.cancelling() > asked
            if stopped and (raised is None or ending_of(raised) is None):
                raised = _cancelled(raised)
            # Outside of the handler: what the steps raise next has no other error behind it.
            awaitable = steps.send(value) if raised is None else steps.throw(raised)
    except StopIteration as done:
        return done.value
    finally:
        raised = None  # it holds this frame, by its traceback


def _cancelled(behind: BaseException | None) -> BaseException:
    from asyncio import CancelledError

    error = CancelledError()
    error.__context__ = behind
    return error
