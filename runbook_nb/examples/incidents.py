"""In which order incidents are handled: NIST's categories, and a matrix that you declare.

Examples layer. Source of the categories: NIST SP 800-61 revision 2 (August 2012), section 3.2.6,
tables 3-2 to 3-4: functional impact (none, low, medium, high), information impact (none, privacy
breach, proprietary breach, integrity loss; but for none, several may hold at once), recoverability
(regular, supplemented, extended, not recoverable). Secondary pages were read; the words are as
generally quoted. Revision 3 (April 2025), which replaces it, names risk factors instead.

Neither fixes what the categories add up to. So there is no default here: without a declared matrix
every incident is declined, and the answer says ``undeclared``. ``incidents.yaml`` is an exercise to
begin from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
from runbook_nb._text import counted, listed
from runbook_nb.errors import DefinitionError
from runbook_nb.examples.procedure import (
    SECONDS,
    answer_of,
    chosen_rows,
    covered,
    given_rows,
    judged_runbook,
    object_schema,
    packaged_rules,
)

__all__ = [
    "exercise",
    "incident_rows",
    "incidents_tool",
    "run",
    "runbook",
    "sample",
    "toolbox",
    "weaknesses",
]

#: The runbook's name as a tool.
NAME: Final = "incident_priority"

#: The tool that gives the incidents.
SOURCE: Final = "incident_records"

#: The categories and their words, as the guide has them.
CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "functional": ("none", "low", "medium", "high"),
    "information": ("none", "privacy breach", "proprietary breach", "integrity loss"),
    "recoverability": ("regular", "supplemented", "extended", "not recoverable"),
}

#: Columns of a table of incidents.
COLUMNS: Final = ("incident", *CATEGORIES)

_FILE: Final[Mapping[str, Any]] = {
    "file": {
        "type": "string",
        "title": "Incidents",
        "description": "Path of a table of comma-separated values with the columns incident, "
        "functional (none, low, medium, high), information (none, privacy breach, proprietary "
        "breach, integrity loss; several with a semicolon between them), recoverability (regular, "
        "supplemented, extended, not recoverable). An exercise when left out.",
    }
}


@cache
def exercise() -> rb.RuleSet:
    """Load the matrix that ships as an exercise. It is nobody's; copy it and make it yours.

    Examples
    --------
    >>> exercise().title
    'incident-priority exercise-1'
    """
    return packaged_rules("incidents.yaml")


@cache
def undeclared() -> rb.RuleSet:
    """Give the rules that hold where nobody declared any: every incident is declined.

    Examples
    --------
    >>> rb.decide({"functional": "high"}, undeclared()).branch
    'declined'
    """
    return rb.RuleSet(
        "incident-priority",
        "undeclared",
        [
            rb.Rule(
                {"functional": {"missing": True}},
                then="declined",
                label="the functional impact is not known, and no matrix was declared",
            )
        ],
        default=rb.Default(
            "declined", label="no matrix was declared, and the guide fixes no combined score"
        ),
    )


def sample() -> list[dict[str, Any]]:
    """Give the exercise: eleven incidents, all made up.

    Examples
    --------
    >>> sample()[6]["information"]
    'privacy breach; proprietary breach'
    """
    return chosen_rows(None, None, COLUMNS, incident_rows, "incident")[0]


def incident_rows(rows: Any) -> list[dict[str, Any]]:
    """Bring incidents into the form a matrix reads.

    Parameters
    ----------
    rows : list of mappings, DataFrame, mapping of columns, or Arrow table
        With the columns of `COLUMNS`. ``information`` is a list, or text with semicolons.

    Returns
    -------
    list of dict
        The categories, several words of ``information`` with semicolons between them, and
        ``problem``. A word that the guide does not
        have is no value: it becomes None, and ``problem`` names it. A column that is not there
        stays away.

    Examples
    --------
    >>> row = incident_rows([{"incident": "a", "functional": "hihg", "information": "None"}])[0]
    >>> row["functional"], row["information"], row["problem"]
    (None, 'none', "functional is 'hihg', not one of none, low, medium and high")
    """
    return [_incident(row) for row in given_rows(rows)]


def _incident(row: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = {"incident": str(row.get("incident") or "an incident without a name")}
    problems = []
    for category, words in CATEGORIES.items():
        if category not in row:
            continue
        given = row[category]
        parts = given.split(";") if isinstance(given, str) else given
        found = [str(part).strip().lower() for part in _as_list(parts)]
        wrong = [word for word in found if word not in words]
        if wrong:
            problems.append(f"{category} is {wrong[0]!r}, not one of {listed(words)}")
        elif len(found) > 1 and (category != "information" or "none" in found):
            problems.append(f"{category} is {listed(found)}, which cannot hold together")
        else:
            read[category] = "; ".join(found) or None
            continue
        read[category] = None
    return read | {"problem": "; ".join(problems)}


def _as_list(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def priorities(matrix: rb.RuleSet) -> tuple[str, ...]:
    """Give the verdict words of a matrix, worst first: in the order its rules first name them.

    Examples
    --------
    >>> priorities(exercise())
    ('immediate', 'urgent', 'soon', 'declined', 'planned')
    """
    words = dict.fromkeys(rule.then for rule in matrix.rules if rule.then != "declined")
    last = matrix.branches[0]
    named = [word for word in words if word != last] + [word for word in words if word == last]
    if last not in words and last != "declined":
        named.append(last)
    return (*named[:-1], "declined", *named[-1:])


def weaknesses(matrix: rb.RuleSet) -> Iterator[rb.Item]:
    """Try a matrix on every combination of the categories, and name what it leaves open.

    Two things are asked: that it has a word for each of the 64 combinations, and that integrity
    loss that is not recoverable has the highest priority, whatever still works.

    Examples
    --------
    >>> list(weaknesses(exercise()))
    []
    """
    open_ends, softened = [], []
    worst = next(word for word in priorities(matrix) if word != "declined")
    for functional, information, recoverability in product(*CATEGORIES.values()):
        facts = {
            "functional": functional,
            "information": information,
            "recoverability": recoverability,
        }
        word = rb.decide(facts, matrix).branch
        name = f"{functional}, {information}, {recoverability}"
        if word == "declined":
            open_ends.append(name)
        elif (information, recoverability) == ("integrity loss", "not recoverable"):
            softened += [f"{functional} gives {word!r}"] if word != worst else []
    if open_ends:
        yield rb.Item(
            f"{counted(len(open_ends), 'combination')} of categories that the matrix has no "
            "priority for",
            why=f"the first is {open_ends[0]}; such incidents are declined",
        )
    if softened:
        yield rb.Item(
            "whether integrity loss that is not recoverable is averaged away",
            why=f"the matrix does not always give it {worst!r}, its highest: with functional "
            f"impact {'; '.join(softened)}",
        )


def incidents_tool(rows: Any = None, matrix: rb.RuleSet | None = None) -> rb.Tool:
    """Make the source tool: it gives the incidents, and says what a matrix leaves open.

    Parameters
    ----------
    rows : optional
        The incidents. Without them the tool takes the path of a file, or gives the exercise.
    matrix : RuleSet, optional
        What will judge them.
    """

    @rb.tool(
        name=SOURCE,
        description="Incidents with their functional and information impact and recoverability.",
        input_schema=object_schema({} if rows is not None else _FILE),
        blocking=True,
    )
    def read_incidents(file: str | None = None) -> Any:
        found, source = chosen_rows(rows, file, COLUMNS, incident_rows, "incident")
        odd = [row for row in found if row["problem"]]
        words = [
            rb.Item(
                f"{counted(len(odd), 'incident')} with a word that the guide does not have",
                why=f"the first, {row['incident']}: {row['problem']}",
            )
            for row in odd[:1]
        ]
        missing = rb.Item(
            f"the priority of {counted(len(found), 'incident')}: the matrix is undeclared",
            why="the guide names categories and fixes no combined score; what they add up to is "
            "the organisation's to declare",
        )
        return covered(
            found,
            thing="incident",
            source=source,
            not_checked=[
                *([missing] if matrix is None else weaknesses(matrix)),
                *words,
            ],
            cannot_cover=[
                rb.Item(
                    "whether an incident was put into the right categories",
                    why="they are as the rows have them, and who wrote them is not known",
                ),
                rb.Item(
                    "how critical the asset is, who attacks and how far they are",
                    why="revision 3 of the guide asks for these; revision 2, which is followed "
                    "here, has no category for them",
                ),
            ],
            report={"matrix": "undeclared" if matrix is None else matrix.title},
            try_instead="a table with an incident in it",
        )

    return read_incidents


def as_matrix(matrix: rb.RuleSet | str | Path | None) -> rb.RuleSet | None:
    """Take a matrix as a rule set, or as the path of its file.

    Raises
    ------
    DefinitionError
        It is something else, or it has no verdict.
    """
    if matrix is None:
        return None
    if isinstance(matrix, str | Path):
        matrix = rb.RuleSet.load(matrix)
    if not isinstance(matrix, rb.RuleSet):
        raise DefinitionError(
            f"a matrix is a RuleSet or the path of its file, not {type(matrix).__name__}",
            where="matrix",
            fix="write rb.RuleSet(…), or copy incidents.yaml and give its path",
        )
    if set(matrix.branches) == {"declined"}:
        raise DefinitionError(
            f"the matrix {matrix.title!r} has no priority in it",
            where="matrix",
            fix="name at least one in then: of a rule",
        )
    return matrix


def runbook(
    rows: Any = None,
    matrix: rb.RuleSet | str | Path | None = None,
    seconds: float | None = SECONDS,
) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['incident_records']
    """
    declared = as_matrix(matrix)
    return judged_runbook(
        name=NAME,
        title="incident-priority",
        description="In which order incidents are to be handled, by the organisation's own matrix.",
        source=SOURCE,
        rules=undeclared() if declared is None else declared,
        subject="incident",
        columns=tuple(CATEGORIES),
        rank=("declined",) if declared is None else priorities(declared),
        properties={} if rows is not None else _FILE,
        declared=declared is not None,
        seconds=seconds,
    )


def toolbox(
    rows: Any = None,
    matrix: rb.RuleSet | str | Path | None = None,
    seconds: float | None = SECONDS,
) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        Incidents, as `incident_rows` takes them. The runbook then reads no file.
    matrix : RuleSet or path, optional
        What the categories add up to. Without it nothing does.
    seconds : float, optional
        Time a run may take.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['incident_records', 'incident_priority']
    """
    declared = as_matrix(matrix)
    return rb.Toolbox([incidents_tool(rows, declared), runbook(rows, declared, seconds)])


def run(
    rows: Any = None,
    *,
    file: str | Path | None = None,
    matrix: rb.RuleSet | str | Path | None = None,
) -> rb.Envelope:
    """Run the runbook over given incidents, those of a file, or the exercise.

    Raises
    ------
    RunbookError
        There is no incident, so that there is no answer (``absent``).

    Examples
    --------
    >>> run()["result"]["rule_version"], run(matrix=exercise())["result"]["rule_version"]
    ('undeclared', 'exercise-1')
    """
    args = {"file": None if file is None else str(file)}
    return answer_of(toolbox(rows, matrix), NAME, args)
