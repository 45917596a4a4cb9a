"""The cards that HTML aims at, built by hand: one per kind of thing and per state."""

from __future__ import annotations

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

ROLES = {
    "protected": "a",
    "unprotected": "b",
    "exempt": "c",
    "declined": "declined",
    "failed": "failed",
    "not reached": "not_reached",
}


def data(value, **more):
    return Data(value=value, **more)


def verdict(word, count=None):
    return Badge(word=word, role=ROLES[word], count=count)


def row(word, subject, age, reason=None):
    if reason is None:
        known = age is not None
        limit = (data("age_days"), data(age), ">", data("7"))
        reason = limit if known else data("age_known = false", tone="code")
    return (verdict(word), data(subject), data(age), reason)


COLUMNS = (
    Column(head="verdict"),
    Column(head=data("subject")),
    Column(head=data("age", unit="days"), align="right", in_text="labelled"),
    Column(head="decided by", in_text="hidden", equation=True),
)


def facts(label, style, *items):
    made = tuple(
        Fact(term=item) if isinstance(item, str) else Fact(term=item[0], detail=item[1])
        for item in items
    )
    return Facts(label=label, items=made, total=len(made), style=style)


def ledger(checked=(), not_checked=(), cannot_cover=(), sentence=""):
    counts = f"{len(checked)} checked · {len(not_checked)} not checked"
    lists = (
        facts("Checked", "checked", *checked),
        facts("Not checked", "not_checked", *not_checked),
        facts("Cannot cover", "cannot_cover", *cannot_cover),
    )
    said = (Prose(text=sentence, tone="dim"),) if sentence else ()
    return Section(
        label="Coverage",
        parts=(*said, *lists),
        note=f"{counts} · {len(cannot_cover)} cannot cover",
        in_text=False,
    )


MEANINGS = Section(
    label="Rules",
    parts=(
        Facts(
            label="Meanings",
            items=(
                Fact(
                    term=verdict("protected"),
                    detail=data("last backup within the 7-day threshold"),
                    badges=(Badge(word="default"),),
                ),
                Fact(
                    term=verdict("exempt"),
                    detail="no meaning was declared",
                    badges=(Badge(word="never fired"),),
                ),
                Fact(term=verdict("declined"), detail=data("the age signal is unreadable")),
            ),
            total=3,
        ),
    ),
    note="health-signal v1",
    in_text=False,
)
REPORT = Section(
    label="Report",
    parts=(
        Prose(text=data("two numbers were left out"), tone="warning"),
        Facts(
            label="Report",
            items=(
                Fact(term=data("stale_after_days"), detail=data(7)),
                Fact(term=data("token"), detail=data("[REDACTED]")),
            ),
            total=2,
        ),
    ),
    note="2 fields",
)
STEPS = Flow(
    lines=(
        FlowLine(depth=0, cells=(data("inventory"),)),
        FlowLine(depth=0, cells=(data("Assess each subject"), "2 of 3 done, 1 failed")),
        FlowLine(depth=1, cells=(data("load"), "3 times", "1 failed")),
        FlowLine(depth=1, cells=(data("Protection posture"), "2 times")),
        FlowLine(
            depth=2,
            cells=(
                verdict("unprotected"),
                1,
                "rule 2",
                data("age_days 30 > 7"),
                data("last backup older than the 7-day threshold"),
            ),
        ),
        FlowLine(
            depth=2, cells=(verdict("exempt"), 0, "rule 3", "", "not taken"), state="not_taken"
        ),
        FlowLine(depth=0, cells=(data("Collect"),), state="failed"),
        FlowLine(depth=0, cells=(data("Report"),), state="not_reached"),
    ),
    summary="2 of 3 subjects done: 1 unprotected; 15 steps",
    notes=("3 like branches shown once",),
)

ENVELOPE = Card(
    kind="Envelope",
    name="backup_triage",
    qualifiers=("health-signal v1",),
    eyebrow=(("rules", data("health-signal v1", tone="code")),),
    headline="3 rows",
    heading=(3, "subjects"),
    badges=(verdict("protected", 1), verdict("unprotected", 1), verdict("declined", 1)),
    sections=(
        Section(
            label="Verdicts",
            parts=(
                Table(
                    columns=COLUMNS,
                    rows=(
                        row("protected", "cluster-a", 2, "default: no rule fired"),
                        row("unprotected", "cluster-b", 30),
                        row("declined", "cluster-c", None),
                    ),
                    total=3,
                    rest="to_frame()",
                ),
            ),
        ),
        ledger(
            ("the backup inventory, one row per job", ("3 rows, 15 steps", "one pass per row")),
            (("1 row that reached NO classification", "see ap-south-1/prod/audit-301, nothing"),),
            (("WHY a protection was paused", "no change record is collected here"),),
            "Ran 'backup-protection-triage' under health-signal v1.",
        ),
        MEANINGS,
        REPORT,
        Section(label="Walk", parts=(STEPS,), note=(1215, "steps,", 46, "of", 46, "rows")),
    ),
    closing=("checked 2",),
    remarks=("not checked: 1 row",),
    foot=("from", data("backup_triage"), " · walk filed,", 46, "rows"),
)


def many(n=50, total=303):
    rows = [row("unprotected", f"eu-west-1/prod/orders-{k}", 44 - k) for k in range(12)]
    rows += [row("declined", f"us-east-2/prod/audit-{k}", None) for k in range(3)]
    rows += [
        row("protected", f"eu-central-1/prod/search-{k}", k % 8, "default: no rule fired")
        for k in range(n - len(rows))
    ]
    return Card(
        kind="Envelope",
        name="backup_triage",
        eyebrow=("rules undeclared",),
        heading=(1312, "subjects"),
        badges=(
            verdict("protected", 1282),
            verdict("unprotected", 12),
            verdict("declined", 9),
            verdict("not reached", 9),
        ),
        sections=(
            Section(
                label="Verdicts",
                parts=(Table(columns=COLUMNS, rows=tuple(rows), total=total, rest="to_frame()"),),
                note="worst first",
            ),
            ledger(("a", "b", "c", "d"), (), ()),
        ),
        foot=("from", data("backup_triage"), " · walk not filed: no artifact store"),
    )


EVIDENCE = (
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
    eyebrow=("Protection posture", ("rules", data("health-signal v1", tone="code"))),
    headline="unprotected by rule 2 of health-signal v1: age_days 30 > 7",
    heading=(verdict("unprotected"), data("cluster-b")),
    sections=(
        Section(
            label="",
            parts=(
                Prose(
                    text=(
                        "Rule 2 fired:",
                        data("last backup older than the 7-day threshold"),
                        ". ",
                        data("age_days"),
                        "was",
                        data(30, tone="strong"),
                        ", the limit is",
                        data(7, tone="strong"),
                        ".",
                    )
                ),
            ),
            in_text=False,
        ),
        Section(
            label="Evidence",
            parts=(
                Table(
                    columns=EVIDENCE,
                    rows=(
                        (
                            *("1", verdict("declined"), data("age_known"), data(True)),
                            *("=", data(False), Badge(word="no", role="no")),
                        ),
                        (
                            *("2", verdict("unprotected"), data("age_days"), data(30)),
                            *(">", data(7), Badge(word="yes, taken", role="yes")),
                        ),
                        (
                            *("3", verdict("exempt"), data("copies"), None, "<", data(1)),
                            Badge(word="unreadable, missing", role="unreadable"),
                        ),
                        (
                            *("default", verdict("protected")),
                            *(Badge(word="no condition", role="quiet"), "", "", ""),
                            Badge(word="not needed", role="idle"),
                        ),
                    ),
                    total=4,
                    strong_rows=(1,),
                ),
            ),
            note="2 of 2 rules tried, in order, the first that is true decides",
        ),
    ),
    closing=("row 2 of 3",),
)

COMPARE = Card(
    kind="Compare",
    name="",
    eyebrow=((data("health-signal v3", tone="code"), "->", data("health-signal v4")),),
    heading="7 of 303 verdicts changed",
    badges=(
        Badge(word="unchanged", role="unchanged", count=296),
        Badge(word="not compared", role="not_reached", count=9),
    ),
    sections=(
        Section(
            label="",
            parts=(Prose(text="Judged again from the recorded values.", tone="dim"),),
        ),
        Section(
            label="Changed",
            parts=(
                Table(
                    columns=(
                        Column(head="subject"),
                        Column(head="key"),
                        Column(head="actual", align="right"),
                        Column(head="v3 decided by"),
                    ),
                    rows=tuple(
                        (
                            data(f"eu-west-1/prod/orders-{k}"),
                            data("age_days"),
                            data(8 + k),
                            "rule 3",
                        )
                        for k in range(13)
                    ),
                    total=13,
                    groups=(
                        Group(
                            label=(verdict("unprotected"), "->", verdict("protected")),
                            start=0,
                            total=8,
                            note="rule 3 limit raised, 7 to 14",
                        ),
                        Group(
                            label=(verdict("protected"), "->", verdict("unprotected")),
                            start=8,
                            total=5,
                            note="rule 4 added",
                        ),
                    ),
                ),
            ),
        ),
        Section(
            label="Counts",
            parts=(
                Table(
                    columns=(
                        Column(head="v3 by v4"),
                        Column(head=verdict("protected"), align="right"),
                        Column(head=verdict("unprotected"), align="right"),
                        Column(head="v3 total", align="right"),
                    ),
                    rows=(
                        (
                            *(verdict("protected"), data(279, tone="dim")),
                            *(data(3, tone="strong"), 282),
                        ),
                        (verdict("unprotected"), data(4, tone="strong"), data(3, tone="dim"), 7),
                        ("v4 total", 283, 6, 303),
                    ),
                    total=3,
                ),
            ),
            note="bold = changed",
        ),
    ),
)


def step(place, status, name, *rest):
    return (place, Badge(word=status, role=status), data(name), *rest)


PLAN = Card(
    kind="Playbook plan",
    name="nist-800-61-ir",
    eyebrow=(("policy", data("safe")),),
    heading="Stuck at step 4 of 6",
    badges=(
        Badge(word="completed", role="completed", count=2),
        Badge(word="stuck", role="stuck", count=1),
        Badge(word="skipped", role="skipped", count=1),
        Badge(word="pending", role="pending", count=2),
    ),
    sections=(
        Section(
            label="Steps",
            parts=(
                Table(
                    columns=(
                        Column(head="step", align="right"),
                        Column(head="status"),
                        Column(head="name"),
                        Column(head="expected tools"),
                        Column(head="calls", align="right"),
                        Column(head="probes", align="right"),
                    ),
                    rows=(
                        step(1, "completed", "detection", data("query_siem"), 2, "1/1"),
                        step(3, "skipped", "notify", data("page_owner"), 0, None),
                        step(4, "stuck", "containment", data("isolate_host"), 3, "1/1"),
                        step(5, "pending", "recovery", data("restore_host"), 0, None),
                    ),
                    total=4,
                    details=(
                        Detail(
                            row=2,
                            text=(
                                Badge(word="refused 2:", role="refused"),
                                data("delete_mailbox"),
                                "is not expected in this step",
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
    closing=("8 calls recorded", "3 refused"),
)

RUN = Card(
    kind="Run",
    name="backup_triage",
    state="failed at collect: KeyError",
    headline="15 steps, no answer",
    heading="Stopped at Collect",
    sections=(
        Section(
            label="",
            parts=(Prose(text=(data("KeyError"), "in stage", data("collect"), ": no key.")),),
        ),
        Section(label="Reached", parts=(STEPS,)),
    ),
)
ABSENT = Card(
    kind="Absent",
    name="backup_inventory",
    heading=("Nothing found", Badge(word="not a verdict", role="absent")),
    headline="nothing found for: backup jobs of tenant acme",
    sections=(
        Section(label="", parts=(Prose(text=("Looked for:", data("jobs of acme"), ".")),)),
        ledger(("the backup inventory",), ("archived tenants",), ()),
    ),
)
EMPTY = Card(
    kind="Envelope",
    name="backup_triage",
    heading="0 subjects",
    sections=(
        Section(label="", parts=(Prose(text="No subject was listed, so no rule was tried."),)),
        Section(label="Verdicts", parts=(Table(columns=COLUMNS, rows=(), total=0),)),
        ledger(("the backup inventory",), (), ("a",)),
    ),
)
TOOL = Card(
    kind="Tool",
    name="backup_triage",
    headline="Protection posture of every backup subject.",
    sections=(
        Section(
            label="",
            parts=(
                Prose(text="takes no declared arguments", tone="dim"),
                Facts(
                    label="Declares",
                    items=tuple(Fact(term=f"part {k}", detail=data(f"k/{k}")) for k in range(8)),
                    total=9,
                ),
            ),
        ),
    ),
    remarks=("not checked of its schema: oneOf",),
)

CARDS = {
    "envelope": ENVELOPE,
    "envelope_many": many(),
    "decision": DECISION,
    "compare": COMPARE,
    "plan": PLAN,
    "run_failed": RUN,
    "absent": ABSENT,
    "empty": EMPTY,
    "tool": TOOL,
}
