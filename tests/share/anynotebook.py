"""Notebooks of every kind nbformat 4 allows, with texts planted in them."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from runbook_nb.render.embed import MARK

#: What must not be seen, with every character that some writer escapes.
SECRETS = ("hunter-2x", 'pa"ss<w>ö&rd', "sp ace/10%'x", "back\\slash_9")


def comment(value: Any) -> str:
    """Write a machine-readable form of whatever it is."""
    text = json.dumps(value).encode()
    packed = base64.b64encode(text).decode()
    return f"{MARK}1 sha-256:{hashlib.sha256(text).hexdigest()} {packed}-->"


def picture(text: str) -> str:
    drawn = f"<svg><text>{html.escape(text)}</text></svg>".encode()
    return f'<img src="data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}">'


#: How a text may be written.
WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: json.dumps(text)[1:-1],
    html.escape,
    lambda text: quote(text, safe=""),
    lambda text: json.dumps(html.escape(text))[1:-1],
)
#: How it may be packed.
PACKERS: tuple[Callable[[str], str], ...] = (
    lambda text: comment({"format": "x/1", "note": text, "more": [text]}),
    picture,
    lambda text: comment({"format": "y/1", "inner": comment({"format": "x/1", "note": text})}),
    lambda text: comment({"format": "runbook_nb/envelope/1", "envelope": {"x": picture(text)}}),
)

ODD = (
    *("/home/ann/x.py", "password='abcdef-1'", "token: 'q'", "/var/tmp/x/2.py", "<b>"),  # noqa: S108
    *("\x1b[31m", "[REDACTED]", "…", "a=b", "C:\\Users\\bob\\q", "data:image/png;base64,AAAA"),
    *(MARK, "-->", "2026-11-29T10:00:00Z", "https://u:pw9@h/", "\\", '"', "'"),
)
#: Names that mean something to somebody.
NAMES = (
    *("a", "password", "token", "key", "threshold", "properties", "writeOnly", "type", "user"),
    *("created", "value", "model_name", "state", "hidden", "digest", "runbook_nb", "payload"),
)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(ODD)


def documents(planted: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Make notebooks in whose texts, keys and packed parts something is planted."""
    texts = st.lists(words | planted, max_size=4).map("".join)
    names = st.sampled_from(NAMES) | planted.filter(lambda text: len(text) < 60)
    leaves = st.none() | st.booleans() | st.integers() | texts
    trees = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    )
    about = st.dictionaries(names, trees, max_size=3)
    packed = st.binary(max_size=30).map(lambda data: base64.b64encode(data).decode())
    bundles = st.fixed_dictionaries(
        {},
        optional={
            "text/plain": texts,
            "text/html": texts,
            "text/markdown": texts,
            "application/json": trees,
            "application/vnd.x+json": texts,
            "image/svg+xml": texts,
            "image/png": packed | texts,
            "application/pdf": packed,
            "application/x-hunter-2x": texts,
            "application/vnd.jupyter.widget-view+json": texts,
        },
    )
    return _documents(texts, trees, about, bundles)


@st.composite
def _documents(draw: Any, texts: Any, trees: Any, about: Any, bundles: Any) -> dict[str, Any]:
    minor = draw(st.integers(0, 5))
    some = st.booleans()
    cells = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["code", "markdown", "raw"]))
        metadata = draw(about)
        if draw(some):
            tags = st.lists(st.sampled_from(["hide-input", "hunter-2x", "a"]), unique=True)
            metadata["tags"] = draw(tags)
        cell = {"cell_type": kind, "metadata": metadata, "source": draw(texts)}
        if kind == "code":
            if draw(some):
                metadata["scrolled"] = draw(st.sampled_from([True, False, "auto"]))
                metadata["execution"] = {"shell.execute_reply": "2026-11-29T10:00:00Z"}
            cell["outputs"] = draw(st.lists(_outputs(texts, about, bundles), max_size=3))
            cell["execution_count"] = draw(st.none() | st.integers(0, 9))
        elif minor and draw(some):
            cell["attachments"] = draw(st.dictionaries(texts, bundles, max_size=2))
        if minor == 5:
            cell["id"] = draw(st.sampled_from(["a", "b", "hunter-2x"]))
        cells.append(cell)
    metadata = draw(about)
    if draw(some):
        metadata["kernelspec"] = {"name": draw(texts), "display_name": draw(texts), "argv": ["/x"]}
    if draw(some):
        metadata["language_info"] = {"name": draw(texts), "version": "3.11"}
    if draw(some):
        metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": draw(trees)}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


@st.composite
def _outputs(draw: Any, texts: Any, about: Any, bundles: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(["stream", "error", "display_data", "execute_result"]))
    if kind == "stream":
        name = draw(st.sampled_from(["stdout", "stderr"]))
        return {"output_type": kind, "name": name, "text": draw(texts)}
    if kind == "error":
        return {
            "output_type": kind,
            "ename": draw(texts),
            "evalue": draw(texts),
            "traceback": draw(st.lists(texts, max_size=3)),
        }
    output = {"output_type": kind, "data": draw(bundles), "metadata": draw(about)}
    if kind == "execute_result":
        output["execution_count"] = draw(st.none() | st.integers(0, 9))
    return output


# -- looking again, by other means -----------------------------------------------------------

_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")


def texts_in(value: Any) -> Iterator[str]:
    """Give every text in a document, keys too, and what base64 in them stands for."""
    if isinstance(value, str):
        yield value
        for found in _BASE64.findall(value):
            try:
                yield from texts_in(base64.b64decode(found).decode())
            except ValueError:
                continue
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_in(key)
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def spellings_of(text: str) -> set[str]:
    """Give a text as every writer writes it."""
    return {write(text) for write in WRITERS}
