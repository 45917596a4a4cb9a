"""Branches that run straight through: plain functions and deciders, item after item, in one loop.

Chart layer. Nearly every branch of a fan-out calls a few plain functions and judges a few rules,
and nothing else happens. Those are run here without a generator, track, frame or scope per item:
values are appended to the fan-out's own columns, one list takes the codes of one branch after
another, and one scope serves every stage. The law: the record must be the one that the engine of
`executor` leaves. So whatever is not ordinary is not dealt with here. At the very place where a
stage waits, asks, stops, fails or gives something strange, the branch is handed over as it stands,
as a `Begun`, and the engine goes on with it.

A scope that its stage kept must refuse to be used later. One that nobody holds any more cannot be
used by anybody, so it may serve the next stage; the interpreter counts who holds it.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import ATOMS, FrozenDict, FrozenList, freeze
from runbook_nb._rows import FrozenRows
from runbook_nb._text import MISSING
from runbook_nb.chart.plan import CALLS, DECIDES, ChartPlan, StagePlan
from runbook_nb.chart.scope import Frame, Scope
from runbook_nb.errors import ENDS_RUN
from runbook_nb.record.log import OK, Track
from runbook_nb.rules.decision import Decision
from runbook_nb.rules.evaluate import DecisionPath
from runbook_nb.rules.facts import follow
from runbook_nb.rules.kinds import ERROR
from runbook_nb.rules.plan import plan_of

if TYPE_CHECKING:
    from runbook_nb.chart.fanout import FanOutBranches as Items

#: Values of exactly these classes are neither awaited nor generators.
_PLAIN: Final = ATOMS | {dict, list, tuple, set, frozenset, FrozenDict, FrozenList}

#: Whether the interpreter can be asked who holds an object; else every stage gets a new scope.
_COUNTED: Final = (
    sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
)


def _held_by_the_loop(scope: Any) -> tuple[int, int]:
    """Count who holds an item, and the input of a branch, where no stage kept them."""
    found = -1, -1
    block, holders = [FrozenDict()], sys.getrefcount
    for index, item in enumerate(block, 0):
        scope.args = args = FrozenDict(item=item, index=index)
        if _COUNTED:
            found = holders(item), holders(args)
    return found


_ROW, _ARGS = _held_by_the_loop(SimpleNamespace())


class Begun:
    """A branch as it stands where it is handed over.

    Attributes
    ----------
    frame : Frame
    at : int
        Which stage of its chart.
    route : str or None
        The branch taken there, where it is a decider.
    taken : StagePlan or None
        The stage or branch that runs; None where the stage has yet to begin.
    scope : Scope
        What its function was called with.
    value : object
        What the function gave.
    error : BaseException or None
        What it raised.
    start : int
        Where the codes of the stage itself begin, after the one that says that it began.
    """

    __slots__ = ("at", "error", "frame", "route", "scope", "start", "taken", "value")

    def __init__(
        self,
        frame: Frame,
        scope: Scope,
        at: int,
        route: str | None = None,
        taken: StagePlan | None = None,
    ) -> None:
        self.frame = frame
        self.scope = scope
        self.at = at
        self.route = route
        self.taken = taken
        self.value: Any = None
        self.error: BaseException | None = None
        self.start = 0
        if taken is not None:
            codes = frame.track.codes
            if taken.stage_code not in codes:  # interrupted as it was to begin
                codes.append(taken.stage_code)
            self.start = len(codes) - codes[::-1].index(taken.stage_code)

    def outcome(self) -> Any:
        """Give what the function gave, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Way:
    """Where a decision leads: the codes it appends, the branch's own included, and the branch."""

    __slots__ = ("codes", "taken")

    def __init__(self, codes: tuple[int, ...], taken: StagePlan) -> None:
        self.codes = codes
        self.taken = taken


def straight_through(items: Items) -> Straight | None:
    """Give what runs the branches of a fan-out straight through, if they begin that way."""
    if items.chart is None or not items.execution.untimed:
        return None
    stages = leading(items.chart)
    return Straight(items, items.chart, stages) if stages else None


def leading(chart: ChartPlan) -> tuple[StagePlan, ...]:
    """Give the stages of a chart, up to the first that is left to the engine."""
    if chart.loops:
        return ()
    found = []
    for plan in chart.stages:
        if not plan.plain or plan.form not in (CALLS, DECIDES) or plan.has_functions:
            break
        if any(not one.plain or one.form != CALLS for one in plan.branches.values()):
            break
        if plan.form == DECIDES and plan.stage.rules is not None:
            plan.judging = plan_of(plan.stage.rules)
        found.append(plan)
    return tuple(found)


class Straight:
    """Runs the branches of one fan-out, as far as they go straight through."""

    def __init__(self, items: Items, chart: ChartPlan, stages: tuple[StagePlan, ...]) -> None:
        self.items = items
        self.chart = chart
        self.stages = stages
        self.result_code = items.plan.code("result")
        track = Track()
        track.values = items.fan.values
        #: What scopes are made from: its track is that of one branch after another.
        self.frame = Frame(track, {}, FrozenDict(), items.path)

    def run(self, start: int, end: int) -> tuple[int, Begun | None]:  # noqa: PLR0912, PLR0915 - one loop, flat so that it is quick
        """Run branches from ``start`` on, up to ``end``.

        Gives the first that did not run to its end here, and how far it came.
        """
        execution, fan, looping = self.items.execution, self.items.fan, self.items.looping
        fan.changed()
        codes, values, frame = self.frame.track.codes, fan.values, self.frame
        shapes, offsets, statuses = fan.shapes, fan.offsets, fan.statuses
        add, extend, keep = codes.append, codes.extend, values.append
        first = self.items.first
        stages, whole = self.stages, len(self.stages) == len(self.chart.stages)
        holders, missing = sys.getrefcount, MISSING
        taken = stages[0]
        offset = len(values)
        index = start
        before: list[int] = []  # the codes of the branch before: most walks are like that one
        number = -1
        value: Any = None
        state: dict[str, Any]
        way: Way | None
        scope = Scope(frame, taken)
        growing = frame.growing
        rows = fan.items if isinstance(fan.items, FrozenRows) else None
        block = fan.items[start:end] if rows is None else rows.fresh(start, end)
        alone = holders(scope) if _COUNTED else 0
        try:
            for index, item in enumerate(block, start):
                codes.clear()
                offset = len(values)
                scope._data = state = {}
                scope._args = args = FrozenDict(item=item, index=first + index)
                if growing:
                    growing.clear()
                value = None
                for taken in stages:
                    if execution.watched and not execution.goes_on(taken):
                        return index, self._before(index, taken, scope, offset)
                    add(taken.stage_code)
                    if taken.form == DECIDES:
                        if taken.judging is not None:
                            step: Any = taken.judging.start
                            while step.__class__ is tuple:
                                key, path, test, following, _, fast, compare, limit = step
                                try:
                                    actual = state.get(key, missing)
                                    if actual.__class__ is fast:
                                        code = compare(actual, limit)
                                    else:
                                        if actual is missing and path is not None:
                                            actual = follow(state.get, path)
                                        code = test(actual)
                                except ENDS_RUN:
                                    raise
                                except Exception:  # the facts themselves could not be read
                                    actual, code = missing, ERROR
                                keep(actual)
                                step = following[code] or taken.judging.after(step, int(code))
                            way = taken.ways.get(step) or self._way(taken, step)
                            if growing:  # what was judged is kept with the decision
                                growing.difference_update(step.keys)
                        else:
                            scope._plan = taken
                            value = taken.stage.judge(scope)
                            if scope.stopped is not None:
                                way = None
                            elif value.__class__ is str:
                                way = taken.ways.get(value) or self._way_by_word(taken, value)
                                keep(value)
                            elif value.__class__ is Decision:
                                way = taken.ways.get(value.path) or self._way(taken, value.path)
                                values.extend(value.values)
                            else:
                                way = None
                        if way is None or (execution.watched and not execution.goes_on(way.taken)):
                            return index, self._begun(index, taken, scope, offset, value)
                        if taken.judging is None and (holders(scope) != alone or scope._looked):
                            scope = self._another(scope, taken)
                        taken = way.taken  # noqa: PLW2901 - what runs here is the branch
                        extend(way.codes)
                    scope._plan = taken
                    value = taken.fn(scope)
                    if value is not None and value.__class__ not in _PLAIN:
                        return index, self._begun(index, taken, scope, offset, value)
                    if scope.stopped is not None:
                        return index, self._begun(index, taken, scope, offset, value)
                    if holders(scope) != alone:
                        scope = self._another(scope, taken)
                    elif scope._looked:
                        scope._looked = False
                if not whole:
                    following = self.chart.stages[len(stages)]
                    return index, self._before(index, following, scope, offset)
                if value is not None:
                    if value.__class__ not in ATOMS:
                        try:
                            value = freeze(value, "the branch's result")
                        except Exception:
                            return index, self._begun(index, taken, scope, offset, value)
                    add(self.result_code)
                    keep(value)
                if codes != before:
                    before = codes[:]
                    number = fan.log.shape_number(tuple(codes))
                shapes[index] = number
                offsets[index] = offset
                statuses[index] = OK
                if rows is not None and (holders(item) != _ROW or holders(args) != _ARGS):
                    rows.keep(index, item)
                if looping:
                    self.items.visited(index)
        except BaseException as error:
            return index, self._begun(index, taken, scope, offset, None, error)
        return end, None

    def _another(self, scope: Scope, plan: StagePlan) -> Scope:
        """Close a scope that somebody holds, and give the next stage one of its own."""
        self.frame.state, self.frame.args = scope._data, scope._args
        scope.close()
        return Scope(self.frame, plan)

    # -- ways ------------------------------------------------------------------------------

    def _way(self, plan: StagePlan, path: DecisionPath) -> Way | None:
        """Say where a decision by rules leads; None for whatever the engine has to look at."""
        if path.refuses:
            return None
        judge = plan.judging is None
        codes = (plan.decision_code(path),) if judge else plan.decision_codes(path)
        word = path.branch
        if word is None and plan.default is not None:
            word = plan.default
            codes = (*codes, plan.code("route", word))
        return self._leads(plan, path, word, codes)

    def _way_by_word(self, plan: StagePlan, word: str) -> Way | None:
        if word not in plan.branches:
            return None
        return self._leads(plan, word, word, (plan.code("choice", word),))

    def _leads(
        self, plan: StagePlan, key: Any, word: str | None, codes: tuple[int, ...]
    ) -> Way | None:
        taken = plan.branches.get(word) if word is not None else None
        if taken is None:
            return None
        way = plan.ways[key] = Way((*codes, taken.stage_code), taken)
        return way

    # -- handing over ----------------------------------------------------------------------

    def _before(self, index: int, plan: StagePlan, scope: Scope, offset: int) -> Begun:
        """Hand a branch over before a stage begins."""
        frame = self._frame_of(index, scope, offset)
        return Begun(frame, scope, self.chart.places[plan.stage.id])

    def _begun(  # noqa: PLR0917 - called where things go wrong, from many places
        self,
        index: int,
        taken: StagePlan,
        scope: Scope,
        offset: int,
        value: Any,
        error: BaseException | None = None,
    ) -> Begun:
        """Hand a branch over in a stage that began; one that judges by rules judges again."""
        frame = self._frame_of(index, scope, offset)
        at, route = next(
            (at, route)
            for at, plan in enumerate(self.chart.stages)
            for route, one in ((None, plan), *plan.branches.items())
            if one is taken
        )
        begun = Begun(frame, scope, at, route, taken)
        begun.value, begun.error = value, error
        if taken.judging is None or error is not None:
            frame.begun = begun
        return begun

    def _frame_of(self, index: int, scope: Scope, offset: int) -> Frame:
        """Take what a branch left in the columns of the fan-out out again, on its own track."""
        shared, track = self.frame.track, Track()
        track.codes, shared.codes = shared.codes, []
        # What was judged without coming to a decision has values, and no code yet.
        width = self.items.execution.log.width_of(track.codes)
        track.values = shared.values[offset : offset + width]
        del shared.values[offset:]
        scope._values = track.values
        args: Any = scope._args
        rows = self.items.fan.items
        if isinstance(rows, FrozenRows) and args.get("index") == self.items.first + index:
            rows.keep(index, args["item"])
        frame = self.items.frame_for(index, track, self.chart)
        frame.state, frame.args = scope._data, args
        frame.growing, self.frame.growing = self.frame.growing, set()
        return frame
