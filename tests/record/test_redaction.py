"""The report of what was hidden, the one door to what is not, and marks that stages set."""

from __future__ import annotations

import html
import json

import pytest

import runbook_nb as rb
from runbook_nb.chart.builder import flow_chart
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.redaction import RedactionReport

SECRET = "hunter-2-hunter"


def run_of(stage, redact=None, args=None, **more):
    return flow_chart("Hosts", stage, id="load").build().run_sync(args, redact=redact, **more)


def where(report, part, name):
    return next(
        dict(entry.places) for entry in report.entries if (entry.part, entry.name) == (part, name)
    )


# -- what is counted -----------------------------------------------------------------------------


def load(scope):
    scope["token"] = SECRET
    scope["conn"] = {"pin": 4711, "host": "h"}
    scope["rows"] = [{"owner": "kim"}, {"owner": "lee"}, {"n": 1}]
    scope["note"] = f"with {SECRET} and sesame-42"
    scope.emit("login.ok", {"a": 1})
    scope.emit("other", {"token": "x"})


POLICY = rb.Redact(
    keys=["token", "tokne"],
    patterns=["^pw", "ok"],
    fields={"conn": ["pin", "gone"]},
    paths=["rows[*].owner", "nowhere"],
    values=["sesame-42", "never-met"],
    emits=["^login", "^logout"],
)


def test_each_part_of_a_policy_is_told_with_its_places():
    report = run_of(load, POLICY, {"token": SECRET}).redaction
    assert where(report, "key", "token") == {"input": 1, "state": 1, "events": 1}
    assert where(report, "pattern", "ok") == {"input": 1, "state": 1, "events": 2}
    assert where(report, "field", "conn.pin") == {"state": 1}
    assert where(report, "path", "rows[*].owner") == {"state": 2}
    assert where(report, "emit", "^login") == {"events": 1}
    assert where(report, "value", "number 1") == {"state": 1}


def test_a_part_that_met_nothing_is_said():
    report = run_of(load, POLICY).redaction
    assert [(entry.part, entry.name) for entry in report.never] == [
        ("key", "tokne"),
        ("pattern", "^pw"),
        ("field", "conn.gone"),
        ("path", "nowhere"),
        ("emit", "^logout"),
        ("value", "number 2"),
    ]
    assert "Nothing was met by key tokne" in " ".join(str(report).split())


def test_texts_that_reappear_are_counted_where_they_were_taken_out():
    def stage(scope):
        load(scope)
        raise ValueError(f"no {SECRET}, {SECRET}")

    with pytest.raises(ValueError, match="no hunter") as caught:
        run_of(stage, {"keys": ["token"]})
    report = caught.value.run.redaction
    assert report.learnt == 1
    assert report.reappeared == {"state": 1, "errors": 2}


def test_evidence_items_and_names_are_places_too():
    rules = rb.RuleSet("r", "1", [rb.Rule({"pin": {"gt": 1}}, "x", label=SECRET)], default="y")
    each = (
        flow_chart("b", lambda s: s.update(s.args["item"]), id="take")
        .add_decider("D", id="d", rules=rules)
        .branch("x", lambda s: None)
        .branch("y", lambda s: None, description=f"means {SECRET}")
        .end()
        .build()
    )
    run = (
        flow_chart("c", lambda s: None, id="s", stage_name=f"S {SECRET}")
        .add_parallel_for_each(
            "Each",
            id="each",
            items=lambda s: [{"pin": 1}, {"pin": 2}],
            branch=each,
            max_branches=5,
            into="out",
        )
        .build()
        .run_sync(redact={"keys": ["pin"], "values": [SECRET]})
    )
    report = run.redaction
    assert where(report, "key", "pin") == {"state": 2, "items": 2, "evidence": 2}
    assert report.reappeared == {"names": 3}


def test_a_marked_key_is_told_apart_from_the_policy():
    report = run_of(lambda s: s.set("extra", SECRET, secret=True), {"keys": ["token"]}).redaction
    assert where(report, "marked", "extra") == {"state": 1}
    assert report.to_dict()["marked"] == ["extra"]
    assert report.to_dict()["redactedKeys"] == ["extra"]


def test_the_published_names_come_first_and_hold_what_was_met():
    written = run_of(load, POLICY).redaction.to_dict()
    assert list(written)[:3] == ["redactedKeys", "fieldRedactions", "patterns"]
    assert written["redactedKeys"] == ["token", "login.ok"]
    assert written["fieldRedactions"] == {"conn": ["pin", "gone"]}
    assert written["patterns"] == ["^pw", "ok"]
    assert written["values"] == 2
    assert json.loads(json.dumps(written)) == written


def test_names_are_told_as_first_met_by_key_mark_or_pattern():
    def stage(scope):
        scope["b_secret"] = 1
        scope.set("c", 2, secret=True)
        scope["a"] = {"d_secret": 3}
        scope["a"] = 4

    report = run_of(stage, {"keys": ["a"], "patterns": ["secret$"]}).redaction
    assert set(report.hidden_keys) == {"a", "b_secret", "c", "d_secret"}


# -- how it looks --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [POLICY, rb.Redact(keys=[f"k-{SECRET}"], values=[SECRET]), rb.Redact(values=[SECRET])],
)
def test_a_report_never_tells_a_value(policy):
    def stage(scope):
        load(scope)
        scope[f"k-{SECRET}"] = SECRET

    report = run_of(stage, policy).redaction
    bundle = report._repr_mimebundle_()[0]
    shown = [str(report), repr(report), report.to_markdown(), json.dumps(report.to_dict())]
    shown += [html.unescape(text) for text in bundle.values()]
    if SECRET not in policy.values:
        policy_names = [text for text in shown if f"k-{SECRET}" in text]
        assert policy_names == []
    assert not [text for text in shown if SECRET in text]
    assert "4711" not in "".join(shown)
    assert "sesame" not in "".join(shown)


def test_a_report_is_a_table_in_a_cell():
    report = run_of(load, POLICY).redaction
    text = str(report)
    assert text.startswith("Redaction Hosts · ")
    assert "6 of 12 parts of the policy met" in text
    assert "rows[*].owner" in text
    assert "number 1" in text
    assert "<table" in report._repr_mimebundle_()[0]["text/html"]


def test_without_a_policy_the_report_says_so():
    report = run_of(load).redaction
    assert report.state == "absent"
    assert "no policy: nothing is hidden" in str(report)
    assert report.to_dict()["redactedKeys"] == []
    assert report.to_dict()["fieldRedactions"] == {}
    assert report.to_dict()["patterns"] == []


def test_a_policy_that_names_nothing_says_so():
    assert "the policy names nothing" in str(run_of(load, {}).redaction)
    assert run_of(lambda s: None, {"keys": ["a"]}).redaction.total == 0
    assert "nothing hidden" in str(run_of(lambda s: None, {"keys": ["a"]}).redaction)


def test_an_empty_report_is_a_report():
    assert RedactionReport(procedure="c", state="absent").total == 0


# -- marks ---------------------------------------------------------------------------------------


def test_a_key_written_as_secret_is_hidden_from_the_beginning_of_the_run_to_its_end():
    def stage(scope):
        scope["token"] = "before-1"
        scope.set("token", "marked-1", secret=True)
        scope["token"] = "after-11"
        scope["text"] = "before-1 marked-1 after-11"
        scope["conn"] = {"token": "nested-1"}

    run = run_of(stage)
    assert run.state == {
        "token": PLACEHOLDER,
        "text": f"{PLACEHOLDER} {PLACEHOLDER} {PLACEHOLDER}",
        "conn": {"token": PLACEHOLDER},
    }
    assert run.commits[0].redacted == ("token", "text", "conn")


def test_deleting_a_key_never_clears_its_mark():
    def stage(scope):
        scope.set("token", "marked-1", secret=True)
        scope.delete("token")
        scope["token"] = "again-11"

    assert run_of(stage).state == {"token": PLACEHOLDER}


def test_a_secret_write_is_a_write_and_makes_no_row_of_its_own():
    plain = run_of(lambda s: s.set("a", 1))
    marked = run_of(lambda s: s.set("a", 1, secret=True))
    assert [row.text for row in marked.walk] == [row.text for row in plain.walk]
    assert marked.commits[0].trace == plain.commits[0].trace
    assert marked.unredacted().state == plain.state


def test_secret_is_said_by_name_only():
    with pytest.raises(TypeError):
        run_of(lambda s: s.set("a", 1, True))


def test_a_blocking_stage_may_mark_too():
    chart = flow_chart("c", lambda s: s.set("a", SECRET, secret=True), id="a", blocking=True)
    assert chart.build().run_sync().state == {"a": PLACEHOLDER}


def test_rules_judge_the_real_value_of_a_marked_key():
    rules = rb.RuleSet("r", "1", [rb.Rule({"pin": {"eq": 4711}}, "yes")], default="no")
    run = (
        flow_chart("c", lambda s: s.set("pin", 4711, secret=True), id="a")
        .add_decider("D", id="d", rules=rules)
        .branch("yes", lambda s: s.set("went", "yes"))
        .branch("no", lambda s: s.set("went", "no"))
        .end()
        .build()
        .run_sync()
    )
    assert run.state == {"pin": PLACEHOLDER, "went": "yes"}
    assert "4711" not in str(run.walk.to_dicts())


# -- the one door --------------------------------------------------------------------------------


def test_one_door_leads_to_views_that_hide_nothing():
    run = run_of(load, POLICY, {"token": SECRET})
    open_run = run.unredacted()
    assert run.state["token"] == PLACEHOLDER
    assert open_run.state["token"] == SECRET
    assert open_run.args == {"token": SECRET}
    assert open_run.commits[0].values["token"] == SECRET
    assert SECRET in json.dumps(open_run.recording().to_dict())
    assert open_run.unredacted() is open_run
    # The run itself stays as it was, also where it was looked at before.
    assert run.state["token"] == PLACEHOLDER
    assert SECRET not in str(run.walk.to_dicts())


def test_an_unredacted_view_says_what_it_is():
    open_run = run_of(load, POLICY).unredacted()
    assert open_run.is_unredacted
    assert "unredacted" in str(open_run)
    assert "unredacted" in open_run._repr_mimebundle_()[0]["text/html"]
    assert open_run.redaction.state == "unredacted"
    assert "asked for unredacted" in str(open_run.redaction)


def test_a_run_that_hides_nothing_is_its_own_unredacted_view():
    run = run_of(load)
    assert run.unredacted() is run
    assert not run.is_unredacted
    assert "unredacted" not in str(run)


def test_nothing_else_of_a_run_takes_a_flag_that_opens_it():
    import inspect

    for cls in (rb.Run, rb.Walk, rb.Recording, rb.Envelope, rb.Structure, rb.Chart):
        for name, member in inspect.getmembers(cls, callable):
            if name.startswith("__"):
                continue
            try:
                names = inspect.signature(member).parameters
            except (TypeError, ValueError):
                continue
            assert not {"unredacted", "redacted", "raw"} & set(names), (cls, name)


def test_doors_that_are_not_served_show_nothing_by_themselves():
    run = run_of(load, POLICY)
    for door in (run.log, run.walk.log, run.redactor, run.policy, run.walk):
        assert SECRET not in repr(door) + str(door)
        assert "sesame" not in repr(door) + str(door)


# -- a policy goes with its run ------------------------------------------------------------------


def asking():
    return (
        flow_chart("c", lambda s: s.set("token", SECRET), id="a")
        .add_pausable("Ask", lambda s: "what?", lambda s, a: s.set("got", a), id="ask")
        .build()
    )


def test_a_policy_goes_on_after_a_pause():
    chart = asking()
    point = json.loads(json.dumps(chart.run_sync(redact=POLICY).checkpoint))
    run = chart.resume_sync(point, f"it is {SECRET}")
    assert run.policy == POLICY
    assert run.state == {"token": PLACEHOLDER, "got": f"it is {PLACEHOLDER}"}


def test_a_policy_given_when_going_on_hides_more_and_never_less():
    chart = asking()
    point = chart.run_sync(redact={"keys": ["token"]}).checkpoint
    run = chart.resume_sync(point, "answer", redact={"keys": ["got"]})
    assert run.state == {"token": PLACEHOLDER, "got": PLACEHOLDER}


def test_the_checkpoint_of_an_unredacted_view_keeps_the_policy():
    chart = asking()
    point = chart.run_sync(redact={"keys": ["token"]}).unredacted().checkpoint
    assert chart.resume_sync(point, 1).state == {"token": PLACEHOLDER, "got": 1}


def test_without_a_policy_a_checkpoint_holds_none():
    assert "redact" not in asking().run_sync().checkpoint


@pytest.mark.parametrize("damaged", [["token"], {"keyz": ["a"]}, {"patterns": ["("]}, 5])
def test_a_damaged_policy_is_refused_before_anything_runs(damaged):
    chart = asking()
    point = {**chart.run_sync().checkpoint, "redact": damaged}
    with pytest.raises(rb.errors.CheckpointError):
        chart.resume_sync(point, 1)
