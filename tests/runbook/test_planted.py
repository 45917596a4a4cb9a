"""A secret planted where data enters a runbook, looked for in everything its answer becomes.

As `tests/record/test_planted.py` does for a run: places times outlets, each place with policies
that name it, and with outlets that must show it when nothing is hidden.
"""

from __future__ import annotations

import base64
import copy
import html
import json
import logging
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import runbook_nb as rb
from runbook_nb.render.embed import read_embedded
from runbook_nb.rules.columns import as_columns
from runbook_nb.rules.frame import judge_frame
from runbook_nb.testing import forms_of, reproducible

SECRET = "hunter-2-hunter"
VALUES = rb.Redact(values=[SECRET])
TOKEN = rb.Redact(keys=["token"])

RULES = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old", label="aged")], "fresh")
ROWS = [{"host": "a", "days": 9}, {"host": "b", "days": 1}]


@dataclass(frozen=True)
class Place:
    name: str
    answer: Callable[[Any], Any]
    policies: tuple[Any, ...]
    seen: tuple[str, ...]


PLACES: dict[str, Place] = {}


def place(*seen: str, by: tuple[Any, ...] = ()) -> Callable[..., Any]:
    """Register a place; ``by`` are policies that name it besides the literal value."""

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        name = answer.__name__.removeprefix("in_")
        PLACES[name] = Place(name, answer, (VALUES, *by), seen)
        return answer

    return register


# -- a table that is judged ----------------------------------------------------------------------


def judged(redact: Any, rows: Any = ROWS, rules: Any = RULES, **more: Any) -> Any:
    """Ask `triage`, with everything filed and kept; gives what there is to look at."""
    options = {"subject": "host", "source": "rows", **more}
    with reproducible():
        envelope = rb.triage(rows, rules, redact=redact, **options)
    return SimpleNamespace(envelope=envelope, box=None, tool=None, error=None)


@place("json", "dossier", "text", "html", "page", "notebook", "frame", by=(TOKEN,))
def in_column(redact):
    rows = [{**row, "token": SECRET} for row in ROWS]
    return judged(redact, rows, columns=["token"])


@place("json", "dossier", "text", "why", "frame", by=({"keys": ["host"]},))
def in_subject(redact):
    return judged(redact, [{"host": SECRET, "days": 9}, {"host": "b", "days": 1}])


@place("dossier", "why", "html", "frame", by=({"keys": ["word"]},))
def in_compared_value(redact):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"word": {"ne": "x"}}, "old")], "fresh")
    return judged(redact, [{"host": "a", "word": SECRET}], rules)


@place("dossier", "why", "html", "rules", by=({"keys": ["word"]},))
def in_limit(redact):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"word": {"ne": SECRET}}, "old")], "fresh")
    return judged(redact, [{"host": "a", "word": "x"}], rules)


@place("json", "dossier", "why", "html", "meanings")
def in_label(redact):
    rules = rb.RuleSet(
        "age", "v1", [rb.Rule({"days": {"gt": 7}}, "old", label=f"is {SECRET}")], "fresh"
    )
    return judged(redact, rules=rules)


@place("json", "dossier", "html", "meanings")
def in_default_label(redact):
    rules = rb.RuleSet(
        "age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh", label=SECRET)
    )
    return judged(redact, rules=rules)


@place("json", "dossier", "why", "text", "html", "page", "notebook")
def in_name_of_the_rules(redact):
    rules = rb.RuleSet(f"age {SECRET}", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    return judged(redact, rules=rules)


@place("json", "dossier", "why", "html", "page")
def in_version_of_the_rules(redact):
    rules = rb.RuleSet("age", f"v-{SECRET}", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")
    return judged(redact, rules=rules)


@place("json", "dossier", "why", "text", "html", "frame")
def in_verdict_word(redact):
    word = f"old-{SECRET}"
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, word)], "fresh")
    return judged(redact, rules=rules)


@place("dossier", "why", "html")
def in_unit(redact):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old", unit=SECRET)], "fresh")
    return judged(redact, rules=rules)


@place("dossier", "why", "html")
def in_key_of_a_rule(redact):
    key = f"d-{SECRET}"
    rules = rb.RuleSet("age", "v1", [rb.Rule({key: {"gt": 7}}, "old")], "fresh")
    return judged(redact, [{"host": "a", key: 9}], rules)


@place("json", "text", "html", "page", "notebook")
def in_ground_outside(redact):
    outside = [rb.Outside({"days": {"gt": 99}}, f"what {SECRET}", f"why {SECRET}")]
    rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh", outside=outside)
    return judged(redact, rules=rules)


@place("json", "text", "html")
def in_source(redact):
    return judged(redact, source=f"rows of {SECRET}")


# -- a procedure of the author's own -------------------------------------------------------------


class Store(rb.InMemoryArtifacts):
    """Keeps what is filed, or refuses it in words that quote it."""

    def __init__(self, refuses: str = "") -> None:
        super().__init__()
        self.refuses = refuses

    async def put(self, scope: Any, given: Any) -> Any:
        if self.refuses:
            raise OSError(self.refuses)
        return await super().put(scope, given)


class Heard(logging.Handler):
    """Keeps what was logged, tracebacks spelt out."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


def asked(
    redact: Any,
    body: Any = None,
    args: Any = None,
    *,
    tools: tuple[Any, ...] = (),
    procedure: Any = None,
    store: Any = None,
    name: str = "asker",
    define: Any = rb.runbook_as_tool,
    watching: tuple[Any, ...] = (),
    **more: Any,
) -> Any:
    """Ask a runbook through a toolbox, with everything filed, kept and logged."""

    def one_stage(dispatch: Any) -> Any:
        async def stage(scope: Any) -> Any:
            return await body(scope, dispatch)

        return rb.flow_chart("c", stage, id="only", stage_name="Only").build()

    heard, events = Heard(), []
    logger = logging.getLogger("runbook_nb")
    logger.addHandler(heard)
    handled, logger.propagate = logger.propagate, False
    options = {"description": "d", "keep_record": True, "redact": redact, **more}
    if define is rb.runbook_as_tool:
        options["walk"] = {"recording": True}
        options["procedure"] = procedure or one_stage
    else:
        options["flowchart"] = procedure
    answer = error = tool = box = None
    try:
        with reproducible():
            tool = define(name=name, recorders=watching, **options)
            box = rb.Toolbox([*tools, tool], artifacts=store or Store(), observer=events.append)
            answer = box.call_sync(name, args or {}, call_id="c1")
    except Exception as caught:
        error = caught
    finally:
        logger.removeHandler(heard)
        logger.propagate = handled
    return SimpleNamespace(
        envelope=answer if isinstance(answer, rb.Envelope) else None,
        answer=answer,
        box=box,
        tool=tool,
        error=error,
        events=events,
        logged=heard.lines,
    )


def answering(answer: Any, name: str = "inv", **more: Any) -> Any:
    return rb.define_tool(name=name, description="d", execute=lambda args: answer, **more)


@place("json", "recording", "kept", "run", by=(TOKEN,))
def in_state(redact):
    async def body(scope, tools):
        scope["token"] = SECRET
        scope["report"] = {"used": f"key {SECRET}"}

    return asked(redact, body)


@place("json", "text", "html", "page", "notebook", by=({"paths": ["report.token"]}, TOKEN))
def in_report(redact):
    async def body(scope, tools):
        scope["report"] = {"token": SECRET}

    return asked(redact, body)


@place("json", "text", "page")
def in_name_of_a_report_field(redact):
    async def body(scope, tools):
        scope["report"] = {f"used {SECRET}": 1}

    return asked(redact, body)


@place("json", "text", "html", "page")
def in_coverage(redact):
    async def body(scope, tools):
        scope["coverage"] = {"checked": [f"as {SECRET}"], "not_checked": [f"not {SECRET}"]}

    return asked(redact, body)


@place("json", "recording", "kept", by=(TOKEN,))
def in_tool_result(redact):
    async def body(scope, tools):
        answer = await tools.call("inv", {})
        scope["report"] = {"how": f"with {answer['rows'][0]['token']}"}

    return asked(redact, body, tools=(answering({"rows": [{"token": SECRET}]}),))


@place("json", "events", "text", by=(TOKEN,))
def in_what_a_tool_declared(redact):
    answer = rb.coverage(
        {"af_provenance": {"source": f"as {SECRET}"}, "rows": [{"token": SECRET}]},
        checked=[f"the API with {SECRET}"],
        not_checked=[rb.Item("tapes", f"{SECRET} may not read them")],
    )

    async def body(scope, tools):
        scope["n"] = len((await tools.call("inv", {}))["result"]["rows"])

    return asked(redact, body, tools=(answering(answer),))


@place("json", "recording", by=(TOKEN,))
def in_tool_arguments(redact):
    async def body(scope, tools):
        await tools.call("inv", {"token": SECRET})
        scope["report"] = {"note": f"asked with {SECRET}"}

    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    return asked(redact, body, tools=(answering({"n": 1}, input_schema=schema),))


@place("run", "kept", by=(TOKEN,))
def in_error_of_a_tool(redact):
    def fails(args):
        raise OSError(f"refused {args['token']}")

    async def body(scope, tools):
        await tools.call("inv", {"token": SECRET})

    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    inv = rb.define_tool(name="inv", description="d", execute=fails, input_schema=schema)
    return asked(redact, body, tools=(inv,))


@place("run", by=(TOKEN,))
def in_runbook_input(redact):
    async def body(scope, tools):
        scope["n"] = 1

    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    return asked(redact, body, {"token": SECRET}, input_schema=schema)


@place("run", "kept", by=(TOKEN,))
def in_question(redact):
    async def body(scope, tools):
        scope["token"] = SECRET
        rb.interrupt(scope, f"use {SECRET}?")

    return asked(redact, body)


def resumed(redact: Any, ask: Any, then: Any, answer: Any, **more: Any) -> Any:
    """Ask a runbook that pauses, and go on with an answer."""

    def procedure(tools):
        return (
            rb.flow_chart("c", ask(tools), id="ask").add_function("Then", then, id="then").build()
        )

    first = asked(redact, procedure=procedure, **more)
    point = json.loads(json.dumps(first.error.checkpoint))
    try:
        with reproducible():
            first.answer = first.box.resume_sync(point, answer, call_id="c1")
        first.envelope, first.error = first.answer, None
    except Exception as error:
        first.error = error
    return first


@place("json", "kept", "walk rows", by=({"keys": ["got"]},))
def in_answer_to_a_question(redact):
    def ask(tools):
        return lambda scope: scope.set("got", rb.interrupt(scope, "which?"))

    def then(scope):
        scope["report"] = {"used": f"key {scope['got']}"}

    return resumed(redact, ask, then, SECRET)


@place("json", "kept", by=(TOKEN,))
def in_tool_result_from_before_a_pause(redact):
    """Its call is not made again; what it answered is still known."""

    def ask(tools):
        async def stage(scope):
            answer = await tools.call("inv", {})
            scope["n"] = len(answer["rows"])
            rb.interrupt(scope, "which?")

        return stage

    def then(scope):
        scope["report"] = {"used": f"key {SECRET}"}

    inv = answering({"rows": [{"token": SECRET}]})
    return resumed(redact, ask, then, "yes", tools=(inv,))


@place("run", "kept", by=(TOKEN,))
def in_error_after_an_answer(redact):
    def ask(tools):
        return lambda scope: scope.set("token", rb.interrupt(scope, "which?"))

    def then(scope):
        raise ValueError(f"cannot use {scope['token']}")

    return resumed(redact, ask, then, SECRET)


@place("refusal", "run", by=(TOKEN,))
def in_question_told_to_the_caller(redact):
    async def body(scope, tools):
        scope["token"] = SECRET
        rb.interrupt(scope, f"use {SECRET}?", {"one": SECRET}, {"token": SECRET})

    return asked(redact, body)


@place("refusal", by=(TOKEN,))
def in_arguments_that_do_not_fit(redact):
    async def body(scope, tools):
        scope["n"] = 1

    schema = {"type": "object", "properties": {"token": {"enum": ["a"]}}}
    return asked(redact, body, {"token": SECRET}, input_schema=schema)


@place("json", "kept", by=(TOKEN,))
def in_children_of_a_fork(redact):
    def procedure(tools):
        chart = rb.flow_chart("c", lambda s: s.set("token", SECRET), id="a")
        chart = chart.add_fork("Fork", id="fork", into="out")
        chart = chart.branch("good", lambda s: s.set("copy", s["token"]))
        chart = chart.branch("bad", lambda s: 1 / len(s["token"][:0]) or f"no {SECRET}")
        last = lambda s: s.set("report", {"got": s["out"][0].value["copy"]})  # noqa: E731
        return chart.end().add_function("Report", last, id="report").build()

    return asked(redact, procedure=procedure)


@place("json", "kept", by=(TOKEN,))
def in_mounted_chart(redact):
    inner = rb.flow_chart("in", lambda s: s.set("kept", s["given"]), id="in").build()

    def procedure(tools):
        chart = rb.flow_chart("c", lambda s: s.set("token", SECRET), id="a")
        chart = chart.add_subchart(
            "Sub", inner, id="sub", inputs={"given": "token"}, outputs={"out": "kept"}
        )
        last = lambda s: s.set("report", {"got": f"with {s['token']}"})  # noqa: E731
        return chart.add_function("Report", last, id="report").build()

    return asked(redact, procedure=procedure)


@place("logged", by=(TOKEN,))
def in_error_of_a_recorder(redact):
    async def body(scope, tools):
        scope["token"] = SECRET

    def watch(run):
        raise ValueError(f"cannot keep {run.raw[1]['token']}")

    return asked(redact, body, watching=(watch,))


@place("json", "html", by=(TOKEN,))
def in_error_of_a_store(redact):
    async def body(scope, tools):
        scope["token"] = SECRET

    return asked(redact, body, store=Store(refuses=f"will not keep {SECRET}"))


@place("recording", "kept", "json")
def in_fan_out(redact):
    each = rb.flow_chart("look", lambda s: s.set("n", 1), id="look").build()

    def procedure(tools):
        return (
            rb.flow_chart("c", lambda s: None, id="a")
            .add_parallel_for_each(
                f"Each {SECRET}",
                id=f"each-{SECRET}",
                items=lambda s: [1, 2],
                branch=each,
                max_branches=1,
                into="out",
            )
            .build()
        )

    return asked(redact, procedure=procedure)


@place("json", "kept", "recording", "text")
def in_name_of_the_procedure(redact):
    def procedure(tools):
        return rb.flow_chart(f"c {SECRET}", lambda s: None, id="a", stage_name="A").build()

    return asked(redact, procedure=procedure)


@place("json", "kept", by=(TOKEN,))
def in_failed_branch(redact):
    def work(scope):
        scope["token"] = scope.args["item"]["token"]
        raise ValueError(f"bad {SECRET}")

    each = rb.flow_chart("look", work, id="look").build()

    def procedure(tools):
        return (
            rb.flow_chart("c", lambda s: None, id="a")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda s: [{"token": SECRET}, {"token": "none"}],
                branch=each,
                max_branches=2,
                into="out",
            )
            .build()
        )

    return asked(redact, procedure=procedure)


def collected(redact: Any, rows: Any, write: Any, rules: Any = RULES) -> Any:
    """Ask a runbook that judges rows at once and writes its verdicts as columns."""

    def procedure(tools):
        return (
            rb.flow_chart("c", lambda s: s.set("rows", rows), id="a")
            .add_judge_each(
                "Judge",
                id="judge",
                items=lambda s: s["rows"],
                rules=rules,
                into="out",
                subject="host",
                max_branches=len(rows),
            )
            .add_function("Write", lambda s: s.set("verdicts", write(s)), id="write")
            .build()
        )

    options = {"rules": rules, "result_kind": "verdict/x", "verdicts": {"decider": "Verdict"}}
    return asked(redact, procedure=procedure, **options)


TOLD = ("json", "dossier", "text", "why", "html", "page", "notebook", "frame", "typed", "copies")


@place(*TOLD, "recording", "kept", "run", by=(TOKEN,))
def in_column_of_collected_verdicts(redact):
    rows = [{**row, "token": SECRET} for row in ROWS]
    return collected(redact, rows, lambda s: s["out"].verdict_rows("token"))


@place(*TOLD, "subjects", "recording", "kept", by=({"keys": ["host"]},))
def in_subject_of_collected_verdicts(redact):
    rows = [{"host": SECRET, "days": 9}, {"host": "b", "days": 1}]
    return collected(redact, rows, lambda s: s["out"].verdict_rows("days"))


@place("dossier", "why", "typed", by=({"keys": ["word"]},))
def in_compared_value_of_collected_verdicts(redact):
    rules = rb.RuleSet("age", "v1", [rb.Rule({"word": {"ne": "x"}}, "old")], "fresh")
    rows = [{"host": "a", "word": SECRET}, {"host": "b", "word": "x"}]
    return collected(redact, rows, lambda s: s["out"].verdict_rows(), rules)


@place("json", "text", "html", "page", "notebook", "frame", "typed", by=(TOKEN,))
def in_verdicts_written_as_columns(redact):
    held = as_columns({"host": ["a", "b"], "verdict": ["old", "fresh"], "token": [SECRET, "x"]})
    return collected(redact, ROWS, lambda s: held)


@place("json", "text", "html", "page", "notebook", "frame", "typed", by=({"keys": ["verdict"]},))
def in_word_of_verdicts_written_as_columns(redact):
    held = as_columns({"host": ["a", "b"], "verdict": [f"old {SECRET}", "fresh"]})
    return collected(redact, ROWS, lambda s: held)


@place("answer", "kept", by=(TOKEN,))
def in_answer_of_a_flowchart_tool(redact):
    chart = rb.flow_chart("c", lambda s: s.set("token", SECRET), id="a").build()
    return asked(redact, procedure=chart, define=rb.flowchart_as_tool)


@place("answer", by=(TOKEN,))
def in_error_of_a_result_mapper(redact):
    def tell(state):
        raise ValueError(f"cannot say {SECRET}")

    chart = rb.flow_chart("c", lambda s: s.set("token", SECRET), id="a").build()
    return asked(redact, procedure=chart, define=rb.flowchart_as_tool, result_mapper=tell)


# -- what leaves ---------------------------------------------------------------------------------

_PICTURE = re.compile(r"base64,([A-Za-z0-9+/=]+)")


def markup(text: str) -> Iterator[str]:
    """Yield markup with entities and pictures resolved, and what it carries in encoded form."""
    yield text
    yield html.unescape(text)
    for picture in _PICTURE.findall(text):
        yield base64.b64decode(picture).decode("utf-8")
    carried = read_embedded(text)
    if carried is not None:
        yield json.dumps(carried, ensure_ascii=False)


def exported(write: Callable[..., Any], name: str) -> Iterator[str]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        text = Path(write(f"{folder}/{name}")).read_text("utf-8")
    yield from markup(text)
    if name.endswith(".ipynb"):
        for cell in json.loads(text)["cells"]:
            for output in cell.get("outputs", ()):
                for form in output["data"].values():
                    yield from markup("".join(form))


def forms(one: Any) -> Iterator[str]:
    yield from (text for _, text in forms_of(one))


def whys(envelope: Any) -> Iterator[str]:
    for row in range(len(envelope.verdicts)):
        why = envelope.why(row=row)
        yield from (str(why), repr(why), json.dumps(why.to_dict()), why.to_markdown())
        yield from (text for _, text in forms_of(why))
        yield from (json.dumps(step) for step in why.walk().to_dicts())


def filed(box: Any) -> Iterator[str]:
    for ticket in box.artifacts.list_sync().artifacts:
        yield json.dumps(ticket.to_dict() if hasattr(ticket, "to_dict") else str(ticket))
        yield str(box.artifacts.get_sync(ticket.ref).data)


def copies(envelope: Any) -> Iterator[str]:
    """Yield what is told by an answer that was written down and read again."""
    again = rb.Envelope.from_dict(json.loads(envelope.to_json(dossier=True)))
    yield from (text for _, text in forms_of(again))
    for row in range(len(again.verdicts)):
        yield from (str(again.why(row=row)), json.dumps(again.why(row=row).to_dict()))
    yield from (text for _, text in forms_of(copy.copy(envelope)))
    yield pickle.dumps(envelope).decode("utf-8", "replace")


def run_of(asked: Any) -> Any:
    if asked.envelope is not None:
        return asked.envelope.run
    return asked.box.last_run


def typed_text(frame: Any) -> str:
    """Write a frame with what it holds beside its cells: the words of its categories."""
    words = [list(held.cat.categories) for _, held in frame.items() if held.dtype == "category"]
    return f"{frame.to_csv()} {frame.dtypes} {words}"


ENVELOPE: dict[str, Callable[[Any], Any]] = {
    "json": lambda e: [e.to_json(), json.dumps(e.to_dict()), json.dumps(e)],
    "dossier": lambda e: [e.to_json(dossier=True), json.dumps(e.dossier.to_dict(1))],
    "text": lambda e: [str(e), repr(e), e.to_markdown(), str(e.ledger), str(e.verdicts)],
    "html": lambda e: list(forms(e)),
    "page": lambda e: exported(e.to_html, "x.html"),
    "notebook": lambda e: exported(e.to_notebook, "x.ipynb"),
    "frame": lambda e: [e.to_frame().to_csv(), e.verdicts.to_frame().to_csv()],
    "typed": lambda e: [typed_text(e.to_frame(typed=True))],
    "meanings": lambda e: [json.dumps(dict(e.meanings))],
    "why": whys,
    "rules": lambda e: [text for rules in e.dossier.rule_sets for _, text in forms_of(rules)],
    "rules named": lambda e: [str(e.rules), str(e.dossier.sources), str(e.dossier.units)],
    "fan-outs": lambda e: [json.dumps([g.to_dict() for g in e.dossier.fan_outs])],
    "subjects": lambda e: [str(facts) for facts in e.dossier.subjects()],
    "walk rows": lambda e: [json.dumps(e.walk.to_dicts()), str(e.walk)],
    "copies": copies,
}

OUTLETS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda asked, ask=ask: () if asked.envelope is None else ask(asked.envelope)
        for name, ask in ENVELOPE.items()
    },
    "answer": lambda asked: [str(getattr(asked, "answer", ""))],
    "recording": lambda asked: filed(asked.box) if asked.box is not None else (),
    "kept": lambda asked: (
        [json.dumps(rb.inner_runs_of(asked.tool).get("c1"), default=str)] if asked.tool else ()
    ),
    "events": lambda asked: [json.dumps(getattr(asked, "events", []), default=str)],
    "refusal": lambda asked: (
        [f"{asked.error} {getattr(asked.error, 'facts', '')}"]
        if isinstance(asked.error, rb.errors.RunbookError)
        else ()
    ),
    "logged": lambda asked: getattr(asked, "logged", ()),
    "run": lambda asked: (
        ()
        if run_of(asked) is None
        else [
            *forms(run_of(asked)),
            str(run_of(asked).args),
            str(run_of(asked).error),
            str(run_of(asked).pause),
        ]
    ),
}


def found_in(outlet: str, asked: Any) -> list[str]:
    return [text for text in OUTLETS[outlet](asked) if SECRET in text]


@cache
def ran(name: str, policy: int | None) -> Any:
    there = PLACES[name]
    return there.answer(None if policy is None else there.policies[policy])


@cache
def shown(name: str) -> frozenset[str]:
    """Name the outlets that show a place when nothing is hidden."""
    return frozenset(outlet for outlet in OUTLETS if found_in(outlet, ran(name, None)))


@pytest.mark.parametrize("name", PLACES)
def test_without_a_policy_the_secret_is_there(name):
    assert set(PLACES[name].seen) - shown(name) == set()


def test_every_outlet_shows_some_place_when_nothing_is_hidden():
    assert set(OUTLETS) - set().union(*map(shown, PLACES)) == set()


@pytest.mark.parametrize(
    ("name", "policy"),
    [(name, n) for name, there in PLACES.items() for n in range(len(there.policies))],
)
def test_a_secret_that_a_policy_names_is_in_no_outlet(name, policy):
    leaks = {
        outlet: found[:1] for outlet in OUTLETS if (found := found_in(outlet, ran(name, policy)))
    }
    assert leaks == {}


@pytest.mark.parametrize("outlet", ["judge_frame", "triage"])
def test_frames_of_judged_rows_show_what_no_policy_hides(outlet):
    """`judge_frame` takes no policy: its owner looks at his own rows; an answer's frame has one."""
    rules = rb.RuleSet("age", "v1", [rb.Rule({"word": {"ne": "x"}}, "old")], "fresh")
    rows = [{"host": "a", "word": SECRET}]
    if outlet == "judge_frame":
        assert SECRET in judge_frame(rows, rules).to_frame().to_csv()
        return
    for policy in (VALUES, {"keys": ["word"]}):
        assert SECRET not in typed_text(judged(policy, rows, rules).envelope.to_frame(typed=True))
    assert SECRET in typed_text(judged(None, rows, rules).envelope.to_frame(typed=True))
