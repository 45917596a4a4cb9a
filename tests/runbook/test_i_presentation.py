"""Cases 98 to 101: who draws the rows."""

from __future__ import annotations

import runbook_nb as rb

ORDER = ["af_provenance", "rule_version", "stale_after_days", "subjects_total", "verdicts"]
ORDER += ["rows_shown", "rows_total", "rows_complete", "table", "render_note", "verdict_meanings"]
ORDER += ["walk"]


def without_refs(envelope):
    wire = envelope.to_dict()
    wire["result"]["walk"].pop("ref")
    return wire


def test_case_98_prose_is_what_is_done_unasked(call):
    unasked, prose = call(), call(presentation="prose")
    assert without_refs(unasked) == without_refs(prose)
    assert list(unasked["result"]) == ORDER
    assert list(unasked) == ["af_coverage", "result"]


def test_case_99_a_panel_has_no_table_key(call):
    result = call(presentation="panel")["result"]
    assert list(result) == [key for key in ORDER if key != "table"]
    assert result["render_note"] == rb.PANEL_RENDER_NOTE != rb.VERDICT_RENDER_NOTE


def test_case_100_only_the_surface_differs(call):
    prose, panel = without_refs(call()), without_refs(call(presentation="panel"))
    assert prose["result"].pop("table").startswith("| subject | verdict | age |")
    assert prose["result"].pop("render_note") == rb.VERDICT_RENDER_NOTE
    assert panel["result"].pop("render_note") == rb.PANEL_RENDER_NOTE
    assert prose == panel


def test_case_101_the_panel_note_says_what_not_to_do():
    note = rb.PANEL_RENDER_NOTE.lower()
    for said in ("already", "table", "bullet", "one sentence per row", "verbatim", "byte-for-byte"):
        assert said in note
    assert "VERBATIM" in rb.PANEL_RENDER_NOTE
    assert "VERBATIM" in rb.VERDICT_RENDER_NOTE
    assert "retype" in rb.VERDICT_RENDER_NOTE
