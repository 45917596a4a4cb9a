"""What the probes share: a way to judge rows, and a Markdown reader."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb._ids import SeededIds
from runbook_nb.settings import settings

# What an untrusted notebook keeps.
sys.path[:0] = [str(Path(__file__).parents[1] / "render" / "html")]


@pytest.fixture(autouse=True)
def fixed():
    """A clock that stands still, ids that repeat."""
    with settings(clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), ids=SeededIds("field")):
        yield


@pytest.fixture
def triage():
    """Judge rows by a rule set; the subject is ``host`` unless told otherwise."""

    def triage(rows, rules, **more):
        options = {"subject": "host", "source": "the inventory"}
        return rb.triage(rows, rules, **{**options, **more})

    return triage


@pytest.fixture
def cells_of():
    """Read the first table of a Markdown text as rows of cell texts, as a GFM reader does."""
    from markdown_it import MarkdownIt

    def cells_of(text):
        rows = []
        for token in MarkdownIt("commonmark").enable("table").parse(text):
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline" and rows:
                parts = token.children or []
                rows[-1].append("".join(part.content for part in parts))
        return rows

    return cells_of
