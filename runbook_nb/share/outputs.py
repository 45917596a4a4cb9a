"""Claims about outputs: that what is shown is what the answer carried beside it looks like.

Sharing layer. An output is drawn anew from what is carried, by the same renderer, and held against
what stands there: text by lines, HTML by its parts, the picture by its bytes and else its texts.
What depends on settings is tried in the few ways it may have been set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, product, zip_longest
from typing import Any, Final, NamedTuple

from runbook_nb._text import listed
from runbook_nb._view import Card, Flow
from runbook_nb.record.claims import Claims, Place
from runbook_nb.record.outline import walk_flow
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.render.html import render_html
from runbook_nb.render.text import render_text
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.cards import envelope_card, walk_section
from runbook_nb.runbook.differing import NAMED, differences
from runbook_nb.runbook.grounds import Ground, is_partial
from runbook_nb.runbook.payload import envelope_payload, exported_payload, stable_wire
from runbook_nb.runbook.retold import retold_flow
from runbook_nb.runbook.table import VerdictTable
from runbook_nb.settings import settings
from runbook_nb.share.exported import EXPORTED_ROWS
from runbook_nb.share.pagefacts import claim_facts, without_facts
from runbook_nb.share.report import page_around
from runbook_nb.share.shown import (
    OWN_PAGE,
    Block,
    Picture,
    alike,
    beside_blocks,
    blocks_of,
    card_in,
    looks_of,
    unwrapped,
)
from runbook_nb.share.widgetlines import claim_line, parted

#: The block of a card that shows the walk.
WALK: Final = "Walk"
#: What an output and a page are drawn anew from.
CARRIED: Final = "the answer carried beside it, drawn anew"
FUNCTIONS: Final = "a rule is a function, whose content is not carried"
PATH: Final = "the path that was taken is not carried"

#: Characters a cell is cut to, unless somebody set it otherwise.
MAX_CELL: Final = 200

#: What is said of a picture.
_NOTE: Final = re.compile(
    r"( · )?(no picture: .*|too wide for .*|drawn (by|without|with) .*|numbered edges .*)$"
)

#: How a heading says that not all is shown.
_LIMITED: Final = re.compile(r"(\d[\d,]{0,8}) of [\d,]+ shown")

TEXT: Final = "text/plain"
HTML: Final = "text/html"
JSON_FORM: Final = "application/vnd.runbook-nb.envelope.v1+json"


class Output(NamedTuple):
    """An output of a notebook, or the page that stands for one.

    Attributes
    ----------
    name : str
        As ids of claims have it.
    data : mapping
        Its forms by MIME type.
    place : tuple
        Where it is in the file.
    page : bool
        Whether it is a page of its own.
    export : bool
        Whether it was written as a file to hand on.
    """

    name: str
    data: Mapping[str, Any]
    place: Place
    page: bool = False
    export: bool = False


class Redrawn:
    """What an answer looked like where it was given, as far as that can be told from a copy.

    Parameters
    ----------
    ground : Ground
        Of the copy.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.envelope = _as_given(ground)
        self.flow = _flow_of(ground)

    @property
    def lacks_rules(self) -> bool:
        """Whether the content of rules that judged is not carried."""
        dossier = self.ground.dossier
        return dossier is not None and len(dossier.rule_sets) < len(dossier.sources)

    def card(self) -> Card:
        """Give the card, its walk as it can be told again, under the settings in force."""
        card = envelope_card(self.envelope)
        if self.flow is None:
            return card
        walk = walk_section(self.envelope, self.flow)
        sections = tuple(walk if one.label == WALK else one for one in card.sections)
        return replace(card, sections=sections)

    def texts(self, found: str, cells: Sequence[int]) -> Iterator[str]:
        """Yield the texts it may have been shown as, the likeliest first.

        Parameters
        ----------
        found : str
            The text that is there.
        cells : sequence of int
            Characters that a cell may have been cut to.
        """
        indented = sum(line.startswith("  ") for line in found.split("\n"))
        tried = [(10, 50), (10, EXPORTED_ROWS), (20, 50)]
        tried += [(max(indented - n, 1), most) for n in (0, 1) for most in (50, EXPORTED_ROWS)]
        for cell, (shown, most) in product(cells, dict.fromkeys(tried)):
            rows = max(shown, most)
            with settings(max_text_rows=shown, max_table_rows=rows, max_cell=cell):
                text = render_text(self.card())
            yield text  # out of the block: whoever asks for no more would leave it in force

    def pages(
        self, rows: Sequence[int], cells: Sequence[int], output: Output, *, picture: bool
    ) -> Iterator[str]:
        """Yield the HTML it may have been shown as, the likeliest first.

        Parameters
        ----------
        rows : sequence of int
            Lines that its tables may have been cut to.
        cells : sequence of int
            Characters that a cell may have been cut to.
        output : Output
        picture : bool
            Whether it shows one.
        """
        most = EXPORTED_ROWS if output.export else 50
        tried = [many for many in (most, *rows, 50, EXPORTED_ROWS) if many > 0]
        layout = "pure" if picture else "none"
        write = _exported if output.export else envelope_payload
        for cell, many in product(cells, dict.fromkeys(tried)):
            with settings(max_table_rows=many, max_cell=cell, layout=layout):
                card = replace(self.card(), payload=partial(write, self.envelope))
                drawn = render_html(card, export=output.export, page=output.page)
                html = page_around(self.envelope, card, drawn) if output.page else drawn
            yield html


def _exported(envelope: Envelope, most: int | None) -> dict[str, Any] | None:
    return exported_payload(envelope)


def _as_given(ground: Ground) -> Envelope:
    """Give the envelope as it was: with its ticket, and the counts of all rows."""
    envelope = ground.envelope
    if envelope.run is not None:
        return envelope
    wire = {"af_coverage": envelope["af_coverage"], "result": dict(envelope["result"])}
    walk = ground.walk
    if "kind" in walk and "ref" not in walk:  # the embedded form leaves the ticket out
        wire["result"]["walk"] = {**walk, "ref": ""}
    made = Envelope.live(wire, dossier=ground.dossier, run=None, artifacts=None)
    counts = _counts(ground)
    if counts is not None and not made.verdicts.complete:
        made.__dict__["verdicts"] = VerdictTable(made.verdicts.rows, made.verdicts.total, counts)
    return made


def _counts(ground: Ground) -> dict[str, int] | None:
    """Count all rows by verdict where a copy holds a part: by the decisions behind them."""
    if not ground.has_rows or not ground.judging or not ground.speaks_branches:
        return None
    found: Counter[str] = Counter()
    for group in ground.judging:
        found.update(group.counts.by_branch)
    return dict(found) if sum(found.values()) == ground.total else None


def _flow_of(ground: Ground) -> Flow | None:
    """Outline the walk: of the record where one is at hand, else of what is carried."""
    run = ground.envelope.run
    if run is None:
        recorded, _ = ground.recorded
        run = None if recorded is None or is_partial(recorded) else recorded
    return walk_flow(run.walk) if run is not None else retold_flow(ground)


# --- claims ---------------------------------------------------------------------------------------


def claim_output(redrawn: Redrawn, output: Output, claims: Claims) -> None:
    """Claim that an output shows the answer it carries."""
    text, html = joined(output.data.get(TEXT)), unwrapped(joined(output.data.get(HTML)))
    if text:
        _text(redrawn, output, text, claims)
    if html:
        _html(redrawn, output, html, claims)
    if JSON_FORM in output.data:
        _json(redrawn, output, claims)
    for form in sorted(output.data.keys() - {TEXT, HTML, JSON_FORM}):
        told, reason = f"the output as {form}", "it is no form that an answer is shown in"
        claims.unchecked(f"{output.name}.{form}", told, reason, (*output.place, form))


def joined(text: Any) -> str:
    """Give a text as notebooks hold it: whole, or in lines."""
    if isinstance(text, list):
        return "".join(piece for piece in text if isinstance(piece, str))
    return text if isinstance(text, str) else ""


def _text(redrawn: Redrawn, output: Output, found: str, claims: Claims) -> None:
    cells = cells_told(joined(output.data.get(HTML)))
    line, found = parted(found, next(redrawn.texts(found, cells)).partition("\n")[0])
    place = (*output.place, TEXT)
    if line:
        claim_line(redrawn.ground, f"{output.name}.explorer", line, place, claims)
    best: tuple[int, Any, Any] | None = None
    for expected in redrawn.texts(found, cells):
        count, other, want = _differing_lines(found, expected)
        if best is None or count < best[0]:
            best = count, other, want
        if not count:
            break
    assert best is not None  # noqa: S101 - several are tried
    told = "the plain text says what the answer says"
    claims.settle(f"{output.name}.{TEXT}", told, not best[0], CARRIED, place, told=best[1:])


def _differing_lines(found: str, expected: str) -> tuple[int, Any, Any]:
    lines, wanted = found.rstrip("\n").split("\n"), expected.split("\n")
    if PLACEHOLDER in found:  # what was hidden later left the columns as they were
        lines, wanted = ([" ".join(line.split()) for line in told] for told in (lines, wanted))
    pairs = [(a, b) for a, b in zip(lines, wanted, strict=False) if a != b]
    count = len(pairs) + abs(len(lines) - len(wanted))
    if pairs:
        return count, *pairs[0]
    if count:
        longer = lines if len(lines) > len(wanted) else wanted
        first = longer[min(len(lines), len(wanted))]
        return count, first if longer is lines else None, first if longer is wanted else None
    return 0, None, None


def _html(redrawn: Redrawn, output: Output, html: str, claims: Claims) -> None:
    card = card_in(html)
    name, place = f"{output.name}.{HTML}", (*output.place, HTML)
    if card is None:
        told, reason = "the HTML says what the answer says", "it holds no card that can be read"
        claims.settle(name, told, False, CARRIED, place, told=(reason, "a card"))
        return
    blocks = blocks_of(card)
    best: tuple[int, list[tuple[str, Any, Any]], Sequence[Block], str] | None = None
    picture = any(block.pictures for block in blocks)
    for drawn in redrawn.pages(rows_told(html), cells_told(html), output, picture=picture):
        expected = blocks_of(card_in(drawn) or "")
        wrong = list(_differing(blocks, expected))
        count = len(wrong)
        if redrawn.flow is not None:
            walks = without_notes(_walked(blocks), _walked(expected))
            count += (walks[0] != walks[1]) + (_pictured(blocks) != _pictured(expected))
        if best is None or count < best[0]:
            best = count, wrong, expected, drawn
        if not count:
            break
    assert best is not None  # noqa: S101 - several are tried
    _, wrong, expected, drawn = best
    told = "the HTML says what the answer says"
    own = not output.page or OWN_PAGE in card
    beside, drawn_beside = (beside_blocks(without_facts(one)) for one in (html, drawn))
    if beside[0] != drawn_beside[0] and own:
        wrong = [*wrong, ("beside", *_first_pair(beside[0], drawn_beside[0]))]
    if not wrong:
        claims.settle(name, told, True, CARRIED, place)
    for label, found, wanted in wrong:
        if label == "Rules" and redrawn.lacks_rules:
            claims.unchecked(f"{name}.{label}", told, FUNCTIONS, place)
            continue
        claims.settle(f"{name}.{label}", told, False, CARRIED, place, told=(found, wanted))
    if not own:
        claims.unchecked(f"{name}.beside", "the page around it", "no answer says it", place)
    if own and output.page:
        claim_facts(redrawn.ground.envelope, html, output.name, place, claims)
    around = not own or alike(beside[1]) == alike(drawn_beside[1])
    _looks(blocks, expected, name, place, claims, around=around, walk=redrawn.flow is not None)
    _walk(redrawn, output, blocks, expected, claims)


def rows_told(html: str) -> list[int]:
    """Give the lines that tables in an output may have been cut to."""
    blocks = blocks_of(card_in(html) or "")
    most = max((len(block.rows) for block in blocks if block.label == "Verdicts"), default=0)
    texts = (text for block in blocks for row in block.rows for text in row)
    limits = (found for text in texts if (found := _LIMITED.match(text)) is not None)
    meanings = max((len(block.rows) for block in blocks if block.label == "Rules"), default=0)
    # Of the lines in a block one is its head, and one may stand below; a meaning has two.
    return [
        most - 2,
        most - 3,
        (meanings - 1) // 2,
        *(int(one[1].replace(",", "")) for one in limits),
    ]


def cells_told(html: str) -> list[int]:
    """Give the characters that cells may have been cut to: the usual, and as those that were."""
    blocks = blocks_of(card_in(html) or "")
    texts = (text for block in blocks for row in block.rows for text in row)
    cut = {text.rindex("…") + 1 for text in texts if "…" in text}
    longest = sorted(cut, reverse=True)[:2]
    # A blank before the cut is gone, so the limit may be one more.
    tried = [MAX_CELL, *(length + more for length in longest for more in (0, 1))]
    return list(dict.fromkeys(tried))


def _pictured(blocks: Sequence[Block]) -> list[list[str]]:
    """Give the texts of the pictures, in an order of their own: engines differ in theirs."""
    return [sorted(one.texts or ()) for block in blocks for one in block.pictures]


def _walked(blocks: Sequence[Block]) -> Sequence[tuple[str, ...]]:
    return next((block.rows for block in blocks if block.label == WALK), ())


def _differing(found: Sequence[Block], expected: Sequence[Block]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts that differ, the walk apart, each with the first texts that do."""
    names = [block.label for block in expected]
    if [block.label for block in found] != names:
        yield "parts", [block.label for block in found], names
        return
    for block, want in zip(found, expected, strict=True):
        if block.label != WALK and len(block.pictures) != len(want.pictures):
            yield block.label, "a picture", None
            continue
        if block.label == WALK or block.rows == want.rows:
            continue
        pair = next(
            ((a, b) for a, b in zip(block.rows, want.rows, strict=False) if a != b), ((), ())
        )
        if pair == ((), ()):
            pair = (f"{len(block.rows)} lines",), (f"{len(want.rows)} lines",)
        yield block.label, " ".join(pair[0]), " ".join(pair[1])


def _first_pair(found: Sequence[str], wanted: Sequence[str]) -> tuple[Any, Any]:
    """Give the first texts that differ; None stands for one that is not there."""
    return next(pair for pair in zip_longest(found, wanted) if pair[0] != pair[1])


def _looks(
    blocks: Sequence[Block],
    expected: Sequence[Block],
    name: str,
    place: Place,
    claims: Claims,
    *,
    around: bool,
    walk: bool,
) -> None:
    """Claim that nothing in it is hidden or set apart by its looks."""
    told = "it looks as this version draws it"
    pairs = list(zip(blocks, expected, strict=False))
    if around and all(_drawn_alike(one, other, told=walk) for one, other in pairs):
        claims.settle(f"{name}.style", told, True, CARRIED, place)
    else:
        reason = "it was drawn by another version, or edited; what is shown may be hidden by style"
        claims.unchecked(f"{name}.style", told, reason)


def _drawn_alike(one: Block, other: Block, *, told: bool) -> bool:
    """Say whether a part looks as it would be drawn; of a walk only what a picture leaves alone."""
    if one.html == other.html:
        return True
    if one.label != WALK:
        return alike(one.html) == alike(other.html)
    return not told or looks_of(one.html) <= looks_of(other.html)


def _walk(
    redrawn: Redrawn,
    output: Output,
    blocks: Sequence[Block],
    expected: Sequence[Block],
    claims: Claims,
) -> None:
    """Claim the outline of the walk and its picture."""
    found = next((block for block in blocks if block.label == WALK), None)
    wanted = next((block for block in expected if block.label == WALK), None)
    if found is None or wanted is None:
        return
    id_, place = f"{output.name}.walk", (*output.place, HTML)
    told = "the path shown is the one that was taken"
    if redrawn.flow is None and found.rows[:1] != wanted.rows[:1]:
        heads = (" ".join(found.rows[0]), " ".join(wanted.rows[0]))
        claims.settle(id_, told, False, CARRIED, place, told=heads)
        return
    if redrawn.flow is None:
        if found.rows == wanted.rows and not found.pictures:
            claims.settle(id_, told, True, CARRIED, place)
        else:
            claims.unchecked(id_, told, PATH, (*place, WALK))
            for picture in found.pictures:
                claims.unchecked(f"{output.name}.picture", picture.alt, PATH, (*place, "picture"))
        return
    same_rows = found.rows == wanted.rows
    if not same_rows and not found.pictures and len(found.rows) == 2:  # drawn from a copy
        claims.unchecked(id_, told, "the output shows no path", (*place, WALK))
        return
    rows = without_notes(found.rows, wanted.rows)
    pair = next(((a, b) for a, b in zip(*rows, strict=False) if a != b), ((), ()))
    claims.settle(
        id_,
        told,
        rows[0] == rows[1],
        "the structure, and what became of each subject",
        (*place, WALK),
        told=(" ".join(pair[0]), " ".join(pair[1])),
    )
    claim_picture(output.name, found.pictures, wanted.pictures, (*place, "picture"), claims)


def without_notes(
    found: Sequence[tuple[str, ...]], wanted: Sequence[tuple[str, ...]]
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Leave out what is said of the picture: that depends on what drew it, or did not."""
    told = (
        [tuple(_NOTE.sub("", text) for text in row) for row in rows] for rows in (found, wanted)
    )
    one, other = ([row for row in rows if any(row)] for rows in told)
    return one, other


def claim_picture(
    name: str,
    found: Sequence[Picture],
    wanted: Sequence[Picture],
    place: Place,
    claims: Claims,
) -> None:
    """Claim that a picture says what it would if it were drawn now."""
    id_ = f"{name}.picture"
    if not found:
        return
    told = found[0].alt or "the picture of the walk"
    if len(found) > 1:
        basis, several = "the walk, which has one picture", f"{len(found)} pictures"
        claims.settle(id_, told, False, basis, place, told=(several, "1 picture"))
        return
    if not wanted:
        claims.unchecked(id_, told, "no engine is here to draw it anew", place)
        return
    one, want = found[0], wanted[0]
    if one.uri == want.uri and one.alt == want.alt:
        claims.settle(id_, told, True, "the same picture, drawn anew to the byte", place)
        return
    if one.texts is None:
        reason = "it was drawn in a form whose texts cannot be read"
        claims.unchecked(id_, told, reason, place)
        return
    mine, other = Counter(one.texts), Counter(want.texts or ())
    strange, missing = list((mine - other).elements()), list((other - mine).elements())
    if one.alt != want.alt:
        strange, missing = [one.alt, *strange], [want.alt, *missing]
    holds = not strange and not missing
    basis = "the texts of the picture, drawn anew"
    claims.settle(id_, told, holds, basis, place, told=(strange[:3], missing[:3]))
    if holds:
        reason = "its lines were drawn by another engine"
        claims.unchecked(f"{id_}.lines", told, reason)


def _json(redrawn: Redrawn, output: Output, claims: Claims) -> None:
    """Claim that the JSON form says what the answer says."""
    found, place = output.data[JSON_FORM], (*output.place, JSON_FORM)
    id_, told = f"{output.name}.json", "the JSON form says what the answer says"
    if isinstance(found, Mapping) and "left_out" in found:
        claims.unchecked(id_, told, "it was left out, as it is large", place)
        return
    wire = found.get("envelope") if isinstance(found, Mapping) else None
    claim_twin(id_, told, redrawn.ground, wire, place, claims)


def claim_twin(  # noqa: PLR0917 - as every claim is made
    id_: str, told: str, ground: Ground, wire: Any, place: Place, claims: Claims
) -> None:
    """Claim that a second form of an answer says what the first does.

    It may hold less of the dossier, and leave out what differs from run to run.
    """
    try:
        other = Envelope.from_dict(wire)
    except Exception as error:  # a forged form may fail anywhere
        claims.settle(id_, told, False, CARRIED, place, told=(str(error), "an answer"))
        return
    mine, its = _stable(ground.envelope), _stable(other)
    wrong = differences(its, mine)
    if ground.dossier is not None and other.carries_dossier:
        held = _shared(other, ground).items()
        more = (differences(*pair, f"dossier.{name}") for name, pair in held)
        wrong = chain(wrong, *more)
    found = list(islice(wrong, NAMED + 1))
    places = listed([*found[:NAMED], *(["more"] if len(found) > NAMED else [])])
    said = f"it differs from the other form at {places}"
    claims.settle(id_, told, not found, "the other form", place, said=said)


def _stable(envelope: Envelope) -> dict[str, Any]:
    wire = stable_wire(envelope)
    walk = wire["result"].get("walk")
    if isinstance(walk, dict):
        walk.pop("digest", None)
    return wire


def _shared(other: Envelope, ground: Ground) -> dict[str, tuple[Any, Any]]:
    """Give the parts of two dossiers that both hold."""
    mine, its = ground.envelope.dossier.to_dict(), other.dossier.to_dict()
    found: dict[str, tuple[Any, Any]] = {}
    for name in its:
        if name == "rows_of" or name not in mine:
            continue
        one, two = its[name], mine[name]
        if name in ("rows", "subjects"):
            many = min(len(one), len(two))
            keys = _keyed(two)
            one, two = (
                one[:many],
                [keys.get(_key(entry), entry) for entry in one[:many]]
                if (name == "subjects")
                else two[:many],
            )
        found[name] = one, two
    return found


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return entry.get("stage"), entry.get("execution", 0), entry.get("index")


def _keyed(entries: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    return {_key(entry): entry for entry in entries}
