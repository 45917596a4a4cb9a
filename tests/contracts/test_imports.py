"""What importing the package costs, counted in modules, and that every module can be imported."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import runbook_nb

MOST_MODULES = 120
MOST_FOR_AN_ANSWER = 253
#: Pieces of source text that `dataclasses` and `typing` compile for the classes of an answer.
MOST_COMPILED = 400
LEFT_ALONE = {
    *("IPython", "anywidget", "asyncio", "graphviz", "ipywidgets", "jinja2", "nbformat", "numpy"),
    *("pandas", "pydantic", "rich", "tqdm", "typer", "yaml"),
}

PROBE = """
import sys
before = set(sys.modules)
import runbook_nb
after = set(sys.modules)
import json
print(json.dumps(sorted(after - before)))
"""


def brought_in() -> list[str]:
    """List the modules that ``import runbook_nb`` adds to a bare interpreter."""
    probe = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    )
    return json.loads(probe.stdout)


def test_importing_the_package_imports_nothing_heavy():
    assert LEFT_ALONE & {name.partition(".")[0] for name in brought_in()} == set()


def test_importing_the_package_brings_in_few_modules():
    assert len(brought_in()) <= MOST_MODULES


FIRST_ANSWER = """
import sys
before = set(sys.modules)
texts = []
sys.addaudithook(lambda event, told: texts.append(1) if (event, told[1:]) == COMPILED else None)
import runbook_nb as rb
rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
rows = [{"host": f"h{n}", "days": n} for n in range(50)]
shown, _ = rb.triage(rows, rules, subject="host", source="inventory")._repr_mimebundle_()
assert set(shown) == {"text/plain", "text/html"}
import json
print(json.dumps([len(texts), sorted(set(sys.modules) - before)]))
""".replace("COMPILED", repr(("compile", ("<string>",))))


@pytest.fixture(scope="module")
def first_answer():
    """Make a first answer, shown as text, HTML and picture: what it compiles, what it brings in."""
    probe = subprocess.run(
        [sys.executable, "-c", FIRST_ANSWER], capture_output=True, text=True, check=True
    )
    return json.loads(probe.stdout)


@pytest.fixture(scope="module")
def of_the_first_answer(first_answer):
    return set(first_answer[1])


def test_the_first_answer_brings_in_only_what_draws_and_runs_it(of_the_first_answer):
    packages = {name.partition(".")[0] for name in of_the_first_answer}
    assert packages & LEFT_ALONE == set()
    assert packages & {"markupsafe", "email", "http", "secrets", "random", "zipfile"} == set()


def test_the_first_answer_leaves_what_is_dear_in_the_standard_library_alone(of_the_first_answer):
    dear = {"importlib.metadata", "importlib.resources", "urllib.request", "xml.sax"}
    dear |= {"tempfile", "shutil", "difflib", "csv", "uuid"}
    dear |= {"html", "pkgutil", "string", "sysconfig"}
    dear |= {"asyncio", "concurrent", "logging", "traceback", "pathlib"}
    assert dear & of_the_first_answer == set()


def test_the_first_answer_brings_in_few_modules(of_the_first_answer):
    assert len(of_the_first_answer) <= MOST_FOR_AN_ANSWER
    own = {name for name in of_the_first_answer if name.startswith("runbook_nb")}
    assert not any(name.startswith(("runbook_nb.share", "runbook_nb.cli")) for name in own)


def test_the_first_answer_leaves_alone_what_it_has_no_use_for(of_the_first_answer):
    unused = {"artifacts.totals", "chart.progress", "chart.streaming", "record.foreign_told"}
    unused |= {"record.judgements", "record.pauses", "record.recording", "rules.notes"}
    unused |= {"runbook.filed", "runbook.flowchart", "tools.functions", "tools.redeem"}
    unused |= {"tools.schema", "_tagged", "_untagged"}
    assert {f"runbook_nb.{name}" for name in unused} & of_the_first_answer == set()


def test_the_first_answer_compiles_little_beside_what_is_compiled_already(first_answer):
    assert 0 < first_answer[0] <= MOST_COMPILED


def test_every_module_can_be_imported():
    walked = pkgutil.walk_packages(runbook_nb.__path__, "runbook_nb.")
    names = [module.name for module in walked if not module.name.endswith("__main__")]
    assert names
    for name in names:
        import_module(name)
