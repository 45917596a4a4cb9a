"""Skills: what a step that uses one is bound to, and the evidence and effort it asks for.

A skill acts only while a step that names it in ``uses`` is current, and is found by the *key* it
was given under. Every function here is pure and asks skills by attribute, so an object of another
class that has ``allowed_tools`` and ``required_probes`` serves as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from runbook_nb._text import MISSING
from runbook_nb.playbooks.evidence import Probe
from runbook_nb.playbooks.patterns import permits

if TYPE_CHECKING:
    from runbook_nb.tools import Tool

#: What the file of a skill is called.
SKILL_FILE: Final = "SKILL.md"

#: Folders beside that file whose files belong to the skill.
RESOURCE_FOLDERS: Final = ("scripts", "references", "assets")


class UsesSkills(Protocol):
    """What is asked of a step here."""

    @property
    def uses(self) -> Sequence[str]:
        """The skills it names."""
        ...

    @property
    def required_probes(self) -> Sequence[Probe]:
        """The probes of its own."""
        ...

    @property
    def min_tool_calls(self) -> int | None:
        """Its floor."""
        ...

    @property
    def max_tool_calls(self) -> int | None:
        """Its cap."""
        ...


@dataclass
class Skill:
    """A named body of know-how that steps use, as a SKILL.md file declares it.

    Attributes
    ----------
    name, description : str
        What it is called, and when to use it.
    instructions : str
        The text of the file.
    path : Path or None
        The folder it came from.
    allowed_tools : list of str or None
        The tools it may use; None when it declares none.
    required_probes : list of RequiredProbe
        Evidence that a step using it must leave.
    min_tool_calls, max_tool_calls : int or None
        Effort that it asks for, and allows.
    metadata : dict
        Whatever else its author noted.
    license, compatibility : str or None
        As the file has them.
    tools : list of Tool
        Tools it brings along to a `Toolbox`.

    Examples
    --------
    >>> siem = Skill("siem", "Use for log questions.", allowed_tools=["query_siem"])
    >>> siem.name, siem.allowed_tools, siem.required_probes
    ('siem', ['query_siem'], [])
    """

    name: str
    description: str
    instructions: str = ""
    path: Path | None = None
    allowed_tools: list[str] | None = None
    required_probes: list[Any] = field(default_factory=list)
    min_tool_calls: int | None = None
    max_tool_calls: int | None = None
    metadata: Any = field(default_factory=dict)
    license: str | None = None
    compatibility: str | None = None
    tools: list[Tool] = field(default_factory=list, repr=False)

    @classmethod
    def from_content(
        cls,
        text: str,
        path: str | Path | None = None,
        *,
        strict: bool = False,
        profile: str = "safe",
    ) -> Skill:
        r"""Read a skill from the text of a SKILL.md file.

        Parameters
        ----------
        text : str
            The file: fields between two lines of ``---``, then the instructions.
        path : path-like, optional
            The folder it came from.
        strict : bool, optional
            Whether names, unknown keys and bounds on tools are checked too.
        profile : str, optional
            ``"safe"`` reads what is meant and refuses a field that it cannot read; ``"compat"``
            drops such a field, and takes the letter of the published format.

        Raises
        ------
        LoadError
            It is no skill file, with everything that is wrong with it.

        Examples
        --------
        >>> Skill.from_content("---\nname: siem\ndescription: Logs.\n---\nAsk first.").name
        'siem'
        """
        from runbook_nb.playbooks.skillfile import read_skill

        return read_skill(text, path, strict=strict, profile=profile)

    @classmethod
    def from_file(cls, path: str | Path, *, strict: bool = False, profile: str = "safe") -> Skill:
        """Read a skill from its folder, or from the file named SKILL.md in it."""
        from runbook_nb.playbooks.skillfile import read_skill_file

        return read_skill_file(path, strict=strict, profile=profile)

    @classmethod
    def from_directory(
        cls, path: str | Path, *, strict: bool = False, profile: str = "safe"
    ) -> list[Skill]:
        """Read the skills of the folders in a folder, by name; broken ones only when strict.

        Without ``strict`` a file that cannot be read is left out; with it, it is an error.
        """
        from runbook_nb.playbooks.skillfile import read_skill_folders

        return read_skill_folders(path, strict=strict, profile=profile)

    def list_resources(self, max_files: int = 20) -> list[str]:
        """Name the visible files that lie directly in its folders of resources."""
        folder = self.path
        if folder is not None and folder.name == SKILL_FILE:
            folder = folder.parent
        found = [
            f"{name}/{file.name}"
            for name in RESOURCE_FOLDERS
            if folder is not None and (folder / name).is_dir()
            for file in sorted((folder / name).iterdir())
            if file.is_file() and not file.name.startswith(".")
        ]
        return found[:max_files]


#: Skills by the key steps name them by.
Skills = Mapping[str, Any]


def skills_of(step: UsesSkills, skills: Skills | None) -> list[Any]:
    """Give the skills a step uses, in the order it names them, each once.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> step = SimpleNamespace(uses=["b", "a", "b", "gone"])
    >>> [skill.name for skill in skills_of(step, {"a": Skill("A", "x"), "b": Skill("B", "x")})]
    ['B', 'A']
    """
    known = skills or {}
    return [known[key] for key in dict.fromkeys(step.uses) if known.get(key) is not None]


def unresolved_skills(step: UsesSkills, skills: Skills | None) -> list[str]:
    """Name the skills a step uses that nobody gave, each once.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> unresolved_skills(SimpleNamespace(uses=["a", "gone"]), {"a": Skill("A", "x")})
    ['gone']
    """
    known = skills or {}
    return [key for key in dict.fromkeys(step.uses) if known.get(key) is None]


def effective_probes(step: UsesSkills, skills: Skills | None = None) -> list[Any]:
    """Give the probes of a step: its own, then those of its skills; of one name the first.

    Examples
    --------
    >>> from types import SimpleNamespace as Of
    >>> own, theirs = Of(name="auth", match="a"), Of(name="dns", match="d")
    >>> same = Of(name="auth", match="b")
    >>> step = Of(uses=["k"], required_probes=[own])
    >>> found = effective_probes(step, {"k": Skill("k", "x", required_probes=[same, theirs])})
    >>> [(probe.name, probe.match) for probe in found]
    [('auth', 'a'), ('dns', 'd')]
    """
    found: dict[str, Any] = {}
    for holder in (step, *skills_of(step, skills)):
        for probe in getattr(holder, "required_probes", None) or ():
            found.setdefault(probe.name, probe)
    return list(found.values())


def allowed_tools_for(
    step: UsesSkills, skills: Skills | None = None, *, empty_skill_list: str = "unbound"
) -> set[str] | None:
    """Give the entries of the lists of a step's skills, together; None when nothing is bound.

    Parameters
    ----------
    step : PlaybookStep
        The step.
    skills : mapping of str to Skill, optional
        The skills by the key steps name them by.
    empty_skill_list : str, optional
        What an empty list means: ``"unbound"`` (as if there was none) or ``"deny"`` (no tool).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> step = SimpleNamespace(uses=["a"])
    >>> allowed_tools_for(step, {"a": Skill("a", "x", allowed_tools=["scan"])})
    {'scan'}
    >>> nothing = {"a": Skill("a", "x", allowed_tools=[])}
    >>> allowed_tools_for(step, nothing), allowed_tools_for(step, nothing, empty_skill_list="deny")
    (None, set())
    """
    bound = False
    union: set[str] = set()
    for skill in skills_of(step, skills):
        declared = getattr(skill, "allowed_tools", None)
        if declared or (declared is not None and empty_skill_list == "deny"):
            bound = True
            union.update(declared)
    return union if bound else None


def is_outside(
    entries: Iterable[str] | None,
    tool: str,
    arguments: Any = MISSING,
    *,
    skill_patterns: str = "literal",
) -> bool:
    """Say whether a call is outside the lists of a step's skills.

    Parameters
    ----------
    entries : iterable of str or None
        What `allowed_tools_for` gave.
    tool : str
        The tool of the call.
    arguments : object, optional
        What it is called with; left out, the name alone is judged.
    skill_patterns : str, optional
        ``"literal"`` takes every entry for a name, ``"understood"`` reads ``Bash(git:*)`` as a
        bound on the arguments of the tool ``Bash``.

    Examples
    --------
    >>> is_outside({"Bash(git:*)"}, "Bash", {"command": "git log"})
    True
    >>> is_outside({"Bash(git:*)"}, "Bash", {"command": "git log"}, skill_patterns="understood")
    False
    >>> is_outside(None, "anything")
    False
    """
    if entries is None:
        return False
    if skill_patterns == "literal":
        return tool not in entries
    return not permits(entries, tool, arguments)


def effort_of(
    step: UsesSkills, skills: Skills | None = None, *, inherit: bool = False
) -> tuple[int | None, int | None]:
    """Give the floor and the cap of a step; its own first, then those of its skills.

    Of several skills the highest floor and the lowest cap hold.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> step = SimpleNamespace(uses=["a", "b"], min_tool_calls=None, max_tool_calls=3)
    >>> skills = {"a": Skill("a", "x", min_tool_calls=2), "b": Skill("b", "x", min_tool_calls=4)}
    >>> effort_of(step, skills), effort_of(step, skills, inherit=True)
    ((None, 3), (4, 3))
    """
    floor, cap = step.min_tool_calls, step.max_tool_calls
    if inherit and (floor is None or cap is None):
        used = skills_of(step, skills)
        if floor is None:
            floor = max(_bounds(used, "min_tool_calls"), default=None)
        if cap is None:
            cap = min(_bounds(used, "max_tool_calls"), default=None)
    return floor, cap


def _bounds(skills: Iterable[Any], name: str) -> list[int]:
    found = (getattr(skill, name, None) for skill in skills)
    return [bound for bound in found if bound is not None]
