"""What both directions go by: names, ids, times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from cacao_documents import an_id
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookDefinitionError
from runbook_nb.playbooks.cacao import (
    EXTENSION,
    PLACEHOLDER_IDENTITY,
    branches_of,
    identifier,
    is_timestamp,
    kind_of,
    links_of,
    next_of,
    timestamp,
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (an_id("action"), "action"),
        (an_id("if-condition"), "if-condition"),
        (EXTENSION, "extension-definition"),
        (PLACEHOLDER_IDENTITY, "identity"),
        ("action--" + "0" * 8 + "-0000-4000-8000-" + "0" * 12, "action"),
        ("action--" + "0" * 8 + "-0000-6000-8000-" + "0" * 12, None),
        ("action--" + "0" * 8 + "-0000-4000-7000-" + "0" * 12, None),
        ("Action--" + "0" * 8 + "-0000-4000-8000-" + "0" * 12, None),
        (an_id("action") + "\n", None),
        ("action", None),
        ("", None),
        (None, None),
        (["action"], None),
    ],
)
def test_an_id_says_what_it_names(text, kind):
    assert kind_of(text) == kind


@given(st.lists(st.text(max_size=5), max_size=3), st.lists(st.text(max_size=5), max_size=3))
def test_equal_names_give_equal_ids_and_others_give_others(one, other):
    assert (identifier("action", *one) == identifier("action", *other)) == (one == other)
    assert kind_of(identifier("action", *one)) == "action"


def test_objects_of_two_kinds_never_share_a_uuid():
    uuids = {identifier(kind, "ir").rpartition("--")[2] for kind in ("start", "end", "playbook")}
    assert len(uuids) == 3


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 11, 29, 1, 2, 3, 4567, tzinfo=UTC), "2026-11-29T01:02:03.004Z"),
        (
            datetime(2026, 11, 29, tzinfo=timezone(timedelta(hours=2))),
            "2026-11-28T22:00:00.000Z",
        ),
        ("2026-11-29T01:02:03.000Z", "2026-11-29T01:02:03.000Z"),
    ],
)
def test_times_are_written_to_the_millisecond(moment, text):
    assert timestamp(moment, "created") == text
    assert is_timestamp(text)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 11, 29),  # noqa: DTZ001 - that is what is wrong with it
        "2026-11-29",
        "2026-13-29T01:02:03.000Z",
        "2026-11-29T01:02:03+02:00",
        "",
    ],
)
def test_what_is_no_time_in_utc_is_refused_by_its_name(moment):
    with pytest.raises(PlaybookDefinitionError, match=r"created is no time.*Z'") as caught:
        timestamp(moment, "created")
    assert (caught.value.code, caught.value.where) == ("bad_time", "created")


def test_links_are_told_by_where_they_stand():
    step = {"type": "switch-condition", "cases": {"x": "1", "y": "2"}, "on_success": "3"}
    assert [*links_of({**step, "on_failure": "4"})] == [
        ("on_success", "3"),
        ("on_failure", "4"),
        ("cases.x", "1"),
        ("cases.y", "2"),
    ]
    assert branches_of(step) == [("cases.x", "1"), ("cases.y", "2")]
    assert next_of(step) == "3"
    assert next_of({"type": "end"}) is None


def test_a_link_of_another_shape_is_one_link_all_the_same():
    odd = {"on_success": [], "on_false": None, "cases": ["x"], "next_steps": {"a": "x"}}
    assert dict(links_of(odd)) == odd
