"""Views as HTML: one self-contained block that stands in any notebook host.

The block is complete without its stylesheet, without ARIA and without inline styles: reading order
is document order, and words carry every meaning. Texts are escaped by the templates, whatever
their origin; nothing from a view ends up in a name, an address or a style.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from runbook_nb._json import byte_size
from runbook_nb._text import counted
from runbook_nb._view import Card, Facts, Flow, Part, Plot, Prose, Section, Table
from runbook_nb.render import blocks, parts, theme
from runbook_nb.render.cells import words
from runbook_nb.render.markup import Html, tag, together
from runbook_nb.settings import settings

#: Bytes of one output; the picture gives way first, then rows.
MAX_BYTES: Final = 512 * 1024


def render_html(card: Card, *, export: bool = False, page: bool = False) -> str:
    """Draw a view as HTML.

    Parameters
    ----------
    card : Card
        The view.
    export : bool
        Whether it goes into a file to hand on: the machine-readable form is carried whole and
        not counted.
    page : bool
        Whether it is what a page of its own shows: nothing is cut, and where `settings.theme` is
        ``auto`` it follows the reader's system.

    Returns
    -------
    str
        One ``<div>`` with everything in it, of at most `MAX_BYTES` bytes as long as cutting
        pictures and rows can bring it there; what was cut is said.

    Examples
    --------
    >>> from runbook_nb._view import Badge, Card
    >>> drawn = render_html(Card(kind="Envelope", name="<b>", headline="3 rows",
    ...     badges=(Badge(word="declined", role="declined", count=3),)))
    >>> "&lt;b&gt;" in drawn, "<b>" in drawn, "3 declined" in drawn
    (True, False, True)
    """
    embedded, cuts = _embedded(card, whole=export)
    drawn = _draw(card, embedded, cuts=cuts, page=page)
    most = MAX_BYTES + (byte_size(embedded) if export else 0)
    if page or byte_size(drawn) <= most:
        return drawn
    cuts = [*cuts, _without("the picture")]
    drawn = _draw(card, embedded, pictures=False, cuts=cuts)
    longest = settings.max_table_rows
    while byte_size(drawn) > most and longest > 1:
        longest //= 2
        cuts[-1] = _without(f"the picture and all but {counted(longest, 'row')} of each list")
        drawn = _draw(_cut(card, longest), embedded, pictures=False, cuts=cuts)
    return drawn


def _without(what: str) -> str:
    return f"left out, as the output would be larger than {MAX_BYTES // 1024} kB: {what}"


def _cut(card: Card, longest: int) -> Card:
    def cut(part: Part) -> Part:
        if isinstance(part, Table):
            return replace(part, rows=part.rows[:longest], total=max(part.total, len(part.rows)))
        if isinstance(part, Facts):
            return replace(part, items=part.items[:longest], total=max(part.total, len(part.items)))
        return part

    return replace(
        card,
        sections=tuple(replace(s, parts=tuple(map(cut, s.parts))) for s in card.sections),
    )


def _draw(
    card: Card,
    embedded: Html,
    *,
    pictures: bool = True,
    cuts: Iterable[str] = (),
    page: bool = False,
) -> str:
    styles = theme.STYLES
    main = sum(1 for section in card.sections if not parts.is_lead(section)) == 1
    out: list[str] = [
        tag("style", Html(theme.css())),
        "\n",
        tag("div", _dotted(parts.eyebrow(card)), style=styles["eyebrow"]),
    ]
    heading, chips = parts.heading(card), parts.pieces(card.badges)
    if heading or chips:
        out += ("\n", tag("div", *_heading(heading, chips), style=styles["headline"]))
    if shares := parts.bar(card):
        pieces = [tag("span", class_="rb-bar", style=theme.bar_style(*share)) for share in shares]
        out += ("\n", tag("div", *pieces, aria_hidden="true", style=styles["bar"]))
    opened = False
    for section in card.sections:
        lead = parts.is_lead(section)
        drawn = _lead(section) if lead else _section(section, opened, main=main, pictures=pictures)
        out += ("\n", drawn)
        opened = opened or not lead
    if foot := parts.foot(card):
        out += ("\n", tag("div", _dotted(foot), style=styles["foot"]))
    for cut in cuts:
        out += ("\n", tag("div", cut, style=blocks.BELOW))
    own_page = page and settings.theme == "auto"
    kind = "rbnb rbnb-page" if own_page else "rbnb"
    return str(tag("div", *out, embedded, "\n", class_=kind, lang="en", style=styles["root"]))


def _dotted(made: Iterable[list[parts.Piece]]) -> Html:
    return together([blocks.runs(one) for one in made], " · ")


def _heading(heading: list[parts.Piece], chips: list[parts.Piece]) -> Iterator[str]:
    for place, piece in enumerate(heading, 1):
        if piece.kind == "badge":
            yield blocks.chip(piece)
        elif piece.kind in ("data", "strong", "prose"):
            yield blocks.data(piece, theme.STYLES["heading_data"])
        else:
            last = place == len(heading) or heading[place].kind == "badge"
            yield tag("strong", piece.text, style=theme.STYLES["heading" if last else "strong"])
        yield " "
    for piece in chips:
        yield from (blocks.chip(piece), " ")


def _lead(section: Section) -> Html:
    made = [parts.prose_parts(part) for part in section.parts if isinstance(part, Prose)]
    return together(blocks.prose(one, lead=True) for one in made)


def _section(section: Section, opened: bool, *, main: bool, pictures: bool) -> Html:
    """Draw a section; ``opened`` says whether one stands above it already."""
    label, note = words(section.label), words(section.note)
    table = parts.first_table(section)
    # The first table follows the headline without a rule: it is the answer itself.
    ruled = bool(label) and (opened or table is None)
    out: list[str] = []
    rest = section.parts
    if table is not None and label:
        made = parts.table_parts(table, note)
        out.append(blocks.table(made, label, made["caption"]))
        rest = rest[1:]
    elif label:
        out.append(tag("div", blocks.label(label, note), style=theme.STYLES["label"]))
    out += [_part(part, bool(label), main=main, pictures=pictures) for part in rest]
    style = theme.STYLES["ruled" if ruled else "section"]
    return tag("div", *out, class_="rb-sec" if ruled else None, style=style)


def _part(part: Part, labelled: bool, *, main: bool, pictures: bool) -> Html:
    if isinstance(part, Table):
        made = parts.table_parts(part)
        return blocks.table(made, "", made["caption"])
    if isinstance(part, Facts):
        return blocks.facts(parts.facts_parts(part, labelled=labelled))
    if isinstance(part, Flow):
        drawing = _drawing(part) if pictures else None
        return blocks.flow(parts.flow_parts(part, drawing, main=main))
    if isinstance(part, Plot):
        return _plot(part, pictures=pictures)
    assert isinstance(part, Prose)  # noqa: S101 - the parts of a view are these five
    return blocks.prose(parts.prose_parts(part))


def _drawing(flow: Flow) -> Any:
    """Draw the picture of a flow; without one the list must do, which says the same."""
    if getattr(flow, "graph", None) is None:
        return None
    try:
        from runbook_nb.render.svg import draw
    except ImportError:
        return None
    return draw(flow)


def _plot(plot: Plot, *, pictures: bool) -> Html:
    from runbook_nb.render.plot import draw_plot, plot_parts

    return blocks.flow(plot_parts(plot, draw_plot(plot) if pictures else None))


def _embedded(card: Card, *, whole: bool = False) -> tuple[Html, list[str]]:
    """Give the comment that carries the payload, or say why there is none."""
    if card.payload is None or not settings.embed:
        return Html(), []
    from runbook_nb.render.embed import MAX_EMBEDDED, comment_of

    try:
        comment = comment_of(card.payload, None if whole else MAX_EMBEDDED)
    except Exception as error:  # the answer is shown all the same
        return Html(), [f"no machine-readable form is carried: {type(error).__name__}"]
    return Html(comment), []  # base64 between our own words
