"""A log as JSON and back: the same views, the same bytes, and nothing of it trusted."""

from __future__ import annotations

import copy
import datetime as dt
import json
from decimal import Decimal
from enum import Enum
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._json import WireReport, canonical, encode
from runbook_nb._text import MISSING
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.scope import interrupt
from runbook_nb.errors import CheckpointError, LoadError, NotCarried, RunbookError
from runbook_nb.record.log import Code, FanOut, Log, StageRef, Track
from runbook_nb.record.overlay import overlay_of
from runbook_nb.record.run import Run
from runbook_nb.record.slots import Slots
from runbook_nb.record.written import LogReader, read_log, read_log_with, served_by, write_log

RULES = rb.RuleSet(
    "health",
    "v1",
    # Not in sorted order: the order of conditions is that of the outcomes.
    [
        rb.Rule({"known": {"eq": True}, "age": {"gt": 7, "lt": 99}}, "old", label="over a week"),
        rb.Rule({"seen": {"lt": dt.date(2026, 1, 1)}}, "old"),
    ],
    default="new",
    unreadable="skip",
    outside=[rb.Outside({"os": {"eq": "x"}}, "hosts on x", "nobody looks after them")],
)


def is_stale(facts):
    return facts["age"] > 3


CALLED = rb.RuleSet("called", "v1", [rb.Rule(is_stale, "old")], default="new", unreadable="skip")
PICKS = rb.RuleSet.bare(
    [rb.Rule({"age": {"gt": 2}}, "old"), rb.Rule({"known": {"exists": True}}, "new")]
)


def held(examples: int) -> settings:
    """How often a law is tried; a busy machine is no fault of it."""
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


# -- a run, its log through JSON, the run again ------------------------------------------------


def finished(chart: Any, *args: Any, **more: Any) -> Run:
    """Give the run, whichever way it ended."""
    try:
        return chart.run_sync(*args, **more)
    except Exception as error:
        return error.run


def through_json(run: Run, rules: Any = (), **more: Any) -> tuple[Log, Any]:
    """Write a run's log to text and read it back, with the run's state beside it."""
    args, state, _ = run.raw
    data = write_log(run.log, beside={"state": state, "args": args}, **more)
    text = canonical(data)
    assert encode(json.loads(encode(data))) == encode(data)
    log, beside = read_log_with(json.loads(text), rules)
    assert canonical(write_log(log, beside=beside)) == text
    return log, beside


def again(run: Run, log: Log, beside: Any) -> Run:
    """The run as it would be with the log that was read back."""
    return Run(
        name=run._name,
        status=run.status,
        args=beside["args"],
        log=log,
        raw_state=dict(beside["state"]),
        raw_result=run.raw[2],
        structure=run._structure,
        initial=run.raw_initial,
    )


def drawn(run: Run) -> Any:
    """What the overlay of a run says, without the paths it was counted by."""
    shown = overlay_of(run.log, run.redactor)
    causes = {
        route: [(cause.label, cause.text, cause.times, str(cause.conditions)) for cause in found]
        for route, found in shown.causes.items()
    }
    counts = ("runs", "failed", "routes", "edges", "loops", "fan_outs", "forks")
    return causes, [getattr(shown, name) for name in counts]


def assert_alike(run: Run, other: Run) -> None:
    assert list(other.walk) == list(run.walk)
    for one, two in zip(other.decisions, run.decisions, strict=True):
        assert one._replace(decision=None) == two._replace(decision=None)
        assert repr(one.decision.to_dict()) == repr(two.decision.to_dict())
        assert one.decision.path.meanings == two.decision.path.meanings
    assert list(map(str, other.commits)) == list(map(str, run.commits))
    assert other.fan_outs == run.fan_outs
    assert other.steps_executed == run.steps_executed
    assert repr(other.state) == repr(run.state)
    assert [rules.digest for rules in other.rule_sets()] == [
        rules.digest for rules in run.rule_sets()
    ]
    assert drawn(other) == drawn(run)
    for (mine, at, path), (yours, at_too, path_too) in zip(
        other.walk.tracks(), run.walk.tracks(), strict=True
    ):
        assert (at, path) == (at_too, path_too)
        assert repr(Slots(mine)[at]) == repr(Slots(yours)[at])
        assert mine.base(at) == yours.base(at)


# -- charts of every construct -----------------------------------------------------------------

VALUES: list[Any] = [
    *(0, 1, True, None, "x", 2**60, -0.0, float("inf"), "\ud800", "long " * 20),
    *(dt.date(2025, 12, 31), dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.timedelta(hours=1)),
    *(Decimal("0.10"), b"\x00", (1, (2,)), frozenset({"a", 1}), {"b": 1, "a": [1]}, {"$date": 1}),
    *([{"k": 1, "a": "x"}, {"k": 2, "a": None}], {3: {None: ()}}),
]
ages = st.sampled_from([0, 3, 9, 100, None, "x", float("nan")])


def work(ops: list[tuple[str, Any]]) -> Any:
    """Make a stage that does a list of things."""

    def stage(scope: Any) -> Any:
        for kind, value in ops:
            if kind == "age":
                scope["age"] = value
            elif kind == "write":
                scope["value"] = value
            elif kind == "share":
                scope["shared"] = [scope.get("value"), scope.get("value")]
            elif kind == "append":
                scope.append("list", value)
            elif kind == "merge":
                scope.merge("map", {"m": value})
            elif kind == "emit":
                scope.emit("event", value)
            elif kind == "known":
                scope["known"] = True
            elif kind == "decide":
                scope["decision"] = rb.decide(scope, RULES if value else CALLED)
            elif kind == "slots":
                found = [one for one in scope._data.values() if isinstance(one, Slots)]
                scope["kept"] = [found[:1], found[0][0] if found and found[0] else None]
            elif kind == "ask":
                interrupt(scope, "go on?", {"a": "date"})
            elif kind == "fail":
                raise ValueError("boom")
            elif kind == "stop":
                scope.stop("enough")
            elif kind == "loop":
                scope["passes"] = scope.get("passes", 0) + 1
                if scope["passes"] > 2:
                    scope.stop()
            elif kind == "return":
                return value
        return None

    return stage


plain_ops = st.one_of(
    st.tuples(st.just("age"), ages),
    st.tuples(
        st.sampled_from(["write", "append", "merge", "emit", "return"]), st.sampled_from(VALUES)
    ),
    st.tuples(st.sampled_from(["share", "known", "slots"]), st.none()),
    st.tuples(st.just("decide"), st.booleans()),
)
ending_ops = st.tuples(st.sampled_from(["ask", "fail", "stop"]), st.none())
stages = st.lists(st.one_of(plain_ops, plain_ops, plain_ops, ending_ops), max_size=4).map(work)


@st.composite
def charts(draw: Any, depth: int = 2, name: str = "c") -> Any:
    builder = flow_chart(name, draw(stages), id="start")
    for number in range(draw(st.integers(0, 3))):
        kinds = ["stage", "decider", "called", "word"]
        if depth:
            kinds += ["selector", "fork", "mount", "fan", "fan"]
        kind = draw(st.sampled_from(kinds))
        id = f"{kind}{number}"
        inner = charts(depth - 1, f"{name}{number}")
        if kind == "stage":
            builder.add_function(id, draw(stages), id=id)
        elif kind in ("decider", "called", "word"):
            word = draw(st.sampled_from(["old", "new"]))
            decider = (
                builder.add_decider(id, lambda scope, word=word: word, id=id)
                if kind == "word"
                else builder.add_decider(id, rules=RULES if kind == "decider" else CALLED, id=id)
            )
            for route in ("old", "new", "declined"):
                decider.branch(route, draw(stages))
            decider.default("new").end()
        elif kind in ("selector", "fork"):
            into = draw(st.sampled_from([None, f"out{number}"]))
            owner = (
                builder.add_fork(id, id=id, into=into)
                if kind == "fork"
                else builder.add_selector(id, rules=PICKS, id=id, into=into)
            )
            for route in ("old", "new"):
                owner.branch(route, draw(st.one_of(stages, inner)))
            owner.end()
        elif kind == "mount":
            builder.add_subchart(id, draw(inner), id=id, inputs={"age": "age", "value": "value"})
        else:
            builder.add_parallel_for_each(
                id,
                id=id,
                branch=draw(inner),
                items=lambda scope, n=draw(st.integers(0, 4)): [
                    {"id": f"h{at}", "age": at * 3, "known": bool(at % 2)} for at in range(n)
                ],
                into=f"slots{number}",
                max_branches=3,
                subject="id",
            )
    if draw(st.booleans()):
        builder.add_function("again", work([("loop", None)]), id="again")
        builder.loop_to("start")
    return builder.build()


@held(150)
@given(charts(), st.booleans())
def test_a_log_read_back_shows_what_the_run_shows(chart, live):
    run = finished(chart, {"age": 5})
    log, beside = through_json(run, [CALLED, RULES] if live else ())
    other = again(run, log, beside)
    assert_alike(run, other)
    if live:
        assert other.decisions == run.decisions
        assert other.rule_sets() == run.rule_sets()


# -- nothing of it is trusted ------------------------------------------------------------------


def nested(items: Any = (1, 2)) -> Any:
    """Make a chart with fan-outs in fan-outs, a fork, a mount, rules of all kinds and a pause."""

    def look(scope: Any) -> None:
        scope["age"] = scope.args["item"] * 5
        scope["tags"] = frozenset({"a"})
        scope["decision"] = rb.decide(scope, CALLED)
        scope.append("list", 1)
        if scope["age"] == 15:
            raise ValueError("boom")

    leaf = flow_chart("leaf", look, id="look").add_decider("age", rules=RULES, id="age")
    for word in ("old", "new", "declined"):
        leaf.branch(word, lambda scope: scope.get("age"))
    branch = flow_chart("branch", lambda s: s.set("n", [s.args["item"]] * 2), id="branch")
    branch.add_parallel_for_each(
        "inner",
        id="inner",
        branch=leaf.end().build(),
        items=lambda s: s["n"],
        into="found",
        max_branches=9,
    )
    mounted = flow_chart("mounted", lambda s: s.set("seen", s["given"]), id="in").build()
    chart = flow_chart("nested", lambda s: s.set("items", list(items)), id="start")
    chart.add_parallel_for_each(
        "outer",
        id="outer",
        branch=branch.build(),
        items=lambda s: s["items"],
        into="slots",
        max_branches=9,
    )
    chart.add_subchart("Mount", mounted, id="mount", inputs=lambda s: {"given": s["slots"]})
    fork = chart.add_fork("Fork", id="fork", into="both")
    fork.branch("left", work([("age", 3), ("emit", {"a": 1})])).branch("right", mounted).end()
    picks = chart.add_selector("Pick", id="pick", rules=PICKS, into="picked")
    picks.branch("old", work([])).branch("new", work([])).end()
    return chart.add_function("ask", work([("ask", None)]), id="ask").build()


SAMPLES = [finished(nested((1, 2, 3))), finished(nested(()))]


def paths_in(data: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    if isinstance(data, dict):
        for key, item in data.items():
            yield from paths_in(item, (*path, key))
    elif isinstance(data, list):
        for place, item in enumerate(data):
            yield from paths_in(item, (*path, place))


WRITTEN = [write_log(run.log, beside={"state": run.raw[1], "args": run.raw[0]}) for run in SAMPLES]
PARTS = ("stages", "rules", "codes", "shapes", "root", "fan_outs", "beside")
PLACES = [{part: list(paths_in(data[part], (part,))) for part in PARTS} for data in WRITTEN]

odd = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 40),
        st.just(2**70),
        st.floats(),
        st.text(max_size=3),
        st.sampled_from(["write", "decision", "stage", "fan_out", "append", "012", "x" * 70]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["$ref", "$slots", "$table", "$map", "$set", "$deep", "$tuple", "$rules", "$called"]
                + ["$decision", "$slot", "$missing", "$date", "$int", "$text", "$$a", "a"]
            ),
            inner,
            max_size=1,
        ),
    ),
    max_leaves=4,
)


def at_path(data: Any, path: Any) -> Any:
    for step in path:
        data = data[step]
    return data


def looked_at(run: Run, log: Log, beside: Any) -> None:
    """Look at everything a log shows."""
    state = beside.get("state")
    fits = isinstance(state, dict) and all(isinstance(key, str) for key in state)
    other = again(run, log, {"args": {}, "state": state if fits else {}})
    assert len(list(other.walk)) == len(other.walk)
    for recorded in other.decisions:
        json.dumps(recorded.decision.to_dict())
    list(map(str, other.commits))
    drawn(other)
    other.rule_sets()
    for fan, at, _ in other.walk.tracks():
        repr(Slots(fan)[at])
    repr(list(log.fan_outs()))
    repr(other)
    repr(other.state)
    encode(write_log(log, beside=beside))


@held(400)
@given(st.integers(0, 1), st.data())
def test_a_damaged_log_is_refused_or_shows_no_less_than_a_log(number, data):
    damaged = copy.deepcopy(WRITTEN[number])
    likely = (*PARTS, "root", "fan_outs", "shapes", "fan_outs")
    places = st.sampled_from(likely).flatmap(lambda part: st.sampled_from(PLACES[number][part]))
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(places)
        what = data.draw(st.sampled_from(["odd", "gone", "other", "other", "other"]))
        try:
            holder = at_path(damaged, path)
            if what == "gone":
                del holder[last]
            elif what == "odd":
                holder[last] = data.draw(odd)
            else:  # what stands somewhere else in the log
                holder[last] = copy.deepcopy(at_path(damaged, data.draw(places)))
        except (KeyError, IndexError, TypeError):  # an earlier damage took it away
            continue
    try:
        log, beside = read_log_with(damaged, [RULES])
    except LoadError as refused:
        assert refused.code == "bad_log"
        assert refused.where
        assert refused.fix
    else:
        looked_at(SAMPLES[number], log, beside)


# -- as a policy lets it be seen ---------------------------------------------------------------

LIMITS = rb.RuleSet(
    "limits",
    "v1",
    [
        rb.Rule({"token": {"eq": "t0k3n-limit"}, "age": {"gt": 50}}, "old", label="l1t3ral-label"),
        rb.Rule({"pin": {"between": [1, 888777]}, "age": {"in": [1, 2]}}, "old"),
        rb.Rule({"name": {"eq": "l1t3ral-name"}, "code": {"in": ["l1t3ral-code", "b"]}}, "old"),
        rb.Rule({"age": {"gt": 3}, "token": {"exists": True}}, "old", unit={"age": "days"}),
        rb.Rule(lambda facts: facts["token"] and facts["name"], "old"),
    ],
    default="new",
    unreadable="skip",
    outside=[rb.Outside({"token": {"eq": "t0k3n-outside"}}, "l1t3ral-what", "l1t3ral-why")],
)
POLICY = rb.Redact(
    keys=("token",),
    patterns=("^pass",),
    fields={"conn": ("auth.key",)},
    paths=("rows[*].deep.pin", "lists[*].pin", "hosts[*].value.result.pin"),
    values=("l1t3ral-name", "l1t3ral-code", "l1t3ral-label", "l1t3ral-what", "l1t3ral-why"),
    emits=("^secret",),
)
#: Every text that must not leave the run.
SECRETS = (
    *("t0k3n-limit", "t0k3n-outside", "t0k3n-row", "t0k3n-args", "t0k3n-append", "888777"),
    *("l1t3ral-", "p4ss-w0rd", "k3y-inside", "p1n-deep", "p1n-list", "p1n-result", "s3cr3t-event"),
)


def guarded() -> Any:
    def load(scope: Any) -> Any:
        item = scope.args["item"]
        scope["row"] = item
        scope.update({"token": item["token"], "name": "l1t3ral-name", "age": item["age"]})
        scope["password"] = f"p4ss-w0rd-{item['id']}"
        scope.emit("secret.load", {"x": "s3cr3t-event"})
        scope.emit("plain.load", {"token": item["token"], "name": "l1t3ral-name"})
        scope.append("lists", {"pin": "p1n-list", "ok": 1})
        scope["decision"] = rb.decide(scope, LIMITS)
        if item["age"] == 4:
            raise ValueError(f"cannot use {item['token']}")

    branch = flow_chart("load", load, id="load").add_decider("judge", rules=LIMITS, id="judge")
    for word in ("old", "new", "declined"):
        branch.branch(word, lambda s: {"result": {"pin": "p1n-result", "age": s["age"]}})
    rows = [
        {"id": n, "token": f"t0k3n-row-{n}", "age": n, "deep": {"pin": "p1n-deep"}}
        for n in range(6)
    ]

    def start(scope: Any) -> None:
        scope["rows"] = rows
        scope["conn"] = {"auth": {"key": "k3y-inside"}, "host": "db"}
        scope.append("token", "t0k3n-append")
        scope.merge("more", {"token": scope.args["token"]})

    chart = flow_chart("guarded", start, id="start")
    chart.add_parallel_for_each(
        "hosts",
        id="hosts",
        branch=branch.end().build(),
        items=lambda s: s["rows"],
        into="hosts",
        subject="id",
        max_branches=5,
    )
    chart.add_function("keep", lambda s: s.set("kept", [s["hosts"][0], s["hosts"]]), id="keep")
    return chart.build()


def served_log(run: Run) -> tuple[str, Log, Any]:
    args, state, _ = run.raw
    report = WireReport()
    data = write_log(
        run.log,
        served_by(run.redactor),
        beside={"state": state, "args": args},
        report=report,
        strict=False,
    )
    text = encode(data)
    log, beside = read_log_with(json.loads(text))
    assert encode(write_log(log, beside=beside)) == text
    return text, log, beside


def test_a_served_log_holds_no_secret_and_shows_what_the_served_run_shows():
    run = guarded().run_sync({"token": "t0k3n-args"}, redact=POLICY)
    text, log, beside = served_log(run)
    assert [secret for secret in SECRETS if secret in text] == []
    other = again(run, log, beside)
    assert [row.text for row in other.walk] == [row.text for row in run.walk]
    assert list(other.walk) == list(run.walk)
    for one, two in zip(other.decisions, run.decisions, strict=True):
        assert one._replace(decision=None) == two._replace(decision=None)
        assert one.decision.to_dict() == two.decision.to_dict()
    mine, yours = other.slots("hosts"), run.slots("hosts")
    assert [slot.reason for slot in mine] == [slot.reason for slot in yours]
    assert [slot.sentence for slot in mine] == [slot.sentence for slot in yours]
    assert [slot.item for slot in mine] == [slot.item for slot in yours]
    assert repr(other.state["rows"]) == repr(run.state["rows"])
    assert other.args == run.args
    assert drawn(other)[1] == drawn(run)[1]
    for mine_too, yours_too in zip(other.commits, run.commits, strict=True):
        assert {**mine_too.values, "token": 0} == {**yours_too.values, "token": 0}
