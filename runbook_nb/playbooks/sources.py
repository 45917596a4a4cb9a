"""Where a playbook may come from: a mapping, a file, an open file, bytes, JSON or YAML text.

Nothing is guessed from a failure: a text that begins with ``{`` or holds a line break is a text,
and any other is the name of a file. What is longer than 1 MiB, deeper than 50 levels or repeats
more than 10,000 values by aliases is refused, whoever wrote it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from runbook_nb._parsed import FORMATS, Bounds, Malformed, Parsed, read
from runbook_nb._text import visible
from runbook_nb._value import frozen
from runbook_nb.playbooks.problems import FileProblem, refused, told

#: What is read at most.
BOUNDS: Final = Bounds(characters=2**20, depth=50, repeats=10_000, what="playbook")

Data = TypeVar("Data", str, bytes)

#: What looking up a name fails with when it leads to no file.
_NO_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)

_ANY: Final = "give a mapping, a path, an open file, or JSON or YAML text"
_SUFFIXES: Final = "give it the ending .yaml, .yml or .json"


@frozen
class Source:
    """What a playbook is read from, before anything is made of it.

    Attributes
    ----------
    text : str or None
        The text, where there is one; ``kind`` says how it is written.
    given : object
        What was handed over instead of a text.
    path : str, path-like or None
    """

    text: str | None = None
    kind: str = "yaml"
    given: Any = None
    path: Any = None

    @property
    def name(self) -> str | None:
        """What the file is called."""
        return None if self.path is None else visible(Path(os.fspath(self.path)).name)

    def parsed(self) -> Parsed:
        """Give plain values and where they stand; `PlaybookLoadError` where that cannot be."""
        if self.text is None:
            return Parsed(plain_copy(self.given))
        try:
            return read(self.text, self.kind, BOUNDS)
        except Malformed as bad:
            code = f"bad_{self.kind}" if bad.code in ("syntax", "duplicate_key") else bad.code
            problem = FileProblem(
                code=bad.code, message=bad.message, fix=bad.fix, line=bad.line, column=bad.column
            )
            what = self.name or f"the {self.kind.upper()} text"
            raise refused(
                f"{what} cannot be read as a playbook",
                code,
                path=self.path,
                name=self.name,
                problems=[problem],
            ) from None


def source_of(given: Any) -> Source:
    r"""Say what a playbook is to be read from.

    Examples
    --------
    >>> source_of('{"id": "ir"}').kind, source_of("id: ir\nname: IR").kind
    ('json', 'yaml')
    """
    if isinstance(given, Mapping):
        return Source(given=given)
    if isinstance(given, str):
        text = given.removeprefix("\ufeff")
        if text.lstrip()[:1] in ("{", "[") or "\n" in text:
            return source_of_text(text)
        if not text.strip():
            raise refused("an empty text holds no playbook", "empty", fix=_ANY)
        return source_of_file(given)
    if isinstance(given, os.PathLike):
        return source_of_file(given)
    if isinstance(given, bytes | bytearray | memoryview):
        return source_of_text(_decoded(bytes(given), None))
    if callable(getattr(given, "read", None)):
        return _source_of_open(given)
    kind = "None" if given is None else f"a value of type {type(given).__name__}"
    raise refused(f"a playbook cannot be read from {kind}", "bad_source", fix=_ANY)


def source_of_text(text: str, kind: str | None = None, path: Any = None) -> Source:
    """Say how a text is written, where that is not known: JSON begins with ``{`` or ``[``."""
    text = text.removeprefix("\ufeff")
    if kind is None:
        kind = "json" if text.lstrip()[:1] in ("{", "[") else "yaml"
    return Source(text=text, kind=kind, path=path)


def source_of_file(path: Any) -> Source:
    """Read a file as text, by its ending."""
    place = Path(path)
    if not exists(path):
        as_text = ": " in str(path)
        fix = "if it is YAML, give it to PlaybookLoader.load_yaml_string" if as_text else None
        raise refused(f"there is no file {told(str(path))}", "not_found", path=path, fix=fix)
    kind = kind_of(place)
    return source_of_text(_decoded(read_bytes(place), path), kind, path)


def kind_of(place: Path) -> str:
    """Say how a file is written, by its ending."""
    kind = FORMATS.get(place.suffix.lower())
    if kind is None:
        raise refused(
            f"cannot tell how {told(str(place))} is written",
            "unsupported_suffix",
            path=place,
            name=visible(place.name),
            fix=_SUFFIXES,
        )
    return kind


def exists(path: Any) -> bool:
    """Say whether there is a file of that name; what cannot be a name is none.

    One that may not be looked at is there: reading it tells why it cannot be read.
    """
    try:
        Path(path).stat()
    except ValueError:
        return False
    except OSError as error:
        return error.errno not in _NO_FILE
    return True


def read_bytes(place: Path) -> bytes:
    """Read a file that is not too large."""
    name = visible(place.name)
    try:
        with place.open("rb") as file:
            data = file.read(BOUNDS.characters + 1)
    except OSError as error:
        raise refused(
            f"cannot read {name!r}: {error.strerror}", "read_failed", path=place, name=name
        ) from error
    return _bounded(data, place)


def _source_of_open(file: Any) -> Source:
    name = getattr(file, "name", None)
    path = name if isinstance(name, str) else None
    data = file.read(BOUNDS.characters + 1)
    if isinstance(data, str):
        text = _bounded(data, path)
    elif isinstance(data, bytes | bytearray):
        text = _decoded(bytes(data), path)
    else:
        raise refused(
            f"reading the file gave a value of type {type(data).__name__}",
            "read_failed",
            path=path,
            fix="open it to be read as text or as bytes",
        )
    kind = FORMATS.get(Path(path).suffix.lower()) if path else None
    return source_of_text(text, kind, path)


def _bounded(data: Data, path: Any) -> Data:
    if len(data) > BOUNDS.characters:
        raise refused(
            f"a playbook of more than {BOUNDS.characters} bytes is not read", "too_large", path=path
        )
    return data


def _decoded(data: bytes, path: Any) -> str:
    try:
        return _bounded(data, path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(
            f"{'the file' if path is not None else 'what was given'} is not UTF-8 text",
            "read_failed",
            path=path,
            fix="save it as UTF-8",
        ) from error


def plain_copy(value: Any, depth: int = 0) -> Any:
    """Copy mappings and lists, so that what is made of them is nobody else's.

    Examples
    --------
    >>> before = {"steps": [{"id": "a"}]}
    >>> plain_copy(before)["steps"].clear(); before
    {'steps': [{'id': 'a'}]}
    """
    if depth > BOUNDS.depth:
        raise refused(f"what was given is nested deeper than {BOUNDS.depth} levels", "too_deep")
    if isinstance(value, Mapping):
        return {key: plain_copy(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list):
        return [plain_copy(member, depth + 1) for member in value]
    return value
