"""What a form shows of a run: how far it has come, and what it gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runbook_nb._display import Renderable
from runbook_nb._text import clip, visible
from runbook_nb._view import Card
from runbook_nb.chart.progress import Progress
from runbook_nb.coverage import read_coverage_result
from runbook_nb.coverage.views import absence_view
from runbook_nb.render.bundle import TEXT, bundle_of
from runbook_nb.widgets.base import Widget


def told_of(progress: Progress, served: Callable[[str], str] = str) -> dict[str, Any]:
    """Give how far a run has come as a front end draws it.

    Parameters
    ----------
    progress : Progress
    served : callable, optional
        Gives a text as it may be seen.

    Examples
    --------
    >>> from runbook_nb.chart.progress import StepProgress
    >>> told_of(Progress("ages", "running", (StepProgress("load", "current"),)))["stage"]
    'load'
    """
    steps = progress.steps_shown
    present = progress.steps[progress.at] if progress.at >= 0 else None
    return {
        "at": progress.at + 1,
        "of": len(progress.steps),
        "stage": "" if present is None else visible(served(present.name)),
        "steps": [
            {
                "name": clip(visible(served(step.name)), 80),
                "state": step.state,
                "done": step.done,
                "total": step.total,
                "failed": step.failed,
            }
            for step in steps
        ],
        "hidden": len(progress.steps) - len(steps),
    }


def answer_of(given: Any, name: str) -> Any:
    """Give what a tool gave as it is shown: an absence has a view of its own."""
    if isinstance(given, Mapping) and not isinstance(given, Renderable):
        reading = read_coverage_result(given)
        if reading is not None and reading.status == "absent":
            return _Absence(given, name)
    return given


def bundle_for(shown: Any, name: str = "") -> dict[str, Any]:
    """Give the forms by MIME type in which what a tool gave is shown.

    Examples
    --------
    >>> bundle_for([1, 2])
    {'text/plain': '[1, 2]'}
    """
    shown = answer_of(shown, name)
    if isinstance(shown, Renderable):
        return bundle_of(shown)[0]
    if isinstance(shown, Widget):  # which IPython would have show itself here and now
        return shown._repr_mimebundle_()[0]
    from IPython import get_ipython

    ask: Any = get_ipython
    shell = ask()
    if shell is None:
        return {TEXT: visible(repr(shown))}
    data: dict[str, Any] = shell.display_formatter.format(shown)[0]
    return data


class _Absence(Renderable):
    """What a tool gives that found nothing, as it is shown."""

    def __init__(self, value: Mapping[str, Any], name: str) -> None:
        self._value, self._name = value, name

    def view(self) -> Card:
        return absence_view(self._value, self._name)
