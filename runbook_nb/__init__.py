"""Triage runbooks whose answers can be checked: declare a procedure, run it, show the evidence.

The public names are looked up when first used, so that importing the package costs little; see
``__all__``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from runbook_nb._version import __version__

if TYPE_CHECKING:
    from runbook_nb import errors as errors
    from runbook_nb.settings import settings as settings

#: public name -> module it lives in. ``errors`` is the module itself.
_HOMES: dict[str, str] = {
    "settings": "settings",
}

__all__ = ["__version__", "errors", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name == "errors":
        value = import_module(f"{__name__}.errors")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps a public name from being hidden by the submodule of the same name.

    Importing ``runbook_nb.settings`` makes the import system bind that module on the package,
    where ``rb.settings`` must stay the settings object whoever imported what first.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
