"""How the rules of a plan and what went against them look.

Views only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runbook_nb._text import counted
from runbook_nb._view import Badge, Card, Cell, Column, Data, Fact, Facts, Section, Table

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import EnforcementViolation
    from runbook_nb.playbooks.policy import EnforcementPolicy


def policy_card(policy: EnforcementPolicy) -> Card:
    """Show a policy: its profile, every rule, and which of them are otherwise."""
    changed = policy.overrides
    rules = {name: value for name, value in policy.to_dict().items() if name != "profile"}
    names = [*changed, *(name for name in rules if name not in changed)]
    usual = type(policy)(policy.profile)
    table = Table(
        columns=(
            Column(head="rule", names=True),
            Column(head="is"),
            Column(head="instead of", in_text="labelled"),
        ),
        rows=tuple(
            (
                Data(value=name, tone="code"),
                _worded(rules[name]),
                _worded(getattr(usual, name)) if name in changed else "",
            )
            for name in names
        ),
        total=len(names),
        strong_rows=tuple(range(len(changed))),
        rest="policy.to_dict()",
    )
    changes = counted(len(changed), "rule") + " changed" if changed else "as the profile has it"
    return Card(
        kind="Policy",
        full_kind="Enforcement policy",
        name=policy.profile,
        headline=changes,
        sections=(Section(label="Rules", parts=(table,)),),
    )


def _worded(value: Any) -> Cell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return Data(value=", ".join(map(str, value))) if value else "none"
    return Data(value=value, tone="code")


def violation_card(violation: EnforcementViolation) -> Card:
    """Show what was not as the playbook has it."""
    facts = [
        Fact(term=term, detail=Data(value=value))
        for term, value in (
            ("step", violation.step_id),
            ("tool", violation.tool_name),
            ("said", violation.message),
        )
        if value
    ]
    word = "call refused" if violation.blocked else "noted"
    badge = Badge(word=word, role="refused" if violation.blocked else "noted")
    return Card(
        kind="Violation",
        name=violation.violation_type,
        headline=word,
        heading=(badge,),
        sections=(
            Section(label="", parts=(Facts(label="", items=tuple(facts), total=len(facts)),)),
        ),
    )
