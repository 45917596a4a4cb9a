"""Where each row of a frame stands among the outcomes met so far.

One small number per row says which node of the plan's tree it has come to. Answering a condition
moves all rows at once: number and code make a pair, and a table says which node each pair is.
As long as there are few nodes the numbers are bytes, and pairs are made of all of them together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, Final

from runbook_nb.rules.kinds import CODES
from runbook_nb.rules.plan import DecisionPath, Plan, Step

#: How many nodes, and pairs, a byte can tell apart.
NARROW: Final = 256


class Outcomes:
    """The nodes met, and per row which one it has come to.

    Attributes
    ----------
    nodes : list of Step
        What is next for rows that stand there.
    numbers : bytes or list of int
        Per row the place of its node.
    """

    def __init__(self, plan: Plan, size: int) -> None:
        self.plan = plan
        self.size = size
        self.nodes: list[Step] = [plan.start]
        self.numbers: Any = bytes(size)

    @property
    def step(self) -> Any:
        """What is next for the rows that are not decided; None when all are.

        As many conditions in, all of them have the same one before them.
        """
        if not self.size:
            return None
        return next((node for node in self.nodes if not isinstance(node, DecisionPath)), None)

    def alive(self) -> Sequence[int]:
        """Give the rows that are not decided, in order."""
        waiting = [not isinstance(node, DecisionPath) for node in self.nodes]
        if all(waiting):
            return range(self.size)
        if isinstance(self.numbers, bytes):
            table = bytes(waiting).ljust(NARROW, b"\0")
            return list(compress(range(self.size), self.numbers.translate(table)))
        return list(compress(range(self.size), map(waiting.__getitem__, self.numbers)))

    def answer(self, codes: bytes) -> None:
        """Move every row on by its code; the codes of decided rows mean nothing."""
        top = next((code for code in range(CODES - 1, 0, -1) if code in codes), 0) + 1
        if isinstance(self.numbers, bytes) and len(self.nodes) * top <= NARROW:
            self._answer_narrow(codes, top)
        else:
            self._answer_wide(codes, top)

    def _answer_narrow(self, codes: bytes, top: int) -> None:
        pairs = codes if len(self.nodes) == 1 else paired(self.numbers, top, codes)
        table = bytearray(NARROW)
        nodes: list[Step] = []
        plain = True
        for place, node in enumerate(self.nodes):
            if isinstance(node, DecisionPath):
                table[place * top : place * top + top] = bytes([len(nodes)]) * top
                plain = plain and top == 1 and place == len(nodes)
                nodes.append(node)
                continue
            for code in range(top):
                pair = place * top + code
                if pair in pairs:
                    table[pair] = len(nodes)
                    plain = plain and pair == len(nodes)
                    nodes.append(self.plan.after(node, code))
        self.nodes = nodes
        self.numbers = pairs if plain else pairs.translate(bytes(table))

    def _answer_wide(self, codes: bytes, top: int) -> None:
        starts = [place * top for place in range(len(self.nodes))]
        pairs = [starts[number] + code for number, code in zip(self.numbers, codes, strict=True)]
        known: dict[int, int] = {}
        ended: dict[int, int] = {}
        nodes: list[Step] = []
        for pair in dict.fromkeys(pairs):
            place, code = divmod(pair, top)
            node = self.nodes[place]
            if isinstance(node, DecisionPath):
                if place not in ended:
                    ended[place] = len(nodes)
                    nodes.append(node)
                known[pair] = ended[place]
            else:
                known[pair] = len(nodes)
                nodes.append(self.plan.after(node, code))
        self.nodes = nodes
        self.numbers = list(map(known.__getitem__, pairs))

    def first_rows(self) -> Iterator[tuple[int, int]]:
        """Yield, per node, its place and the first row that stands there."""
        for place in range(len(self.nodes)):
            if isinstance(self.numbers, bytes):
                row = self.numbers.find(place)
            else:
                row = self.numbers.index(place)
            if row >= 0:
                yield place, row


def paired(numbers: bytes, top: int, codes: bytes) -> bytes:
    r"""Give ``number * top + code`` per row; all of them fit a byte.

    Examples
    --------
    >>> paired(b"\x00\x01\x02", 2, b"\x01\x00\x01")
    b'\x01\x02\x05'
    """
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        pairs = numpy.frombuffer(numbers, "u1") * numpy.uint8(top)
        pairs += numpy.frombuffer(codes, "u1")
        return bytes(pairs.tobytes())
    # Without numpy one long integer does it, since no byte runs over into the next.
    size = len(numbers)
    found = int.from_bytes(numbers, "little") * top + int.from_bytes(codes, "little")
    return found.to_bytes(size, "little")
