"""An interactive shell with the extension loaded."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """Give an interactive shell with the extension loaded, and take it out again."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=config)
    made.run_line_magic("load_ext", "runbook_nb")
    yield made
    InteractiveShell.clear_instance()
