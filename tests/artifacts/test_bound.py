"""What a tool gets: no scope to choose, an origin it cannot forge, facts told as metadata."""

import asyncio
import json

import pytest

from runbook_nb.artifacts import ArtifactScope, BoundArtifacts, InMemoryArtifacts, NoArtifacts
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import ArtifactError, DefinitionError

HERE = ArtifactScope("c1")
REF = "art_" + "a" * 22


def note(data="x", **more):
    return {"kind": "k", "mediaType": "m", "data": data, **more}


@pytest.fixture
def facts():
    return []


@pytest.fixture
def store(clock):
    return InMemoryArtifacts(max_count=2)


@pytest.fixture
def bound(store, facts):
    return BoundArtifacts(store, HERE, {"toolCallId": "tc-1"}, facts.append)


def test_case_65_the_binding_stamps_the_origin_and_discards_the_callers(bound):
    for forged in ({"toolCallId": "fake"}, {"runId": "fake"}, "garbage", 5, {"no": "such key"}):
        meta = bound.put_sync(note(origin=forged)).meta
        assert meta.origin == {"toolCallId": "tc-1"}


def test_a_binding_without_an_origin_files_with_none(store):
    for origin in (None, {}, {"runId": None}):
        bound = BoundArtifacts(store, HERE, origin)
        assert bound.put_sync(note(origin={"toolCallId": "fake"})).meta.origin is None


def test_the_callers_mapping_is_left_as_it_was(bound):
    artifact = note(origin={"toolCallId": "fake"})
    bound.put_sync(artifact)
    assert artifact["origin"] == {"toolCallId": "fake"}


def test_the_verbs_work_in_the_bound_scope_only(store, bound):
    ref = bound.put_sync(note("é")).meta.ref
    assert bound.get_sync(ref).data == "é"
    assert bound.head_sync(ref).bytes == 2
    assert [ticket.ref for ticket in bound.list_sync(limit=1).artifacts] == [ref]
    assert store.get_sync(HERE, ref) is not None
    other = BoundArtifacts(store, ArtifactScope("c2"))
    assert other.get_sync(ref) is other.head_sync(ref) is None
    assert other.delete_sync(ref) is False
    assert other.list_sync().artifacts == ()
    assert bound.delete_sync(ref) is True


def test_the_async_verbs_do_the_same(bound):
    async def use():
        first = (await bound.put(note("1"))).meta.ref
        await bound.put(note("2"))
        page = await bound.list(limit=1)
        rest = await bound.list(cursor=page.cursor)
        assert len(page.artifacts) == len(rest.artifacts) == 1
        assert (await bound.head(first)).ref == first
        assert (await bound.get(first)).data == "1"
        return await bound.delete(first)

    assert asyncio.run(use()) is True


def test_a_binding_refuses_what_is_no_store_or_no_origin(store):
    with pytest.raises(DefinitionError, match="no artifact store"):
        BoundArtifacts({}, HERE)
    with pytest.raises(ArtifactError, match="origin"):
        BoundArtifacts(store, HERE, {"callId": "c"})


# --- facts -------------------------------------------------------------------------------------


def test_filing_and_finding_are_told_with_the_ticket(bound, facts):
    meta = bound.put_sync(note()).meta
    bound.get_sync(meta.ref)
    bound.head_sync(meta.ref)
    assert facts == [
        {"type": "artifacts.minted", "meta": meta.to_dict()},
        {"type": "artifacts.resolved", "verb": "get", "meta": meta.to_dict()},
        {"type": "artifacts.resolved", "verb": "head", "meta": meta.to_dict()},
    ]


def test_each_row_that_leaves_is_told_with_the_ground(bound, facts):
    first = bound.put_sync(note()).meta.ref
    bound.put_sync(note())
    facts.clear()
    bound.put_sync(note())
    assert [fact["type"] for fact in facts] == ["artifacts.minted", "artifacts.expired"]
    assert facts[1] == {
        "type": "artifacts.expired",
        "ref": first,
        "reason": "max-count",
        "kind": "k",
        "bytes": 1,
    }


def test_a_reference_that_gives_nothing_is_told_and_only_if_it_is_one(bound, facts):
    bound.get_sync(REF)
    bound.head_sync("DROP TABLE secrets")
    assert facts == [
        {"type": "artifacts.refused", "verb": "get", "code": "missing_or_expired", "ref": REF},
        {"type": "artifacts.refused", "verb": "head", "code": "missing_or_expired"},
    ]


@pytest.mark.parametrize(
    ("artifact", "code"),
    [
        (note({"secret"}), "invalid_artifact"),
        (note(parentRefs=[REF]), "unknown_parent"),
        ("secret", "invalid_artifact"),
    ],
)
def test_a_refused_put_is_told_by_its_code(bound, facts, artifact, code):
    with pytest.raises(ArtifactError):
        bound.put_sync(artifact)
    assert facts == [{"type": "artifacts.refused", "verb": "put", "code": code}]


def test_a_store_that_breaks_is_told_by_the_class_of_its_error(facts):
    class Broken(InMemoryArtifacts):
        async def put(self, scope, artifact):
            raise OSError("disk full at /home/secret")

        async def delete(self, scope, ref):
            raise OSError("secret")

    bound = BoundArtifacts(Broken(), HERE, observer=facts.append)
    with pytest.raises(OSError, match="disk full"):
        bound.put_sync(note())
    with pytest.raises(OSError, match="secret"):
        bound.delete_sync(REF)
    assert facts == [
        {"type": "artifacts.refused", "verb": "put", "code": "OSError"},
        {"type": "artifacts.refused", "verb": "delete", "code": "OSError", "ref": REF},
    ]


def test_no_fact_ever_holds_any_of_a_payload(bound, facts):
    ref = bound.put_sync(note({"secret": "secret"})).meta.ref
    bound.get_sync(ref)
    with pytest.raises(ArtifactError):
        bound.put_sync(note({"secret": {"secret"}}))
    bound.list_sync()
    bound.delete_sync(ref)
    assert "secret" not in json.dumps(facts)
    assert len(facts) == 3


# --- no store ----------------------------------------------------------------------------------

VERBS = {
    "put": (note(),),
    "head": (REF,),
    "get": (REF,),
    "delete": (REF,),
    "list": (),
}


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_store_every_verb_refuses_and_says_how_to_get_one(verb):
    none = NoArtifacts()

    async def ask():
        return await getattr(none, verb)(*VERBS[verb])

    for call in (lambda: asyncio.run(ask()), lambda: getattr(none, f"{verb}_sync")(*VERBS[verb])):
        with pytest.raises(ArtifactError) as caught:
            call()
        assert caught.value.code == "no_store"
        assert "no artifact store is attached" in str(caught.value)
        assert "artifacts=InMemoryArtifacts()" in caught.value.fix


def test_without_a_store_a_plain_stage_is_told_so_too():
    def work(scope):
        NoArtifacts().put_sync(note())

    with pytest.raises(ArtifactError, match="no artifact store is attached"):
        flow_chart("c", work, id="work").build().run_sync()


def test_an_inner_call_may_give_its_own_ground_for_having_no_store():
    none = NoArtifacts("inner calls carry no artifact store", fix="file it in the outer tool")
    with pytest.raises(ArtifactError, match="inner calls carry no artifact store; file it in"):
        none.put_sync(note())


def test_a_binding_shows_its_scope_and_no_store_shows_that():
    store = InMemoryArtifacts()
    BoundArtifacts(store, ArtifactScope("c2")).put_sync(note("secret"))
    bound = BoundArtifacts(store, HERE, {"toolCallId": "call-77"})
    bound.put_sync(note("abc"))
    assert repr(bound) == "<Artifacts in memory · 1 artifact>"
    assert "3 bytes" in str(bound)
    assert "call-77" not in str(bound)
    assert repr(NoArtifacts()) == "<Artifacts · no artifact store is attached>"
