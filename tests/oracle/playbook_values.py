"""How recorded playbook cases are found, and how the values JSON cannot hold are read."""

from __future__ import annotations

import json
import os
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from replay_values import HarnessFailure

HERE = Path(__file__).parent


class Shown:
    """An object known by its text alone."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def decode(value: Any) -> Any:
    """Read a recorded argument: what JSON cannot hold is tagged."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    tags = [key for key in value if key.startswith("$")]
    if not tags or len(value) > 1:  # keys of other tools may begin so as well
        return {key: decode(item) for key, item in value.items()}
    if tags == ["$circular"]:
        ring: dict[str, Any] = {}
        ring["self"] = ring
        return ring
    readers = {
        "$date": date.fromisoformat,
        "$datetime": datetime.fromisoformat,
        "$set": lambda items: set(map(decode, items)),
        "$bytes": lambda told: bytes(told) if isinstance(told, list) else told.encode(),
        "$path": PurePosixPath,
        "$obj": Shown,
        "$pairs": lambda pairs: {decode(key): decode(item) for key, item in pairs},
        "$tuple": lambda items: tuple(map(decode, items)),
    }
    if tags[0] not in readers:
        raise HarnessFailure(f"no reading of the recorded value {value}")
    return readers[tags[0]](value[tags[0]])


def cases(kept: bool = False) -> list[dict[str, Any]]:
    """Give the recorded cases; another folder of recordings need not have any.

    Parameters
    ----------
    kept : bool
        Whether those that come with this project are meant, whatever folder is named.
    """
    named = None if kept else os.environ.get("RUNBOOK_NB_ORACLE")
    paths = sorted((Path(named or HERE / "data") / "playbooks").glob("*.json"))
    return [json.loads(path.read_text("utf-8")) for path in paths]


def recorded(*kinds: str) -> list[Any]:
    """Give the cases of some kinds, each as a parameter of a test."""
    return [pytest.param(case, id=case["id"]) for case in cases() if case["kind"] in kinds]
