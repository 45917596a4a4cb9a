"""What a fan-out answers, held against its branches looked at one by one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.record.columns import fan_columns, root_columns
from runbook_nb.record.log import FAILED, NOT_REACHED, OK, Code, FanOut, Log, StageRef, Track

REF = StageRef("each", "Each", "fan_out")

#: Of each branch: the keys it wrote, and how it ended; None for one that never began.
BRANCHES = st.lists(
    st.none()
    | st.tuples(
        st.sampled_from(["", "a", "ab", "ba", "aa"]), st.sampled_from([NOT_REACHED, OK, FAILED])
    ),
    max_size=12,
)


def filed(branches, order=None):
    """File branches, each value being (index, place)."""
    log = Log()
    fan = FanOut(log, REF, list(range(len(branches))), cap=99, into=None)
    for index in order if order is not None else range(len(branches)):
        if branches[index] is None:
            continue
        keys, status = branches[index]
        track = Track()
        for place, key in enumerate(keys):
            track.add(log.number(Code("write", REF, key)), (index, place))
        fan.close(index, track, status)
    return log, fan


@given(BRANCHES)
def test_every_answer_is_that_of_the_branches_one_by_one(branches):
    _log, fan = filed(branches)
    began = {i: b for i, b in enumerate(branches) if b is not None}
    shape_of = {i: fan.shape(i).number for i in began}
    assert [index for index, _ in fan.begun()] == list(began)
    assert fan.begun_count == len(began)
    assert list(fan.shape_numbers()) == [shape_of.get(i, -1) for i in range(len(fan))]
    assert fan.shape_counts() == Counter(shape_of.values())
    assert list(fan.shape_counts()) == list(dict.fromkeys(shape_of.values()))
    assert fan.of_shapes() == {
        n: [i for i in began if shape_of[i] == n] for n in fan.shape_counts()
    }
    assert fan.shape_ends() == {n: (x[0], x[-1]) for n, x in fan.of_shapes().items()}
    assert list(fan.shape_ends()) == list(fan.shape_counts())
    statuses = [NOT_REACHED if b is None else b[1] for b in branches]
    assert list(fan.status_numbers()) == statuses
    assert [fan.status_number(i) for i in range(len(fan))] == statuses
    pairs = {i: (shape_of[i], statuses[i]) for i in began}
    assert fan.alike_counts() == Counter(pairs.values())
    assert {k: list(v) for k, v in fan.alike().items()} == {
        pair: [i for i in began if pairs[i] == pair] for pair in dict.fromkeys(pairs.values())
    }
    for status in (NOT_REACHED, OK, FAILED):
        assert fan.status_count(status) == statuses.count(status)
        assert list(fan.ended_as(status)) == [i for i, s in enumerate(statuses) if s == status]
    assert list(fan.ended_as(OK, FAILED)) == [i for i, s in enumerate(statuses) if s]
    assert fan.value_count == sum(len(keys) for keys, _ in began.values())


@given(st.data(), BRANCHES)
def test_values_are_found_whatever_order_branches_ended_in(data, branches):
    order = data.draw(st.permutations(range(len(branches))))
    log, fan = filed(branches, order)
    for index, shape in fan.begun():
        values, offset = fan.part(index)
        width = log.width_of(shape.codes)
        assert list(values[offset : offset + width]) == [(index, n) for n in range(width)]
    for column in fan_columns(log, fan):
        assert list(column.held_in(fan)) == [(index, column.at) for index in column.places]


@given(BRANCHES)
def test_branches_filed_at_once_are_those_filed_one_by_one(branches):
    log, fan = filed(branches)
    again = FanOut(log, REF, fan.items, cap=99, into=None)
    again.refile(list(fan.status_numbers()), list(fan.shape_numbers()))
    columns = [(c.at, c.places, c.held_in(fan)) for c in fan_columns(log, fan)]
    again.fill(columns)
    assert again.value_count == fan.value_count
    for index, _ in fan.begun():
        assert again.reopen(index).codes == fan.reopen(index).codes
        assert again.reopen(index).values == fan.reopen(index).values
        assert again.status(index) == fan.status(index)


def test_values_are_put_in_the_places_of_a_column():
    log, fan = filed([("ab", OK), None, ("ab", FAILED)])
    _, second = fan_columns(log, fan)
    second.put_into(fan, ["x", "y"])
    assert [fan.reopen(index).values for index in (0, 2)] == [[(0, 0), "x"], [(2, 0), "y"]]
    with pytest.raises(ValueError, match="shorter"):
        second.put_into(fan, ["x"])


def test_values_of_a_track_are_put_in_the_places_of_a_column():
    log = Log()
    for value in (1, 2):
        log.root.add(log.number(Code("write", REF, "a")), value)
    (column,) = root_columns(log, log.root.codes)
    column.put_into(log.root, [value * 10 for value in column.held_in(log.root)])
    assert log.root.values == [10, 20]
