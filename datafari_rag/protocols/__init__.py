"""Dialects spoken to callers, pure: plain dicts in, asks and plain dicts out."""
