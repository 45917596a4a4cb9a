"""A decision and a selection as people and machines read them: views over a path and its values.

Nothing here is made while judging. Text, summaries and evidence are built when asked for, with
hidden keys and secret texts taken out on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._json import to_wire
from runbook_nb._text import MISSING, visible
from runbook_nb._view import Card
from runbook_nb.rules.condition import Condition, FunctionResult
from runbook_nb.rules.facts import FunctionRecord
from runbook_nb.rules.hiding import HiddenKeys, Hider, scrubbed_limit, shown_rules
from runbook_nb.rules.kinds import RESULTS, STATUSES, plain, same
from runbook_nb.rules.model import Default, Outside, Rule, Unreadable
from runbook_nb.rules.operators import PRESENCE
from runbook_nb.rules.plan import DecisionPath, Tried, when_of
from runbook_nb.rules.ruleset import RuleSet
from runbook_nb.rules.wording import (
    REDACTED,
    function_name,
    summary_of,
)


class _Judged(Renderable, Immutable):
    """What decisions and selections share: a path, its values, and what must stay hidden.

    Attributes
    ----------
    path : DecisionPath
        What happened, in the rules as they judged; not served.
    raw_values : tuple
        The values it happened with, as they are; not served.
    hide : Hider or None
        What must not be seen.
    """

    __slots__ = ("_values", "hide", "path")

    def __init__(
        self, path: DecisionPath, values: tuple[Any, ...], hide: Hider | None = None
    ) -> None:
        self.path = path
        self._values = values
        # One that hides nothing need not be asked about every value.
        self.hide = hide if hide is None or getattr(hide, "active", True) else None

    @property
    def raw_values(self) -> tuple[Any, ...]:
        """The values it was made with, as they are; not served."""
        return self._values

    @property
    def values(self) -> tuple[Any, ...]:
        """The values it was made with, in the order they were read; hidden ones replaced."""
        if self.hide is None:
            return self._values
        shown: list[Any] = []
        for tried in self.path.tried:
            function = self.function_of(tried)
            if function is None:
                shown += [condition.actual for condition in self.conditions_of(tried)]
                continue
            inputs = tuple((key, value) for key, value, _ in function.inputs)
            shown.append(
                FunctionRecord(inputs, function.returned, function.error, function.error_type)
            )
        return tuple(shown)

    @property
    def rules(self) -> RuleSet:
        """The rules that judged; where something is hidden, in a form for showing."""
        if self.hide is None:
            return self.path.rules
        serve = getattr(self.hide, "rules", None)
        shown: RuleSet = (
            shown_rules(self.path.rules, self.hide) if serve is None else serve(self.path.rules)
        )
        return shown

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every recorded condition, in the order they were judged; function rules have none."""
        return tuple(
            condition for tried in self.path.tried for condition in self.conditions_of(tried)
        )

    @property
    def actuals(self) -> tuple[Any, ...]:
        """The value each of the `conditions` was judged on."""
        if self.hide is None and not self.path.rules.hidden:  # no condition need be made for it
            return tuple(shown(v) for v in self._values if v.__class__ is not FunctionRecord)
        return tuple(condition.actual for condition in self.conditions)

    def actual_of(self, key: str) -> Any:
        """Give the value a key was first judged on; `MISSING` where no condition asks for it."""
        if self.hide is not None or self.path.rules.hidden:
            return next((c.actual for c in self.conditions if c.key == key), MISSING)
        for tried in self.path.tried:  # no condition need be made for it
            when, place = when_of(self.path.rules, tried), tried.start
            for one, ops in when.items() if isinstance(when, Mapping) else ():
                if one == key:
                    return shown(self._values[place])
                place += len(ops)
        return MISSING

    def conditions_of(self, tried: Tried) -> tuple[Condition, ...]:
        """Give the conditions of one tried rule."""
        return tuple(self._conditions(tried))

    def _conditions(self, tried: Tried) -> Iterator[Condition]:
        # As they judged: keys that look alike once scrubbed are still several.
        rules = self.path.rules
        when = when_of(rules, tried)
        if not isinstance(when, Mapping):
            return
        place = 0
        for key, ops in when.items():
            hidden = self.hides(key)
            unit = None if tried.outside else rules.rules[tried.position].unit_of(key)
            for op, threshold in ops.items():
                code = tried.codes[place]
                yield Condition(
                    self._word(key),
                    op,
                    # Whether a value is asked to be there is no secret, and no limit either.
                    REDACTED
                    if hidden and op not in PRESENCE
                    else threshold
                    if self.hide is None
                    else scrubbed_limit(op, threshold, self.hide),
                    REDACTED if hidden else self.scrub(shown(self._values[tried.start + place])),
                    RESULTS[code],
                    STATUSES[code],
                    hidden,
                    None if unit is None else self._word(unit),
                )
                place += 1

    def function_of(self, tried: Tried) -> FunctionResult | None:
        """Give what a tried function rule read and gave; None for a filter."""
        record = self._values[tried.start]
        if not isinstance(record, FunctionRecord):
            return None
        inputs = tuple(
            (
                self._word(key),
                REDACTED if self.hides(key) else self.scrub(shown(value)),
                self.hides(key),
            )
            for key, value in record.inputs
        )
        return FunctionResult(
            self._word(function_name(when_of(self.path.rules, tried))),
            inputs,
            # What comes out of hidden values may be one of them.
            REDACTED
            if any(hidden for _, _, hidden in inputs) and not isinstance(record.returned, bool)
            else self.scrub(shown(record.returned)),
            tried.result,
            None if record.error is None else self._word(record.error),
            None if record.error_type is None else self._word(record.error_type),
        )

    def text_of(self, tried: Tried) -> str:
        """Write a tried rule with its values; when it could not be read, why not."""
        function = self.function_of(tried)
        if function is not None:
            return function.text
        conditions = self.conditions_of(tried)
        if tried.result is None:
            reasons = (c.unreadable_text for c in conditions if c.result is None)
            return " and ".join(dict.fromkeys(reasons))
        return " and ".join(c.text for c in conditions)

    def hides(self, key: str) -> bool:
        """Whether the value of a key must not be seen."""
        return key in self.path.rules.hidden or (self.hide is not None and self.hide.hides_key(key))

    def scrub(self, value: Any) -> Any:
        """Give a value without secret texts."""
        return value if self.hide is None or value is MISSING else self.hide.scrub(value)

    def _word(self, text: str) -> str:
        return text if self.hide is None else str(self.hide.scrub(text))

    def _rule_evidence(self, tried: Tried) -> dict[str, Any]:
        rule = self.rules.rules[tried.position]
        found: dict[str, Any] = {
            "type": "filter" if rule.is_filter else "function",
            "ruleIndex": tried.position,
            "branch": rule.then,
            "matched": tried.result is True,
            "label": self.scrub(rule.label),
        }
        function = self.function_of(tried)
        if function is None:
            found["conditions"] = [c.to_dict() for c in self.conditions_of(tried)]
            return found
        found["inputs"] = [
            {
                "key": key,
                "valueSummary": REDACTED if hidden else summary_of(value),
                "redacted": hidden,
            }
            for key, value, hidden in function.inputs
        ]
        if function.error is not None:
            found["matchError"] = function.error
            found["status"] = "rule_error"
        elif not isinstance(function.returned, bool):
            found["returned"] = function.returned
        return found

    def _evidence(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "rules": [self._rule_evidence(t) for t in self.path.tried if not t.outside]
        }
        outside = [t for t in self.path.tried if t.outside]
        if outside:
            found["outside"] = [
                {
                    "what": self.scrub(self.rules.outside[t.position].what),
                    "why": self.scrub(self.rules.outside[t.position].why),
                    "matched": t.result is True,
                    "conditions": [c.to_dict() for c in self.conditions_of(t)],
                }
                for t in outside
            ]
        return found

    def _stamp(self) -> dict[str, Any]:
        if self.rules.is_bare:
            return {}
        rules = self.rules
        digest = self.path.rules.digest
        return {"rules": {"name": rules.name, "version": rules.version, "digest": digest}}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, _Judged):
            return NotImplemented
        if self.path is not other.path and (
            self.path.codes != other.path.codes or self.path.rules != other.path.rules
        ):
            return False
        mine, others = self._values, other._values
        return len(mine) == len(others) and all(map(_equal, mine, others))

    def __hash__(self) -> int:
        return hash((self.path.codes, self.path.rules))

    def __reduce__(self) -> tuple[Any, ...]:
        hide = self.hide
        if hide is not None:  # a copy holds no value that is hidden, and no secret to look for
            keys = {condition.key for condition in self.conditions}
            keys |= {key for tried in self.path.tried for key in self._read_by(tried)}
            hide = HiddenKeys(frozenset(key for key in keys if hide.hides_key(key)))
        return (type(self), (self.path, self.values, hide))

    def _read_by(self, tried: Tried) -> Iterator[str]:
        function = self.function_of(tried)
        return iter(()) if function is None else (key for key, _, _ in function.inputs)


def shown(value: Any) -> Any:
    """Give a recorded value as evidence shows it: plain where it can be made so."""
    try:
        return plain(value)
    except Exception:  # a foreign scalar that cannot be made plain is shown by its type
        return value


def _equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if isinstance(left, FunctionRecord) and isinstance(right, FunctionRecord):
        return len(left.inputs) == len(right.inputs) and all(map(_equal, _flat(left), _flat(right)))
    try:
        return same(left, right) or summary_of(left) == summary_of(right) == "NaN"
    except Exception:
        return False


def _flat(record: FunctionRecord) -> tuple[Any, ...]:
    return (
        *(part for pair in record.inputs for part in pair),
        record.returned,
        record.error,
        record.error_type,
    )


def judged_values(path: DecisionPath, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield what something was judged on: every value compared or read, under its key; not served.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, decide
    >>> made = decide({"age": 9}, [Rule({"age": {"gt": 7}}, "old")])
    >>> list(judged_values(made.path, made.raw_values))
    [('age', 9)]
    """
    for tried in path.tried:
        when = when_of(path.rules, tried)
        if isinstance(when, Mapping):
            keys = (key for key, ops in when.items() for _ in ops)
            yield from zip(keys, values[tried.start : tried.start + len(tried.codes)], strict=False)
            continue
        record = values[tried.start]
        if isinstance(record, FunctionRecord):
            yield from record.inputs


class Decision(_Judged):
    """A branch with the evidence for it: what was asked, of which values, and what came out.

    Parameters
    ----------
    path : DecisionPath
        What happened, apart from the values.
    values : tuple
        The values it happened with.
    hide : Hider, optional
        What must not be seen.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet, decide
    >>> posture = RuleSet("health-signal", "v1", [Rule({"age_days": {"gt": 7}}, "unprotected")],
    ...                   default="protected")
    >>> decide({"age_days": 30}, posture).sentence
    'unprotected by rule 1 of health-signal v1: age_days 30 > 7'
    >>> decide({}, posture).sentence
    'declined: rule 1 of health-signal v1 could not be read, age_days is missing'
    """

    __slots__ = ()

    @property
    def branch(self) -> str | None:
        """The branch taken; None when no rule was true and there is no default."""
        return None if self.path.branch is None else self._word(self.path.branch)

    @property
    def via(self) -> str:
        """How it came about: ``rule``, ``default``, ``unreadable``, ``outside`` or ``none``."""
        return self.path.via

    @property
    def status(self) -> str | None:
        """Why a value could not be read, when that decided."""
        return None if self.path.unreadable is None else self.path.unreadable["status"]

    @property
    def rule_index(self) -> int | None:
        """The place of the rule that was true, or that could not be read."""
        return self.path.rule_index

    @property
    def rule(self) -> Rule | None:
        """The rule that was true, or that could not be read."""
        return None if self.path.rule_index is None else self.rules.rules[self.path.rule_index]

    @property
    def outside(self) -> Outside | None:
        """The entry of the ground outside that matched."""
        index = self.path.outside_index
        return None if index is None else self.rules.outside[index]

    @property
    def label(self) -> str | None:
        """The author's sentence for what decided."""
        source: Rule | Default | Unreadable | None = None
        if self.via == "rule":
            source = self.rule
        elif self.via == "default":
            source = self.rules.default
        elif self.via == "unreadable" and isinstance(self.rules.unreadable, Unreadable):
            source = self.rules.unreadable
        label = self.outside.what if self.outside else source.label if source else None
        return None if label is None else str(self.scrub(label))

    @property
    def deciding(self) -> Tried | None:
        """What decided, among what was tried; None for the default."""
        return self.path.tried[-1] if self.via in ("rule", "unreadable", "outside") else None

    @property
    def cause(self) -> str:
        """What decided, with value and limit: ``age_days 30 > 7``."""
        tried = self.deciding
        if tried is None:
            return "default: no rule fired" if self.via == "default" else "no rule fired"
        return self.text_of(tried)

    @property
    def sentence(self) -> str:
        """The whole evidence in one sentence, the same wherever the decision is told."""
        title = visible(str(self.scrub(self.rules.title)))
        of = f" of {title}" if title else ""
        branch = visible(str(self.scrub(self.branch or "no branch")))
        if self.via == "rule":
            return f"{branch} by rule {self._number}{of}: {self.cause}"
        if self.via == "default":
            return f"{branch} by default{of}: no rule fired"
        if self.via == "unreadable":
            return f"{branch}: rule {self._number}{of} could not be read, {self.cause}"
        if self.outside:
            what, why = self.scrub(self.outside.what), self.scrub(self.outside.why)
            return (
                f"{branch}: outside {title or 'the rules'}, {visible(what)} ({self.cause}): "
                f"{visible(why)}"
            )
        return f"{branch}: no rule{of} fired, and there is no default"

    @property
    def _number(self) -> int:
        return (self.rule_index or 0) + 1

    @property
    def evidence(self) -> dict[str, Any]:
        """The evidence under its published keys, with raw values beside their summaries."""
        found = self._evidence()
        found["chosen"] = self.branch
        default = self.rules.default
        found["default"] = None if default is None else default.branch
        if default is not None and default.label is not None:
            found["defaultLabel"] = self.scrub(default.label)
        if self.path.unreadable is not None:
            found["unreadable"] = {k: self.scrub(v) for k, v in self.path.unreadable.items()}
        return found

    def to_dict(self) -> dict[str, Any]:
        """Give the decision as JSON values."""
        found = {
            "branch": self.branch,
            "via": self.via,
            "ruleIndex": self.rule_index,
            "label": self.label,
            "cause": self.cause,
            "sentence": self.sentence,
            "evidence": _wire(self.evidence),
        }
        return found | self._stamp()

    def view(self, subject: str | None = None, place: str | None = None) -> Card:
        """Show the decision as a card: the sentence, then every rule with what became of it.

        Parameters
        ----------
        subject : str, optional
            Whom or what it is about.
        place : str, optional
            Where it stands in a longer record (``"walk row 27 of 46"``).
        """
        from runbook_nb.rules.cards import decision_card

        return decision_card(self, subject, place)


class Selection(_Judged):
    """The branches whose rules were true, with the evidence for them.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, select
    >>> select({"a": 5}, [Rule({"a": {"gt": 1}}, "x"), Rule({"a": {"gt": 9}}, "y")]).sentence
    'selected x: a 5 > 1'
    """

    __slots__ = ()

    @property
    def branches(self) -> tuple[str, ...]:
        """The selected branches in rule order, each once."""
        return tuple(dict.fromkeys(self.rules.rules[index].then for index in self.path.selected))

    @property
    def sentence(self) -> str:
        """What was selected, and why."""
        if self.path.via == "outside":
            entry = self.rules.outside[self.path.outside_index or 0]
            return f"selected nothing: outside the rules, {visible(str(self.scrub(entry.what)))}"
        if not self.branches:
            return "selected nothing: no rule fired"
        causes = [
            self.text_of(tried)
            for tried in self.path.tried
            if tried.result is True and not tried.outside
        ]
        return f"selected {', '.join(map(visible, self.branches))}: {'; '.join(causes)}"

    @property
    def evidence(self) -> dict[str, Any]:
        """The evidence under its published keys."""
        return self._evidence() | {"selected": list(self.branches)}

    def to_dict(self) -> dict[str, Any]:
        """Give the selection as JSON values."""
        return {
            "branches": list(self.branches),
            "sentence": self.sentence,
            "evidence": _wire(self.evidence),
        } | self._stamp()

    def view(self, subject: str | None = None, place: str | None = None) -> Card:
        """Show the selection as a card, as a decision is shown."""
        from runbook_nb.rules.cards import selection_card

        return selection_card(self, subject, place)


def _wire(evidence: dict[str, Any]) -> Any:
    try:
        return to_wire(evidence)
    except Exception:  # a value that contains itself, or is too deep: its summary must do
        for entry in (*evidence["rules"], *evidence.get("outside", ())):
            for condition in entry.get("conditions", ()):
                condition["actual"] = condition["actualSummary"]
            if "returned" in entry:
                entry["returned"] = summary_of(entry["returned"])
        return to_wire(evidence)


__all__ = ["Condition", "Decision", "FunctionResult", "Selection", "judged_values", "shown"]
