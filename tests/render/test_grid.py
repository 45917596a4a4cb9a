from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.render.cells import width
from runbook_nb.render.grid import grid

short = st.text(alphabet="ab1", max_size=6)
rows = st.lists(st.lists(short, min_size=4, max_size=4), min_size=1, max_size=8)


def test_columns_line_up_and_numbers_among_themselves():
    assert grid([["a", "2", "x"], ["bcd", "30", "y"]], 40, right=[1]).lines == [
        "a     2  x",
        "bcd  30  y",
    ]


def test_wide_characters_take_two_columns():
    assert grid([["備份", "x"], ["ab", "y"]], 40).lines == ["備份  x", "ab    y"]


def test_a_remark_flows_over_blank_cells_without_pushing_columns_apart():
    laid = grid([["1", "age_known", "30", "yes"], ["d", "no condition", "", "no"]], 40)
    assert laid.lines == ["1  age_known  30  yes", "d  no condition   no"]


def test_a_remark_that_is_stopped_gets_the_room_it_needs():
    laid = grid([["1", "key", "30", "yes"], ["d", "no condition", "", "no"]], 40)
    assert laid.lines == ["1  key     30    yes", "d  no condition  no"]


def test_a_last_remark_flows_to_the_end_of_the_line():
    laid = grid([["a", "1", "2"], ["b", "called backup_inventory once", ""]], 40)
    assert laid.lines == ["a  1       2", "b  called backup_inventory once"]


def test_a_name_keeps_to_its_column_unless_it_stands_alone():
    laid = grid([["name", "", "x"], ["n", "1", "y"], ["a name alone", "", ""]], 40)
    assert laid.lines == ["name     x", "n     1  y", "a name alone"]


def test_a_lone_name_is_not_cut_however_narrow_its_column():
    assert grid([["a name alone", ""], ["n", "x"]], 12).lines == ["a name alone", "n  x"]


def test_the_widest_column_gives_way_first():
    laid = grid([["cluster-a", "x" * 100, "30"]], 40)
    assert laid.lines == [f"cluster-a  {'x' * 24}…  30"]
    assert laid.columns == 3


def test_columns_too_narrow_to_read_are_left_out_and_counted():
    laid = grid([["abcdefgh"] * 30], 40)
    assert laid.columns == 5
    assert width(laid.lines[0]) <= 40


def test_a_blank_column_takes_no_room():
    assert grid([["a", "", "b"], ["c", "", "d"]], 40).lines == ["a  b", "c  d"]


def test_no_rows_make_no_lines():
    assert grid([], 40).lines == []
    assert grid([[], ["a"]], 40).lines == ["", "a"]


def test_names_are_moved_in_by_depth_and_share_one_column():
    laid = grid([["a", "1"], ["b", "2"]], 40, indents=[0, 4], first_gap=3)
    assert laid.lines == ["a       1", "    b   2"]


@given(rows)
def test_every_cell_is_found_in_its_line_in_order_when_all_fit(cells):
    for row, line in zip(cells, grid(cells, 100).lines, strict=True):
        assert line.split() == [cell for cell in row if cell]


@given(rows)
def test_cells_of_a_column_start_in_the_same_place_when_nothing_flows(cells):
    laid = grid(cells, 100)
    for row, line in zip(cells, laid.lines, strict=True):
        for cell, start in zip(row, laid.starts, strict=True):
            assert line[start : start + len(cell)] == cell


@given(
    st.lists(st.lists(st.text(max_size=60), max_size=25), max_size=6),
    st.sets(st.integers(0, 24)),
    st.integers(40, 120),
    st.data(),
)
def test_no_line_is_wider_than_asked(cells, right, columns, drawn):
    indents = drawn.draw(
        st.lists(st.integers(0, 24), min_size=len(cells), max_size=len(cells)), label="indents"
    )
    for line in grid(cells, columns, right=right, indents=indents).lines:
        assert width(line) <= columns
