"""The card of an answer drawn anew, where something was hidden in the answer it shows.

Sharing layer. Taking texts out of a drawing leaves what was drawn around them: quotes, and values
too short to be looked for. So a card that is known to be that of its answer is drawn from the
answer as it now is; one that cannot be told to be it is left to be looked through as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from runbook_nb.render.embed import comment_of
from runbook_nb.render.html import render_html
from runbook_nb.render.text import render_text
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.grounds import Ground
from runbook_nb.share.exported import exported_card, exporting
from runbook_nb.share.notebook import head_text
from runbook_nb.share.outputs import (
    HTML,
    TEXT,
    Output,
    Redrawn,
    cells_told,
    joined,
    rows_told,
)
from runbook_nb.share.scrubbing import OURS
from runbook_nb.share.travelling import carries

#: Rows of an answer that are explained again at most, to find the one an output explains.
MOST_EXPLAINED: Final = 200


def drawn_anew(
    output: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, str]:
    """Give the forms of an output that show an answer, as they show it now.

    Parameters
    ----------
    output : mapping
        It shows ``before``, as far as can be told.
    before, after : mapping
        The machine-readable form as it was, and as it is.

    Returns
    -------
    dict
        By MIME type; a form that is not what the answer looks like is not in it.
    """
    try:
        one, other = _redrawn(before), _redrawn(after)
        return dict(_forms(output, one, other, after))
    except Exception:  # an answer of anybody; it is looked through as text all the same
        return {}


def _redrawn(payload: Mapping[str, Any]) -> Redrawn:
    return Redrawn(Ground(Envelope.from_dict(payload["envelope"])))


def _forms(
    output: Mapping[str, Any], one: Redrawn, other: Redrawn, after: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    data = output["data"]
    text, html = data.get(TEXT), data.get(HTML)
    if isinstance(text, str):
        cells = cells_told(joined(html))
        for found, drawn in zip(one.texts(text, cells), other.texts(text, cells), strict=False):
            if found.rstrip("\n") == text.rstrip("\n"):
                yield TEXT, drawn
                break
    if isinstance(html, str):
        shown = Output("", data, (), export=carries(output.get("metadata")))
        pictured = "<img" in html
        tried = rows_told(html), cells_told(html)
        pages = (each.pages(*tried, shown, picture=pictured) for each in (one, other))
        for found, drawn in zip(*pages, strict=False):
            if OURS.sub("", found) == OURS.sub("", html):
                yield HTML, _carrying(drawn, comment_of(lambda _: after, None))
                break


def _carrying(drawn: str, comment: str) -> str:
    return OURS.sub(lambda _: comment, drawn)


def headed_anew(
    source: str,
    generator: str,
    altered: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> str | None:
    """Give the text above an answer in which something was hidden, as it would be written now.

    Parameters
    ----------
    source : str
        The text as it was.
    generator : str
        What wrote the notebook.
    altered : iterable of tuple
        Answers of the notebook, each as it was and as it is, in the order they were altered.

    Returns
    -------
    str or None
        None where it is not the text above any of them.
    """
    made: str | None = None
    for before, after in altered:
        try:
            with exporting():
                one, other = (Envelope.from_dict(each["envelope"]) for each in (before, after))
                held = source if made is None else made
                if head_text(one, exported_card(one), generator).strip() == held.strip():
                    made = head_text(other, exported_card(other), generator)
        except Exception:  # noqa: S112 - an answer of anybody; it is looked through as text
            continue
    return made


def explained_anew(
    data: Mapping[str, Any], altered: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> dict[str, str]:
    """Give the forms of an output that explains a row of an answer in which something was hidden.

    Parameters
    ----------
    data : mapping
        Its forms by MIME type.
    altered : iterable of tuple
        Answers of the notebook, each as it was and as it is.
    """
    text, html = data.get(TEXT), data.get(HTML)
    if not isinstance(text, str) or not text.startswith("Decision "):
        return {}
    for before, after in altered:
        try:
            one, other = (Envelope.from_dict(each["envelope"]) for each in (before, after))
            for row in range(min(len(one.verdicts), MOST_EXPLAINED)):
                card = one.why(row=row).view()
                if render_text(card).rstrip("\n") == text.rstrip("\n"):
                    anew = other.why(row=row).view()
                    made = {TEXT: render_text(anew)}
                    # Its path was drawn from a record that no copy has; it goes with the rest.
                    return made if html is None else {**made, HTML: render_html(anew)}
        except Exception:  # noqa: S112 - it is looked through as text all the same
            continue
    return {}
