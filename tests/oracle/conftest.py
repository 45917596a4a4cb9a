"""The recorded results of upstream packages: where they are, how they are read, what departs.

The folder is ``data`` beside this file, or the one named by ``RUNBOOK_NB_ORACLE``. Cases for
which nobody has written an assertion run against general laws and are listed as unjudged.
"""

from __future__ import annotations

import json
import os
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from runbook_nb._text import MISSING

HERE = Path(__file__).parent
UNJUDGED = pytest.StashKey[list[str]]()

_WORDS = {
    "undefined": MISSING,
    "missing": MISSING,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "-0": -0.0,
}


def decode(value: Any) -> Any:
    """Read a recorded value: what JavaScript has and JSON has not is tagged."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$range" in value:
        return list(range(value["$range"]))
    kind = value.get("$js")
    if kind is None:
        return {key: decode(item) for key, item in value.items()}
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "date":
        return datetime.fromisoformat(value["iso"])
    if kind == "set":
        return set(decode(value["values"]))
    if kind == "bigint":
        return int(value["value"])
    raise LookupError(f"no Python reading of {value}")


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


def pytest_configure(config):
    config.stash[UNJUDGED] = []
    config.addinivalue_line(
        "markers", "oracle(name, *kinds): run once per recorded case of these kinds in a file"
    )


def pytest_generate_tests(metafunc):
    mark = metafunc.definition.get_closest_marker("oracle")
    if mark is not None:
        cases = Oracle().cases(mark.args[0], mark.args[1:])
        metafunc.parametrize("case", cases, ids=[case["id"] for case in cases])


def pytest_terminal_summary(terminalreporter, config):
    for case in config.stash.get(UNJUDGED, []):
        terminalreporter.write_line(f"unjudged: {case}")


@pytest.fixture(scope="session")
def oracle():
    return Oracle()


@pytest.fixture
def unjudged(request):
    """Say that a case was only held against the general laws."""
    return lambda case: request.config.stash[UNJUDGED].append(f"{case['id']} {case['title']}")
