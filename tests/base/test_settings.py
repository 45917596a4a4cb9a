"""Options: from code, from the environment, for a block, for a task; ids; errors."""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runbook_nb import errors
from runbook_nb._ids import BASE62, SeededIds, content_id, digest, random_id
from runbook_nb.errors import (
    ENDS_RUN,
    MAX_CAUSES,
    MAX_MESSAGE,
    DefinitionError,
    Paused,
    Problem,
    RunbookError,
    ToolRefused,
    UnknownSetting,
    causes_of,
    describe_error,
)
from runbook_nb.settings import Options, settings

# -- options -----------------------------------------------------------------------------------


def test_a_block_overrides_and_gives_back_also_when_it_fails():
    before = settings.max_text_rows
    with settings(max_text_rows=3):
        assert settings.max_text_rows == settings.current.max_text_rows == 3
        with settings(theme="dark"):
            assert (settings.max_text_rows, settings.theme) == (3, "dark")
    with pytest.raises(KeyError), settings(max_text_rows=3):
        raise KeyError
    assert settings.max_text_rows == before


def test_setting_an_attribute_changes_the_process():
    before, seen = settings.max_cell, []
    try:
        settings.max_cell = 77
        thread = threading.Thread(target=lambda: seen.append(settings.max_cell))
        thread.start()
        thread.join()
    finally:
        settings.max_cell = before
    assert seen == [77]


def test_a_block_reaches_its_tasks_and_no_other_thread():
    async def look():
        return settings.theme

    seen = []
    with settings(theme="light"):
        assert asyncio.run(look()) == "light"
        thread = threading.Thread(target=lambda: seen.append(settings.theme))
        thread.start()
        thread.join()
    assert seen == ["auto"]


def test_unknown_names_are_refused_with_the_near_one_and_are_no_attributes():
    for use in (
        lambda: settings(them="dark"),
        lambda: setattr(settings, "them", "dark"),
        lambda: settings.them,
    ):
        with pytest.raises(UnknownSetting, match="did you mean 'theme'") as caught:
            use()
        assert caught.value.code == "unknown_setting"
    assert not hasattr(settings, "nothing_like_it")
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theme", "pink"),
        ("max_text_rows", 0),
        ("max_cell", True),
        ("max_table_rows", "9"),
        ("clock", 5),
        ("ids", "x"),
        ("timer", None),
    ],
)
def test_values_an_option_cannot_take_are_refused(name, value):
    with pytest.raises(DefinitionError):
        settings(**{name: value})


def test_options_are_one_frozen_value_and_are_listed():
    current = settings.current
    assert isinstance(current, Options)
    with pytest.raises(AttributeError):
        current.theme = "dark"
    assert {"theme", "clock", "ids", "current"} <= set(dir(settings))
    assert "theme='auto'" in repr(settings)
    assert current.clock().tzinfo is not None
    assert current.timer() <= current.timer()


def from_environment(**variables):
    code = "from runbook_nb.settings import settings as s; print(s.static, s.max_cell, s.theme)"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_options_come_from_the_environment():
    found = from_environment(
        RUNBOOK_NB_STATIC="yes", RUNBOOK_NB_MAX_CELL="9", RUNBOOK_NB_THEME="dark"
    )
    assert found.stdout.split() == ["True", "9", "dark"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("STATIC", "perhaps"), ("MAX_CELL", "many"), ("MAX_CELL", "0"), ("THEME", "pink")],
)
def test_an_environment_that_cannot_be_read_says_which_variable(name, text):
    found = from_environment(**{f"RUNBOOK_NB_{name}": text})
    assert found.returncode != 0
    assert "DefinitionError" in found.stderr
    assert name in found.stderr.upper()


# -- ids ---------------------------------------------------------------------------------------


def test_random_ids_ask_the_system_rarely_and_are_given_out_once(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda n, real=os.urandom: asked.append(n) or real(n))
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda n: random_id(22), range(2_000)))
    assert len(set(drawn)) == len(drawn)
    assert len(asked) < len(drawn) / 30
    assert len(random_id(5_000)) == 5_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_draws_ids_of_its_own():
    random_id(22)  # leaves some that are drawn and not given out
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, random_id(22).encode())
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as heard:
        os.close(writer)
        assert heard.read().decode() != random_id(22)


def test_ids_are_random_or_seeded_or_made_of_content():
    assert random_id(22) != random_id(22)
    assert len(random_id(0)) == 0
    assert set(random_id(200)) <= set(BASE62)
    one, two, other = SeededIds("demo"), SeededIds("demo"), SeededIds("x")
    drawn = [one(n) for n in (3, 50, 22)]
    assert drawn == [two(n) for n in (3, 50, 22)]
    assert [len(text) for text in drawn] == [3, 50, 22]
    assert other(22) != SeededIds("demo")(22)
    assert set("".join(drawn)) <= set(BASE62)
    assert SeededIds(5)(8) == SeededIds("5")(8)
    assert content_id("a") == content_id("a") != content_id("b")
    assert len(content_id("a", 12)) == 12
    assert digest("") == (
        "sha-256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert content_id("\ud800")


# -- errors ------------------------------------------------------------------------------------


def test_every_error_has_a_code_of_its_own_and_one_root():
    found = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, RunbookError)
    ]
    codes = [each.code for each in found]
    assert len(set(codes)) == len(codes)
    assert all(issubclass(each, Exception) for each in found)


def test_a_message_says_what_and_what_to_write_instead():
    error = RunbookError("no rules", where="r", fix="give one", code="empty")
    assert (str(error), error.code, error.where, error.run) == (
        "no rules; give one",
        "empty",
        "r",
        None,
    )
    one = RunbookError("bad", problems=[Problem(message="m", where="w", fix="f")])
    assert str(one) == "bad: w: m; f"
    assert str(RunbookError(problems=[Problem(message="m")])) == "m"
    two = RunbookError("bad", problems=[Problem(message="a"), Problem(message="b", where="w")])
    assert str(two) == "bad: 2 problems\n  1. a\n  2. w: b"


@pytest.mark.parametrize(
    "error",
    [
        RunbookError("m", where="w", fix="f", problems=[Problem(message="p")]),
        ToolRefused("m", facts={"a": 1}),
        Paused("m", checkpoint={"x": [1]}),
    ],
)
def test_errors_travel_between_processes_whole_but_for_their_run(error):
    error.run = object()
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - what a worker sends
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.run is None
    for name in ("where", "fix", "problems", "code"):
        assert getattr(back, name) == getattr(error, name)
    if isinstance(error, ToolRefused):
        assert back.facts == {"a": 1}
    if isinstance(error, Paused):
        assert back.checkpoint == {"x": [1]}


def chain(*links):
    for outer, inner in itertools.pairwise(links):
        outer.__cause__ = inner
    return links[0]


def test_causes_are_followed_to_a_bound_and_never_twice():
    errors = [ValueError(str(n)) for n in range(6)]
    chain(*errors)
    assert [str(e) for e in causes_of(errors[0], 3)] == ["0", "1", "2", "3"]
    errors[5].__cause__ = errors[0]
    assert len(list(causes_of(errors[0], 99))) == 6


def test_members_of_a_group_and_contexts_count_unless_they_are_suppressed():
    group = ExceptionGroup("g", [KeyError("a"), KeyError("b")])
    assert [type(e).__name__ for e in causes_of(group, 1)] == [
        "ExceptionGroup",
        "KeyError",
        "KeyError",
    ]
    error = ValueError("outer")
    error.__context__ = KeyError("inner")
    assert len(list(causes_of(error, 5))) == 2
    error.__suppress_context__ = True
    assert len(list(causes_of(error, 5))) == 1


def test_a_described_error_has_its_name_message_code_and_few_causes():
    described = describe_error(chain(*[ValueError(str(n)) for n in range(9)]))
    assert len(described["causes"]) == MAX_CAUSES
    assert describe_error(RunbookError("m", code="c")) == {
        "type": "RunbookError",
        "message": "m",
        "code": "c",
    }
    assert "code" not in describe_error(SystemExit(True))
    long = describe_error(ValueError("x" * 999))["message"]
    assert len(long) == MAX_MESSAGE
    assert long.endswith("…")


def test_an_error_that_cannot_say_itself_is_still_named():
    class Broken(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe_error(Broken()) == {
        "type": "Broken",
        "message": "(its message cannot be shown: RuntimeError)",
    }


def test_an_option_is_read_in_few_calls_and_an_unknown_one_is_none(calls_of):
    """Views read some at every cell, so an option is found where it is looked for first."""
    with settings(max_cell=7):
        assert settings.max_cell == 7
        assert calls_of(lambda: settings.max_cell) <= 5
    assert calls_of(lambda: settings.max_cell) <= 5
    assert not hasattr(settings, "_other")


def test_what_ends_a_run_is_listed_once():
    assert errors.RunSignal in ENDS_RUN
    assert len(ENDS_RUN) == len(set(ENDS_RUN)) == 5
