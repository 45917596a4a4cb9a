"""Artifacts: payloads kept under references, so that an answer can carry a ticket instead.

`ArtifactStore` is the interface, `ShelfStore` the laws shared by stores whose rows can be held
in a transaction, `InMemoryArtifacts` the store of a process. `SqliteArtifacts` keeps them in one
file, `FileArtifacts` in a folder and `RemoteArtifacts` in a bucket. Tools work with
`BoundArtifacts`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from runbook_nb.artifacts.base import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_COUNT,
    DEFAULT_PAGE,
    ArtifactStore,
    IndexedShelf,
    Retention,
    Row,
    Shelf,
    ShelfStore,
)
from runbook_nb.artifacts.bound import BoundArtifacts, NoArtifacts, Observer
from runbook_nb.artifacts.inputs import (
    CHART_WALK_ARTIFACT_KIND,
    CHART_WALK_COLUMNS_ARTIFACT_KIND,
    JSON_MEDIA_TYPE,
    RECORDING_ARTIFACT_KIND,
    chart_walk_columns_put_input,
    chart_walk_put_input,
    recording_put_input,
)
from runbook_nb.artifacts.memory import InMemoryArtifacts
from runbook_nb.artifacts.model import (
    ArtifactPage,
    ArtifactScope,
    PutResult,
    Record,
    Swept,
    Ticket,
)
from runbook_nb.artifacts.parcel import is_ref

if TYPE_CHECKING:
    from runbook_nb.artifacts.files import FileArtifacts
    from runbook_nb.artifacts.remote import RemoteArtifacts
    from runbook_nb.artifacts.sqlite import SqliteArtifacts

__all__ = [
    "CHART_WALK_ARTIFACT_KIND",
    "CHART_WALK_COLUMNS_ARTIFACT_KIND",
    "DEFAULT_MAX_BYTES",
    "DEFAULT_MAX_COUNT",
    "DEFAULT_PAGE",
    "JSON_MEDIA_TYPE",
    "RECORDING_ARTIFACT_KIND",
    "ArtifactPage",
    "ArtifactScope",
    "ArtifactStore",
    "BoundArtifacts",
    "FileArtifacts",
    "InMemoryArtifacts",
    "IndexedShelf",
    "NoArtifacts",
    "Observer",
    "PutResult",
    "Record",
    "RemoteArtifacts",
    "Retention",
    "Row",
    "Shelf",
    "ShelfStore",
    "SqliteArtifacts",
    "Swept",
    "Ticket",
    "chart_walk_columns_put_input",
    "chart_walk_put_input",
    "is_ref",
    "recording_put_input",
]


#: Most processes have no use for a database or for files, so they do not read modules about them.
_HOMES = {"FileArtifacts": "files", "RemoteArtifacts": "remote", "SqliteArtifacts": "sqlite"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
