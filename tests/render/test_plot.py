"""Counts over time as a picture: in bounds, told by more than colour, the same bytes every time."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._view import Card, Plot, Section, Series
from runbook_nb.render.html import render_html
from runbook_nb.render.markdown import render_markdown
from runbook_nb.render.plot import COLUMN, HEIGHT, MOST_LINES, MOST_PLACES, _nice, draw_plot
from runbook_nb.render.text import render_text
from runbook_nb.settings import settings

SVG = "{http://www.w3.org/2000/svg}"


def plot(*series, places=None, **more):
    size = max((len(one.values) for one in series), default=0)
    named = tuple(str(n + 1) for n in range(size)) if places is None else places
    return Plot(places=named, series=series, summary="what happened", **more)


def drawn(shown):
    made = draw_plot(shown)
    return ET.fromstring(made.svg)  # noqa: S314 - our own


OLD = Series("old", "b", (1, 3, 2))
FRESH = Series("fresh", "a", (5, 4, 4))
DECLINED = Series("declined", "declined", (0, None, 1))


def test_each_word_has_a_line_a_sign_of_its_own_and_its_name_with_the_last_count():
    picture = drawn(plot(FRESH, OLD, DECLINED))
    lines = [
        one.get("class") for one in picture.iter(f"{SVG}path") if one.get("class", "")[0] == "l"
    ]
    assert lines == ["l a", "l b", "l declined"]
    names = [one.text for one in picture.iter(f"{SVG}text") if one.get("class", "").startswith("h")]
    assert names == ["fresh 4", "old 2", "declined 1"]
    circles = [one.get("class") for one in picture.iter(f"{SVG}circle")]
    assert circles.count("m a") == 4  # three counts, and the one beside the name
    assert circles.count("open declined") == 3
    assert picture.find(f"{SVG}desc").text == "what happened"
    assert picture.get("role") == "img"


def test_where_nobody_counted_the_line_is_broken():
    picture = drawn(plot(Series("old", "b", (1, None, 2, 3))))
    (path,) = [one.get("d") for one in picture.iter(f"{SVG}path") if one.get("class") == "l b"]
    assert path.count("M") == 2
    assert path.count("L") == 1


def test_verdicts_beyond_the_palette_are_told_by_their_name():
    picture = drawn(plot(Series("odd", "failed", (1, 2))))
    assert any(one.get("class") == "l plain" for one in picture.iter(f"{SVG}path"))


@pytest.mark.parametrize(
    "shown", [plot(), plot(Series("old", "b", ())), plot(Series("old", "b", (None,)))]
)
def test_nothing_gives_no_picture_and_its_sentence(shown):
    made = draw_plot(shown)
    assert made.uri is None
    assert made.alt == "what happened"
    html = render_html(Card(kind="Runs", name="", sections=(Section(label="x", parts=(shown,)),)))
    assert "<img" not in html
    assert "what happened" in html


counts = st.lists(st.none() | st.integers(0, 10**7), min_size=1, max_size=150).map(tuple)
roles = st.sampled_from(["a", "b", "c", "d", "declined", "failed"])


@given(st.lists(st.tuples(st.text(max_size=40), roles, counts), min_size=1, max_size=12))
def test_everything_lies_within_the_picture(told):
    size = max(len(values) for _, _, values in told)
    series = tuple(
        Series(word, role, (None,) * (size - len(values)) + values) for word, role, values in told
    )
    made = draw_plot(plot(*series, ends=("2026-01-01", "2026-02-01")))
    if made.svg is None:
        assert all(value is None for one in series[:MOST_LINES] for value in one.values)
        return
    assert (made.width, made.height) == (COLUMN, HEIGHT)
    picture = ET.fromstring(made.svg)  # noqa: S314 - our own
    for path in picture.iter(f"{SVG}path"):
        for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d")):
            assert 0 <= float(x) <= COLUMN
            assert 0 <= float(y) <= HEIGHT
    heights = []
    for text in picture.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= COLUMN
        assert 0 <= float(text.get("y")) <= HEIGHT
        if text.get("class").startswith("h"):
            heights.append(float(text.get("y")))
    assert all(after - before > 15 for before, after in pairwise(heights))
    assert len(made.svg) < 100_000


def test_what_is_not_drawn_is_said():
    many = tuple(Series(f"w{n}", "a", (1,) * 300) for n in range(10))
    made = draw_plot(plot(*many, note="of three runbooks"))
    assert made.note == (
        f"of three runbooks; the last {MOST_PLACES} of 300 are drawn; {MOST_LINES} of 10 words are "
        "drawn"
    )
    picture = ET.fromstring(made.svg)  # noqa: S314 - our own
    assert len(list(picture.iter(f"{SVG}circle"))) == 2 * MOST_LINES  # one sign at each line's end
    assert "run 181" in made.svg


@pytest.mark.parametrize(
    ("most", "step"),
    [(0, 1), (1, 1), (5, 1), (6, 2), (11, 5), (99, 20), (1000, 200), (10**9, 2 * 10**8)],
)
def test_the_scale_is_in_round_steps(most, step):
    assert _nice(most) == step


def test_a_hostile_word_stays_a_word():
    hostile = '</text><script>alert(1)</script>&\x1b[31m\u202e"'
    made = draw_plot(
        Plot(
            places=(hostile,) * 2,
            series=(Series(hostile, "a", (1, 2)),),
            summary=hostile,
            ends=(hostile, hostile),
        )
    )
    ET.fromstring(made.svg)  # noqa: S314 - our own
    assert "<script" not in made.svg
    assert "\x1b" not in made.svg
    assert "\u202e" not in made.svg


def test_the_bytes_are_the_same_and_follow_the_theme():
    one, two = draw_plot(plot(OLD)), draw_plot(plot(OLD))
    assert one.svg == two.svg
    with settings(theme="light"):
        light = draw_plot(plot(OLD)).svg
    with settings(theme="dark"):
        dark = draw_plot(plot(OLD)).svg
    assert "prefers-color-scheme" in one.svg
    assert "#b84a00" in light
    assert "prefers-color-scheme" not in light + dark
    assert "#ff9d5c" in dark


# --- in words ----------------------------------------------------------------------------------


def card(shown):
    return Card(kind="Runs", name="t", sections=(Section(label="Over time", parts=(shown,)),))


def test_plain_text_has_a_row_for_each_word_and_the_newest_last():
    assert render_text(card(plot(FRESH, DECLINED))).splitlines() == [
        "Runs t",
        "  run       1  2  3",
        "  fresh     5  4  4",
        "  declined  0  —  1",
    ]
    many = plot(Series("old", "b", tuple(range(40))), note="of one runbook")
    lines = render_text(card(many)).splitlines()
    assert lines[1] == "of one runbook · 10 of 40 runs, the last ones"
    assert lines[2].split() == ["run", *map(str, range(31, 41))]


def test_markdown_has_the_sentence_and_the_rows():
    assert render_markdown(card(plot(FRESH))).split("\n\n") == [
        "**Runs t**",
        "**Over time**",
        "what happened",
        "```text\nrun    1  2  3\nfresh  5  4  4\n```",
    ]


def test_a_picture_stands_in_the_page_with_its_sentence():
    html = render_html(card(plot(FRESH)))
    assert re.search(r'<img src="data:image/svg\+xml;base64,[^"]+" alt="what happened"', html)
