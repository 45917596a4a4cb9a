"""A PNG loses its words and nothing that is seen."""

import struct
import zlib

from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.share.pictures import without_words


def block(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


SIGN = b"\x89PNG\r\n\x1a\n"
HEAD = block(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
PIXELS = block(b"IDAT", zlib.compress(b"\0\0"))
END = block(b"IEND")


def test_words_time_and_camera_go_and_all_else_stays():
    words = block(b"tEXt", b"Author\0ann") + block(b"tIME", b"1234567") + block(b"eXIf", b"x")
    assert without_words(SIGN + HEAD + words + PIXELS + END) == (SIGN + HEAD + PIXELS + END, 3)


def test_what_stands_behind_the_end_goes():
    assert without_words(SIGN + HEAD + PIXELS + END + b"ann") == (SIGN + HEAD + PIXELS + END, 1)


def test_a_picture_without_words_stays_as_it_is():
    whole = SIGN + HEAD + PIXELS + END
    assert without_words(whole) == (whole, 0)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_what_is_damaged_or_none_is_left_to_be_said(data, cut):
    whole = SIGN + HEAD + PIXELS + END
    assert without_words(data) is None
    assert without_words(whole[: min(cut, len(whole) - 1)]) is None
    assert without_words(SIGN + data) is None
