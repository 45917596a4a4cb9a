"""What front ends make of an output that are not run here, as far as their rules are published.

JupyterLab's rules are held in `test_checklist`, and it and nbconvert are run in ``tests/browser``.
Here are GitHub's allow-list, the order in which VS Code picks a form, nbconvert's order, which
nbviewer serves, and Colab's one frame for each output.
"""

from __future__ import annotations

import re

import pytest
from displayables import SAMPLES, USUAL, frozen, shown_classes
from github import TAGS, kept_by_github
from untrusted import reading

import runbook_nb as rb
from runbook_nb.render import theme
from runbook_nb.render.bundle import HTML, JSON, TEXT
from runbook_nb.settings import settings
from runbook_nb.widgets.base import WIDGET, Widget

CLASSES = shown_classes()
NAMES = sorted(CLASSES)
#: The order of VS Code's reader of notebooks (extensions/ipynb, ``orderOfMimeTypes``); a type
#: nothing is installed for is passed over.
VSCODE = (
    "application/vnd.",
    "application/vdom.",
    "application/geo+json",
    "application/x-nteract-model-debug+json",
    "text/html",
    "application/javascript",
    "image/gif",
    "text/latex",
    "text/markdown",
    "image/png",
    "image/svg+xml",
    "image/jpeg",
    "application/json",
    "text/plain",
)
#: The order of nbconvert's HTML exporter, checked against it where it is installed.
NBCONVERT = (
    "application/vnd.jupyter.widget-view+json",
    "application/javascript",
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "text/vnd.mermaid",
    "text/latex",
    "image/png",
    "image/jpeg",
    "text/plain",
)


@pytest.fixture(scope="module")
def outputs():
    """Give the forms of every class that shows itself, made once."""
    with frozen():
        return {name: SAMPLES[CLASSES[name]](USUAL)._repr_mimebundle_()[0] for name in NAMES}


def words(html):
    return re.sub(r"\s+", " ", " ".join(reading(html))).split(" ")


def picked(order, forms, installed=()):
    """Give the form a front end takes first, of those it can show."""
    able = [kind for kind in forms if not kind.startswith("application/vnd.") or kind in installed]
    places = {
        kind: next((n for n, one in enumerate(order) if kind.startswith(one)), len(order))
        for kind in able
    }
    return min(able, key=places.__getitem__)


# --- GitHub ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", TAGS)
@pytest.mark.parametrize("name", NAMES)
def test_github_keeps_every_word_in_its_order(outputs, name, version):
    html = outputs[name][HTML]
    assert words(kept_by_github(html, version=version)) == words(html)


@pytest.mark.parametrize("name", NAMES)
def test_github_keeps_what_folds_and_what_is_a_table(outputs, name):
    html = outputs[name][HTML]
    kept = kept_by_github(html)
    for tag in ("<details", "<summary", "<table", "<tr", "<td", "<th ", "<li", "<dt", "<dd"):
        assert kept.count(tag) == html.count(tag)
    assert kept.count(' scope="') == html.count(' scope="')
    assert kept.count(" open=") == html.count("<details") - len(
        re.findall("<details(?![^>]* open)", html)
    )


@pytest.mark.parametrize("name", NAMES)
def test_github_keeps_no_style_and_no_source_and_what_is_left_says_so_in_words(outputs, name):
    """Its rules let pictures in from the web alone; a list or table says what the picture says."""
    html = outputs[name][HTML]
    kept = kept_by_github(html, version=3)
    assert "style=" not in kept
    assert "class=" not in kept
    assert "src=" not in kept
    for image in re.findall(r"<img[^>]*>", kept):
        assert re.search(r'alt="[^"]*\d[^"]*"', image), "what happened, with its counts"
    if "<img" in html:  # under a table of steps the picture draws that
        assert re.search(r"as a list|<ol|>Steps</strong>", html)


def test_the_rules_of_github_take_away_what_they_are_for():
    given = (
        '<script>alert(1)</script><style>p{}</style><p onclick="x" style="color:red" id="a" '
        'class="b" title="t">kept <u>text</u></p><a href="javascript:x">link</a>'
        '<a href="https://example.org">out</a><img src="data:image/png;base64,AA" alt="a 1">'
        '<img src="https://example.org/a.png">'
    )
    assert kept_by_github(given) == (
        '<p title="t">kept text</p><a>link</a><a href="https://example.org">out</a>'
        '<img alt="a 1"><img src="https://example.org/a.png">'
    )


# --- VS Code -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_vscode_takes_the_card(outputs, name):
    assert picked(VSCODE, outputs[name]) == HTML


def test_vscode_takes_the_card_where_a_form_for_machines_or_a_widget_comes_along():
    with frozen(), settings(mime_json=True):
        forms = SAMPLES[rb.Envelope]("vs")._repr_mimebundle_()[0]
    assert {JSON, HTML, TEXT} == set(forms)
    assert picked(VSCODE, forms) == HTML
    assert picked(VSCODE, {WIDGET: {}, **forms}) == HTML
    assert picked(VSCODE, {WIDGET: {}, **forms}, installed={WIDGET}) == WIDGET


@pytest.mark.parametrize("name", NAMES)
def test_vscode_in_restricted_mode_falls_back_to_text_that_stands_alone(outputs, name):
    """What can run is not rendered there; of our forms the text is left."""
    plain = {kind: form for kind, form in outputs[name].items() if kind != HTML}
    assert picked(VSCODE, plain) == TEXT
    assert len(outputs[name][TEXT].split()) >= 3


def test_vscode_is_themed_by_its_own_names_and_classes():
    css = theme.css()
    assert {"--vscode-editor-foreground", "--vscode-editor-background"} <= set(
        re.findall(r"--vscode-[a-z-]+", css)
    )
    assert "body.vscode-dark .rbnb" in css


# --- nbconvert, and nbviewer, which serves what it gives ---------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_nbviewer_takes_the_card(outputs, name):
    assert picked(NBCONVERT, outputs[name]) == HTML


def test_the_order_of_nbconvert_is_what_is_written_here():
    exporters = pytest.importorskip("nbconvert.exporters", reason="nbconvert is not here")
    asked = exporters.HTMLExporter().default_config.NbConvertBase.display_data_priority
    assert [kind for kind in asked if kind in NBCONVERT] == list(NBCONVERT)


@pytest.mark.parametrize("sanitize", [False, True])
def test_nbconvert_shows_every_word_of_every_card(outputs, sanitize):
    exporters = pytest.importorskip("nbconvert.exporters", reason="nbconvert is not here")
    from nbformat import v4

    cells = [
        v4.new_code_cell(name, outputs=[v4.new_output("display_data", data=outputs[name])])
        for name in NAMES
    ]
    made, _ = exporters.HTMLExporter(sanitize_html=sanitize).from_notebook_node(
        v4.new_notebook(cells=cells)
    )
    told = " ".join(words(made))
    for name in NAMES:
        if sanitize:  # tags it does not know are written out, ``th`` among them, between the words
            said = {word for one in words(outputs[name][HTML]) for word in re.findall(r"\w+", one)}
            assert [word for word in said if word not in told] == [], name
        else:
            assert " ".join(words(outputs[name][HTML])) in told, name


# --- Colab -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_one_output_alone_is_complete(outputs, name):
    """Each output of Colab is a page of its own: nothing can come from another cell."""
    html = outputs[name][HTML]
    assert html.count(f"<style>{theme.css()}</style>") == 1
    assert html.index("<style>") < html.index("</style>") < len(html) - len("</div>")
    assert not re.findall(r'(?:src|href)="(?!data:)', html)
    assert "url(" not in html
    assert "@import" not in html
    used = {one for value in re.findall(r'class="([^"]*)"', html) for one in value.split()}
    named = set(re.findall(r"\.(rb-[a-z]+)", theme.css()))
    assert used <= named | {"rbnb"} | {one for one in used if one.startswith("rb-")}


def test_a_dark_colab_is_known():
    assert 'html[theme="dark"] .rbnb' in theme.css()


def test_a_widget_brings_script_and_stylesheet_itself():
    """Nothing is fetched and nothing is shared with another cell."""
    for one in CLASSES.values():
        if issubclass(one, Widget):
            assert not re.search(r"\bimport\s*[({\"']|https?://(?!www\.w3\.org)", one._esm)
            assert "@import" not in one._css
            assert "url(" not in one._css
