"""Shipped runbooks on real data, written the way an author would write his own.

Examples layer. What they read is in the extra ``[examples]``.
"""
