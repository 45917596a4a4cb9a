"""Recorded loading of playbooks: as recorded under ``compat``, honestly under ``safe``."""

from __future__ import annotations

import ast
import base64
import copy
import json
import re
import warnings
from pathlib import Path

import pytest
from playbook_safe import reasons_to_refuse, refusal_of
from playbook_sequence import Replay
from playbook_values import decode, recorded

from runbook_nb._parsed import Malformed, read
from runbook_nb.errors import PlaybookLoadError
from runbook_nb.playbooks import PlaybookEnforcer, PlaybookPlan
from runbook_nb.playbooks.loader import PlaybookLoader, load_playbook
from runbook_nb.playbooks.problems import PlaybookWarning
from runbook_nb.playbooks.sources import BOUNDS


class Loaded:
    """One case, loaded in one profile: the playbook or the error, and what became of the input."""

    def __init__(self, case, profile, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        given = case["input"]
        self.playbook = self.error = None
        self.payload = decode(given.get("payload"))
        self.before = copy.deepcopy(self.payload)
        self.argument = self._argument(given, tmp_path)
        self.warned = []
        try:
            with warnings.catch_warnings(record=True) as self.warned:
                warnings.simplefilter("always")
                self.playbook = self._call(given["via"], profile)
        except Exception as error:  # every class of error is what some case recorded
            self.error = error

    def _argument(self, given, folder):
        if "file" in given:
            place = folder / given["file"]
            if given.get("is_dir"):
                place.mkdir()
            elif "bytes_b64" in given:
                place.write_bytes(base64.b64decode(given["bytes_b64"]))
            elif "text" in given:
                place.write_text(given["text"], "utf-8")
            return place
        return given.get("text_arg", self.payload)

    def _call(self, via, profile):
        if not via.startswith("load_playbook"):
            return getattr(PlaybookLoader(profile=profile), via)(self.argument)
        argument = self.argument
        if isinstance(argument, Path) and "path" not in via.removesuffix("strpath"):
            argument = str(argument)
        return load_playbook(argument, profile=profile)

    @property
    def mutated(self):
        return self.payload != self.before


#: The problems with a name of their own; any other is one field that holds what it cannot.
STRUCTURAL = {
    "missing_field": r"(?P<field>\w+)",
    "steps_not_list": "steps",
    "step_not_mapping": r"steps\[(?P<step>\d+)\]",
    "step_missing_field": r"steps\[(?P<step>\d+)\]\.(?P<field>\w+)",
    "step_field_not_list": r"steps\[(?P<step>\d+)\]\.(?P<field>\w+)",
    "step_field_not_strings": r"steps\[(?P<step>\d+)\]\.(?P<field>\w+)",
    "duplicate_step_id": r"steps\[\d+\]\.id",
}


def as_recorded(problem):
    """Write one of our problems as the recording writes it."""
    if problem.code not in STRUCTURAL:
        loc = [part for part in re.split(r"[.\[\]]+", problem.where) if part]
        return {"problem": "field_invalid", "rule": problem.code, "loc": loc}
    found = re.fullmatch(STRUCTURAL[problem.code], problem.where).groupdict()
    if problem.code == "duplicate_step_id":
        found["id"] = ast.literal_eval(problem.message.removesuffix(" is the id of a step before"))
    if "step" in found:
        found["step"] = int(found["step"])
    return {"problem": problem.code, **found}


@pytest.mark.parametrize("case", recorded("loader"))
def test_under_compat_everything_loads_as_recorded(case, outcome, tmp_path, monkeypatch):
    found, expected = Loaded(case, "compat", tmp_path, monkeypatch), case["expect"]
    if expected["ok"]:
        assert found.error is None, found.error
        assert found.playbook.model_dump(mode="json") == expected["playbook"]
    else:
        assert type(found.error).__name__ == expected["error_class"]
        raw = expected["error_class"] != "PlaybookLoadError"
        assert raw == (expected["category"] == "raw_exception")
    if expected["error_class" if not expected["ok"] else "ok"] == "PlaybookLoadError":
        error = found.error
        assert error.code == expected["category"]
        assert (error.path is not None) == expected["has_path"]
        assert [as_recorded(problem) for problem in error.problems] == expected["problems"]
        assert error.errors == [str(problem) for problem in error.problems]
        cause = error.__cause__
        assert (type(cause).__name__ if cause else None) == expected["cause_class"]
    assert found.mutated == expected.get("input_mutated", False)
    outcome({"family": "playbooks loader compat", **case}, "equal")


# --- what the strict reading does instead, by rule ---------------------------------------------

HEAD = {
    *("id", "name", "description", "version", "steps", "strict_sequence", "allow_extra_tools"),
    *("max_iterations", "metadata", "tags"),
}
GROUPED_HEAD = {
    *("step_groups", "title", "summary", "playbook_id", "completion", "decision_policy", "mode"),
    *("product", "service_type"),
}
OWN_STEP = ("checks", "kind", "requires")
STEP = {
    *("id", "description", "expected_tools", "hints", "required", "validation", "uses"),
    *("required_probes", "min_tool_calls", "max_tool_calls", "timeout_seconds", "metadata"),
    *OWN_STEP,
}
GROUPED_STEP = {"goal", "title", "guidance", "priority", "product", "service_type"}


def document_of(case):
    """Give what a case hands over as plain values, where it is well-formed; else None."""
    import yaml

    given = case["input"]
    if "payload" in given:
        return decode(given["payload"])
    text = text_in(given)
    if "bytes_b64" in given:
        try:
            text = base64.b64decode(given["bytes_b64"]).decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
    try:
        return None if text is None else yaml.load(text, Loader=words())  # noqa: S506 - a safe one
    except yaml.YAMLError:
        return None


def text_in(given):
    """Give the text that a case hands over, if it does."""
    text = given.get("text", given.get("text_arg"))
    return text if isinstance(text, str) else None


def words():
    """Give a reader of YAML to which every scalar is a text, and `<<` merges."""
    import yaml

    class Words(yaml.SafeLoader):
        yaml_implicit_resolvers = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}  # noqa: RUF012

    return Words


def mappings(value):
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def unknown_keys(document):
    """Give the keys that neither the format nor this package knows, and that no `x-` marks."""
    grouped = "steps" not in document and isinstance(document.get("step_groups"), list)
    found = set(document) - HEAD - (GROUPED_HEAD if grouped else set())
    steps = mappings(document.get("steps"))
    for group in mappings(document.get("step_groups")) if grouped else ():
        found |= set(group) - {"id", "title", "goal", "steps", "metadata"}
        steps += mappings(group.get("steps"))
    for step in steps:
        found |= set(step) - STEP - (GROUPED_STEP if grouped else set())
    return {key for key in found if not str(key).startswith("x-")}


def named(problems):
    """Give the last name of each place that is told wrong."""
    return {re.split(r"[.\[]", problem.where or "")[-1] for problem in problems}


def blank_ids(document):
    ids = [document.get("id", "x")]
    ids += [step.get("id", "x") for step in mappings(document.get("steps"))]
    return [own for own in ids if isinstance(own, str) and not own.strip()]


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def broken_limits(document):
    """Say whether a cap below one, a floor above its cap or a time that is none is asked for."""
    budget = number(document.get("max_iterations"))
    if budget is not None and budget < 1:
        return True
    for step in mappings(document.get("steps")):
        floor, cap = number(step.get("min_tool_calls")), number(step.get("max_tool_calls"))
        time = number(step.get("timeout_seconds"))
        if cap is not None and (cap < 1 or (floor or 0) > cap):
            return True
        if time is not None and not 0 < time < float("inf"):
            return True
        matches = [probe.get("match") for probe in mappings(step.get("required_probes"))]
        if any(isinstance(match, str) and match.isspace() for match in matches):
            return True
    return False


def stripped(dumped):
    """Give a dumped playbook without what the strict reading of groups keeps in metadata."""
    dumped = copy.deepcopy(dumped)
    for part in [dumped, *dumped["steps"]]:
        part["metadata"] = {}
    return dumped


def holds(metadata, expected):
    return all(metadata.get(key) == value for key, value in expected.items())


class Strict:
    """What the rules make of a recorded case under the strict reading."""

    def __init__(self, case, found):
        self.case, self.expected, self.found = case, case["expect"], found
        self.document = document_of(case)
        self.departures = []

    def departs(self, name):
        self.departures.append(name)

    def judge(self):
        """Give the first rule that speaks of this case, held to it."""
        found, expected = self.found, self.expected
        assert not found.mutated, "what is handed over stays as it is"
        assert found.error is None or type(found.error) is PlaybookLoadError
        if found.error is not None and isinstance(found.argument, Path):
            assert found.error.path is not None, "an error names its file"
        document = self.document
        if isinstance(document, dict):
            for rule in (
                self._foreign,
                self._misspelt,
                self._refused_values,
                self._repeated,
                self._no_lists,
                self._own_keys,
                self._words,
            ):
                told = rule(document)
                if told:
                    return told
        if expected["ok"]:
            return self._loaded(expected["playbook"])
        return self._better_error()

    def _foreign(self, document):
        if document.get("version") != "playbook.v2":
            return None
        assert self.found.error.code == "foreign_format"
        assert self.found.error.fix
        return "another format is refused"

    def _misspelt(self, document):
        unknown = unknown_keys(document)
        if not unknown:
            return None
        problems = [one for one in self.found.error.problems if one.code == "unknown_key"]
        assert {str(key) for key in unknown} <= named(problems)
        assert all(problem.fix for problem in problems)
        self.departs("unknown-keys-are-refused")
        return "unknown keys are refused"

    def _refused_values(self, document):
        if blank_ids(document):
            assert "empty_id" in {problem.code for problem in self.found.error.problems}
            return "empty ids are refused"
        if self.expected["ok"] and broken_limits(document):
            codes = {problem.code for problem in self.found.error.problems}
            assert codes & {"bad_limit", "floor_above_cap", "blank_match"}
            self.departs("limits-that-cannot-hold-are-refused")
            return "limits that cannot hold are refused"
        return None

    def _repeated(self, document):
        if not self.expected["ok"] or not repeats_a_key(text_in(self.case["input"]) or ""):
            return None
        assert {problem.code for problem in self.found.error.problems} == {"duplicate_key"}
        return "repeated keys are refused"

    def _no_lists(self, document):
        groups = mappings(document.get("step_groups"))
        if all(isinstance(group.get("steps", []), list) for group in groups):
            return None
        assert "steps_not_list" in {problem.code for problem in self.found.error.problems}
        self.departs("steps-of-a-group-are-a-list")
        return "steps that are no list are refused"

    def _own_keys(self, document):
        """Judge what the first reader drops and this package acts on: it is kept, or refused."""
        kept = [
            (place, {key: step[key] for key in OWN_STEP if key in step})
            for place, step in enumerate(mappings(document.get("steps")))
        ]
        if not self.expected["ok"] or not any(own for _, own in kept):
            return None
        if self.found.playbook is None:
            for problem in self.found.error.problems:
                assert any(key in problem.where for key in OWN_STEP), problem
        else:
            dumped = self.found.playbook.model_dump(mode="json")
            for place, own in kept:
                step = dumped["steps"][place]
                assert {key: step.pop(key) for key in own} == own
            assert dumped == self.expected["playbook"]
        return "keys of this package are read"

    def _words(self, document):
        """Judge what YAML 1.1 and 1.2 read otherwise: what only looks like a value is a text."""
        text = text_in(self.case["input"])
        if text is None or not read_otherwise(text):
            return None
        if self.found.playbook is None:
            places = read_otherwise(text)
            places |= {recorded_place(one) for one in self.expected.get("problems") or ()}
            for problem in self.found.error.problems:
                assert any(place.startswith(problem.where) for place in places), problem
                assert problem.fix
        else:
            ours = self.found.playbook.model_dump(mode="json")
            if self.expected["ok"] and ours == self.expected["playbook"]:
                return None  # what is asked for a truth takes the word as well
            for key in ("id", "name", "description", "version"):
                assert ours[key] == document.get(key, ours[key])
            for step, written in zip(ours["steps"], document.get("steps", ()), strict=False):
                assert (step["id"], step["description"]) == (written["id"], written["description"])
        self.departs("words-of-old-yaml-are-texts")
        return "words are texts"

    def _loaded(self, expected):
        found = self.found
        assert found.error is None, found.error
        dumped = found.playbook.model_dump(mode="json")
        if "step_groups" not in (self.document or {}):
            assert dumped == expected
            return "equal"
        junk = any(not isinstance(group, dict) for group in self.document["step_groups"])
        groups = mappings(self.document["step_groups"])
        steps = [step for group in groups for step in group.get("steps") or ()]
        junk |= not all(isinstance(step, dict) for step in steps)
        assert junk == any(one.category is PlaybookWarning for one in found.warned)
        for ours, theirs in zip(dumped["steps"], expected["steps"], strict=True):
            assert holds(ours["metadata"], theirs["metadata"])
            assert ours["metadata"]["group"]["id"]
            if theirs["id"].endswith("."):  # a step without an id gets one that can be said
                assert ours["id"].startswith(theirs["id"] + "step")
                self.departs("a-step-without-id-is-numbered")
                theirs["id"] = ours["id"]
            if junk and theirs["description"] in ours["description"]:
                theirs["description"] = ours["description"]
        assert holds(dumped["metadata"], expected["metadata"])
        assert stripped(dumped) == stripped(expected)
        self.departs("phases-are-kept")
        return "equal, and the phases kept"

    def _better_error(self):
        found, expected = self.found, self.expected
        quirk = self.case["quirk"]
        if quirk == "Q31":
            ids = [step.id for step in found.playbook.steps]
            assert len(ids) == len(set(ids)), "colliding ids are numbered"
            assert all(ids)
            return "ids are numbered"
        format_alone = expected["category"] not in ("structure", "validation")
        if format_alone and readable(self.document) and (quirk == "Q30" or found.playbook):
            assert found.playbook is not None, "a byte order mark or YAML text loads"
            return "loads"
        error = found.error
        assert type(error) is PlaybookLoadError
        assert error.code
        assert error.problems or error.path is not None or error.fix
        if expected["category"] in ("structure", "validation"):
            assert error.code in ("structure", "validation")
            wanted = [one["problem"] for one in expected["problems"]]
            assert len(error.problems) >= len(wanted)
            if "text" in self.case["input"]:
                assert all(problem.line for problem in error.problems)
        elif expected["category"] != "raw_exception":
            told = {expected["category"], "empty", "not_mapping", "foreign_format", "bad_source"}
            assert error.code in told
        if error.code in ("bad_yaml", "bad_json"):
            assert error.problems[0].line
        return "refused with its place"


def read_otherwise(text):
    """Give the places at which YAML 1.1 reads a text otherwise than YAML 1.2 does."""
    import yaml

    def walk(old, new, place):
        if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
            for key in old:
                yield from walk(old[key], new[key], f"{place}.{key}" if place else str(key))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for n, pair in enumerate(zip(old, new, strict=True)):
                yield from walk(*pair, f"{place}[{n}]")
        elif type(old) is not type(new) or old != new:
            yield place

    try:
        return set(walk(yaml.safe_load(text), read(text, "yaml", BOUNDS).value, ""))
    except (yaml.YAMLError, ValueError, Malformed):
        return set()


def recorded_place(problem):
    """Write the place of a recorded problem as ours are written."""
    if "step" in problem:
        loc = ["steps", str(problem["step"]), *([problem["field"]] if "field" in problem else ())]
    else:
        loc = problem.get("loc") or [problem.get("field", "steps")]
    return "".join(f"[{one}]" if one.isdigit() else f".{one}" for one in loc).removeprefix(".")


def readable(document):
    if not isinstance(document, dict):
        return False
    steps = document.get("steps", [])
    return {"id", "name"} <= set(document) and all(
        isinstance(step.get("id", ""), str) for step in mappings(steps)
    )


def repeats_a_key(text):
    import yaml

    def walk(node):
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            return len(keys) != len(set(keys)) or any(walk(value) for _, value in node.value)
        return isinstance(node, yaml.SequenceNode) and any(map(walk, node.value))

    try:
        return walk(yaml.compose(text, Loader=yaml.BaseLoader))
    except yaml.YAMLError:
        return False


@pytest.mark.parametrize("case", recorded("loader"))
def test_read_strictly_everything_loads_or_is_told(case, outcome, oracle, tmp_path, monkeypatch):
    found = Loaded(case, "safe", tmp_path, monkeypatch)
    strict = Strict(copy.deepcopy(case), found)
    told = strict.judge()
    assert set(strict.departures) <= set(oracle.departures)
    outcome({"family": "playbooks loader safe", **case}, told)


# --- what survives being written ---------------------------------------------------------------


class Written:
    """A replayed sequence, and what is left of it when it was written as JSON and read back."""

    def __init__(self, case, profile):
        self.replay = Replay(case, profile)
        self.enforcer, self.plan = self.replay.enforcer, self.replay.enforcer.plan
        self.dumped = json.loads(self.plan.model_dump_json())
        self.again = PlaybookPlan.model_validate(self.dumped)
        self.book = load_playbook(self.dumped["playbook"], profile=profile)

    def keys(self):
        """Give the keys of what was dumped, in the words of the recording."""
        found = {"plan_keys": self.dumped, "playbook_keys": self.dumped["playbook"]}
        found["step_keys"] = self.dumped["playbook"]["steps"][0]
        found["record_keys"] = next(iter(self.dumped["step_executions"].values()), {})
        violations = self.enforcer.violations
        found["violation_keys"] = violations[0].model_dump() if violations else {}
        return {key: sorted(value) for key, value in found.items()}

    def statuses(self):
        return {key: one["status"] for key, one in self.dumped["step_executions"].items()}


def as_written(violations):
    return [
        {
            "type": one.violation_type,
            "step": one.step_id,
            "tool": one.tool_name,
            "blocked": one.blocked,
        }
        for one in violations
    ]


@pytest.mark.parametrize("case", recorded("round_trip"))
def test_under_compat_what_is_dumped_survives_as_recorded(case, outcome):
    found, expected = Written(case, "compat"), case["expect"]
    rebuilt = PlaybookEnforcer(found.again, policy="compat")
    assert {
        "plan_equal_after_json_round_trip": found.again == found.plan,
        "playbook_equal_after_load_playbook": found.book == found.plan.playbook,
        "violations_before": as_written(found.enforcer.violations),
        "violations_after_enforcer_round_trip": as_written(rebuilt.violations),
        "adherence_before": round(found.enforcer.adherence_score(), 6),
        "adherence_after_enforcer_round_trip": round(rebuilt.adherence_score(), 6),
        "status_values": found.statuses(),
        **found.keys(),
    } == expected
    outcome({"family": "playbooks round trip compat", **case}, "equal")


@pytest.mark.parametrize("case", recorded("round_trip"))
def test_under_safe_a_dump_keeps_violations_score_and_skills(case, outcome):
    """Row Q33: what was dumped goes on as it was, and strictly read it is the same playbook."""
    if (refusal := refusal_of(case)) is not None:
        assert all(reason in str(refusal) for reason in reasons_to_refuse(case))
        outcome({"family": "playbooks round trip safe", **case}, "refused")
        return
    assert reasons_to_refuse(case) == []
    found, expected = Written(case, "safe"), case["expect"]
    assert found.again == found.plan
    assert found.book == found.plan.playbook
    for key, names in found.keys().items():
        if expected[key]:
            assert names == expected[key]
    again = PlaybookEnforcer.load(json.loads(json.dumps(found.enforcer.dump())))
    assert again.plan == found.plan
    assert again.violations == found.enforcer.violations
    assert again.adherence_score() == found.enforcer.adherence_score()
    assert again.policy == found.enforcer.policy
    outcome({"family": "playbooks round trip safe", **case}, "kept")
