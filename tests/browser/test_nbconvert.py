"""Notebooks as HTML pages by nbconvert, as they are and with doubtful markup taken out."""

import functools
import re
from pathlib import Path

import pytest
import states
from watched import of_theme

NOTEBOOKS = {
    path.stem: path for path in Path(__file__).parents[2].joinpath("notebooks").glob("*.ipynb")
}
NAMES = ["handed_on", *sorted(NOTEBOOKS)]
OUTPUTS = ".jp-OutputArea-output.jp-RenderedHTMLCommon"
#: What a system prefers must not matter: these pages are of one theme.
OPPOSITE = {"light": "dark", "dark": "light"}


@functools.cache
def text_of(name):
    if name in NOTEBOOKS:
        return NOTEBOOKS[name].read_text(encoding="utf-8")
    from runbook_nb.share.notebook import notebook_text

    with states.frozen():
        return notebook_text(states.envelope(), "handed_on.ipynb")


@pytest.fixture
def converted(need, tmp_path):
    """Convert a notebook; the scripts that nbconvert's own template fetches are left out."""
    import importlib.util

    need(importlib.util.find_spec("nbconvert"), "the package nbconvert")

    def converted(name, *, theme="light", sanitize=False):
        import nbformat
        from nbconvert import HTMLExporter

        without = dict.fromkeys(("require_js_url", "mathjax_url", "mermaid_js_url"), "")
        exporter = HTMLExporter(theme=theme, sanitize_html=sanitize, **without)
        html, _ = exporter.from_notebook_node(nbformat.reads(text_of(name), as_version=4))
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        return path

    return converted


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_a_converted_notebook_is_readable_whatever_the_system_prefers(
    tab, converted, meant, name, theme
):
    watched = tab(viewport={"width": 960, "height": 900}, color_scheme=OPPOSITE[theme])
    watched.show(converted(name, theme=theme))
    outputs = watched.page.locator(OUTPUTS)
    expected = meant(text_of(name))
    assert outputs.count() == len(expected)
    for number, (words, pictures) in enumerate(expected):
        output = outputs.nth(number)
        assert watched.ask("words", output) == words
        assert output.locator("img").count() == pictures
        assert watched.flaws(output) == {}
    watched.shot(f"nbconvert_{name}_{theme}", full_page=True)
    shares = watched.shares(outputs.locator("img").first)
    assert of_theme(shares, theme), shares


@pytest.mark.parametrize("name", NAMES)
def test_where_nbconvert_writes_tags_out_no_word_is_lost(tab, converted, meant, name):
    """With ``sanitize_html`` it shows as text the tags it does not know, such as ``th``.

    That is how it treats tables of any origin; a browser then moves what stood in them.
    """
    watched = tab(viewport={"width": 960, "height": 900})
    watched.show(converted(name, sanitize=True))
    outputs = watched.page.locator(OUTPUTS)
    expected = meant(text_of(name))
    assert outputs.count() == len(expected)
    for number, (words, _) in enumerate(expected):
        shown = watched.ask("words", outputs.nth(number))
        assert [word for word in re.findall(r"\w+", words) if word not in shown] == []
    watched.shot(f"nbconvert_{name}_sanitized", full_page=True)
