"""A form for one tool of a toolbox: fields from its schema, Run, Stop, progress, the answer.

Widgets layer. The run goes in a thread with an event loop of its own, so that the kernel goes on
answering however slow a source is. Everything a button does is a method, and what the widget
shows is in its traits. Secrets are in no trait: they come by message and stay here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Coroutine, Mapping
from contextvars import copy_context
from html import escape
from typing import Any, ClassVar

import ipywidgets
import traitlets

from runbook_nb._display import Renderable
from runbook_nb._stop import Stop
from runbook_nb._text import clip, visible
from runbook_nb._view import Card
from runbook_nb.chart.onlookers import observing
from runbook_nb.chart.progress import Look, Progress
from runbook_nb.errors import DefinitionError, Paused, RunCancelled, ToolRefused
from runbook_nb.record.redact import Redactor
from runbook_nb.record.run import Run
from runbook_nb.render.live import show_on
from runbook_nb.settings import settings
from runbook_nb.tools.tool import Tool
from runbook_nb.tools.toolbox import Toolbox
from runbook_nb.widgets.base import WIDGET, Widget, asked, fault_of, guarded
from runbook_nb.widgets.fields import Entries, Raw
from runbook_nb.widgets.formcard import MAX_VALUE, form_card, form_line
from runbook_nb.widgets.formtold import bundle_for, told_of


class RunForm(Widget):
    """A form that runs a runbook, or any tool, of a toolbox.

    Parameters
    ----------
    toolbox : Toolbox
        Whose tool it is; its gates are passed as in any call.
    name : str
        The tool. One added to the toolbox in its place is the one that runs.

    Attributes
    ----------
    status : str
        ``"ready"``, ``"running"``, ``"stopping"``, and after a run ``"finished"``, ``"failed"``,
        ``"stopped"``, ``"refused"`` or ``"paused"``.
    result : object
        What the last run that finished gave: for a runbook its `Envelope`. None when the last run
        gave none.
    incomplete : Run or None
        How far the last run came that gave no result.
    error : BaseException or None
        What ended the last run.

    Examples
    --------
    >>> from runbook_nb.tools import Toolbox, tool
    >>> @tool
    ... def ages(days: int):
    ...     '''Read ages.'''
    ...     return [days, 30]
    >>> form = RunForm(Toolbox([ages]), "ages")
    >>> form.problems()
    {'days': 'is required'}
    >>> form.set(days=2).run()
    True
    >>> form.join().status, form.result
    ('finished', [2, 30])
    """

    scripts: ClassVar[tuple[str, ...]] = ("form.js",)
    sheets: ClassVar[tuple[str, ...]] = ("form.css",)

    title = traitlets.Unicode().tag(sync=True)
    about = traitlets.Unicode().tag(sync=True)
    fields: Any = traitlets.List().tag(sync=True)
    #: What stands in the fields, but for secrets.
    entries = traitlets.Dict().tag(sync=True)
    #: Which secrets have a value.
    filled: Any = traitlets.List().tag(sync=True)
    faults = traitlets.Dict().tag(sync=True)
    status = traitlets.Unicode("ready").tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    outcome = traitlets.Dict().tag(sync=True)
    #: Whether the fields have changed since the answer below them.
    stale = traitlets.Bool(False).tag(sync=True)

    def __init__(self, toolbox: Toolbox, name: str) -> None:
        if not isinstance(toolbox, Toolbox):
            raise DefinitionError(
                f"RunForm takes a toolbox, not {type(toolbox).__name__}",
                where="toolbox",
                fix='write rb.RunForm(box, "name")',
            )
        self._toolbox, self._name = toolbox, name
        self._tool: Tool = toolbox[name]
        self._fields = _entries_of(self._tool)
        self._secrets: dict[str, str] = {}
        self._ran_with: tuple[Any, Any] | None = None
        self._met: set[str] = set()
        self._thread: threading.Thread | None = None
        self._stop = Stop()
        self._told: Progress | None = None
        self._box: Any = None
        self._bundle: dict[str, Any] | None = None
        self.result: Any = None
        self.incomplete: Run | None = None
        self.error: BaseException | None = None
        super().__init__(**_drawn(self._tool, self._fields), entries=_blank(self._fields))
        self.faults = self.problems()
        self.observe(self._changed, "entries")

    # -- what is in the fields -------------------------------------------------------------

    def set(self, **values: Any) -> RunForm:
        """Fill fields in.

        Parameters
        ----------
        **values : object
            Values by name, as the tool takes them; None empties a field.

        Returns
        -------
        RunForm
            This form.

        Raises
        ------
        DefinitionError
            ``unknown_field``, or ``no_choice`` for what a field of choices does not offer; nothing
            is changed then.
        """
        self._look_again()
        fields = {name: self._fields.checked(name) for name in values}
        for name, field in fields.items():
            field.check(values[name])
        raw = {name: field.write(values[name]) for name, field in fields.items()}
        self._keep_secrets({name: raw.pop(name) for name in values if name in self._fields.secret})
        self.entries = {**self.entries, **raw}
        return self

    def values(self) -> dict[str, Any]:
        """Give the arguments a run would have; secrets are left out."""
        self._look_again()
        found = self._fields.values(self.entries)
        return {name: value for name, value in found.items() if name not in self._fields.secret}

    def problems(self) -> dict[str, str]:
        """Say what is wrong with the fields, by name; nothing when it can be run.

        It is what the tool's own check says of the arguments; what is about no field alone
        stands under the empty name.
        """
        self._look_again()
        return self._fields.problems(self._raw())

    def _raw(self) -> dict[str, Raw]:
        return {**self.entries, **self._secrets}

    def _keep_secrets(self, raw: Mapping[str, Any]) -> None:
        for name, text in raw.items():
            self._secrets.pop(name, None)
            if isinstance(text, str) and text:
                self._secrets[name] = text
        self.filled = sorted(self._secrets)
        self._judge()

    def _judge(self) -> None:
        """Check the fields, and whether the answer is still of what stands in them."""
        self.faults = self.problems()
        self.stale = self._ran_with is not None and self._ran_with != self._now()

    def _now(self) -> tuple[Any, Any]:
        return dict(self.entries), dict(self._secrets)

    def _look_again(self) -> None:
        """Read the fields anew where another tool has taken the place of the one there was."""
        tool = self._toolbox[self._name]
        if tool is self._tool:
            return
        self._tool, self._fields = tool, _entries_of(tool)
        self._secrets = {k: v for k, v in self._secrets.items() if k in self._fields.secret}
        for name, value in _drawn(tool, self._fields).items():
            setattr(self, name, value)
        self.filled = sorted(self._secrets)
        self.entries = {**_blank(self._fields), **self._known(self.entries)}

    def _known(self, raw: Mapping[Any, Any]) -> dict[str, Raw]:
        """Keep what can stand in a field; a secret has no place among what is saved."""
        return {
            name: text
            for name, text in raw.items()
            if name in self._fields.by_name
            and name not in self._fields.secret
            and isinstance(text, bool if self._fields.by_name[name].kind == "switch" else str)
        }

    @traitlets.validate("entries")
    def _cleaned(self, proposal: Any) -> dict[str, Raw]:
        return {**_blank(self._fields), **self._known(proposal["value"])}

    @guarded
    def _changed(self, _change: Any) -> None:
        self._judge()

    # -- running ---------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self.status in ("running", "stopping")

    def run(self) -> bool:
        """Check the fields and begin a run; give whether one was begun.

        It returns at once. What was shown of an earlier run is replaced when this one ends. Where
        none was begun, `problems` says why, and so does ``print(form)``.

        Raises
        ------
        DefinitionError
            ``is_running``: a run is going on.
        """
        if self.running:
            raise DefinitionError(
                f"{self._name} is running", code="is_running", fix="stop it, or wait until it ends"
            )
        self.faults = self.problems()
        if self.faults:
            return False
        args = self._fields.values(self._raw())
        self._stop, self._told = Stop(), None
        self._ran_with, self._met = self._now(), self._fields.secrets_in(self._raw())
        self.stale, self.progress, self.outcome, self.status = False, {}, {}, "running"
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._go, args), name="runbook_nb-form", daemon=True
        )
        self._thread.start()
        return True

    def stop(self) -> None:
        """Ask the run to end; it ends before its next stage, or where it waits."""
        if self.running:
            self.status = "stopping"
            self._stop.set("stopped from the form")

    def join(self, timeout: float | None = None) -> RunForm:
        """Wait until the run has ended, at most so many seconds; give this form."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self

    def close(self) -> None:
        """Stop the run and take the widget away."""
        stop = self.__dict__.get("_stop")  # none where it could not be made
        if stop is not None:
            stop.set("the form was closed")
        super().close()

    def _go(self, args: dict[str, Any]) -> None:
        given: Any = None
        ended: BaseException | None = None
        try:
            with observing(self._watch):
                call = self._toolbox.call(self._name, args, signal=self._stop)
                given = in_loop(call)
        except BaseException as error:  # whatever ended it, it is told
            ended = error
        try:
            self._end(given, ended)
        except Exception as error:
            self.fault = fault_of(error, self._served)
            self.status = "failed"

    def _watch(self, look: Look) -> Any:
        end = show_on(_InForm(self), look)

        def ended(status: str) -> None:
            end(status)
            self._tell(look(status))

        return ended

    def _tell(self, progress: Progress) -> None:
        self._told = progress
        self.progress = told_of(progress, self._redactor().text)

    def _end(self, given: Any, ended: BaseException | None) -> None:
        """Keep what came of a run, and show it."""
        run = getattr(ended, "run", None)
        self.result, self.error = given, ended
        self.incomplete = run if isinstance(run, Run) else None
        shown = given if ended is None else self.incomplete
        # The answer's own form for machines would be saved with the widget once more.
        with settings(embed=False):
            nothing = shown is None and ended is not None
            bundle = None if nothing else bundle_for(shown, self._name)
        self._bundle = bundle if isinstance(shown, Renderable) else self._hidden(bundle)
        self.outcome = self._outcome(ended)
        self._show()
        self.status = _status_of(ended)

    def _outcome(self, ended: BaseException | None) -> dict[str, str]:
        if ended is None:
            return {"said": "" if self._told is None else self._served(self._told.said)}
        fault = fault_of(ended, self._served)
        place = None if self.incomplete is None else self.incomplete.ended_at
        stage = "" if place is None else self._served(str(place["stage"]))
        if isinstance(ended, RunCancelled) and self._stop.is_set():
            below = "what is below is how far it came"
            fault = {"what": "no answer", "fix": below if self.incomplete is not None else ""}
        if isinstance(ended, Paused):
            fault["fix"] = "go on with toolbox.resume_sync(form.error.checkpoint, answer)"
        return {**fault, "stage": clip(visible(stage), MAX_VALUE)}

    # -- what is shown ---------------------------------------------------------------------

    @property
    def box(self) -> Any:
        """The form and what is below it, as one widget to be put among others."""
        if self._box is None:
            self._box = ipywidgets.VBox([self, ipywidgets.Output(layout={"margin": "8px 0 0 0"})])
            self._show()
        return self._box

    def _served(self, text: str) -> str:
        """Hide what was typed as a secret, what the tool hides, and what its run learnt of both."""
        return self._redactor().text(text)

    def _redactor(self) -> Redactor:
        known = Redactor(None) if self.incomplete is None else self.incomplete.redactor
        return known.knowing(self._secret_texts())

    def _secret_texts(self) -> frozenset[str]:
        return frozenset(self._met | self._fields.secrets_in(self._raw()))

    def _hidden(self, bundle: dict[str, Any] | None) -> dict[str, Any] | None:
        """Hide secrets in what shows itself, also as markup and program text spell them."""
        texts = self._secret_texts()
        if not bundle or not texts:
            return bundle
        spelt = (each for text in texts for each in (escape(text), json.dumps(text)[1:-1]))
        hidden: dict[str, Any] = self._redactor().knowing(spelt).scrub(bundle)
        return hidden

    def _show(self) -> None:
        if self._box is not None:
            below = self._box.children[1]
            shown = self._bundle
            output = {"output_type": "display_data", "data": shown, "metadata": {}}
            below.outputs = () if shown is None else (output,)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None, **more: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(include, exclude, **more)
        if WIDGET in data:
            data[WIDGET] = {**data[WIDGET], "model_id": self.box.model_id}
        return data, metadata

    def view(self) -> Card:
        """Show the fields, how the last run ended, and its answer."""
        return form_card(self)

    def line(self) -> str:
        """Say how the form stands: what keeps it from running, and how the last run ended."""
        return form_line(self, super().line())

    # -- messages --------------------------------------------------------------------------

    @asked("run")
    def _asked_run(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        self._take(about)
        return {"begun": self.run(), "faults": self.faults}

    @asked("check")
    def _asked_check(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        self._take(about)
        return {"faults": self.faults}

    @asked("secret")
    def _asked_secret(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        self._take({"secrets": about})
        return {"filled": self.filled}

    @asked("stop")
    def _asked_stop(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        self.stop()
        return {"status": self.status}

    def _take(self, about: Mapping[str, Any]) -> None:
        """Take over what stands in the fields of the front end."""
        secrets = about.get("secrets", {})
        self._keep_secrets({k: v for k, v in secrets.items() if k in self._fields.secret})
        self.entries = {**self.entries, **self._known(about.get("entries", {}))}


class _InForm:
    """The form a run was begun from."""

    def __init__(self, form: RunForm) -> None:
        self._form = form

    def show(self, progress: Progress) -> bool:
        self._form._tell(progress)
        return True

    def end(self, progress: Progress) -> None:
        self._form._tell(progress)


def in_loop(call: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a loop of its own, and leave threads that it left to themselves.

    What asyncio has for this waits for them: a run that was stopped would go on as long as a
    source hangs.

    Examples
    --------
    >>> async def answer():
    ...     return 42
    >>> in_loop(answer())
    42
    """
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(call)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _entries_of(tool: Tool) -> Entries:
    return Entries(tool.input_schema, getattr(tool.carried.get("runbook"), "redact", None))


def _drawn(tool: Tool, entries: Entries) -> dict[str, Any]:
    return {
        "title": tool.name,
        "about": tool.description or "",
        "fields": [field.told() for field in entries.fields],
    }


def _blank(entries: Entries) -> dict[str, Raw]:
    return {one.name: one.blank for one in entries.fields if one.name not in entries.secret}


def _status_of(ended: BaseException | None) -> str:
    if ended is None:
        return "finished"
    if isinstance(ended, ToolRefused):
        return "refused"
    if isinstance(ended, Paused):
        return "paused"
    return "stopped" if isinstance(ended, RunCancelled) else "failed"
