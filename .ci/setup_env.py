"""Make or complete the virtual environment that the make targets use.

The first way that works on the machine is taken:

1. ``uv``, where it is installed;
2. ``python3 -m venv``, which brings pip along;
3. ``python3 -m venv --without-pip`` and pip from the package index (``bootstrap_pip.py``), for a
   Python without ``ensurepip``, such as Debian's bare ``python3``.

``RUNBOOK_NB_SETUP=uv|venv|bootstrap`` insists on one of them. Only the standard library is used.

Usage: ``python3 .ci/setup_env.py FOLDER [arguments of "pip install"]``
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
PIP_WITH_GROUPS = "pip>=25.1"  # the first that installs dependency groups


def quiet(*command: str | Path) -> bool:
    """Whether a command runs and succeeds; what it says is dropped."""
    try:
        done = subprocess.run(command, check=False, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def run(*command: str | Path, **environ: str) -> None:
    """Run a command, and stop with its exit code where it fails."""
    done = subprocess.run(command, check=False, env={**os.environ, **environ})
    if done.returncode:
        sys.exit(done.returncode)


def uv_settings() -> dict[str, str]:
    """Tell uv to fetch no Python of its own, and to use the index that pip was told to use."""
    found = {"UV_PYTHON_DOWNLOADS": "never"}
    index = os.environ.get("PIP_INDEX_URL")
    if index and not {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & os.environ.keys():
        found["UV_DEFAULT_INDEX"] = index
    return found


def usable(python: Path) -> bool:
    """Whether an environment is already there and new enough."""
    return quiet(python, "-c", f"import sys; sys.exit(sys.version_info < {OLDEST})")


def ways() -> tuple[str, ...]:
    """List the ways to try on this machine, in order."""
    possible = {
        "uv": quiet("uv", "--version"),
        "venv": importlib.util.find_spec("ensurepip") is not None,
        "bootstrap": True,
    }
    chosen = os.environ.get("RUNBOOK_NB_SETUP")
    if chosen and chosen not in possible:
        sys.exit(f"setup_env: RUNBOOK_NB_SETUP is {chosen!r}; it can be {', '.join(possible)}")
    if chosen and not possible[chosen]:
        sys.exit(f"setup_env: RUNBOOK_NB_SETUP is {chosen!r}, which this machine does not have")
    return (chosen,) if chosen else tuple(way for way, there in possible.items() if there)


def create(folder: Path, way: str) -> bool:
    """Make the environment in one way; False where this machine cannot."""
    if way == "uv":
        run("uv", "venv", "--quiet", "--python", sys.executable, folder, **uv_settings())
        return True
    if importlib.util.find_spec("venv") is None:
        sys.exit("setup_env: this Python has no venv module; install the one your system packages")
    if way == "venv":
        return quiet(sys.executable, "-m", "venv", folder)
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return True


def prepare(folder: Path) -> str:
    """See that the environment exists, and tell how it is to be filled."""
    python = folder / "bin" / "python"
    candidates = ways()
    if usable(python):
        return candidates[0]
    if folder.exists():
        if not (folder / "pyvenv.cfg").exists() and any(folder.iterdir()):
            sys.exit(f"setup_env: {folder} is not a virtual environment; nothing was changed")
        shutil.rmtree(folder)
    for way in candidates:
        print(f"setup_env: making {folder} ({way})", flush=True)
        if create(folder, way):
            return way
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(f"setup_env: no virtual environment could be made ({', '.join(candidates)} tried)")


def install(folder: Path, way: str, arguments: list[str]) -> None:
    """Install into the environment, with uv or with pip, which is put there if it is missing."""
    python = folder / "bin" / "python"
    if way == "uv":
        run("uv", "pip", "install", "--quiet", "--python", python, *arguments, **uv_settings())
        return
    if not quiet(python, "-m", "pip", "--version"):
        run(sys.executable, Path(__file__).with_name("bootstrap_pip.py"), python)
    pip = (python, "-m", "pip", "install", "-qq", "--disable-pip-version-check")
    if "--group" in arguments:
        run(*pip, PIP_WITH_GROUPS)
    run(*pip, *arguments)


def main(folder: Path, arguments: list[str]) -> None:
    """Make the environment where needed, then install into it."""
    way = prepare(folder)
    if arguments:
        print(f"setup_env: installing {' '.join(arguments)} into {folder}", flush=True)
        install(folder, way, arguments)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
