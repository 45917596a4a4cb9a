"""Views as HTML: one self-contained block that stands in any notebook host.

The block is complete without its stylesheet, without ARIA and without inline styles: reading order
is document order, and words carry every meaning. Texts are escaped by the templates, whatever
their origin; nothing from a view ends up in a name, an address or a style.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._json import byte_size
from runbook_nb._text import counted
from runbook_nb._view import Card, Facts, Flow, Part, Prose, Section, Table
from runbook_nb.render import parts, theme
from runbook_nb.render.cells import words
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

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
    card: Card, embedded: Markup, *, pictures: bool = True, cuts: Any = (), page: bool = False
) -> str:
    template = environment().get_template("card.html.jinja")
    main = sum(1 for section in card.sections if not parts.is_lead(section)) == 1
    sections: list[dict[str, Any]] = []
    for place, section in enumerate(card.sections):
        before = any(not section_["lead"] for section_ in sections)
        sections.append(_section(section, place, before, main=main, pictures=pictures))
    return template.render(
        eyebrow=parts.eyebrow(card),
        heading=parts.heading(card),
        chips=parts.pieces(card.badges),
        bar=parts.bar(card),
        sections=sections,
        foot=parts.foot(card),
        cuts=cuts,
        embedded=embedded,
        page=page and settings.theme == "auto",
    )


def _section(
    section: Section, place: int, before: bool, *, main: bool, pictures: bool
) -> dict[str, Any]:
    label, note = words(section.label), words(section.note)
    table = parts.first_table(section)
    made = [_part(part, bool(label), main=main, pictures=pictures) for part in section.parts]
    captioned = table is not None and bool(label)
    if table is not None and captioned:
        made[0]["made"] = parts.table_parts(table, note)
        note = made[0]["made"]["caption"]
    return {
        "lead": parts.is_lead(section),
        "label": label,
        "note": note,
        "captioned": captioned,
        # The first table follows the headline without a rule: it is the answer itself.
        "ruled": bool(label) and (before or table is None),
        "parts": made,
        "place": place,
    }


def _part(part: Part, labelled: bool, *, main: bool, pictures: bool) -> dict[str, Any]:
    if isinstance(part, Table):
        return {"kind": "table", "made": parts.table_parts(part)}
    if isinstance(part, Facts):
        return {"kind": "facts", "made": parts.facts_parts(part, labelled=labelled)}
    if isinstance(part, Flow):
        drawing = _drawing(part) if pictures else None
        return {"kind": "flow", "made": parts.flow_parts(part, drawing, main=main)}
    assert isinstance(part, Prose)  # noqa: S101 - the parts of a view are these four
    return {"kind": "prose", "made": parts.prose_parts(part)}


def _drawing(flow: Flow) -> Any:
    """Draw the picture of a flow; without one the list must do, which says the same."""
    if getattr(flow, "graph", None) is None:
        return None
    try:
        from runbook_nb.render.svg import draw
    except ImportError:
        return None
    return draw(flow)


def _embedded(card: Card, *, whole: bool = False) -> tuple[Markup, list[str]]:
    """Give the comment that carries the payload, or say why there is none."""
    from markupsafe import Markup

    if card.payload is None or not settings.embed:
        return Markup(""), []
    from runbook_nb.render.embed import MAX_EMBEDDED, comment_of

    try:
        comment = comment_of(card.payload, None if whole else MAX_EMBEDDED)
    except Exception as error:  # the answer is shown all the same
        return Markup(""), [f"no machine-readable form is carried: {type(error).__name__}"]
    return Markup(comment), []  # noqa: S704 - base64 between our own words


@cache
def environment() -> Environment:
    """Make the template environment: everything is escaped, nothing undefined is passed over."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader("runbook_nb.render", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
        keep_trailing_newline=False,
    )
    made.globals.update(
        s=theme.STYLES,
        signs=theme.SIGNS,
        fills=theme.FILLS,
        outlines=theme.OUTLINES,
        rails=theme.RAILS,
        keys=theme.KEYS,
        label_style=theme.LABEL_STYLE,
        chip_style=theme.chip_style,
        tile_style=theme.tile_style,
        mark_style=theme.mark_style,
        glyph_style=theme.glyph_style,
        bar_style=theme.bar_style,
        number=parts.number,
        css=Markup(theme.css()),  # noqa: S704 - a file of ours
    )
    return made
