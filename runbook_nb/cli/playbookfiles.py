"""What the check command says of playbooks and of skills.

Command line layer. A playbook is told from rules by what it holds, and read strictly, as it is
anywhere else; then it is looked through for what cannot go as written. Nothing of it is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import counted, visible
from runbook_nb._value import frozen
from runbook_nb.cli.findings import Finding, Found, by_line
from runbook_nb.errors import RunbookError

if TYPE_CHECKING:
    from runbook_nb.playbooks.lint import LintFinding
    from runbook_nb.tools.toolbox import Toolbox

#: What a file of steps has at its top, where it cannot be read as a whole.
_STEPS: Final = re.compile(r"^\s*[\"']?(?:steps|step_groups)[\"']?\s*:", re.MULTILINE)
_RULES: Final = re.compile(r"^\s*[\"']?rules[\"']?\s*:", re.MULTILINE)


@frozen
class Around(Immutable):
    """What playbooks are looked through with.

    Attributes
    ----------
    tools : Toolbox or None
        The tools that exist.
    skills : Path or None
        The folder whose folders hold skills.
    policy : str
        The profile a plan would be held to.
    """

    tools: Toolbox | None = None
    skills: Path | None = None
    policy: str = "safe"


def holds_playbook(file: Path) -> bool:
    """Say whether a file of values holds a playbook, of ours or of another format."""
    from runbook_nb.playbooks.foreign import foreign_format
    from runbook_nb.playbooks.sources import source_of_file

    try:
        source = source_of_file(file)
    except RunbookError:
        return False  # whoever reads it says what is wrong with it
    try:
        held = source.parsed().value
    except RunbookError:
        text = source.text or ""
        return _STEPS.search(text) is not None and _RULES.search(text) is None
    if foreign_format(held) is not None:
        return True
    return isinstance(held, Mapping) and not {"steps", "step_groups"}.isdisjoint(held)


def read_playbook(file: Path, around: Around) -> Found:
    """Read a playbook and look through it; each finding with its line where there is one."""
    from runbook_nb.playbooks.loader import load_playbook

    playbook = load_playbook(file, profile=around.policy)
    lint = playbook.lint(around.tools, _skills(around), around.policy)
    finding = _findings_in(file)
    said = (
        f"playbook {visible(playbook.name)} {visible(playbook.version)}, "
        f"{counted(len(playbook.steps), 'step')}, policy {lint.policy}"
    )
    return Found(
        said=said,
        problems=by_line(map(finding, lint.errors)),
        warnings=by_line(map(finding, lint.warnings)),
        not_checked=lint.not_checked,
    )


def _skills(around: Around) -> dict[str, Any] | None:
    if around.skills is None:
        return None
    from runbook_nb.playbooks.skills import Skill

    found = Skill.from_directory(around.skills, strict=True, profile=around.policy)
    return {skill.name: skill for skill in found}


def _findings_in(file: Path) -> Callable[[LintFinding], Finding]:
    """Give what puts a finding to the line it stands on; steps in groups stand in these."""
    from runbook_nb.playbooks.grouped import flatten, is_grouped
    from runbook_nb.playbooks.sources import source_of_file

    parsed = source_of_file(file).parsed()
    grouped = flatten(parsed.value).places if is_grouped(parsed.value) else ()

    def finding(one: LintFinding) -> Finding:
        where, line, column = one.where, None, None
        step = re.match(r"steps\[(\d+)\]", where)
        if step is not None and grouped:
            where = grouped[int(step[1])] + where[step.end() :]
        if not where.startswith("skills."):
            line, column = parsed.line_of(where), parsed.column_of(where)
        return Finding(
            code=one.code,
            message=one.message,
            where=where,
            line=line,
            column=column,
            fix=one.fix,
            text=str(one) if line is None else f"line {line}: {one}",
        )

    return finding


def read_skill_file(file: Path) -> Found:
    """Read a skill, strictly."""
    from runbook_nb.playbooks.skills import Skill

    skill = Skill.from_file(file, strict=True)
    tools = "any tool" if skill.allowed_tools is None else counted(len(skill.allowed_tools), "tool")
    probes = counted(len(skill.required_probes), "probe")
    return Found(said=f"skill {visible(skill.name)}, allows {tools}, asks for {probes}")
