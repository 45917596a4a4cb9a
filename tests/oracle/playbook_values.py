"""How recorded playbook cases are found, and how the values JSON cannot hold are read."""

from __future__ import annotations

import os
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

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


def folder() -> Path:
    """Give the folder of recordings; another layout may have no playbooks in it."""
    return Path(os.environ.get("RUNBOOK_NB_ORACLE") or HERE / "data") / "playbooks"
