"""The magics, in a real interactive shell and in a real kernel."""

import asyncio
from types import SimpleNamespace

import nbformat
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, LoadError, RuleError
from runbook_nb.magics import RunbookMagics, box_with, boxes_in, complete

RULES = """rules:
  - when: {age_days: {gt: 7}}
    then: unprotected
    label: last backup older than 7 days
default: {branch: protected, label: last backup within 7 days}
"""


def make_box(answer="none"):
    """Make a toolbox with one runbook that says what it was given, and one other tool."""

    def procedure(tools):
        def say(scope):
            scope["report"] = {"given": dict(scope.args), "answer": answer}

        return rb.flow_chart("say", say, id="say").build()

    schema = {
        "type": "object",
        "properties": {
            "cluster": {"type": "string"},
            "days": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
            "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }
    runbook = rb.runbook_as_tool(
        name="backup_triage",
        description="Says what it was given.",
        procedure=procedure,
        result_kind="report/said",
        input_schema=schema,
    )
    other = rb.define_tool(name="ages", execute=lambda args: [2, 30])
    return rb.Toolbox([runbook, other])


@pytest.fixture
def shell(loaded):
    """Give a session with a toolbox."""
    loaded.user_ns["box"] = make_box()
    return loaded


@pytest.fixture(autouse=True)
def settings_kept():
    """Put the settings back that a magic sets for the process."""
    theme, static = rb.settings.theme, rb.settings.static
    yield
    rb.settings.theme, rb.settings.static = theme, static


def given(envelope):
    return dict(envelope["result"]["given"])


# -- loading ---------------------------------------------------------------------------------


def test_importing_the_package_registers_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell.instance(config=config)
    try:
        made.run_cell("import runbook_nb as rb; rb.Toolbox")
        assert made.find_line_magic("runbook") is None
        assert made.find_cell_magic("rules") is None
    finally:
        InteractiveShell.clear_instance()


def test_unloading_takes_everything_out(shell):
    assert shell.find_line_magic("runbook") is not None
    shell.run_line_magic("unload_ext", "runbook_nb")
    for name in ("runbook", "runbook_theme", "runbook_static", "step"):
        assert shell.find_line_magic(name) is None
        assert f"%{name}" not in shell.strdispatchers["complete_command"].strs
    for name in ("rules", "playbook", "step"):
        assert shell.find_cell_magic(name) is None
    assert "%%step" not in shell.strdispatchers["complete_command"].strs


def test_reloading_leaves_one_completer(shell):
    shell.run_line_magic("reload_ext", "runbook_nb")
    assert len(list(shell.strdispatchers["complete_command"].s_matches("%runbook"))) == 1
    assert shell.find_line_magic("runbook") is not None


def test_each_magic_tells_its_arguments_and_its_python(shell):
    for name in ("runbook", "runbook_theme", "runbook_static"):
        help_text = shell.find_line_magic(name).__doc__
        assert "In Python:" in help_text
        assert f"%{name}" in help_text
    assert "NAME VERSION" in shell.find_cell_magic("rules").__doc__


# -- %runbook --------------------------------------------------------------------------------


def test_a_runbook_is_run_and_its_answer_given(shell):
    answer = shell.run_line_magic("runbook", "backup_triage --arg cluster=eu-1")
    assert isinstance(answer, rb.Envelope)
    assert given(answer) == {"cluster": "eu-1"}
    by_function = shell.user_ns["box"].call_sync("backup_triage", {"cluster": "eu-1"})
    assert given(answer) == given(by_function)


def test_the_cell_shows_the_answer_and_keeps_it(shell):
    result = shell.run_cell("%runbook backup_triage --as answer")
    assert result.success
    assert isinstance(result.result, rb.Envelope)
    assert shell.user_ns["answer"] is result.result


def test_a_semicolon_silences_the_cell(shell):
    result = shell.run_cell("%runbook backup_triage --as answer;")
    assert result.success
    assert result.result is None
    assert isinstance(shell.user_ns["answer"], rb.Envelope)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--arg cluster=7", {"cluster": "7"}),
        ("--arg days=7", {"days": 7}),
        ("--arg 'cluster=eu 1'", {"cluster": "eu 1"}),
        ("--arg cluster='eu 1'", {"cluster": "eu 1"}),
        ("--arg cluster=a=b", {"cluster": "a=b"}),
        ("--arg cluster=", {"cluster": ""}),
        ("""--arg 'tags=["a", "b"]'""", {"tags": ["a", "b"]}),
        ("--arg since=null", {"since": None}),
        ("--arg since=2026-01-02", {"since": "2026-01-02"}),
        ("--arg cluster=eu --arg days=3", {"cluster": "eu", "days": 3}),
    ],
)
def test_values_are_read_as_the_tool_declares_them(shell, line, expected):
    assert given(shell.run_line_magic("runbook", f"backup_triage {line}")) == expected


def test_braces_look_a_variable_up(shell):
    shell.user_ns["wanted"] = ["x", "y"]
    assert given(shell.run_cell("%runbook backup_triage --arg tags={wanted}").result) == {
        "tags": ["x", "y"]
    }


@pytest.mark.parametrize(
    "value", ["{__import__('os').getcwd()}", "$HOME", "{1+1}", "{box.session}"]
)
def test_nothing_is_ever_evaluated(shell, value):
    answer = shell.run_cell(f'%runbook backup_triage --arg "cluster={value}"').result
    assert given(answer) == {"cluster": value}


def test_an_unknown_variable_names_the_near_one(shell):
    shell.user_ns["wanted"] = 1
    with pytest.raises(DefinitionError, match="no variable 'wnated'; did you mean 'wanted'"):
        shell.run_line_magic("runbook", "backup_triage --arg days={wnated}")


def test_what_does_not_fit_is_told_by_the_tool_itself(shell):
    with pytest.raises(rb.ToolRefused, match="days: must be integer, not string"):
        shell.run_line_magic("runbook", "backup_triage --arg days=soon")
    with pytest.raises(rb.ToolRefused, match="did you mean 'cluster'"):
        shell.run_line_magic("runbook", "backup_triage --arg clutser=x")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "required: NAME"),
        ("backup_triage --arg cluster", "write it as name=value"),
        ("backup_triage --arg", "expected one argument"),
        ("backup_triage --as 2x", "cannot be called that"),
        ("backup_triage --as class", "cannot be called that"),
        ("backup_triage 'open", "no closing quotation"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(shell, line, said):
    with pytest.raises(UsageError, match=said):
        shell.run_line_magic("runbook", line)


def test_a_runbook_defined_again_is_the_one_that_runs(shell):
    shell.user_ns["box"] = make_box("second")
    answer = shell.run_line_magic("runbook", "backup_triage")
    assert answer["result"]["answer"] == "second"
    shell.user_ns["box"].add(make_box("third")["backup_triage"])
    answer = shell.run_line_magic("runbook", "backup_triage")
    assert answer["result"]["answer"] == "third"


def test_it_works_inside_a_running_loop(shell):
    async def cell():
        return shell.run_line_magic("runbook", "backup_triage --arg days=3")

    assert given(asyncio.run(cell())) == {"days": 3}


# -- which toolbox ---------------------------------------------------------------------------


def test_without_a_toolbox_it_says_how_to_make_one():
    with pytest.raises(DefinitionError, match=r"no toolbox.*rb\.Toolbox") as caught:
        box_with({"n": 1}, "backup_triage")
    assert caught.value.code == "no_toolbox"


def test_an_unknown_name_names_the_near_one():
    with pytest.raises(DefinitionError, match="did you mean 'backup_triage'") as caught:
        box_with({"box": make_box()}, "backup_traige")
    assert caught.value.code == "unknown_tool"


def test_of_several_toolboxes_the_line_says_which(shell):
    shell.user_ns["second"] = make_box("second")
    with pytest.raises(DefinitionError, match="box and second all have") as caught:
        shell.run_line_magic("runbook", "backup_triage")
    assert caught.value.code == "several_toolboxes"
    answer = shell.run_line_magic("runbook", "backup_triage --box second")
    assert answer["result"]["answer"] == "second"
    with pytest.raises(DefinitionError, match="not a toolbox"):
        box_with({"n": 1}, "backup_triage", "n")


def test_one_toolbox_under_two_names_is_one(shell):
    shell.user_ns["same"] = shell.user_ns["box"]
    shell.user_ns["_3"] = make_box("an old output")
    assert [name for name, _ in boxes_in(shell.user_ns)] == ["box"]
    assert shell.run_line_magic("runbook", "backup_triage")["result"]["answer"] == "none"


def test_two_toolboxes_with_other_runbooks_do_not_meet():
    ages = rb.Toolbox([rb.define_tool(name="only_ages", execute=lambda args: 1)])
    assert box_with({"a": ages, "b": make_box()}, "only_ages") is ages


# -- completion ------------------------------------------------------------------------------


def completed(shell, line):
    """Ask as a front end does."""
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(line, len(line))]


def test_names_of_runbooks_are_completed(shell):
    assert completed(shell, "%runbook back") == ["backup_triage"]
    assert "ages" not in completed(shell, "%runbook ")


def test_arguments_toolboxes_and_words_are_completed(shell):
    assert completed(shell, "%runbook backup_triage --arg cl") == ["cluster="]
    assert completed(shell, "%runbook backup_triage --box b")[:1] == ["box"]
    assert completed(shell, "%runbook_theme d") == ["dark"]
    assert completed(shell, "%runbook_static o")[-2:] == ["on", "off"]


def test_completion_never_raises():
    class Hostile(rb.Toolbox):
        def __iter__(self):
            raise RuntimeError("no")

    event = SimpleNamespace(text_until_cursor="%runbook ")
    assert complete(SimpleNamespace(user_ns={"box": Hostile()}), event) == []
    assert complete(object(), object()) == []


def test_completion_asks_no_provider(shell):
    asked = []
    shell.user_ns["box"] = rb.Toolbox(providers=[lambda: asked.append(1) or []])
    completed(shell, "%runbook ")
    assert asked == []


# -- %%rules ---------------------------------------------------------------------------------


def test_a_cell_of_yaml_gives_the_rule_set(shell):
    made = shell.run_cell_magic("rules", "health-signal v1 --as posture", RULES)
    told = f"name: health-signal\nversion: v1\n{RULES}"
    assert made == rb.RuleSet.loads(told, "yaml")
    assert made.digest == rb.RuleSet.loads(told, "yaml").digest
    assert shell.user_ns["posture"] is made


def test_the_cell_is_data_and_its_value_the_result(shell):
    result = shell.run_cell(f"%%rules health-signal v1\n{RULES}")
    assert isinstance(result.result, rb.RuleSet)


def test_problems_name_the_line_of_the_cell(shell):
    bad = RULES.replace("gt: 7", "gtt: 7")  # line 2 of the text, line 3 of the cell
    with pytest.raises(RuleError, match="line 3, rules") as caught:
        shell.run_cell_magic("rules", "health-signal v1", bad)
    assert "did you mean 'gt'" in str(caught.value)
    with pytest.raises(LoadError, match="line 4"):
        shell.run_cell_magic("rules", "health-signal v1", "rules:\n  - then: x\n  bad: [1\n")


def test_a_name_said_twice_must_be_the_same(shell):
    same = f"name: health-signal\n{RULES}"
    assert shell.run_cell_magic("rules", "health-signal v1", same).name == "health-signal"
    with pytest.raises(LoadError, match=r"line 2 says that the name is 'other'.*say it once"):
        shell.run_cell_magic("rules", "health-signal v1", f"name: other\n{RULES}")


@pytest.mark.parametrize("cell", ["\n", "- 1\n", "just words\n"])
def test_a_cell_without_rules_is_refused(shell, cell):
    with pytest.raises((LoadError, RuleError)):
        shell.run_cell_magic("rules", "health-signal v1", cell)


# -- the settings ----------------------------------------------------------------------------


def test_the_theme_is_set_and_said(shell):
    assert shell.run_line_magic("runbook_theme", "dark") == "dark" == rb.settings.theme
    assert shell.run_line_magic("runbook_theme", "") == "dark"
    assert shell.run_line_magic("runbook_theme", "auto") == "auto" == rb.settings.theme
    with pytest.raises(UsageError, match="invalid choice"):
        shell.run_line_magic("runbook_theme", "blue")


def test_live_updates_are_switched(shell):
    assert shell.run_line_magic("runbook_static", "on") == "on"
    assert rb.settings.static is True
    assert shell.run_line_magic("runbook_static", "off") == "off"
    assert rb.settings.static is False
    with pytest.raises(UsageError, match="invalid choice"):
        shell.run_line_magic("runbook_static", "maybe")


def test_the_magics_work_without_a_shell():
    assert RunbookMagics(shell=None).names == {}


# -- in a kernel -----------------------------------------------------------------------------

SETUP = """import runbook_nb as rb

def procedure(tools):
    def say(scope):
        scope["report"] = {"given": dict(scope.args)}
    return rb.flow_chart("say", say, id="say").build()

box = rb.Toolbox([rb.runbook_as_tool(name="say_it", description="Says it.",
                                     procedure=procedure, result_kind="report/said")])
"""


def test_a_notebook_runs_them(tmp_path):
    from nbclient import NotebookClient

    cells = [
        "%load_ext runbook_nb",
        SETUP,
        "%runbook say_it --as answer",
        "answer['result']['given']",
        f"%%rules health-signal v1 --as posture\n{RULES}",
        "%runbook_theme",
        SETUP,  # the defining cell once more: it replaces what it defined
        "%runbook say_it",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute(cwd=str(tmp_path))
    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[0] == outputs[1] == outputs[6] == []
    for shown in (outputs[2], outputs[4], outputs[7]):
        assert set(shown[0].data) == {"text/plain", "text/html"}
    assert outputs[2][0].data["text/plain"].startswith("Envelope say_it")
    assert outputs[4][0].data["text/plain"].startswith("RuleSet health-signal v1")
    assert outputs[5][0].data["text/plain"] == "'auto'"
