"""The gates of speed that are counts: the same on every machine, so they hold in every test run."""

import asyncio
import gc
import json
import threading
import tracemalloc
import zlib

import pytest

import runbook_nb as rb
from runbook_nb.artifacts import ArtifactScope
from runbook_nb.record.walk_file import read_walk, write_walk
from runbook_nb.render import svg
from runbook_nb.render.html import render_html

N = 2_000


@pytest.fixture(scope="module")
def rows(bench):
    return bench.task.rows_of(N)


@pytest.fixture(scope="module")
def row_wise(bench, rows):
    return bench.ours.row_wise_chart(rows)


@pytest.fixture(scope="module")
def batch(bench, rows):
    return bench.ours.batch_chart(rows, N)


def calls(bench, work):
    work()  # what is made once is made
    return bench.measure.calls_of(work)


# -- time, as calls -----------------------------------------------------------------------------


def test_a_subject_judged_row_by_row_takes_few_calls(bench, row_wise):
    assert calls(bench, row_wise.run_sync) / N <= 60


def test_a_subject_judged_as_columns_takes_hardly_any_call(bench, rows):
    def more(n):
        return calls(bench, bench.ours.batch_chart(rows[:n], n).run_sync)

    assert (more(N) - more(N // 2)) / (N // 2) <= 10


def test_the_envelope_costs_in_proportion_to_what_it_shows(bench, rows):
    def beside_the_chart(n):
        chart = bench.ours.row_wise_chart(rows[:n])
        whole = calls(bench, bench.ours.answers(chart))
        return whole - calls(bench, chart.run_sync)

    assert beside_the_chart(N) <= 3 * beside_the_chart(N // 4)


def test_the_envelope_of_a_few_subjects_costs_few_calls(bench, rows):
    """Nearly all of it is spent once per answer, so that is what is held down."""
    chart = bench.ours.row_wise_chart(rows[:50])
    whole = calls(bench, bench.ours.answers(chart))
    assert whole <= 4_000
    assert whole - calls(bench, chart.run_sync) <= 1_800


def test_the_answer_about_columns_costs_few_calls(bench, rows):
    assert calls(bench, bench.ours.answers(bench.ours.batch_chart(rows, N))) <= 3_200


def test_filing_the_walk_of_an_answer_costs_as_many_calls_as_it_has_rows(bench, rows):
    """A filed walk has five hundred rows at most, and they are made from forms of their shapes."""

    def filing(n):
        chart = bench.ours.row_wise_chart(rows[:n])
        tool = rb.runbook_as_tool(
            name="triage", description="Judges rows.", procedure=lambda tools: chart
        )
        boxes = rb.Toolbox([tool]), rb.Toolbox([tool], artifacts=None)
        filed, plain = (calls(bench, lambda box=box: box.call_sync("triage")) for box in boxes)
        return filed - plain

    assert filing(50) <= 6_000
    assert filing(N) <= filing(N // 2) + 100


def test_the_envelope_of_columns_costs_the_same_for_however_many_subjects(bench, rows):
    def whole(n):
        return calls(bench, bench.ours.answers(bench.ours.batch_chart(columns(n), n)))

    def columns(n):
        return rb.rules.columns.as_columns(bench.task.columns_of(n))

    assert whole(4 * N) - whole(N) <= N // 100


def aged(version, limit, shift):
    rules = [
        rb.Rule({"days": {"gt": limit}}, "old"),
        rb.Rule({"tier": {"eq": 1}, "days": {"gt": 5}}, "mid"),
        rb.Rule({"days": {"lt": limit - 19}}, "new"),
    ]
    found = rb.RuleSet("age", version, rules, "fresh")
    hosts = [{"host": f"h{n}", "days": (7 * n + shift) % 30, "tier": n % 3} for n in range(N)]
    return rb.triage(hosts, found, subject="host", source="hosts")


def test_a_subject_of_a_copy_is_written_in_few_calls(bench):
    answer = aged("v1", 20, 0)
    assert calls(bench, lambda: answer.to_json(dossier=True)) / N <= 125


def test_two_runs_are_compared_in_few_calls_for_each_subject(bench):
    before, after = aged("v1", 20, 0), aged("v2", 22, 4)
    comparison = before.compare(after)
    assert comparison.changed > N // 4
    assert calls(bench, lambda: str(before.compare(after).counts())) / N <= 3
    assert calls(bench, lambda: before.compare(after).groups) / N <= 12
    assert calls(bench, comparison.to_dict) / comparison.changed <= 220


def test_a_limit_is_changed_without_a_call_for_each_subject(bench, rows):
    def changed(n):
        lab = rb.RuleLab(bench.ours.caller(bench.ours.row_wise_chart(rows[:n]))())
        lab.set_limit(2, "age_days", "gt", 8)
        return bench.measure.calls_of(lambda: lab.set_limit(2, "age_days", "gt", 9))

    changed(50)
    assert changed(N) - changed(N // 2) <= N // 10


def test_a_large_frame_is_counted_once(bench, monkeypatch):
    """What is told of all branches comes from one count per kind, however often it is told."""
    from runbook_nb.record.judged import JudgedFan

    counted = []
    real = JudgedFan._times
    monkeypatch.setattr(
        JudgedFan,
        "_times",
        lambda self: counted.append(not self._tally and bool(self.numbers)) or real(self),
    )
    bench.ours.caller(bench.ours.batch_chart(bench.task.columns_of(N), N))()
    assert len(counted) > 5
    assert sum(counted) == 1


def test_what_a_subject_costs_does_not_depend_on_how_many_there_are(bench, rows):
    def each(n):
        return calls(bench, bench.ours.row_wise_chart(rows[:n]).run_sync) / n

    assert each(N) <= 1.05 * each(N // 4)


def test_no_sentence_is_made_where_no_store_files_the_walk(bench, rows, monkeypatch):
    from runbook_nb.record import rows as maker

    made = []
    real = maker.Rows.make
    monkeypatch.setattr(
        maker.Rows, "make", lambda self, *given: made.append(given) or real(self, *given)
    )
    bench.ours.caller(bench.ours.row_wise_chart(rows[:100]))()
    assert made == []


# -- memory ---------------------------------------------------------------------------------------


def test_the_record_of_a_subject_is_a_few_numbers(row_wise, batch, held_by):
    assert held_by(row_wise.run_sync()) / N <= 160
    assert held_by(batch.run_sync()) / N <= 16


@pytest.mark.parametrize("kind", ["row_wise", "batch"])
def test_a_run_disturbs_the_garbage_collector_as_good_as_never(kind, request, left_by, bench, rows):
    items = [rb.rules.columns.as_columns(rows)[n] for n in range(N)] if kind == "row_wise" else rows
    make = bench.ours.row_wise_chart if kind == "row_wise" else bench.ours.batch_chart
    chart = make(items, **({} if kind == "row_wise" else {"n": N}), collecting=False)
    chart.run_sync()
    _, objects, turns = left_by(chart.run_sync)
    assert objects / N <= 0.1
    assert turns <= 1


def test_a_walk_is_filed_in_few_bytes(row_wise, batch):
    for chart in (row_wise, batch):
        written = write_walk(chart.run_sync().walk)
        whole = len(zlib.decompress(written))
        assert json.loads(zlib.decompress(written))
        assert whole / N <= 160


def test_what_a_run_keeps_of_a_subject_is_no_row_of_its_own(bench):
    def kept(n):
        chart = bench.ours.row_wise_chart(bench.task.rows_of(n))
        answer = bench.ours.caller(chart)
        answer().to_json()  # what is made once is made
        gc.collect()
        tracemalloc.start()
        try:
            envelope = answer()
            assert envelope.to_json()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert (kept(4 * N) - kept(N)) / (3 * N) <= 150


@pytest.mark.parametrize("kind", ["row_wise", "batch"])
def test_a_walk_is_written_and_read_back_in_whole_columns(bench, kind):
    def runs(n):
        rows = bench.task.rows_of(n)
        made = bench.ours.row_wise_chart(rows) if kind == "row_wise" else None
        return (made or bench.ours.batch_chart(rows, n)).run_sync()

    small, large = runs(N), runs(4 * N)
    files = {run: write_walk(run) for run in (small, large)}

    def each(work):
        return (calls(bench, lambda: work(large)) - calls(bench, lambda: work(small))) / (3 * N)

    # Where numpy is not at hand, two of them put the number of a branch with those of its shape.
    assert each(write_walk) <= 3
    assert each(lambda run: read_walk(files[run])) <= 3
    assert len(zlib.decompress(files[large])) / (4 * N) <= 40


def test_filing_many_artifacts_asks_the_file_two_things_for_each(tmp_path):
    asked = []
    artifacts = [{"kind": "k", "mediaType": "text/plain", "data": str(n)} for n in range(200)]
    with rb.SqliteArtifacts(tmp_path / "many.sqlite") as store:
        store._database.connection.set_trace_callback(asked.append)
        store.put_many_sync(ArtifactScope("c"), artifacts)
    assert len(asked) <= 2 * len(artifacts) + 10
    assert sum(said.startswith(("BEGIN", "COMMIT")) for said in asked) == 2


def test_filing_one_artifact_is_one_transaction_of_few_questions(tmp_path):
    asked = []
    with rb.SqliteArtifacts(tmp_path / "one.sqlite") as store:
        for n in range(2):
            store._database.connection.set_trace_callback(asked.append if n else None)
            store.put_sync(
                ArtifactScope("c"), {"kind": "k", "mediaType": "text/plain", "data": str(n)}
            )
    assert len(asked) <= 6
    assert sum(said.startswith("COMMIT") for said in asked) == 1


# -- tasks --------------------------------------------------------------------------------------


def test_stages_that_do_not_wait_take_no_task(bench, row_wise):
    from goals.waiting import tasks_of

    assert tasks_of(row_wise) == 0


def test_stages_that_wait_take_as_many_tasks_as_may_wait_at_once(bench, rows):
    from goals.waiting import BOUND, Waiting, tasks_of

    stage = Waiting(0)
    chart = bench.ours.chart_loading(rows[:400], stage, max_concurrency=BOUND)
    assert 0 < tasks_of(chart) <= BOUND
    asyncio.run(chart.run())
    assert 1 < stage.most <= BOUND


def test_a_branch_that_waits_takes_few_calls(bench, rows):
    """Nothing is asked of the event loop for each that is known of the worker it runs in."""
    from goals.waiting import BOUND, Waiting

    def waited(n):
        chart = bench.ours.chart_loading(rows[:n], Waiting(0), max_concurrency=BOUND)
        return calls(bench, lambda: asyncio.run(chart.run()))

    assert (waited(600) - waited(200)) / 400 <= 98


# -- what is shown --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def envelopes(bench, rows):
    made = (bench.ours.caller(bench.ours.row_wise_chart(rows[:n])) for n in (500, N))
    return [make() for make in made]


def test_a_card_is_as_large_for_many_subjects_as_for_few(envelopes):
    with rb.settings(embed=False, layout="none"):
        few, many = (render_html(envelope.view()) for envelope in envelopes)
    assert len(many.encode()) <= 64 * 1024
    assert abs(many.count("</") - few.count("</")) <= 20
    assert len(many) - len(few) <= 2_000


def test_the_picture_is_as_large_for_many_subjects_as_for_few(envelopes):
    few, many = (svg.draw(envelope.walk.flowchart().flow).svg for envelope in envelopes)
    assert few
    assert len(many.encode()) <= 20 * 1024
    assert many.count("<text") == few.count("<text")


# -- showing it again, and what is shown together --------------------------------------------------


def test_showing_an_answer_again_works_nothing_out_again(bench, envelopes):
    for envelope in envelopes:
        with rb.settings(embed=False, layout="none"):
            first = envelope.view()
            assert bench.measure.calls_of(envelope.view) <= 100
            assert envelope.view().sections is first.sections
            # Some fifty rows of three cells are drawn; a cell is written once, in some fifty calls.
            assert calls(bench, lambda envelope=envelope: render_html(envelope.view())) <= 15_000
        with rb.settings(max_table_rows=7):  # shown in another way it is another view
            assert len(envelope.view().sections[0].parts[0].rows) == 7


def test_what_is_kept_of_a_view_does_not_keep_its_envelope(bench, rows):
    import gc
    import weakref

    gc.disable()  # from the call on, so that nothing it leaves is found by chance
    try:
        envelope = bench.ours.caller(bench.ours.row_wise_chart(rows[:20]))()
        envelope.view()
        envelope.__dict__["_beside"] = beside = type("Beside", (), {})()
        gone = weakref.ref(beside)
        del beside
        del envelope
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("columnar", [False, True])
def test_showing_costs_no_call_for_a_row_that_is_not_shown(bench, columnar):
    def first(n):
        source = bench.task.columns_of(n) if columnar else bench.task.rows_of(n)
        envelope = bench.ours.caller(bench.ours.batch_chart(source, n))()
        with rb.settings(layout="none"):
            return bench.measure.calls_of(envelope._repr_mimebundle_)

    first(50)
    assert first(16_000) <= 1.05 * first(4_000)


def test_a_subject_is_found_without_a_call_for_every_other(bench, rows):
    def explained(n):
        envelope = bench.ours.caller(bench.ours.batch_chart(bench.task.columns_of(n), n))()
        return bench.measure.calls_of(lambda: envelope.why(f"cluster-{n - 1}"))

    explained(50)
    assert explained(8_000) <= explained(1_000) + 50


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_a_subject_is_explained_again_in_few_calls(bench, rows, kind):
    """Its walk is filled into forms that those before it have made."""
    source = rows if kind == "rows" else bench.task.columns_of(N)
    chart = bench.ours.row_wise_chart(rows) if kind == "rows" else bench.ours.batch_chart(source, N)
    envelope = bench.ours.caller(chart)()

    def explained(n):
        why = envelope.why(f"cluster-{n}")
        assert len(list(why.walk())) > 7
        assert why.decision.evidence

    for n in range(100, 104):  # by now names are looked up, and the shapes' forms are made
        explained(n)
    assert bench.measure.calls_of(lambda: explained(N - 17)) <= 480


def test_a_row_of_a_walk_takes_no_call_of_its_own_to_tell(bench, row_wise):
    walk = row_wise.run_sync().walk
    walk.page(0, 500)
    told = bench.measure.calls_of(lambda: [row.text for row in walk.page(0, 10_000)])
    assert told / 10_000 <= 4


# -- the references, and equality ---------------------------------------------------------------


def test_the_walk_by_hand_holds_the_facts_of_the_record(bench, rows):
    run = bench.ours.row_wise_chart(rows[:200]).run_sync()
    assert bench.ours.same_facts(run, rows[:200]) > 200 * 8


def test_facts_that_differ_are_seen(bench, rows):
    run = bench.ours.row_wise_chart(rows[:20]).run_sync()
    other = [{**row, "age_days": row["age_days"] + (n == 7)} for n, row in enumerate(rows[:20])]
    with pytest.raises(AssertionError, match="the record says"):
        bench.ours.same_facts(run, other)
    with pytest.raises(AssertionError, match=r"the record says|facts"):
        bench.ours.same_facts(run, rows[:19])


def test_columns_hold_the_same_decisions_as_rows(bench, rows, row_wise, batch):
    one = [made.decision for made in row_wise.run_sync().walk.iter_decisions()]
    other = [made.decision for made in batch.run_sync().walk.iter_decisions()]
    assert one == other
    assert len(one) == N


def test_every_reference_gives_the_verdicts_of_the_bare_loop(bench, rows):
    words = bench.task.bare_loop(rows)
    expected = {word: words.count(word) for word in set(words)}
    for text in (
        bench.task.bare_envelope(rows),
        bench.task.with_evidence(rows)[0],
        bench.task.written_walk(rows)[0],
    ):
        counters = json.loads(text)["counters"]
        assert {word: counters[word] for word in expected} == expected
        assert counters["rowsTotal"] == N


def test_an_answer_that_counts_wrong_is_seen(bench, rows):
    envelope = bench.ours.caller(bench.ours.row_wise_chart(rows[:50]))()
    bench.ours.verify(rows[:50], envelope)
    with pytest.raises(AssertionError, match="the counts are"):
        bench.ours.verify(rows[:51], envelope)


def test_explaining_a_subject_does_not_go_through_those_before_it(bench, rows):
    envelope = bench.ours.caller(bench.ours.row_wise_chart(rows))()

    def explain(n):
        walk = list(envelope.why(f"cluster-{n}").walk())
        assert len(walk) >= 8
        return walk

    explain(0)
    assert bench.measure.calls_of(lambda: explain(N - 2)) <= 1.2 * bench.measure.calls_of(
        lambda: explain(2)
    )


# -- the door of synchronous calls ---------------------------------------------------------


def wants_loop(scope):
    async def later():
        return asyncio.get_running_loop().is_running()

    return later()


@pytest.mark.parametrize("wants", [False, True])
def test_a_synchronous_call_starts_no_thread_and_a_loop_only_for_what_is_awaited(
    monkeypatch, wants
):
    started, loops = [], []
    start, make = threading.Thread.start, asyncio.new_event_loop
    monkeypatch.setattr(
        threading.Thread, "start", lambda self: (started.append(self.name), start(self))[1]
    )
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: (loops.append(1), make())[1])
    stage = wants_loop if wants else (lambda scope: threading.get_ident())
    chart = rb.flow_chart("c", stage, id="a").build()
    box = rb.Toolbox([rb.flowchart_as_tool(name="c", description="d", flowchart=chart)])
    assert chart.run_sync().result == (True if wants else threading.get_ident())
    box.call_sync("c")
    assert (started, len(loops)) == ([], 2 if wants else 0)
