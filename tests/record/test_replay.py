"""Tracks played again: timelines, steps, levels, and where values came about."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._frozen import FrozenDict, FrozenList, freeze
from runbook_nb._text import MISSING
from runbook_nb.record.bundles import deep_equal
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, Code, FanOut, Log, StageRef, Track
from runbook_nb.record.origins import Origins, same_held, same_inside
from runbook_nb.record.replay import Past, Prefix, Replayed, Timeline, grown, value_of_held
from runbook_nb.record.shapes import apply_change

A, B = StageRef("a", "A", "stage"), StageRef("b", "B", "stage")


class Writer:
    """Writes codes on a track, as the engine does."""

    def __init__(self, log: Log | None = None, track: Track | None = None) -> None:
        self.log = log or Log()
        self.track = track or self.log.root

    def __call__(self, kind: str, ref: StageRef, key: str | None = None, *values: Any) -> None:
        self.track.add(self.log.number(Code(kind, ref, key)), *map(freeze, values))

    def played(self, **more: Any) -> Replayed:
        return Replayed(self.log, self.track.codes, self.track.values, **more)


# -- lists that grow ---------------------------------------------------------------------------


def test_a_list_that_grows_is_kept_once():
    first = grown(MISSING, [1])
    second = grown(first, [2, 3])
    assert first.items is second.items
    assert (first.value, second.value) == ([1], [1, 2, 3])
    # Growing from an earlier length must not change what came after it.
    other = grown(first, ["x"])
    assert other.items is not first.items
    assert (second.value, other.value) == ([1, 2, 3], [1, "x"])
    assert grown(FrozenList([7]), [8]).value == [7, 8]
    assert grown("no list", [8]).value == [8]
    assert isinstance(first.value, FrozenList)


# -- timelines ---------------------------------------------------------------------------------


def test_a_timeline_knows_every_version_and_the_order_keys_came_in():
    line = Timeline({"z": 0})
    line.put("a", 3, 1)
    line.put("b", 4, 2)
    line.put("a", 6, MISSING)
    line.put("a", 8, 3)
    line.put("z", 9, 1)
    assert [line.at("a", time) for time in (2, 3, 5, 6, 7, 8)] == [
        MISSING,
        1,
        1,
        MISSING,
        MISSING,
        3,
    ]
    assert [line.version("a", time) for time in (2, 3, 6, 99)] == [-1, 0, 1, 2]
    assert (line.now("a"), line.now("never"), line.first("z")) == (3, MISSING, 0)
    assert (line.versions("a"), line.versions("never"), line.time("a", 2)) == (3, 0, 8)
    assert [list(line.state(time)) for time in (0, 5, 7, 9)] == [
        ["z"],
        ["z", "a", "b"],
        ["z", "b"],
        ["z", "b", "a"],
    ]
    assert line.keys == ["z", "a", "b"]


def test_a_timeline_may_begin_in_the_past_of_another():
    outer = Timeline({"a": 1})
    outer.put("b", 5, 2)
    outer.put("a", 9, 3)
    inner = Timeline(Past(outer, 6))
    assert inner.state(0) == {"a": 1, "b": 2}
    inner.put("c", 0, 4)
    inner.put("a", 1, MISSING)
    assert inner.state(1) == {"b": 2, "c": 4}
    assert inner.keys == ["a", "b", "c"]
    assert outer.state(9) == {"a": 3, "b": 2}


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("abl"), st.integers(0, 2)),
        st.tuples(st.just("append"), st.just("l"), st.integers(0, 2)),
        st.tuples(st.just("update"), st.sampled_from("am"), st.just({"x": 1})),
        st.tuples(st.just("delete"), st.sampled_from("ablm"), st.none()),
    ),
    max_size=12,
)


@given(CHANGES, st.integers(0, 12))
def test_playing_again_gives_every_state_that_copying_would_have_kept(changes, upto):
    write = Writer()
    write("stage", A)
    state, states = {}, [{}]
    for kind, key, value in changes:
        values = () if kind == "delete" else (value,)
        write(kind, A, key, *values)
        apply_change(state, Code(kind, A, key), freeze(value))
        states.append(dict(state))
    line = write.played().top.timeline
    for time, wanted in enumerate(states):
        found = {key: value_of_held(held) for key, held in line.state(time).items()}
        assert deep_equal(found, wanted)
        assert list(found) == list(wanted)


# -- steps and levels --------------------------------------------------------------------------

MOUNT, INNER = StageRef("m", "M", "subchart"), StageRef("i", "I", "stage", "m/")


def test_a_mounted_chart_has_a_level_of_its_own_in_its_parents_track():
    write = Writer()
    write("stage", A)
    write("write", A, "x", 1)
    write("stage", MOUNT)
    write("read", MOUNT, "x")
    write("enter", MOUNT, None, {"v": 1})
    write("received", MOUNT, "v")
    write("stage", INNER)
    write("write", INNER, "x", 2)
    write("leave", MOUNT, "ok")
    write("write", MOUNT, "r", 2)
    write("stage", B)
    write("delete", B, "x")
    track = write.played(prefix="p/", template="t/", first=5)
    assert [track.runtime_id(step) for step in track.steps] == [
        "p/a#5",
        "p/m#6",
        "p/m/i#7",
        "p/b#8",
    ]
    assert [track.key(step) for step in track.steps] == ["t/a", "t/m", "t/m/i", "t/b"]
    assert [list(step.own) for step in track.steps] == [[1], [3, 4, 5, 8, 9], [7], [11]]
    top, inner = track.levels
    assert top.timeline.state(99) == {"r": 2}
    assert inner.timeline.state(99) == {"v": 1, "x": 2}
    assert (inner.opened, inner.closed, inner.opener) == (4, 8, track.steps[1])
    assert track.steps[1].entered is inner
    assert [step.number for step in top.steps] == [0, 1, 3]
    assert track.step_at(9) is track.steps[1]
    assert track.steps[3].before is track.steps[1]
    assert track.steps[0].before is None
    assert [code.kind for _, code in track.own(track.steps[2])] == ["write"]
    assert (track.value(4), track.value(3)) == ({"v": 1}, None)


@pytest.mark.parametrize(
    ("ending", "statuses"),
    [
        ([("leave", MOUNT, "ok")], ["ok", "ok"]),
        ([("leave", MOUNT, "stopped")], ["ok", "ok"]),
        ([("error", INNER, None, {}), ("leave", MOUNT, "failed")], ["failed", "failed"]),
        ([("leave", MOUNT, "cancelled")], ["failed", "ok"]),
        ([("pause", INNER, None, {})], ["paused", "paused"]),
        ([("error", INNER, None, {})], ["failed", "failed"]),
        ([], ["paused", "ok"]),
    ],
)
def test_a_step_says_how_it_ended(ending, statuses):
    write = Writer()
    write("stage", MOUNT)
    write("enter", MOUNT, None, {})
    write("stage", INNER)
    for kind, ref, *rest in ending:
        write(kind, ref, *rest)
    assert [step.status for step in write.played().steps] == statuses


def looping(passes):
    write = Writer()
    write("stage", A)
    for n in range(passes):
        write("stage", B)
        write("stage", StageRef("c", "C", "stage"))
        if n < passes - 1:
            write("loop", StageRef("c", "C", "stage"), "b", n + 1)
    write("stage", StageRef("d", "D", "stage"))
    return write.played()


def test_steps_of_a_loop_know_who_went_back():
    track = looping(3)
    jumps = [None if s.jump is None else s.jump.number for s in track.steps]
    assert [step.ref.id for step in track.steps] == list("abcbcbcd")
    assert jumps == [None, None, None, 2, 2, 4, 4, None]


def test_of_loops_in_one_another_the_last_jump_counts():
    write = Writer()
    inner, outer = StageRef("i", "I", "stage"), StageRef("o", "O", "stage")
    for ref, target in ((A, None), (inner, "i"), (inner, None), (outer, "a"), (A, None)):
        write("stage", ref)
        if target is not None:
            write("loop", ref, target, 1)
    write("stage", inner)
    track = write.played()
    assert [None if s.jump is None else s.jump.number for s in track.steps] == [
        *(None, None, 1, None, 3, 3)
    ]


# -- branches ----------------------------------------------------------------------------------


def branching(form="fan_out", statuses=(OK, FAILED), path=""):
    write = Writer()
    fan_ref = StageRef("f", "F", form, path)
    write("stage", StageRef("a", "A", "stage", path))
    write("write", StageRef("a", "A", "stage", path), "x", [1])
    write("stage", fan_ref)
    items = freeze(["p", "q", "r"])
    bases = array("q", [2, 0, 0])
    fan = FanOut(write.log, fan_ref, items, cap=9, into="o", form=form, bases=bases)
    write.track.add(write.log.number(Code("fan_out", fan_ref)), fan)
    child = StageRef("k", "K", "stage", "" if form == "fan_out" else path)
    for index, status in enumerate(statuses):
        inner = Writer(write.log, Track())
        inner("stage", child)
        inner("append", child, "l", index) if form == "fan_out" else inner(
            "write", child, "x", [index]
        )
        if status == NOT_REACHED:
            inner("pause", child, None, {})
        inner("result", fan_ref, None, index)
        fan.close(index, inner.track, status)
    return write.played(path=path)


def test_branches_of_a_fan_out_begin_with_nothing():
    track = branching()
    (one,) = track.fans
    branches = list(track.branches(one))
    assert [b.runtime_id(b.steps[0]) for b in branches] == ["f~0/k#2", "f~1/k#0"]
    assert [b.key(b.steps[0]) for b in branches] == ["f/k", "f/k"]
    assert [value_of_held(b.top.timeline.now("l")) for b in branches] == [[0], [1]]
    assert [b.value(b.result) for b in branches] == [0, 1]
    assert track.branch(one, 2) is None
    assert track.branch(one, 0) is branches[0]
    assert branches[1].parent is track
    assert track.fan_of(one.step) is one
    assert track.fan_of(track.steps[0]) is None
    assert [level.path for level in branches[0].levels] == [""]


def test_children_of_a_fork_begin_with_what_it_found():
    track = branching("fork", path="m/")
    (one,) = track.fans
    first, second = track.branches(one)
    assert first.top.path == "m/"
    assert first.runtime_id(first.steps[0]) == "m/k#2"
    assert first.top.timeline.first("x") == [1]
    assert first.top.timeline.now("x") == [0]
    assert second.top.timeline.state(0) == {"x": [1]}
    assert [level.path for level in first.levels] == ["m/"]


def test_a_fan_out_waits_while_a_branch_of_it_waits():
    assert branching(statuses=(OK, NOT_REACHED)).steps[1].status == "paused"
    assert branching(statuses=(OK, OK)).steps[1].status == "ok"


# -- origins -----------------------------------------------------------------------------------


def origins_of(changes, base=FrozenDict()):  # noqa: B008
    """Make a timeline of (step, key, value); the times are the places of the changes."""
    line = Timeline(base)
    for time, (_, key, value) in enumerate(changes):
        line.put(key, time, value if value is MISSING else freeze(value))
    return Origins(line, [step for step, _, _ in changes].__getitem__)


def test_the_origin_is_the_last_step_that_changed_the_value():
    origins = origins_of(
        [(0, "a", 1), (1, "a", 1), (2, "a", 5), (2, "a", 1), (3, "a", 2), (4, "a", 2)]
    )
    assert [origins.origin("a", (), version) for version in range(-1, 6)] == [
        *(-1, 0, 0, 2, 0, 4, 4)
    ]
    assert origins.first_of_step("a", 3) == 2


def test_what_the_base_held_comes_from_the_base():
    origins = origins_of([(0, "a", 1), (1, "a", MISSING), (2, "a", 1)], {"a": 1})
    assert [origins.origin("a", (), version) for version in range(3)] == [-1, 1, 2]


def test_each_path_has_an_origin_of_its_own():
    origins = origins_of(
        [
            (0, "a", {"x": [1, 2], "y": 1}),
            (1, "a", {"x": [1, 2], "y": 2}),
            (2, "a", {"x": [1, 3], "y": 2}),
        ]
    )
    assert origins.origin("a", ("y",), 2) == 1
    assert origins.origin("a", ("x",), 2) == 2
    assert origins.origin("a", ("x", 0), 2) == 0
    assert origins.origin("a", ("x", 1), 2) == 2
    assert origins.origin("a", ("x", 9), 2) == -1


def test_the_write_is_the_one_of_its_step_after_which_nothing_changed_there():
    origins = origins_of(
        [(0, "a", {"x": 1}), (1, "a", {"x": 2}), (1, "a", {"x": 2, "y": 1}), (1, "a", {"x": 2})]
    )
    assert origins.origin("a", ("x",), 3) == 3
    assert origins.written("a", ("x",), 3) == 1


def test_what_a_timeline_holds_is_compared_without_making_lists():
    items = [1, 2, 3]
    assert same_held(Prefix(items, 2), Prefix(items, 2))
    assert not same_held(Prefix(items, 2), Prefix(items, 3))
    assert same_held(Prefix(items, 2), Prefix([1, 2], 2))
    assert same_held(Prefix(items, 2), FrozenList([1, 2]))
    assert not same_held(MISSING, FrozenList())
    assert same_inside(Prefix(items, 2), Prefix(items, 3), (1,))
    assert not same_inside(Prefix(items, 2), Prefix(items, 3), (2,))
