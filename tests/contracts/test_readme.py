"""The README's code runs as it stands, and its commands and files exist."""

import re


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_code_runs(root):
    code = blocks((root / "README.md").read_text(encoding="utf-8"), "python")
    assert code
    scope = {}
    for block in code:
        exec(compile(block, "README.md", "exec"), scope)  # noqa: S102 - that is what is promised


def test_the_make_targets_exist(root):
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (root / page).read_text(encoding="utf-8")
        assert set(re.findall(r"(?:^|`|=1 )make ([a-z]+)", text, re.M)) <= targets, page


def test_the_files_it_links_exist(root):
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (root / page).read_text(encoding="utf-8")
        links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
        assert [link for link in links if not (root / link).exists()] == [], page
