"""Joining logs: in the order of the parts, the numbers are those of one log that met it all."""

from __future__ import annotations

from array import array
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb.record.joining import Joined
from runbook_nb.record.log import OK, Code, FanOut, Log, StageRef, Track
from runbook_nb.rules.evaluate import judge_facts

STAGE = StageRef("s", "S", "stage")
KINDS = ("stage", "args", "read", "write", "emit")

codes = st.builds(Code, st.sampled_from(KINDS), st.just(STAGE), st.sampled_from(["a", "b", None]))
branches = st.lists(st.lists(codes, min_size=1, max_size=4), max_size=12)


def fan_of(log: Log, tracks: list[list[Code]], first: int = 0) -> FanOut:
    """File branches, each with values that say which they are."""
    fan = FanOut(log, STAGE, list(range(first, first + len(tracks))), cap=99, into="out")
    for index, track in enumerate(tracks):
        filed = Track()
        for place, code in enumerate(track):
            width = log.width(code)
            filed.add(log.number(code), *[(first + index, place)] * width)
        fan.close(index, filed, OK)
    return fan


@given(branches, st.lists(st.integers(0, 12), max_size=4))
def test_parts_of_a_fan_out_make_the_whole_however_it_is_cut(tracks, cuts):
    whole = Log()
    expected = fan_of(whole, tracks)
    places = sorted({0, len(tracks), *(cut for cut in cuts if cut < len(tracks))})
    log = Log()
    fan = FanOut(log, STAGE, list(range(len(tracks))), cap=99, into="out")
    for start, stop in pairwise(places):
        worker = Log()
        part = fan_of(worker, tracks[start:stop], start)
        joined = Joined(log, worker.codes, [shape.codes for shape in worker.shapes])
        fan.take(start, joined.moved(part.filed()))
    assert log.codes == whole.codes
    assert [shape.codes for shape in log.shapes] == [shape.codes for shape in whole.shapes]
    assert fan.shape_numbers() == expected.shape_numbers()
    assert fan.status_numbers() == expected.status_numbers()
    for index in range(len(tracks)):
        width = log.width_of(log.shapes[fan.shape_numbers()[index]].codes)
        (found, at), (told, place) = fan.part(index), expected.part(index)
        assert found[at : at + width] == told[place : place + width]


def test_decision_paths_of_equal_rules_become_one():
    def rules() -> rb.RuleSet:
        return rb.RuleSet("r", "v1", [rb.Rule({"n": {"gt": 1}}, "big")], default="small")

    log = Log()
    mine, _ = judge_facts(rules(), {"n": 2})
    number = log.number(Code("decision", STAGE, None, log.same_path(mine)))
    theirs, _ = judge_facts(rules(), {"n": 2})
    assert theirs is not mine
    joined = Joined(log, [Code("decision", STAGE, None, theirs)], [(0,)])
    assert joined.codes == [number]
    assert log.codes[number].path is mine


def test_fan_outs_inside_branches_move_along_however_deep():
    log = Log()
    log.number(Code("emit", STAGE, "before"))  # so that no number is by chance the same
    log.shape_number((0,))
    worker = Log()
    inmost = fan_of(worker, [[Code("stage", STAGE)], [Code("write", STAGE, "x")]])
    inner = FanOut(worker, STAGE, [0], cap=1, into="in")
    track = Track()
    track.add(worker.number(Code("fan_out", STAGE)), inmost)
    inner.close(0, track, OK)
    outer = FanOut(worker, STAGE, [0, 1], cap=2, into="out")
    track = Track()
    track.add(worker.number(Code("fan_out", STAGE)), inner)
    outer.close(0, track, OK)
    joined = Joined(log, worker.codes, [shape.codes for shape in worker.shapes])
    filed = joined.moved(outer.filed())
    assert list(filed.shapes)[1] == -1  # a branch that never began
    for fan in (inner, inmost):
        assert fan.log is log.tables
    assert [log.codes[c].kind for c in inmost.shape(1).codes] == ["write"]
    assert [log.codes[c].kind for c in inner.shape(0).codes] == ["fan_out"]


def test_a_branch_that_ended_well_may_be_denied_and_no_other():
    log = Log()
    fan = fan_of(log, [[Code("stage", STAGE)]] * 2)
    fan.statuses[1] = 2
    fan.deny(0, "refused")
    fan.deny(1, "refused")
    assert [fan.status(0), fan.status(1)] == ["failed", "failed"]
    assert fan.notes == {0: "refused"}


def test_taking_keeps_what_is_there():
    log = Log()
    fan = FanOut(log, STAGE, [0, 1, 2], cap=3, into="out")
    worker = Log()
    part = fan_of(worker, [[Code("write", STAGE, "a")]], 2)
    joined = Joined(log, worker.codes, [shape.codes for shape in worker.shapes])
    fan.take(2, joined.moved(part.filed()))
    assert list(fan.shape_numbers()) == [-1, -1, 0]
    assert isinstance(fan.shapes, array)
    assert (fan.status(0), fan.status(2)) == ("not_reached", "ok")
