"""Documents of anybody: each is read, or refused with its reason; never anything else."""

import copy
import json

import pytest
from cacao_documents import action, an_id, every_kind, line
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook_nb.errors import PlaybookDefinitionError, PlaybookLoadError
from runbook_nb.playbooks import Playbook, PlaybookStep
from runbook_nb.playbooks.cacao_export import to_cacao
from runbook_nb.playbooks.cacao_import import from_cacao

WHEN = "2026-11-29T00:00:00.000Z"
OURS = to_cacao(
    Playbook(
        id="ir",
        name="IR",
        tags=["x"],
        metadata={"a": [1]},
        steps=[
            PlaybookStep(
                id="a", description="b", expected_tools=["t"], timeout_seconds=1, hints=["h"]
            )
        ],
    ),
    created=WHEN,
)


def places(value, path=()):
    yield path
    members = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        yield from places(member, (*path, key))


BASES = [every_kind(), OURS, line(action("Look", ""))]
PLACES = [(n, path) for n, base in enumerate(BASES) for path in places(base) if path]
odd = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, "", "x", "UmluZw==", an_id("action"), an_id("end")]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.none() | odd.map(lambda v: [v])), max_size=3))
def test_whatever_is_changed_it_is_read_or_refused(changes):
    document = copy.deepcopy(BASES[changes[0][0][0]] if changes else BASES[0])
    base = changes[0][0][0] if changes else 0
    for (n, path), value in changes:
        held = document
        if n != base:
            continue
        try:
            for key in path[:-1]:
                held = held[key]
            if value is None:
                del held[path[-1]]
            else:
                held[path[-1]] = copy.deepcopy(value[0])
        except (KeyError, IndexError, TypeError):  # an earlier change took its place away
            continue
    refused = None
    try:
        book, losses = from_cacao(json.dumps(document), lossy=True)
    except PlaybookLoadError as error:
        refused = error
    if refused is not None:
        assert refused.code
        assert str(refused)
        assert all(problem.where and problem.code for problem in refused.problems)
        return
    assert str(losses)
    assert losses.steps == len(book.steps)
    same, _ = from_cacao(to_cacao(book, created=WHEN))
    assert same == book


@pytest.mark.parametrize("word", ["<img src=x onerror=alert(1)>", "{{7*7}}", "\u202e", "=1+1", "`"])
def test_words_of_a_document_stay_words(word):
    given = line(action(word, "", {"type": "bash", "command": word}), name=word, description=word)
    book, _ = from_cacao(given)
    assert book.name == word
    assert book.steps[0].description == word
    assert book.steps[0].hints == [f"bash: {word}"]


def test_what_would_not_be_read_back_is_not_written():
    deep: list = []
    for _ in range(60):
        deep = [deep]
    book = Playbook(id="x", name="y", metadata={"deep": deep})
    with pytest.raises(PlaybookDefinitionError, match="nested deeper") as caught:
        to_cacao(book)
    assert caught.value.code == "too_deep"


def test_a_large_document_is_gone_through_once(calls_of):
    def read(count):
        given = json.dumps(line(*(action(f"step {n}", "") for n in range(count))))
        return calls_of(lambda: from_cacao(given))

    few, many = read(50), read(200)
    assert many < 5 * few
