"""How much is done for a drawing, counted: it follows what is shown, not what there is."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.render import blocks, markup, parts, svg, theme
from runbook_nb.render.html import render_html

RULES = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")


@pytest.fixture(scope="module")
def envelope():
    """Give an answer about so many subjects, made once."""
    made = {}

    def answer(n):
        if n not in made:
            rows = [{"host": f"h{i:05}", "days": i % 40} for i in range(n)]
            made[n] = rb.triage(rows, RULES, subject="host", source="inventory")
        return made[n]

    return answer


@pytest.fixture
def counted(monkeypatch):
    """Count the calls of a function of a module."""

    def count(module, name):
        calls = []
        original = getattr(module, name)

        def counting(*args, **options):
            calls.append(args)
            return original(*args, **options)

        monkeypatch.setattr(module, name, counting)
        return calls

    return count


def test_html_of_a_long_answer_takes_no_more_than_of_a_short_one(envelope, counted):
    cards = [envelope(n).view() for n in (60, 3000)]
    calls = [counted(parts, "pieces"), counted(parts, "run_text"), counted(blocks, "tag")]
    done = []
    with rb.settings(layout="none", embed=False):
        for card in cards:
            before = [len(one) for one in calls]
            render_html(card)
            done.append([len(one) - was for one, was in zip(calls, before, strict=True)])
    assert done[0] == done[1]


def test_html_without_picture_and_carried_form_stays_small(envelope):
    with rb.settings(layout="none", embed=False):
        sizes = [len(render_html(envelope(n).view()).encode()) for n in (60, 3000)]
    assert max(sizes) <= 72 * 1024
    assert abs(sizes[1] - sizes[0]) < 400


def test_the_picture_of_a_long_answer_is_that_of_a_short_one(envelope):
    drawn = [svg.draw(envelope(n).walk.flowchart().flow).svg for n in (60, 3000)]
    if None in drawn:
        pytest.skip("nothing here draws")
    assert max(len(one.encode()) for one in drawn) <= 20 * 1024
    assert abs(len(drawn[0]) - len(drawn[1])) < 100


def test_a_picture_is_laid_out_once(envelope, counted):
    flow = envelope(60).walk.flowchart().flow
    svg._kept.clear()
    layouts = counted(svg, "lay_out")
    first = svg.draw(flow)
    asked = len(layouts)
    assert svg.draw(flow) == first
    if first.svg is not None:
        assert len(layouts) == asked


def test_where_no_picture_is_wanted_none_is_written_down(envelope, counted):
    flow = envelope(60).walk.flowchart().flow
    written = counted(svg, "render_dot")
    with rb.settings(layout="none"):
        assert svg.draw(flow).note == "no picture: layout='none' is set"
    assert written == []


def test_an_answer_shown_again_is_not_drawn_again(envelope, counted):
    answer = envelope(60)
    first = answer._repr_mimebundle_()
    drawn = counted(markup, "escape"), counted(blocks, "tag")
    assert answer._repr_mimebundle_() == first
    assert drawn == ([], [])


@pytest.mark.parametrize("place", theme.STYLES)
def test_no_style_has_a_sign_that_would_have_to_be_escaped(place):
    style = theme.STYLES[place]
    assert type(style) is markup.Html
    assert markup.escape(str.__str__(style)[:]) == style
    assert set(style).isdisjoint("&<>\"'")
