"""Pictures without the words that programs put beside the pixels.

Sharing layer. A PNG may say in blocks of its own which program drew it, when, and anything else;
none of them changes what is seen. Pixels are not looked into.
"""

from __future__ import annotations

import zlib
from typing import Final

_SIGN: Final = b"\x89PNG\r\n\x1a\n"
#: Blocks of words, of a camera and of the time.
_WORDS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"tIME"})


def without_words(data: bytes) -> tuple[bytes, int] | None:
    r"""Give a PNG without its blocks of words, and how many there were.

    Returns
    -------
    tuple of bytes and int, or None
        None where it is no PNG, or a damaged one.

    Examples
    --------
    >>> without_words(b"GIF89a") is None
    True
    """
    if not data.startswith(_SIGN):
        return None
    kept, at, gone = [_SIGN], len(_SIGN), 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        block = data[at : at + 12 + size]
        if len(block) != 12 + size or zlib.crc32(block[4:-4]) != int.from_bytes(block[-4:]):
            return None
        if block[4:8] in _WORDS:
            gone += 1
        else:
            kept.append(block)
        at += len(block)
        if block[4:8] == b"IEND":
            # What stands behind the end is no part of the picture.
            return b"".join(kept), gone + (at < len(data))
    return None
