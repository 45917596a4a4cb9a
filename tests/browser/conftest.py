"""One browser and one JupyterLab server for all browser tests, and a watch over every page.

`make browser` brings what is needed. Where something is missing, the tests are skipped and say
why; with ``CI`` set they fail instead, so that a green run has skipped nothing.
"""

import functools
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

CHROMIUM = os.environ.get("RUNBOOK_NB_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
WORDS = "(root) => root.innerText.replace(/\\s+/g, ' ').trim()"
#: What axe-core finds: the rule, how grave it is, in words, whether it is ours, and where.
AXE = """async () => {
  const isOurs = (one) => !document.querySelector(".jp-LabShell")
    || Boolean(document.querySelector(one.target.at(-1))?.closest(".jp-OutputArea-output"));
  return (await axe.run()).violations.flatMap(({ id, impact, help, nodes }) =>
    [true, false].map((ours) => [id, impact, help, ours,
      nodes.filter((one) => isOurs(one) === ours).map((one) => one.target.join(" "))])
      .filter(([, , , , places]) => places.length));
}"""
FINDINGS = pytest.StashKey[list]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put the browser tests last: while playwright runs, no other event loop can in its thread."""
    items.sort(key=lambda item: item.path.is_relative_to(HERE))


def pytest_configure(config):
    config.stash[FINDINGS] = []


def pytest_terminal_summary(terminalreporter, config):
    """Say what the accessibility check found, fatal or not."""
    found = config.stash[FINDINGS]
    if found:
        terminalreporter.section("accessibility findings")
        for line in sorted(set(found)):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def need():
    """Skip where something is missing; fail where nothing may be skipped."""

    def need(there, what):
        if there:
            return
        reason = f"{what} is missing; `make browser` brings what these tests need"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return need


@pytest.fixture(scope="session")
def chromium(need):
    need(importlib.util.find_spec("playwright"), "the package playwright")
    need(Path(CHROMIUM).exists(), f"Chromium ({CHROMIUM})")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(need, tmp_path_factory):
    for package in ("jupyterlab", "ipykernel"):
        need(importlib.util.find_spec(package), f"the package {package}")
    from lab_server import running

    with running(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def shared_desk(lab, chromium):
    from lab_server import PARDONED, Desk
    from watched import Watched

    watched = Watched(chromium, origin=lab.url, pardoned=PARDONED)
    yield Desk(lab, watched)
    watched.close()


@pytest.fixture
def desk(shared_desk):
    """JupyterLab with nothing open; what it prints or asks for wrongly fails the test."""
    yield shared_desk
    shared_desk.clear()
    complaints = shared_desk.watched.complaints()
    assert not complaints, "\n".join(complaints)


@pytest.fixture(scope="session")
def meant(chromium):
    """Tell what a reader meets of each HTML output, and how many pictures each has.

    The outputs are those a notebook was saved with, given its text, or any others.
    """

    @functools.cache
    def meant(notebook_or_outputs):
        outputs = notebook_or_outputs
        if isinstance(outputs, str):
            outputs = [
                "".join(output["data"]["text/html"])
                for cell in json.loads(notebook_or_outputs)["cells"]
                for output in cell.get("outputs", ())
                if "text/html" in output.get("data", {})
            ]
        context = chromium.new_context(viewport={"width": 900, "height": 800})
        page = context.new_page()
        found = []
        for html in outputs:
            page.set_content(f"<!doctype html><div id='it'>{html}</div>")
            words = page.locator("#it").evaluate(WORDS)
            found.append((words, page.locator("img").count()))
        context.close()
        return found

    return meant


@pytest.fixture(scope="session")
def accessibility(need, request):
    """Have axe-core look at a page; give the findings in what is ours by how grave they are.

    In JupyterLab that is the outputs of cells. Those of a page with a name are said at the end of
    the run, with the selector of each place, and so are those of the host's own.
    """
    spec = importlib.util.spec_from_file_location("fetch_axe", ROOT / ".ci/fetch_axe.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    need(module.SCRIPT.exists(), f"axe-core ({module.SCRIPT.relative_to(ROOT)})")
    script = module.SCRIPT.read_text(encoding="utf-8")

    def accessibility(page, name=""):
        page.evaluate(script)
        found = {}
        for rule, grave, words, ours, places in page.evaluate(AXE):
            whose = name if ours else f"{name}, the host's own"
            line = f"{grave}: {rule} ({words}) in {whose}, at {'; '.join(places)}"
            if ours:
                found.setdefault(grave, []).append(line)
            if name:
                request.config.stash[FINDINGS].append(line)
        return found

    return accessibility


@pytest.fixture
def tab(chromium):
    """Open tabs that are watched; what a tab must not do fails the test in the end.

    A page may print no error, break no content policy and ask for nothing but itself, data URIs
    and what lies under an ``origin``.
    """
    from watched import Watched

    opened = []

    def tab(*, origin="", **options):
        made = Watched(chromium, origin=origin, **options)
        opened.append(made)
        return made

    yield tab
    complaints = [line for made in opened for line in made.complaints()]
    for made in opened:
        made.close()
    assert not complaints, "\n".join(complaints)
