"""What a playbook's document has to be before it is one: all that is wrong, each with its place.

`structure_findings` looks for what the published format asks for. `strict_findings` looks for
what that lets pass and nobody means: misspelt keys, steps nobody can name, limits that cannot
hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from runbook_nb._text import did_you_mean, listed
from runbook_nb.playbooks import grouped
from runbook_nb.playbooks.evidence import is_blank
from runbook_nb.playbooks.foreign import GRAPH_KEYS
from runbook_nb.playbooks.keys import HEAD_KEYS, OWN_STEP_KEYS, PROBE_KEYS, STEP_KEYS, is_extension
from runbook_nb.playbooks.limits import id_fault, limit_faults
from runbook_nb.playbooks.problems import Findings, place_of, told

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from runbook_nb.playbooks.model import Playbook, PlaybookStep

    Model = TypeVar("Model", bound=BaseModel)

#: How many problems there may be for a further key to be told which was meant.
MOST_MEANT: Final = 200

_TEXT_LISTS: Final = ("expected_tools", "hints")

_TRUTH: Final = ("is neither true nor false", "write true or false")
_WHOLE: Final = ("is not a whole number", "write a whole number")
_NUMBER: Final = ("is not a number", "write a number")
_MAPPING: Final = ("is not a mapping", "write keys with their values")

#: What a step says of which it is asked whether a run can keep it.
_LIMITS: Final = ("min_tool_calls", "max_tool_calls", "timeout_seconds", "checks")

#: The words a validator says a field may be.
_WORDS: Final = re.compile(r"'([^']+)'")

#: What a validator finds -> how it is told, and what to write instead.
_TOLD: Final = {
    "string_type": ("is not text", "write a text"),
    "string_too_short": ("is empty", "say what is to be found"),
    "missing": ("is missing", "add it"),
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "list_type": ("is not a list", "write a list"),
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "greater_than_equal": ("is below 0", "give 0 or more, or leave it out"),
    "extra_forbidden": ("is not a key here", "leave it out"),
}


def structure_findings(
    document: Mapping[str, Any], found: Findings, places: Sequence[str] = (), *, strict: bool
) -> None:
    """Note where a document has not the shape of a playbook.

    Parameters
    ----------
    document : mapping
        One with ``steps``; a grouped file has been flattened.
    found : Findings
        Where problems are noted.
    places : sequence of str
        Where each step was written, when not under ``steps``.
    strict : bool
        Whether an empty id is a problem. The published format compares none that is empty, and
        cannot compare one that is a list.

    Examples
    --------
    >>> found = Findings()
    >>> structure_findings({"name": "n", "steps": [{"id": "a"}]}, found, strict=False)
    >>> [(problem.code, problem.where) for problem in found.problems]
    [('missing_field', 'id'), ('step_missing_field', 'steps[0].description')]
    """
    for key in ("id", "name"):
        if key not in document:
            found.add("missing_field", key, "is missing", "add it")
    steps = document.get("steps", [])
    if not isinstance(steps, list):
        found.add("steps_not_list", "steps", "is not a list", "write a list of steps")
        return
    ids: set[Any] = set()
    for n, step in enumerate(steps):
        place = places[n] if places else f"steps[{n}]"
        if not isinstance(step, Mapping):
            found.add("step_not_mapping", place, "is not a mapping", "write its id and description")
            continue
        _step_findings(step, place, found)
        own = step.get("id")
        if strict and not isinstance(own, str):
            continue  # told as what it is when fields are checked
        if own:
            if own in ids:
                found.add(
                    "duplicate_step_id", f"{place}.id", f"{told(own)} is the id of a step before"
                )
            ids.add(own)


def _step_findings(step: Mapping[str, Any], place: str, found: Findings) -> None:
    for key in ("id", "description"):
        if key not in step:
            found.add("step_missing_field", f"{place}.{key}", "is missing", "add it")
    for key in _TEXT_LISTS:
        if key not in step:
            continue
        values = step[key]
        if not isinstance(values, list):
            found.add(
                "step_field_not_list", f"{place}.{key}", "is not a list", "write a list of texts"
            )
        elif not all(isinstance(value, str) for value in values):
            odd = next(value for value in values if not isinstance(value, str))
            found.add(
                "step_field_not_strings",
                f"{place}.{key}",
                f"holds {told(odd)}, which is not text",
                "put it in quotes",
            )


def key_findings(document: Mapping[str, Any], found: Findings) -> None:
    """Note keys that a playbook does not have, in the document as it was written.

    Examples
    --------
    >>> found = Findings()
    >>> key_findings({"id": "x", "steps": [{"id": "a", "expected_tool": ["t"]}]}, found)
    >>> print(found.problems[0])
    steps[0].expected_tool: is not a key of a step; did you mean 'expected_tools'?
    """
    groups = grouped.is_grouped(document)
    head = (*HEAD_KEYS, *grouped.HEAD_KEYS) if groups else HEAD_KEYS
    if not groups and "step_groups" in document:
        if "steps" in document:
            said, fix = "stands beside `steps`, and would not be read", "keep one of the two"
        else:
            said, fix = "is not a list", "write a list of groups"
        found.add("unknown_key", "step_groups", said, fix)
        head = (*head, "step_groups")
    _unknown(document, head, "", "a playbook", found)
    if groups:
        for g, group in _mappings(document["step_groups"]):
            place = f"step_groups[{g}]"
            _unknown(group, (*grouped.GROUP_KEYS, "metadata"), place, "a group of steps", found)
            if not isinstance(group.get("steps", []), list):
                found.add("steps_not_list", f"{place}.steps", "is not a list")
            for n, step in _mappings(group.get("steps")):
                _step_keys(step, f"{place}.steps[{n}]", grouped.STEP_KEYS, found)
    else:
        for n, step in _mappings(document.get("steps")):
            _step_keys(step, f"steps[{n}]", (), found)


def _mappings(entries: Any) -> Iterable[tuple[int, Mapping[str, Any]]]:
    entries = entries if isinstance(entries, list) else []
    return ((n, entry) for n, entry in enumerate(entries) if isinstance(entry, Mapping))


def _step_keys(step: Mapping[str, Any], place: str, more: Sequence[str], found: Findings) -> None:
    _unknown(step, (*STEP_KEYS, *OWN_STEP_KEYS, *more), place, "a step", found)
    for n, probe in _mappings(step.get("required_probes")):
        _unknown(probe, PROBE_KEYS, f"{place}.required_probes[{n}]", "a probe", found, own=False)


def _unknown(
    given: Mapping[str, Any],
    known: Sequence[str],
    where: str,
    what: str,
    found: Findings,
    *,
    own: bool = True,
) -> None:
    keys: list[Any] = [*given]
    for key in keys:
        if key in known or (own and is_extension(key)):
            continue
        if not isinstance(key, str):
            found.add("unknown_key", where, f"has the key {told(key)}, which is not text")
            continue
        if key in GRAPH_KEYS:
            fix: str | None = "it is of graph playbooks; see expected_tools, requires and kind"
        else:
            fix = did_you_mean(key, known) if len(found.problems) < MOST_MEANT else None
            if fix is None and own:
                fix = f"put it under metadata, or call it {'x-' + key!r}"
            elif fix is None:
                fix = f"a probe has {listed(known)}"
        found.add("unknown_key", _inside(where, key), f"is not a key of {what}", fix)


def _inside(where: str, key: str) -> str:
    return place_of([key]) if not where else f"{where}.{place_of([key])}"


def value_findings(
    document: Mapping[str, Any], playbook: Playbook | None, found: Findings, places: Sequence[str]
) -> None:
    """Note ids that name nothing, and limits that no run could keep.

    Examples
    --------
    >>> found = Findings()
    >>> value_findings({"id": " ", "steps": []}, None, found, ())
    >>> str(found.problems[0])
    "id: names nothing; give it a name, like 'incident-response'"
    """
    _check_id(document.get("id"), "id", "'incident-response'", found)
    steps = document.get("steps")
    for n, step in _mappings(steps):
        place = places[n] if places else f"steps[{n}]"
        _check_id(step.get("id"), f"{place}.id", "'detection'", found)
        for p, probe in _mappings(step.get("required_probes")):
            match = probe.get("match")
            if isinstance(match, str) and is_blank(match):
                where = f"{place}.required_probes[{p}].match"
                found.add(
                    "blank_match", where, "is blank, which any call matches", "say what to find"
                )
    head, alone = (_alone(document), _mappings(steps)) if playbook is None else (playbook, ())
    budget = head.max_iterations
    if budget is not None and budget < 1:
        found.add("bad_limit", "max_iterations", f"is {budget}", "give at least 1, or leave it out")
    for n, read in [*enumerate(head.steps), *((n, _step_alone(step)) for n, step in alone)]:
        place = places[n] if places else f"steps[{n}]"
        for fault in islice(limit_faults(read.min_tool_calls, read.max_tool_calls), 1):
            code = "bad_limit" if fault.code == "cap_below_one" else fault.code
            found.add(code, f"{place}.{fault.field}", fault.message, fault.fix)
        time = read.timeout_seconds
        if time is not None and not (0 < time < math.inf):
            said, fix = f"is {time}", "give seconds above 0, or leave it out"
            found.add("bad_limit", f"{place}.timeout_seconds", said, fix)
        _check_findings(read.checks, place, found)


def _alone(document: Mapping[str, Any]) -> Playbook:
    """Read of a head that cannot be read whole what can be read by itself."""
    from runbook_nb.playbooks.model import Playbook

    return _readable(Playbook, {"id": "", "name": ""}, document, ("max_iterations",))


def _step_alone(step: Mapping[str, Any]) -> PlaybookStep:
    from runbook_nb.playbooks.model import PlaybookStep

    return _readable(PlaybookStep, {"id": "", "description": ""}, step, _LIMITS)


def _readable(
    model: type[Model], least: Mapping[str, Any], given: Mapping[str, Any], keys: Iterable[str]
) -> Model:
    from pydantic import ValidationError

    made = dict(least)
    for key in keys:
        try:
            model.model_validate({**made, key: given[key]})
        except (KeyError, ValidationError):
            continue  # it is not there, or is told as what it is when fields are checked
        made[key] = given[key]
    return model.model_validate(made)


def _check_findings(checks: list[dict[str, Any]], place: str, found: Findings) -> None:
    if checks:
        from runbook_nb.playbooks.vocabulary import problems_in

        # What `validation` holds is anybody's: only who is to evaluate it can say what is wrong.
        for one in problems_in(SimpleNamespace(checks=checks, validation={}), place):
            found.add("bad_check", one.where or place, one.message, one.fix)


def _check_id(value: Any, where: str, like: str, found: Findings) -> None:
    if isinstance(value, str) and not value.strip():
        found.add("empty_id", where, "names nothing", f"give it a name, like {like}")
    elif isinstance(value, str) and (fault := id_fault(value)) is not None:
        found.add("id_too_long", where, *fault)


def field_findings(error: ValidationError, found: Findings, places: Sequence[str] = ()) -> None:
    """Note what fields hold that they cannot."""
    for one in error.errors(include_url=False):
        loc = one["loc"]
        if places and len(loc) > 1 and loc[0] == "steps" and isinstance(loc[1], int):
            where = places[loc[1]] + (f".{place_of(loc[2:])}" if loc[2:] else "")
        else:
            where = place_of(loc)
        said = one["msg"]
        message, fix = _TOLD.get(one["type"], (said[:1].lower() + said[1:], None))
        if one["type"] == "string_type" and isinstance(one["input"], int | float | date):
            fix = "put it in quotes"
        if one["type"] == "literal_error":
            words = _WORDS.findall(one["ctx"]["expected"])
            message = f"is {told(one['input'])}, which is none of its words"
            near = did_you_mean(one["input"], words) if isinstance(one["input"], str) else None
            fix = near or f"use {listed([repr(word) for word in words], 'or')}, or leave it out"
        found.add(one["type"], where, message, fix)
