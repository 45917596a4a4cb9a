"""What is told of a run where no log is carried: the dossier, the filed rows, the chart alone.

What they do not carry is said, and never guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from runbook_nb._text import show
from runbook_nb._view import Graph
from runbook_nb.errors import DefinitionError
from runbook_nb.record.graph import structure_graph
from runbook_nb.record.moments import Trail
from runbook_nb.record.projection import WalkRow
from runbook_nb.record.structure import Structure
from runbook_nb.rules.decision import Decision, Selection
from runbook_nb.runbook.dossier import Dossier, SubjectFacts
from runbook_nb.widgets.sources import Evidence, Fan, Seen, Source
from runbook_nb.widgets.subjects import PAGE, Found, Outcome, Page, roles_of

_NUMBERED: Final = re.compile(r"~\d+")
#: The whole place of the innermost branch: all that leads to its fan-out, and its index.
_BRANCH: Final = re.compile(r"(.*)~(\d+)(?=/|#|$)")


class ToldSource(Source):
    """What is carried where no walk over a log is: the dossier, the filed rows, or the chart alone.

    Parameters
    ----------
    name, told : str
    structure : Structure or None
    dossier : Dossier or None
        Every subject's fate, with what was compared.
    rows : sequence of WalkRow or None
        The filed rows; without them each decision of the dossier is a row.
    steps : int or None
    lacking : str
    rules : mapping or None
        Decider key -> its rule set, for what stands beside the edges.
    """

    def __init__(
        self,
        name: str,
        told: str,
        *,
        structure: Structure | None = None,
        dossier: Dossier | None = None,
        rows: Sequence[WalkRow] | None = None,
        steps: int | None = None,
        lacking: str = "",
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.told = told
        self.structure = structure
        self.dossier = dossier
        self.steps = steps
        self.lacking = lacking
        self._rules = rules
        self._executions: dict[str, int | None] = {}
        self._facts = [] if dossier is None else list(dossier.subjects())
        self._decided = [facts for facts in self._facts if facts.decision is not None]
        self.roles = {} if structure is None else roles_of(structure)
        self._filed = rows
        self._rows = self._told_rows() if rows is None else list(rows)
        self._listed = {
            "decisions": [r.step for r in self._rows if r.type in ("condition", "selector")],
            "writes": [r.step for r in self._rows if r.type == "step" and _is_write(r.text)],
        }

    def _told_rows(self) -> list[WalkRow]:
        """Give a row for each subject that was decided on."""
        return [
            WalkRow(
                step,
                "condition",
                0,
                None,
                None,
                None,
                f"{facts.stage}~{facts.index}" if facts.subject is not None else None,
                f"{show(facts.subject)}: {facts.decision.sentence}"
                if facts.decision is not None and facts.subject is not None
                else getattr(facts.decision, "sentence", ""),
            )
            for step, facts in enumerate(self._decided)
        ]

    @cached_property
    def _by_branch(self) -> dict[tuple[str, int, int], SubjectFacts]:
        return {(facts.stage, facts.execution, facts.index): facts for facts in self._facts}

    def _execution(self, path: str) -> int | None:
        """Say which execution of a fan-out stands at a place; None where that is not carried."""
        stage = _NUMBERED.sub("", path)
        executions = {facts.execution for facts in self._facts if facts.stage == stage}
        if executions == {0} and self.dossier is not None and self.dossier.complete:
            return 0  # no other had a subject
        around = list(_NUMBERED.finditer(path))
        if len(around) != 1:  # run again in a loop, or deeper than one fan-out in another
            return None
        outer, inner = path[: around[0].start()], path[around[0].end() :]
        items = {f.index for f in self._facts if f.stage == outer}
        # As many executions as branches may be two in one branch, and none in another.
        once = all(self._forks[f"{outer}~{index}{inner}"] == 1 for index in items)
        return int(around[0][0][1:]) if once and executions <= items else None

    @cached_property
    def _forks(self) -> Counter[str]:
        """How often a fan-out is told to have begun, by its place and the branches around it."""
        begun = (row.runtime_stage_id or "" for row in self._rows if row.type == "fork")
        return Counter(place.partition("#")[0] for place in begun)

    def total(self, kind: str = "all") -> int:
        """Count the rows of a kind."""
        return len(self._listed.get(kind, self._rows))

    def rows(self, kind: str, start: int, n: int) -> list[WalkRow]:
        """Give rows of a kind from a place on."""
        if kind in self._listed:
            return [self._rows[step] for step in self._listed[kind][start : start + n]]
        return self._rows[start : start + n]

    def rank(self, kind: str, step: int) -> int:
        """Count the rows of a kind before a row."""
        if kind in self._listed:
            return sum(one < step for one in self._listed[kind])
        return step

    def at(self, step: int) -> Seen:
        """Look at a row."""
        row = self._rows[step]
        facts = self._behind(row)
        named = facts is not None and facts.subject is not None
        fan = index = None
        if facts is not None:
            keys = [one.key for one in self.fans]
            fan = keys.index(facts.stage) if facts.stage in keys else None
            index = facts.index
        return Seen(
            step=step,
            row=row,
            subject=show(facts.subject) if named and facts is not None else "",
            fan=fan,
            index=-1 if index is None or fan is None else index,
            of="" if fan is None or index is None else f"{index + 1} of {self.fans[fan].total}",
            trail=self._trail(row, facts),
            evidence=self._evidence(step, row, facts),
            around=None,
        )

    def _behind(self, row: WalkRow) -> SubjectFacts | None:
        """Say whose branch a row is in, as far as its place tells."""
        if self._filed is None:
            return self._decided[row.step]
        found = _BRANCH.match(row.runtime_stage_id or row.subflow or row.stage_id or "")
        if found is None:
            return None
        path, index = found[1], int(found[2])
        if path not in self._executions:
            self._executions[path] = self._execution(path)
        execution = self._executions[path]
        if execution is None:
            return None
        return self._by_branch.get((_NUMBERED.sub("", path), execution, index))

    def _evidence(self, step: int, row: WalkRow, facts: SubjectFacts | None) -> Evidence | None:
        listed = self._listed["decisions"]
        made = None if facts is None else facts.decision
        if made is None and row.type not in ("condition", "selector"):
            return None
        told = step if step in listed else self._decision_row(row, step)
        return Evidence(
            decision=made if isinstance(made, Decision | Selection) else None,
            words=row.text if made is None else made.sentence,
            stage=self._decider(facts),
            place=row.runtime_stage_id or "",
            step=told,
            number=listed.index(told) + 1 if told in listed else 0,
            total=len(listed),
        )

    def _decision_row(self, row: WalkRow, step: int) -> int:
        around = row.subflow
        inside = [one for one in self._listed["decisions"] if self._rows[one].subflow == around]
        return inside[-1] if inside and around is not None else step

    def _decider_key(self, facts: SubjectFacts | None) -> str | None:
        if self.structure is None or self.dossier is None or facts is None:
            return None
        deciders = [
            node
            for node in self.structure.nodes
            if node.kind == "decider"
            and (self.structure.fan_out_of(node.key) == facts.stage or node.id == facts.stage)
        ]
        named = [n for n in deciders if self.dossier.decider in (n.id, n.name)] or deciders
        return named[-1].key if named else None

    def _decider(self, facts: SubjectFacts | None) -> str:
        key = self._decider_key(facts)
        node = None if key is None or self.structure is None else self.structure.node(key)
        return "" if node is None else show(node.name)

    def _trail(self, row: WalkRow, facts: SubjectFacts | None) -> Trail:
        if row.runtime_stage_id is not None and self._filed is not None:
            now: str | None = _NUMBERED.sub("", row.runtime_stage_id).partition("#")[0]
            return Trail(done=(), now=now, next=None, later=())
        key = self._decider_key(facts)
        branch = None if facts is None or facts.decision is None else facts.decision.branch
        after = None
        if key is not None and self.structure is not None:
            ways = self.structure.branches_of(key)
            after = next((node.key for node in ways if node.branch == branch), None)
        return Trail(done=(), now=key, next=after, later=())

    def graph(self, step: int | None) -> Graph | None:
        """Draw the chart as it is to be seen at a row."""
        if self.structure is None:
            return None
        rules = self._rules
        if rules is None and self.dossier is not None:
            deciders = [node for node in self.structure.nodes if node.kind == "decider"]
            judged = self.dossier.rule_sets
            if len(deciders) == len(judged) == 1:  # else it is not carried which judged where
                rules = {deciders[0].key: judged[0]}
        return structure_graph(self.structure, rules)

    def row_of(self, step: int, key: str) -> int | None:
        """Find the row of a node of the chart."""
        trail = self.at(step).trail
        return step if key in (trail.now, trail.next) else None

    @cached_property
    def fans(self) -> Sequence[Fan]:
        """The fan-outs whose subjects can be paged through."""
        if self.dossier is None:
            return []
        stages = dict.fromkeys(facts.stage for facts in self._facts if facts.subject is not None)
        groups = {group.key: group for group in self.dossier.fan_outs}
        return [
            Fan(
                name=show(groups[stage].name) if stage in groups else show(stage),
                key=stage,
                total=groups[stage].counts.items if stage in groups else len(self._of(stage)),
            )
            for stage in stages
        ]

    def _of(self, stage: str) -> list[SubjectFacts]:
        return [facts for facts in self._facts if facts.stage == stage]

    def _outcome(self, facts: SubjectFacts) -> tuple[str, str]:
        if facts.status == "failed":
            return "failed", "failed"
        if facts.status == "not_reached":
            return "not reached", "not_reached"
        word = None if facts.decision is None else facts.decision.branch
        return ("done", "completed") if word is None else (show(word), self.roles.get(word, "d"))

    def outcomes(self, fan: int) -> tuple[Outcome, ...]:
        """Count what became of a fan-out's subjects."""
        counts: dict[tuple[str, str], int] = {}
        for facts in self._of(self.fans[fan].key):
            key = self._outcome(facts)
            counts[key] = counts.get(key, 0) + 1
        order = [*(show(word) for word in self.roles), "done", "failed", "not reached"]
        keys = sorted(counts, key=lambda key: order.index(key[0]) if key[0] in order else 0)
        return tuple(Outcome(word, role, counts[word, role]) for word, role in keys)

    def page(self, fan: int, start: int, word: str, find: str) -> Page:
        """Give some subjects of a fan-out."""
        every = self._of(self.fans[fan].key)
        wanted = find.casefold()
        matching = [
            facts
            for facts in every
            if (not word or self._outcome(facts)[0] == word)
            and (not wanted or wanted in show(facts.subject).casefold())
        ]
        start = min(max(start, 0), len(matching))
        shown = matching[start : start + PAGE]
        end = start + len(shown)
        return Page(
            found=tuple(map(self._found, shown)),
            total=self.fans[fan].total,
            matching=len(matching),
            searched=len(every),
            among=len(every),
            next=end if end < len(matching) else None,
        )

    def _found(self, facts: SubjectFacts) -> Found:
        word, role = self._outcome(facts)
        why = facts.reason or (facts.decision.cause if facts.decision is not None else "")
        return Found(
            index=facts.index,
            name=show(facts.subject),
            word=word,
            role=role,
            why=why,
            step=self._row_about(facts),
        )

    def _row_about(self, facts: SubjectFacts) -> int | None:
        return self._told_at.get(id(facts))

    @cached_property
    def _told_at(self) -> dict[int, int]:
        """Give the row about each subject: of its last decision, else its first."""
        first: dict[int, int] = {}
        decided: dict[int, int] = {}
        for row in self._rows:
            facts = self._behind(row)
            if facts is not None:
                first.setdefault(id(facts), row.step)
                if row.type == "condition":
                    decided[id(facts)] = row.step
        return first | decided

    def find(self, subject: Any) -> int:
        """Find the row to look at of a subject."""
        if self.dossier is None:
            raise DefinitionError(
                f"where {show(subject)} is told of is not carried",
                where="subject",
                fix="explore the live envelope, or a copy with its dossier",
            )
        step = self._row_about(self.dossier.find(subject))
        if step is None:
            raise DefinitionError(
                f"no row that is carried tells of {show(subject)}",
                where="subject",
                fix="explore() without a subject shows the rows there are",
            )
        return step


def _is_write(text: str) -> bool:
    return text.startswith(("Wrote ", "Merged into ", "Appended to ", "Deleted "))
