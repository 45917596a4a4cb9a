"""Playbooks from files, texts and mappings, read strictly unless told otherwise.

The strict reading refuses what nobody means (misspelt keys, repeated keys, ids that name nothing,
limits no run could keep, documents of other formats) and tells all of it together, each with its
place and line. The published reading, ``profile="compat"``, gives what the format's first reader
gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from runbook_nb._parsed import Parsed
from runbook_nb._text import did_you_mean
from runbook_nb.errors import DefinitionError
from runbook_nb.playbooks import grouped, published
from runbook_nb.playbooks.checking import (
    field_findings,
    key_findings,
    structure_findings,
    value_findings,
)
from runbook_nb.playbooks.foreign import foreign_format
from runbook_nb.playbooks.policy import PROFILES
from runbook_nb.playbooks.problems import Findings, refused, told
from runbook_nb.playbooks.sources import Source, source_of, source_of_file, source_of_text

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook

P = ParamSpec("P")
R = TypeVar("R")


class _Either(Generic[P, R]):
    """A method that a class answers too, by an instance of the default kind."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type[Any]) -> Callable[P, R]:
        one = owner() if instance is None else instance
        return self._method.__get__(one, owner)  # type: ignore[no-any-return]


class PlaybookLoader:
    """Reads playbooks, strictly unless told otherwise.

    Parameters
    ----------
    profile : {"safe", "compat"}, optional
        ``"safe"`` reads strictly; ``"compat"`` gives what the format's first reader gave.
    strict : bool, optional
        The same, said otherwise: False is ``profile="compat"``.

    Notes
    -----
    Its methods may be called on the class as well, which reads strictly.

    Examples
    --------
    >>> book = PlaybookLoader.load_dict({"id": "ir", "name": "Incident response"})
    >>> book.id, PlaybookLoader(profile="compat").strict
    ('ir', False)
    """

    def __init__(self, *, profile: str | None = None, strict: bool | None = None) -> None:
        self.strict = _is_strict(profile, strict)

    def __repr__(self) -> str:
        return f"PlaybookLoader(profile={'safe' if self.strict else 'compat'!r})"

    @_Either
    def load_file(self, path: Any) -> Playbook:
        """Load a file that ends in ``.yaml``, ``.yml`` or ``.json``."""
        if not self.strict:
            return published.load_file(path)
        return _load(source_of_file(path))

    @_Either
    def load_dict(self, data: Mapping[str, Any]) -> Playbook:
        """Load plain values; they stay as they are."""
        if not self.strict:
            return published.load_document(data)
        return _load(Source(given=data))

    @_Either
    def load_json_string(self, text: str) -> Playbook:
        """Load JSON text."""
        if not self.strict:
            return published.load_text(text, "json")
        return _load(source_of_text(text, "json"))

    @_Either
    def load_yaml_string(self, text: str) -> Playbook:
        """Load YAML text."""
        if not self.strict:
            return published.load_text(text, "yaml")
        return _load(source_of_text(text, "yaml"))


def load_playbook(
    source: Any, *, profile: str | None = None, strict: bool | None = None
) -> Playbook:
    r"""Load a playbook from whatever holds one.

    Parameters
    ----------
    source : mapping, path, str, bytes or open file
        A text that begins with ``{`` or holds a line break is JSON or YAML; any other text is
        the name of a file.
    profile : {"safe", "compat"}, optional
        ``"safe"``, the default, reads strictly; ``"compat"`` gives what the format's first
        reader gave.
    strict : bool, optional
        The same, said otherwise: False is ``profile="compat"``.

    Returns
    -------
    Playbook

    Raises
    ------
    PlaybookLoadError
        With ``code``, ``path``, ``errors`` (texts) and ``problems`` (each with ``code``,
        ``where``, ``line``, ``column`` and ``fix``).

    Examples
    --------
    >>> book = load_playbook("id: ir\nname: Incident response\nsteps:\n"
    ...                      "- {id: detect, description: Look., expected_tools: [query_siem]}\n")
    >>> [step.id for step in book.steps]
    ['detect']
    >>> from runbook_nb.errors import PlaybookLoadError
    >>> try:
    ...     load_playbook("id: ir\nname: Incident response\nstep: []\n")
    ... except PlaybookLoadError as error:
    ...     print(error.problems[0])
    line 3, column 1, step: is not a key of a playbook; did you mean 'steps'?
    """
    from runbook_nb.playbooks.model import Playbook

    if isinstance(source, Playbook):
        return source
    if not _is_strict(profile, strict):
        return published.load_any(source)
    return _load(source_of(source))


def _is_strict(profile: Any, strict: bool | None) -> bool:
    if profile is not None and profile not in PROFILES:
        raise DefinitionError(
            f"there is no profile {told(profile)} of reading playbooks",
            fix=did_you_mean(str(profile), PROFILES) or "use 'safe' or 'compat'",
        )
    if profile is None:
        return strict is not False
    if strict is not None and strict != (profile == "safe"):
        raise DefinitionError(
            f"strict={strict} and profile={profile!r} say opposite things", fix="give one of them"
        )
    return bool(profile == "safe")


def _load(source: Source) -> Playbook:
    """Read strictly, and tell all that is wrong together."""
    parsed = source.parsed()
    document = parsed.value
    foreign = foreign_format(document)
    if foreign is not None:
        what, fix = foreign
        raise refused(
            f"{source.name or 'this'} is {what}; read as a playbook it would lose its rules",
            "foreign_format",
            path=source.path,
            name=source.name,
            fix=fix,
        )
    if not isinstance(document, Mapping):
        raise refused(
            f"{source.name or 'this'} holds no playbook, but {_kind(document)}",
            "not_mapping",
            path=source.path,
            name=source.name,
            fix="write keys with their values: id, name, steps",
        )
    return _built(document, parsed, source)


def _built(document: Mapping[str, Any], parsed: Parsed, source: Source) -> Playbook:
    from pydantic import ValidationError

    from runbook_nb.playbooks.model import Playbook

    found = Findings(parsed)
    key_findings(document, found)
    places: tuple[str, ...] = ()
    if grouped.is_grouped(document):
        flat = grouped.flatten(document)
        document, places = flat.document, flat.places
    structure_findings(document, found, places, strict=True)
    structural = bool(found)
    playbook, cause = None, None
    try:
        playbook = Playbook.model_validate(document)
    except ValidationError as error:
        cause = error
        field_findings(error, found, places)
    value_findings(document, playbook, found, places)
    if playbook is not None and not found:
        return playbook
    title = document.get("id") if isinstance(document.get("id"), str) else None
    what = f"playbook {told(title)}" if title else "the playbook"
    of = f" of {source.name}" if source.name else ""
    raise refused(
        f"{what}{of} cannot be read",
        "structure" if structural else "validation",
        path=source.path,
        name=source.name,
        problems=found.problems,
    ) from cause


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"a value of type {type(value).__name__}"
