"""The form of a playbook in a real JupyterLab: filled in by keyboard, and a plan that follows."""

import nbformat
import pytest
from lab_server import dress
from watched import of_theme

SETUP = """
import runbook_nb as rb
rb.settings.static = False
plan = rb.PlaybookEnforcer.from_playbook(rb.load_playbook('''
id: hand-over
name: Hand over the incident
steps:
- {id: read_back, description: Read it back to whoever comes next., kind: manual,
   hints: [Begin with what is still open.]}
- {id: sign_off, description: The lead agrees that the host may go back., kind: approval}
- {id: restore, description: Put the host back on the network., expected_tools: [restore_host]}
'''))
"""
LIVE = "plan.live()"
FORM = "form = rb.PlaybookForm(plan)\nform"
WIDTH, HEIGHT = 1100, 1500


@pytest.fixture
def form(lab, desk):
    """Open a notebook with a live plan and a form."""
    cells = [nbformat.v4.new_code_cell(code) for code in (SETUP, LIVE, FORM)]
    cells[0]["outputs"] = [nbformat.v4.new_output("stream", text="")]
    cells[0]["metadata"] = {"jupyter": {"source_hidden": True}}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    lab.put("playbookform.ipynb", nbformat.writes(notebook), trust=True)
    desk.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    desk.open("playbookform.ipynb", run=True)
    desk.page.locator(".jp-OutputArea-output .rbp").wait_for()
    return desk


def test_a_person_fills_it_in_by_keyboard_and_the_plan_follows(form):
    page, root = form.page, form.page.locator(".jp-OutputArea-output .rbp")
    plan = page.locator(".jp-OutputArea-output .rbnb").filter(has_text="pointer").first
    page.get_by_label("Who").focus()
    page.keyboard.press("Enter")
    root.get_by_text("who acts is recorded").wait_for()
    assert page.get_by_label("Who").get_attribute("aria-invalid") == "true"
    form.watched.shot("playbookform_1_nobody")

    page.keyboard.type("R. Ito")
    page.keyboard.press("Tab")
    page.keyboard.type("Read to A. Novak.\nNo questions.")
    assert page.get_by_label("Note").input_value() == "Read to A. Novak.\nNo questions."
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Close the step"
    page.keyboard.press("Enter")
    root.locator(".rbf-said").get_by_text("'read_back' is closed").wait_for()
    root.get_by_role("button", name="Approve").wait_for()
    assert page.get_by_label("Note").input_value() == ""
    assert page.get_by_label("Who").input_value() == "R. Ito"
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    plan.get_by_text("No questions.").first.wait_for()
    assert root.locator("[aria-current=step]").text_content().count("sign_off") == 1

    for theme in ("light", "dark"):
        dress(page, theme)
        assert of_theme(form.watched.shares(root), theme)
        form.watched.shot(f"playbookform_2_{theme}")
    dress(page, "light")

    root.get_by_role("button", name="Approve").press("Enter")
    root.get_by_text("done by calls of 'restore_host'").wait_for()
    assert page.get_by_label("Who").count() == 0 or not page.get_by_label("Who").is_visible()
    plan.get_by_text("approved by").first.wait_for()
    form.watched.shot("playbookform_3_calls")
