"""Whole walks as bytes: every row read back, counters that are counted, files nobody can trust."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zlib
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runbook_nb as rb
from runbook_nb._json import WireReport
from runbook_nb.artifacts import ArtifactScope
from runbook_nb.errors import DefinitionError, LoadError, RunbookError, SubjectNotFound
from runbook_nb.record import tracks
from runbook_nb.record.arrow import read_arrow, write_arrow
from runbook_nb.record.brief import ItemColumns, letters, read_letters
from runbook_nb.record.walk_file import WALK_FORMAT
from runbook_nb.rules.columns import as_columns

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "chart"))

from drawn_charts import ENDING, ORDINARY, charts, run_chart
from recorded_charts import asking, everything, failing, run_of, stopping, triage

FORMS = ("columns", "arrow")

RUNS = {
    "triage": lambda: run_of(triage(), args={"who": "ops"}),
    "triage_hidden": lambda: run_of(triage(), redact={"keys": ["token"]}),
    "triage_hidden_ages": lambda: run_of(triage(), redact={"paths": ["rows[*].age", "age"]}),
    "everything": lambda: run_of(everything()),
    "everything_hidden": lambda: run_of(everything(), redact={"keys": ["v", "res"]}),
    "stopping": lambda: run_of(stopping()),
    "paused": lambda: run_of(asking()),
    "failing": lambda: run_of(failing()),
}

POSTURE = rb.RuleSet(
    "age",
    "v1",
    [rb.Rule({"known": {"eq": False}}, "unknown"), rb.Rule({"days": {"gt": 7}}, "old")],
    rb.Default("fresh"),
)


def each(items, branch=None, **options):
    look = branch or (
        rb.flow_chart("Load", lambda s: s.update(s.args["item"]), id="load")
        .add_decider("Age", rules=POSTURE, id="age")
        .branch("unknown", lambda s: s.set("verdict", "unknown"))
        .branch("old", lambda s: s.set("verdict", "old"))
        .branch("fresh", lambda s: s.set("verdict", "fresh"))
        .end()
        .build()
    )
    return (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: items,
            branch=look,
            max_branches=options.pop("cap", 10**6),
            into="out",
            **options,
        )
        .build()
    )


def rows_of(n):
    return [{"name": f"host-{i}", "days": i % 15, "known": i % 4 > 0} for i in range(n)]


def same_walk(walk, other):
    """Hold everything a walk says to another."""
    assert list(walk) == list(other)
    assert (len(walk), walk.total, walk.steps_executed) == (
        len(other),
        other.total,
        other.steps_executed,
    )
    assert [(m.decision.to_dict(), m.runtime_stage_id, m.item) for m in walk.decisions] == [
        (m.decision.to_dict(), m.runtime_stage_id, m.item) for m in other.decisions
    ]
    assert walk.structure == other.structure
    assert walk.name == other.name


# -- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_comes_back_row_by_row(name, form):
    run = RUNS[name]()
    written = rb.write_walk(run, form)
    walk = rb.read_walk(written)
    same_walk(walk, run.walk)
    assert walk.flowchart().svg == run.walk.flowchart().svg
    assert rb.write_walk(run.walk, form) == written
    again = rb.write_walk(walk, form)
    assert again == written or "hidden" in name
    same_walk(rb.read_walk(again), run.walk)
    assert walk.to_frame().equals(run.walk.to_frame())


@given(spec=charts((*ORDINARY, *ENDING), asks=1), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_pages_of_any_chart_are_those_of_the_live_walk(spec, data):
    run = run_chart(spec)
    form = data.draw(st.sampled_from(FORMS))
    walk = rb.read_walk(rb.write_walk(run, form))
    rows = run.walk.to_dicts()
    assert walk.to_dicts() == rows
    for _ in range(5):
        start = data.draw(st.integers(-2, len(rows) + 2))
        n = data.draw(st.integers(-1, len(rows) + 2))
        page = walk.page(start, n)
        live = run.walk.page(start, n)
        first = max(start, 0)
        assert page == live == [rb.WalkRow(**row) for row in rows[first : first + max(n, 0)]]
        assert (page.start, page.shown, page.total, page.complete) == (
            live.start,
            live.shown,
            live.total,
            live.complete,
        )
    for fan, index, prefix in list(run.walk.branches())[:20]:
        # Fan-outs inside others may have the same id, so that the place alone names no branch.
        if not prefix and sum(f.stage.id == fan.stage.id for f, _ in run.walk.fans()) == 1:
            mine = walk.of(index=index, stage=fan.stage.id)
            assert mine == run.walk.of(index=index, stage=fan.stage.id)


@pytest.mark.parametrize("form", FORMS)
def test_a_subject_is_found_in_a_walk_read_back(form):
    run = each(rows_of(500), subject="name").run_sync()
    walk = rb.read_walk(rb.write_walk(run, form))
    for name in ("host-0", "host-7", "host-499"):
        assert walk.of(name) == run.walk.of(name)
        assert walk.of(name).decisions[0].subject == name
    with pytest.raises(SubjectNotFound, match="did you mean 'host-9'"):
        walk.of("Host-9")


VALUES = [
    [1, [2, {"deep": (3, None)}]],
    {"a": {"b": [1.5, "x"]}},
    float("nan"),
    float("inf"),
    2**80,
    -(2**60),
    date(2026, 1, 2),
    datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    timedelta(hours=3),
    Decimal("0.10"),
    b"\x00\xff",
    frozenset({1, 2}),
    "ü\u2028\ud800",
    "x" * 500,
    None,
    True,
    -0.0,
]


@pytest.mark.parametrize("form", FORMS)
def test_values_of_every_kind_come_back_as_they_were(form):
    """In states, in items, in what was compared: seen by type, not by text alone."""
    items = [{"v": value, "days": value} for value in VALUES] * 3

    def load(scope):
        item = scope.args["item"]
        scope["v"] = item["v"]
        scope["again"] = item["v"]
        scope.update({"days": item["days"], "known": True})
        scope.emit("seen", {"v": item["v"]})

    branch = (
        rb.flow_chart("Load", load, id="load")
        .add_decider("Age", rules=POSTURE, id="age")
        .branch("unknown", lambda s: None)
        .branch("old", lambda s: None)
        .branch("fresh", lambda s: None)
        .end()
        .build()
    )
    run = each(items, branch).run_sync()
    walk = rb.read_walk(rb.write_walk(run, form))
    assert walk.to_dicts() == run.walk.to_dicts()
    (live,), (back,) = run.log.fan_outs(), walk.log.fan_outs()
    for index in range(len(live)):
        (mine, at), (other, to) = live.part(index), back.part(index)
        width = run.log.width_of(live.shape(index).codes)
        for one, two in zip(mine[at : at + width], other[to : to + width], strict=True):
            assert type(one) is type(two)
            assert repr(one) == repr(two)


def test_what_json_cannot_carry_is_counted_and_named_by_its_type():
    class Odd:
        def __deepcopy__(self, memo):
            return self

    report = WireReport()
    run = rb.flow_chart("c", lambda s: s.set("odd", Odd()), id="a").build().run_sync()
    walk = rb.read_walk(rb.write_walk(run, report=report))
    assert walk.to_dicts() == run.walk.to_dicts()
    assert list(report.replaced) == ["Odd"]


# -- what it costs -------------------------------------------------------------------------------


def test_a_subject_of_a_triage_takes_few_bytes():
    sizes = [len(zlib.decompress(rb.write_walk(each(rows_of(n)).run_sync()))) for n in (500, 1500)]
    assert (sizes[1] - sizes[0]) / 1000 <= 60
    packed = [len(rb.write_walk(each(rows_of(n)).run_sync())) for n in (500, 1500)]
    assert (packed[1] - packed[0]) / 1000 <= 12


def test_writing_takes_few_calls_per_subject(calls_of):
    runs = {n: each(rows_of(n)).run_sync() for n in (1000, 3000)}
    calls = {n: calls_of(lambda run=run: rb.write_walk(run)) for n, run in runs.items()}
    assert (calls[3000] - calls[1000]) / 2000 <= 16


def test_a_page_of_a_walk_read_back_costs_its_own_rows(calls_of):
    costs = {}
    for n in (200, 2000):
        walk = rb.read_walk(rb.write_walk(each(rows_of(n)).run_sync()))
        walk.page(0, 1)
        costs[n] = calls_of(lambda walk=walk: walk.page(len(walk) - 100, 50))
    assert costs[2000] <= costs[200] * 1.2


def test_nothing_of_pyarrow_is_imported_for_columns():
    code = (
        "import sys, runbook_nb as rb\n"
        "run = rb.flow_chart('c', lambda s: s.set('n', 1), id='a').build().run_sync()\n"
        "assert rb.read_walk(rb.write_walk(run)) == run.walk\n"
        "assert 'pyarrow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pyarrow_the_line_that_installs_it_is_told(monkeypatch):
    run = stopping().run_sync()
    written = rb.write_walk(run, "arrow")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    for act in (lambda: rb.write_walk(run, "arrow"), lambda: rb.read_walk(written)):
        with pytest.raises(RunbookError, match="needs pyarrow") as caught:
            act()
        assert caught.value.code == "not_installed"
        assert "pip install 'runbook-nb[arrow]'" in caught.value.fix


def test_an_arrow_stream_is_read_by_others_as_typed_columns():
    import pyarrow as pa

    run = each(rows_of(64), subject="name").run_sync()
    table = pa.ipc.open_stream(rb.write_walk(run, "arrow")).read_all()
    types = {field.name: field.type.value_type for field in table.schema}
    assert types["0.items.name"] == pa.string()
    assert types["0.items.days"] == pa.int64()
    assert types["0.items.known"] == pa.bool_()
    assert table["0.items.days"][0].values.to_pylist() == [row["days"] for row in rows_of(64)]


# -- what is asked wrongly -----------------------------------------------------------------------


def test_only_whole_walks_in_known_forms_are_written():
    run = each(rows_of(3), subject="name").run_sync()
    with pytest.raises(DefinitionError, match="the walk of one subject"):
        rb.write_walk(run.walk.of("host-1"))
    with pytest.raises(DefinitionError, match="form is 'json'"):
        rb.write_walk(run, "json")
    with pytest.raises(DefinitionError, match="dict is no walk"):
        rb.write_walk({})


def test_it_is_read_from_bytes_a_file_or_a_record(tmp_path):
    run = triage().run_sync()
    written = rb.write_walk(run)
    path = tmp_path / "walk.zz"
    path.write_bytes(written)
    box = rb.InMemoryArtifacts()
    scope = ArtifactScope("c")
    put = box.put_sync(scope, rb.chart_walk_columns_put_input(written))
    for source in (written, bytearray(written), path, str(path), box.get_sync(scope, put.meta.ref)):
        assert rb.read_walk(source) == run.walk
    assert rb.read_walk(zlib.decompress(written)) == run.walk


# -- hostile files -------------------------------------------------------------------------------


def refused(data, code=None, **options):
    with pytest.raises(LoadError) as caught:
        rb.read_walk(data, **options)
    error = caught.value
    assert error.where
    assert error.fix
    assert len(str(error)) < 1000
    if code is not None:
        assert error.code == code, error
    return error


def document_of(run=None):
    return json.loads(zlib.decompress(rb.write_walk(run or each(rows_of(40)).run_sync())))


def packed(document):
    return zlib.compress(json.dumps(document).encode(), 1)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not_a_walk"),
        (b"PK\x03\x04", "not_a_walk"),
        (zlib.compress(b"no json"), "not_a_walk"),
        (zlib.compress(b'{"a": NaN}'), "not_a_walk"),
        (zlib.compress(b"\xff\xfe"), "not_a_walk"),
        (zlib.compress(b"[1]"), "not_a_walk"),
        (zlib.compress(b'{"format": "runbook_nb/walk/9"}'), "unknown_format"),
        (b'{"format": 7}', "unknown_format"),
        (zlib.compress(b"[" * 100_000), "not_a_walk"),
        ("/no/such/file", "cannot_read"),
        ({"format": WALK_FORMAT}, "not_a_walk"),
        (None, "not_a_walk"),
        (b"\xff\xff\xff\xff", "not_a_walk"),
        (b"\xff\xff\xff\xff\x00\x00\x00\x00", "not_a_walk"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"x" * 64, "not_a_walk"),
    ],
)
def test_what_is_no_walk_is_refused_in_words(data, code):
    refused(data, code)


def test_a_file_cut_short_or_with_more_behind_it_is_refused():
    written = rb.write_walk(triage().run_sync())
    refused(written[:-3], "not_a_walk")
    refused(written + b"more", "not_a_walk")


def test_sizes_are_bounded_before_anything_is_unpacked():
    bomb = zlib.compress(b" " * 50_000_000, 9)
    assert len(bomb) < 60_000
    assert "max_unpacked" in refused(bomb, "too_large", max_unpacked=1_000_000).fix
    assert "max_bytes" in refused(bomb, "too_large", max_bytes=1000).fix


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(rows=d["rows"] + 1),
        lambda d: d.update(rows=str(d["rows"])),
        lambda d: d.update(rows="9" * 10_000),
        lambda d: d.update(steps=d["steps"] - 1),
        lambda d: d.pop("rows"),
        lambda d: d.update(name=3),
        lambda d: d.update(hidden=1),
        lambda d: d.update(structure=None),
        lambda d: d.update(log=None),
        lambda d: d["log"]["fan_outs"][0].update(shapes="!" * 39),
        lambda d: d["log"]["fan_outs"][0].update(shapes="~" * 40),
        lambda d: d["log"]["fan_outs"][0].update(shapes="\\" * 40),
        lambda d: d["log"]["fan_outs"][0]["values"].__setitem__(0, {"$item": "nobody"}),
        lambda d: d["log"]["fan_outs"][0]["values"].__setitem__(0, {"$item": 3}),
        lambda d: d["log"]["fan_outs"][0]["values"].__setitem__(0, {"$item": None}),
        lambda d: d["log"]["fan_outs"][0]["values"].__setitem__(0, {"$arrow": 0}),
        lambda d: d["log"]["fan_outs"][0].update(items=[1] * 40),
        lambda d: d["log"]["root"].update(values=[{"$item": "days"}]),
    ],
)
def test_a_damaged_document_is_refused_with_its_place(change):
    document = document_of()
    change(document)
    refused(packed(document))


def test_values_taken_from_items_are_bounded(monkeypatch):
    from runbook_nb.record import restored

    document = document_of()
    rb.read_walk(packed(document))
    monkeypatch.setattr(restored, "MOST_PARTS", 50)
    assert "takes more than 50 values from items" in str(refused(packed(document), "bad_log"))


def test_bytes_changed_anywhere_are_refused_or_read_as_some_walk():
    draw = random.Random(7)
    for form in FORMS:
        written = rb.write_walk(each(rows_of(40)).run_sync(), form)
        plain = zlib.decompress(written) if form == "columns" else written
        for _ in range(150):
            changed = bytearray(plain)
            for _ in range(draw.randint(1, 3)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            try:
                walk = rb.read_walk(bytes(changed))
            except LoadError:
                continue
            assert len(list(walk)) == len(walk)
            walk.decisions  # noqa: B018 - asking is the question


def arrow_of(document, arrays=None, metadata=None, compression=None, batches=1):
    import pyarrow as pa

    arrays = arrays if arrays is not None else {}
    text = json.dumps(document).encode()
    schema = pa.schema(
        [pa.field(name, array.type) for name, array in arrays.items()],
        metadata=metadata if metadata is not None else {b"runbook_nb.walk": text},
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for _ in range(batches):
            writer.write_batch(pa.record_batch(list(arrays.values()), schema=schema))
    return sink.getvalue().to_pybytes()


def test_arrow_streams_that_are_not_ours_are_refused():
    import pyarrow as pa

    document = {"log": {"fan_outs": [{"items": {"$arrow": 0}}]}}
    one = {"0.items": pa.array([[1, 2]], pa.large_list(pa.int64()))}
    assert read_arrow(arrow_of(document, one))["log"]["fan_outs"][0]["items"] == [1, 2]
    for made in (
        arrow_of(document, one, metadata={}),
        arrow_of(document, one, batches=2),
        arrow_of(document, one, compression="lz4"),
        arrow_of(document, {"a": pa.array([1])}),
        arrow_of(document, {"a": pa.array([[[1]]])}),
        arrow_of(document, {"a": pa.array([[1], [2]], pa.large_list(pa.int64()))}),
        arrow_of(document, {"a": pa.array([None], pa.large_list(pa.int64()))}),
        arrow_of({"log": {"fan_outs": [{"items": {"$arrow": 1}}]}}, one),
        arrow_of({"log": {"fan_outs": [{"items": {"$arrow": True}}]}}, one),
        arrow_of({"log": {"fan_outs": [{"items": {"$arrow": 0}}] * 2}}, one),
        arrow_of("no mapping", one, metadata={b"runbook_nb.walk": b"\xff"}),
        arrow_of("no mapping", one),
        arrow_of(document),
    ):
        refused(made)


def test_a_documents_columns_come_back_in_their_places():
    column = [None, *range(30)]
    texts = [f"t{i}" for i in range(31)]
    fan = {"items": {"$table": [["a", "b"], column, texts]}, "values": [[1.5] * 20, [True] * 3]}
    document = {"log": {"fan_outs": [fan]}}
    assert read_arrow(write_arrow(json.loads(json.dumps(document)))) == document


# -- the brief forms -----------------------------------------------------------------------------


def test_a_column_is_that_of_items_only_where_the_very_values_stand():
    rows = [{"a": "x" * 3, "n": 1}, {"a": "y" * 3, "n": True}]
    columns = ItemColumns(rows)
    assert columns.holds("n", [0, 1], [1, True])
    assert not columns.holds("n", [0, 1], [True, True])
    assert not columns.holds("n", [0, 1], [1, 1])
    assert not columns.holds("n", [0], [1.0])
    assert not columns.holds(None, [0], [1])
    assert not columns.holds("zz", [0], [1])
    assert not columns.holds("a", [], [])
    held = as_columns([{"a": 1, "b": 2}, {"a": 3}])
    assert ItemColumns(held).column("a") == [1, 3]
    assert ItemColumns(held).column("b") is None
    assert ItemColumns(held).column("c") is None
    assert ItemColumns(["a"]).column("a") is None
    assert ItemColumns([{"a": 1}, {}]).column("a") is None


@given(st.lists(st.integers(-1, 90), max_size=40))
def test_letters_come_back_as_the_shapes_they_were(shapes):
    text = letters(shapes, {number: number for number in shapes})
    if text is not None:
        assert read_letters(text, max(shapes) + 1, "here") == shapes
        assert json.dumps(text) == f'"{text}"'


def test_where_runs_are_long_or_shapes_many_no_letters_are_written():
    assert letters([0] * 50 + [1] * 50, {0: 0, 1: 1}) is None
    assert letters(list(range(200)), {number: number for number in range(200)}) is None
    assert letters([], {-1: -1}) is None


def test_columns_compared_all_at_once_give_what_values_compared_one_by_one_do(monkeypatch):
    import numpy

    rows = [{"name": f"n{i}", "days": i % 50, "late": i % 7 == 0} for i in range(300)]

    def judge(scope):
        scope.set("again", scope["days"])
        scope.set("late", bool(scope["days"] % 7))  # of its own
        if scope["days"] > 20:
            scope.set("called", scope["name"])

    chart = (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: rows,
            branch=rb.flow_chart("one", lambda s: s.update(s.args["item"]), id="load")
            .add_function("Judge", judge, id="judge")
            .build(),
            max_branches=len(rows),
            into="out",
        )
        .build()
    )
    walk = chart.run_sync().walk
    monkeypatch.setattr(tracks, "numpy_for", lambda length: None)
    expected = rb.write_walk(walk)
    monkeypatch.setattr(tracks, "numpy_for", lambda length: numpy if length else None)
    assert rb.write_walk(walk) == expected
    judged = collected([{"name": r["name"], "days": r["days"]} for r in rows]).walk
    assert rb.read_walk(rb.write_walk(judged)) == judged
    fans = json.loads(zlib.decompress(expected))["log"]["fan_outs"]
    held = [column for column in fans[0]["values"] if isinstance(column, dict)]
    names = [column["$item"] for column in held if "$item" in column]
    assert {"days", "name"} <= set(names)
    assert rb.read_walk(expected) == walk


# -- verdict rows --------------------------------------------------------------------------------


def collected(items, **options):
    chart = (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_judge_each(
            "Each",
            id="each",
            items=lambda s: items,
            rules=POSTURE,
            into="out",
            subject="name",
            max_branches=10**6,
        )
        .add_function(
            "Collect", lambda s: s.set("verdicts", s["out"].verdict_rows("days")), id="collect"
        )
    )
    return chart.build().run_sync(**options)


def written_verdicts(document):
    (found,) = [v for v in document["log"]["root"]["values"] if "$verdicts" in json.dumps(v)]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("redact", [None, {"keys": ["days"]}, {"values": ["host-7"]}])
def test_verdict_rows_come_back_as_the_rows_they_were(form, redact):
    run = collected(rows_of(60), redact=redact)
    walk = rb.read_walk(rb.write_walk(run, form))
    same_walk(walk, run.walk)
    (again,) = [v for v in walk.log.root.values if "erdict" in repr(v)[:200]]
    assert list(again) == list(run.state["verdicts"])


def test_verdict_rows_are_written_as_what_they_are_of():
    document = document_of(collected(rows_of(60)))
    assert written_verdicts(document) == [{"$verdicts": [0, "name", "verdict", "days"]}]
    run = collected(rows_of(60))
    document["log"]["root"]["values"][-1] = [[dict(row) for row in run.state["verdicts"]]]
    assert rb.read_walk(packed(document)).to_dicts() == run.walk.to_dicts()  # as it once was


@pytest.mark.parametrize(
    "said",
    [
        [1, "name", "verdict"],
        [-1, "name", "verdict"],
        ["0", "name", "verdict"],
        [0, "name"],
        [0, "name", "name"],
        [0, "name", 3],
        [0, "name", "verdict", ["days"]],
        3,
        "days",
    ],
)
def test_verdict_rows_that_are_none_are_refused(said):
    document = document_of(collected(rows_of(60)))
    written_verdicts(document)[0]["$verdicts"] = said
    refused(packed(document), "bad_log")


def test_verdict_rows_that_would_hold_themselves_are_refused():
    document = document_of(collected(rows_of(9)))
    (fan,) = document["log"]["fan_outs"]
    fan["items"] = [{"name": {"$verdicts": [0, "name", "verdict"]}, "days": 1, "known": True}] * 9
    refused(packed(document), "bad_log")


def test_verdict_rows_are_bounded(monkeypatch):
    from runbook_nb.record import restored

    document = document_of(collected(rows_of(60)))
    monkeypatch.setattr(restored, "MOST_PARTS", 250)  # four columns of items, and then the rows
    assert "takes more than 250 values" in str(refused(packed(document), "bad_log"))


# -- rows that are read as columns ---------------------------------------------------------------


def test_a_row_of_a_table_may_be_referred_to_and_is_one_object():
    def collect(scope):
        scope["rest"] = [slot.item for slot in scope["out"]][1:3]

    run = (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: rows_of(20),
            branch=rb.flow_chart("Keep", lambda s: s.set("row", s.args["item"]), id="k").build(),
            into="out",
            max_branches=99,
        )
        .add_function("Collect", collect, id="collect")
        .build()
        .run_sync()
    )
    for written in (rb.write_walk(run), rb.write_walk(run, "arrow")):
        walk = rb.read_walk(written)
        assert walk.to_dicts() == run.walk.to_dicts()
        (fan,) = walk.log.fan_outs()
        values, at = fan.part(7)
        assert values[at] is fan.item(7)
        assert rb.write_walk(walk) == rb.write_walk(run)


# -- names that no UTF-8 carries -----------------------------------------------------------------


@pytest.mark.parametrize("tagged", [True, False])
def test_a_lone_surrogate_in_a_name_is_shown_as_an_escape_in_a_frame(tagged):
    run = (
        rb.flow_chart("c\udc00", lambda s: s.set("k", 1), id="a", stage_name="Lo\ud800ads")
        .build()
        .run_sync()
    )
    data = rb.write_walk(run)
    if not tagged:  # as no writer of ours would put it
        document = json.loads(zlib.decompress(data))
        document["log"]["stages"][0][1] = "Lo\ud800ads"
        data = packed(document)
    walk = rb.read_walk(data)
    assert walk == run.walk
    for frame in (walk.to_frame(), run.walk.to_frame()):
        assert set(frame["stage"]) == {"Lo\\ud800ads"}


# -- rows judged by columns ----------------------------------------------------------------------


def judged(items, **options):
    return (
        rb.flow_chart("c", lambda s: None, id="a")
        .add_judge_each(
            "Each",
            id="each",
            items=lambda s: items,
            rules=POSTURE,
            into="out",
            subject="name",
            max_branches=10**6,
        )
        .build()
        .run_sync(**options)
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("redact", [None, {"keys": ["days"]}, {"values": ["host-7"]}])
def test_rows_judged_by_columns_come_back_row_by_row(form, redact):
    run = judged(rows_of(300), redact=redact)
    same_walk(rb.read_walk(rb.write_walk(run, form)), run.walk)


def test_rows_judged_by_columns_are_written_without_making_one(calls_of):
    runs = {n: judged(rows_of(n)) for n in (1000, 3000)}
    calls = {n: calls_of(lambda run=run: rb.write_walk(run)) for n, run in runs.items()}
    assert (calls[3000] - calls[1000]) / 2000 <= 12
    sizes = [len(zlib.decompress(rb.write_walk(run))) for run in runs.values()]
    assert (sizes[1] - sizes[0]) / 2000 <= 30


def test_rows_of_several_layouts_and_of_values_of_every_kind_come_back():
    rows = [
        {"name": "a", "days": 9, "known": True},
        {"days": 2, "name": "b"},
        *({"name": str(n), "days": value, "known": True} for n, value in enumerate(VALUES)),
    ]
    run = judged(rows * 4)
    for form in FORMS:
        assert list(rb.read_walk(rb.write_walk(run, form))) == list(run.walk)


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize(
    "redact",
    [
        None,
        {"keys": ["days"]},
        {"keys": ["name"]},
        {"patterns": ["host-1.*"]},
        {"paths": ["out.*.item.name"]},
        {"keys": ["verdict"]},
        {"values": ["host-7"]},
    ],
)
def test_rows_judged_by_columns_are_written_as_the_rows_that_ran(frame, redact):
    import pandas as pd
    from judged_cases import Case

    rows = [{**row, "load": n * 1.25} for n, row in enumerate(rows_of(40), 1000)]
    case = Case(POSTURE, pd.DataFrame(rows) if frame else rows, subject="name")
    runs = [chart.run_sync(redact=redact) for chart in (whole(case, "judged"), whole(case, "twin"))]
    assert runs[0].walk == runs[1].walk
    assert rb.write_walk(runs[0]) == rb.write_walk(runs[1])


def whole(case, kind):
    """Give a chart of a case alone: its last stage keeps one of the rows, which is written once."""
    case._chart = lambda add: add(rb.flow_chart("case", lambda s: None, id="begin")).build()
    return getattr(case, kind)()
