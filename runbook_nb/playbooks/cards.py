"""How a plan looks: where it stands, what is left, its steps, its path.

Views only: what is counted comes from `told`, and what a bare plan does not carry is said so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from runbook_nb._text import clip, counted, show
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Data,
    Flow,
    Prose,
    Run,
    Section,
)
from runbook_nb.playbooks.rulecards import STATUS_ROLES, VERDICTS
from runbook_nb.playbooks.shown import followed_by
from runbook_nb.playbooks.steptables import declared_table, steps_table
from runbook_nb.playbooks.told import Told
from runbook_nb.record.graph import steps_graph
from runbook_nb.record.steps import (
    DECLINED,
    calls_words,
    states_counted,
    steps_sentence,
)

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook, PlaybookPlan
    from runbook_nb.playbooks.run import PlaybookRun

#: Characters of what a person is asked for, above a plan.
MAX_ABOUT: Final = 120

#: Steps that are named before they are only counted.
MAX_NAMED: Final = 6

_WAITS: Final = {"manual": "Waiting for a person", "approval": "Waiting for an approval"}
_NOTE: Final = "▶ marks the pointer · calls used / limit · probes matched / required"
_BARE: Final = (
    "Outcomes of calls, refusals, deviations, skills and the policy are not carried by a plan "
    "alone; the enforcer has them."
)


def run_card(run: PlaybookRun) -> Card:
    """Show a run under a playbook."""
    card = told_card(Told.of_run(run))
    if not run.is_unredacted:
        return card
    words = "unredacted: nothing is hidden in this view"
    return replace(
        card,
        qualifiers=(*card.qualifiers, "unredacted"),
        eyebrow=(*card.eyebrow, words),
    )


def plan_card(plan: PlaybookPlan) -> Card:
    """Show a plan: as whoever enforces it knows it, else its fields and what those do not carry."""
    followed = followed_by(plan)
    return told_card(Told.of_plan(plan)) if followed is None else followed.view()


def told_head(told: Told) -> Card:
    """Show where a plan stands, without its steps."""
    undone = len(told.undone)
    left = f" · {counted(undone, 'required step')} not done" if undone else ""
    headline = state_words(told)
    here = told.current
    where = f", {here.node.name}" if here is not None and told.verdict is None else ""
    return Card(
        kind="Plan",
        full_kind="Playbook plan",
        name=told.name,
        qualifiers=(told.policy or "policy not carried",),
        eyebrow=tuple(_eyebrow(told)),
        headline=f"{headline[:1].lower()}{headline[1:]}{where}{left}",
    )


def told_card(told: Told) -> Card:
    """Show a plan: its state, what is left, its steps, its path."""
    asked = _asked(told)
    shown: list[Section] = [
        *([Section(label="", parts=(Prose(text=asked),))] if asked else []),
        Section(label="", parts=tuple(_lead(told)), in_text=not told.whole),
    ]
    if told.steps:
        shown.append(Section(label="Steps", parts=(steps_table(told),), note=_NOTE))
        shown.append(Section(label="Path", parts=(path_of(told),), in_text=False))
    chips = [
        Badge(word=state, role=STATUS_ROLES[state], count=times)
        for state, times in states_counted(one.facts for one in told.steps)
    ]
    foot = calls_words(told.calls, told.refused)
    if told.unsettled:
        foot += f", {told.unsettled} not settled"
    return replace(
        told_head(told),
        heading=(state_words(told), *chips),
        sections=tuple(shown),
        closing=tuple(_counts(told)),
        foot=foot,
    )


def state_words(told: Told) -> str:
    """Say where a plan stands, in a few words that stand alone.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> step = PlaybookStep(id="look", description="Look.")
    >>> state_words(Told.of_playbook(Playbook(id="ir", name="IR", steps=[step])))
    'Not started'
    """
    here, many = told.current, len(told.steps)
    if told.verdict is not None:
        return VERDICTS.get(told.verdict, "Ended")
    if not many:
        return "No steps"
    if here is None:
        if not any(one.reached for one in told.steps):
            return "Not started"
        if told.undone:
            declined = any(one.facts.status == DECLINED for one in told.undone)
            return VERDICTS[DECLINED if declined else "incomplete"]
        return VERDICTS["pass_with_deviations" if told.deviations else "pass"]
    at = f"at step {here.place} of {many}"
    status = here.facts.status
    if status in ("stuck", "failed", DECLINED):
        return f"{status.capitalize()} {at}"
    if form := _waits(told):
        return f"{form} {at}"
    if not any(one.reached for one in told.steps):
        return "Not started"
    return f"At step {here.place} of {many}"


def _waits(told: Told) -> str:
    """Say for what a plan waits, where that is a person; an approval that was given is had."""
    here = told.current
    if here is None or told.verdict is not None or here.facts.approvals:
        return ""
    if here.facts.status in ("stuck", "failed", DECLINED):
        return ""
    return _WAITS.get(str(here.node.detail.get("form")), "")


def _asked(told: Told) -> Cell:
    """Say what a plan waits to have done or approved."""
    here = told.current
    if here is None or not _waits(told):
        return ""
    word = "To be approved:" if here.node.detail.get("form") == "approval" else "To be done:"
    about = clip(" ".join((here.node.description or here.node.name).split()), MAX_ABOUT)
    return word, Data(value=about)


def _eyebrow(told: Told) -> Iterator[Cell]:
    name = Data(value=told.name, tone="code")
    yield (name, show(told.version)) if told.version else (name,)
    if told.policy is None:
        yield "policy not carried"
        return
    outside = (
        "lets calls outside the plan through" if told.extra else "notes calls outside the plan"
    )
    if told.blocks and not told.extra:
        outside = "refuses calls outside the plan"
    yield "policy", Data(value=told.policy, tone="code"), f", {outside}"


def _lead(told: Told) -> Iterator[Prose]:
    if why := _why(told):
        yield Prose(text=why)
    if not told.whole:
        yield Prose(text=_BARE, tone="warning")
    facts: list[Run] = []
    undone = told.undone
    for place, one in enumerate(undone[:MAX_NAMED]):
        facts += [", " if place else "Required steps not done:", Data(value=one.node.name)]
    if len(undone) > MAX_NAMED:
        facts.append(f"and {len(undone) - MAX_NAMED} more")
    for said in _counts(told):
        facts += [" · ", said] if facts else [said]
    if facts:
        yield Prose(text=tuple(facts), tone="dim")


def _why(told: Told) -> Cell:
    """Say in one sentence why a plan stands where it does."""
    here = told.current
    if here is None:
        return ""
    name, facts = Data(value=here.node.name), here.facts
    if facts.status == "stuck" and facts.why:
        return name, ":", Data(value=_sentence(facts.why))
    if facts.status == DECLINED:
        note = facts.ended.get("note")
        said = (":", Data(value=note)) if note else ()
        return name, "was declined by", Data(value=facts.ended.get("who")), *said
    if facts.status == "failed" and facts.ended.get("note"):
        return name, "failed:", Data(value=facts.ended["note"])
    return ""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _counts(told: Told) -> Iterator[str]:
    """Yield what stands beside the state, so that no score stands alone."""
    if told.whole:
        yield f"deviations {told.deviations}"
    if told.set_back:
        yield f"set back {counted(told.set_back, 'time')}, and counted from then on"
    met, wanted = told.evidence
    if wanted:
        yield f"evidence {met} of {counted(wanted, 'probe')} on the steps reached"


# -- the path ------------------------------------------------------------------------------------


def path_of(told: Told) -> Flow:
    """Show the steps as a chain; the table above lists what is in it."""
    return Flow(
        lines=(),
        summary=steps_sentence([one.facts for one in told.steps]),
        graph=steps_graph(told.structure, told.overlay, told.pointer),
    )


def run_head(run: PlaybookRun) -> Card:
    """Show where a run stands."""
    return told_head(Told.of_run(run))


# -- before a run --------------------------------------------------------------------------------


def playbook_card(playbook: Playbook) -> Card:
    """Show a playbook nobody has begun: its steps, what each expects, how they follow."""
    told = Told.of_playbook(playbook)
    steps = told.steps
    optional = sum(not one.required for one in steps)
    words = counted(len(steps), "step") + (f", {optional} optional" if optional else "")
    strict = "in this order" if playbook.strict_sequence else "in any order"
    extra = "other tools may be called" if playbook.allow_extra_tools else "no other tools"
    sections = []
    if playbook.description:
        sections.append(Section(label="", parts=(Prose(text=Data(value=playbook.description)),)))
    if steps:
        sections.append(
            Section(label="Steps", parts=(declared_table(told),), note=f"{strict}, {extra}")
        )
        path = Flow(
            lines=(),
            summary=f"{words}, {strict}; {extra}",
            graph=steps_graph(told.structure, None, None),
        )
        sections.append(Section(label="Path", parts=(path,), in_text=False))
    return Card(
        kind="Playbook",
        name=playbook.id,
        qualifiers=(playbook.version,) if playbook.version else (),
        eyebrow=((Data(value=playbook.id, tone="code"), show(playbook.version)),),
        headline=words,
        heading=f"{show(playbook.name)}: {words}" if playbook.name else words,
        sections=tuple(sections),
        closing=tuple(f"tag {tag}" for tag in playbook.tags[:4]),
        foot="",
    )
