"""Limits on rows that are given, mounts that are made up, and what must hold on any machine."""

import datetime as dt
import threading

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb import decide
from runbook_nb.errors import DefinitionError, LoadError, RunbookError, ToolRefused
from runbook_nb.examples import disks as shipped
from runbook_nb.examples import mounts
from runbook_nb.examples.mounts import Mount, Sample, Usage

NOW = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)
GIB = 2**30

LINUX = r"""proc /proc proc rw,nosuid 0 0
systemd-1 /proc/sys/fs/binfmt_misc autofs rw,relatime 0 0
/dev/vda1 / ext4 rw,relatime 0 0
/dev/vda1 /srv/bound ext4 rw,relatime 0 0
/dev/vdb1 /srv/with\040space xfs rw,noatime 0 0
tmpfs /run tmpfs rw,size=1024k 0 0
/dev/loop3 /snap/core/17 squashfs ro,nodev 0 0
nas:/export /mnt/nas nfs4 rw,hard 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw 0 0
fused /mnt/odd fuse.odd rw 0 0
short line
"""

MACOS = """/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect)
/dev/disk4s1 on /Volumes/My (odd) disk (msdos, local, nodev, nosuid)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
"""

USAGES = {
    "/": Usage("vda1", 100 * GIB, 50 * GIB, 1000, 900),
    "/srv/bound": Usage("vda1", 100 * GIB, 50 * GIB, 1000, 900),
    "/srv/with space": Usage("vdb1", 200 * GIB, 4 * GIB, 0, 0),
    "/run": Usage("run", GIB, GIB, 100, 4),
    "/mnt/odd": Usage("odd", 0, 0, 0, 0),
}


def ask(point):
    if point == "/mnt/nas":
        raise PermissionError(13, "Permission denied")
    return USAGES[point]


def measured(history=(), ask=ask, descriptors=lambda: (700, 1000), text=LINUX, patience=5.0):
    rows, left_out = mounts.resource_rows(
        NOW,
        mounts=list(mounts.parse_mounts(text)),
        history=history,
        ask=ask,
        descriptors=descriptors,
        patience=patience,
    )
    return {row["resource"]: row for row in rows}, {item.what: item.why for item in left_out}


def row(**changes):
    """Give what was measured of a file system that nothing is wrong with."""
    return {
        "resource": "/ space",
        "kind": "space",
        "free_percent": 60.0,
        "used_percent": 40.0,
        "free_in_4h_percent": 59.0,
        "free_in_24h_percent": 50.0,
        "problem": "",
    } | changes


def descriptors(used):
    return row(
        resource="file descriptors",
        kind="descriptors",
        used_percent=used,
        free_percent=100 - used,
        free_in_4h_percent=None,
        free_in_24h_percent=None,
    )


# -- the limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (row(), "ok"),
        (row(free_percent=5.0), "ok"),
        (row(free_percent=4.99), "warning"),
        (row(free_percent=3.0), "warning"),
        (row(free_percent=2.99), "critical"),
        (row(free_percent=0.0), "critical"),
        (row(free_percent=39.99, free_in_24h_percent=-0.01), "warning"),
        (row(free_percent=39.99, free_in_24h_percent=0.0), "ok"),
        (row(free_percent=40.0, free_in_24h_percent=-50.0), "ok"),
        (row(free_percent=19.99, free_in_4h_percent=-0.01, free_in_24h_percent=-1.0), "critical"),
        (row(free_percent=20.0, free_in_4h_percent=-0.01, free_in_24h_percent=-1.0), "warning"),
        (row(free_percent=19.99, free_in_4h_percent=0.0, free_in_24h_percent=-1.0), "warning"),
        # both rules hold, and the worse stands
        (row(free_percent=2.0, free_in_4h_percent=50.0, free_in_24h_percent=50.0), "critical"),
        (row(free_percent=4.0, free_in_4h_percent=-1.0, free_in_24h_percent=-9.0), "critical"),
        # no history: the filling-up rule has nothing to go by, the almost-full one goes on
        (row(free_percent=2.0, free_in_4h_percent=None, free_in_24h_percent=None), "critical"),
        (row(free_percent=4.0, free_in_4h_percent=None, free_in_24h_percent=None), "warning"),
        (
            row(free_percent=39.0, free_in_4h_percent=None, free_in_24h_percent=None),
            "not-predicted",
        ),
        (row(free_percent=40.0, free_in_4h_percent=None, free_in_24h_percent=None), "ok"),
        (row(kind="files", free_percent=2.0), "critical"),
        (row(kind="files", free_percent=4.0), "warning"),
        (row(kind="quota", free_percent=1.0), "declined"),
        (row(free_percent=None), "declined"),
        (row(problem="it did not answer"), "declined"),
        (descriptors(70.0), "ok"),
        (descriptors(70.01), "warning"),
        (descriptors(90.0), "warning"),
        (descriptors(90.01), "critical"),
        (descriptors(97.5), "critical"),
    ],
)
def test_each_limit_falls_where_the_mixin_has_it(facts, verdict):
    assert decide(facts, shipped.rules()).branch == verdict


def test_the_answer_shows_the_value_beside_the_limit():
    answer = shipped.run([row(free_percent=4.2)])
    assert answer.why("/ space").sentence.endswith("and free_percent 4.2 < 5 %")


def test_every_rule_with_a_share_has_a_unit():
    for rule in shipped.rules().rules:
        for key in rule.when:
            if key.endswith("_percent") and "missing" not in rule.when[key]:
                assert rule.unit_of(key) == "%"


# -- mounts --------------------------------------------------------------------------------------


def test_the_table_of_linux_is_read():
    found = {mount.point: mount for mount in mounts.parse_mounts(LINUX)}
    assert len(found) == 10
    assert found["/srv/with space"] == Mount("/dev/vdb1", "/srv/with space", "xfs", False)
    assert found["/snap/core/17"].read_only


def test_the_table_of_macos_is_read():
    found = {mount.point: mount for mount in mounts.parse_bsd_mounts(MACOS)}
    assert list(found) == [
        "/",
        "/dev",
        "/System/Volumes/Data",
        "/Volumes/My (odd) disk",
        "/System/Volumes/Data/home",
    ]
    assert found["/"].read_only
    assert not found["/System/Volumes/Data"].read_only
    assert found["/Volumes/My (odd) disk"].kind == "msdos"
    assert found["/dev"].kind in mounts.PSEUDO
    assert found["/System/Volumes/Data/home"].kind in mounts.PSEUDO


@given(st.text(max_size=200))
@hypothesis_settings(deadline=None, max_examples=200)
def test_no_text_makes_a_table_fail(text):
    for mount in [*mounts.parse_mounts(text), *mounts.parse_bsd_mounts(text)]:
        assert isinstance(mount, Mount)


def test_what_can_run_out_is_a_row_each():
    rows, _ = measured()
    assert list(rows) == [
        "/ space",
        "/ files",
        "/run space",
        "/run files",
        "/mnt/nas space",
        "/srv/with space space",
        "file descriptors",
    ]
    assert rows["/ space"]["free_percent"] == 50.0
    assert rows["/srv/with space space"]["free_percent"] == 2.0
    assert rows["/run files"]["free_percent"] == 4.0
    assert rows["file descriptors"]["used_percent"] == 70.0


def test_what_was_left_out_is_said_with_its_reason():
    _, left_out = measured()
    assert list(left_out) == [
        "4 mounts of pseudo file systems (autofs, cgroup2, fuse.odd, proc)",
        "1 mount that can only be read",
        "1 mount of file systems that are mounted elsewhere as well",
        "whether 5 resources of file systems will be full soon",
    ]
    assert all(left_out.values())


def test_pseudo_file_systems_are_not_even_asked():
    """Asking an automounter mounts something."""
    asked = []

    def note(point):
        asked.append(point)
        return USAGES.get(point, Usage("x", 1, 1, 0, 0))

    measured(ask=note)
    assert set(asked) == {"/", "/srv/bound", "/srv/with space", "/run", "/mnt/nas", "/mnt/odd"}


def test_one_that_may_not_be_asked_is_declined_and_says_why():
    rows, _ = measured()
    assert rows["/mnt/nas space"]["problem"] == "it cannot be asked: Permission denied"
    assert rows["/mnt/nas space"]["free_percent"] is None
    answer = shipped.run(list(rows.values()))
    assert answer.why("/mnt/nas space").verdict == "declined"
    assert "Permission denied" in answer.why("/mnt/nas space").sentence


def test_one_that_hangs_holds_nobody_up():
    released = threading.Event()

    def hang(point):
        if point == "/mnt/nas":
            released.wait(60)
        return USAGES.get(point, Usage("nas", 10, 5, 0, 0))

    try:
        rows, _ = measured(ask=hang, patience=0.05)
    finally:
        released.set()
    assert rows["/mnt/nas space"]["problem"] == "it did not answer within 0.05 s"
    assert rows["/ space"]["problem"] == ""


def test_of_two_mounts_on_one_point_the_later_is_looked_at():
    text = "/dev/vda1 /data ext4 ro 0 0\n/dev/vdb1 /data ext4 rw 0 0\n"
    rows, left_out = measured(text=text, ask=lambda point: Usage("b", 100, 10, 0, 0))
    assert "/data space" in rows
    assert not any("only be read" in what for what in left_out)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: None, "does not say"),
        (lambda: (5, 0), "does not say"),
    ],
)
def test_descriptors_that_cannot_be_counted_are_declined(given, words):
    rows, _ = measured(descriptors=given)
    assert words in rows["file descriptors"]["problem"]
    assert decide(rows["file descriptors"], shipped.rules()).branch == "declined"


def test_descriptors_that_fail_to_be_read_are_declined():
    def fail():
        raise PermissionError(13, "Permission denied")

    rows, _ = measured(descriptors=fail)
    assert "cannot be counted" in rows["file descriptors"]["problem"]


@given(st.integers(1, 10**15), st.integers(0, 10**15))
@hypothesis_settings(deadline=None, max_examples=200)
def test_a_share_is_never_shown_on_the_good_side_of_a_limit(size, free):
    free = min(free, size)
    rows, _ = measured(text="/dev/a / ext4 rw 0 0", ask=lambda point: Usage("a", size, free, 0, 0))
    shown = rows["/ space"]
    for limit in (3, 5, 20, 40):
        assert (shown["free_percent"] < limit) == (free * 100 < limit * size)
    for limit in (70, 90):
        assert (shown["used_percent"] > limit) == ((size - free) * 100 > limit * size)


# -- a history -----------------------------------------------------------------------------------


def ago(hours, free, files=None, point="/"):
    return Sample(NOW - dt.timedelta(hours=hours), point, free, files)


def test_a_straight_line_is_carried_on():
    rows, left_out = measured(history=[ago(5, 100 * GIB), ago(2.5, 75 * GIB)])
    assert rows["/ space"]["free_in_4h_percent"] == pytest.approx(10.0, abs=0.01)
    assert rows["/ space"]["free_in_24h_percent"] == pytest.approx(-190.0, abs=0.01)
    assert rows["/ files"]["free_in_24h_percent"] is None
    assert "whether 4 resources of file systems will be full soon" in left_out


def test_files_are_predicted_by_their_own_numbers():
    rows, _ = measured(history=[ago(4, None, 980), ago(2, None, 940)])
    assert rows["/ files"]["free_in_4h_percent"] == pytest.approx(82.0, abs=0.01)
    assert rows["/ space"]["free_in_4h_percent"] is None


@pytest.mark.parametrize(
    "history",
    [
        [],
        [ago(0.5, 90 * GIB)],  # spans less than an hour
        [ago(7, 90 * GIB)],  # older than the window
        [ago(-2, 90 * GIB)],  # not yet
        [ago(3, 90 * GIB, point="/elsewhere")],
    ],
)
def test_without_enough_history_nothing_is_predicted(history):
    rows, _ = measured(history=history)
    assert rows["/ space"]["free_in_24h_percent"] is None


def test_a_mount_with_and_one_without_a_history_are_judged_apart():
    usages = {"/a": Usage("a", 100, 30, 0, 0), "/b": Usage("b", 100, 30, 0, 0)}
    rows, _ = measured(
        text="x /a ext4 rw 0 0\ny /b ext4 rw 0 0\n",
        ask=usages.__getitem__,
        history=[ago(6, 60, point="/a"), ago(3, 45, point="/a")],
    )
    answer = shipped.run(list(rows.values()))
    verdicts = {row["resource"]: row["verdict"] for row in answer.verdicts}
    assert verdicts["/a space"] == "warning"
    assert verdicts["/b space"] == "not-predicted"
    assert "free_in_24h_percent -90.0 < 0" in answer.why("/a space").sentence


def test_one_that_empties_is_not_filling_up():
    rows, _ = measured(history=[ago(5, 10 * GIB), ago(2, 30 * GIB)])
    assert rows["/ space"]["free_in_24h_percent"] > 100
    assert decide(rows["/ space"], shipped.rules()).branch == "ok"


def test_a_history_is_read_from_a_table():
    samples = mounts.read_samples(
        [
            {"time": "2026-11-29T08:00:00Z", "mount": "/", "free_bytes": "10", "free_files": None},
            {"time": "2026-11-29T10:00:00+02:00", "mount": "/a", "free_files": "7"},
            {"time": NOW, "mount": "/", "free_bytes": 3},
        ],
        "a table",
    )
    assert samples[0] == Sample(dt.datetime(2026, 11, 29, 8, tzinfo=dt.UTC), "/", 10, None)
    assert samples[1].at == samples[0].at
    assert samples[1].files_free == 7


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"mount": "/", "free_bytes": "1"}, "no 'time'"),
        ({"time": "2026-11-29T08:00:00Z", "free_bytes": "1"}, "no 'mount'"),
        ({"time": "yesterday", "mount": "/"}, "yesterday"),
        ({"time": None, "mount": "/"}, "no measurement"),
        ({"time": "2026-11-29", "mount": "/", "free_bytes": "12 GB"}, "12 GB"),
    ],
)
def test_a_row_that_is_no_measurement_is_named(bad, words):
    good = {"time": "2026-11-29T08:00:00Z", "mount": "/", "free_bytes": "1"}
    with pytest.raises(LoadError, match=r"row 2 of a table") as told:
        mounts.read_samples([good, bad], "a table")
    assert words in str(told.value)


def test_the_file_of_a_history_is_asked_for_and_named(tmp_path):
    path = tmp_path / "free.csv"
    path.write_text("time,mount,free_bytes\n2026-11-29T08:00:00Z,/nowhere,1\n", encoding="utf-8")
    answer = shipped.toolbox().call_sync(shipped.NAME, {"history": str(path)})
    assert "history free.csv" in [item.what for item in answer.ledger.checked]


def test_a_history_that_cannot_be_read_fails_the_run(tmp_path):
    with pytest.raises(LoadError, match=r"'gone\.csv' cannot be read"):
        shipped.run(history=tmp_path / "gone.csv")


def test_what_is_measured_now_is_a_history_later(tmp_path):
    path = tmp_path / "free.csv"
    listed = list(mounts.parse_mounts(LINUX))
    for hours in (3, 0):
        moment = NOW - dt.timedelta(hours=hours)
        assert mounts.note_history(path, moment, mounts=listed, ask=ask) == 3
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "time,mount,free_bytes,free_files"
    assert len(lines) == 1 + 2 * 3
    assert f"2026-11-29T09:00:00+00:00,/srv/with space,{4 * GIB}," in lines
    rows, _ = measured(history=mounts.load_history(path))
    assert rows["/ space"]["free_in_24h_percent"] == 50.0


# -- this machine --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def live():
    return shipped.run()


def test_the_counts_add_up_on_this_machine(live):
    result = live["result"]
    counts = live.verdicts.counts()
    assert sum(counts.values()) == result["rows_total"] == len(live.verdicts)
    (fan,) = live.dossier.fan_outs
    assert fan.counts.items == fan.counts.ok == fan.counts.decided == result["rows_total"]
    assert set(counts) <= set(shipped.RANK)


def test_every_row_of_this_machine_is_explained(live):
    names = [row["resource"] for row in live.verdicts]
    assert len(names) == len(set(names))
    assert "file descriptors" in names
    for name in names:
        assert live.why(name).sentence


def test_shares_lie_between_nothing_and_all(live):
    for row in live.verdicts:
        for key in ("free_percent", "used_percent"):
            assert row[key] is None or 0 <= row[key] <= 100
        assert row["free_in_24h_percent"] is None


def test_the_root_is_looked_at_without_rights(live):
    listed = {mount.point: mount for mount in mounts.list_mounts()}
    if listed["/"].read_only:
        assert "/ space" not in {row["resource"] for row in live.verdicts}
    else:
        assert "/ space" in {row["resource"] for row in live.verdicts}


def test_without_a_history_the_ledger_says_that_nothing_was_predicted(live):
    gaps = [item.what for item in live.ledger.not_checked]
    assert any(gap.endswith("will be full soon") for gap in gaps)
    assert "whether a state lasts" in gaps


def test_where_mounts_cannot_be_listed_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(mounts, "_LINUX", tmp_path / "gone")
    monkeypatch.setattr(mounts, "_ask", lambda *command: None)
    with pytest.raises(LoadError, match="cannot be listed") as told:
        shipped.run()
    assert told.value.code == "source_missing"


def test_the_program_is_asked_where_there_is_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(mounts, "_LINUX", tmp_path / "gone")
    monkeypatch.setattr(mounts, "_ask", lambda *command: MACOS)
    assert mounts.list_mounts()[2].point == "/System/Volumes/Data"


def test_descriptors_come_from_the_kernel_or_a_program(monkeypatch, tmp_path):
    told = tmp_path / "file-nr"
    told.write_text("1828\t28\t10000\n", encoding="ascii")
    monkeypatch.setattr(mounts, "_DESCRIPTORS", told)
    assert mounts.read_descriptors() == (1800, 10000)
    monkeypatch.setattr(mounts, "_DESCRIPTORS", tmp_path / "gone")
    monkeypatch.setattr(mounts, "_ask", lambda *command: "12\n300\n")
    assert mounts.read_descriptors() == (12, 300)
    monkeypatch.setattr(mounts, "_ask", lambda *command: None)
    assert mounts.read_descriptors() is None


def test_a_program_that_is_not_there_has_no_answer():
    assert mounts._ask("/nonexistent/program") is None


def test_nothing_measured_is_no_all_clear():
    with pytest.raises(RunbookError, match="resources in the rows given"):
        shipped.run([])


def test_rows_that_are_given_take_no_history(tmp_path):
    with pytest.raises(ToolRefused, match="history"):
        shipped.run([row()], history=tmp_path / "free.csv")


def test_the_moment_of_a_prediction_is_that_of_the_clock(tmp_path):
    path = tmp_path / "free.csv"
    path.write_text("time,mount,free_bytes\n", encoding="utf-8")
    usage = mounts.measure("/")
    for hours in (1, 2, 3):
        moment = NOW - dt.timedelta(hours=hours)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{moment.isoformat()},/,{usage.size}\n")
    if mounts.list_mounts() and "/" in {m.point for m in mounts.list_mounts() if not m.read_only}:
        with rb.settings(clock=lambda: NOW):
            near = shipped.run(history=path)
        with rb.settings(clock=lambda: NOW + dt.timedelta(days=1)):
            far = shipped.run(history=path)
        value = {r["resource"]: r["free_in_24h_percent"] for r in near.verdicts}["/ space"]
        assert value is not None
        assert all(r["free_in_24h_percent"] is None for r in far.verdicts)


def test_what_is_no_history_is_never_added_to(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("host,owner\na,b\n", encoding="utf-8")
    with pytest.raises(LoadError, match="none of the columns"):
        mounts.note_history(path, NOW, mounts=[])
    assert path.read_text(encoding="utf-8") == "host,owner\na,b\n"


def test_a_moment_without_a_zone_is_not_noted(tmp_path):
    with pytest.raises(DefinitionError, match="has no zone"):
        mounts.note_history(tmp_path / "h.csv", NOW.replace(tzinfo=None), mounts=[])
    assert not (tmp_path / "h.csv").exists()
