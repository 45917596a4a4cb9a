"""A rule set with one of the changes made to it undone, and all others kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runbook_nb.rules.changes import RuleChange
from runbook_nb.rules.ruleset import RuleSet


def with_undone(
    rules: RuleSet, other: RuleSet, changes: Sequence[RuleChange], change: RuleChange
) -> RuleSet:
    """Give the later rules with one change undone.

    Parameters
    ----------
    rules, other : RuleSet
        The later rules, and the earlier ones.
    changes : sequence of RuleChange
        What differs from the earlier to the later.
    change : RuleChange
        The one to undo.

    Examples
    --------
    >>> from runbook_nb.rules.changes import rule_changes
    >>> from runbook_nb.rules.model import Rule
    >>> old = RuleSet("r", "1", [Rule({"a": {"gt": 7}}, "x")], "z")
    >>> new = RuleSet("r", "2", [Rule({"a": {"gt": 9}}, "x"), Rule({"b": {"eq": 1}}, "y")], "z")
    >>> changes = rule_changes(old, new)
    >>> with_undone(new, old, changes, changes[0]).rules == (old.rules[0], new.rules[1])
    True
    """
    places = {(one.part, one.new): one.old for one in changes}
    return _made(rules, other, change, (change.new, change.old), places)


def with_applied(
    rules: RuleSet, other: RuleSet, changes: Sequence[RuleChange], change: RuleChange
) -> RuleSet:
    """Give the earlier rules with one change alone applied to them.

    Parameters
    ----------
    rules, other : RuleSet
        The later rules, and the earlier ones.
    changes : sequence of RuleChange
    change : RuleChange

    Examples
    --------
    >>> from runbook_nb.rules.changes import rule_changes
    >>> from runbook_nb.rules.model import Rule
    >>> old = RuleSet("r", "1", [Rule({"a": {"gt": 7}}, "x")], "z")
    >>> new = RuleSet("r", "2", [Rule({"a": {"gt": 9}}, "x"), Rule({"b": {"eq": 1}}, "y")], "z")
    >>> changes = rule_changes(old, new)
    >>> with_applied(new, old, changes, changes[0]).rules == (new.rules[0],)
    True
    """
    places = {(one.part, one.old): one.new for one in changes}
    return _made(other, rules, change, (change.old, change.new), places)


def _made(
    base: RuleSet,
    source: RuleSet,
    change: RuleChange,
    place: tuple[int | None, int | None],
    twins: dict[tuple[Any, int | None], int | None],
) -> RuleSet:
    """Put one entry of the source in the place of its counterpart in the base."""
    found: dict[str, Any] = {
        "rules": base.rules,
        "default": base.default,
        "unreadable": base.unreadable,
        "outside": base.outside,
    }
    part, (was, now) = change.part, place
    name = "rules" if part == "rule" else part
    if part in ("rule", "outside"):
        entries, theirs = list(found[name]), getattr(source, name)
        moved = any(field.field == "position" for field in change.fields)
        if was is not None and now is not None and not moved:
            entries[was] = theirs[now]
        else:
            kept = [n for n in range(len(entries)) if n != was]
            entries = [entries[n] for n in kept]
            if now is not None:  # before the first that follows it in the source
                there = [twins.get((part, n)) for n in kept]
                later = (at for at, twin in enumerate(there) if twin is not None and twin > now)
                entries.insert(next(later, len(kept)), theirs[now])
        found[name] = entries
    else:
        found[name] = getattr(source, name)
    return RuleSet.drafted("tried", "tried", **found)  # the same parts are the same rules
