"""A notebook made safe to hand on.

Sharing layer. Nothing in it is run. What is found is replaced or removed and told with its place;
what cannot be looked into is told as well. The same notebook gives the same bytes, and one that
was made safe before is left as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._files import write_whole
from runbook_nb._ids import content_id
from runbook_nb._text import show
from runbook_nb.errors import DefinitionError, LoadError
from runbook_nb.record.redact import Redact, Redactor, as_redact
from runbook_nb.record.secrets import MIN_SECRET
from runbook_nb.render.embed import MARK, read_embedded
from runbook_nb.runbook import Envelope
from runbook_nb.share.aboutnotes import AboutNotes
from runbook_nb.share.deadwidgets import STATE, fallen_back, kept_models, models_shown
from runbook_nb.share.document import check, written
from runbook_nb.share.learning import Learning, is_code
from runbook_nb.share.machine import Machine
from runbook_nb.share.notebook import generator_of, name_read, reading_source
from runbook_nb.share.scrubbing import FOLDER, NAMED, Scrub
from runbook_nb.share.shared import Findings, SharedNotebook
from runbook_nb.share.travelling import NAME, carries, read_travelling, written_form

if TYPE_CHECKING:
    from nbformat import NotebookNode

#: Put before the ending of a file that is written beside the one it was made of.
SHARED: Final = ".shared"

#: How the form of an answer begins, of whatever version.
ENVELOPES: Final = "runbook_nb/envelope/"
#: Passes after which a notebook has to be as it stays.
_PASSES: Final = 6


def share_notebook(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    redact: Redact | Mapping[str, Any] | None = None,
    values: Iterable[str] = (),
    answers: Iterable[Envelope] = (),
    keep_widgets: bool = False,
    guess: bool = True,
    dry: bool = False,
    in_place: bool = False,
) -> SharedNotebook:
    """Write a notebook so that it can be handed on, and report what that took.

    Widgets fall back to their static views; timing, folders and accounts are left out; what must
    not be seen is looked for in sources, outputs of every kind, tracebacks, metadata, attachments
    and the state of widgets, and replaced by ``[REDACTED]``. Answers stay readable, and get into
    the metadata of the outputs that show them. Sources keep their folders, which is reported.

    Parameters
    ----------
    path : path
        A notebook of nbformat 4. It is not run.
    out : path, optional
        Where to write; by default beside it, ``x.ipynb`` as ``x.shared.ipynb``.
    redact : Redact or mapping, optional
        What must not be seen besides; names hold in all data of the notebook.
    values : iterable of str, optional
        Literal secrets, of any length.
    answers : iterable of Envelope, optional
        Live ones, whose policies know what they hid.
    keep_widgets : bool
        Whether a widget stays whose state is saved and complete.
    guess : bool
        Whether names such as ``password`` or ``api_key`` are those of secrets.
    dry : bool
        Whether to report only, and write nothing.
    in_place : bool
        Whether ``out`` may be the notebook itself, which is gone then.

    Returns
    -------
    SharedNotebook

    Raises
    ------
    LoadError
        It is no notebook of nbformat 4.
    DocumentError
        It does not follow its own version of nbformat.
    DefinitionError
        ``out``, or the name beside it, is the notebook itself (``would_overwrite``): one that
        is called ``x.shared.ipynb`` is not written again without being told where.

    Examples
    --------
    >>> import nbformat
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> cell = nbformat.v4.new_code_cell("login(password='hunter-2')")
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "mine.ipynb")
    ...     nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    ...     shared = share_notebook(path)
    ...     shared.written.name, nbformat.read(shared.written, as_version=4).cells[0].source
    ('mine.shared.ipynb', "login(password='[REDACTED]')")
    """
    path = Path(path)
    document = read_as_it_is(path)
    policy = _policy(redact, values)
    learning = Learning(Redactor(policy), guess=guess)
    learning.texts.update(policy.values)
    for envelope in answers:
        if envelope.run is not None:
            learning.texts.update(envelope.run.redactor.secret_texts)
    machine = Machine(path.resolve().parent)
    target = Path(_beside(path) if out is None else out)
    if not (dry or in_place) and target.exists() and target.samefile(path):
        raise DefinitionError(
            f"{show(target.name)} is the notebook itself, and would be overwritten",
            code="would_overwrite",
            where="out",
            fix="name another file, or say in_place=True where that is meant",
        )
    name = path.name if dry and out is None else target.name
    made, findings = made_safe(document, learning, machine, keep_widgets=keep_widgets, name=name)
    text = written(made)
    shared = replace(_report(path, made, findings, text), never=_never(policy, learning.met))
    return shared if dry else replace(shared, written=write_whole(target, text, like=path))


def _policy(redact: Redact | Mapping[str, Any] | None, values: Iterable[str]) -> Redact:
    policy = as_redact(redact) or Redact()
    if isinstance(values, str):
        raise DefinitionError(
            "values is a text, not a list of texts", where="values", fix="write values=[text]"
        )
    return replace(policy, values=tuple(dict.fromkeys((*policy.values, *values))))


def _never(policy: Redact, met: Collection[str]) -> tuple[str, ...]:
    """Name what of a policy met nothing; of a name with dots in it each part is one."""
    words = {part for name in met for part in (name, *name.split("."))}
    keys = [key for key in policy.keys if key not in words]
    return (*keys, *(one for one in policy.patterns if not any(re.search(one, it) for it in words)))


def _beside(path: Path) -> Path:
    stem = path.stem.removesuffix(SHARED)
    return path.with_name(f"{stem}{SHARED}{path.suffix}")


def read_as_it_is(path: Path) -> NotebookNode:
    """Read a notebook at its own minor version.

    Raises
    ------
    LoadError
        It cannot be read, is older than nbformat 4, or newer than this nbformat knows.
    """
    from nbformat import reader
    from nbformat.v4 import nbformat_minor as newest

    from runbook_nb.share.hydrate import document_in, text_of

    try:
        # Not `nbformat.reads`, which puts ids left to chance where there are none.
        document: NotebookNode = reader.reads(text_of(path))  # type: ignore[no-untyped-call]
        major, minor = int(document["nbformat"]), int(document.get("nbformat_minor", 0))
    except LoadError:
        raise
    except Exception as error:  # nbformat raises whatever its parts raise
        raise LoadError(
            f"{show(path.name)} cannot be read as a notebook: {_why(document_in(path))}",
            where=str(path),
            fix="give a notebook of nbformat 4; an answer in another file is written as one by "
            "runbook-nb export --out NAME.ipynb",
        ) from error
    if major != 4 or minor > newest or not isinstance(document.get("cells"), list):
        raise LoadError(
            f"{show(path.name)} follows nbformat {major}.{minor}, and 4.0 to 4.{newest} are read",
            where=str(path),
            fix="opening and saving it brings an older one up to date; a newer one needs a newer "
            "nbformat",
        )
    _check(document)
    return document


def _why(held: Any) -> str:
    if not isinstance(held, Mapping):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(held), "a number")
        return f"it holds {kind}"
    if "nbformat" not in held:
        return "it does not say its nbformat, as every notebook does"
    if not isinstance(held["nbformat"], int):
        return "its nbformat is no whole number"
    return "its cells are not those of a notebook"


def _check(document: NotebookNode) -> None:
    """Refuse what does not follow its own version, but for ids, which are put right."""
    from copy import deepcopy

    named = deepcopy(document)
    for number, cell in enumerate(named["cells"] if named["nbformat_minor"] >= 5 else ()):
        if isinstance(cell, dict):
            cell["id"] = f"cell-{number}"
    check(named)


# -- the whole of it -------------------------------------------------------------------------


def made_safe(
    document: NotebookNode,
    learning: Learning,
    machine: Machine,
    *,
    keep_widgets: bool = False,
    name: str | None = None,
) -> tuple[NotebookNode, Findings]:
    """Give a notebook that can be handed on, and what was met; the one given stays as it is.

    ``name`` is that of the file it will be.
    """
    findings = Findings()
    scrub = Scrub(learning, machine, findings)
    made: dict[str, Any] = _plain(document)
    _merge_streams(made)
    alive = kept_models(made["metadata"], models_shown(made["cells"])) if keep_widgets else {}
    _learn(made, scrub)
    for _ in range(_PASSES):
        before = made
        scrub.refresh()
        made = _passed(before, scrub, alive)
        if made == before:
            break
    _head_anew(made, document, scrub)
    if name is not None:
        _say_whose_answer_is_read(made, name, scrub)
    _name(made, findings, scrub)
    _say_what_stays(made, scrub)
    import nbformat

    notebook: NotebookNode = nbformat.from_dict(made)  # type: ignore[no-untyped-call]
    return notebook, findings.said(lambda words: scrub.spellings.hide(words)[0])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _merge_streams(document: dict[str, Any]) -> None:
    """Join what was printed in one go: where a stream was cut is chance, and hides secrets."""
    for cell in document["cells"]:
        made: list[dict[str, Any]] = []
        for output in cell.get("outputs", ()):
            last = made[-1] if made else {}
            stream = output["output_type"] == "stream"
            if stream and last.get("output_type") == "stream" and last["name"] == output["name"]:
                last["text"] += output["text"]
            else:
                made.append(output)
        if "outputs" in cell:
            cell["outputs"] = made


def _learn(document: dict[str, Any], scrub: Scrub) -> None:
    """Go over everything once for names, and again for what stands under them."""
    learning = scrub.learning
    sources = [cell["source"] for cell in document["cells"] if cell["cell_type"] == "code"]
    for source in sources:
        learning.take_code_names(source)
    scrub.only_learns = True
    for _ in range(2):
        scrub.forget()
        for source in sources:
            learning.take_code(source)
        scrub.data(document["metadata"].get("widgets", {}), "")
        _passed(document, scrub, {})
    scrub.only_learns = False


def _passed(document: dict[str, Any], scrub: Scrub, alive: Mapping[str, Any]) -> dict[str, Any]:
    about = AboutNotes(scrub)
    metadata = document["metadata"]
    cells = [
        _cell(cell, number, scrub, about, alive) for number, cell in enumerate(document["cells"], 1)
    ]
    made = about.of_notebook(metadata)
    if alive:
        state = {name: alive[name] for name in sorted(alive)}
        held = metadata.get("widgets", {}).get(STATE, {}).get("state", state)
        kept = {name: held.get(name, state[name]) for name in state}
        told = scrub.data(kept, "the state of widgets")
        made["widgets"] = {STATE: {"state": told, "version_major": 2, "version_minor": 0}}
    elif "widgets" in metadata and not scrub.only_learns:
        scrub.findings.add("removed", "state of widgets", "the notebook's metadata")
    if alive and not scrub.only_learns and len(_models(metadata)) > len(alive):
        gone = len(_models(metadata)) - len(alive)
        scrub.findings.add(
            "removed", "state of a widget no output shows whole", "the notebook's metadata", gone
        )
    return {**document, "cells": cells, "metadata": made}


def _models(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    found = metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    return found if isinstance(found, Mapping) else {}


def _cell(
    cell: Mapping[str, Any], number: int, scrub: Scrub, about: AboutNotes, alive: Mapping[str, Any]
) -> dict[str, Any]:
    place = f"cell {number}"
    code = cell["cell_type"] == "code" and is_code(cell["source"])
    made = {
        **cell,
        "metadata": about.of_cell(cell["metadata"], f"the metadata of {place}"),
        "source": scrub.text(
            cell["source"], f"the source of {place}", form="code" if code else "text", paths=False
        ),
    }
    if "attachments" in cell:
        made["attachments"] = {
            scrub.text(name, f"an attachment of {place}", paths=False): scrub.bundle(
                held, f"an attachment of {place}"
            )
            for name, held in cell["attachments"].items()
        }
    if "outputs" in cell:
        outputs: Sequence[Mapping[str, Any]] = cell["outputs"]
        if not scrub.only_learns:
            outputs = fallen_back(outputs, alive, scrub.findings, place)
        made["outputs"] = [
            _output(output, f"output {position} of {place}", scrub, about)
            for position, output in enumerate(outputs, 1)
        ]
    return made


def _output(
    output: Mapping[str, Any], place: str, scrub: Scrub, about: AboutNotes
) -> dict[str, Any]:
    kind = output["output_type"]
    if kind == "stream":
        files = output["name"] == "stderr"
        return {**output, "text": scrub.text(output["text"], place, files=files)}
    if kind == "error":
        return {
            **output,
            "ename": scrub.text(output["ename"], place, files=True),
            "evalue": scrub.text(output["evalue"], place, files=True),
            "traceback": [scrub.text(line, place, files=True) for line in output["traceback"]],
        }
    if "data" not in output:
        return dict(output)
    if not scrub.only_learns:
        output = _with_its_answer(output, scrub, place)
    data = scrub.bundle(output["data"], place)
    metadata = about.of_output(output.get("metadata", {}), place)
    if not scrub.only_learns and not carries(metadata):
        metadata.update(_travelling(data))
    return {**output, "data": data, "metadata": metadata}


def _with_its_answer(output: Mapping[str, Any], scrub: Scrub, place: str) -> Mapping[str, Any]:
    """Give an output that shows what is left of its answer, where something in it is hidden."""
    payload = _answer_in(output["data"])
    from runbook_nb.share.redrawing import drawn_anew, explained_anew

    if payload is None:
        anew = explained_anew(output["data"], scrub.altered)
        scrub.findings.add("replaced", "explanation, drawn anew", place, len(anew))
        return {**output, "data": {**output["data"], **anew}}
    after = scrub.answer(payload, f"the answer in {place}")
    if after is payload or after is None:
        return output
    anew = drawn_anew(output, payload, after)
    scrub.findings.add(
        "replaced", "card, drawn anew without what its answer hides", place, len(anew)
    )
    return {**output, "data": {**output["data"], **anew}}


def _answer_in(data: Mapping[str, Any]) -> dict[str, Any] | None:
    html = data.get("text/html")
    payload = read_embedded(html) if isinstance(html, str) and MARK in html else None
    known = payload is not None and str(payload.get("format", "")).startswith(ENVELOPES)
    return payload if known else None


def _travelling(data: Mapping[str, Any]) -> dict[str, Any]:
    """Give what puts the answer of an output into its metadata, where it carries one."""
    payload = _answer_in(data)
    return {} if payload is None else {NAME: written_form(payload, {}, {})}


# -- what is left ----------------------------------------------------------------------------


def _name(document: dict[str, Any], findings: Findings, scrub: Scrub) -> None:
    """Give an id to cells that have none of their own, where the format has ids."""
    if document["nbformat_minor"] < 5:
        return
    names = [cell.get("id") for cell in document["cells"]]
    taken: set[Any] = set()
    wanting = []
    for cell, name in zip(document["cells"], names, strict=True):
        hidden = isinstance(name, str) and scrub.spellings and scrub.spellings.hide(name)[1]
        if not isinstance(name, str) or name in taken or hidden:
            wanting.append(cell)
        else:
            taken.add(name)
    for cell in wanting:
        name, number = content_id(f"{cell['cell_type']}\n{cell['source']}", 16), 1
        free = name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        cell["id"] = free
        taken.add(free)
        place = f"cell {document['cells'].index(cell) + 1}"
        findings.add("replaced", "cell id that was missing, repeated or hidden", place)


def _head_anew(document: dict[str, Any], before: Mapping[str, Any], scrub: Scrub) -> None:
    """Write the text above an answer anew, where something too short to be looked for was hidden.

    Only a text that this package wrote is known to be about the answer below it.
    """
    from runbook_nb.share.redrawing import headed_anew

    generator = generator_of(before)
    for number, cell in enumerate(document["cells"] if generator is not None else ()):
        if cell["cell_type"] != "markdown" or generator is None:
            continue
        anew = headed_anew(before["cells"][number]["source"], generator, scrub.altered)
        place = f"the source of cell {number + 1}"
        if anew is not None and (shown := scrub.text(anew, place, paths=False)) != cell["source"]:
            scrub.findings.add("replaced", "text above an answer, written anew", place)
            cell["source"] = shown


def _say_whose_answer_is_read(document: dict[str, Any], name: str, scrub: Scrub) -> None:
    """Let the cell that reads the answer back out of its own file name the file it will be in."""
    if generator_of(document) is None or scrub.spellings.hide(name)[1]:
        return
    for number, cell in enumerate(document["cells"], 1):
        read = name_read(cell["source"]) if cell["cell_type"] == "code" else None
        if read is not None and read != name:
            cell["source"] = reading_source(name)
            what = "name of the file, by which it reads its answer again"
            scrub.findings.add("replaced", what, f"the source of cell {number}")


def _say_what_stays(document: Mapping[str, Any], scrub: Scrub) -> None:
    for number, cell in enumerate(document["cells"], 1):
        times = scrub.machine.hide_files(cell["source"])[1]
        place = f"the source of cell {number}"
        scrub.findings.add("kept", FOLDER, place, times)
        scrub.findings.add("kept", NAMED, place, scrub.machine.hide_names(cell["source"])[1])
    if document["metadata"].get("authors"):
        scrub.findings.add("kept", "names of authors", "the notebook's metadata")
    short = scrub.short | scrub.learning.short
    if short:
        what = f"hidden value of under {MIN_SECRET} characters, outside of answers"
        scrub.findings.add("not checked", what, "the whole notebook", len(short))
    for text in sorted(scrub.spellings.unsought):
        what = f"value of {len(text)} characters that is part of the placeholder itself"
        scrub.findings.add("not checked", what, "the whole notebook")


def _report(path: Path, document: NotebookNode, findings: Findings, text: str) -> SharedNotebook:
    outputs = [output for cell in document.cells for output in cell.get("outputs", ())]
    return SharedNotebook(
        name=path.name,
        findings=tuple(findings.all()),
        cells=len(document.cells),
        outputs=len(outputs),
        answers=sum(
            carries(output.get("metadata"))
            and read_travelling(output["metadata"][NAME]).payload is not None
            for output in outputs
        ),
        text=text,
    )
