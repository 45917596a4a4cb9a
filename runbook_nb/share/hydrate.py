"""Reading answers back out of files: notebooks, pages, and the plain JSON form.

Sharing layer. A file is data of whoever wrote it. Nothing in it is run, and nothing it says is
taken for true: what comes back is what the file claims, for its evidence to be looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from runbook_nb._json import canonical
from runbook_nb._text import clip, counted, show, visible
from runbook_nb._value import frozen
from runbook_nb.artifacts import Record
from runbook_nb.errors import LoadError
from runbook_nb.render.embed import MARK, read_damaged, read_embedded
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.payload import PAYLOAD_FORMAT
from runbook_nb.share.shown import OWN_PAGE, cards_in
from runbook_nb.share.travelling import (
    EXPLAINED,
    NAME,
    FiledBeside,
    about_written,
    carries,
    once,
    read_travelling,
)

#: Bytes of a file that is read at most.
MAX_FILE: Final = 256 * 1024 * 1024

#: Answers that are listed where a file holds several.
MAX_LISTED: Final = 10


@frozen
class Found:
    """A machine-readable form in a file.

    Attributes
    ----------
    place : str
        Where it is, in words.
    payload : mapping or None
        None when it is there and cannot be read.
    carrier : {"metadata", "comment", "file"}
        What carries it: the metadata of an output, the comment in what it shows, or the file is
        nothing else. One output may carry its answer in both ways.
    filed : mapping of str to Record
        What its tickets stand for, where that is carried too.
    damaged : frozenset of str
        The tickets of what is carried and was changed since.
    left : mapping or None
        What can still be read of a payload whose digest speaks against it. It is never an answer.
    output : tuple of int or None
        Of a notebook the numbers, from 0, of the cell and of its output.
    card : str
        Of a page that was made around answers, the card that carries it.
    """

    place: str
    payload: Mapping[str, Any] | None
    carrier: Literal["metadata", "comment", "file"] = "comment"
    filed: Mapping[str, Record] = field(default_factory=dict)
    damaged: frozenset[str] = frozenset()
    left: Mapping[str, Any] | None = None
    output: tuple[int, int] | None = None
    card: str = ""

    @property
    def is_answer(self) -> bool:
        """Whether it is an envelope, of whatever version, or is damaged and may be one."""
        return self.payload is None or _is_answer(self.payload)


def read_envelope(
    path: str | os.PathLike[str], *, which: int | None = None, artifacts: Any = None
) -> Envelope:
    """Read an answer out of a notebook, a page or a JSON file, by what the name ends in.

    Parameters
    ----------
    path : path
        ``….ipynb``, ``….html`` or ``….json``.
    which : int, optional
        Of several answers the one to read, from 0; -1 is the last.
    artifacts : Toolbox or BoundArtifacts, optional
        Where its tickets are redeemed.

    Raises
    ------
    LoadError
        There is none to be read, with the reason; or there are several.
    """
    path = Path(path)
    return _chosen(path, found_in(path), which, artifacts)


def read_answers(
    path: str | os.PathLike[str], *, artifacts: Any = None
) -> list[Envelope | LoadError]:
    """Read every answer a file carries; in place of one that cannot be read stands the reason.

    Parameters
    ----------
    path : path
        ``….ipynb``, ``….html`` or ``….json``.
    artifacts : Toolbox or BoundArtifacts, optional
        Where their tickets are redeemed.

    Raises
    ------
    LoadError
        The file cannot be read, or is none of these.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from runbook_nb import Default, Rule, RuleSet, triage
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], Default("fresh"))
    >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> with TemporaryDirectory() as folder:
    ...     read_answers(envelope.to_html(f"{folder}/answer.html")) == [envelope]
    True
    """
    read: list[Envelope | LoadError] = []
    for one in _answers_of(found_in(path)):
        try:
            read.append(envelope_of(Path(path), one, artifacts))
        except LoadError as error:
            read.append(error)
    return read


def read_notebook(
    path: str | os.PathLike[str], *, which: int | None = None, artifacts: Any = None
) -> Envelope:
    """Read an answer out of a notebook's outputs; see `Envelope.from_notebook`."""
    path = Path(path)
    return _chosen(path, _in_notebook(path, _parsed(path, text_of(path))), which, artifacts)


# -- finding -------------------------------------------------------------------------------


def found_in(path: str | os.PathLike[str]) -> list[Found]:
    """Give every machine-readable form a file carries, in the order it has them.

    Parameters
    ----------
    path : path
        ``….ipynb``, ``….html`` or ``….json``.

    Raises
    ------
    LoadError
        The file cannot be read, or is none of these.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from runbook_nb import Default, Rule, RuleSet, triage
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], Default("fresh"))
    >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> with TemporaryDirectory() as folder:
    ...     found = found_in(envelope.to_notebook(f"{folder}/answer.ipynb"))
    >>> [(one.place, one.carrier, one.is_answer) for one in found]
    [('output 1 of cell 2', 'metadata', True), ('output 1 of cell 2', 'comment', True)]
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind == ".ipynb":
        return _in_notebook(path, _parsed(path, text_of(path)))
    if kind in (".html", ".htm"):
        return list(_in_page(text_of(path)))
    if kind == ".json":
        return [Found(place="the file", payload=_parsed(path, text_of(path)), carrier="file")]
    raise LoadError(
        f"{show(path.name)} is no file an answer can be read from",
        where=str(path),
        fix="give a notebook (.ipynb), a page (.html) or an envelope (.json)",
    )


def _in_notebook(path: Path, document: Any) -> list[Found]:
    cells = document.get("cells") if isinstance(document, Mapping) else None
    if not isinstance(cells, list):
        raise LoadError(
            f"{show(path.name)} is not a notebook: it has no list of cells",
            where=str(path),
            fix="notebooks older than nbformat 4 are brought up to date by opening and saving them",
        )
    found: list[Found] = []
    for number, cell in enumerate(cells):
        outputs = cell.get("outputs") if isinstance(cell, Mapping) else None
        for position, output in enumerate(outputs if isinstance(outputs, list) else ()):
            if isinstance(output, Mapping):
                place = f"output {position + 1} of cell {number + 1}"
                found += _in_output(output, place, (number, position))
    return found


def outputs_in(path: str | os.PathLike[str]) -> Iterator[tuple[tuple[int, int], Any]]:
    """Yield the outputs of a notebook by their cell and number: their forms by MIME type.

    What was printed, and what an error said, is plain text.
    """
    document = document_in(path)
    cells = document.get("cells") if isinstance(document, Mapping) else None
    for number, cell in enumerate(cells if isinstance(cells, list) else ()):
        outputs = cell.get("outputs") if isinstance(cell, Mapping) else None
        for position, output in enumerate(outputs if isinstance(outputs, list) else ()):
            data = output.get("data") if isinstance(output, Mapping) else None
            if isinstance(data, Mapping):
                yield (number, position), data
            elif isinstance(output, Mapping) and {"text", "evalue"} & output.keys():
                yield (number, position), {"text/plain": output.get("text", output.get("evalue"))}


def explained_in(path: str | os.PathLike[str]) -> set[int]:
    """Give the cells of a notebook that explain a row of the very answer it was written for."""
    document = document_in(path)
    if about_written(document) is None:
        return set()
    cells = document.get("cells")
    return {
        number
        for number, cell in enumerate(cells if isinstance(cells, list) else ())
        if isinstance(cell, Mapping) and _joined(cell.get("source")).strip() == EXPLAINED
    }


def _in_output(output: Mapping[str, Any], place: str, at: tuple[int, int]) -> Iterator[Found]:
    metadata, data = output.get("metadata"), output.get("data")
    if isinstance(metadata, Mapping) and carries(metadata):
        read = read_travelling(metadata[NAME])
        yield Found(
            place=place,
            payload=read.payload,
            carrier="metadata",
            filed=read.filed,
            damaged=read.damaged,
            left=read.left,
            output=at,
        )
    if isinstance(data, Mapping):
        yield from _in_html(_joined(data.get("text/html")), place, at)


def _joined(text: Any) -> str:
    if isinstance(text, list):
        return "".join(piece for piece in text if isinstance(piece, str))
    return text if isinstance(text, str) else ""


def _in_html(html: str, place: str, at: tuple[int, int] | None) -> Iterator[Found]:
    if MARK in html:
        payload = read_embedded(html)
        left = read_damaged(html) if payload is None else None
        yield Found(place=place, payload=payload, left=left, output=at)


def _in_page(html: str) -> Iterator[Found]:
    """Yield the answer of a page; of one that was made of several outputs, each in its card."""
    cards = [card for card in cards_in(html) if MARK in card]
    if html.count(MARK) != len(cards) or any(OWN_PAGE in card for card in cards):
        yield from _in_html(html, "the page", None)
        return
    for number, card in enumerate(cards, 1):
        place = "the page" if len(cards) == 1 else f"answer {number} of the page"
        for one in _in_html(card, place, None):
            yield replace(one, card=card)


# -- choosing ------------------------------------------------------------------------------


def _chosen(path: Path, found: list[Found], which: int | None, artifacts: Any) -> Envelope:
    answers = _answers_of(found)
    if not answers:
        raise LoadError(
            f"{show(path.name)} carries no answer",
            code="not_carried",
            where=str(path),
            fix="an output that was cleared or sanitised, or written with settings.embed off, "
            "carries none; Envelope.to_notebook writes a file that does",
        )
    if which is None and len(answers) > 1:
        listed = "; ".join(f"{n}: {_said(one)}" for n, one in enumerate(answers[:MAX_LISTED]))
        more = f"; {MAX_LISTED} of {len(answers)} listed" if len(answers) > MAX_LISTED else ""
        raise LoadError(
            f"{show(path.name)} carries {len(answers)} answers: {listed}{more}",
            code="several_answers",
            where=str(path),
            fix="say which=, from 0",
        )
    try:
        one = answers[which or 0]
    except IndexError:
        raise LoadError(
            f"{show(path.name)} carries {counted(len(answers), 'answer')}, so there is no "
            f"number {which}",
            where=str(path),
            fix="they are numbered from 0",
        ) from None
    return envelope_of(path, one, artifacts)


def _answers_of(found: list[Found]) -> list[Found]:
    if len(found) == 1 and found[0].carrier == "file":
        return found
    return _distinct([one for one in _fullest(found) if one.is_answer])


def _fullest(found: list[Found]) -> list[Found]:
    """Keep of what one output carries in several ways the one that says most."""
    kept: list[Found] = []
    for one in found:
        before = kept[-1] if kept else None
        if before is None or one.output is None or before.output != one.output:
            kept.append(one)
        elif before.payload is None and one.payload is not None:
            kept[-1] = one
    return kept


def _is_answer(payload: Mapping[str, Any]) -> bool:
    return str(payload.get("format", "")).startswith("runbook_nb/envelope/")


def _distinct(found: list[Found]) -> list[Found]:
    """Keep one of what is shown several times; the damaged ones all count."""
    kept: dict[str, Found] = {}
    for number, one in enumerate(found):
        key = f"damaged {number}" if one.payload is None else canonical(one.payload)
        kept.setdefault(key, one)
    return list(kept.values())


def _said(one: Found) -> str:
    try:
        assert one.payload is not None  # noqa: S101 - what is not read is said so below
        tool = one.payload["envelope"]["result"]["af_provenance"]["tool"]
        return f"{clip(show(tool), 60)} in {one.place}"
    except (AssertionError, KeyError, TypeError):
        return f"damaged, in {one.place}"


# -- reading -------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    """Give the text of a file that may hold answers.

    Raises
    ------
    LoadError
        It is no UTF-8 text, too large, or not there.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise LoadError(
                f"{show(path.name)} is too large to be read: {size} bytes, {MAX_FILE} at most",
                where=str(path),
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LoadError(
            f"{show(path.name)} cannot be read: {error.strerror or type(error).__name__}",
            where=str(path),
        ) from error
    except UnicodeDecodeError as error:
        raise LoadError(
            f"{show(path.name)} cannot be read: it is not UTF-8 text", where=str(path)
        ) from error


def document_in(path: str | os.PathLike[str]) -> Any:
    """Give what a notebook's file holds, as it is written there.

    Raises
    ------
    LoadError
        It cannot be read, or is no JSON.
    """
    path = Path(path)
    return _parsed(path, text_of(path))


def _parsed(path: Path, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise LoadError(
            f"{show(path.name)} is not JSON: {reason}",
            where=str(path),
        ) from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def envelope_of(path: Path, found: Found, artifacts: Any) -> Envelope:
    """Make an envelope of a payload, or of the bare form `Envelope.to_json` writes.

    Raises
    ------
    LoadError
        It is none, or one that could not be shown.
    """
    place = found.place
    payload: Any = found.payload  # a file may hold any JSON at all
    if payload is None:
        raise LoadError(
            f"the answer in {place} of {show(path.name)} is damaged, or of a form this version "
            "does not know",
            code="damaged",
            where=str(path),
        )
    wire: Any = payload
    if isinstance(payload, Mapping) and "format" in payload:
        if payload["format"] != PAYLOAD_FORMAT:
            raise LoadError(
                f"the answer in {place} of {show(path.name)} has the form "
                f"{show(payload['format'])}, which this version does not know",
                code="unknown_format",
                where=str(path),
                fix=f"it reads {PAYLOAD_FORMAT}",
            )
        wire = payload.get("envelope")
    if not isinstance(wire, Mapping):
        raise LoadError(f"{place} of {show(path.name)} holds no envelope", where=str(path))
    try:
        store = getattr(artifacts, "artifacts", artifacts)
        damaged = dict.fromkeys(found.damaged, place)
        carried = found.filed or damaged
        beside = FiledBeside(found.filed, store, damaged) if carried else store
        envelope = Envelope.from_dict(wire, beside)
        envelope.view()  # what cannot be shown is better refused here than met later
        return envelope
    except Exception as error:  # a forged form may fail anywhere
        said = str(error) if isinstance(error, LoadError) else f"{type(error).__name__}: {error}"
        raise LoadError(
            f"the answer in {place} of {show(path.name)} cannot be read: "
            f"{clip(visible(said), 300)}",
            code=error.code if isinstance(error, LoadError) else None,
            where=str(path),
        ) from error
