"""Who looks at runs: where progress is wanted, and what a run nobody looks at does without."""

import pytest

import runbook_nb as rb
from runbook_nb.chart import onlookers
from runbook_nb.chart.onlookers import begin, wanted
from runbook_nb.settings import settings


class Stream:
    def __init__(self, tty):
        self.tty = tty

    def isatty(self):
        return self.tty


@pytest.mark.parametrize(
    ("setting", "static", "seen", "expected"),
    [
        ("auto", False, "", None),
        ("auto", False, "terminal", "terminal"),
        ("auto", False, "kernel", "cell"),
        ("auto", False, "terminal kernel", "cell"),
        ("auto", True, "terminal kernel", None),
        ("off", False, "terminal kernel", None),
        ("cell", False, "", "cell"),
        ("terminal", False, "kernel", "terminal"),
        ("terminal", True, "", None),
    ],
)
def test_where_progress_is_wanted(monkeypatch, setting, static, seen, expected):
    monkeypatch.setattr(onlookers.sys, "stderr", Stream("terminal" in seen))
    if "kernel" in seen:
        monkeypatch.setitem(onlookers.sys.modules, "ipykernel", onlookers)
    else:
        monkeypatch.delitem(onlookers.sys.modules, "ipykernel", raising=False)
    with settings(progress=setting, static=static):
        assert wanted(settings.current) == expected


def test_without_a_stream_of_errors_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(onlookers.sys, "stderr", None)
    monkeypatch.delitem(onlookers.sys.modules, "ipykernel", raising=False)
    with settings(static=False, progress="auto"):
        assert wanted(settings.current) is None


def test_the_setting_takes_four_words():
    with pytest.raises(rb.errors.DefinitionError, match="progress cannot be 'loud'"):
        settings(progress="loud")


def test_off_begins_nothing():
    with settings(progress="off"):
        assert begin(type("E", (), {"options": settings.current})()) is None
