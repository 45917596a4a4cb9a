"""Compare a built wheel with the package's folder: every file of the one is in the other.

Templates, styles, scripts and rule files lie beside the code that loads them, and a build that
leaves one out shows only on a reader's machine.

Usage: ``python3 .ci/check_wheel.py WHEEL``
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "runbook_nb"
LEFTOVERS = {"__pycache__", ".ipynb_checkpoints"}


def expected() -> set[str]:
    """Name the files that a wheel of this checkout holds."""
    return {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and not LEFTOVERS & set(path.parts) and path.suffix != ".pyc"
    }


def main(wheel: str) -> None:
    """Exit with what differs, or say how many files are as they should be."""
    with zipfile.ZipFile(wheel) as content:
        held = {name for name in content.namelist() if ".dist-info/" not in name}
    wanted = expected()
    problems = [f"missing: {name}" for name in sorted(wanted - held)]
    problems += [f"does not belong: {name}" for name in sorted(held - wanted)]
    if problems:
        sys.exit("\n".join([f"check_wheel: {wheel}", *problems]))
    print(f"check_wheel: {len(held)} files, all there")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
