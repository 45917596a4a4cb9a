"""Calling the command as a shell does."""

import pytest

from runbook_nb.cli.main import main


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Call the command in a folder of its own; gives status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        return left.value.code, *capsys.readouterr()

    return run
