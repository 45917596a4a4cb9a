"""How a run ended, compared: errors, results, final state, or why nothing was built."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import replay_run
from replay_base import Comparing, category_of
from replay_expected import ABORTED
from replay_program import FORKS, MODIFIERS, NoWord
from replay_run import Replay
from replay_seen import plain_value
from replay_shape import key_of
from replay_values import ANYTHING, HarnessFailure, decode, plain, same

from runbook_nb._text import MISSING
from runbook_nb.errors import ChartError, RunbookError

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


class Ended(Comparing):
    """Compares how a case ended."""

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
            elif category.startswith("build.tag") and self._tags_a_fork():
                self.departs("a-fork-is-a-stage")
            else:
                self.differ("build_error", f"{category} was built")
        elif not self._names_a_place(refused):
            self.differ("build_error", f"refused without a place: {refused}")

    def _names_a_place(self, refused: Any) -> bool:
        """Say whether a refusal names something of the step that is wrong: the last of them."""
        places = [refused.where, *(problem.where for problem in refused.problems)]
        steps = [s for s in self.case["program"]["steps"] if s["add"] not in MODIFIERS]
        words = set(_names_in(steps[-1] if steps else self.case["program"]["start"]))
        words.add("retry.attempts")
        if steps and steps[-1]["add"] == "loop_to" and len(steps) > 1:
            words.update(_names_in(steps[-2]))
        return any(word in str(place) for place in places if place for word in words)

    def _tags_a_fork(self) -> bool:
        """Say whether tags are given right after children, and are the fork's own here."""
        steps = self.case["program"]["steps"]
        pairs = pairwise(steps)
        return any(
            after["add"] == "tag" and (before["add"] == "fork" or before.get("mode") in FORKS)
            for before, after in pairs
        )

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
        error, category = self.replay.error, category_of(recorded)
        self.told("error", category or "message")
        if error is None:
            if not self._ends_otherwise(category):
                self.differ("error", f"{recorded} did not happen")
        elif category is not None:
            self._of_category(category, error)
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

    def _ends_otherwise(self, category: str | None) -> bool:
        if category == "run.reserved_scope_name" and self._wrote_reserved():
            return self.departs("no-name-is-reserved")
        return self._went_elsewhere()

    def _of_category(self, category: str, error: Any) -> None:
        kind = category.partition(".")[0]
        if category not in CATEGORIES and kind not in KINDS:
            raise HarnessFailure(f"no category {category!r} in the harness")
        codes = CATEGORIES.get(category, KINDS.get(kind))
        code = getattr(error, "code", None)
        if code not in codes if codes is not None else not isinstance(error, RunbookError):
            self.differ("error", f"{category} is {type(error).__name__} {error}")

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
        if (
            isinstance(expected, Mapping)
            and all(isinstance(one, tuple) for one in expected.values())
            and expected
        ):
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
        self._items(recorded)
        if not same(state, found):
            self.differ("state", f"{state!r} is {found!r}")
        for child, view in views.items():
            places = [one for one in self.seen.written if key_of(one).rpartition("/")[2] == child]
            if not places and self.shape.fails_fast and self.replay.error is not None:
                self.departs("failing-fast-ends-siblings")
                continue
            held = self.seen.written.get(places[-1], {}) if places else None
            wanted = self._merged_views(child, view)
            if held is None or not same(wanted, plain_value(held)):
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

    def _items(self, recorded: Any) -> None:
        """Compare the items that slots are of with those that upstream keeps in branch states."""
        for stage in self.shape.walk():
            slots = recorded.get(stage.step.get("into")) if stage.kind == "for_each" else None
            if not isinstance(slots, list) or stage.chart:
                continue
            ours = list(self.run.unredacted().slots(stage.step["id"]))
            for place, slot in enumerate(slots):
                if isinstance(slot, Mapping) and "item" in slot and slot.get("index") == place:
                    item = plain(decode(slot["item"]))
                    if not same(item, plain_value(ours[place].item)):
                        self.differ("state", f"item {item!r} is {ours[place].item!r}")

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
        mine = {
            op.get("key", op.get("to"))
            for stage in self.shape.walk()
            if self.expected.interrupts(stage.key)
            for op in stage.ops
        }
        return {key: answered.get(key) if key in mine else one for key, one in state.items()}

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
        found = plain_value(dict(self.run.raw_initial))
        if self._fresh():  # upstream begins anew with what the pause left
            self.departs("a-resumed-record-is-whole")
            found = plain_value(self.replay.runs[-2].raw[1])
        expected = self.expected.value(recorded)
        if not same(expected, found):
            self.differ("initial_state", f"{expected!r} is {found!r}")


def _names_in(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids a step declares and the ones it leads to."""
    for name in ("id", "target", "loopTo"):
        if step.get(name) is not None:
            yield str(step[name])
    yield from map(str, step.get("ids") or ())
    if step.get("add") == "fork":  # a stage of its own here, and called by that
        yield "fork"
    for inner in (*(step.get("branches") or ()), *(step.get("children") or ())):
        yield from _names_in(inner)
