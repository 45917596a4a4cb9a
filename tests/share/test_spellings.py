"""A hidden text is found however it was written, and never one that is none."""

import html
import json
from urllib.parse import quote, quote_plus

import markupsafe
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runbook_nb.share.spellings import Spellings

WRITERS = [
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    html.escape,
    lambda text: str(markupsafe.escape(text)),
    lambda text: text.encode("ascii", "xmlcharrefreplace").decode(),
    lambda text: repr(text)[1:-1],
    quote,
    lambda text: quote(text, safe=""),
    quote_plus,
]
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=12)


@given(texts, st.sampled_from(WRITERS), st.sampled_from(WRITERS[:5]))
def test_it_is_found_as_one_writer_wrote_it_and_as_another_wrote_that(text, one, other):
    hidden = Spellings([text])
    assume(hidden)
    assert hidden.hide(f"x {other(one(text))} y") in [("x [REDACTED] y", 1), ("[REDACTED]", 1)] or (
        text not in hidden.hide(f"x {other(one(text))} y")[0]
    )
    assert hidden.hide(f"x {other(one(text))} y")[1]


@given(st.lists(texts, min_size=1, max_size=4), texts)
def test_nothing_is_left_whatever_the_order_and_hiding_again_changes_nothing(hidden, around):
    made, _ = Spellings(hidden).hide(around.join(hidden) + around)
    for text in Spellings(hidden).texts:
        assert text not in made
    assert Spellings(hidden).hide(made) == (made, 0)


@given(texts, texts)
def test_a_text_without_it_stays_as_it_is(hidden, text):
    assume(not any(part in text for part in (hidden[:1], "…", "...")))
    assert Spellings([hidden]).hide(text) == (text, 0)


def test_colours_and_tags_between_its_characters_stay():
    hidden = Spellings(["hunter-2"])
    assert hidden.hide("a<b>hunt</b>er-<i>2</i>") == ("a<b>[REDACTED]</b><i></i>", 1)
    assert hidden.hide("\x1b[33mhunter\x1b[39m-2") == ("\x1b[33m[REDACTED]\x1b[39m", 1)


def test_of_one_that_was_cut_short_the_beginning_is_found():
    assert Spellings(["kranich-7731"]).hide("with kranich-7…")[0] == "with [REDACTED]…"


def test_overlapping_ones_leave_no_piece():
    assert Spellings(["abcdef", "defghi"]).hide("xabcdefghix") == ("x[REDACTED]x", 1)


def test_a_piece_of_the_placeholder_is_not_looked_for_and_that_is_known():
    hidden = Spellings(["RED", "hunter-2"])
    assert hidden.unsought == {"RED"}
    assert hidden.hide("[REDACTED] hunter-2") == ("[REDACTED] [REDACTED]", 1)


def test_one_that_hiding_would_bring_about_is_hidden_too():
    made, _ = Spellings(["hunter-2", "]a"]).hide("hunter-2a")
    assert "]a" not in made


def test_bytes_are_looked_through_as_they_are():
    assert Spellings(["hünter"]).are_in("x hünter y".encode())
    assert not Spellings(["hünter"]).are_in(b"x")


@pytest.mark.parametrize("text", ["\\" * 20_000, "<" * 20_000, "\x1b[" * 10_000, "&#" * 10_000])
def test_hostile_texts_take_no_longer_than_their_length(text):
    """Each of these would take hours if the patterns went back over what they had read."""
    assert Spellings(['\\"<&é"x-9']).hide(text) == (text, 0)


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://host/?key=pa%2Fss%26wo-9">x</a>',
        '<p title="pa/ss&amp;wo-9">x</p>',
        '<iframe srcdoc="&lt;p&gt;pa/ss&amp;amp;wo-9&lt;/p&gt;"></iframe>',
        '<p data-all="{&quot;key&quot;: &quot;pa\\/ss\\u0026wo-9&quot;}">x</p>',
    ],
)
def test_a_text_within_a_tag_is_found_however_it_is_escaped(html):
    text, times = Spellings(["pa/ss&wo-9"]).hide(html)
    assert times == 1
    assert "wo-9" not in text
    assert text.startswith(html[:9])
