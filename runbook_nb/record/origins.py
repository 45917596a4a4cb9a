"""Where a value came about: the last change at one place inside what a key holds.

Record layer. A key may be written often while what stands at a path inside it stays; its origin is
the step that changed it there. What was found is kept, so that asking at every step of a long run
costs no more than going through it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.lookup import Steps, follow
from runbook_nb.record.replay import Prefix, Timeline, value_of_held


def same_held(a: Any, b: Any) -> bool:
    """Compare two values as a timeline holds them.

    Examples
    --------
    >>> same_held(Prefix([1, 2, 3], 2), [1, 2])
    True
    """
    if a is b:
        return True
    if a.__class__ is Prefix and b.__class__ is Prefix and a.items is b.items:
        return bool(a.length == b.length)
    return deep_equal(value_of_held(a), value_of_held(b))


def same_inside(a: Any, b: Any, steps: Steps) -> bool:
    """Say whether two values as a timeline holds them are equal at a path inside them."""
    if not steps:
        return same_held(a, b)
    return a is b or same_held(follow(a, steps), follow(b, steps))


class Origins:
    """The origins of values in one timeline.

    Parameters
    ----------
    timeline : Timeline
    step_at : callable
        Gives, for a time, the number of the step that was running.
    """

    __slots__ = ("_found", "_step_at", "timeline")

    def __init__(self, timeline: Timeline, step_at: Callable[[int], int]) -> None:
        self.timeline = timeline
        self._step_at = step_at
        #: (key, steps) -> per version, the version its value at the path came about with, and
        #: the first version of the step that made it. Only the last version of a step counts.
        self._found: dict[tuple[str, Steps], tuple[list[int], list[int]]] = {}

    def origin(self, key: str, steps: Steps, version: int) -> int:
        """Give the version of a key with which its value at a path came about; -1 is the base."""
        if version < 0:
            return -1
        found, firsts = self._found.setdefault((key, steps), ([], []))
        line = self.timeline
        for now in range(len(found), version + 1):
            alone = not now or self._step_of(key, now) != self._step_of(key, now - 1)
            firsts.append(now if alone else firsts[now - 1])
            # What the step itself had written in between is of no account.
            before = firsts[now] - 1
            if same_inside(line.held(key, now), line.held(key, before), steps):
                found.append(found[before] if before >= 0 else -1)
            else:
                found.append(now)
        return found[version]

    def first_of_step(self, key: str, version: int) -> int:
        """Give the first version of a key that was made by the step of a version."""
        self.origin(key, (), version)
        return self._found[key, ()][1][version]

    def _step_of(self, key: str, version: int) -> int:
        return self._step_at(self.timeline.time(key, version))

    def written(self, key: str, steps: Steps, version: int) -> int:
        """Give the version in which a step made the change that stands in its last one.

        ``version`` is one that `origin` gave.
        """
        line, step = self.timeline, self._step_of(key, version)
        while version > 0 and self._step_of(key, version - 1) == step:
            if not same_inside(line.held(key, version), line.held(key, version - 1), steps):
                break
            version -= 1
        return version
