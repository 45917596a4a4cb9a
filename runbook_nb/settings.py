"""Options of the process and of the current context, from code or from ``RUNBOOK_NB_*``.

Base layer. ``settings.theme = "dark"`` changes the process default; ``with
settings(theme="dark"):`` changes it for the block (and for the tasks and threads started inside
it). The clock and the source of ids are settings too, so that a document or a test can fix them.
A run captures what it needs once, when it starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from runbook_nb._ids import IdSource, SeededIds, random_id
from runbook_nb._text import did_you_mean
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError, UnknownSetting


def _now() -> datetime:
    return datetime.now(UTC)


@frozen
class Options:
    """One consistent set of option values.

    Attributes
    ----------
    static : bool
        No live updates; each display is final. Set by test runs.
    progress : {"auto", "off", "cell", "terminal"}
        Where a run that takes its time shows how far it has come; ``auto`` takes the cell in a
        notebook, the terminal where errors are written to one, and nothing anywhere else.
    theme : {"auto", "light", "dark"}
        Which palette static exports use.
    layout : {"auto", "pure", "dot", "pygraphviz", "none"}
        Which engine lays graphs out; ``auto`` takes the first that is there.
    max_text_rows, max_table_rows : int
        Rows a text view and a rich view show.
    max_cell : int
        Characters of a cell before it is cut.
    embed : bool
        Whether rich output carries the machine-readable form.
    mime_json : bool
        Whether rich output also carries a JSON form.
    show_refs : bool
        Whether displays name artifact references.
    clock : callable
        Gives the current aware ``datetime``; ``RUNBOOK_NB_CLOCK`` names one at which it stands.
    timer : callable
        Gives seconds that only ever grow; limits are measured with it.
    ids : callable
        Gives ``n`` characters of an identifier; ``RUNBOOK_NB_IDS`` is a seed for them.
    """

    static: bool = False
    progress: str = "auto"
    theme: str = "auto"
    layout: str = "auto"
    max_text_rows: int = 10
    max_table_rows: int = 50
    max_cell: int = 200
    embed: bool = True
    mime_json: bool = False
    show_refs: bool = False
    clock: Callable[[], datetime] = _now
    timer: Callable[[], float] = time.monotonic
    ids: IdSource = random_id


_NAMES = tuple(f.name for f in fields(Options))
_CHOICES = {
    "progress": ("auto", "off", "cell", "terminal"),
    "theme": ("auto", "light", "dark"),
    "layout": ("auto", "pure", "dot", "pygraphviz", "none"),
}
_FROM_ENV: dict[str, Callable[[str], Any]] = {
    "static": lambda text: _flag("RUNBOOK_NB_STATIC", text),
    "embed": lambda text: _flag("RUNBOOK_NB_EMBED", text),
    "mime_json": lambda text: _flag("RUNBOOK_NB_MIME_JSON", text),
    "show_refs": lambda text: _flag("RUNBOOK_NB_SHOW_REFS", text),
    "progress": str,
    "theme": str,
    "layout": str,
    "max_text_rows": int,
    "max_table_rows": int,
    "max_cell": int,
    "clock": lambda text: _standing_clock(text) if text.strip() else _now,
    "ids": lambda text: SeededIds(text) if text.strip() else random_id,
}


def _standing_clock(text: str) -> Callable[[], datetime]:
    """Give a clock that stands at one moment, as documents and tests need it."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise DefinitionError(
            f"RUNBOOK_NB_CLOCK={text!r} is not a time with its zone",
            where="RUNBOOK_NB_CLOCK",
            fix="write it as 2026-11-29T00:00:00Z",
        )
    return lambda: moment


def _flag(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "on", "yes"):
        return True
    if word in ("", "0", "false", "off", "no"):
        return False
    raise DefinitionError(f"{name}={text!r} is neither on nor off", fix="use 1 or 0")


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    for name, value in changes.items():
        if name not in _NAMES:
            raise UnknownSetting(
                f"there is no setting {name!r}",
                where=name,
                fix=did_you_mean(name, _NAMES) or f"the settings are {', '.join(_NAMES)}",
            )
        if name in _CHOICES and value not in _CHOICES[name]:
            raise DefinitionError(
                f"setting {name} cannot be {value!r}",
                where=name,
                fix=f"use one of {_CHOICES[name]}",
            )
        if name.startswith("max_") and (type(value) is not int or value < 1):
            raise DefinitionError(
                f"setting {name} cannot be {value!r}", where=name, fix="use a whole number from 1"
            )
        if name in ("clock", "timer", "ids") and not callable(value):
            raise DefinitionError(f"setting {name} must be callable, not {value!r}", where=name)
    return changes


def _from_environment() -> Options:
    changes: dict[str, Any] = {}
    for name, read in _FROM_ENV.items():
        variable = f"RUNBOOK_NB_{name.upper()}"
        if variable in os.environ:
            text = os.environ[variable]
            try:
                changes[name] = read(text)
            except DefinitionError:
                raise
            except ValueError:
                raise DefinitionError(
                    f"{variable}={text!r} is not a whole number", where=variable
                ) from None
    return replace(Options(), **_checked(changes))


class Settings:
    """The options in force: process defaults under the context's own overrides.

    Examples
    --------
    >>> with settings(max_text_rows=3):
    ...     settings.max_text_rows
    3
    >>> settings.max_text_rows
    10
    """

    __slots__ = ("_base", "_local")
    _base: Options
    _local: ContextVar[dict[str, Any] | None]

    def __init__(self) -> None:
        object.__setattr__(self, "_base", _from_environment())
        object.__setattr__(self, "_local", ContextVar("runbook_nb_settings", default=None))

    @property
    def current(self) -> Options:
        """The options in force here and now, as one frozen value."""
        local = self._local.get()
        return replace(self._base, **local) if local else self._base

    def __getattr__(self, name: str) -> Any:
        # Reached only by a name that no option has: each option is a property, made below.
        if not name.startswith("_"):
            _checked({name: None})
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, "_base", replace(self._base, **_checked({name: value})))

    def __call__(self, **changes: Any) -> AbstractContextManager[Settings]:
        """Override options for a ``with`` block.

        Raises
        ------
        DefinitionError
            An unknown name or a value the option cannot take.
        """
        _checked(changes)
        return self._overriding(changes)

    @contextmanager
    def _overriding(self, changes: dict[str, Any]) -> Iterator[Settings]:
        token = self._local.set({**(self._local.get() or {}), **changes})
        try:
            yield self
        finally:
            self._local.reset(token)

    def __reduce__(self) -> str:
        # A function that looks at them, sent to another process, looks at those there.
        return "settings"

    def __dir__(self) -> list[str]:
        return [*_NAMES, "current"]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={getattr(self, name)!r}"
            for name in _NAMES
            if name not in ("clock", "timer", "ids")
        )
        return f"<settings {shown}>"


def _reading(name: str) -> Callable[[Settings], Any]:
    def read(given: Settings) -> Any:
        local = given._local.get()
        return local[name] if local and name in local else getattr(given._base, name)

    return read


for _name in _NAMES:
    # Views ask for options at every cell; failing to find an attribute first costs more than all.
    setattr(Settings, _name, property(_reading(_name)))

settings = Settings()
