"""Joining what was logged elsewhere to a log: by content, in the order in which it was first met.

Record layer. Each worker keeps a log of its own. Interning its codes, and then its shapes, in
their order and worker by worker in the order of the items, gives the numbers that one log would
have given that had met all of it: what was met before keeps its number, the rest come behind.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from runbook_nb.record.log import Code, FanOut, Log
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.tracks import Filed


class Joined:
    """The numbers that the codes and shapes of another log have in this one.

    Parameters
    ----------
    log : Log
        This one.
    codes : sequence of Code
        Every code of the other log, in order.
    shapes : sequence of tuple of int
        Every shape of it, in order, as the numbers of its codes there.

    Examples
    --------
    >>> from runbook_nb.record.log import StageRef
    >>> mine, theirs, stage = Log(), Log(), StageRef("a", "A", "stage")
    >>> [mine.number(Code(kind, stage)) for kind in ("stage", "args")]
    [0, 1]
    >>> [theirs.number(Code(kind, stage)) for kind in ("args", "stop")]
    [0, 1]
    >>> theirs.shape_number((1, 0))
    0
    >>> joined = Joined(mine, theirs.codes, [shape.codes for shape in theirs.shapes])
    >>> joined.codes, mine.shapes[joined.shapes[0]].codes
    ([1, 2], (2, 1))
    """

    __slots__ = ("codes", "log", "shapes")

    def __init__(self, log: Log, codes: Sequence[Code], shapes: Sequence[tuple[int, ...]]) -> None:
        self.log = log
        self.codes = [log.number(_of(log, code)) for code in codes]
        self.shapes = [log.shape_number(self.numbers(shape)) for shape in shapes]

    def numbers(self, codes: Sequence[int]) -> tuple[int, ...]:
        """Give the numbers of a sequence of the other log's codes."""
        return tuple([self.codes[code] for code in codes])

    def moved(self, filed: Filed) -> Filed:
        """Give branches as they are filed in this log, with all fan-outs that ran inside them."""
        shapes = array("i", [n if n < 0 else self.shapes[n] for n in filed.shapes])
        inside = {
            number: facts_of(self.log, self.log.shapes[number]).fan_outs
            for number in dict.fromkeys(shapes)
            if number >= 0
        }
        if any(inside.values()):
            for number, offset in zip(shapes, filed.offsets, strict=True):
                for event in inside.get(number, ()):
                    self._move(filed.values[offset + event.at])
        return filed._replace(shapes=shapes)

    def _move(self, fan: FanOut) -> None:
        fan.move(self.log, self.shapes)
        for index, shape in fan.begun():
            inside = facts_of(self.log, shape).fan_outs
            if inside:
                values, offset = fan.part(index)
                for event in inside:
                    self._move(values[offset + event.at])


def _of(log: Log, code: Code) -> Code:
    """Give a code as this log says it: with the decision path that it knows."""
    return code if code.path is None else code._replace(path=log.same_path(code.path))
