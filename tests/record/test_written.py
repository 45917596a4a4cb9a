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
from runbook_nb.errors import CheckpointError, LoadError, NotCarried
from runbook_nb.record.log import Code, FanOut, Log, StageRef, Track
from runbook_nb.record.overlay import overlay_of
from runbook_nb.record.run import Run
from runbook_nb.record.slots import Slots
from runbook_nb.record.written import (
    LogReader,
    LogWriter,
    read_log,
    read_log_with,
    served_by,
    write_log,
)
from runbook_nb.rules.hiding import HiddenKeys

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
        found = None
        for kind, value in ops:
            if kind == "return":
                found = value
            else:
                OPS[kind](scope, value)
        return found

    return stage


def fail(scope: Any, value: Any) -> None:
    raise ValueError("boom")


def keep_slots(scope: Any, value: Any) -> None:
    found = [one for one in scope._data.values() if isinstance(one, Slots)]
    scope["kept"] = [found[:1], found[0][0] if found and found[0] else None]


def pass_by(scope: Any, value: Any) -> None:
    scope["passes"] = scope.get("passes", 0) + 1
    if scope["passes"] > 2:
        scope.stop()


OPS: dict[str, Any] = {
    "age": lambda scope, value: scope.set("age", value),
    "write": lambda scope, value: scope.set("value", value),
    "share": lambda scope, _: scope.set("shared", [scope.get("value")] * 2),
    "append": lambda scope, value: scope.append("list", value),
    "merge": lambda scope, value: scope.merge("map", {"m": value}),
    "emit": lambda scope, value: scope.emit("event", value),
    "known": lambda scope, _: scope.set("known", True),
    "decide": lambda scope, own: scope.set("made", rb.decide(scope, RULES if own else CALLED)),
    "slots": keep_slots,
    "ask": lambda scope, _: interrupt(scope, "go on?", {"a": "date"}),
    "fail": fail,
    "stop": lambda scope, _: scope.stop("enough"),
    "loop": pass_by,
}

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


def hosts_of(count: int) -> Any:
    rows = [{"id": f"h{at}", "age": at * 3, "known": bool(at % 2)} for at in range(count)]
    return lambda scope: rows


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
                items=hosts_of(draw(st.integers(0, 4))),
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
                [
                    *("$ref", "$slots", "$table", "$map", "$set", "$deep", "$tuple", "$rules"),
                    *("$called", "$decision", "$slot", "$missing", "$date", "$int", "$text", "a"),
                ]
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
    except LoadError as error:
        refused = error
    else:
        looked_at(SAMPLES[number], log, beside)
        return
    assert refused.code == "bad_log"
    assert refused.where
    assert refused.fix


def triage(hosts: int = 12) -> Any:
    """Make a chart that judges hosts and keeps one of them."""

    def load(scope: Any) -> None:
        item = scope.args["item"]
        scope["row"] = item
        scope["age"] = item["age"]
        if item["known"] is not None:
            scope["known"] = item["known"]

    branch = flow_chart("load", load, id="load").add_decider("age", rules=RULES, id="posture")
    for word in ("old", "new", "declined"):
        branch.branch(word, lambda s: s.set("done", True))
    rows = [
        {"id": f"host-{n:05}", "age": n % 100, "known": [True, False, None][n % 3], "os": "linux"}
        for n in range(hosts)
    ]
    chart = flow_chart("triage", lambda s: s.set("rows", rows), id="rows")
    chart.add_parallel_for_each(
        "hosts",
        branch=branch.end().build(),
        items=lambda s: s["rows"],
        into="hosts",
        id="hosts",
        subject="id",
        max_branches=hosts,
    )
    chart.add_function("report", lambda s: s.set("worst", s["hosts"][0]), id="report")
    return chart.build()


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


def test_a_path_into_slots_hides_what_the_log_alone_would_show():
    run = guarded().run_sync({"token": "t0k3n-args"}, redact=POLICY)
    _, _, beside = served_log(run)
    # The policy leads into these slots, so they are written as they are served.
    assert isinstance(beside["state"]["hosts"], list)
    assert [slot.to_dict() for slot in beside["state"]["hosts"]] == [
        slot.to_dict() for slot in run.state["hosts"]
    ]
    open_run = guarded().run_sync({"token": "t0k3n-args"}, redact=rb.Redact(keys=("token",)))
    _, _, open_beside = served_log(open_run)
    assert isinstance(open_beside["state"]["hosts"], Slots)
    assert [slot.to_dict() for slot in open_beside["state"]["hosts"]] == [
        slot.to_dict() for slot in open_run.state["hosts"]
    ]


def test_a_served_rule_set_bears_its_digest_and_tells_its_keys_as_hidden():
    run = guarded().run_sync({"token": "t0k3n-args"}, redact=POLICY)
    text, log, _ = served_log(run)
    (rules,) = {code.path.rules for code in log.codes if code.path is not None}
    assert rules.digest == LIMITS.digest
    assert rules.hidden == {"token", "pin"}
    assert rules != LIMITS
    assert rules.rules[1].when["pin"]["between"] == ["[REDACTED]", "[REDACTED]"]
    # Live rules would bring the limits back.
    assert all(
        code.path is None or code.path.rules.hidden
        for code in read_log(json.loads(text), [LIMITS]).codes
    )


def test_keys_that_differ_in_a_secret_alone_stay_several():
    rules = rb.RuleSet("r", "1", [rb.Rule({"s3cr3t-a": {"gt": 1}, "s3cr3t-b": {"gt": 2}}, "x")])
    chart = flow_chart("c", lambda s: s.update({"s3cr3t-a": 5, "s3cr3t-b": 6}), id="a")
    decider = chart.add_decider("d", rules=rules, id="d").branch("x", work([])).end()
    run = decider.build().run_sync(redact=rb.Redact(values=("s3cr3t-a", "s3cr3t-b")))
    text, log, beside = served_log(run)
    assert "s3cr3t" not in text
    (decided,) = again(run, log, beside).decisions
    assert [c.key for c in decided.decision.conditions] == ["[REDACTED]", "[REDACTED]'"]
    assert [c.actual for c in decided.decision.conditions] == [5, 6]


def test_a_rule_set_in_a_served_state_is_one_again():
    whole = rb.RuleSet("r", "1", [rb.Rule({"token": {"eq": "t0k3n"}, "n": {"gt": 1}}, "x")])
    half = rb.RuleSet("r", "1", [rb.Rule({"n": {"between": [1, 888777]}}, "x")])
    policy = rb.Redact(keys=("token",), values=("888777",))
    run = with_values(whole=whole, half=half).run_sync(redact=policy)
    text, _, beside = served_log(run)
    assert "t0k3n" not in text.replace('"token"', "")
    assert "888777" not in text
    assert beside["state"]["whole"].rules[0].when["token"] == {"eq": "[REDACTED]"}
    # Of a range with one end hidden both are hidden, else it would be no range.
    hidden = {"n": {"between": ["[REDACTED]", "[REDACTED]"]}}
    assert beside["state"]["half"].rules[0].when == hidden


def test_copies_of_one_policy_do_not_multiply_the_rules():
    made = [
        type(one.decision)(
            one.decision.path, one.decision.raw_values, HiddenKeys(frozenset({"age"}))
        )
        for one in triage().run_sync().decisions
    ]
    run = with_values(made=made).run_sync()
    assert len(write_log(run.log)["rules"]) == 1
    _, beside = through_json(run)
    assert [one.to_dict() for one in beside["state"]["made"]] == [one.to_dict() for one in made]


# -- rules -------------------------------------------------------------------------------------


def judged(rules: rb.RuleSet, facts: dict[str, Any]) -> Run:
    chart = flow_chart("c", lambda s: s.update(facts), id="a")
    decider = chart.add_decider("d", rules=rules, id="d")
    for word in rules.branches:
        decider.branch(word, work([]))
    return finished(decider.end().build())


def rules_of(log: Log) -> rb.RuleSet:
    return next(code.path.rules for code in log.codes if code.path is not None)


def test_the_function_of_a_rule_is_not_carried_and_says_so():
    run = judged(CALLED, {"age": 5})
    log, _ = through_json(run)
    rules = rules_of(log)
    assert rules.digest == CALLED.digest
    assert rules != CALLED
    with pytest.raises(
        NotCarried, match=r"this rule's function was not carried: .*is_stale"
    ) as told:
        rules.rules[0].when({"age": 5})
    assert told.value.where == "is_stale"
    # What it found is carried all the same.
    decision = next(code.path for code in log.codes if code.path is not None)
    assert decision.branch == "old"
    other = again(run, log, {"args": {}, "state": {}})
    assert "is_stale() is true of age 5" in other.decisions[0].decision.sentence
    later = rb.decide({"age": 5}, rules)
    assert later.branch == "new"
    assert "was not carried" in later.evidence["rules"][0]["matchError"]


def test_live_rules_take_the_place_of_carried_ones_that_say_the_same():
    run = judged(CALLED, {"age": 5})
    log, _ = through_json(run, [RULES, CALLED])
    assert rules_of(log) is CALLED
    other = rb.RuleSet("called", "v1", [rb.Rule(is_stale, "new")], default="old", unreadable="skip")
    log, _ = through_json(run, [other])
    assert rules_of(log) not in (CALLED, other)


def test_live_rules_of_the_same_digest_and_another_order_do_not():
    one = rb.RuleSet("r", "1", [rb.Rule({"b": {"gt": 1}, "a": {"gt": 1}}, "x")], default="y")
    other = rb.RuleSet("r", "1", [rb.Rule({"a": {"gt": 1}, "b": {"gt": 1}}, "x")], default="y")
    assert one.digest == other.digest
    log, _ = through_json(judged(one, {"a": 0, "b": 2}), [other])
    assert rules_of(log) == one
    assert rules_of(log) is not other


def test_two_functions_of_one_name_stay_two():
    def rule_set(least: int) -> rb.RuleSet:
        return rb.RuleSet("r", "1", [rb.Rule(lambda f: f["a"] > least, "x")], default="y")

    chart = flow_chart("c", lambda s: s.set("a", 3), id="a")
    for number in (1, 5):
        decider = chart.add_decider(f"d{number}", rules=rule_set(number), id=f"d{number}")
        chart = decider.branch("x", work([])).branch("y", work([])).end()
    run = finished(chart.build())
    log, beside = through_json(run)
    assert len(again(run, log, beside).rule_sets()) == len(run.rule_sets()) == 2


# -- values ------------------------------------------------------------------------------------


def with_values(**values: Any) -> Any:
    return flow_chart("c", lambda s: s.update(values), id="a").build()


def test_the_records_own_values_come_back_as_what_they_are():
    inner = triage().run_sync()
    decision = rb.decide({"age": 9, "known": True}, RULES)
    selection = rb.select({"age": 3}, [rb.Rule({"age": {"gt": 2}}, "x")])
    hidden = next(
        one.decision
        for one in triage().run_sync(redact=rb.Redact(keys=("age",))).decisions
        if one.decision.branch == "old"
    )
    run = with_values(
        slot=inner.slots("hosts")[0],
        slots=inner.slots("hosts"),
        decision=decision,
        called=rb.decide({"age": 9}, CALLED),
        selection=selection,
        rules=RULES,
        hidden=hidden,
        missing=(MISSING, [MISSING]),
    ).run_sync()
    log, beside = through_json(run, [CALLED])
    state, before = beside["state"], run.raw[1]
    assert state["slot"] == before["slot"]
    assert isinstance(state["slots"], list)  # of another run: the slots without its log
    assert list(state["slots"]) == list(before["slots"])
    for name in ("decision", "called", "selection", "rules"):
        assert state[name] == before[name]
        assert type(state[name]) is type(before[name])
    assert state["missing"][0] is state["missing"][1][0] is MISSING
    assert state["hidden"].to_dict() == hidden.to_dict()
    assert state["hidden"].hides("age")
    assert [c.redacted for c in state["hidden"].conditions] == [True, False, False][::-1] or any(
        c.redacted for c in state["hidden"].conditions
    )
    # Codes that nothing holds, of what was never read, are not carried.
    assert log.codes == [run.log.codes[n] for n in dict.fromkeys(run.log.root.codes)]


def test_slots_in_the_state_cost_nothing_and_share_their_fan_out():
    run = triage(hosts=500).run_sync()
    state = run.raw[1]
    alone = len(encode(write_log(run.log)))
    both = len(encode(write_log(run.log, beside={"state": state})))
    assert both - alone < 200
    log, beside = through_json(run)
    assert beside["state"]["hosts"].fan_out is next(log.fan_outs())
    assert beside["state"]["rows"][3] is next(log.fan_outs()).items[3]


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "where", "what"),
    [
        (pd.DataFrame({"a": [1]}), "stage 'c' (a), key 'value'", "a DataFrame"),
        ([{"a": 1}, {"a": object()}], "stage 'c' (a), key 'value'[0][1].a", "a object"),
    ],
)
def test_a_value_that_cannot_be_carried_is_refused_by_stage_key_and_path(value, where, what):
    run = with_values(value=value).run_sync()
    with pytest.raises(CheckpointError) as refused:
        write_log(run.log)
    assert refused.value.where.startswith(where.split("[", maxsplit=1)[0])
    assert what in str(refused.value)
    assert refused.value.fix
    report = WireReport()
    data = write_log(run.log, report=report, strict=False)
    assert report.count == 1
    read_log(json.loads(encode(data)))


def test_a_value_beside_the_log_that_cannot_be_carried_is_refused_by_name_and_path():
    with pytest.raises(CheckpointError) as refused:
        write_log(Log(), beside={"answers": [{"a": {3}, "b": (1, object())}]})
    assert refused.value.where == "answers[0].b[1]"


def test_items_that_cannot_be_carried_are_told_by_their_fan_out():
    chart = flow_chart("c", work([]), id="a").add_parallel_for_each(
        "hosts",
        id="hosts",
        branch=flow_chart("b", work([]), id="b").build(),
        items=lambda s: [1, pd.DataFrame()],
        into="out",
        max_branches=5,
    )
    with pytest.raises(CheckpointError, match=r"the items of 'hosts'\[1\] holds a DataFrame"):
        write_log(chart.build().run_sync().log)


def test_what_was_made_plainer_is_counted():
    report = WireReport()
    run = with_values(colour=Colour.RED).run_sync()
    data = write_log(run.log, report=report)
    assert report.replaced == {"Colour": 1}
    assert read_log(data).root.values == ["red"]


def test_names_and_keys_of_any_text_are_carried():
    odd_text = "\ud800 $date \x00"
    chart = flow_chart(odd_text, lambda s: s.set(odd_text, 1), id="a")
    chart.add_parallel_for_each(
        odd_text,
        id="f",
        branch=flow_chart("b", work([]), id="b").build(),
        items=lambda s: [{odd_text: 1}],
        into=odd_text,
        subject=odd_text,
        max_branches=1,
    )
    run = chart.build().run_sync()
    log, beside = through_json(run)
    assert_alike(run, again(run, log, beside))


# -- size --------------------------------------------------------------------------------------


def test_like_branches_cost_their_values_and_little_else():
    run = triage(hosts=5000).run_sync()
    data = write_log(run.log)
    assert len(data["shapes"]) < 10
    assert len(data["codes"]) < 60
    text = encode(data)
    assert len(text) / 5000 < 90
    assert len(text) < 1.3 * len(encode(run.raw[1]["rows"]))


def test_a_loop_writes_what_it_appends_in_columns():
    def step(scope: Any) -> None:
        scope.append("rows", {"name": "n", "value": 1})
        if len(scope["rows"]) == 300:
            scope.stop()

    chart = flow_chart("c", step, id="a").add_function("b", work([]), id="b").loop_to("a").build()
    run = finished(chart)
    (rows,) = [
        column for column in write_log(run.log)["root"]["values"] if isinstance(column, dict)
    ]
    assert rows["$table"][0] == ["name", "value"]
    log, beside = through_json(run)
    assert_alike(run, again(run, log, beside))


def two_branches(status: int = 1) -> tuple[Log, FanOut, Code, Code]:
    log = Log()
    ref = StageRef("f", "F", "fan_out")
    inner = StageRef("b", "B", "stage")
    fan = FanOut(log, ref, ("x", "y"), cap=2, into="out")
    begin, write = Code("stage", inner), Code("write", inner, "n")
    log.root.add(log.number(Code("stage", ref)))
    log.root.add(log.number(Code("fan_out", ref)), fan)
    for index in (1, 0):  # the second item's branch ends first
        track = Track()
        track.add(log.number(begin))
        track.add(log.number(write), f"value {index}")
        fan.close(index, track, status)
    return log, fan, begin, write


def test_only_the_living_values_of_a_branch_are_written():
    log, fan, _, write = two_branches()
    track = fan.reopen(0)
    track.add(log.number(write), "later")
    fan.close(0, track, 1)
    data = write_log(log)
    assert data["fan_outs"][0]["values"] == [["value 0"], ["later"], ["value 1"]]
    assert len(data["shapes"]) == 2
    again_log = read_log(data)
    (mine,) = again_log.fan_outs()
    assert [Slots(mine)[at].value for at in (0, 1)] == [{"n": "later"}, {"n": "value 1"}]
    assert len(mine.values) == 3
    assert write_log(again_log) == data


def test_a_log_that_was_read_is_appended_to_like_the_first():
    log, fan, begin, write = two_branches()
    copy_log = read_log(write_log(log))
    assert copy_log.codes == log.codes
    assert copy_log.number(write) == log.number(write)
    assert copy_log.number(Code("read", begin.stage, "new")) == len(log.codes)
    codes = copy_log.shapes[0].codes
    assert copy_log.shape_number(codes) == 0
    (mine,) = copy_log.fan_outs()
    assert mine.reopen(1).values == fan.reopen(1).values
    assert (mine.cap, mine.into, mine.subject, mine.stage) == (2, "out", None, fan.stage)


# -- damage, one by one ------------------------------------------------------------------------


def fan_log(**more: Any) -> dict[str, Any]:
    """A written log of two fan-outs, one after the other, each of two branches."""
    log, _, begin, write = two_branches()
    other = FanOut(log, StageRef("g", "G", "fan_out"), ("z", "y"), cap=2, into="out")
    log.root.add(log.number(Code("fan_out", other.stage)), other)
    for index in range(2):
        track = Track()
        track.add(log.number(begin))
        track.add(log.number(write), Slots(next(log.fan_outs())) if index else 1)
        other.close(index, track, 1)
    return {**write_log(log), **more}


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (["format"], "runbook_nb/log/2", "the log"),
        (["stages"], {}, "stages"),
        (["stages", 0], ["f"], "stages[0]"),
        (["stages", 0, 1], 5, "stages[0]"),
        (["stages", 0, 2], "spaceship", "stages[0]"),
        (["functions"], 1, "functions"),
        (["functions"], [["a"]], "functions[0]"),
        (["rules"], None, "rules"),
        (["rules"], [{}], "rules[0]"),
        (["rules"], [{"digest": 5, "content": {}}], "rules[0]"),
        (["rules"], [{"digest": None, "content": {"rules": 5}}], "rules[0]"),
        (["rules"], [{"digest": None, "content": {"$ref": 0}}], "rules[0]"),
        (["rules"], [{"digest": None, "content": {}, "hidden": [1]}], "rules[0]"),
        (["codes", 0], ["stage"], "codes[0]"),
        (["codes", 0, 0], "explode", "codes[0]"),
        (["codes", 0, 1], 99, "codes[0]"),
        (["codes", 0, 1], True, "codes[0]"),
        (["codes", 0], ["write", 0], "codes[0]"),
        (["codes", 0], ["decision", 0, None], "codes[0]"),
        (["codes", 0], ["decision", 0, None, [0, "1"]], "codes[0]"),
        (["codes", 0], ["stage", 0, None, [0, "1"]], "codes[0]"),
        (["shapes", 0, 0], 99, "shapes[0]"),
        (["shapes", 0, 0], -1, "shapes[0]"),
        (["shapes", 0, 0], False, "shapes[0]"),
        (["shapes", 0], "ab", "shapes[0]"),
        (["root"], [], "root"),
        (["root", "codes", 0], 99, "root.codes"),
        (["root", "values"], [], "root.values[0]"),
        (["root", "values", 0], 1, "root.values[0]"),
        (["root", "values", 1], 0, "root.values[1]"),
        (["root", "values", 0], [0], "root.values[0]"),
        (["root", "values"], [0, 1, [1]], "root"),
        (["fan_outs"], [], "root.values[0]"),
        (["fan_outs", 0], 5, "fan_outs[0]"),
        (["fan_outs", 0, "stage"], 99, "fan_outs[0]"),
        (["fan_outs", 0, "cap"], -1, "fan_outs[0]"),
        (["fan_outs", 0, "cap"], 2**70, "fan_outs[0]"),
        (["fan_outs", 0, "execution"], "0", "fan_outs[0]"),
        (["fan_outs", 0, "form"], "spiral", "fan_outs[0]"),
        (["fan_outs", 0, "into"], 5, "fan_outs[0]"),
        (["fan_outs", 0, "items"], {}, "fan_outs[0].items"),
        (["fan_outs", 0, "items"], "xy", "fan_outs[0].items"),
        (["fan_outs", 0, "items"], {"$tuple": ["x"]}, "fan_outs[0]"),
        (["fan_outs", 0, "items"], {"$slots": 1}, "fan_outs[0]"),
        (["fan_outs", 0, "statuses"], [1, 3], "fan_outs[0]"),
        (["fan_outs", 0, "statuses"], [3, 2], "fan_outs[0]"),
        (["fan_outs", 0, "statuses"], [1, 1, 1], "fan_outs[0]"),
        (["fan_outs", 0, "statuses"], [1, 2, 1, 10**12], "fan_outs[0]"),
        (["fan_outs", 0, "statuses"], [1, 0, 1, 2], "fan_outs[0]"),
        (["fan_outs", 0, "shapes"], [1, 2], "fan_outs[0]"),
        (["fan_outs", 0, "shapes"], [-1, 2], "fan_outs[0]"),
        (["fan_outs", 0, "shapes"], None, "fan_outs[0]"),
        (["fan_outs", 0, "values"], [["a"]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", "b", "c"]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$ref": 5}]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$slots": 2}]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$slots": 0}]], "fan_outs"),
        (["fan_outs", 0, "values"], [["a", {"$slots": 1}]], "fan_outs"),
        (["fan_outs", 0, "values"], [["a", {"$missing": 1}]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$slot": [1]}]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$called": [1]}]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$rules": 0}]], "fan_outs[0].values[0]"),
        (["fan_outs", 0, "values"], [["a", {"$decision": [0, "", False]}]], "a decision"),
        (["fan_outs", 0, "notes"], 5, "fan_outs[0]"),
        (["fan_outs", 0, "notes"], [[2, "x"]], "fan_outs[0]"),
        (["fan_outs", 0, "notes"], [[0, 5]], "fan_outs[0]"),
        (["fan_outs", 0, "bases"], [0, 1], "fan_outs[0]"),
        (["fan_outs", 0, "bases"], [-1, 2], "fan_outs[0]"),
        (["beside"], [], "beside"),
        (["beside"], {"state": {"$ref": 99}}, "beside.state"),
        (["beside"], {"state": {"$slots": 99}}, "beside.state"),
    ],
)
def test_each_damage_is_told_by_its_place(path, value, where):
    data = fan_log()
    read_log_with(data)
    *steps, last = path
    at_path(data, steps)[last] = value
    with pytest.raises(LoadError) as refused:
        read_log_with(data)
    assert refused.value.where == where
    assert refused.value.code == "bad_log"
    assert refused.value.fix


@pytest.mark.parametrize("data", [None, [], "x", {}, {"format": 1}])
def test_what_is_no_log_at_all_is_told(data):
    with pytest.raises(LoadError, match="no log this version can read"):
        read_log(data)


def test_fan_outs_that_lie_in_one_another_or_nowhere_are_refused():
    data = fan_log()
    data["fan_outs"].append(copy.deepcopy(data["fan_outs"][0]))
    with pytest.raises(LoadError, match="no track before it"):
        read_log(data)
    data = fan_log()
    fan_code = data["root"]["codes"][1]
    data["shapes"][0].append(fan_code)  # every branch would run the next fan-out
    data["fan_outs"][0]["values"].append(2)
    with pytest.raises(LoadError, match="is not the next fan-out"):
        read_log(data)


def deep_log(levels: int) -> dict[str, Any]:
    """A log of fan-outs in fan-outs, each of one branch."""
    data = fan_log()
    fan = {**data["fan_outs"][0], "items": ["x"], "statuses": [1, 1], "shapes": [0, 1]}
    code = data["root"]["codes"][1]
    data["shapes"] = [[code]]
    data["root"] = {"codes": [code], "values": [0]}
    data["fan_outs"] = [{**fan, "values": [at + 1]} for at in range(levels)]
    data["shapes"].append([])
    data["fan_outs"].append({**fan, "shapes": [1, 1], "values": []})
    return data


def test_fan_outs_nest_only_so_deep():
    assert len(list(read_log(deep_log(60)).fan_outs())) == 1
    with pytest.raises(LoadError, match="lies inside more than 64 others"):
        read_log(deep_log(65))


def test_slots_that_multiply_are_refused():
    data = fan_log()
    first = {**data["fan_outs"][0], "shapes": [-1, 2], "values": []}
    code = data["root"]["codes"][1]
    chain = [first, *({**first, "items": [{"$slots": at}] * 2} for at in range(40))]
    data["root"] = {"codes": [code] * 41, "values": [0]}
    data["fan_outs"] = chain
    data["shapes"] = []
    with pytest.raises(LoadError, match="shows more than 50,000,000 values"):
        read_log(data)
    data["root"] = {"codes": [code] * 4, "values": [0]}
    data["fan_outs"] = chain[:4]
    assert len(list(read_log(data).fan_outs())) == 4


def test_items_that_are_slots_of_a_later_fan_out_are_counted_when_it_is_there():
    data = fan_log()
    data["fan_outs"][0] |= {"items": {"$slots": 1}, "size": 2}
    data["fan_outs"][1]["values"] = [[1, 2]]
    (first, _) = read_log(data).fan_outs()
    assert isinstance(first.items, Slots)
    data["fan_outs"][0] |= {"size": 3, "statuses": [1, 3], "shapes": [-1, 3], "values": []}
    with pytest.raises(LoadError, match="has 2 items, not 3"):
        read_log(data)
    data["fan_outs"][0] |= {"size": 10**9, "statuses": [1, 10**9], "shapes": [-1, 10**9]}
    with pytest.raises(LoadError, match="more than 5,000,000 slots"):
        read_log(data)


def test_slots_as_items_come_back_as_slots():
    rows = flow_chart("b", lambda s: s.args["index"], id="b").build()
    chart = flow_chart("c", work([]), id="a")
    for name, items in (("one", lambda s: [1, 2]), ("two", lambda s: s["one"])):
        chart.add_parallel_for_each(
            name, id=name, branch=rows, items=items, into=name, max_branches=9
        )
    run = chart.build().run_sync()
    log, beside = through_json(run)
    one, two = log.fan_outs()
    assert isinstance(two.items, Slots)
    assert two.items.fan_out is one
    assert_alike(run, again(run, log, beside))


def test_outcomes_that_rules_cannot_have_are_refused():
    data = write_log(judged(CALLED, {"age": 5}).log)
    number = next(n for n, code in enumerate(data["codes"]) if code[0] == "decision")
    for outcomes in ("", "2", "11", "7", "x", 1, None):
        damaged = copy.deepcopy(data)
        damaged["codes"][number][3][1] = outcomes
        with pytest.raises(LoadError) as refused:
            read_log(damaged)
        assert refused.value.where.startswith((f"codes[{number}]", "root.values"))
    damaged = copy.deepcopy(data)
    damaged["rules"][0]["digest"] = "sha-256:0"
    with pytest.raises(LoadError, match="another digest than its content"):
        read_log(damaged)


def test_a_value_of_another_kind_of_rule_is_refused():
    for rules, value in ((CALLED, 5), (RULES, {"$called": [True, None, None]})):
        data = write_log(judged(rules, {"age": 5, "known": True}).log)
        number = next(n for n, code in enumerate(data["codes"]) if code[0] == "decision")
        places = [
            n for n in dict.fromkeys(data["root"]["codes"]) if data["codes"][n][0] == "decision"
        ]
        assert places == [number]
        column = len(data["root"]["values"]) - 1
        data["root"]["values"][column] = [value]
        with pytest.raises(LoadError):
            read_log(data)


def test_an_append_to_what_is_no_list_does_not_break_a_replay():
    log = Log()
    ref = StageRef("a", "A", "stage")
    log.root.add(log.number(Code("stage", ref)))
    log.root.add(log.number(Code("write", ref, "x")), 5)
    log.root.add(log.number(Code("append", ref, "x")), 6)
    run = with_values().run_sync()
    looked_at(run, read_log(write_log(log)), {})


def test_a_log_too_deep_for_the_stack_is_refused():
    data = fan_log()
    inner: Any = 1
    for _ in range(5000):
        inner = [inner]
    for place in ("items", "values"):
        damaged = copy.copy(data)
        damaged["fan_outs"] = [{**data["fan_outs"][0], place: [inner]}, data["fan_outs"][1]]
        with pytest.raises(LoadError, match="nested too deeply"):
            read_log(damaged)


def test_a_reader_reads_values_beside_the_log_in_any_order():
    run = triage().run_sync()
    state = run.raw[1]
    writer = LogWriter(run.log)
    second, first = writer.value(state["hosts"], "b"), writer.value(state["rows"], "a")
    reader = LogReader(writer.log())
    assert reader.value(first, "a") == state["rows"]
    assert reader.value(second, "b").fan_out is next(reader.log.fan_outs())
    with pytest.raises(LoadError) as refused:
        reader.value({"$ref": 10**6}, "c")
    assert refused.value.where == "c"


def test_the_bytes_do_not_depend_on_which_branch_was_first():
    import asyncio

    def chart_of(delays):
        async def look(scope):
            item = scope.args["item"]
            await asyncio.sleep(delays[item])
            scope[f"key {item}"] = item

        each = rb.flow_chart("one", look, id="look").build()
        return (
            rb.flow_chart("c", lambda scope: scope.set("items", [0, 1, 2]), id="a")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda scope: scope["items"],
                branch=each,
                max_branches=9,
                into="out",
            )
            .build()
        )

    written = [
        canonical(write_log(chart_of(delays).run_sync().log))
        for delays in ([0.0, 0.01, 0.02], [0.02, 0.01, 0.0])
    ]
    assert written[0] == written[1]
