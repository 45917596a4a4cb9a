"""Progress of a run in the cell that runs it, in a real JupyterLab."""

import nbformat
import pytest
from lab_server import CURRENT, IDLE, dress
from watched import of_theme

#: A run that goes on as long as the gate is closed, half of its branches done.
SETUP = """
import asyncio
import runbook_nb as rb
rb.settings.static = False
opened = asyncio.Event()

async def wait(scope):
    if scope.args["index"] >= 6:
        await opened.wait()

chart = (rb.flow_chart("backup-protection-triage", lambda s: None, id="a", stage_name="Load")
    .add_parallel_for_each("Assess each subject", id="each", items=lambda s: list(range(12)),
        branch=rb.flow_chart("subject", wait, id="wait").build(), max_branches=12,
        max_concurrency=1, into="slots")
    .add_function("Collect", lambda s: None, id="c").build())

async def open_later(seconds):
    await asyncio.sleep(seconds)
    opened.set()
"""
RUN = "later = asyncio.ensure_future(open_later(6))\nrun = await chart.run()\nrun.status"
START = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
CARD = ".jp-OutputArea-output .rbnb"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_cell_shows_how_far_its_run_has_come(lab, desk, accessibility, theme):
    cells = [nbformat.v4.new_code_cell(code) for code in (SETUP, RUN, "2 + 2")]
    cells[0]["outputs"] = [nbformat.v4.new_output("stream", text="")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    lab.put("progress.ipynb", nbformat.writes(notebook), trust=True)
    desk.page.set_viewport_size({"width": 1100, "height": 1400})
    desk.open("progress.ipynb")
    dress(desk.page, theme)
    try:
        desk.page.evaluate(START)
        card = desk.page.locator(CARD)
        card.get_by_text("Stage 2 of 3, Assess each subject, 6 of 12").wait_for()
        assert of_theme(desk.watched.shares(card), theme)
        desk.watched.shot(f"progress_running_{theme}")
        card.get_by_text("3 stages, 12 of 12 in Assess each subject").wait_for()
        desk.page.wait_for_function(IDLE)
        assert card.count() == 1
        outputs = desk.page.evaluate(
            f"() => [...{CURRENT}.content.model.cells].map((c) => c.toJSON().outputs.length)"
        )
        assert outputs == [0, 2, 1]  # the card and the value; the next cell has its own alone
        found = accessibility(desk.page, f"progress, {theme}")
        assert set(found) <= {"minor"}  # the column of signs has a head without words
        desk.watched.shot(f"progress_done_{theme}")
    finally:
        dress(desk.page, "light")
