"""Cases 134 to 139: one policy over everything that leaves a run, and the runs kept on a tool."""

from __future__ import annotations

import json
import pickle

import pytest

import runbook_nb as rb

SECRET = "s3cr3t-42"
POLICY = {"keys": ["apiKey"]}


def stage(scope):
    scope["apiKey"] = SECRET
    scope["note"] = f"called with {SECRET}"
    scope["report"] = {"used": f"key {SECRET}"}
    scope["coverage"] = {"checked": [f"the API, as {SECRET}"]}


def keyed(kit, fn=stage, **more):
    tool = kit.define(fn, redact=POLICY, walk={"recording": True}, **more)
    return rb.Toolbox([tool]), tool


def filed(box):
    tickets = box.artifacts.list_sync().artifacts
    return [box.artifacts.get_sync(ticket.ref).data for ticket in tickets]


def test_case_134_the_secret_is_in_nothing_that_leaves_the_run(kit):
    box, _ = keyed(kit)
    envelope = box.call_sync("restart_probe")
    parcels = filed(box)
    assert len(parcels) == 2
    shown = [envelope.to_json(dossier=True), str(envelope), envelope.to_markdown(), *parcels]
    assert not [text for text in shown if SECRET in text]
    bundle = json.loads(max(parcels, key=len))
    assert bundle["snapshot"]["sharedState"]["apiKey"] == "[REDACTED]"
    assert "initialState" not in bundle["snapshot"]


def test_case_135_the_kept_record_is_served_too(kit):
    box, tool = keyed(kit, keep_record=True)
    box.call_sync("restart_probe", call_id="c1")
    kept = rb.inner_runs_of(tool).get("c1")
    assert SECRET not in json.dumps(kept, default=list)
    state = kept["recording"]["snapshot"]["sharedState"]
    assert state["apiKey"] == "[REDACTED]"
    assert state["report"] == {"used": "key [REDACTED]"}
    assert kept["outcome"] == "ok"


def test_case_136_a_run_that_fails_is_kept_without_the_secret(kit):
    def fails(scope):
        stage(scope)
        raise RuntimeError(f"no luck with {SECRET}")

    box, tool = keyed(kit, fails, keep_record=True)
    with pytest.raises(RuntimeError):
        box.call_sync("restart_probe", call_id="c1")
    kept = rb.inner_runs_of(tool).get("c1")
    assert kept["outcome"] == "error"
    assert SECRET not in json.dumps(kept, default=list)
    assert SECRET not in str(box.last_run)


def test_case_137_a_field_inside_a_value_is_hidden_and_the_rest_is_not(kit):
    def connect(scope):
        scope["conn"] = {"host": "db-7.internal", "password": "p1"}

    tool = kit.define(connect, redact={"fields": {"conn": ["password"]}}, walk={"recording": True})
    box = rb.Toolbox([tool])
    box.call_sync("restart_probe")
    bundle = json.loads(max(filed(box), key=len))
    assert bundle["snapshot"]["sharedState"]["conn"] == {
        "host": "db-7.internal",
        "password": "[REDACTED]",
    }
    assert '"p1"' not in "".join(filed(box))


def test_case_138_kept_records_leave_the_least_recently_read_first(kit):
    tool = kit.define(keep_record=True, keep_record_limit=2)
    box = rb.Toolbox([tool])
    for call_id in ("c1", "c2", "c3"):
        box.call_sync("restart_probe", call_id=call_id)
    kept = rb.inner_runs_of(tool)
    assert (kept.call_ids(), kept.dropped) == (["c2", "c3"], 1)
    assert kept.get("c2")["steps"] == 1
    box.call_sync("restart_probe", call_id="c4")
    assert kept.call_ids() == ["c2", "c4"]


def test_case_138_a_tool_that_keeps_nothing_says_so(kit):
    with pytest.raises(rb.errors.DefinitionError, match="keep_record"):
        rb.inner_runs_of(kit.define())


def test_case_139_without_a_policy_nothing_is_replaced(kit):
    tool = kit.define(stage, walk={"recording": True})
    box = rb.Toolbox([tool])
    envelope = box.call_sync("restart_probe")
    bundle = json.loads(max(filed(box), key=len))
    assert bundle["snapshot"]["sharedState"]["apiKey"] == SECRET
    assert "REDACTED" not in "".join(filed(box)) + envelope.to_json()


def test_hiding_a_reserved_key_empties_what_is_read_from_it(kit):
    rows = [{"subject": "a", "verdict": "ok"}]
    envelope = kit.ask(
        lambda s: s.set("verdicts", rows), result_kind="verdict/x", redact={"keys": ["verdicts"]}
    )
    assert envelope["result"]["verdicts"] == []


def test_secrets_of_inner_answers_are_hidden_in_what_they_declared_and_everywhere_else(kit):
    answer = rb.coverage(
        {"af_provenance": {"apiKey": SECRET, "source": f"as {SECRET}"}, "rows": []},
        checked=[f"the API with {SECRET}"],
        not_checked=[rb.Item("tapes", f"{SECRET} may not read them")],
    )

    async def body(scope, tools):
        await tools.call("inv", {})
        scope["report"] = {"how": f"with {SECRET}"}
        scope.emit("called", {"with": SECRET})

    inv = rb.define_tool(name="inv", description="d", execute=lambda args: answer)
    runbook = kit.calling(body, redact=POLICY, walk={"recording": True}, keep_record=True)
    box = rb.Toolbox([inv, runbook])
    envelope = box.call_sync("asker", call_id="c1")
    assert envelope["result"]["af_provenance"]["apiKey"] == "[REDACTED]"
    assert envelope["result"]["af_provenance"]["source"] == "as [REDACTED]"
    kept = json.dumps(rb.inner_runs_of(runbook).get("c1"), default=list)
    for text in (envelope.to_json(), str(envelope.walk), kept, *filed(box)):
        assert SECRET not in text


def test_a_hidden_subject_is_named_nowhere(call):
    rows = [{"subject": "db-1", "age_days": 30, "age_known": True}]
    rows += [{"subject": "db-2", "age_days": 1, "age_known": True}]
    envelope = call(rows=rows, redact={"keys": ["subject"]}, cap=1)
    for text in (envelope.to_json(dossier=True), str(envelope), envelope.to_markdown()):
        assert "db-1" not in text
        assert "db-2" not in text


def test_the_labels_and_limits_of_rules_are_hidden_in_a_copy_too(call):
    rules = rb.RuleSet(
        "r",
        "1",
        [
            rb.Rule({"apiKey": {"eq": SECRET}}, "unprotected", label=f"the key is {SECRET}"),
            rb.Rule({"apiKey": {"in": ["a", "b"]}}, "unprotected"),
            rb.Rule({"age_days": {"gt": 7}}, "unprotected", label="old"),
        ],
        "protected",
    )
    rows = [
        {"subject": "a", "age_days": 1, "apiKey": SECRET},
        {"subject": "b", "age_days": 9, "apiKey": "other-key"},
        {"subject": "c", "age_days": 2, "apiKey": "third-key"},
    ]
    envelope = call(rows=rows, rules=rules, redact=POLICY)
    written = envelope.to_json(dossier=True)
    assert SECRET not in written
    assert "other-key" not in written
    copy = rb.Envelope.from_dict(json.loads(written))
    assert str(copy) == str(envelope)
    for place in range(3):
        live, carried = envelope.why(row=place), copy.why(row=place)
        assert str(live) == str(carried)
        assert SECRET not in str(live) + json.dumps(live.to_dict())
    assert pickle.loads(pickle.dumps(copy)) == envelope  # noqa: S301 - our own bytes


@pytest.mark.parametrize("rule", [{"enum": ["a", "b"]}, {"type": "string", "maxLength": 3}])
def test_refused_arguments_are_named_without_what_the_policy_hides(kit, rule):
    schema = {"type": "object", "properties": {"token": rule, "note": {"enum": ["a"]}}}
    given = {"token": "s3cr3t-42", "note": "uses s3cr3t-42"}
    with pytest.raises(rb.ToolRefused) as refused:
        kit.ask(lambda s: None, given, input_schema=schema, redact={"keys": ["token"]})
    assert "s3cr3t-42" not in f"{refused.value}{refused.value.facts}"
    assert "token: does not fit what is declared for it" in str(refused.value)
