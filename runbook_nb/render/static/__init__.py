"""The stylesheets that views carry, as files beside this one."""

from __future__ import annotations

import os
from typing import Any


def shipped(name: str) -> str:
    """Read a file of this folder.

    By way of the package's loader, as `importlib.resources` and `pkgutil` would, but without what
    those import: it would be most of the cost of a first picture's stylesheet.

    Raises
    ------
    OSError
        There is no such file.

    Examples
    --------
    >>> ".rb-chip" in shipped("card.css")
    True
    """
    where = os.path.join(os.path.dirname(__file__), name)  # noqa: PTH118, PTH120 - as above
    loader: Any = __spec__.loader
    text: str = loader.get_data(where).decode("utf-8")
    return text


def shortened(text: str) -> str:
    """Give a stylesheet without comments and blanks.

    Examples
    --------
    >>> shortened("/* quiet */ .rb-d { color: red; margin: 0 }")
    '.rb-d{color:red;margin:0}'
    """
    import re

    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([{};,>]) ?|(?<=:) ", r"\1", text).replace(";}", "}").strip()
