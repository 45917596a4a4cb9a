"""Each view as a page of its own, on screen in both schemes, on paper and in forced colours."""

import base64
import re

import pytest
from cards import CARDS, page_of
from watched import of_theme

WIDE = {"width": 960, "height": 900}
#: A telephone, and the width at which text must still flow without scrolling both ways.
NARROW = {"width": 320, "height": 700}
#: What an A4 sheet shows between the page's margins.
SHEET = {"width": 688, "height": 1000}
ENVELOPES = [name for name in CARDS if name.startswith("envelope")]
#: Parts of an answer, in the order in which they are met.
ORDER = ("Verdicts", "Coverage", "Rules", "Report", "Walk")
PARTS = """(body) => [...body.querySelectorAll("strong")].map((label) =>
  [label.innerText, label.getBoundingClientRect().top])"""
UNREAD = """(body) => [...body.querySelectorAll("details > :not(summary)")]
  .filter((part) => part.getBoundingClientRect().height < 1).length"""
CUT = """(body, width) => [...body.querySelectorAll("img, table, details")]
  .filter((part) => part.getBoundingClientRect().right > width).length"""
UNFRAMED = """(body) => [...body.querySelectorAll(".rb-chip, .rb-tile")].filter((chip) => {
  const style = getComputedStyle(chip);
  return style.borderTopStyle === "none" || parseFloat(style.borderTopWidth) < 1;
}).length"""


@pytest.fixture(scope="session")
def file_of(tmp_path_factory):
    """Write the page of a view once."""
    folder = tmp_path_factory.mktemp("pages")

    def file_of(name):
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(page_of(name), encoding="utf-8")
        return path

    return file_of


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", CARDS)
def test_a_page_of_its_own_is_readable_and_accessible(tab, accessibility, file_of, name, scheme):
    watched = tab(viewport=WIDE, color_scheme=scheme)
    watched.show(file_of(name))
    page = watched.page
    assert watched.flaws() == {}
    if page.locator("img").count():
        shares = watched.shares(page.locator("img").first)
        assert of_theme(shares, scheme), shares
    watched.shot(f"page_{name}_{scheme}", full_page=True)
    found = accessibility(page, name)
    assert not found.get("critical")
    assert not found.get("serious")


@pytest.mark.parametrize("name", CARDS)
def test_a_narrow_page_scrolls_inside_its_tables_and_pictures_only(
    tab, accessibility, file_of, name
):
    watched = tab(viewport=NARROW)
    watched.show(file_of(name))
    watched.shot(f"narrow_{name}", full_page=True)
    assert watched.flaws() == {}
    found = accessibility(watched.page, f"{name}, narrow")
    assert not found.get("critical")
    assert not found.get("serious")


@pytest.mark.parametrize("name", ENVELOPES)
def test_parts_stand_in_the_order_in_which_they_are_read(tab, file_of, name):
    watched = tab(viewport=WIDE)
    watched.show(file_of(name))
    tops = dict(reversed(watched.page.locator("body").evaluate(PARTS)))
    met = [tops[part] for part in ORDER if part in tops]
    assert len(met) >= 3
    assert met == sorted(met)
    words = watched.ask("words", watched.page.locator(".rbnb"))
    first = [words.index(part) for part in ORDER if part in tops]
    assert first == sorted(first)


@pytest.mark.parametrize("name", ENVELOPES)
def test_on_paper_nothing_is_folded_and_nothing_is_cut(tab, file_of, name):
    watched = tab(viewport=SHEET, color_scheme="light")
    watched.show(file_of(name))
    page = watched.page
    page.emulate_media(media="print")
    watched.shot(f"print_{name}", full_page=True)
    assert watched.flaws() == {}
    assert page.locator("body").evaluate(UNREAD) == 0
    assert page.locator("body").evaluate(CUT, SHEET["width"]) == 0
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("name", ["envelope", "envelope_312", "why_unreadable", "run_failed"])
def test_forced_colours_leave_every_chip_its_frame(tab, file_of, name):
    watched = tab(viewport=WIDE, forced_colors="active", color_scheme="dark")
    watched.show(file_of(name))
    watched.shot(f"forced_{name}", full_page=True)
    assert watched.flaws() == {}
    assert watched.page.locator("body").evaluate(UNFRAMED) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["envelope", "envelope_312", "why_fired", "walk", "structure"])
def test_words_in_a_picture_stand_out_from_what_is_drawn_below_them(tab, name, scheme):
    """On every ground that hosts put behind it; the picture itself has none."""
    (encoded,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page_of(name))
    svg = base64.b64decode(encoded).decode("utf-8")
    svg = svg[svg.index("<svg") :]
    for ground in ("#fff",) if scheme == "light" else ("#212121", "#111"):
        watched = tab(viewport=WIDE, color_scheme=scheme)
        watched.page.set_content(
            f"<!doctype html><body style='background:{ground};color-scheme:{scheme}'>"
            f"<div>{svg}</div>"
        )
        contrast = watched.ask("faintInPicture", watched.page.locator("svg"))
        assert contrast["asked"] > 5
        assert contrast["found"] == []
