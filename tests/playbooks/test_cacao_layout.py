"""The line that is made of the graph of a document."""

import pytest
from cacao_documents import every_kind
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.playbooks.cacao_check import reachable
from runbook_nb.playbooks.cacao_layout import Layout
from runbook_nb.playbooks.cacao_losses import Lost


@st.composite
def graphs(draw):
    """Any graph without circles: each step leads to later ones, at last to an end."""
    count = draw(st.integers(1, 12))
    workflow = {"s": {"type": "start", "on_completion": "0"}}

    def later(n):
        return str(draw(st.integers(n + 1, count)))

    for n in range(count):
        kind = draw(st.sampled_from(["action", "if-condition", "switch-condition", "parallel"]))
        step = {"type": kind}
        if kind == "action":
            step[draw(st.sampled_from(["on_completion", "on_success"]))] = later(n)
            if "on_success" in step and draw(st.booleans()):
                step["on_failure"] = later(n)
        elif kind == "if-condition":
            step |= {"condition": "x", "on_true": later(n)}
            if draw(st.booleans()):
                step["on_false"] = later(n)
            if "on_false" not in step or draw(st.booleans()):
                step["on_completion"] = later(n)
        elif kind == "switch-condition":
            step |= {"switch": "x", "cases": {"a": later(n), "b": later(n)}}
        else:
            step |= {"next_steps": [later(n), later(n)]}
        workflow[str(n)] = step
    workflow[str(count)] = {"type": "end"}
    return {"workflow_start": "s", "workflow": workflow}


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_every_step_that_is_come_to_stands_once_and_every_other_is_told(document):
    lost = Lost()
    layout = Layout(document, lost)
    assert layout.problem is None
    workflow = document["workflow"]
    reached = reachable("s", workflow)
    placed = [key for key, _ in layout.steps]
    assert len(set(placed)) == len(placed)
    assert set(placed) == {key for key in reached if workflow[key]["type"] == "action"}
    left = {place for item in lost.items if item.effect == "left_out" for place in item.places}
    assert left == {
        key for key in workflow if key not in reached and workflow[key]["type"] != "end"
    }
    assert set(layout.beside) == (set(workflow) - set(placed)) - {"s"} - {
        key for key, step in workflow.items() if step["type"] == "end"
    }


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_what_is_gone_through_on_every_way_is_never_optional(document):
    workflow = document["workflow"]
    layout = Layout(document, Lost())
    for key, around in layout.steps:
        if not any(branch.is_optional for branch in around):
            continue
        # Without it, the end can still be come to on some way that goes well.
        cut = {**workflow, key: {"type": "action"}}
        assert any(workflow[one]["type"] == "end" for one in reachable("s", cut))


def test_loops_are_found_where_they_are_come_to():
    layout = Layout(every_kind(), Lost())
    (loop,) = layout.loops
    assert "'While mails arrive'" in loop.message
    assert layout.name("while-condition--00000000-0000-4000-8000-000900000000")


@pytest.mark.parametrize(
    ("branches", "unordered"), [((["a"], ["b"]), True), ((["a"], ["b", "c"]), False)]
)
def test_steps_at_once_need_no_order_where_each_is_a_branch(branches, unordered):
    workflow = {
        "s": {"type": "start", "on_completion": "p"},
        "p": {"type": "parallel", "next_steps": [one[0] for one in branches]},
        "e": {"type": "end"},
    }
    for branch in branches:
        for key, after in zip(branch, [*branch[1:], "e"], strict=True):
            workflow[key] = {"type": "action", "on_completion": after}
    layout = Layout({"workflow_start": "s", "workflow": workflow}, Lost())
    assert layout.is_unordered is unordered
