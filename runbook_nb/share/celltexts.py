"""The texts between the outputs of a notebook: those this package wrote, and an author's own.

Sharing layer. A text that was generated from an answer is drawn anew from it and compared. Any
other is its author's, and nobody can say what should stand there; it is named, so that nobody
takes it for checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from runbook_nb._text import listed
from runbook_nb.record.claims import HIDDEN, NAMED, Claims, agrees
from runbook_nb.record.redact import PLACEHOLDER
from runbook_nb.share.exported import exported_card, exporting
from runbook_nb.share.notebook import EXPLAINING, generator_of, head_text
from runbook_nb.share.outputs import CARRIED, Redrawn, joined

#: Cells that hold text to be read.
_READ: Final = ("markdown", "raw")


def claim_cells(document: Any, answers: Iterable[Redrawn], claims: Claims) -> None:
    """Claim that the texts a notebook was written with say what its answers say.

    Parameters
    ----------
    document : object
        The notebook, as its file holds it.
    answers : iterable of Redrawn
        The answers it carries; they are asked for only where the package wrote it.
    claims : Claims
    """
    cells = document.get("cells") if isinstance(document, Mapping) else None
    texts = dict(_texts(cells if isinstance(cells, list) else ()))
    generator = generator_of(document)
    if generator is not None:
        for wanted in _generated(answers, generator):
            number = _nearest(texts, wanted)
            if number is not None:
                _claim(number, texts.pop(number), wanted, claims)
    if texts:
        told = f"not looked at: the text of {_cells_named(list(texts))}"
        places = [("cells", number, "source") for number in texts]
        claims.unchecked("cells", told, "it is the author's own text", *places, count=len(texts))


def _texts(cells: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Yield the texts that are read, by the number of their cell from 0."""
    for number, cell in enumerate(cells):
        if isinstance(cell, Mapping) and cell.get("cell_type") in _READ:
            text = joined(cell.get("source"))
            if text.strip():
                yield number, text


def _generated(answers: Iterable[Redrawn], generator: str) -> Iterator[str]:
    with exporting():
        for one in answers:
            yield head_text(one.envelope, exported_card(one.envelope), generator)
            yield EXPLAINING


def _nearest(texts: Mapping[int, str], wanted: str) -> int | None:
    """Give the cell that holds a text, or what became of it; None where no cell has half of it."""
    words = Counter(wanted.split())
    shares = {
        number: (agrees(text.strip(), wanted), sum((words & Counter(text.split())).values()))
        for number, text in texts.items()
    }
    best = max(shares, key=lambda number: shares[number], default=None)
    if best is None or not (shares[best][0] or 2 * shares[best][1] >= sum(words.values())):
        return None
    return best


def _claim(number: int, text: str, wanted: str, claims: Claims) -> None:
    found, expected = text.strip().split("\n"), wanted.split("\n")
    told, place = "the text says what the answer says", ("cells", number, "source")
    wrong = [pair for pair in zip_longest(found, expected) if None in pair or not agrees(*pair)]
    # What was hidden later is counted together in the answer, and was not in the text.
    known = [
        pair
        for pair in wrong
        if not any(PLACEHOLDER in (line or "").replace("\\", "") for line in pair)
    ]
    name = f"cell[{number + 1}]"
    if wrong and not known:
        claims.unchecked(name, told, HIDDEN, place)
        return
    pair = next(iter(known), (None, None))
    claims.settle(name, told, not wrong, CARRIED, place, told=pair)


def _cells_named(numbers: Sequence[int]) -> str:
    """Name cells as people count them.

    Examples
    --------
    >>> _cells_named([0]), _cells_named([0, 2])
    ('cell 1', 'cells 1 and 3')
    """
    named = [str(number + 1) for number in numbers[:NAMED]]
    more = [f"{len(numbers) - NAMED} more"] if len(numbers) > NAMED else []
    return f"cell{'s' if len(numbers) > 1 else ''} {listed([*named, *more])}"
