"""What a history shows: verdicts over time, runs with the newest first, rules that were changed."""

from datetime import UTC, datetime, timedelta

import pytest

from runbook_nb._view import Plot, Table
from runbook_nb.settings import settings
from runbook_nb.share.history import Forgotten, RunEntry, RunHistory, day, instant, moment

START = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)


def entry(number, verdicts=None, **more):
    counts = {"fresh": 2, "old": number} if verdicts is None else verdicts
    made = {
        "id": number,
        "at": START + timedelta(days=number - 1),
        "tool": "triage",
        "rules": "age",
        "version": "v1",
        "rules_digest": "sha-256:a",
        "verdicts": counts,
        "rows": sum(counts.values()),
        "complete": True,
        "session": None,
        "origin": {},
        "digest": f"sha-256:{number}",
        "bytes": 100,
    }
    return RunEntry(**{**made, **more})


def history(*entries, tool="triage"):
    return RunHistory(entries, tool)


def parts(shown, kind):
    return [p for section in shown.view().sections for p in section.parts if isinstance(p, kind)]


# --- in words ----------------------------------------------------------------------------------


def test_a_history_reads_from_the_newest_to_the_oldest_and_plots_the_other_way():
    assert str(history(entry(1), entry(2), entry(3))).splitlines() == [
        "Runs triage · 2026-01-01 to 2026-01-03 · 3 runs",
        "Verdicts over time",
        "  run    1  2  3",
        "  fresh  2  2  2",
        "  old    1  2  3",
        "Runs",
        "  3  2026-01-03 12:30Z  age v1  rows 5  2 fresh 3 old",
        "  2  2026-01-02 12:30Z  age v1  rows 4  2 fresh 2 old",
        "  1  2026-01-01 12:30Z  age v1  rows 3  2 fresh 1 old",
    ]


def test_runs_of_several_tools_are_no_development():
    assert parts(history(entry(1), entry(2, tool="disks"), tool=None), Plot) == []
    assert len(parts(history(entry(1), entry(2), tool=None), Plot)) == 1


def test_nothing_and_one_run_are_no_development():
    assert str(history()).splitlines() == ["Runs triage · 0 runs", "  no run is kept"]
    assert parts(history(entry(1)), Plot) == []
    assert repr(history(entry(1))) == "<Runs triage · 2026-01-01 · 1 run>"


def test_runs_of_every_tool_name_theirs_and_what_is_told_by_none_has_no_column():
    shown = history(entry(1), entry(2, tool="disks", session="night"), tool=None)
    heads = [column.head for column in parts(shown, Table)[0].columns]
    assert heads == ["run", "added", "tool", "rules", "rows", "verdicts", "session"]
    heads = [column.head for column in parts(history(entry(1, origin={"a": 1})), Table)[0].columns]
    assert heads[-1] == "source"


def test_other_rules_are_said_under_the_first_run_that_has_them():
    later = {"version": "v2", "rules_digest": "sha-256:b"}
    text = str(history(entry(1), entry(2, **later), entry(3, **later)))
    assert text.count("other rules than run 1") == 1
    assert text.index("other rules") > text.index("  2  2026-01-02")


def test_rules_that_were_changed_without_a_new_version_are_said_to_be():
    text = str(history(entry(1), entry(2, rules_digest="sha-256:b")))
    assert "the same version, yet other rules than run 1" in text


def test_another_tools_rules_are_no_change():
    other = entry(2, tool="disks", version="v9", rules_digest="sha-256:z")
    assert "other rules" not in str(history(entry(1), other, entry(3), tool=None))


def test_only_so_many_runs_are_shown_and_that_is_said():
    many = history(*map(entry, range(1, 31)))
    lines = str(many).splitlines()
    assert lines[1] == "Verdicts over time · 10 of 30 runs, the last ones"
    assert lines[2].split() == ["run", *map(str, range(21, 31))]
    assert lines[-1] == "20 more rows: runs.history().to_frame()"
    with settings(max_table_rows=5):
        assert "5 of 30" in many._repr_mimebundle_()[0]["text/html"]


def test_the_words_are_in_declared_order_and_declined_is_last():
    shown = history(entry(1, {"declined": 1, "old": 1}), entry(2, {"fresh": 1, "old": 2}))
    assert shown.words == ("fresh", "old", "declined")
    plot = shown.plot()
    assert [(one.word, one.role, one.values) for one in plot.series] == [
        ("fresh", "a", (0, 1)),
        ("old", "b", (1, 2)),
        ("declined", "declined", (1, 0)),
    ]
    assert plot.summary == (
        "2 runs, from the first to the last: fresh 0 to 1, old 1 to 2 and declined 1 to 0"
    )


def test_counts_nobody_took_are_missing_and_not_zero():
    unknown = RunEntry(**{**_fields(entry(2)), "verdicts": None, "rows": 9})
    shown = history(entry(1), unknown, entry(3))
    assert shown.plot().series[0].values == (2, None, 2)
    assert "not every row is carried" in str(shown)
    frame = shown.to_frame()
    assert frame["old"].isna().tolist() == [False, True, False]


def _fields(one):
    return {name: getattr(one, name) for name in RunEntry.__dataclass_fields__}


# --- as a frame --------------------------------------------------------------------------------


def test_a_frame_has_a_row_for_each_run_and_a_column_for_each_verdict():
    frame = history(entry(1), entry(2, {"rows": 3, "old": 1})).to_frame()
    assert list(frame.columns) == [
        *("run", "at", "tool", "rules", "version", "rules_digest", "rows", "complete", "session"),
        *("source", "verdict rows", "old", "fresh"),
    ]
    assert frame["run"].tolist() == [1, 2]
    assert frame["verdict rows"].tolist() == [0, 3]
    assert str(frame["at"].dtype).endswith("UTC]")
    assert str(frame["old"].dtype) == "Int64"
    assert frame.set_index("at")["old"].sum() == 2
    assert list(history().to_frame().columns)[:2] == ["run", "at"]


# --- as a sequence -----------------------------------------------------------------------------


def test_a_history_is_a_sequence_of_entries():
    one, two = entry(1), entry(2)
    shown = history(one, two)
    assert (shown[0], shown[-1], shown[:1], len(shown), list(shown)) == (
        one,
        two,
        (one,),
        2,
        [one, two],
    )
    assert shown == history(one, two)
    assert shown != history(one)
    assert shown != [one, two]
    with pytest.raises(TypeError):
        hash(shown)
    with pytest.raises(AttributeError):
        one.rows = 5


# --- one run, and none -------------------------------------------------------------------------


def test_an_entry_shows_where_it_came_from():
    text = str(entry(3, session="incident-7", origin={"source": "seed", "asOf": 5}, complete=False))
    assert text.splitlines() == [
        "Run 3 of triage · age v1 · 5 rows (2 fresh, 3 old)",
        "  added         2026-01-03 12:30Z",
        "  rules digest  sha-256:a",
        "  session       incident-7",
        "  source        source seed; asOf 5",
        "  kept          100 bytes, in part",
    ]
    assert "no rules declared" in str(entry(1, version="undeclared", rules=None))


def test_what_was_let_go_is_named_and_what_is_left_is_counted():
    assert str(Forgotten(ids=(), bytes=0, left=3)) == "Forgotten · 0 runs\n3 runs kept"
    assert repr(Forgotten(ids=(7,), bytes=10, left=1)) == "<Forgotten · 1 run: 7>"
    many = str(Forgotten(ids=tuple(range(1, 40)), bytes=10, left=1))
    assert many.startswith("Forgotten · 39 runs: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 29 more")


def test_moments_are_told_in_utc():
    from datetime import timezone

    east = datetime(2026, 1, 1, 1, 15, tzinfo=timezone(timedelta(hours=3)))
    assert (moment(east), day(east)) == ("2025-12-31 22:15Z", "2025-12-31")
    assert instant(1_000) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
