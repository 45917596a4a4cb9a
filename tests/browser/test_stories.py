"""The stories of an author and of a reviewer with their widgets alive, in a real JupyterLab.

What a reader without a kernel meets is in the files, and `test_lab` looks at it.
"""

from pathlib import Path

import nbformat
import pytest
from lab_server import CURRENT, dress
from watched import of_theme

FOLDER = Path(__file__).parents[2] / "notebooks"
ALIVE = "import runbook_nb as rb\n\nrb.settings.static = False"
#: What each widget of a notebook says when all cells were run, in their order.
STORIES = {
    "04_iterate_rules": (("1 verdict changes", "LGA 2013-12-10", "25.93"),),
    "05_explore": (
        ("root_certificates", "3753 rows, from the live record", "row 36 of 3753"),
        ("root_certificates", "as_of"),
    ),
    "07_incident_by_hand": (
        ("hand-over", "sign_off", "Approve"),
        ("nist-800-61-ir", "from the live record"),
    ),
}
WIDGETS = ".jp-NotebookPanel .rbw-outer"
ERRORS = f"""() => [...{CURRENT}.content.model.cells].flatMap((cell) =>
  (cell.toJSON().outputs ?? []).filter((output) => output.output_type === "error")
    .map((output) => output.evalue))"""
WIDTH, TALLEST = 1100, 14_000


@pytest.mark.parametrize("name", STORIES)
def test_a_story_runs_with_its_widgets_alive(lab, desk, name):
    document = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    document.cells.insert(1, nbformat.v4.new_code_cell(ALIVE))
    lab.put(f"alive/{name}.ipynb", nbformat.writes(document), trust=True)
    desk.page.set_viewport_size({"width": WIDTH, "height": 1_400})
    desk.open(f"alive/{name}.ipynb", run=True)
    assert desk.page.evaluate(ERRORS) == []

    widgets = desk.page.locator(WIDGETS)
    widgets.first.wait_for()
    said = STORIES[name]
    for number, words in enumerate(said):
        for word in words:
            widgets.nth(number).get_by_text(word).first.wait_for(state="attached")
    assert widgets.count() == len(said)

    desk.spread(WIDTH, TALLEST)
    try:
        for theme in ("light", "dark"):
            dress(desk.page, theme)
            for number in range(len(said)):
                widget = widgets.nth(number)
                assert of_theme(desk.watched.shares(widget), theme)
                desk.watched.shot_of(widget, f"story_{name}_{number + 1}_{theme}")
            desk.watched.shot(f"story_{name}_{theme}")
    finally:
        dress(desk.page, "light")
