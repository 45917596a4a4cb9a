"""What stands in a node and beside an edge, as lines of text: the same in DOT and in Mermaid.

Lines are wrapped by display width and capped; whatever was cut ends in an ellipsis and stands
whole in the list beside the picture.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal

from runbook_nb._value import inner
from runbook_nb._view import Badge, Cell, Graph, GraphEdge, GraphNode
from runbook_nb.render.cells import cell_text, fit, run_text, runs_of, wrap
from runbook_nb.render.theme import SIGNS

#: Columns a label is wrapped at, widest first, and how many lines of the author's sentence.
WRAPS: Final = (24, 20, 16)
LABEL_LINES: Final = 3
#: Lines and columns of a node's name and of what is said under it.
TITLE_LINES: Final = 3
TITLE_COLUMNS: Final = 28
SECOND_COLUMNS: Final = 46
NOTE_COLUMNS: Final = 20
#: The same of what is no box, whose corners take room, and where a picture is too wide.
CORNERED_COLUMNS: Final = 32
NARROW_COLUMNS: Final = 20
#: A condition is short by nature and gets more room than a sentence; a long one is cut.
CONDITION_LINES: Final = 2
CONDITION_ROOM: Final = 4
#: Branches of one decider from which labels and gaps are narrower.
MANY_BRANCHES: Final = 4

_CIRCLED: Final = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"

Weight = Literal["strong", "plain", "dim"]


@inner(kw_only=False)
class Line:
    """One line of text and how loud it is."""

    text: str
    weight: Weight


@inner(kw_only=False)
class Look:
    """How much is said beside the edges.

    Attributes
    ----------
    wrap : int
        Columns of a label.
    sentences : bool
        Whether the author's sentences are told.
    numbered : bool
        Whether edges carry only a number and the count, the rest being left to the list.
    narrow : bool
        Whether what stands in nodes is wrapped sooner.
    lean : bool
        Whether labels keep off their edges on one side only, and stages stand closer.
    """

    wrap: int = WRAPS[0]
    sentences: bool = True
    numbered: bool = False
    narrow: bool = False
    lean: bool = False


def most_branches(graph: Graph) -> int:
    """Count the ways out of the decider that has most."""
    deciders = {node.key for node in graph.nodes if node.kind == "decider"}
    ways = Counter(edge.source for edge in graph.edges if edge.source in deciders)
    return max(ways.values(), default=0)


_COLUMNS: Final = {
    "note": NOTE_COLUMNS,
    "decider": CORNERED_COLUMNS,
    "selector": CORNERED_COLUMNS,
    "fork": CORNERED_COLUMNS,
}


def node_lines(node: GraphNode, look: Look | None = None) -> list[Line]:
    """Give the lines of a node: its name, then what is said under it.

    Examples
    --------
    >>> badge = Badge(word="protected", role="a")
    >>> [line.text for line in node_lines(GraphNode(key="p", title=badge, kind="branch"))]
    ['● protected']
    """
    strong: Weight = "plain" if node.state == "not_taken" else "strong"
    narrow = look is not None and look.narrow
    columns = NARROW_COLUMNS if narrow else TITLE_COLUMNS
    title = [Line(text, strong) for text in _cut(_titled(node.title), columns, TITLE_LINES)]
    columns = _COLUMNS.get(node.kind, SECOND_COLUMNS)
    columns = min(columns, NARROW_COLUMNS) if narrow else columns
    under: list[str] = []
    for cell in (node.second, node.third):
        under += _cut(_titled(cell), columns, TITLE_LINES) if cell else []
    return [*(title or [Line("—", strong)]), *(Line(text, "dim") for text in under)]


def edge_lines(edge: GraphEdge, look: Look, number: int | None = None) -> list[Line]:
    """Give the lines beside an edge: the count, the conditions, the author's sentence.

    Examples
    --------
    >>> from runbook_nb._view import GraphLine
    >>> edge = GraphEdge(source="a", target="b", lines=(GraphLine(kind="count", text="7 subjects"),
    ...     GraphLine(kind="label", text="last backup older than the 7-day threshold")))
    >>> [line.text for line in edge_lines(edge, Look())]
    ['7 subjects', 'last backup older than', 'the 7-day threshold']
    >>> [line.text for line in edge_lines(edge, Look(numbered=True), 2)]
    ['② 7 subjects']
    """
    counts = [line.text for line in edge.lines if line.kind == "count"]
    if look.numbered and number is not None:
        mark = _CIRCLED[number - 1] if number <= len(_CIRCLED) else f"({number})"
        return [Line(" ".join([mark, *map(cell_text, counts[:1])]), "strong")]
    lines: list[Line] = []
    for line in edge.lines:
        text = cell_text(line.text)
        if line.kind != "label":
            weight: Weight = "strong" if line.kind == "count" else "plain"
            pieces = _cut(text, look.wrap + CONDITION_ROOM, CONDITION_LINES)
            lines += [Line(piece, weight) for piece in pieces]
        elif look.sentences:
            lines += [Line(piece, "dim") for piece in _cut(text, look.wrap, LABEL_LINES)]
    return lines


def _titled(title: Cell) -> str:
    """Write a name; the word of a role gets the role's sign."""
    runs = runs_of(title)
    if len(runs) == 1 and isinstance(runs[0], Badge) and runs[0].role in SIGNS:
        return f"{SIGNS[runs[0].role].glyph} {run_text(runs[0])}"
    return cell_text(title)


def _cut(text: str, columns: int, most: int) -> list[str]:
    lines = wrap(text, columns)
    if len(lines) > most:
        lines = [*lines[: most - 1], fit(f"{lines[most - 1]} …", columns)]
        if not lines[-1].endswith("…"):
            lines[-1] += "…"
    return lines
