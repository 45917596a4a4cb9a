"""What every store promises of budgets and expiry, one claim after another.

Testing layer. A claim about a budget is tried where the factory takes it.
"""

from __future__ import annotations

from runbook_nb.testing.store_claims import HERE, THERE, filed, listed, note, refused
from runbook_nb.testing.stores import Claim, Trial, adding_to, expect

CLAIMS: list[Claim] = []
claim = adding_to(CLAIMS)


@claim("expiry", "an expired artifact is gone for every verb, from its moment on")
async def _expiry(trial: Trial) -> None:
    store = await trial.store()
    made = [await filed(store, str(n), expiresAt=trial.now + 1000) for n in range(4)]
    kept = await filed(store, "kept")
    trial.clock.advance(milliseconds=999)
    expect((await store.head(HERE, made[0].ref)) is not None, True, "there a moment before")
    trial.clock.advance(milliseconds=1)
    expect(await store.head(HERE, made[0].ref), None, "head of what has expired")
    expect(await store.get(HERE, made[1].ref), None, "get of what has expired")
    expect(await store.delete(HERE, made[2].ref), False, "delete of what has expired")
    expect(await listed(store), [kept.ref], "what is listed")
    parent = note(parentRefs=[made[3].ref])
    await refused(store.put(HERE, parent), "unknown_parent", "a parent that has expired")


@claim("ttl", "the store's own limit of age counts where it is the sooner one")
async def _ttl(trial: Trial) -> None:
    store = await trial.store(ttl_ms=1000)
    plain = await filed(store, "a")
    sooner = await filed(store, "b", expiresAt=trial.now + 500)
    later = await filed(store, "c", expiresAt=trial.now + 9000)
    found = (plain.expires_at, sooner.expires_at, later.expires_at)
    expect(found, (trial.now + 1000, trial.now + 500, trial.now + 1000), "expiries")
    trial.clock.advance(seconds=1)
    expect(await listed(store), [], "what is listed after that age")


@claim("rows", "when the rows are used up the least recently used leaves, and put says so")
async def _rows(trial: Trial) -> None:
    store = await trial.store(max_count=2)
    a, b = await filed(store, "a"), await filed(store, "b")
    await store.get(HERE, a.ref)
    put = await store.put(HERE, note("c"))
    expect([(g.ref, g.reason) for g in put.swept], [(b.ref, "max-count")], "what put says left")
    expect(set(await listed(store)), {a.ref, put.meta.ref}, "what is held")
    expect(await store.head(HERE, b.ref), None, "head of what left")


@claim("use", "head and get are uses; list is none")
async def _use(trial: Trial) -> None:
    for used in ("head", "get"):
        store = await trial.store(max_count=2)
        a, b = await filed(store, "a"), await filed(store, "b")
        await getattr(store, used)(HERE, a.ref)
        await listed(store)
        put = await store.put(HERE, note("c"))
        expect([gone.ref for gone in put.swept], [b.ref], f"what leaves after {used} of the other")


@claim("bytes", "when the bytes are used up as many leave as must, and put says so")
async def _bytes(trial: Trial) -> None:
    store = await trial.store(max_bytes=10)
    a, b, c = [await filed(store, data) for data in ("aaa", "bbb", "cc")]
    put = await store.put(HERE, note("dddd"))
    swept = [(gone.ref, gone.reason, gone.kind, gone.bytes) for gone in put.swept]
    expect(swept, [(a.ref, "max-bytes", "check/note", 3)], "what put says left")
    expect(set(await listed(store)), {b.ref, c.ref, put.meta.ref}, "what is held")
    expect(len((await store.put(HERE, note("e" * 10))).swept), 3, "what leaves for all of it")


@claim("too-large", "a payload above the whole budget is refused, and nothing leaves")
async def _too_large(trial: Trial) -> None:
    store = await trial.store(max_bytes=10)
    kept = await filed(store, "kept")
    await refused(store.put(HERE, note("é" * 6)), "too_large", "12 bytes")
    expect(await listed(store), [kept.ref], "what is held")


@claim("expired-first", "what has expired leaves before anything that has not")
async def _expired_first(trial: Trial) -> None:
    store = await trial.store(max_count=2)
    kept = await filed(store, "kept")
    short = await filed(store, "short", expiresAt=trial.now + 10)
    trial.clock.advance(seconds=1)
    put = await store.put(HERE, note("new"))
    expect([(g.ref, g.reason) for g in put.swept], [(short.ref, "ttl")], "what put says left")
    expect((await store.head(HERE, kept.ref)) is not None, True, "the one that has not expired")


@claim("budgets-apart", "one scope's artifacts never leave for another's")
async def _budgets_apart(trial: Trial) -> None:
    store = await trial.store(max_count=1)
    here, there = await filed(store, "a"), await filed(store, "b", THERE)
    found = [await listed(store), await listed(store, THERE)]
    expect(found, [[here.ref], [there.ref]], "what both hold")
