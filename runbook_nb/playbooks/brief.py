"""What a model, or a person, is told of a playbook before a call is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runbook_nb._text import clip, counted, did_you_mean, listed, visible
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.closing import stuck_reason
from runbook_nb.playbooks.judging import (
    current_of,
    declined_words,
    due_past,
    missing_tools,
    waits_for_person,
    way_past,
)
from runbook_nb.playbooks.keeper import Keeper
from runbook_nb.playbooks.limits import MAX_ID
from runbook_nb.playbooks.model import status_words
from runbook_nb.playbooks.terms import StepTerms
from runbook_nb.playbooks.unmet import asked_evidence
from runbook_nb.record.steps import DECLINED

#: What can be told of.
MODES: Final = ("plan", "step", "hand")


def brief_of(keeper: Keeper, mode: str = "plan") -> str:
    """Give the text that says what a playbook asks for now.

    Parameters
    ----------
    keeper : Keeper
        The plan and its terms.
    mode : {"plan", "step", "hand"}
        All steps, or the current one; ``hand`` tells of that to a person who does it.

    Raises
    ------
    PlaybookError
        There is no such mode.
    """
    if mode not in MODES:
        raise PlaybookError(
            f"a brief cannot be of {mode!r}",
            code="bad_brief",
            where="mode",
            fix=did_you_mean(str(mode), MODES) or f"use {listed(map(repr, MODES), 'or')}",
        )
    current = current_of(keeper.terms, keeper.state)
    lines: list[str] = []
    if mode == "plan":
        book = keeper.terms.playbook
        about = f": {visible(book.description)}" if book.description else ""
        lines.append(f"You are working through the playbook {visible(book.name)!r}{about}")
        how = "in any order" if keeper.terms.interleaved else "in this order"
        lines.append(f"Its {counted(len(keeper.terms.steps), 'step')}, {how}:")
        lines += [_line(keeper, one, one is current) for one in keeper.terms.steps]
    if current is None:
        lines.append("Every step is closed." if keeper.state.plan.completed else "No step is open.")
    else:
        lines += _asked(keeper, current, by_hand=mode == "hand")
    stuck = stuck_reason(keeper.terms, keeper.state)
    told = current is not None and declined_words(current, keeper.state) is not None
    if stuck is not None and not told:
        lines.append(f"The run is stuck: {stuck}.")
        if mode == "hand":
            lines.append("A person may close the step: %step … --done, or enforcer.complete(…).")
    return "\n".join(lines)


def _id(one: StepTerms) -> str:
    return clip(visible(one.id), MAX_ID)


def _line(keeper: Keeper, one: StepTerms, now: bool) -> str:
    status = status_words(keeper.state.plan.step_executions.get(one.id))
    status = DECLINED if declined_words(one, keeper.state) is not None else status
    optional = "" if one.step.required else ", optional"
    form = f", {one.step.kind}" if one.step.kind else ""
    marks = f" ({status}{optional}{form}{', now' if now else ''})"
    return f"{one.index + 1}. {_id(one)}: {visible(one.step.description)}{marks}"


def _asked(keeper: Keeper, one: StepTerms, *, by_hand: bool = False) -> Iterator[str]:
    yield f"Now: {_id(one)}. {visible(one.step.description)}"
    missing = missing_tools(one, keeper.state)
    declined = declined_words(one, keeper.state)
    if declined is not None:
        yield f"The {declined}."
        if one.step.required:
            ends = "The run cannot go on past it"
            on = "Other steps may still be done" if keeper.terms.interleaved else ends
            yield f"{on}; setting the plan back asks for it again."
        yield from _past(keeper, one, by_hand=by_hand)
        return
    if waits_for_person(one, keeper.state):
        word = "approved" if one.step.kind == "approval" else "closed"
        how = "with a note: %step … --done, or" if by_hand else ""
        call = "approve(…)" if one.step.kind == "approval" else "complete(…)"
        rest = f", {how} enforcer.{call}" if by_hand else "; wait for it"
        yield f"This step is {word} by a person{rest}."
    elif missing:
        yield f"Tools still to be called: {listed(map(visible, missing))}."
    yield from _past(keeper, one, by_hand=by_hand)
    early = [keeper.state.calls[name].tool for name in keeper.state.facts_of(one.id).early]
    if early:
        made = listed(map(visible, dict.fromkeys(early)))
        yield f"Called already, before its turn: {made}. A person may take that as done."
    if one.entries:
        yield f"Tools its skills allow: {listed(map(visible, sorted(one.entries)))}."
    if one.floor:
        yield f"It takes at least {counted(one.floor, 'call')}."
    if one.cap is not None:
        yield f"It takes at most {counted(one.cap, 'call')}."
    asked = list(asked_evidence(one, keeper.state))
    held = keeper.state.policy.evidence == "hold" and one.tools and not one.person
    if held and asked and not missing:
        yield "Its tools were called, and it stays open until there is the evidence."
    for name, text in asked:
        about = f": {visible(text)}" if text else ""
        yield f"Evidence asked for: {visible(name)}{about}"
    yield from (f"Hint: {visible(hint)}" for hint in one.step.hints)


def _past(keeper: Keeper, one: StepTerms, *, by_hand: bool) -> Iterator[str]:
    """Say that a step is optional, and which step of a person may be come to over it."""
    if one.step.required or keeper.terms.policy.optional == "blocking":
        return
    way, due = way_past(keeper.terms, keeper.state), due_past(keeper.terms, keeper.state)
    if way is None or due is None:
        yield "This step is optional."
        return
    yield way
    if by_hand:
        verb = "approve" if due.step.kind == "approval" else "complete"
        yield f"That passes it over: %step {_id(due)} --done, or enforcer.{verb}(…)."
