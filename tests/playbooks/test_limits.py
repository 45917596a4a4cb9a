"""Limits of a step that cannot hold are told alike by whoever meets them, and by one law."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookDefinitionError, PlaybookLoadError
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.limits import MAX_ID, limit_faults
from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.model import Playbook, PlaybookStep

BOUND = st.none() | st.integers(-2, 5)


def of(**step: Any) -> dict[str, Any]:
    """Give a playbook of one step."""
    asked = {"id": "look", "description": "Look.", "expected_tools": ["scan"], **step}
    return {"id": "ir", "name": "Response", "steps": [asked]}


def test_an_id_that_nobody_can_read_is_refused_with_how_long_it_may_be():
    for step_id, head in (("x" * 100_000, "p"), ("a", "x" * 100_000)):
        steps = [{"id": step_id, "description": "d"}]
        with pytest.raises(PlaybookLoadError) as refused:
            load_playbook({"id": head, "name": "P", "steps": steps})
        (problem,) = refused.value.problems
        assert problem.code == "id_too_long"
        assert "has 100,000 characters, and may have 400" in problem.message
        assert len(str(refused.value)) < 1000


def test_a_long_id_of_a_playbook_made_in_python_is_found_and_drawn_cut(calls_of):
    def made(length):
        step = PlaybookStep(id="x" * length, description="d", expected_tools=["t"])
        return Playbook(id="p", name="P", steps=[step])

    book = made(1_000_000)
    assert "id_too_long" in [one.code for one in book.lint()]
    plan = PlaybookEnforcer.from_playbook(book)
    drawn = str(plan)
    assert "…" in drawn
    assert len(drawn) < 2000
    assert "x" * MAX_ID not in plan.run.to_markdown() + plan.brief()
    short = PlaybookEnforcer.from_playbook(made(MAX_ID))
    long = PlaybookEnforcer.from_playbook(made(100_000))
    assert calls_of(lambda: str(long)) <= 2 * calls_of(lambda: str(short))


@given(floor=st.none() | st.integers(0, 5), cap=BOUND)
def test_nothing_is_wrong_exactly_where_some_number_of_calls_fits(
    floor: int | None, cap: int | None
) -> None:
    fits = cap is None or any((floor or 0) <= calls <= cap for calls in range(1, 6))
    assert (not list(limit_faults(floor, cap))) is fits


@pytest.mark.parametrize(("floor", "cap"), [(None, 0), (None, -1), (5, 3), (2, 0)])
def test_reading_holding_and_looking_through_say_the_same(floor: int | None, cap: int) -> None:
    first, *_ = limit_faults(floor, cap)
    given = of(min_tool_calls=floor, max_tool_calls=cap)
    with pytest.raises(PlaybookLoadError) as read:
        load_playbook(given)
    book = Playbook.model_validate(given)
    with pytest.raises(PlaybookDefinitionError) as held:
        PlaybookEnforcer.from_playbook(book)
    for problem in (read.value.problems[0], held.value.problems[0]):
        assert problem.where == f"steps[0].{first.field}"
        assert problem.message.endswith(first.message)
        assert problem.fix == first.fix
    [found] = [one for one in book.lint() if one.code == first.code]
    assert (found.message, found.fix) == (first.message, first.fix)
