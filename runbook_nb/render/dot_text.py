"""Lines in the DOT language: statements, lists of attributes, names in quotes.

Render layer. The little of the language that a flowchart needs, written as the ``graphviz`` package
writes it; that package takes as long to import as all that a first answer draws. No text is ever
HTML-like: whatever is no plain name or number stands in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

#: What needs no quotes: a name, or a number.
_PLAIN: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)")
_KEYWORDS: Final = frozenset({"node", "edge", "graph", "digraph", "subgraph", "strict"})


def quoted(text: str) -> str:
    r"""Write a text as DOT reads it; its backslashes are escapes already, or are escaped.

    Examples
    --------
    >>> print(quoted("box"), quoted("rounded,filled"), quoted("graph"), quoted('say "no"\\n'))
    box "rounded,filled" "graph" "say \"no\"\n"
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _KEYWORDS:
        return text
    return '"' + text.replace('"', r"\"") + '"'


class DotText:
    """A directed graph, written statement by statement; frames are opened and closed.

    Examples
    --------
    >>> drawn = DotText("flow", node={"shape": "box"})
    >>> drawn.node("n1", {"label": "a < b", "class": "w-s"})
    >>> drawn.open("", {"rank": "same"})
    >>> drawn.node("n2")
    >>> drawn.close()
    >>> drawn.edge("n1", "n2")
    >>> print(drawn.end().expandtabs(2))
    digraph flow {
      node [shape=box]
      n1 [label="a < b" class="w-s"]
      {
        graph [rank=same]
        n2
      }
      n1 -> n2
    }
    <BLANKLINE>
    """

    def __init__(self, name: str, **defaults: Mapping[str, str]) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._add(f"digraph {name} {{")
        self._depth = 1
        for kind, attributes in defaults.items():
            self._add(kind + _list_of(attributes))

    def node(self, name: str, attributes: Mapping[str, str] | None = None) -> None:
        """Write a node."""
        self._add(name + _list_of(attributes or {}, "label"))

    def edge(self, tail: str, head: str, attributes: Mapping[str, str] | None = None) -> None:
        """Write an edge."""
        self._add(f"{tail} -> {head}{_list_of(attributes or {}, 'label')}")

    def open(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin a frame, or with no name a group; what follows lies in it until it is closed."""
        self._add(f"subgraph {name} {{" if name else "{")
        self._depth += 1
        self._add("graph" + _list_of(attributes))

    def close(self) -> None:
        """End what was opened last."""
        self._depth -= 1
        self._add("}")

    def end(self) -> str:
        """Close the graph and give its text."""
        self.close()
        return "".join(self._lines)

    def _add(self, statement: str) -> None:
        self._lines.append("\t" * self._depth + statement + "\n")


def _list_of(attributes: Mapping[str, str], first: str = "") -> str:
    """Write attributes in the order of their names, behind the label of a node or an edge."""
    if not attributes:
        return ""
    ordered = sorted(attributes.items(), key=lambda one: (one[0] != first, one[0]))
    return f" [{' '.join([f'{quoted(name)}={quoted(value)}' for name, value in ordered])}]"
