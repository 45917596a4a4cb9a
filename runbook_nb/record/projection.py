"""Rows of a walk, and the law that cuts a walk to a cap so that its decisions survive.

Record layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._frozen import FrozenList, Immutable
from runbook_nb._text import counted
from runbook_nb._value import frozen
from runbook_nb._view import Card, Column, Data, Section, Table
from runbook_nb.errors import DefinitionError
from runbook_nb.settings import settings

if TYPE_CHECKING:
    import pandas as pd

#: Rows a filed walk holds at most, unless told otherwise.
DEFAULT_WALK_CAP: Final = 500

#: The columns of a row on the wire, in order.
COLUMNS: Final = (
    "step",
    "type",
    "depth",
    "stage",
    "stage_id",
    "runtime_stage_id",
    "subflow",
    "text",
)


_cells: Final = attrgetter(*COLUMNS)


class RowInMaking(Immutable):
    """A row that is still being made: whoever makes many sets its fields, then calls it a row.

    It is laid out as `WalkRow` is, which is one of these that cannot be changed any more: that
    takes half the time a class takes that is never to be changed.

    Examples
    --------
    >>> row = RowInMaking()
    >>> for name, value in zip(COLUMNS, (0, "stage", 0, "A", "a", "a#0", None, "Ran A")):
    ...     setattr(row, name, value)
    >>> row.__class__ = WalkRow
    >>> row == WalkRow(0, "stage", 0, "A", "a", "a#0", None, "Ran A")
    True
    """

    __slots__ = COLUMNS

    step: int
    type: str
    depth: int
    stage: str | None
    stage_id: str | None
    runtime_stage_id: str | None
    subflow: str | None
    text: str


@frozen(kw_only=False)
class WalkRow(RowInMaking):
    """One row of a walk.

    Attributes
    ----------
    step : int
        Position among the rows it was given with, from 0.
    type : str
        ``stage``, ``step``, ``condition``, ``fork``, ``subflow``, ``break``, ``error``,
        ``pause``, ``retry``, ``emit`` and what other procedures add.
    depth : int
        0 for what the procedure did, 1 for what happened inside a stage.
    stage, stage_id, runtime_stage_id, subflow : str or None
        The stage's name and id, the id of this execution, the enclosing branch.
    text : str
        What happened, in words.
    """

    step: int
    type: str
    depth: int
    stage: str | None
    stage_id: str | None
    runtime_stage_id: str | None
    subflow: str | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Give the row as a mapping with exactly the eight columns, in order."""
        return dict(zip(COLUMNS, _cells(self), strict=True))


class WalkPage(FrozenList, Renderable):
    """Some rows of a walk in a row, as a list that says which of how many they are.

    Attributes
    ----------
    start : int
        The position of the first, or where it would be.
    total : int
        How many rows the walk has.

    Examples
    --------
    >>> row = WalkRow(4, "stage", 0, "A", "a", "a#0", None, "Ran A")
    >>> page = WalkPage([row], 4, 9)
    >>> page == [row], page.shown, page.complete
    (True, 1, False)
    """

    __slots__ = ("start", "total")
    # A list prints its entries; this is told as it is shown.
    __repr__ = Renderable.__repr__

    def __init__(self, rows: Iterable[WalkRow], start: int, total: int) -> None:
        super().__init__(rows)
        self.start = start
        self.total = total

    @property
    def shown(self) -> int:
        """How many rows it holds."""
        return len(self)

    @property
    def complete(self) -> bool:
        """Whether these are all rows of the walk."""
        return len(self) == self.total

    def to_frame(self) -> pd.DataFrame:
        """Give the rows as a DataFrame with the eight columns."""
        import pandas as pd

        return pd.DataFrame([row.to_dict() for row in self], columns=list(COLUMNS))

    def view(self) -> Card:
        """Show the rows, and which of how many they are."""
        of = counted(self.total, "row")
        headline = f"no row from {self.start} on, of {of}"
        if self:
            headline = f"rows {self.start} to {self.start + len(self) - 1} of {of}"
        shown = self[: settings.max_table_rows]
        table = Table(
            columns=(
                Column(head="row", align="right"),
                Column(head="stage"),
                Column(head="in"),
                Column(head="what happened"),
            ),
            rows=tuple(
                (row.step, Data(value=row.stage), Data(value=row.subflow), Data(value=row.text))
                for row in shown
            ),
            total=len(self),
        )
        return Card(
            kind="Walk",
            name="",
            headline=headline,
            sections=(Section(label="", parts=(table,)),) if self else (),
        )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (WalkPage, (list(self), self.start, self.total))


def page_bounds(start: Any, n: Any) -> tuple[int, int]:
    """Check where a page begins and how long it is; before the first row is the first.

    Raises
    ------
    DefinitionError
        One of them is no whole number.

    Examples
    --------
    >>> page_bounds(-5, 10), page_bounds(3, -1)
    ((0, 10), (3, 0))
    """
    for name, given in (("start", start), ("n", n)):
        if isinstance(given, bool) or not hasattr(given, "__index__"):
            raise DefinitionError(
                f"{name} of a page is {given!r}, not a whole number",
                where=name,
                fix="write walk.page(0, 50) for the first fifty rows",
            )
    return max(index(start), 0), max(index(n), 0)


@frozen(kw_only=False)
class ProjectedWalk(Immutable):
    """A walk cut to a cap, with counters that stay true.

    Attributes
    ----------
    rows : tuple of WalkRow
        Renumbered from 0.
    projection : {"full", "control-flow"}
        Whether everything fitted, or reads and writes were dropped.
    shown, total : int
        Rows kept, rows there were.
    complete : bool
        Whether they are the same.
    conditions_first : bool
        True when control flow itself passed the cap, so that decisions were kept before it.
    """

    rows: tuple[WalkRow, ...]
    projection: str
    shown: int
    total: int
    complete: bool
    conditions_first: bool = False


def project_walk(entries: Iterable[Any], cap: int) -> ProjectedWalk:
    """Cut a narrative to ``cap`` rows so that decisions survive.

    What fits is kept whole. What does not loses its reads and writes first; if control flow
    alone still passes the cap, ``condition`` rows are kept before other rows, in their order.

    Parameters
    ----------
    entries : iterable
        `WalkRow` objects, or mappings with ``type``, ``text``, ``depth`` and optionally
        ``stageName``, ``stageId``, ``runtimeStageId``, ``subflowId``.
    cap : int
        Most rows to keep, from 1.

    Returns
    -------
    ProjectedWalk
        Its ``total`` counts every entry given.

    Raises
    ------
    DefinitionError
        When the cap is not a whole number from 1.

    Examples
    --------
    >>> rows = [{"type": "stage", "text": "t", "depth": 0}] + [
    ...     {"type": "step", "text": "t", "depth": 1}] * 5
    >>> walk = project_walk(rows, 3)
    >>> walk.projection, walk.shown, walk.total, walk.complete
    ('control-flow', 1, 6, False)
    """
    if type(cap) is not int or cap < 1:
        raise DefinitionError(f"a walk's cap is a whole number from 1, not {cap!r}", where="cap")
    project = getattr(entries, "project", None)
    if callable(project):  # a walk cuts itself without making the rows it drops
        projected: ProjectedWalk = project(cap)
        return projected
    listed = entries if isinstance(entries, Sequence) else list(entries)
    if len(listed) <= cap:
        return _projected(listed, len(listed), "full")
    kinds = [_field(entry, "type", "type") for entry in listed]
    places, first = _places(kinds, cap)
    return _projected([listed[i] for i in places], len(listed), "control-flow", first)


def _places(kinds: Sequence[str], cap: int) -> tuple[list[int], bool]:
    control = [i for i, kind in enumerate(kinds) if kind != "step"]
    if len(control) <= cap:
        return control, False
    conditions = [i for i in control if kinds[i] == "condition"][:cap]
    others = (i for i in control if kinds[i] != "condition")
    return sorted([*conditions, *islice(others, cap - len(conditions))]), True


def _projected(
    entries: Sequence[Any], total: int, projection: str, first: bool = False
) -> ProjectedWalk:
    rows = tuple(_row(entry, step) for step, entry in enumerate(entries))
    return ProjectedWalk(rows, projection, len(rows), total, len(rows) == total, first)


def _field(entry: Any, name: str, wire: str) -> Any:
    return entry.get(wire) if isinstance(entry, Mapping) else getattr(entry, name, None)


def _row(entry: Any, step: int) -> WalkRow:
    return WalkRow(
        step,
        _field(entry, "type", "type"),
        _field(entry, "depth", "depth"),
        _field(entry, "stage", "stageName"),
        _field(entry, "stage_id", "stageId"),
        _field(entry, "runtime_stage_id", "runtimeStageId"),
        _field(entry, "subflow", "subflowId"),
        _field(entry, "text", "text"),
    )
