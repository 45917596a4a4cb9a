"""How far a run has come, looked at while it runs."""

import asyncio

import pytest

import runbook_nb as rb
from runbook_nb.chart.onlookers import observing
from runbook_nb.chart.progress import MAX_SHOWN, Progress, StepProgress
from runbook_nb.errors import RunCancelled


class Watch:
    """Keeps what looks at a run, and how the run ended."""

    def __init__(self):
        self.looks, self.ended = [], []

    def __call__(self, look):
        self.looks.append(look)
        return lambda status: self.ended.append(look(status))

    def said(self):
        return self.looks[-1]().said


@pytest.fixture
def watch():
    return Watch()


def nothing(scope):
    """Do nothing."""


def branch(fn=nothing):
    return rb.flow_chart("item", fn, id="item").build()


def each(watch, seen, items=5, cap=3, fn=nothing):
    """Make a chart of three stages that notes in each how far it has come."""

    def note(scope):
        seen.append(watch.said())
        fn(scope)

    return (
        rb.flow_chart("triage", note, id="load", stage_name="Load")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda scope: list(range(items)),
            branch=branch(note),
            max_branches=cap,
            into="slots",
        )
        .add_function("Collect", note, id="collect")
        .build()
    )


# -- what is seen ----------------------------------------------------------------------------


def test_stages_and_branches_are_seen_as_they_run(watch):
    seen = []
    chart = each(watch, seen)
    with observing(watch):
        chart.run_sync()
    assert seen == [
        "stage 1 of 3, Load",
        "stage 2 of 3, Each, 0 of 3",
        "stage 2 of 3, Each, 1 of 3",
        "stage 2 of 3, Each, 2 of 3",
        "stage 3 of 3, Collect",
    ]
    assert [end.status for end in watch.ended] == ["ok"]
    assert watch.ended[0].said == "3 stages, 3 of 3 in Each"
    assert [step.state for step in watch.ended[0].steps] == ["completed"] * 3


def test_branches_that_wait_are_seen_one_by_one(watch):
    seen = []

    async def wait(scope):
        await asyncio.sleep(0)
        seen.append(watch.said())

    chart = (
        rb.flow_chart("waits", nothing, id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda scope: [1, 2, 3],
            branch=branch(wait),
            max_branches=3,
            max_concurrency=1,
            into="slots",
        )
        .build()
    )
    with observing(watch):
        chart.run_sync()
    assert seen == [f"stage 2 of 2, Each, {n} of 3" for n in range(3)]


def test_failed_branches_are_counted(watch):
    def fail(scope):
        if scope.args.get("item") == 1:
            raise ValueError("no")

    with observing(watch):
        each(watch, [], fn=fail).run_sync()
    step = watch.ended[0].steps[1]
    assert (step.done, step.total, step.failed) == (3, 3, 1)


def test_rows_that_are_judged_are_counted(watch):
    rules = rb.RuleSet("r", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], "fresh")
    rows = [{"name": n, "age": n} for n in range(20)]
    with observing(watch):
        rb.triage(rows, rules, subject="name", source="rows, 20")
    assert watch.ended[0].said == "3 stages, 20 of 20 in Judge each row"


def test_an_error_says_where_it_stood(watch):
    def fail(scope):
        raise KeyError("age_days")

    chart = (
        rb.flow_chart("c", nothing, id="a", stage_name="A")
        .add_function("B", fail, id="b")
        .add_function("C", nothing, id="c")
        .build()
    )
    with observing(watch), pytest.raises(KeyError):
        chart.run_sync()
    end = watch.ended[0]
    assert (end.status, end.said) == ("failed", "stage 2 of 3, B")
    assert [step.state for step in end.steps] == ["completed", "current", "pending"]


def test_a_stop_is_told(watch):
    stop = rb.Stop()
    chart = (
        rb.flow_chart("c", lambda scope: stop.set("enough"), id="a")
        .add_function("B", nothing, id="b")
        .build()
    )
    with observing(watch), pytest.raises(RunCancelled):
        chart.run_sync(signal=stop)
    assert watch.ended[0].status == "cancelled"


def test_a_pause_is_told_and_going_on_is_a_run_of_its_own(watch):
    def ask(scope):
        scope["answer"] = rb.interrupt(scope, "which one?")

    chart = (
        rb.flow_chart("c", nothing, id="a", stage_name="A")
        .add_function("Ask", ask, id="ask")
        .add_function(
            "C",
            nothing,
            id="c",
        )
        .build()
    )
    with observing(watch):
        run = chart.run_sync()
        assert watch.ended[0].status == "paused"
        assert watch.ended[0].said == "stage 2 of 3, Ask"
        chart.resume_sync(run.checkpoint, "this one")
    assert [end.status for end in watch.ended] == ["paused", "ok"]
    assert [step.state for step in watch.ended[1].steps] == ["completed"] * 3


def test_a_loop_goes_back_to_what_is_then_present(watch):
    seen = []

    def count(scope):
        scope["n"] = scope.get("n", 0) + 1
        seen.append(watch.said())

    def stop(scope):
        if scope["n"] == 2:
            scope.stop("enough")

    chart = (
        rb.flow_chart("c", count, id="a", stage_name="A")
        .add_function("B", stop, id="b")
        .loop_to("a")
        .build()
    )
    with observing(watch):
        chart.run_sync()
    assert seen == ["stage 1 of 2, A", "stage 1 of 2, A"]


def test_a_mounted_chart_is_named_inside_its_stage(watch):
    seen = []
    inner = rb.flow_chart("in", lambda s: seen.append(watch.said()), id="x", stage_name="X").build()
    chart = (
        rb.flow_chart("c", nothing, id="a", stage_name="A")
        .add_subchart("Mounted", inner, id="m")
        .build()
    )
    with observing(watch):
        chart.run_sync()
    assert seen == ["stage 2 of 2, Mounted, in X"]


# -- who looks -------------------------------------------------------------------------------


def test_a_run_inside_a_run_is_part_of_it(watch):
    inner = rb.flow_chart("inner", nothing, id="x").build()
    chart = rb.flow_chart("outer", lambda scope: inner.run_sync() and None, id="a").build()
    with observing(watch):
        chart.run_sync()
        chart.run_sync()
    assert [end.name for end in watch.ended] == ["outer", "outer"]


def test_a_call_of_a_toolbox_is_looked_at(watch):
    def procedure(tools):
        return rb.flow_chart("says", nothing, id="say").build()

    tool = rb.runbook_as_tool(
        name="say_it", description="Says it.", procedure=procedure, result_kind="report/said"
    )
    box = rb.Toolbox([tool])
    with observing(watch):
        box.call_sync("say_it")
        asyncio.run(box.call("say_it"))
    assert [end.status for end in watch.ended] == ["ok", "ok"]


def test_who_looks_never_ends_what_is_looked_at(watch):
    def broken(look):
        raise RuntimeError("no")

    def late(look):
        def end(status):
            raise RuntimeError("no")

        return end

    chart = each(watch, [], fn=nothing)
    for one in (broken, late):
        with observing(one):
            run = rb.flow_chart("c", nothing, id="a").build().run_sync()
        assert run.status == "ok"
    with observing(watch):  # and neither keeps others from looking
        chart.run_sync()
    assert watch.ended[0].status == "ok"


def test_nobody_is_asked_anything_while_nobody_looks(calls_of):
    """A run costs as many calls with an open door as with none."""
    chart = (
        rb.flow_chart("c", nothing, id="a")
        .add_parallel_for_each(
            "Each",
            id="e",
            items=lambda s: list(range(200)),
            branch=branch(),
            into="r",
            max_branches=200,
        )
        .build()
    )
    run = chart.run_sync

    def looked_at(watcher):
        with observing(watcher):
            return calls_of(run)

    run()
    off = min(calls_of(run) for _ in range(3))
    on = min(looked_at(lambda look: lambda status: None) for _ in range(3))
    # Being looked at costs a few calls per run, and none per branch or stage.
    assert on - off < 60


# -- views -----------------------------------------------------------------------------------


def test_the_views_agree():
    steps = (
        StepProgress("Load <b>", "completed"),
        StepProgress("Each", "current", 3, 12, 1),
        StepProgress("Collect", "pending"),
    )
    made = Progress("triage", "running", steps)
    assert repr(made) == "<Run triage running · stage 2 of 3, Each, 3 of 12, 1 failed>"
    html = made._repr_mimebundle_()[0]["text/html"]
    for word in ("Load &lt;b&gt;", "3 of 12", "completed", "running", "pending", "1 failed"):
        assert word in html
    assert "<b>" not in html
    assert html == made._repr_mimebundle_()[0]["text/html"]


def test_many_stages_are_shown_around_the_present_one():
    steps = tuple(
        StepProgress(f"stage-{n}", "completed" if n < 50 else "current" if n == 50 else "pending")
        for n in range(100)
    )
    (section,) = Progress("long", "running", steps).view().sections
    (table,) = section.parts
    assert len(table.rows) == MAX_SHOWN
    assert table.total == 100
    assert table.rows[MAX_SHOWN // 2][1].value == "stage-50"


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("ok", "finished"),
        ("failed", "failed"),
        ("cancelled", "stopped"),
        ("limited", "stopped at a limit"),
        ("paused", "waiting for an answer"),
    ],
)
def test_how_it_ended_is_said(status, word):
    made = Progress("c", status, (StepProgress("a", "current"),))
    assert repr(made).startswith(f"<Run c {word} · ")


def test_what_a_policy_hides_is_in_no_progress():
    looks = []
    inner = rb.flow_chart(
        "one", lambda scope: told.append(looks[0]()), id="one", stage_name="s3cret-1"
    )
    chart = rb.flow_chart("c s3cret-1", lambda scope: None, id="a", stage_name="load s3cret-1")
    chart = chart.add_subchart("Mount", inner.build(), id="b").build()
    told = []
    with observing(lambda look: looks.append(look) or (lambda status: told.append(look(status)))):
        chart.run_sync(redact={"values": ["s3cret-1"]})
    assert len(told) == 2
    assert "s3cret-1" not in str([(one.name, one.steps, one.inside, one.said) for one in told])
    assert told[0].inside == "[REDACTED]"
