"""Names under which secrets usually stand, and secrets that text gives away by such a name.

Sharing layer. A name is read by its words, so that ``max_tokens`` or ``token_count`` is none. It
is a help for whoever forgot to name one, never a proof that there is no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from runbook_nb.record.secrets import PLACEHOLDER

#: The last word of such a name.
NOUNS: Final = frozenset(
    {"password", "passwd", "passwort", "pwd", "passphrase", "passcode", "pin", "secret"}
    | {"secrets", "token", "apikey", "credential", "credentials", "authorization", "cookie"}
    | {"connectionstring", "privatekey", "secretkey", "accesskey", "authkey", "pw"}
)
#: The last two words of such a name.
PAIRS: Final = frozenset(
    {("api", "key"), ("private", "key"), ("secret", "key"), ("access", "key"), ("auth", "key")}
    | {("connection", "string"), ("encryption", "key"), ("account", "key"), ("signing", "key")}
)
#: Words behind it that say only how it is written.
_BEHIND: Final = frozenset({"value", "text", "str", "string", "plain", "hash", "base64", "b64"})

_WORDS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

#: Says whether what stands under a name is hidden.
Names = Callable[[str], bool]


@lru_cache(4096)
def looks_secret(name: str) -> bool:
    """Say whether a name is one under which secrets stand.

    Examples
    --------
    >>> [looks_secret(name) for name in ("DB_PASSWORD", "githubToken", "api-key", "auth.token")]
    [True, True, True, True]
    >>> [looks_secret(name) for name in ("max_tokens", "token_count", "key", "password_rules")]
    [False, False, False, False]
    """
    if len(name) > 200:
        return False
    words = [word.lower() for word in _WORDS.findall(name)]
    while (
        words and (words[-1] in _BEHIND or words[-1].isdigit()) and tuple(words[-2:]) not in PAIRS
    ):
        words.pop()
    return bool(words) and (words[-1] in NOUNS or tuple(words[-2:]) in PAIRS)


# -- in text ---------------------------------------------------------------------------------

_QUOTE: Final = r"""\\*(?:\"{3}|'{3}|["'])|&quot;|&\#x27;|&\#39;|&\#34;"""
#: A name, with up to two parts before it.
_NAME: Final = (
    r"(?<![A-Za-z0-9_])(?P<name>(?:[A-Za-z0-9_]{1,40}[.\-]){0,2}[A-Za-z_][A-Za-z0-9_]{0,80})"
)
#: ``password: str = "…"``, ``{"password": "…"}``, ``password='…'``, however it is quoted.
_ASSIGNED: Final = re.compile(
    rf"""
    {_NAME}
    (?P<closed>(?:{_QUOTE})?\]?)
    (?:\s*:\s*[A-Za-z_][\w\[\],.|\ ]{{0,60}}?(?=\s*=))?
    \s*(?P<sign>:=|[!=]?={{1,2}}|:)\s*
    [rbfuRBFU]{{0,2}}
    (?:
        (?P<plain>\"{{3}}|'{{3}}|["'])
        (?P<value>(?:\\.|(?!(?P=plain))[^\\]){{1,4000}}?)
        (?P=plain)
    |
        (?P<quote>{_QUOTE})
        (?P<written>(?:(?!(?P=quote)).){{1,4000}}?)
        (?P=quote)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
#: ``token=…`` of an address, a command or a log.
_BARE: Final = re.compile(rf"{_NAME}=(?P<value>[^\s\"'`,;&<>()\[\]{{}}=\\]{{4,4000}})")
#: ``Authorization: Bearer …``.
_BEARER: Final = re.compile(
    r"\b(?:[Bb]earer|[Bb]asic)\s+(?P<value>[A-Za-z0-9._~+/\-]{8,4000}=*)(?=[\s\"'\\<&,)}\]]|$)"
)
#: ``https://user:…@host``.
_ADDRESS: Final = re.compile(r"://[^\s/:@\"'<>\[\]]{1,80}:(?P<value>[^\s/@\"'<>\[\]]{1,400})@")

NO_SECRET: Final = frozenset({"none", "null", "true", "false", "undefined", "nan", "required"})
_MASK: Final = re.compile(r"[*x•.…\-]+")


def given_away(text: str, named: Names, *, code: bool = False) -> Iterator[tuple[int, int]]:
    """Yield where values stand that a name beside them makes secrets.

    Parameters
    ----------
    text : str
    named : callable
        Says whether a name is that of a secret.
    code : bool
        Whether it is Python, where a bare name before a colon has a type behind it.

    Examples
    --------
    >>> text = "login(user='ann', password='hunter-2')"
    >>> [text[start:end] for start, end in given_away(text, looks_secret)]
    ['hunter-2']
    """
    lowered = text.lower()
    if "bearer" in lowered or "basic" in lowered:
        yield from (found.span("value") for found in _BEARER.finditer(text))
    if "://" in text:
        for found in _ADDRESS.finditer(text):
            if is_open(found["value"]):
                yield found.span("value")
    if "=" not in text and ":" not in text:
        return
    at = 0
    while (assigned := _ASSIGNED.search(text, at)) is not None:
        typed = code and assigned["sign"] == ":" and not assigned["closed"]
        part = "written" if assigned["value"] is None else "value"
        if named(assigned["name"]) and not typed and is_open(assigned[part]):
            yield assigned.span(part)
            at = assigned.end()
        else:  # the value may itself hold a name with its value
            at = assigned.start(part)
    if not code and "=" in text:
        for found in _BARE.finditer(text):
            if named(found["name"]) and is_open(found["value"]):
                yield found.span("value")


def is_open(value: str) -> bool:
    """Say whether a text is one to be hidden: not empty, hidden already, or no secret at all."""
    return bool(
        value.strip()
        and PLACEHOLDER not in value
        and value.lower() not in NO_SECRET
        and not _MASK.fullmatch(value)
    )
