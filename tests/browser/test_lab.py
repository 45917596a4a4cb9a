"""Notebooks in a real JupyterLab: as their author, a colleague and a stranger meet them.

Each is opened three times: run with a living kernel, signed but without a kernel, and neither
signed nor with a kernel. In both themes, what can be read must be what the file holds.
"""

import functools
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import states
from lab_server import dress
from watched import of_theme

import runbook_nb as rb
from runbook_nb.render.html import render_html

NOTEBOOKS = sorted(Path(__file__).parents[2].joinpath("notebooks").glob("*.ipynb"))
#: Answers handed on as notebooks.
HANDED_ON = {
    "handed_on.ipynb": states.envelope,
    "handed_on_312.ipynb": states.envelope_312,
    "handed_on_empty.ipynb": states.envelope_empty,
}
NAMES = [*(path.name for path in NOTEBOOKS), *HANDED_ON]
WAYS = ("run", "no kernel", "untrusted")
#: Not run in the browser: the first shows what each machine has, the others only cells of kinds
#: that the rest run there. All of them are run, and their outputs compared, as notebooks are.
AS_STORED = {
    "13_my_environment.ipynb",
    *("11_cannot_say.ipynb", "12_late_flights.ipynb"),
    *("14_patch_deadlines.ipynb", "15_hand_to_an_agent.ipynb"),
    *("06_playbooks.ipynb", "07_incident_by_hand.ipynb"),
}
CASES = [(name, way) for name in NAMES for way in WAYS if way != "run" or name not in AS_STORED]
WIDTH = 900
#: Pictures have limits.
TALLEST = 12_000
OUTPUTS = ".jp-NotebookPanel .jp-OutputArea-output.jp-RenderedHTML"
PANEL_SCROLLS = """() => {
  const panel = document.querySelector(".jp-NotebookPanel .jp-WindowedPanel-outer");
  return panel.scrollWidth - panel.clientWidth;
}"""


@functools.cache
def text_of(name):
    if name in HANDED_ON:
        from runbook_nb.share.notebook import notebook_text

        with states.frozen():
            return notebook_text(HANDED_ON[name](), name)
    return next(path for path in NOTEBOOKS if path.name == name).read_text(encoding="utf-8")


def read_again(name):
    """Give what a notebook that was handed on shows when it reads itself: it carries no walk."""
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text_of(name), encoding="utf-8")
        envelope = rb.Envelope.from_notebook(path)
    shown = [envelope, *([envelope.why(row=0)] if envelope.verdicts else [])]
    return tuple(render_html(each.view()) for each in shown)


def test_what_is_not_run_in_the_browser_is_there():
    assert set(NAMES) >= AS_STORED


@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_notebook_reads_alike_trusted_or_not_with_a_kernel_or_without(
    lab, desk, meant, name, way
):
    path = f"{way.replace(' ', '_')}/{name}"
    lab.put(path, text_of(name), trust=way == "no kernel")
    trusted = desk.open(path, run=way == "run", kernel=way == "run")
    assert all(trusted) if way != "untrusted" else not any(trusted)

    reads_itself = way == "run" and name in HANDED_ON
    expected = meant(read_again(name) if reads_itself else text_of(name))
    assert expected
    page, watched = desk.page, desk.watched
    outputs = page.locator(OUTPUTS)
    styles = outputs.locator("style").count()
    assert styles == 0 if way == "untrusted" else styles > 0
    desk.spread(WIDTH, TALLEST)
    for theme in ("light", "dark"):
        dress(page, theme)
        assert page.evaluate(PANEL_SCROLLS) <= 0
        assert outputs.count() == len(expected)
        for number, (words, pictures) in enumerate(expected):
            output = outputs.nth(number)
            assert watched.ask("words", output) == words
            assert output.locator("img").count() == pictures
            assert watched.flaws(output) == {}
        watched.shot(f"lab_{path.replace('/', '_').removesuffix('.ipynb')}_{theme}")
        if outputs.locator("img").count():
            shares = watched.shares(outputs.locator("img").first)
            assert of_theme(shares, theme), shares
