"""Which installed Debian packages are still supported, and by whom.

Examples layer. Source of the rules: ``check-support-status`` of the package
``debian-security-support`` (12+2026.06.30 was read, with its lists): support that has ended, ends
before that of the release, or is limited, found by a pattern over the whole name of the *source*
package. For a list entry past its day the program asks no more; the version it names is the last
one covered. Here a package that is newer than that one gets a word of its own, and neither word
says supported. Second axis: the dates of a release in ``distro-info-data``: regular, long-term and
extended support.

What is read is what the machine has. A list that is not there leaves its question open, and every
package that depends on it is declined.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
from runbook_nb.errors import LoadError
from runbook_nb.examples import dpkg
from runbook_nb.examples.procedure import (
    AS_OF,
    SECONDS,
    answer_of,
    covered,
    given_rows,
    judged_runbook,
    object_schema,
    packaged_rules,
    read_date,
)

__all__ = ["packages_tool", "rules", "run", "runbook", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "package_support"

#: The tool that reads what is installed.
SOURCE: Final = "installed_packages"

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = (
    *("unsupported", "unsupported-newer", "ends-early", "limited", "extended-only"),
    *("declined", "lts-only", "supported"),
)

#: What is shown beside the verdict.
SHOWN: Final = ("version", "source", "reason")

_INPUTS: Final[Mapping[str, Any]] = {"as_of": AS_OF}


@cache
def rules() -> rb.RuleSet:
    """Load the rule set that ships with the package.

    Examples
    --------
    >>> rules().title
    'package-support v1'
    """
    return packaged_rules("packages.yaml")


def packages_tool(
    rows: Any = None,
    *,
    status: str | Path = dpkg.STATUS,
    support: str | Path = dpkg.SUPPORT,
    releases: str | Path = dpkg.RELEASES,
    release: str | None = None,
) -> rb.Tool:
    """Make the source tool: it reads what is installed, and says which source is missing.

    Parameters
    ----------
    rows : optional
        What was read elsewhere, as `dpkg.support_rows` gives it. No file is read then.
    status : str or Path
        The status file of dpkg.
    support : str or Path
        The folder with the lists of ``debian-security-support``.
    releases : str or Path
        The dates of ``distro-info-data``.
    release : str, optional
        Which release of Debian the status file is of, as ``12``; that of this machine by default.
    """

    @rb.tool(
        name=SOURCE,
        description="Debian packages installed on this machine, with what their support is.",
        input_schema=object_schema(_INPUTS),
        blocking=True,
    )
    def read_packages(as_of: str | None = None) -> Any:
        day = read_date(rb.settings.clock().date() if as_of is None else as_of)
        checked: list[Any] = []
        not_checked: list[Any] = []
        if rows is not None:
            found = [{"problem": ""} | row for row in given_rows(rows)]
            source = "the rows given"
        else:
            packages = dpkg.installed_packages(status)
            number = dpkg.read_release() if release is None else release
            source = f"dpkg, {Path(status).name}"
            lists = _lists(support, number, checked, not_checked)
            standing = _standing(releases, number, day, checked, not_checked)
            found = dpkg.support_rows(packages, day, lists, standing)
            found.sort(key=lambda row: str(row["package"]))
        return covered(
            found,
            thing="package",
            source=source,
            checked=checked,
            not_checked=not_checked,
            cannot_cover=[
                rb.Item(
                    "known vulnerabilities", why="the lists say who fixes them, not which there are"
                ),
                rb.Item(
                    "packages from outside Debian, and what dpkg did not install",
                    why="the status file does not say where a package came from, and knows of no "
                    "other installer",
                ),
            ],
            try_instead="the status file of a Debian machine",
        )

    return read_packages


def _lists(
    folder: str | Path, release: str | None, checked: list[Any], not_checked: list[Any]
) -> dpkg.Support | None:
    try:
        if release is None:
            raise LoadError("there is no list for a release without a number")
        support = dpkg.read_support(folder, release)
    except LoadError as error:
        not_checked.append(_missing("which packages have limited or ended support", error))
        return None
    limited, ended = len(support.limited), len(support.ended)
    checked.append(
        f"lists of debian-security-support for Debian {release}: {limited} limited, {ended} ended"
    )
    return support


def _standing(
    path: str | Path, release: str | None, day: date, checked: list[Any], not_checked: list[Any]
) -> str | None:
    try:
        if release is None:
            raise LoadError("the release has no number")
        state, words = dpkg.release_support(path, release, day)
    except LoadError as error:
        not_checked.append(_missing("who supports the release", error))
        return None
    if state is None:
        not_checked.append(rb.Item(f"who supports Debian {release} on {day}", why=words))
    else:
        checked.append(f"dates of distro-info-data: Debian {release}, {words}")
    return state


def _missing(what: str, error: LoadError) -> rb.Item:
    fix = f"; {error.fix}" if error.fix else ""
    return rb.Item(what, why=f"{error.message}{fix}")


def runbook(rows: Any = None, seconds: float | None = SECONDS) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['installed_packages']
    """
    return judged_runbook(
        name=NAME,
        title="package-support",
        description="Which installed Debian packages are still supported, and by whom.",
        source=SOURCE,
        rules=rules(),
        subject="package",
        columns=SHOWN,
        rank=RANK,
        properties=_INPUTS,
        seconds=seconds,
    )


def toolbox(rows: Any = None, seconds: float | None = SECONDS, **files: Any) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        What was read elsewhere, as `dpkg.support_rows` gives it.
    seconds : float, optional
        Time a run may take.
    **files
        ``status``, ``support``, ``releases`` and ``release``, as `packages_tool` takes them.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['installed_packages', 'package_support']
    """
    return rb.Toolbox([packages_tool(rows, **files), runbook(rows, seconds)])


def run(rows: Any = None, *, as_of: date | str | None = None, **files: Any) -> rb.Envelope:
    """Run the runbook on this machine, on files of another, or over rows.

    Parameters
    ----------
    rows : optional
        As `dpkg.support_rows` gives them.
    as_of : date or str, optional
        The date to judge at; that of ``settings.clock`` by default.
    **files
        ``status``, ``support``, ``releases`` and ``release``, as `packages_tool` takes them.

    Raises
    ------
    LoadError
        There is no status file: this is no Debian, and none was given (``source_missing``).
    RunbookError
        Nothing is installed (``absent``).

    Examples
    --------
    >>> row = {"package": "binutils", "version": "2.40-2", "source": "binutils",
    ...        "support_ended": False, "support_ends": False, "limited": True,
    ...        "release_support": "lts"}
    >>> run([row], as_of="2026-11-29").why("binutils").sentence
    'limited by rule 6 of package-support v1: limited = true'
    """
    day = None if as_of is None else read_date(as_of).isoformat()
    return answer_of(toolbox(rows, **files), NAME, {"as_of": day})
