"""A plan that follows itself in a cell: drawn as calls come, not too often, and never too late."""

import gc
import subprocess
import sys
from types import SimpleNamespace

import pytest

import runbook_nb as rb
from runbook_nb.render import liveplan
from runbook_nb.render.live import PERIOD
from runbook_nb.render.liveplan import LivePlan, show_live

STEPS = [
    rb.PlaybookStep(id="look", description="Look.", expected_tools=["scan"], min_tool_calls=9),
    rb.PlaybookStep(id="act", description="Act.", expected_tools=["isolate"]),
]
BOOK = rb.Playbook(id="ir", name="Response", steps=STEPS)


class Handle:
    """A display that keeps what it was given to show."""

    def __init__(self):
        self.shown = []

    def update(self, plan):
        self.shown.append(str(plan))


class Events:
    """The events of a shell."""

    def __init__(self):
        self.heard = []

    def register(self, name, callback):
        assert name == "post_run_cell"
        self.heard.append(callback)

    def unregister(self, name, callback):
        self.heard.remove(callback)

    def cell_ends(self):
        for callback in list(self.heard):
            callback(None)


@pytest.fixture
def seen():
    made = SimpleNamespace(now=0.0, plan=rb.PlaybookEnforcer.from_playbook(BOOK))
    made.handle, made.events = Handle(), Events()
    made.view = LivePlan(made.plan, made.handle, made.events, lambda: made.now)
    return made


def call(plan, tool="scan"):
    plan.settle(plan.admit(tool))


def test_it_is_drawn_when_a_call_comes(seen):
    seen.now = 1.0
    call(seen.plan)
    assert len(seen.handle.shown) == 1
    assert "scan open 1" in seen.handle.shown[0]


def test_it_is_drawn_five_times_a_second_at_most_and_the_rest_when_the_cell_ends(seen):
    seen.now = 1.0
    for _ in range(8):
        call(seen.plan)
    assert len(seen.handle.shown) == 1
    seen.events.cell_ends()
    assert len(seen.handle.shown) == 2
    assert seen.handle.shown[-1] == str(seen.plan)
    seen.events.cell_ends()
    assert len(seen.handle.shown) == 2, "nothing new is nothing to draw"
    seen.now += 2 * PERIOD
    seen.plan.admit("scan")
    assert len(seen.handle.shown) == 3


def test_a_step_that_ends_is_drawn_at_once(seen):
    for _ in range(9):
        call(seen.plan)
    assert "completed" in seen.handle.shown[-1]
    assert seen.handle.shown[-1] == str(seen.plan)


def test_what_is_stopped_hears_no_more_and_shows_the_last(seen):
    call(seen.plan)
    assert seen.handle.shown == []
    seen.view.stop()
    assert seen.handle.shown == [str(seen.plan)]
    seen.now = 9.0
    call(seen.plan)
    assert len(seen.handle.shown) == 1
    assert seen.events.heard == []
    seen.view.stop()  # again is nothing


def test_it_keeps_no_plan_alive(seen):
    seen.plan = None
    gc.collect()
    seen.view._waiting = True
    seen.events.cell_ends()
    assert seen.handle.shown == []
    assert seen.events.heard == []


def test_a_display_that_fails_takes_nothing_from_the_plan(seen):
    def broken(plan):
        raise RuntimeError("no front end")

    seen.handle.update = broken
    seen.now = 1.0
    call(seen.plan)
    assert "hear" in seen.plan.dropped_observers[0]
    assert [one.outcome for one in seen.plan.calls] == ["ok"]


@pytest.fixture
def shell(monkeypatch):
    """Stand in for a notebook's shell, and for what displays in it."""

    made = SimpleNamespace(events=Events(), kernel=object(), shown=[], handles=[])

    def display(plan, display_id=None):
        made.shown.append((str(plan), bool(display_id)))
        made.handles.append(Handle())
        return made.handles[-1] if display_id else None

    import IPython
    import IPython.display

    monkeypatch.setattr(IPython, "get_ipython", lambda: made)
    monkeypatch.setattr(IPython.display, "display", display)
    return made


def test_shown_again_it_goes_on_there_alone(shell):
    plan = rb.PlaybookEnforcer.from_playbook(BOOK)
    with rb.settings(static=False):
        plan.live()
        plan.live()
    assert [live for _, live in shell.shown] == [True, True]
    for _ in range(9):
        call(plan)
    first, second = shell.handles
    assert first.shown == []
    assert second.shown[-1] == str(plan)
    assert len(shell.events.heard) == 1


def test_where_outputs_are_final_it_is_shown_once(shell):
    plan = rb.PlaybookEnforcer.from_playbook(BOOK)
    with rb.settings(static=True):
        show_live(plan)
    assert shell.shown == [(str(plan), False)]
    assert shell.events.heard == []
    assert plan not in liveplan._VIEWS


def test_in_a_terminal_it_is_shown_once(shell):
    shell.kernel = None
    plan = rb.PlaybookEnforcer.from_playbook(BOOK)
    with rb.settings(static=False):
        show_live(plan)
    assert shell.shown == [(str(plan), False)]


def test_a_plain_script_goes_on_and_loads_no_ipython():
    script = (
        "import sys, runbook_nb as rb\n"
        "step = rb.PlaybookStep(id='look', description='Look.', expected_tools=['scan'])\n"
        "book = rb.Playbook(id='ir', name='R', steps=[step])\n"
        "plan = rb.PlaybookEnforcer.from_playbook(book)\n"
        "plan.live()\nplan.settle(plan.admit('scan'))\n"
        "print(plan.is_complete, 'IPython' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]
