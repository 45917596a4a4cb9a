"""Cards as HTML, compared byte for byte, and held against what hosts take away.

``RUNBOOK_NB_WRITE_GOLDEN=1`` writes the files anew; look at the pictures before keeping them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hand_made import CARDS, many
from untrusted import HINTS, dropped, reading, sanitized

from runbook_nb.render import theme
from runbook_nb.render.html import render_html

GOLDEN = Path(__file__).parent / "golden"
#: The stylesheet is the same in every output, so it is kept out of the files.
SHEET = re.compile(r"<style>.*?</style>", re.DOTALL)


def golden(name, shown):
    path = GOLDEN / f"{name}.html"
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown + "\n", encoding="utf-8", newline="\n")
    return path.read_bytes().decode()


@pytest.mark.parametrize("name", CARDS)
def test_html_is_the_golden_one_byte_for_byte(name):
    shown = SHEET.sub("<style></style>", render_html(CARDS[name]))
    assert shown + "\n" == golden(name, shown)


def test_no_golden_file_is_without_its_card():
    assert {path.stem for path in GOLDEN.iterdir()} == set(CARDS)


@pytest.mark.parametrize("name", CARDS)
def test_drawing_twice_gives_the_same_bytes(name):
    assert render_html(CARDS[name]) == render_html(CARDS[name])


@pytest.mark.parametrize("name", CARDS)
def test_an_untrusted_notebook_takes_away_the_stylesheet_and_hints_for_readers_alone(name):
    assert {"<style>"} <= set(dropped(render_html(CARDS[name]))) <= HINTS


@pytest.mark.parametrize("name", CARDS)
def test_an_untrusted_notebook_shows_the_same_text_in_the_same_order(name):
    html = render_html(CARDS[name])
    assert reading(sanitized(html)) == reading(html)
    assert reading(sanitized(html, styles=False)) == reading(html)


@pytest.mark.parametrize("name", CARDS)
def test_every_output_carries_the_one_stylesheet(name):
    assert SHEET.findall(render_html(CARDS[name])) == [f"<style>{theme.css()}</style>"]


def test_without_any_style_a_card_reads_in_order():
    lines = reading(sanitized(render_html(CARDS["envelope"]), styles=False))
    assert lines[:9] == [
        "Envelope · backup_triage · rules health-signal v1",
        "3 subjects ● 1 protected ▲ 1 unprotected ◌ 1 declined",
        "Verdicts all 3 rows shown · — means not recorded",
        "verdict subject age (days) decided by",
        "● protected cluster-a 2 default: no rule fired",
        "▲ unprotected cluster-b 30 age_days 30 > 7",
        "◌ declined cluster-c — age_known = false",
        "Coverage 2 checked · 1 not checked · 1 cannot cover",
        "Ran 'backup-protection-triage' under health-signal v1.",
    ]
    assert lines[9:18] == [
        "✓ Checked (2)",
        "the backup inventory, one row per job",
        "3 rows, 15 steps",
        "one pass per row",
        "◌ Not checked (1)",
        "1 row that reached NO classification",
        "see ap-south-1/prod/audit-301, nothing",
        "⊘ Cannot cover (1)",
        "WHY a protection was paused",
    ]
    assert lines[-1] == "from backup_triage · walk filed, 46 rows"


def test_every_tag_is_closed_where_it_was_opened():
    from html.parser import HTMLParser

    class Checker(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open_tags = []

        def handle_starttag(self, tag, attrs):
            if tag not in ("img", "col"):
                self.open_tags.append(tag)

        def handle_endtag(self, tag):
            assert self.open_tags.pop() == tag

    for card in CARDS.values():
        checker = Checker()
        checker.feed(render_html(card))
        assert checker.open_tags == []


def test_ten_rows_stand_open_and_the_rest_is_folded_with_its_outcomes():
    html = render_html(many())
    assert html.count("<tbody>") == 2
    assert "Rows 11 to 50" in html
    assert "2 unprotected, 3 declined, 35 protected" in html
    assert "50 of 303 shown · worst first" in html
    lines = reading(html)
    assert "253 more rows are not in this output: to_frame() has all 303." in lines
    assert lines.index("Verdicts 50 of 303 shown · worst first · — means not recorded") == 2


def test_our_counts_have_thin_spaces_between_thousands():
    html = render_html(many())
    assert "1\u202f312" in html
    assert "1\u202f282 protected" in html


def test_actual_values_of_one_key_are_set_under_each_other():
    html = render_html(many())
    assert ">age_days 44 &gt; 7<" in html
    assert ">age_days 33 &gt; 7<" in html
    assert "default: no rule fired" in html


def test_numbers_of_different_width_are_filled_with_spaces_that_do_not_break():
    from dataclasses import replace

    from hand_made import row

    card = CARDS["envelope"]
    table = card.sections[0].parts[0]
    rows = (row("unprotected", "a", 30), row("unprotected", "b", 9))
    section = replace(card.sections[0], parts=(replace(table, rows=rows, total=2),))
    html = render_html(replace(card, sections=(section,)))
    assert "age_days 30 &gt; 7" in html
    assert "age_days \u00a09 &gt; 7" in html
