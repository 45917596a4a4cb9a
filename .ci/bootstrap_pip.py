"""Put pip into an environment that has none, on a Python that has no ``ensurepip``.

Debian's bare ``python3`` can make a virtual environment but has nothing to fill it with. A pip
wheel can install itself, so all this needs is one: the newest that admits this Python is taken
from the package index, its SHA-256 is compared with the one the index gives, and pip is run
straight from the file.

Only the standard library is used. The index is PyPI unless pip's own configuration
(``PIP_INDEX_URL``, or ``index-url`` in a ``pip.conf``) names another; ``cert`` is read there too.

Usage: ``python3 .ci/bootstrap_pip.py path/to/environment/bin/python``
"""

from __future__ import annotations

import configparser
import hashlib
import json
import operator
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit

PYPI = "https://pypi.org/simple/"
JSON_API = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON_API}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
TIMEOUT_SECONDS = 60
ATTEMPTS = 3
SYSTEM_CONFIGURATION = Path("/etc/pip.conf")

_WHEEL = re.compile(r"pip-(\d+(?:\.\d+)*)-py(?:2\.py)?3-none-any\.whl")
_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?")
_COMPARE: dict[str, Callable[..., bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class Wheel(NamedTuple):
    """One file the index offers."""

    version: tuple[int, ...]
    name: str
    url: str
    sha256: str


def release(text: str) -> tuple[int, ...]:
    """Read a final release number."""
    return tuple(int(part) for part in text.split("."))


def admits(requirement: str, python: tuple[int, ...]) -> bool:
    """Whether a ``Requires-Python`` text lets this Python in; an unreadable one does not."""
    for clause in filter(None, (part.strip() for part in requirement.split(","))):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            return False
        sign, number, wildcard = match.groups()
        bound = release(number)
        width = len(bound) if wildcard else max(len(bound), len(python))
        left = (*python, *(0,) * width)[:width]
        right = (*bound, *(0,) * width)[:width]
        if not _COMPARE[sign](left, right):
            return False
    return True


def pip_option(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Look up an option where pip would: the environment, then its configuration files."""
    if value := environ.get(f"PIP_{name.upper().replace('-', '_')}"):
        return value
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return None
    home = Path(environ.get("HOME", "~")).expanduser()
    shared = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    files = [Path(folder, "pip", "pip.conf") for folder in reversed(shared.split(os.pathsep))]
    files.append(SYSTEM_CONFIGURATION)
    if named and Path(named).exists():
        files.append(Path(named))
    else:
        files.append(home / ".pip" / "pip.conf")
        files.append(Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "pip", "pip.conf"))
    parser = configparser.RawConfigParser()
    parser.read(files, encoding="utf-8")
    for section in ("install", "global"):
        if value := parser.get(section, name, fallback=""):
            return value
    return None


def fetch(url: str, tls: ssl.SSLContext, accept: str = "*/*") -> tuple[bytes, str, str]:
    """Read a page: its bytes, its media type, and the address it came from in the end."""
    place = urlsplit(url)
    if place.scheme not in {"https", "http"}:
        sys.exit(f"bootstrap_pip: cannot read {place.scheme or 'an address without scheme'}: {url}")
    if "@" in place.netloc:
        sys.exit("bootstrap_pip: the index address carries credentials, which are not handled here")
    request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "bootstrap-pip"})
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=tls) as page:
                return page.read(), page.headers.get_content_type(), page.geturl()
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if final or attempt == ATTEMPTS:
                sys.exit(f"bootstrap_pip: {url}: {error}")
            time.sleep(attempt)
    raise AssertionError


class _Anchors(HTMLParser):
    """Collects the links of an index page that is HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(dict(attrs))


def offers(page: bytes, media_type: str, base: str, python: tuple[int, ...]) -> list[Wheel]:
    """List the final pip wheels on an index page that this Python may use."""
    entries: list[tuple[str, str, str, bool]] = []  # address, SHA-256, required Python, yanked
    if media_type == JSON_API:
        for file in json.loads(page)["files"]:
            digest = file.get("hashes", {}).get("sha256", "")
            requirement = file.get("requires-python") or ""
            entries.append((file["url"], digest, requirement, bool(file.get("yanked"))))
    else:
        anchors = _Anchors()
        anchors.feed(page.decode("utf-8", "replace"))
        for link in anchors.links:
            address, fragment = urldefrag(link.get("href") or "")
            digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
            requirement = link.get("data-requires-python") or ""
            entries.append((address, digest, requirement, "data-yanked" in link))
    found = []
    for address, digest, requirement, yanked in entries:
        url = urljoin(base, address)
        name = urlsplit(url).path.rpartition("/")[2]
        match = _WHEEL.fullmatch(name)
        if match and digest and not yanked and admits(requirement, python):
            found.append(Wheel(release(match[1]), name, url, digest))
    return found


def main(target: str) -> None:
    """Install pip into the environment whose interpreter is ``target``."""
    index = (pip_option("index-url") or PYPI).rstrip("/") + "/"
    tls = ssl.create_default_context(cafile=pip_option("cert"))
    page, media_type, base = fetch(f"{index}pip/", tls, ACCEPT)
    wheels = offers(page, media_type, base, sys.version_info[:3])
    if not wheels:
        sys.exit(f"bootstrap_pip: {index}pip/ offers no wheel with a SHA-256 for this Python")
    wheel = max(wheels)
    content, _, _ = fetch(wheel.url, tls)
    if hashlib.sha256(content).hexdigest() != wheel.sha256:
        sys.exit(f"bootstrap_pip: {wheel.name} is not the file the index describes; not used")
    with tempfile.TemporaryDirectory(prefix="bootstrap-pip-") as folder:
        file = Path(folder, wheel.name)
        file.write_bytes(content)
        install = ["install", "--quiet", "--no-index", "--no-deps", str(file)]
        subprocess.run([target, str(file / "pip"), *install], check=True)
    print(f"bootstrap_pip: {wheel.name} installed", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
