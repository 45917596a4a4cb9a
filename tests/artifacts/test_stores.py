"""Every store there is: what goes in comes out, within budgets, apart for each scope."""

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from runbook_nb._ids import SeededIds
from runbook_nb.artifacts import ArtifactScope
from runbook_nb.errors import ArtifactError, DefinitionError
from runbook_nb.settings import settings

HERE = ArtifactScope("c1")
THERE = ArtifactScope("c2")


def at(ms):
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def note(data="x", **more):
    return {"kind": "k", "mediaType": "m", "data": data, **more}


def filed(store, data="x", scope=HERE, **more):
    return store.put_sync(scope, note(data, **more)).meta.ref


def refs(store, scope=HERE, **more):
    return [ticket.ref for ticket in store.list_sync(scope, **more).artifacts]


# --- put and get -------------------------------------------------------------------------------


def test_case_59_put_gives_a_ticket_with_a_reference_and_the_size_in_bytes(make):
    meta = make().put_sync(HERE, note("é")).meta
    assert re.fullmatch(r"art_[A-Za-z0-9]{22}", meta.ref)
    assert meta.bytes == 2


def test_case_60_a_blank_kind_is_refused_and_nothing_is_filed(make):
    store = make()
    with pytest.raises(ArtifactError, match="kind") as caught:
        store.put_sync(HERE, {**note(), "kind": " "})
    assert caught.value.code == "invalid_artifact"
    assert refs(store) == []


@pytest.mark.parametrize("scope", [THERE, ArtifactScope("c1", "t"), ArtifactScope("c1", None, "p")])
def test_case_61_another_scope_holds_nothing_of_it(make, scope):
    store = make()
    ref = filed(store)
    assert store.get_sync(scope, ref) is store.head_sync(scope, ref) is None
    assert refs(store, scope) == []
    assert store.delete_sync(scope, ref) is False
    assert store.get_sync(HERE, ref).data == "x"


@pytest.mark.parametrize("ref", ["art_../x", "", None, 5, "art_" + "a" * 22, ["art_"]])
def test_case_61_missing_and_malformed_references_get_the_same_answer(make, ref):
    store = make()
    filed(store)
    assert store.get_sync(HERE, ref) is store.head_sync(HERE, ref) is None
    assert store.delete_sync(HERE, ref) is False


def test_case_62_changing_the_value_after_put_does_not_change_the_artifact(make):
    store, rows = make(), {"rows": [1]}
    ref = filed(store, rows)
    rows["rows"].append(2)
    assert store.get_sync(HERE, ref).data == '{"rows":[1]}'
    buffer = bytearray(b"ab")
    ref = filed(store, buffer)
    buffer[0] = 0
    assert store.get_sync(HERE, ref).data == b"ab"


def test_text_and_bytes_come_back_as_such(make):
    store = make()
    assert store.get_sync(HERE, filed(store, "é")).data == "é"
    assert store.get_sync(HERE, filed(store, b"\xff")).data == b"\xff"
    assert store.get_sync(HERE, filed(store, "")).data == ""


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner)
    ),
    max_leaves=15,
)


@trials(deadline=None)
@given(json_values)
def test_any_json_value_survives_the_store(make, value):
    store = make()
    record = store.get_sync(HERE, filed(store, {"value": value}))
    assert json.loads(record.data) == {"value": value}
    assert record.meta.bytes == len(record.data.encode())


def test_the_ticket_holds_what_was_said_of_it(make, clock):
    store = make()
    parent = filed(store)
    meta = store.put_sync(
        HERE,
        note(
            label="nightly",
            digest="sha-256",
            expiresAt=clock.ms + 5,
            origin={"toolCallId": "t1"},
            parentRefs=[parent, parent],
        ),
    ).meta
    assert meta.to_dict() == {
        "ref": meta.ref,
        "kind": "k",
        "mediaType": "m",
        "bytes": 1,
        "createdAt": clock.ms,
        "label": "nightly",
        "digest": "sha-256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
        "expiresAt": clock.ms + 5,
        "origin": {"toolCallId": "t1"},
        "parentRefs": [parent],
    }
    assert store.head_sync(HERE, meta.ref) == store.get_sync(HERE, meta.ref).meta == meta


def test_a_parent_must_be_held_in_the_same_scope(make, clock):
    store = make()
    elsewhere = filed(store, scope=THERE)
    short = filed(store, expiresAt=clock.ms + 1)
    clock.ms += 1
    for parent in (elsewhere, short, "art_" + "a" * 22):
        with pytest.raises(ArtifactError) as caught:
            store.put_sync(HERE, note(parentRefs=[parent]))
        assert caught.value.code == "unknown_parent"
    assert refs(store) == []


def test_a_refused_put_uses_up_no_reference(make):
    def refs_after(bad):
        with settings(ids=SeededIds("burn")):
            store = make(max_bytes=10)
            for artifact in bad:
                with pytest.raises(ArtifactError):
                    store.put_sync(HERE, artifact)
            return filed(store)

    bad = [note({1, 2}), {**note(), "kind": ""}, note("x" * 11), note(parentRefs=["art_x"])]
    assert refs_after(bad) == refs_after([])


def test_a_payload_that_was_tampered_with_is_an_integrity_error(make):
    store = make()
    ref = filed(store, "true words")
    make.tamper(store, ref, b"false words")
    with pytest.raises(ArtifactError) as caught:
        store.get_sync(HERE, ref)
    assert caught.value.code == "integrity"
    assert "false words" not in str(caught.value)
    assert store.head_sync(HERE, ref) is not None


def test_a_source_of_ids_that_repeats_itself_is_drawn_from_again(make):
    store = make()
    made = []
    for _ in range(3):
        with settings(ids=SeededIds("same")):
            made.append(filed(store))
    assert len(set(made)) == 3


@pytest.mark.parametrize("ids", [lambda n: "a" * n, lambda n: "-" * n, lambda n: "a", lambda n: ""])
def test_a_source_of_ids_that_gives_nothing_new_is_named(make, ids):
    store = make(max_count=9)

    def file_two():
        filed(store)
        filed(store)

    with settings(ids=ids), pytest.raises(ArtifactError) as caught:
        file_two()
    assert caught.value.code == "no_new_ref"
    assert caught.value.where == "settings.ids"


@pytest.mark.parametrize("scope", [None, "c1", {"conversationId": "c1"}, 5])
def test_a_verb_without_a_scope_is_refused(make, scope):
    store = make()
    for call in (
        lambda: store.put_sync(scope, note()),
        lambda: store.get_sync(scope, "art_" + "a" * 22),
        lambda: store.list_sync(scope),
    ):
        with pytest.raises(ArtifactError, match="ArtifactScope"):
            call()


# --- delete and list ---------------------------------------------------------------------------


def test_deleting_says_whether_there_was_something(make):
    store = make()
    ref = filed(store)
    assert store.delete_sync(HERE, ref) is True
    assert store.delete_sync(HERE, ref) is False
    assert store.get_sync(HERE, ref) is None
    assert store.dropped == 0


def test_the_list_is_newest_first_and_then_by_reference(make, clock):
    store = make()
    old = sorted(filed(store) for _ in range(3))
    clock.ms += 1
    new = sorted(filed(store) for _ in range(2))
    assert refs(store) == [*new, *old]
    store.get_sync(HERE, old[0])
    assert refs(store) == [*new, *old]


def test_a_page_has_fifty_tickets_unless_told_otherwise(make):
    store = make()
    for _ in range(51):
        filed(store)
    page = store.list_sync(HERE)
    assert len(page.artifacts) == 50
    rest = store.list_sync(HERE, cursor=page.cursor)
    assert (len(rest.artifacts), rest.cursor) == (1, None)
    assert store.list_sync(HERE, limit=51).cursor is None


@pytest.mark.parametrize("limit", [0, -1, 1.5, "10", None, True])
def test_a_page_has_at_least_one_row(make, limit):
    with pytest.raises(ArtifactError) as caught:
        make().list_sync(HERE, limit=limit)
    assert caught.value.code == "invalid_limit"


@pytest.mark.parametrize(
    "cursor", ["", "x", "5", "5:art_", 5, None, "\u0663:art_a", ["5:art_a"], "5:art_a\n"]
)
def test_a_cursor_nobody_gave_out_starts_from_the_first(make, cursor):
    store = make()
    for _ in range(3):
        filed(store)
    assert refs(store, cursor=cursor) == refs(store)


@trials(deadline=None)
@given(
    st.lists(st.integers(0, 2), max_size=30),
    st.integers(1, 7),
    st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=10),
)
def test_paging_visits_each_row_once_whatever_happens_between_pages(make, steps, limit, between):
    moment = [1_000_000]

    with settings(clock=lambda: at(moment[0]), ids=SeededIds("paging")):
        store = make(max_count=1000)
        held = set()
        for step in steps:
            moment[0] += step
            held.add(filed(store))
        seen, cursor, disturbances = [], None, iter(between)
        deleted = set()
        while True:
            page = store.list_sync(HERE, limit=limit, cursor=cursor)
            assert len(page.artifacts) <= limit
            seen += [ticket.ref for ticket in page.artifacts]
            cursor = page.cursor
            if cursor is None:
                break
            for add, step in [next(disturbances, (False, 0))]:
                moment[0] += step
                if add:
                    filed(store)
                else:
                    gone = sorted(held - deleted)[0]
                    deleted.add(gone)
                    store.delete_sync(HERE, gone)
    assert len(seen) == len(set(seen))
    assert held - deleted <= set(seen)


# --- retention ---------------------------------------------------------------------------------


def test_case_63_the_least_recently_used_row_leaves_for_the_row_budget(make, clock):
    store = make(max_count=2)
    a, b = filed(store), filed(store)
    store.get_sync(HERE, a)
    result = store.put_sync(HERE, note())
    assert [(gone.ref, gone.reason) for gone in result.swept] == [(b, "max-count")]
    assert store.dropped == 1
    assert set(refs(store)) == {a, result.meta.ref}


def test_looking_at_a_ticket_is_using_it_and_listing_is_not(make):
    store = make(max_count=2)
    a, b = filed(store), filed(store)
    store.head_sync(HERE, a)
    refs(store)
    assert store.put_sync(HERE, note()).swept[0].ref == b


def test_case_64_a_payload_above_the_whole_budget_is_refused_and_nothing_leaves(make):
    store = make(max_bytes=5)
    ref = filed(store, "abc")
    with pytest.raises(ArtifactError) as caught:
        filed(store, "é" * 3)
    assert caught.value.code == "too_large"
    assert "6 bytes" in str(caught.value)
    assert "max_bytes" in str(caught.value)
    assert refs(store) == [ref]
    assert store.dropped == 0


def test_a_payload_of_exactly_the_budget_fits(make):
    store = make(max_bytes=5)
    a, b = filed(store, "ab"), filed(store, "c")
    swept = store.put_sync(HERE, note("12345")).swept
    assert [gone.to_dict() for gone in swept] == [
        {"ref": a, "reason": "max-bytes", "kind": "k", "bytes": 2},
        {"ref": b, "reason": "max-bytes", "kind": "k", "bytes": 1},
    ]
    assert store.dropped == 2


def test_rows_leave_for_the_row_budget_first_and_then_for_the_bytes(make):
    store = make(max_count=3, max_bytes=9)
    for _ in range(3):
        filed(store, "abc")
    assert [g.reason for g in store.put_sync(HERE, note("123456")).swept] == [
        "max-count",
        "max-bytes",
    ]


def test_expired_rows_go_first_and_do_not_count_as_dropped(make, clock):
    store = make(max_count=2)
    short = filed(store, expiresAt=clock.ms + 10)
    kept = filed(store)
    store.head_sync(HERE, short)
    clock.ms += 10
    swept = store.put_sync(HERE, note()).swept
    assert [(gone.ref, gone.reason) for gone in swept] == [(short, "ttl")]
    assert store.dropped == 0
    assert kept in refs(store)


def test_an_expired_row_is_gone_for_every_verb(make, clock):
    store = make(ttl_ms=10)
    verbs = (store.get_sync, store.head_sync, store.delete_sync)
    made = [filed(store) for _ in verbs]
    clock.ms += 9
    assert all(store.head_sync(HERE, ref) for ref in made)
    clock.ms += 1
    assert [verb(HERE, ref) for verb, ref in zip(verbs, made, strict=True)] == [None, None, False]
    assert refs(store) == []
    assert make.is_bare(store)


@pytest.mark.parametrize(("wanted", "expected"), [(None, 10), (5, 5), (50, 10)])
def test_the_sooner_of_both_expiries_counts(make, clock, wanted, expected):
    store = make(ttl_ms=10)
    more = {} if wanted is None else {"expiresAt": clock.ms + wanted}
    assert store.put_sync(HERE, note(**more)).meta.expires_at == clock.ms + expected


def test_budgets_are_per_scope(make):
    store = make(max_count=1)
    a, b = filed(store), filed(store, scope=THERE)
    assert refs(store) == [a]
    assert refs(store, THERE) == [b]


def test_the_defaults_are_32_mebibytes_and_256_rows(make):
    retention = make().retention
    assert (retention.max_bytes, retention.max_count, retention.ttl_ms) == (33_554_432, 256, None)


@pytest.mark.parametrize("dial", ["max_bytes", "max_count", "ttl_ms"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1.5, "5", True])
def test_a_dial_that_is_no_positive_whole_number_is_refused_by_name(make, dial, value):
    with pytest.raises(DefinitionError, match=dial):
        make(**{dial: value})


class Shelves(RuleBasedStateMachine):
    """Against a plain model: budgets hold, nothing disappears unreported, nothing comes back."""

    @initialize(
        max_bytes=st.integers(1, 12), max_count=st.integers(1, 4), ttl=st.none() | st.integers(1, 5)
    )
    def start(self, max_bytes, max_count, ttl):
        self.ms = 1_000_000
        self.ids = SeededIds("machine")
        self.max_bytes, self.max_count = max_bytes, max_count
        self.store = self.make(max_bytes=max_bytes, max_count=max_count, ttl_ms=ttl)
        self.model = {}  # ref -> (data, expires), least recently used first
        self.dropped = 0
        self.gone = set()

    def within(self):
        return settings(clock=lambda: at(self.ms), ids=self.ids)

    def alive(self, ref):
        return ref in self.model and (self.model[ref][1] is None or self.model[ref][1] > self.ms)

    @rule(data=st.text("aé", max_size=8), life=st.none() | st.integers(1, 5))
    def put(self, data, life):
        with self.within():
            artifact = note(data) if life is None else note(data, expiresAt=self.ms + life)
            if len(data.encode()) > self.max_bytes:
                with pytest.raises(ArtifactError):
                    self.store.put_sync(HERE, artifact)
                return
            result = self.store.put_sync(HERE, artifact)
        for gone in result.swept:
            assert (gone.reason == "ttl") == (not self.alive(gone.ref))
            if gone.reason != "ttl":
                first = next(ref for ref in self.model if self.alive(ref))
                assert gone.ref == first
            self.dropped += gone.reason != "ttl"
            del self.model[gone.ref]
            self.gone.add(gone.ref)
        assert all(self.alive(ref) for ref in self.model)
        assert result.meta.ref not in self.gone
        self.model[result.meta.ref] = (data, result.meta.expires_at)

    @precondition(lambda self: self.model)
    @rule(pick=st.integers(0, 10))
    def get(self, pick):
        ref = list(self.model)[pick % len(self.model)]
        with self.within():
            record = self.store.get_sync(HERE, ref)
        if self.alive(ref):
            assert record.data == self.model[ref][0]
            self.model[ref] = self.model.pop(ref)
        else:
            assert record is None
            del self.model[ref]
            self.gone.add(ref)

    @precondition(lambda self: self.model)
    @rule(pick=st.integers(0, 10))
    def delete(self, pick):
        ref = list(self.model)[pick % len(self.model)]
        with self.within():
            assert self.store.delete_sync(HERE, ref) == self.alive(ref)
        del self.model[ref]
        self.gone.add(ref)

    @rule(step=st.integers(1, 3))
    def wait(self, step):
        self.ms += step

    @invariant()
    def the_budgets_hold_and_nothing_is_lost(self):
        with self.store._open(HERE) as shelf:
            rows = [row.ticket for row in shelf.rows()]
        assert sum(ticket.bytes for ticket in rows) <= self.max_bytes
        assert len(rows) <= self.max_count
        assert [ticket.ref for ticket in rows] == list(self.model)
        assert self.store.dropped == self.dropped

    @invariant()
    def listing_shows_exactly_what_is_alive(self):
        with self.within():
            listed = set(refs(self.store))
        self.model = {ref: held for ref, held in self.model.items() if self.alive(ref)}
        assert listed == set(self.model)


def test_a_store_does_what_a_plain_model_does(make):
    class Of(Shelves):
        pass

    Of.make = staticmethod(make)
    run_state_machine_as_test(Of, settings=trials(deadline=None))


# --- async, threads, subclasses ----------------------------------------------------------------


def test_the_async_verbs_do_what_their_twins_do(make, clock):
    store = make()

    async def all_verbs():
        meta = (await store.put(HERE, note("é"))).meta
        assert await store.head(HERE, meta.ref) == meta
        assert (await store.get(HERE, meta.ref)).data == "é"
        assert (await store.list(HERE)).artifacts == (meta,)
        assert await store.delete(HERE, meta.ref)
        return await store.get(HERE, meta.ref)

    assert asyncio.run(all_verbs()) is None


def test_the_twins_answer_in_the_callers_thread_also_inside_a_loop(make):
    threads = set()
    store = make()

    def ids(n):
        threads.add(threading.current_thread())
        return SeededIds("here")(n)

    async def inside():
        with settings(ids=ids):
            return filed(store)

    assert store.get_sync(HERE, asyncio.run(inside())).data == "x"
    assert threads == {threading.current_thread()}


def test_the_settings_of_each_call_count(make, clock):
    store = make()
    first = store.put_sync(HERE, note()).meta
    clock.ms += 7
    with settings(ids=lambda n: "z" * n):
        second = store.put_sync(HERE, note()).meta
    assert second.created_at - first.created_at == 7
    assert second.ref == "art_" + "z" * 22


def test_a_subclass_that_waits_is_waited_for(make):
    class Slow(make.kind):
        async def put(self, scope, artifact):
            await asyncio.sleep(0)
            return await super().put(scope, artifact)

    store = make.of(Slow)
    assert store.get_sync(HERE, filed(store)).data == "x"


def test_a_subclass_may_refuse(make):
    class Quota(make.kind):
        async def put(self, scope, artifact):
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        filed(make.of(Quota))


def test_many_threads_may_use_one_store(make):
    store = make(max_count=20, max_bytes=200)

    def work(worker):
        deleted = 0
        for n in range(60):
            text = f"{worker}/{n}"
            ref = filed(store, text)
            record = store.get_sync(HERE, ref)
            assert record is None or record.data == text
            if n % 3 == 0:  # another thread may have pushed it out by now
                deleted += store.delete_sync(HERE, ref)
            refs(store, limit=5)
        return deleted

    with ThreadPoolExecutor(8) as pool:
        deleted = sum(pool.map(work, range(8)))
    held = store.list_sync(HERE, limit=1000).artifacts
    assert len(held) <= 20
    assert sum(ticket.bytes for ticket in held) <= 200
    assert len(held) + store.dropped + deleted == 8 * 60


# --- views -------------------------------------------------------------------------------------


def test_the_store_shows_counts_and_bytes_by_kind(make):
    store = make()
    filed(store, "abc")
    store.put_sync(THERE, {"kind": "recording/run", "mediaType": "m", "data": "12345"})
    store.put_sync(HERE, {"kind": "recording/run", "mediaType": "m", "data": "1"})
    assert str(store).splitlines() == [
        f"Artifacts {make.name} · 3 artifacts",
        "  k              artifacts 1  bytes 3",
        "  recording/run  artifacts 2  bytes 6",
        "9 bytes",
    ]
    assert store.view(THERE).headline == "1 artifact"
    assert "art_" not in store.to_markdown()


def test_the_store_does_not_show_what_has_expired_and_says_what_it_dropped(make, clock):
    store = make(max_count=1)
    filed(store)
    filed(store, expiresAt=clock.ms + 1)
    assert store.view().closing == ("1 byte", "1 dropped for the budget")
    clock.ms += 1
    assert repr(store) == f"<Artifacts {make.name} · 0 artifacts>"
    assert "nothing is filed" in str(store)
    assert store.view(HERE).closing == ("0 bytes",)
