"""Executing notebook documents and holding their outputs to what they showed before.

Testing layer: it needs both the fixed environment of this layer and the canonical files of
`share`. A document is a test of itself; here its outputs are made, and changed only when a change
is meant. ``pytest --nbval`` compares them without writing anything.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._files import write_whole
from runbook_nb._text import clip, counted, visible
from runbook_nb._value import frozen
from runbook_nb.errors import LoadError, RunbookError
from runbook_nb.share.document import canonical, written
from runbook_nb.testing.fixed import environment, sanitize_file

if TYPE_CHECKING:
    from nbformat import NotebookNode

#: Seconds one cell may take.
CELL_SECONDS: Final = 60

#: Lines of one difference that are told.
MAX_LINES: Final = 12

#: The tag by which nbval leaves out what a cell shows: it is a matter of the machine.
OWN_OUTPUT: Final = "nbval-ignore-output"


class CellFailed(RunbookError):
    """A cell of a document raised, or took too long."""

    code = "cell_failed"


@frozen
class Refreshed:
    """What became of a document that was executed.

    Attributes
    ----------
    path : Path
        The document.
    changed : bool
        Whether its bytes are others than before.
    differences : tuple of str
        Outputs of unchanged cells that say something else than before.
    saved : bool
        Whether the file now holds what was computed.
    """

    path: Path
    changed: bool
    differences: tuple[str, ...]
    saved: bool


def refresh(path: str | os.PathLike[str], *, accept: bool = False, save: bool = True) -> Refreshed:
    """Execute a document and write it in canonical form, with its outputs.

    The output of a cell whose source is new is taken as it comes. That of a cell that stood there
    before must say what it said; otherwise nothing is written. One that is tagged
    ``nbval-ignore-output`` may say something else on each machine: it is run and may not fail, and
    what was stored stays.

    Parameters
    ----------
    path : path
        A notebook file.
    accept : bool
        Whether changed outputs are meant.
    save : bool
        Whether to write the file at all.

    Raises
    ------
    LoadError
        The file is no notebook, or a package that executes it is missing.
    CellFailed
        A cell raised; nothing was written.
    """
    path = Path(path)
    before = read_document(path)
    after = canonical(execute(before, path.parent))
    if not accept:
        keep_own(before, after)
    text = written(after)
    changed = text.encode("utf-8") != path.read_bytes()
    found = tuple(differences(before, after))
    saved = save and changed and (accept or not found)
    if saved:
        write_whole(path, text)
    return Refreshed(path=path, changed=changed, differences=found, saved=saved or not changed)


def read_document(path: Path) -> NotebookNode:
    """Read a notebook file as nbformat 4.

    Raises
    ------
    LoadError
        It is none.
    """
    import nbformat

    try:
        document: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except Exception as error:  # nbformat raises whatever its parts raise
        raise LoadError(
            f"{path.name} cannot be read as a notebook: {_first_line(error)}", where=str(path)
        ) from error
    return document


def execute(
    document: NotebookNode, folder: str | os.PathLike[str], *, seconds: float = CELL_SECONDS
) -> NotebookNode:
    """Run every cell of a notebook in a fresh kernel of this very Python.

    The kernel's clock, ids and layout stand still (`environment`), it knows nothing of the user's
    IPython profile, and which kernels are registered on the machine does not matter.

    Parameters
    ----------
    document : NotebookNode
        It stays as it is.
    folder : path
        Where the kernel works.
    seconds : float
        How long one cell may take.

    Returns
    -------
    NotebookNode
        A copy with outputs.

    Raises
    ------
    LoadError
        nbclient or ipykernel is missing.
    CellFailed
        A cell raised or took too long.
    """
    from copy import deepcopy

    client_class, failure, timeout = _client()
    executed = deepcopy(document)
    for cell in executed.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = client_class(
        executed,
        timeout=seconds,
        kernel_name="python3",
        kernel_manager_class=_kernels(),
        resources={"metadata": {"path": str(folder)}},
    )
    with TemporaryDirectory() as profile:
        fixed = {"IPYTHONDIR": profile, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        try:
            client.execute(env={**os.environ, **environment(), **fixed})
        except (failure, timeout) as error:
            raise _cell_failed(executed, error) from None
    return executed


def _client() -> tuple[Any, Any, Any]:
    try:
        import ipykernel  # noqa: F401 - the kernel is started by its name
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError
    except ModuleNotFoundError as error:
        raise LoadError(
            f"executing notebooks needs the package {error.name!r}, which is not installed",
            code="missing_package",
            where=error.name,
            fix="run: pip install nbclient ipykernel",
        ) from error
    return NotebookClient, CellExecutionError, CellTimeoutError


def _kernels() -> Any:
    """Make the class that starts this Python as the kernel, whatever is registered here."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            # It would warn at each start that nobody on this machine should listen in.
            argv.append("--log-level=ERROR")
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    class Kernels(AsyncKernelManager):
        def _kernel_spec_manager_default(self) -> KernelSpecManager:
            return ThisPython()

    return Kernels


def _cell_failed(document: NotebookNode, error: Any) -> CellFailed:
    for number, cell in enumerate(document.cells, 1):
        for output in cell.get("outputs", ()):
            if output.output_type == "error" and "raises-exception" not in cell.metadata.get(
                "tags", ()
            ):
                words = f"{output.ename}: {output.evalue}"
                return CellFailed(
                    f"cell {number} ({_first(cell.source)}) raised {clip(visible(words), 300)}",
                    where=f"cell {number}",
                )
    return CellFailed(_first_line(error))


# -- comparing -----------------------------------------------------------------------------


def differences(before: NotebookNode, after: NotebookNode) -> Iterator[str]:
    """Say which outputs differ, pictures apart, of cells that nobody edited.

    Parameters
    ----------
    before : NotebookNode
        As it was read. A cell whose id does not follow from its source was edited since its
        output was last written here; what it shows is new and not compared.
    after : NotebookNode
        In canonical form.
    """
    known = _known(before)
    for number, cell in enumerate(after["cells"], 1):
        stood = known.get(cell["id"])
        if stood is None or _is_own(cell):
            continue
        one, other = _forms(stood["outputs"]), _forms(cell["outputs"])
        place = f"cell {number} ({_first(cell['source'])})"
        for form in sorted({*one, *other}):
            if one.get(form) != other.get(form):
                yield f"{place}, {form}:\n{_difference(one.get(form), other.get(form))}"


def keep_own(before: NotebookNode, after: NotebookNode) -> None:
    """Put back what cells showed that show each machine's own, of those nobody edited.

    Parameters
    ----------
    before : NotebookNode
        As it was read.
    after : NotebookNode
        In canonical form; it is changed.
    """
    known = _known(before)
    for cell in after["cells"]:
        if _is_own(cell) and cell["id"] in known:
            cell["outputs"] = known[cell["id"]]["outputs"]


def _known(before: NotebookNode) -> dict[str, NotebookNode]:
    """Find the cells that were run as they stand, by what they are named."""
    pairs = zip(before.cells, canonical(before).cells, strict=True)
    return {cell.id: cell for old, cell in pairs if old.get("id") == cell.id and _was_run(cell)}


def _is_own(cell: Mapping[str, Any]) -> bool:
    return OWN_OUTPUT in cell["metadata"].get("tags", ())


def _was_run(cell: Mapping[str, Any]) -> bool:
    return cell["cell_type"] == "code" and cell["execution_count"] is not None


def _forms(outputs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Gather outputs by form, with what `sanitize_file` names taken out."""
    forms: dict[str, list[str]] = {}
    for output in outputs:
        if "data" in output:
            for form, shown in output["data"].items():
                forms.setdefault(form, []).append(shown if isinstance(shown, str) else repr(shown))
        elif "text" in output:
            forms.setdefault(output["name"], []).append(output["text"])
        else:
            forms.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}")
    return {form: sanitized("\n".join(shown)) for form, shown in forms.items()}


def sanitized(text: str) -> str:
    """Take out of an output what may differ between machines that agree.

    Examples
    --------
    >>> sanitized("3 rows")
    '3 rows'
    """
    for pattern, instead in patterns():
        text = pattern.sub(instead, text)
    return text


def patterns() -> list[tuple[re.Pattern[str], str]]:
    """Read the patterns of `sanitize_file`, as nbval does."""
    text = sanitize_file().read_text(encoding="utf-8")
    pairs = re.findall(r"^regex: (.*)$\n^replace: (.*)$", text, flags=re.MULTILINE)
    return [(re.compile(pattern), instead) for pattern, instead in pairs]


def _difference(before: str | None, after: str | None) -> str:
    from difflib import unified_diff

    if before is None or after is None:
        return f"  {'is new' if before is None else 'is gone'}"
    old, new = before.splitlines(), after.splitlines()
    lines = [
        line
        for line in unified_diff(old, new, lineterm="", n=0)
        if line[:2] not in ("--", "++", "@@")
    ]
    told = [f"  {_around(line, lines)}" for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        told.append(f"  … {MAX_LINES} of {counted(len(lines), 'line')} shown")
    return "\n".join(told)


def _around(line: str, lines: Sequence[str]) -> str:
    """Cut a long line to where it differs from its counterpart."""
    if len(line) <= 100:
        return visible(line)
    others = [other for other in lines if other[0] != line[0]]
    start = max(max((_alike(line, other) for other in others), default=0) - 30, 0)
    return visible(f"{line[0]}{'…' if start else ''}{clip(line[1 + start :], 100)}")


def _alike(line: str, other: str) -> int:
    pairs = enumerate(zip(line[1:], other[1:], strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(line), len(other)) - 1)


def _first(source: str) -> str:
    return clip(visible((source.strip().splitlines() or [""])[0]), 60)


def _first_line(error: BaseException) -> str:
    return clip(visible((str(error).strip().splitlines() or [type(error).__name__])[0]), 300)
