"""What a comparison looks like: what changed by transition and cause, the matrix, the rules.

Bridge layer: views only, no markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING, counted, visible
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Group,
    Part,
    Prose,
    Run,
    Section,
    Table,
    verdict_role,
)
from runbook_nb.rules.changes import RuleChange
from runbook_nb.rules.revision import changes_section
from runbook_nb.runbook.sides import GAP_WORDS

if TYPE_CHECKING:
    from runbook_nb.runbook.comparing import Comparison, Flip

#: How many changed subjects a card shows.
FLIPS: Final = 50

#: What keeps subjects from being compared that must be said in few words, too.
LACKING: Final = frozenset({"not_recorded", "hidden", "not_carried", "unnamed"})

#: How many subjects that came or went are named.
NAMED: Final = 10


def comparison_card(comparison: Comparison) -> Card:
    """Show a comparison: what changed, the counts, the rules side by side."""
    old, new = titles(comparison)
    headline = headline_of(comparison)
    sections: list[Section] = []
    if lead := tuple(_lead(comparison)):
        lacking = any(one.kind in LACKING for one in comparison.not_compared)
        spoken = bool(comparison.notes) or lacking
        sections.append(Section(label="", parts=lead, in_text=spoken))
    if comparison.changed:
        sections.append(changed_section(comparison))
    if comparison.matrix:
        sections.append(counts_section(comparison))
    if comparison.rule_changes:
        sections.append(rules_section(comparison))
    for label, names in (("Appeared", comparison.appeared), ("Gone", comparison.gone)):
        if names:
            sections.append(_names_section(label, names))
    return Card(
        kind="Compare",
        name=f"{old} -> {_after_name(old, new)}",
        headline=headline,
        badges=outcome_badges(comparison),
        sections=tuple(sections),
        heading=headline[:1].upper() + headline[1:],
    )


def titles(comparison: Comparison) -> tuple[str, str]:
    """Name both sides by their rules; after what happened where those are the same."""
    old, new = comparison.before.title, comparison.after.title
    if old == new and not comparison.notes and not comparison.after.again:
        return f"{old}, before", f"{new}, after"
    return old, new


def _after_name(old: str, new: str) -> str:
    """Leave out the name of the rules where it is the same."""
    name, _, _ = old.rpartition(" ")
    return new.removeprefix(f"{name} ") if name else new


def headline_of(comparison: Comparison) -> str:
    """Say how many verdicts changed: ``7 of 303 verdicts changed``."""
    total = comparison.compared
    if not total:
        return "no subject can be compared"
    if not comparison.changed:
        return "no verdict changed"
    return f"{comparison.changed} of {counted(total, 'verdict')} changed"


def outcome_badges(comparison: Comparison) -> tuple[Badge, ...]:
    """Count what did not change, what could not be compared, what came and went."""
    found = (
        ("unchanged", "unchanged", comparison.unchanged),
        ("not compared", "not_reached", sum(one.total for one in comparison.not_compared)),
        ("appeared", "plain", len(comparison.appeared)),
        ("gone", "plain", len(comparison.gone)),
    )
    return tuple(Badge(word=word, role=role, count=n) for word, role, n in found if n)  # type: ignore[arg-type]


def _lead(comparison: Comparison) -> Iterator[Part]:
    for note in comparison.notes:
        yield Prose(text=(f"{note[:1].upper()}{note[1:]}.",), tone="warning")
    said: list[Run] = []
    if comparison.after.again:
        said.append("Judged again from the recorded values, no tool called.")
    for one in comparison.not_compared:
        subjects = counted(one.total, "subject")
        if one.kind == "not_reached":
            said.append(f"{subjects} {'was' if one.total == 1 else 'were'} never reached.")
        elif one.kind in ("not_recorded", "hidden", "refused"):
            said += [f"{subjects} cannot be re-judged:", Data(value=one.reason), "."]
        else:
            said.append(f"{subjects} {GAP_WORDS[one.kind]}.")
    if said:
        yield Prose(text=tuple(said), tone="dim")


def changed_section(comparison: Comparison, most: int = FLIPS) -> Section:
    """Show the subjects whose verdict changed, by transition and cause."""
    rows: list[tuple[Cell, ...]] = []
    groups = []
    two_values = not comparison.same_facts
    for group in comparison.groups:
        label = (_badge(comparison, group.before), "->", _badge(comparison, group.after))
        # Ours, with what came from outside made visible in it.
        words = group.cause.words
        groups.append(Group(label=label, start=len(rows), total=group.total, note=words))
        shown = islice(comparison.flips(group), max(most - len(rows), 0))
        rows += [_flip_row(flip, two_values) for flip in shown]
    kept = [group for group in groups if group.start < len(rows)]
    old, new = _versions(comparison)
    columns = (
        Column(head="subject"),
        Column(head="key"),
        Column(head="actual", align=_side_of_numbers(rows), in_text="joined"),
        Column(head=Data(value=f"{old} decided by", tone="code"), in_text="hidden"),
        Column(head=Data(value=f"{new} decided by", tone="code"), in_text="hidden"),
    )
    total = comparison.changed
    table = Table(
        columns=columns,
        rows=tuple(rows),
        total=total,
        rest="comparison.to_frame()",
        groups=tuple(kept),
        whole=len(rows) == total,
    )
    return Section(label="Changed", parts=(table,), note=f"{len(rows)} of {total} shown")


def _versions(comparison: Comparison) -> tuple[str, str]:
    old, new = comparison.before.version, comparison.after.version
    return (old, new) if old != new else ("before:", "after:")


def _flip_row(flip: Flip, two_values: bool) -> tuple[Cell, ...]:
    key: Cell = Data(value=flip.key) if flip.key is not None else ""
    old, new = _value(flip.actual), _value(flip.actual_after)
    actual: Cell = new if flip.actual is MISSING else old
    if two_values and MISSING not in (flip.actual, flip.actual_after) and old != new:
        actual = (old, "->", new)
    return (Data(value=flip.subject), key, actual, flip.decided_before, flip.decided_after)


def _value(value: Any) -> Run:
    if value is MISSING:
        return None
    return "null" if value is None else Data(value=value)


def _side_of_numbers(rows: list[tuple[Cell, ...]]) -> Any:
    values = [row[2] for row in rows]
    numbers = all(
        isinstance(one, Data) and isinstance(one.value, int | float) and one.value is not True
        for one in values
    )
    return "right" if numbers and values else "left"


def _badge(comparison: Comparison, word: str) -> Badge:
    return Badge(word=visible(word), role=verdict_role(word, comparison.words))


def counts_section(comparison: Comparison) -> Section:
    """Show the matrix: rows before, columns after, with their sums."""
    counts, matrix = comparison.counts(), comparison.matrix
    words = [word for word, (old, new) in counts.items() if old or new]
    old, new = _versions(comparison)
    heads = [_badge(comparison, word) for word in words]
    rows: list[tuple[Cell, ...]] = []
    for word, head in zip(words, heads, strict=True):
        cells: list[Cell] = [head]
        for other in words:
            count = matrix.get((word, other), 0)
            tone: Any = "strong" if count and word != other else "dim"
            cells.append(Data(value=count, tone=tone))
        rows.append((*cells, counts[word][0]))
    rows.append((f"{new} total", *(counts[word][1] for word in words), comparison.compared))
    table = Table(
        columns=(
            Column(head=f"{old} ↓ {new} →"),
            *(Column(head=head, align="right") for head in heads),
            Column(head=f"{old} total", align="right"),
        ),
        rows=tuple(rows),
        total=len(rows),
        whole=True,
    )
    return Section(label="Counts", parts=(table,), note="bold = changed", in_text=False)


def rules_section(comparison: Comparison) -> Section:
    """Show the rules side by side, with what each change moved."""

    def branch(text: str) -> Cell:
        return _badge(comparison, text) if text in comparison.words else Data(value=text)

    def told(change: RuleChange) -> str:
        return f"{change.short}, {counted(comparison.moved_by(change), 'verdict')}"

    heads = _versions(comparison)
    changes = comparison.rule_changes
    return changes_section(changes, heads, branch=branch, told=told, in_text=False)


def _names_section(label: str, names: tuple[Any, ...]) -> Section:
    shown = names[:NAMED]
    table = Table(
        columns=(Column(head="subject"),),
        rows=tuple((Data(value=name),) for name in shown),
        total=len(names),
    )
    return Section(label=label, parts=(table,), note=f"{len(shown)} of {len(names)} shown")
