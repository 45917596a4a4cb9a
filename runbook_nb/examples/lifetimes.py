"""Which certificates run out, and which were issued for too long: a bundle, judged at a moment.

Examples layer. Sources of the rules:

- Client certificates: the Kubernetes runbook on their expiry. Less than 7 days left is a warning,
  less than 24 hours critical. Signing authority of a cluster: the OpenShift runbook on the signer
  of etcd; less than a year left is critical. The pages were read.
- Server certificates of public authorities: CA/Browser Forum ballot SC-081v3, by date of issue: 398
  days at most (from 2020-09-01); from 2026-03-15 200; from 2027-03-15 100; from 2029-03-15 47. The
  schedule agrees across six write-ups. A day is 86,400 seconds, both ends included, and a day begun
  counts as a whole one.

No file says whether a public authority signed it, so that is an input; roots of public trust are
judged in ``certificates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

import runbook_nb as rb
from runbook_nb.examples.bundle import lifetime_rows, source_name
from runbook_nb.examples.procedure import (
    SECONDS,
    answer_of,
    covered,
    given_rows,
    judged_runbook,
    object_schema,
    packaged_rules,
    read_moment,
)

__all__ = ["bundle_tool", "lifetime_rows", "rules", "run", "runbook", "toolbox"]

#: The runbook's name as a tool.
NAME: Final = "certificate_lifetimes"

#: The tool that reads the bundle.
SOURCE: Final = "certificate_terms"

#: Verdict words, worst first. What could not be judged stands before what is fine.
RANK: Final = ("expired", "critical", "too-long", "warning", "declined", "within-limits")

#: What is shown beside the verdict.
SHOWN: Final = ("hours_left", "lifetime_days", "issued")

_AS_OF: Final[Mapping[str, Any]] = {
    "type": "string",
    "format": "date-time",
    "title": "Moment",
    "description": "The moment to judge at, with its zone, as 2026-11-29T15:00:00Z; now when left "
    "out.",
}

_BUNDLE: Final[Mapping[str, Any]] = {
    "type": "string",
    "title": "Bundle",
    "description": "Path of a file with certificates in PEM form.",
}

_AUTHORITY: Final[Mapping[str, Any]] = {
    "enum": ["public", "private"],
    "title": "Authority",
    "description": "Who signed them: an authority of public trust, whose server certificates the "
    "schedule binds, or a private one, as that of a cluster. Left out, what depends on it is "
    "declined.",
}


@cache
def rules() -> rb.RuleSet:
    """Load the rule set that ships with the package.

    Examples
    --------
    >>> rules().title
    'certificate-lifetime sc-081v3'
    """
    return packaged_rules("lifetimes.yaml")


def inputs_of(rows: Any, bundle: str | Path | None) -> tuple[dict[str, Any], list[str]]:
    """Name the inputs that are left when rows or a bundle are given, and those that are required.

    Examples
    --------
    >>> inputs_of(None, "chain.pem")[1], list(inputs_of([], None)[0])
    ([], ['as_of'])
    """
    if rows is not None:
        return {"as_of": _AS_OF}, []
    inputs = {"bundle": _BUNDLE} if bundle is None else {}
    return inputs | {"authority": _AUTHORITY, "as_of": _AS_OF}, list(inputs)


def bundle_tool(rows: Any = None, bundle: str | Path | None = None) -> rb.Tool:
    """Make the source tool: it reads a bundle, and says what it cannot tell.

    Parameters
    ----------
    rows : optional
        What was read elsewhere, as `lifetime_rows` gives it, with ``authority``.
    bundle : str or Path, optional
        The file; an input of the tool where it is left out.
    """
    fixed = bundle

    @rb.tool(
        name=SOURCE,
        description="Certificates of a bundle: issued when, for how long, and for what.",
        input_schema=object_schema(*inputs_of(rows, bundle)),
        blocking=True,
    )
    def read_terms(
        as_of: str | None = None, bundle: str | None = None, authority: str | None = None
    ) -> Any:
        moment = read_moment(rb.settings.clock() if as_of is None else as_of)
        if rows is not None:
            found, source = [{"problem": ""} | row for row in given_rows(rows)], "the rows given"
        else:
            path = Path(fixed or bundle or "")  # the schema asks for one of them
            # Where it was not said it stays unsaid: no word stands in for it.
            found = [row | {"authority": authority or ""} for row in lifetime_rows(moment, path)]
            source = source_name(path)
        return covered(
            found,
            thing="certificate",
            source=source,
            not_checked=[
                rb.Item(
                    "whether each is one that is in use",
                    why="the file holds certificates, not what a server or client shows",
                ),
                rb.Item(
                    "how soon a server certificate ends",
                    why="the schedule limits for how long it is issued; whether it has expired is "
                    "all that is judged of its end",
                ),
            ],
            cannot_cover=[
                rb.Item(
                    "whether one was withdrawn",
                    why="that is asked of its authority; a certificate does not know",
                ),
                rb.Item(
                    "whether it is what the word on its authority says",
                    why="no chain is built; the word is taken from whoever asks",
                ),
            ],
            try_instead="a bundle in PEM form",
        )

    return read_terms


def runbook(
    rows: Any = None, bundle: str | Path | None = None, seconds: float | None = SECONDS
) -> rb.Tool:
    """Declare the runbook.

    Examples
    --------
    >>> runbook().composed_of
    ['certificate_terms']
    """
    properties, required = inputs_of(rows, bundle)
    return judged_runbook(
        name=NAME,
        title="certificate-lifetimes",
        description="Which certificates run out, and which were issued for too long.",
        source=SOURCE,
        rules=rules(),
        subject="certificate",
        columns=SHOWN,
        rank=RANK,
        properties=properties,
        required=required,
        seconds=seconds,
    )


def toolbox(
    rows: Any = None, bundle: str | Path | None = None, seconds: float | None = SECONDS
) -> rb.Toolbox:
    """Put the runbook and its source under one roof.

    Parameters
    ----------
    rows : optional
        What was read elsewhere, as `lifetime_rows` gives it, with ``authority``.
    bundle : str or Path, optional
        A PEM file; an input of the runbook where it is left out.
    seconds : float, optional
        Time a run may take.

    Examples
    --------
    >>> [tool.name for tool in toolbox()]
    ['certificate_terms', 'certificate_lifetimes']
    """
    return rb.Toolbox([bundle_tool(rows, bundle), runbook(rows, bundle, seconds)])


def run(
    rows: Any = None,
    *,
    bundle: str | Path | None = None,
    authority: str | None = None,
    as_of: date | str | None = None,
) -> rb.Envelope:
    """Run the runbook over a bundle, or over rows read elsewhere.

    Parameters
    ----------
    rows : optional
        As `lifetime_rows` gives them, with ``authority``.
    bundle : str or Path, optional
        A PEM file.
    authority : {"public", "private"}, optional
        Who signed what is in the bundle.
    as_of : date, datetime or str, optional
        The moment to judge at; that of ``settings.clock`` by default.

    Raises
    ------
    ToolRefused
        There are neither rows nor a bundle, or the word on the authority is neither of the two.
    RunbookError
        The bundle holds no certificate (``absent``).

    Examples
    --------
    >>> import certifi
    >>> answer = run(bundle=certifi.where(), authority="public", as_of="2026-11-29")
    >>> list(answer.verdicts.counts())
    ['declined']
    """
    args = {
        "as_of": None if as_of is None else read_moment(as_of).isoformat(),
        "authority": authority if rows is None else None,
    }
    return answer_of(toolbox(rows, bundle), NAME, args)
