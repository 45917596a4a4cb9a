"""Where a paused run stands. Apart from other places, since most runs never pause.

Record layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from runbook_nb._value import frozen


@frozen(kw_only=False)
class Place:
    """Where a paused track goes on.

    Attributes
    ----------
    levels : tuple of (int, str or None)
        From the track's own chart inwards through the charts mounted in it: which stage of the
        chart, and the branch taken where it is a decider.
    kind : {"ask", "question", "branches"}
        The stage asked in its middle, or ended in a question, or waits for its branches.
    answers : tuple
        Answers the stage had already, each as ``{question, answer}``.
    loops : tuple of mapping
        For each level, how often its chart went back to each stage.
    pending : mapping of int to Place
        The branches that wait.
    question : mapping
        What is asked there: ``reason``, ``expects``, ``data``.
    """

    levels: tuple[tuple[int, str | None], ...]
    kind: str = "ask"
    answers: tuple[Any, ...] = ()
    loops: tuple[Mapping[str, int], ...] = ()
    pending: Mapping[int, Place] = field(default_factory=dict)
    question: Mapping[str, Any] = field(default_factory=dict)
