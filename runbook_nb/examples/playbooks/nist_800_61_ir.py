"""The tools of an incident exercise: a host that somebody signed in to who should not have.

Everything is made up. Addresses are of the ranges kept for documentation, names end in
``.example``, nothing leaves this process, and the same calls give the same answers.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, Final

import runbook_nb as rb
from runbook_nb._text import did_you_mean

#: What is known of the indicators in the events, by where it was asked.
INDICATORS: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "203.0.113.66": {
        "reputation": {"verdict": "malicious", "reports": 41},
        "whois": {"registrant": "Bulletproof Hosting Ltd", "registered": "2026-11-02"},
    },
    "updates-cdn.example": {
        "reputation": {"verdict": "malicious", "reports": 7},
        "whois": {"registrant": "hidden", "registered": "2026-11-27"},
    },
    "198.51.100.20": {
        "reputation": {"verdict": "harmless", "reports": 0},
        "whois": {"registrant": "Our own office", "registered": "2011-03-14"},
    },
}

#: Hosts that there are, and the image each would be restored from.
HOSTS: Final = {"web-3": "image-2026-11-20", "db-1": "image-2026-11-22"}


@cache
def _rows() -> tuple[dict[str, str], ...]:
    text = (resources.files(__package__) / "incident_events.csv").read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def events() -> list[dict[str, str]]:
    """Give the events of the exercise, as the SIEM holds them.

    Examples
    --------
    >>> events()[0]["host"], len(events())
    ('web-3', 12)
    """
    return [dict(row) for row in _rows()]


class Exercise:
    """The tools, and what they have done so far.

    Parameters
    ----------
    unreachable : int
        How many times isolating a host fails before it works.

    Attributes
    ----------
    isolated, restored, watched : list of str
        Hosts, in the order in which it happened.
    pages, reviews : list of dict
        What was written, and to whom.

    Examples
    --------
    >>> exercise = Exercise(unreachable=1)
    >>> try:
    ...     exercise.isolate_host("web-3")
    ... except ConnectionError as error:
    ...     print(error)
    the agent on web-3 does not answer
    >>> exercise.isolate_host("web-3"), exercise.isolated
    ({'host': 'web-3', 'isolated': True}, ['web-3'])
    """

    def __init__(self, unreachable: int = 0) -> None:
        self.unreachable = unreachable
        self.isolated: list[str] = []
        self.restored: list[str] = []
        self.watched: list[str] = []
        self.pages: list[dict[str, str]] = []
        self.reviews: list[dict[str, str]] = []

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """The tools as plain functions, in the order in which the playbook asks for them."""
        return [
            self.query_siem,
            self.enrich_indicator,
            self.page_owner,
            self.isolate_host,
            self.restore_host,
            self.watch_host,
            self.write_review,
        ]

    def query_siem(self, query: str) -> dict[str, Any]:
        """Find events by fields, like ``index=auth host=web-3``."""
        terms = [term.partition("=")[::2] for term in query.split()]
        for field, value in terms:
            if not value or field not in _rows()[0]:
                near = did_you_mean(field, _rows()[0]) or f"use {', '.join(_rows()[0])}"
                raise ValueError(f"cannot search by {field!r}; {near}")
        found = [row for row in events() if all(row[field] == value for field, value in terms)]
        return {"query": query, "count": len(found), "events": found}

    def enrich_indicator(self, indicator: str, source: str) -> dict[str, Any]:
        """Ask what is known of an address or a name: ``reputation`` or ``whois``."""
        if source not in ("reputation", "whois"):
            raise ValueError(f"there is no source {source!r}; ask for reputation or whois")
        known = INDICATORS.get(indicator, {}).get(source)
        return {
            "indicator": indicator,
            "source": source,
            "known": known is not None,
            **(known or {}),
        }

    def page_owner(self, service: str, message: str) -> dict[str, Any]:
        """Page whoever owns a service."""
        self.pages.append({"service": service, "message": message})
        return {"service": service, "paged": True}

    def isolate_host(self, host: str) -> dict[str, Any]:
        """Take a host off the network, leaving it switched on."""
        self._known(host)
        if self.unreachable > 0:
            self.unreachable -= 1
            raise ConnectionError(f"the agent on {host} does not answer")
        self.isolated.append(host)
        return {"host": host, "isolated": True}

    def restore_host(self, host: str) -> dict[str, Any]:
        """Restore a host from its last image before the incident."""
        self._known(host)
        if host not in self.isolated:
            raise RuntimeError(f"{host} is still on the network")
        self.restored.append(host)
        return {"host": host, "image": HOSTS[host]}

    def watch_host(self, host: str, hours: int = 24) -> dict[str, Any]:
        """Watch a host for some hours."""
        self._known(host)
        self.watched.append(host)
        return {"host": host, "hours": hours, "alerts": 0}

    def write_review(self, title: str, text: str) -> dict[str, Any]:
        """File the review."""
        self.reviews.append({"title": title, "text": text})
        return {"title": title, "words": len(text.split())}

    @staticmethod
    def _known(host: str) -> None:
        if host not in HOSTS:
            raise LookupError(f"there is no host {host!r}; there is {', '.join(HOSTS)}")


def toolbox(exercise: Exercise | None = None, *, unreachable: int = 0) -> rb.Toolbox:
    """Make the toolbox of an exercise.

    Parameters
    ----------
    exercise : Exercise, optional
        One that is kept, to see what its tools did; a new one when left out.
    unreachable : int
        How many times isolating a host fails, in a new one.

    Examples
    --------
    >>> toolbox().call_sync("query_siem", {"query": "index=auth host=web-3"})["count"]
    5
    """
    made = exercise if exercise is not None else Exercise(unreachable)
    return rb.Toolbox([rb.tool(function) for function in made.tools])
