"""What is packed, what is kept as it is, and that either comes back as it was."""

import random
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.artifacts import packing as module
from runbook_nb.artifacts.packing import pack, unpack
from runbook_nb.errors import ArtifactError

PLAIN, DEFLATED = 0, 1
TEXTS = {
    "ascii": "seen at 03:10, and again at 03:40. " * 90,
    "cyrillic": "".join(random.Random(1).choices("абвгдежзик ", k=3000)),
}
BYTES = {
    "ramp of numbers": b"".join(n.to_bytes(4, "little") for n in range(9000)),
    "zeros": bytes(5000),
    "few values": bytes(random.Random(2).choices(range(0, 250, 17), k=5000)),
}


@given(st.binary(max_size=3000) | st.text(max_size=2000).map(str.encode), st.integers(1, 40))
def test_what_was_packed_comes_back(payload, times):
    whole = payload * times
    packing, body = pack(whole)
    assert unpack(len(whole), packing, body) == whole
    assert packing == DEFLATED or body == whole


@pytest.mark.parametrize("name", TEXTS)
def test_texts_get_smaller(name):
    payload = TEXTS[name].encode()
    packing, body = pack(payload)
    assert packing == DEFLATED
    assert len(body) < 0.8 * len(payload)


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_repeat_get_smaller(name):
    packing, body = pack(BYTES[name])
    assert packing == DEFLATED
    assert len(body) < 0.7 * len(BYTES[name])


@pytest.mark.parametrize("size", [1, 40, 128, 1024, 40_000])
def test_noise_is_kept_as_it_is_and_nothing_is_tried_on_it(size, monkeypatch):
    tried = []
    monkeypatch.setattr(module, "_deflated", lambda payload: tried.append(payload) or payload)
    for seed in range(50):
        payload = random.Random(seed).randbytes(size)
        assert pack(payload) == (PLAIN, payload)
    assert size < 128 or not tried


def test_a_payload_packed_behind_another_is_read_without_it():
    texts = [("shared words " * 300 + str(n)).encode() for n in range(5)]
    bodies = [pack(text) for text in texts]
    for text, (packing, body) in reversed(list(zip(texts, bodies, strict=True))):
        assert unpack(len(text), packing, body) == text
    assert pack(texts[0]) == pack(texts[0])


def test_threads_pack_side_by_side():
    start = threading.Barrier(6)

    def work(worker):
        start.wait()
        texts = [f"{worker}/{n} ".encode() * 400 for n in range(60)]
        return all(unpack(len(text), *pack(text)) == text for text in texts)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


def test_what_failed_half_way_leaves_nothing_behind(monkeypatch):
    class Failing:
        def compress(self, payload):
            return b""

        def flush(self, mode):
            raise MemoryError

    text = b"words " * 900
    with monkeypatch.context() as patch:
        packer = module._Packer()
        patch.setattr(zlib, "compressobj", lambda *how: Failing())
        with pytest.raises(MemoryError):
            packer.deflated(text)
    assert unpack(len(text), DEFLATED, packer.deflated(text)) == text


@pytest.mark.parametrize(
    ("size", "packing", "body"),
    [
        (10, DEFLATED, zlib.compress(b"words " * 900)),
        (10, DEFLATED, pack(b"words " * 900)[1]),
        (5400, DEFLATED, pack(b"words " * 900)[1][:-9]),
        (5401, DEFLATED, pack(b"words " * 900)[1]),
        (5400, 7, pack(b"words " * 900)[1]),
        (5400, DEFLATED, None),
        (5400, None, None),
    ],
)
def test_what_is_not_what_was_packed_is_an_integrity_error(size, packing, body):
    with pytest.raises(ArtifactError) as caught:
        unpack(size, packing, body)
    assert caught.value.code == "integrity"
