"""What the README says its code and its command print is what they print."""

import re
from pathlib import Path

import pytest

from runbook_nb.examples import certificates

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: The demonstration's output is shown as far as its first lines.
SHOWN_LINES = 4


def promised() -> list[tuple[str, str]]:
    """Pair each block of Python with the text block that stands behind it."""
    blocks = FENCE.findall(README)
    return [
        (code, blocks[place + 1][1] if blocks[place + 1][0] == "text" else "")
        for place, (language, code) in enumerate(blocks)
        if language == "python"
    ]


def test_each_block_prints_the_text_behind_it(capsys):
    scope = {}
    pairs = promised()
    assert len(pairs) == 3
    for code, text in pairs:
        exec(compile(code, "README.md", "exec"), scope)  # noqa: S102 - a reader runs it too
        assert capsys.readouterr().out == text


def test_the_demonstration_begins_as_the_readme_shows():
    lines = str(certificates.run("2026-11-29")).splitlines()[:SHOWN_LINES]
    *_, shown = [text for language, text in FENCE.findall(README) if language == "text"]
    assert shown.splitlines() == lines


@pytest.mark.parametrize("word", ["to_html", "explore()", "Playbook("])
def test_no_claim_is_made_of_what_does_not_exist(word):
    assert word not in README
