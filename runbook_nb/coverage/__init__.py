"""The ledger of an answer: what was checked, what was not, and what never can be.

`coverage` and `absent` are for the authors of tools, the ``read_…`` functions recognise what they
declared, `fold_declared` and `compose_ledger` carry it upward into one `Ledger`, and
`carried_provenance` and `stamp` do the same for where an answer came from.
"""

from __future__ import annotations

from runbook_nb.coverage.declare import ABSENCE_NOTE, COVERAGE_NOTE, absent, coverage
from runbook_nb.coverage.fold import (
    ANSWER_BLOCK_ITEMS,
    answer_block,
    compose_ledger,
    fold_declared,
    read_declared_coverage,
    with_answer_block,
)
from runbook_nb.coverage.items import REFUSAL_MARK, Item, ItemLike, Items, merge_items, read_items
from runbook_nb.coverage.ledger import Ledger
from runbook_nb.coverage.provenance import carried_provenance, stamp
from runbook_nb.coverage.read import (
    CoverageReading,
    Declared,
    declaring_part,
    read_absence,
    read_coverage_ledger,
    read_coverage_result,
)
from runbook_nb.coverage.views import absence_view

__all__ = [
    "ABSENCE_NOTE",
    "ANSWER_BLOCK_ITEMS",
    "COVERAGE_NOTE",
    "REFUSAL_MARK",
    "CoverageReading",
    "Declared",
    "Item",
    "ItemLike",
    "Items",
    "Ledger",
    "absence_view",
    "absent",
    "answer_block",
    "carried_provenance",
    "compose_ledger",
    "coverage",
    "declaring_part",
    "fold_declared",
    "merge_items",
    "read_absence",
    "read_coverage_ledger",
    "read_coverage_result",
    "read_declared_coverage",
    "read_items",
    "stamp",
    "with_answer_block",
]
