"""Which lines of an outline are told as one, so that a list stays readable; as pictures do.

What failed, waits or stopped is the last to go, then verdicts, then what ran; what was not come to
goes first. How much of the outline is shown is always said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from runbook_nb._text import counted
from runbook_nb._value import inner
from runbook_nb._view import Badge, Cell, FlowLine, Role, Run, State
from runbook_nb.render import cells

#: Steps nested deeper than this are folded into the step they lie in.
DEEPEST: Final = 12
#: A run of like steps is told short from so many on: its first, how many, its last.
LIKE_STEPS: Final = 4

#: States a reader looks for first, and how they are counted.
_NOTABLE: Final[dict[State, str]] = {
    "failed": "failed",
    "paused": "waiting",
    "stopped": "stopped",
    "current": "in progress",
}
_LEFT: Final = ("not_taken", "not_reached")


def shortened(
    lines: Sequence[FlowLine], most: int = cells.MAX_STEPS
) -> tuple[tuple[FlowLine, ...], str]:
    """Shorten an outline that is too long to read.

    Parameters
    ----------
    lines : sequence of FlowLine
        The whole outline.
    most : int
        How many lines a list has at most.

    Returns
    -------
    tuple
        The lines to show, and what was done to the others; empty when all are shown.

    Examples
    --------
    >>> from runbook_nb._view import Data
    >>> lines = [FlowLine(depth=0, cells=(Data(value=f"S{n}"),)) for n in range(70)]
    >>> short, note = shortened(lines)
    >>> [cells.cell_text(line.cells[0]) for line in short], note
    (['S0', '68 stages', 'S69'], '68 plain stages as 1 line')
    """
    shortener = _Shortener(lines)
    shortener.fold_deep()
    for step in _STEPS:
        if len(shortener.entries) > most:
            step(shortener, most)
    return tuple(entry.line for entry in shortener.entries), ", ".join(shortener.notes)


@inner(kw_only=False)
class _Entry:
    """A line, with what it stands for.

    ``stages`` and ``charts`` are those of a run told as one line; ``closed`` says whether plain
    steps inside it were folded; ``lines`` counts the lines of the whole outline it stands for.
    """

    line: FlowLine
    stages: int = 0
    charts: int = 0
    closed: bool = False
    lines: int = 1

    @property
    def telling(self) -> int:
        """Say how much a reader loses when the line goes."""
        if self.line.state in _NOTABLE:
            return 4
        if self.line.state in _LEFT:
            return 0
        return 2 if _badge_of(self.line) is not None else 1

    @property
    def plain(self) -> bool:
        """Whether there is no more to it than a name, or than a name whose inside was folded."""
        line = self.line
        if not line.cells or self.telling in (2, 4):
            return False
        return self.closed or all(cells.is_blank(cell) for cell in line.cells[1:])

    def like(self, other: _Entry) -> bool:
        """Whether both may be told together."""
        one, two = self.line, other.line
        return (one.depth, one.state, one.beside) == (two.depth, two.state, two.beside)


class _Shortener:
    """An outline on its way to fewer lines."""

    def __init__(self, lines: Sequence[FlowLine]) -> None:
        self.entries = [_Entry(line) for line in lines]
        self._folded = self._left_out = 0

    @property
    def notes(self) -> list[str]:
        runs = [entry for entry in self.entries if entry.stages or entry.charts]
        stages, charts = sum(e.stages for e in runs), sum(e.charts for e in runs)
        told = [counted(stages, "plain stage")] if stages else []
        told += [f"{counted(charts, 'folded step')}"] if charts else []
        said = [f"{' and '.join(told)} as {counted(len(runs), 'line')}"] if told else []
        if self._folded:
            said.append(f"what lies in {counted(self._folded, 'step')} folded")
        if self._left_out:
            said.append(f"{self._left_out} left out")
        return said

    # -- runs ------------------------------------------------------------------------------

    def fold_runs(self, most: int) -> None:
        """Tell each run of plain stages as its first, how many, and its last."""
        short: list[_Entry] = []
        run: list[_Entry] = []
        depths = [*(entry.line.depth for entry in self.entries[1:]), None]
        for entry, after in zip(self.entries, depths, strict=True):
            plain = entry.plain and (after is None or after <= entry.line.depth)
            if not plain or (run and not run[0].like(entry)):
                short += _told_short(run)
                run = []
            if plain:
                run.append(entry)
            else:
                short.append(entry)
        self.entries = [*short, *_told_short(run)]

    # -- steps with others inside them -----------------------------------------------------

    def fold_deep(self) -> None:
        """Fold what lies too deep to be moved in any further."""
        tree = _Tree(self.entries)
        self._fold({n for n in tree.heads if self.entries[n].line.depth >= DEEPEST})

    def fold_plain(self, most: int) -> None:
        """Fold steps in which nothing was decided, until the rest fits."""
        self._fold_until(most, least=0, highest=1)

    def fold_all(self, most: int) -> None:
        """Fold the other steps, until the rest fits."""
        self._fold_until(most, least=2, highest=4)

    def _fold_until(self, most: int, *, least: int, highest: int) -> None:
        tree, depth = _Tree(self.entries), [entry.line.depth for entry in self.entries]
        order = sorted(
            (n for n in tree.heads if least <= tree.rank[n] <= highest),
            key=lambda n: (tree.rank[n], -depth[n], -tree.size[n], -n),
        )
        left, chosen = len(self.entries), set[int]()
        last: tuple[int, int, int] | None = None
        for n in order:
            alike = tree.rank[n], depth[n], tree.size[n]
            if left <= most and alike != last:  # what is alike is told alike
                break
            left -= tree.close(n)
            chosen.add(n)
            last = alike
        self._fold(chosen)

    def _fold(self, chosen: set[int]) -> None:
        if not chosen:
            return
        short: list[_Entry] = []
        head: _Entry | None = None
        inside: list[_Entry] = []
        for n, entry in enumerate(self.entries):
            if head is not None and entry.line.depth > head.line.depth:
                inside.append(entry)
                continue
            if head is not None:
                self._close(short, head, inside)
            head, inside = (entry, []) if n in chosen else (None, [])
            if head is None:
                short.append(entry)
        if head is not None:
            self._close(short, head, inside)
        self.entries = short

    def _close(self, short: list[_Entry], head: _Entry, inside: list[_Entry]) -> None:
        short.append(_closed(head, inside))
        self._folded += 1

    # -- the rest --------------------------------------------------------------------------

    def cut(self, most: int) -> None:
        """Keep the lines a reader looks for first, in order, and count the others."""
        order = sorted(range(len(self.entries)), key=lambda n: (self.entries[n].telling < 4, n))
        kept = sorted(order[:most])
        self._left_out = len(self.entries) - len(kept)
        self.entries = [self.entries[n] for n in kept]


#: What is tried until an outline fits, from what loses least.
_STEPS: Final = (
    _Shortener.fold_runs,
    _Shortener.fold_plain,
    _Shortener.fold_runs,
    _Shortener.fold_all,
    _Shortener.fold_runs,
    _Shortener.cut,
)


class _Tree:
    """How the lines of an outline lie in one another."""

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self.parent = [-1] * len(entries)
        self.rank = [0] * len(entries)
        self.size = [1] * len(entries)
        above: list[int] = []
        for n, entry in enumerate(entries):
            while above and entries[above[-1]].line.depth >= entry.line.depth:
                above.pop()
            self.parent[n] = above[-1] if above else -1
            above.append(n)
        for n in range(len(entries) - 1, -1, -1):
            around = self.parent[n]
            if around >= 0:
                inside = max(self.rank[n], entries[n].telling)
                self.rank[around] = max(self.rank[around], inside)
                self.size[around] += self.size[n]
        self.heads = [n for n, size in enumerate(self.size) if size > 1]
        self._open = list(self.size)

    def close(self, n: int) -> int:
        """Fold a step; give how many lines fewer are shown."""
        fewer = self._open[n] - 1
        while n >= 0:
            self._open[n] -= fewer
            n = self.parent[n]
        return fewer


def _badge_of(line: FlowLine) -> Badge | None:
    runs = cells.runs_of(line.cells[0]) if line.cells else ()
    return next((run for run in runs if isinstance(run, Badge)), None)


def _told_short(run: list[_Entry]) -> list[_Entry]:
    if len(run) < LIKE_STEPS:
        return run
    first, *middle, last = run
    charts = sum(entry.charts or entry.closed for entry in middle)
    stages = sum(e.stages or 1 for e in middle if not e.closed and not (e.charts and not e.stages))
    one = "branch" if first.line.beside else "stage"
    words = [counted(stages, one, "branches" if first.line.beside else None)] if stages else []
    words += [counted(charts, "folded step")] if charts else []
    line = replace(middle[0].line, cells=(" and ".join(words),), key="")
    return [first, _Entry(line, stages, charts, lines=sum(e.lines for e in middle)), last]


def _closed(head: _Entry, inside: Sequence[_Entry]) -> _Entry:
    """Say in a step what lies in it and is not told."""
    outcomes: Counter[tuple[str, Role]] = Counter()
    verdict: tuple[str, Role] | None = None
    for entry in inside:
        line = entry.line
        badge = _badge_of(line)
        if badge is not None or not (line.cells and cells.is_blank(line.cells[0])):
            verdict = None if badge is None else (badge.word, badge.role)
        count = line.cells[1] if len(line.cells) > 1 else None
        if verdict is not None and type(count) is int:
            outcomes[verdict] += count
    said: list[Run] = []
    for (word, role), times in outcomes.items():
        if times:
            said += [Badge(word=word, role=role, count=times), ","]
    states = Counter(entry.line.state for entry in inside)
    said += [f"{states[s]} {words} inside," for s, words in _NOTABLE.items() if states[s]]
    number = sum(entry.lines for entry in inside)
    said.append(f"{counted(number, 'line')} folded")
    name, *rest = head.line.cells or ("",)
    behind: list[Cell] = list(rest)
    if behind and not cells.is_blank(behind[-1]) and _badge_of(head.line) is None:
        behind[-1] = (*cells.runs_of(behind[-1]), ",", *said)
    else:
        behind.append(tuple(said))
    telling = max((entry.telling for entry in inside), default=0)
    line = replace(head.line, cells=(name, *behind))
    return replace(head, line=line, closed=telling < 2, lines=head.lines + number)
