"""What HTML shows of a view: anatomy, what opens, what folds, what is cut and said."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hand_made import CARDS, COLUMNS, ENVELOPE, data, facts, ledger, row
from untrusted import reading

from runbook_nb._json import byte_size
from runbook_nb._view import Badge, Card, Column, Data, Fact, Facts, Flow, Prose, Section, Table
from runbook_nb.render import html as html_module
from runbook_nb.render.html import MAX_BYTES, render_html
from runbook_nb.settings import settings

PICTURE = SimpleNamespace(
    uri="data:image/svg+xml;base64,PHN2Zy8+", alt="2 of 3 done", width=400, height=300, note=""
)


def card_with(*parts, label="Part", **more):
    return Card(kind="Thing", name="x", sections=(Section(label=label, parts=parts),), **more)


def test_a_card_is_one_block_with_no_heading_tag_script_or_id():
    for card in CARDS.values():
        html = render_html(card)
        assert html.startswith('<div class="rbnb" lang="en"')
        assert html.endswith("</div>")
        assert not re.search(r"<h[1-6]|<script|<iframe|\son\w+=|\sid=|javascript:", html)


def test_the_label_of_a_table_is_its_caption():
    html = render_html(ENVELOPE)
    assert re.search(r"<caption[^>]*><strong[^>]*>Verdicts</strong>", html)
    assert html.count("<caption") == 1


def test_head_cells_and_naming_cells_have_their_scope():
    html = render_html(ENVELOPE)
    assert html.count('scope="col"') == 4
    assert re.findall(r'<th scope="row"[^>]*><samp[^>]*>(.*?)</samp>', html) == [
        "cluster-a",
        "cluster-b",
        "cluster-c",
    ]


def test_numbers_stand_right_and_in_the_type_of_data():
    cell = re.search(
        r'<td style="text-align:right[^"]*"><samp[^>]*>30</samp></td>', render_html(ENVELOPE)
    )
    assert cell


def test_judged_outcomes_are_filled_and_the_others_outlined():
    badges = (Badge(word="ok", role="a", count=1), Badge(word="failed", role="failed", count=2))
    html = render_html(Card(kind="K", name="n", badges=badges))
    chips = re.findall(r'class="rb-chip" style="([^"]*)"', html)
    assert "background-color:#0b5fa5" in chips[0]
    assert "background" not in chips[1]
    assert "border:1px solid" in chips[1]


def test_every_sign_is_hidden_from_readers_and_followed_by_a_word():
    for card in CARDS.values():
        html = render_html(card)
        for sign in "●▲■◆◌✕⋯∅✓⊘⤼":
            for place in re.finditer(sign, html):
                tag = html.rindex("<", 0, place.start())
                assert 'aria-hidden="true"' in html[tag : place.start()]
                assert html[place.end() :].startswith("</span>")


def test_what_was_not_checked_is_open_and_long_lists_of_the_rest_are_folded():
    long = tuple("abcd")
    html = render_html(card_with(*ledger(long, long, long).parts))
    opened = re.findall(
        r"<details[^>]*?( open)?><summary[^>]*>.*?<strong[^>]*>(.*?)</strong>", html
    )
    assert opened == [("", "Checked (4)"), (" open", "Not checked (4)"), ("", "Cannot cover (4)")]


def test_short_lists_of_a_ledger_are_open():
    html = render_html(card_with(*ledger(("a",), ("b",), ("c",)).parts))
    assert html.count(" open>") == 3


def test_an_empty_list_of_a_ledger_says_so_and_has_nothing_to_open():
    html = render_html(card_with(facts("Not checked", "not_checked")))
    assert "<details" not in html
    assert "◌ Not checked (0) none declared" in reading(html)


def test_the_three_lists_differ_in_the_line_beside_them():
    html = render_html(card_with(*ledger(("a",), ("b",), ("c",)).parts))
    assert re.findall(r"border-left:2px (\w+)", html) == ["solid", "dashed", "dotted"]


def test_names_in_a_reason_are_not_broken_at_their_hyphens():
    html = render_html(ENVELOPE)
    assert '<span style="white-space:nowrap">ap-south-1/prod/audit-301,</span> nothing' in html


def test_a_few_facts_stand_open_and_many_are_folded_with_their_true_count():
    def listing(n):
        items = tuple(Fact(term=f"k{i}", detail=data(i)) for i in range(n))
        return card_with(Facts(label="Report", items=items, total=n + 1))

    assert "<details" not in render_html(listing(5))
    assert "Report (9)" in render_html(listing(8))
    assert "8 of 9 shown" in render_html(listing(8))


def test_a_bar_shares_ten_subjects_and_more():
    def bar_of(*counts):
        badges = tuple(Badge(word=r, role=r, count=n) for r, n in zip("ab", counts, strict=True))
        html = render_html(Card(kind="K", name="n", badges=badges))
        return re.findall(r'class="rb-bar"[^>]*width:([\d.]+)%', html)

    assert bar_of(4, 5) == []
    assert bar_of(7, 3) == ["70.00", "30.00"]


def test_outcomes_that_are_no_verdicts_alone_make_no_bar():
    assert 'class="rb-bar"' not in render_html(CARDS["compare"])


def test_a_picture_stands_above_the_same_steps_as_a_list(monkeypatch):
    monkeypatch.setattr(html_module, "_drawing", lambda flow: PICTURE)
    html = render_html(ENVELOPE)
    assert '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="2 of 3 done" width="400"' in html
    assert html.index("<img") < html.index("Walk as a list (8 lines)")
    assert "max-width:none" in html


def test_a_list_of_steps_is_nested_and_counts_on_after_branches():
    lines = reading(render_html(ENVELOPE))
    start = lines.index("inventory")
    assert lines[start : start + 8] == [
        "inventory",
        "Assess each subject, 2 of 3 done, 1 failed",
        "load, 3 times · 1 failed",
        "Protection posture, 2 times",
        "▲ unprotected 1 · rule 2 · age_days 30 > 7 · last backup older than the 7-day threshold",
        "■ exempt 0 · rule 3 · not taken",
        "Collect failed",
        "Report not reached",
    ]


def test_a_picture_that_is_no_svg_in_base64_is_refused(monkeypatch):
    odd = SimpleNamespace(**{**vars(PICTURE), "uri": "https://example.org/x.svg"})
    monkeypatch.setattr(html_module, "_drawing", lambda flow: odd)
    with pytest.raises(ValueError, match="base64"):
        render_html(ENVELOPE)


def test_a_flow_with_nothing_to_draw_has_its_list_alone():
    assert "<img" not in render_html(ENVELOPE)


def test_steps_past_the_cap_are_counted():
    lines = ENVELOPE.sections[-1].parts[0].lines * 10
    html = render_html(card_with(Flow(lines=lines)))
    assert "Walk as a list (80 lines)" in html
    assert "60 of 80 steps shown" in html


def test_a_taken_row_is_emphasised_and_the_others_are_not():
    html = render_html(CARDS["decision"])
    strong = re.findall(r'<tr class="[^"]*" style="font-weight:600">', html)
    assert len(strong) == 1
    assert html.count('<span style="font-weight:600">') == 1


def test_a_heading_that_names_the_card_is_not_told_twice():
    lines = reading(render_html(CARDS["decision"]))
    assert lines[:2] == [
        "Decision · Protection posture · rules health-signal v1",
        "▲ unprotected cluster-b",
    ]


def test_a_run_that_failed_says_so_before_its_name():
    assert reading(render_html(CARDS["run_failed"]))[:2] == [
        "Run, failed · backup_triage",
        "Stopped at Collect",
    ]


def test_a_card_without_a_heading_says_its_state_and_headline():
    card = Card(kind="Run", name="x", state="failed at collect", headline="3 steps", tail="odd")
    assert reading(render_html(card)) == ["Run · x", "Failed at collect. 3 steps, odd"]


def test_closing_facts_and_remarks_are_the_last_line_unless_the_card_has_its_own():
    card = Card(kind="K", name="n", closing=("a",), remarks=("b",))
    assert reading(render_html(card))[-1] == "a · b"
    assert reading(render_html(replace(card, foot=("from", Data(value="t")))))[-1] == "from t"
    assert reading(render_html(replace(card, foot="")))[-1] == "K · n"


def test_groups_say_their_true_count_and_go_on_in_the_folded_rows():
    html = render_html(CARDS["compare"])
    assert html.count('scope="rowgroup"') == 3
    assert "▲ unprotected → ● protected 8 · rule 3 limit raised, 7 to 14" in reading(html)
    assert "● protected → ▲ unprotected continued · rule 4 added" in reading(html)


def test_lines_under_a_row_stay_with_it():
    html = render_html(CARDS["plan"])
    assert html.count("<tbody>") == 4
    assert 'colspan="5"' in html


def test_a_table_without_rows_is_a_sentence():
    html = render_html(card_with(Table(columns=COLUMNS, rows=(), total=0, empty="nobody")))
    assert "<table" not in html
    assert "nobody" in reading(html)


def test_a_table_whose_rows_are_all_elsewhere_says_where():
    table = Table(columns=COLUMNS, rows=(), total=7, rest="to_frame()")
    assert "7 more rows are not in this output: to_frame() has all 7." in reading(
        render_html(card_with(table))
    )


def test_one_row_left_out_is_spoken_of_as_one():
    table = Table(columns=COLUMNS, rows=(row("declined", "a", None),), total=2)
    assert "1 more row is not in this output." in reading(render_html(card_with(table)))


def test_a_table_that_is_one_argument_is_never_folded():
    rows = tuple((data(str(n)),) for n in range(60))
    table = Table(columns=(Column(head="rule"),), rows=rows, total=60, whole=True)
    html = render_html(card_with(table))
    assert "<details" not in html
    assert html.count('scope="row"') == 60


def test_rows_short_of_cells_leave_them_blank():
    table = Table(columns=COLUMNS, rows=((Badge(word="x"),), ()), total=2)
    assert (
        render_html(card_with(table)).count("<td")
        + render_html(card_with(table)).count('scope="row"')
        == 8
    )


def style_of(text, html):
    """Give the style of the cell that holds a text and nothing else."""
    return re.search(rf'<td style="([^"]*)">(?:<[^>]*>)*{re.escape(text)}<', html)[1]


def test_what_is_said_of_a_rule_breaks_where_it_is_long_but_not_behind_its_mark():
    columns = (Column(head="rule"), Column(head="result"))
    said = ("not needed", "unreadable, type_mismatch")
    rows = tuple((data(word), Badge(word=word, role="unreadable")) for word in said)
    html = render_html(card_with(Table(columns=columns, rows=rows, total=2)))
    short, long = re.findall(r'<td style="([^"]*)">(?!<samp)', html)
    assert "white-space:nowrap" in short
    assert "white-space" not in long
    assert re.search(r'nowrap"><span aria-hidden[^>]*>\?</span> unreadable,</span> type_', html)


def test_what_may_scroll_sideways_can_be_reached_by_keyboard_and_has_a_name(monkeypatch):
    monkeypatch.setattr(html_module, "_drawing", lambda flow: PICTURE)
    html = render_html(ENVELOPE)
    wide = re.findall(r'<div class="rb-wide"([^>]*)>', html)
    assert len(wide) == 2
    assert all('tabindex="0" role="group"' in attributes for attributes in wide)
    assert re.findall(r'aria-label="([^"]*)"', html) == ["Verdicts", "Picture"]


def test_a_short_value_stays_on_one_line_and_a_sentence_may_break_on_either_side():
    columns = (Column(head="name"), Column(head="expires"), Column(head="actual", align="right"))
    words = "the block holds something other than base64"
    rows = (
        (data("a"), data("2029-12-06"), data(words)),
        (data("b"), data("a whole sentence of data"), data(7)),
        (data("c"), data("2030-01-01"), data(-7)),
    )
    html = render_html(card_with(Table(columns=columns, rows=rows, total=3)))
    assert "white-space:nowrap" in style_of("2029-12-06", html)
    assert "white-space" not in style_of("a whole sentence of data", html)
    assert "text-align:right" in style_of(words, html)
    assert "white-space" not in style_of(words, html)
    # A number has no place to break at, unless a sign makes one.
    assert "white-space" not in style_of("7", html)
    assert "text-align:right;white-space:nowrap" in style_of("-7", html)


def test_a_long_value_is_cut_and_its_tooltip_goes_on():
    html = render_html(card_with(Prose(text=data("x" * 1500))))
    assert f'title="{"x" * 999}…"' in html
    assert f">{'x' * 199}…<" in html


def test_text_of_other_scripts_finds_its_own_direction():
    html = render_html(card_with(Prose(text=data("שלום"))))
    assert '<samp class="rb-d" style="font-size:12px" dir="auto">שלום</samp>' in html


def test_a_sentence_from_outside_is_not_set_as_a_name():
    html = render_html(card_with(Prose(text=(data("no copy is kept"), data("a > 7")))))
    assert "<span>no copy is kept</span>" in html
    assert re.search(r"<samp[^>]*>a &gt; 7</samp>", html)


def test_a_unit_follows_its_number_and_stands_in_brackets_in_a_head():
    html = render_html(card_with(Prose(text=data(30, unit="days"))))
    assert ">30</samp> days" in html
    assert "age (days)" in render_html(ENVELOPE)


@pytest.mark.parametrize("cap", [1, 3])
def test_the_cap_of_rows_is_that_of_the_settings(cap):
    with settings(max_table_rows=cap):
        html = render_html(CARDS["envelope_many"])
    assert f"{cap} of 303 shown" in html
    assert html.count('scope="row"') == cap


def test_an_output_too_large_gives_up_its_picture_first_and_says_so(monkeypatch):
    large = SimpleNamespace(**{**vars(PICTURE), "uri": PICTURE.uri + "A" * MAX_BYTES})
    monkeypatch.setattr(html_module, "_drawing", lambda flow: large)
    html = render_html(ENVELOPE)
    assert "<img" not in html
    assert reading(html)[-1] == "left out, as the output would be larger than 512 kB: the picture"
    assert html.count('scope="row"') == 3


def test_then_rows_are_given_up_until_the_output_fits():
    # Nothing but angle brackets: escaped, each takes four bytes, and again in the tooltip.
    wide = tuple(Column(head=f"c{n}") for n in range(6))
    rows = tuple(tuple(data("<" * 900) for _ in wide) for _ in range(50))
    html = render_html(card_with(Table(columns=wide, rows=rows, total=50, rest="to_frame()")))
    assert byte_size(html) <= MAX_BYTES
    assert "of each list" in reading(html)[-1]
    assert re.search(r"\d+ of 50 shown", html)


def test_a_picture_of_branches_that_is_the_whole_card_has_its_key(monkeypatch):
    monkeypatch.setattr(html_module, "_drawing", lambda flow: PICTURE)
    flow = ENVELOPE.sections[-1].parts[0]
    assert "default branch starts with a ring" in render_html(card_with(flow))
    assert "default branch starts with a ring" not in render_html(ENVELOPE)
    assert "starts with a ring" not in render_html(card_with(replace(flow, lines=flow.lines[:2])))


def test_the_walk_is_open_where_it_is_the_whole_card():
    flow = ENVELOPE.sections[-1].parts[0]
    assert " open>" in render_html(card_with(flow))
    assert not re.search(r"<details[^>]* open><summary[^>]*>Walk", render_html(ENVELOPE))


def test_short_names_keep_to_one_line_and_long_ones_wrap_where_the_column_ends():
    """A host's type may be wider than ours: a word must not break at its hyphen for that."""

    def listing(term):
        facts = Facts(label="Meanings", items=(Fact(term=term, detail="said"),), total=1)
        html = render_html(card_with(facts))
        (columns,) = re.findall(r"grid-template-columns:([^\"]+)\"><dt", html)
        (term_style,) = re.findall(r'<dt style="([^"]+)"', html)
        return columns, "white-space:nowrap" in term_style

    tile = Badge(word="never-departed", role="a")
    assert listing(tile) == ("minmax(136px,max-content) minmax(0,1fr)", True)
    assert listing("stale") == ("minmax(132px,max-content) minmax(0,1fr)", True)
    assert listing("a name of many words " * 4) == ("260px minmax(0,1fr)", False)
