"""What an output shows is taken apart without running or fetching anything of it."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.render.html import render_html
from runbook_nb.settings import settings
from runbook_nb.share.shown import MAX_PICTURE, beside_blocks, blocks_of, card_in, texts_of


def picture(svg):
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


@pytest.fixture(scope="module")
def drawn(envelope):
    with settings(layout="pure"):
        return render_html(envelope.view())


def test_a_card_is_found_in_whatever_stands_around_it(drawn):
    assert card_in(f"<p>before</p>{drawn}<p>after</p>") == drawn
    assert card_in("<p>nothing</p>") is None
    assert card_in('<div class="rbnb"><div>never closed') is None


def test_a_card_is_taken_apart_by_its_sections(drawn):
    labels = [block.label for block in blocks_of(drawn)]
    assert labels == ["part 1", "part 2", "Verdicts", "Coverage", "Rules", "Walk", "part 7"]
    verdicts = blocks_of(drawn)[2]
    assert verdicts.rows[1] == ("verdict", "host", "days", "decided by")
    assert "days 9 > 7" in verdicts.rows[2]
    assert "".join(block.html for block in blocks_of(drawn)) in drawn.replace("\n", "")


def test_style_and_what_is_carried_are_no_texts(drawn):
    words = " ".join(text for block in blocks_of(drawn) for row in block.rows for text in row)
    assert "rb-" not in words
    assert "runbook_nb:payload" not in words


@pytest.mark.parametrize(
    ("forged", "texts"),
    [
        ("<p>before</p>{}", ("before",)),
        ("{}<p>after", ("after",)),
        ("{}<!-- a comment -->", ("<!-- a comment -->",)),
        ('{}<img alt="a table" src="data:,">', ("a picture: a table",)),
        ("<style>p{{color:red}}</style>{}", ()),
    ],
)
def test_whatever_stands_around_the_blocks_is_read(drawn, forged, texts):
    untouched = beside_blocks(drawn)
    assert untouched[0] == ()
    assert ".rbnb" in untouched[1]
    assert "runbook_nb:payload" not in untouched[1]
    around = beside_blocks(forged.format(drawn))
    assert around[0] == texts
    assert around[1] != untouched[1]


def test_a_text_between_the_blocks_is_read_and_a_comment_hides_none(drawn):
    end = drawn.rindex("</div>")
    for text in ("all is well", "<br>all is well", "<!-->all is well<!-- -->"):
        found = beside_blocks(f"{drawn[:end]}{text}{drawn[end:]}")
        assert "all is well" in " ".join(found[0])


def test_the_texts_of_a_picture_are_read_with_what_it_says_instead(drawn):
    [walk] = [block for block in blocks_of(drawn) if block.label == "Walk"]
    [image] = walk.pictures
    assert image.alt.startswith("2 of 2 subjects done")
    assert "Judge each row" in image.texts


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/a.svg",
        "data:image/png;base64,AAAA",
        "data:image/svg+xml;base64,***",
        "data:image/svg+xml;base64,/w==",
        picture("<svg/>" + " " * MAX_PICTURE),
    ],
)
def test_what_is_no_picture_of_ours_has_no_texts(uri):
    assert texts_of(uri) is None


def test_texts_of_a_picture_are_whole_and_unescaped():
    svg = "<svg><title>t</title><text>a &lt; <tspan>b</tspan></text><rect/><text>c</text></svg>"
    assert texts_of(picture(svg)) == ("t", "a < b", "c")


@given(st.text())
def test_whatever_a_file_holds_is_taken_apart_or_is_none(text):
    card = card_in(f'<div class="rbnb">{text}</div>')
    if card is not None:
        blocks_of(card)
    texts_of(picture(text.encode("utf-8", "ignore").decode()))
