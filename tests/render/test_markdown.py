from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runbook_nb._text import visible
from runbook_nb._view import (
    Badge,
    Card,
    Column,
    Data,
    Detail,
    Fact,
    Facts,
    Flow,
    FlowLine,
    Group,
    Prose,
    Section,
    Table,
)
from runbook_nb.render.markdown import render_markdown
from runbook_nb.settings import settings

READERS = {
    "js-default": MarkdownIt("js-default"),
    "commonmark": MarkdownIt("commonmark").enable(["table", "strikethrough"]),
}
#: What may be made of a view; anything else came out of its data.
MADE = {"text", "code_inline", "strong_open", "strong_close"}

MARKS = "\\`*_[]<>|~$&#;:/@!()-+={}^.1aZ \n\r\t'\"\u00a0\u3000"
hostile = st.text(st.sampled_from(MARKS) | st.characters(), max_size=40)

TRICKS = [
    "web|01",
    "a || b",
    "a\\|b",
    "a\\",
    "\\|",
    "`",
    "``a`",
    "` `` `",
    " a ",
    "  ",
    "one\ntwo",
    "a\r\nb",
    "# head",
    "- item",
    "> quote",
    "1. item",
    "---",
    "===",
    "track*",
    "*a* _b_ __c__ ~~d~~",
    "snake_case_name",
    "_lead",
    "[x](javascript:alert(1))",
    "![x](https://evil.example/a.png)",
    "<https://evil.example>",
    "https://evil.example/ now",
    "<img src=x onerror=alert(1)>",
    "</td></table><script>alert(1)</script>",
    "a <b>bold</b> word",
    "&amp; &#60;b&#62;",
    "[ref]: https://evil.example",
    "```\nfence",
    "@everyone look",
    "\x1b[31m",
    "\u202eabc",
]


def envelope(*parts, **fields):
    sections = (Section(label="Part", parts=parts),)
    return Card(kind="Envelope", name="x", headline="1 row", sections=sections, **fields)


def table_of(*rows, **fields):
    columns = tuple(Column(head=Data(value=f"c{n}")) for n in range(len(rows[0])))
    return Table(**{"columns": columns, "rows": rows, "total": len(rows), **fields})


def words(text):
    """Give what a text of ours reads as."""
    return visible(re.sub(r"\r\n|\r|\n", " ", text))


def recorded(text):
    """Give what a text from outside reads as."""
    return words(text) if text else "—"


def inlines(markdown, reader):
    """Give the runs of each block, by the block they are in, having checked what they are."""
    tokens, found = READERS[reader].parse(markdown), []
    for before, token in pairwise(tokens):
        assert token.type != "html_block"
        if token.type == "inline":
            made = {child.type for child in token.children}
            assert made <= MADE, made
            text = "".join(child.content for child in token.children)
            bold = "strong_open" in made
            found.append((before.type, text, bold))
    return found


def cells_of(markdown, reader="js-default"):
    return [text for block, text, _ in inlines(markdown, reader) if block == "td_open"]


def piped(markdown):
    return [line for line in markdown.split("\n") if line.startswith("| ")]


def separators(line):
    return len(re.findall(r"(?<!\\)\|", line))


def with_tricks(test):
    for trick in TRICKS:
        test = example(trick)(test)
    return test


@pytest.mark.parametrize("reader", READERS)
@with_tricks
@given(hostile)
def test_a_cell_reads_back_as_the_text_that_was_recorded(reader, text):
    shown = render_markdown(envelope(table_of((Data(value=text), text, Data(value=7)))))
    assert cells_of(shown, reader) == [recorded(text), words(text), "7"]


@pytest.mark.parametrize("reader", READERS)
@with_tricks
@given(hostile)
def test_a_sentence_around_a_value_reads_back_whole(reader, text):
    shown = render_markdown(envelope(Prose(text=("was", Data(value=text), "once"))))
    blocks = [text for block, text, _ in inlines(shown, reader) if block == "paragraph_open"]
    assert blocks[2:] == [f"was {recorded(text)} once"]


@pytest.mark.parametrize("reader", READERS)
@with_tricks
@given(hostile)
def test_text_opens_no_block_wherever_it_stands(reader, text):
    card = envelope(
        Prose(text=text),
        Prose(text=Data(value=text)),
        Facts(label="", items=(Fact(term=Data(value=text)), Fact(term=text, detail="x")), total=2),
        Facts(label=text, items=(), total=0, empty=text),
        Flow(lines=(FlowLine(depth=0, cells=(Data(value=text),)),), notes=(text,)),
        table_of(("a",), note=text, total=9, rest=text),
        closing=(text,),
        remarks=(text,),
    )
    allowed = {"paragraph", "bullet_list", "list_item", "fence", "inline"}
    allowed |= {"table", "thead", "tbody", "tr", "th", "td"}
    shown = render_markdown(card)
    kinds = [token.type for token in READERS[reader].parse(shown)]
    assert {re.sub("_(open|close)$", "", kind) for kind in kinds} <= allowed
    assert kinds.count("fence") == 1
    assert kinds.count("bullet_list_open") == 1
    assert kinds.count("table_open") == 1
    inlines(shown, reader)


@with_tricks
@given(hostile)
def test_every_line_of_a_table_has_as_many_columns_as_its_head(text):
    head = (Column(head=Data(value=text)), Column(head=text), Column(head="n", align="right"))
    rows = ((Data(value=text), text, 1), (text, (text, Data(value=text)), None))
    shown = render_markdown(envelope(Table(columns=head, rows=rows, total=2)))
    lines = piped(shown)
    assert len(lines) == 4
    assert lines[1] == "| --- | --- | ---: |"
    tokens = READERS["js-default"].parse(shown)
    assert [token.type for token in tokens].count("td_open") == 6
    assert [token.type for token in tokens].count("th_open") == 3


def test_every_line_has_as_many_pipes_for_the_reported_row():
    lines = piped(render_markdown(envelope(table_of((Data(value="web|01"), Data(value="a || b"))))))
    assert {separators(line) for line in lines} == {3}
    assert lines[-1] == r"| `web\|01` | a \|\| b |"


@given(st.lists(hostile, max_size=3), hostile, hostile)
def test_the_headline_is_one_bold_line(qualifiers, name, headline):
    card = Card(kind="Envelope", name=name, qualifiers=tuple(qualifiers), headline=headline)
    for reader in READERS:
        ((block, text, bold),) = inlines(render_markdown(card), reader)
        assert (block, bold) == ("paragraph_open", True)
        assert text.startswith(f"Envelope {visible(name)}".rstrip())


@given(st.lists(hostile, min_size=1, max_size=4))
def test_an_outline_stays_inside_its_fence(names):
    lines = tuple(FlowLine(depth=n, cells=(Data(value=name),)) for n, name in enumerate(names))
    shown = render_markdown(envelope(Flow(lines=lines)))
    (fence,) = (t for t in READERS["commonmark"].parse(shown) if t.type == "fence")
    assert fence.info == "text"
    assert fence.content.count("\n") == len(names)
    assert shown.endswith(fence.markup)


def test_a_fence_is_longer_than_any_run_of_backticks_inside():
    shown = render_markdown(envelope(Flow(lines=(FlowLine(depth=0, cells=("a ```` b",)),))))
    assert "`````text\na ```` b\n`````" in shown


def test_names_are_set_apart_and_sentences_read_as_sentences():
    row = (Data(value="cluster-b"), Data(value="older than 7 days"), Data(value=30, unit="days"))
    assert piped(render_markdown(envelope(table_of(row))))[-1] == (
        "| `cluster-b` | older than 7 days | 30 days |"
    )


@pytest.mark.parametrize("text", ["see https://x.example", "ask @ops now", "as in #12 here"])
def test_a_sentence_a_host_would_link_stands_in_a_code_span(text):
    assert f"`{text}`" in render_markdown(envelope(Prose(text=Data(value=text))))


def test_names_with_underscores_stay_readable_in_the_source():
    assert render_markdown(Card(kind="Envelope", name="backup_triage")) == (
        "**Envelope backup_triage**"
    )


def test_a_capped_table_says_how_many_of_how_many_and_where_the_rest_is():
    rows = tuple((n,) for n in range(51))
    shown = render_markdown(envelope(table_of(*rows, rest="to_frame()")))
    assert "**Part** · 50 of 51 shown" in shown
    assert "\n\n1 more row: to_frame()" in shown
    assert len(piped(shown)) == 52
    assert "shown" not in render_markdown(envelope(table_of(*rows[:50])))


def test_rows_that_the_view_does_not_carry_are_counted_too():
    with settings(max_table_rows=1):
        shown = render_markdown(envelope(table_of((1,), (2,), total=312)))
    assert "1 of 312 shown" in shown
    assert "311 more rows" in shown


def test_a_dash_is_explained_once_where_there_is_one():
    assert "— means not recorded" in render_markdown(envelope(table_of((Data(value=None),))))
    assert "means" not in render_markdown(envelope(table_of((0,))))


def test_a_table_without_rows_is_a_sentence_without_pipes():
    shown = render_markdown(envelope(table_of((1,), rows=(), total=0, empty="nothing was tried")))
    assert shown.endswith("**Part**\n\nnothing was tried")


def test_sections_that_text_leaves_out_are_shown():
    section = Section(label="Rules", parts=(Prose(text="two rules"),), in_text=False)
    assert "**Rules**\n\ntwo rules" in render_markdown(
        Card(kind="Envelope", name="x", sections=(section,))
    )


def test_the_ledger_is_three_lists_with_their_counts():
    shown = render_markdown(
        envelope(
            Facts(label="Checked", items=(Fact(term="a"), Fact(term="b", detail="c")), total=2),
            Facts(label="Not checked", items=(Fact(term="d"),), total=14),
            Facts(label="Cannot cover", items=(), total=0),
        )
    )
    assert shown.split("\n\n")[2:] == [
        "**Checked (2)**",
        "- a\n- b — c",
        "**Not checked (14)** · 1 of 14 shown",
        "- d",
        "**Cannot cover (0)** · none declared",
    ]


def test_a_fact_that_was_not_recorded_differs_from_one_nothing_is_said_of():
    items = (Fact(term="a"), Fact(term="b", detail=Data(value=None)))
    shown = render_markdown(envelope(Facts(label="Report", items=items, total=2)))
    assert shown.endswith("- a\n- b — —")


def test_badges_of_a_fact_follow_in_brackets():
    fact = Fact(term="protected", detail="no rule fired", badges=(Badge(word="default"),))
    assert render_markdown(envelope(Facts(label="", items=(fact,), total=1))).endswith(
        "- protected — no rule fired (default)"
    )


def test_groups_are_tables_of_their_own_under_their_heading():
    groups = (
        Group(label="up", start=1, total=4, note="rule 3 raised"),
        Group(label="down", start=2, total=1),
    )
    shown = render_markdown(envelope(table_of((1,), (2,), (3,), groups=groups)))
    assert shown.split("\n\n")[2:] == [
        "| `c0` |\n| --- |\n| 1 |",
        "**up** · 4 rows · rule 3 raised",
        "| `c0` |\n| --- |\n| 2 |",
        "**down** · 1 row",
        "| `c0` |\n| --- |\n| 3 |",
    ]


def test_details_follow_their_table_and_name_their_row():
    details = (Detail(row=1, text="refused 2"), Detail(row=9, text="of no row"))
    shown = render_markdown(envelope(table_of((1,), (2,), details=details)))
    assert shown.endswith("| 2 |\n\n- 2: refused 2")


def test_spaces_of_ours_between_runs_stay_spaces():
    shown = render_markdown(envelope(Prose(text=("Rule 2 fired: ", Data(value="old"), "."))))
    assert shown.endswith("Rule 2 fired: `old`.")


def test_a_warning_is_marked():
    assert render_markdown(envelope(Prose(text="3 names were taken", tone="warning"))).endswith(
        "▲ 3 names were taken"
    )
