"""The tools of the refund exercise: the policy decides what it can, and nothing twice by itself."""

from __future__ import annotations

import pytest

from runbook_nb.examples.playbooks.refund_escalation import (
    CUSTOMERS,
    ORDERS,
    POLICY,
    Exercise,
    toolbox,
)


def test_every_order_has_its_customer():
    assert {order["customer"] for order in ORDERS.values()} == set(CUSTOMERS)


@pytest.mark.parametrize(
    ("order", "verdict", "said"),
    [
        ("R-1041", "within the policy", None),
        ("R-1042", "within the policy", None),
        ("R-1043", "a person decides", "640.00 is above 200.00"),
        ("R-1044", "a person decides", "delivered 57 days ago, the policy has 30"),
        ("R-1045", "a person decides", "the day of delivery is not known"),
    ],
)
def test_what_the_policy_does_not_settle_a_person_decides(order, verdict, said):
    answer = Exercise().check_refund_policy(order)
    assert (answer["verdict"], answer["amount"]) == (verdict, ORDERS[order]["paid"])
    assert (said in answer["reasons"]) if said else (answer["reasons"] == [])


def test_limits_hold_up_to_themselves(monkeypatch):
    for days, amount, within in ((30, 200.0, True), (31, 200.0, False), (30, 200.01, False)):
        monkeypatch.setitem(
            ORDERS, "R-1", {"customer": "C-7", "paid": amount, "days_since_delivery": days}
        )
        answer = Exercise().check_refund_policy("R-1")
        assert (answer["verdict"] == "within the policy") is within
    assert POLICY == {"days": 30, "amount": 200.0, "refunds_before": 2}


def test_a_customer_who_was_paid_often_is_looked_at():
    assert len(Exercise().check_refund_policy("R-1045")["reasons"]) == 2


def test_paying_is_recorded_each_time_and_may_fail_before():
    exercise = Exercise(bank_fails=1)
    with pytest.raises(ConnectionError):
        exercise.issue_refund("R-1041", 84.5)
    for _ in range(2):
        exercise.issue_refund("R-1041", 84.5, "Parcel lost.")
    assert [one["refund"] for one in exercise.refunds] == ["F-1", "F-2"]


def test_what_is_not_there_is_refused():
    exercise = Exercise()
    for call in (
        lambda: exercise.lookup_order("R-9"),
        lambda: exercise.lookup_customer("C-0"),
        lambda: exercise.check_refund_policy("R-9"),
        lambda: exercise.issue_refund("R-9", 1.0),
        lambda: exercise.send_message("C-0", "Hello"),
    ):
        with pytest.raises(LookupError, match="there is no"):
            call()
    assert exercise.refunds == exercise.messages == []


def test_the_toolbox_works_on_the_exercise_it_is_given():
    exercise = Exercise()
    box = toolbox(exercise)
    assert box.call_sync("lookup_customer", {"customer": "C-9"})["name"] == "M. Lindqvist"
    box.call_sync("send_message", {"customer": "C-9", "text": "It was paid."})
    assert exercise.messages == [{"customer": "C-9", "text": "It was paid."}]
    with pytest.raises(ConnectionError):
        toolbox(bank_fails=1).call_sync("issue_refund", {"order": "R-1041", "amount": 84.5})
