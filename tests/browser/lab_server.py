"""A JupyterLab server on this machine alone, that knows nothing of its user's settings."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path

import nbformat

from runbook_nb.testing import environment

TOKEN = "only-here"
PATIENCE = 60
#: The form of an output that a widget is.
WIDGET = "application/vnd.jupyter.widget-view+json"
#: Outputs far below are drawn at once, nothing is saved behind a test's back, and no news pops up.
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
#: What JupyterLab itself stumbles over where there is no kernel, or none any more.
PARDONED = (
    "Could not restore the debugger state",
    "Cannot read properties of null (reading 'kernel')",
    "Error: widget model not found",
)
READY = "() => window.jupyterapp?.shell.currentWidget"
CURRENT = "window.jupyterapp.shell.currentWidget"
IDLE = f"() => {CURRENT}?.sessionContext?.session?.kernel?.status === 'idle'"
OPEN = """async ([path, kernel]) => {
  const kernelPreference = kernel ? {} : { canStart: false, shouldStart: false };
  await window.jupyterapp.commands.execute(
    "docmanager:open", { path, factory: "Notebook", kernelPreference });
}"""
RUN_ALL = "async () => { await window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
#: Closed without a question, changed or not.
CLOSE = f"""async () => {{
  const widget = {CURRENT};
  if (!widget?.sessionContext) return;
  await widget.sessionContext.shutdown();
  widget.context.model.dirty = false;
  await widget.close();
}}"""
THEME = """async (theme) => {
  await window.jupyterapp.commands.execute("apputils:change-theme", { theme });
}"""
#: Whether each cell that shows something rich is trusted; one without outputs always is.
TRUSTED = f"""() => [...{CURRENT}.content.model.cells]
  .filter((cell) => cell.type === "code"
    && cell.toJSON().outputs.some((output) => output.data?.["text/html"]))
  .map((cell) => cell.trusted)"""
TO_TOP = """() => {
  document.querySelector(".jp-NotebookPanel .jp-WindowedPanel-outer").scrollTop = 0;
}"""
#: The height at which nothing of a notebook has to be scrolled to.
HEIGHT = """() => Math.ceil(
  document.querySelector(".jp-NotebookPanel .jp-WindowedPanel-outer").scrollHeight) + 160"""


class Lab:
    """A running server."""

    def __init__(self, url, root, data):
        self.url = url
        self.root = root
        self._data = data

    def put(self, name, text, *, trust):
        """Write a notebook, signed as this user's own or as somebody else's."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        document = nbformat.reads(text, as_version=4)
        # Signatures are of content, so the stranger's is to differ.
        document.metadata["whose"] = "mine" if trust else "a stranger's"
        nbformat.write(document, path)
        if trust:
            from nbformat.sign import NotebookNotary

            notary = NotebookNotary(data_dir=str(self._data))
            with closing(notary.store):
                notary.sign(document)


class Desk:
    """The application in one tab, with one notebook at a time on it."""

    def __init__(self, lab, watched):
        self.watched = watched
        self.page = watched.page
        self.page.goto(f"{lab.url}/lab?token={TOKEN}&reset")
        self.page.wait_for_function(READY, timeout=PATIENCE * 1000)
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")
        self.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")

    def open(self, path, *, run=False, kernel=True):
        """Open a notebook, with a kernel or without; run its cells. Say what is trusted."""
        self.page.evaluate(OPEN, [path, kernel])
        self.page.wait_for_selector(".jp-NotebookPanel .jp-OutputArea-output", state="attached")
        if kernel:
            self.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
        if run:
            self.page.evaluate(RUN_ALL)
            self.page.wait_for_function(IDLE, timeout=PATIENCE * 1000)
        return self.page.evaluate(TRUSTED)

    def spread(self, width, tallest):
        """Make the tab as high as the notebook, so that nothing has to be scrolled to."""
        self.page.set_viewport_size({"width": width, "height": 800})
        height = min(self.page.evaluate(HEIGHT), tallest)
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(TO_TOP)

    def clear(self):
        """Close the notebook and end its kernel."""
        self.page.evaluate(CLOSE)
        self.page.wait_for_selector(".jp-NotebookPanel", state="detached")


def dress(page, theme):
    """Change the theme, and wait until it is there."""
    page.evaluate(THEME, f"JupyterLab {theme.title()}")
    light = str(theme == "light").lower()
    page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
    page.locator("#jupyterlab-splash").wait_for(state="detached")
    page.wait_for_function(
        "() => getComputedStyle(document.body).colorScheme.includes("
        "document.body.dataset.jpThemeLight === 'true' ? 'light' : 'dark')"
    )


@contextmanager
def running(folder: Path):
    """Run a server for a block; its files, settings and kernels live in a folder."""
    root = folder / "notebooks"
    root.mkdir()
    places = {
        name: folder / name.lower()
        for name in (
            *("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"),
            *("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"),
        )
    }
    for name, settings in SETTINGS.items():
        extension, plugin = name.split("/")
        file = places["JUPYTERLAB_SETTINGS_DIR"].joinpath(
            "@jupyterlab", extension, f"{plugin}.jupyterlab-settings"
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log = folder / "lab.log"
    command = [
        *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"),
        *(f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True"),
    ]
    environ = {
        **os.environ,
        **environment(),
        **{name: str(place) for name, place in places.items()},
    }
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + PATIENCE
            while not _answers(f"{url}/api?token={TOKEN}"):
                if server.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
                time.sleep(0.2)
            yield Lab(url, root, places["JUPYTER_DATA_DIR"])
        finally:
            server.terminate()
            server.wait(20)


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - an address of ours
            return True
    except OSError:
        return False
