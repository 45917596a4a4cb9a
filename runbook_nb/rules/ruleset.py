"""A rule set: named, versioned, checked when it is built, the same in Python, YAML and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Literal, Self

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import Immutable
from runbook_nb._ids import digest
from runbook_nb._json import canonical, encode
from runbook_nb._text import visible
from runbook_nb._value import frozen
from runbook_nb._view import Card
from runbook_nb.errors import Problem, RuleError
from runbook_nb.rules import checks, written
from runbook_nb.rules.kinds import kind_words
from runbook_nb.rules.model import (
    DECLINED,
    DECLINED_BRANCH,
    Default,
    OnUnreadable,
    Outside,
    Rule,
    Unreadable,
)
from runbook_nb.rules.shadows import shadowed
from runbook_nb.rules.wording import when_text

if TYPE_CHECKING:
    from pathlib import Path

    from runbook_nb.rules.hiding import Hider
    from runbook_nb.rules.revision import Revision

_KEYS = ("name", "version", "rules", "default", "unreadable", "outside")


@frozen(kw_only=False, init=False, repr=False)
class RuleSet(Renderable, Immutable):
    """Rules tried in order: the first one that is true, or cannot be read, decides.

    Everything is checked when the set is built, and all that is wrong is told together. The set
    never changes afterwards; it may be compared, hashed, copied and sent to another process.

    Parameters
    ----------
    name, version : str
        What answers judged with it are stamped with.
    rules : sequence of Rule
        The rules in order; a mapping with the same keys does as well.
    default : Default, str or mapping, optional
        The branch when no rule is true.
    unreadable : Unreadable, mapping, "skip" or "raise"
        What happens when a rule needs a value that is missing, null, NaN or of another type.
        By default the subject is declined. ``"skip"`` treats the rule as not true, ``"raise"``
        raises.
    outside : sequence of Outside
        Ground the rules do not cover; a subject on it is declined before any rule.

    Raises
    ------
    RuleError
        Something is wrong; ``problems`` lists everything, each with its place and a fix.

    Examples
    --------
    >>> posture = RuleSet(
    ...     "health-signal",
    ...     "v1",
    ...     [Rule({"age_days": {"gt": 7}}, then="unprotected")],
    ...     default="protected",
    ... )
    >>> posture.branches
    ('protected', 'unprotected', 'declined')
    >>> RuleSet("r", "1", [{"when": {"age": {"ge": 7}}, "then": "old"}])
    Traceback (most recent call last):
      ...
    runbook_nb.errors.RuleError: rule set 'r' cannot be built: rules[0].when.age.ge: is not an
    operator; did you mean 'gte'?
    """

    name: str
    version: str
    rules: tuple[Rule, ...]
    default: Default | None = None
    unreadable: OnUnreadable = DECLINED
    outside: tuple[Outside, ...] = ()
    _plan: Any = field(default=None, init=False)
    _selecting: Any = field(default=None, init=False)
    _digest: str | None = field(default=None, init=False)

    def __init__(  # noqa: PLR0917 - a file and a person give the parts in this order
        self,
        name: str,
        version: str,
        rules: Sequence[Rule | Mapping[str, Any]],
        default: Default | str | Mapping[str, Any] | None = None,
        unreadable: OnUnreadable | Mapping[str, Any] = DECLINED,
        outside: Sequence[Outside | Mapping[str, Any]] = (),
    ) -> None:
        report = checks.Report()
        checks.check_text(name, "name", report)
        checks.check_text(version, "version", report)
        self._fill(name, version, report, rules, (default, unreadable, outside))

    @classmethod
    def bare(
        cls,
        rules: Sequence[Rule | Mapping[str, Any]],
        default: Default | str | Mapping[str, Any] | None = None,
        unreadable: OnUnreadable | Mapping[str, Any] = "skip",
    ) -> Self:
        """Build a set without a name, for judging with a bare list of rules.

        Overlapping rules are left alone here: a list is often written from the general to the
        particular, and `select` has a use for both.
        """
        made = object.__new__(cls)
        made._fill("", "", checks.Report(), rules, (default, unreadable, ()))
        return made

    @classmethod
    def drafted(  # noqa: PLR0917 - the parts of a rule set, in their order
        cls,
        name: str,
        version: str,
        rules: Sequence[Rule | Mapping[str, Any]],
        default: Default | str | Mapping[str, Any] | None = None,
        unreadable: OnUnreadable | Mapping[str, Any] = DECLINED,
        outside: Sequence[Outside | Mapping[str, Any]] = (),
    ) -> Self:
        """Build a set that is still being written: a rule in it may be one that can never fire.

        Examples
        --------
        >>> old = Rule({"age": {"gt": 7}}, "old")
        >>> RuleSet.drafted("r", "draft", [old, Rule({"age": {"gt": 9}}, "older")]).title
        'r draft'
        """
        made = object.__new__(cls)
        parts = (default, unreadable, outside)
        made._fill(name, version, checks.Report(), rules, parts, shadows=False)
        return made

    def _fill(
        self,
        name: Any,
        version: str,
        report: checks.Report,
        rules: Any,
        parts: tuple[Any, Any, Any],
        *,
        shadows: bool = True,
    ) -> None:
        """Check everything, and only then become the set."""
        kept = checks.check_rules(rules, report)
        default = checks.check_default(parts[0], report)
        unreadable = checks.check_unreadable(parts[1], report)
        outside = checks.check_outside(parts[2], report)
        if not report.problems and name and shadows:
            _report_shadows(kept, report)
        if report.problems:
            what = f"rule set {name!r} cannot be built" if name else "the rules cannot be used"
            raise RuleError(what, problems=report.problems)
        values = (name, version, kept, default, unreadable, outside, None, None, None)
        for field_, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field_.name, value)

    @property
    def is_bare(self) -> bool:
        """Whether it is a bare list of rules, without name and version."""
        return not self.name

    @property
    def hidden(self) -> frozenset[str]:
        """The keys whose values and limits a policy took out of a copy; none of a set as written.

        Wherever decisions by such a copy are told, these keys are told as hidden.
        """
        return frozenset()

    @property
    def title(self) -> str:
        """Its name and version, as sentences show them; empty for a bare list."""
        return f"{self.name} {self.version}".strip()

    @property
    def branches(self) -> tuple[str, ...]:
        """Every branch a decision may take, in declared order, each once.

        The default's comes first, then the rules' in order, then the one of unreadable values,
        then ``declined`` when ground outside is declared.
        """
        found = [self.default.branch] if self.default else []
        found += [rule.then for rule in self.rules]
        if isinstance(self.unreadable, Unreadable):
            found.append(self.unreadable.branch)
        if self.outside:
            found.append(DECLINED_BRANCH)
        return tuple(dict.fromkeys(found))

    @property
    def digest(self) -> str:
        """The ``sha-256:`` digest of its content, the same for its Python, YAML and JSON form.

        A function rule enters by its qualified name alone: the digest says which function was
        named, not what its code does, so it does not notice when the body changes.
        """
        if self._digest is None:
            object.__setattr__(self, "_digest", digest(canonical(self._document(by_name=True))))
        return self._digest or ""

    def to_dict(self) -> dict[str, Any]:
        """Give the content as JSON values.

        Raises
        ------
        RuleError
            A rule is a function, which no file can hold.

        Examples
        --------
        >>> rules = RuleSet("r", "1", [Rule({"a": {"notIn": [1]}}, then="x")], unreadable="skip")
        >>> rules.to_dict()["rules"]
        [{'when': {'a': {'not_in': [1]}}, 'then': 'x'}]
        """
        functions = [n for n, rule in enumerate(self.rules) if not rule.is_filter]
        if functions:
            raise RuleError(
                f"rule set {self.name!r} cannot be written",
                code="function_rule",
                problems=[
                    Problem(
                        message=f"is a function ({qualified_name(self.rules[n].when)})",
                        where=f"rules[{n}].when",
                        fix="write it as conditions, or compute the value in a stage before",
                    )
                    for n in functions
                ],
            )
        return self._document(by_name=False)

    def _document(self, *, by_name: bool) -> dict[str, Any]:
        document: dict[str, Any] = {"name": self.name, "version": self.version}
        document["rules"] = [_rule_document(rule) for rule in self.rules]
        if self.default is not None:
            document["default"] = _branch_document(self.default)
        document["unreadable"] = (
            _branch_document(self.unreadable)
            if isinstance(self.unreadable, Unreadable)
            else self.unreadable
        )
        if self.outside:
            document["outside"] = [
                {"where": written.write_when(o.where), "what": o.what, "why": o.why}
                for o in self.outside
            ]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, recorded: bool = False) -> RuleSet:
        """Build a rule set from what `to_dict` gives.

        Parameters
        ----------
        document : mapping
            The content.
        recorded : bool
            Whether it is the content of a set that has judged: then it may be without a name,
            and overlapping rules are left alone, as limits hidden by a policy look alike.

        Raises
        ------
        RuleError
            Something is wrong; ``problems`` lists everything.

        Examples
        --------
        >>> RuleSet.from_dict(
        ...     {"name": "r", "version": "1", "rules": [{"when": {"a": {"eq": 1}}, "then": "x"}]}
        ... ).branches
        ('x', 'declined')
        """
        report = checks.Report()
        if not isinstance(document, Mapping):
            word = kind_words(document)  # type: ignore[unreachable]
            raise RuleError(
                f"a rule set is a mapping, not {word}",
                fix="write name, version and rules at the top",
            )
        parts = checks.check_keys(document, _KEYS, "", report)
        bare = recorded and parts.get("name") == parts.get("version") == ""
        name = "" if bare else checks.check_text(parts.get("name"), "name", report)
        version = "" if bare else checks.check_text(parts.get("version"), "version", report)
        made = object.__new__(cls)
        made._fill(
            "" if bare else name or "without a name",
            version or "",
            report,
            _read_whens(parts.get("rules", ()), "rules", "when", report),
            (
                parts.get("default"),
                parts.get("unreadable", DECLINED),
                _read_whens(parts.get("outside", ()), "outside", "where", report),
            ),
            shadows=not recorded,
        )
        return made

    def to_json(self) -> str:
        """Give the content as indented JSON."""
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"

    def to_yaml(self) -> str:
        """Give the content as YAML that every reader, of YAML 1.1 or 1.2, takes alike."""
        from runbook_nb._parsed import write_yaml

        return write_yaml(self.to_dict())

    def to_python(self, name: str = "rules") -> str:
        """Give the content as Python text that builds an equal rule set.

        Parameters
        ----------
        name : str
            The variable it is assigned to.

        Raises
        ------
        RuleError
            A rule is a function, whose text is not known.
        """
        from runbook_nb.rules.source import write_python

        return write_python(self, name)

    def save(self, path: str | Path) -> Path:
        """Write the content to a ``.yaml``, ``.yml`` or ``.json`` file, whole or not at all.

        Raises
        ------
        LoadError
            The ending is another, or the file that is there holds no rule set.
        RuleError
            ``same_version``: the file holds other content under this name and version;
            ``other_rules``: it holds a set of another name.
        """
        from runbook_nb.rules.keeping import save

        return save(self, path)

    @classmethod
    def loads(cls, text: str, format: Literal["yaml", "json"] = "yaml") -> RuleSet:
        """Build a rule set from text.

        Raises
        ------
        LoadError
            The text is not what ``format`` says, with the line.
        RuleError
            The rules are wrong; every problem names its line.

        Examples
        --------
        >>> RuleSet.loads('''
        ... name: health-signal
        ... version: v1
        ... rules:
        ...   - when: {age_days: {gt: 7}}
        ...     then: unprotected
        ... ''').branches
        ('unprotected', 'declined')
        """
        from runbook_nb.rules.loader import load_text

        return load_text(text, format)

    @classmethod
    def load(cls, path: str | Path) -> RuleSet:
        """Build a rule set from a ``.yaml``, ``.yml`` or ``.json`` file.

        Raises
        ------
        LoadError
            The file cannot be read.
        RuleError
            The rules are wrong; every problem names its line.
        """
        from runbook_nb.rules.loader import load_file

        return load_file(path)

    def lab(self, source: Any, **options: Any) -> Any:
        """Open a rule lab: change a limit, see the verdicts that change.

        Parameters
        ----------
        source : Envelope, DataFrame, mapping of columns, list of mappings, Arrow table
            What was recorded, or rows to be judged.
        **options
            Those of `RuleLab`.

        Returns
        -------
        RuleLab
        """
        return through("rulelab", source, self, **options)

    def compare(self, other: RuleSet) -> Revision:
        """Put another version beside this one: which rules differ, in what, and whether it decides.

        What the difference does to an answer is said by ``envelope.rejudge(other).compare()``.

        Parameters
        ----------
        other : RuleSet
            The later one.

        Returns
        -------
        Revision

        Examples
        --------
        >>> week = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> month = RuleSet("age", "v2", [Rule({"days": {"gt": 30}}, "old")], "fresh")
        >>> [change.words for change in week.compare(month).differing]
        ['rule 1 limit raised, 7 -> 30']
        """
        from runbook_nb.rules.revision import Revision

        return Revision(self, other)

    def view(self) -> Card:
        """Show the rules as a table, in the order they are tried."""
        from runbook_nb.rules.cards import rule_set_card

        return rule_set_card(self)

    def served_by(self, hide: Hider, paths: Any = ()) -> RuleSet:
        """Give the set as it may be shown: limits of hidden keys replaced, its words scrubbed."""
        from runbook_nb.rules.hiding import shown_rules

        return shown_rules(self, hide)

    @property
    def _content(self) -> tuple[str, tuple[Any, ...]]:
        return (
            encode(self._document(by_name=True)),
            tuple(rule.when for rule in self.rules if not rule.is_filter),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return self is other or self._content == other._content

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process compiles and interns for itself.
        if self.is_bare:
            return (RuleSet.bare, (self.rules, self.default, self.unreadable))
        parts = (self.name, self.version, self.rules, self.default, self.unreadable, self.outside)
        return (RuleSet, parts)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _rule_document(rule: Rule) -> dict[str, Any]:
    document: dict[str, Any] = {
        "when": written.write_when(rule.when)
        if isinstance(rule.when, Mapping)
        else {"$function": qualified_name(rule.when)},
        "then": rule.then,
    }
    if rule.label is not None:
        document["label"] = rule.label
    if rule.unit is not None:
        document["unit"] = dict(rule.unit) if isinstance(rule.unit, Mapping) else rule.unit
    return document


def _branch_document(branch: Default | Unreadable) -> dict[str, Any]:
    return {"branch": branch.branch} | ({"label": branch.label} if branch.label else {})


def qualified_name(function: Any) -> str:
    """Give the name a function rule enters a digest with."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return visible(f"{getattr(function, '__module__', '?')}.{name}")


def _read_whens(entries: Any, where: str, key: str, report: checks.Report) -> Any:
    """Read the tagged thresholds of entries; what has another shape is left to the checks."""
    if not isinstance(entries, list | tuple):
        return entries
    return [
        {**entry, key: written.read_when(entry[key], f"{where}[{n}].{key}", report.add)}
        if isinstance(entry, Mapping) and isinstance(entry.get(key), Mapping)
        else entry
        for n, entry in enumerate(entries)
    ]


def _report_shadows(rules: tuple[Rule, ...], report: checks.Report) -> None:
    for earlier, later in shadowed(rules):
        first = rules[earlier]
        report.add(
            f"can never fire: whenever rule {later + 1} is true, rule {earlier + 1} "
            f"({when_text(first.when, first.unit_of)}) is true before it",
            f"rules[{later}]",
            f"put it before rule {earlier + 1}, or narrow that one",
        )


def deciding(rules: RuleSet) -> RuleSet:
    """Give rules with the same outcomes that send to a branch what the given ones refuse.

    Examples
    --------
    >>> strict = RuleSet("r", "1", [Rule({"a": {"gt": 1}}, then="x")], "y", unreadable="raise")
    >>> deciding(strict).unreadable.branch
    'refused'
    """
    made = object.__new__(RuleSet)
    parts = (rules.default, Unreadable("refused"), rules.outside)
    made._fill("", "", checks.Report(), rules.rules, parts)
    return made
