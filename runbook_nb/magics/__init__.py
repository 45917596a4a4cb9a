"""The magics of ``%load_ext runbook_nb``: runbooks, rules, steps of playbooks, two settings.

On top of everything else, beside the command line. A magic reads its line, calls the public
function that does the same, and gives back what that gives. Nothing of a line or cell is
evaluated: a value is a text, JSON, or ``{name}``, which looks a variable up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from IPython.core.magic import (
    cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)

from runbook_nb._text import did_you_mean, listed
from runbook_nb.errors import DefinitionError
from runbook_nb.magics.lines import (
    SessionMagics,
    argument,
    argument_of,
    checked_variable,
    looked_up,
    read_line,
    takes,
    words_before,
)
from runbook_nb.magics.playbook import PlaybookMagics, complete_step
from runbook_nb.rules.loader import load_text
from runbook_nb.rules.ruleset import RuleSet
from runbook_nb.settings import settings
from runbook_nb.tools.tool import Tool
from runbook_nb.tools.toolbox import Toolbox

_LINE_MAGICS: Final = ("runbook", "runbook_theme", "runbook_static", "step")
_CELL_MAGICS: Final = ("rules", "playbook", "step")
_THEMES: Final = ("light", "dark", "auto")
_SWITCH: Final = ("on", "off")


@magics_class
class RunbookMagics(SessionMagics):
    """What ``%load_ext runbook_nb`` adds to a session."""

    @no_var_expand
    @output_can_be_silenced
    @takes(
        argument("name", metavar="NAME", help="The runbook; Tab completes it."),
        argument(
            "--arg",
            metavar="K=V",
            action="append",
            default=[],
            help="An argument: a text, JSON, or {variable}. May be given many times.",
        ),
        argument("--box", metavar="VAR", help="Which toolbox, where several have the runbook."),
        argument("--as", dest="into", metavar="VAR", help="Also keep the answer in this variable."),
    )
    @line_magic
    def runbook(self, line: str) -> Any:
        """Run a runbook of a toolbox of this session, and give its answer.

        In Python: ``box.call_sync("NAME", {"k": v})``.
        """
        told = read_line(self.runbook, line)
        variable = checked_variable(told.into)
        box = box_with(self.names, told.name, told.box)
        args = dict(argument_of(box[told.name], each, self.names) for each in told.arg)
        return self.kept(variable, box.call_sync(told.name, args))

    @no_var_expand
    @output_can_be_silenced
    @takes(
        argument("name", metavar="NAME", help="The name of the rule set."),
        argument("version", metavar="VERSION", help="Its version."),
        argument(
            "--as", dest="into", metavar="VAR", help="Also keep the rule set in this variable."
        ),
    )
    @cell_magic
    def rules(self, line: str, cell: str) -> RuleSet:
        """Read the cell as YAML and give the rule set it holds.

        The cell has what stands beside name and version in a rule file: ``rules:``,
        ``default:``, …. Problems name their line in the cell. In Python:
        ``rb.RuleSet.loads(text, "yaml")``, with name and version in the text.
        """
        told = read_line(self.rules, line)
        variable = checked_variable(told.into)
        # The line of the magic counts, as it does where a cell's lines are numbered.
        given = {"name": told.name, "version": told.version}
        return self.kept(variable, load_text(f"#\n{cell}", "yaml", given=given))

    @no_var_expand
    @output_can_be_silenced
    @takes(
        argument("theme", nargs="?", choices=_THEMES, help="The theme; without it, tell which."),
    )
    @line_magic
    def runbook_theme(self, line: str) -> str:
        """Set which palette static exports use, and say which.

        In Python: ``rb.settings.theme = "dark"``.
        """
        told = read_line(self.runbook_theme, line)
        if told.theme is not None:
            settings.theme = told.theme
        return str(settings.theme)

    @no_var_expand
    @output_can_be_silenced
    @takes(
        argument("switch", nargs="?", choices=_SWITCH, help="on or off; without it, tell which."),
    )
    @line_magic
    def runbook_static(self, line: str) -> str:
        """Set whether displays are final at once, with no live updates, and say whether.

        In Python: ``rb.settings.static = True``.
        """
        told = read_line(self.runbook_static, line)
        if told.switch is not None:
            settings.static = told.switch == "on"
        return "on" if settings.static else "off"


# -- finding ---------------------------------------------------------------------------------


def boxes_in(names: Mapping[str, Any]) -> Iterator[tuple[str, Toolbox]]:
    """Give the toolboxes of a session with their variables, each once.

    What begins with an underscore is left out: that is where a session keeps its outputs.

    Examples
    --------
    >>> from runbook_nb.tools import Toolbox
    >>> box = Toolbox()
    >>> [name for name, _ in boxes_in({"_": box, "box": box, "same": box, "n": 1})]
    ['box']
    """
    seen = set()
    for name, value in list(names.items()):
        if issubclass(type(value), Toolbox) and not name.startswith("_") and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def box_with(names: Mapping[str, Any], runbook: str, variable: str | None = None) -> Toolbox:
    """Give the toolbox that has a runbook.

    Parameters
    ----------
    names : mapping
        The variables of the session.
    runbook : str
        The name of the runbook, or of any other tool.
    variable : str, optional
        The variable that holds the toolbox; needed where several have the name.

    Raises
    ------
    DefinitionError
        ``no_toolbox``, ``unknown_tool`` or ``several_toolboxes``.

    Examples
    --------
    >>> from runbook_nb.tools import Toolbox, define_tool
    >>> box = Toolbox([define_tool(name="ages", execute=lambda args: [2, 30])])
    >>> box_with({"box": box}, "ages") is box
    True
    >>> box_with({"box": box}, "age")
    Traceback (most recent call last):
        ...
    runbook_nb.errors.DefinitionError: no toolbox of this session has a runbook 'age'; \
did you mean 'ages'?
    """
    boxes = dict(boxes_in(names))
    if variable is not None:
        value = looked_up(variable, names)
        if not isinstance(value, Toolbox):
            raise DefinitionError(
                f"{variable} is {type(value).__name__}, not a toolbox",
                where=variable,
                code="no_toolbox",
                fix=f"the toolboxes are {listed(boxes)}" if boxes else None,
            )
        boxes = {variable: value}
    if not boxes:
        raise DefinitionError(
            "there is no toolbox in this session",
            where=runbook,
            code="no_toolbox",
            fix="make one: box = rb.Toolbox([…])",
        )
    having = {name: box for name, box in boxes.items() if runbook in box}
    if not having:
        known = list(dict.fromkeys(tool.name for box in boxes.values() for tool in box))
        raise DefinitionError(
            f"no toolbox of this session has a runbook {runbook!r}"
            if variable is None
            else f"the toolbox {variable} has no runbook {runbook!r}",
            where=runbook,
            code="unknown_tool",
            fix=did_you_mean(runbook, known) or f"there are {listed(known) if known else 'none'}",
        )
    if len(having) > 1:
        raise DefinitionError(
            f"the toolboxes {listed(having)} all have a runbook {runbook!r}",
            where=runbook,
            code="several_toolboxes",
            fix=f"say which: --box {next(iter(having))}",
        )
    return next(iter(having.values()))


def complete(shell: Any, event: Any) -> list[str]:
    """Complete the line of ``%runbook``: its name, an argument's name, a toolbox; never raises."""
    try:
        before, boxes = words_before(event), dict(boxes_in(shell.user_ns))
        last = before[-1] if before else None
        if last is None:
            return [tool.name for box in boxes.values() for tool in box if _is_runbook(tool)]
        if last == "--box":
            return list(boxes)
        if last == "--arg":
            named = [box[before[0]] for box in boxes.values() if before[0] in box]
            known = named[0].input_schema.get("properties", {}) if named else {}
            return [f"{name}=" for name in known]
        return ["--arg", "--as", "--box"]
    except Exception:  # a completion that fails completes nothing
        return []


def _is_runbook(tool: Tool) -> bool:
    return "runbook" in tool.carried


def register(shell: Any) -> None:
    """Add the magics and their completion to a session."""
    shell.register_magics(RunbookMagics, PlaybookMagics)
    completers = {
        "%runbook": complete,
        "%step": complete_step,
        "%%step": complete_step,
        "%runbook_theme": lambda _, event: list(_THEMES),
        "%runbook_static": lambda _, event: list(_SWITCH),
    }
    for name, completer in completers.items():
        shell.set_hook("complete_command", completer, str_key=name)


def unregister(shell: Any) -> None:
    """Take them out again."""
    known = shell.magics_manager.magics
    for kind, names in (("line", _LINE_MAGICS), ("cell", _CELL_MAGICS)):
        for name in names:
            known[kind].pop(name, None)
    completers = shell.strdispatchers.get("complete_command")
    for name in ("%%step", *(f"%{name}" for name in _LINE_MAGICS)):
        getattr(completers, "strs", {}).pop(name, None)
