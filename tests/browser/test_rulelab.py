"""The rule lab in a real JupyterLab: by mouse and by keyboard, in both themes, without a kernel."""

import lab_rules
import pytest
from lab_server import IDLE, OPEN, PATIENCE, RUN_ALL, dress
from watched import of_theme

import runbook_nb as rb

ROOT = ".jp-NotebookPanel .rbw-outer"
HEADLINE = f"{ROOT} .rbwl-head"
WIDTH = 1160


class Bench:
    """A lab on the desk, with what a person does to it."""

    def __init__(self, desk):
        self.desk = desk
        self.page = desk.page
        self.root = desk.page.locator(ROOT)

    def box(self, number):
        return self.root.get_by_role("group", name=f"Rule {number}", exact=True)

    def field(self, label):
        return self.root.get_by_label(label, exact=True)

    def reads(self, headline):
        self.page.locator(HEADLINE, has_text=headline).wait_for()

    def order(self):
        texts = self.root.locator(".rbwl-rule:not(.rbwl-default)").evaluate_all(
            "(all) => all.map((one) => one.querySelector('[data-field=key]')?.value"
            " ?? one.querySelector('.rbw-data').textContent)"
        )
        return [text.split()[0] for text in texts]

    def shot(self, name):
        self.desk.spread(WIDTH, 6_000)
        self.desk.watched.shot(f"rulelab_{name}")


@pytest.fixture
def bench(lab, desk):
    lab.put("rules.ipynb", lab_rules.notebook(lab_rules.CELL, lab_rules.SHOW), trust=True)
    page = desk.page
    page.set_viewport_size({"width": WIDTH, "height": 1400})
    page.evaluate(OPEN, ["rules.ipynb", True])
    page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    page.evaluate(RUN_ALL)
    page.wait_for_selector(HEADLINE)
    page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    return Bench(desk)


def test_a_slider_is_drawn_and_the_subjects_that_change_are_shown(bench):
    bench.reads("No verdict changes")
    slider = bench.box(3).get_by_role("slider")
    place = slider.bounding_box()
    low, high = (float(slider.get_attribute(name)) for name in ("min", "max"))

    def at(value):
        return place["x"] + 8 + (place["width"] - 16) * (value - low) / (high - low)

    middle = place["y"] + place["height"] / 2
    bench.page.mouse.move(at(7), middle)
    bench.page.mouse.down()
    for value in range(8, 15):
        bench.page.mouse.move(at(value), middle)
    bench.page.mouse.up()
    bench.reads("4 verdicts change")
    assert slider.input_value() == "14"
    assert bench.field("limit of age_days, rule 3").last.input_value() == "14"
    table = bench.root.get_by_role("table", name="Changed")
    assert table.get_by_role("row").count() == 5
    assert table.get_by_text("us-east-2/prod/orders-544").is_visible()
    counts = bench.root.get_by_role("table", name="Verdicts")
    assert counts.get_by_role("row").nth(1).inner_text().split() == [
        "●",
        "protected",
        "282",
        "286",
        "+4",
    ]
    assert "4 change" in bench.root.locator("svg").text_content()
    assert bench.box(3).inner_text().split("\n")[-1] == "fired 3, before 7 · limit 7 → 14"


def test_everything_is_done_by_keyboard(bench):
    page = bench.page
    limit = bench.field("limit of age_days, rule 3").first
    limit.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("14")
    page.keyboard.press("Enter")
    bench.reads("4 verdicts change")
    assert limit.evaluate("(one) => one === document.activeElement")
    slider = bench.box(3).get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    bench.reads("3 verdicts change")
    bench.page.wait_for_function(
        "(root) => [...document.querySelectorAll(root + ' input[type=number]')]"
        ".some((one) => one.value === '12')",
        arg=ROOT,
    )
    assert limit.input_value() == slider.input_value() == "12"
    # Order: the handle moves its rule, and stays the focus.
    bench.root.get_by_role("button", name="Rule 3: move").focus()
    page.keyboard.press("ArrowUp")
    bench.root.get_by_role("button", name="Rule 2: move").wait_for()
    page.wait_for_function(
        "() => document.activeElement.getAttribute('aria-label')?.startsWith('Rule 2')"
    )
    assert bench.order() == ["age_known", "age_days", "policy"]
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "() => document.activeElement.getAttribute('aria-label')?.startsWith('Rule 3')"
    )
    page.keyboard.press("ArrowDown")  # the default is the last and stays it
    assert bench.order() == ["age_known", "policy", "age_days"]
    live = bench.root.locator("[aria-live=polite]")
    assert live.inner_text().startswith("3 verdicts change, 300 unchanged")
    # Every control can be reached, and shows that it is.
    stops = bench.root.locator("button:visible, input:visible, select:visible").count()
    bench.root.get_by_role("button", name="Reset").focus()
    seen = set()
    for _ in range(stops):
        seen.add(
            page.evaluate(
                "() => { const one = document.activeElement; const style = getComputedStyle(one);"
                " return one.closest('.rbw-outer') ? style.outlineStyle !== 'none' : null; }"
            )
        )
        page.keyboard.press("Tab")
    assert seen <= {True, None}
    assert True in seen


def test_a_rule_is_dragged_before_another(bench):
    grip = bench.root.get_by_role("button", name="Rule 3: move")
    grip.drag_to(bench.box(1))
    bench.root.locator(".rbwl-rule").first.get_by_label("key of rule 1").wait_for()
    page = bench.page
    page.wait_for_function(
        "(root) => document.querySelector(root + ' [data-field=key]').value === 'age_days'",
        arg=ROOT,
    )
    assert bench.order() == ["age_days", "age_known", "policy"]


def test_what_is_dropped_from_elsewhere_moves_no_rule(bench):
    """Neither an empty text, which reads as the number 0, nor the number of a rule."""
    for text in ("", "0", "2"):
        bench.box(2).evaluate(
            """(box, text) => {
              const dataTransfer = new DataTransfer();
              if (text) dataTransfer.setData("text/plain", text);
              box.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
            }""",
            text,
        )
    bench.root.get_by_role("button", name="+ rule").click()  # is answered after what was dropped
    bench.box(4).wait_for()
    assert bench.order()[:3] == ["age_known", "policy", "age_days"]


def test_what_no_rule_decides_and_what_lies_outside_have_fields(lab, desk):
    lab.put("around.ipynb", lab_rules.notebook(lab_rules.CELL, lab_rules.AROUND), trust=True)
    page = desk.page
    page.set_viewport_size({"width": WIDTH, "height": 1400})
    page.evaluate(OPEN, ["around.ipynb", True])
    page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    page.evaluate(RUN_ALL)
    page.wait_for_selector(HEADLINE)
    bench = Bench(desk)
    bench.reads("No verdict changes")
    bench.field("verdict of the unreadable").select_option("old")
    bench.reads("1 verdict changes")
    why = bench.field("why it lies outside, 1")
    why.fill("they are gone")
    why.press("Enter")
    more = bench.field("Add to limit of tier, ground 1")
    more.fill("a")
    more.press("Enter")
    bench.reads("2 verdicts change")
    more = bench.field("Add to limit of tier, ground 1")
    more.fill("")
    upper = bench.field("upper limit of days, rule 1")
    upper.fill("12")
    upper.press("Enter")
    bench.reads("3 verdicts change")
    bench.shot("around")
    # More rules than a page.
    assert bench.root.get_by_text("rules 1 to 100 of 103").is_visible()
    bench.root.get_by_role("button", name="rules after").click()
    bench.root.get_by_text("rules 101 to 103 of 103").wait_for()
    assert bench.box(103).count() == 1
    assert bench.box(1).count() == 0
    bench.root.get_by_role("button", name="rules before").click()
    bench.box(1).wait_for()


def test_a_wrong_key_is_told_in_its_box_and_the_near_one_put_in_its_place(bench):
    bench.root.get_by_role("button", name="+ rule").click()
    bench.box(4).wait_for()
    key = bench.field("key of rule 4")
    key.fill("retention_day")
    key.press("Enter")
    bench.box(4).get_by_text("not applied:").wait_for()
    assert "no subject has a recorded key 'retention_day'" in bench.box(4).inner_text()
    bench.reads("No verdict changes")
    bench.shot("not_applied")
    bench.box(4).get_by_role("button", name="retention_days").click()
    bench.box(4).get_by_text("not applied:").wait_for(state="detached")
    bench.field("operator of retention_days, rule 4").select_option("lt")
    bench.field("limit of retention_days, rule 4").first.fill("10")
    bench.field("limit of retention_days, rule 4").first.press("Enter")
    bench.page.wait_for_function(
        "(at) => document.querySelector(at).textContent.includes('verdicts change')", arg=HEADLINE
    )
    limit = bench.field("limit of retention_days, rule 4").first
    limit.fill("")
    limit.press("Enter")
    bench.box(4).get_by_text("a number is missing").wait_for()
    bench.root.get_by_role("button", name="Reset").click()
    bench.reads("No verdict changes")
    assert bench.box(4).count() == 0


def test_a_folded_rule_is_opened_and_its_verdict_and_label_changed(bench):
    assert bench.box(2).get_by_text("never fired").is_visible()
    bench.box(2).get_by_role("button", name="Open rule 2").click()
    limit = bench.field("limit of policy, rule 2")
    limit.fill("standard")
    limit.press("Enter")
    bench.reads("289 verdicts change")
    bench.field("verdict of rule 2").select_option("unprotected")
    bench.reads("282 verdicts change")
    label = bench.field("label of rule 2")
    label.fill("<b>standard</b> is not enough")
    label.press("Enter")
    bench.box(2).get_by_text("label changed").wait_for()
    assert bench.root.locator("b").count() == 0


def test_the_change_is_kept_and_copied(bench):
    limit = bench.field("limit of age_days, rule 3").first
    limit.fill("14")
    limit.press("Enter")
    bench.reads("4 verdicts change")
    bench.root.get_by_role("button", name="Copy as Python").click()
    bench.page.wait_for_function(
        "(root) => { const at = document.querySelector(root);"
        " return !at.querySelector('textarea').hidden || at.innerText.includes('Copied'); }",
        arg=ROOT,
    )
    text = bench.root.locator("textarea").input_value()
    held = {}
    exec(compile(text, "<cell>", "exec"), held)  # noqa: S102 - a text our own lab wrote
    assert held["rules"].title == "health-signal v4"
    assert held["rules"].rules[2] == rb.Rule(
        {"age_days": {"gt": 14}}, "unprotected", "last backup older than the limit", "days"
    )
    bench.root.get_by_role("button", name="Copy as YAML").click()
    bench.page.wait_for_function(
        "(root) => document.querySelector(root + ' textarea').value.startsWith('name:')", arg=ROOT
    )
    bench.root.get_by_role("button", name="Keep as v4").click()
    bench.root.get_by_text("Kept as health-signal v4").first.wait_for()
    bench.root.get_by_role("button", name="Keep as v5").wait_for()


def test_lists_dates_pairs_and_yes_or_no_have_fields_of_their_own(lab, desk):
    lab.put("kinds.ipynb", lab_rules.notebook(lab_rules.CELL, lab_rules.KINDS), trust=True)
    page = desk.page
    page.set_viewport_size({"width": WIDTH, "height": 1400})
    page.evaluate(OPEN, ["kinds.ipynb", True])
    page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
    page.evaluate(RUN_ALL)
    page.wait_for_selector(HEADLINE)
    bench = Bench(desk)
    bench.reads("No verdict changes")
    more = bench.field("Add to limit of tier, rule 1")
    more.fill("c")
    more.press("Enter")
    bench.reads("1 verdict changes")
    bench.root.get_by_role("button", name="Remove a from limit of tier, rule 1").click()
    bench.reads("2 verdicts change")
    bench.root.get_by_role("button", name="Open rule 2").click()
    day = bench.field("limit of since, rule 2")
    assert day.get_attribute("type") == "date"
    day.fill("2026-01-16")
    day.press("Enter")
    bench.reads("3 verdicts change")
    upper = bench.field("upper limit of score, rule 3")
    upper.fill("7")
    upper.press("Enter")
    bench.reads("4 verdicts change")
    bench.field("limit of live, rule 4").select_option("false")
    bench.reads("5 verdicts change")
    bench.shot("kinds")
    lower = bench.field("lower limit of score, rule 3")
    lower.fill("9")
    lower.press("Enter")
    bench.box(3).get_by_text("not applied:").wait_for()
    bench.reads("5 verdicts change")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read_by_everybody(bench, accessibility, theme):
    dress(bench.page, theme)
    try:
        limit = bench.field("limit of age_days, rule 3").first
        limit.fill("14")
        limit.press("Enter")
        bench.reads("4 verdicts change")
        bench.root.get_by_role("button", name="+ rule").click()
        bench.field("key of rule 4").fill("retention_day")
        bench.field("key of rule 4").press("Enter")
        bench.box(4).get_by_text("not applied:").wait_for()
        bench.shot(theme)
        assert of_theme(bench.desk.watched.shares(bench.root), theme)
        assert accessibility(bench.page, f"rule lab, {theme}") == {}
        bench.page.set_viewport_size({"width": 560, "height": 2600})
        assert bench.root.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        bench.desk.watched.shot(f"rulelab_narrow_{theme}")
    finally:
        dress(bench.page, "light")
