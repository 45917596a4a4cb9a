"""Which rules a plan is held to: two profiles, and every single rule by name.

``compat`` gives what the published enforcer was observed to do, ``safe`` what no step can be
bypassed or frozen by. A policy is a value: what a record was made under is written with it, so that
a reader knows which rules a "completed" means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable
from runbook_nb._text import counted, did_you_mean
from runbook_nb._value import frozen
from runbook_nb.errors import PlaybookDefinitionError

if TYPE_CHECKING:
    from runbook_nb._view import Card

#: Each rule: what it is under ``compat``, what under ``safe``, and all it can be.
_FLAGS: Final[dict[str, tuple[Any, Any, tuple[Any, ...]]]] = {
    "credit": ("pointer", "admitted", ("pointer", "admitted")),
    "lookahead": (False, True, (False, True)),
    "seen": ("attempted", "successful", ("attempted", "successful")),
    "cap_counts": ("all", "successful", ("all", "expected", "successful")),
    "cap_applies_to": ("listed", "all", ("listed", "all")),
    "on_cap": ("close", "hold", ("close", "fail", "hold")),
    "on_stuck": ("none", "ask", ("none", "fail", "close", "ask")),
    "floor": ("record", "hold", ("record", "hold")),
    "evidence": ("record", "record", ("record", "hold")),
    "optional": ("blocking", "passable", ("blocking", "passable")),
    "empty_step": ("open", "manual", ("open", "manual", "reject")),
    "after_complete": (
        "reject",
        "as_others",
        ("reject", "as_others", "record", "allow"),
    ),
    "always_allowed": ((), ("skills", "task_complete"), ()),
    "honor_strict_sequence": (False, True, (False, True)),
    "credit_early": (False, True, (False, True)),
    "evaluate_validation": (False, True, (False, True)),
    "enforce_timeouts": (False, True, (False, True)),
    "on_timeout": ("record", "record", ("record", "fail", "block")),
    "enforce_budget": (False, True, (False, True)),
    "unresolved_skills": ("ignore", "error", ("ignore", "warn", "error")),
    "empty_skill_list": ("unbound", "deny", ("unbound", "deny")),
    "skill_patterns": ("literal", "understood", ("literal", "understood")),
    "skills_mean": ("bound", "bound", ("bound", "advisory")),
    "inherit_effort": (False, True, (False, True)),
    "evidence_from": ("attempted", "successful", ("attempted", "successful")),
    "probe_text": ("v1", "v2", ("v1", "v2")),
    "record_started": ("result", "admission", ("result", "admission")),
    "cached_counts": (False, True, (False, True)),
    "allow_duplicate_ids": (True, False, (False, True)),
    "eviction": ("silent", "refuse", ("silent", "refuse")),
    "score_scope": ("reached", "required", ("reached", "required", "all")),
}

PROFILES: Final = ("safe", "compat")


@frozen(init=False, repr=False)
class EnforcementPolicy(Renderable):
    """The rules a plan is held to.

    Parameters
    ----------
    profile : {"safe", "compat"}
        Where every rule starts from.
    **overrides
        Rules that are to be otherwise, by name.

    Attributes
    ----------
    profile : str
        The profile it starts from.
    credit : {"pointer", "admitted"}
        Whether a call belongs to the step that is current when it ends, or to the one it was
        admitted under.
    lookahead : bool
        Whether the calls of a batch are judged as if the earlier ones had succeeded.
    seen : {"attempted", "successful"}
        Which calls make an expected tool count as called.
    cap_counts : {"all", "expected", "successful"}
        Which calls use up ``max_tool_calls``.
    cap_applies_to : {"listed", "all"}
        Whether unlisted tools that are let through are held to the cap too.
    on_cap : {"close", "fail", "hold"}
        What a full cap does to a step whose expected tools were not all called.
    on_stuck : {"none", "fail", "close", "ask"}
        What happens to a step that no call can close any more; ``ask`` leaves it to a person.
    floor : {"record", "hold"}
        Whether a step below ``min_tool_calls`` closes with a note, or stays open.
    evidence : {"record", "hold"}
        Whether a step whose tools were called, and whose probes, ``checks`` or ``validation`` are
        not met, closes with a note, or stays open for more calls until they are or its cap is full.
    optional : {"blocking", "passable"}
        Whether a call that fits a later step may pass over optional ones.
    empty_step : {"open", "manual", "reject"}
        Whether a step that says nothing about tools lets any through, is closed by a person, or
        is refused when the enforcer is made.
    after_complete : {"reject", "as_others", "record", "allow"}
        What happens to calls after the last step: ``as_others`` blocks when violations block.
    always_allowed : tuple of str
        Names, or globs, of tools that are never judged and belong to no step, but for those that
        a step expects.
    honor_strict_sequence : bool
        Whether ``strict_sequence=False`` lets steps interleave.
    credit_early : bool
        Whether a later step's tool, called early, is remembered and offered for confirmation.
    evaluate_validation, enforce_timeouts, enforce_budget : bool
        Whether ``validation`` and ``checks``, ``timeout_seconds`` and ``max_iterations`` are acted
        on.
    on_timeout : {"record", "fail", "block"}
        What a step that took too long comes to.
    unresolved_skills : {"ignore", "warn", "error"}
        What a skill that nobody gave does when the enforcer is made.
    empty_skill_list : {"unbound", "deny"}
        Whether a skill that allows no tools says nothing, or forbids all.
    skill_patterns : {"literal", "understood"}
        Whether ``Bash(git:*)`` is a name, or a bound on the arguments of ``Bash``.
    skills_mean : {"bound", "advisory"}
        Whether a skill's tools are all that may be called, or only approved beforehand.
    inherit_effort : bool
        Whether a skill's numbers of calls bind where the step has none of its own.
    evidence_from : {"attempted", "successful"}
        Which calls can match a probe.
    probe_text : {"v1", "v2"}
        In what text of a call a probe is looked for.
    record_started : {"result", "admission"}
        Whether a step begins with the end of its first call, or when that is admitted.
    cached_counts : bool
        Whether an answer taken from a cache counts as a call.
    allow_duplicate_ids : bool
        Whether steps may share an id.
    eviction : {"silent", "refuse"}
        Whether a run whose plan had to be dropped starts over, or is refused further calls.
    score_scope : {"reached", "required", "all"}
        Over which steps the score is taken unless asked otherwise.

    Raises
    ------
    PlaybookDefinitionError
        There is no such rule, or it cannot be that.

    Examples
    --------
    >>> EnforcementPolicy("safe", floor="record").label
    'safe, 1 change'
    >>> EnforcementPolicy("compat").credit
    'pointer'
    """

    profile: str
    credit: str
    lookahead: bool
    seen: str
    cap_counts: str
    cap_applies_to: str
    on_cap: str
    on_stuck: str
    floor: str
    evidence: str
    optional: str
    empty_step: str
    after_complete: str
    always_allowed: tuple[str, ...]
    honor_strict_sequence: bool
    credit_early: bool
    evaluate_validation: bool
    enforce_timeouts: bool
    on_timeout: str
    enforce_budget: bool
    unresolved_skills: str
    empty_skill_list: str
    skill_patterns: str
    skills_mean: str
    inherit_effort: bool
    evidence_from: str
    probe_text: str
    record_started: str
    cached_counts: bool
    allow_duplicate_ids: bool
    eviction: str
    score_scope: str

    def __init__(self, profile: str = "safe", **overrides: Any) -> None:
        if profile not in PROFILES:
            raise PlaybookDefinitionError(
                f"there is no policy profile {profile!r}",
                code="unknown_profile",
                where="profile",
                fix=did_you_mean(str(profile), PROFILES) or "use 'safe' or 'compat'",
            )
        values = _rules_of(profile)
        for name, value in overrides.items():
            values[name] = _checked(name, value)
        object.__setattr__(self, "profile", profile)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, given: EnforcementPolicy | Mapping[str, Any] | str | None) -> EnforcementPolicy:
        """Take a policy in any form in which it can be given.

        Parameters
        ----------
        given : EnforcementPolicy, mapping, str or None
            A policy, its rules by name (``profile`` among them), a profile; None is ``safe``.

        Raises
        ------
        PlaybookDefinitionError
            It is none of these, or has a rule that does not exist.

        Examples
        --------
        >>> EnforcementPolicy.of({"profile": "compat", "seen": "successful"}).overrides
        {'seen': 'successful'}
        """
        if isinstance(given, EnforcementPolicy):
            return given
        if given is None:
            return cls()
        if isinstance(given, str):
            return cls(given)
        if isinstance(given, Mapping):
            return cls(**{str(name): value for name, value in given.items()})
        raise PlaybookDefinitionError(
            f"a policy cannot be made of a {type(given).__name__}",
            code="bad_policy",
            where="policy",
            fix="give 'safe', 'compat', a mapping of rules or an EnforcementPolicy",
        )

    @property
    def overrides(self) -> dict[str, Any]:
        """The rules that are not as the profile has them."""
        usual = _rules_of(self.profile)
        return {name: getattr(self, name) for name in usual if getattr(self, name) != usual[name]}

    @property
    def label(self) -> str:
        """The policy in a few words, as every view shows it."""
        changes = len(self.overrides)
        return f"{self.profile}, {counted(changes, 'change')}" if changes else self.profile

    def view(self) -> Card:
        """Show every rule, those that are not as the profile has them first."""
        from runbook_nb.playbooks.rulecards import policy_card

        return policy_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Give every rule by its name, as JSON carries it; `of` reads it back.

        Examples
        --------
        >>> policy = EnforcementPolicy("safe", on_cap="fail")
        >>> EnforcementPolicy.of(policy.to_dict()) == policy
        True
        """
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**told, "always_allowed": list(self.always_allowed)}


def _rules_of(profile: str) -> dict[str, Any]:
    return {
        name: compat if profile == "compat" else safe for name, (compat, safe, _) in _FLAGS.items()
    }


def _checked(name: str, value: Any) -> Any:
    if name not in _FLAGS:
        raise PlaybookDefinitionError(
            f"a policy has no rule {name!r}",
            code="unknown_rule",
            where=name,
            fix=did_you_mean(name, _FLAGS) or f"the rules are {', '.join(_FLAGS)}",
        )
    if name == "always_allowed":
        return _texts(value)
    choices = _FLAGS[name][2]
    # `1 == True`, yet a rule that is on or off is said so.
    if any(value == one and type(value) is type(one) for one in choices):
        return value
    words = [one for one in choices if isinstance(one, str)]
    near = did_you_mean(value, words) if words and isinstance(value, str) else None
    raise PlaybookDefinitionError(
        f"the rule {name} cannot be {value!r}",
        code="bad_rule_value",
        where=name,
        fix=near or f"use {' or '.join(map(repr, choices))}",
    )


def _texts(value: Any) -> tuple[str, ...]:
    given = (value,) if isinstance(value, str) else value
    if isinstance(given, list | tuple | set | frozenset):
        names = sorted(given) if isinstance(given, set | frozenset) else list(given)
        if all(isinstance(name, str) and name for name in names):
            return tuple(names)
    raise PlaybookDefinitionError(
        f"the rule always_allowed cannot be {value!r}",
        code="bad_rule_value",
        where="always_allowed",
        fix="give the names of tools, or globs such as 'read_*', in a list",
    )
