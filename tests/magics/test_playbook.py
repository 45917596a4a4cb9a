"""A person who works through a notebook is held to the plan, cell by cell."""

import re
from types import SimpleNamespace

import nbformat
import pytest
from IPython.core.error import UsageError

import runbook_nb as rb
from runbook_nb.errors import DefinitionError, PlaybookError, PlaybookLoadError
from runbook_nb.magics.playbook import OPTIONS, complete_step, plan_of, plans_in
from runbook_nb.playbooks.byhand import StepByHand

BOOK = """name: Response
steps:
- id: look
  description: Look at the sign-ins.
  expected_tools: [scan]
  min_tool_calls: 2
  required_probes:
  - {name: sign-ins, match: index=auth}
- id: judge
  description: Decide whether it is an incident.
  kind: manual
- id: ok
  description: Somebody else agrees.
  kind: approval
- id: act
  description: Act.
  expected_tools: [isolate, restore]
  max_tool_calls: 3
"""


def made_plan(**options):
    return rb.PlaybookEnforcer.from_playbook(rb.load_playbook(f"id: ir\n{BOOK}"), **options)


@pytest.fixture
def shell(loaded):
    """Give a session with a plan in which R. Ito works."""
    loaded.user_ns["plan"] = made_plan()
    loaded.user_ns["me"] = "R. Ito"
    return loaded


def cell(shell, line, body="1 + 1\n"):
    """Run a cell and give what it shows; it may not raise."""
    result = shell.run_cell(f"%%step {line}\n{body}")
    result.raise_error()
    return shell.user_ns["_"] if result.result is None else result.result


def calls(shell):
    return [(one.tool, one.step_id, one.outcome) for one in shell.user_ns["plan"].calls]


def past(shell, step):
    """Bring the plan to a step."""
    plan = shell.user_ns["plan"]
    while plan.current_step.id != step:
        act = plan.approve if plan.current_step.kind == "approval" else plan.complete
        act(plan.current_step.id, by="R. Ito")


# -- %%playbook ------------------------------------------------------------------------------


def test_a_cell_is_read_as_a_playbook(loaded):
    book = loaded.run_cell(f"%%playbook ir --as book\n{BOOK}").result
    assert loaded.user_ns["book"] is book
    assert (book.id, [step.id for step in book.steps]) == ("ir", ["look", "judge", "ok", "act"])
    assert book == rb.load_playbook(f"id: ir\n{BOOK}")


def test_what_is_wrong_names_its_line_in_the_cell(loaded):
    wrong = BOOK.replace("description: Act.", "descripton: Act.")
    lines = ["%%playbook ir", *wrong.splitlines()]
    at = lines.index("  descripton: Act.") + 1
    with pytest.raises(PlaybookLoadError) as refused:
        loaded.run_cell_magic("playbook", "ir", wrong)
    assert f"line {at}, " in str(refused.value)
    assert "did you mean 'description'" in str(refused.value)
    with pytest.raises(PlaybookLoadError, match="line 2"):
        loaded.run_cell_magic("playbook", "ir", "id: other\nname: R")


# -- a cell is a call ------------------------------------------------------------------------


def test_a_cell_is_a_call_of_its_step_and_says_who_did_it(shell):
    work = cell(shell, "look --by 'R. Ito' --note 'both hosts'", "found = 'index=auth'\nfound\n")
    assert isinstance(work, StepByHand)
    assert calls(shell) == [("scan", "look", "ok")]
    (call,) = shell.user_ns["plan"].calls
    assert call.arguments["by"] == "R. Ito"
    assert call.arguments["note"] == "both hosts"
    assert call.arguments["cell"] == "found = 'index=auth'\nfound\n"
    assert call.matched == ("sign-ins",)
    assert (work.word, work.result, shell.user_ns["found"]) == ("done", "index=auth", "index=auth")
    assert work.settlement.closed is False
    assert "step stays open" in str(work)


def test_who_it_is_is_said_once_and_never_guessed(shell):
    with pytest.raises(UsageError, match="say who does it"):
        shell.run_cell_magic("step", "look", "1")
    cell(shell, "look --by {me}")
    assert cell(shell, "look").by == "R. Ito"
    shell.user_ns["other"] = made_plan()
    with pytest.raises(UsageError, match="say who does it, once for each plan"):
        shell.run_cell_magic("step", "look --enforcer other", "1")


def test_a_refused_cell_is_not_run_and_says_why_and_what_to_do(shell):
    work = cell(shell, "act --by {me} --tool isolate", "ran = True\n")
    assert "ran" not in shell.user_ns
    assert work.word == "refused"
    text = str(work)
    assert "'isolate' is not a tool of step 'look'" in text
    assert "Call 'scan' now." in text
    assert "Now: look. Look at the sign-ins." in text
    assert calls(shell) == [("isolate", "look", "refused")]


def test_a_cell_that_raises_is_a_failed_call_and_its_error_the_cells(shell, capsys):
    result = shell.run_cell("%%step look --by {me}\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert calls(shell) == [("scan", "look", "error")]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "ZeroDivisionError" in shown
    assert "bodies.py" not in shown, "what runs a cell is none of its reader's business"


@pytest.mark.parametrize("body", ["1 +", "import asyncio\nawait asyncio.sleep(0)"])
def test_what_cannot_be_run_at_all_is_no_call(shell, body):
    assert not shell.run_cell(f"%%step look --by {{me}}\n{body}").success
    assert calls(shell) == []


def test_a_cell_may_use_what_cells_may_use(shell):
    cell(shell, "look --by {me}", "%time y = 1\ny + 1")
    assert shell.user_ns["y"] == 1
    assert cell(shell, "look", "'silent'; 'too';").result is None


def test_the_value_of_a_cell_is_shown_or_kept(shell, capsys):
    cell(shell, "look --by {me}", "'seen ' + 'here'")
    assert "seen here" in capsys.readouterr().out
    cell(shell, "look --as kept", "'seen ' + 'there'")
    assert shell.user_ns["kept"] == "seen there"
    with pytest.raises(UsageError, match="cannot be called that"):
        shell.run_cell_magic("step", "look --as 1x", "1")


def test_arguments_are_where_evidence_is_looked_for(shell):
    shell.user_ns["query"] = {"index": "auth"}
    cell(shell, "look --by {me} --arg 'host=web-3' --arg query={query}")
    (call,) = shell.user_ns["plan"].calls
    assert (call.arguments["host"], call.arguments["query"]) == ("web-3", {"index": "auth"})
    assert call.matched == ("sign-ins",)
    with pytest.raises(UsageError, match="name=value"):
        shell.run_cell_magic("step", "look --arg host", "1")


# -- a cell once more ------------------------------------------------------------------------


def test_a_cell_run_again_is_another_call_while_its_step_is_open(shell):
    for times in (1, 2):
        work = cell(shell, "look --by {me}", "'index=auth'")
        assert len(calls(shell)) == times
    assert work.settlement.closed


def test_a_cell_of_a_closed_step_is_not_run_again_and_that_is_no_error(shell):
    past(shell, "judge")
    before = shell.user_ns["plan"].events
    work = cell(shell, "look --by {me}", "ran = True")
    assert "ran" not in shell.user_ns
    assert work.word == "closed"
    assert "Now: judge." in str(work)
    assert shell.user_ns["plan"].events == before, "nothing went against the plan"
    again = cell(shell, "look --again", "ran = True")
    assert shell.user_ns["ran"] is True
    assert again.word == "again"
    assert "outside the plan" in str(again)
    assert shell.user_ns["plan"].events == before


def test_a_whole_notebook_run_twice_changes_nothing_the_second_time(shell):
    lines = [
        ("look --by {me}", "'index=auth'"),
        ("look", "'host=web-3'"),
        ("judge --done --note 'it is one'", "verdict = 1"),
        ("ok --done --by 'M. Osei'", "agreed = 1"),
        ("act --tool isolate", "done = 1"),
        ("act --tool restore", "done = 2"),
    ]
    for line, body in lines:
        assert cell(shell, line, body).word == "done"
    plan = shell.user_ns["plan"]
    assert plan.is_complete
    before = plan.events
    for line, body in lines:
        assert cell(shell, line, body).word == "closed"
    assert plan.events == before
    assert plan.finish().verdict == "pass"


# -- steps that a person closes --------------------------------------------------------------


def test_a_manual_step_is_closed_with_a_note(shell):
    past(shell, "judge")
    work = cell(shell, "judge --by {me}", "verdict = 'incident'")
    assert shell.user_ns["verdict"] == "incident"
    assert not work.is_closed
    assert calls(shell) == [], "a step without tools has no calls"
    assert "%step … --done" in str(work)
    closed = shell.run_line_magic("step", "judge --done --note 'it is one'")
    assert closed.is_closed
    assert shell.user_ns["plan"].plan.step_executions["judge"].result == "it is one"
    event = shell.user_ns["plan"].events[-1]
    assert (event.kind, event.by, event.who, event.note) == (
        "closed",
        "person",
        "R. Ito",
        "it is one",
    )
    assert event.at is not None


def test_an_approval_is_given_by_its_cell(shell):
    past(shell, "ok")
    shell.run_line_magic("step", "ok --done --by 'M. Osei' --note 'seen'")
    (event,) = [one for one in shell.user_ns["plan"].events if one.kind == "approved"]
    assert (event.who, event.note) == ("M. Osei", "seen")
    assert shell.user_ns["plan"].current_step.id == "act"


def test_who_closes_a_step_speaks_for_that_line_alone(shell):
    cell(shell, "look --by {me}")
    refused = shell.run_line_magic("step", "ok --done --by 'M. Osei'")
    assert refused.word == "refused"
    assert cell(shell, "look").by == "R. Ito"
    past(shell, "judge")
    assert shell.run_line_magic("step", "judge --done").by == "R. Ito"


def test_an_approval_is_nobodys_who_is_not_named(shell):
    cell(shell, "look --by {me}")
    past(shell, "ok")
    assert shell.run_line_magic("step", "ok").by == "R. Ito"  # asks, and gives nothing
    with pytest.raises(UsageError, match="who approves it"):
        shell.run_line_magic("step", "ok --done")
    assert not [one for one in shell.user_ns["plan"].events if one.kind == "approved"]


def test_an_approval_is_declined_by_its_line(shell):
    past(shell, "ok")
    work = shell.run_line_magic("step", "ok --decline --by 'M. Osei' --note 'too early'")
    assert work.word == "declined"
    assert "was declined by 'M. Osei': too early" in str(work)
    assert shell.user_ns["plan"].report().declined == {"ok": ("M. Osei", "too early")}
    again = shell.run_line_magic("step", "ok --done --by 'M. Osei'")
    assert again.word == "refused"


def test_who_declines_is_named_in_the_line(shell):
    cell(shell, "look --by {me}")
    past(shell, "ok")
    with pytest.raises(UsageError, match="who declines it"):
        shell.run_line_magic("step", "ok --decline")


def test_what_is_no_approval_is_not_declined(shell):
    work = shell.run_line_magic("step", "look --decline --by {me}")
    assert work.word == "refused"
    assert "not one that is approved" in str(work)


def test_an_optional_step_is_passed_over_with_a_reason(loaded):
    steps = "\n".join(
        f"- {{id: {name}, description: D., expected_tools: [{tools}], required: {required}}}"
        for name, tools, required in (("warn", "mail, call", "false"), ("act", "cordon", "true"))
    )
    plan = rb.PlaybookEnforcer.from_playbook(rb.load_playbook(f"id: ir\nname: R\nsteps:\n{steps}"))
    loaded.user_ns.update(plan=plan, why="all know")
    work = loaded.run_line_magic("step", "warn --skip {why} --by 'R. Ito'")
    assert work.word == "skipped"
    (event,) = [one for one in plan.events if one.kind == "skipped"]
    assert (event.step_id, event.reason, event.who) == ("warn", "all know", "R. Ito")
    required = loaded.run_line_magic("step", "act --skip 'no need' --by 'R. Ito'")
    assert required.word == "refused"
    assert "is required, and cannot be passed over" in str(required)
    assert plan.current_step.id == "act"


def test_only_the_step_at_the_pointer_is_passed_over(shell):
    work = shell.run_line_magic("step", "judge --skip 'no need' --by {me}")
    assert work.word == "refused"
    assert "not the turn" in str(work)


def test_a_step_is_left_out_in_a_line_of_its_own(shell):
    with pytest.raises(UsageError, match="line of its own"):
        shell.run_cell_magic("step", "look --skip no --by {me}", "1")
    with pytest.raises(UsageError, match="one of --done"):
        shell.run_line_magic("step", "look --skip no --done --by {me}")


def test_a_step_is_not_closed_before_its_turn(shell):
    work = shell.run_line_magic("step", "judge --done --by {me}")
    assert work.word == "refused"
    assert "not the turn" in str(work)
    assert shell.user_ns["plan"].current_step.id == "look"


def test_a_line_without_a_cell_says_what_is_asked_and_changes_nothing(shell):
    before = shell.user_ns["plan"].events
    text = str(shell.run_line_magic("step", "look --by {me}"))
    assert "It takes at least 2 calls." in text
    assert shell.user_ns["plan"].events == before


def test_a_stuck_step_is_left_by_a_person(shell):
    plan = made_plan(policy={"cap_counts": "all", "on_cap": "fail"})
    shell.user_ns["plan"] = plan
    past(shell, "act")
    for _ in range(3):
        assert not shell.run_cell("%%step act --by {me} --tool isolate\n1 / 0").success
    assert plan.is_stuck
    work = cell(shell, "act --tool isolate", "ran = True")
    assert "ran" not in shell.user_ns
    assert "stuck" in str(work)
    assert "A person may close the step" in " ".join(str(work).split())
    shell.run_line_magic("step", "act --done --tool isolate --note 'pulled the cable'")
    assert plan.is_complete
    assert plan.finish().verdict == "incomplete", "a note is no successful call"


# -- which plan, which step ------------------------------------------------------------------


def test_the_line_says_which_plan_where_there_are_several(shell):
    plan = shell.user_ns["plan"]
    shell.user_ns["same"] = plan
    assert plan_of(shell.user_ns) is plan
    assert [name for name, _ in plans_in(shell.user_ns)] == ["plan"]
    shell.user_ns["other"] = made_plan()
    with pytest.raises(DefinitionError, match="say which: --enforcer plan"):
        shell.run_cell_magic("step", "look --by {me}", "1")
    assert cell(shell, "look --by {me} --enforcer plan").enforcer is plan


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("look --by x --enforcer nobody", "no variable 'nobody'"),
        ("look --by x --enforcer me", "me is str, not an enforcer; the enforcers are plan"),
        ("lok --by x", "did you mean 'look'"),
        ("act --by x", "say which of them this is: tool='isolate'"),
        ("look --by ' '", "give by= the name"),
    ],
)
def test_a_line_that_means_nothing_teaches_another(shell, line, words):
    with pytest.raises((DefinitionError, PlaybookError), match=re.escape(words)):
        shell.run_cell_magic("step", line, "1")
    assert calls(shell) == []


def test_without_a_plan_it_says_how_to_make_one(loaded):
    with pytest.raises(DefinitionError, match="from_playbook"):
        loaded.run_cell_magic("step", "look --by x", "1")


def test_the_line_is_completed(shell):
    def offered(text):
        return complete_step(shell, SimpleNamespace(text_until_cursor=text))

    assert offered("%%step ") == ["look", "judge", "ok", "act"]
    assert offered("%%step act --tool ") == ["isolate", "restore"]
    assert offered("%step look --enforcer ") == ["plan"]
    assert offered("%step look ") == list(OPTIONS)
    assert complete_step(None, None) == []


def test_each_tells_its_python(shell):
    for name in ("step", "playbook"):
        assert "In Python:" in shell.find_cell_magic(name).__doc__
    assert set(re.findall(r"--\w+", shell.find_cell_magic("step").__doc__)) >= set(OPTIONS)


# -- in a kernel -----------------------------------------------------------------------------

SETUP = f"""import runbook_nb as rb
rb.settings.static = False
plan = rb.PlaybookEnforcer.from_playbook(rb.load_playbook('''id: ir
{BOOK}'''))
"""


def test_a_notebook_runs_them_and_the_plan_follows(tmp_path):
    from nbclient import NotebookClient

    cells = [
        "%load_ext runbook_nb",
        SETUP,
        "plan.live()",
        "%%step act --by 'R. Ito' --tool isolate\nprint('never')",
        "%%step look\n'index=auth'",
        "%%step look\nfound = 2",
        "%step judge --done --note 'it is one'",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute(cwd=str(tmp_path))
    outputs = [one.outputs for one in notebook.cells]
    assert outputs[3][-1].data["text/plain"].startswith("Step act · refused, not run")
    assert [one.data["text/plain"][:12] for one in outputs[4]] == ["'index=auth'", "Step look · "]
    assert "step is closed" in outputs[5][0].data["text/plain"]
    assert "step is closed" in outputs[6][0].data["text/plain"]
    (live,) = outputs[2]
    assert "at step 3 of 4, ok" in live.data["text/plain"]
    assert "closed by R. Ito: it is one" in live.data["text/plain"]
