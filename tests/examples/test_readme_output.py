"""What the README says its code and its command print is what they print."""

import os
import re
from pathlib import Path

import pytest

import runbook_nb as rb
from runbook_nb.examples import certificates

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: The picture the README shows.
PICTURE = Path(__file__).parents[2] / "docs" / "_static" / "backup_triage.svg"

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
    assert len(pairs) == 8
    for code, text in pairs:
        exec(compile(code, "README.md", "exec"), scope)  # noqa: S102 - a reader runs it too
        assert capsys.readouterr().out == text


def test_the_demonstration_begins_as_the_readme_shows():
    lines = str(certificates.run("2026-11-29")).splitlines()[:SHOWN_LINES]
    begins = lines[0].partition(" · ")[0]
    (shown,) = [text for _, text in FENCE.findall(README) if text.startswith(begins)]
    assert shown.splitlines() == lines


def test_the_picture_is_the_one_that_is_drawn(capsys):
    scope = {}
    for code, _ in promised():
        exec(compile(code, "README.md", "exec"), scope)  # noqa: S102 - a reader runs it too
    with rb.settings(layout="pure"):
        drawn = scope["box"].last_run.walk.flowchart().svg
    assert drawn is not None
    if os.environ.get("RUNBOOK_NB_ACCEPT"):
        PICTURE.write_text(drawn, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == drawn


@pytest.mark.parametrize("word", ["Plan(", "Playbook("])
def test_no_claim_is_made_of_what_does_not_exist(word):
    assert word not in README


def test_what_the_readme_names_exists():
    named = set(re.findall(r"\brb\.(\w+)", README))
    assert {"RuleLab", "RunForm", "triage"} <= named <= set(rb.__all__)
    asked = set(re.findall(r"\benvelope\.(\w+)", README))
    assert {"explore", "rejudge", "compare"} <= asked
    assert [name for name in sorted(asked) if not hasattr(rb.Envelope, name)] == ["json"]


def test_every_magic_is_named():
    from runbook_nb.magics import RunbookMagics

    lines, cells = RunbookMagics.magics["line"], RunbookMagics.magics["cell"]
    written = [f"`%{name}`" for name in lines] + [f"`%%{name}`" for name in cells]
    assert len(written) >= 4
    assert [name for name in written if name not in README] == []
