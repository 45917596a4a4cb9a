"""Recorded evidence as it is expected of us.

The recording holds a summary of each actual value; its kind can be read from that, and so can
what the three-valued law says of the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from replay_values import kind_of

from runbook_nb._text import MISSING

Departs = Callable[[str], bool]

HIDDEN = "[REDACTED]"


def depart_evidence(evidence: Mapping[str, Any], departs: Departs) -> dict[str, Any]:
    """Lead recorded evidence to the expected one."""
    rules = [_rule(rule, departs) for rule in evidence["rules"]]
    if "selected" in evidence:
        chosen = [rule["branch"] for rule in rules if rule["matched"]]
        if len(set(chosen)) < len(chosen):
            departs("one-branch-once")
        return {"rules": rules, "selected": list(dict.fromkeys(chosen))}
    hits = [rule["branch"] for rule in rules if rule["matched"]]
    default = _null(evidence["default"], departs)
    found = {"rules": rules, "chosen": hits[0] if hits else default, "default": default}
    if "defaultLabel" in evidence:
        found["defaultLabel"] = evidence["defaultLabel"]
    return found


def _null(value: Any, departs: Departs) -> Any:
    return None if value is MISSING and departs("null-for-undefined") else value


def _rule(recorded: Mapping[str, Any], departs: Departs) -> dict[str, Any]:
    rule = {**recorded, "label": _null(recorded["label"], departs)}
    if rule["type"] == "filter":
        rule["conditions"] = [_condition(one, departs) for one in rule["conditions"]]
        rule["matched"] = bool(rule["conditions"]) and all(
            one["result"] is True for one in rule["conditions"]
        )
    elif not isinstance(rule["matched"], bool):
        departs("matched-is-a-boolean")
        rule |= {"matched": bool(rule["matched"]), "returned": rule["matched"]}
    return rule


def _condition(recorded: Mapping[str, Any], departs: Departs) -> dict[str, Any]:
    condition = dict(recorded)
    if condition.get("redacted"):
        if condition["threshold"] != HIDDEN:
            departs("thresholds-are-hidden-too")
        return {**condition, "threshold": HIDDEN}
    status = status_of(condition["op"], condition["actualSummary"], condition["threshold"])
    if status is not None:
        departs("three-valued")
        condition |= {"result": None, "status": status}
    return condition


def status_of(op: str, summary: str, threshold: Any) -> str | None:
    """Say why a condition cannot be read, by the summary of its actual value."""
    actual = kind_told(summary)
    if actual in ("missing", "null", "nan"):
        return actual
    others = threshold if op in ("in", "notIn") and isinstance(threshold, list) else [threshold]
    return None if not others or actual in map(kind_of, others) else "type_mismatch"


def kind_told(summary: str) -> str:
    """Read the kind of a value from its summary."""
    words = {
        "undefined": "missing",
        "null": "null",
        "NaN": "nan",
        "true": "bool",
        "false": "bool",
        "[]": "list",
    }
    if summary in words:
        return words[summary]
    if summary.startswith('"'):
        return "text"
    if summary.startswith("{"):
        return "map"
    if summary.endswith(("items)", "item)")):
        return "list"
    return "number"


def ours(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Give our evidence without what upstream does not have: raw actuals, kinds of failure."""
    rules = []
    for rule in evidence["rules"]:
        one = dict(rule)
        if "conditions" in one:
            one["conditions"] = [
                {name: value for name, value in condition.items() if name != "actual"}
                for condition in one["conditions"]
            ]
        if one["type"] == "function":
            one.pop("status", None)
        rules.append(one)
    return {**{k: v for k, v in evidence.items() if k != "unreadable"}, "rules": rules}
