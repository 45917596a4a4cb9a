"""Tables of upstream's small functions, held against ours that stand for them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from replay_seen import plain_value
from replay_values import decode, plain, read, same

import runbook_nb as rb
from runbook_nb._text import MISSING
from runbook_nb.errors import ChartError
from runbook_nb.record.log import FanOut, Log, StageRef
from runbook_nb.record.places import runtime_id

FILE = "chart/functions.json"
HIDDEN = "[REDACTED]"


def branch_path(prefix, id, index):
    """Name a branch as fan-outs do."""
    stage = StageRef(id, id, "fan_out")
    fan = FanOut(Log(), stage, [], cap=1, into=None)
    return fan.path(prefix, index).rstrip("/")


def departs(name):
    """Name the declared departure that explains a difference."""
    return name


# --- ids ---------------------------------------------------------------------------------------


def build_runtime_stage_id(row):
    id, number, path = row["args"]
    return runtime_id(f"{path}/" if path else "", id, number) == row["result"]


def parse_runtime_stage_id(row):
    # Rows carry the parts of an id, so that nothing takes one apart: built of its parts it is
    # what was parsed, where the parts are ids at all.
    (text,), parts = row["args"], row["result"]
    path = decode(parts["subflowPath"])
    built = runtime_id(
        "" if path is MISSING else f"{path}/", parts["stageId"], parts["executionIndex"]
    )
    if not parts["stageId"] or "#" not in text:
        assert departs("ids-are-strict")
        with pytest.raises(ChartError):
            rb.flow_chart("C", print, id=text).build()
        return True
    return built == text


def split_stage_id(row):
    (text,), parts = row["args"], row["result"]
    path = decode(parts["subflowPath"])
    if path is MISSING:
        return parts["localStageId"] == text
    return f"{path}/{parts['localStageId']}" == text


def build_branch_segment(row):
    id, index = row["args"]
    return branch_path("", id, index) == row["result"]


def parse_branch_segment(row):
    (text,), parts = row["args"], decode(row["result"])
    if parts is MISSING:
        return not _is_segment(text)
    built = branch_path("", parts["parentStageId"], parts["index"])
    return built == text or int(text.rpartition("~")[2]) == parts["index"]


def is_branch_segment(row):
    (text,) = row["args"]
    return _is_segment(text) is row["result"]


def _is_segment(text):
    parent, _, number = text.rpartition("~")
    return bool(parent) and number.isdigit() and branch_path("", parent, int(number)) == text


# --- values ------------------------------------------------------------------------------------


def deep_merge(row):
    from runbook_nb.record.bundles import deep_merge as ours

    old, new = (decode(one) for one in row["args"])
    published = same(plain(ours(old, new)), read(row["result"]))
    if isinstance(plain(new), dict) and isinstance(old, dict):
        chart = rb.flow_chart("C", lambda s: s.set("k", plain(old)), id="c")
        chart.add_function("M", lambda s: s.merge("k", plain(new)), id="m")
        merged = plain_value(chart.build().run_sync().state["k"])
        lists = any(isinstance(one, list) for one in new.values())
        if lists or MISSING in new.values():
            assert departs("merging-is-of-mappings")
            assert departs("nothing-is-absent")
        else:
            assert same(merged, read(row["result"]))
    return published


def deep_equal(row):
    from runbook_nb.record.bundles import deep_equal as ours

    return ours(*(decode(one) for one in row["args"])) is row["result"]


def apply_bundle(row):
    from runbook_nb.record.commits import CommitLog

    state, bundle = row["args"]
    filled = {
        "idx": 0,
        "stage": "S",
        "stageId": "s",
        "runtimeStageId": "s#0",
        "redactedPaths": [],
        **{key: read(one) for key, one in bundle.items()},
    }
    filled["trace"] = [
        {**one, "path": "\x1f".join(map(str, one["path"]))} for one in filled["trace"]
    ]
    log = CommitLog.from_published([filled], read(state))
    return same(plain_value(log.state_at(0).state), read(row["result"]))


def bag_update(row):
    # There are no side bags that one note overwrites in: every note stays an event.
    assert departs("notes-are-events")
    notes = [read(one) for one in row["args"]]

    def tell(scope):
        for note in notes:
            scope.emit("note", note)

    walk = rb.flow_chart("C", tell, id="c").build().run_sync().walk
    return sum(one.type == "emit" for one in walk) == len(notes)


def retention_summary(row):
    # The record keeps the value itself; there is no dial that keeps its kind and size instead.
    assert departs("one-record-for-all-dials")
    value = read(row["args"][0])
    run = rb.flow_chart("C", lambda s: s.set("k", value), id="c").build().run_sync()
    return same(plain_value(run.raw[1]["k"]), value)


# --- what is hidden ----------------------------------------------------------------------------


def redaction_verdict(row):
    policy, path = row["args"]
    verdict = row["result"]
    served = _served(policy, path, "held")
    if "patterns" in policy and len(path) > 1:
        assert departs("patterns-are-of-names-at-any-depth")
    if verdict["kind"] == "whole":
        return served == HIDDEN
    if verdict["kind"] == "clear":
        return served == "held"
    inner = _served(policy, path, _nested(verdict["paths"]))
    return all(_at(inner, name.split(".")) == HIDDEN for name in verdict["paths"])


def redaction_retain(row):
    policy, path, value = row["args"]
    expected, served = read(row["result"]), _served(policy, path, read(value))
    if isinstance(value, list):
        assert departs("fields-reach-into-lists")
        expected = [
            {key: HIDDEN if key in policy["fields"][path[0]] else one for key, one in item.items()}
            for item in expected
        ]
    return same(served, expected)


def _served(policy, path, value):
    """Give the value at a path as a run with this policy shows it."""
    root, *inner = path
    held = value
    for step in reversed(inner):
        held = {step: held}
    run = (
        rb.flow_chart("C", lambda s: s.set(root, held), id="c")
        .build()
        .run_sync(redact=rb.Redact(**policy))
    )
    return _at(plain_value(run.state), path)


def _nested(paths):
    out = {"other": 1}
    for path in paths:
        at = out
        *way, last = path.split(".")
        for step in way:
            at = at.setdefault(step, {})
        at[last] = "secret-text"
    return out


def _at(value, path):
    for place, step in enumerate(path):
        if value == HIDDEN:
            return HIDDEN
        if not isinstance(value, dict) or step not in value:
            raise AssertionError(f"{path[: place + 1]} is not served")
        value = value[step]
    return value


# --- schemas -----------------------------------------------------------------------------------


def validate_json_schema(row):
    schema, value = (read(one) for one in row["args"])
    chart = rb.flow_chart("C", lambda s: None, id="c", input_schema=schema).build()
    try:
        chart.run_sync(value)
        found = None
    except ChartError as error:
        found = [problem.where for problem in error.problems] or [""]
    return _same_verdict(row["result"], schema, value, found)


def _same_verdict(recorded, schema, value, found):
    wanted = [".".join(map(str, issue["path"])) for issue in recorded.get("issues", ())]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        whole = [
            name
            for name, one in value.items()
            if properties.get(name, {}).get("type") == "integer" and float(one).is_integer()
        ]
        nulls = [
            name
            for name, one in value.items()
            if one is None and properties.get(name, {}).get("type") not in (None, "null")
        ]
        if whole or nulls or "id" not in value:
            assert departs("schemas-are-checked-whole")
        wanted = [one for one in wanted if one not in whole]
        wanted += nulls + [n for n in schema["required"] if n not in value and n not in wanted]
    elif not isinstance(value, dict):
        assert departs("schemas-are-checked-whole")
        return found is not None
    return (sorted(wanted) or None) == (None if found is None else sorted(found))


def detect_schema(row):
    (given,), kind = row["args"], row["result"]
    schema = read(given) if not _has_functions(given) else _parsing(given)
    try:
        rb.flow_chart("C", lambda s: None, id="c", input_schema=schema).build()
    except ChartError:
        # What cannot be told is refused where it is declared.
        assert departs("schemas-are-told-when-built")
        return kind in ("none", "zod") or "safeParse" in given
    return kind in ("json-schema", "parseable") or given == {}


def _has_functions(given):
    return isinstance(given, dict) and any(
        isinstance(one, dict) and one.get("$js") == "function" for one in given.values()
    )


def _parsing(given):
    return SimpleNamespace(**{name: lambda value: value for name in given})


TABLES = {
    one.__name__: one
    for one in (
        build_runtime_stage_id,
        parse_runtime_stage_id,
        split_stage_id,
        build_branch_segment,
        parse_branch_segment,
        is_branch_segment,
        deep_merge,
        deep_equal,
        apply_bundle,
        bag_update,
        retention_summary,
        redaction_verdict,
        redaction_retain,
        validate_json_schema,
        detect_schema,
    )
}

#: Replayed in `test_decide_evidence`.
ELSEWHERE = {"summarize_value"}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_agrees_after_the_declared_departures(name, oracle):
    rows = [row for row in oracle.rows(FILE) if row["fn"] == name]
    wrong = [row for row in rows if not TABLES[name](row)]
    assert wrong == []


def test_every_table_is_replayed_by_somebody(oracle, outcome):
    for row in oracle.rows(FILE):
        assert row["fn"] in TABLES or row["fn"] in ELSEWHERE
        outcome({"family": "functions", "id": row["fn"]}, "equal or departed as declared")
