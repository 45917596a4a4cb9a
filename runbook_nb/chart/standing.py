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
    wanted : str or None
        What the branch asked for that is not where it ran; see `EngineError`.
    """

    __slots__ = ("fan", "index", "numbers", "wanted")

    def __init__(self, fan: object, index: int) -> None:
        self.fan = fan
        self.index = index
        self.numbers = itertools.count()
        self.wanted: str | None = None


#: The branch that the present code belongs to; None where no worker runs it.
standing: ContextVar[Standing | None] = ContextVar("runbook_nb_branch", default=None)
