"""A tab of the browser under watch, with the probes that tests ask."""

from __future__ import annotations

import base64
from pathlib import Path

PROBES = Path(__file__).with_name("probes.js").read_text(encoding="utf-8").strip()
#: Pictures of everything the tests open, for people to look at.
SHOTS = Path(__file__).parents[2] / ".shots"

#: Hears of broken content policies before the page's own content is there.
LISTEN = """
document.addEventListener("securitypolicyviolation", (event) => console.error(
  `policy ${event.effectiveDirective} broken by ${event.blockedURI} ${event.sample}`));
"""


class Watched:
    """A tab in a context of its own.

    Parameters
    ----------
    origin : str
        Where the page may ask for things. Nothing is asked for elsewhere.
    pardoned : tuple of str
        Beginnings of error messages that the host prints and we have no part in.
    """

    def __init__(self, browser, *, origin="", pardoned=(), **options):
        self.context = browser.new_context(**options)
        self.context.add_init_script(LISTEN)
        self.page = self.context.new_page()
        self.errors = []
        self.strangers = []
        self._origin = origin
        self._pardoned = pardoned
        self.page.on("console", self._printed)
        self.page.on("pageerror", lambda error: self._heard("uncaught", str(error)))
        self.context.route("**/*", self._asked)

    def _printed(self, message):
        if message.type == "error":
            self._heard("console", message.text)

    def _heard(self, how, text):
        if not text.startswith(self._pardoned):
            self.errors.append(f"{how}: {text}")

    def _asked(self, route, request):
        url = request.url
        if url.startswith("data:") or (self._origin and url.startswith(self._origin)):
            route.continue_()
        else:
            self.strangers.append(url)
            route.abort()

    def complaints(self):
        """Give what the tab did that it must not do, since this was asked last."""
        made = [*self.errors, *(f"asked for {url}" for url in self.strangers)]
        self.errors.clear()
        self.strangers.clear()
        return made

    def close(self):
        """Close the tab, whatever it is still asking for."""
        self.context.unroute_all(behavior="ignoreErrors")
        self.context.close()

    def show(self, path):
        """Open a file of this machine, which may ask for nothing else."""
        self._origin = Path(path).resolve().as_uri()
        self.page.goto(self._origin)

    def ask(self, probe, within=None):
        """Put a question of ``probes.js`` to the page, about an element or the whole of it."""
        within = self.page.locator("body") if within is None else within
        return within.evaluate(f"(root) => {PROBES}.{probe}(root)")

    def flaws(self, within=None):
        """Give what is hard to read or to reach: nothing, where all is well."""
        flaws = self.ask("flaws", within)
        if (wider := self.ask("pageScrolls")) > 0:
            flaws["the page scrolls sideways"] = wider
        return flaws

    def shares(self, target):
        """Give the shares of nearly white and nearly black pixels in a picture of a part."""
        picture = base64.b64encode(target.screenshot()).decode("ascii")
        return self.page.evaluate(f"(picture) => {PROBES}.shares(picture)", picture)

    def shot(self, name, **options):
        """Take a picture for people to look at."""
        SHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", **options)

    def shot_of(self, target, name):
        """Take a picture of a part for people to look at."""
        SHOTS.mkdir(exist_ok=True)
        target.screenshot(path=SHOTS / f"{name}.png")


def of_theme(shares, theme):
    """Whether a picture of white or black ground is the one for a theme."""
    ground, other = ("white", "black") if theme == "light" else ("black", "white")
    return shares[ground] > 0.4 and shares[other] < 0.1
