"""The tools of the incident exercise: the same answers each time, refusals that teach."""

from __future__ import annotations

import ipaddress

import pytest

from runbook_nb.examples.playbooks.nist_800_61_ir import (
    HOSTS,
    INDICATORS,
    Exercise,
    events,
    toolbox,
)

DOCUMENTATION = [ipaddress.ip_network(net) for net in ("203.0.113.0/24", "198.51.100.0/24")]


def test_no_real_address_or_name_is_in_it():
    named = {row["source"] for row in events() if row["source"]} | set(INDICATORS)
    for one in named:
        if one[0].isdigit():
            assert any(ipaddress.ip_address(one) in net for net in DOCUMENTATION)
        else:
            assert one.endswith(".example")
    assert {row["host"] for row in events()} == set(HOSTS)


def test_every_indicator_of_the_events_can_be_enriched():
    exercise = Exercise()
    sources = {row["source"] for row in events() if row["source"]}
    assert sources == set(INDICATORS)
    for one in sources:
        for asked in ("reputation", "whois"):
            assert exercise.enrich_indicator(one, asked)["known"] is True
    assert exercise.enrich_indicator("192.0.2.1", "reputation") == {
        "indicator": "192.0.2.1",
        "source": "reputation",
        "known": False,
    }


def test_events_are_found_by_all_fields_asked_for():
    exercise = Exercise()
    assert exercise.query_siem("host=web-3")["count"] == 10
    assert exercise.query_siem("host=web-3 index=auth")["count"] == 5
    assert exercise.query_siem("index=auth user=nobody")["events"] == []
    with pytest.raises(ValueError, match="did you mean 'index'"):
        exercise.query_siem("indx=auth")
    with pytest.raises(ValueError, match="cannot search by 'web-3'"):
        exercise.query_siem("web-3")


def test_what_is_handed_out_is_nobody_elses():
    events()[0]["host"] = "changed"
    assert events()[0]["host"] == "web-3"


def test_a_host_that_does_not_answer_can_be_tried_again():
    exercise = Exercise(unreachable=3)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            exercise.isolate_host("web-3")
    assert exercise.isolate_host("web-3")["isolated"] is True
    assert exercise.isolated == ["web-3"]


def test_only_an_isolated_host_is_restored():
    exercise = Exercise()
    with pytest.raises(RuntimeError, match="still on the network"):
        exercise.restore_host("web-3")
    exercise.isolate_host("web-3")
    assert exercise.restore_host("web-3")["image"] == "image-2026-11-20"
    with pytest.raises(LookupError, match="there is web-3, db-1"):
        exercise.isolate_host("web-9")
    with pytest.raises(ValueError, match="reputation or whois"):
        exercise.enrich_indicator("203.0.113.66", "rumour")


def test_the_toolbox_works_on_the_exercise_it_is_given():
    exercise = Exercise()
    box = toolbox(exercise)
    box.call_sync("page_owner", {"service": "shop", "message": "web-3 goes off the network"})
    box.call_sync("watch_host", {"host": "web-3"})
    box.call_sync("write_review", {"title": "Sign-in by a stranger", "text": "One page."})
    assert [page["service"] for page in exercise.pages] == ["shop"]
    assert exercise.watched == ["web-3"]
    assert exercise.reviews[0]["title"] == "Sign-in by a stranger"
    with pytest.raises(ConnectionError):
        toolbox(unreachable=1).call_sync("isolate_host", {"host": "web-3"})
