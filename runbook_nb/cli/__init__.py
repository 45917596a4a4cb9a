"""The ``runbook-nb`` command."""
