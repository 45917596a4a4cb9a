"""Hidden texts, found in whatever way a notebook spells them.

Sharing layer. An output is text that was written into HTML, JSON, an address or a coloured
traceback, and often into one inside another. So each character of a hidden text is looked for as
it is, as an entity, percent-encoded and behind backslashes, and colours or tags may stand between
two of them. Letters and digits of ASCII, which no writer escapes, are looked for as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html.entities import html5
from typing import Final

from runbook_nb.record.secrets import PLACEHOLDER, Secrets

#: What may stand between two characters without being text: a colour, a tag.
_GAP: Final = r"(?:\x1b\[[0-9;]*m|<[^<>]{0,300}>)"
_GAPS: Final = re.compile(_GAP)
#: A backslash, however it is written itself.
_BACKSLASH: Final = r"(?:\\|&(?:amp;)*#0*92;|&(?:amp;)*#[xX]0*5[cC];|%(?:25)*5[cC])"
_NAMED_CONTROL: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}

#: Rounds after which a text that still holds something is hidden whole.
_ROUNDS: Final = 8


class Spellings:
    r"""Texts that must not be seen, ready to be looked for in every spelling.

    Parameters
    ----------
    texts : iterable of str
        One that is a piece of the placeholder cannot be told from it, and is not looked for; see
        `unsought`.

    Examples
    --------
    >>> hidden = Spellings(['pa"ss-wö'])
    >>> for text in ['pa"ss-wö', 'pa&quot;ss-w&#246;', r'pa\"ss-w\u00f6', 'pa%22ss-w%C3%B6']:
    ...     print(hidden.hide(text))
    ('[REDACTED]', 1)
    ('[REDACTED]', 1)
    ('[REDACTED]', 1)
    ('[REDACTED]', 1)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        given = frozenset(texts)
        self.unsought = frozenset(text for text in given if text in PLACEHOLDER)
        self.texts = given - self.unsought
        self._secrets = Secrets(self.texts)
        self._sought = [_Sought(text) for text in sorted(self.texts)]

    def __bool__(self) -> bool:
        return bool(self.texts)

    def with_more(self, texts: Iterable[str]) -> Spellings:
        """Give these and more."""
        more = frozenset(texts)
        known = self.texts | self.unsought
        return self if more <= known else Spellings(known | more)

    def hide(self, text: str) -> tuple[str, int]:
        """Put the placeholder where hidden texts stand; say in how many places.

        What stands there afterwards holds none of them, also none that came about by hiding.
        """
        times = 0
        for _ in range(_ROUNDS):
            made, found = self._once(text)
            if not found:
                return text, times
            text, times = made, times + found
        return PLACEHOLDER, times

    def are_in(self, data: bytes) -> bool:
        """Say whether any of them stands in some bytes as it is."""
        return any(text.encode("utf-8", "surrogatepass") in data for text in self.texts)

    def _once(self, text: str) -> tuple[str, int]:
        gaps = "\x1b" in text or "<" in text
        bare = _GAPS.sub("", text) if gaps else text
        spans: list[tuple[int, int]] = []
        for one in self._sought:
            # Within a tag it stands in an attribute, or an address.
            if one.run in bare or (gaps and one.run in text):
                spans += one.places(text, gaps)
        out: list[str] = []
        end = found = 0
        for start, stop in _merged(spans):
            gone = _GAPS.findall(text[start:stop]) if gaps else ()
            out += (text[end:start], PLACEHOLDER, *gone)
            end, found = stop, found + 1
        text = "".join((*out, text[end:])) if out else text
        # What was cut short is known by the law for that.
        cut = self._secrets.hide(text)
        return cut, found + (cut != text)


class _Sought:
    """One text, with the patterns that find it."""

    __slots__ = ("_patterns", "_text", "run")

    def __init__(self, text: str) -> None:
        self._text = text
        #: Stands in every spelling of it.
        self.run = max(re.findall(r"[A-Za-z0-9]+", text) or [""], key=len)
        self._patterns: dict[bool, re.Pattern[str]] = {}

    def places(self, text: str, gaps: bool) -> Iterator[tuple[int, int]]:
        if not gaps and self.run == self._text:
            at = text.find(self._text)
            while at >= 0:
                yield at, at + len(self._text)
                at = text.find(self._text, at + 1)
            return
        found = self._pattern(gaps).search(text)
        while found is not None:
            yield found.span()
            found = self._pattern(gaps).search(text, found.start() + 1)

    def _pattern(self, gaps: bool) -> re.Pattern[str]:
        if gaps not in self._patterns:
            between = f"{_GAP}*" if gaps else ""
            self._patterns[gaps] = re.compile(between.join(_spelt(self._text)))
        return self._patterns[gaps]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    return merged


def _spelt(text: str) -> Iterator[str]:
    """Yield a pattern for each character; of backslashes in a row one stands for all."""
    for piece in re.findall(r"\\+|[\s\S]", text):
        if piece[0] == "\\":
            yield f"{_BACKSLASH}+"
        elif piece.isascii() and piece.isalnum():
            yield piece
        else:
            yield f"(?:{_BACKSLASH}*(?:{'|'.join(_forms(piece))}))"


def _forms(char: str) -> Iterator[str]:
    point = ord(char)
    yield re.escape(char)
    if char == "&":
        yield "&(?:amp;)+"
    names = "|".join(sorted(re.escape(name) for name in _NAMES.get(char, ())))
    numbers = f"#0*{point}|#[xX]0*{_any_case(f'{point:x}')}"
    yield f"&(?:amp;)*(?:{names}|{numbers});" if names else f"&(?:amp;)*(?:{numbers});"
    yield "".join(f"%(?:25)*{_any_case(f'{byte:02x}')}" for byte in _utf8(char))
    if char == " ":
        yield r"\+"
    if char in _NAMED_CONTROL:
        yield f"{_BACKSLASH}{_NAMED_CONTROL[char]}"
    if point < 0x100:
        yield f"{_BACKSLASH}x{_any_case(f'{point:02x}')}"
    if point < 0x10000:
        yield f"{_BACKSLASH}u{_any_case(f'{point:04x}')}"
    else:
        high, low = 0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF)
        yield "".join(f"{_BACKSLASH}+u{_any_case(f'{half:04x}')}" for half in (high, low))
        yield f"{_BACKSLASH}U{_any_case(f'{point:08x}')}"


def _utf8(char: str) -> bytes:
    return char.encode("utf-8", "surrogatepass")


def _any_case(digits: str) -> str:
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits)


#: Character -> its names in HTML.
_NAMES: Final[dict[str, list[str]]] = {}
for _name, _char in html5.items():
    if _name.endswith(";") and len(_char) == 1:
        _NAMES.setdefault(_char, []).append(_name[:-1])
