"""The command that checks files before anything relies on them: rules, notebooks, answers.

Command line layer. Each kind of file is read by what reads it anywhere else; the command only says
what came of it, one line or more per file, and nothing of a file is run.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from runbook_nb.cli.files import AS_JSON, DEBUG
from runbook_nb.cli.main import ANSWERED, DIFFERENT
from runbook_nb.errors import LoadError, RunbookError

#: The form of what was found as JSON values.
CHECK_FORMAT: Final = "runbook_nb/check/1"


def check(
    files: Annotated[
        list[Path],
        typer.Argument(help="Rules (.yaml, .json), notebooks (.ipynb), answers (.html, .json)."),
    ],
    as_json: AS_JSON = False,
    debug: DEBUG = False,
) -> int:
    """Check rule sets, notebooks and answers, and name what is wrong with them.

    The exit status is 1 when something is wrong. Whether what an answer says is true is another
    question; the verify command asks it.
    """
    found = [_checked(file) for file in files]
    if as_json:
        told = [
            {"file": str(file), "holds": said, "problems": problems}
            for file, said, problems in found
        ]
        print(json.dumps({"format": CHECK_FORMAT, "files": told}, ensure_ascii=False, indent=1))
    else:
        for file, said, problems in found:
            print(f"{file}: {said}")
            for problem in problems:
                print("  " + problem.replace("\n", "\n  "))
    return DIFFERENT if any(problems for _, _, problems in found) else ANSWERED


def _checked(file: Path) -> tuple[Path, str, list[str]]:
    try:
        return file, *_read(file)
    except RunbookError as error:
        return file, "wrong", [str(error)]


def _read(file: Path) -> tuple[str, list[str]]:
    kind = file.suffix.lower()
    if kind in (".yaml", ".yml") or (kind == ".json" and _is_rules(file)):
        return _rules(file), []
    if kind == ".ipynb":
        return _notebook(file)
    return _answers(file)


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
