"""What a version stands for while a process runs: the content that judged first under it.

Rules layer. Every answer asks here, so nothing here knows of files.
"""

from __future__ import annotations

import re
from typing import Final

from runbook_nb.rules.ruleset import RuleSet

_LAST_NUMBER: Final = r"(\d+)(?!.*\d)"

#: By name and version, the digest of the content that judged first under it in this process.
_judged: dict[tuple[str, str], str] = {}

#: So many versions are remembered.
MOST_VERSIONS: Final = 1000


def judged_otherwise(rules: RuleSet) -> bool:
    """Say whether other content judged under this name and version first, in this process.

    What judged first stays the version's content, so that whoever judges by one content twice
    hears the same.

    Examples
    --------
    >>> from runbook_nb.rules.model import Rule
    >>> old, new = (RuleSet("docs", "1", [Rule({"a": {"gt": n}}, "x")]) for n in (7, 14))
    >>> [judged_otherwise(one) for one in (old, new, old, new)]
    [False, True, False, True]
    """
    if rules.is_bare:
        return False
    key = rules.name, rules.version
    if key not in _judged and len(_judged) >= MOST_VERSIONS:
        return False
    return _judged.setdefault(key, rules.digest) != rules.digest


def forget_judged() -> None:
    """Begin a session anew, in which nothing has judged yet."""
    _judged.clear()


def next_version(version: str) -> str:
    """Propose the version after one: its last number is counted up.

    Examples
    --------
    >>> next_version("v3"), next_version("2026.09"), next_version("first")
    ('v4', '2026.10', 'first-2')
    """
    found = re.search(_LAST_NUMBER, version)
    if found is None:
        return f"{version}-2"
    digits = found[1]
    counted = str(int(digits) + 1).zfill(len(digits))
    return version[: found.start()] + counted + version[found.end() :]
