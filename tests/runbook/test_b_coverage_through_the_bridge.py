"""Cases 24 to 36 where a runbook shows them: what tools declare is what its ledger holds."""

from __future__ import annotations

import pytest

import runbook_nb as rb
from runbook_nb.errors import DefinitionError


def test_case_24_a_declared_ledger_arrives_whole(call):
    ledger = call()["af_coverage"]
    assert ledger["checked"][0] == {"what": "the seeded inventory"}
    assert ledger["note"] == rb.COVERAGE_NOTE


def test_case_26_a_blind_spot_without_a_why_fails_the_call_by_name(kit):
    async def body(scope, tools):
        await tools.call("inv", {})

    def blind(args):
        return rb.coverage({}, cannot_cover=["blind"])

    inv = rb.define_tool(name="inv", description="d", execute=blind)
    box = rb.Toolbox([inv, kit.calling(body)])
    with pytest.raises(DefinitionError, match=r"cannot_cover\[0\]") as caught:
        box.call_sync("asker")
    assert "why" in str(caught.value)


def test_case_27_items_arrive_stripped(kit):
    answer = rb.coverage({}, checked=[{"what": "  a ", "why": " b "}])

    async def body(scope, tools):
        await tools.call("inv", {})

    inv = rb.define_tool(name="inv", description="d", execute=lambda args: answer)
    envelope = rb.Toolbox([inv, kit.calling(body)]).call_sync("asker")
    assert envelope["af_coverage"]["checked"][0] == {"what": "a", "why": "b"}


def test_case_34_something_that_only_looks_like_an_absence_is_an_answer(kit):
    seen = []

    async def body(scope, tools):
        seen.append(await tools.call("inv", {}))

    answer = {"af_absent": 1, "checked": [{"what": "a"}]}
    inv = rb.define_tool(name="inv", description="d", execute=lambda args: answer)
    envelope = rb.Toolbox([inv, kit.calling(body)]).call_sync("asker")
    assert seen == [answer]
    assert [item["what"] for item in envelope["af_coverage"]["checked"]] == [
        "the declared procedure 'c' — 1 step(s) recorded"
    ]


def test_case_35_an_envelope_is_read_as_a_ledger(call):
    envelope = call()
    assert rb.read_coverage_ledger(envelope) is not None
    assert rb.read_absence(envelope) is None


def test_case_36_merged_items_keep_their_first_place(kit):
    async def body(scope, tools):
        await tools.call("one", {})
        await tools.call("two", {})
        scope["coverage"] = {"checked": ["a", "c"]}

    one = rb.define_tool(
        name="one", description="d", execute=lambda args: rb.coverage(1, checked=["a"])
    )
    two = rb.define_tool(
        name="two",
        description="d",
        execute=lambda args: rb.coverage(1, checked=["a", rb.Item("a", "w"), "b"]),
    )
    envelope = rb.Toolbox([one, two, kit.calling(body)]).call_sync("asker")
    items = envelope["af_coverage"]["checked"][:-1]
    assert items == [{"what": "a"}, {"what": "a", "why": "w"}, {"what": "b"}, {"what": "c"}]
