"""The views every object aims at, built by hand and compared byte for byte with golden files.

``RUNBOOK_NB_WRITE_GOLDEN=1`` writes the files anew; read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
from runbook_nb.render.markdown import render_markdown
from runbook_nb.render.text import render_line, render_text

GOLDEN = Path(__file__).parent / "golden"


def data(value, unit=None):
    return Data(value=value, unit=unit)


def badges(*counted):
    roles = {"protected": "a", "unprotected": "b", "declined": "declined"}
    roles |= {"not reached": "not_reached"}
    return tuple(Badge(word=word, role=roles.get(word, "plain"), count=n) for n, word in counted)


VERDICT_COLUMNS = (
    Column(head="verdict"),
    Column(head=data("subject")),
    Column(head=data("age"), align="right", in_text="labelled"),
    Column(head="decided by", in_text="hidden"),
)


def verdict(word, subject, age, *decided_by):
    roles = {"protected": "a", "unprotected": "b", "declined": "declined"}
    return (Badge(word=word, role=roles[word]), data(subject), data(age), decided_by)


def ledger(checked, not_checked, cannot_cover):
    return Section(
        label="Coverage",
        in_text=False,
        parts=(
            Facts(label="Checked", items=checked, total=len(checked), style="checked"),
            Facts(
                label="Not checked", items=not_checked, total=len(not_checked), style="not_checked"
            ),
            Facts(
                label="Cannot cover",
                items=cannot_cover,
                total=len(cannot_cover),
                style="cannot_cover",
            ),
        ),
    )


UNREAD = "1 row(s) that reached NO classification (verdict 'declined')"

ENVELOPE = Card(
    kind="Envelope",
    name="backup_triage",
    qualifiers=("health-signal v1",),
    eyebrow=("rules health-signal v1",),
    headline="3 rows",
    badges=badges((1, "protected"), (1, "unprotected"), (1, "declined")),
    sections=(
        Section(
            label="Verdicts",
            parts=(
                Table(
                    columns=VERDICT_COLUMNS,
                    rows=(
                        verdict("protected", "cluster-a", 2, "default"),
                        verdict(
                            "unprotected", "cluster-b", 30, data("age_days"), data(30), ">", data(7)
                        ),
                        verdict("declined", "cluster-c", None, data("age_known"), "=", data(False)),
                    ),
                    total=3,
                    rest="to_frame()",
                ),
            ),
        ),
        ledger(
            (Fact(term=data("the backup inventory")), Fact(term=data("3 rows, 15 steps"))),
            (Fact(term=data(UNREAD), detail=data("the rules could not be read for them")),),
            (Fact(term=data("WHY a protection was paused")),),
        ),
    ),
    closing=("checked 2", "not checked 1", "cannot cover 1", "walk 46 rows, complete"),
    remarks=(f"not checked: {UNREAD}",),
)

WORST = (
    verdict("unprotected", "ap-south-1/prod/billing-766", 44),
    verdict("unprotected", "eu-west-1/prod/identity-648", 30),
    verdict("unprotected", "arn:aws:rds:us-east-2:310042817756:db:ord-7f3a", 21),
    verdict("unprotected", "us-east-2/prod/orders-544", 14),
    verdict("unprotected", "eu-central-1/prod/ledger-192", 12),
    verdict("unprotected", "eu-central-1/prod/identity-679", 9),
    verdict("unprotected", "eu-west-1/prod/catalog-742", 8),
    verdict("declined", "eu-west-1/stage/orders-326", None),
    verdict("declined", "eu-west-1/prod/audit-529", None),
    verdict("declined", "us-east-2/prod/search-415", None),
    *(verdict("protected", f"us-east-2/prod/orders-{n}", n % 7) for n in range(40)),
)

ENVELOPE_312 = Card(
    kind="Envelope",
    name="backup_triage",
    qualifiers=("health-signal v3",),
    eyebrow=("rules health-signal v3",),
    headline="312 subjects",
    badges=badges((282, "protected"), (7, "unprotected"), (14, "declined"), (9, "not reached")),
    sections=(
        Section(
            label="Verdicts",
            parts=(
                Table(
                    columns=VERDICT_COLUMNS[:3],
                    rows=tuple(row[:3] for row in WORST),
                    total=303,
                    rest="to_frame()",
                    note="worst first",
                ),
            ),
        ),
    ),
    closing=("checked 4", "not checked 4", "cannot cover 2", "walk 500 of 3646 rows"),
    remarks=("not checked: 9 subject(s) of 'Assess each subject' not reached; and 3 more",),
)

WALK = Card(
    kind="Walk",
    name="backup-protection-triage",
    qualifiers=("health-signal v3",),
    headline="1215 steps, 312 subjects, 500 of 3646 rows",
    sections=(
        Section(
            label="Walk",
            parts=(
                Flow(
                    lines=(
                        FlowLine(
                            depth=0,
                            cells=("inventory", "", ("called", data("backup_inventory"), "once")),
                        ),
                        FlowLine(
                            depth=0,
                            cells=(
                                data("Assess each subject"),
                                "",
                                "303 of 312 done, 9 not reached: past the cap of 303 branches",
                            ),
                        ),
                        FlowLine(depth=1, cells=(data("load"), "", "303 times")),
                        FlowLine(depth=1, cells=(data("Protection posture"), "", "303 times")),
                        FlowLine(
                            depth=2,
                            cells=(
                                data("declined"),
                                14,
                                "rule 1",
                                (data("age_known"), "=", data(False)),
                                data("the age signal is unreadable"),
                            ),
                        ),
                        FlowLine(
                            depth=2,
                            state="not_taken",
                            cells=(
                                data("exempt"),
                                0,
                                "rule 2",
                                (data("policy"), "=", data('"exempt"')),
                                "not taken",
                            ),
                        ),
                        FlowLine(
                            depth=2,
                            cells=(
                                data("unprotected"),
                                7,
                                "rule 3",
                                (data("age_days"), "8…44 >", data(7)),
                                data("last backup older than the 7-day threshold"),
                            ),
                        ),
                        FlowLine(
                            depth=2,
                            cells=(
                                data("protected"),
                                282,
                                "default",
                                "no rule fired",
                                data("last backup within the 7-day threshold"),
                            ),
                        ),
                        FlowLine(depth=0, cells=(data("Collect"),)),
                    ),
                    summary="303 of 312 assessed: 282 protected, 7 unprotected, 14 declined",
                    notes=(
                        "control flow only, every decision kept",
                        "303 like branches shown once",
                    ),
                ),
            ),
        ),
    ),
)

EVIDENCE_COLUMNS = (
    Column(head="rule"),
    Column(head="leads to"),
    Column(head="key"),
    Column(head="actual", align="right"),
    Column(head="op"),
    Column(head="limit"),
    Column(head="result"),
)

DECISION = Card(
    kind="Decision",
    name="cluster-b",
    headline="unprotected by rule 2 of health-signal v1: age_days 30 > 7",
    sections=(
        Section(
            label="Evidence",
            note="2 of 2 rules tried, in order, first match wins",
            parts=(
                Table(
                    columns=EVIDENCE_COLUMNS,
                    rows=(
                        (
                            1,
                            Badge(word="declined", role="declined"),
                            data("age_known"),
                            data(True),
                            "=",
                            data(False),
                            "no",
                        ),
                        (
                            2,
                            Badge(word="unprotected", role="b"),
                            data("age_days"),
                            data(30),
                            ">",
                            data(7),
                            "yes, taken",
                        ),
                        (
                            "default",
                            Badge(word="protected", role="a"),
                            "no condition",
                            "",
                            "",
                            "",
                            "not needed",
                        ),
                    ),
                    total=3,
                ),
            ),
        ),
        Section(
            label="Values at the decision",
            in_text=False,
            parts=(
                Table(
                    columns=(Column(head="key"), Column(head="value"), Column(head="written by")),
                    rows=((data("age_days"), data(30), data("load")),),
                    total=1,
                ),
            ),
        ),
    ),
    closing=("last backup older than the 7-day threshold", "walk row 27 of 46"),
)

UNREADABLE = Card(
    kind="Decision",
    name="cluster-c",
    headline="declined: rule 1 of health-signal v2 could not be read, age_days is missing",
)

COMPARE_COLUMNS = (
    Column(head="subject"),
    Column(head="key"),
    Column(head="actual", align="right", in_text="joined"),
    Column(head="v3 decided by", in_text="hidden"),
    Column(head="v4 decided by", in_text="hidden"),
)


def flip(subject, key, actual, before, after):
    return (data(subject), data(key), data(actual), before, after)


LOOSENED = (
    flip("us-east-2/prod/orders-544", "age_days", 14, "rule 3, > 7", "default"),
    flip("eu-central-1/prod/ledger-192", "age_days", 12, "rule 3, > 7", "default"),
    flip("eu-central-1/prod/identity-679", "age_days", 9, "rule 3, > 7", "default"),
    flip("eu-west-1/prod/catalog-742", "age_days", 8, "rule 3, > 7", "default"),
)
ADDED = (
    flip("eu-west-1/prod/billing-118", "retention_days", 3, "default", "rule 4, < 7"),
    flip("eu-west-1/prod/catalog-540", "retention_days", 5, "default", "rule 4, < 7"),
    flip("us-east-2/prod/ledger-207", "retention_days", 6, "default", "rule 4, < 7"),
)


def compare(loosened, added):
    protected, unprotected = Badge(word="protected", role="a"), Badge(word="unprotected", role="b")
    rows = (*loosened, *added)
    return Card(
        kind="Compare",
        name="health-signal v3 -> v4",
        headline="7 of 303 verdicts changed",
        badges=badges((296, "unchanged"), (9, "not compared")),
        sections=(
            Section(
                label="Changed",
                parts=(
                    Table(
                        columns=COMPARE_COLUMNS,
                        rows=rows,
                        total=len(rows),
                        groups=(
                            Group(
                                label=(unprotected, "->", protected),
                                start=0,
                                total=4,
                                note="rule 3 limit raised, 7 -> 14",
                            ),
                            Group(
                                label=(protected, "->", unprotected),
                                start=len(loosened),
                                total=3,
                                note="rule 4 added",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


COMPARE = compare(LOOSENED, ADDED)

PLAN = Card(
    kind="Plan",
    name="nist-800-61-ir",
    qualifiers=("safe",),
    headline="stuck at step 4 of 6, containment · 2 required steps not done",
    sections=(
        Section(
            label="Steps",
            parts=(
                Table(
                    columns=(
                        Column(head="step", align="right"),
                        Column(head="status"),
                        Column(head="id"),
                        Column(head="expected tools"),
                        Column(head="calls", in_text="labelled"),
                        Column(head="probes", in_text="labelled"),
                    ),
                    rows=(
                        ("1", "completed", data("detection"), "query_siem ok 2", "2", "1/1"),
                        ("2", "completed", data("analysis"), "enrich_indicator ok 3", "3/5", "1/2"),
                        ("> 4", "stuck", data("containment"), "isolate_host failed 3", "3/3", ""),
                    ),
                    total=3,
                    details=(
                        Detail(row=1, text=("evidence incomplete:", data("whois"))),
                        Detail(row=2, text=("refused 2", data("delete_mailbox"), ": not expected")),
                    ),
                ),
            ),
        ),
    ),
    closing=("deviations 4", "evidence 3 of 4 probes on the steps reached"),
)

EMPTY = Card(
    kind="Envelope",
    name="backup_triage",
    qualifiers=("health-signal v1",),
    headline="0 subjects, no rule was tried",
)
ALL_DECLINED = Card(
    kind="Envelope",
    name="backup_triage",
    qualifiers=("health-signal v1",),
    headline="3 rows",
    badges=badges((3, "declined")),
    tail="no verdict was reached",
)
FAILED = Card(
    kind="Run",
    name="backup_triage",
    state="failed at collect: KeyError, no key age_days",
    headline="3 of 3 subjects reached, no answer",
)
ABSENT = Card(
    kind="Absent",
    name="backup_inventory",
    headline="nothing found for: backup jobs of tenant acme · try tenant_list",
)

LEDGER = Card(
    kind="Ledger",
    name="backup_triage",
    headline="1 checked, 2 not checked, 0 cannot cover",
    sections=(
        Section(
            label="",
            parts=(
                Prose(text=data("Ran 'backup-protection-triage' under health-signal v3.")),
                Facts(label="Checked", items=(Fact(term=data("the inventory")),), total=1),
                Facts(
                    label="Not checked",
                    items=(
                        Fact(
                            term=data("backup jobs of tenant 'x'"),
                            detail=data("the inventory token has no read right there " * 3),
                        ),
                        Fact(term=data("restores"), badges=(Badge(word="declared"),)),
                    ),
                    total=2,
                ),
                Facts(label="Cannot cover", items=(), total=0),
            ),
        ),
    ),
)

SAMPLES = {
    "01_envelope": ENVELOPE,
    "02_envelope_312": ENVELOPE_312,
    "03_walk": WALK,
    "04_why": DECISION,
    "04b_why_unreadable": UNREADABLE,
    "05_compare": COMPARE,
    "08_plan": PLAN,
    "09_empty": EMPTY,
    "09_all_declined": ALL_DECLINED,
    "09_failed": FAILED,
    "09_absent": ABSENT,
    "10_ledger": LEDGER,
}


def golden(name, shown):
    path = GOLDEN / name
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.write_text(shown + "\n", encoding="utf-8", newline="\n")
    return path.read_bytes().decode()


@pytest.mark.parametrize("name", SAMPLES)
def test_text_is_the_golden_one_byte_for_byte(name):
    shown = render_text(SAMPLES[name])
    assert shown + "\n" == golden(f"{name}.txt", shown)


@pytest.mark.parametrize("name", SAMPLES)
def test_markdown_is_the_golden_one_byte_for_byte(name):
    shown = render_markdown(SAMPLES[name])
    assert shown + "\n" == golden(f"{name}.md", shown)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_line_is_the_first_line_of_the_text(name):
    assert render_text(SAMPLES[name]).split("\n")[0] == render_line(SAMPLES[name])


def test_no_golden_file_is_without_its_sample():
    kept = {path.name for path in GOLDEN.iterdir()}
    assert kept == {f"{name}.{kind}" for name in SAMPLES for kind in ("txt", "md")}


def test_grouped_rows_stand_under_what_they_have_in_common():
    shown = render_text(compare(LOOSENED[:2], ADDED[:1]))
    assert shown == "\n".join(
        [
            "Compare health-signal v3 -> v4 · 7 of 303 verdicts changed"
            " (296 unchanged, 9 not compared)",
            "  unprotected -> protected   4  rule 3 limit raised, 7 -> 14",
            "    us-east-2/prod/orders-544      age_days 14",
            "    eu-central-1/prod/ledger-192   age_days 12",
            "  protected -> unprotected   3  rule 4 added",
            "    eu-west-1/prod/billing-118     retention_days 3",
        ]
    )
