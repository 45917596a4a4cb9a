"""The documentation's code runs as it stands, and shows what the pages say it shows.

Each page is one program: its ``python`` blocks run in order in one namespace, in an empty folder.
A ``text`` or ``markdown`` block right after one is what that block shows: what it printed, then
its last value as a notebook cell would show it. A ``code-block`` with a ``:caption:`` is a file,
written before anything runs. A block whose first line is ``# not run: <reason>`` is left out, and
the reason is printed.

With ``RUNBOOK_NB_ACCEPT=1`` the shown outputs are written into the pages.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

DOCS = Path(__file__).parents[2] / "docs"
ACCEPT = os.environ.get("RUNBOOK_NB_ACCEPT") == "1"
NOT_RUN = re.compile(r"# not run: (.+)")
FILE = re.compile(r"\{code-block\}.*")

#: Written by the build from docstrings, whose examples are tested where they stand.
GENERATED = {"changelog.md", "notebooks.md"} | {
    path.relative_to(DOCS).as_posix()
    for path in (DOCS / "reference").glob("*.md")
    if path.name != "index.md"
}
PAGES = sorted(
    name
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and (name := path.relative_to(DOCS).as_posix()) not in GENERATED
)


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page, with the lines its content stands on, from 0."""

    info: str
    content: str
    first: int
    last: int  # one past the closing fence

    @property
    def is_output(self) -> bool:
        return self.info in ("text", "markdown")


def fences(text: str) -> list[Fence]:
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        Fence(token.info.strip(), token.content, token.map[0] + 1, token.map[1])
        for token in tokens
        if token.type == "fence"
    ]


def steps(text: str) -> list[tuple[Fence, Fence | None]]:
    """Pair each python block with the output that follows it, blank lines apart."""
    found, lines = fences(text), text.splitlines()
    pairs = []
    for place, block in enumerate(found):
        if block.info != "python":
            continue
        after = found[place + 1] if place + 1 < len(found) else None
        between = lines[block.last : after.first - 1] if after else ["none"]
        shown = after if after and after.is_output and not "".join(between).strip() else None
        pairs.append((block, shown))
    return pairs


def write_files(text: str) -> None:
    for block in fences(text):
        caption = re.match(r":caption: (\S+)\n+", block.content)
        if FILE.match(block.info) and caption:
            Path(caption[1]).write_text(block.content[caption.end() :], encoding="utf-8")


def run(block: Fence, page: str, scope: dict) -> str:
    """Run a block as a notebook cell would, and give what it shows."""
    tree = ast.parse(block.content, page)
    ast.increment_lineno(tree, block.first)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with contextlib.redirect_stdout(said):
        settle(eval(compile(tree, page, "exec", flags), scope))  # noqa: S307 - our own pages
        value = None
        if last is not None:
            code = compile(ast.Expression(last.value), page, "eval", flags)
            value = settle(eval(code, scope))  # noqa: S307
    shown = said.getvalue()
    if value is not None:
        shown += f"{str(value) if hasattr(value, '_repr_pretty_') else repr(value)}\n"
    return shown


def settle(value):
    async def awaited():
        return await value

    return asyncio.run(awaited()) if inspect.iscoroutine(value) else value


def accepted(text: str, outputs: list[tuple[Fence, str]]) -> str:
    lines = text.splitlines(keepends=True)
    for fence, output in reversed(outputs):
        lines[fence.first : fence.last - 1] = [output]
    return "".join(lines)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if steps((DOCS / page).read_text(encoding="utf-8"))]
)
def test_a_page_runs_and_shows_what_it_says(page, tmp_path, monkeypatch):
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    pairs = steps(text)
    monkeypatch.chdir(tmp_path)
    write_files(text)
    scope = {"__name__": "__main__"}
    found, expected = [], []
    for block, shown in pairs:
        if reason := NOT_RUN.match(block.content):
            print(f"{page}:{block.first + 1} not run: {reason[1]}")  # noqa: T201 - said aloud
            continue
        output = run(block, page, scope)
        if shown is not None:
            found.append((shown, output))
            expected.append(shown.content)
        else:
            assert output == "", f"{page}:{block.first + 1} shows something the page leaves out"
    if ACCEPT:
        path.write_text(accepted(text, found), encoding="utf-8")
    else:
        assert [output for _, output in found] == expected


@pytest.mark.parametrize("page", PAGES)
def test_no_code_hides_where_it_is_not_run(page):
    """A block inside a list, a note or another fence would be shown and never run."""
    text = (DOCS / page).read_text(encoding="utf-8")
    written = re.findall(r"^[ \t>]*[`~]{3,} *python\b", text, re.MULTILINE)
    assert len(written) == len(steps(text))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_one_title(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    prose = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^# ", prose, re.MULTILINE)) == 1


def test_an_output_belongs_to_the_block_right_before_it():
    text = "```python\n1\n```\n\n```text\n1\n```\n\nwords\n\n```text\n2\n```\n"
    ((block, shown),) = steps(text)
    assert (block.content, shown.content) == ("1\n", "1\n")
    assert steps("```python\n1\n```\n\nwords\n\n```text\n2\n```\n")[0][1] is None


def test_a_block_shows_what_it_prints_and_then_its_last_value():
    ((block, _),) = steps("```python\nprint('a')\nawait_me = 1\n{'b': await_me}\n```\n")
    assert run(block, "page", {}) == "a\n{'b': 1}\n"


def test_a_wrong_output_is_found(tmp_path, monkeypatch):
    page = "wrong.md"
    (tmp_path / page).write_text("# T\n\n```python\n1 + 1\n```\n\n```text\n3\n```\n")
    monkeypatch.setitem(globals(), "DOCS", tmp_path)
    monkeypatch.setitem(globals(), "ACCEPT", False)
    with pytest.raises(AssertionError):
        test_a_page_runs_and_shows_what_it_says(page, tmp_path, monkeypatch)


def test_outputs_can_be_written_into_a_page():
    text = "```python\n1 + 1\n```\n\n```text\n```\n\nend\n"
    ((block, shown),) = steps(text)
    assert accepted(text, [(shown, run(block, "page", {}))]) == text.replace(
        "```text\n", "```text\n2\n"
    )
