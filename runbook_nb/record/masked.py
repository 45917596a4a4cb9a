"""What was hidden before a recording was read: texts that stand for it, and who shows them.

Record layer. Whoever recorded a run under a policy wrote one word in the place of everything the
policy hid. Two such words say nothing about whether the same was hidden twice. So each is kept as
a text that is equal to no other of its kind: a stage that wrote a hidden value over a hidden one
has changed it, as far as anybody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, FrozenList
from runbook_nb.record.columns import Column, fan_columns, root_columns
from runbook_nb.record.log import FanOut, Log, Track
from runbook_nb.record.redact import PLACEHOLDER, Redactor


class Masked(str):
    """A text with something hidden in it; it is the same as no other of its kind.

    Examples
    --------
    >>> one, two = Masked("[REDACTED]"), Masked("[REDACTED]")
    >>> one == "[REDACTED]", one == two, one == one
    (True, False, True)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other if other.__class__ is Masked else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __copy__(self) -> Masked:
        return self

    def __deepcopy__(self, memo: object) -> Masked:
        return self


def masked(value: Any, mark: str = PLACEHOLDER) -> Any:
    """Give a frozen value with a `Masked` text for every text that holds a mark.

    Examples
    --------
    >>> given = FrozenDict(a="[REDACTED]", b=FrozenList([1]))
    >>> masked(given)["a"].__class__.__name__, masked(given) == given
    ('Masked', True)
    """
    cls = value.__class__
    if cls is str:
        return Masked(value) if mark in value else value
    if cls is FrozenDict:
        parts = {key: masked(item, mark) for key, item in value.items()}
        same = all(parts[key] is item for key, item in value.items())
        return value if same else FrozenDict(parts)
    if cls is FrozenList or cls is tuple:
        items = [masked(item, mark) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return FrozenList(items) if cls is FrozenList else tuple(items)
    return value


class HiddenBefore(Redactor):
    """Stands for a policy whose work was done when the run was recorded.

    What it serves is what stands there: no secret is known any more.

    Parameters
    ----------
    keys : set of str
        The keys whose values and limits were taken out of what was judged.
    active : bool
        Whether anything may have been hidden.

    Examples
    --------
    >>> hidden = HiddenBefore(frozenset({"token"}))
    >>> hidden.hides_key("token"), hidden.scrub("t0p-s3cret")
    (True, 't0p-s3cret')
    """

    __slots__ = ("_hidden",)

    def __init__(self, keys: frozenset[str] = frozenset(), *, active: bool = True) -> None:
        super().__init__(None)
        self._hidden = keys
        self.active = active

    def hides_key(self, key: str) -> bool:
        """Say whether the values of a key were taken out of what was judged."""
        return key in self._hidden

    def _served(self, value: Any, paths: Sequence[Any]) -> Any:
        return str(value) if value.__class__ is Masked else super()._served(value, paths)


def hidden_before(log: Log, *, hidden: bool) -> HiddenBefore:
    """Give what stands for the policy of a log that was read, where something may be hidden."""
    judged = (code.path.rules for code in log.codes if code.path is not None)
    keys = frozenset(key for rules in judged for key in getattr(rules, "hidden", ()))
    return HiddenBefore(keys, active=hidden or bool(keys))


#: Kinds of codes whose values stand in a state, where they are compared with what stood there.
_HELD: Final = frozenset({"write", "update", "append", "enter"})


def mask_log(log: Log) -> None:
    """Make every value in the states of a log that was just read say what in it is hidden.

    Examples
    --------
    >>> from runbook_nb.record.log import Code, StageRef
    >>> log = Log()
    >>> write = log.number(Code("write", StageRef("a", "A", "stage"), "k"))
    >>> log.root.add(write, "[REDACTED]")
    >>> mask_log(log)
    >>> log.root.values[0].__class__.__name__
    'Masked'
    """
    fans = _mask_values(root_columns(log, log.root.codes), log.root)
    while fans:
        fan = fans.pop()
        fans += _mask_values(fan_columns(log, fan), fan)


def _mask_values(columns: Iterable[Column], track: Track | FanOut) -> list[FanOut]:
    """Mask the values of one track or of the branches of a fan-out; give the fan-outs in it."""
    fans: list[FanOut] = []
    for column in columns:
        if column.code.kind == "fan_out":
            fans += column.held_in(track)
        elif column.code.kind in _HELD:
            column.put_into(track, [masked(value) for value in column.held_in(track)])
    return fans
