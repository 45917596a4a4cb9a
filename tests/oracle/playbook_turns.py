"""A turn loop of our own, as far as recorded agent cases exercise one.

A reply holds some calls. Each is told to the hooks before it is made and after it was; what is
refused is not made. Under ``together`` all calls of a reply are judged before any runs, as upstream
does; otherwise each is judged just before it runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from playbook_values import decode

from runbook_nb.playbooks import PlaybookEnforcerHook, ToolEvent

#: What the loop acts on of a case, its agent and its tools; a case that says more is not judged.
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
    calls: list[Made] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    stop_reason: str = "complete"


def passed_over(case: dict[str, Any]) -> list[str]:
    """Name what a case says that the loop would not act on."""
    given = case["input"]
    more = given.keys() - CASE | (given.get("agent") or {}).keys() - AGENT
    return sorted(more.union(*(set(spec) - TOOL for spec in given["tools"].values())))


def run_agent(case: dict[str, Any], *, together: bool, **policy: Any) -> Loop:
    """Play the turns of a case through a hook."""
    given = case["input"]
    agent = given.get("agent") or {}
    flags = {key: given[key] for key in ("block_violations", "record_violations") if key in given}
    hook = PlaybookEnforcerHook(given["playbook"], **flags, **policy, lint="off")
    loop, cache = Loop(hook), {}
    tools = dict(given["tools"])
    if agent.get("completion_mode") == "explicit":
        tools[FINISHING] = {}
    for number, turn in enumerate(given["turns"]):
        if number >= agent.get("max_iterations", len(given["turns"])):
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
