"""The words of ``checks`` and ``validation`` in a playbook: read once, with all that is wrong.

A check is ``{name, tool?, source?, path?, op, value}``; a validation is made of ``all``, ``any``,
``not``, ``min_success`` and ``calls``. Operators and limits are those of rules, under the names
that files of this kind use (``regex``, ``le``, ``ge``) or under their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from runbook_nb._frozen import FrozenDict
from runbook_nb._text import at, did_you_mean, listed
from runbook_nb.errors import PlaybookDefinitionError, Problem
from runbook_nb.playbooks.checks import CALL_FIELDS, SOURCES, Check, StepChecks, Validation
from runbook_nb.playbooks.keys import is_extension
from runbook_nb.playbooks.paths import read_path
from runbook_nb.rules.checks import Report, check_keys, check_text, check_threshold
from runbook_nb.rules.kinds import kind_words
from runbook_nb.rules.operators import ALIASES, ELSEWHERE, OPERATORS, PRESENCE

#: Names of operators here -> their names among rules.
SPELT: Final = {**ALIASES, "le": "lte", "ge": "gte", "regex": "matches"}

#: Most checks one step may have, and how deep a validation may nest.
MAX_CHECKS: Final = 200
MAX_DEPTH: Final = 10

_CHECK_KEYS: Final = ("name", "tool", "source", "path", "op", "value")
_VALIDATION_KEYS: Final = ("all", "any", "not", "min_success", "calls")
_SHAPE: Final = 'write {name: ..., path: "a.b", op: eq, value: ...}'


class HasChecks(Protocol):
    """What is asked of a step here."""

    @property
    def checks(self) -> list[dict[str, Any]]: ...  # noqa: D102
    @property
    def validation(self) -> dict[str, Any]: ...  # noqa: D102


def read_step(step: HasChecks, where: str = "", report: Report | None = None) -> StepChecks:
    """Read the checks and the validation of a step.

    Parameters
    ----------
    step : PlaybookStep
        The step.
    where : str, optional
        Its place, for messages: ``steps[2]``.
    report : Report, optional
        Collects what is wrong; left out, it is raised.

    Raises
    ------
    PlaybookDefinitionError
        Something in them cannot be read (``bad_checks``).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> auth = {"name": "auth", "path": "index", "op": "eq", "value": "auth"}
    >>> read_step(SimpleNamespace(checks=[auth], validation={})).checks[0].text
    'arguments.index = "auth"'
    """
    found = Report() if report is None else report
    reader = _Reader(found, where)
    checks = reader.checks(step.checks, at(where, "checks"))
    validation = None
    if step.validation:
        validation = reader.validation(step.validation, at(where, "validation"), 0)
    if report is None:
        _refuse(found.problems)
    return StepChecks(checks=checks, validation=validation)


def read_all(steps: Iterable[HasChecks]) -> tuple[StepChecks, ...]:
    """Read the checks and validations of all steps, and tell everything wrong with them at once.

    Raises
    ------
    PlaybookDefinitionError
        Something in them cannot be read (``bad_checks``).
    """
    report = Report()
    found = tuple([read_step(step, f"steps[{n}]", report) for n, step in enumerate(steps)])
    _refuse(report.problems)
    return found


def problems_in(step: HasChecks, where: str = "") -> list[Problem]:
    """Give everything wrong with the checks and the validation of a step."""
    report = Report()
    read_step(step, where, report)
    return report.problems


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise PlaybookDefinitionError(
            "checks cannot be read", code="bad_checks", where="checks", problems=problems
        )


class _Reader:
    """Reads the words of one step; every check gets a key of its own."""

    def __init__(self, report: Report, step: str) -> None:
        self._report, self._step = report, step
        self._left = MAX_CHECKS

    def checks(self, given: Any, where: str) -> tuple[Check, ...]:
        if not isinstance(given, list | tuple):
            self._report.add(f"is {kind_words(given)}, not a list", where, _SHAPE)
            return ()
        found: dict[str, Check] = {}
        for n, entry in enumerate(given):
            check = self._check(entry, f"{where}[{n}]", named=True)
            if check is not None and check.name in found:
                self._report.add(
                    "is the name of an earlier check", at(f"{where}[{n}]", "name"), "rename one"
                )
            elif check is not None:
                found[check.name] = check
        return tuple(found.values())

    def validation(self, given: Any, where: str, depth: int) -> Validation | None:
        if not isinstance(given, Mapping):
            self._report.add(
                f"is {kind_words(given)}, not a mapping",
                where,
                f"use {listed(_VALIDATION_KEYS, 'or')}",
            )
            return None
        if depth > MAX_DEPTH:
            self._report.add(f"nests deeper than {MAX_DEPTH} levels", where)
            return None
        told = check_keys(_without_extensions(given), _VALIDATION_KEYS, where, self._report)
        if not given:
            self._report.add("is empty", where, f"use {listed(_VALIDATION_KEYS, 'or')}")
        none_of = None
        if "not" in told:
            none_of = self._part(told["not"], at(where, "not"), depth)
        return Validation(
            all_of=self._parts(told, "all", where, depth),
            any_of=self._parts(told, "any", where, depth),
            none_of=none_of,
            min_success=self._count(told.get("min_success", 0), at(where, "min_success"), least=0),
            calls=self._calls(told.get("calls", {}), at(where, "calls")),
        )

    def _parts(
        self, told: Mapping[str, Any], key: str, where: str, depth: int
    ) -> tuple[Check | Validation, ...]:
        if key not in told:
            return ()
        given, here = told[key], at(where, key)
        if not isinstance(given, list | tuple):
            self._report.add(f"is {kind_words(given)}, not a list", here, f"write [{{...}}]: {key}")
            return ()
        if not given:
            self._report.add("is empty", here, "leave it out, or say what it is to hold")
        parts = [self._part(entry, f"{here}[{n}]", depth) for n, entry in enumerate(given)]
        return tuple(part for part in parts if part is not None)

    def _part(self, given: Any, where: str, depth: int) -> Check | Validation | None:
        inner = isinstance(given, Mapping) and not set(given).isdisjoint(_VALIDATION_KEYS)
        if inner:
            return self.validation(given, where, depth + 1)
        return self._check(given, where, named=False)

    def _check(self, given: Any, where: str, *, named: bool) -> Check | None:
        report = self._report
        before = len(report.problems)
        self._left -= 1
        if self._left == -1:
            report.add(f"is one of more than {MAX_CHECKS} checks of a step", where)
        if self._left < 0:
            return None
        if not isinstance(given, Mapping):
            report.add(f"is {kind_words(given)}, not a check", where, _SHAPE)
            return None
        told = check_keys(_without_extensions(given), _CHECK_KEYS, where, report)
        name = check_text(told.get("name"), at(where, "name"), report, optional=not named)
        tool = check_text(told.get("tool"), at(where, "tool"), report, optional=True)
        source = self._source(told.get("source", "arguments"), at(where, "source"))
        path = told.get("path", "")
        steps = self._path(path, source, at(where, "path"))
        op = self._op(told.get("op"), at(where, "op"))
        value = told.get("value", True if op in PRESENCE else None)
        if op is not None:
            if "value" not in told and op not in PRESENCE:
                report.add("is missing", at(where, "value"), f"say what {told['op']} compares with")
            else:
                value = check_threshold(op, value, at(where, "value"), report)
        if op is None or len(report.problems) > before:
            return None
        key = where.removeprefix(self._step).removeprefix(".")
        return Check(
            name=key if name is None else name,
            key=name if named else key,
            tool=tool,
            source=source,
            path=path,
            steps=steps,
            op=op,
            value=value,
        )

    def _source(self, given: Any, where: str) -> Any:
        if given not in SOURCES:
            near = did_you_mean(given, SOURCES) if isinstance(given, str) else None
            self._report.add("is not a source", where, near or f"use {listed(SOURCES, 'or')}")
        return given

    def _path(self, given: Any, source: str, where: str) -> tuple[str, ...]:
        if not isinstance(given, str):
            self._report.add(f"is {kind_words(given)}, not a path", where, 'write "a.b[0]"')
            return ()
        try:
            steps = read_path(given)
        except ValueError as error:
            self._report.add(str(error), where, 'write "a.b[0]", or a["any name"]')
            return ()
        if source == "call" and steps and steps[0] not in CALL_FIELDS:
            near = did_you_mean(steps[0], CALL_FIELDS)
            fix = near or f"a call has {listed(CALL_FIELDS)}"
            self._report.add(f"begins with {steps[0]!r}, which no call has", where, fix)
        return steps

    def _op(self, given: Any, where: str) -> str | None:
        op = SPELT.get(given, given) if isinstance(given, str) else given
        if isinstance(op, str) and op in OPERATORS:
            return op
        known = (*OPERATORS, *SPELT)
        near = None
        if isinstance(given, str):
            meant = ELSEWHERE.get(given.lower())
            near = f"did you mean {meant!r}?" if meant else did_you_mean(given, known)
        said = "is missing" if given is None else "is not an operator"
        self._report.add(said, where, near or f"use one of {listed(known, 'or')}")
        return None

    def _count(self, given: Any, where: str, *, least: int) -> int:
        if isinstance(given, int) and not isinstance(given, bool) and given >= least:
            return given
        self._report.add("is not a number of calls", where, f"write {least} or more")
        return 0

    def _calls(self, given: Any, where: str) -> FrozenDict:
        if not isinstance(given, Mapping):
            self._report.add(f"is {kind_words(given)}, not a mapping", where, "write {tool: 1}")
            return FrozenDict()
        found = {}
        for tool, least in given.items():
            if check_text(tool, at(where, tool), self._report) is not None:
                found[tool] = self._count(least, at(where, tool), least=1)
        return FrozenDict(found)


def _without_extensions(given: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in given.items() if not is_extension(key)}
