"""What each step asks for under a policy, worked out once when an enforcer is made.

A playbook, its skills and a policy together say what a step lets through, what closes it and what
it has to leave behind. Judging reads these terms and the state of the plan, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import MISSING, counted, did_you_mean, listed
from runbook_nb._value import frozen
from runbook_nb.errors import PlaybookDefinitionError, Problem
from runbook_nb.playbooks.evidence import is_blank
from runbook_nb.playbooks.limits import limit_faults
from runbook_nb.playbooks.model import Playbook, PlaybookStep
from runbook_nb.playbooks.policy import EnforcementPolicy
from runbook_nb.playbooks.skills import (
    allowed_tools_for,
    effective_probes,
    effort_of,
    is_outside,
    unresolved_skills,
)

if TYPE_CHECKING:
    from runbook_nb.playbooks.checks import StepChecks

#: Marks of a glob among names that are always allowed.
_GLOB: Final = "*?["


@frozen
class StepTerms:
    """What one step asks for.

    Attributes
    ----------
    index : int
        Its place in the playbook.
    step : PlaybookStep
        The step.
    tools : tuple of str
        The tools it expects, each once.
    floor, cap : int or None
        How many calls it takes at least and at most.
    probes : tuple
        The probes it asks for, those of its skills too.
    entries : frozenset of str or None
        What its skills allow together; None where they say nothing.
    person : bool
        Whether a person closes it, and no call does.
    closed_to_tools : bool
        Whether it lets no tool through but those its skills allow.
    open_ended : bool
        Whether it says nothing about tools and has no cap.
    checks : StepChecks or None
        Its conditions on fields; None where it has none, or they are not acted on.
    seconds : float or None
        How long it may take; None where that is not acted on.
    unresolved : tuple of str
        Skills it uses that nobody gave.
    """

    index: int
    step: PlaybookStep
    tools: tuple[str, ...] = ()
    floor: int | None = None
    cap: int | None = None
    probes: tuple[Any, ...] = ()
    entries: frozenset[str] | None = None
    person: bool = False
    closed_to_tools: bool = False
    open_ended: bool = False
    checks: StepChecks | None = None
    seconds: float | None = None
    unresolved: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The step's id."""
        return self.step.id


class Terms:
    """What all steps of a playbook ask for under a policy.

    Parameters
    ----------
    playbook : Playbook
        The steps.
    skills : mapping of str to Skill
        The skills, by the key steps name them by.
    policy : EnforcementPolicy
        The rules.

    Attributes
    ----------
    steps : tuple of StepTerms
        The terms of each step, in order.
    by_id : dict of str to StepTerms
        The last of each id.
    expected : frozenset of str
        The tools that any step expects; none of them is housekeeping before the end.
    warnings : tuple of str
        What is wrong and let pass, in sentences.

    Raises
    ------
    PlaybookDefinitionError
        The policy refuses something of the playbook; all of it is told together.

    Examples
    --------
    >>> step = PlaybookStep(id="look", description="Look.", expected_tools=["scan"])
    >>> book = Playbook(id="ir", name="Response", steps=[step])
    >>> Terms(book, {}, EnforcementPolicy()).steps[0].tools
    ('scan',)
    """

    def __init__(
        self, playbook: Playbook, skills: Mapping[str, Any], policy: EnforcementPolicy
    ) -> None:
        self.playbook = playbook
        self.policy = policy
        self.skills = skills
        self.lenient = playbook.allow_extra_tools
        self.interleaved = policy.honor_strict_sequence and not playbook.strict_sequence
        self.budget = playbook.max_iterations if policy.enforce_budget else None
        exact = [name for name in policy.always_allowed if not set(name) & set(_GLOB)]
        self._always = frozenset(exact)
        self._always_globs = tuple(set(policy.always_allowed) - self._always)
        checks = _checks_of(playbook, policy)
        self.steps = tuple(
            _terms_of(place, step, skills, policy, checks[place])
            for place, step in enumerate(playbook.steps)
        )
        self.by_id = {one.id: one for one in self.steps}
        self.expected = frozenset(tool for one in self.steps for tool in one.tools)
        self.warnings = tuple(_refuse_or_warn(self.steps, skills, policy))

    def is_housekeeping(self, tool: str) -> bool:
        """Say whether a tool is always allowed and belongs to no step."""
        if tool in self._always:
            return True
        return any(fnmatchcase(tool, glob) for glob in self._always_globs)

    def is_outside(self, terms: StepTerms, tool: str, arguments: Any = MISSING) -> bool:
        """Say whether a step's skills do not allow a call."""
        if terms.entries is None or self.policy.skills_mean == "advisory":
            return False
        return is_outside(terms.entries, tool, arguments, skill_patterns=self.policy.skill_patterns)

    def at(self, index: int | None) -> StepTerms | None:
        """Give the terms of the step at a place; None for no place."""
        return None if index is None else self.steps[index]

    def of(self, step: PlaybookStep) -> StepTerms:
        """Give the terms of a step, worked out anew for one that is not of the playbook."""
        for one in self.steps:
            if one.step is step:
                return one
        return _terms_of(-1, step, self.skills, self.policy, None)


def _checks_of(playbook: Playbook, policy: EnforcementPolicy) -> list[StepChecks | None]:
    steps = playbook.steps
    if not policy.evaluate_validation or not any(s.checks or s.validation for s in steps):
        return [None] * len(steps)
    from runbook_nb.playbooks.vocabulary import read_all  # few playbooks have checks

    read = read_all(steps)
    return [one if one.checks or one.validation else None for one in read]


def _terms_of(
    place: int,
    step: PlaybookStep,
    skills: Mapping[str, Any],
    policy: EnforcementPolicy,
    checks: StepChecks | None,
) -> StepTerms:
    floor, cap = effort_of(step, skills, inherit=policy.inherit_effort)
    entries = allowed_tools_for(step, skills, empty_skill_list=policy.empty_skill_list)
    open_ended = not step.expected_tools and cap is None
    by_kind = step.kind == "manual" or (step.kind == "approval" and not step.expected_tools)
    by_person = by_kind or (open_ended and policy.empty_step == "manual")
    return StepTerms(
        index=place,
        step=step,
        tools=tuple(dict.fromkeys(step.expected_tools)),
        floor=floor,
        cap=cap,
        probes=tuple(effective_probes(step, skills)),
        entries=None if entries is None else frozenset(entries),
        person=by_person,
        closed_to_tools=by_person and not step.expected_tools,
        open_ended=open_ended,
        checks=checks,
        seconds=step.timeout_seconds if policy.enforce_timeouts else None,
        unresolved=tuple(unresolved_skills(step, skills)),
    )


def _refuse_or_warn(
    steps: Iterable[StepTerms], skills: Mapping[str, Any], policy: EnforcementPolicy
) -> list[str]:
    """Tell everything that the policy refuses together; give what it only warns of."""
    problems: list[Problem] = []
    warnings: list[str] = []
    steps = list(steps)
    if not policy.allow_duplicate_ids:
        times = Counter(one.id for one in steps)
        problems += [
            Problem(
                message=f"{counted(n, 'step')} share the id {name!r}",
                where=f"steps[{[one.id for one in steps].index(name)}].id",
                fix="give each step an id of its own",
            )
            for name, n in times.items()
            if n > 1
        ]
    for one in steps:
        where = f"steps[{one.index}]"
        if one.unresolved and policy.unresolved_skills != "ignore":
            names = listed(map(repr, one.unresolved))
            told = f"step {one.id!r} uses {names}, and no skill of that name was given"
            if policy.unresolved_skills == "warn":
                warnings.append(told)
            else:
                near = did_you_mean(one.unresolved[0], skills)
                fix = near or "pass it in skills=, or leave it out of `uses`"
                problems.append(Problem(message=told, where=f"{where}.uses", fix=fix))
        if policy.empty_step == "reject" and one.open_ended and one.step.kind is None:
            problems.append(
                Problem(
                    message=f"step {one.id!r} lists no tools and has no cap, so no call closes it",
                    where=where,
                    fix="list its expected_tools, or give it kind: manual",
                )
            )
        ids = [other.id for other in steps[one.index :]]
        problems += [
            Problem(
                message=f"step {one.id!r} requires {name!r}, which does not come before it",
                where=f"{where}.requires",
                fix="name an earlier step, or a tool",
            )
            for name in one.step.requires
            if name in ids
        ]
        problems += _bounds(one, where) if policy.profile == "safe" else []
    if problems:
        raise PlaybookDefinitionError(
            f"the playbook cannot be held to under the policy {policy.label!r}",
            code="refused_by_policy",
            problems=problems,
        )
    return warnings


def _bounds(one: StepTerms, where: str) -> list[Problem]:
    problems = [
        Problem(
            message=f"{fault.field} of step {one.id!r} {fault.message}",
            where=f"{where}.{fault.field}",
            fix=fault.fix,
        )
        for fault in islice(limit_faults(one.floor, one.cap), 1)
    ]
    problems += [
        Problem(
            message=f"probe {probe.name!r} of step {one.id!r} looks for blanks: they prove nothing",
            where=f"{where}.required_probes[{place}].match",
            fix="write the text that has to occur in a call",
        )
        for place, probe in enumerate(one.step.required_probes)
        if is_blank(probe.match)
    ]
    return problems
