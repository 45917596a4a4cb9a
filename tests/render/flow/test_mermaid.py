"""Mermaid text: quoted labels, no directive, no click, the same bytes every time."""

import os
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from runbook_nb._view import Data, Graph, GraphNode
from runbook_nb.render.mermaid import render_mermaid

GOLDEN = Path(__file__).parent / "golden"


def test_the_backup_triage_is_written_as_agreed(small):
    text = small.flowchart().mermaid
    path = GOLDEN / "backup_triage.mmd"
    if os.environ.get("RUNBOOK_NB_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_hostile_names_stay_inside_their_quotes(tools):
    text = render_mermaid(tools.chain(*tools.HOSTILE).graph)
    assert "%%{" not in text
    assert "<script" not in text
    for line in text.splitlines()[1:]:
        assert line.count('"') in (0, 2)
        bare = re.sub(r'"[^"]*"', "", line)
        assert "click" not in bare
        assert re.fullmatch(r"  (n\d+[\[({\])}]*|n\d+ ==>\|?\|? n\d+)", bare), bare


def test_a_directive_that_forms_when_one_is_taken_out_goes_too():
    graph = Graph(nodes=(GraphNode(key="a", title=Data(value="%%%%{{init: x}}")),))
    assert "%%{" not in render_mermaid(graph)


def test_quotes_and_references_are_told_apart():
    graph = Graph(nodes=(GraphNode(key="a", title=Data(value='"#quot;')),))
    assert 'n1("#quot;#35;quot;")' in render_mermaid(graph)


def test_what_was_taken_is_thick_and_what_was_not_is_dotted(large):
    text = large.flowchart().mermaid
    assert sum("==>" in line for line in text.splitlines()) == 9
    assert sum("-.->" in line for line in text.splitlines()) == 3


def test_before_a_run_edges_are_plain(small):
    text = small.structure.flowchart().mermaid
    assert "==>" not in text
    assert "-.->" not in text
    assert "-->" in text


def test_the_decider_is_a_hexagon_and_the_frame_a_subgraph(small):
    text = small.flowchart().mermaid
    assert '{{"Protection posture"}}' in text
    assert text.count("subgraph") == text.count("  end") == 1


@given(st.text(max_size=40))
def test_no_name_opens_a_second_quote_or_line(name):
    text = render_mermaid(Graph(nodes=(GraphNode(key="a", title=Data(value=name)),)))
    assert len(text.split("\n")) == 2
    assert text.count('"') == 2
    assert "%%{" not in text
