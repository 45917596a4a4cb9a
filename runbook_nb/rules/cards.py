"""How rule sets, decisions and selections look: cards made of tables and sentences, no markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from runbook_nb._text import MISSING, clip, counted, visible
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Fact,
    Facts,
    Part,
    Prose,
    Run,
    Section,
    Table,
    verdict_role,
)
from runbook_nb.rules.model import DECLINED_BRANCH, Rule, Unreadable
from runbook_nb.rules.plan import Tried
from runbook_nb.rules.wording import REDACTED, limit_text, op_words, value_text, when_text

if TYPE_CHECKING:
    from runbook_nb.rules.decision import Condition, Decision, Selection
    from runbook_nb.rules.frame import Judged
    from runbook_nb.rules.judging import Fallback
    from runbook_nb.rules.ruleset import RuleSet

#: Longest label that stands on the closing line of a decision in plain text.
CLOSING_LABEL = 80

#: How many rows, and how many of the keys read, a judged frame shows.
JUDGED_ROWS = 20
JUDGED_KEYS = 6

_Row = tuple[Cell, ...]
_TAKEN = Badge(word="yes, taken", role="yes")
#: The operators whose threshold is a limit to be told beside the number it was held against.
LIMITS = frozenset(("gt", "gte", "lt", "lte"))


def _badge(rules: RuleSet, branch: str) -> Badge:
    return Badge(word=visible(branch), role=verdict_role(branch, rules.branches))


# --- a rule set --------------------------------------------------------------------------------


def rule_set_card(rules: RuleSet) -> Card:
    """Show rules as a table in the order they are tried, and the ground outside them."""
    rows: list[_Row] = [
        (
            str(n),
            Data(value=when_text(rule.when, rule.unit_of), tone="code"),
            _badge(rules, rule.then),
            Data(value=rule.label) if rule.label else "",
        )
        for n, rule in enumerate(rules.rules, 1)
    ]
    if isinstance(rules.unreadable, Unreadable):
        rows.append(_branch_row(rules, "unreadable", "a value cannot be read", rules.unreadable))
    else:
        does = "raises an error" if rules.unreadable == "raise" else "the rule is not true"
        rows.append(("unreadable", "a value cannot be read", does, ""))
    if rules.default is not None:
        rows.append(_branch_row(rules, "default", "no rule fires", rules.default))
    table = Table(
        columns=(
            Column(head="rule"),
            Column(head="when"),
            Column(head="leads to"),
            Column(head="label"),
        ),
        rows=tuple(rows),
        total=len(rows),
        rest="rules.rules",
    )
    sections = [
        Section(
            label="Rules", parts=(table,), note="tried in order, the first that is true decides"
        )
    ]
    if rules.outside:
        facts = tuple(
            Fact(
                term=Data(value=entry.what),
                detail=(Data(value=entry.why), "(", Data(value=when_text(entry.where)), ")"),
            )
            for entry in rules.outside
        )
        sections.append(
            Section(
                label="Outside the rules",
                parts=(
                    Facts(
                        label="Cannot cover", items=facts, total=len(facts), style="cannot_cover"
                    ),
                ),
                note=f"leads to {DECLINED_BRANCH} before any rule",
            )
        )
    return Card(
        kind="RuleSet",
        name=visible(rules.title) or "without a name",
        headline=counted(len(rules.rules), "rule"),
        tail="" if rules.default else "no default",
        sections=tuple(sections),
    )


def _branch_row(rules: RuleSet, word: str, when: str, branch: Any) -> _Row:
    label: Cell = Data(value=branch.label) if branch.label else ""
    return (word, when, _badge(rules, branch.branch), label)


# --- a decision --------------------------------------------------------------------------------


def decision_card(decision: Decision, subject: str | None, place: str | None) -> Card:
    """Show a decision: its sentence, then every rule in order with what became of it."""
    rules = decision.rules
    title = visible(rules.title)
    shown = visible(str(decision.scrub(subject))) if subject else ""
    heading: list[Run] = ["No branch"]
    if decision.branch is not None:
        heading = [_badge(rules, decision.branch)]
    if shown:
        heading.append(Data(value=decision.scrub(subject)))
    reason = Section(label="", parts=tuple(_reason(decision)), in_text=False)
    label = decision.label
    closing = (clip(visible(label), CLOSING_LABEL) if label else "", visible(place or ""))
    return Card(
        kind="Decision",
        name=shown,
        eyebrow=(("rules", Data(value=title, tone="code")),) if title else (),
        headline=decision.sentence,
        sections=(reason, _evidence_section(decision)),
        closing=tuple(text for text in closing if text),
        heading=tuple(heading),
        foot=closing[1],
    )


def _reason(decision: Decision) -> Iterator[Part]:
    label = decision.label
    number = (decision.rule_index or 0) + 1
    if decision.via == "rule":
        said: tuple[Any, ...] = (
            (f"Rule {number} fired:", Data(value=label), ". ")
            if label
            else (f"Rule {number} fired. ",)
        )
        yield Prose(text=(*said, *_compared(decision), "."))
    elif decision.via == "default":
        yield Prose(
            text=("No rule fired, so the default holds:", Data(value=label), ".")
            if label
            else "No rule fired, so the default holds."
        )
    elif decision.via == "unreadable":
        because = (" (", Data(value=label), ")") if label else ()
        yield Prose(
            text=(
                f"Rule {number} could not be read:",
                *_unread(decision),
                *because,
                ", so no verdict was guessed.",
            )
        )
    elif decision.outside is not None:
        yield Prose(
            text=(
                "It lies outside the rules:",
                Data(value=decision.scrub(decision.outside.what)),
                "(",
                Data(value=decision.cause),
                "), ",
                Data(value=decision.scrub(decision.outside.why)),
                ".",
            )
        )
    else:
        yield Prose(text="No rule fired, and there is no default.", tone="warning")


def _compared(decision: Decision) -> tuple[Run, ...]:
    """Say what was compared: value and limit of a single number, else the whole cause."""
    tried = decision.deciding
    conditions = () if tried is None else decision.conditions_of(tried)
    if len(conditions) != 1 or conditions[0].op not in LIMITS or not conditions[0].apart:
        return (Data(value=decision.cause, tone="code"),)
    key, actual, _, limit = conditions[0].apart
    shown = actual if actual != REDACTED else None
    if not isinstance(shown, int | float | Decimal):
        return (Data(value=decision.cause, tone="code"),)
    words = (Data(value=actual, tone="strong"), ", the limit is", Data(value=limit, tone="strong"))
    return (Data(value=key), "was", *words)


def _unread(decision: Decision) -> tuple[Run, ...]:
    """Say which key could not be read, and emphasise why."""
    tried = decision.deciding
    conditions = () if tried is None else decision.conditions_of(tried)
    unread = [c for c in conditions if c.result is None and c.status in ("missing", "null", "nan")]
    if len(unread) != 1 or sum(c.result is None for c in conditions) != 1:
        return (Data(value=decision.cause),)
    why = "NaN" if unread[0].status == "nan" else unread[0].status
    return (Data(value=unread[0].key), "is", Data(value=why, tone="strong"))


def _evidence_section(judged: Decision | Selection) -> Section:
    rules = judged.rules
    tried = {t.position: t for t in judged.path.tried if not t.outside}
    rows: list[_Row] = []
    strong: list[int] = []

    def add(found: Iterable[_Row], decides: bool) -> None:
        start = len(rows)
        rows.extend(found)
        strong.extend(range(start, len(rows)) if decides else ())

    deciding = judged.path.tried[-1] if judged.path.via in ("rule", "unreadable") else None
    for t in judged.path.tried:
        if t.outside:
            taken = judged.path.outside_index == t.position
            add(_rows("outside", _badge(rules, DECLINED_BRANCH), judged, t, taken), taken)
    for index, rule in enumerate(rules.rules):
        number, leads = str(index + 1), _badge(rules, rule.then)
        if index in tried:
            taken = judged.path.via in ("rule", "select") and tried[index].result is True
            decides = taken or tried[index] is deciding
            add(_rows(number, leads, judged, tried[index], taken), decides)
        else:
            add(_untried(number, leads, judged, rule, _idle_word(judged)), False)
    if rules.default is not None and judged.path.via != "select":
        used = judged.path.via == "default"
        word = _TAKEN if used else _idle_word(judged)
        leads = _badge(rules, rules.default.branch)
        nothing = Badge(word="no condition", role="quiet")
        add([("default", leads, nothing, "", "", "", word)], used)
    table = Table(
        columns=(
            Column(head="rule"),
            Column(head="leads to"),
            Column(head="key"),
            Column(head="actual", align="right"),
            Column(head="op"),
            Column(head="limit"),
            Column(head="result"),
        ),
        rows=tuple(rows),
        total=len(rows),
        whole=True,
        rest="decision.conditions",
        strong_rows=tuple(strong),
    )
    note = f"{len(tried)} of {counted(len(rules.rules), 'rule')} tried"
    law = {
        "rule": ", in order, the first that is true decides",
        "unreadable": "; judging stops at the first rule that is true or unreadable",
    }.get(judged.path.via, "")
    return Section(label="Evidence", parts=(table,), note=note + law)


def _idle_word(judged: Decision | Selection) -> Badge:
    word = "not needed" if judged.path.via == "rule" else "not tried"
    return Badge(word=word, role="idle")


def _rows(
    number: str, leads: Badge, judged: Decision | Selection, tried: Tried, taken: bool
) -> Iterator[_Row]:
    head: _Row = (number, leads)
    function = judged.function_of(tried)
    if function is not None:
        word = _result_word(function.result, "rule_error", taken)
        said: Cell = "" if function.error is None else Data(value=function.error)
        yield (*head, Data(value=function.name), said, "", "", word)
        for key, value, _ in function.inputs:
            yield ("", "", Data(value=key), _actual(value), "read", "", "")
        return
    for condition in judged.conditions_of(tried):
        yield (*head, *_cells(condition), _result_word(condition.result, condition.status, taken))
        head, taken = ("", ""), False


def _cells(condition: Condition) -> tuple[Cell, ...]:
    return (
        Data(value=condition.key),
        _actual(condition.actual),
        op_words(condition.op, condition.threshold),
        Data(value=limit_text(condition.op, condition.threshold, condition.unit) or None)
        if condition.op not in ("exists", "missing", "is_null")
        else "",
    )


def _actual(value: Any) -> Cell:
    if value is MISSING:
        return None
    if value is None or isinstance(value, str):
        return (
            "null"
            if value is None
            else Data(value=value if value == REDACTED else value_text(value))
        )
    return Data(value=value)


def _untried(
    number: str, leads: Badge, judged: Decision | Selection, rule: Rule, word: Cell
) -> Iterator[_Row]:
    head: _Row = (number, leads)
    if not isinstance(rule.when, Mapping):
        yield (*head, Data(value=when_text(rule.when)), "", "", "", word)
        return
    for key, ops in rule.when.items():
        hidden = judged.hides(key)
        for op, threshold in ops.items():
            limit = REDACTED if hidden else judged.scrub(threshold)
            text = limit_text(op, limit, rule.unit_of(key))
            yield (
                *head,
                Data(value=key),
                "",
                op_words(op, threshold),
                Data(value=text) if text else "",
                word,
            )
            head, word = ("", ""), ""


def _result_word(result: bool | None, status: str | None, taken: bool) -> Badge:
    if result is None:
        word = f"unreadable, {(status or '').replace('_', ' ')}"
        return Badge(word=word, role="unreadable")
    if result is False:
        return Badge(word="no", role="no")
    return _TAKEN if taken else Badge(word="yes", role="yes")


# --- a selection -------------------------------------------------------------------------------


def selection_card(selection: Selection, subject: str | None, place: str | None) -> Card:
    """Show a selection: what was selected, then every rule with what became of it."""
    title = visible(selection.rules.title)
    return Card(
        kind="Selection",
        name=visible(str(selection.scrub(subject))) if subject else "",
        eyebrow=(f"rules {title}",) if title else (),
        headline=selection.sentence,
        sections=(_evidence_section(selection),),
        closing=(visible(place),) if place else (),
    )


# --- a frame -----------------------------------------------------------------------------------


def judged_card(judged: Judged) -> Card:
    """Show a judged frame: how many rows went which way, the first of them, what took longer."""
    rules, keys = judged.rules, judged.keys[:JUDGED_KEYS]
    rows: list[_Row] = []
    for place in range(min(len(judged), JUDGED_ROWS)):
        decision = judged.decision(place)
        read = dict(zip((c.key for c in decision.conditions), decision.conditions, strict=True))
        word: Cell = "no branch" if decision.branch is None else _badge(rules, decision.branch)
        values = (_actual(read[key].actual) if key in read else "" for key in keys)
        rows.append((str(place), word, _decided_by(decision), *values))
    table = Table(
        columns=(
            Column(head="row", align="right"),
            Column(head="verdict"),
            Column(head="rule"),
            *(Column(head=Data(value=key)) for key in keys),
        ),
        rows=tuple(rows),
        total=len(judged),
        rest="judged.to_frame()",
    )
    sections = [Section(label="Verdicts", parts=(table,))]
    if judged.fallbacks:
        facts = tuple(
            Fact(term=Data(value=_asked_words(judged, each)), detail=each.why)
            for each in judged.fallbacks[:JUDGED_ROWS]
        )
        sections.append(
            Section(
                label="Judged value by value",
                parts=(Facts(label="Conditions", items=facts, total=len(judged.fallbacks)),),
            )
        )
    counts = judged.counts()
    return Card(
        kind="Judged",
        name=visible(rules.title) or "without a name",
        headline=counted(len(judged), "row"),
        badges=tuple(
            Badge(word="no branch", role="quiet", count=count)
            if branch is None
            else Badge(word=visible(branch), role=verdict_role(branch, rules.branches), count=count)
            for branch, count in counts.items()
        ),
        sections=tuple(sections),
    )


def _decided_by(decision: Decision) -> str:
    number = (decision.rule_index or 0) + 1
    said = {"rule": f"{number}", "unreadable": f"{number}, unreadable", "none": "none"}
    return said.get(decision.via, decision.via)


def _asked_words(judged: Judged, fallback: Fallback) -> str:
    who = "outside" if fallback.outside else "rule"
    asked = "" if fallback.key is None else f": {fallback.key} {fallback.op}"
    return f"{who} {fallback.position + 1}{asked}"
