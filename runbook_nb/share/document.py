"""Notebook files in one canonical form: equal content, equal bytes.

Sharing layer. Cell ids are derived from content, so that a diff shows what was changed and nothing
else. What says when, where and by which patch version something ran is left out; so is the state
of widgets, which a file cannot bring back to life.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._ids import content_id
from runbook_nb.errors import DocumentError

if TYPE_CHECKING:
    from nbformat import NotebookNode

#: What every notebook we write says of the kernel it is for.
KERNELSPEC: Final = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE: Final = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}

#: Metadata that says something about content; all other is left out.
NOTEBOOK_METADATA: Final = ("authors", "runbook_nb", "title")
CELL_METADATA: Final = ("deletable", "editable", "runbook_nb", "slideshow", "tags")
OUTPUT_METADATA: Final = ("runbook_nb",)

#: Outputs that only a running kernel can draw.
WIDGET: Final = "application/vnd.jupyter.widget-view+json"


def canonical(document: Mapping[str, Any]) -> NotebookNode:
    """Give a notebook in canonical form; the one given stays as it is.

    Parameters
    ----------
    document : NotebookNode
        A notebook of nbformat 4.

    Examples
    --------
    >>> import nbformat
    >>> notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    >>> canonical(notebook).cells[0].id
    '51acba95dfb23725'
    """
    import nbformat

    kept = {
        name: document["metadata"][name]
        for name in NOTEBOOK_METADATA
        if name in document["metadata"]
    }
    made: NotebookNode = nbformat.from_dict(  # type: ignore[no-untyped-call]
        {
            "cells": [_cell(cell) for cell in document["cells"]],
            "metadata": {**kept, "kernelspec": KERNELSPEC, "language_info": LANGUAGE},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
    name_cells(made)
    return made


def name_cells(document: NotebookNode) -> None:
    """Give each cell an id derived from its kind and source; repeated ones are numbered."""
    times: dict[str, int] = {}
    for cell in document.cells:
        name = content_id(f"{cell.cell_type}\n{cell.source}", 16)
        times[name] = times.get(name, 0) + 1
        cell.id = name if times[name] == 1 else f"{name}-{times[name]}"


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: cell["metadata"][name] for name in CELL_METADATA if name in cell["metadata"]}
    made = {"cell_type": cell["cell_type"], "metadata": metadata, "source": cell["source"]}
    if "attachments" in cell:
        made["attachments"] = cell["attachments"]
    if cell["cell_type"] == "code":
        made["execution_count"] = cell.get("execution_count")
        made["outputs"] = _outputs(cell.get("outputs", ()))
    return made


def _outputs(outputs: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            # How a stream was cut into messages is chance.
            last = made[-1] if made else {}
            if last.get("output_type") == "stream" and last.get("name") == output["name"]:
                last["text"] += output["text"]
            else:
                made.append({"output_type": kind, "name": output["name"], "text": output["text"]})
        elif kind == "error":
            words = f"{output['ename']}: {output['evalue']}"
            made.append(
                {
                    "output_type": kind,
                    "ename": output["ename"],
                    "evalue": output["evalue"],
                    "traceback": [words],  # a full one names folders of this machine
                }
            )
        else:
            told = output.get("metadata", {})
            about = {name: told[name] for name in OUTPUT_METADATA if name in told}
            made.append({**output, "data": _data(output["data"]), "metadata": about})
    return made


def _data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what needs a kernel, where something stands beside it that needs none."""
    rest = {kind: shown for kind, shown in data.items() if kind != WIDGET}
    return rest or dict(data)


def check(document: NotebookNode) -> None:
    """Check that every reader will accept a notebook, today's warnings taken as errors.

    Raises
    ------
    DocumentError
        The notebook does not follow its version of nbformat.
    """
    import nbformat

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            nbformat.validate(document, relax_add_props=False)
        except (nbformat.ValidationError, Warning) as error:
            raise DocumentError(
                f"this is not a valid notebook: {(str(error).splitlines() or ['?'])[0]}",
                where="notebook",
            ) from error


def written(document: NotebookNode) -> str:
    r"""Give the text of a notebook file, after checking it.

    Raises
    ------
    DocumentError
        The notebook does not follow its version of nbformat.

    Examples
    --------
    >>> import nbformat
    >>> written(canonical(nbformat.v4.new_notebook()))[-22:]
    '"nbformat_minor": 5\n}\n'
    """
    import nbformat

    check(document)
    text: str = nbformat.writes(document, version=4)  # type: ignore[no-untyped-call]
    return text if text.endswith("\n") else f"{text}\n"
