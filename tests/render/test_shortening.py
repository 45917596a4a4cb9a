"""Long outlines: what is told as one line, what goes first, and that all of it is said."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb._view import Badge, Data, Flow, FlowLine
from runbook_nb.render.cells import MAX_STEPS, cell_text
from runbook_nb.render.parts import flow_parts
from runbook_nb.render.shortening import DEEPEST, shortened


def line(name, depth=0, *said, **more):
    return FlowLine(depth=depth, cells=(Data(value=name), *said), **more)


def verdict(word, count, depth=1, **more):
    return FlowLine(depth=depth, cells=(Badge(word=word, role="a"), count), **more)


def told(lines):
    return [(entry.depth, " · ".join(filter(None, map(cell_text, entry.cells)))) for entry in lines]


def names(lines):
    return [cell_text(entry.cells[0]) for entry in lines]


def chart(name, inside, **more):
    """A step with plain ones in it that say something, so that they are no run."""
    return [
        line(name, 0, "chart", **more),
        *(line(f"{name}.{n}", 1, f"{n} times") for n in range(inside)),
    ]


def judging(name, old=3, new=1):
    return [
        line(name, 0, "chart"),
        line("Decide", 1),
        verdict("old", old, 2),
        verdict("new", new, 2),
    ]


# --- what is short stays ------------------------------------------------------------------------


def test_a_short_outline_is_left_alone():
    lines = [line(f"s{n}") for n in range(MAX_STEPS)]
    assert shortened(lines) == (tuple(lines), "")
    assert shortened([]) == ((), "")


# --- runs ---------------------------------------------------------------------------------------


def test_a_run_of_plain_steps_is_its_first_how_many_and_its_last():
    short, note = shortened([line(f"s{n}") for n in range(1000)])
    assert names(short) == ["s0", "998 stages", "s999"]
    assert note == "998 plain stages as 1 line"


def test_branches_side_by_side_are_called_branches():
    lines = [line("Fork"), *(line(f"b{n}", 1, beside=True) for n in range(80))]
    short, _ = shortened(lines)
    assert told(short) == [(0, "Fork"), (1, "b0"), (1, "78 branches"), (1, "b79")]
    assert [entry.beside for entry in short] == [False, True, True, True]


def test_a_step_that_failed_ends_a_run_and_is_kept():
    lines = [line(f"s{n}") for n in range(100)]
    lines[40] = line("s40", state="failed")
    short, note = shortened(lines)
    assert names(short) == ["s0", "38 stages", "s39", "s40", "s41", "57 stages", "s99"]
    assert note == "95 plain stages as 2 lines"


def test_steps_of_another_fate_or_depth_are_another_run():
    lines = [
        *(line(f"a{n}") for n in range(30)),
        *(line(f"b{n}", state="not_reached") for n in range(30)),
        *(line(f"c{n}", 1, state="not_reached") for n in range(30)),
    ]
    short, _ = shortened(lines)
    assert names(short) == [
        *("a0", "28 stages", "a29"),
        *("b0", "27 stages", "b28", "b29"),  # what has steps inside it is no plain one
        *("c0", "28 stages", "c29"),
    ]


# --- what lies inside ---------------------------------------------------------------------------


def test_steps_in_which_nothing_was_decided_are_folded_first():
    lines = [entry for n in range(4) for entry in judging(f"j{n}")]
    lines += [entry for n in range(20) for entry in chart(f"m{n}", 3)]
    short, note = shortened(lines)
    assert len(short) <= MAX_STEPS
    assert ("old") in names(short)
    assert note == "what lies in 20 steps folded"
    assert told(short)[16] == (0, "m0 · chart, 3 lines folded")


def test_what_is_alike_is_folded_alike():
    lines = [entry for n in range(17) for entry in chart(f"m{n}", 3)]
    short, _ = shortened(lines)
    assert len(short) == 17


def test_a_folded_decider_keeps_its_counts():
    lines = [entry for n in range(20) for entry in judging(f"j{n}")]
    short, _ = shortened(lines)
    assert told(short)[:2] == [(0, "j0 · chart"), (1, "Decide · 3 old, 1 new, 2 lines folded")]
    lines = [entry for n in range(50) for entry in judging(f"j{n}")]
    short, _ = shortened(lines)
    assert told(short)[0] == (0, "j0 · chart, 3 old, 1 new, 3 lines folded")


def test_the_causes_of_one_verdict_are_counted_together():
    decider = [
        line("Decide", 0, "60 times"),
        verdict("old", 3),
        FlowLine(depth=1, cells=("", 2, "rule 2")),
        verdict("new", 1),
        line("inner", 2),
    ]
    lines = [entry for n in range(20) for entry in decider]
    short, _ = shortened(lines)
    assert told(short)[0] == (0, "Decide · 60 times, 5 old, 1 new, 4 lines folded")


def test_what_failed_or_waits_inside_is_the_last_to_go_and_is_said():
    broken = [line("b", 0, "chart"), line("x", 1, "1 time", state="failed"), line("y", 1, "z")]
    lines = [entry for n in range(30) for entry in judging(f"j{n}")] + broken
    short, _ = shortened(lines)
    assert "x" in names(short)
    lines = [
        entry
        for n in range(40)
        for state in ("failed", "paused", "stopped")
        for entry in [line(f"b{n}", 0, "chart"), line("x", 1, "1", state=state), line("y", 1, "1")]
    ]
    short, _ = shortened(lines)
    assert {text.partition(" · ")[2] for _, text in told(short)} == {
        "chart, 1 failed inside, 2 lines folded",
        "chart, 1 waiting inside, 2 lines folded",
        "chart, 1 stopped inside, 2 lines folded",
    }


def test_folded_steps_that_follow_each_other_are_told_as_one_too():
    lines = [line("Begin"), *(entry for n in range(300) for entry in chart(f"m{n}", 2))]
    short, note = shortened(lines)
    assert told(short) == [
        (0, "Begin"),
        (0, "299 folded steps"),
        (0, "m299 · chart, 2 lines folded"),
    ]
    assert note == "299 folded steps as 1 line, what lies in 300 steps folded"


def test_what_lies_too_deep_is_folded_however_short_the_outline():
    lines = [line(f"l{depth}", depth) for depth in range(20)]
    short, note = shortened(lines)
    assert [entry.depth for entry in short] == list(range(DEEPEST + 1))
    assert told(short)[-1] == (DEEPEST, f"l{DEEPEST} · 7 lines folded")
    assert note == "what lies in 1 step folded"


# --- the rest -----------------------------------------------------------------------------------


def test_of_what_is_still_too_much_the_beginning_and_what_failed_are_kept():
    lines = [line(f"s{n}", 0, f"{n} times") for n in range(100)]
    lines[90] = line("s90", 0, "once", state="failed")
    short, note = shortened(lines)
    assert len(short) == MAX_STEPS
    assert names(short)[-2:] == ["s58", "s90"]
    assert note == "40 left out"


def test_the_page_says_how_much_of_the_list_it_shows():
    made = flow_parts(Flow(lines=tuple(line(f"s{n}") for n in range(500))), None, main=True)
    assert made["cap"] == "3 of 500 steps shown: 498 plain stages as 1 line"
    assert made["count"] == "500 lines"


def test_shortening_costs_in_proportion_to_the_outline(calls_of):
    def calls(count):
        lines = [entry for n in range(count) for entry in judging(f"j{n}")]
        assert len(shortened(lines)[0]) <= MAX_STEPS
        return calls_of(lambda: shortened(lines))

    assert calls(4000) < 14 * calls(400)


# --- laws ---------------------------------------------------------------------------------------

CELLS = st.one_of(st.just(""), st.integers(0, 5), st.sampled_from(["x", "3 times"]))
FIRST = st.one_of(
    st.builds(Data, value=st.text(max_size=3)),
    st.builds(Badge, word=st.sampled_from(["old", "new"]), role=st.just("a")),
    st.just(""),
)
LINES = st.lists(
    st.builds(
        FlowLine,
        depth=st.integers(-1, 15),
        cells=st.tuples(FIRST, CELLS) | st.tuples(FIRST) | st.just(()),
        state=st.sampled_from(
            ["ran", "ran", "ran", "not_taken", "not_reached", "failed", "paused", "stopped"]
        ),
        beside=st.booleans(),
    ),
    max_size=60,
)


@settings(deadline=None)  # a busy machine is no fault of it
@given(LINES, st.integers(3, 20))
def test_no_outline_is_longer_than_it_may_be_and_no_cut_is_silent(lines, most):
    short, note = shortened(lines, most)
    assert len(short) <= max(most, 0)
    assert bool(note) == (tuple(lines) != short)
    assert (short, note) == shortened(lines, most)


@settings(deadline=None)  # a busy machine is no fault of it
@given(LINES, st.integers(3, 20))
def test_lines_that_are_left_keep_their_order_and_their_names(lines, most):
    short, _ = shortened(lines, most)
    left = iter(lines)
    for entry in short:
        if entry.key or not entry.cells or entry.cells[0].__class__ is not str:
            assert any(whole.cells[:1] == entry.cells[:1] or not whole.cells for whole in left)


@pytest.mark.parametrize("state", ["failed", "paused", "stopped"])
@settings(deadline=None)
@given(st.integers(61, 200), st.data())
def test_a_lone_step_a_reader_looks_for_is_always_there(state, count, data):
    at = data.draw(st.integers(0, count - 1))
    lines = [line(f"s{n}", n % 3, *(["x"] if n % 2 else [])) for n in range(count)]
    lines[at] = line("here", lines[at].depth, "x", state=state)
    short, _ = shortened(lines)
    inside = any("inside" in text for _, text in told(short))
    assert "here" in names(short) or inside
