from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The samples beside the tests, and what an untrusted notebook keeps.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "html")]


@pytest.fixture(autouse=True)
def nothing_drawn_before():
    """Forget the drawings of whole charts: what a test puts in the way of drawing is to be met."""
    from runbook_nb.render import svg

    svg._drawings.clear()
