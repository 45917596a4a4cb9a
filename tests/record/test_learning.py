"""What a policy learns: texts under hidden names, and objects that carry secrets about."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb._frozen import freeze
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.redact import PLACEHOLDER, Redact, Redactor

Pair = namedtuple("Pair", "token n")


@dataclass
class Card:
    token: str = "carded-1"
    other: str = "public-1"


def learnt(value, *, any_item=False, **policy):
    redactor = Redactor(Redact(**policy))
    lesson = redactor.lesson()
    lesson.take(value, redactor.paths, any_item=any_item)
    return lesson


def taught(value, **policy):
    redactor = Redactor(Redact(**policy))
    lesson = redactor.lesson()
    lesson.take(value, redactor.paths)
    return redactor.taught(lesson)


# -- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ({"token": "longer"}, {"longer"}),
        ({"token": "short"}, set()),
        ({"token": 1234567}, {"1234567"}),
        ({"token": True}, set()),
        ({"token": b"in bytes"}, {"in bytes"}),
        ({"token": date(1984, 3, 7)}, {"1984-03-07"}),
        (
            {"token": {"a": ["nested-1", ("nested-2",)], "b": {"nested-3"}}},
            {"nested-1", "nested-2"},
        ),
        ({"a": [{"token": "deep-one"}]}, {"deep-one"}),
        ({"pair": Pair("paired-1", "n")}, {"paired-1"}),
        ({"card": Card()}, {"carded-1"}),
        ({"token": Card()}, {"carded-1", "public-1"}),
        ({"rows": pd.DataFrame({"token": ["framed-1"], "n": ["public-2"]})}, {"framed-1"}),
        ({"token": np.array(["arrayed-1"])}, {"arrayed-1"}),
        ({"conn.token": "dotted-1"}, {"dotted-1"}),
        ({"other": "public-3"}, set()),
        ("token", set()),
    ],
)
def test_texts_under_a_hidden_name_are_learnt(value, texts):
    found = learnt(value, keys=["token"]).texts
    assert texts <= found
    assert not {"public-2", "public-3"} & found


def test_an_item_that_stands_for_all_is_learnt_under_any_number():
    value = {"rows": ({"key": "numbered"},)}
    assert learnt(value, paths=["rows[7].key"]).texts == set()
    assert learnt(value, paths=["rows[7].key"], any_item=True).texts == {"numbered"}


def test_a_decision_in_the_state_gives_away_what_it_was_made_of():
    made = rb.decide({"token": "judged-1", "n": 1}, [rb.Rule({"token": {"ne": "x"}}, "a")], "b")
    assert learnt({"made": made}, keys=["token"]).texts == {"judged-1"}
    assert learnt({"made": made}, paths=["token"]).texts == {"judged-1"}
    assert learnt({"made": made}, keys=["n"]).texts == set()


def test_a_value_too_deep_is_let_go():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert learnt({"token": deep}, keys=["token"]).texts == set()


def test_a_whole_value_may_be_learnt_as_hidden():
    lesson = Redactor(Redact()).lesson()
    lesson.hide({"a": ["hidden-1"]})
    assert lesson.texts == {"hidden-1"}


# -- objects that travel -----------------------------------------------------------------------


def test_a_hidden_object_is_hidden_under_any_name_however_short_its_texts():
    conn = freeze({"pin": "p1", "host": "h"})
    redactor = taught({"conn": conn}, keys=["conn"])
    assert redactor.served({"copy": conn}) == {"copy": PLACEHOLDER}
    assert redactor.served({"deep": [conn]}) == {"deep": [PLACEHOLDER]}


def test_a_part_of_a_hidden_object_is_hidden_too():
    conn = freeze({"inner": {"pin": "p1"}, "list": ["p2"]})
    redactor = taught({"conn": conn}, keys=["conn"])
    assert redactor.served({"a": conn["inner"], "b": conn["list"]}) == {
        "a": PLACEHOLDER,
        "b": PLACEHOLDER,
    }


def test_a_path_travels_with_the_object_it_leads_into():
    rows = freeze([{"key": "k1", "n": 1}, {"key": "k2", "n": 2}])
    redactor = taught({"rows": rows}, paths=["rows[*].key"])
    assert redactor.served({"first": rows[0]}) == {"first": {"key": PLACEHOLDER, "n": 1}}
    assert redactor.served({"again": rows})["again"][1] == {"key": PLACEHOLDER, "n": 2}


def test_an_equal_object_is_another_one():
    redactor = taught({"conn": freeze({"pin": "p1"})}, keys=["conn"])
    assert redactor.served({"other": freeze({"pin": "p1"})}) == {"other": {"pin": "p1"}}


def test_nothing_that_everybody_shares_is_carried():
    redactor = taught({"token": freeze({"a": (), "b": None, "c": True, "d": "s"})}, keys=["token"])
    assert redactor.served({"x": (), "y": None, "z": "s"}) == {"x": (), "y": None, "z": "s"}


def test_what_one_path_hides_another_does_not_show():
    conn = freeze({"pin": "p1", "user": "u1", "host": "h"})
    redactor = taught({"a": conn, "b": conn}, paths=["a.pin", "b.user"])
    assert redactor.served({"c": conn}) == {
        "c": {"pin": PLACEHOLDER, "user": PLACEHOLDER, "host": "h"}
    }


# -- in a run ----------------------------------------------------------------------------------


def test_short_secrets_are_hidden_along_the_way_of_the_object_that_holds_them():
    """The same object goes from the input through state, item, branch and slot."""
    each = flow_chart("look", lambda s: s.set("kept", s.args["item"]), id="look").build()

    def load(scope):
        scope["copy"] = scope.args["conn"]
        scope["rows"] = [scope.args["conn"], {"pin": "q2"}]

    run = (
        flow_chart("c", load, id="load")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: s["rows"], branch=each, max_branches=5, into="out"
        )
        .build()
        .run_sync({"conn": {"pin": "p1", "host": "h"}}, redact={"paths": ["conn.pin"]})
    )
    hidden = {"pin": PLACEHOLDER, "host": "h"}
    assert run.args == {"conn": hidden}
    assert run.state["copy"] == hidden
    assert run.state["rows"] == [hidden, {"pin": "q2"}]
    assert [slot.item for slot in run.slots("each")] == [hidden, {"pin": "q2"}]
    assert run.slots("each")[0].value == {"kept": hidden}
    assert run.commits[0].values["rows"] == [hidden, {"pin": "q2"}]


def test_what_is_learnt_later_holds_for_views_asked_for_before():
    run = flow_chart("c", lambda s: s.set("text", "with later-1"), id="a").build()
    run = run.run_sync(redact={"keys": ["token"]})
    assert run.state == {"text": "with later-1"}
    assert run.walk is run.walk
    lesson = run.redactor.lesson()
    lesson.take({"token": "later-1"}, ())
    run.learn(lesson)
    assert run.state == {"text": "with [REDACTED]"}


@pytest.mark.parametrize("hold", [list, pd.DataFrame, lambda rows: rows * 100])
@pytest.mark.parametrize("path", ["rows[*].cfg.pin", "rows[*].cfg", "rows.cfg.pin", "rows[*]"])
def test_a_path_leads_into_rows_that_are_made_when_looked_at(hold, path):
    rows = [
        {"host": "a", "days": 9, "cfg": {"pin": "s3cret-pin", "x": 1}},
        {"host": "b", "days": 2, "cfg": {"pin": "s3cret-pan", "x": 1}},
    ]
    asks = rb.RuleSet("r", "1", [rb.Rule({"cfg.pin": {"eq": "no"}}, "old")], "fresh")
    answer = rb.triage(hold(rows), asks, subject="days", source="two", redact={"paths": [path]})
    shown = [
        answer.to_json(dossier=True),
        answer.to_markdown(),
        str([row.to_dict() for row in answer.walk.rows]),
        str(answer.why(row=0)),
        str(answer.run.recording().to_json()),
    ]
    assert not [text for text in shown if "s3cret" in text]
