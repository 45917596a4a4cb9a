"""Entries with bounds on arguments: what is read, what fits, and what is never let through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook_nb.errors import DefinitionError
from runbook_nb.playbooks.patterns import parse_pattern, permits, subject_of


@pytest.mark.parametrize(
    ("entry", "tool", "bound", "text"),
    [
        ("Bash", "Bash", "any", ""),
        (" Bash ", "Bash", "any", ""),
        ("Bash(*)", "Bash", "any", ""),
        ("Bash(git:*)", "Bash", "prefix", "git"),
        ("Bash(npm run test:*)", "Bash", "prefix", "npm run test"),
        ("Bash(make all)", "Bash", "exact", "make all"),
        ("Read(src/**)", "Read", "glob", "src/**"),
        ("Fetch(https://a/*)", "Fetch", "glob", "https://a/*"),
        ("mcp__siem__*", "mcp__siem__*", "any", ""),
    ],
)
def test_entries_are_read(entry, tool, bound, text):
    found = parse_pattern(entry)
    assert (found.tool, found.bound, found.text) == (tool, bound, text)


@pytest.mark.parametrize(
    "entry",
    ["", "Bash(", "Bash()", "Bash(a", "(a)", "Bash(:*)", "Bash(g*t:*)", "Fetch(domain:a.b)", "a b"],
)
def test_what_is_not_understood_is_refused_and_allows_nothing(entry):
    with pytest.raises(DefinitionError) as caught:
        parse_pattern(entry)
    assert caught.value.code == "bad_tool_pattern"
    assert not permits([entry], "Bash", {"command": "a"})


@pytest.mark.parametrize(
    ("entry", "command", "fits"),
    [
        ("Bash(git:*)", "git", True),
        ("Bash(git:*)", "git log --oneline", True),
        ("Bash(git:*)", "git\tlog", True),
        ("Bash(git:*)", 'git commit -m "a; b & c"', True),
        ("Bash(git:*)", "gitk", False),
        ("Bash(git:*)", "git-evil log", False),
        ("Bash(git:*)", "sudo git log", False),
        ("Bash(git:*)", "git log; rm -rf /", False),
        ("Bash(git:*)", "git log && rm x", False),
        ("Bash(git:*)", "git log | sh", False),
        ("Bash(git:*)", "git log > /etc/passwd", False),
        ("Bash(git:*)", "git log\nrm x", False),
        ("Bash(git:*)", 'git log "$(rm x)"', False),
        ("Bash(git:*)", "git log `rm x`", False),
        ("Bash(git:*)", 'git log "unclosed', False),
        ("Bash(git:*)", "git log a#b; rm x", False),
        ("Bash(git:*)", "git log # quiet; rm x", False),
        ("Bash(git:*)", "git log $'\\''; rm x #'", False),
        ("Bash(git:*)", 'git log $"a"', False),
        ("Bash(git:*)", "git log \0; rm x", False),
        ("Bash(git:*)", "git " + "a" * 10_000, False),
        ("Bash(git *)", "git log", True),
        ("Bash(git *)", "git log; rm x", False),
        ("Bash(git log **)", "git log a/b && rm x", False),
        ("Bash(make all)", "make all", True),
        ("Bash(make all)", "make all; rm x", False),
        ("Other(git:*)", "git log", False),
    ],
)
def test_a_prefix_bounds_a_command_to_one_command(entry, command, fits):
    assert permits([entry], "Bash", {"command": command}) is fits
    assert permits([entry], "Bash", command) is fits


@pytest.mark.parametrize(
    ("entry", "path", "fits"),
    [
        ("Read(src/**)", "src/a/b.py", True),
        ("Read(src/**)", "src/../etc/passwd", False),
        ("Read(src/**)", "srcs/a", False),
        ("Read(**/*.py)", "c.py", True),
        ("Read(**/*.py)", "a/b/c.py", True),
        ("Read(*.md)", "docs/a.md", False),
        ("Read(a?.md)", "ab.md", True),
        ("Read(**)", "anything/at all", True),
    ],
)
def test_a_glob_bounds_a_path(entry, path, fits):
    assert permits([entry], "Read", {"file_path": path, "limit": 5}) is fits


def test_a_glob_of_many_stars_takes_no_time():
    assert not permits(["Read(" + "**/" * 40 + "x)"], "Read", {"path": "a/" * 2000})


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ("git log", "git log"),
        ({"cmd": "git log"}, "git log"),
        ({"command": "git log", "description": "rm"}, "git log"),
        ({"anything": "git log", "n": 3}, "git log"),
        ({"command": "git log", "cmd": "rm x"}, None),
        ({"command": ["git", "log"]}, None),
        ({"a": "git log", "b": "rm x"}, None),
        ({}, None),
        (None, None),
        (7, None),
    ],
)
def test_the_subject_is_the_one_text_a_call_acts_on_or_there_is_none(arguments, subject):
    assert subject_of(arguments)[0] == subject
    assert permits(["Bash(git:*)"], "Bash", arguments) is (subject is not None)


def test_names_take_a_star_and_left_out_arguments_count_as_fitting():
    assert permits(["mcp__siem__*"], "mcp__siem__query", {})
    assert not permits(["mcp__siem__*"], "mcp__edr__query", {})
    assert permits(["Bash(git:*)"], "Bash")
    assert not permits([], "Bash")


@given(st.text(), st.text())
def test_no_entry_and_no_argument_is_an_error(entry, command):
    assert permits([entry, f"Bash({entry}:*)", f"Bash({entry})"], "Bash", command) in (True, False)


@pytest.mark.parametrize("blank", ["\u00a0", "\x0b", "\u2028", "\u3000"])
def test_only_what_a_shell_takes_for_white_space_ends_a_word(blank):
    command = {"command": f"git{blank}log"}
    assert not permits(["Bash(git:*)"], "Bash", command)
    assert permits(["Bash(git:*)"], "Bash", {"command": "git\tlog"})
