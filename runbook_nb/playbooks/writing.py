"""Playbooks written as files: the same bytes each time, nothing lost, read back equal.

What a playbook does not say (an empty list, a limit that is not there) is left out; its own keys
that begin with ``x-`` stand where readers of other tools leave them alone. A value that JSON
cannot hold is refused with its place, since the file would not read back; a tuple is a list there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runbook_nb._deep import depth_of
from runbook_nb._files import write_whole
from runbook_nb._json import encode
from runbook_nb._parsed import write_yaml
from runbook_nb.errors import JsonError, PlaybookDefinitionError
from runbook_nb.playbooks.keys import HEAD_KEYS, OWN_STEP_KEYS, PROBE_KEYS, STEP_KEYS
from runbook_nb.playbooks.problems import told
from runbook_nb.playbooks.sources import BOUNDS, kind_of

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook, PlaybookStep

#: What is always written, whatever it holds.
_ALWAYS_OF_HEAD = ("id", "name", "version", "steps")
_ALWAYS_OF_STEP = ("id", "description")


def document_of(playbook: Playbook) -> dict[str, Any]:
    """Give a playbook as the plain values of its file, in the order they are written.

    Parameters
    ----------
    playbook : Playbook

    Returns
    -------
    dict

    Raises
    ------
    PlaybookDefinitionError
        It holds something JSON cannot.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook, PlaybookStep
    >>> step = PlaybookStep(id="detect", description="Look.", required=False)
    >>> document_of(Playbook(id="ir", name="Response", steps=[step]))["steps"]
    [{'id': 'detect', 'description': 'Look.', 'required': False}]
    """
    head = _said(playbook, HEAD_KEYS, _ALWAYS_OF_HEAD)
    steps = [_step(step) for step in playbook.steps]
    head.pop("steps")
    document = {**head, **playbook.extensions, "steps": steps}
    try:
        plain: dict[str, Any] = json.loads(encode(document))
    except JsonError as error:
        raise _cannot_write(playbook, str(error), "write it as text or numbers") from error
    if depth_of(plain, BOUNDS.depth) > BOUNDS.depth:
        said = f"it is nested deeper than {BOUNDS.depth} levels, which nobody would read back"
        raise _cannot_write(playbook, said, "hold it in fewer levels")
    return plain


def _cannot_write(playbook: Playbook, why: str, fix: str) -> PlaybookDefinitionError:
    return PlaybookDefinitionError(
        f"playbook {told(playbook.id)} cannot be written: {why}",
        code="cannot_write",
        where=playbook.id,
        fix=fix,
    )


def _step(step: PlaybookStep) -> dict[str, Any]:
    keys = ("id", "description", *OWN_STEP_KEYS[:1], *STEP_KEYS[2:-1], *OWN_STEP_KEYS[1:])
    return {**_said(step, (*keys, "metadata"), _ALWAYS_OF_STEP), **step.extensions}


def _said(model: Any, keys: tuple[str, ...], always: tuple[str, ...]) -> dict[str, Any]:
    fields = type(model).model_fields
    said: dict[str, Any] = {}
    for key in keys:
        value = getattr(model, key)
        if key in always or value != fields[key].get_default(call_default_factory=True):
            said[key] = _probes(value) if key == "required_probes" else value
    return said


def _probes(probes: Any) -> list[dict[str, Any]]:
    return [_said(probe, PROBE_KEYS, ("name", "match")) for probe in probes]


def write_json(playbook: Playbook) -> str:
    """Write a playbook as indented JSON.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook
    >>> print(write_json(Playbook(id="ir", name="Response")), end="")
    {
      "id": "ir",
      "name": "Response",
      "version": "1.0.0",
      "steps": []
    }
    """
    return json.dumps(document_of(playbook), indent=2, ensure_ascii=False) + "\n"


def write_text(playbook: Playbook) -> str:
    """Write a playbook as YAML, which YAML 1.1 and YAML 1.2 read alike.

    Examples
    --------
    >>> from runbook_nb.playbooks.model import Playbook
    >>> print(write_text(Playbook(id="ir", name="no", tags=["soc"])), end="")
    id: ir
    name: 'no'
    version: 1.0.0
    tags:
    - soc
    steps: []
    """
    return write_yaml(document_of(playbook), blocks=True)


def write_playbook(playbook: Playbook, path: str | os.PathLike[str]) -> Path:
    """Write a playbook to a file, as its ending says; a write that fails leaves the old file.

    Parameters
    ----------
    playbook : Playbook
    path : str or path-like
        Ends in ``.yaml``, ``.yml`` or ``.json``.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from runbook_nb.playbooks.loader import load_playbook
    >>> from runbook_nb.playbooks.model import Playbook
    >>> book = Playbook(id="ir", name="Response")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_playbook(write_playbook(book, f"{folder}/ir.yaml")) == book
    True
    """
    place = Path(path)
    text = write_json(playbook) if kind_of(place) == "json" else write_text(playbook)
    return write_whole(place, text)
