"""Separate programs: the /invoke service and the stub model."""
