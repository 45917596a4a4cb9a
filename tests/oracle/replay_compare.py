"""A replayed case held against its recording, key by key of what was observed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import replay_run
from replay_commits import Change, Commits, change_differences, our_changes
from replay_expected import ABORTED, Departures, Expected
from replay_graph import graph_differences, our_graph, recorded_graph
from replay_ops import NULL_QUESTION
from replay_program import NoWord
from replay_rows import Row, differences, in_lanes
from replay_run import Replay
from replay_seen import Seen, plain_value
from replay_shape import key_of
from replay_values import ANYTHING, HarnessFailure, decode, plain, same

from runbook_nb._text import MISSING
from runbook_nb.errors import ChartError, RunbookError

#: Internal shapes of upstream's, which are not compared.
NOT_COMPARED = {
    "flow",
    "scope",
    "merged",
    "tree",
    "runtime_structure",
    "subflows",
    "subflow_keys",
    "chart_keys",
    "snapshot_keys",
    "dials",
    # Told again by other keys: the edges by the structure, lines by wording.
    "structure_events",
    "description_lines",
}

#: What a chart shows without a run.
BUILT = {"error", "structure", "mcp", "openapi", "mermaid", "description_facts"}

#: What ends a run here, by what upstream's category says ended it: classes and codes of errors.
CATEGORIES: dict[str, tuple[str, ...]] = {
    "run.unknown_branch_no_default": ("unknown_branch",),
    "run.unknown_selection": ("unknown_branch", "bad_selection"),
    "run.for_each_items_not_array": ("bad_items",),
    "run.for_each_branch_not_chart": ("bad_branch",),
    "run.max_iterations": ("loop_limit",),
    "run.max_depth": ("depth_limit",),
    "run.bad_max_depth": ("bad_chart",),
    "run.bad_max_iterations": ("bad_chart",),
    "run.timeout": ("time_limit",),
    "run.value_not_cloneable": ("frozen_value",),
    "run.node_without_function": ("bad_chart",),
    "input.invalid": ("invalid_input",),
    "resume.bad_shared_state": ("bad_checkpoint",),
    "resume.bad_paused_stage_id": ("bad_checkpoint",),
    "resume.bad_subflow_path": ("bad_checkpoint",),
    "resume.stage_not_found": ("bad_checkpoint",),
    "resume.not_pausable": ("bad_checkpoint",),
    "pause.not_serialisable": ("cannot_checkpoint", "frozen_value", "not_json"),
}

#: Likewise by the first word of the category, where the category itself is not known.
KINDS: dict[str, tuple[str, ...] | None] = {
    "resume": ("bad_checkpoint", "other_chart"),
    "input": ("invalid_input",),
    "pause": ("cannot_checkpoint", "frozen_value", "not_json"),
    "run": None,
}


@dataclass
class Comparison:
    """What comparing one case found.

    Attributes
    ----------
    compared : dict of str to str
        Observed keys compared, and what of them.
    wrong : list of str
    departures : Departures
    """

    replay: Replay
    departures: Departures = field(default_factory=Departures)
    compared: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def compare(case: Mapping[str, Any]) -> Comparison:
    """Replay a case and compare everything observed that is not internal to upstream."""
    return _Comparing(case, replay_run.replay(case)).all()


class _Comparing:
    def __init__(self, case: Mapping[str, Any], replay: Replay) -> None:
        self.case = case
        self.replay = replay
        self.observed = case["observed"]
        self.found = Comparison(replay)
        self.departs = self.found.departures.departs
        self.expected = Expected(case, self.found.departures)
        self.expected.unions = replay.unions
        self.shape = self.expected.shape
        self._seen: Seen | None = None

    @property
    def run(self) -> Any:
        return self.replay.run

    @property
    def seen(self) -> Seen:
        if self._seen is None:
            self._seen = Seen(self.run, self.replay.chart)
        return self._seen

    def all(self) -> Comparison:
        if self._built():
            keys = [key for key in self.observed if key not in NOT_COMPARED]
            if "error" not in keys and "build_error" not in keys and not self.case.get("build_only"):
                self._no_error()
            elsewhere = self._went_elsewhere()
            for key in keys:
                if elsewhere and key not in BUILT:
                    self.told(key, "the general laws: the run goes another way")
                    continue
                compare: Callable[[Any], None] | None = getattr(self, f"on_{key}", None)
                if compare is None:
                    raise HarnessFailure(f"no comparison of {key!r} in the harness")
                compare(self.observed[key])
        return self.found

    def differ(self, key: str, wrong: list[str] | str | None) -> None:
        """Note what differs in one key."""
        for one in [wrong] if isinstance(wrong, str) else wrong or ():
            self.found.wrong.append(f"{key}: {one}")

    def told(self, key: str, what: str) -> None:
        """Note what of a key was compared."""
        self.found.compared[key] = what

    # -- built or not -----------------------------------------------------------------------

    def _built(self) -> bool:
        refused, category = self.replay.refused, category_of(self.observed.get("build_error"))
        if category is not None:
            self.told("build_error", category)
            self._refusal(refused, category)
            return False
        if refused is None:
            return True
        self.told("build", "refused")
        if not (isinstance(refused, ChartError) and self._refused_on_purpose(refused)):
            self.differ("build", f"refused: {refused}")
        return False

    def _refusal(self, refused: BaseException | None, category: str) -> None:
        if isinstance(refused, NoWord):
            if not refused.expected:
                self.differ("build_error", f"the harness could not say {category}: {refused}")
            self.departs("what-cannot-be-said-needs-no-check")
        elif refused is None:
            if category == "build.duplicate_stage_id_different_fn" and self._unique_routes():
                self.departs("branch-ids-are-made-unique")
            elif category in ("build.decider_already_defined", "build.decider_and_selector"):
                self.departs("any-stage-may-follow-any")
            else:
                self.differ("build_error", f"{category} was built")
        elif not refused.problems and not refused.where:  # type: ignore[attr-defined]
            self.differ("build_error", f"refused without a place: {refused}")

    def _unique_routes(self) -> bool:
        # A route that is also the id of a stage: the stage behind it has the decider's id in
        # front, and the structure still has one node for every stage of the program.
        nodes = self.replay.chart.structure.nodes
        return len({node.key for node in nodes}) == len(nodes) and any(
            node.kind == "branch" and node.id != node.branch for node in nodes
        )

    def _refused_on_purpose(self, refused: ChartError) -> bool:
        ids = [stage.step.get("id", "") for stage in self.shape.walk()]
        strange = [one for one in ids if any(mark in one for mark in "/#~") or not one.strip()]
        wheres = " ".join(str(problem.where) for problem in refused.problems)
        if strange and all(one in wheres or repr(one) in wheres for one in strange):
            return self.departs("ids-are-strict")
        return False

    # -- how it ended -----------------------------------------------------------------------

    def _went_elsewhere(self) -> bool:
        """Say whether a departure lets the run go on, or end, where the recorded one did not.

        What it did then is held to the general laws.
        """
        error, recorded = self.replay.error, self.observed.get("error")
        code = getattr(error, "code", None)
        category = category_of(recorded)
        if self.replay.run is not None and error is None and self.run.status == "ok":
            if category == "run.max_depth":
                return self.departs("depth-is-nesting")
            if category == "run.readonly_input_write":
                return self.departs("input-and-state-are-apart")
            if category == "input.invalid" and self._has_integers():
                return self.departs("schemas-are-checked-whole")
        if recorded is None and code == "depth_limit" and self._nesting() > self._depth():
            return self.departs("depth-is-nesting")
        if recorded is None and code == "invalid_input" and error is not None:
            return bool(error.problems) and self.departs("schemas-are-checked-whole")
        return False

    def _depth(self) -> int:
        return int(self.expected.run.get("maxDepth", 500))

    def _nesting(self) -> int:
        return 1 + max(stage.key.count("/") for stage in self.shape.walk())

    def _no_error(self) -> None:
        error = self.replay.error
        if error is not None and not self._went_elsewhere():
            self.differ("error", f"{type(error).__name__}: {error}")

    def on_error(self, recorded: Any) -> None:
        """Compare what ended the run."""
        error = self.replay.error
        category = category_of(recorded)
        self.told("error", category or "message")
        if error is None:
            if category == "run.max_depth" and self.run.status == "ok":
                self.departs("depth-is-nesting")
            elif category == "run.reserved_scope_name" and self._wrote_reserved():
                self.departs("no-name-is-reserved")
            elif category == "run.readonly_input_write" and self.run.status == "ok":
                self.departs("input-and-state-are-apart")
            elif category == "input.invalid" and self._has_integers():
                self.departs("schemas-are-checked-whole")
            else:
                self.differ("error", f"{recorded} did not happen")
            return
        if category is not None:
            if category not in CATEGORIES and category.partition(".")[0] not in KINDS:
                raise HarnessFailure(f"no category {category!r} in the harness")
            codes = CATEGORIES.get(category, KINDS.get(category.partition(".")[0]))
            code = getattr(error, "code", None)
            if code not in codes if codes is not None else not isinstance(error, RunbookError):
                self.differ("error", f"{category} is {type(error).__name__} {error}")
            self._issues(recorded, error)
        elif recorded.get("message") == ABORTED:
            if getattr(error, "code", None) != "cancelled" or ABORTED not in str(error):
                self.differ("error", f"{ABORTED} is {error!r}")
        elif recorded.get("name") == "TypeError":
            self.departs("host-errors-are-python-errors")
            if not isinstance(error, TypeError):
                self.differ("error", f"TypeError is {error!r}")
        elif str(error) != recorded["message"]:
            self.differ("error", f"{recorded['message']!r} is {error!r}")

    def _has_integers(self) -> bool:
        """Say whether a contract asks for whole numbers, which upstream refuses all."""
        steps = self.case["program"]["steps"]
        return any('"integer"' in json.dumps(s) for s in steps if s["add"] == "contract")

    def _wrote_reserved(self) -> bool:
        """Say whether a name upstream reserves is an ordinary key of the state."""
        return self.run.status == "ok" and any(key.startswith("$") for key in self.run.raw[1])

    def _issues(self, recorded: Any, error: Any) -> None:
        for issue in recorded.get("issues", ()):
            where = ".".join(map(str, issue["path"]))
            if not any(where == problem.where for problem in error.problems):
                self.differ("error", f"issue at {where!r} is missing in {error.problems}")

    def on_result(self, recorded: Any) -> None:
        """Compare what the run gave."""
        if self._paused_result(recorded):
            return
        self.told("result", "value")
        if self.run is None:
            self.differ("result", "there is no run")
            return
        expected = self.expected.result()
        result = self.run.raw[2]
        if isinstance(expected, Mapping) and all(
            isinstance(one, tuple) for one in expected.values()
        ) and expected:
            found: Any = {
                slot.item: [slot.status, plain_value(slot.value) if slot.status == "ok" else None]
                for slot in result
            }
            # A child that returned nothing is compared by what it wrote.
            expected = {
                k: [s, (ANYTHING if v is MISSING else v) if s == "ok" else None]
                for k, (s, v) in expected.items()
            }
        else:
            found = plain_value(result)
        if not same(expected, found):
            self.differ("result", f"{expected!r} is {found!r}")

    def _paused_result(self, recorded: Any) -> bool:
        if recorded != {"paused": True}:
            return False
        self.told("result", "paused")
        if self.run is None or self.run.status != "paused":
            self.differ("result", "the run did not pause")
        return True

    def on_state(self, recorded: Any) -> None:
        """Compare the final state, and what fork children left in views of their own."""
        self.told("state", "every key")
        if self.run is None:
            if recorded != {}:
                self.differ("state", "nothing has run")
            return
        state, views = self.expected.state()
        found = plain_value(self.run.raw[1])
        state = self._after_interrupts(state)
        if category_of(self.observed.get("error")) == "run.reserved_scope_name":
            self.departs("no-name-is-reserved")
            state = {op["key"]: plain(decode(op["value"])) for op in self._reserved_writes()}
        gone = {k for k, v in recorded.items() if v == {"$js": "undefined"}}
        found = {k: v for k, v in found.items() if v is not None or k not in gone}
        state = self._cancelled_slots(state)
        if not same(state, found):
            self.differ("state", f"{state!r} is {found!r}")
        for child, view in views.items():
            places = [one for one in self.seen.written if key_of(one).rpartition("/")[2] == child]
            if not places and self.shape.fails_fast and self.replay.error is not None:
                self.departs("failing-fast-ends-siblings")
                continue
            held = self.seen.written.get(places[-1], {}) if places else None
            view = self._merged_views(child, view)
            if held is None or not same(view, plain_value(held)):
                self.differ("state", f"the view of {child}: {view!r} is {held!r}")

    def _merged_views(self, child: str, view: Any) -> Any:
        """Leave open what a child merged into: ours is what it saw, upstream's is nothing."""
        merged = {
            op.get("key")
            for stage in self.shape.walk()
            if stage.key.rpartition("/")[2] == child
            for op in stage.ops
            if op.get("op") in ("update", "set_path")
        }
        for key in merged & set(view):
            self.departs("a-child-merges-into-what-it-sees")
            view = {**view, key: ANYTHING}
        return view

    def _cancelled_slots(self, state: Any) -> Any:
        """Leave out what a fan-out gave whose branches were all cancelled."""
        ended = getattr(self.replay.error, "code", None) in ("cancelled", "time_limit")
        into = {s.step.get("into") for s in self.shape.walk() if s.kind == "for_each"}
        for key in into & set(state) if ended else ():
            if state[key] and all(one is None for one in state[key]):
                self.departs("stop-means-stop")
                state = {k: v for k, v in state.items() if k != key}
        return state

    def _reserved_writes(self) -> list[Any]:
        ops = [op for stage in self.shape.walk() for op in stage.ops]
        return [op for op in ops if "key" in op and "value" in op]

    def _after_interrupts(self, state: Any) -> Any:
        twin = self._twin()
        if twin is None or not isinstance(state, Mapping):
            return state
        answered = plain_value(twin.run.raw[1])
        # What the stage that asked had written is written once, by the execution that goes on.
        return {key: answered.get(key) for key in state if key in answered}

    def _twin(self) -> Replay | None:
        """Run a case that interrupts a stage with its answers given at once."""
        interrupts = any(
            op.get("op") == "interrupt" for stage in self.shape.walk() for op in stage.ops
        )
        if not interrupts or not self.expected.run.get("resume") or self.run.status != "ok":
            return None
        self.departs("an-interrupted-stage-begins-anew")
        return replay_run.replay(self.case, answered=True)

    def on_initial_state(self, recorded: Any) -> None:
        """Compare what the run began with."""
        self.told("initial_state", "every key")
        if self._fresh():
            self.departs("a-resumed-record-is-whole")
            return
        found = plain_value(dict(self.run.raw_initial))
        expected = self.expected.value(recorded)
        if not same(expected, found):
            self.differ("initial_state", f"{expected!r} is {found!r}")

    def _fresh(self) -> bool:
        return any(one.get("mode") == "fresh" for one in self.expected.run.get("resume") or ())

    # -- what happened ----------------------------------------------------------------------

    def on_narrative(self, recorded: Any) -> None:
        """Compare the rows."""
        self.told("narrative", f"{len(recorded)} rows")
        if self.run is None:
            if recorded:
                self.differ("narrative", "nothing has run")
            return
        expected, silent = self.expected.rows(self.replay)
        found = [row for row in self.seen.rows if self._compared(row, silent)]
        if self._fresh():
            self.departs("a-resumed-record-is-whole")
            if not expected:  # nothing was attached to the executor that went on
                return
            found = self._tail(found)
        for row in expected:
            row.facts = {name: self._scrubbed(value) for name, value in row.facts.items()}
        found = list(self._without_holders(found, expected))
        if self.shape.fails_fast and self.replay.error is not None:
            expected, found = self._cut_short(expected, found)
        self.differ("narrative", differences(expected, found, self.shape))

    def _without_holders(self, found: list[Row], expected: list[Row]) -> Iterator[Row]:
        """Leave out that a stage failed because what it holds did, which upstream does not tell."""
        told = {row.runtime_id for row in expected if row.type == "error"}
        failed: list[str] = []
        for row in found:
            if row.type == "error" and row.runtime_id not in told:
                stage = self.shape.at(row.place)
                owned = {s.key for s in self.shape.walk() if s.owner == key_of(row.place)}
                inside = [
                    one
                    for one in failed
                    if key_of(one).startswith(f"{key_of(row.place)}/") or key_of(one) in owned
                ]
                if stage is not None and inside:
                    self.departs("what-holds-a-failure-says-so")
                    continue
            if row.type == "error":
                failed.append(row.place)
            yield row

    def _cut_short(self, expected: list[Row], found: list[Row]) -> tuple[list[Row], list[Row]]:
        """Hold siblings of a branch that failed the run to as far as they came."""
        theirs, mine = in_lanes(expected, self.shape), in_lanes(found, self.shape)
        for lane in theirs:
            if self.shape.owner(lane) not in self.shape.fails_fast:
                continue
            if any(row.type == "error" for row in theirs[lane]):
                continue
            self.departs("failing-fast-ends-siblings")
            came = [row for row in mine.get(lane, []) if not _ending(row)]
            mine[lane], theirs[lane] = came, theirs[lane][: len(came)]
        for row in (row for rows in theirs.values() for row in rows if row.type == "fork"):
            twin = next((r for r in found if r.type == "fork" and r.place == row.place), None)
            if key_of(row.place) in self.shape.fails_fast and twin is not None:
                row.facts["children"] = row.facts["children"][: len(twin.facts["children"])]
        return [r for rows in theirs.values() for r in rows], [
            r for rows in mine.values() for r in rows
        ]

    def _compared(self, row: Row, silent: set[str]) -> bool:
        """Say whether a row is told by both sides."""
        if row.type == "streamed":
            self.departs("a-stream-leaves-a-row")
            return False
        if row.type == "route":
            return False
        if row.facts.get("kind") == "ended":
            self.departs("an-ending-between-stages-has-a-row")
            return False
        inside = row.type in ("step", "emit", "retry") and row.facts.get("op") != "received"
        return not (inside and row.runtime_id in silent)

    def _tail(self, found: list[Row]) -> list[Row]:
        """Give what came after the last answer."""
        last = max((i for i, row in enumerate(found) if row.type == "resume"), default=0)
        return found[last:]

    def on_commits(self, recorded: Any) -> None:
        """Compare what each executed step changed."""
        self.told("commits", f"{len(recorded)} commits")
        if self.run is None:
            if recorded:
                self.differ("commits", "nothing has run")
            return
        expected = Commits(self.expected).changes()
        dials = self.expected.run.get("dials") or {}
        changes = our_changes(
            self.run,
            dials.get("commitValues", "full"),
            provenance=dials.get("writeProvenance") == "reads-prefix",
        )
        found = [one for one in changes if self._own_level(one)]
        if self._fresh():
            self.departs("a-resumed-record-is-whole")
            found = found[len(found) - len(expected) :]
        if self.shape.fails_fast and self.replay.error is not None:
            began = {one.place for one in found}
            expected = [one for one in expected if one.place in began or not self._beside(one)]
        self.differ("commits", change_differences(expected, found, self.shape.lane))

    on_commit_index = on_commits

    def _beside(self, one: Change) -> bool:
        lane = self.shape.lane(one.place)
        fast = bool(lane) and self.shape.owner(lane) in self.shape.fails_fast
        return fast and self.departs("failing-fast-ends-siblings")

    def _own_level(self, one: Change) -> bool:
        lane = self.shape.lane(one.place)
        inner = one.place != lane if lane else "/" in one.place
        return "~" not in one.place and not inner

    def on_structure(self, recorded: Any) -> None:
        """Compare the built structure, node by node and edge by edge."""
        self.told("structure", "nodes and edges")
        expected = recorded_graph(recorded, self.shape, self.departs)
        self.differ("structure", graph_differences(expected, our_graph(self.replay.chart.structure)))

    def on_holes(self, recorded: Any) -> None:
        """Compare how long lists are, and where they hold nothing."""
        self.told("holes", "lengths and gaps")
        state = plain_value(self.run.raw[1])
        for key, told in recorded.items():
            found = state.get(key)
            gaps = [place for place, one in enumerate(found or ()) if one is None]
            if len(found or ()) != told["length"] or gaps != told["missing"]:
                self.differ("holes", f"{key}: {told} is {len(found or ())}, {gaps}")

    def on_error_events(self, recorded: Any) -> None:
        """Compare how many errors are on the record."""
        self.told("error_events", "count")
        found = sum(row.type == "error" for row in self.seen.rows)
        if found != recorded:
            self.differ("error_events", f"{recorded} is {found}")

    def on_stream(self, recorded: Any) -> None:
        """Compare what the listener of streams heard."""
        self.told("stream", f"{len(recorded)} events")
        found = [list(self._heard(event)) for event in self.replay.events]
        if found != recorded:
            self.differ("stream", f"{recorded} is {found}")

    def _heard(self, event: Any) -> tuple[str, ...]:
        if event.kind == "start":
            return ("start", self._stream(event.stream))
        return (event.kind, self._stream(event.stream), event.text)

    def _stream(self, stream: str) -> str:
        # Without an id of its own a stream is called by its stage: by name there, by id here.
        stage = next(
            (
                s
                for s in self.shape.walk()
                if s.kind == "streaming" and s.step["id"] == stream and not s.step.get("streamId")
            ),
            None,
        )
        if stage is None or stage.name == stream:
            return stream
        self.departs("a-stream-is-called-by-its-stage-id")
        return stage.name

    # -- pauses -----------------------------------------------------------------------------

    def on_checkpoint(self, recorded: Any) -> None:
        """Compare the checkpoint of a paused run."""
        self.told("checkpoint", "none" if recorded is None else "state, place, question, count")
        run = self.run
        checkpoint = None if run is None else run.checkpoint
        if recorded is None or checkpoint is None:
            if recorded is not None or checkpoint is not None:
                self.differ("checkpoint", f"{recorded} is {checkpoint}")
            return
        self._checkpoint("checkpoint", recorded, run)

    def on_phases(self, recorded: Any) -> None:
        """Compare every pause of a run that was resumed."""
        self.told("phases", f"{len(recorded)} pauses")
        for number, phase in enumerate(recorded):
            name = f"phases[{number}]"
            if number >= len(self.replay.runs):
                self.differ(name, "this run never began")
                return
            run = self.replay.runs[number]
            if phase["before"].get("result") == {"paused": True} and run.status != "paused":
                self.differ(name, f"the run did not pause: {run.status}")
                return
            if phase.get("checkpoint") is not None:
                self._checkpoint(name, phase["checkpoint"], run)

    def _checkpoint(self, name: str, recorded: Any, run: Any) -> None:
        self.departs("a-checkpoint-is-ours")
        checkpoint = run.checkpoint
        if recorded.get("json_safe") and json.loads(json.dumps(checkpoint)) != checkpoint:
            self.differ(name, "it does not survive JSON")
        asked = recorded["pausedStageId"]
        interrupted = recorded.get("pausedBy") == "interrupt"
        held = self.expected.value(recorded["sharedState"])
        state = plain_value(run.raw[1])
        if interrupted:
            self.departs("an-interrupted-stage-begins-anew")
            stage = self.shape.at(asked)
            mine = {op.get("key", op.get("to")) for op in (stage.ops if stage else ())}
            held = {k: v for k, v in held.items() if k not in mine}
            state = {k: v for k, v in state.items() if k not in mine}
        if not same(held, state):
            self.differ(name, f"state {held!r} is {state!r}")
        at = (checkpoint["paused_at"]["runtime_stage_id"] or "").rpartition("#")[0]
        if at != asked:
            self.differ(name, f"paused at {asked!r} is {at!r}")
        question = plain(decode(recorded["pauseData"]))
        if question is None:
            self.departs("none-asks-nothing")
            question = NULL_QUESTION
        mine = dict(run.raw_pause or {})
        given = mine.get("data") if mine.get("data") is not None else mine.get("reason")
        if isinstance(question, Mapping) and interrupted:
            given = {key: value for key, value in mine.items() if value is not None}
        if not same(question, plain_value(given)):
            self.differ(name, f"question {question!r} is {mine!r}")
        if not self.shape.parallel and recorded["executionCount"] != run.steps_executed:
            self.differ(name, f"{recorded['executionCount']} steps are {run.steps_executed}")
        for path, inner in recorded.get("subflowStates", {}).items():
            self._inner_state(name, path, inner, run)

    def _inner_state(self, name: str, path: str, recorded: Any, run: Any) -> None:
        seen = Seen(run, self.replay.chart)
        held = seen.levels.get(f"{path}/", seen.views.get(path))
        expected = self.expected.value(recorded)
        if self.shape.fan_outs:
            expected = {k: v for k, v in expected.items() if k not in ("item", "index")}
        if held is None or not same(expected, plain_value(held)):
            self.differ(name, f"state of {path}: {expected!r} is {held!r}")

    # -- what is hidden ---------------------------------------------------------------------

    def on_redacted(self, recorded: Any) -> None:
        """Compare the served state, and that of mounted charts."""
        self.told("redacted", "state and inner states")
        state = self._scrubbed(self.expected.value(recorded["state"]))
        if not same(state, plain_value(self.run.state)):
            self.differ("redacted", f"{state!r} is {plain_value(self.run.state)!r}")
        for path, inner in recorded.get("subflows", {}).items():
            expected = self._scrubbed(self.expected.value(inner))
            held = self.seen.levels.get(f"{path}/", self.seen.views.get(path))
            found = None if held is None else {k: self.seen.served(k, v) for k, v in held.items()}
            if self.shape.fan_outs and isinstance(expected, Mapping):
                expected = {k: v for k, v in expected.items() if k not in ("item", "index")}
            if found is None or not same(expected, plain_value(found)):
                self.differ("redacted", f"{path}: {expected!r} is {found!r}")

    def _scrubbed(self, value: Any) -> Any:
        """Hide a value that is met under a hidden name wherever it stands."""
        probe = self.case.get("leak_probe")
        if not probe or not self.run.redactor.active:
            return value
        if isinstance(value, Mapping):
            return {key: self._scrubbed(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._scrubbed(one) for one in value]
        if isinstance(value, str) and probe in value:
            self.departs("a-secret-is-hidden-wherever-it-stands")
            return value.replace(probe, "[REDACTED]")
        return value

    def on_redaction_report(self, recorded: Any) -> None:
        """Compare what the policy says of itself."""
        self.told("redaction_report", "fields and patterns")
        policy = self.run.policy
        fields = {} if policy is None else {k: list(v) for k, v in (policy.fields or {}).items()}
        patterns = [] if policy is None else [getattr(p, "pattern", p) for p in policy.patterns]
        if fields != recorded["fieldRedactions"] or patterns != recorded["patterns"]:
            self.differ("redaction_report", f"{recorded} is {fields}, {patterns}")

    def on_leaks(self, recorded: Any) -> None:
        """Compare where the probe survives: nowhere that upstream keeps it from."""
        self.told("leaks", "served views")
        probe = self.case["leak_probe"]
        for artefact, views in self._artefacts(probe).items():
            for name, leaks in views.items():
                if leaks and recorded.get(artefact) is False:
                    self.differ("leaks", f"{artefact}: {name} holds the probe")
                if leaks and self.run.redactor.active:
                    self.differ("leaks", f"{name} holds the probe in spite of the policy")
                lost = recorded.get(artefact) is True and not self.run.redactor.active
                if lost and artefact == "narrative":
                    self.departs("steps-name-keys-and-not-values")
                elif not leaks and lost:
                    self.differ("leaks", f"{artefact}: {name} lost the probe with no policy")

    def _artefacts(self, probe: str) -> dict[str, dict[str, bool]]:
        run = self.run
        recording = run.recording().to_dict()

        def holds(value: Any) -> bool:
            return probe in json.dumps(value, default=str, ensure_ascii=False)

        return {
            "redacted_snapshot_state": {"run.state": holds(plain_value(run.state))},
            "commit_log": {"run.commits": holds([one.to_dict() for one in run.commits])},
            "narrative": {"run.walk": holds(run.walk.to_dicts())},
            "subflow_history": {
                "recording.subflowResults": holds(recording["snapshot"].get("subflowResults"))
            },
            "scope_events": {"recording": holds(recording)} if run.redactor.active else {},
        }

    # -- words for others -------------------------------------------------------------------

    def on_description_facts(self, recorded: Any) -> None:
        """Compare which descriptions the tool text holds."""
        self.told("description_facts", "descriptions in the text")
        text = self.replay.chart.describe()
        for name, described in recorded["stageDescriptions"].items():
            stage = next(
                (s for s in self.shape.walk() if name in (s.name, s.step.get("id"))), None
            )
            for word in (name if stage is None else stage.name, described):
                if isinstance(word, str) and word not in text:
                    self.differ("description_facts", f"{word!r} is not in {text!r}")

    def on_mcp(self, recorded: Any) -> None:
        """Compare the chart as a tool."""
        self.told("mcp", "name, schema, mentions")
        from runbook_nb.chart.contract import tool_description

        found = tool_description(self.replay.chart)
        if found["name"] != recorded["name"]:
            self.differ("mcp", f"{recorded['name']!r} is {found['name']!r}")
        schema = found.get("inputSchema", found.get("input_schema"))
        if not same(recorded["inputSchema"], plain_value(schema)):
            self.differ("mcp", f"{recorded['inputSchema']} is {schema}")
        for word, mentioned in recorded["description_mentions"]:
            if mentioned and word not in found["description"]:
                self.differ("mcp", f"{word!r} is not mentioned")

    def on_openapi(self, recorded: Any) -> None:
        """Compare the document of the chart as a web call, but for its texts."""
        self.told("openapi", "document")
        from runbook_nb.chart.openapi import openapi

        found = plain_value(openapi(self.replay.chart))
        missing = _not_in(recorded, found)
        if missing:
            self.differ("openapi", f"{missing} in {found}")
        if not same(_texts_out(found, recorded), recorded):
            self.departs("a-document-says-what-may-fail")

    def on_mermaid(self, recorded: Any) -> None:
        """Compare what the picture shows: a node per stage, its name in it."""
        self.told("mermaid", "every stage is drawn")
        text = self.replay.chart.flowchart().mermaid
        for line in recorded:
            id, mark, label = line.partition('["')
            if not mark or "-->" in id or id == "default":
                continue
            stage = self.shape.at(id)
            if stage is not None and stage.owner is not None and label[:-2] not in text:
                self.departs("branches-are-drawn-by-their-word")
                label = f"{stage.step['id']}--"
            if label[:-2] not in text:
                self.differ("mermaid", f"{label[:-2]!r} is not drawn")


def _ending(row: Row) -> bool:
    left = row.type == "subflow" and row.facts["direction"] == "exit"
    return left or row.type == "error"


def category_of(recorded: Any) -> str | None:
    """Give the category of a recorded error whose wording is upstream's."""
    if isinstance(recorded, Mapping):
        category = recorded.get("category")
        return None if category is None else str(category)
    return None


def _not_in(recorded: Any, found: Any, where: str = "") -> list[str]:
    """Say what of a recorded document is not in ours."""
    if recorded == {"$text": True}:
        return [] if isinstance(found, str) and found else [f"{where} is no text"]
    if isinstance(recorded, Mapping):
        if not isinstance(found, Mapping):
            return [f"{where} is {found!r}"]
        return [
            one
            for key, value in recorded.items()
            for one in (
                _not_in(value, found[key], f"{where}/{key}")
                if key in found
                else [f"{where}/{key} is missing"]
            )
        ]
    return [] if same(recorded, found) else [f"{where} is {found!r}"]


def _texts_out(found: Any, recorded: Any) -> Any:
    if recorded == {"$text": True}:
        return {"$text": True} if isinstance(found, str) and found else found
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        return {key: _texts_out(one, recorded.get(key)) for key, one in found.items()}
    return found


__all__ = ["MISSING", "Comparison", "compare"]
