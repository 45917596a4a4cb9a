"""Writing a playbook in another form than the one it is in.

Command line layer. Everything it needs beyond its options is imported when it runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from runbook_nb._text import visible_json
from runbook_nb.cli.files import placed, say_written
from runbook_nb.cli.main import ANSWERED, one_line, say_error
from runbook_nb.errors import PlaybookDefinitionError

if TYPE_CHECKING:
    from runbook_nb.playbooks import Playbook


class PlaybookForm(StrEnum):
    """What a playbook can be written as."""

    NATIVE = "native"
    CACAO = "cacao"
    MERMAID = "mermaid"


def export_playbook(
    file: Path, to: PlaybookForm, out: Sequence[Path], created_by: str | None, *, lossy: bool
) -> int:
    """Write the playbook that a file holds, natively or as CACAO, as another form."""
    from runbook_nb._files import write_whole

    playbook = _read(file, lossy=lossy)
    if not out:
        text = _written(playbook, to, created_by).removesuffix("\n")
        print(visible_json(text) if to is PlaybookForm.CACAO else text)
    for path in out:
        text = _written(playbook, to, created_by, as_json=path.suffix.lower() == ".json")
        say_written(placed(path, partial(write_whole, path, text)))
    if to is PlaybookForm.CACAO and created_by is None:
        say_error("created_by is a placeholder; say who publishes it by --created-by identity--…")
    return ANSWERED


def _read(file: Path, *, lossy: bool) -> Playbook:
    from runbook_nb.playbooks import from_cacao, load_playbook
    from runbook_nb.playbooks.cacao import SPEC_VERSION
    from runbook_nb.playbooks.sources import source_of_file

    held = source_of_file(file).parsed().value
    if not isinstance(held, Mapping) or held.get("spec_version") != SPEC_VERSION:
        return load_playbook(file)
    playbook, losses = from_cacao(file, lossy=lossy)
    if losses:
        print(losses, file=sys.stderr)
    return playbook


def _written(
    playbook: Playbook, to: PlaybookForm, created_by: str | None, *, as_json: bool = False
) -> str:
    if to is PlaybookForm.MERMAID:
        drawn: str = playbook.flowchart().mermaid
        return drawn
    if to is PlaybookForm.NATIVE:
        return playbook.to_json() if as_json else playbook.to_yaml()
    try:
        document = playbook.to_cacao(created_by=created_by)
    except PlaybookDefinitionError as error:
        if error.code != "bad_identity":
            raise
        raise typer.BadParameter(one_line(error), param_hint="--created-by") from None
    return json.dumps(document, ensure_ascii=False, indent=1)
