"""The rule lab: change a limit, see the verdicts that change, keep the change under a new version.

Every change is a method of its own, so that a lab is of use without a browser. What was recorded is
judged again at each; no source is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import traitlets

from runbook_nb._text import did_you_mean, listed, nearest, visible
from runbook_nb._view import Card
from runbook_nb.errors import DefinitionError, NotCarried, RuleError
from runbook_nb.rules import RuleSet
from runbook_nb.rules.columns import as_columns
from runbook_nb.rules.edges import Limit, Measures
from runbook_nb.rules.fixes import fix_words
from runbook_nb.rules.keeping import has_other_content, save
from runbook_nb.rules.kinds import MISMATCH, kind_words
from runbook_nb.rules.known import Again, KnownFacts, judge_again
from runbook_nb.rules.operators import PRESENCE, compile_condition
from runbook_nb.rules.silent import Alone, Silent, fired, silent_rules
from runbook_nb.rules.wording import limit_text, needed_words
from runbook_nb.runbook.comparing import Comparison
from runbook_nb.runbook.envelope import Envelope
from runbook_nb.runbook.facts import hides
from runbook_nb.runbook.sides import Side, side_of_again
from runbook_nb.runbook.triage import index_fix
from runbook_nb.widgets import labfields, labspread, labtold
from runbook_nb.widgets.base import Widget, asked
from runbook_nb.widgets.drafts import DRAFT, Draft, Wrong, keys_of

#: The keys a message may change, with the method that does.
_EDITS: Final = {
    "limit": "set_limit",
    "operator": "set_operator",
    "key": "set_key",
    "verdict": "set_verdict",
    "label": "set_label",
    "default": "set_default",
    "move": "move",
    "remove": "remove",
}


class RuleLab(Widget):
    """A form for a rule set, judged again on recorded facts at each change.

    Parameters
    ----------
    source : Envelope, DataFrame, mapping of columns, list of mappings, Arrow table
        What was recorded, or rows to be judged.
    rules : RuleSet, optional
        What to begin with; by default the rules an envelope was judged by.
    subject : str, optional
        The column of rows that names them; otherwise they are numbered.
    path : path, optional
        Where `keep` writes the rules: a ``.yaml`` or ``.json`` file.

    Attributes
    ----------
    told : dict
        What is shown, as JSON values.

    Examples
    --------
    >>> from runbook_nb.rules import Rule
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> lab = RuleLab([{"host": "a", "days": 9}, {"host": "b", "days": 2}], rules, subject="host")
    >>> lab.set_limit(1, "days", "gt", 14)
    >>> print(lab)
    RuleLab age v1 -> draft · 1 of 2 verdicts changes (1 unchanged)
    >>> [flip.subject for flip in lab.comparison.flips()], lab.keep("v2").title
    (['a'], 'age v2')
    """

    scripts = ("rulelab.js",)
    sheets = ("rulelab.css",)

    told = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        source: Any,
        rules: RuleSet | None = None,
        *,
        subject: str | None = None,
        path: str | PathLike[str] | None = None,
    ) -> None:
        if rules is not None and not isinstance(rules, RuleSet):
            raise DefinitionError(
                f"the lab changes a RuleSet, not {type(rules).__name__}",
                where="rules",
                fix='write rb.RuleLab(envelope, rb.RuleSet("name", "v1", rules=[…]))',
            )
        self.notes: tuple[str, ...] = ()
        self._path = None if path is None else Path(path)
        self._envelope = source if isinstance(source, Envelope) else None
        if self._envelope is not None:
            rules = self._take_envelope(self._envelope, rules)
        else:
            rules = self._take_rows(source, rules, subject)
        undecided = {n for n, one in enumerate(self.before.standings) if not one.decided}
        left_out = [row for row, n in enumerate(self.before.numbers) if n in undecided]
        self.measures = Measures(self.facts, left_out)
        self._draft = Draft(rules, self._check_key, self._check_limit)
        self._alone: Alone = {}
        #: The condition whose key the histogram shows: that of the last limit changed.
        self.looked_at: tuple[int, str, str] | None = None
        #: The rule, from 0, that the form begins with; it shows `labtold.RULES` at most.
        self.first = 0
        self._judge()
        super().__init__(told=labtold.told(self))

    # -- what is judged ----------------------------------------------------------------------

    def _take_envelope(self, envelope: Envelope, rules: RuleSet | None) -> RuleSet:
        recorded = envelope.side
        if recorded.facts is None:
            raise NotCarried(
                "the recorded facts are not carried: this copy holds the wire form only",
                fix="ask the live envelope, or write it with to_dict(dossier=True)",
            )
        self.facts = recorded.facts
        sources = envelope.dossier.sources
        own = next((s.judged for s in sources if s.digest == recorded.digest), None)
        given = own if rules is None else rules
        if given is None:
            raise NotCarried(
                "the rules that judged are not carried", fix="give them: RuleLab(envelope, rules)"
            )
        if own is not None and has_other_content(own, given):
            self.notes = (f"judged under {visible(given.title)}, content differs",)
        if given is own or given == own:
            self.before = recorded
            return given
        again = judge_again(given, self.facts)
        self.before = side_of_again(again, recorded.subjects, self.shown(given), recorded)
        return given

    def _take_rows(self, source: Any, rules: RuleSet | None, subject: str | None) -> RuleSet:
        if rules is None:
            raise DefinitionError(
                "rows carry no rules", where="rules", fix="write RuleLab(rows, rules)"
            )
        columns = as_columns(source)
        if subject is not None and subject not in columns.names:
            raise DefinitionError(
                f"no row has a column {subject!r}, which should name the subject",
                where="subject",
                fix=index_fix(columns, subject)
                or did_you_mean(subject, columns.names)
                or f"the columns are {listed(columns.names)}",
            )
        self.facts = KnownFacts(columns)
        names: Sequence[Any]
        if subject is not None:
            names = columns.held(subject).whole()
        elif columns.labels is not None:
            names = columns.labels.tolist()
        else:
            names = [f"row {n}" for n in range(len(columns))]
        self.before = side_of_again(judge_again(rules, self.facts), names, rules)
        return rules

    def shown(self, rules: RuleSet) -> RuleSet:
        """Give rules as they may be seen."""
        if self._envelope is None:
            return rules
        return self._envelope.dossier.redactor.rules(rules)

    def _served(self, text: str) -> str:
        """Hide what a policy does."""
        envelope = self._envelope
        return text if envelope is None else envelope.dossier.redactor.text(text)

    def hides(self, key: str) -> bool:
        """Say whether a policy hides what is under a key."""
        envelope = self._envelope
        if envelope is not None and hides(envelope.dossier.redactor, key):
            return True
        return any(known.lacks(key) == "hidden" for known in self.facts.table)

    def _check_key(self, key: str) -> Wrong | None:
        root = key if key in self.facts.columns.names else key.partition(".")[0]
        if root in self.facts.columns.names or self.hides(key):
            return None
        said = "has the key" if self.facts.is_whole else "has a recorded key"
        near = nearest(key, self.facts.keys)
        return Wrong(f"no subject {said} {visible(key)!r}" if key else "choose a key", key, near)

    def _check_limit(self, key: str, op: str, limit: Any, old: Mapping[str, Any]) -> Wrong | None:
        """Refuse a limit that no value recorded under its key can be compared with.

        Where there are no values, it must be of a type that a limit of the condition was.
        """
        if self.hides(key):
            return None
        samples = self.measures.samples(key)
        needed = needed_words(op, limit)
        if samples:
            test = compile_condition(op, limit)
            if any(
                isinstance(one, list | tuple | Mapping) or test(one) != MISMATCH for one in samples
            ):
                return None
            held = list(dict.fromkeys(map(kind_words, samples)))
            said = f"{visible(key)} is {listed(held, 'or')}"
        else:
            held = [needed_words(o, one) for o, one in old.items() if o not in PRESENCE]
            if not held or needed in held:
                return None
            said = f"it was {listed(held, 'or')}"
        what = f"the limit {limit_text(op, limit)} is {needed}, and {said}"
        fix = fix_words(held, needed, op, limit)
        return Wrong(f"{what}; {fix}" if fix.startswith("write ") else what, key)

    def _judge(self) -> None:
        """Judge the draft."""
        draft = self._draft.applied
        self.again: Again = judge_again(draft, self.facts)
        self._fired = fired(self.again)
        recorded = None if self._envelope is None else self._envelope.side
        self.after: Side = side_of_again(
            self.again, self.before.subjects, self.shown(draft), recorded
        )
        self.comparison = Comparison(self.before, self.after)

    @cached_property
    def fired_before(self) -> tuple[int, ...]:
        """How many subjects each rule decided before."""
        found = [0] * len(self._draft.base.rules)
        for number, one in enumerate(self.before.standings):
            if one.via == "rule" and one.rule_index is not None:
                found[one.rule_index] += self.before.numbers.count(number)
        return tuple(found)

    @property
    def fired(self) -> tuple[int, ...]:
        """How many subjects each rule of the draft decides."""
        return self._fired

    @property
    def silent(self) -> tuple[Silent, ...]:
        """The rules of the draft that decide nobody, with what takes those that meet them."""
        return silent_rules(self.again, self._alone)

    @property
    def draft(self) -> RuleSet:
        """The rules as they are applied, under the version ``draft``."""
        return self._draft.applied

    @property
    def rules(self) -> RuleSet:
        """The rules the lab began with."""
        return self._draft.base

    @property
    def kept(self) -> RuleSet | None:
        """The last rule set that was kept; None when none was."""
        return self._draft.kept

    @property
    def edited(self) -> Draft:
        """What was typed, rule by rule, with what is wrong with it."""
        return self._draft

    # -- changing it -------------------------------------------------------------------------

    def set_limit(self, rule: int, key: str, op: str, value: Any) -> None:
        """Change the limit of a condition; rules are numbered from 1.

        Parameters
        ----------
        rule : int
        key, op : str
            Which of its conditions.
        value : object
            The new limit.

        Examples
        --------
        >>> from runbook_nb.rules import Rule
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> lab = RuleLab({"days": [9, 2, 30]}, rules)
        >>> lab.set_limit(1, "days", "gt", 14)
        >>> lab.comparison.changed, lab.fired
        (1, (1,))
        """
        self._draft.set_limit(rule, key, op, value)
        self.looked_at = (self._draft.rules[rule - 1].id, key, op)
        self._changed()

    def set_operator(self, rule: int, key: str, op: str, new: str) -> None:
        """Change the operator of a condition."""
        self._draft.set_operator(rule, key, op, new)
        self.looked_at = (self._draft.rules[rule - 1].id, key, new)
        self._changed()

    def set_key(self, rule: int, key: str, new: str) -> None:
        """Change the key that conditions of a rule read."""
        self._draft.set_key(rule, key, new)
        self._changed()

    def set_verdict(self, rule: int, branch: str) -> None:
        """Change where a rule leads to."""
        self._draft.set_verdict(rule, branch)
        self._changed()

    def set_label(self, rule: int, label: str) -> None:
        """Change the sentence of a rule; an empty one takes it away."""
        self._draft.set_label(rule, label)
        self._changed()

    def set_default(self, branch: str | None = None, label: str | None = None) -> None:
        """Change the branch or the sentence of the default."""
        self._draft.set_default(branch, label)
        self._changed()

    def set_unreadable(self, branch: str | None = None, label: str | None = None) -> None:
        """Change what a value does that cannot be read, or its sentence.

        Parameters
        ----------
        branch : str, optional
            Where it leads to; ``"skip"`` has the rule not match.
        label : str, optional
        """
        self._draft.set_unreadable(branch, label)
        self._changed()

    def set_outside(
        self,
        number: int,
        *,
        where: tuple[str, str, Any] | None = None,
        what: str | None = None,
        why: str | None = None,
    ) -> None:
        """Change ground that the rules do not cover.

        Parameters
        ----------
        number : int
            Which ground, from 1.
        where : tuple of str, str and object, optional
            The key and the operator of one of its conditions, and the new limit.
        what, why : str, optional
            What is not covered, and why not.

        Examples
        --------
        >>> from runbook_nb.rules import Outside, Rule
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh",
        ...     outside=[Outside({"os": {"eq": "x"}}, "hosts on x", "no data")])
        >>> lab = RuleLab({"days": [9, 2], "os": ["x", "y"]}, rules)
        >>> lab.set_outside(1, where=("os", "eq", "y"))
        >>> lab.comparison.changed
        2
        """
        given = {"where": where, "what": what, "why": why}
        self._draft.set_outside(
            number, **{name: one for name, one in given.items() if one is not None}
        )
        self._changed()

    def add(self, when: Mapping[str, Any] | None = None, then: str | None = None) -> int:
        """Add a rule behind the others; give its number.

        Parameters
        ----------
        when : mapping, optional
            Its conditions; without them it begins with one that nobody meets.
        then : str, optional
            Where it leads to; by default where the first rule does.
        """
        made = labspread.first_condition(self) if when is None else when
        number = self._draft.add(made, self.draft.rules[0].then if then is None else then)
        self._changed()
        return number

    def remove(self, rule: int) -> None:
        """Take a rule out."""
        self._draft.remove(rule)
        self._changed()

    def move(self, rule: int, to: int) -> None:
        """Move a rule to another number; the default is the last and stays it."""
        self._draft.move(rule, to)
        self._changed()

    def reset(self) -> None:
        """Begin anew with the rules the lab was given."""
        self._draft.reset()
        self.looked_at = None
        self._changed()

    def keep(self, version: str | None = None) -> RuleSet:
        """Give the draft as a rule set under a new version, written to ``path`` if there is one.

        Parameters
        ----------
        version : str, optional
            By default the one after that of the rules the lab began with.

        Raises
        ------
        RuleError
            A rule is not applied or can never fire, the version is that of other content, or a
            limit that would be written is hidden by a policy.
        """
        named = self._draft.next_version if version is None else version
        path = self._path
        if path is None:
            made = self._draft.keep(named)
        else:
            self._check_hidden()
            made = self._draft.keep(named, lambda rules: save(rules, path))
        self._tell()
        return made

    def text(self, form: str = "python") -> str:
        """Give the draft as text, under the version it would be kept as.

        Parameters
        ----------
        form : {"python", "yaml", "json"}

        Raises
        ------
        RuleError
            A rule is a function or not applied, or a limit is hidden by a policy.
        """
        write = {"python": "to_python", "yaml": "to_yaml", "json": "to_json"}.get(form)
        if write is None:
            raise DefinitionError(
                f"rules are not written as {form!r}",
                where="form",
                fix="ask for python, yaml or json",
            )
        draft = self._draft
        self._check_hidden()
        draft.check_applied()
        rules = draft.base
        if draft.is_changed:
            rules, kept = draft._made(draft.next_version, draft.applied.rules), draft.kept
            # A version stands for the whole content: the default and the rest of it too.
            if kept is not None and draft._made(kept.version, rules.rules) == kept:
                rules = kept
        return str(getattr(rules, write)())

    def _check_hidden(self) -> None:
        """Refuse to write out what a policy hides."""
        draft = self._draft
        keys = [key for each in draft.rules for key in keys_of(each.rule)]
        keys += [key for one in draft.outside for key in one.where]
        hidden = [key for key in keys if self.hides(key)]
        if hidden:
            raise RuleError(
                f"the limit of {visible(hidden[0])} is hidden by a policy",
                code="hidden_limit",
                fix="change the rules where they are declared",
            )

    def _changed(self) -> None:
        self._judge()
        self._tell()

    def _tell(self) -> None:
        self.told = labtold.told(self)

    # -- what the script asks ----------------------------------------------------------------

    @asked("edit")
    def _edit(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        what = about.get("what")
        if what == "reset":
            self.reset()
        elif what == "add":
            self.first = (len(self._draft.rules) // labtold.RULES) * labtold.RULES
            self.add()
        elif what == "default":
            self.set_default(about.get("branch"), about.get("label"))
        elif what == "unreadable":
            self.set_unreadable(about.get("branch"), about.get("label"))
        elif int(about.get("rule", 0)) < 0:
            self._edit_outside(str(what), -int(about["rule"]), list(about.get("args", ())))
        elif what in _EDITS:
            number = self._draft.number_of(int(about["rule"]))
            given = list(about.get("args", ()))
            if what == "limit":
                key, op, kind, typed = given
                try:
                    given = [key, op, labfields.limit_of(kind, typed)]
                except ValueError as error:
                    self._draft.mark(number, Wrong(str(error), key))
                    self._tell()
                    return {"done": False}
            elif what == "move":
                given = [int(given[0])]
            getattr(self, _EDITS[str(what)])(number, *given)
        else:
            raise DefinitionError(f"a rule lab cannot change {what!r}")
        return {"done": True}

    def _edit_outside(self, what: str, number: int, given: list[Any]) -> None:
        if what == "limit":
            key, op, kind, typed = given
            try:
                limit = labfields.limit_of(kind, typed)
            except ValueError as error:
                raise DefinitionError(str(error), where="outside") from None
            self.set_outside(number, where=(key, op, limit))
        elif what == "what":
            self.set_outside(number, what=str(given[0]))
        elif what == "why":
            self.set_outside(number, why=str(given[0]))
        else:
            raise DefinitionError(f"a rule lab cannot change {what!r} of ground outside")

    @asked("page")
    def _page(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        self.first = max(0, min(int(about["first"]), len(self._draft.rules) - 1))
        self._tell()
        return {"first": self.first}

    @asked("text")
    def _asked_text(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"text": self.text(str(about.get("form", "python")))}

    @asked("keep")
    def _asked_keep(self, about: Mapping[str, Any]) -> Mapping[str, Any]:
        made = self.keep(about.get("version"))
        return {"title": made.title, "path": "" if self._path is None else str(self._path)}

    # -- where it cannot run -----------------------------------------------------------------

    def view(self) -> Card:
        """Show what changes, the counts, the rules and those that never fire."""
        from runbook_nb.widgets.labcard import lab_card

        return lab_card(self)

    def line(self) -> str:
        """Give the sentence plain text begins with."""
        wrong = len(self._draft.wrong)
        said = f" · {wrong} rule{'' if wrong == 1 else 's'} not applied" if wrong else ""
        return super().line() + said

    @property
    def limit(self) -> Limit | None:
        """The limit the histogram and the rows on the edge are about; None when there is none."""
        return labspread.limit_looked_at(self)


__all__ = ["DRAFT", "RuleLab"]
