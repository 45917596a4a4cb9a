"""What importing the package costs, counted in modules, and that every module can be imported."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module

import runbook_nb

MOST_MODULES = 120
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


def test_every_module_can_be_imported():
    walked = pkgutil.walk_packages(runbook_nb.__path__, "runbook_nb.")
    names = [module.name for module in walked if not module.name.endswith("__main__")]
    assert names
    for name in names:
        import_module(name)
