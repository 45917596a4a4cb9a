"""Telling observers what happened to a plan: in order, outside its lock, harming nothing."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from runbook_nb.playbooks.eventkinds import Event

#: Hears every event of a plan.
Observer = Callable[[Event], object]


class Observers:
    """Those who hear of the events of one plan.

    An observer that raises is dropped, and named in ``dropped``.

    Parameters
    ----------
    observers : iterable of callable
        Each is called with an event.

    Examples
    --------
    >>> Observers([print]).dropped
    []
    """

    __slots__ = ("_lock", "_waiting", "dropped", "listening")

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.listening: list[Observer] = list(observers)
        self.dropped: list[str] = []
        self._waiting: deque[Event] = deque()
        self._lock = threading.Lock()

    def add(self, observer: Observer) -> Callable[[], None]:
        """Let somebody hear; what is given back ends it."""
        self.listening.append(observer)

        def remove() -> None:
            if observer in self.listening:
                self.listening.remove(observer)

        return remove

    def push(self, events: Iterable[Event]) -> None:
        """Leave events to be told, in order; called under the lock of the plan."""
        if self.listening:
            self._waiting.extend(events)

    def tell(self) -> None:
        """Tell what waits. One thread tells at a time, so that all hear the same order.

        An observer that itself does something to the plan is told of that after what it hears now.
        """
        while self._waiting and self._lock.acquire(blocking=False):
            try:
                while self._waiting:
                    event = self._waiting.popleft()
                    for observer in tuple(self.listening):
                        self._tell(observer, event)
            finally:
                self._lock.release()

    def _tell(self, observer: Observer, event: Event) -> None:
        try:
            observer(event)
        except Exception as error:  # a view that fails is no ground to lose a plan over
            name = getattr(observer, "__qualname__", type(observer).__name__)
            self.dropped.append(f"{name}: {type(error).__name__} at event {event.seq}")
            if observer in self.listening:
                self.listening.remove(observer)
