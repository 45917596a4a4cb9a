"""Why one row has its verdict: the row, its subject, and the decision behind it.

Bridge layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._display import Renderable
from runbook_nb._frozen import thaw
from runbook_nb._json import to_wire
from runbook_nb._view import Card
from runbook_nb.errors import NotCarried
from runbook_nb.runbook.dossier import SubjectFacts

if TYPE_CHECKING:
    from runbook_nb.runbook.envelope import Envelope


class Explanation(Renderable):
    """Why one row has its verdict.

    Attributes
    ----------
    subject : object
        Whom it is about.
    row : mapping or None
        The verdict row; None for a subject without one.
    place : int or None
        The row's number, from 0.
    facts : SubjectFacts or None
        What became of the subject; None when no subject belongs to the row.
    gap : str
        Why there are no facts; empty when there are.
    """

    def __init__(
        self,
        envelope: Envelope,
        *,
        subject: Any,
        row: Mapping[str, Any] | None,
        place: int | None,
        facts: SubjectFacts | None,
        gap: str = "",
    ) -> None:
        self.envelope = envelope
        self.subject = subject
        self.row = row
        self.place = place
        self.facts = facts
        self.gap = gap

    @property
    def decision(self) -> Any:
        """The decision of the subject's branch; None when none was made or none is carried."""
        return None if self.facts is None else self.facts.decision

    @property
    def verdict(self) -> str | None:
        """The row's verdict word."""
        return None if self.row is None else str(self.row["verdict"])

    @property
    def sentence(self) -> str:
        """The one sentence that explains the row."""
        if self.facts is None:
            return self.gap
        if self.facts.status != "ok":
            return f"{self.facts.status.replace('_', ' ')}: {self.facts.reason}"
        if self.decision is None:
            return "its branch ended without a decision by rules"
        return str(self.decision.sentence)

    def walk(self) -> Any:
        """Give the rows of the subject's own path.

        Raises
        ------
        NotCarried
            This copy carries no live record.
        """
        run, facts = self.envelope.run, self.facts
        if run is None or facts is None:
            raise NotCarried("the subject's own path is not carried by this copy")
        groups = {group.key: group for group in self.envelope.dossier.fan_outs}
        if facts.stage not in groups:  # the run's own decision, outside any fan-out
            return run.walk
        fan = groups[facts.stage].executions[facts.execution]
        for found, prefix in run.walk.fans():
            if found is fan and fan.shape(facts.index) is not None:
                return run.walk.inside((fan, facts.index, prefix))
        raise NotCarried(f"there is no path: {self.sentence}", code="not_reached")

    def to_dict(self) -> dict[str, Any]:
        """Give the explanation as JSON values."""
        decision = None if self.decision is None else self.decision.to_dict()
        if decision is not None and "rules" in decision:
            # A copy holds rules whose hidden limits were replaced; the digest is of the real ones.
            digest = self.envelope.dossier.digest_of(self.decision.path.rules)
            decision["rules"]["digest"] = digest
        return {
            "subject": to_wire(self.subject),
            "row": None if self.row is None else thaw(self.row),
            "place": self.place,
            "status": None if self.facts is None else self.facts.status,
            "sentence": self.sentence,
            "decision": decision,
        }

    def view(self) -> Card:
        """Show the decision card of the row."""
        from runbook_nb.runbook.explain import explanation_card

        return explanation_card(self)
