"""Charts of every kind, whose runs are recorded by the tests of recordings."""

from __future__ import annotations

import runbook_nb as rb

POSTURE = rb.RuleSet(
    "posture",
    "v1",
    rules=[
        rb.Rule({"age": {"gt": 7}, "token": {"ne": "x"}}, then="old", label="too old"),
        rb.Rule(lambda facts: facts["age"] < 0, then="odd", label="not yet"),
    ],
    default=rb.Default("new", label="fresh"),
)


def subject():
    return (
        rb.flow_chart("Load", lambda s: s.update(s.args["item"]), id="load", tags=["first"])
        .add_decider("Age", rules=POSTURE, id="age")
        .branch("old", lambda s: s.set("verdict", "old"), description="needs work")
        .branch("odd", lambda s: s.set("verdict", "odd"))
        .branch("new", lambda s: 1 / 0 if s["age"] == 3 else s.set("verdict", "new"))
        .end()
        .build()
    )


ROWS = [
    {"name": "a", "age": 30, "token": "s3cr3t-one"},
    {"name": "b", "age": 1, "token": "s3cr3t-two"},
    {"name": "c", "age": 3, "token": "s3cr3t-three"},
    {"name": "d", "age": "x", "token": "s3cr3t-four"},
]


def inner():
    return (
        rb.flow_chart("In", lambda s: s.set("d", s.get("v", 0) * 2), id="in")
        .add_function("Out", lambda s: s["d"], id="out")
        .build()
    )


def count_up(scope):
    scope["n"] = scope.get("n", 0) + 1


def triage():
    return (
        rb.flow_chart("c", lambda s: s.set("rows", ROWS), id="rows", stage_name="Rows")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=subject(),
            max_branches=3,
            into="found",
            subject="name",
        )
        .add_function("Collect", lambda s: len(s["found"]), id="collect")
        .build()
    )


def everything():
    return (
        rb.flow_chart("all", lambda s: s.set("v", 4), id="a", stage_name="A", description="first")
        .add_subchart("Sub", inner(), id="sub", inputs={"v": "v"}, outputs=lambda r, s: {"res": r})
        .add_fork("Both", id="both", into="slots")
        .branch("x", lambda s: s.update({"k": 1, "v": 9}))
        .branch("y", inner())
        .branch("z", lambda s: 1 / 0)
        .end()
        .add_selector("Pick", lambda s: ["p"], id="pick")
        .branch("p", lambda s: s.set("pp", 1))
        .branch("q", lambda s: None)
        .end()
        .add_streaming("Talk", lambda s: s.stream("hi"), id="talk")
        .add_subchart("Late", inner, id="late", lazy=True)
        .add_decider("Enough", lambda s: "no" if s.get("n", 0) < 2 else "yes", id="enough")
        .branch("no", count_up, loop_to="late")
        .branch("yes", lambda s: s.set("done", True))
        .end()
        .add_function("Last", lambda s: s["done"], id="last")
        .build()
    )


def stopping():
    return rb.flow_chart("stop", lambda s: s.stop("enough"), id="a").build()


def asking():
    return (
        rb.flow_chart("ask", lambda s: s.set("amount", 900), id="a")
        .add_pausable(
            "Approve",
            lambda s: {"reason": f"pay {s['amount']}?"},
            lambda s, answer: s.set("paid", answer),
            id="approve",
        )
        .add_function("End", lambda s: s["paid"], id="end")
        .build()
    )


def failing():
    attempts = []

    def flaky(scope):
        attempts.append(1)
        scope["tries"] = len(attempts)
        if len(attempts) < 2:
            raise ValueError("not yet")

    return (
        rb.flow_chart("f", flaky, id="flaky", retry=rb.Retry(3))
        .add_function("Breaks", lambda s: s.set("half", 1) or 1 / 0, id="breaks")
        .add_function("Never", lambda s: None, id="never")
        .build()
    )


def run_of(chart, **options):
    try:
        return chart.run_sync(**options)
    except Exception as error:
        if error.run is None:
            raise
        return error.run


CLUSTERS = [
    {"subject": "cluster-a", "age_days": 2, "age_known": True},
    {"subject": "cluster-b", "age_days": 30, "age_known": True},
    {"subject": "cluster-c", "age_days": None, "age_known": False},
]


def backup_triage():
    """The backup triage as `foreign/make.mjs` has it."""
    posture = rb.RuleSet(
        "health-signal",
        "v1",
        rules=[
            rb.Rule(
                {"age_known": {"eq": False}},
                then="declined",
                label="age unreadable — no classification",
            ),
            rb.Rule(
                {"age_days": {"gt": 7}}, then="unprotected", label="older than the 7-day threshold"
            ),
        ],
        default=rb.Default("protected", label="no rule fired — within 7 days"),
    )

    def word(verdict):
        return lambda scope: scope.set("verdict", verdict)

    subject = (
        rb.flow_chart("Load", lambda s: s.update(s.args["item"]), id="load")
        .add_decider("Protection posture", rules=posture, id="posture")
        .branch("protected", word("protected"))
        .branch("unprotected", word("unprotected"))
        .branch("declined", word("declined"))
        .end()
        .build()
    )

    def collect(scope):
        scope["verdicts"] = [
            {
                "subject": slot.item["subject"],
                "verdict": slot.value["verdict"],
                "age": slot.item["age_days"],
            }
            for slot in scope["subject_results"]
        ]
        scope["coverage"] = {"not_checked": ["clusters that report to nobody"]}
        scope["report"] = {"stale_after_days": 7, "subjects_total": len(scope["subject_results"])}

    return (
        rb.flow_chart("Inventory", lambda s: s.set("subjects", CLUSTERS), id="inventory")
        .add_parallel_for_each(
            "Assess each subject",
            id="per-subject",
            items=lambda s: s["subjects"],
            branch=subject,
            max_branches=50,
            into="subject_results",
            subject="subject",
        )
        .add_function("Collect", collect, id="collect")
        .build()
    )
