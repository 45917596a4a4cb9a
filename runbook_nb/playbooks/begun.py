"""What the first event of a plan says of the playbook and of the skills it was made with."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from runbook_nb._text import listed
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.eventkinds import content_digest
from runbook_nb.playbooks.judging import quoted
from runbook_nb.playbooks.model import Playbook, RequiredProbe


def digest_of(playbook: Playbook) -> str:
    """Give a digest of a playbook's content.

    Examples
    --------
    >>> len(digest_of(Playbook(id="ir", name="Response")))
    72
    """
    return content_digest(playbook.model_dump())


def skill_facts(skills: Mapping[str, Any]) -> dict[str, Any]:
    """Give what acts of each skill, with a digest of it.

    Examples
    --------
    >>> from runbook_nb.playbooks.skills import Skill
    >>> facts = skill_facts({"siem": Skill("siem", "Logs.", allowed_tools=["scan"])})
    >>> facts["siem"]["allowed_tools"]
    ['scan']
    """
    facts: dict[str, Any] = {}
    for name, skill in skills.items():
        if skill is None:
            continue
        allowed = getattr(skill, "allowed_tools", None)
        told = {
            "allowed_tools": None if allowed is None else [str(one) for one in allowed],
            "required_probes": [
                {
                    "name": probe.name,
                    "match": probe.match,
                    "description": getattr(probe, "description", ""),
                }
                for probe in getattr(skill, "required_probes", None) or ()
            ],
            "min_tool_calls": getattr(skill, "min_tool_calls", None),
            "max_tool_calls": getattr(skill, "max_tool_calls", None),
        }
        facts[str(name)] = {**told, "digest": skill_digest(told)}
    return facts


def skill_digest(told: Mapping[str, Any]) -> str:
    """Give the digest of what acts of a skill, whatever digest stands beside it."""
    return content_digest({name: value for name, value in told.items() if name != "digest"})


def skills_from(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Make skills again of what acted of them.

    Examples
    --------
    >>> from runbook_nb.playbooks.skills import Skill
    >>> facts = skill_facts({"siem": Skill("siem", "Logs.", allowed_tools=["scan"])})
    >>> skills_from(facts)["siem"].allowed_tools
    ['scan']
    """
    return {
        name: SimpleNamespace(
            name=name,
            allowed_tools=told["allowed_tools"],
            required_probes=[
                RequiredProbe.model_construct(**one) for one in told["required_probes"]
            ],
            min_tool_calls=told["min_tool_calls"],
            max_tool_calls=told["max_tool_calls"],
        )
        for name, told in facts.items()
    }


def refuse_other_skills(kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse skills that do not act as those a plan was begun with.

    Raises
    ------
    PlaybookError
        One allows or asks for something else (``skill_changed``).
    """
    other = sorted(
        name
        for name in kept.keys() | given.keys()
        if kept.get(name, {}).get("digest") != given.get(name, {}).get("digest")
    )
    if other:
        raise PlaybookError(
            f"what {listed(map(quoted, other))} allows and asks for is not what it was",
            code="skill_changed",
            where="skills",
            fix="give the skills the plan was begun with, or none",
        )
