"""The written form of a dossier: what is carried, under which cap, and reading it back.

Bridge layer. What a policy hides is replaced before anything is written, limits of rules
included; where something cannot be written, its words are, and a view says what is not carried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import isnan
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._frozen import thaw
from runbook_nb._json import WireReport, canonical, to_wire
from runbook_nb._text import MISSING
from runbook_nb.errors import LoadError, RunbookError
from runbook_nb.record.counts import FanOutCounts
from runbook_nb.record.redact import PLACEHOLDER, Redactor
from runbook_nb.record.structure import Structure
from runbook_nb.rules import Decision, RuleSet, path_for
from runbook_nb.rules.hiding import HiddenKeys
from runbook_nb.rules.kinds import OTHER, kind_of
from runbook_nb.rules.written import read as read_tagged
from runbook_nb.rules.written import write as write_tagged
from runbook_nb.runbook.dossier import Dossier, RuleSource, SubjectFacts
from runbook_nb.runbook.fans import FanOutGroup
from runbook_nb.runbook.names import name_key

if TYPE_CHECKING:
    from runbook_nb.runbook.told import ToldDecision

#: Written into every carried dossier.
DOSSIER_FORMAT: Final = "runbook_nb/dossier/1"


# -- writing -------------------------------------------------------------------------------


def write_dossier(
    dossier: Dossier, cap: int | None = None, subjects: Iterable[SubjectFacts] | None = None
) -> dict[str, Any]:
    """Write a dossier as JSON values; see `Dossier.to_dict`.

    ``subjects`` are its subjects in the order they are to be written, by default that of items.
    """
    sources = [_written_source(source) for source in dossier.sources]
    numbers = {
        source.judged: number
        for number, (source, entry) in enumerate(zip(dossier.sources, sources, strict=True))
        if source.judged is not None and entry["content"] is not None
    }
    written = {
        "format": DOSSIER_FORMAT,
        "procedure": dossier.procedure,
        "stamp": None if dossier.stamp is None else list(dossier.stamp),
        "decider": dossier.decider,
        "rule_sets": sources,
        "structure": to_wire(dossier.structure.to_dict()),
        "fan_outs": [group.to_dict() for group in dossier.fan_outs],
        "units": dict(dossier.units),
        "ranked": dossier.ranked,
        "rows": to_wire(list(dossier.rows[:cap])),  # a slice is made column by column
        "rows_total": dossier.rows_total,
        "subjects": [
            _written_subject(facts, numbers)
            for facts in islice(dossier.subjects() if subjects is None else subjects, cap)
        ],
        "subjects_total": dossier.subjects_total,
    }
    if dossier.rank:
        written["rank"] = list(dossier.rank)
    if dossier.telling:
        written["telling"] = list(dossier.telling)
    if dossier.version_note:
        written["version_note"] = dossier.version_note
    # Where names tell whom a row is about, nothing else need be written.
    if not _have_own_names(written["subjects"]):
        items = dossier.items_of_rows(len(written["rows"]))
        if items is not None:
            written["rows_of"] = items
    return written


def _have_own_names(subjects: Sequence[Mapping[str, Any]]) -> bool:
    keys = [name_key(entry["subject"]) for entry in subjects]
    return None not in keys and len(set(keys)) == len(keys)


def scrubbed_texts(value: Any, redactor: Redactor) -> Any:
    """Take secret texts out of JSON values without hiding any key of ours."""
    return thaw(redactor.texts(value)) if redactor.active else value


def hidden_by_name(
    written: Mapping[str, Any], named: Callable[[str], bool]
) -> tuple[dict[str, Any], list[Any]]:
    """Hide in a written dossier what is named and stands in it under no name, and nothing else.

    Compared values stand in it by their place in the rules, and a subject by what a chart calls
    the column that names it.

    Returns
    -------
    tuple of dict and list
        The dossier, and the values that were hidden.
    """
    sources = [_read_source(entry) for entry in written["rule_sets"]]
    keys: list[set[str]] = [set() for _ in sources]
    gone: list[Any] = []
    subjects = []
    hides_name = _hides_name(written, named)
    for entry in written["subjects"]:
        shown = entry
        if entry.get("subject") not in (None, PLACEHOLDER) and hides_name(entry):
            gone.append(entry["subject"])
            shown = {**entry, "subject": PLACEHOLDER}
        if "decision" in entry:
            said = entry["decision"]
            number, values = said["rules"], list(said["values"])
            rules = sources[number].rules
            conditions = () if rules is None else _conditions(rules, said["codes"], values)
            for place, key in enumerate(conditions):
                if named(key) and values[place] not in (PLACEHOLDER, {"$missing": True}, None):
                    gone.append(values[place])
                    keys[number].add(key)
                    values[place] = PLACEHOLDER
            shown = {**shown, "decision": {**said, "values": values}}
        subjects.append(shown)
    if not gone:
        return dict(written), []
    told = [
        {**entry, "hidden": sorted({*entry.get("hidden", ()), *met})} if met else entry
        for entry, met in zip(written["rule_sets"], keys, strict=True)
    ]
    return {**written, "rule_sets": told, "subjects": subjects}, gone


def _hides_name(
    written: Mapping[str, Any], named: Callable[[str], bool]
) -> Callable[[Mapping[str, Any]], bool]:
    """Tell the subjects whose name comes from a column that is named.

    The chart says which column that is; where it does not, a row that shows the same value under
    such a name does.
    """
    columns = {
        node["key"]: str(node.get("detail", {}).get("subject") or "")
        for node in (written.get("structure") or {}).get("nodes", ())
    }
    hidden = {
        canonical(value)
        for row in written.get("rows") or ()
        for key, value in row.items()
        if named(key)
    }

    def hides(entry: Mapping[str, Any]) -> bool:
        column = columns.get(entry["stage"], "")
        return any(map(named, {column, *column.split(".")} - {""})) or (
            canonical(entry["subject"]) in hidden
        )

    return hides


def _conditions(rules: RuleSet, codes: Sequence[int], values: Sequence[Any]) -> list[str]:
    path = path_for(rules, [int(code) for code in codes])
    return [one.key for one in Decision(path, tuple(values), None).conditions]


def _written_source(source: RuleSource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": source.name,
        "version": source.version,
        "digest": source.digest,
        "content": None,
    }
    if source.hidden:
        entry["hidden"] = sorted(source.hidden)
    if source.rules is None:
        return entry
    try:
        content = source.rules.to_dict()
        if source.rules is not source.judged:
            RuleSet.from_dict(content, recorded=True)
        entry["content"] = content
    except RunbookError:  # a function rule has no written form; a limit may lose its by hiding
        entry["content"] = None
    return entry


def _written_subject(facts: SubjectFacts, numbers: Mapping[RuleSet, int]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "subject": to_wire(facts.subject),
        "stage": facts.stage,
        "index": facts.index,
        "status": facts.status,
    }
    if facts.execution:
        entry["execution"] = facts.execution
    if facts.reason is not None:
        entry["reason"] = facts.reason
    decision = facts.decision
    if isinstance(decision, Decision):
        number = numbers.get(decision.path.rules)
        values = None if number is None else _written_values(decision)
        if values is not None:
            codes = list(decision.path.codes)
            entry["decision"] = {"rules": number, "codes": codes, "values": values}
            return entry
    if decision is not None:
        from runbook_nb.runbook.told import ToldDecision

        entry["told"] = ToldDecision.of(decision).to_dict()
    return entry


#: Classes whose values are written as they stand; of whole numbers only those that are not huge.
_AS_THEY_STAND: Final = frozenset({bool, type(None)})
_HUGE: Final = 2**63


def _written_values(decision: Decision) -> list[Any] | None:
    """Write the compared values; None when one of them would not come back as it was."""
    values: list[Any] = []
    report = WireReport()
    for actual in decision.actuals:  # what is hidden has its placeholder there
        cls = actual.__class__
        if (
            cls in _AS_THEY_STAND
            or (cls is int and -_HUGE < actual < _HUGE)
            or (cls is str and actual.isascii())
        ):
            values.append(actual)
        elif actual is MISSING:
            values.append({"$missing": True})
        elif isinstance(actual, float) and isnan(actual):
            values.append({"$decimal": "NaN"})
        elif kind_of(actual) == OTHER:
            return None
        else:
            values.append(to_wire(write_tagged(actual), report))
    return None if report.count else values


# -- reading -------------------------------------------------------------------------------


def read_dossier(data: Any) -> Dossier:
    """Read a written dossier; see `Dossier.from_dict`."""
    if not isinstance(data, Mapping) or data.get("format") != DOSSIER_FORMAT:
        raise LoadError(
            "this is no dossier this version can read",
            where="dossier",
            fix=f"its format should be {DOSSIER_FORMAT!r}",
        )
    try:
        return _read(data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise LoadError(f"the dossier is damaged: {error}", where="dossier") from error


def _read(data: Mapping[str, Any]) -> Dossier:
    sources = [_read_source(entry) for entry in data["rule_sets"]]
    stamp = data.get("stamp")
    return Dossier(
        procedure=data["procedure"],
        sources=sources,
        structure=Structure.from_dict(data["structure"]),
        decider=data.get("decider"),
        fan_outs=[_read_group(entry) for entry in data["fan_outs"]],
        rows=data["rows"],
        units=_read_units(data.get("units", {})),
        ranked=bool(data.get("ranked")),
        rank=_read_rank(data.get("rank", ())),
        stamp=None if stamp is None else (stamp[0], stamp[1]),
        carried=[_read_subject(entry, sources) for entry in data["subjects"]],
        subjects_total=data["subjects_total"],
        items_of_rows=_read_items(data.get("rows_of")),
        telling=[str(words) for words in data.get("telling", ())],
        rows_total=data["rows_total"],
        version_note=str(data.get("version_note", "")),
    )


def _read_units(units: Any) -> Mapping[str, str]:
    if not isinstance(units, Mapping) or not all(isinstance(one, str) for one in units.values()):
        raise ValueError("units are no texts by column")
    return units


def _read_rank(rank: Any) -> tuple[str, ...]:
    if not isinstance(rank, list | tuple) or not all(isinstance(word, str) for word in rank):
        raise ValueError("rank is no list of verdict words")
    return tuple(rank)


def _read_items(entry: Any) -> Mapping[str, Any] | None:
    if entry is None:
        return None
    items = entry["items"]
    if not isinstance(items, list | tuple) or any(type(item) is not int for item in items):
        raise ValueError("rows_of names no items")
    return {"stage": entry["stage"], "execution": entry["execution"], "items": tuple(items)}


def _read_source(entry: Mapping[str, Any]) -> RuleSource:
    content = entry.get("content")
    rules = None if content is None else RuleSet.from_dict(content, recorded=True)
    return RuleSource(
        name=entry["name"],
        version=entry["version"],
        digest=entry["digest"],
        rules=rules,
        judged=rules,
        hidden=frozenset(entry.get("hidden", ())),
    )


def _read_group(entry: Mapping[str, Any]) -> FanOutGroup:
    return FanOutGroup(
        key=entry["key"],
        counts=FanOutCounts(**entry["counts"]),
        decides=entry["decides"],
        judges=entry["judges"],
    )


def _read_value(value: Any) -> Any:
    if isinstance(value, Mapping) and value.get("$missing") is True:
        return MISSING
    return read_tagged(value)


def _read_subject(entry: Mapping[str, Any], sources: Sequence[RuleSource]) -> SubjectFacts:
    decision: Decision | ToldDecision | None = None
    if "told" in entry:
        from runbook_nb.runbook.told import ToldDecision

        decision = ToldDecision(**entry["told"])
    elif "decision" in entry:
        said = entry["decision"]
        number = said["rules"]
        if type(number) is not int or number not in range(len(sources)):
            raise ValueError(f"there is no rule set {number!r}")
        source = sources[number]
        if source.rules is None:
            raise ValueError(f"subject {entry.get('subject')!r} was judged by rules not carried")
        path = path_for(source.rules, [int(code) for code in said["codes"]])
        values = tuple(_read_value(value) for value in said["values"])
        if len(values) != len(path.codes):
            raise ValueError(f"subject {entry.get('subject')!r} has {len(values)} values")
        decision = Decision(path, values, HiddenKeys(source.hidden) if source.hidden else None)
    return SubjectFacts(
        subject=entry.get("subject"),
        stage=entry["stage"],
        index=entry["index"],
        execution=entry.get("execution", 0),
        status=entry["status"],
        reason=entry.get("reason"),
        decision=decision,
    )
