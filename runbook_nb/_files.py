"""Writing files so that nobody ever reads half of one, and keeping one to oneself.

Base layer.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

from runbook_nb._ids import content_id, random_id


def write_whole(path: str | os.PathLike[str], text: str, *, like: Path | None = None) -> Path:
    r"""Write a text file whole or not at all: UTF-8, lines ended by ``\n`` alone, the last too.

    Parameters
    ----------
    path : path
        What is there already is replaced in one step; of a link, what it leads to.
    text : str
    like : Path, optional
        The file whose mode it gets: what is made of a private file is private, from its first byte
        on. By default the mode of what is there already.

    Returns
    -------
    Path
        The path as it was given.

    Raises
    ------
    FileNotFoundError
        There is no folder for it; none is made.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/note.txt", "a").read_bytes()
    b'a\n'
    """
    named = Path(path)
    target = Path(os.path.realpath(named))
    if not target.parent.is_dir():
        why = f"there is no such folder to write {target.name!r} in; make it first"
        raise FileNotFoundError(errno.ENOENT, why, str(target.parent))
    # Short, whatever the target's name; no two that write one file at a time meet.
    draft = target.with_name(f".{content_id(target.name)}.{random_id(16)}.part")
    mode = _mode_of(target if like is None else like)
    try:
        ended = text if text.endswith("\n") else f"{text}\n"
        if mode is not None:
            draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(ended, encoding="utf-8", newline="\n")
        if mode is not None:
            draft.chmod(mode)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return named


def _mode_of(path: Path) -> int | None:
    """Give the permissions of a file; None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; Windows does so by itself."""
    if sys.platform == "win32":
        return
    try:
        file = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # with what was in it
        return
    try:
        os.fsync(file)
    finally:
        os.close(file)


def take_file(file: int) -> bool:
    """Take a file for oneself, if nobody has it. The system lets it go with the process."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def release_file(file: int) -> None:
    """Let go of a file that was taken."""
    # Said and not only closed: a child that was forked meanwhile has the file open too.
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)
