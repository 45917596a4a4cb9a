"""The public names and their signatures, pinned in ``public_api.json``.

A difference is either a mistake or a decision. For a decision, run this file with
``RUNBOOK_NB_ACCEPT=1`` and commit the JSON with the change.
"""

import inspect
import json
import os
import re
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest

import runbook_nb

GOLDEN = Path(__file__).with_name("public_api.json")
ACCEPT = os.environ.get("RUNBOOK_NB_ACCEPT") == "1"


def spelt(annotation) -> str:
    """Write an annotation as the source has it."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def signature(function) -> str:
    """Write a signature the same way under every Python."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    parts, starred = [], False
    for parameter in found.parameters.values():
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, starred = f"*{text}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if parameter.annotation is not parameter.empty:
            text += f": {spelt(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {re.sub(r' at 0x[0-9a-fA-F]+', '', repr(parameter.default))}"
        parts.append(text)
    answer = (
        "" if found.return_annotation is found.empty else f" -> {spelt(found.return_annotation)}"
    )
    return f"({', '.join(parts)}){answer}"


def members(cls: type) -> dict[str, str]:
    """Describe the public attributes that a class of ours, or one it inherits, defines."""
    found = {}
    for name in dir(cls):
        owner = next((c for c in cls.__mro__ if name in vars(c)), object)
        if not owner.__module__.startswith("runbook_nb"):
            continue
        if name.startswith("_") and name != "__call__":
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, classmethod | staticmethod):
            kind = type(value).__name__
            found[name] = f"{kind} {signature(getattr(cls, name))}"
        elif inspect.iscoroutinefunction(value):
            found[name] = f"async {signature(value)}"
        elif inspect.isfunction(value):
            found[name] = signature(value)
        elif hasattr(type(value), "__get__"):
            found[name] = "attribute"
        elif isinstance(value, Enum):
            found[name] = repr(value.value)
        elif value is None or isinstance(value, str | int | float):
            found[name] = repr(value)
        else:
            found[name] = type(value).__name__
    return found


def describe(value) -> object:
    if isinstance(value, ModuleType):
        public = getattr(value, "__all__", None)
        if public is None:
            public = [
                name
                for name, item in vars(value).items()
                if not name.startswith("_") and getattr(item, "__module__", "") == value.__name__
            ]
        return {"module": {name: describe(getattr(value, name)) for name in sorted(public)}}
    if inspect.isclass(value):
        made = "" if issubclass(value, Enum) else signature(value)
        return {"class": made, "members": members(value)}
    if inspect.iscoroutinefunction(value):
        return f"async {signature(value)}"
    if inspect.isroutine(value):
        return signature(value)
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    return f"an instance of {type(value).__name__}"


def test_the_public_api_is_what_was_agreed():
    names = sorted(name for name in runbook_nb.__all__ if name != "__version__")
    found = {name: describe(getattr(runbook_nb, name)) for name in names}
    if ACCEPT:
        text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
        GOLDEN.write_text(f"{text}\n", encoding="utf-8")
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_all_names_are_named_once():
    assert len(set(runbook_nb.__all__)) == len(runbook_nb.__all__)


@pytest.mark.parametrize("name", runbook_nb.__all__)
def test_a_public_name_can_be_imported(name):
    scope = {}
    exec(f"from runbook_nb import {name}", scope)  # noqa: S102 - the statement a reader would write
    assert name in scope


def test_completion_offers_every_public_name():
    assert set(runbook_nb.__all__) <= set(dir(runbook_nb))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = runbook_nb.no_such_name
