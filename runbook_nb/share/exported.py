"""What an answer looks like in a file that is handed on.

Sharing layer. It is the card of a notebook cell, with more rows, and with the whole answer as the
machine-readable form. Redaction is gone over once more: everything a card shows has passed it
before, and a file that travels is no place to find out that something had not.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from runbook_nb._view import Card, Data
from runbook_nb.record.redact import Redactor
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.carried import scrubbed_texts
from runbook_nb.runbook.payload import exported_payload
from runbook_nb.settings import Settings, settings

#: Verdict rows a file shows; it says when there are more. A reader of a file cannot ask for them.
EXPORTED_ROWS: Final = 1_000

#: Fields of views that hold words of our own vocabulary, never what came from outside.
_VOCABULARY: Final = frozenset(
    {"align", "direction", "in_text", "key", "kind", "members", "parent", "role", "source"}
    | {"state", "style", "target", "tone"}
)


def exporting() -> AbstractContextManager[Settings]:
    """Set, for a ``with`` block, how much files show; cards are made and drawn inside it."""
    return settings(max_table_rows=max(EXPORTED_ROWS, settings.max_table_rows))


def exported_card(envelope: Envelope) -> Card:
    """Give the card of an envelope as files show it."""
    card, hidden = envelope.view(), redactor_of(envelope)

    return rechecked(replace(card, payload=lambda most: exported_form(envelope)), hidden)


def exported_form(envelope: Envelope) -> Mapping[str, Any]:
    """Give the machine-readable form of an envelope as whatever is kept of it carries it."""
    made: Mapping[str, Any] = scrubbed_texts(exported_payload(envelope), redactor_of(envelope))
    return made


def redactor_of(envelope: Envelope) -> Redactor:
    """Give the policy an envelope was made under; a copy holds nothing left to hide."""
    return Redactor(None) if envelope.run is None else envelope.run.redactor


def rechecked(card: Card, redactor: Redactor) -> Card:
    """Take out of a card whatever its policy hides.

    Examples
    --------
    >>> from runbook_nb.record.redact import Redact
    >>> policy = Redactor(Redact(values=("t0p-s3cret",)))
    >>> rechecked(Card(kind="Envelope", name="x", headline="with t0p-s3cret"), policy).headline
    'with [REDACTED]'
    """
    if not redactor.active:
        return card
    made: Card = _rechecked(card, redactor)
    # What became of a run is said in words that may quote its error.
    return replace(made, state=redactor.text(made.state))


def _rechecked(part: Any, redactor: Redactor) -> Any:
    if isinstance(part, str):
        return redactor.text(part)
    if isinstance(part, Data):
        return replace(part, value=redactor.scrub(part.value))
    if isinstance(part, tuple):
        return tuple(_rechecked(item, redactor) for item in part)
    if is_dataclass(part) and not isinstance(part, type):
        held = {f.name: getattr(part, f.name) for f in fields(part) if f.name not in _VOCABULARY}
        return replace(part, **{name: _rechecked(value, redactor) for name, value in held.items()})
    return part
