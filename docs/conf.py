"""How the documentation is built. Nothing is fetched, and a warning is an error (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from runbook_nb._version import __version__

project = "runbook_nb"
author = "runbook_nb contributors"
version = release = __version__
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated"]
exclude_patterns = ["_build"]

# Notebooks are shown with the outputs they were saved with; a build runs no code of theirs.
nb_execution_mode = "off"
# Widgets need a server and scripts from elsewhere; their static form is what a page can hold.
nb_ipywidgets_js = {}
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

# A name in single backticks, as docstrings have it, is a reference where it can be one.
default_role = "py:obj"
# Attributes that are listed for a class are looked up as references too, by their bare name; that
# several classes have a `kind` is no fault of a page.
suppress_warnings = ["ref.python"]
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
maximum_signature_line_length = 80

# `make links`: a host that is slow once is not a dead link, and pages that a script draws have no
# anchors to be found.
linkcheck_timeout = 20
linkcheck_retries = 3
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]

html_theme = "furo"
html_title = "runbook_nb"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_dark_style = "a11y-high-contrast-dark"


def _colours(accent: str) -> dict[str, str]:
    names = ("brand-primary", "brand-content", "brand-visited", "api-name", "api-pre-name")
    return {f"color-{name}": accent for name in names}


html_theme_options = {
    "light_css_variables": _colours("#0b5fa5"),
    "dark_css_variables": _colours("#6fb7f2"),
}
