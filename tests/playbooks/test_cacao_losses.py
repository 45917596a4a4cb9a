"""What reading a CACAO document could not say, and how it shows itself."""

import json

import pytest
from cacao_documents import action, every_kind, line

from runbook_nb.errors import FrozenError
from runbook_nb.playbooks.cacao_import import from_cacao
from runbook_nb.playbooks.cacao_losses import CacaoLoss, CacaoLosses, Lost

_, LOSSES = from_cacao(every_kind(), lossy=True)
NOTHING = CacaoLosses(playbook="IR", steps=2, source={}, items=())


def test_the_weightiest_comes_first_and_equal_ones_are_one():
    effects = [item.effect for item in LOSSES]
    assert effects == sorted(effects, key=["changed", "left_out", "kept"].index)
    assert len({(item.effect, item.what, item.note) for item in LOSSES}) == len(LOSSES)
    (agent,) = [item for item in LOSSES if item.what == "agent"]
    assert len(agent.places) == 9


def test_it_is_false_where_nothing_was_lost():
    assert not NOTHING
    assert LOSSES
    assert len(LOSSES) == len([*LOSSES]) == len(LOSSES.items)
    assert sum(len(LOSSES.of(effect)) for effect in ("changed", "left_out", "kept")) == len(LOSSES)


def test_it_is_plain_data():
    told = LOSSES.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert len(told["items"]) == len(LOSSES)
    assert told["source"]["created"] == "2026-11-29T00:00:00.000Z"


def test_every_loss_is_shown_with_its_word():
    text = str(LOSSES)
    head, *rows = text.splitlines()
    assert head == "CacaoLosses Phishing mail · 10 steps · 8 changed, 2 left out, 15 kept as data"
    assert len(rows) == len(LOSSES)
    for item, row in zip(LOSSES, rows, strict=True):
        assert item.effect.split("_", maxsplit=1)[0] in row
        assert item.what in row


def test_nothing_lost_is_said():
    assert str(NOTHING) == "CacaoLosses IR · 2 steps · nothing was lost"
    assert "nothing was lost" in NOTHING.to_markdown()


def test_many_places_are_counted_not_listed():
    lost = Lost()
    for n in range(9):
        lost.add("kept", "delay", f"step {n}")
    losses = CacaoLosses(playbook="IR", steps=9, source={}, items=lost.items)
    assert "and 4 more" in losses.to_markdown()
    assert "step 8" not in losses.to_markdown()


def test_what_a_document_says_is_text_in_every_view():
    bad = "<img src=x onerror=alert(1)>|`"
    given = line(action(bad, "", delay=5), **{bad: 1})
    _, losses = from_cacao(given)
    html = losses._repr_mimebundle_()[0]["text/html"]
    assert "<img" not in html
    assert "&lt;img" in html
    assert "<img" not in losses.to_markdown().replace("\\<", "")


def test_what_turned_out_not_to_be_lost_is_taken_back():
    lost = Lost()
    lost.add("changed", "parallel", "x")
    lost.forget("changed", "parallel")
    lost.forget("changed", "parallel")
    assert lost.items == ()


def test_it_cannot_be_changed():
    with pytest.raises((FrozenError, AttributeError)):
        LOSSES.items = ()
    with pytest.raises((FrozenError, AttributeError)):
        LOSSES.items[0].what = "x"
    assert isinstance(LOSSES.items[0], CacaoLoss)
