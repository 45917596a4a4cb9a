"""The parts of a rule set: rules, the default, what unreadable values do, ground outside.

They only hold what the author wrote, frozen. Whether it makes sense is checked when a rule set is
built, so that everything wrong with it is said at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from runbook_nb._frozen import Immutable, freeze
from runbook_nb._value import frozen
from runbook_nb.errors import RunbookError

#: A filter ``{key: {operator: threshold, ...}, ...}`` or a function of the facts.
When: TypeAlias = Mapping[str, Mapping[str, Any]] | Callable[..., Any]


def _frozen(value: Any) -> Any:
    try:
        return freeze(value)
    except RunbookError:
        return value  # a value that cannot be kept is refused, with its place, by the rule set


class _Part(Immutable):
    """Never changes, so a copy is the thing itself."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


@frozen(kw_only=False)
class Rule(_Part):
    """One rule: when its conditions hold, the decision takes a branch.

    All keys and operators of a filter must hold together. A key is a flat name first; a dotted
    key that is not a flat name is a path through mappings and, by digits, lists.

    Parameters
    ----------
    when : mapping or callable
        ``{key: {operator: threshold, ...}, ...}``, or a function of the facts whose truth
        decides. Operators: ``eq ne gt gte lt lte in not_in exists missing is_null between
        contains starts_with matches``.
    then : str
        The branch it leads to.
    label : str, optional
        The sentence a reader sees for it.
    unit : str or mapping, optional
        Unit of its numbers, or units by key.

    Examples
    --------
    >>> Rule({"age_days": {"gt": 7}}, then="unprotected", unit="days").then
    'unprotected'
    """

    when: When
    then: str
    label: str | None = None
    unit: str | Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", _frozen(self.when) if self.is_filter else self.when)
        object.__setattr__(self, "unit", _frozen(self.unit))

    @property
    def is_filter(self) -> bool:
        """Whether its conditions are data; else they are a function."""
        return not callable(self.when)

    def unit_of(self, key: str) -> str | None:
        """Give the unit of a key's numbers, if one was declared."""
        if isinstance(self.unit, Mapping):
            return self.unit.get(key)
        return self.unit


@frozen(kw_only=False)
class Default(_Part):
    """The branch taken when no rule is true, with the sentence that explains it.

    Examples
    --------
    >>> Default("protected", label="last backup within 7 days").branch
    'protected'
    """

    branch: str
    label: str | None = None


@frozen(kw_only=False)
class Unreadable(_Part):
    """The branch taken when a rule needs a value that cannot be read.

    Examples
    --------
    >>> Unreadable("idle", label="an empty series means the host is idle").branch
    'idle'
    """

    branch: str
    label: str | None = None


@frozen(kw_only=False)
class Outside(_Part):
    """Ground the rules do not cover: a subject that matches is declined before any rule.

    Parameters
    ----------
    where : mapping
        Conditions, written as in a rule.
    what : str
        What is not covered.
    why : str
        Why not.

    Examples
    --------
    >>> Outside({"os": {"eq": "x"}}, "hosts on x", "the scanner has no data for it").what
    'hosts on x'
    """

    where: Mapping[str, Mapping[str, Any]]
    what: str
    why: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", _frozen(self.where))


#: What an unreadable decision does: a branch, ``"skip"`` (no match), or ``"raise"``.
OnUnreadable: TypeAlias = Unreadable | Literal["skip", "raise"]

#: The default of a rule set: an unreadable signal never reads as fine.
DECLINED = Unreadable("declined", label="a value the rules need could not be read")

#: Branch of subjects that lie outside the rules' ground.
DECLINED_BRANCH = DECLINED.branch
