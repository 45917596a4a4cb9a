"""``python -m runbook_nb`` is the ``runbook-nb`` command."""

from runbook_nb.cli.main import main

if __name__ == "__main__":
    main()
