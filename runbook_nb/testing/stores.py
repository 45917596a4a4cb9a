"""Whether a store keeps what every store promises: claims that are tried one after another.

Testing layer. `check_store` is for a store of one's own, in a script or under any test runner. The
claims stand in `store_claims`; those about processes that die or work side by side in
`store_crashes`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._ids import SeededIds, random_id
from runbook_nb._sync import run_sync
from runbook_nb._text import clip, counted, did_you_mean, visible
from runbook_nb._value import frozen
from runbook_nb._view import Badge, Card, Cell, Column, Data, Role, Section, Table
from runbook_nb.artifacts import ArtifactStore
from runbook_nb.errors import DefinitionError
from runbook_nb.settings import settings
from runbook_nb.testing.fixed import FrozenClock

#: Gives a store that holds nothing, a new one each time.
Factory = Callable[..., ArtifactStore | Awaitable[ArtifactStore]]
#: Gives another store over what a store holds, as another process would open it.
Reopen = Callable[[Any], ArtifactStore | Awaitable[ArtifactStore]]

Outcome = Literal["held", "broken", "unchecked"]

_ROLES: Final[Mapping[Outcome, Role]] = {"broken": "no", "unchecked": "idle", "held": "yes"}
_WORDS: Final[Mapping[Outcome, str]] = {
    "broken": "broken",
    "unchecked": "not checked",
    "held": "held",
}
#: Characters of what was expected or found that a report keeps.
_LONGEST: Final = 300


@frozen(kw_only=False)
class StoreClaim:
    """One promise of a store, and what came of trying it.

    Attributes
    ----------
    name : str
        Stable; what ``only=`` takes.
    law : str
        The promise, in a sentence.
    outcome : {"held", "broken", "unchecked"}
    expected, found : str
        What should have been, and what was; of a broken one.
    because : str
        Why it was not checked.
    """

    name: str
    law: str
    outcome: Outcome
    expected: str = ""
    found: str = ""
    because: str = ""


@frozen(repr=False)
class StoreReport(Renderable, Immutable):
    """What came of trying a store.

    Attributes
    ----------
    store : str
        The store's class.
    claims : tuple of StoreClaim
        In the order they were tried.
    """

    store: str
    claims: tuple[StoreClaim, ...]

    @property
    def ok(self) -> bool:
        """Whether no claim is broken."""
        return not self.broken

    @property
    def broken(self) -> tuple[StoreClaim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if claim.outcome == "broken")

    def raise_if_broken(self) -> None:
        """Raise an AssertionError that names every broken claim, with what was found."""
        if self.broken:
            raise AssertionError(
                "\n  ".join(
                    [
                        f"{self.store} breaks {counted(len(self.broken), 'claim')}",
                        *(
                            f"{claim.name}: {claim.law}; expected {claim.expected}, "
                            f"found {claim.found}"
                            for claim in self.broken
                        ),
                    ]
                )
            )

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain data."""
        names = ("name", "law", "outcome", "expected", "found", "because")
        claims = [{name: getattr(claim, name) for name in names} for claim in self.claims]
        return {"store": self.store, "ok": self.ok, "claims": claims}

    def view(self) -> Card:
        """Say what this looks like: the broken claims first, with what was found."""
        by_outcome = {
            outcome: [claim for claim in self.claims if claim.outcome == outcome]
            for outcome in _ROLES
        }
        rows = tuple(_row(claim) for some in by_outcome.values() for claim in some)
        table = Table(
            columns=(
                Column(head="outcome"),
                Column(head="claim"),
                Column(head="what it says"),
                Column(head="expected", in_text="hidden"),
                Column(head="found", in_text="labelled"),
            ),
            rows=rows[: settings.max_table_rows],
            total=len(rows),
            rest="report.claims",
        )
        badges = tuple(
            Badge(word=_WORDS[outcome], role=_ROLES[outcome], count=len(some))
            for outcome, some in by_outcome.items()
            if some
        )
        return Card(
            kind="Store check",
            name=clip(visible(self.store), 50),
            headline="every claim that was tried holds" if self.ok else "not every claim holds",
            badges=badges,
            sections=(Section(label="", parts=(table,)),),
        )


def _row(claim: StoreClaim) -> tuple[Cell, ...]:
    badge = Badge(word=_WORDS[claim.outcome], role=_ROLES[claim.outcome])
    found = claim.because or claim.found
    expected = Data(value=claim.expected) if claim.expected else ""
    return (badge, claim.name, claim.law, expected, Data(value=found) if found else "")


def check_store(
    factory: Factory,
    *,
    durable: Reopen | None = None,
    tamper: Callable[[Any, str], object] | None = None,
    only: Collection[str] | None = None,
    rounds: int = 200,
    processes: int = 8,
    seed: int = 0,
    raising: bool = False,
) -> StoreReport:
    """Try every promise of an artifact store on a store of one's own.

    Each claim gets a store of its own and a loop of its own; time and ids are held still. It may
    be called from a script, from a test, and where a loop runs.

    Parameters
    ----------
    factory : callable
        Gives an empty store, a new one each time; it may be async. Budgets are asked for by name
        (``max_bytes``, ``max_count``, ``ttl_ms``): the claims about a budget the factory does not
        take are not checked.
    durable : callable, optional
        For a store that outlives its process: gives another store over what the store it is
        handed holds (``lambda store: MyStore(store.path)``). Called in forked processes, too.
    tamper : callable, optional
        Changes the stored payload of a reference behind the store's back:
        ``tamper(store, ref)``.
    only : collection of str, optional
        Names of the claims to try.
    rounds : int
        How many writers are killed.
    processes : int
        How many work side by side.
    seed : int
        Decides when writers are killed.
    raising : bool
        Whether a broken claim raises.

    Returns
    -------
    StoreReport

    Raises
    ------
    AssertionError
        With ``raising``, when a claim is broken.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> report = check_store(rb.InMemoryArtifacts)
    >>> report.ok, [claim.because for claim in report.claims if claim.name == "killed"]
    (True, ['no durable= was given'])
    """
    from runbook_nb.testing import store_claims, store_crashes, store_limits

    every = (*store_claims.CLAIMS, *store_limits.CLAIMS, *store_crashes.CLAIMS)
    known = {claim.name: claim for claim in every}
    for name in only or ():
        if name not in known:
            raise DefinitionError(
                f"there is no claim {name!r}",
                where="only",
                fix=did_you_mean(name, tuple(known)) or f"the claims are {', '.join(known)}",
            )
    trial = Trial(factory, durable, tamper, rounds=rounds, processes=processes, seed=seed)
    claims = tuple(
        claim.tried(trial) for name, claim in known.items() if only is None or name in only
    )
    report = StoreReport(store=trial.named or "the store", claims=claims)
    if raising:
        report.raise_if_broken()
    return report


class Broken(Exception):
    """A claim does not hold."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found


class Unchecked(Exception):
    """A claim cannot be tried."""


class Trial:
    """What claims are tried with: stores that are closed again, and a clock that is told."""

    def __init__(
        self,
        factory: Factory,
        durable: Reopen | None,
        tamper: Callable[[Any, str], object] | None,
        *,
        rounds: int,
        processes: int,
        seed: int,
    ) -> None:
        self._factory = factory
        self._durable = durable
        self._tamper = tamper
        self.rounds, self.processes, self.seed = rounds, processes, seed
        self.clock = FrozenClock()
        self.named = ""
        self._opened: list[Any] = []

    @property
    def now(self) -> int:
        """The present moment in milliseconds since the epoch."""
        return round(self.clock().timestamp() * 1000)

    async def store(self, **dials: int) -> ArtifactStore:
        """Give an empty store with such budgets."""
        takes = _parameters(self._factory)
        for name in dials:
            if takes is not None and name not in takes:
                raise Unchecked(f"the factory takes no {name}")
        return await self._known(self._factory(**dials))

    async def reopened(self, store: ArtifactStore) -> ArtifactStore:
        """Give another store over what a store holds."""
        if self._durable is None:
            raise Unchecked("no durable= was given")
        return await self._known(self._durable(store))

    def tampered(self, store: ArtifactStore, ref: str) -> None:
        """Change a payload behind a store's back."""
        if self._tamper is None:
            raise Unchecked("no tamper= was given")
        self._tamper(store, ref)

    async def _known(self, made: Any) -> ArtifactStore:
        store = await made if inspect.isawaitable(made) else made
        if not isinstance(store, ArtifactStore):
            raise Broken("an ArtifactStore", said(store))
        self.named = type(store).__name__
        self._opened.append(store)
        return store

    async def closed(self, *stores: Any) -> None:
        """Close stores, or all that were opened, as far as they can be."""
        for store in stores or tuple(reversed(self._opened)):
            self._opened = [one for one in self._opened if one is not store]
            close = getattr(store, "aclose", None) or getattr(store, "close", None)
            made = None if close is None else close()
            if inspect.isawaitable(made):
                await made

    @contextmanager
    def held_still(self, seed: str, *, random: bool) -> Iterator[None]:
        """Hold time still, and ids unless several processes draw them."""
        self.clock = FrozenClock()
        with settings(clock=self.clock, ids=random_id if random else SeededIds(seed)):
            yield


class Claim:
    """A promise and the trial of it."""

    def __init__(
        self, name: str, law: str, trial: Callable[[Trial], Any], *, forks: bool = False
    ) -> None:
        self.name, self.law, self._trial, self._forks = name, law, trial, forks

    def tried(self, trial: Trial) -> StoreClaim:
        """Try it."""
        try:
            with trial.held_still(self.name, random=self._forks):
                if self._forks:  # a process is not forked from within a loop
                    try:
                        self._trial(trial)
                    finally:
                        run_sync(trial.closed)
                else:
                    run_sync(lambda: self._to_its_end(trial))
        except Unchecked as why:
            return StoreClaim(self.name, self.law, "unchecked", because=str(why))
        except Broken as broken:
            expected, found = broken.expected, broken.found
        except Exception as error:
            expected, found = "no error", said(error)
        else:
            return StoreClaim(self.name, self.law, "held")
        return StoreClaim(self.name, self.law, "broken", clip(expected, _LONGEST), found)

    async def _to_its_end(self, trial: Trial) -> None:
        try:
            await self._trial(trial)
        finally:
            await trial.closed()


def adding_to(
    claims: list[Claim],
) -> Callable[[str, str], Callable[[Callable[[Trial], Awaitable[None]]], None]]:
    """Give what adds claims to a list: ``@claim(name, law)`` over the trial."""

    def claim(name: str, law: str) -> Callable[[Callable[[Trial], Awaitable[None]]], None]:
        def add(trial: Callable[[Trial], Awaitable[None]]) -> None:
            claims.append(Claim(name, law, trial))

        return add

    return claim


def expect(found: Any, expected: Any, what: str) -> None:
    """Hold what was found against what was expected."""
    if found != expected or type(found) is not type(expected):
        raise Broken(f"{what}: {said(expected)}", said(found))


def said(value: Any) -> str:
    """Say a value in a report."""
    if isinstance(value, BaseException):
        return clip(visible(f"{type(value).__name__}: {value}"), _LONGEST)
    return clip(visible(repr(value)), _LONGEST)


def _parameters(factory: Callable[..., Any]) -> frozenset[str] | None:
    """Give the names a callable takes; None when it takes any."""
    try:
        found = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in found):
        return None
    return frozenset(one.name for one in found)
