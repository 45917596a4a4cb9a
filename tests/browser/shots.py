"""Draw every state as a notebook would and take its picture, to be looked at by a person.

Usage: ``python tests/browser/shots.py [STATE …]`` writes ``build/shots/STATE_THEME_TRUST.png``.
It needs playwright and a Chromium (``RUNBOOK_NB_CHROMIUM``, by default ``/usr/bin/chromium``).
The page imitates a JupyterLab output cell: its colours, its rules for rendered HTML, its width;
"untrusted" goes through the same allow-list as the tests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "render" / "html")]

import hand_made  # noqa: E402
import states  # noqa: E402
from untrusted import sanitized  # noqa: E402

from runbook_nb.render.html import render_html  # noqa: E402

OUT = Path(os.environ.get("RUNBOOK_NB_SHOTS", ROOT / "build" / "shots"))
CHROMIUM = os.environ.get("RUNBOOK_NB_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
WIDTH = 714
#: Cards of things that are not built here, such as comparisons and plans.
HAND_MADE = {f"card_{name}": card for name, card in hand_made.CARDS.items()}

LIGHT = """
--jp-layout-color0:#fff;--jp-layout-color1:#fff;--jp-layout-color2:#eee;--jp-border-color1:#bdbdbd;
--jp-content-font-color1:rgba(0,0,0,.87);--jp-rendermime-table-row-background:#f5f5f5;
--jp-rendermime-table-row-hover-background:#e1f5fe;--jp-code-bg:#eee
"""
DARK = """
--jp-layout-color0:#111;--jp-layout-color1:#212121;--jp-layout-color2:#424242;
--jp-border-color1:#616161;--jp-content-font-color1:#fff;
--jp-rendermime-table-row-background:#212121;
--jp-rendermime-table-row-hover-background:#01579b;--jp-code-bg:#424242
"""
HOST = """
body{margin:0;padding:12px;background:var(--jp-layout-color0);
--jp-content-font-family:FONT,system-ui,sans-serif;
--jp-code-font-family:Menlo,'DejaVu Sans Mono',monospace}
.jp-RenderedHTMLCommon{color:var(--jp-content-font-color1);font-family:var(--jp-content-font-family);
font-size:14px;line-height:1.6;width:WIDTHpx;padding-right:20px}
.jp-RenderedHTMLCommon table{border-collapse:collapse;border-spacing:0;border:none;
color:var(--jp-content-font-color1);font-size:12px;table-layout:fixed;margin-left:auto;
margin-bottom:1em;margin-right:auto}
.jp-RenderedHTMLCommon thead{border-bottom:1px solid var(--jp-border-color1);vertical-align:bottom}
.jp-RenderedHTMLCommon td,.jp-RenderedHTMLCommon th,.jp-RenderedHTMLCommon tr{vertical-align:middle;
padding:.5em;line-height:normal;white-space:normal;max-width:none;border:none}
.jp-RenderedHTMLCommon :not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon td{max-width:none}
.jp-RenderedHTMLCommon th{font-weight:bold}
.jp-RenderedHTMLCommon td,.jp-RenderedHTMLCommon th{text-align:right}
.jp-RenderedHTMLCommon tbody tr:nth-child(odd){background:var(--jp-layout-color0)}
.jp-RenderedHTMLCommon tbody tr:nth-child(even){
background:var(--jp-rendermime-table-row-background)}
.jp-RenderedHTMLCommon tbody tr:hover{background:var(--jp-rendermime-table-row-hover-background)}
.jp-RenderedHTMLCommon ul,.jp-RenderedHTMLCommon ol{padding-left:2em}
.jp-RenderedHTMLCommon ul{list-style:disc}
.jp-RenderedHTMLCommon * + ul,.jp-RenderedHTMLCommon * + ol{margin-top:.5em;margin-bottom:1em}
.jp-RenderedHTMLCommon dl dt{float:left;clear:left;width:20%;font-weight:bold}
.jp-RenderedHTMLCommon dl dd{float:left;width:80%;margin-left:0}
.jp-RenderedHTMLCommon samp,.jp-RenderedHTMLCommon code{font-family:var(--jp-code-font-family)}
.jp-RenderedHTMLCommon p{text-align:left;margin:0 0 1em}
.jp-RenderedHTMLCommon img{max-width:100%;height:auto}
"""


def page(body: str, theme: str, font: str = "Inter") -> str:
    """Put an output into a page that looks like JupyterLab."""
    tokens = DARK if theme == "dark" else LIGHT
    host = HOST.replace("FONT", font).replace("WIDTH", str(WIDTH))
    return (
        f"<!doctype html><meta charset='utf-8'><style>body{{{tokens};color-scheme:{theme}}}{host}"
        f"</style><body data-jp-theme-light='{'false' if theme == 'dark' else 'true'}'>"
        f"<div class='jp-RenderedHTMLCommon'>{body}</div>"
    )


def main(names: list[str]) -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    OUT.mkdir(parents=True, exist_ok=True)
    with states.frozen():
        drawn = {
            name: render_html(states.STATES[name]().view())
            for name in names
            if name in states.STATES
        }
    drawn |= {name: render_html(HAND_MADE[name]) for name in names if name in HAND_MADE}
    kinds = [("light", True), ("dark", True), ("light", False), ("dark", False)]
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for theme, trusted in kinds:
            context = browser.new_context(
                viewport={"width": WIDTH + 44, "height": 400}, device_scale_factor=1.5
            )
            tab = context.new_page()
            for name, html in drawn.items():
                tab.set_content(page(html if trusted else sanitized(html), theme))
                trust = "trusted" if trusted else "untrusted"
                tab.screenshot(path=OUT / f"{name}_{theme}_{trust}.png", full_page=True)
            context.close()
        browser.close()
    sys.stdout.write(f"{len(names) * len(kinds)} pictures in {OUT}\n")


if __name__ == "__main__":
    main(sys.argv[1:] or [*states.STATES, *HAND_MADE])
