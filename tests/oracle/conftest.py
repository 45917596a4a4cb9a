"""The recorded results of upstream packages: where they are, how they are read, what departs.

The folder is ``data`` beside this file, or the one named by ``RUNBOOK_NB_ORACLE``. Cases for
which nobody has written an assertion run against general laws and are listed as unjudged.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "playbooks")]

from replay_values import decode  # noqa: E402 - what the tests here share stands beside them

UNJUDGED = pytest.StashKey[list[str]]()
OUTCOMES = pytest.StashKey[dict[str, Counter[str]]]()
DEPARTED = pytest.StashKey[dict[str, list[str]]]()
COMPARED = pytest.StashKey[dict[str, str]]()


class Oracle:
    """The folder of recordings, and the departures declared from them."""

    def __init__(self) -> None:
        self.folder = Path(os.environ.get("RUNBOOK_NB_ORACLE") or HERE / "data")
        declared = tomllib.loads((HERE / "departures.toml").read_text("utf-8"))
        self.departures = {entry["id"]: entry for entry in declared["departure"]}

    decode = staticmethod(decode)

    def document(self, name: str) -> dict[str, Any]:
        return json.loads((self.folder / name).read_text("utf-8"))

    def cases(self, name: str, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
        path = self.folder / name
        if not path.exists():
            return []
        return [case for case in self.document(name)["cases"] if case.get("kind") in kinds]

    def programs(self, families: tuple[str, ...]) -> list[dict[str, Any]]:
        """Give the chart programs of some files; a folder need not have them all."""
        found = []
        for family in families:
            path = self.folder / "chart" / f"{family}.json"
            if path.exists():
                cases = self.document(f"chart/{family}.json")["cases"]
                found += [{**case, "family": family} for case in cases]
        return found

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Give the rows of a file of tables."""
        return self.document(name)["rows"] if (self.folder / name).exists() else []

    def facts(self) -> list[dict[str, Any]]:
        """Give the facts about using the package."""
        path = self.folder / "chart/api_facts.json"
        return self.document("chart/api_facts.json")["facts"] if path.exists() else []


def pytest_configure(config):
    config.stash[UNJUDGED] = []
    config.stash[OUTCOMES] = {}
    config.stash[DEPARTED] = {}
    config.stash[COMPARED] = {}
    config.addinivalue_line(
        "markers", "oracle(name, *kinds): run once per recorded case of these kinds in a file"
    )
    config.addinivalue_line(
        "markers", "programs(*families): run once per recorded chart program of these files"
    )


def pytest_generate_tests(metafunc):
    mark = metafunc.definition.get_closest_marker("oracle")
    if mark is not None:
        cases = Oracle().cases(mark.args[0], mark.args[1:])
        metafunc.parametrize("case", cases, ids=[case["id"] for case in cases])

    programs = metafunc.definition.get_closest_marker("programs")
    if programs is not None:
        cases = Oracle().programs(programs.args)
        metafunc.parametrize("case", cases, ids=[case["id"] for case in cases])

    if "fact" in metafunc.fixturenames:
        facts = Oracle().facts()
        metafunc.parametrize("fact", facts, ids=[fact["id"] for fact in facts])


def pytest_terminal_summary(terminalreporter, config):
    outcomes = config.stash.get(OUTCOMES, {})
    if terminalreporter.config.get_verbosity() > 0:
        for family, counts in outcomes.items():
            told = ", ".join(f"{times} {outcome}" for outcome, times in sorted(counts.items()))
            terminalreporter.write_line(f"oracle {family}: {told}")
        for name, cases in sorted(config.stash.get(DEPARTED, {}).items()):
            terminalreporter.write_line(f"departure {name}: {', '.join(cases)}")
        for case, told in config.stash.get(COMPARED, {}).items():
            terminalreporter.write_line(f"compared {case}: {told}")
    for case in config.stash.get(UNJUDGED, []):
        terminalreporter.write_line(f"unjudged: {case}")


@pytest.fixture
def outcome(request):
    """Note how a case came out, and which departures led there."""

    def note(case, how, found=None):
        family = case.get("family", "")
        request.config.stash[OUTCOMES].setdefault(family, Counter())[how] += 1
        if found is not None:
            told = ", ".join(f"{key} ({what})" for key, what in found.compared.items())
            request.config.stash[COMPARED][case["id"]] = told
        for name in found.departures.used if found is not None else ():
            request.config.stash[DEPARTED].setdefault(name, []).append(case["id"])

    return note


@pytest.fixture(scope="session")
def oracle():
    return Oracle()


@pytest.fixture
def unjudged(request):
    """Say that a case was only held against the general laws."""
    return lambda case: request.config.stash[UNJUDGED].append(f"{case['id']} {case['title']}")
