"""Each widget in each situation that a cell can get into, in one table.

While it works it is the one thing in its cell. However the file is opened afterwards, the
verdicts, the ledger and the walk that it stood for can be read, as they were when it was saved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import lab_rules
import nbformat
import pytest
import test_runform
from lab_server import CURRENT, IDLE, OPEN, PATIENCE, RUN_ALL, WIDGET

HERE = Path(__file__).parent
AREA = ".jp-NotebookPanel .jp-CodeCell:last-of-type .jp-OutputArea"
ROOT = f"{AREA} .rbw"
SAVE = "async () => { await window.jupyterapp.commands.execute('docmanager:save'); }"
RESTART = f"async () => {{ await {CURRENT}.sessionContext.session.kernel.restart(); }}"
#: What of a cell's outputs is on the screen: the words of each.
SHOWN = """(area) => [...area.querySelectorAll(":scope > .jp-OutputArea-child")]
  .filter((one) => one.checkVisibility() && one.offsetHeight > 1)
  .map((one) => one.innerText.replace(/\\s+/g, " ").trim())"""
#: What the last cell would be saved with.
KEPT = f"() => JSON.stringify([...{CURRENT}.content.model.cells].at(-1).toJSON().outputs)"
STATES = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import cards, states
import runbook_nb as rb
rb.settings.static = False
"""
#: JupyterLab's own words in a file it trusts: with a kernel that never ran it, and with none.
GONE, LOADING = "Error displaying widget: model not found", "Loading widget..."
NO_URLS = dict.fromkeys(("require_js_url", "mathjax_url", "mermaid_js_url"), "")


@dataclass
class Case:
    """A widget, what is done to it by hand, and what is to be read of it afterwards."""

    setup: str
    show: str
    ready: str
    by_hand: object
    says: tuple[str, ...]
    settled: str
    failing: tuple[str, str, tuple[str, ...]] | None = None
    stopped: tuple[str, str, tuple[str, ...]] | None = None
    touch: object = None
    lacks: dict[str, str] = field(default_factory=dict)


def _look(root):
    root.get_by_role("button", name="next decision").click()
    root.locator(".rbx-place", has_text="row 42 of 51").wait_for()


def _raise_the_limit(root):
    limit = root.get_by_label("limit of age_days, rule 3", exact=True).first
    limit.fill("14")
    limit.press("Enter")
    root.locator(".rbwl-head", has_text="4 verdicts change").wait_for()


def _fill(root):
    root.get_by_label("cluster").select_option(label="eu-west-1")
    root.get_by_label("window").fill("7")


def _run(root):
    _fill(root)
    root.get_by_role("button", name="Run").click()
    root.get_by_text("Finished").first.wait_for()


CASES = {
    "explorer": Case(
        setup=f"{STATES}\nenvelope = states.envelope()",
        show="envelope.explore('cluster-b')",
        ready="tr[aria-current]",
        by_hand=_look,
        touch=lambda root: root.get_by_role("button", name="next decision").click(),
        settled="cluster-b",
        says=("3 subjects", "1 unprotected", "cluster-b", "age_days 30 > 7", "Not checked", "Walk"),
        failing=(
            "states.run_failed().explore()",
            "KeyError",
            ("Stopped at Collect", "KeyError", "1 unprotected", "3 of 3 subjects done"),
        ),
        stopped=(
            "cards.run_cancelled().explore()",
            "RunCancelled",
            ("Cancelled at load", "1 not reached", "2 of 3 subjects done"),
        ),
    ),
    "rule lab": Case(
        setup=lab_rules.CELL,
        show="rb.RuleLab(envelope)",
        ready=".rbwl-head",
        by_hand=_raise_the_limit,
        touch=lambda root: root.get_by_role("button", name="+ rule").click(),
        settled="4 verdicts change",
        says=(
            "4 verdicts change",
            "rule 3 limit raised",
            "299 unchanged",
            "us-east-2/prod/orders-544",
            "On the edge",
        ),
        failing=(
            "rb.RuleLab(states.envelope_failed_rows())",
            "1 failed",
            ("No verdict changes", "1 subject failed", "2 not compared"),
        ),
        lacks={"stopped": "a lab runs no stage and calls no source, so there is nothing to stop"},
    ),
    "form": Case(
        setup=test_runform.SETUP,
        show="rb.RunForm(box, 'backup_triage')",
        ready=".rbf-row",
        by_hand=_run,
        touch=lambda root: root.get_by_role("button", name="Run").click(),
        settled="eu-west-1/prod/db-001",
        says=(
            *("backup_triage", "eu-west-1/prod/db-001", "3 unprotected", "the backup inventory"),
            *("why a job was paused", "Walk"),
        ),
        failing=("broken.set()", "Failed at Collect", ("Collect", "KeyError", "gave no answer")),
        stopped=("gate.clear()", "Stopped at", ("stopped", "Take the inventory")),
    ),
}
SITUATIONS = (
    *(
        "works",
        "static",
        "failing",
        "stopped",
        "kernel started anew",
        "page opened again",
        "untrusted",
    ),
    *("trusted, no kernel", "trusted, a new kernel", "nbconvert", "nbconvert, its state saved"),
)
TABLE = [(name, situation) for name in CASES for situation in SITUATIONS]
MEANT = [(name, where) for name, where in TABLE if where not in CASES[name].lacks]


def test_what_the_table_leaves_out_has_a_reason(record_property):
    left_out = {pair: CASES[pair[0]].lacks[pair[1]] for pair in TABLE if pair not in MEANT}
    assert all(len(reason.split()) > 5 for reason in left_out.values())
    assert len(MEANT) + len(left_out) == len(CASES) * len(SITUATIONS)
    for (name, where), reason in left_out.items():
        record_property(f"{name}, {where}", reason)


#: The text of the file of each widget, once it was saved.
SAVED = {}


class Bench:
    """A notebook with one widget in its last cell, as a person has it before them."""

    def __init__(self, lab, desk, name):
        self.lab, self.desk, self.page = lab, desk, desk.page
        self.case, self.name = CASES[name], name.replace(" ", "_")
        self.path = f"situations/{self.name}.ipynb"

    @property
    def root(self):
        return self.page.locator(ROOT)

    def begin(self, show=""):
        self.lab.put(self.path, _notebook(self.case.setup, show or self.case.show), trust=True)
        self.page.set_viewport_size({"width": 1120, "height": 1400})
        self.page.evaluate(OPEN, [self.path, True])
        self.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
        self.run_all()

    def run_all(self):
        self.page.evaluate(RUN_ALL)
        self.root.locator(self.case.ready).first.wait_for()
        self.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)

    def is_alone(self):
        """The widget is the one thing in its cell, and what stands for it is in the file."""
        shown = self.page.locator(AREA).first.evaluate(SHOWN)
        outputs = json.loads(self.page.evaluate(KEPT))
        assert len(shown) == 1, shown
        assert [WIDGET in output["data"] for output in outputs] == [False, True]
        assert "text/html" not in outputs[1]["data"]

    def kept(self, words):
        """Wait until the file would hold what was changed by hand; save it, give its text."""
        self.page.wait_for_function(f"(words) => ({KEPT})().includes(words)", arg=words)
        self.is_alone()
        self.page.evaluate(SAVE)
        self.desk.clear()
        return (self.lab.root / self.path).read_text(encoding="utf-8")

    def saved(self):
        """Give the file as a person leaves it behind; it is made once for all situations."""
        if self.name not in SAVED:
            self.begin()
            self.case.by_hand(self.root)
            SAVED[self.name] = self.kept(self.case.settled)
        return SAVED[self.name]

    def shot(self, situation):
        self.desk.spread(1120, 5_000)
        place = situation.replace(", ", "_").replace(" ", "_")
        self.desk.watched.shot(f"situation_{self.name}_{place}")

    def reads(self, words, where):
        """All words are on the screen of the last cell, once each output was looked at."""
        shown = self.page.locator(AREA).first.evaluate(SHOWN)
        lacking = [word for word in words if word not in " ".join(shown)]
        assert not lacking, (where, lacking, shown)
        return shown


def _notebook(*cells):
    """Write code cells that have not been run, each of which will show something."""
    return lab_rules.notebook(*cells)


@pytest.fixture
def bench(lab, desk, request):
    return Bench(lab, desk, request.param)


def works(bench):
    bench.begin()
    bench.is_alone()
    bench.case.by_hand(bench.root)
    SAVED[bench.name] = bench.kept(bench.case.settled)


def static(bench):
    """Under ``settings.static`` there is the card alone, which is the cell's value."""
    show = f"rb.settings.static = True\n{bench.case.show}"
    bench.lab.put(bench.path, _notebook(bench.case.setup, show), trust=True)
    bench.desk.page.evaluate(OPEN, [bench.path, True])
    bench.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    bench.page.evaluate(RUN_ALL)
    bench.page.locator(f"{AREA} .rbnb").wait_for()
    bench.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    (output,) = json.loads(bench.page.evaluate(KEPT))
    assert output["output_type"] == "execute_result"
    assert set(output["data"]) == {"text/html", "text/plain"}
    assert bench.root.count() == 0


def failing(bench):
    code, live, says = bench.case.failing
    _ended(bench, code, live, says)


def stopped(bench):
    code, live, says = bench.case.stopped
    _ended(bench, code, live, says, stop=True)


def _ended(bench, code, live, says, *, stop=False):
    """A run that gave no answer is told in the widget, and in what stands for it."""
    if bench.name == "form":
        bench.begin()
        bench.page.evaluate(test_runform.ASK, code)
        _fill(bench.root)
        bench.root.get_by_role("button", name="Run").click()
        if stop:
            bench.root.get_by_text("stage 1 of 3").wait_for()
            bench.root.get_by_role("button", name="Stop").click()
    else:
        bench.begin(f"{STATES}\n{code}")
    bench.root.get_by_text(live).first.wait_for()
    if bench.name == "form":
        bench.page.evaluate(test_runform.ASK, "gate.set()")
    text = bench.kept(says[-1])
    bench.lab.put(bench.path, text, trust=True)
    bench.desk.open(bench.path, kernel=False)
    bench.reads(says, "no kernel")
    bench.shot("stopped" if stop else "failing")


def kernel_started_anew(bench):
    bench.begin()
    bench.case.by_hand(bench.root)
    bench.page.evaluate(RESTART)
    bench.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    bench.case.touch(bench.root)
    bench.root.get_by_text("the kernel has not answered yet").wait_for()
    bench.shot("kernel_started_anew")
    bench.run_all()
    bench.root.get_by_text("the kernel has not answered yet").wait_for(state="detached")
    bench.is_alone()
    bench.case.by_hand(bench.root)


def page_opened_again(bench):
    bench.begin()
    bench.case.by_hand(bench.root)
    bench.page.wait_for_function(f"(words) => ({KEPT})().includes(words)", arg=bench.case.settled)
    bench.page.evaluate(SAVE)
    bench.page.reload()
    bench.page.wait_for_function("() => window.jupyterapp?.shell.currentWidget")
    bench.page.locator("#jupyterlab-splash").wait_for(state="detached")
    bench.root.locator(bench.case.ready).first.wait_for()
    bench.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    bench.is_alone()


def untrusted(bench):
    bench.lab.put(bench.path, bench.saved(), trust=False)
    assert bench.desk.open(bench.path, kernel=False) == [False]
    shown = bench.reads(bench.case.says, "untrusted")
    assert len(shown) == 2
    assert shown[1].endswith("run the cell to use it")
    bench.shot("untrusted")


def trusted_no_kernel(bench, *, kernel=False):
    bench.lab.put(bench.path, bench.saved(), trust=True)
    assert bench.desk.open(bench.path, kernel=kernel) == [True]
    area = bench.page.locator(AREA).first
    area.get_by_text(GONE if kernel else LOADING).wait_for()
    shown = bench.reads(bench.case.says, "no kernel")
    assert shown[1:] == [GONE if kernel else LOADING]
    bench.shot("trusted_new_kernel" if kernel else "trusted_no_kernel")


def trusted_a_new_kernel(bench):
    trusted_no_kernel(bench, kernel=True)


def nbconvert(bench, tab, folder, *, state=None):
    from nbconvert import HTMLExporter

    document = nbformat.reads(bench.saved(), as_version=4)
    assert "widgets" not in document.metadata
    if state is not None:
        document = state(document)
    html, _ = HTMLExporter(**NO_URLS, widget_renderer_url="data:,").from_notebook_node(document)
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    watched = tab(viewport={"width": 960, "height": 900})
    watched.show(page)
    words = watched.ask("words", watched.page.locator(".jp-OutputArea").last)
    lacking = [word for word in bench.case.says if word not in words]
    assert not lacking, (lacking, words)
    place = "nbconvert" if state is None else "nbconvert_state"
    watched.shot(f"situation_{bench.name}_{place}", full_page=True)


def nbconvert_its_state_saved(bench, tab, folder):
    """The scripts that would make it a widget again come from the net, which a reader may lack."""
    kind = "application/vnd.jupyter.widget-state+json"

    def state(document):
        (ident,) = [
            output["data"][WIDGET]["model_id"]
            for output in document.cells[-1].outputs
            if WIDGET in output["data"]
        ]
        model = {
            "model_name": "AnyModel",
            "model_module": "anywidget",
            "model_module_version": "~0.11.*",
            "state": {},
        }
        held = {"state": {ident: model}, "version_major": 2, "version_minor": 0}
        document.metadata["widgets"] = {kind: held}
        return document

    nbconvert(bench, tab, folder, state=state)


CHECKS = {
    "works": works,
    "static": static,
    "failing": failing,
    "stopped": stopped,
    "kernel started anew": kernel_started_anew,
    "page opened again": page_opened_again,
    "untrusted": untrusted,
    "trusted, no kernel": trusted_no_kernel,
    "trusted, a new kernel": trusted_a_new_kernel,
    "nbconvert": nbconvert,
    "nbconvert, its state saved": nbconvert_its_state_saved,
}


@pytest.mark.parametrize(("bench", "situation"), MEANT, indirect=["bench"])
def test_a_widget_in_its_situation(bench, situation, tab, tmp_path):
    check = CHECKS[situation]
    more = (tab, tmp_path) if situation.startswith("nbconvert") else ()
    check(bench, *more)


# -- where there is no JupyterLab ------------------------------------------------------------

#: A page with outputs as hosts lay them out, and a widget in the last; then what is to be hidden.
LAYOUTS = {
    "JupyterLab": (
        '<div class="jp-OutputArea"><div id="a" class="jp-OutputArea-child"><div><div '
        'class="MARK"></div></div></div><div id="b" class="jp-OutputArea-child">other</div>'
        '<div id="c" class="jp-OutputArea-child"><div id="el"></div></div></div>',
        ["a"],
    ),
    "another cell of JupyterLab": (
        '<div id="a" class="jp-OutputArea"><div class="MARK">x</div></div>'
        '<div id="c" class="jp-OutputArea"><div id="el"></div></div>',
        [],
    ),
    "VS Code": (
        '<div class="cell_container"><div id="z" class="output_container"><div class="MARK">x</div>'
        '</div></div><div class="cell_container"><div id="a" class="output_container"><div '
        'class="MARK">x</div></div><div id="c" class="output_container"><div id="el"></div></div>'
        "</div>",
        ["a"],
    ),
    "a frame for each cell": (
        '<div id="a"><div class="MARK">x</div></div><div id="b">other</div>'
        '<div id="c"><div><div id="el"></div></div></div><div id="d" class="MARK">after</div>',
        ["a"],
    ),
    "shown twice": (
        '<div class="jp-OutputArea"><div id="z"><p class="MARK">x</p></div><div id="y">first</div>'
        '<div id="a"><p class="MARK">x</p></div><div id="c"><div id="el"></div></div></div>',
        ["a"],
    ),
}
MOUNT = """
const traits = new Map(Object.entries(TRAITS));
const model = { get: (name) => traits.get(name), on() {}, off() {}, send() {}, save_changes() {} };
frame(document.getElementById("el"), model, "it");
"""
HIDDEN = """() => [...document.querySelectorAll("[id]")]
  .filter((one) => one.style.display === "none").map((one) => one.id)"""


@pytest.mark.parametrize("alive", [True, False])
@pytest.mark.parametrize("host", LAYOUTS)
def test_the_static_view_gives_way_to_a_widget_that_works(tab, tmp_path, host, alive):
    from runbook_nb.widgets import static

    layout, hidden = LAYOUTS[host]
    traits = {"_mark": "rb-0123abcd", "layout": {"comm_live": alive}}
    script = static.script("widget.js") + MOUNT.replace("TRAITS", json.dumps(traits))
    body = layout.replace("MARK", "rb-0123abcd")
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html>{body}<script type=module>{script}</script>", encoding="utf-8")
    watched = tab(viewport={"width": 600, "height": 400})
    watched.show(page)
    watched.page.locator(".rbw").wait_for(state="attached")
    watched.page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    assert watched.page.evaluate(HIDDEN) == (hidden if alive else [])
