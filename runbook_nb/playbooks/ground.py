"""What a playbook is looked through with, and what several looks at it share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import did_you_mean, listed
from runbook_nb._value import frozen
from runbook_nb.playbooks.evidence import is_blank
from runbook_nb.playbooks.judging import quoted
from runbook_nb.playbooks.lint import LintFinding, Severity
from runbook_nb.playbooks.model import Playbook, PlaybookStep
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.skills import Skills, allowed_tools_for, effort_of, is_outside

Findings = Iterator[LintFinding]

#: What is wrong with what a policy passes over, and what to do about it.
NOT_ACTED_ON: Final = (
    "is carried along and never acted on under this policy",
    "use the profile 'safe', or leave it out",
)

# What the text of a call holds in neither form, or not in the plain one.
_KEY_VALUE: Final = re.compile(r"\A[\w.-]+=\S")
_ESCAPE: Final = re.compile(r"\\u[0-9a-fA-F]{4}")
_TIGHT_JSON: Final = re.compile(r'":\S|,"')


@frozen
class Ground(Immutable):
    """What a playbook is looked through with.

    Attributes
    ----------
    playbook : Playbook
    policy : EnforcementPolicy
    tools : frozenset of str or None
        The tools that exist; None when nobody said.
    skills : mapping or None
        The skills by their keys; None when nobody said.
    """

    playbook: Playbook
    policy: EnforcementPolicy
    tools: frozenset[str] | None = None
    skills: Skills | None = None

    def bound_of(self, step: PlaybookStep) -> set[str] | None:
        """Give the entries that bind a step's tools; None when nothing does."""
        if self.playbook.allow_extra_tools or self.policy.skills_mean == "advisory":
            return None
        empty = self.policy.empty_skill_list
        return allowed_tools_for(step, self.skills, empty_skill_list=empty)

    def allows_nothing(self, step: PlaybookStep) -> bool:
        """Say whether the skills of a step let no tool through, of those that exist."""
        bound, how = self.bound_of(step), self.policy.skill_patterns
        if not bound or self.tools is None:
            return bound is not None and not bound
        return all(is_outside(bound, tool, skill_patterns=how) for tool in self.tools)

    def effort_of(self, step: PlaybookStep) -> tuple[int | None, int | None]:
        """Give the floor and the cap that hold for a step."""
        return effort_of(step, self.skills, inherit=self.policy.inherit_effort)


@frozen(kw_only=False)
class Place(Immutable):
    """A step in its place, and what findings about it have in common."""

    n: int
    step: PlaybookStep

    def found(
        self, code: str, severity: Severity, place: str, message: str, fix: str
    ) -> LintFinding:
        """Say what was found, at a place in the step."""
        where = f"steps[{self.n}]{'.' if place and place[0] != '[' else ''}{place}"
        return LintFinding(
            code=code,
            severity=severity,
            where=where,
            message=message,
            fix=fix,
            step_id=self.step.id,
        )


def no_such_tool(tool: str, tools: Iterable[str]) -> tuple[str, str]:
    """Say that a tool is not among those that exist, and what to write instead."""
    near = did_you_mean(tool, sorted(tools))
    return f"there is no tool {quoted(tool)}", near or "name a tool that exists"


def why_impossible(ground: Ground, step: PlaybookStep, tool: str) -> tuple[str, str] | None:
    """Say why an expected tool cannot count, and what to do; None when it can."""
    bound = ground.bound_of(step)
    if is_outside(bound, tool, skill_patterns=ground.policy.skill_patterns):
        allowed = listed([quoted(entry) for entry in sorted(bound or ())][:5]) or "no tool"
        skills = listed([quoted(key) for key in dict.fromkeys(step.uses)])
        return f"is never allowed: the skills of the step ({skills}) allow {allowed}", (
            "add it to allowed-tools of a skill, or expect another tool"
        )
    return None


def text_faults(match: str, form: str) -> Iterator[tuple[str, str, str]]:
    """Say what is wrong with the text of a probe: code, message and fix.

    Examples
    --------
    >>> [code for code, _, _ in text_faults("index=auth", "v1")]
    ['probe_never_matches']
    >>> list(text_faults("index=auth", "v2"))
    []
    """
    never, always = "probe_never_matches", "probe_always_matches"
    if is_blank(match):
        fix = "write what has to stand in the call"
        if form == "v2":
            yield never, "is blank, which no call proves", fix
        else:
            yield always, "is blank, and any call with arguments would do", fix
        return
    if _TIGHT_JSON.search(match):
        message = "is JSON without spaces; arguments are written with one after ':' and ','"
        yield never, message, "write it with spaces"
    if form == "v2" and _ESCAPE.search(match):
        yield never, "is an escape; letters are searched as they are written", "write the letter"
    if form == "v1" and not match.isascii():
        message = "has letters that are escaped in all arguments but plain text"
        yield never, message, "use probe_text='v2', or a check"
    if form == "v1" and _KEY_VALUE.match(match):
        message = "is key=value, and arguments are written as JSON"
        yield never, message, 'use probe_text="v2", or write it as "key": "value"'
