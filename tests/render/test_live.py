"""Progress shown while a run runs: when, how often, where, and what is left of it."""

import io
import threading
from types import SimpleNamespace

import nbformat
import pytest

import runbook_nb as rb
from runbook_nb.chart.progress import Progress, StepProgress
from runbook_nb.render import live
from runbook_nb.render.live import PATIENCE, PERIOD, InCell, InTerminal, Live, show_progress
from runbook_nb.settings import settings


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Screen:
    """A surface that keeps what it was shown."""

    def __init__(self, lasts=99):
        self.shown, self.ended, self.lasts = [], [], lasts

    def show(self, progress):
        self.shown.append(progress)
        return len(self.shown) < self.lasts

    def end(self, progress):
        self.ended.append(progress)


def at(done, status="running"):
    return Progress("triage", status, (StepProgress("Each", "current", done, 12),))


@pytest.fixture
def made():
    clock, screen = Clock(), Screen()
    state = SimpleNamespace(done=0)
    shown = Live(lambda status="running": at(state.done, status), screen, clock)
    return SimpleNamespace(clock=clock, screen=screen, state=state, live=shown)


def test_a_short_run_shows_nothing(made):
    made.live.tick()
    made.clock.now = PATIENCE - 0.01
    made.live.tick()
    made.live.end("ok")
    assert made.screen.shown == made.screen.ended == []


def test_updates_come_five_times_a_second_at_most_and_only_with_news(made):
    for step in range(401):  # four seconds, looked at a hundred times a second
        made.clock.now = step / 100
        made.state.done = step // 10
        made.live.tick()
    assert PERIOD == 0.2
    assert len(made.screen.shown) <= (4 - PATIENCE) * 5 + 1
    before = len(made.screen.shown)
    for step in range(400, 800):  # nothing new
        made.clock.now = step / 100
        made.live.tick()
    assert len(made.screen.shown) <= before + 1


def test_the_last_that_is_shown_says_how_it_ended(made):
    made.clock.now = 1.0
    made.live.tick()
    made.state.done = 12
    made.live.end("ok")  # right after the last update: it is shown all the same
    assert made.screen.ended == [at(12, "ok")]
    made.clock.now = 9.0
    made.live.tick()
    assert len(made.screen.shown) == 1


def test_a_surface_that_is_gone_is_left_alone():
    clock, screen = Clock(), Screen(lasts=1)
    shown = Live(lambda status="running": at(clock.now, status), screen, clock)
    for second in range(1, 5):
        clock.now = second
        shown.tick()
    shown.end("ok")
    assert len(screen.shown) == 1
    assert screen.ended == []


def test_what_cannot_be_shown_ends_nothing(made):
    def broken(progress):
        raise RuntimeError("no")

    made.screen.show = broken
    made.clock.now = 1.0
    made.live.tick()
    made.live.end("ok")
    assert made.live.over
    assert made.screen.ended == []


def test_a_surface_that_breaks_at_the_end_is_looked_at_no_more(made, monkeypatch):
    ticker = live._Ticker()
    monkeypatch.setattr(live, "_ticker", ticker)
    ticker._lives.append(made.live)
    made.clock.now = 1.0
    made.live.tick()

    def broken(progress):
        raise RuntimeError("gone")

    made.screen.end = broken
    with pytest.raises(RuntimeError, match="gone"):
        made.live.end("ok")
    assert ticker._lives == []


def test_one_thread_looks_at_all_runs_and_ends(monkeypatch):
    monkeypatch.setattr(live, "PERIOD", 0.001)
    ticker = live._Ticker()
    ticked, both = [], threading.Event()

    class Counting(Live):
        def tick(self):
            ticked.append(self)
            if len({id(one) for one in ticked}) == 2:
                both.set()

    lives = [Counting(at, Screen(), Clock()) for _ in range(2)]
    for one in lives:
        ticker.add(one)
    thread = ticker._thread
    assert both.wait(5)
    for one in lives:
        ticker.drop(one)
    thread.join(5)
    assert not thread.is_alive()
    ticker.add(lives[0])  # and begins again when there is something to look at
    assert ticker._thread is not None
    assert ticker._thread is not thread
    ticker.drop(lives[0])


# -- where -----------------------------------------------------------------------------------


class Shell:
    def __init__(self, kind="execute_request", kernel=True):
        self.execution_count = 3
        self.kernel = object() if kernel else None
        self.kind = kind

    def get_parent(self):
        return {"header": {"msg_type": self.kind}}


@pytest.mark.parametrize(
    ("shell", "there"),
    [
        (Shell(), True),
        (Shell(kind="comm_msg"), False),  # a widget's callback: no cell is running
        (Shell(kernel=False), False),  # IPython in a terminal
        (None, False),
    ],
)
def test_only_a_cell_that_runs_is_written_to(monkeypatch, shell, there):
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    assert (InCell.of_this_cell() is not None) == there


def test_an_earlier_cell_is_never_rewritten(monkeypatch):
    import IPython.display

    shown, updated = [], []

    def display(what, display_id):
        shown.append((what, display_id))
        return SimpleNamespace(update=updated.append)

    monkeypatch.setattr(IPython.display, "display", display)
    shell = Shell()
    cell = InCell(shell)
    assert cell.show(at(1))
    assert cell.show(at(2))
    assert shown == [(at(1), True)]
    assert updated == [at(2)]
    shell.execution_count += 1  # the next cell runs
    assert not cell.show(at(3))
    cell.end(at(4, "ok"))
    assert updated == [at(2)]


def test_a_terminal_gets_one_line_that_goes_away(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(live.sys, "stderr", stream)
    bar = InTerminal()
    bar.show(Progress("tri\x1bage", "running", (StepProgress("Load", "current"),)))
    bar.show(at(3))
    said = stream.getvalue()
    assert "triage · Each" in said
    assert "3 of 12" in said
    assert "\x1bage" not in said
    assert "\n" not in said
    bar.end(at(12, "ok"))
    assert stream.getvalue().endswith("\r")


def test_a_script_whose_output_is_piped_stays_quiet(tmp_path):
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "import time, runbook_nb as rb\n"
        "rb.flow_chart('c', lambda s: time.sleep(0.9), id='a').build().run_sync()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_nothing_is_shown_where_nothing_is_wanted():
    with settings(progress="off"):
        assert show_progress(lambda: pytest.fail("nobody looks"))("ok") is None
    with settings(progress="cell", static=False):  # and here is no cell
        assert show_progress(lambda: pytest.fail("nobody looks"))("ok") is None


# -- in a kernel -----------------------------------------------------------------------------

SLOW = """import threading, time
import runbook_nb as rb
from runbook_nb.render import live
live.PATIENCE = 0

def wait(scope):
    # Not longer than it takes until something was shown.
    for _ in range(400):
        if any(one._shown for one in live._ticker._lives):
            return
        time.sleep(0.05)

chart = rb.flow_chart("slow", wait, id="a", stage_name="Wait").build()
"""


@pytest.mark.parametrize("call", ["run = chart.run_sync()", "run = await chart.run()"])
def test_a_cell_shows_progress_and_keeps_how_it_ended(tmp_path, call):
    from nbclient import NotebookClient

    cells = [
        SLOW,
        call,
        "rb.settings.static = True",
        "rb.flow_chart('q', lambda s: time.sleep(1), id='q').build().run_sync().status",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute(cwd=str(tmp_path))
    (output,) = notebook.cells[1].outputs
    assert output.output_type == "display_data"
    assert output.data["text/plain"] == "Run slow finished · 1 stage"
    assert "Wait" in output.data["text/html"]
    (only,) = notebook.cells[3].outputs
    assert only.data["text/plain"] == "'ok'"


def test_the_value_of_the_run_is_what_it_was():
    with settings(progress="terminal", static=False):
        run = rb.flow_chart("c", lambda scope: scope.set("x", 1), id="a").build().run_sync()
    assert run.state == {"x": 1}
