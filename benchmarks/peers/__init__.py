"""Others doing the task: each in a process of its own that answers one round after another."""
