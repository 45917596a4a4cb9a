"""An answer as one page: no network, no script, no kernel.

Sharing layer. The card is the one a notebook cell shows, drawn by the same templates; around it
stand a policy that forbids the page to fetch anything, and a footer that says what made it.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runbook_nb._display import through
from runbook_nb._files import write_whole
from runbook_nb._text import visible
from runbook_nb._version import __version__
from runbook_nb.render.embed import MARK
from runbook_nb.render.html import render_html
from runbook_nb.runbook import Envelope
from runbook_nb.settings import settings
from runbook_nb.share.exported import exported_card, exporting, redactor_of

if TYPE_CHECKING:
    from jinja2 import Template

    from runbook_nb._view import Card

#: What says that it wrote a file.
GENERATOR: Final = f"runbook_nb {__version__}"


def write_report(envelope: Envelope, path: str | os.PathLike[str]) -> Path:
    """Write an envelope as a page; see `Envelope.to_html`."""
    return write_whole(path, report_html(envelope))


def report_html(envelope: Envelope) -> str:
    """Give an envelope as the text of a page.

    Parameters
    ----------
    envelope : Envelope
        Live or a copy.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> envelope = rb.triage([{"host": "a", "days": 9}], rules, subject="host", source="one row")
    >>> report_html(envelope).splitlines()[0]
    '<!doctype html>'
    """
    with exporting():
        card = exported_card(envelope)
        drawn = render_html(card, export=True, page=True)
    return page_around(envelope, card, drawn)


def page_around(envelope: Envelope, card: Card, drawn: str) -> str:
    """Give the page of an answer whose card is drawn already."""
    from markupsafe import Markup

    hidden = redactor_of(envelope)
    return _page().render(
        theme=settings.theme,
        generator=GENERATOR,
        title=through("line", card),
        name=visible(card.name) or "a runbook",
        facts=[(term, visible(hidden.text(said))) for term, said in provenance(envelope)],
        carries=MARK in drawn,
        css=Markup(_css()),  # noqa: S704 - a file of ours
        card=Markup(drawn),  # noqa: S704 - drawn by templates that escape
    )


def provenance(envelope: Envelope, generator: str = GENERATOR) -> list[tuple[str, str]]:
    """Say what an answer came from: rules, call, tickets, and what wrote the file."""
    result = envelope["result"]
    name, version = envelope.rules
    walk = result.get("walk", {})
    facts = [
        ("Rules", version if name is None else f"{name} {version}"),
        ("Call", _text(result.get("af_provenance", {}).get("toolCallId"))),
        ("Walk", _text(walk.get("ref"))),
        ("Whole walk", _text(walk.get("columns_ref"))),
        ("Recording", _text(walk.get("recording_ref"))),
        ("Written by", generator),
    ]
    return [(term, said) for term, said in facts if said]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@cache
def _page() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("runbook_nb.share", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return made.get_template("page.html.jinja")


@cache
def _css() -> str:
    return files("runbook_nb.share").joinpath("static", "page.css").read_text("utf-8")
