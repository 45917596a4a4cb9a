"""Who looks at runs: asked once, when an outermost run begins; runs inside it are part of it.

Chart layer. What there is to see is `runbook_nb.chart.progress`, which a run nobody looks at does
without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, Protocol

from runbook_nb._display import through

if TYPE_CHECKING:
    from runbook_nb.chart.executor import Execution
    from runbook_nb.chart.progress import Look
    from runbook_nb.settings import Options


class Watcher(Protocol):
    """Who looks at runs: told that one begins, and gives what is to be told how it ended."""

    def __call__(self, look: Look, /) -> Callable[[str], object]:
        """Take what looks at the run."""
        ...


#: Who looks at the next run; False inside a run, which is a part of that one.
_watcher: ContextVar[Watcher | Literal[False] | None] = ContextVar(
    "runbook_nb_progress", default=None
)


@contextmanager
def observing(watcher: Watcher) -> Iterator[None]:
    """Have the runs that begin in a block looked at.

    Parameters
    ----------
    watcher : callable
        Given a `Look`, which says how far the run has come whenever it is called; gives what is
        called with the status when the run has ended.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> def watch(look):
    ...     return lambda status: print(look(status).said, "·", status)
    >>> with observing(watch):
    ...     run = flow_chart("ages", lambda scope: None, id="load").build().run_sync()
    1 stage · ok
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def begin(execution: Execution) -> Callable[[str], None] | None:
    """Show a run that begins to whoever looks; give what is told how it ended, if anybody does."""
    watcher = _watcher.get()
    if watcher is None and wanted(execution.options) is not None:
        watcher = default_watcher
    if not watcher:
        return None
    from runbook_nb.chart.progress import Look

    token = _watcher.set(False)
    try:
        ended = watcher(Look(execution))
    except Exception:  # who looks never affects what is looked at
        _watcher.reset(token)
        return None

    def end(status: str) -> None:
        try:
            _watcher.reset(token)
        except ValueError:  # it ended in another context than it began in
            _watcher.set(None)
        try:
            ended(status)
        except Exception:  # as above
            return

    return end


def default_watcher(look: Look) -> Callable[[str], object]:
    """Show progress where the process can be seen: in its cell, or in its terminal."""
    ended: Callable[[str], object] = through("progress", look)
    return ended


def wanted(options: Options) -> str | None:
    """Say where progress is to be shown: ``"cell"``, ``"terminal"``, or None for nowhere.

    Examples
    --------
    >>> from runbook_nb.settings import settings
    >>> with settings(static=True, progress="cell"):
    ...     wanted(settings.current)
    >>> with settings(static=False, progress="cell"):
    ...     wanted(settings.current)
    'cell'
    """
    if options.static or options.progress == "off":
        return None
    if options.progress != "auto":
        return options.progress
    if "ipykernel" in sys.modules:
        return "cell"
    stream = sys.stderr
    return "terminal" if stream is not None and stream.isatty() else None
