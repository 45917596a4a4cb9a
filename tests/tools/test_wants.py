from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runbook_nb.artifacts import ArtifactPage, InMemoryArtifacts
from runbook_nb.errors import ArtifactError, ToolRefused
from runbook_nb.settings import settings
from runbook_nb.tools import Session, Toolbox, ToolContext, tool

ROWS = "dataset/rows"
NOBODY = "art_" + "a" * 22


def _schema(*names, required=()):
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.fixture
def seen():
    return []


@pytest.fixture
def box(make, seen):
    def body(args, ctx):
        seen.append((args, ctx.wanted))
        return args

    wants = {"d": ROWS, "e": "chart/spec"}
    return Toolbox([make("t", body, input_schema=_schema("d", "e", "n"), wants=wants)])


def _file(box, kind=ROWS, data=None, media="application/json", **more):
    data = [{"a": 1}] if data is None else data
    return box.artifacts.put_sync({"kind": kind, "mediaType": media, "data": data, **more}).meta


def _refusal(box, args, name="t") -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        box.call_sync(name, args)
    return caught.value


class TestRedeeming:
    def test_the_body_gets_the_data_and_the_context_the_ticket(self, box, seen):
        ref = _file(box).ref
        assert box.call_sync("t", {"d": ref, "n": "x"}) == {"d": [{"a": 1}], "n": "x"}
        wanted = seen[0][1]
        assert list(wanted) == ["d"]
        assert wanted["d"].kind == ROWS
        assert wanted["d"].ref == ref

    @pytest.mark.parametrize(
        ("media", "data", "expected"),
        [
            ("application/json", '[{"a": 1}]', [{"a": 1}]),
            ("application/json; charset=utf-8", "[1]", [1]),
            ("application/vnd.x+json", "[1]", [1]),
            ("text/plain", "[1]", "[1]"),
            ("application/octet-stream", b"\x00", b"\x00"),
        ],
    )
    def test_json_is_decoded_and_anything_else_stays_what_it_is(self, box, media, data, expected):
        ref = _file(box, data=data, media=media).ref
        assert box.call_sync("t", {"d": ref})["d"] == expected

    def test_an_argument_that_is_left_out_is_not_resolved(self, box, seen):
        assert box.call_sync("t", {}) == {}
        assert seen[0][1] == {}

    def test_a_function_receives_the_data_under_its_own_annotation(self):
        @tool(wants={"rows": ROWS})
        def count(rows: list, ctx: ToolContext) -> list:
            "Count rows."
            return [len(rows), ctx.wanted["rows"].label]

        box = Toolbox([count])
        ref = _file(box, data=[1, 2], label="two rows").ref
        assert box.call_sync("count", {"rows": ref}) == [2, "two rows"]

    def test_each_call_reads_a_copy_of_its_own(self, make):
        def body(args):
            args["d"].append("changed")
            return args["d"]

        box = Toolbox([make("t", body, input_schema=_schema("d"), wants={"d": ROWS})])
        ref = _file(box, data=["x"]).ref
        for _ in range(2):
            assert box.call_sync("t", {"d": ref}) == ["x", "changed"]


class TestRefusing:
    @pytest.mark.parametrize("ref", ["", "   "])
    def test_a_blank_reference_is_invalid_input(self, box, ref, seen):
        error = _refusal(box, {"d": ref})
        assert error.facts["arguments"]["d"]["reason"] == "invalid-input"
        assert seen == []

    def test_a_reference_that_is_no_text_is_invalid_input(self, make):
        schema = {"type": "object", "properties": {"d": {}}}
        box = Toolbox([make("t", input_schema=schema, wants={"d": ROWS})])
        error = _refusal(box, {"d": 5})
        assert error.facts["arguments"]["d"]["reason"] == "invalid-input"

    def test_a_required_reference_that_is_missing_keeps_the_body_from_running(self, make):
        ran = []
        schema = _schema("d", required=["d"])
        box = Toolbox([make("t", ran.append, input_schema=schema, wants={"d": ROWS})])
        assert _refusal(box, {}).code == "invalid_arguments"
        assert ran == []

    def test_unknown_expired_malformed_and_foreign_references_get_one_answer(self, make):
        store = InMemoryArtifacts()
        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        box = Toolbox([want], artifacts=store, session=Session("mine"))
        foreign = _file(Toolbox(artifacts=store, session=Session("theirs"))).ref
        now = datetime(2026, 1, 1, tzinfo=UTC)
        with settings(clock=lambda: now):
            expires = int(now.timestamp() * 1000) + 1000
            expired = _file(box, expiresAt=expires).ref
        with settings(clock=lambda: now + timedelta(hours=1)):
            errors = [_refusal(box, {"d": ref}) for ref in (NOBODY, expired, "art_../x", foreign)]
        assert len({str(error) for error in errors}) == 1
        assert {e.facts["arguments"]["d"]["reason"] for e in errors} == {"missing-or-expired"}

    def test_another_kind_is_a_mismatch_that_names_both(self, box, seen):
        ref = _file(box, kind="chart/spec").ref
        error = _refusal(box, {"d": ref})
        assert error.code == "unusable_reference"
        assert error.facts["reason"] == "kind-mismatch"
        assert error.facts["arguments"]["d"] == {
            "reason": "kind-mismatch",
            "kind": ROWS,
            "found": "chart/spec",
        }
        assert "'chart/spec'" in str(error)
        assert "'dataset/rows'" in str(error)
        assert seen == []

    def test_a_kind_must_be_equal_to_the_letter(self, box):
        for kind in ("Dataset/rows", "dataset/rows ", "dataset/rows/x"):
            ref = _file(box, kind=kind).ref
            assert _refusal(box, {"d": ref}).facts["reason"] == "kind-mismatch"

    def test_content_that_changed_is_a_digest_mismatch(self, make):
        class Tampered(InMemoryArtifacts):
            async def get(self, scope, ref):
                raise ArtifactError("not what was filed", code="integrity")

        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        box = Toolbox([want], artifacts=Tampered())
        assert _refusal(box, {"d": _file(box).ref}).facts["reason"] == "digest-mismatch"

    def test_json_that_cannot_be_read_is_not_passed_off_as_data(self, box, seen):
        ref = _file(box, data="not json").ref
        error = _refusal(box, {"d": ref})
        assert "says it is JSON, and is not" in str(error)
        assert seen == []

    def test_a_store_that_fails_is_its_own_error(self, make):
        class Down(InMemoryArtifacts):
            async def get(self, scope, ref):
                raise OSError("store down")

        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        box = Toolbox([want], artifacts=Down())
        with pytest.raises(OSError, match="store down"):
            box.call_sync("t", {"d": NOBODY})

    def test_every_argument_is_judged_before_one_answer(self, box, seen):
        spec = _file(box, kind="chart/spec").ref
        error = _refusal(box, {"d": spec, "e": NOBODY})
        assert [p.where for p in error.problems] == ["d", "e"]
        assert error.facts["reason"] == "several"
        assert {k: v["reason"] for k, v in error.facts["arguments"].items()} == {
            "d": "kind-mismatch",
            "e": "missing-or-expired",
        }
        assert seen == []

    def test_no_body_runs_when_one_of_two_is_unusable(self, box, seen):
        _refusal(box, {"d": _file(box).ref, "e": NOBODY})
        assert seen == []


class TestLiveReferences:
    def test_are_named_up_to_ten_with_the_true_count(self, box):
        refs = [_file(box, data=n).ref for n in range(12)]
        _file(box, kind="other")
        error = _refusal(box, {"d": NOBODY})
        live = error.facts["live"][ROWS]
        assert len(live) == 10
        assert set(live) < set(refs)
        assert "(10 of 12)" in str(error)
        assert all(ref in str(error) for ref in live)

    def test_are_told_in_the_past_tense_because_the_text_is_read_again(self, box):
        assert "was live when the call was judged" in str(_refusal(box, {"d": NOBODY}))
        _file(box)
        assert "when the call was judged" in str(_refusal(box, {"d": NOBODY}))

    def test_only_those_of_this_session_are_named(self, make):
        store = InMemoryArtifacts()
        _file(Toolbox(artifacts=store, session=Session("theirs")))
        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        box = Toolbox([want], artifacts=store, session=Session("mine"))
        assert _refusal(box, {"d": NOBODY}).facts["live"] == {ROWS: []}

    def test_the_search_ends_after_two_hundred_rows_and_says_so(self, box):
        first = _file(box).ref
        for n in range(220):
            _file(box, kind="other", data=n)
        error = _refusal(box, {"d": NOBODY})
        assert error.facts["live"] == {ROWS: []}
        assert first not in str(error)
        assert "among the first 200 artifacts" in str(error)

    def test_a_cursor_that_does_not_advance_ends_the_search(self, make):
        asked = []

        class Stuck(InMemoryArtifacts):
            async def list(self, scope, *, limit=50, cursor=None):
                asked.append(cursor)
                return ArtifactPage(artifacts=(), cursor="same")

        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        error = _refusal(Toolbox([want], artifacts=Stuck()), {"d": NOBODY})
        assert asked == [None, "same"]
        assert "among the first 0 artifacts" in str(error)

    def test_empty_pages_end_after_fifty(self, make):
        asked = []

        class Endless(InMemoryArtifacts):
            async def list(self, scope, *, limit=50, cursor=None):
                asked.append(cursor)
                return ArtifactPage(artifacts=(), cursor=str(len(asked)))

        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        _refusal(Toolbox([want], artifacts=Endless()), {"d": NOBODY})
        assert len(asked) == 50

    def test_a_list_that_fails_does_not_hide_the_refusal(self, make):
        class Unlisted(InMemoryArtifacts):
            async def list(self, scope, *, limit=50, cursor=None):
                raise OSError("down")

        want = make("t", input_schema=_schema("d"), wants={"d": ROWS})
        error = _refusal(Toolbox([want], artifacts=Unlisted()), {"d": NOBODY})
        assert error.facts["reason"] == "missing-or-expired"
        assert "could not be listed (OSError)" in str(error)
