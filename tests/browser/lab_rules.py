"""The notebook the rule lab is driven in: 312 subjects, of which nine were never reached."""

from __future__ import annotations

import json

CELL = """
import random

import runbook_nb as rb

rb.settings.static = False

NAMED = {
    "us-east-2/prod/orders-544": 14, "eu-central-1/prod/ledger-192": 12,
    "eu-central-1/prod/identity-679": 9, "eu-west-1/prod/catalog-742": 8,
    "ap-south-1/prod/billing-766": 44, "us-east-2/prod/ord-7f3a": 21, "us-east-2/dev/x-1": 30,
}
chance = random.Random(3)


def subject(name, age, known=True):
    return {"subject": name, "age_known": known, "policy": "standard", "age_days": age,
            "retention_days": chance.choice([7, 14, 30])}


rows = [subject(name, age) for name, age in NAMED.items()]
rows += [subject(f"eu-west-1/prod/svc-{n}", min(7, int(abs(chance.gauss(2, 2)))))
         for n in range(282)]
rows += [subject(f"us-west-1/prod/svc-{n}", None, known=False) for n in range(14)]
rows += [subject(f"us-west-1/late/svc-{n}", 2) for n in range(9)]
posture = rb.RuleSet(
    "health-signal",
    "v3",
    rules=[
        rb.Rule({"age_known": {"eq": False}}, "declined", "the age signal is unreadable"),
        rb.Rule({"policy": {"eq": "exempt"}}, "exempt", "exempt by policy"),
        rb.Rule({"age_days": {"gt": 7}}, "unprotected", "last backup older than the limit",
                unit="days"),
    ],
    default=rb.Default("protected", "no rule fired, last backup within the limit"),
)
envelope = rb.triage(rows, posture, subject="subject", source="inventory", max_branches=303)
"""
SHOW = "lab = rb.RuleLab(envelope)\nlab"
KINDS = """
from datetime import date

kinds = rb.RuleSet(
    "kinds",
    "1",
    [
        rb.Rule({"tier": {"in": ["a", "b"]}}, "first"),
        rb.Rule({"since": {"lt": date(2026, 1, 10)}}, "second"),
        rb.Rule({"score": {"between": [1, 5]}}, "third"),
        rb.Rule({"live": {"eq": True}}, "fourth"),
    ],
    "none",
)
table = [
    {"tier": tier, "since": date(2026, 1, day), "score": score, "live": live}
    for tier, day, score, live in [
        ("a", 20, 9, False), ("c", 20, 9, False), ("d", 15, 9, False), ("d", 20, 3, False),
        ("d", 20, 7, False), ("d", 20, 9, True),
    ]
]
rb.RuleLab(table, kinds)
"""
#: Two rules and a hundred more, ground outside them, and a value that cannot be read.
AROUND = """
around = rb.RuleSet(
    "around",
    "1",
    [
        rb.Rule({"days": {"between": [7, 10]}}, "old", unit="days"),
        rb.Rule({"days": {"lt": 0}}, "unborn", unit="days"),
        rb.Rule({"tier": {"eq": "x"}}, "old"),
        *(rb.Rule({"days": {"eq": 1000 + n}}, "old") for n in range(100)),
    ],
    "fresh",
    outside=[rb.Outside({"tier": {"in": ["z"]}}, "hosts of tier z", "nobody asks")],
)
table = [{"days": days, "tier": tier} for days, tier in
         [(8, "b"), (12, "b"), (3, "b"), (None, "b"), (2, "a"), (9, "z")]]
rb.RuleLab(table, around)
"""


def notebook(*cells):
    """Write a notebook of code cells that has not been run."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{n}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": cell.strip(),
        }
        for n, cell in enumerate(cells)
    ]
    meta = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": meta, "cells": made})
