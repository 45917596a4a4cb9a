"""Every class that shows itself, held to what is promised of each view.

The list of classes is read from the package (`displayables`), so a class that is added is met
here at once. Widgets are met by the static view that stands in for them.
"""

from __future__ import annotations

import base64
import inspect
import re
import unicodedata
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import displayables
import pytest
from displayables import SAMPLES, USUAL, frozen, shown_classes
from untrusted import HINTS, dropped, listed, reading, sanitized

import runbook_nb as rb
from runbook_nb._view import Section, Table
from runbook_nb.render import paint, theme
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.render.cells import width
from runbook_nb.settings import settings
from runbook_nb.widgets import static
from runbook_nb.widgets.base import Widget

CLASSES = shown_classes()
NAMES = sorted(CLASSES)
HOSTILE = [
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" id="x',
    "<script>alert(1)</script>",
    r"\N|\G|a`b\l",
    "a\u202eb\u2066c\x1b[31m\x00",
    "![x](javascript:alert(1)) <!--",
]
#: Everything that our own views are made of.
TAGS = listed(
    "div span strong samp p style table caption thead tbody tr th td details summary ul ol li dl "
    "dt dd img figure figcaption colgroup col br"
)
ATTRIBUTES = listed(
    "class style lang dir title alt src width height scope colspan open start value "
    "aria-hidden aria-label role tabindex"
)
#: Marks that turn the direction of text.
DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.fixture(autouse=True)
def steady():
    """Hold clock and ids still, so that what is shown depends on what is shown alone."""
    with frozen():
        yield


def forget():
    """Let the samples be made anew."""
    for name in ("answer", "again", "run", "shelf"):
        getattr(displayables, name).cache_clear()


def sample(name, word=USUAL):
    return SAMPLES[CLASSES[name]](word)


def bundle(name, word=USUAL, **asked):
    return sample(name, word)._repr_mimebundle_(**asked)[0]


class Parts(HTMLParser):
    """What an output is made of."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.comments = set(), [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_comment(self, data):
        self.comments.append(data)


def pictures(html):
    for encoded in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html):
        yield base64.b64decode(encoded).decode("utf-8")


# --- that there is a sample --------------------------------------------------------------------


def test_every_class_that_shows_itself_has_a_sample():
    without = {name for name, one in CLASSES.items() if one not in SAMPLES}
    assert not without, f"give each a sample in {displayables.__file__}: {sorted(without)}"
    assert set(SAMPLES) == set(CLASSES.values())


def test_every_public_class_that_shows_itself_is_among_them():
    public = {getattr(rb, name) for name in rb.__all__}
    shown = {one for one in public if inspect.isclass(one) and hasattr(one, "_repr_mimebundle_")}
    assert {one for one in shown if not inspect.isabstract(one)} <= set(CLASSES.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_of_its_class(name):
    made = type(sample(name))
    # a widget is given a class of its own for its traits
    assert made is CLASSES[name] or (issubclass(made, Widget) and made.__name__ == name)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_says_what_it_looks_like_itself(name):
    made = type(sample(name))
    assert made.view is not rb.Run.__mro__[-2].view
    assert made.view is not Widget.view


# --- text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_text_stands_alone(name):
    text = bundle(name)[TEXT]
    lines = text.splitlines()
    assert all(width(line) <= 100 for line in lines)
    assert all(line == line.rstrip() for line in lines)
    assert not re.search(r"0x[0-9a-f]{6,}|\x1b|art_|call_[A-Za-z0-9]{6}", text)
    # The first line is a sentence: what it is and what is known of it, not the bare name.
    assert len(lines[0].split()) >= 3
    said = repr(sample(name))
    assert said.startswith("<")
    assert said.endswith(">")
    assert "\n" not in said
    assert "cannot be shown" not in text


@pytest.mark.parametrize("name", NAMES)
def test_printing_it_says_what_its_cell_says(name):
    made = sample(name)
    if not isinstance(made, Widget):
        assert str(made) == made._repr_mimebundle_()[0][TEXT]
        assert repr(made) == f"<{str(made).splitlines()[0]}>"


# --- html --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_html_means_the_same_untrusted_and_without_any_style(name):
    html = bundle(name)[HTML]
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)
    assert reading(sanitized(html, styles=False)) == reading(html)


@pytest.mark.parametrize("name", NAMES)
def test_html_is_made_of_our_own_tags_and_nothing_that_acts(name):
    parts = Parts(bundle(name)[HTML])
    assert parts.tags <= TAGS
    assert {key for key, _ in parts.attributes} <= ATTRIBUTES
    sources = [value for key, value in parts.attributes if key == "src"]
    assert all(value.startswith("data:image/svg+xml;base64,") for value in sources)


@pytest.mark.parametrize("name", NAMES)
def test_html_says_in_words_what_the_text_says_first(name):
    data = bundle(name)
    told = " ".join(reading(data[HTML]))
    kind = data[TEXT].split()[0]
    # A widget shows what it is about; a card may say its kind in fuller words.
    assert kind.casefold() in told.casefold() or issubclass(CLASSES[name], Widget)


# --- caps --------------------------------------------------------------------------------------


def tables(card):
    for section in card.sections:
        if isinstance(section, Section):
            for part in section.parts:
                if isinstance(part, Table) and not part.whole:
                    yield section, part


@pytest.mark.parametrize("name", NAMES)
def test_what_is_cut_is_said(name):
    with settings(max_table_rows=1, max_text_rows=1):
        made = sample(name)
        card = made.view()
        data = made._repr_mimebundle_()[0]
    told = " ".join(reading(data[HTML])).replace("\u202f", "")
    for section, table in tables(card):
        if table.total > 1:
            assert re.search(rf"\b1 of {table.total}\b|\b{table.total - 1} more", told), told
            if section.in_text:
                assert re.search(rf"\b{table.total}\b|\b{table.total - 1} more", data[TEXT])


# --- the same bytes ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_made_again_it_shows_the_same_bytes(name):
    shown = []
    for _ in range(2):
        forget()
        with frozen():
            shown.append(bundle(name))
    if name in (
        "SqliteArtifacts",
        "FileArtifacts",
        "RemoteArtifacts",
        "Runs",
    ):  # named after their files
        shown = [
            {kind: re.sub(r"\d+\.db", "n.db", form) for kind, form in data.items()}
            for data in shown
        ]
    assert shown[0] == shown[1]


# --- hostile words -----------------------------------------------------------------------------


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_word_stays_a_word(name, word):
    data = bundle(name, word)
    assert not {
        char
        for char in data[TEXT].replace("\n", "")
        if unicodedata.category(char) in ("Cc", "Cs") or char in DIRECTIONS
    }
    html = data[HTML]
    parts = Parts(html)
    assert parts.tags <= TAGS
    assert {key for key, _ in parts.attributes} <= ATTRIBUTES
    assert all(comment.startswith("runbook_nb:") for comment in parts.comments)
    assert all(
        re.fullmatch(r"rb(nb)?(-[a-z]+)?", one)
        for key, value in parts.attributes
        if key == "class"
        for one in value.split()
    )
    assert set(dropped(html)) <= HINTS
    assert not set(html) & {*DIRECTIONS, "\x1b", "\x00"}
    for svg in pictures(html):
        root = ET.fromstring(svg[svg.index("<svg") :])  # noqa: S314 - our own
        assert not [one for one in root.iter() if one.tag.rpartition("}")[2] in ("script", "image")]
        assert not [key for one in root.iter() for key in one.attrib if key.startswith("on")]
        assert "href" not in svg


@pytest.mark.parametrize("name", NAMES)
def test_a_word_that_looks_like_markup_is_read_as_it_was_written(name):
    """Where a class shows the word at all, it shows it whole and as text."""
    word = "<b>7</b>"
    data = bundle(name, word)
    assert word not in re.sub(r'(title|alt|aria-label)="[^"]*"', "", data[HTML])
    if word in data[TEXT]:
        assert any(word in line for line in reading(data[HTML]))


# --- include and exclude -----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_include_and_exclude_are_honoured(name):
    assert set(bundle(name)) == {TEXT, HTML}
    assert set(bundle(name, include=[TEXT])) == {TEXT}
    assert set(bundle(name, exclude=[TEXT])) == {HTML}
    assert bundle(name, include=["image/png"]) == {}
    assert not hasattr(CLASSES[name], "_repr_html_")
    # Only a widget shows itself by displaying; under ``settings.static`` it does not either.
    if issubclass(CLASSES[name], Widget):
        with settings(static=True), pytest.raises(NotImplementedError):
            sample(name)._ipython_display_()
    else:
        assert not hasattr(CLASSES[name], "_ipython_display_")


# --- light and dark ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_output_brings_both_themes_itself(name):
    html = bundle(name)[HTML]
    assert re.findall(r"<style>(.*?)</style>", html, re.DOTALL) == [theme.css()]
    for svg in pictures(html):
        light, _, dark = svg.partition("@media(prefers-color-scheme:dark)")
        assert paint.LIGHT["text"] in light
        assert paint.DARK["text"] in dark


def test_every_widget_brings_both_themes_itself():
    for one in CLASSES.values():
        if issubclass(one, Widget):
            assert one._css.startswith(theme.tokens())
            assert static.sheet("widget.css", *one.sheets) in one._css


# --- data, which shows itself by its repr alone ------------------------------------------------


def scope_of(word):
    seen = []
    rb.flow_chart(word, seen.append, id="a").build().run_sync()
    return seen[0]


def context_of(word):
    seen = []

    async def look(ctx: rb.ToolContext):
        seen.append(ctx)

    box = rb.Toolbox([rb.tool(look, name="look", description=word)])
    box.call_sync("look", {})
    return seen[0]


def sound_playbook(word):
    step = rb.PlaybookStep(id=word, description=word, expected_tools=[word])
    return rb.Playbook(id=word, name=word, steps=[step])


RECORDS = {
    rb.BranchesBuilder: lambda word: rb.flow_chart(word).add_decider(
        word, lambda scope: "a", id="choose"
    ),
    rb.Condition: lambda word: next(
        iter(rb.decide({"days": 30, "known": True}, displayables.rules(word)).conditions)
    ),
    rb.Default: lambda word: rb.Default("protected", label=word),
    rb.FlowChartBuilder: lambda word: rb.flow_chart(word, lambda scope: None, id="a"),
    rb.InnerCallRecord: lambda word: rb.InnerCallRecord(tool=word, outcome="ok", result={word: 1}),
    rb.EnforcementResult: lambda word: rb.EnforcementResult(allowed=True, hints=[word]),
    rb.Item: lambda word: rb.Item(word, why=word),
    rb.Limits: lambda word: rb.Limits(seconds=3),
    rb.Outside: lambda word: rb.Outside({"tier": {"eq": word}}, what=word, why=word),
    rb.PlaybookLoader: lambda word: rb.PlaybookLoader(),
    rb.PlaybookMiddleware: lambda word: rb.PlaybookMiddleware(sound_playbook(word)),
    rb.PlaybookStep: lambda word: sound_playbook(word).steps[0],
    rb.ProjectedWalk: lambda word: rb.project_walk(displayables.run(word).walk, 3),
    rb.RecordedDispatch: lambda word: rb.recording_dispatch(rb.probe_dispatch("t"), "t"),
    rb.RecordingOptions: lambda word: rb.RecordingOptions(label=word),
    rb.Redact: lambda word: rb.Redact(keys=[word]),
    rb.RequiredProbe: lambda word: rb.RequiredProbe(name=word, match=word),
    rb.Retry: lambda word: rb.Retry(3, on=(ValueError,)),
    rb.Rule: lambda word: rb.Rule({"tier": {"eq": word}}, then="a", label=word),
    rb.RunbookRules: lambda word: rb.RunbookRules(word, "v1"),
    rb.Scope: scope_of,
    rb.Session: lambda word: context_of(word).session,
    rb.Skill: lambda word: rb.Skill(word, word),
    rb.Slot: lambda word: displayables.run(word).slots("each")[0],
    rb.StepExecution: lambda word: rb.StepExecution(step_id=word, error=word),
    rb.StepStatus: lambda word: rb.StepStatus.FAILED,
    rb.Stop: lambda word: rb.Stop(),
    rb.StreamEvent: lambda word: rb.StreamEvent("token", "s", word),
    rb.ToolContext: context_of,
    rb.ToolEvent: lambda word: rb.ToolEvent(tool_name=word, arguments=word),
    rb.Unreadable: lambda word: rb.Unreadable("declined", label=word),
    rb.Verdicts: lambda word: rb.Verdicts(decider=word),
    rb.WalkOptions: lambda word: rb.WalkOptions(),
    rb.WalkRow: lambda word: displayables.run(word).walk[3],
}


def test_every_public_class_without_a_view_is_data_or_an_error_or_a_form():
    public = {getattr(rb, name) for name in rb.__all__}
    plain = {
        one
        for one in public
        if inspect.isclass(one)
        and not hasattr(one, "_repr_mimebundle_")
        and not issubclass(one, BaseException)
        and not getattr(one, "_is_protocol", False)
    }
    assert plain == set(RECORDS)


def given_back():
    """Give the classes that the reference tells of because public calls return them."""
    path = Path(rb.__file__).parents[1] / "docs" / "_ext" / "generated.py"
    told = {}
    for module, name in re.findall(r'"(runbook_nb\.[\w.]+)\.(\w+)"', path.read_text("utf-8")):
        told[name] = getattr(import_module(module), name)
    return {name: one for name, one in told.items() if inspect.isclass(one)}


def test_what_public_calls_give_back_has_a_line_of_its_own():
    classes = given_back()
    assert len(classes) > 20
    for name, one in classes.items():
        assert one.__repr__ is not object.__repr__, name
    shown = {one for one in classes.values() if hasattr(one, "_repr_mimebundle_")}
    assert shown <= set(SAMPLES)


def test_what_says_how_it_looks_is_shown_so():
    """A class with a view that no cell asks for would be met as its bare fields."""
    for module in displayables.modules():
        for name, one in vars(module).items():
            if inspect.isclass(one) and one.__module__ == module.__name__ and "view" in vars(one):
                if name == "_Shown" or getattr(one, "_is_protocol", False):
                    continue  # stands in for a widget, whose bundle it makes; says what a view is
                assert hasattr(one, "_repr_mimebundle_"), one


@pytest.mark.parametrize("word", [USUAL, *HOSTILE])
@pytest.mark.parametrize("record", RECORDS, ids=lambda one: one.__name__)
def test_data_shows_itself_on_one_clean_line(record, word):
    made = RECORDS[record](word)
    assert isinstance(made, record)
    said = repr(made)
    assert record.__name__ in said
    assert " at 0x" not in said
    assert said == repr(made)
    assert not {
        char for char in said if unicodedata.category(char) in ("Cc", "Cs") or char in DIRECTIONS
    }
