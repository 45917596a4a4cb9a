"""The steps of a plan as a table: what each expects, its calls, and what was not as it should be.

Views only. Plain text has a table of its own: words for signs, and the steps around the pointer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from runbook_nb._text import counted
from runbook_nb._view import (
    Badge,
    Break,
    Cell,
    Column,
    Data,
    Detail,
    Group,
    Role,
    Run,
    Table,
)
from runbook_nb.playbooks.rulecards import STATUS_ROLES
from runbook_nb.playbooks.told import Seen, Told
from runbook_nb.record.phrases import step_status
from runbook_nb.record.steps import (
    DECLINED,
    deviation_words,
    named_runs,
    refusal_reason,
)
from runbook_nb.settings import settings

#: Seconds a step takes before it is worth telling.
SHORTEST: Final = 0.1


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
    # Why the step at the pointer failed stands above the table.
    if facts.status != "failed" and not (facts.status == DECLINED and one is told.current):
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
    if declined := one.facts.declined:
        yield "declined by", "idle", declined.get("who"), declined.get("note")
    # An approval that closes its step is told once, and so is that one was declined.
    if note and (who, note) not in approvals and one.facts.status != DECLINED:
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
        return ("evidence incomplete:", *named_runs(names))
    return ""


# -- before a run --------------------------------------------------------------------------------


def declared_table(told: Told) -> Table:
    """Show the steps of a playbook nobody has begun, with what each expects."""
    return Table(
        columns=(
            Column(head="", align="right"),
            Column(head="step", names=True),
            Column(head="expected tools"),
            Column(head="calls"),
            Column(head="probes"),
        ),
        rows=tuple(tuple(_declared(one)) for one in told.steps),
        total=len(told.steps),
        groups=tuple(_phases(told)),
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
