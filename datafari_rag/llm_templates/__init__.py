"""Dialects spoken to the model, pure: values in, plain dicts out."""
