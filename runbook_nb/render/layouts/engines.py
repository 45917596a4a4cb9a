"""The engines: two programs, and a library that is run in a process of its own."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
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
        return shutil.which("dot") is not None

    def svg(self, dot: str) -> str:
        """Lay a graph out, with the fonts of the machine."""
        return ask([_found(shutil.which("dot")), "-Tsvg"], dot)


class PygraphvizLayout:
    """The engine inside the ``pygraphviz`` package, run apart so that it can be stopped."""

    name: str = "pygraphviz"

    def available(self) -> bool:
        """Tell whether the package is installed."""
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
    return _shipped_program() or shutil.which("graphviz-pure")


@cache
def _shipped_program() -> str | None:
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
