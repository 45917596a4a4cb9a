"""Published decision evidence, read back as the decision of a rule set.

Record layer. Evidence tells which rules were tried, with which conditions, and what came out of
each. That is all a decision is, apart from the values, of which it keeps summaries: the value
itself is taken from the state where its summary is the recorded one, else from a summary that
gives it whole. The rules behind the deciding one were never recorded, so the rule set made here
ends with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from runbook_nb._frozen import freeze
from runbook_nb._text import MISSING
from runbook_nb.record.foreign_told import kept_by_recorders
from runbook_nb.record.narrative import Told
from runbook_nb.rules.facts import FunctionRecord
from runbook_nb.rules.kinds import NO, YES
from runbook_nb.rules.plan import DecisionPath, path_for
from runbook_nb.rules.ruleset import RuleSet
from runbook_nb.rules.wording import REDACTED, summary_of

#: Published names of operators that are spelt otherwise here.
_OPERATORS: Final = {"notIn": "not_in"}
_WHOLE: Final[dict[str, Any]] = {
    "undefined": MISSING,
    "null": None,
    "true": True,
    "false": False,
    "[]": [],
    "{}": {},
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


class Judged(NamedTuple):
    """A decision read from evidence: the path of its outcomes and the values behind them."""

    path: DecisionPath
    values: tuple[Any, ...]


def evidence_of(snapshot: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Find the evidence that observers kept, by the execution that decided.

    Any observer counts whose rows hold an ``evidence`` beside the id of the execution.

    Examples
    --------
    >>> kept = [{"runtimeStageId": "d#1", "evidence": {"rules": [], "chosen": "x"}}]
    >>> list(evidence_of({"recorders": [{"id": "decisions", "data": kept}]}))
    ['d#1']
    """
    found: dict[str, Mapping[str, Any]] = {}
    for data in kept_by_recorders(snapshot):
        for row in data if isinstance(data, list) else ():
            if not isinstance(row, Mapping) or not isinstance(row.get("evidence"), Mapping):
                continue
            execution = row.get("runtimeStageId", row.get("deciderRuntimeStageId"))
            if isinstance(execution, str):
                found.setdefault(execution, row["evidence"])
    return found


def judged_by(evidence: Mapping[str, Any], state: Mapping[str, Any]) -> Judged | None:
    """Read one decision or selection; None where its evidence cannot be told in our terms.

    Parameters
    ----------
    evidence : mapping
        As published: ``rules``, and ``chosen`` and ``default``, or ``selected``.
    state : mapping
        What the deciding stage saw.

    Examples
    --------
    >>> condition = {"key": "age", "op": "gt", "threshold": 7, "actualSummary": "30",
    ...              "result": True, "redacted": False}
    >>> rule = {"type": "filter", "ruleIndex": 0, "branch": "old", "matched": True,
    ...         "conditions": [condition]}
    >>> made = judged_by({"rules": [rule], "chosen": "old", "default": "new"}, {"age": 30})
    >>> made.path.branch, made.values
    ('old', (30,))
    """
    try:
        return _judged(evidence, state)
    except (ValueError, TypeError, KeyError, RecursionError):
        # A condition that is vacuous here, an operator nobody knows: the outcome alone is told.
        return None


def _judged(evidence: Mapping[str, Any], state: Mapping[str, Any]) -> Judged | None:
    selecting = "selected" in evidence
    rules, codes = [], list[int]()
    values = list[Any]()
    for rule in evidence["rules"]:
        if rule["type"] == "function":
            when: Any = _untold
            codes.append(YES if rule["matched"] else NO)
            values.append(_function(rule, state))
        else:
            when = {}
            for condition in rule["conditions"]:
                key, op = condition["key"], condition["op"]
                ops = when.setdefault(key, {})
                if _OPERATORS.get(op, op) in ops:
                    return None
                ops[_OPERATORS.get(op, op)] = condition["threshold"]
                codes.append(YES if condition["result"] else NO)
                values.append(_actual(condition, state))
            if not when or bool(rule["matched"]) != all(c["result"] for c in rule["conditions"]):
                return None
        rules.append({"when": when, "then": rule["branch"], "label": rule.get("label") or None})
    made = RuleSet.bare(rules, None if selecting else _default(evidence), "skip")
    path = path_for(made, codes, selecting)
    if selecting:
        chosen = [made.rules[place].then for place in path.selected]
        return Judged(path, tuple(values)) if chosen == list(evidence["selected"]) else None
    return Judged(path, tuple(values)) if path.branch == evidence["chosen"] else None


def _default(evidence: Mapping[str, Any]) -> dict[str, Any] | None:
    branch = evidence.get("default")
    if branch is None:
        return None
    return {"branch": branch, "label": evidence.get("defaultLabel") or None}


def _untold(facts: Any) -> bool:
    """Stand for a function rule: what it asks was not recorded, and it is never called."""
    raise NotImplementedError


_untold.__name__ = "function rule"
_untold.__qualname__ = "function rule"


def _function(rule: Mapping[str, Any], state: Mapping[str, Any]) -> FunctionRecord:
    inputs = tuple(
        (read["key"], _actual({**read, "actualSummary": read["valueSummary"]}, state))
        for read in rule["inputs"]
    )
    error = rule.get("matchError")
    return FunctionRecord(inputs, bool(rule["matched"]), error, None if error is None else "Error")


def _actual(condition: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    told = condition["actualSummary"]
    if condition.get("redacted"):
        return REDACTED
    seen = state.get(condition["key"], MISSING)
    if summary_of(seen) == told:
        return freeze(seen, condition["key"])
    if told in _WHOLE:
        return freeze(_WHOLE[told], condition["key"])
    if _NUMBER.fullmatch(told):
        return json.loads(told)
    # A text is summarised in quotes, unescaped; a long one is cut, and ends in three dots.
    whole = told[:1] == told[-1:] == '"' and not told.endswith('..."')
    return told[1:-1] if whole else Told(told)
