"""What holds of every shipped procedure: it is found, asked for by a form, and honest when hurt."""

import asyncio
import datetime as dt
import json
import threading
import tomllib
from importlib import import_module
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

import runbook_nb as rb
from runbook_nb.coverage import read_absence
from runbook_nb.errors import DefinitionError, LimitReached, LoadError
from runbook_nb.examples import (
    GROUP,
    airport_days,
    disks,
    flights,
    incidents,
    lifetimes,
    packages,
    patches,
    procedure,
    shipped,
)

#: Verdicts that say nothing is to be done.
GREEN = {"next-upgrade", "no-deadline", "ok", "within-limits", "planned", "supported", "on-time"}
GREEN |= {"normal", "keep", "lts-only"}

FIXED = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)

TERM = {
    "certificate": "www",
    "problem": "",
    "hours_since_start": 24.0,
    "hours_left": 900.0,
    "days_left": 37,
    "issued": dt.date(2026, 11, 28),
    "expires": dt.date(2027, 1, 5),
    "lifetime_days": 38,
    "is_client": False,
    "is_server": True,
    "may_issue": False,
    "is_root": False,
    "authority": "public",
}
SUPPORTED = {
    "package": "zlib1g",
    "version": "1:1.2.13",
    "source": "zlib",
    "limited": False,
    "support_ended": False,
    "support_ends": False,
    "past_last_version": None,
    "release_support": "regular",
}

#: A procedure, a row it finds nothing wrong with, and the columns that this rests on.
CASES = {
    "patches": (
        patches,
        {},
        [
            {
                "vulnerability": "CVE-2022-0001",
                "asset": "a",
                "exploited": "no",
                "exposed": "no",
                "automatable": "no",
                "impact": "partial",
            }
        ],
        ("exploited", "exposed", "automatable", "impact"),
    ),
    "disks": (
        disks,
        {},
        [{"resource": "/ space", "kind": "space", "free_percent": 60, "free_in_24h_percent": 55}],
        ("free_percent", "kind"),
    ),
    "lifetimes": (
        lifetimes,
        {},
        [TERM],
        ("issued", "lifetime_days", "hours_left", "hours_since_start", "is_server", "authority"),
    ),
    "incidents": (
        incidents,
        {"matrix": incidents.exercise()},
        [
            {
                "incident": "a",
                "functional": "none",
                "information": "none",
                "recoverability": "regular",
            }
        ],
        ("recoverability", "functional", "information"),
    ),
    "packages": (
        packages,
        {},
        [SUPPORTED],
        ("release_support", "limited", "support_ended", "support_ends"),
    ),
    "flights": (
        flights,
        {},
        [{"flight": "A1", "dep_time": 517, "arr_delay": 3, "carrier": "A"}],
        ("arr_delay",),
    ),
    "airport-days": (
        airport_days,
        {},
        [{"airport_day": "a", "flights": 9, "arrivals": 9, "cancelled_pct": 0.0, "late_pct": 1.0}],
        ("late_pct", "cancelled_pct", "arrivals"),
    ),
}

each = pytest.mark.parametrize(
    ("module", "options", "rows", "columns"), CASES.values(), ids=CASES.keys()
)


def without(rows, column):
    return [{key: value for key, value in row.items() if key != column} for row in rows]


def asked(module, rows, **options):
    """Call a procedure over rows, as anybody calls a tool."""
    with rb.settings(clock=lambda: FIXED):
        return module.toolbox(rows, **options).call_sync(module.NAME, {})


# -- three ways to hurt a source, three answers, none of them green ------------------------------


@each
def test_rows_without_a_fault_are_green(module, options, rows, columns):
    """The rows below would be fine, so that it is the missing column that declines them."""
    answer = asked(module, rows, **options)
    assert {row["verdict"] for row in answer.verdicts} <= GREEN


@each
def test_without_a_column_rows_are_declined_and_the_column_is_named(module, options, rows, columns):
    for column in columns:
        answer = asked(module, without(rows, column), **options)
        assert answer.verdicts.counts() == {"declined": len(rows)}, column
        assert f"{column} is missing" in answer.why(row=0).sentence
        gaps = [item.what for item in answer.ledger.not_checked]
        assert f"{len(rows)} row(s) that reached NO classification (verdict 'declined')" in gaps


@each
def test_a_value_nobody_knows_is_never_green(module, options, rows, columns):
    for column in columns:
        answer = asked(module, [row | {column: None} for row in rows], **options)
        assert not GREEN & answer.verdicts.counts().keys(), column


@each
def test_a_value_of_another_kind_is_declined(module, options, rows, columns):
    for column in columns:
        wrong = [row | {column: {"of": "another kind"}} for row in rows]
        assert asked(module, wrong, **options).verdicts.counts() == {"declined": 1}, column


@each
def test_what_rests_on_none_of_a_column_stays_as_it_is(module, options, rows, columns):
    before = asked(module, rows, **options).verdicts.counts()
    names_subject = next(iter(rows[0]))
    for column in rows[0].keys() - {*columns, names_subject}:
        assert asked(module, without(rows, column), **options).verdicts.counts() == before, column


@each
def test_an_empty_source_is_an_absence(module, options, rows, columns):
    answer = asked(module, [], **options)
    found = read_absence(answer)
    assert found is not None
    assert found["checked"]
    assert not isinstance(answer, rb.Envelope)
    with pytest.raises(rb.errors.RunbookError, match="nothing found") as told:
        module.run([], **options)
    assert told.value.code == "absent"


@each
def test_a_source_that_does_not_answer_in_time_gives_no_answer(module, options, rows, columns):
    box = module.toolbox(rows, seconds=0.05, **options)
    source = box[module.SOURCE]

    async def never(args, ctx):
        await asyncio.sleep(600)

    box.add(
        rb.define_tool(
            name=source.name,
            description=source.description,
            input_schema=source.input_schema,
            execute=never,
        )
    )
    with pytest.raises(LimitReached, match="longer than its limit") as told:
        box.call_sync(module.NAME, {})
    assert told.value.run.status == "limited"
    assert "verdicts" not in told.value.run.state


def test_a_source_that_hangs_in_the_system_is_left_behind():
    """A file system that does not answer holds a thread, which nobody can end."""
    released = threading.Event()
    box = patches.toolbox([], seconds=0.05)
    source = box[patches.SOURCE]
    box.add(
        rb.define_tool(
            name=source.name,
            description=source.description,
            input_schema=source.input_schema,
            execute=lambda args, ctx: released.wait(60),
            blocking=True,
        )
    )
    try:
        with pytest.raises(LimitReached):
            box.call_sync(patches.NAME, {})
        assert not released.is_set()
    finally:
        released.set()


# -- how they are found and asked ----------------------------------------------------------------


@pytest.fixture(scope="module")
def entries():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["entry-points"][GROUP]


def test_each_is_an_entry_point_under_its_name(entries):
    assert entries == {book.name: f"{book.module}:toolbox" for book in shipped()}


@pytest.mark.parametrize("book", shipped(), ids=lambda book: book.name)
def test_each_can_be_made_without_anything_and_holds_one_runbook(book):
    box = book.toolbox()
    module = import_module(book.module)
    runbooks = [tool.name for tool in box if tool.composed_of]
    assert runbooks == [module.NAME]
    assert box[module.NAME].composed_of == [module.SOURCE]


@pytest.mark.parametrize("book", shipped(), ids=lambda book: book.name)
def test_each_says_what_it_decides_and_by_whose_rules(book):
    assert book.title
    assert book.decides.endswith(".")
    assert book.source
    module = import_module(book.module)
    assert module.__doc__.startswith("Which ") or module.__doc__.startswith(("By when", "In which"))
    assert {"run", "runbook", "toolbox"} <= set(module.__all__)


@pytest.mark.parametrize("book", shipped(), ids=lambda book: book.name)
def test_each_input_has_a_type_and_a_description(book):
    module = import_module(book.module)
    for tool in book.toolbox():
        schema = tool.input_schema
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        for field in schema["properties"].values():
            assert field["description"]
            assert "type" in field or "enum" in field
    form = rb.RunForm(book.toolbox(), module.NAME)
    assert module.NAME in str(form)


def test_a_form_runs_one():
    form = rb.RunForm(patches.toolbox(), patches.NAME)
    assert form.problems() == {}
    form.run()
    form.join(60)
    assert form.status == "finished"
    assert form.result.verdicts.counts()["3-days-forensic"] == 4


def test_a_form_names_the_input_that_is_missing():
    assert rb.RunForm(lifetimes.toolbox(), lifetimes.NAME).problems() == {"bundle": "is required"}


@each
def test_rows_that_are_given_leave_no_file_to_ask_for(module, options, rows, columns):
    box = module.toolbox(rows, **options)
    assert set(box[module.NAME].input_schema["properties"]) <= {"as_of"}


@each
def test_a_frame_does_for_the_rows(module, options, rows, columns):
    frame = pd.DataFrame(rows)
    assert (
        asked(module, frame, **options).verdicts.counts()
        == asked(module, rows, **options).verdicts.counts()
    )


@each
def test_each_row_is_explained_and_the_answer_can_be_read_back(module, options, rows, columns):
    answer = asked(module, rows, **options)
    copy = rb.Envelope.from_dict(json.loads(answer.to_json(dossier=True)))
    assert copy.why(row=0).sentence == answer.why(row=0).sentence
    assert copy == answer


@each
def test_every_verdict_word_has_a_rank(module, options, rows, columns):
    tool = module.toolbox(rows, **options)[module.NAME]
    words = set(tool.carried["runbook"].rule_set.branches)
    ranks = getattr(module, "RANK", None) or incidents.priorities(options["matrix"])
    assert words <= set(ranks)
    assert ranks.index("declined") < min(ranks.index(word) for word in GREEN & set(ranks))


# -- what they share -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("2026-11-29", dt.datetime(2026, 11, 29, tzinfo=dt.UTC)),
        ("2026-11-29T15:30:00Z", dt.datetime(2026, 11, 29, 15, 30, tzinfo=dt.UTC)),
        ("2026-11-29T15:30:00+02:00", dt.datetime(2026, 11, 29, 13, 30, tzinfo=dt.UTC)),
        (dt.date(2026, 11, 29), dt.datetime(2026, 11, 29, tzinfo=dt.UTC)),
        (FIXED, FIXED),
    ],
)
def test_a_moment_is_read(given, wanted):
    assert procedure.read_moment(given) == wanted


@pytest.mark.parametrize("bad", ["2026-11-29T15:30:00", "2026-13-01", "now", "", "20261129", None])
def test_what_is_no_moment_is_refused_with_what_to_write(bad):
    with pytest.raises(DefinitionError, match="write it as 2026-11-29") as told:
        procedure.read_moment(bad)
    assert told.value.where == "as_of"


def test_a_table_is_read_as_text_with_nothing_for_an_empty_cell(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffA , b,other\n" x ",,1\n"two, one",y,2\n', encoding="utf-8")
    assert procedure.table_rows(path, ("a", "b", "c")) == [
        {"a": "x", "b": None},
        {"a": "two, one", "b": "y"},
    ]


def test_a_row_that_is_too_short_has_nothing_in_the_cells_it_lacks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n\n1,2, ,\n", encoding="utf-8")
    assert procedure.table_rows(path, ("a", "b")) == [{"a": "1", "b": None}, {"a": "1", "b": "2"}]


def test_an_empty_table_has_no_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("", encoding="utf-8")
    assert procedure.table_rows(path, ("a",)) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b, A\n1,2,3\n", "the column 'a' stands in it twice"),
        ("a,b\n1,2\n\n1,2,3\n", "line 4 has more cells than columns"),
        ('a,b\n1,"2\n3,4\n', "unexpected end of data"),
    ],
)
def test_a_table_of_which_something_would_be_lost_is_not_read(tmp_path, content, said):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(LoadError, match=said):
        procedure.table_rows(path, ("a", "b"))


def test_a_column_that_is_not_read_may_stand_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,x,x\n1,2,3\n", encoding="utf-8")
    assert procedure.table_rows(path, ("a",)) == [{"a": "1"}]


def test_a_table_without_any_of_the_columns_is_refused_by_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("automatabel,x\n1,2\n", encoding="utf-8")
    with pytest.raises(LoadError, match="automatable") as told:
        procedure.table_rows(path, ("automatable", "impact"))
    assert told.value.code == "missing_column"


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00bad", b'a\n"' + b"x" * 200_000])
def test_a_table_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "t.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LoadError, match=r"the table 't\.csv' cannot be read"):
        procedure.table_rows(path, ("a",))


def test_the_day_asked_about_is_told_and_is_that_of_the_clock_when_left_out():
    answer = asked(packages, [SUPPORTED])
    assert answer["result"]["as_of"] == "2026-11-29"
    moment = asked(lifetimes, [TERM])
    assert moment["result"]["as_of"] == "2026-11-29T12:00:00+00:00"
