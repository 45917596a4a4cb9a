"""Which branch of a fan-out is being run, where branches run on workers.

Chart layer. Nothing but the present context knows, because the functions of a branch are the
author's own. What is kept apart by it: the calls of tools that branches make at once, and the
branches that would have needed what cannot leave the process.
"""

from __future__ import annotations

import itertools
from contextvars import ContextVar


class Standing:
    """One branch as it is run on a worker.

    Attributes
    ----------
    fan : object
        Stands for one execution of one fan-out.
    index : int
        The branch.
    numbers : iterator of int
        Counts what the branch does one after another.
    refused : dict
        Why a branch could not have what it asked for, by its index.
    """

    __slots__ = ("_index", "fan", "numbers", "refused")

    def __init__(self, fan: object, index: int, refused: dict[int, str]) -> None:
        self.fan = fan
        self._index = index
        self.numbers = itertools.count()
        self.refused = refused

    @property
    def index(self) -> int:
        """Which branch it is."""
        return self._index

    def refuse(self, why: str) -> None:
        """Note that the branch asked for what is not where it runs."""
        self.refused.setdefault(self.index, why)


#: The branch that the present code belongs to; None where no worker runs it.
standing: ContextVar[Standing | None] = ContextVar("runbook_nb_branch", default=None)
