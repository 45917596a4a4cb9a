"""Shipped playbooks: published procedures as files, each with the tools of an exercise.

Examples layer. A file says where its procedure comes from. The tools do nothing outside this
process: they answer from a small made-up table, the same each time, so that a playbook can be
tried, refused, stuck and finished anywhere.
"""

from __future__ import annotations

from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._text import did_you_mean
from runbook_nb._value import frozen
from runbook_nb.errors import DefinitionError

if TYPE_CHECKING:
    from runbook_nb import Toolbox
    from runbook_nb.playbooks.model import Playbook


@frozen(kw_only=False)
class ShippedPlaybook(Immutable):
    """A playbook that comes with the package.

    Attributes
    ----------
    name : str
        What it is asked for by: the ``id`` in its file.
    about : str
        What it holds somebody to.
    source : str
        Where its procedure was published.

    Examples
    --------
    >>> book = shipped_playbook("nist-800-61-ir")
    >>> [step.id for step in book.load().steps][:3]
    ['detection', 'analysis', 'notify']
    >>> [tool.name for tool in book.toolbox()][:2]
    ['query_siem', 'enrich_indicator']
    """

    name: str
    about: str
    source: str

    @property
    def path(self) -> Path:
        """Its file, to be read and copied."""
        return Path(str(resources.files(__name__) / f"{self.name}.yaml"))

    def load(self) -> Playbook:
        """Load it from its file, strictly."""
        from runbook_nb.playbooks.loader import load_playbook

        return load_playbook(self.path)

    def toolbox(self, **options: Any) -> Toolbox:
        """Make the tools of its exercise; options as the module's own ``toolbox`` takes them."""
        module = import_module(f"{__name__}.{self.name.replace('-', '_')}")
        made: Toolbox = module.toolbox(**options)
        return made


_SHIPPED: Final = (
    ShippedPlaybook(
        "nist-800-61-ir",
        "Incident response: detect, analyse, contain, recover, learn.",
        "NIST SP 800-61 revision 2, chapter 3",
    ),
    ShippedPlaybook(
        "refund-escalation",
        "A refund: verify, check, have it approved, pay once.",
        "an introductory example of the playbook format, with an approval added",
    ),
)


def shipped_playbooks() -> tuple[ShippedPlaybook, ...]:
    """Give the playbooks that come with the package.

    Examples
    --------
    >>> [book.name for book in shipped_playbooks()]
    ['nist-800-61-ir', 'refund-escalation']
    """
    return _SHIPPED


def shipped_playbook(name: str) -> ShippedPlaybook:
    """Give the shipped playbook of that name.

    Raises
    ------
    DefinitionError
        There is none.

    Examples
    --------
    >>> shipped_playbook("refund-escalation").path.name
    'refund-escalation.yaml'
    """
    books = {book.name: book for book in _SHIPPED}
    if name not in books:
        raise DefinitionError(
            f"there is no shipped playbook {name!r}",
            code="no_such_playbook",
            where=name,
            fix=did_you_mean(name, books) or f"there is {', '.join(books)}",
        )
    return books[name]
