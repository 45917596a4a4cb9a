"""What the narrative of a published recording tells of each executed stage.

Record layer. The narrative is a list of sentences in order of time, each with the execution it is
about. Its kinds and keys are facts; of the sentences only the fixed words at their beginning are
read, and only where nothing else in the recording says the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runbook_nb._value import frozen
from runbook_nb.record.narrative import Told

#: How the engine's own sentences begin, and ours, whatever follows.
_DONE: Final = re.compile(
    r"(?:Step \d+: )?"
    r"(Read|Write|Update|Delete|Input:|Wrote|Merged into|Appended to|Deleted|Received) "
)
_EMITTED: Final = re.compile(r"\[emit\] (.+?): (.*)", re.DOTALL)
_RETRIED: Final = re.compile(
    r"\[Retry\]: attempt (\d+) of (\d+) at .*? failed \((.*)\)\.(?: Waited \d+ms.*)?", re.DOTALL
)
_OPERATIONS: Final = {
    "Read": "read",
    "Write": "write",
    "Wrote": "write",
    "Update": "update",
    "Merged into": "update",
    "Appended to": "write",
    "Delete": "delete",
    "Deleted": "delete",
}
#: What stands before the sentence proper, in rows that are not steps.
_MARK: Final = re.compile(r"\[[A-Z][A-Za-z]*\]: ")


@frozen(kw_only=False)
class Row:
    """One sentence.

    Attributes
    ----------
    type : str
        Of the published ones: ``stage``, ``step``, ``condition``, ``fork``, ``selector``,
        ``subflow``, ``loop``, ``break``, ``error``, ``pause``, ``resume``, ``emit``, ``retry``.
    text : str
    key : str or None
        The state key of a step.
    """

    type: str
    text: str
    key: str | None = None

    @property
    def sentence(self) -> Told:
        """The sentence without the mark before it."""
        return Told(_MARK.sub("", self.text, count=1))

    @property
    def operation(self) -> str | None:
        """What a step did: ``read``, ``write``, ``update``, ``delete``, or ``received``.

        None where the sentence is not one of the engine's own.
        """
        found = _DONE.match(self.text)
        if found is None or self.key is None or not self.text[found.end() :].startswith(self.key):
            return None
        return _OPERATIONS.get(found[1], "received")

    @property
    def emitted(self) -> tuple[str, Told]:
        """The name of an event and what was told of its payload."""
        found = _EMITTED.match(self.text)
        return ("event", Told(self.text)) if found is None else (found[1], Told(found[2]))

    @property
    def retried(self) -> tuple[int | None, int | None, str]:
        """Which attempt failed, of how many, and with what message."""
        found = _RETRIED.fullmatch(self.text)
        if found is None:
            return None, None, self.sentence
        return int(found[1]), int(found[2]), found[3]


@dataclass(slots=True)
class Narrative:
    """The sentences of a recording, by the execution they are about.

    Attributes
    ----------
    kept : bool
        Whether the recording has a narrative at all.
    """

    kept: bool = False
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def of(self, execution: str) -> list[Row]:
        """Give the sentences about one execution, in their order."""
        return self.rows.get(execution, [])

    def has(self, execution: str, kind: str) -> bool:
        """Say whether there is a sentence of a kind about an execution."""
        return any(row.type == kind for row in self.of(execution))


def narrative_of(snapshot: Mapping[str, Any]) -> Narrative:
    """Find the narrative among what observers kept.

    Examples
    --------
    >>> told = narrative_of({"recorders": [{"id": "n", "name": "Narrative", "data": [
    ...     {"type": "step", "text": "Step 1: Read n = 1", "key": "n", "runtimeStageId": "a#0"}]}]})
    >>> told.of("a#0")[0].operation
    'read'
    """
    narrative = Narrative()
    for data in kept_by_recorders(snapshot):
        if not isinstance(data, list) or not _is_narrative(data):
            continue
        narrative.kept = True
        for entry in data:
            execution, text = entry.get("runtimeStageId"), entry.get("text")
            if isinstance(execution, str) and isinstance(text, str):
                key = entry.get("key")
                row = Row(str(entry.get("type")), text, key if isinstance(key, str) else None)
                narrative.rows.setdefault(execution, []).append(row)
        break
    return narrative


def _is_narrative(data: list[Any]) -> bool:
    return bool(data) and all(
        isinstance(entry, Mapping) and "type" in entry and "text" in entry for entry in data
    )


def kept_by_recorders(snapshot: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what each observer of a recording kept."""
    recorders = snapshot.get("recorders")
    for row in recorders if isinstance(recorders, list) else ():
        if isinstance(row, Mapping):
            yield row.get("data")
