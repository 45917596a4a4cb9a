"""How a piece of work under a step looks: what became of it, and what the plan asks for now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from runbook_nb._text import counted
from runbook_nb._view import Badge, Card, Data, Prose, Role, Section
from runbook_nb.record.redact import Redactor, as_redact
from runbook_nb.record.steps import named_runs

if TYPE_CHECKING:
    from runbook_nb.playbooks.byhand import StepByHand

_WORDS: Final[Mapping[str, tuple[str, Role]]] = {
    "ready": ("not begun", "pending"),
    "running": ("under way", "active"),
    "done": ("done", "completed"),
    "failed": ("failed", "failed"),
    "cancelled": ("broken off", "skipped"),
    "refused": ("refused, not run", "refused"),
    "again": ("run again, outside the plan", "idle"),
    "closed": ("closed already, not run again", "idle"),
    "skipped": ("passed over", "skipped"),
    "declined": ("declined", "failed"),
}
#: What `brief` begins the line of the current step with.
_NOW: Final = "Now: "
#: What it begins a hint with.
_HINT: Final = "Hint: "


def work_card(work: StepByHand) -> Card:
    """Show a piece of work under a step."""
    served = Redactor(as_redact(work.enforcer.redact))
    word, role = _WORDS[work.word]
    sections = [Section(label="", parts=tuple(_told(work, served)))]
    sections.append(Section(label="", parts=tuple(_asked(work, served))))
    name = served.text(work.step_id)
    return Card(
        kind="Step",
        full_kind="Step by hand",
        name=name,
        qualifiers=(word,),
        eyebrow=(
            (Data(value=work.enforcer.plan.playbook.id, tone="code"),),
            ("by", Data(value=served.text(work.by))),
        ),
        headline=f"step {came}" if (came := _came_of(work)) else "",
        heading=(Badge(word=word, role=role), Data(value=name, tone="code"), came),
        sections=tuple(one for one in sections if one.parts),
    )


def _came_of(work: StepByHand) -> str:
    """Say what the work did to its step, after its name."""
    if work.word == "done":
        return "is closed" if work.is_closed else "stays open"
    return ""


def _told(work: StepByHand, served: Redactor) -> Iterator[Prose]:
    if work.word in ("refused", "closed"):
        yield Prose(text=Data(value=_sentence(served.text(work.why))), tone="warning")
        asked = work.enforcer.current_step_hints  # those stand below
        for hint in (one for one in work.hints if one not in asked):
            yield Prose(text=Data(value=_sentence(served.text(hint))))
    elif work.tool is not None and work.word != "ready" and work.called:
        facts = work.enforcer.state.steps.get(work.step_id)
        times = 0 if facts is None else facts.counted
        now = f". The step has {counted(times, 'call')} now." if times else "."
        yield Prose(
            text=("A call of", Data(value=served.text(work.tool), tone="code"), now), tone="dim"
        )
    if work.word == "done" and work.is_closed and (unmet := work.unmet):
        yield Prose(
            text=("Evidence not met, noted as a deviation:", *named_runs(map(served.text, unmet))),
            tone="warning",
        )
    if work.error is not None:
        said = f"{type(work.error).__name__}: {work.error}"
        yield Prose(text=Data(value=served.text(said)), tone="warning")
    if work.note:
        yield Prose(text=("Note:", Data(value=served.text(work.note))), tone="dim")


def _asked(work: StepByHand, served: Redactor) -> Iterator[Prose]:
    """Say what the plan asks for now: the step, what it takes, and each hint."""
    first, *lines = (served.text(one) for one in work.enforcer.brief("hand").splitlines())
    hints = [one for one in lines if one.startswith(_HINT)]
    takes = tuple(Data(value=_sentence(one)) for one in lines if one not in hints)
    now = first.startswith(_NOW)
    yield Prose(text=("Now:", Data(value=first.removeprefix(_NOW))) if now else Data(value=first))
    if takes:
        yield Prose(text=takes, tone="dim")
    for hint in hints:
        yield Prose(text=Data(value=hint), tone="dim")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
