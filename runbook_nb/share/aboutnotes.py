"""Metadata of notebooks, cells and outputs: what tells of a run, a machine or a person is left out.

Sharing layer. Programs write what they like there. What is known to say when, where or by whom
something ran is removed by its name, and anything else by its form: a moment, a folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from runbook_nb.share.scrubbing import Scrub
from runbook_nb.share.travelling import NAME

TIMING: Final = "execution timing"
MACHINE: Final = "what tells of a machine or an account"

#: Names of what says when and how long something ran.
_TIMES: Final = frozenset(
    {"execution", "ExecuteTime", "executionInfo", "execution_time", "papermill", "timing"}
    | {"start_time", "end_time", "duration", "timestamp", "created", "modified", "last_modified"}
    | {"last_executed", "last_executed_text", "elapsed", "timestamps", "createdAt", "updatedAt"}
)
#: Names of what says where it ran, and by whom.
_PLACES: Final = frozenset(
    {"interpreter", "vscode", "kernel_info", "kernel_connection", "connection_file", "signature"}
    | {"orig_nbformat", "trusted", "provenance", "authorship_tag", "user", "userId", "user_tz"}
    | {"username", "displayName", "photoUrl", "hostname", "host", "argv", "env", "resource_dir"}
    | {"input_path", "output_path", "environment_variables", "kernel_id", "session_id"}
)
_APART: Final = ("kernelspec", "language_info", "widgets")
_KERNELSPEC: Final = ("display_name", "language", "name")
#: A moment, as programs write it.
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
)


class AboutNotes:
    """Goes over the metadata of one notebook.

    Parameters
    ----------
    scrub : Scrub
    """

    def __init__(self, scrub: Scrub) -> None:
        self._scrub = scrub

    def of_notebook(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Give the metadata of a notebook; that of widgets is none of it."""
        place = "the notebook's metadata"
        rest = {name: held for name, held in metadata.items() if name not in _APART}
        made = self._mapping(rest, place)
        for part in ("kernelspec", "language_info"):
            if part in metadata:
                made[part] = self._described(metadata[part], part, place)
        return made

    def _described(self, given: Any, part: str, place: str) -> Any:
        """Give what says which kernel is needed; the format needs its names to be there."""
        if not isinstance(given, Mapping):
            return self._scrub.data(given, place)
        rest = dict(given)
        if part == "kernelspec":
            rest = {name: given[name] for name in _KERNELSPEC if name in given}
            self._removed(MACHINE, place, len(given) - len(rest))
        return {
            name: self._scrub.text(held, place, files=True)
            if isinstance(held, str)
            else self._scrub.data(held, place)
            for name, held in rest.items()
        }

    def of_cell(self, metadata: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Give the metadata of a cell."""
        made = self._mapping(metadata, place)
        if isinstance(made.get("tags"), list):
            tags = [str(tag).replace(",", " ") for tag in made["tags"]]
            made["tags"] = list(dict.fromkeys(tag for tag in tags if tag))
        for name, kinds in _TYPED.items():
            if name in made and not (
                isinstance(made[name], kinds) and made[name] == metadata[name]
            ):
                del made[name]
        return made

    def of_output(self, metadata: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Give the metadata of an output; the answer in it stays an answer."""
        rest = {name: held for name, held in metadata.items() if name != NAME}
        made = self._mapping(rest, place)
        entry = metadata.get(NAME)
        if isinstance(entry, Mapping) and "payload" in entry:
            carried = self._scrub.carried(entry, place)
            if carried is not None:
                made[NAME] = carried
        elif entry is not None:
            made[NAME] = self._scrub.data(entry, place)
        return made

    def _mapping(self, metadata: Mapping[str, Any], place: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, held in metadata.items():
            if name in _TIMES or (isinstance(held, str) and _MOMENT.fullmatch(held)):
                self._removed(TIMING, place)
            elif name in _PLACES or (
                isinstance(held, str) and self._scrub.machine.is_named_in(held)
            ):
                self._removed(MACHINE, place)
            elif isinstance(held, Mapping):
                inner = self._mapping(held, place)
                made[name] = inner
            else:
                made[name] = held
        return made if self._scrub.only_learns else self._looked_through(made, metadata, place)

    def _looked_through(self, made: Any, metadata: Any, place: str) -> dict[str, Any]:
        given: dict[str, Any] = self._scrub.data(made, place)
        return given

    def _removed(self, what: str, place: str, times: int = 1) -> None:
        if not self._scrub.only_learns:
            self._scrub.findings.add("removed", what, place, times)


#: What nbformat holds to a type, by name.
_TYPED: Final[Mapping[str, type | tuple[type, ...]]] = {
    "collapsed": bool,
    "deletable": bool,
    "editable": bool,
    "scrolled": (bool, str),
    "format": str,
}
