"""The laws every store shares, over a shelf of another make: one that waits for its disk."""

import asyncio
import base64
import json
import threading
from contextlib import contextmanager

import pytest

from runbook_nb.artifacts import (
    ArtifactPage,
    ArtifactScope,
    ArtifactStore,
    InMemoryArtifacts,
    PutResult,
    Retention,
    Row,
    ShelfStore,
    Ticket,
)
from runbook_nb.artifacts.base import drive
from runbook_nb.errors import ArtifactError, DefinitionError

HERE = ArtifactScope("c1")
NAMES = ("ref", "kind", "media_type", "bytes", "created_at", "label", "digest", "expires_at")


class JsonShelf:
    """Rows as JSON text, as a file or a table would hold them."""

    def __init__(self, lines):
        self.lines = lines  # ref -> text, least recently used first

    def rows(self):
        return [self.find(ref) for ref in self.lines]

    def find(self, ref):
        if ref not in self.lines:
            return None
        held = json.loads(self.lines[ref])
        ticket = Ticket(
            **{name: held[name] for name in NAMES},
            origin=held["origin"],
            parent_refs=tuple(held["parent_refs"]),
        )
        return Row(ticket, held["form"])

    def payload(self, ref):
        return base64.b64decode(json.loads(self.lines[ref])["payload"])

    def use(self, ref):
        self.lines[ref] = self.lines.pop(ref)

    def add(self, row, payload):
        held = {name: getattr(row.ticket, name) for name in NAMES}
        held |= {
            "origin": row.ticket.origin,
            "parent_refs": row.ticket.parent_refs,
            "form": row.form,
            "payload": base64.b64encode(payload).decode(),
        }
        self.lines[row.ticket.ref] = json.dumps(held)

    def remove(self, ref):
        del self.lines[ref]


class JsonArtifacts(ShelfStore):
    """Says how a shelf is opened, and nothing else."""

    def __init__(self, *args, **dials):
        super().__init__(*args, **dials)
        self.lock = threading.Lock()
        self.scopes = {}
        self.threads = set()

    @contextmanager
    def _open(self, scope):
        with self.lock:
            self.threads.add(threading.current_thread())
            yield JsonShelf(self.scopes.setdefault(scope, {}))


@pytest.fixture(params=[InMemoryArtifacts, JsonArtifacts])
def make(request, clock):
    return request.param


def note(data="x", **more):
    return {"kind": "k", "mediaType": "m", "data": data, **more}


def test_a_whole_life_is_the_same_in_every_store(make, clock):
    store = make(max_count=2, max_bytes=20, ttl_ms=100)
    a = store.put_sync(HERE, note({"é": [1]}, label="a", origin={"runId": "r"})).meta
    b = store.put_sync(HERE, note(b"\xff", parentRefs=[a.ref])).meta
    assert store.get_sync(HERE, a.ref).data == '{"é":[1]}'
    assert store.get_sync(HERE, a.ref).meta == a
    assert store.head_sync(HERE, b.ref) == b
    store.get_sync(HERE, a.ref)
    c = store.put_sync(HERE, note("c"))
    assert [(gone.ref, gone.reason) for gone in c.swept] == [(b.ref, "max-count")]
    assert store.dropped == 1
    clock.ms += 1
    d = store.put_sync(HERE, note("d" * 20))
    assert [gone.reason for gone in d.swept] == ["max-count", "max-bytes"]
    assert store.list_sync(HERE).artifacts == (d.meta,)
    with pytest.raises(ArtifactError, match="21 bytes"):
        store.put_sync(HERE, note("d" * 21))
    clock.ms += 100
    assert store.get_sync(HERE, d.meta.ref) is None
    assert store.list_sync(HERE) == ArtifactPage(artifacts=())
    assert store.delete_sync(HERE, d.meta.ref) is False


def test_a_store_that_waits_is_kept_off_the_loop(clock):
    store = JsonArtifacts()

    async def use():
        ref = (await store.put(HERE, note())).meta.ref
        await store.get(HERE, ref)
        await store.head(HERE, ref)
        await store.list(HERE)
        await store.delete(HERE, ref)
        return threading.current_thread()

    assert asyncio.run(use()) not in store.threads
    assert store.threads


def test_settings_of_the_caller_reach_a_store_that_works_in_a_thread(clock):
    meta = JsonArtifacts().put_sync(HERE, note()).meta
    assert meta.created_at == clock.ms


def test_two_tasks_that_file_at_once_both_find_room(make):
    store = make(max_count=5)

    async def use():
        await asyncio.gather(*(store.put(HERE, note(str(n))) for n in range(20)))
        return await store.list(HERE)

    assert len(asyncio.run(use()).artifacts) == 5
    assert store.dropped == 15


def test_a_store_made_from_scratch_needs_five_verbs_and_gets_their_twins():
    class Remote(ArtifactStore):
        def __init__(self):
            self.asked = []

        async def put(self, scope, artifact):
            await asyncio.sleep(0)
            self.asked.append("put")
            return PutResult(meta=Ticket(ref="r", kind="k", media_type="m", bytes=0, created_at=0))

        async def head(self, scope, ref):
            self.asked.append(("head", ref))

        async def get(self, scope, ref):
            self.asked.append(("get", ref))

        async def delete(self, scope, ref):
            self.asked.append(("delete", ref))
            return False

        async def list(self, scope, *, limit=50, cursor=None):
            self.asked.append(("list", limit, cursor))
            return ArtifactPage(artifacts=())

    store = Remote()
    store.put_sync(HERE, {})
    store.head_sync(HERE, "r")
    store.get_sync(HERE, "r")
    store.delete_sync(HERE, "r")
    store.list_sync(HERE, limit=3, cursor="c")
    assert store.asked == ["put", ("head", "r"), ("get", "r"), ("delete", "r"), ("list", 3, "c")]
    assert repr(store) == "<Remote>"


def test_the_interface_itself_cannot_be_made():
    with pytest.raises(TypeError):
        ArtifactStore()
    with pytest.raises(TypeError):
        ShelfStore()


def test_driving_a_coroutine_that_waits_is_an_error_and_leaves_nothing_pending():
    async def waits():
        await asyncio.sleep(0)

    async def answers():
        return 5

    async def fails():
        raise KeyError("x")

    assert drive(answers) == 5
    with pytest.raises(KeyError):
        drive(fails)
    with pytest.raises(RuntimeError, match="never to wait"):
        drive(waits)


# --- retention, alone --------------------------------------------------------------------------


def ticket(name, size=1, expires=None):
    return Ticket(ref=name, kind="k", media_type="m", bytes=size, created_at=0, expires_at=expires)


def sweep(held, incoming, **dials):
    swept = Retention(**dials).sweep(held, incoming, 100)
    return [(gone.ref, gone.reason) for gone in swept]


def test_within_the_budget_nothing_leaves():
    assert sweep([ticket("a"), ticket("b")], 1, max_bytes=3, max_count=3) == []
    assert sweep([], 1, max_bytes=1, max_count=1) == []


def test_expired_rows_leave_wherever_they_stand_and_make_room():
    held = [ticket("a"), ticket("b", expires=100), ticket("c", expires=101)]
    assert sweep(held, 1, max_bytes=3, max_count=3) == [("b", "ttl")]
    assert sweep(held, 1, max_bytes=3, max_count=2) == [("b", "ttl"), ("a", "max-count")]


def test_large_rows_do_not_leave_before_older_ones():
    held = [ticket("small", 1), ticket("large", 9)]
    assert sweep(held, 5, max_bytes=10, max_count=9) == [
        ("small", "max-bytes"),
        ("large", "max-bytes"),
    ]


@pytest.mark.parametrize(
    ("ttl", "wanted", "expected"), [(None, None, None), (None, 7, 7), (5, None, 105)]
)
def test_an_expiry_is_the_sooner_one(ttl, wanted, expected):
    assert Retention(ttl_ms=ttl).expiry(wanted, 100) == expected


def test_a_dial_of_zero_is_refused():
    with pytest.raises(DefinitionError, match="ttl_ms cannot be 0"):
        Retention(ttl_ms=0)
