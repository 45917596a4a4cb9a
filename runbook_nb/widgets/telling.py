"""Views as plain JSON for scripts: the same words, roles and cuts as in static views.

A run of a cell becomes ``[kind, text]`` or ``[kind, text, more]``, where kind is one letter:
``o`` our words, ``d`` data, ``p`` a sentence from outside, ``s`` data that decides, ``q`` data that
is quiet, ``b`` a badge. Scripts write each text as text.
"""

from __future__ import annotations

from typing import Final

from runbook_nb._view import Cell
from runbook_nb.render.parts import Piece, pieces
from runbook_nb.render.theme import SIGNS

_KINDS: Final = {"ours": "o", "data": "d", "prose": "p", "strong": "s", "dim": "q", "badge": "b"}


def tell(cell: Cell, *, code: bool = False) -> list[list[str]]:
    """Take a cell apart for a script.

    Parameters
    ----------
    cell : Cell
    code : bool
        Whether all data of it is set in the type of data.

    Returns
    -------
    list
        One list per run. Of a badge the third is its role and the fourth its sign; of data that
        was cut the third is more of it.

    Examples
    --------
    >>> from runbook_nb._view import Badge, Data
    >>> tell((Data(value="age"), Data(value=30, unit="days"), ">", Data(value=7)))
    [['d', 'age'], ['d', '30 days'], ['o', '>'], ['d', '7']]
    >>> tell(Badge(word="unprotected", role="b"))
    [['b', 'unprotected', 'b', '▲']]
    """
    return [_told(piece) for piece in pieces(cell, code=code)]


def _told(piece: Piece) -> list[str]:
    text = f"{piece.text} {piece.unit}" if piece.unit else piece.text
    if piece.kind == "badge":
        return ["b", text, piece.role, SIGNS[piece.role].glyph if piece.role in SIGNS else ""]
    return [_KINDS[piece.kind], text, *([piece.title] if piece.title else [])]


def badge(word: str, role: str) -> list[str]:
    """Take down a word with its role.

    Examples
    --------
    >>> badge("unprotected", "b")
    ['b', 'unprotected', 'b', '▲']
    """
    return ["b", word, role, SIGNS[role].glyph if role in SIGNS else ""]
