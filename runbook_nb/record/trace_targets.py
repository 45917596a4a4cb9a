"""What a trace goes from and to: a write, a decision, an item handed on, where it ends.

Record layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from runbook_nb._text import MISSING
from runbook_nb.record.lookup import Steps
from runbook_nb.record.replay import Branching, Replayed, Step


class Written(NamedTuple):
    """A change of a key by a step."""

    track: Replayed
    step: Step
    key: str
    steps: Steps
    version: int


class Decided(NamedTuple):
    """What a decider or a selector came to."""

    track: Replayed
    step: Step


class Looped(NamedTuple):
    """That a step sent the run back."""

    track: Replayed
    step: Step


class Item(NamedTuple):
    """An item handed to a branch of a fan-out."""

    track: Replayed
    branching: Branching
    number: int
    steps: Steps


class Input(NamedTuple):
    """A key mapped into a mounted chart."""

    track: Replayed
    step: Step
    key: str
    steps: Steps


class Returned(NamedTuple):
    """What a step returned."""

    track: Replayed
    step: Step


class Bundled(NamedTuple):
    """A change of a key in a log that was written down."""

    commit: int
    key: str
    steps: Steps
    version: int


class End(NamedTuple):
    """Where a slice ends."""

    kind: str
    place: str
    stage: str
    value: Callable[[], Any]
    mark: Any = None


Target = Written | Decided | Looped | Item | Input | Returned | Bundled | End


class Link(NamedTuple):
    """What a target rests on: how, the word for it, and the target."""

    kind: str
    key: str
    target: Target


def nothing() -> Any:
    """Give the value of what has none."""
    return MISSING
