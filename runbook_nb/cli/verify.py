"""The command that checks answers in files.

Command line layer. Everything the command needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from runbook_nb._text import visible_json
from runbook_nb.cli.main import ANSWERED, CONTRADICTED, NO_ANSWER, NOT_CARRIED, one_line, say_error
from runbook_nb.errors import LoadError

if TYPE_CHECKING:
    from rich.console import Console

    from runbook_nb.artifacts import BoundArtifacts
    from runbook_nb.record.claims import Claim
    from runbook_nb.record.verification import Verification

#: The session of a toolbox that was given none.
DEFAULT_SESSION: Final = "local"
#: Characters of what is claimed that are told of a claim that nothing speaks against.
_CLAIMED: Final = 160


def verify(  # noqa: PLR0917 - options of a command
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Notebooks (.ipynb), pages (.html), envelopes (.json), journals (.jsonl, .sqlite)."
        ),
    ],
    rules: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Rules you have from elsewhere (.yaml, .json)."),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A recording of the run you have from elsewhere."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The store its tickets are redeemed in: a folder of FileArtifacts, or a file of "
            "SqliteArtifacts.",
        ),
    ] = None,
    session: Annotated[
        str,
        typer.Option(metavar="NAME", help="The session in which it was filed, with --store."),
    ] = DEFAULT_SESSION,
    head: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[KEY=]DIGEST",
            help="The head of a journal, noted elsewhere; with its key where it keeps several.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List the confirmed claims, too, not only their number.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> int:
    """Check every claim of the answers and journals in files. Nothing in a file is run.

    What can be worked out anew from what a file carries is: counters, table, ledger, verdicts,
    meanings, digests, and what is shown of them; of a journal, each decision of its plans.

    Exit status: 0 nothing is contradicted; 1 a claim is contradicted; 3 a file cannot be read; 4 a
    file carries no answer. Of several, 1 comes before 3, and 3 before 4.
    """
    from runbook_nb.rules import RuleSet
    from runbook_nb.share.verify import verify_file

    given = [RuleSet.load(path) for path in rules or ()]
    heads = _heads(head or ())
    kept = None if store is None else _store_at(store, session)
    more: dict[str, Any] = {"rules": given, "recording": recording, "head": heads}
    told: list[dict[str, Any]] = []
    checked: list[Verification] = []
    statuses = set()
    for file in files:
        try:
            found = verify_file(file, artifacts=kept, **more)
        except LoadError as error:
            if debug:
                raise
            say_error(one_line(error))
            statuses.add(NO_ANSWER)
            told.append({"file": str(file), "status": "unreadable", "message": one_line(error)})
            continue
        status = _status(found)
        checked += found
        statuses.add(status)
        if as_json:
            told.append(_as_json(file, found))
        else:
            _print(file, found, every=every)
    if checked and not as_json:
        _print_last(checked)
    if as_json:
        print(visible_json(json.dumps(told, indent=1, ensure_ascii=False)))
    return next(
        (one for one in (CONTRADICTED, NO_ANSWER, NOT_CARRIED) if one in statuses), ANSWERED
    )


def _store_at(path: Path, session: str) -> BoundArtifacts:
    """Open the store at a path, as the session sees it; nothing is made where none is."""
    from runbook_nb.artifacts import BoundArtifacts, FileArtifacts, SqliteArtifacts
    from runbook_nb.tools import Session

    if not path.exists():
        raise LoadError(
            f"there is no store at {path}",
            where="--store",
            fix="give the folder of FileArtifacts, or the file of SqliteArtifacts",
        )
    kept = FileArtifacts(path) if path.is_dir() else SqliteArtifacts(path)
    return BoundArtifacts(kept, Session(session).scope)


def _heads(given: Sequence[str]) -> str | dict[str, str] | None:
    """Read the heads that were noted: one of a journal, or several with their keys."""
    pairs = [one.rpartition("=") for one in given]
    if len(pairs) == 1 and not pairs[0][1]:
        return pairs[0][2]
    return {key: digest for key, _, digest in pairs} or None


def _status(found: Sequence[Verification]) -> int:
    if not found:
        return NOT_CARRIED
    return ANSWERED if all(one.ok for one in found) else CONTRADICTED


def _as_json(file: Path, found: Sequence[Verification]) -> dict[str, Any]:
    words = {ANSWERED: "not contradicted", CONTRADICTED: "contradicted", NOT_CARRIED: "not carried"}
    return {
        "file": str(file),
        "status": words[_status(found)],
        "answers": [one.to_dict() for one in found],
    }


def _print(file: Path, found: Sequence[Verification], *, every: bool) -> None:
    """Print what became of the answers of a file, what is contradicted claim by claim."""
    console = _console()
    if not found:
        _say(console, f"{file}: not carried, the file holds no answer that can be checked")
        return
    for one in found:
        _say(console, f"{file}: {one.name}")
        _say(console, one.sentence, style="bold")
        for claim in one.contradicted:
            console.print()
            _say(console, f"contradicted  {claim.id}", style="bold red")
            for term, said in _parts(claim):
                _say(console, f"{term:<10}{said}", style="red", indent=2, hanging=12)
        if one.contradicted:
            console.print()
        if every:
            _print_alike(console, "confirmed, by", one.confirmed, "green")
        _print_alike(console, "cannot be checked, because", one.unchecked, "dim")


def _parts(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a claim that is contradicted, a line each."""
    from runbook_nb.record.claims import quoted

    yield "claimed", claim.claimed
    if claim.said:
        yield "found", claim.said
    else:
        yield "found", quoted(claim.found)
        yield "expected", quoted(claim.expected)
    yield "by", claim.basis
    if claim.where:
        yield "where", claim.where


def _print_alike(console: Console, words: str, claims: Sequence[Claim], style: str) -> None:
    """Print claims that fared alike below the reason they share."""
    from runbook_nb._text import clip

    alike: dict[str, list[Claim]] = {}
    for claim in claims:
        alike.setdefault(claim.because or claim.basis, []).append(claim)
    for why, ones in alike.items():
        _say(console, f"{words} {why}", style=style)
        for claim in ones:
            said = f"{claim.id}: {clip(claim.claimed, _CLAIMED)}"
            _say(console, said, style=style, indent=2, hanging=6)


def _print_last(told: Sequence[Verification]) -> None:
    """Print whether anything is contradicted, of all files, below everything else."""
    from runbook_nb._text import counted

    count = sum(len(one.contradicted) for one in told)
    words = f"{counted(count, 'claim')} {'is' if count == 1 else 'are'}" if count else "nothing is"
    _say(_console(), f"{words} contradicted", style="bold red" if count else "bold")


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def _say(
    console: Console, said: str, *, style: str = "", indent: int = 0, hanging: int = 2
) -> None:
    """Print a paragraph as wide as the console is, its first line less indented than the rest."""
    from textwrap import wrap

    from rich.text import Text

    from runbook_nb._text import visible

    lines = wrap(
        visible(said),
        max(console.width, 40),
        initial_indent=" " * indent,
        subsequent_indent=" " * hanging,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(Text(line, style=style), no_wrap=True, overflow="ignore", crop=False)
