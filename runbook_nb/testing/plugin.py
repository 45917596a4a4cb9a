"""The pytest plugin: fixtures, and kernels whose time, ids and layout stand still.

Testing layer; the only module of the package that imports pytest, which loads it by its entry
point. It does nothing to a test run that does not ask: fixtures wait to be named, and only a run
of notebooks (``--nbval``) or ``--runbook-nb=on`` sets anything.

=======  ===================================================================================
mode     what is held still
=======  ===================================================================================
auto     in a run of notebooks, the kernels; the tests of this process keep their settings
on       the kernels, every other process that is started, and each test of this process
off      nothing
=======  ===================================================================================

A variable ``RUNBOOK_NB_…`` that is set already is left as it is.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

if TYPE_CHECKING:
    from runbook_nb._ids import SeededIds
    from runbook_nb.artifacts import InMemoryArtifacts
    from runbook_nb.testing.fixed import FrozenClock

Mode = Literal["auto", "on", "off"]
MODES: Final[tuple[Mode, ...]] = ("auto", "on", "off")

_UNDO: Final = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--runbook-nb`` and the ini option of the same meaning."""
    words = "hold the clock, ids and layout of runbook_nb still: in notebook kernels (auto), "
    words += "in every test as well (on), or nowhere (off)"
    group = parser.getgroup("runbook_nb", "runbooks")
    group.addoption("--runbook-nb", choices=MODES, default=None, help=words)
    parser.addini("runbook_nb", words, default="auto")


def mode_of(config: pytest.Config) -> Mode:
    """Give the mode of a run: the option's, else the ini file's."""
    chosen = config.getoption("--runbook-nb") or config.getini("runbook_nb")
    for mode in MODES:
        if chosen == mode:
            return mode
    raise pytest.UsageError(f"runbook_nb = {chosen!r} is none of {', '.join(MODES)}")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the environment of kernels, where the run asks for it."""
    mode = mode_of(config)
    options = config.option
    notebooks = getattr(options, "nbval", False) or getattr(options, "nbval_lax", False)
    if mode == "off" or (mode == "auto" and not notebooks):
        return
    # Read now, the settings of this process are those it was started with.
    import runbook_nb.settings  # noqa: F401
    from runbook_nb.testing.fixed import environment, sanitize_file

    added = {name: text for name, text in environment().items() if name not in os.environ}
    os.environ.update(added)
    config.stash[_UNDO] = list(added)
    if notebooks and getattr(options, "nbval_sanitize_with", "") is None:
        options.nbval_sanitize_with = str(sanitize_file())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the environment as it was found."""
    for name in config.stash.get(_UNDO, ()):
        os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """In the mode ``on``, run each test with time and ids that start anew."""
    if mode_of(item.config) != "on":
        return (yield)
    from runbook_nb.testing.fixed import reproducible

    with reproducible():
        return (yield)


@pytest.fixture
def frozen_clock() -> Iterator[FrozenClock]:
    """Give the test a clock that moves only when told to, and let `settings` use it."""
    from runbook_nb.settings import settings
    from runbook_nb.testing.fixed import FrozenClock

    clock = FrozenClock()
    with settings(clock=clock):
        yield clock


@pytest.fixture
def seeded_ids() -> Iterator[SeededIds]:
    """Let `settings` give ids that come out the same in every run, as in a new session."""
    from runbook_nb._ids import SeededIds
    from runbook_nb.rules.versions import forget_judged
    from runbook_nb.settings import settings
    from runbook_nb.testing.fixed import SEED

    forget_judged()  # an answer says where its rules judged otherwise before
    ids = SeededIds(SEED)
    with settings(ids=ids):
        yield ids


@pytest.fixture
def store(frozen_clock: FrozenClock, seeded_ids: SeededIds) -> InMemoryArtifacts:
    """Give the test an empty store in memory whose references and times are always the same."""
    from runbook_nb.artifacts import InMemoryArtifacts

    return InMemoryArtifacts()
