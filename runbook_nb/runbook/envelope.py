"""The envelope: a runbook's answer as one read-only mapping, with the evidence behind it.

Bridge layer. As a mapping it is exactly the wire form, ``{"af_coverage", "result"}``; its
attributes are views of that and of the dossier. Where a copy does not carry something it says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import Renderable, through
from runbook_nb._frozen import FrozenDict, freeze, thaw
from runbook_nb._text import did_you_mean, listed, show
from runbook_nb._view import Card
from runbook_nb.coverage import Ledger, read_coverage_ledger
from runbook_nb.errors import LoadError, NoSuchPart, NotCarried
from runbook_nb.record.walk import Walk
from runbook_nb.runbook.dossier import Dossier
from runbook_nb.runbook.table import VerdictTable
from runbook_nb.settings import settings

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    import pandas as pd

    from runbook_nb.record.recording import Recording
    from runbook_nb.record.run import Run
    from runbook_nb.record.verification import Verification
    from runbook_nb.rules import RuleSet
    from runbook_nb.runbook.comparing import Comparison
    from runbook_nb.runbook.explanation import Explanation
    from runbook_nb.runbook.filed import FiledWalk
    from runbook_nb.runbook.rejudging import Rejudged
    from runbook_nb.runbook.sides import Side
    from runbook_nb.widgets.explorer import Explorer

#: The two keys of an envelope on the wire, in order.
ENVELOPE_KEYS: Final = ("af_coverage", "result")


def _encoder(indent: int | None) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=False,
        allow_nan=False,
        check_circular=False,  # what is frozen holds nothing of itself
        indent=indent,
        separators=(",", ":") if indent is None else (",", ": "),
    )


#: Writes answers without a space or a line break.
_COMPACT: Final = _encoder(None)


class Envelope(Renderable, FrozenDict):
    """A runbook's answer.

    Examples
    --------
    >>> from runbook_nb.runbook.triage import triage
    >>> from runbook_nb.rules import Default, Rule, RuleSet
    >>> posture = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], Default("fresh"))
    >>> envelope = triage([{"host": "a", "days": 9}], posture, subject="host", source="one row")
    >>> [row["verdict"] for row in envelope.verdicts], envelope.why("a").sentence
    (['old'], 'old by rule 1 of age v1: days 9 > 7')
    """

    __slots__ = ("__dict__",)

    shown_once_for_all = True

    _given: Dossier | Callable[[], Dossier] | None
    _run: Run | None
    _artifacts: Any

    @classmethod
    def live(
        cls,
        wire: Mapping[str, Any],
        *,
        dossier: Dossier | Callable[[], Dossier] | None,
        run: Run | None,
        artifacts: Any,
    ) -> Envelope:
        """Make the envelope of a run that just ended; its dossier may be made when asked for."""
        made = cls({key: freeze(wire[key], key) for key in ENVELOPE_KEYS})
        made.__dict__.update(_given=dossier, _run=run, _artifacts=artifacts)
        return made

    @cached_property
    def _dossier(self) -> Dossier | None:
        return self._given() if callable(self._given) else self._given

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], artifacts: Any = None) -> Envelope:
        """Read an envelope back from its wire form.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave, with or without its dossier.
        artifacts : BoundArtifacts or Toolbox, optional
            Where its tickets are redeemed; without it, walk and recording are *not carried*.

        Raises
        ------
        LoadError
            It is no envelope.
        """
        given: Any = data
        if isinstance(given, str | bytes | bytearray):
            raise LoadError(
                "this is a text, not a mapping", where="envelope", fix="give it json.loads(text)"
            )
        if read_coverage_ledger(data) is None or not isinstance(data["result"], Mapping):
            raise LoadError(
                "this is no envelope: it needs a mapping under 'af_coverage' and under 'result'",
                where="envelope",
            )
        unknown = [key for key in data if key not in (*ENVELOPE_KEYS, "dossier")]
        if unknown:
            raise LoadError(
                f"an envelope has no part {unknown[0]!r}", where="envelope", fix="leave it out"
            )
        _check_result(data["result"])
        dossier = data.get("dossier")
        return cls.live(
            data,
            dossier=None if dossier is None else Dossier.from_dict(dossier),
            run=None,
            artifacts=getattr(artifacts, "artifacts", artifacts),
        )

    @classmethod
    def from_notebook(
        cls, path: str | PathLike[str], *, which: int | None = None, artifacts: Any = None
    ) -> Envelope:
        """Read an envelope out of a notebook, a saved one or one `to_notebook` wrote.

        Nothing in the file is run or trusted. Only `to_notebook` writes tickets along, and with
        them what they stand for: the filed walk, and a recording up to 5 MB.

        Parameters
        ----------
        which : int, optional
            Of several envelopes the one to read, from 0; -1 is the last.
        artifacts : BoundArtifacts or Toolbox, optional
            Where its tickets are redeemed.

        Raises
        ------
        LoadError
            It is no notebook, or carries no envelope, a damaged one, or several.
        """
        read: Envelope = through("from_notebook", path, which=which, artifacts=artifacts)
        return read

    # -- parts -----------------------------------------------------------------------------

    def __missing__(self, key: Any) -> Any:
        """Say where a part stands that is no key of the envelope itself."""
        name = show(key)
        result = dict.get(self, "result")
        if isinstance(result, Mapping) and key in result:
            fix = f'it stands in envelope["result"]["{name}"]'
            fix += f", and all of it in envelope.{name}" if key == "verdicts" else ""
        else:
            fix = did_you_mean(name, self) or f"its keys are {listed(map(repr, self))}"
        raise NoSuchPart(f"an envelope has no key {name!r}", where="envelope", fix=fix)

    @property
    def tool(self) -> str:
        """The runbook that answered."""
        return str(self["result"].get("af_provenance", {}).get("tool", ""))

    @cached_property
    def ledger(self) -> Ledger:
        """The coverage ledger."""
        return Ledger.from_dict(self["af_coverage"])

    @property
    def dossier(self) -> Dossier:
        """The evidence behind the answer.

        Raises
        ------
        NotCarried
            This copy holds the wire form only.
        """
        if self._dossier is None:
            raise NotCarried(
                "the dossier is not carried: this copy holds the wire form only",
                fix="ask the live envelope, or write it with to_dict(dossier=True)",
            )
        return self._dossier

    @property
    def carries_dossier(self) -> bool:
        """Whether there is a `dossier`."""
        return self._given is not None

    @cached_property
    def verdicts(self) -> VerdictTable:
        """Every verdict row known, with whether that is all of them."""
        shown = self["result"].get("verdicts", ())
        total = self["result"].get("rows_total", len(shown))
        known = shown if self._dossier is None else self._dossier.rows
        # A dossier cut to a cap may know fewer rows than the wire shows.
        return VerdictTable(known if len(known) >= len(shown) else shown, total)

    @property
    def meanings(self) -> Mapping[str, str]:
        """What each verdict means, in the words of the rules that ran."""
        found: Mapping[str, str] = self["result"].get("verdict_meanings", FrozenDict())
        return found

    @property
    def rules(self) -> tuple[str | None, str]:
        """Name (None when this copy does not carry it) and version of the declared rules."""
        version = str(self["result"].get("rule_version", "undeclared"))
        stamp = None if self._dossier is None else self._dossier.stamp
        return (None if stamp is None else stamp[0]), version

    @cached_property
    def walk(self) -> Walk | FiledWalk:
        """The recorded walk: all of it when live, else the filed rows."""
        if self._run is not None:
            return self._run.walk
        from runbook_nb.runbook.filed import FiledWalk

        return FiledWalk(self["result"].get("walk", {}), self._artifacts)

    @property
    def artifacts(self) -> Any:
        """Where its tickets are redeemed; None where no store is at hand."""
        return self._artifacts

    @property
    def run(self) -> Run | None:
        """The run behind a live envelope; None for a copy."""
        return self._run

    def recording(self) -> Recording:
        """Give the run's own recording: of the live run, else the filed one.

        Raises
        ------
        NotCarried
            It was not filed, or its ticket cannot be redeemed here.
        """
        if self._run is not None:
            return self._run.recording()
        from runbook_nb.record.recording import Recording
        from runbook_nb.runbook.filed import redeem

        data = redeem(self._artifacts, self["result"].get("walk", {}), "recording_ref")
        if not isinstance(data, dict) or not {"snapshot", "events", "structure"} <= data.keys():
            raise NotCarried("the recording is not carried: what the store gave back is none")
        return Recording(data["snapshot"], data["events"], data["structure"])

    # -- questions -------------------------------------------------------------------------

    def why(self, subject: Any = None, *, row: int | None = None) -> Explanation:
        """Explain one row: the rule that decided, with the compared values.

        Parameters
        ----------
        subject : object, optional
            The value in the row's first column, or what names the subject.
        row : int, optional
            The row's number instead, counted from 0 as `verdicts` is: ``row=0`` is the one whose
            card says *row 1 of 50 (row=0)*.

        Raises
        ------
        SubjectNotFound
            No row or subject has that name, or several have.
        NotCarried
            This copy does not hold it, or there is no row of that number.

        Returns
        -------
        Explanation
        """
        from runbook_nb.runbook.explain import explain

        return explain(self, subject, row)

    @cached_property
    def side(self) -> Side:
        """Every subject with what became of it, as comparisons read it."""
        from runbook_nb.runbook.sides import side_of

        return side_of(self)

    def rejudge(self, rules: RuleSet | Mapping[str, Any]) -> Rejudged:
        """Judge the recorded facts again by other rules; no source is called.

        Parameters
        ----------
        rules : RuleSet or mapping

        Raises
        ------
        NotCarried
            This copy holds the wire form only.

        Returns
        -------
        Rejudged
            Where the rules need a fact that was not recorded, or that a policy hides, the subject
            *cannot be re-judged*; nothing is guessed.

        Examples
        --------
        >>> from runbook_nb.runbook.triage import triage
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> rows = [{"host": "a", "days": 9}, {"host": "b", "days": 2}]
        >>> envelope = triage(rows, rules, subject="host", source="two rows")
        >>> envelope.rejudge(RuleSet("age", "v2", [Rule({"days": {"gt": 1}}, "old")], "fresh"))
        <Rejudged age v2 · 2 subjects (2 old), before age v1>
        """
        from runbook_nb.runbook.rejudging import rejudge

        return rejudge(self, rules)

    def compare(self, other: Any) -> Comparison:
        """Compare with another envelope, or with this one judged again.

        Parameters
        ----------
        other : Envelope or Rejudged
            The later side.

        Returns
        -------
        Comparison
            What changed, by the rule and the values that changed it.
        """
        from runbook_nb.runbook.comparing import compare

        return compare(self, other)

    def verify(
        self, *, artifacts: Any = None, rules: Any = (), recording: Any = None
    ) -> Verification:
        """Check every claim of the answer against whatever else there is; nothing is run.

        Parameters
        ----------
        artifacts : BoundArtifacts or Toolbox, optional
            Where tickets are redeemed; by default the store the answer came with.
        rules : RuleSet, mapping, or several, optional
            Rule sets from elsewhere, for the digest of those that judged.
        recording : path, mapping or Recording, optional
            A recording of the run from elsewhere.

        Returns
        -------
        Verification
            Each claim with *confirmed*, *contradicted*, or *cannot be checked* and why. No claim is
            confirmed by itself.

        Examples
        --------
        >>> from runbook_nb.runbook.triage import triage
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> answer = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
        >>> forged = answer.to_dict(dossier=True)
        >>> forged["dossier"]["subjects"][0]["decision"]["values"][0] = 3
        >>> [claim.id for claim in Envelope.from_dict(forged).verify().contradicted]
        ['verdict[host=a]', 'facts[days]']
        """
        from runbook_nb.runbook.verify import verify

        return verify(self, artifacts=artifacts, rules=rules, recording=recording)

    def to_frame(self, *, typed: bool | None = None) -> pd.DataFrame:
        """Give every verdict row known as a DataFrame, with what decided each.

        The added columns are ``decided_by`` (the condition that decided) and ``rule`` (its number
        from 1, or ``default``, ``unreadable``, ``outside``); both are empty where no decision is
        carried.

        Parameters
        ----------
        typed : bool, optional
            Give each column the type of its values instead: verdict, rule and status as
            categories, whole numbers as such also where some are missing, instants as instants.
            There is no ``decided_by`` then, for it is a sentence per row; the compared values
            stand in columns of their own. By default from 10,000 rows on.

        Examples
        --------
        >>> from runbook_nb.runbook.triage import triage
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> rows = [{"host": "a", "days": 9}, {"host": "b", "days": None}]
        >>> envelope = triage(rows, rules, subject="host", source="two rows")
        >>> [dtype.name for dtype in envelope.to_frame(typed=True).dtypes]
        ['object', 'category', 'Int64', 'category', 'category']
        """
        from runbook_nb.runbook.explain import verdict_frame
        from runbook_nb.runbook.frames import LARGE, typed_to_frame

        wanted = len(self.verdicts) >= LARGE if typed is None else typed
        return typed_to_frame(self) if wanted else verdict_frame(self)

    def explore(self, subject: Any = None) -> Explorer:
        """Go through the walk row by row, beside its flowchart; a widget.

        It pages through the fullest record there is, and says which: the live one, a walk filed
        whole, a recording, else the dossier and the filed rows.

        Parameters
        ----------
        subject : object, optional
            Whose decision to begin at; by default that of the first subject.

        Examples
        --------
        >>> from runbook_nb.runbook.triage import triage
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
        >>> envelope.explore("a")
        <Explorer triage · row 13 of 21 · Verdict of a: old by rule 1 of age v1: days 9 > 7>
        """
        explorer: Explorer = through("explore", self, subject)
        return explorer

    # -- forms -----------------------------------------------------------------------------

    def to_dict(self, *, dossier: bool = False) -> dict[str, Any]:
        """Give the wire form as ordinary dicts and lists, with the dossier when asked."""
        wire: dict[str, Any] = thaw(FrozenDict(self))
        if dossier:
            wire["dossier"] = self.dossier.to_dict()
        return wire

    def to_json(self, *, dossier: bool = False, indent: int | None = None) -> str:
        """Give the wire form as strict JSON, in its own key order."""
        # Frozen mappings and lists are written as they stand; only a dossier is put beside them.
        told = self.to_dict(dossier=True) if dossier else self
        return (_COMPACT if indent is None else _encoder(indent)).encode(told)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the answer as one page that needs no network, script or kernel.

        It shows up to 1,000 rows and carries the whole answer, as ``runbook-nb render`` reads it.
        """
        written: Path = through("report", self, path)
        return written

    def to_csv(self, path: str | PathLike[str]) -> Path:
        """Write the verdict rows, with what decided each, as CSV for a spreadsheet.

        A text that a spreadsheet would take for a formula is written behind an apostrophe.
        """
        written: Path = through("sheet", self, path)
        return written

    def to_notebook(self, path: str | PathLike[str]) -> Path:
        """Write the answer as a notebook that reads without a kernel, and with one out of itself.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from runbook_nb.runbook.triage import triage
        >>> from runbook_nb.rules import Rule, RuleSet
        >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
        >>> envelope = triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
        >>> with TemporaryDirectory() as folder:
        ...     copy = Envelope.from_notebook(envelope.to_notebook(f"{folder}/answer.ipynb"))
        >>> copy == envelope, copy.why("a").sentence
        (True, 'old by rule 1 of age v1: days 9 > 7')
        """
        written: Path = through("notebook", self, path)
        return written

    def view(self) -> Card:
        """Show the answer: headline, verdicts, coverage, rules, report, walk."""
        from runbook_nb.runbook.payload import envelope_payload

        return replace(self._card(), payload=partial(envelope_payload, self))

    def _card(self) -> Card:
        """Give what is shown, worked out once for each way it is to be shown: it never changes.

        What carries the answer itself is put on by `view`, so that nothing kept holds its owner.
        """
        kept: tuple[Any, Card] | None = self.__dict__.get("_shown")
        if kept is None or kept[0] != settings.current:
            from runbook_nb.runbook.cards import envelope_card

            kept = self.__dict__["_shown"] = settings.current, envelope_card(self)
        return kept[1]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (Envelope.from_dict, (self.to_dict(dossier=self._dossier is not None),))


def _check_result(result: Mapping[str, Any]) -> None:
    """Refuse a result whose parts could not be shown as what they say they are."""
    for name in ("walk", "af_provenance", "verdict_meanings"):
        if name in result and not isinstance(result[name], Mapping):
            raise LoadError(f"{name} of the envelope is no mapping", where=f"result.{name}")
    if "verdicts" not in result:
        return
    rows, total = result["verdicts"], result.get("rows_total")
    if not isinstance(rows, list | tuple) or not all(
        isinstance(row, Mapping) and isinstance(row.get("verdict"), str) for row in rows
    ):
        raise LoadError(
            "the verdicts of the envelope are no list of rows, each with a text under 'verdict'",
            where="result.verdicts",
        )
    if type(total) is not int or total < len(rows):
        raise LoadError(
            f"rows_total of the envelope is {total!r}, and it shows {len(rows)} rows",
            where="result.rows_total",
        )
