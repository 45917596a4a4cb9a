"""What is said beside an edge: how many took it, under which rule, in the author's words.

Record layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from runbook_nb._text import counted
from runbook_nb._view import Cell, Data, GraphLine
from runbook_nb.record.causes import Cause, Declared, unread_condition
from runbook_nb.rules.decision import Condition, Decision, Selection
from runbook_nb.rules.wording import condition_text, limit_text, op_words, value_text

#: Conditions told beside an edge before the rest is only counted.
MAX_CONDITIONS: Final = 2

Lines = tuple[GraphLine, ...]

#: No rule was true: the rules have a default, or the decider has one of its own.
_FELL: Final = ("default", "none")


def count_line(text: str) -> GraphLine:
    """Make the line that is set loudest."""
    return GraphLine(kind="count", text=text)


def condition_line(text: Cell) -> GraphLine:
    """Make a line that says when."""
    return GraphLine(kind="condition", text=text)


def _label(text: str | None) -> Lines:
    return (GraphLine(kind="label", text=Data(value=text)),) if text else ()


def _conditions(parts: Iterable[str]) -> Lines:
    texts = list(parts)
    more = len(texts) - MAX_CONDITIONS
    shown = [condition_line(Data(value=text)) for text in texts[:MAX_CONDITIONS]]
    return (*shown, condition_line(f"+{more} more")) if more > 0 else tuple(shown)


def declared_lines(ways: list[Declared], *, default: bool) -> Lines:
    """Say what leads down an edge nobody took: the first rule to it, or that it is the default."""
    ruled = [way for way in ways if way.conditions]
    falling = next((way for way in ways if way.word == "default"), None)
    words = () if not default else (condition_line("default"),)
    if not ruled:
        return (*words, *_label(falling.label if falling is not None else None))
    if len(ruled) > 1:
        words = (condition_line(_rule_words([way.word for way in ruled])), *words)
    return (*words, *_conditions(ruled[0].conditions), *_label(ruled[0].label))


def taken_lines(causes: list[Cause], *, default: bool) -> Lines:
    """Say why an edge was taken, for however many took it."""
    fell = default and any(cause.via in _FELL for cause in causes)
    if len(causes) == 1:
        parts = _cause_parts(causes[0])
        if fell:
            return (condition_line("default: no rule fired"), *_label(causes[0].label))
        also = (condition_line("also the default"),) if default else ()
        return (*_conditions(parts), *also, *_label(causes[0].label))
    words = ["default" if cause.via in _FELL else cause.word for cause in causes]
    if default and not fell:
        words.append("also the default")
    if not causes:
        return (condition_line("default"),) if default else ()
    parts = tuple(p for c in causes if c.via not in _FELL for p in _cause_parts(c))
    labels = {cause.label for cause in causes}
    common = labels.pop() if len(labels) == 1 else None
    return (condition_line(_rule_words(words)), *_conditions(parts), *_label(common))


def _rule_words(words: Iterable[str]) -> str:
    """Join the words for several causes: ``rules 2, 5``, ``rule 1, unreadable``."""
    told = list(dict.fromkeys(words))
    numbers = [word.removeprefix("rule ") for word in told if word.startswith("rule ")]
    others = [word for word in told if not word.startswith("rule ")]
    ruled = [f"rule{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"] if numbers else []
    return ", ".join([*ruled, *others])


def _cause_parts(cause: Cause) -> tuple[str, ...]:
    return cause.parts if cause.unread is None else (_unread_text(cause.unread),)


def _unread_text(condition: Condition) -> str:
    """Say in few words what could not be read: ``age_days missing, > 7``."""
    if condition.status not in ("missing", "null", "nan"):
        return condition.unreadable_text
    limit = limit_text(condition.op, condition.threshold, condition.unit)
    words = op_words(condition.op, condition.threshold)
    name = {"nan": "NaN"}.get(condition.status, condition.status)
    return f"{condition.key} {name}, {words} {limit}"


def decision_lines(
    decision: Decision, branch: str | None, ways: list[Declared], *, default: bool
) -> Lines:
    """Say what one decision has to do with an edge: why it was taken, or why not."""
    if decision.branch == branch or (decision.branch is None and default):
        return _why_taken(decision, default=default)
    ruled = [way for way in ways if way.rule is not None]
    if not ruled:
        return (count_line("default: not needed" if default else "not needed"), *_label_of(ways))
    also = (condition_line("also the default"),) if default else ()
    return _tried_lines(decision, ruled[0], (*_more(ruled), *also))


def selection_lines(selection: Selection, branch: str | None, ways: list[Declared]) -> Lines:
    """Say what one selection has to do with an edge: which rule selected its branch, or not."""
    if selection.path.via == "outside":
        return (count_line("outside the rules"),)
    ruled = [way for way in ways if way.rule is not None]
    if not ruled:
        return (count_line("no rule selects it"),)
    true = [way for way in ruled if way.rule in selection.path.selected]
    if not true:
        return _tried_lines(selection, ruled[0], _more(ruled))
    (tried,) = [t for t in selection.path.tried if t.position == true[0].rule and not t.outside]
    met = [condition.text for condition in selection.conditions_of(tried)]
    parts = _conditions(met or [selection.text_of(tried)])
    return (count_line(f"{true[0].word}: yes"), *parts, *_more(true), *_label(true[0].label))


def _more(ways: list[Declared]) -> Lines:
    more = len(ways) - 1
    return (condition_line(f"+{counted(more, 'more rule')}"),) if more else ()


def _tried_lines(judged: Decision | Selection, way: Declared, behind: Lines) -> Lines:
    """Say that a rule did not hold, could not be read, or was not tried."""
    found = next((t for t in judged.path.tried if t.position == way.rule and not t.outside), None)
    if found is None:
        parts = _conditions(way.conditions)
        return (count_line(f"{way.word}: not tried"), *parts, *behind, *_label(way.label))
    conditions = judged.conditions_of(found)
    if found.result is None:
        unread = next((c for c in conditions if c.result is None), None)
        text = judged.text_of(found) if unread is None else _unread_text(unread)
        return (count_line(f"{way.word}: unreadable"), *_conditions([text]), *behind)
    failed = next((c for c in conditions if c.result is False), None)
    told = [judged.text_of(found)] if failed is None else _unmet(failed)
    return (count_line(f"{way.word}: no"), *_conditions(told), *behind)


def _why_taken(decision: Decision, *, default: bool) -> Lines:
    label = _label(decision.label)
    deciding = decision.deciding
    if deciding is None:
        return (count_line("default: no rule fired"), *label)
    also = (condition_line("also the default"),) if default else ()
    if decision.via == "outside":
        return (count_line("outside the rules"), *_conditions([decision.cause]), *also, *label)
    unread = unread_condition(decision)
    if decision.via == "unreadable":
        text = decision.cause if unread is None else _unread_text(unread)
        return (count_line("unreadable"), *_conditions([text]), *also, *label)
    met = [condition.text for condition in decision.conditions_of(deciding)]
    number = (decision.rule_index or 0) + 1
    parts = _conditions(met or [decision.cause])
    return (count_line(f"rule {number}: yes"), *parts, *also, *label)


def _unmet(condition: Condition) -> list[str]:
    declared = condition_text(condition.key, condition.op, condition.threshold, condition.unit)
    return [declared, f"was {value_text(condition.actual)}"]


def _label_of(ways: list[Declared]) -> Lines:
    return _label(next((way.label for way in ways if way.label), None))
