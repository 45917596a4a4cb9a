"""Widgets: what answers while a kernel lives, beside a static view for when none does."""
