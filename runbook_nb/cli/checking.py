"""The command that checks files before anything relies on them: rules, playbooks, answers.

Command line layer. Each kind of file is read by what reads it anywhere else; the command only says
what came of it, one line or more per file, and nothing of a file is run.
"""

from __future__ import annotations

import json
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from runbook_nb.cli.files import AS_JSON, DEBUG
from runbook_nb.cli.main import ANSWERED, DIFFERENT
from runbook_nb.cli.playbookfiles import (
    Around,
    Found,
    holds_playbook,
    read_playbook,
    read_skill_file,
)
from runbook_nb.errors import LoadError, RunbookError

#: The form of what was found as JSON values.
CHECK_FORMAT: Final = "runbook_nb/check/1"


class Profile(StrEnum):
    """What a playbook can be held to."""

    SAFE = "safe"
    COMPAT = "compat"


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Rules and playbooks (.yaml, .json), skills (SKILL.md), notebooks (.ipynb), "
            "answers (.html, .json)."
        ),
    ],
    *,
    tools: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of playbooks: the toolbox, as of the run command."),
    ] = None,
    skills: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Of playbooks: the folder of skills.",
        ),
    ] = None,
    policy: Annotated[
        Profile, typer.Option(help="Of playbooks: the profile a plan is held to.")
    ] = Profile.SAFE,
    as_json: AS_JSON = False,
    debug: DEBUG = False,
) -> int:
    """Check rule sets, playbooks, skills, notebooks and answers, and name what is wrong with them.

    The exit status is 1 when something is wrong; warnings alone leave it 0. Whether what an answer
    says is true is another question; the verify command asks it.
    """
    around = Around(tools=tools, skills=skills, policy=policy.value)
    found = [(file, _checked(file, around)) for file in files]
    if as_json:
        told = [{"file": str(file), **_told(one)} for file, one in found]
        print(json.dumps({"format": CHECK_FORMAT, "files": told}, ensure_ascii=False, indent=1))
    else:
        for file, one in found:
            print(f"{file}: {one.said}")
            for problem in (*one.problems, *one.warnings):
                print("  " + problem.replace("\n", "\n  "))
    return DIFFERENT if any(one.problems for _, one in found) else ANSWERED


def _told(found: Found) -> dict[str, Any]:
    told: dict[str, Any] = {"holds": found.said, "problems": list(found.problems)}
    return {**told, "warnings": list(found.warnings)} if found.warnings else told


def _checked(file: Path, around: Around) -> Found:
    try:
        return _read(file, around)
    except RunbookError as error:
        return Found(said="wrong", problems=(str(error),))


def _read(file: Path, around: Around) -> Found:
    kind = file.suffix.lower()
    if file.name == "SKILL.md" and file.is_file():
        return read_skill_file(file)
    if kind == ".json" and _is_rules(file):
        return Found(said=_rules(file))
    if kind in (".yaml", ".yml", ".json") and holds_playbook(file):
        return read_playbook(file, around)
    if kind in (".yaml", ".yml"):
        return Found(said=_rules(file))
    said, problems = _notebook(file) if kind == ".ipynb" else _answers(file)
    return Found(said=said, problems=tuple(problems))


def _is_rules(file: Path) -> bool:
    try:
        held: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False  # the reader of answers says what is wrong with it
    return isinstance(held, dict) and "rules" in held


def _rules(file: Path) -> str:
    from runbook_nb._text import counted
    from runbook_nb.rules import RuleSet

    rules = RuleSet.load(file)
    return f"rules {rules.title}, {counted(len(rules.rules), 'rule')}, digest {rules.digest}"


def _notebook(file: Path) -> tuple[str, list[str]]:
    said, problems = _answers(file)
    return said, [*_form_problems(file), *problems]


def _form_problems(file: Path) -> list[str]:
    """Say what nbformat finds, at the file's own minor version; what it only warns of counts."""
    import nbformat

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            document = nbformat.read(file, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
            nbformat.validate(document)
        except Exception as error:  # nbformat raises whatever its parts raise
            return [f"not valid: {_first_line(error)}"]
    return list(dict.fromkeys(f"not valid: {_first_line(one.message)}" for one in heard))


def _first_line(error: object) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _answers(file: Path) -> tuple[str, list[str]]:
    from runbook_nb._text import counted
    from runbook_nb.share.hydrate import read_answers

    read = read_answers(file)
    problems = [str(one) for one in read if isinstance(one, LoadError)]
    return counted(len(read), "answer"), problems
