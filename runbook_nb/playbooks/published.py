"""The reading of the published format by its first reader, with all that it lets pass.

Unknown keys are dropped, repeated keys overwrite, YAML has the types of version 1.1, what is no
mapping at all is raised as Python raises it. Only what would exhaust the machine is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runbook_nb.playbooks import grouped
from runbook_nb.playbooks.checking import field_findings, structure_findings
from runbook_nb.playbooks.keys import HEAD_KEYS, STEP_KEYS
from runbook_nb.playbooks.problems import Findings, refused, told
from runbook_nb.playbooks.sources import BOUNDS, kind_of, read_bytes

if TYPE_CHECKING:
    from runbook_nb.playbooks.model import Playbook


def load_any(source: Any) -> Playbook:
    """Load from a mapping, a path, or a text that is a path or JSON."""
    if isinstance(source, dict):
        return load_document(source)
    if isinstance(source, Path):
        return load_file(source)
    text = str(source)
    if _exists(text):
        return load_file(Path(text))
    if text.strip().startswith("{"):
        return load_text(text, "json")
    raise refused(f"there is no file {told(text)}", "not_found", path=text)


def _exists(text: str) -> bool:
    try:
        Path(text).stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True  # what else goes wrong, a name that is too long say, is raised as it is


def load_file(path: Any) -> Playbook:
    """Load a file by its ending."""
    place = Path(path)
    if not place.exists():
        raise refused(f"there is no file {told(str(place))}", "not_found", path=place)
    kind = kind_of(place)
    try:
        text = read_bytes(place).decode("utf-8")
        return load_document(_parse(text, kind, place))
    except (UnicodeDecodeError, AttributeError, TypeError) as error:
        raise refused(
            f"{told(place.name)} cannot be read as a playbook", "read_failed", path=place
        ) from error


def load_text(text: str, kind: str) -> Playbook:
    """Load JSON or YAML text."""
    return load_document(_parse(text, kind, None))


def _parse(text: str, kind: str, path: Path | None) -> Any:
    import yaml

    what = told(path.name) if path else f"the {kind.upper()} text"
    if len(text) > BOUNDS.characters:
        said = f"{what} is longer than {BOUNDS.characters} characters"
        raise refused(said, "too_large", path=path)
    try:
        value = json.loads(text) if kind == "json" else yaml.load(text, Loader=yaml.SafeLoader)
        size, depth = extent_of(value)
    except (ValueError, yaml.YAMLError) as error:
        # ValueError: bad JSON, and what YAML reads as a date that there is not.
        bad = isinstance(error, json.JSONDecodeError | yaml.YAMLError)
        code = f"bad_{kind}" if bad else "read_failed"
        raise refused(f"{what} is not {kind.upper()}", code, path=path) from error
    except RecursionError:
        size, depth = 0, BOUNDS.depth + 1
    if depth > BOUNDS.depth:
        said = f"{what} is nested deeper than {BOUNDS.depth} levels"
        raise refused(said, "too_deep", path=path)
    if size > BOUNDS.characters:
        raise refused(f"{what} repeats too much by aliases", "too_large", path=path)
    return value


def extent_of(value: Any) -> tuple[int, int]:
    """Count the values and the levels that aliases written out would make.

    Examples
    --------
    >>> shared = [1, 2, 3]
    >>> extent_of({"a": shared, "b": [shared, shared]})
    (14, 3)
    """
    return _extent(value, {}, 0)


def _extent(value: Any, known: dict[int, tuple[int, int]], depth: int) -> tuple[int, int]:
    if not isinstance(value, dict | list):
        return 1, 0
    if depth > BOUNDS.depth:
        return 0, 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        sizes = [_extent(member, known, depth + 1) for member in inner]
        size = 1 + sum(size for size, _ in sizes)
        known[id(value)] = size, 1 + max((deep for _, deep in sizes), default=0)
    return known[id(value)]


def load_document(document: Any) -> Playbook:
    """Make a playbook of plain values."""
    from pydantic import ValidationError

    from runbook_nb.playbooks.model import Playbook

    if not isinstance(document, Mapping):
        raise AttributeError(f"a value of type {type(document).__name__} has no keys")
    if grouped.is_grouped(document):
        document = grouped.flatten_published(document)
    found = Findings()
    structure_findings(document, found, strict=False)
    if found:
        raise refused(
            "this is not the structure of a playbook", "structure", problems=found.problems
        )
    try:
        return Playbook.model_validate(_known(document))
    except ValidationError as error:
        field_findings(error, found)
        raise refused(
            "fields of the playbook hold what they cannot", "validation", problems=found.problems
        ) from error


def _known(document: Mapping[str, Any]) -> dict[str, Any]:
    head = _taken(document, HEAD_KEYS)
    if "steps" in head:
        head["steps"] = [_taken(step, STEP_KEYS) for step in head["steps"]]
    return head


def _taken(given: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key in keys}
