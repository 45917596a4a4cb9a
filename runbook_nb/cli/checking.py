"""The command that checks files before anything relies on them: rules, playbooks, answers.

Command line layer. Each kind of file is read by what reads it anywhere else; the command only says
what came of it, one line or more per file, and nothing of a file is run.
"""

from __future__ import annotations

import json
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from runbook_nb._text import visible, visible_json
from runbook_nb.cli.files import AS_JSON, DEBUG
from runbook_nb.cli.findings import Finding, Found, findings_of, refused
from runbook_nb.cli.main import ANSWERED, DIFFERENT, NO_ANSWER, in_options, one_line
from runbook_nb.cli.playbookfiles import Around, holds_playbook, read_playbook, read_skill_file
from runbook_nb.errors import LoadError, RunbookError

if TYPE_CHECKING:
    from runbook_nb.tools.toolbox import Toolbox

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

    Whether what an answer says is true is another question; the verify command asks it.

    Exit status: 0 nothing is wrong, though there may be warnings; 1 something is wrong; 3 a file
    cannot be read. Of several, 1 comes before 3.
    """
    around = Around(tools=_opened(tools), skills=skills, policy=policy.value)
    found = [(file, _checked(file, around)) for file in files]
    if as_json:
        told = [{"file": str(file), **one.to_dict()} for file, one in found]
        whole = {"format": CHECK_FORMAT, "files": told}
        print(visible_json(json.dumps(whole, ensure_ascii=False, indent=1)))
    else:
        for file, one in found:
            print(f"{visible(str(file))}: {one.said}")
            for line in one.lines():
                print(f"  {in_options(line)}")
    if any(one.problems and one.read for _, one in found):
        return DIFFERENT
    return ANSWERED if all(one.read for _, one in found) else NO_ANSWER


def _opened(name: str | None) -> Toolbox | None:
    """Open the toolbox, before any file is looked at: a wrong name is no fault of theirs."""
    if name is None:
        return None
    from runbook_nb.cli.finding import find_book, open_book

    try:
        return open_book(find_book(name))
    except RunbookError as error:
        raise typer.BadParameter(one_line(error), param_hint="--tools") from None


def _checked(file: Path, around: Around) -> Found:
    if file.is_dir():
        return _unread(file, "it is a folder", "name the files in it")
    if not file.exists():
        return _unread(file, "No such file or directory", None)
    try:
        return _read(file, around)
    except RunbookError as error:
        return refused(error)


def _unread(file: Path, why: str, fix: str | None) -> Found:
    said = f"{visible(str(file))} cannot be read: {why}"
    return refused(LoadError(said, code="cannot_load", where=str(file), fix=fix), read=False)


def _read(file: Path, around: Around) -> Found:
    kind = file.suffix.lower()
    if file.name == "SKILL.md":
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
    return (
        f"rules {visible(rules.title)}, {counted(len(rules.rules), 'rule')}, digest {rules.digest}"
    )


def _notebook(file: Path) -> tuple[str, list[Finding]]:
    said, problems = _answers(file)
    return said, [*_form_problems(file), *problems]


def _form_problems(file: Path) -> list[Finding]:
    """Say what nbformat finds, at the file's own minor version; what it only warns of counts."""
    import nbformat

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            document = nbformat.read(file, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
            nbformat.validate(document)
        except Exception as error:  # nbformat raises whatever its parts raise
            return [_not_valid(_first_line(error))]
    return [_not_valid(said) for said in dict.fromkeys(_first_line(one.message) for one in heard)]


def _not_valid(said: str) -> Finding:
    return Finding(code="not_valid", message=said, text=f"not valid: {said}")


def _first_line(error: object) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _answers(file: Path) -> tuple[str, list[Finding]]:
    from runbook_nb._text import counted
    from runbook_nb.share.hydrate import read_answers

    read = read_answers(file)
    problems = [it for one in read if isinstance(one, LoadError) for it in findings_of(one)]
    return counted(len(read), "answer"), problems
