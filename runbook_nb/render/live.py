"""Progress of a running run where people can see it: in the cell that runs it, or in a terminal.

Render layer. A run that ends soon shows nothing. One that takes its time is looked at by one
thread for all runs, five times a second at most; what is shown last is static and stands for how
the run ended. Only the cell that is running is written to, because an update to an earlier one
would rewrite its saved output without a word.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol

from runbook_nb._text import visible
from runbook_nb.chart.onlookers import wanted
from runbook_nb.chart.progress import Look, Progress
from runbook_nb.settings import settings

#: Seconds a run may take before anything is shown of it.
PATIENCE: Final = 0.4
#: Seconds between two updates, at least.
PERIOD: Final = 0.2
#: Turns without a run after which the thread ends.
IDLE: Final = 10


class Surface(Protocol):
    """Where progress is shown."""

    def show(self, progress: Progress) -> bool:
        """Show it; False when it can no longer be shown there."""
        ...

    def end(self, progress: Progress) -> None:
        """Show how it ended."""
        ...


def show_progress(look: Look) -> Callable[[str], object]:
    """Show a run that begins where the settings say; give what is told how it ended.

    Parameters
    ----------
    look : Look
        Says how far the run has come.

    Examples
    --------
    >>> with settings(progress="off"):
    ...     show_progress(lambda: None)("ok")
    """
    place = wanted(settings.current)
    surface: Surface | None = None
    if place == "cell":
        surface = InCell.of_this_cell()
    elif place == "terminal":
        surface = InTerminal()
    return (lambda status: None) if surface is None else show_on(surface, look)


def show_on(surface: Surface, look: Look) -> Callable[[str], object]:
    """Show a run that begins on a surface; give what is told how it ended."""
    live = Live(look, surface, settings.timer)
    _ticker.add(live)
    return live.end


class Live:
    """One run that is shown while it runs.

    Parameters
    ----------
    look : callable
        Says how far the run has come.
    surface : Surface
        Where it is shown.
    timer : callable
        Gives seconds that only grow.
    """

    def __init__(self, look: Look, surface: Surface, timer: Callable[[], float]) -> None:
        self._look, self._surface, self._timer = look, surface, timer
        self._context = contextvars.copy_context()
        self._turn = threading.Lock()
        self._began = timer()
        self._shown: Progress | None = None
        self._shown_at = self._began
        self._over = False

    @property
    def over(self) -> bool:
        """Whether nothing more is to be shown."""
        return self._over

    def tick(self) -> None:
        """Show how far the run has come, if it is time and there is news; never raises."""
        with self._turn:
            now = self._timer()
            early = now - self._began < PATIENCE
            soon = self._shown is not None and now - self._shown_at < PERIOD
            if self._over or early or soon:
                return
            try:
                progress = self._look()
                if progress != self._shown:
                    # In the context of the run: what is displayed belongs to its cell.
                    self._over = not self._context.run(self._surface.show, progress)
                    self._shown, self._shown_at = progress, now
            except Exception:  # what cannot be shown must not end the run
                self._over = True

    def end(self, status: str) -> None:
        """Show how the run ended, where anything was shown of it."""
        try:
            with self._turn:
                shown, self._over = self._shown is not None and not self._over, True
                if shown:
                    self._surface.end(self._look(status))
        finally:  # or its thread would look at it for ever
            _ticker.drop(self)


class _Ticker:
    """The one thread that looks at all runs that are shown; it ends when there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lives: list[Live] = []
        self._thread: threading.Thread | None = None

    def add(self, live: Live) -> None:
        """Look at a run from now on."""
        with self._lock:
            self._lives.append(live)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._go, name="runbook_nb-progress", daemon=True
                )
                self._thread.start()

    def drop(self, live: Live) -> None:
        """Look at it no more."""
        with self._lock:
            self._lives = [one for one in self._lives if one is not live]

    def _go(self) -> None:
        idle, pause = 0, threading.Event()
        while True:
            pause.wait(PERIOD)
            with self._lock:
                lives = list(self._lives)
                idle = 0 if lives else idle + 1
                if idle > IDLE:
                    self._thread = None
                    return
            for live in lives:
                live.tick()


_ticker = _Ticker()


def shell_of_a_notebook() -> Any:
    """Give IPython's shell where front ends of a kernel show what it displays; else None.

    Examples
    --------
    >>> shell_of_a_notebook() is None
    True
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else shell


class InCell:
    """The output of the cell that is running."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cell = shell.execution_count
        self._handle: Any = None

    @classmethod
    def of_this_cell(cls) -> InCell | None:
        """Give the cell that runs now; None where none does, as in a widget's callback."""
        shell = shell_of_a_notebook()
        if shell is None:
            return None
        parent: Any = getattr(shell, "get_parent", dict)() or {}
        kind = parent.get("header", {}).get("msg_type", "execute_request")
        return cls(shell) if kind == "execute_request" else None

    def show(self, progress: Progress) -> bool:
        """Show it, unless the cell has ended."""
        if self._shell.execution_count != self._cell:
            return False
        if self._handle is None:
            from IPython import display

            show: Any = display.display
            self._handle = show(progress, display_id=True)
        else:
            self._handle.update(progress)
        return True

    def end(self, progress: Progress) -> None:
        """Leave how it ended."""
        self.show(progress)


class InTerminal:
    """One line on the stream of errors, gone when the run has ended."""

    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, progress: Progress) -> bool:
        """Draw the bar: branches where the present stage has any, else stages."""
        step = progress.steps[progress.at] if progress.at >= 0 else None
        name = visible(progress.name)
        if step is None or step.total is None:
            done, total = max(progress.at, 0), len(progress.steps)
        else:
            done, total = step.done or 0, step.total
        if self._bar is None:
            self._bar = _bar(total)
        bar = self._bar
        bar.total, bar.n = total, done
        bar.set_description_str(name if step is None else f"{name} · {visible(step.name)}", False)
        bar.refresh()
        return True

    def end(self, progress: Progress) -> None:
        """Take the line away."""
        self._bar.close()


def _bar(total: int) -> Any:
    from tqdm import tqdm

    # Drawn when told to, and by no thread of its own.
    kind: Any = type("Bar", (tqdm,), {"monitor_interval": 0})
    form = "{desc} |{bar}| {n_fmt} of {total_fmt} [{elapsed}]"
    return kind(total=total, file=sys.stderr, leave=False, dynamic_ncols=True, bar_format=form)
