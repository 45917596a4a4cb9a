"""Support lists in Debian's shape, each source missing in turn, and what dpkg itself says."""

import datetime as dt
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb import decide
from runbook_nb.errors import LoadError, RunbookError, ToolRefused
from runbook_nb.examples import dpkg
from runbook_nb.examples import packages as shipped

AS_OF = "2026-11-29"
DAY = dt.date(2026, 11, 29)

STATUS = """Package: aaa
Status: install ok installed
Architecture: amd64
Version: 1.0-1
Description: a package
 whose description goes on
 .
 Version: 9 is in the text and no field

Package: libbbb1
Status: install ok installed
Architecture: amd64
Source: bbb (2.0-3)
Version: 2.0-3+b1

Package: libbbb1
Status: install ok installed
Architecture: i386
Source: bbb
Version: 2.0-3

Package: removed
Status: deinstall ok config-files
Version: 1

Package: half
Status: install ok half-installed
Version: 1

Package: ccc
Status: install ok installed
Version: 1:4.0-1
Source: ccc-src

Package: ddd-tools
Status: hold ok installed
Version: 0.9~rc1-1
Source: ddd-1.19

Package: eee
Status: install ok installed
Version: 7.1-1

Package: fff
Status: install ok installed
Version: 3.3-1
"""

LIMITED = """# Support that is limited
# columns: source, reason

bbb             Only for trusted input
ddd.*\t\tSee the release notes, #4711
eee
"""

ENDED = """# Support that has ended, or will
ccc-src\t1:4.2-1\t\t2026-04-30  \tNo upstream any more; see https://example.org/1
eee     6.0-1           2025-10-01      Not fixable
fff     3.3-9           2027-06-01      Will end
"""

RELEASES = """version,codename,series,created,release,eol,eol-lts,eol-elts
11,Bullseye,bullseye,2019-07-06,2021-08-14,2024-08-14,2026-08-31,2031-06-30
12,Bookworm,bookworm,2021-08-14,2023-06-10,2026-07-11,2028-06-30,2033-06-30
13,Trixie,trixie,2023-06-10,2025-08-09,2028-08-09,2030-06-30,2035-06-30
14,Forky,forky,2025-08-09
,Sid,sid,1993-08-16
"""


@pytest.fixture
def debian(tmp_path):
    """Write the files of a Debian machine and give what names them."""
    (tmp_path / "status").write_text(STATUS, encoding="utf-8")
    (tmp_path / "security-support-limited").write_text(LIMITED, encoding="utf-8")
    for release in ("11", "12", "13"):
        (tmp_path / f"security-support-ended.deb{release}").write_text(ENDED, encoding="utf-8")
    (tmp_path / "debian.csv").write_text(RELEASES, encoding="utf-8")
    return {
        "status": tmp_path / "status",
        "support": tmp_path,
        "releases": tmp_path / "debian.csv",
        "release": "13",
    }


@pytest.fixture
def compared(monkeypatch):
    """Compare as dpkg would, where there is none: by the versions of these files."""
    order = {("1:4.0-1", "1:4.2-1"): False, ("7.1-1", "6.0-1"): True, ("3.3-1", "3.3-9"): False}
    monkeypatch.setattr(dpkg, "is_past", lambda version, last: order[version, last])


def words(answer):
    return {row["package"]: row["verdict"] for row in answer.verdicts}


# -- the rules -----------------------------------------------------------------------------------


def facts(**changes):
    """Give a package that nothing is wrong with."""
    return {
        "problem": "",
        "limited": False,
        "support_ended": False,
        "support_ends": False,
        "past_last_version": None,
        "release_support": "regular",
    } | changes


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (facts(), "supported"),
        (facts(support_ended=True, past_last_version=False), "unsupported"),
        (facts(support_ended=True, past_last_version=True), "unsupported-newer"),
        (facts(support_ended=True, past_last_version=None), "declined"),
        (facts(support_ends=True), "ends-early"),
        (facts(limited=True), "limited"),
        (facts(release_support="lts"), "lts-only"),
        (facts(release_support="extended"), "extended-only"),
        (facts(release_support="none"), "unsupported"),
        (facts(release_support=None), "declined"),
        (facts(release_support="some"), "declined"),
        (facts(problem="no version"), "declined"),
        (facts(limited=None, support_ended=None, support_ends=None), "declined"),
        # the worse of two stands
        (facts(limited=True, support_ends=True), "ends-early"),
        (facts(limited=True, support_ended=True, past_last_version=False), "unsupported"),
        (facts(limited=True, release_support="lts"), "limited"),
        (facts(limited=True, release_support="none"), "unsupported"),
        (facts(support_ends=True, release_support="none"), "unsupported"),
    ],
)
def test_each_state_has_its_word(row, verdict):
    assert decide(row, shipped.rules()).branch == verdict


# -- a machine made of files -----------------------------------------------------------------------


def test_the_three_kinds_of_support_are_found(debian, compared):
    answer = shipped.run(as_of=AS_OF, **debian)
    assert words(answer) == {
        "ccc": "unsupported",
        "eee": "unsupported-newer",
        "fff": "ends-early",
        "ddd-tools": "limited",
        "libbbb1:amd64": "limited",
        "libbbb1:i386": "limited",
        "aaa": "supported",
    }


def test_each_carries_its_reason(debian, compared):
    rows = {row["package"]: row for row in shipped.run(as_of=AS_OF, **debian).verdicts}
    reason = "ended on 2026-04-30: No upstream any more; see https://example.org/1"
    assert rows["ccc"]["reason"] == reason
    assert rows["libbbb1:i386"]["reason"] == "Only for trusted input"
    assert rows["ddd-tools"]["reason"] == "See the release notes, #4711"
    assert rows["fff"]["reason"] == "ends on 2027-06-01: Will end"
    assert rows["aaa"]["reason"] is None


def test_support_that_will_end_has_ended_on_its_day(debian, compared):
    before = shipped.run(as_of="2027-05-31", **debian)
    on_the_day = shipped.run(as_of="2027-06-01", **debian)
    assert words(before)["fff"] == "ends-early"
    assert words(on_the_day)["fff"] == "unsupported"


def test_the_source_is_matched_whole_and_not_the_package(debian):
    support = dpkg.read_support(debian["support"], "12")
    for source, found in [("ddd-1.19", True), ("addd", False), ("bbb", True), ("bbb2", False)]:
        assert (dpkg.entry_for(source, support.limited) is not None) == found
    assert dpkg.entry_for("libbbb1", support.limited) is None


def test_the_ledger_names_each_source_and_what_it_says(debian, compared):
    checked = [item.what for item in shipped.run(as_of=AS_OF, **debian).ledger.checked]
    assert checked[:3] == [
        "dpkg, status, 7 packages",
        "lists of debian-security-support for Debian 13: 3 limited, 3 ended",
        "dates of distro-info-data: Debian 13, regular support until 2028-08-09",
    ]


@pytest.mark.parametrize(
    ("release", "day", "state"),
    [
        ("12", "2026-07-11", "regular"),
        ("12", "2026-07-12", "lts"),
        ("12", "2028-06-30", "lts"),
        ("12", "2028-07-01", "extended"),
        ("12", "2033-06-30", "extended"),
        ("12", "2033-07-01", "none"),
        ("12", "2023-06-10", "regular"),
        ("12", "2023-06-09", None),
        ("14", "2026-11-29", None),
        ("99", "2026-11-29", None),
    ],
)
def test_who_supports_a_release_is_a_matter_of_the_day(debian, release, day, state):
    found, text = dpkg.release_support(debian["releases"], release, dt.date.fromisoformat(day))
    assert found == state
    assert text


def test_a_release_in_long_term_support_colours_every_row(debian, compared):
    answer = shipped.run(as_of=AS_OF, **debian | {"release": "12"})
    assert words(answer)["aaa"] == "lts-only"
    assert words(answer)["libbbb1:amd64"] == "limited"
    assert "supported" not in words(answer).values()


# -- each source missing in turn -------------------------------------------------------------------


def test_without_a_status_file_there_is_no_answer(debian, tmp_path):
    with pytest.raises(LoadError, match="the source is missing") as told:
        shipped.run(as_of=AS_OF, **debian | {"status": tmp_path / "gone"})
    assert told.value.code == "source_missing"
    assert told.value.run.status == "failed"


def test_without_the_lists_every_package_is_declined_and_the_ledger_says_what_to_install(
    debian, tmp_path
):
    answer = shipped.run(as_of=AS_OF, **debian | {"support": tmp_path / "gone"})
    assert set(words(answer).values()) == {"declined"}
    items = {item.what: item.why for item in answer.ledger.not_checked}
    why = items["which packages have limited or ended support"]
    assert "the source is missing" in why
    assert "apt-get install debian-security-support" in why


def test_without_the_list_of_this_release_too(debian):
    (debian["support"] / "security-support-ended.deb13").unlink()
    assert set(words(shipped.run(as_of=AS_OF, **debian)).values()) == {"declined"}


def test_without_dates_what_the_lists_say_still_stands(debian, tmp_path, compared):
    answer = shipped.run(as_of=AS_OF, **debian | {"releases": tmp_path / "gone.csv"})
    found = words(answer)
    assert found["ccc"] == "unsupported"
    assert found["aaa"] == "declined"
    assert found["libbbb1:amd64"] == "declined"  # the release might be out of support altogether
    items = {item.what: item.why for item in answer.ledger.not_checked}
    assert "apt-get install distro-info-data" in items["who supports the release"]


def test_a_release_without_dates_is_declined_with_its_reason(debian, compared):
    (debian["support"] / "security-support-ended.deb14").write_text(ENDED, encoding="utf-8")
    answer = shipped.run(as_of=AS_OF, **debian | {"release": "14"})
    assert words(answer)["aaa"] == "declined"
    items = {item.what: item.why for item in answer.ledger.not_checked}
    assert items["who supports Debian 14 on 2026-11-29"] == "it is not released yet"


def test_without_dpkg_a_version_is_not_compared_and_the_package_declined(debian, monkeypatch):
    monkeypatch.setattr(dpkg.shutil, "which", lambda name: None)
    dpkg.is_past.cache_clear()
    try:
        answer = shipped.run(as_of=AS_OF, **debian)
    finally:
        dpkg.is_past.cache_clear()
    found = words(answer)
    assert found["ccc"] == found["eee"] == "declined"
    assert "past_last_version is null" in answer.why("ccc").sentence
    assert found["aaa"] == "supported"
    assert found["fff"] == "ends-early"


def test_an_empty_status_is_an_absence(debian):
    debian["status"].write_text("", encoding="utf-8")
    with pytest.raises(RunbookError, match="packages in dpkg, status"):
        shipped.run(as_of=AS_OF, **debian)


# -- hostile and broken files ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("security-support-limited", "ba(d  a pattern that is none"),
        ("security-support-ended.deb13", "ccc 1.0"),
        ("security-support-ended.deb13", "ccc 1.0 someday why"),
    ],
)
def test_a_line_that_cannot_be_read_leaves_the_question_open(debian, name, line):
    path = debian["support"] / name
    path.write_text(f"# a list\n\n{line}\n", encoding="utf-8")
    answer = shipped.run(as_of=AS_OF, **debian)
    assert set(words(answer).values()) == {"declined"}
    items = {item.what: item.why for item in answer.ledger.not_checked}
    assert "line 3" in items["which packages have limited or ended support"]


def test_an_entry_that_lacks_its_version_is_declined_and_named(debian, compared):
    text = "Package: odd\nStatus: install ok installed\n\nStatus: install ok installed\n"
    debian["status"].write_text(text, encoding="utf-8")
    answer = shipped.run(as_of=AS_OF, **debian)
    assert words(answer) == {"odd": "declined", "entry 2": "declined"}
    assert "its entry has no version" in answer.why("odd").sentence
    assert "no name and no version" in answer.why("entry 2").sentence


@given(st.text(max_size=300))
@hypothesis_settings(deadline=None, max_examples=150)
def test_no_text_makes_the_status_fail(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any-status"
    path.write_text(text, encoding="utf-8")
    for package in dpkg.installed_packages(path):
        assert package["package"]


def test_a_hostile_version_is_no_option_and_no_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for version in ("--help", "$(touch x)", "; rm -rf /", ""):
        assert dpkg.is_past(version, "1.0") in {True, False, None}
    assert list(tmp_path.iterdir()) == []


# -- dpkg and the machine --------------------------------------------------------------------------

needs_dpkg = pytest.mark.skipif(
    shutil.which("dpkg") is None, reason="dpkg, which orders versions, is not on this machine"
)


@needs_dpkg
@pytest.mark.parametrize(
    ("version", "last", "past"),
    [
        ("1.0-1", "1.0-1", False),
        ("1.0-2", "1.0-1", True),
        ("1.0~rc1-1", "1.0-1", False),
        ("1:0.1", "9.9", True),
        ("1.10", "1.9", True),
        ("1.0-1+deb12u1", "1.0-1", True),
        ("2.38", "0", True),
    ],
)
def test_versions_stand_in_the_order_of_dpkg(version, last, past):
    assert dpkg.is_past(version, last) is past


@needs_dpkg
def test_the_files_give_the_same_by_dpkg_itself(debian):
    found = words(shipped.run(as_of=AS_OF, **debian))
    assert (found["ccc"], found["eee"], found["fff"]) == (
        "unsupported",
        "unsupported-newer",
        "ends-early",
    )


on_debian = pytest.mark.skipif(
    not dpkg.STATUS.exists() or not dpkg.RELEASE.exists(), reason="this machine is no Debian"
)


@on_debian
def test_what_is_installed_here_is_what_dpkg_lists():
    listed = subprocess.run(
        [
            shutil.which("dpkg-query") or "dpkg-query",
            "-W",
            "-f",
            "${db:Status-Status} ${Package} ${Version} ${source:Package}\n",
        ],
        capture_output=True,
        check=True,
        text=True,
    ).stdout.splitlines()
    wanted = sorted(tuple(line.split()[1:]) for line in listed if line.startswith("installed "))
    found = dpkg.installed_packages(dpkg.STATUS)
    assert (
        sorted((p["package"].partition(":")[0], p["version"], p["source"]) for p in found) == wanted
    )


@on_debian
def test_the_counts_add_up_on_this_machine():
    answer = shipped.run(as_of=AS_OF)
    counts = answer.verdicts.counts()
    assert sum(counts.values()) == answer["result"]["rows_total"]
    assert set(counts) <= set(shipped.RANK)
    gaps = [item.what for item in answer.ledger.not_checked]
    missing = "which packages have limited or ended support"
    # Green only where the lists were read; where they are missing nothing is.
    assert (missing in gaps) == (not Path(dpkg.SUPPORT, "security-support-limited").exists())
    if missing in gaps:
        assert not {"supported", "lts-only"} & counts.keys()


def test_the_release_is_read_off_its_file(tmp_path):
    path = tmp_path / "debian_version"
    for text, release in [("12.11\n", "12"), ("13\n", "13"), ("trixie/sid\n", None)]:
        path.write_text(text, encoding="utf-8")
        assert dpkg.read_release(path) == release
    with pytest.raises(LoadError, match="the source is missing"):
        dpkg.read_release(tmp_path / "gone")


def test_a_testing_release_has_no_lists_and_says_so(debian, monkeypatch):
    monkeypatch.setattr(dpkg, "read_release", lambda: None)
    answer = shipped.run(as_of=AS_OF, **debian | {"release": None})
    assert set(words(answer).values()) == {"declined"}
    whys = " / ".join(item.why or "" for item in answer.ledger.not_checked)
    assert "a release without a number" in whys


@pytest.mark.parametrize("bad", ["2026-02-30", "today", 7])
def test_an_impossible_date_is_refused_before_anything_runs(bad):
    box = shipped.toolbox()
    with pytest.raises(ToolRefused, match="as_of"):
        box.call_sync(shipped.NAME, {"as_of": bad})
    assert box.last_run is None


def test_the_date_moves_the_verdicts(debian, compared):
    answers = [shipped.run(as_of=day, **debian) for day in (AS_OF, "2031-01-01")]
    assert [words(answer)["aaa"] for answer in answers] == ["supported", "extended-only"]
    flips = answers[0].compare(answers[1]).to_frame()
    assert "aaa" in set(flips["subject"])


def test_the_ledger_says_what_no_list_can():
    answer = shipped.run([facts() | {"package": "a"}], as_of=AS_OF)
    assert isinstance(answer, rb.Envelope)
    assert [item.what for item in answer.ledger.cannot_cover] == [
        "known vulnerabilities",
        "packages from outside Debian, and what dpkg did not install",
    ]
