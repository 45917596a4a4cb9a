"""The scripts and stylesheets of widgets, as files beside this one."""

from __future__ import annotations

import re
from pkgutil import get_data

from runbook_nb.render.static import shortened


def script(*names: str) -> str:
    """Join scripts into the text of one module, without lines that only comment.

    What every widget uses is in files that export nothing and come first; the last one exports.
    Such a file must not have a template literal of several lines, whose blanks would go.

    Examples
    --------
    >>> script("widget.js").startswith("const make =")
    True
    """
    lines = (line.strip() for name in names for line in _read(name).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def sheet(*names: str) -> str:
    """Join stylesheets, without comments and blanks.

    Examples
    --------
    >>> sheet("widget.css").startswith(".rbnb")
    True
    """
    return "".join(shortened(_read(name)) for name in names)


def _read(name: str) -> str:
    data = get_data(__name__, name)
    if data is None or not re.fullmatch(r"[a-z_]+\.(?:js|css)", name):
        raise FileNotFoundError(name)
    return data.decode("utf-8")
