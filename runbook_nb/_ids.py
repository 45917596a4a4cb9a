"""Identifiers: random by default, seeded for tests and documents, or derived from content.

Base layer. Nothing here is drawn from an object's address or from the time of day.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from typing import Final

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: The character of each byte, and the bytes past the last whole multiple of 62, which would favour
#: the first characters.
_SPELT: Final = "".join(BASE62[byte % 62] for byte in range(256)).encode("ascii")
_UNFAIR: Final = bytes(range(248, 256))

#: Bytes that are asked of the system at once: what asks it waits for its turn among the threads.
_DRAW: Final = 1024

#: Gives ``n`` characters of ``[A-Za-z0-9]``.
IdSource = Callable[[int], str]


class _Drawn:
    """Characters drawn from the system's source of randomness, each given out once."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Begin anew: what a forked child would give out is its parent's."""
        self._lock = threading.Lock()
        self._text = ""

    def take(self, length: int) -> str:
        with self._lock:
            text = self._text
            while len(text) < length:
                text += os.urandom(_DRAW).translate(_SPELT, _UNFAIR).decode("ascii")
            self._text = text[length:]
            return text[:length]


_drawn: Final = _Drawn()


def random_id(length: int) -> str:
    """Draw ``length`` characters from the system's source of randomness.

    Examples
    --------
    >>> len(random_id(22))
    22
    """
    return _drawn.take(length)


class SeededIds:
    """An id source that gives the same ids in the same order for the same seed.

    Examples
    --------
    >>> SeededIds("demo")(6) == SeededIds("demo")(6)
    True
    """

    def __init__(self, seed: str | int) -> None:
        self._seed = str(seed)
        self._drawn = 0

    def __call__(self, length: int) -> str:
        """Give the next ``length`` characters."""
        text = ""
        while len(text) < length:
            digest = hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).digest()
            self._drawn += 1
            text += "".join(BASE62[byte % 62] for byte in digest)
        return text[:length]


def content_id(text: str, length: int = 8) -> str:
    """Derive a short hexadecimal id from content, for ids that must not change between runs.

    Examples
    --------
    >>> content_id("cluster-a")
    '34ab3e1c'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def digest(text: str) -> str:
    """Give the ``sha-256:`` digest of a text's UTF-8 bytes."""
    return "sha-256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
