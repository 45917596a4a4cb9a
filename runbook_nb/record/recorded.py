"""A run read back from a recording: the views of a run, and what the recording does not carry.

Record layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._deep import copied
from runbook_nb._frozen import FrozenDict
from runbook_nb._text import MISSING, counted
from runbook_nb._view import Card, Data, Fact, Facts, Section
from runbook_nb.errors import NotCarried
from runbook_nb.record.masked import hidden_before
from runbook_nb.record.recording import RECORDING_KEYS, Recording
from runbook_nb.record.redaction import report_of
from runbook_nb.record.run import Run

if TYPE_CHECKING:
    from runbook_nb.record.log import Log
    from runbook_nb.record.redact import Redactor
    from runbook_nb.record.redaction import RedactionReport
    from runbook_nb.record.structure import Structure

#: The status of a run whose recording does not tell how it ended.
UNTOLD: Final = "not carried"


class RecordedRun(Run):
    """A run as a recording tells it; made by `load_recording`.

    It has every view of a run. What was hidden when it was recorded stays hidden; nothing can be
    run or resumed from it.

    Attributes
    ----------
    status : str
        As of a run, or ``not carried``.
    source : {"runbook_nb", "footprintjs"}
        Who recorded it.
    hidden : bool
        Whether it was recorded under a policy that may have hidden something.
    not_carried : tuple of str
        What the recording does not carry, in sentences; empty for our own.
    executions : mapping
        The id of each execution in these views -> its id in the file. Those inside side-by-side
        branches are numbered here from the branch's own start.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        name: str,
        status: str,
        log: Log,
        structure: Structure,
        state: Mapping[str, Any],
        source: str,
        args: FrozenDict | None = None,
        initial: FrozenDict | None = None,
        result: Any = None,
        error: FrozenDict | None = None,
        pause: FrozenDict | None = None,
        ended_at: FrozenDict | None = None,
        not_carried: tuple[str, ...] = (),
        executions: Mapping[str, str] | None = None,
        hidden: bool = False,
        output: Any = MISSING,
    ) -> None:
        super().__init__(
            name=name,
            status=status,
            args=FrozenDict() if args is None else args,
            log=log,
            raw_state=dict(state),
            raw_result=result,
            raw_output=output,
            structure=structure,
            error=error,
            pause=pause,
            ended_at=ended_at,
            initial=initial,
        )
        self._document = document
        self.source = source
        self.hidden = hidden
        self.not_carried = not_carried
        self.executions = FrozenDict(executions or {})

    @cached_property
    def redactor(self) -> Redactor:
        """What was hidden stays hidden, and is shown as hidden; there is no policy to apply."""
        return hidden_before(self.log, hidden=self.hidden)

    @property
    def redaction(self) -> RedactionReport:
        """What is hidden; a recording carries that something was, not what a policy said of it.

        Raises
        ------
        NotCarried
            Something was hidden when the run was recorded.
        """
        if self.redactor.active:
            raise NotCarried(
                "the report of what was hidden is not carried",
                where="redaction",
                fix="ask the run itself; commits[n].redacted says which values are hidden",
            )
        return report_of(self)

    def unredacted(self) -> Run:
        """Give the run as it is: what was hidden when it was recorded is not in the recording."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Give the recording as it was read: ``snapshot``, ``events`` and ``structure``."""
        return {name: copied(self._document.get(name)) for name in RECORDING_KEYS}

    def recording(self) -> Recording:
        """Give the recording it was read from."""
        return Recording(**self.to_dict())

    def _head(self) -> Card:
        return self._named(super()._head())

    def _named(self, card: Card) -> Card:
        """Say that this was read, and what of its end was not carried."""
        card = replace(card, kind="Recording")
        if self.status != UNTOLD:
            return card
        words = counted(self.steps_executed, "step")
        return replace(card, state="how it ended is not carried", headline=words)

    def view(self) -> Card:
        """Show the run, who recorded it, and what the recording does not carry."""
        from runbook_nb.record.outline import run_card, walk_flow

        card = run_card(self)
        if self.status == UNTOLD:
            flow = Section(label="Reached", parts=(walk_flow(self.walk),))
            card = replace(self._named(card), sections=(flow,))
            card = replace(card, foot=card.headline)
        missing = tuple(Fact(term=sentence) for sentence in self.not_carried)
        facts = Facts(label="Not carried", items=missing, total=len(missing), style="not_checked")
        return replace(
            self._named(card),
            eyebrow=("recorded by", Data(value=self.source, tone="code")),
            sections=(*card.sections, *([Section(label="", parts=(facts,))] if missing else ())),
        )
