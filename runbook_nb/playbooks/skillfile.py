"""SKILL.md: skills as files, read by what is meant or by the letter of the published format.

Under ``safe`` a field that cannot be read is refused: a list of tools that is dropped because of
a slip would bind nothing, and nobody would know. Under ``compat`` it is dropped, as published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runbook_nb._parsed import Bounds, Malformed, Parsed, read
from runbook_nb._text import clip, counted, did_you_mean, listed, visible
from runbook_nb.errors import DefinitionError, LoadError, Problem
from runbook_nb.playbooks.keys import PROBE_KEYS, is_extension
from runbook_nb.playbooks.patterns import parse_pattern
from runbook_nb.playbooks.policy import PROFILES
from runbook_nb.playbooks.published import extent_of
from runbook_nb.playbooks.skills import SKILL_FILE, Skill

#: What is read at most.
BOUNDS: Final = Bounds(characters=1_048_576, depth=50, repeats=1_000, what="skill")

#: Longest name and longest description of a skill whose file is read strictly.
MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_COMPAT: Final = re.compile(r"---[ \t\r]*\n(.*?)(?<=\n)---[ \t\r]*\n(.*)", re.DOTALL)
_SAFE: Final = re.compile(r"\s*---[ \t\r]*\n(.*?)(?<=\n)---[ \t\r]*(?:\n(.*))?\Z", re.DOTALL)
_PLAIN_KEYS: Final = ("name", "description", "license", "compatibility", "metadata")
_HYPHENS: Final = ("allowed-tools", "required-probes", "min-tool-calls", "max-tool-calls")
_KEYS: Final = (*_PLAIN_KEYS, *_HYPHENS, *(key.replace("-", "_") for key in _HYPHENS))


class _NotFields(LoadError, AttributeError):
    """The front matter is no mapping; also of the class that published readers let escape."""


class _NotProbes(LoadError, TypeError):
    """The probes are no list; also of the class that published readers let escape."""


def read_skill(
    text: str, path: str | Path | None = None, *, strict: bool = False, profile: str = "safe"
) -> Skill:
    """Read a skill from the text of its file; see `Skill.from_content`."""
    if profile not in PROFILES:
        raise DefinitionError(
            f"there is no profile {profile!r}",
            code="unknown_profile",
            where="profile",
            fix=did_you_mean(profile, PROFILES) or f"use {listed(PROFILES, 'or')}",
        )
    folder = None if path is None else Path(path)
    if profile == "compat":
        return _by_the_letter(text, folder)
    return _Reader(strict=strict).skill(text, folder)


def read_skill_file(path: str | Path, *, strict: bool = False, profile: str = "safe") -> Skill:
    """Read a skill from its folder, or from its file; see `Skill.from_file`."""
    place = Path(path)
    file = place / SKILL_FILE if place.is_dir() else place
    if file.name != SKILL_FILE or not file.is_file():
        raise FileNotFoundError(f"{visible(str(place))} is no {SKILL_FILE}, and holds none")
    try:
        text = file.read_bytes().decode("utf-8" if profile == "compat" else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"{visible(str(file))} is not UTF-8 text", where=str(file)) from error
    return read_skill(text, file.parent, strict=strict, profile=profile)


def read_skill_folders(
    path: str | Path, *, strict: bool = False, profile: str = "safe"
) -> list[Skill]:
    """Read the skills of the folders in a folder; see `Skill.from_directory`."""
    found: list[Skill] = []
    problems: list[Problem] = []
    for folder in sorted(Path(path).iterdir()):
        if not (folder / SKILL_FILE).is_file():
            continue
        try:
            found.append(read_skill_file(folder, strict=strict, profile=profile))
        except LoadError as error:
            problems.append(Problem(message=str(error), where=folder.name))
    if strict and problems:
        raise LoadError(
            f"{counted(len(problems), 'skill')} cannot be read",
            code="bad_skill",
            where=visible(str(path)),
            problems=problems,
        )
    return found


def validate_skill_name(name: str, strict: bool = False) -> bool:
    """Say whether a name is one of 1 to 64 lower-case letters, digits and single hyphens.

    Parameters
    ----------
    name : str
        The name.
    strict : bool, optional
        Whether a bad one is an error.

    Examples
    --------
    >>> validate_skill_name("log-search"), validate_skill_name("Log search")
    (True, False)
    """
    if len(name) <= MAX_NAME and _NAME.fullmatch(name):
        return True
    if strict:
        raise DefinitionError(
            f"{clip(visible(name), 80)!r} is not a name for a skill",
            code="bad_skill_name",
            where="name",
            fix=f"use 1 to {MAX_NAME} lower-case letters, digits and single hyphens",
        )
    return False


# --- what is meant ----------------------------------------------------------------------------


@dataclass
class _Reader:
    """Reads one file and collects everything that is wrong with it."""

    strict: bool
    problems: list[Problem] = field(default_factory=list)
    parsed: Parsed = field(default_factory=Parsed)
    kind: type[LoadError] = LoadError

    def skill(self, text: str, path: Path | None) -> Skill:
        front, body = _parted(text.removeprefix("\ufeff"))
        first = text[: len(text) - len(text.lstrip())].count("\n") + 1  # the line of the fence
        given = self._fields(front, first)
        made = Skill(
            name=self._text(given, "name"),
            description=self._text(given, "description"),
            instructions=body.strip(),
            path=path,
            allowed_tools=self._tools(*self._either(given, "allowed-tools")),
            required_probes=self._probes(*self._either(given, "required_probes")),
            min_tool_calls=self._bound(*self._either(given, "min-tool-calls")),
            max_tool_calls=self._bound(*self._either(given, "max-tool-calls")),
            metadata=self._metadata(given.get("metadata")),
            license=given.get("license"),
            compatibility=given.get("compatibility"),
        )
        if self.strict:
            self._check(made, given, path)
        if self.problems:
            named = f"the skill {clip(visible(made.name), 60)!r}" if made.name else "a skill"
            raise self.kind(f"{named} cannot be read", code="bad_skill", problems=self.problems)
        return made

    def _fields(self, front: str, first: int) -> Mapping[str, Any]:
        try:
            self.parsed = read(front, "yaml", BOUNDS)
        except Malformed as bad:
            line = None if bad.line is None else bad.line + first
            raise LoadError(
                f"the front matter cannot be read: {bad.message}",
                code="bad_skill",
                where=None if line is None else f"line {line}",
                fix=bad.fix,
            ) from None
        self.parsed.lines = {key: line + first for key, line in self.parsed.lines.items()}
        if not isinstance(self.parsed.value, Mapping):
            raise _NotFields(
                "the front matter is no mapping of fields",
                code="bad_skill",
                where=f"line {first + 1}",
                fix="write 'name: ...' and 'description: ...' in it",
            )
        return self.parsed.value

    def _add(self, key: str, message: str, fix: str | None = None) -> None:
        line = self.parsed.line_of(key)
        where = key if line is None else f"line {line}, {key}"
        self.problems.append(Problem(message=message, where=where, fix=fix))

    def _either(self, given: Mapping[str, Any], key: str) -> tuple[str, Any]:
        """Give the spelling in use, and what stands there; the first one wins where both are."""
        other = key.replace("-", "_") if "-" in key else key.replace("_", "-")
        if self.strict and key in given and other in given:
            self._add(other, f"is there as {key!r} too", "keep one of the two spellings")
        used = key if given.get(key) or other not in given else other
        return used, given.get(used)

    def _text(self, given: Mapping[str, Any], key: str) -> str:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        said = "is missing" if value is None else "is not text, or blank"
        self._add(key, said, f"write '{key}: ...' in the front matter")
        return ""

    def _tools(self, key: str, value: Any) -> list[str] | None:
        if value is None:
            return None
        if isinstance(value, str):
            return _apart(value)
        if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
            return [str(item).strip() for item in value]
        self._add(key, "is not a list of tools", "write [read_file, query_siem]")
        return None

    def _probes(self, key: str, value: Any) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.kind = _NotProbes
            self._add(key, "is not a list of probes", "write a list of {name: ..., match: ...}")
            return []
        return [found for n, one in enumerate(value) if (found := self._probe(f"{key}[{n}]", one))]

    def _probe(self, where: str, given: Any) -> Any:
        from runbook_nb.playbooks.model import RequiredProbe

        made = _probe_of(given, RequiredProbe)
        if made is None:
            self._add(where, "has no name, or nothing to match", "write {name: ..., match: ...}")
        elif self.strict:
            for key in set(given) - {*PROBE_KEYS}:
                near = did_you_mean(str(key), PROBE_KEYS)
                self._add(f"{where}.{key}", "is not a key of a probe", near)
        return made

    def _bound(self, key: str, value: Any) -> int | None:
        if value is None:
            return None
        if _is_count(value):
            return int(value)
        self._add(key, "is not a number of calls", "write a whole number of 0 or more")
        return None

    def _metadata(self, value: Any) -> Any:
        if value is None or isinstance(value, Mapping):
            return dict(value or {})
        self._add("metadata", "is not a mapping", "write 'key: value' lines below it")
        return {}

    def _check(self, made: Skill, given: Mapping[str, Any], path: Path | None) -> None:
        for key in given:
            if key not in _KEYS and not is_extension(key):
                near = did_you_mean(key, _KEYS)
                self._add(key, "is not a key here", near or "put it under metadata, or 'x-' before")
        if made.name and not validate_skill_name(made.name):
            rule = f"use 1 to {MAX_NAME} lower-case letters, digits and single hyphens"
            self._add("name", "is not a name for a skill", rule)
        elif path is not None and made.name and path.resolve().name != made.name:
            self._add("name", "is not what its folder is called", "give both the same name")
        if len(made.description) > MAX_DESCRIPTION:
            self._add("description", f"is longer than {MAX_DESCRIPTION} characters")
        for entry in made.allowed_tools or ():
            try:
                parse_pattern(entry)
            except DefinitionError as error:
                self._add("allowed-tools", error.message, error.fix)


def _parted(text: str) -> tuple[str, str]:
    _refuse_long(text)
    found = _SAFE.match(text)
    if found is None:
        began = re.match(r"\s*---[ \t\r]*(?:\n|\Z)", text)
        raise LoadError(
            "the front matter is never closed" if began else "there is no front matter",
            code="bad_skill",
            where="line 1",
            fix="put 'name: ...' and 'description: ...' between two lines of '---'",
        )
    return found[1] or "", found[2] or ""


def _refuse_long(text: str) -> None:
    if len(text) > BOUNDS.characters:
        raise LoadError(f"the file is longer than {BOUNDS.characters} characters", code="bad_skill")


def _apart(text: str) -> list[str]:
    """Part a text at commas and white space, but not inside the brackets of a bound."""
    return re.findall(r"[^\s,(]+(?:\([^)]*\))?", text)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _probe_of(given: Any, make: Callable[..., Any]) -> Any:
    if not isinstance(given, Mapping):
        return None
    name, match = (
        "" if given.get(key) is None else str(given[key]).strip() for key in ("name", "match")
    )
    if not name or not match:
        return None
    said = given.get("description")
    return make(name=name, match=match, description="" if said is None else str(said))


# --- by the letter ----------------------------------------------------------------------------


def _by_the_letter(text: str, path: Path | None) -> Skill:
    import yaml

    from runbook_nb.playbooks.model import RequiredProbe

    found = _COMPAT.match(text)
    given: Any = {}
    _refuse_long(text)
    if found is not None:
        try:
            given = yaml.safe_load(found[1]) or {}
        except (yaml.YAMLError, ValueError, RecursionError):
            given = {}
        size, depth = extent_of(given)
        if size > BOUNDS.characters or depth > BOUNDS.depth:
            raise LoadError("the front matter holds more than is read", code="bad_skill")
    if not isinstance(given, Mapping):
        raise _NotFields("the front matter is no mapping of fields", code="bad_skill")
    missing = [key for key in ("name", "description") if not given.get(key)]
    if found is None or missing:
        raise LoadError(f"{listed(missing)} cannot be read from the text", code="bad_skill")
    probes = given.get("required_probes") or given.get("required-probes") or ()
    if not isinstance(probes, list | tuple | str | Mapping):
        raise _NotProbes("the probes are no list", code="bad_skill", where="required_probes")
    return Skill(
        name=given["name"],
        description=given["description"],
        instructions=found[2].strip(),
        path=path,
        allowed_tools=_tools_of(given.get("allowed-tools")),
        required_probes=[made for one in probes if (made := _probe_of(one, RequiredProbe))],
        min_tool_calls=_first_count(given, "min-tool-calls", "min_tool_calls"),
        max_tool_calls=_first_count(given, "max-tool-calls", "max_tool_calls"),
        metadata=given.get("metadata", {}),
        license=given.get("license"),
        compatibility=given.get("compatibility"),
    )


def _tools_of(given: Any) -> list[str] | None:
    if isinstance(given, str):
        return given.split()
    return [str(item) for item in given] if isinstance(given, list) else None


def _first_count(given: Mapping[str, Any], *keys: str) -> int | None:
    return next((given[key] for key in keys if _is_count(given.get(key))), None)
