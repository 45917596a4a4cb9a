"""A form in a real JupyterLab: filled in, run, stopped, failing, with a source that hangs."""

import nbformat
import pytest
from lab_server import CURRENT, dress
from watched import of_theme

#: A runbook with four fields, whose source waits as long as the gate is closed.
SETUP = """
import asyncio, threading
import runbook_nb as rb
rb.settings.static = False
gate = threading.Event(); gate.set()
broken = threading.Event()

posture = rb.RuleSet("health-signal", "v3", rules=[
    rb.Rule({"age_known": {"eq": False}}, then="declined", label="the age signal is unreadable"),
    rb.Rule({"age_days": {"gt": 7}}, then="unprotected", unit="days",
            label="last backup older than the 7-day threshold"),
], default=rb.Default("protected", label="last backup within the 7-day threshold"))
SITES = ["ap-south-1", "eu-central-1", "eu-west-1", "us-east-2"]
AGES = [2, 30, None, 1, 9, 3, 4, 12, 0, 5, 6, 2]

@rb.tool(description="Backup subjects with the age of their last backup.")
def backup_inventory(cluster: str):
    gate.wait(60)
    rows = [{"subject": f"{cluster}/prod/db-{n:03}", "age_days": age, "age_known": age is not None}
            for n, age in enumerate(AGES)]
    return rb.coverage({"rows": rows}, checked=[f"the backup inventory of {cluster}, 12 rows"],
        cannot_cover=[rb.Item("why a job was paused", why="no change record is kept")])

def judge(scope):
    scope.update(scope.args["item"])

def verdict(word):
    return lambda scope: scope.set("verdict", word)

subject = (rb.flow_chart("subject", judge, id="load")
    .add_decider("Protection posture", rules=posture, id="posture")
    .branch("protected", verdict("protected")).branch("unprotected", verdict("unprotected"))
    .branch("declined", verdict("declined")).end().build())

def procedure(tools):
    async def inventory(scope):
        cluster = scope.args["cluster"]
        answer = await asyncio.to_thread(
            lambda: asyncio.run(tools.call("backup_inventory", {"cluster": cluster})))
        scope["subjects"] = answer["result"]["rows"]

    def collect(scope):
        if broken.is_set():
            raise KeyError("no key <b>age_days</b>")
        scope["verdicts"] = [
            {"subject": s.item["subject"], "verdict": s.value["verdict"], "age": s.item["age_days"]}
            for s in scope["results"] if s.status == "ok"]

    return (rb.flow_chart("backup-protection-triage", inventory, id="inventory",
                          stage_name="Take the inventory")
        .add_parallel_for_each("Assess each subject", id="per-subject",
            items=lambda s: s["subjects"], branch=subject, max_branches=50, into="results",
            subject="subject")
        .add_function("Collect", collect, id="collect").build())

triage = rb.runbook_as_tool(
    name="backup_triage", description="Protection posture of every backup subject of a cluster.",
    procedure=procedure, result_kind="verdict/backup-posture", rules=posture,
    verdicts=rb.Verdicts(decider="Protection posture", rank=["unprotected", "declined"]),
    composed_of=["backup_inventory"],
    input_schema={"type": "object", "required": ["cluster", "window"], "properties": {
        "cluster": {"type": "string", "enum": SITES, "description": "Where to look."},
        "window": {"type": "integer", "minimum": 1, "maximum": 90,
                   "description": "How many days back."},
        "since": {"type": "string", "format": "date", "description": "Leave out what is older."},
        "token": {"type": "string", "writeOnly": True, "description": "For the inventory."},
        "dry": {"type": "boolean", "default": True, "description": "Only look, write no ticket."},
    }})
box = rb.Toolbox([backup_inventory, triage])
"""
FORM = "form = rb.RunForm(box, 'backup_triage')\nform"
ASK = f"""async (code) => {{
  const kernel = {CURRENT}.sessionContext.session.kernel;
  const future = kernel.requestExecute({{ code, store_history: false }});
  let text = "";
  future.onIOPub = (message) => {{ text += message.content.text ?? ""; }};
  await future.done;
  return text;
}}"""
WIDTH, HEIGHT = 1100, 800


@pytest.fixture
def form(lab, desk):
    """Open a notebook with a form, in a window as large as a small screen."""
    cells = [nbformat.v4.new_code_cell(code) for code in (SETUP, FORM)]
    cells[0]["outputs"] = [nbformat.v4.new_output("stream", text="")]
    cells[0]["metadata"] = {"jupyter": {"source_hidden": True}}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    text = nbformat.writes(notebook)
    lab.put("form.ipynb", text, trust=True)
    desk.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    desk.open("form.ipynb", run=True)
    return Form(desk)


class Form:
    """The form as a person meets it."""

    def __init__(self, desk):
        self.desk, self.page = desk, desk.page
        self.root = self.page.locator(".jp-OutputArea-output .rbw")
        self.root.wait_for()
        self.result = self.page.locator(".jp-OutputArea .widget-output .rbnb")
        self.said = self.root.locator(".rbf-said")

    def kernel(self, code):
        """Run something in the kernel, beside what runs, and give what it printed."""
        return self.page.evaluate(ASK, code).strip()

    def fill(self):
        self.root.get_by_label("cluster").select_option(label="eu-west-1")
        self.root.get_by_label("window").fill("7")

    def wait(self, word):
        self.page.wait_for_function(
            "(word) => document.querySelector('.rbf-said').textContent.includes(word)",
            arg=word,
            timeout=30_000,
        )

    def shot(self, name):
        self.desk.watched.shot(f"runform_{name}")


def test_two_fields_and_the_answer_in_the_first_screen(form):
    form.shot("1_empty")
    form.root.get_by_role("button", name="Run").click()
    form.root.get_by_text("is required").first.wait_for()
    assert form.root.locator("[aria-invalid]").count() == 2
    assert form.page.evaluate("document.activeElement.tagName") == "SELECT"
    form.shot("2_problems")
    form.fill()
    form.page.keyboard.press("Enter")  # in the last field that was filled
    form.wait("Finished")
    form.result.wait_for()
    assert form.root.locator("[aria-invalid]").count() == 0
    assert "12 of 12 in Assess each subject" in form.said.text_content()
    # Read without scrolling: how many there are, and the first that needs action.
    headline = form.result.get_by_text("12 subjects").or_(form.result.get_by_text("12 rows"))
    first = form.result.get_by_text("eu-west-1/prod/db-001").first
    for seen in (headline.first, first):
        place = seen.bounding_box()
        assert place["y"] > 0
        assert place["y"] + place["height"] < HEIGHT
    form.shot("3_answer")


def test_run_again_replaces_and_changed_fields_are_said(form):
    form.fill()
    form.root.get_by_role("button", name="Run").click()
    form.wait("Finished")
    form.result.wait_for()
    form.root.get_by_label("cluster").select_option(label="us-east-2")
    form.root.get_by_text("The fields have changed since").wait_for()
    form.shot("4_changed")
    form.root.get_by_role("button", name="Run").click()
    form.result.get_by_text("us-east-2/prod/db-001").first.wait_for()
    assert form.result.count() == 1
    assert "eu-west-1" not in form.result.text_content()
    assert form.root.get_by_text("The fields have changed since").count() == 0


def test_a_source_that_hangs_does_not_hang_the_kernel_and_can_be_stopped(form):
    form.kernel("gate.clear()")
    form.fill()
    form.root.get_by_role("button", name="Run").click()
    form.wait("stage 1 of 3")
    assert "Take the inventory" in form.root.locator(".rbf-current").text_content()
    assert form.kernel("print(form.status, 6 * 7)") == "running 42"
    form.shot("5_running")
    form.root.get_by_role("button", name="Stop").click()
    form.wait("Stopped at")
    assert "Take the inventory" in form.said.text_content()
    assert form.kernel("gate.set(); print(form.status, form.result)") == "stopped None"
    form.shot("6_stopped")
    form.root.get_by_role("button", name="Run").click()
    form.wait("Finished")


def test_an_error_is_beside_the_button_with_its_stage(form):
    form.kernel("broken.set()")
    form.fill()
    form.root.get_by_role("button", name="Run").click()
    form.wait("Failed at Collect")
    said = form.said.text_content()
    assert "KeyError" in said
    assert "<b>age_days</b>" in said  # as text
    assert form.root.locator("b").count() == 0
    button = form.root.get_by_role("button", name="Run").bounding_box()
    words = form.said.bounding_box()
    assert abs(words["y"] - button["y"]) < 40
    form.result.wait_for()
    assert "this run gave no answer" in form.result.text_content()
    form.shot("7_failed")


#: A form whose kernel says only what the test says.
ALONE = """(() => { SCRIPT
  const field = { name: "cluster", title: "cluster", kind: "choice", required: true,
    choices: ["a", "b", "c"], description: "", hint: "" };
  const traits = { title: "it", about: "", fields: [field], entries: { cluster: "" }, filled: [],
    faults: {}, status: "ready", progress: {}, outcome: {}, stale: false };
  const heard = {}, asked = [];
  const model = { get: (name) => traits[name], save_changes() {}, off() {},
    set: (name, value) => { traits[name] = value; },
    on: (event, act) => { (heard[event] ??= []).push(act); },
    send: (message) => asked.push(message) };
  render({ model, el: document.body });
  const tell = (event, value) => heard[event].forEach((act) => act(value));
  window.kernel = {
    says: (entries) => { traits.entries = entries; tell("change:entries"); },
    answers: () => { for (const { ask, id } of asked.splice(0)) {
      if (ask === "check") tell("msg:custom", { id, answer: { faults: {} } }); } },
  };
})()"""


def test_what_is_chosen_stays_however_late_the_kernel_answers(tab):
    """What it says of an earlier choice is not put in the place of a later one."""
    from runbook_nb.widgets import static

    script = static.script("widget.js", "form.js").replace("export default { render };", "")
    page = tab().page
    page.set_content("<!doctype html><title>it</title>")
    page.evaluate(ALONE.replace("SCRIPT", script))
    choice = page.get_by_label("cluster")
    choice.select_option(label="a")
    choice.select_option(label="b")
    page.evaluate("() => kernel.says({ cluster: '0' })")
    assert choice.input_value() == "1"
    page.evaluate("() => { kernel.says({ cluster: '1' }); kernel.answers(); }")
    assert choice.input_value() == "1"
    # Nothing is asked any more: what Python fills in is shown.
    page.evaluate("() => kernel.says({ cluster: '2' })")
    page.wait_for_function("() => document.querySelector('select').value === '2'")


def test_a_secret_is_in_no_state(form):
    form.fill()
    form.root.get_by_label("token").fill("hunter-22")
    form.root.get_by_role("button", name="Run").click()
    form.wait("Finished")
    assert "hunter-22" not in form.page.content()
    told = form.kernel("import ipywidgets; print(str(ipywidgets.Widget.get_manager_state()))")
    assert "backup_triage" in told
    assert "hunter-22" not in told
    assert form.root.get_by_label("token").get_attribute("type") == "password"


def test_it_works_by_keyboard_alone(form):
    form.root.get_by_label("cluster").focus()
    for _ in range(3):
        form.page.keyboard.press("ArrowDown")
    form.page.keyboard.press("Tab")
    form.page.keyboard.type("7")
    for _ in range(12):  # a date has several places to stop at
        form.page.keyboard.press("Tab")
        if form.page.evaluate("document.activeElement.textContent") == "Run":
            break
    form.page.keyboard.press("Space")
    form.wait("Finished")
    assert form.kernel("print(form.result['result']['verdicts'][0]['subject'])").startswith("eu-w")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read_by_everybody(form, accessibility, theme):
    dress(form.page, theme)
    try:
        form.root.get_by_role("button", name="Run").click()
        form.root.get_by_text("is required").first.wait_for()
        form.fill()
        form.kernel("broken.set()")
        form.root.get_by_role("button", name="Run").click()
        form.wait("Failed")
        form.shot(f"8_failed_{theme}")
        form.kernel("broken.clear()")
        form.root.get_by_role("button", name="Run").click()
        form.wait("Finished")
        form.result.wait_for()
        assert of_theme(form.desk.watched.shares(form.root), theme)
        form.shot(f"9_answer_{theme}")
        assert accessibility(form.page, f"form, {theme}") == {}
    finally:
        dress(form.page, "light")
