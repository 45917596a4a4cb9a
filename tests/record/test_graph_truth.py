"""What is drawn as taken is what was recorded, one for one, over random charts of every kind.

The transitions are written down by a plain interpreter that knows nothing of the log: it notes in
which order the stages of each track began. What the overlay counts, what the picture draws and what
a folded picture still draws is held against that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from drawn_charts import ENDING, ORDINARY, Draw, World, build, charts, run_chart, run_through
from eager_charts import Eager, template
from hypothesis import HealthCheck, Phase, given, settings

from runbook_nb.errors import RunbookError
from runbook_nb.record.graph import structure_graph
from runbook_nb.record.outline import walk_flow
from runbook_nb.record.overlay import overlay_of, template_path
from runbook_nb.render import folding
from runbook_nb.render.dot import render_dot
from runbook_nb.render.mermaid import render_mermaid

ANY = charts((*ORDINARY, *ENDING), asks=2)
SURE = charts(ORDINARY, asks=2, fail_fast=False)
#: Where one branch or another goes wrong and the run goes on all the same.
ROUGH = Draw(("error", "stop"), fail_fast=False, rarely=3).charts()


def held(examples):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    phases = [Phase.explicit, Phase.reuse, Phase.generate]  # shrinking charts takes minutes
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=checks, phases=phases
    )


class Traced(Eager):
    """Notes which stage began after which.

    A track goes on from the stages it last ended in: from the stage that spread it, at its
    beginning, and from where each branch ended that ended well, behind branches.
    """

    def __init__(self, spec: Any, questions: str = "pause") -> None:
        self.edges: Counter[tuple[str, str]] = Counter()
        self.back: Counter[tuple[str, str]] = Counter()
        #: The same by the path of the track the stage began on.
        self.by_path: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self.runs: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.last: dict[int, list[str]] = {}
        self.kept: list[Any] = []  # tracks, so that no two of them are the same object
        super().__init__(spec, questions)

    def step(self, level, name, stage_id):
        key, track = template(level, stage_id), level.track
        before = track.rows[-1][0] if track.rows else ""
        self.runs[key] += 1
        if before == "resume":  # it goes on, and came from nowhere
            self.answered[key] += 1
        else:
            for source in self.last.get(id(track), ()):
                self.edges[source, key] += 1
                self.back[source, key] += before == "loop"
                self.by_path[track.prefix][source, key] += 1
        self.last[id(track)] = [key]
        self.kept.append(track)
        self.latest = track, key
        return super().step(level, name, stage_id)

    def branches(self, slots, run, track_of, **options):
        around, owner = self.latest
        begun = []

        def begin(index):
            track = track_of(index)
            self.kept.append(track)
            self.last[id(track)] = [owner]
            begun.append(track)
            return track

        made = super().branches(slots, run, begin, **options)
        ends = [
            key
            for slot, track in zip(slots, begun, strict=False)
            if slot.status == "ok"
            for key in self.last[id(track)]
        ]
        self.last[id(around)] = ends or [owner]
        return made


def counted(counts):
    return {pair: times for pair, times in counts.items() if times}


def taken_in(graph):
    return {(e.source, e.target): e.times for e in graph.edges if e.state == "taken"}


def hold(run, traced):
    """Hold a run against what was traced."""
    overlay = overlay_of(run.walk.log, run.walk.redactor)
    assert counted(overlay.edges) == counted(traced.edges)
    assert counted(overlay.back) == counted(traced.back)
    assert overlay.runs == traced.runs
    assert counted(overlay.answered) == counted(traced.answered)
    flow = walk_flow(run.walk)
    assert taken_in(flow.graph) == counted(traced.edges)
    assert {(e.source, e.target) for e in flow.graph.edges if e.back and e.times} == set(
        counted(traced.back)
    )
    nodes = (node for node in flow.graph.nodes if node.kind != "gap")
    assert {node.key for node in nodes if node.state in CAME_TO} == set(traced.runs)
    return flow


CAME_TO = {"ran", "failed", "paused", "stopped"}


@given(ANY)
@held(60)
def test_drawn_as_taken_is_what_began_after_what(spec):
    hold(run_chart(spec), Traced(spec))


@given(ROUGH)
@held(40)
def test_a_branch_that_failed_leads_to_nothing(spec):
    hold(run_chart(spec), Traced(spec))


@given(SURE)
@held(30)
def test_however_often_a_run_paused_it_is_drawn_as_if_it_never_had(spec):
    run, _ = run_through(spec)
    hold(run, Traced(spec, "resume"))


@given(SURE)
@held(40)
def test_one_subject_is_drawn_with_its_own_transitions_alone(spec):
    run, traced = run_chart(spec), Traced(spec)
    for fan, index, prefix in list(run.walk.branches())[:6]:
        try:
            walk = run.walk.of(index=index, stage=fan.stage.id)
        except RunbookError:
            continue  # a subject that went through more than once
        within, path = template_path(walk.only), fan.path(prefix, index)
        own = Counter()
        for where, counts in traced.by_path.items():
            if where.startswith(path):
                own.update(
                    {
                        pair: times
                        for pair, times in counts.items()
                        if all(key.startswith(within) for key in pair)
                    }
                )
        assert taken_in(walk_flow(walk).graph) == counted(own)


@given(ANY)
@held(60)
def test_a_graph_is_sound_and_the_list_tells_of_the_same_stages(spec):
    run = run_chart(spec)
    for flow in (walk_flow(run.walk), run.structure.view().sections[0].parts[0]):
        graph = flow.graph
        keys = [node.key for node in graph.nodes]
        assert len(keys) == len(set(keys))
        pairs = [(e.source, e.target) for e in graph.edges]
        assert len(pairs) == len(set(pairs))
        assert {key for pair in pairs for key in pair} <= set(keys)
        members = [m for group in graph.groups for m in group.members]
        assert len(members) == len(set(members))
        assert {g.parent for g in graph.groups if g.parent} <= {g.key for g in graph.groups}
        assert all(group.key in group.members for group in graph.groups)
        drawn = {node.key for node in graph.nodes if node.kind != "gap"}
        assert drawn == {line.key for line in flow.lines}
        by_key = {line.key: line.state for line in flow.lines}
        assert all(by_key[n.key] == n.state for n in graph.nodes if n.kind != "gap")


@given(ANY)
@held(40)
def test_children_of_forks_and_selectors_never_look_like_verdicts(spec):
    run = run_chart(spec)
    owners = {node.key: node.kind for node in run.structure.nodes}
    children = {
        node.key
        for node in run.structure.nodes
        if node.kind == "branch" and owners[node.decider] != "decider"
    }
    for graph in (walk_flow(run.walk).graph, structure_graph(run.structure)):
        for node in graph.nodes:
            if node.key in children:
                assert node.role is None
                assert node.kind != "branch"
        assert all(e.role is None for e in graph.edges if e.target in children)


@pytest.mark.parametrize("most", [12, 5, 3])
@given(spec=ANY)
@held(30)
def test_a_folded_chart_draws_as_taken_what_was_taken_between_what_it_folded(most, spec):
    graph = walk_flow(run_chart(spec).walk).graph
    kept, folding.MAX_NODES = folding.MAX_NODES, most
    try:
        folder = folding._Folder(graph)
        folder.fold_branches()
        for step in folding._STEPS:
            step(folder)
        again = folding.fold(graph)
    finally:
        folding.MAX_NODES = kept
    drawn, as_ = folder.graph, folder.drawn_as
    assert again == (drawn, folder.notes)
    assert len(drawn.nodes) <= most
    assert set(filter(None, as_.values())) == {node.key for node in drawn.nodes}
    expected: Counter[Any] = Counter()
    for (source, target), times in taken_in(graph).items():
        if as_[source] != as_[target] or source == target:
            expected[as_[source], as_[target]] += times
    assert taken_in(drawn) == counted(expected)
    assert bool(folder.notes) == (len(drawn.nodes) < len(graph.nodes))
    sound(drawn)


def sound(graph):
    known = {node.key for node in graph.nodes}
    members = [m for group in graph.groups for m in group.members]
    assert len(members) == len(set(members))
    assert set(members) <= known
    assert {g.parent for g in graph.groups if g.parent} <= {g.key for g in graph.groups}
    assert all(group.key in group.members for group in graph.groups)
    assert all({e.source, e.target} <= known for e in graph.edges)
    render_dot(graph)
    render_mermaid(graph)


@given(SURE)
@held(20)
def test_before_a_run_everything_is_declared(spec):
    graph = structure_graph(build(spec, World()).structure)
    assert {node.state for node in graph.nodes} == {"declared"}
    assert {edge.state for edge in graph.edges} <= {"declared"}
    assert not any(edge.times for edge in graph.edges)
