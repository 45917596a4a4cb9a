"""One function per part of a view, from what `parts` made ready to HTML.

Styles are constants of ours; every other text is escaped by `tag`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from runbook_nb.render.markup import Html, element, escape, tag, together
from runbook_nb.render.parts import ONE_LINE_SAID, Box, Line, Piece, Rows, Step, number
from runbook_nb.render.theme import (
    FILLS,
    KEYS,
    LABEL_STYLE,
    OUTLINES,
    RAILS,
    SIGNS,
    STYLES,
    chip_style,
    close_style,
    glyph_style,
    mark_style,
    tile_style,
)

#: A sentence below a block, set off from it.
BELOW: Final = f"{STYLES['quiet']};margin:6px 0 0"

_KEY: Final = (("solid", "taken"), ("dashed", "no verdict reached"), ("dotted", "not taken"))
_APART: Final = Html(" &nbsp; &nbsp;")

#: Where a new line begins in a cell.
BREAK: Final = Html("<br>")

#: Elements of which a table holds many.
_CELLS: Final = {
    look: element("td", style=STYLES[look])
    for look in ("cell", "cell_in", "cell_tight", "cell_right", "cell_right_tight")
}
_HEADS: Final = {
    look: element("th", scope="row", style=STYLES[look])
    for look in ("row_head", "row_head_in", "row_head_open")
}
_WORDS: Final = {weight: element("span", style=f"font-weight:{weight}") for weight in (400, 600)}
_SAMP: Final = element("samp", class_="rb-d", style=STYLES["data"])
_ROW: Final = element("tr", class_="rb-tr")
_PLAIN: Final = element("span")
_DIM: Final = element("span", style=STYLES["dim"])
_TILES: Final = {
    role: element("span", class_="rb-tile", aria_hidden="true", style=tile_style(role))(
        SIGNS[role].glyph
    )
    for role in (*FILLS, *OUTLINES)
    if role in SIGNS
}


# --- runs --------------------------------------------------------------------------------------


def sign(role: str, style: str, class_: str | None = None) -> Html:
    """Draw the sign of a role; the word beside it says the same."""
    return tag("span", SIGNS[role].glyph, class_=class_, aria_hidden="true", style=style)


def chip(piece: Piece) -> Html:
    """Draw an outcome as it stands in the headline."""
    word = tag("span", piece.text)
    inner = (
        (sign(piece.role, glyph_style(piece.role)), " ", word) if piece.role in SIGNS else (word,)
    )
    return tag("span", *inner, class_="rb-chip", style=chip_style(piece.role))


def badge(piece: Piece, weight: int = 600) -> Html:
    """Draw an outcome as it stands in a row."""
    role, text = piece.role, piece.text
    if role in _TILES:
        return Html(f"{_TILES[role]} {_WORDS[weight](text)}")
    if role == "quiet":
        return tag("span", text, style=STYLES["dim"])
    if role in SIGNS:
        word = tag("span", text, style=STYLES["faint"] if role == "idle" else None)
        mark = sign(role, mark_style(role))
        if role == "idle" or len(text) <= ONE_LINE_SAID or " " not in text:
            return together((mark, " ", word))
        first, rest = text.split(" ", 1)  # which may be broken, but not behind its mark
        return together((tag("span", mark, " ", first, style=STYLES["nowrap"]), " ", rest))
    return tag("span", text, style=LABEL_STYLE)


def data(piece: Piece, style: str = STYLES["data"]) -> Html:
    """Draw what came from outside, in the type of data."""
    if style is STYLES["data"] and not piece.title and not piece.auto:
        return _SAMP(piece.text)
    return tag("samp", piece.text, class_="rb-d", style=style, **_tip(piece))


def _tip(piece: Piece) -> dict[str, str | None]:
    return {"title": piece.title or None, "dir": "auto" if piece.auto else None}


def runs(made: Sequence[Piece], weight: int = 600) -> Html:
    """Draw the pieces of a cell; ``weight`` is that of outcomes among them."""
    if len(made) == 1 and not made[0].space and not made[0].unit:
        return escape(_run(made[0], weight))
    out: list[str] = []
    for piece in made:
        if piece.space:
            out.append(" ")
        out.append(_run(piece, weight))
        if piece.unit:
            out += (" ", piece.unit)
    return together(out)


def _run(piece: Piece, weight: int) -> str:
    kind = piece.kind
    if kind == "ours":
        return piece.text
    if kind == "break":
        return BREAK
    if piece.role in SIGNS and kind != "badge":
        mark = sign(piece.role, close_style(piece.role))
        return together((mark, " ", _run(replace(piece, role=""), weight)))
    if kind == "data":
        return data(piece)
    if kind == "name":
        return data(piece, STYLES["name"])
    if kind == "badge":
        return badge(piece, weight)
    if kind == "strong":
        return tag("strong", piece.text, style=STYLES["strong"], **_tip(piece))
    if kind == "quiet":
        return _DIM(piece.text)
    if kind != "dim" and not piece.title and not piece.auto:
        return _PLAIN(piece.text)
    return tag("span", piece.text, style=STYLES["faint"] if kind == "dim" else None, **_tip(piece))


def label(text: str, note: str) -> Html:
    """Draw the name of a section and what is said of it."""
    return together((tag("strong", text, style=STYLES["strong"]), _note(note)))


def _note(text: str) -> Html:
    return together((" ", tag("span", text, style=STYLES["note"]))) if text else Html()


def _details(summary: Iterable[str], inner: Html, *, style: str, open: bool = False) -> Html:
    head = tag("summary", *summary, class_="rb-sum", style=STYLES["summary"])
    return tag("details", head, inner, class_="rb-fold", style=style, open=open)


# --- tables ------------------------------------------------------------------------------------


def table(made: Mapping[str, Any], caption: str = "", note: str = "") -> Html:
    """Draw a table: rows that stand open, rows that fold, and what is not in this output."""
    if made["empty"]:
        return tag("div", made["empty"], style=STYLES["prose"])
    out: list[str] = []
    if made["shown"]:
        first, *folded = made["rows"]
        out.append(_rows(made, first, caption, note))
        for rows in folded:
            inner = _rows(made, rows, "", "", rows.summary)
            out.append(_details((rows.summary, _note(rows.counts)), inner, style=STYLES["fold"]))
    if made["more"] > 0:
        out.append(_more(made))
    return together(out)


def _more(made: Mapping[str, Any]) -> Html:
    are = "row is" if made["more"] == 1 else "rows are"
    said = [f"{number(made['more'])} more {are} not in this output"]
    if made["rest"]:
        named = tag("samp", made["rest"], class_="rb-d", style=STYLES["data"])
        said += (": ", named, f" has all {made['total']}")
    return tag("div", *said, ".", style=BELOW)


def _rows(
    made: Mapping[str, Any], rows: Rows, caption: str, note: str, named: str = "Table"
) -> Html:
    heads: list[Box] = made["heads"]
    out: list[str] = []
    if caption or note:
        said = label(caption, note) if caption else tag("span", note, style=STYLES["dim"])
        out.append(tag("caption", said, style=STYLES["caption"]))
    if made["widths"]:
        out.append(tag("colgroup", *(tag("col", style=f"width:{w}%") for w in made["widths"])))
    out.append(tag("thead", tag("tr", *map(_head, heads), class_="rb-tr rb-last")))
    drawn: dict[tuple[int, int, bool], Html] = {}
    for body in rows.bodies:
        out.append(tag("tbody", *[_line(line, len(heads), drawn) for line in body]))
    whole = tag("table", *out, class_="rb-table", style=STYLES["table"])
    return _scrolling(whole, caption or named, STYLES["wide"])


def _scrolling(inner: Html, named: str, style: str) -> Html:
    """Draw what may be wider than its host: it scrolls, also for who has only a keyboard."""
    return tag(
        "div", inner, class_="rb-wide", tabindex="0", role="group", aria_label=named, style=style
    )


def _head(head: Box) -> Html:
    out: list[str] = []
    for piece in head.made:
        if piece.space:
            out.append(" ")
        if piece.role in SIGNS:
            out += (tag("span", SIGNS[piece.role].glyph, aria_hidden="true"), " ")
        out.append(piece.text)
        if piece.unit:
            out.append(f" ({piece.unit})")
    named = tag("span", *out, style=STYLES["faint"])
    return tag("th", named, scope="col", style=STYLES["head_right" if head.right else "head"])


def _line(line: Line, columns: int, drawn: dict[tuple[int, int, bool], Html]) -> Html:
    """Draw a row; what stands in several rows of a column is ``drawn`` once."""
    if line.group is not None:
        return _group(line, columns)
    boxes: list[Html] = []
    for n, box in enumerate(line.boxes):
        key = id(box.made), n, line.strong
        if key not in drawn:
            drawn[key] = _box(box, line, inset=line.inner and not n)
        boxes.append(drawn[key])
    if not (line.last or line.under or line.strong):
        return _ROW(*boxes)
    last = " rb-last" if line.last else ""
    row = tag(
        "tr",
        *boxes,
        class_=f"rb-tr{last}{' rb-led' if line.under else ''}",
        style=STYLES["strong"] if line.strong else None,
    )
    if not line.under:
        return row
    under = [tag("div", runs(made, 400), style=STYLES["line"]) for made in line.under]
    cells = (
        tag("td", style=STYLES["under"]),
        tag("td", *under, colspan=str(max(columns - 1, 1)), style=STYLES["under"]),
    )
    return together((row, tag("tr", *cells, class_=f"rb-tr{last}")))


def _group(line: Line, columns: int) -> Html:
    named: list[str] = []
    group = line.group or []
    for place, piece in enumerate(group, 1):
        named += (runs([piece], 600 if place == len(group) else 400), " ")
    said = [line.note, *((" · ", runs(line.note_made)) if line.note_made else ())]
    note = tag("span", *said, style=STYLES["note"])
    style = STYLES["row_head"]
    head = tag("th", *named, note, scope="rowgroup", colspan=str(columns), style=style)
    return tag("tr", head, class_="rb-tr")


def _box(box: Box, line: Line, *, inset: bool) -> Html:
    drawn = runs(box.made, box.weight)
    if box.head:
        look = "row_head_in" if inset else "row_head_open" if box.open else "row_head"
        if not line.strong:
            return _HEADS[look](drawn)
        return tag("th", drawn, scope="row", style=f"{STYLES[look]};{STYLES['strong']}")
    if box.right:
        look = "cell_right_tight" if box.tight else "cell_right"
    elif inset:
        look = "cell_in"
    else:
        look = "cell_tight" if box.tight else "cell"
    return _CELLS[look](drawn)


# --- facts, prose, steps -----------------------------------------------------------------------


def facts(made: Mapping[str, Any]) -> Html:
    """Draw a list of facts: as a ledger's list, or as terms and what is said of them."""
    named, count = made["label"], f" ({made['count']})"
    if made["rail"]:
        return _ledger(made)
    if made["empty"]:
        said = tag("span", made["empty"], style=STYLES["dim"])
        return tag("div", f"{named} (0) " if named else "", said, style=STYLES["prose"])
    if made["fold"]:
        summary = (named or "All", count, _note(made["cap"]))
        return _details(summary, _terms(made), style=STYLES["fold"], open=made["open"])
    head = tag("div", label(named, ""), style=f"{STYLES['label']};padding-top:6px")
    return together((head, _terms(made))) if named else _terms(made)


def _ledger(made: Mapping[str, Any]) -> Html:
    glyph = tag("span", made["sign"], aria_hidden="true", style=STYLES["rail_sign"])
    named = f"{made['label']} ({made['count']})"
    if made["empty"]:
        said = tag("span", made["empty"], style=STYLES["dim"])
        return tag("div", glyph, f" {named} ", said, style=STYLES["rail_empty"])
    summary = (glyph, " ", tag("strong", named, style=STYLES["strong"]), _note(made["cap"]))
    listed = tag("ul", *map(_item, made["items"]), style=RAILS[made["rail"]])
    return _details(summary, listed, style=STYLES["rail_fold"], open=made["open"])


def _item(item: Mapping[str, Any]) -> Html:
    term = tag("div", *_unbroken(item["term_words"]))
    if not (item["said"] or item["badges"]):
        return tag("li", term, style=STYLES["item_alone"])
    said = [*_unbroken(item["said_words"]), *_badges(item["badges"])]
    return tag("li", term, " ", tag("div", *said, style=STYLES["dim"]), style=STYLES["item"])


def _unbroken(made: Iterable[tuple[str, bool]]) -> list[str]:
    return [tag("span", text, style=STYLES["nowrap"]) if kept else text for text, kept in made]


def _badges(made: Iterable[Piece]) -> list[str]:
    return [together((" ", badge(piece))) for piece in made]


def _terms(made: Mapping[str, Any]) -> Html:
    out: list[str] = []
    for item in made["items"]:
        term = tag("dt", runs(item["term"]), style=STYLES[made["place"]])
        said = tag("dd", runs(item["said"]), *_badges(item["badges"]), style=STYLES["said"])
        out += (term, " ", said)
    columns = f"grid-template-columns:{made['column']} minmax(0,1fr)"
    return tag("dl", *out, style=f"{STYLES['facts']};{columns}")


def prose(made: Mapping[str, Any], *, lead: bool = False) -> Html:
    """Draw a sentence."""
    quiet = made["tone"] == "dim"
    style = STYLES[("lead_quiet" if quiet else "lead") if lead else "quiet" if quiet else "prose"]
    mark: tuple[str, ...] = ()
    if made["tone"] == "warning":
        mark = (tag("span", "▲", aria_hidden="true", style="margin-right:5px;font-size:10px"), " ")
    return tag("div", *mark, runs(made["made"], 400), style=style)


def flow(made: Mapping[str, Any]) -> Html:
    """Draw an outline: its picture when there is one, then the same steps as a list."""
    out: list[str] = []
    if made["picture"] or made["drawn"]:
        out.append(_figure(made))
    if made["tree"]:
        cap = " · ".join(filter(None, (made["summary"], made["cap"])))
        summary = (f"{made['label']} ({made['count']})", _note(cap))
        style = STYLES["fold"]
        out.append(_details(summary, _outline(made["tree"]), style=style, open=made["open"]))
    elif made["summary"]:
        out.append(tag("div", made["summary"], style=STYLES["prose"]))
    if made["notes"]:
        out.append(tag("div", " · ".join(made["notes"]), style=BELOW))
    return together(out)


def _figure(made: Mapping[str, Any]) -> Html:
    """Draw what depends on the layout engine; nothing else does."""
    out: list[str] = []
    if picture := made["picture"]:
        sizes = {side: str(picture[side]) for side in ("width", "height")}
        image = tag("img", src=picture["uri"], alt=picture["alt"], **sizes, style=STYLES["img"])
        out.append(_scrolling(image, "Picture", STYLES["picture"]))
    if made["key"]:
        words: list[str] = []
        for line, word in _KEY:
            words += (tag("span", aria_hidden="true", style=KEYS[line]), word, _APART)
        ring = tag("span", "○", aria_hidden="true")
        words += (ring, " default branch starts with a ring")
        out.append(tag("div", *words, style=STYLES["key"]))
    if made["drawn"]:
        out.append(tag("figcaption", made["drawn"], style=STYLES["quiet"]))
    return tag("figure", *out, style=STYLES["figure"])


def _outline(groups: Iterable[tuple[str, int, Sequence[Step]]]) -> Html:
    out: list[str] = []
    for listed, start, steps in groups:
        items = [
            tag("li", _step(step), _outline(step.runs), style=STYLES["step"]) for step in steps
        ]
        if listed != "steps":
            out.append(tag("ul", *items, style=STYLES[listed]))
        else:
            begin = str(start) if start > 1 else None
            out.append(tag("ol", *items, start=begin, style=STYLES["steps"]))
    return together(out)


def _step(step: Step) -> Html:
    out: list[str] = [runs(step.name)]
    before = " " if step.branch else ", "
    for made in step.cells:
        out += (before, runs(made))
        before = " · "
    if step.state:
        out += (" ", tag("span", step.state, style=LABEL_STYLE))
    return together(out)
