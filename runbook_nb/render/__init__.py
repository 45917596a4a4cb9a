"""Turns views into text and Markdown. Knows the parts of `runbook_nb._view` and nothing else."""
