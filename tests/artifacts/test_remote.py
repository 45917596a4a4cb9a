"""The store wherever fsspec reaches: the same files, without a lock, and with errors of its own."""

import builtins
import os
import pickle
import sys

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from runbook_nb.artifacts import ArtifactScope, FileArtifacts, RemoteArtifacts, layout
from runbook_nb.errors import ArtifactError, DefinitionError

HERE = ArtifactScope("c1", "t", "p")


def note(data="x", **more):
    return {"kind": "k", "mediaType": "m", "data": data, **more}


def filed(store, data="x", **more):
    return store.put_sync(HERE, note(data, **more)).meta.ref


def refs(store):
    return {ticket.ref for ticket in store.list_sync(HERE, limit=10_000).artifacts}


class Bucket(MemoryFileSystem):
    """Behaves like an object store: keys and no folders, no renaming, and a listing it keeps."""

    protocol = "bucket"
    store = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    cachable = False
    asked = None
    listings = None

    def ls(self, path, detail=True, **more):
        if self.listings is None:
            self.listings = {}
        if path not in self.listings:
            self.listings[path] = super().ls(path, detail=detail, **more)
        return self.listings[path]

    def invalidate_cache(self, path=None):
        self.listings = {}

    def mv(self, *args, **more):
        raise AssertionError("an object store copies and deletes")

    def rmdir(self, path):
        raise AssertionError("on an object store this would remove the bucket")

    def makedirs(self, path, exist_ok=False):
        raise AssertionError("there are no folders")


@pytest.fixture
def bucket():
    Bucket.store.clear()
    return Bucket()


def test_a_url_and_a_file_system_with_a_path_are_the_same_place():
    store = RemoteArtifacts("memory://same/walks")
    ref = filed(store, {"é": [1]})
    other = RemoteArtifacts(fsspec.filesystem("memory"), "same/walks")
    assert other.get_sync(HERE, ref).data == '{"é":[1]}'
    assert other.url == store.url == "memory:///same/walks"
    assert RemoteArtifacts(store.url).head_sync(HERE, ref) == store.head_sync(HERE, ref)
    again = pickle.loads(pickle.dumps(RemoteArtifacts("memory://same/walks", max_count=3)))  # noqa: S301
    assert again.head_sync(HERE, ref) == store.head_sync(HERE, ref)
    assert again.retention.max_count == 3


def test_the_files_are_those_of_a_folder(tmp_path):
    store = RemoteArtifacts(f"file://{tmp_path}/walks")
    ref = filed(store, "words " * 900)
    local = FileArtifacts(tmp_path / "walks")
    assert local.get_sync(HERE, ref).data == "words " * 900
    other = filed(local, "back")
    assert store.get_sync(HERE, other).data == "back"
    assert local.faults() == store.faults() == ()


def test_keys_are_all_it_wants_of_an_object_store(bucket):
    store = RemoteArtifacts(bucket, "ops/walks", max_count=2)
    a, b = filed(store, "a"), filed(store, "b")
    other = RemoteArtifacts(bucket, "ops/walks", max_count=2)
    assert refs(other) == {a, b}
    other.head_sync(HERE, a)
    assert store.put_sync(HERE, note("c")).swept[0].ref == b
    for ref in refs(store):
        assert other.delete_sync(HERE, ref)
    assert [key.rpartition("/")[2] for key in Bucket.store] == ["runbook_nb.json"]


def test_what_another_process_filed_is_listed_although_the_listing_is_kept(bucket):
    store = RemoteArtifacts(bucket, "ops/walks")
    filed(store, "a")
    refs(store)
    beside = Bucket()  # has no listing to forget in the first one
    ref = filed(RemoteArtifacts(beside, "ops/walks"), "b")
    assert ref in refs(store)


def test_a_put_is_cut_short_between_any_two_files_and_nothing_is_seen_of_it(bucket):
    store = RemoteArtifacts(bucket, "ops/walks")
    kept = filed(store, "kept")
    written, stop = [], [0]
    writing = bucket.pipe_file

    def cut(path, value, **more):
        written.append(path)
        if len(written) == stop[0]:
            raise KeyboardInterrupt
        writing(path, value, **more)

    bucket.pipe_file = cut
    for stop[0] in (1, 2, 3):
        written.clear()
        with pytest.raises(KeyboardInterrupt):
            filed(store, "lost")
        other = RemoteArtifacts(Bucket(), "ops/walks")
        assert refs(other) == {kept}
        assert other.faults() == ()
    assert written[-1].endswith(".json")  # the ticket is last


def test_in_a_folder_a_file_has_its_name_when_it_is_whole(tmp_path):
    seen = []

    class Watched(LocalFileSystem):
        cachable = False

        def pipe_file(self, path, value, **more):
            seen.append(("write", path))
            return super().pipe_file(path, value, **more)

        def mv(self, path1, path2, **more):
            seen.append(("name", path2))
            return super().mv(path1, path2, **more)

    store = RemoteArtifacts(Watched(), str(tmp_path / "walks"))
    filed(store, "words")
    written = [path for act, path in seen if act == "write"]
    assert written
    assert all("/drafts/" in path for path in written)
    named = {path.rpartition("/")[2] for act, path in seen if act == "name"}
    assert {"runbook_nb.json", "uses"} < named
    assert not named & {path.rpartition("/")[2] for path in written}


def test_what_was_left_behind_is_tidied_away(tmp_path):
    store = RemoteArtifacts(f"file://{tmp_path}/walks")
    ref, gone = filed(store, "kept"), filed(store, "gone")
    next(tmp_path.glob(f"walks/scopes/*/{gone}.json")).unlink()
    (tmp_path / "walks" / "drafts" / "left").write_bytes(b"half")
    assert store.tidy() == 2
    assert store.tidy() == 0
    assert store.get_sync(HERE, ref).data == "kept"
    assert list(tmp_path.glob("walks/drafts/*")) == []


def test_what_was_damaged_is_told_and_hides_no_other(bucket):
    store = RemoteArtifacts(bucket, "ops/walks")
    bad, good = filed(store, "bad"), filed(store, "good")
    key = f"/ops/walks/{layout.ticket_path(layout.key_of(HERE), bad)}"
    bucket.pipe_file(key, bucket.cat_file(key)[:-5])
    other = RemoteArtifacts(Bucket(), "ops/walks")
    with pytest.raises(ArtifactError) as caught:
        other.get_sync(HERE, bad)
    assert caught.value.code == "integrity"
    assert refs(other) == {good}
    assert "1 ticket cannot be read" in str(other)
    assert other.delete_sync(HERE, bad)
    assert other.faults() == ()
    assert not any(bad in key for key in Bucket.store if "payloads" in key)


def test_a_place_of_other_files_and_one_of_another_form_are_refused(bucket):
    bucket.pipe_file("/ops/thesis/words.txt", b"mine")
    with pytest.raises(ArtifactError) as caught:
        RemoteArtifacts(bucket, "ops/thesis")
    assert caught.value.code == "not_a_store"
    assert list(Bucket.store) == ["/ops/thesis/words.txt"]
    bucket.pipe_file("/ops/next/runbook_nb.json", b'{"format":"runbook_nb/artifacts/2"}')
    with pytest.raises(ArtifactError, match="artifacts/2") as caught:
        RemoteArtifacts(bucket, "ops/next")
    assert caught.value.code == "not_a_store"


class Refusing(Bucket):
    broken = False

    def cat_file(self, path, **more):
        if self.broken:
            raise RuntimeError("AWSAccessKeyId=AKIA-s3cret: slow down")
        return super().cat_file(path, **more)

    def cat(self, path, **more):
        if self.broken:
            return {one: PermissionError(13, "Permission denied") for one in path}
        return super().cat(path, **more)


def test_what_a_place_says_is_an_error_of_this_package_and_tells_no_secret(bucket):
    system = Refusing()
    ref = filed(RemoteArtifacts(system, "ops/walks"))
    store = RemoteArtifacts(system, "ops/walks")
    system.broken = True
    with pytest.raises(ArtifactError) as caught:
        store.get_sync(HERE, ref)
    assert caught.value.code == "store_unavailable"
    assert "s3cret" not in str(caught.value)
    assert "RuntimeError" in str(caught.value)
    with pytest.raises(ArtifactError, match="Permission denied"):
        store.list_sync(HERE)


def test_what_lets_one_in_is_not_shown():
    store = RemoteArtifacts("memory://shown/walks", options={"password": "t0p-s3cret"})
    filed(store)
    assert "s3cret" not in repr(store) + str(store) + store.to_markdown() + store.url


@pytest.mark.parametrize("wrong", [None, 5, "", "walks", "/srv/walks", b"s3://b/w", "C:\\walks"])
def test_what_is_no_url_is_refused(wrong):
    with pytest.raises(DefinitionError, match="s3://bucket/folder"):
        RemoteArtifacts(wrong)


@pytest.mark.parametrize("wrong", ["memory://", "file:///"])
def test_a_whole_file_system_is_no_place(wrong):
    with pytest.raises(DefinitionError, match="whole file system"):
        RemoteArtifacts(wrong)
    with pytest.raises(DefinitionError, match="alone"):
        RemoteArtifacts(fsspec.filesystem("memory"))


def test_a_protocol_nobody_knows_is_said():
    with pytest.raises(DefinitionError, match="nowhere"):
        RemoteArtifacts("nowhere://bucket/walks")


def test_a_place_that_cannot_be_reached_at_once_is_said_and_tells_no_secret(monkeypatch):
    def refused(url, **options):
        raise ConnectionRefusedError(111, "Connection refused", url)

    monkeypatch.setattr("fsspec.core.url_to_fs", refused)
    with pytest.raises(ArtifactError, match="'ftp' cannot be used: Connection refused") as caught:
        RemoteArtifacts("ftp://ops:s3cr3t@walks.example/w?sig=s3cr3t")
    assert caught.value.code == "store_unavailable"
    assert "s3cr3t" not in f"{caught.value} {caught.value.where}"


def test_without_fsspec_the_line_that_installs_it_is_said(monkeypatch):
    importing = builtins.__import__

    def without(name, *args, **more):
        if name.partition(".")[0] == "fsspec":
            raise ImportError(name)
        return importing(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DefinitionError, match=r"runbook-nb\[remote\]") as caught:
        RemoteArtifacts("memory://x/y")
    assert caught.value.code == "missing_extra"


def test_stores_in_files_are_imported_without_fsspec():
    import subprocess

    program = (
        "import sys, runbook_nb as rb\n"
        "rb.FileArtifacts, rb.RemoteArtifacts\n"
        "print(sorted({'fsspec', 'sqlite3'} & set(sys.modules)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, env=os.environ
    )
    assert said.stdout == "[]\n"
