"""Claims about rule sets and meanings: who judged, under which version, and in whose words.

Bridge layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from runbook_nb._text import listed, visible
from runbook_nb.record.claims import ANY, HIDDEN, NOTHING_ELSE, Claims, Place, agrees
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.record.structure import Structure
from runbook_nb.rules import Decision, RuleSet
from runbook_nb.rules.model import Unreadable
from runbook_nb.rules.plan import DecisionPath
from runbook_nb.runbook.dossier import RuleSource
from runbook_nb.runbook.grounds import Ground
from runbook_nb.runbook.meanings import compose_meanings, observed_meanings, resolve_decider
from runbook_nb.runbook.told import ToldDecision

#: Version word of an answer whose runbook declared no rules.
UNDECLARED: Final = "undeclared"

CONTENT: Final = "its content"


def claim_rules(ground: Ground, claims: Claims) -> None:
    """Claim which rules judged, and that the stamp on the answer is theirs."""
    _stamp(ground, claims)
    sources = () if ground.dossier is None else ground.dossier.sources
    for number, source in enumerate(() if ground.live else sources):
        _source(ground, claims, number, source)
    for given in ground.rules:
        _given(claims, given, sources)
    _version(ground, claims)
    if ground.dossier is None and not ground.rules:
        claims.unchecked("rules.digest", "the rules that judged", "no rule set is carried")


def _stamp(ground: Ground, claims: Claims) -> None:
    version, place = ground.result.get("rule_version"), ("result", "rule_version")
    told = f"rules version {version}"
    if ground.dossier is None:
        sentence = str(ground.coverage.get("sentence", ""))
        if version == UNDECLARED:
            holds = " under " not in sentence.partition(" — ")[0]
        else:
            holds = f" {version} — " in sentence
        if not sentence:
            claims.unchecked("rules.version", told, NOTHING_ELSE, place)
            return
        claims.settle("rules.version", told, holds, "the sentence of the ledger", place)
        return
    stamp = ground.dossier.stamp
    declared = UNDECLARED if stamp is None else stamp[1]
    basis, covered = "the stamp of the dossier", (("dossier", "stamp"),)
    if stamp is None:
        claims.check("rules.version", told, version, declared, basis, place, *covered)
        return
    claims.check("rules.version", told, version, declared, basis, place)
    said = " ".join(stamp)
    titles = [(source.name, source.version) for source in ground.dossier.sources if source.name]
    told = f"the decisions were made under {said}"
    if not titles:
        spoken = f" under {said} — " in str(ground.coverage.get("sentence"))
        claims.settle("rules.stamp", told, spoken, "the sentence of the ledger", *covered)
        return
    judged = listed(" ".join(title) for title in titles)
    claims.settle(
        "rules.stamp", told, stamp in titles, "the rules that judged", *covered, told=(said, judged)
    )


def _source(ground: Ground, claims: Claims, number: int, source: RuleSource) -> None:
    base: Place = ("dossier", "rule_sets", number)
    title = f"{source.name} {source.version}".strip() or "rules without a name"
    name = title if title else str(number)
    rules = source.rules
    if rules is None:
        reason = "its content is not carried: a rule is a function, or it could not be written"
        for part in ("digest", "name", "version", "content", "hidden"):
            claims.unchecked(f"rules[{name}].{part}", title, reason, (*base, part))
        return
    found, expected = [source.name, source.version], [rules.name, rules.version]
    told = f"it is called {title}"
    claims.check(
        f"rules[{name}].name", told, found, expected, CONTENT, (*base, "name"), (*base, "version")
    )
    told = f"{title} has the digest {source.digest}"
    covered = ((*base, "digest"), (*base, "content"))
    if not _hides(source):
        claims.check(f"rules[{name}].digest", told, source.digest, rules.digest, CONTENT, *covered)
    else:
        reason = f"it is of limits that are {HIDDEN}"
        claims.unchecked(f"rules[{name}].digest", told, reason, *covered)
    if source.hidden:
        _hidden(ground, claims, name, source, (*base, "hidden"))


def _version(ground: Ground, claims: Claims) -> None:
    """Claim that other content judged under one version before: the word of that session."""
    dossier = ground.dossier
    if dossier is None or ground.live or not dossier.version_note:
        return
    note, place = dossier.version_note, ("dossier", "version_note")
    named = any(f"{s.name} {s.version}".strip() in note for s in dossier.sources)
    if named or not dossier.sources or PLACEHOLDER in note:
        reason = "what judged before it is not carried"
        claims.unchecked("rules.version_note", note, reason, place)
    else:
        titles = [f"{source.name} {source.version}" for source in dossier.sources]
        basis = "the rules that judged"
        claims.settle("rules.version_note", note, False, basis, place, told=(note, titles))


def _hides(source: RuleSource) -> bool:
    """Say whether a written rule set is not the one that judged, as something in it is hidden."""
    return bool(source.hidden) or PLACEHOLDER in repr(source.rules and source.rules.to_dict())


def _hidden(ground: Ground, claims: Claims, name: str, source: RuleSource, place: Place) -> None:
    rules = source.rules
    assert rules is not None  # noqa: S101 - asked of those that are held
    whens = [rule.when for rule in rules.rules] + [one.where for one in rules.outside]
    keys = {key for when in whens if isinstance(when, Mapping) for key in when}
    told = f"hidden: {listed(sorted(source.hidden))}"
    covered = keys_hidden(rules)
    claims.settle(
        f"rules[{name}].hidden",
        told,
        source.hidden <= keys and covered <= source.hidden,
        "the keys and limits of the rules",
        place,
        told=(sorted(source.hidden), sorted(covered or keys)),
    )


def keys_hidden(rules: RuleSet) -> set[str]:
    """Give the keys of a written rule set whose limits were replaced."""
    whens = [rule.when for rule in rules.rules] + [one.where for one in rules.outside]
    return {
        key
        for when in whens
        if isinstance(when, Mapping)
        for key, ops in when.items()
        if any(limit in (PLACEHOLDER, [PLACEHOLDER], [PLACEHOLDER] * 2) for limit in ops.values())
    }


def _given(claims: Claims, given: RuleSet, sources: Iterable[RuleSource]) -> None:
    """Claim that rules the checker has are those that judged."""
    told = f"{given.title} judged, as it was given to check by"
    id_ = f"rules.given[{given.title}]"
    found = [source.digest for source in sources if source.digest == given.digest]
    if found:
        claims.settle(id_, told, True, "the digest of the rules given")
        return
    alike = [s.digest for s in sources if (s.name, s.version) == (given.name, given.version)]
    if alike:
        basis = "the digest of the rules given"
        claims.settle(id_, told, False, basis, told=(alike[0], given.digest))
        return
    judged = [f"{source.name} {source.version}".strip() for source in sources]
    if judged:  # whoever gives rules asks whether it was these that judged
        basis, said = "the rules that judged", listed(map(visible, judged))
        claims.settle(id_, told, False, basis, told=(said, given.title))
        return
    claims.unchecked(id_, told, "the rules that judged are none that is carried")


# --- meanings -----------------------------------------------------------------------------------


def claim_meanings(ground: Ground, claims: Claims) -> None:
    """Claim what each verdict means, in the words of the rules that ran."""
    if not ground.has_rows:
        return
    meanings = ground.envelope.meanings
    if ground.dossier is None:
        for word in meanings:
            place = ("result", "verdict_meanings", word)
            reason = "the rules and the structure are not carried"
            claims.unchecked(f"meaning[{word}]", f"{word}: {meanings[word]}", reason, place)
        return
    expected, exact = _harvested(ground)
    possible = _possible(ground)
    whole = possible is not None
    for word in dict.fromkeys([*meanings, *expected]):
        said, place = meanings.get(word), ("result", "verdict_meanings", word)
        id_, told = f"meaning[{word}]", f"{word}: {said}"
        basis = "the decisions" if ground.live else "the rules and the structure carried"
        if word in expected and agrees(said, expected[word]):
            claims.settle(id_, told, True, basis, place)
        elif exact or (whole and said not in (possible or {}).get(word, ())):
            if said is None and not exact:
                continue
            claims.settle(id_, told, False, basis, place, told=(said, expected.get(word)))
        elif said is not None:
            reason = f"of the decisions {ground.carried_words}, or not all of their labels"
            if possible is None:
                reason = "a rule is a function, or the content of the rules is not carried"
            claims.unchecked(id_, told, reason, place)


def _harvested(ground: Ground) -> tuple[dict[str, str], bool]:
    """Harvest the meanings again; say whether no decision can be missing."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - asked where there is one
    decider = dossier.decider
    if decider is None:
        return {}, False
    text = dossier.redactor.text
    spellings, declared = resolve_decider(dossier.structure, decider)
    run = ground.envelope.run
    if run is not None:
        paths = ((s.name, p.meanings) for each in run.walk.decision_paths() for s, p in each)
        observed = observed_meanings(paths, spellings)
        harvested = compose_meanings(declared, observed) or {}
        told = {text(word): text(said) for word, said in harvested.items()}
        return told, not _is_made_per_item(dossier.structure)
    order = sorted(ground.subjects, key=lambda one: (one.execution, one.index))
    made = (one.decision for one in order)
    last: dict[DecisionPath, None] = {}
    first: dict[DecisionPath, None] = {}
    for decision in made:
        if isinstance(decision, Decision):
            # Of many alike the first gives a branch its place, the last its words.
            last.pop(decision.path, None)
            last[decision.path] = None
            first.setdefault(decision.path)
    pairs = [(decider, path.meanings) for path in (*first, *last)]
    again = compose_meanings(declared, observed_meanings(pairs, frozenset({decider})))
    return again or {}, _is_exact(ground)


def _is_exact(ground: Ground) -> bool:
    """Say whether every decision of the configured decider is held, and nothing else judged."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - asked where there is one
    structure = dossier.structure
    deciders = [node for node in structure.nodes if node.kind == "decider"]
    told = any(isinstance(one.decision, ToldDecision) for one in ground.subjects)
    hidden = any(PLACEHOLDER in str(node.name) for node in deciders)
    loops = any(edge.kind == "loop" for edge in structure.edges)
    failed = any(
        one.status != "ok" and one.reason and "past the cap" not in one.reason
        for one in ground.subjects
    )
    return (
        ground.complete
        and len(deciders) == 1
        and dossier.decider in (deciders[0].id, deciders[0].name)
        and not (told or hidden or loops or failed or _is_made_per_item(structure))
    )


def _is_made_per_item(structure: Structure) -> bool:
    """Say whether charts were made per item: then a decider inside was known by its name alone."""
    return any(node.detail.get("template", "built") != "built" for node in structure.nodes)


def _possible(ground: Ground) -> dict[str, set[str]] | None:
    """Give the words each verdict may mean by the rules held; None where not all are held."""
    dossier = ground.dossier
    assert dossier is not None  # noqa: S101 - asked where there is one
    if len(dossier.rule_sets) < len(dossier.sources):
        return None
    found: dict[str, set[str]] = {}

    def may(branch: str, label: str | None) -> None:
        if label:
            found.setdefault(branch, set()).add(label)

    for rules in dossier.rule_sets:
        if rules.default is not None:
            may(rules.default.branch, rules.default.label)
        if isinstance(rules.unreadable, Unreadable):
            may(rules.unreadable.branch, rules.unreadable.label)
        for rule in rules.rules:
            may(rule.then, rule.label)
    for node in dossier.structure.nodes:
        if node.branch is not None:
            may(node.branch, node.description)
            may(node.branch, node.name)
    return found


__all__ = ["ANY", "claim_meanings", "claim_rules", "keys_hidden"]
