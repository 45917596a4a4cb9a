"""The published rules of playbooks, written out once more, as plainly as they are stated.

No part of the package is used: what is judged, filed, closed and counted here follows from the
numbered rules alone, so that the engine under ``compat`` can be held against it.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

FIELDS = {
    "expected_tools": [],
    "hints": [],
    "required": True,
    "uses": [],
    "required_probes": [],
    "min_tool_calls": None,
    "max_tool_calls": None,
}


def text_of_call(tool: str, arguments: Any) -> str:
    """Give what probes are searched in."""
    if arguments is None:
        return tool.lower()
    if isinstance(arguments, str):
        return f"{tool} {arguments}".lower()
    try:
        return f"{tool} {json.dumps(arguments, default=str)}".lower()
    except (TypeError, ValueError):
        return f"{tool} {arguments}".lower()


def at_least(count: int, bound: int | None) -> bool:
    """Say whether there is a bound, and it is reached."""
    return bound is not None and count >= bound


class Published:
    """One plan, held to by the published rules."""

    def __init__(self, book, skills=None, block=True, record=True, driver="hook"):
        self.steps = [SimpleNamespace(**{**FIELDS, **step}) for step in book.get("steps", [])]
        self.lenient = book.get("allow_extra_tools", False)
        self.skills, self.block, self.record, self.driver = skills or {}, block, record, driver
        self.reset()

    def reset(self):
        self.pointer, self.completed, self.total = 0, False, 0
        self.records, self.violations, self.errors = {}, [], 0

    # -- looking ----------------------------------------------------------------------------

    @property
    def current(self):
        return self.steps[self.pointer] if 0 <= self.pointer < len(self.steps) else None

    def resolved(self, step):
        found = [self.skills.get(name) for name in step.uses]
        return [skill for skill in found if skill is not None]

    def allowed(self, step):
        """S2, S4."""
        lists = [set(skill.get("allowed_tools") or ()) for skill in self.resolved(step)]
        return set().union(*lists)

    def probes(self, step):
        """S7, S8."""
        found = {}
        own = [
            step.required_probes,
            *((s.get("required_probes") or []) for s in self.resolved(step)),
        ]
        for probe in (one for group in own for one in group):
            found.setdefault(probe["name"], probe["match"])
        return found

    def adherence(self):
        """D1, P13: of two steps of one id the last says what is required."""
        by_id = {step.id: step for step in self.steps}
        shares = []
        for key, record in self.records.items():
            names = set(self.probes(by_id[key]))
            shares.append(len(names & set(record["matched"])) / len(names) if names else 1.0)
        return round(sum(shares) / len(shares), 6) if shares else 1.0

    def done(self, id):
        return id in self.records and self.records[id]["status"] == "completed"

    def unresolved(self):
        return [s.id for s in self.steps if s.required and not self.done(s.id)]

    # -- judging ----------------------------------------------------------------------------

    def note(self, kind, step, tool=None, blocked=False):
        if self.record:
            self.violations.append({"type": kind, "step": step, "tool": tool, "blocked": blocked})
        return kind if self.record else None

    def validate(self, tool):
        """V1-V9: the first that applies decides."""
        step = self.current
        told = {"step_before": step.id if step else None, "category": None, "generated_hints": 0}
        if step is None:
            told |= {"allowed": True, "author_hints_shown": []}
            if self.completed:
                told |= {"allowed": self.lenient, "generated_hints": 1}
                if not self.lenient:
                    told["category"] = self.note("playbook_complete", None, tool, self.block)
            return told
        kind, author, made = None, list(step.hints), 0
        allowed, record = self.allowed(step), self.records.get(step.id)
        if allowed and tool not in allowed:
            if self.lenient:
                author = []
            else:
                kind = "tool_outside_skill"
        elif step.expected_tools and tool not in step.expected_tools:
            if not self.lenient:
                kind, made = "unexpected_tool", 1
        elif record is not None and at_least(record["count"], step.max_tool_calls):
            kind, made, author = "max_tool_calls", 1, []
        told |= {
            "allowed": kind is None or not self.block,
            "author_hints_shown": author,
            "generated_hints": made,
        }
        if kind is not None:
            told["category"] = self.note(kind, step.id, tool, self.block)
        if told["category"]:
            told["message_mentions"] = {
                "unexpected_tool": [tool, step.id, *step.expected_tools],
                "tool_outside_skill": [tool, step.id, *step.uses, *sorted(allowed)],
                "max_tool_calls": [step.id, str(step.max_tool_calls)],
            }[kind]
        return told

    # -- recording --------------------------------------------------------------------------

    def touch(self, step, status, started=True):
        return self.records.setdefault(
            step.id,
            {
                "status": status,
                "calls": [],
                "count": 0,
                "matched": [],
                "result": None,
                "error": None,
                "started": started,
                "ended": False,
            },
        )

    def file(self, tool, arguments=None):
        """R1-R5, E1, E4."""
        self.total += 1
        step = self.current
        if step is None:
            return
        record = self.touch(step, "in_progress")
        record["calls"].append(tool)
        record["count"] += 1
        text = text_of_call(tool, arguments)
        for name, match in self.probes(step).items():
            if match.lower() in text and name not in record["matched"]:
                record["matched"].append(name)

    def after(self, tool, arguments, outcome):
        """A1-A3; what a step without tools and cap never does is close."""
        before = len(self.violations)
        self.file(tool, arguments)
        step = self.current
        if outcome != "error" and step is not None:
            record, cap = self.records[step.id], step.max_tool_calls
            whole = step.expected_tools and set(step.expected_tools) <= set(record["calls"])
            if whole or at_least(record["count"], cap):
                self.complete(None)
        return [one["type"] for one in self.violations[before:]]

    # -- moves of the host ------------------------------------------------------------------

    def advance(self):
        self.pointer += 1
        self.completed = self.completed or self.pointer >= len(self.steps)

    def complete(self, result):
        """P5, P6, C1-C3."""
        step, before = self.current, len(self.violations)
        if step is None:
            return False, []
        record = self.touch(step, "completed")
        if set(self.probes(step)) - set(record["matched"]):
            self.note("evidence_incomplete", step.id)
        if step.min_tool_calls is not None and record["count"] < step.min_tool_calls:
            self.note("insufficient_effort", step.id)
        record.update(status="completed", ended=True, result=result)
        self.advance()
        return self.current is not None, [one["type"] for one in self.violations[before:]]

    def skip(self, reason):
        """P7."""
        step = self.current
        if step is None or step.required:
            return False
        record = self.touch(step, "skipped", started=False)
        record["status"] = "skipped"
        if reason:
            record["result"] = reason
        self.advance()
        return True

    def fail(self, error):
        """P8; a record it makes has begun too."""
        step = self.current
        if step is not None:
            record = self.touch(step, "failed")
            record.update(status="failed", error=error, ended=True)
            self.errors += 1

    # -- events -----------------------------------------------------------------------------

    def event(self, event):
        told = {"op": event["op"], **getattr(self, f"on_{event['op']}")(event)}
        told["after"] = {
            "pointer": self.pointer,
            "current_step": self.current.id if self.current else None,
            "plan_completed": self.completed,
            "adherence": self.adherence(),
            "unresolved": self.unresolved(),
        }
        return told

    def on_validate(self, event):
        return {"tool": event["tool"], **self.validate(event["tool"])}

    def on_call(self, event):
        told = self.on_validate(event)
        if self.driver == "hook":
            return self.ended(told, event)
        if told["allowed"]:
            self.file(event["tool"], event.get("args"))
        return told

    def on_batch(self, event):
        """B1: all are judged first, then all that were let through are filed."""
        judged = [self.on_validate(call) for call in event["calls"]]
        pairs = zip(judged, event["calls"], strict=True)
        return {"calls": [self.ended(told, call) for told, call in pairs]}

    def ended(self, told, call):
        given = (call["tool"], call.get("args"), call.get("outcome"))
        return {**told, "closing_violations": self.after(*given) if told["allowed"] else []}

    def on_record(self, event):
        self.file(event["tool"], event.get("args"))
        return {}

    def on_complete(self, event):
        returned, closing = self.complete(event.get("result"))
        return {"returned": returned, "closing_violations": closing}

    def on_skip(self, event):
        return {"returned": self.skip(event.get("reason"))}

    def on_fail(self, event):
        self.fail(event["error"])
        return {}

    def on_reset(self, event):
        self.reset()
        return {}

    def on_hints(self, event):
        """P14."""
        places = (self.pointer, self.pointer + 1)
        current, following = (
            list(self.steps[n].hints) if n < len(self.steps) else [] for n in places
        )
        return {"current": current, "next": following}

    def left(self):
        """Give the state at the end, in the words of the recordings."""
        count, records = len(self.steps), self.records
        of = {
            word: [k for k, r in records.items() if r["status"] == word]
            for word in ("completed", "skipped", "failed")
        }
        progress = round(len(of["completed"]) / count, 6) if count else 1.0
        ids = [step.id for step in self.steps]
        return {
            "violations": self.violations,
            "statuses": {i: records[i]["status"] if i in records else "pending" for i in ids},
            "records": {
                key: {
                    "tool_calls": one["calls"],
                    "count": one["count"],
                    "matched_probes": one["matched"],
                    "result": one["result"],
                    "error": one["error"],
                    "has_started_at": one["started"],
                    "has_completed_at": one["ended"],
                }
                for key, one in records.items()
            },
            "adherence": self.adherence(),
            "unresolved": self.unresolved(),
            "pointer": self.pointer,
            "current_step": self.current.id if self.current else None,
            "plan_completed": self.completed,
            "progress": progress,
            "completed_steps": of["completed"],
            "not_completed_steps": [i for i in ids if not self.done(i)],
            "total_tool_calls": self.total,
            "error_count": self.errors,
            "summary": {
                "total_steps": count,
                "current_step_index": self.pointer,
                **{word: len(of[word]) for word in ("completed", "skipped", "failed")},
                "pending": count - len(records),
                "progress": progress,
                "is_complete": self.completed,
            },
        }


def recorded_by_rule(given: dict[str, Any]) -> dict[str, Any]:
    """Give what is expected of a sequence, by the published rules."""
    plan = Published(
        given["playbook"],
        given.get("skills"),
        given.get("block_violations", True),
        given.get("record_violations", True),
        given.get("driver", "hook"),
    )
    return {"events": [plan.event(event) for event in given["events"]], **plan.left()}
