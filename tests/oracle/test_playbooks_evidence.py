"""Recorded probes and skill files, as they were recorded and as the safe profile reads them."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from playbook_values import decode, recorded

from runbook_nb._parsed import Malformed
from runbook_nb._parsed import read as read_yaml
from runbook_nb.playbooks.evidence import is_blank, matched_probes
from runbook_nb.playbooks.skillfile import BOUNDS, validate_skill_name
from runbook_nb.playbooks.skills import Skill


def judged(query, form):
    probes = [SimpleNamespace(name=match, match=match) for match in query["matches"]]
    found = matched_probes(probes, query["tool"], decode(query["args"]), form)
    return {match: match in found for match in query["matches"]}


@pytest.mark.parametrize("case", recorded("probe"))
def test_a_probe_matches_as_recorded(case, outcome):
    for query, expected in zip(case["input"]["queries"], case["expect"]["matched"], strict=True):
        assert judged(query, "v1") == expected
    outcome({"family": "playbooks probe compat", **case}, "matched")


def texts_in(value):
    """Give every text of some arguments as it is written, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_in(part)]
    if isinstance(value, list | tuple | set):
        return [text for item in value for text in texts_in(item)]
    return []


@pytest.mark.parametrize("case", recorded("probe"))
def test_under_the_safe_form_texts_are_found_as_they_are_written(case, outcome):
    """What was found still is, but for escapes and blanks; so is a text of any script (row Q23)."""
    for query, expected in zip(case["input"]["queries"], case["expect"]["matched"], strict=True):
        found, arguments = judged(query, "v2"), decode(query["args"])
        holds_itself = "$circular" in json.dumps(query["args"])
        texts = [query["tool"]] if holds_itself else [query["tool"], *texts_in(arguments)]
        for match, before in expected.items():
            if is_blank(match):
                assert not found[match]
            elif before and "\\" not in match:
                assert found[match]
            if not is_blank(match) and any(match in text for text in texts):
                assert found[match]
    outcome({"family": "playbooks probe safe", **case}, "matched")


def better(match, tool, arguments):
    """Say what row Q23 makes of a probe: whether it must match now; None where it says nothing."""
    if is_blank(match):
        return False
    texts = [tool, *texts_in(arguments)]
    pairs = arguments.items() if isinstance(arguments, dict) else ()
    leaves = [f"{key}={value}" for key, value in pairs if isinstance(value, str)]
    if any(match.casefold() in text.casefold() for text in [*texts, *leaves]):
        return True  # as it is written, in any case, or as `key=value`
    escapes = re.search(r"\\u[0-9a-f]{4}", match, re.IGNORECASE)
    return False if escapes else None


@pytest.mark.parametrize("case", recorded("probe"))
def test_what_a_quirk_of_probes_becomes_is_asserted(case, outcome, unjudged):
    if case["quirk"] is None:
        return
    told = []
    for query in case["input"]["queries"]:
        if "$" in json.dumps(query["args"]):
            continue
        arguments, found = query["args"], judged(query, "v2")
        wanted = {match: better(match, query["tool"], arguments) for match in query["matches"]}
        told += [want for want in wanted.values() if want is not None]
        assert {
            match: want if want is not None else found[match] for match, want in wanted.items()
        } == found
    if not told:
        unjudged(case)
        return
    outcome({"family": "playbooks probe safe", **case}, "improved")


# --- skill files ------------------------------------------------------------------------------

FIELDS = (
    "name",
    "description",
    "instructions",
    "allowed_tools",
    "required_probes",
    "min_tool_calls",
    "max_tool_calls",
    "metadata",
    "license",
    "compatibility",
)


def read(case, **how):
    """Give what came of reading: the fields as they were recorded, or the classes of the error."""
    try:
        skill = Skill.from_content(case["input"]["content"], **how)
    except Exception as error:
        return None, [one.__name__ for one in type(error).__mro__]
    fields = {name: getattr(skill, name) for name in FIELDS}
    fields["required_probes"] = [probe.model_dump() for probe in skill.required_probes]
    return fields, []


@pytest.mark.parametrize("case", recorded("skill_file"))
def test_by_the_letter_a_skill_file_is_read_as_recorded(case, outcome):
    fields, classes = read(case, profile="compat")
    expected = case["expect"]
    if expected["ok"]:
        assert fields == expected["skill"]
    else:
        assert fields is None
        assert expected["error_class"] in classes
    outcome({"family": "playbooks skill_file compat", **case}, "matched")


def trimmed(fields):
    """Give recorded fields as they are meant: texts without blanks around them, no null mapping."""
    if fields is None:
        return None
    texts = {key: str(fields[key]).strip() for key in ("name", "description")}
    return {**fields, **texts, "metadata": fields["metadata"] or {}}


def front_of(text):
    """Give the front matter of a skill file in the types of YAML 1.1 and of YAML 1.2."""
    import yaml

    held = re.match(r"\s*---[ \t]*\n(.*?)^---[ \t]*$", text.removeprefix("\ufeff"), re.S | re.M)
    try:
        return (
            (yaml.safe_load(held[1]), read_yaml(held[1], "yaml", BOUNDS).value)
            if held
            else ({}, {})
        )
    except (yaml.YAMLError, ValueError, Malformed):
        return {}, {}


def by_meaning(case):
    """Say, from the text and by a reading of its own, which of row Q32 it shows, if any."""
    text = case["input"]["content"]
    front, now = front_of(text)
    if front is not None and not isinstance(front, dict):
        return "list"
    front = front or {}
    probes = front.get("required_probes") or front.get("required-probes")
    if isinstance(probes, int | float):
        return "number"
    if text.startswith("\ufeff") or text[:1].isspace():
        return "start"
    if text.endswith("\n---"):
        return "end"
    tools = front.get("allowed-tools")
    if "allowed_tools" in front and tools is None:
        return "underscore"
    if isinstance(tools, str) and re.search(r"\([^)]*\s", tools):
        return "bracket"
    if isinstance(tools, str) and "," in tools:
        return "comma"
    if front != now:
        return "words"
    name = front.get("name")
    if isinstance(name, str) and name.strip() and not validate_skill_name(name.strip()):
        return "name"
    return "metadata" if "metadata" in front and front["metadata"] is None else None


def all_texts(fields):
    """Give what tools and probes are called by."""
    probes = [text for one in fields["required_probes"] for text in (one["name"], one["match"])]
    return [*(fields["allowed_tools"] or ()), *probes]


@pytest.mark.parametrize("case", recorded("skill_file"))
def test_by_meaning_a_skill_file_is_read_or_refused_with_a_code(case, outcome, unjudged):
    fields, classes = read(case)
    strict, _ = read(case, strict=True)
    what = by_meaning(case)
    recorded_fields = trimmed(case["expect"].get("skill"))
    if what in ("list", "number"):
        assert fields is None
        assert {"LoadError", case["expect"]["error_class"]} <= set(classes)
    elif what in ("start", "end"):
        assert recorded_fields is None
        assert fields is not None
        assert fields["name"]
    elif what in ("underscore", "comma"):
        assert fields["allowed_tools"]
        assert not any("," in entry for entry in fields["allowed_tools"])
    elif what == "bracket":  # what stands between brackets is one bound
        assert any(re.fullmatch(r"[^()]+\([^()]+\)", entry) for entry in fields["allowed_tools"])
    elif what == "words":  # what only looks like a value is the text that was written
        assert all(text in case["input"]["content"] for text in all_texts(fields))
    elif what == "name":
        assert fields == recorded_fields
        assert strict is None
    elif fields is None:  # refused: for a fault that the letter drops, or as recorded
        assert "LoadError" in classes
    else:
        assert fields == recorded_fields
    if case["quirk"] and what is None and fields is not None:
        unjudged(case)
    outcome({"family": "playbooks skill_file safe", **case}, "improved" if what else "matched")
