"""The tools of a refund exercise: five orders, four customers and a policy, all made up.

Nothing leaves this process, and the same calls give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import runbook_nb as rb

#: The policy: how many days after delivery, up to how much without a second look, how many before.
POLICY: Final = {"days": 30, "amount": 200.0, "refunds_before": 2}

ORDERS: Final[dict[str, dict[str, Any]]] = {
    "R-1041": {"customer": "C-7", "paid": 84.50, "payments": 1, "days_since_delivery": 9},
    "R-1042": {"customer": "C-7", "paid": 84.50, "payments": 2, "days_since_delivery": 9},
    "R-1043": {"customer": "C-9", "paid": 640.00, "payments": 1, "days_since_delivery": 3},
    "R-1044": {"customer": "C-11", "paid": 39.90, "payments": 1, "days_since_delivery": 57},
    "R-1045": {"customer": "C-12", "paid": 120.00, "payments": 1, "days_since_delivery": None},
}

CUSTOMERS: Final[dict[str, dict[str, Any]]] = {
    "C-7": {"name": "A. Okafor", "refunds_before": 0},
    "C-9": {"name": "M. Lindqvist", "refunds_before": 1},
    "C-11": {"name": "J. Alvarez", "refunds_before": 0},
    "C-12": {"name": "S. Marchetti", "refunds_before": 3},
}


#: What an agent calls that would rather be done, in turns; before the last turn somebody approves.
IMPATIENT: Final[tuple[tuple[tuple[str, dict[str, Any]], ...], ...]] = (
    (("issue_refund", {"order": "R-1043", "amount": 700.0}),),
    (("lookup_order", {"order": "R-1043"}), ("lookup_customer", {"customer": "C-9"})),
    (("issue_refund", {"order": "R-1043", "amount": 700.0}),),
    (("check_refund_policy", {"order": "R-1043"}),),
    (("issue_refund", {"order": "R-1043", "amount": 640.0}),),
    (
        ("issue_refund", {"order": "R-1043", "amount": 640.0, "note": "Damaged on arrival."}),
        ("issue_refund", {"order": "R-1043", "amount": 640.0, "note": "Damaged on arrival."}),
        ("send_message", {"customer": "C-9", "text": "640.00 was paid back to you."}),
    ),
)


class Exercise:
    """The tools, and what they have done so far.

    Parameters
    ----------
    bank_fails : int
        How many times paying out fails before it works.

    Attributes
    ----------
    refunds, messages : list of dict
        What was paid and what was written, in order.

    Examples
    --------
    >>> exercise = Exercise()
    >>> exercise.check_refund_policy("R-1043")["verdict"]
    'a person decides'
    >>> exercise.issue_refund("R-1043", 640.0)["refund"], len(exercise.refunds)
    ('F-1', 1)
    """

    def __init__(self, bank_fails: int = 0) -> None:
        self.bank_fails = bank_fails
        self.refunds: list[dict[str, Any]] = []
        self.messages: list[dict[str, str]] = []

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """The tools as plain functions, in the order in which the playbook asks for them."""
        return [
            self.lookup_order,
            self.lookup_customer,
            self.check_refund_policy,
            self.issue_refund,
            self.send_message,
        ]

    def lookup_order(self, order: str) -> dict[str, Any]:
        """Find an order and what was paid for it."""
        return {"order": order, **_known(ORDERS, order, "order")}

    def lookup_customer(self, customer: str) -> dict[str, Any]:
        """Find a customer and how often something was paid back before."""
        return {"customer": customer, **_known(CUSTOMERS, customer, "customer")}

    def check_refund_policy(self, order: str) -> dict[str, Any]:
        """Hold the refund of an order against the policy; what is not known decides nothing."""
        found = _known(ORDERS, order, "order")
        before = CUSTOMERS[found["customer"]]["refunds_before"]
        days = found["days_since_delivery"]
        reasons = []
        if days is None:
            reasons.append("the day of delivery is not known")
        elif days > POLICY["days"]:
            reasons.append(f"delivered {days} days ago, the policy has {POLICY['days']}")
        if found["paid"] > POLICY["amount"]:
            reasons.append(f"{found['paid']:.2f} is above {POLICY['amount']:.2f}")
        if before > POLICY["refunds_before"]:
            reasons.append(f"{before} refunds before, the policy has {POLICY['refunds_before']}")
        verdict = "a person decides" if reasons else "within the policy"
        return {"order": order, "amount": found["paid"], "verdict": verdict, "reasons": reasons}

    def issue_refund(self, order: str, amount: float, note: str = "") -> dict[str, Any]:
        """Pay an order back. Paying twice is refused by no bank, only by the playbook."""
        _known(ORDERS, order, "order")
        if self.bank_fails > 0:
            self.bank_fails -= 1
            raise ConnectionError("the bank does not answer")
        refund = f"F-{len(self.refunds) + 1}"
        self.refunds.append({"refund": refund, "order": order, "amount": amount, "note": note})
        return {"refund": refund, "order": order, "amount": amount}

    def send_message(self, customer: str, text: str) -> dict[str, Any]:
        """Write to a customer."""
        _known(CUSTOMERS, customer, "customer")
        self.messages.append({"customer": customer, "text": text})
        return {"customer": customer, "sent": True}


def _known(table: dict[str, dict[str, Any]], key: str, what: str) -> dict[str, Any]:
    if key not in table:
        raise LookupError(f"there is no {what} {key!r}")
    return table[key]


def toolbox(exercise: Exercise | None = None, *, bank_fails: int = 0) -> rb.Toolbox:
    """Make the toolbox of an exercise.

    Parameters
    ----------
    exercise : Exercise, optional
        One that is kept, to see what its tools did; a new one when left out.
    bank_fails : int
        How many times paying out fails, in a new one.

    Examples
    --------
    >>> toolbox().call_sync("lookup_order", {"order": "R-1042"})["payments"]
    2
    """
    made = exercise if exercise is not None else Exercise(bank_fails)
    return rb.Toolbox([rb.tool(function) for function in made.tools])
