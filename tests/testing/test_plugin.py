"""The pytest plugin: harmless until asked, and then time, ids and layout stand still."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import nbformat
import pytest

from runbook_nb._ids import SeededIds
from runbook_nb.settings import settings
from runbook_nb.testing import MOMENT, SEED, environment

pytest_plugins = ["pytester"]

#: In an installed checkout pytest finds the plugin by itself; elsewhere it is named.
INSTALLED = bool(list(entry_points(group="pytest11", name="runbook_nb")))
LOADED = [] if INSTALLED else ["-p", "runbook_nb.testing.plugin"]


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Begin with no variable of the package set, whatever this test run was started with."""
    for name in list(os.environ):
        if name.startswith("RUNBOOK_NB_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(pytester):
    """Run pytest in a process of its own, with the plugin loaded."""

    def run(*arguments):
        return pytester.runpytest_subprocess(*LOADED, "-p", "no:cacheprovider", *arguments)

    return run


def ids_of(seed):
    return SeededIds(seed)(8)


# --- harmless until asked ----------------------------------------------------------------------


def test_an_unrelated_suite_sees_nothing_of_it(pytester, run):
    pytester.makepyfile(
        """
        import os
        import sys

        def test_environment_is_untouched():
            assert [name for name in os.environ if name.startswith("RUNBOOK_NB_")] == []

        def test_the_package_has_hardly_been_imported():
            ours = {name for name in sys.modules if name.startswith("runbook_nb.")}
            known = ("_version", "testing", "testing.plugin")
            assert ours <= {f"runbook_nb.{name}" for name in known}
        """
    )
    run().assert_outcomes(passed=2)


def test_fixtures_of_the_same_names_in_a_suite_come_first(pytester, run):
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def store():
            return "my own"
        """
    )
    pytester.makepyfile("def test_store(store):\n    assert store == 'my own'")
    run().assert_outcomes(passed=1)


def test_a_broken_variable_does_not_stop_an_unrelated_suite(pytester, run, monkeypatch):
    monkeypatch.setenv("RUNBOOK_NB_CLOCK", "noon")
    pytester.makepyfile("def test_nothing():\n    pass")
    run().assert_outcomes(passed=1)


def test_importing_the_helpers_imports_no_pytest():
    code = "import sys, runbook_nb.testing as t; t.reproducible; t.assert_verdicts; "
    code += "sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_nbval_the_plugin_loads_all_the_same(pytester):
    pytester.makepyfile("def test_nothing():\n    pass")
    done = pytester.runpytest_subprocess(*LOADED, "-p", "no:nbval", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)


# --- fixtures ----------------------------------------------------------------------------------


def test_the_frozen_clock_moves_only_when_told(pytester, run):
    pytester.makepyfile(
        """
        from datetime import UTC, datetime, timedelta
        import runbook_nb as rb

        def test_clock(frozen_clock):
            first = rb.settings.clock()
            assert rb.settings.clock() == first == datetime(2026, 1, 1, tzinfo=UTC)
            frozen_clock.advance(days=3)
            assert rb.settings.clock() - first == timedelta(days=3)
            frozen_clock.set(datetime(2030, 1, 1, tzinfo=UTC))
            assert rb.settings.clock().year == 2030

        def test_it_runs_again_afterwards():
            assert rb.settings.clock() != datetime(2026, 1, 1, tzinfo=UTC)
        """
    )
    run().assert_outcomes(passed=2)


def test_seeded_ids_start_anew_for_each_test(pytester, run):
    pytester.makepyfile(
        f"""
        import pytest
        import runbook_nb as rb

        @pytest.mark.parametrize("time", [1, 2])
        def test_ids(seeded_ids, time):
            assert rb.settings.ids(8) == {ids_of(SEED)!r}

        def test_they_are_random_again_afterwards():
            assert rb.settings.ids(8) != {ids_of(SEED)!r}
        """
    )
    run().assert_outcomes(passed=3)


def test_a_store_gives_the_same_references_in_every_run(pytester, run):
    pytester.makepyfile(
        """
        import runbook_nb as rb
        from runbook_nb.artifacts import ArtifactScope

        def filed(store):
            put = {"kind": "note", "mediaType": "text/plain", "data": "x"}
            return store.put_sync(ArtifactScope("c"), put).meta

        seen = []

        def test_once(store):
            seen.append(filed(store))

        def test_again(store):
            assert [filed(store)] == seen
        """
    )
    run().assert_outcomes(passed=2)


# --- on request --------------------------------------------------------------------------------

STANDS_STILL = f"""
import os
import runbook_nb as rb

def test_one():
    assert rb.settings.clock().isoformat() == {MOMENT.isoformat()!r}
    assert rb.settings.ids(8) == {ids_of(SEED)!r}
    assert rb.settings.static and rb.settings.layout == "pure"
    assert os.environ["RUNBOOK_NB_IDS"] == {SEED!r}

def test_two():
    assert rb.settings.ids(8) == {ids_of(SEED)!r}
"""


def test_asked_by_the_option_it_holds_every_test_still(pytester, run):
    pytester.makepyfile(STANDS_STILL)
    run("--runbook-nb=on").assert_outcomes(passed=2)


def test_asked_by_the_ini_file_it_holds_every_test_still(pytester, run):
    pytester.makepyfile(STANDS_STILL)
    pytester.makeini("[pytest]\nrunbook_nb = on")
    run().assert_outcomes(passed=2)


def test_the_option_wins_over_the_ini_file(pytester, run):
    pytester.makeini("[pytest]\nrunbook_nb = on")
    pytester.makepyfile("import os\ndef test_off():\n    assert 'RUNBOOK_NB_IDS' not in os.environ")
    run("--runbook-nb=off").assert_outcomes(passed=1)


def test_a_word_that_is_no_mode_is_refused_with_the_words_that_are(pytester, run):
    pytester.makeini("[pytest]\nrunbook_nb = yes")
    pytester.makepyfile("def test_nothing():\n    pass")
    done = run()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*runbook_nb = 'yes' is none of auto, on, off*"])


def test_a_variable_that_is_set_already_stays(pytester, run, monkeypatch):
    monkeypatch.setenv("RUNBOOK_NB_IDS", "mine")
    pytester.makepyfile(
        "import os\ndef test_it():\n    assert os.environ['RUNBOOK_NB_IDS'] == 'mine'"
    )
    run("--runbook-nb=on").assert_outcomes(passed=1)


def test_the_environment_is_left_as_it_was(pytester):
    pytester.makepyfile("def test_nothing():\n    pass")
    pytester.runpytest_inprocess(*LOADED, "-p", "no:cacheprovider", "--runbook-nb=on")
    assert [name for name in os.environ if name.startswith("RUNBOOK_NB_")] == []


# --- notebooks ---------------------------------------------------------------------------------


def notebook(pytester, *cells):
    """Write a notebook of cells, each a source with the text it shows."""
    made = [
        nbformat.v4.new_code_cell(
            source,
            execution_count=number,
            id=f"cell-{number}",
            outputs=[
                nbformat.v4.new_output(
                    "execute_result", data={"text/plain": shown}, execution_count=number
                )
            ],
        )
        for number, (source, shown) in enumerate(cells, 1)
    ]
    made = nbformat.v4.new_notebook(
        cells=made,
        metadata={"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
    )
    nbformat.write(made, pytester.path / "one.ipynb")


CELLS = [
    (
        "import runbook_nb as rb\n(rb.settings.clock().isoformat(), rb.settings.ids(8))",
        repr((MOMENT.isoformat(), ids_of(SEED))),
    ),
    ("(rb.settings.static, rb.settings.layout)", "(True, 'pure')"),
]


def test_kernels_that_nbval_starts_stand_still(pytester, run):
    notebook(pytester, *CELLS)
    run("--nbval", "--nbval-current-env").assert_outcomes(passed=2)


def test_switched_off_they_do_not(pytester, run):
    notebook(pytester, CELLS[0])
    run("--nbval", "--nbval-current-env", "--runbook-nb=off").assert_outcomes(failed=1)


def test_in_a_run_of_notebooks_the_tests_of_the_process_keep_their_settings(pytester, run):
    notebook(pytester, CELLS[0])
    pytester.makepyfile(
        """
        import runbook_nb as rb

        def test_settings():
            assert rb.settings.layout == "auto" and not rb.settings.static
        """
    )
    run("--nbval", "--nbval-current-env").assert_outcomes(passed=2)


def test_a_file_of_patterns_that_was_given_stays(pytester, run):
    notebook(pytester, ("'x'", "'something else'"))
    pytester.makefile(".cfg", own="regex: 'x'|'something else'\nreplace: same\n")
    run("--nbval", "--nbval-current-env", "--nbval-sanitize-with=own.cfg").assert_outcomes(passed=1)
    run("--nbval", "--nbval-current-env").assert_outcomes(failed=1)


# --- the same by hand --------------------------------------------------------------------------


def test_the_environment_says_what_the_settings_say():
    code = "import json, runbook_nb as rb; s = rb.settings; "
    code += "print(json.dumps([s.static, s.layout, s.clock().isoformat(), s.ids(8)]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment(seed="other")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [True, "pure", MOMENT.isoformat(), ids_of("other")]


def test_empty_variables_leave_the_clock_running_and_the_ids_random():
    code = "import runbook_nb as rb; s = rb.settings; "
    code += f"assert s.clock().year >= 2026 and s.ids(8) != {ids_of('')!r}; "
    # Two looks may fall into one microsecond; of so many, one is later.
    code += "first = s.clock(); assert any(first < s.clock() for _ in range(100_000))"
    empty = {"RUNBOOK_NB_CLOCK": "", "RUNBOOK_NB_IDS": " "}
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **empty}, check=True)


@pytest.mark.parametrize("text", ["noon", "2026-11-29", "2026-11-29T12:00:00"])
def test_a_clock_that_names_no_moment_is_refused_with_an_example(text):
    done = subprocess.run(
        [sys.executable, "-c", "import runbook_nb; runbook_nb.settings"],
        env={**os.environ, "RUNBOOK_NB_CLOCK": text},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "is not a time with its zone; write it as 2026-11-29T00:00:00Z" in done.stderr


def test_settings_of_this_process_are_untouched():
    assert settings.layout == "auto"
