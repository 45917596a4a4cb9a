"""By when a vulnerability has to be fixed: findings judged by a directive of CISA.

Examples layer. Sources of the rules:

- BOD 26-04, issued 2026-06-10. Five outcomes over four facts: listed in the catalogue of known
  exploited vulnerabilities, asset publicly exposed, exploitation automatable, technical impact
  total or partial. The table was read, all sixteen rows, from the machine-readable copy of CERT/CC
  (CERTCC/SSVC, ``data/csv/cisa/cisa_bod_26_04_1_0_0.csv``); the date from press reports.
- BOD 22-01, issued 2021-11-03, which 26-04 withdraws: six months for catalogue entries whose
  identifier was assigned before 2021, two weeks for later ones.

The two are versions of one rule set, so that an answer under one can be judged again under the
other. Both take deadlines in days from the day a finding is known; that day is not looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
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

__all__ = ["finding_rows", "findings_tool", "rules", "run", "runbook", "sample", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "patch_deadline"

#: The tool that gives the findings.
SOURCE: Final = "vulnerability_findings"

#: Versions of the rules, oldest first.
VERSIONS: Final = ("bod-22-01", "bod-26-04")

#: Facts about a finding, in the words of the published table: yes or no, partial or total.
FACTS: Final = ("exploited", "exposed", "automatable", "impact")

#: Columns of a table of findings.
COLUMNS: Final = ("vulnerability", "asset", *FACTS)

#: Verdict words of both versions, worst first. What could not be judged stands before what is fine.
RANK: Final = (
    *("3-days-forensic", "3-days", "14-days", "60-days", "six-months"),
    *("declined", "next-upgrade", "no-deadline"),
)

_YEAR: Final = re.compile(r"CVE-(\d{4})-\d{4,}", re.IGNORECASE)

_FILE: Final[Mapping[str, Any]] = {
    "file": {
        "type": "string",
        "title": "Findings",
        "description": "Path of a table of comma-separated values with the columns vulnerability, "
        "asset, exploited (yes or no), exposed (yes or no), automatable (yes or no), impact "
        "(partial or total); an empty cell is a fact nobody knows. An exercise when left out.",
    }
}


@cache
def rules(version: str = "bod-26-04") -> rb.RuleSet:
    """Load the rules of a directive.

    Examples
    --------
    >>> rules("bod-22-01").title, len(rules().rules)
    ('patch-deadline bod-22-01', 16)
    """
    if version not in VERSIONS:
        raise DefinitionError(
            f"{version!r} is no version of these rules",
            where="version",
            fix=f"write {VERSIONS[0]!r} or {VERSIONS[1]!r}",
        )
    return packaged_rules(f"patches_{version.replace('-', '_')}.yaml")


def sample() -> list[dict[str, Any]]:
    """Give the exercise: seventeen findings.

    The identifiers that begin with CVE are real, and in the catalogue. The assets, and what is said
    of exposure, automation and impact there, are made up; so is all of EXERCISE.

    Examples
    --------
    >>> sample()[0]["vulnerability"], len(sample())
    ('CVE-2021-44228', 17)
    """
    return chosen_rows(None, None, COLUMNS, finding_rows, "finding")[0]


def finding_rows(rows: Any) -> list[dict[str, Any]]:
    """Bring findings into the form the rules read.

    Parameters
    ----------
    rows : list of mappings, DataFrame, mapping of columns, or Arrow table
        With the columns of `COLUMNS`. Truth values do for yes and no. What is not known is None.

    Returns
    -------
    list of dict
        ``finding`` (vulnerability and asset) and ``identifier_year`` (that of a CVE identifier,
        else None) beside them. A column that is not there stays away.

    Examples
    --------
    >>> rows = finding_rows([{"vulnerability": "CVE-2014-0160", "asset": "www", "exposed": True}])
    >>> rows[0]["finding"], rows[0]["identifier_year"], rows[0]["exposed"]
    ('CVE-2014-0160 on www', 2014, 'yes')
    """
    return [_finding(row) for row in given_rows(rows)]


def _finding(row: Mapping[str, Any]) -> dict[str, Any]:
    name = str(row.get("vulnerability") or "no identifier").strip()
    asset = str(row.get("asset") or "an asset without a name").strip()
    year = _YEAR.fullmatch(name)
    facts = {fact: _word(row[fact]) for fact in FACTS if fact in row}
    return {
        "finding": f"{name} on {asset}",
        "vulnerability": name,
        "asset": asset,
        **facts,
        "identifier_year": int(year[1]) if year else None,
    }


def _word(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.strip().lower() or None
    return value


def findings_tool(rows: Any = None) -> rb.Tool:
    """Make the source tool: it gives the findings, and says what it cannot tell.

    Parameters
    ----------
    rows : optional
        The findings. Without them the tool takes the path of a file, or gives the exercise.
    """

    @rb.tool(
        name=SOURCE,
        description="Vulnerabilities found on assets, with what is known of each.",
        input_schema=object_schema({} if rows is not None else _FILE),
        blocking=True,
    )
    def read_findings(file: str | None = None) -> Any:
        found, source = chosen_rows(rows, file, COLUMNS, finding_rows, "finding")
        return covered(
            found,
            thing="finding",
            source=source,
            not_checked=[
                rb.Item(
                    "the day each finding became known",
                    why="the verdict is a period; it is counted from that day",
                )
            ],
            cannot_cover=[
                rb.Item(
                    "a date that the catalogue itself sets for an entry",
                    why="the rows say whether it is listed; a date set there goes first",
                ),
                rb.Item(
                    "whether the facts still hold",
                    why="they are as the rows have them; no catalogue is asked",
                ),
            ],
            try_instead="a table with a finding in it",
        )

    return read_findings


def runbook(
    rows: Any = None, version: str = "bod-26-04", seconds: float | None = SECONDS
) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['vulnerability_findings']
    """
    return judged_runbook(
        name=NAME,
        title="patch-deadline",
        description="By when each vulnerability found on an asset has to be fixed.",
        source=SOURCE,
        rules=rules(version),
        subject="finding",
        columns=FACTS if version == VERSIONS[1] else ("exploited", "identifier_year"),
        rank=[word for word in RANK if word in rules(version).branches],
        properties={} if rows is not None else _FILE,
        seconds=seconds,
    )


def toolbox(
    rows: Any = None, version: str = "bod-26-04", seconds: float | None = SECONDS
) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        Findings, as `finding_rows` takes them. The runbook then reads no file.
    version : {"bod-26-04", "bod-22-01"}
    seconds : float, optional
        Time a run may take.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['vulnerability_findings', 'patch_deadline']
    """
    return rb.Toolbox([findings_tool(rows), runbook(rows, version, seconds)])


def run(
    rows: Any = None, *, file: str | Path | None = None, version: str = "bod-26-04"
) -> rb.Envelope:
    """Run the runbook over given findings, those of a file, or the exercise.

    Raises
    ------
    RunbookError
        There is no finding, so that there is no answer (``absent``).

    Examples
    --------
    >>> before = run(version="bod-22-01")
    >>> flips = before.compare(before.rejudge(rules("bod-26-04")))
    >>> flips.to_frame().loc[0, ["subject", "before", "after"]].to_list()
    ['CVE-2021-44228 on shop-1', '14-days', '3-days-forensic']
    """
    args = {"file": None if file is None else str(file)}
    return answer_of(toolbox(rows, version), NAME, args)
