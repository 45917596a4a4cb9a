"""Text put into elements stays text, whatever it looks like."""

from __future__ import annotations

from html.parser import HTMLParser

import markupsafe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.render.markup import Html, escape, tag, together

#: What an element can hold without the parser reading it otherwise: no control characters.
text = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=40)


class Heard(HTMLParser):
    """Keeps what a parser hears, with texts joined."""

    def __init__(self, html):
        super().__init__()
        self.started, self.ended, self.said = [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.started.append((tag, attrs))

    def handle_endtag(self, tag):
        self.ended.append(tag)

    def handle_data(self, data):
        self.said += data


@given(st.text())
def test_text_is_escaped_as_a_template_language_would(said):
    assert str(escape(said)) == str(markupsafe.escape(said))


@given(text, text)
def test_a_reader_gets_the_text_and_the_attribute_back(said, title):
    heard = Heard(tag("b", said, title=title))
    assert heard.started == [("b", [("title", title)])]
    assert (heard.said, heard.ended) == (said, ["b"])


@given(st.lists(text, max_size=5), text)
def test_pieces_and_what_is_between_them_are_text_as_well(pieces, between):
    heard = Heard(together(pieces, between))
    assert (heard.started, heard.said) == ([], between.join(pieces))


def test_html_is_not_escaped_again():
    inner = tag("i", "a & b")
    assert tag("b", inner) == "<b><i>a &amp; b</i></b>"
    assert escape(inner) is inner
    assert together([inner, "<"], Html("<br>")) == "<i>a &amp; b</i><br>&lt;"


def test_a_text_made_of_html_is_text_again():
    inner = tag("i", "a")
    assert tag("b", f"{inner}") == "<b>&lt;i&gt;a&lt;/i&gt;</b>"
    assert type(inner + "<") is str
    assert tag("b", inner + "<") == "<b>&lt;i&gt;a&lt;/i&gt;&lt;</b>"


def test_a_subclass_that_calls_itself_html_is_text():
    class Pretender(Html):
        def __html__(self):
            return self

    assert tag("b", Pretender("<i>")) == "<b>&lt;i&gt;</b>"


def test_attributes_are_written_in_order_and_only_when_there_is_something_to_write():
    made = tag("p", class_="c", aria_hidden="true", open=True, title=None, dir=False, lang="")
    assert made == '<p class="c" aria-hidden="true" open lang=""></p>'


@pytest.mark.parametrize("name", ["img", "col"])
def test_an_element_that_holds_nothing_has_no_end(name):
    assert tag(name, style="x") == f'<{name} style="x">'
