"""Which plan a call belongs to: the run it is made in, and the table of plans by run.

Playbooks layer. One hook watches many runs at once. Each has a plan of its own (or shares that of
its thread, or the one of the whole agent), made by the first call of it and kept while there is
room. What happens when there is none is a rule of the policy: under ``eviction="refuse"`` a plan
that is not finished is never begun again in silence.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Literal

from runbook_nb._value import frozen

#: The key of calls made outside any run, and of the one plan of ``scope="agent"``.
NO_RUN: Final = "__no_run__"

#: What can share a plan.
SCOPES: Final = ("run", "thread", "agent")


@frozen
class RunInfo:
    """The run a call is made in, as a selector of playbooks sees it.

    Attributes
    ----------
    run_id, thread_id : str or None
        The run, and the conversation it is part of; None outside any.
    metadata : mapping
        What the host says of the run; read-only.
    agent_name : str or None
        Who makes the call.

    Examples
    --------
    >>> RunInfo(run_id="r1", metadata={"playbook": "refund"}).metadata["playbook"]
    'refund'
    """

    run_id: str | None = None
    thread_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent_name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))


def key_of(scope: str, run_id: str | None, thread_id: str | None) -> str:
    """Give the key of the plan that a call of this run belongs to.

    Parameters
    ----------
    scope : {"run", "thread", "agent"}
        What shares a plan.
    run_id, thread_id : str or None
        Where the call is made.

    Examples
    --------
    >>> key_of("run", "r1", "t"), key_of("thread", "r1", "t"), key_of("thread", "r1", None)
    ('r1', 'thread:t', 'r1')
    >>> key_of("agent", "r1", "t"), key_of("run", None, None)
    ('__no_run__', '__no_run__')
    """
    if scope == "agent":
        return NO_RUN
    if scope == "thread" and thread_id is not None:
        return f"thread:{thread_id}"
    return NO_RUN if run_id is None else run_id


@frozen
class Closed:
    """Why every call of a run is refused.

    Attributes
    ----------
    code : {"selector_failed", "plan_failed", "plan_evicted"}
        What went wrong, as a stable word.
    message : str
        What a model may be told; it holds nothing of the error.
    hint : str
        What to do about it.
    error : BaseException or None
        What was raised, for the host.
    """

    code: Literal["selector_failed", "plan_failed", "plan_evicted"]
    message: str
    hint: str
    error: BaseException | None = field(default=None, compare=False)


class Seat:
    """The place of one run in a table; it is there before its plan, which is asked for once.

    Attributes
    ----------
    key : str
        What it is found by.
    run : RunInfo
        The run whose call was the first.
    held : PlaybookEnforcer, Closed or None
        Its plan, why all its calls are refused, or None for a run that is left alone.
    waiting : dict of str to Ticket
        Calls that were let through for somebody who will know them by their id alone.

    Examples
    --------
    >>> Seat("r1", RunInfo(run_id="r1")).held is None
    True
    """

    __slots__ = ("held", "key", "lock", "made", "run", "waiting")

    def __init__(self, key: str, run: RunInfo, held: Any = None, *, made: bool = False) -> None:
        self.key = key
        self.run = run
        self.held = held
        self.made = made
        self.waiting: dict[str, Any] = {}
        self.lock = threading.RLock()

    @property
    def live(self) -> bool:
        """Whether a plan sits here that is still to be followed."""
        if not self.made:
            return True
        plan = self.held
        return plan is not None and not isinstance(plan, Closed) and not plan.is_complete


class Plans:
    """The plans of the runs under one hook, the least recently used first.

    Parameters
    ----------
    make : callable
        ``(run)``: gives the plan of a run that has none yet, None, or `Closed`. It is asked once
        for a key, by one thread, while calls of other runs go on.
    most : int
        How many are kept.
    spare_live : bool
        Whether plans that are finished leave before live ones, whenever they were used.
    refuse_evicted : bool
        Whether calls of a run whose unfinished plan was dropped are refused from then on.
    dropped : callable, optional
        Hears of each seat that had to go, or was released.

    Examples
    --------
    >>> plans = Plans(lambda run: None, most=2)
    >>> plans.of("r1", lambda: RunInfo(run_id="r1")).held is None, list(plans)
    (True, ['r1'])
    """

    def __init__(
        self,
        make: Callable[[RunInfo], Any],
        *,
        most: int,
        spare_live: bool = True,
        refuse_evicted: bool = True,
        dropped: Callable[[Seat], object] = lambda seat: None,
    ) -> None:
        self._make = make
        self._most = most
        self._spare_live = spare_live
        self._refuse_evicted = refuse_evicted
        self._dropped = dropped
        self._lock = threading.Lock()
        self._seats: OrderedDict[str, Seat] = OrderedDict()
        # Keys only. A run id is used once, so this grows by runs that were abandoned midway;
        # hosts that say when a run ends (`PlaybookEnforcerHook.finish`) leave none here.
        self._evicted: set[str] = set()
        self._ended: set[str] = set()
        self._latest: str | None = None

    def of(self, key: str, run: Callable[[], RunInfo]) -> Seat:
        """Give the seat of a key, made if need be, and note that it was used.

        Parameters
        ----------
        key : str
            Which.
        run : callable
            Gives the run, where its seat has to be made.
        """
        with self._lock:
            seat = self._seats.get(key)
            if seat is None:
                if key in self._evicted:
                    return Seat(key, run(), _gone(key, self._most), made=True)
                seat = self._seats[key] = Seat(key, run())
                self._make_room()
            elif self._latest != key:
                self._seats.move_to_end(key)
            self._latest = key
        if not seat.made:
            with seat.lock:
                if not seat.made:
                    seat.held = self._make(seat.run)
                    seat.made = True
        return seat

    def put(self, key: str, held: Any) -> None:
        """Seat a plan that is there already."""
        with self._lock:
            self._seats[key] = Seat(key, RunInfo(), held, made=True)
            self._latest = key
            self._make_room()

    def peek(self, key: str) -> Seat | None:
        """Give the seat of a key where there is one, without making or using it."""
        seat = self._seats.get(key)
        return seat if seat is not None and seat.made else None

    def seats(self) -> list[Seat]:
        """Give the seats, the least recently used first."""
        with self._lock:
            return list(self._seats.values())

    def end(self, key: str) -> None:
        """Note that no more is expected of a key, so that its plan leaves before others."""
        with self._lock:
            if key in self._seats:
                self._ended.add(key)

    def release(self, key: str) -> None:
        """Forget a key and what is known of it; its next call begins anew, as somebody said."""
        with self._lock:
            seat = self._seats.pop(key, None)
            if seat is not None:
                self._dropped(seat)
            self._ended.discard(key)
            self._evicted.discard(key)
            if self._latest == key:
                self._latest = next(reversed(self._seats), None)

    @property
    def latest(self) -> str | None:
        """The key used last; None before the first."""
        return self._latest

    @property
    def evicted(self) -> int:
        """How many runs are refused because their unfinished plan had to be dropped."""
        return len(self._evicted)

    def __len__(self) -> int:
        return len(self._seats)

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._seats))

    def __contains__(self, key: object) -> bool:
        return key in self._seats

    def _make_room(self) -> None:
        while len(self._seats) > self._most:
            key = self._leaving()
            seat = self._seats.pop(key)
            live = seat.live and key not in self._ended
            self._ended.discard(key)
            if live and self._refuse_evicted:
                self._evicted.add(key)
            self._dropped(seat)

    def _leaving(self) -> str:
        newest = next(reversed(self._seats))
        if self._spare_live:
            for key, seat in self._seats.items():
                if key is not newest and (key in self._ended or not seat.live):
                    return key
        return next(iter(self._seats))


def _gone(key: str, most: int) -> Closed:
    return Closed(
        code="plan_evicted",
        message=(
            f"the plan of run {key!r} was dropped unfinished to make room "
            f"(at most {most} are kept), and is not begun again in silence"
        ),
        hint="A person has to restart this run, or the host has to keep more plans (max_runs).",
    )
