"""Shipped runbooks on real data, written the way an author would write his own.

Examples layer. Most follow a published procedure, and each module names its source. What they read
beyond the machine's own is in the extra ``[examples]``. `shipped` lists them; installed, each is an
entry point of the group ``runbook_nb.runbooks`` under the same name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import Immutable
from runbook_nb._value import frozen

if TYPE_CHECKING:
    from runbook_nb import Toolbox

#: The group of entry points by which runbooks are found.
GROUP: Final = "runbook_nb.runbooks"


@frozen(kw_only=False)
class Shipped(Immutable):
    """A runbook that comes with the package.

    Attributes
    ----------
    name : str
        What it is asked for by.
    module : str
        Where it stands, and where its code can be read and copied.
    title : str
        What it is about.
    decides : str
        The question it answers.
    source : str
        Where its rules were published.

    Examples
    --------
    >>> book = {book.name: book for book in shipped()}["patches"]
    >>> book.decides
    'By when a vulnerability found on an asset has to be fixed.'
    """

    name: str
    module: str
    title: str
    decides: str
    source: str

    def toolbox(self, **options: Any) -> Toolbox:
        """Make the toolbox with the runbook and its source.

        Parameters
        ----------
        **options
            As the module's own ``toolbox`` takes them.

        Examples
        --------
        >>> [tool.name for tool in shipped()[0].toolbox()]
        ['certificate_bundle', 'root_certificates']
        """
        made: Toolbox = import_module(self.module).toolbox(**options)
        return made


def _shipped(name: str, title: str, decides: str, source: str) -> Shipped:
    module = f"{__name__}.{name.replace('-', '_')}"
    return Shipped(name, module, title, decides, source)


_SHIPPED: Final = (
    _shipped(
        "certificates",
        "Root certificates",
        "Which root certificates of a bundle need attention at a date.",
        "limits of our own",
    ),
    _shipped(
        "patches",
        "Patch deadline",
        "By when a vulnerability found on an asset has to be fixed.",
        "CISA BOD 26-04 (2026-06-10), and BOD 22-01 (2021-11-03) before it",
    ),
    _shipped(
        "disks",
        "Disk space",
        "Which file systems of this machine are full or filling up.",
        "alerts of the Prometheus node exporter mixin",
    ),
    _shipped(
        "lifetimes",
        "Certificate lifetimes",
        "Which certificates run out, and which were issued for too long.",
        "Kubernetes and OpenShift runbooks; CA/Browser Forum ballot SC-081v3",
    ),
    _shipped(
        "incidents",
        "Incident priority",
        "In which order incidents are handled, by a matrix that you declare.",
        "categories of NIST SP 800-61 revision 2 (August 2012)",
    ),
    _shipped(
        "packages",
        "Package support",
        "Which installed Debian packages are still supported, and by whom.",
        "check-support-status of debian-security-support; dates of distro-info-data",
    ),
    _shipped(
        "flights",
        "Late flights",
        "Which flights out of New York in 2013 were late.",
        "on-time convention of the US Department of Transportation (BTS)",
    ),
    _shipped(
        "airport-days",
        "Disrupted days",
        "Which days at the airports of New York in 2013 were disrupted.",
        "limits of our own, over the on-time convention",
    ),
)


def shipped() -> tuple[Shipped, ...]:
    """List the runbooks that come with the package.

    Examples
    --------
    >>> [book.name for book in shipped()][:3]
    ['certificates', 'patches', 'disks']
    """
    return _SHIPPED
