"""`runbook_as_tool`: a procedure declared as a tool whose answer is its evidence.

Bridge layer. Everything that can be wrong with a declaration is found when it is made, in one
order, and the procedure's factory is tried once then; what a call does is in `bridge`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import CoroutineType
from typing import Any, Final

from runbook_nb._frozen import FrozenDict, Immutable
from runbook_nb._secrets import secret_names
from runbook_nb._sync import asks_for_loop
from runbook_nb._text import MISSING, did_you_mean, listed
from runbook_nb._value import frozen
from runbook_nb.chart.model import Limits
from runbook_nb.chart.validate import is_text
from runbook_nb.errors import DefinitionError
from runbook_nb.record.kept import DEFAULT_KEPT, KeptRecords
from runbook_nb.record.procedure import Procedure, is_procedure, procedure_of
from runbook_nb.record.projection import DEFAULT_WALK_CAP
from runbook_nb.record.redact import Redact, as_redact, joined_policies
from runbook_nb.rules import RuleSet
from runbook_nb.runbook.verdicts import PRESENTATIONS, VERDICT_KIND_PREFIX, Verdicts, as_verdicts
from runbook_nb.tools import Tool, ToolContext, define_tool, probe_dispatch

#: Largest recording that is filed, in bytes of UTF-8 JSON, unless told otherwise.
DEFAULT_RECORDING_MAX_BYTES: Final = 5_000_000

#: How a walk is filed: its capped rows alone, or the whole of it in a form beside them.
WALK_FORMS: Final = ("json", "columns", "arrow")

#: Makes the procedure of one call from the door to other tools.
RunbookProcedure = Callable[[Any], Procedure]


@frozen(kw_only=False)
class RunbookRules(Immutable):
    """The stamp an answer carries: which rules judged, in which version.

    Examples
    --------
    >>> RunbookRules("health-signal", "v1").version
    'v1'
    """

    name: str
    version: str


@frozen
class RecordingOptions(Immutable):
    """How the run's own recording is filed beside the walk.

    Attributes
    ----------
    label : str or None
        The artifact's label; the tool's name otherwise.
    max_bytes : int
        A larger recording is refused, never truncated.
    """

    label: str | None = None
    max_bytes: int = DEFAULT_RECORDING_MAX_BYTES


@frozen
class WalkOptions(Immutable):
    """How the walk is filed.

    Attributes
    ----------
    cap : int
        Rows of the filed walk at most.
    form : {"json", "columns", "arrow"}
        With ``columns`` or ``arrow`` the whole walk is filed beside those rows: as packed JSON
        columns, or as an Arrow stream (which needs pyarrow). ``json`` files the rows alone.
    recording : RecordingOptions or None
        None files no recording.
    """

    cap: int = DEFAULT_WALK_CAP
    recording: RecordingOptions | None = None
    form: str = "json"


@frozen
class Declaration(Immutable):
    """A checked runbook declaration."""

    name: str
    description: str
    procedure: RunbookProcedure
    result_kind: str | None
    rules: RunbookRules | None
    rule_set: RuleSet | None
    verdicts: Verdicts | None
    presentation: str
    walk: WalkOptions
    redact: Redact | None
    limits: Limits | None
    recorders: tuple[Any, ...]
    kept: KeptRecords | None
    inputs: Mapping[str, Any] = FrozenDict()

    @property
    def verdict_kind(self) -> bool:
        """Whether the answer carries the verdict projection."""
        return self.result_kind is not None and self.result_kind.startswith(VERDICT_KIND_PREFIX)


def runbook_as_tool(
    *,
    name: str = "",
    description: str = "",
    procedure: RunbookProcedure | None = None,
    result_kind: str | None = None,
    rules: RuleSet | RunbookRules | Mapping[str, Any] | None = None,
    verdicts: Verdicts | Mapping[str, Any] | None = None,
    presentation: Any = "prose",
    walk: WalkOptions | Mapping[str, Any] | None = None,
    redact: Redact | Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    recorders: Any = (),
    keep_record: bool = False,
    keep_record_limit: int | None = None,
    input_schema: Any = None,
    **tool_options: Any,
) -> Tool:
    """Declare a procedure as a tool whose answer is an `Envelope`.

    Parameters
    ----------
    name, description : str
        What a model calls it and reads about it.
    procedure : callable
        ``tools -> chart``: makes the chart of one call; its stages call other tools through
        ``tools``. It is tried once here, so it must be free of side effects.
    result_kind : str, optional
        A kind that starts with ``verdict/`` adds the verdict rows to the answer.
    rules : RuleSet, RunbookRules or mapping, optional
        The stamp on the answer; checked against the rules that judged.
    verdicts : Verdicts or mapping, optional
        Which decider names the verdicts; row cap and ranking.
    presentation : {"prose", "panel"}
        Who draws the rows: the model's words, or the host.
    walk : WalkOptions or mapping, optional
        Cap of the filed walk; whether the whole walk, or a recording, is filed beside it.
    redact : Redact or mapping, optional
        What must not be seen in anything that leaves a run. Inputs that the schema declares
        ``writeOnly``, or of the format ``password``, are hidden too.
    limits : Limits or mapping, optional
        Time a call may take; a run they end gives no answer.
    recorders : iterable of callable, optional
        Each is called with the finished `Run`, whatever its status; what it raises is dropped.
    keep_record : bool
        Keep the last runs on the tool for `inner_runs_of`.
    keep_record_limit : int, optional
        How many; 20 by default.
    input_schema : mapping or pydantic model, optional
        Overrides what the chart declares.
    **tool_options
        Passed to the tool as they are: ``composed_of, wants, needs, check_in, gates, owner,
        result_class, result_ceiling, arguments_from``.

    Returns
    -------
    Tool
        Its body answers with an `Envelope`, or with the absence an inner tool declared.

    Raises
    ------
    DefinitionError
        The first thing wrong with the declaration, naming the option.

    Examples
    --------
    >>> from runbook_nb.chart.builder import flow_chart
    >>> probe = runbook_as_tool(name="restart_probe", description="Says whether to restart.",
    ...     procedure=lambda tools: flow_chart("probe", lambda s: s.set("done", 1), id="p").build())
    >>> envelope = probe.execute_sync({})
    >>> envelope["result"]["rule_version"], envelope["result"]["walk"]["steps_executed"]
    ('undeclared', 1)
    """
    if not is_text(name):
        raise DefinitionError(
            f"a runbook needs a name, not {name!r}", where="name", code="bad_runbook"
        )
    where = f"runbook_as_tool({name})"
    if not is_text(description):
        raise DefinitionError(
            f"{where}: the description is {description!r}; a tool without one is invisible to a "
            "model",
            where="description",
            code="bad_runbook",
        )
    if not callable(procedure) or is_procedure(procedure):
        raise DefinitionError(
            f"{where}: procedure is {type(procedure).__name__}, not a function that makes the "
            "chart of one call",
            where="procedure",
            code="bad_runbook",
            fix="wrap a built chart in a callable: procedure=lambda tools: chart",
        )
    stamp, rule_set = _as_rules(rules, where)
    projected = as_verdicts(verdicts, where)
    if not isinstance(presentation, str) or presentation not in PRESENTATIONS:
        raise DefinitionError(
            f"{where}: presentation is {presentation!r}; it is 'prose' when the model's words are "
            "the only place the rows appear, or 'panel' when the host draws them",
            where="presentation",
            code="bad_runbook",
        )
    walk_options = _as_walk(walk, where)
    kept = as_kept(keep_record, keep_record_limit, where)
    policy = as_redact(redact)
    declaration = Declaration(
        name=name,
        description=description,
        procedure=procedure,
        result_kind=result_kind,
        rules=stamp,
        rule_set=rule_set,
        verdicts=projected,
        presentation=presentation,
        walk=walk_options,
        redact=policy,
        limits=_as_limits(limits, where),
        recorders=as_recorders(recorders, where),
        kept=kept,
    )
    probe = _probe(declaration, where)
    # A procedure may say itself what kind of answer it gives, and how its rows are read.
    if result_kind is None:
        result_kind = getattr(probe, "result_kind", None)
    if projected is None:
        projected = as_verdicts(getattr(probe, "verdicts", None), where)
    declaration = replace(declaration, result_kind=result_kind, verdicts=projected)

    @asks_for_loop
    async def answer(args: Mapping[str, Any], ctx: ToolContext) -> Any:
        from runbook_nb.runbook.bridge import run_call

        return await run_call(declaration, args, ctx)

    @asks_for_loop
    async def resume(checkpoint: Any, answer: Any, ctx: ToolContext) -> Any:
        from runbook_nb.runbook.bridge import resume_call

        return await resume_call(declaration, checkpoint, answer, ctx)

    tool = define_tool(
        name=name,
        description=description,
        input_schema=input_schema_of(input_schema, probe),
        result_kind=result_kind,
        execute=answer,
        **{"resume": resume, **tool_options},
        carried=FrozenDict(runbook=declaration),
    )
    declaration = replace(declaration, inputs=tool.input_schema)
    secret = secret_names(tool.input_schema)
    if "" in secret:
        raise DefinitionError(
            f"{where}: the input schema asks for a secret that stands under no name, so that "
            "nothing would hide it",
            where="input_schema",
            code="bad_runbook",
            fix="name it under properties",
        )
    if secret:  # what is asked for as one is one wherever it goes
        policy = joined_policies(policy, Redact(keys=secret))
        declaration = replace(declaration, redact=policy)
    return replace(tool, carried=FrozenDict(runbook=declaration))


def _as_limits(given: Any, where: str) -> Limits | None:
    if given is None:
        return None
    return Limits(**read_options(given, Limits, ("seconds", "stage_seconds"), f"{where}: limits"))


def _as_rules(given: Any, where: str) -> tuple[RunbookRules | None, RuleSet | None]:
    if given is None:
        return None, None
    if isinstance(given, RuleSet):
        return RunbookRules(given.name, given.version), given
    if isinstance(given, RunbookRules):
        options: Mapping[str, Any] = {"name": given.name, "version": given.version}
    else:
        options = read_options(given, RunbookRules, ("name", "version"), f"{where}: rules")
    name, version = options.get("name"), options.get("version")
    for word, value in (("name", name), ("version", version)):
        if not isinstance(value, str) or not value.strip():
            raise DefinitionError(
                f"{where}: rules has the {word} {value!r}, not a text",
                where="rules",
                code="bad_runbook",
                fix="give the RuleSet itself, or {'name': …, 'version': …}",
            )
    return RunbookRules(str(name), str(version)), None


def _as_walk(given: Any, where: str) -> WalkOptions:
    if given is None:
        return WalkOptions()
    options = read_options(given, WalkOptions, ("cap", "recording", "form"), f"{where}: walk")
    cap = options.get("cap", DEFAULT_WALK_CAP)
    if type(cap) is not int or cap < 1:
        raise DefinitionError(
            f"{where}: walk.cap is {cap!r}, not a whole number from 1",
            where="walk.cap",
            code="bad_runbook",
        )
    form = options.get("form", "json")
    if not isinstance(form, str) or form not in WALK_FORMS:
        raise DefinitionError(
            f"{where}: walk.form is {form!r}; it is 'json' for the capped rows alone, 'columns' or "
            "'arrow' to file the whole walk beside them",
            where="walk.form",
            code="bad_runbook",
            fix=did_you_mean(str(form), WALK_FORMS) or "write form='columns'",
        )
    if form == "arrow":
        _need_arrow(where)
    asked = options.get("recording", MISSING)
    if isinstance(given, WalkOptions) and asked is None:
        asked = MISSING
    return WalkOptions(cap=cap, recording=resolve_recording_policy(asked, where), form=form)


def _need_arrow(where: str) -> None:
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise DefinitionError(
            f"{where}: walk.form is 'arrow', and pyarrow is not installed",
            where="walk.form",
            code="not_installed",
            fix="pip install 'runbook-nb[arrow]', or write form='columns'",
        )


def resolve_recording_policy(
    given: Any = MISSING, where: str = "runbook_as_tool"
) -> RecordingOptions | None:
    """Read the ``walk.recording`` option: absent or False is off, True or a mapping is on.

    Raises
    ------
    DefinitionError
        Anything else, None included, or a ``max_bytes`` that is not a whole number from 1.

    Examples
    --------
    >>> resolve_recording_policy(True).max_bytes, resolve_recording_policy(False)
    (5000000, None)
    """
    if given is MISSING or given is False:
        return None
    if given is True:
        return RecordingOptions()
    if not isinstance(given, Mapping | RecordingOptions):
        raise DefinitionError(
            f"{where}: walk.recording is {given!r}; it is True, False, or a mapping with label "
            "and max_bytes",
            where="walk.recording",
            code="bad_runbook",
            fix="leave the key out for no recording",
        )
    options = read_options(
        given, RecordingOptions, ("label", "max_bytes"), f"{where}: walk.recording"
    )
    max_bytes = options.get("max_bytes", DEFAULT_RECORDING_MAX_BYTES)
    if type(max_bytes) is not int or max_bytes < 1:
        raise DefinitionError(
            f"{where}: walk.recording.max_bytes is {max_bytes!r}, not a whole number from 1; a "
            "recording above it is refused, never truncated",
            where="walk.recording.max_bytes",
            code="bad_runbook",
        )
    label = options.get("label")
    if label is not None and (not isinstance(label, str) or not label.strip()):
        raise DefinitionError(
            f"{where}: walk.recording.label is {label!r}, not a text",
            where="walk.recording.label",
            code="bad_runbook",
        )
    return RecordingOptions(label=label, max_bytes=max_bytes)


def as_kept(keep: Any, limit: Any, where: str) -> KeptRecords | None:
    """Make the store that ``keep_record`` and ``keep_record_limit`` ask for; None for none.

    Raises
    ------
    DefinitionError
        ``keep_record`` is neither True nor False, or the limit is no whole number from 1, or is
        given without anything being kept.
    """
    if type(keep) is not bool:
        raise DefinitionError(
            f"{where}: keep_record is {keep!r}, neither True nor False",
            where="keep_record",
            code="bad_runbook",
        )
    if not keep:
        if limit is not None:
            raise DefinitionError(
                f"{where}: keep_record_limit is {limit!r} without keep_record=True",
                where="keep_record_limit",
                code="bad_runbook",
            )
        return None
    if limit is not None and (type(limit) is not int or limit < 1):
        raise DefinitionError(
            f"{where}: keep_record_limit is {limit!r}, not a whole number from 1",
            where="keep_record_limit",
            code="bad_runbook",
        )
    return KeptRecords(DEFAULT_KEPT if limit is None else limit)


def as_recorders(given: Any, where: str) -> tuple[Any, ...]:
    """Read the ``recorders`` option: callables that are shown each finished run.

    Raises
    ------
    DefinitionError
        One of them cannot be called.
    """
    recorders = tuple(given) if isinstance(given, list | tuple) else (given,)
    if any(not callable(recorder) for recorder in recorders):
        raise DefinitionError(
            f"{where}: recorders holds something that cannot be called with a finished run",
            where="recorders",
            code="bad_runbook",
        )
    return recorders


def _probe(declaration: Declaration, where: str) -> Procedure:
    try:
        made: Any = procedure_of(declaration.procedure(probe_dispatch(declaration.name)))
    except Exception as error:
        raise DefinitionError(
            f"{where}: the procedure's factory failed when it was tried (the definition probe): "
            f"{error}",
            where="procedure",
            code="probe_failed",
            fix="the factory only builds the chart and is free of side effects; stages do the work",
        ) from error
    if not is_procedure(made):
        fix = "call .build() at the end" if hasattr(made, "build") else "return a built chart"
        if isinstance(made, CoroutineType):
            made.close()
            fix = "make the factory a plain def; the stages may be async"
        raise DefinitionError(
            f"{where}: the procedure's factory gave {type(made).__name__}, not a built chart",
            where="procedure",
            code="bad_runbook",
            fix=fix,
        )
    return made


def input_schema_of(given: Any, probe: Procedure) -> Any:
    """Give the input schema of a tool: the one given, else what the chart declares as data."""
    if given is not None:
        return given
    declared = probe.input_schema
    if isinstance(declared, Mapping):
        return dict(declared)
    # A pydantic model says its schema; any other validator is for the chart alone.
    return declared if hasattr(declared, "model_json_schema") else MISSING


def read_options(given: Any, kind: type, names: tuple[str, ...], where: str) -> Mapping[str, Any]:
    """Read an option bag given as its dataclass or as a mapping with the same keys.

    Raises
    ------
    DefinitionError
        Neither of these, or a key that is none of ``names``, with the near match.
    """
    if isinstance(given, kind) and is_dataclass(given):
        return {f.name: getattr(given, f.name) for f in fields(given)}
    if not isinstance(given, Mapping):
        raise DefinitionError(
            f"{where} is {given!r}, neither {kind.__name__} nor a mapping",
            where=where.rpartition(": ")[2],
            code="bad_runbook",
        )
    for key in given:
        if key not in names:
            raise DefinitionError(
                f"{where} has no option {key!r}",
                where=where.rpartition(": ")[2],
                code="bad_runbook",
                fix=did_you_mean(str(key), names) or f"its options are {listed(names)}",
            )
    return given
