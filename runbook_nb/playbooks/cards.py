"""How a plan looks: where it stands, what is left, every step with its calls and what was noted.

Views only: what is counted comes from `told`, and what a bare plan does not carry is said so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import counted, show
from runbook_nb._view import (
    Badge,
    Break,
    Card,
    Cell,
    Column,
    Data,
    Detail,
    Flow,
    Group,
    Prose,
    Role,
    Run,
    Section,
    Table,
)
from runbook_nb.playbooks.rulecards import VERDICTS
from runbook_nb.playbooks.shown import followed_by
from runbook_nb.playbooks.told import Seen, Told
from runbook_nb.record.graph import steps_graph
from runbook_nb.record.phrases import step_status
from runbook_nb.record.steps import (
    calls_words,
    deviation_words,
    refusal_reason,
    states_counted,
    steps_sentence,
)
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook, PlaybookPlan
    from runbook_nb.playbooks.run import PlaybookRun

#: The badge of each status.
STATUS_ROLES: Final[Mapping[str, Role]] = {
    "completed": "completed",
    "stuck": "stuck",
    "failed": "failed",
    "skipped": "skipped",
    "in progress": "active",
    "pending": "pending",
}
#: Seconds a step takes before it is worth telling.
SHORTEST: Final = 0.1
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
    shown: list[Section] = [
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
            return VERDICTS["incomplete"]
        return VERDICTS["pass_with_deviations" if told.deviations else "pass"]
    at = f"at step {here.place} of {many}"
    status = here.facts.status
    if status in ("stuck", "failed"):
        return f"{status.capitalize()} {at}"
    if form := _WAITS.get(str(here.node.detail.get("form"))):
        return f"{form} {at}"
    if not any(one.reached for one in told.steps):
        return "Not started"
    return f"At step {here.place} of {many}"


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


# -- the table -----------------------------------------------------------------------------------


def steps_table(told: Told) -> Table:
    """Show every step with its calls and evidence, and under it what was not as it should be."""
    details = [
        Detail(row=row, text=text)
        for row, one in enumerate(told.steps)
        for text in _details(told, one)
    ]
    return Table(
        columns=(
            Column(head="", align="right"),
            Column(head="status"),
            Column(head="step", names=True),
            Column(head="expected tools"),
            Column(head="calls", align="right"),
            Column(head="probes", align="right"),
        ),
        rows=tuple(tuple(_cells(told, one)) for one in told.steps),
        total=len(told.steps),
        details=tuple(details),
        groups=tuple(_phases(told)),
        focus=None if told.current is None else told.current.place - 1,
        plain=_plain_table(told),
    )


def _phases(told: Told) -> Iterator[Group]:
    """Head the steps of each phase, where the playbook has any."""
    phases = [str(one.node.detail.get("phase") or "") for one in told.steps]
    if not any(phases):
        return
    start = 0
    for place in range(1, len(phases) + 1):
        if place == len(phases) or phases[place] != phases[start]:
            label: Cell = Data(value=phases[start]) if phases[start] else "no phase"
            yield Group(label=label, start=start, total=place - start)
            start = place


def _cells(told: Told, one: Seen) -> Iterator[Cell]:
    facts, detail = one.facts, one.node.detail
    here = one.node.key == told.pointer
    yield Badge(word=str(one.place), role="current") if here else one.place
    yield Badge(word=step_status(facts), role=STATUS_ROLES[facts.status])
    yield tuple(_named(one))
    yield tuple(_tools(told, one))
    most, used = detail.get("most"), one.used
    yield str(used) if most is None else f"{used}/{most}"
    met, wanted = one.probes
    yield f"{met}/{wanted}" if wanted else "—"


def _named(one: Seen) -> Iterator[Run]:
    yield Data(value=one.node.name, tone="name")
    if not one.required:
        yield Badge(word="optional")
    form = one.node.detail.get("form")
    if form:
        yield Badge(word=str(form))
    if one.facts.status == "completed" and one.facts.ended.get("by") in ("host", "person"):
        yield Badge(word=f"closed by {_closer(one)}")
    if about := _about(one):
        yield Break()
        yield Data(value=about, tone="dim")
    if took := seconds_words(one.seconds):
        yield Break()
        yield Badge(word=f"took {took}", role="quiet")


def _about(one: Seen) -> str:
    """Give the words about a step on one line, without the title of its phase before them."""
    phase = str(one.node.detail.get("phase") or "")
    text = (one.node.description or "").strip()
    if phase and text.startswith(f"{phase}\n\n"):
        text = text.removeprefix(phase)
    return " ".join(text.split())


def _closer(one: Seen) -> str:
    who = one.facts.ended.get("who")
    return str(who) if who else f"the {one.facts.ended.get('by')}"


def seconds_words(seconds: float | None) -> str:
    """Say how long something took; nothing where that was no time to speak of.

    Examples
    --------
    >>> seconds_words(0.42), seconds_words(75), seconds_words(7300), seconds_words(0.0004)
    ('0.4 s', '1 min 15 s', '2 h 1 min', '')
    """
    if seconds is None or seconds < SHORTEST:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _tools(told: Told, one: Seen) -> Iterator[Run]:
    expected = list(one.node.detail.get("tools", ()))
    met = [tool for tool, _ in one.facts.tools if tool not in expected]
    for place, tool in enumerate([*expected, *dict.fromkeys(met)]):
        if place:
            yield Break()
        sign, words = _tool_words(told, one, tool)
        yield Data(value=tool, tone="code", sign=sign)
        if words:
            yield Badge(word=words, role="quiet")
        if tool not in expected and expected:
            yield Badge(word="not expected", role="quiet")
    if not expected and not met:
        form = one.node.detail.get("form")
        yield Badge(word="closed by a person" if form else "any tool", role="quiet")


def _tool_words(told: Told, one: Seen, tool: str) -> tuple[Role, str]:
    """Say how the calls of a tool went, with the sign for it."""
    if not told.whole:
        times = one.facts.tools[tool, "unknown"]
        return ("idle", counted(times, "call")) if times else ("no", "")
    ok, failed, still = one.facts.of_tool(tool)
    words = [f"{ok} ok"] if ok else []
    words += [f"{failed} failed"] if failed else []
    words += [f"{still} open"] if still else []
    return ("yes" if ok else "failed" if failed else "no"), ", ".join(words)


def _details(told: Told, one: Seen) -> Iterator[Cell]:
    """Yield what was not as the playbook has it, a line for each kind."""
    facts = one.facts
    for name in one.node.detail.get("unresolved", ()):
        yield Badge(word="skill", role="noted"), Data(value=name), "was not given: it binds nothing"
    last = one is told.steps[-1]
    for noted in (*facts.deviations, *(told.after.deviations if last else ())):
        yield _marked("noted", deviation_words(noted))
    lists = [(facts, ""), (told.after, " after the last step")] if last else [(facts, "")]
    for counts, when in lists:
        for (tool, kind, limit), times in counts.refused.items():
            why = _refused_words(kind, limit)
            yield Badge(word=f"refused {times}{when}:", role="refused"), Data(value=tool), why
    if facts.status != "failed":  # why it failed stands above the table
        for word, role, *said in _sayings(one):
            yield _saying(Badge(word=word, role=role), *said)


def _refused_words(kind: str, limit: object) -> str:
    reason = refusal_reason(kind, limit)
    words = "is over" if reason.startswith("over ") else ""
    if words:
        calls = f" {'call' if limit == 1 else 'calls'}" if kind == "max_tool_calls" else ""
        return f"is {reason}{calls}"
    if kind == "playbook_complete":
        return "came when the playbook was complete"
    return f"is {reason}"


def _marked(role: Role, cell: Cell) -> Cell:
    """Set the sign of a role before a sentence of ours."""
    first, *rest = cell if isinstance(cell, tuple) else (cell,)
    if isinstance(first, str):
        return (Badge(word=first, role=role), *rest)
    return (Badge(word="noted:", role=role), first, *rest)


def _sayings(one: Seen) -> Iterator[tuple[str, Role, Any, Any]]:
    """Yield what was said of a step when it ended or was approved: how, its sign, by whom, what."""
    ended = one.facts.ended
    approvals = [(approval.get("who"), approval.get("note")) for approval in one.facts.approvals]
    who, note = ended.get("who"), ended.get("note") or ended.get("result")
    if note and (who, note) not in approvals:  # an approval that closes its step is told once
        word = "closed" if one.facts.status == "completed" else one.facts.status
        yield f"{word} by" if who else f"{word}:", "idle", who, note
    for who, note in approvals:
        yield "approved by", "yes", who, note


def _saying(word: Run, who: Any, note: Any) -> Cell:
    said: tuple[Run, ...] = (word, Data(value=who)) if who else (word,)
    if not note:
        return said
    flat = Data(value=" ".join(note.split()) if isinstance(note, str) else note)
    return (*said, ":", flat) if who else (*said, flat)


# -- plain text ----------------------------------------------------------------------------------


def _plain_table(told: Told) -> Table:
    """Give the steps as plain text has them: words for signs, and those around the pointer."""
    steps, most = told.steps, settings.max_text_rows
    first = 0
    if len(steps) > most and told.current is not None:
        first = min(max(told.current.place - most // 2, 0), len(steps) - most)
    shown = steps[first : first + most]
    details = []
    for row, one in enumerate(shown):
        details += [Detail(row=row, text=text) for text in _plain_details(told, one)]
    return Table(
        columns=(
            Column(head="", align="right"),
            *(Column(head=head) for head in ("status", "step", "expected tools")),
            Column(head="calls", in_text="labelled"),
            Column(head="more"),
        ),
        rows=tuple(tuple(_plain_cells(told, one)) for one in shown),
        total=len(steps),
        details=tuple(details),
        note=f"from step {first + 1}" if first else "",
        rest="run.to_frame()" if len(shown) < len(steps) else "",
    )


def _plain_cells(told: Told, one: Seen) -> Iterator[Cell]:
    facts, detail = one.facts, one.node.detail
    here = "> " if one.node.key == told.pointer else ""
    yield f"{here}{one.place}"
    yield step_status(facts)
    yield Data(value=one.node.name)
    yield tuple(_plain_tools(told, one))
    used, most = one.used, detail.get("most")
    still = f" +{facts.unsettled} open" if facts.unsettled else ""
    yield f"{used}{still}" if most is None else f"{used}/{most}{still}"
    met, wanted = one.probes
    more = [f"probes {met}/{wanted}"] if wanted else []
    more += [] if one.required else ["optional"]
    more += [str(detail["form"])] if detail.get("form") else []
    more += [took] if (took := seconds_words(one.seconds)) else []
    yield ", ".join(more)


def _plain_tools(told: Told, one: Seen) -> Iterator[Run]:
    expected = list(one.node.detail.get("tools", ()))
    met = dict.fromkeys(tool for tool, _ in one.facts.tools if tool not in expected)
    untouched = not one.facts.tools and one.facts.status != "pending"
    for place, tool in enumerate([*expected, *met]):
        if place:
            yield ","
        yield Data(value=tool)
        _, words = _tool_words(told, one, tool)
        said = [" ".join(reversed(part.split(" "))) for part in words.split(", ") if part]
        if not told.whole and words:
            said = [words]
        if said:
            yield ", ".join(said)
        elif untouched and place == len(expected) - 1:
            yield "not called"


def _plain_details(told: Told, one: Seen) -> Iterator[Cell]:
    facts = one.facts
    line: list[Run] = []
    counts = [facts, told.after] if one is told.steps[-1] else [facts]
    for noted in (noted for one_ in counts for noted in one_.deviations):
        yield _short(noted) or deviation_words(noted)
    for refused in (one_.refused for one_ in counts):
        for (tool, kind, limit), times in refused.items():
            reason = refusal_reason(kind, limit).removesuffix(" in this step")
            line += [" · "] if line else []
            line += [f"refused {times}", Data(value=tool), f": {reason}"]
    if line:
        yield tuple(line)
    for name in one.node.detail.get("unresolved", ()):
        yield "skill", Data(value=name), "was not given: it binds nothing"
    most = one.node.detail.get("most")
    if facts.status == "stuck" and facts.why and (most is None or one.used < most):
        yield "stuck:", Data(value=facts.why)  # where the numbers in the row do not say why
    for word, _, *said in _sayings(one):
        yield _saying(word, *said)


def _short(noted: Mapping[str, object]) -> Cell:
    names = noted.get("names")
    if noted.get("kind") == "evidence_incomplete" and isinstance(names, list | tuple) and names:
        runs: list[Run] = ["evidence incomplete:"]
        for place, name in enumerate(names):
            runs += [",", Data(value=name)] if place else [Data(value=name)]
        return tuple(runs)
    return ""


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
    table = Table(
        columns=(
            Column(head="", align="right"),
            Column(head="step", names=True),
            Column(head="expected tools"),
            Column(head="calls"),
            Column(head="probes"),
        ),
        rows=tuple(tuple(_declared(one)) for one in steps),
        total=len(steps),
        groups=tuple(_phases(told)),
    )
    strict = "in this order" if playbook.strict_sequence else "in any order"
    extra = "other tools may be called" if playbook.allow_extra_tools else "no other tools"
    sections = []
    if playbook.description:
        sections.append(Section(label="", parts=(Prose(text=Data(value=playbook.description)),)))
    if steps:
        sections.append(Section(label="Steps", parts=(table,), note=f"{strict}, {extra}"))
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


def _declared(one: Seen) -> Iterator[Cell]:
    detail = one.node.detail
    yield one.place
    runs: list[Run] = [Data(value=one.node.name, tone="name")]
    runs += [] if one.required else [Badge(word="optional")]
    runs += [Badge(word=str(detail["form"]))] if detail.get("form") else []
    if about := _about(one):
        runs += [Break(), Data(value=about, tone="dim")]
    yield tuple(runs)
    tools: list[Run] = []
    for tool in detail.get("tools", ()):
        tools += [Break()] if tools else []
        tools.append(Data(value=tool, tone="code"))
    anybody = "closed by a person" if detail.get("form") else "any tool"
    yield tuple(tools) or (Badge(word=anybody, role="quiet"),)
    yield _effort(detail.get("least"), detail.get("most"))
    probes: list[Run] = []
    for name in (*detail.get("probes", ()), *detail.get("checks", ())):
        probes += [Break()] if probes else []
        probes.append(Data(value=name))
    yield tuple(probes) or "—"


def _effort(least: int | None, most: int | None) -> str:
    if least and most is not None:
        return f"{least} to {most}"
    if most is not None:
        return f"at most {most}"
    return f"at least {least}" if least else "—"
