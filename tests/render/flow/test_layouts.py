"""The port behind which the engines sit: their order, and what happens when they fail."""

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runbook_nb.errors import DefinitionError
from runbook_nb.render import layouts
from runbook_nb.render.layouts import HOW_TO_GET, base, engines, lay_out
from runbook_nb.render.layouts.base import LayoutFailed, ask
from runbook_nb.settings import settings

DOT = 'digraph { n1 [label="a"]; n1 -> n2 }'


class Engine:
    def __init__(self, name, *, here=True, fails=None):
        self.name, self.here, self.fails = name, here, fails
        self.asked = 0

    def available(self):
        return self.here

    def svg(self, dot):
        self.asked += 1
        if self.fails:
            raise LayoutFailed(self.fails)
        return f"<svg>{self.name}</svg>"


@pytest.fixture
def stand_in(monkeypatch):
    def put(**options):
        made = {
            name: Engine(name, **options.get(name, {})) for name in ("pure", "dot", "pygraphviz")
        }
        monkeypatch.setattr(layouts, "ENGINES", made)
        return made

    return put


def test_the_order_is_pure_then_dot_then_pygraphviz(stand_in):
    stand_in()
    assert lay_out(DOT).engine == "pure"
    stand_in(pure={"here": False})
    assert lay_out(DOT).engine == "dot"
    stand_in(pure={"here": False}, dot={"here": False})
    assert lay_out(DOT).engine == "pygraphviz"


@pytest.mark.parametrize("name", ["pure", "dot", "pygraphviz"])
def test_an_explicit_choice_comes_first(stand_in, name):
    stand_in()
    with settings(layout=name):
        laid = lay_out(DOT)
    assert (laid.engine, laid.note) == (name, "")


def test_a_name_that_is_no_engine_is_refused_where_it_is_set():
    with pytest.raises(DefinitionError, match="layout cannot be 'dott'"), settings(layout="dott"):
        pass


def test_every_engine_can_be_chosen():
    for name in ("auto", "none", *layouts.ENGINES):
        with settings(layout=name):
            assert settings.layout == name


def test_none_draws_nothing_and_asks_nobody(stand_in):
    made = stand_in()
    with settings(layout="none"):
        laid = lay_out(DOT)
    assert laid.svg is None
    assert "layout='none'" in laid.note
    assert not any(engine.asked for engine in made.values())


def test_a_failure_falls_through_and_is_said(stand_in):
    stand_in(pure={"fails": "took longer than 2 s"})
    laid = lay_out(DOT)
    assert laid.engine == "dot"
    assert laid.note == "pure took longer than 2 s; drawn by dot"


def test_a_choice_that_is_not_here_is_said(stand_in):
    stand_in(dot={"here": False})
    with settings(layout="dot"):
        laid = lay_out(DOT)
    assert (laid.engine, laid.note) == ("pure", "dot is not here; drawn by pure")


def test_an_engine_that_was_not_asked_for_and_is_not_here_needs_no_word(stand_in):
    stand_in(pure={"here": False})
    assert lay_out(DOT).note == ""


def test_without_any_engine_one_line_says_how_to_get_the_picture(stand_in):
    stand_in(pure={"here": False}, dot={"here": False}, pygraphviz={"here": False})
    laid = lay_out(DOT)
    assert (laid.svg, laid.note, laid.tried) == (None, HOW_TO_GET, False)


def test_when_all_fail_each_is_named(stand_in):
    failing = {"fails": "gave no SVG"}
    stand_in(pure=failing, dot=failing, pygraphviz=failing)
    laid = lay_out(DOT)
    assert laid.svg is None
    assert laid.note == "no picture: " + "; ".join(
        f"{name} gave no SVG" for name in ("pure", "dot", "pygraphviz")
    )


def test_every_engine_here_gives_an_svg(engine):
    laid = lay_out(DOT)
    assert (laid.engine, laid.note) == (engine, "")
    assert "<svg" in laid.svg


def test_an_engine_refuses_what_is_no_graph(engine):
    with pytest.raises(LayoutFailed):
        layouts.ENGINES[engine].svg("this is no graph {")


def test_a_warning_on_the_error_stream_is_no_failure():
    script = "import sys; sys.stderr.write('Warning: width'); print('<svg/>')"
    assert "<svg/>" in ask([sys.executable, "-c", script], DOT)


def test_a_program_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(base, "TIMEOUT", 0.2)
    with pytest.raises(LayoutFailed, match=r"took longer than 0\.2 s"):
        ask([sys.executable, "-c", "import time; time.sleep(30)"], DOT)


@pytest.mark.parametrize(
    ("script", "words"),
    [("raise SystemExit(3)", "ended with code 3"), ("print('nothing')", "gave no SVG")],
)
def test_a_program_that_fails_says_how(script, words):
    with pytest.raises(LayoutFailed, match=words):
        ask([sys.executable, "-c", script], DOT)


def test_a_program_that_cannot_be_started_says_so():
    with pytest.raises(LayoutFailed, match="could not be started"):
        ask(["/nowhere/at/all"], DOT)


def test_the_graph_travels_on_standard_input_alone(monkeypatch):
    seen = {}

    def run(command, **options):
        seen.update(command=command, **options)
        return subprocess.CompletedProcess(command, 0, b"<svg/>", b"")

    monkeypatch.setattr(base.subprocess, "run", run)
    for name in ("pure", "dot", "pygraphviz"):
        monkeypatch.setattr(engines, "_found", lambda program: "/bin/engine")
        layouts.ENGINES[name].svg("digraph { secret }")
        assert not any("secret" in str(part) for part in seen["command"])
        assert seen["input"] == b"digraph { secret }"
        assert seen["timeout"] == base.TIMEOUT
        assert not seen.get("shell")


def test_the_program_of_the_wheel_is_found_without_the_path(monkeypatch):
    if engines._shipped_program() is None:
        pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv("PATH", "")
    engines._shipped_program.cache_clear()
    found = engines.pure_program()
    assert Path(found).stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("known", [True, False])
def test_the_program_is_looked_for_beside_the_interpreter_and_not_where_one_works(
    monkeypatch, tmp_path, known
):
    program = tmp_path / "graphviz-pure"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines.os, "name", "posix")
    monkeypatch.setattr(engines.sys, "executable", str(tmp_path / "python") if known else "")
    engines._shipped_program.cache_clear()
    try:
        found = engines._shipped_program()
    finally:
        engines._shipped_program.cache_clear()
    assert (found == str(program.resolve())) is known


def test_dot_off_the_path_is_not_here(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert not layouts.ENGINES["dot"].available()


def test_laying_out_opens_no_socket(engine, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert lay_out(DOT).svg is not None
