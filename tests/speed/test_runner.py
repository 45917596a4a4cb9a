"""The runner of the benchmarks: gates that are missed or not measured are never met."""

import json
from itertools import pairwise

import pytest


def figure(bench, value, gate=1.0, stretch=0.5, **more):
    return bench.goal.Figure("what", value, "x", gate, stretch, **more)


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [
        (0.4, False, "stretch"),
        (0.5, False, "stretch"),
        (0.9, False, "gate"),
        (1.1, False, "MISSED"),
        (float("nan"), False, "MISSED"),
    ],
)
def test_a_figure_is_held_to_its_gate(bench, value, at_least, met):
    assert figure(bench, value, at_least=at_least).met() == met


def test_a_figure_may_have_to_be_large(bench):
    assert figure(bench, 3, 2, 4, at_least=True).met() == "gate"
    assert figure(bench, 5, 2, 4, at_least=True).met() == "stretch"
    assert figure(bench, 1, 2, 4, at_least=True).met() == "MISSED"


def test_every_goal_has_one_function_and_the_thirty_are_there(bench):
    assert set(range(1, 31)) <= set(bench.goal.GOALS)
    assert [n for n, goal in bench.goal.GOALS.items() if goal.peers] == [9, 10, 11]
    with pytest.raises(ValueError, match="two functions"):
        bench.goal.goal(1, "again")(lambda plan: [])


def told(**more):
    return {"number": 1, "title": "t", "reference": "", "figures": [], "series": [], **more}


def test_what_was_not_measured_or_went_wrong_is_not_met(bench):
    missed = bench.run.missed
    good = figure(bench, 0.9).to_dict()
    assert missed(told(figures=[good])) == []
    assert missed(told(figures=[good], not_measured="no node"))
    assert missed(told(figures=[good], failed="Traceback"))
    assert missed(told(figures=[good, figure(bench, 2).to_dict()])) == ["what"]
    assert missed(told()) == ["holds nothing to a gate"]


def test_a_goal_that_raises_is_told_with_what_it_had_measured(bench, monkeypatch):
    def measure(plan):
        yield figure(bench, 0.9)
        raise bench.goal.NotMeasured("pandas is not installed")

    made = bench.goal.Goal(99, "t", "r", measure, False)
    monkeypatch.setitem(bench.goal.GOALS, 99, made)
    found = bench.run.measured(99, quick=True)
    assert found["not_measured"] == "pandas is not installed"
    assert len(found["figures"]) == 1
    broken = bench.goal.Goal(98, "t", "r", lambda plan: [1 / 0], False)
    monkeypatch.setitem(bench.goal.GOALS, 98, broken)
    assert "ZeroDivisionError" in bench.run.measured(98, quick=True)["failed"]


def test_figures_of_other_goals_stay_in_the_file(bench, tmp_path):
    path = tmp_path / "results.json"
    stamp = {"where": {}, "started": bench.run.datetime(2026, 1, 2), "quick": False}
    bench.run.keep(path, [told(seconds=1.0)], **stamp, arguments=["--only", "1"])
    bench.run.keep(path, [told(number=2, seconds=2.0)], **stamp, arguments=[])
    kept = json.loads(path.read_text("utf-8"))["goals"]
    assert [goal["number"] for goal in kept] == [1, 2]
    assert kept[0]["measured"]["command"] == "python benchmarks/run.py --only 1"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.1234, "x", "0.123×"), (1500.0, "s", "1,500 s"), (12.34, "ms", "12.3 ms"), (None, "", "")],
)
def test_figures_are_written_with_three_digits_that_count(bench, value, unit, text):
    assert bench.run.written(value, unit) == text


# -- the page and its plots ---------------------------------------------------------------------


def results(bench, **more):
    goal = told(figures=[figure(bench, 0.9).to_dict()], seconds=1.0)
    goal["series"] = [
        {"name": "row-wise", "n": 1_000, "us": 8.0},
        {"name": "row-wise", "n": 100_000, "us": 4.0},
        {"name": "bare loop", "n": 1_000, "us": 0.06},
        {"name": "bare loop", "n": 100_000, "us": 0.05},
    ]
    goal["measured"] = {
        **{"date": "2026-01-02", "commit": "abc", "quick": False, "command": "run"},
        "machine": {"processor": "p", "cores": 2, "system": "s", "python": "3"},
        **more,
    }
    return {"goals": [goal]}


def test_the_tables_say_what_the_figures_say(bench):
    title, _, _, line, _ = bench.write_docs.tables(results(bench))
    assert title.startswith("### Row by row")
    assert line == "| **1** t | what | 0.9× | ≤ 1 | ≤ 0.5 | gate |"
    assert "2026-01-02" in next(bench.write_docs.where(results(bench)))
    assert next(bench.write_docs.summary(results(bench))).startswith("1 of 1 goals")


def test_every_goal_has_a_place_on_the_page(bench):
    placed = [number for _, numbers in bench.write_docs.THEMES for number in numbers]
    assert sorted(placed) == sorted(bench.goal.GOALS)


def test_the_summary_says_what_falls_short_and_by_how_much(bench):
    kept = results(bench)
    assert any("what: 0.9× (stretch ≤ 0.5)" in line for line in bench.write_docs.summary(kept))
    kept["goals"][0]["figures"] = [figure(bench, 2).to_dict()]
    kept["goals"][0]["not_measured"] = "no node"
    said = "\n".join(bench.write_docs.summary(kept))
    assert "A gate is missed" in said
    assert "what: 2× (gate ≤ 1, stretch ≤ 0.5); not measured: no node" in said


def against(bench, number, names, ratio=30.0):
    """Give a goal against others as it is kept: what each took, and how ours compared."""
    goal = results(bench)["goals"][0] | {"number": number}
    goal["figures"], goal["series"] = [], [{"name": "row-wise", "n": 1_000, "us": 8.0}]
    for name in names:
        goal["series"].append({"name": name, "n": 1_000, "us": 240.0})
        goal["figures"] += [
            bench.goal.Figure(name, 240.0, "us/subject").to_dict(),
            bench.goal.Figure("ours row-wise, times as fast as that", ratio, "x").to_dict(),
        ]
    return goal


def test_others_stand_with_those_that_keep_as_much(bench):
    without = against(bench, 10, ["burr 1, no tracker", "beside: burr 1, one's own loop"])
    keeping = against(bench, 11, ["burr 1, tracker"], 300.0)
    kept = {"goals": [against(bench, 9, ["js 9, full recording", "js 9, no recorder"]),
                      without, keeping]}  # fmt: skip
    lines = list(bench.write_docs.peers(kept))
    second = lines.index("### With their recording\n")
    first, second = lines[:second], lines[second:]
    assert "| **burr 1, no tracker** | 240 | 30× |" in first
    assert "| burr 1, one's own loop | 240 | 30× |" in first
    assert "| **js 9, no recorder** | 240 | 30× |" in first
    assert "| **burr 1, tracker** | 240 | 300× |" in second
    assert "| **js 9, full recording** | 240 | 30× |" in second
    assert any("this package, row-wise" in line for line in first)
    drawn = {one.name: one for one in list(bench.write_docs.plots(kept))[1][1]}
    assert drawn["burr, tracker"].dashed
    assert not drawn["burr, no tracker"].dashed
    assert not any("loop" in name for name in drawn)


def test_figures_of_a_quick_run_are_no_result(bench):
    with pytest.raises(SystemExit, match="quick"):
        list(bench.write_docs.where(results(bench, quick=True)))


def test_a_page_without_a_place_is_an_error(bench):
    page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb"
    assert bench.write_docs.placed(page, "x", "new") == (
        "a\n<!-- begin x -->\n\nnew\n\n<!-- end x -->\nb"
    )
    with pytest.raises(SystemExit, match="no place for 'y'"):
        bench.write_docs.placed(page, "y", "new")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_plot_names_every_series_and_keeps_names_apart(bench, theme):
    import xml.etree.ElementTree as ET

    ((_, series, title),) = bench.write_docs.plots(results(bench))
    drawn = bench.chart.draw(series, title=title, theme=theme)
    root = ET.fromstring(drawn)  # noqa: S314 - written a line above
    texts = ["".join(element.itertext()) for element in root]
    for one in series:
        assert (one.name in texts) == bool(one.points)
    assert drawn == bench.chart.draw(series, title=title, theme=theme)
    crowded = bench.chart.spread([100.0, 101.0, 102.0, 300.0])
    assert crowded[3] == 300.0
    gaps = [two - one for one, two in pairwise(crowded)]
    assert min(gaps) >= bench.chart.APART - 0.1
