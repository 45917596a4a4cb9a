"""Probes I3 to I5: what is handed to an agent stands on its own and is strict."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum

import numpy as np
import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError

RULES = rb.RuleSet("age", "v3", [rb.Rule({"days": {"gt": 7}}, "old")], "fresh")


def test_probe_i3_the_text_alone_and_the_structure_alone_are_enough(triage):
    envelope = triage([{"host": "a", "days": 9}, {"host": "b", "days": 1}, {"host": "c"}], RULES)
    text = str(envelope)
    for said in ("age v3", "3 rows (1 fresh, 1 old, 1 declined)", "not checked 1", "checked 2"):
        assert said in text
    structure = json.loads(envelope.to_json())
    assert structure["result"]["rule_version"] == "v3"
    assert structure["result"]["rows_total"] == 3
    sentence = structure["af_coverage"]["sentence"]
    for said in ("age v3", "3 row(s) assessed", "1 declined"):
        assert said in sentence
    assert sentence in envelope.to_markdown()


class Tier(Enum):
    GOLD = "gold"


def test_probe_i4_foreign_values_keep_their_meaning_in_strict_json(triage):
    row = {
        "host": "a",
        "days": np.int64(9),
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "span": timedelta(hours=3),
        "cost": Decimal("1.10"),
        "nan": float("nan"),
        "inf": float("inf"),
        "raw": b"\x00\x01",
        "tags": {"b", "a"},
        "tier": Tier.GOLD,
        "array": np.array([1, 2]),
    }
    envelope = triage([row], RULES, columns=list(row)[1:])

    def refuse(word):
        raise AssertionError(f"bare {word}")

    [wire] = json.loads(envelope.to_json(), parse_constant=refuse)["result"]["verdicts"]
    assert wire == {
        "host": "a",
        "verdict": "old",
        "days": 9,
        "at": "2026-01-02T00:00:00+00:00",
        "span": "PT3H",
        "cost": "1.10",
        "nan": None,
        "inf": "Infinity",
        "raw": "<bytes>",
        "tags": ["a", "b"],
        "tier": "gold",
        "array": "<ndarray>",
    }
    whats = [item["what"] for item in envelope["af_coverage"]["not_checked"]]
    assert whats == [
        "1 value(s) of type bytes that the answer could not carry",
        "1 value(s) of type ndarray that the answer could not carry",
    ]
    json.dumps(envelope, allow_nan=False)


@pytest.mark.parametrize("name", ["Backup triage!", "резерв", "x" * 100, "a.b", "a\n"])
def test_probe_i5_a_name_no_provider_takes_is_refused_with_the_rule(name):
    with pytest.raises(DefinitionError) as caught:
        rb.runbook_as_tool(
            name=name,
            description="d",
            procedure=lambda tools: rb.flow_chart("c", lambda s: None, id="a").build(),
        )
    for said in ("letters", "digits", "_", "-", "64"):
        assert said in str(caught.value)


def test_probe_i5_two_tools_of_one_name_are_refused():
    def tool():
        return rb.define_tool(name="ages", description="d", execute=lambda args: 1)

    with pytest.raises(DefinitionError, match="ages"):
        rb.Toolbox([tool(), tool()])
