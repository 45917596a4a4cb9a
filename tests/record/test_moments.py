"""A row looked at closely agrees with what commits, pictures and rows tell of it."""

import kind_charts
import pytest
from drawn_charts import ENDING, ORDINARY, charts, run_chart
from hypothesis import given, settings

import runbook_nb as rb
from runbook_nb._text import MISSING
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.graph import branch_graph, walk_graph
from runbook_nb.record.moments import MAX_ITEMS, MAX_KEYS, Long, Moments
from runbook_nb.record.overlay import template_path
from runbook_nb.record.spots import DECISIONS

HEALTH = kind_charts.HEALTH


def fleet():
    return kind_charts.run(kind_charts.fleet())


def of_stages(run):
    """Yield the moments of the chart's own stages, in order."""
    moments = Moments(run.walk, run.raw_initial)
    for step in range(len(run.walk)):
        moment = moments.at(step)
        event = moment.spot.event
        own = not moment.spot.chain and event is not None and not event.code.stage.path
        if own and event.code.kind == "stage":
            yield moment


def agrees(run):
    for place, moment in enumerate(of_stages(run)):
        state = run.commits.state_at(place).state
        after = {h.key: h.after for h in moment.around.held if h.after is not MISSING}
        assert set(after) == set(state)
        for key, value in after.items():
            assert value == state[key] or isinstance(value, Long)
    decided = next(run.walk.iter_decisions(), None)
    if decided is None:
        return
    moments = Moments(run.walk, run.raw_initial)
    told = [moments.at(moments.decisions.at(n)).decided for n in range(moments.decisions.total)]
    ruled = [one for one in told if one is not None and one.decision is not None]
    sentences = [
        one.decision.sentence for one in ruled if type(one.decision).__name__ == "Decision"
    ]
    assert sentences == [one.decision.sentence for one in run.walk.iter_decisions()]
    assert decided.runtime_stage_id in {one.runtime_stage_id for one in ruled}


@pytest.mark.parametrize("kind", kind_charts.KINDS)
def test_the_state_after_a_stage_is_that_of_its_commit(kind):
    agrees(kind_charts.run(kind_charts.KINDS[kind]()))


@settings(max_examples=40, deadline=None)
@given(charts((*ORDINARY, *ENDING)))
def test_the_state_after_a_stage_of_any_chart_is_that_of_its_commit(spec):
    agrees(run_chart(spec))


def test_changes_are_told_by_the_row_that_made_them():
    run = fleet()
    moments = Moments(run.walk)
    for step in range(len(run.walk)):
        for held in moments.at(step).around.held:
            if held.step is not None:
                text = run.walk[held.step].text
                assert held.key in text, (step, held)


def test_the_way_to_a_row_is_what_ran_before_it():
    run = fleet()
    moments, walk = Moments(run.walk), run.walk
    decision = moments.decisions.at(2)
    trail = moments.at(decision).trail
    assert trail.now == "each/healthy"
    assert trail.next == "each/sick"
    assert {"start", "each", "each/load", "each/probe", "each/ssh", "each/http"} <= {*trail.done}
    assert trail.later == ("report",)
    assert moments.at(decision).row_of("each/ssh") is not None
    assert walk[moments.at(decision).row_of("each/healthy")].type == "condition"
    assert moments.at(decision).row_of("each/well") is None


def test_whose_branch_it_is():
    moments = Moments(fleet().walk)
    assert moments.at(0).subject is None
    subject = moments.at(moments.decisions.at(1)).subject
    assert (subject.name, subject.number, subject.total, subject.stage) == (2, 2, 4, "Each host")


def test_a_state_is_cut_to_some_keys_with_the_changed_ones_among_them():
    def first(scope):
        scope.update({f"k{n}": n for n in range(MAX_KEYS + 20)})

    chart = (
        flow_chart("c", first, id="a")
        .add_function("B", lambda s: s.set(f"k{MAX_KEYS + 19}", "new"), id="b")
        .build()
    )
    run = chart.run_sync()
    moment = Moments(run.walk).at(len(run.walk) - 1)
    held = moment.around.held
    assert (len(held), moment.around.total) == (MAX_KEYS, MAX_KEYS + 20)
    assert (held[-1].key, held[-1].after) == (f"k{MAX_KEYS + 19}", "new")


def test_of_a_long_list_only_the_number_of_items_is_told():
    chart = (
        flow_chart("c", lambda s: s.set("rows", list(range(MAX_ITEMS + 1))), id="a")
        .add_function("B", lambda s: [s.append("more", n) for n in range(MAX_ITEMS + 1)], id="b")
        .build()
    )
    run = chart.run_sync(redact={"keys": ["more"]})
    held = {one.key: one.after for one in Moments(run.walk).at(len(run.walk) - 1).around.held}
    assert held["rows"] == Long(MAX_ITEMS + 1)
    assert held["more"] == "[REDACTED]"


def test_what_a_policy_hides_is_hidden():
    chart = flow_chart("c", lambda s: s.update({"token": "tk-4815", "n": 1}), id="a").build()
    moments = Moments(chart.run_sync(redact={"keys": ["token"]}).walk)
    held = {one.key: one.after for one in moments.at(0).around.held}
    assert held == {"token": "[REDACTED]", "n": 1}


def test_a_branch_is_drawn_as_it_is_alone_and_the_rest_as_in_the_whole():
    walk = fleet().walk
    whole = {node.key: node for node in walk_graph(walk, walk.raw_overlay).nodes}
    moments = Moments(walk)
    for number in range(4):
        chain = moments.at(moments.decisions.at(number)).branches
        inside = template_path(chain[-1])
        alone = walk.inside(chain[-1])
        own = {node.key: node for node in walk_graph(alone, alone.raw_overlay).nodes}
        drawn = branch_graph(walk, chain)
        states = {node.key: node.state for node in drawn.nodes}
        for key, state in states.items():
            expected = own[key].state if key.startswith(inside) else whole[key].state
            assert state == expected, key
        taken = {(e.source, e.target) for e in drawn.edges if e.state == "taken"}
        chosen = "each/sick" if number >= 2 else "each/well"
        assert ("each/healthy", chosen) in taken
        assert (chosen, "report") in taken
        assert ("each", "each/load") in taken
        assert len([pair for pair in taken if pair[0] == "each/healthy"]) == 1


def test_a_decision_without_evidence_is_told_in_words():
    chart = (
        flow_chart("c", kind_charts.nothing, id="a")
        .add_decider("Which?", lambda s: "x", id="d")
        .branch("x", kind_charts.nothing)
        .branch("y", kind_charts.nothing)
        .end()
        .build()
    )
    walk = chart.run_sync().walk
    made = Moments(walk).at(walk.marks(DECISIONS).at(0)).decided
    assert made.decision is None
    assert made.words == "Chose x without evidence"


def test_there_is_no_row_past_the_end():
    rules = rb.RuleSet("age", "v1", [rb.Rule({"d": {"gt": 7}}, "old")], "fresh")
    walk = rb.triage([{"h": "a", "d": 9}], rules, subject="h", source="one").walk
    with pytest.raises(IndexError):
        Moments(walk).at(len(walk))
