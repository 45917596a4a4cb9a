"""Texts that stand for what was hidden: no two are the same, and they show as what they are."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._frozen import FrozenDict, FrozenList, freeze, handed_out
from runbook_nb._json import to_wire
from runbook_nb.errors import NotCarried
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.log import Code, Log, StageRef
from runbook_nb.record.masked import HiddenBefore, Masked, mask_log, masked
from runbook_nb.record.redact import PLACEHOLDER, Redactor
from runbook_nb.record.slots import Slots


def test_it_is_the_text_it_shows_and_the_same_as_no_other():
    one, two = Masked(PLACEHOLDER), Masked(PLACEHOLDER)
    assert one == PLACEHOLDER == one
    assert one == PLACEHOLDER
    assert one != two
    assert not one != one  # noqa: PLR0124, SIM202 - both operators are meant
    assert one != "other"
    assert hash(one) == hash(PLACEHOLDER)
    assert {one: 1}[PLACEHOLDER] == 1
    assert json.dumps(one) == json.dumps(PLACEHOLDER)


def test_copies_are_itself():
    one = Masked(PLACEHOLDER)
    for made in (copy.copy(one), copy.deepcopy(one), freeze(one), handed_out(one)):
        assert made is one
    assert pickle.loads(pickle.dumps(one)) == PLACEHOLDER  # noqa: S301 - our own


def test_values_that_hold_it_differ_as_they_would_if_they_were_seen():
    one, two = masked(freeze({"a": PLACEHOLDER})), masked(freeze({"a": PLACEHOLDER}))
    assert deep_equal(one, one)
    assert not deep_equal(one, two)
    assert to_wire(one) == {"a": PLACEHOLDER}
    assert type(to_wire(one)["a"]) is str


def test_only_what_holds_the_mark_is_made_anew():
    plain = freeze({"a": [1, {"b": "c"}], "t": (1, "x")})
    assert masked(plain) is plain
    mixed = freeze({"a": ["x", f"by {PLACEHOLDER}"], "b": [1], "t": (PLACEHOLDER, 1)})
    made = masked(mixed)
    assert made == mixed
    assert made["b"] is mixed["b"]
    assert [item.__class__ for item in made["a"]] == [str, Masked]
    assert (made["t"].__class__, made["t"][0].__class__) == (tuple, Masked)
    assert masked("gone", "gone").__class__ is Masked


def test_other_objects_are_left_alone():
    for other in (3, None, b"x", frozenset({PLACEHOLDER}), Slots, 1.5):
        assert masked(other) is other


def test_who_shows_it_shows_a_plain_text():
    shows = HiddenBefore()
    value = masked(freeze({"a": [PLACEHOLDER], "b": 1}))
    for served in (
        shows.scrub(value),
        shows.served(value),
        shows.value("k", value),
        shows.under("k", value),
    ):
        assert served == {"a": [PLACEHOLDER], "b": 1}
        assert served["a"][0].__class__ is str
    assert shows.item("k", masked(PLACEHOLDER)).__class__ is str


def test_who_shows_it_hides_nothing_more():
    shows = HiddenBefore(frozenset({"token"}))
    assert shows.active
    assert not shows.knows_secrets
    assert shows.hides_key("token")
    assert not shows.hides_key("other")
    assert shows.scrub({"token": "seen"}) == {"token": "seen"}
    assert shows.text("seen") == "seen"
    assert shows.texts({"message": "seen"}) == {"message": "seen"}
    assert not HiddenBefore(active=False).active


def test_without_anything_hidden_it_is_like_no_policy():
    value = freeze({"a": 1})
    assert HiddenBefore(active=False).served(value) is value
    assert Redactor(None).served(value) is value


STAGE = StageRef("a", "A", "stage")


def log_of(*codes):
    log = Log()
    log.root.add(log.number(Code("stage", STAGE)))
    for kind, key, value in codes:
        log.root.add(log.number(Code(kind, STAGE, key)), value)
    return log


def test_of_a_log_what_stands_in_states_is_marked():
    log = log_of(
        ("write", "k", PLACEHOLDER),
        ("update", "m", freeze({"x": PLACEHOLDER})),
        ("append", "xs", PLACEHOLDER),
        ("emit", "said", PLACEHOLDER),
        ("write", "n", 3),
        ("result", None, PLACEHOLDER),
    )
    mask_log(log)
    write, update, append, emit, number, result = log.root.values
    assert [write.__class__, update["x"].__class__, append.__class__] == [Masked] * 3
    assert [emit.__class__, number, result.__class__] == [str, 3, str]


def test_branches_and_what_is_mounted_are_marked_too():
    inner = rb.flow_chart("In", lambda s: s.set("k", s.get("k", "") + "!"), id="in").build()
    branch = (
        rb.flow_chart("Each", lambda s: s.set("k", "sesame"), id="each")
        .add_subchart("Sub", inner, id="sub", inputs={"k": "k"})
        .build()
    )
    chart = (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_parallel_for_each(
            "F", id="f", items=lambda s: [1, 2], branch=branch, max_branches=2, into="out"
        )
        .build()
    )
    run = chart.run_sync(redact={"keys": ["k"]})
    read = rb.load_recording(run.recording())
    (fan,) = read.log.fan_outs()
    kinds = [
        value.__class__
        for value in fan.values
        if value == PLACEHOLDER or (isinstance(value, dict) and PLACEHOLDER in value.values())
    ]
    assert Masked in kinds
    assert list(read.commits.whole()) == list(run.commits.whole())
    for one, other in zip(read.commits.whole(), run.commits.whole(), strict=True):
        # Slots are shown by their fan-out; that there is something hidden in them is not told.
        assert set(one.redacted) == set(other.redacted) - {"out"}


def rotating():
    return (
        rb.flow_chart("keys", lambda s: s.set("token", "first-secret"), id="a")
        .add_function("B", lambda s: s.set("token", "second-secret"), id="b")
        .add_function("C", lambda s: s.set("seen", s["token"]), id="c")
        .build()
    )


def test_a_hidden_value_that_was_replaced_is_seen_to_be_replaced():
    run = rotating().run_sync(redact={"keys": ["token"]})
    read = rb.load_recording(run.recording().to_json())
    assert read.hidden
    for one in (run, read):
        assert [commit.trace for commit in one.commits] == [
            (("token", "set"),),
            (("token", "set"),),
            (("seen", "set"),),
        ]
        assert [commit.redacted for commit in one.commits] == [("token",), ("token",), ("seen",)]
        assert one.commits.last_writer("token").runtime_stage_id == "b#1"
        assert one.commits.state_at(1).state == {"token": PLACEHOLDER}
    assert read.why("seen").to_dict() == run.why("seen").to_dict()


def test_what_was_hidden_is_shown_as_hidden_and_cannot_be_unhidden():
    run = rotating().run_sync(redact={"keys": ["token"]})
    read = rb.load_recording(run.recording())
    assert read.state == {"token": PLACEHOLDER, "seen": PLACEHOLDER}
    assert read.unredacted() is read
    assert not read.is_unredacted
    with pytest.raises(NotCarried) as refused:
        read.redaction  # noqa: B018 - asking is what is refused
    assert refused.value.fix
    assert "secret" not in str(read) + repr(read.commits[1].to_dict()) + read.to_markdown()


def merging(*, kept=False):
    """Mount a chart in a branch of a fork: what it gives is hidden, and comes out by name."""

    def begin(scope):
        scope.set("token", "t0p-s3cret", secret=True)
        scope["answer"] = ["old"] if kept else None

    inner = rb.flow_chart("inner", lambda s: s.set("found", [s["token"]]), id="find").build()
    return (
        rb.flow_chart("outer", begin, id="begin")
        .add_fork("Ask", id="ask", merge="keys")
        .branch("a", inner, inputs={"token": "token"}, outputs={"answer": "found"})
        .branch("b", lambda scope: scope.set("other", 1))
        .end()
        .build()
    )


@pytest.mark.parametrize("kept", [False, True])
def test_what_was_merged_from_one_branch_is_not_said_to_come_from_others(kept):
    run = merging(kept=kept).run_sync()
    why, read = run.why("answer"), rb.load_recording(run.recording().to_json()).why("answer")
    assert str(read) == str(why)
    assert "merged from a" in str(read)
    assert " b " not in str(read)


def test_without_a_policy_nothing_is_marked():
    run = rotating().run_sync()
    read = rb.load_recording(run.recording())
    assert not read.hidden
    assert not read.redactor.active
    assert all(value.__class__ is not Masked for value in read.log.root.values)
    assert read.redaction.state == run.redaction.state == "absent"


VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["x", PLACEHOLDER, f"by {PLACEHOLDER}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=10,
)


@given(VALUES)
def test_marking_changes_nothing_that_is_seen(value):
    frozen = freeze(value)
    made = masked(frozen)
    assert made == frozen
    assert to_wire(made) == to_wire(frozen)
    served = HiddenBefore().scrub(made)
    assert served == frozen
    assert deep_equal(served, frozen)
    if PLACEHOLDER in json.dumps(value):
        assert not deep_equal(made, masked(frozen))
    else:
        assert made is frozen


@pytest.mark.parametrize("kind", [FrozenDict, FrozenList])
def test_empty_things_stay(kind):
    empty = kind()
    assert masked(empty) is empty
