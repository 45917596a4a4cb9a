"""What a program says of itself: where its stages are, which of them run beside one another.

Places are written as in runtime ids. The key of a place leaves out the numbers of branches, so
that it names the stage in the program; a *lane* is a place whose stages follow one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay_program import groups

_BRANCH = re.compile(r"~\d+(?=/|$)")


def key_of(place: str) -> str:
    """Give the key of a place: ``each~0/load`` is ``each/load``."""
    return _BRANCH.sub("", place)


@dataclass
class Stage:
    """One stage of a program, by its key."""

    key: str
    kind: str
    name: str
    step: Mapping[str, Any]
    ops: list[Any] = field(default_factory=list)
    #: The chart it is a stage of, and its position in that chart's sequence; None for branches.
    chart: str = ""
    position: int | None = None
    owner: str | None = None


@dataclass
class Fork:
    """A fork of children: our stage, the stage upstream hangs it on, the keys of the children."""

    key: str
    hung_on: str
    children: list[str]


class Shape:
    """The stages of a program."""

    def __init__(self, program: Mapping[str, Any]) -> None:
        self.program = program
        self.stages: dict[str, Stage] = {}
        self.forks: list[Fork] = []
        #: Keys whose stages run beside others: fork children, branches of a selector.
        self.beside: set[str] = set()
        self.fan_outs: set[str] = set()
        #: Stages whose first failing branch fails the run.
        self.fails_fast: set[str] = set()
        #: Default branch of each decider.
        self.defaults: dict[str, str] = {}
        self._chart(program, "")

    @property
    def parallel(self) -> bool:
        """Whether anything may run beside anything."""
        return bool(self.beside or self.fan_outs)

    def lane(self, place: str) -> str:
        """Give the lane of a place, by its whole path: empty for the run's own."""
        steps = place.split("/")
        for end in range(len(steps), 0, -1):
            here = "/".join(steps[:end])
            if key_of(here) in self.beside or "~" in steps[end - 1]:
                return here
        return ""

    def owner(self, lane: str) -> str:
        """Give the key of the stage whose branch or child a lane is."""
        key = key_of(lane)
        if key in self.fan_outs and "~" in lane.rpartition("/")[2]:
            return key
        stage = self.stages.get(key)
        return "" if stage is None or stage.owner is None else stage.owner

    def at(self, place: str) -> Stage | None:
        """Give the stage of a place."""
        return self.stages.get(key_of(place))

    def walk(self) -> Iterator[Stage]:
        """Yield every stage, inner ones too."""
        return iter(self.stages.values())

    # -- reading a program ------------------------------------------------------------------

    def _add(self, path: str, step: Mapping[str, Any], kind: str, **more: Any) -> str:
        key = f"{path}{step['id']}"
        ops = list(step.get("ops") or step.get("execute") or [])
        found = Stage(key, kind, step.get("name") or step["id"], step, ops, path, **more)
        self.stages.setdefault(key, found)
        return key

    def _chart(self, program: Mapping[str, Any], path: str) -> None:
        start = program["start"]
        kind = start.get("kind", "function")
        position = 0
        cursor = self._add(path, start, kind, position=position)
        self._inside(start, kind, path, cursor)
        for group in groups(program):
            step, add = group["step"], group["add"]
            if add in ("start", "loop_to", "start_again"):
                continue
            position += 1
            if add == "same_function":
                for id in step["ids"]:
                    self._add(path, {"id": id, "name": step["name"]}, "function")
            elif add == "fork":
                self._fork(group, path, cursor, position)
            else:
                cursor = self._add(path, step, add, position=position)
                self._inside(step, add, path, cursor)

    def _fork(self, group: Mapping[str, Any], path: str, cursor: str, position: int) -> None:
        key = self._add(path, {"id": group["id"], "name": "Fork"}, "fork", position=position)
        children = []
        for one in group["members"]:
            for child in one.get("children") or [{**one, "kind": "subflow"}]:
                kind = child.get("kind", "function")
                if "id" in child:
                    children.append(self._add(path, child, kind, owner=key))
                    self._inside(child, kind, path, children[-1])
        if any(one.get("failFast") for one in group["members"]):
            self.fails_fast.add(key)
        self.beside.update(children)
        self.forks.append(Fork(key, cursor, children))

    def _inside(self, step: Mapping[str, Any], kind: str, path: str, key: str) -> None:
        for branch in step.get("branches") or ():
            form = branch.get("kind", "function")
            inner = self._add(path, branch, form, owner=key)
            if kind == "selector":
                self.beside.add(inner)
            self._inside(branch, form, path, inner)
        if step.get("failFast"):
            self.fails_fast.add(key)
        if kind == "decider" and step.get("default") is not None:
            self.defaults[key] = f"{path}{step['default']}"
        if kind == "for_each":
            self.fan_outs.add(key)
            branch = step.get("branch")
            if isinstance(branch, Mapping):
                charts = [branch["chart"]] if "chart" in branch else branch["per_index"]
                for chart in charts:
                    self._chart(chart, f"{key}/")
        elif "chart" in step:
            self._chart(step["chart"], f"{key}/")
