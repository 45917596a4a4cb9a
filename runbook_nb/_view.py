"""What a view is made of: plain data that says what to show, with no markup in it.

Base layer. Every public object answers ``view()`` with a `Card`; ``render`` turns cards into
text, Markdown and HTML and knows no other class. The order of the parts is the reading order.

Two kinds of words meet in a view and are never mixed up: *ours* are plain ``str``; *data*, which
came from outside and may hold anything, is wrapped in `Data`. A renderer escapes both and sets
data apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol, runtime_checkable

from runbook_nb._value import inner

#: What a badge stands for. ``a`` … ``d`` are verdicts in their declared order; then come outcomes
#: that are not verdicts, results of asking (``yes`` … ``unreadable``), states of a step, and at
#: last ``quiet``, words that are said in a low voice, and ``plain``.
Verdict = Literal["a", "b", "c", "d", "declined"]
Outcome = Literal["failed", "not_reached", "absent", "unchanged"]
Asked = Literal["yes", "no", "idle", "unreadable"]
Step = Literal["completed", "stuck", "pending", "skipped", "refused", "current", "active", "noted"]
Role = Verdict | Outcome | Asked | Step | Literal["quiet", "plain"]

VERDICT_ROLES: tuple[Role, ...] = ("a", "b", "c", "d")


@inner
class Data:
    """A value that came from outside.

    Attributes
    ----------
    value : object
        Shown by `runbook_nb._text.show`; None and the empty text read as "not recorded".
    unit : str or None
        Unit declared by the author, shown after the number.
    tone : {"plain", "strong", "dim", "code", "name"}
        How a rich view says it: ``strong`` what decides, ``dim`` what did not change, ``code`` in
        the type of data also where it reads like a sentence, ``name`` what a row is about.
    sign : str or None
        The role whose sign a rich view sets before it; words beside it say the same.
    """

    value: Any
    unit: str | None = None
    tone: Literal["plain", "strong", "dim", "code", "name"] = "plain"
    sign: Role | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        return self._told == other._told if isinstance(other, Data) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._told)

    @property
    def _told(self) -> tuple[Any, ...]:
        # One, one point zero and true are equal, and are not shown alike.
        return self.value.__class__, self.value, self.unit, self.tone, self.sign


@inner
class Badge:
    """A word with a role, optionally counted: ``3 declined``."""

    word: str
    role: Role = "plain"
    count: int | None = None


@inner
class Break:
    """Begins a new line in a cell of a rich view; elsewhere a dot stands for it."""


#: One run of a cell or sentence. None is "not recorded" and shows as a dash; "" shows nothing.
Run = str | int | Data | Badge | Break | None
#: The content of a table cell, a sentence or a fact: one run or several in a row. A renderer puts
#: one space between runs, and none where our words bring their own or begin with punctuation.
Cell = Run | tuple[Run, ...]


@inner
class Column:
    """A column of a `Table`.

    Attributes
    ----------
    head : str, Data or Badge
        Its heading (`Data` when the name came from outside).
    align : {"left", "right"}
        Right only when all its values are numbers.
    in_text : {"bare", "labelled", "joined", "hidden", "whole"}
        In plain text the cell stands alone, after its heading (``age 30``), right behind the cell
        before it (``age_days 30`` from two columns), not at all, or, in the last column, alone and
        never cut: where it has no room it goes under its row.
    names : bool
        Its cells name the rows, and may hold a sentence under that; without such a column the
        first of words that are no outcomes does.
    equation : bool
        Its cells read key, actual, operator, limit; a rich view sets the actuals of one key right
        under each other, so that the operators line up.
    """

    head: str | Data | Badge
    align: Literal["left", "right"] = "left"
    in_text: Literal["bare", "labelled", "joined", "hidden", "whole"] = "bare"
    equation: bool = False
    names: bool = False


@inner
class Group:
    """Heads the rows of a `Table` from ``start`` to where the next group starts.

    Attributes
    ----------
    label : Cell
        What its rows have in common (``unprotected -> protected``).
    start : int
        Place of its first row in ``Table.rows``.
    total : int
        How many rows it has in all, also when fewer are carried.
    note : Cell
        Said once for all its rows (``rule 4 added``).
    """

    label: Cell
    start: int
    total: int
    note: Cell = ""


@inner
class Detail:
    """A line of its own under one row of a `Table` (``evidence incomplete: whois``)."""

    row: int
    text: Cell


@inner
class Table:
    """Rows under columns.

    Attributes
    ----------
    columns, rows : tuple
        One cell per column in each row. ``rows`` are the rows carried here.
    total : int
        How many rows there are in all; more than ``len(rows)`` when the view was capped.
    rest : str
        Where the rows that are not shown can be had (``"envelope.to_frame()"``).
    note : str
        What qualifies the whole table (``"worst first"``).
        That a dash means "not recorded" is added where it is needed.
    empty : str
        The sentence shown when there is no row.
    groups : tuple of Group
        Headings between rows, by ascending ``start``.
    details : tuple of Detail
        Lines under rows.
    strong_rows : tuple of int
        Places of the rows a rich view emphasises.
    whole : bool
        Whether plain text shows every carried row, because together they are one argument.
    focus : int or None
        Place of the row that stands open, with those around it, where a rich view folds some.
    plain : Table or None
        What plain text shows in its place, where signs and lines within cells say there what
        words have to say here.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    rest: str = ""
    note: str = ""
    empty: str = "no rows"
    groups: tuple[Group, ...] = ()
    details: tuple[Detail, ...] = ()
    strong_rows: tuple[int, ...] = ()
    whole: bool = False
    focus: int | None = None
    plain: Table | None = None


@inner
class Fact:
    """A term with what is said of it; None for ``detail`` says nothing of it."""

    term: Cell
    detail: Cell = None
    badges: tuple[Badge, ...] = ()


@inner
class Facts:
    """A list of facts under a word, with its true count.

    Attributes
    ----------
    label : str
        What they are (``"Not checked"``).
    items : tuple of Fact
        Those carried here.
    total : int
        How many there are.
    style : {"checked", "not_checked", "cannot_cover", "plain"}
        Which of the line styles goes with it.
    empty : str
        What is said when there is none.
    """

    label: str
    items: tuple[Fact, ...]
    total: int
    style: Literal["checked", "not_checked", "cannot_cover", "plain"] = "plain"
    empty: str = "none declared"


@inner
class Prose:
    """One sentence or short paragraph; ``tone`` says how loud it is."""

    text: Cell
    tone: Literal["plain", "dim", "warning"] = "plain"


#: What became of a step; ``declared`` when nothing has run.
State = Literal[
    "ran", "not_taken", "not_reached", "failed", "paused", "stopped", "current", "declared"
]


@inner
class FlowLine:
    """One step of an outline: how deep it lies, then its cells.

    Attributes
    ----------
    depth : int
    cells : tuple of Cell
        Its name first.
    state : str
        Tells apart what ran, what the decider did not take, what was not reached when the run
        ended, what failed, what waits for an answer, and what ended its chart on purpose.
    key : str
        Names the node of the graph the line belongs to.
    beside : bool
        Whether it runs side by side with its like, so that their order says nothing.
    """

    depth: int
    cells: tuple[Cell, ...]
    state: State = "ran"
    key: str = ""
    beside: bool = False


@inner
class GraphLine:
    """One line beside an edge: how many took it, why, or the author's sentence for that."""

    kind: Literal["count", "condition", "label"]
    text: Cell


@inner
class GraphNode:
    """One node of a `Graph`.

    Attributes
    ----------
    key : str
        Unique in the graph, and the ``key`` of the outline's line about the same thing.
    title, second, third : Cell
        Its name, what is said under it, and what is said under that.
    kind : str
        What it stands for: a stage by its kind, ``branch`` for a verdict; ``folded`` stands for
        several nodes, ``gap`` for subjects that ended without an outcome, ``note`` for a remark
        hung on a node.
    state : str
        What became of it; ``declared`` when nothing has run.
    role : str or None
        For a branch, the role of its word; for any other node, a state that has one.
    phase : str
        What the step is a part of, for a picture of many.
    """

    key: str
    title: Cell
    second: Cell = ""
    third: Cell = ""
    kind: Literal[
        "stage",
        "streaming",
        "pausable",
        "decider",
        "selector",
        "fork",
        "fan_out",
        "subchart",
        "branch",
        "folded",
        "gap",
        "note",
        "step",
    ] = "stage"
    state: State = "declared"
    role: Role | None = None
    phase: str = ""


@inner
class GraphEdge:
    """One edge of a `Graph`, by the keys of its nodes.

    Attributes
    ----------
    source, target : str
    state : str
        ``taken`` only for a recorded transition; ``gap`` leads to subjects without an outcome or
        to a note.
    role : str or None
        The role of the verdict it leads to.
    lines : tuple of GraphLine
        What is said beside it.
    default : bool
        Whether the decider takes it when nothing else matched.
    back : bool
        Whether it leads back to an earlier stage.
    times : int
        How many transitions were recorded.
    """

    source: str
    target: str
    state: Literal["taken", "not_taken", "declared", "gap"] = "declared"
    role: Role | None = None
    lines: tuple[GraphLine, ...] = ()
    default: bool = False
    back: bool = False
    times: int = 0


@inner
class GraphGroup:
    """The nodes drawn inside one frame; ``parent`` is the key of the group around it, if any."""

    key: str
    members: tuple[str, ...]
    parent: str = ""


@inner
class Graph:
    """A flowchart as data: what there is, how it hangs together, what became of it.

    Attributes
    ----------
    nodes, edges, groups : tuple
        In the order they are drawn; a node is in at most one group.
    direction : {"TB", "LR"}
        Which way it would best run; a chart too wide to run sideways runs down.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...] = ()
    groups: tuple[GraphGroup, ...] = ()
    direction: Literal["TB", "LR"] = "TB"


@inner
class Flow:
    """What ran, as an outline.

    Attributes
    ----------
    lines : tuple of FlowLine
        The outline in reading order.
    summary : str
        One sentence saying what happened, for readers who cannot see a picture.
    notes : tuple of str
        What was folded or left out.
    graph : Graph or None
        The same as a picture would show it; None where there is nothing to draw.
    """

    lines: tuple[FlowLine, ...]
    summary: str = ""
    notes: tuple[str, ...] = ()
    graph: Graph | None = None


@inner(kw_only=False)
class Series:
    """How often one word was said, from one occasion to the next; None where nobody counted."""

    word: str
    role: Role
    values: tuple[int | None, ...]


@inner
class Plot:
    """Counts over time, a line for each word.

    Attributes
    ----------
    places : tuple of str
        What names each occasion, the oldest first.
    series : tuple of Series
        A value for each place.
    ends : tuple of str
        When the first and the last of them were.
    summary : str
        One sentence saying what happened, for readers who cannot see a picture.
    note : str
        What qualifies the whole plot.
    """

    places: tuple[str, ...]
    series: tuple[Series, ...]
    ends: tuple[str, str] = ("", "")
    summary: str = ""
    note: str = ""


Part = Table | Facts | Prose | Flow | Plot


@inner
class Section:
    """A labelled group of parts.

    Attributes
    ----------
    label : str
        Empty for a group without a heading.
    parts : tuple
        What it holds.
    note : Cell
        Qualifies the label (``"3 of 3 shown"``).
    in_text : bool
        Whether plain text, which is short by law, shows it. Markdown and rich views always do.
    """

    label: str
    parts: tuple[Part, ...]
    note: Cell = ""
    in_text: bool = True


@inner
class Card:
    """A whole view: one headline that stands alone, then sections, then closing facts.

    Attributes
    ----------
    kind, name : str
        What it is and what it is called (``"Envelope"``, ``"backup_triage"``).
    full_kind : str
        What it is in full words, where a rich view has room for them.
    state : str
        What became of it, said right after the name (``"failed at collect: KeyError"``).
    qualifiers : tuple of str
        Short facts that qualify the name (``"health-signal v1"``).
    eyebrow : tuple of Cell
        The same facts in full words (``"rules health-signal v1"``), for where they stand on a
        line of their own; empty when ``qualifiers`` do for both.
    headline : str
        The answer, without the counts that the badges carry.
    badges : tuple of Badge
        Counted outcomes; zero counts are left out by whoever builds the card.
    tail : str
        What the counts amount to, said after them (``"no verdict was reached"``).
    sections : tuple of Section
        In reading order.
    closing : tuple of str
        Last facts, shown on one line of plain text (``"checked 2"``).
    remarks : tuple of str
        Sentences plain text puts on lines of their own at the very end.
    heading : Cell
        What a rich view says in place of ``state``, ``headline`` and ``tail``; empty when those
        do. Badges in it are set as large as the counted ones.
    foot : Cell
        Last line of a rich view in place of ``closing`` and ``remarks``; None when those do.
    payload : callable or None
        Gives the machine-readable form of what is shown, of at most so many bytes (None: of any
        size); None when there is no such form or it does not fit. It is asked only by renderers
        that carry one.
    """

    kind: str
    name: str
    qualifiers: tuple[str, ...] = ()
    headline: str = ""
    badges: tuple[Badge, ...] = ()
    sections: tuple[Section, ...] = ()
    closing: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    state: str = ""
    eyebrow: tuple[Cell, ...] = ()
    tail: str = ""
    heading: Cell = ""
    foot: Cell = None
    full_kind: str = ""
    payload: Callable[[int | None], Mapping[str, Any] | None] | None = field(
        default=None, compare=False, repr=False
    )


@runtime_checkable
class Viewable(Protocol):
    """Anything that can say what it looks like."""

    def view(self) -> Card:
        """Give the card."""
        ...


#: The verdicts on steps, which are what became of them and no decider's words, with their roles.
#: An order that begins with these is theirs; there are answers without the last of them.
STEP_ROLES: dict[str, Role] = {
    "completed": "completed",
    "closed short": "stuck",
    "skipped": "skipped",
    "stuck": "stuck",
    "failed": "failed",
    "not finished": "active",
    "not reached": "not_reached",
    "approval declined": "failed",
}
_STEP_ORDER = tuple(STEP_ROLES)[:-1]


def verdict_role(word: str, order: tuple[str, ...], declined: str = "declined") -> Role:
    """Give a verdict its role: by declared order, ``declined`` always its own.

    The fifth and later verdicts share the last role; a word and a glyph tell them apart.

    Examples
    --------
    >>> verdict_role("unprotected", ("protected", "unprotected")), verdict_role("declined", ())
    ('b', 'declined')
    """
    if word == declined:
        return "declined"
    if order[: len(_STEP_ORDER)] == _STEP_ORDER and word in STEP_ROLES:
        return STEP_ROLES[word]
    words = [w for w in order if w != declined]
    place = words.index(word) if word in words else len(words)
    return VERDICT_ROLES[min(place, len(VERDICT_ROLES) - 1)]
