"""What every store promises, one claim after another.

Testing layer. Each claim is a coroutine over a fresh trial; `expect` says what should have been.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable
from contextvars import copy_context
from typing import Any, Final

from runbook_nb.artifacts import ArtifactScope, ArtifactStore, Record, Ticket, is_ref
from runbook_nb.errors import ArtifactError
from runbook_nb.settings import settings
from runbook_nb.testing.stores import Broken, Claim, Trial, adding_to, expect, said

HERE: Final = ArtifactScope("check-here")
THERE: Final = ArtifactScope("check-there")
#: A reference that no store gave out.
NOBODY: Final = "art_" + "a" * 22
#: How many artifacts the claims about order file, and how many threads and tasks work at once.
SEVERAL: Final = 7
AT_ONCE: Final = 8

CLAIMS: list[Claim] = []
claim = adding_to(CLAIMS)


def note(data: Any = "x", **more: Any) -> dict[str, Any]:
    """Give an artifact as it is handed in."""
    return {"kind": "check/note", "mediaType": "text/plain", "data": data, **more}


async def filed(store: ArtifactStore, data: Any = "x", scope: Any = HERE, **more: Any) -> Ticket:
    """File something and give its ticket."""
    return (await store.put(scope, note(data, **more))).meta


async def listed(store: ArtifactStore, scope: Any = HERE) -> list[str]:
    """Give every reference of a scope, page after page."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list(scope, cursor=cursor)
        found += [ticket.ref for ticket in page.artifacts]
        cursor = page.cursor
        if cursor is None:
            return found


async def payload(store: ArtifactStore, ref: str, scope: Any = HERE) -> Any:
    """Give the payload under a reference, or None."""
    record = await store.get(scope, ref)
    if record is not None and not isinstance(record, Record):
        raise Broken("a Record or None", said(record))
    return None if record is None else record.data


async def refused(act: Awaitable[Any], code: str, what: str) -> ArtifactError:
    """Expect a refusal with a code."""
    try:
        made = await act
    except ArtifactError as error:
        expect(error.code, code, f"the code of the refusal of {what}")
        return error
    raise Broken(f"ArtifactError {code} for {what}", said(made))


# -- what goes in comes out ----------------------------------------------------------------------


@claim("ticket", "put gives a ticket that says what was filed, and head gives it again")
async def _ticket(trial: Trial) -> None:
    store = await trial.store()
    artifact = note("é", label="a label", origin={"toolCallId": "t1"}, expiresAt=trial.now + 9)
    meta = (await store.put(HERE, artifact)).meta
    expect(type(meta), Ticket, "what put gives as meta")
    expect(meta.kind, "check/note", "kind")
    expect(meta.media_type, "text/plain", "media type")
    expect(meta.bytes, 2, "size of 'é' in bytes")
    expect(meta.label, "a label", "label")
    expect(dict(meta.origin or {}), {"toolCallId": "t1"}, "origin")
    expect(meta.expires_at, trial.now + 9, "expiry")
    expect(await store.head(HERE, meta.ref), meta, "what head gives")
    record = await store.get(HERE, meta.ref)
    expect(record and record.meta, meta, "the ticket get gives")


@claim("time", "a ticket is dated by settings.clock")
async def _time(trial: Trial) -> None:
    store = await trial.store()
    expect((await filed(store)).created_at, trial.now, "created_at")
    trial.clock.advance(hours=5)
    expect((await filed(store)).created_at, trial.now, "created_at five hours later")


@claim("references", "references are art_ and 22 letters and digits, new for each put")
async def _references(trial: Trial) -> None:
    store = await trial.store()
    made = [(await filed(store, "the same")).ref for _ in range(SEVERAL)]
    for ref in made:
        if not is_ref(ref):
            raise Broken("art_ and 22 letters and digits", said(ref))
    expect(len(set(made)), SEVERAL, "different references of equal payloads")
    other = await trial.store()
    with settings(ids=lambda length: "z" * length):
        expect((await filed(other)).ref, "art_" + "z" * 22, "a reference drawn from settings.ids")


@claim("forms", "text comes back as text, bytes as bytes, a JSON value as compact text")
async def _forms(trial: Trial) -> None:
    store = await trial.store()
    for given, expected in (
        ("words", "words"),
        (b"\xff\x00", b"\xff\x00"),
        (bytearray(b"ab"), b"ab"),
        ({"é": [1, None, True]}, '{"é":[1,null,true]}'),
        ([], "[]"),
        (None, "null"),
    ):
        meta = await filed(store, given)
        expect(await payload(store, meta.ref), expected, f"the payload of {given!r}")
        size = len(expected) if isinstance(expected, bytes) else len(expected.encode())
        expect(meta.bytes, size, f"the size of {given!r}")


@claim("empty", "an empty text and no bytes at all are payloads")
async def _empty(trial: Trial) -> None:
    store = await trial.store()
    text, none = await filed(store, ""), await filed(store, b"")
    expect(await payload(store, text.ref), "", "the empty text")
    expect(await payload(store, none.ref), b"", "no bytes")
    expect((text.bytes, none.bytes), (0, 0), "their sizes")


@claim("unicode", "every character survives, and none is made another")
async def _unicode(trial: Trial) -> None:
    store = await trial.store()
    for text in (
        "\u00e9",
        "e\u0301",
        "\U0001f9ea",
        "\0",
        "\r\n\n\r",
        "\u2028\u2029\ufeff",
        "\u202e abc",
        "中文 עברית",
        "'; DROP TABLE artifact; --",
    ):
        meta = await filed(store, text, label=text if text.strip("\0\r\n") else None)
        expect(await payload(store, meta.ref), text, "the payload")
        found = await store.head(HERE, meta.ref)
        expect(found, meta, "the ticket")


@claim("large", "a payload of some megabytes survives whole")
async def _large(trial: Trial) -> None:
    store = await trial.store()
    for data in (hashlib.shake_256(b"large").digest(3_000_000), b"\0" * 3_000_000):
        meta = await filed(store, data)
        expect(meta.bytes, 3_000_000, "its size")
        found = await payload(store, meta.ref)
        expect(hashlib.sha256(found or b"").digest(), hashlib.sha256(data).digest(), "its digest")


@claim("copy", "what is stored is a copy: changing the value later changes nothing")
async def _copy(trial: Trial) -> None:
    store = await trial.store()
    rows, buffer = {"rows": [1]}, bytearray(b"ab")
    kept, raw = await filed(store, rows), await filed(store, buffer)
    rows["rows"].append(2)
    buffer[0] = 0
    expect(await payload(store, kept.ref), '{"rows":[1]}', "the mapping as it was filed")
    expect(await payload(store, raw.ref), b"ab", "the bytes as they were filed")


@claim("digest", "a ticket carries the SHA-256 of the payload")
async def _digest(trial: Trial) -> None:
    store = await trial.store()
    for data in ("words", b"\xff", {"a": 1}, ""):
        meta = await filed(store, data, digest="sha-256")
        raw = data if isinstance(data, bytes) else data if isinstance(data, str) else '{"a":1}'
        wanted = hashlib.sha256(raw if isinstance(raw, bytes) else raw.encode()).hexdigest()
        expect(meta.digest, f"sha-256:{wanted}", "digest")


@claim("integrity", "get refuses a payload that is no longer the one that was filed")
async def _integrity(trial: Trial) -> None:
    store = await trial.store()
    meta, other = await filed(store, "true words"), await filed(store, "others")
    trial.tampered(store, meta.ref)
    error = await refused(store.get(HERE, meta.ref), "integrity", "a changed payload")
    if "true words" in str(error):
        raise Broken("an error that quotes no payload", said(error))
    expect(await payload(store, other.ref), "others", "a payload that was not changed")


# -- what is refused -----------------------------------------------------------------------------


@claim("refusals", "what cannot be kept is refused by name, and nothing is filed")
async def _refusals(trial: Trial) -> None:
    store = await trial.store()
    for what, wrong in (
        ("kind", {**note(), "kind": " "}),
        ("mediaType", {**note(), "mediaType": ""}),
        ("mediaType", {"kind": "k", "data": "x"}),
        ("data", {"kind": "k", "mediaType": "m"}),
        ("data", note({1, 2})),
        ("data", note({1: "a key that is no text"})),
        ("data", note(float("nan"))),
        ("data", note("a lone surrogate \ud800")),
        ("digest", note(digest="md5")),
        ("expiresAt", note(expiresAt=trial.now)),
        ("expiresAt", note(expiresAt=float("nan"))),
        ("colour", note(colour="blue")),
        ("artifact", "no mapping"),
    ):
        error = await refused(store.put(HERE, wrong), "invalid_artifact", f"a wrong {what}")
        if what not in f"{error} {error.where}":
            raise Broken(f"a refusal that names {what}", said(error))
    expect(await listed(store), [], "what is held after refusals")


@claim("unburnt", "a refused put uses up no reference")
async def _unburnt(trial: Trial) -> None:
    drawn: list[int] = []

    def ids(length: int) -> str:
        drawn.append(length)
        return str(len(drawn)).rjust(length, "x")

    store = await trial.store()
    with settings(ids=ids):
        for wrong in (note({1}), {**note(), "kind": ""}, note(parentRefs=[NOBODY])):
            try:
                await store.put(HERE, wrong)
            except ArtifactError:
                continue
        expect(len(drawn), 0, "references drawn by refused puts")


@claim("parents", "a parent must be held in the same scope, and is kept")
async def _parents(trial: Trial) -> None:
    store = await trial.store()
    mother, aunt = await filed(store, "a"), await filed(store, "b")
    elsewhere = await filed(store, "c", THERE)
    meta = await filed(store, "d", parentRefs=[aunt.ref, mother.ref, aunt.ref])
    expect(meta.parent_refs, (aunt.ref, mother.ref), "parents, each once")
    found = await store.head(HERE, meta.ref)
    expect(found and found.parent_refs, (aunt.ref, mother.ref), "parents as head gives them")
    for parent in (NOBODY, elsewhere.ref, "no reference"):
        await refused(store.put(HERE, note(parentRefs=[parent])), "unknown_parent", "such a parent")
    await store.delete(HERE, mother.ref)
    await refused(store.put(HERE, note(parentRefs=[mother.ref])), "unknown_parent", "one deleted")


@claim("scope", "a verb without an ArtifactScope is refused")
async def _scope(trial: Trial) -> None:
    store = await trial.store()
    for wrong in (None, "check-here", {"conversationId": "c"}):
        await refused(store.put(wrong, note()), "invalid_artifact", "such a scope")  # type: ignore[arg-type]
        await refused(store.list(wrong), "invalid_artifact", "such a scope")  # type: ignore[arg-type]


# -- whose it is ---------------------------------------------------------------------------------


@claim("tenancy", "what is filed under one scope does not exist under another, however alike")
async def _tenancy(trial: Trial) -> None:
    store = await trial.store()
    scopes = [
        ArtifactScope("c"),
        ArtifactScope("C"),
        ArtifactScope("c "),
        ArtifactScope("c", tenant="t"),
        ArtifactScope("c", principal="t"),
        ArtifactScope("c", tenant="t", principal="p"),
        ArtifactScope("c", tenant="p", principal="t"),
        ArtifactScope("c/t"),
        ArtifactScope("c\0t"),
        ArtifactScope("../c"),
        ArtifactScope("None", tenant="None", principal="None"),
        ArtifactScope("\u00e9"),
        ArtifactScope("e\u0301"),
        ArtifactScope("c" * 400),
    ]
    made = [(await filed(store, f"{n}", scope)).ref for n, scope in enumerate(scopes)]
    for n, scope in enumerate(scopes):
        expect(await listed(store, scope), [made[n]], f"what {scope!r} lists")
        for m, ref in enumerate(made):
            mine = m == n
            expect(
                await payload(store, ref, scope), f"{m}" if mine else None, f"get under {scope!r}"
            )
            expect(
                (await store.head(scope, ref)) is not None, mine, f"head of another's in {scope!r}"
            )
            if not mine:
                expect(await store.delete(scope, ref), False, f"delete of another's in {scope!r}")
    expect(
        [await payload(store, r, s) for r, s in zip(made, scopes, strict=True)],
        [f"{n}" for n in range(len(scopes))],
        "payloads after others tried to delete them",
    )


@claim("unknown", "unknown, malformed and another's references get the same answer")
async def _unknown(trial: Trial) -> None:
    store = await trial.store()
    await filed(store)
    wrong: list[Any] = [NOBODY, "", "art_", "art_../x", "art_" + "a" * 21, "art_" + "a" * 23]
    wrong += ["art_" + "é" * 22, "ART_" + "a" * 22, NOBODY + "\n", None, 5, ["art_"], b"art_"]
    for ref in wrong:
        expect(await store.get(HERE, ref), None, f"get of {ref!r}")
        expect(await store.head(HERE, ref), None, f"head of {ref!r}")
        expect(await store.delete(HERE, ref), False, f"delete of {ref!r}")


# -- delete and list -----------------------------------------------------------------------------


@claim("delete", "delete says whether there was something, and it is gone for every verb")
async def _delete(trial: Trial) -> None:
    store = await trial.store()
    meta, kept = await filed(store), await filed(store)
    expect(await store.delete(HERE, meta.ref), True, "the first delete")
    expect(await store.delete(HERE, meta.ref), False, "the second delete")
    expect(await store.get(HERE, meta.ref), None, "get of what was deleted")
    expect(await store.head(HERE, meta.ref), None, "head of what was deleted")
    expect(await listed(store), [kept.ref], "what is listed")


@claim("twice", "of two equal payloads one can be deleted and the other stays")
async def _twice(trial: Trial) -> None:
    store = await trial.store()
    one, two = await filed(store, "the same"), await filed(store, "the same")
    there = await filed(store, "the same", THERE)
    await store.delete(HERE, one.ref)
    expect(await payload(store, two.ref), "the same", "the other one of this scope")
    await store.delete(HERE, two.ref)
    expect(await payload(store, there.ref, THERE), "the same", "the one of another scope")


@claim("order", "lists are newest first, those of one moment by reference, whatever is read")
async def _order(trial: Trial) -> None:
    store = await trial.store()
    expected: list[str] = []
    for _ in range(3):
        made = sorted([(await filed(store)).ref for _ in range(3)])
        expected = [*made, *expected]
        trial.clock.advance(seconds=1)
    expect(await listed(store), expected, "the order")
    for ref in reversed(expected):
        await payload(store, ref)
    expect(await listed(store), expected, "the order after reading")


@claim("pages", "pages have 50 tickets unless told otherwise, and show each once")
async def _pages(trial: Trial) -> None:
    store = await trial.store()
    made = {(await filed(store, str(n))).ref for n in range(53)}
    first = await store.list(HERE)
    expect(len(first.artifacts), 50, "tickets on the first page")
    second = await store.list(HERE, cursor=first.cursor)
    expect(len(second.artifacts), 3, "tickets on the second page")
    expect(second.cursor, None, "the cursor of the last page")
    expect(len({t.ref for t in (*first.artifacts, *second.artifacts)} & made), 53, "tickets shown")
    expect((await store.list(HERE, limit=53)).cursor, None, "the cursor of a page that holds all")
    for limit in (0, -1, 1.5, "10", True):
        await refused(store.list(HERE, limit=limit), "invalid_limit", f"limit={limit!r}")  # type: ignore[arg-type]


@claim("paging", "rows that come or go between two pages make nobody see one twice or miss one")
async def _paging(trial: Trial) -> None:
    store = await trial.store()
    made = []
    for n in range(12):
        made.append((await filed(store, str(n))).ref)
        trial.clock.advance(seconds=1)
    seen: list[str] = []
    cursor, gone = None, set()
    for turn in range(40):
        page = await store.list(HERE, limit=2, cursor=cursor)
        seen += [ticket.ref for ticket in page.artifacts]
        cursor = page.cursor
        if cursor is None:
            break
        if turn % 2:
            await filed(store, "new")
        elif seen[-1] not in gone:
            await store.delete(HERE, seen[-1])  # the very row the cursor stands at
            gone.add(seen[-1])
    expect(len(seen), len(set(seen)), "each row once")
    expect(set(made) - set(seen), set(), "rows that were missed")


@claim("cursor", "a cursor nobody gave out starts from the first")
async def _cursor(trial: Trial) -> None:
    store = await trial.store()
    for n in range(3):
        await filed(store, str(n))
    first = await store.list(HERE)
    for cursor in ("", "x", "5", "5:art_", "-", "☃", "5:art_a\n"):
        expect(await store.list(HERE, cursor=cursor), first, f"the page of cursor {cursor!r}")


# -- at once -------------------------------------------------------------------------------------


@claim("twins", "the _sync verbs do what the async ones do, also where a loop runs")
async def _twins(trial: Trial) -> None:
    store = await trial.store()
    meta = store.put_sync(HERE, note("é")).meta
    expect(await payload(store, meta.ref), "é", "get of what put_sync filed")
    expect(store.head_sync(HERE, meta.ref), meta, "head_sync")
    record = store.get_sync(HERE, meta.ref)
    expect(record and record.data, "é", "get_sync")
    expect([t.ref for t in store.list_sync(HERE).artifacts], [meta.ref], "list_sync")
    expect(store.delete_sync(HERE, meta.ref), True, "delete_sync")
    expect(await store.head(HERE, meta.ref), None, "head of what delete_sync deleted")


@claim("tasks", "tasks of one loop lose nothing of each other")
async def _tasks(trial: Trial) -> None:
    store = await trial.store()

    async def work(worker: int) -> list[tuple[str, str]]:
        texts = [f"{worker}/{n}" for n in range(8)]
        return [((await filed(store, text)).ref, text) for text in texts]

    made = [pair for some in await asyncio.gather(*map(work, range(AT_ONCE))) for pair in some]
    for ref, text in made:
        expect(await payload(store, ref), text, "what a task filed")
    expect(len(await listed(store)), len(made), "rows in all")


@claim("threads", "threads lose nothing of each other, and budgets hold")
async def _threads(trial: Trial) -> None:
    from concurrent.futures import ThreadPoolExecutor

    store = await trial.store()

    def work(worker: int) -> list[str]:
        kept = []
        for n in range(12):
            text = f"{worker}/{n}"
            meta = store.put_sync(HERE, note(text)).meta
            record = store.get_sync(HERE, meta.ref)
            expect(record and record.data, text, "what a thread has just filed")
            if n % 3 == 0:
                expect(store.delete_sync(HERE, meta.ref), True, "delete of a thread's own")
            else:
                kept.append(meta.ref)
            store.list_sync(HERE, limit=3)
        return kept

    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(copy_context().run, work, n) for n in range(AT_ONCE)]
        kept = [ref for job in jobs for ref in await asyncio.to_thread(job.result)]
    expect(sorted(await listed(store)), sorted(kept), "what is held after all threads")


@claim("shown", "a store's displays hold no reference and nothing of a payload")
async def _shown(trial: Trial) -> None:
    store = await trial.store()
    meta = await filed(store, "s3cret-payload")
    for form in (
        repr(store),
        str(store),
        store.to_markdown(),
        json.dumps(store._repr_mimebundle_()),
    ):
        for hidden in (meta.ref, "s3cret-payload"):
            if hidden in form:
                raise Broken("a display without references and payloads", said(form))


# -- what outlives the store ---------------------------------------------------------------------


@claim("reopened", "everything is there when the store is opened again, and is used in its order")
async def _reopened(trial: Trial) -> None:
    store = await trial.store()
    datas: list[Any] = ["é", b"\xff", {"a": [1]}, "", hashlib.shake_256(b"kept").digest(70_000)]
    made = [await filed(store, data, label=f"{n}") for n, data in enumerate(datas)]
    there = await filed(store, "there", THERE)
    child = await filed(store, "child", parentRefs=[made[0].ref], origin={"runId": "r"})
    gone = await filed(store, "gone")
    await store.delete(HERE, gone.ref)
    before = [await payload(store, meta.ref) for meta in made]
    order = await listed(store)
    again = await trial.reopened(store)
    expect(await listed(again), order, "the list")
    for meta, data in zip(made, before, strict=True):
        expect(await store.head(HERE, meta.ref), meta, "the ticket in the first store")
        expect(await again.head(HERE, meta.ref), meta, "the ticket in the second store")
        expect(await payload(again, meta.ref), data, "the payload")
    expect(await again.head(HERE, child.ref), child, "the ticket of a child")
    expect(await payload(again, there.ref, THERE), "there", "the payload of another scope")
    expect(await again.get(HERE, gone.ref), None, "get of what was deleted before")


@claim("beside", "two open stores over one place see each other's work at once")
async def _beside(trial: Trial) -> None:
    one = await trial.store()
    two = await trial.reopened(one)
    a, b = await filed(one, "a"), await filed(two, "b")
    expect(await payload(two, a.ref), "a", "what the first filed, in the second")
    expect(await payload(one, b.ref), "b", "what the second filed, in the first")
    expect(sorted(await listed(one)), sorted(await listed(two)), "the lists of both")
    await two.delete(HERE, a.ref)
    expect(await one.get(HERE, a.ref), None, "what the second deleted, in the first")
    expect(await listed(one), [b.ref], "the list of the first")
