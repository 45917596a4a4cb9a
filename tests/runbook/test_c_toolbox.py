"""Cases 40 to 46: a runbook's ingredients and wanted artifacts are judged by its toolbox."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError

SCHEMA = {"type": "object", "properties": {"d": {"type": "string"}}, "required": ["d"]}


def test_case_40_a_missing_ingredient_fails_the_toolbox_in_any_order(kit):
    runbook = kit.define(composed_of=["renamed"])
    with pytest.raises(DefinitionError, match="composedOf ingredient 'renamed'") as caught:
        rb.Toolbox([runbook])
    assert "restart_probe" in str(caught.value)
    renamed = kit.inventory(name="renamed")
    assert len(rb.Toolbox([renamed, runbook])) == 2
    assert len(rb.Toolbox([runbook, renamed])) == 2


def test_case_41_an_ingredient_may_be_carried_by_a_skill(kit):
    skill = SimpleNamespace(name="ops", tools=[kit.inventory(name="renamed")])
    box = rb.Toolbox([kit.define(composed_of=["renamed"])], skills=[skill])
    assert "renamed" in box


def test_case_42_with_a_provider_a_missing_ingredient_is_a_warning(kit):
    with pytest.warns(UserWarning, match="renamed"):
        rb.Toolbox([kit.define(composed_of=["renamed"])], providers=[lambda: []])


def test_case_43_wanted_arguments_must_be_declared(kit):
    with pytest.raises(DefinitionError, match="argument") as caught:
        kit.define(wants={"d": "dataset/rows"})
    assert "'d'" in str(caught.value)


def test_case_44_without_a_store_wanted_artifacts_fail_the_toolbox(kit):
    runbook = kit.define(wants={"d": "dataset/rows"}, input_schema=SCHEMA)
    with pytest.raises(DefinitionError, match="store"):
        rb.Toolbox([runbook], artifacts=None)


def test_case_45_the_procedure_gets_the_data_behind_a_reference(kit):
    seen = []
    runbook = kit.define(
        lambda s: seen.append(s.args["d"]), wants={"d": "dataset/rows"}, input_schema=SCHEMA
    )
    box = rb.Toolbox([runbook])
    put = {"kind": "dataset/rows", "mediaType": "application/json", "data": '[{"a":1}]'}
    ref = box.artifacts.put_sync(put).meta.ref
    envelope = box.call_sync("restart_probe", {"d": ref})
    assert seen == [[{"a": 1}]]
    assert ref not in envelope.to_json()


def test_case_46_a_reference_of_another_kind_never_reaches_the_procedure(kit):
    seen = []
    runbook = kit.define(seen.append, wants={"d": "dataset/rows"}, input_schema=SCHEMA)
    box = rb.Toolbox([runbook])
    ref = box.artifacts.put_sync({"kind": "chart/spec", "mediaType": "m", "data": "x"}).meta.ref
    with pytest.raises(rb.ToolRefused) as caught:
        box.call_sync("restart_probe", {"d": ref})
    assert "dataset/rows" in str(caught.value)
    assert "chart/spec" in str(caught.value)
    assert seen == []
