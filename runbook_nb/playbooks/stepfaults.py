"""What can be wrong with a step: one function for each kind, asked in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runbook_nb._text import did_you_mean, nearest
from runbook_nb.playbooks.evidence import is_blank
from runbook_nb.playbooks.ground import (
    NOT_ACTED_ON,
    Findings,
    Ground,
    Place,
    no_such_tool,
    text_faults,
    why_impossible,
)
from runbook_nb.playbooks.judging import quoted
from runbook_nb.playbooks.limits import id_fault, limit_faults
from runbook_nb.playbooks.lint import Severity
from runbook_nb.playbooks.skills import skills_of, unresolved_skills
from runbook_nb.playbooks.vocabulary import problems_in, read_step


def _ids(ground: Ground, at: Place) -> Findings:
    if not at.step.id.strip():
        message = "is blank, so that nothing can refer to the step"
        yield at.found("blank_id", "warning", "id", message, "give it a word of its own")
    long = id_fault(at.step.id)
    if long is not None:
        yield at.found("id_too_long", "error", "id", *long)
    first = ground.playbook.get_step_index(at.step.id)
    if first is not None and first < at.n:
        yield at.found(
            "duplicate_id",
            "warning" if ground.policy.allow_duplicate_ids else "error",
            "id",
            f"is {quoted(at.step.id)}, as that of steps[{first}]: both would share one record",
            "give each step an id of its own",
        )


def _open(ground: Ground, at: Place) -> Findings:
    step = at.step
    if step.expected_tools or step.kind or ground.effort_of(step)[1] is not None:
        return
    says: dict[str, tuple[Severity, str]] = {
        "open": ("error", "any tool may be called in it, and no call closes it"),
        "manual": ("warning", "only a person closes it"),
        "reject": ("error", "no plan is made of it under this policy"),
    }
    severity, what = says[ground.policy.empty_step]
    yield at.found(
        "open_step",
        severity,
        "",
        f"lists no tool and has no cap: {what}",
        "list expected_tools, or write kind: manual",
    )


def _expected(ground: Ground, at: Place) -> Findings:
    step, policy = at.step, ground.policy
    for place, tool in enumerate(step.expected_tools):
        if tool in step.expected_tools[:place]:
            continue
        where = f"expected_tools[{place}]"
        if ground.tools is not None and tool not in ground.tools:
            yield at.found("unknown_tool", "error", where, *no_such_tool(tool, ground.tools))
        why = why_impossible(ground, step, tool)
        if why is not None:
            yield at.found("impossible_tool", "error", where, f"{quoted(tool)} {why[0]}", why[1])
    if not step.expected_tools and not step.kind and ground.allows_nothing(step):
        message = "names skills that allow no tool at all, so no call closes the step"
        fix = "list tools in a skill, or write kind: manual"
        yield at.found("impossible_tool", "error", "uses", message, fix)
    cap = ground.effort_of(step)[1]
    tools = len(set(step.expected_tools))
    if cap is not None and max(cap, 1) < tools:
        holds = policy.on_cap == "hold"
        what = f"closes the step before all {tools} expected tools are called"
        if policy.on_cap == "fail":
            what = f"fails the step before all {tools} expected tools are called"
        elif holds:
            what = f"does not hold: the step stays open until all {tools} expected tools are called"
        yield at.found(
            "cap_below_tools",
            "warning" if holds else "error",
            "max_tool_calls",
            f"is {cap}, and {what}",
            f"write {tools} or more",
        )


def _effort(ground: Ground, at: Place) -> Findings:
    step, policy = at.step, ground.policy
    floor, cap = ground.effort_of(step)
    for fault in limit_faults(floor, cap):
        goes = fault.code == "cap_below_one" and policy.profile == "compat"
        severity: Severity = "warning" if goes else "error"
        yield at.found(fault.code, severity, fault.field, fault.message, fault.fix)
    only = set(step.expected_tools)
    if policy.floor == "record" and floor is not None and floor > 1 and len(only) == 1:
        yield at.found(
            "floor_never_met",
            "warning",
            "min_tool_calls",
            f"is {floor}, and the first call of {quoted(min(only))} closes the step",
            "use floor='hold', or write 1",
        )


def _probes(ground: Ground, at: Place) -> Findings:
    names: dict[str, int] = {}
    by_person = at.step.kind is not None and not at.step.expected_tools
    held = ground.policy.evidence == "hold" and ground.effort_of(at.step)[1] is None
    for place, probe in enumerate(at.step.required_probes):
        where = f"required_probes[{place}]"
        if probe.name in names:
            yield at.found(
                "duplicate_probe",
                "warning",
                where,
                f"is called {quoted(probe.name)}, as an earlier one, and is never asked for",
                "give each probe a name of its own",
            )
            continue
        names[probe.name] = place
        if by_person:
            yield at.found(
                "probe_never_matches",
                "error",
                where,
                "asks for a call, and a person closes the step without one",
                "leave it out, or list expected_tools",
            )
            continue
        refused = is_blank(probe.match) and ground.policy.profile == "safe"
        for code, message, fix in text_faults(probe.match, ground.policy.probe_text):
            never = held and code == "probe_never_matches"
            grave: Severity = "error" if refused or never else "warning"
            yield at.found(code, grave, f"{where}.match", message, fix)


def _checks(ground: Ground, at: Place) -> Findings:
    acted_on = ground.policy.evaluate_validation
    severity: Severity = "error" if acted_on else "warning"
    problems = problems_in(at.step)
    for one in problems:
        fix = one.fix or "see what checks may say"
        yield at.found("bad_check", severity, one.where or "checks", one.message, fix)
    for place in ("checks", "validation"):
        if getattr(at.step, place) and not acted_on:
            yield at.found("not_acted_on", "warning", place, *NOT_ACTED_ON)
    if ground.tools is None or problems:
        return
    read = read_step(at.step)
    places = [(f"checks[{n}].tool", check.tool) for n, check in enumerate(read.checks)]
    if read.validation is not None:
        places += [(f"{check.key}.tool", check.tool) for check in read.validation.checks]
        places += [(f"validation.calls.{tool}", tool) for tool in read.validation.calls]
    for place, tool in places:
        if tool is not None and tool not in ground.tools:
            yield at.found("unknown_tool", severity, place, *no_such_tool(tool, ground.tools))


def _timeout(ground: Ground, at: Place) -> Findings:
    seconds = at.step.timeout_seconds
    if seconds is None:
        return
    if not ground.policy.enforce_timeouts:
        yield at.found("not_acted_on", "warning", "timeout_seconds", *NOT_ACTED_ON)
    elif not seconds > 0:
        message = f"is {seconds:g}, and every step would be late"
        yield at.found("bad_timeout", "error", "timeout_seconds", message, "write more than 0")


def _requires(ground: Ground, at: Place) -> Findings:
    steps = [step.id for step in ground.playbook.steps]
    for place, wanted in enumerate(at.step.requires):
        where = f"requires[{place}]"
        if wanted in steps[at.n :]:
            what = "this step" if wanted == at.step.id else "a later step"
            message = f"{quoted(wanted)} is {what}, which cannot be done before"
            yield at.found("requires_later_step", "error", where, message, "name an earlier step")
        elif wanted in steps:
            first = ground.playbook.steps[steps.index(wanted)]
            if not first.required and ground.policy.optional == "passable":
                message = f"{quoted(wanted)} is optional, and passed over it bars this step"
                fix = "make it required, or leave it out"
                yield at.found("requires_optional_step", "warning", where, message, fix)
        elif ground.tools is not None and wanted not in ground.tools:
            near = did_you_mean(wanted, [*steps[: at.n], *sorted(ground.tools)])
            message = f"{quoted(wanted)} is neither an earlier step nor a tool"
            fix = near or "name an earlier step, or a tool"
            yield at.found("unknown_requirement", "error", where, message, fix)
        elif ground.tools is None and (step := misspelt_step(ground, at.n, wanted)) is not None:
            message = f"{quoted(wanted)} is neither an earlier step nor a tool the playbook expects"
            fix = f"did you mean {quoted(step)}?"
            yield at.found("unknown_requirement", "error", where, message, fix)


def misspelt_step(ground: Ground, n: int, wanted: str) -> str | None:
    """Name the earlier step that a requirement means, where it is nearly that and nothing else."""
    if wanted in _named(ground):
        return None
    return nearest(wanted, [step.id for step in ground.playbook.steps[:n]], alike=0.8)


def requirements_untold(ground: Ground) -> Iterator[tuple[str, str]]:
    """Yield each requirement that may be a tool or a mistake, with its place."""
    known = _named(ground)
    for n, step in enumerate(ground.playbook.steps):
        for place, wanted in enumerate(step.requires):
            if wanted not in known and misspelt_step(ground, n, wanted) is None:
                yield wanted, f"steps[{n}].requires[{place}]"


def _named(ground: Ground) -> frozenset[str]:
    """Give what the playbook itself knows by name: its steps, and the tools they expect."""
    steps = ground.playbook.steps
    return frozenset(name for one in steps for name in (one.id, *one.expected_tools))


def _optional(ground: Ground, at: Place) -> Findings:
    if not at.step.required and ground.policy.optional == "blocking":
        yield at.found(
            "optional_blocks",
            "warning",
            "required",
            "is false, and under this policy no call passes over the step",
            "use optional='passable', or have the host skip it",
        )


def _uses(ground: Ground, at: Place) -> Findings:
    step, policy = at.step, ground.policy
    if ground.skills is None:
        return
    for key in unresolved_skills(step, ground.skills):
        near = did_you_mean(key, sorted(ground.skills))
        yield at.found(
            "unresolved_skill",
            "error" if policy.unresolved_skills == "error" else "warning",
            f"uses[{step.uses.index(key)}]",
            f"there is no skill {quoted(key)}, so it neither binds nor asks for anything",
            near or "give the skill, or leave it out",
        )
    used = skills_of(step, ground.skills)
    bounds = [getattr(one, name, None) for one in used for name in _BOUNDS]
    own = (step.min_tool_calls, step.max_tool_calls)
    if not policy.inherit_effort and None in own and any(bound is not None for bound in bounds):
        yield at.found(
            "not_acted_on",
            "warning",
            "uses",
            "names skills with bounds on effort, which this policy does not take over",
            "use inherit_effort=True, or write the bounds on the step",
        )


_BOUNDS: Final = ("min_tool_calls", "max_tool_calls")


#: In the order in which a step is looked at.
LOOKS: Final = (
    _ids,
    _open,
    _uses,
    _expected,
    _effort,
    _probes,
    _checks,
    _timeout,
    _requires,
    _optional,
)
