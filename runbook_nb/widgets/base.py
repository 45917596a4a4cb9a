"""What every widget stands on: static views beside it, answers to its messages, faults it shows.

How to write one:

1. A subclass of `Widget` names its files in ``scripts`` and ``sheets``, both under
   ``widgets/static/``; ``widget.js`` and ``widget.css`` come before them by themselves. The script
   ends in ``export default { render }`` and begins with ``frame(…)``, which makes the root element
   with a polite live region, a place for faults and ``ask``.
2. It says what it looks like where it cannot run: ``view()`` gives the card that is drawn as
   HTML, ``line()`` the sentence plain text begins with.
3. Small state that is worth being saved is in traits (``.tag(sync=True)``), everything large comes
   on request: the script calls ``await ask("rows", {from: 0})`` and the method marked
   ``@asked("rows")`` gives a mapping of JSON values. What it raises is shown in the widget.
4. A method that observes a trait is marked ``@guarded``; what it raises is shown likewise.
5. Where what it shows is changed by hand, the script calls ``settle()``, and the static view in
   the cell is drawn anew.

A cell whose value is a widget gets two outputs: the static view, and the widget, which takes the
place of the first as long as its kernel is there. One output with both would not do: front ends
that find no widget in a file they trust say so and show nothing else of that output.

State is made of content alone, so that the same object gives the same state; the only thing left
to chance is the model's own identifier. Under ``settings.static`` a widget opens no channel and
shows only its static view.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property, wraps
from typing import Any, ClassVar, Final, TypeVar

import anywidget
import traitlets

from runbook_nb._ids import content_id
from runbook_nb._text import clip, visible
from runbook_nb._view import Card
from runbook_nb.errors import DefinitionError, RunbookError
from runbook_nb.render import theme
from runbook_nb.render.bundle import HTML, TEXT, bundle_of, failure
from runbook_nb.render.cells import wrap
from runbook_nb.render.live import shell_of_a_notebook
from runbook_nb.render.markup import Html, tag
from runbook_nb.render.text import COLUMNS
from runbook_nb.settings import settings
from runbook_nb.widgets import static

#: Bytes of one widget's script and of its stylesheet, as they are sent.
MAX_JS: Final = 30 * 1024
MAX_CSS: Final = 6 * 1024
#: Bytes of one widget's state as JSON, scripts and all.
MAX_STATE: Final = 256 * 1024
#: Characters of a fault that are shown.
MAX_FAULT: Final = 500

WIDGET: Final = "application/vnd.jupyter.widget-view+json"

_Method = TypeVar("_Method", bound=Callable[..., Any])


def asked(name: str) -> Callable[[_Method], _Method]:
    """Mark the method that answers a message.

    Parameters
    ----------
    name : str
        What the script asks for: ``ask("rows", …)``. The method takes the mapping that came
        along and gives one of JSON values; what it raises becomes the answer's fault.

    Examples
    --------
    >>> class Counter(Widget):
    ...     @asked("sum")
    ...     def add(self, about):
    ...         return {"sum": sum(about["numbers"])}
    >>> counter = Counter()
    >>> counter.answer({"ask": "sum", "id": "1", "about": {"numbers": [1, 2]}})
    {'id': '1', 'answer': {'sum': 3}}
    >>> counter.answer({"ask": "sum", "id": "2", "about": {}})
    {'id': '2', 'fault': {'what': "KeyError: 'numbers'", 'fix': ''}}
    """

    def mark(method: _Method) -> _Method:
        method.__dict__["_answers"] = name
        return method

    return mark


def guarded(method: _Method) -> _Method:
    """Have what a callback raises shown in its widget, where else it would be in a log alone.

    Examples
    --------
    >>> class Fragile(Widget):
    ...     @guarded
    ...     def changed(self, change):
    ...         raise ValueError("no such rule")
    >>> fragile = Fragile()
    >>> fragile.changed(None)
    >>> fragile.fault["what"]
    'ValueError: no such rule'
    """

    @wraps(method)
    def guarding(self: Widget, *args: Any, **kwargs: Any) -> Any:
        try:
            given = method(self, *args, **kwargs)
        except Exception as error:
            self.fault = fault_of(error, self._served)
            return None
        self.fault = {}
        return given

    return guarding  # type: ignore[return-value]  # it takes and gives what the method does


def fault_of(error: BaseException, served: Callable[[str], str] = str) -> dict[str, str]:
    """Say what went wrong and what to do instead, as a widget shows it; never raises.

    Parameters
    ----------
    error : BaseException
    served : callable, optional
        Gives a text as it may be seen.

    Examples
    --------
    >>> fault_of(DefinitionError("there is no rule 'x'", fix="give it a name that is there"))
    {'what': "there is no rule 'x'", 'fix': 'give it a name that is there'}
    """
    if isinstance(error, RunbookError):
        said = "; ".join(filter(None, [error.message, *map(str, error.problems)]))
        return {
            "what": clip(visible(served(said)), MAX_FAULT),
            "fix": clip(visible(served(error.fix or "")), MAX_FAULT),
        }
    return {"what": failure(error, served), "fix": ""}


class Widget(anywidget.AnyWidget):
    """A widget with a static view beside it.

    Attributes
    ----------
    fault : dict
        What went wrong last in a callback, ``{"what": …, "fix": …}``; empty when nothing did.
    """

    #: Files under ``static/``, joined behind those that every widget has.
    scripts: ClassVar[tuple[str, ...]] = ()
    sheets: ClassVar[tuple[str, ...]] = ()

    fault = traitlets.Dict().tag(sync=True)
    #: By what the script knows the static view in the output before it; empty where there is none.
    _mark = traitlets.Unicode().tag(sync=True)

    _answering: ClassVar[Mapping[str, str]] = {"settle": "_settle"}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "_esm" not in vars(cls):  # as it is in the class each instance is given for its traits
            cls._esm = static.script("widget.js", *cls.scripts)
            cls._css = theme.tokens() + static.sheet("widget.css", *cls.sheets)
        cls._answering = dict(cls._answering) | {
            method.__dict__["_answers"]: name
            for name, method in vars(cls).items()
            if "_answers" in getattr(method, "__dict__", ())
        }
        super().__init_subclass__(**kwargs)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.on_msg(self._received)

    # -- what is shown ---------------------------------------------------------------------

    def _served(self, text: str) -> str:
        """Give a text as it may be seen: where there is a policy, what it hides is hidden."""
        return text

    def view(self) -> Card:
        """Say what this looks like where it cannot run, as data."""
        return Card(kind=type(self).__name__, name="")

    def line(self) -> str:
        """Give the sentence plain text begins with."""
        from runbook_nb.render.text import render_line

        return render_line(self.view())

    def open(self) -> None:
        """Open the channel to the front end; under ``settings.static`` there is none."""
        if not settings.static:
            super().open()

    def _repr_mimebundle_(
        self,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        **_: Any,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        def wanted(kind: str) -> bool:
            return (include is None or kind in include) and (exclude is None or kind not in exclude)

        try:
            # Drawn through a stand-in, which has nothing but the view.
            data, metadata = bundle_of(_Shown(self), include, exclude)
        except Exception as error:
            data, metadata = {TEXT: f"no static view: {failure(error)}"}, {}
        if TEXT in data and wanted(TEXT):
            head = str(self)
            if not data[TEXT].startswith(head):
                data[TEXT] = f"{head}\n{data[TEXT]}"
        if settings.static or self.comm is None or not wanted(WIDGET):
            return data, metadata
        try:
            made, _told = super()._repr_mimebundle_() or ({}, {})
        except Exception as error:
            data[TEXT] = f"{data.get(TEXT, self)}\n(no widget: {failure(error)})"
            return data, metadata
        return {WIDGET: made[WIDGET], **data}, metadata

    def _ipython_display_(self) -> None:
        """Show the static view as an output of its own, then the widget.

        Where there is no widget, or no notebook to show it in, IPython is sent on to the bundle.
        """
        data, _ = self._repr_mimebundle_()
        if WIDGET not in data or HTML not in data or shell_of_a_notebook() is None:
            raise NotImplementedError
        # Of content, and the same for each time it is shown: what was shown first stays findable.
        self._mark = self._mark or f"rb-{content_id(data[HTML])}"
        self._show_still(data)
        said = f"{type(self).__name__}, live while its kernel runs: run the cell to use it"
        _publish({WIDGET: data[WIDGET], TEXT: said})

    def _show_still(self, data: Mapping[str, Any], *, update: bool = False) -> None:
        marked = str(tag("div", Html(data[HTML]), class_=self._mark))
        place = f"{self._mark}-{self.model_id}"
        _publish({HTML: marked, TEXT: data[TEXT]}, display_id=place, update=update)

    def _settle(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        """Draw the static view anew, so that what is saved is what was seen."""
        data, _ = self._repr_mimebundle_(include=(HTML, TEXT))
        if self._mark and HTML in data:
            self._show_still(data, update=True)
        return {}

    def __str__(self) -> str:
        try:
            return "\n".join(wrap(self.line(), COLUMNS))
        except Exception as error:
            return f"{type(self).__name__}, cannot be shown: {type(error).__name__}"

    def __repr__(self) -> str:
        return f"<{str(self).replace(chr(10), ' ')}>"

    # -- messages --------------------------------------------------------------------------

    def answer(self, message: Any) -> dict[str, Any]:
        """Answer a message of the script; never raises.

        Parameters
        ----------
        message : mapping
            ``{"ask": …, "id": …, "about": {…}}``.

        Returns
        -------
        dict
            Its ``id``, with an ``answer`` or with the ``fault`` that is to be shown.
        """
        number = message.get("id") if isinstance(message, Mapping) else None
        try:
            return {"id": number, "answer": dict(self._ask(message))}
        except Exception as error:
            return {"id": number, "fault": fault_of(error, self._served)}

    def _ask(self, message: Any) -> Mapping[str, Any]:
        about = message.get("about", {}) if isinstance(message, Mapping) else None
        method = self._answering.get(message.get("ask", "")) if about is not None else None
        if method is None or not isinstance(about, Mapping):
            known = ", ".join(self._answering) or "nothing"
            raise DefinitionError("the widget was asked what it does not know", fix=f"ask {known}")
        given: Mapping[str, Any] = getattr(self, method)(about)
        return given

    def _received(self, _widget: Any, content: Any, _buffers: Any) -> None:
        self.send(self.answer(content))


def _publish(data: dict[str, Any], **how: Any) -> None:
    from IPython import display

    show: Any = display.display
    show(data, raw=True, **how)


class _Shown:
    """The static view of a widget, which is no widget itself."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget

    def view(self) -> Card:
        return self._card

    @cached_property
    def _card(self) -> Card:
        return self._widget.view()

    def __str__(self) -> str:
        return f"no static view of {type(self._widget).__name__}"
