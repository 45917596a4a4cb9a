"""The public JSON schemas of CACAO v2.0, where they are: found beside the checkout or as told.

They are not part of this project and are not copied into it. ``RUNBOOK_NB_CACAO`` names the folder
that holds ``playbook.json``; otherwise ``shared/data/cacao/schemas`` is looked for beside each
folder that the checkout lies in, and that the repository lies in which it was cloned from.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry
from referencing.jsonschema import DRAFT7

BESIDE = Path("shared/data/cacao/schemas")


def folder() -> Path | None:
    told = os.environ.get("RUNBOOK_NB_CACAO")
    here = Path(__file__).resolve()
    ups = () if told else (*here.parents, *_cloned_from(here.parent))
    places = [Path(told)] if told else [up / BESIDE for up in ups]
    return next((place for place in places if (place / "playbook.json").is_file()), None)


def _cloned_from(checkout: Path) -> Iterator[Path]:
    """Yield the folders around the repository of this machine that a checkout was cloned from."""
    asked = ["git", "-C", str(checkout), "config", "--get", "remote.origin.url"]
    try:
        origin = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git here
        return
    place = Path(origin.removeprefix("file://"))
    if origin and place.is_dir():
        yield from place.resolve().parents


WHY_NOT = "the CACAO schemas are not here; RUNBOOK_NB_CACAO names the folder of playbook.json"


@cache
def _schemas() -> tuple[dict[str, Any], Any]:
    place = folder()
    assert place is not None, WHY_NOT
    found = {
        str(file.relative_to(place).with_suffix("")): json.loads(file.read_text("utf-8"))
        for file in sorted(place.rglob("*.json"))
    }
    held = [(one["$id"], DRAFT7.create_resource(one)) for one in found.values()]
    return found, Registry().with_resources(held)


def faults(document: dict[str, Any]) -> list[str]:
    """Say what the schemas have against a document: of the whole, then of each command.

    Their dialect overlooks names that no schema knows, and commands are checked as far only as
    all of them are alike; so both are looked at besides.
    """
    return [
        *_against("playbook", document, ""),
        *(
            fault
            for place, name, part in _parts(document)
            for fault in _strangers(name, part, place)
        ),
        *(
            fault
            for place, name, part in _parts(document)
            if name.startswith("commands/")
            for fault in _against(name, part, place)
        ),
    ]


def _against(name: str, part: Any, place: str) -> Iterator[str]:
    found, registry = _schemas()
    for error in jsonschema.Draft7Validator(found[name], registry=registry).iter_errors(part):
        yield f"{place}{error.json_path}: {error.message[:200]}"


def _parts(document: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    yield "", "playbook", document
    for key, step in document["workflow"].items():
        yield key, f"workflows/{step['type']}", step
        for n, command in enumerate(step.get("commands", ())):
            yield f"{key}[{n}]", f"commands/{command['type']}", command
    for home in ("agent_definitions", "target_definitions"):
        for key, part in document.get(home, {}).items():
            yield key, f"agent-target/{part['type']}", part
    for key, part in document.get("extension_definitions", {}).items():
        yield key, "extension-definition/extension-definition", part


def _strangers(name: str, part: dict[str, Any], place: str) -> Iterator[str]:
    known = set(_properties(name))
    assert known
    yield from (f"{place}: {name} knows no {one!r}" for one in part if one not in known)


def _properties(name: str) -> Iterator[str]:
    found, _ = _schemas()
    for schema in (found[name], *found[name].get("allOf", ())):
        yield from schema.get("properties", {})
        if "$ref" in schema:
            home = Path(name).parent
            yield from _properties(os.path.normpath(home / schema["$ref"]).removesuffix(".json"))
