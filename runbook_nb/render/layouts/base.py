"""The port every layout engine sits behind, and the one way a program is asked for a layout."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final, Protocol

#: How long one layout may take, in seconds.
TIMEOUT: Final = 2.0


class LayoutFailed(Exception):
    """An engine gave no picture; the message continues a sentence that begins with its name."""


class Layout(Protocol):
    """Something that turns DOT text into SVG text."""

    name: str

    def available(self) -> bool:
        """Tell whether the engine is here; must be cheap and must not raise."""
        ...

    def svg(self, dot: str) -> str:
        """Lay a graph out.

        Raises
        ------
        LayoutFailed
            It could not be laid out.
        """
        ...


def ask(command: Sequence[str], dot: str) -> str:
    """Hand DOT to a program on its standard input and give what it writes.

    Nothing of the graph reaches the command line. What the program says on its error stream is no
    failure by itself: engines warn there about characters they cannot measure.

    Raises
    ------
    LayoutFailed
        It took longer than `TIMEOUT`, could not be started, or gave no SVG.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a program found by us, with constant arguments
            [*command],
            input=dot.encode("utf-8"),
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LayoutFailed(f"took longer than {TIMEOUT:g} s") from None
    except (OSError, ValueError) as error:
        raise LayoutFailed(f"could not be started ({type(error).__name__})") from error
    if done.returncode != 0:
        raise LayoutFailed(f"ended with code {done.returncode}")
    text = done.stdout.decode("utf-8", "replace")
    if "<svg" not in text:
        raise LayoutFailed("gave no SVG")
    return text
