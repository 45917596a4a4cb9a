"""Rule sets in files: YAML read as YAML 1.2 core, JSON read strictly, problems told with lines.

A text is parsed into plain values beside the line each stands on. Nothing is guessed: ``yes`` is
a word, ``12:30`` is a text, ``2026-01-02`` is a text (a date is ``{"$date": ...}``). Duplicate
keys, aliases, anchors, tags, several documents, and what is too large or too deep are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runbook_nb._parsed import FORMATS, Bounds, Malformed, Parsed, read
from runbook_nb._text import clip, did_you_mean, visible
from runbook_nb._value import frozen
from runbook_nb.errors import LoadError, Problem, RuleError

if TYPE_CHECKING:
    from runbook_nb.rules.ruleset import RuleSet

#: What is read at most. A rule set repeats nothing: anchors are refused.
BOUNDS: Final = Bounds(characters=1_000_000, depth=32, repeats=0, what="rule set")


@frozen
class PlacedProblem(Problem):
    """One thing that is wrong with the text of a rule set; ``where`` says its file and its line.

    Attributes
    ----------
    place : str or None
        The place in the rule set: ``rules[1].then``.
    line, column : int or None
        Where that stands in the text, counted from 1.
    """

    place: str | None = None
    line: int | None = None
    column: int | None = None


def load_file(path: str | Path) -> RuleSet:
    """Build a rule set from a file, read by its ending."""
    place = Path(path)
    kind = FORMATS.get(place.suffix.lower())
    name = visible(place.name)
    if kind is None:
        raise LoadError(
            f"cannot tell how {name!r} is written",
            where=name,
            fix="give it the ending .yaml, .yml or .json",
        )
    try:
        size = place.stat().st_size
        if size > 4 * BOUNDS.characters:
            raise LoadError(f"{name!r} is too large ({size} bytes)", where=name)
        text = place.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"{name!r} is not UTF-8 text", where=name) from error
    except OSError as error:
        raise LoadError(f"cannot read {name!r}: {error.strerror}", where=name) from error
    return load_text(text, kind, name)


def load_text(
    text: str, kind: str, name: str | None = None, *, given: Mapping[str, str] | None = None
) -> RuleSet:
    """Build a rule set from text; problems carry the line they stand on.

    What is ``given`` beside the text, its name say, belongs to it as if it stood there.
    """
    from runbook_nb.rules.ruleset import RuleSet

    parsed = parse(text, kind, name)
    if given and isinstance(parsed.value, dict):
        _refuse_otherwise(parsed, given)
        parsed.value = {**given, **parsed.value}
    try:
        return RuleSet.from_dict(parsed.value)
    except RuleError as error:
        of = f"{name}, " if name else ""
        problems = []
        for problem in error.problems:
            line = parsed.line_of(problem.where)
            where = problem.where if line is None else f"line {line}, {problem.where}"
            problems.append(
                PlacedProblem(
                    message=problem.message,
                    where=f"{of}{where}",
                    fix=problem.fix,
                    place=problem.where,
                    line=line,
                    column=parsed.column_of(problem.where),
                )
            )
        raise RuleError(
            error.message, code=error.code, where=name, fix=error.fix, problems=problems
        ) from None


def _refuse_otherwise(parsed: Parsed, given: Mapping[str, str]) -> None:
    for key, value in given.items():
        said = parsed.value.get(key, value)
        if said != value:
            place = f"line {parsed.line_of(key)}"
            raise LoadError(
                f"{place} says that the {key} is {clip(repr(said), 60)}, "
                f"and {clip(repr(value), 60)} was given",
                where=place,
                fix="say it once",
            )


def parse(text: str, kind: str, name: str | None = None) -> Parsed:
    r"""Parse a text into plain values with their lines.

    Examples
    --------
    >>> parsed = parse("name: r\nrules:\n  - then: yes", "yaml")
    >>> parsed.value, parsed.lines["rules[0].then"]
    ({'name': 'r', 'rules': [{'then': 'yes'}]}, 3)
    """
    if kind not in ("yaml", "json"):
        raise LoadError(
            f"there is no format {kind!r}",
            fix=did_you_mean(str(kind), ("yaml", "json")) or "use 'yaml' or 'json'",
        )
    if not isinstance(text, str):
        raise LoadError(f"rules are read from text, not {type(text).__name__}")
    try:
        return read(text, kind, BOUNDS)
    except Malformed as bad:
        if bad.code == "too_large":
            said = f"the text is longer than {BOUNDS.characters} characters"
            raise LoadError(said, where=name) from None
        what = f"{name} cannot be read" if name else f"the {kind.upper()} text cannot be read"
        place = f"line {bad.line}" if bad.line else None
        problem = PlacedProblem(
            message=bad.message, where=place, fix=bad.fix, line=bad.line, column=bad.column
        )
        raise LoadError(what, where=place, problems=[problem]) from None
