"""An answer as a notebook that reads without a kernel, and reads itself again with one.

Sharing layer. Its outputs are what the cells would show; the answer itself is in the first of
them, as in any output, and in its metadata with what was filed, so opening the file needs nothing
and running it needs nobody's data.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from runbook_nb._display import through
from runbook_nb._files import write_whole
from runbook_nb._view import Card, Data, Fact, Facts, Section
from runbook_nb.errors import JsonError
from runbook_nb.render.html import render_html
from runbook_nb.render.text import render_text
from runbook_nb.runbook import Envelope
from runbook_nb.settings import settings
from runbook_nb.share.document import canonical, written
from runbook_nb.share.exported import exported_card, exporting, rechecked, redactor_of
from runbook_nb.share.report import GENERATOR, provenance
from runbook_nb.share.travelling import (
    EXPLAINED,
    NAME,
    NOTEBOOK_FORMAT,
    about_written,
    travelling_form,
)

#: What the text above an answer ends with.
READING: Final = (
    "This notebook holds an answer as it was given. Reading it needs no kernel: the outputs "
    "below are what was shown. Running its cells reads the answer back out of this very file; "
    "it calls none of the sources again."
)

#: The text above the explanation of a row.
EXPLAINING: Final = (
    "The first row, explained. `envelope.why` takes any other subject, or `row=` and a number."
)

#: What says that it wrote a notebook.
_GENERATORS: Final = re.compile(r"runbook_nb [\w.+!-]{1,60}")


def write_notebook(envelope: Envelope, path: str | os.PathLike[str]) -> Path:
    """Write an envelope as a notebook; see `Envelope.to_notebook`."""
    return write_whole(path, notebook_text(envelope, Path(path).name))


def notebook_text(envelope: Envelope, name: str) -> str:
    """Give an envelope as the text of a notebook file.

    Parameters
    ----------
    envelope : Envelope
        Live or a copy.
    name : str
        The file's name, by which its first cell reads it again.

    Examples
    --------
    >>> import json
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> envelope = rb.triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> made = json.loads(notebook_text(envelope, "answer.ipynb"))
    >>> [cell["cell_type"] for cell in made["cells"]]
    ['markdown', 'code', 'markdown', 'code']
    """
    with exporting():
        cells = list(_cells(envelope, name))
    about = {"format": NOTEBOOK_FORMAT, "generator": GENERATOR}
    return written(canonical({"cells": cells, "metadata": {NAME: about}}))


def _cells(envelope: Envelope, name: str) -> Iterator[dict[str, Any]]:
    card = exported_card(envelope)
    yield _markdown(head_text(envelope, card))
    shown = _code(reading_source(name), card, 1)
    shown["outputs"][0]["metadata"] = _carried(envelope, card)
    yield shown
    if not envelope.verdicts:
        return
    try:
        why = rechecked(envelope.why(row=0).view(), redactor_of(envelope))
    except Exception:
        if envelope.run is not None:
            raise
        return  # a copy may hold rows and not what decided them, or anything else
    yield _markdown(EXPLAINING)
    yield _code(EXPLAINED, why, 2)


def head_text(envelope: Envelope, card: Card, generator: str = GENERATOR) -> str:
    """Give the text above an answer: what it is, what it came from, and how to read on.

    Parameters
    ----------
    envelope : Envelope
        Live or a copy.
    card : Card
        Its own, as `exported_card` gives it.
    generator : str
        What wrote the file.
    """
    about = replace(card, sections=(_provenance(envelope, generator),), remarks=())
    return f"{through('markdown', about)}\n\n{READING}"


def reading_source(name: str) -> str:
    """Give the code that reads an answer back out of a file of some name.

    Examples
    --------
    >>> print(reading_source("answer.ipynb"))
    import runbook_nb as rb
    <BLANKLINE>
    envelope = rb.Envelope.from_notebook('answer.ipynb')
    envelope
    """
    return f"import runbook_nb as rb\n\nenvelope = rb.Envelope.from_notebook({name!r})\nenvelope"


_READS: Final = re.compile(re.escape(reading_source("")).replace("''", r"(['\"].*['\"])"))


def name_read(source: str) -> str | None:
    """Give the name of the file that a cell reads its answer out of; None if it is no such cell.

    Examples
    --------
    >>> name_read(reading_source("answer.ipynb")), name_read("envelope")
    ('answer.ipynb', None)
    """
    found = _READS.fullmatch(source)
    try:
        name = None if found is None else ast.literal_eval(found[1])
    except (ValueError, SyntaxError):
        return None
    return name if isinstance(name, str) else None


def generator_of(document: Any) -> str | None:
    """Give what wrote a notebook, by its own word; None where that was not this package.

    Examples
    --------
    >>> about = {"format": NOTEBOOK_FORMAT, "generator": "runbook_nb 0.1.0"}
    >>> generator_of({"metadata": {"runbook_nb": about}}), generator_of({"metadata": {}})
    ('runbook_nb 0.1.0', None)
    """
    about = about_written(document)
    if about is None:
        return None
    generator = about.get("generator")
    known = isinstance(generator, str) and _GENERATORS.fullmatch(generator)
    return generator if known else GENERATOR


def _provenance(envelope: Envelope, generator: str) -> Section:
    hidden = redactor_of(envelope)
    items = tuple(
        Fact(term=term, detail=Data(value=hidden.text(said)))
        for term, said in provenance(envelope, generator)
    )
    return Section(label="", parts=(Facts(label="", items=items, total=len(items)),))


def _carried(envelope: Envelope, card: Card) -> dict[str, Any]:
    if card.payload is None or not settings.embed:
        return {}
    try:
        payload = card.payload(None)
        return {} if payload is None else {NAME: travelling_form(envelope, payload)}
    except JsonError:
        return {}  # what JSON cannot carry; the output says so


def _markdown(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str, shown: Card, number: int) -> dict[str, Any]:
    data = {"text/plain": render_text(shown), "text/html": render_html(shown, export=True)}
    output = {
        "output_type": "execute_result",
        "data": data,
        "execution_count": number,
        "metadata": {},
    }
    return {
        "cell_type": "code",
        "execution_count": number,
        "metadata": {},
        "outputs": [output],
        "source": source,
    }
