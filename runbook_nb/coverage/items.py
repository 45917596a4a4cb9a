"""Items of coverage: what was looked at, or was not, and why.

One reading for each side of the boundary. `normalize` is for declarations somebody writes now: it
refuses whatever it does not understand. `read_items` is for what already happened (foreign
answers, the final state of a run): it keeps what is readable and never raises. `merge_items` is
the only place that decides when two items are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import did_you_mean, summarize, visible
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError

#: First word of every refusal. Inside a tool body the text of the error is what a model reads as
#: the result of its call, so the text opens by saying that it is not a finding.
REFUSAL_MARK: Final = "Refused:"

_KEYS: Final = ("what", "why")


@frozen(kw_only=False)
class Item(Immutable):
    """One piece of ground, with the reason why it is listed where it is.

    Both texts are stripped; blank ones are refused. Two items are the same when both texts are.

    Attributes
    ----------
    what : str
        The ground, in the reader's words.
    why : str or None
        The reason; needed for ground that can never be covered.

    Examples
    --------
    >>> Item("  the backup inventory ")
    Item(what='the backup inventory', why=None)
    """

    what: str
    why: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", required_text(self.what, "Item.what"))
        if self.why is not None:
            object.__setattr__(self, "why", required_text(self.why, "Item.why"))

    def to_dict(self) -> dict[str, str]:
        """Give the wire form: ``what``, and ``why`` when there is one.

        Examples
        --------
        >>> Item("tapes", why="stored off site").to_dict()
        {'what': 'tapes', 'why': 'stored off site'}
        """
        return {"what": self.what} if self.why is None else {"what": self.what, "why": self.why}


#: What is accepted as an item of a declaration.
ItemLike = Item | str | Mapping[str, Any]
#: A list of a declaration; None stands for an empty one.
Items = Sequence[ItemLike] | None


def refusal(message: str, where: str, fix: str | None = None) -> DefinitionError:
    """Build the error for a declaration that cannot be accepted."""
    return DefinitionError(f"{REFUSAL_MARK} {message}", code="bad_coverage", where=where, fix=fix)


def quoted(value: Any) -> str:
    """Show a refused value, cut and with its control characters made visible."""
    return visible(summarize(value))


def required_text(value: Any, where: str) -> str:
    """Give the stripped text, refusing what is not text or is blank."""
    if not isinstance(value, str) or not str.strip(value):
        raise refusal(f"{where} must be a text that is not blank, not {quoted(value)}", where)
    return str.strip(value)


def known_keys(value: Mapping[Any, Any], keys: Sequence[str], where: str) -> None:
    """Refuse keys a declaration does not have, naming the one that was likely meant."""
    for key in value:
        if key not in keys:
            near = did_you_mean(key, keys) if isinstance(key, str) else None
            raise refusal(
                f"{where} has the unknown key {quoted(key)}",
                where,
                near or f"its keys are {' and '.join(keys)}",
            )


def normalize(section: str, values: Items, *, require_why: bool = False) -> tuple[Item, ...]:
    """Read one list of a declaration, refusing what it does not understand.

    Parameters
    ----------
    section : str
        The list's name, for messages (``"cannot_cover"``).
    values : list or tuple of Item, str or mapping, optional
        None is an empty list. A text is never read letter by letter.
    require_why : bool
        Whether each item must say why.

    Raises
    ------
    DefinitionError
        Naming the section, the index and the fix.

    Examples
    --------
    >>> normalize("checked", ["  a ", {"what": "b", "why": "c"}])
    (Item(what='a', why=None), Item(what='b', why='c'))
    """
    if values is None:
        return ()
    if not isinstance(values, list | tuple):
        raise refusal(
            f"{section} must be a list, not {quoted(values)}",
            section,
            f"write {section}=[…], also for a single item",
        )
    if not require_why and all(value.__class__ is Item for value in values):
        return tuple(values)
    return tuple(_item(f"{section}[{n}]", value, require_why) for n, value in enumerate(values))


def _item(where: str, value: Any, require_why: bool) -> Item:
    if isinstance(value, Item):
        item = value
    elif isinstance(value, str):
        item = Item(required_text(value, where))
    elif isinstance(value, Mapping):
        known_keys(value, _KEYS, where)
        what = required_text(value.get("what"), f"{where}.what")
        why = value.get("why")
        if why is not None and not (isinstance(why, str) and why.strip()):
            raise refusal(
                f"{where}.why of {quoted(what)} must be a text that is not blank, "
                f"not {quoted(why)}",
                f"{where}.why",
                "say why, or leave the key out",
            )
        item = Item(what, why)
    else:
        raise refusal(
            f"{where} must be a text, an Item or a mapping with `what`, not {quoted(value)}", where
        )
    if require_why and item.why is None:
        raise refusal(
            f"{where} {quoted(item.what)} has no `why`",
            where,
            f"say why that ground is out of reach: Item({item.what[:40]!r}, why='…')",
        )
    return item


def read_items(values: Any) -> tuple[Item, ...]:
    """Read a list that already exists, keeping what is readable.

    Anything but a list or tuple is empty. Entries that are neither a text nor a mapping with a
    text ``what`` are dropped, and so are blank ones; a ``why`` that is no text is left off.

    Examples
    --------
    >>> read_items(["  x ", "", {"what": "y", "why": 5}, 7])
    (Item(what='x', why=None), Item(what='y', why=None))
    """
    if not isinstance(values, list | tuple):
        return ()
    return tuple(item for value in values if (item := _read_item(value)) is not None)


def _read_item(value: Any) -> Item | None:
    if isinstance(value, Item):
        return value
    what, why = (value.get("what"), value.get("why")) if isinstance(value, Mapping) else (value, "")
    if not isinstance(what, str) or not what.strip():
        return None
    return Item(what, why if isinstance(why, str) and why.strip() else None)


def merge_items(lists: Iterable[Items]) -> tuple[Item, ...]:
    """Merge lists of items: the first occurrence stays, in the order of the lists.

    Items are the same when ``what`` and ``why`` are equal, a missing ``why`` being no ``why``.

    Examples
    --------
    >>> merge_items([["a"], ["a", {"what": "a", "why": "w"}, "b"]])
    (Item(what='a', why=None), Item(what='a', why='w'), Item(what='b', why=None))
    """
    read = (normalize(f"lists[{n}]", items) for n, items in enumerate(lists))
    return tuple(dict.fromkeys(chain.from_iterable(read)))
