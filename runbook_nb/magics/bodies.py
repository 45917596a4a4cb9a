"""Running the body of a cell as its own code: its errors are the cell's, and its value is given."""

from __future__ import annotations

import ast
from typing import Any

from IPython.core.error import UsageError


class Body:
    """The code of a cell, read but not run.

    Parameters
    ----------
    shell : InteractiveShell
        The session.
    cell : str
        The code, with the magics and marks of IPython that any cell may have. A semicolon at its
        end leaves the value of its last line out.

    Raises
    ------
    SyntaxError
        It cannot be read.
    UsageError
        It awaits something.
    """

    def __init__(self, shell: Any, cell: str) -> None:
        source = shell.transform_cell(cell)
        if shell.should_run_async(cell, transformed_cell=source):
            raise UsageError(
                "the body of %%step cannot await; write `with enforcer.step(…):` in a plain cell"
            )
        name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
        tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
        last = tree.body[-1] if tree.body else None
        self._shell, self._end = shell, None
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            tree.body.pop()
            self._end = shell.compile(ast.Expression(last.value), name, "eval")
        self._code = shell.compile(tree, name, "exec")

    def run(self) -> Any:
        """Run it, and give the value of its last line.

        Raises
        ------
        Exception
            What the code raised.
        """
        __tracebackhide__ = True  # IPython leaves this frame out of what it shows
        self._shell.ex(self._code)
        return None if self._end is None else self._shell.ev(self._end)
