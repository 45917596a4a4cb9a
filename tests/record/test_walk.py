"""A walk as a sequence: what is made when, what is found, what a subject's own walk says."""

from __future__ import annotations

import pickle

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.errors import DefinitionError, SubjectNotFound
from runbook_nb.record.narrative import condition_words
from runbook_nb.record.places import runtime_id, same_subject
from runbook_nb.record.projection import COLUMNS
from runbook_nb.record.row_forms import RowForms
from runbook_nb.record.rows import Rows

RULES = rb.RuleSet("age", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], default="new")


def subjects(n, key="name", cap=10**6):
    each = (
        flow_chart("subject", lambda s: s.update(s.args["item"]), id="load")
        .add_decider("Age", id="age", rules=RULES)
        .branch("old", lambda s: s.set("v", 1))
        .branch("new", lambda s: s.set("v", 2))
        .end()
        .build()
    )
    return (
        flow_chart("c", lambda s: None, id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [{"name": f"h{i}", "age": i} for i in range(n)],
            branch=each,
            max_branches=cap,
            into="out",
            subject=key,
        )
        .add_decider("Last", lambda s: rb.decide({"age": 1}, RULES), id="last")
        .branch("old", lambda s: None)
        .branch("new", lambda s: None)
        .end()
        .build()
    )


@pytest.fixture(scope="module")
def big():
    return subjects(3000).run_sync()


def rows_made(monkeypatch):
    made = []
    one, branch = Rows.make, RowForms.branch

    def counting(self, entry, step):
        made.append(step)
        return one(self, entry, step)

    def counting_all(self, *given):
        rows, before = given[5], len(given[5])
        branch(self, *given)
        made.extend(row.step for row in rows[before:])

    monkeypatch.setattr(Rows, "make", counting)
    monkeypatch.setattr(RowForms, "branch", counting_all)
    return made


def test_the_rows_of_the_triage_shape():
    run = subjects(1).run_sync()
    assert [tuple(row.to_dict().values())[1:] for row in run.walk] == [
        ("stage", 0, "c", "start", "start#0", None, "Ran c"),
        ("stage", 0, "Each", "each", "each#1", None, "Ran Each"),
        ("fork", 0, None, "each", "each#1", None, "Fanned out: 1 of 1 items began a branch"),
        ("subflow", 0, "Each [0]", "each~0", "each~0#1", None, "Entered Each [0]"),
        ("step", 1, "Each [0]", "each~0", "each~0#1", None, "Received item"),
        ("step", 1, "Each [0]", "each~0", "each~0#1", None, "Received index"),
        ("stage", 0, "subject", "load", "each~0/load#0", "each~0", "Ran subject"),
        ("step", 1, "subject", "load", "each~0/load#0", "each~0", "Wrote name"),
        ("step", 1, "subject", "load", "each~0/load#0", "each~0", "Wrote age"),
        ("stage", 0, "Age", "age", "each~0/age#1", "each~0", "Ran Age"),
        ("step", 1, "Age", "age", "each~0/age#1", "each~0", "Read age"),
        (
            "condition",
            1,
            "Age",
            "age",
            "each~0/age#1",
            "each~0",
            condition_words(rb.decide({"age": 0}, RULES)),
        ),
        ("stage", 0, "new", "new", "each~0/new#2", "each~0", "Ran new"),
        ("step", 1, "new", "new", "each~0/new#2", "each~0", "Wrote v"),
        ("subflow", 0, "Each [0]", "each~0", "each~0#1", None, "Left Each [0]: ok"),
        ("step", 1, "Each", "each", "each#1", None, "Wrote out"),
        ("stage", 0, "Last", "last", "last#2", None, "Ran Last"),
        (
            "condition",
            1,
            "Last",
            "last",
            "last#2",
            None,
            condition_words(rb.decide({"age": 1}, RULES)),
        ),
        ("stage", 0, "new", "new", "new#3", None, "Ran new"),
    ]


def test_counting_makes_no_row(big, monkeypatch):
    made = rows_made(monkeypatch)
    walk = big.walk
    assert len(walk) == walk.total == 3000 * 12 + 7
    assert walk.steps_executed == 3000 * 4 + 4
    assert made == []


def test_a_page_makes_its_own_rows_alone(big, monkeypatch):
    made = rows_made(monkeypatch)
    at = len(big.walk) - 100
    assert len(big.walk.page(at, 7)) == 7
    assert made == list(range(at, at + 7))
    made.clear()
    assert big.walk[at].step == at
    assert big.walk[-1].stage == "new"
    assert len(made) == 2


def test_a_page_walks_over_no_entry_before_it(big, monkeypatch):
    seen = []
    real = Rows._branch

    def counting(self, fan, index, prefix, skip=0):
        seen.append(index)
        return real(self, fan, index, prefix, skip)

    monkeypatch.setattr(Rows, "_branch", counting)
    big.walk.page(3 + 12 * 2500 + 5, 2)
    assert seen == [2500]


def test_finding_one_subject_makes_no_row(big, monkeypatch):
    made = rows_made(monkeypatch)
    part = big.walk.of("h2000")
    assert (len(part), part.steps_executed) == (12, 4)
    assert made == []
    assert [row.step for row in part] == list(range(12))
    assert {row.subflow for row in part} == {None, "each~2000"}


def test_pages_beyond_the_end_or_before_the_start_are_short():
    walk = subjects(1).run_sync().walk
    assert walk.page(9999, 5) == []
    assert walk.page(0, 0) == walk.page(0, -3) == []
    assert walk.page(-5, 2) == walk.page(0, 2)
    with pytest.raises(IndexError):
        walk[9999]


def test_a_page_says_which_of_how_many_rows_it_holds():
    walk = subjects(3).run_sync().walk
    page = walk.page(5, 4)
    assert [row.step for row in page] == [5, 6, 7, 8]
    assert (page.start, page.shown, page.total, page.complete) == (5, 4, len(walk), False)
    assert walk.page(0, 10**9).complete
    beyond = walk.page(9999, 5)
    assert (beyond.start, beyond.shown, beyond.total, beyond.complete) == (9999, 0, 43, False)
    assert beyond.view().headline == "no row from 9999 on, of 43 rows"
    assert page.view().headline == "rows 5 to 8 of 43 rows"
    assert list(page.to_frame()["text"]) == [row.text for row in page]
    assert walk.page(-5, 2).start == 0
    again = pickle.loads(pickle.dumps(page))  # noqa: S301 - our own
    assert (again, again.start, again.total) == (page, 5, 43)
    with pytest.raises(TypeError):
        page.append(1)


@pytest.mark.parametrize(("start", "n"), [("5", 1), (1.5, 1), (None, 1), (0, "9"), (True, 1)])
def test_a_page_begins_at_a_whole_number(start, n):
    with pytest.raises(DefinitionError, match=r"of a page is .*, not a whole number"):
        subjects(1).run_sync().walk.page(start, n)


def test_rows_of_branches_are_those_made_one_by_one(big):
    walk = big.walk
    one_by_one = [
        walk._rows.make(entry, step) for step, entry in enumerate(walk.entries(100), start=100)
    ]
    assert walk.page(100, len(walk)) == one_by_one
    assert all(type(row) is rb.WalkRow for row in walk.page(0, 60))
    with pytest.raises(AttributeError):
        walk.page(0, 60)[9].text = "x"


def test_slices_reach_as_those_of_a_list():
    walk = subjects(2).run_sync().walk
    rows = list(walk)
    for part in (slice(2, 9), slice(None, None, 3), slice(-4, None), slice(None, None, -1)):
        assert walk[part] == rows[part]
    assert walk.rows is walk


# -- of ----------------------------------------------------------------------------------------


def test_a_subject_is_found_by_its_key_by_its_place_or_by_its_text():
    run = subjects(3).run_sync()
    assert run.walk.of("h1") == run.walk.of(index=1)
    by_age = subjects(3, key="age").run_sync()
    assert by_age.walk.of(2) == by_age.walk.of("2")
    assert by_age.walk.of(2).decisions[0].subject == 2


def test_a_subject_that_is_not_there_or_there_twice_is_an_error_that_says_so():
    run = subjects(3).run_sync()
    with pytest.raises(SubjectNotFound, match="did you mean 'h1'"):
        run.walk.of("H1")
    with pytest.raises(SubjectNotFound, match="number 7"):
        run.walk.of(index=7)
    each = flow_chart("e", lambda s: None, id="e").build()
    twice = (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E", id="each", items=lambda s: ["a", "a"], branch=each, max_branches=5, into="o"
        )
        .build()
        .run_sync()
    )
    with pytest.raises(SubjectNotFound, match="2 branches have subject a: 0, 1; add index="):
        twice.walk.of("a")
    assert len(twice.walk.of("a", index=1)) > 0
    with pytest.raises(SubjectNotFound):
        twice.walk.of("a", index=1, stage="other")
    assert issubclass(SubjectNotFound, LookupError)


def each_of(items, **options):
    look = flow_chart("e", lambda s: None, id="e").build()
    return (
        flow_chart("c", lambda s: None, id="s")
        .add_parallel_for_each(
            "E",
            id="each",
            items=lambda s: items,
            branch=look,
            max_branches=50,
            into="o",
            **options,
        )
        .build()
        .run_sync()
        .walk
    )


def test_asking_for_none_is_asking_for_what_nothing_names():
    rows = [{"id": "a"}, {"id": None}, {"id": "b"}]
    walk = each_of(rows, subject="id")
    assert walk.of(None).only[1] == 1
    with pytest.raises(SubjectNotFound, match="no branch has subject —"):
        each_of(["a", "b"]).of(None)
    with pytest.raises(SubjectNotFound, match="2 branches have subject —: 0, 1"):
        each_of([{"id": None}, {}], subject="id").of(None)
    with pytest.raises(SubjectNotFound, match="no subject was named; 3 branches began: 0, 1, 2"):
        walk.of()
    assert each_of(["a"]).of() == each_of(["a"]).of("a")
    assert walk.of(None, index=2) == walk.of("b")


def test_subjects_of_every_kind_are_found_as_a_look_at_each_would_find_them():
    nan = float("nan")
    items = ["1", 1, 1.0, True, "true", 2, "x", "—", None, nan, 2**70, "x"]
    rows = [{"id": item} for item in items] + [{"id": [1]}, {"id": [1]}, {"id": {"a": 1}}, {}]
    walk = each_of(rows, subject="id")
    for asked in (*items, [1], {"a": 1}, "nan", "NaN", "[1]", "(1 item)", str(2**70), "2", object):
        want = [
            index for fan, index, _ in walk.branches() if same_subject(fan.subject_of(index), asked)
        ]
        assert [index for _, index, _ in walk._index().find(asked)] == want, asked


def test_the_subjects_are_looked_through_once(big, calls_of):
    walk = big.walk
    walk.of("h1")
    assert calls_of(lambda: walk.of("h2999")) < 300
    assert calls_of(lambda: walk.of(index=2999)) < 300


def nested():
    inner = subjects(2)
    return (
        flow_chart("outer", lambda s: None, id="first")
        .add_parallel_for_each(
            "Sites",
            id="sites",
            items=lambda s: ["x", "y"],
            branch=inner,
            max_branches=2,
            into="all",
        )
        .build()
        .run_sync()
    )


def test_walks_go_into_nested_branches_and_down_step_by_step():
    run = nested()
    site = run.walk.of("y")
    host = site.of("h1")
    assert {row.subflow for row in host} == {"sites~1", "sites~1/each~1"}
    assert [made.runtime_stage_id for made in host.decisions] == ["sites~1/each~1/age#1"]
    assert [made.runtime_stage_id for made in site.decisions] == [
        "sites~1/each~0/age#1",
        "sites~1/each~1/age#1",
        "sites~1/last#2",
    ]
    assert [made.runtime_stage_id for made in site.own_decisions()] == ["sites~1/last#2"]
    assert list(host) == [
        row for row in host if (row.runtime_stage_id or "").startswith("sites~1/each~1")
    ]
    whole = {row.runtime_stage_id for row in run.walk}
    assert {row.runtime_stage_id for row in host} <= whole
    assert str(host)


def test_decisions_say_whom_they_are_about():
    made = nested().decisions
    assert [(m.subject, m.item) for m in made] == [
        ("h0", 0),
        ("h1", 1),
        ("x", 0),
        ("h0", 0),
        ("h1", 1),
        ("y", 1),
    ]


# -- forms -------------------------------------------------------------------------------------


def test_the_rows_as_mappings_and_as_a_frame():
    walk = subjects(2).run_sync().walk
    frame = walk.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame.to_dict("records")[3]["text"] == walk.to_dicts()[3]["text"]
    assert len(frame) == len(walk)


def test_walks_are_equal_by_their_rows_and_not_hashable():
    a, b, c = (subjects(n).run_sync().walk for n in (2, 2, 3))
    assert a == b != c
    assert a != list(a)
    with pytest.raises(TypeError):
        hash(a)


def test_rules_are_found_by_decider_in_order_of_judging():
    run = subjects(2).run_sync()
    assert run.walk.rules_at("age") == (RULES,)
    assert run.walk.rules_at("nobody") == ()


def test_names_of_places():
    assert runtime_id("", "load", 3) == "load#3"
    assert same_subject(3, "3")
    assert same_subject(True, "true")
    assert not same_subject("3", 3)
    assert not same_subject(1, True)
