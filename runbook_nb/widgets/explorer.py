"""`explore()`: a walk beside its flowchart, gone through row by row.

What is shown is one position: a row, the node of the chart it belongs to, the subject whose branch
it is in. The first view is in the state, so that it stands where a state was saved; everything
else comes on request, a page at a time, from the fullest record there is (`widgets.choosing`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import traitlets

from runbook_nb._text import MISSING, clip, counted, show, visible
from runbook_nb._view import Badge, Card, Cell, Data, Role, Table
from runbook_nb.errors import DefinitionError
from runbook_nb.record.moments import MAX_KEYS, Around, Held, Long, content_of
from runbook_nb.record.projection import WalkRow
from runbook_nb.render.cells import cell_text
from runbook_nb.render.inline import Inline, draw_inline
from runbook_nb.widgets.base import MAX_STATE, Widget, asked
from runbook_nb.widgets.choosing import source_of
from runbook_nb.widgets.sources import KINDS, Evidence, Seen, Source
from runbook_nb.widgets.telling import badge, tell

#: Rows given at once.
PAGE: Final = 50
#: Ticks of decisions under the slider.
MAX_TICKS: Final = 120
#: Width the picture should not pass, in CSS pixels.
COLUMN: Final = 404
#: Characters of a row's text, and of a value's content, that are sent.
MAX_TEXT: Final = 300
MAX_VALUE: Final = 1000
#: Bytes of the first view that are kept in the state.
MAX_OPENING: Final = MAX_STATE // 2


class Explorer(Widget):
    """A walk beside its flowchart; made by ``explore()``.

    Attributes
    ----------
    step : int
        The row looked at; setting it moves there.
    opening : dict
        The first view.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> explorer = envelope.explore()
    >>> print(explorer.line())
    Explorer triage · row 13 of 21 · Verdict of a: old by rule 1 of age v1: days 9 > 7
    """

    scripts: ClassVar[tuple[str, ...]] = ("explorer.js",)
    sheets: ClassVar[tuple[str, ...]] = ("explorer.css",)

    step = traitlets.Int(0).tag(sync=True)
    opening = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: Any, subject: Any = None) -> None:
        self._shown = shown
        self.source: Source = source_of(shown)
        step = self._first_step(subject)
        super().__init__(step=step, opening=self._opening(step))

    def _first_step(self, subject: Any) -> int:
        source = self.source
        if subject is not None:
            return source.find(subject)
        last = source.total() - 1
        if last >= 0 and source.rows("all", last, 1)[0].type == "error":
            return last  # the run ended there, without an answer
        return source.rows("decisions", 0, 1)[0].step if source.total("decisions") else 0

    @traitlets.validate("step")
    def _within(self, proposal: Any) -> int:
        total = self.source.total()
        if not 0 <= proposal["value"] < max(total, 1):
            raise DefinitionError(
                f"there is no row {proposal['value']}: {self.source.name} has {total}",
                where="step",
                fix=f"give a row from 0 to {max(total - 1, 0)}",
            )
        return int(proposal["value"])

    # -- what stands for it ----------------------------------------------------------------

    def view(self) -> Card:
        """Show what is explored, as it shows itself."""
        card: Card = self._shown.view()
        return card

    def line(self) -> str:
        """Say which row is looked at, and what it tells."""
        name = visible(self.source.name)
        if not self.source.total():
            return f"Explorer {name} · {self.source.told}"
        return f"Explorer {name} · {self._words(self.source.at(self.step))}"

    def _words(self, seen: Seen) -> str:
        """Say one row: what a reader of the screen hears, and plain text begins with."""
        place = f"row {seen.step} of {self.source.total()}"
        made = seen.evidence
        if made is not None and made.step == seen.step and made.stage:
            whose = f" of {seen.subject}" if seen.subject else ""
            return f"{place} · {made.stage}{whose}: {made.words}"
        whose = f"{seen.subject}: " if seen.subject and seen.subject not in seen.row.text else ""
        return f"{place} · {whose}{clip(visible(seen.row.text), MAX_TEXT)}"

    # -- the first view --------------------------------------------------------------------

    def _opening(self, step: int) -> dict[str, Any]:
        source = self.source
        totals = {kind: source.total(kind) for kind in KINDS}
        about = [] if source.steps is None else [counted(source.steps, "step")]
        if totals["all"]:
            about.append(counted(totals["all"], "row"))
        opening: dict[str, Any] = {
            "name": visible(source.name),
            "about": ", ".join([*about, source.told]),
            "lacking": visible(source.lacking),
            "totals": totals,
            "ticks": self._ticks(totals["decisions"]),
            "fans": [{"name": one.name, "total": one.total, "key": one.key} for one in source.fans],
        }
        at = self.look({"step": step}) if totals["all"] else self._nothing()
        rows = self.rows({"kind": "all", "step": step}) if totals["all"] else None
        for part in ({"at": at, "rows": rows}, {"at": {**at, "picture": None}, "rows": rows}):
            if len(json.dumps({**opening, **part})) <= MAX_OPENING:
                return {**opening, **part}
        return opening  # the script asks for what is not in it

    def _ticks(self, total: int) -> list[int]:
        """Give the rows of decisions to be ticked: all, or some that lie evenly among them."""
        many = min(total, MAX_TICKS)
        places = (number * total // many for number in range(many))
        return [row.step for at in places for row in self.source.rows("decisions", at, 1)]

    def _nothing(self) -> dict[str, Any]:
        picture = self._picture(None)
        return {
            "step": None,
            "words": f"{visible(self.source.name)}: {self.source.told}",
            "flow": picture.id,
            "picture": _sent(picture),
            "nodes": {},
        }

    # -- answers ---------------------------------------------------------------------------

    @asked("rows")
    def rows(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Give a page of rows: from a place on, or the page a row is on."""
        kind = about.get("kind", "all")
        if kind not in KINDS:
            raise DefinitionError(f"there are no rows of kind {kind!r}", fix=f"ask for {KINDS}")
        total = self.source.total(kind)
        if "start" in about:
            start = _whole(about["start"], "start", max(total, 1))
        else:
            step = _whole(about.get("step", 0), "step", max(self.source.total(), 1))
            start = min(self.source.rank(kind, step), max(total - 1, 0)) // PAGE * PAGE
        found = self.source.rows(kind, start, PAGE)
        return {
            "kind": kind,
            "start": start,
            "total": total,
            "size": PAGE,
            "rows": [_row(row) for row in found],
        }

    @asked("look")
    def look(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Look at one row: where it is, what was decided there, the state around it."""
        step = _whole(about.get("step"), "step", self.source.total())
        seen = self.source.at(step)
        picture = self._picture(step)
        same = bool(picture.id) and about.get("flow") == picture.id
        return {
            "step": step,
            "words": self._words(seen),
            "subject": seen.subject,
            "of": seen.of,
            "fan": seen.fan,
            "index": seen.index,
            "flow": picture.id,
            "picture": None if same else _sent(picture),
            "nodes": _nodes(seen, picture),
            "evidence": None if seen.evidence is None else self._evidence(seen.evidence, seen),
            "state": self._state(seen),
        }

    @asked("next")
    def next_decision(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Look at the decision behind a row; round again from the last one."""
        step = _whole(about.get("step"), "step", self.source.total())
        total = self.source.total("decisions")
        if not total:
            raise DefinitionError("no decision is recorded here")
        number = self.source.rank("decisions", step + 1) % total
        (row,) = self.source.rows("decisions", number, 1)
        return self.look({**about, "step": row.step})

    @asked("node")
    def node(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Find the row of a node of the picture: its step, or in words why there is none."""
        step = _whole(about.get("step", 0), "step", max(self.source.total(), 1))
        total = self.source.total()
        picture = self._picture(step if total else None)
        number = _whole(about.get("node"), "node", len(picture.names) + 1)
        keys = [key for key, place in picture.places.items() if place == number]
        name = picture.names[number - 1] if number else ""
        for fan, one in enumerate(self.source.fans):
            if one.key in keys:
                return {"fan": fan, "words": f"{name}: {counted(one.total, 'subject')}"}
        found = [] if not total else [self.source.row_of(step, key) for key in keys]
        rows = [row for row in found if row is not None]
        if rows:
            return {"step": min(rows), "words": ""}
        inside = any(key.startswith(f"{one.key}/") for key in keys for one in self.source.fans)
        if inside and not self.source.at(step).subject:
            return {"fan": 0, "words": f"{name} ran per subject: choose one"}
        return {"words": f"{name}: not on the way of what is looked at"}

    @asked("subjects")
    def subjects(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Give a page of a fan-out's subjects, found by a word, filtered by what became of them."""
        fans = self.source.fans
        if not fans:
            raise DefinitionError("there are no subjects here: nothing fanned out")
        fan = _whole(about.get("fan", 0), "fan", len(fans))
        word, find = about.get("word", ""), about.get("find", "")
        if not isinstance(word, str) or not isinstance(find, str):
            raise DefinitionError("word and find are texts", where="subjects")
        start = _whole(about.get("start", 0), "start", fans[fan].total + 1)
        page = self.source.page(fan, start, word, find)
        return {
            "fan": fan,
            "start": start,
            "total": page.total,
            "matching": page.matching,
            "searched": page.searched,
            "among": page.among,
            "next": page.next,
            "outcomes": [[*badge(o.word, o.role), o.count] for o in self.source.outcomes(fan)],
            "found": [
                [clip(f.name, MAX_TEXT), badge(f.word, f.role), clip(f.why, MAX_TEXT), f.step]
                for f in page.found
            ],
        }

    # -- parts of answers ------------------------------------------------------------------

    def _picture(self, step: int | None) -> Inline:
        graph = self.source.graph(step)
        if graph is None:
            return Inline(note="no picture: the chart is not carried")
        return draw_inline(graph, f"the chart of {visible(self.source.name)}", COLUMN)

    def _evidence(self, made: Evidence, seen: Seen) -> dict[str, Any]:
        table = None if made.decision is None else _evidence_table(made.decision.view())
        return {
            "stage": visible(made.stage),
            "place": visible(made.place),
            "step": made.step,
            "number": made.number,
            "total": made.total,
            "when": "" if made.step == seen.step else f"at row {made.step}",
            "words": visible(made.words),
            "rows": [] if table is None else _evidence_rows(table, self.source.roles),
        }

    def _state(self, seen: Seen) -> dict[str, Any]:
        whose = seen.subject or visible(self.source.name)
        around = seen.around
        if around is None:
            return {"whose": whose, "words": "not carried by this record", "held": [], "total": 0}
        path = f", inside {around.path}" if around.path else ""
        return {
            "whose": f"{whose}{path}",
            "words": around.words + _cut(around),
            "held": [_held(one) for one in around.held],
            "total": around.total,
        }


def explore(shown: Any, subject: Any = None) -> Explorer:
    """Make the explorer of an envelope, a run, a walk or a chart.

    Parameters
    ----------
    shown : Envelope, Run, Walk, FiledWalk, Chart or Structure
        Or anything with a walk, or a structure.
    subject : object, optional
        Whose decision to begin at.
    """
    return Explorer(shown, subject)


def _whole(given: Any, name: str, end: int) -> int:
    """Take a whole number below an end, as a script gave it."""
    if type(given) is not int or not 0 <= given < end:
        raise DefinitionError(
            f"{name} is {show(given)}", where=name, fix=f"give a whole number below {end}"
        )
    return given


def _row(row: WalkRow) -> list[Any]:
    return [row.step, visible(row.type), clip(visible(row.text), MAX_TEXT)]


def _sent(picture: Inline) -> dict[str, Any]:
    return {
        "svg": picture.svg,
        "names": list(picture.names),
        "note": picture.note,
        "width": picture.width,
    }


def _nodes(seen: Seen, picture: Inline) -> dict[str, str]:
    """Say of each node of the picture what it is to the row; the nearer the row, the stronger."""
    trail, found = seen.trail, dict[str, str]()
    for word, keys in (
        ("later", trail.later),
        ("done", trail.done),
        ("next", (trail.next,)),
        ("now", (trail.now,)),
    ):
        for key in keys:
            number = None if key is None else _place(key, picture)
            if number is not None:
                found[str(number)] = word
    return found


def _place(key: str, picture: Inline) -> int | None:
    """Find the node a stage is drawn as: its own, else that of the chart around it."""
    while key:
        if key in picture.places:
            return picture.places[key]
        key = key.rpartition("/")[0]
    return None


def _evidence_table(card: Card) -> Table | None:
    parts = (part for section in card.sections for part in section.parts)
    return next((part for part in parts if isinstance(part, Table)), None)


def _evidence_rows(table: Table, roles: Mapping[str, Role]) -> list[list[Any]]:
    """Give each rule as an equation: its number, key, actual, operator, limit, what came of it."""
    heads = [str(column.head) for column in table.columns]
    at = {head: heads.index(head) for head in heads}
    strong, leads = set(table.strong_rows), Badge(word="")
    found: list[list[Any]] = []
    for place, row in enumerate(table.rows):
        if isinstance(row[at["leads to"]], Badge):
            leads = row[at["leads to"]]  # type: ignore[assignment]
        result: Cell = row[at["result"]]
        said = tell(result)
        if place in strong and cell_text(result):
            role = roles.get(leads.word, leads.role)
            said = [badge(f"{cell_text(result).partition(',')[0]}, {leads.word}", str(role))]
        number = cell_text(row[at["rule"]])
        found.append(
            [
                f"rule {number}" if number.isdigit() else number,
                *(tell(row[at[name]], code=True) for name in ("key", "actual", "op", "limit")),
                said,
                place in strong,
            ]
        )
    return found


def _cut(around: Around) -> str:
    if around.total <= MAX_KEYS:
        return ""
    return f"; {len(around.held)} of {around.total} keys shown"


def _held(held: Held) -> list[Any]:
    """Give a key, before and after, and the change in words."""
    if held.step is None:
        change = ["", "same"]
    elif held.before is MISSING:
        change = ["added", f"at row {held.step}"]
    elif held.after is MISSING:
        change = ["removed", f"at row {held.step}"]
    elif _is_same(held.before, held.after):
        change = ["written again", f"at row {held.step}"]
    else:
        change = ["changed", f"at row {held.step}"]
    return [visible(held.key), _value(held.before), _value(held.after), change]


def _is_same(before: Any, after: Any) -> bool:
    """Say whether a key was written what it held: the whole of it, however much is shown."""
    if isinstance(before, Long) or isinstance(after, Long):
        return bool(before == after)
    return _value(before) == _value(after) and content_of(before) == content_of(after)


def _value(value: Any) -> list[list[str]]:
    """Give a value as it is shown in a cell, with more of it where there is more."""
    if isinstance(value, Long):
        return [["o", f"({value.count} items)"]]
    if value is MISSING:
        return tell(None)
    if value is None:
        return [["d", "null"]]
    told = tell(Data(value=value), code=True)
    more = _content(value)
    if more and len(told) == 1 and len(told[0]) == 2:
        told[0].append(more)
    return told


def _content(value: Any) -> str:
    """Write what is in a mapping or a list."""
    if isinstance(value, str) or not isinstance(value, Mapping | list | tuple):
        return ""
    return clip(visible(content_of(value)), MAX_VALUE)


__all__ = ["Explorer", "explore"]
