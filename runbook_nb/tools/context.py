"""What a tool's body is told about its call: ids, session, store, inner tools, stop, credential.

Tools layer. A body receives a `ToolContext` by naming a parameter of that type; the parameter is
never part of what a model is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from runbook_nb._frozen import FrozenDict
from runbook_nb._stop import Stop
from runbook_nb._value import frozen
from runbook_nb.artifacts import ArtifactScope, NoArtifacts
from runbook_nb.errors import DefinitionError
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from runbook_nb.tools.dispatch import ToolDispatch


def new_call_id() -> str:
    """Draw a call id from ``settings.ids``.

    Examples
    --------
    >>> from runbook_nb._ids import SeededIds
    >>> with settings(ids=SeededIds("demo")):
    ...     len(new_call_id())
    15
    """
    return f"call_{settings.ids(10)}"


def checked_call_id(given: Any) -> str:
    """Give the id back; refuse what is no text, or blank."""
    if isinstance(given, str) and given.strip():
        return given
    raise DefinitionError(
        f"a call id cannot be {given!r}",
        where="call_id",
        fix="give a text that is not blank, or leave it out to have one drawn",
    )


@frozen(kw_only=False)
class Session:
    """Whose calls these are. Artifacts filed in one session cannot be read in another.

    Attributes
    ----------
    conversation : str
        The conversation, or for a notebook any name of one's own.
    tenant, principal : str or None
        The customer and the person, where a host serves several.

    Examples
    --------
    >>> Session("incident-7", tenant="acme").scope.conversation_id
    'incident-7'
    """

    conversation: str
    tenant: str | None = None
    principal: str | None = None

    def __post_init__(self) -> None:
        for name in ("conversation", "tenant", "principal"):
            value = getattr(self, name)
            optional = name != "conversation"
            if value is None and optional:
                continue
            if not isinstance(value, str) or not value.strip():
                raise DefinitionError(
                    f"a session's {name} cannot be {value!r}",
                    where=f"session.{name}",
                    fix="give a text that is not blank" + (", or leave it out" if optional else ""),
                )

    @property
    def scope(self) -> ArtifactScope:
        """The part of an artifact store that belongs to this session."""
        return ArtifactScope(self.conversation, tenant=self.tenant, principal=self.principal)


#: The session of a toolbox, or of a bare call, that was given none.
LOCAL_SESSION = Session("local")


def _hear_nothing(_: Any) -> None:
    """Take a fact nobody asked for."""


@frozen
class ToolContext:
    """The surroundings of one call.

    Attributes
    ----------
    call_id : str
        Identifies the call; an inner call's is ``<outer>#inner-<n>``.
    session : Session
        Whose call it is.
    artifacts : BoundArtifacts or NoArtifacts
        The store, bound to the session and to this call. Without one every verb refuses and says
        how to attach one.
    tools : ToolDispatch or None
        The door to other tools; None where there is none, as inside an inner call.
    signal : Stop or None
        Set when the caller wants the call to end.
    credential : object
        What the provider issued for the tool's ``needs``.
    wanted : mapping
        For each argument declared in ``wants`` and given: the ticket of the artifact whose data
        stands in the argument's place.
    progress : callable
        Takes anything worth telling while the call runs.
    engine : object
        Where the branches of a procedure's fan-outs run; see `Chart.run`.
    run_sink : callable
        Hears of every `Run` a procedure makes in this call. For procedures, not for authors.

    Examples
    --------
    >>> ctx = ToolContext(call_id="tc-1")
    >>> ctx.has_artifacts, ctx.tools, ctx.session.conversation
    (False, None, 'local')
    """

    call_id: str = field(default_factory=new_call_id)
    session: Session = LOCAL_SESSION
    artifacts: Any = field(default_factory=NoArtifacts)
    tools: ToolDispatch | None = None
    signal: Stop | None = None
    credential: Any = field(default=None, repr=False)
    wanted: Mapping[str, Any] = field(default_factory=FrozenDict)
    progress: Callable[[Any], None] = field(default=_hear_nothing, repr=False)
    engine: Any = field(default=None, repr=False)
    run_sink: Callable[[Any], None] = field(default=_hear_nothing, repr=False)

    def __post_init__(self) -> None:
        checked_call_id(self.call_id)

    @property
    def has_artifacts(self) -> bool:
        """Whether there is a store behind ``artifacts``."""
        return not isinstance(self.artifacts, NoArtifacts)
