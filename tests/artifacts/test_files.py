"""The store in a folder: no file is half there, none hides another, none leads elsewhere."""

import errno
import itertools
import json
import multiprocessing
import os
import pickle
import random
import stat

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from runbook_nb.artifacts import ArtifactScope, FileArtifacts, InMemoryArtifacts, layout
from runbook_nb.artifacts import durable as waiting
from runbook_nb.artifacts import files as module
from runbook_nb.errors import ArtifactError
from runbook_nb.settings import settings

HERE, THERE = ArtifactScope("c1"), ArtifactScope("c1", "t", "p")
NUMBERS = itertools.count()
NOBODY = "art_" + "a" * 22


def note(data="x", **more):
    return {"kind": "k", "mediaType": "m", "data": data, **more}


def filed(store, data="x", scope=HERE, **more):
    return store.put_sync(scope, note(data, **more)).meta.ref


def refs(store, scope=HERE):
    return {ticket.ref for ticket in store.list_sync(scope, limit=10_000).artifacts}


def ticket_of(store, ref):
    (found,) = store.path.glob(f"scopes/*/{ref}.json")
    return found


def payload_of(store, ref):
    (found,) = store.path.glob(f"payloads/*/*/{ref}")
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "walks"


@pytest.fixture
def store(path):
    return FileArtifacts(path)


# --- what stands in the folder -----------------------------------------------------------------


def test_what_was_filed_is_there_for_the_next_store(path):
    store = FileArtifacts(path)
    meta = store.put_sync(HERE, note({"é": [1]}, label="a", origin={"runId": "r"})).meta
    other = FileArtifacts(path)
    assert other.get_sync(HERE, meta.ref).data == '{"é":[1]}'
    assert other.head_sync(HERE, meta.ref) == meta
    with other:
        assert pickle.loads(pickle.dumps(other)).head_sync(HERE, meta.ref) == meta  # noqa: S301


def test_a_ticket_is_a_small_json_file_and_a_payload_a_file_of_its_own(store):
    meta = store.put_sync(HERE, note("words", label="é")).meta
    about = json.loads(ticket_of(store, meta.ref).read_text(encoding="utf-8"))
    assert about["ticket"] == meta.to_dict()
    assert set(about) == {"scope", "form", "packing", "ticket", "sha-256"}
    found = payload_of(store, meta.ref)
    assert found.read_bytes() == b"words"
    assert meta.digest == f"sha-256:{found.parent.name}"
    assert found.parent.parent.name == found.parent.name[:2]


def test_equal_payloads_are_one_file_whoever_holds_them(store):
    data = random.Random(1).randbytes(9000)
    one, two = filed(store, data), filed(store, data, THERE)
    assert payload_of(store, one).samefile(payload_of(store, two))
    assert store.delete_sync(HERE, one)
    assert store.get_sync(THERE, two).data == data
    assert store.delete_sync(THERE, two)
    assert list(store.path.glob("payloads/*/*")) == []


def test_a_damaged_payload_is_not_handed_on_to_the_next_who_files_the_same(store):
    one = filed(store, "words")
    payload_of(store, one).write_bytes(b"wards")
    two = filed(store, "words")
    assert store.get_sync(HERE, two).data == "words"
    assert [error.code for error in store.faults()] == ["integrity"]


def test_where_a_file_has_but_one_name_each_ticket_has_its_own(store, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    one, two = filed(store, "words"), filed(store, "words")
    assert not payload_of(store, one).samefile(payload_of(store, two))
    assert store.delete_sync(HERE, one)
    assert store.get_sync(HERE, two).data == "words"


def test_nothing_a_scope_is_called_leads_out_of_the_folder(path):
    names = ["../../escape", "/etc/passwd", "a\0b", "a/b", ".", "..", "CON", "é" * 300, "A", "a"]
    store = FileArtifacts(path)
    made = {name: filed(store, name, ArtifactScope(name)) for name in names}
    made_apart = {name: filed(store, name, ArtifactScope("c", name, name)) for name in names}
    for name in names:
        assert store.get_sync(ArtifactScope(name), made[name]).data == name
        assert store.get_sync(ArtifactScope("c", name, name), made_apart[name]).data == name
        assert refs(store, ArtifactScope(name)) == {made[name]}
    assert [found.name for found in path.parent.iterdir()] == ["walks"]


# --- how a file comes to its place -------------------------------------------------------------


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_is_after_it(store, monkeypatch):
    filed(store, "first")
    told, syncing, replacing = [], os.fsync, module.Path.replace

    def sync(file):
        told.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        return syncing(file)

    def place(self, target):
        made = replacing(self, target)  # the first time its folder may not be there
        told.append("place")
        return made

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(module.Path, "replace", place)
    filed(store, "second")
    assert told.count("place") == 2  # the payload, then the ticket
    assert [what for what in told if what != "folder"] == ["file", "place"] * 2
    assert all(told[at + 1] == "folder" for at, what in enumerate(told) if what == "place")


@pytest.mark.parametrize("at", [1, 2])
def test_a_put_that_fails_leaves_nothing_and_costs_nobody_his_place(path, monkeypatch, at):
    store = FileArtifacts(path, max_count=2)
    kept = {filed(store, "a"), filed(store, "b")}
    calls, replacing = [], module.Path.replace

    def full(self, target):
        calls.append(target)
        if len(calls) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replacing(self, target)

    monkeypatch.setattr(module.Path, "replace", full)
    with pytest.raises(ArtifactError, match="No space left") as caught:
        filed(store, "lost")
    assert caught.value.code == "store_unavailable"
    monkeypatch.undo()
    assert refs(store) == kept
    assert store.dropped == 0
    assert len(list(path.glob("payloads/*/*/*"))) == 2  # what was half done is cleared away
    assert list(path.glob("drafts/*/*")) == []
    assert store.faults() == ()


def test_a_removal_that_was_cut_short_is_brought_to_its_end(store, monkeypatch):
    ref = filed(store, "words")
    kept = filed(store, "kept")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(layout, "_remove_payload", killed)
    with pytest.raises(KeyboardInterrupt):
        store.delete_sync(HERE, ref)
    monkeypatch.undo()
    other = FileArtifacts(store.path)
    assert other.get_sync(HERE, ref) is None
    assert refs(other) == {kept}
    assert len(list(store.path.glob("payloads/*/*/*"))) == 1


def test_the_note_of_what_was_used_last_stays_short_and_survives_a_torn_line(path):
    store = FileArtifacts(path, max_count=3)
    a, b, c = (filed(store, text) for text in "abc")
    for _ in range(400):
        store.head_sync(HERE, a)
    (uses,) = path.glob("scopes/*/uses")
    assert uses.stat().st_size < 300 * 27
    store.head_sync(HERE, b)
    with uses.open("ab") as torn:
        torn.write(b"\nart_torn")
    store.head_sync(HERE, c)
    assert FileArtifacts(path, max_count=3).put_sync(HERE, note("d")).swept[0].ref == a


def test_without_the_note_the_oldest_leaves(path, clock):
    store = FileArtifacts(path, max_count=2)
    old = filed(store, "a")
    clock.ms += 1
    filed(store, "b")
    next(iter(path.glob("scopes/*/uses"))).unlink()
    assert store.put_sync(HERE, note("c")).swept[0].ref == old


# --- files that are not what was filed ---------------------------------------------------------


def cut(found):
    found.write_bytes(found.read_bytes()[:-9])


def emptied(found):
    found.write_bytes(b"")


def altered(found):
    found.write_bytes(found.read_bytes().replace(b'"k"', b'"K"'))


def other_json(found):
    found.write_text("[1]", encoding="utf-8")


def nested(found):
    found.write_text("[" * 100_000, encoding="utf-8")


def linked(found):
    elsewhere = found.with_name("elsewhere.txt")
    found.rename(elsewhere)
    found.symlink_to(elsewhere)


def piped(found):
    found.unlink()
    os.mkfifo(found)


def test_what_keeps_one_waiting_keeps_no_verb_waiting(path):
    store = FileArtifacts(path)
    ticket = ticket_of(store, filed(store))
    piped(ticket.with_name("uses"))
    with pytest.raises(ArtifactError) as caught:
        filed(store, "another")
    assert caught.value.code == "store_unavailable"


@pytest.mark.parametrize("damage", [cut, emptied, altered, other_json, nested, linked, piped])
def test_a_damaged_ticket_is_told_and_hides_no_other(path, damage):
    store = FileArtifacts(path)
    bad, good = filed(store, "bad"), filed(store, "good")
    damage(ticket_of(store, bad))
    for one in (store, FileArtifacts(path)):
        for verb in (one.get_sync, one.head_sync):
            with pytest.raises(ArtifactError) as caught:
                verb(HERE, bad)
            assert caught.value.code == "integrity"
        with pytest.raises(ArtifactError) as caught:
            one.put_sync(HERE, note(parentRefs=[bad]))
        assert caught.value.code == "integrity"
    fresh = FileArtifacts(path)
    assert refs(fresh) == {good}
    assert fresh.get_sync(HERE, good).data == "good"
    assert "1 ticket cannot be read" in str(fresh)
    told = [error for error in fresh.faults() if error.code == "integrity"]
    assert [error.where.rpartition("/")[2] for error in told] == [f"{bad}.json"]
    assert fresh.delete_sync(HERE, bad) is True
    assert fresh.delete_sync(HERE, bad) is False
    assert [error for error in fresh.faults() if error.code == "integrity"] == []
    assert len(list(path.glob("payloads/*/*/*"))) == 1


@trials(deadline=None, max_examples=150)
@given(st.data())
def test_whatever_is_changed_in_whatever_file_nothing_false_is_given(folder, data):
    store = FileArtifacts(folder / f"spoilt{next(NUMBERS)}")
    texts = [f"text {n} " * 40 for n in range(3)]
    made = {filed(store, text): text for text in texts}
    files = sorted(f for f in store.path.rglob("*") if f.is_file() and f.name.startswith("art_"))
    victim = data.draw(st.sampled_from(files))
    whole = victim.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    how = data.draw(st.sampled_from(["cut", "flip", "double"]))
    flipped = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    victim.write_bytes({"cut": whole[:at], "flip": flipped, "double": whole + whole}[how])
    spoilt = victim.name.removesuffix(".json")
    again = FileArtifacts(store.path)
    wrong = again.faults()
    assert [error.code for error in wrong] in ([], ["integrity"])  # a blank for a blank is no harm
    for ref, text in made.items():
        if wrong and ref == spoilt:
            with pytest.raises(ArtifactError) as caught:
                again.get_sync(HERE, ref)
            assert caught.value.code == "integrity"
        else:
            assert again.get_sync(HERE, ref).data == text
    assert refs(again) >= made.keys() - {spoilt}


def test_a_ticket_of_another_scope_does_not_count_here(store):
    ref = filed(store, "theirs", THERE)
    filed(store, "ours")
    mine, theirs = (next(store.path.glob(f"scopes/{layout.key_of(s)}")) for s in (HERE, THERE))
    (mine / f"{ref}.json").write_bytes((theirs / f"{ref}.json").read_bytes())
    with pytest.raises(ArtifactError) as caught:
        store.get_sync(HERE, ref)
    assert caught.value.code == "integrity"
    assert ref not in refs(store)


def test_a_ticket_cannot_name_a_payload_elsewhere(store, tmp_path):
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    ref = filed(store, "words")
    found = ticket_of(store, ref)
    about = json.loads(found.read_text(encoding="utf-8"))
    about["ticket"]["digest"] = "sha-256:../../../../secret"
    del about["sha-256"]
    found.write_text(json.dumps({**about, "sha-256": layout._check(about)}), encoding="utf-8")
    with pytest.raises(ArtifactError) as caught:
        store.get_sync(HERE, ref)
    assert caught.value.code == "integrity"


@pytest.mark.parametrize("damage", [cut, emptied, linked, lambda found: found.unlink()])
def test_a_damaged_payload_is_told_and_never_given(store, damage):
    bad, good = filed(store, "bad " * 900), filed(store, "good")
    damage(payload_of(store, bad))
    with pytest.raises(ArtifactError) as caught:
        store.get_sync(HERE, bad)
    assert caught.value.code == "integrity"
    assert store.get_sync(HERE, good).data == "good"
    assert refs(store) == {bad, good}
    assert [error.code for error in store.faults()] == ["integrity"]
    assert store.delete_sync(HERE, bad)
    assert store.faults() == ()


def test_a_payload_is_read_no_further_than_it_can_reach(store, monkeypatch):
    ref = filed(store, "words")
    asked = []
    reading = module._read
    monkeypatch.setattr(
        module, "_read", lambda path, most: asked.append(most) or reading(path, most)
    )
    payload_of(store, ref).write_bytes(b"x" * 100_000)
    with pytest.raises(ArtifactError):
        store.get_sync(HERE, ref)
    assert max(most for most in asked if most) < 2000


def test_somebody_elses_files_are_named_and_left_alone(store):
    ref = filed(store)
    scope = ticket_of(store, ref).parent
    (scope / "notes.txt").write_text("mine", encoding="utf-8")
    (scope / f"{NOBODY}.json.bak").write_text("mine", encoding="utf-8")
    (store.path / "scopes" / "mine").mkdir()
    assert refs(store) == {ref}
    assert {error.code for error in store.faults()} == {"foreign_file"}
    assert len(store.faults()) == 3
    assert store.delete_sync(HERE, ref)
    assert (scope / "notes.txt").read_text(encoding="utf-8") == "mine"


# --- folders that are something else -----------------------------------------------------------


def refused(path, code="not_a_store"):
    def held():
        return sorted(str(found) for found in path.rglob("*")) if path.is_dir() else None

    before = held()
    with pytest.raises(ArtifactError) as caught:
        FileArtifacts(path)
    assert caught.value.code == code
    assert caught.value.fix
    assert held() == before
    return str(caught.value)


def test_a_folder_of_other_files_is_refused_and_left_as_it_is(path):
    path.mkdir()
    (path / "thesis.txt").write_text("words", encoding="utf-8")
    assert "other files" in refused(path)


def test_an_empty_folder_becomes_a_store(path):
    path.mkdir()
    assert refs(FileArtifacts(path)) == set()


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('{"format":"runbook_nb/artifacts/9"}', "runbook_nb/artifacts/9"),
        ("{}", "cannot be read"),
        ("[]", "cannot be read"),
        ("", "cannot be read"),
        ("no json", "cannot be read"),
    ],
)
def test_a_form_this_does_not_know_is_refused_and_left_as_it_is(path, mark, said):
    ref = filed(FileArtifacts(path))
    (path / "runbook_nb.json").write_text(mark, encoding="utf-8")
    assert said in refused(path)
    (path / "runbook_nb.json").write_text(json.dumps({"format": layout.FORMAT}), encoding="utf-8")
    assert refs(FileArtifacts(path)) == {ref}


def test_a_file_in_the_way_and_a_folder_that_is_not_there_are_said(tmp_path):
    (tmp_path / "file").write_text("words", encoding="utf-8")
    assert "not a folder" in refused(tmp_path / "file")
    refused(tmp_path / "nowhere" / "walks", "store_unavailable")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("wrong", [":memory:", "", None, 5, b"x", "/", "a\0b", "a\ud900b"])
def test_a_path_that_is_none_is_refused(wrong):
    with pytest.raises(ArtifactError, match="cannot be kept in"):
        FileArtifacts(wrong)


def test_a_folder_that_is_gone_is_said_to_be(store):
    import shutil

    filed(store)
    shutil.rmtree(store.path)
    with pytest.raises(ArtifactError) as caught:
        filed(store)
    assert caught.value.code == "store_unavailable"


# --- what it costs, and what is left -----------------------------------------------------------


@pytest.mark.parametrize("verb", ["get_sync", "head_sync", "delete_sync"])
def test_a_verb_opens_as_many_files_however_much_is_held(path, monkeypatch, verb):
    opened, opening = [], os.open
    monkeypatch.setattr(os, "open", lambda *a, **more: opened.append(a) or opening(*a, **more))
    counts = []
    for held in (5, 100):
        store = FileArtifacts(path.with_name(f"held{held}"))
        made = [filed(store, str(n)) for n in range(held)]
        opened.clear()
        getattr(store, verb)(HERE, made[2])
        counts.append(len(opened))
    assert counts[0] == counts[1] <= 8


def test_a_put_reads_each_ticket_once_and_never_again(path, monkeypatch):
    store = FileArtifacts(path)
    for n in range(30):
        filed(store, str(n))
    other, read = FileArtifacts(path), []
    reading = layout.read_ticket_file
    monkeypatch.setattr(layout, "read_ticket_file", lambda *a: read.append(a[1]) or reading(*a))
    filed(other, "first")
    assert len(read) == 30
    filed(other, "second")
    assert len(read) == 30


def test_what_no_ticket_holds_is_tidied_away_and_nothing_else(store):
    ref, gone = filed(store, "kept"), filed(store, "gone")
    ticket_of(store, gone).unlink()
    with store._files.holding(layout.key_of(HERE)):  # as if somebody were at work
        note_of = store._files.doing(layout.key_of(HERE), "d" * 64, gone)
        with note_of:
            assert FileArtifacts(store.path).tidy() == 0
    assert store.tidy() == 1
    assert store.tidy() == 0
    assert store.get_sync(HERE, ref).data == "kept"
    assert len(list(store.path.glob("payloads/*/*/*"))) == 1


# --- side by side ------------------------------------------------------------------------------


def test_a_scope_that_another_holds_is_said_to_be_busy(store, monkeypatch):
    ref = filed(store)
    monkeypatch.setattr(waiting, "BUSY_SECONDS", 0.01)
    other = FileArtifacts(store.path)
    with other._files.holding(layout.key_of(HERE)):
        with pytest.raises(ArtifactError) as caught:
            store.get_sync(HERE, ref)
        assert caught.value.code == "store_busy"
    assert store.get_sync(HERE, ref).data == "x"


def test_two_stores_over_one_folder_see_each_others_work_at_once(path):
    one, two = FileArtifacts(path, max_count=2), FileArtifacts(path, max_count=2)
    a, b = filed(one, "a"), filed(two, "b")
    assert refs(one) == refs(two) == {a, b}
    one.head_sync(HERE, a)
    assert two.put_sync(HERE, note("c")).swept[0].ref == b
    assert one.get_sync(HERE, b) is None


def from_a_child(store, ref, pipe):
    pipe.send(store.get_sync(HERE, ref).data)
    pipe.send(filed(store, "from the child"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_works_although_another_thread_held_the_store(store):
    ref = filed(store, "from the parent")
    mine, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=from_a_child, args=(store, ref, theirs)
    )
    with store._lock, store._counting:  # as another thread would at that moment
        child.start()
    assert mine.recv() == "from the parent"
    other = mine.recv()
    child.join(30)
    assert child.exitcode == 0
    assert store.get_sync(HERE, other).data == "from the child"


# --- the same as in memory ---------------------------------------------------------------------


def test_the_same_verbs_give_the_same_answers_as_in_memory(path, clock):
    from runbook_nb._ids import SeededIds

    def lives(store):
        told, made, dice = [], [], random.Random(7)
        with settings(ids=SeededIds("twins")):
            for _ in range(300):
                clock.ms += dice.randrange(3)
                act, scope = dice.randrange(6), dice.choice([HERE, THERE])
                if act <= 2:
                    life = {"expiresAt": clock.ms + dice.randrange(1, 60)} if act == 2 else {}
                    put = store.put_sync(scope, note("é" * dice.randrange(9), **life))
                    made.append(put.meta.ref)
                    told.append(put)
                elif made:
                    verb = (store.get_sync, store.head_sync, store.delete_sync)[act - 3]
                    told.append(verb(scope, dice.choice(made)))
                page = store.list_sync(scope, limit=3)
                told += [page, store.list_sync(scope, limit=3, cursor=page.cursor), store.dropped]
        return told

    start = clock.ms
    memory = lives(InMemoryArtifacts(max_count=9, max_bytes=90))
    clock.ms = start
    assert lives(FileArtifacts(path, max_count=9, max_bytes=90)) == memory
