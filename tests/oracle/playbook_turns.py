"""A turn loop of our own, as far as recorded agent cases exercise one.

A reply holds some calls. Each is told to the hooks before it is made and after it was; what is
refused is not made. Under ``together`` all calls of a reply are judged before any runs, as upstream
does; otherwise each is judged just before it runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from playbook_sequence import skills_of
from playbook_values import decode

from runbook_nb.playbooks import Playbook, PlaybookEnforcerHook, ToolEvent

#: What the loop acts on of a case, its agent and its tools. How the calls of a case that says more
#: came out is taken from its recording; what a playbook makes of them is judged all the same.
AGENT = {"completion_mode", "max_iterations", "tool_execution"}
TOOL = {"idempotent"}
CASE = {"playbook", "tools", "turns", "agent", "skills", "block_violations", "record_violations"}

#: The tool by which an agent says that it is done, registered under ``completion_mode``.
FINISHING = "task_complete"


@dataclass
class Made:
    """One call, as the loop saw it."""

    tool: str
    blocked: bool = False
    errored: bool = False
    from_cache: bool = False
    event: Any = None

    def told(self) -> dict[str, Any]:
        return {
            "tool": self.tool,
            "blocked": self.blocked,
            "errored": self.errored,
            "from_cache": self.from_cache,
        }


@dataclass
class Loop:
    """What came of a scripted agent."""

    hook: PlaybookEnforcerHook
    fates: list[str] = field(default_factory=list)
    calls: list[Made] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    stop_reason: str = "complete"


def passed_over(case: dict[str, Any]) -> list[str]:
    """Name what a case says that the loop does not act on by itself."""
    given = case["input"]
    more = given.keys() - CASE | (given.get("agent") or {}).keys() - AGENT
    return sorted(more.union(*(set(spec) - TOOL for spec in _tools(given).values())))


def _tools(given: dict[str, Any]) -> dict[str, Any]:
    """Give the registered tools; they may be told by their names alone."""
    tools = given.get("tools") or {}
    named = tools if isinstance(tools, dict) else dict.fromkeys(tools)
    return {name: spec or {} for name, spec in named.items()}


def turns_of(given: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Give the calls of each reply; one may be a text, or have its calls beside a text."""
    held = [turn.get("calls") if isinstance(turn, dict) else turn for turn in given["turns"]]
    return [turn if isinstance(turn, list) else [] for turn in held]


def _skills(given: dict[str, Any]) -> dict[str, Any] | None:
    """Give the skills of an agent by the names they have."""
    told = given.get("skills")
    if isinstance(told, list):
        told = {one["name"]: one for one in told if isinstance(one, dict)}
    return skills_of(told)


def fates_of(case: dict[str, Any]) -> list[str] | None:
    """Say how each call that was let through came out, by the recording; None if that is unclear.

    A call whose tool never ran was cancelled, or nobody knew the tool; a tool that ran more often
    than it was called was tried again, or called by another.
    """
    given, calls = case["input"], case["expect"]["calls"]
    asked = [call["tool"] for turn in turns_of(given) for call in turn]
    if [call["tool"] for call in calls] != asked[: len(calls)]:
        return None
    bodies = Counter(case["expect"]["bodies_run"])
    ran = [one for one in calls if not (one["blocked"] or one.get("from_cache"))]
    again = {tool for tool, n in bodies.items() if n > sum(one["tool"] == tool for one in ran)}
    fates = []
    for one in calls:
        if one.get("from_cache"):
            fates.append("cached")
        elif one["blocked"]:
            fates.append("blocked")
        elif one["tool"] in again:
            again.discard(one["tool"])
            fates.append("error" if one["errored"] else "retried")
        elif not bodies[one["tool"]]:
            fates.append("error" if one["errored"] else "cancelled")
        else:
            bodies[one["tool"]] -= 1
            fates.append("error" if one["errored"] else "ok")
    return fates


def run_agent(case: dict[str, Any], *, fates: Sequence[str] = (), **policy: Any) -> Loop:
    """Play the turns of a case through a hook; calls come out by ``fates``, where there are any."""
    together = policy.get("policy") == "compat"
    given = case["input"]
    agent = given.get("agent") or {}
    flags = {key: given[key] for key in ("block_violations", "record_violations") if key in given}
    if given.get("skills") is not None:
        flags["skills"] = _skills(given)
    hook = PlaybookEnforcerHook(Playbook(**given["playbook"]), **flags, **policy, lint="off")
    loop, cache = Loop(hook, list(fates)), {}
    tools = _tools(given)
    if agent.get("completion_mode") == "explicit":
        tools[FINISHING] = {}
    turns = turns_of(given)
    for number, turn in enumerate(turns):
        if number >= agent.get("max_iterations", len(turns)):
            loop.stop_reason = "max_iterations"
            break
        groups = [turn] if together else [[call] for call in turn]
        for group in groups:
            made = [_asked(loop, call, number) for call in group]
            for one in made:
                if not one.blocked:
                    _body(loop, tools, cache, one)
            for one in made:
                if not one.blocked:
                    hook.after(one.event)
        if any(call["tool"] == FINISHING for call in turn):
            loop.stop_reason = "terminal_tool"
            break
    return loop


def _asked(loop: Loop, call: dict[str, Any], turn: int) -> Made:
    event = ToolEvent(
        tool_name=call["tool"],
        arguments=decode(call.get("args")),
        call_id=f"call-{len(loop.calls)}",
        run_id="r1",
        batch=f"turn-{turn}",
    )
    made = Made(call["tool"], event=event)
    loop.calls.append(made)
    loop.hook.before(event)
    made.blocked = event.cancel is not None
    return made


def _body(loop: Loop, tools: dict[str, Any], cache: dict[str, Any], made: Made) -> None:
    event, spec = made.event, tools.get(made.tool)
    place = loop.calls.index(made)
    if place < len(loop.fates):
        _as_recorded(loop, made, loop.fates[place])
        return
    if spec is None:
        made.errored, event.error = True, "no such tool"
        return
    name = json.dumps([made.tool, event.arguments], sort_keys=True, default=str)
    if spec.get("idempotent") and name in cache:
        made.from_cache, event.outcome, event.result = True, "cached", cache[name]
        return
    loop.bodies.append(made.tool)
    if isinstance(event.arguments, dict) and event.arguments.get("fail"):
        made.errored, event.error = True, "it failed"
        return
    event.result = cache[name] = f"result of {made.tool}"


def _as_recorded(loop: Loop, made: Made, fate: str) -> None:
    """Let a call come out as it did; the playbook hears of it what a runtime tells."""
    event = made.event
    made.from_cache, made.errored = fate == "cached", fate == "error"
    if fate not in ("cached", "blocked", "cancelled"):
        loop.bodies += [made.tool] * (2 if fate == "retried" else 1)
    if fate == "error" or (fate == "retried" and loop.hook.enforcer.policy.profile == "compat"):
        event.error = "it failed"  # of a call that is tried again, published hooks hear this alone
    elif fate == "blocked":  # somebody else refused it, after this playbook had let it through
        made.blocked, event.outcome = True, "cancelled"
        loop.hook.after(event)
    elif fate != "ok":
        event.outcome = fate


def readings_of(case: dict[str, Any]) -> list[list[str]]:
    """Give the ways in which the calls of a case that says more may have come out.

    That a tool ran more often than it was called may be a failure that was tried again, or the
    work of another tool. None at all: the loop acts on all the case says, or it cannot be told.
    """
    fates = fates_of(case) if passed_over(case) else None
    if fates is None:
        return []
    alone = ["ok" if fate == "retried" else fate for fate in fates]
    return [fates] if alone == fates else [fates, alone]


def under_safe(loop: Loop) -> list[str]:
    """Give how calls come out that the published rules refused themselves: well."""
    return [
        "ok" if made.event.refusal is not None else fate
        for made, fate in zip(loop.calls, loop.fates, strict=False)
    ]
