"""What a paused run asks and what a policy hides, compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from replay_base import Comparing
from replay_ops import NULL_QUESTION
from replay_seen import Seen, plain_value
from replay_values import decode, plain, same


class Asked(Comparing):
    """Compares checkpoints and served views."""

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
        visits = Counter(one.rpartition("#")[0] for one in Seen(run, self.replay.chart).executed)
        for place, times in recorded.get("visitCounts", {}).items():
            generated = "~" in place.rpartition("/")[2]  # entering a branch is no stage
            if not generated and visits[place] != times:
                self.differ(name, f"{place} ran {times} times, not {visits[place]}")
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
        if not self.run.policy:  # upstream has nothing to serve without one
            marked = {k: v for k, v in plain_value(self.run.state).items() if v == "[REDACTED]"}
            if marked:
                self.departs("a-secret-needs-no-policy")
            state = {**state, **marked}
        state = {k: "[REDACTED]" if self.expected.stays_secret(k) else v for k, v in state.items()}
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

    def on_redaction_report(self, recorded: Any) -> None:
        """Compare what the policy says it hid: names, and nothing that stood under them."""
        self.told("redaction_report", "keys, fields, patterns")
        found = self.run.redaction.to_dict()
        missing = [one for one in recorded["redactedKeys"] if one not in found["redactedKeys"]]
        if set(found["redactedKeys"]) - set(recorded["redactedKeys"]):
            self.departs("a-report-names-all-that-was-hidden")
        if missing:
            self.differ("redaction_report", f"{missing} is not in {found['redactedKeys']}")
        for name in ("fieldRedactions", "patterns"):
            if not same(recorded[name], plain_value(found[name])):
                self.differ("redaction_report", f"{name} {recorded[name]} is {found[name]}")
        probe = self.case.get("leak_probe")
        if probe and probe in json.dumps(found):
            self.differ("redaction_report", "it holds the probe")

    def on_leaks(self, recorded: Any) -> None:
        """Compare where the probe survives: nowhere that upstream keeps it from."""
        self.told("leaks", "served views")
        probe = self.case["leak_probe"]
        self._real_checkpoint(recorded, probe)
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

    def _real_checkpoint(self, recorded: Any, probe: str) -> None:
        """A checkpoint holds real values where upstream's does."""
        if recorded.get("checkpoint") and probe not in json.dumps(self.run.checkpoint):
            self.differ("leaks", "the checkpoint lost the probe")

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
            "redacted_subflows": {
                "recording.subflowResults": holds(recording["snapshot"].get("subflowResults"))
            },
            "execution_tree": {"recording": holds(recording)} if run.redactor.active else {},
            "initial_state_redacted": {"run.initial": holds(plain_value(run.initial))},
        }
