"""What a plan comes to, whichever record it is read from: a run, or the published model alone.

Views read this and count nothing themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runbook_nb._value import frozen
from runbook_nb.playbooks.model import Playbook, PlaybookPlan, status_words
from runbook_nb.playbooks.outline import step_keys, structure_of
from runbook_nb.record.overlay import Overlay
from runbook_nb.record.phrases import Teller
from runbook_nb.record.steps import AFTER, SUCCEEDED, StepFacts
from runbook_nb.record.structure import Structure, StructureNode

if TYPE_CHECKING:
    from runbook_nb.playbooks.run import PlaybookRun


@frozen
class Seen:
    """One step as views show it: what is expected of it and what came of it."""

    node: StructureNode
    facts: StepFacts
    seconds: float | None = None

    @property
    def place(self) -> int:
        """The number it has in its playbook."""
        return int(self.node.detail["place"])

    @property
    def required(self) -> bool:
        """Whether the playbook is incomplete without it."""
        return not self.node.detail.get("optional")

    @property
    def probes(self) -> tuple[int, int]:
        """How many of its probes and checks were met, and how many there are."""
        detail = self.node.detail
        wanted = len(detail.get("probes", ())) + len(detail.get("checks", ()))
        return wanted - len(self.unmatched), wanted

    @property
    def reached(self) -> bool:
        """Whether anything was recorded of it."""
        return self.facts != StepFacts()

    @property
    def unmatched(self) -> list[str]:
        """The names of the probes and checks that nothing has met."""
        detail, facts = self.node.detail, self.facts
        probes = [name for name in detail.get("probes", ()) if name not in facts.matched]
        return probes + [name for name in detail.get("checks", ()) if name not in facts.checks]

    @property
    def lacking(self) -> list[str]:
        """The expected tools of which no call succeeded."""
        facts = self.facts
        tools = self.node.detail.get("tools", ())
        taken = facts.early if facts.ended.get("by") in ("host", "person") else ()
        return [tool for tool in tools if not facts.of_tool(tool)[0] and tool not in taken]

    @property
    def short(self) -> bool:
        """Whether it lacks calls, or evidence, that it asks for."""
        return bool(self.lacking or self.unmatched or self.facts.deviations)

    @property
    def used(self) -> int:
        """How many calls it took, as its limit counts them where it has one."""
        return self.facts.calls if self.node.detail.get("most") is None else self.facts.counted

    def to_dict(self) -> dict[str, Any]:
        """Give what views show of it as plain values."""
        facts, detail = self.facts, self.node.detail
        met, wanted = self.probes
        outcomes = [outcome for _, outcome in facts.tools.elements()]
        ok = sum(outcome in SUCCEEDED for outcome in outcomes)
        return {
            "place": self.place,
            "step": self.node.name,
            "status": facts.status,
            "required": self.required,
            "calls": facts.calls,
            "ok": ok,
            "failed": facts.calls - ok - facts.unsettled,
            "open": facts.unsettled,
            "limit": detail.get("most"),
            "probes_met": met,
            "probes_wanted": wanted,
            "refused": facts.refused.total(),
            "deviations": len(facts.deviations),
            "ended_by": facts.ended.get("by"),
            "who": facts.ended.get("who"),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, kw_only=True)
class Told:
    """How far a plan has come.

    Attributes
    ----------
    name, version : str
    structure : Structure
    overlay : Overlay
        With what was recorded of each step.
    pointer : str or None
        Key of the current step.
    policy : str or None
        The rules it is held to; None where that is not carried.
    blocks, extra : bool
        Whether calls outside the plan are refused; whether the playbook itself lets them be made.
    verdict : str or None
        What finishing gave.
    seconds : mapping
        How long steps took, by key.
    unresolved : frozenset of str
        Ids of the required steps that are not done.
    in_order : bool
        Whether a step is come to when those before it are closed.
    whole : bool
        Whether outcomes, refusals and deviations are carried.
    """

    name: str
    version: str
    structure: Structure
    overlay: Overlay
    pointer: str | None
    policy: str | None = None
    blocks: bool = True
    extra: bool = False
    verdict: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    unresolved: frozenset[str] = frozenset()
    in_order: bool = True
    whole: bool = True

    @classmethod
    def of_run(cls, run: PlaybookRun) -> Told:
        """Read a run."""
        structure, overlay, text = run.structure, run.walk.raw_overlay, run.redactor.text
        return cls(
            name=run.name,
            version=text(run.playbook.version),
            structure=structure,
            overlay=overlay,
            pointer=Teller(structure, overlay).pointer,
            policy=run.enforcement.label,
            blocks=run.blocks,
            extra=run.playbook.allow_extra_tools,
            verdict=run.verdict,
            unresolved=frozenset(map(text, run.report.unresolved)),
            seconds={text(key): seconds for key, seconds in run.seconds.items()},
            in_order=run.playbook.strict_sequence or not run.enforcement.honor_strict_sequence,
        )

    @classmethod
    def of_plan(cls, plan: PlaybookPlan) -> Told:
        """Read the published model, which knows the names of calls and nothing else of them."""
        playbook = plan.playbook
        structure, overlay = structure_of(playbook), Overlay()
        before = None
        keys = step_keys(playbook)
        for key, step in zip(keys, playbook.steps, strict=True):
            record = plan.step_executions.get(step.id)
            if record is None:
                continue
            status = status_words(record)
            overlay.steps[key] = StepFacts(
                status=status,
                tools=Counter((tool, "unknown") for tool in record.tool_calls),
                matched=dict.fromkeys(record.matched_probes),
                counted=record.tool_call_count,
                ended={"note": record.error} if record.error and status == "failed" else {},
            )
            overlay.runs[key] = 1
            if before is not None:
                overlay.edges[before, key] = 1
            before = key
        place = plan.current_step_index
        return cls(
            name=playbook.id,
            version=playbook.version,
            structure=structure,
            overlay=overlay,
            pointer=keys[place] if 0 <= place < len(keys) else None,
            extra=playbook.allow_extra_tools,
            unresolved=frozenset(plan.unresolved_required_steps()),
            whole=False,
        )

    @classmethod
    def of_playbook(cls, playbook: Playbook) -> Told:
        """Read a playbook nobody has begun."""
        structure = structure_of(playbook)
        return cls(
            name=playbook.id,
            version=playbook.version,
            structure=structure,
            overlay=Overlay(),
            pointer=None,
            extra=playbook.allow_extra_tools,
            unresolved=frozenset(step.id for step in playbook.steps if step.required),
        )

    @cached_property
    def steps(self) -> tuple[Seen, ...]:
        """Every step, in order."""
        return tuple(
            Seen(
                node=node,
                facts=self.overlay.step(node.key),
                seconds=self.seconds.get(node.key),
            )
            for node in self.structure.nodes
        )

    @property
    def current(self) -> Seen | None:
        """The step the pointer is at."""
        return next((one for one in self.steps if one.node.key == self.pointer), None)

    @property
    def after(self) -> StepFacts:
        """What came when no step was left."""
        return self.overlay.step(AFTER)

    def everywhere(self) -> Iterator[StepFacts]:
        """Yield the facts of all steps, and of what came after the last."""
        yield from (one.facts for one in self.steps)
        yield self.after

    @property
    def undone(self) -> list[Seen]:
        """The required steps that are not completed."""
        return [one for one in self.steps if one.required and one.node.id in self.unresolved]

    @property
    def refused(self) -> int:
        """How many calls were refused."""
        return sum(facts.refused.total() for facts in self.everywhere())

    @property
    def deviations(self) -> int:
        """How much was not as the playbook has it: calls refused, and what was noted."""
        return self.refused + sum(len(facts.deviations) for facts in self.everywhere())

    @property
    def set_back(self) -> int:
        """How often the plan was set back; nothing before the last time is counted."""
        return self.overlay.set_back

    @property
    def calls(self) -> int:
        """How many calls were recorded."""
        return sum(facts.calls for facts in self.everywhere())

    @property
    def unsettled(self) -> int:
        """How many of them nobody has said the outcome of."""
        return sum(facts.unsettled for facts in self.everywhere())

    @property
    def evidence(self) -> tuple[int, int]:
        """How many probes were matched on the steps reached, and how many those ask for."""
        pairs = [one.probes for one in self.steps if one.reached]
        return sum(met for met, _ in pairs), sum(wanted for _, wanted in pairs)
