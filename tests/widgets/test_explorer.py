"""The explorer: what it answers, from which record, and what it never shows."""

import json

import kind_charts
import pytest
import states
from untrusted import HINTS, dropped, reading, sanitized

import runbook_nb as rb
from runbook_nb._display import DOORS
from runbook_nb.errors import DefinitionError
from runbook_nb.record.run import Run
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.settings import settings
from runbook_nb.widgets.base import MAX_STATE, WIDGET
from runbook_nb.widgets.choosing import source_of
from runbook_nb.widgets.explorer import MAX_TICKS, PAGE, Explorer, explore

HOSTILE = "</style><img src=x onerror=alert(1)>\u202e|\\N"
AGE = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))


def aged(n, name="h{}", **options):
    rows = [{"host": name.format(at), "days": at % 30} for at in range(n)]
    return rb.triage(rows, AGE, subject="host", source="inventory", **options)


def asked(explorer, what, **about):
    said = explorer.answer({"ask": what, "id": 1, "about": about})
    assert "answer" in said, said
    json.dumps(said)  # strict enough for a message
    return said["answer"]


def faulted(explorer, what, **about):
    return explorer.answer({"ask": what, "id": 1, "about": about})["fault"]


def words(cell):
    return " ".join(run[1] for run in cell)


@pytest.fixture(scope="module")
def three():
    with states.frozen():
        return states.envelope()


@pytest.fixture
def explorer(three):
    return three.explore("cluster-b")


# -- what stands for it -----------------------------------------------------------------------


def test_plain_text_says_where_it_is_and_then_what_the_static_view_says(explorer, three):
    text = explorer._repr_mimebundle_()[0][TEXT].splitlines()
    assert text[:2] == [
        "Explorer backup_triage · row 29 of 51 · Protection posture of cluster-b: "
        "unprotected by rule 2 of",
        "health-signal v1: age_days 30 > 7",
    ]
    assert explorer.line() == " ".join(text[:2])
    assert "\n".join(text[2:]) == str(three)


def test_an_untrusted_notebook_shows_the_static_view(explorer, three):
    html = explorer._repr_mimebundle_()[0][HTML]
    assert html == three._repr_mimebundle_()[0][HTML]
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)


def test_under_the_static_setting_there_is_only_the_static_view(three):
    with settings(static=True):
        made = three.explore()
        assert WIDGET not in made._repr_mimebundle_()[0]
    assert made.comm is None


def test_the_same_record_gives_the_same_state(three):
    one, other = (
        {k: v for k, v in three.explore().get_state().items() if k != "layout"} for _ in range(2)
    )
    assert one == other
    with states.frozen():
        again = states.envelope()
    assert again.explore().opening == one["opening"]


@pytest.mark.parametrize("make", [lambda: aged(5_000), states.envelope_312, states.envelope])
def test_the_state_is_small_however_long_the_walk(make):
    state = make().explore().get_state()
    state.pop("layout")
    assert len(json.dumps(state).encode()) <= MAX_STATE


def test_a_state_that_would_be_too_large_leaves_its_first_view_to_be_asked_for(monkeypatch, three):
    monkeypatch.setattr("runbook_nb.widgets.explorer.MAX_OPENING", 6_000)
    opening = three.explore().opening
    assert opening["at"]["picture"] is None
    monkeypatch.setattr("runbook_nb.widgets.explorer.MAX_OPENING", 100)
    assert "at" not in three.explore().opening


# -- the position -----------------------------------------------------------------------------


def test_it_begins_at_the_first_decision_or_at_that_of_a_subject(three):
    assert three.explore().step == 15
    assert three.explore("cluster-b").step == 29
    with pytest.raises(LookupError, match="no branch has subject"):
        three.explore("nobody")


def test_it_begins_where_a_run_ended_that_gave_no_answer(three):
    def fail(scope):
        raise ConnectionError("503")

    chart = rb.flow_chart("asking", lambda scope: scope.set("n", 1), id="begin")
    with pytest.raises(ConnectionError) as caught:
        chart.add_function("Ask", fail, id="ask").build().run_sync()
    explorer = caught.value.run.explore()
    assert explorer.line() == "Explorer asking · row 3 of 4 · Failed: ConnectionError: 503"
    assert explorer.opening["at"]["step"] == 3


def test_a_step_is_a_row_there_is(explorer):
    explorer.step = 50
    for step in (-1, 51):
        with pytest.raises(DefinitionError, match=f"there is no row {step}"):
            explorer.step = step
    assert explorer.step == 50
    assert explorer.line() == "Explorer backup_triage · row 50 of 51 · Wrote report"


def test_a_look_gives_row_subject_path_decision_and_state(explorer):
    at = asked(explorer, "look", step=29)
    assert (at["subject"], at["of"], at["fan"], at["index"]) == ("cluster-b", "2 of 3", 0, 1)
    names = at["picture"]["names"]
    assert {names[int(n) - 1]: word for n, word in at["nodes"].items()} == {
        "inventory": "done",
        "Assess each subject": "done",
        "load": "done",
        "Protection posture": "now",
        "unprotected": "next",
        "Collect": "later",
    }
    made = at["evidence"]
    assert (made["stage"], made["place"]) == ("Protection posture", "per-subject~1/posture#1")
    assert (made["number"], made["total"], made["when"]) == (2, 3, "")
    told = [[row[0], *map(words, row[1:6])] for row in made["rows"]]
    assert told == [
        ["rule 1", "age_known", "true", "=", "false", "no"],
        ["rule 2", "age_days", "30", ">", "7", "yes, unprotected"],
        ["default", "no condition", "", "", "", "not needed"],
    ]
    assert made["rows"][1][5] == [["b", "yes, unprotected", "b", "▲"]]
    state = at["state"]
    assert state["whose"] == "cluster-b"
    assert state["words"] == "before this step, and after the branch it chose"
    assert [(key, words(a), words(b), change) for key, a, b, change in state["held"]] == [
        ("subject", "cluster-b", "cluster-b", ["", "same"]),
        ("age_days", "30", "30", ["", "same"]),
        ("age_known", "true", "true", ["", "same"]),
        ("verdict", "—", "unprotected", ["added", "at row 31"]),
    ]


def test_a_row_beside_a_decision_says_where_that_is(explorer):
    assert asked(explorer, "look", step=22)["evidence"]["when"] == "at row 29"
    assert asked(explorer, "look", step=31)["evidence"]["when"] == "at row 29"
    assert asked(explorer, "look", step=0)["evidence"] is None


def test_a_picture_is_sent_once(explorer):
    first = asked(explorer, "look", step=29)
    again = asked(explorer, "look", step=30, flow=first["flow"])
    other = asked(explorer, "look", step=15, flow=first["flow"])
    assert again["picture"] is None
    assert again["flow"] == first["flow"] != other["flow"]
    assert other["picture"]["svg"]


def test_the_picture_is_a_part_of_the_page_and_safe(explorer):
    picture = asked(explorer, "look", step=29)["picture"]
    svg = picture["svg"]
    assert 'data-n="1"' in svg
    assert "<script" not in svg
    assert " id=" not in svg
    assert " href" not in svg
    root = asked(explorer, "look", step=29)["flow"]
    style = svg.partition("<style>")[2].partition("</style>")[0]
    rules = style.replace("@supports (color:light-dark(#000,#fff)){", "").split("}")
    selectors = [rule.partition("{")[0] for rule in rules if "{" in rule]
    assert selectors
    for selector in ",".join(selectors).split(","):
        assert selector.strip().startswith(f".rbnb .{root}"), selector


def test_the_next_decision_is_found_and_comes_round(explorer):
    assert asked(explorer, "next", step=0)["step"] == 15
    assert asked(explorer, "next", step=15)["step"] == 29
    assert asked(explorer, "next", step=42)["step"] == 15


def test_a_node_leads_to_its_row_on_the_way_or_says_why_not(explorer):
    names = asked(explorer, "look", step=29)["picture"]["names"]

    def node(name, step=29):
        return asked(explorer, "node", step=step, node=names.index(name) + 1)

    assert node("load")["step"] == 22
    assert node("Protection posture")["step"] == 29
    assert node("Collect")["step"] == 47
    assert node("Assess each subject")["fan"] == 0
    assert node("protected") == {"words": "protected: not on the way of what is looked at"}
    assert node("load", step=0)["fan"] == 0  # a subject has to be chosen first


# -- rows -------------------------------------------------------------------------------------


def test_rows_come_in_pages_of_each_list(three):
    explorer = states.envelope_312().explore()
    page = asked(explorer, "rows", kind="all", step=65)
    assert (page["start"], len(page["rows"]), page["total"]) == (PAGE, PAGE, 4830)
    assert [row[0] for row in page["rows"]] == list(range(PAGE, 2 * PAGE))
    page = asked(explorer, "rows", kind="decisions", start=300)
    assert (page["total"], len(page["rows"])) == (303, 3)
    assert {row[1] for row in page["rows"]} == {"condition"}
    page = asked(explorer, "rows", kind="writes", step=4829)
    assert page["start"] + len(page["rows"]) == page["total"]
    assert {row[1] for row in page["rows"]} == {"step"}


def test_a_decision_is_told_briefly_in_a_list(explorer):
    rows = asked(explorer, "rows", kind="decisions", start=0)["rows"]
    assert [row[2] for row in rows] == [
        "default: no rule fired, chose protected",
        "rule 2 matched: age_days 30 > 7, chose unprotected",
        "rule 1 matched: age_known = false, chose declined",
    ]


@pytest.mark.parametrize(
    ("what", "about"),
    [
        ("rows", {"kind": "secrets"}),
        ("rows", {"start": -1}),
        ("rows", {"start": "0"}),
        ("look", {"step": 51}),
        ("look", {"step": True}),
        ("look", {}),
        ("node", {"step": 0, "node": 99}),
        ("subjects", {"fan": 1}),
        ("subjects", {"find": 3}),
        ("subjects", {"start": 9}),
    ],
)
def test_what_cannot_be_asked_is_a_fault_that_says_so(explorer, what, about):
    fault = faulted(explorer, what, **about)
    assert fault["what"]
    assert not fault["what"].startswith(("KeyError", "TypeError", "IndexError"))


# -- subjects ---------------------------------------------------------------------------------


def test_subjects_are_counted_filtered_and_found():
    explorer = states.envelope_312().explore()
    page = asked(explorer, "subjects")
    assert [(o[1], o[4]) for o in page["outcomes"]] == [
        ("protected", 282),
        ("unprotected", 7),
        ("declined", 14),
        ("not reached", 9),
    ]
    assert (len(page["found"]), page["total"], page["next"]) == (PAGE, 312, PAGE)
    page = asked(explorer, "subjects", word="unprotected", find="PROD")
    assert (len(page["found"]), page["searched"], page["among"]) == (6, 7, 7)
    name, outcome, why, step = page["found"][0]
    assert (outcome[1], outcome[2], why) == ("unprotected", "b", "age_days 44 > 7")
    assert asked(explorer, "look", step=step)["subject"] == name
    missed = asked(explorer, "subjects", word="not reached")
    assert {row[3] for row in missed["found"]} == {None}
    assert missed["found"][0][2] == "past the cap of 303"


def test_every_subject_is_reached_page_by_page():
    explorer, seen, start = aged(130).explore(), [], 0
    while start is not None:
        page = asked(explorer, "subjects", start=start)
        seen += [row[0] for row in page["found"]]
        start = page["next"]
    assert seen == [f"h{n}" for n in range(130)]


def test_a_search_says_how_far_it_looked(monkeypatch):
    monkeypatch.setattr("runbook_nb.widgets.subjects.AT_ONCE", 100)
    explorer = aged(250).explore()
    page = asked(explorer, "subjects", find="h24")
    assert (page["found"][0][0], page["searched"], page["next"]) == ("h24", 100, 100)
    page = asked(explorer, "subjects", find="h24", start=200)
    assert [row[0] for row in page["found"]] == [f"h24{n}" for n in range(10)]
    assert page["next"] is None


def test_a_fan_out_of_charts_without_a_decision_is_done():
    look = rb.flow_chart("look", kind_charts.nothing, id="look").build()
    chart = (
        rb.flow_chart("c", kind_charts.nothing, id="a")
        .add_parallel_for_each(
            "Each", id="each", items=lambda s: ["x", "y"], branch=look, max_branches=1, into="out"
        )
        .build()
    )
    page = asked(chart.run_sync().explore(), "subjects")
    assert [(row[0], row[1][1]) for row in page["found"]] == [("x", "done"), ("y", "not reached")]


# -- which record -----------------------------------------------------------------------------


def test_a_live_envelope_is_explored_from_its_record(explorer):
    assert explorer.opening["about"] == "15 steps, 51 rows, from the live record"
    assert explorer.opening["lacking"] == ""


def same_rows(one, other):
    """Hold two explorers to give the same, but for what their picture is called."""
    for step in range(one.source.total()):
        a, b = (asked(each, "look", step=step) for each in (one, other))
        assert a == b


def test_a_recording_is_explored_like_the_run_itself(three):
    run = three.run
    copy = rb.load_recording(run.recording())
    assert copy.explore().opening["about"].endswith("from the recording")
    same_rows(run.explore(), copy.explore())


def test_a_walk_filed_whole_is_explored_like_the_live_one():
    rules = states.posture_v1()
    box = states.box_of(states.three_rows(), rules, states.THREE)
    box.add(
        rb.runbook_as_tool(
            name="backup_triage",
            description="Protection posture of every backup subject.",
            procedure=states.procedure_of(rules, states.THREE),
            result_kind="verdict/backup-posture",
            verdicts={"decider": "Protection posture"},
            composed_of=["backup_inventory"],
            walk={"cap": 5, "form": "columns"},
        )
    )
    live = box.call_sync("backup_triage", {})
    copy = rb.Envelope.from_dict(live.to_dict(), artifacts=box.artifacts)
    assert copy.explore().opening["about"] == "15 steps, 51 rows, from the walk filed whole"
    one, other = live.explore(), copy.explore()
    for step in range(live.walk.total):
        a, b = (asked(each, "look", step=step) for each in (one, other))
        assert a["evidence"] == b["evidence"]
        assert a["nodes"] == b["nodes"]
        if a["subject"]:
            assert a["state"] == b["state"]
    walk = copy.walk.explore()
    assert walk.opening["about"] == "15 steps, 51 rows, from the walk filed whole"


def test_a_copy_with_its_dossier_tells_of_every_subject(three):
    copy = rb.Envelope.from_dict(three.to_dict(dossier=True))
    explorer = copy.explore("cluster-b")
    assert explorer.opening["about"] == "15 steps, 3 rows, from the dossier"
    assert "the state" in explorer.opening["lacking"]
    at = asked(explorer, "look", step=explorer.step)
    names = at["picture"]["names"]
    lit = {names[int(n) - 1]: word for n, word in at["nodes"].items()}
    assert lit == {"Protection posture": "now", "unprotected": "next"}
    assert words(at["evidence"]["rows"][1][2]) == "30"
    assert at["state"]["words"] == "not carried by this record"
    page = asked(explorer, "subjects")
    assert [(row[0], row[1][1], row[3]) for row in page["found"]] == [
        ("cluster-a", "protected", 0),
        ("cluster-b", "unprotected", 1),
        ("cluster-c", "declined", 2),
    ]


def test_filed_rows_are_paged_and_tied_to_the_dossier(three):
    wire = three.to_dict(dossier=True)
    del wire["result"]["walk"]["recording_ref"]
    copy = rb.Envelope.from_dict(wire, artifacts=three._artifacts)
    descriptor = copy["result"]["walk"]
    explorer = copy.explore()
    assert explorer.opening["about"].endswith(
        f"from the dossier, and the filed rows, {descriptor['rows']} of 51"
    )
    step = next(r[0] for r in asked(explorer, "rows", kind="decisions", start=1)["rows"] if r[1])
    at = asked(explorer, "look", step=step)
    assert at["subject"] == "cluster-b"
    assert words(at["evidence"]["rows"][1][5]) == "yes, unprotected"


def test_a_copy_whose_recording_was_filed_is_explored_from_that(three):
    copy = rb.Envelope.from_dict(three.to_dict(), artifacts=three._artifacts)
    assert copy.explore().opening["about"] == "15 steps, 51 rows, from the recording"
    same_rows(three.explore(), copy.explore())


def test_filed_rows_alone_say_what_they_lack(three):
    wire = three.to_dict()
    del wire["result"]["walk"]["recording_ref"]
    explorer = rb.Envelope.from_dict(wire, artifacts=three._artifacts).explore()
    assert "the filed rows" in explorer.opening["about"]
    at = asked(explorer, "look", step=0)
    assert at["picture"]["note"] == "no picture: the chart is not carried"
    assert at["picture"]["svg"] is None


def test_a_bare_copy_says_that_nothing_is_carried(three):
    explorer = rb.Envelope.from_dict(three.to_dict()).explore()
    assert explorer.opening["about"] == "15 steps, nothing of the walk is carried"
    assert "no store is at hand" in explorer.opening["lacking"]
    assert explorer.line() == "Explorer backup_triage · nothing of the walk is carried"
    assert explorer._repr_mimebundle_()[0][HTML]


def test_a_chart_is_explored_before_it_has_run():
    explorer = states.chart().explore()
    assert explorer.opening["about"] == "nothing has run"
    names = explorer.opening["at"]["picture"]["names"]
    assert "Protection posture" in names
    assert "not on the way" in asked(explorer, "node", node=1)["words"]
    assert "age_days &gt; 7" in explorer.opening["at"]["picture"]["svg"].replace("\u00a0", " ")
    bare = states.chart().structure.explore()
    assert sorted(bare.opening["at"]["picture"]["names"]) == sorted(names)
    assert bare.line() == "Explorer backup-protection-triage · nothing has run"


@pytest.mark.parametrize("kind", kind_charts.KINDS)
def test_every_kind_of_chart_is_gone_through_row_by_row(kind):
    run = kind_charts.run(kind_charts.KINDS[kind]())
    assert isinstance(run, Run)
    explorer = run.explore()
    for step in range(explorer.source.total()):
        at = asked(explorer, "look", step=step)
        names = at["picture"]["names"]
        for number in at["nodes"]:
            found = asked(explorer, "node", step=step, node=int(number))
            assert "step" in found or "fan" in found, names[int(number) - 1]


def test_one_subject_is_explored_alone(three):
    explorer = three.walk.of("cluster-b").explore()
    assert explorer.source.total() == 14
    at = asked(explorer, "look", step=explorer.step)
    assert (at["subject"], at["evidence"]["number"], at["evidence"]["total"]) == ("cluster-b", 1, 1)
    assert asked(explorer, "node", step=10, node=1)["step"] >= 0


def test_what_has_neither_walk_nor_structure_is_refused():
    with pytest.raises(DefinitionError, match="a dict has neither a walk nor a structure"):
        source_of({})


def test_the_door_leads_here():
    module, _, name = DOORS["explore"].partition(":")
    assert (module, name) == (explore.__module__, explore.__name__)
    assert issubclass(Explorer, object)


# -- what is never shown ----------------------------------------------------------------------

SECRET = "tk-48151623"


@pytest.fixture(scope="module")
def hidden():
    def load(scope):
        scope.update(scope.args["item"])
        scope.set("note", f"used {SECRET} today")

    look = (
        rb.flow_chart("look", load, id="load")
        .add_decider("Old?", id="old", rules=AGE)
        .branch("old", lambda s: s.set("verdict", "old"))
        .branch("fresh", lambda s: s.set("verdict", "fresh"))
        .end()
        .build()
    )
    items = [{"host": f"h{n}", "days": n, "token": SECRET} for n in range(60)]
    chart = (
        rb.flow_chart("c", lambda s: s.set("rows", items), id="start")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: s["rows"],
            branch=look,
            max_branches=99,
            into="out",
            subject="host",
        )
        .build()
    )
    return chart.run_sync(redact={"keys": ["token", "days"]})


def everything(explorer):
    """Ask for all there is to be asked for, as one text."""
    said = [explorer.get_state(), explorer._repr_mimebundle_()[0]]
    for kind in ("all", "decisions", "writes"):
        said += [
            asked(explorer, "rows", kind=kind, start=start)
            for start in range(0, explorer.source.total(kind), PAGE)
        ]
    said += [asked(explorer, "look", step=step) for step in range(60)]
    said += [asked(explorer, "subjects", find="h"), asked(explorer, "subjects", word="old")]
    return json.dumps(said, default=str, ensure_ascii=False)


@pytest.mark.parametrize("of", ["run", "walk", "recording"])
def test_what_a_policy_hides_is_in_no_state_and_on_no_page(hidden, of):
    shown = {
        "run": lambda: hidden,
        "walk": lambda: hidden.walk,
        "recording": lambda: rb.load_recording(hidden.recording()),
    }[of]()
    explorer = shown.explore()
    text = everything(explorer)
    assert SECRET not in text
    assert "[REDACTED]" in text
    at = asked(explorer, "look", step=explorer.source.rows("decisions", 20, 1)[0].step)
    assert words(at["evidence"]["rows"][0][2]) == "[REDACTED]"


def test_hostile_names_stay_text():
    explorer = aged(3, name=HOSTILE + "{}").explore()
    text = everything_small(explorer)
    assert "\u202e" not in text
    svg = asked(explorer, "look", step=explorer.step)["picture"]["svg"]
    assert "<img" not in svg
    assert "&lt;/style&gt;" in svg
    html = explorer._repr_mimebundle_()[0][HTML]
    assert "<img src=x" not in html


def everything_small(explorer):
    said = [explorer.get_state(), asked(explorer, "subjects")]
    said += [asked(explorer, "look", step=step) for step in range(explorer.source.total())]
    return json.dumps(said, default=str, ensure_ascii=False)


# -- how much it costs ------------------------------------------------------------------------


def test_ticks_are_one_per_decision_or_lie_evenly_among_them(explorer):
    assert explorer.opening["ticks"] == [15, 29, 42]
    many = aged(1_000).explore()
    ticks = many.opening["ticks"]
    assert len(ticks) == MAX_TICKS
    assert ticks == sorted(set(ticks))


def test_a_look_far_behind_costs_what_one_at_the_front_does(calls_of):
    explorer = aged(20_000).explore()
    rows = explorer.source.total()
    asked(explorer, "look", step=rows - 20)

    def look(step):
        return calls_of(lambda: explorer.source.at(step))

    near, far = look(40), look(rows - 40)
    assert far <= 2 * near + 4_000  # within one block of sums
    page = calls_of(lambda: asked(explorer, "rows", kind="decisions", start=19_900))
    front = calls_of(lambda: asked(explorer, "rows", kind="decisions", start=0))
    assert page <= front + PAGE * 4_000


def test_a_page_of_subjects_makes_no_more_than_its_own(calls_of):
    explorer = aged(20_000).explore()
    asked(explorer, "subjects", word="old")
    few = aged(200).explore()
    asked(few, "subjects", word="old")
    large = calls_of(lambda: asked(explorer, "subjects", word="old", start=0))
    small = calls_of(lambda: asked(few, "subjects", word="old", start=0))
    assert large <= 2 * small + 10_000


# -- written again --------------------------------------------------------------------------------

LONG_TEXT = "x" * 5_000


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (LONG_TEXT + "a", LONG_TEXT + "b", "changed"),
        ([LONG_TEXT, "a"], [LONG_TEXT, "b"], "changed"),
        ({"k": LONG_TEXT + "a"}, {"k": LONG_TEXT + "b"}, "changed"),
        (list(range(60)), [*range(59), 99], "changed"),
        (1, True, "changed"),
        (LONG_TEXT, LONG_TEXT, "written again"),
        ({"k": [LONG_TEXT]}, {"k": [LONG_TEXT]}, "written again"),
        (list(range(60)), list(range(60)), "written again"),
        (7, 7, "written again"),
    ],
)
def test_written_again_is_what_was_written_whole(before, after, word):
    chart = (
        rb.flow_chart("c", lambda scope: scope.set("it", before), id="a")
        .add_function("again", lambda scope: scope.set("it", after), id="b")
        .build()
    )
    explorer = chart.run_sync().explore()
    (step,) = [row.step for row in explorer.source.rows("writes", 0, 9) if row.step > 2][-1:]
    ((key, _, _, change),) = explorer.look({"step": step})["state"]["held"]
    assert (key, change[0]) == ("it", word)
