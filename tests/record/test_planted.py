"""A secret planted in every place where data enters a run, looked for in everything that leaves it.

Places times outlets. A place says how the secret gets in and which policies name it. Without a
policy the secret must be seen where the place says it is, so that no cell of the matrix is empty
talk; under each policy it must be seen nowhere.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import html
import json
import re
import zlib
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb._json import to_wire
from runbook_nb._text import visible
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.model import Retry
from runbook_nb.chart.scope import interrupt
from runbook_nb.record.kept import KeptRecords
from runbook_nb.record.projection import project_walk
from runbook_nb.record.redact import Redactor
from runbook_nb.record.slots import Slots
from runbook_nb.record.walk import Walk
from runbook_nb.record.written import read_log_with, served_by, write_log

#: What is planted; some tests plant stranger secrets in the same places.
SECRET = "hunter-2-hunter"
NUMBER = 48151623

#: Stands for the policy that names the secret itself.
BY_VALUE = object()
TOKEN = rb.Redact(keys=["token"])


@dataclass(frozen=True)
class Place:
    """One way in.

    ``run(redact)`` runs a procedure with the secret in that place; ``policies`` each name it;
    ``seen`` are outlets that show it when nothing is hidden.
    """

    name: str
    run: Callable[..., Any]
    policies: tuple[Any, ...]
    seen: tuple[str, ...]
    fixed: str | None = None

    @property
    def secret(self) -> str:
        """What is planted there."""
        return SECRET if self.fixed is None else self.fixed

    def ran(self, policy: int | None) -> Any:
        """Give the run under one of the policies, or under none."""
        redact = None if policy is None else self.policies[policy]
        if redact is BY_VALUE:
            redact = rb.Redact(values=[self.secret])
        return self.run(redact)


PLACES: dict[str, Place] = {}

#: Not empty while a place is one inside the branch of a fan-out.
INSIDE: list[bool] = []


def place(
    *seen: str,
    by: tuple[Any, ...] = (),
    values: bool = True,
    secret: str | None = None,
    inside: tuple[str, ...] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a place.

    ``by`` are the policies that name it besides the literal value. With ``inside`` it is a place
    in the branch of a fan-out as well, and those are the outlets that show it there.
    """

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        name = run.__name__.removeprefix("in_")
        policies = (*((BY_VALUE,) if values else ()), *by)
        PLACES[name] = Place(name, run, policies, seen, secret)
        if inside:

            def branched(redact: Any) -> Any:
                INSIDE.append(True)
                try:
                    return run(redact)
                finally:
                    INSIDE.pop()

            PLACES[f"{name}_of_a_branch"] = Place(name, branched, policies, inside, secret)
        return run

    return register


def done(chart: Any, redact: Any, args: Any = None, **more: Any) -> Any:
    """Run a chart to whatever end it comes to."""
    built = chart.build() if hasattr(chart, "build") else chart
    try:
        return asyncio.run(built.run(args, redact=redact, **more))
    except Exception as error:
        return error.run  # type: ignore[attr-defined]


def writing(redact: Any, **values: Any) -> Any:
    """Run a chart that writes some values."""
    return done(flow_chart("c", lambda s: s.update(values), id="a"), redact)


def raising(error: BaseException, cause: BaseException | None = None) -> Callable[..., Any]:
    def stage(scope: Any) -> None:
        raise error from cause

    return stage


def each(
    redact: Any,
    items: Any,
    work: Callable[..., Any] | None = None,
    *,
    chart: Any = None,
    name: str = "Each",
    id: str = "each",
    args: Any = None,
    rows: bool = False,
    **more: Any,
) -> Any:
    """Run a fan-out over items."""
    work = work or (lambda s: s.set("seen", s.args["item"]))
    branch = chart or flow_chart("look", work, id="look").build()
    listed = (lambda s: s["rows"]) if rows else (lambda s: items)
    options = {"max_branches": 9, "into": "out", **more}
    return done(
        flow_chart("c", lambda s: s.set("rows", items) if rows else None, id="start")
        .add_parallel_for_each(name, id=id, items=listed, branch=branch, **options)
        .add_function("End", lambda s: None, id="end"),
        redact,
        args,
    )


# -- input and state ---------------------------------------------------------------------------


@place("args", "crawl", by=(TOKEN, {"paths": ["token"]}, {"patterns": ["^tok"]}))
def in_input(redact):
    return done(flow_chart("c", lambda s: None, id="a"), redact, {"token": SECRET})


@place(
    *("args", "crawl"),
    by=(
        {"paths": ["conn.pin"]},
        {"fields": {"conn": ["pin"]}},
        {"keys": ["pin"]},
        {"keys": ["conn"]},
    ),
)
def in_nested_input(redact):
    return done(flow_chart("c", lambda s: None, id="a"), redact, {"conn": {"pin": SECRET}})


@place("state", "commits", "recording", "kept", "crawl", by=(TOKEN, {"patterns": ["ok.n$"]}))
def in_state(redact):
    return writing(redact, token=SECRET)


@place(
    *("state", "commits", "recording"),
    by=(
        TOKEN,
        {"paths": ["rows[*].inner[*].token"]},
        {"paths": ["rows[0].inner[0].token"]},
        {"fields": {"rows": ["inner.token"]}},
        {"fields": {"rows": ["0.inner.0.token"]}},
        {"fields": {"rows": ["[*].inner[*].token"]}},
    ),
)
def in_nested_list(redact):
    return writing(redact, rows=[{"inner": [{"token": SECRET, "n": 1}]}])


@place("state", "commits", by=({"paths": ["conn.a.b"]}, {"fields": {"conn": ["a.b"]}}))
def in_dotted_key(redact):
    return writing(redact, conn={"a.b": SECRET})


@place("state", "commits", by=({"paths": ["a.b"]}, {"keys": ["a.b"]}))
def in_dotted_state_key(redact):
    return writing(redact, **{"a.b": SECRET})


@place("state", "commits", by=({"keys": ["a.b"]},))
def in_path_named_as_key(redact):
    return writing(redact, a={"b": SECRET})


@place("state", "commits", "recording")
def in_dict_key(redact):
    return writing(redact, by={SECRET: 1, (SECRET, 2): 2})


@place("state", "rows", "recording", "commits")
def in_state_key(redact):
    return writing(redact, **{f"k-{SECRET}": 1})


@place("state", "commits", by=({"patterns": ["end$"]},))
def in_value_of_a_long_name(redact):
    return writing(redact, **{"x" * 300 + "end": SECRET})


@place("state", "commits", by=({"paths": ["conn.pin"]},))
def in_merged_value(redact):
    return done(flow_chart("c", lambda s: s.merge("conn", {"pin": SECRET}), id="a"), redact)


@place("state", "commits", by=({"paths": ["rows[*].pin"]}, {"paths": ["rows[3].pin"]}))
def in_appended_item(redact):
    def stage(scope):
        for n in range(3):
            scope.append("rows", {"n": n})
        scope.append("rows", {"pin": SECRET})

    return done(flow_chart("c", stage, id="a"), redact)


@place("commits", "crawl", by=(TOKEN,))
def in_deleted_value(redact):
    return done(
        flow_chart("c", lambda s: s.set("token", SECRET), id="a")
        .add_function("B", lambda s: s.delete("token"), id="b")
        .add_function("C", lambda s: s.set("copy", "public"), id="c"),
        redact,
    )


@place("state", "commits", by=(TOKEN,))
def in_value_written_again_after_deleting(redact):
    return done(
        flow_chart("c", lambda s: s.set("token", SECRET), id="a")
        .add_function("B", lambda s: s.delete("token"), id="b")
        .add_function("C", lambda s: s.set("token", SECRET), id="c"),
        redact,
    )


@place("state", "commits", by=(TOKEN,))
def in_copy(redact):
    return writing(redact, token=SECRET, copy=SECRET, text=f"with {SECRET} at last")


@place("result", by=({"keys": ["token"]},))
def in_result(redact):
    return done(flow_chart("c", lambda s: {"token": SECRET}, id="a"), redact)


@place("result")
def in_plain_result(redact):
    return done(flow_chart("c", lambda s: [f"got {SECRET}"], id="a"), redact)


# -- values of every kind ----------------------------------------------------------------------

Pair = namedtuple("Pair", "token n")


@dataclass
class Card:
    token: str
    n: int = 1


@place("state", "commits", by=(TOKEN,))
def in_tuple(redact):
    return writing(redact, token=(1, SECRET), copy=(1, SECRET))


@place("state", by=(TOKEN,))
def in_set(redact):
    return writing(redact, token={SECRET}, copy=[{SECRET}])


@place("state", by=(TOKEN,))
def in_named_tuple(redact):
    return writing(redact, pair=Pair(SECRET, 1), copy=SECRET)


@place("crawl", by=(TOKEN,))
def in_dataclass(redact):
    return writing(redact, card=Card(SECRET), copy=SECRET)


@place("crawl", by=(TOKEN,))
def in_bytes(redact):
    return writing(redact, token=SECRET.encode(), copy=f"<{SECRET}>".encode(), text=SECRET)


@place("state", by=(TOKEN,))
def in_enum(redact):
    word = Enum("Word", {"ONE": SECRET}).ONE
    return writing(redact, token=word, copy=word, text=SECRET)


@place("state", "commits", by=(TOKEN,), secret=str(NUMBER))
def in_number(redact):
    return writing(redact, token=NUMBER, copy=NUMBER, text=f"no {NUMBER}", exact=Decimal(NUMBER))


@place("state", by=(TOKEN, {"values": ["1984-03-07"]}), values=False, secret="1984-03-07")
def in_date(redact):
    return writing(redact, token=date(1984, 3, 7), copy=date(1984, 3, 7), text="born 1984-03-07")


@place("crawl", by=(TOKEN,))
def in_frame(redact):
    return writing(redact, rows=pd.DataFrame({"token": [SECRET], "n": [1]}), copy=SECRET)


@place("crawl", by=(TOKEN,))
def in_array(redact):
    return writing(redact, token=np.array([SECRET]), copy=SECRET)


@place("state", "commits", by=(TOKEN,))
def in_copy_of_a_part(redact):
    """The same object under another name, its values too short to be told."""

    def stage(scope):
        scope["token"] = {"inner": {"word": "tok", "also": SECRET}}
        scope["copy"] = scope["token"]["inner"]

    return done(flow_chart("c", stage, id="a"), redact)


@place("rows", "decisions", by=({"keys": ["word"]},))
def in_value_cut_off(redact):
    """A summary shows the beginning of a long text only."""
    long = SECRET + "-" + "and so on " * 20

    def judge(scope):
        return rb.decide({"word": long}, [rb.Rule({"word": {"eq": "x"}}, "a")], "a")

    return decided(redact, judge=judge, extra={"copy": long})


# -- what is said of what went wrong -----------------------------------------------------------


@place("error", "rows", "html", "recording", "kept", by=(TOKEN,))
def in_error(redact):
    def stage(scope):
        scope["token"] = SECRET
        raise ValueError(f"cannot use {SECRET}")

    return done(flow_chart("c", stage, id="a"), redact)


@place("error", "rows", by=(TOKEN,))
def in_error_about_input(redact):
    chart = flow_chart("c", raising(ValueError(f"bad {SECRET}")), id="a")
    return done(chart, redact, {"token": SECRET})


@place("error", "crawl")
def in_cause(redact):
    chart = flow_chart("c", raising(ValueError("no"), KeyError(SECRET)), id="a")
    return done(chart, redact)


@place("error", "rows")
def in_type_of_an_error(redact):
    kind = type(f"Odd{SECRET}", (Exception,), {})
    return done(flow_chart("c", raising(kind("no")), id="a"), redact)


@place("rows", "recording", by=(TOKEN,))
def in_retry_error(redact):
    calls = []

    def shaky(scope):
        if not calls:
            calls.append(1)
            scope["token"] = SECRET  # goes with the attempt
            raise OSError(f"refused {SECRET}")

    return done(flow_chart("c", shaky, id="a", retry=Retry(2)), redact)


@place("error", "rows")
def in_error_of_items(redact):
    chart = flow_chart("c", lambda s: None, id="a").add_parallel_for_each(
        "Each",
        id="each",
        items=raising(ValueError(f"no list {SECRET}")),
        branch=flow_chart("b", lambda s: None, id="b").build(),
        max_branches=2,
        into="out",
    )
    return done(chart, redact)


@place("rows", "slots", by=({"keys": ["token"]},))
def in_error_of_a_branch(redact):
    def work(scope):
        scope["token"] = SECRET
        raise ValueError(f"bad {SECRET}")

    return each(redact, [1, 2], work)


@place("rows", "slots")
def in_error_of_a_factory(redact):
    def make(item, index):
        raise ValueError(f"no chart for {SECRET}")

    return each(redact, [1], chart=make)


# -- fan-outs ----------------------------------------------------------------------------------


def two_rows() -> list[dict[str, str]]:
    return [{"name": "a", "token": SECRET}, {"name": "b", "token": "none"}]


@place(
    *("slots", "state", "commits"),
    by=(TOKEN, {"paths": ["rows[*].token"]}, {"fields": {"rows": ["token"]}}),
)
def in_item(redact):
    return each(redact, two_rows(), rows=True)


@place("slots", by=({"paths": ["given[*].token"]}, TOKEN))
def in_item_from_input(redact):
    work = flow_chart("look", lambda s: s.set("copy", s.args["item"]), id="look").build()
    chart = flow_chart("c", lambda s: None, id="a").add_parallel_for_each(
        "Each",
        id="each",
        items=lambda s: s.args["given"],
        branch=work,
        max_branches=3,
        into="out",
        subject="name",
    )
    return done(chart, redact, {"given": two_rows()})


@place("slots", "decisions", "part card", by=(TOKEN,))
def in_subject(redact):
    rules = rb.RuleSet("r", "1", [rb.Rule({"n": {"gt": 1}}, "x")], default="x")
    branch = (
        flow_chart("b", lambda s: s.set("n", 2), id="load")
        .add_decider("D", id="d", rules=rules)
        .branch("x", lambda s: None)
        .end()
        .build()
    )
    return each(redact, two_rows(), chart=branch, subject="token")


@place("slots", "part card")
def in_plain_item(redact):
    return each(redact, [SECRET, "b"])


@place("slots", "state")
def in_branch_result(redact):
    return each(redact, [1], lambda s: f"got {SECRET}")


@place("slots", "recording", by=(TOKEN,))
def in_branch_state(redact):
    return each(redact, [1], lambda s: s.set("token", SECRET))


@place("crawl", by=(TOKEN,))
def in_item_past_the_cap(redact):
    return each(redact, [{"n": 1}, {"token": SECRET}], max_branches=1)


@place("state", "commits", "rows")
def in_key_of_slots(redact):
    return each(redact, [1], into=f"out-{SECRET}")


@place("rows", "counts", "structure", "dot", "mermaid", "svg", "html")
def in_name_of_a_fan_out(redact):
    return each(redact, [1], name=f"each {SECRET}")


@place("rows", "counts", "structure", "recording", "not found")
def in_id_of_a_fan_out(redact):
    return each(redact, [1], id=f"each-{SECRET}")


@place("structure", "rows", "recording")
def in_stage_made_by_a_factory(redact):
    def make(item, index):
        return flow_chart(f"made {SECRET}", lambda s: None, id=f"m-{SECRET}").build()

    return each(redact, [1, 2], chart=make)


# -- declared words ----------------------------------------------------------------------------


def declared(redact, **words):
    chart = flow_chart("c", lambda s: None, id="a").add_function(
        **{"name": "B", "fn": lambda s: None, "id": "b", **words}
    )
    return done(chart, redact)


@place("rows", "html", "structure", "recording", "dot", "mermaid", "svg", "commits")
def in_stage_name(redact):
    return declared(redact, name=f"use {SECRET}")


@place("rows", "structure", "recording", "commits")
def in_stage_id(redact):
    return declared(redact, id=f"b-{SECRET}")


@place("structure", "recording")
def in_description(redact):
    return declared(redact, description=f"asks with {SECRET}")


@place("structure", "recording")
def in_tag(redact):
    return declared(redact, tags=[f"t-{SECRET}"])


@place("html", "structure", "recording", "text")
def in_chart_name(redact):
    return done(flow_chart(f"c {SECRET}", lambda s: None, id="a", stage_name="A"), redact)


@place("ended_at", "text", "html")
def in_name_of_the_stage_it_ended_at(redact):
    chart = flow_chart("c", raising(ValueError("no")), id=f"a-{SECRET}", stage_name=SECRET)
    return done(chart, redact)


# -- rules -------------------------------------------------------------------------------------


def decided(
    redact: Any,
    rules: Any = None,
    *,
    judge: Any = None,
    actual: Any = 5,
    extra: Mapping[str, Any] | None = None,
    words: tuple[str, ...] = ("a", "b"),
    name: str | None = None,
    described: str | None = None,
) -> Any:
    """Run a chart with one decider."""

    def load(scope):
        scope["word"] = actual
        for key, value in (extra or {}).items():
            scope[key] = value

    how = {"judge": judge} if judge is not None else {"rules": rules}
    made = flow_chart("c", load, id="load").add_decider("D", id="d", **how)
    for word in words:
        made = made.branch(word, lambda s: None, name=name, description=described)
    if judge is not None:
        made = made.default(words[0])
    if INSIDE:
        return each(redact, [1, 2], chart=made.end().build())
    return done(made.end(), redact)


def ruled(*rules: Any, **more: Any) -> Any:
    return rb.RuleSet(more.pop("name", "set"), more.pop("version", "v1"), rules, **more)


IS_A = rb.Rule({"word": {"eq": 5}}, "a")
EVIDENCE = ("rows", "decisions", "decision cards", "html", "recording")
BRANCH = ("rows", "decisions", "part rows", "part card", "slots")


@place(*EVIDENCE, by=({"keys": ["word"]},), inside=BRANCH)
def in_actual(redact):
    return decided(redact, ruled(rb.Rule({"word": {"ne": "x"}}, "a"), default="b"), actual=SECRET)


@place("rows", "decisions", by=({"paths": ["conn.pin"]}, {"keys": ["pin"]}), inside=("rows",))
def in_actual_of_a_path(redact):
    rules = ruled(rb.Rule({"conn.pin": {"ne": "x"}}, "a"), default="b")
    return decided(redact, rules, extra={"conn": {"pin": SECRET}})


@place(*EVIDENCE, by=({"keys": ["word"]},), inside=BRANCH)
def in_threshold(redact):
    return decided(redact, ruled(rb.Rule({"word": {"ne": SECRET}}, "a"), default="b"), actual="x")


@place(
    "decision cards",
    "svg",
    "html",
    "rule sets",
    by=({"keys": ["word"]},),
    inside=("part card", "svg"),
)
def in_threshold_not_tried(redact):
    rules = ruled(IS_A, rb.Rule({"word": {"in": [SECRET, "y"]}}, "b"), default="b")
    return decided(redact, rules)


@place("rows", "decisions", "svg", by=({"keys": ["word"]},), secret=str(NUMBER), inside=("rows",))
def in_limit_of_numbers(redact):
    rules = ruled(rb.Rule({"word": {"between": [1, NUMBER]}}, "a"), default="b")
    return decided(redact, rules)


@place("decisions", "html", "rule sets", inside=("decisions", "part card"))
def in_rule_label(redact):
    rules = ruled(rb.Rule({"word": {"eq": 5}}, "a", label=f"is {SECRET}"), default="b")
    return decided(redact, rules)


@place("decisions", "rule sets", inside=("decisions", "part card"))
def in_default_label(redact):
    rules = ruled(rb.Rule({"word": {"eq": 6}}, "a"), default=rb.Default("b", label=SECRET))
    return decided(redact, rules)


@place("decisions", "rule sets", inside=("decisions", "part card"))
def in_unreadable_label(redact):
    rules = ruled(
        rb.Rule({"gone": {"eq": 6}}, "a"), unreadable=rb.Unreadable("b", label=f"no {SECRET}")
    )
    return decided(redact, rules)


@place("decisions", "rows", "decision cards", "rule sets", inside=("rows",))
def in_ground_outside(redact):
    where = {"word": {"eq": 5}}
    rules = ruled(IS_A, default="b", outside=[rb.Outside(where, f"what {SECRET}", f"why {SECRET}")])
    return decided(redact, rules, words=("a", "b", "declined"))


@place("decisions", "rows", "decision cards", "rule sets", inside=("rows",))
def in_name_of_a_rule_set(redact):
    return decided(redact, ruled(IS_A, default="b", name=f"set {SECRET}"))


@place("decisions", "rows", "decision cards", "rule sets", inside=("rows",))
def in_version_of_a_rule_set(redact):
    return decided(redact, ruled(IS_A, default="b", version=f"v-{SECRET}"))


@place("decisions", "rows", "decision cards", "rule sets", inside=("rows",))
def in_unit(redact):
    rules = ruled(rb.Rule({"word": {"gt": 4}}, "a", unit=SECRET), default="b")
    return decided(redact, rules)


@place("decisions", "rows", "decision cards", "state", "rule sets", inside=("rows",))
def in_key_of_a_rule(redact):
    key = f"k-{SECRET}"
    return decided(redact, ruled(rb.Rule({key: {"gt": 4}}, "a"), default="b"), extra={key: 9})


@place("decisions", "rows", "decision cards", "structure", "dot", "rule sets", inside=("rows",))
def in_branch_word(redact):
    word = f"go-{SECRET}"
    rules = ruled(rb.Rule({"word": {"gt": 4}}, word), default="b")
    return decided(redact, rules, words=(word, "b"))


@place("rows", "structure", inside=("rows",))
def in_branch_name(redact):
    return decided(redact, ruled(IS_A, default="b"), name=f"branch {SECRET}")


@place("structure", inside=("structure",))
def in_branch_description(redact):
    return decided(redact, ruled(IS_A, default="b"), described=f"means {SECRET}")


def named(name: str, value: Any) -> Any:
    def rule(facts):
        facts["word"]
        if isinstance(value, Exception):
            raise value
        return value

    rule.__name__ = rule.__qualname__ = name
    return rule


@place("decisions", "rows", "decision cards", "html", inside=("rows",))
def in_name_of_a_function_rule(redact):
    return decided(redact, ruled(rb.Rule(named(f"is_{SECRET}", True), "a"), default="b"))


@place("decisions", by=({"keys": ["word"]},), inside=("decisions",))
def in_what_a_function_rule_returned(redact):
    return decided(redact, ruled(rb.Rule(named("f", SECRET), "a"), default="b"))


@place("decisions", "rows", "decision cards", by=({"keys": ["word"]},), inside=("rows",))
def in_what_a_function_rule_read(redact):
    return decided(redact, ruled(rb.Rule(named("f", True), "a"), default="b"), actual=SECRET)


@place("decisions", "decision cards", by=({"keys": ["word"]},), inside=("rows",))
def in_error_of_a_function_rule(redact):
    rules = ruled(rb.Rule(named("f", ValueError(f"no {SECRET}")), "a"), default="b")
    return decided(redact, rules, actual=SECRET)


@place("rows", "decisions", "state", by=({"keys": ["token"]},), inside=("rows",))
def in_facts_judged_apart(redact):
    """What a judge looked at and nobody wrote, told of elsewhere."""

    def judge(scope):
        scope["note"] = f"asked with {SECRET}"
        return rb.decide({"token": SECRET}, [rb.Rule({"token": {"ne": "x"}}, "a")], "b")

    return decided(redact, judge=judge)


@place("rows", inside=("rows",))
def in_choice(redact):
    return decided(redact, judge=lambda s: SECRET)


@place("error", "rows")
def in_choice_of_no_branch(redact):
    chart = (
        flow_chart("c", lambda s: None, id="load")
        .add_decider("D", lambda s: SECRET, id="d")
        .branch("a", lambda s: None)
        .end()
    )
    return done(chart, redact)


@place("state", "crawl", by=({"keys": ["word"]},))
def in_decision_in_state(redact):
    def load(scope):
        scope["made"] = rb.decide({"word": SECRET}, [rb.Rule({"word": {"eq": "x"}}, "a")], "b")

    return done(flow_chart("c", load, id="a"), redact)


@place("state", "crawl", by=({"keys": ["word"]},))
def in_selection_in_state(redact):
    def load(scope):
        scope["made"] = rb.select({"word": SECRET}, [rb.Rule({"word": {"ne": "x"}}, "a")])

    return done(flow_chart("c", load, id="a"), redact)


# -- events, stops, questions ------------------------------------------------------------------


@place("rows", "recording", by=({"emits": ["^private"]}, {"keys": ["private.login"]}))
def in_payload(redact):
    return done(flow_chart("c", lambda s: s.emit("private.login", SECRET), id="a"), redact)


@place("rows", by=({"emits": ["^private"]},))
def in_key_of_a_payload(redact):
    payload = {SECRET: 1}
    return done(flow_chart("c", lambda s: s.emit("private.login", payload), id="a"), redact)


@place("rows", "recording")
def in_name_of_an_event(redact):
    return done(flow_chart("c", lambda s: s.emit(f"login {SECRET}", 1), id="a"), redact)


@place("rows", "recording")
def in_stop_reason(redact):
    return done(flow_chart("c", lambda s: s.stop(f"because {SECRET}"), id="a"), redact)


@place("pause", "rows", "text", "html", by=(TOKEN,))
def in_question(redact):
    def ask(scope):
        scope["token"] = SECRET
        interrupt(scope, f"use {SECRET}?")

    return done(flow_chart("c", ask, id="a"), redact)


@place("pause", by=(TOKEN,))
def in_expects(redact):
    chart = flow_chart("c", lambda s: interrupt(s, "which?", {"token": SECRET}), id="a")
    return done(chart, redact)


@place("output", by=(TOKEN,))
def in_output_of_a_chart(redact):
    chart = flow_chart(
        "c", lambda s: s.set("token", SECRET), id="a", output=lambda state: [f"is {state['token']}"]
    )
    return done(chart, redact)


@place("error", "text", by=(TOKEN,))
def in_error_of_an_output(redact):
    def output(state):
        raise ValueError(f"no output of {state['token']}")

    return done(flow_chart("c", lambda s: s.set("token", SECRET), id="a", output=output), redact)


@place("error", "text", by=(TOKEN,))
def in_output_that_does_not_fit(redact):
    schema = {"type": "object", "properties": {"out": {"enum": ["a"]}}}
    chart = flow_chart(
        "c",
        lambda s: s.set("token", SECRET),
        id="a",
        output=lambda state: {"out": state["token"]},
        output_schema=schema,
    )
    return done(chart, redact)


@place("error", "text")
def in_mapped_input_that_does_not_fit(redact):
    schema = {"type": "object", "properties": {"given": {"enum": ["a"]}}}
    inner = flow_chart("inner", lambda s: None, id="in", input_schema=schema).build()
    return mounted(redact, inner, inputs=lambda s: {"given": SECRET})


@place("error", "rows", "text")
def in_reason_of_a_signal(redact):
    stop = rb.Stop()
    stop.set(f"halted by {SECRET}")
    return done(flow_chart("c", lambda s: None, id="a"), redact, signal=stop)


# -- marked while running ----------------------------------------------------------------------


@place(values=False, by=(None, {"keys": ["other"]}))
def in_secret_write(redact):
    def stage(scope):
        scope["before"] = f"it was {SECRET}"
        scope.set("token", SECRET, secret=True)
        scope.delete("token")
        scope["conn"] = {"token": SECRET}

    chart = flow_chart("c", stage, id="a").add_function(
        "B", lambda s: s.set("token", SECRET), id="b"
    )
    return done(chart, redact)


@place(values=False, by=(None,))
def in_secret_write_of_a_branch(redact):
    return each(redact, [1, 2], lambda s: s.set("token", SECRET, secret=True))


# -- charts in charts --------------------------------------------------------------------------


def mounted(
    redact: Any, inner: Any = None, *, load: Any = None, args: Any = None, **how: Any
) -> Any:
    """Run a chart with another mounted in it."""
    inner = inner or flow_chart("inner", lambda s: s.set("got", 1), id="in").build()
    chart = flow_chart("outer", load or (lambda s: s.update({"token": SECRET})), id="load")
    return done(chart.add_subchart("Sub", inner, id="sub", **how), redact, args)


@place("rows", "initial", "state", by=(TOKEN, {"paths": ["conn.pin", "token"]}))
def in_initial_state(redact):
    chart = flow_chart("c", lambda s: s.stop(s["conn"]["pin"]), id="a")
    return done(chart, redact, state={"token": SECRET, "conn": {"pin": SECRET}})


@place("rows", "decisions", "initial", by=({"keys": ["word"]},))
def in_actual_from_initial_state(redact):
    made = flow_chart("c", lambda s: None, id="a").add_decider(
        "D", id="d", rules=ruled(rb.Rule({"word": {"ne": "x"}}, "a"), default="a")
    )
    chart = made.branch("a", lambda s: None).end()
    return done(chart, redact, state={"word": SECRET})


@place("state", "commits", by=(TOKEN,))
def in_mapped_input(redact):
    """The secret goes in under a name that nobody hides."""
    inner = flow_chart("inner", lambda s: s.set("copy", s["given"]), id="in").build()
    return mounted(redact, inner, inputs={"given": "token"})


@place("state", by=({"paths": ["conn.pin"]}, {"fields": {"conn": ["pin"]}}))
def in_part_of_a_mapped_input(redact):
    """Rebased: a path into the parent's key leads to the same object inside, short as it is."""
    inner = flow_chart("inner", lambda s: s.set("kept", s["given"]), id="in").build()
    load = lambda s: s.update({"conn": {"pin": SECRET, "host": "h"}})  # noqa: E731
    return mounted(redact, inner, load=load, inputs={"given": "conn"}, outputs={"got": "kept"})


@place(by=({"keys": ["pin"]}, {"paths": ["pin"]}))
def in_input_mapped_by_a_function(redact):
    return mounted(redact, load=lambda s: None, inputs=lambda s: {"pin": SECRET})


@place("state", "commits", by=(TOKEN, {"keys": ["out"]}))
def in_mapped_output(redact):
    inner = flow_chart("inner", lambda s: s.set("token", SECRET), id="in").build()
    return mounted(redact, inner, load=lambda s: None, outputs={"out": "token"})


@place("state", "commits", by=({"keys": ["out"]},))
def in_output_mapped_by_a_function(redact):
    return mounted(redact, load=lambda s: None, outputs=lambda r, s: {"out": [f"at {SECRET}"]})


@place(by=(TOKEN,))
def in_state_of_a_mounted_chart(redact):
    inner = flow_chart("inner", lambda s: s.set("token", SECRET), id="in").build()
    return mounted(redact, inner, load=lambda s: None)


@place("rows", "structure", "svg", "dot", "mermaid")
def in_name_of_a_mounted_stage(redact):
    inner = flow_chart(f"in {SECRET}", lambda s: None, id="in").build()
    return mounted(redact, inner, load=lambda s: None)


@place("rows", "structure")
def in_id_of_a_mount(redact):
    inner = flow_chart("inner", lambda s: None, id="in").build()
    chart = flow_chart("c", lambda s: None, id="a").add_subchart("Sub", inner, id=f"sub-{SECRET}")
    return done(chart, redact)


@place("decisions", "crawl")
def in_path_of_a_decision_in_a_mount(redact):
    inner = (
        flow_chart("inner", lambda s: s.set("word", 5), id="in")
        .add_decider("D", id="d", rules=ruled(IS_A, default="a"))
        .branch("a", lambda s: None)
        .end()
        .build()
    )
    chart = flow_chart("c", lambda s: None, id="a").add_subchart("Sub", inner, id=f"sub-{SECRET}")
    return done(chart, redact)


@place("rows", "structure")
def in_stage_of_a_lazy_chart(redact):
    def make():
        return flow_chart(f"made {SECRET}", lambda s: None, id=f"m-{SECRET}").build()

    chart = flow_chart("c", lambda s: None, id="a")
    return done(chart.add_subchart("Sub", make, id="sub", lazy=True), redact)


@place("error", "rows")
def in_error_of_an_input_mapper(redact):
    def inputs(scope):
        raise ValueError(f"cannot map {SECRET}")

    return mounted(redact, load=lambda s: None, inputs=inputs)


@place("error", "rows", by=(TOKEN,))
def in_error_of_an_output_mapper(redact):
    def outputs(result, scope):
        raise ValueError(f"cannot map {result['token']}")

    inner = flow_chart("inner", lambda s: s.set("token", SECRET), id="in").build()
    return mounted(redact, inner, load=lambda s: None, outputs=outputs)


@place("error", "rows", by=(TOKEN,))
def in_error_inside_a_mounted_chart(redact):
    inner = flow_chart("inner", raising(ValueError(f"no {SECRET}")), id="in").build()
    return mounted(redact, inner)


@place("error", "rows")
def in_error_of_a_lazy_chart(redact):
    chart = flow_chart("c", lambda s: None, id="a").add_subchart(
        "Sub", lambda: raising(ValueError(f"none for {SECRET}"))(None), id="sub", lazy=True
    )
    return done(chart, redact)


@place("rows", by=(TOKEN,))
def in_stop_reason_of_a_mounted_chart(redact):
    inner = flow_chart("inner", lambda s: s.stop(f"because {SECRET}"), id="in").build()
    return mounted(redact, inner, propagate_stop=True)


# -- side by side ------------------------------------------------------------------------------


def forked(redact: Any, *children: Any, load: Any = None, **how: Any) -> Any:
    """Run a fork of some children, given as (id, function or chart)."""
    chart = flow_chart("c", load or (lambda s: None), id="a").add_fork("Fork", id="fork", **how)
    for id, fn in children:
        chart = chart.branch(id, fn)
    return done(chart.end().add_function("End", lambda s: None, id="end"), redact)


@place("state", "commits", by=(TOKEN,))
def in_view_of_a_fork_child(redact):
    """What a child sees of its parent, written on under another name."""
    return forked(
        redact,
        ("c1", lambda s: s.set("copy", s["token"])),
        ("c2", lambda s: s.set("text", f"with {s['token']}")),
        load=lambda s: s.set("token", SECRET),
        merge="keys",
    )


@place("slots", "state", by=(TOKEN,))
def in_write_of_a_fork_child(redact):
    return forked(redact, ("c1", lambda s: s.set("token", SECRET)), into="out")


@place("slots", "state")
def in_result_of_a_fork_child(redact):
    return forked(redact, ("c1", lambda s: f"got {SECRET}"), into="out")


@place("slots", "rows", by=(TOKEN,))
def in_error_of_a_fork_child(redact):
    def child(scope):
        scope["token"] = SECRET
        raise ValueError(f"bad {SECRET}")

    return forked(redact, ("c1", child), ("c2", lambda s: None), into="out")


@place("rows", "structure", "slots", "svg")
def in_id_of_a_fork_child(redact):
    return forked(redact, (f"c-{SECRET}", lambda s: None), into="out")


@place("error", "rows")
def in_error_of_a_merge(redact):
    def merge(scope, slots):
        raise ValueError(f"cannot merge {slots[0].value}")

    return forked(redact, ("c1", lambda s: SECRET), merge=merge)


@place("error", "rows")
def in_key_of_a_merge_conflict(redact):
    both = f"k-{SECRET}"
    children = [(f"c{n}", lambda s: s.set(both, 1)) for n in range(2)]
    return forked(redact, *children, merge="keys")


def selecting(redact: Any, rules: Any = None, *, judge: Any = None, load: Any = None) -> Any:
    how = {"judge": judge} if judge is not None else {"rules": rules}
    made = flow_chart("c", load or (lambda s: s.set("word", SECRET)), id="a").add_selector(
        "Pick", id="pick", into="out", **how
    )
    for word in ("x", "y"):
        made = made.branch(word, lambda s: s.set("n", 1))
    return done(made.end(), redact)


@place("rows", "crawl", by=({"keys": ["word"]},))
def in_actual_of_a_selection(redact):
    return selecting(redact, ruled(rb.Rule({"word": {"ne": "q"}}, "x")))


@place("rows", "crawl", by=({"keys": ["word"]},))
def in_limit_of_a_selection(redact):
    rules = ruled(rb.Rule({"word": {"ne": SECRET}}, "x"))
    return selecting(redact, rules, load=lambda s: s.set("word", "w"))


@place("error", "rows")
def in_choices_of_a_selector(redact):
    return selecting(redact, judge=lambda s: ["x", SECRET], load=lambda s: None)


@place("rows", by=(TOKEN,))
def in_facts_of_a_selection_judged_apart(redact):
    def judge(scope):
        scope.emit("asked", f"with {SECRET}")
        return rb.select({"token": SECRET}, [rb.Rule({"token": {"ne": "q"}}, "x")])

    return selecting(redact, judge=judge, load=lambda s: None)


@place("rows", "structure")
def in_word_of_a_selector(redact):
    word = f"w-{SECRET}"
    made = flow_chart("c", lambda s: None, id="a").add_selector("Pick", lambda s: word, id="p")
    return done(made.branch(word, lambda s: None).end(), redact)


# -- round and round, piece by piece, on and off -----------------------------------------------


@place("state", "commits", by=(TOKEN,))
def in_state_of_a_loop(redact):
    def dig(scope):
        scope["n"] = scope.get("n", 0) + 1
        scope["token" if scope["n"] == 1 else "copy"] = SECRET

    chart = (
        flow_chart("c", dig, id="dig")
        .add_decider("Enough", lambda s: "no" if s["n"] < 3 else "yes", id="enough")
        .branch("no", lambda s: s.append("seen", f"at {SECRET}"), loop_to="dig")
        .branch("yes", lambda s: None)
        .end()
    )
    return done(chart, redact)


@place("rows", "structure")
def in_target_of_a_loop(redact):
    target = f"dig-{SECRET}"
    chart = flow_chart("c", lambda s: s.set("n", s.get("n", 0) + 1), id=target).add_function(
        "B", lambda s: s.stop() if s["n"] > 1 else None, id="b"
    )
    return done(chart.loop_to(target), redact)


def streamed(redact: Any, *tokens: str, stream: str = "out", load: Any = None) -> Any:
    def say(scope):
        for token in tokens:
            scope.stream(token)

    chart = flow_chart("c", load or (lambda s: None), id="a")
    return done(chart.add_streaming("Say", say, id="say", stream=stream), redact)


@place(by=(TOKEN,))
def in_streamed_tokens(redact):
    half = len(SECRET) // 2
    tokens = ("it is ", SECRET[:half], SECRET[half:], " indeed")
    return streamed(redact, *tokens, load=lambda s: s.set("token", SECRET))


@place("rows")
def in_name_of_a_stream(redact):
    return streamed(redact, "a", stream=f"s-{SECRET}")


@place("rows", by=(TOKEN,))
def in_stream_cut_short(redact):
    def say(scope):
        scope["token"] = SECRET
        scope.stream(f"begun {SECRET}")
        raise ValueError(f"lost {SECRET}")

    chart = flow_chart("c", lambda s: None, id="a").add_streaming("Say", say, id="say")
    return done(chart, redact)


@place("pause", "rows", "html", by=(TOKEN,))
def in_question_of_a_pausable_stage(redact):
    def ask(scope):
        scope["token"] = SECRET
        return {"reason": f"use {SECRET}?", "expects": [SECRET], "more": {"token": SECRET}}

    chart = flow_chart("c", lambda s: None, id="a").add_pausable(
        "Ask", ask, lambda s, answer: None, id="ask"
    )
    return done(chart, redact)


@place("pause", by=(TOKEN,))
def in_data_of_a_question(redact):
    def ask(scope):
        interrupt(scope, "which?", None, {"token": SECRET, "text": f"with {SECRET}"})

    return done(flow_chart("c", ask, id="a"), redact)


def answered(redact: Any, answer: Any, then: Any = None, *, again: Any = ...) -> Any:
    """Run a chart that asks, and go on with an answer."""

    def ask(scope):
        return "what?"

    chart = (
        flow_chart("c", lambda s: s.set("n", 1), id="a")
        .add_pausable("Ask", ask, then or (lambda s, a: s.set("got", a)), id="ask")
        .build()
    )
    paused = done(chart, redact)
    point = json.loads(json.dumps(paused.checkpoint))
    try:
        return chart.resume_sync(point, answer, redact=redact if again is ... else again)
    except Exception as error:
        return error.run


@place("rows", "state", by=({"keys": ["got"]},))
def in_answer(redact):
    return answered(redact, SECRET)


@place("state", by=(TOKEN,))
def in_part_of_an_answer(redact):
    return answered(redact, {"token": SECRET}, lambda s, a: s.set("text", f"with {a['token']}"))


@place("rows", "error", by=(TOKEN,))
def in_error_after_an_answer(redact):
    def then(scope, answer):
        raise ValueError(f"no {answer['token']}")

    return answered(redact, {"token": SECRET}, then)


@place("rows", "state", by=({"keys": ["got"]},))
def in_answer_of_a_run_resumed_without_its_policy(redact):
    """A policy holds for what comes after the pause, whoever goes on."""
    return answered(redact, SECRET, again=None)


@place("rows", "state", by=(TOKEN,))
def in_write_taken_back_before_a_question(redact):
    """Written, asked about, and never written again once the answer is there."""

    def ask(scope):
        if "asked" in scope.args["seen"]:
            scope["text"] = f"was {SECRET}"
            return
        scope["token"] = SECRET
        interrupt(scope, f"use {SECRET}?")

    chart = flow_chart("c", ask, id="a").build()
    paused = done(chart, redact, {"seen": []})
    point = json.loads(json.dumps(paused.checkpoint))

    def gone(scope):
        interrupt(scope, f"use {SECRET}?")
        scope["text"] = f"was {SECRET}"

    other = flow_chart("c", gone, id="a").build()
    return other.resume_sync(point, "yes", redact=redact)


@place("rows", "pause", by=(TOKEN,))
def in_question_of_a_branch(redact):
    def work(scope):
        scope["token"] = SECRET
        interrupt(scope, f"use {SECRET}?")

    return each(redact, [1, 2], work)


@place("slots", by=(TOKEN,))
def in_retry_of_a_branch(redact):
    def work(scope):
        scope["token"] = SECRET
        raise ValueError(f"no {SECRET}")

    chart = flow_chart("look", work, id="look", retry=Retry(2)).build()
    return each(redact, [1], chart=chart)


@place(values=False, by=(None,))
def in_secret_write_before_a_pause(redact):
    """The mark goes with the checkpoint."""

    def ask(scope):
        return "what?"

    def load(scope):
        scope.set("token", SECRET, secret=True)
        scope["copy"] = SECRET

    chart = (
        flow_chart("c", load, id="a")
        .add_pausable("Ask", ask, lambda s, a: s.set("text", f"with {SECRET}"), id="ask")
        .build()
    )
    point = json.loads(json.dumps(chart.run_sync(redact=redact).checkpoint))
    return chart.resume_sync(point, "yes")


@place(values=False, by=(None,))
def in_secret_write_of_an_attempt_that_failed(redact):
    calls = []

    def shaky(scope):
        if not calls:
            calls.append(1)
            scope.set("token", SECRET, secret=True)
            raise OSError(f"refused {SECRET}")

    return done(flow_chart("c", shaky, id="a", retry=Retry(2)), redact)


@place(values=False, by=(None,))
def in_secret_write_of_a_mounted_chart(redact):
    inner = flow_chart("inner", lambda s: s.set("token", SECRET, secret=True), id="in").build()
    return mounted(redact, inner, load=lambda s: None, outputs={"out": "token"})


# -- what leaves -------------------------------------------------------------------------------

_PICTURE = re.compile(r"base64,([A-Za-z0-9+/=]+)")


def strings(value: Any, seen: set[int] | None = None) -> Iterator[str]:
    """Yield every text inside plain data and view objects."""
    seen = set() if seen is None else seen
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes | bytearray):
        yield bytes(value).decode("utf-8", "replace")
    elif isinstance(value, int | float | Decimal | date | np.ndarray | pd.DataFrame):
        yield f"{value}" if not isinstance(value, pd.DataFrame) else value.to_csv()
    elif id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from strings(key, seen)
                yield from strings(item, seen)
        elif isinstance(value, list | tuple | set | frozenset):
            for item in value:
                yield from strings(item, seen)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            for each in dataclasses.fields(value):
                yield from strings(getattr(value, each.name), seen)


def cell(shown: Any) -> Iterator[str]:
    """Yield what a cell shows of something, markup with its entities and pictures resolved."""
    for text in shown._repr_mimebundle_()[0].values():
        yield text if isinstance(text, str) else json.dumps(text)
        if isinstance(text, str):
            yield html.unescape(text)
            for picture in _PICTURE.findall(text):
                yield base64.b64decode(picture).decode("utf-8")


def parts(run: Any) -> Iterator[Any]:
    for index in range(3):
        try:
            yield run.walk.of(index=index)
        except LookupError:
            continue


def refused(run: Any) -> Iterator[str]:
    """Yield what is said to somebody who asks for what is not there."""
    for ask in (
        lambda: run.walk.of("onE"),
        lambda: run.walk.of(index=77),
        lambda: run.slots("each-hunte"),
    ):
        with pytest.raises(LookupError) as caught:
            ask()
        yield str(caught.value)


def kept(run: Any) -> Any:
    store = KeptRecords()
    store.keep(run, tool="t", call_id="c", session_id="s")
    return dict(store.get("c", "s") or {})


def slots_of(run: Any) -> Iterator[Any]:
    for value in [*run.state.values(), run.result]:
        if isinstance(value, Slots):
            yield from (slot.to_dict() for slot in value)
    for fan in run.log.fan_outs():
        for slot in run.slots(fan.stage.id):
            yield slot.to_dict()
            yield slot


def answers(run: Any) -> Iterator[Any]:
    for log in run.commits.whole().logs:
        yield log.state_at(len(log)).to_dict()
        yield [stop.to_dict() for stop in log.stops()]
        yield [
            part for commit in log for c in commit.changes for part in (c.value, c.added, c.before)
        ]
        for key in list(log.state_at(len(log)).state):
            yield [log.births(key).to_dict(), log.causes(key=key).to_dict(), log.value_at(0, key)]


def reasons(run: Any) -> Iterator[Any]:
    for log in run.commits.whole().logs:
        for key in log.raw_source.timeline.state(2**60):
            why = log.why(key)
            yield [why.to_dict(), why.to_frame(), str(why), *cell(why)]
            yield [*map(repr, (*why.nodes, *why.sources)), *(n.value for n in why)]
        for path in ("nothing", "state.x", "results[99]"):
            with pytest.raises(LookupError) as caught:
                log.why(path)
            yield str(caught.value)


#: Doors that are not served, each by a name that says so; nothing behind them is shown by itself.
UNSERVED = {
    "checkpoint",
    "decision_paths",
    "fan_out",
    "log",
    "only",
    "path",
    "policy",
    "secret_texts",
    "unredacted",
}


def crawled(run: Any) -> Iterator[str]:
    """Yield every text that can be reached from a run by its public names."""
    todo, seen = [run], {}
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type) or (callable(one) and not hasattr(one, "view")):
            continue
        seen[id(one)] = one
        yield from strings(one)
        yield repr(one)
        if isinstance(one, Mapping):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            todo += one
        elif hasattr(one, "__iter__") and not isinstance(one, str | bytes | bytearray):
            todo += list(one)
        if not type(one).__module__.startswith("runbook_nb"):
            continue
        for name in dir(one):
            if name.startswith(("_", "raw")) or name in UNSERVED:
                continue
            try:
                found = getattr(one, name)
            except Exception as error:
                yield str(error)
                continue
            todo.append(found)


def flowchart(run: Any, form: str) -> Iterator[str]:
    for shown in (run.walk, run.structure, *parts(run)):
        yield str(getattr(shown.flowchart(), form))


def loaded(run: Any) -> Iterator[Any]:
    """Yield what a run shows that was recorded, written down and read again, also unredacted."""
    again = rb.load_recording(run.recording().to_json())
    for one in (again, again.unredacted()):
        yield from (one.args, one.state, one.result, one.error, one.pause, one.ended_at)
        yield from (str(one), repr(one), one.walk.to_dicts(), one.structure.to_dict())
        yield [commit.to_dict() for commit in one.commits.whole()]
        yield [made.decision.to_dict() for made in one.decisions]
        yield from cell(one)


def written(run: Any) -> Iterator[Any]:
    """Yield the served log in its written form, and what it shows when it was read back."""
    args, state, result = run.raw
    beside = {"args": args, "state": state, "result": result}
    data = write_log(run.log, served_by(run.redactor), beside=beside, strict=False)
    yield json.dumps(data, ensure_ascii=False)
    log, more = read_log_with(json.loads(json.dumps(data)))
    yield dict(more)
    walk = Walk(log, name="", structure=run.structure, redactor=Redactor(None))
    yield walk.to_dicts()
    for made in walk.decisions:
        yield made.decision.to_dict()
    for fan in log.fan_outs():
        yield [slot.to_dict() for slot in Slots(fan)]


OUTLETS: dict[str, Callable[[Any], Any]] = {
    "written log": lambda run: list(written(run)),
    "args": lambda run: run.args,
    "initial": lambda run: run.initial,
    "state": lambda run: [run.state, to_wire(run.state)],
    "result": lambda run: [run.result, to_wire(run.result)],
    "error": lambda run: run.error,
    "pause": lambda run: run.pause,
    "ended_at": lambda run: run.ended_at,
    "structure": lambda run: run.structure.to_dict(),
    "structure card": lambda run: [*cell(run.structure), str(run.structure)],
    "rows": lambda run: run.walk.to_dicts(),
    "frame": lambda run: run.walk.to_frame(),
    "page": lambda run: [run.walk.page(1, 99), run.walk[0:2]],
    "cut": lambda run: project_walk(run.walk, 3),
    "walk card": lambda run: [*cell(run.walk), str(run.walk), run.walk.to_markdown()],
    "part rows": lambda run: [part.to_dicts() for part in parts(run)],
    "part card": lambda run: [text for part in parts(run) for text in cell(part)],
    "commits": lambda run: [commit.to_dict() for commit in run.commits],
    "whole log": lambda run: [run.commits.whole().encoded("delta"), *cell(run.commits.whole())],
    "commit answers": lambda run: list(answers(run)),
    "why": lambda run: list(reasons(run)),
    "commits in deltas": lambda run: run.commits.encoded("delta", provenance=True),
    "commit frame": lambda run: [run.commits.to_frame(), run.commits.whole().to_frame()],
    "commit cards": lambda run: [*cell(run.commits), *cell(run.commits.whole())],
    "output": lambda run: run.output if run.status == "ok" else None,
    "decisions": lambda run: [
        [made.decision.to_dict(), made.decision.sentence, made.subject, made.runtime_stage_id]
        for made in run.decisions
    ],
    "decision cards": lambda run: [
        text for made in run.decisions for text in (*cell(made.decision), str(made.decision))
    ],
    "rule sets": lambda run: [
        text for rules in run.rule_sets() for text in (*cell(rules), repr(rules))
    ],
    "slots": lambda run: list(slots_of(run)),
    "counts": lambda run: [counts.to_dict() for counts in run.fan_outs],
    "recording": lambda run: json.dumps(run.recording().to_dict(), ensure_ascii=False),
    "recording card": lambda run: [*cell(run.recording()), str(run.recording())],
    "saved": lambda run: run.recording().to_json(),
    "loaded": lambda run: list(loaded(run)),
    "walk file": lambda run: zlib.decompress(rb.write_walk(run)).decode(),
    "walk in arrow": lambda run: rb.write_walk(run, "arrow").decode("utf-8", "replace"),
    "walk read back": lambda run: rb.read_walk(rb.write_walk(run)).to_dicts(),
    "kept": kept,
    "text": lambda run: [str(run), repr(run), run.summary()],
    "markdown": lambda run: [run.to_markdown(), run.structure.to_markdown()],
    "html": lambda run: list(cell(run)),
    "svg": lambda run: list(flowchart(run, "svg")),
    "dot": lambda run: list(flowchart(run, "dot")),
    "mermaid": lambda run: list(flowchart(run, "mermaid")),
    "not found": lambda run: list(refused(run)),
    "crawl": lambda run: list(crawled(run)),
}


def found_in(outlet: str, run: Any, secret: str) -> list[str]:
    """Give the texts of an outlet in which the secret stands."""
    spelt = {secret, visible(secret), repr(secret)[1:-1], json.dumps(secret)[1:-1]}
    return [text for text in strings(OUTLETS[outlet](run)) if any(form in text for form in spelt)]


@cache
def ran(name: str, policy: int | None) -> Any:
    return PLACES[name].ran(policy)


@cache
def shown(name: str) -> frozenset[str]:
    """Name the outlets that show a place when nothing is hidden."""
    if not PLACES[name].seen:  # marked while running: there is no run without that
        return frozenset()
    run = ran(name, None)
    return frozenset(outlet for outlet in OUTLETS if found_in(outlet, run, PLACES[name].secret))


@pytest.mark.parametrize("name", [name for name, there in PLACES.items() if there.seen])
def test_without_a_policy_the_secret_is_there(name):
    assert set(PLACES[name].seen) - shown(name) == set()


def test_every_outlet_shows_some_place_when_nothing_is_hidden():
    assert set(OUTLETS) - set().union(*map(shown, PLACES)) == set()


@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, n) for name, there in PLACES.items() for n in range(len(there.policies))],
)
def test_a_secret_that_a_policy_names_is_in_no_outlet(name, policy):
    leaks = {
        outlet: found[:1]
        for outlet in OUTLETS
        if (found := found_in(outlet, ran(name, policy), PLACES[name].secret))
    }
    assert leaks == {}


@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, n) for name, there in PLACES.items() for n in (None, *range(len(there.policies)))],
)
def test_a_served_log_read_back_shows_what_the_served_run_shows(name, policy):
    run = ran(name, policy)
    served = served_by(run.redactor)
    data = write_log(run.log, served, beside={"state": run.raw[1]}, strict=False)
    log, beside = read_log_with(json.loads(json.dumps(data)))
    walk = Walk(log, name="", structure=run.structure, redactor=Redactor(None))
    assert walk.to_dicts() == run.walk.to_dicts()
    assert [repr(made.decision.to_dict()) for made in walk.decisions] == [
        repr(made.decision.to_dict()) for made in run.decisions
    ]
    for mine, yours in zip(log.fan_outs(), run.log.fan_outs(), strict=True):
        assert to_wire([slot.to_dict() for slot in Slots(mine)]) == to_wire(
            [slot.to_dict() for slot in Slots(yours, run.redactor)]
        )
    assert to_wire(beside["state"]) == to_wire(run.state)


@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, n) for name, there in PLACES.items() for n in (None, *range(len(there.policies)))],
)
def test_a_walk_read_back_from_a_file_shows_what_the_served_walk_shows(name, policy):
    run = ran(name, policy)
    for form in ("columns", "arrow"):
        walk = rb.read_walk(rb.write_walk(run, form))
        assert walk.to_dicts() == run.walk.to_dicts()
        assert [repr(made.decision.to_dict()) for made in walk.decisions] == [
            repr(made.decision.to_dict()) for made in run.decisions
        ]
        assert walk.steps_executed == run.steps_executed


# -- strange secrets -----------------------------------------------------------------------------

_LONG = "".join(sha256(bytes([n])).hexdigest() for n in range(11))

#: Secrets with pieces by which what is left of them is told: markup, and what is cut by summaries.
STRANGE = {
    "markup": ("Zq7Kd83hfPqW<&\"'\\|*_`>Yt5Rm2Lx9Bn", ("Zq7Kd83hfPqW", "Yt5Rm2Lx9Bn")),
    "lines": ("KEYBEGINS81\nline two\ttab\x1b[31m\nKEYENDS4471\n", ("KEYBEGINS81", "KEYENDS4471")),
    "long": (_LONG, tuple(_LONG[at : at + 12] for at in range(0, len(_LONG) - 12, 6))),
}

#: Outlets that between them show every place in every form.
FORMS = ("state", "rows", "html", "markdown", "text", "svg", "dot", "recording", "decision cards")


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("name", [name for name, there in PLACES.items() if there.fixed is None])
def test_no_piece_of_a_strange_secret_is_left(name, kind, monkeypatch):
    secret, pieces = STRANGE[kind]
    monkeypatch.setitem(globals(), "SECRET", secret)
    there = PLACES[name]
    for policy in range(len(there.policies)):
        refused, run = None, None
        try:
            run = there.ran(policy)
        except rb.errors.ChartError as error:
            refused = error
        if refused is not None:
            # Some of them can be no id: refused when built, so that no run ever holds it.
            assert "an id may not be blank" in str(refused)
            continue
        for outlet in FORMS:
            for text in strings(OUTLETS[outlet](run)):
                assert not [piece for piece in pieces if piece in text], outlet
