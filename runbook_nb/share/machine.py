r"""What tells of the machine and the person behind a notebook: folders, accounts, connections.

Sharing layer. A file is read on another machine than it was run on, and it may be shared from a
third; so folders are known by their form first, and by this machine only where a form is not
enough. Where a reader needs to tell a file from another, its own name stays.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

#: What a folder's name is made of: no space, nothing that ends a word in prose, HTML or JSON.
_PART: Final = r"[^\s/\\\"'`<>|:;,()\[\]{}&?*]+"
#: A path begins where no other goes on; behind a colour of a terminal, too.
_START: Final = r"(?:(?<![A-Za-z0-9_.~…-])|(?<=[0-9]m))"


def _compiled(*forms: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), put) for pattern, put in forms)


#: Pattern -> what is put there, in the order they are tried: before and after what is known of
#: this machine.
_FIRST: Final = _compiled(
    # A cell, as the kernel names its code.
    (r"[^\s\"'<>(\[]*[/\\]ipykernel_\d+[/\\]+\d+\.py", "<cell>"),
    (r"kernel-[0-9a-fA-F][0-9a-fA-F-]{7,}\.json", "kernel.json"),
    # Installed packages.
    (
        rf"{_START}(?:[A-Za-z]:)?(?:[/\\]+{_PART})*[/\\]+(?:site|dist)-packages(?=[/\\])",
        "site-packages",
    ),
)
_FORMS: Final = _compiled(
    # Places of a person.
    (rf"{_START}/(?:home|Users)/{_PART}", "~"),
    (rf"{_START}[A-Za-z]:(?:\\+|/)(?:Users|Documents and Settings)(?:\\+|/){_PART}", "~"),
    (rf"{_START}/root(?=[/\s\"'<>:,)\]]|$)", "~"),
    # Places that are gone by now.
    (rf"{_START}(?:/private)?/var/folders/{_PART}/{_PART}(?:/T(?=/|\b))?(?:/{_PART})?", "tmp"),
    (rf"{_START}(?:/private)?(?:/var)?/tmp/{_PART}", "tmp"),
)
#: In tracebacks: any file by its whole path.
_ANY: Final = re.compile(
    rf"(?:(?<![A-Za-z0-9_.~…/-])|(?<=[0-9]m))"
    rf"(?:~?/(?:{_PART}/)+|~[\\/]+(?:{_PART}[\\/]+)+|[A-Za-z]:[\\/]+(?:{_PART}[\\/]+)+)"
    rf"(?={_PART})"
)
#: What `%connect_info` prints.
_CONNECTION: Final = re.compile(r"(\\*\"key\\*\"\s*:\s*\\*\")(?!\[)[^\"\\]+")
#: A name of fewer characters is too short a word to be told from others.
MIN_NAME: Final = 6
#: Accounts and machines that are called as everybody's; such a word says nothing of anybody.
_ANYBODYS: Final = frozenset(
    {"administrator", "centos", "debian", "docker", "fedora", "jenkins", "jovyan", "jupyter"}
    | {"jupyterlab", "localhost", "machine", "nobody", "notebook", "runner", "ubuntu", "vagrant"}
)
#: The placeholder of a cell, in a form that HTML does not take for a tag.
_CELL: Final = "<cell>"


class Machine:
    r"""Takes out of texts what tells of this machine, or of the one a notebook was run on.

    Parameters
    ----------
    folder : path, optional
        The one the notebook lies in.

    Examples
    --------
    >>> machine = Machine()
    >>> machine.hide("read /home/ann/data/rows.csv and C:\\Users\\ann\\x.txt")
    ('read ~/data/rows.csv and ~\\x.txt', 2)
    >>> machine.hide_files('File "/opt/app/core/load.py", line 3')
    ('File "…/load.py", line 3', 1)
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        known: dict[str, str] = {}
        for place, put in self._places(folder):
            # A folder of one part, such as /work, is too short a word to be told from others.
            if len(Path(place).parts) > 2:
                known.setdefault(place, put)
        self._known = [
            (re.compile(rf"{_START}{re.escape(place)}(?![A-Za-z0-9_-])"), put)
            for place, put in sorted(known.items(), key=lambda one: (-len(one[0]), one[0]))
        ]
        self._account = _account()
        self._names = _names()

    @staticmethod
    def _places(folder: str | os.PathLike[str] | None) -> list[tuple[str, str]]:
        places = [(sys.prefix, "python"), (sys.base_prefix, "python")]
        with suppress(RuntimeError):  # nobody is at home
            places.append((str(Path.home()), "~"))
        places.append((tempfile.gettempdir(), "tmp"))
        if folder is not None:
            places.append((str(Path(folder).absolute()), "."))
            places.append((str(Path(folder).resolve()), "."))
        return places

    def hide(self, text: str, *, html: bool = False) -> tuple[str, int]:
        """Take folders and accounts out of a text; say how many."""
        times = 0
        if "/" in text or "\\" in text:
            for pattern, put in (*_FIRST, *self._known, *_FORMS):
                shown = "&lt;cell&gt;" if html and put == _CELL else put
                text, found = pattern.subn(shown.replace("\\", r"\\"), text)
                times += found
        if "signature_scheme" in text:
            text, found = _CONNECTION.subn(r"\1[REDACTED]", text)
            times += found
        if self._account is not None and "@" in text:
            text, found = self._account.subn("user@machine", text)
            times += found
        return text, times

    def hide_names(self, text: str) -> tuple[str, int]:
        """Take the names of this account and this machine out, where they stand alone.

        Those of fewer than six characters stay, and those that anybody's has.
        """
        times = 0
        for name, pattern, put in self._names:
            if name in text:
                text, found = pattern.subn(put, text)
                times += found
        return text, times

    def hide_files(self, text: str, *, html: bool = False) -> tuple[str, int]:
        """Take every whole path out of a traceback, all but the name of the file."""
        text, times = self.hide(text, html=html)
        text, more = _ANY.subn("…/", text)
        return text, times + more

    def is_named_in(self, text: str) -> int:
        """Count the folders and accounts in a text."""
        return self.hide(text)[1]


def _called() -> tuple[str, str]:
    """Give the names of this account and of this machine; empty where nobody says them."""
    try:
        return getpass.getuser(), socket.gethostname()
    except (OSError, KeyError, ImportError):
        return "", ""


def _names() -> list[tuple[str, re.Pattern[str], str]]:
    """Give the names that are looked for as bare words, with what is put there."""
    user, host = _called()
    found = {user: "user", host: "machine", host.partition(".")[0]: "machine"}
    return [
        # Not in a longer word, and not as the name of a tag or of an attribute.
        (name, re.compile(rf"(?<![\w<-])(?<!</){re.escape(name)}(?![\w=-])"), put)
        for name, put in sorted(found.items(), key=lambda one: (-len(one[0]), one[0]))
        if len(name) >= MIN_NAME and name.lower() not in _ANYBODYS
    ]


def _account() -> re.Pattern[str] | None:
    """Give the pattern of this account at this machine, as shells and uploads name it."""
    user, host = _called()
    if not user or not host:
        return None
    return re.compile(rf"\b{re.escape(user)}@{re.escape(host)}\b")
