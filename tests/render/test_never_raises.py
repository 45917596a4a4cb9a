"""Whatever a view holds, it is drawn: no exception, no control character, no line too wide."""

from __future__ import annotations

import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

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
from runbook_nb.render.cells import width
from runbook_nb.render.markdown import render_markdown
from runbook_nb.render.text import render_line, render_text
from runbook_nb.settings import settings


class Broken:
    """Raises whenever it is looked at."""

    def __str__(self):
        raise RuntimeError("no text")

    def __repr__(self):
        raise RuntimeError("no text")

    def __len__(self):
        raise RuntimeError("no length")

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

    def isprintable(self):
        raise RuntimeError("no answer")


class BrokenNumber(int):
    def __str__(self):
        raise RuntimeError("no text")

    def bit_length(self):
        raise RuntimeError("no length")


class BrokenMap(dict):
    def __iter__(self):
        raise RuntimeError("no keys")


class Liar:
    @property
    def __class__(self):
        raise RuntimeError("no class")


def cyclic():
    value = []
    value.append(value)
    return value


HOSTILE = [
    None,
    MISSING,
    0,
    -0.0,
    10**5000,
    -(2**2000),
    float("nan"),
    float("-inf"),
    Decimal("1E+400"),
    True,
    "",
    " ",
    "\ud800 lone",
    "\x1b[31mred\x07",
    "a\u202eb\u2066c",
    "line\nfeed\r\nand\u2028more\x85",
    "備份" * 60,
    "e" + "\u0301" * 500,
    "x" * 400,
    "| a \\| b ||",
    "```",
    "![x](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    b"\xff\x00",
    {1, 2},
    {"a|b": 1},
    cyclic(),
    Broken(),
    BrokenText("hidden"),
    BrokenNumber(3),
    BrokenMap(a=1),
    Liar(),
    type("Odd\nName", (), {})(),
]

text = st.text(max_size=30) | st.sampled_from([v for v in HOSTILE if type(v) is str])
places = st.integers(0, len(HOSTILE) - 1)  # some of the values cannot even be listed
values = places.map(HOSTILE.__getitem__) | st.integers() | st.floats() | st.text(max_size=60)
data = st.builds(Data, value=values, unit=st.none() | text)
roles = st.sampled_from(["a", "b", "c", "d", "declined", "failed", "not_reached", "plain"])
counts = st.integers(min_value=-2, max_value=10**6)
badges = st.builds(Badge, word=text, role=roles, count=st.none() | counts)
runs = text | st.integers() | data | badges | st.none()
cells = runs | st.lists(runs, max_size=4).map(tuple)
few = {"max_size": 4}
columns = st.builds(
    Column,
    head=text | data,
    align=st.sampled_from(["left", "right"]),
    in_text=st.sampled_from(["bare", "labelled", "joined", "hidden"]),
)
tables = st.builds(
    Table,
    columns=st.lists(columns, max_size=20).map(tuple),
    rows=st.lists(st.lists(cells, max_size=20).map(tuple), max_size=14).map(tuple),
    total=st.integers(min_value=0, max_value=400),
    rest=text,
    note=text,
    empty=text,
    groups=st.lists(
        st.builds(Group, label=cells, start=st.integers(0, 15), total=counts, note=cells), **few
    ).map(lambda groups: tuple(sorted(groups, key=lambda group: group.start))),
    details=st.lists(st.builds(Detail, row=st.integers(-1, 15), text=cells), max_size=4).map(tuple),
)
facts = st.builds(
    Facts,
    label=text,
    items=st.lists(
        st.builds(Fact, term=cells, detail=cells, badges=st.lists(badges, max_size=2).map(tuple)),
        max_size=14,
    ).map(tuple),
    total=st.integers(min_value=0, max_value=30),
    empty=text,
)
flows = st.builds(
    Flow,
    lines=st.lists(
        st.builds(
            FlowLine,
            depth=st.integers(-1, 60),
            cells=st.lists(cells, max_size=6).map(tuple),
            state=st.sampled_from(["ran", "not_taken", "not_reached", "failed", "declared"]),
        ),
        max_size=8,
    ).map(tuple),
    summary=text,
    notes=st.lists(text, **few).map(tuple),
)
prose = st.builds(Prose, text=cells, tone=st.sampled_from(["plain", "dim", "warning"]))
sections = st.builds(
    Section,
    label=text,
    parts=st.lists(tables | facts | flows | prose, max_size=3).map(tuple),
    note=text,
    in_text=st.booleans(),
)
texts = st.lists(text, **few).map(tuple)
cards = st.builds(
    Card,
    kind=text,
    name=text,
    state=text,
    qualifiers=texts,
    eyebrow=texts,
    headline=text,
    badges=st.lists(badges, max_size=5).map(tuple),
    tail=text,
    sections=st.lists(sections, max_size=3).map(tuple),
    closing=texts,
    remarks=texts,
)


def forbidden(shown):
    return [
        char
        for char in shown
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        or char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    ]


@trials(deadline=None)
@given(cards)
def test_any_view_is_text_of_clean_lines_that_are_not_too_wide(card):
    lines = render_text(card).split("\n")
    assert all(width(line) <= 100 for line in lines)
    assert not forbidden("".join(lines))
    assert all(line == line.rstrip() for line in lines)
    "\n".join(lines).encode()


@trials(deadline=None)
@given(cards)
def test_any_view_is_clean_markdown(card):
    lines = render_markdown(card).split("\n")
    assert not forbidden("".join(lines))
    "\n".join(lines).encode()


@trials(deadline=None)
@given(cards)
def test_the_line_is_always_the_first_of_the_text(card):
    assert render_text(card).split("\n")[0] == render_line(card)


@trials(deadline=None)
@given(cards)
def test_the_same_view_always_gives_the_same_bytes(card):
    assert render_text(card) == render_text(card)
    assert render_markdown(card) == render_markdown(card)


@trials(deadline=None)
@given(cards)
def test_the_smallest_caps_are_kept_to_as_well(card):
    with settings(max_text_rows=1, max_table_rows=1, max_cell=1):
        assert all(width(line) <= 100 for line in render_text(card).split("\n"))
        render_markdown(card)


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_each_hostile_value_is_drawn_wherever_a_value_can_stand(place):
    value = HOSTILE[place]
    cell = Data(value=value, unit="days")
    row = (cell, (cell, cell), cell)
    heads = (
        Column(head=Data(value=value), in_text="labelled"),
        Column(head="b", align="right"),
        Column(head="c", in_text="joined"),
    )
    card = Card(
        kind="Envelope",
        name="x",
        sections=(
            Section(label="a", parts=(Table(columns=heads, rows=(row,), total=1),)),
            Section(
                label="b", parts=(Prose(text=cell), Flow(lines=(FlowLine(depth=1, cells=row),)))
            ),
            Section(
                label="c", parts=(Facts(label="", items=(Fact(term=cell, detail=cell),), total=1),)
            ),
        ),
    )
    assert not forbidden(render_text(card).replace("\n", ""))
    assert not forbidden(render_markdown(card).replace("\n", ""))
