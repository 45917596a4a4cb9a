"""A store of one's own is tried, and one that breaks a law is told which."""

import asyncio
import hashlib
import itertools
import threading
from collections import OrderedDict

import pytest

import runbook_nb as rb
from runbook_nb._json import encode
from runbook_nb.artifacts import ArtifactScope, Record
from runbook_nb.artifacts import base as shelves
from runbook_nb.artifacts.model import ArtifactPage, PutResult
from runbook_nb.errors import ArtifactError, DefinitionError
from runbook_nb.testing import StoreClaim, StoreReport, check_store, store_claims, store_limits
from runbook_nb.testing.store_crashes import CLAIMS as CRASHES

CLAIMS = [*store_claims.CLAIMS, *store_limits.CLAIMS]

Memory = rb.InMemoryArtifacts


def tampered(store, ref):
    for shelf in store._shelves.values():
        if ref in shelf._held:
            row, _ = shelf._held[ref]
            shelf._held[ref] = (row, b"false words")


# --- stores that keep every law ----------------------------------------------------------------


def test_the_store_in_memory_keeps_every_law_that_is_not_about_files():
    report = check_store(Memory, tamper=tampered)
    assert report.ok
    assert report.store == "InMemoryArtifacts"
    unchecked = [claim.name for claim in report.claims if claim.outcome == "unchecked"]
    assert unchecked == ["reopened", "beside", "killed", "processes"]
    assert len(report.claims) == len(CLAIMS) + len(CRASHES) > 35


def test_a_store_wherever_fsspec_reaches_keeps_them():
    numbers = itertools.count()
    made = lambda **dials: rb.RemoteArtifacts(f"memory://check/{next(numbers)}", **dials)  # noqa: E731
    check_store(
        made,
        durable=lambda store: rb.RemoteArtifacts(store.url),
        raising=True,
        only=[claim.name for claim in CLAIMS],
    )


class Awaited(rb.ArtifactStore):
    """A store that is asynchronous by nature: its verbs wait, and so does making and closing it."""

    closed = 0

    def __init__(self, **dials):
        self._inner = Memory(**dials)
        self._loop = asyncio.get_running_loop()

    async def put(self, scope, artifact):
        await asyncio.sleep(0)
        return await self._inner.put(scope, artifact)

    async def head(self, scope, ref):
        await asyncio.sleep(0)
        return await self._inner.head(scope, ref)

    async def get(self, scope, ref):
        await asyncio.sleep(0)
        return await self._inner.get(scope, ref)

    async def delete(self, scope, ref):
        await asyncio.sleep(0)
        return await self._inner.delete(scope, ref)

    async def list(self, scope, *, limit=50, cursor=None):
        await asyncio.sleep(0)
        return await self._inner.list(scope, limit=limit, cursor=cursor)

    async def aclose(self):
        await asyncio.sleep(0)
        Awaited.closed += 1


async def opened(**dials):
    await asyncio.sleep(0)
    return Awaited(**dials)


def test_an_asynchronous_store_is_tried_and_closed():
    Awaited.closed = 0
    report = check_store(opened, raising=True)
    assert report.store == "Awaited"
    assert Awaited.closed >= len(CLAIMS) - 3


def test_it_may_be_called_where_a_loop_runs():
    async def inside():
        return check_store(opened, only=["forms", "twins"])

    assert [claim.outcome for claim in asyncio.run(inside()).claims] == ["held", "held"]


def test_budgets_the_factory_does_not_take_are_said_to_be_unchecked():
    report = check_store(lambda: Memory(max_count=1000))
    unchecked = {claim.name: claim.because for claim in report.claims if claim.because}
    assert unchecked["rows"] == "the factory takes no max_count"
    assert unchecked["bytes"] == "the factory takes no max_bytes"
    assert unchecked["ttl"] == "the factory takes no ttl_ms"
    assert report.ok


# --- stores that break one ---------------------------------------------------------------------


class ForgetsTenant(Memory):
    def _open(self, scope):
        return super()._open(ArtifactScope(scope.conversation_id))


class Folds(Memory):
    def _open(self, scope):
        return super()._open(
            ArtifactScope(scope.conversation_id.lower(), scope.tenant, scope.principal)
        )


class KeepsWhatItWasGiven(Memory):
    def __init__(self, **dials):
        super().__init__(**dials)
        self.given = {}

    async def put(self, scope, artifact):
        result = await super().put(scope, artifact)
        if isinstance(artifact["data"], dict):
            self.given[result.meta.ref] = artifact["data"]
        return result

    async def get(self, scope, ref):
        record = await super().get(scope, ref)
        if record is not None and ref in self.given:
            record = Record(record.meta, encode(self.given[ref]))
        return record


class RaisesForTheUnknown(Memory):
    async def get(self, scope, ref):
        record = await super().get(scope, ref)
        if record is None:
            raise KeyError(ref)
        return record


class TellsMalformedApart(Memory):
    async def head(self, scope, ref):
        if not shelves.is_ref(ref):
            raise ArtifactError("malformed", code="malformed")
        return await super().head(scope, ref)


class DigestsTheTicket(Memory):
    def _ticket(self, parcel, digest, ref, now):
        return super()._ticket(parcel, f"sha-256:{hashlib.sha256(b'x').hexdigest()}", ref, now)

    def _get(self, scope, ref, now):
        with self._open(scope) as shelf:
            row = shelf.find(ref)
            if row is None:
                return None
            data = shelf.payload(ref)
        return Record(row.ticket, data.decode() if row.form == "text" else data)


class TrustsItsFiles(Memory):
    def _get(self, scope, ref, now):
        if not shelves.is_ref(ref):
            return None
        with self._open(scope) as shelf:
            row = shelves._use(shelf, ref, now)
            if row is None:
                return None
            data = shelf.payload(ref)
        return Record(row.ticket, data.decode() if row.form == "text" else data)


class CountsCharacters(Memory):
    async def put(self, scope, artifact):
        result = await super().put(scope, artifact)
        data = artifact.get("data")
        if isinstance(data, str) and len(data) != result.meta.bytes:
            wire = {**_fields(result.meta), "bytes": len(data)}
            return PutResult(meta=type(result.meta)(**wire), swept=result.swept)
        return result


def _fields(ticket):
    return {name: getattr(ticket, name) for name in type(ticket).__dataclass_fields__}


class OldestFirst(Memory):
    async def list(self, scope, *, limit=50, cursor=None):
        page = await super().list(scope, limit=limit, cursor=cursor)
        return ArtifactPage(artifacts=page.artifacts[::-1], cursor=page.cursor)


class PagesByPosition(Memory):
    async def list(self, scope, *, limit=50, cursor=None):
        every = (
            await super().list(scope, limit=10_000 if type(limit) is int and limit > 0 else limit)
        ).artifacts
        start = int(cursor) if isinstance(cursor, str) and cursor.isdecimal() else 0
        more = str(start + limit) if start + limit < len(every) else None
        return ArtifactPage(artifacts=every[start : start + limit], cursor=more)


class StumblesOverCursors(Memory):
    async def list(self, scope, *, limit=50, cursor=None):
        if cursor is not None and not cursor[:1].isdecimal():
            raise ValueError(cursor)
        return await super().list(scope, limit=limit, cursor=cursor)


class ForgetsToExpire(Memory):
    async def head(self, scope, ref):
        held = self._shelves.get(scope)
        row = held.find(ref) if held is not None and shelves.is_ref(ref) else None
        if row is None:
            return None
        await super().head(scope, ref)
        return row.ticket


class LooksWithoutUsing(Memory):
    async def head(self, scope, ref):
        with self._open(scope) as shelf:
            row = shelf.find(ref) if shelves.is_ref(ref) else None
        now = shelves.now_ms(rb.settings.current)
        return None if row is None or row.ticket.expired(now) else row.ticket


class LetsGoInSilence(Memory):
    async def put(self, scope, artifact):
        return PutResult(meta=(await super().put(scope, artifact)).meta)


class TakesBlankKinds(Memory):
    async def put(self, scope, artifact):
        if isinstance(artifact, dict) and not str(artifact.get("kind", "k")).strip():
            artifact = {**artifact, "kind": "blank"}
        return await super().put(scope, artifact)


class TakesAnyParent(Memory):
    @staticmethod
    def _check_parents(shelf, parcel, now):
        pass


class EmptiesItselfForTheTooLarge(Memory):
    async def put(self, scope, artifact):
        try:
            return await super().put(scope, artifact)
        except ArtifactError as error:
            if error.code == "too_large":
                for ticket in (await self.list(scope)).artifacts:
                    await self.delete(scope, ticket.ref)
            raise


class DerivesReferences(Memory):
    def _ticket(self, parcel, digest, ref, now):
        return super()._ticket(parcel, digest, f"art_{digest[-22:]}", now)


class GivesBytesForText(Memory):
    def _get(self, scope, ref, now):
        record = super()._get(scope, ref, now)
        if record is None or isinstance(record.data, bytes):
            return record
        return Record(record.meta, record.data.encode())


class AlwaysSaysItDeleted(Memory):
    async def delete(self, scope, ref):
        await super().delete(scope, ref)
        return True


class DatesByItself(Memory):
    def _ticket(self, parcel, digest, ref, now):
        return super()._ticket(parcel, digest, ref, now + 86_400_000)


class BurnsReferences(Memory):
    async def put(self, scope, artifact):
        rb.settings.current.ids(22)
        return await super().put(scope, artifact)


class SharesOnePayload(Memory):
    """Deletes a payload with the first ticket that leaves, although others hold it."""

    def _delete(self, scope, ref, now):
        with self._open(scope) as shelf:
            row = shelf.find(ref) if shelves.is_ref(ref) else None
        done = super()._delete(scope, ref, now)
        if done:
            for other, held in list(self._shelves.items()):
                for twin in [
                    t for t, (r, _) in held._held.items() if r.ticket.digest == row.ticket.digest
                ]:
                    super()._delete(other, twin, now)
        return done


class OneBudgetForAll(Memory):
    async def put(self, scope, artifact):
        result = await super().put(scope, artifact)
        for other in list(self._shelves):
            if other != scope and self.retention.max_count == 1:
                for ticket in (await self.list(other)).artifacts:
                    await self.delete(other, ticket.ref)
        return result


class WorksWithoutALock(Memory):
    """Reads what is held, lets others run, and writes it back."""

    def _put(self, scope, artifact, options):
        before = OrderedDict(self._shelves[scope]._held) if scope in self._shelves else None
        result = super()._put(scope, artifact, options)
        if before is not None:
            threading.Event().wait(0.0002)
            with self._lock:
                held = self._shelves.get(scope)
                mine = held._held.get(result.meta.ref) if held is not None else None
                if held is not None and mine is not None:
                    held._held = OrderedDict({**before, result.meta.ref: mine})
        return result


class TwinGoesItsOwnWay(Memory):
    def put_sync(self, scope, artifact):
        return super().put_sync(ArtifactScope("elsewhere"), artifact)


class TellsItsReferences(Memory):
    def __repr__(self):
        return f"<{[list(shelf._held) for shelf in self._shelves.values()]}>"


@pytest.mark.parametrize(
    ("broken", "claim"),
    [
        (ForgetsTenant, "tenancy"),
        (Folds, "tenancy"),
        (KeepsWhatItWasGiven, "copy"),
        (RaisesForTheUnknown, "unknown"),
        (TellsMalformedApart, "unknown"),
        (DigestsTheTicket, "digest"),
        (TrustsItsFiles, "integrity"),
        (CountsCharacters, "ticket"),
        (OldestFirst, "order"),
        (PagesByPosition, "paging"),
        (StumblesOverCursors, "cursor"),
        (ForgetsToExpire, "expiry"),
        (LooksWithoutUsing, "use"),
        (LetsGoInSilence, "rows"),
        (TakesBlankKinds, "refusals"),
        (TakesAnyParent, "parents"),
        (EmptiesItselfForTheTooLarge, "too-large"),
        (DerivesReferences, "references"),
        (GivesBytesForText, "forms"),
        (AlwaysSaysItDeleted, "delete"),
        (DatesByItself, "time"),
        (BurnsReferences, "unburnt"),
        (SharesOnePayload, "twice"),
        (OneBudgetForAll, "budgets-apart"),
        (WorksWithoutALock, "threads"),
        (TwinGoesItsOwnWay, "twins"),
        (TellsItsReferences, "shown"),
    ],
)
def test_a_store_that_breaks_one_law_is_told_which(broken, claim):
    report = check_store(broken, tamper=tampered)
    names = [one.name for one in report.broken]
    assert claim in names, str(report)
    told = next(one for one in report.broken if one.name == claim)
    assert told.expected
    assert told.found
    with pytest.raises(AssertionError, match=claim):
        report.raise_if_broken()
    # A law is told where it is broken, and not all over the report.
    assert len(names) <= 12, names


def test_something_that_is_no_store_is_said_to_be_none():
    report = check_store(dict, only=["forms"])
    assert not report.ok
    assert report.broken[0].expected == "an ArtifactStore"
    assert report.store == "the store"


def test_a_store_that_fails_is_told_with_its_error():
    def failing():
        raise OSError("the disk is on fire")

    report = check_store(failing, only=["forms"])
    assert report.broken[0].found == "OSError: the disk is on fire"


# --- the report --------------------------------------------------------------------------------


def test_only_the_named_claims_are_tried():
    report = check_store(Memory, only=["forms", "order"])
    assert [claim.name for claim in report.claims] == ["forms", "order"]
    with pytest.raises(DefinitionError, match="tenancy"):
        check_store(Memory, only=["tenency"])


def test_raising_names_every_broken_claim_with_what_was_found():
    with pytest.raises(AssertionError) as caught:
        check_store(OldestFirst, only=["order", "forms"], raising=True)
    assert str(caught.value).startswith("OldestFirst breaks 1 claim\n  order: lists are newest")
    assert "expected the order: ['art_" in str(caught.value)
    assert check_store(Memory, only=["forms"], raising=True).raise_if_broken() is None


def test_the_report_shows_what_is_broken_first():
    report = check_store(OldestFirst, only=["forms", "order", "reopened"])
    lines = str(report).splitlines()
    assert lines[0] == (
        "Store check OldestFirst · not every claim holds (1 broken, 1 not checked, 1 held)"
    )
    assert [line.split()[0] for line in lines[1:4]] == ["broken", "not", "held"]
    html = report._repr_mimebundle_()[0]["text/html"]
    assert html.index("lists are newest first") < html.index("text comes back as text")
    assert report.to_dict()["claims"][0]["outcome"] == "held"
    assert report.to_dict()["ok"] is False


def test_a_report_is_what_it_was_made_of():
    claim = StoreClaim("forms", "text comes back", "broken", "'x'", "b'x'")
    report = StoreReport(store="Mine", claims=(claim,))
    assert report.broken == (claim,)
    assert report == StoreReport(store="Mine", claims=(claim,))
    with pytest.raises(AttributeError):
        report.claims = ()


def test_what_a_store_says_cannot_break_the_report():
    hostile = "</style><img onerror=x>\x1b[31m\u202e|`"
    claim = StoreClaim("forms", "text comes back", "broken", hostile, hostile)
    report = StoreReport(store=hostile, claims=(claim,))
    html = report._repr_mimebundle_()[0]["text/html"]
    assert "<img onerror" not in html
    assert "\x1b" not in str(report) + html
    assert "\u202e" not in str(report)
