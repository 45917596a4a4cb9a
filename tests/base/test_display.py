"""Showing never raises: what cannot be shown says so in a line."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from runbook_nb._display import DOORS, Renderable, through
from runbook_nb._view import Card


class Shown(Renderable):
    def view(self):
        return Card(kind="Thing", name="x", headline="3 parts")


class Broken(Renderable):
    def view(self):
        raise RuntimeError("no view")


class Bare(Renderable):
    pass


class Printer:
    def __init__(self):
        self.said = ""

    def text(self, text):
        self.said += text


def test_every_door_names_a_function_that_is_there():
    for name, door in DOORS.items():
        module, _, function = door.partition(":")
        if find_spec(module.rpartition(".")[0]) is None or find_spec(module) is None:
            continue  # a layer above that this installation does not have
        assert callable(getattr(import_module(module), function)), name
    with pytest.raises(KeyError):
        through("nowhere")


def test_an_object_shows_itself_by_its_view():
    shown = Shown()
    assert repr(shown) == "<Thing x · 3 parts>"
    assert str(shown).startswith("Thing x")
    assert "Thing" in shown.to_markdown()
    printer = Printer()
    shown._repr_pretty_(printer, cycle=False)
    assert printer.said == str(shown)
    printer = Printer()
    shown._repr_pretty_(printer, cycle=True)
    assert printer.said == repr(shown)
    data, _ = shown._repr_mimebundle_()
    assert data["text/plain"] == str(shown)


def test_what_cannot_be_shown_says_so_and_raises_nothing():
    broken = Broken()
    assert repr(broken) == "<Broken, cannot be shown: RuntimeError>"
    assert str(broken) == "Broken, cannot be shown: RuntimeError"
    data, _ = broken._repr_mimebundle_()
    assert "cannot be shown" in data["text/plain"]


def test_an_object_without_a_view_of_its_own_is_named():
    assert "Bare" in repr(Bare())
