"""The record of a run: an append-only log, and everything a reader sees as a view of it."""
