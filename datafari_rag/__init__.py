"""Trustworthy answers for an enterprise search: one pipeline, several dialects, every citation checkable."""

__version__ = "0.1.0"
