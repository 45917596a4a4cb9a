"""Playbooks as Mermaid text: what stands in them is text there."""

import re

import pytest
from hypothesis import given, settings
from made_playbooks import playbooks

from runbook_nb.playbooks import Playbook, PlaybookEnforcer, PlaybookStep

BAD = [
    '"] --> x["',
    "<img src=x onerror=alert(1)>",
    "a\nclick n1 href",
    "%%{init: {}}%%",
    "`**b**`",
    "#quot;",
    "end",
]


@pytest.mark.parametrize("word", BAD)
def test_a_step_cannot_say_more_than_its_label(word):
    steps = [PlaybookStep(id=name, description=word, hints=[word]) for name in (word, "b")]
    text = Playbook(id=word, name=word, steps=steps).flowchart().mermaid
    head, *lines = text.splitlines()
    assert re.fullmatch("flowchart (LR|TB)", head)
    assert [line.strip() for line in lines if "-->" in line or "==>" in line] == ["n1 --> n2"]
    assert not any(part in text for part in ("<img", "%%{", "`", "click n1 href\n", '"]'))
    assert all(line.count('"') in (0, 2) for line in lines)


def test_the_steps_of_a_person_are_marked_before_a_run_and_in_it():
    steps = [
        PlaybookStep(id="a", description="", kind="manual"),
        PlaybookStep(id="b", description="", kind="approval", required=False),
        PlaybookStep(id="c", description="", expected_tools=["t"]),
    ]
    book = Playbook(id="p", name="P", steps=steps)
    declared = book.flowchart().mermaid
    assert 'n1("1 a<br/>manual")' in declared
    assert 'n2("2 b<br/>optional, approval")' in declared
    assert 'n3("3 c")' in declared
    plan = PlaybookEnforcer.from_playbook(book)
    assert "next, pending, manual" in plan.flowchart().mermaid
    plan.complete("a", by="ana")
    assert "completed, manual" in plan.flowchart().mermaid


@settings(max_examples=60, deadline=None)
@given(playbooks)
def test_each_line_is_one_that_is_known(book):
    known = r"  (n\d+\W+\".*\"\W+|n\d+ \S+?(\|\".*\"\|)? n\d+|classDef .*|class [n\d,]+ \w+|end)"
    for line in book.flowchart().mermaid.splitlines()[1:]:
        assert re.fullmatch(known, line) or line.strip().startswith("subgraph"), line
