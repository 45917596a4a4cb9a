"""What a form looks like where it cannot run: its fields, how the last run ended, its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._text import MISSING, clip, counted, visible
from runbook_nb._view import Badge, Card, Column, Data, Prose, Section, Table
from runbook_nb.render.bundle import TEXT
from runbook_nb.widgets.formtold import answer_of

if TYPE_CHECKING:
    from runbook_nb.widgets.form import RunForm

#: What a secret that was given is shown as.
GIVEN: Final = "given, not shown"
NOT_GIVEN: Final = "not given"
#: Said of what was made of values that have changed since.
EARLIER: Final = "of earlier values"
#: So many problems stand in the line of plain text.
NAMED_FAULTS: Final = 3
#: Characters of a value that the static view shows, and of an answer that is a plain value.
MAX_VALUE: Final = 200
MAX_ANSWER: Final = 2_000

_WORDS: Final = {
    "ready": "ready",
    "running": "running",
    "stopping": "stopping",
    "finished": "finished",
    "failed": "failed",
    "stopped": "stopped",
    "refused": "refused",
    "paused": "waiting for an answer",
}


def form_card(form: RunForm) -> Card:
    """Show the fields, how the last run ended, and its answer."""
    sections = [Section(label="Fields", parts=(_fields(form),))]
    if form.outcome.get("what"):
        sections.append(Section(label="", parts=(Prose(text=_said(form), tone="warning"),)))
    answer = _answer(form)
    sections.extend(answer.sections)
    said = counted(len(form._fields.fields), "field")
    if answer.kind == "Absent":  # of which plain text has this line alone
        said = answer.headline
    if form.faults:
        said = f"{said}, {counted(len(form.faults), 'problem')}"
    return Card(
        kind="RunForm",
        name=form._name,
        state=_WORDS[form.status],
        headline=said,
        badges=answer.badges,
        heading=answer.heading or said,
        sections=tuple(sections),
    )


def _fields(form: RunForm) -> Table:
    rows = tuple(
        (
            Data(value=field.name),
            _shown(form, field.name),
            "yes" if field.required else "",
            form.faults.get(field.name) or field.description or field.hint,
        )
        for field in form._fields.fields
    )
    return Table(
        columns=(
            Column(head="field"),
            Column(head="value"),
            Column(head="required", in_text="labelled"),
            Column(head="about"),
        ),
        rows=rows,
        total=len(rows),
        empty="it takes no input",
    )


def _shown(form: RunForm, name: str) -> Data | str:
    if name in form._fields.secret:
        return GIVEN if name in form._secrets else NOT_GIVEN
    field = form._fields.by_name[name]
    try:
        value = field.read(form.entries[name])
    except ValueError:
        value = form.entries[name]
    return NOT_GIVEN if value is MISSING else Data(value=form._redactor().scrub(value))


def _answer(form: RunForm) -> Card:
    """Give the card of what the last run gave, or of how far it came."""
    given = form.result if form.result is not None else form.incomplete
    shown = answer_of(given, form._name)
    if isinstance(shown, Renderable):
        return shown.view()
    if shown is None or form._bundle is None:
        return Card(kind="", name="")
    said = Data(value=clip(form._served(form._bundle[TEXT]), MAX_ANSWER))
    return Card(kind="", name="", sections=(Section(label="Answer", parts=(Prose(text=(said,)),)),))


def _said(form: RunForm) -> tuple[Any, ...]:
    stage = form.outcome.get("stage")
    where: tuple[Any, ...] = ("at", Data(value=stage, tone="strong"), ":") if stage else ()
    head = Badge(word=_WORDS[form.status], role="failed")
    earlier = (f"{EARLIER}:",) if form.stale else ()
    return (head, *earlier, *where, Data(value=form.outcome["what"], tone="plain"))


def form_line(form: RunForm, begins: str) -> str:
    """Say how a form stands: what keeps it from running, and how the last run ended."""
    parts = [begins]
    faults = [f"{name} {said}".strip() for name, said in form.faults.items()]
    if faults:
        more = f" and {len(faults) - NAMED_FAULTS} more" if faults[NAMED_FAULTS:] else ""
        parts.append("; ".join(faults[:NAMED_FAULTS]) + more)
    outcome: Mapping[str, str] = form.outcome
    what, stage = outcome.get("what", ""), outcome.get("stage", "")
    if what:
        where = f"at {stage}: " if stage else ""
        parts.append(f"{EARLIER}: {where}{what}" if form.stale else f"{where}{what}")
    elif form.stale:
        parts.append(f"the answer is {EARLIER}")
    return " · ".join(clip(visible(part), MAX_VALUE) for part in parts)
