"""The explorer in a real JupyterLab: by mouse and by keyboard, small walks and large, no kernel."""

import re
from pathlib import Path

import lab_rules
import pytest
from lab_server import CURRENT, IDLE, OPEN, PATIENCE, RUN_ALL, dress
from watched import of_theme

HERE = Path(__file__).parent
ROOT = ".jp-NotebookPanel .rbw-outer"
WIDTH = 1120
CELLS = f"() => {CURRENT}.content.model.cells.length"
SETUP = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import states
import runbook_nb as rb
rb.settings.static = False
"""
THREE = f"{SETUP}\nenvelope = states.envelope()\nenvelope"
SHOW = "explorer = envelope.explore('cluster-b')\nexplorer"
#: 5,000 subjects, whose walk has 60,009 rows.
MANY = f"""{SETUP}
rules = rb.RuleSet("age", "v1", [rb.Rule({{"days": {{"gt": 7}}}}, "old")], rb.Default("fresh"))
rows = [{{"host": f"host-{{n:04}}", "days": n % 30}} for n in range(5_000)]
envelope = rb.triage(rows, rules, subject="host", source="inventory")
envelope.explore()
"""
#: One stage that writes 50,000 times.
LONG = f"""{SETUP}
def write(scope):
    for number in range(50_000):
        scope.append("list", number)

chart = rb.flow_chart("long", write, id="write").add_function(
    "End", lambda scope: scope.set("n", 1), id="end").build()
chart.run_sync().explore()
"""
#: A playbook's run that is stuck, with calls refused on the way.
PLAYBOOK = f"""{SETUP}
from runbook_nb.playbooks import Playbook, PlaybookEnforcer
steps = [
    {{"id": "detection", "description": "Look.", "expected_tools": ["query_siem"]}},
    {{"id": "notify", "description": "Tell.", "expected_tools": ["page"], "required": False}},
    {{"id": "containment", "description": "Isolate.", "expected_tools": ["isolate"]}},
    {{"id": "recovery", "description": "Restore.", "expected_tools": ["restore"]}},
]
book = Playbook.model_validate({{"id": "ir", "name": "Incident", "steps": steps}})
enforcer = PlaybookEnforcer.from_playbook(book)
for tool, outcome in (("query_siem", "ok"), ("wipe_disk", "ok"), ("isolate", "error")):
    call = enforcer.admit(tool, {{"host": "web-1"}})
    if call.allowed:
        enforcer.settle(call, outcome, error="no route to web-1" if outcome == "error" else None)
enforcer.explore()
"""
#: Limits, keys and values that are long, and one that cannot be broken between words.
WIDE = f"""{SETUP}
regions = [f"eu-west-{{n}}/availability-zone-{{n}}" for n in range(24)]
rules = rb.RuleSet("places", "v1", [
    rb.Rule({{"region": {{"in": regions}}, "age_of_the_last_backup_in_days": {{"gt": 7}}}}, "old",
        "older than a week in a region that is looked after"),
    rb.Rule({{"note": {{"eq": "x" * 300}}}}, "noted"),
    rb.Rule({{"seen": {{"between": [1, 30]}}, "tier": {{"not_in": ["gold", "silver"]}}}}, "kept"),
], rb.Default("fresh"))
rows = [{{"host": f"host-{{n}}", "region": f"us-east-{{n}}/availability-zone-{{n}}",
    "tier": "bronze", "note": "a note of some length about this host, which few read to its end",
    "age_of_the_last_backup_in_days": 3, "seen": 12}} for n in range(3)]
rb.triage(rows, rules, subject="host", source="inventory").explore("host-1")
"""


class Bench:
    """An explorer on the desk, with what a person does to it."""

    def __init__(self, desk):
        self.desk = desk
        self.page = desk.page
        self.root = desk.page.locator(ROOT)

    def at(self, step, total):
        """Wait until a row is looked at, on all sides."""
        place = self.root.locator(".rbx-place", has_text=f"row {step} of {total}")
        place.wait_for()
        number = self.root.locator("tr[aria-current] .rbx-num", has_text=re.compile(f"^{step}$"))
        number.wait_for()
        assert self.root.get_by_role("slider").input_value() == str(step)

    def node(self, name):
        return self.root.locator(f'[data-n][role=button][aria-label^="{name}"]')

    def lit(self):
        """Say what each node of the chart is to the row."""
        labels = self.root.locator("[data-n]").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('aria-label'))"
        )
        return dict(label.rsplit(", ", 1) for label in labels)

    def heard(self, words):
        self.root.locator("[aria-live=polite]", has_text=words).wait_for(state="attached")

    def shot(self, name):
        self.desk.spread(WIDTH, 4_000)
        self.desk.watched.shot(f"explorer_{name}")


def opened(lab, desk, *cells, name="explore.ipynb"):
    lab.put(name, lab_rules.notebook(*cells), trust=True)
    page = desk.page
    page.set_viewport_size({"width": WIDTH, "height": 1500})
    page.evaluate(OPEN, [name, True])
    page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    page.evaluate(RUN_ALL)
    page.wait_for_selector(f"{ROOT} tr[aria-current]")
    page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    return Bench(desk)


def test_a_playbooks_run_is_gone_through_in_the_same_widget(lab, desk):
    bench = opened(lab, desk, PLAYBOOK)
    root = bench.root
    bench.at(0, 14)
    assert bench.lit() == {
        "1 detection": "current",
        "2 notify": "next",
        "3 containment": "later",
        "4 recovery": "not on this way",
        "1 refused": "not on this way",
    }
    row = root.locator("tbody tr", has_text="Refused wipe_disk")
    row.click()
    assert bench.lit()["2 notify"] == "current"
    bench.node("3 containment").click()
    root.locator("tr[aria-current]", has_text="Came to step containment").wait_for()
    root.get_by_text("detection", exact=True).first.wait_for()
    bench.shot("playbook")


@pytest.fixture
def bench(lab, desk):
    return opened(lab, desk, THREE, SHOW)


def test_chart_rows_slider_and_state_are_one_selection(bench):
    root = bench.root
    bench.at(29, 51)
    assert bench.lit() == {
        "inventory": "done",
        "Assess each subject": "done",
        "load": "done",
        "Protection posture": "current",
        "declined": "not on this way",
        "unprotected": "next",
        "protected": "not on this way",
        "Collect": "later",
    }
    proof = root.locator(".rbx-why").inner_text()
    assert "decision 2 of 3, per-subject~1/posture#1" in proof
    assert root.locator(".rbx-why .rbx-strong").first.inner_text().split() == [
        *("rule", "2", "age_days", "30", ">", "7", "▲", "yes,", "unprotected")
    ]
    state = root.get_by_role("table", name="State of cluster-b")
    assert state.get_by_role("row").last.inner_text().split() == [
        *("verdict", "—", "unprotected", "added", "at", "row", "31")
    ]
    # the rows
    root.locator("tr", has_text="Wrote age_days").nth(1).click()
    bench.at(24, 51)
    assert bench.lit()["load"] == "current"
    # the chart
    bench.node("unprotected, later").click()
    bench.at(30, 51)
    assert bench.lit()["unprotected"] == "current"
    bench.node("protected, not on this way").click()
    bench.heard("protected: not on the way")
    # the transport
    root.get_by_role("button", name="next decision").click()
    bench.at(42, 51)
    bench.heard("row 42 of 51 · Protection posture of cluster-c: declined by rule 1")
    root.get_by_role("button", name="first row").click()
    bench.at(0, 51)
    root.get_by_role("button", name="next row").click()
    bench.at(1, 51)
    root.get_by_role("button", name="last row").click()
    bench.at(50, 51)
    root.get_by_role("slider").fill("15")
    bench.at(15, 51)
    assert root.get_by_role("slider").get_attribute("aria-valuetext").startswith("row 15 of 51")


def test_subjects_are_searched_filtered_and_chosen(bench):
    root = bench.root
    root.locator(".rbx-pick button").click()
    table = root.get_by_role("table", name="subjects")
    table.get_by_text("cluster-c").wait_for()
    assert table.get_by_role("row").count() == 4
    root.get_by_role("button", name="1 declined").click()
    table.get_by_text("cluster-a").wait_for(state="detached")
    assert table.get_by_role("row").count() == 2
    root.get_by_role("button", name="1 declined").click()
    table.get_by_text("cluster-a").wait_for()
    root.get_by_label("find a subject").fill("ER-A")
    table.get_by_text("cluster-c").wait_for(state="detached")
    root.get_by_text("1 found; looked at 3 of 3").last.wait_for()
    table.get_by_role("button", name="cluster-a").click()
    bench.at(15, 51)
    assert bench.lit()["protected"] == "next"


def test_everything_is_done_by_keyboard(bench):
    page, root = bench.page, bench.root
    cells = page.evaluate(CELLS)

    def focused():
        return page.evaluate("() => document.activeElement.getAttribute('aria-label')")

    # along the edges of the chart
    bench.node("Protection posture").focus()
    page.keyboard.press("ArrowUp")
    assert focused() == "load, done"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused() == "unprotected, next"
    page.keyboard.press("ArrowLeft")
    assert focused() == "declined, not on this way"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    bench.at(30, 51)
    assert focused() == "unprotected, current"
    ring = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert ring != "none"
    # a fan-out unfolds, and folds again
    bench.node("Assess each subject").focus()
    page.keyboard.press("Enter")
    root.get_by_role("table", name="subjects").get_by_text("cluster-c").wait_for()
    page.wait_for_function("() => document.activeElement.type === 'search'")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.textContent") == "cluster-b"
    page.keyboard.press("Escape")
    assert focused().startswith("Assess each subject")
    # the rows
    root.locator("tr[aria-current] button").focus()
    page.keyboard.press("ArrowDown")
    bench.at(31, 51)
    page.keyboard.press("PageUp")
    bench.at(21, 51)
    page.keyboard.press("End")
    bench.at(50, 51)
    page.keyboard.press("Home")
    bench.at(0, 51)
    assert page.evaluate("() => document.activeElement.closest('tr').ariaCurrent") == "true"
    # the notebook's own keys are left alone
    for key in ("a", "d", "d", "m"):
        page.keyboard.press(key)
    assert page.evaluate(CELLS) == cells
    # the slider
    root.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    bench.at(1, 51)
    # every control can be reached, and shows that it is
    seen = set()
    root.get_by_role("button", name="All rows").focus()
    for _ in range(16):
        seen.add(
            page.evaluate(
                "() => { const one = document.activeElement;"
                " return one.closest('.rbw-outer')"
                " ? getComputedStyle(one).outlineStyle !== 'none' : null; }"
            )
        )
        page.keyboard.press("Tab")
    assert seen <= {True, None}
    assert True in seen


def test_python_moves_it_and_reads_where_it_is(lab, desk):
    bench = opened(lab, desk, THREE, SHOW, "explorer.step = 42", name="moved.ipynb")
    bench.at(42, 51)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read_by_everybody(bench, accessibility, theme):
    dress(bench.page, theme)
    try:
        bench.at(29, 51)
        bench.shot(theme)
        assert of_theme(bench.desk.watched.shares(bench.root), theme)
        assert bench.desk.watched.ask("faint", bench.root) == []
        assert accessibility(bench.page, f"explorer, {theme}") == {}
        bench.root.locator(".rbx-pick button").click()
        bench.root.get_by_role("table", name="subjects").get_by_text("cluster-c").wait_for()
        bench.shot(f"subjects_{theme}")
        assert accessibility(bench.page, f"explorer, subjects, {theme}") == {}
        bench.page.keyboard.press("Escape")
        bench.page.set_viewport_size({"width": 620, "height": 2200})
        assert bench.root.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        flow, side = (bench.root.locator(at).bounding_box() for at in (".rbx-flow", ".rbx-side"))
        assert side["y"] >= flow["y"] + flow["height"] - 1
        bench.desk.watched.shot(f"explorer_narrow_{theme}")
    finally:
        dress(bench.page, "light")


def test_five_thousand_subjects_are_gone_through(lab, desk):
    bench = opened(lab, desk, MANY, name="many.ipynb")
    root = bench.root
    assert "60\u2009009" in root.locator(".rbx-place").inner_text()
    assert root.locator(".rbx-side tr").count() < 70  # a page, and no more
    root.get_by_role("button", name="last row").click()
    root.locator("tr[aria-current] .rbx-num", has_text="60\u2009008").wait_for()
    root.get_by_role("button", name="Decisions").click()
    root.locator(".rbx-num", has_text="59\u2009999").or_(
        root.get_by_text("rows before, of 5\u2009000")
    ).first.wait_for()
    root.locator(".rbx-pick button").click()
    table = root.get_by_role("table", name="subjects")
    table.get_by_text("host-0049").wait_for()
    root.get_by_text("1 to 50 of 5\u2009000").last.wait_for()
    root.get_by_role("button", name="next", exact=True).click()
    table.get_by_text("host-0099").wait_for()
    root.get_by_label("find a subject").fill("4321")
    table.get_by_role("button", name="host-4321").click()
    root.get_by_role("table", name="State of host-4321").wait_for()
    assert bench.lit()["fresh"] == "next"
    bench.shot("five_thousand")


def test_fifty_thousand_rows_are_gone_through(lab, desk):
    bench = opened(lab, desk, LONG, name="long.ipynb")
    root = bench.root
    root.get_by_role("slider").fill("25000")
    root.locator("tr[aria-current] .rbx-num", has_text="25\u2009000").wait_for()
    state = root.get_by_role("table", name="State of long")
    state.get_by_text("(25000 items)").wait_for()
    root.get_by_role("button", name="next row").click()
    state.get_by_text("(25001 items)").first.wait_for()
    root.get_by_role("button", name="50 rows after, of 50\u2009003").click()
    root.locator(".rbx-num", has_text="25\u2009050").first.wait_for()
    bench.shot("fifty_thousand")


PARSED = """(text) => { SCRIPT
  const read = parsed(text); return read && read.outerHTML; }"""
EVIL = '<html xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="alert(1)"/></html>'


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_long_limits_are_read_beside_their_values(lab, desk, theme):
    bench = opened(lab, desk, WIDE, name="wide.ipynb")
    dress(bench.page, theme)
    try:
        why = bench.root.locator(".rbx-why")
        for said in ("of 24 items", "between", "kept"):
            why.get_by_text(said).first.wait_for()
        bench.shot(f"long_limits_{theme}")
        # Nothing is squeezed to a few letters a line.
        assert why.bounding_box()["height"] < 320
        assert bench.root.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        assert why.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        assert bench.desk.watched.ask("faint", bench.root) == []
    finally:
        dress(bench.page, "light")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (EVIL, None),
        ("<svg", None),
        ("no markup", None),
        (f'<svg xmlns="http://www.w3.org/2000/svg"><g onclick="x()"/>{EVIL}</svg>', "<g"),
        ('<script xmlns="http://www.w3.org/2000/svg">alert(1)</script>', None),
    ],
)
def test_a_picture_that_is_none_is_not_drawn(tab, text, kept):
    from runbook_nb.widgets import static

    script = static.script("widget.js", "explorer.js").replace("export default { render };", "")
    page = tab().page
    page.set_content("<!doctype html><title>it</title>")
    found = page.evaluate(PARSED.replace("SCRIPT", script), text)
    assert (found is None) == (kept is None)
    if kept:
        assert kept in found
        assert "onclick" not in found
        assert "img" not in found
