from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._display import Renderable
from runbook_nb._view import (
    Badge,
    Card,
    Column,
    Data,
    Detail,
    Fact,
    Facts,
    Flow,
    FlowLine,
    Group,
    Prose,
    Section,
    Table,
)
from runbook_nb.render.cells import MAX_STEPS, width
from runbook_nb.render.text import render_line, render_text
from runbook_nb.settings import settings


def card(*parts, **fields):
    sections = (Section(label="Part", parts=parts),)
    return Card(**{"kind": "Envelope", "name": "x", "sections": sections, **fields})


def body(*parts, **fields):
    return render_text(card(*parts, **fields)).split("\n")[1:]


def column(**fields):
    return Column(**{"head": "n", **fields})


def table(*rows, **fields):
    columns = (column(),) * len(rows[0]) if rows else ()
    return Table(**{"columns": columns, "rows": rows, "total": len(rows), **fields})


# --- the first line ----------------------------------------------------------------------------


def test_the_first_line_says_kind_name_qualifiers_and_answer():
    shown = Card(
        kind="Run",
        name="backups",
        state="failed at collect",
        qualifiers=("v1", "frozen"),
        headline="3 rows",
        badges=(Badge(word="declined", count=3),),
        tail="no answer",
    )
    assert render_line(shown) == (
        "Run backups failed at collect · v1 · frozen · 3 rows (3 declined), no answer"
    )


def test_what_a_card_does_not_say_leaves_no_mark():
    assert render_line(Card(kind="Toolbox", name="")) == "Toolbox"


def test_qualifiers_that_do_not_fit_move_down_in_full_words():
    shown = Card(
        kind="Envelope",
        name="x",
        qualifiers=("v1",),
        eyebrow=("rules posture v1",),
        headline="h" * 87,
    )
    assert render_text(shown).split("\n") == [f"Envelope x · {'h' * 87}", "rules posture v1"]


def test_qualifiers_stay_up_to_the_last_column():
    fits = Card(kind="Envelope", name="x", qualifiers=("v1",), headline="h" * 82)
    assert width(render_line(fits)) == 100
    assert render_text(fits) == render_line(fits)
    over = Card(kind="Envelope", name="x", qualifiers=("v1",), headline="h" * 83)
    assert render_text(over) == f"Envelope x · {'h' * 83}\nv1"


def test_a_long_name_is_cut_before_the_answer_is():
    shown = Card(
        kind="Envelope", name="n" * 300, headline="3 rows", badges=(Badge(word="a", count=3),)
    )
    line = render_line(shown)
    assert width(line) == 100
    assert line.endswith("n… · 3 rows (3 a)")


def test_an_id_keeps_most_of_itself_when_the_answer_is_long_too():
    name = "arn:aws:rds:us-east-2:310042817756:db:ord-7f3a"
    shown = Card(kind="Decision", name=name, headline="declined: " + "because " * 20)
    assert render_line(shown).startswith(f"Decision {name} · declined: because")
    assert render_line(shown).endswith("…")


def test_counts_move_down_before_the_answer_is_cut():
    counts = tuple(Badge(word=f"verdict-number-{n}", count=n) for n in range(8))
    shown = render_text(Card(kind="Envelope", name="x", headline="36 rows", badges=counts))
    first, *rest = shown.split("\n")
    assert first == "Envelope x · 36 rows"
    assert " · ".join(rest) == " · ".join(f"{n} verdict-number-{n}" for n in range(8))


def test_an_answer_that_is_cut_is_said_in_full_below():
    answer = "the rules could not be read " * 6
    first, *rest = render_text(Card(kind="Decision", name="x", headline=answer)).split("\n")
    assert width(first) <= 100
    assert first.endswith("…")
    assert " ".join(rest).split() == answer.split()


# --- tables ------------------------------------------------------------------------------------


def test_columns_are_bare_labelled_joined_or_left_out():
    columns = (
        column(head="verdict"),
        column(head=Data(value="age"), in_text="labelled"),
        column(head="key"),
        column(head="actual", in_text="joined", align="right"),
        column(head="why", in_text="hidden"),
    )
    row = ("declined", Data(value=None), "age_days", Data(value=0), "secret")
    assert body(table(row, columns=columns)) == ["  declined  age —  age_days 0"]


def test_a_blank_cell_has_no_label():
    columns = (column(), column(head="age", in_text="labelled"))
    assert body(table(("a", ""), columns=columns)) == ["  a"]


def test_numbers_stand_right_among_themselves():
    columns = (column(), column(align="right"), column())
    rows = (("a", 7, "x"), ("b", 282, "y"), ("c", None, "z"))
    assert body(table(*rows, columns=columns)) == ["  a    7  x", "  b  282  y", "  c    —  z"]


def test_a_capped_table_says_so_above_and_below():
    assert body(table(*[(n,) for n in range(12)], rest="to_frame()"), closing=("checked 1",)) == [
        "10 of 12 rows",
        *[f"  {n}" for n in range(10)],
        "2 more rows: to_frame() · checked 1",
    ]


def test_rows_the_view_does_not_carry_count_as_well():
    assert body(table((1,), total=303)) == ["1 of 303 rows", "  1", "302 more rows"]
    assert body(table(total=3, empty="none at all")) == ["0 of 3 rows", "3 more rows"]


def test_ten_of_ten_rows_are_no_cap():
    assert len(body(table(*[(n,) for n in range(10)]))) == 10


def test_the_cap_is_a_setting():
    with settings(max_text_rows=1):
        assert body(table((1,), (2,))) == ["1 of 2 rows", "  1", "1 more row"]


def test_an_empty_table_is_a_sentence():
    assert body(table(empty="no subject was listed")) == ["  no subject was listed"]


def test_columns_without_room_are_counted():
    lines = body(table(tuple("x" * 20 for _ in range(30))))
    assert lines[0] == "12 of 30 columns"


def test_a_long_cell_is_cut_and_an_id_beside_it_is_not():
    name = "us-east-2/prod/orders-544"
    (line,) = body(table((Data(value=name), Data(value="x" * 150), Data(value=30))))
    assert line.startswith(f"  {name}  xxx")
    assert line.endswith("x…  30")
    assert width(line) == 100


def test_names_in_wide_characters_line_up():
    assert body(table(("備份", "a"), ("ab", "b"))) == ["  備份  a", "  ab    b"]


def test_a_group_whose_rows_are_cut_off_is_not_headed():
    groups = (Group(label="up", start=0, total=9), Group(label="down", start=1, total=4))
    with settings(max_text_rows=1):
        assert body(table((1,), (2,), groups=groups)) == [
            "1 of 2 rows",
            "  up   9",
            "    1",
            "1 more row",
        ]


def test_a_cell_to_be_shown_whole_goes_under_its_row_where_it_has_no_room():
    columns = (column(), column(in_text="whole"))
    long = "word " * 40
    shown = body(table(("1", "short"), ("2", long), columns=columns))
    assert shown[0] == "  1  short"
    assert shown[1] == "  2"
    assert " ".join(" ".join(shown[2:]).split()) == long.strip()
    assert all(line.startswith("     word") for line in shown[2:])
    # In a column of any other kind it is cut.
    assert body(table(("2", long)))[0].endswith("…")


def test_details_stand_under_the_second_column_of_their_row():
    shown = body(table(("1", "done"), ("2", "stuck"), details=(Detail(row=0, text="late"),)))
    assert shown == ["  1  done", "     late", "  2  stuck"]
    several = (Detail(row=0, text="late"), Detail(row=0, text="twice"))
    assert body(table(("1", "done"), details=several)) == ["  1  done", "     late", "     twice"]


# --- other parts -------------------------------------------------------------------------------


def facts(label, *items, **fields):
    return Facts(**{"label": label, "items": items, "total": len(items), **fields})


def test_facts_are_terms_with_what_is_said_of_them():
    shown = body(
        facts(
            "Not checked",
            Fact(term=Data(value="restores"), detail="only ages were read"),
            Fact(term="jobs", badges=(Badge(word="declared"),)),
            Fact(term="a term that nothing is said of"),
        )
    )
    assert shown == [
        "Not checked (3)",
        "  restores  only ages were read",
        "  jobs      (declared)",
        "  a term that nothing is said of",
    ]


def test_what_is_said_of_a_long_term_stands_under_it_and_is_never_cut():
    what, why = "what " * 10, "why " * 40
    lines = body(facts("Checked", Fact(term=what, detail=why)))
    assert lines[1] == f"  {what}".rstrip()
    assert all(line.startswith("    why") for line in lines[2:])
    assert " ".join(lines[2:]).split() == why.split()


def test_no_facts_are_said_to_be_none():
    assert body(facts("Cannot cover")) == ["Cannot cover (0) · none declared"]
    assert body(facts("")) == ["  none declared"]


def test_capped_facts_say_how_many_there_are():
    lines = body(facts("Checked", *[Fact(term=str(n)) for n in range(12)]))
    assert lines[0] == "Checked (12) · 10 of 12 shown"
    assert len(lines) == 11
    assert body(facts("Checked", Fact(term="a"), total=5))[0] == "Checked (5) · 1 of 5 shown"


def test_prose_is_wrapped_and_a_warning_marked():
    assert body(Prose(text="nothing was guessed")) == ["  nothing was guessed"]
    lines = body(Prose(text="word " * 40, tone="warning"))
    assert lines[0].startswith("  ! word")
    assert all(line.startswith("    word") for line in lines[1:])


def test_an_outline_is_moved_in_by_depth_and_its_notes_join_the_closing_line():
    lines = (
        FlowLine(depth=0, cells=("load", 3)),
        FlowLine(depth=1, cells=("judge", 12), state="not_taken"),
    )
    assert body(Flow(lines=lines, notes=("folded",)), closing=("walk filed",)) == [
        "  load       3",
        "    judge   12  not taken",
        "folded · walk filed",
    ]


@pytest.mark.parametrize("state", ["not_taken", "not_reached", "failed"])
def test_a_step_that_did_not_run_says_so_whatever_it_is_called(state):
    word = state.replace("_", " ")
    line = FlowLine(depth=0, cells=(Data(value=word),), state=state)
    assert body(Flow(lines=(line,))) == [f"  {word}   {word}"]


def test_an_outline_without_steps_is_its_summary():
    assert body(Flow(lines=(), summary="nothing ran")) == ["  nothing ran"]
    assert body(Flow(lines=())) == ["  no steps"]


def test_a_long_outline_is_capped_and_says_so():
    lines = tuple(FlowLine(depth=0, cells=(f"s {n}", f"x {n}")) for n in range(MAX_STEPS + 5))
    shown = body(Flow(lines=lines))
    assert shown[0] == f"{MAX_STEPS} of {MAX_STEPS + 5} steps: 5 left out"
    assert len(shown) == MAX_STEPS + 1


def test_a_run_of_plain_steps_in_a_long_outline_is_told_as_one():
    lines = tuple(FlowLine(depth=0, cells=(f"stage {n}",)) for n in range(MAX_STEPS + 5))
    assert body(Flow(lines=lines)) == [
        f"3 of {MAX_STEPS + 5} steps: {MAX_STEPS + 3} plain stages as 1 line",
        "  stage 0",
        f"  {MAX_STEPS + 3} stages",
        f"  stage {MAX_STEPS + 4}",
    ]


def test_an_outline_whose_columns_have_no_room_says_so():
    line = FlowLine(depth=0, cells=tuple("x" * 20 for _ in range(30)))
    assert body(Flow(lines=(line,)))[0] == "12 of 30 columns"


# --- sections and the end ----------------------------------------------------------------------


def test_a_lone_section_needs_no_label_and_several_have_theirs():
    first = Section(label="Rules", parts=(table((1,), total=9),), note="v1")
    second = Section(label="Report", parts=(Prose(text="two fields"), facts("Fields")))
    left_out = Section(label="Walk", parts=(Prose(text="hidden"),), in_text=False)
    alone = Card(kind="E", name="x", sections=(first, left_out))
    assert render_text(alone).split("\n")[1:] == ["1 of 9 rows", "  1", "8 more rows"]
    both = Card(kind="E", name="x", sections=(first, second, left_out))
    assert render_text(both).split("\n")[1:] == [
        "Rules · v1 · 1 of 9 rows",
        "  1",
        "Report",
        "  two fields",
        "  Fields (0) · none declared",
        "8 more rows",
    ]


def test_moved_qualifiers_share_the_line_above_the_rows_with_the_cap():
    shown = card(table((1,), total=9), qualifiers=("v" * 30,), headline="h" * 80)
    assert render_text(shown).split("\n")[1] == f"{'v' * 30} · 1 of 9 rows"


def test_remarks_are_a_line_each_and_cut_visibly():
    lines = body(remarks=("short", "long " * 40))
    assert lines[0] == "short"
    assert lines[1].endswith("…")
    assert len(lines) == 2


def test_a_closing_fact_wider_than_a_line_is_wrapped_whole():
    label = "a label that explains a lot " * 6
    shown = " ".join(body(closing=(label, "row 2")))
    assert shown.split() == [*label.split(), "·", "row", "2"]


@given(st.text(max_size=80), st.integers(0, 400))
def test_text_from_outside_neither_breaks_lines_nor_widens_them(text, total):
    shown = render_text(card(table((Data(value=text), text), total=total), name=text))
    lines = shown.split("\n")
    assert len(lines) <= 5
    assert len(shown.splitlines()) == len(lines)
    assert all(width(line) <= 100 for line in lines)


def test_escape_sequences_and_overrides_are_shown_as_escapes():
    (line,) = body(table((Data(value="web\x1b[31m\u202e01\n"),)))
    assert line == r"  web\x1b[31m\u202e01\n"


# --- through the objects -----------------------------------------------------------------------


class Shown(Renderable):
    def view(self):
        return card(table((1,)))


class Failing(Renderable):
    def view(self):
        raise KeyError("rows")


def test_an_object_shows_its_line_in_angle_brackets_and_its_text():
    assert repr(Shown()) == "<Envelope x>"
    assert str(Shown()) == "Envelope x\n  1"
    assert Shown().to_markdown().startswith("**Envelope x**\n\n")


def test_an_object_that_cannot_be_viewed_names_the_failure():
    assert str(Failing()) == "Failing, cannot be shown: KeyError"
    assert repr(Failing()) == "<Failing, cannot be shown: KeyError>"


def test_the_bundle_holds_the_text_and_honours_what_is_asked_for():
    shown = Shown()
    data, metadata = shown._repr_mimebundle_(exclude=["text/html"])
    assert (data, metadata) == ({"text/plain": str(shown)}, {})
    assert shown._repr_mimebundle_(include=["text/plain"])[0] == data


def test_drawing_needs_no_display_package():
    code = (
        "import sys, runbook_nb.render.text, runbook_nb.render.markdown;"
        "print(sorted({'IPython', 'pandas', 'numpy', 'asyncio', 'jinja2', 'pydantic'}"
        " & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
