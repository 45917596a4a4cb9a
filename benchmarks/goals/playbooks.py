"""Calls held to a playbook: goal 33."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goal import Figure, Plan, goal
from measure import each, interleaved

STEPS = 5


def book() -> Any:
    """Give a playbook of five steps, each closed by the last of its calls."""
    from runbook_nb.playbooks import Playbook, PlaybookStep

    steps = [
        PlaybookStep(
            id=f"step-{n}",
            description="One of five.",
            expected_tools=[f"tool-{n}", f"last-{n}"],
            required_probes=[{"name": "host", "match": "web-01"}],
            hints=["Look before you act"],
        )
        for n in range(STEPS)
    ]
    return Playbook(id="bench", name="Bench", steps=steps)


def called(calls: int) -> list[tuple[str, dict[str, Any]]]:
    """Give the calls of one run that follows it: many of a tool, then the one that closes."""
    each_step = calls // STEPS
    return [
        (f"last-{n}" if k == each_step - 1 else f"tool-{n}", {"host": "web-01", "page": k})
        for n in range(STEPS)
        for k in range(each_step)
    ]


@goal(33, "a call held to a playbook of five steps: judged, then settled")
def admission(plan: Plan) -> Iterator[Figure]:
    from runbook_nb.playbooks import PlaybookEnforcer, PlaybookEnforcerHook

    n = plan.size(2_000) // STEPS * STEPS
    playbook, calls = book(), called(n)
    bodies = [f"call-{k}" for k in range(n)]

    def fresh() -> Any:
        return PlaybookEnforcer.from_playbook(playbook)

    def admitted() -> Any:
        enforcer = fresh()
        for call_id, (_, arguments) in zip(bodies, calls, strict=True):
            enforcer.admit("tool-0", arguments, call_id=call_id)
        return enforcer

    def settled() -> Any:
        enforcer = fresh()
        for call_id, (tool, arguments) in zip(bodies, calls, strict=True):
            enforcer.settle(enforcer.admit(tool, arguments, call_id=call_id))
        assert enforcer.is_complete
        return enforcer

    def refused() -> Any:
        enforcer = fresh()
        for call_id in bodies:
            enforcer.admit("none-of-them", {"host": "web-01"}, call_id=call_id)
        return enforcer

    def hooked() -> Any:
        hook = PlaybookEnforcerHook(playbook)
        for call_id, (tool, arguments) in zip(bodies, calls, strict=True):
            with hook.calling(tool, arguments, call_id=call_id, run_id="r1"):
                pass
        return hook

    work = {"admit": admitted, "settle": settled, "refuse": refused, "hook": hooked}
    times = interleaved(work, plan.rounds(9))
    both = each(times["settle"], n)
    yield Figure("admitted", each(times["admit"], n), "µs", 20, 10)
    yield Figure("admitted and settled", both, "µs")
    yield Figure("refused", each(times["refuse"], n), "µs")
    yield Figure("through a hook, admitted and settled", each(times["hook"], n), "µs")
