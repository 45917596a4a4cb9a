"""What the bridge asks of anything that runs step by step: a name, a structure, a run.

Record layer. A chart satisfies this, and so may any other kind of procedure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard

from runbook_nb.record.structure import Structure

if TYPE_CHECKING:
    from runbook_nb.record.run import Run


class Procedure(Protocol):
    """Something that runs step by step and leaves a record.

    It may also say what kind of answer it gives (``result_kind``) and how the rows of that are
    read (``verdicts``); a runbook that says so itself is heard first.
    """

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def structure(self) -> Structure:
        """What could happen."""
        ...

    @property
    def input_schema(self) -> Any:
        """What its input must look like, or None."""
        ...

    def run(
        self,
        args: Mapping[str, Any] | None = None,
        *,
        limits: Any = None,
        redact: Any = None,
        signal: Any = None,
    ) -> Awaitable[Run]:
        """Run it once."""
        ...


_PARTS: Final = ("name", "structure", "input_schema", "run")


def is_procedure(value: object) -> TypeGuard[Procedure]:
    """Say whether something has all that a procedure has.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> is_procedure(flow_chart("c", print, id="a").build()), is_procedure(print)
    (True, False)
    """
    return all(hasattr(value, part) for part in _PARTS)


def procedure_of(value: Any) -> Any:
    """Give the procedure that something is, or makes of itself by ``procedure()``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> procedure_of(SimpleNamespace(procedure=lambda: "made")), procedure_of(3)
    ('made', 3)
    """
    make = getattr(value, "procedure", None)
    return make() if callable(make) and not is_procedure(value) else value
