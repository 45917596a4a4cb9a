"""A stage that judges rows records what its twin records, which runs each row as a branch."""

from __future__ import annotations

import asyncio
import json
import re
import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from judged_cases import POLICIES, ROWS, RULES, Case, rule_set, told

import runbook_nb as rb
from runbook_nb._stop import Stop
from runbook_nb.chart import judged_rows
from runbook_nb.chart.builder import flow_chart
from runbook_nb.chart.judging import judged_chart
from runbook_nb.errors import ChartError, LimitReached, RunbookError, RunCancelled
from runbook_nb.record.judged import JudgedFan
from runbook_nb.record.written import read_log, write_log
from runbook_nb.rules.columns import rows_of
from runbook_nb.settings import settings as settings_of

SLOW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)

AGES = rb.RuleSet(
    "age",
    "v1",
    [rb.Rule({"age": {"gt": 7}}, "old", label="older than a week")],
    rb.Default("fresh", label="within a week"),
)


def both(case: Case, **options: object) -> tuple[dict, dict]:
    """Run the chart and its twin, whatever comes of them; give what each tells."""
    out = []
    for chart in (case.judged(), case.twin()):
        try:
            out.append(told(chart.run_sync(**options)))
        except Exception as error:  # what a stage raised
            out.append({"raised": repr(error), **told(error.run)})
    return out[0], out[1]


def same(case: Case, **options: object) -> None:
    """Hold the chart to its twin, view by view."""
    judged, twin = both(case, **options)
    assert judged.keys() == twin.keys()
    for name, value in judged.items():
        assert value == twin[name], name


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10), POLICIES)
@SLOW
def test_everything_told_is_what_the_twin_tells(rules, rows, cap, policy):
    same(Case(rules, rows, cap), redact=policy)


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10))
@SLOW
def test_the_written_log_is_that_of_the_twin_and_reads_back(rules, rows, cap):
    case = Case(rules, rows, cap)
    logs = []
    for chart in (case.judged(), case.twin()):
        try:
            logs.append(chart.run_sync().log)
        except Exception as error:
            logs.append(error.run.log)
    try:
        written = [write_log(log) for log in logs]
    except RunbookError:
        with pytest.raises(RunbookError):
            write_log(logs[0])
        return
    assert json.dumps(written[0]) == json.dumps(written[1])
    again = read_log(json.loads(json.dumps(written[0])), [rules])
    assert json.dumps(write_log(again)) == json.dumps(written[0])


# -- in charts of every kind -------------------------------------------------------------------


def each(builder, form: str, rows, rules=AGES, *, into="out", cap=1000, items=None):
    """Add the stage in one of its two forms."""
    give = items or (lambda scope: rows)
    if form == "judged":
        return builder.add_judge_each(
            "Judge", id="judge", items=give, rules=rules, into=into, max_branches=cap
        )
    return builder.add_parallel_for_each(
        "Judge",
        id="judge",
        items=lambda scope: rows_of(give(scope)),
        branch=judged_chart(rules),
        into=into,
        max_branches=cap,
    )


def everything(run) -> dict:
    """Give what a run tells, whatever its charts are."""
    return {
        "rows": [row.to_dict() for row in run.walk],
        "state": repr(run.state),
        "structure": run.structure.to_dict(),
        "recording": run.recording().to_json(),
        "status": run.status,
        "commits": repr(list(run.commits.whole())),
        "view": repr(run.walk.view()),
    }


DAYS = [{"host": "a", "age": 2}, {"host": "b", "age": 30}, {"host": "c"}, {"host": "d", "age": 9}]


def test_in_a_loop_the_executions_of_each_row_go_on_counting():
    def again(scope):
        scope["pass"] = scope.get("pass", 0) + 1
        if scope["pass"] == 3:
            scope.stop("enough")

    runs = [
        each(flow_chart("c", again, id="again"), form, DAYS).loop_to("again").build().run_sync()
        for form in ("judged", "twin")
    ]
    assert everything(runs[0]) == everything(runs[1])
    assert runs[0].state["pass"] == 3


@pytest.mark.parametrize("rows", [DAYS, [], [{"age": 1}] * 3])
def test_inside_the_branches_of_a_fan_out_and_in_a_mounted_chart(rows):
    runs = []
    for form in ("judged", "twin"):
        inner = each(flow_chart("inner", lambda s: s.set("n", 1), id="n"), form, rows).build()
        outer = (
            flow_chart("outer", lambda s: s.set("xs", [1, 2]), id="xs")
            .add_parallel_for_each(
                "Sites", id="sites", items=lambda s: s["xs"], branch=inner, into="o", max_branches=5
            )
            .add_subchart("Again", inner, id="again", inputs=lambda s: {"k": 1})
            .add_fork("Both", id="both", into="both")
            .branch("one", inner)
            .branch("two", lambda s: s.set("two", 2))
            .end()
        )
        runs.append(outer.build().run_sync())
    assert everything(runs[0]) == everything(runs[1])
    assert any(isinstance(fan, JudgedFan) for fan, _, _ in runs[0].walk.tracks()) == bool(rows)


def test_inside_branches_that_run_on_workers():
    pytest.importorskip("cloudpickle")
    rules = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], unreadable="raise")
    inner = each(flow_chart("inner", lambda s: s.set("n", 1), id="n"), "judged", DAYS, rules)
    chart = (
        flow_chart("outer", lambda s: s.set("xs", [1, 2, 3]), id="xs")
        .add_parallel_for_each(
            "Sites",
            id="sites",
            items=lambda s: s["xs"],
            branch=inner.build(),
            into="o",
            max_branches=5,
        )
        .build()
    )
    here = everything(chart.run_sync())
    for engine in ("threads", "processes"):
        run = chart.run_sync(engine=engine)
        assert everything(run) == here
        inside = [fan for fan, _, _ in run.walk.tracks() if isinstance(fan, JudgedFan)]
        assert len(inside) == 3 * len(DAYS)
    same(Case(rules, DAYS), engine="processes")


@pytest.mark.parametrize("before", [True, False])
def test_a_run_pauses_before_or_behind_the_stage_and_goes_on(before):
    runs = []
    for form in ("judged", "twin"):

        def ask(scope):
            scope["said"] = rb.interrupt(scope, "go on?")

        builder = flow_chart("c", lambda s: s.set("n", 1), id="n")
        if before:
            builder = builder.add_function("Ask", ask, id="ask")
        builder = each(builder, form, DAYS, cap=3)
        if not before:
            builder = builder.add_function("Ask", ask, id="ask")
        chart = builder.build()
        paused = chart.run_sync()
        assert paused.status == "paused"
        checkpoint = json.loads(json.dumps(paused.checkpoint))
        runs.append((json.dumps(paused.checkpoint), chart.resume_sync(checkpoint, "yes")))
    assert runs[0][0] == runs[1][0]
    assert everything(runs[0][1]) == everything(runs[1][1])
    assert runs[0][1].state["said"] == "yes"


def test_more_kinds_of_rows_than_a_byte_can_number():
    rows = [{f"k{i % 75}": i, "age": 3 if i % 2 else 20 + i} for i in range(450)]
    rows += [{"age": None, f"k{i}": 1} for i in range(150)]
    same(Case(AGES, rows, subject=None))
    fan = next(Case(AGES, rows).judged().run_sync().log.fan_outs())
    assert isinstance(fan, JudgedFan)
    assert len(fan.kinds) == 300
    assert fan.numbers.itemsize == 2


def test_rows_that_share_no_keys_are_run_one_by_one():
    rows = [{f"k{i}": i, "age": i} for i in range(300)]
    same(Case(AGES, rows))
    fan = next(Case(AGES, rows).judged().run_sync().log.fan_outs())
    assert not isinstance(fan, JudgedFan)


def test_a_function_rule_may_be_asynchronous():
    async def odd(facts):
        await asyncio.sleep(0)
        return facts["age"] % 2 == 1

    rules = rb.RuleSet("odd", "v1", [rb.Rule(odd, "odd")], default="even", unreadable="raise")
    same(Case(rules, DAYS))


def test_what_refuses_is_a_failed_slot_that_says_what_it_read():
    rules = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], unreadable="raise")
    rows = [{"age": 9}, {"age": "nine"}, {"age": None}, {}, {"age": 1}]
    same(Case(rules, rows, subject=None))
    slots = Case(rules, rows).judged().run_sync().slots("judge")
    assert [slot.status for slot in slots] == ["ok", "failed", "failed", "failed", "failed"]
    assert "age is null" in slots[2].reason
    assert "age is missing" in slots[3].reason
    assert "no rule matched" in slots[4].reason


# -- what is given -----------------------------------------------------------------------------


def frames():
    """Give one table in every form."""
    pd, pa, np = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "numpy"))
    columns = {"host": ["a", "b", "c"], "age": [2, None, 30]}
    return [
        pd.DataFrame(columns),
        pd.DataFrame({"host": columns["host"], "age": pd.array(columns["age"], dtype="Int64")}),
        columns,
        {"host": columns["host"], "age": np.array([2.0, float("nan"), 30.0])},
        pa.table(columns),
        pa.table(columns).to_batches()[0],
        tuple(rows_of(columns)),
        rb.judge_frame(columns, AGES).columns if hasattr(rb, "judge_frame") else columns,
    ]


def test_rows_may_be_given_in_any_form():
    for given_rows in frames():
        same(Case(AGES, given_rows))
        slots = Case(AGES, given_rows).judged().run_sync().slots("judge")
        assert [slot.branch for slot in slots] == ["fresh", "declined", "old"]


def test_no_rows_at_all_are_no_items():
    for nothing in (None, [], {}, ()):
        run = each(flow_chart("c"), "judged", nothing).build().run_sync()
        assert len(run.slots("judge")) == 0
        assert run.status == "ok"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("abc", "pass a DataFrame, a mapping of columns, a list of mappings"),
        ([{"a": 1}, 2], "pass a list with one mapping per subject"),
        ({"a": [1], "b": [1, 2]}, "give every column one value per row"),
        (7, "pass a DataFrame"),
        ([{1: "x", "1": "y"}], "rename or drop one of them"),
    ],
)
def test_what_are_no_rows_is_refused_by_the_stages_name(rows, words):
    with pytest.raises(ChartError) as caught:
        each(flow_chart("c"), "judged", rows).build().run_sync()
    error = caught.value
    assert (error.code, error.where) == ("bad_items", "judge")
    assert "'Judge'" in error.message
    assert words in (error.fix or "")
    assert error.run.status == "failed"
    assert [row.type for row in error.run.walk] == ["stage", "error"]


def test_a_later_change_of_what_was_given_does_not_show():
    rows = [{"host": "a", "age": 2, "tags": ["x"]}]
    chart = each(flow_chart("c"), "judged", rows).build()
    run = chart.run_sync()
    rows[0]["age"] = 99
    rows[0]["tags"].append("y")
    rows.append({})
    assert run.slots("judge")[0].item == {"host": "a", "age": 2, "tags": ["x"]}
    assert len(run.slots("judge")) == 1


def test_without_into_nothing_is_written():
    chart = flow_chart("c").add_judge_each("J", id="j", items=lambda s: DAYS, rules=AGES).build()
    run = chart.run_sync()
    assert run.state == {}
    assert run.slots("j")[1].branch == "old"
    assert "into" not in chart.structure.node("j").detail
    assert "for each item, at most 1000000" in chart.describe()


# -- what is wrong with it ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rules": [rb.Rule({"a": {"gt": 1}}, "x")]}, "rules is list, not a RuleSet"),
        ({"decider": " "}, "the decider's name is ' ', not a text"),
        ({"items": DAYS}, "items is list, which cannot be called"),
        ({"into": 3}, "into is 3, not a state key"),
        ({"max_branches": 0}, "max_branches is 0, not a whole number from 1"),
        ({"subject": ""}, "subject is '', not a key of the items"),
        ({"tags": ["a", "a"]}, "a tag is given twice"),
        (
            {"rules": rb.RuleSet("r", "1", [rb.Rule({"a": {"gt": 1}}, "x/y")])},
            "the verdict 'x/y' cannot name a branch",
        ),
    ],
)
def test_what_cannot_be_built_says_so_with_a_remedy(changes, words):
    facts = {"id": "judge", "items": lambda s: DAYS, "rules": AGES, **changes}
    with pytest.raises(ChartError) as caught:
        flow_chart("c").add_judge_each("Judge", **facts).build()
    (problem,) = caught.value.problems
    assert words in problem.message
    assert problem.where == "'judge'"
    assert problem.fix


def test_the_name_of_the_decider_is_shown():
    chart = flow_chart("c").add_judge_each(
        "J", id="j", items=lambda s: DAYS, rules=AGES, decider="Health"
    )
    built = chart.build()
    assert built.structure.node("j/verdict").name == "Health"
    assert any(row.stage == "Health" for row in built.run_sync().walk)


# -- what ends a run ---------------------------------------------------------------------------


@pytest.fixture
def in_parts(monkeypatch):
    """Judge two rows at a time where something may end the run; call what is given in between."""

    def begin(between):
        judged = judged_rows.judged_outcomes
        parts = []

        def outcomes(rules, rows):
            parts.append(len(rows))
            between(len(parts))
            return judged(rules, rows)

        monkeypatch.setattr(judged_rows, "CHUNK", 2)
        monkeypatch.setattr(judged_rows, "judged_outcomes", outcomes)
        return parts

    return begin


ALIKE = [{"host": str(n), "age": n * 5 % 11} for n in range(9)]


def test_where_it_may_be_stopped_rows_are_judged_in_parts_to_the_same_record(in_parts):
    whole = each(flow_chart("c"), "judged", ALIKE + DAYS).build().run_sync()
    parts = in_parts(lambda part: None)
    run = each(flow_chart("c"), "judged", ALIKE + DAYS).build().run_sync(signal=Stop())
    assert parts == [2, 2, 2, 2, 2, 2, 1]
    assert everything(run) == everything(whole)


def test_a_stop_ends_the_run_between_two_parts(in_parts):
    stop = Stop()
    parts = in_parts(lambda part: stop.set("enough") if part == 3 else None)
    with pytest.raises(RunCancelled) as caught:
        each(flow_chart("c"), "judged", ALIKE).build().run_sync(signal=stop)
    run = caught.value.run
    assert len(parts) == 3
    statuses = [slot.status for slot in run.slots("judge")]
    judged = statuses.count("ok")
    assert 4 <= judged <= 6
    assert statuses == ["ok"] * judged + ["not_reached"] * (9 - judged)
    (counts,) = run.fan_outs
    assert (counts.ok, counts.not_reached) == (judged, 9 - judged)
    assert run.status == "cancelled"
    assert [row.type for row in run.walk if row.type == "error"]
    assert json.dumps(write_log(read_log(write_log(run.log)))) == json.dumps(write_log(run.log))


def test_the_time_of_a_run_is_looked_at_between_two_parts(in_parts):
    now = [0.0]

    def pass_time(part):
        now[0] += 1

    in_parts(pass_time)
    chart = each(flow_chart("c"), "judged", ALIKE).build()
    with settings_of(timer=lambda: now[0]), pytest.raises(LimitReached) as caught:
        chart.run_sync(limits=rb.Limits(seconds=2.5))
    statuses = [slot.status for slot in caught.value.run.slots("judge")]
    assert statuses.count("ok") == 4
    assert set(statuses[4:]) == {"not_reached"}


def test_an_interrupt_while_rows_are_judged_leaves_them_not_reached(in_parts):
    def interrupted(part):
        raise KeyboardInterrupt

    in_parts(interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        each(flow_chart("c"), "judged", ALIKE).build().run_sync()
    run = caught.value.run
    assert {slot.status for slot in run.slots("judge")} == {"not_reached"}
    assert run.slots("judge")[0].reason == "the run ended before it was reached"


# -- through a runbook -------------------------------------------------------------------------


@given(RULES.map(rule_set).filter(bool), ROWS, st.integers(1, 10), POLICIES)
@settings(SLOW, max_examples=40)
def test_the_envelope_of_a_runbook_is_that_of_the_twin(rules, rows, cap, policy):
    answers = []
    for form in ("judged", "twin"):

        def procedure(tools, form=form):
            chart = each(
                flow_chart("hosts", lambda s: s.set("n", 1), id="n"), form, rows, rules, cap=cap
            )

            def collect(scope):
                scope["verdicts"] = [
                    {"host": slot.item.get("host"), "verdict": slot.value.get("verdict")}
                    for slot in scope["out"]
                    if slot.status == "ok"
                ]

            return chart.add_function("Collect", collect, id="collect").build()

        tool = rb.runbook_as_tool(
            name="hosts",
            description="Judges hosts.",
            procedure=procedure,
            result_kind="verdict/hosts",
            rules=rules,
            verdicts={"decider": "Verdict"},
            redact=policy,
        )
        try:
            envelope = rb.Toolbox([tool]).call_sync("hosts")
        except Exception as error:
            answers.append(repr(error))
        else:
            answers.append(
                (
                    re.sub(r"(call|art)_\w+", "", json.dumps(envelope.to_dict(), default=repr)),
                    repr(envelope),
                    envelope.to_frame().to_csv(),
                    re.sub(r"(call|art)_\w+", "", repr(envelope.view())),
                )
            )
    assert answers[0] == answers[1]


# -- what it costs -----------------------------------------------------------------------------


def many(count: int):
    """Give a chart that judges many rows, and where its branches are kept."""
    numpy = pytest.importorskip("numpy")
    columns = {"age": numpy.arange(count) % 13, "size": numpy.arange(count) % 7 * 0.5}
    rules = rb.RuleSet(
        "two",
        "v1",
        [rb.Rule({"age": {"gt": 7}}, "old"), rb.Rule({"size": {"lt": 1}}, "small")],
        default="fine",
    )
    return each(flow_chart("c"), "judged", columns, rules, cap=count).build()


def test_a_subject_costs_a_byte_and_no_object(left_by):
    many(10).run_sync()  # what is made once is made
    run, tracked, _ = left_by(many(50_000).run_sync)
    (fan,) = run.log.fan_outs()
    kept = [fan.numbers, fan.statuses, fan.shapes, fan.offsets, fan.values, fan.kinds]
    assert sum(map(sys.getsizeof, kept)) / 50_000 < 1.1
    assert tracked / 50_000 < 0.02  # nearly all of them are the run's own
    few, fewer, _ = left_by(many(5_000).run_sync)
    assert abs(tracked - fewer) / 45_000 < 0.01
    assert few.status == "ok"


def test_counting_many_subjects_looks_at_none(calls_of):
    run = many(20_000).run_sync()
    few = many(2_000).run_sync()

    def count(one):
        return lambda: (one.fan_outs, one.steps_executed, repr(one.slots("judge")))

    for one in (run, few):
        count(one)()
    assert calls_of(count(run)) == calls_of(count(few))
    assert run.fan_outs[0].by_branch == {
        "fine": run.fan_outs[0].by_branch["fine"],
        "old": run.fan_outs[0].by_branch["old"],
        "small": run.fan_outs[0].by_branch["small"],
    }


def test_one_subject_of_many_is_explained_by_looking_at_that_one(calls_of):
    def explain(run):
        def work():
            part = run.walk.of(index=7)
            return [row.text for row in part], part.decisions[0].decision.sentence

        return work

    runs = [many(count).run_sync() for count in (20_000, 2_000)]
    for run in runs:
        explain(run)()
    assert explain(runs[0])() == explain(runs[1])()
    assert calls_of(explain(runs[0])) == calls_of(explain(runs[1]))


def test_judging_many_rows_calls_nothing_per_row(calls_of):
    def judge(count):
        chart = many(count)
        chart.run_sync()
        return lambda: asyncio.run(chart.run())  # in this thread, where calls are counted

    few, more = calls_of(judge(10_000)), calls_of(judge(20_000))
    assert (more - few) / 10_000 <= 1


@pytest.mark.parametrize("watched", [False, True])
def test_only_a_row_nobody_can_tell_the_way_of_runs_as_a_branch(watched, monkeypatch):
    began: list[int] = []
    run = judged_rows.FanOutBranches.branch

    def counted(self, index, *more):
        began.append(index)
        return run(self, index, *more)

    monkeypatch.setattr(judged_rows.FanOutBranches, "branch", counted)
    strict = rb.RuleSet("strict", "v1", AGES.rules, AGES.default, unreadable="raise")
    rows = [{"age": age} for age in (9, 1, None, 8, "x")]
    builder = flow_chart("c")
    chart = builder.add_judge_each("J", id="judge", items=lambda s: rows, rules=strict).build()
    limits = rb.Limits(seconds=999) if watched else rb.Limits()
    slots = chart.run_sync(limits=limits).slots("judge")
    assert [slot.status for slot in slots] == ["ok", "ok", "failed", "ok", "failed"]
    # Of what refuses, each cause is told by a branch; of what is decided none is needed.
    assert began == ([0, 1, 2, 4] if watched else [2, 4])
