"""Writing files so that nobody ever reads half of one.

Base layer.
"""

from __future__ import annotations

import os
from pathlib import Path

from runbook_nb._ids import content_id, random_id


def write_whole(path: str | os.PathLike[str], text: str) -> Path:
    r"""Write a text file whole or not at all: UTF-8, lines ended by ``\n`` alone, the last too.

    Parameters
    ----------
    path : path
        What is there already is replaced in one step; of a link, what it leads to.
    text : str

    Returns
    -------
    Path
        The path as it was given.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/note.txt", "a").read_bytes()
    b'a\n'
    """
    named = Path(path)
    target = Path(os.path.realpath(named))
    # Short, whatever the target's name; no two that write one file at a time meet.
    draft = target.with_name(f".{content_id(target.name)}.{random_id(16)}.part")
    try:
        ended = text if text.endswith("\n") else f"{text}\n"
        draft.write_text(ended, encoding="utf-8", newline="\n")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return named
