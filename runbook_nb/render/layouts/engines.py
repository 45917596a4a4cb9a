"""The engines: two programs, and a library that is run in a process of its own."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Final

from runbook_nb.render.layouts.base import LayoutFailed, ask


class PureLayout:
    """The ``graphviz-pure`` program, which its wheel brings along."""

    name: str = "pure"

    def available(self) -> bool:
        """Tell whether the program is installed."""
        return pure_program() is not None

    def svg(self, dot: str) -> str:
        """Lay a graph out, with font metrics of the program's own."""
        return ask([_found(pure_program()), "-Tsvg"], dot)


class DotLayout:
    """The ``dot`` program of a system or conda installation."""

    name: str = "dot"

    def available(self) -> bool:
        """Tell whether ``dot`` is on the path."""
        return on_path("dot") is not None

    def svg(self, dot: str) -> str:
        """Lay a graph out, with the fonts of the machine."""
        return ask([_found(on_path("dot")), "-Tsvg"], dot)


class PygraphvizLayout:
    """The engine inside the ``pygraphviz`` package, run apart so that it can be stopped."""

    name: str = "pygraphviz"

    def available(self) -> bool:
        """Tell whether the package is installed."""
        from importlib.util import find_spec

        try:
            return find_spec("pygraphviz") is not None
        except (ImportError, ValueError):
            return False

    def svg(self, dot: str) -> str:
        """Lay a graph out, with the fonts of the machine."""
        return ask([sys.executable, "-c", _PYGRAPHVIZ], dot)


_PYGRAPHVIZ: Final = """
import sys, pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode("utf-8"))
sys.stdout.buffer.write(graph.draw(format="svg", prog="dot"))
"""


def pure_program() -> str | None:
    """Find the program of the ``graphviz-pure`` wheel: beside the package, else on the path."""
    return _shipped_program() or on_path("graphviz-pure")


def on_path(program: str) -> str | None:
    """Find a program on the path."""
    from shutil import which  # with the archive formats it knows, 5 ms that most never need

    return which(program)


@cache
def _shipped_program() -> str | None:
    # Beside the interpreter is where an environment has its programs, on most systems.
    beside = os.path.dirname(sys.executable or "")  # noqa: PTH120 - pathlib costs as much
    return (beside and _inside(beside)) or _among_scripts() or _of_the_wheel()


def _among_scripts() -> str | None:
    """Look where installers put the programs of wheels; nearly always it is there."""
    from sysconfig import get_path

    return _inside(get_path("scripts"))


def _inside(folder: str) -> str | None:
    name = "graphviz-pure.exe" if os.name == "nt" else "graphviz-pure"
    program = os.path.join(folder, name)  # noqa: PTH118 - as above
    if os.path.isfile(program) and os.access(program, os.X_OK):  # noqa: PTH113
        return os.path.realpath(program)
    return None


def _of_the_wheel() -> str | None:
    """Ask the wheel itself where its program went, as in an installation for one user."""
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    try:
        shipped = distribution("graphviz-pure").files or ()
    except PackageNotFoundError:
        return None
    for file in shipped:
        if file.stem == "graphviz-pure" and file.suffix in ("", ".exe"):
            path = Path(str(file.locate()))
            if os.access(path, os.X_OK) and path.is_file():
                return str(path.resolve())
    return None


def _found(program: str | None) -> str:
    if program is None:
        raise LayoutFailed("is gone")
    return program
