"""Our recordings in the published viewer, and under the published engine's own tools.

Both come from the npm registry into ``viewer/node_modules``; `make browser` brings them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb._json import to_wire

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "record"))

from recorded_charts import (  # noqa: E402
    asking,
    backup_triage,
    everything,
    failing,
    run_of,
    stopping,
    triage,
)

VIEWER = ROOT / "tests" / "browser" / "viewer"
MODULES = VIEWER / "node_modules"
FOREIGN = ROOT / "tests" / "record" / "foreign"
WIDE = {"width": 1400, "height": 900}
RUNS = {
    "backup_triage": lambda: run_of(backup_triage()),
    "triage_hidden": lambda: run_of(triage(), redact={"keys": ["token"]}),
    "everything": lambda: run_of(everything()),
    "paused": lambda: run_of(asking()),
    "failing": lambda: run_of(failing()),
    "stopping": lambda: run_of(stopping()),
}
#: Nodes of the graph as the viewer draws them: their id, and whether it shows them as reached.
DRAWN = """() => [...document.querySelectorAll(".react-flow__node")].map((node) =>
  [node.dataset.id, getComputedStyle(node).opacity === "1"])"""


@pytest.fixture(scope="session")
def node(need):
    """Run a script of the viewer's folder under node; give what it prints."""
    there = shutil.which("node")
    need(there, "node")
    need((MODULES / "footprintjs").is_dir(), "footprintjs (tests/browser/viewer/node_modules)")

    def node(*command, cwd=VIEWER):
        done = subprocess.run(
            [there, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return node


@pytest.fixture(scope="session")
def made():
    """Run a chart once; give the run and its recording as text."""
    kept = {}

    def made(name):
        if name not in kept:
            run = RUNS[name]()
            kept[name] = (run, run.recording().to_json())
        return kept[name]

    return made


@pytest.fixture(scope="session")
def page(need, node, tmp_path_factory):
    """Bundle the viewer once; give the file of a page that mounts a recording."""
    need((MODULES / "esbuild").is_dir(), "esbuild (tests/browser/viewer/node_modules)")
    folder = tmp_path_factory.mktemp("viewer")
    node(
        MODULES / "esbuild" / "bin" / "esbuild",
        *("mount.mjs", "--bundle", "--format=iife", "--minify", "--log-level=error"),
        '--define:process.env.NODE_ENV="production"',
        f"--outfile={folder / 'viewer.js'}",
    )
    script = (folder / "viewer.js").read_text(encoding="utf-8").replace("</script", r"<\/script")
    style = (MODULES / "@xyflow/react/dist/style.css").read_text(encoding="utf-8")

    def page(name, text):
        path = folder / f"{name}.html"
        data = text.replace("<", r"\u003c")
        path.write_text(
            f"<!doctype html><meta charset='utf-8'><title>{name}</title>"
            f"<style>body{{margin:0}}#it{{height:100vh}}{style}</style><div id='it'></div>"
            f"<script type='application/json' id='recording'>{data}</script>"
            f"<script>{script}</script><script>"
            "viewer.mount(document.getElementById('recording').textContent,"
            "document.getElementById('it'))</script>",
            encoding="utf-8",
        )
        return path

    return page


def executed(run):
    """Every step of a run, in order: its stages, and the branches its fan-outs entered."""
    return [commit.runtime_stage_id for commit in run.commits.whole()]


def of_the_chart(run):
    """The ids of the executed stages of a run's own chart, what lies inside of it left out."""
    names = [name.rpartition("#")[0] for name in executed(run)]
    return {name for name in names if "/" not in name}


def open_viewer(tab, page, name, text):
    watched = tab(viewport=WIDE)
    watched.show(page(name, text))
    watched.page.locator(".react-flow__node").first.wait_for()
    return watched


def to_the_end(shown):
    following = shown.get_by_label("Next stage")
    while following.is_enabled():
        following.click()


# -- in the viewer -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_every_executed_stage_is_seen_in_the_viewer_and_told_from_others(tab, page, made, name):
    run, text = made(name)
    watched = open_viewer(tab, page, name, text)
    shown = watched.page
    steps = shown.evaluate("text => viewer.stepsOf(text)", text)
    assert sorted(step["runtimeStageId"] for step in steps) == sorted(executed(run))
    names = {commit.runtime_stage_id: commit.stage for commit in run.commits.whole()}
    assert {step["runtimeStageId"]: step["stageName"] for step in steps} == names
    to_the_end(shown)
    watched.shot(f"viewer_{name}")
    drawn = dict(shown.evaluate(DRAWN))
    assert {key for key, reached in drawn.items() if reached} == of_the_chart(run)
    assert {node.key for node in run.structure.nodes if "/" not in node.key} <= drawn.keys()


def test_the_story_of_the_backup_triage_is_told_to_its_end(tab, page, made):
    run, text = made("backup_triage")
    shown = open_viewer(tab, page, "story", text).page
    to_the_end(shown)
    story = shown.locator("[data-fp='narrative-panel']").first.inner_text()
    assert "more entries ahead" not in story
    for row in run.walk:
        if row.depth == 0 and row.type == "stage" and not row.subflow:
            assert row.stage in story


@pytest.mark.parametrize(
    ("where", "inside"),
    [
        ("everything/sub", {"in": True, "out": True}),
        ("everything/y", {"in": True, "out": True}),
        ("everything/late", {"in": True, "out": True}),
        (
            "backup_triage/per-subject~1",
            {
                "load": True,
                "posture": True,
                "protected": False,
                "unprotected": True,
                "declined": False,
            },
        ),
    ],
)
def test_a_chart_inside_can_be_opened(tab, page, made, where, inside):
    name, _, mount = where.partition("/")
    watched = open_viewer(tab, page, f"{name}_{mount}", made(name)[1])
    shown = watched.page
    to_the_end(shown)
    shown.locator(f".react-flow__node[data-id='{mount}']").click()
    shown.locator(f".react-flow__node[data-id='{mount}/{next(iter(inside))}']").wait_for()
    to_the_end(shown)
    watched.shot(f"viewer_{name}_{mount}")
    drawn = dict(shown.evaluate(DRAWN))
    assert drawn == {f"{mount}/{key}": reached for key, reached in inside.items()}


def test_what_a_policy_hides_is_hidden_in_the_viewer(tab, page, made):
    _, text = made("triage_hidden")
    shown = open_viewer(tab, page, "hidden", text).page
    to_the_end(shown)
    assert "s3cr3t" not in shown.content()
    steps = shown.evaluate("text => viewer.stepsOf(text)", text)
    assert any("[REDACTED]" in json.dumps(step["memory"]) for step in steps)


@pytest.mark.parametrize("name", ["triage", "every_kind"])
def test_foreign_recordings_are_seen_alike(tab, page, name):
    text = (FOREIGN / f"{name}.json").read_text(encoding="utf-8")
    run = rb.load_recording(text)
    watched = open_viewer(tab, page, f"foreign_{name}", text)
    steps = watched.page.evaluate("text => viewer.stepsOf(text)", text)
    assert {step["runtimeStageId"] for step in steps} == set(run.executions.values())
    watched.shot(f"viewer_foreign_{name}")


# -- under the published engine's own tools ------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in RUNS if name != "triage_hidden"])
def test_the_published_tools_read_our_recordings_as_we_do(node, made, tmp_path, name):
    run, text = made(name)
    (tmp_path / "it.json").write_text(text, encoding="utf-8")
    (found,) = json.loads(node("read.mjs", tmp_path / "it.json"))
    commits = run.commits
    assert found["end"] == json.loads(text)["snapshot"]["sharedState"]
    assert found["states"] == [
        to_wire(commits.state_at(index).state) for index in range(len(commits))
    ]
    assert [stop for stop in found["stops"] if stop] == [c.runtime_stage_id for c in commits]
    for key, writer in found["writers"].items():
        last = commits.last_writer(key)
        assert writer == (None if last is None else last.runtime_stage_id)
    for key, causes in found["causes"].items():
        ours = [node.id for node in commits.causes(key=key).nodes]
        assert sorted(causes) == sorted(ours)


def test_a_chain_of_2500_stages_is_read_by_the_published_tools(node, tmp_path):
    chart = rb.flow_chart("long", lambda s: s.set("n", 0), id="s0")
    for n in range(1, 2_500):
        chart.add_function(f"S{n}", lambda s, n=n: s.set("n", n), id=f"s{n}")
    run = chart.build().run_sync()
    (tmp_path / "long.json").write_text(run.recording().to_json(), encoding="utf-8")
    (found,) = json.loads(node("read.mjs", tmp_path / "long.json"))
    assert found["stages"] == [f"s{n}#{n}" for n in range(2_500)]
    assert found["end"] == {"n": 2_499}


def test_the_foreign_recordings_are_what_the_published_engine_makes(node, tmp_path):
    node(FOREIGN / "make.mjs", tmp_path)
    fresh = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.json")}
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOREIGN.glob("*.json")}
    assert fresh.keys() == kept.keys()
    assert [name for name in kept if kept[name] != fresh[name]] == []
