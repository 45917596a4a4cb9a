"""Links inside the project lead somewhere: from README, pages, notebooks and contributing notes.

Sphinx checks those of its pages while it builds. Here the files are read as a code host shows them,
without a build: a link is a path from the file it stands in, an anchor a heading of the page.
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]

#: Pages the build writes; a link to one is looked for in what writes it.
GENERATED = {"docs/changelog.md", "docs/notebooks.md"}


def sources():
    """Every document a person reads, as path and Markdown."""
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    pages = [ROOT / name for name in names]
    pages += [
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if "_build" not in path.parts and path.relative_to(ROOT).as_posix() not in GENERATED
    ]
    found = [(path, path.read_text(encoding="utf-8")) for path in pages if path.exists()]
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        found.append((path, text))
    return found


SOURCES = {path.relative_to(ROOT).as_posix(): text for path, text in sources()}


def links(text):
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield unquote(target)


def anchors(text):
    """The anchors of a page's headings, as code hosts and the build both make them."""
    tokens = MarkdownIt("commonmark").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(child.content for child in inline.children or ())
            yield re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
    yield from re.findall(r"^\((\S+)\)=$", text, re.M)


def faults(name, text):
    for target in links(text):
        if re.match(r"[a-z][a-z+.-]*:", target):
            if target.startswith("http:"):
                yield f"{target}: not https"
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / name).parent / path if path else ROOT / name
        known = place.resolve().relative_to(ROOT).as_posix()
        if known in GENERATED or known.startswith("docs/reference/") or "{" in target:
            continue  # written by the build, which checks them
        if known.startswith("docs/notebooks/"):  # where the build copies them to
            place = ROOT / known.removeprefix("docs/")
        if not place.exists():
            yield f"{target}: there is no {known}"
        elif anchor and known in SOURCES and anchor not in set(anchors(SOURCES[known])):
            yield f"{target}: {known} has no heading {anchor}"


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_link_leads_somewhere(name):
    assert list(faults(name, SOURCES[name])) == []


def test_a_link_that_leads_nowhere_is_noticed():
    text = (
        "[a](docs/gone.md) [b](docs/laws.md#no-such-heading) [c](#gone) ![d](gone.svg) <http://x>"
    )
    assert len(list(faults("README.md", text))) == 5
    assert list(faults("README.md", "[a](docs/laws.md) [b](https://x.org)")) == []


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for name, text in SOURCES.items():
        for body in re.findall(r"```\{toctree\}\n(.*?)```", text, re.S):
            for line in body.splitlines():
                if line.strip() and not line.startswith(":"):
                    place = (ROOT / name).parent / line.strip()
                    listed.add(f"{place.resolve().relative_to(ROOT).as_posix()}.md")
    pages = {name for name in SOURCES if name.startswith("docs/")} - {"docs/index.md"}
    assert {page for page in pages if not page.startswith("docs/reference/")} <= listed
