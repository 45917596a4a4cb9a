"""One side of a comparison: every subject of an answer with what became of it, and why.

Bridge layer. A side is made of an envelope, of an envelope judged again, or of a frame that rules
judged. What became of a subject is one of a few standings, and a subject has the number of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runbook_nb._frozen import Immutable
from runbook_nb._text import counted, visible
from runbook_nb.record.log import OK, FanOut
from runbook_nb.record.slots import reason_of, served_subjects
from runbook_nb.rules import Decision, RuleSet
from runbook_nb.rules.columns import Numbers, smallest
from runbook_nb.rules.known import Again, Gap, KnownFacts, Way
from runbook_nb.rules.model import DECLINED_BRANCH
from runbook_nb.rules.plan import DecisionPath
from runbook_nb.rules.wording import limit_text, op_words
from runbook_nb.runbook.facts import facts_of_decisions, facts_of_fans
from runbook_nb.runbook.verdicts import subject_column

if TYPE_CHECKING:
    from runbook_nb.runbook.dossier import Dossier, SubjectFacts
    from runbook_nb.runbook.envelope import Envelope
    from runbook_nb.runbook.told import ToldDecision

#: Why there is no verdict -> how a sentence counts those subjects.
GAP_WORDS: Final[dict[str, str]] = {
    "not_reached": "never reached",
    "failed": "failed",
    "undecided": "undecided",
    "not_recorded": "cannot be re-judged: not recorded",
    "hidden": "cannot be re-judged: hidden",
    "refused": "refused by the rules",
    "not_carried": "not carried by a copy",
    "unnamed": "not compared: hidden names cannot be told apart",
}


class Standing(NamedTuple):
    """What became of a subject.

    Attributes
    ----------
    branch : str or None
        The verdict; None when there is none.
    via : str
        ``rule``, ``default``, ``unreadable``, ``outside`` or ``none``; ``told`` where only the
        word is carried, ``gap`` where there is no verdict.
    rule_index : int or None
        The rule that decided.
    path : DecisionPath or None
        The outcomes, where they are carried.
    kind : str
        Why there is no verdict: a key of `GAP_WORDS`; empty when there is one.
    reason : str
        The same in full.
    """

    branch: str | None
    via: str
    rule_index: int | None = None
    path: DecisionPath | None = None
    kind: str = ""
    reason: str = ""

    @classmethod
    def of_way(cls, way: Way) -> Standing:
        """Give the standing of rows that were judged again."""
        if way.gap is not None:
            return cls.of_gap(way.gap)
        return _of_path(way.path, way.path.branch)

    @classmethod
    def of_gap(cls, gap: Gap) -> Standing:
        """Give the standing of rows that could not be judged again."""
        return cls(None, "gap", gap.rule_index, None, gap.kind, gap.words)

    @property
    def decided(self) -> bool:
        """Whether there is a verdict."""
        return self.branch is not None


def _of_path(path: DecisionPath, branch: str | None) -> Standing:
    if branch is None:
        reason = "no rule fired, and there is no default"
        return Standing(None, "gap", None, path, "undecided", reason)
    return Standing(branch, path.via, path.rule_index, path)


#: A decision about one subject, by its row.
Decided = Callable[[int], "Decision | ToldDecision | None"]


class Side(Immutable):
    """The subjects of one side of a comparison.

    Attributes
    ----------
    title, version : str
        Name and version of the rules; the version alone heads columns.
    rules : RuleSet or None
        Their content, with what a policy hides replaced; None when it is not carried.
    digest : str or None
        That of the rules that judged.
    subjects : sequence
        What names each subject.
    standings : tuple of Standing
        What became of them.
    numbers : bytes or array
        Per subject the place of its standing.
    facts : KnownFacts or None
        What is known of each subject; None where there is nothing to judge again.
    again : bool
        Whether it was judged again from recorded facts.
    complete : bool
        Whether every subject is held; a copy may hold fewer.
    """

    __slots__ = (
        "_decision",
        "again",
        "complete",
        "digest",
        "facts",
        "numbers",
        "rules",
        "standings",
        "subjects",
        "title",
        "version",
    )

    def __init__(
        self,
        *,
        title: str,
        version: str,
        rules: RuleSet | None,
        digest: str | None,
        subjects: Sequence[Any],
        standings: Sequence[Standing],
        numbers: Sequence[int],
        decision: Decided,
        facts: KnownFacts | None = None,
        again: bool = False,
        complete: bool = True,
    ) -> None:
        self.title = title
        self.version = version
        self.rules = rules
        self.digest = digest
        self.subjects = subjects
        self.standings = tuple(standings)
        self.numbers: Numbers = smallest(numbers, max(len(self.standings) - 1, 0))
        self.facts = facts
        self.again = again
        self.complete = complete
        self._decision = decision

    def __repr__(self) -> str:
        return f"<Side {visible(self.title)} · {counted(len(self), 'subject')}>"

    def __len__(self) -> int:
        return len(self.numbers)

    def standing(self, row: int) -> Standing:
        """Give what became of a subject."""
        return self.standings[self.numbers[row]]

    def decision(self, row: int) -> Decision | ToldDecision | None:
        """Give the decision about a subject, as it may be seen; None where there is none."""
        return self._decision(row) if self.standing(row).decided else None

    @property
    def words(self) -> tuple[str, ...]:
        """The verdicts in declared order, then those no rule knows; ``declined`` is the last."""
        order = list(self.rules.branches) if self.rules is not None else []
        order += [one.branch for one in self.standings if one.branch is not None]
        return declined_last(order)

    def decided_by(self, standing: Standing) -> str:
        """Say what decided, in few words: ``rule 3, > 7``.

        The whole condition is said where a rule has several, or compares with a list.
        """
        if standing.via == "told":
            return "not carried"
        if standing.via == "outside" and standing.path is not None:
            return f"ground outside {(standing.path.outside_index or 0) + 1}"
        if standing.via not in ("rule", "unreadable"):
            return standing.via
        number = f"rule {(standing.rule_index or 0) + 1}"
        if standing.via == "unreadable":
            return f"{number}, unreadable"
        said = _only_condition(self.rules, standing.rule_index)
        return f"{number}, {said}" if said else number


def share_a_version(before: Side, after: Side) -> bool:
    """Say whether two sides were judged by two contents under one version."""
    digests = {before.digest, after.digest}
    return before.title == after.title and None not in digests and len(digests) > 1


def declined_last(words: Iterable[str]) -> tuple[str, ...]:
    """Give verdicts each once, in order, ``declined`` at the end.

    Examples
    --------
    >>> declined_last(["declined", "old", "declined"])
    ('old', 'declined')
    """
    order = dict.fromkeys(words)
    if DECLINED_BRANCH in order:
        order[DECLINED_BRANCH] = order.pop(DECLINED_BRANCH)
    return tuple(order)


def _only_condition(rules: RuleSet | None, index: int | None) -> str:
    if rules is None or index is None or index >= len(rules.rules):
        return ""
    rule = rules.rules[index]
    if not isinstance(rule.when, Mapping) or len(rule.when) != 1:
        return ""
    ((key, ops),) = rule.when.items()
    if len(ops) != 1:
        return ""
    ((op, threshold),) = ops.items()
    limit = limit_text(op, threshold, rule.unit_of(key))
    return f"{op_words(op, threshold)} {limit}".strip()


# --- of envelopes ------------------------------------------------------------------------------


def side_of(envelope: Envelope) -> Side:
    """Give the subjects of an envelope as they were judged.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Rule
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> rows = [{"host": "a", "days": 9}, {"host": "b", "days": 2}]
    >>> side = side_of(triage(rows, rules, subject="host", source="two rows"))
    >>> [(name, side.standing(row).branch) for row, name in enumerate(side.subjects)]
    [('a', 'old'), ('b', 'fresh')]
    """
    if not envelope.carries_dossier:
        return _of_rows(envelope)
    dossier = envelope.dossier
    fans = [fan for group in dossier.fan_outs if group.judges for fan in group.executions]
    if envelope.run is not None and fans:
        return _of_fans(envelope, fans)
    judged = [facts for facts in dossier.subjects() if _is_judged(dossier, facts)]
    if not judged and not dossier.fan_outs:  # the rows are all there is
        return _of_rows(envelope)
    return side_of_facts(envelope, judged)


def _is_judged(dossier: Dossier, facts: SubjectFacts) -> bool:
    groups = {group.key: group.judges for group in dossier.fan_outs}
    return groups.get(facts.stage, not any(groups.values()))


def _titles(envelope: Envelope, standings: Sequence[Standing]) -> dict[str, Any]:
    """Say which rules a side was judged by: those of its paths, else those declared."""
    name, version = envelope.rules
    found: dict[str, Any] = {
        "title": f"{name} {version}" if name is not None else f"rules version {version}",
        "version": version,
        "rules": None,
        "digest": None,
    }
    paths = [one.path.rules for one in standings if one.path is not None]
    sources = envelope.dossier.sources if envelope.carries_dossier else ()
    for source in sources:
        if source.judged is not None and source.judged in paths:
            found["rules"], found["digest"] = source.rules, source.digest
            found["title"] = f"{source.name} {source.version}".strip() or found["title"]
            found["version"] = source.version or version
            break
    else:
        if len(sources) == 1:
            found["rules"], found["digest"] = sources[0].rules, sources[0].digest
    found["title"] = visible(found["title"])
    return found


def _of_rows(envelope: Envelope) -> Side:
    """Make a side of verdict rows alone."""
    rows = list(envelope.verdicts)
    names = [None if (c := subject_column(row)) is None else row[c] for row in rows]
    words = [str(row["verdict"]) for row in rows]
    order = {word: place for place, word in enumerate(dict.fromkeys(words))}
    standings = [Standing(word, "told") for word in order]
    return Side(
        **_titles(envelope, standings),
        subjects=names,
        standings=standings,
        numbers=[order[word] for word in words],
        decision=lambda row: None,
        complete=envelope.verdicts.complete,
    )


def side_of_facts(envelope: Envelope, subjects: Sequence[SubjectFacts]) -> Side:
    """Make a side of subjects one by one: of a copy, or of a run's own decisions."""
    order: dict[Standing, int] = {}
    numbers = [order.setdefault(_standing(facts), len(order)) for facts in subjects]
    return Side(
        **_titles(envelope, list(order)),
        subjects=[facts.subject if facts.subject is not None else None for facts in subjects],
        standings=list(order),
        numbers=numbers,
        decision=lambda row: subjects[row].decision,
        complete=envelope.dossier.complete,
        facts=facts_of_decisions(
            [None if facts.status == "not_reached" else facts.decision for facts in subjects]
        ),
    )


def _standing(facts: SubjectFacts) -> Standing:
    if facts.status != "ok":
        return Standing(None, "gap", None, None, facts.status, facts.reason or "")
    decision = facts.decision
    if decision is None:
        return Standing(None, "gap", None, None, "undecided", "no decision by rules")
    if isinstance(decision, Decision):
        return _of_path(decision.path, decision.branch)
    if decision.branch is None:
        return Standing(None, "gap", None, None, "undecided", decision.sentence)
    return Standing(decision.branch, "told")


def _of_fans(envelope: Envelope, fans: Sequence[FanOut]) -> Side:
    """Make a side of the branches of live fan-outs."""
    dossier = envelope.dossier
    order: dict[Standing, int] = {}
    names: list[Any] = []
    numbers: list[int] = []
    places: list[tuple[FanOut, int]] = []
    for fan in fans:
        names += served_subjects(dossier.redactor, fan, dossier.naming(fan))
        numbers += _numbers(dossier, fan, order)
        places.append((fan, len(names)))

    def decision(row: int) -> Decision | None:
        start = 0
        for fan, end in places:
            if row < end:
                return dossier.decision_of(fan, row - start)
            start = end
        raise IndexError(row)

    return Side(
        **_titles(envelope, list(order)),
        subjects=names,
        standings=list(order),
        numbers=numbers,
        decision=decision,
        facts=facts_of_fans(dossier, fans),
    )


def _numbers(dossier: Dossier, fan: FanOut, order: dict[Standing, int]) -> list[int]:
    """Give the standing of each branch by its number, adding those not met before."""
    text = dossier.redactor.text
    found: dict[tuple[int, int], int] = {}
    numbers = []
    for index, pair in enumerate(zip(fan.shape_numbers(), fan.status_numbers(), strict=True)):
        number = found.get(pair)
        if number is None:
            if pair[1] != OK:  # each of them has a reason of its own
                status, reason = fan.status(index), text(reason_of(fan, index))
                standing = Standing(None, "gap", None, None, status, reason)
                numbers.append(order.setdefault(standing, len(order)))
                continue
            event = dossier.deciding(fan, fan.log.shapes[pair[0]])
            path = None if event is None else event.code.path
            if path is None:
                standing = Standing(None, "gap", None, None, "undecided", "no decision by rules")
            else:
                standing = _of_path(path, None if path.branch is None else text(path.branch))
            number = found[pair] = order.setdefault(standing, len(order))
        numbers.append(number)
    return numbers


# --- of what is judged again -------------------------------------------------------------------


def side_of_again(
    again: Again, subjects: Sequence[Any], shown: RuleSet, before: Side | None = None
) -> Side:
    """Give subjects as they were judged again.

    Parameters
    ----------
    again : Again
    subjects : sequence
        What names each.
    shown : RuleSet
        The rules as they may be seen.
    before : Side, optional
        How they stood before: who was never reached has no verdict now either. Of whom a branch
        failed, the facts it had recorded are judged.
    """
    order: dict[Standing, int] = {}
    earlier = before.standings if before is not None else ()
    numbers: Sequence[int]
    if before is not None and any(one.kind in ("not_reached", "failed") for one in earlier):
        met: dict[tuple[int, int], int] = {}
        numbers = []
        for pair in zip(before.numbers, again.numbers, strict=True):
            if pair not in met:
                one = _again(earlier[pair[0]], again.ways[pair[1]])
                met[pair] = order.setdefault(one, len(order))
            numbers.append(met[pair])
    else:
        own = [order.setdefault(Standing.of_way(way), len(order)) for way in again.ways]
        numbers = again.numbers if own == [*range(len(own))] else [own[n] for n in again.numbers]
    return Side(
        title=visible(shown.title),
        version=visible(shown.version),
        rules=shown,
        digest=again.rules.digest,
        subjects=subjects,
        standings=list(order) or [Standing(None, "gap")],
        numbers=numbers,
        decision=again.judged.decision,
        facts=again.facts,
        again=True,
        complete=before is None or before.complete,
    )


def _again(before: Standing, way: Way) -> Standing:
    if before.kind == "not_reached":
        return before
    now = Standing.of_way(way)
    if before.kind != "failed" or now.kind != "not_recorded":
        return now
    return now._replace(reason=f"{now.reason}; its branch failed: {before.reason}")


__all__ = ["GAP_WORDS", "Side", "Standing", "side_of", "side_of_again", "side_of_facts"]
