from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def nothing_drawn_before():
    """Forget the drawings of whole charts: what a test puts in the way of drawing is to be met."""
    from runbook_nb.render import svg

    svg._drawings.clear()
