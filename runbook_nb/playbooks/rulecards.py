"""How the rules of a plan and what went against them look.

Views only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._text import counted
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Fact,
    Facts,
    Prose,
    Role,
    Run,
    Section,
    Table,
)
from runbook_nb.playbooks.judging import quoted
from runbook_nb.record.steps import named_runs

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import EnforcementViolation
    from runbook_nb.playbooks.policy import EnforcementPolicy
    from runbook_nb.playbooks.report import PlaybookReport


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


#: How a verdict is told, everywhere.
VERDICTS: Final = {
    "pass": "Completed",
    "pass_with_deviations": "Completed, with deviations",
    "incomplete": "Incomplete",
    "declined": "Declined",
}
#: The badge of each status of a step, in the order they are counted out.
STATUS_ROLES: Final[Mapping[str, Role]] = {
    "completed": "completed",
    "stuck": "stuck",
    "failed": "failed",
    "declined": "failed",
    "skipped": "skipped",
    "in progress": "active",
    "pending": "pending",
}


def report_card(report: PlaybookReport) -> Card:
    """Show what a run came to: the verdict, what is left, what went against the playbook."""
    counts = Counter(status.replace("_", " ") for _, status in report.steps)
    chips = [
        Badge(word=status, role=role, count=counts[status])
        for status, role in STATUS_ROLES.items()
        if counts[status]
    ]
    refused: dict[str, list[str]] = {}
    for call in report.refused:
        refused.setdefault(call.tool, []).append(call.violation or "")
    # A refusal is told under its call, and what is left of the deviations by itself.
    went = Counter(report.deviations)
    went.subtract(call.violation or "" for call in report.refused)
    passed = [one for one in report.declined if one not in report.unresolved]
    # Where nothing goes on because a step was declined, that is told with the step.
    told_of = tuple(f"step {quoted(one)} was declined by " for one in report.declined)
    stuck = None if (report.stuck or "").startswith(told_of) else report.stuck
    facts = [
        *(
            Fact(
                term=("step", Data(value=one)),
                detail=("not done,", *_declined(report, one))
                if one in report.declined
                else "not done",
            )
            for one in report.unresolved
        ),
        *(Fact(term=("step", Data(value=one)), detail=_declined(report, one)) for one in passed),
        *([Fact(term="stuck", detail=Data(value=stuck))] if stuck else []),
        *(
            Fact(term=("evidence of", Data(value=step)), detail=("not met:", *named_runs(names)))
            for step, names in report.unmatched.items()
        ),
        *(
            Fact(
                term=("call of", Data(value=tool)),
                detail=f"refused {counted(len(kinds), 'time')}: "
                + ", ".join(kind.replace("_", " ") for kind in dict.fromkeys(kinds)),
            )
            for tool, kinds in refused.items()
        ),
        *(
            Fact(term=kind.replace("_", " "), detail=counted(times, "time"))
            for kind, times in went.items()
            if times > 0
        ),
        *(Fact(term="not settled", detail=Data(value=call)) for call in report.running),
    ]
    words = VERDICTS.get(report.verdict, report.verdict)
    share = f"score {report.score:.0%}, the mean share of probes per step"
    if not report.asking:
        share = "no step asks for evidence"
    told = (
        f"{counted(len(report.unresolved), 'required step')} not done",
        f"deviations {len(report.deviations)}",
        share,
    )
    parts = Facts(
        label="Left open, or against the playbook",
        items=tuple(facts),
        total=len(facts),
        style="not_checked",
        empty="nothing",
    )
    return Card(
        kind="Report",
        full_kind="Playbook report",
        name=report.playbook or "",
        qualifiers=(report.policy,),
        eyebrow=(("policy", Data(value=report.policy, tone="code")),),
        headline=words.lower(),
        heading=(words, *chips),
        sections=(
            Section(label="", parts=(Prose(text=" · ".join(told), tone="dim"),), in_text=False),
            Section(label="", parts=(parts,)),
        ),
        closing=told,
        foot="",
    )


def _declined(report: PlaybookReport, step: str) -> tuple[Run, ...]:
    who, note = report.declined[step]
    return ("declined by", Data(value=who), *((":", Data(value=note)) if note else ()))


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
