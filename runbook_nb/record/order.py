"""In which order the stages of a structure are told and drawn, and how deep each lies.

Record layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from runbook_nb._value import inner
from runbook_nb.record.overlay import Overlay
from runbook_nb.record.structure import Structure, StructureNode

if TYPE_CHECKING:
    from runbook_nb.record.walk import Walk

#: Gives the rule sets of a decider or selector.
RulesOf = Callable[[StructureNode], Iterable[Any]]


def judging_rules(walk: Walk, overlay: Overlay, node: StructureNode) -> Iterable[Any]:
    """Give the rule sets that judged at a node; those of stages of its id where none did."""
    return tuple(overlay.rules.get(node.key, ())) or walk.rules_at(node.id)


@inner(kw_only=False)
class Drawn:
    """A node in the order of drawing, with how deep it lies."""

    node: StructureNode
    depth: int


def drawn_order(
    structure: Structure, rules_of: RulesOf | None, head: str | None = None
) -> Iterator[Drawn]:
    """Yield the nodes as they are told: each followed by its branches, then by what is inside it.

    A decider's branches come in the order its rules name them; those no rule names behind them,
    the default at the end.

    Parameters
    ----------
    structure : Structure
    rules_of : callable or None
        Gives the rule sets of a decider or selector; with None all is told as it was declared.
    head : str, optional
        Only what lies inside the stage of this key.
    """
    defaults = {edge.target for edge in structure.edges if edge.kind == "default"}

    def next_of(node: StructureNode) -> list[StructureNode]:
        branches = list(structure.branches_of(node.key))
        if rules_of is not None and branches and node.kind == "decider":
            first: dict[str | None, int] = {}
            for rules in rules_of(node):
                for rule in rules.rules:
                    first.setdefault(rule.then, len(first))
            branches.sort(key=lambda n: (n.key in defaults, first.get(n.branch, len(first))))
        return branches or _stages(structure, node.key)

    # A stack of our own: charts may lie in one another deeper than Python's stack reaches.
    open_at = [iter(_stages(structure, head))]
    met: set[str] = set()
    while open_at:
        node = next(open_at[-1], None)
        if node is None:
            open_at.pop()
            continue
        if node.key in met:
            continue
        met.add(node.key)
        yield Drawn(node, len(open_at) - 1)
        open_at.append(iter(next_of(node)))


def shown_order(
    structure: Structure, rules_of: RulesOf, overlay: Overlay | None, head: str | None = None
) -> Iterator[Drawn]:
    """Yield the nodes as `drawn_order` does, without branches that had nothing to spread over."""
    empty: int | None = None  # how deep the fan-out lies that spread over nothing
    for drawn in drawn_order(structure, rules_of, head):
        if empty is None or drawn.depth <= empty:
            spread = None if overlay is None else overlay.fan_outs.get(drawn.node.key)
            empty = drawn.depth if spread is not None and not spread.items else None
            yield drawn


def _stages(structure: Structure, head: str | None) -> list[StructureNode]:
    """Give the stages of a chart, without the branches that hang on one of them."""
    return [
        node
        for node in structure.inside(head)
        if node.kind != "branch" or structure.node(node.decider or "") is None
    ]
