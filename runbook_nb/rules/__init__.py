"""Rules as data: judged with three-valued logic, with the evidence kept beside the answer."""

from __future__ import annotations

from runbook_nb.rules.decision import Condition, Decision, Selection
from runbook_nb.rules.evaluate import (
    decide,
    judge_facts,
    judge_facts_async,
    keys_read,
    select,
    select_facts,
    select_facts_async,
)
from runbook_nb.rules.facts import Facts, FunctionRecord
from runbook_nb.rules.hiding import Hider
from runbook_nb.rules.model import Default, Outside, Rule, Unreadable
from runbook_nb.rules.plan import DecisionPath, Tried, path_for, plan_of
from runbook_nb.rules.ruleset import RuleSet

__all__ = [
    "Condition",
    "Decision",
    "DecisionPath",
    "Default",
    "Facts",
    "FunctionRecord",
    "Hider",
    "Outside",
    "Rule",
    "RuleSet",
    "Selection",
    "Tried",
    "Unreadable",
    "decide",
    "judge_facts",
    "judge_facts_async",
    "keys_read",
    "path_for",
    "plan_of",
    "select",
    "select_facts",
    "select_facts_async",
]
