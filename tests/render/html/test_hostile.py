"""Whatever a view holds, it shows as text: no tag, no attribute, no name comes from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hand_made import COLUMNS
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st
from untrusted import HINTS, dropped, reading

from runbook_nb._text import MISSING
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
from runbook_nb.render import theme
from runbook_nb.render.html import render_html
from runbook_nb.settings import settings

HOSTILE = [
    "</style><img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' style='position:fixed",
    "javascript:alert(1)",
    "<!-- --><!--runbook_nb:payload/1 sha-256:",
    "{{ 7 * 7 }}{% include 'x' %}",
    "&lt;b&gt;&amp;",
    r"\N\G\l|a|b",
    "a\u202eb\u2066c",
    "\x00\x1b[31mred",
    "\ud800 lone",
    "]]>",
    "備份" * 3,
]


class Marked(str):
    """Claims to be markup already."""

    __slots__ = ()

    def __html__(self):
        return "<b>bold</b>"


def card_of(value):
    """Put a value everywhere a value can stand."""
    cell = Data(value=value, unit=value if isinstance(value, str) else None)
    word = value if isinstance(value, str) else "x"
    badge = Badge(word=word, role="a", count=3)
    table = Table(
        columns=(
            Column(head=Data(value=value)),
            Column(head=badge, align="right"),
            Column(head=word, equation=True),
        ),
        rows=tuple((cell, badge, (cell, Data(value=3), ">", cell)) for _ in range(14)),
        total=20,
        rest=word,
        note=word,
        groups=(Group(label=(cell, badge), start=0, total=9, note=cell),),
        details=(Detail(row=0, text=(cell, word)),),
        strong_rows=(1,),
    )
    fact = Fact(term=(cell, word), detail=(cell, word), badges=(badge,))
    lists = [
        Facts(label=word, items=(fact,) * 8, total=9, style=style, empty=word)
        for style in ("plain", "checked", "not_checked", "cannot_cover")
    ]
    strong = Data(value=value, tone="strong")
    return Card(
        kind=word,
        name=word,
        state=word,
        headline=word,
        tail=word,
        eyebrow=((cell, word),),
        heading=(badge, cell, strong),
        badges=(badge,),
        foot=(cell, word),
        sections=(
            Section(label="", parts=(Prose(text=(cell, word, strong), tone="warning"),)),
            Section(label=word, parts=(table,), note=word),
            Section(label=word, parts=tuple(lists), note=(cell,)),
            Section(
                label=word,
                parts=(
                    Flow(
                        lines=(FlowLine(depth=0, cells=(cell, badge, word), state="failed"),),
                        summary=word,
                        notes=(word,),
                    ),
                ),
            ),
        ),
    )


class Parts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.comments = set(), {}, []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value)

    def handle_comment(self, data):
        self.comments.append(data)


def parts_of(html):
    parts = Parts()
    parts.feed(html)
    parts.close()
    return parts


#: What harmless texts bring, short and long: how a cell's text may break depends on its length.
USUAL = parts_of(
    "".join(
        render_html(card_of(word)) for word in ("us-east-2/prod/orders usual", "usual", "u" * 60)
    )
)


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_is_text_wherever_it_stands(value):
    html = render_html(card_of(value))
    found = parts_of(html)
    assert found.tags == USUAL.tags
    assert set(found.attributes) - {"dir"} <= set(USUAL.attributes)
    assert found.comments == []
    for name in ("class", "style", "scope", "colspan", "lang"):
        usual = {re.sub(r"\d+", "n", value) for value in USUAL.attributes[name]}
        assert {re.sub(r"\d+", "n", value) for value in found.attributes[name]} <= usual
    assert not {"id", "href", "src", "srcset", "action"} & set(found.attributes)
    assert {"<style>"} <= set(dropped(html)) <= HINTS


@pytest.mark.parametrize("value", HOSTILE[:9])
def test_hostile_text_is_shown_as_it_is(value):
    assert any(value in line for line in reading(render_html(card_of(value))))


def test_text_that_claims_to_be_markup_is_escaped_like_any_other():
    html = render_html(card_of(Marked("<i>plain</i>")))
    assert "<b>bold</b>" not in html
    assert "<i>" not in html
    assert "&lt;i&gt;plain&lt;/i&gt;" in html


def test_controls_and_overrides_of_direction_are_shown_as_escapes():
    html = render_html(card_of("a\u202eb\x1b"))
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert r"a\u202eb\x1b" in html


# --- anything at all ---------------------------------------------------------------------------


class Broken:
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__

    def __eq__(self, other):
        raise RuntimeError("no equality")

    def __hash__(self):
        raise RuntimeError("no hash")

    def __bool__(self):
        raise RuntimeError("no truth")


class BrokenText(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no text")

    def __html__(self):
        raise RuntimeError("no markup")


ODD = [
    *(None, MISSING, 0, -0.0, 10**5000, float("nan"), True, "", " ", b"\xff"),
    *({1, 2}, {"a": 1}, Broken(), BrokenText("hidden"), "x" * 3000, *HOSTILE),
]
text = st.text(max_size=30) | st.sampled_from(HOSTILE)
data = st.builds(
    Data,
    value=st.integers(0, len(ODD) - 1).map(ODD.__getitem__) | st.integers() | st.floats(),
    unit=st.none() | text,
    tone=st.sampled_from(["plain", "strong", "dim", "code"]),
)
roles = st.sampled_from([*theme.SIGNS, "quiet", "plain"])
counts = st.none() | st.integers(-3, 10**6)
badges = st.builds(Badge, word=text, role=roles, count=counts)
runs = text | st.integers() | data | badges | st.none()
cells = runs | st.lists(runs, max_size=5).map(tuple)
columns = st.builds(
    Column,
    head=text | data | badges,
    align=st.sampled_from(["left", "right"]),
    equation=st.booleans(),
)


def tuples(of, most):
    return st.lists(of, max_size=most).map(tuple)


tables = st.builds(
    Table,
    columns=tuples(columns, 6),
    rows=tuples(tuples(cells, 7), 14),
    total=st.integers(0, 400),
    rest=text,
    note=text,
    empty=text,
    groups=st.lists(
        st.builds(Group, label=cells, start=st.integers(0, 15), total=st.integers(), note=cells),
        max_size=4,
    ).map(lambda groups: tuple(sorted(groups, key=lambda group: group.start))),
    details=tuples(st.builds(Detail, row=st.integers(-1, 15), text=cells), 4),
    strong_rows=tuples(st.integers(-1, 15), 3),
    whole=st.booleans(),
)
facts = st.builds(
    Facts,
    label=text,
    items=tuples(st.builds(Fact, term=cells, detail=cells, badges=tuples(badges, 2)), 12),
    total=st.integers(0, 30),
    style=st.sampled_from(["checked", "not_checked", "cannot_cover", "plain"]),
    empty=text,
)
states = st.sampled_from(["ran", "not_taken", "not_reached", "failed", "declared"])
flows = st.builds(
    Flow,
    lines=tuples(
        st.builds(FlowLine, depth=st.integers(-1, 60), cells=tuples(cells, 6), state=states), 9
    ),
    summary=text,
    notes=tuples(text, 3),
)
prose = st.builds(Prose, text=cells, tone=st.sampled_from(["plain", "dim", "warning"]))
sections = st.builds(
    Section, label=text, parts=tuples(tables | facts | flows | prose, 3), note=cells
)
cards = st.builds(
    Card,
    kind=text,
    name=text,
    state=text,
    qualifiers=tuples(text, 3),
    eyebrow=tuples(cells, 3),
    headline=text,
    heading=cells,
    badges=tuples(badges, 5),
    tail=text,
    sections=tuples(sections, 3),
    closing=tuples(text, 3),
    remarks=tuples(text, 3),
    foot=cells,
)


@trials(deadline=None)
@given(cards)
def test_any_view_is_html_that_an_untrusted_notebook_keeps(card):
    html = render_html(card)
    html.encode()
    assert set(dropped(html)) <= HINTS
    assert parts_of(html).comments == []
    assert render_html(card) == html


@trials(deadline=None, max_examples=30)
@given(cards)
def test_the_smallest_caps_are_kept_to_as_well(card):
    with settings(max_table_rows=1, max_cell=1):
        render_html(card)


@trials(deadline=None)
@given(st.lists(counts, max_size=6))
def test_the_pieces_of_a_bar_never_exceed_it(numbers):
    badges = tuple(Badge(word="x", role="a", count=n) for n in numbers)
    html = render_html(Card(kind="K", name="n", badges=badges))
    shares = [float(x) for x in re.findall(r'class="rb-bar"[^>]*width:([\d.]+)%', html)]
    assert sum(shares) <= 100.1


def test_a_table_of_the_usual_columns_survives_rows_of_nothing():
    table = Table(columns=COLUMNS, rows=((None,) * 4, ("",) * 4, ((),) * 4), total=3)
    card = Card(kind="K", name="n", sections=(Section(label="T", parts=(table,)),))
    assert render_html(card).count("<tr") == 4
