"""What a rule lab shows, as JSON values: the form on the left, what it comes to on the right.

Every count is the comparison's. Texts are made for showing, lists are capped and say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING, clip, listed, show, visible
from runbook_nb._view import Role, verdict_role
from runbook_nb.render.theme import FILLS, SIGNS
from runbook_nb.rules.changes import RuleChange, rule_changes
from runbook_nb.rules.edges import Limit
from runbook_nb.rules.wording import SYMBOLS, function_name
from runbook_nb.runbook.comparing import Flip
from runbook_nb.runbook.sides import GAP_WORDS
from runbook_nb.widgets.base import MAX_STATE
from runbook_nb.widgets.drafts import DraftRule
from runbook_nb.widgets.labfields import ELEMENTS, LENGTH, condition, field_of, short
from runbook_nb.widgets.labspread import near_rows, spread_of

if TYPE_CHECKING:
    from runbook_nb.widgets.rulelab import RuleLab

#: How many rules, changed subjects, grounds outside and known keys are sent at once.
RULES: Final = 100
FLIPS: Final = 20
GROUNDS: Final = 20
KEYS: Final = 200
#: How many rules, elements of a list that can be changed and characters of a text that can be
#: changed are sent: the first that the state has room for.
_SIZES: Final = (
    (RULES, ELEMENTS, 10_000),
    (RULES, 20, 1_000),
    *((RULES >> halved, 20, LENGTH) for halved in range(7)),
    (0, 0, 0),
)
#: Room that is left for what a widget holds beside what it tells.
_SPARE: Final = 8 * 1024

_OPS: Final[dict[str, str]] = {
    **SYMBOLS,
    "exists": "exists",
    "missing": "is missing",
    "is_null": "is null",
}


def told(lab: RuleLab) -> dict[str, Any]:
    """Say what a lab shows."""
    comparison = lab.comparison
    limit = lab.limit
    spread = None if limit is None else spread_of(lab, limit)
    seen = {
        "title": short(lab.rules.name or "rules"),
        "before": short(lab.before.version or "before"),
        "notes": [short(note) for note in notes_of(lab)],
        "judged": comparison.compared,
        "words": [_word(lab, word) for word in lab.comparison.words],
        "keys": [short(key) for key in lab.facts.keys[:KEYS]],
        "ops": [[op, text] for op, text in _OPS.items()],
        "default": _default(lab),
        "unreadable": _unreadable(lab),
        "headline": headline(lab),
        "changed": comparison.changed,
        "unchanged": comparison.unchanged,
        "not_compared": [
            {"total": one.total, "words": GAP_WORDS[one.kind], "why": short(one.reason)}
            for one in comparison.not_compared
        ],
        "counts": [
            {"word": short(word), "old": old, "new": new}
            for word, (old, new) in comparison.counts().items()
            if old or new
        ],
        "histogram": spread,
        "flips": [_flip(flip) for flip in islice(comparison.flips(), FLIPS)],
        "transitions": _transitions(lab),
        "near": [] if limit is None else list(near_rows(lab, limit)),
        "is_changed": lab.edited.is_changed,
        "not_applied": len(lab.edited.wrong),
        "next": short(lab.edited.next_version),
        "kept": "" if lab.kept is None else short(lab.kept.version),
        "can_keep": lab.edited.is_changed and not lab.edited.wrong,
    }
    return seen | _rules(lab, MAX_STATE - _SPARE - _size(seen))


def _size(seen: Any) -> int:
    return len(json.dumps(seen).encode())


def _rules(lab: RuleLab, room: int) -> dict[str, Any]:
    """Tell the rules, as much of them as there is room for."""
    silent = {one.rule_index: one.words for one in lab.silent}
    total, found = len(lab.edited.rules), dict[str, Any]()
    first = max(min(lab.first, total - 1), 0)
    for rules, elements, length in _SIZES:
        shown = lab.edited.rules[first : first + rules]
        found = {
            "rules": [_rule(lab, each, silent, elements, length) for each in shown],
            "first": first,
            "more": total - first - len(shown),
            "total": total,
            "page": rules,
            "outside": _outside(lab, elements, length) if rules else [],
        }
        if _size(found) <= room:
            break
    return found


def headline(lab: RuleLab) -> str:
    """Say how many verdicts change: ``4 verdicts change``."""
    changed = lab.comparison.changed
    if not changed:
        return "No verdict changes"
    return f"{changed} verdict{'' if changed == 1 else 's'} change{'s' if changed == 1 else ''}"


def _word(lab: RuleLab, word: str) -> dict[str, Any]:
    role: Role = verdict_role(word, lab.comparison.words)
    sign = SIGNS[role]
    return {
        "value": word,
        "word": short(word),
        "fill": FILLS[role],
        "glyph": sign.glyph,
        "size": sign.size,
    }


def _rule(
    lab: RuleLab, each: DraftRule, silent: Mapping[int, str], elements: int, length: int
) -> dict[str, Any]:
    rule = each.rule
    place = lab.edited.places().get(each.id)
    before = None if each.origin is None else lab.fired_before[each.origin]
    change = _change_of(lab, each)
    seen: dict[str, Any] = {
        "id": each.id,
        "then": rule.then,
        "label": _text(lab, rule.label),
        "fired": None if place is None else lab.fired[place],
        "before": before,
        "changed": "" if change is None or change.is_same else _fields(lab, change, each),
        "touched": change is None or not change.is_same or each.wrong is not None,
        "silent": "" if place is None else silent.get(place, ""),
        "wrong": None,
        "function": None,
        "conditions": [],
    }
    if each.wrong is not None:
        seen["wrong"] = {
            "what": short(each.wrong.what),
            "key": each.wrong.key,
            "instead": each.wrong.instead,
            "kept": each.good is not None,
        }
    if not isinstance(rule.when, Mapping):
        seen["function"] = function_name(rule.when)
        return seen
    seen["conditions"] = [
        condition(lab, each, Limit(0, key, op, value), elements, length)
        for key, ops in rule.when.items()
        for op, value in ops.items()
    ]
    return seen


def notes_of(lab: RuleLab) -> list[str]:
    """Say what there is to know of the rules: of their version, and of words that lag behind them.

    A label is its author's sentence and is never rewritten; where it still names a limit that was
    changed, that is said.
    """
    return [*lab.notes, *_lagging(lab)]


def _lagging(lab: RuleLab) -> Iterator[str]:
    default = lab.edited.default
    said = None if default is None else default.label
    for each in lab.edited.rules:
        change = _change_of(lab, each)
        number = lab.edited.number_of(each.id)
        for field in () if change is None else change.fields:
            if field.field != "limit" or field.key is None or lab.hides(field.key):
                continue
            limit = clip(visible(listed(_words(field.new))), 40)
            now = f"the limit of {visible(field.key)} that is now {limit}"
            for old in _gone(field.old, field.new):
                for whose, label in ((f"rule {number}", each.rule.label), ("the default", said)):
                    if label and _names(label, old):
                        yield f"the label of {whose} still names {visible(old)}, {now}"


def _gone(old: Any, new: Any) -> list[str]:
    """Give the words of a limit that are no more in it."""
    stay = set(_words(new))
    # A single letter is a word of its own in any sentence.
    return [
        word
        for word in dict.fromkeys(_words(old))
        if word not in stay and (len(word) > 1 or word.isdigit())
    ]


def _words(limit: Any) -> list[str]:
    return [show(one) for one in (limit if isinstance(limit, list | tuple) else [limit])]


def _names(label: str, word: str) -> bool:
    """Say whether a label has a word in it, and not as a part of another or of a number."""
    return bool(re.search(rf"(?<![\w.]){re.escape(word)}(?!\w|\.\d)", label))


def _text(lab: RuleLab, text: str | None) -> str:
    return short(lab._served(text or ""))


def _change_of(lab: RuleLab, each: DraftRule) -> RuleChange | None:
    """Say what of a rule differs from what the lab began with; None for an added rule."""
    if each.origin is None:
        return None
    base = lab.rules
    alone = [type(base).bare([rule]) for rule in (base.rules[each.origin], each.good or each.rule)]
    return next(c for c in rule_changes(*alone) if c.part == "rule")


def _fields(lab: RuleLab, change: RuleChange, each: DraftRule) -> str:
    keys = each.rule.when if isinstance(each.rule.when, Mapping) else ()
    if any(map(lab.hides, keys)):
        return ", ".join(dict.fromkeys(field.field for field in change.fields))
    words = (
        field.words.replace("limit raised,", "limit").replace("limit lowered,", "limit")
        for field in change.fields
    )
    return short(" · ".join(words))


def _default(lab: RuleLab) -> dict[str, Any] | None:
    default = lab.edited.default
    if default is None:
        return None
    return {
        "then": default.branch,
        "label": _text(lab, default.label),
        "fired": _by(lab.after, "default"),
        "before": _by(lab.before, "default"),
    }


def _unreadable(lab: RuleLab) -> dict[str, Any]:
    """Say what a value does that cannot be read: ``skip`` and ``raise`` are no branches."""
    done = lab.edited.unreadable
    if isinstance(done, str):
        return {"then": done, "label": None, "fired": 0, "before": _by(lab.before, "unreadable")}
    return {
        "then": done.branch,
        "label": _text(lab, done.label),
        "fired": _by(lab.after, "unreadable"),
        "before": _by(lab.before, "unreadable"),
    }


def _outside(lab: RuleLab, elements: int, length: int) -> list[dict[str, Any]]:
    """Tell the ground outside; its numbers are negative, so that they are those of no rule."""
    return [
        {
            "id": -number,
            "what": _text(lab, one.what),
            "why": _text(lab, one.why),
            "conditions": [
                field_of(lab, Limit(0, key, op, value), elements, length)
                for key, ops in one.where.items()
                for op, value in ops.items()
            ],
        }
        for number, one in enumerate(lab.edited.outside[:GROUNDS], 1)
    ]


def _by(side: Any, via: str) -> int:
    """Count the subjects that something decided which is no rule."""
    places = [n for n, one in enumerate(side.standings) if one.via == via]
    return sum(side.numbers.count(n) for n in places)


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "subject": short(show(flip.subject)),
        "before": flip.before,
        "after": flip.after,
        "key": None if flip.key is None else short(flip.key),
        "actual": "" if flip.actual is MISSING else short(show(flip.actual)),
        "number": isinstance(flip.actual, int | float) and not isinstance(flip.actual, bool),
        "decided": short(flip.decided_before),
        "decides": short(flip.decided_after),
    }


def _transitions(lab: RuleLab) -> str:
    """Say which verdicts become which, when it is one sort of change."""
    found = {(group.before, group.after) for group in lab.comparison.groups}
    if len(found) != 1:
        return f"{len(found)} transitions" if found else ""
    ((old, new),) = found
    return f"all {short(old)} → {short(new)}"
