"""The magics that hold a person to a playbook: ``%%playbook``, ``%%step`` and ``%step``.

A magic reads its line, calls what does the same in Python, and gives what that gives. What may be
done now is judged where every call is judged: by the plan.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from IPython.core.error import UsageError
from IPython.core.magic import (
    cell_magic,
    line_cell_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)

from runbook_nb._text import listed
from runbook_nb.errors import DefinitionError
from runbook_nb.magics.bodies import Body
from runbook_nb.magics.lines import (
    SessionMagics,
    argument,
    argument_split,
    checked_variable,
    looked_up,
    read_line,
    takes,
    value_of,
    words_before,
)
from runbook_nb.playbooks.byhand import StepByHand
from runbook_nb.playbooks.enforcer import PlaybookEnforcer
from runbook_nb.playbooks.loader import load_playbook
from runbook_nb.playbooks.model import Playbook

#: What each magic's line may have, to be completed.
OPTIONS: Final = (
    *("--by", "--note", "--done", "--decline", "--skip"),
    *("--tool", "--arg", "--enforcer", "--again", "--as"),
)


@magics_class
class PlaybookMagics(SessionMagics):
    """The magics of playbooks."""

    def __init__(self, shell: Any = None, **more: Any) -> None:
        super().__init__(shell, **more)
        #: Who works on which plan, as was said last.
        self._people: WeakKeyDictionary[PlaybookEnforcer, str] = WeakKeyDictionary()

    @no_var_expand
    @output_can_be_silenced
    @takes(
        argument("id", metavar="NAME", help="The id of the playbook."),
        argument(
            "--as", dest="into", metavar="VAR", help="Also keep the playbook in this variable."
        ),
    )
    @cell_magic
    def playbook(self, line: str, cell: str) -> Playbook:
        """Read the cell as YAML and give the playbook it holds.

        The cell has what stands beside the id in a playbook's file: ``name:``, ``steps:``, ….
        Problems name their line in the cell. In Python: ``rb.load_playbook(text)``, with the id
        in the text.
        """
        told = read_line(self.playbook, line)
        variable = checked_variable(told.into)
        # The id stands where the line of the magic does, so that lines count as a cell's do.
        return self.kept(variable, load_playbook(f"id: {json.dumps(told.id)}\n{cell}"))

    @no_var_expand
    @takes(
        argument("step", metavar="NAME", help="The id of the step."),
        argument("--by", metavar="WHO", help="Who does it: a text or {variable}; said once."),
        argument("--note", metavar="TEXT", default="", help="What there is to say."),
        argument(
            "--done",
            action="store_true",
            help="Close the step as a person afterwards, or approve it.",
        ),
        argument("--decline", action="store_true", help="Decline to approve the step."),
        argument("--skip", metavar="REASON", help="Pass over the step, which has to be optional."),
        argument("--tool", metavar="TOOL", help="Whose call the cell is, of several expected."),
        argument(
            "--arg",
            metavar="K=V",
            action="append",
            default=[],
            help="What the work was given: a text, JSON, or {variable}. May be given many times.",
        ),
        argument("--enforcer", metavar="VAR", help="Which plan, where there are several."),
        argument(
            "--again",
            action="store_true",
            help="Run the cell of a step that is closed once more, outside the plan.",
        ),
        argument(
            "--as", dest="into", metavar="VAR", help="Keep the cell's value in this variable."
        ),
    )
    @line_cell_magic
    def step(self, line: str, cell: str | None = None) -> StepByHand:
        """Do the work of a step of a playbook: the cell is run if the plan lets it.

        The cell is a call of the tool that the step expects, admitted before it runs and settled
        when it ended. A cell that is refused is not run; what is shown says why, and what to do.
        One of a step that is closed is not run again, unless with ``--again``. As ``%step NAME``,
        without a cell, it says what the step asks for, and closes it with ``--done``, passes over
        an optional one with ``--skip REASON``, and declines an approval with ``--decline``.
        In Python: ``with enforcer.step("NAME", by="WHO"):``.
        """
        __tracebackhide__ = True  # what a cell raises is not of this
        told = read_line(self.step, line)
        variable = checked_variable(told.into)
        enforcer = plan_of(self.names, told.enforcer)
        _refuse_both(told, cell)
        work = self._work(told, enforcer, cell)
        if cell is None or not cell.strip():
            reason = None if told.skip is None else str(value_of(told.skip, self.names))
            return _without_cell(work, reason, declines=told.decline)
        body = Body(self.shell, cell)  # what cannot be read is no call
        if work.is_closed and told.again:
            work.word, work.result = "again", body.run()
        elif work.ask():
            with work:
                work.result = body.run()
        elif work.word == "closed":
            work.hints = ("With --again the cell is run once more, outside the plan.",)
        self._shown(work.result, variable)
        return work

    def _work(self, told: Namespace, enforcer: PlaybookEnforcer, cell: str | None) -> StepByHand:
        who = self._who(told, enforcer, acts=_acts(told) or bool(cell and cell.strip()))
        given = [argument_split(each) for each in told.arg]
        arguments = {name: value_of(text, self.names) for name, text in given}
        if cell is not None and cell.strip():
            arguments["cell"] = cell
        step = enforcer.plan.playbook.get_step(told.step)
        tools = (
            []
            if step is None or not (told.decline or told.skip is not None)
            else step.expected_tools
        )
        return enforcer.step(
            told.step,
            who,
            tool=told.tool or next(iter(tools), None),  # no call is made of one that is left out
            note=str(value_of(told.note, self.names)),
            arguments=arguments,
            done=told.done,
        )

    def _who(self, told: Namespace, enforcer: PlaybookEnforcer, *, acts: bool) -> str:
        """Say who does it: as the line says, else who was said to work under the plan.

        Who closes or approves a step speaks for that line alone, and need not be who works on.
        """
        step = enforcer.plan.playbook.get_step(told.step)
        approves = acts and step is not None and step.kind == "approval" and not step.expected_tools
        approves = approves or told.decline
        if told.by is None:
            if approves:
                verb = "declines" if told.decline else "approves"
                raise UsageError(f"say in the line itself who {verb} it: --by 'R. Ito'")
            if enforcer not in self._people:
                raise UsageError("say who does it, once for each plan: --by 'R. Ito', or --by {me}")
            return self._people[enforcer]
        who = str(value_of(told.by, self.names))
        if not (_acts(told) or approves):
            self._people[enforcer] = who
        return who

    def _shown(self, value: Any, variable: str | None) -> None:
        """Show the value of a cell, and keep it where it is wanted."""
        self.kept(variable, value)
        if value is not None and variable is None:
            from IPython.display import display

            show: Any = display
            show(value)


def _acts(told: Namespace) -> bool:
    """Say whether a line does something to its step by itself."""
    return bool(told.done or told.decline or told.skip is not None)


def _refuse_both(told: Namespace, cell: str | None) -> None:
    """Refuse a line that asks for several things at once."""
    if not (told.decline or told.skip is not None):
        return
    name = "--decline" if told.decline else "--skip"
    if cell is not None and cell.strip():
        raise UsageError(f"{name} does no work: write it in a line of its own, %step {told.step} …")
    if sum((told.done, told.decline, told.skip is not None)) > 1:
        raise UsageError("give one of --done, --decline and --skip")


def _without_cell(work: StepByHand, reason: str | None, *, declines: bool) -> StepByHand:
    """Close, decline or pass over a step by hand; nothing is done where nothing was asked for."""
    if declines:
        work.decline()
    elif reason is not None:
        work.skip(reason)
    elif work.done:
        work.ask_for_turn()
        if work.refusal is None:
            work.close()
    return work


def plans_in(names: Mapping[str, Any]) -> Iterator[tuple[str, PlaybookEnforcer]]:
    """Give the enforcers of a session with their variables, each once.

    Examples
    --------
    >>> plan = PlaybookEnforcer.from_playbook(Playbook(id="ir", name="Response"))
    >>> [name for name, _ in plans_in({"_": plan, "plan": plan, "same": plan, "n": 1})]
    ['plan']
    """
    seen = set()
    for name, value in list(names.items()):
        known = issubclass(type(value), PlaybookEnforcer) and not name.startswith("_")
        if known and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def plan_of(names: Mapping[str, Any], variable: str | None = None) -> PlaybookEnforcer:
    """Give the enforcer that a person works under.

    Parameters
    ----------
    names : mapping
        The variables of the session.
    variable : str, optional
        Which of them; needed where several hold one.

    Raises
    ------
    DefinitionError
        ``no_plan`` or ``several_plans``.

    Examples
    --------
    >>> plan = PlaybookEnforcer.from_playbook(Playbook(id="ir", name="Response"))
    >>> plan_of({"plan": plan}) is plan
    True
    """
    plans = dict(plans_in(names))
    if variable is not None:
        value = looked_up(variable, names)
        if not isinstance(value, PlaybookEnforcer):
            raise DefinitionError(
                f"{variable} is {type(value).__name__}, not an enforcer",
                where=variable,
                code="no_plan",
                fix=f"the enforcers are {listed(plans)}" if plans else None,
            )
        return value
    if not plans:
        raise DefinitionError(
            "there is no playbook's plan in this session",
            code="no_plan",
            fix="make one: plan = rb.PlaybookEnforcer.from_playbook(book)",
        )
    if len(plans) > 1:
        raise DefinitionError(
            f"the variables {listed(plans)} all hold a plan",
            code="several_plans",
            fix=f"say which: --enforcer {next(iter(plans))}",
        )
    return next(iter(plans.values()))


def complete_step(shell: Any, event: Any) -> list[str]:
    """Complete the line of ``%step``: the step's id, a plan, an option; never raises."""
    try:
        before, plans = words_before(event), dict(plans_in(shell.user_ns))
        if not before:
            return [one.id for plan in plans.values() for one in plan.plan.playbook.steps]
        if before[-1] == "--enforcer":
            return list(plans)
        if before[-1] == "--tool":
            known = [plan.terms.by_id.get(before[0]) for plan in plans.values()]
            return [tool for one in known if one is not None for tool in one.tools]
        return list(OPTIONS)
    except Exception:  # a completion that fails completes nothing
        return []
