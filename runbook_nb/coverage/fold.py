"""Folding ledgers upward: inner answers, the chart's own state and the bridge make one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from runbook_nb._text import visible
from runbook_nb.coverage.items import Item, merge_items
from runbook_nb.coverage.ledger import Ledger
from runbook_nb.coverage.read import read_coverage_result

__all__ = [
    "ANSWER_BLOCK_ITEMS",
    "answer_block",
    "compose_ledger",
    "fold_declared",
    "merge_items",
    "read_declared_coverage",
    "with_answer_block",
]

#: Entries of one section of the answer block before it says how many more there are.
ANSWER_BLOCK_ITEMS: Final = 12


def fold_declared(results: Iterable[Any]) -> Ledger:
    """Fold everything the results of inner calls declared, in their order.

    Parameters
    ----------
    results : iterable
        What the calls returned; values that declare nothing add nothing.

    Examples
    --------
    >>> from runbook_nb.coverage.declare import absent, coverage
    >>> ledger = fold_declared([coverage(1, checked=["a"]), 7, absent("x", checked=["a", "b"])])
    >>> [item.what for item in ledger.checked]
    ['a', 'b']
    """
    readings = (read_coverage_result(result) for result in results)
    return Ledger().merge(*(d.ledger for reading in readings if reading for d in reading.declared))


def read_declared_coverage(state_value: Any) -> Ledger:
    """Read what a chart wrote under its ``coverage`` state key; leniently, as the run is over.

    Examples
    --------
    >>> said = {"checked": ["  x ", ""], "notChecked": [{"what": "y", "why": 5}]}
    >>> read_declared_coverage(said).counts
    ('checked 1', 'not checked 1', 'cannot cover 0')
    >>> read_declared_coverage("everything").is_empty
    True
    """
    return Ledger.from_dict(state_value).with_sentence(None)


def compose_ledger(inner: Ledger, chart: Ledger, bridge: Ledger) -> Ledger:
    """Compose the ledger of an answer: inner calls first, then the chart's own, then the bridge's.

    The sentence is the bridge's. Since it counts the merged lists, a bridge may also compose
    first and set it afterwards with `Ledger.with_sentence`.

    Examples
    --------
    >>> one, two = Ledger(checked=["inventory"]), Ledger(checked=["procedure"])
    >>> [item.what for item in compose_ledger(one, Ledger(), two).checked]
    ['inventory', 'procedure']
    """
    return inner.merge(chart, bridge).with_sentence(bridge.sentence)


def answer_block(ledgers: Iterable[Ledger]) -> str:
    """Write what a whole conversation declared, as the Markdown that follows an answer.

    Items are merged; each section shows at most `ANSWER_BLOCK_ITEMS` and says how many more
    there are. Nothing declared gives an empty text.

    Examples
    --------
    >>> print(answer_block([Ledger(checked=["the inventory"], not_checked=["tapes"])]))
    **What this answer covers**
    <BLANKLINE>
    Checked:
    - the inventory
    <BLANKLINE>
    Not checked:
    - tapes
    """
    merged = Ledger().merge(*ledgers)
    sections = (
        ("Checked", merged.checked),
        ("Not checked", merged.not_checked),
        ("Cannot cover", merged.cannot_cover),
    )
    blocks = ["\n".join([f"{label}:", *_entries(items)]) for label, items in sections if items]
    return "\n\n".join(["**What this answer covers**", *blocks]) if blocks else ""


def with_answer_block(answer: str, ledgers: Iterable[Ledger]) -> str:
    """Append the block of `answer_block` under a rule; nothing declared changes nothing.

    Examples
    --------
    >>> with_answer_block("Two need action.  ", [])
    'Two need action.  '
    """
    block = answer_block(ledgers)
    return f"{answer.rstrip()}\n\n---\n\n{block}" if block else answer


def _entries(items: tuple[Item, ...]) -> list[str]:
    lines = [f"- {_plain(i.what)}" + (f": {_plain(i.why)}" if i.why else "") for i in items]
    more = len(lines) - ANSWER_BLOCK_ITEMS
    return lines if more <= 0 else [*lines[:ANSWER_BLOCK_ITEMS], f"- … and {more} more"]


def _plain(text: str) -> str:
    # One line, and no link, picture, tag or code in somebody else's words.
    return re.sub(r"[\\\[\]<`|]", r"\\\g<0>", visible(text))
