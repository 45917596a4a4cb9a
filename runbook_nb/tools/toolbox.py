"""The toolbox: a checked catalogue of tools, and the one way to call them.

Tools layer. When it is built, names, ingredients and wanted artifacts are judged over everything
it can see, so that a renamed tool fails then and not in the middle of a night. A call passes its
gates in one fixed order: permission, middleware, arguments, consent, artifact references,
credential, body; the result goes back through the middleware in reverse.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from runbook_nb._arguments import misspelt_names
from runbook_nb._display import Renderable
from runbook_nb._frozen import FrozenDict
from runbook_nb._stop import Stop
from runbook_nb._sync import asks_for_loop, run_sync
from runbook_nb._text import MISSING, counted, did_you_mean, listed
from runbook_nb._view import Card, Column, Data, Section, Table
from runbook_nb.artifacts import ArtifactStore, BoundArtifacts, InMemoryArtifacts, NoArtifacts
from runbook_nb.coverage import declaring_part, read_coverage_result
from runbook_nb.errors import DefinitionError, ToolRefused
from runbook_nb.settings import settings
from runbook_nb.tools.catalogue import (
    CarriesTools,
    Provider,
    check_catalogue,
    checked_tool,
    delivered,
    read_catalogue,
)
from runbook_nb.tools.context import (
    LOCAL_SESSION,
    Session,
    ToolContext,
    checked_call_id,
    new_call_id,
)
from runbook_nb.tools.dispatch import InnerDispatch
from runbook_nb.tools.gates import (
    Credentials,
    Judge,
    ask_consent,
    ask_permit,
    check_arguments,
    issue_credential,
    settled,
    unknown_tool,
)
from runbook_nb.tools.middleware import Middleware, ToolCall, inner_of, pass_through
from runbook_nb.tools.tool import Tool, as_arguments

#: Declarations a toolbox keeps; older ones leave, and are counted.
MAX_DECLARED: Final = 1000


#: What a call has where the toolbox has no store.
_NO_STORE: Final = NoArtifacts()

#: Hears facts about calls as mappings with a ``type``.
Hears = Callable[[Mapping[str, Any]], object]


class Toolbox(Renderable):
    """Tools under one roof: checked together when built, called through one door.

    Parameters
    ----------
    tools : iterable of Tool
        No two of one name.
    skills : iterable of CarriesTools, optional
        Whose tools belong to the catalogue too.
    providers : iterable of callable, optional
        Each gives tools when asked; they can be called from outside, not by other tools.
    artifacts : ArtifactStore, optional
        One in memory by default; None for no store.
    credentials : callable, optional
        Answers a tool's ``needs`` with ``{"status": "issued", "credential": …}``.
    consent : callable, optional
        ``(tool, args)``: asks a person when a tool says so; only True is a yes.
    session : Session, optional
        Whose calls these are.
    observer : callable, optional
        Hears facts: ``tools.absent``, ``tools.coverage_declared``, ``tools.progress``,
        ``tools.arguments_unchecked``, ``artifacts.…``. What it raises never reaches a call.
    permit : callable, optional
        ``(tool, args)``: may the call be made at all; only True is a yes.
    middleware : iterable of callable, optional
        ``(call, next)``, the first outermost. A method ``inner`` hears the calls within calls.
    engine : str, Executor or Client, optional
        Where the branches of every procedure's fan-outs run; see `Chart.run`.

    Raises
    ------
    DefinitionError
        Everything that is wrong with the catalogue.

    Examples
    --------
    >>> from runbook_nb.tools.tool import define_tool
    >>> ages = define_tool(name="ages", execute=lambda args: [2, 30])
    >>> box = Toolbox([ages])
    >>> box.call_sync("ages")
    [2, 30]
    >>> triage = define_tool(name="triage", execute=lambda args: 0, composed_of=["age"])
    >>> Toolbox([ages, triage])
    Traceback (most recent call last):
        ...
    runbook_nb.errors.DefinitionError: ... composedOf ingredient 'age' is not in the toolbox; \
did you mean 'ages'?
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        skills: Iterable[CarriesTools] = (),
        providers: Iterable[Provider] = (),
        artifacts: Any = MISSING,
        credentials: Credentials | None = None,
        consent: Judge | None = None,
        session: Session = LOCAL_SESSION,
        observer: Hears | None = None,
        permit: Judge | None = None,
        middleware: Iterable[Middleware] = (),
        engine: Any = None,
    ) -> None:
        if not isinstance(session, Session):
            raise DefinitionError(
                f"session cannot be {session!r}", where="session", fix="give rb.Session(name)"
            )
        if engine is not None:
            from runbook_nb.chart.engines import as_engine

            as_engine(engine)  # refused here, not at the first call
        self._engine = engine
        self._session = session
        self._store = _checked_store(artifacts)
        self._providers = _callables("providers", providers)
        self._middleware = _callables("middleware", middleware)
        for name, given in (
            ("credentials", credentials),
            ("consent", consent),
            ("observer", observer),
            ("permit", permit),
        ):
            if given is not None and not callable(given):
                raise DefinitionError(f"{name} must be callable, not {given!r}", where=name)
        if observer is not None and _is_async(observer):
            raise DefinitionError(
                "the observer is async, and is told things where nothing can be awaited",
                where="observer",
                fix="give a plain function; let it hand on what takes long",
            )
        self._credentials = credentials
        self._consent = consent
        self._observer = observer
        self._permit = permit
        self._observer_failures = 0
        self._declared: deque[Callable[[], Mapping[str, Any]]] = deque(maxlen=MAX_DECLARED)
        self._declared_count = 0
        self._last_run: Any = None
        self._warned: set[str] = set()
        catalogue = read_catalogue(tools, skills)
        self._check(catalogue)
        self._catalogue = catalogue

    # -- the catalogue ---------------------------------------------------------------------

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, those of skills included and those of providers not."""
        return tuple(self._catalogue.values())

    @property
    def session(self) -> Session:
        """Whose calls these are."""
        return self._session

    @property
    def artifacts(self) -> BoundArtifacts:
        """The store, bound to the session; without one, every verb says how to get one."""
        return self._bound(None)

    @property
    def last_run(self) -> Any:
        """The last `Run` of a top-level procedure, finished or not; None before the first."""
        return self._last_run

    @property
    def declared(self) -> tuple[Mapping[str, Any], ...]:
        """What answers declared about their ground, the newest thousand.

        Each has ``tool``, ``call_id``, ``status`` and ``declared``; `declared_count` counts all.
        """
        return tuple([entry() for entry in self._declared])

    @property
    def declared_count(self) -> int:
        """How many answers declared something, those no longer kept included."""
        return self._declared_count

    def __getitem__(self, name: str) -> Tool:
        if name not in self._catalogue:
            raise unknown_tool(name, list(self._catalogue), did_you_mean(name, self._catalogue))
        return self._catalogue[name]

    def __contains__(self, name: object) -> bool:
        return name in self._catalogue

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self._catalogue)

    def add(self, tool: Tool) -> Toolbox:
        """Add a tool, in the place of one of the same name, and check ingredients again.

        Running a defining cell again is therefore no error. When the check fails, nothing has
        changed.

        Parameters
        ----------
        tool : Tool
            The tool.

        Returns
        -------
        Toolbox
            This toolbox.
        """
        catalogue = {**self._catalogue, checked_tool(tool, "add").name: tool}
        self._check(catalogue)
        self._catalogue = catalogue
        return self

    async def available(self) -> list[Tool]:
        """Give every tool that can be called now, those of providers included.

        Raises
        ------
        ToolRefused
            ``provider_failed``: a provider raised, or delivered what is not a tool.
        """
        found = dict(self._catalogue)
        for provider in self._providers:
            for tool in await delivered(provider):
                found.setdefault(tool.name, tool)
        return list(found.values())

    def _check(self, catalogue: Mapping[str, Tool]) -> None:
        providers, store = bool(self._providers), self._store is not None
        for text in check_catalogue(catalogue, has_providers=providers, has_store=store):
            if text not in self._warned:  # once per toolbox, not at every `add`
                self._warned.add(text)
                warnings.warn(text, stacklevel=3)

    # -- calling ---------------------------------------------------------------------------

    @asks_for_loop
    async def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        signal: Stop | None = None,
    ) -> Any:
        """Call a tool through every gate.

        Parameters
        ----------
        name : str
            Which tool.
        args : mapping, optional
            The arguments, by name.
        call_id : str, optional
            The caller's id of the call; drawn from ``settings.ids`` otherwise.
        signal : Stop, optional
            Set it to ask the call to end.

        Returns
        -------
        object
            What the tool returned: for a runbook its `Envelope`. An absence stays the absence.

        Raises
        ------
        ToolRefused
            A gate was closed, and the body not entered; ``code`` and ``facts`` say why.
        """
        tool = await self._find(name)
        return await self._begin(tool, as_arguments(args, tool.name), call_id, signal)

    def call_sync(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        signal: Stop | None = None,
    ) -> Any:
        """Call a tool and wait, from any code, also inside a running event loop; see `call`."""
        return run_sync(lambda: self.call(name, args, call_id=call_id, signal=signal))

    @asks_for_loop
    async def resume(
        self,
        checkpoint: Any,
        answer: Any = None,
        *,
        tool: str | None = None,
        call_id: str | None = None,
        signal: Stop | None = None,
    ) -> Any:
        """Go on with a call that paused for an answer.

        Permission and credential are judged again; arguments and consent are not.

        Parameters
        ----------
        checkpoint : object
            The ``checkpoint`` of the `Paused` error, also after a trip through JSON.
        answer : object
            What it waited for.
        tool : str, optional
            Which tool; by default the one its checkpoint names under ``tool``, as those of
            runbooks do.
        call_id, signal
            As for `call`.

        Returns
        -------
        object
            What the call would have returned: of a runbook the envelope, whose walk covers the
            time before the pause and after it.

        Raises
        ------
        ToolRefused
            ``not_resumable``, besides the refusals of `call`.
        Paused
            It asked again.
        """
        name = tool
        if name is None and isinstance(checkpoint, Mapping):
            name = checkpoint.get("tool")
        if name is None:
            raise ToolRefused(
                "the checkpoint names no tool to resume",
                code="not_resumable",
                where="checkpoint",
                fix='give error.checkpoint as it is, or tool="name" beside it',
            )
        found = await self._find(name)
        if found.resume is None:
            raise ToolRefused(
                f"tool {found.name!r} cannot be resumed",
                code="not_resumable",
                where=found.name,
                fix="call it again from the start",
                facts={"tool": found.name},
            )
        if checkpoint is None:  # which would read as a call from the start
            raise ToolRefused(
                f"there is nothing to resume {found.name!r} from",
                code="not_resumable",
                where=found.name,
                fix="give the checkpoint of the Paused error",
                facts={"tool": found.name},
            )
        return await self._begin(found, {"answer": answer}, call_id, signal, checkpoint)

    def resume_sync(
        self,
        checkpoint: Any,
        answer: Any = None,
        *,
        tool: str | None = None,
        call_id: str | None = None,
        signal: Stop | None = None,
    ) -> Any:
        """Resume a call and wait; see `resume`."""
        return run_sync(
            lambda: self.resume(checkpoint, answer, tool=tool, call_id=call_id, signal=signal)
        )

    async def _find(self, name: Any) -> Tool:
        found = self._catalogue.get(name) if isinstance(name, str) else None
        if found is not None:
            return found
        everything = {tool.name: tool for tool in await self.available()}
        if isinstance(name, str) and name in everything:
            return everything[name]
        near = did_you_mean(name, everything) if isinstance(name, str) else None
        raise unknown_tool(name, list(everything), near)

    async def _begin(
        self,
        tool: Tool,
        args: Mapping[str, Any],
        call_id: str | None,
        signal: Stop | None,
        checkpoint: Any = None,
    ) -> Any:
        await ask_permit(self._permit, tool, args)
        call = ToolCall(
            tool=tool,
            args=args,
            call_id=new_call_id() if call_id is None else checked_call_id(call_id),
            session=self._session,
            signal=signal,
            checkpoint=checkpoint,
        )
        answered: list[Any] = []

        async def enter(passed: ToolCall) -> Any:
            answered.append(result := await self._enter(passed))
            self._declare(passed, result)
            return result

        result = await pass_through(self._middleware, call, enter)
        if not answered:  # middleware answered in the tool's place; its ground counts too
            self._declare(call, result)
        return result

    async def _enter(self, call: ToolCall) -> Any:
        tool, args = call.tool, dict(call.args)
        wanted: Mapping[str, Any] = {}
        resuming = call.checkpoint is not None
        ctx = self._context(call)
        if not resuming:
            check_arguments(tool, args)
            self._tell_unchecked(call)
            await ask_consent(self._consent, tool, args, ctx)
            if tool.wants:
                from runbook_nb.tools.wants import redeem_wanted

                args, wanted = await redeem_wanted(tool, args, ctx.artifacts)
        credential = await issue_credential(tool, self._credentials)
        if wanted or credential is not None:
            ctx = replace(ctx, wanted=wanted, credential=credential)
        if tool.resume is not None and resuming:
            return await settled(tool.resume(call.checkpoint, args.get("answer"), ctx))
        return await tool.execute(args, ctx)

    def _context(self, call: ToolCall) -> ToolContext:
        def progress(call_id: str, tool: str, value: Any) -> None:
            self._tell({"type": "tools.progress", "tool": tool, "call_id": call_id, "value": value})

        tools = InnerDispatch(
            self._catalogue,
            call_id=call.call_id,
            session=self._session,
            credentials=self._credentials,
            signal=call.signal,
            progress=progress,
            engine=self._engine,
            around=inner_of(self._middleware),
        )
        return ToolContext(
            call_id=call.call_id,
            session=self._session,
            artifacts=self._bound({"toolCallId": call.call_id}),
            tools=tools,
            signal=call.signal,
            progress=lambda value: progress(call.call_id, call.tool.name, value),
            engine=self._engine,
            run_sink=self._keep_run,
        )

    def _bound(self, origin: Mapping[str, str | None] | None) -> BoundArtifacts:
        if self._store is None:
            return _NO_STORE
        return BoundArtifacts(self._store, self._session.scope, origin, observer=self._tell)

    def _keep_run(self, run: Any) -> None:
        self._last_run = run

    # -- telling ---------------------------------------------------------------------------

    def _declare(self, call: ToolCall, result: Any) -> None:
        part = declaring_part(result)
        if part is None:
            return
        read = partial(_declaration, call.tool.name, call.call_id, part)
        self._declared_count += 1
        if self._observer is None and isinstance(result, FrozenDict):
            self._declared.append(read)  # it cannot change: it is read when somebody asks
            return
        entry = read()
        self._declared.append(lambda: entry)
        if "ledger" in [one["kind"] for one in entry["declared"]]:
            self._tell({"type": "tools.coverage_declared", **entry})
        if entry["status"] == "absent":
            self._tell({"type": "tools.absent", **entry})

    def _tell_unchecked(self, call: ToolCall) -> None:
        if self._observer is None:
            return
        unchecked, misspelt = call.tool.unchecked, misspelt_names(call.tool.input_schema, call.args)
        if unchecked or misspelt:
            said = {"tool": call.tool.name, "call_id": call.call_id, "keywords": unchecked}
            more = {"misspelt": misspelt} if misspelt else {}
            self._tell({"type": "tools.arguments_unchecked", **said, **more})

    def _tell(self, event: Mapping[str, Any]) -> None:
        if self._observer is None:
            return
        try:
            self._observer(event)
        except Exception:  # an observer's fault is its own; the view says how often it failed
            self._observer_failures += 1

    def view(self) -> Card:
        """Show the catalogue."""
        shown = self.tools[: settings.max_table_rows]
        table = Table(
            columns=(
                Column(head="tool"),
                Column(head="result kind", in_text="labelled"),
                Column(head="composed of", in_text="labelled"),
                Column(head="gates", in_text="labelled"),
            ),
            rows=tuple(
                (
                    Data(value=tool.name),
                    Data(value=tool.result_kind),
                    Data(value=listed(tool.composed_of) if tool.composed_of else None),
                    ", ".join(_gates(tool)) or None,
                )
                for tool in shown
            ),
            total=len(self),
            rest="toolbox.tools",
            empty="no tools",
        )
        closing = [
            f"session {self._session.conversation}",
            "artifacts attached" if self._store is not None else "no artifact store",
        ]
        if self._providers:
            closing.append(f"{counted(len(self._providers), 'provider')}, asked at each call")
        failed = self._observer_failures
        remarks = (f"the observer failed {counted(failed, 'time')}",) if failed else ()
        return Card(
            kind="Toolbox",
            name="",
            headline=counted(len(self), "tool"),
            sections=(Section(label="Tools", parts=(table,)),),
            closing=tuple(closing),
            remarks=remarks,
        )


def _declaration(tool: str, call_id: str, declaring: Mapping[str, Any]) -> dict[str, Any]:
    reading: Any = read_coverage_result(declaring)
    declared = [one.to_dict() for one in reading.declared]
    return {"tool": tool, "call_id": call_id, "status": reading.status, "declared": declared}


def _is_async(function: Any) -> bool:
    from inspect import iscoroutinefunction

    return iscoroutinefunction(function)


def _gates(tool: Tool) -> list[str]:
    return [
        *(["consent"] if tool.check_in is not None else []),
        *(["artifacts"] if tool.wants else []),
        *(["credential"] if tool.needs else []),
        *(["may pause"] if tool.gates else []),
    ]


def _checked_store(artifacts: Any) -> ArtifactStore | None:
    if artifacts is MISSING:
        return InMemoryArtifacts()
    if artifacts is None or isinstance(artifacts, ArtifactStore):
        return artifacts
    raise DefinitionError(
        f"{type(artifacts).__name__} is no artifact store",
        where="artifacts",
        fix="give InMemoryArtifacts() or another store, or None for no store",
    )


def _callables(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    found = tuple(given)
    for one in found:
        if not callable(one):
            raise DefinitionError(f"{name} holds {one!r}, which cannot be called", where=name)
    return found
