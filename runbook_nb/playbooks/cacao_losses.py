"""What reading a CACAO document could not say in a playbook: nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from runbook_nb._display import Renderable
from runbook_nb._frozen import Immutable
from runbook_nb._text import counted, listed
from runbook_nb._value import frozen
from runbook_nb._view import (
    Badge,
    Card,
    Cell,
    Column,
    Data,
    Fact,
    Facts,
    Role,
    Section,
    Table,
)

#: What became of something: it means something else now, it is no step, or it is data only.
Effect = Literal["changed", "left_out", "kept"]

_WORDS: Final[Mapping[Effect, tuple[str, Role]]] = {
    "changed": ("changed", "b"),
    "left_out": ("left out", "a"),
    "kept": ("kept as data", "quiet"),
}

#: So many places of one loss are named in a view.
_NAMED: Final = 5


_BRANCHES: Final = "its condition is not judged; the steps of its branches are optional"
_MEANT: Final[Mapping[str, str]] = {
    "if-condition": _BRANCHES,
    "switch-condition": _BRANCHES,
    "while-condition": "its condition is not judged; the steps of its body stand once and are "
    "optional",
    "parallel": "what may be done at once stands in an order",
    "playbook-action": "the other playbook is not read; a person says when it is done",
    "on_failure": "what follows a failure is not followed",
    "workflow_exception": "what follows a failure is not followed",
    "delay": "nobody waits",
    "owner": "nobody is held to it",
    "agent": "nobody is addressed",
    "targets": "nobody is addressed",
    "step_variables": "no variable is filled in",
    "playbook_variables": "no variable is filled in",
    "in_args": "no variable is filled in",
    "out_args": "no variable is filled in",
    "signatures": "they are of the document, not of the playbook",
    "markings": "no handling is applied",
    "revoked": "it is not looked at",
    "valid_from": "it is not looked at",
    "valid_until": "it is not looked at",
}


@frozen
class CacaoLoss(Immutable):
    """One thing that a document said and the playbook made of it does not.

    Attributes
    ----------
    effect : {"changed", "left_out", "kept"}
        ``changed``: the playbook says something else instead. ``left_out``: a step of the document
        is none of the playbook. ``kept``: it is data in ``metadata["cacao"]`` and has no effect.
    what : str
        A kind of step, or a property of the document.
    places : tuple of str
        The steps it concerns, by name; empty where it concerns the playbook.
    note : str
        What that means.

    Examples
    --------
    >>> CacaoLoss(effect="kept", what="delay", places=("Wait",), note="nobody waits").to_dict()
    {'effect': 'kept', 'what': 'delay', 'places': ['Wait'], 'note': 'nobody waits'}
    """

    effect: Effect
    what: str
    places: tuple[str, ...] = ()
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "effect": self.effect,
            "what": self.what,
            "places": list(self.places),
            "note": self.note,
        }


class Lost:
    """Gathers what is lost: what is lost in the same way at several places is one loss.

    Examples
    --------
    >>> lost = Lost()
    >>> lost.add("kept", "delay", "Wait")
    >>> lost.add("kept", "delay", "Wait again")
    >>> lost.items[0].places
    ('Wait', 'Wait again')
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Effect, str, str], list[str]] = {}

    def add(self, effect: Effect, what: str, place: str = "", note: str | None = None) -> None:
        """Note that something is lost, at a step or of the whole."""
        said = _MEANT.get(what, "it is kept and has no effect") if note is None else note
        places = self._found.setdefault((effect, what, said), [])
        places += [place] if place else []

    def forget(self, effect: Effect, what: str) -> None:
        """Take back what turned out not to be lost."""
        self._found.pop((effect, what, _MEANT[what]), None)

    @property
    def items(self) -> tuple[CacaoLoss, ...]:
        """All of it, the weightiest first."""
        return tuple(
            CacaoLoss(effect=effect, what=what, places=tuple(places), note=note)
            for wanted in _WORDS
            for (effect, what, note), places in self._found.items()
            if effect == wanted
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class CacaoLosses(Immutable, Renderable):
    """All that a document said and the playbook made of it does not; false where there is nothing.

    Attributes
    ----------
    playbook : str
        The name of the playbook.
    steps : int
        How many steps it has.
    source : mapping
        ``id``, ``created_by``, ``created`` and ``modified`` of the document.
    items : tuple of CacaoLoss
        What changed first, then what was left out, then what is data only.

    Examples
    --------
    >>> CacaoLosses(playbook="Incident response", steps=3, source={}, items=())
    <CacaoLosses Incident response · 3 steps · nothing was lost>
    """

    playbook: str
    steps: int
    source: Mapping[str, str]
    items: tuple[CacaoLoss, ...]

    def __bool__(self) -> bool:
        return bool(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[CacaoLoss]:
        return iter(self.items)

    def of(self, effect: Effect) -> tuple[CacaoLoss, ...]:
        """Give the losses with one effect."""
        return tuple(item for item in self.items if item.effect == effect)

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "playbook": self.playbook,
            "steps": self.steps,
            "source": dict(self.source),
            "items": [item.to_dict() for item in self.items],
        }

    def view(self) -> Card:
        """Show what was lost, the weightiest first."""
        counts = [(len(self.of(effect)), *told) for effect, told in _WORDS.items()]
        rows = tuple(
            (
                Badge(word=_WORDS[item.effect][0], role=_WORDS[item.effect][1]),
                Data(value=item.what, tone="code"),
                _places(item),
                item.note,
            )
            for item in self.items
        )
        table = Table(
            columns=tuple(Column(head=head) for head in ("effect", "what", "where", "meaning")),
            rows=rows,
            total=len(rows),
            rest="losses.to_dict()",
            empty="nothing was lost",
            whole=True,
        )
        told = Facts(
            label="Document",
            items=tuple(
                Fact(term=name, detail=Data(value=value, tone="code"))
                for name, value in self.source.items()
            ),
            total=len(self.source),
            style="plain",
        )
        sections = [Section(label="", parts=(table,))] if self.items else []
        if self.source:
            sections.append(Section(label="", parts=(told,), in_text=False))
        steps = counted(self.steps, "step")
        return Card(
            kind="CacaoLosses",
            name=self.playbook,
            qualifiers=(steps,),
            headline="" if self.items else "nothing was lost",
            badges=tuple(Badge(word=word, role=role, count=n) for n, word, role in counts if n),
            sections=tuple(sections),
        )


def _places(item: CacaoLoss) -> Cell:
    if not item.places:
        return "the playbook"
    named = listed([*item.places[:_NAMED]])
    more = len(item.places) - _NAMED
    return (Data(value=named), f"and {more} more") if more > 0 else Data(value=named)
