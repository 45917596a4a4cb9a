"""What the contracts look at: the checkout, and the parsed source of every module."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One module of the package."""

    name: str  # with slashes, from the package: ``rules/model.py``
    text: str
    tree: ast.Module

    def where(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 0)}"

    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def package() -> Path:
    return ROOT / "runbook_nb"


@pytest.fixture(scope="session")
def sources(package) -> list[Source]:
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(package).as_posix()
        found.append(Source(name=name, text=text, tree=ast.parse(text, str(path))))
    assert found
    return found
