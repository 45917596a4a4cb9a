"""Fetch the accessibility checker axe-core from the npm registry, once, with npm.

It is one JavaScript file that tests put into a page. The version and the digest of its package are
fixed here, and nothing of the package is run on this machine.

Usage: ``python3 .ci/fetch_axe.py``
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.14.1"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
SCRIPT = Path(__file__).parents[1] / ".cache" / f"axe-core-{VERSION}.min.js"


def fetch() -> None:
    """Put the script in its place, or stop with a message."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"axe-core@{VERSION}", "--silent", "--pack-destination", folder]
        try:
            done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        except OSError as error:
            sys.exit(f"fetch_axe: npm cannot be run: {error}")
        if done.returncode:
            sys.exit(f"fetch_axe: {' '.join(command[:3])} failed")
        package = next(Path(folder).glob("*.tgz"))
        if hashlib.sha512(package.read_bytes()).digest() != base64.b64decode(SHA512):
            sys.exit(f"fetch_axe: {package.name} is not the package with the digest written here")
        with tarfile.open(package) as archive:
            script = archive.extractfile("package/axe.min.js")
            if script is None:
                sys.exit(f"fetch_axe: {package.name} holds no axe.min.js")
            SCRIPT.parent.mkdir(exist_ok=True)
            SCRIPT.write_bytes(script.read())


if __name__ == "__main__":
    if not SCRIPT.exists():
        print("fetch_axe: fetching axe-core", VERSION)
        fetch()
