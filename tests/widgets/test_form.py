"""A form: filled, run in a thread of its own, stopped, failing, shown with and without a kernel."""

import html
import json
import re
import threading

import pytest
from IPython.core.interactiveshell import InteractiveShell
from untrusted import HINTS, dropped, reading, sanitized

import runbook_nb as rb
from runbook_nb.chart.progress import Progress, StepProgress
from runbook_nb.errors import DefinitionError
from runbook_nb.render import live
from runbook_nb.render.bundle import HTML, TEXT
from runbook_nb.settings import settings
from runbook_nb.widgets.base import MAX_CSS, MAX_JS, MAX_STATE, WIDGET
from runbook_nb.widgets.form import RunForm
from runbook_nb.widgets.formtold import bundle_for

HOSTILE = "</style><img src=x onerror=alert(1)>\u202e|\\N"
PATIENCE = 20
INPUTS = {
    "cluster": {"type": "string", "enum": ["eu", "us"], "description": "Where to look."},
    "days": {"type": "integer", "minimum": 1, "default": 7},
    "token": {"type": "string", "writeOnly": True},
    "dry": {"type": "boolean", "default": True},
}


def make_box(
    stage=None, *, inputs=INPUTS, required=("cluster",), name="backup_triage", redact=None
):
    """Make a toolbox whose runbook has three stages, the second of them given."""

    def procedure(tools):
        def load(scope):
            scope["args"] = dict(scope.args)

        def collect(scope):
            args = {k: v for k, v in scope["args"].items() if k != "token"}
            scope["report"] = {"ran_with": args}

        return (
            rb.flow_chart("triage", load, id="load", stage_name="Load")
            .add_function("Work", stage or (lambda scope: None), id="work")
            .add_function("Collect", collect, id="collect")
            .build()
        )

    schema = {"type": "object", "properties": inputs, "required": list(required)}
    schema["additionalProperties"] = False
    made = rb.runbook_as_tool(
        name=name,
        description="Protection of every subject.",
        procedure=procedure,
        result_kind="report/ran",
        input_schema=schema,
        redact=redact,
    )
    return rb.Toolbox([made])


@pytest.fixture
def gate():
    made = threading.Event()
    yield made
    made.set()  # leave nobody waiting behind


def waiting(gate, reached):
    """Make an async stage that waits until the gate is open, and says that it does."""

    async def wait(scope):
        import asyncio

        reached.set()
        while not gate.is_set():
            await asyncio.sleep(0.01)

    return wait


def ran(form):
    assert form.run(), form.problems()
    form.join(PATIENCE)
    assert not form.running
    return form


# -- filling in ------------------------------------------------------------------------------


def test_it_begins_with_the_defaults():
    form = RunForm(make_box(), "backup_triage")
    assert form.entries == {"cluster": "", "days": "7", "dry": True}
    assert form.values() == {"days": 7, "dry": True}
    assert form.problems() == form.faults == {"cluster": "is required"}
    assert form.status == "ready"


def test_values_are_set_and_checked():
    form = RunForm(make_box(), "backup_triage").set(cluster="eu", days=0)
    assert form.values() == {"cluster": "eu", "days": 0, "dry": True}
    assert form.faults == {"days": "must be at least 1, and is 0"}
    form.set(days=None)
    assert form.faults == {}
    assert form.values() == {"cluster": "eu", "dry": True}


def test_an_unknown_field_changes_nothing():
    form = RunForm(make_box(), "backup_triage")
    with pytest.raises(DefinitionError, match="did you mean 'cluster'"):
        form.set(days=3, clutser="eu")
    assert form.values()["days"] == 7


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cluster": "eu1"}, "'cluster' cannot be 'eu1'; did you mean 'eu'?"),
        ({"cluster": "mars"}, "'cluster' cannot be 'mars'; it is one of eu"),
        ({"cluster": 7}, "'cluster' cannot be 7"),
        ({"dry": "no"}, "'dry' cannot be 'no'; it is True or False"),
        ({"dry": 0}, "'dry' cannot be 0"),
    ],
)
def test_what_a_field_cannot_even_show_is_refused_and_nothing_changes(values, words):
    form = RunForm(make_box(), "backup_triage").set(cluster="eu")
    with pytest.raises(DefinitionError, match=re.escape(words)) as raised:
        form.set(days=3, **values)
    assert raised.value.code == "no_choice"
    assert form.values() == {"cluster": "eu", "days": 7, "dry": True}
    assert form.set(cluster=None).values() == {"days": 7, "dry": True}


def test_what_it_is_of_is_checked():
    with pytest.raises(rb.ToolRefused, match="did you mean 'backup_triage'"):
        RunForm(make_box(), "backup_traige")
    with pytest.raises(DefinitionError, match="takes a toolbox, not dict"):
        RunForm({}, "backup_triage")


def test_what_comes_from_a_front_end_is_cleaned():
    form = RunForm(make_box(), "backup_triage")
    form.set_state({"entries": {"cluster": "0", "dry": "no", "token": "s", "x": "y", "days": 3}})
    assert form.entries == {"cluster": "0", "days": "7", "dry": True}


# -- running ---------------------------------------------------------------------------------


def test_a_run_gives_its_answer():
    form = ran(RunForm(make_box(), "backup_triage").set(cluster="eu"))
    assert form.status == "finished"
    assert isinstance(form.result, rb.Envelope)
    assert dict(form.result["result"]["ran_with"]) == {"cluster": "eu", "days": 7, "dry": True}
    assert (form.error, form.incomplete, form.outcome) == (None, None, {"said": "3 stages"})


def test_nothing_runs_while_something_is_wrong():
    called = []
    form = RunForm(make_box(called.append), "backup_triage")
    assert form.run() is False
    assert form.status == "ready"
    assert called == []
    assert form.faults == {"cluster": "is required"}


def test_run_again_replaces_the_answer():
    form = ran(RunForm(make_box(), "backup_triage").set(cluster="eu"))
    first = form.result
    form.set(cluster="us")
    assert form.stale
    ran(form)
    assert form.result is not first
    assert form.result["result"]["ran_with"]["cluster"] == "us"
    assert not form.stale
    form.set(cluster="eu")
    assert form.stale
    form.set(cluster="us")
    assert not form.stale  # what is below is of this again


def test_an_answer_is_of_what_the_fields_were(gate):
    reached = threading.Event()
    form = RunForm(make_box(waiting(gate, reached)), "backup_triage").set(cluster="eu")
    form.run()
    assert reached.wait(PATIENCE)
    form.set(cluster="us")
    gate.set()
    form.join(PATIENCE)
    assert form.result["result"]["ran_with"]["cluster"] == "eu"
    assert form.stale


def test_the_caller_does_not_wait_and_a_second_run_is_refused(gate):
    reached = threading.Event()
    form = RunForm(make_box(waiting(gate, reached)), "backup_triage").set(cluster="eu")
    assert form.run()
    assert reached.wait(PATIENCE)
    assert form.status == "running"
    with pytest.raises(DefinitionError, match="backup_triage is running") as caught:
        form.run()
    assert caught.value.code == "is_running"
    gate.set()
    assert form.join(PATIENCE).status == "finished"


def test_a_stop_ends_it_where_it_waits(gate):
    reached = threading.Event()
    form = RunForm(make_box(waiting(gate, reached)), "backup_triage").set(cluster="eu")
    form.run()
    assert reached.wait(PATIENCE)
    form.stop()
    assert form.join(PATIENCE).status == "stopped"
    assert form.result is None
    assert form.outcome["stage"] == "Work"
    assert form.incomplete.status == "cancelled"
    assert isinstance(form.error, rb.errors.RunCancelled)
    gate.set()
    assert ran(form).status == "finished"


def test_a_stop_does_not_wait_for_a_source_that_hangs(gate):
    reached = threading.Event()

    async def hang(scope):
        import asyncio

        reached.set()
        await asyncio.to_thread(gate.wait, 60)

    form = RunForm(make_box(hang), "backup_triage").set(cluster="eu")
    form.run()
    assert reached.wait(PATIENCE)
    form.stop()
    assert form.join(PATIENCE).status == "stopped"
    assert not gate.is_set()


def test_a_stop_of_nothing_does_nothing():
    form = RunForm(make_box(), "backup_triage").set(cluster="eu")
    form.stop()
    assert form.status == "ready"
    assert ran(form).status == "finished"


def test_an_error_names_its_stage_and_what_was_reached():
    def fail(scope):
        raise KeyError(HOSTILE)

    form = ran(RunForm(make_box(fail), "backup_triage").set(cluster="eu"))
    assert form.status == "failed"
    assert form.outcome["stage"] == "Work"
    assert form.outcome["what"].startswith("KeyError: ")
    assert "\u202e" not in form.outcome["what"]
    assert form.incomplete.status == "failed"
    assert form.result is None
    assert form.progress["steps"][1]["state"] == "current"


def test_an_answer_after_an_error_leaves_nothing_of_it():
    broken = threading.Event()
    broken.set()

    def fail(scope):
        if broken.is_set():
            raise KeyError("age_days")

    form = ran(RunForm(make_box(fail), "backup_triage").set(cluster="eu"))
    broken.clear()
    ran(form)
    assert (form.status, form.error, form.incomplete) == ("finished", None, None)
    assert "what" not in form.outcome


def test_a_gate_that_is_closed_is_told():
    box = make_box()
    made = rb.Toolbox(box.tools, permit=lambda tool, args: "not at night")
    form = ran(RunForm(made, "backup_triage").set(cluster="eu"))
    assert form.status == "refused"
    assert "not at night" in form.outcome["what"]


def test_a_question_is_told_with_the_way_on():
    def ask(scope):
        scope["x"] = rb.interrupt(scope, "which one?")

    form = ran(RunForm(make_box(ask), "backup_triage").set(cluster="eu"))
    assert form.status == "paused"
    assert "which one?" in form.outcome["what"]
    assert "resume_sync" in form.outcome["fix"]
    assert form.error.checkpoint["tool"] == "backup_triage"


def test_a_tool_that_is_no_runbook_can_be_run():
    ages = rb.define_tool(name="ages", execute=lambda args: [2, 30])
    form = ran(RunForm(rb.Toolbox([ages]), "ages"))
    assert form.result == [2, 30]
    assert form.view().sections[0].parts[0].empty == "it takes no input"


def test_progress_is_told_by_stage_and_branches(monkeypatch):
    monkeypatch.setattr(live, "PATIENCE", 0)
    seen = []

    def procedure(tools):
        def note(scope):
            for one in live._ticker._lives:
                one.tick()
            seen.append(form.progress)

        branch = rb.flow_chart("item", note, id="item").build()
        return (
            rb.flow_chart("triage", lambda scope: None, id="load", stage_name="Load")
            .add_parallel_for_each(
                "Each",
                id="each",
                items=lambda scope: [1, 2, 3],
                branch=branch,
                max_branches=3,
                into="slots",
            )
            .build()
        )

    made = rb.runbook_as_tool(
        name="count", description="Counts.", procedure=procedure, result_kind="report/counted"
    )
    with settings(timer=iter(range(1000)).__next__):
        form = RunForm(rb.Toolbox([made]), "count")
        ran(form)
    assert [one["steps"][1]["done"] for one in seen] == [0, 1, 2]
    assert seen[0]["at"] == 2
    assert seen[0]["stage"] == "Each"
    assert form.progress["steps"][1] == {
        "name": "Each",
        "state": "completed",
        "done": 3,
        "total": 3,
        "failed": 0,
    }


# -- defined again ---------------------------------------------------------------------------


def test_a_tool_that_took_its_place_is_the_one_that_runs():
    box = make_box()
    form = RunForm(box, "backup_triage").set(cluster="eu", token="hunter-22")
    inputs = {**INPUTS, "window": {"type": "integer"}}
    del inputs["token"]
    box.add(make_box(inputs=inputs, required=["cluster", "window"])["backup_triage"])
    assert form.problems() == {"window": "is required"}
    assert [one["name"] for one in form.fields] == ["cluster", "days", "dry", "window"]
    assert form.filled == []
    ran(form.set(window=3))
    assert form.result["result"]["ran_with"]["window"] == 3


# -- secrets ---------------------------------------------------------------------------------


def test_a_secret_is_used_and_never_seen():
    used = []

    def use(scope):
        used.append(scope.args["token"])
        raise ValueError(f"bad token {scope.args['token']}")

    form = RunForm(make_box(use), "backup_triage").set(cluster="eu", token="hunter-22")
    assert form.filled == ["token"]
    assert "token" not in form.values()
    ran(form)
    assert used == ["hunter-22"]
    state = form.get_state()
    told = str([state, form._repr_mimebundle_(), repr(form), str(form), form.outcome])
    told += str([widget.get_state() for widget in form.box.children])
    told += str(form.incomplete._repr_mimebundle_())
    assert "hunter-22" not in told
    assert "given, not shown" in form._repr_mimebundle_()[0][TEXT]


def test_a_secret_comes_by_message_and_can_be_taken_back():
    form = RunForm(make_box(), "backup_triage")
    said = form.answer({"ask": "secret", "id": 1, "about": {"token": "hunter-22", "days": "x"}})
    assert said["answer"] == {"filled": ["token"]}
    assert form.entries["days"] == "7"
    form.set(token=None)
    assert form.filled == []


def test_a_plain_tools_error_does_not_quote_the_secret():
    def fail(args):
        raise ValueError(f"no such token: {args['token']}")

    schema = {"type": "object", "properties": {"token": INPUTS["token"]}}
    made = rb.define_tool(name="login", execute=fail, input_schema=schema)
    form = ran(RunForm(rb.Toolbox([made]), "login").set(token="hunter-22"))
    assert form.outcome["what"] == "ValueError: no such token: [REDACTED]"


def test_what_the_runbook_hides_is_in_no_error():
    def fail(scope):
        scope["key"] = "met-in-the-run"
        raise ValueError(f"refused for s3cretval999 and {scope['key']}")

    redact = rb.Redact(values=("s3cretval999",), keys=("key",))
    form = ran(RunForm(make_box(fail, redact=redact), "backup_triage").set(cluster="eu"))
    assert form.status == "failed"
    assert form.outcome["what"] == "ValueError: refused for [REDACTED] and [REDACTED]"
    told = str([form.get_state(), str(form), form._repr_mimebundle_(), form._bundle])
    assert "s3cretval999" not in told
    assert "met-in-the-run" not in told


def test_a_secret_edited_during_a_run_is_hidden_as_it_was_and_as_it_is(gate):
    reached = threading.Event()

    def fail(args):
        reached.set()
        gate.wait(PATIENCE)
        raise ValueError(f"{args['token']} is not other-pw-123")

    schema = {"type": "object", "properties": {"token": INPUTS["token"]}}
    made = rb.define_tool(name="login", execute=fail, input_schema=schema)
    form = RunForm(rb.Toolbox([made]), "login").set(token="hunter-22")
    form.run()
    assert reached.wait(PATIENCE)
    form.set(token="other-pw-123")
    gate.set()
    form.join(PATIENCE)
    assert form.outcome["what"] == "ValueError: [REDACTED] is not [REDACTED]"


@pytest.mark.parametrize("redact", [None, rb.Redact(keys=("token",))])
def test_a_field_that_holds_a_secret_is_in_no_trait(redact):
    token = {"type": "string"} if redact else INPUTS["token"]
    auth = {"type": "object", "properties": {"token": token}}
    given = []

    def fail(scope):
        given.append(dict(scope.args["auth"]))
        raise ValueError(f"bad token {given[0]['token']}")

    box = make_box(fail, inputs={"auth": auth}, required=(), redact=redact)
    form = RunForm(box, "backup_triage").set(auth={"token": "nested-s3cret"})
    assert form.filled == ["auth"]
    assert form.entries == {}
    ran(form)
    assert given == [{"token": "nested-s3cret"}]
    assert form.outcome["what"] == "ValueError: bad token [REDACTED]"
    assert "nested-s3cret" not in str([form.get_state(), str(form), repr(form)])
    about = {"secrets": {"auth": '{"token": 3}'}}
    said = form.answer({"ask": "run", "id": 1, "about": about})
    assert said["answer"]["begun"] is False
    assert set(said["answer"]["faults"]) == {"auth"}


def test_a_name_the_schema_does_not_tell_is_in_no_trait():
    box = make_box(
        lambda scope: None,
        inputs={"options": {"type": "object"}},
        required=(),
        redact=rb.Redact(keys=("token",)),
    )
    form = RunForm(box, "backup_triage").set(options={"token": "open-s3cret"})
    assert (form.filled, form.entries) == (["options"], {})
    assert form.problems() == {}
    ran(form)
    assert "open-s3cret" not in str([form.get_state(), str(form), form.view()])


def test_what_a_policy_hides_is_in_no_progress_and_no_fault():
    def fail(scope):
        raise ValueError("typed-s3cret and " + "x" * 175 + " literal-s3cret")

    inputs = {"token": INPUTS["token"]}
    box = make_box(fail, inputs=inputs, required=(), redact=rb.Redact(values=("literal-s3cret",)))
    form = RunForm(box, "backup_triage").set(token="typed-s3cret")
    ran(form)
    assert form.outcome["what"].startswith("ValueError: [REDACTED] and xxx")
    assert "liter" not in form.outcome["what"]
    steps = (
        StepProgress("load literal-s3cret", "completed"),
        StepProgress("typed-s3cret", "current"),
    )
    form._tell(Progress("ages", "running", steps))
    assert form.progress["stage"] == "[REDACTED]"
    assert [step["name"] for step in form.progress["steps"]] == ["load [REDACTED]", "[REDACTED]"]
    said = form.answer({"ask": "literal-s3cret", "id": 1, "about": {}})
    assert "s3cret" not in str([said, form.get_state()])


class Page:
    """What shows itself as a page of its own."""

    def __init__(self, token):
        self.token = token

    def _repr_html_(self):
        return f"<p>{html.escape(self.token)}</p>"

    def __repr__(self):
        return f"Page({self.token!r})"


@pytest.mark.parametrize("shell", [None, InteractiveShell])
@pytest.mark.parametrize("give", [dict, lambda token: [token], Page])
def test_a_plain_answer_does_not_show_the_secret_below_the_form(give, shell, monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", shell or (lambda: None))
    schema = {"type": "object", "properties": {"token": INPUTS["token"]}}
    made = rb.define_tool(
        name="login", execute=lambda args: give(token=args["token"]), input_schema=schema
    )
    form = ran(RunForm(rb.Toolbox([made]), "login").set(token='hunter<"22'))
    assert form.status == "finished"
    (output,) = form.box.children[1].outputs
    shown = html.unescape(json.dumps(output["data"])).replace("\\", "")
    assert "hunter" not in shown
    assert "[REDACTED]" in shown


def test_what_a_policy_hides_is_hidden_also_where_it_was_typed_in_another_field():
    box = make_box(inputs={"cluster": {"type": "string"}}, redact=rb.Redact(values=("hunter-22",)))
    form = RunForm(box, "backup_triage").set(cluster="at hunter-22")
    data, _ = form._repr_mimebundle_()
    assert "hunter-22" not in data[HTML] + data[TEXT]
    assert "at [REDACTED]" in data[TEXT]


def test_a_secret_can_be_a_number():
    pins = []
    schema = {"type": "object", "properties": {"pin": {"type": "integer", "writeOnly": True}}}
    made = rb.define_tool(
        name="login", execute=lambda args: pins.append(args["pin"]), input_schema=schema
    )
    form = RunForm(rb.Toolbox([made]), "login").set(pin=1234)
    assert form.problems() == {}
    assert form.entries == {}
    ran(form)
    assert pins == [1234]


# -- messages --------------------------------------------------------------------------------


def test_the_buttons_messages_are_the_methods():
    form = RunForm(make_box(), "backup_triage")
    said = form.answer({"ask": "run", "id": 1, "about": {"entries": {"cluster": ""}}})
    assert said["answer"] == {"begun": False, "faults": {"cluster": "is required"}}
    about = {"entries": {"cluster": "0", "days": "3"}, "secrets": {"token": "hunter-22"}}
    said = form.answer({"ask": "run", "id": 2, "about": about})
    assert said["answer"] == {"begun": True, "faults": {}}
    assert form.join(PATIENCE).result["result"]["ran_with"]["days"] == 3
    assert form.answer({"ask": "stop", "id": 3, "about": {}})["answer"] == {"status": "finished"}


def test_what_a_message_has_wrong_is_shown(gate):
    reached = threading.Event()
    form = RunForm(make_box(waiting(gate, reached)), "backup_triage").set(cluster="eu")
    form.run()
    said = form.answer({"ask": "run", "id": 1, "about": {}})
    assert said["fault"]["what"] == "backup_triage is running"
    gate.set()
    form.join(PATIENCE)


# -- what is shown ---------------------------------------------------------------------------


def test_the_bundle_holds_the_form_with_what_is_below_it():
    form = ran(RunForm(make_box(), "backup_triage").set(cluster="eu"))
    data, _ = form._repr_mimebundle_()
    assert set(data) == {WIDGET, HTML, TEXT}
    assert data[WIDGET]["model_id"] == form.box.model_id
    top, below = form.box.children
    assert top is form
    (output,) = below.outputs
    assert output["data"][TEXT] == str(form.result)
    assert "rbnb:" not in output["data"][HTML]  # no form for machines in saved state
    assert set(form._repr_mimebundle_(include=[TEXT])[0]) == {TEXT}


def test_each_answer_takes_the_place_of_the_one_before():
    broken = threading.Event()

    def fail(scope):
        if broken.is_set():
            raise KeyError("age_days")

    form = RunForm(make_box(fail), "backup_triage").set(cluster="eu")
    below = form.box.children[1]
    assert below.outputs == ()
    ran(form)
    assert "Envelope" in below.outputs[0]["data"][TEXT]
    broken.set()
    ran(form)
    (output,) = below.outputs
    assert output["data"][TEXT].startswith("Run triage failed at work: KeyError")


def test_the_static_view_has_fields_and_answer():
    form = RunForm(make_box(), "backup_triage")
    data, _ = form._repr_mimebundle_()
    assert data[TEXT].splitlines()[0] == (
        "RunForm backup_triage ready · 4 fields, 1 problem · cluster is required"
    )
    for word in ("cluster", "required", "is required"):
        assert word in data[HTML]
    ran(form.set(cluster="eu"))
    data, _ = form._repr_mimebundle_()
    assert data[TEXT].splitlines()[0] == "RunForm backup_triage finished · 4 fields"
    assert "ran_with" in data[HTML]


def test_the_static_view_stands_untrusted():
    inputs = {"x": {"type": "string", "description": HOSTILE, "title": HOSTILE}}
    form = RunForm(make_box(inputs=inputs, required=()), "backup_triage").set(x=HOSTILE)
    html = form._repr_mimebundle_()[0][HTML]
    assert set(dropped(html)) <= HINTS
    assert reading(sanitized(html)) == reading(html)
    assert "<img" not in html
    assert "\u202e" not in html
    assert html == form._repr_mimebundle_()[0][HTML]


def test_an_error_is_in_the_static_view_with_its_stage():
    def fail(scope):
        raise KeyError("age_days")

    form = ran(RunForm(make_box(fail), "backup_triage").set(cluster="eu"))
    text = form._repr_mimebundle_()[0][TEXT]
    assert text.startswith("RunForm backup_triage failed")
    assert "at Work : KeyError" in text or "at Work: KeyError" in text


def test_under_the_static_setting_there_is_no_widget():
    with settings(static=True):
        form = ran(RunForm(make_box(), "backup_triage").set(cluster="eu"))
        assert set(form._repr_mimebundle_()[0]) == {HTML, TEXT}
    assert form.comm is None
    assert form._box is None


def test_an_absence_is_shown_as_one():
    gone = rb.absent("jobs of acme", checked=["the inventory"])
    assert "no verdict" in bundle_for(gone, "inventory")[HTML]
    assert "inventory" in bundle_for(gone, "inventory")[TEXT]


def plain(give):
    """Make a form of a tool that gives a plain value."""

    @rb.tool(description="Gives it.")
    def giving(token: str = ""):
        return give(token)

    return RunForm(rb.Toolbox([giving]), "giving")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 2], "[1, 2]"),
        ("<b>plain</b>", "<b>plain</b>"),
        (rb.absent("jobs of acme", checked=[rb.Item("the list", why="empty")]), "jobs of acme"),
        (0, "0"),
    ],
)
def test_an_answer_that_has_no_view_is_in_the_static_view(value, said):
    form = ran(plain(lambda token: value))
    data, _ = form._repr_mimebundle_()
    assert said in data[TEXT]
    assert "<b>" not in data[HTML]


def test_a_long_answer_is_cut_in_the_static_view():
    form = ran(plain(lambda token: "x" * 100_000))
    assert len(form._repr_mimebundle_()[0][HTML]) < 30_000


def test_a_widget_as_an_answer_is_shown_below_and_displays_nothing_itself(monkeypatch):
    monkeypatch.setattr("IPython.display.display", None)
    inner = plain(lambda token: 1)
    assert WIDGET in bundle_for(inner)


def test_values_of_other_kinds_are_shown_as_what_they_are():
    assert bundle_for("a\x1b[0m")[TEXT] == "'a\\x1b[0m'"
    assert bundle_for(None) == {TEXT: "None"}


def test_it_is_small_enough():
    assert len(RunForm._esm.encode()) < MAX_JS
    assert len(RunForm._css.encode()) < MAX_CSS
    form = RunForm(make_box(), "backup_triage")
    state = {key: value for key, value in form.get_state().items() if key != "layout"}
    assert len(json.dumps(state)) < MAX_STATE


def test_the_script_writes_text_alone():
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in RunForm._esm


def test_the_same_form_has_the_same_state():
    def state():
        found = RunForm(make_box(), "backup_triage").set(cluster="eu").get_state()
        return {key: value for key, value in found.items() if key != "layout"}

    assert state() == state()


def test_closing_ends_the_run(gate):
    reached = threading.Event()
    form = RunForm(make_box(waiting(gate, reached)), "backup_triage").set(cluster="eu")
    form.run()
    assert reached.wait(PATIENCE)
    form.close()
    assert form.join(PATIENCE).status == "stopped"


def test_the_static_view_of_an_answer_has_its_headline():
    rules = rb.RuleSet("r", "v1", [rb.Rule({"age": {"gt": 7}}, "old")], "fresh")
    box = rb.Toolbox()
    rows = [{"name": "a", "age": 2}, {"name": "b", "age": 30}]
    rb.triage(rows, rules, subject="name", source="rows, 2", toolbox=box)
    form = ran(RunForm(box, "triage"))
    card, answer = form.view(), form.result.view()
    assert (card.heading, card.badges) == (answer.heading, answer.badges)
    assert "1 old" in form._repr_mimebundle_()[0][HTML]


def test_a_check_by_message_says_what_is_wrong():
    form = RunForm(make_box(), "backup_triage")
    said = form.answer({"ask": "check", "id": 1, "about": {"entries": {"cluster": "0"}}})
    assert said["answer"] == {"faults": {}}
    said = form.answer({"ask": "check", "id": 2, "about": {"entries": {"days": "0"}}})
    assert said["answer"] == {"faults": {"days": "must be at least 1, and is 0"}}


# -- the line of plain text -------------------------------------------------------------------


def line(form):
    return str(form).replace("\n", " ")


def test_what_keeps_it_from_running_stands_in_the_text():
    form = RunForm(make_box(), "backup_triage")
    assert form.run() is False
    assert line(form) == "RunForm backup_triage ready · 4 fields, 1 problem · cluster is required"


def test_many_problems_are_counted():
    inputs = {name: {"type": "integer"} for name in "abcde"}
    form = RunForm(make_box(inputs=inputs, required=tuple("abcde")), "backup_triage")
    assert line(form).endswith("a is required; b is required; c is required and 2 more")


def failing(scope):
    raise ValueError("inventory is down")


def test_the_stage_that_failed_stands_in_the_text_until_the_values_change():
    form = ran(RunForm(make_box(failing), "backup_triage").set(cluster="eu"))
    assert form.status == "failed"
    assert line(form).endswith("· at Work: ValueError: inventory is down")
    form.set(cluster="us")
    assert line(form).endswith("· of earlier values: at Work: ValueError: inventory is down")
    form.set(cluster="eu")
    assert "of earlier values" not in line(form)


def test_a_failure_of_earlier_values_is_marked_in_what_a_reader_without_a_kernel_sees():
    form = ran(RunForm(make_box(failing), "backup_triage").set(cluster="eu"))
    assert "of earlier values" not in form._repr_mimebundle_()[0][HTML]
    form.set(cluster="us")
    assert "of earlier values" in form._repr_mimebundle_()[0][HTML]


def test_an_answer_of_earlier_values_is_marked_too():
    form = ran(RunForm(make_box(), "backup_triage").set(cluster="eu"))
    assert "earlier" not in line(form)
    assert line(form.set(cluster="us")).endswith("· the answer is of earlier values")


def test_no_secret_stands_in_the_text():
    def leaking(scope):
        raise ValueError(f"cannot log in with {scope.args['token']}")

    form = ran(RunForm(make_box(leaking), "backup_triage").set(cluster="eu", token="hunter-22"))
    assert "hunter-22" not in line(form)
    assert "at Work" in line(form)


def test_the_state_stays_small_however_many_values_there_are():
    names = [f"host-{n}" for n in range(20_000)]
    box = make_box(inputs={"host": {"enum": names}, "site": {"enum": names}}, required=("host",))
    form = RunForm(box, "backup_triage").set(host="nowhere")
    assert set(form.problems()) == {"host"}
    state = {key: value for key, value in form.get_state().items() if key not in ("_esm", "_css")}
    assert len(json.dumps(state).encode()) <= MAX_STATE // 8
    assert form.set(host="host-19999").problems() == {}
