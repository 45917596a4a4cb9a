"""A secret planted anywhere is found in no served view, however it comes to reappear."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._json import to_wire
from runbook_nb._text import visible
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.record.kept import KeptRecords
from runbook_nb.record.projection import project_walk


def held(examples: int) -> settings:
    """How often a law is tried; a busy machine is no fault of it."""
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


POLICY = rb.Redact(keys=["token"], paths=["rows[*].key", "conn.pin"], emits=["^private"])

#: Where the run meets the secret under a name or a path that is hidden.
SOURCES = ("args", "state", "nested", "path", "item", "result", "append", "merged", "gone")

#: Where it comes up again.
ECHOES = (
    *("state", "in_text", "key", "list", "emit", "stop", "result", "fatal", "fatal_cause"),
    *("branch_fails", "branch_result", "branch_state", "retry", "choice", "actual", "threshold"),
    *("label", "default_label", "function_rule", "function_error", "stage_name", "stage_id"),
    *("subject", "interrupt", "expects", "slots", "bytes", "decision", "rule_set"),
)


def hide_and_echo(secret: str, source: str, echo: str, policy: Any = POLICY) -> Any:
    """Run a chart that meets a secret in one place and lets it out in another."""

    def start(scope: Any) -> None:
        scope["n"] = 3
        if source == "state":
            scope["token"] = secret
        elif source == "nested":
            scope["conn"] = {"inner": [{"token": secret}]}
        elif source == "path":
            scope["conn"] = {"pin": secret, "host": "h"}
        elif source == "append":
            scope.append("rows", {"key": secret})
        elif source == "merged":
            scope.merge("conn", {"pin": secret})
        elif source == "gone":
            scope["token"] = secret
            scope.delete("token")
        elif source == "item":
            scope["rows"] = [{"key": secret}]
        echo_in_state(scope)

    def echo_in_state(scope: Any) -> None:
        if echo == "state":
            scope["copy"] = secret
        elif echo == "in_text":
            scope["note"] = f"connected with {secret} at last"
        elif echo == "key":
            scope["by"] = {secret: 1, (secret, 2): 2}
            scope[f"k{secret}"] = 1
        elif echo == "list":
            scope["deep"] = [[{"x": (secret, {secret})}]]
        elif echo == "emit":
            scope.emit("private.login", {"with": secret})
            scope.emit("public", f"used {secret}")
        elif echo == "bytes":
            scope["raw"] = f"<{secret}>".encode()
        elif echo == "decision":
            scope["made"] = rb.decide({"word": secret}, [rb.Rule({"word": {"eq": "x"}}, "a")], "b")

    def shaky(scope: Any) -> None:
        if echo == "retry" and not calls:
            calls.append(1)
            raise OSError(f"refused {secret}")

    calls: list[int] = []
    items = [{"name": secret if echo == "subject" else "one", "n": 1}, {"name": "two", "n": 2}]

    def work(scope: Any) -> Any:
        if echo == "branch_fails":
            raise ValueError(f"bad {secret}")
        if echo == "branch_state":
            scope["seen"] = [secret]
        scope["word"] = secret if echo == "actual" else "w"
        if source == "item":
            scope.update(scope.args["item"])
        return None

    def rule(facts: Any) -> Any:
        if echo == "function_error":
            raise ValueError(f"rule saw {facts['word']} and {secret}")
        return echo == "function_rule" and secret

    word = "go"
    rules = rb.RuleSet(
        f"set {secret}" if echo == "rule_set" else "set",
        "v1",
        [
            rb.Rule(
                {"word": {"eq": secret if echo == "threshold" else "z"}},
                word,
                label=f"not {secret}" if echo == "label" else None,
            ),
            rb.Rule(rule, word),
        ],
        default=rb.Default(word, label=secret if echo == "default_label" else None),
        unreadable="skip",
    )

    def branch(item: Any, index: int) -> Any:
        return (
            flow_chart(
                f"look {secret}" if echo == "stage_name" else "look",
                work,
                id="load" + (clean(secret) if echo == "stage_id" else ""),
            )
            .add_decider("Judge", id="judge", rules=rules)
            .branch(word, lambda s: s.set("v", 1) or (secret if echo == "branch_result" else None))
            .end()
            .build()
        )

    def pick(scope: Any) -> str:
        return secret if echo == "choice" else "a"

    def end(scope: Any) -> Any:
        if echo == "slots":
            scope["again"] = [slot.to_dict() for slot in scope["out"]]
        if echo == "interrupt":
            interrupt(scope, f"use {secret}?")
        if echo == "expects":
            interrupt(scope, "which?", {"one": secret})
        if echo == "fatal":
            raise ValueError(f"cannot use {secret}")
        if echo == "fatal_cause":
            raise ValueError("no") from KeyError(secret)
        if echo == "stop":
            scope.stop(f"because {secret}")
        if source == "result":
            return {"token": secret, "n": 1}
        return {"said": f"at {secret}"} if echo == "result" else None

    chart = (
        flow_chart("start", start, id="start")
        .add_function("Shaky", shaky, id="shaky", retry=Retry(2))
        .add_decider("Pick", pick, id="pick")
        .branch("a", lambda s: None)
        .default("a")
        .end()
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: items if source != "item" else [*items, {"key": secret, "name": "k"}],
            branch=branch,
            max_branches=9,
            into="out",
            subject="name",
        )
        .add_function("End", end, id="end")
        .build()
    )
    args = {"token": secret} if source == "args" else {"rows": [{"key": "none"}]}
    try:
        return asyncio.run(chart.run(args, redact=policy))
    except Exception as error:
        return error.run  # type: ignore[attr-defined]


def clean(text: str) -> str:
    return "".join(c for c in text if c.isalnum() and c.isascii()) or "x"


def strings(value: Any, seen: set[int] | None = None) -> Any:
    """Yield every text inside plain data and view objects."""
    seen = set() if seen is None else seen
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, dict):
            for key, item in value.items():
                yield from strings(key, seen)
                yield from strings(item, seen)
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                yield from strings(item, seen)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            for each in dataclasses.fields(value):
                yield from strings(getattr(value, each.name), seen)


def views(run: Any) -> Any:
    """Yield everything of a run that is served, by name."""
    yield "args", run.args
    yield "state", to_wire(run.state)
    yield "state itself", run.state
    yield "result", to_wire(run.result)
    yield "error", run.error
    yield "pause", run.pause
    yield "ended_at", run.ended_at
    yield "structure", run.structure.to_dict()
    yield "structure card", run.structure.view()
    yield "rows", run.walk.to_dicts()
    yield "cut", project_walk(run.walk, 5)
    yield "commits", [commit.to_dict() for commit in run.commits]
    yield "decisions", [made.decision.to_dict() for made in run.decisions]
    yield "sentences", [made.decision.sentence for made in run.decisions]
    yield "decision cards", [made.decision.view() for made in run.decisions]
    yield "places", [(made.runtime_stage_id, made.subject, made.item) for made in run.decisions]
    yield "slots", [slot.to_dict() for slot in run.slots("each")] if run.fan_outs else None
    yield "counts", [counts.to_dict() for counts in run.fan_outs]
    yield "recording", run.recording().to_dict()
    yield "walk card", run.walk.view()
    yield "run card", run.view()
    yield "run text", str(run) + repr(run) + run.to_markdown()
    for index in range(3):
        try:
            part = run.walk.of(index=index)
        except LookupError as error:
            yield "not found", str(error)
            continue
        yield f"part {index}", [part.to_dicts(), part.view(), str(part)]
    for ask in (lambda: run.walk.of("onE"), lambda: run.slots("eahc")):
        with pytest.raises(LookupError) as caught:
            ask()
        yield "look-up error", str(caught.value)
    kept = KeptRecords()
    kept.keep(run, tool="t", call_id="c", session_id="s")
    yield "kept", dict(kept.get("c", "s") or {})


#: Echoes in words that rules declare: the evidence of a decision names branches and rule sets as
#: they are declared, so these are looked for in every other view.
VOCABULARY = ("rule_set",)
DECISIONS = ("decisions", "decision cards")


def leaks(run: Any, secret: str, left_out: tuple[str, ...] = ()) -> list[str]:
    forms = {secret, secret.strip(), visible(secret), repr(secret)[1:-1], json.dumps(secret)[1:-1]}
    forms = {form for form in forms if len(form) >= 6}
    return [
        f"{name}: {text!r}"
        for name, view in views(run)
        if name not in left_out
        for text in strings(view)
        if any(form in text for form in forms)
    ]


SECRETS = st.one_of(
    st.just("hunter-2-hunter"),
    st.just("-----BEGIN KEY-----\nMIIE\tquote\" and 'tick' \\ é\n-----END KEY-----\n"),
    # Between marks of its own, so that it cannot be one of the record's own words.
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30).map(
        lambda text: f"q7§{text}§z9"
    ),
)


def hold(secret: str, source: str, echo: str) -> None:
    if source == "result" and echo in ("fatal", "fatal_cause", "interrupt", "expects"):
        return  # the run ends before it meets the secret
    run = hide_and_echo(secret, source, echo)
    assert leaks(run, secret, DECISIONS if echo in VOCABULARY else ()) == []


@given(SECRETS, st.sampled_from(SOURCES), st.sampled_from(ECHOES))
@held(50)
def test_a_secret_met_under_a_hidden_name_is_seen_nowhere(secret, source, echo):
    hold(clean(secret) * 3 if echo == "stage_id" else secret, source, echo)


@pytest.mark.parametrize(
    ("source", "echo"),
    [
        *((SOURCES[place % len(SOURCES)], echo) for place, echo in enumerate(ECHOES)),
        *((source, "in_text") for source in SOURCES),
    ],
)
def test_each_way_in_and_each_way_out(source, echo):
    hold("s3cr3tS3cr3t", source, echo)


@pytest.mark.parametrize("echo", ["state", "fatal", "threshold", "stage_name"])
def test_the_same_run_without_a_policy_shows_it(echo):
    run = hide_and_echo("s3cr3tS3cr3t", "state", echo, policy=None)
    assert leaks(run, "s3cr3tS3cr3t")
