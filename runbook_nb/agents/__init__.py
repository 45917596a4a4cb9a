"""Adapters for agent frameworks: what this package knows, held over agents it did not make.

Each module is for one framework and loads it; nothing else in the package does.
"""
