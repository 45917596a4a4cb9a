"""What a playbook is, what a run of it holds, and what judging a call gives.

These models hold what comes from files and from code; they are validated with pydantic's lax
rules, and what they dump has exactly the published keys. What only this package knows of a step
(``checks``, ``kind``, ``requires``, keys that begin with ``x-``) is dumped by a step that uses it
and by no other, so that a reader which knows nothing of it still reads the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runbook_nb._display import Renderable, through
from runbook_nb.playbooks.keys import is_extension
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb._view import Card
    from runbook_nb.playbooks.lint import PlaybookLint
    from runbook_nb.playbooks.policy import EnforcementPolicy
    from runbook_nb.playbooks.procedure import Driver, PlaybookProcedure
    from runbook_nb.record.structure import Structure
    from runbook_nb.render.flowchart import Flowchart
    from runbook_nb.widgets.explorer import Explorer


def _now() -> datetime:
    moment: datetime = settings.clock()
    return moment


class StepStatus(StrEnum):
    """Where a step of a plan stands.

    Examples
    --------
    >>> StepStatus("completed") is StepStatus.COMPLETED
    True
    """

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"


class RequiredProbe(BaseModel):
    """A piece of evidence: a text that the call of some tool has to contain.

    Attributes
    ----------
    name : str
        What it is called in reports.
    match : str
        What is looked for, whatever its case.
    description : str
        What it is for.

    Examples
    --------
    >>> RequiredProbe(name="auth events", match="index=auth").match
    'index=auth'
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    match: str = Field(min_length=1)
    description: str = ""


class _Extensible(BaseModel):
    """A frozen model that keeps keys beginning with ``x-`` and drops others it does not know."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _drop_unknown(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        known = cls.model_fields
        return {key: value for key, value in given.items() if key in known or is_extension(key)}

    @property
    def extensions(self) -> dict[str, Any]:
        """The keys that begin with ``x-``, as they were given."""
        return dict(self.__pydantic_extra__ or {})


def _unused(value: Any) -> bool:
    return value is None or value == []


class PlaybookStep(_Extensible):
    """One step: what is to be called, how often, and what has to be seen.

    Attributes
    ----------
    id, description : str
        What names it, and what it is about.
    expected_tools : list of str
        The tools of which each has to be called; empty means that tools say nothing about it.
    hints : list of str
        What is said to whoever calls something else.
    required : bool
        Whether the playbook is incomplete without it.
    validation : dict
        What has to hold of the calls made, in the vocabulary of ``checks``.
    uses : list of str
        The skills that act while the step is current.
    required_probes : list of RequiredProbe
        The evidence it asks for.
    min_tool_calls, max_tool_calls : int or None
        How many calls it takes at least and at most.
    timeout_seconds : float or None
        How long it may take.
    metadata : dict
        Anything else.
    checks : list of dict
        Evidence as conditions on fields of arguments and results; dumped where used.
    kind : {"manual", "approval"} or None
        Whether a person closes it; dumped where used.
    requires : list of str
        The steps or tools that have to be done first; dumped where used.

    Examples
    --------
    >>> step = PlaybookStep(id="detect", description="Look.", expected_tools=["query_siem"])
    >>> step.required, len(step.model_dump())
    (True, 12)
    """

    id: str
    description: str
    expected_tools: list[str] = []
    hints: list[str] = []
    required: bool = True
    validation: dict[str, Any] = {}
    uses: list[str] = []
    required_probes: list[RequiredProbe] = []
    min_tool_calls: Annotated[int, Field(ge=0)] | None = None
    max_tool_calls: int | None = None
    timeout_seconds: float | None = None
    metadata: dict[str, Any] = {}
    checks: list[dict[str, Any]] = Field(default=[], exclude_if=_unused)
    kind: Literal["manual", "approval"] | None = Field(default=None, exclude_if=_unused)
    requires: list[str] = Field(default=[], exclude_if=_unused)


class Playbook(Renderable, _Extensible):
    """An order of steps that is held over whoever calls tools.

    Attributes
    ----------
    id, name, description, version : str
        What it is called; the version is free text.
    steps : list of PlaybookStep
        The steps, in order.
    strict_sequence : bool
        Whether their order binds; under a policy that honours it, False lets them interleave.
    allow_extra_tools : bool
        Whether tools that no step expects may be called too.
    max_iterations : int or None
        How many calls a whole plan may take.
    metadata : dict
        Anything else.
    tags : list of str
        Words to find it by.

    Examples
    --------
    >>> steps = [PlaybookStep(id="detect", description="Look.", expected_tools=["query_siem"])]
    >>> book = Playbook(id="ir", name="Incident response", steps=steps)
    >>> book.get_step_index("detect"), book.get_step("contain")
    (0, None)
    """

    id: str
    name: str
    description: str = ""
    version: str = "1.0.0"
    steps: list[PlaybookStep] = []
    strict_sequence: bool = True
    allow_extra_tools: bool = False
    max_iterations: int | None = None
    metadata: dict[str, Any] = {}
    tags: list[str] = []

    def to_dict(self) -> dict[str, Any]:
        """Give the plain values that a file of this playbook holds, without what it leaves open."""
        from runbook_nb.playbooks.writing import document_of

        return document_of(self)

    def to_json(self) -> str:
        """Write it as indented JSON; the same playbook always gives the same text."""
        from runbook_nb.playbooks.writing import write_json

        return write_json(self)

    def to_yaml(self) -> str:
        """Write it as YAML; the same playbook always gives the same text."""
        from runbook_nb.playbooks.writing import write_text

        return write_text(self)

    def to_cacao(
        self,
        *,
        created_by: str | None = None,
        created: datetime | str | None = None,
        modified: datetime | str | None = None,
        notebooks: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Give it as a CACAO document (v2.0); `from_cacao` reads it back as it was.

        Parameters
        ----------
        created_by : str, optional
            The STIX identity of whoever publishes it; without it a marked placeholder.
        created, modified : datetime or str, optional
            When; now unless told, and as ``created``.
        notebooks : mapping, optional
            By the id of a step, the notebook that does it, which is carried whole.

        Examples
        --------
        >>> book = Playbook(id="ir", name="Incident response")
        >>> book.to_cacao(created="2026-11-29T00:00:00.000Z")["spec_version"]
        'cacao-2.0'
        """
        from runbook_nb.playbooks.cacao_export import to_cacao

        return to_cacao(
            self, created_by=created_by, created=created, modified=modified, notebooks=notebooks
        )

    def get_step(self, step_id: str) -> PlaybookStep | None:
        """Give the first step of that id, or None."""
        return next((step for step in self.steps if step.id == step_id), None)

    def get_step_index(self, step_id: str) -> int | None:
        """Give the place of the first step of that id, or None."""
        return next((n for n, step in enumerate(self.steps) if step.id == step_id), None)

    def procedure(self, drive: Driver, **options: Any) -> PlaybookProcedure:
        """Make a procedure of it, for `runbook_as_tool`.

        Parameters
        ----------
        drive : callable
            Makes the calls of a run: called with a `Turn`, plain or async.
        **options
            Those of `PlaybookProcedure`.
        """
        from runbook_nb.playbooks.procedure import PlaybookProcedure

        return PlaybookProcedure(self, drive, **options)

    @property
    def structure(self) -> Structure:
        """Its steps as a graph, as charts have one."""
        from runbook_nb.playbooks.outline import structure_of

        return structure_of(self)

    def flowchart(self) -> Flowchart:
        """Draw its steps; the object has ``.svg``, ``.dot`` and ``.mermaid``."""
        chart: Flowchart = through("flowchart", self.view())
        return chart

    def explore(self) -> Explorer:
        """Go through its steps one by one; a widget."""
        return self.structure.explore()

    def view(self) -> Card:
        """Show its steps, what each expects, and how they follow."""
        from runbook_nb.playbooks.cards import playbook_card

        return playbook_card(self)

    def lint(
        self,
        tools: Any = None,
        skills: Mapping[str, Any] | None = None,
        policy: EnforcementPolicy | Mapping[str, Any] | str | None = None,
    ) -> PlaybookLint:
        """Look for what cannot go as written, or goes otherwise than it seems; nothing is run.

        Parameters
        ----------
        tools : Toolbox or iterable of tools or names, optional
            The tools that exist. Without it, whether they do is not checked, and said so.
        skills : mapping of str to Skill, optional
            The skills by the keys that steps name them by.
        policy : EnforcementPolicy, mapping or str, optional
            The rules a plan would be held to.

        Examples
        --------
        >>> steps = [PlaybookStep(id="pay", description="Pay.", expected_tools=["pay_out"])]
        >>> lint = Playbook(id="p", name="Payout", steps=steps).lint(tools=["payout"])
        >>> [(one.code, one.where, one.fix) for one in lint]
        [('unknown_tool', 'steps[0].expected_tools[0]', "did you mean 'payout'?")]
        """
        from runbook_nb.playbooks.lint import lint_playbook

        return lint_playbook(self, tools, skills, policy)


class StepExecution(BaseModel):
    """What a plan has recorded of one step.

    Attributes
    ----------
    step_id : str
        The step.
    status : StepStatus
        Where it stands.
    started_at, completed_at : datetime or None
        When it was begun and when it ended.
    tool_calls : list of str
        The tools called under it, in order, repeats kept.
    tool_call_count : int
        How many calls those are.
    error, result : str or None
        What it failed with, and what it was closed with.
    matched_probes : list of str
        The probes that were met, in the order in which they first were.

    Examples
    --------
    >>> probes = [RequiredProbe(name=n, match="x") for n in ("a", "b")]
    >>> done = StepExecution(step_id="detect", matched_probes=["b"])
    >>> done.probe_coverage(probes), done.unmatched_probes(probes)
    (0.5, ['a'])
    """

    step_id: str
    status: StepStatus = StepStatus.PENDING
    started_at: datetime | None = None
    completed_at: datetime | None = None
    tool_calls: list[str] = []
    tool_call_count: int = 0
    error: str | None = None
    result: str | None = None
    matched_probes: list[str] = []

    def probe_coverage(self, probes: Iterable[RequiredProbe]) -> float:
        """Give the share of distinct probe names that are matched; 1.0 where none is asked for."""
        names = {probe.name for probe in probes}
        return len(names.intersection(self.matched_probes)) / len(names) if names else 1.0

    def unmatched_probes(self, probes: Iterable[RequiredProbe]) -> list[str]:
        """Give the names of the probes that are not matched, as declared, each once."""
        names = dict.fromkeys(probe.name for probe in probes)
        return [name for name in names if name not in self.matched_probes]


def status_words(record: StepExecution | None) -> str:
    """Say where a step stands by its record, as texts and views say it."""
    return (StepStatus.PENDING if record is None else record.status).value.replace("_", " ")


class PlaybookPlan(Renderable, BaseModel):
    """How far a run has come in its playbook.

    Attributes
    ----------
    playbook : Playbook
        What is being followed.
    started_at : datetime
        When the plan was made.
    current_step_index : int
        The pointer.
    step_executions : dict of str to StepExecution
        The records of steps, in the order in which they were first touched.
    completed : bool
        Whether the pointer passed the last step.
    total_tool_calls : int
        Calls in all.
    errors : list of str
        What failed.
    metadata : dict
        Anything else.

    Examples
    --------
    >>> steps = [PlaybookStep(id="detect", description="Look.")]
    >>> plan = PlaybookPlan(playbook=Playbook(id="ir", name="Incident response", steps=steps))
    >>> plan.current_step.id, plan.progress, plan.unresolved_required_steps()
    ('detect', 0.0, ['detect'])
    """

    playbook: Playbook
    started_at: datetime = Field(default_factory=_now)
    current_step_index: int = 0
    step_executions: dict[str, StepExecution] = {}
    completed: bool = False
    total_tool_calls: int = 0
    errors: list[str] = []
    metadata: dict[str, Any] = {}

    @property
    def current_step(self) -> PlaybookStep | None:
        """The step at the pointer, or None where it is out of range."""
        steps: Sequence[PlaybookStep] = self.playbook.steps
        place = self.current_step_index
        return steps[place] if 0 <= place < len(steps) else None

    @property
    def progress(self) -> float:
        """The share of steps with a completed record; 1.0 for a playbook without steps."""
        total = len(self.playbook.steps)
        return len(self.completed_steps) / total if total else 1.0

    @property
    def completed_steps(self) -> list[str]:
        """The ids of completed steps, in the order of their records."""
        done = StepStatus.COMPLETED
        return [key for key, record in self.step_executions.items() if record.status is done]

    @property
    def pending_steps(self) -> list[str]:
        """The ids of all steps that are not completed, in the order of the playbook."""
        return [step.id for step in self.playbook.steps if not self.is_step_complete(step.id)]

    def get_step_execution(self, step_id: str) -> StepExecution | None:
        """Give the record of a step, or None where it has none yet."""
        return self.step_executions.get(step_id)

    def is_step_complete(self, step_id: str) -> bool:
        """Say whether a step is recorded as completed."""
        record = self.step_executions.get(step_id)
        return record is not None and record.status is StepStatus.COMPLETED

    def unresolved_required_steps(self) -> list[str]:
        """Give the ids of required steps that are not completed, in the order of the playbook."""
        return [
            step.id
            for step in self.playbook.steps
            if step.required and not self.is_step_complete(step.id)
        ]

    def view(self) -> Card:
        """Show how far it came, with all that whoever enforces it knows; else its fields."""
        from runbook_nb.playbooks.cards import plan_card

        return plan_card(self)

    def flowchart(self) -> Flowchart:
        """Draw the steps with what became of them."""
        chart: Flowchart = through("flowchart", self.view())
        return chart


class EnforcementViolation(Renderable, BaseModel):
    """A call or a closing that was not as the playbook has it.

    Attributes
    ----------
    violation_type : str
        A stable word: ``unexpected_tool``, ``tool_outside_skill``, ``max_tool_calls``,
        ``playbook_complete``, ``evidence_incomplete``, ``insufficient_effort`` and, under other
        policies than ``compat``, more.
    step_id, tool_name : str or None
        What it concerns.
    message : str
        What happened.
    timestamp : datetime
        When.
    blocked : bool
        Whether a call was refused for it.

    Examples
    --------
    >>> EnforcementViolation(violation_type="unexpected_tool", message="not now").blocked
    False
    """

    violation_type: str
    step_id: str | None = None
    tool_name: str | None = None
    message: str
    timestamp: datetime = Field(default_factory=_now)
    blocked: bool = False

    def view(self) -> Card:
        """Show what it was about, and whether a call was refused for it."""
        from runbook_nb.playbooks.rulecards import violation_card

        return violation_card(self)


class EnforcementResult(BaseModel):
    """What judging a call gives.

    Attributes
    ----------
    allowed : bool
        Whether the call may be made.
    violation : EnforcementViolation or None
        What it goes against.
    hints : list of str
        What helps whoever made it.
    current_step : PlaybookStep or None
        The step it was judged under.

    Examples
    --------
    >>> EnforcementResult(allowed=True).hints
    []
    """

    allowed: bool
    violation: EnforcementViolation | None = None
    hints: list[str] = []
    current_step: PlaybookStep | None = None
