"""The branches of a decider, a selector or a fork, collected one by one.

Chart layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runbook_nb._text import counted, visible
from runbook_nb.chart.model import (
    Branch,
    Chart,
    DeciderStage,
    ForkStage,
    FunctionStage,
    PausableStage,
    Retry,
    Stage,
    StageFunction,
    StreamingStage,
    SubchartStage,
)
from runbook_nb.errors import Problem

if TYPE_CHECKING:
    from runbook_nb.chart.builder import FlowChartBuilder


_INSIDE = "give them to the stages inside"


class BranchesBuilder:
    """Collects the branches of one stage; made by ``add_decider`` and its like."""

    def __init__(self, owner: FlowChartBuilder, stage: DeciderStage | ForkStage) -> None:
        self._owner = owner
        self._stage = stage
        self._branches: list[Branch] = []
        self._unended = Problem(
            message="its branches were never ended, so that it is no part of the chart",
            where=repr(stage.id),
            fix="write .end() behind its last branch",
        )
        owner._problems.append(self._unended)

    def __repr__(self) -> str:
        held = counted(len(self._branches), "branch", "branches")
        name = visible(str(self._stage.name))
        return f"<BranchesBuilder {name} · {held}; .end() goes on with the chart>"

    def branch(
        self,
        id: str,
        fn: StageFunction | Chart | Callable[[], Chart],
        *,
        name: str | None = None,
        description: str | None = None,
        loop_to: str | None = None,
        resume: StageFunction | None = None,
        stream: str | None = None,
        inputs: Any = None,
        outputs: Any = None,
        array_merge: str = "concat",
        propagate_stop: bool = False,
        lazy: bool = False,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        blocking: bool = False,
    ) -> BranchesBuilder:
        """Add the branch that ``id`` leads to.

        A description, when given, is the branch's declared meaning.

        Parameters
        ----------
        id : str
            The branch's word, and its stage's id.
        fn : callable or Chart
            A function of the scope; or a built chart, or with ``lazy`` a function that gives one,
            run as by ``add_subchart``.
        loop_to : str, optional
            The stage the run goes back to when the branch has ended; for deciders only.
        resume : callable, optional
            Makes the branch pausable; see ``add_pausable``.
        stream : str, optional
            Makes it a streaming stage, with this id of its stream.
        inputs, outputs, array_merge, propagate_stop, lazy
            For a chart, as in ``add_subchart``.

        Examples
        --------
        >>> from runbook_nb.chart.builder import flow_chart
        >>> chart = (flow_chart("dig", lambda s: s.set("depth", 0), id="start")
        ...     .add_decider("Deep enough?", lambda s: "yes" if s["depth"] > 2 else "no", id="deep")
        ...         .branch("no", lambda s: s.set("depth", s["depth"] + 1), loop_to="deep")
        ...         .branch("yes", lambda s: s["depth"])
        ...         .end().build())
        >>> chart.run_sync().result
        3
        """
        stage: Stage
        shown = name if name is not None else id
        if isinstance(fn, Chart) or lazy:
            if resume is not None or stream is not None:
                self._refuse("resume and stream are for a branch that is a function", id, _INSIDE)
            stage = SubchartStage(
                id=id,
                name=shown,
                description=description,
                tags=tags_of(tags),
                retry=retry,
                blocking=blocking,
                chart=fn,
                lazy=lazy,
                inputs=inputs,
                outputs=outputs,
                array_merge=array_merge,
                propagate_stop=propagate_stop,
            )
        else:
            stage = made_stage(
                fn,
                id=id,
                name=shown,
                description=description,
                resume=resume,
                stream=stream,
                retry=retry,
                tags=tags,
                blocking=blocking,
            )
            if inputs is not None or outputs is not None or propagate_stop:
                self._refuse(
                    "inputs, outputs and propagate_stop are for a branch that is a chart",
                    id,
                    "let the function read and write what it needs",
                )
            self._owner._problems += one_form(resume, stream, id)
        if loop_to is not None and not isinstance(self._stage, DeciderStage):
            self._refuse(
                "branches that run side by side cannot go back to a stage",
                id,
                "loop from a decider behind them",
            )
        self._branches.append(Branch(route=id, stage=stage, loop_to=loop_to))
        return self

    def default(self, id: str) -> BranchesBuilder:
        """Name the branch taken when the judge's word is none of the branches, or no rule fired.

        A decision that names an undeclared branch is an error of the rules and is not rerouted.
        """
        if isinstance(self._stage, DeciderStage):
            self._stage = replace(self._stage, default=id)
        else:
            self._refuse(
                "only a decider has a default", self._stage.id, "run the branch always, in a fork"
            )
        return self

    def _refuse(self, message: str, id: Any, fix: str) -> None:
        self._owner._problems.append(Problem(message=message, where=repr(id), fix=fix))

    def end(self) -> FlowChartBuilder:
        """Close the list of branches and go back to the chart."""
        if self._unended in self._owner._problems:
            self._owner._problems.remove(self._unended)
        return self._owner._add(replace(self._stage, branches=tuple(self._branches)))


def one_form(resume: Any, stream: Any, id: Any) -> list[Problem]:
    """Refuse a stage that is to be pausable and streaming."""
    if resume is None or stream is None:
        return []
    fix = "ask in one stage and stream in another"
    return [Problem(message="a stage either asks or streams", where=repr(id), fix=fix)]


def tags_of(tags: Any) -> tuple[Any, ...]:
    """Read tags as declared; what is wrong with them is found at build."""
    # One text is one tag, not a tag per letter.
    return tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else (tags,)


def made_stage(
    fn: Any,
    *,
    id: str,
    name: str,
    description: str | None,
    resume: StageFunction | None,
    stream: str | None,
    retry: Retry | None,
    tags: Iterable[str],
    blocking: bool,
) -> FunctionStage:
    """Make the stage of a function: pausable, streaming, or plain."""
    facts: dict[str, Any] = {
        "id": id,
        "name": name,
        "description": description,
        "tags": tags_of(tags),
        "retry": retry,
        "blocking": blocking,
        "fn": fn,
    }
    if resume is not None:
        return PausableStage(**facts, resume=resume)
    if stream is not None:
        return StreamingStage(**facts, stream=stream)
    return FunctionStage(**facts)
