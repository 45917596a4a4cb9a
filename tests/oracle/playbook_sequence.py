"""Replays of recorded sequences: calls, batches and moves of the host, and what they leave."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from playbook_values import decode
from replay_values import HarnessFailure

from runbook_nb.playbooks import Playbook, PlaybookEnforcer, RequiredProbe

#: What a skill of a case may declare.
SKILL = ("allowed_tools", "required_probes", "min_tool_calls", "max_tool_calls")


def skills_of(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Make the skills of a case, by the keys steps name them by."""
    if given is None:
        return None
    made = {}
    for key, told in given.items():
        if told is None:
            made[key] = None
            continue
        skill = SimpleNamespace(**{**dict.fromkeys(SKILL), **told})
        skill.required_probes = [RequiredProbe(**one) for one in told.get("required_probes") or ()]
        made[key] = skill
    return made


class Replay:
    """One sequence, replayed under one policy."""

    def __init__(self, case: dict[str, Any], policy: Any) -> None:
        given = case["input"]
        self.case = case
        self.driver = given.get("driver", "hook")
        self.enforcer = PlaybookEnforcer.from_playbook(
            Playbook(**given["playbook"]),
            given.get("block_violations", True),
            given.get("record_violations", True),
            skills_of(given.get("skills")),
            policy=policy,
        )
        self.told = [self._event(event) for event in given["events"]]

    # -- events ----------------------------------------------------------------------------

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        how = getattr(self, f"_op_{event['op']}", None)
        if how is None:
            raise HarnessFailure(f"no replay of the op {event['op']!r}")
        told = how(event)
        same = {key: event[key] for key in ("op", "tool") if key in event}
        return {**same, **told, "after": self._after()}

    def _after(self) -> dict[str, Any]:
        plan = self.enforcer.plan
        return {
            "pointer": plan.current_step_index,
            "current_step": plan.current_step.id if plan.current_step else None,
            "plan_completed": plan.completed,
            "adherence": round(self.enforcer.adherence_score(), 6),
            "unresolved": plan.unresolved_required_steps(),
        }

    def _noted(self, since: int) -> list[str]:
        return [one.violation_type for one in self.enforcer.violations[since:]]

    def _op_call(self, event: dict[str, Any]) -> dict[str, Any]:
        if self.driver == "enforcer":
            told = self._op_validate(event)
            if told["allowed"]:
                self._op_record(event)
            return told
        admission = self.enforcer.admit(event["tool"], decode(event.get("args")))
        return {**self._judged(admission), **self._end(admission, event)}

    def _op_batch(self, event: dict[str, Any]) -> dict[str, Any]:
        calls = [(one["tool"], decode(one.get("args"))) for one in event["calls"]]
        admissions = self.enforcer.admit_batch(calls)
        told = [self._judged(one) for one in admissions]
        for place, (admission, call) in enumerate(zip(admissions, event["calls"], strict=True)):
            confirmed = self.enforcer.confirm(admission)
            if confirmed is not admission:
                told[place] = self._judged(confirmed)
            told[place].update(tool=call["tool"], **self._end(confirmed, call))
        return {"calls": told}

    def _end(self, admission: Any, call: dict[str, Any]) -> dict[str, Any]:
        before = len(self.enforcer.violations)
        if admission.allowed:
            outcome = call.get("outcome", "ok")
            error = "it failed" if outcome == "error" else None
            self.enforcer.settle(admission, outcome, call.get("result"), error)
        return {"closing_violations": self._noted(before)}

    def _judged(self, admission: Any) -> dict[str, Any]:
        result = admission.result
        return {
            "step_before": admission.step_id,
            "allowed": admission.allowed,
            "category": result.violation.violation_type if result.violation else None,
            "hints": list(result.hints),
            "refusal": admission.refusal,
            "message": result.violation.message if result.violation else None,
        }

    def _op_validate(self, event: dict[str, Any]) -> dict[str, Any]:
        result = self.enforcer.validate_tool_call(event["tool"])
        violation = result.violation
        return {
            "step_before": result.current_step.id if result.current_step else None,
            "allowed": result.allowed,
            "category": violation.violation_type if violation else None,
            "hints": list(result.hints),
            "message": violation.message if violation else None,
        }

    def _op_record(self, event: dict[str, Any]) -> dict[str, Any]:
        self.enforcer.record_tool_call(
            event["tool"], arguments=decode(event.get("args")), result=event.get("result")
        )
        return {}

    def _op_complete(self, event: dict[str, Any]) -> dict[str, Any]:
        before = len(self.enforcer.violations)
        returned = self.enforcer.complete_current_step(event.get("result"))
        return {"returned": returned, "closing_violations": self._noted(before)}

    def _op_skip(self, event: dict[str, Any]) -> dict[str, Any]:
        return {"returned": self.enforcer.skip_current_step(event.get("reason"))}

    def _op_fail(self, event: dict[str, Any]) -> dict[str, Any]:
        self.enforcer.fail_current_step(event.get("error", ""))
        return {}

    def _op_reset(self, event: dict[str, Any]) -> dict[str, Any]:
        self.enforcer.reset()
        return {}

    def _op_pointer(self, event: dict[str, Any]) -> dict[str, Any]:
        self.enforcer.plan.current_step_index = event["pointer"]
        return {}

    def _op_hints(self, event: dict[str, Any]) -> dict[str, Any]:
        current, following = self.enforcer.current_step_hints, self.enforcer.get_next_step_hints()
        return {"current": current, "next": following}

    def left(self) -> dict[str, Any]:
        """Give the state at the end, in the words of the recording."""
        return left_of(self.enforcer)


def left_of(enforcer: PlaybookEnforcer) -> dict[str, Any]:
    """Give where a plan stands, in the words of the recordings."""
    plan = enforcer.plan
    ids = dict.fromkeys(step.id for step in plan.playbook.steps)
    records = plan.step_executions
    return {
        "violations": [
            {
                "type": one.violation_type,
                "step": one.step_id,
                "tool": one.tool_name,
                "blocked": one.blocked,
            }
            for one in enforcer.violations
        ],
        "statuses": {
            one: records[one].status.value if one in records else "pending" for one in ids
        },
        "records": {
            key: {
                "tool_calls": one.tool_calls,
                "count": one.tool_call_count,
                "matched_probes": one.matched_probes,
                "result": one.result,
                "error": one.error,
                "has_started_at": one.started_at is not None,
                "has_completed_at": one.completed_at is not None,
            }
            for key, one in records.items()
        },
        "adherence": round(enforcer.adherence_score(), 6),
        "unresolved": plan.unresolved_required_steps(),
        "pointer": plan.current_step_index,
        "current_step": plan.current_step.id if plan.current_step else None,
        "plan_completed": plan.completed,
        "progress": round(plan.progress, 6),
        "completed_steps": plan.completed_steps,
        "not_completed_steps": plan.pending_steps,
        "total_tool_calls": plan.total_tool_calls,
        "error_count": len(plan.errors),
        "summary": {
            key: round(value, 6) if isinstance(value, float) else value
            for key, value in enforcer.get_step_summary().items()
        },
    }


#: Keys of a recorded event that are lower bounds, and how each is looked for.
LOOSE = ("author_hints_shown", "message_mentions", "generated_hints")


def differences(expected: dict[str, Any], told: dict[str, Any], where: str) -> list[str]:
    """Say where a replayed event is not as recorded."""
    found = []
    if "calls" in expected:
        for place, (one, other) in enumerate(zip(expected["calls"], told["calls"], strict=True)):
            found += differences(one, other, f"{where}.calls[{place}]")
    for key, value in expected.items():
        if key in LOOSE or key == "calls":
            continue
        if key not in told:
            raise HarnessFailure(f"{where}: nothing is told of {key!r}")
        if told[key] != value:
            found.append(f"{where}.{key}: {told[key]!r}, recorded {value!r}")
    shown = told.get("hints", [])
    text = " ".join([told.get("refusal") or "", told.get("message") or "", *shown])
    missing = [hint for hint in expected.get("author_hints_shown", ()) if hint not in shown]
    missing += [one for one in expected.get("message_mentions", ()) if one not in text]
    if missing:
        found.append(f"{where}: nothing says {missing}; told was {text!r}")
    if "generated_hints" in expected:
        made = len(shown) - len(expected["author_hints_shown"])
        if made != expected["generated_hints"]:
            found.append(f"{where}: {made} generated hints, recorded {expected['generated_hints']}")
    return found


def all_differences(case: dict[str, Any], replay: Replay) -> list[str]:
    """Say where a whole replay is not as recorded."""
    expected = case["expect"]
    found = []
    for place, (one, other) in enumerate(zip(expected["events"], replay.told, strict=True)):
        found += differences(one, other, f"events[{place}]")
    left = replay.left()
    for key, value in expected.items():
        if key == "events":
            continue
        if key not in left:
            raise HarnessFailure(f"nothing is told of {key!r}")
        if left[key] != value:
            found.append(f"{key}: {left[key]!r}, recorded {value!r}")
    return found
