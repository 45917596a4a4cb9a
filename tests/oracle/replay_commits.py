"""The commit log as facts: what each executed step changed, and how, from either side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay_expected import READERS, Expected
from replay_rows import split
from replay_seen import plain_value
from replay_shape import key_of
from replay_values import ANYTHING, same

SEPARATOR = "\x1f"


@dataclass
class Change:
    """One commit: its execution, its stage's name, what it says of each key, and beside that.

    ``said`` maps each changed key to verb, value and the keys read before it, in order; of an
    index of commits only verbs are known.
    """

    place: str
    n: int | None
    name: Any = ANYTHING
    said: dict[str, tuple[str, Any, Any]] = field(default_factory=dict)
    hidden: Any = ANYTHING
    tags: Any = ANYTHING
    sources: Any = ANYTHING
    #: Whether what it changed is not known.
    free: bool = False

    def __str__(self) -> str:
        at = self.place if self.n is None else f"{self.place}#{self.n}"
        return f"{at} {self.said}"

    @property
    def values(self) -> dict[str, Any]:
        """Each key that holds something after the commit, with what the commit says of it."""
        return {key: value for key, (verb, value, _) in self.said.items() if verb != "delete"}

    @property
    def deleted(self) -> set[str]:
        """The keys that are gone."""
        return {key for key, (verb, _, _) in self.said.items() if verb == "delete"}


class Commits:
    """The recorded commits of a case, as they are expected of us."""

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.shape = expected.shape
        self.departs = expected.departs

    def changes(self) -> list[Change]:
        """Give what each executed step of the run's own level is expected to have changed."""
        observed = self.expected.observed
        if "commits" in observed:
            told = [self._bundle(one) for one in observed["commits"]]
        else:
            told = [self._indexed(one) for one in observed["commit_index"]]
        told = list(self._merged(told))
        told = [one for one in told if not self._generated(one)]
        self._interrupted(told)
        self._views(told)
        told = self._with_own_stages(told)
        if self.shape.parallel:
            self.departs("executions-are-counted-by-track")
            told.sort(key=lambda one: (one.n is None, one.n or 0))
            for one in told:
                one.n = None
        return told

    def _place(self, runtime_id: str, name: str) -> tuple[str, int | None, Any]:
        place, n = split(runtime_id)
        path, _, last = place.rpartition("/")
        if last == "default" and self.shape.at(place) is None:
            for decider, default in self.shape.defaults.items():
                if decider.rpartition("/")[0] == key_of(path):
                    self.departs("default-branch-has-its-own-id")
                    here = default.rpartition("/")[2]
                    place = f"{path}/{here}" if path else here
        stage = self.shape.at(place)
        if stage is None or "~" in place.rpartition("/")[2]:
            return place, n, ANYTHING
        if stage.name == name:
            return place, n, name
        # Later passes are numbered, and one that a stray loop ran is called by its id.
        if name.partition(f"{stage.name}.")[2].isdigit() or name == stage.step["id"]:
            self.departs("a-pass-has-the-name-of-its-stage")
            return place, n, stage.name
        return place, n, name

    def _bundle(self, recorded: Mapping[str, Any]) -> Change:
        place, n, name = self._place(recorded["runtimeStageId"], recorded["stage"])
        change = Change(place, n, name)
        said: Mapping[str, Any] = recorded
        trace = [(tuple(one["path"]), one["verb"], one.get("readKeys")) for one in said["trace"]]
        overwrite, updates = said.get("overwrite", {}), said.get("updates", {})
        if trace and self.shape.beside and all(_in_runs(path) for path, *_ in trace):
            self.departs("own-view-instead-of-runs")
            child = trace[0][0][1]
            overwrite = overwrite.get("runs", {}).get(child, {})
            updates = updates.get("runs", {}).get(child, {})
            trace = [(path[2:], verb, reads) for path, verb, reads in trace]
        for path, verb, reads in trace:
            key = path[0]
            value = updates.get(key) if verb == "merge" else overwrite.get(key)
            told = ANYTHING if reads is None else list(reads)
            self._row(change, key, (verb, value, told))
        change.hidden = {path[0] for path in recorded.get("redactedPaths", ())}
        change.hidden |= {key for key in change.values if self.expected.stays_secret(key)}
        change.tags = tuple(recorded.get("tags", ()))
        change.sources = self._sources(recorded.get("untrackedSources", ()))
        return change

    def _row(self, change: Change, key: str, row: tuple[str, Any, Any]) -> None:
        verb, value, told = row
        if key in change.said:
            self.departs("one-row-per-key")
            before = change.said[key][0]
            alike = before == verb
            either = ANYTHING if verb == "merge" else verb  # two merges may be told as a set
            change.said[key] = (either if alike else "set", ANYTHING, change.said[key][2])
            if alike and verb == "set":
                change.said[key] = ("set", self.expected.value(value), change.said[key][2])
            return
        if verb == "delete" or value == {"$js": "undefined"}:
            if verb != "delete":
                self.departs("a-deleted-key-is-gone")
            change.said[key] = ("delete", ANYTHING, told)
        elif verb == "merge" and self._united(change.place, key, value):
            self.departs("merging-is-of-mappings")
            change.said[key] = ("set", ANYTHING, ANYTHING)
        elif self._lists(change.place, key):
            self.departs("a-stage-lists-its-own-writes")
            change.said[key] = (verb, ANYTHING, told)
        elif self.expected.stays_secret(key):
            change.said[key] = (verb, "[REDACTED]", told)
        else:
            change.said[key] = (verb, self.expected.value(value), told)

    def _united(self, place: str, key: str, value: Any) -> bool:
        stage = self.shape.at(place)
        ops = () if stage is None else stage.ops
        updates = [op for op in ops if op.get("op") == "update" and op.get("key") == key]
        return isinstance(value, list) or any(id(op) in self.expected.unions for op in updates)

    def _lists(self, place: str, key: str) -> bool:
        stage = self.shape.at(place)
        ops = () if stage is None else stage.ops
        place_of = [i for i, op in enumerate(ops) if op["op"] == "keys" and op.get("to") == key]
        return any(op.get("op") not in READERS for i in place_of for op in ops[:i])

    def _sources(self, recorded: Any) -> Any:
        sources = list(recorded)
        if "env" in sources:
            self.departs("env-is-a-variable")
        if "silent" in sources:
            self.departs("asking-is-reading")
        return [one for one in sources if one not in ("env", "silent")]

    def _indexed(self, recorded: Mapping[str, Any]) -> Change:
        place, n, name = self._place(recorded["runtimeStageId"], recorded["stage"])
        change = Change(place, n, name)
        paths = [(path.split("/"), verb) for path, verb in recorded["paths"]]
        if paths and self.shape.beside and all(_in_runs(path) for path, _ in paths):
            self.departs("own-view-instead-of-runs")
            paths = [(path[2:], verb) for path, verb in paths]
        for path, verb in paths:
            if path[0] in change.said:
                self.departs("one-row-per-key")
                verb = verb if change.said[path[0]][0] == verb else "set"  # noqa: PLW2901
            change.said[path[0]] = (verb, ANYTHING, ANYTHING)
        return change

    def _merged(self, told: list[Change]) -> Iterator[Change]:
        # One commit per executed step: what upstream repeats is one; what it books on the stage
        # before a mount is the mount's.
        kept: dict[tuple[str, int | None], Change] = {}
        order: list[Change] = []
        for place, one in enumerate(told):
            key = (one.place, one.n)
            follows = told[place + 1] if place + 1 < len(told) else None
            if key not in kept:
                kept[key] = one
                order.append(one)
                continue
            self.departs("one-commit-per-step")
            if one.said:
                if follows is not None and (follows.place, follows.n) not in kept:
                    follows.said, follows.hidden = one.said, one.hidden
                else:
                    kept[key].said |= one.said
        return iter(order)

    def _interrupted(self, told: list[Change]) -> None:
        # The values are held to those of a run whose question is answered at once.
        for place in {one.place for one in told}:
            if not self.expected.interrupts(place):
                continue
            *asked, last = [one for one in told if one.place == place]
            self.departs("an-interrupted-stage-begins-anew")
            for one in asked:
                one.said, one.hidden = {}, ANYTHING
            for key, (verb, _, reads) in last.said.items():
                last.said[key] = (verb, ANYTHING, reads)

    def _generated(self, one: Change) -> bool:
        generated = "~" in one.place.rpartition("/")[2]
        if generated:
            self.departs("one-commit-per-step")
        return generated

    def _mounts(self, fork: Any) -> bool:
        return all(self.shape.stages[child].kind == "subflow" for child in fork.children)

    def _views(self, told: list[Change]) -> None:
        # Each visit of a fork gives its children views that begin anew.
        seen: set[str] = set()
        for one in told:
            if one.place in seen and one.place in self.shape.beside and not one.said:
                self.departs("own-view-instead-of-runs")
                one.free = True
            seen.add(one.place)

    def _with_own_stages(self, told: list[Change]) -> list[Change]:
        found = list(told)
        present = {one.place for one in told}
        for fork in self.shape.forks:
            # Once for every visit: before each first child of the fork.
            if "/" in fork.key or not fork.children:
                continue
            first = [
                place
                for place, one in enumerate(found)
                if one.place == next((c for c in fork.children if c in present), None)
            ]
            for place in reversed(first):
                self.departs("a-fork-is-a-stage")
                n = min(one.n or 0 for one in found[place:] if one.place in fork.children)
                mine = Change(fork.key, n)
                for one in found[place:] if self._mounts(fork) else ():
                    if one.place in fork.children and one.said:
                        self.departs("a-fork-hands-over-what-is-mapped-out")
                        mine.said |= one.said
                found.insert(place, mine)
        return found


def _in_runs(path: Any) -> bool:
    return len(path) > 2 and path[0] == "runs"


def change_differences(expected: list[Change], found: list[Change], lane_of: Any) -> list[str]:
    """Compare two commit logs lane by lane; say what differs."""
    lanes: dict[str, tuple[list[Change], list[Change]]] = {}
    for side, changes in enumerate((expected, found)):
        for one in changes:
            lanes.setdefault(lane_of(one.place), ([], []))[side].append(one)
    wrong = []
    for lane, (a, b) in sorted(lanes.items()):
        for place in range(max(len(a), len(b))):
            if place >= len(a) or place >= len(b):
                extra = a[place] if place < len(a) else b[place]
                side = "missing" if place < len(a) else "too much"
                wrong.append(f"lane {lane!r}: commit {extra} is {side}")
                break
            why = _differs(a[place], b[place])
            if why:
                wrong.append(f"lane {lane!r}: {a[place]} is {b[place]}: {why}")
                break
    return wrong


def _differs(a: Change, b: Change) -> str | None:
    if a.place != b.place or (a.n is not None and a.n != b.n):
        return "execution"
    if not same(a.name, b.name):
        return "name"
    if a.free:
        return None
    if list(a.said) != list(b.said):
        return "keys"
    for key, told in a.said.items():
        gone = told[0] == "delete" and b.said[key][:2] == ("set", None)
        if not gone and not all(map(same, told, b.said[key])):
            return f"{key}: {told} {b.said[key]}"
    for name in ("hidden", "tags", "sources"):
        mine, theirs = getattr(a, name), getattr(b, name)
        if mine is not ANYTHING and not same(mine, theirs):
            return f"{name} {mine} {theirs}"
    return None


def our_changes(run: Any, encoding: str = "full", *, provenance: bool = False) -> list[Change]:
    """Give all our commits as facts, in the order the stages began."""
    return [_ours(one.to_dict(encoding, provenance=provenance)) for one in run.commits.whole()]


def _ours(bundle: Mapping[str, Any]) -> Change:
    place, n = split(bundle["runtimeStageId"])
    said = {}
    for row in bundle["trace"]:
        verb = row["verb"]
        held = bundle["updates"] if verb == "merge" else bundle["overwrite"]
        value = plain_value(held[row["path"]])
        said[row["path"]] = (verb, value, row.get("readKeys", ANYTHING))
    return Change(
        place,
        n,
        bundle["stage"],
        said,
        {path.split(SEPARATOR)[0] for path in bundle["redactedPaths"]},
        tuple(bundle.get("tags", ())),
        list(bundle.get("untrackedSources", ())),
    )


__all__ = ["Change", "Commits", "change_differences", "our_changes"]
