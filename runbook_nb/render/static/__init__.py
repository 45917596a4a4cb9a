"""The stylesheets that views carry, as files beside this one."""

from __future__ import annotations

from pkgutil import get_data


def shipped(name: str) -> str:
    """Read a file of this folder.

    By way of the package's loader, as `importlib.resources` would, but without what that imports:
    it would be most of the cost of a first picture's stylesheet.

    Raises
    ------
    OSError
        There is no such file.

    Examples
    --------
    >>> ".rb-chip" in shipped("card.css")
    True
    """
    return (get_data(__name__, name) or b"").decode("utf-8")


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
