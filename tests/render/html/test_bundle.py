"""What objects hand to Jupyter, and that showing them never fails."""

from __future__ import annotations

import pytest
import states
from untrusted import HINTS, dropped, reading, sanitized

from runbook_nb._display import DOORS, Renderable, through
from runbook_nb._view import Card, Data, Prose, Section
from runbook_nb.render import bundle as bundle_module
from runbook_nb.render.bundle import HTML, JSON, MAX_JSON, TEXT, bundle_of
from runbook_nb.settings import settings


@pytest.fixture(scope="module")
def shown():
    with states.frozen():
        return {name: build() for name, build in states.STATES.items()}


def html_of(thing):
    return bundle_of(thing)[0][HTML]


@pytest.mark.parametrize("name", states.STATES)
def test_everything_that_can_be_looked_at_has_text_and_html(shown, name):
    data, metadata = bundle_of(shown[name])
    assert set(data) == {TEXT, HTML}
    assert metadata == {}
    assert data[TEXT].isprintable() or "\n" in data[TEXT]


@pytest.mark.parametrize("name", states.STATES)
def test_every_object_looks_the_same_untrusted_and_reads_the_same_bare(shown, name):
    html = html_of(shown[name])
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)
    assert reading(sanitized(html, styles=False)) == reading(html)


@pytest.mark.parametrize("name", states.STATES)
def test_no_reference_and_no_call_id_is_shown(shown, name):
    html = html_of(shown[name])
    assert "art_" not in html
    assert "call_" not in html.replace("call_sync", "")


@pytest.mark.parametrize("name", ["envelope", "envelope_312", "why_fired", "run_failed"])
def test_running_again_gives_the_same_bytes(name):
    with states.frozen():
        one = html_of(states.STATES[name]())
    assert html_of(states.STATES[name]()) == one  # with ids and clock of its own


def test_the_verdict_words_have_one_colour_wherever_they_are_shown(shown):
    envelope = shown["envelope_312"]
    name = "ap-south-1/prod/billing-766"
    (chip,) = [b for b in envelope.view().badges if b.word == "unprotected"]
    assert envelope.why(name).view().heading[0].role == chip.role == "b"


def test_what_jupyter_calls_is_the_same_bundle(shown):
    envelope = shown["envelope"]
    assert envelope._repr_mimebundle_() == bundle_of(envelope)
    assert set(envelope._repr_mimebundle_(include={TEXT})[0]) == {TEXT}
    assert set(envelope._repr_mimebundle_(exclude={TEXT})[0]) == {HTML}
    assert envelope._repr_mimebundle_(include={"image/png"})[0] == {}
    assert not hasattr(envelope, "_repr_html_")


def test_html_is_not_drawn_when_it_is_not_wanted(monkeypatch, shown):
    def never(card):
        raise AssertionError("was not asked for")

    monkeypatch.setattr(bundle_module, "render_html", never)
    assert set(bundle_of(shown["rule_set"], include=[TEXT])[0]) == {TEXT}


class Odd(Renderable):
    def __init__(self, card):
        self.card = card

    def view(self):
        return self.card()


def card():
    return Card(kind="Odd", name="one", sections=(Section(label="", parts=(Prose(text="a"),)),))


def broken():
    raise KeyError("rows")


def test_a_view_that_fails_leaves_one_line_that_names_the_failure():
    data, _ = Odd(broken)._repr_mimebundle_()
    assert data == {TEXT: "Odd, cannot be shown: KeyError"}


def test_a_drawing_that_fails_leaves_the_text_with_one_line_more(monkeypatch):
    def fail(card):
        raise RuntimeError("the template\nis broken")

    monkeypatch.setattr(bundle_module, "render_html", fail)
    data, _ = Odd(card)._repr_mimebundle_()
    assert data == {TEXT: "Odd one\n  a\n(no rich form: RuntimeError: the template\\nis broken)"}


def test_a_missing_renderer_leaves_the_text(monkeypatch):
    monkeypatch.setitem(DOORS, "bundle", "runbook_nb.render.nowhere:bundle_of")
    data, _ = Odd(card)._repr_mimebundle_()
    assert data[TEXT].splitlines() == ["Odd one", "  a", "(no rich form: ModuleNotFoundError)"]


def test_a_failure_whose_message_fails_too_is_named():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    assert bundle_module.failure(Mute()) == "Mute"


def test_the_doors_lead_to_the_renderers():
    assert through("html", card()).startswith('<div class="rbnb"')
    assert set(through("bundle", Odd(card))[0]) == {TEXT, HTML}


def test_an_envelope_is_drawn_once_for_the_same_options(monkeypatch):
    drawn = []
    real = bundle_module.render_html
    monkeypatch.setattr(bundle_module, "render_html", lambda c: drawn.append(1) or real(c))
    envelope = states.envelope()
    first = bundle_of(envelope)
    assert bundle_of(envelope) == first
    assert len(drawn) == 1
    with settings(max_table_rows=1):
        assert "1 of 3 shown" in html_of(envelope)
    assert len(drawn) == 2
    assert bundle_of(envelope) == first


def test_an_object_that_changes_is_drawn_anew(shown):
    toolbox = states.box_of([], states.posture_v1(), states.THREE)
    assert "2 tools" in html_of(toolbox)
    import runbook_nb as rb

    toolbox.add(rb.tool(lambda: 1, name="third", description="One more."))
    assert "3 tools" in html_of(toolbox)


def test_a_json_form_comes_along_only_when_asked_for(shown):
    assert JSON not in bundle_of(shown["envelope"])[0]
    with settings(mime_json=True):
        data = bundle_of(shown["envelope"])[0]
        assert data[JSON]["format"] == "runbook_nb/envelope/1"
        assert JSON not in bundle_of(shown["rule_set"])[0]


def test_a_json_form_that_is_too_large_is_described():
    huge = Odd(lambda: card_with_payload({"x": "y" * MAX_JSON}))
    with settings(mime_json=True):
        form = bundle_of(huge)[0][JSON]
    assert form["left_out"] == "larger than 100 kB"
    assert form["descriptor"] == {"kind": "K", "name": "n", "said": ""}


def card_with_payload(value):
    part = Prose(text=Data(value=1))
    return Card(
        kind="K", name="n", sections=(Section(label="", parts=(part,)),), payload=lambda most: value
    )
