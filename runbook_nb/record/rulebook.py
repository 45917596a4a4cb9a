"""The rule sets of a written log: what they say, what a policy hides of it, and reading them back.

Record layer. A rule that is a function is carried by its name alone; read back, it is a rule that
says so when somebody wants to judge with it. Decisions that were made by it keep their evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from runbook_nb._frozen import thaw
from runbook_nb._json import encode
from runbook_nb._text import MISSING
from runbook_nb.errors import LoadError, NotCarried, RunbookError
from runbook_nb.rules.decision import shown
from runbook_nb.rules.evaluate import DecisionPath, FunctionRecord
from runbook_nb.rules.hiding import Hider, shown_rules
from runbook_nb.rules.kinds import ERROR, NO, YES
from runbook_nb.rules.plan import path_for, when_of
from runbook_nb.rules.ruleset import RuleSet, qualified_name
from runbook_nb.rules.wording import REDACTED

#: Outcomes times rules that a log may hold in distinct decisions.
MOST_OUTCOMES: Final = 20_000_000

_FIX: Final = "read what write_log wrote, unchanged"


class AbsentFunction:
    """Stands for the function of a rule that was not carried.

    It has the function's names, so that sentences and digests stay what they were.

    Examples
    --------
    >>> AbsentFunction("shop.rules.is_stale", "is_stale")({})
    Traceback (most recent call last):
      ...
    runbook_nb.errors.NotCarried: this rule's function was not carried: shop.rules.is_stale; ...
    """

    def __init__(self, qualified: str, name: str, number: int = 0) -> None:
        module, _, rest = qualified.partition(".")
        self.__module__ = module
        self.__qualname__ = rest
        self.__name__ = name
        self._number = number

    def __call__(self, facts: Any) -> Any:
        """Refuse to judge."""
        raise NotCarried(
            f"this rule's function was not carried: {self.__module__}.{self.__qualname__}",
            where=self.__name__,
            fix="judge with the rule set of the procedure itself",
        )

    def _content(self) -> tuple[Any, ...]:
        return self.__module__, self.__qualname__, self.__name__, self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsentFunction) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())


class ServedRules(RuleSet):
    """A rule set as a policy let it be seen: limits of hidden keys are not in it.

    It bears the digest of the rules that judged.
    """

    __slots__ = ("_hidden",)
    _hidden: frozenset[str]

    @property
    def hidden(self) -> frozenset[str]:
        """The keys whose values and limits were taken out."""
        return getattr(self, "_hidden", frozenset())


def is_selecting(path: DecisionPath) -> bool:
    """Say whether a path is that of a selection: all rules were tried."""
    return path.via == "select" or (path.via == "outside" and path.branch is None)


def functions_in(path: DecisionPath) -> frozenset[int]:
    """Give the places among a path's values where the record of a function rule stands."""
    return frozenset(
        tried.start for tried in path.tried if not isinstance(when_of(path.rules, tried), Mapping)
    )


def can_be_read(rules: RuleSet) -> bool:
    """Say whether what is written of a rule set is one again; of one made for showing it may not.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> can_be_read(RuleSet("r", "1", [Rule({"a": {"gt": 1}}, "x")]))
    True
    """
    document = rules._document(by_name=True)
    for rule, written_rule in zip(rules.rules, document["rules"], strict=True):
        if not rule.is_filter:
            written_rule["when"] = rule.when
    try:
        RuleSet.from_dict(document, recorded=True)
    except RunbookError:
        return False
    return True


# -- writing -------------------------------------------------------------------------------


class Rulebook:
    """Collects the rule sets of a log while it is written.

    Parameters
    ----------
    text : callable
        Hides secret texts in a name; gives it unchanged where there is no policy.
    """

    def __init__(self, text: Callable[[str], str] = str) -> None:
        self._text = text
        #: The rule sets and the names of their functions, as they are written; both may grow.
        self.sets: list[dict[str, Any]] = []
        self.functions: list[list[str]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        #: What is written of a rule set -> its number: copies of one are one.
        self._alike: dict[str, int] = {}
        self._called: list[Any] = []
        #: Keeps the identities that rule sets are found by their own.
        self._held: list[Any] = []
        self._keys: dict[DecisionPath, list[str | None]] = {}

    def number(self, rules: RuleSet, hide: Hider | None = None) -> int:
        """Give the number of a rule set as seen under a policy."""
        found = self._numbers.get((id(rules), id(hide)))
        if found is None:
            self._held.append((rules, hide))
            entry = self._entry(rules, hide)
            found = self._alike.setdefault(encode(entry), len(self.sets))
            if found == len(self.sets):
                self.sets.append(entry)
            self._numbers[id(rules), id(hide)] = found
        return found

    def path(self, path: DecisionPath, hide: Hider | None = None) -> list[Any]:
        """Write a decision path: the rule set, the outcomes, and whether all were tried."""
        out: list[Any] = [self.number(path.rules, hide), "".join(map(str, path.codes))]
        return [*out, True] if is_selecting(path) else out

    def values(
        self, path: DecisionPath, values: Sequence[Any], hide: Hider | None
    ) -> Sequence[Any]:
        """Give the values of a decision as they may be seen."""
        if hide is None:
            return values
        return [self.value(path, place, value, hide) for place, value in enumerate(values)]

    def value(self, path: DecisionPath, place: int, value: Any, hide: Hider) -> Any:
        """Give one value of a decision as it may be seen."""
        key = self.keys_of(path)[place]
        if isinstance(value, FunctionRecord):
            return self._record(path, value, hide)
        if key is not None and hide.hides_key(key):
            return REDACTED
        return _scrubbed(value, hide)

    def keys_of(self, path: DecisionPath) -> list[str | None]:
        """Give the key of each value of a decision; None for a function rule's."""
        keys = self._keys.get(path)
        if keys is None:
            keys = self._keys[path] = []
            for tried in path.tried:
                when = when_of(path.rules, tried)
                if isinstance(when, Mapping):
                    keys += [key for key, ops in when.items() for _ in ops]
                else:
                    keys.append(None)
        return keys

    def _record(self, path: DecisionPath, record: FunctionRecord, hide: Hider) -> FunctionRecord:
        hidden = {self._text(key) for key, _ in record.inputs if hide.hides_key(key)}
        if hidden:
            entry = self.sets[self.number(path.rules, hide)]
            entry["hidden"] = sorted(hidden.union(entry.get("hidden", ())))
        inputs = tuple(
            (self._text(key), REDACTED if hide.hides_key(key) else _scrubbed(value, hide))
            for key, value in record.inputs
        )
        returned = record.returned
        if not hidden or isinstance(returned, bool):
            returned = _scrubbed(returned, hide)
        else:  # what comes out of hidden values may be one of them
            returned = REDACTED
        error = None if record.error is None else str(hide.scrub(record.error))
        kind = None if record.error_type is None else self._text(record.error_type)
        return FunctionRecord(inputs, returned, error, kind)

    def _entry(self, rules: RuleSet, hide: Hider | None) -> dict[str, Any]:
        from runbook_nb._tagged import Tagger

        entry: dict[str, Any] = {"digest": rules.digest}
        document = rules._document(by_name=True)
        hidden = set(rules.hidden)
        served = isinstance(rules, ServedRules)
        if hide is not None:
            seen, more = hidden_document(rules, hide)
            hidden |= more
            served = served or bool(more) or encode(seen) != encode(document)
            document = seen
        for rule, written_rule in zip(rules.rules, document["rules"], strict=True):
            if not rule.is_filter:
                written_rule["when"] = {"$function": self._function(rule.when)}
        entry["content"] = Tagger(refer=False).write(document)
        if served:
            entry["hidden"] = sorted(hidden)
        return entry

    def _function(self, function: Any) -> int:
        for number, known in enumerate(self._called):
            if known is function:
                return number
        self._called.append(function)
        self.functions.append([self._text(qualified_name(function)), self._text(_name(function))])
        return len(self._called) - 1


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _scrubbed(value: Any, hide: Hider) -> Any:
    return value if value is MISSING else hide.scrub(shown(value))


def hidden_document(rules: RuleSet, hide: Hider) -> tuple[dict[str, Any], set[str]]:
    """Write a rule set as a policy lets it be seen, and give the keys that are hidden in it."""
    seen = shown_rules(rules, hide)
    hidden: set[str] = set()
    pairs = [(a.when, b.when) for a, b in zip(rules.rules, seen.rules, strict=True)]
    pairs += [(a.where, b.where) for a, b in zip(rules.outside, seen.outside, strict=True)]
    for judged, told in pairs:
        if isinstance(judged, Mapping) and isinstance(told, Mapping):
            both = zip(judged, told, strict=True)
            hidden.update(name for key, name in both if hide.hides_key(key))
    return seen._document(by_name=True), hidden


# -- reading -------------------------------------------------------------------------------


def read_functions(data: Any) -> list[AbsentFunction]:
    """Read the names of functions that were not carried."""
    found: list[AbsentFunction] = []
    for number, names in enumerate(_list(data, "functions")):
        if not isinstance(names, list) or list(map(type, names)) != [str, str]:
            raise _damaged("is not the two names of a function", f"functions[{number}]")
        found.append(AbsentFunction(names[0], names[1], number))
    return found


def read_rule_sets(
    data: Any, functions: Sequence[AbsentFunction], live: Iterable[RuleSet] = ()
) -> list[RuleSet]:
    """Read the rule sets of a log.

    A live rule set takes the place of one that says the same in the same order; where a policy had
    hidden something, it does not.
    """
    known: dict[str, list[RuleSet]] = {}
    for rules in live:
        known.setdefault(rules.digest, []).append(rules)
    return [
        _rule_set(entry, f"rules[{number}]", functions, known)
        for number, entry in enumerate(_list(data, "rules"))
    ]


def _rule_set(
    entry: Any,
    where: str,
    functions: Sequence[AbsentFunction],
    live: Mapping[str, Sequence[RuleSet]],
) -> RuleSet:
    if not isinstance(entry, dict) or not {"digest", "content"} <= entry.keys():
        raise _damaged("is no written rule set", where)
    digest, hidden = entry["digest"], entry.get("hidden")
    if not isinstance(digest, str) or not _are_texts(hidden):
        raise _damaged("has a digest or hidden keys that are no texts", where)
    from runbook_nb._untagged import Untagger

    try:
        document = thaw(Untagger(refer=False).read(entry["content"]))
        for rule in document["rules"]:
            named = rule["when"]
            if isinstance(named, dict) and named.keys() == {"$function"}:
                rule["when"] = functions[_index(named["$function"], len(functions), where)]
        cls = RuleSet if hidden is None else ServedRules
        made = cls.from_dict(document, recorded=True)
        found, said = made.digest, encode(made._document(by_name=True))
    except LoadError:
        raise
    except (RunbookError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(f"cannot be read: {error}", where) from error
    if isinstance(made, ServedRules):
        object.__setattr__(made, "_hidden", frozenset(hidden or ()))
        object.__setattr__(made, "_digest", digest)
        return made
    if found != digest:
        raise _damaged("has another digest than its content", where)
    for rules in live.get(digest, ()):
        if encode(rules._document(by_name=True)) == said:  # the digest knows no order of keys
            return rules
    return made


class PathReader:
    """Reads decision paths, each distinct one once."""

    def __init__(self, rule_sets: Sequence[RuleSet]) -> None:
        self.rule_sets = rule_sets
        self._known: dict[tuple[int, str, bool], DecisionPath] = {}
        self._work = 0

    def read(self, number: Any, outcomes: Any, selecting: Any, where: str) -> DecisionPath:
        """Read a path from the number of its rules and its outcomes, one digit each."""
        if type(number) is not int or not 0 <= number < len(self.rule_sets):
            raise _damaged("was judged by rules that are not there", where)
        if type(outcomes) is not str or type(selecting) is not bool:
            raise _damaged("has outcomes that are none", where)
        found = self._known.get((number, outcomes, selecting))
        if found is None:
            rules = self.rule_sets[number]
            self._work += len(outcomes) * (len(rules.rules) + len(rules.outside))
            if self._work > MOST_OUTCOMES:
                raise _damaged("makes too many outcomes of too many rules", where)
            found = _path(rules, outcomes, selecting, where)
            self._known[number, outcomes, selecting] = found
        return found


def _path(rules: RuleSet, outcomes: str, selecting: bool, where: str) -> DecisionPath:
    if not set(outcomes) <= set("0123456"):
        raise _damaged("has outcomes that are none", where)
    codes = tuple(map(int, outcomes))
    try:
        path = path_for(rules, codes, selecting=selecting)
    except (RunbookError, ValueError) as error:
        raise _damaged(f"has outcomes the rules cannot have: {error}", where) from error
    called = functions_in(path)
    if path.codes != codes or any(codes[place] not in (NO, YES, ERROR) for place in called):
        raise _damaged("has outcomes the rules cannot have", where)
    return path


def _are_texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _index(value: Any, size: int, where: str) -> int:
    if type(value) is not int or not 0 <= value < size:
        raise _damaged("refers to what is not there", where)
    return value


def _list(data: Any, where: str) -> list[Any]:
    if not isinstance(data, list):
        raise _damaged("is no list", where)
    return data


def _damaged(what: str, where: str) -> LoadError:
    return LoadError(f"the log is damaged: {where} {what}", where=where, fix=_FIX, code="bad_log")
