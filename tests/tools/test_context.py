from __future__ import annotations

import dataclasses

import pytest

from runbook_nb._ids import SeededIds
from runbook_nb._stop import Stop
from runbook_nb.artifacts import ArtifactScope, BoundArtifacts, InMemoryArtifacts, NoArtifacts
from runbook_nb.errors import ArtifactError, DefinitionError
from runbook_nb.settings import settings
from runbook_nb.tools import Session, ToolContext, new_call_id


class TestCallIds:
    def test_are_drawn_from_the_settings(self):
        with settings(ids=SeededIds("x")):
            first = new_call_id()
        with settings(ids=SeededIds("x")):
            assert new_call_id() == first
        assert first.startswith("call_")
        assert len(first) == 15

    @pytest.mark.parametrize("given", ["", "  ", 3, None])
    def test_are_text_that_is_not_blank(self, given):
        with pytest.raises(DefinitionError, match="call id"):
            ToolContext(call_id=given)


class TestSession:
    def test_gives_the_scope_of_its_artifacts(self):
        assert Session("c", "t", principal="p").scope == ArtifactScope("c", "t", "p")

    @pytest.mark.parametrize(
        ("parts", "where"),
        [
            (("",), "session.conversation"),
            ((None,), "session.conversation"),
            (("c", " "), "session.tenant"),
            (("c", None, 3), "session.principal"),
        ],
    )
    def test_refuses_blank_parts_by_name(self, parts, where):
        with pytest.raises(DefinitionError) as caught:
            Session(*parts)
        assert caught.value.where == where


class TestContext:
    def test_has_nothing_unless_given(self):
        ctx = ToolContext()
        assert (ctx.tools, ctx.signal, ctx.credential) == (None, None, None)
        assert ctx.wanted == {}
        assert ctx.session == Session("local")
        ctx.progress("nobody hears it")
        ctx.run_sink("nor this")

    def test_without_a_store_every_verb_refuses_and_says_how_to_get_one(self):
        ctx = ToolContext()
        assert not ctx.has_artifacts
        assert isinstance(ctx.artifacts, NoArtifacts)
        with pytest.raises(ArtifactError, match="no artifact store"):
            ctx.artifacts.get_sync("art_" + "a" * 22)

    def test_with_a_store_it_has_one(self):
        bound = BoundArtifacts(InMemoryArtifacts(), Session("c").scope)
        assert ToolContext(artifacts=bound).has_artifacts

    def test_cannot_be_changed_but_replaced(self):
        ctx = ToolContext(call_id="a", signal=Stop())
        with pytest.raises(dataclasses.FrozenInstanceError):
            ctx.call_id = "b"
        assert dataclasses.replace(ctx, call_id="b").signal is ctx.signal

    def test_never_shows_the_credential(self):
        assert "s3cr3t" not in repr(ToolContext(credential="s3cr3t"))
