"""Assertions for the tests of a runbook: its verdicts, its repeatability, its secrets.

Testing layer. They raise AssertionError with the whole difference in words, so they serve any
test runner.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from runbook_nb._text import clip, show
from runbook_nb.runbook import Envelope
from runbook_nb.runbook.verdicts import subject_column
from runbook_nb.testing.fixed import reproducible

T = TypeVar("T")

_PICTURE: Final = re.compile(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)")


def assert_verdicts(envelope: Envelope, expected: Mapping[Any, str]) -> None:
    """Assert that an answer has exactly these verdicts.

    Parameters
    ----------
    envelope : Envelope
        The answer.
    expected : mapping
        Subject -> verdict, for every row.

    Raises
    ------
    AssertionError
        Another verdict, a subject too many or too few, or rows that are not held in this copy.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> rows = [{"host": "a", "days": 9}, {"host": "b", "days": 1}]
    >>> envelope = rb.triage(rows, rules, subject="host", source="two rows")
    >>> assert_verdicts(envelope, {"a": "old", "b": "fresh"})
    >>> assert_verdicts(envelope, {"a": "fresh", "c": "old"})
    Traceback (most recent call last):
      ...
    AssertionError: 3 verdicts differ
      a is old, not fresh: old by rule 1 of age v1: days 9 > 7
      c has no row; old was expected
      b is fresh and was not expected: fresh by default of age v1: no rule fired
    """
    rows = envelope.verdicts
    if not rows.complete:
        raise AssertionError(f"only {len(rows)} of {rows.total} rows are held in this copy")
    found: dict[Any, tuple[str, int]] = {}
    wrong = []
    for place, row in enumerate(rows):
        column = subject_column(row)
        subject = row[column] if column is not None else place
        if subject in found:
            wrong.append(f"{show(subject)} has several rows")
        found[subject] = (str(row["verdict"]), place)
    for subject, verdict in expected.items():
        if subject not in found:
            wrong.append(f"{show(subject)} has no row; {verdict} was expected")
        elif found[subject][0] != verdict:
            said, place = found[subject]
            why = envelope.why(row=place).sentence
            wrong.append(f"{show(subject)} is {said}, not {verdict}: {why}")
    for subject, (said, place) in found.items():
        if subject not in expected:
            why = envelope.why(row=place).sentence
            wrong.append(f"{show(subject)} is {said} and was not expected: {why}")
    if wrong:
        many = "1 verdict differs" if len(wrong) == 1 else f"{len(wrong)} verdicts differ"
        raise AssertionError("\n  ".join([many, *wrong]))


def assert_reproducible(make: Callable[[], T], **fixed: Any) -> T:
    """Assert that doing something twice gives the same bytes in every form.

    Parameters
    ----------
    make : callable
        Gives an envelope, or anything else that shows itself.
    **fixed
        Passed to `reproducible`.

    Returns
    -------
    object
        What ``make`` gave.

    Raises
    ------
    AssertionError
        A form differs; the message shows where.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> assert_reproducible(lambda: rb.Rule({"days": {"gt": 7}}, "old")).then
    'old'
    """
    with reproducible(**fixed):
        once = make()
        first = dict(forms_of(once))
    with reproducible(**fixed):
        second = dict(forms_of(make()))
    for name in {**first, **second}:
        one, other = first.get(name, ""), second.get(name, "")
        if one != other:
            place = next(
                (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)),
            )
            start = max(place - 40, 0)
            raise AssertionError(
                f"the form {name} differs from character {place} on\n"
                f"  first:  {clip(one[start:], 120)!r}\n  second: {clip(other[start:], 120)!r}"
            )
    return once


def assert_hidden(shown: Any, *secrets: str) -> None:
    """Assert that no form of something holds a secret.

    Parameters
    ----------
    shown : object
        An envelope, a run, or anything else that shows itself.
    *secrets : str
        The texts that must not be found, in any form `forms_of` gives.

    Raises
    ------
    AssertionError
        A form holds one; the message names the form and not the secret.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> rules = rb.RuleSet("age", "v1", [rb.Rule({"days": {"gt": 7}}, "old")], rb.Default("fresh"))
    >>> rows = [{"host": "a", "days": 9, "token": "t0p-s3cret"}]
    >>> envelope = rb.triage(rows, rules, subject="host", source="one row", columns=["token"],
    ...     redact={"keys": ["token"]})
    >>> assert_hidden(envelope, "t0p-s3cret")
    """
    if not secrets or not all(secrets):
        raise AssertionError("no secret was named, so nothing could be looked for")
    for name, text in forms_of(shown):
        for place, secret in enumerate(secrets, 1):
            spelt = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
            if any(spelling in text for spelling in spelt):
                raise AssertionError(f"the form {name} holds secret number {place}")


def forms_of(shown: Any) -> Iterator[tuple[str, str]]:
    """Yield every form in which something leaves the process, as name and text.

    Markup is yielded both as it is and with its entities resolved, and what an output carries in
    encoded form is yielded decoded.

    Examples
    --------
    >>> import runbook_nb as rb
    >>> [name for name, _ in forms_of(rb.Rule({"days": {"gt": 7}}, "old"))][:2]
    ['repr', 'str']
    """
    yield "repr", repr(shown)
    yield "str", str(shown)
    bundle = getattr(shown, "_repr_mimebundle_", None)
    if bundle is not None:
        for kind, text in bundle()[0].items():
            yield from _mime_forms(kind, text)
    for name in ("to_markdown", "to_json", "to_dict"):
        yield from _asked(name, getattr(shown, name, None))
    if isinstance(shown, Envelope):
        if shown.carries_dossier:
            yield "to_json(dossier=True)", shown.to_json(dossier=True)
        run = shown.run
        if run is not None:
            yield from ((f"run.{name}", text) for name, text in forms_of(run))
    recording = getattr(shown, "recording", None)
    if callable(recording) and getattr(shown, "run", shown) is not None:
        yield "recording", _json(recording().to_dict())


def _mime_forms(kind: str, text: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(text, str):
        yield kind, _json(text)
        return
    yield kind, text
    if kind == "text/html":
        from html import unescape

        from runbook_nb.render.embed import read_embedded

        yield f"{kind}, entities resolved", unescape(text)
        for number, picture in enumerate(_PICTURE.findall(text), 1):
            yield f"{kind}, picture {number}", b64decode(picture).decode("utf-8")
        carried = read_embedded(text)
        if carried is not None:
            yield f"{kind}, what it carries", _json(carried)


def _asked(name: str, method: Any) -> Iterator[tuple[str, str]]:
    if callable(method):
        made = method()
        yield name, made if isinstance(made, str) else _json(made)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
