"""Secret texts: finding them wherever they reappear, also escaped, also cut off.

Record layer. Looking for many secrets costs no more per character than looking for a few: they
are found by their first characters. What stands between two overlapping finds is hidden with
them, so that no order of secrets can leave a piece of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from runbook_nb._text import visible
from runbook_nb.rules.wording import REDACTED

#: What stands for a scrubbed value, in every view.
PLACEHOLDER: Final = REDACTED

#: Secret texts of at least this many characters are scrubbed wherever they reappear. Shorter
#: ones would blot out ordinary words.
MIN_SECRET: Final = 6

#: Up to this many secrets are looked for one by one.
FEW: Final = 16

#: What stands where a text was cut.
_CUTS: Final = ("…", "...")


class Secrets:
    """A set of secret texts, made ready for looking.

    Examples
    --------
    >>> secrets = Secrets(["hunter-2"])
    >>> secrets.hide("login with hunter-2 failed"), secrets.hide("login with hunter…")
    ('login with [REDACTED] failed', 'login with [REDACTED]…')
    """

    __slots__ = ("_bytes", "_heads", "_long", "_longest", "_short", "_texts", "any")

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts)
        forms = {form for text in self._texts for form in _forms(text)}
        self._long = sorted(form for form in forms if len(form) >= MIN_SECRET)
        self._longest = max(map(len, self._long), default=0)
        self._short = sorted(form for form in forms if len(form) < MIN_SECRET)
        self._heads: dict[str, list[str]] = {}
        for form in self._long:
            self._heads.setdefault(form[:MIN_SECRET], []).append(form)
        self._bytes = [form.encode("utf-8", "surrogatepass") for form in self._long]
        #: Whether there is any text to look for.
        self.any = bool(self._long or self._short)

    def __bool__(self) -> bool:
        return self.any

    def __len__(self) -> int:
        return len(self._texts)

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    @property
    def texts(self) -> frozenset[str]:
        """The texts themselves."""
        return self._texts

    def with_more(self, texts: Iterable[str]) -> Secrets:
        """Give these and more."""
        return Secrets(self._texts | frozenset(texts))

    def hide(self, text: str) -> str:
        """Put the placeholder where secrets stand in a text."""
        out, end = [], 0
        for start, stop in self._places(text):
            out += [text[end:start], PLACEHOLDER]
            end = stop
        if not out:
            return text
        out.append(text[end:])
        return "".join(out)

    def count(self, text: str) -> int:
        """Say in how many places of a text secrets stand.

        Examples
        --------
        >>> Secrets(["hunter-2"]).count("hunter-2, again hunter-2")
        2
        """
        return len(self._places(text))

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Give where secrets stand; those that overlap are one place."""
        places: list[tuple[int, int]] = []
        found = list(self._found(text))
        for start, stop in sorted(found) if len(found) > 1 else found:
            if places and start < places[-1][1]:
                places[-1] = places[-1][0], max(places[-1][1], stop)
            else:
                places.append((start, stop))
        return places

    def are_in_bytes(self, data: bytes) -> bool:
        """Say whether any of them stands in some bytes."""
        return any(secret in data for secret in self._bytes)

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        few = len(self._long) <= FEW
        for secret in (*self._short, *self._long) if few else self._short:
            at = text.find(secret)
            while at >= 0:
                yield at, at + len(secret)
                at = text.find(secret, at + 1)
        if not few:
            heads = self._heads
            for at in range(len(text) - MIN_SECRET + 1):
                for secret in heads.get(text[at : at + MIN_SECRET], ()):
                    if text.startswith(secret, at):
                        yield at, at + len(secret)
        for mark in _CUTS:
            at = text.find(mark)
            while at >= 0:
                yield from self._cut_off(text, at)
                at = text.find(mark, at + 1)

    def _cut_off(self, text: str, end: int) -> Iterator[tuple[int, int]]:
        """Find secrets of which only the beginning is left, where a text was cut short.

        That need not be its end: a message that was cut may stand in a longer sentence.
        """
        for at in range(max(end - self._longest, 0), end - MIN_SECRET + 1):
            rest = text[at:end]
            if any(form.startswith(rest) for form in self._heads.get(rest[:MIN_SECRET], ())):
                yield at, end
                return


def _forms(text: str) -> Iterator[str]:
    """Give a secret as it may reappear: as it is, without its margins, escaped."""
    for form in {text, text.strip()} if len(text.strip()) >= MIN_SECRET else {text}:
        for spelt in (
            form,
            visible(form),
            repr(form)[1:-1],
            json.dumps(form)[1:-1],
            json.dumps(form, ensure_ascii=False)[1:-1],
        ):
            if spelt and spelt not in PLACEHOLDER:
                yield spelt
