"""A form for what a playbook asks of a person: close a step, approve or decline one, free one.

Widgets layer. It shows where the plan stands and, when the step at the pointer waits for a person,
two fields: who, and a note. What the buttons do is what `complete`, `approve` and `decline` of the
enforcer do; nothing is judged here. The note is in no trait: it comes by message when handed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from weakref import WeakMethod

import traitlets

from runbook_nb._text import clip, listed, visible
from runbook_nb._view import Card
from runbook_nb.errors import DefinitionError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.judging import declined_words, due_past, waits_for_person, way_past
from runbook_nb.playbooks.rulecards import STATUS_ROLES
from runbook_nb.playbooks.terms import StepTerms
from runbook_nb.playbooks.told import Seen, Told
from runbook_nb.record.phrases import step_status
from runbook_nb.record.redact import Redactor, as_redact
from runbook_nb.widgets.base import Widget, asked, guarded
from runbook_nb.widgets.playbookcard import form_card
from runbook_nb.widgets.telling import badge

#: Steps that are listed, around the pointer.
MAX_STEPS: Final = 40
#: Characters of a text of the playbook, and of what was typed, that are sent.
MAX_TEXT: Final = 400

#: What the button says, by what is asked.
VERBS: Final = {"manual": "Close the step", "approval": "Approve", "stuck": "Close the step"}


class PlaybookForm(Widget):
    """A form in which a person closes, approves and declines the steps of a playbook.

    Parameters
    ----------
    enforcer : PlaybookEnforcer
        Whose plan it is.
    who : str
        Who fills it in; may be changed in the form.

    Attributes
    ----------
    asks : dict
        What is asked now: ``step``, ``kind`` (``manual``, ``approval``, ``stuck``, or empty when
        nothing is asked of a person), ``about`` and more.
    steps : list
        The steps with where they stand.
    who : str
        What stands in the field of that name.

    Examples
    --------
    >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep
    >>> step = PlaybookStep(id="review", description="Read it.", kind="manual")
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> form = PlaybookForm(PlaybookEnforcer.from_playbook(book))
    >>> form.problems()
    {'who': 'is required: who acts is recorded'}
    >>> form.hand_in(who="R. Ito", note="Read twice.")
    True
    >>> form.enforcer.is_complete, form.said
    (True, "step 'review' is closed")
    """

    scripts: ClassVar[tuple[str, ...]] = ("playbookform.js",)
    sheets: ClassVar[tuple[str, ...]] = ("form.css", "playbookform.css")

    title = traitlets.Unicode().tag(sync=True)
    about = traitlets.Unicode().tag(sync=True)
    steps: Any = traitlets.List().tag(sync=True)
    asks = traitlets.Dict().tag(sync=True)
    who = traitlets.Unicode().tag(sync=True)
    faults = traitlets.Dict().tag(sync=True)
    #: What was done last.
    said = traitlets.Unicode().tag(sync=True)

    def __init__(self, enforcer: PlaybookEnforcer, who: str = "") -> None:
        if not isinstance(enforcer, PlaybookEnforcer):
            raise DefinitionError(
                f"PlaybookForm takes an enforcer, not {type(enforcer).__name__}",
                where="enforcer",
                fix="write rb.PlaybookForm(plan), with plan = rb.PlaybookEnforcer.from_playbook(…)",
            )
        self.enforcer = enforcer
        self._redactor = Redactor(as_redact(enforcer.redact))
        super().__init__(who=who, **self._drawn())
        heard = WeakMethod(self._heard)  # a form that is gone is told nothing

        def tell(event: Any) -> None:
            method = heard()
            if method is not None:
                method(event)

        self._unheard = enforcer.on_change(tell)

    # -- what is asked ---------------------------------------------------------------------

    def problems(self) -> dict[str, str]:
        """Say what keeps the form from being handed in, by field; nothing when nothing does."""
        if self.who.strip():
            return {}
        return {"who": "is required: who acts is recorded"}

    def hand_in(self, who: str | None = None, note: str = "", *, decline: bool = False) -> bool:
        """Close, approve or decline the step that is asked about; give whether that was done.

        Parameters
        ----------
        who : str, optional
            Who acts; what stands in the field otherwise.
        note : str
            What there is to say.
        decline : bool
            Whether to decline a step that asks for an approval.

        Raises
        ------
        PlaybookError
            The plan does not let it be done.
        DefinitionError
            ``nothing_asked``: the step at the pointer asks nothing of a person.
        """
        if who is not None:
            self.who = who
        self._draw()
        if not self.asks["kind"]:
            raise DefinitionError(self.asks["about"], code="nothing_asked", where="step")
        self.faults = self.problems()
        if self.faults:
            return False
        step, approves = self._due(), self.asks["kind"] == "approval"
        assert step is not None  # noqa: S101 - something is asked
        act, done = self.enforcer.complete, "closed"
        if decline:
            act, done = self.enforcer.decline, "declined"
        elif approves:
            act, done = self.enforcer.approve, "approved"
        act(step.id, self.who, note)
        self.said = f"step '{self._text(step.id)}' is {done}"
        return True

    def _current(self) -> StepTerms | None:
        place, steps = self.enforcer.plan.current_step_index, self.enforcer.terms.steps
        return steps[place] if 0 <= place < len(steps) else None

    def _due(self) -> StepTerms | None:
        """Give the current step; where it asks nothing of a person, one it may be passed over for.

        A step that waits for a person behind optional ones is asked about while these are due; so
        is any that waits where steps interleave.
        """
        step, terms, state = self._current(), self.enforcer.terms, self.enforcer.state
        if step is None or self._kind_of(step):
            return step
        if terms.interleaved:
            still = (one for one in terms.steps if one.index not in state.closed)
            return next((one for one in still if waits_for_person(one, state)), step)
        return due_past(terms, state) or step

    def _kind_of(self, step: StepTerms) -> str:
        """Say what a step asks of a person; nothing where calls are to close it."""
        if waits_for_person(step, self.enforcer.state):
            return "approval" if step.step.kind == "approval" else "manual"
        if declined_words(step, self.enforcer.state) is not None:
            return ""  # nothing frees it
        return "stuck" if self.enforcer.is_stuck else ""

    # -- drawing ---------------------------------------------------------------------------

    def _served(self, text: str) -> str:
        return self._redactor.text(text)

    def _text(self, text: str) -> str:
        return clip(visible(self._served(text)), MAX_TEXT)

    @traitlets.validate("who")
    def _seen(self, proposal: Any) -> str:
        return self._text(str(proposal["value"]))

    @traitlets.observe("who")
    def _named(self, _change: Any) -> None:
        if self.faults:
            self.faults = self.problems()

    @guarded
    def _heard(self, _event: Any) -> None:
        self._draw()

    def _draw(self) -> None:
        for name, value in self._drawn().items():
            setattr(self, name, value)

    def _drawn(self) -> dict[str, Any]:
        book = self.enforcer.plan.playbook
        return {
            "title": self._text(book.id),
            "about": self._text(book.name),
            "steps": self._listed(),
            "asks": self._asked(),
        }

    def _listed(self) -> list[dict[str, Any]]:
        told = Told.of_run(self.enforcer.run)
        here = self.enforcer.plan.current_step_index
        first = max(0, min(here - MAX_STEPS // 2, len(told.steps) - MAX_STEPS))
        return [self._line(told, one) for one in told.steps[first : first + MAX_STEPS]]

    def _line(self, told: Told, one: Seen) -> dict[str, Any]:
        word = step_status(one.facts)
        return {
            "place": one.place,
            "name": self._text(one.node.name),
            "status": badge(word, STATUS_ROLES[one.facts.status])[1:],
            "here": one.node.key == told.pointer,
            "optional": not one.required,
        }

    def _asked(self) -> dict[str, Any]:
        step = self._due()
        if step is None:
            return {"kind": "", "step": "", "about": "Every step is closed.", "lines": []}
        kind = self._kind_of(step)
        asked = {"kind": kind, "step": self._text(step.id), "verb": VERBS.get(kind, "")}
        if kind == "approval":
            asked["other"] = "Decline"
        lines = [self._text(hint) for hint in step.step.hints]
        if kind == "stuck":
            lines = [self._text(str(self.enforcer.stuck_reason)), *lines]
        way = way_past(self.enforcer.terms, self.enforcer.state)
        if step is not self._current() and way is not None:
            lines = [self._text(way), *lines]
        about = self._text(step.step.description)
        if not kind:
            tools = listed([f"'{self._text(tool)}'" for tool in step.tools]) or "tools"
            lines = []
            about = f"Step {asked['step']} is done by calls of {tools}."
            declined = declined_words(step, self.enforcer.state)
            if declined is not None:
                about = self._text(f"The {declined}.")
        return {**asked, "about": about, "lines": lines}

    def view(self) -> Card:
        """Show what is asked, and where the plan stands."""
        return form_card(self)

    def line(self) -> str:
        """Say what is asked of a person."""
        begins, asks = super().line(), self.asks
        parts = [begins, asks["about"] if not asks["kind"] else ""]
        return " · ".join(part for part in (*parts, self.said) if part)

    def close(self) -> None:
        """Hear no more of the plan, and take the widget away."""
        end = self.__dict__.get("_unheard")  # none where it could not be made
        if end is not None:
            end()
        super().close()

    # -- messages --------------------------------------------------------------------------

    @asked("hand_in")
    def _asked_hand_in(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        who, note = str(about.get("who", "")), str(about.get("note", ""))
        declines = about.get("decline") is True
        if about.get("step") != self.asks["step"]:
            raise DefinitionError(
                "the plan has gone on since",
                code="gone_on",
                fix="look at what is asked now, and hand it in again",
            )
        return {
            "done": self.hand_in(who, note, decline=declines),
            "faults": self.faults,
            "said": self.said,
        }
