"""Lint: what in a playbook cannot go as written, or means something else than it seems to.

Nothing is run. A finding is an *error* when a plan of the playbook cannot come to its end by the
calls it asks for, or holds less than it says; a *warning* when it goes, yet otherwise than a
reader would expect. Which is which depends on the policy, so the policy is part of the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import clip, counted, visible
from runbook_nb._value import frozen
from runbook_nb._view import Badge, Card, Column, Data, Detail, Prose, Role, Section, Table
from runbook_nb.errors import PlaybookDefinitionError, Problem
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook
    from runbook_nb.playbooks.policy import EnforcementPolicy

Severity = Literal["error", "warning"]

_ROLES: Final[dict[Severity, Role]] = {"error": "failed", "warning": "stuck"}

#: What cannot be judged without being told, and how it is told.
_UNTOLD: Final = {
    "tools": "whether the tools exist (give tools=)",
    "skills": "what the skills allow and ask for (give skills=)",
}


@frozen
class LintFinding(Immutable):
    """One thing that is wrong with a playbook.

    Attributes
    ----------
    code : str
        A stable word for its kind.
    severity : {"error", "warning"}
        Whether it keeps a plan from going as written.
    where : str
        The place: ``steps[2].expected_tools[0]``.
    message : str
        What is wrong, with the names it concerns.
    fix : str
        What to write instead.
    step_id : str or None
        The step it concerns.

    Examples
    --------
    >>> print(LintFinding(code="cap_below_one", severity="error", where="steps[0].max_tool_calls",
    ...                   message="is 0", fix="write 1 or more"))
    error cap_below_one: steps[0].max_tool_calls: is 0; write 1 or more
    """

    code: str
    severity: Severity
    where: str
    message: str
    fix: str
    step_id: str | None = None

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.problem}"

    @property
    def problem(self) -> Problem:
        """The finding as errors tell it."""
        return Problem(message=self.message, where=self.where, fix=self.fix)

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values."""
        return {
            "code": self.code,
            "severity": self.severity,
            "where": self.where,
            "step_id": self.step_id,
            "message": self.message,
            "fix": self.fix,
        }


@frozen(repr=False)
class PlaybookLint(Renderable, Immutable):
    """What looking through a playbook found.

    Attributes
    ----------
    name : str
        The playbook.
    policy : str
        The policy it was looked at under.
    findings : tuple of LintFinding
        In the order of the steps, those of the skills last.
    steps : int
        How many steps were looked through.
    not_checked : tuple of str
        What could not be judged for want of being told.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> book = Playbook(id="ir", name="Incident", steps=[PlaybookStep(id="look", description="")])
    >>> [(one.code, one.severity) for one in lint_playbook(book)]
    [('open_step', 'warning')]
    """

    name: str
    policy: str
    findings: tuple[LintFinding, ...]
    steps: int
    not_checked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.errors

    @property
    def errors(self) -> tuple[LintFinding, ...]:
        """The findings that keep a plan from going as written."""
        return tuple(one for one in self.findings if one.severity == "error")

    @property
    def warnings(self) -> tuple[LintFinding, ...]:
        """The findings that a reader would not expect."""
        return tuple(one for one in self.findings if one.severity == "warning")

    @property
    def codes(self) -> dict[str, int]:
        """How often each kind was found, in the order of the findings."""
        return dict(Counter(one.code for one in self.findings))

    def __iter__(self) -> Iterator[LintFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def of(self, code: str) -> tuple[LintFinding, ...]:
        """Give the findings of one kind."""
        return tuple(one for one in self.findings if one.code == code)

    def raise_errors(self) -> None:
        """Refuse a playbook with errors, and tell all of them.

        Raises
        ------
        PlaybookDefinitionError
            There is an error (``lint_errors``).
        """
        if self.errors:
            raise PlaybookDefinitionError(
                f"the playbook {clip(visible(self.name), 60)!r} cannot go as written",
                code="lint_errors",
                where=self.errors[0].where,
                problems=[one.problem for one in self.errors],
            )

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return {
            "name": self.name,
            "policy": self.policy,
            "steps": self.steps,
            "findings": [one.to_dict() for one in self.findings],
            "not_checked": list(self.not_checked),
        }

    def view(self) -> Card:
        """Say what this looks like: errors first, each with its place and what to write."""
        ranked = [*self.errors, *self.warnings]
        shown = ranked[: settings.max_table_rows]
        table = Table(
            columns=(
                Column(head="where"),
                Column(head="severity"),
                Column(head="code"),
            ),
            rows=tuple(
                (
                    Data(value=one.where, tone="code"),
                    Badge(word=one.severity, role=_ROLES[one.severity]),
                    one.code,
                )
                for one in shown
            ),
            details=tuple(
                Detail(row=n, text=(Data(value=f"{one.message}; {one.fix}"),))
                for n, one in enumerate(shown)
            ),
            total=len(ranked),
            rest="lint.findings",
            empty="nothing was found",
        )
        counts: tuple[tuple[Severity, int], ...] = (
            ("error", len(self.errors)),
            ("warning", len(self.warnings)),
        )
        sections = [Section(label="Findings", parts=(table,))]
        if self.not_checked:
            lines = tuple(
                Prose(text=f"Not checked: {one}.", tone="dim") for one in self.not_checked
            )
            sections.append(Section(label="", parts=lines))
        return Card(
            kind="PlaybookLint",
            name=clip(visible(self.name), 60) or "without a name",
            qualifiers=(f"policy {self.policy}", counted(self.steps, "step")),
            headline="nothing was found" if not ranked else "",
            badges=tuple(
                Badge(word=word if count == 1 else f"{word}s", role=_ROLES[word], count=count)
                for word, count in counts
                if count
            ),
            sections=tuple(sections),
        )


def lint_playbook(
    playbook: Playbook,
    tools: Any = None,
    skills: Mapping[str, Any] | None = None,
    policy: EnforcementPolicy | Mapping[str, Any] | str | None = None,
) -> PlaybookLint:
    """Look through a playbook for what cannot go as written; see `Playbook.lint`."""
    from runbook_nb.playbooks.faults import faults_of
    from runbook_nb.playbooks.ground import Ground
    from runbook_nb.playbooks.judging import quoted
    from runbook_nb.playbooks.policy import EnforcementPolicy
    from runbook_nb.playbooks.stepfaults import requirements_untold

    held = EnforcementPolicy.of(policy)
    ground = Ground(playbook=playbook, policy=held, tools=tool_names(tools), skills=skills)
    untold = {
        "tools": tools is None and any(step.expected_tools for step in playbook.steps),
        "skills": skills is None and any(step.uses for step in playbook.steps),
    }
    required = requirements_untold(ground) if tools is None else ()
    unknown = [
        f"whether {quoted(name)}, which {where} asks for, is a tool (give tools=)"
        for name, where in required
    ]
    return PlaybookLint(
        name=playbook.name or playbook.id,
        policy=held.label,
        findings=tuple(faults_of(ground)),
        steps=len(playbook.steps),
        not_checked=(*(_UNTOLD[what] for what, missing in untold.items() if missing), *unknown),
    )


def tool_names(tools: Any) -> frozenset[str] | None:
    """Name the tools that exist, from a toolbox, tools, functions or names; None says nothing.

    Examples
    --------
    >>> sorted(tool_names(["scan", len]))
    ['len', 'scan']
    """
    if tools is None:
        return None
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise PlaybookDefinitionError(
            f"tools cannot be read from a {type(tools).__name__}",
            code="bad_tools",
            where="tools",
            fix="give a toolbox, or a list of tools or of their names",
        )
    return frozenset(map(_name_of, tools))


def _name_of(tool: Any) -> str:
    name = tool
    if not isinstance(tool, str):
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    if isinstance(name, str):
        return name
    raise PlaybookDefinitionError(
        f"a {type(tool).__name__} has no name that a playbook could expect",
        code="bad_tools",
        where="tools",
        fix="give tools, functions or names",
    )
