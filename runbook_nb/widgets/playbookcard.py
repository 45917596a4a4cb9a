"""What a playbook's form looks like where it cannot be filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runbook_nb._view import Badge, Card, Data, Prose, Section

if TYPE_CHECKING:
    from runbook_nb.widgets.playbookform import PlaybookForm

#: What is asked, in a few words.
ASKED: Final = {
    "manual": "waits for a person to close it",
    "approval": "waits for an approval",
    "stuck": "is stuck, and waits for a person",
}


def form_card(form: PlaybookForm) -> Card:
    """Show what is asked of a person above the plan."""
    plan, asks = form.enforcer.view(), form.asks
    kind, step = asks["kind"], Data(value=asks["step"], tone="code")
    parts = []
    if kind:
        parts.append(Prose(text=("Step", step, ASKED[kind], ".")))
        parts.append(Prose(text=Data(value=asks["about"])))
        parts += [Prose(text=Data(value=line), tone="dim") for line in asks["lines"]]
        who = Data(value=form.who) if form.who else Badge(word="not named", role="pending")
        parts.append(Prose(text=("Who:", who), tone="dim"))
    else:
        parts.append(Prose(text=asks["about"] if not asks["step"] else Data(value=asks["about"])))
    headline = f"step {asks['step']} {ASKED[kind]}" if kind else "nothing is asked of a person now"
    return replace(
        plan,
        kind="PlaybookForm",
        full_kind="PlaybookForm",
        headline=headline,
        heading=plan.heading,
        sections=(
            Section(label="Asked of a person", parts=tuple(parts)),
            # What the plan waits for is told above in the form's own words.
            *(replace(one, note="") for one in plan.sections if one.label or not one.in_text),
        ),
    )
