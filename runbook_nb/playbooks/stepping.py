"""What a host and a person do to the steps of a plan, and how its run ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runbook_nb._text import did_you_mean
from runbook_nb.errors import PlaybookError
from runbook_nb.playbooks.held import HeldPlan
from runbook_nb.playbooks.judging import declined_words, open_past, quoted
from runbook_nb.playbooks.model import PlaybookStep
from runbook_nb.playbooks.report import (
    PlaybookReport,
    report_of,
    served_report,
    unresolved_steps,
)
from runbook_nb.playbooks.terms import StepTerms

if TYPE_CHECKING:
    from runbook_nb.playbooks.byhand import StepByHand


class HeldSteps(HeldPlan):
    """A plan whose steps are closed, passed over, approved, declined; see `PlaybookEnforcer`."""

    def complete_current_step(self, result: str | None = None) -> bool:
        """Close the step at the pointer; say whether a further step is current now.

        Parameters
        ----------
        result : str, optional
            What it is closed with.

        Raises
        ------
        PlaybookError
            ``step_declined``: a person declined to approve it.
        """
        with self._doing() as keeper:
            step = self._current()
            if step is None:
                return False
            self._refuse_declined(step)
            keeper.close(step, by="host", result=result)
            return self._current() is not None

    def skip_current_step(self, reason: str | None = None, *, by: str | None = None) -> bool:
        """Pass over the step at the pointer, if it is optional; say whether that was done.

        Parameters
        ----------
        reason : str, optional
            Why.
        by : str, optional
            The person who does it; the host otherwise.
        """
        with self._doing() as keeper:
            step = self._current()
            if step is None or step.step.required:
                return False
            keeper.skip(step, reason, **_actor(by))
            return True

    def fail_current_step(self, error: str, *, by: str | None = None) -> None:
        """Mark the step at the pointer as failed; it stays current.

        Parameters
        ----------
        error : str
            What it failed with.
        by : str, optional
            The person who does it; the host otherwise.

        Raises
        ------
        PlaybookError
            ``step_declined``: a person declined to approve it, which stands.
        """
        with self._doing() as keeper:
            step = self._current()
            if step is not None:
                self._refuse_declined(step)
                keeper.fail(step, error, **_actor(by))

    def complete(self, step: str | PlaybookStep, by: str, note: str = "") -> None:
        """Close a step as a person.

        Calls of its tools that were made too early count as its own. Optional steps before it are
        passed over, under a policy that lets them be.

        Parameters
        ----------
        step : str or PlaybookStep
            The step: the current one or, where steps interleave, any that is open.
        by : str
            Who closes it.
        note : str
            What there is to say.

        Raises
        ------
        PlaybookError
            There is no such step, it is not its turn, nobody is named, or it has to be approved.
        """
        with self._doing() as keeper:
            found = self._step_of(step, by)
            self._refuse_declined(found)
            facts = keeper.state.facts_of(found.id)
            if found.step.kind == "approval" and not facts.approvals:
                raise PlaybookError(
                    f"step {quoted(found.id)} has to be approved before it can be closed",
                    code="approval_missing",
                    where=found.id,
                    fix=f"call approve({found.id!r}, by=…)",
                )
            keeper.come_to(found, by)
            keeper.close(found, by="person", who=by, note=note, result=note or None)

    def approve(self, step: str | PlaybookStep, by: str, note: str = "") -> None:
        """Approve a step of kind ``approval`` as a person; one without tools closes with it.

        Optional steps before it are passed over, under a policy that lets them be.

        Parameters
        ----------
        step : str or PlaybookStep
            The step.
        by : str
            Who approves it.
        note : str
            What there is to say.

        Raises
        ------
        PlaybookError
            There is no such step, it is not its turn, nobody is named, or it needs no approval.
        """
        with self._doing() as keeper:
            found = self._step_of(step, by)
            self._refuse_other_kind(found, "close it with complete(), or give it kind: approval")
            self._refuse_declined(found)
            keeper.come_to(found, by)
            keeper.approve(found, by, note)

    def decline(self, step: str | PlaybookStep, by: str, note: str = "") -> None:
        """Decline, as a person, to approve a step of kind ``approval``.

        Nothing can close the step from then on: its tools are refused, and a run in which a
        required one was declined ends as ``declined``. An optional one may still be passed over.
        Setting the plan back asks for the approval again.

        Parameters
        ----------
        step : str or PlaybookStep
            The step.
        by : str
            Who declines it.
        note : str
            Why.

        Raises
        ------
        PlaybookError
            There is no such step, it is not its turn, nobody is named, it needs no approval, it
            has one (``already_approved``), or was declined before (``step_declined``).

        Examples
        --------
        >>> from runbook_nb.playbooks import Playbook, PlaybookEnforcer
        >>> pay = PlaybookStep(id="pay", description="Pay.", kind="approval")
        >>> plan = PlaybookEnforcer.from_playbook(Playbook(id="p", name="P", steps=[pay]))
        >>> plan.decline("pay", by="R. Ito", note="too much")
        >>> plan.finish().verdict, plan.stuck_reason.split(";")[0]
        ('declined', "step 'pay' was declined by 'R. Ito': too much")
        """
        with self._doing() as keeper:
            found = self._step_of(step, by)
            self._refuse_other_kind(found, "mark it as failed with fail_current_step()")
            self._refuse_declined(found)
            approvals = keeper.state.facts_of(found.id).approvals
            if approvals:
                raise PlaybookError(
                    f"step {quoted(found.id)} was approved by {quoted(approvals[0][0])}",
                    code="already_approved",
                    where=found.id,
                    fix="mark it as failed with fail_current_step(), or set the plan back",
                )
            keeper.come_to(found, by)
            keeper.decline(found, by, note)

    def reset(self, *, by: str | None = None) -> None:
        """Set the plan back to its beginning.

        Parameters
        ----------
        by : str, optional
            The person who does it.
        """
        with self._doing() as keeper:
            who = _actor(by).get("who")
            self._provisional.clear()
            keeper.reset(who)

    def check_time(self) -> None:
        """Look whether a step has taken longer than it may: what a timer calls."""
        with self._doing() as keeper:
            keeper.watch_time()

    def finish(self) -> PlaybookReport:
        """End the run, note every required step that is not done, and say what it comes to.

        Optional steps that are all that is left are passed over under a policy that lets them be.
        A plan that goes on afterwards can be finished again.
        """
        with self._doing() as keeper:
            keeper.watch_time()
            terms, state = keeper.terms, keeper.state
            left = [one for one in terms.steps if one.index not in state.closed]
            if state.policy.optional == "passable" and not any(o.step.required for o in left):
                for one in left:
                    keeper.skip(one, "passed over: the run ended", by="calls")
            for one in unresolved_steps(keeper):
                keeper.note_unresolved(one)
            report = report_of(keeper)
            keeper.finish(report.verdict, report.unresolved, report.unmatched)
            return served_report(report, keeper.kept.text)

    def step(
        self,
        step: str | PlaybookStep,
        by: str,
        *,
        tool: str | None = None,
        note: str = "",
        arguments: Mapping[str, Any] | None = None,
        done: bool = False,
    ) -> StepByHand:
        """Hold a person's work to the plan: ``with enforcer.step("look", by="R. Ito"):``.

        The block is a call of one of the step's tools, admitted before it is entered and settled
        when it is left; an error it raises is the error of the call. It is not entered when the
        plan does not let the call be made. Of a step without tools that a person closes, the block
        is entered when it is the step's turn.

        Parameters
        ----------
        step : str or PlaybookStep
            The step.
        by : str
            Who does it.
        tool : str, optional
            Whose call the block is; needed where the step expects several tools.
        note : str
            What there is to say.
        arguments : mapping, optional
            What the work was given, which is where evidence is looked for.
        done : bool
            Whether to close the step as a person when the block has ended well, if no call did,
            or to approve it where it is one that is approved.

        Returns
        -------
        StepByHand
            To be entered; its ``ask()`` judges without entering.

        Raises
        ------
        PlaybookError
            There is no such step, nobody is named, or the tool has to be.
        """
        from runbook_nb.playbooks.byhand import StepByHand

        name = step if isinstance(step, str) else step.id
        return StepByHand(
            self,  # type: ignore[arg-type]  # whatever has these steps is an enforcer
            name,
            by,
            tool=tool,
            note=note,
            arguments=arguments,
            done=done,
        )

    def _named(self, name: str, by: object) -> list[StepTerms]:
        """Give the terms of the steps of an id, on which somebody is to act."""
        terms = self._keeper.terms
        _refuse_nobody(by, f"acts on step {quoted(name)}")
        found = [one for one in terms.steps if one.id == name]
        if not found:
            raise PlaybookError(
                f"the playbook has no step {quoted(name)}",
                code="no_such_step",
                where=name,
                fix=did_you_mean(name, terms.by_id) or "give the id of a step",
            )
        return found

    def _refuse_declined(self, step: StepTerms) -> None:
        """Refuse to close, fail or approve a step that a person declined."""
        told = declined_words(step, self._keeper.state)
        if told is not None:
            raise PlaybookError(
                told,
                code="step_declined",
                where=step.id,
                fix="set the plan back with reset(by=…) to have it asked for again",
            )

    def _refuse_other_kind(self, step: StepTerms, fix: str) -> None:
        """Refuse to approve or decline a step that asks for no approval."""
        if step.step.kind != "approval":
            raise PlaybookError(
                f"step {quoted(step.id)} is not one that is approved",
                code="not_an_approval",
                where=step.id,
                fix=fix,
            )

    def _step_of(self, step: str | PlaybookStep, by: str) -> StepTerms:
        """Give the terms of a step that a person acts on."""
        name = step if isinstance(step, str) else step.id
        terms, state = self._keeper.terms, self._keeper.state
        found = self._named(name, by)
        current = self._current()
        here = [one for one in found if one is current] or [
            one for one in found if terms.interleaved and one.index not in state.closed
        ]
        here = here or [one for one, _ in open_past(terms, state) if one in found]
        if not here:
            now = "the playbook is complete" if current is None else f"now is {quoted(current.id)}"
            raise PlaybookError(
                f"it is not the turn of step {quoted(name)}: {now}",
                code="not_its_turn",
                where=name,
                fix="act on the current step",
            )
        return here[0]


def _refuse_nobody(by: object, does: str) -> None:
    """Refuse a name in which there is nothing to read."""
    if isinstance(by, str) and any(one.isprintable() and not one.isspace() for one in by):
        return
    raise PlaybookError(
        f"nobody is named who {does}",
        code="nobody_named",
        where="by",
        fix="give by= the name of the person",
    )


def _actor(by: str | None) -> dict[str, str]:
    """Say who acts on the plan as events have it: a person who is named, or the host."""
    if by is None:
        return {"by": "host"}
    _refuse_nobody(by, "acts on the plan")
    return {"by": "person", "who": by}
