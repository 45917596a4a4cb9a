"""What one of our runs recorded, as the facts a recorded observation holds.

The log is read by itself here, with a replay of its state, and not through the rows of the walk:
that the walk tells the same rows is a law of its own (`replay_laws`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replay_evidence import ours
from replay_rows import Row
from replay_shape import key_of

from runbook_nb._frozen import deep_merge
from runbook_nb._text import MISSING, summarize
from runbook_nb.record.slots import Slots
from runbook_nb.rules.decision import Decision, Selection

#: How the ops of a scope are called in a recorded row.
OPERATIONS = {"write": "set", "update": "update", "append": "append", "delete": "delete"}


def plain_value(value: Any) -> Any:
    """Give a value of ours as plain data: of slots what stands in them."""
    if isinstance(value, Slots):
        return [plain_value(slot.value) if slot.status == "ok" else None for slot in value]
    if isinstance(value, Mapping):
        return {key: plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    return value


class Seen:
    """The record of one run, read from its log."""

    def __init__(self, run: Any, chart: Any) -> None:
        self.run = run
        self.chart = chart
        self.log = run.log
        self.structure = run.structure
        self.redactor = run.redactor
        #: Executed stages, in order: (runtime id, lane prefix, kind).
        self.executed: list[str] = []
        #: Which stage ran after, or because of, which: pairs of keys in the structure.
        self.transitions: set[tuple[str, str]] = set()
        self._ends: list[str] = []
        #: Every fan-out, fork and selection met.
        self.fans: list[Any] = []
        #: Final state of each track: by the place of its branch or child.
        self.views: dict[str, dict[str, Any]] = {}
        #: What each fork child wrote; the state of each mounted chart when last seen.
        self.written: dict[str, dict[str, Any]] = {}
        self.levels: dict[str, dict[str, Any]] = {}
        #: Keys each execution changed, in order, with the verb.
        self.changed: dict[str, list[tuple[str, str]]] = {}
        self.rows: list[Row] = list(self._rows())

    # -- values as they are told ----------------------------------------------------------------

    def served(self, key: Any, value: Any) -> Any:
        """Give a value under a key as views show it."""
        return value if value is MISSING else self.redactor.value(key, value)

    def summary(self, key: Any, value: Any) -> str:
        """Summarise a value as rows do."""
        return str(summarize(plain_value(self.served(key, value)), 80))

    def node(self, place: str) -> Any:
        """Find the structure's node of a place."""
        return self.structure.node(key_of(place))

    def name(self, place: str) -> Any:
        """Give the name the structure has for a place."""
        node = self.node(place)
        return None if node is None else node.name

    # -- rows -------------------------------------------------------------------------------

    def _rows(self) -> Iterator[Row]:
        base = dict(self.run.raw_initial)
        track = self.log.root
        yield from self._track(track.codes, track.values, 0, "", 0, base, "")

    def _track(
        self,
        codes: Sequence[int],
        values: Sequence[Any],
        offset: int,
        prefix: str,
        first: int,
        base: Mapping[str, Any],
        level: str,
    ) -> Iterator[Row]:
        states: dict[str, dict[str, Any]] = {level: dict(base)}
        touched: dict[str, None] = {}
        ends: list[str] = []
        for event in self.log.events(codes):
            code = event.code
            kind, key, ref = code.kind, code.key, code.stage
            place = f"{prefix}{ref.key}"
            n = first + event.execution if event.execution >= 0 else None
            width = self.log.width(code)
            at = offset + event.at
            value = values[at] if width == 1 else None
            state = states.setdefault(ref.path, {})
            if kind == "stage":
                self.executed.append(f"{place}#{n}")
                self.transitions.update((end, key_of(place)) for end in ends)
                ends = [key_of(place)]
                node = self.node(place)
                described = None if node is None else node.description
                yield Row("stage", place, n, {"name": ref.name, "description": described})
            elif kind in OPERATIONS:
                self._change(state, kind, key, value)
                if ref.path == level:
                    touched[key] = None
                self.changed.setdefault(f"{place}#{n}", []).append((key, kind))
                shown = value if kind in ("write", "update") else state.get(key, MISSING)
                yield Row(
                    "step",
                    place,
                    n,
                    {
                        "op": "write",
                        "key": key,
                        "operation": OPERATIONS[kind],
                        "summary": self.summary(key, shown),
                    },
                )
            elif kind == "read":
                told = self.summary(key, state.get(key, MISSING))
                yield Row("step", place, n, {"op": "read", "key": key, "summary": told})
            elif kind == "received":
                inner = states[f"{ref.key}/"]
                told = self.summary(key, inner.get(key, MISSING))
                facts = {"op": "received", "key": key, "operation": "set", "summary": told}
                yield Row("step", place, n, facts)
            elif kind == "emit":
                hidden = self.redactor.hides_emit(key)
                payload = "[REDACTED]" if hidden else self.redactor.scrub(value)
                facts = {"name": key, "summary": str(summarize(plain_value(payload), 80))}
                yield Row("emit", place, n, facts)
            elif kind in ("decision", "selection"):
                judged = Decision if kind == "decision" else Selection
                found = judged(code.path, tuple(values[at : at + width]), self.redactor)
                yield self._judged(kind, place, n, found)
            elif kind == "choice":
                chosen = self._branch_name(place, key)
                yield Row("condition", place, n, {"decider": ref.name, "chosen": chosen})
            elif kind == "route":
                yield Row("route", place, n, {"chosen": self._branch_name(place, key)})
            elif kind == "choices":
                names = [self._branch_name(place, one) for one in self._in_order(place, value)]
                facts = {"selected": names, "total": len(self._branches(place))}
                yield Row("selector", place, n, facts)
            elif kind == "fan_out":
                self.fans.append(value)
                self._ends = ends
                yield from self._fan_out(value, prefix, place, n, states)
                ends = list(self._ends)
            elif kind == "enter":
                states[f"{ref.key}/"] = dict(value)
                carried = {key: self.served(key, one) for key, one in value.items()}
                facts = {"name": ref.name, "direction": "entry", "values": plain_value(carried)}
                yield Row("subflow", place, n, facts)
            elif kind == "leave":
                inner = states[f"{ref.key}/"]
                carried = {name: self.served(name, one) for name, one in inner.items()}
                facts = {"name": ref.name, "direction": "exit", "values": plain_value(carried)}
                yield Row("subflow", place, n, {**facts, "status": key})
                self.views[f"{place}#{n}"] = dict(inner)
            elif kind == "loop":
                target = f"{place.rpartition('/')[0]}/{key}" if "/" in place else key
                yield Row("loop", place, n, {"target": self.name(target), "iteration": value})
            elif kind == "stop":
                yield Row("break", place, n, {"reason": value})
            elif kind in ("error", "ended"):
                yield Row("error", place, n, {"message": value["message"], "kind": kind})
            elif kind == "retry":
                facts = {"attempt": value["attempt"], "attempts": value["attempts"]}
                yield Row("retry", place, n, facts)
            elif kind in ("pause", "resume"):
                yield Row(kind, place, n, {"value": plain_value(value)})
            elif kind == "streamed":
                yield Row("streamed", place, n, dict(value))
        self._ends = ends
        for path, state in states.items():
            if path != level:
                self.levels[f"{prefix}{path}"] = dict(state)
        self.views[prefix or ""] = dict(states[level])
        self._last = states[level]
        self._touched = {key: self._last[key] for key in touched if key in self._last}

    def _change(self, state: dict[str, Any], kind: str, key: Any, value: Any) -> None:
        if kind == "write":
            state[key] = value
        elif kind == "update":
            state[key] = deep_merge(state.get(key), value)
        elif kind == "append":
            state[key] = [*state.get(key, ()), value]
        else:
            state.pop(key, None)

    def _judged(self, kind: str, place: str, n: int | None, decision: Any) -> Row:
        evidence = ours(decision.evidence)
        if kind == "selection":
            selected = self._in_order(place, decision.branches)
            facts = {
                "selected": [self._branch_name(place, one) for one in selected],
                "total": len(self._branches(place)),
                "evidence": evidence,
            }
            return Row("selector", place, n, facts)
        chosen = self._branch_name(place, decision.branch)
        node = self.node(place)
        name = None if node is None else node.name
        return Row("condition", place, n, {"decider": name, "chosen": chosen, "evidence": evidence})

    def _branches(self, place: str) -> tuple[Any, ...]:
        return tuple(self.structure.branches_of(key_of(place)))

    def _branch_name(self, place: str, route: Any) -> Any:
        return next((n.name for n in self._branches(place) if n.branch == route), route)

    def _in_order(self, place: str, routes: Any) -> list[Any]:
        chosen = [routes] if isinstance(routes, str) else list(routes)
        declared = [node.branch for node in self._branches(place) if node.branch in chosen]
        return declared + [one for one in chosen if one not in declared]

    def _fan_out(
        self, fan: Any, prefix: str, place: str, n: int | None, states: Any
    ) -> Iterator[Row]:
        if not len(fan):
            return
        begun = [index for index, _ in fan.begun()]
        if fan.form == "fan_out":
            names = [f"{fan.stage.name} [{index}]" for index in begun]
            yield Row("fork", place, n, {"children": names, "cap": fan.cap, "of": len(fan)})
        else:
            parent = place.rpartition("/")[0]
            places = [f"{parent}/{fan.items[i]}" if parent else fan.items[i] for i in begun]
            yield Row("fork", place, n, {"children": [self.name(one) for one in places]})
        parent_state = dict(states[fan.stage.path])
        after = list(self._ends)
        for index, shape in fan.begun():
            first_code = next((c for c in map(self._code, shape.codes) if c.kind == "stage"), None)
            if first_code is not None:
                inner = key_of(f"{fan.path(prefix, index)}{first_code.stage.key}")
                self.transitions.add((key_of(place), inner))
            offset = fan.offsets[index]
            path, first = fan.path(prefix, index), fan.base(index)
            if fan.form != "fan_out":
                codes = shape.codes
                level = fan.stage.path
                child = f"{path}{fan.stage.path}{fan.items[index]}"
                yield from self._track(
                    codes, fan.values, offset, path, first, parent_state, level
                )
                after += self._ends
                self.views[child] = self._last
                self.written[child] = self._touched
                continue
            entry = f"{place}~{index}"
            name = f"{fan.stage.name} [{index}]"
            item = self.redactor.value("item", fan.items[index])
            given = {"item": plain_value(item), "index": index}
            facts = {"name": name, "direction": "entry", "values": given}
            yield Row("subflow", entry, n, facts)
            for key, value in given.items():
                summary = str(summarize(value, 80))
                facts = {"op": "received", "key": key, "operation": "set", "summary": summary}
                yield Row("step", entry, n, facts)
            yield from self._track(shape.codes, fan.values, offset, path, first, {}, "")
            after += self._ends
            carried = {key: self.served(key, one) for key, one in self._last.items()}
            facts = {"name": name, "direction": "exit", "values": plain_value(carried)}
            yield Row("subflow", entry, n, {**facts, "status": fan.status(index)})
            self.views[entry] = dict(self._last)
        self._ends = after

    def _code(self, number: int) -> Any:
        return self.log.codes[number]
