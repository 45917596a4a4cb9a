"""Playbooks: a declared order of steps, held over a free-running agent or a person."""
