"""What an object hands to Jupyter: plain text and HTML always, a JSON form when asked for.

Showing never raises: where the rich form fails, plain text stands with one line that names the
failure. It runs no tool and asks no store or network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from runbook_nb._json import byte_size, canonical
from runbook_nb._text import clip, visible
from runbook_nb._view import Card, Viewable
from runbook_nb.errors import raw_text
from runbook_nb.render.cells import words
from runbook_nb.render.html import render_html
from runbook_nb.render.text import render_text
from runbook_nb.settings import settings

TEXT: Final = "text/plain"
HTML: Final = "text/html"
JSON: Final = "application/vnd.runbook-nb.envelope.v1+json"
#: Bytes of the JSON form; a larger one is only described.
MAX_JSON: Final = 100 * 1024

#: Where an object that never changes keeps its last drawing.
_KEPT: Final = "_kept_bundle"

Bundle = tuple[dict[str, Any], dict[str, Any]]


def bundle_of(
    shown: Viewable,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
) -> Bundle:
    """Give an object's forms by MIME type, and their metadata.

    Parameters
    ----------
    shown : Viewable
        What is shown.
    include, exclude : collection of str, optional
        Types that are wanted, or not.

    Examples
    --------
    >>> from runbook_nb.rules import Rule, RuleSet
    >>> rules = RuleSet("age", "v1", [Rule({"days": {"gt": 7}}, "old")], "fresh")
    >>> sorted(bundle_of(rules)[0])
    ['text/html', 'text/plain']
    >>> sorted(bundle_of(rules, include=["text/plain"])[0])
    ['text/plain']
    """

    def wanted(kind: str) -> bool:
        return (include is None or kind in include) and (exclude is None or kind not in exclude)

    kept = _kept(shown)
    if kept is None:
        kept = _drawn(shown, html=wanted(HTML))
        if HTML in kept:
            _keep(shown, kept)
    return {kind: form for kind, form in kept.items() if wanted(kind)}, {}


def _drawn(shown: Viewable, *, html: bool) -> dict[str, Any]:
    try:
        card = shown.view()
        data: dict[str, Any] = {TEXT: render_text(card)}
    except Exception:
        return {TEXT: str(shown)}  # which says what failed
    try:
        if html:
            data[HTML] = render_html(card)
        if settings.mime_json and card.payload is not None:
            data[JSON] = _json_form(card)
    except Exception as error:
        data.pop(HTML, None)
        data[TEXT] += f"\n(no rich form: {failure(error)})"
    return data


def failure(error: BaseException, served: Callable[[str], str] = str) -> str:
    """Name a failure on one line, whatever its message does, as ``served`` lets it be seen."""
    try:
        said = clip(visible(served(raw_text(error))), 200)
    except Exception:
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _json_form(card: Card) -> Mapping[str, Any]:
    assert card.payload is not None  # noqa: S101 - asked for by who calls
    made = card.payload(MAX_JSON)
    if made is not None and byte_size(canonical(made)) <= MAX_JSON:
        return made
    described = {"kind": words(card.kind), "name": words(card.name), "said": words(card.headline)}
    return {"descriptor": described, "left_out": f"larger than {MAX_JSON // 1024} kB"}


def _kept(shown: Any) -> dict[str, Any] | None:
    found = getattr(shown, "__dict__", {}).get(_KEPT) if _never_changes(shown) else None
    return found[1] if found is not None and found[0] == settings.current else None


def _keep(shown: Any, data: dict[str, Any]) -> None:
    if _never_changes(shown) and hasattr(shown, "__dict__"):
        shown.__dict__[_KEPT] = (settings.current, data)


def _never_changes(shown: Any) -> bool:
    return bool(getattr(type(shown), "shown_once_for_all", False))
