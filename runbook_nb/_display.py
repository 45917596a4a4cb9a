"""How an object shows itself: a mixin, and the one table of doors to the layers above.

Base layer. Classes below ``render`` inherit `Renderable` and say *what* they look like
(``view()``); how that is drawn is looked up here by module name when somebody asks, so no layer
imports upward. Showing an object never raises: a failure becomes a line that names it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from runbook_nb._view import Card

#: name of the door -> "module:function". The only place that names modules of higher layers.
DOORS: dict[str, str] = {
    "text": "runbook_nb.render.text:render_text",
    "line": "runbook_nb.render.text:render_line",
    "markdown": "runbook_nb.render.markdown:render_markdown",
    "html": "runbook_nb.render.html:render_html",
    "bundle": "runbook_nb.render.bundle:bundle_of",
    "flowchart": "runbook_nb.render.flowchart:Flowchart",
    "progress": "runbook_nb.render.live:show_progress",
    "live": "runbook_nb.render.liveplan:show_live",
    "explore": "runbook_nb.widgets.explorer:explore",
    "report": "runbook_nb.share.report:write_report",
    "notebook": "runbook_nb.share.notebook:write_notebook",
    "sheet": "runbook_nb.share.spreadsheet:write_sheet",
    "table": "runbook_nb.share.spreadsheet:write_table",
    "from_notebook": "runbook_nb.share.hydrate:read_notebook",
    "rulelab": "runbook_nb.widgets.rulelab:RuleLab",
}


def through(door: str, *args: Any, **kwargs: Any) -> Any:
    """Call the function behind a door.

    Parameters
    ----------
    door : str
        A key of `DOORS`.

    Examples
    --------
    >>> from runbook_nb._view import Card
    >>> through("line", Card(kind="Toolbox", name="ops", headline="3 tools"))
    'Toolbox ops · 3 tools'
    """
    module, _, function = DOORS[door].partition(":")
    return getattr(import_module(module), function)(*args, **kwargs)


class Renderable:
    """Gives a class its ``repr``, ``str``, Jupyter bundle and Markdown, all from ``view()``."""

    __slots__ = ()

    #: Whether an object of this class looks the same for ever, so that a drawing of it is kept.
    shown_once_for_all: ClassVar[bool] = False

    def view(self) -> Card:
        """Say what this looks like, as data."""
        return Card(kind=type(self).__name__, name="")

    def _head(self) -> Card:
        """Give the view as far as its first line needs it; dear views say less here."""
        return self.view()

    def to_markdown(self) -> str:
        """Give the view as Markdown, for a ticket or a chat message."""
        return str(through("markdown", self.view()))

    def __repr__(self) -> str:
        try:
            return f"<{through('line', self._head())}>"
        except Exception as error:
            return f"<{type(self).__name__}, cannot be shown: {type(error).__name__}>"

    def __str__(self) -> str:
        try:
            return str(through("text", self.view()))
        except Exception as error:
            return f"{type(self).__name__}, cannot be shown: {type(error).__name__}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self))

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **_: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            data, metadata = through("bundle", self, include, exclude)
        except Exception as error:
            return {"text/plain": f"{self}\n(no rich form: {type(error).__name__})"}, {}
        return data, metadata
