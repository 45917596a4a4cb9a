"""For tests of runbooks, of the notebooks that show them, and of stores that keep them.

Testing layer. Time and ids are inputs everywhere in the package; here they are held still, in
this process (`reproducible`) and in kernels it starts (`environment`). `plugin` is what pytest
loads. Names are looked up on first use: pytest loads the plugin, and so this package, in every run
on a machine that has it, and importing it must cost such a run nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runbook_nb.testing.checks import (
        assert_hidden,
        assert_reproducible,
        assert_verdicts,
        forms_of,
    )
    from runbook_nb.testing.fixed import (
        MOMENT,
        SEED,
        FrozenClock,
        environment,
        reproducible,
        sanitize_file,
    )
    from runbook_nb.testing.stores import StoreClaim, StoreReport, check_store

__all__ = [
    "MOMENT",
    "SEED",
    "FrozenClock",
    "StoreClaim",
    "StoreReport",
    "assert_hidden",
    "assert_reproducible",
    "assert_verdicts",
    "check_store",
    "environment",
    "forms_of",
    "reproducible",
    "sanitize_file",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("assert_") or name == "forms_of":
        home = "checks"
    else:
        home = "stores" if name in ("StoreClaim", "StoreReport", "check_store") else "fixed"
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
