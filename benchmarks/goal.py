"""What a goal is: a number, a figure held to a gate and to what is aimed at beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


class NotMeasured(Exception):
    """A goal could not be measured; the message says why. It never counts as met."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Attributes
    ----------
    label : str
        What was measured, and at which size.
    value : float
        The figure, in ``unit``.
    unit : str
        ``"x"`` for a ratio to a reference, else ``ms``, ``s``, ``B``, ``KB`` or a noun.
    gate, stretch : float or None
        The bounds. A figure without a gate is told and holds nothing.
    at_least : bool
        Whether more is better.
    """

    label: str
    value: float
    unit: str = "x"
    gate: float | None = None
    stretch: float | None = None
    at_least: bool = False

    def within(self, bound: float | None) -> bool | None:
        """Whether the figure keeps a bound; None when there is none."""
        if bound is None:
            return None
        return self.value >= bound if self.at_least else self.value <= bound

    def met(self) -> str:
        """Say what is met in one word."""
        if self.gate is None:
            return ""
        if not self.within(self.gate):
            return "MISSED"
        return "stretch" if self.stretch is not None and self.within(self.stretch) else "gate"

    def to_dict(self) -> dict[str, Any]:
        fields = ("label", "value", "unit", "gate", "stretch", "at_least")
        return {**{name: getattr(self, name) for name in fields}, "met": self.met()}


@dataclass(slots=True)
class Plan:
    """How thoroughly to measure, and where series for the plots are noted.

    A quick plan takes smaller sizes and fewer rounds to see that everything runs; its figures
    are not what the goals are about, so nothing is held to a gate.
    """

    quick: bool = False
    series: list[dict[str, Any]] = field(default_factory=list)

    def rounds(self, full: int) -> int:
        return min(full, 3) if self.quick else full

    def size(self, full: int) -> int:
        return min(full, 2_000) if self.quick else full

    def note(self, name: str, n: int, microseconds: float) -> None:
        """Keep a point of a plot: microseconds per subject at a number of subjects."""
        self.series.append({"name": name, "n": n, "us": microseconds})


#: What a figure or a series begins with that is told beside those a goal is about.
BESIDE = "beside: "

Measured = Callable[[Plan], Iterable[Figure]]


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: its number, what it is about, what it is held against, and what measures it."""

    number: int
    title: str
    reference: str
    measure: Measured
    peers: bool


GOALS: dict[int, Goal] = {}


def goal(number: int, title: str, reference: str = "", *, peers: bool = False) -> Any:
    """Make a function the one that measures a goal."""

    def register(measure: Measured) -> Measured:
        if number in GOALS:
            raise ValueError(f"goal {number} has two functions")
        GOALS[number] = Goal(number, title, reference, measure, peers)
        return measure

    return register
