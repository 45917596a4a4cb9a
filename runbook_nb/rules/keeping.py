"""Keeping a changed rule set: under a new version, since a version says what judged.

Two contents under one name and version cannot be told apart in any answer they stamped, so the
second is refused wherever both are met.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from runbook_nb._files import write_whole
from runbook_nb._text import visible
from runbook_nb.errors import LoadError, RuleError
from runbook_nb.rules.changes import differing, rule_changes
from runbook_nb.rules.ruleset import RuleSet
from runbook_nb.rules.versions import next_version

#: What a file holds is looked at and replaced by one thread of a process at a time.
_SAVING: Final = threading.Lock()

#: The endings a rule set is written under, with how.
_FORMS: Final = {".yaml": "to_yaml", ".yml": "to_yaml", ".json": "to_json"}


def versioned(rules: RuleSet, version: str) -> RuleSet:
    """Give the same rules under another version.

    Examples
    --------
    >>> from runbook_nb.rules.model import Rule
    >>> versioned(RuleSet("r", "v1", [Rule({"a": {"eq": 1}}, "x")]), "v2").title
    'r v2'
    """
    parts = (rules.rules, rules.default, rules.unreadable, rules.outside)
    return RuleSet(rules.name, version, *parts)


def has_other_content(rules: RuleSet, other: RuleSet) -> bool:
    """Say whether two sets have one name and version, and not the same content.

    Examples
    --------
    >>> from runbook_nb.rules.model import Rule
    >>> old, new = (RuleSet("r", "1", [Rule({"a": {"gt": n}}, "x")]) for n in (7, 14))
    >>> has_other_content(old, new), has_other_content(old, old)
    (True, False)
    """
    alike = (rules.name, rules.version) == (other.name, other.version)
    return alike and not rules.is_bare and rules != other


def check_version(rules: RuleSet, earlier: Iterable[RuleSet]) -> RuleSet:
    """Give a set that may be kept beside earlier ones.

    Raises
    ------
    RuleError
        ``same_version``: one of them has its name and version, and other content.

    Examples
    --------
    >>> from runbook_nb.rules.model import Rule
    >>> old, new = (RuleSet("r", "v1", [Rule({"a": {"gt": n}}, "x")]) for n in (7, 14))
    >>> check_version(new, [old])
    Traceback (most recent call last):
      ...
    runbook_nb.errors.RuleError: r v1 is already the version of other content: rule 1 limit raised,
    7 -> 14; keep the change under another version, 'v2'
    """
    for one in earlier:
        if has_other_content(rules, one):
            said = "; ".join(c.words for c in differing(rule_changes(one, rules))[:3])
            raise RuleError(
                f"{visible(rules.title)} is already the version of other content: "
                f"{said or 'it is written otherwise'}",
                where="version",
                code="same_version",
                fix=f"keep the change under another version, {next_version(rules.version)!r}",
            )
    return rules


def _named(rules: RuleSet) -> str:
    return "rules without a name" if rules.is_bare else f"the rules {visible(rules.title)}"


def save(rules: RuleSet, path: str | os.PathLike[str]) -> Path:
    """Write a rule set to a ``.yaml``, ``.yml`` or ``.json`` file, whole or not at all.

    Raises
    ------
    LoadError
        The ending is another, or the file that is there holds no rule set.
    RuleError
        ``same_version``: the file holds other content under this name and version;
        ``other_rules``: it holds a set of another name; or a rule is a function, which no file can
        hold.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from runbook_nb.rules.model import Rule
    >>> rules = RuleSet("r", "v1", [Rule({"a": {"gt": 7}}, "x")])
    >>> with TemporaryDirectory() as folder:
    ...     RuleSet.load(save(rules, f"{folder}/rules.yaml")) == rules
    True
    """
    target = Path(path)
    form = _FORMS.get(target.suffix.lower())
    if form is None:
        raise LoadError(
            f"a rule set is not written as {target.suffix or 'a file without an ending'!r}",
            where=str(target),
            fix="name it .yaml or .json",
        )
    text = str(getattr(rules, form)())
    with _SAVING:
        if target.exists():
            held = RuleSet.load(target)
            if held.name != rules.name:
                raise RuleError(
                    f"{visible(target.name)} holds {_named(held)}, not {_named(rules)}",
                    where=str(target),
                    code="other_rules",
                    fix="save to another file, or take away the one that is there",
                )
            check_version(rules, [held])
        return write_whole(target, text)
