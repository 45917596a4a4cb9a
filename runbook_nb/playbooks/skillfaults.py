"""What can be wrong with the skills a playbook uses, wherever it uses them."""

from __future__ import annotations

from itertools import chain
from typing import Any

from runbook_nb._text import clip, visible
from runbook_nb.errors import DefinitionError
from runbook_nb.playbooks.ground import Findings, Ground, no_such_tool, text_faults
from runbook_nb.playbooks.judging import quoted
from runbook_nb.playbooks.lint import LintFinding
from runbook_nb.playbooks.patterns import parse_pattern


def skill_faults(ground: Ground) -> Findings:
    """Give what is wrong with each skill that some step uses, each once."""
    used = chain.from_iterable(step.uses for step in ground.playbook.steps)
    known = ground.skills or {}
    for key in dict.fromkeys(used):
        if known.get(key) is not None:
            yield from _skill(ground, key, known[key])


def _skill(ground: Ground, key: str, skill: Any) -> Findings:
    where = f"skills.{clip(visible(key), 60)}"
    entries = getattr(skill, "allowed_tools", None)
    if entries is not None and not entries:
        deny = ground.policy.empty_skill_list == "deny"
        yield LintFinding(
            code="empty_skill_list",
            severity="warning",
            where=f"{where}.allowed_tools",
            message=f"is empty, which {'forbids every tool' if deny else 'binds nothing'} here",
            fix="list the tools, or leave it out",
        )
    for place, entry in enumerate(entries or ()):
        yield from _entry(ground, f"{where}.allowed_tools[{place}]", entry)
    for place, probe in enumerate(getattr(skill, "required_probes", None) or ()):
        for code, message, fix in text_faults(probe.match, ground.policy.probe_text):
            yield LintFinding(
                code=code,
                severity="warning",
                where=f"{where}.required_probes[{place}].match",
                message=message,
                fix=fix,
            )


def _entry(ground: Ground, where: str, entry: str) -> Findings:
    understood = ground.policy.skill_patterns == "understood"
    try:
        pattern = parse_pattern(entry)
    except DefinitionError as error:
        yield LintFinding(
            code="bad_tool_pattern",
            severity="error" if understood else "warning",
            where=where,
            message=error.message,
            fix=error.fix or "name a tool",
        )
        return
    is_name = pattern.tool == entry and "*" not in entry
    if not is_name and not understood:
        yield LintFinding(
            code="bad_tool_pattern",
            severity="warning",
            where=where,
            message=f"{quoted(entry)} is taken for a name under this policy, and allows no tool",
            fix="use skill_patterns='understood', or name a tool",
        )
    elif ground.tools is not None and not any(map(pattern.names, ground.tools)):
        message, fix = no_such_tool(pattern.tool, ground.tools)
        yield LintFinding(
            code="unknown_tool",
            severity="warning",
            where=where,
            message=message,
            fix=fix,
        )
