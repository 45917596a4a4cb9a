"""One row of a walk looked at closely: the way to it, what was decided, what the state was.

Record layer. A moment is found from the log without going through the rows; the state around it
comes from the track's own timelines. Everything it gives is served: what a policy hides in a
run's commits and walk is hidden here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import FrozenDict
from runbook_nb._ids import digest
from runbook_nb._json import encode_deep, to_wire
from runbook_nb._text import MISSING
from runbook_nb._value import frozen
from runbook_nb.record.log import FanOut
from runbook_nb.record.overlay import template_path
from runbook_nb.record.places import Part, runtime_id
from runbook_nb.record.projection import WalkRow
from runbook_nb.record.replay import Level, Prefix, Replayed
from runbook_nb.record.rows import Branch
from runbook_nb.record.shapes import facts_of
from runbook_nb.record.slots import served_subject
from runbook_nb.record.spots import DECISIONS, WRITES, Marks, Spot, Spots, fan_of, place_of_fan
from runbook_nb.record.walk import Walk
from runbook_nb.rules.decision import Decision, Selection

#: Keys of a state that are told of at once.
MAX_KEYS: Final = 50
#: Items of a list up to which its content can be looked at.
MAX_ITEMS: Final = 50


class Subject(NamedTuple):
    """Whose branch a row is in.

    ``number`` counts from 1; ``stage`` is the name of the fan-out.
    """

    name: Any
    number: int
    total: int
    stage: str


@frozen
class Trail:
    """The way to a row, as keys of the structure.

    Attributes
    ----------
    done : tuple of str
        What had run, in the order it first began.
    now : str or None
        The stage the row belongs to.
    next : str or None
        What began after it.
    later : tuple of str
        What began after that.
    """

    done: tuple[str, ...]
    now: str | None
    next: str | None
    later: tuple[str, ...]


@frozen
class Decided:
    """The decision nearest to a row.

    Attributes
    ----------
    decision : Decision, Selection or None
        None where a decider named its branch without evidence; ``words`` says what it named.
    words : str
    stage : str
        The decider's name.
    runtime_stage_id : str
        Its execution.
    step : int
        The row that tells it.
    number, total : int
        Which of how many decisions of the walk, from 1.
    """

    decision: Decision | Selection | None
    words: str
    stage: str
    runtime_stage_id: str
    step: int
    number: int
    total: int


class Held(NamedTuple):
    """What a key held before and after, `MISSING` where it was not there.

    A `Long` stands in for a list too long to be looked at. ``step`` is the row that tells the
    change; None where there was none.
    """

    key: str
    before: Any
    after: Any
    step: int | None


@frozen
class Around:
    """The state around a row.

    Attributes
    ----------
    words : str
        Of which moments it is.
    path : str
        The mounted chart whose state it is; empty for the own one.
    held : tuple of Held
        At most `MAX_KEYS`, the changed ones among them.
    total : int
        How many keys there are.
    """

    words: str
    path: str
    held: tuple[Held, ...]
    total: int


@frozen(kw_only=False)
class Long:
    """A list of which only the number of items is told.

    ``content`` tells two lists of as many items apart, where they are one before and one after.
    """

    count: int
    content: str = ""


def content_of(value: Any) -> str:
    """Write a value out whole, to be compared with another; empty where it cannot be written.

    Examples
    --------
    >>> content_of([1, "a"]), content_of({"x"})
    ('[1,"a"]', '["x"]')
    """
    try:
        return encode_deep(to_wire(value))
    except Exception:  # a list that holds itself, a foreign mapping
        return ""


class Moments:
    """Looks closely at the rows of a walk, one at a time.

    Parameters
    ----------
    walk : Walk
    initial : mapping, optional
        The state before the first stage, as it is; the policy of the walk serves it.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> walk = flow_chart("c", lambda s: s.set("n", 1), id="a").build().run_sync().walk
    >>> moment = Moments(walk).at(1)
    >>> moment.row.text, moment.trail.now, moment.around.held[0].after
    ('Wrote n', 'a', 1)
    """

    def __init__(self, walk: Walk, initial: Mapping[str, Any] | None = None) -> None:
        self.walk = walk
        self.redactor = walk.redactor
        self._initial = FrozenDict() if initial is None else initial
        self._track: tuple[tuple[Branch, ...], Replayed] | None = None

    @cached_property
    def spots(self) -> Spots:
        """What finds rows."""
        return self.walk.spots

    @cached_property
    def decisions(self) -> Marks:
        """The rows that tell decisions."""
        return self.walk.marks(DECISIONS)

    @cached_property
    def writes(self) -> Marks:
        """The rows that tell changes of state."""
        return self.walk.marks(WRITES)

    def at(self, step: int) -> Moment:
        """Look at a row.

        Raises
        ------
        IndexError
            There is no such row.
        """
        return Moment(self, step, self.spots.at(step))

    def track_of(self, chain: tuple[Branch, ...]) -> Replayed:
        """Play the track a row is in again; the one asked for last is kept."""
        if self._track is None or self._track[0] != chain:
            self._track = (chain, self._played(chain))
        return self._track[1]

    def _played(self, chain: tuple[Branch, ...]) -> Replayed:
        log = self.walk.log
        depth = max((n for n, one in enumerate(chain, 1) if one[0].is_fan_out), default=0)
        if depth:
            fan, index, prefix = chain[depth - 1]
            shape = fan.shape(index)
            track = Replayed(
                log,
                () if shape is None else shape.codes,
                *fan.part(index),
                prefix=fan.path(prefix, index),
                template=template_path(chain[depth - 1]),
                first=fan.base(index),
            )
        else:
            track = Replayed(log, log.root.codes, log.root.values, base=self._initial)
        for fan, index, _ in chain[depth:]:  # children of forks go on from the state they found
            branching = next(one for one in track.fans if one.fan is fan)
            inner = track.branch(branching, index)
            track = track if inner is None else inner
        return track


class Moment:
    """One row, looked at.

    Attributes
    ----------
    step : int
    spot : Spot
    """

    def __init__(self, moments: Moments, step: int, spot: Spot) -> None:
        self._moments = moments
        self._walk = moments.walk
        self.redactor = moments.redactor
        self.step = step
        self.spot = spot

    @cached_property
    def row(self) -> WalkRow:
        """The row itself."""
        return self._walk[self.step]

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches of fan-outs around it, the outermost first."""
        return tuple(one for one in self.spot.chain if one[0].is_fan_out)

    @cached_property
    def subject(self) -> Subject | None:
        """Whose branch it is in; None outside any."""
        branch = self.spot.branch
        if branch is None:
            return None
        fan, index, _ = branch
        name = served_subject(self.redactor, fan, index)
        return Subject(name, index + 1, len(fan), self.redactor.text(fan.stage.name))

    # -- the way to it ---------------------------------------------------------------------

    @cached_property
    def trail(self) -> Trail:
        """The way to the row and on from it."""
        done: dict[str, None] = {}
        later: list[list[str]] = []
        now: str | None = None
        for part, template, place in self._levels():
            rest: list[str] = []
            for at, event in enumerate(part.facts.events):
                key = f"{template}{event.code.stage.key}"
                if event.code.kind == "stage":
                    if at <= place:
                        done[key] = None
                        now = key
                    else:
                        rest.append(key)
                elif event.code.kind == "fan_out" and at < place:
                    done.update(dict.fromkeys(self._ran_in(fan_of(part, event), template)))
            later.append(rest)
        if self.spot.frame == "leave":
            now = None
        at_row = self.spot.event
        if at_row is not None and at_row.code.stage.kind == "step":  # steps may take turns
            now = f"{template_path(self._walk.only)}{at_row.code.stage.key}"
        ahead = [key for level in reversed(later) for key in level]
        text = self.redactor.text
        return Trail(
            done=tuple(text(key) for key in done if key != now),
            now=None if now is None else text(now),
            next=text(ahead[0]) if ahead else None,
            later=tuple(dict.fromkeys(map(text, ahead[1:]))),
        )

    def _levels(self) -> Iterator[tuple[Part, str, int]]:
        """Yield each track from the outermost in, with the event of it that the row is within."""
        walk, chain = self._walk, self.spot.chain
        rows = self._moments.spots.rows
        part, template = rows.own(), template_path(walk.only)
        for branch in chain[0 if walk.only is None else 1 :]:
            yield part, template, place_of_fan(part, branch[0])
            part, template = rows.part_of(branch[0], branch[1], part.prefix), template_path(branch)
        yield part, template, self.spot.place

    def _ran_in(self, fan: FanOut, template: str) -> Iterator[str]:
        inner = fan.template(template)
        for number in fan.shape_counts():
            for event in facts_of(fan.log, fan.log.shapes[number]).events:
                if event.code.kind == "stage":
                    yield f"{inner}{event.code.stage.key}"

    def row_of(self, key: str) -> int | None:
        """Find the row that tells of a stage on the way: of a decider, the one of its decision.

        None for a stage that is not on it.
        """
        first = 0 if self._walk.only is None else 1
        for depth, (part, template, _) in enumerate(self._levels()):
            found = self._find(key, part, template, self.spot.chain[: first + depth])
            if found is not None:
                return self._moments.spots.row(found)
        return None

    def _find(self, key: str, part: Part, template: str, chain: tuple[Branch, ...]) -> Spot | None:
        """Find where a track, or the child of a fork in it, tells of a stage."""
        found: Spot | None = None
        for at, event in enumerate(part.facts.events):
            kind = event.code.kind
            if kind == "fan_out":
                fan = fan_of(part, event)
                for index, _ in () if fan.is_fan_out or found is not None else fan.begun():
                    branch = (fan, index, part.prefix)
                    inside = self._moments.spots.rows.part_of(*branch)
                    inner = self._find(key, inside, template_path(branch), (*chain, branch))
                    if inner is not None:
                        return inner
            if self.redactor.text(f"{template}{event.code.stage.key}") != key:
                continue
            if kind in DECISIONS:
                return Spot(chain, part, at)
            if kind == "stage" and found is None:
                found = Spot(chain, part, at)
        return found

    # -- what was decided ------------------------------------------------------------------

    @cached_property
    def decided(self) -> Decided | None:
        """The last decision of the track up to the row, else the next one; None without any."""
        spot = self.spot
        events = spot.part.facts.events
        places = [at for at, event in enumerate(events) if event.code.kind in DECISIONS]
        if not places:
            return None
        before = [at for at in places if at <= spot.place]
        place = before[-1] if before else places[0]
        return self._decided(Spot(spot.chain, spot.part, place))

    def _decided(self, spot: Spot) -> Decided:
        part, event = spot.part, spot.part.facts.events[spot.place]
        code, text = event.code, self.redactor.text
        decision: Decision | Selection | None = None
        if code.path is not None:
            start = part.offset + event.at
            made = Decision if code.kind == "decision" else Selection
            actuals = tuple(part.values[start : start + len(code.path.codes)])
            decision = made(code.path, actuals, self.redactor)
        step = self.step if spot.place == self.spot.place else self._moments.spots.row(spot)
        marks = self._moments.decisions
        return Decided(
            decision=decision,
            words=self._walk[step].text if decision is None else text(decision.sentence),
            stage=text(code.stage.name),
            runtime_stage_id=text(
                runtime_id(part.prefix, code.stage.key, part.base + event.execution)
            ),
            step=step,
            number=marks.before(step) + 1,
            total=marks.total,
        )

    # -- the state -------------------------------------------------------------------------

    @cached_property
    def around(self) -> Around:
        """The state before and after."""
        track = self._moments.track_of(self.spot.chain)
        level, start, end, words = self._times(track)
        line = level.timeline
        before, after = line.state(start), line.state(end)
        keys = list(dict.fromkeys((*before, *after)))
        changed = [key for key in keys if line.version(key, start) != line.version(key, end)]
        shown = keys
        if len(keys) > MAX_KEYS:
            wanted = {*changed[:MAX_KEYS]}
            room = MAX_KEYS - len(wanted)
            wanted |= {*[key for key in keys if key not in wanted][:room]}
            shown = [key for key in keys if key in wanted]
        moved = set(changed)
        return Around(
            words=words,
            path=self.redactor.text(level.path[:-1]) if level is not track.top else "",
            held=tuple(
                Held(
                    self.redactor.text(key),
                    *self._both(key, before.get(key, MISSING), after.get(key, MISSING)),
                    self._row_of(line.time(key, line.version(key, end))) if key in moved else None,
                )
                for key in shown
            ),
            total=len(keys),
        )

    def _both(self, key: str, before: Any, after: Any) -> tuple[Any, Any]:
        """Serve what a key held before and after, so that equal ones are equal throughout."""
        one, other = self._served(key, before), self._served(key, after)
        if before is not after and one.__class__ is Long and one == other:
            return self._told_apart(key, one, before), self._told_apart(key, other, after)
        return one, other

    def _told_apart(self, key: str, told: Long, held: Any) -> Long:
        whole = held.value if held.__class__ is Prefix else held
        return Long(told.count, digest(content_of(self.redactor.value(key, whole))))

    def _times(self, track: Replayed) -> tuple[Level, int, int, str]:
        """Say whose state is looked at, from when and until when, and in words."""
        spot, place = self.spot, self.spot.place
        event = spot.event
        if event is None:
            return track.top, place, place, "at this row"
        owner = track.owners[place]
        if owner < 0:
            return track.top, place, place, "at this row"
        step = track.steps[owner]
        level, kind = step.level, event.code.kind
        if kind == "stage":
            return level, place - 1, step.last, "before this stage, and after it"
        if kind in DECISIONS:
            following = level.steps[step.place + 1 : step.place + 2]
            end = following[0].last if following else step.last
            return level, place - 1, end, "before this step, and after the branch it chose"
        if kind in WRITES:
            return level, place - 1, place, "before this step, and after it"
        return level, place, place, "at this row"

    def _served(self, key: str, held: Any) -> Any:
        """Serve a value; of a list too long to be looked at the number of items is enough."""
        if held is MISSING:
            return MISSING
        if held.__class__ is Prefix:
            if held.length > MAX_ITEMS:
                return self._long(key, held.length)
            held = held.value
        listed = isinstance(held, Sequence) and not isinstance(held, str | bytes | bytearray)
        if listed and len(held) > MAX_ITEMS:
            return self._long(key, len(held))
        return self.redactor.value(key, held)

    def _long(self, key: str, count: int) -> Any:
        seen = self.redactor.value(key, ())
        return Long(count) if seen == () else seen

    def _row_of(self, place: int) -> int:
        return self._moments.spots.row(Spot(self.spot.chain, self.spot.part, place))
